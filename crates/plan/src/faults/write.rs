//! Text of a script, for files that a campaign writes. Reading the text yields the same script.

use std::fmt::Write;

use super::{
    Conditions, Fault, FaultEvent, FaultExpectations, FaultScript, FramePart, LinkDirection, Trigger,
};
use crate::model::loss::LossByKind;
use crate::model::plan::Plan;
use crate::setting::quantity::{Unit, shown};

impl FaultScript {
    /// Returns the text of a file for this plan's rack.
    #[must_use]
    pub fn to_text(&self, plan: &Plan) -> String {
        let mut text = format!("name: {}\nevents:\n", self.name);
        for event in &self.events {
            // Writing into a string cannot fail.
            let _ = writeln!(text, "  - {{{}}}", words(event, plan).join(", "));
        }
        text += &expectations(&self.expect, plan);
        text
    }
}

fn words(event: &FaultEvent, plan: &Plan) -> Vec<String> {
    let mut words = vec![];
    let members = |members: &[rackloom_protocol::NodeId]| {
        let names: Vec<_> = members.iter().map(|node| plan.members[node.index()].name.as_str()).collect();
        format!("where: [{}]", names.join(", "))
    };
    match &event.fault {
        Fault::Links { directions, conditions } => {
            words.extend(kind_of(conditions));
            words.insert(1, locations(directions, plan));
        }
        Fault::Drop { directions, numbers } => {
            let numbers: Vec<_> = numbers.iter().map(u64::to_string).collect();
            words.extend([
                "what: drop".to_owned(),
                locations(directions, plan),
                format!("frames: [{}]", numbers.join(", ")),
            ]);
        }
        Fault::Pause(paused) => words.extend(["what: pause".to_owned(), members(paused)]),
        Fault::Memory { members: owners, conditions } => {
            let what = match conditions.fail {
                fail if fail > 0.0 => ["what: fail-memory".to_owned(), format!("rate: {fail}")],
                _ => ["what: slow-memory".to_owned(), format!("by: {}", time(conditions.late_ns))],
            };
            words.extend(what);
            words.insert(1, members(owners));
        }
        Fault::Revoke(owners) => words.extend(["what: revoke".to_owned(), members(owners)]),
        Fault::Kill(killed) => words.extend(["what: kill".to_owned(), members(killed)]),
    }
    words.push(match event.trigger {
        Trigger::At(at_ns) => format!("at: {}", time(at_ns)),
        Trigger::Frames { direction, count } => {
            format!("after: {{frames: {count}, way: {}}}", direction.name(plan))
        }
        Trigger::Reached { node, position } => {
            let name = &plan.members[node.index()].name;
            format!("when: {{node: {name}, run: {}, step: {}}}", position.run, position.step)
        }
    });
    let timing = &event.timing;
    words.extend(timing.for_ns.map(|for_ns| format!("for: {}", time(for_ns))));
    words.extend((timing.ramp_ns > 0).then(|| format!("ramp: {}", time(timing.ramp_ns))));
    words.extend(timing.every_ns.map(|every_ns| format!("every: {}", time(every_ns))));
    words.extend(timing.times.map(|times| format!("times: {times}")));
    words
}

/// Returns kind and values of conditions. An event that was read from a file has one condition.
fn kind_of(conditions: &Conditions) -> Vec<String> {
    let none = Conditions::default();
    let Conditions { loss, loss_by_kind, picked, corrupt, duplicate, reorder, delay_ns, rate_share, .. } =
        *conditions;
    let rated = |what: &str, rate: f64| vec![format!("what: {what}"), format!("rate: {rate}")];
    if conditions.is_unplugged {
        vec!["what: unplug".to_owned()]
    } else if conditions.is_cut {
        vec!["what: down".to_owned()]
    } else if let Some((pick, rate)) = picked {
        let mut words = rated("loss", rate);
        let names: Vec<_> = pick.operations().collect();
        words.extend((!names.is_empty()).then(|| format!("operations: [{}]", names.join(", "))));
        words.extend(pick.sequence().map(|(first, last)| format!("sequence: [{first}, {last}]")));
        words
    } else if loss_by_kind != none.loss_by_kind {
        let hit = LossByKind::kinds().filter_map(|(kind, name)| Some((name, loss_by_kind.of(kind)?)));
        let hit: Vec<_> = hit.collect();
        let names: Vec<_> = hit.iter().map(|(name, _)| *name).collect();
        let mut words = rated("loss", hit.first().map_or(0.0, |(_, rate)| *rate));
        words.push(format!("kinds: [{}]", names.join(", ")));
        words
    } else if corrupt > 0.0 {
        let mut words = rated("corrupt", corrupt);
        let part = conditions.corrupt_part;
        words.extend((part != FramePart::Any).then(|| format!("part: {part}")));
        words
    } else if duplicate > 0.0 {
        rated("duplicate", duplicate)
    } else if reorder > 0.0 {
        rated("reorder", reorder)
    } else if delay_ns > 0 {
        vec!["what: delay".to_owned(), format!("by: {}", time(delay_ns))]
    } else if rate_share < 1.0 {
        vec!["what: slow".to_owned(), format!("share: {rate_share}")]
    } else {
        rated("loss", loss)
    }
}

fn locations(directions: &[LinkDirection], plan: &Plan) -> String {
    let names: Vec<_> = directions.iter().map(|direction| direction.name(plan)).collect();
    format!("where: [{}]", names.join(", "))
}

fn expectations(expect: &FaultExpectations, plan: &Plan) -> String {
    let mut lines = vec![format!("ends: {}", expect.ends), format!("happen: {}", expect.happen)];
    let names: Vec<_> = expect.lost.iter().map(|node| plan.members[node.index()].name.as_str()).collect();
    lines.push(format!("lost: [{}]", names.join(", ")));
    let times = [
        ("detected_within", expect.detected_within_ns),
        ("switched_within", expect.switched_within_ns),
        ("recovered_within", expect.recovered_within_ns),
        ("elapsed_max", expect.elapsed_max_ns),
    ];
    lines.extend(times.iter().filter_map(|(key, ns)| Some(format!("{key}: {}", time((*ns)?)))));
    lines.extend(expect.goodput_min_bits_per_s.map(|rate| format!("goodput_min: {rate}bit/s")));
    let counts =
        [("retransmitted_min", expect.retransmitted_min), ("retransmitted_max", expect.retransmitted_max)];
    lines.extend(counts.iter().filter_map(|(key, count)| Some(format!("{key}: {}", (*count)?))));
    let lines: String = lines.iter().map(|line| format!("  {line}\n")).collect();
    format!("expect:\n{lines}")
}

fn time(time_ns: u64) -> String {
    shown(time_ns, Unit::Nanoseconds)
}
