//! Results as test cases in JUnit's XML, which systems of continuous integration show.
//!
//! [`document()`] writes cases. [`cases_of()`] makes the cases of a run: one for its job, one for each oracle, one for each event of
//! its fault script. Names of cases do not depend on results, so that such a system can follow each over time.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use rackloom_control::report::{FaultReport, Report, Verdict};

/// Outcome of a test case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaseOutcome {
    /// The case passed.
    Passed,
    /// A check failed.
    Failed {
        /// Reason in one line.
        message: String,
        /// Details.
        text: String,
    },
    /// The case could not be performed, for a reason beyond what it tests.
    Error {
        /// Reason in one line.
        message: String,
        /// Details.
        text: String,
    },
    /// Nothing was judged.
    Skipped {
        /// Reason.
        reason: String,
    },
}

/// Test case.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Name of its suite.
    pub suite: String,
    /// Name of the case.
    pub name: String,
    /// Duration in seconds. The attribute is left out for 0 and for numbers that are no duration.
    pub seconds: f64,
    /// Outcome.
    pub outcome: CaseOutcome,
    /// Further text of the case; empty if there is none.
    pub output: String,
}

impl Case {
    /// Returns a case without a duration or further text.
    #[must_use]
    pub fn new(suite: impl Into<String>, name: impl Into<String>, outcome: CaseOutcome) -> Self {
        Self { suite: suite.into(), name: name.into(), seconds: 0.0, outcome, output: String::new() }
    }
}

/// Number of cases by outcome.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    tests: usize,
    failures: usize,
    errors: usize,
    skipped: usize,
    seconds: f64,
}

impl Totals {
    fn of<'a>(cases: impl IntoIterator<Item = &'a Case>) -> Self {
        let mut totals = Self::default();
        for case in cases {
            totals.tests += 1;
            totals.seconds += seconds(case.seconds);
            match case.outcome {
                CaseOutcome::Passed => {}
                CaseOutcome::Failed { .. } => totals.failures += 1,
                CaseOutcome::Error { .. } => totals.errors += 1,
                CaseOutcome::Skipped { .. } => totals.skipped += 1,
            }
        }
        totals
    }

    fn attributes(&self) -> String {
        let Self { tests, failures, errors, skipped, seconds } = self;
        let time = time(*seconds);
        format!(
            "tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"{skipped}\" time=\"{time}\""
        )
    }
}

/// Returns the document of all cases. Suites have the order in which they first occur, and each has the properties. The duration of a suite is the
/// sum of those of its cases.
#[must_use]
pub fn document(name: &str, cases: &[Case], properties: &BTreeMap<String, String>) -> String {
    document_of(name, cases, properties, None)
}

/// Returns the document of cases that ran at the same time, as [`document()`] does. `elapsed_s` is the duration of all of them together, in seconds.
/// The document has it, and a suite that has all cases.
#[must_use]
pub fn document_of_parallel(
    name: &str,
    cases: &[Case],
    properties: &BTreeMap<String, String>,
    elapsed_s: f64,
) -> String {
    document_of(name, cases, properties, Some(elapsed_s))
}

fn document_of(
    name: &str,
    cases: &[Case],
    properties: &BTreeMap<String, String>,
    elapsed_s: Option<f64>,
) -> String {
    let totals = |cases: &[&Case]| {
        let totals = Totals::of(cases.iter().copied());
        Totals { seconds: elapsed_s.map_or(totals.seconds, seconds), ..totals }
    };
    let mut suites: Vec<(&str, Vec<&Case>)> = Vec::new();
    let mut positions = BTreeMap::new();
    for case in cases {
        let position = *positions.entry(case.suite.as_str()).or_insert_with(|| {
            suites.push((&case.suite, Vec::new()));
            suites.len() - 1
        });
        suites[position].1.push(case);
    }
    let mut xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned();
    line(
        &mut xml,
        0,
        &format!(
            "<testsuites name=\"{}\" {}>",
            attribute(name),
            totals(&cases.iter().collect::<Vec<_>>()).attributes()
        ),
    );
    let has_several = suites.len() > 1;
    for (name, cases) in suites {
        let totals = if has_several { Totals::of(cases.iter().copied()) } else { totals(&cases) };
        line(&mut xml, 1, &format!("<testsuite name=\"{}\" {}>", attribute(name), totals.attributes()));
        if !properties.is_empty() {
            line(&mut xml, 2, "<properties>");
            for (key, value) in properties {
                let (key, value) = (attribute(key), attribute(value));
                line(&mut xml, 3, &format!("<property name=\"{key}\" value=\"{value}\"/>"));
            }
            line(&mut xml, 2, "</properties>");
        }
        cases.into_iter().for_each(|case| test_case(&mut xml, case));
        line(&mut xml, 1, "</testsuite>");
    }
    line(&mut xml, 0, "</testsuites>");
    xml
}

fn test_case(xml: &mut String, case: &Case) {
    let (suite, name) = (attribute(&case.suite), attribute(&case.name));
    let time = match seconds(case.seconds) {
        0.0 => String::new(),
        seconds => format!(" time=\"{}\"", time(seconds)),
    };
    line(xml, 2, &format!("<testcase classname=\"{suite}\" name=\"{name}\"{time}>"));
    let finding = |element: &str, message: &str, body: &str| {
        format!("<{element} message=\"{}\">{}</{element}>", attribute(message), text(body))
    };
    match &case.outcome {
        CaseOutcome::Passed => {}
        CaseOutcome::Failed { message, text } => line(xml, 3, &finding("failure", message, text)),
        CaseOutcome::Error { message, text } => line(xml, 3, &finding("error", message, text)),
        CaseOutcome::Skipped { reason } => {
            line(xml, 3, &format!("<skipped message=\"{}\"/>", attribute(reason)));
        }
    }
    if !case.output.is_empty() {
        line(xml, 3, &format!("<system-out>{}</system-out>", text(&case.output)));
    }
    line(xml, 2, "</testcase>");
}

fn line(xml: &mut String, depth: usize, content: &str) {
    // A string takes any text.
    let _ = writeln!(xml, "{:1$}{content}", "", 2 * depth);
}

fn seconds(seconds: f64) -> f64 {
    if seconds.is_finite() && seconds > 0.0 { seconds } else { 0.0 }
}

fn time(seconds: f64) -> String {
    format!("{seconds:.9}")
}

/// Replaces characters that XML 1.0 forbids, and escapes those that have a meaning.
fn text(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '\r' => escaped.push_str("&#13;"),
            '\t' | '\n' => escaped.push(character),
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            _ => escaped.push(character),
        }
    }
    escaped
}

/// Escapes an attribute. Ends of lines and tabs would become blanks without it.
fn attribute(value: &str) -> String {
    text(value).replace('"', "&quot;").replace('\n', "&#10;").replace('\t', "&#9;")
}

/// Returns the cases of a run. The first is the job, which has all failures of the report.
#[must_use]
pub fn cases_of(report: &Report, suite: &str) -> Vec<Case> {
    let oracles = report.oracles.iter().map(|(oracle, tally)| {
        let first = || tally.first.first().cloned().unwrap_or_default();
        let outcome = match (tally.broken, tally.looked) {
            (0, 0) => {
                CaseOutcome::Skipped { reason: format!("none of {} checks had a result", tally.unjudged) }
            }
            (0, _) => CaseOutcome::Passed,
            (broken, _) => CaseOutcome::Failed {
                message: format!("{} ({broken} in all)", first()),
                text: tally.first.join("\n"),
            },
        };
        let output = format!("{} checks, {} without a result", tally.looked, tally.unjudged);
        Case { output, ..Case::new(suite, format!("oracle {}", oracle.name()), outcome) }
    });
    let faults = report.faults.iter().map(|fault| of_fault(report, fault, suite));
    std::iter::once(of_job(report, suite)).chain(oracles).chain(faults).collect()
}

fn of_job(report: &Report, suite: &str) -> Case {
    let message = || report.failures.first().cloned().unwrap_or_else(|| report.verdict.name().to_owned());
    let text = report.failures.join("\n");
    let outcome = match report.verdict {
        Verdict::Pass => CaseOutcome::Passed,
        Verdict::Fail => CaseOutcome::Failed { message: message(), text },
        Verdict::Starved => CaseOutcome::Error { message: message(), text },
        Verdict::CouldNotTell => CaseOutcome::Skipped {
            reason: report
                .failures
                .first()
                .or(report.notes.first())
                .cloned()
                .unwrap_or_else(|| report.verdict.name().to_owned()),
        },
    };
    Case {
        suite: suite.to_owned(),
        name: format!("job {}", report.job),
        seconds: report.elapsed_ns as f64 / 1e9,
        outcome,
        output: report.notes.join("\n"),
    }
}

/// Returns the case of an event of the fault script. It fails if a failure of the report names the event.
fn of_fault(report: &Report, fault: &FaultReport, suite: &str) -> Case {
    let prefix = format!("event {} (", fault.event);
    let failures: Vec<&str> =
        report.failures.iter().filter(|line| line.starts_with(&prefix)).map(String::as_str).collect();
    let outcome = match failures.first() {
        Some(first) => CaseOutcome::Failed { message: (*first).to_owned(), text: failures.join("\n") },
        None if fault.times == 0 && fault.missed == 0 => {
            CaseOutcome::Skipped { reason: "the run was over before the event began".to_owned() }
        }
        None => CaseOutcome::Passed,
    };
    let times = [
        ("detected", fault.detected_after_ns),
        ("paths switched", fault.switched_after_ns),
        ("recovered", fault.recovered_after_ns),
    ];
    let times =
        times.into_iter().filter_map(|(what, time_ns)| Some(format!("; {what} after {} ns", time_ns?)));
    let output = format!("begins: {}{}", fault.times, times.collect::<String>());
    Case { output, ..Case::new(suite, format!("fault {}: {}", fault.event, fault.what), outcome) }
}
