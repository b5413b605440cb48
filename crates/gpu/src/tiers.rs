//! Sizes from which on one method of moving bytes is faster than another, as measured on a device of this machine.
//!
//! Small writes are copied into pinned staging; the device reads longer ones in place. Many ranges share a launch of a kernel; the copy
//! engines move long ones. Reads go piece by piece; long ones are read ahead in chunks. Each of the three pairs has a size at which the
//! method changes. [`measure`] finds these sizes. [`Tiers::keep`] stores them under the device's name for later processes of this user.
//!
//! Without a measurement the defaults hold. No process measures on its own.

mod measure;

use std::fmt;
use std::fs;
use std::io;
use std::path::PathBuf;

pub use self::measure::{Timed, measure};

/// Sizes at which methods change.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tiers {
    /// Lowest size that the device reads in place, in bytes. Shorter writes are staged.
    pub in_place_bytes_min: u64,
    /// Lowest size that the engines copy, in bytes, for a range among many. Shorter ranges share a launch.
    pub engine_bytes_min: u64,
    /// Lowest length of a read that is read ahead in chunks, in bytes.
    pub ahead_bytes_min: u64,
}

impl Default for Tiers {
    fn default() -> Self {
        Self { in_place_bytes_min: 1 << 10, engine_bytes_min: 32 << 10, ahead_bytes_min: 16 << 10 }
    }
}

impl fmt::Display for Tiers {
    /// Writes the stored form: a name and a number in each line.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { in_place_bytes_min, engine_bytes_min, ahead_bytes_min } = self;
        write!(
            formatter,
            "in-place {in_place_bytes_min}\nengines {engine_bytes_min}\nahead {ahead_bytes_min}\n"
        )
    }
}

impl Tiers {
    /// Parses the stored form. Returns `None` if it is incomplete or a size is impossible.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let number = |word: &str| {
            let mut lines = text.lines().filter_map(|line| line.split_once(' '));
            let number = lines.find(|(name, _)| *name == word)?.1.parse().ok()?;
            // A word that is polled must be written whole, so it is never read in place.
            (number >= 16).then_some(number)
        };
        Some(Self {
            in_place_bytes_min: number("in-place")?,
            engine_bytes_min: number("engines")?,
            ahead_bytes_min: number("ahead")?,
        })
    }

    /// Returns the stored sizes of the device of this name, if there are any.
    #[must_use]
    pub fn kept(device: &str) -> Option<Self> {
        Self::parse(&fs::read_to_string(path_of(device)?).ok()?)
    }

    /// Stores the sizes for every process of this user that uses the device, and returns the path of the file.
    ///
    /// # Errors
    /// The system's error; of kind `NotFound` if there is no cache directory.
    pub fn keep(&self, device: &str) -> io::Result<PathBuf> {
        let path = path_of(device).ok_or(io::ErrorKind::NotFound)?;
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        // A rename is atomic, so a reader never sees half of the file.
        let beside = path.with_extension(format!("{}.new", std::process::id()));
        fs::write(&beside, self.to_string())?;
        fs::rename(&beside, &path)?;
        Ok(path)
    }
}

fn path_of(device: &str) -> Option<PathBuf> {
    Some(crate::kernels::cache_home()?.join("rackloom/tiers").join(device))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_tiers_are_read_again_and_incomplete_ones_refused() {
        let tiers = Tiers { in_place_bytes_min: 2048, engine_bytes_min: 8192, ahead_bytes_min: 65_536 };
        assert_eq!(Tiers::parse(&tiers.to_string()), Some(tiers));
        let broken = [
            "",
            "in-place 2048\nengines 8192\n",
            "in-place 8\nengines 8192\nahead 65536\n",
            "in-place x\nengines 1\nahead 1",
        ];
        broken.into_iter().for_each(|text| assert_eq!(Tiers::parse(text), None, "{text}"));
    }
}
