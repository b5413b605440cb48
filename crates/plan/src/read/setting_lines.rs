//! Settings of the command line (`--set link.loss=1%`) as lines at the end of a rack file's text.
//!
//! They are part of the text, so every process that reads it builds the same plan, and mistakes in them are found by the same
//! reader as mistakes in the file. A YAML parser takes the lines for comments.

/// Beginning of such a line. It is as long as [`SHOWN`], so that columns are equal in messages.
pub(crate) const MARK: &str = "#!set ";
/// Text that messages show in place of [`MARK`].
const SHOWN: &str = "--set ";

/// Returns the text of a rack file with settings that replace keys of the file. Each setting is `KEY=VALUE`. Keys of nested tables
/// are joined by dots: `timers.heartbeat_interval=5ms`.
#[must_use]
pub fn with_settings(text: &str, settings: &[String]) -> String {
    let mut text = text.to_owned();
    for setting in settings {
        if !text.ends_with('\n') {
            text.push('\n');
        }
        // One setting must be one line.
        text += &format!("{MARK}{}\n", setting.replace(['\n', '\r'], " "));
    }
    text
}

/// Returns a line of the text as messages show it, or `None` if it is no setting.
pub(crate) fn shown(line: &str) -> Option<String> {
    line.strip_prefix(MARK).map(|setting| format!("{SHOWN}{setting}"))
}
