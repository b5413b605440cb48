//! The time of an algorithm over the size of its array, from a few measured points.
//!
//! Between two points the time is a straight line, because a schedule costs a latency plus a time per byte. Beyond the last point the
//! line of the last two continues. This file does not measure.

/// Measured times of one algorithm on one rack, by size.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curve {
    /// Bytes and nanoseconds, by bytes; each size once.
    points: Vec<(f64, f64)>,
}

impl Curve {
    /// Creates a curve through these points of (bytes, nanoseconds). Of two points of one size the first counts.
    #[must_use]
    pub fn new(points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let mut points: Vec<_> = points.into_iter().collect();
        points.sort_by(|left, right| left.0.total_cmp(&right.0));
        points.dedup_by(|later, earlier| later.0 == earlier.0);
        Self { points }
    }

    /// Returns the expected nanoseconds at this size; `None` without any point. `closed_form` is the time that a
    /// model expects of a size: it determines the slope if only one point is known.
    #[must_use]
    pub fn time_ns(&self, bytes: f64, closed_form: impl Fn(f64) -> f64) -> Option<f64> {
        let first = *self.points.first()?;
        if self.points.len() == 1 {
            return Some((first.1 + closed_form(bytes) - closed_form(first.0)).max(first.1));
        }
        if bytes <= first.0 {
            return Some(first.1);
        }
        let above = self.points.iter().position(|point| bytes <= point.0).unwrap_or(self.points.len() - 1);
        let (left, right) = (self.points[above - 1], self.points[above]);
        let slope = (right.1 - left.1) / (right.0 - left.0);
        // A disturbed point must not make large arrays cheaper than small ones.
        let slope = if bytes > right.0 { slope.max(0.0) } else { slope };
        let from = if bytes > right.0 { right } else { left };
        Some(from.1 + slope * (bytes - from.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unknown(_: f64) -> f64 {
        f64::NAN
    }

    #[test]
    fn the_curve_contains_its_points_and_lines_between_and_beyond_them() {
        let curve = Curve::new([(1000.0, 300.0), (8.0, 100.0), (2000.0, 500.0), (8.0, 7.0)]);
        let at = |bytes| curve.time_ns(bytes, unknown).unwrap();
        assert_eq!([at(8.0), at(1000.0), at(2000.0)], [100.0, 300.0, 500.0]);
        assert_eq!([at(0.0), at(1500.0), at(12_000.0)], [100.0, 400.0, 2500.0]);
    }

    #[test]
    fn one_point_grows_as_the_closed_form_does_and_never_shrinks() {
        let curve = Curve::new([(8.0, 1000.0)]);
        assert_eq!(curve.time_ns(108.0, |bytes| 50.0 + 2.0 * bytes), Some(1200.0));
        assert_eq!(curve.time_ns(108.0, |bytes| -bytes), Some(1000.0));
        assert_eq!(Curve::default().time_ns(8.0, unknown), None);
    }

    #[test]
    fn a_disturbed_point_makes_nothing_beyond_it_cheaper() {
        let curve = Curve::new([(8.0, 900.0), (64.0, 100.0)]);
        assert_eq!(curve.time_ns(1e6, unknown), Some(100.0));
    }
}
