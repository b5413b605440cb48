//! State at rest: after the job and all faults, a seat reads eight bytes from each neighbour and reports its
//! counters.
//!
//! The supervisor names the live members ([`rackloom_control::order::Order::Heal`]) and repeats the order
//! while answers are missing. The reads do not change measurements: the report is made before the first read,
//! and only findings of the oracles are added to it.

use rackloom_jobs::Seeds;
use rackloom_jobs::report::MemberReport;
use rackloom_jobs::rest::{self, LinkEnd, Rest};
use rackloom_plan::Plan;
use rackloom_protocol::{
    Command, Endpoint, Event, Inspect, Instant, LocalRange, Member, MemberRole, NodeId, OperationError,
    OperationId, RegionConfig, RemoteAddress,
};

/// First identity of these reads. Jobs use smaller ones.
const FIRST_OPERATION: u64 = 1 << 63;
const WORD_BYTES: u64 = 8;

/// Read of eight bytes from one neighbour.
#[derive(Clone, Copy, Debug)]
struct NeighbourRead {
    target: NodeId,
    /// Region of the target that is read; `None` if the target has no job.
    remote: Option<RegionConfig>,
    /// Read in flight, if there is one.
    operation: Option<OperationId>,
    is_answered: bool,
}

/// Reads of one seat after the job.
#[derive(Debug)]
pub(super) struct RestCheck {
    reads: Vec<NeighbourRead>,
    next: u64,
    /// Region that receives the answers; `None` if this seat has no job.
    local: Option<RegionConfig>,
    /// Report of the seat at the end of all faults, without the result of its job.
    before: Box<MemberReport>,
}

/// Returns the first region of a node's job from which peers may read a word.
fn readable_region(regions: &[RegionConfig]) -> Option<RegionConfig> {
    regions.iter().find(|region| region.access.read && region.length >= WORD_BYTES).copied()
}

fn is_node(plan: &Plan, node: NodeId) -> bool {
    plan.members.get(node.index()).is_some_and(|member| member.role == MemberRole::Endpoint)
}

impl RestCheck {
    /// Prepares the reads and starts none. A switch reads nothing. `regions`: those of the seat's own job.
    pub(super) fn begin(
        plan: &Plan,
        node: NodeId,
        living: &[NodeId],
        seeds: Seeds,
        regions: &[RegionConfig],
        before: MemberReport,
    ) -> Self {
        let edges: Vec<_> = plan.links.iter().map(|link| link.edge).collect();
        let is_live = |other: NodeId| living.contains(&other);
        let targets = rest::nodes_to_read(&edges, node, |other| is_node(plan, other), is_live).into_iter();
        let targets = targets.filter(|_| is_node(plan, node));
        let read = |target| {
            let remote = readable_region(&rackloom_jobs::build(plan, target, seeds).regions());
            NeighbourRead { target, remote, operation: None, is_answered: false }
        };
        let reads = targets.map(read).collect();
        Self { reads, next: FIRST_OPERATION, local: readable_region(regions), before: Box::new(before) }
    }

    /// Starts a read from each neighbour without an answer and without a read in flight. Returns true if a
    /// read was started.
    pub(super) fn start_reads(&mut self, now: Instant, endpoint: &mut Endpoint) -> bool {
        let Self { reads, next, local, .. } = self;
        let mut any = false;
        for read in reads.iter_mut().filter(|read| !read.is_answered && read.operation.is_none()) {
            let (Some(local), Some(remote)) = (&local, &read.remote) else {
                // Without a job at both ends there is no word to read. A path to the neighbour suffices.
                read.is_answered = endpoint.is_reachable(read.target);
                continue;
            };
            let operation = OperationId(*next);
            let target =
                RemoteAddress { node: read.target, region: remote.region, offset: 0, key: remote.key };
            let into = LocalRange { region: local.region, offset: 0, length: WORD_BYTES };
            if endpoint.handle_command(now, Command::Load { operation, target, into }).is_ok() {
                (read.operation, any) = (Some(operation), true);
                *next += 1;
            }
        }
        any
    }

    /// Records the completion of a read. Returns true if the event completes one of these reads.
    pub(super) fn handle_event(&mut self, event: &Event) -> bool {
        let Event::Completed { operation, result } = *event else { return false };
        if operation.0 < FIRST_OPERATION {
            return false;
        }
        if let Some(read) = self.reads.iter_mut().find(|read| read.operation == Some(operation)) {
            read.operation = None;
            // A refusal is an answer. A read that was lost while its link came up is repeated.
            let is_lost = matches!(result, Err(OperationError::Unreachable | OperationError::OutcomeUnknown));
            read.is_answered = !is_lost;
        }
        true
    }

    /// Replaces ports, series and events of `report` by those at the end of all faults. Keeps later findings of the
    /// oracles.
    pub(super) fn restore_earlier(self, report: &mut MemberReport) {
        let MemberReport { ports, series, events, .. } = *self.before;
        (report.ports, report.series) = (ports, series);
        if report.events.broken_promise().is_none() {
            report.events = events;
        }
    }

    /// Returns the state of the seat now.
    pub(super) fn rest(&self, member: &dyn Inspect, edges: &[u16]) -> Rest {
        let (answered, unanswered): (Vec<&NeighbourRead>, Vec<&NeighbourRead>) =
            self.reads.iter().partition(|read| read.is_answered);
        Rest {
            answered: answered.len() as u64,
            unanswered: unanswered.iter().map(|read| read.target.0).collect(),
            ends: LinkEnd::of_member(member, edges.iter().copied()),
            granted_packets: member.granted_packets(),
        }
    }
}
