//! Arithmetic of the line: when to ask again and how long it may take. No clock is read here.

use crate::Millis;
use crate::outcome::{LineView, SaleStatus};

/// How long a caller waits until its next poll, before jitter.
///
/// Before the opening only the time decides, so that the interval tells nothing about the place.
pub fn poll_interval_ms(rank: Option<u64>, until_open_ms: i64) -> u32 {
    match rank {
        _ if until_open_ms > 600_000 => 10_000,
        _ if until_open_ms > 60_000 => 5_000,
        _ if until_open_ms > 0 => 2_000,
        rank => {
            let rank = rank.unwrap_or(1);
            INTERVALS.iter().find(|(passed, _)| rank > *passed).map_or(1_000, |(_, interval_ms)| *interval_ms)
        }
    }
}

/// After the opening: whose rank is above the first number waits so many milliseconds; the first row that fits.
pub const INTERVALS: [(u64, u32); 5] =
    [(100_000, 10_000), (10_000, 5_000), (1_000, 3_000), (100, 2_000), (0, 1_000)];

/// How often an active caller asks, before jitter.
pub const ACTIVE_POLL_MS: u32 = 2_000;

/// `interval_ms` ± 20 %; `random` is uniform in `[0, 1)`.
pub fn jittered(interval_ms: u32, random: f64) -> u32 {
    // Between 0.8 and 1.2 of at most 10 000: in range by construction.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let jittered = (f64::from(interval_ms) * (0.8 + 0.4 * random)).round() as u32;
    jittered
}

/// Seconds until a caller with `ahead` people before it is admitted at the pace actually seen; `None` while
/// nobody is being admitted.
pub fn estimated_wait_seconds(ahead: u64, admitted_per_second: f64) -> Option<u64> {
    if !(admitted_per_second.is_finite() && admitted_per_second > 0.0) {
        return None;
    }
    let seconds = (ahead as f64 / admitted_per_second).ceil();
    // A float-to-int cast saturates; ten years is as good as never.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let seconds = seconds.min(315_360_000.0) as u64;
    Some(seconds)
}

/// How long what was last read of a place may be told on.
const REREAD_AFTER_MS: i64 = 600_000;

/// Up to here a place is told on until its turn may have come, or the time is over: all that reading it again at half of
/// the way would tell is who left ahead of it, and it would be half of what polls cost.
const REREAD_ABOVE_RANK: u64 = 5_000;

/// A waiting place as it was last read, and the line it was read in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastRead {
    /// The event's epoch.
    pub epoch: u64,
    /// Where the place stands; 0 before the opening.
    pub score: u64,
    /// 1-based; none before the opening.
    pub rank: Option<u64>,
    /// The line's net.
    pub net: u64,
    /// Redis' clock.
    pub read_at: Millis,
}

impl LastRead {
    /// How old a view of the line may be from which this place is told: a second near the front and before the opening,
    /// half of the poll's interval far back.
    pub fn view_age_ms(&self) -> u32 {
        (poll_interval_ms(self.rank, 0) / 2).max(1_000)
    }

    /// The rank that `view` leaves to this place, none before the opening: true as of the view except for people who
    /// left meanwhile, so never better than the truth then, and never worse than last read. An error: only reading the
    /// place again tells, for its turn may have come, half of a long way is behind it, or too much time.
    pub fn in_view(&self, view: &LineView) -> Result<Option<u64>, Reread> {
        let age_ms = view.now.0.saturating_sub(self.read_at.0);
        if self.epoch != view.epoch || age_ms > REREAD_AFTER_MS {
            return Err(Reread);
        }
        let Some(rank) = self.rank else {
            return if view.status == SaleStatus::Upcoming && self.score == 0 {
                Ok(None)
            } else {
                Err(Reread)
            };
        };
        let is_going_on = matches!(view.status, SaleStatus::Open | SaleStatus::Paused);
        let passed = view.net.saturating_sub(self.net);
        let is_half_way = rank > REREAD_ABOVE_RANK && passed.saturating_mul(2) >= rank;
        if !is_going_on || self.score <= view.head_score || is_half_way {
            return Err(Reread);
        }
        // Whoever came back to the front stands before this place as well, and was counted off before.
        Ok(Some(rank.saturating_sub(passed).max(1)))
    }
}

/// What the key of a place proves of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProvenPlace {
    /// The epoch that the key was made in.
    pub epoch: u64,
    /// Where it stood; 0: made before the opening, or without a place in the line.
    pub score: u64,
    /// The arrival number, where it was known.
    pub ticket_number: Option<u64>,
}

/// Nothing but the place itself tells where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reread;

/// Milliseconds from `now` to the opening; zero or less once it has come.
pub fn until_open_ms(opens_at: Millis, now: Millis) -> i64 {
    opens_at.0.saturating_sub(now.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_grow_with_the_rank_and_before_the_opening_with_time_alone() {
        for (rank, expected) in [
            (1, 1_000),
            (100, 1_000),
            (101, 2_000),
            (1_001, 3_000),
            (10_001, 5_000),
            (100_000, 5_000),
            (100_001, 10_000),
        ] {
            assert_eq!(poll_interval_ms(Some(rank), 0), expected, "rank {rank}");
        }
        for (until, expected) in [(1, 2_000), (60_001, 5_000), (600_001, 10_000)] {
            assert_eq!(poll_interval_ms(None, until), expected);
            assert_eq!(poll_interval_ms(Some(1), until), expected, "the rank must not show");
        }
    }

    #[test]
    fn jitter_stays_within_a_fifth() {
        assert_eq!(jittered(10_000, 0.0), 8_000);
        assert_eq!(jittered(10_000, 0.5), 10_000);
        assert!(jittered(10_000, 0.999_999) <= 12_000);
    }

    #[test]
    fn the_wait_follows_the_pace_and_is_unknown_without_one() {
        assert_eq!(estimated_wait_seconds(0, 70.0), Some(0));
        assert_eq!(estimated_wait_seconds(141, 70.0), Some(3));
        assert_eq!(estimated_wait_seconds(10, 0.0), None);
        assert_eq!(estimated_wait_seconds(10, f64::NAN), None);
        assert_eq!(estimated_wait_seconds(u64::MAX, 0.001), Some(315_360_000));
    }

    fn view(status: SaleStatus, now: i64, head_score: u64, net: u64) -> LineView {
        LineView {
            now: Millis(now),
            status,
            opens_at: Millis(0),
            epoch: 1,
            head_score,
            net,
            total_waiting: 9,
            remaining_seats: 9,
            admitted_per_second: 1.0,
            message: None,
        }
    }

    #[test]
    fn a_place_is_told_from_its_line_until_it_must_be_read_again() {
        let last = LastRead { epoch: 1, score: 10_500, rank: Some(10_000), net: 500, read_at: Millis(0) };
        let open = |now, head_score, net| last.in_view(&view(SaleStatus::Open, now, head_score, net));
        assert_eq!(open(1, 500, 500), Ok(Some(10_000)));
        assert_eq!(open(1, 700, 700), Ok(Some(9_800)));
        assert_eq!(open(1, 700, 400), Ok(Some(10_000)), "a view that is older than the place");
        assert_eq!(open(1, 5_499, 5_499), Ok(Some(5_001)));
        assert_eq!(open(1, 5_500, 5_500), Err(Reread), "half of the way");
        assert_eq!(open(1, 10_500, 600), Err(Reread), "its turn");
        let near = LastRead { rank: Some(5_000), ..last };
        assert_eq!(near.in_view(&view(SaleStatus::Open, 1, 5_000, 5_450)), Ok(Some(50)), "near the front");
        assert_eq!(near.in_view(&view(SaleStatus::Open, 1, 5_000, 6_000)), Ok(Some(1)));
        assert_eq!(open(600_000, 500, 500), Ok(Some(10_000)));
        assert_eq!(open(600_001, 500, 500), Err(Reread));
        assert_eq!(last.in_view(&view(SaleStatus::Paused, 1, 500, 500)), Ok(Some(10_000)));
        for status in [SaleStatus::Closed, SaleStatus::Upcoming] {
            assert_eq!(last.in_view(&view(status, 1, 500, 500)), Err(Reread));
        }
        let later = LineView { epoch: 2, ..view(SaleStatus::Open, 1, 500, 500) };
        assert_eq!(last.in_view(&later), Err(Reread));
        let early = LastRead { score: 0, rank: None, ..last };
        assert_eq!(early.in_view(&view(SaleStatus::Upcoming, 1, 0, 0)), Ok(None));
        assert_eq!(early.in_view(&view(SaleStatus::Open, 1, 0, 0)), Err(Reread), "the opening has come");
    }

    #[test]
    fn a_view_may_be_as_old_as_the_asker_can_bear() {
        let age = |rank| LastRead { epoch: 1, score: 1, rank, net: 0, read_at: Millis(0) }.view_age_ms();
        assert_eq!([age(None), age(Some(1)), age(Some(1_001))], [1_000, 1_000, 1_500]);
        assert_eq!([age(Some(10_001)), age(Some(100_001))], [2_500, 5_000]);
    }
}
