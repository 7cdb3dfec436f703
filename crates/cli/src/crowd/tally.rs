//! What is counted: answers, latencies, waits, and all of it by the second.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;
use tokio::time::Instant;

use super::answers::Progress;

/// What can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Call {
    Join,
    Rejoin,
    Leave,
    Poll,
    Progress,
    Search,
    Seats,
    Select,
    Book,
    Read,
}

const CALLS: [Call; 10] = [
    Call::Join,
    Call::Rejoin,
    Call::Leave,
    Call::Poll,
    Call::Progress,
    Call::Search,
    Call::Seats,
    Call::Select,
    Call::Book,
    Call::Read,
];

/// How a visit ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum End {
    Booked,
    /// Left the line, or a session with places held: on purpose.
    Left,
    /// Was away when called.
    NoShow,
    /// Waited as long as patience lasts.
    OutOfPatience,
    /// What they wanted was not to be had.
    SoldOut,
    /// The session was over before the booking.
    Expired,
    /// The sale has closed.
    Closed,
    /// Refused for another reason, or failed too often.
    Refused,
    /// Still there when the crowd ended.
    Unfinished,
}

/// One second from the start.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Second {
    /// People who came.
    pub(crate) arrivals: u32,
    /// Answers that came.
    pub(crate) answers: u32,
    /// Of them, those to polls.
    pub(crate) polls: u32,
    /// Answers that are no success.
    pub(crate) failures: u32,
    /// People who learnt that they are in.
    pub(crate) admitted: u32,
    /// Places booked.
    pub(crate) sold: u32,
    /// As progress told it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) waiting: Option<u64>,
    /// People called so far less those who came back, as progress told it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) net: Option<u64>,
}

/// Longer than this is told as this long.
const LONGEST_LATENCY_US: u64 = 120_000_000;
const LONGEST_WAIT_MS: u64 = 7 * 86_400_000;
/// Later than a day all falls into the last second.
const SECONDS: usize = 86_399;

/// Everything counted so far.
#[derive(Clone)]
pub(crate) struct Counts {
    pub(crate) latencies_us: BTreeMap<Call, Histogram<u64>>,
    pub(crate) answers: BTreeMap<Call, BTreeMap<String, u64>>,
    /// From arrival to knowing that one is in.
    pub(crate) waits_ms: Histogram<u64>,
    /// The same of programs that ask too often.
    pub(crate) bot_waits_ms: Histogram<u64>,
    pub(crate) ends: BTreeMap<End, u64>,
    pub(crate) seconds: Vec<Second>,
    pub(crate) arrived: u64,
    pub(crate) admitted: u64,
    pub(crate) sold: u64,
    /// Progress that people read out of the cache.
    pub(crate) cached_progress: u64,
}

/// Counts shared by all people.
pub(crate) struct Tally {
    start: Instant,
    counts: Mutex<Counts>,
}

impl Tally {
    /// Of a crowd that started then.
    pub(crate) fn since(start: Instant) -> anyhow::Result<Self> {
        let latency = Histogram::new_with_bounds(1, LONGEST_LATENCY_US, 3)?;
        let wait = Histogram::new_with_bounds(1, LONGEST_WAIT_MS, 3)?;
        let counts = Counts {
            latencies_us: CALLS.iter().map(|call| (*call, latency.clone())).collect(),
            answers: BTreeMap::new(),
            waits_ms: wait.clone(),
            bot_waits_ms: wait,
            ends: BTreeMap::new(),
            seconds: Vec::new(),
            arrived: 0,
            admitted: 0,
            sold: 0,
            cached_progress: 0,
        };
        Ok(Self { start, counts: Mutex::new(counts) })
    }

    pub(crate) fn start(&self) -> Instant {
        self.start
    }

    /// A copy of all of it.
    pub(crate) fn counts(&self) -> Counts {
        self.lock().clone()
    }

    /// People there and gone: arrived, admitted, ended, places sold.
    pub(crate) fn summary(&self) -> (u64, u64, u64, u64) {
        let counts = self.lock();
        (counts.arrived, counts.admitted, counts.ends.values().sum(), counts.sold)
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        // What a panicked task counted is counted.
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn in_second(&self, change: impl FnOnce(&mut Counts, usize)) {
        let second =
            usize::try_from(self.start.elapsed().as_secs()).map_or(SECONDS, |second| second.min(SECONDS));
        let counts = &mut *self.lock();
        if counts.seconds.len() <= second {
            counts.seconds.resize_with(second + 1, Second::default);
        }
        change(counts, second);
    }

    pub(crate) fn answered(&self, call: Call, code: &str, due: Instant) {
        let latency_us = u64::try_from(due.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.in_second(|counts, second| {
            if let Some(latencies) = counts.latencies_us.get_mut(&call) {
                latencies.saturating_record(latency_us.max(1));
            }
            let codes = counts.answers.entry(call).or_default();
            match codes.get_mut(code) {
                Some(count) => *count += 1,
                None => _ = codes.insert(code.to_owned(), 1),
            }
            let second = &mut counts.seconds[second];
            second.answers += 1;
            second.polls += u32::from(call == Call::Poll);
            second.failures += u32::from(code != "OK");
        });
    }

    pub(crate) fn arrived(&self) {
        self.in_second(|counts, second| {
            counts.arrived += 1;
            counts.seconds[second].arrivals += 1;
        });
    }

    pub(crate) fn admitted(&self, waited: Duration, is_bot: bool) {
        let waited_ms = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX).max(1);
        self.in_second(|counts, second| {
            counts.admitted += 1;
            counts.seconds[second].admitted += 1;
            let waits = if is_bot { &mut counts.bot_waits_ms } else { &mut counts.waits_ms };
            waits.saturating_record(waited_ms);
        });
    }

    pub(crate) fn sold(&self, places: u32) {
        self.in_second(|counts, second| {
            counts.sold += u64::from(places);
            counts.seconds[second].sold += places;
        });
    }

    pub(crate) fn ended(&self, end: End) {
        *self.lock().ends.entry(end).or_default() += 1;
    }

    pub(crate) fn cached_progress(&self) {
        self.lock().cached_progress += 1;
    }

    /// How the line stands now.
    pub(crate) fn line(&self, progress: &Progress) {
        self.in_second(|counts, second| {
            let second = &mut counts.seconds[second];
            (second.waiting, second.net) = (Some(progress.total_waiting), Some(progress.net));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_fall_into_their_second_and_latency_begins_when_a_call_was_due() {
        let tally = Tally::since(Instant::now() - Duration::from_millis(1_500)).unwrap();
        tally.arrived();
        tally.answered(Call::Poll, "OK", tally.start());
        tally.answered(Call::Poll, "RATE_LIMIT", Instant::now());
        tally.admitted(Duration::from_secs(3), false);
        tally.sold(4);
        let counts = tally.counts();
        assert_eq!(counts.seconds.len(), 2);
        let (first, second) = (&counts.seconds[0], &counts.seconds[1]);
        assert_eq!((first.arrivals, first.answers, second.arrivals), (0, 0, 1));
        assert_eq!((second.answers, second.polls, second.failures), (2, 2, 1));
        assert_eq!((second.admitted, second.sold), (1, 4));
        let polls = &counts.latencies_us[&Call::Poll];
        assert!((1_500_000..2_000_000).contains(&polls.max()), "{}", polls.max());
        assert_eq!(counts.answers[&Call::Poll]["RATE_LIMIT"], 1);
        assert!(counts.waits_ms.max().abs_diff(3_000) < 5);
        assert_eq!(tally.summary(), (1, 1, 0, 4));
    }
}
