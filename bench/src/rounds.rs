//! Medians over interleaved rounds.

/// The middle of some values.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        length if length % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

/// Pairs of a value and its baseline, one a round: the medians, and that of the ratios.
pub(crate) fn beside(pairs: &[(f64, f64)]) -> (f64, f64, f64) {
    let values: Vec<f64> = pairs.iter().map(|(value, _)| *value).collect();
    let baselines: Vec<f64> = pairs.iter().map(|(_, baseline)| *baseline).collect();
    let ratios: Vec<f64> = pairs.iter().map(|(value, baseline)| value / baseline).collect();
    (median(&values), median(&baselines), median(&ratios))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::float_cmp)]
    fn one_round_that_was_disturbed_moves_nothing() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        // Twice as slow a machine in one round, and once disturbed only while the value was taken.
        assert_eq!(beside(&[(10.0, 5.0), (20.0, 10.0), (90.0, 5.0)]), (20.0, 5.0, 2.0));
    }
}
