//! `rackloom check`: the plan as both engines would run it, or every mistake of the file.

use crate::arguments::{CheckArguments, Output, Overrides};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::source::Source;
use crate::{present, reporting};

/// Print the plan.
pub(crate) fn run(arguments: &CheckArguments) -> Result<Exit, Failure> {
    let plan = Source::read(&arguments.file, &Overrides::default(), None, None)?.plan()?;
    reporting::say(&Output { json: None }, &present::plan(&plan))?;
    Ok(Exit::Pass)
}
