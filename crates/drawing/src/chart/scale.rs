//! One axis: positions of values, and positions of its marks.

/// Label and kind of an axis.
#[derive(Clone, Copy, Debug)]
pub struct Axis<'a> {
    /// Text beside the axis, with its unit.
    pub label: &'a str,
    /// True if equal steps are equal factors.
    pub is_logarithmic: bool,
}

/// Both axes of a figure.
#[derive(Clone, Copy, Debug)]
pub struct Axes<'a> {
    /// Horizontal.
    pub x: Axis<'a>,
    /// Vertical.
    pub y: Axis<'a>,
    /// Names of the marks 1, 2, ... of a horizontal axis that shows kinds instead of numbers. `Some` with an empty slice if the
    /// legend names the kinds.
    pub names: Option<&'a [&'a str]>,
}

/// An axis with the range of its values and its range of coordinates.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    is_logarithmic: bool,
    least: f64,
    most: f64,
    from: f64,
    to: f64,
}

impl Scale {
    /// Returns a scale that covers all of these values, drawn from `from` to `to`. A logarithmic one leaves out values without a
    /// logarithm.
    pub fn over(axis: Axis<'_>, values: impl Iterator<Item = f64>, from: f64, to: f64) -> Self {
        let values = values.filter(|value| value.is_finite() && (!axis.is_logarithmic || *value > 0.0));
        let (mut least, mut most) = values
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| {
                (least.min(value), most.max(value))
            });
        if least > most {
            (least, most) = (1.0, 2.0);
        }
        if axis.is_logarithmic {
            // Wide enough for two marks, for any values.
            let margin = (most / least).powf(0.05).max(1.1).max((5.0 * least / most).sqrt());
            (least, most) = (least / margin, most * margin);
        } else {
            let margin = ((most - least) * 0.06).max(most.abs() * 0.02).max(1e-9);
            // A range that nearly reaches zero begins there.
            least = if least >= 0.0 && least < (most - least) * 0.6 { 0.0 } else { least - margin };
            most += margin;
        }
        Self { is_logarithmic: axis.is_logarithmic, least, most, from, to }
    }

    /// Returns the coordinate of a value; `None` if the scale does not cover it.
    pub fn coordinate(&self, value: f64) -> Option<f64> {
        let share = if self.is_logarithmic {
            (value > 0.0).then(|| (value / self.least).ln() / (self.most / self.least).ln())?
        } else {
            (value - self.least) / (self.most - self.least)
        };
        share.is_finite().then_some(self.from + share * (self.to - self.from))
    }

    /// Returns the marked values, with their texts.
    pub fn marks(&self) -> Vec<(f64, String)> {
        let values = if self.is_logarithmic { self.factors() } else { self.steps() };
        values.into_iter().map(|value| (value, words(value))).collect()
    }

    fn steps(&self) -> Vec<f64> {
        let rough = (self.most - self.least) / 6.0;
        let power = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power).into_iter().find(|step| *step >= rough);
        let step = step.unwrap_or(power * 10.0);
        let first = (self.least / step).ceil() as i64;
        (first..first + 12)
            .map(|number| number as f64 * step)
            .take_while(|value| *value <= self.most)
            .collect()
    }

    fn factors(&self) -> Vec<f64> {
        let decades = (self.most / self.least).log10();
        let factors: &[f64] = if decades > 4.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let first = self.least.log10().floor() as i32;
        let last = self.most.log10().ceil() as i32;
        let values =
            (first..=last).flat_map(|power| factors.iter().map(move |factor| factor * 10_f64.powi(power)));
        values.filter(|value| (self.least..=self.most).contains(value)).collect()
    }
}

/// Formats a mark: `0.01`, `200`, `50k`, `2M`.
fn words(value: f64) -> String {
    let plain = |value: f64| {
        let text = format!("{value:.6}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    match value.abs() {
        0.0 => "0".to_owned(),
        size if size >= 1e9 => format!("{}G", plain(value / 1e9)),
        size if size >= 1e6 => format!("{}M", plain(value / 1e6)),
        size if size >= 1e4 => format!("{}k", plain(value / 1e3)),
        size if size < 1e-3 => format!("{value:.0e}"),
        _ => plain(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scale(is_logarithmic: bool, values: &[f64]) -> Scale {
        Scale::over(Axis { label: "", is_logarithmic }, values.iter().copied(), 0.0, 100.0)
    }

    #[test]
    fn every_value_is_within_the_axis() {
        for (is_logarithmic, values) in
            [(false, &[3.0, 7.0][..]), (true, &[1e-6, 4.0]), (false, &[5.0]), (true, &[5.0])]
        {
            let scale = scale(is_logarithmic, values);
            for value in values {
                let coordinate = scale.coordinate(*value).unwrap();
                assert!((0.0..=100.0).contains(&coordinate), "{value} at {coordinate}");
            }
            assert!(scale.marks().len() >= 2, "{:?}", scale.marks());
        }
        assert_eq!(scale(true, &[1.0, 2.0]).coordinate(0.0), None);
        assert!(scale(false, &[]).marks().len() >= 2, "an empty figure has axes");
    }

    #[test]
    fn equal_factors_are_equal_steps_on_a_logarithmic_axis() {
        let scale = scale(true, &[1.0, 10_000.0]);
        let coordinate = |value| scale.coordinate(value).unwrap();
        assert!(
            (coordinate(100.0) - coordinate(10.0) - (coordinate(1_000.0) - coordinate(100.0))).abs() < 1e-9
        );
    }

    #[test]
    fn marks_are_round_numbers() {
        let marks: Vec<String> =
            scale(false, &[0.0, 93.0]).marks().into_iter().map(|(_, words)| words).collect();
        assert_eq!(marks, ["0", "20", "40", "60", "80"]);
        let marks: Vec<String> =
            scale(true, &[1e-4, 0.01]).marks().into_iter().map(|(_, words)| words).collect();
        assert_eq!(marks, ["1e-4", "2e-4", "5e-4", "0.001", "0.002", "0.005", "0.01"]);
        assert_eq!([50_000.0, 2e6, 1.5e9, 3e-6].map(words), ["50k", "2M", "1.5G", "3e-6"]);
    }
}
