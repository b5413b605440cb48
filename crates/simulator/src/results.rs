//! Results of a run as reports read them, independent of the number of threads that computed the members.

use std::collections::BTreeMap;

use rackloom_jobs::recorder::MemberSeries;
use rackloom_jobs::report::DeviceUse;
use rackloom_jobs::{Job, PathReport};
use rackloom_plan::impair::Direction;
use rackloom_protocol::link::counters::PortCounters;
use rackloom_protocol::{Instant, NodeId};

use crate::ids::ChannelId;
use crate::link::LinkStatistics;
use crate::outcome::{FaultTransition, MemberState, Statistics};
use crate::recording::{RecordedEvent, Recording};
use crate::trace::TraceSums;

/// Results of one member.
pub struct MemberResults {
    /// State at the end.
    pub state: MemberState,
    /// Job of the member, with its result.
    pub job: Option<Box<dyn Job>>,
    /// Counters by port.
    pub ports: Vec<PortCounters>,
    /// Operations by path, if nodes of the server could share memory.
    pub paths: Option<PathReport>,
    /// Use of the GPU, if its model limits it.
    pub device: Option<DeviceUse>,
    /// Time series, if the run recorded them.
    pub series: Option<MemberSeries>,
    /// Remarks about paths, for reports.
    pub path_notes: Vec<String>,
}

/// Results of all members and links.
pub struct RunResults {
    /// Virtual time at the end.
    pub ended_at: Instant,
    /// Hash of everything that happened.
    pub trace_hash: u64,
    /// Counters of the engine.
    pub statistics: Statistics,
    /// Events of the members, in order of time: the first ones of each kind.
    pub events: Vec<RecordedEvent>,
    /// Number of events that are not in the list, by kind, without completions and dropped frames.
    pub events_omitted: BTreeMap<&'static str, u64>,
    /// Members by number.
    pub members: Vec<MemberResults>,
    /// Begins and ends of the faults of a script.
    pub fault_transitions: Vec<FaultTransition>,
    /// Windows of time that several threads computed together. It depends on the number of threads.
    pub windows_shared: u64,
    links: Vec<LinkStatistics>,
}

/// Results of the members of one part.
pub(crate) struct PartResults {
    pub(crate) now: Instant,
    pub(crate) sums: TraceSums,
    pub(crate) statistics: Statistics,
    pub(crate) events: Vec<RecordedEvent>,
    pub(crate) events_omitted: BTreeMap<&'static str, u64>,
    pub(crate) members: Vec<(NodeId, MemberResults)>,
    pub(crate) links: Vec<LinkStatistics>,
    pub(crate) fault_transitions: Vec<FaultTransition>,
}

impl RunResults {
    /// Returns the counters of one direction of a link.
    ///
    /// # Panics
    /// If there is no such link.
    #[must_use]
    pub fn link(&self, edge: u16, direction: Direction) -> &LinkStatistics {
        &self.links[ChannelId::new(edge, direction).index()]
    }

    /// Joins the results of all parts of a rack.
    pub(crate) fn join(parts: Vec<PartResults>) -> Self {
        let mut sums = TraceSums::default();
        let mut joined = Self {
            ended_at: Instant::ZERO,
            trace_hash: 0,
            statistics: Statistics::default(),
            events: Vec::new(),
            events_omitted: BTreeMap::new(),
            members: Vec::new(),
            fault_transitions: Vec::new(),
            windows_shared: 0,
            links: Vec::new(),
        };
        let mut members = Vec::new();
        let mut events = Vec::new();
        for part in parts {
            sums.add(part.sums);
            joined.ended_at = joined.ended_at.max(part.now);
            joined.statistics.add(&part.statistics);
            joined.fault_transitions.extend(part.fault_transitions);
            members.extend(part.members);
            events.push(part.events);
            joined.add_omitted(part.events_omitted);
            joined.links.resize(part.links.len(), LinkStatistics::default());
            joined.links.iter_mut().zip(&part.links).for_each(|(link, part)| link.add(part));
        }
        members.sort_unstable_by_key(|(node, _)| *node);
        joined.members = members.into_iter().map(|(_, results)| results).collect();
        joined.trace_hash = sums.digest();
        joined.join_events(events);
        joined
    }

    /// Merges the events of all parts. Each part kept at least those that one recording of all keeps.
    fn join_events(&mut self, mut parts: Vec<Vec<RecordedEvent>>) {
        if parts.len() == 1 {
            self.events = parts.swap_remove(0);
            return;
        }
        let mut all: Vec<_> = parts.into_iter().flatten().collect();
        all.sort_by_key(|event| (event.at, event.node));
        let mut recording = Recording::of(self.links.len() / 2);
        all.into_iter().for_each(|RecordedEvent { at, node, event }| recording.add(at, node, event));
        self.statistics.events_not_recorded += recording.left_out();
        self.add_omitted(recording.omitted());
        self.events = recording.take();
    }

    fn add_omitted(&mut self, omitted: BTreeMap<&'static str, u64>) {
        for (kind, count) in omitted {
            *self.events_omitted.entry(kind).or_default() += count;
        }
    }
}

impl std::fmt::Debug for RunResults {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = formatter.debug_struct("RunResults");
        debug.field("ended_at", &self.ended_at).field("members", &self.members.len()).finish_non_exhaustive()
    }
}
