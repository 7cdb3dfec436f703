//! Holds answers against what must never happen, as far as answers alone can tell.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;

use super::answers::{Booked, Progress, Reservation};

/// So many are told; all are counted.
const TOLD: usize = 20;
/// Answers to waiting people may be told from a view of the line as old as this at least, clocks apart included.
const VIEW_AGE: Duration = Duration::from_millis(1_500);
/// Beyond it: a tick's worth and one that was missed are banked, and one tick may be under way.
const BANKED_SECONDS: f64 = 3.0;

/// A rule, how often it was held against something, and how often it was broken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Check {
    pub(crate) rule: &'static str,
    /// What was looked at.
    pub(crate) looked_at: u64,
    pub(crate) broken: u64,
}

/// What is held against answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    OneOwnerASeat,
    OneReservationAToken,
    Order,
    SamePlace,
    NeverBack,
    Kept,
    Limit,
    Pace,
    NoBug,
    Recorded,
}

const RULES: [(Rule, &str); 10] = [
    (Rule::OneOwnerASeat, "no seat is sold twice"),
    (Rule::OneReservationAToken, "a token has one reservation"),
    (Rule::Order, "nobody is let in before somebody who stands ahead"),
    (Rule::SamePlace, "reloads and further tabs keep the place"),
    (Rule::NeverBack, "no rank gets worse"),
    (Rule::Kept, "a reservation reads as it was answered"),
    (Rule::Limit, "nobody buys more than the limit"),
    (Rule::Pace, "no more are called than the pace allows"),
    (Rule::NoBug, "no answer is INTERNAL_ERROR or out of the envelope"),
    (Rule::Recorded, "each answered reservation is in PostgreSQL"),
];

#[derive(Default)]
struct Seen {
    checks: [(u64, u64); RULES.len()],
    told: Vec<String>,
    /// Who owns which seat of which offering.
    owners: HashMap<(String, String), String>,
    reservations: HashMap<String, Reservation>,
    /// Since when somebody with that score is known to be in; both rise.
    heads: Vec<(Instant, u64)>,
    /// People who were called, did not come, and stand at their old place again.
    returned: u64,
    /// Of the line's progress: the server's clock and net.
    nets: Vec<(i64, u64)>,
}

impl Seen {
    fn check(&mut self, rule: Rule, holds: bool, told: impl FnOnce() -> String) {
        let Some(at) = RULES.iter().position(|(other, _)| *other == rule) else { return };
        self.checks[at].0 += 1;
        if !holds {
            self.checks[at].1 += 1;
            if self.told.len() < TOLD {
                self.told.push(format!("{}: {}", RULES[at].1, told()));
            }
        }
    }
}

/// What all people saw.
#[derive(Default)]
pub(crate) struct Witness(Mutex<Seen>);

impl Witness {
    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody who stood at `score` was told then that they are in.
    pub(crate) fn is_in(&self, score: u64, told_at: Instant) {
        let seen = &mut *self.lock();
        if seen.heads.last().is_none_or(|(last, head)| *head < score && *last <= told_at) {
            seen.heads.push((told_at, score));
        }
    }

    /// Somebody who stands at `score` asked at `sent`, and was told to wait on for `interval`.
    pub(crate) fn waits(&self, score: u64, sent: Instant, interval: Duration) {
        let seen = &mut *self.lock();
        // Far back the view may be half of an interval old.
        let Some(as_of) = sent.checked_sub(VIEW_AGE.max(interval)) else { return };
        let known = seen.heads.partition_point(|(since, _)| *since <= as_of);
        let head = known.checked_sub(1).map_or(0, |at| seen.heads[at].1);
        seen.check(Rule::Order, head <= score, || {
            format!("{head} was let in {:?} before {score} was told to wait", sent - as_of)
        });
    }

    /// A waiting place's rank, after the one read before.
    pub(crate) fn rank(&self, before: u64, now: u64) {
        let seen = &mut *self.lock();
        // Whoever comes back to the front stands before everybody.
        let returned = seen.returned;
        seen.check(Rule::NeverBack, now <= before + returned, || {
            format!("from {before} to {now}, {returned} having come back to the front")
        });
    }

    /// Somebody who was called and did not come stands at their old place again.
    pub(crate) fn returned(&self) {
        self.lock().returned += 1;
    }

    /// A place came back under the token `before`.
    pub(crate) fn same_place(&self, before: (&str, Option<u64>), now: (&str, Option<u64>)) {
        let holds = before.0 == now.0 && (before.1 == now.1 || before.1.is_none() || now.1.is_none());
        self.lock().check(Rule::SamePlace, holds, || {
            format!("number {:?} came back as {:?}, the token {}", before.1, now.1, same(before.0 == now.0))
        });
    }

    /// A booking was answered; told again, it is the same one.
    pub(crate) fn booked(&self, token: &str, told: &Booked, read: &Reservation) {
        let seen = &mut *self.lock();
        let is_kept = told.reservation_id == read.reservation_id
            && (told.seat_count, told.amount) == (read.seat_count, read.amount)
            && sorted(&told.seats) == sorted(&read.seats)
            && read.places.iter().map(|places| places.count).sum::<u32>() == read.seat_count;
        seen.check(Rule::Kept, is_kept, || format!("{told:?} reads as {read:?}"));
        let mine = seen.reservations.insert(read.reservation_id.clone(), read.clone());
        seen.check(Rule::OneReservationAToken, mine.is_none(), || {
            format!("{} was told to two tokens", read.reservation_id)
        });
        for places in &read.places {
            for seat in &places.seats {
                let before = seen.owners.insert((places.offering_id.clone(), seat.clone()), token.to_owned());
                let holds = before.as_deref().is_none_or(|before| before == token);
                seen.check(Rule::OneOwnerASeat, holds, || format!("{}/{seat}", places.offering_id));
            }
        }
    }

    pub(crate) fn line(&self, progress: &Progress) {
        self.lock().nets.push((progress.updated_at, progress.net));
    }

    /// All of these answers, of which `bugs` are none that a client can be asked to bear.
    pub(crate) fn answers(&self, all: u64, bugs: u64) {
        let seen = &mut *self.lock();
        seen.check(Rule::NoBug, bugs == 0, || format!("{bugs} of {all} answers"));
        if let Some(at) = RULES.iter().position(|(rule, _)| *rule == Rule::NoBug) {
            seen.checks[at].0 = all;
        }
    }

    /// The most places that an account may buy.
    pub(crate) fn limit(&self, limit: u32) {
        let seen = &mut *self.lock();
        let counts: Vec<u32> = seen.reservations.values().map(|reservation| reservation.seat_count).collect();
        for count in counts {
            seen.check(Rule::Limit, count <= limit, || format!("{count} places, the limit being {limit}"));
        }
    }

    /// How many may be called a second: between any two readings of the line.
    pub(crate) fn pace(&self, per_second: f64) {
        let seen = &mut *self.lock();
        let mut nets = std::mem::take(&mut seen.nets);
        nets.sort_unstable();
        // Called minus allowed at each reading: no later one may be above an earlier one by more than what is banked.
        let mut least = f64::INFINITY;
        for (at_ms, net) in nets {
            let ahead = net as f64 - per_second * at_ms as f64 / 1_000.0;
            least = least.min(ahead);
            let over = ahead - least;
            seen.check(Rule::Pace, over <= per_second * BANKED_SECONDS + 1.0, || {
                format!("{over:.0} more than {per_second} a second allow")
            });
        }
    }

    /// Whether each answered reservation has a row.
    pub(crate) fn are_all_in(&self, rows: &HashMap<String, (u32, u64)>) -> bool {
        self.lock().reservations.keys().all(|id| rows.contains_key(id))
    }

    /// What PostgreSQL has of the reservations, by their ids: places and amount.
    pub(crate) fn recorded(&self, rows: &HashMap<String, (u32, u64)>) {
        let seen = &mut *self.lock();
        let told: Vec<(String, (u32, u64))> =
            seen.reservations.iter().map(|(id, told)| (id.clone(), (told.seat_count, told.amount))).collect();
        for (id, told) in told {
            let row = rows.get(&id);
            seen.check(Rule::Recorded, row == Some(&told), || format!("{id}: {told:?}, recorded {row:?}"));
        }
    }

    /// Each rule, and what broke one.
    pub(crate) fn verdict(&self) -> (Vec<Check>, Vec<String>) {
        let seen = self.lock();
        let checks = RULES.iter().zip(seen.checks);
        let checks =
            checks.map(|((_, rule), (looked_at, broken))| Check { rule, looked_at, broken }).collect();
        (checks, seen.told.clone())
    }
}

fn sorted(seats: &[String]) -> Vec<&String> {
    let mut sorted: Vec<&String> = seats.iter().collect();
    sorted.sort_unstable();
    sorted
}

fn same(is_same: bool) -> &'static str {
    if is_same { "being the same" } else { "being another" }
}

#[cfg(test)]
mod tests {
    use super::super::answers::{Places, SaleStatus};
    use super::*;

    fn broken(witness: &Witness) -> Vec<&'static str> {
        let (checks, _) = witness.verdict();
        checks.into_iter().filter(|check| check.broken > 0).map(|check| check.rule).collect()
    }

    fn reservation(id: &str, seats: &[&str]) -> Reservation {
        let seats: Vec<String> = seats.iter().map(|seat| (*seat).to_owned()).collect();
        let count = u32::try_from(seats.len()).unwrap();
        let places = Places { offering_id: "T1".to_owned(), count, seats: seats.clone() };
        Reservation {
            reservation_id: id.to_owned(),
            seats,
            places: vec![places],
            seat_count: count,
            amount: 5,
        }
    }

    fn told(reservation: &Reservation) -> Booked {
        let Reservation { reservation_id, seats, seat_count, amount, .. } = reservation.clone();
        Booked { reservation_id, seats, seat_count, amount }
    }

    #[test]
    fn a_seat_or_a_reservation_of_two_is_seen() {
        let witness = Witness::default();
        let (one, other) = (reservation("e.1", &["1A", "1B"]), reservation("e.2", &["1B"]));
        witness.booked("a", &told(&one), &one);
        assert_eq!(broken(&witness), Vec::<&str>::new());
        witness.booked("b", &told(&other), &other);
        assert_eq!(broken(&witness), ["no seat is sold twice"]);
        let witness = Witness::default();
        witness.booked("a", &told(&one), &one);
        let less = reservation("e.1", &["1A"]);
        witness.booked("b", &told(&one), &less);
        assert_eq!(
            broken(&witness),
            [
                "no seat is sold twice",
                "a token has one reservation",
                "a reservation reads as it was answered"
            ]
        );
    }

    #[test]
    fn somebody_let_in_before_somebody_ahead_is_seen() {
        let (second, now) = (Duration::from_secs(1), Instant::now() + Duration::from_mins(1));
        let witness = Witness::default();
        witness.is_in(10, now);
        witness.waits(9, now, second);
        witness.waits(9, now + second, second);
        witness.waits(11, now + second * 2, second);
        witness.waits(9, now + second * 2, second * 5);
        assert!(broken(&witness).is_empty(), "the view may be old, the older the farther back");
        witness.waits(9, now + second * 2, second);
        assert_eq!(broken(&witness), ["nobody is let in before somebody who stands ahead"]);
    }

    #[test]
    fn a_place_lost_or_fallen_back_is_seen() {
        let witness = Witness::default();
        witness.same_place(("t", Some(1)), ("t", Some(1)));
        witness.same_place(("t", Some(1)), ("t", None));
        witness.rank(5, 5);
        witness.returned();
        witness.rank(5, 6);
        assert!(broken(&witness).is_empty());
        witness.rank(5, 7);
        witness.same_place(("t", Some(1)), ("t", Some(2)));
        assert_eq!(broken(&witness), ["reloads and further tabs keep the place", "no rank gets worse"]);
    }

    #[test]
    fn more_calls_than_the_pace_allows_are_seen_in_any_window() {
        let line = |updated_at, net| Progress {
            status: SaleStatus::Open,
            head_score: 0,
            net,
            total_waiting: 0,
            opens_at: 0,
            updated_at,
        };
        let witness = Witness::default();
        for second in 0..60 {
            // Nothing for a while, then as fast as allowed: the time before gives no credit.
            witness.line(&line(second * 1_000, u64::try_from((second - 30).max(0)).unwrap() * 70 + 140));
        }
        witness.pace(70.0);
        assert!(broken(&witness).is_empty());
        witness.line(&line(60_000, 60 * 70));
        witness.line(&line(61_000, 60 * 70 + 290));
        witness.pace(70.0);
        assert_eq!(broken(&witness), ["no more are called than the pace allows"]);
    }

    #[test]
    fn limits_bugs_and_lost_rows_are_seen() {
        let witness = Witness::default();
        let two = reservation("e.1", &["1A", "1B"]);
        witness.booked("a", &told(&two), &two);
        witness.limit(2);
        witness.answers(7, 0);
        witness.recorded(&HashMap::from([("e.1".to_owned(), (2, 5))]));
        assert!(broken(&witness).is_empty());
        assert_eq!(
            witness.verdict().0.iter().map(|check| check.looked_at).sum::<u64>(),
            1 + 1 + 2 + 1 + 7 + 1
        );
        witness.limit(1);
        witness.answers(7, 1);
        witness.recorded(&HashMap::new());
        assert_eq!(broken(&witness).len(), 3);
    }
}
