//! Options of the job: its kind, its data and its repetitions. They are declared in [`rackloom_control::job_options`]; this file
//! gives them their parsers and help texts.
//!
//! Help, values and ranges of an option that replaces one key come from the declaration of that key.
//! [`rackloom_runtime::request::overrides`] checks if the options fit together and fit the plan.

use std::path::PathBuf;

use clap::Args;
use rackloom_collectives::{CollectiveKind, ElementType, ReduceOperation};
use rackloom_control::source::{self, AlgorithmNames};
use rackloom_plan::{JobName, OnLoss, PatternName, Sizes};

use super::declared::{meaning, named, names, on_or_off, summary, value};
use super::headings::{DATA, FAULTS, WHAT};
use super::output::{NAME_A_DIRECTORY, file_beside};

/// Declares the options, and the message to the runtime that follows from them.
macro_rules! declare_arguments {
    ($($(#[$attribute:meta])* $name:ident: $type:ty, $long:literal $(| $alias:literal)?, $form:ident($($text:literal),*),
        $heading:ident;)*) => {
        /// Options that replace values of the rack file's job.
        #[derive(Args, Clone, Debug, Default)]
        pub(crate) struct JobOptions {
            $(
                #[arg(
                    long = $long, visible_aliases = Vec::<&str>::from([$($alias)?]), help_heading = $heading,
                    value_name = value_name!($($text),*), value_parser = parser!($form $type, $($text),*),
                    conflicts_with_all = conflicts!($form), help = help!($form $($text),*),
                    long_help = long_help!($form $($text),*)
                )]
                pub(crate) $name: Option<$type>,
            )*
        }

        impl From<JobOptions> for source::JobOptions {
            fn from(options: JobOptions) -> Self {
                let JobOptions { $($name),* } = options;
                Self { $($name),* }
            }
        }
    };
}

/// Name of the value: the first argument of every form.
macro_rules! value_name {
    ($name:literal $(, $rest:literal)*) => {
        $name
    };
}

/// Parser of each form.
macro_rules! parser {
    (choice $type:ty, $name:literal, $key:literal) => {
        named::<$type>()
    };
    (implying $type:ty, $name:literal, $key:literal, $help:literal) => {
        named::<$type>()
    };
    (list $type:ty, $name:literal, $key:literal) => {
        names::<<$type as IntoIterator>::Item>()
    };
    (text $type:ty, $name:literal, $key:literal) => {
        clap::value_parser!($type)
    };
    (count $type:ty, $name:literal, $key:literal) => {
        value::<$type>($key)
    };
    (switch $type:ty, $name:literal, $key:literal) => {
        on_or_off()
    };
    ($size:ident $type:ty, $name:literal, $help:literal) => {
        $size
    };
}

/// Options that exclude an option of each form.
macro_rules! conflicts {
    (sizes) => {
        ["bytes"]
    };
    ($other:ident) => {
        [""; 0]
    };
}

/// Short help text of each form.
macro_rules! help {
    (size $name:literal, $help:literal) => {
        $help
    };
    (sizes $name:literal, $help:literal) => {
        $help
    };
    (implying $name:literal, $key:literal, $help:literal) => {
        format!("{}{}", summary($key), $help)
    };
    ($form:ident $name:literal, $key:literal) => {
        summary($key)
    };
}

/// Long help text of each form.
macro_rules! long_help {
    (list $name:literal, $key:literal) => {
        meaning($key)
    };
    (count $name:literal, $key:literal) => {
        meaning($key)
    };
    (switch $name:literal, $key:literal) => {
        meaning($key)
    };
    ($form:ident $($text:literal),*) => {
        help!($form $($text),*)
    };
}

rackloom_control::job_options!(declare_arguments);

/// Options of arrays in files.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ArrayOptions {
    /// Read the ranks' arrays from rank0.npy, rank1.npy, ... in this directory
    #[arg(long, help_heading = DATA, value_name = "DIR")]
    pub(crate) input: Option<PathBuf>,
    /// Write the ranks' results to rank0.npy, rank1.npy, ... in this directory
    #[arg(long, help_heading = DATA, value_name = "DIR", value_parser = file_beside(NAME_A_DIRECTORY))]
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
