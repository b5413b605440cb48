//! `rackloom sim --trace`: a file of comma-separated values as the jobs of all ranks.

use std::path::Path;

use rackloom_jobs::Job;
use rackloom_plan::{Plan, trace};
use rackloom_protocol::NodeId;

use crate::bounded::{self, Unread};
use crate::failure::Failure;

/// Maximum length of a trace, in bytes.
const FILE_BYTES_MAX: u64 = 256 << 20;
const HINT: &str =
    "the first line of a trace is `time,source,destination,bytes,kind`; docs/cli.md has an example";

/// Reads the text of a trace.
///
/// # Errors
/// It cannot be read, is no text, or is too large.
pub(crate) fn text(file: &Path) -> Result<String, Failure> {
    let refused = |what: String, hint: &str| Failure::bad_input(what).at_path(file).hint(hint);
    let bytes = bounded::read(file, FILE_BYTES_MAX).map_err(|unread| match unread {
        Unread::System(error) => refused(format!("cannot read the trace: {error}"), HINT),
        Unread::TooLarge(lengths) => refused(lengths.text("a trace"), "cut it into several"),
    })?;
    String::from_utf8(bytes).map_err(|_| refused("the trace is no UTF-8 text".to_owned(), HINT))
}

/// Returns the job of each rank for a trace.
pub(crate) fn jobs(file: &Path, plan: &Plan) -> Result<Vec<Box<dyn Job>>, Failure> {
    let text = text(file)?;
    let lines = trace::read(&text, &file.display().to_string(), plan)
        .map_err(|error| Failure::bad_input(error.to_string()))?;
    let ranks = (0..plan.endpoint_count()).map(|rank| NodeId(rank as u16));
    ranks
        .map(|rank| rackloom_jobs::play_trace(plan, rank, plan.settings.seed, &lines))
        .collect::<Result<_, _>>()
        .map_err(|error| Failure::bad_input(error.to_string()).at_path(file))
}
