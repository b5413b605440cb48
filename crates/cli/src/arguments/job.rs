//! Options of the job: its kind, its data and its repetitions.
//!
//! Help, values and ranges of an option that replaces one key come from the declaration of that key.
//! [`rackloom_runtime::request::overrides`] checks if the options fit together and fit the plan.

use std::path::PathBuf;

use clap::{ArgAction, Args};
use rackloom_collectives::{CollectiveKind, ElementType, ReduceOperation};
use rackloom_plan::{AlgorithmChoice, JobName, OnLoss, PatternName, Sizes};

use super::declared::{meaning, named, summary, value};
use super::headings::{DATA, FAULTS, WHAT};

/// Options that replace values of the rack file's job.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct JobOptions {
    #[arg(long, help_heading = WHAT, value_name = "JOB", value_parser = named::<JobName>(), help = summary("job"))]
    pub(crate) job: Option<JobName>,
    #[arg(
        long, help_heading = WHAT, value_name = "NAME", value_parser = named::<CollectiveKind>(),
        help = summary("job.collective.collective")
    )]
    pub(crate) collective: Option<CollectiveKind>,
    #[arg(
        long, help_heading = DATA, value_name = "NAME", value_parser = named::<ReduceOperation>(),
        help = summary("job.collective.op")
    )]
    pub(crate) op: Option<ReduceOperation>,
    #[arg(
        long = "type", help_heading = DATA, visible_alias = "dtype", value_name = "NAME",
        value_parser = named::<ElementType>(), help = summary("job.collective.type")
    )]
    pub(crate) element: Option<ElementType>,
    #[arg(
        long, help_heading = WHAT, value_name = "NAME[,NAME]", value_delimiter = ',', num_args = 1,
        action = ArgAction::Set, value_parser = named::<AlgorithmChoice>(),
        help = summary("job.collective.algorithm"), long_help = meaning("job.collective.algorithm")
    )]
    pub(crate) algorithm: Option<Vec<AlgorithmChoice>>,
    #[arg(long, help_heading = WHAT, value_name = "NODE", help = summary("job.collective.root"))]
    pub(crate) root: Option<String>,
    #[arg(
        long, help_heading = FAULTS, value_name = "NAME", value_parser = named::<OnLoss>(),
        help = summary("job.collective.on_loss")
    )]
    pub(crate) on_loss: Option<OnLoss>,
    #[arg(
        long, help_heading = WHAT, value_name = "NAME", value_parser = named::<PatternName>(),
        help = format!("{}; implies --job traffic", summary("job.traffic.pattern"))
    )]
    pub(crate) pattern: Option<PatternName>,
    #[arg(
        long, help_heading = DATA, value_name = "N", value_parser = value::<u32>("job.traffic.messages"),
        help = summary("job.traffic.messages"), long_help = meaning("job.traffic.messages")
    )]
    pub(crate) messages: Option<u32>,
    /// Size of the array or of one message, such as 1MiB
    #[arg(long, help_heading = DATA, value_name = "SIZE", value_parser = size)]
    pub(crate) bytes: Option<u64>,
    /// One size, such as 64KiB, or a range, such as 8B..1MiB (each twice the previous one) or 8B..1MiB*4
    #[arg(long, help_heading = DATA, value_name = "SIZE|FROM..TO", value_parser = sizes, conflicts_with = "bytes")]
    pub(crate) sizes: Option<Sizes>,
    #[arg(
        long, help_heading = DATA, value_name = "N", value_parser = value::<u32>("job.collective.repetitions"),
        help = summary("job.collective.repetitions")
    )]
    pub(crate) repetitions: Option<u32>,
    #[arg(
        long, help_heading = DATA, value_name = "N", value_parser = value::<u32>("job.collective.warm_up"),
        help = summary("job.collective.warm_up")
    )]
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

/// Parses a size. A number without a unit counts bytes.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    bytes("job.collective.bytes", text)
}

/// Parses a size in the range of a key.
fn bytes(path: &'static str, text: &str) -> Result<u64, String> {
    let is_bare = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let with_unit = if is_bare { format!("{text}B") } else { text.to_owned() };
    value(path)(&with_unit)
}

/// Parses one size, or a range of sizes with its factor.
fn sizes(text: &str) -> Result<Sizes, String> {
    const FROM: &str = "job.collective.sizes.from";
    let Some((from, rest)) = text.split_once("..") else {
        return bytes(FROM, text.trim()).map(Sizes::one);
    };
    let (to, factor) = rest.split_once('*').unwrap_or((rest, "2"));
    let range = Sizes {
        from_bytes: bytes(FROM, from.trim())?,
        to_bytes: bytes("job.collective.sizes.to", to.trim())?,
        factor: value("job.collective.sizes.factor")(factor.trim())?,
    };
    if range.from_bytes > range.to_bytes {
        return Err("sizes grow; hint: write the smaller size first, as in 8B..1MiB".to_owned());
    }
    Ok(range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in
            [("0", 0), ("17", 17), ("17B", 17), ("4KiB", 4096), ("2 MB", 2_000_000), ("1GiB", 1 << 30)]
        {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for bad in ["", "B", "-1", "1.5", "1 apple", "99999999999999999999", "99999999999GiB", "65GiB"] {
            assert!(size(bad).unwrap_err().contains("hint: "), "{bad}");
        }
    }

    #[test]
    fn a_range_grows() {
        let range = |from_bytes, to_bytes, factor| Ok(Sizes { from_bytes, to_bytes, factor });
        assert_eq!(sizes("8B..1KiB"), range(8, 1024, 2));
        assert_eq!(sizes("8..1KiB*4"), range(8, 1024, 4));
        assert_eq!(sizes("64KiB"), range(65_536, 65_536, 2));
        for bad in ["", "0", "some", "8..", "..8", "0..8", "9..8", "8..16*1", "8..16*x", "8...16"] {
            assert!(sizes(bad).unwrap_err().contains("hint: "), "{bad}");
        }
    }
}
