//! A part of the people, who reach one instance of the functions.

use domain::Millis;
use futures::future::try_join_all;

use super::person::{Desk, LONGEST_WAIT, Person, Tally};
use crate::wheel::Wheel;

/// Requests under way at once.
const LANES: usize = 64;

/// One who acts in this second, and in how many milliseconds again.
type Turn = (Box<Person>, Option<u32>);

pub(crate) struct Crowd {
    desk: Desk,
    wheel: Wheel<Box<Person>>,
    pub(crate) tally: Tally,
}

impl Crowd {
    pub(crate) fn before(desk: Desk) -> Self {
        Self { desk, wheel: Wheel::of(LONGEST_WAIT), tally: Tally::default() }
    }

    /// People who have not gone yet.
    pub(crate) fn present(&self) -> usize {
        self.wheel.len()
    }

    /// A second of the sale: whoever comes and whoever is due acts once.
    pub(crate) async fn second(&mut self, now: Millis, newcomers: usize) -> anyhow::Result<()> {
        self.desk.instance.at(now);
        let due = self.wheel.turn().into_iter();
        let new = (0..newcomers).map(|_| Box::new(Person::new()));
        let mut turns: Vec<Turn> = due.chain(new).map(|person| (person, None)).collect();
        let part = turns.len().div_ceil(LANES).max(1);
        let lanes = turns.chunks_mut(part).map(|turns| lane(&self.desk, turns));
        let tallies = try_join_all(lanes).await?;
        self.tally = tallies.iter().fold(self.tally, Tally::and);
        for (person, next) in turns {
            if let Some(in_ms) = next {
                self.wheel.put(person, in_ms);
            }
        }
        Ok(())
    }
}

/// One after the other: what most polls need is at hand, so that a future for each would cost more than it brings.
async fn lane(desk: &Desk, turns: &mut [Turn]) -> anyhow::Result<Tally> {
    let mut tally = Tally::default();
    for (person, next) in turns {
        *next = person.act(desk, &mut tally).await?;
    }
    Ok(tally)
}
