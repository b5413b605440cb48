//! Report of one member at the end of a run: its state, the findings of its job, and the counters of its ports.

use std::collections::BTreeMap;

use rackloom_protocol::link::counters::PortCounters;
use rackloom_protocol::{DropReason, Inspect, PortId, port_counters};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::device::DeviceUse;
use super::events::EventLog;
use super::gpu::GpuPart;
use super::memory::MemoryReport;
use super::spans::{OperationSpan, PhaseSpan};
use super::sweep::SweepRow;
use super::traffic::TrafficPart;
use super::workload::WorkloadPart;
use crate::measure::Measurements;
use crate::oracle::Verdicts;
use crate::recorder::MemberSeries;
use crate::zero::is_zero;

/// Reasons for which a wire or its device dropped received frames, beside those of the core.
pub const DEVICE_DROPS: [&str; 6] =
    ["receive-buffer-full", "too-long", "vlan-tag", "filtered", "bad-tag", "replayed"];

/// State of a member at the end of a run, as its engine saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MemberState {
    /// The member completed its part.
    Finished,
    /// The member was still running when the run was ended.
    Running,
    /// The member could not be started.
    Unstarted,
    /// The member was ended by a signal or by the plan's faults.
    Killed,
    /// The member ended by itself before its part was done.
    Exited,
    /// The member no longer answered.
    Lost,
    /// The member ran on another host. That host's report covers it.
    Elsewhere,
}

impl MemberState {
    /// Returns a lower-case name for reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Running => "running",
            Self::Unstarted => "unstarted",
            Self::Killed => "killed",
            Self::Exited => "exited",
            Self::Lost => "lost",
            Self::Elsewhere => "elsewhere",
        }
    }
}

/// A wrong byte, or the first of several wrong bytes in a row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mismatch {
    /// Region of the rank that made the check.
    pub region: u32,
    /// Offset of the first wrong byte.
    pub offset: u64,
    /// Expected value.
    pub expected: u8,
    /// Value in memory.
    pub found: u8,
    /// Description of the data and its writer.
    pub location: String,
}

/// Number of operations on other nodes' memory, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PathCount {
    /// Number of operations.
    pub operations: u64,
    /// Bytes stored, loaded, put, got, or modified by an atomic.
    pub bytes: u64,
}

/// Operations of a rank, by the path that carried them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PathReport {
    /// Operations on memory of the same server that this rank has mapped.
    pub direct: PathCount,
    /// Operations carried in frames.
    pub frames: PathCount,
}

/// Result of one rank's part of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobResult {
    /// True if the job completed, with or without findings.
    pub complete: bool,
    /// Measurements per kind of operation.
    pub operations: Measurements,
    /// Bytes that were compared with the expected data and found right.
    pub verified_bytes: u64,
    /// The first mismatches.
    pub mismatches: Vec<Mismatch>,
    /// Number of all mismatches, listed or not.
    pub mismatch_count: u64,
    /// Other failures, one line each.
    pub failures: Vec<String>,
    /// Clean errors: points at which the job broke off because a node was lost, or because another rank broke off. They
    /// are correct behaviour.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clean_errors: Vec<String>,
    /// Points at which the job broke off because memory refused a correct access. Such errors are correct behaviour if
    /// a fault script provokes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<String>,
    /// Number of failures that are not listed.
    pub failures_omitted: u64,
    /// Names of the ranks that did the job together, if it went on after a loss; empty if all did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub group: Vec<String>,
    /// Names of the nodes that this rank saw lost.
    pub lost_nodes: Vec<String>,
    /// Notes that are not failures, such as parts of the job that were left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Checks of the oracles that this rank could make.
    #[serde(default, skip_serializing_if = "Verdicts::is_empty")]
    pub oracles: Verdicts,
    /// Operations by path. Present only if GPU nodes of one server could have shared memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paths: Option<PathReport>,
    /// Use of the rank's GPU. Present only in virtual time and if the device model limits it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceUse>,
    /// Samples of the GPU that holds the rank's memory. Present only if it is real and was sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<GpuPart>,
    /// Use of the rank's memory. Present only if memory is real.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryReport>,
    /// Traffic sent by the rank, if the job is a traffic pattern.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic: Option<TrafficPart>,
    /// Performance of a workload by the rank, if the job is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<WorkloadPart>,
    /// Times and bandwidths by size, if the job sweeps over sizes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sweep: Vec<SweepRow>,
    /// Phases of the job at this rank, such as one algorithm at one size.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<PhaseSpan>,
    /// Single operations, if the run recorded them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spans: Vec<OperationSpan>,
}

impl JobResult {
    /// Returns whether the job completed and every check passed.
    #[must_use]
    pub fn is_pass(&self) -> bool {
        let is_clean = [&self.failures, &self.clean_errors, &self.refusals, &self.lost_nodes]
            .iter()
            .all(|lines| lines.is_empty());
        self.complete && self.mismatch_count == 0 && is_clean && self.oracles.failures().is_empty()
    }
}

/// Declares [`PortReport`] with the counters of every port.
macro_rules! port_report {
    (
        always { $($(#[$always_doc:meta])+ $always:ident,)+ }
        if_counted { $($(#[$rare_doc:meta])+ $rare:ident: $end:ident,)+ }
    ) => {
        /// Counters of one port: [`PortCounters`] in a form for files.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        pub struct PortReport {
            /// Index of the link in the plan.
            pub edge: u16,
            $($(#[$always_doc])+ #[serde(default)] pub $always: u64,)+
            $($(#[$rare_doc])+ #[serde(default, skip_serializing_if = "is_zero")] pub $rare: u64,)+
            /// Received frames that were dropped, by reason. Zero counts are left out.
            pub dropped: BTreeMap<String, u64>,
            /// Counters of link-level retry. Zero counts are left out.
            #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
            pub retry: BTreeMap<String, u64>,
            /// Counters of pauses. Zero counts are left out.
            #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
            pub pause: BTreeMap<String, u64>,
            /// Counters of congestion marks. Zero counts are left out.
            #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
            pub marks: BTreeMap<String, u64>,
            /// Frames sent here that injected faults changed, by effect (`dropped`, `corrupted`, `duplicated`, `reordered`).
            /// Zero counts are left out.
            #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
            pub injected: BTreeMap<String, u64>,
            /// Bytes of the frames sent here that the rate of the link was charged for. Zero in processes.
            #[serde(default, skip_serializing_if = "is_zero")]
            pub accounted_bytes: u64,
            /// True if a process of the member ended without its counters, so that these are those of the others.
            #[serde(default, skip_serializing_if = "std::ops::Not::not")]
            pub is_partial: bool,
        }

        impl PortReport {
            /// Returns the report of a port that leads to the plan's link `edge`.
            #[must_use]
            pub fn new(edge: u16, counters: &PortCounters) -> Self {
                let dropped = DropReason::ALL.iter().map(|reason| (reason.name(), counters.dropped_for(*reason)));
                Self {
                    edge,
                    $($always: counters.$always,)+
                    $($rare: counters.$rare,)+
                    dropped: occurred(dropped),
                    retry: occurred(counters.retry.named()),
                    pause: occurred(counters.pause.named()),
                    marks: occurred(counters.marks.named()),
                    injected: BTreeMap::new(),
                    accounted_bytes: 0,
                    is_partial: false,
                }
            }

            /// Adds the counters of the same port in another process of the member.
            pub fn add(&mut self, other: &Self) {
                $(self.$always += other.$always;)+
                $(self.$rare += other.$rare;)+
                add_named(&mut self.dropped, &other.dropped);
                add_named(&mut self.retry, &other.retry);
                add_named(&mut self.pause, &other.pause);
                add_named(&mut self.marks, &other.marks);
                add_named(&mut self.injected, &other.injected);
                self.accounted_bytes += other.accounted_bytes;
                self.is_partial |= other.is_partial;
            }
        }
    };
}

port_counters!(port_report);

/// Adds counters by name. A counter whose name ends with `_max` is the greatest of both.
fn add_named(sums: &mut BTreeMap<String, u64>, others: &BTreeMap<String, u64>) {
    for (name, count) in others {
        let sum = sums.entry(name.clone()).or_default();
        *sum = if name.ends_with("_max") { (*sum).max(*count) } else { *sum + count };
    }
}

impl PortReport {
    /// Returns the reports of all ports of a member whose ports lead to these links, in port order.
    pub fn of_member(member: &(impl Inspect + ?Sized), edges: impl IntoIterator<Item = u16>) -> Vec<Self> {
        edges
            .into_iter()
            .take(member.port_count())
            .enumerate()
            .map(|(port, edge)| Self::new(edge, member.port_counters(PortId(port as u16))))
            .collect()
    }

    /// Adds the counters of another process of a member to the counters of its ports.
    pub fn add_all(ports: &mut Vec<Self>, others: &[Self]) {
        for other in others {
            match ports.iter_mut().find(|port| port.edge == other.edge) {
                Some(port) => port.add(other),
                None => ports.push(other.clone()),
            }
        }
    }
}

/// Returns the counters that are not zero.
fn occurred(named: impl Iterator<Item = (&'static str, u64)>) -> BTreeMap<String, u64> {
    named.filter(|(_, count)| *count > 0).map(|(name, count)| (name.to_owned(), count)).collect()
}

/// Report of one member at the end of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemberReport {
    /// Name of the member in the plan.
    pub name: String,
    /// Process identifier of the member; `None` in virtual time.
    pub pid: Option<u32>,
    /// State of the member at the end of the run.
    pub state: MemberState,
    /// Result of the member's job; `None` for switches, and for members that were lost with their results.
    pub job: Option<JobResult>,
    /// One entry per port, in port order; empty if the member was lost with its counters.
    pub ports: Vec<PortReport>,
    /// Events that the member reported.
    pub events: EventLog,
    /// Operations and peers that the member waited for, if it reported before its job had ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<String>,
    /// Greatest lateness of one of the member's timers in nanoseconds, for lack of a processor. Zero in virtual time.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub timer_late_max_ns: u64,
    /// Processor time that the member and its neighbours waited for. Zero in virtual time.
    #[serde(default, skip_serializing_if = "HostShortage::is_none")]
    pub shortage: HostShortage,
    /// Time series of the member, if the run recorded them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<MemberSeries>,
}

/// Processor time that the host did not give when it was needed, as one member measured it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostShortage {
    /// Total time in nanoseconds that the member's own thread has waited on a run queue.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub waited_ns: u64,
    /// Longest part in nanoseconds of one neighbour's silence during which that neighbour waited for a processor.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub neighbour_waited_max_ns: u64,
    /// Number of times that the loss of a neighbour was declared later because of such a part.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub deaths_put_off: u64,
}

impl HostShortage {
    /// Returns whether all values are zero.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the greatest delay in nanoseconds that the host caused to this member. A member that was stopped was
    /// late as well, but did not wait for a processor.
    #[must_use]
    pub fn lateness_ns(&self, timer_late_max_ns: u64) -> u64 {
        timer_late_max_ns.min(self.waited_ns).max(self.neighbour_waited_max_ns)
    }
}

impl MemberReport {
    /// Returns the report that an engine makes for a member that can no longer report itself.
    #[must_use]
    pub fn silent(name: impl Into<String>, pid: Option<u32>, state: MemberState) -> Self {
        Self {
            name: name.into(),
            pid,
            state,
            job: None,
            ports: Vec::new(),
            events: EventLog::default(),
            waiting: Vec::new(),
            timer_late_max_ns: 0,
            shortage: HostShortage::default(),
            series: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_report_names_every_reason_that_occurred() {
        let mut counters = PortCounters { frames_sent: 5, ..PortCounters::default() };
        counters.dropped[DropReason::HopCheck as usize] = 2;
        counters.dropped[DropReason::UnknownSender as usize] = 1;
        counters.credit_violations = 4;
        let report = PortReport::new(3, &counters);
        assert_eq!(report.credit_violations, 4);
        assert_eq!((report.edge, report.frames_sent), (3, 5));
        assert_eq!(report.dropped, BTreeMap::from([("hop-check".into(), 2), ("unknown-sender".into(), 1)]));
    }

    #[test]
    fn states_are_written_under_their_names() {
        for state in [MemberState::Finished, MemberState::Killed, MemberState::Lost] {
            assert_eq!(serde_json::to_string(&state).unwrap(), format!("\"{}\"", state.name()));
        }
    }
}
