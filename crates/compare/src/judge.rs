//! Judgement on one fact: values of both sides in, judgement and evidence out. The crate's documentation states the rule.

use std::collections::BTreeSet;

use crate::row::{Direction, Evidence, Judgement, Spread};

/// Greatest chance of separate ranges of equal runs at which separate ranges count as a difference.
const CHANCE_MAX: f64 = 0.1;

/// Origin of the runs of both sides, as far as a judgement depends on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Runs in virtual time with equal seeds: the index before and the index after of each pair.
    Pairs(Vec<(usize, usize)>),
    /// Runs of one clock.
    Samples,
    /// Runs of different clocks.
    DifferentClocks,
}

/// Judgement with its evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) judgement: Judgement,
    pub(crate) evidence: Option<Evidence>,
}

impl Finding {
    const fn plain(judgement: Judgement) -> Self {
        Self { judgement, evidence: None }
    }

    /// Returns the judgement on a difference. `is_more` is true if the value after is the greater one.
    fn difference(is_more: bool, direction: Direction, evidence: Evidence) -> Self {
        let judgement = match (direction, is_more) {
            _ if !evidence.is_sufficient() => Judgement::Changed,
            (Direction::None, _) => Judgement::Changed,
            (Direction::Lower, true) | (Direction::Higher, false) => Judgement::Worse,
            (Direction::Lower, false) | (Direction::Higher, true) => Judgement::Better,
        };
        Self { judgement, evidence: Some(evidence) }
    }
}

/// Returns the chance that the ranges of `before` and `after` exchangeable runs do not overlap: 2 / C(n + m, n). It is 1 if a
/// side has no run.
#[must_use]
pub fn separation_chance(before: usize, after: usize) -> f64 {
    let (few, many) = (before.min(after), before.max(after));
    let mut orders = 1.0_f64;
    for index in 1..=few {
        orders *= (many as f64 + index as f64) / index as f64;
        // The chance is as good as zero, and a side may have any number of runs.
        if orders > 1e18 {
            break;
        }
    }
    (2.0 / orders).min(1.0)
}

/// Returns whether separate ranges of so many runs count as a difference.
pub(crate) fn are_enough(before: usize, after: usize) -> bool {
    separation_chance(before, after) <= CHANCE_MAX + f64::EPSILON
}

/// Returns the chance that equal runs are judged worse. Either side may be the greater one.
pub(crate) fn false_alarm(before: usize, after: usize) -> f64 {
    if are_enough(before, after) { separation_chance(before, after) / 2.0 } else { 0.0 }
}

/// Returns median, least and greatest of the runs that have a value; `None` if none has one.
pub(crate) fn spread(values: &[Option<f64>]) -> Option<Spread> {
    let values = sorted(values);
    let (least, most) = (*values.first()?, *values.last()?);
    let middle = values.len() / 2;
    let median = match values.len() % 2 {
        0 => values[middle - 1] / 2.0 + values[middle] / 2.0,
        _ => values[middle],
    };
    // Halves of the smallest numbers are rounded.
    Some(Spread { median: median.clamp(least, most), least, most, runs: values.len() })
}

fn sorted(values: &[Option<f64>]) -> Vec<f64> {
    let mut values: Vec<f64> = values.iter().copied().flatten().collect();
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// Judges numbers. A run without the value is `None`.
pub(crate) fn of_numbers(
    before: &[Option<f64>],
    after: &[Option<f64>],
    direction: Direction,
    origin: &Origin,
) -> Finding {
    let (Some(first), Some(second)) = (spread(before), spread(after)) else {
        return one_sided(spread(before).is_some());
    };
    if let Origin::Pairs(pairs) = origin
        && let Some(finding) = of_pairs(before, after, direction, pairs)
    {
        return finding;
    }
    let is_constant = first.least == second.most && second.least == first.most;
    if is_constant || sorted(before) == sorted(after) {
        return Finding::plain(Judgement::Equal);
    }
    let is_more = second.median > first.median;
    if *origin == Origin::DifferentClocks {
        return Finding::difference(is_more, direction, Evidence::DifferentClocks);
    }
    if first.least <= second.most && second.least <= first.most {
        return Finding::plain(Judgement::Noise);
    }
    let evidence =
        if are_enough(first.runs, second.runs) { Evidence::Separate } else { Evidence::TooFewRuns };
    Finding::difference(is_more, direction, evidence)
}

/// Judges pairs of runs with equal seeds; `None` if the pairs contradict each other or one lacks a value.
fn of_pairs(
    before: &[Option<f64>],
    after: &[Option<f64>],
    direction: Direction,
    pairs: &[(usize, usize)],
) -> Option<Finding> {
    let (mut is_more, mut is_less) = (false, false);
    for (first, second) in pairs {
        match (before.get(*first)?, after.get(*second)?) {
            (Some(first), Some(second)) => {
                is_more |= second > first;
                is_less |= second < first;
            }
            (None, None) => {}
            _ => return None,
        }
    }
    match (is_more, is_less) {
        (false, false) => Some(Finding::plain(Judgement::Equal)),
        (true, true) => None,
        _ => Some(Finding::difference(is_more, direction, Evidence::Exact)),
    }
}

/// Judges texts without an order that a user chose, such as options: sides are equal if they have the same texts.
pub(crate) fn of_choices(before: &[Option<&str>], after: &[Option<&str>]) -> Finding {
    let (first, second) = (distinct(before), distinct(after));
    if first.is_empty() || second.is_empty() {
        return one_sided(!first.is_empty());
    }
    match first == second {
        true => Finding::plain(Judgement::Equal),
        false => Finding { judgement: Judgement::Changed, evidence: Some(Evidence::Exact) },
    }
}

/// Judges texts without an order that are results of runs. Sides that have a text in common are no more than noise.
pub(crate) fn of_texts(before: &[Option<&str>], after: &[Option<&str>], origin: &Origin) -> Finding {
    let (first, second) = (distinct(before), distinct(after));
    if first.is_empty() || second.is_empty() {
        return one_sided(!first.is_empty());
    }
    let changed = |evidence| Finding { judgement: Judgement::Changed, evidence: Some(evidence) };
    let runs = |side: &[Option<&str>]| side.iter().flatten().count();
    match origin {
        Origin::Pairs(pairs) => {
            let is_equal = pairs.iter().all(|(first, second)| before.get(*first) == after.get(*second));
            if is_equal { Finding::plain(Judgement::Equal) } else { changed(Evidence::Exact) }
        }
        _ if first == second => Finding::plain(Judgement::Equal),
        Origin::DifferentClocks => changed(Evidence::DifferentClocks),
        Origin::Samples if !first.is_disjoint(&second) => Finding::plain(Judgement::Noise),
        Origin::Samples if are_enough(runs(before), runs(after)) => changed(Evidence::Separate),
        Origin::Samples => changed(Evidence::TooFewRuns),
    }
}

fn distinct<'a>(side: &[Option<&'a str>]) -> BTreeSet<&'a str> {
    side.iter().copied().flatten().collect()
}

/// Judges texts with a rank, such as verdicts: the greatest rank of each side decides. A side of greater rank is worse.
pub(crate) fn of_ranks(before: &[u8], after: &[u8]) -> Finding {
    let (Some(first), Some(second)) = (before.iter().max(), after.iter().max()) else {
        return one_sided(!before.is_empty());
    };
    if first != second {
        return Finding::difference(second > first, Direction::Lower, Evidence::Exact);
    }
    let ranks: BTreeSet<_> = before.iter().chain(after).collect();
    let count = |side: &[u8], rank: u8| side.iter().filter(|one| **one == rank).count();
    // The shares of two sides are equal if the products with the other's total are.
    let is_same = |rank: u8| count(before, rank) * after.len() == count(after, rank) * before.len();
    let is_equal = ranks.into_iter().all(|rank| is_same(*rank));
    Finding::plain(if is_equal { Judgement::Equal } else { Judgement::Noise })
}

fn one_sided(is_before: bool) -> Finding {
    Finding::plain(if is_before { Judgement::OnlyBefore } else { Judgement::OnlyAfter })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(values: &[f64]) -> Vec<Option<f64>> {
        values.iter().copied().map(Some).collect()
    }

    fn samples(before: &[f64], after: &[f64], direction: Direction) -> (Judgement, Option<Evidence>) {
        let finding = of_numbers(&values(before), &values(after), direction, &Origin::Samples);
        (finding.judgement, finding.evidence)
    }

    #[test]
    fn the_chance_of_separate_ranges_is_that_of_counting_all_orders() {
        // Every way to assign 2n distinct values to two sides of n, counted one by one.
        for runs in 1..=5_u32 {
            let all = (0_u32..1 << (2 * runs)).filter(|order| order.count_ones() == runs);
            let lower = (1 << runs) - 1;
            let is_separate = |order: &u32| *order == lower || *order == lower << runs;
            let (count, separate) = (all.clone().count(), all.filter(is_separate).count());
            let expected = separate as f64 / count as f64;
            assert!((separation_chance(runs as usize, runs as usize) - expected).abs() < 1e-12, "{runs}");
        }
        assert_eq!((separation_chance(0, 9), separation_chance(1, 1)), (1.0, 1.0));
        assert_eq!(separation_chance(1, 3), 0.5);
        assert_eq!(separation_chance(5, 2), separation_chance(2, 5));
        let many = separation_chance(usize::MAX, usize::MAX);
        assert!((0.0..1e-17).contains(&many), "{many}");
    }

    #[test]
    fn three_separate_runs_on_each_side_are_judged_by_the_direction() {
        let (low, high) = ([1.0, 2.0, 3.0], [4.0, 5.0, 6.0]);
        let separate = Some(Evidence::Separate);
        assert_eq!(samples(&low, &high, Direction::Lower), (Judgement::Worse, separate));
        assert_eq!(samples(&high, &low, Direction::Lower), (Judgement::Better, separate));
        assert_eq!(samples(&low, &high, Direction::Higher), (Judgement::Better, separate));
        assert_eq!(samples(&low, &high, Direction::None), (Judgement::Changed, separate));
    }

    #[test]
    fn ranges_that_touch_are_noise_and_few_runs_are_no_proof() {
        assert_eq!(samples(&[1.0, 2.0, 3.0], &[3.0, 8.0, 9.0], Direction::Lower), (Judgement::Noise, None));
        let few = Some(Evidence::TooFewRuns);
        assert_eq!(samples(&[1.0, 2.0], &[3.0, 4.0], Direction::Lower), (Judgement::Changed, few));
        assert_eq!(samples(&[1.0], &[2.0], Direction::Lower), (Judgement::Changed, few));
        assert_eq!(samples(&[1.0], &[0.5, 1.5, 2.0], Direction::Lower), (Judgement::Noise, None));
        assert_eq!(samples(&[0.0; 3], &[0.0; 5], Direction::Lower), (Judgement::Equal, None));
        assert_eq!(samples(&[2.0, 1.0], &[1.0, 2.0], Direction::Lower), (Judgement::Equal, None));
        assert_eq!(samples(&[], &[1.0], Direction::Lower), (Judgement::OnlyAfter, None));
        assert_eq!(samples(&[1.0], &[], Direction::Lower), (Judgement::OnlyBefore, None));
    }

    #[test]
    fn pairs_of_equal_seeds_are_exact_unless_they_contradict_each_other() {
        let judge = |before: &[Option<f64>], after: &[Option<f64>]| {
            let origin = Origin::Pairs(vec![(0, 1), (1, 0)]);
            let finding = of_numbers(before, after, Direction::Lower, &origin);
            (finding.judgement, finding.evidence)
        };
        let before = values(&[10.0, 20.0]);
        // The ranges overlap, but each run is slower than the run with its seed.
        assert_eq!(judge(&before, &values(&[21.0, 11.0])), (Judgement::Worse, Some(Evidence::Exact)));
        assert_eq!(judge(&before, &values(&[20.0, 9.0])), (Judgement::Better, Some(Evidence::Exact)));
        assert_eq!(judge(&before, &values(&[21.0, 9.0])), (Judgement::Noise, None));
        assert_eq!(judge(&before, &values(&[20.0, 10.0])), (Judgement::Equal, None));
        assert_eq!(judge(&before, &[Some(20.0), None]), (Judgement::Noise, None));
    }

    #[test]
    fn different_clocks_are_never_better_or_worse() {
        let low = values(&[1.0, 1.0, 1.0]);
        let high = values(&[9.0, 9.0, 9.0]);
        let finding = of_numbers(&low, &high, Direction::Lower, &Origin::DifferentClocks);
        assert_eq!(
            (finding.judgement, finding.evidence),
            (Judgement::Changed, Some(Evidence::DifferentClocks))
        );
        let equal = of_numbers(&low, &low, Direction::Lower, &Origin::DifferentClocks);
        assert_eq!(equal.judgement, Judgement::Equal);
    }

    #[test]
    fn texts_of_runs_are_noise_if_the_sides_share_one() {
        let side = |texts: &[&'static str]| texts.iter().copied().map(Some).collect::<Vec<_>>();
        let judge = |before: &[&'static str], after: &[&'static str], origin: &Origin| {
            let finding = of_texts(&side(before), &side(after), origin);
            (finding.judgement, finding.evidence)
        };
        let pairs = Origin::Pairs(vec![(0, 1), (1, 0)]);
        assert_eq!(judge(&["a", "b"], &["b", "a"], &pairs), (Judgement::Equal, None));
        assert_eq!(judge(&["a", "b"], &["a", "b"], &pairs), (Judgement::Changed, Some(Evidence::Exact)));
        assert_eq!(judge(&["a", "a", "b"], &["a", "b", "b"], &Origin::Samples), (Judgement::Equal, None));
        assert_eq!(judge(&["a", "a", "b"], &["a", "c", "c"], &Origin::Samples), (Judgement::Noise, None));
        let separate = (Judgement::Changed, Some(Evidence::Separate));
        assert_eq!(judge(&["a", "a", "b"], &["c", "c", "c"], &Origin::Samples), separate);
        let few = (Judgement::Changed, Some(Evidence::TooFewRuns));
        assert_eq!(judge(&["a"], &["b"], &Origin::Samples), few);
        assert_eq!(judge(&[], &["b"], &Origin::Samples), (Judgement::OnlyAfter, None));
        let options = of_choices(&side(&["a", "b"]), &side(&["b"]));
        assert_eq!((options.judgement, options.evidence), (Judgement::Changed, Some(Evidence::Exact)));
    }

    #[test]
    fn the_worst_rank_decides() {
        let judge = |before: &[u8], after: &[u8]| of_ranks(before, after).judgement;
        assert_eq!(judge(&[0, 0, 0], &[0, 3, 0]), Judgement::Worse);
        assert_eq!(judge(&[0, 3], &[1, 1]), Judgement::Better);
        assert_eq!(judge(&[0, 3], &[0, 3, 3, 0]), Judgement::Equal);
        assert_eq!(judge(&[0, 3], &[3, 3]), Judgement::Noise);
        assert_eq!(judge(&[], &[3]), Judgement::OnlyAfter);
    }

    #[test]
    fn the_median_of_an_even_number_lies_between_without_overflow() {
        let of = |list: &[f64]| spread(&values(list)).map(|spread| spread.median);
        assert_eq!(of(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(of(&[f64::MAX, f64::MAX]), Some(f64::MAX));
        assert_eq!(of(&[5e-324, 5e-324]), Some(5e-324));
        assert_eq!(spread(&[None, None]), None);
    }
}
