//! Text of a rack file or a fault script, or the reason why it cannot be read.
//!
//! At most [`FILE_BYTES_MAX`] + 1 bytes are read. The parser refuses a text that is longer. This file does not interpret the text.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use crate::read::document::FILE_BYTES_MAX;

/// Reason why a file could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// Description of the error, in lower case.
    pub message: String,
    /// Action that helps.
    pub hint: &'static str,
}

/// Kind of a file that a user names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextFile {
    /// Rack file.
    Rack,
    /// Fault script.
    FaultScript,
}

impl TextFile {
    const fn name(self) -> &'static str {
        match self {
            Self::Rack => "rack file",
            Self::FaultScript => "fault script",
        }
    }

    /// Returns the advice for a file that does not exist.
    const fn examples(self) -> &'static str {
        match self {
            Self::Rack => "rack files that come with the project are in topologies/",
            Self::FaultScript => "scripts that come with the project are in scripts/faults/",
        }
    }
}

/// Reads the text of a file.
///
/// # Errors
/// Returns the error of the system, or an error if the bytes are no text, with a hint.
pub fn text_of(path: &Path, kind: TextFile) -> Result<String, Unreadable> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes))
        .map_err(|error| unreadable(&error, kind))?;
    String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        Unreadable {
            message: format!("the {} is no UTF-8 text: line {line} holds other bytes", kind.name()),
            hint: "save it as UTF-8; names in it have letters, digits, `_`, `.` and `-` only",
        }
    })
}

fn unreadable(error: &std::io::Error, kind: TextFile) -> Unreadable {
    let hint = match error.kind() {
        ErrorKind::IsADirectory => "name one file of this directory",
        ErrorKind::PermissionDenied => "this user may not read it; change its permissions, or name a copy",
        _ => kind.examples(),
    };
    Unreadable { message: format!("cannot read the {}: {error}", kind.name()), hint }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hint_fits_the_error() {
        let directory = text_of(Path::new("/"), TextFile::Rack).expect_err("a directory has no text");
        assert!(directory.hint.contains("one file of this directory"), "{directory:?}");
        let missing = text_of(Path::new("/nonexistent/rack.yaml"), TextFile::Rack)
            .expect_err("the file does not exist");
        assert!(missing.hint.contains("topologies/"), "{missing:?}");
        let script = text_of(Path::new("/nonexistent/script.yaml"), TextFile::FaultScript);
        let script = script.expect_err("the file does not exist");
        assert!(
            script.message.contains("the fault script: ") && script.hint.contains("scripts/faults/"),
            "{script:?}"
        );
    }

    #[test]
    fn a_file_that_is_no_text_is_refused_with_the_line() {
        let name = format!("rackloom-text-{}.yaml", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, b"name: r\nseed: \xff\n").expect("the directory of temporary files is there");
        let found = text_of(&path, TextFile::Rack);
        std::fs::remove_file(&path).expect("the file was written above");
        let found = found.expect_err("the bytes are no text");
        assert!(found.message.contains("line 2") && found.hint.contains("UTF-8"), "{found:?}");
    }
}
