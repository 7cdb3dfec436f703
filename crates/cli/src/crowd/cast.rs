//! Who comes, when, and what they are like: the same for the same seed.

use std::time::Duration;

use fastrand::Rng;

use super::arguments::{CrowdArguments, Curve, Share, Span};

/// One of the crowd.
#[derive(Debug, Clone)]
pub(crate) struct Person {
    /// Their number, from 0, in order of arrival.
    pub(crate) number: u32,
    /// When they come, from the start.
    pub(crate) arrives: Duration,
    /// How many places they want.
    pub(crate) seats: u32,
    pub(crate) patience: Duration,
    /// On average.
    pub(crate) think: Duration,
    pub(crate) manner: Manner,
    pub(crate) wish: Wish,
    pub(crate) reloads: bool,
    pub(crate) has_second_tab: bool,
    /// Asks five times a second, whatever it is told.
    pub(crate) is_bot: bool,
    pub(crate) random: Rng,
}

/// Whether they go through with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    Buys,
    /// Leaves the line after a while.
    LeavesLine,
    /// Holds places, and is seen no more.
    LeavesHeld,
    /// Away when called.
    NoShow {
        comes_back: bool,
    },
}

/// How they choose places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Side by side, the system choosing.
    Best,
    /// By their names on the map.
    Named,
    /// Any so many.
    Count,
    /// Without looking: a booking of the default section.
    Plain,
}

/// All who come.
pub(crate) struct Cast<'a>(pub(crate) &'a CrowdArguments);

impl Cast<'_> {
    /// One of them; they arrive in order of their numbers.
    pub(crate) fn person(&self, number: u32) -> Person {
        let Self(arguments) = self;
        let mut random =
            Rng::with_seed(arguments.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ u64::from(number));
        let part = (f64::from(number) + random.f64()) / f64::from(arguments.users);
        let faster = |Span(span): Span| span.div_f64(arguments.speed);
        let counts = arguments.seats;
        let mut is = |Share(share): Share| random.f64() < share;
        let manner = if is(arguments.abandon) {
            if is(Share(0.5)) { Manner::LeavesLine } else { Manner::LeavesHeld }
        } else if is(arguments.no_shows) {
            Manner::NoShow { comes_back: is(Share(0.5)) }
        } else {
            Manner::Buys
        };
        let (reloads, has_second_tab, is_bot) =
            (is(arguments.reloads), is(arguments.tabs), is(arguments.bots));
        let is_plain = is(arguments.plain);
        let wish = match random.u32(0..10) {
            _ if is_plain => Wish::Plain,
            0..5 => Wish::Best,
            5..8 => Wish::Named,
            _ => Wish::Count,
        };
        Person {
            number,
            arrives: faster(arguments.arrive).mul_f64(quantile(arguments.curve, part)),
            seats: random.u32(counts.least..=counts.most),
            patience: faster(arguments.patience).mul_f64(0.5 + random.f64()),
            think: faster(arguments.think),
            manner,
            wish,
            reloads,
            has_second_tab,
            is_bot,
            random,
        }
    }
}

/// When that part of all has come, as a part of the time.
fn quantile(curve: Curve, part: f64) -> f64 {
    // Half by 0.1: 1 − e^(−kt), cut at its end.
    const RUSH: f64 = 6.91;
    match curve {
        Curve::Even => part,
        Curve::Rush => -(1.0 - part * (1.0 - (-RUSH).exp())).ln() / RUSH,
        // The smooth step's inverse.
        Curve::Bell => 0.5 - ((1.0 - 2.0 * part).asin() / 3.0).sin(),
    }
}

impl Person {
    /// How long they think now: between half and one and a half of what they do on average.
    pub(crate) fn think(&mut self) -> Duration {
        self.think.mul_f64(0.5 + self.random.f64())
    }

    /// A name for one action, the same however often it is sent.
    pub(crate) fn idempotency_key(&mut self) -> String {
        format!("{:032x}", self.random.u128(..))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        crowd: CrowdArguments,
    }

    fn arguments(line: &str) -> CrowdArguments {
        Line::parse_from(std::iter::once("x").chain(line.split_whitespace())).crowd
    }

    #[test]
    fn people_arrive_in_order_and_as_the_curve_says() {
        for (curve, early) in [("even", 0.1), ("rush", 0.5), ("bell", 0.028)] {
            let arguments = arguments(&format!("--users 2000 --arrive 100s --curve {curve}"));
            let arrivals: Vec<_> = (0..2_000).map(|number| Cast(&arguments).person(number).arrives).collect();
            assert!(arrivals.is_sorted(), "{curve}");
            assert!(arrivals[1_999] <= Duration::from_secs(100), "{curve}");
            let first_tenth = arrivals.iter().filter(|at| at.as_secs() < 10).count() as f64 / 2_000.0;
            assert!((first_tenth - early).abs() < 0.01, "{curve}: {first_tenth}");
        }
    }

    #[test]
    fn shares_are_kept_and_the_same_seed_gives_the_same_people() {
        let told = arguments("--users 10000 --abandon 20% --bots 5% --seats 2-3 --speed 10");
        let people: Vec<_> = (0..10_000).map(|number| Cast(&told).person(number)).collect();
        let share = |is: &dyn Fn(&Person) -> bool| {
            people.iter().filter(|person| is(person)).count() as f64 / 10_000.0
        };
        for (share, expected) in [
            (share(&|person| matches!(person.manner, Manner::LeavesLine)), 0.10),
            (share(&|person| matches!(person.manner, Manner::LeavesHeld)), 0.10),
            (share(&|person| matches!(person.manner, Manner::NoShow { .. })), 0.024),
            (share(&|person| person.is_bot), 0.05),
            (share(&|person| person.seats == 2), 0.5),
        ] {
            assert!((share - expected).abs() < 0.015, "{share} instead of {expected}");
        }
        assert!(people.iter().all(|person| person.think == Duration::from_millis(500)));
        let again = Cast(&told).person(77);
        assert_eq!((again.arrives, again.manner), (people[77].arrives, people[77].manner));
        let other = Cast(&arguments("--users 10000 --seed 2")).person(77);
        assert_ne!(other.random, people[77].random);
    }
}
