//! Distance of two processors during a measurement.
//!
//! The host of a virtual machine moves its virtual processors. At one time two of them are threads of one core, and the round trip of a
//! cache line takes 60 ns; a second later they are separate cores, and it takes 500 ns. A loop that only moves lines and
//! one that also computes do not slow down alike, so alternations at different distances are not comparable. The round trip is measured
//! before, between and after the two takes of an alternation ([`Alternation`]). An alternation during which it changed does not count.
//! Of the others, the largest set that agrees counts ([`of_one_kind`]).

use crate::series::Series;

/// Highest ratio of two round trips at the same distance. It is lower than the ratio between two cores and two threads of one core, and
/// higher than the variation of undisturbed round trips.
pub const SAME_WITHIN: f64 = 1.8;

/// One take of each side, with the round trips of a cache line around them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Alternation {
    /// Figure of the raw loop.
    pub raw: f64,
    /// Figure of ours.
    pub ours: f64,
    /// Round trips in nanoseconds: before the raw loop, between both, after ours.
    pub line_ns: [f64; 3],
}

impl Alternation {
    /// Returns the round trip in nanoseconds, or `None` if it changed.
    #[must_use]
    pub fn steady_line_ns(&self) -> Option<f64> {
        let looks = Series::new(self.line_ns.to_vec());
        is_same(looks.min(), looks.max()).then(|| looks.median())
    }
}

/// Alternations that are comparable.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OneKind {
    /// Takes of the raw loop.
    pub raw: Series,
    /// Takes of ours.
    pub ours: Series,
    /// Distance of the processors.
    pub distance: Distance,
}

/// Distance of the processors during the takes that count.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Distance {
    /// Round trip of a cache line in each alternation, in nanoseconds.
    pub line_ns: Series,
    /// Number of alternations that do not count, because the distance was another one or changed.
    pub left_out: usize,
}

fn is_same(least: f64, most: f64) -> bool {
    least > 0.0 && most <= least * SAME_WITHIN
}

/// Returns the largest set of alternations that agree with one of them about the distance.
#[must_use]
pub fn of_one_kind(alternations: &[Alternation]) -> OneKind {
    let agreeing = |line_ns: f64| {
        let agrees = move |other: f64| is_same(line_ns.min(other), line_ns.max(other));
        alternations.iter().filter(move |alternation| alternation.steady_line_ns().is_some_and(agrees))
    };
    let lines = alternations.iter().filter_map(Alternation::steady_line_ns);
    // The first of several sets of equal size.
    let Some(line_ns) = lines.rev().max_by_key(|line_ns| agreeing(*line_ns).count()) else {
        return OneKind {
            distance: Distance { left_out: alternations.len(), ..Distance::default() },
            ..OneKind::default()
        };
    };
    let mut kind = OneKind::default();
    for alternation in agreeing(line_ns) {
        kind.raw.push(alternation.raw);
        kind.ours.push(alternation.ours);
        kind.distance.line_ns.push(alternation.steady_line_ns().unwrap_or_default());
    }
    kind.distance.left_out = alternations.len() - kind.raw.takes().len();
    kind
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alternation(raw: f64, line_ns: [f64; 3]) -> Alternation {
        Alternation { raw, ours: raw / 2.0, line_ns }
    }

    #[test]
    fn alternations_at_another_or_changing_distance_do_not_count() {
        let (near, far) = ([60.0, 75.0, 61.0], [520.0, 480.0, 500.0]);
        let kind = of_one_kind(&[
            alternation(1.0, far),
            alternation(10.0, near),
            alternation(5.0, [60.0, 500.0, 500.0]),
            alternation(11.0, [70.0, 70.0, 90.0]),
        ]);
        assert_eq!((kind.raw.takes(), kind.ours.takes()), (&[10.0, 11.0][..], &[5.0, 5.5][..]));
        assert_eq!((kind.distance.line_ns.takes(), kind.distance.left_out), (&[61.0, 70.0][..], 2));
    }

    #[test]
    fn the_first_of_two_equal_sets_counts() {
        let (near, far) = ([60.0; 3], [500.0; 3]);
        let kind = of_one_kind(&[alternation(1.0, far), alternation(10.0, near)]);
        assert_eq!((kind.raw.takes(), kind.distance.left_out), (&[1.0][..], 1));
    }

    #[test]
    fn an_always_changing_distance_leaves_no_alternation() {
        let kind = of_one_kind(&[alternation(1.0, [60.0, 500.0, 60.0]); 3]);
        assert_eq!((kind.raw.takes(), kind.distance.left_out), (&[][..], 3));
        assert_eq!(of_one_kind(&[]), OneKind::default());
    }
}
