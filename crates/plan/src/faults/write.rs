//! Text of a script, for files that a campaign writes. Reading the text yields the same script.
//!
//! The keys of an event are written as they are declared. This file names no kind of fault.

use std::fmt::Write;

use super::{Fault, FaultEvent, FaultExpectations, FaultScript, Trigger};
use crate::model::plan::Plan;
use crate::schema::{EventKeys, Key, Kind};
use crate::setting::quantity::{Unit, shown};
use crate::setting::section::{Section, Visit};
use crate::setting::value::Shown;

impl FaultScript {
    /// Returns the text of a file for this plan's rack.
    #[must_use]
    pub fn to_text(&self, plan: &Plan) -> String {
        let mut text = format!("name: {}\nevents:\n", self.name);
        for event in &self.events {
            // Writing into a string cannot fail.
            let _ = writeln!(text, "  - {{{}}}", entries(event, plan).join(", "));
        }
        text += &expectations(&self.expect, plan);
        text
    }
}

fn entries(event: &FaultEvent, plan: &Plan) -> Vec<String> {
    let keys = event.fault.keys();
    let mut entries = vec![format!("what: {}", keys.what), targets(&event.fault, plan)];
    entries.extend(values(&keys));
    entries.push(match event.trigger {
        Trigger::At(at_ns) => format!("at: {}", time(at_ns)),
        Trigger::Frames { direction, count } => {
            format!("after: {{frames: {count}, direction: {}}}", direction.name(plan))
        }
        Trigger::Reached { node, position } => {
            let name = &plan.members[node.index()].name;
            format!("when: {{node: {name}, run: {}, step: {}}}", position.run, position.step)
        }
    });
    let timing = &event.timing;
    entries.extend(timing.for_ns.map(|for_ns| format!("for: {}", time(for_ns))));
    entries.extend((timing.ramp_ns > 0).then(|| format!("ramp: {}", time(timing.ramp_ns))));
    entries.extend(timing.every_ns.map(|every_ns| format!("every: {}", time(every_ns))));
    entries.extend(timing.times.map(|times| format!("times: {times}")));
    entries
}

/// Returns the values that the event states, each with its key, in the order of the keys of its kind.
fn values(keys: &EventKeys) -> Vec<String> {
    let kind = keys.what.keys();
    let mut texts = Texts(Vec::new());
    keys.visit(&mut texts);
    let value_of = |key| texts.0.iter().find(|text| text.key == key);
    let stated = kind.of_values().filter_map(value_of);
    let stated = stated.filter(|text| !text.is_default || kind.needed.contains(&text.key));
    stated.map(|text| format!("{}: {}", text.key, text.value)).collect()
}

/// Value of a key in the form of a file.
struct KeyText {
    key: &'static str,
    value: String,
    is_default: bool,
}

/// Collects the values of all keys of an event.
struct Texts(Vec<KeyText>);

impl Visit for Texts {
    fn value(&mut self, key: &'static Key, value: &dyn Shown, is_default: bool) {
        let shown = value.shown(&key.kind);
        let value = match key.kind {
            Kind::Counts | Kind::ChoiceList(_) => format!("[{}]", shown.replace(',', ", ")),
            _ => shown,
        };
        self.0.push(KeyText { key: key.name, value, is_default });
    }

    fn of_link(&mut self, _: &'static Key, _: usize, _: &dyn Shown) {}

    fn open(&mut self, _: &'static Key) {}

    fn close(&mut self) {}
}

/// Returns the key `where`: directions of links, or members.
fn targets(fault: &Fault, plan: &Plan) -> String {
    let directions = fault.directions().iter().map(|direction| direction.name(plan));
    let numbers = match fault {
        Fault::QueuePairs { numbers, .. } => &numbers[..],
        _ => &[],
    };
    let numbers = numbers.iter().copied().chain(std::iter::repeat(None));
    let members = fault.members().iter().zip(numbers).map(|(node, number)| {
        let name = &plan.members[node.index()].name;
        number.map_or_else(|| name.clone(), |number| format!("{name}/{number}"))
    });
    format!("where: [{}]", directions.chain(members).collect::<Vec<_>>().join(", "))
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
