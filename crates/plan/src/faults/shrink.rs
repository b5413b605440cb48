//! Reduction of a failing script to a smaller one that still fails.
//!
//! First whole groups of events are removed, then single ones, then ramps, repetitions and further
//! targets. Each attempt is a run, so the search is greedy: it removes parts until no removal fails any more (Zeller, Hildebrandt,
//! "Simplifying and Isolating Failure-Inducing Input", IEEE TSE 28(2), 2002, without its complements).

use super::draw::finished;
use super::{Fault, FaultEvent, FaultScript, Timing};

/// Returns the smallest failing script that was found. Calls `fails` at most `attempts` times.
pub fn shrink(
    script: &FaultScript,
    mut attempts: usize,
    mut fails: impl FnMut(&FaultScript) -> bool,
) -> FaultScript {
    let mut events = script.events.clone();
    let mut try_out = |events: &[FaultEvent]| {
        attempts = attempts.saturating_sub(1);
        attempts > 0 && fails(&finished(script.name.clone(), events.to_vec()))
    };
    let mut size = events.len().div_ceil(2);
    while size > 0 && events.len() > 1 {
        let mut start = 0;
        while start < events.len() {
            let end = (start + size).min(events.len());
            let rest: Vec<_> = [&events[..start], &events[end..]].concat();
            if !rest.is_empty() && try_out(&rest) {
                events = rest;
            } else {
                start = end;
            }
        }
        size = if size == 1 { 0 } else { size.div_ceil(2) };
    }
    for index in 0..events.len() {
        while let Some(simpler) = simpler(&events[index]).into_iter().find_map(|simpler| {
            let mut candidate = events.clone();
            candidate[index] = simpler;
            try_out(&candidate).then_some(candidate)
        }) {
            events = simpler;
        }
    }
    finished(script.name.clone(), events)
}

/// Returns simpler forms of an event, the simplest first.
fn simpler(event: &FaultEvent) -> Vec<FaultEvent> {
    let mut forms = Vec::new();
    let Timing { ramp_ns, every_ns, .. } = event.timing;
    if every_ns.is_some() {
        let timing = Timing { every_ns: None, times: None, ..event.timing };
        forms.push(FaultEvent { timing, ..event.clone() });
    }
    if ramp_ns > 0 {
        forms.push(FaultEvent { timing: Timing { ramp_ns: 0, ..event.timing }, ..event.clone() });
    }
    if let Fault::Links { directions, conditions } = &event.fault
        && directions.len() > 1
    {
        let halves = directions.chunks(directions.len().div_ceil(2));
        let with = |directions: &[super::LinkDirection]| Fault::Links {
            directions: directions.to_vec(),
            conditions: *conditions,
        };
        forms.extend(halves.map(|half| FaultEvent { fault: with(half), ..event.clone() }));
    }
    forms
}

#[cfg(test)]
mod tests {
    use super::super::{DrawLimits, draw};
    use super::*;
    use crate::model::plan::Plan;

    #[test]
    fn irrelevant_events_are_removed_and_relevant_ones_stay() {
        let plan = Plan::parse("{name: r, shape: {ring: {nodes: 4}}}", "r").expect("a rack");
        let reach = DrawLimits { begin_ns: 1_000_000, last_ns: 5_000_000 };
        let cuts =
            |event: &FaultEvent| matches!(&event.fault, Fault::Links { conditions, .. } if conditions.is_cut);
        let pauses = |event: &FaultEvent| matches!(event.fault, Fault::Pause(_));
        let fails = |script: &FaultScript| script.events.iter().any(cuts) && script.events.iter().any(pauses);
        let failing: Vec<_> =
            (0..500).map(|seed| draw(&plan, seed, reach)).filter(|script| fails(script)).collect();
        assert!(failing.iter().any(|script| script.events.len() > 4), "there is something to shrink");
        for script in &failing {
            let small = shrink(script, 1_000, fails);
            assert_eq!(small.events.len(), 2, "{small:?}");
            assert!(
                small
                    .events
                    .iter()
                    .all(|event| event.timing.every_ns.is_none() && event.fault.directions().len() < 2)
            );
        }
    }

    #[test]
    fn shrinking_stops_after_the_given_number_of_attempts() {
        let plan = Plan::parse("{name: r, shape: {ring: {nodes: 4}}}", "r").expect("a rack");
        let script = draw(&plan, 3, DrawLimits { begin_ns: 1_000, last_ns: 5_000 });
        let mut tried = 0;
        shrink(&script, 3, |_| {
            tried += 1;
            true
        });
        assert!(tried <= 3, "{tried}");
    }
}
