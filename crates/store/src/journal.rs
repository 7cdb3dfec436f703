//! The journal: what every step appended, as facts in names, until the queue has taken them.

use std::collections::HashMap;
use std::sync::Arc;

use domain::fact::{CalledPlace, Fact, StreamId, What};
use domain::items::Items;
use domain::layout::{Edition, reserved_places};
use domain::reservation::{DueReservation, Payment, ReservedPlaces};
use domain::{EventId, Millis, Token};

use crate::keys::{KeyName, Keys};
use crate::{Store, StoreError, reservation};

/// Entries read at once.
pub const PAGE: usize = 1_000;

/// A page of an event's journal.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct JournalPage {
    /// The facts, oldest first.
    pub facts: Vec<Fact>,
    /// Entries that do not read as facts: a bug, reported and left where they are.
    pub unreadable: Vec<(StreamId, String)>,
    /// Where the next page begins, if this one was full.
    pub next: Option<StreamId>,
}

impl JournalPage {
    /// When its oldest entry was made, by Redis' clock.
    pub fn oldest_ms(&self) -> Option<u64> {
        let ids = self.facts.iter().map(|fact| &fact.id).chain(self.unreadable.iter().map(|(id, _)| id));
        ids.map(|id| id.ms).min()
    }
}

impl Store {
    /// The journal from `from` on, entries made up to `until_ms` only.
    pub async fn journal(
        &self,
        event: &EventId,
        from: Option<StreamId>,
        until_ms: u64,
    ) -> Result<JournalPage, StoreError> {
        let start = from.map_or_else(|| "-".to_owned(), |id| id.to_string());
        let mut command = redis::cmd("XRANGE");
        command.arg(Keys::of(event).name(KeyName::Journal)).arg(start).arg(until_ms).arg("COUNT").arg(PAGE);
        let entries: Vec<(String, Vec<String>)> = self.read("XRANGE", &command).await?;
        if entries.is_empty() {
            return Ok(JournalPage::default());
        }
        let Some(mut edition) = self.edition(event).await? else { return Ok(JournalPage::default()) };
        let full = entries.len() == PAGE;
        let mut page = JournalPage::default();
        for (id, fields) in entries {
            let Ok(id) = id.parse::<StreamId>() else { continue };
            page.next = full.then_some(StreamId { ms: id.ms, sequence: id.sequence + 1 });
            let fields: HashMap<String, String> = pairs(fields).collect();
            let mut fact = fact(event, id, &fields, &edition);
            if fact.is_err() {
                // Places newer than the edition at hand.
                edition = self.newest_edition(event).await?.unwrap_or(edition);
                fact = self::fact(event, id, &fields, &edition);
            }
            match fact {
                Ok(fact) => page.facts.push(fact),
                Err(reason) => page.unreadable.push((id, reason)),
            }
        }
        Ok(page)
    }

    /// Forget what the queue has taken.
    pub async fn forget(&self, event: &EventId, taken: &[StreamId]) -> Result<(), StoreError> {
        for ids in taken.chunks(PAGE) {
            let mut command = redis::cmd("XDEL");
            command.arg(Keys::of(event).name(KeyName::Journal));
            for id in ids {
                command.arg(id.to_string());
            }
            self.query("XDEL", &command).await?;
        }
        Ok(())
    }

    /// Redis' clock, by which journal entries are stamped: a driver's clock does not move it.
    pub async fn redis_time_ms(&self) -> Result<u64, StoreError> {
        let (seconds, micros): (u64, u64) = self.read("TIME", &redis::cmd("TIME")).await?;
        Ok(seconds * 1000 + micros / 1000)
    }
}

/// Field, value, field, value, …
fn pairs(fields: Vec<String>) -> impl Iterator<Item = (String, String)> {
    let mut fields = fields.into_iter();
    std::iter::from_fn(move || Some((fields.next()?, fields.next()?)))
}

fn fact(
    event: &EventId,
    id: StreamId,
    fields: &HashMap<String, String>,
    edition: &Arc<Edition>,
) -> Result<Fact, String> {
    let entry = Entry { fields, edition };
    Ok(Fact {
        event: event.clone(),
        epoch: entry.parsed("epoch")?,
        id,
        at: Millis(entry.parsed("at")?),
        what: entry.what()?,
    })
}

/// One entry, with what its places are called.
struct Entry<'a> {
    fields: &'a HashMap<String, String>,
    edition: &'a Arc<Edition>,
}

impl Entry<'_> {
    fn text(&self, name: &str) -> Result<&str, String> {
        self.fields.get(name).map(String::as_str).ok_or_else(|| format!("no {name}"))
    }

    fn parsed<T: std::str::FromStr>(&self, name: &str) -> Result<T, String> {
        let text = self.text(name)?;
        text.parse().map_err(|_| format!("{name}: {text:?}"))
    }

    fn optional<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, String> {
        self.fields.contains_key(name).then(|| self.parsed(name)).transpose()
    }

    fn tokens(&self) -> Result<Vec<Token>, String> {
        let text = self.text("tokens")?;
        text.split(' ').map(|token| token.parse().map_err(|_| format!("tokens: {token:?}"))).collect()
    }

    fn places(&self) -> Result<Vec<ReservedPlaces>, String> {
        let items: Items = self.parsed("items")?;
        reserved_places(&self.edition.layout, &items).map_err(|error| error.to_string())
    }

    fn called(&self) -> Result<Vec<CalledPlace>, String> {
        let read = |place: &str| {
            let (token, score) = place.split_once(':')?;
            Some(CalledPlace { token: token.parse().ok()?, score: score.parse().ok()? })
        };
        let text = self.text("places")?;
        text.split(' ').map(|place| read(place).ok_or_else(|| format!("places: {place:?}"))).collect()
    }

    fn reservation(&self) -> Result<domain::reservation::Reservation, String> {
        reservation::read(self.fields, self.edition).map_err(|error| error.to_string())
    }

    fn payment(&self) -> Result<Payment, String> {
        Ok(Payment {
            reservation_id: self.parsed("reservation")?,
            payment_id: self.parsed("payment")?,
            amount: self.parsed("amount")?,
            currency: self.text("currency")?.to_owned(),
        })
    }

    fn due(&self) -> Result<Vec<DueReservation>, String> {
        let read = |due: &str| {
            let (id, at) = due.split_once(':')?;
            Some(DueReservation {
                reservation_id: id.parse().ok()?,
                payment_due_at: Millis(at.parse().ok()?),
            })
        };
        let text = self.text("reservations")?;
        text.split(' ').map(|due| read(due).ok_or_else(|| format!("reservations: {due:?}"))).collect()
    }

    fn what(&self) -> Result<What, String> {
        Ok(match self.text("kind")? {
            "USER_ENTER_QUEUE" => What::UserEnterQueue {
                token: self.parsed("token")?,
                ticket_number: self.optional("number")?,
                score: self.parsed("score")?,
                account: self.optional("account")?,
            },
            "USER_LEFT_QUEUE" => What::UserLeftQueue { token: self.parsed("token")? },
            "USER_ADMITTED" => What::UserAdmitted { places: self.called()? },
            "TOKEN_ISSUED" => What::TokenIssued {
                token: self.parsed("token")?,
                expires_at: Millis(self.parsed("expiresAt")?),
            },
            "ADMISSION_LAPSED" => What::AdmissionLapsed { tokens: self.tokens()? },
            "ADMISSION_EXPIRED" => What::AdmissionExpired { tokens: self.tokens()? },
            "SEATS_HELD" => What::SeatsHeld {
                token: self.parsed("token")?,
                places: self.places()?,
                expires_at: Millis(self.parsed("expiresAt")?),
            },
            "SEATS_RELEASED" => {
                What::SeatsReleased { token: self.optional("token")?, places: self.places()? }
            }
            "BOOKED" => What::Booked { reservation: self.reservation()? },
            "BOOKING_CANCELLED" => What::BookingCancelled { reservation: self.reservation()? },
            "BOOKING_EXPIRED" => What::BookingExpired { reservation: self.reservation()? },
            "PAID" => What::Paid { reservation: self.reservation()? },
            "REFUND_DUE" => {
                What::RefundDue { payment: self.payment()?, reason: self.text("reason")?.to_owned() }
            }
            "PAYMENT_REFUSED" => {
                What::PaymentRefused { payment: self.payment()?, reason: self.text("reason")?.to_owned() }
            }
            "PAYMENT_DUE_SOON" => What::PaymentDueSoon { reservations: self.due()? },
            "EVENT_CHANGED" => What::EventChanged {
                by: self.text("by")?.to_owned(),
                change: self.text("change")?.to_owned(),
                value: self.fields.get("value").cloned(),
                version: self.parsed("version")?,
                definition: match self.fields.get("definition") {
                    Some(text) => Some(serde_json::from_str(text).map_err(|error| error.to_string())?),
                    None => None,
                },
            },
            kind => return Err(format!("unknown kind {kind:?}")),
        })
    }
}
