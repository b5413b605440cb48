//! Reads the text of a fault script and reports all mistakes at once.
//!
//! The keys of an event are read first, then compared with its kind (`kind`). Keys that do not apply, and keys that contradict
//! each other, are refused. `check` decides if a fault makes sense on this rack.

mod check;

use std::path::Path;

use rackloom_protocol::NodeId;

use super::kind::{COMMON, FaultKind, KindKeys, Target};
use super::{
    ExpectedEnd, Fault, FaultEvent, FaultExpectations, FaultScript, JobPosition, LinkDirection, Timing,
    Trigger, select,
};
use crate::model::links::loss::KIND_NAMES;
use crate::model::links::pick::OPERATION_NAMES;
use crate::model::plan::Plan;
use crate::read::document::{Content, Value};
use crate::read::fields::{Fields, FileKind, Findings, Reader};
use crate::read::mistake::{Complaint, PlanError, Source, quoted};
use crate::read::text::{TextFile, Unreadable, text_of};
use crate::schema::{self, AfterKeys, EVENT, EXPECTATIONS, EventKeys, FAULTS_EXPECT, ScriptKeys, WhenKeys};
use crate::setting::quantity::whole;

const SCRIPT_FILE: FileKind =
    FileKind { name: "a fault script", example: "`name: cut` and `events: [{what: down, where: n0--n1}]`" };
/// A script with more events is refused.
const EVENTS_MAX: usize = 10_000;

impl FaultScript {
    /// Reads a script for the rack of `plan`.
    ///
    /// # Errors
    /// Returns every mistake of the file, with line, column and hint. If the file cannot be read, returns one mistake without
    /// a position.
    pub fn read(path: &Path, plan: &Plan) -> Result<Self, PlanError> {
        let origin = path.display().to_string();
        let text = text_of(path, TextFile::FaultScript).map_err(|Unreadable { message, hint }| {
            let source = Source::new(&origin, "");
            source.error(vec![source.mistake(None, Complaint::about(message).hint(hint))])
        })?;
        Self::parse(&text, &origin, plan)
    }

    /// Reads a script from text. `origin` is the name of the file in messages.
    ///
    /// # Errors
    /// Returns every mistake of the text, with line, column and hint.
    pub fn parse(text: &str, origin: &str, plan: &Plan) -> Result<Self, PlanError> {
        script(text, origin, plan)
    }
}

/// Reads a script for the rack of this plan.
fn script(text: &str, origin: &str, plan: &Plan) -> Result<FaultScript, PlanError> {
    let (mut reader, mut value) = Reader::begin(text, origin, SCRIPT_FILE)?;
    rename_old_keys(&mut value);
    let root = reader.open(Some(&value), String::new(), &schema::FAULTS);
    if root.find("name").is_none() {
        let complaint =
            Complaint::about("the script has no `name`").hint("add a line like `name: cut-one-way`");
        reader.complain(value.position, complaint);
    }
    let ScriptKeys { name, .. } = reader.section(&root, ScriptKeys::default());
    let items = reader.items(root.find("events"), "events");
    let (mut events, mut positions) = (Vec::new(), Vec::new());
    for (number, item) in items.iter().take(EVENTS_MAX).enumerate() {
        if let Some(event) = event(&mut reader, plan, item, number + 1) {
            events.push(event);
            positions.push(item.position);
        }
    }
    if items.len() > EVENTS_MAX {
        let message = format!("the script has {} events, more than {EVENTS_MAX}", items.len());
        reader.complain(
            items[EVENTS_MAX].position,
            Complaint::about(message).hint("use `every` for what repeats"),
        );
    }
    if name == FaultScript::INJECTED {
        events.iter_mut().for_each(|event| event.line = 0);
    }
    let is_whole = reader.mistakes.is_empty();
    let expect = expectations(&mut reader, plan, &root, &events);
    let script = FaultScript { name, events, expect };
    let expect_at = root.find("expect").map_or(value.position, |expect| expect.position);
    check::check(&mut reader, plan, &script, &positions, expect_at, is_whole);
    let Findings { source, mistakes, .. } = reader.finish();
    if mistakes.is_empty() { Ok(script) } else { Err(source.error(mistakes)) }
}

/// Gives keys of version 0.1 their names of today: `way` of `after` is `direction`.
fn rename_old_keys(script: &mut Value) {
    for_each_entry(script, "events", &mut |events| {
        let Content::List(events) = &mut events.content else { return };
        for event in events {
            for_each_entry(event, "after", &mut |after| {
                let Content::Table(entries) = &mut after.content else { return };
                if entries.iter().all(|entry| entry.key != "direction") {
                    let old = entries.iter_mut().filter(|entry| entry.key == "way");
                    old.for_each(|entry| entry.key = "direction".into());
                }
            });
        }
    });
}

/// Calls `visit` with each value under `key`, if `value` is a table.
fn for_each_entry(value: &mut Value, key: &str, visit: &mut dyn FnMut(&mut Value)) {
    let Content::Table(entries) = &mut value.content else { return };
    entries.iter_mut().filter(|entry| entry.key == key).for_each(|entry| visit(&mut entry.value));
}

/// Reads one event. Returns `None` if it is incomplete, after a mistake was reported.
fn event(reader: &mut Reader<'_>, plan: &Plan, item: &Value, number: usize) -> Option<FaultEvent> {
    let before = reader.mistakes.len();
    let fields = reader.open(Some(item), format!("events[{number}]"), &EVENT);
    for key in ["what", "where"] {
        if fields.find(key).is_none() {
            let message = format!("event {number} does not state `{key}`");
            reader
                .complain(item.position, Complaint::about(message).hint(format!("say it: {}", example(key))));
        }
    }
    let has_all = reader.mistakes.len() == before;
    let stated = reader.section(&fields, EventKeys::default());
    let kind = stated.what;
    if has_all && reader.positions.is_intact(&fields.path_of("what")) {
        keys(reader, &fields, kind, item);
    }
    let trigger = trigger(reader, plan, &fields, &stated);
    let timing = timing(reader, &fields, &stated);
    let fault = fault(reader, plan, &fields, stated);
    let label = format!("{kind} {}", targets(reader, &fields).join(", "));
    let is_whole = reader.mistakes.len() == before;
    is_whole.then_some(FaultEvent { fault, trigger, timing, label, line: item.position.line })
}

fn example(key: &str) -> &'static str {
    if key == "what" { "`what: down`" } else { "`where: n0--n1`" }
}

/// Reports keys that do not apply to this kind of fault, and missing keys.
fn keys(reader: &mut Reader<'_>, fields: &Fields<'_>, kind: FaultKind, item: &Value) {
    let KindKeys { needed, allowed, .. } = kind.keys();
    let Content::Table(entries) = &item.content else { return };
    for entry in entries.iter().filter(|entry| EVENT.find(&entry.key).is_some()) {
        let key = entry.key.as_str();
        let is_taken = COMMON.contains(&key) || needed.contains(&key) || allowed.contains(&key);
        if !is_taken {
            let takers = FaultKind::ALL.iter().filter(|kind| {
                let KindKeys { needed, allowed, .. } = kind.keys();
                needed.contains(&key) || allowed.contains(&key)
            });
            let takers: Vec<_> = takers.map(|kind| kind.name()).collect();
            let message = format!("`{key}` means nothing to `{kind}`");
            let hint = format!("leave it out; it belongs to {}", takers.join(", "));
            reader.complain(entry.key_position, Complaint::about(message).hint(hint));
        }
        let lasts = ["for", "every", "times"].contains(&key);
        if kind.is_moment() && lasts && key == "for" {
            let message = format!("`{kind}` happens at once and cannot last");
            reader.complain(entry.key_position, Complaint::about(message).hint("leave `for` out"));
        }
    }
    for key in needed.iter().filter(|key| fields.find(key).is_none()) {
        let message = format!("`{kind}` needs `{key}`");
        let meaning = EVENT.find(key).map_or("", |key| key.meaning);
        reader.complain(item.position, Complaint::about(message).hint(format!("`{key}`: {meaning}")));
    }
}

fn trigger(reader: &mut Reader<'_>, plan: &Plan, fields: &Fields<'_>, event: &EventKeys) -> Trigger {
    let stated: Vec<_> =
        ["at", "after", "when"].into_iter().filter(|key| fields.find(key).is_some()).collect();
    if let [first, second, ..] = stated[..] {
        let position = fields.find(second).map(|value| value.position).unwrap_or_default();
        let message = format!("`{first}` and `{second}` both state when it begins");
        reader.complain(position, Complaint::about(message).hint("leave one of them out"));
    }
    let after = fields.find("after").is_some().then(|| frames_passed(reader, plan, fields));
    let when = fields.find("when").is_some().then(|| progress_reached(reader, plan, fields));
    after.or(when).unwrap_or(Trigger::At(event.at_ns.0))
}

fn frames_passed(reader: &mut Reader<'_>, plan: &Plan, fields: &Fields<'_>) -> Trigger {
    let after = reader.open_under(fields, "after", &schema::AFTER);
    demand(reader, fields, "after", &after, &["frames", "direction"]);
    let AfterKeys { frames: count, .. } = reader.section(&after, AfterKeys::default());
    let nowhere = LinkDirection { edge: 0, direction: crate::impair::Direction::Forward };
    let direction = reader.value(&after, "direction", nowhere, |text| select::direction_of(plan, text));
    Trigger::Frames { direction, count }
}

fn progress_reached(reader: &mut Reader<'_>, plan: &Plan, fields: &Fields<'_>) -> Trigger {
    let when = reader.open_under(fields, "when", &schema::WHEN);
    demand(reader, fields, "when", &when, &["node"]);
    let node = reader.value(&when, "node", NodeId(0), |text| select::endpoint(plan, text));
    let WhenKeys { run, step, .. } = reader.section(&when, WhenKeys::default());
    let position = JobPosition { run, step };
    Trigger::Reached { node, position }
}

/// Reports required keys that a table does not have.
fn demand(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    key: &'static str,
    inner: &Fields<'_>,
    needed: &[&'static str],
) {
    let Some(position) = fields.find(key).map(|value| value.position) else { return };
    for missing in needed.iter().filter(|needed| inner.find(needed).is_none()) {
        let message = format!("`{key}` does not state `{missing}`");
        let hint =
            "write like `after: {frames: 100, direction: n0->n1}` or `when: {node: n3, run: 2, step: 5}`";
        reader.complain(position, Complaint::about(message).hint(hint));
    }
}

fn timing(reader: &mut Reader<'_>, fields: &Fields<'_>, event: &EventKeys) -> Timing {
    let EventKeys { what: kind, for_ns, ramp_ns, every_ns, times, .. } = *event;
    let position_of = |key| fields.find(key).map(|value| value.position).unwrap_or_default();
    if times.is_some() && every_ns.is_none() {
        let complaint = Complaint::about("`times` has no effect without `every`");
        reader.complain(position_of("times"), complaint.hint("add `every`, the time between two beginnings"));
    }
    if every_ns.is_some() && kind == FaultKind::Kill {
        let complaint =
            Complaint::about("`kill` happens once: no event reaches who follows in the member's place");
        reader.complain(position_of("every"), complaint.hint("leave `every` and `times` out"));
    } else if every_ns.is_some() && for_ns.is_none() && !kind.is_moment() {
        let complaint = Complaint::about("what begins again must have ended: `every` without `for`");
        reader.complain(position_of("every"), complaint.hint("add `for`, shorter than `every`"));
    }
    if let (Some(for_ns), Some(every_ns)) = (for_ns, every_ns)
        && for_ns >= every_ns
    {
        let complaint = Complaint::about("it would begin again before it has ended");
        reader.complain(position_of("for"), complaint.hint("make `for` shorter than `every`"));
    }
    if let (Some(ramp_ns), Some(for_ns)) = (ramp_ns, for_ns)
        && ramp_ns > for_ns
    {
        let complaint = Complaint::about("it is over before it has grown to its full strength");
        reader.complain(position_of("ramp"), complaint.hint("make `ramp` no longer than `for`"));
    }
    Timing { for_ns, ramp_ns: ramp_ns.unwrap_or(0), every_ns, times }
}

/// Reads the targets and the lists of an event, and returns its fault.
fn fault(reader: &mut Reader<'_>, plan: &Plan, fields: &Fields<'_>, mut event: EventKeys) -> Fault {
    let (mut directions, mut members, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
    match event.what.keys().target {
        Target::Links => {
            directions = resolve(reader, fields, |text| select::directions(plan, text));
            lists(reader, fields, &mut event);
        }
        Target::Boundary => {
            let side = resolve(reader, fields, |text| Ok(vec![select::member(plan, text)?]));
            directions = select::boundary(plan, &side);
        }
        Target::Members => {
            members = resolve(reader, fields, |text| Ok(vec![select::member(plan, text)?]));
        }
        Target::Owners => members = resolve(reader, fields, |text| Ok(vec![select::owner(plan, text)?])),
        Target::QueuePairs => {
            let pairs = resolve(reader, fields, |text| Ok(vec![select::queue_pairs(plan, text)?]));
            (members, numbers) = pairs.into_iter().unzip();
        }
    }
    Fault::stated_by(&event, directions, members, numbers)
}

/// Reads the keys of a fault of links whose values are lists, and checks them against each other.
fn lists(reader: &mut Reader<'_>, fields: &Fields<'_>, event: &mut EventKeys) {
    if event.what == FaultKind::Drop {
        event.frames = frame_numbers(reader, fields);
        return;
    }
    event.kinds = frame_kinds(reader, fields);
    (event.operations, event.sequence) = (operations(reader, fields), sequence(reader, fields));
    let picks = !event.operations.is_empty() || !event.sequence.is_empty();
    if let (true, Some(kinds)) = (picks, fields.find("kinds")) {
        let complaint =
            Complaint::about("`operations` and `sequence` pick frames of data, and `kinds` others");
        reader.complain(kinds.position, complaint.hint("leave `kinds` out, or make two events of it"));
    }
    if let (true, Some(stated)) = (event.share == Some(0.0), fields.find("share")) {
        let complaint = Complaint::about("no share of the rate is left").hint("say `what: down` for that");
        reader.complain(stated.position, complaint.at(&fields.path_of("share")));
    }
}

fn operations(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Vec<&'static str> {
    let path = fields.path_of("operations");
    let mut names = Vec::new();
    for item in reader.items(fields.find("operations"), &path) {
        let name = reader.scalar(item, &path).and_then(|text| {
            OPERATION_NAMES.iter().copied().find(|name| *name == text).ok_or_else(|| {
                Complaint::about(format!("{} is no operation in a frame", quoted(text)))
                    .hint(format!("operations are {}", OPERATION_NAMES.join(", ")))
            })
        });
        match name {
            Ok(name) => names.push(name),
            Err(complaint) => reader.complain(item.position, complaint),
        }
    }
    names
}

/// Returns the first and the last packet number, or nothing.
fn sequence(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Vec<u32> {
    let Some(given) = fields.find("sequence") else { return Vec::new() };
    let path = fields.path_of("sequence");
    let mut ends = Vec::new();
    for item in reader.items(Some(given), &path) {
        let number = reader.scalar(item, &path).and_then(whole);
        match number {
            Ok(number) => ends.push(number),
            Err(complaint) => reader.complain(item.position, complaint),
        }
    }
    match ends[..] {
        [first, last] if first <= last => ends,
        _ => {
            let complaint = Complaint::about("`sequence` is a range of packet numbers");
            reader.complain(
                given.position,
                complaint.hint("write the first and the last one, like `sequence: [100, 120]`"),
            );
            Vec::new()
        }
    }
}

fn frame_kinds(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Vec<&'static str> {
    let path = fields.path_of("kinds");
    let mut names = Vec::new();
    for item in reader.items(fields.find("kinds"), &path) {
        let name = reader.scalar(item, &path).and_then(|text| {
            KIND_NAMES.iter().copied().find(|name| *name == text).ok_or_else(|| {
                Complaint::about(format!("{} is no kind of frame", quoted(text)))
                    .hint(format!("kinds are {}", KIND_NAMES.join(", ")))
            })
        });
        match name {
            Ok(name) => names.push(name),
            Err(complaint) => reader.complain(item.position, complaint),
        }
    }
    names
}

fn frame_numbers(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Vec<u64> {
    let path = fields.path_of("frames");
    let mut numbers = Vec::new();
    for item in reader.items(fields.find("frames"), &path) {
        let number = reader.scalar(item, &path).and_then(|text| match whole(text) {
            Ok(0) => Err(Complaint::about(format!("`{path}` counts frames from 1, found 0"))
                .hint("the first data frame from the event on is number 1")),
            other => other.map_err(|complaint| complaint.at(&path)),
        });
        match number {
            Ok(number) => numbers.push(number),
            Err(complaint) => reader.complain(item.position, complaint),
        }
    }
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// Returns the items of `where`, one or several, as they are written.
fn targets<'doc>(reader: &Reader<'_>, fields: &Fields<'doc>) -> Vec<&'doc str> {
    let items = fields.find("where").map_or(&[][..], as_items);
    items.iter().filter_map(|item| reader.scalar(item, "where").ok()).collect()
}

/// Resolves the items of `where`, without duplicates.
fn resolve<T: PartialEq>(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    meaning: impl Fn(&str) -> Result<Vec<T>, Complaint>,
) -> Vec<T> {
    let path = fields.path_of("where");
    let mut found: Vec<T> = Vec::new();
    for item in fields.find("where").map_or(&[][..], as_items) {
        match reader.scalar(item, &path).and_then(&meaning) {
            Ok(things) => {
                for thing in things {
                    if !found.contains(&thing) {
                        found.push(thing);
                    }
                }
            }
            Err(complaint) => reader.complain(item.position, complaint),
        }
    }
    found
}

/// Returns one value, or the items of a list.
fn as_items(value: &Value) -> &[Value] {
    match &value.content {
        Content::List(items) => items,
        _ => std::slice::from_ref(value),
    }
}

fn expectations(
    reader: &mut Reader<'_>,
    plan: &Plan,
    root: &Fields<'_>,
    events: &[FaultEvent],
) -> FaultExpectations {
    let fields = reader.open_under(root, "expect", &FAULTS_EXPECT);
    let kills = FaultScript { events: events.to_vec(), ..FaultScript::default() }.kills();
    let kills_a_node = events.iter().any(|event| match &event.fault {
        Fault::Kill(members) => members.iter().any(|member| member.index() < plan.endpoint_count()),
        _ => false,
    });
    let usual = if kills_a_node { ExpectedEnd::Either } else { ExpectedEnd::Right };
    let path = fields.path_of("lost");
    let mut lost = Vec::new();
    for item in reader.items(fields.find("lost"), &path) {
        match reader.scalar(item, &path).and_then(|text| select::member(plan, text)) {
            Ok(member) => lost.push(member),
            Err(complaint) => reader.complain(item.position, complaint),
        }
    }
    lost.sort_unstable();
    lost.dedup();
    let lost = if fields.find("lost").is_some() { lost } else { kills };
    let usual = FaultExpectations { ends: usual, ..EXPECTATIONS };
    FaultExpectations { lost, ..reader.section(&fields, usual) }
}
