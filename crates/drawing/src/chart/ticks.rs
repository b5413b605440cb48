//! Marks of an axis: round values whose texts fit beside each other.
//!
//! Candidates are tried from the densest to the sparsest; the first one whose texts leave a gap is taken. So no text covers another.

use super::axis::{Axis, ScaleKind};
use super::scale::Scale;

/// Number of marks above which an axis gets sparser ones, even where more would fit.
const MARKS_MAX: usize = 10;
/// Gap between texts beside each other and below each other.
const GAPS: (f64, f64) = (12.0, 10.0);
/// Number of own values up to which a horizontal axis is marked at these values.
const OWN_MAX: usize = 12;

/// Marks of an axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ticks {
    /// Values with their texts.
    pub(super) marks: Vec<(f64, String)>,
    /// Unit for the axis' label, if the texts have none.
    pub(super) unit: Option<String>,
}

/// Returns the marks of a vertical axis.
pub(super) fn upright(axis: &Axis, scale: &Scale, font_size: f64) -> Ticks {
    first_that_fits(axis, scale, candidates(axis, scale), &|_| font_size + GAPS.1)
}

/// Returns the marks of a horizontal axis. `values` are those of the points; they are marked themselves if they are few.
pub(super) fn level(axis: &Axis, scale: &Scale, values: &[f64], font_size: f64) -> Ticks {
    let extent = |text: &str| crate::text::width(text, font_size) + GAPS.0;
    let own = own(axis, scale, values);
    if !own.is_empty() {
        let ticks = with_texts(axis, own);
        if fit(scale, &ticks, &extent) {
            return ticks;
        }
    }
    let mut candidates = candidates(axis, scale);
    if axis.unit.has_no_prefixes() && !values.is_empty() && values.iter().all(|value| value.fract() == 0.0) {
        // Between whole numbers there is nothing to mark.
        let is_whole = |marks: &Vec<f64>| !marks.is_empty() && marks.iter().all(|value| value.fract() == 0.0);
        if candidates.iter().any(is_whole) {
            candidates.retain(is_whole);
        }
    }
    first_that_fits(axis, scale, candidates, &extent)
}

/// Returns the values themselves if they are few and round enough to be read.
fn own(axis: &Axis, scale: &Scale, values: &[f64]) -> Vec<f64> {
    let mut own: Vec<f64> =
        values.iter().copied().filter(|value| scale.coordinate(*value).is_some()).collect();
    own.sort_by(f64::total_cmp);
    own.dedup();
    // Of bytes, only whole numbers of a prefix are round.
    let is_plain = |value: &f64| {
        let text = axis.unit.text(*value);
        text.chars().filter(char::is_ascii_digit).count() <= 4
            && !(axis.unit.is_binary() && text.contains('.'))
    };
    let is_wanted = axis.kind == ScaleKind::Logarithmic || own.iter().all(|value| value.fract() == 0.0);
    let least = if axis.kind == ScaleKind::Logarithmic { 2 } else { 3 };
    if is_wanted && (least..=OWN_MAX).contains(&own.len()) && own.iter().all(is_plain) {
        own
    } else {
        Vec::new()
    }
}

fn first_that_fits(
    axis: &Axis,
    scale: &Scale,
    candidates: Vec<Vec<f64>>,
    extent: &dyn Fn(&str) -> f64,
) -> Ticks {
    let mut last = Ticks { marks: Vec::new(), unit: Some(String::new()) };
    for values in candidates.into_iter().filter(|values| !values.is_empty()) {
        let ticks = with_texts(axis, values);
        if ticks.marks.len() <= MARKS_MAX && fit(scale, &ticks, extent) {
            return ticks;
        }
        last = ticks;
    }
    last.marks.truncate(1);
    last
}

fn with_texts(axis: &Axis, values: Vec<f64>) -> Ticks {
    let (texts, unit) = axis.unit.marks(&values);
    Ticks { marks: values.into_iter().zip(texts).collect(), unit }
}

/// Returns true if texts centred at their marks do not touch, and no two of them are equal.
fn fit(scale: &Scale, ticks: &Ticks, extent: &dyn Fn(&str) -> f64) -> bool {
    ticks.marks.windows(2).all(|pair| {
        let at = |index: usize| scale.coordinate(pair[index].0).unwrap_or_default();
        (at(1) - at(0)).abs() >= (extent(&pair[0].1) + extent(&pair[1].1)) / 2.0 && pair[0].1 != pair[1].1
    })
}

/// Returns sets of round values, the densest first.
fn candidates(axis: &Axis, scale: &Scale) -> Vec<Vec<f64>> {
    match axis.kind {
        ScaleKind::Linear | ScaleKind::FromZero => steps(axis, scale),
        ScaleKind::Logarithmic => {
            let mut sets = if axis.unit.is_binary() { powers_of_two(scale) } else { factors(axis, scale) };
            sets.retain(|values| values.len() >= 2);
            // Less than a decade has more round values on a linear scale.
            if sets.iter().all(|values| values.len() < 3) {
                sets.splice(0..0, steps(axis, scale).into_iter().filter(|values| values.len() >= 3));
            }
            sets
        }
        ScaleKind::Symlog(threshold) => {
            let mut sets = both_sides(scale, threshold);
            sets.retain(|values| values.len() >= 2);
            // A range far from zero may lie between two powers.
            if sets.is_empty() { steps(axis, scale) } else { sets }
        }
    }
}

/// Returns multiples of round steps.
fn steps(axis: &Axis, scale: &Scale) -> Vec<Vec<f64>> {
    let factor = axis.unit.factor();
    let (least, most) = (scale.least * factor, scale.most * factor);
    let span = most - least;
    let (base, multiples): (f64, &[f64]) =
        if axis.unit.is_binary() { (2.0, &[1.0]) } else { (10.0, &[1.0, 2.0, 5.0]) };
    let first_power = (span / 64.0).log(base).floor() as i32;
    let last_power = span.log(base).ceil() as i32;
    let sizes = (first_power..=last_power)
        .flat_map(|power| multiples.iter().map(move |multiple| multiple * base.powi(power)));
    let set = |step: f64| -> Vec<f64> {
        let (first, last) = ((least / step - 1e-9).ceil() as i64, (most / step + 1e-9).floor() as i64);
        (first..=last).map(|number| number as f64 * step / factor).collect()
    };
    // Texts of long axes may be far apart; 45 units are enough for eyes.
    let step_least = span * 45.0 / scale.length().max(45.0);
    sizes.filter(|step| *step >= step_least).map(set).filter(|values| !values.is_empty()).collect()
}

/// Returns powers of ten with multiples between them.
fn factors(axis: &Axis, scale: &Scale) -> Vec<Vec<f64>> {
    let factor = axis.unit.factor();
    let (least, most) = (scale.least * factor, scale.most * factor);
    let powers = least.log10().floor() as i32..=most.log10().ceil() as i32;
    let set = |multiples: &[f64], stride: i32| -> Vec<f64> {
        let powers = powers.clone().filter(|power| power.rem_euclid(stride) == 0);
        let values =
            powers.flat_map(|power| multiples.iter().map(move |multiple| multiple * 10_f64.powi(power)));
        values.filter(|value| (least..=most).contains(value)).map(|value| value / factor).collect()
    };
    let strides = (1..=12).map(|stride| set(&[1.0], stride));
    [set(&[1.0, 2.0, 5.0], 1), set(&[1.0, 3.0], 1)].into_iter().chain(strides).collect()
}

fn powers_of_two(scale: &Scale) -> Vec<Vec<f64>> {
    let powers = scale.least.log2().ceil() as i32..=scale.most.log2().floor() as i32;
    let set = |stride: i32| {
        powers.clone().filter(|power| power.rem_euclid(stride) == 0).map(|power| 2_f64.powi(power)).collect()
    };
    [1, 2, 3, 4, 5, 10, 20].into_iter().map(set).collect()
}

/// Returns zero and powers of ten on both sides of it.
fn both_sides(scale: &Scale, threshold: f64) -> Vec<Vec<f64>> {
    let first = threshold.log10().ceil() as i32;
    let last = scale.most.abs().max(scale.least.abs()).log10().ceil() as i32;
    // Powers near the threshold are close to zero on the axis, so that sets without them follow.
    let set = |least: i32, stride: i32| -> Vec<f64> {
        let powers = (least..=last).filter(|power| (power - least) % stride == 0);
        let powers: Vec<f64> = powers.map(|power| 10_f64.powi(power)).collect();
        let values = powers.iter().rev().map(|value| -value).chain([0.0]).chain(powers.iter().copied());
        values.filter(|value| (scale.least..=scale.most).contains(value)).collect()
    };
    (1..=12)
        .flat_map(|stride| (first..=last).map(move |least| (least, stride)))
        .map(|(least, stride)| set(least, stride))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(ticks: &Ticks) -> Vec<&str> {
        ticks.marks.iter().map(|(_, text)| text.as_str()).collect()
    }

    fn level_of(axis: &Axis, values: &[f64], length: f64) -> Ticks {
        let scale = Scale::over(axis.kind, values.iter().copied(), 0.0, length);
        level(axis, &scale, &[], 12.0)
    }

    #[test]
    fn marks_are_round_numbers() {
        assert_eq!(
            texts(&level_of(&Axis::linear("count"), &[0.0, 93.0], 300.0)),
            ["0", "20", "40", "60", "80"]
        );
        let time = level_of(&Axis::linear("time (us)"), &[0.0, 4_300.0], 300.0);
        assert_eq!((texts(&time), time.unit.as_deref()), (vec!["0", "1", "2", "3", "4"], Some("ms")));
        let share = level_of(&Axis::logarithmic("loss"), &[1e-6, 0.1], 300.0);
        let powers =
            ["10\u{207b}\u{2076}", "10\u{207b}\u{2075}", "10\u{207b}\u{2074}", "0.001", "0.01", "0.1"];
        assert_eq!(texts(&share), powers);
        let bytes = level_of(&Axis::logarithmic("array (B)"), &[4096.0, 4.0 * 1_048_576.0], 400.0);
        assert_eq!(texts(&bytes), ["4 KiB", "16 KiB", "64 KiB", "256 KiB", "1 MiB", "4 MiB"]);
        let both = level_of(&Axis::new("change", ScaleKind::Symlog(1.0)), &[-1e3, 1e3], 400.0);
        assert_eq!(texts(&both), ["-1000", "-100", "-10", "0", "10", "100", "1000"]);
    }

    #[test]
    fn marks_fit_on_any_axis() {
        let ranges =
            [(0.0, 1.0), (1e-9, 1e9), (0.999, 1.0), (5.0, 5.0), (1e5, 9.99e5), (1e-12, 1e-11), (3.0, 4e8)];
        let labels = ["n", "time (ns)", "size (B)", "rate (Gbit/s)", "queue (packets)"];
        for (label, (least, most), length) in labels
            .iter()
            .flat_map(|label| ranges.iter().map(move |range| (*label, *range)))
            .flat_map(|(label, range)| [60.0, 250.0, 700.0].map(|length| (label, range, length)))
        {
            for axis in
                [Axis::linear(label), Axis::logarithmic(label), Axis::new(label, ScaleKind::Symlog(1.0))]
            {
                let scale = Scale::over(axis.kind, [least, most].into_iter(), 0.0, length);
                let ticks = level(&axis, &scale, &[], 12.0);
                assert!(
                    !ticks.marks.is_empty() && ticks.marks.len() <= MARKS_MAX,
                    "{axis:?} {least} {most}: {ticks:?}"
                );
                let mut end = f64::NEG_INFINITY;
                for (value, text) in &ticks.marks {
                    let (at, half) =
                        (scale.coordinate(*value).expect("a position"), crate::text::width(text, 12.0) / 2.0);
                    assert!(at - half > end, "{axis:?} {least} {most} {length}: {ticks:?}");
                    end = at + half;
                }
            }
        }
    }

    #[test]
    fn an_axis_of_whole_numbers_has_no_mark_between_them() {
        for (values, expected) in [(&[3.0][..], &["3"][..]), (&[32.0], &["32"]), (&[1.0, 2.0], &["1", "2"])] {
            let axis = Axis::linear("planes");
            let scale = Scale::over(axis.kind, values.iter().copied(), 0.0, 400.0);
            assert_eq!(texts(&level(&axis, &scale, values, 12.0)), expected, "{values:?}");
        }
        let axis = Axis::linear("share");
        let scale = Scale::over(axis.kind, [1.0, 1.5].into_iter(), 0.0, 400.0);
        assert!(texts(&level(&axis, &scale, &[1.0, 1.5], 12.0)).contains(&"1.2"));
    }

    #[test]
    fn few_values_are_marked_themselves_if_they_fit() {
        let axis = Axis::logarithmic("operations");
        let values = [1.0, 2.0, 4.0, 8.0, 15.0];
        let scale = Scale::over(axis.kind, values.into_iter(), 0.0, 400.0);
        assert_eq!(texts(&level(&axis, &scale, &values, 12.0)), ["1", "2", "4", "8", "15"]);
        let narrow = Scale::over(axis.kind, values.into_iter(), 0.0, 60.0);
        assert!(level(&axis, &narrow, &values, 12.0).marks.len() < 5);
    }
}
