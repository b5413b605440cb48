//! Series of takes of one figure.

/// Takes of one figure, in the order of measurement.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    takes: Vec<f64>,
}

impl Series {
    /// Makes a series of these takes.
    #[must_use]
    pub const fn new(takes: Vec<f64>) -> Self {
        Self { takes }
    }

    /// Adds a take.
    pub fn push(&mut self, take: f64) {
        self.takes.push(take);
    }

    /// Returns all takes, in order.
    #[must_use]
    pub fn takes(&self) -> &[f64] {
        &self.takes
    }

    /// Returns the take in the middle, or the mean of the two in the middle; 0 if there are none.
    #[must_use]
    pub fn median(&self) -> f64 {
        let mut sorted = self.takes.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        match sorted.len() {
            0 => 0.0,
            length if length % 2 == 1 => sorted[middle],
            _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
        }
    }

    /// Returns the smallest take, or 0 if there are none.
    #[must_use]
    pub fn min(&self) -> f64 {
        self.takes.iter().copied().min_by(f64::total_cmp).unwrap_or(0.0)
    }

    /// Returns the largest take, or 0 if there are none.
    #[must_use]
    pub fn max(&self) -> f64 {
        self.takes.iter().copied().max_by(f64::total_cmp).unwrap_or(0.0)
    }

    /// Returns the difference of the largest and the smallest take, as a share of the median.
    #[must_use]
    pub fn spread(&self) -> f64 {
        let median = self.median();
        if median > 0.0 { (self.max() - self.min()) / median } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_does_not_depend_on_the_order() {
        assert_eq!(Series::new(vec![9.0, 1.0, 5.0]).median(), 5.0);
        assert_eq!(Series::new(vec![4.0, 1.0, 2.0, 9.0]).median(), 3.0);
        assert_eq!(Series::default().median(), 0.0);
    }

    #[test]
    fn the_spread_is_a_share_of_the_median() {
        let series = Series::new(vec![10.0, 8.0, 11.0]);
        assert_eq!((series.min(), series.max(), series.spread()), (8.0, 11.0, 0.3));
        assert_eq!(Series::new(vec![0.0, 0.0]).spread(), 0.0, "no division by nothing");
    }
}
