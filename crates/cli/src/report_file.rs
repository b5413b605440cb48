//! JSON reports of runs, as files that commands read. Files of other kinds, and reports of other versions, are refused.

use std::path::Path;

use rackloom_jobs::report::Report;
use serde_json::Value;

use crate::failure::Failure;

/// Fields that only the report of a run has.
const FIELDS: [&str; 4] = ["verdict", "nodes", "links", "manifest"];

/// Reads a report.
pub(crate) fn read(path: &Path) -> Result<Report, Failure> {
    let failure = |what: String, hint: &str| Failure::bad_input(what).at_path(path).hint(hint);
    let make = "make one with `rackloom sim FILE --json REPORT.json`";
    let text = std::fs::read_to_string(path)
        .map_err(|error| failure(format!("cannot read the report: {error}"), make))?;
    let value: Value = serde_json::from_str(&text).map_err(|error| {
        let what = if error.is_eof() { "the report is truncated" } else { "the report is no JSON" };
        failure(format!("{what}: line {}, column {}: {error}", error.line(), error.column()), make)
    })?;
    let missing: Vec<&str> = FIELDS.into_iter().filter(|field| value.get(field).is_none()).collect();
    if !missing.is_empty() {
        let what = format!("this is no report of a run: it has no {}", missing.join(", "));
        return Err(failure(what, make));
    }
    let version = value["manifest"]["version"].as_str().unwrap_or_default();
    let own = env!("CARGO_PKG_VERSION");
    if series(version) != series(own) {
        let what = format!(
            "`manifest.version` is `{version}`: the report is of another version than this one, {own}"
        );
        return Err(failure(what, "run the rack again with this version"));
    }
    // From the text again: errors name line and column.
    serde_json::from_str(&text).map_err(|error| {
        failure(format!("the report has another form: {error}"), "run the rack again with this version")
    })
}

/// Returns the part of a version within which reports keep their form.
fn series(version: &str) -> Vec<&str> {
    version.split('.').take(2).collect()
}
