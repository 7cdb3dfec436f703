//! Looks for what must never happen, in Redis and in PostgreSQL, as far as it can be seen at rest.
//!
//! A running sale moves while it is read, and facts are on their way: what is found is looked for again, until it
//! has vanished or patience is over. Only what was found each time is reported.

mod besides;
mod history;
mod journal;
mod line;
mod mend;
mod places;
mod recount;
mod rows;
#[cfg(test)]
mod tests;

use std::time::Duration;

use domain::fact::Fact;
use domain::{EventId, ReservationId};
use records::Records;
use serde::{Deserialize, Serialize};
use store::{EventState, Snapshot, Store};
use tokio::time::{Instant, sleep};

pub(crate) use self::history::{History, Position, position};
pub(crate) use self::journal::Pending;
pub(crate) use self::line::Turns;
pub use self::mend::Mended;

use self::line::Pace;
use crate::finding::{Fault, Finding, Findings};
use crate::reply::{Refused, Reply};
use crate::{AdminError, AdminState};

/// Between two readings.
const INTERVAL: Duration = Duration::from_millis(500);
/// The longest that an audit waits for differences to vanish.
const MAX_PATIENCE_SECONDS: u32 = 300;
/// Findings are read twice at least, however little patience there is.
const LEAST_READINGS: u32 = 2;

/// What an audit came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditReport {
    /// The event.
    pub event: EventId,
    /// What is wrong; empty where nothing is.
    pub findings: Vec<Finding>,
    /// How many more findings there are.
    pub more: u64,
    /// What was put right before; none where nothing was to be, or nobody asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mended: Option<Mended>,
    /// What could not be checked, and why.
    pub left_out: Vec<String>,
    /// What was looked at.
    pub checked: Checked,
}

/// How much was looked at, in the last reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Checked {
    /// How often everything was read.
    pub readings: u32,
    /// Places on sale.
    pub places: u64,
    /// Held units.
    pub holds: u64,
    /// Reservations in Redis.
    pub reservations: u64,
    /// Reservations in PostgreSQL.
    pub rows: u64,
    /// Facts still in the journal.
    pub journal: u64,
    /// People who were called.
    pub admitted: u64,
}

/// How an audit is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    /// How long to read again until differences have vanished.
    pub(crate) patience_seconds: u32,
    /// Who mends what has one right answer; nobody where none does.
    pub(crate) repair_by: Option<&'a str>,
}

pub(crate) async fn audit(
    state: &AdminState,
    event: &EventId,
    asked: Asked<'_>,
) -> Result<Reply, AdminError> {
    let Asked { patience_seconds, repair_by } = asked;
    if patience_seconds > MAX_PATIENCE_SECONDS {
        let reason = format!("must be at most {MAX_PATIENCE_SECONDS}");
        return Ok(Reply::Refused(Refused::value("patienceSeconds", reason)));
    }
    let patience = Duration::from_secs(patience_seconds.into());
    let Some((mut findings, mut reading)) = lasting(state, event, patience).await? else {
        return Ok(Reply::Refused(Refused::EventNotFound { event: event.clone() }));
    };
    let mut mended = None;
    if let Some(by) = repair_by.filter(|_| !findings.is_empty()) {
        mended = Some(mend::mend(state, event, by, &findings, &reading).await?);
        if let Some(again) = lasting(state, event, patience).await? {
            (findings, reading) = again;
        }
    }
    let (findings, more) = findings.report();
    let Reading { left_out, checked, .. } = reading;
    Ok(Reply::Audited(AuditReport { event: event.clone(), findings, more, mended, left_out, checked }))
}

/// What is found each time until patience is over, and the last reading; `None` for an unknown event.
async fn lasting(
    state: &AdminState,
    event: &EventId,
    patience: Duration,
) -> Result<Option<(Findings, Reading)>, AdminError> {
    let deadline = Instant::now() + patience;
    let mut suspected: Option<Findings> = None;
    for readings in 1.. {
        let Some(mut reading) = Reading::of(state.store(), state.records()?, event).await? else { break };
        reading.checked.readings = readings;
        let found = std::mem::take(&mut reading.findings);
        let findings = match &suspected {
            Some(before) => found.lasting(before),
            None => found,
        };
        if findings.is_empty() || (readings >= LEAST_READINGS && Instant::now() >= deadline) {
            return Ok(Some((findings, reading)));
        }
        suspected = Some(findings);
        sleep(INTERVAL).await;
    }
    Ok(None)
}

/// Everything, read once.
struct Reading {
    findings: Findings,
    /// Reservations whose facts are lost on their way to PostgreSQL.
    behind: Vec<(ReservationId, u32)>,
    left_out: Vec<String>,
    checked: Checked,
}

impl Reading {
    /// Redis first, then the journal, then PostgreSQL: what moves from one to the next meanwhile is seen in the
    /// next. `None` for an unknown event.
    async fn of(store: &Store, records: &Records, event: &EventId) -> Result<Option<Self>, AdminError> {
        let Ok(snapshot) = store.snapshot(event).await? else { return Ok(None) };
        let Ok(state) = store.event_state(event).await? else { return Ok(None) };
        let pending = Pending::read(store, event).await?;
        let history = History::read(records, event, &pending, &state.edition).await?;
        let mut reading = Self {
            findings: Findings::default(),
            behind: Vec::new(),
            left_out: Vec::new(),
            checked: Checked::default(),
        };
        let now = state.view.now;
        let (compared, rows) = rows::compare(records, event, &snapshot, &pending, &history, now).await?;
        reading.checked.rows = rows;
        reading.findings.append(compared.findings);
        reading.behind = compared.behind;
        reading.line(records, event, &pending, &history).await?;
        let recorded_epoch = records.newest_fact(event).await?.map_or(0, |(epoch, _)| epoch);
        reading.state(&state, &snapshot, &history, pending.epoch.max(recorded_epoch));
        reading.findings.append(pending.findings(event));
        reading.findings.append(places::counters(&snapshot));
        if snapshot.still {
            reading.findings.append(places::owners(&snapshot, &compared.forgotten));
        } else {
            reading.left_out.push("holds and reservations against places: the sale kept moving".to_owned());
        }
        reading.findings.append(places::limits(&snapshot, &history, now));
        reading.findings.append(places::accounts(&snapshot, now));
        let besides = store.besides(event, &snapshot).await?;
        reading.findings.append(besides::besides(&snapshot, &besides, now));
        reading.checked.places = snapshot.edition.layout.capacity();
        reading.checked.holds = snapshot.holds.len() as u64;
        reading.checked.reservations = snapshot.reservations.len() as u64;
        reading.checked.journal = pending.count;
        Ok(Some(reading))
    }

    /// Whom the ticks called, in which order and how fast.
    async fn line(
        &mut self,
        records: &Records,
        event: &EventId,
        pending: &Pending,
        history: &History,
    ) -> Result<(), AdminError> {
        let (mut turns, mut pace) = (Turns::default(), Pace::default());
        each_admission(records, event, pending, |fact| {
            turns.called(fact);
            pace.called(fact, history);
        })
        .await?;
        self.checked.admitted = turns.admitted;
        self.findings.append(turns.findings);
        if history.is_complete {
            self.findings.append(pace.findings);
        } else {
            self.left_out.push("the pace: a definition is still on its way to PostgreSQL".to_owned());
        }
        Ok(())
    }

    /// `epoch` is the highest of all facts.
    fn state(&mut self, state: &EventState, snapshot: &Snapshot, history: &History, epoch: u64) {
        let event = &state.edition.sale.event_id;
        for token in &snapshot.twice_in_line {
            let place = crate::finding::digest(*token);
            self.findings.add(Fault::TwiceInLine, place, "called or waiting", "called and waiting");
        }
        let most = history.most(|rules| rules.max_active);
        if state.active > u64::from(most) {
            let expected = format!("at most {most}");
            self.findings.add(Fault::TooManyActive, event.as_str(), expected, state.active);
        }
        if epoch > state.view.epoch {
            self.findings.add(
                Fault::EpochBehind,
                event.as_str(),
                format!("{epoch} or more"),
                state.view.epoch,
            );
        }
        if !history.is_complete {
            let expected = format!("version {}", state.edition.version);
            let found = format!("version {}", history.version);
            self.findings.add(Fault::DifferentDefinition, event.as_str(), expected, found);
        }
    }
}

/// Every call of people, in the journal's order: what PostgreSQL has, and between it what it has not yet.
pub(crate) async fn each_admission(
    records: &Records,
    event: &EventId,
    pending: &Pending,
    mut each: impl FnMut(&Fact),
) -> Result<(), AdminError> {
    let mut waiting = pending.admissions.iter().peekable();
    let recorded = |fact: Fact| {
        let at = position(&fact);
        while let Some((_, earlier)) = waiting.next_if(|(pending, _)| **pending < at) {
            each(earlier);
        }
        // The journal's copy of what PostgreSQL has.
        waiting.next_if(|(pending, _)| **pending == at);
        each(&fact);
    };
    records.each_fact(event, "USER_ADMITTED", recorded).await?;
    waiting.for_each(|(_, fact)| each(fact));
    Ok(())
}
