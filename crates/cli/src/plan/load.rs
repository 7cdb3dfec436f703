//! What people ask of the system at each moment, in the three ways to follow a place.

use super::arguments::Assumed;
use super::line::{Moment, Sale};

/// What the page does with a place (docs/page.md).
const PROGRESS_BEYOND: f64 = 10_000.0;
const PUSH_WITHIN: f64 = 1_000.0;
const REREAD_SECONDS: f64 = 600.0;
const PUSHED_POLL_SECONDS: f64 = 30.0;
const PUSHED_ACTIVE_POLL_SECONDS: f64 = 10.0;
/// Places that one look of push reads.
const PLACES_OF_A_LOOK: f64 = 50.0;

/// Calls and the like at one moment, a second.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Load {
    pub(super) polls: f64,
    pub(super) edge: f64,
    pub(super) sockets: f64,
    pub(super) messages: f64,
}

/// What those who wait and are inside ask for at a moment.
pub(super) type Follow = fn(&Moment) -> Load;

/// Polls a second of those who stand between two ranks, as `nextPollMs` says.
fn told(from: f64, to: f64) -> f64 {
    let mut upper = f64::INFINITY;
    let mut sum = 0.0;
    for (passed, interval_ms) in domain::line::INTERVALS {
        let passed = passed as f64;
        sum += (to.min(upper) - from.max(passed)).max(0.0) * 1_000.0 / f64::from(interval_ms);
        upper = passed;
    }
    sum
}

fn inside_polls(moment: &Moment, seconds: f64) -> f64 {
    moment.inside / seconds
}

/// Everybody asks as told.
pub(super) fn polling(moment: &Moment) -> Load {
    let active = inside_polls(moment, f64::from(domain::line::ACTIVE_POLL_MS) / 1_000.0);
    Load { polls: told(0.0, moment.waiting) + active, ..Load::default() }
}

/// Whoever stands far back reads the line's progress at the edge, and the place each ten minutes; the page's way
/// where there are no sockets.
pub(super) fn progress(moment: &Moment) -> Load {
    let far = (moment.waiting - PROGRESS_BEYOND).max(0.0);
    let very_far = (moment.waiting - 100_000.0).max(0.0);
    let active = inside_polls(moment, f64::from(domain::line::ACTIVE_POLL_MS) / 1_000.0);
    // The page reads the line's status each ten seconds near the front too.
    let near = moment.waiting.min(PROGRESS_BEYOND) + moment.inside;
    Load {
        polls: told(0.0, moment.waiting.min(PROGRESS_BEYOND)) + far / REREAD_SECONDS + active,
        edge: (far - very_far) / 5.0 + (very_far + near) / 10.0,
        ..Load::default()
    }
}

/// The same, with a socket for those near the front and inside: the page's way.
pub(super) fn push(moment: &Moment) -> Load {
    let near = moment.waiting.min(PUSH_WITHIN);
    let without = progress(moment);
    let saved = told(0.0, near) - near / PUSHED_POLL_SECONDS;
    let active = inside_polls(moment, f64::from(domain::line::ACTIVE_POLL_MS) / 1_000.0)
        - inside_polls(moment, PUSHED_ACTIVE_POLL_SECONDS);
    Load {
        polls: without.polls - saved - active,
        sockets: near + moment.inside,
        // A rank that stands is not told again; while people are let in it does not stand. And the hello of each.
        messages: if moment.entering > 0.0 { told(0.0, near) } else { 0.0 } + moment.entering * 4.0,
        ..without
    }
}

/// The most of everything, and all of it.
#[derive(Debug, Default)]
pub(super) struct Sums {
    pub(super) peak: Load,
    pub(super) sum: Load,
    /// Calls of API Gateway, a second at the peak and in all.
    pub(super) requests: f64,
    pub(super) calls: f64,
    /// Environments of all functions, of the busiest one, and those beyond Lambda's growth.
    pub(super) environments: f64,
    pub(super) busiest: f64,
    pub(super) must_be_warm: f64,
    /// The part of the time that Redis' core is busy.
    pub(super) redis_cpu: f64,
}

impl Sums {
    pub(super) fn of(follow: Follow, sale: &Sale, assumed: &Assumed) -> Self {
        let mut sums = Self::default();
        for moment in sale.moments() {
            sums.take(&moment, &follow(&moment), assumed);
        }
        sums
    }

    fn take(&mut self, moment: &Moment, load: &Load, assumed: &Assumed) {
        let (peak, sum) = (&mut self.peak, &mut self.sum);
        for (peak, sum, value) in [
            (&mut peak.polls, &mut sum.polls, load.polls),
            (&mut peak.edge, &mut sum.edge, load.edge),
            (&mut peak.sockets, &mut sum.sockets, load.sockets),
            (&mut peak.messages, &mut sum.messages, load.messages),
        ] {
            *peak = peak.max(value);
            *sum += value * moment.seconds;
        }
        let acting = moment.entering * assumed.actions;
        let requests = load.polls + moment.joins_per_second + acting;
        self.requests = self.requests.max(requests);
        self.calls += requests * moment.seconds;
        // join, poll, push and those that act are functions of their own, each with growth of its own.
        let each = [load.polls, moment.joins_per_second, acting, load.messages];
        let each = each.map(|rate| rate / assumed.per_environment);
        let most = each.into_iter().fold(0.0, f64::max);
        self.environments = self.environments.max(each.iter().sum());
        self.busiest = self.busiest.max(most);
        let grown = assumed.burst * ((moment.at_seconds / 10.0).floor() + 1.0);
        self.must_be_warm = self.must_be_warm.max(most - grown);
        let exact = load.polls * assumed.exact.0 + load.messages / PLACES_OF_A_LOOK;
        // The claim of a session is one call more.
        let calls = exact + moment.joins_per_second + acting + moment.entering;
        self.redis_cpu = self.redis_cpu.max(calls * assumed.redis_us / 1e6);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(value: f64, expected: f64) -> bool {
        (value - expected).abs() <= expected.abs() * 0.02 + 0.01
    }

    #[test]
    fn polls_follow_the_intervals_of_the_ranks() {
        assert!(near(told(0.0, 100.0), 100.0));
        assert!(near(told(0.0, 1_000.0), 100.0 + 450.0));
        assert!(near(told(0.0, 10_000.0), 550.0 + 3_000.0));
        assert!(near(told(0.0, 200_000.0), 3_550.0 + 18_000.0 + 10_000.0));
        assert!(near(told(10_000.0, 20_000.0), 2_000.0));
    }
}
