//! Put back a reservation that Redis has forgotten, or knows in an older version than PostgreSQL.

use std::collections::BTreeMap;

use domain::layout::{Edition, items_of};
use domain::reservation::Reservation;
use domain::{EventId, Token};

use crate::holds::holder_of;
use crate::keys::{KeyName, Keys};
use crate::step::{Call, EVICT, RESTORE};
use crate::{Store, StoreError};

/// How often holds give way, expired ones are given back, or a newer edition is read, for one reservation.
const TURNS: u32 = 50;

/// What came of putting a reservation back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Restored {
    /// It is here now as it was given.
    Restored {
        /// Held places that gave way to it: the sale is true, the hold is not.
        evicted: u32,
    },
    /// It was here, in this version or a newer one.
    Known,
    /// Its places are another's, and why. Nothing was written: no side alone is right.
    Conflict(String),
    /// No such event.
    UnknownEvent,
}

/// What stands in a reservation's way.
enum Obstacle {
    /// Nothing: it has an answer.
    None(Restored),
    /// Something that this turn has taken away; so many held places are free now.
    Gone(u32),
    /// Something that stays.
    Stays(String),
}

impl Store {
    /// Put a reservation back, as PostgreSQL knows it. May be repeated.
    pub async fn restore(&self, reservation: &Reservation) -> Result<Restored, StoreError> {
        let event = reservation.reservation_id.event();
        let Some(mut edition) = self.edition(event).await? else { return Ok(Restored::UnknownEvent) };
        let (mut evicted, mut is_newest) = (0, false);
        for _ in 0..TURNS {
            match self.restore_by(&edition, reservation).await? {
                Obstacle::None(Restored::Restored { .. }) => return Ok(Restored::Restored { evicted }),
                Obstacle::None(restored) => return Ok(restored),
                Obstacle::Gone(places) => evicted += places,
                Obstacle::Stays(why) if is_newest => return Ok(Restored::Conflict(why)),
                Obstacle::Stays(_) => {
                    // Its row may have come back elsewhere since the edition at hand.
                    edition = self.newest_edition(event).await?.unwrap_or(edition);
                    is_newest = true;
                }
            }
        }
        Err(StoreError::Exhausted { step: "restore", times: TURNS })
    }

    async fn restore_by(&self, edition: &Edition, reservation: &Reservation) -> Result<Obstacle, StoreError> {
        let event = reservation.reservation_id.event();
        let call = match self.restore_call(edition, reservation) {
            Ok(call) => call,
            Err(unknown) => return Ok(Obstacle::Stays(unknown)),
        };
        let mut reply = self.run(call).await?;
        Ok(match reply.word() {
            "RESTORED" => Obstacle::None(Restored::Restored { evicted: 0 }),
            "KNOWN" => Obstacle::None(Restored::Known),
            "EVENT_NOT_FOUND" => Obstacle::None(Restored::UnknownEvent),
            "AGAIN" => Obstacle::Gone(0),
            "HELD" => {
                let mut units = Vec::with_capacity(reply.left());
                while reply.left() > 0 {
                    units.push(reply.small()?.to_string());
                }
                let places = self.evict_holders(event, &units).await?;
                gone(places, || format!("seats at {} are held by nobody", units.join(", ")))
            }
            "FULL" => {
                let (section, missing) = (reply.small()?, reply.small()?);
                let places = self.evict_from(event, section, missing).await?;
                gone(places, || format!("section number {section} has {missing} places too few"))
            }
            _ => {
                let name = edition.layout.seat_name(reply.small()?).map(ToString::to_string);
                Obstacle::Stays(format!("seat {} is another's, or off sale", name.unwrap_or_default()))
            }
        })
    }

    fn restore_call(&self, edition: &Edition, given: &Reservation) -> Result<Call, String> {
        let items =
            items_of(&edition.layout, &given.places).map_err(|unknown| unknown.to_string())?.to_string();
        let id = &given.reservation_id;
        let due_at = given.payment_due_at.map(|at| at.to_string()).unwrap_or_default();
        let account = given.account.as_ref().map(ToString::to_string).unwrap_or_default();
        let mut call = Call::new(&RESTORE, Keys::of(id.event()).token(given.token).reservation(id))
            .arg(self.now_ms())
            .arg(given.token.to_string())
            .arg(id.to_string())
            .arg(given.status.as_str())
            .arg(given.version)
            .arg(&items)
            .arg(given.seat_count)
            .arg(&account)
            .arg(given.created_at.0)
            .arg(&due_at);
        let payment = given.payment_id.as_ref().map(ToString::to_string).unwrap_or_default();
        for (field, value) in [
            ("id", id.to_string()),
            ("token", given.token.to_string()),
            ("status", given.status.as_str().to_owned()),
            ("version", given.version.to_string()),
            ("items", items),
            ("seatCount", given.seat_count.to_string()),
            ("amount", given.amount.to_string()),
            ("currency", given.currency.clone()),
            ("createdAt", given.created_at.to_string()),
            ("updatedAt", given.updated_at.to_string()),
            ("paymentDueAt", due_at),
            ("account", account),
            ("paymentId", payment),
        ] {
            // As book and pay leave them: only what there is.
            if !value.is_empty() || field == "paymentDueAt" {
                call = call.arg(field).arg(value);
            }
        }
        Ok(call)
    }

    /// Take these held units from whoever holds them. Answers how many places came free.
    async fn evict_holders(&self, event: &EventId, units: &[String]) -> Result<u32, StoreError> {
        let command = redis::cmd("HMGET").arg(Keys::of(event).name(KeyName::Holds)).arg(units).clone();
        let holds: Vec<Option<String>> = self.read("HMGET", &command).await?;
        let mut holders: BTreeMap<Token, Vec<String>> = BTreeMap::new();
        for (unit, hold) in units.iter().zip(holds) {
            if let Some(token) = hold.as_deref().and_then(|hold| holder_of(unit, hold)) {
                holders.entry(token).or_default().push(unit.clone());
            }
        }
        let mut evicted = 0;
        for (token, units) in holders {
            evicted += self.evict(event, token, &units).await?;
        }
        Ok(evicted)
    }

    /// Take at least `missing` places of a general section from who holds them, the latest hold first.
    async fn evict_from(&self, event: &EventId, section: u32, missing: u32) -> Result<u32, StoreError> {
        let holds = self.scan("HSCAN", event, KeyName::Holds).await?;
        let due = self.scan("ZSCAN", event, KeyName::Due).await?;
        let prefix = format!("{section}*");
        let mut units: Vec<(i64, &String)> = holds
            .keys()
            .filter(|unit| unit.starts_with(&prefix))
            .map(|unit| (due.get(unit).and_then(|at| at.parse().ok()).unwrap_or(0), unit))
            .collect();
        units.sort_unstable();
        let mut evicted = 0;
        while let Some((_, unit)) = units.pop().filter(|_| evicted < missing) {
            evicted += self.evict_holders(event, std::slice::from_ref(unit)).await?;
        }
        Ok(evicted)
    }

    /// Take held units from a token, and out of its session what its holds do not back. Answers how many places came
    /// free.
    pub async fn evict(&self, event: &EventId, token: Token, units: &[String]) -> Result<u32, StoreError> {
        let mut call =
            Call::new(&EVICT, Keys::of(event).token(token)).arg(self.now_ms()).arg(token.to_string());
        for unit in units {
            call = call.arg(unit);
        }
        let mut reply = self.run(call).await?;
        if reply.word() == "EVICTED" { reply.small() } else { Ok(0) }
    }
}

fn gone(places: u32, stays: impl FnOnce() -> String) -> Obstacle {
    if places > 0 { Obstacle::Gone(places) } else { Obstacle::Stays(stays()) }
}
