//! JSON reports of runs, as files that commands read: reports of `run`, `sim` and `down`, and points of a sweep, which contain one. Files of
//! other kinds, and reports of other versions, are refused.

use std::borrow::Cow;
use std::path::Path;

use rackloom_jobs::report::Report;
use rackloom_plan::{printable, printable_lines};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::bounded::{self, REPORT_BYTES_MAX, Unread};
use crate::failure::Failure;
use crate::sweep::PointResult;

/// Remedy for a file that is no report.
const MAKE: &str = "make one with `rackloom sim FILE --json REPORT.json`";
/// Remedy for a report of another version.
const REPEAT: &str = "run the rack again with this version";

/// Fields that only the report of a run has, and those of a point of a sweep around it.
#[derive(Deserialize, Default)]
struct Outline {
    verdict: Option<IgnoredAny>,
    nodes: Option<IgnoredAny>,
    links: Option<IgnoredAny>,
    manifest: Option<Value>,
    point: Option<IgnoredAny>,
    report: Option<Box<Outline>>,
    refused: Option<Value>,
}

/// Field whose texts may have several lines.
const FAILURES: &str = "failures";

/// Kind of a file, by its outline.
enum Kind {
    /// Report of a run.
    Report { version: String },
    /// Point of a sweep with the report of its run.
    Point { version: String },
}

/// Reads a report.
pub(crate) fn read(path: &Path) -> Result<Report, Failure> {
    of_text(&text(path)?).map_err(|failure| failure.at_path(path))
}

fn text(path: &Path) -> Result<String, Failure> {
    let refused = |what: String, hint: &str| Failure::bad_input(what).at_path(path).hint(hint);
    let bytes = bounded::read(path, REPORT_BYTES_MAX).map_err(|unread| match unread {
        Unread::System(error) => refused(format!("cannot read the report: {error}"), MAKE),
        Unread::TooLarge(lengths) => refused(lengths.text("a report"), MAKE),
    })?;
    String::from_utf8(bytes).map_err(|_| refused("the report is no UTF-8 text".to_owned(), MAKE))
}

fn of_text(text: &str) -> Result<Report, Failure> {
    let kind = kind(&outline(text)?)?;
    let (Kind::Report { version } | Kind::Point { version }) = &kind;
    must_be_of_this_version(version)?;
    let report = match kind {
        Kind::Report { .. } => serde_json::from_str(text).map(Some),
        Kind::Point { .. } => serde_json::from_str::<PointResult>(text).map(|point| point.report),
    };
    let other_form =
        |what: &str| Failure::bad_input(format!("the report has another form: {what}")).hint(REPEAT);
    let report = report
        .map_err(|error| other_form(&printable(&error.to_string())))?
        .ok_or_else(|| other_form("it is null"))?;
    // An escape stands for any character.
    if !text.contains('\\') && matches!(printable_lines(text), Cow::Borrowed(_)) {
        return Ok(report);
    }
    let shown = serde_json::to_value(report).and_then(|mut value| {
        make_printable(&mut value, "");
        serde_json::from_value(value)
    });
    shown.map_err(|error| other_form(&error.to_string()))
}

/// Replaces what a terminal must not get in all texts of a report. Each text becomes one line, except for failures, which have several lines
/// where they list what members wait for.
fn make_printable(value: &mut Value, name: &str) {
    match value {
        Value::String(text) => {
            let shown = if name == FAILURES { printable_lines(text) } else { printable(text) };
            if let Cow::Owned(shown) = shown {
                *text = shown;
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| make_printable(value, name)),
        Value::Object(fields) => fields.iter_mut().for_each(|(name, value)| make_printable(value, name)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns the outline of a text; an empty one if it is JSON of another kind.
fn outline(text: &str) -> Result<Outline, Failure> {
    let error = match serde_json::from_str(text) {
        Ok(outline) => return Ok(outline),
        Err(error) if error.is_data() => return Ok(Outline::default()),
        Err(error) => error,
    };
    let what = if error.is_eof() { "the report is truncated" } else { "the report is no JSON" };
    let error_text = error.to_string();
    let place = format!("line {}, column {}", error.line(), error.column());
    Err(Failure::bad_input(format!("{what}: {place}: {}", printable(&error_text))).hint(MAKE))
}

fn kind(outline: &Outline) -> Result<Kind, Failure> {
    let version = |outline: &Outline| {
        let manifest = outline.manifest.as_ref().map(|manifest| &manifest["version"]);
        manifest.and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let lacking = missing(outline);
    match (&outline.point, &outline.report, &outline.refused) {
        _ if lacking.is_empty() => Ok(Kind::Report { version: version(outline) }),
        (Some(_), Some(report), _) if missing(report).is_empty() => {
            Ok(Kind::Point { version: version(report) })
        }
        (Some(_), None, Some(reason)) => {
            let reason = reason.as_str().and_then(|reason| reason.lines().next()).unwrap_or_default();
            let what = "this point of a sweep has no report, because its run was refused";
            Err(Failure::bad_input(format!("{what}: {}", printable(reason)))
                .hint("name another point; results.csv of the sweep lists them"))
        }
        _ => {
            let missing = lacking.join(", ");
            Err(Failure::bad_input(format!("this is no report of a run: it has no {missing}")).hint(MAKE))
        }
    }
}

/// Returns the names of the fields that the report of a run has and this one lacks.
fn missing(outline: &Outline) -> Vec<&'static str> {
    let Outline { verdict, nodes, links, manifest, .. } = outline;
    let fields = [
        ("verdict", verdict.is_some()),
        ("nodes", nodes.is_some()),
        ("links", links.is_some()),
        ("manifest", manifest.is_some()),
    ];
    fields.into_iter().filter(|(_, is_there)| !is_there).map(|(name, _)| name).collect()
}

fn must_be_of_this_version(version: &str) -> Result<(), Failure> {
    let own = env!("CARGO_PKG_VERSION");
    if series(version) == series(own) {
        return Ok(());
    }
    let what = format!(
        "`manifest.version` is `{}`: the report is of another version than this one, {own}",
        printable(version)
    );
    Err(Failure::bad_input(what).hint(REPEAT))
}

/// Returns the part of a version within which reports keep their form.
fn series(version: &str) -> Vec<&str> {
    version.split('.').take(2).collect()
}
