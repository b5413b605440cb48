//! Operations on the memory of nodes of the same server, without a frame, in virtual time.
//!
//! The plan defines which nodes share memory, and `rackloom_jobs::local` which operations take this path, as for real
//! processes. All operations of a server share one path: each waits until the path is free, occupies it for its
//! bytes, and is carried out a latency later, in a poll of its initiator (`carry_out.rs`). So operations of one node
//! are carried out in the order of the requests, a node that is paused or dead carries out nothing, and the owner
//! takes no part.
//!
//! A peer is reached either on this path or in frames. It is reached in frames for good once a fault of its memory or a revocation was
//! detected there, once it was lost, and once it is dead. A command that goes in a frame is busy while earlier operations to
//! the same peer are on this path, because a fence does not order the two.
//!
//! A word that peers change on this path changes without a frame. So waits on words are kept here, and not in the endpoint.

use std::collections::VecDeque;
use std::sync::Arc;

use rackloom_jobs::Job;
use rackloom_jobs::local::{LocalPeer, memory_of, moved_bytes, withheld_note};
use rackloom_plan::{LocalPath, Plan};
use rackloom_protocol::{
    Atomic, Command, CommandRefused, Completion, Condition, Endpoint, Event, Instant, InvalidCommand,
    LocalRange, NodeId, OperationError, OperationId, RegionConfig, RegionId, RemoteAddress, Signal,
};

use crate::cells::{Flag, Moment};

mod carry_out;
mod copies;

pub(crate) use carry_out::AccessContext;

/// Maximum number of operations of one node on the path at once.
const PENDING_MAX: usize = 1_024;
const WORD_BYTES: u64 = 8;

/// The local path of one server.
#[derive(Debug)]
struct ServerPath {
    is: LocalPath,
    free_at: Moment,
}

/// State of a member as its peers in the server see it.
#[derive(Debug, Default)]
pub(crate) struct Owner {
    /// True if its first incarnation is dead. Its successor shares nothing.
    is_dead: Flag,
    /// True if a successor with its own memory has the seat.
    has_successor: Flag,
    /// True if a memory fault is active, or keys are revoked: peers then use frames.
    withholds: Flag,
    has_revoked: Flag,
}

/// The states of all members.
pub(crate) type Owners = Arc<[Owner]>;

/// Result of offering a command to the local path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandPath {
    Direct,
    /// The command is for the endpoint.
    Frames,
}

/// The local path as one node uses it.
#[derive(Debug)]
pub(crate) struct Local {
    node: NodeId,
    /// All regions of the node's own job.
    own: Vec<RegionConfig>,
    path: Arc<ServerPath>,
    owners: Owners,
    peers: Vec<Peer>,
    pending: VecDeque<Pending>,
    waits: Vec<Wait>,
    /// Peers to which a posted store has failed since the last flush.
    failed: Vec<NodeId>,
    /// Regions in which memory has refused an access of another node, so that a read of their words may fail as well.
    refused_regions: Vec<RegionId>,
    /// Completions that are not reported yet.
    ended: Vec<Event>,
    /// Flushes that the endpoint has to judge now.
    flushes: VecDeque<(OperationId, Option<NodeId>)>,
}

#[derive(Debug)]
struct Peer {
    shared: LocalPeer,
    name: String,
    state: PeerState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PeerState {
    Local,
    /// In frames for good: a fault of its memory was detected.
    Withheld,
    /// In frames for good: it was lost or restarted.
    Lost,
}

/// An operation on the path.
#[derive(Debug)]
struct Pending {
    due: Instant,
    what: Body,
}

#[derive(Debug)]
enum Body {
    Access { target: NodeId, access: Access },
    Flush { operation: OperationId, target: Option<NodeId> },
}

/// A command that owns its data.
#[derive(Debug)]
enum Access {
    Store {
        operation: OperationId,
        at: RemoteAddress,
        data: Box<[u8]>,
        completion: Completion,
    },
    Atomic {
        operation: OperationId,
        at: RemoteAddress,
        atomic: Atomic,
    },
    Put {
        operation: OperationId,
        at: RemoteAddress,
        source: LocalRange,
        signal: Option<Signal>,
    },
    /// A load or a get.
    Fetch {
        operation: OperationId,
        at: RemoteAddress,
        into: LocalRange,
    },
}

impl Access {
    /// Returns the operation of a command on memory.
    fn of(command: &Command<'_>) -> Option<Self> {
        Some(match *command {
            Command::Store { operation, target: at, data, completion } => {
                Self::Store { operation, at, data: data.into(), completion }
            }
            Command::Atomic { operation, target: at, atomic } => Self::Atomic { operation, at, atomic },
            Command::Put { operation, target: at, source, signal } => {
                Self::Put { operation, at, source, signal }
            }
            Command::Load { operation, target: at, into } | Command::Get { operation, target: at, into } => {
                Self::Fetch { operation, at, into }
            }
            _ => return None,
        })
    }

    /// Returns the range of the node's own memory that it reads or writes.
    const fn own_range(&self) -> Option<LocalRange> {
        match *self {
            Self::Put { source: range, .. } | Self::Fetch { into: range, .. } => Some(range),
            Self::Store { .. } | Self::Atomic { .. } => None,
        }
    }
}

/// A wait on a word of the node's own memory.
#[derive(Clone, Copy, Debug)]
struct Wait {
    operation: OperationId,
    region: RegionId,
    offset: u64,
    condition: Condition,
    value: u64,
    depends_on: Option<NodeId>,
    /// True if the node whose loss ends the wait is lost: the next check of the word is the last one.
    is_last: bool,
}

/// Returns the local paths by rank, `None` for ranks without one; `None` if no node has one.
pub(crate) fn paths(plan: &Plan, jobs: &[Box<dyn Job>]) -> Option<(Vec<Option<Local>>, Owners)> {
    if jobs.is_empty() || !plan.has_local_paths() {
        return None;
    }
    let owners: Owners = plan.members.iter().map(|_| Owner::default()).collect();
    let servers: Vec<_> = plan
        .servers()
        .iter()
        .map(|(server, _)| ServerPath { is: plan.local.of(server), free_at: Moment::default() })
        .map(Arc::new)
        .collect();
    let seats = (0..).map(NodeId).zip(plan.server_of_each_rank()).zip(jobs);
    let seats = seats.map(|((node, server), job)| {
        let peers = plan.memory_peers(node);
        let peer = |node: NodeId| Peer {
            shared: LocalPeer::new(node, jobs[node.index()].regions()),
            name: plan.members[node.index()].name.clone(),
            state: PeerState::Local,
        };
        (!peers.is_empty()).then(|| Local {
            node,
            own: job.regions(),
            path: Arc::clone(&servers[server]),
            owners: Arc::clone(&owners),
            peers: peers.into_iter().map(peer).collect(),
            pending: VecDeque::new(),
            waits: Vec::new(),
            failed: Vec::new(),
            refused_regions: Vec::new(),
            ended: Vec::new(),
            flushes: VecDeque::new(),
        })
    });
    Some((seats.collect(), Arc::clone(&owners)))
}

impl Owner {
    /// Marks the member as dead. Peers that have not detected it yet reach it in frames, which get no answer.
    pub(crate) fn die(&self) {
        self.is_dead.set(true);
    }

    /// Marks the seat as taken by a new incarnation. Requests to the old one do not affect it.
    pub(crate) fn begin_anew(&self) {
        self.has_successor.set(true);
    }

    /// Sets whether a fault script disturbs the member's memory.
    pub(crate) fn withhold(&self, has_memory_fault: bool) {
        self.withholds.set(has_memory_fault || self.has_revoked.get());
    }

    /// Marks the member's keys as revoked.
    pub(crate) fn revoke(&self) {
        self.has_revoked.set(true);
        self.withholds.set(true);
    }
}

impl Local {
    /// Takes a command if it concerns memory of a peer or a word that peers may change.
    pub(crate) fn command(
        &mut self,
        now: Instant,
        command: &Command<'_>,
        endpoint: &Endpoint,
    ) -> Result<CommandPath, CommandRefused> {
        match *command {
            Command::WaitUntil { operation, region, offset, condition, value, depends_on } => {
                let word = LocalRange { region, offset, length: WORD_BYTES };
                if !offset.is_multiple_of(WORD_BYTES) || !self.holds(word) {
                    return Err(CommandRefused::Invalid(InvalidCommand::WaitWord));
                }
                let is_last = depends_on.is_some_and(|node| !endpoint.is_reachable(node));
                self.waits.push(Wait { operation, region, offset, condition, value, depends_on, is_last });
                return Ok(CommandPath::Direct);
            }
            Command::Cancel { operation } => return Ok(self.cancel(operation)),
            Command::Flush { operation, target } => return Ok(self.flush(operation, target)),
            _ => {}
        }
        match memory_of(command).or_else(|| receiver_of(command)) {
            Some(target) => self.access(now, target, command),
            None => Ok(CommandPath::Frames),
        }
    }

    fn access(
        &mut self,
        now: Instant,
        target: NodeId,
        command: &Command<'_>,
    ) -> Result<CommandPath, CommandRefused> {
        let owner = &self.owners[target.index()];
        let Some(peer) = self.peers.iter_mut().find(|peer| peer.shared.node == target) else {
            return Ok(CommandPath::Frames);
        };
        if peer.state == PeerState::Lost || owner.is_dead.get() {
            return Ok(CommandPath::Frames);
        }
        let is_allowed = peer.shared.allows(command);
        if is_allowed && owner.withholds.get() {
            peer.state = PeerState::Withheld;
        }
        if !is_allowed || peer.state == PeerState::Withheld {
            let is_behind = self.pending.iter().any(|pending| pending.is_to(target));
            return if is_behind { Err(CommandRefused::Busy) } else { Ok(CommandPath::Frames) };
        }
        let Some(access) = Access::of(command) else { return Ok(CommandPath::Frames) };
        if access.own_range().is_some_and(|range| !self.holds(range)) {
            return Err(CommandRefused::Invalid(InvalidCommand::LocalRange));
        }
        if self.pending.len() >= PENDING_MAX {
            return Err(CommandRefused::Busy);
        }
        let due = self.path.take(now, moved_bytes(command).unwrap_or(0));
        let what = Body::Access { target, access };
        self.pending.push_back(Pending { due, what });
        Ok(CommandPath::Direct)
    }

    /// Takes a flush. It ends after the operations on the path that it covers, and then the endpoint's own.
    fn flush(&mut self, operation: OperationId, target: Option<NodeId>) -> CommandPath {
        let is_concerned = |pending: &Pending| target.is_none_or(|target| pending.is_to(target));
        if let Some(due) = self.pending.back().map(|last| last.due)
            && self.pending.iter().any(is_concerned)
        {
            // Behind all other operations: those due at one time are carried out in the order of the requests.
            self.pending.push_back(Pending { due, what: Body::Flush { operation, target } });
            return CommandPath::Direct;
        }
        if self.forget_failures(target) {
            self.ended.push(completed(operation, Err(OperationError::EarlierFailure)));
            return CommandPath::Direct;
        }
        CommandPath::Frames
    }

    /// Returns true if a posted store to these nodes has failed since the last call.
    fn forget_failures(&mut self, target: Option<NodeId>) -> bool {
        let before = self.failed.len();
        self.failed.retain(|node| target.is_some_and(|target| target != *node));
        self.failed.len() < before
    }

    fn cancel(&mut self, operation: OperationId) -> CommandPath {
        let Some(index) = self.waits.iter().position(|wait| wait.operation == operation) else {
            return CommandPath::Frames;
        };
        self.waits.remove(index);
        self.ended.push(completed(operation, Err(OperationError::Cancelled)));
        CommandPath::Direct
    }

    /// Takes an event of the endpoint about a peer.
    pub(crate) fn handle_event(&mut self, event: &Event) {
        if let Event::AccessRefused { region, error: OperationError::MemoryFailed, .. } = *event {
            self.refused_regions.push(region);
        }
        let (Event::NodeLost { node } | Event::NodeRestarted { node }) = *event else { return };
        self.waits
            .iter_mut()
            .filter(|wait| wait.depends_on == Some(node))
            .for_each(|wait| wait.is_last = true);
        let peer = self.peers.iter_mut().find(|peer| peer.shared.node == node);
        peer.into_iter().for_each(|peer| peer.state = PeerState::Lost);
    }

    /// Returns when the next operation is carried out; [`Instant::NEVER`] if none is on the path.
    pub(crate) fn next_due(&self) -> Instant {
        self.pending.front().map_or(Instant::NEVER, |pending| pending.due)
    }

    /// Returns a flush whose operations on the path are over.
    pub(crate) fn take_flush(&mut self) -> Option<(OperationId, Option<NodeId>)> {
        self.flushes.pop_front()
    }

    /// Ends an operation with an error.
    pub(crate) fn end(&mut self, operation: OperationId, error: OperationError) {
        self.ended.push(completed(operation, Err(error)));
    }

    /// Returns one line per peer that is reached in frames although it shares memory.
    pub(crate) fn notes(&self) -> Vec<String> {
        let withheld = self.peers.iter().filter(|peer| peer.state == PeerState::Withheld);
        withheld.map(|peer| withheld_note(&peer.name)).collect()
    }

    /// Returns one line per outstanding operation or wait.
    pub(crate) fn waiting_for(&self) -> Vec<String> {
        let waits = self.waits.iter().map(|wait| {
            let Wait { operation, region, offset, condition, value, .. } = wait;
            format!(
                "operation {} waits for {region} offset {offset:#x} to be {condition:?} {value}",
                operation.0
            )
        });
        let pending = self.pending.len();
        waits.chain((pending > 0).then(|| format!("{pending} operations on the local path"))).collect()
    }

    /// Returns true if the range is within a region of the node's own job.
    fn holds(&self, range: LocalRange) -> bool {
        let region = self.own.iter().find(|region| region.region == range.region);
        let end = range.offset.checked_add(range.length);
        region.is_some_and(|region| end.is_some_and(|end| end <= region.length))
    }
}

impl Pending {
    fn is_to(&self, node: NodeId) -> bool {
        matches!(self.what, Body::Access { target, .. } if target == node)
    }
}

impl ServerPath {
    /// Occupies the path for `bytes`, once it is free. Returns when they are there.
    fn take(&self, now: Instant, bytes: u64) -> Instant {
        let free_at = self.free_at.get().max(now) + self.is.transfer_ns(bytes);
        self.free_at.set(free_at);
        free_at + self.is.latency_ns
    }
}

const fn receiver_of(command: &Command<'_>) -> Option<NodeId> {
    if let Command::Send { target, .. } = *command { Some(target) } else { None }
}

const fn completed(operation: OperationId, result: Result<u64, OperationError>) -> Event {
    Event::Completed { operation, result }
}
