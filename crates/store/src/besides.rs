//! What stands beside an event's places and must tell the same: sessions, done keys, payments due. For the audit.

use std::collections::{BTreeMap, BTreeSet};

use domain::reservation::Reservation;
use domain::{EventId, ReservationId, Token};
use futures::stream::{self, StreamExt, TryStreamExt};

use crate::holds::holder_of;
use crate::keys::{KeyName, Keys};
use crate::{Snapshot, Store, StoreError};

/// Items read at once.
const PAGE: usize = 1_000;
/// Sessions read at the same time.
const READERS: usize = 64;

/// A session as far as its holds go.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HeldSession {
    /// Whether there is one.
    pub is_there: bool,
    /// What it holds, in the compact form.
    pub items: String,
    /// When its holds end.
    pub hold_expires_at: Option<i64>,
}

/// All of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Besides {
    /// Reservations that their token's done key does not name.
    pub undone: BTreeSet<ReservationId>,
    /// Reservations whose token stands in the line, is called or has a slot.
    pub in_line: BTreeSet<ReservationId>,
    /// Reservation → when its payment is due, as the tick sees it.
    pub payment_due: BTreeMap<String, i64>,
    /// Reservations whose buyers will be reminded.
    pub reminders: BTreeSet<String>,
    /// Sessions of all who hold something or have a slot.
    pub sessions: BTreeMap<Token, HeldSession>,
    /// Tokens with a slot that are neither called nor in a session.
    pub idle_slots: Vec<Token>,
    /// The last ticket number.
    pub number: u64,
    /// The score of whoever stands last in the line.
    pub last_score: Option<u64>,
}

impl Store {
    /// What stands beside the places of a snapshot, read after it.
    pub async fn besides(&self, event: &EventId, snapshot: &Snapshot) -> Result<Besides, StoreError> {
        let active: Vec<Token> = self
            .scan("ZSCAN", event, KeyName::Active)
            .await?
            .keys()
            .filter_map(|token| token.parse().ok())
            .collect();
        let holders = snapshot.holds.iter().filter_map(|(unit, hold)| holder_of(unit, hold));
        let tokens: BTreeSet<Token> = holders.chain(active.iter().copied()).collect();
        let sessions = self.held_sessions(event, tokens).await?;
        let called = self.present("HMGET", event, KeyName::Called, &active).await?;
        let is_idle = |token: &Token| {
            !called.contains(token) && !sessions.get(token).is_some_and(|session| session.is_there)
        };
        let idle_slots = active.iter().copied().filter(is_idle).collect();
        let of: BTreeMap<Token, &Reservation> =
            snapshot.reservations.iter().map(|reservation| (reservation.token, reservation)).collect();
        let booked: Vec<Token> = of.keys().copied().collect();
        let mut in_line: BTreeSet<Token> = BTreeSet::new();
        for (command, name) in
            [("ZMSCORE", KeyName::Waiting), ("ZMSCORE", KeyName::Active), ("HMGET", KeyName::Called)]
        {
            in_line.extend(self.present(command, event, name, &booked).await?);
        }
        let due = self.scan("ZSCAN", event, KeyName::PaymentDue).await?;
        let reminders = self.scan("ZSCAN", event, KeyName::PaymentReminders).await?;
        Ok(Besides {
            undone: self.undone(event, &snapshot.reservations).await?,
            in_line: in_line.iter().filter_map(|token| Some(of.get(token)?.reservation_id.clone())).collect(),
            payment_due: due.into_iter().filter_map(|(id, at)| Some((id, at.parse().ok()?))).collect(),
            reminders: reminders.into_keys().collect(),
            sessions,
            idle_slots,
            number: self.last_number(event).await?,
            last_score: self.last_score(event).await?,
        })
    }

    async fn held_sessions(
        &self,
        event: &EventId,
        tokens: BTreeSet<Token>,
    ) -> Result<BTreeMap<Token, HeldSession>, StoreError> {
        let read = |token: Token| async move {
            let mut command = redis::cmd("HMGET");
            command.arg(Keys::of(event).token(token).name(KeyName::Session));
            command.arg("state").arg("items").arg("holdExpiresAt");
            let fields: Vec<Option<String>> = self.read("HMGET", &command).await?;
            let [state, items, until] = fields.try_into().unwrap_or_default();
            let session = HeldSession {
                is_there: state.is_some(),
                items: items.unwrap_or_default(),
                hold_expires_at: until.and_then(|at| at.parse().ok()),
            };
            Ok::<_, StoreError>((token, session))
        };
        stream::iter(tokens).map(read).buffer_unordered(READERS).try_collect().await
    }

    /// Those of the tokens that a hash or a sorted set has.
    async fn present(
        &self,
        command: &'static str,
        event: &EventId,
        name: KeyName,
        tokens: &[Token],
    ) -> Result<BTreeSet<Token>, StoreError> {
        let key = Keys::of(event).name(name);
        let mut present = BTreeSet::new();
        for page in tokens.chunks(PAGE) {
            let names: Vec<String> = page.iter().map(Token::to_string).collect();
            let asked = redis::cmd(command).arg(&key).arg(names).clone();
            let values: Vec<Option<String>> = self.read(command, &asked).await?;
            present.extend(
                page.iter().zip(values).filter(|(_, value)| value.is_some()).map(|(token, _)| *token),
            );
        }
        Ok(present)
    }

    async fn undone(
        &self,
        event: &EventId,
        reservations: &[Reservation],
    ) -> Result<BTreeSet<ReservationId>, StoreError> {
        let mut undone = BTreeSet::new();
        for page in reservations.chunks(PAGE) {
            let key =
                |reservation: &Reservation| Keys::of(event).token(reservation.token).name(KeyName::Done);
            let keys: Vec<String> = page.iter().map(key).collect();
            let named: Vec<Option<String>> = self.read("MGET", redis::cmd("MGET").arg(keys)).await?;
            for (reservation, named) in page.iter().zip(named) {
                let id = &reservation.reservation_id;
                if named.is_none_or(|named| named != id.to_string()) {
                    undone.insert(id.clone());
                }
            }
        }
        Ok(undone)
    }

    async fn last_number(&self, event: &EventId) -> Result<u64, StoreError> {
        let command = redis::cmd("GET").arg(Keys::of(event).name(KeyName::Sequence)).clone();
        Ok(self.read::<Option<u64>>("GET", &command).await?.unwrap_or(0))
    }

    async fn last_score(&self, event: &EventId) -> Result<Option<u64>, StoreError> {
        let key = Keys::of(event).name(KeyName::Waiting);
        let command = redis::cmd("ZRANGE").arg(key).arg(-1).arg(-1).arg("WITHSCORES").clone();
        let last: Vec<String> = self.read("ZRANGE", &command).await?;
        Ok(last.get(1).and_then(|score| score.parse().ok()))
    }
}
