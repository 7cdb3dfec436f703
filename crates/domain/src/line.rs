//! Arithmetic of the line: when to ask again and how long it may take. No clock is read here.

use crate::Millis;

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
}
