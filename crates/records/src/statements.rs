//! The statements that write: each takes whole columns, so that a batch costs a handful of round trips however
//! many facts it holds.

use std::collections::BTreeMap;

use deadpool_postgres::Transaction;
use domain::reservation::Reservation;
use domain::{Account, PaymentId};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row};

use crate::rows::{DefinitionRow, FactRow, place_rows};

/// A fact that is there is the same fact, delivered again.
const INSERT_FACTS: &str = "\
    insert into facts (event_id, epoch, stream_ms, stream_sequence, at_ms, body) \
    select event_id, epoch, stream_ms, stream_sequence, at_ms, body::jsonb \
    from unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::text[]) \
         as given (event_id, epoch, stream_ms, stream_sequence, at_ms, body) \
    on conflict (event_id, epoch, stream_ms, stream_sequence) do nothing";

/// Each fact carries the whole reservation, so that the highest version is the truth in whatever order they
/// come. Answers which it wrote, and whether for the first time: only an updated row was locked before.
const UPSERT_RESERVATIONS: &str = "\
    insert into reservations as recorded (reservation_id, event_id, token, account, status, version, \
        seat_count, amount, currency, created_at_ms, updated_at_ms, payment_due_at_ms, \
        payment_id) \
    select * from unnest($1::text[], $2::text[], $3::uuid[], $4::text[], $5::text[], $6::bigint[], \
        $7::bigint[], $8::bigint[], $9::text[], $10::bigint[], $11::bigint[], $12::bigint[], $13::text[]) \
    on conflict (reservation_id) do update set \
        account = excluded.account, status = excluded.status, version = excluded.version, \
        seat_count = excluded.seat_count, amount = excluded.amount, currency = excluded.currency, \
        created_at_ms = excluded.created_at_ms, updated_at_ms = excluded.updated_at_ms, \
        payment_due_at_ms = excluded.payment_due_at_ms, payment_id = excluded.payment_id \
    where excluded.version > recorded.version \
    returning reservation_id, xmax = 0";

const RELEASE_PLACES: &str = "\
    update reservation_places as place set kept = false \
    from unnest($1::text[], $2::text[]) as released (event_id, reservation_id) \
    where place.event_id = released.event_id and place.reservation_id = released.reservation_id and place.kept";

const CLAIM_PLACES: &str = "\
    insert into reservation_places (event_id, reservation_id, part, position, offering_id, section_id, \
        price, count, seat, kept) \
    select * from unnest($1::text[], $2::text[], $3::integer[], $4::integer[], $5::text[], $6::text[], \
        $7::bigint[], $8::bigint[], $9::text[], $10::boolean[])";

const UPSERT_DEFINITIONS: &str = "\
    insert into events as recorded (event_id, version, definition, changed_at_ms) \
    select event_id, version, definition::jsonb, changed_at_ms \
    from unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[]) \
         as given (event_id, version, definition, changed_at_ms) \
    on conflict (event_id) do update set version = excluded.version, definition = excluded.definition, \
        changed_at_ms = excluded.changed_at_ms \
    where excluded.version > recorded.version";

type Parameters<'a> = [&'a (dyn ToSql + Sync)];

async fn execute(transaction: &Transaction<'_>, sql: &str, parameters: &Parameters<'_>) -> Result<(), Error> {
    let statement = transaction.prepare_cached(sql).await?;
    transaction.execute(&statement, parameters).await.map(drop)
}

async fn query(
    transaction: &Transaction<'_>,
    sql: &str,
    parameters: &Parameters<'_>,
) -> Result<Vec<Row>, Error> {
    let statement = transaction.prepare_cached(sql).await?;
    transaction.query(&statement, parameters).await
}

fn column<'a, R, T>(rows: impl IntoIterator<Item = &'a R>, value: impl Fn(&'a R) -> T) -> Vec<T>
where
    R: 'a,
{
    rows.into_iter().map(value).collect()
}

pub(crate) async fn insert_facts(transaction: &Transaction<'_>, rows: &[FactRow<'_>]) -> Result<(), Error> {
    let mut rows: Vec<&FactRow<'_>> = rows.iter().collect();
    rows.sort_unstable_by_key(|row| row.identity());
    let rows = || rows.iter().copied();
    let parameters: &Parameters<'_> = &[
        &column(rows(), |row| row.fact.event.as_str()),
        &column(rows(), |row| row.epoch),
        &column(rows(), |row| row.stream_ms),
        &column(rows(), |row| row.stream_sequence),
        &column(rows(), |row| row.fact.at.0),
        &column(rows(), |row| row.body.as_str()),
    ];
    execute(transaction, INSERT_FACTS, parameters).await
}

/// What [`upsert_reservations`] wrote: ids and rows, as the other statements take them.
#[derive(Default)]
pub(crate) struct Written<'a> {
    /// For the first time.
    pub(crate) new: Vec<(&'a str, &'a Reservation)>,
    /// Over an older version.
    pub(crate) changed: Vec<(&'a str, &'a Reservation)>,
}

/// Writes what is newer than what is recorded.
pub(crate) async fn upsert_reservations<'a>(
    transaction: &Transaction<'_>,
    newest: &'a BTreeMap<String, &'a Reservation>,
) -> Result<Written<'a>, Error> {
    let rows = || newest.values();
    let parameters: &Parameters<'_> = &[
        &newest.keys().map(String::as_str).collect::<Vec<_>>(),
        &column(rows(), |row| row.reservation_id.event().as_str()),
        &column(rows(), |row| row.token.as_uuid()),
        &column(rows(), |row| row.account.as_ref().map(Account::as_str)),
        &column(rows(), |row| row.status.as_str()),
        &column(rows(), |row| i64::from(row.version)),
        &column(rows(), |row| i64::from(row.seat_count)),
        &column(rows(), |row| row.amount.cast_signed()),
        &column(rows(), |row| row.currency.as_str()),
        &column(rows(), |row| row.created_at.0),
        &column(rows(), |row| row.updated_at.0),
        &column(rows(), |row| row.payment_due_at.map(|due| due.0)),
        &column(rows(), |row| row.payment_id.as_ref().map(PaymentId::as_str)),
    ];
    let mut written = Written::default();
    for row in query(transaction, UPSERT_RESERVATIONS, parameters).await? {
        let (id, first): (&str, bool) = (row.try_get(0)?, row.try_get(1)?);
        if let Some((id, reservation)) = newest.get_key_value(id) {
            let list = if first { &mut written.new } else { &mut written.changed };
            list.push((id.as_str(), *reservation));
        }
    }
    Ok(written)
}

/// Frees the places of reservations that were given back. Comes before [`claim_places`], so that a batch may
/// hold a seat's return and its next sale.
pub(crate) async fn release_places(
    transaction: &Transaction<'_>,
    released: &[(&str, &Reservation)],
) -> Result<(), Error> {
    let parameters: &Parameters<'_> = &[
        &column(released, |(_, row)| row.reservation_id.event().as_str()),
        &column(released, |(id, _)| *id),
    ];
    execute(transaction, RELEASE_PLACES, parameters).await
}

#[derive(Default)]
struct PlaceColumns<'a> {
    event_id: Vec<&'a str>,
    reservation_id: Vec<&'a str>,
    part: Vec<i32>,
    position: Vec<i32>,
    offering_id: Vec<&'a str>,
    section_id: Vec<&'a str>,
    price: Vec<i64>,
    count: Vec<i64>,
    seat: Vec<Option<&'a str>>,
    kept: Vec<bool>,
}

impl<'a> PlaceColumns<'a> {
    fn push(&mut self, id: &'a str, reservation: &'a Reservation) {
        for row in place_rows(reservation) {
            self.event_id.push(reservation.reservation_id.event().as_str());
            self.reservation_id.push(id);
            self.part.push(row.part);
            self.position.push(row.position);
            self.offering_id.push(row.places.offering_id.as_str());
            self.section_id.push(row.places.section_id.as_str());
            self.price.push(row.places.price.cast_signed());
            self.count.push(row.count);
            self.seat.push(row.seat);
            self.kept.push(reservation.status.keeps_seats());
        }
    }
}

/// Writes the places of new reservations. What a reservation bought never changes: for a later version they are
/// there.
pub(crate) async fn claim_places(
    transaction: &Transaction<'_>,
    new: &[(&str, &Reservation)],
) -> Result<(), Error> {
    let mut columns = PlaceColumns::default();
    for (id, reservation) in new {
        columns.push(id, reservation);
    }
    let parameters: &Parameters<'_> = &[
        &columns.event_id,
        &columns.reservation_id,
        &columns.part,
        &columns.position,
        &columns.offering_id,
        &columns.section_id,
        &columns.price,
        &columns.count,
        &columns.seat,
        &columns.kept,
    ];
    execute(transaction, CLAIM_PLACES, parameters).await
}

pub(crate) async fn upsert_definitions(
    transaction: &Transaction<'_>,
    definitions: &[DefinitionRow<'_>],
) -> Result<(), Error> {
    let parameters: &Parameters<'_> = &[
        &column(definitions, |row| row.event),
        &column(definitions, |row| row.version),
        &column(definitions, |row| row.definition.as_str()),
        &column(definitions, |row| row.changed_at_ms),
    ];
    execute(transaction, UPSERT_DEFINITIONS, parameters).await
}
