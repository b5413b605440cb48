//! Reads and checks a rack file.
//!
//! These methods of [`Plan`] use both the readers and the checks, so they are above both.

use std::path::Path;

use crate::check::{self, Fit};
use crate::model::objection::Objection;
use crate::model::plan::Plan;
use crate::read::fields::{Findings, RACK_FILE, Reader};
use crate::read::mistake::{Complaint, PlanError, Source};
use crate::read::positions::Positions;
use crate::read::text::{TextFile, Unreadable, text_of};
use crate::read::{self, RackFile};

impl Plan {
    /// Reads a rack file.
    ///
    /// # Errors
    /// Returns every mistake of the file, with line, column and hint. If the file cannot be read, returns one mistake without
    /// a position.
    pub fn read(path: &Path) -> Result<Self, PlanError> {
        let origin = path.display().to_string();
        let text = text_of(path, TextFile::Rack).map_err(|Unreadable { message, hint }| {
            let source = Source::new(&origin, "");
            source.error(vec![source.mistake(None, Complaint::about(message).hint(hint))])
        })?;
        Self::parse(&text, &origin)
    }

    /// Reads a rack from text. `origin` is the name of the file in messages.
    ///
    /// # Errors
    /// Returns every mistake of the text, with line, column and hint.
    pub fn parse(text: &str, origin: &str) -> Result<Self, PlanError> {
        Self::parse_judged(text, origin, |_| Vec::new())
    }

    /// Reads a rack from text and calls `judge` for objections to its job. `judge` runs only if job and shape could be read.
    /// Its objections are added to the mistakes of the file.
    ///
    /// # Errors
    /// Returns every mistake of the text and every objection, with line, column and hint.
    pub fn parse_judged(
        text: &str,
        origin: &str,
        judge: impl Fn(&Self) -> Vec<Objection>,
    ) -> Result<Self, PlanError> {
        rack(text, origin, Fit::Judged, &judge)
    }

    /// Reads a rack from text for a caller that replaces the job and then calls [`Plan::check`]. Does not check that the job
    /// of the file fits into memory.
    ///
    /// # Errors
    /// Returns every other mistake of the text, with line, column and hint.
    pub fn parse_for_another_job(text: &str, origin: &str) -> Result<Self, PlanError> {
        rack(text, origin, Fit::Open, &|_| Vec::new())
    }

    /// Checks the plan again after a command line has changed it.
    ///
    /// # Errors
    /// Returns every value that is out of range or contradicts another one. Positions are absent, because no file is given.
    pub fn check(&self) -> Result<(), PlanError> {
        let source = Source::new(&self.name, "");
        let mistakes =
            check::mistakes(self, &[self.job], &Positions::default(), &source, Fit::Judged, &|_| Vec::new());
        if mistakes.is_empty() { Ok(()) } else { Err(source.error(mistakes)) }
    }
}

/// Reads a rack from text and checks it.
fn rack(
    text: &str,
    origin: &str,
    fit: Fit,
    judge: &dyn Fn(&Plan) -> Vec<Objection>,
) -> Result<Plan, PlanError> {
    let (mut reader, value) = Reader::begin(text, origin, RACK_FILE)?;
    let RackFile { plan, jobs, has_shape } = read::plan(&mut reader, &value);
    let Findings { source, mut mistakes, positions } = reader.finish();
    if has_shape {
        mistakes.extend(check::mistakes(&plan, &jobs, &positions, &source, fit, judge));
    } else {
        mistakes.extend(check::mistakes_of_settings(&plan, &jobs, &positions, &source));
    }
    if mistakes.is_empty() { Ok(plan) } else { Err(source.error(mistakes)) }
}
