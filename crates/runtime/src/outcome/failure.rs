//! What went wrong before there was anything to report: what, where, hint, and the exit code that goes with it.
//!
//! A failed check of a run is not a failure in this sense: it is a report with the verdict "fail".

use std::fmt;
use std::path::Path;

use crate::exit::Exit;
use crate::reporting::say_aside;

/// An error for the person at the terminal.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    what: String,
    place: Option<String>,
    hint: Option<String>,
}

impl Failure {
    pub(crate) fn new(exit: Exit, what: impl Into<String>) -> Self {
        Self { exit, what: what.into(), place: None, hint: None }
    }

    /// The command line or a file is to blame.
    pub(crate) fn bad_input(what: impl Into<String>) -> Self {
        Self::new(Exit::BadInput, what)
    }

    /// The machine is to blame.
    pub(crate) fn could_not_start(what: impl Into<String>, cause: impl fmt::Display) -> Self {
        Self::new(Exit::CouldNotStart, format!("{}: {cause}", what.into()))
    }

    /// Say it on standard error. The mistakes of a rack file bring their own heading.
    pub(crate) fn tell(&self) {
        let heading = if self.what.starts_with("error: ") { "" } else { "error: " };
        say_aside(&format!("{heading}{self}"));
    }

    pub(crate) fn at(mut self, place: impl Into<String>) -> Self {
        self.place = Some(place.into());
        self
    }

    pub(crate) fn at_path(self, path: &Path) -> Self {
        self.at(path.display().to_string())
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.what)?;
        if let Some(place) = &self.place {
            write!(formatter, "\n  where: {place}")?;
        }
        if let Some(hint) = &self.hint {
            write!(formatter, "\n  hint:  {hint}")?;
        }
        Ok(())
    }
}
