//! `rackloom sim --trace`: a file of comma-separated values as the jobs of all ranks.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use rackloom_jobs::Job;
use rackloom_plan::{Plan, trace};
use rackloom_protocol::NodeId;

use crate::failure::Failure;

/// Maximum length of a trace, in bytes.
const FILE_BYTES_MAX: u64 = 256 << 20;
const HINT: &str =
    "the first line of a trace is `time,source,destination,bytes,kind`; docs/cli.md has an example";

/// Returns the job of each rank for a trace.
pub(crate) fn jobs(file: &Path, plan: &Plan) -> Result<Vec<Box<dyn Job>>, Failure> {
    let unreadable = |error: std::io::Error| {
        Failure::bad_input(format!("cannot read the trace: {error}")).at_path(file).hint(HINT)
    };
    let mut text = String::new();
    let read = File::open(file).and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text));
    if read.map_err(unreadable)? as u64 > FILE_BYTES_MAX {
        let what = format!("the trace is larger than {} MiB", FILE_BYTES_MAX >> 20);
        return Err(Failure::bad_input(what).at_path(file).hint("cut it into several"));
    }
    let lines = trace::read(&text, &file.display().to_string(), plan)
        .map_err(|error| Failure::bad_input(error.to_string()))?;
    let ranks = (0..plan.endpoint_count()).map(|rank| NodeId(rank as u16));
    ranks
        .map(|rank| rackloom_jobs::play_trace(plan, rank, plan.settings.seed, &lines))
        .collect::<Result<_, _>>()
        .map_err(|error| Failure::bad_input(error.to_string()).at_path(file))
}
