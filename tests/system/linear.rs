//! Whether what many callers saw of one thing could have happened one call after the other, each between its request
//! and its answer (Herlihy and Wing; the search of Wing and Gong with Lowe's memory).

use std::collections::HashSet;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// A thing simple enough to be obviously right.
pub(crate) trait Thing: Copy + Eq + Hash + Debug {
    /// A call together with its answer.
    type Seen: Clone + Debug;

    /// What the call leaves; `None` where the thing would have answered otherwise.
    fn after(self, seen: &Self::Seen) -> Option<Self>;
}

/// One call: when it was sent, when its answer was there.
#[derive(Debug, Clone)]
pub(crate) struct Visit<S> {
    pub(crate) from: Duration,
    pub(crate) until: Duration,
    pub(crate) seen: S,
}

/// What callers saw, in no order.
pub(crate) struct History<S> {
    begun: Instant,
    visits: Mutex<Vec<Visit<S>>>,
}

impl<S> History<S> {
    pub(crate) fn new() -> Self {
        Self { begun: Instant::now(), visits: Mutex::default() }
    }

    /// Notes a call: `None` from `call` is one that did nothing, as its answer says.
    pub(crate) async fn note(&self, call: impl Future<Output = Option<S>>) {
        let from = self.begun.elapsed();
        let seen = call.await;
        let until = self.begun.elapsed();
        if let Some(seen) = seen {
            self.visits.lock().expect("no panic while it was locked").push(Visit { from, until, seen });
        }
    }

    pub(crate) fn visits(&self) -> Vec<Visit<S>>
    where
        S: Clone,
    {
        self.visits.lock().expect("no panic while it was locked").clone()
    }
}

/// Fails the test where no order explains the visits.
pub(crate) fn explain<T: Thing>(start: T, visits: &[Visit<T::Seen>]) {
    assert!(is_linear(start, visits), "no order explains this, from {start:?}: {visits:#?}");
}

/// Whether there is an order.
pub(crate) fn is_linear<T: Thing>(start: T, visits: &[Visit<T::Seen>]) -> bool {
    let mut visits = visits.to_vec();
    visits.sort_by_key(|visit| visit.from);
    let mut search = Search { visits: &visits, met: HashSet::new() };
    search.goes_on(start, vec![false; visits.len()], visits.len())
}

struct Search<'a, T: Thing> {
    visits: &'a [Visit<T::Seen>],
    /// States with what was done by then that lead nowhere.
    met: HashSet<(T, Vec<bool>)>,
}

impl<T: Thing> Search<'_, T> {
    fn goes_on(&mut self, state: T, mut done: Vec<bool>, mut left: usize) -> bool {
        // Who sees the state as it is, and leaves it so, may as well come now: nobody is disturbed by it.
        let leaves_it = |at: &usize| state.after(&self.visits[*at].seen) == Some(state);
        loop {
            let Some(at) = self.next(&done).find(leaves_it) else { break };
            done[at] = true;
            left -= 1;
        }
        if left == 0 {
            return true;
        }
        if !self.met.insert((state, done.clone())) {
            return false;
        }
        let candidates: Vec<usize> = self.next(&done).collect();
        candidates.into_iter().any(|at| {
            let Some(next) = state.after(&self.visits[at].seen) else { return false };
            let mut done = done.clone();
            done[at] = true;
            self.goes_on(next, done, left - 1)
        })
    }

    /// Those that may come next: nobody else had an answer before they asked.
    fn next<'a>(&'a self, done: &'a [bool]) -> impl Iterator<Item = usize> + 'a {
        let open = || self.visits.iter().enumerate().filter(|(at, _)| !done[*at]);
        let first_answer = open().map(|(_, visit)| visit.until).min().unwrap_or_default();
        open().take_while(move |(_, visit)| visit.from <= first_answer).map(|(at, _)| at)
    }
}

/// A seat: whose it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Seat(pub(crate) Option<usize>);

/// What somebody saw of a seat.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SeatSeen {
    Held(usize),
    Taken(usize),
    /// Given back; whether there was anything to give.
    Released(usize, bool),
}

impl Thing for Seat {
    type Seen = SeatSeen;

    fn after(self, seen: &SeatSeen) -> Option<Self> {
        match *seen {
            SeatSeen::Held(by) => self.0.is_none_or(|owner| owner == by).then_some(Self(Some(by))),
            SeatSeen::Taken(by) => self.0.is_some_and(|owner| owner != by).then_some(self),
            SeatSeen::Released(by, true) => (self.0 == Some(by)).then_some(Self(None)),
            SeatSeen::Released(by, false) => (self.0 != Some(by)).then_some(self),
        }
    }
}

/// So many of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Count(pub(crate) u64);

/// What somebody saw of a count.
#[derive(Debug, Clone, Copy)]
pub(crate) enum CountSeen {
    Took(u64),
    /// So many were asked for, and so many were told to be left.
    TooMany {
        asked: u64,
        left: u64,
    },
    Gave(u64),
}

impl Thing for Count {
    type Seen = CountSeen;

    fn after(self, seen: &CountSeen) -> Option<Self> {
        match *seen {
            CountSeen::Took(count) => self.0.checked_sub(count).map(Self),
            CountSeen::TooMany { asked, left } => (self.0 == left && asked > left).then_some(self),
            CountSeen::Gave(count) => Some(Self(self.0 + count)),
        }
    }
}

fn visit<S>(from: u64, until: u64, seen: S) -> Visit<S> {
    Visit { from: Duration::from_millis(from), until: Duration::from_millis(until), seen }
}

#[test]
fn what_can_have_happened_is_explained() {
    use SeatSeen::{Held, Released, Taken};
    assert!(is_linear(Seat(None), &[]));
    let at_once = [visit(0, 9, Taken(2)), visit(1, 8, Held(1)), visit(2, 7, Taken(3))];
    assert!(is_linear(Seat(None), &at_once));
    let in_turn =
        [visit(0, 1, Held(1)), visit(2, 3, Released(1, true)), visit(4, 5, Held(2)), visit(6, 7, Taken(1))];
    assert!(is_linear(Seat(None), &in_turn));
    let around = [visit(0, 9, Held(2)), visit(1, 2, Held(1)), visit(3, 4, Released(1, true))];
    assert!(is_linear(Seat(None), &around));
    let count = [
        visit(0, 9, CountSeen::TooMany { asked: 2, left: 1 }),
        visit(0, 9, CountSeen::Took(2)),
        visit(0, 9, CountSeen::Gave(1)),
    ];
    assert!(is_linear(Count(2), &count));
}

#[test]
fn what_cannot_have_happened_is_found() {
    use SeatSeen::{Held, Released, Taken};
    // Two owners.
    assert!(!is_linear(Seat(None), &[visit(0, 9, Held(1)), visit(0, 9, Held(2))]));
    // Taken by nobody, before, and after it was given back.
    assert!(!is_linear(Seat(None), &[visit(0, 1, Taken(2)), visit(2, 3, Held(1))]));
    let stale = [visit(0, 1, Held(1)), visit(2, 3, Released(1, true)), visit(4, 5, Taken(2))];
    assert!(!is_linear(Seat(None), &stale));
    // Given back twice.
    let twice = [visit(0, 1, Held(1)), visit(2, 9, Released(1, true)), visit(2, 9, Released(1, true))];
    assert!(!is_linear(Seat(None), &twice));
    // One of three too many, in whatever order.
    let took = |_| visit(0, 9, CountSeen::Took(1));
    assert!(is_linear(Count(3), &(0..3).map(took).collect::<Vec<_>>()));
    assert!(!is_linear(Count(2), &(0..3).map(took).collect::<Vec<_>>()));
    // Refused although enough was left all the time.
    assert!(!is_linear(Count(3), &[visit(0, 9, CountSeen::TooMany { asked: 2, left: 1 })]));
    // Hundreds at once are no matter.
    let mut many: Vec<_> =
        (0..300).map(|by| visit(by % 7, 900, Taken(usize::try_from(by).unwrap()))).collect();
    many.push(visit(0, 900, Held(1_000)));
    assert!(is_linear(Seat(None), &many));
    many.push(visit(0, 900, Held(2_000)));
    assert!(!is_linear(Seat(None), &many));
}
