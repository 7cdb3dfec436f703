//! The line as a fluid: people come along a curve, and go at the pace while there are places.

use serde::Serialize;

/// The sale, in seconds and people.
#[derive(Debug, Clone)]
pub(crate) struct Sale {
    pub(crate) users: f64,
    pub(crate) arrive_seconds: f64,
    /// The part of all who have come at a part of that time; rises from 0 to 1.
    pub(crate) come: fn(f64) -> f64,
    pub(crate) per_second: f64,
    /// How many can be let in before all is sold.
    pub(crate) can_enter: f64,
    pub(crate) inside_seconds: f64,
    pub(crate) linger_seconds: f64,
}

/// A moment of it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Moment {
    /// Since the first arrival.
    pub(crate) at_seconds: f64,
    /// How long it lasts.
    pub(crate) seconds: f64,
    pub(crate) joins_per_second: f64,
    pub(crate) waiting: f64,
    pub(crate) inside: f64,
    /// People let in a second.
    pub(crate) entering: f64,
}

/// When somebody of this part of all arrivals comes, and how long they wait; none: all was sold before.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Wait {
    /// In percent of all.
    pub(crate) arrival: f64,
    pub(crate) seconds: Option<f64>,
}

/// Moments while people come, and after that.
const ARRIVAL_STEPS: f64 = 500.0;
const LATER_STEPS: f64 = 5_000.0;
/// Places of the line whose waits are reckoned.
const PLACES: u32 = 1_000;

impl Sale {
    fn lasts_seconds(&self) -> f64 {
        self.ends_seconds() + self.linger_seconds.max(self.inside_seconds)
    }

    /// When the last one is let in.
    pub(crate) fn ends_seconds(&self) -> f64 {
        (self.users.min(self.can_enter) / self.per_second)
            .max(self.arrive_seconds.min(self.arrives_at(self.can_enter)))
    }

    fn come_by(&self, at_seconds: f64) -> f64 {
        self.users * (self.come)((at_seconds / self.arrive_seconds.max(1e-9)).clamp(0.0, 1.0))
    }

    /// When so many have come.
    fn arrives_at(&self, people: f64) -> f64 {
        let (mut low, mut high) = (0.0, self.arrive_seconds);
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            if self.come_by(middle) < people { low = middle } else { high = middle }
        }
        high
    }

    /// From the first arrival on, until nobody is there.
    pub(crate) fn moments(&self) -> impl Iterator<Item = Moment> {
        let (mut at, mut entered, mut inside, mut left) = (0.0_f64, 0.0_f64, 0.0_f64, 0.0_f64);
        let arrives = self.arrive_seconds.max(0.5);
        let lasts = self.lasts_seconds().max(arrives);
        std::iter::from_fn(move || {
            if at >= lasts {
                return None;
            }
            let step = if at < arrives { arrives / ARRIVAL_STEPS } else { (lasts - arrives) / LATER_STEPS };
            // Anything shorter would never come to an end.
            let step = step.max(1e-3);
            let come = [at, at + step].map(|at| self.come_by(at));
            let free = (self.can_enter - entered).max(0.0);
            let entering = (self.per_second * step).min(come[1] - entered - left).min(free).max(0.0);
            entered += entering;
            let stays = (-step / self.inside_seconds).exp();
            inside = inside * stays + entering / step * self.inside_seconds * (1.0 - stays);
            // Once all is sold, whoever waits goes within a while.
            if free <= entering {
                left += (come[1] - entered - left) * (1.0 - (-step / self.linger_seconds).exp());
            }
            let moment = Moment {
                at_seconds: at,
                seconds: step,
                joins_per_second: (come[1] - come[0]) / step,
                waiting: (come[1] - entered - left).max(0.0),
                inside,
                entering: entering / step,
            };
            at += step;
            Some(moment)
        })
    }

    /// How long people wait, by when they come. Whoever comes to an empty line waits for the next tick.
    pub(crate) fn waits(&self, parts: &[f64]) -> Vec<Wait> {
        // Nobody is called before they come: where arrivals fall behind the pace, it is lost.
        let (mut latest, mut lost) = (f64::NEG_INFINITY, Vec::new());
        for at in 0..=PLACES {
            let place = self.users * f64::from(at) / f64::from(PLACES);
            latest = latest.max(self.arrives_at(place) - place / self.per_second);
            lost.push((place, latest));
        }
        let wait = |part: f64| {
            let place = self.users * part;
            let before = lost.partition_point(|(at, _)| *at <= place);
            let (_, latest) = lost.get(before.checked_sub(1)?)?;
            let comes = self.arrives_at(place);
            let wait = (latest + place / self.per_second - comes).max(0.0);
            (place <= self.can_enter).then_some(wait)
        };
        parts.iter().map(|part| Wait { arrival: part * 100.0, seconds: wait(*part) }).collect()
    }

    /// The wait that such a part of those let in does not exceed.
    pub(crate) fn wait_quantile(&self, part: f64) -> f64 {
        let of = self.can_enter.min(self.users) / self.users;
        let parts: Vec<f64> = (1..=400_u32).map(|at| of * f64::from(at) / 400.0).collect();
        let mut waits: Vec<f64> = self.waits(&parts).iter().filter_map(|wait| wait.seconds).collect();
        waits.sort_by(f64::total_cmp);
        // A part of a few hundred.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let at = (part * waits.len() as f64).ceil() as usize;
        waits.get(at.saturating_sub(1).min(waits.len().saturating_sub(1))).copied().unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn even(users: f64, per_second: f64, can_enter: f64) -> Sale {
        Sale {
            users,
            arrive_seconds: 10.0,
            come: |part| part,
            per_second,
            can_enter,
            inside_seconds: 5.0,
            linger_seconds: 60.0,
        }
    }

    #[test]
    fn the_last_waits_for_what_the_pace_has_not_let_in() {
        let sale = even(1_000.0, 50.0, 1e9);
        // Come within 10 s, let in within 20 s.
        let waits = sale.waits(&[0.1, 0.5, 1.0]);
        let seconds: Vec<f64> = waits.iter().filter_map(|wait| wait.seconds).collect();
        for (seconds, expected) in seconds.iter().zip([1.0, 5.0, 10.0]) {
            assert!((seconds - expected).abs() < 0.1, "{seconds} instead of {expected}");
        }
        assert!((sale.wait_quantile(0.5) - 5.0).abs() < 0.1);
        assert!((sale.ends_seconds() - 20.0).abs() < 0.1);
        let most = sale.moments().map(|moment| moment.waiting).fold(0.0, f64::max);
        assert!((most - 500.0).abs() < 10.0, "{most}");
    }

    #[test]
    fn nobody_waits_where_the_pace_is_above_the_arrivals() {
        let sale = even(100.0, 50.0, 1e9);
        assert!(sale.wait_quantile(0.99) < 0.05);
        assert!(sale.moments().all(|moment| moment.waiting < 1.0));
    }

    #[test]
    fn whoever_comes_after_all_is_sold_is_not_let_in() {
        let sale = even(1_000.0, 50.0, 200.0);
        assert_eq!(sale.waits(&[0.9])[0].seconds, None);
        let entered: f64 = sale.moments().map(|moment| moment.entering * moment.seconds).sum();
        assert!((entered - 200.0).abs() < 1.0, "{entered}");
        let last = sale.moments().last().unwrap();
        assert!(last.waiting < 400.0, "people go: {}", last.waiting);
    }
}
