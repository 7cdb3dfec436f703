//! Whom the ticks called: in turn, no more often than once and one re-entry, no faster than the pace.

use std::collections::HashMap;

use domain::fact::{Fact, What};
use domain::{Millis, Token};

use super::{History, Position, position};
use crate::finding::{Fault, Findings, digest};

/// Credit banks one second and one missed tick at most.
const BANK_SECONDS: f64 = 2.0;
/// Ticks keep their credit to a thousandth of a person, and round each time.
const ROUNDING: f64 = 0.5;

/// The order of calls: whoever has not been called yet stands behind all who have. Each epoch begins anew: a loss of
/// Redis may have forgotten calls, which then come again, and brings places back by their keys.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    epoch: u64,
    head: u64,
    called: HashMap<Token, Called>,
    /// Calls in all.
    pub(crate) admitted: u64,
    pub(crate) findings: Findings,
}

#[derive(Debug, Clone, Copy)]
struct Called {
    score: u64,
    times: u8,
}

impl Turns {
    /// A call of people; facts come in the journal's order.
    pub(crate) fn called(&mut self, fact: &Fact) {
        let What::UserAdmitted { places } = &fact.what else { return };
        if fact.epoch != self.epoch {
            self.epoch = fact.epoch;
            self.head = 0;
            self.called.clear();
        }
        for place in places {
            self.admitted += 1;
            let first = Called { score: place.score, times: 0 };
            let called = self.called.entry(place.token).or_insert(first);
            if called.score != place.score {
                // After an expiry the same token has taken a new place.
                *called = first;
            }
            called.times = called.times.saturating_add(1);
            let at = || format!("{} in fact {}/{}", digest(place.token), fact.epoch, fact.id);
            if called.times == 1 && place.score < self.head {
                let expected = format!("a score of {} or more", self.head);
                self.findings.add(Fault::AdmittedOutOfTurn, at(), expected, place.score);
            } else if called.times > 2 {
                self.findings.add(Fault::AdmittedTooOften, at(), "2 calls at most", called.times);
            }
            self.head = self.head.max(place.score);
        }
    }
}

/// The pace: what may be called at most by now, counted as the ticks count it.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    credit: f64,
    last: Option<(Position, Millis)>,
    pub(crate) findings: Findings,
}

impl Pace {
    /// A call of people; facts come in the journal's order.
    pub(crate) fn called(&mut self, fact: &Fact, history: &History) {
        let What::UserAdmitted { places } = &fact.what else { return };
        let here = position(fact);
        let (mut rate, mut opens_at) = (0.0_f64, fact.at);
        // A tick counts the time since the one before it by the rules it finds: the quickest ones count here.
        for rules in history.between(self.last.map(|(position, _)| position), here) {
            rate = rate.max(rules.calls_per_second);
            opens_at = rules.opens_at;
        }
        let place = format!("fact {}/{}", fact.epoch, fact.id);
        if fact.at < opens_at {
            self.findings.add(Fault::AdmittedTooEarly, &place, format!("{opens_at} or later"), fact.at);
        }
        // A part of a person is kept on top.
        let bank = rate * BANK_SECONDS + 1.0;
        let elapsed_ms = self.last.map(|(_, at)| (fact.at.0 - at.0).max(0));
        self.credit = elapsed_ms.map_or(bank, |ms| (self.credit + rate * ms as f64 / 1_000.0).min(bank));
        let people = places.len();
        if people as f64 > self.credit + ROUNDING {
            let expected = format!("at most {:.0} people", self.credit.floor());
            self.findings.add(Fault::AdmittedTooFast, place, expected, people);
        }
        self.credit = (self.credit - people as f64).max(0.0);
        self.last = Some((here, fact.at));
    }
}
