//! Alternation of a raw loop and ours, so that both run under the same load of the machine.

use std::time::{Duration, Instant};

use crate::distance::{Alternation, OneKind, of_one_kind};
use crate::series::Series;

/// Number of alternations of the two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alternations {
    /// Alternations that count.
    pub rounds: u32,
    /// Time after which [`Self::ROUNDS_MIN`] alternations are enough.
    pub time_limit: Option<Duration>,
}

impl Alternations {
    /// Factor between the requested and the highest number of alternations, if only those at one distance count.
    pub const TRIES: u32 = 3;

    /// Lowest number of alternations: fewer have no middle.
    pub const ROUNDS_MIN: u32 = 3;

    /// Makes a limit of exactly `rounds` alternations, without a time limit.
    #[must_use]
    pub const fn exactly(rounds: u32) -> Self {
        Self { rounds, time_limit: None }
    }

    fn is_enough(&self, rounds: u32, begun: Instant) -> bool {
        let is_late = || self.time_limit.is_some_and(|limit| begun.elapsed() >= limit);
        rounds >= self.rounds || (rounds >= Self::ROUNDS_MIN && is_late())
    }

    /// Takes one figure repeatedly. An error ends it.
    ///
    /// # Errors
    /// Any error of the figure.
    pub fn repeat<E>(&self, mut take: impl FnMut() -> Result<f64, E>) -> Result<Series, E> {
        let (mut series, begun) = (Series::default(), Instant::now());
        while !self.is_enough(series.takes().len() as u32, begun) {
            series.push(take()?);
        }
        Ok(series)
    }

    /// Takes both figures alternately, after one take of each that does not count. An error of either side ends it.
    ///
    /// # Errors
    /// The error of the side that failed.
    pub fn alternate<E>(
        &self,
        mut raw: impl FnMut() -> Result<f64, E>,
        mut ours: impl FnMut() -> Result<f64, E>,
    ) -> Result<(Series, Series), E> {
        let begun = Instant::now();
        let mut series = (Series::default(), Series::default());
        raw()?;
        ours()?;
        while !self.is_enough(series.0.takes().len() as u32, begun) {
            series.0.push(raw()?);
            series.1.push(ours()?);
        }
        Ok(series)
    }

    /// Takes both figures alternately, with a round trip of a cache line before each take and after the last. Keeps the
    /// alternations at which the processors had the same distance. Makes at most [`Self::TRIES`] times the requested number of
    /// alternations.
    ///
    /// # Errors
    /// The error of the side, or of the round trip, that failed.
    pub fn alternate_at_one_distance<E>(
        &self,
        mut raw: impl FnMut() -> Result<f64, E>,
        mut ours: impl FnMut() -> Result<f64, E>,
        mut line_ns: impl FnMut() -> Result<f64, E>,
    ) -> Result<OneKind, E> {
        let (begun, mut alternations) = (Instant::now(), Vec::new());
        raw()?;
        ours()?;
        let mut before = line_ns()?;
        loop {
            let kind = of_one_kind(&alternations);
            let tries = alternations.len() as u32;
            if self.is_enough(kind.raw.takes().len() as u32, begun) || tries >= Self::TRIES * self.rounds {
                return Ok(kind);
            }
            let raw = raw()?;
            let between = line_ns()?;
            let ours = ours()?;
            let after = line_ns()?;
            alternations.push(Alternation { raw, ours, line_ns: [before, between, after] });
            before = after;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::compare::{Comparison, Doubt, Goal, Raw, Verdict};

    #[test]
    fn sides_alternate_and_the_first_takes_do_not_count() {
        let order = RefCell::new(String::new());
        let step = |name: char, value: f64| {
            order.borrow_mut().push(name);
            Ok::<f64, ()>(value * order.borrow().len() as f64)
        };
        let (raw, ours) = Alternations::exactly(2).alternate(|| step('r', 1.0), || step('o', 10.0)).unwrap();
        assert_eq!(*order.borrow(), "rororo");
        assert_eq!((raw.takes(), ours.takes()), (&[3.0, 5.0][..], &[40.0, 60.0][..]));
    }

    #[test]
    fn an_expired_time_limit_still_allows_three_rounds() {
        let limited = Alternations { rounds: 9, time_limit: Some(Duration::ZERO) };
        let one = || Ok::<f64, ()>(1.0);
        let (raw, ours) = limited.alternate(one, one).unwrap();
        assert_eq!((raw.takes().len(), ours.takes().len()), (3, 3));
        assert_eq!(limited.repeat(one).unwrap().takes().len(), 3);
        let unhurried = Alternations { time_limit: Some(Duration::MAX), ..limited };
        assert_eq!(unhurried.repeat(one).unwrap().takes().len(), 9);
        assert_eq!(Alternations { rounds: 2, ..limited }.repeat(one).unwrap().takes().len(), 2);
    }

    #[test]
    fn alternations_continue_until_enough_have_one_distance() {
        // Every second round trip is short. Only whole alternations at one distance count.
        let looks = [60.0, 60.0, 500.0, 60.0, 60.0, 60.0, 60.0, 60.0, 60.0];
        let mut look = looks.into_iter();
        let mut takes = 0.0;
        let mut take = || {
            takes += 1.0;
            Ok::<f64, ()>(takes)
        };
        let kind = Alternations::exactly(2)
            .alternate_at_one_distance(|| Ok(7.0), &mut take, || Ok(look.next().unwrap()))
            .unwrap();
        assert_eq!(
            kind.ours.takes(),
            [4.0, 5.0],
            "the first does not count, nor the two during which the distance changed"
        );
        assert_eq!((kind.raw.takes().len(), kind.distance.left_out), (2, 2));
    }

    #[test]
    fn a_distance_that_always_changes_ends_the_measurement() {
        let mut looks = 0;
        let look = || {
            looks += 1;
            Ok::<f64, ()>(if looks % 2 == 0 { 60.0 } else { 500.0 })
        };
        let kind = Alternations::exactly(4).alternate_at_one_distance(|| Ok(1.0), || Ok(1.0), look).unwrap();
        assert_eq!((kind.raw.takes().len(), kind.distance.left_out), (0, 12));
    }

    #[test]
    fn an_error_ends_the_measurement() {
        let mut turns = 0;
        let mut fail_late = || {
            turns += 1;
            if turns > 2 { Err("broken") } else { Ok(1.0) }
        };
        assert_eq!(Alternations::exactly(5).alternate(&mut fail_late, || Ok(1.0)), Err("broken"));
        assert_eq!(turns, 3);
    }

    #[test]
    fn an_occasionally_disturbed_loop_is_no_measure() {
        // Every third take of the raw loop is delayed, as by another guest of the machine.
        let mut take = 0;
        let disturbed = || {
            take += 1;
            Ok::<f64, ()>(if take % 3 == 0 { 60.0 } else { 100.0 })
        };
        let (raw, ours) = Alternations::exactly(5).alternate(disturbed, || Ok(95.0)).unwrap();
        let raw = Some(Raw { series: raw, expected: None });
        let comparison = Comparison { raw, ours, goal: Goal::at_least(0.5, 0.75), distance: None };
        assert_eq!(comparison.verdict(), Verdict::Noisy);
        assert_eq!(comparison.doubt(), Some(Doubt::Spread(0.4)));
    }
}
