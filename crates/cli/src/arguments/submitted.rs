//! Arguments of `rackloom job`: jobs on a rack that is up.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::declared::value;
use super::job::size;
use super::output::{NAME_A_DIRECTORY, file_beside};

#[derive(Debug, Args)]
pub(crate) struct JobArguments {
    #[command(subcommand)]
    pub(crate) command: JobCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum JobCommand {
    /// Start a program once on each of several nodes, as soon as they are free
    ///
    /// The program finds its seat in its environment: RACKLOOM_RACK, RACKLOOM_SEAT, RACKLOOM_RANK, RACKLOOM_RANKS and others. It takes the seat
    /// with `JobSeat` of the library, or does not take it at all. Jobs of one tenant start in the order of their submission.
    #[command(after_help = super::EXITS)]
    Submit(SubmitArguments),
    /// Show the jobs, the accounts of tenants and the use of nodes
    #[command(after_help = super::EXITS)]
    List(ListArguments),
    /// End a job: SIGTERM to its processes, and SIGKILL five seconds later
    #[command(after_help = super::EXITS)]
    Cancel(CancelArguments),
    /// Add a spare node (`rackloom up --spare`), for the next jobs
    #[command(after_help = super::EXITS)]
    AddNode(AddNodeArguments),
}

#[derive(Debug, Args)]
pub(crate) struct SubmitArguments {
    /// Name of the rack; may be absent if only one is up
    #[arg(long, value_name = "NAME")]
    pub(crate) rack: Option<String>,
    /// Nodes of the job, in the order of its ranks
    #[arg(long, value_name = "NODE,...", value_delimiter = ',', required_unless_present = "count")]
    pub(crate) nodes: Vec<String>,
    /// Number of nodes, instead of their names: the first free ones of the tenant
    #[arg(long, value_name = "N", conflicts_with = "nodes")]
    pub(crate) count: Option<usize>,
    /// Tenant of the nodes; that of the named nodes, or 0
    #[arg(long, value_name = "N")]
    pub(crate) tenant: Option<u16>,
    /// Memory that each node may register with the fabric; the memory of the node if absent
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) memory: Option<u64>,
    /// Longest time from start to end, after which the job is ended, such as 90s; 24 hours if absent
    #[arg(long, value_name = "TIME", value_parser = time_max)]
    pub(crate) time: Option<u64>,
    /// Variable for the environment of the processes; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    pub(crate) env: Vec<(String, String)>,
    /// Directory for the output of each process; one beside the logs of the rack if absent
    #[arg(long, value_name = "DIR", value_parser = file_beside(NAME_A_DIRECTORY))]
    pub(crate) output: Option<PathBuf>,
    /// Wait for the end of the job. The exit code is 0 if it passed, and 1 otherwise
    #[arg(long)]
    pub(crate) wait: bool,
    /// Print the status of the job as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Program, and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    pub(crate) program: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// Name of the rack; may be absent if only one is up
    pub(crate) name: Option<String>,
    /// Print JSON instead of tables, with the same content
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CancelArguments {
    /// Number of the job
    pub(crate) job: u64,
    /// Name of the rack; may be absent if only one is up
    #[arg(long, value_name = "NAME")]
    pub(crate) rack: Option<String>,
    /// Wait until the processes of the job have ended and its nodes are free
    #[arg(long)]
    pub(crate) wait: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AddNodeArguments {
    /// Name of the node
    pub(crate) node: String,
    /// Name of the rack; may be absent if only one is up
    #[arg(long, value_name = "NAME")]
    pub(crate) rack: Option<String>,
}

/// Parses a time with its unit.
fn time_max(text: &str) -> Result<u64, String> {
    // The range of this key is that of jobs.
    value("watchdog")(text).map_err(|error: String| error.replace("`watchdog`", "the time"))
}

/// Parses a variable and its value.
fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("no variable; hint: write NAME=VALUE".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units_and_a_range() {
        assert_eq!(time_max("90s"), Ok(90_000_000_000));
        assert_eq!(time_max("250ms"), Ok(250_000_000));
        for bad in ["", "0s", "90", "2 days", "86401s"] {
            let error = time_max(bad).unwrap_err();
            assert!(error.contains("hint: ") && !error.contains("watchdog"), "{bad:?}: {error}");
        }
    }

    #[test]
    fn a_variable_has_a_name() {
        assert_eq!(variable("A=b=c"), Ok(("A".to_owned(), "b=c".to_owned())));
        assert_eq!(variable("A="), Ok(("A".to_owned(), String::new())));
        assert!(variable("=b").is_err() && variable("A").is_err());
    }
}
