//! The answer of an experiment's numbers to its question, in a line or two.
//!
//! Derived from measurements only; a row without a number is left out.

use crate::experiment::Row;

/// Share of a link from which on it counts as full.
pub(crate) const FULL: f64 = 0.99;

/// Returns no answer, for experiments whose table is enough.
pub(crate) fn none(_: &[Row]) -> Vec<String> {
    Vec::new()
}

/// Returns the rows that have numbers, by series, in the order of their x values.
pub(crate) fn by_series(rows: &[Row]) -> Vec<(&str, Vec<(f64, f64)>)> {
    let mut all: Vec<(&str, Vec<(f64, f64)>)> = Vec::new();
    for row in rows {
        let Some(measured) = row.measured else { continue };
        match all.iter_mut().find(|(name, _)| *name == row.series) {
            Some((_, points)) => points.push((row.x, measured)),
            None => all.push((&row.series, vec![(row.x, measured)])),
        }
    }
    for (_, points) in &mut all {
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
    }
    all
}

/// Returns the last x value up to which every point is at least `least`.
pub(crate) fn holds_up_to(points: &[(f64, f64)], least: f64) -> Option<f64> {
    points.iter().take_while(|(_, value)| *value >= least).last().map(|(x, _)| *x)
}

/// Returns the first x value from which on every point is at least `least`.
pub(crate) fn holds_from(points: &[(f64, f64)], least: f64) -> Option<f64> {
    points.iter().rev().take_while(|(_, value)| *value >= least).last().map(|(x, _)| *x)
}

/// Formats a share in per cent with three digits: `99.1 %`.
pub(crate) fn per_cent(share: f64) -> String {
    let digits = if share < 0.1 { 2 } else { 1 };
    format!("{:.digits$} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_counts_only_with_all_values_before_or_after_it() {
        let falls = [(1.0, 1.0), (2.0, 0.995), (3.0, 0.5), (4.0, 1.0)];
        assert_eq!((holds_up_to(&falls, FULL), holds_from(&falls, FULL)), (Some(2.0), Some(4.0)));
        assert_eq!((holds_up_to(&falls[2..], FULL), holds_from(&falls[..3], FULL)), (None, None));
    }

    #[test]
    fn shares_have_three_digits() {
        assert_eq!([0.999, 0.0815].map(per_cent), ["99.9 %", "8.15 %"]);
    }
}
