//! Each judgement, on reports made by hand.

mod support;

use rackloom_compare::{
    Comparison, Direction, Evidence, Judgement, Limits, Outcome, Row, Section, Side, Spread, Texts,
    Thresholds, compare,
};
use rackloom_control::measure::OperationKind;
use rackloom_control::oracle::Oracle;
use rackloom_control::report::{FaultReport, MemberState, Report, TrafficReport, Verdict};
use support::{report, report_of, sweep};

fn all_rows() -> Limits {
    Limits { rows_max: Some(usize::MAX), ..Limits::default() }
}

fn one_run(before: &Report, after: &Report) -> Comparison {
    compare(std::slice::from_ref(before), std::slice::from_ref(after), &all_rows())
}

fn row<'a>(comparison: &'a Comparison, section: Section, name: &str) -> &'a Row {
    let rows = comparison.rows.iter();
    let found = rows.clone().find(|row| row.section == section && row.name == name);
    found.unwrap_or_else(|| panic!("no row {name} in {:?}", rows.map(|row| &row.name).collect::<Vec<_>>()))
}

/// Returns sections, names and judgements of all rows that differ beyond noise.
fn differences(comparison: &Comparison) -> Vec<(Section, &str, Judgement)> {
    let rows = comparison.rows.iter().filter(|row| row.judgement.is_difference());
    rows.map(|row| (row.section, row.name.as_str(), row.judgement)).collect()
}

/// Returns runs in real time with these durations.
fn wall(durations_ns: &[u64]) -> Vec<Report> {
    let run = |elapsed_ns: &u64| Report { elapsed_ns: *elapsed_ns, ..report("wall", 1) };
    durations_ns.iter().map(run).collect()
}

fn duration(before: &[u64], after: &[u64]) -> Row {
    row(&compare(&wall(before), &wall(after), &all_rows()), Section::Time, "duration").clone()
}

#[test]
fn runs_that_differ_in_date_and_command_are_equal() {
    let mut later = report("virtual", 1);
    if let Some(meta) = &mut later.meta {
        meta.date = "2027-07-07T07:07:07Z".to_owned();
        meta.command = "rackloom sim other.yaml".to_owned();
    }
    let comparison = compare(&[report("virtual", 1)], &[later], &all_rows());
    assert_eq!(differences(&comparison), []);
    assert!(comparison.has_no_difference() && comparison.notes.is_empty(), "{:?}", comparison.notes);
    assert_eq!(comparison.outcome, Outcome::Within);
}

#[test]
fn reports_of_one_run_count_once() {
    let runs = |before: &[Report], after: &[Report]| {
        let comparison = compare(before, after, &all_rows());
        (comparison.basis.runs_before, comparison.basis.runs_after, comparison.outcome)
    };
    // Three equal reports show no spread.
    assert_eq!(runs(&wall(&[100; 3]), &wall(&[150; 3])), (1, 1, Outcome::CouldNotTell));
    assert_eq!(runs(&wall(&[100, 101, 100, 102]), &wall(&[150, 151, 152])), (3, 3, Outcome::Over));
    let comparison = compare(&wall(&[100; 3]), &wall(&[150]), &all_rows());
    assert!(comparison.notes[0].starts_with("before: 2 of 3 reports repeat"), "{:?}", comparison.notes);
    assert!(!comparison.notes.iter().any(|note| note.starts_with("after:")), "{:?}", comparison.notes);
}

#[test]
fn repeated_runs_in_virtual_time_count_once() {
    let run = |seed: u64, trace: &str, date: &str| {
        let mut report = report("virtual", seed);
        report.trace_hash = Some(trace.to_owned());
        date.clone_into(&mut report.meta.as_mut().expect("the report has an origin").date);
        report
    };
    let count = |side: &[Report]| compare(side, &[run(1, "a", "2026")], &all_rows()).basis.runs_before;
    assert_eq!(count(&[run(1, "a", "2026"), run(1, "a", "2027")]), 1);
    assert_eq!(count(&[run(1, "a", "2026"), run(1, "b", "2026")]), 2, "another trace");
    assert_eq!(count(&[run(1, "a", "2026"), run(2, "a", "2026")]), 2, "another seed");
    let failed = Report { verdict: Verdict::Fail, ..run(1, "a", "2026") };
    assert_eq!(count(&[run(1, "a", "2026"), failed]), 2, "a run that failed is not lost");
    // In real time a trace says nothing.
    let wall = |elapsed_ns: u64| Report { elapsed_ns, clock: "wall".to_owned(), ..run(1, "a", "2026") };
    assert_eq!(count(&[wall(1), wall(2)]), 2);
}

#[test]
fn a_slower_run_with_an_equal_seed_in_virtual_time_is_worse_and_a_faster_one_better() {
    let (before, mut after) = (report("virtual", 7), report("virtual", 7));
    after.elapsed_ns = 1_200_000;
    let comparison = one_run(&before, &after);
    let found = row(&comparison, Section::Time, "duration");
    assert_eq!((found.judgement, found.evidence), (Judgement::Worse, Some(Evidence::Exact)));
    assert_eq!((found.change, found.unit.as_str()), (Some(0.2), "ns"));
    let spread = Spread { median: 1.2e6, least: 1.2e6, most: 1.2e6, runs: 1 };
    assert_eq!(found.after, Some(Side::Number(spread)));
    assert!(found.is_over_threshold && comparison.is_over());
    let back = compare(&[after], &[before], &all_rows());
    assert_eq!(row(&back, Section::Time, "duration").judgement, Judgement::Better);
    assert!(!back.is_over());
}

#[test]
fn more_goodput_is_better_and_less_is_worse() {
    let (before, mut after) = (report("virtual", 7), report("virtual", 7));
    after.operations[0].goodput_bytes_per_s *= 2;
    let better = one_run(&before, &after);
    assert_eq!(differences(&better), [(Section::Goodput, "put (frames)", Judgement::Better)]);
    let worse = compare(&[after], &[before], &all_rows());
    let found = row(&worse, Section::Goodput, "put (frames)");
    assert_eq!(
        (found.judgement, found.change, found.direction),
        (Judgement::Worse, Some(-0.5), Direction::Higher)
    );
}

#[test]
fn one_run_in_real_time_has_no_known_spread_and_the_outcome_says_so() {
    let comparison = compare(&wall(&[100]), &wall(&[150]), &all_rows());
    let found = row(&comparison, Section::Time, "duration");
    assert_eq!((found.judgement, found.evidence), (Judgement::Changed, Some(Evidence::TooFewRuns)));
    assert!(found.is_suspect && !found.is_over_threshold);
    assert_eq!(comparison.outcome, Outcome::CouldNotTell);
    assert!(comparison.notes[0].contains("too few"), "{:?}", comparison.notes);
    assert_eq!(comparison.basis.false_alarm, Some(0.0));
    // A faster run, and one within the threshold, leave nothing open.
    assert_eq!(compare(&wall(&[100]), &wall(&[50]), &all_rows()).outcome, Outcome::Within);
    assert_eq!(compare(&wall(&[100]), &wall(&[104]), &all_rows()).outcome, Outcome::Within);
}

#[test]
fn ranges_of_repeated_runs_decide_between_noise_and_difference() {
    let noise = duration(&[100, 110, 130], &[120, 150, 160]);
    assert_eq!((noise.judgement, noise.evidence, noise.is_over_threshold), (Judgement::Noise, None, false));
    assert!(noise.change.is_some_and(|change| change > 0.3), "{noise:?}");
    let worse = duration(&[100, 110, 130], &[131, 150, 160]);
    assert_eq!((worse.judgement, worse.evidence), (Judgement::Worse, Some(Evidence::Separate)));
    assert!(worse.is_over_threshold);
    assert_eq!(duration(&[131, 150, 160], &[100, 110, 130]).judgement, Judgement::Better);
    // The ranges are separate, but the medians differ by less than 5 %.
    let small = duration(&[1000, 1001, 1002], &[1010, 1011, 1012]);
    assert_eq!((small.judgement, small.is_over_threshold), (Judgement::Worse, false));
    let comparison = compare(&wall(&[100, 110, 130]), &wall(&[131, 150, 160]), &all_rows());
    assert_eq!(comparison.basis.false_alarm, Some(0.05));
    assert_eq!(comparison.basis.false_alarms, Some(0.05), "one row differs");
    assert!(comparison.notes.is_empty(), "{:?}", comparison.notes);
}

#[test]
fn many_rows_with_few_runs_have_a_note_about_chance() {
    let run = |number: u64| {
        let mut report = Report { elapsed_ns: number, ..report("wall", 1) };
        report.sweep = (1..=10).map(|size| sweep("ring", size, number as f64)).collect();
        report
    };
    let compared = |runs: u64| {
        let side = |first: u64| (0..runs).map(|index| run(first + 2 * index)).collect::<Vec<_>>();
        compare(&side(1), &side(2), &all_rows())
    };
    let three = compared(3);
    // Time and bandwidth of each size, and the duration.
    assert!(
        three.basis.false_alarms.is_some_and(|count| (count - 21.0 / 20.0).abs() < 1e-9),
        "{:?}",
        three.basis
    );
    assert!(three.notes[0].contains("up to 1.1 rows"), "{:?}", three.notes);
    let five = compared(5);
    assert!(
        five.basis.false_alarms.is_some_and(|count| (count - 21.0 / 252.0).abs() < 1e-9),
        "{:?}",
        five.basis
    );
    assert!(five.notes.is_empty(), "{:?}", five.notes);
}

#[test]
fn other_seeds_in_virtual_time_are_samples() {
    let run = |seed, elapsed_ns| Report { elapsed_ns, ..report("virtual", seed) };
    let before = [run(1, 100), run(2, 200)];
    // With equal seeds, in any order, each run is compared with its pair, although the ranges overlap.
    let paired = compare(&before, &[run(2, 220), run(1, 110)], &all_rows());
    let found = row(&paired, Section::Time, "duration");
    assert_eq!((found.judgement, found.evidence), (Judgement::Worse, Some(Evidence::Exact)));
    assert!(paired.basis.has_equal_seeds && paired.basis.false_alarm.is_none());
    let others = compare(&before, &[run(3, 220), run(4, 110)], &all_rows());
    assert_eq!(row(&others, Section::Time, "duration").judgement, Judgement::Noise);
    assert_eq!(row(&others, Section::Configuration, "seed").judgement, Judgement::Changed);
}

#[test]
fn virtual_and_real_time_are_not_compared() {
    let after = Report { elapsed_ns: 9_000_000, ..report("wall", 1) };
    let comparison = compare(&[report("virtual", 1)], &[after], &all_rows());
    let found = row(&comparison, Section::Time, "duration");
    assert_eq!((found.judgement, found.evidence), (Judgement::Changed, Some(Evidence::DifferentClocks)));
    assert_eq!(comparison.outcome, Outcome::CouldNotTell);
    assert_eq!(comparison.basis.clocks, ["virtual", "wall"]);
    assert!(comparison.notes[0].contains("clocks"), "{:?}", comparison.notes);
    assert_eq!(row(&comparison, Section::Configuration, "clock").judgement, Judgement::Changed);
}

#[test]
fn options_change_and_exist_on_one_side() {
    let (mut before, mut after) = (report("virtual", 1), report("virtual", 1));
    before.meta.as_mut().unwrap().options.insert("adapt".to_owned(), "on".to_owned());
    after.meta.as_mut().unwrap().options.extend([("llr".to_owned(), "on".to_owned())]);
    after.meta.as_mut().unwrap().options.extend([("new".to_owned(), "x".to_owned())]);
    after.manifest.config_hash = "ab".to_owned();
    let comparison = compare(&[before], &[after], &all_rows());
    let configuration = Section::Configuration;
    assert_eq!(
        differences(&comparison),
        [
            (configuration, "configuration hash", Judgement::Changed),
            (configuration, "option llr", Judgement::Changed),
            (configuration, "option adapt", Judgement::OnlyBefore),
            (configuration, "option new", Judgement::OnlyAfter),
        ]
    );
    let texts = Texts { texts: [("on".to_owned(), 1)].into() };
    assert_eq!(row(&comparison, configuration, "option llr").after, Some(Side::Text(texts)));
    assert_eq!(comparison.outcome, Outcome::Within, "options have no direction");
}

#[test]
fn a_worse_verdict_is_over_any_threshold_and_noise_in_real_time_does_not_hide_it() {
    let mut after = wall(&[100, 110, 120]);
    after[1].verdict = Verdict::Starved;
    let limits = Limits { thresholds: Thresholds::of(1e9), ..Limits::default() };
    let comparison = compare(&wall(&[100, 110, 120]), &after, &limits);
    let found = row(&comparison, Section::Verdict, "verdict");
    assert_eq!((found.judgement, found.is_over_threshold), (Judgement::Worse, true));
    let texts = Texts { texts: [("pass".to_owned(), 2), ("starved".to_owned(), 1)].into() };
    assert_eq!(found.after, Some(Side::Text(texts)));
    assert!(comparison.is_over());
    let back = compare(&after, &wall(&[100, 110, 120]), &limits);
    assert_eq!(row(&back, Section::Verdict, "verdict").judgement, Judgement::Better);
    assert!(!back.is_over());
}

#[test]
fn counters_that_a_report_leaves_out_are_zero_and_a_first_drop_is_over_any_threshold() {
    let mut after = report("virtual", 1);
    after.links[0].dropped.insert("queue-full".to_owned(), 3);
    after.links[0].dropped.insert("injected".to_owned(), 5);
    after.oracles.find(Oracle::Order, || "first".to_owned());
    let limits = Limits { thresholds: Thresholds::of(100.0), ..all_rows() };
    let comparison = compare(&[report("virtual", 1)], &[after], &limits);
    let dropped = row(&comparison, Section::Losses, "dropped frames: queue-full");
    assert_eq!((dropped.judgement, dropped.change), (Judgement::Worse, None));
    assert_eq!(dropped.before, Some(Side::Number(Spread { median: 0.0, least: 0.0, most: 0.0, runs: 1 })));
    assert!(dropped.is_over_threshold, "from zero to three is no finite ratio");
    let injected = row(&comparison, Section::Losses, "dropped frames: injected");
    assert_eq!(injected.judgement, Judgement::Changed, "the fault script decides about it");
    let violations = row(&comparison, Section::Verdict, "oracle order: violations");
    assert_eq!(violations.judgement, Judgement::Worse);
    let of_link = row(&comparison, Section::Links, "n0->n1: dropped");
    assert_eq!(of_link.judgement, Judgement::Worse);
}

#[test]
fn thresholds_hold_for_their_sections() {
    let (before, mut after) = (report("virtual", 1), report("virtual", 1));
    after.operations[0].latency_ns.p50 = 1080;
    after.sweep[0] = sweep("ring", 1024, 10.8);
    let is_over = |thresholds: &str| {
        let thresholds = Thresholds::parse([thresholds]).unwrap();
        let limits = Limits { thresholds, ..Limits::default() };
        compare(std::slice::from_ref(&before), std::slice::from_ref(&after), &limits).is_over()
    };
    assert!(is_over("5%") && is_over("7.9%") && !is_over("9%"));
    assert!(is_over("9%,sweep=5%") && is_over("5%,sweep=9%"), "each section alone is over");
    assert!(!is_over("5%,sweep=9%,operations=9%"));
    assert!(is_over("sweep=5%") && !is_over("losses=0"), "sections alone are the only ones that are judged");
    // The state of a node has no size, and is of its section. A worse verdict is over without any threshold.
    let limits = Limits { thresholds: Thresholds::parse(["losses=0"]).unwrap(), ..Limits::default() };
    let is_over = |after: &Report| {
        compare(std::slice::from_ref(&before), std::slice::from_ref(after), &limits).is_over()
    };
    after.nodes[0].state = MemberState::Killed;
    assert!(!is_over(&after));
    after.verdict = Verdict::Fail;
    assert!(is_over(&after));
}

/// One run of each side in real time is too little to know.
#[test]
fn sections_that_are_not_judged_leave_no_doubt() {
    let (before, after) = (wall(&[100]), wall(&[200]));
    let outcome = |thresholds: &str| {
        let limits = Limits { thresholds: Thresholds::parse([thresholds]).unwrap(), ..Limits::default() };
        compare(&before, &after, &limits).outcome
    };
    assert_eq!(outcome("time=5%"), Outcome::CouldNotTell);
    assert_eq!(outcome("losses=0"), Outcome::Within);
}

#[test]
fn racks_with_other_members_have_rows_for_what_both_have() {
    let before = report_of(&["n0", "n1", "n2"], "virtual", 1);
    let after = report_of(&["n0", "n1", "n9", "n8"], "virtual", 1);
    let comparison = compare(&[before], &[after], &all_rows());
    assert!(!comparison.is_same_rack);
    assert!(comparison.notes.iter().any(|note| note.contains("racks differ")), "{:?}", comparison.notes);
    let members = row(&comparison, Section::Configuration, "members");
    let text = "4, only on this side: n9, n8".to_owned();
    assert_eq!(members.after, Some(Side::Text(Texts { texts: [(text, 1)].into() })));
    let links: Vec<_> = comparison.rows.iter().filter(|row| row.section == Section::Links).collect();
    assert!(links.iter().any(|row| row.name == "n0->n1: bytes"));
    assert!(links.iter().all(|row| !row.name.contains("n2") && !row.name.contains("n9")), "{links:?}");
}

#[test]
fn a_section_keeps_the_links_that_changed_most_and_counts_the_others() {
    let names: Vec<String> = (0..40).map(|node| format!("n{node:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (before, mut after) = (report_of(&names, "virtual", 1), report_of(&names, "virtual", 1));
    for (index, link) in (0..).zip(&mut after.links) {
        link.bytes_on_wire += 10 * index;
    }
    let comparison = compare(&[before], &[after.clone()], &Limits::default());
    let links: Vec<_> = comparison.rows.iter().filter(|row| row.section == Section::Links).collect();
    assert_eq!(links.len(), 20);
    assert_eq!(links[0].name, format!("{}: bytes", after.links[78].name), "it had half as many before");
    let counts = comparison.sections.iter().find(|counts| counts.section == Section::Links).unwrap();
    // Bytes and frames of each direction, and of all. Counters that are zero on both sides have no row.
    assert_eq!((counts.rows, counts.left_out), (162, 142));
    assert_eq!(counts.changed, 79 + 1, "each direction but the first, and the sum");
    let none = compare(
        &[report("virtual", 1)],
        &[report("virtual", 1)],
        &Limits { rows_max: Some(0), ..Limits::default() },
    );
    assert!(none.rows.iter().all(|row| matches!(row.section, Section::Configuration | Section::Verdict)));
    assert!(!none.rows.is_empty());
}

#[test]
fn an_outcome_counts_rows_that_are_left_out() {
    let (before, mut after) = (report("virtual", 1), report("virtual", 1));
    after.elapsed_ns *= 3;
    let limits = Limits { rows_max: Some(0), ..Limits::default() };
    assert!(compare(&[before], &[after], &limits).is_over());
}

#[test]
fn another_choice_of_the_algorithm_is_one_row_unless_a_report_has_several() {
    let (before, mut after) = (report("virtual", 1), report("virtual", 1));
    after.sweep[0] = sweep("tree", 1024, 5.0);
    let comparison = one_run(&before, &after);
    let name = "all-reduce 1024 B f32 sum";
    let time = row(&comparison, Section::Sweep, &format!("{name}: time"));
    assert_eq!((time.judgement, time.change), (Judgement::Better, Some(-0.5)));
    let algorithm = row(&comparison, Section::Sweep, &format!("{name}: algorithm"));
    assert_eq!(algorithm.judgement, Judgement::Changed);
    after.sweep.push(sweep("ring", 1024, 9.0));
    let comparison = compare(&[before], &[after], &all_rows());
    let rows: Vec<_> =
        differences(&comparison).into_iter().filter(|(section, ..)| *section == Section::Sweep).collect();
    assert!(rows.contains(&(Section::Sweep, "all-reduce tree 1024 B f32 sum: time", Judgement::OnlyAfter)));
    assert!(rows.contains(&(Section::Sweep, "all-reduce ring 1024 B f32 sum: time", Judgement::Better)));
}

#[test]
fn each_section_of_a_report_is_compared() {
    let (mut before, mut after) = (report("virtual", 1), report("virtual", 1));
    for (report, factor) in [(&mut before, 1), (&mut after, 2)] {
        let traffic = TrafficReport { completion_ns: 100 * factor, ..TrafficReport::default() };
        report.traffic = Some(traffic);
        report.faults = vec![FaultReport {
            event: 1,
            what: "down n0--n1".to_owned(),
            times: 1,
            detected_after_ns: Some(50 * factor),
            ..FaultReport::default()
        }];
        report.balance[0].imbalance = factor as f64;
    }
    after.nodes[1].state = MemberState::Killed;
    after.operations[0].errors = 100;
    let comparison = compare(&[before], &[after], &all_rows());
    for (section, name) in [
        (Section::Traffic, "completion"),
        (Section::Time, "fault 1 (down n0--n1): detected after"),
        (Section::Balance, "whole run: imbalance"),
        (Section::Nodes, "n1: state"),
        (Section::Verdict, "members that did not finish"),
        (Section::Losses, "failed put (frames)"),
    ] {
        assert_eq!(row(&comparison, section, name).judgement, Judgement::Worse, "{name}");
    }
    let latency =
        row(&comparison, Section::Operations, &format!("{} (frames) p50", OperationKind::Put.name()));
    assert_eq!(latency.judgement, Judgement::OnlyBefore, "no success, no latency");
    let first = comparison.by_importance()[0];
    assert!(first.is_over_threshold, "{first:?}");
}

#[test]
fn importance_begins_with_regressions_and_ends_with_equal_rows() {
    let (before, mut after) = (report("virtual", 1), report("virtual", 1));
    after.elapsed_ns = 5_000_000;
    after.operations[0].latency_ns.p99 = 2001;
    after.operations[0].latency_ns.p50 = 10;
    after.operations[0].count = 101;
    after.links[0].retransmitted = 1;
    after.links[0].frames *= 50;
    after.verdict = Verdict::CouldNotTell;
    let comparison = compare(&[before], &[after], &all_rows());
    let rows: Vec<_> = comparison.by_importance().into_iter().map(|row| row.name.as_str()).collect();
    assert_eq!(
        rows[..9],
        [
            "verdict",
            "retransmitted packets",
            "duration",
            "n0->n1: retransmitted",
            "put (frames) p99",
            "put (frames) p50",
            "put (frames) completed",
            "n0->n1: frames",
            "all links: frames"
        ],
        "over the threshold, worse, better, changed"
    );
    assert_eq!(rows.len(), comparison.rows.len());
}

#[test]
fn a_comparison_returns_from_json_and_has_a_schema() {
    let (mut before, mut after) = (report("virtual", 1), report("virtual", 1));
    after.elapsed_ns = 500_000;
    after.meta = None;
    // Numbers that decimal text holds exactly.
    for report in [&mut before, &mut after] {
        report.balance.clear();
        report.sweep.clear();
    }
    let comparison = compare(&[before], &[after], &Limits::default());
    let text = serde_json::to_string(&comparison).unwrap();
    assert!(serde_json::from_str::<Comparison>(&text).unwrap() == comparison, "{text}");
    let schema = serde_json::to_value(schemars::schema_for!(Comparison)).unwrap();
    assert!(schema["properties"]["rows"].is_object(), "{schema}");
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let rows = value["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["name"] == "duration").unwrap();
    assert_eq!((row["judgement"].as_str(), row["section"].as_str()), (Some("better"), Some("time")));
    assert_eq!(row["before"]["median"], 1e6);
}

#[test]
fn sides_without_runs_are_one_sided() {
    let comparison = compare(&[], &[report("wall", 1)], &all_rows());
    assert!(comparison.rows.iter().all(|row| row.judgement == Judgement::OnlyAfter));
    assert_eq!(comparison.outcome, Outcome::Within);
    assert_eq!(compare(&[], &[], &all_rows()).rows, []);
}
