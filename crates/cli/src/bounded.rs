//! Files that are read up to a bound: a device without an end, or a file that was named by mistake, does not fill the memory.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use crate::present::units;

/// Maximum length of a report of a run, in bytes. With time series, a direction of a link takes about 840 bytes, and the largest rack has
/// 131 070 of them.
pub(crate) const REPORT_BYTES_MAX: u64 = 512 << 20;

/// Reason why a file was not read.
#[derive(Debug)]
pub(crate) enum Unread {
    System(io::Error),
    TooLarge(TooLarge),
}

/// Lengths of a file that is too large, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLarge {
    /// Least that is known of the length.
    length: u64,
    bytes_max: u64,
}

impl TooLarge {
    /// Returns the lengths of a file that is larger than `bytes_max`; `None` if it is not.
    pub(crate) fn of(length: u64, bytes_max: u64) -> Option<Self> {
        (length > bytes_max).then_some(Self { length, bytes_max })
    }

    /// Returns the text of a refusal. `kind` is what the file should be, such as `a report`.
    pub(crate) fn text(&self, kind: &str) -> String {
        let (size, limit) = (units::bytes(self.length), units::bytes(self.bytes_max));
        let size = if self.length == self.bytes_max + 1 { format!("more than {limit}") } else { size };
        format!("the file has {size}, and {kind} has {limit} at most")
    }
}

/// Reads a file of this length at most.
///
/// # Errors
/// The file is longer, or cannot be read.
pub(crate) fn read(path: &Path, bytes_max: u64) -> Result<Vec<u8>, Unread> {
    let file = File::open(path).map_err(Unread::System)?;
    // A pipe and a device have no length before their end.
    let stated = file.metadata().map_or(0, |found| found.len());
    let mut bytes = Vec::new();
    if stated <= bytes_max {
        file.take(bytes_max + 1).read_to_end(&mut bytes).map_err(Unread::System)?;
    }
    match TooLarge::of(stated.max(bytes.len() as u64), bytes_max) {
        Some(lengths) => Err(Unread::TooLarge(lengths)),
        None => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_up_to_its_bound() {
        let path = std::env::temp_dir().join(format!("rackloom-bounded-{}", std::process::id()));
        std::fs::write(&path, [7; 1000]).expect("the directory of temporary files is there");
        let found = [read(&path, 1000), read(&path, 999), read(Path::new("/dev/zero"), 4096)];
        std::fs::remove_file(&path).expect("the file was written above");
        let texts = found.map(|found| match found {
            Ok(bytes) => format!("{} bytes", bytes.len()),
            Err(Unread::TooLarge(lengths)) => lengths.text("a report"),
            Err(Unread::System(error)) => error.to_string(),
        });
        assert_eq!(texts[0], "1000 bytes");
        assert_eq!(texts[1], "the file has more than 999 B, and a report has 999 B at most");
        assert_eq!(texts[2], "the file has more than 4.00 KiB, and a report has 4.00 KiB at most");
        assert!(matches!(read(Path::new("/nonexistent"), 9), Err(Unread::System(_))));
    }
}
