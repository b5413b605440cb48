//! The GPU of a node: operations begin after a latency, and only so many are in flight.
//!
//! A command of the job takes one of two paths. Loads, stores and atomics take the load/store path; puts, gets and messages the
//! bulk path. It occupies its path from the request until its completion, waits for the latency of the path and for the
//! node's own work that was begun before, and then goes to the endpoint. A full path refuses commands as busy, like a full
//! queue of the endpoint. Waits and cancels pass at once. A fence or a flush is busy while commands wait, because it concerns them.
//!
//! Work in the node's own memory ([`WorkClock`]) takes its time one piece after the other. Its effect on bytes is immediate; commands
//! that follow are late.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use rackloom_jobs::report::{DeviceUse, PathUse};
use rackloom_plan::DeviceModel;
use rackloom_protocol::{
    Atomic, Command, CommandRefused, Completion, Endpoint, Event, Instant, LocalRange, Member, NodeId,
    OperationError, OperationId, RemoteAddress, Signal,
};

use crate::cells::{Moment, Number};

/// Number of commands that wait for their begin where no key limits the path.
const PENDING_MAX: usize = 4_096;

/// Time of a node's work in its own memory.
#[derive(Clone, Debug)]
pub(crate) struct WorkClock {
    model: DeviceModel,
    /// End of all work that was begun.
    busy_until: Arc<Moment>,
    /// Time of all work that was begun.
    work_ns: Arc<Number>,
}

impl WorkClock {
    /// Adds work that reads and writes `moved_bytes` and computes `reduced_bytes` of results, after all earlier work.
    pub(crate) fn add(&self, now: Instant, moved_bytes: u64, reduced_bytes: u64) {
        let begin = self.busy_until.get().max(now);
        let work_ns = self.model.work_ns(moved_bytes, reduced_bytes);
        self.busy_until.set(begin + work_ns);
        self.work_ns.set(self.work_ns.get() + work_ns);
    }

    /// Returns true if work has not ended.
    pub(crate) fn is_busy(&self, now: Instant) -> bool {
        self.busy_until.get() > now
    }
}

/// Path of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PathKind {
    LoadStore,
    Bulk,
}

/// The GPU of one node.
#[derive(Debug)]
pub(crate) struct Device {
    load_store: Path,
    bulk: Path,
    work: WorkClock,
    /// Paths of the operations that the endpoint has accepted.
    in_flight: BTreeMap<OperationId, PathKind>,
}

/// One of the two paths.
#[derive(Debug)]
struct Path {
    /// Most operations at once, waiting ones included.
    limit: usize,
    latency_ns: u64,
    in_flight: usize,
    /// Most operations in flight until now.
    most: usize,
    /// Sum over the operations of their time in flight, until `changed_at`.
    occupied_ns: u64,
    changed_at: Instant,
    /// Commands that have not begun, in order of their begin.
    pending: VecDeque<(Instant, OwnedCommand)>,
}

/// Command that owns its data.
#[derive(Debug)]
enum OwnedCommand {
    Store { operation: OperationId, target: RemoteAddress, data: Box<[u8]>, completion: Completion },
    Load { operation: OperationId, target: RemoteAddress, into: LocalRange },
    Atomic { operation: OperationId, target: RemoteAddress, atomic: Atomic },
    Put { operation: OperationId, target: RemoteAddress, source: LocalRange, signal: Option<Signal> },
    Get { operation: OperationId, target: RemoteAddress, into: LocalRange },
    Send { operation: OperationId, target: NodeId, tag: u64, source: LocalRange },
}

impl OwnedCommand {
    /// Returns the command with its path, or `None` if it takes neither path.
    fn of(command: &Command<'_>) -> Option<(PathKind, Self)> {
        Some(match *command {
            Command::Store { operation, target, data, completion } => {
                (PathKind::LoadStore, Self::Store { operation, target, data: data.into(), completion })
            }
            Command::Load { operation, target, into } => {
                (PathKind::LoadStore, Self::Load { operation, target, into })
            }
            Command::Atomic { operation, target, atomic } => {
                (PathKind::LoadStore, Self::Atomic { operation, target, atomic })
            }
            Command::Put { operation, target, source, signal } => {
                (PathKind::Bulk, Self::Put { operation, target, source, signal })
            }
            Command::Get { operation, target, into } => {
                (PathKind::Bulk, Self::Get { operation, target, into })
            }
            Command::Send { operation, target, tag, source } => {
                (PathKind::Bulk, Self::Send { operation, target, tag, source })
            }
            _ => return None,
        })
    }

    fn borrowed(&self) -> Command<'_> {
        match *self {
            Self::Store { operation, target, ref data, completion } => {
                Command::Store { operation, target, data, completion }
            }
            Self::Load { operation, target, into } => Command::Load { operation, target, into },
            Self::Atomic { operation, target, atomic } => Command::Atomic { operation, target, atomic },
            Self::Put { operation, target, source, signal } => {
                Command::Put { operation, target, source, signal }
            }
            Self::Get { operation, target, into } => Command::Get { operation, target, into },
            Self::Send { operation, target, tag, source } => Command::Send { operation, target, tag, source },
        }
    }

    const fn operation(&self) -> OperationId {
        match *self {
            Self::Store { operation, .. }
            | Self::Load { operation, .. }
            | Self::Atomic { operation, .. }
            | Self::Put { operation, .. }
            | Self::Get { operation, .. }
            | Self::Send { operation, .. } => operation,
        }
    }

    /// Returns the node at the other end.
    const fn target(&self) -> NodeId {
        match *self {
            Self::Store { target, .. }
            | Self::Load { target, .. }
            | Self::Atomic { target, .. }
            | Self::Put { target, .. }
            | Self::Get { target, .. } => target.node,
            Self::Send { target, .. } => target,
        }
    }

    /// Returns the own memory that the command reads or writes.
    const fn own_range(&self) -> Option<LocalRange> {
        match *self {
            Self::Store { .. } | Self::Atomic { .. } => None,
            Self::Load { into, .. } | Self::Get { into, .. } => Some(into),
            Self::Put { source, .. } | Self::Send { source, .. } => Some(source),
        }
    }

    /// Returns the error of a command that the endpoint refuses for good when it begins. Own memory may have been revoked since the request.
    fn error_of(&self, refused: CommandRefused, endpoint: &Endpoint) -> OperationError {
        let is_revoked =
            self.own_range().is_some_and(|range| endpoint.access_of(range.region, self.target()).is_none());
        match refused {
            CommandRefused::Invalid(_) if is_revoked => OperationError::Revoked,
            CommandRefused::Invalid(_) => OperationError::OutOfBounds,
            _ => OperationError::Unreachable,
        }
    }

    /// Returns true if a completion follows.
    const fn completes(&self) -> bool {
        !matches!(self, Self::Store { completion: Completion::Accepted, .. })
    }
}

impl Path {
    /// Removes and returns the first command if its time has come.
    fn take_due(&mut self, now: Instant) -> Option<(Instant, OwnedCommand)> {
        self.pending.front().filter(|(begin, _)| *begin <= now)?;
        self.pending.pop_front()
    }

    /// Counts one more operation in flight.
    fn occupy(&mut self, now: Instant) {
        self.pass_time(now);
        self.in_flight += 1;
        self.most = self.most.max(self.in_flight);
    }

    /// Frees the slot of an operation.
    fn free(&mut self, now: Instant) {
        self.pass_time(now);
        self.in_flight -= 1;
    }

    fn pass_time(&mut self, now: Instant) {
        self.occupied_ns += now.since(self.changed_at) * self.in_flight as u64;
        self.changed_at = now;
    }

    /// Returns the use of the path until now; `None` if nothing limits it.
    fn in_use(&mut self, now: Instant) -> Option<PathUse> {
        self.pass_time(now);
        let is_limited = self.limit < usize::MAX;
        is_limited.then_some(PathUse {
            occupied_ns: self.occupied_ns,
            most: self.most as u64,
            slots: self.limit as u64,
        })
    }
}

impl Device {
    /// Returns the GPU of a node, or `None` if the model limits nothing.
    pub(crate) fn new(model: DeviceModel) -> Option<Self> {
        let path = |limit: Option<usize>, latency_ns| Path {
            limit: limit.unwrap_or(usize::MAX),
            latency_ns,
            in_flight: 0,
            most: 0,
            occupied_ns: 0,
            changed_at: Instant::ZERO,
            pending: VecDeque::new(),
        };
        model.limits_operations().then(|| Self {
            load_store: path(model.load_store_max(), model.load_store_latency_ns),
            bulk: path(model.bulk_max(), model.bulk_latency_ns),
            work: WorkClock { model, busy_until: Arc::default(), work_ns: Arc::default() },
            in_flight: BTreeMap::new(),
        })
    }

    /// Returns the clock of the node's work, if the model limits work.
    pub(crate) fn work_clock(&self) -> Option<WorkClock> {
        self.work.model.limits_work().then(|| self.work.clone())
    }

    /// Takes a command of the job, or gives it to the endpoint at once.
    pub(crate) fn command(
        &mut self,
        now: Instant,
        command: Command<'_>,
        endpoint: &mut Endpoint,
    ) -> Result<(), CommandRefused> {
        let Some((kind, owned)) = OwnedCommand::of(&command) else {
            let concerns_pending = matches!(command, Command::Fence { .. } | Command::Flush { .. });
            if concerns_pending && self.has_pending() {
                return Err(CommandRefused::Busy);
            }
            return endpoint.handle_command(now, command);
        };
        let free_at = now.max(self.work.busy_until.get());
        let path = self.path_mut(kind);
        if path.in_flight >= path.limit || path.pending.len() >= PENDING_MAX {
            return Err(CommandRefused::Busy);
        }
        let begin = free_at + path.latency_ns;
        if begin <= now && path.pending.is_empty() {
            endpoint.handle_command(now, command)?;
            self.note_begun(now, kind, &owned);
            return Ok(());
        }
        let target = owned.target();
        if !endpoint.is_reachable(target) {
            return Err(CommandRefused::Unreachable(target));
        }
        let path = self.path_mut(kind);
        path.occupy(now);
        path.pending.push_back((begin, owned));
        Ok(())
    }

    /// Gives the endpoint the commands whose time has come. Commands that it refuses for good end with an error.
    pub(crate) fn poll(&mut self, now: Instant, endpoint: &mut Endpoint, events: &mut Vec<Event>) {
        for kind in [PathKind::LoadStore, PathKind::Bulk] {
            while let Some((_, owned)) = self.path_mut(kind).take_due(now) {
                match endpoint.handle_command(now, owned.borrowed()) {
                    Ok(()) => {
                        self.path_mut(kind).free(now);
                        self.note_begun(now, kind, &owned);
                    }
                    Err(CommandRefused::Busy) => {
                        self.path_mut(kind).pending.push_front((now, owned));
                        break;
                    }
                    Err(refused) => {
                        self.path_mut(kind).free(now);
                        let error = owned.error_of(refused, endpoint);
                        let operation = owned.operation();
                        events.push(Event::Completed { operation, result: Err(error) });
                    }
                }
            }
        }
    }

    /// Frees the slot of an operation that has ended.
    pub(crate) fn handle_event(&mut self, now: Instant, event: &Event) {
        if let Event::Completed { operation, .. } = event
            && let Some(kind) = self.in_flight.remove(operation)
        {
            self.path_mut(kind).free(now);
        }
    }

    /// Returns the use of the parts until now.
    pub(crate) fn in_use(&mut self, now: Instant) -> DeviceUse {
        let work_ns = self.work.model.limits_work().then(|| self.work.work_ns.get());
        DeviceUse { load_store: self.load_store.in_use(now), bulk: self.bulk.in_use(now), work_ns }
    }

    /// Returns when the next command begins or the node's work ends; `Instant::NEVER` if neither is to come.
    pub(crate) fn next_due(&self, now: Instant) -> Instant {
        let begins = [&self.load_store, &self.bulk].into_iter().filter_map(|path| path.pending.front());
        let begins = begins.map(|(begin, _)| *begin);
        begins.chain([self.work.busy_until.get()]).filter(|at| *at > now).min().unwrap_or(Instant::NEVER)
    }

    /// Returns a line about commands that wait, if there are any.
    pub(crate) fn waiting_for(&self) -> Option<String> {
        let pending = self.load_store.pending.len() + self.bulk.pending.len();
        (pending > 0).then(|| format!("{pending} operations wait for their begin on the device"))
    }

    fn has_pending(&self) -> bool {
        !self.load_store.pending.is_empty() || !self.bulk.pending.is_empty()
    }

    const fn path_mut(&mut self, kind: PathKind) -> &mut Path {
        match kind {
            PathKind::LoadStore => &mut self.load_store,
            PathKind::Bulk => &mut self.bulk,
        }
    }

    /// Counts an operation that the endpoint has accepted, until its completion.
    fn note_begun(&mut self, now: Instant, kind: PathKind, command: &OwnedCommand) {
        if command.completes() {
            self.path_mut(kind).occupy(now);
            self.in_flight.insert(command.operation(), kind);
        }
    }
}
