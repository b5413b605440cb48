//! Report of a run: the members' reports, joined under the names of the plan, with a verdict.
//!
//! The verdict is `pass` only if every endpoint finished and its job completed without a finding. `failures` lists
//! every reason against a pass as text. This module measures nothing: a report is a function of the members' reports,
//! so equal reports of members give an equal report of the run.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use rackloom_protocol::link::counters::{CountingEnd, MarkCounters, PauseCounters, RetryCounters};
use rackloom_protocol::port_counters;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::balance::{PhaseBalance, balance, with_preambles};
use super::device::{DevicePart, NodeUse, device_use};
use super::events::EventRecord;
use super::fault_report::FaultReport;
use super::gpu::{GpuPart, GpuUse, gpu_use};
use super::member::{HostShortage, JobResult, MemberReport, MemberState, PathReport, PortReport};
use super::memory::MemoryReport;
use super::meta::Meta;
use super::series::{Direction, Series};
use super::spans::{OperationSpan, PhaseSpan};
use super::sweep::{self, SweepRow};
use super::topology::{Topology, direction_names};
use super::traffic::TrafficReport;
use super::workload::WorkloadReport;
use crate::measure::{KindOnPath, Measurements, OperationKind, OperationPath};
use crate::oracle::{Oracle, Verdicts};
use crate::zero::is_zero;

/// Maximum number of names in a note that concerns many members.
const NAMES_LISTED: usize = 8;

/// Verdict on a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Every check passed.
    Pass,
    /// A check failed. The report's `failures` give the reasons.
    Fail,
    /// No check failed, but a required check could not be made.
    #[serde(rename = "could-not-tell")]
    CouldNotTell,
    /// The host gave the rack's members too little processor time for their timers, and no other check failed.
    Starved,
}

impl Verdict {
    /// Returns the verdict's name in reports.
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

/// Data with which a run can be repeated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Manifest {
    /// Version of the product.
    pub version: String,
    /// Commit that it was built from, if known.
    pub commit: String,
    /// Hash of the plan.
    pub config_hash: String,
}

/// A member of the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberSeat {
    /// Name of the member.
    pub name: String,
    /// True if a job runs on the member (an endpoint), false for a switch.
    pub has_job: bool,
}

/// Data that the engine and the plan add to the members' reports.
#[derive(Clone, Debug, Default)]
pub struct Context {
    /// All members, by node number.
    pub members: Vec<MemberSeat>,
    /// The two ends of every link (node numbers), by edge number. The first end is `a`.
    pub links: Vec<(u16, u16)>,
    /// `wall` or `virtual`.
    pub clock: String,
    /// The seed of the run.
    pub seed: u64,
    /// Hash over everything that happened, in virtual time.
    pub trace_hash: Option<String>,
    /// Duration of the run in nanoseconds.
    pub elapsed_ns: u64,
    /// Data with which the run can be repeated.
    pub manifest: Manifest,
    /// Name of the wire.
    pub wire: String,
    /// Name of the job.
    pub job: String,
    /// Failures that the engine itself found, such as a watchdog that ended the run, or a leftover process.
    pub failures: Vec<String>,
    /// Events of the engine itself, such as faults that it injected or members that it killed.
    pub events: Vec<EventRecord>,
    /// Topology of the rack, if it is known.
    pub topology: Option<Topology>,
}

/// Bytes sent over all links, counted in two ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WireBytes {
    /// Bytes sent on the wire, including checks, padding, preambles and gaps.
    pub sent: u64,
    /// Bytes of the same frames, counted with the headers that the links' profiles name.
    pub accounted: u64,
}

/// Report of one member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeReport {
    /// Name of the member.
    pub name: String,
    /// Process identifier of the member; `None` in virtual time.
    pub pid: Option<u32>,
    /// State of the member at the end of the run.
    pub state: MemberState,
    /// Operations by the path that carried them. Present only if GPU nodes of one server could have shared memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paths: Option<PathReport>,
    /// Use of the member's memory. Present only if memory is real.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryReport>,
    /// Operations and peers that the member waited for when the run ended before its job.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<String>,
    /// Greatest lateness of one of the member's timers, in nanoseconds: the slack of its host's scheduler. Absent in
    /// virtual time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timer_late_max_ns: Option<u64>,
    /// Processor time that the member and its neighbours waited for. Zero in virtual time.
    #[serde(default, skip_serializing_if = "HostShortage::is_none")]
    pub shortage: HostShortage,
}

/// Latency of one kind of operation, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LatencySummary {
    /// Median: half of the operations took at most this long.
    pub p50: u64,
    /// 99th percentile: 99 of 100 operations took at most this long.
    pub p99: u64,
    /// Longest latency.
    pub max: u64,
}

/// Measurements of one kind of operation, over all ranks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OperationReport {
    /// Kind of the operations.
    pub kind: OperationKind,
    /// Path that carried the operations; `None` for kinds that concern only their own node, such as waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<OperationPath>,
    /// Number of completed operations, successful or not.
    pub count: u64,
    /// Number of operations that failed.
    pub errors: u64,
    /// Number of failures, by the name of the error.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub errors_by_name: BTreeMap<String, u64>,
    /// Latency from the first attempt to the kind's completion level, of successful operations only.
    pub latency_ns: LatencySummary,
    /// Bytes of all ranks, per second of the longest time that any one rank had such operations outstanding.
    pub goodput_bytes_per_s: u64,
}

/// Declares [`LinkReport`] with the counters of every port that are rarely counted.
macro_rules! link_report {
    (
        always { $($(#[$always_doc:meta])+ $always:ident,)+ }
        if_counted { $($(#[$rare_doc:meta])+ $rare:ident: $end:ident,)+ }
    ) => {
        /// Counters of one direction of one link.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        pub struct LinkReport {
            /// Name of the direction, such as `n0->n1`. A second link between the same two members is `n0->n1#1`; the plan
            /// names it `n0--n1#1`.
            pub name: String,
            /// Frames that the sending end handed to its device. If the sending end was lost with its counters: frames that the
            /// other end received. If only one of its processes was lost with them: the greater of both numbers.
            pub frames: u64,
            /// Bytes of those frames, with the Ethernet header, without preamble and gap.
            pub bytes_on_wire: u64,
            /// Bytes of those frames that the rate of the link was charged for: with the headers of the link's profile, checks, padding,
            /// preambles and gaps. Virtual time only.
            #[serde(default, skip_serializing_if = "is_zero")]
            pub accounted_bytes: u64,
            /// Data frames among the frames. They carry operations. Zero if the sending end was lost with its counters.
            #[serde(default)]
            pub data_frames: u64,
            /// Control frames among the frames. They carry no operation (Hello, heartbeat, acknowledgement, credit, report,
            /// NACK).
            #[serde(default)]
            pub control_frames: u64,
            /// Data frames and acknowledgements among the frames that the sending end forwarded for other members.
            #[serde(default)]
            pub forwarded: u64,
            /// Data frames that are retransmitted packets of the sending end itself.
            pub retransmitted: u64,
            /// Frames that the receiving end dropped, by reason. `injected` counts the frames that an injected fault removed on
            /// the link.
            pub dropped: BTreeMap<String, u64>,
            $($(#[$rare_doc])+ #[serde(default, skip_serializing_if = "is_zero")] pub $rare: u64,)+
            /// Counters of link-level retry for this direction; empty if retry is off. `tx_ok`, `tx_replay`, `replays` and
            /// similar counters are the sending end's. `rx_ok`, `rx_missing_seq` and similar counters are the receiving end's.
            #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
            pub retry: BTreeMap<String, u64>,
            /// Counters of pauses of this direction; empty if pauses are off. `tx_pause`, `tx_resume` and `held_bytes_max` are
            /// counted by the receiving end, which requests pauses. The others are counted by the sending end, which is paused.
            #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
            pub pause: BTreeMap<String, u64>,
            /// Counters of congestion marks; empty if there were none. `marked` counts data frames that the sending end marked
            /// when they joined its queue for this link. `rx_marked` counts marked data frames, from any queue, for the node at
            /// the receiving end. `rx_echo` counts the acknowledgements over this link, for the node at its end, that reported
            /// marks.
            #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
            pub marks: BTreeMap<String, u64>,
            /// Frames of this direction that injected faults changed, by effect: `dropped`, `corrupted`, `duplicated`,
            /// `reordered`.
            #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
            pub injected: BTreeMap<String, u64>,
        }

        impl LinkReport {
            /// Returns the report of the direction from `sender` to `receiver`. An end that was lost with its counters is `None`.
            fn between(name: String, sender: Option<&PortReport>, receiver: Option<&PortReport>) -> Self {
                let (frames, bytes_on_wire) = match (sender, receiver) {
                    (Some(sender), Some(receiver)) if sender.is_partial => (
                        sender.frames_sent.max(receiver.frames_received),
                        sender.bytes_sent.max(receiver.bytes_received),
                    ),
                    (Some(sender), _) => (sender.frames_sent, sender.bytes_sent),
                    (None, Some(receiver)) => (receiver.frames_received, receiver.bytes_received),
                    (None, None) => (0, 0),
                };
                let injected = sender.map(|sender| sender.injected.clone()).unwrap_or_default();
                let mut dropped = receiver.map(|receiver| receiver.dropped.clone()).unwrap_or_default();
                dropped.extend(injected.get("dropped").map(|count| ("injected".to_owned(), *count)));
                Self {
                    name,
                    frames,
                    bytes_on_wire,
                    accounted_bytes: sender.map_or(0, |sender| sender.accounted_bytes),
                    data_frames: sender.map_or(0, |sender| sender.data_frames_sent),
                    control_frames: sender.map_or(0, |sender| sender.frames_sent.saturating_sub(sender.data_frames_sent)),
                    forwarded: sender.map_or(0, |sender| sender.forwarded),
                    retransmitted: sender.map_or(0, |sender| sender.retransmitted),
                    dropped,
                    $($rare: CountingEnd::$end.of(sender, receiver).map_or(0, |port| port.$rare),)+
                    retry: of_ends(sender, receiver, |port| &port.retry, RetryCounters::ENDS),
                    pause: of_ends(sender, receiver, |port| &port.pause, PauseCounters::ENDS),
                    marks: of_ends(sender, receiver, |port| &port.marks, MarkCounters::ENDS),
                    injected,
                }
            }

            /// Returns the bytes that the direction sent, with preambles and gaps.
            #[must_use]
            pub fn wire_bytes(&self) -> u64 {
                with_preambles(self.bytes_on_wire, self.frames)
            }

            /// Returns the bytes that count against the rate of the link: accounted bytes in virtual time, bytes with preambles and gaps in
            /// processes.
            #[must_use]
            pub fn load_bytes(&self) -> u64 {
                if self.accounted_bytes > 0 { self.accounted_bytes } else { self.wire_bytes() }
            }

            /// Returns the counters that are rarely counted, by name, if they are not zero.
            pub fn rare_counters(&self) -> impl Iterator<Item = (&'static str, u64)> {
                let all = [$((stringify!($rare), self.$rare),)+];
                all.into_iter().filter(|(_, count)| *count > 0)
            }
        }
    };
}

port_counters!(link_report);

/// Report of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// Verdict on the run.
    pub verdict: Verdict,
    /// Reasons for the verdict; empty on pass.
    pub failures: Vec<String>,
    /// Failures reported by members that no loss of a node or link explains.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wrong: Vec<String>,
    /// Failures among `wrong` that are refusals by memory. A fault script may explain them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
    /// Groups of ranks that completed the job together, if ranks were lost and the others went on. Each group is listed
    /// once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<Vec<String>>,
    /// Effects of the fault script's events, if the run had a script.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<FaultReport>,
    /// Checks of the oracles: properties that must always hold, the number of checks, and the violations.
    #[serde(default, skip_serializing_if = "Verdicts::is_empty")]
    pub oracles: Verdicts,
    /// Clock of every time in this report: `wall` or `virtual`.
    pub clock: String,
    /// The seed of the run.
    pub seed: u64,
    /// Hash over everything that happened. Virtual time only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_hash: Option<String>,
    /// Name of the wire.
    pub wire: String,
    /// Bytes on all links. Virtual time only.
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
    /// Events, ordered by time.
    pub events: Vec<EventRecord>,
    /// Number of events that are not listed, by kind.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub events_omitted: BTreeMap<String, u64>,
    /// Bytes that their owners or readers compared with the expected data and found right.
    pub verified_bytes: u64,
    /// Notes that are not failures. A note of several members is listed once. Always present.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Completion time, goodput and fairness, if the job is a traffic pattern.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic: Option<TrafficReport>,
    /// Iteration time, exposed communication, phases and use of links, if the job is a workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<WorkloadReport>,
    /// Times and bandwidths by size, over all ranks, if the job sweeps over sizes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sweep: Vec<SweepRow>,
    /// Balance of the load over the links: of the whole run first, then of each phase of the job.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub balance: Vec<PhaseBalance>,
    /// Use of the GPUs: parts of the device model, and computations of a workload.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub device_use: Vec<DevicePart>,
    /// Use of the real GPUs that hold memory of nodes, as their driver reports it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpu_use: Vec<GpuUse>,
    /// Phases of the job, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<PhaseSpan>,
    /// Single operations, if the run recorded them. They are not written with the report.
    #[serde(skip)]
    pub spans: Vec<OperationSpan>,
    /// Time series of links and nodes, if the run recorded them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<Series>,
    /// Topology of the rack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<Topology>,
    /// Duration of the run in nanoseconds.
    pub elapsed_ns: u64,
    /// Data with which the run can be repeated.
    pub manifest: Manifest,
    /// Command, options, date, host and versions. Two otherwise equal runs differ here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// Adds counts by kind.
fn add_counts<'a>(sums: &mut BTreeMap<String, u64>, counts: impl IntoIterator<Item = (&'a str, u64)>) {
    for (kind, count) in counts {
        *sums.entry(kind.to_owned()).or_default() += count;
    }
}

impl Report {
    /// Adds numbers of events that no member's report lists, by kind.
    pub fn add_omitted_events<'a>(&mut self, counts: impl IntoIterator<Item = (&'a str, u64)>) {
        add_counts(&mut self.events_omitted, counts);
    }

    /// Joins the members' reports. A member of the plan without a report counts as lost.
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
            let counts = member.events.omitted.iter().map(|(kind, count)| (kind.as_str(), *count));
            add_counts(&mut events_omitted, counts);
        }
        events.sort_by_key(|record| record.at_ns);
        let directions = directions(&context);
        let links = link_reports(&directions, &by_name);
        let of_jobs: Vec<Vec<PhaseSpan>> = jobs.iter().map(|job| phases_of(job)).collect();
        let phases = PhaseSpan::join(of_jobs.iter().map(Vec::as_slice));
        let mut series = Series::join(members, &directions);
        if let Some(series) = &mut series {
            let switches: HashSet<_> =
                context.members.iter().filter(|seat| !seat.has_job).map(|seat| seat.name.as_str()).collect();
            series.mark_switches(|name| switches.contains(name));
        }
        let bytes_of_phases =
            series.as_ref().map(|series| series.bytes_of_phases(&phases, &directions)).unwrap_or_default();

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
            operations: measurements.iter().map(operation_report).collect(),
            events,
            events_omitted,
            verified_bytes: jobs.iter().map(|job| job.verified_bytes).sum(),
            notes: notes(members),
            traffic: TrafficReport::of(jobs.iter().filter_map(|job| job.traffic.as_ref())),
            workload: WorkloadReport::of(
                members.iter().filter_map(|member| {
                    Some((member.name.as_str(), member.job.as_ref()?.workload.as_ref()?))
                }),
            ),
            sweep: sweep::merge(jobs.iter().map(|job| job.sweep.as_slice())),
            balance: balance(&links, context.topology.as_ref(), context.elapsed_ns, bytes_of_phases),
            device_use: device_use(&uses_of_devices(&seats), context.elapsed_ns),
            gpu_use: gpu_use(samples_of_gpus(&seats)),
            links,
            phases,
            series,
            spans: spans(members),
            topology: context.topology,
            elapsed_ns: context.elapsed_ns,
            manifest: context.manifest,
            meta: None,
        }
    }

    /// Adds the checks of the engine's own oracles. A violation fails the run, also after a loss.
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

/// Returns the groups of ranks that completed the job without the others, in the order of the plan.
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

/// Returns the oracles' checks: those of the ranks, those of owners on their own memory, and the order that each member
/// checks.
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

fn uses_of_devices<'a>(seats: &[(&'a MemberSeat, Option<&MemberReport>)]) -> Vec<NodeUse<'a>> {
    let of = |(seat, member): &(&'a MemberSeat, Option<&MemberReport>)| {
        let job = member.and_then(|member| member.job.as_ref());
        NodeUse {
            name: &seat.name,
            device: job.and_then(|job| job.device),
            compute_ns: job.and_then(|job| job.workload.as_ref()).map(|part| part.compute_ns),
        }
    };
    seats.iter().map(of).collect()
}

/// Returns the samples of each node's GPU, in the order of the plan.
fn samples_of_gpus<'a>(
    seats: &'a [(&MemberSeat, Option<&MemberReport>)],
) -> impl Iterator<Item = (&'a str, &'a GpuPart)> {
    let of = |(seat, member): &'a (&MemberSeat, Option<&MemberReport>)| {
        Some((seat.name.as_str(), member.as_ref()?.job.as_ref()?.gpu.as_ref()?))
    };
    seats.iter().filter_map(of)
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

/// Returns the members' notes, each once, and the members whose memory is not held as the rack file requests.
fn notes(members: &[MemberReport]) -> Vec<String> {
    let jobs = || members.iter().filter_map(|member| Some((member.name.as_str(), member.job.as_ref()?)));
    let said: BTreeSet<_> = jobs().flat_map(|(_, job)| job.notes.iter().cloned()).collect();
    let mut ungranted = BTreeMap::<&str, Vec<&str>>::new();
    for (name, job) in jobs() {
        for reason in job.memory.iter().flat_map(|memory| &memory.ungranted) {
            ungranted.entry(reason).or_default().push(name);
        }
    }
    let memory =
        ungranted.into_iter().map(|(reason, names)| format!("memory of {}: {reason}", listed(&names)));
    said.into_iter().chain(memory).collect()
}

/// Returns the first names, and the number of further ones.
fn listed(names: &[&str]) -> String {
    let (first, beyond) = names.split_at(names.len().min(NAMES_LISTED));
    let more = if beyond.is_empty() { String::new() } else { format!(" and {} more", beyond.len()) };
    format!("{}{more}", first.join(", "))
}

fn operation_report(measurement: KindOnPath<'_>) -> OperationReport {
    let KindOnPath { kind, path, measured } = measurement;
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

/// Returns the failures of a member that no loss of a node or link explains: broken guarantees, wrong bytes, errors
/// other than a loss.
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

/// Returns all reasons against a pass that concern one member.
fn failures_of(seat: &MemberSeat, member: Option<&MemberReport>) -> Vec<String> {
    let name = &seat.name;
    let Some(member) = member else { return vec![format!("{name}: no report came")] };
    if member.state == MemberState::Elsewhere {
        return Vec::new();
    }
    let mut failures: Vec<_> =
        member.events.broken_promise().map(|what| format!("{name}: {what}")).into_iter().collect();
    // The loss of a switch is an event, not a failure. The reports of the endpoints show whether the job survived it.
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
                    mismatch.region, mismatch.offset, mismatch.expected, mismatch.found, mismatch.location
                ));
            }
            let unlisted = job.mismatch_count.saturating_sub(job.mismatches.len() as u64);
            if unlisted > 0 {
                failures.push(format!("{name}: {unlisted} more mismatches"));
            }
            let lines = job.clean_errors.iter().chain(&job.refusals).chain(&job.failures).cloned();
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

/// Returns both directions of every link, in the order of the plan.
fn directions(context: &Context) -> Vec<Direction> {
    let names: Vec<&str> = context.members.iter().map(|seat| seat.name.as_str()).collect();
    let name = |node: u16| names.get(usize::from(node)).copied().unwrap_or("?").to_owned();
    let of_link = |(edge, (&(a, b), [forward, backward])): (usize, (&(u16, u16), [String; 2]))| {
        let edge = edge as u16;
        [
            Direction { name: forward, sender: name(a), receiver: name(b), edge },
            Direction { name: backward, sender: name(b), receiver: name(a), edge },
        ]
    };
    let named = direction_names(&names, context.links.iter().copied());
    context.links.iter().zip(named).enumerate().flat_map(of_link).collect()
}

/// Returns the reports of all directions.
fn link_reports(directions: &[Direction], by_name: &HashMap<&str, &MemberReport>) -> Vec<LinkReport> {
    let port = |member: &str, edge: u16| {
        let member = by_name.get(member)?;
        member.ports.iter().find(|port| port.edge == edge)
    };
    let of = |direction: &Direction| {
        let (sender, receiver) =
            (port(&direction.sender, direction.edge), port(&direction.receiver, direction.edge));
        LinkReport::between(direction.name.clone(), sender, receiver)
    };
    directions.iter().map(of).collect()
}

/// Returns the phases of one rank's job, or of its workload.
fn phases_of(job: &JobResult) -> Vec<PhaseSpan> {
    let of_workload = job.workload.iter().flat_map(|workload| &workload.phases);
    let spans = of_workload.filter_map(|phase| {
        let (began_ns, ended_ns) = (phase.began_ns?, phase.ended_ns?);
        Some(PhaseSpan { name: phase.name.clone(), began_ns, ended_ns })
    });
    job.phases.iter().cloned().chain(spans).collect()
}

/// Returns the single operations of all nodes, in the order of their begin.
fn spans(members: &[MemberReport]) -> Vec<OperationSpan> {
    let of = |member: &MemberReport| {
        let spans = member.job.as_ref().map(|job| job.spans.clone()).unwrap_or_default();
        spans.into_iter().map(|span| OperationSpan { node: member.name.clone(), ..span }).collect::<Vec<_>>()
    };
    let mut spans: Vec<_> = members.iter().flat_map(of).collect();
    spans.sort_by_key(|span| span.begin_ns);
    spans
}

/// Joins the counters of both ends of a direction, as far as they describe it. Counters that `ends` does not name are the sending end's.
fn of_ends(
    sender: Option<&PortReport>,
    receiver: Option<&PortReport>,
    counters: impl Fn(&PortReport) -> &BTreeMap<String, u64>,
    ends: &[(&str, CountingEnd)],
) -> BTreeMap<String, u64> {
    let is_receivers = |name: &str| ends.contains(&(name, CountingEnd::Receiver));
    let of = |port: Option<&PortReport>, is_receiver: bool| {
        let counters = port.map(|port| counters(port).clone()).unwrap_or_default();
        counters.into_iter().filter(move |(name, _)| is_receivers(name) == is_receiver)
    };
    of(sender, false).chain(of(receiver, true)).collect()
}

#[cfg(test)]
#[path = "assemble_tests.rs"]
mod tests;
