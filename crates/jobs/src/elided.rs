//! Note of jobs on memory that keeps no payload (`payload: elided`): the checks that took the place of a comparison of bytes.

/// Returns the note. `checks`: properties that have been checked.
pub(crate) fn note(checks: &str) -> String {
    format!("`payload` is elided, so no bytes were compared: {checks}")
}
