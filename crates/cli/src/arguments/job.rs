//! Options of the job: its kind, its data and its repetitions.
//!
//! This module checks names against the names of rack files. [`rackloom_runtime::request::overrides`] checks whether the options fit together and fit the plan.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{ArgAction, Args, ValueEnum};
use rackloom_plan::{AlgorithmName, CollectiveName, ElementName, OnLoss, OperatorName, PatternName};

use rackloom_control::source::SizeRange;

use super::headings::{DATA, FAULTS, WHAT};

/// Kinds of jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Job {
    /// Every kind of operation between every ordered pair of nodes; the owner checks every byte
    Litmus,
    /// One collective over all nodes; results are checked to the bit
    Collective,
    /// Latency of single operations
    Latency,
    /// Bandwidth of many operations
    Bandwidth,
    /// Many concurrent messages between the nodes of a pattern; every byte is checked
    Traffic,
    /// Bring the links up, and run no job
    None,
}

/// Options that replace values of the rack file's job.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct JobOptions {
    /// The job
    #[arg(long, help_heading = WHAT, value_enum)]
    pub(crate) job: Option<Job>,
    /// The collective
    #[arg(long, help_heading = WHAT, value_name = "NAME", value_parser = PossibleValuesParser::new(CollectiveName::NAMES))]
    pub(crate) collective: Option<String>,
    /// Reduction operator, for collectives that reduce
    #[arg(long, help_heading = DATA, value_name = "NAME", value_parser = PossibleValuesParser::new(OperatorName::NAMES))]
    pub(crate) op: Option<String>,
    /// Type of one element
    #[arg(long = "type", help_heading = DATA, visible_alias = "dtype", value_name = "NAME", value_parser = PossibleValuesParser::new(ElementName::NAMES))]
    pub(crate) element: Option<String>,
    /// Algorithm of the collective; "auto" chooses by size, topology and measured links. Several names, such as ring,two-shot,
    /// are measured one after the other at each size
    #[arg(long, help_heading = WHAT, value_name = "NAME[,NAME]", value_delimiter = ',', num_args = 1, action = ArgAction::Set, value_parser = PossibleValuesParser::new(AlgorithmName::NAMES))]
    pub(crate) algorithm: Option<Vec<String>>,
    /// Root node of a collective that has one
    #[arg(long, help_heading = WHAT, value_name = "NODE")]
    pub(crate) root: Option<String>,
    /// Reaction of a collective to lost ranks: break off, or repeat it with the remaining ranks
    #[arg(long, help_heading = FAULTS, value_name = "NAME", value_parser = PossibleValuesParser::new(OnLoss::NAMES))]
    pub(crate) on_loss: Option<String>,
    /// Traffic pattern; implies --job traffic
    #[arg(long, help_heading = WHAT, value_name = "NAME", value_parser = PossibleValuesParser::new(PatternName::NAMES))]
    pub(crate) pattern: Option<String>,
    /// Messages of each flow; of each node, if the pattern draws targets
    #[arg(long, help_heading = DATA, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) messages: Option<u32>,
    /// Size of the array or of one message, such as 1MiB
    #[arg(long, help_heading = DATA, value_name = "SIZE", value_parser = size)]
    pub(crate) bytes: Option<u64>,
    /// One size, such as 64KiB, or a range, such as 8B..1MiB (each twice the previous one) or 8B..1MiB*4
    #[arg(long, help_heading = DATA, value_name = "SIZE|FROM..TO", value_parser = sizes, conflicts_with = "bytes")]
    pub(crate) sizes: Option<SizeRange>,
    /// Number of measured runs of each size
    #[arg(long, help_heading = DATA, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) repetitions: Option<u32>,
    /// Number of runs of each size before the measured ones
    #[arg(long, help_heading = DATA, value_name = "N", value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    pub(crate) warm_up: Option<u32>,
}

/// Options of arrays in files.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ArrayOptions {
    /// Read the ranks' arrays from rank0.npy, rank1.npy, ... in this directory
    #[arg(long, help_heading = DATA, value_name = "DIR")]
    pub(crate) input: Option<PathBuf>,
    /// Write the ranks' results to rank0.npy, rank1.npy, ... in this directory
    #[arg(long, help_heading = DATA, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
}

/// Parses a size with its unit. A number without a unit counts bytes.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 7] = [
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("B", 1),
    ];
    let found = UNITS.into_iter().find_map(|(unit, bytes)| Some((text.strip_suffix(unit)?, bytes)));
    let (number, unit) = found.unwrap_or((text, 1));
    let number = number.trim_end().parse::<u64>();
    number
        .ok()
        .and_then(|number| number.checked_mul(unit))
        .ok_or_else(|| "not a size; hint: write 4096, 4KiB or 1MiB".to_owned())
}

fn sizes(text: &str) -> Result<SizeRange, String> {
    let shape = || "not a size or a range of sizes; hint: write 64KiB, 8B..1MiB or 8B..1MiB*4".to_owned();
    let Some((from, rest)) = text.split_once("..") else {
        let one = size(text.trim()).ok().filter(|bytes| *bytes > 0).ok_or_else(shape)?;
        return Ok(SizeRange { from_bytes: one, to_bytes: one, factor: 2 });
    };
    let (to, factor) = rest.split_once('*').unwrap_or((rest, "2"));
    let factor = factor.trim().parse().ok().filter(|factor| (2..=1024).contains(factor));
    let range = SizeRange {
        from_bytes: size(from.trim())?,
        to_bytes: size(to.trim())?,
        factor: factor.ok_or("the factor is not a number from 2 to 1024; hint: 8B..1MiB*4 grows by four")?,
    };
    if range.from_bytes == 0 || range.from_bytes > range.to_bytes {
        return Err(
            "sizes begin at one byte and grow; hint: write the smaller size first, as in 8B..1MiB".to_owned()
        );
    }
    Ok(range)
}

#[cfg(test)]
mod tests {
    use rackloom_plan::JobKind;

    use super::*;

    #[test]
    fn every_job_of_the_plan_has_an_option_value_of_its_name() {
        let value = |job: &Job| job.to_possible_value().expect("a value").get_name().to_owned();
        let values: Vec<_> = Job::value_variants().iter().map(value).collect();
        assert_eq!(values, JobKind::NAMES);
    }

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in
            [("0", 0), ("17", 17), ("17B", 17), ("4KiB", 4096), ("2 MB", 2_000_000), ("1GiB", 1 << 30)]
        {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for bad in ["", "B", "-1", "1.5", "1 apple", "99999999999999999999", "99999999999GiB"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_range_grows() {
        let range = |from_bytes, to_bytes, factor| Ok(SizeRange { from_bytes, to_bytes, factor });
        assert_eq!(sizes("8B..1KiB"), range(8, 1024, 2));
        assert_eq!(sizes("8..1KiB*4"), range(8, 1024, 4));
        assert_eq!(sizes("64KiB"), range(65_536, 65_536, 2));
        for bad in ["", "0", "some", "8..", "..8", "0..8", "9..8", "8..16*1", "8..16*x", "8...16"] {
            assert!(sizes(bad).is_err(), "{bad}");
        }
    }
}
