//! Properties of comparisons of any numbers.

mod support;

use proptest::collection::vec;
use proptest::prelude::*;
use rackloom_compare::{Comparison, Evidence, Judgement, Limits, Row, Section, Side, Thresholds, compare};
use rackloom_control::report::{MemberState, Report, Verdict};
use support::{report, sweep};

/// Numbers of one run.
#[derive(Clone, Debug)]
struct Numbers {
    seed: u64,
    is_virtual: bool,
    counts: Vec<u64>,
    shares: Vec<f64>,
    verdict: Verdict,
    is_lost: bool,
    has_meta: bool,
}

fn any_count() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(1), Just(u64::MAX), 0..5_u64, any::<u64>()]
}

fn numbers() -> impl Strategy<Value = Numbers> {
    let verdict = prop_oneof![Just(Verdict::Pass), Just(Verdict::Fail), Just(Verdict::Starved)];
    let share =
        prop_oneof![Just(0.0), Just(-0.0), Just(f64::MIN_POSITIVE), Just(f64::MAX), proptest::num::f64::ANY];
    (0..3_u64, any::<bool>(), vec(any_count(), 12), vec(share, 4), verdict, any::<bool>(), any::<bool>())
        .prop_map(|(seed, is_virtual, counts, shares, verdict, is_lost, has_meta)| Numbers {
            seed,
            is_virtual,
            counts,
            shares,
            verdict,
            is_lost,
            has_meta,
        })
}

fn report_with(numbers: &Numbers) -> Report {
    let mut report = report(if numbers.is_virtual { "virtual" } else { "wall" }, numbers.seed);
    let counts = &numbers.counts;
    report.verdict = numbers.verdict;
    report.elapsed_ns = counts[0];
    let operation = &mut report.operations[0];
    (operation.count, operation.errors, operation.goodput_bytes_per_s) = (counts[1], counts[2], counts[3]);
    operation.latency_ns.p50 = counts[4];
    let link = &mut report.links[0];
    (link.frames, link.bytes_on_wire, link.retransmitted) = (counts[5], counts[6], counts[7]);
    link.dropped.insert("queue-full".to_owned(), counts[8]);
    report.links[1].dropped.insert("queue-full".to_owned(), counts[9]);
    report.nodes[0].shortage.waited_ns = counts[10];
    report.sweep.push(sweep("tree", counts[11], numbers.shares[0]));
    report.sweep[0].bus_gbps = Some(numbers.shares[1]);
    // A trace hash covers everything that happened.
    report.trace_hash = Some(format!("{numbers:?}"));
    report.balance[0].busiest = Some((counts[1] % 3).to_string());
    report.balance[0].imbalance = numbers.shares[2];
    report.balance[0].share_max = Some(numbers.shares[3]);
    if numbers.is_lost {
        report.nodes[1].state = MemberState::Lost;
    }
    if !numbers.has_meta {
        report.meta = None;
    }
    report
}

fn all_rows() -> Limits {
    Limits { rows_max: Some(usize::MAX), ..Limits::default() }
}

fn sorted(comparison: &Comparison) -> Vec<&Row> {
    let mut rows: Vec<_> = comparison.rows.iter().collect();
    rows.sort_by(|one, other| (one.section, &one.name).cmp(&(other.section, &other.name)));
    rows
}

const fn swapped(judgement: Judgement) -> Judgement {
    match judgement {
        Judgement::Better => Judgement::Worse,
        Judgement::Worse => Judgement::Better,
        Judgement::OnlyBefore => Judgement::OnlyAfter,
        Judgement::OnlyAfter => Judgement::OnlyBefore,
        same => same,
    }
}

proptest! {
    #[test]
    fn equal_sides_have_no_difference(runs in vec(numbers(), 0..5)) {
        let side: Vec<_> = runs.iter().map(report_with).collect();
        let comparison = compare(&side, &side, &all_rows());
        for row in &comparison.rows {
            prop_assert_eq!(row.judgement, Judgement::Equal, "{:?}", row);
        }
        prop_assert!(comparison.has_no_difference() && !comparison.is_over());
    }

    #[test]
    fn swapped_sides_swap_better_and_worse(first in vec(numbers(), 0..5), second in vec(numbers(), 0..5)) {
        let first: Vec<_> = first.iter().map(report_with).collect();
        let second: Vec<_> = second.iter().map(report_with).collect();
        let (forth, back) = (compare(&first, &second, &all_rows()), compare(&second, &first, &all_rows()));
        let (forth, back) = (sorted(&forth), sorted(&back));
        prop_assert_eq!(forth.len(), back.len());
        for (one, other) in forth.into_iter().zip(back) {
            prop_assert_eq!((one.section, &one.name), (other.section, &other.name));
            prop_assert_eq!(one.judgement, swapped(other.judgement), "{:?}\n{:?}", one, other);
            prop_assert_eq!(&one.before, &other.after);
            prop_assert_eq!(one.evidence, other.evidence);
            prop_assert_eq!(one.magnitude(), other.magnitude());
        }
    }

    #[test]
    fn any_numbers_give_finite_rows_whose_fields_agree(
        first in vec(numbers(), 0..6),
        second in vec(numbers(), 0..6),
        share in 0.0..2.0_f64,
    ) {
        let first: Vec<_> = first.iter().map(report_with).collect();
        let second: Vec<_> = second.iter().map(report_with).collect();
        let limits = Limits { thresholds: Thresholds::of(share), rows_max: Some(7) };
        let comparison = compare(&first, &second, &limits);
        for row in &comparison.rows {
            for side in [&row.before, &row.after].into_iter().flatten() {
                if let Side::Number(spread) = side {
                    prop_assert!(spread.least <= spread.median && spread.median <= spread.most, "{:?}", row);
                    prop_assert!(spread.least.is_finite() && spread.most.is_finite() && spread.runs > 0);
                }
            }
            prop_assert!(row.change.is_none_or(f64::is_finite), "{:?}", row);
            prop_assert!((0.0..=2.0).contains(&row.magnitude()), "{:?}", row);
            prop_assert!(!row.is_over_threshold || row.judgement == Judgement::Worse, "{:?}", row);
            if row.is_over_threshold && !matches!(row.before, Some(Side::Text(_))) {
                prop_assert!(row.change.is_none_or(|change| change.abs() > share), "{:?}", row);
            }
            let is_sufficient = matches!(row.evidence, Some(Evidence::Exact | Evidence::Separate));
            let is_judged = matches!(row.judgement, Judgement::Better | Judgement::Worse);
            prop_assert!(!is_judged || is_sufficient, "{:?}", row);
        }
        for counts in &comparison.sections {
            let kept = comparison.rows.iter().filter(|row| row.section == counts.section).count();
            prop_assert_eq!(counts.rows, kept + counts.left_out);
            let is_complete = matches!(counts.section, Section::Configuration | Section::Verdict);
            prop_assert!(kept <= 7 || is_complete);
            let judged = [counts.equal, counts.changed, counts.better, counts.worse, counts.noise, counts.one_sided];
            prop_assert_eq!(counts.rows, judged.iter().sum::<usize>());
        }
        let text = serde_json::to_string(&comparison).unwrap();
        prop_assert!(!text.contains("null"), "a number is not finite: {}", text);
    }
}
