//! Stop of a seat at a named step of its job.
//!
//! A step of a job is too short for a signal from outside. With `RACKLOOM_STOP_AT=n3=step 5 of` in the
//! environment, n3 stops itself (as by SIGSTOP) the first time that its pending conditions contain `step 5
//! of`. An observer can then inspect it, kill it, change its neighbours, or resume it (SIGCONT). Frames that
//! the seat has sent before are in flight.

use rustix::process::{Signal, getpid, kill_process};

/// Environment variable with the seat and the step.
const STOP_VARIABLE: &str = "RACKLOOM_STOP_AT";

/// Step at which this seat stops, if any.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct StopAt(Option<String>);

impl StopAt {
    /// Reads the environment variable for the seat `name`.
    ///
    /// # Errors
    /// The variable is malformed or names none of `names`.
    pub(super) fn of_environment(name: &str, names: &[String]) -> Result<Self, String> {
        match std::env::var(STOP_VARIABLE) {
            Ok(text) => Self::parse(&text, name, names),
            Err(_) => Ok(Self::default()),
        }
    }

    fn parse(text: &str, name: &str, names: &[String]) -> Result<Self, String> {
        let (member, step) = text
            .split_once('=')
            .filter(|(_, step)| !step.is_empty())
            .ok_or_else(|| format!("{STOP_VARIABLE} is `{text}`; hint: write it like `n3=step 5 of`"))?;
        if !names.iter().any(|known| known == member) {
            return Err(format!("{STOP_VARIABLE} names `{member}`; hint: the rack has no such GPU node"));
        }
        Ok(Self((member == name).then(|| step.to_owned())))
    }

    /// Stops the process, once, if the job has reached the named step. `step` describes the current step. It
    /// is called only if a stop is pending.
    pub(super) fn reached(&mut self, step: impl FnOnce() -> String) {
        let Some(wanted) = &self.0 else { return };
        let step = step();
        if step.contains(wanted) {
            self.0 = None;
            tracing::warn!("stops itself, as {STOP_VARIABLE} says: {step}");
            // A process may always signal itself. If the call fails, the job continues and the observer's
            // wait times out.
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
