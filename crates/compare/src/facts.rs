//! Facts of one report: named numbers and texts, with their units and the direction in which they are better.
//!
//! Counters that reports leave out if they are zero count as zero. Single events are no facts: their sums are.
//! Date and command line are none either, because they differ between two equal runs.

use std::collections::{BTreeSet, HashMap, HashSet};

use rackloom_control::report::{LinkReport, MemberState, NodeReport, Report, SweepRow, Verdict};

use crate::over_time;
use crate::row::{Direction, Section};

use Direction::{Higher, Lower, None as Neither};

/// Kinds of event of which neither more nor fewer are better.
const NEUTRAL_EVENTS: [&str; 5] = ["fault", "faults-injected", "node-left", "node-reached", "node-restarted"];
/// Reason of frames that a fault script or a link profile drops.
const INJECTED: &str = "injected";
/// Names in the text about members or links of one side only.
const NAMES_LISTED: usize = 8;

/// Section and name of a fact.
pub(crate) type Key = (Section, String);

/// Value of a fact.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Number(f64),
    Text(String),
    /// Text with a rank: a greater rank is worse.
    Ranked(String, u8),
}

/// One fact.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fact {
    pub(crate) unit: &'static str,
    pub(crate) direction: Direction,
    pub(crate) value: Value,
    /// True if a report without this fact has the value zero.
    pub(crate) is_zero_if_absent: bool,
}

/// Properties of all reports of a comparison on which names of facts depend.
#[derive(Clone, Debug, Default)]
pub(crate) struct Common {
    members: HashSet<String>,
    links: HashSet<String>,
    /// Rows of sweeps, without their algorithm, that a report has for several algorithms.
    sweeps: BTreeSet<String>,
    /// Length of the intervals of time series; `None` if they cannot be compared.
    interval_ns: Option<u64>,
}

impl Common {
    pub(crate) fn of(before: &[&Report], after: &[&Report]) -> Self {
        let members = |side: &[&Report]| -> HashSet<String> {
            side.iter().flat_map(|report| &report.nodes).map(|node| node.name.clone()).collect()
        };
        let links = |side: &[&Report]| -> HashSet<String> {
            side.iter().flat_map(|report| &report.links).map(|link| link.name.clone()).collect()
        };
        let mut sweeps = BTreeSet::new();
        for report in before.iter().chain(after) {
            let mut seen = BTreeSet::new();
            let bases = report.sweep.iter().map(|row| sweep_name(row, false));
            sweeps.extend(bases.filter(|base| !seen.insert(base.clone())));
        }
        Self {
            members: members(before).intersection(&members(after)).cloned().collect(),
            links: links(before).intersection(&links(after)).cloned().collect(),
            sweeps,
            interval_ns: over_time::interval_ns(before, after),
        }
    }

    /// Returns the length of the intervals of time series; `None` if they cannot be compared.
    pub(crate) fn interval_ns(&self) -> Option<u64> {
        self.interval_ns
    }

    /// Returns whether both sides have a direction of a link with this name.
    pub(crate) fn has_link(&self, name: &str) -> bool {
        self.links.contains(name)
    }

    /// Returns whether both sides have a member of each name, and a link of each name.
    pub(crate) fn has_all_of(&self, report: &Report) -> bool {
        report.nodes.iter().all(|node| self.members.contains(&node.name))
            && report.links.iter().all(|link| self.links.contains(&link.name))
    }
}

/// Returns the facts of a report.
pub(crate) fn facts(report: &Report, common: &Common) -> HashMap<Key, Fact> {
    let mut facts = Facts::default();
    configuration(&mut facts, report, common);
    verdict(&mut facts, report);
    time(&mut facts, report);
    operations(&mut facts, report);
    report.sweep.iter().for_each(|row| sweep(&mut facts, row, common));
    traffic(&mut facts, report);
    workload(&mut facts, report);
    links(&mut facts, report, common);
    series(&mut facts, report, common);
    let nodes = report.nodes.iter().filter(|node| common.members.contains(&node.name));
    nodes.for_each(|node| member(&mut facts, node));
    balance(&mut facts, report);
    losses(&mut facts, report);
    facts.facts
}

#[derive(Default)]
struct Facts {
    facts: HashMap<Key, Fact>,
    /// Number of facts of one name, for names that occurred more than once.
    times_named: HashMap<Key, usize>,
}

impl Facts {
    fn add(&mut self, section: Section, name: String, fact: Fact) {
        if matches!(fact.value, Value::Number(number) if !number.is_finite()) {
            return;
        }
        let mut key = (section, name);
        if self.facts.contains_key(&key) {
            let times = self.times_named.entry(key.clone()).or_insert(1);
            *times += 1;
            key.1 = format!("{} #{times}", key.1);
        }
        self.facts.insert(key, fact);
    }

    fn number(
        &mut self,
        section: Section,
        name: impl Into<String>,
        unit: &'static str,
        direction: Direction,
        number: f64,
    ) {
        let value = Value::Number(number);
        self.add(section, name.into(), Fact { unit, direction, value, is_zero_if_absent: false });
    }

    /// Adds a number to a counter. A counter that is zero is left out, and is zero where it is absent.
    fn count(&mut self, section: Section, name: &str, unit: &'static str, direction: Direction, number: u64) {
        if number == 0 {
            return;
        }
        let number = number as f64;
        let fact = Fact { unit, direction, value: Value::Number(0.0), is_zero_if_absent: true };
        let fact = self.facts.entry((section, name.to_owned())).or_insert(fact);
        if let Value::Number(sum) = &mut fact.value {
            *sum += number;
        }
    }

    fn text(&mut self, section: Section, name: impl Into<String>, text: impl Into<String>) {
        let fact =
            Fact { unit: "", direction: Neither, value: Value::Text(text.into()), is_zero_if_absent: false };
        self.add(section, name.into(), fact);
    }

    fn ranked(&mut self, section: Section, name: impl Into<String>, text: &str, rank: u8) {
        let value = Value::Ranked(text.to_owned(), rank);
        self.add(section, name.into(), Fact { unit: "", direction: Lower, value, is_zero_if_absent: false });
    }
}

fn configuration(facts: &mut Facts, report: &Report, common: &Common) {
    let section = Section::Configuration;
    let manifest = &report.manifest;
    facts.text(section, "job", &report.job);
    facts.text(section, "wire", &report.wire);
    facts.text(section, "clock", &report.clock);
    facts.text(section, "seed", report.seed.to_string());
    facts.text(section, "version", &manifest.version);
    facts.text(section, "commit", &manifest.commit);
    facts.text(section, "configuration hash", &manifest.config_hash);
    let members: Vec<_> = report.nodes.iter().map(|node| node.name.as_str()).collect();
    facts.text(section, "members", names(&members, &common.members));
    let links: Vec<_> = report.links.iter().map(|link| link.name.as_str()).collect();
    facts.text(section, "directions of links", names(&links, &common.links));
    let Some(meta) = &report.meta else { return };
    facts.text(section, "rack", &meta.rack);
    facts.text(section, "wire format", meta.versions.wire.to_string());
    facts.text(section, "host", &meta.host.name);
    facts.text(section, "kernel", &meta.host.kernel);
    facts.text(section, "processors", meta.host.processors.to_string());
    for (name, value) in &meta.options {
        facts.text(section, format!("option {name}"), value);
    }
}

/// Returns the number of names, and those that only one side has.
fn names(names: &[&str], common: &HashSet<String>) -> String {
    let apart: Vec<_> = names.iter().filter(|name| !common.contains(**name)).copied().collect();
    if apart.is_empty() {
        return names.len().to_string();
    }
    let (first, beyond) = apart.split_at(apart.len().min(NAMES_LISTED));
    let more = if beyond.is_empty() { String::new() } else { format!(" and {} more", beyond.len()) };
    format!("{}, only on this side: {}{more}", names.len(), first.join(", "))
}

fn verdict(facts: &mut Facts, report: &Report) {
    let section = Section::Verdict;
    facts.ranked(section, "verdict", report.verdict.name(), rank_of(report.verdict));
    facts.count(section, "failures", "", Lower, report.failures.len() as u64);
    facts.count(section, "failures that no loss explains", "", Lower, report.wrong.len() as u64);
    if let Some(first) = report.failures.first() {
        facts.text(section, "first failure", first);
    }
    let ended = report.nodes.iter().filter(|node| state_rank(node.state) > 0).count();
    facts.count(section, "members that did not finish", "", Lower, ended as u64);
    facts.count(section, "bytes found right", "B", Neither, report.verified_bytes);
    for (oracle, tally) in report.oracles.iter() {
        let name = |what: &str| format!("oracle {}: {what}", oracle.name());
        facts.count(section, &name("violations"), "", Lower, tally.broken);
        facts.count(section, &name("checks"), "", Neither, tally.looked);
        facts.count(section, &name("checks without a result"), "", Neither, tally.unjudged);
    }
    for fault in &report.faults {
        let name = |what: &str| format!("fault {} ({}): {what}", fault.event, fault.what);
        facts.number(section, name("begins"), "", Neither, fault.times as f64);
        facts.number(section, name("begins that no member detected"), "", Lower, fault.unnoticed as f64);
    }
    if let Some(hash) = &report.trace_hash {
        facts.text(section, "hash of everything that happened", hash);
    }
}

/// Returns the rank of a verdict. A greater rank is worse.
const fn rank_of(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Pass => 0,
        Verdict::CouldNotTell => 1,
        Verdict::Starved => 2,
        Verdict::Fail => 3,
    }
}

fn time(facts: &mut Facts, report: &Report) {
    let section = Section::Time;
    facts.number(section, "duration", "ns", Lower, report.elapsed_ns as f64);
    for fault in &report.faults {
        let times = [
            ("detected after", fault.detected_after_ns),
            ("paths switched after", fault.switched_after_ns),
            ("recovered after", fault.recovered_after_ns),
        ];
        for (what, time_ns) in times {
            let name = format!("fault {} ({}): {what}", fault.event, fault.what);
            time_ns.into_iter().for_each(|time_ns| {
                facts.number(section, name.clone(), "ns", Lower, time_ns as f64);
            });
        }
    }
    for node in &report.nodes {
        facts.count(section, "members waited for a processor", "ns", Neither, node.shortage.waited_ns);
    }
}

fn operations(facts: &mut Facts, report: &Report) {
    for operation in &report.operations {
        let path = operation.path.map(|path| format!(" ({})", path.name())).unwrap_or_default();
        let name = format!("{}{path}", operation.kind.name());
        let latency = operation.latency_ns;
        // Without a success there is no latency, and zero is no good one.
        if operation.count > operation.errors {
            for (what, time_ns) in [("p50", latency.p50), ("p99", latency.p99), ("max", latency.max)] {
                facts.number(Section::Operations, format!("{name} {what}"), "ns", Lower, time_ns as f64);
            }
        }
        facts.number(Section::Operations, format!("{name} completed"), "", Neither, operation.count as f64);
        if operation.goodput_bytes_per_s > 0 {
            let goodput = operation.goodput_bytes_per_s as f64;
            facts.number(Section::Goodput, name.clone(), "B/s", Higher, goodput);
        }
        facts.count(Section::Losses, &format!("failed {name}"), "", Lower, operation.errors);
        for (error, count) in &operation.errors_by_name {
            facts.count(Section::Losses, &format!("failed {name}: {error}"), "", Lower, *count);
        }
    }
}

/// Returns the name of a row of a sweep. Rows that a report has for one algorithm alone are named without it.
fn sweep_name(row: &SweepRow, has_algorithm: bool) -> String {
    let size = format!("{} B", row.size_bytes);
    let algorithm = if has_algorithm { row.algorithm.as_str() } else { "" };
    let op = if row.op == "none" { "" } else { row.op.as_str() };
    let parts = [row.what.as_str(), &row.pair, algorithm, &size, &row.element, op];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

fn sweep(facts: &mut Facts, row: &SweepRow, common: &Common) {
    let section = Section::Sweep;
    let base = sweep_name(row, false);
    let has_algorithm = common.sweeps.contains(&base);
    let name = if has_algorithm { sweep_name(row, true) } else { base };
    facts.number(section, format!("{name}: time"), "us", Lower, row.time_us);
    if let Some(time_us) = row.time_p99_us {
        facts.number(section, format!("{name}: p99"), "us", Lower, time_us);
    }
    if let Some(gbps) = row.bus_gbps {
        facts.number(section, format!("{name}: busbw"), "GB/s", Higher, gbps);
    }
    facts.number(section, format!("{name}: wrong"), "", Lower, row.wrong as f64);
    if !has_algorithm && !row.algorithm.is_empty() {
        facts.text(section, format!("{name}: algorithm"), &row.algorithm);
    }
}

fn traffic(facts: &mut Facts, report: &Report) {
    let Some(traffic) = &report.traffic else { return };
    let section = Section::Traffic;
    facts.text(section, "pattern", &traffic.pattern);
    facts.number(section, "completion", "ns", Lower, traffic.completion_ns as f64);
    facts.number(section, "goodput", "GB/s", Higher, traffic.goodput_gbps);
    facts.number(section, "fairness", "", Higher, traffic.fairness);
    facts.number(section, "messages", "", Neither, traffic.messages as f64);
    facts.number(section, "bytes", "B", Neither, traffic.bytes as f64);
}

fn workload(facts: &mut Facts, report: &Report) {
    let Some(workload) = &report.workload else { return };
    let section = Section::Workload;
    facts.text(section, "workload", &workload.name);
    facts.number(section, "iteration", "ns", Lower, workload.iteration_ns as f64);
    facts.number(section, "exposed communication, median", "ns", Lower, workload.exposed_median_ns as f64);
    facts.number(section, "exposed communication, longest", "ns", Lower, workload.exposed_max_ns as f64);
    facts.number(section, "computation, longest", "ns", Lower, workload.compute_max_ns as f64);
    facts.number(section, "operations", "", Neither, workload.operations as f64);
    facts.number(section, "messages", "", Neither, workload.messages as f64);
    facts.number(section, "bytes", "B", Neither, workload.bytes as f64);
    for phase in &workload.phases {
        let duration_ns = phase.ended_ns.saturating_sub(phase.began_ns);
        facts.number(section, format!("phase {}: duration", phase.name), "ns", Lower, duration_ns as f64);
        facts.number(section, format!("phase {}: bytes", phase.name), "B", Neither, phase.bytes as f64);
    }
    for rank in &workload.ranks {
        let name = format!("rank {}: exposed communication", rank.name);
        facts.number(section, name, "ns", Lower, rank.exposed_ns as f64);
    }
}

fn sum(links: &[LinkReport], of: impl Fn(&LinkReport) -> u64) -> u64 {
    links.iter().map(of).fold(0, u64::saturating_add)
}

fn links(facts: &mut Facts, report: &Report, common: &Common) {
    let section = Section::Links;
    let all = &report.links;
    facts.count(section, "all links: frames", "", Neither, sum(all, |link| link.frames));
    facts.count(section, "all links: data frames", "", Neither, sum(all, |link| link.data_frames));
    facts.count(section, "all links: forwarded frames", "", Neither, sum(all, |link| link.forwarded));
    facts.count(section, "all links: bytes", "B", Neither, sum(all, |link| link.bytes_on_wire));
    for link in all.iter().filter(|link| common.links.contains(&link.name)) {
        let name = |what: &str| format!("{}: {what}", link.name);
        facts.number(section, name("bytes"), "B", Neither, link.bytes_on_wire as f64);
        facts.number(section, name("frames"), "", Neither, link.frames as f64);
        facts.count(section, &name("retransmitted"), "", Lower, link.retransmitted);
        let dropped = link.dropped.iter().filter(|(reason, _)| *reason != INJECTED);
        let dropped = dropped.map(|(_, count)| *count).fold(0, u64::saturating_add);
        facts.count(section, &name("dropped"), "", Lower, dropped);
        let replayed = link.retry.get("tx_replay").copied().unwrap_or(0);
        facts.count(section, &name("replayed"), "", Lower, replayed);
    }
}

/// Adds what the time series say about single links. Neither more nor less is better: a faster run has greater rates and longer queues.
fn series(facts: &mut Facts, report: &Report, common: &Common) {
    let (Some(series), Some(interval_ns)) = (&report.series, common.interval_ns) else { return };
    for link in series.links.iter().filter(|link| common.links.contains(&link.name)) {
        let rates = over_time::rates(series, &link.bytes, interval_ns);
        let greatest = rates.iter().copied().fold(0.0, f64::max);
        let bytes = link.bytes.iter().copied().fold(0, u64::saturating_add);
        let mean = bytes as f64 * 1e9 / (f64::from(series.intervals.max(1)) * series.interval_ns as f64);
        for (what, rate) in [("greatest rate", greatest), ("mean rate", mean)] {
            let name = format!("{}: {what}", link.name);
            facts.count(Section::Links, &name, "B/s", Neither, rate.round() as u64);
        }
        let queued = link.queued.iter().copied().max().unwrap_or(0);
        facts.count(Section::Links, &format!("{}: most queued frames", link.name), "", Neither, queued);
    }
}

/// Returns the rank of a state: 0 if the member has done its part.
const fn state_rank(state: MemberState) -> u8 {
    match state {
        MemberState::Finished | MemberState::Elsewhere => 0,
        MemberState::Running
        | MemberState::Unstarted
        | MemberState::Killed
        | MemberState::Exited
        | MemberState::Lost => 1,
    }
}

fn member(facts: &mut Facts, node: &NodeReport) {
    let section = Section::Nodes;
    let name = |what: &str| format!("{}: {what}", node.name);
    facts.ranked(section, name("state"), node.state.name(), state_rank(node.state));
    if let Some(memory) = &node.memory {
        let (reserved, used) = (memory.reserved_bytes.high as f64, memory.used_bytes.high as f64);
        facts.number(section, name("memory reserved at most"), "B", Lower, reserved);
        facts.number(section, name("memory used at most"), "B", Lower, used);
    }
    if let Some(paths) = &node.paths {
        for (path, count) in [("direct", paths.direct), ("in frames", paths.frames)] {
            let operations = count.operations as f64;
            facts.number(section, name(&format!("operations {path}")), "", Neither, operations);
        }
    }
    if let Some(late_ns) = node.timer_late_max_ns {
        facts.number(section, name("greatest lateness of a timer"), "ns", Neither, late_ns as f64);
    }
}

fn balance(facts: &mut Facts, report: &Report) {
    let section = Section::Balance;
    for phase in &report.balance {
        let name = |what: &str| format!("{}: {what}", phase.name);
        facts.number(section, name("imbalance"), "", Lower, phase.imbalance);
        if let Some(share) = phase.share_max {
            facts.number(section, name("greatest share of a rate"), "", Neither, share);
        }
        if let Some(share) = phase.share_mean {
            facts.number(section, name("mean share of a rate"), "", Neither, share);
        }
        if let Some(busiest) = &phase.busiest {
            facts.text(section, name("busiest direction"), busiest);
        }
    }
}

fn losses(facts: &mut Facts, report: &Report) {
    let section = Section::Losses;
    let links = &report.links;
    facts.count(section, "retransmitted packets", "", Lower, sum(links, |link| link.retransmitted));
    for link in links {
        for (reason, count) in &link.dropped {
            // A script or a profile decides about these, so fewer are not better.
            let direction = if reason == INJECTED { Neither } else { Lower };
            facts.count(section, &format!("dropped frames: {reason}"), "", direction, *count);
        }
        for (counter, what) in [("tx_replay", "replayed frames"), ("flushes", "flushes of link-level retry")]
        {
            facts.count(section, what, "", Lower, link.retry.get(counter).copied().unwrap_or(0));
        }
        for (counter, what, unit) in [("paused_ns", "time paused", "ns"), ("watchdog", "ignored pauses", "")]
        {
            facts.count(section, what, unit, Lower, link.pause.get(counter).copied().unwrap_or(0));
        }
        facts.count(section, "marked frames", "", Lower, link.marks.get("marked").copied().unwrap_or(0));
        for (effect, count) in &link.injected {
            facts.count(section, &format!("injected faults: {effect}"), "", Neither, *count);
        }
        for (name, count) in link.rare_counters() {
            facts.count(section, &name.replace('_', " "), "", Lower, count);
        }
    }
    let kinds = report.events.iter().map(|event| (event.kind.as_str(), 1));
    let omitted = report.events_omitted.iter().map(|(kind, count)| (kind.as_str(), *count));
    for (kind, count) in kinds.chain(omitted) {
        let direction = if NEUTRAL_EVENTS.contains(&kind) { Neither } else { Lower };
        facts.count(section, &format!("events: {kind}"), "", direction, count);
    }
}
