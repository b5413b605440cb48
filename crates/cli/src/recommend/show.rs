//! Table of the candidates, and the recommendation with its reason.

use super::result::{CandidateResult, Recommendation, State};
use crate::present::table::{Column, Table};
use crate::present::units;
use crate::time_limit;

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
    let missing = left_out(result).map_or_else(String::new, |line| format!("\n\n{line}"));
    format!("{}{more}{missing}\n\n{}", table.render(), recommended(result))
}

/// Largest number of candidates that a line names.
const NAMED_MAX: usize = 8;

/// Returns lines about the candidates that were not built, and about those that were to be simulated and were not, if there are any.
fn left_out(result: &Recommendation) -> Option<String> {
    let count = |state: State| result.candidates.iter().filter(|one| one.state == state).count();
    let all = result.candidates.len();
    let simulated = count(State::Simulated) + count(State::Failed);
    let line = |state: State, verb: &str, done: &dyn Fn(usize) -> String| {
        let left: Vec<_> = result.candidates.iter().filter(|one| one.state == state).map(named).collect();
        let more = left.len().saturating_sub(NAMED_MAX);
        let more = if more == 0 { String::new() } else { format!("; and {more} more") };
        let named = left.iter().take(NAMED_MAX).map(String::as_str).collect::<Vec<_>>().join("; ");
        (!left.is_empty())
            .then(|| format!("a part of the result: {}; not {verb}: {named}{more}", done(left.len())))
    };
    let built =
        line(State::NotBuilt, "built", &|left| format!("{} of {all} candidates were built", all - left));
    let ended = line(State::NotSimulated, "simulated", &|left| {
        format!("{simulated} of {} simulations ended", simulated + left)
    });
    let lines: Vec<_> = built.into_iter().chain(ended).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Returns the shape and size of a candidate.
fn named(candidate: &CandidateResult) -> String {
    let CandidateResult { nodes, shape, planes, .. } = candidate;
    let planes = match *planes {
        1 => String::new(),
        planes => format!(" with {planes} planes"),
    };
    format!("{nodes} nodes, {shape}{}{planes}", spaced(&candidate.sizes))
}

fn spaced(sizes: &str) -> String {
    if sizes.is_empty() { String::new() } else { format!(" {sizes}") }
}

fn cells(candidate: &CandidateResult) -> [String; 11] {
    let time = |ns: Option<f64>| ns.map_or_else(dash, |ns| units::time(ns.round() as u64));
    [
        candidate.nodes.to_string(),
        format!("{}{}", candidate.shape, spaced(&candidate.sizes)),
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
        let instead = if result.is_complete {
            "try other sizes, or simulate more with --best".to_owned()
        } else {
            let limit = time_limit::shown(std::time::Duration::from_secs_f64(result.time_limit_s));
            format!("raise the time limit of {limit} with --time-limit, or lower --frames-max")
        };
        return format!("no candidate is known to meet {}; {instead}", result.target);
    };
    let CandidateResult { algorithm, command, .. } = candidate;
    let largest = if result.is_complete { "" } else { " among those that were simulated" };
    format!(
        "recommended: {}, {algorithm}: the largest rack that meets {} in the simulation, and the one with the fewest links of that \
         size{largest}\n  {command}",
        named(candidate),
        result.target
    )
}
