//! Table of the candidates, and the recommendation with its reason.

use super::result::{CandidateResult, Recommendation};
use crate::present::table::{Column, Table};
use crate::present::units;

/// Maximum number of candidates that are printed without `--all`.
const LISTED_MAX: usize = 16;

/// Returns the table and the recommendation.
pub(super) fn text(result: &Recommendation, shows_all: bool) -> String {
    let listed_max = if shows_all { usize::MAX } else { LISTED_MAX };
    let mut table = Table::new(&[
        Column::Right("nodes"),
        Column::Left("shape"),
        Column::Right("planes"),
        Column::Left("algorithm"),
        Column::Right("links"),
        Column::Right("switches"),
        Column::Right("estimate"),
        Column::Right("simulated"),
        Column::Right("busbw (GB/s)"),
        Column::Right("of node"),
        Column::Left("reason"),
    ]);
    for candidate in result.candidates.iter().take(listed_max) {
        table.row(cells(candidate));
    }
    let more = result.candidates.len().saturating_sub(listed_max);
    let more = if more == 0 { String::new() } else { format!("\n... and {more} more, with --all") };
    format!("{}{more}\n\n{}", table.render(), recommended(result))
}

fn cells(candidate: &CandidateResult) -> [String; 11] {
    let time = |ns: Option<f64>| ns.map_or_else(dash, |ns| units::time(ns.round() as u64));
    [
        candidate.nodes.to_string(),
        candidate.shape.to_owned(),
        candidate.planes.to_string(),
        if candidate.algorithm.is_empty() { dash() } else { candidate.algorithm.clone() },
        candidate.links.to_string(),
        candidate.switches.to_string(),
        time(candidate.estimated_ns),
        time(candidate.simulated_ns),
        candidate.bus_gbps.map_or_else(dash, |gbps| format!("{gbps:.2}")),
        candidate.of_node.map_or_else(dash, |share| format!("{:.1}%", share * 100.0)),
        candidate.reason.clone(),
    ]
}

fn dash() -> String {
    "-".to_owned()
}

fn recommended(result: &Recommendation) -> String {
    let Some(candidate) = result.recommended.and_then(|index| result.candidates.get(index)) else {
        return format!(
            "no candidate is known to meet {}; try other sizes, or simulate more with --best",
            result.target
        );
    };
    let CandidateResult { nodes, shape, planes, algorithm, command, .. } = candidate;
    let planes = if *shape == "star" { format!(" with {planes} planes") } else { String::new() };
    format!(
        "recommended: {nodes} nodes, {shape}{planes}, {algorithm}: the largest rack that meets {} in the simulation, and the one with the \
         fewest links of that size\n  {command}",
        result.target
    )
}
