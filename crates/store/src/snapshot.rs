//! What Redis says of an event's places, all of it, for the audit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use domain::layout::Edition;
use domain::outcome::{Outcome, Refusal};
use domain::reservation::Reservation;
use domain::{Account, EventId, ReservationId, Token};
use futures::stream::{self, StreamExt, TryStreamExt};

use crate::account::account_of;
use crate::holds::holder_of;
use crate::keys::{KeyName, Keys};
use crate::step::{AUDIT, Call};
use crate::{Store, StoreError};

/// How often the whole is read before it is taken as it is, moving.
const TRIES: u32 = 5;
/// Items read at once.
const PAGE: usize = 1_000;
/// Reservations read at the same time.
const READERS: usize = 64;

/// All places of an event.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// The edition in place.
    pub edition: Arc<Edition>,
    /// Whether nothing moved while it was read: only then do holds and reservations belong to the counters.
    pub still: bool,
    /// Changes of places so far.
    pub sequence: i64,
    /// Free places in the whole event.
    pub remaining: i64,
    /// A byte a seat.
    pub map: String,
    /// Section number → free places.
    pub stock: BTreeMap<u32, i64>,
    /// Entries in `holds` and in `due`, which name the same units.
    pub hold_counts: (u64, u64),
    /// Held unit → `section:price:token` or `section:price:count`.
    pub holds: BTreeMap<String, String>,
    /// Held unit → when its hold ends.
    pub due: BTreeMap<String, i64>,
    /// Every reservation.
    pub reservations: Vec<Reservation>,
    /// The account of each holding token that has one.
    pub owners: BTreeMap<Token, Account>,
    /// Account → places it has bought, as limits count them.
    pub tickets: BTreeMap<String, i64>,
    /// Calls and sessions alive whose token stands in the line as well.
    pub twice_in_line: Vec<Token>,
}

/// What `audit.lua` counts in one moment.
#[derive(PartialEq)]
struct Counted {
    sequence: i64,
    remaining: i64,
    hold_counts: (u64, u64),
    map: String,
    stock: BTreeMap<u32, i64>,
}

impl Store {
    /// Everything about an event's places, read until nothing moved meanwhile or patience is over.
    pub async fn snapshot(&self, event: &EventId) -> Result<Outcome<Snapshot>, StoreError> {
        let mut tries = 0;
        loop {
            let Some(before) = self.counted(event).await? else { return Ok(Err(Refusal::EventNotFound)) };
            let Some(edition) = self.newest_edition(event).await? else {
                return Ok(Err(Refusal::EventNotFound));
            };
            let holds = self.scan("HSCAN", event, KeyName::Holds).await?;
            let due = self.scan("ZSCAN", event, KeyName::Due).await?;
            let reservations = self.reservations(event).await?;
            let tickets = self.scan("HSCAN", event, KeyName::Tickets).await?;
            let still = self.counted(event).await?.is_some_and(|after| after == before);
            tries += 1;
            if !still && tries < TRIES {
                continue;
            }
            let due = due.into_iter().filter_map(|(unit, at)| Some((unit, at.parse().ok()?))).collect();
            let Counted { sequence, remaining, hold_counts, map, stock } = before;
            let tickets =
                tickets.into_iter().filter_map(|(account, count)| Some((account, count.parse().ok()?)));
            let owners = self.owners(event, &holds).await?;
            let twice_in_line = self.twice_in_line(event).await?;
            return Ok(Ok(Snapshot {
                edition,
                still,
                sequence,
                remaining,
                map,
                stock,
                hold_counts,
                holds,
                due,
                reservations,
                owners,
                tickets: tickets.collect(),
                twice_in_line,
            }));
        }
    }

    async fn counted(&self, event: &EventId) -> Result<Option<Counted>, StoreError> {
        let mut reply = self.run(Call::new(&AUDIT, Keys::of(event))).await?;
        if reply.word() != "COUNTED" {
            return Ok(None);
        }
        let sequence = reply.integer()?;
        reply.integer()?;
        let remaining = reply.integer()?;
        let hold_counts = (reply.count()?, reply.count()?);
        let map = reply.text()?;
        let stock = reply.array()?.pairs()?;
        let stock =
            stock.into_iter().filter_map(|(section, free)| Some((section.parse().ok()?, free.parse().ok()?)));
        Ok(Some(Counted { sequence, remaining, hold_counts, map, stock: stock.collect() }))
    }

    /// All of a hash or a sorted set, a page at a time.
    pub(crate) async fn scan(
        &self,
        command: &'static str,
        event: &EventId,
        name: KeyName,
    ) -> Result<BTreeMap<String, String>, StoreError> {
        let key = Keys::of(event).name(name);
        let mut all = BTreeMap::new();
        let mut cursor = String::from("0");
        loop {
            let page = redis::cmd(command).arg(&key).arg(&cursor).arg("COUNT").arg(PAGE).clone();
            let (next, items): (String, Vec<String>) = self.read(command, &page).await?;
            let mut items = items.into_iter();
            while let (Some(name), Some(value)) = (items.next(), items.next()) {
                all.insert(name, value);
            }
            if next == "0" {
                return Ok(all);
            }
            cursor = next;
        }
    }

    /// Every reservation that Redis still keeps.
    pub async fn reservations(&self, event: &EventId) -> Result<Vec<Reservation>, StoreError> {
        let ids = self.scan("ZSCAN", event, KeyName::Reservations).await?;
        let ids: Vec<ReservationId> = ids.keys().filter_map(|id| id.parse().ok()).collect();
        let read = stream::iter(ids).map(|id| async move { self.any_reservation(&id).await });
        let read: Vec<Outcome<Reservation>> = read.buffered(READERS).try_collect().await?;
        Ok(read.into_iter().filter_map(Result::ok).collect())
    }

    /// The accounts of all tokens that hold something.
    async fn owners(
        &self,
        event: &EventId,
        holds: &BTreeMap<String, String>,
    ) -> Result<BTreeMap<Token, Account>, StoreError> {
        let tokens: BTreeSet<Token> = holds.iter().filter_map(|(unit, hold)| holder_of(unit, hold)).collect();
        let tokens: Vec<Token> = tokens.into_iter().collect();
        let key = Keys::of(event).name(KeyName::Accounts);
        let mut owners = BTreeMap::new();
        for page in tokens.chunks(PAGE) {
            let mut command = redis::cmd("HMGET");
            command.arg(&key);
            for token in page {
                command.arg(token.halves().0);
            }
            let entries: Vec<Option<String>> = self.read("HMGET", &command).await?;
            let found = page.iter().zip(entries);
            owners.extend(found.filter_map(|(token, entry)| Some((*token, account_of(*token, &entry?)?))));
        }
        Ok(owners)
    }

    /// Tokens that are called or in a session and stand in the line at the same time.
    async fn twice_in_line(&self, event: &EventId) -> Result<Vec<Token>, StoreError> {
        let active: Vec<String> = self.scan("ZSCAN", event, KeyName::Active).await?.into_keys().collect();
        let waiting = Keys::of(event).name(KeyName::Waiting);
        let mut twice = Vec::new();
        for tokens in active.chunks(PAGE) {
            let scores = redis::cmd("ZMSCORE").arg(&waiting).arg(tokens).clone();
            let scores: Vec<Option<String>> = self.read("ZMSCORE", &scores).await?;
            let found = tokens.iter().zip(scores).filter(|(_, score)| score.is_some());
            twice.extend(found.filter_map(|(token, _)| token.parse::<Token>().ok()));
        }
        Ok(twice)
    }
}
