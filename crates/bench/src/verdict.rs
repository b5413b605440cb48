//! Verdict about a row from its measurement.

use rackloom_calibrate::{Comparison, Doubt, TAKES_MIN};

use crate::measure_error::MeasureError;

/// Result of a row.
pub(super) type Measured = Result<Comparison, MeasureError>;

/// Returns the name of the verdict, and the reason if the name does not state it.
pub(super) fn verdict(measured: &Measured) -> (&'static str, Option<String>) {
    match measured {
        Ok(comparison) => (comparison.verdict().name(), comparison.doubt().map(reason)),
        Err(MeasureError::NotHere(reason)) => ("not measured", Some(reason.clone())),
        Err(MeasureError::Failed(reason)) => ("failed", Some(reason.clone())),
        Err(MeasureError::Interrupted) => ("not measured", Some("interrupted".to_owned())),
    }
}

/// Returns whether a part that should work failed.
pub(super) fn is_broken(measured: &Measured) -> bool {
    matches!(measured, Err(MeasureError::Failed(_)))
}

fn reason(doubt: Doubt) -> String {
    match doubt {
        Doubt::Spread(share) => {
            format!(
                "the measure itself varied by {:.0} %; hint: end what else runs here, and repeat",
                share * 100.0
            )
        }
        Doubt::Torn(share) => format!(
            "ours varied by {:.0} %, and its takes do not agree on a verdict; hint: end what else runs here, and repeat",
            share * 100.0
        ),
        Doubt::Few(takes) => {
            format!("{takes} takes are too few for a spread; hint: `--rounds` {TAKES_MIN} or more")
        }
        Doubt::Moved(agreeing, left_out) => format!(
            "the host moved the two processors: their distance was equal in {agreeing} alternations and differed in {left_out}; hint: repeat"
        ),
        Doubt::Slow(share) => format!(
            "the raw loop reached {share:.2} of what is expected of it, and a slow raw loop flatters; hint: end what else runs here, and repeat"
        ),
    }
}
