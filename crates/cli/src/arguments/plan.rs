//! What `rackloom plan` may be asked: only what changes the schedule that it prints.
//!
//! A schedule is the same at any loss, however often it is run and whatever the values are combined with, so options about
//! these are not taken here, where nobody would hear them.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{ArgAction, Args};
use rackloom_plan::{AlgorithmName, CollectiveName, ElementName};

use super::Overrides;
use super::job::{JobOptions, size};

#[derive(Debug, Args)]
pub(crate) struct PlanArguments {
    /// The rack file
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) schedule: ScheduleOptions,
    /// Rounds of the schedule that are printed
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub(crate) rounds: u32,
}

/// Which schedule, in place of the file's.
#[derive(Args, Clone, Debug)]
pub(crate) struct ScheduleOptions {
    /// Which collective
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(CollectiveName::NAMES))]
    collective: Option<String>,
    /// Type of one element
    #[arg(long = "type", visible_alias = "dtype", value_name = "NAME", value_parser = PossibleValuesParser::new(ElementName::NAMES))]
    element: Option<String>,
    /// How the collective is done; "auto" prints what can be chosen from, several names (ring,two-shot) what each of them costs
    #[arg(long, value_name = "NAME[,NAME]", value_delimiter = ',', num_args = 1, action = ArgAction::Set, value_parser = PossibleValuesParser::new(AlgorithmName::NAMES))]
    algorithm: Option<Vec<String>>,
    /// The node that gives or gets, where the collective has one
    #[arg(long, value_name = "NODE")]
    root: Option<String>,
    /// Size of the array, such as 1MiB; the largest of the file's sizes if absent
    #[arg(long, value_name = "SIZE", value_parser = size)]
    bytes: Option<u64>,
}

impl ScheduleOptions {
    /// The same, as what is said instead of the file.
    pub(crate) fn overrides(&self) -> Overrides {
        let Self { collective, element, algorithm, root, bytes } = self.clone();
        let job = JobOptions { collective, element, algorithm, root, bytes, ..JobOptions::default() };
        Overrides { job, ..Overrides::default() }
    }
}
