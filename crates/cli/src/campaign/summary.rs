//! Result of a campaign for programs: counts, the verdict, and each script that failed.

use schemars::JsonSchema;
use serde::Serialize;

use crate::exit::Exit;

/// Result of `rackloom campaign`, as `--json` writes it.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct Summary {
    /// Version of rackloom that ran the campaign.
    pub(crate) version: &'static str,
    /// Commit of that build.
    pub(crate) commit: &'static str,
    /// Rack file, as given on the command line.
    pub(crate) rack: String,
    /// Hash of the rack's configuration, overrides included, as 16 hexadecimal digits.
    pub(crate) config_hash: String,
    /// Options of the command line that concern the rack and its job.
    pub(crate) options: Vec<String>,
    /// Engine that ran the scripts: `sim` or `processes`.
    pub(crate) engine: &'static str,
    /// Number of the first script.
    pub(crate) first: u64,
    /// Scripts requested.
    pub(crate) runs: u64,
    /// Scripts that ran.
    pub(crate) ran: u64,
    /// Scripts of `ran` that ended without a processor in time. They have no verdict.
    pub(crate) starved: u64,
    /// Scripts left out because an earlier campaign recorded them as passed.
    pub(crate) left_out: u64,
    /// Runs at the same time.
    pub(crate) threads: usize,
    /// Duration, in seconds.
    pub(crate) elapsed_s: f64,
    /// End of the campaign: `pass`, `fail`, `starved` or `interrupted`.
    pub(crate) verdict: &'static str,
    /// Scripts that failed, by number.
    pub(crate) failures: Vec<FailedScript>,
}

/// A script that failed, in its smallest form.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct FailedScript {
    /// Number of the script.
    pub(crate) number: u64,
    /// Reasons, as the report of the run gives them.
    pub(crate) reasons: Vec<String>,
    /// Share of repeats that failed, of runs with processes; `null` in virtual time, where each repeat fails.
    pub(crate) repeats: Option<String>,
    /// Events of the script that was drawn.
    pub(crate) events_drawn: usize,
    /// Events of the smallest form.
    pub(crate) events: usize,
    /// Smallest form, as the text of a fault script.
    pub(crate) script: String,
    /// File of the smallest form: written with `--export`, else only a proposed name.
    pub(crate) file: String,
    /// Command that repeats the failure in virtual time, for the folder in which the campaign ran.
    pub(crate) repeat: String,
}

/// Returns the name of a campaign's end.
pub(crate) const fn verdict(exit: Exit) -> &'static str {
    match exit {
        Exit::Pass => "pass",
        Exit::Starved => "starved",
        Exit::Interrupted => "interrupted",
        _ => "fail",
    }
}
