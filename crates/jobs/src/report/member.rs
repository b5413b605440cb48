//! What one member says at the end: how it fared, what its job found, what passed through its ports.

use std::collections::BTreeMap;

use rackloom_protocol::link::counters::PortCounters;
use rackloom_protocol::{DropReason, Member, PortId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::events::EventLog;
use super::is_zero;
use super::memory::MemoryReport;
use super::sweep::SweepRow;
use super::traffic::TrafficPart;
use crate::measure::Measurements;
use crate::oracle::Verdicts;

/// How a member's life went, as its engine saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MemberState {
    /// Did its part to the end.
    Finished,
    /// Was still running when the run was ended.
    Running,
    /// Could not be started.
    Unstarted,
    /// Ended by a signal or by the plan's faults.
    Killed,
    /// Ended by itself before its part was done.
    Exited,
    /// No longer answered.
    Lost,
    /// Ran on another host, whose own report tells of it.
    Elsewhere,
}

impl MemberState {
    /// Lower-case name for reports.
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

/// A byte, or the first of several in a row, that is not what it must be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mismatch {
    /// Region of the rank that looked.
    pub region: u32,
    /// Offset of the first wrong byte.
    pub offset: u64,
    /// What it must be.
    pub expected: u8,
    /// What it is.
    pub found: u8,
    /// What lies there, and who wrote it.
    pub place: String,
}

/// Operations on other nodes' memory, and the bytes they asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PathCount {
    /// How many.
    pub operations: u64,
    /// Bytes stored, loaded, put, got, or touched by an atomic.
    pub bytes: u64,
}

/// Who carried a rank's operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PathReport {
    /// On memory of the same server that this rank has mapped.
    pub direct: PathCount,
    /// In frames.
    pub frames: PathCount,
}

/// What a job found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobResult {
    /// The job went through to its end, with or without findings.
    pub complete: bool,
    /// What was measured, per kind of operation.
    pub operations: Measurements,
    /// Bytes that were compared with what they must be, and were right.
    pub verified_bytes: u64,
    /// The first mismatches.
    pub mismatches: Vec<Mismatch>,
    /// All mismatches, listed or not.
    pub mismatch_count: u64,
    /// Anything else that must not happen, one line each.
    pub failures: Vec<String>,
    /// Where it broke off because somebody was lost, or because another rank broke off: errors as they should be.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excused: Vec<String>,
    /// Where it broke off because memory refused what is right: errors as they should be under a fault script that says so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<String>,
    /// Failures beyond those listed.
    pub failures_omitted: u64,
    /// With whom it did the job, where it went on with those who were left; nobody where it did it with all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub group: Vec<String>,
    /// Names of the nodes that this rank saw die.
    pub lost_nodes: Vec<String>,
    /// What a reader should know, and what is no failure: where the job did less than was asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What must never happen, as far as this rank can see it.
    #[serde(default, skip_serializing_if = "Verdicts::is_empty")]
    pub oracles: Verdicts,
    /// Who carried the operations; only where GPU nodes of one server could have shared memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paths: Option<PathReport>,
    /// How its memory was held and used; only where memory is real.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryReport>,
    /// What it sent and when, where the job is a pattern of traffic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic: Option<TrafficPart>,
    /// Times and bandwidths by size, where the job sweeps over sizes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sweep: Vec<SweepRow>,
}

impl JobResult {
    /// Whether the job ended and nothing was wrong.
    #[must_use]
    pub fn is_pass(&self) -> bool {
        let is_clean = [&self.failures, &self.excused, &self.refusals, &self.lost_nodes]
            .iter()
            .all(|lines| lines.is_empty());
        self.complete && self.mismatch_count == 0 && is_clean && self.oracles.failures().is_empty()
    }
}

/// What passed through one port; [`PortCounters`] for files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortReport {
    /// Index of the link in the plan.
    pub edge: u16,
    /// Frames handed to the device, control frames included.
    pub frames_sent: u64,
    /// Their bytes, Ethernet header included, without preamble and gap.
    pub bytes_sent: u64,
    /// Of the frames sent: those that carry operations.
    pub data_frames_sent: u64,
    /// Bytes of the data frames sent.
    pub data_bytes_sent: u64,
    /// Of the frames sent: packets sent again.
    pub retransmitted: u64,
    /// Of the frames sent: passed on for others.
    pub forwarded: u64,
    /// Frames taken from the device.
    pub frames_received: u64,
    /// Their bytes.
    pub bytes_received: u64,
    /// Frames that never came.
    pub missing: u64,
    /// Times that sending stopped for lack of credits.
    pub credit_stalls: u64,
    /// Of the frames sent: credit frames.
    #[serde(default)]
    pub credit_updates: u64,
    /// Credit counters of the neighbour that no honest one can have.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub credit_violations: u64,
    /// Received frames not used, by reason; reasons that did not occur are left out.
    pub dropped: BTreeMap<String, u64>,
    /// What link-level retry did, by counter; what did not occur is left out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub retry: BTreeMap<String, u64>,
    /// What pauses did, by counter; what did not occur is left out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pause: BTreeMap<String, u64>,
    /// Marks of congestion, by counter; what did not occur is left out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub marks: BTreeMap<String, u64>,
    /// What injected faults did to frames that were sent here, by what it was (`dropped`, `corrupted`, `duplicated`,
    /// `reordered`); what did not occur is left out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub injected: BTreeMap<String, u64>,
}

impl PortReport {
    /// The counters of a port that leads to the plan's link `edge`.
    #[must_use]
    pub fn new(edge: u16, counters: &PortCounters) -> Self {
        let dropped = DropReason::ALL
            .iter()
            .map(|reason| (reason.name().to_owned(), counters.dropped_for(*reason)))
            .filter(|(_, count)| *count > 0)
            .collect();
        Self {
            edge,
            frames_sent: counters.frames_sent,
            bytes_sent: counters.bytes_sent,
            data_frames_sent: counters.data_frames_sent,
            data_bytes_sent: counters.data_bytes_sent,
            retransmitted: counters.retransmitted,
            forwarded: counters.forwarded,
            frames_received: counters.frames_received,
            bytes_received: counters.bytes_received,
            missing: counters.missing,
            credit_stalls: counters.credit_stalls,
            credit_updates: counters.credit_updates,
            credit_violations: counters.credit_violations,
            dropped,
            retry: occurred(counters.retry.named()),
            pause: occurred(counters.pause.named()),
            marks: occurred(counters.marks.named()),
            injected: BTreeMap::new(),
        }
    }

    /// The counters of all ports of a member whose ports lead to these links, in port order.
    pub fn of_member(member: &(impl Member + ?Sized), edges: impl IntoIterator<Item = u16>) -> Vec<Self> {
        edges
            .into_iter()
            .take(member.port_count())
            .enumerate()
            .map(|(port, edge)| Self::new(edge, member.port_counters(PortId(port as u16))))
            .collect()
    }
}

fn occurred<const COUNT: usize>(named: [(&str, u64); COUNT]) -> BTreeMap<String, u64> {
    named.into_iter().filter(|(_, count)| *count > 0).map(|(name, count)| (name.to_owned(), count)).collect()
}

/// What one member says at the end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemberReport {
    /// Its name in the plan.
    pub name: String,
    /// Its process; `None` in virtual time.
    pub pid: Option<u32>,
    /// How its life went.
    pub state: MemberState,
    /// What its job found; `None` for switches, and for members that died with their findings.
    pub job: Option<JobResult>,
    /// One entry per port, in port order; empty if the member died with its counters.
    pub ports: Vec<PortReport>,
    /// What happened to it.
    pub events: EventLog,
    /// Operations and peers that it waited for, if it reported before its job had ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<String>,
    /// How late one of its timers was served at the most, for want of a processor; nothing in virtual time.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub timer_late_max_ns: u64,
    /// Processor time that it and its neighbours waited for; zero in virtual time.
    #[serde(default, skip_serializing_if = "HostShortage::is_none")]
    pub shortage: HostShortage,
}

/// Processor time that the host did not give when it was wanted, as one member measured it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostShortage {
    /// Time that the member's own thread has waited on a run queue, in all.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub waited_ns: u64,
    /// Longest part of one neighbour's silence during which that neighbour waited for a processor.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub neighbour_waited_max_ns: u64,
    /// Deaths of neighbours that were put off because of such a part.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub deaths_put_off: u64,
}

impl HostShortage {
    /// Returns true if all values are zero.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// How late the host made something of this member's at most. A member that was stopped was late, too, but did not wait.
    #[must_use]
    pub fn lateness_ns(&self, timer_late_max_ns: u64) -> u64 {
        timer_late_max_ns.min(self.waited_ns).max(self.neighbour_waited_max_ns)
    }
}

impl MemberReport {
    /// What an engine reports for a member that can no longer speak for itself.
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
        counters.dropped[DropReason::Stranger as usize] = 1;
        counters.credit_violations = 4;
        let report = PortReport::new(3, &counters);
        assert_eq!(report.credit_violations, 4);
        assert_eq!((report.edge, report.frames_sent), (3, 5));
        assert_eq!(report.dropped, BTreeMap::from([("hop-check".into(), 2), ("stranger".into(), 1)]));
    }

    #[test]
    fn states_are_written_under_their_names() {
        for state in [MemberState::Finished, MemberState::Killed, MemberState::Lost] {
            assert_eq!(serde_json::to_string(&state).unwrap(), format!("\"{}\"", state.name()));
        }
    }
}
