//! What an operator reads beside what people are answered.

use std::collections::BTreeMap;

use domain::{EventId, Millis, Token};

use crate::holds::Hold;
use crate::keys::{KeyName, Keys};
use crate::{Store, StoreError};

/// Places read at once.
const PAGE: usize = 1_000;

/// One place of the waiting line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitingPlace {
    /// Whose it is.
    pub token: Token,
    /// Where it stands.
    pub score: u64,
}

/// A page of the waiting line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WaitingPage {
    /// About a thousand places, in no order.
    pub places: Vec<WaitingPlace>,
    /// Where the next page begins; `None` behind the last one.
    pub next: Option<u64>,
}

impl Store {
    /// What steps take for the time: Redis' clock, or a driver's.
    pub async fn clock(&self) -> Result<Millis, StoreError> {
        match self.now_ms() {
            0 => Ok(Millis(i64::try_from(self.redis_time_ms().await?).unwrap_or(i64::MAX))),
            driven => Ok(Millis(driven)),
        }
    }

    /// Free places by the section's number.
    pub async fn stock(&self, event: &EventId) -> Result<BTreeMap<u32, i64>, StoreError> {
        let command = redis::cmd("HGETALL").arg(Keys::of(event).name(KeyName::Stock)).clone();
        let stock: BTreeMap<String, String> = self.read("HGETALL", &command).await?;
        // The stock's own sequence is the one field that is no section.
        Ok(stock
            .iter()
            .filter_map(|(section, free)| Some((section.parse().ok()?, free.parse().ok()?)))
            .collect())
    }

    /// Held places by the section's number, those whose time is over and that nobody has given back yet among them. Reads
    /// every hold, a thousand at a time: as many as people inside may have.
    pub async fn held(&self, event: &EventId) -> Result<BTreeMap<u32, u64>, StoreError> {
        let mut held = BTreeMap::new();
        for (unit, hold) in self.scan("HSCAN", event, KeyName::Holds).await? {
            if let Some(Hold { section, count, .. }) = Hold::read(&unit, &hold) {
                *held.entry(section).or_insert(0) += count;
            }
        }
        Ok(held)
    }

    /// A page of the waiting line from `cursor` on, 0 for the first. Who waits from the first page to the last is
    /// in one of them at least; who comes or goes meanwhile may be.
    pub async fn waiting(&self, event: &EventId, cursor: u64) -> Result<WaitingPage, StoreError> {
        let key = Keys::of(event).name(KeyName::Waiting);
        let command = redis::cmd("ZSCAN").arg(key).arg(cursor).arg("COUNT").arg(PAGE).clone();
        let (next, places): (u64, Vec<(String, String)>) = self.read("ZSCAN", &command).await?;
        let read = |(token, score): (String, String)| {
            Some(WaitingPlace { token: token.parse().ok()?, score: score.parse().ok()? })
        };
        Ok(WaitingPage {
            places: places.into_iter().filter_map(read).collect(),
            next: Some(next).filter(|next| *next != 0),
        })
    }
}
