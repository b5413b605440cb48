//! Rates of links over time, on reports made by hand.

mod support;

use rackloom_compare::{Comparison, Judgement, Limits, OverTime, RateDifference, Section, Side, compare};
use rackloom_control::report::{LinkSeries, Report, Series};
use support::report;

/// Returns a report with series of this interval: bytes by direction.
fn with_series(interval_ns: u64, links: &[(&str, &[u64])]) -> Report {
    let of_link = |(name, bytes): &(&str, &[u64])| LinkSeries {
        name: (*name).to_owned(),
        bytes: bytes.to_vec(),
        frames: vec![1; bytes.len()],
        ..LinkSeries::default()
    };
    let intervals = links.iter().map(|(_, bytes)| bytes.len()).max().unwrap_or(0) as u32;
    let links = links.iter().map(of_link).collect();
    let series = Series { from_ns: 7, interval_ns, intervals, links, nodes: Vec::new() };
    Report { series: Some(series), ..report("virtual", 1) }
}

fn compared(before: &[Report], after: &[Report]) -> Comparison {
    compare(before, after, &Limits { rows_max: Some(usize::MAX), ..Limits::default() })
}

fn over_time(before: &[Report], after: &[Report]) -> OverTime {
    compared(before, after).over_time.expect("all have series")
}

fn difference(link: &str, at_ns: u64, before: f64, after: f64) -> RateDifference {
    RateDifference { link: link.to_owned(), at_ns, before, after }
}

#[test]
fn each_link_has_the_time_at_which_it_differs_the_most() {
    let before =
        with_series(1000, &[("n0->n1", &[5, 5, 5, 5]), ("n1->n2", &[1, 1, 1, 1]), ("n2->n0", &[3; 4])]);
    let after =
        with_series(1000, &[("n0->n1", &[5, 8, 0, 9]), ("n1->n2", &[1, 1, 1, 9]), ("n2->n0", &[3; 4])]);
    let found = over_time(&[before], &[after]);
    assert_eq!(found.interval_ns, 1000);
    // A byte per microsecond is 1 MB/s.
    let expected = [difference("n1->n2", 3000, 1e6, 9e6), difference("n0->n1", 2000, 5e6, 0.0)];
    assert_eq!((found.links.as_slice(), found.left_out), (&expected[..], 0), "n2->n0 does not differ");
}

#[test]
fn intervals_are_joined_to_the_longest_one() {
    let before = with_series(1000, &[("n0->n1", &[4, 0, 0, 4, 6])]);
    let after = with_series(2000, &[("n0->n1", &[4, 4, 2])]);
    let found = over_time(&[before], &[after]);
    // Only the last interval differs, and that of the run before is half as long.
    assert_eq!((found.interval_ns, found.links), (2000, vec![difference("n0->n1", 4000, 6e6, 1e6)]));
}

#[test]
fn a_direction_without_frames_has_sent_nothing_and_time_of_one_side_is_left_out() {
    let before = with_series(1000, &[("n0->n1", &[2, 2, 2]), ("n1->n2", &[0, 0, 7])]);
    let after = with_series(1000, &[("n0->n1", &[2, 2])]);
    assert_eq!(over_time(std::slice::from_ref(&before), &[after]).links, []);
    let after = with_series(1000, &[("n0->n1", &[2, 2, 2])]);
    assert_eq!(over_time(&[before], &[after]).links, [difference("n1->n2", 2000, 7e6, 0.0)]);
}

#[test]
fn several_runs_of_a_side_have_a_median() {
    let side = |values: [u64; 3]| values.map(|bytes| with_series(1000, &[("n0->n1", &[bytes])]));
    let found = over_time(&side([1, 2, 90]), &side([3, 4, 5]));
    assert_eq!(found.links, [difference("n0->n1", 0, 2e6, 4e6)]);
}

#[test]
fn rows_of_links_have_greatest_and_mean_rates_and_fail_nothing() {
    let before = with_series(1000, &[("n0->n1", &[1, 1, 1, 1])]);
    let after = with_series(1000, &[("n0->n1", &[0, 8, 0, 0])]);
    let comparison = compared(&[before], &[after]);
    for (name, expected) in [("n0->n1: greatest rate", [1e6, 8e6]), ("n0->n1: mean rate", [1e6, 2e6])] {
        let row = comparison.rows.iter().find(|row| row.section == Section::Links && row.name == name);
        let row = row.unwrap_or_else(|| panic!("no row {name}"));
        let median = |side: &Option<Side>| match side {
            Some(Side::Number(spread)) => spread.median,
            other => panic!("{other:?}"),
        };
        assert_eq!([median(&row.before), median(&row.after)], expected, "{name}");
        assert_eq!((row.judgement, row.is_over_threshold), (Judgement::Changed, false));
    }
}

#[test]
fn rates_are_compared_only_if_all_runs_have_series_that_fit() {
    let series = |interval_ns| with_series(interval_ns, &[("n0->n1", &[1])]);
    let without = compared(&[report("virtual", 1)], &[series(1000)]);
    assert_eq!((without.over_time, without.notes.len()), (None, 0));
    assert!(without.rows.iter().all(|row| !row.name.ends_with("rate")), "a row of one side says nothing");
    let apart = compared(&[series(1000)], &[series(1500)]);
    assert_eq!(apart.over_time, None);
    assert!(apart.notes.iter().any(|note| note.contains("do not fit")), "{:?}", apart.notes);
}

#[test]
fn equal_series_have_no_difference_and_links_beyond_the_limit_are_counted() {
    let before = with_series(1000, &[("n0->n1", &[1]), ("n1->n2", &[2]), ("n2->n0", &[3])]);
    let same = compared(std::slice::from_ref(&before), std::slice::from_ref(&before));
    assert!(same.has_no_difference() && same.over_time.is_some_and(|found| found.links.is_empty()));
    let after = with_series(1000, &[("n0->n1", &[2]), ("n1->n2", &[4]), ("n2->n0", &[6])]);
    let limits = Limits { rows_max: Some(1), ..Limits::default() };
    let found = compare(&[before], &[after], &limits).over_time.expect("all have series");
    assert_eq!((found.links.as_slice(), found.left_out), (&[difference("n2->n0", 0, 3e6, 6e6)][..], 2));
}
