//! Balance of the load over the links, a row per phase.

use rackloom_jobs::report::PhaseBalance;

use super::percent::percent;
use super::table::{Column, Table};
use super::units;

/// Maximum number of phases that are listed.
const PHASES_MAX: usize = 24;

/// Formats the balance; empty if nothing was sent.
pub(super) fn balance(phases: &[PhaseBalance]) -> String {
    let Some(whole) = phases.first().filter(|whole| whole.busiest.is_some()) else { return String::new() };
    let has_shares = whole.share_max.is_some();
    let mut columns = vec![Column::Left("load of the links"), Column::Right("time")];
    if has_shares {
        columns.extend([Column::Right("mean share of the rate"), Column::Right("greatest")]);
    }
    columns.extend([Column::Right("greatest / mean"), Column::Left("busiest link")]);
    // With unequal rates, the link with the greatest share may be another one than that with the most bytes.
    let has_two = has_shares && phases.iter().take(PHASES_MAX).any(|phase| phase.fullest != phase.busiest);
    columns.extend(has_two.then_some(Column::Left("most bytes")));
    let mut table = Table::new(&columns);
    for phase in phases.iter().take(PHASES_MAX) {
        let share = |share: Option<f64>| percent(share.unwrap_or(0.0));
        let mut cells = vec![phase.name.clone(), units::time(phase.ended_ns.saturating_sub(phase.began_ns))];
        if has_shares {
            cells.extend([share(phase.share_mean), share(phase.share_max)]);
        }
        let name = |name: &Option<String>| name.clone().unwrap_or_else(|| "-".to_owned());
        cells.push(format!("{:.2}", phase.imbalance));
        cells.push(name(if has_shares { &phase.fullest } else { &phase.busiest }));
        cells.extend(has_two.then(|| name(&phase.busiest)));
        table.row(cells);
    }
    let omitted = phases.len().saturating_sub(PHASES_MAX);
    let more = if omitted > 0 { format!("{omitted} more phases\n") } else { String::new() };
    table.render() + &more
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_without_rates_has_no_shares() {
        let phase = PhaseBalance {
            name: "whole run".into(),
            ended_ns: 2_000,
            busiest: Some("n0->n1".into()),
            imbalance: 1.5,
            ..PhaseBalance::default()
        };
        let text = balance(std::slice::from_ref(&phase));
        assert!(text.contains("1.50") && text.contains("n0->n1") && !text.contains("share"), "{text}");
        let (share_mean, share_max) = (Some(0.25), Some(0.5));
        let with = PhaseBalance { share_mean, share_max, fullest: phase.busiest.clone(), ..phase };
        let text = balance(std::slice::from_ref(&with));
        assert!(text.contains("25.0 %") && !text.contains("most bytes"), "{text}");
        let small = PhaseBalance { share_mean: Some(0.000_18), ..with.clone() };
        assert!(balance(&[small]).contains("<0.1 %"), "a small share is not zero");
        assert_eq!(balance(&[PhaseBalance::default()]), "", "nothing was sent");
        let unequal = PhaseBalance { fullest: Some("n2->n3".into()), ..with };
        let text = balance(&[unequal]);
        let row = text.lines().find(|line| line.starts_with("whole run")).expect("a row");
        let names: Vec<_> = row.split_whitespace().rev().take(2).collect();
        assert_eq!(names, ["n0->n1", "n2->n3"], "the greatest share is that of n2->n3: {text}");
        assert!(text.contains("most bytes"), "{text}");
    }
}
