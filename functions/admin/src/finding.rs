//! What an audit found wrong.

use std::collections::HashSet;

use domain::Token;
use domain::shuffle::{hex, token_digest};
use serde::{Deserialize, Serialize};

/// The most findings of one report; the rest are only counted.
pub const MAX_FINDINGS: usize = 1_000;
/// The most findings that are kept while one looks for those that last.
const MAX_SUSPECTS: usize = 10_000;

/// A kind of wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// A counter is below zero.
    NegativeCounter,
    /// A section has no counter, or a counter no section.
    CounterWithoutSection,
    /// What is free in the event is not the sum over its sections.
    RemainingDiffersFromStock,
    /// What is free in a section is not its capacity less what is held and sold.
    StockDiffers,
    /// More is held and sold than a section has.
    Oversold,
    /// The seat map is not that of the layout.
    MapDiffersFromLayout,
    /// A seat is shown as held and no hold names it, or the other way round.
    MapDiffersFromHolds,
    /// A seat is shown as sold and no reservation has it, or the other way round.
    MapDiffersFromReservations,
    /// `holds` and `due` do not name the same units.
    HoldsDifferFromDue,
    /// A hold does not read.
    UnreadableHold,
    /// One seat in two reservations.
    SeatSoldTwice,
    /// A reservation has a place that is not on sale.
    UnknownPlace,
    /// An account or token has more than it may.
    OverLimit,
    /// What an account has bought is not what its reservations have.
    TicketsDiffer,
    /// A reservation is not the one that its token makes.
    ForeignReservation,
    /// A token is called or in a session and stands in the line.
    TwiceInLine,
    /// More sessions at once than allowed.
    TooManyActive,
    /// Somebody has a slot and is neither called nor in a session.
    IdleSlot,
    /// A session has held places that no hold backs, or a hold no session.
    HoldsDifferFromSessions,
    /// A token that has bought stands in the line, is called or has a slot.
    BookedInLine,
    /// A token's done key does not name its reservation.
    DoneDiffers,
    /// A payment is waited for that nobody owes, or not waited for that is owed.
    PaymentDueDiffers,
    /// Somebody waits behind the last number that was given out.
    SequenceBehindLine,
    /// Facts are of a later epoch than the sale.
    EpochBehind,
    /// People were called faster than the pace.
    AdmittedTooFast,
    /// People were called before the opening.
    AdmittedTooEarly,
    /// Somebody was called after people who stood behind.
    AdmittedOutOfTurn,
    /// Somebody was called more often than once and one re-entry.
    AdmittedTooOften,
    /// A journal entry is no fact.
    UnreadableFact,
    /// A reservation that PostgreSQL does not have.
    MissingRow,
    /// A reservation that is another one in PostgreSQL.
    DifferentRow,
    /// A row of PostgreSQL for a reservation that Redis does not know.
    UnknownRow,
    /// PostgreSQL has another definition.
    DifferentDefinition,
    /// A drawn place does not stand where the seed puts it.
    DifferentScore,
    /// A place was drawn after the opening, or not drawn before it.
    DrawnAtTheWrongTime,
}

/// What `--repair` does by a step that tells the counts anew.
const RECOUNT: &str = "jari audit --repair (recount)";
/// What it does by a step that puts a reservation back.
const RESTORE: &str = "jari audit --repair (restore)";
const HISTORY: &str = "nothing can: it has happened; the facts say when";

impl Fault {
    /// What would mend it: a command, or who must decide.
    pub fn mend(self) -> &'static str {
        match self {
            Self::NegativeCounter
            | Self::CounterWithoutSection
            | Self::RemainingDiffersFromStock
            | Self::StockDiffers
            | Self::MapDiffersFromLayout
            | Self::MapDiffersFromHolds
            | Self::MapDiffersFromReservations
            | Self::HoldsDifferFromDue
            | Self::UnreadableHold
            | Self::TicketsDiffer => RECOUNT,
            Self::UnknownRow | Self::BookedInLine | Self::DoneDiffers | Self::PaymentDueDiffers => RESTORE,
            Self::HoldsDifferFromSessions => "jari audit --repair (evict)",
            Self::MissingRow => "jari audit --repair (refile)",
            Self::DifferentRow => "jari audit --repair, where one side has a higher version",
            Self::Oversold => "people: cancel, or add places by jari event apply",
            Self::SeatSoldTwice => "people: cancel one of the two",
            Self::UnknownPlace => "people: jari event apply what has the place",
            Self::OverLimit => "people: cancel what is too much",
            Self::ForeignReservation => "people: cancel it; nobody could have made it",
            Self::TwiceInLine => "its next call or its leaving",
            Self::TooManyActive | Self::IdleSlot => "time: slots end with their visits",
            Self::SequenceBehindLine => "people: pause, and set queue:seq to what is expected",
            Self::EpochBehind => "people: pause, and set the epoch of meta above the facts'",
            Self::UnreadableFact => "people: read it by XRANGE, then XDEL it",
            Self::DifferentDefinition => "jari event apply the definition once more",
            Self::DifferentScore | Self::DrawnAtTheWrongTime => "people: the draw is in doubt",
            Self::AdmittedTooFast
            | Self::AdmittedTooEarly
            | Self::AdmittedOutOfTurn
            | Self::AdmittedTooOften => HISTORY,
        }
    }
}

/// One thing that must never happen and has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What is wrong.
    pub what: Fault,
    /// Where: a section, a seat, a reservation, a fact, a token's digest.
    #[serde(rename = "where")]
    pub place: String,
    /// What should be.
    pub expected: String,
    /// What is.
    pub found: String,
    /// What would mend it: a command, with the step it takes, or who must decide.
    pub mend: String,
}

/// Findings while they are gathered.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    found: Vec<Finding>,
    more: u64,
}

impl Findings {
    #[allow(clippy::needless_pass_by_value, reason = "numbers and texts alike, as they come")]
    pub(crate) fn add(
        &mut self,
        what: Fault,
        place: impl Into<String>,
        expected: impl ToString,
        found: impl ToString,
    ) {
        if self.found.len() < MAX_SUSPECTS {
            let (expected, found) = (expected.to_string(), found.to_string());
            let mend = what.mend().to_owned();
            self.found.push(Finding { what, place: place.into(), expected, found, mend });
        } else {
            self.more += 1;
        }
    }

    pub(crate) fn append(&mut self, other: Self) {
        for finding in other.found {
            self.add(finding.what, finding.place, finding.expected, finding.found);
        }
        self.more += other.more;
    }

    /// Whether this was found there.
    pub(crate) fn has(&self, what: Fault, place: &str) -> bool {
        self.found.iter().any(|finding| finding.what == what && finding.place == place)
    }

    /// Where these kinds were found.
    pub(crate) fn places_of<'a>(&'a self, kinds: &'a [Fault]) -> impl Iterator<Item = &'a str> {
        self.found
            .iter()
            .filter(|finding| kinds.contains(&finding.what))
            .map(|finding| finding.place.as_str())
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        self.found.len() as u64 + self.more
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// What was also found before: what a running sale was in the middle of is gone by now.
    pub(crate) fn lasting(self, before: &Self) -> Self {
        let known: HashSet<(Fault, &str)> =
            before.found.iter().map(|finding| (finding.what, finding.place.as_str())).collect();
        let lasts = |finding: &Finding| known.contains(&(finding.what, finding.place.as_str()));
        Self { found: self.found.into_iter().filter(lasts).collect(), more: self.more.min(before.more) }
    }

    /// The first ones, and how many more there are.
    pub(crate) fn report(mut self) -> (Vec<Finding>, u64) {
        let more = self.more + self.found.len().saturating_sub(MAX_FINDINGS) as u64;
        self.found.truncate(MAX_FINDINGS);
        (self.found, more)
    }

    #[cfg(test)]
    pub(crate) fn kinds(&self) -> Vec<Fault> {
        let mut kinds: Vec<Fault> = self.found.iter().map(|finding| finding.what).collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }
}

/// How a finding names a token, which is a secret: by its published digest.
pub(crate) fn digest(token: Token) -> String {
    hex(&token_digest(token))
}
