//! Failure without a report: cause, location, hint and exit code.
//!
//! A failed check of a run is a report with the verdict "fail", not a failure in this sense.

use std::fmt;
use std::path::Path;

use rackloom_plan::printable;

use super::exit::Exit;

/// Separates cause and remedy in an error of one line.
const HINT_SEPARATOR: &str = "; hint: ";

/// Error of an operation on a rack, for its user.
#[derive(Debug)]
pub struct Failure {
    /// Outcome, which decides the exit code of the command.
    pub exit: Exit,
    what: String,
    location: Option<String>,
    hint: Option<String>,
}

impl Failure {
    /// Returns a failure with its cause.
    pub fn new(exit: Exit, what: impl Into<String>) -> Self {
        Self { exit, what: what.into(), location: None, hint: None }
    }

    /// Returns a failure that options or a file cause.
    pub fn bad_input(what: impl Into<String>) -> Self {
        Self::new(Exit::BadInput, what)
    }

    /// Returns a failure that the machine causes.
    pub fn could_not_start(what: impl Into<String>, cause: impl fmt::Display) -> Self {
        Self::new(Exit::CouldNotStart, format!("{}: {cause}", what.into()))
    }

    /// Returns a failure from the text of an error. Libraries and seats report an error in one line, which is its cause, or the cause,
    /// `; hint: ` and a remedy.
    pub fn of_line(exit: Exit, line: &str) -> Self {
        match line.split_once(HINT_SEPARATOR) {
            Some((what, hint)) => Self::new(exit, what).hint(hint),
            None => Self::new(exit, line),
        }
    }

    /// Returns true if the failure has a remedy.
    #[must_use]
    pub const fn has_hint(&self) -> bool {
        self.hint.is_some()
    }

    /// Adds the location of the mistake, in one line.
    #[must_use]
    pub fn at(mut self, location: impl Into<String>) -> Self {
        self.location = Some(printable(&location.into()).into_owned());
        self
    }

    /// Adds the file of the mistake.
    #[must_use]
    pub fn at_path(self, path: &Path) -> Self {
        self.at(path.display().to_string())
    }

    /// Adds a remedy.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Returns the failure with its cause and its remedy in other terms.
    #[must_use]
    pub fn rephrased(mut self, rephrase: impl Fn(&str) -> String) -> Self {
        self.what = rephrase(&self.what);
        self.hint = self.hint.map(|hint| rephrase(&hint));
        self
    }

    /// Returns the text with the heading `error: `. The mistakes of a rack file bring their own heading.
    #[must_use]
    pub fn with_heading(&self) -> String {
        let heading = if self.what.starts_with("error: ") { "" } else { "error: " };
        format!("{heading}{self}")
    }
}

impl std::error::Error for Failure {}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.what)?;
        if let Some(location) = &self.location {
            write!(formatter, "\n  where: {location}")?;
        }
        if let Some(hint) = &self.hint {
            write!(formatter, "\n  hint:  {hint}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_one_line_gives_cause_and_remedy() {
        let failure = Failure::of_line(Exit::CouldNotStart, "n1: no memory; hint: give it more");
        assert_eq!(failure.to_string(), "n1: no memory\n  hint:  give it more");
        let failure = Failure::of_line(Exit::CouldNotStart, "n1: no memory");
        assert!(!failure.has_hint());
        assert_eq!(failure.to_string(), "n1: no memory");
    }
}
