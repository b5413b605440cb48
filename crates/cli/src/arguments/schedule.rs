//! Arguments of `rackloom schedule`: only options that change the printed schedule.
//!
//! A schedule does not depend on loss, repetitions or the reduction operator. Options for these are refused, because they would have no effect.

use std::path::PathBuf;

use clap::{ArgAction, Args};
use rackloom_collectives::{CollectiveKind, ElementType};
use rackloom_control::source::{JobOptions, Overrides};
use rackloom_plan::AlgorithmChoice;

use super::declared::{named, summary};
use super::headings::OUTPUT;
use super::job::size;

#[derive(Debug, Args)]
pub(crate) struct ScheduleArguments {
    /// The rack file
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) schedule: ScheduleOptions,
    /// Number of rounds to print
    #[arg(long, help_heading = OUTPUT, value_name = "N", default_value_t = 64)]
    pub(crate) rounds: u32,
}

/// Options that replace values of the rack file's collective.
#[derive(Args, Clone, Debug)]
pub(crate) struct ScheduleOptions {
    #[arg(
        long, value_name = "NAME", value_parser = named::<CollectiveKind>(),
        help = summary("job.collective.collective")
    )]
    collective: Option<CollectiveKind>,
    #[arg(
        long = "type", visible_alias = "dtype", value_name = "NAME", value_parser = named::<ElementType>(),
        help = summary("job.collective.type")
    )]
    element: Option<ElementType>,
    /// Algorithm of the collective; "auto" prints the candidates, several names (ring,two-shot) print the cost of each
    #[arg(
        long, value_name = "NAME[,NAME]", value_delimiter = ',', num_args = 1, action = ArgAction::Set,
        value_parser = named::<AlgorithmChoice>()
    )]
    algorithm: Option<Vec<AlgorithmChoice>>,
    #[arg(long, value_name = "NODE", help = summary("job.collective.root"))]
    root: Option<String>,
    /// Size of the array, such as 1MiB; if absent, the largest size of the file
    #[arg(long, value_name = "SIZE", value_parser = size)]
    bytes: Option<u64>,
}

impl ScheduleOptions {
    /// Returns the options as replacements of the rack file's values.
    pub(crate) fn overrides(&self) -> Overrides {
        let Self { collective, element, algorithm, root, bytes } = self.clone();
        let job = JobOptions { collective, element, algorithm, root, bytes, ..JobOptions::default() };
        Overrides { job, ..Overrides::default() }
    }
}
