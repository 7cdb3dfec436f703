//! Readings of a sale, one after the other, and what lies between them.

use std::collections::VecDeque;

use admin::EventDetail;

use super::metrics::Metrics;

/// Readings that are kept: two minutes of seconds.
const READINGS: usize = 120;

/// How a sale stood at a moment.
#[derive(Debug, Clone)]
pub(crate) struct Reading {
    pub(crate) detail: Box<EventDetail>,
    /// Where the system tells them.
    pub(crate) metrics: Option<Metrics>,
}

impl Reading {
    /// Places that are held or sold.
    pub(crate) fn taken(&self) -> u64 {
        let summary = &self.detail.summary;
        summary.capacity.saturating_sub(summary.remaining)
    }

    fn counter(&self, name: &str) -> Option<f64> {
        self.metrics.as_ref()?.value(name)
    }
}

/// The last readings, oldest first.
#[derive(Debug, Default)]
pub(crate) struct History(VecDeque<Reading>);

impl History {
    pub(crate) fn push(&mut self, reading: Reading) {
        if self.0.len() == READINGS {
            self.0.pop_front();
        }
        self.0.push_back(reading);
    }

    pub(crate) fn last(&self) -> Option<&Reading> {
        self.0.back()
    }

    /// A value of each reading.
    pub(crate) fn curve(&self, value: impl Fn(&Reading) -> u64) -> Vec<u64> {
        self.0.iter().map(value).collect()
    }

    /// By how much a counter rose a second between the last two readings; none where it is not told, or began anew.
    pub(crate) fn rate(&self, name: &str) -> Option<f64> {
        self.risen(|reading| reading.counter(name))
    }

    /// The same of what a reading itself tells.
    pub(crate) fn risen(&self, value: impl Fn(&Reading) -> Option<f64>) -> Option<f64> {
        let [before, now] = [self.0.len().checked_sub(2)?, self.0.len() - 1].map(|at| self.0.get(at));
        let (before, now) = (before?, now?);
        let seconds = (now.detail.summary.now.0 - before.detail.summary.now.0) as f64 / 1_000.0;
        let risen = value(now)? - value(before)?;
        (seconds > 0.0 && risen >= 0.0).then_some(risen / seconds)
    }

    /// How many more places are taken with each reading.
    pub(crate) fn taking(&self) -> Vec<u64> {
        let taken = self.curve(Reading::taken);
        taken.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect()
    }
}
