//! Reading back what was written, a bounded page at a time.

use deadpool_postgres::Client;
use domain::fact::{Fact, StreamId};
use domain::reservation::{Reservation, ReservationStatus, ReservedPlaces};
use domain::{EventId, Millis, OfferingId, ReservationId, SectionId, Token};
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, ToSql};
use uuid::Uuid;

use crate::{Records, RecordsError};

/// The most rows of a page, whatever was asked for.
pub const MAX_PAGE_ROWS: u32 = 10_000;

/// Rows of a page where all pages are read.
const PAGE: u32 = 1_000;

/// A page of reservations with their places, in the order of one of their instants.
macro_rules! reservations_by {
    ($instant:literal) => {
        concat!(
            "select r.reservation_id, r.token, r.account, r.status, r.version, r.seat_count, r.amount, r.currency, \
                 r.created_at_ms, r.updated_at_ms, r.payment_due_at_ms, r.payment_id, \
                 p.part, p.offering_id, p.section_id, p.price, p.count, p.seat \
             from (select * from reservations \
                   where event_id = $1 and (",
            $instant,
            ", reservation_id) > ($2, $3) order by ",
            $instant,
            ", reservation_id limit $4) r \
             left join reservation_places p on p.event_id = r.event_id and p.reservation_id = r.reservation_id \
             order by r.",
            $instant,
            ", r.reservation_id, p.part, p.position"
        )
    };
}

const RESERVATIONS: &str = reservations_by!("created_at_ms");
const RESERVATIONS_CHANGED: &str = reservations_by!("updated_at_ms");

const FACTS: &str = "\
    select epoch, stream_ms, stream_sequence, at_ms, body::text from facts \
    where event_id = $1 and kind = $2 and (epoch, stream_ms, stream_sequence) > ($3, $4, $5) \
    order by epoch, stream_ms, stream_sequence limit $6";

/// The same for those of several kinds.
const FACTS_OF_KINDS: &str = "\
    select epoch, stream_ms, stream_sequence, at_ms, body::text from facts \
    where event_id = $1 and kind = any($2) and (epoch, stream_ms, stream_sequence) > ($3, $4, $5) \
    order by epoch, stream_ms, stream_sequence limit $6";

const NEWEST_FACT: &str = "\
    select epoch, at_ms from facts where event_id = $1 \
    order by epoch desc, stream_ms desc, stream_sequence desc limit 1";

const STATUS_COUNTS: &str = "\
    select status, count(*), sum(seat_count)::bigint, sum(amount)::bigint from reservations \
    where event_id = $1 group by status order by status";

const SECTION_COUNTS: &str = "\
    select offering_id, section_id, sum(count)::bigint from reservation_places \
    where event_id = $1 and kept group by offering_id, section_id order by offering_id, section_id";

const DEFINITION: &str = "select version, definition::text, changed_at_ms from events where event_id = $1";

/// What stands under one status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusCount {
    /// The status.
    pub status: ReservationStatus,
    /// Reservations.
    pub reservations: u64,
    /// Their places.
    pub places: u64,
    /// Their price, in the currency's smallest unit.
    pub amount: u64,
}

/// What is sold of one section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SectionCount {
    /// The offering.
    pub offering_id: OfferingId,
    /// The section.
    pub section_id: SectionId,
    /// Places kept by reservations.
    pub sold: u64,
}

/// A sale's definition as last written.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedDefinition {
    /// Its version.
    pub version: u64,
    /// The definition.
    pub definition: serde_json::Value,
    /// When it changed.
    pub changed_at: Millis,
}

impl Records {
    /// An event's reservations in the order of their sale, at most `limit` of those behind `after`, which is
    /// the last of the page before. An empty page is the end.
    pub async fn reservations(
        &self,
        event: &EventId,
        after: Option<&Reservation>,
        limit: u32,
    ) -> Result<Vec<Reservation>, RecordsError> {
        let after = after.map(|last| (last.created_at, &last.reservation_id));
        self.reservations_behind(event, after, limit).await
    }

    /// The same for a reader who has only kept where the page before ended: when its last reservation was made,
    /// and that reservation's id.
    pub async fn reservations_behind(
        &self,
        event: &EventId,
        after: Option<(Millis, &ReservationId)>,
        limit: u32,
    ) -> Result<Vec<Reservation>, RecordsError> {
        let after = after.map(|(created_at, id)| (created_at, Some(id)));
        self.reservations_page(RESERVATIONS, event, after, limit).await
    }

    /// Every reservation of an event in the order of their sale, a page at a time.
    pub async fn each_reservation(
        &self,
        event: &EventId,
        mut each: impl FnMut(Reservation),
    ) -> Result<(), RecordsError> {
        let mut page = self.reservations(event, None, PAGE).await?;
        while let Some(last) = page.last() {
            let next = self.reservations(event, Some(last), PAGE).await?;
            std::mem::replace(&mut page, next).into_iter().for_each(&mut each);
        }
        Ok(())
    }

    /// An event's reservations in the order of their last change, at most `limit` of those behind `after`: an
    /// instant, and at that instant a reservation's id.
    pub async fn reservations_changed(
        &self,
        event: &EventId,
        after: Option<(Millis, Option<&ReservationId>)>,
        limit: u32,
    ) -> Result<Vec<Reservation>, RecordsError> {
        self.reservations_page(RESERVATIONS_CHANGED, event, after, limit).await
    }

    async fn reservations_page(
        &self,
        sql: &str,
        event: &EventId,
        after: Option<(Millis, Option<&ReservationId>)>,
        limit: u32,
    ) -> Result<Vec<Reservation>, RecordsError> {
        let at = after.map_or(i64::MIN, |(at, _)| at.0);
        let id = after.and_then(|(_, id)| id).map_or_else(String::new, ToString::to_string);
        let parameters: &Parameters<'_> = &[&event.as_str(), &at, &id, &page(limit)];
        let rows = self.rows(sql, parameters).await?;
        let mut reservations: Vec<Reservation> = Vec::new();
        let mut last = None;
        for row in &rows {
            let row = Cells { row, table: "reservations" };
            let id: &str = row.get(0)?;
            if last != Some(id) {
                reservations.push(reservation(row)?);
                last = Some(id);
            }
            if let Some(reservation) = reservations.last_mut() {
                add_place(reservation, row)?;
            }
        }
        Ok(reservations)
    }

    /// Facts of one kind in the order in which they became true, at most `limit` of those behind `after`,
    /// which is the last of the page before. An empty page is the end.
    pub async fn facts(
        &self,
        event: &EventId,
        kind: &str,
        after: Option<&Fact>,
        limit: u32,
    ) -> Result<Vec<Fact>, RecordsError> {
        self.facts_behind(event, kind, after.map(|last| (last.epoch, last.id)), limit).await
    }

    /// The same for a reader who has only kept the identity of the last fact of the page before.
    pub async fn facts_behind(
        &self,
        event: &EventId,
        kind: &str,
        after: Option<(u64, StreamId)>,
        limit: u32,
    ) -> Result<Vec<Fact>, RecordsError> {
        let (epoch, ms, sequence) = behind(after);
        let parameters: &Parameters<'_> = &[&event.as_str(), &kind, &epoch, &ms, &sequence, &page(limit)];
        let rows = self.rows(FACTS, parameters).await?;
        rows.iter().map(|row| fact(event, Cells { row, table: "facts" })).collect()
    }

    /// Every fact of one kind in the order in which they became true, a page at a time.
    pub async fn each_fact(
        &self,
        event: &EventId,
        kind: &str,
        mut each: impl FnMut(Fact),
    ) -> Result<(), RecordsError> {
        let mut page = self.facts(event, kind, None, PAGE).await?;
        while let Some(last) = page.last() {
            let next = self.facts(event, kind, Some(last), PAGE).await?;
            std::mem::replace(&mut page, next).into_iter().for_each(&mut each);
        }
        Ok(())
    }

    /// A page of facts of several kinds.
    pub async fn facts_of(
        &self,
        event: &EventId,
        kinds: &[&str],
        after: Option<(u64, StreamId)>,
        limit: u32,
    ) -> Result<Vec<Fact>, RecordsError> {
        let (epoch, ms, sequence) = behind(after);
        let parameters: &Parameters<'_> = &[&event.as_str(), &kinds, &epoch, &ms, &sequence, &page(limit)];
        let rows = self.rows(FACTS_OF_KINDS, parameters).await?;
        rows.iter().map(|row| fact(event, Cells { row, table: "facts" })).collect()
    }

    /// The epoch of an event's newest fact, and when it became true.
    pub async fn newest_fact(&self, event: &EventId) -> Result<Option<(u64, Millis)>, RecordsError> {
        let rows = self.rows(NEWEST_FACT, &[&event.as_str()]).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let row = Cells { row, table: "facts" };
        Ok(Some((row.number(0)?, Millis(row.get(1)?))))
    }

    /// Reservations, places and amounts of an event by status.
    pub async fn status_counts(&self, event: &EventId) -> Result<Vec<StatusCount>, RecordsError> {
        let rows = self.rows(STATUS_COUNTS, &[&event.as_str()]).await?;
        let count = |row| {
            let row = Cells { row, table: "reservations" };
            Ok(StatusCount {
                status: status(row, 0)?,
                reservations: row.number(1)?,
                places: row.number(2)?,
                amount: row.number(3)?,
            })
        };
        rows.iter().map(count).collect()
    }

    /// Places of an event that are sold, by section; sections that sold nothing are left out.
    pub async fn section_counts(&self, event: &EventId) -> Result<Vec<SectionCount>, RecordsError> {
        let rows = self.rows(SECTION_COUNTS, &[&event.as_str()]).await?;
        let count = |row| {
            let row = Cells { row, table: "reservation_places" };
            Ok(SectionCount { offering_id: row.parsed(0)?, section_id: row.parsed(1)?, sold: row.number(2)? })
        };
        rows.iter().map(count).collect()
    }

    /// An event's definition; none for an event of which no definition was written.
    pub async fn definition(&self, event: &EventId) -> Result<Option<RecordedDefinition>, RecordsError> {
        let rows = self.rows(DEFINITION, &[&event.as_str()]).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let row = Cells { row, table: "events" };
        let definition = serde_json::from_str(row.get(1)?).map_err(|error| row.unreadable(&error))?;
        Ok(Some(RecordedDefinition { version: row.number(0)?, definition, changed_at: Millis(row.get(2)?) }))
    }

    async fn rows(&self, sql: &str, parameters: &Parameters<'_>) -> Result<Vec<Row>, RecordsError> {
        let client = self.client().await?;
        let ask = async |client: &mut Client| {
            let statement = client.prepare_cached(sql).await?;
            client.query(&statement, parameters).await
        };
        let (_, rows) = self.bounded(client, ask).await?;
        rows.map_err(RecordsError::Statement)
    }
}

type Parameters<'a> = [&'a (dyn ToSql + Sync)];

/// A place in the journal as the statements take it; before all of them without one.
fn behind(after: Option<(u64, StreamId)>) -> (i64, i64, i64) {
    let of =
        |(epoch, id): (u64, StreamId)| (epoch.cast_signed(), id.ms.cast_signed(), id.sequence.cast_signed());
    after.map_or((-1, 0, 0), of)
}

fn page(limit: u32) -> i64 {
    i64::from(limit.min(MAX_PAGE_ROWS))
}

/// A row whose cells are checked like any other input: another version, or a hand, may have written it.
#[derive(Clone, Copy)]
struct Cells<'a> {
    row: &'a Row,
    table: &'static str,
}

impl<'a> Cells<'a> {
    fn get<T: FromSql<'a>>(self, column: usize) -> Result<T, RecordsError> {
        self.row.try_get(column).map_err(|error| self.unreadable(&error))
    }

    fn number<T: TryFrom<i64, Error: ToString>>(self, column: usize) -> Result<T, RecordsError> {
        T::try_from(self.get::<i64>(column)?).map_err(|error| self.unreadable(&error))
    }

    fn parsed<T: std::str::FromStr<Err: ToString>>(self, column: usize) -> Result<T, RecordsError> {
        self.get::<&str>(column)?.parse().map_err(|error: T::Err| self.unreadable(&error))
    }

    fn optional<T: std::str::FromStr<Err: ToString>>(self, column: usize) -> Result<Option<T>, RecordsError> {
        let text = self.get::<Option<&str>>(column)?;
        text.map(|text| text.parse().map_err(|error: T::Err| self.unreadable(&error))).transpose()
    }

    fn unreadable(self, reason: &impl ToString) -> RecordsError {
        RecordsError::Unreadable { table: self.table, reason: reason.to_string() }
    }
}

fn status(row: Cells<'_>, column: usize) -> Result<ReservationStatus, RecordsError> {
    ReservationStatus::from_word(row.get(column)?).ok_or_else(|| row.unreadable(&"unknown status"))
}

/// The reservation of a row of [`RESERVATIONS`], without its places.
fn reservation(row: Cells<'_>) -> Result<Reservation, RecordsError> {
    Ok(Reservation {
        reservation_id: row.parsed(0)?,
        token: Token::from_uuid(row.get::<Uuid>(1)?)
            .ok_or_else(|| row.unreadable(&"a token of another form"))?,
        account: row.optional(2)?,
        status: status(row, 3)?,
        version: row.number(4)?,
        places: Vec::new(),
        seat_count: row.number(5)?,
        amount: row.number(6)?,
        currency: row.get(7)?,
        created_at: Millis(row.get(8)?),
        updated_at: Millis(row.get(9)?),
        payment_due_at: row.get::<Option<i64>>(10)?.map(Millis),
        payment_id: row.optional(11)?,
    })
}

/// Adds the place of a row of [`RESERVATIONS`], if it has one: parts come in order, seats in order within them.
fn add_place(reservation: &mut Reservation, row: Cells<'_>) -> Result<(), RecordsError> {
    let Some(part) = row.get::<Option<i32>>(12)? else { return Ok(()) };
    let places = &mut reservation.places;
    if usize::try_from(part).is_ok_and(|part| part >= places.len()) {
        places.push(ReservedPlaces {
            offering_id: row.parsed(13)?,
            section_id: row.parsed(14)?,
            price: row.number(15)?,
            count: 0,
            seats: Vec::new(),
        });
    }
    if let Some(places) = places.last_mut() {
        places.count = places.count.saturating_add(row.number(16)?);
        if row.get::<Option<&str>>(17)?.is_some() {
            places.seats.push(row.parsed(17)?);
        }
    }
    Ok(())
}

/// The fact of a row of [`FACTS`].
fn fact(event: &EventId, row: Cells<'_>) -> Result<Fact, RecordsError> {
    let body: &str = row.get(4)?;
    Ok(Fact {
        event: event.clone(),
        epoch: row.number(0)?,
        id: StreamId { ms: row.number(1)?, sequence: row.number(2)? },
        at: Millis(row.get(3)?),
        what: serde_json::from_str(body).map_err(|error| row.unreadable(&error))?,
    })
}
