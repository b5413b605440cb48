//! Texts that a user writes: rack files, fault scripts, traces.

use rackloom_fuzz::{MemoryLimit, Target, files};
use rackloom_plan::faults::FaultScript;
use rackloom_plan::trace;
use rackloom_plan::{Plan, PlanError};

use crate::repository;

/// A plan of a full mesh grows with the square of the nodes, and the reader of YAML has limits of its own.
const RACK_MEMORY: MemoryLimit = MemoryLimit { base_bytes: 256 << 20, per_input_byte: 4096 };
const MEMORY: MemoryLimit = MemoryLimit { base_bytes: 4 << 20, per_input_byte: 1024 };

const RACK_TOKENS: &[&str] = &[
    "\nname: r\n",
    "\nshape: {ring: {nodes: 4}}\n",
    "\nshape: {full_mesh: {nodes: 8}}\n",
    "\ndefaults:\n",
    "\njob: ",
    "\nlinks:\n  - ",
    "n0",
    "n1",
    "sw0",
    "&a ",
    "*a",
    "<<: ",
    "!!str ",
    "|\n  ",
    "64KiB",
    "10us",
    "200Gbps",
    "1e-4",
    "-1",
    ".nan",
    "null",
    "true",
    "- ",
    ": ",
    "#",
    "\r\n",
    "\t",
    "\u{feff}",
    "é",
    "\u{1f980}",
];
const SCRIPT_TOKENS: &[&str] = &[
    "\nname: s\n",
    "\nevents:\n",
    "\n  - {what: down, where: n0--n1, at: 1ms, for: 20ms}\n",
    "\nexpect: ",
    "what: ",
    "where: ",
    "at: ",
    "for: ",
    "every: ",
    "n0->n1",
    "n0--n1",
    "n0",
    "sw0",
    "down",
    "kill",
    "pause",
    "drop",
    "corrupt",
    "50%",
    "1.5",
    "10ms",
    "{",
    "}",
    "[",
    "]",
    "&a ",
    "*a",
    "\r\n",
    "\u{1f980}",
];
const TRACE_TOKENS: &[&str] = &[
    "time,source,destination,bytes,kind\n",
    "0ns,n0,n1,4KiB,put\n",
    "\n",
    "\r\n",
    "#",
    ",",
    "n0",
    "n3",
    "sw0",
    "put",
    "store",
    "load",
    "get",
    "fetch-add",
    "1us",
    "64KiB",
    " ",
    "\u{a0}",
    "\u{1f980}",
];

/// Checks that every mistake has a position within the text, a message and a hint. Returns the messages.
fn positions_are_in_the_text(error: &PlanError, text: &str) -> String {
    assert!(!error.mistakes.is_empty(), "an error without a mistake");
    // YAML ends a line at a carriage return too, a trace does not.
    let lines_of_yaml = text.replace("\r\n", "\n").replace('\r', "\n");
    let counted = [text, &lines_of_yaml].map(|text| text.split('\n').collect::<Vec<_>>());
    for mistake in &error.mistakes {
        assert!(!mistake.message.is_empty() && !mistake.hint.is_empty(), "{mistake:?}");
        let (line, column) = (mistake.line as usize, mistake.column as usize);
        if line == 0 {
            continue;
        }
        // A position behind the last character is that of something missing.
        let is_inside = |lines: &Vec<&str>| {
            let characters = lines.get(line - 1).map_or(0, |line| line.chars().count());
            line <= lines.len() + 1 && (1..=characters + 1).contains(&column)
        };
        assert!(counted.iter().any(is_inside), "{mistake:?} is outside the text");
    }
    error.to_string()
}

/// Runs a reader twice. Returns the outcome and the value, if there is one.
fn read_alike<T: PartialEq + std::fmt::Debug>(
    text: &str,
    read: impl Fn(&str) -> Result<T, PlanError>,
) -> Result<T, String> {
    match (read(text), read(text)) {
        (Ok(one), Ok(other)) => {
            assert!(one == other, "two readings differ");
            Ok(one)
        }
        (Err(one), Err(other)) => {
            assert_eq!(one, other);
            let first = one.mistakes.first().map(|mistake| mistake.message.clone());
            positions_are_in_the_text(&one, text);
            Err(first.unwrap_or_default())
        }
        _ => panic!("two readings differ"),
    }
}

#[test]
fn rack_files_become_plans_or_mistakes() {
    let mut seeds = files(&repository("topologies"), ".yaml");
    // The large rack takes a hundred times as long and reaches nothing else.
    seeds.retain(|text| !String::from_utf8_lossy(text).contains("64"));
    seeds.extend(files(&repository("tests/broken"), ".yaml"));
    let target =
        Target { name: "racks", seeds, tokens: RACK_TOKENS, input_bytes_max: 8192, memory: RACK_MEMORY };
    target.run(|bytes| {
        let Ok(text) = std::str::from_utf8(bytes) else { return "no text".to_owned() };
        // The epoch is a hash of everything in the plan.
        let plan = read_alike(text, |text| Plan::parse(text, "fuzz").map(|plan| (plan.name, plan.epoch)));
        plan.map_or_else(|message| message, |_| "a plan".to_owned())
    });
}

#[test]
fn fault_scripts_become_events_or_mistakes() {
    let plan = std::fs::read_to_string(repository("topologies/star-4.yaml")).expect("the rack is there");
    let plan = Plan::parse(&plan, "star-4").expect("the rack is whole");
    let target = Target {
        name: "faults",
        seeds: files(&repository("scripts/faults"), ".yaml"),
        tokens: SCRIPT_TOKENS,
        input_bytes_max: 8192,
        memory: MEMORY,
    };
    target.run(|bytes| {
        let Ok(text) = std::str::from_utf8(bytes) else { return "no text".to_owned() };
        let script = match read_alike(text, |text| FaultScript::parse(text, "fuzz", &plan)) {
            Ok(script) => script,
            Err(message) => return message,
        };
        let lines = text.split(['\n', '\r']).count();
        for event in &script.events {
            assert!((1..=lines).contains(&(event.line as usize)), "{event:?} is outside the {lines} lines");
            assert!(!event.label.is_empty());
        }
        let labels: Vec<_> = script.events.iter().map(|event| event.label.as_str()).collect();
        labels.join(",")
    });
}

#[test]
fn traces_are_read_and_written_alike() {
    let plan = Plan::parse("name: r\nshape: {ring: {nodes: 4}}\n", "rack").expect("the rack is whole");
    let seeds = [
        "time,source,destination,bytes,kind\n0ns,n0,n1,4KiB,put\n1us,n1,n0,64,store\n",
        "# a comment\ntime, source, destination, bytes, kind\n\n5, n3, n2, 8, fetch-add\n0, n0, n1, 1MiB, get\n",
        "time,source,destination,bytes,kind\r\n1ms,n0,n2,16,load\r\n",
        "time,source,destination,bytes,kind\n-1,n0,n0,0,push\n",
    ];
    let target = Target {
        name: "traces",
        seeds: seeds.map(|text| text.as_bytes().to_vec()).to_vec(),
        tokens: TRACE_TOKENS,
        input_bytes_max: 4096,
        memory: MEMORY,
    };
    target.run(|bytes| {
        let Ok(text) = std::str::from_utf8(bytes) else { return "no text".to_owned() };
        let lines = match read_alike(text, |text| trace::read(text, "fuzz", &plan)) {
            Ok(lines) => lines,
            Err(message) => return message,
        };
        assert!(lines.is_sorted_by_key(|line| line.at_ns));
        let mut written = "time,source,destination,bytes,kind\n".to_owned();
        for line in &lines {
            let name = |node: rackloom_protocol::NodeId| &plan.members[node.index()].name;
            let (source, destination) = (name(line.source), name(line.destination));
            written += &format!("{},{source},{destination},{},{}\n", line.at_ns, line.bytes, line.kind);
        }
        assert_eq!(trace::read(&written, "fuzz", &plan), Ok(lines.clone()));
        let kinds: Vec<_> = lines.iter().take(4).map(|line| line.kind.to_string()).collect();
        kinds.join(",")
    });
}
