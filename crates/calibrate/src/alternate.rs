//! Raw, ours, raw, ours: both sides see the same minute of the machine.

use std::time::{Duration, Instant};

use crate::distance::{Alternation, OneKind, of_one_kind};
use crate::series::Series;

/// How often the sides take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turns {
    /// Alternations that count.
    pub rounds: u32,
    /// Once this much time has passed, [`Self::ROUNDS_MIN`] are enough.
    pub patience: Option<Duration>,
}

impl Turns {
    /// Of what is asked for, how many alternations are made at the most where only those of one distance count.
    pub const TRIES: u32 = 3;

    /// Fewer than these have no middle.
    pub const ROUNDS_MIN: u32 = 3;

    /// So many, however long it takes.
    #[must_use]
    pub const fn exactly(rounds: u32) -> Self {
        Self { rounds, patience: None }
    }

    fn is_enough(&self, rounds: u32, begun: Instant) -> bool {
        let is_late = || self.patience.is_some_and(|patience| begun.elapsed() >= patience);
        rounds >= self.rounds || (rounds >= Self::ROUNDS_MIN && is_late())
    }

    /// Take one figure again and again. An error ends it.
    ///
    /// # Errors
    /// That of the figure.
    pub fn repeat<E>(&self, mut take: impl FnMut() -> Result<f64, E>) -> Result<Series, E> {
        let (mut series, begun) = (Series::default(), Instant::now());
        while !self.is_enough(series.takes().len() as u32, begun) {
            series.push(take()?);
        }
        Ok(series)
    }

    /// Take both figures in turns, after one turn of each that does not count. An error of either side ends it.
    ///
    /// # Errors
    /// That of the side that failed.
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

    /// Take both figures in turns, with a look at how long a cache line takes there and back before each and after both, and keep the
    /// alternations that found the processors equally far apart: as many as were asked for, out of [`Self::TRIES`] times as many at
    /// the most.
    ///
    /// # Errors
    /// That of the side, or of the look, that failed.
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
    fn the_sides_take_turns_and_the_first_turn_does_not_count() {
        let order = RefCell::new(String::new());
        let step = |name: char, value: f64| {
            order.borrow_mut().push(name);
            Ok::<f64, ()>(value * order.borrow().len() as f64)
        };
        let (raw, ours) = Turns::exactly(2).alternate(|| step('r', 1.0), || step('o', 10.0)).unwrap();
        assert_eq!(*order.borrow(), "rororo");
        assert_eq!((raw.takes(), ours.takes()), (&[3.0, 5.0][..], &[40.0, 60.0][..]));
    }

    #[test]
    fn whoever_has_no_patience_gets_three_rounds_all_the_same() {
        let impatient = Turns { rounds: 9, patience: Some(Duration::ZERO) };
        let one = || Ok::<f64, ()>(1.0);
        let (raw, ours) = impatient.alternate(one, one).unwrap();
        assert_eq!((raw.takes().len(), ours.takes().len()), (3, 3));
        assert_eq!(impatient.repeat(one).unwrap().takes().len(), 3);
        let patient = Turns { patience: Some(Duration::MAX), ..impatient };
        assert_eq!(patient.repeat(one).unwrap().takes().len(), 9);
        assert_eq!(Turns { rounds: 2, ..impatient }.repeat(one).unwrap().takes().len(), 2);
    }

    #[test]
    fn it_goes_on_until_enough_alternations_found_the_processors_equally_far_apart() {
        // Near in every second look-between-looks: only whole alternations at one distance count.
        let looks = [60.0, 60.0, 500.0, 60.0, 60.0, 60.0, 60.0, 60.0, 60.0];
        let mut look = looks.into_iter();
        let mut takes = 0.0;
        let mut take = || {
            takes += 1.0;
            Ok::<f64, ()>(takes)
        };
        let kind = Turns::exactly(2)
            .alternate_at_one_distance(|| Ok(7.0), &mut take, || Ok(look.next().unwrap()))
            .unwrap();
        assert_eq!(kind.ours.takes(), [4.0, 5.0], "the first does not count, nor the two that saw a move");
        assert_eq!((kind.raw.takes().len(), kind.distance.left_out), (2, 2));
    }

    #[test]
    fn where_the_processors_never_stand_still_it_ends_all_the_same() {
        let mut looks = 0;
        let look = || {
            looks += 1;
            Ok::<f64, ()>(if looks % 2 == 0 { 60.0 } else { 500.0 })
        };
        let kind = Turns::exactly(4).alternate_at_one_distance(|| Ok(1.0), || Ok(1.0), look).unwrap();
        assert_eq!((kind.raw.takes().len(), kind.distance.left_out), (0, 12));
    }

    #[test]
    fn an_error_ends_it() {
        let mut turns = 0;
        let mut fail_late = || {
            turns += 1;
            if turns > 2 { Err("broken") } else { Ok(1.0) }
        };
        assert_eq!(Turns::exactly(5).alternate(&mut fail_late, || Ok(1.0)), Err("broken"));
        assert_eq!(turns, 3);
    }

    #[test]
    fn a_loop_that_is_disturbed_now_and_then_is_refused_as_a_measure() {
        // Every third take of the raw loop is held up, as by another guest of the machine.
        let mut take = 0;
        let disturbed = || {
            take += 1;
            Ok::<f64, ()>(if take % 3 == 0 { 60.0 } else { 100.0 })
        };
        let (raw, ours) = Turns::exactly(5).alternate(disturbed, || Ok(95.0)).unwrap();
        let raw = Some(Raw { series: raw, expected: None });
        let comparison = Comparison { raw, ours, goal: Goal::at_least(0.5, 0.75), distance: None };
        assert_eq!(comparison.verdict(), Verdict::Noisy);
        assert_eq!(comparison.doubt(), Some(Doubt::Spread(0.4)));
    }
}
