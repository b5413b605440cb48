//! Stop of a seat at a named step of its job.
//!
//! A step of a job is too short to be hit from outside. With `RACKLOOM_STOP_AT=n3=step 5 of` in the environment, n3 stops itself (as by
//! SIGSTOP) the first time that its pending conditions contain `step 5 of`. An observer can then inspect it, kill it, change its neighbours, or
//! resume it (SIGCONT). Frames that the seat has sent before are in flight.

use rustix::process::{Signal, getpid, kill_process};

/// Environment variable with the seat and the step.
const STOP_VARIABLE: &str = "RACKLOOM_STOP_AT";

/// Step at which this seat stops, if any.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct StopAt(Option<String>);

impl StopAt {
    /// What the environment says about the seat `name`. An error if it says nothing that one of `names` could follow.
    pub(super) fn of_environment(name: &str, names: &[String]) -> Result<Self, String> {
        match std::env::var(STOP_VARIABLE) {
            Ok(text) => Self::parse(&text, name, names),
            Err(_) => Ok(Self::default()),
        }
    }

    fn parse(text: &str, name: &str, names: &[String]) -> Result<Self, String> {
        let (who, place) = text
            .split_once('=')
            .filter(|(_, place)| !place.is_empty())
            .ok_or_else(|| format!("{STOP_VARIABLE} is `{text}`; hint: write it like `n3=step 5 of`"))?;
        if !names.iter().any(|known| known == who) {
            return Err(format!("{STOP_VARIABLE} names `{who}`; hint: the rack has no such GPU node"));
        }
        Ok(Self((who == name).then(|| place.to_owned())))
    }

    /// Stop, once, if the job is where it was said. `place` is asked only where somebody wants to know.
    pub(super) fn reached(&mut self, place: impl FnOnce() -> String) {
        let Some(wanted) = &self.0 else { return };
        let place = place();
        if place.contains(wanted) {
            self.0 = None;
            tracing::warn!("stops itself, as {STOP_VARIABLE} says: {place}");
            // A process may always signal itself; if not, it goes on and whoever waits for it to stop says so.
            let _ = kill_process(getpid(), Signal::STOP);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::StopAt;

    fn parse(text: &str) -> Result<StopAt, String> {
        StopAt::parse(text, "n1", &["n0".to_owned(), "n1".to_owned()])
    }

    #[test]
    fn only_the_named_seat_stops() {
        assert_eq!(parse("n1=step 5 of"), Ok(StopAt(Some("step 5 of".to_owned()))));
        assert_eq!(parse("n0=step 5 of"), Ok(StopAt(None)));
    }

    #[test]
    fn a_malformed_value_is_refused() {
        for text in ["", "n1", "n1=", "n7=step 5 of", "=step"] {
            assert!(parse(text).is_err_and(|what| what.contains("hint:")), "{text}");
        }
    }
}
