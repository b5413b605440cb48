//! Local path of a seat: memory of other seats of its server, mapped and accessed directly.
//!
//! A peer is reached either directly or in frames, and never both: a fence does not order a frame before a
//! direct store. The path to each peer of the server is therefore decided before the job's first command to
//! it ([`peer`]). Until then such commands are `Busy`. A command that the owner would refuse is sent in a
//! frame, so that the owner counts it. It changes nothing, so it needs no order.
//!
//! A lost peer is not reached through its mapped pages either: the state of the links decides. With
//! `force_wire`, or without other seats on its server, a seat has no local path.

mod peer;

use std::path::{Path, PathBuf};

use rackloom::sharing::{CommandPath, Direct, Exporter, Importer, Seats};
use rackloom::wires::Doorbell;
use rackloom::{Clock, HostMemory};
use rackloom_control::order::SharedServer;
use rackloom_jobs::local::{count_direct, count_frames, is_shared, memory_of, moved_bytes, withheld_note};
use rackloom_jobs::{Carried, PathReport, Seat};
use rackloom_plan::Plan;
use rackloom_protocol::{
    Command, CommandRefused, Endpoint, Event, Instant, Member, NodeId, OperationError, RegionConfig, RegionId,
};
use rustix::fs::{Mode, OFlags, open};

use self::peer::{Peer, PeerPath};

/// Time between two polls of requests for this seat's memory, and of its own requests.
const POLL_INTERVAL_NS: u64 = 2_000_000;
/// Time between two polls of awaited words of memory without a doorbell. No notification comes when a word
/// changes then.
const WORD_INTERVAL_NS: u64 = 200_000;

/// Memory that a seat shares, and memory that others share with it.
pub(super) struct Sharing {
    paths: Option<LocalPaths>,
    counts: PathReport,
    /// Clock for the duration of direct operations, two readings per operation.
    clock: Clock,
    /// True if the plan has nodes that can share memory with this one.
    has_peers: bool,
    /// Events of direct operations that the seat has not handled yet.
    events: Vec<Event>,
}

struct LocalPaths {
    exporter: Exporter,
    importer: Importer,
    direct: Direct,
    peers: Vec<Peer>,
    poll_due: Instant,
    has_doorbell: bool,
    exported: Vec<RegionConfig>,
    /// Regions in which memory has refused an access of another node. A read of their awaited words may fail
    /// as well.
    failing: Vec<RegionId>,
    /// Notes about peers that had withheld their memory when this seat released it.
    had_withheld: Vec<String>,
}

/// Memory that a seat offers.
pub(super) struct Own<'a> {
    pub(super) node: NodeId,
    pub(super) server: Option<&'a SharedServer>,
    /// Process of each member of this host, by number in the plan.
    pub(super) processes: &'a [Option<u32>],
    pub(super) doorbell: Option<&'a Doorbell>,
    pub(super) regions: Vec<RegionConfig>,
}

impl Sharing {
    /// Offers this seat's regions to its server, and starts to request those of its peers. `regions_of` returns the regions of
    /// a peer's job.
    pub(super) fn begin(
        plan: &Plan,
        regions_of: &dyn Fn(NodeId) -> Vec<RegionConfig>,
        own: Own<'_>,
        memory: &mut HostMemory,
    ) -> Result<Self, String> {
        // Processes of GPU nodes have no part in the job whose memory is shared here.
        let is_node = |peer: &NodeId| plan.node_of_process(*peer).is_none();
        let peers: Vec<_> = plan.memory_peers(own.node).into_iter().filter(is_node).collect();
        let has_peers = !peers.is_empty();
        let paths = match own.server {
            Some(server) if has_peers => {
                Some(LocalPaths::open(plan, regions_of, &peers, server, own, memory)?)
            }
            _ => None,
        };
        let (counts, clock) = (PathReport::default(), Clock::begin());
        Ok(Self { paths, counts, clock, has_peers, events: Vec::new() })
    }

    /// Returns true if the path to every present peer is decided.
    pub(super) fn is_settled(&self) -> bool {
        self.paths.as_ref().is_none_or(|paths| paths.peers.iter().all(Peer::is_settled))
    }

    /// Answers requests for memory, continues this seat's own requests, and checks awaited words of memory.
    pub(super) fn poll(&mut self, now: Instant, memory: &mut HostMemory) {
        let Self { paths: Some(paths), events, .. } = self else { return };
        if now >= paths.poll_due {
            paths.poll_due = now + POLL_INTERVAL_NS;
            paths.poll_requests(now);
        }
        for region in paths.failing.drain(..) {
            if memory.fails_to_look() {
                paths.direct.fail_waits(region, &mut |event| events.push(event));
            }
        }
        paths.direct.poll(now, memory, &mut |event| events.push(event));
    }

    /// Returns the latest time for the next call of [`Self::poll`].
    pub(super) fn wake_at(&self, now: Instant) -> Instant {
        match &self.paths {
            Some(paths) if !paths.has_doorbell && paths.direct.has_waits() => now + WORD_INTERVAL_NS,
            Some(paths) if paths.is_incomplete() => paths.poll_due,
            _ => Instant::NEVER,
        }
    }

    /// Returns true if peers may map this seat's memory.
    fn is_exported(&self) -> bool {
        self.paths.as_ref().is_some_and(|paths| !paths.exported.is_empty())
    }

    /// Returns whether an awaited word of memory has changed.
    pub(super) fn is_ready(&self, memory: &HostMemory) -> bool {
        self.paths.as_ref().is_some_and(|paths| paths.direct.is_ready(memory))
    }

    /// Moves the events since the last call to `events`.
    pub(super) fn take_events(&mut self, events: &mut Vec<Event>) {
        events.append(&mut self.events);
    }

    /// Handles an event of the endpoint: the loss or restart of a peer, and refused accesses.
    pub(super) fn handle_event(&mut self, now: Instant, event: &Event) {
        let Self { paths: Some(paths), events, .. } = self else { return };
        if let Event::AccessRefused { region, error: OperationError::MemoryFailed, .. } = *event {
            // A wait for a word of this region would never end.
            paths.failing.push(region);
        }
        let (Event::NodeLost { node } | Event::NodeRestarted { node }) = *event else { return };
        paths.direct.node_lost(node, &mut |event| events.push(event));
        let Some(index) = paths.index_of(node) else { return };
        paths.direct.forget(node);
        let is_back = matches!(event, Event::NodeRestarted { .. });
        if is_back && paths.peers[index].is_seated() {
            paths.peers[index].request(now);
        } else {
            paths.importer.seats_mut().vacate(node);
            paths.exporter.seats_mut().vacate(node);
            paths.peers[index].lose();
        }
    }

    /// Handles a new process in the seat of a peer.
    pub(super) fn seated(&mut self, now: Instant, node: NodeId, process: u32) {
        let Some(paths) = &mut self.paths else { return };
        let Some(index) = paths.index_of(node) else { return };
        paths.importer.seats_mut().occupy(node, process);
        paths.exporter.seats_mut().occupy(node, process);
        paths.direct.forget(node);
        paths.peers[index].request(now);
        paths.poll_due = now;
    }

    /// Unmaps the memory of all peers, so that they can free it. All later commands go in frames. Call at the
    /// end of the job.
    pub(super) fn release(&mut self) {
        let Some(paths) = &mut self.paths else { return };
        paths.had_withheld = paths.withheld().collect();
        for peer in &mut paths.peers {
            paths.direct.forget(peer.node);
            peer.release();
        }
    }

    /// Returns the peers that still have memory of this seat mapped.
    pub(super) fn mapped_by(&self) -> impl Iterator<Item = NodeId> {
        let paths = self.paths.iter();
        paths.flat_map(|paths| {
            paths.exported.iter().flat_map(|region| paths.exporter.imported_by(region.region))
        })
    }

    /// Withdraws a region that peers may have mapped.
    ///
    /// # Errors
    /// Peers still have it mapped. The error names them.
    pub(super) fn withdraw(&mut self, memory: &mut HostMemory, region: RegionId) -> Result<(), String> {
        let Some(paths) = &mut self.paths else { return Ok(()) };
        let Some(index) = paths.exported.iter().position(|exported| exported.region == region) else {
            return Ok(());
        };
        match paths.exporter.withdraw(memory, region) {
            Ok(()) => {
                paths.exported.remove(index);
                Ok(())
            }
            Err(_) if paths.exporter.importers(region) > 0 => {
                let by: Vec<_> = paths.exporter.imported_by(region).map(|node| paths.name(node)).collect();
                Err(format!("still mapped by {}", by.join(", ")))
            }
            Err(error) => Err(error.to_string()),
        }
    }

    /// Returns the number of operations on each path; `None` if the plan has no direct path.
    pub(super) fn report(&self) -> Option<PathReport> {
        self.has_peers.then_some(self.counts)
    }

    /// Starts or stops to withhold this seat's memory from direct access. Frames only meet the faults of a
    /// script in memory. A peer that has noticed the withholding keeps to frames.
    pub(super) fn withhold(&mut self, is_withheld: bool) {
        if let Some(paths) = &mut self.paths {
            paths.exporter.withhold(is_withheld);
        }
    }

    /// Returns a note for each peer that could be reached directly and is not, with the reason.
    pub(super) fn notes(&self) -> Vec<String> {
        let Some(paths) = &self.paths else { return Vec::new() };
        let notes = paths.peers.iter().filter_map(Peer::note).chain(paths.withheld());
        notes.chain(paths.had_withheld.iter().cloned()).collect()
    }
}

impl LocalPaths {
    fn open(
        plan: &Plan,
        regions_of: &dyn Fn(NodeId) -> Vec<RegionConfig>,
        peers: &[NodeId],
        server: &SharedServer,
        own: Own<'_>,
        memory: &mut HostMemory,
    ) -> Result<Self, String> {
        let mut seats = Seats::of_plan(plan);
        for (node, process) in (0..).map(NodeId).zip(own.processes) {
            if let Some(process) = *process {
                seats.occupy(node, process);
            }
        }
        let directory = short_name(&server.directory)
            .map_err(|error| format!("cannot use {}: {error}", server.directory.display()))?;
        let mut exporter = Exporter::listen(own.node, &directory, seats.clone(), own.doorbell)
            .map_err(|error| format!("cannot offer memory in {}: {error}", server.directory.display()))?;
        let exported: Vec<_> = own.regions.into_iter().filter(is_shared).collect();
        for region in &exported {
            exporter.export(memory, *region).map_err(|error| error.to_string())?;
        }
        let is_there = |node: NodeId| seats.seat(node).is_some_and(|seat| seat.process.is_some());
        let mut found = Vec::new();
        for node in peers {
            let regions = regions_of(*node);
            let name = plan.members[node.index()].name.clone();
            found.push(Peer::new(*node, name, regions, is_there(*node)));
        }
        let importer = Importer::new(own.node, &directory, seats).with_device_of(memory);
        let has_doorbell = own.doorbell.is_some();
        let (direct, poll_due) = (Direct::default(), Instant::ZERO);
        Ok(Self {
            exporter,
            importer,
            direct,
            peers: found,
            poll_due,
            has_doorbell,
            exported,
            failing: Vec::new(),
            had_withheld: Vec::new(),
        })
    }

    fn poll_requests(&mut self, now: Instant) {
        self.exporter.serve(now, &mut |event| tracing::debug!(at_ns = now.0, "memory: {event:?}"));
        for peer in &mut self.peers {
            peer.poll(now, &self.importer, &mut self.direct);
        }
    }

    /// Returns true if a present peer has not mapped all regions of this seat, or is not mapped by it yet.
    fn is_incomplete(&self) -> bool {
        let wanted = self.peers.iter().filter(|peer| peer.is_seated()).count();
        let is_wanted = |region: &RegionConfig| self.exporter.importers(region.region) < wanted;
        self.peers.iter().any(|peer| !peer.is_settled()) || self.exported.iter().any(is_wanted)
    }

    /// Returns a note for each peer that has withheld its memory.
    fn withheld(&self) -> impl Iterator<Item = String> {
        let withheld = self.peers.iter().filter(|peer| self.direct.is_withheld(peer.node));
        withheld.map(|peer| withheld_note(peer.name()))
    }

    fn name(&self, node: NodeId) -> &str {
        self.index_of(node).map_or("?", |index| self.peers[index].name())
    }

    fn index_of(&self, node: NodeId) -> Option<usize> {
        self.peers.iter().position(|peer| peer.node == node)
    }

    fn path(&self, command: &Command<'_>) -> PeerPath {
        let Some(target) = memory_of(command) else { return PeerPath::Direct };
        let Some(index) = self.index_of(target) else { return PeerPath::Wire };
        match self.peers[index].path(command) {
            // The peer is lost. The endpoint decides the result.
            PeerPath::Direct if self.direct.is_lost(target) => PeerPath::Wire,
            path => path,
        }
    }
}

/// Seat of a job: its endpoint and its local path.
pub(super) struct OnSeat<'a> {
    pub(super) endpoint: &'a mut Endpoint,
    pub(super) memory: &'a HostMemory,
    pub(super) sharing: &'a mut Sharing,
}

impl Seat for OnSeat<'_> {
    fn command(&mut self, now: Instant, command: Command<'_>) -> Result<Carried, CommandRefused> {
        let Sharing { paths, counts, clock, events, .. } = &mut *self.sharing;
        if let Some(paths) = paths {
            match paths.path(&command) {
                PeerPath::Undecided => return Err(CommandRefused::Busy),
                PeerPath::Wire => {}
                PeerPath::Direct => {
                    let direct = &mut paths.direct;
                    let begun = moved_bytes(&command).map(|_| clock.now());
                    let handled =
                        direct.handle_command(self.memory, &command, &mut |event| events.push(event))?;
                    if handled == CommandPath::Direct {
                        count_direct(counts, &command);
                        // Commands without bytes concern only this node, such as a wait or a cancel.
                        return Ok(begun.map_or(Carried::Endpoint, |begun| Carried::Direct {
                            took_ns: Some(clock.now().since(begun)),
                        }));
                    }
                }
            }
        }
        if self.sharing.is_exported() && notifies_target(&command) {
            // The receiver of the frame may read this memory directly. Earlier accesses must be visible
            // before.
            self.memory.settle();
        }
        self.endpoint.handle_command(now, command)?;
        count_frames(&mut self.sharing.counts, &command);
        Ok(Carried::Endpoint)
    }

    fn is_reachable(&self, node: NodeId) -> bool {
        Endpoint::is_reachable(self.endpoint, node)
    }
}

/// Returns true if another node can learn from this command that this node's memory has changed.
fn notifies_target(command: &Command<'_>) -> bool {
    matches!(
        command,
        Command::Store { .. } | Command::Put { .. } | Command::Atomic { .. } | Command::Send { .. }
    )
}

/// Returns a name of the directory that is short enough for the address of a socket. It is valid until this
/// process ends.
fn short_name(directory: &Path) -> std::io::Result<PathBuf> {
    use std::os::fd::IntoRawFd;
    let directory = open(directory, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    // The descriptor stays open until the process ends, because the name is used for that long.
    Ok(PathBuf::from(format!("/proc/self/fd/{}", directory.into_raw_fd())))
}
