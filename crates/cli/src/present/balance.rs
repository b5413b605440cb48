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
    let mut table = Table::new(&columns);
    for phase in phases.iter().take(PHASES_MAX) {
        let share = |share: Option<f64>| percent(share.unwrap_or(0.0));
        let mut cells = vec![phase.name.clone(), units::time(phase.ended_ns.saturating_sub(phase.began_ns))];
        if has_shares {
            cells.extend([share(phase.share_mean), share(phase.share_max)]);
        }
        cells.extend([
            format!("{:.2}", phase.imbalance),
            phase.busiest.clone().unwrap_or_else(|| "-".to_owned()),
        ]);
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
        let with = PhaseBalance { share_mean: Some(0.25), share_max: Some(0.5), ..phase };
        assert!(balance(&[with]).contains("25.0 %"));
        assert_eq!(balance(&[PhaseBalance::default()]), "", "nothing was sent");
    }
}
