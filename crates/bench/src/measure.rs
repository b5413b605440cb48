//! Measurement of a row: raw loop and own run alternate.

use std::cell::Cell;

use rackloom_calibrate::{Alternations, Comparison, Raw};

use crate::bench::Bench;
use crate::measure_error::MeasureError;
use crate::output::progress::Progress;
use crate::row::{Row, Sides};
use crate::verdict::Measured;

/// Measures both sides alternately. An interruption ends the measurement before the next take.
pub(super) fn measure(row: &Row, bench: &Bench, alternations: Alternations, progress: &Progress) -> Measured {
    let begun = Cell::new(0);
    let begin = |side| {
        progress.take(begun.replace(begun.get() + 1), side);
        if bench.is_interrupted() { Err(MeasureError::Interrupted) } else { Ok(()) }
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
                        let kind = alternations.alternate_at_one_distance(raw, &mut ours, line_ns)?;
                        (kind.raw, kind.ours, Some(kind.distance))
                    }
                    None => {
                        let (raw, ours) = alternations.alternate(raw, &mut ours)?;
                        (raw, ours, None)
                    }
                };
                (Some(Raw { series: raw, expected: row.expected }), ours, distance)
            }
            (None, _) => (None, alternations.repeat(&mut ours)?, None),
        };
        Ok(Comparison { raw, ours, goal: row.goal, distance })
    };
    // An interrupted take often fails because of the interruption.
    take().map_err(|error| if bench.is_interrupted() { MeasureError::Interrupted } else { error })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use rackloom_calibrate::{Expected, Goal};

    use super::*;
    use crate::row::Unit;
    use crate::verdict::{is_broken, verdict};

    fn row(begin: fn(&Bench) -> Result<Sides<'_>, MeasureError>, expected: Option<Expected>) -> Row {
        let goal = Goal::at_least(0.5, 0.75);
        Row { name: "test", ours: "ours", raw: "raw", unit: Unit::PerSecond, goal, expected, begin }
    }

    /// Sides with a raw loop that is disturbed in every third take.
    fn disturbed(_: &Bench) -> Result<Sides<'_>, MeasureError> {
        let take = Cell::new(0);
        let raw = move || {
            take.set(take.get() + 1);
            Ok(if take.get() % 3 == 0 { 50.0 } else { 100.0 })
        };
        Ok(Sides::new(raw, || Ok(99.0)))
    }

    fn steady(_: &Bench) -> Result<Sides<'_>, MeasureError> {
        Ok(Sides::new(|| Ok(100.0), || Ok(60.0)))
    }

    fn measured(row: &Row) -> Measured {
        measure(row, &Bench::new(true).unwrap(), Alternations::exactly(5), &Progress::begin(1))
    }

    #[test]
    fn a_noisy_raw_loop_gives_no_verdict_and_a_reason() {
        let measured = measured(&row(disturbed, None));
        let (name, reason) = verdict(&measured);
        assert_eq!(name, "noisy");
        assert!(reason.unwrap().contains("varied by 50 %"));
        assert!(!is_broken(&measured), "noise is no failure");
    }

    #[test]
    fn a_steady_loop_is_judged_unless_it_is_slower_than_expected() {
        assert_eq!(verdict(&measured(&row(steady, None))), ("floor", None));
        let (name, reason) = verdict(&measured(&row(steady, Some(Expected::new(200.0)))));
        assert_eq!(name, "noisy");
        assert!(reason.unwrap().contains("reached 0.50"));
    }

    #[test]
    fn processors_whose_distance_changes_give_no_verdict_and_a_reason() {
        let changing_distance = |_: &Bench| {
            let readings = Cell::new(0);
            let line_ns = move || {
                readings.set(readings.get() + 1);
                Ok(if readings.get() % 2 == 0 { 60.0 } else { 500.0 })
            };
            Ok(Sides::across(|| Ok(100.0), || Ok(60.0), line_ns))
        };
        let (name, reason) = verdict(&measured(&row(changing_distance, None)));
        assert_eq!(name, "noisy");
        assert!(reason.unwrap().contains("equal in 0 alternations and differed in 15"));
    }

    #[test]
    fn a_failure_is_bad_and_a_missing_feature_is_not() {
        let fails = measured(&row(|_| Err(MeasureError::Failed("broke".to_owned())), None));
        assert_eq!((verdict(&fails), is_broken(&fails)), (("failed", Some("broke".to_owned())), true));
        let absent = measured(&row(|_| Err(MeasureError::NotHere("forbidden".to_owned())), None));
        assert_eq!((verdict(&absent).0, is_broken(&absent)), ("not measured", false));
    }

    #[test]
    fn an_interruption_ends_the_takes_without_a_figure() {
        let interrupts = |bench: &Bench| {
            bench.interruption().request();
            Ok(Sides::new(|| panic!("no take"), || panic!("no take")))
        };
        let interrupted = measured(&row(interrupts, None));
        assert_eq!(verdict(&interrupted), ("not measured", Some("interrupted".to_owned())));
        assert!(!is_broken(&interrupted));
    }
}
