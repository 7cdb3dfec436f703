//! Keep places for a token.

use domain::command::{Choice, Hold, Repeatable};
use domain::items::{Items, Units};
use domain::layout::{Edition, Section};
use domain::outcome::{Held, Outcome, Refusal};
use domain::{OfferingId, SeatName, SectionId};
use redis::ToRedisArgs;

use crate::catalogue::{ATTEMPTS, edition_or_refuse, gave_up};
use crate::keys::Keys;
use crate::reply::Reply;
use crate::step::{Call, HOLD};
use crate::{Store, StoreError};

impl Store {
    /// Keep places. `request` names this very request: repeating it changes nothing and answers the same.
    pub async fn hold(&self, hold: &Hold, request: &str) -> Result<Outcome<Held>, StoreError> {
        let mut edition = edition_or_refuse!(self, &hold.event);
        let mut renewed = false;
        for _ in 0..ATTEMPTS {
            let wanted = match Wanted::of(&edition, hold) {
                Ok(wanted) => wanted,
                // A place that is not known here may be in an edition not read yet.
                Err(_) if !renewed => {
                    renewed = true;
                    edition = self.newest_edition(&hold.event).await?.unwrap_or(edition);
                    continue;
                }
                // The places are gone; what a named request was answered while they were there is kept.
                Err(refusal) if hold.repeatable.is_none() => return Ok(Err(refusal)),
                Err(refusal) => {
                    let mut reply = self.run(self.replay_call(hold, request)).await?;
                    return match reply.word() {
                        "HELD" => held(&mut reply, &edition).map(Ok),
                        "IDEMPOTENCY_KEY_REUSED" => reply.refusal().map(Err),
                        _ => Ok(Err(refusal)),
                    };
                }
            };
            let mut reply = self.run(self.hold_call(&edition, hold, request, &wanted)).await?;
            match reply.word() {
                "STALE" => {
                    drop(wanted);
                    edition = self.newest_edition(&hold.event).await?.unwrap_or(edition);
                }
                "AGAIN" => {}
                "HELD" => return held(&mut reply, &edition).map(Ok),
                "SEAT_TAKEN" => return Ok(Err(Refusal::SeatTaken { seats: names(&mut reply, &edition)? })),
                _ => return reply.refusal().map(Err),
            }
        }
        Err(gave_up("hold"))
    }

    /// Asks for nothing but the answer that is kept: no edition has this version.
    fn replay_call(&self, hold: &Hold, request: &str) -> Call {
        self.hold_head(hold, NO_VERSION, request).arg("").arg("").arg("").arg(0)
    }

    fn hold_head(&self, hold: &Hold, version: impl ToRedisArgs, request: &str) -> Call {
        let repeatable = hold.repeatable.as_ref();
        let keys = Keys::of(&hold.event).token(hold.token).idempotency(key_of(repeatable));
        let call = Call::new(&HOLD, keys).arg(self.now_ms()).arg(version).arg(hold.token.to_string());
        call.arg(request).arg(asked_by(repeatable))
    }

    fn hold_call(&self, edition: &Edition, hold: &Hold, request: &str, wanted: &Wanted<'_>) -> Call {
        let mut call = self
            .hold_head(hold, edition.version, request)
            .arg(wanted.section.number)
            .arg(wanted.section.price)
            .arg(wanted.mode)
            .arg(wanted.count);
        for place in &wanted.places {
            call = call.arg(*place);
        }
        call
    }
}

/// A version that no edition has: a step that is told it answers what is kept of a named request, or STALE.
pub(crate) const NO_VERSION: &str = "";

/// What a hold asks of the step.
struct Wanted<'a> {
    section: &'a Section,
    mode: &'static str,
    count: u32,
    /// Indices of named seats, or offset and length of each of the section's spans.
    places: Vec<u32>,
}

impl<'a> Wanted<'a> {
    fn of(edition: &'a Edition, hold: &'a Hold) -> Result<Self, Refusal> {
        match &hold.choice {
            Choice::Seats(seats) => Self::named(edition, hold, seats),
            Choice::Count(count) => {
                let section = section_of(edition, hold.offering.as_ref(), hold.section.as_ref())?;
                Ok(Self::counted(section, "count", *count))
            }
            Choice::Best(count) => {
                let section = section_of(edition, hold.offering.as_ref(), hold.section.as_ref())?;
                Ok(Self::counted(section, "best", *count))
            }
        }
    }

    fn named(edition: &'a Edition, hold: &'a Hold, seats: &[SeatName]) -> Result<Self, Refusal> {
        let layout = &edition.layout;
        let offering = offering_of(edition, hold.offering.as_ref())?;
        if let Some(id) = &hold.section {
            layout.section(offering, id).ok_or(Refusal::SectionNotFound)?;
        }
        let places: Vec<_> = seats.iter().map(|seat| layout.seat(offering, seat)).collect();
        let section = places.iter().flatten().next().and_then(|place| layout.by_number(place.section));
        // One request holds seats of one section: the named one, or that of the first seat.
        let belongs = |number: u32| {
            let is_first = section.is_some_and(|section| section.number == number);
            is_first
                && hold.section.as_ref().is_none_or(|id| section.is_some_and(|section| section.id == *id))
        };
        let foreign: Vec<SeatName> = seats
            .iter()
            .zip(&places)
            .filter(|(_, place)| !place.is_some_and(|place| belongs(place.section)))
            .map(|(seat, _)| seat.clone())
            .collect();
        match section {
            Some(section) if foreign.is_empty() => {
                let places: Vec<u32> = places.iter().flatten().map(|place| place.index).collect();
                let count = u32::try_from(places.len()).unwrap_or(u32::MAX);
                Ok(Self { section, mode: "seats", count, places })
            }
            _ => Err(Refusal::SeatNotFound { seats: foreign }),
        }
    }

    fn counted(section: &'a Section, mode: &'static str, count: u32) -> Self {
        let mode = if section.is_general() { "general" } else { mode };
        Self { section, mode, count, places: span_arguments(section) }
    }
}

/// The digest of a request's Idempotency-Key.
pub(crate) fn key_of(repeatable: Option<&Repeatable>) -> Option<&str> {
    repeatable.map(|repeatable| repeatable.key.as_str())
}

/// The digest of what such a request asks; empty for one without a key.
pub(crate) fn asked_by(repeatable: Option<&Repeatable>) -> &str {
    repeatable.map_or("", |repeatable| repeatable.request.as_str())
}

/// Offset, length, offset, length, … of a section's rows.
pub(crate) fn span_arguments(section: &Section) -> Vec<u32> {
    section.spans().iter().flat_map(|span| [span.offset, span.length]).collect()
}

fn offering_of<'a>(edition: &'a Edition, named: Option<&'a OfferingId>) -> Result<&'a OfferingId, Refusal> {
    let default = edition.sale.default.as_ref().map(|place| &place.offering_id);
    let offering = named.or(default).ok_or(Refusal::OfferingNotFound)?;
    if edition.layout.sections_of(offering).next().is_none() {
        return Err(Refusal::OfferingNotFound);
    }
    Ok(offering)
}

/// The section a request means: the one it names, or the sale's default, of the default offering only.
pub(crate) fn section_of<'a>(
    edition: &'a Edition,
    offering: Option<&'a OfferingId>,
    section: Option<&'a SectionId>,
) -> Result<&'a Section, Refusal> {
    let offering = offering_of(edition, offering)?;
    let default = edition.sale.default.as_ref();
    let default = default.filter(|place| place.offering_id == *offering).map(|place| &place.section_id);
    let section = section.or(default).ok_or(Refusal::SectionNotFound)?;
    edition.layout.section(offering, section).ok_or(Refusal::SectionNotFound)
}

fn held(reply: &mut Reply, edition: &Edition) -> Result<Held, StoreError> {
    let now = reply.millis()?;
    let items: Items = reply.parsed()?;
    let mut seats = Vec::new();
    for item in &items.0 {
        if let Units::Seats(indices) = &item.units {
            for index in indices {
                let name = edition.layout.seat_name(*index).ok_or_else(|| reply.malformed("no such seat"))?;
                seats.push(name.clone());
            }
        }
    }
    Ok(Held {
        now,
        seats,
        seat_count: items.count(),
        hold_expires_at: reply.millis()?,
        active_expires_at: reply.millis()?,
        held_count: reply.small()?,
        ticket_count: reply.small()?,
        account: reply.account()?,
        prolonged: reply.integer()? == 1,
    })
}

fn names(reply: &mut Reply, edition: &Edition) -> Result<Vec<SeatName>, StoreError> {
    let mut names = Vec::with_capacity(reply.left());
    while reply.left() > 0 {
        let name = edition.layout.seat_name(reply.small()?);
        names.push(name.ok_or_else(|| reply.malformed("no such seat"))?.clone());
    }
    Ok(names)
}
