//! Give held places back.

use domain::command::Release;
use domain::layout::Edition;
use domain::outcome::{Outcome, Refusal};
use redis::ToRedisArgs;

use crate::catalogue::{ATTEMPTS, edition_or_refuse, gave_up};
use crate::hold::{NO_VERSION, asked_by, key_of};
use crate::keys::Keys;
use crate::step::{Call, RELEASE};
use crate::{Store, StoreError};

impl Store {
    /// Give back what is named, or all; answers how many places that were.
    pub async fn release(&self, release: &Release) -> Result<Outcome<u32>, StoreError> {
        let mut edition = edition_or_refuse!(self, &release.event);
        let mut renewed = false;
        for _ in 0..ATTEMPTS {
            let (mode, places) = match places_of(&edition, release) {
                Ok(places) => places,
                // What is not known here may be in an edition not read yet.
                Err(_) if !renewed => {
                    renewed = true;
                    edition = self.newest_edition(&release.event).await?.unwrap_or(edition);
                    continue;
                }
                // The places are gone; what a named request was answered while they were there is kept.
                Err(refusal) if release.repeatable.is_none() => return Ok(Err(refusal)),
                Err(refusal) => {
                    let mut reply = self.run(self.release_head(release, NO_VERSION).arg("seats")).await?;
                    return match reply.word() {
                        "RELEASED" => reply.small().map(Ok),
                        "IDEMPOTENCY_KEY_REUSED" => reply.refusal().map(Err),
                        _ => Ok(Err(refusal)),
                    };
                }
            };
            let mut call = self.release_head(release, edition.version).arg(mode);
            for place in places {
                call = call.arg(place);
            }
            let mut reply = self.run(call).await?;
            match reply.word() {
                "STALE" => edition = self.newest_edition(&release.event).await?.unwrap_or(edition),
                "RELEASED" => return reply.small().map(Ok),
                _ => return reply.refusal().map(Err),
            }
        }
        Err(gave_up("release"))
    }

    fn release_head(&self, release: &Release, version: impl ToRedisArgs) -> Call {
        let repeatable = release.repeatable.as_ref();
        let keys = Keys::of(&release.event).token(release.token).idempotency(key_of(repeatable));
        let call = Call::new(&RELEASE, keys).arg(self.now_ms()).arg(version);
        call.arg(release.token.to_string()).arg(asked_by(repeatable))
    }
}

fn places_of(edition: &Edition, release: &Release) -> Result<(&'static str, Vec<u32>), Refusal> {
    let layout = &edition.layout;
    let default = edition.sale.default.as_ref().map(|place| &place.offering_id);
    if release.seats.is_empty() {
        let Some(offering) = &release.offering else { return Ok(("all", Vec::new())) };
        let sections: Vec<u32> = layout.sections_of(offering).map(|section| section.number).collect();
        return if sections.is_empty() { Err(Refusal::OfferingNotFound) } else { Ok(("sections", sections)) };
    }
    let offering = release.offering.as_ref().or(default).ok_or(Refusal::OfferingNotFound)?;
    if layout.sections_of(offering).next().is_none() {
        return Err(Refusal::OfferingNotFound);
    }
    let places: Vec<_> = release.seats.iter().map(|seat| layout.seat(offering, seat)).collect();
    if places.iter().all(Option::is_some) {
        return Ok(("seats", places.into_iter().flatten().map(|place| place.index).collect()));
    }
    let unknown = release.seats.iter().zip(&places).filter(|(_, place)| place.is_none());
    Err(Refusal::SeatNotFound { seats: unknown.map(|(seat, _)| seat.clone()).collect() })
}
