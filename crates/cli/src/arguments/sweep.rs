//! Arguments of `rackloom sweep`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use rackloom_plan::PayloadMode;

use super::declared::{meaning, named, summary};
use super::headings::{DATA, ENGINE, OUTPUT, WHAT};
use super::output::{NAME_A_DIRECTORY, PageOutput, file_beside};
use super::overrides::Overrides;
use super::scripted::FaultOptions;
use crate::time_limit;

/// Exit codes in the help of `sweep`.
pub(super) const EXITS: &str = "The exit code is 0 if every run passed, 1 if one failed, was refused or died twice, 2 if the grid would take longer than --time-limit, \
                           and 6 after Ctrl-C. `rackloom --help` lists the others.";
/// Image of the containers of Kubernetes without the option.
pub(crate) const IMAGE: &str = concat!("rackloom:", env!("CARGO_PKG_VERSION"));
/// Claim of the volume of Kubernetes without the option.
pub(crate) const VOLUME_CLAIM: &str = "rackloom-sweep";
/// Help of `--set` of a sweep.
pub(super) const SET: &str = "Values of a key of the rack file, such as link.loss=0,1e-6 or planes=1,2,4; every combination of all values is a point of the grid; may be repeated";
/// Help of `--algorithm` of a sweep.
pub(super) const ALGORITHM: &str = "Algorithms of the collective, each with runs of its own";

/// Engine that runs the points of a sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum SweepEngine {
    /// Processes of this machine
    #[default]
    Local,
    /// An array job of Slurm
    Slurm,
    /// Tasks of Ray
    Ray,
    /// An Indexed Job of Kubernetes
    Kubernetes,
}

/// Seeds of a sweep, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seeds(pub(crate) Vec<u64>);

/// Part `index` of `parts` equal parts of a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    /// Number of the part, from 0 on.
    pub(crate) index: u64,
    /// Number of parts.
    pub(crate) parts: u64,
}

#[derive(Debug, Args)]
pub(crate) struct SweepArguments {
    /// The rack file
    #[arg(required_unless_present_any = ["collect", "point", "share"], conflicts_with_all = ["collect", "point", "share"])]
    pub(crate) file: Option<PathBuf>,
    /// Directory of the sweep: its manifest, the report of each run, and the results; a sweep that was ended is continued
    #[arg(long, value_name = "DIR", help_heading = OUTPUT, value_parser = file_beside(NAME_A_DIRECTORY))]
    pub(crate) out: PathBuf,
    /// Seeds, each with runs of its own, such as 1..5 or 1,2,7
    #[arg(long, value_name = "FROM..TO", help_heading = WHAT, value_parser = seeds, conflicts_with = "seed")]
    pub(crate) seeds: Option<Seeds>,
    /// Perform a workload at every point instead of the file's job: a file of `rackloom workload`, or of another tool; repeat it for a trace
    /// in several files
    #[arg(long, value_name = "FILE", help_heading = WHAT, conflicts_with_all = ["job", "collective", "pattern"])]
    pub(crate) workload: Vec<PathBuf>,
    /// Replay a trace at every point instead of the file's job; CSV with the columns time, source, destination, bytes, kind
    #[arg(long, value_name = "FILE", help_heading = WHAT, conflicts_with_all = ["job", "collective", "pattern", "workload"])]
    pub(crate) trace: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) page: PageOutput,
    #[command(flatten)]
    pub(crate) overrides: Overrides,
    #[arg(
        long, help_heading = DATA, value_name = "MODE", value_parser = named::<PayloadMode>(),
        help = summary("payload"), long_help = meaning("payload")
    )]
    pub(crate) payload: Option<PayloadMode>,
    #[command(flatten)]
    pub(crate) faults: FaultOptions,
    /// Engine that runs the points
    #[arg(long, help_heading = ENGINE, value_enum, default_value_t)]
    pub(crate) engine: SweepEngine,
    /// Runs at the same time; if absent, one per processor of this machine, and no limit with other engines
    #[arg(long, help_heading = ENGINE, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
    /// Longest time of the whole grid, such as 30min or 2d: it is estimated from a few runs, and a grid that takes longer is not run
    #[arg(long, help_heading = ENGINE, value_name = "TIME", default_value = "1h", value_parser = time_limit::read)]
    pub(crate) time_limit: Duration,
    /// Write the files of another engine, and submit nothing
    #[arg(long, help_heading = ENGINE)]
    pub(crate) no_submit: bool,
    #[arg(long, help_heading = ENGINE, value_name = "NAME", help = format!("Image of the containers of Kubernetes, with the program rackloom [default: {IMAGE}]"))]
    pub(crate) image: Option<String>,
    #[arg(long, help_heading = ENGINE, value_name = "NAME", help = format!("Claim of the volume that holds the directory, for Kubernetes [default: {VOLUME_CLAIM}]"))]
    pub(crate) volume_claim: Option<String>,
    /// Address of a cluster of Ray; if absent, Ray starts on this machine
    #[arg(long, help_heading = ENGINE, value_name = "ADDRESS")]
    pub(crate) ray_address: Option<String>,
    /// Run nothing: make the results from the reports that are there
    #[arg(long, help_heading = ENGINE, conflicts_with_all = ["point", "share"])]
    pub(crate) collect: bool,
    /// Run one point of the manifest, in this process; engines call it
    #[arg(long, help_heading = ENGINE, value_name = "N", conflicts_with = "share")]
    pub(crate) point: Option<u64>,
    /// Run the points whose number has the remainder I after division by N; engines call it
    #[arg(long, help_heading = ENGINE, value_name = "I/N", value_parser = share)]
    pub(crate) share: Option<Share>,
}

impl SweepArguments {
    /// Options with a value that concern the sweep and not its runs, or that have another value for its runs.
    pub(crate) const OWN: &[&str] = &[
        "--out",
        "--html",
        "--seeds",
        "--set",
        "--algorithm",
        "--workload",
        "--trace",
        "--faults",
        "--engine",
        "--jobs",
        "--time-limit",
        "--image",
        "--volume-claim",
        "--ray-address",
    ];
    /// Options without a value that concern the sweep and not its runs.
    pub(crate) const OWN_FLAGS: &[&str] = &["--no-submit", "--collect"];
}

/// Maximum number of seeds.
const SEEDS_MAX: u64 = 1_000_000;

/// Parses `1..5`, which includes both ends, or `1,2,7`.
fn seeds(text: &str) -> Result<Seeds, String> {
    let wrong = || "no seeds; hint: write FROM..TO such as 1..5, or a list such as 1,2,7".to_owned();
    let number = |text: &str| text.trim().parse::<u64>().map_err(|_| wrong());
    let Some((from, to)) = text.split_once("..") else {
        return text.split(',').map(number).collect::<Result<_, _>>().map(Seeds);
    };
    let (from, to) = (number(from)?, number(to.trim_start_matches('='))?);
    match to.checked_sub(from) {
        None => Err("seeds grow; hint: write the smaller one first, as in 1..5".to_owned()),
        Some(more) if more >= SEEDS_MAX => {
            Err(format!("more than {SEEDS_MAX} seeds; hint: write fewer seeds"))
        }
        Some(_) => Ok(Seeds((from..=to).collect())),
    }
}

/// Parses `3/8`.
fn share(text: &str) -> Result<Share, String> {
    let parsed = text.split_once('/').and_then(|(index, parts)| {
        let (index, parts) = (index.parse().ok()?, parts.parse().ok()?);
        (index < parts).then_some(Share { index, parts })
    });
    parsed.ok_or_else(|| "no share of a grid; hint: write I/N with I below N, such as 0/8".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_a_range_with_both_ends_or_a_list() {
        assert_eq!(seeds("1..5"), Ok(Seeds(vec![1, 2, 3, 4, 5])));
        assert_eq!(seeds("7"), Ok(Seeds(vec![7])));
        assert_eq!(seeds("9, 2,7"), Ok(Seeds(vec![9, 2, 7])));
        for bad in ["", "1..", "..2", "5..1", "x", "1,,2", "0..2000000"] {
            assert!(seeds(bad).unwrap_err().contains("hint: "), "{bad:?}");
        }
    }

    #[test]
    fn a_share_lies_below_the_number_of_shares() {
        assert_eq!(share("0/8"), Ok(Share { index: 0, parts: 8 }));
        for bad in ["8/8", "1", "a/b", "-1/2", "0/0"] {
            assert!(share(bad).unwrap_err().contains("hint: "), "{bad}");
        }
    }
}
