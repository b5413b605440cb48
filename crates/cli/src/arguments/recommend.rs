//! Arguments of `rackloom recommend`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use rackloom_collectives::{AlgorithmKind, CollectiveKind, ElementType};

use super::declared::{named, summary};
use super::headings::{OUTPUT, SEARCH, WHAT};
use super::job::size;
use super::output::Output;
use crate::time_limit;

/// Exit codes in the help of `recommend`.
pub(super) const EXITS: &str = "The exit code is 0 if a simulated candidate meets the target, and 1 if none does. It is 7 if none does and the time limit came before all were simulated. `rackloom --help` lists the others.";

/// Shape of a rack that the search considers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum ShapeName {
    /// Each node linked to one switch per plane
    Star,
    /// Each node linked to the next and the previous one
    Ring,
    /// Each node linked to each other node
    FullMesh,
    /// Each node linked to one leaf switch per plane, each leaf to spine switches
    LeafSpine,
    /// A grid of two or three dimensions whose rows, columns and pillars are rings
    Torus,
    /// Two nodes linked if their numbers differ in one bit
    Hypercube,
}

impl ShapeName {
    /// All shapes of the search.
    pub(crate) const ALL: [Self; 6] =
        [Self::Star, Self::Ring, Self::FullMesh, Self::LeafSpine, Self::Torus, Self::Hypercube];

    /// Returns the name in rack files.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Star => "star",
            Self::Ring => "ring",
            Self::FullMesh => "full-mesh",
            Self::LeafSpine => "leaf-spine",
            Self::Torus => "torus",
            Self::Hypercube => "hypercube",
        }
    }
}

/// Bus bandwidth that a rack must reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Target {
    /// Share of the rate of all links of a node, in one direction.
    OfNode(f64),
    /// 10^9 bytes per second.
    Gbps(f64),
}

/// Numbers, ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Counts(pub(crate) Vec<u64>);

#[derive(Debug, Args)]
pub(crate) struct RecommendArguments {
    /// The rack file: its links, timers and other settings hold for every candidate
    pub(crate) file: PathBuf,
    #[arg(
        long, help_heading = WHAT, value_name = "NAME", value_parser = named::<CollectiveKind>(),
        help = summary("job.collective.collective")
    )]
    pub(crate) collective: CollectiveKind,
    /// Size of the array, such as 1GiB
    #[arg(long, help_heading = WHAT, value_name = "SIZE", value_parser = size)]
    pub(crate) bytes: u64,
    #[arg(
        long = "type", visible_alias = "dtype", help_heading = WHAT, value_name = "NAME",
        value_parser = named::<ElementType>(), default_value = "f32", help = summary("job.collective.type")
    )]
    pub(crate) element: ElementType,
    /// Replace the value of any key of the rack file, such as link.rate=400Gbit/s; may be repeated
    #[arg(long, help_heading = WHAT, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Bus bandwidth to reach: busbw=0.8 is a share of the rate of all links of a node, busbw=90GB/s is absolute
    #[arg(long, help_heading = WHAT, value_name = "busbw=VALUE", value_parser = target)]
    pub(crate) target: Target,
    /// Numbers of nodes: a range, of which powers of two and both ends count, or a list such as 12,24,48
    #[arg(long, help_heading = SEARCH, value_name = "FROM..TO", value_parser = nodes)]
    pub(crate) nodes: Counts,
    /// Numbers of planes of a star, and of leaves and spines: a range or a list
    #[arg(long, help_heading = SEARCH, value_name = "FROM..TO", value_parser = planes, default_value = "1")]
    pub(crate) planes: Counts,
    /// Shapes
    #[arg(long, help_heading = SEARCH, value_enum, value_delimiter = ',', default_values_t = ShapeName::ALL)]
    pub(crate) shapes: Vec<ShapeName>,
    /// Algorithms; if absent, all that can perform the collective without the switches. in-switch assumes that the switches of a star reduce
    #[arg(long, help_heading = SEARCH, value_name = "NAME,...", value_delimiter = ',', value_parser = algorithm)]
    pub(crate) algorithm: Vec<AlgorithmKind>,
    /// Number of candidates to simulate
    #[arg(long, help_heading = SEARCH, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) best: u16,
    /// Largest number of frames of one simulated run: a larger array is halved until it fits, and the time is scaled by the estimates
    #[arg(long, help_heading = SEARCH, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1_000..=10_000_000_000))]
    pub(crate) frames_max: u64,
    /// Longest time of the search: builds and simulations that would take longer are not begun, and those that do are ended. The result is
    /// then a part, and says which candidates were not built or not simulated
    #[arg(long, help_heading = SEARCH, value_name = "TIME", default_value = "1h", value_parser = time_limit::read)]
    pub(crate) time_limit: Duration,
    /// Print all candidates, and not only the best
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

fn algorithm(text: &str) -> Result<AlgorithmKind, String> {
    let names = || AlgorithmKind::NAMES.join(", ");
    AlgorithmKind::from_name(text).ok_or_else(|| format!("no algorithm; hint: write one of {}", names()))
}

/// Parses `busbw=0.8` or `busbw=90GB/s`.
fn target(text: &str) -> Result<Target, String> {
    let parsed = text.split_once('=').filter(|(name, _)| name.trim() == "busbw").and_then(|(_, value)| {
        let (number, is_absolute) = match value.trim().strip_suffix("GB/s") {
            Some(number) => (number, true),
            None => (value, false),
        };
        let number =
            number.trim().parse::<f64>().ok().filter(|number| number.is_finite() && *number > 0.0)?;
        match is_absolute {
            true => Some(Target::Gbps(number)),
            false => (number <= 1.0).then_some(Target::OfNode(number)),
        }
    });
    parsed.ok_or_else(|| {
        "no target; hint: write busbw=0.8 for a share of the links of a node, or busbw=90GB/s".to_owned()
    })
}

fn nodes(text: &str) -> Result<Counts, String> {
    counts(text, |from, to| {
        let powers = (0..64).map(|bit| 1_u64 << bit).filter(|power| *power > from && *power < to);
        std::iter::once(from).chain(powers).chain(std::iter::once(to)).collect()
    })
}

fn planes(text: &str) -> Result<Counts, String> {
    counts(text, |from, to| (from..=to).collect())
}

/// Largest number that a range may name.
const COUNT_MAX: u64 = 4096;

fn counts(text: &str, between: impl Fn(u64, u64) -> Vec<u64>) -> Result<Counts, String> {
    let wrong =
        || format!("no numbers; hint: write FROM..TO such as 8..64, or a list, from 1 to {COUNT_MAX}");
    let number = |text: &str| {
        text.trim().parse::<u64>().ok().filter(|count| (1..=COUNT_MAX).contains(count)).ok_or_else(wrong)
    };
    let mut counts = match text.split_once("..") {
        None => text.split(',').map(number).collect::<Result<Vec<_>, _>>()?,
        Some((from, to)) => {
            let (from, to) = (number(from)?, number(to)?);
            if from > to {
                return Err("numbers grow; hint: write the smaller one first, as in 8..64".to_owned());
            }
            between(from, to)
        }
    };
    counts.sort_unstable();
    counts.dedup();
    Ok(Counts(counts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_nodes_has_its_ends_and_powers_of_two() {
        assert_eq!(nodes("6..40"), Ok(Counts(vec![6, 8, 16, 32, 40])));
        assert_eq!(nodes("8..8"), Ok(Counts(vec![8])));
        assert_eq!(nodes("12,4,12"), Ok(Counts(vec![4, 12])));
        assert_eq!(planes("1..3"), Ok(Counts(vec![1, 2, 3])));
        for bad in ["", "8..", "40..6", "0..4", "x", "1..9999999"] {
            assert!(nodes(bad).unwrap_err().contains("hint: "), "{bad:?}");
        }
    }

    #[test]
    fn a_target_is_a_share_or_a_bandwidth() {
        assert_eq!(target("busbw=0.8"), Ok(Target::OfNode(0.8)));
        assert_eq!(target("busbw=90 GB/s"), Ok(Target::Gbps(90.0)));
        for bad in ["0.8", "busbw=80", "busbw=0", "algbw=0.5", "busbw=x", "busbw=-1GB/s"] {
            assert!(target(bad).unwrap_err().contains("hint: "), "{bad}");
        }
    }
}
