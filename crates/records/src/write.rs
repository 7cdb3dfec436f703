//! Writing facts: all at once where all are good, and otherwise all but the bad ones.

use deadpool_postgres::Client;
use domain::fact::Fact;
use domain::reservation::Reservation;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use crate::rows::{FactRow, newest_definitions, newest_reservations};
use crate::statements::{
    claim_places, insert_facts, release_places, upsert_definitions, upsert_reservations,
};
use crate::{Records, RecordsError, describe};

/// The most facts of one transaction.
const MAX_FACTS_A_TRANSACTION: usize = 10_000;
/// The most transactions that looking for bad facts may cost a call. What was not told apart by then is refused
/// together and tried again with its messages, while all that was written stays.
const MAX_SPLITS: usize = 200;
/// How often a transaction is tried that lost against another one.
const MAX_TRIES: usize = 3;

/// What became of one message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WriteResult {
    /// Its facts that could not be written; all others are.
    pub refused: Vec<RefusedFact>,
}

impl WriteResult {
    /// Whether every fact of the message is written.
    pub fn is_written(&self) -> bool {
        self.refused.is_empty()
    }
}

/// A fact that could not be written, and never will be while nothing else changes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("fact {position} was refused: {reason}")]
pub struct RefusedFact {
    /// Its position in its message, from 0.
    pub position: usize,
    /// Why, without tokens.
    pub reason: String,
    /// Whether it broke a guard of the database.
    pub broke_guard: bool,
}

/// How a transaction ends.
#[derive(Debug, Clone, Copy)]
enum End {
    Commit,
    /// Guards were asked, and nothing has happened.
    Rollback,
}

impl Records {
    /// Writes the facts of `messages` and answers, message by message, what could not be written. Facts that
    /// are there already, and reservations older than what is recorded, change nothing.
    ///
    /// An error means that the database could not be asked: no message may be taken for written then, though
    /// some may be.
    pub async fn write(&self, messages: &[Vec<Fact>]) -> Result<Vec<WriteResult>, RecordsError> {
        self.write_until(messages, End::Commit).await
    }

    /// What [`Records::write`] would refuse now; writes nothing.
    pub async fn check(&self, messages: &[Vec<Fact>]) -> Result<Vec<WriteResult>, RecordsError> {
        self.write_until(messages, End::Rollback).await
    }

    async fn write_until(&self, messages: &[Vec<Fact>], end: End) -> Result<Vec<WriteResult>, RecordsError> {
        let mut results = vec![WriteResult::default(); messages.len()];
        let rows = rows(messages, &mut results);
        let mut client = self.client().await?;
        let mut splits = 0;
        // The next one is the last: chunks and halves are taken in order, seats given back first.
        let mut pending: Vec<&[FactRow<'_>]> = rows.chunks(MAX_FACTS_A_TRANSACTION).rev().collect();
        while let Some(facts) = pending.pop() {
            let (used, answer) =
                self.bounded(client, async |client| write_or_retry(client, facts, end).await).await?;
            client = used;
            match answer {
                Ok(()) => {}
                Err(error) if !is_about_data(&error) => return Err(error.into()),
                Err(_) if facts.len() > 1 && splits < MAX_SPLITS => {
                    splits += 1;
                    let (first, second) = facts.split_at(facts.len() / 2);
                    pending.extend([second, first]);
                }
                Err(error) => refuse(facts, &error, &mut results),
            }
        }
        Ok(results)
    }
}

/// All facts that can be rows, those that give seats back first: a newer sale of a seat may stand before its
/// return, in this batch or in one of its halves.
fn rows<'a>(messages: &'a [Vec<Fact>], results: &mut [WriteResult]) -> Vec<FactRow<'a>> {
    let mut rows = Vec::with_capacity(messages.iter().map(Vec::len).sum());
    for (message, facts) in messages.iter().enumerate() {
        for (position, fact) in facts.iter().enumerate() {
            match FactRow::of(message, position, fact) {
                Ok(row) => rows.push(row),
                Err(reason) => {
                    results[message].refused.push(RefusedFact { position, reason, broke_guard: false });
                }
            }
        }
    }
    rows.sort_by_key(FactRow::claims_seats);
    rows
}

fn refuse(facts: &[FactRow<'_>], error: &Error, results: &mut [WriteResult]) {
    let (reason, broke_guard) = (describe(error), breaks_guard(error));
    for row in facts {
        let refused = RefusedFact { position: row.position, reason: reason.clone(), broke_guard };
        results[row.message].refused.push(refused);
    }
}

async fn write_or_retry(client: &mut Client, facts: &[FactRow<'_>], end: End) -> Result<(), Error> {
    let mut tries = 1;
    loop {
        match write_once(client, facts, end).await {
            Err(error) if lost_a_race(&error) && tries < MAX_TRIES => tries += 1,
            answer => return answer,
        }
    }
}

async fn write_once(client: &mut Client, facts: &[FactRow<'_>], end: End) -> Result<(), Error> {
    let transaction = client.transaction().await?;
    insert_facts(&transaction, facts).await?;
    let newest = newest_reservations(facts);
    if !newest.is_empty() {
        let written = upsert_reservations(&transaction, &newest).await?;
        let gives_back = |(_, reservation): &(&str, &Reservation)| !reservation.status.keeps_seats();
        let released: Vec<_> = written.changed.into_iter().filter(gives_back).collect();
        if !released.is_empty() {
            release_places(&transaction, &released).await?;
        }
        if !written.new.is_empty() {
            claim_places(&transaction, &written.new).await?;
        }
    }
    let definitions = newest_definitions(facts);
    if !definitions.is_empty() {
        upsert_definitions(&transaction, &definitions).await?;
    }
    match end {
        End::Commit => transaction.commit().await,
        End::Rollback => transaction.rollback().await,
    }
}

/// Malformed values, broken guards, values too large for an index: the same facts will fail again, others not.
fn is_about_data(error: &Error) -> bool {
    ["22", "23", "54"].iter().any(|class| is_of_class(error, class))
}

/// "Integrity constraint violation".
fn breaks_guard(error: &Error) -> bool {
    is_of_class(error, "23")
}

fn is_of_class(error: &Error, class: &str) -> bool {
    error.code().is_some_and(|state| state.code().starts_with(class))
}

fn lost_a_race(error: &Error) -> bool {
    error.code().is_some_and(|state| {
        *state == SqlState::T_R_DEADLOCK_DETECTED || *state == SqlState::T_R_SERIALIZATION_FAILURE
    })
}
