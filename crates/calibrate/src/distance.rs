//! How far apart two processors were while their rows were taken.
//!
//! The host of a virtual machine moves its processors as it likes: in one second two of them are threads of one core, and a cache line
//! takes 60 ns there and back, in the next they are cores far apart, and it takes 500. A loop that does nothing but move lines and
//! one that also computes do not slow down alike, so alternations of either kind must not be thrown together. The line is looked at
//! before, between and after the two takes of an alternation ([`Alternation`]); where it changed within one, that says nothing, and of
//! the others those count that most others agree with ([`of_one_kind`]).

use crate::series::Series;

/// Two looks that lie within this factor tell of the same distance: less than lies between two threads of one core and two cores, more
/// than between two looks that nothing came between.
pub const SAME_WITHIN: f64 = 1.8;

/// One take of each side, and what a cache line took there and back around them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Alternation {
    /// The raw loop's figure.
    pub raw: f64,
    /// Ours.
    pub ours: f64,
    /// Nanoseconds: before the raw loop, between both, behind ours.
    pub line_ns: [f64; 3],
}

impl Alternation {
    /// What the line took all the while; `None` if it changed.
    #[must_use]
    pub fn steady_line_ns(&self) -> Option<f64> {
        let looks = Series::new(self.line_ns.to_vec());
        is_same(looks.min(), looks.max()).then(|| looks.median())
    }
}

/// Alternations that can be compared with one another.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OneKind {
    /// The raw loop's takes.
    pub raw: Series,
    /// Ours.
    pub ours: Series,
    /// How far apart the processors were.
    pub distance: Distance,
}

/// How far apart the processors were in the takes that count.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Distance {
    /// A cache line there and back in each alternation, in nanoseconds.
    pub line_ns: Series,
    /// Alternations that do not count, because they found another distance or saw it change.
    pub left_out: usize,
}

fn is_same(least: f64, most: f64) -> bool {
    least > 0.0 && most <= least * SAME_WITHIN
}

/// The largest set of alternations that agree with one of them about the distance.
#[must_use]
pub fn of_one_kind(alternations: &[Alternation]) -> OneKind {
    let agreeing = |line_ns: f64| {
        let agrees = move |other: f64| is_same(line_ns.min(other), line_ns.max(other));
        alternations.iter().filter(move |alternation| alternation.steady_line_ns().is_some_and(agrees))
    };
    let lines = alternations.iter().filter_map(Alternation::steady_line_ns);
    // The first of several that are as large.
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
    fn alternations_of_another_kind_and_those_that_saw_a_move_do_not_count() {
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
    fn of_two_kinds_that_are_as_many_the_first_counts() {
        let (near, far) = ([60.0; 3], [500.0; 3]);
        let kind = of_one_kind(&[alternation(1.0, far), alternation(10.0, near)]);
        assert_eq!((kind.raw.takes(), kind.distance.left_out), (&[1.0][..], 1));
    }

    #[test]
    fn where_the_processors_never_stood_still_nothing_counts() {
        let kind = of_one_kind(&[alternation(1.0, [60.0, 500.0, 60.0]); 3]);
        assert_eq!((kind.raw.takes(), kind.distance.left_out), (&[][..], 3));
        assert_eq!(of_one_kind(&[]), OneKind::default());
    }
}
