//! Raw, ours, raw, ours: both sides see the same minute of the machine.

use crate::series::Series;

/// Take both figures in turns, `rounds` times, after one turn of each that does not count. An error of either side ends it.
///
/// # Errors
/// That of the side that failed.
pub fn alternate<E>(
    rounds: u32,
    mut raw: impl FnMut() -> Result<f64, E>,
    mut ours: impl FnMut() -> Result<f64, E>,
) -> Result<(Series, Series), E> {
    let mut series = (Series::default(), Series::default());
    for round in 0..=rounds {
        let (theirs, mine) = (raw()?, ours()?);
        if round > 0 {
            series.0.push(theirs);
            series.1.push(mine);
        }
    }
    Ok(series)
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
        let (raw, ours) = alternate(2, || step('r', 1.0), || step('o', 10.0)).unwrap();
        assert_eq!(*order.borrow(), "rororo");
        assert_eq!((raw.takes(), ours.takes()), (&[3.0, 5.0][..], &[40.0, 60.0][..]));
    }

    #[test]
    fn an_error_ends_it() {
        let mut turns = 0;
        let mut fail_late = || {
            turns += 1;
            if turns > 2 { Err("broken") } else { Ok(1.0) }
        };
        assert_eq!(alternate(5, &mut fail_late, || Ok(1.0)), Err("broken"));
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
        let (raw, ours) = alternate(5, disturbed, || Ok(95.0)).unwrap();
        let raw = Some(Raw { series: raw, expected: None });
        let comparison = Comparison { raw, ours, goal: Goal::at_least(0.5, 0.75) };
        assert_eq!(comparison.verdict(), Verdict::Noisy);
        assert_eq!(comparison.doubt(), Some(Doubt::Spread(0.4)));
    }
}
