//! Arguments of `rackloom campaign`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use rackloom_plan::PayloadMode;

use super::declared::{meaning, named, summary};
use super::headings::{DATA, EXHAUSTIVE, OUTPUT};
use super::output::{NAME_A_DIRECTORY, NAME_A_FILE, Output, PageOutput, file_beside};
use super::overrides::Overrides;
use crate::time_limit;

/// The engine that runs the fault scripts of a campaign.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Engine {
    /// Virtual time
    #[default]
    Sim,
    /// Real processes
    Processes,
}

impl Engine {
    /// Returns the name of the engine on the command line and in results.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Sim => "sim",
            Self::Processes => "processes",
        }
    }
}

/// Kind of a part that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PartKind {
    /// Cables, in both directions.
    Links,
    /// Switches.
    Switches,
    /// GPU nodes.
    Nodes,
}

impl PartKind {
    /// All kinds.
    pub(crate) const ALL: [Self; 3] = [Self::Links, Self::Switches, Self::Nodes];

    /// Returns the name on the command line and in JSON.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Links => "links",
            Self::Switches => "switches",
            Self::Nodes => "nodes",
        }
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name.trim())
    }
}

/// Failures that an exhaustive campaign makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Failing {
    /// Every part of a kind alone.
    One(PartKind),
    /// Every pair of parts of these kinds, which are ordered and may be equal.
    Two([PartKind; 2]),
}

impl Failing {
    /// Returns the kinds of the parts.
    pub(crate) fn kinds(&self) -> &[PartKind] {
        match self {
            Self::One(kind) => std::slice::from_ref(kind),
            Self::Two(kinds) => kinds,
        }
    }
}

/// Failure rate of each part of a kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FailureRate {
    /// Kind of the parts.
    pub(crate) kind: PartKind,
    /// Failures per hour.
    pub(crate) per_hour: f64,
}

/// Mean time to repair a part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Repair {
    /// Kind of the parts; `None` for all kinds that are not named.
    pub(crate) kind: Option<PartKind>,
    /// Mean time to repair.
    pub(crate) time: Duration,
}

#[derive(Debug, Args)]
pub(crate) struct CampaignArguments {
    /// The rack file
    pub(crate) file: PathBuf,
    /// Number of random fault scripts to run
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub(crate) runs: u64,
    /// Number of the first script; a script follows from its number and the rack
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) first: u64,
    /// Engine that runs the scripts
    #[arg(long, value_enum, default_value_t)]
    pub(crate) engine: Engine,
    /// With processes: factor by which start times of faults are later than in virtual time; if absent, the measured ratio of run times without
    /// faults
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub(crate) time_scale: Option<u64>,
    /// Number of runs at the same time; if absent, one per processor in virtual time and one with processes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Write each failing script, in its smallest form, to a file in this directory
    #[arg(long, help_heading = OUTPUT, value_name = "DIR", value_parser = file_beside(NAME_A_DIRECTORY))]
    pub(crate) export: Option<PathBuf>,
    /// Record results in this file, and skip scripts that it records as passed
    #[arg(long, help_heading = OUTPUT, value_name = "FILE", value_parser = file_beside(NAME_A_FILE))]
    pub(crate) resume: Option<PathBuf>,
    /// Stop after this number of failures
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) failures_max: u64,
    /// In place of drawn scripts, run every failure of one part (links:1), of two at once (links:2), or of two of different kinds
    /// (links+switches); parts are links, switches and nodes; virtual time
    #[arg(
        long, help_heading = EXHAUSTIVE, value_name = "PARTS,...", value_delimiter = ',', value_parser = failing,
        conflicts_with_all = ["runs", "first", "time_scale", "export", "resume", "failures_max"]
    )]
    pub(crate) exhaustive: Vec<Failing>,
    /// Failure rate of each part of a kind, such as links=1e-5/h,switches=2e-6/h: the expected goodput is printed as well
    #[arg(
        long, help_heading = EXHAUSTIVE, value_name = "PARTS=RATE,...", value_delimiter = ',', value_parser = failure_rate,
        requires_all = ["exhaustive", "repair"]
    )]
    pub(crate) failure_rates: Vec<FailureRate>,
    /// Mean time to repair a part, such as 4h, or links=4h,switches=8h
    #[arg(
        long, help_heading = EXHAUSTIVE, value_name = "[PARTS=]TIME,...", value_delimiter = ',', value_parser = repair,
        requires_all = ["exhaustive", "failure_rates"]
    )]
    pub(crate) repair: Vec<Repair>,
    /// Longest time of all runs together: it is estimated from one run, and a campaign that takes longer is not run
    #[arg(long, help_heading = EXHAUSTIVE, value_name = "TIME", default_value = "1h", value_parser = time_limit::read)]
    pub(crate) time_limit: Duration,
    /// Write a case per script, or per failure of an exhaustive campaign, in JUnit's XML to this file
    #[arg(long, help_heading = OUTPUT, value_name = "FILE", value_parser = file_beside(NAME_A_FILE))]
    pub(crate) junit: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) page: PageOutput,
    #[command(flatten)]
    pub(crate) overrides: Overrides,
    #[arg(
        long, help_heading = DATA, value_name = "MODE", value_parser = named::<PayloadMode>(),
        help = summary("payload"), long_help = meaning("payload")
    )]
    pub(crate) payload: Option<PayloadMode>,
}

impl CampaignArguments {
    /// Options that concern the campaign and not its runs. They have a value.
    pub(crate) const OWN: &[&str] = &[
        "--runs",
        "--first",
        "--threads",
        "--export",
        "--resume",
        "--failures-max",
        "--engine",
        "--time-scale",
        "--exhaustive",
        "--failure-rates",
        "--repair",
        "--time-limit",
        "--json",
        "--html",
        "--junit",
    ];
}

/// Parses `links:2` or `links+switches`.
fn failing(text: &str) -> Result<Failing, String> {
    let kind = |name: &str| {
        let wrong = || {
            format!(
                "`{name}` are no parts; hint: write links, switches or nodes, or two kinds such as links+switches"
            )
        };
        PartKind::named(name).ok_or_else(wrong)
    };
    if let Some((first, second)) = text.split_once('+') {
        let mut kinds = [kind(first)?, kind(second)?];
        kinds.sort_unstable();
        return Ok(Failing::Two(kinds));
    }
    let (name, count) = text.split_once(':').unwrap_or((text, "1"));
    let kind = kind(name)?;
    match count.trim() {
        "1" => Ok(Failing::One(kind)),
        "2" => Ok(Failing::Two([kind; 2])),
        _ => Err("one part or two fail together; hint: write links:1, links:2 or links+switches".to_owned()),
    }
}

/// Parses `links=1e-5/h`.
fn failure_rate(text: &str) -> Result<FailureRate, String> {
    const HOURS: [(&str, f64); 3] = [("h", 1.0), ("d", 24.0), ("y", 8766.0)];
    let parsed = text.split_once('=').and_then(|(name, rate)| {
        let (number, unit) = rate.split_once('/')?;
        let hours = HOURS.iter().find(|(name, _)| *name == unit.trim()).map(|(_, hours)| *hours)?;
        let number = number.trim().parse::<f64>().ok()?;
        let is_rate = number.is_finite() && number >= 0.0;
        let kind = PartKind::named(name)?;
        is_rate.then_some(FailureRate { kind, per_hour: number / hours })
    });
    parsed.ok_or_else(|| {
        "no failure rate; hint: write PARTS=RATE per h, d or y, such as links=1e-5/h".to_owned()
    })
}

/// Parses `4h` or `links=4h`.
fn repair(text: &str) -> Result<Repair, String> {
    let Some((name, time)) = text.split_once('=') else {
        return time_limit::read(text).map(|time| Repair { kind: None, time });
    };
    let Some(kind) = PartKind::named(name) else {
        return Err(format!("`{name}` are no parts; hint: write links, switches or nodes"));
    };
    time_limit::read(time).map(|time| Repair { kind: Some(kind), time })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_of_one_part_or_two() {
        assert_eq!(failing("links:2"), Ok(Failing::Two([PartKind::Links; 2])));
        assert_eq!(failing("nodes"), Ok(Failing::One(PartKind::Nodes)));
        let across = Ok(Failing::Two([PartKind::Links, PartKind::Switches]));
        assert_eq!((failing("links+switches"), failing("switches + links")), (across.clone(), across));
        for bad in [
            "links:3",
            "links:0",
            "planes:1",
            ":1",
            "links:x",
            "links+",
            "links+nodes+nodes",
            "links:1+nodes",
        ] {
            assert!(failing(bad).unwrap_err().contains("hint: "), "{bad}");
        }
    }

    #[test]
    fn rates_are_per_hour() {
        let rate = |text: &str| failure_rate(text).map(|rate| rate.per_hour);
        assert_eq!(rate("links=1e-5/h"), Ok(1e-5));
        assert_eq!(rate("switches=0.24/d"), Ok(0.01));
        for bad in ["links=1e-5", "links=-1/h", "links=nan/h", "1e-5/h", "cables=1/h", "links=1/week"] {
            assert!(failure_rate(bad).unwrap_err().contains("hint: "), "{bad}");
        }
    }

    #[test]
    fn a_repair_takes_a_time_for_one_kind_or_for_all() {
        let hours = |hours: u64| Duration::from_secs(hours * 3600);
        assert_eq!(repair("4h"), Ok(Repair { kind: None, time: hours(4) }));
        assert_eq!(repair("nodes=8h"), Ok(Repair { kind: Some(PartKind::Nodes), time: hours(8) }));
        for bad in ["four", "cables=4h", "links=4"] {
            assert!(repair(bad).unwrap_err().contains("hint: "), "{bad}");
        }
    }
}
