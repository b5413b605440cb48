//! Raw, ours, raw, ours: both sides see the same minute of the machine.

use std::time::{Duration, Instant};

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
        let comparison = Comparison { raw, ours, goal: Goal::at_least(0.5, 0.75) };
        assert_eq!(comparison.verdict(), Verdict::Noisy);
        assert_eq!(comparison.doubt(), Some(Doubt::Spread(0.4)));
    }
}
