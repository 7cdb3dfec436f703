//! Sell what is held, or so many places of a section.

use domain::command::{Book, Purchase};
use domain::fact::{Fact, What};
use domain::layout::Edition;
use domain::outcome::{Booked, Outcome, Refusal};
use domain::reservation::Reservation;
use domain::{EventId, ReservationId};

use crate::catalogue::{ATTEMPTS, edition_or_refuse, gave_up};
use crate::hold::{asked_by, key_of, section_of, span_arguments};
use crate::keys::Keys;
use crate::reply::Reply;
use crate::step::{BOOK, Call};
use crate::{Store, StoreError};

impl Store {
    /// Buy. A fresh booking brings the fact that the step wrote, to be sent before anybody is told; a repeat
    /// brings none.
    pub async fn book(&self, book: &Book) -> Result<Outcome<(Booked, Option<Fact>)>, StoreError> {
        let mut edition = edition_or_refuse!(self, &book.event);
        let id = ReservationId::of(book.event.clone(), book.token);
        let mut renewed = false;
        for _ in 0..ATTEMPTS {
            let call = match self.book_call(&edition, book, &id) {
                Ok(call) => call,
                Err(_) if !renewed => {
                    renewed = true;
                    edition = self.newest_edition(&book.event).await?.unwrap_or(edition);
                    continue;
                }
                Err(refusal) => return Ok(Err(refusal)),
            };
            let mut reply = self.run(call).await?;
            match reply.word() {
                "STALE" => edition = self.newest_edition(&book.event).await?.unwrap_or(edition),
                "AGAIN" => {}
                "BOOKED" => {
                    let (stamp, booked) = self.changed_reservation(&mut reply, edition).await?;
                    let reservation = booked.reservation.clone();
                    let fact = stamp.map(|stamp| {
                        stamp.fact(&book.event, &booked.reservation, What::Booked { reservation })
                    });
                    return Ok(Ok((booked, fact)));
                }
                _ => return reply.refusal().map(Err),
            }
        }
        Err(gave_up("book"))
    }

    fn book_call(&self, edition: &Edition, book: &Book, id: &ReservationId) -> Result<Call, Refusal> {
        let repeatable = book.repeatable.as_ref();
        let keys = Keys::of(&book.event).token(book.token).reservation(id).idempotency(key_of(repeatable));
        let call = Call::new(&BOOK, keys)
            .arg(self.now_ms())
            .arg(edition.version)
            .arg(book.token.to_string())
            .arg(id.to_string());
        let Purchase::Plain { seat_count, offering, section } = &book.purchase else {
            return Ok(call.arg("held").arg(asked_by(repeatable)).arg("held").arg("").arg("").arg(0));
        };
        let section = section_of(edition, offering.as_ref(), section.as_ref())?;
        let request = format!("plain {} {seat_count}", section.number);
        let mode = if section.is_general() { "general" } else { "count" };
        let mut call = call
            .arg(request)
            .arg(asked_by(repeatable))
            .arg(mode)
            .arg(section.number)
            .arg(section.price)
            .arg(*seat_count);
        for argument in span_arguments(section) {
            call = call.arg(argument);
        }
        Ok(call)
    }

    /// What `book` and `cancel` answer: where the fact stands in the journal, what is left, the reservation.
    pub(crate) async fn changed_reservation(
        &self,
        reply: &mut Reply,
        edition: std::sync::Arc<Edition>,
    ) -> Result<(Option<Stamp>, Booked), StoreError> {
        let stamp = Stamp::of(reply)?;
        let remaining_seats = reply.count()?;
        let fields = reply.fields()?;
        let reservation = self.named(fields, edition).await?;
        Ok((stamp, Booked { reservation, remaining_seats }))
    }
}

/// Where a fact stands: stream id and epoch.
pub(crate) struct Stamp {
    id: domain::fact::StreamId,
    epoch: u64,
}

impl Stamp {
    /// Where the step wrote its fact; a repeat wrote none.
    pub(crate) fn of(reply: &mut Reply) -> Result<Option<Self>, StoreError> {
        let text = reply.optional_text()?;
        text.map(|text| Self::read(&text).ok_or_else(|| reply.malformed(&text))).transpose()
    }

    fn read(text: &str) -> Option<Self> {
        let (id, epoch) = text.split_once('/')?;
        Some(Self { id: id.parse().ok()?, epoch: epoch.parse().ok()? })
    }

    pub(crate) fn fact(self, event: &EventId, reservation: &Reservation, what: What) -> Fact {
        let Self { id, epoch } = self;
        Fact { event: event.clone(), epoch, id, at: reservation.updated_at, what }
    }
}
