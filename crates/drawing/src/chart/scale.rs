//! Positions of values along an axis.

use super::axis::ScaleKind;

/// Scale with the range of its values and its range of coordinates.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    kind: ScaleKind,
    pub(super) least: f64,
    pub(super) most: f64,
    from: f64,
    to: f64,
}

impl Scale {
    /// Returns a scale that covers all of these values, drawn from `from` to `to`. A logarithmic one leaves out values without a
    /// logarithm.
    pub(super) fn over(kind: ScaleKind, values: impl Iterator<Item = f64>, from: f64, to: f64) -> Self {
        let is_logarithmic = kind == ScaleKind::Logarithmic;
        let values = values.filter(|value| value.is_finite() && (!is_logarithmic || *value > 0.0));
        let (mut least, mut most) = values
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| {
                (least.min(value), most.max(value))
            });
        if least > most {
            (least, most) = if is_logarithmic { (1.0, 10.0) } else { (0.0, 1.0) };
        }
        match kind {
            ScaleKind::Logarithmic => {
                // Wide enough for two marks, for any values.
                let margin = (most / least).powf(0.05).max(1.1).max((5.0 * least / most).sqrt());
                (least, most) = (least / margin, most * margin);
            }
            ScaleKind::Symlog(threshold) => {
                let reach = |value: f64| (value.abs() / threshold).ln_1p().copysign(value);
                let back = |reach: f64| (reach.abs().exp_m1() * threshold).copysign(reach);
                let margin = ((reach(most) - reach(least)) * 0.05).max(0.05);
                let is_from_zero = least == 0.0;
                (least, most) = (back(reach(least) - margin), back(reach(most) + margin));
                least = if is_from_zero { 0.0 } else { least };
            }
            ScaleKind::FromZero => {
                let margin = ((most.max(0.0) - least.min(0.0)) * 0.06).max(f64::MIN_POSITIVE);
                least = if least < 0.0 { least - margin } else { 0.0 };
                most = if most > 0.0 {
                    most + margin
                } else if least < 0.0 {
                    0.0
                } else {
                    1.0
                };
            }
            ScaleKind::Linear => {
                let margin = ((most - least) * 0.06).max(most.abs() * 0.02).max(least.abs() * 0.02);
                let margin = if margin > 0.0 { margin } else { 0.5 };
                // A range that nearly reaches zero begins there.
                least = if least >= 0.0 && least < (most - least) * 0.6 { 0.0 } else { least - margin };
                most += margin;
            }
        }
        Self { kind, least, most, from, to }
    }

    /// Returns a scale of exactly this range.
    pub(super) const fn of_range(least: f64, most: f64, from: f64, to: f64) -> Self {
        Self { kind: ScaleKind::Linear, least, most, from, to }
    }

    /// Returns the coordinate of a value; `None` if the scale does not cover it.
    pub(super) fn coordinate(&self, value: f64) -> Option<f64> {
        let (least, most, value) =
            (self.stretched(self.least)?, self.stretched(self.most)?, self.stretched(value)?);
        let share = (value - least) / (most - least);
        (-1e-9..=1.0 + 1e-9).contains(&share).then_some(self.from + share * (self.to - self.from))
    }

    /// Returns the coordinate of the value that is nearest to this one on the scale.
    pub(super) fn nearest(&self, value: f64) -> Option<f64> {
        value.is_finite().then(|| self.coordinate(value.clamp(self.least, self.most))).flatten()
    }

    /// Returns the lesser coordinate of both ends.
    pub(super) const fn begin(&self) -> f64 {
        self.from.min(self.to)
    }

    /// Returns the greater coordinate of both ends.
    pub(super) const fn end(&self) -> f64 {
        self.from.max(self.to)
    }

    /// Returns the length of the axis.
    pub(super) const fn length(&self) -> f64 {
        (self.to - self.from).abs()
    }

    fn stretched(&self, value: f64) -> Option<f64> {
        let stretched = match self.kind {
            ScaleKind::Linear | ScaleKind::FromZero => value,
            ScaleKind::Logarithmic => (value > 0.0).then(|| value.ln())?,
            ScaleKind::Symlog(threshold) => (value.abs() / threshold).ln_1p().copysign(value),
        };
        stretched.is_finite().then_some(stretched)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_within_the_axis() {
        use ScaleKind::{FromZero, Linear, Logarithmic, Symlog};
        for (kind, values) in [
            (Linear, &[3.0, 7.0][..]),
            (Linear, &[5.0]),
            (Linear, &[0.0]),
            (Linear, &[-5.0, -4.0]),
            (FromZero, &[8.0]),
            (FromZero, &[0.0]),
            (FromZero, &[-5.0, -4.0]),
            (FromZero, &[-5.0, 3.0]),
            (Logarithmic, &[1e-6, 4.0]),
            (Logarithmic, &[5.0]),
            (Symlog(1.0), &[-1e6, 0.0, 1e6]),
        ] {
            let scale = Scale::over(kind, values.iter().copied(), 0.0, 100.0);
            let coordinates: Vec<f64> =
                values.iter().map(|value| scale.coordinate(*value).expect("a position")).collect();
            assert!(
                coordinates.is_sorted() && coordinates.iter().all(|at| (0.0..=100.0).contains(at)),
                "{coordinates:?}"
            );
        }
        let scale = Scale::over(Logarithmic, [1.0, 2.0].into_iter(), 0.0, 100.0);
        assert_eq!((scale.coordinate(0.0), scale.coordinate(f64::NAN)), (None, None));
    }

    #[test]
    fn zero_is_on_an_axis_that_begins_there() {
        for values in [&[8.0, 8.1][..], &[0.0], &[-3.0, -2.0], &[-1.0, 5.0]] {
            let scale = Scale::over(ScaleKind::FromZero, values.iter().copied(), 0.0, 100.0);
            assert!(scale.coordinate(0.0).is_some(), "{values:?}");
        }
        assert!(Scale::over(ScaleKind::Linear, [8.0, 8.1].into_iter(), 0.0, 100.0).coordinate(0.0).is_none());
    }

    #[test]
    fn equal_factors_are_equal_distances_on_a_logarithmic_axis() {
        let scale = Scale::over(ScaleKind::Logarithmic, [1.0, 10_000.0].into_iter(), 0.0, 100.0);
        let at = |value| scale.coordinate(value).expect("a position");
        assert!((at(100.0) - at(10.0) - (at(1_000.0) - at(100.0))).abs() < 1e-9);
    }

    #[test]
    fn both_sides_of_a_symmetric_axis_are_equal_and_zero_has_a_position() {
        let scale = Scale::over(ScaleKind::Symlog(1.0), [-1e4, 1e4].into_iter(), 0.0, 100.0);
        let at = |value| scale.coordinate(value).expect("a position");
        assert!((at(0.0) - 50.0).abs() < 1e-9 && (at(100.0) + at(-100.0) - 100.0).abs() < 1e-9);
        assert!(at(1e4) - at(1e3) > 5.0 && at(10.0) - at(1.0) > 5.0);
    }
}
