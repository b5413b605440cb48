//! Measurement of a row: raw loop and our run alternate.

use std::cell::Cell;

use rackloom_calibrate::{Alternations, Comparison, Raw};

use super::bench::Bench;
use super::obstacle::Obstacle;
use super::progress::Progress;
use super::row::{Row, Sides};
use super::verdict::Measured;

/// Measures both sides alternately. An interruption ends it before the next take.
pub(super) fn measure(row: &Row, bench: &Bench, turns: Alternations, progress: &Progress) -> Measured {
    let begun = Cell::new(0);
    let begin = |side| {
        progress.turn(begun.replace(begun.get() + 1), side);
        if bench.is_interrupted() { Err(Obstacle::Interrupted) } else { Ok(()) }
    };
    let take = || -> Measured {
        begin("")?;
        let Sides { raw, mut ours, line_ns } = (row.begin)(bench)?;
        let mut ours = || begin("ours").and_then(|()| ours());
        let (raw, ours, distance) = match (raw, line_ns) {
            (Some(mut raw), line_ns) => {
                let raw = || begin("raw loop").and_then(|()| raw());
                let (raw, ours, distance) = match line_ns {
                    Some(line_ns) => {
                        let kind = turns.alternate_at_one_distance(raw, &mut ours, line_ns)?;
                        (kind.raw, kind.ours, Some(kind.distance))
                    }
                    None => {
                        let (raw, ours) = turns.alternate(raw, &mut ours)?;
                        (raw, ours, None)
                    }
                };
                (Some(Raw { series: raw, expected: row.expected }), ours, distance)
            }
            (None, _) => (None, turns.repeat(&mut ours)?, None),
        };
        Ok(Comparison { raw, ours, goal: row.goal, distance })
    };
    // An interrupted take often fails for a reason that follows from the interruption.
    take().map_err(|obstacle| if bench.is_interrupted() { Obstacle::Interrupted } else { obstacle })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use rackloom_calibrate::{Expected, Goal};

    use super::*;
    use crate::row::Unit;
    use crate::verdict::{is_broken, verdict};

    fn row(begin: fn(&Bench) -> Result<Sides<'_>, Obstacle>, expected: Option<Expected>) -> Row {
        let goal = Goal::at_least(0.5, 0.75);
        Row { name: "test", ours: "ours", raw: "raw", unit: Unit::PerSecond, goal, expected, begin }
    }

    /// A raw loop that is held up in every third take.
    fn disturbed(_: &Bench) -> Result<Sides<'_>, Obstacle> {
        let take = Cell::new(0);
        let raw = move || {
            take.set(take.get() + 1);
            Ok(if take.get() % 3 == 0 { 50.0 } else { 100.0 })
        };
        Ok(Sides::new(raw, || Ok(99.0)))
    }

    fn steady(_: &Bench) -> Result<Sides<'_>, Obstacle> {
        Ok(Sides::new(|| Ok(100.0), || Ok(60.0)))
    }

    fn measured(row: &Row) -> Measured {
        measure(row, &Bench::new(true).unwrap(), Alternations::exactly(5), &Progress::begin(1))
    }

    #[test]
    fn a_provoked_noisy_loop_is_refused_and_says_so() {
        let measured = measured(&row(disturbed, None));
        let (word, reason) = verdict(&measured);
        assert_eq!(word, "noisy");
        assert!(reason.unwrap().contains("varied by 50 %"));
        assert!(!is_broken(&measured), "noise is nobody's fault");
    }

    #[test]
    fn a_steady_loop_is_judged_unless_it_is_slower_than_it_should_be() {
        assert_eq!(verdict(&measured(&row(steady, None))), ("floor", None));
        let (word, reason) = verdict(&measured(&row(steady, Some(Expected::new(200.0)))));
        assert_eq!(word, "noisy");
        assert!(reason.unwrap().contains("reached 0.50"));
    }

    #[test]
    fn processors_that_never_stand_still_allow_no_verdict_and_it_says_so() {
        let restless = |_: &Bench| {
            let looks = Cell::new(0);
            let line_ns = move || {
                looks.set(looks.get() + 1);
                Ok(if looks.get() % 2 == 0 { 60.0 } else { 500.0 })
            };
            Ok(Sides::across(|| Ok(100.0), || Ok(60.0), line_ns))
        };
        let (word, reason) = verdict(&measured(&row(restless, None)));
        assert_eq!(word, "noisy");
        assert!(reason.unwrap().contains("0 alternations found them equally far apart and 15 did not"));
    }

    #[test]
    fn what_fails_is_bad_and_what_cannot_be_had_is_not() {
        let fails = measured(&row(|_| Err(Obstacle::Failed("broke".to_owned())), None));
        assert_eq!((verdict(&fails), is_broken(&fails)), (("failed", Some("broke".to_owned())), true));
        let absent = measured(&row(|_| Err(Obstacle::NotHere("forbidden".to_owned())), None));
        assert_eq!((verdict(&absent).0, is_broken(&absent)), ("not measured", false));
    }

    #[test]
    fn who_wants_it_to_end_gets_no_further_take_and_no_figure() {
        let asks = |bench: &Bench| {
            bench.interruption().ask();
            Ok(Sides::new(|| panic!("no take"), || panic!("no take")))
        };
        let interrupted = measured(&row(asks, None));
        assert_eq!(verdict(&interrupted), ("not measured", Some("interrupted".to_owned())));
        assert!(!is_broken(&interrupted));
    }
}
