//! JUnit's XML, read by an XML parser of its own.

use std::collections::BTreeMap;

use proptest::prelude::*;
use rackloom_control::oracle::Oracle;
use rackloom_control::report::{Context, FaultReport, Report, Verdict};
use rackloom_export::junit::{Case, CaseOutcome, cases_of, document, document_of_parallel};
use roxmltree::{Document, Node};

fn elements<'a>(node: Node<'a, 'a>, name: &'static str) -> Vec<Node<'a, 'a>> {
    node.descendants().filter(|node| node.has_tag_name(name)).collect()
}

fn number(node: Node<'_, '_>, name: &str) -> usize {
    node.attribute(name).unwrap_or_else(|| panic!("{name}")).parse().expect("a number")
}

fn failed(message: &str, text: &str) -> CaseOutcome {
    CaseOutcome::Failed { message: message.to_owned(), text: text.to_owned() }
}

#[test]
fn a_suite_of_parallel_cases_has_the_time_of_all_together() {
    let case = |suite: &str| Case { seconds: 2.0, ..Case::new(suite, "one", CaseOutcome::Passed) };
    let times = |cases: &[Case]| {
        let xml = document_of_parallel("all", cases, &BTreeMap::new(), 3.0);
        let parsed = Document::parse(&xml).unwrap();
        let root = parsed.root_element();
        let nodes = [vec![root], elements(root, "testsuite")].concat();
        nodes.iter().map(|node| node.attribute("time").unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(times(&[case("a"), case("a")]), ["3.000000000"; 2]);
    assert_eq!(times(&[case("a"), case("b")]), ["3.000000000", "2.000000000", "2.000000000"]);
}

#[test]
fn cases_are_grouped_and_counted_by_suite() {
    let cases = [
        Case { seconds: 1.5, ..Case::new("a", "one", CaseOutcome::Passed) },
        Case::new("b", "two", failed("m", "t1\nt2")),
        Case { seconds: 0.25, ..Case::new("a", "three", CaseOutcome::Skipped { reason: "r".to_owned() }) },
        Case {
            seconds: f64::NAN,
            ..Case::new("a", "four", CaseOutcome::Error { message: "e".to_owned(), text: String::new() })
        },
    ];
    let xml = document("all", &cases, &BTreeMap::from([("seed".to_owned(), "7".to_owned())]));
    let parsed = Document::parse(&xml).unwrap();
    let root = parsed.root_element();
    let counts =
        |node: Node<'_, '_>| ["tests", "failures", "errors", "skipped"].map(|name| number(node, name));
    assert_eq!((root.tag_name().name(), counts(root)), ("testsuites", [4, 1, 1, 1]));
    assert_eq!(root.attribute("time"), Some("1.750000000"));
    let suites = elements(root, "testsuite");
    let names: Vec<_> = suites.iter().map(|suite| suite.attribute("name").unwrap()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!((counts(suites[0]), counts(suites[1])), ([3, 0, 1, 1], [1, 1, 0, 0]));
    for suite in &suites {
        let property = elements(*suite, "property")[0];
        assert_eq!((property.attribute("name"), property.attribute("value")), (Some("seed"), Some("7")));
        assert_eq!(elements(*suite, "testcase").len(), number(*suite, "tests"));
    }
    let failure = elements(root, "failure")[0];
    assert_eq!((failure.attribute("message"), failure.text()), (Some("m"), Some("t1\nt2")));
    assert_eq!(elements(root, "skipped")[0].attribute("message"), Some("r"));
    let case = elements(suites[0], "testcase")[0];
    assert_eq!((case.attribute("classname"), case.attribute("time")), (Some("a"), Some("1.500000000")));
    // No duration is not one of zero.
    for suite in &suites {
        for case in elements(*suite, "testcase") {
            let has_time = ["one", "three"].contains(&case.attribute("name").unwrap());
            assert_eq!(case.attribute("time").is_some(), has_time, "{xml}");
        }
    }
}

#[test]
fn a_document_without_cases_is_whole() {
    let xml = document("", &[], &BTreeMap::new());
    assert_eq!(number(Document::parse(&xml).unwrap().root_element(), "tests"), 0);
}

/// Returns a text as a reader of XML gets it.
fn as_read(text: &str) -> String {
    let is_allowed = |character: char| matches!(character, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    text.chars().map(|character| if is_allowed(character) { character } else { '\u{fffd}' }).collect()
}

fn any_text() -> impl Strategy<Value = String> {
    let special = proptest::string::string_regex("[\\x00-\\x1f<>&\"'\\]\u{fffe}\u{ffff}\u{10ffff}]{0,6}");
    prop_oneof![any::<String>(), special.expect("a pattern")]
}

proptest! {
    #[test]
    fn any_texts_return_but_for_forbidden_characters(
        texts in proptest::collection::vec(any_text(), 5),
        seconds in proptest::num::f64::ANY,
    ) {
        let [suite, name, message, text, output] = &texts[..] else { panic!("five texts") };
        let outcome = failed(message, text);
        let case = Case { seconds, output: output.clone(), ..Case::new(suite, name, outcome) };
        let xml = document(name, &[case], &BTreeMap::from([(suite.clone(), text.clone())]));
        let parsed = Document::parse(&xml).map_err(|error| TestCaseError::fail(format!("{error}\n{xml}")))?;
        let root = parsed.root_element();
        let case = elements(root, "testcase")[0];
        prop_assert_eq!(case.attribute("name").unwrap(), as_read(name));
        prop_assert_eq!(case.attribute("classname").unwrap(), as_read(suite));
        let failure = elements(root, "failure")[0];
        prop_assert_eq!(failure.attribute("message").unwrap(), as_read(message));
        prop_assert_eq!(failure.text().unwrap_or(""), as_read(text));
        let printed = elements(root, "system-out").first().and_then(Node::text).unwrap_or("").to_owned();
        prop_assert_eq!(printed, as_read(output));
        let time = case.attribute("time").map(|time| time.parse::<f64>().unwrap());
        prop_assert_eq!(time.is_some(), seconds.is_finite() && seconds > 0.0);
        prop_assert!(time.is_none_or(|time| time.is_finite() && time >= 0.0));
    }
}

fn report() -> Report {
    let mut report = Report::assemble(
        Context { job: "litmus".to_owned(), elapsed_ns: 2_500_000_000, ..Context::default() },
        &[],
    );
    let fault =
        |event, times| FaultReport { event, what: format!("down l{event}"), times, ..FaultReport::default() };
    report.faults = vec![fault(1, 2), fault(2, 0), fault(12, 1)];
    report.oracles.hold_times(Oracle::Order, 9);
    report.oracles.find(Oracle::Credits, || "n0 has 3".to_owned());
    report.oracles.pass_over(Oracle::Refusals);
    report
}

#[test]
fn a_run_has_a_case_for_its_job_each_oracle_and_each_fault() {
    let mut report = report();
    report.verdict = Verdict::Fail;
    report.failures = vec!["event 1 (down l1) was not noticed 1 times".to_owned(), "n0: lost".to_owned()];
    let cases = cases_of(&report, "ring");
    let outcome = |name: &str| {
        let found = cases.iter().find(|case| case.name == name);
        found.unwrap_or_else(|| panic!("{name} in {cases:?}")).outcome.clone()
    };
    assert_eq!(cases[0].name, "job litmus");
    assert_eq!(cases[0].seconds, 2.5);
    assert_eq!(cases[0].outcome, failed(&report.failures[0], &report.failures.join("\n")));
    assert_eq!(outcome("oracle order"), CaseOutcome::Passed);
    assert_eq!(outcome("oracle credits"), failed("n0 has 3 (1 in all)", "n0 has 3"));
    assert!(matches!(outcome("oracle refusals"), CaseOutcome::Skipped { .. }));
    assert_eq!(outcome("fault 1: down l1"), failed(&report.failures[0], &report.failures[0]));
    assert!(matches!(outcome("fault 2: down l2"), CaseOutcome::Skipped { .. }), "it never began");
    assert_eq!(outcome("fault 12: down l12"), CaseOutcome::Passed, "event 1 is another one");
    assert!(cases.iter().all(|case| case.suite == "ring"));
}

#[test]
fn each_verdict_has_its_outcome() {
    let of = |verdict| cases_of(&Report { verdict, ..report() }, "s")[0].outcome.clone();
    assert_eq!(of(Verdict::Pass), CaseOutcome::Passed);
    assert!(matches!(of(Verdict::Fail), CaseOutcome::Failed { message, .. } if message == "fail"));
    assert!(matches!(of(Verdict::Starved), CaseOutcome::Error { .. }));
    assert!(matches!(of(Verdict::CouldNotTell), CaseOutcome::Skipped { .. }));
}
