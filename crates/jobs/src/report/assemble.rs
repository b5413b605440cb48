//! The report of a run: what every member said, joined under the names of the plan, with a verdict.
//!
//! The verdict is `pass` only if every endpoint finished and its job went through without a finding. Everything
//! that speaks against it is listed in `failures`, in words. Nothing here is measured: a report is a function of what the
//! members handed in, so the same members give the same report.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::events::EventRecord;
use super::faults::FaultReport;
use super::is_zero;
use super::member::{HostShortage, MemberReport, MemberState, PathReport, PortReport};
use super::memory::MemoryReport;
use super::meta::Meta;
use super::sweep::{self, SweepRow};
use super::traffic::TrafficReport;
use crate::measure::{KindMeasurement, Measurements, OperationKind, OperationPath};
use crate::oracle::{Oracle, Verdicts};

/// A note that concerns many members names so many of them.
const NAMES_LISTED: usize = 8;

/// Whether the run did what it was asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Everything was right.
    Pass,
    /// Something was not; the report's `failures` say what.
    Fail,
    /// Nothing was found wrong, and something that had to be looked at could not be.
    #[serde(rename = "could-not-tell")]
    CouldNotTell,
    /// The host had no processor for the rack's members when their timers needed one, and nothing but that went wrong.
    Starved,
}

impl Verdict {
    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::CouldNotTell => "could-not-tell",
            Self::Starved => "starved",
        }
    }
}

/// By what a run can be repeated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Manifest {
    /// Version of the product.
    pub version: String,
    /// Commit it was built from, if known.
    pub commit: String,
    /// Hash of the plan.
    pub config_hash: String,
}

/// A member as the plan states it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberSeat {
    /// Its name.
    pub name: String,
    /// Whether a job runs on it (an endpoint), or not (a switch).
    pub has_job: bool,
}

/// What the engine and the plan add to the members' reports.
#[derive(Clone, Debug, Default)]
pub struct Context {
    /// All members, by node number.
    pub members: Vec<MemberSeat>,
    /// The two ends of every link (node numbers), by edge number; the first end is `a`.
    pub links: Vec<(u16, u16)>,
    /// `wall` or `virtual`.
    pub clock: String,
    /// The seed of the run.
    pub seed: u64,
    /// Hash over everything that happened, in virtual time.
    pub trace_hash: Option<String>,
    /// Duration of the run.
    pub elapsed_ns: u64,
    /// By what the run can be repeated.
    pub manifest: Manifest,
    /// Name of the wire.
    pub wire: String,
    /// Name of the job.
    pub job: String,
    /// Failures that the engine itself found (a watchdog that ended the run, a leftover process).
    pub failures: Vec<String>,
    /// Events of the engine itself (faults that it injected, members that it killed).
    pub events: Vec<EventRecord>,
}

/// What passed over all links, counted twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WireBytes {
    /// Bytes really on the wire: checks, padding, preambles and gaps included.
    pub sent: u64,
    /// The same with the headers that the links' profiles name.
    pub accounted: u64,
}

/// One member's row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeReport {
    /// Its name.
    pub name: String,
    /// Its process; `None` in virtual time.
    pub pid: Option<u32>,
    /// How its life went.
    pub state: MemberState,
    /// Who carried its operations; only where GPU nodes of one server could have shared memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paths: Option<PathReport>,
    /// How its memory was held and used; only where memory is real.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryReport>,
    /// Operations and peers that it waited for when the run ended before its job.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<String>,
    /// How late one of its timers was served at the most: the slack of its host's scheduler. Nothing in virtual time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timer_late_max_ns: Option<u64>,
    /// Processor time that it and its neighbours waited for. Zero in virtual time.
    #[serde(default, skip_serializing_if = "HostShortage::is_none")]
    pub shortage: HostShortage,
}

/// Latency of one kind of operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LatencySummary {
    /// Half of the operations took at most this long.
    pub p50: u64,
    /// 99 of 100 took at most this long.
    pub p99: u64,
    /// The longest.
    pub max: u64,
}

/// One kind of operation, all ranks together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OperationReport {
    /// Which kind.
    pub kind: OperationKind,
    /// Which path carried them; `None` for kinds that concern only their own side, such as waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<OperationPath>,
    /// Operations that ended, well or badly.
    pub count: u64,
    /// Of those: badly.
    pub errors: u64,
    /// The errors by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub errors_by_name: BTreeMap<String, u64>,
    /// From the first attempt to the kind's completion level, successes only.
    pub latency_ns: LatencySummary,
    /// Bytes of all ranks, per second of the longest time that any one rank had such operations under way.
    pub goodput_bytes_per_s: u64,
}

/// One direction of one link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LinkReport {
    /// `n0->n1`; a second link between the same two is `n0->n1#1`, as the plan calls it `n0--n1#1`.
    pub name: String,
    /// Frames that the sending end handed to its device. If that end died with its counters: frames that the other end took.
    pub frames: u64,
    /// Bytes of those frames, Ethernet header included, without preamble and gap.
    pub bytes_on_wire: u64,
    /// Of the frames: data frames, which carry operations. Zero if the sending end died with its counters.
    #[serde(default)]
    pub data_frames: u64,
    /// Of the frames: those that carry no operation (Hello, heartbeat, acknowledgement, credit, report, NACK).
    #[serde(default)]
    pub control_frames: u64,
    /// Of the data frames: those that the sending end forwarded for other members.
    #[serde(default)]
    pub forwarded: u64,
    /// Of the data frames: packets that the sending end, being their source, sent again.
    pub retransmitted: u64,
    /// Frames that the receiving end did not use, by reason; and under `injected` those that an injected fault took away on the
    /// link.
    pub dropped: BTreeMap<String, u64>,
    /// Credit counters of the sending end that no honest one can have, as the receiving end counted them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub credit_violations: u64,
    /// What link-level retry did for this direction, by counter; nothing where it is off. `tx_ok`, `tx_replay`, `replays`
    /// and the like are the sending end's, `rx_ok`, `rx_missing_seq` and the like the receiving end's.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub retry: BTreeMap<String, u64>,
    /// What pauses did to this direction, by counter; nothing where they are off. `tx_pause`, `tx_resume` and `held_bytes_max` are the
    /// receiving end's, which asks for them, the others the sending end's, which is paused.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pause: BTreeMap<String, u64>,
    /// Marks of congestion, by counter; nothing where none was seen. `marked` counts data frames that the sending end marked as they joined
    /// its queue for this link, `rx_marked` those that came so to the node at the receiving end, from whichever queue, and `rx_echo`
    /// the acknowledgements over this link, for the node at its end, which told of marks.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub marks: BTreeMap<String, u64>,
    /// What injected faults did to this direction, by what it was: `dropped`, `corrupted`, `duplicated`, `reordered`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub injected: BTreeMap<String, u64>,
}

/// The report of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// Pass or fail.
    pub verdict: Verdict,
    /// Why the verdict is fail; empty on pass.
    pub failures: Vec<String>,
    /// Of what members said: what no loss of a node or link explains.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wrong: Vec<String>,
    /// Of these: what memory that refuses what is right explains, if a fault script made it do so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
    /// Who did the job with whom, where ranks were lost and the others went on; each group once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<Vec<String>>,
    /// What the events of the fault script did, where the run had one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<FaultReport>,
    /// What must never happen, how often somebody looked, and what was found.
    #[serde(default, skip_serializing_if = "Verdicts::is_empty")]
    pub oracles: Verdicts,
    /// `wall` or `virtual`: what every time in this report was measured with.
    pub clock: String,
    /// The seed of the run.
    pub seed: u64,
    /// Hash over everything that happened; virtual time only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_hash: Option<String>,
    /// Name of the wire.
    pub wire: String,
    /// Bytes on all links; virtual time only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire_bytes: Option<WireBytes>,
    /// Name of the job.
    pub job: String,
    /// Members in the order of the plan.
    pub nodes: Vec<NodeReport>,
    /// Kinds of operation that occurred.
    pub operations: Vec<OperationReport>,
    /// One entry per link *direction*, links in the order of the plan.
    pub links: Vec<LinkReport>,
    /// What happened, by time.
    pub events: Vec<EventRecord>,
    /// Events beyond those listed, by kind.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub events_omitted: BTreeMap<String, u64>,
    /// Bytes that their owners or readers compared with what they must be, and found right.
    pub verified_bytes: u64,
    /// What a reader should know, and what is no failure; what several members say is said once. Always there.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Completion, goodput and fairness, where the job is a pattern of traffic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic: Option<TrafficReport>,
    /// Times and bandwidths by size, all ranks together, where the job sweeps over sizes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sweep: Vec<SweepRow>,
    /// Duration of the run.
    pub elapsed_ns: u64,
    /// By what the run can be repeated.
    pub manifest: Manifest,
    /// Command, options, date, host and versions. Two equal runs differ here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl Report {
    /// Join what the members said. A member of the plan without a report counts as lost.
    #[must_use]
    pub fn assemble(context: Context, members: &[MemberReport]) -> Self {
        let by_name: HashMap<&str, &MemberReport> =
            members.iter().map(|member| (member.name.as_str(), member)).collect();
        let seats: Vec<_> =
            context.members.iter().map(|seat| (seat, by_name.get(seat.name.as_str()).copied())).collect();

        let jobs: Vec<_> = members.iter().filter_map(|member| member.job.as_ref()).collect();
        let mut failures = context.failures.clone();
        let wrong = seats.iter().flat_map(|(seat, member)| wrongs_of(seat, *member)).collect();
        let mut measurements = Measurements::default();
        let mut events = context.events.clone();
        let mut events_omitted = BTreeMap::<String, u64>::new();
        for (seat, member) in &seats {
            failures.extend(failures_of(seat, *member));
            let Some(member) = member else { continue };
            if let Some(job) = &member.job {
                measurements.merge(&job.operations);
            }
            events.extend(member.events.records.iter().cloned());
            for (kind, count) in &member.events.omitted {
                *events_omitted.entry(kind.clone()).or_default() += count;
            }
        }
        events.sort_by_key(|record| record.at_ns);

        Self {
            verdict: if failures.is_empty() { Verdict::Pass } else { Verdict::Fail },
            failures,
            wrong,
            refused: seats.iter().flat_map(|(seat, member)| refusals_of(seat, *member)).collect(),
            groups: groups(&seats),
            faults: Vec::new(),
            oracles: oracles(&seats),
            clock: context.clock.clone(),
            seed: context.seed,
            trace_hash: context.trace_hash.clone(),
            wire: context.wire.clone(),
            wire_bytes: None,
            job: context.job.clone(),
            nodes: seats.iter().map(|(seat, member)| node_report(seat, *member)).collect(),
            operations: measurements
                .iter()
                .map(|(kind, path, measured)| operation_report(kind, path, measured))
                .collect(),
            links: link_reports(&context, &by_name),
            events,
            events_omitted,
            verified_bytes: jobs.iter().map(|job| job.verified_bytes).sum(),
            notes: notes(members),
            traffic: TrafficReport::of(jobs.iter().filter_map(|job| job.traffic.as_ref())),
            sweep: sweep::merge(jobs.iter().map(|job| job.sweep.as_slice())),
            elapsed_ns: context.elapsed_ns,
            manifest: context.manifest,
            meta: None,
        }
    }

    /// Add what the engine itself has watched. What was broken fails the run, and no loss excuses it.
    pub fn add_oracles(&mut self, verdicts: &Verdicts) {
        self.oracles.merge(verdicts);
        let failures = verdicts.failures();
        if !failures.is_empty() {
            self.verdict = Verdict::Fail;
            self.wrong.extend(failures.iter().cloned());
            self.failures.extend(failures);
        }
    }
}

/// The groups of those who have done the job to its end without the others, in the order of the plan.
fn groups(seats: &[(&MemberSeat, Option<&MemberReport>)]) -> Vec<Vec<String>> {
    let jobs = seats.iter().filter_map(|(_, member)| member.and_then(|member| member.job.as_ref()));
    let mut groups: Vec<Vec<String>> = Vec::new();
    for job in jobs.filter(|job| job.complete && !job.group.is_empty()) {
        if !groups.contains(&job.group) {
            groups.push(job.group.clone());
        }
    }
    groups
}

/// What ranks have watched, what their owners found in their own memory, and whether the order held that each member looks after.
fn oracles(seats: &[(&MemberSeat, Option<&MemberReport>)]) -> Verdicts {
    let mut verdicts = Verdicts::default();
    for (seat, member) in seats {
        let Some((member, job)) = member.and_then(|member| Some((member, member.job.as_ref()?))) else {
            continue;
        };
        let name = &seat.name;
        verdicts.merge(&job.oracles);
        if job.verified_bytes > 0 || job.mismatch_count > 0 {
            let what = || format!("{name} found {} wrong bytes or words in its memory", job.mismatch_count);
            verdicts.judge(Oracle::Shadow, job.mismatch_count == 0, what);
        }
        let broken = member.events.broken_promise();
        verdicts.judge(Oracle::Order, broken.is_none(), || format!("{name}: {}", broken.unwrap_or_default()));
    }
    verdicts
}

fn node_report(seat: &MemberSeat, member: Option<&MemberReport>) -> NodeReport {
    let job = member.and_then(|member| member.job.as_ref());
    NodeReport {
        name: seat.name.clone(),
        pid: member.and_then(|member| member.pid),
        state: member.map_or(MemberState::Lost, |member| member.state),
        paths: job.and_then(|job| job.paths),
        memory: job.and_then(|job| job.memory.clone()),
        waiting: member.map(|member| member.waiting.clone()).unwrap_or_default(),
        timer_late_max_ns: member.map(|member| member.timer_late_max_ns).filter(|late_ns| *late_ns > 0),
        shortage: member.map(|member| member.shortage).unwrap_or_default(),
    }
}

/// What members note, each thing once, and who holds memory otherwise than the file wishes.
fn notes(members: &[MemberReport]) -> Vec<String> {
    let jobs = || members.iter().filter_map(|member| Some((member.name.as_str(), member.job.as_ref()?)));
    let said: BTreeSet<_> = jobs().flat_map(|(_, job)| job.notes.iter().cloned()).collect();
    let mut ungranted = BTreeMap::<&str, Vec<&str>>::new();
    for (name, job) in jobs() {
        for why in job.memory.iter().flat_map(|memory| &memory.ungranted) {
            ungranted.entry(why).or_default().push(name);
        }
    }
    let memory = ungranted.into_iter().map(|(why, names)| format!("memory of {}: {why}", listed(&names)));
    said.into_iter().chain(memory).collect()
}

/// The first names, and how many there are beyond.
fn listed(names: &[&str]) -> String {
    let (first, beyond) = names.split_at(names.len().min(NAMES_LISTED));
    let more = if beyond.is_empty() { String::new() } else { format!(" and {} more", beyond.len()) };
    format!("{}{more}", first.join(", "))
}

fn operation_report(
    kind: OperationKind,
    path: Option<OperationPath>,
    measured: &KindMeasurement,
) -> OperationReport {
    let latency = &measured.latency;
    OperationReport {
        kind,
        path,
        count: measured.count,
        errors: measured.error_count(),
        errors_by_name: measured.errors.clone(),
        latency_ns: LatencySummary {
            p50: latency.quantile_ns(0.5),
            p99: latency.quantile_ns(0.99),
            max: latency.max_ns(),
        },
        goodput_bytes_per_s: measured.goodput_bytes_per_s(),
    }
}

/// What no death and no cut explains: broken promises, wrong bytes, errors of another kind than a loss.
fn wrongs_of(seat: &MemberSeat, member: Option<&MemberReport>) -> Vec<String> {
    let Some(member) = member else { return Vec::new() };
    let name = &seat.name;
    let promise = member.events.broken_promise().map(|what| format!("{name}: {what}"));
    let job = member.job.iter();
    let of_job = job.flat_map(|job| {
        let mismatches = job.mismatch_count;
        let bytes = (mismatches > 0).then(|| format!("{name}: {mismatches} mismatches"));
        let lines = job.refusals.iter().chain(&job.failures).cloned().chain(job.oracles.failures());
        bytes.into_iter().chain(lines.map(|line| format!("{name}: {line}")))
    });
    promise.into_iter().chain(of_job).collect()
}

fn refusals_of(seat: &MemberSeat, member: Option<&MemberReport>) -> Vec<String> {
    let lines = member.and_then(|member| member.job.as_ref()).map(|job| &job.refusals);
    lines.into_iter().flatten().map(|line| format!("{}: {line}", seat.name)).collect()
}

/// Everything about one member that speaks against a pass.
fn failures_of(seat: &MemberSeat, member: Option<&MemberReport>) -> Vec<String> {
    let name = &seat.name;
    let Some(member) = member else { return vec![format!("{name}: no report came")] };
    if member.state == MemberState::Elsewhere {
        return Vec::new();
    }
    let mut failures: Vec<_> =
        member.events.broken_promise().map(|what| format!("{name}: {what}")).into_iter().collect();
    // A dead switch is an event, not a failure: whether the job survived it is what its endpoints say.
    if member.state != MemberState::Finished && seat.has_job {
        failures.push(match member.state {
            MemberState::Running => {
                let by = if member.pid.is_some() { "the supervisor" } else { "the engine" };
                format!("{name}: {by} ended the run before its job had ended")
            }
            state => format!("{name}: {}", state.name()),
        });
        failures.extend(member.waiting.iter().map(|line| format!("{name} waits: {line}")));
    }
    match &member.job {
        Some(job) => {
            if !job.lost_nodes.is_empty() {
                failures.push(format!("{name}: lost nodes [{}]", job.lost_nodes.join(", ")));
            }
            for mismatch in &job.mismatches {
                failures.push(format!(
                    "{name}: region{} offset {}: expected {:#04x}, found {:#04x} ({})",
                    mismatch.region, mismatch.offset, mismatch.expected, mismatch.found, mismatch.place
                ));
            }
            let unlisted = job.mismatch_count.saturating_sub(job.mismatches.len() as u64);
            if unlisted > 0 {
                failures.push(format!("{name}: {unlisted} more mismatches"));
            }
            let lines = job.excused.iter().chain(&job.refusals).chain(&job.failures).cloned();
            failures.extend(lines.chain(job.oracles.failures()).map(|line| format!("{name}: {line}")));
            if job.failures_omitted > 0 {
                failures.push(format!("{name}: {} more failures", job.failures_omitted));
            }
            if !job.complete && failures.is_empty() {
                failures.push(format!("{name}: its job did not get to the end"));
            }
        }
        None if seat.has_job && failures.is_empty() => failures.push(format!("{name}: no result of its job")),
        None => {}
    }
    failures
}

fn link_reports(context: &Context, by_name: &HashMap<&str, &MemberReport>) -> Vec<LinkReport> {
    let names: Vec<_> = context.members.iter().map(|seat| seat.name.as_str()).collect();
    let ports = |node: u16| {
        let name = names.get(usize::from(node))?;
        by_name.get(name).map(|member| member.ports.as_slice())
    };
    links_of(&names, &context.links, ports)
}

/// Counters of both directions of every link, in the order of the plan.
///
/// `names`: of the members. `links`: both ends of each link, as positions in `names`. `ports`: the counters of a member's ports;
/// `None` if they are not known.
pub fn links_of<'a>(
    names: &[&str],
    links: &[(u16, u16)],
    ports: impl Fn(u16) -> Option<&'a [PortReport]>,
) -> Vec<LinkReport> {
    let name = |node: u16| names.get(usize::from(node)).copied().unwrap_or("?");
    let port = |node: u16, edge: usize| ports(node)?.iter().find(|port| usize::from(port.edge) == edge);
    let mut times_named = HashMap::<(u16, u16), u32>::new();
    let mut reports = Vec::with_capacity(links.len() * 2);
    for (edge, &(a, b)) in links.iter().enumerate() {
        let times = times_named.entry((a.min(b), a.max(b))).or_default();
        let suffix = if *times > 0 { format!("#{times}") } else { String::new() };
        *times += 1;
        for (from, to) in [(a, b), (b, a)] {
            let name = format!("{}->{}{suffix}", name(from), name(to));
            reports.push(link_report(name, port(from, edge), port(to, edge)));
        }
    }
    reports
}

fn link_report(name: String, sender: Option<&PortReport>, receiver: Option<&PortReport>) -> LinkReport {
    let (frames, bytes_on_wire) = match (sender, receiver) {
        (Some(sender), _) => (sender.frames_sent, sender.bytes_sent),
        (None, Some(receiver)) => (receiver.frames_received, receiver.bytes_received),
        (None, None) => (0, 0),
    };
    let injected = sender.map(|sender| sender.injected.clone()).unwrap_or_default();
    let mut dropped = receiver.map(|receiver| receiver.dropped.clone()).unwrap_or_default();
    dropped.extend(injected.get("dropped").map(|count| ("injected".to_owned(), *count)));
    LinkReport {
        name,
        frames,
        bytes_on_wire,
        data_frames: sender.map_or(0, |sender| sender.data_frames_sent),
        control_frames: sender.map_or(0, |sender| sender.frames_sent.saturating_sub(sender.data_frames_sent)),
        forwarded: sender.map_or(0, |sender| sender.forwarded),
        retransmitted: sender.map_or(0, |sender| sender.retransmitted),
        dropped,
        credit_violations: receiver.map_or(0, |receiver| receiver.credit_violations),
        retry: of_ends(sender, receiver, |port| &port.retry, RETRY_OF_RECEIVER),
        pause: of_ends(sender, receiver, |port| &port.pause, &["tx_pause", "tx_resume", "held_bytes_max"]),
        marks: of_ends(sender, receiver, |port| &port.marks, &["rx_marked", "rx_echo"]),
        injected,
    }
}

/// Acknowledgements and refusals travel against the frames that they are about.
const RETRY_OF_RECEIVER: &[&str] = &["rx_ok", "rx_missing_seq", "rx_duplicate_seq", "tx_ack", "tx_nack"];

/// Of a port's counters some speak of what it sends and some of what it receives: those with these names are the receiving end's, all
/// others the sending end's.
fn of_ends(
    sender: Option<&PortReport>,
    receiver: Option<&PortReport>,
    counters: impl Fn(&PortReport) -> &BTreeMap<String, u64>,
    of_receiver: &[&str],
) -> BTreeMap<String, u64> {
    let of = |port: Option<&PortReport>, is_receiver: bool| {
        let counters = port.map(|port| counters(port).clone()).unwrap_or_default();
        counters.into_iter().filter(move |(name, _)| of_receiver.contains(&name.as_str()) == is_receiver)
    };
    of(sender, false).chain(of(receiver, true)).collect()
}

#[cfg(test)]
#[path = "assemble_tests.rs"]
mod tests;
