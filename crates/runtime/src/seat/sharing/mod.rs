//! Local path of a seat: memory of other seats of its server, mapped and used directly.
//!
//! A peer is reached either directly or in frames, and never both: a fence does not order a frame before a direct store. The path to each peer of
//! the server is therefore decided before the job's first command to it ([`peer`]); until then such commands are `Busy`. A command that the
//! owner would refuse is sent in a frame, so that the owner counts it; it changes nothing, so there is nothing to order.
//!
//! A lost peer is not reached through its mapped pages either: the state of the links decides. With `force_wire`, or without other seats on its
//! server, a seat has no local path.

mod peer;

use std::path::{Path, PathBuf};

use rackloom::sharing::{Direct, Exporter, Importer, Seats, Taken};
use rackloom::wires::Doorbell;
use rackloom::{Clock, HostMemory};
use rackloom_control::order::SharedServer;
use rackloom_jobs::collective::Inputs;
use rackloom_jobs::local::{count_direct, count_frames, is_shared, memory_of, moved_bytes, withheld_note};
use rackloom_jobs::{Carried, PathReport, Seat, Seeds};
use rackloom_plan::Plan;
use rackloom_protocol::{
    Command, CommandRefused, Endpoint, Event, Instant, Member, NodeId, OperationError, RegionConfig, RegionId,
};
use rustix::fs::{Mode, OFlags, open};

use self::peer::{Peer, Way};

/// How often a seat looks who asks for its memory, and how its own questions fare.
const LOOK_INTERVAL_NS: u64 = 2_000_000;
/// Without a doorbell nobody rings when a word changes, so a seat that waits for one looks this often.
const WORD_INTERVAL_NS: u64 = 200_000;

/// Memory that a seat shares, and memory that others share with it.
pub(super) struct Sharing {
    ways: Option<Ways>,
    counts: PathReport,
    /// Times each direct operation: two readings per operation.
    clock: Clock,
    /// Whether the plan has anybody to share with.
    has_peers: bool,
    /// What ended beside the wire, for the seat to tell.
    events: Vec<Event>,
}

struct Ways {
    exporter: Exporter,
    importer: Importer,
    direct: Direct,
    peers: Vec<Peer>,
    look_due: Instant,
    has_doorbell: bool,
    exported: Vec<RegionConfig>,
    /// Regions in which memory has refused an access of another node, so that a look at their words may fail as well.
    doubted: Vec<RegionId>,
    /// What there was to tell of peers that withheld their memory when this seat let go of it.
    had_withheld: Vec<String>,
}

/// Memory that a seat offers.
pub(super) struct Own<'a> {
    pub(super) node: NodeId,
    pub(super) seeds: Seeds,
    pub(super) server: Option<&'a SharedServer>,
    /// Process of each member of this host, by number in the plan.
    pub(super) processes: &'a [Option<u32>],
    pub(super) doorbell: Option<&'a Doorbell>,
    pub(super) regions: Vec<RegionConfig>,
}

impl Sharing {
    /// Offer this seat's regions to its server, and begin to ask for the others'.
    pub(super) fn begin(
        plan: &Plan,
        inputs: &Inputs,
        own: Own<'_>,
        memory: &mut HostMemory,
    ) -> Result<Self, String> {
        let peers = plan.memory_peers(own.node);
        let has_peers = !peers.is_empty();
        let ways = match own.server {
            Some(server) if has_peers => Some(Ways::open(plan, inputs, &peers, server, own, memory)?),
            _ => None,
        };
        let (counts, clock) = (PathReport::default(), Clock::begin());
        Ok(Self { ways, counts, clock, has_peers, events: Vec::new() })
    }

    /// Whether the way to every peer that is there is decided.
    pub(super) fn is_settled(&self) -> bool {
        self.ways.as_ref().is_none_or(|ways| ways.peers.iter().all(Peer::is_settled))
    }

    /// Answer who asks, get further with one's own questions, look at the words that are waited for.
    pub(super) fn poll(&mut self, now: Instant, memory: &mut HostMemory) {
        let Self { ways: Some(ways), events, .. } = self else { return };
        if now >= ways.look_due {
            ways.look_due = now + LOOK_INTERVAL_NS;
            ways.look(now, memory);
        }
        for region in ways.doubted.drain(..) {
            if memory.fails_to_look() {
                ways.direct.fail_waits(region, &mut |event| events.push(event));
            }
        }
        ways.direct.poll(now, memory, &mut |event| events.push(event));
    }

    /// When [`Self::poll`] has to be called at the latest.
    pub(super) fn wake_at(&self, now: Instant) -> Instant {
        match &self.ways {
            Some(ways) if !ways.has_doorbell && ways.direct.has_waits() => now + WORD_INTERVAL_NS,
            Some(ways) if ways.is_young() => ways.look_due,
            _ => Instant::NEVER,
        }
    }

    /// Returns whether others may map this seat's memory.
    fn has_opened(&self) -> bool {
        self.ways.as_ref().is_some_and(|ways| !ways.exported.is_empty())
    }

    /// Returns whether an awaited word of memory has changed.
    pub(super) fn is_ready(&self, memory: &HostMemory) -> bool {
        self.ways.as_ref().is_some_and(|ways| ways.direct.is_ready(memory))
    }

    /// What ended since the last call.
    pub(super) fn take_events(&mut self, events: &mut Vec<Event>) {
        events.append(&mut self.events);
    }

    /// The endpoint says how a peer is.
    pub(super) fn hear(&mut self, now: Instant, event: &Event) {
        let Self { ways: Some(ways), events, .. } = self else { return };
        if let Event::AccessRefused { region, error: OperationError::MemoryFailed, .. } = *event {
            // Who waits for a word there would see it change no more.
            ways.doubted.push(region);
        }
        let (Event::NodeLost { node } | Event::NodeRestarted { node }) = *event else { return };
        ways.direct.node_lost(node, &mut |event| events.push(event));
        let Some(place) = ways.place(node) else { return };
        ways.direct.forget(node);
        let is_back = matches!(event, Event::NodeRestarted { .. });
        if is_back && ways.peers[place].is_seated() {
            ways.peers[place].ask(now);
        } else {
            ways.importer.seats_mut().vacate(node);
            ways.exporter.seats_mut().vacate(node);
            ways.peers[place].lose();
        }
    }

    /// Handles a new process in the seat of a peer.
    pub(super) fn seated(&mut self, now: Instant, node: NodeId, process: u32) {
        let Some(ways) = &mut self.ways else { return };
        let Some(place) = ways.place(node) else { return };
        ways.importer.seats_mut().occupy(node, process);
        ways.exporter.seats_mut().occupy(node, process);
        ways.direct.forget(node);
        ways.peers[place].ask(now);
        ways.look_due = now;
    }

    /// The job is over: let go of what others share, so that they can free it. Nothing goes beside the wire any more.
    pub(super) fn let_go(&mut self) {
        let Some(ways) = &mut self.ways else { return };
        ways.had_withheld = ways.withheld().collect();
        for peer in &mut ways.peers {
            ways.direct.forget(peer.node);
            peer.let_go();
        }
    }

    /// Peers that still have some of this seat's memory mapped.
    pub(super) fn mapped_by(&self) -> impl Iterator<Item = NodeId> {
        let ways = self.ways.iter();
        ways.flat_map(|ways| ways.exported.iter().flat_map(|region| ways.exporter.imported_by(region.region)))
    }

    /// Take a region back that others may have mapped. An error says who still has it.
    pub(super) fn withdraw(&mut self, memory: &mut HostMemory, region: RegionId) -> Result<(), String> {
        let Some(ways) = &mut self.ways else { return Ok(()) };
        let Some(place) = ways.exported.iter().position(|exported| exported.region == region) else {
            return Ok(());
        };
        match ways.exporter.withdraw(memory, region) {
            Ok(()) => {
                ways.exported.remove(place);
                Ok(())
            }
            Err(_) if ways.exporter.importers(region) > 0 => {
                let by: Vec<_> = ways.exporter.imported_by(region).map(|node| ways.name(node)).collect();
                Err(format!("still mapped by {}", by.join(", ")))
            }
            Err(error) => Err(error.to_string()),
        }
    }

    /// Who carried the operations, if somebody else than the wire could have.
    pub(super) fn report(&self) -> Option<PathReport> {
        self.has_peers.then_some(self.counts)
    }

    /// From now on whoever has mapped this seat's memory asks in frames, or need not any longer: only these meet what a fault script
    /// does to memory. Who has found that out stays with frames.
    pub(super) fn withhold(&mut self, is_withheld: bool) {
        if let Some(ways) = &mut self.ways {
            ways.exporter.withhold(is_withheld);
        }
    }

    /// Peers that could be reached directly and are not, and why.
    pub(super) fn notes(&self) -> Vec<String> {
        let Some(ways) = &self.ways else { return Vec::new() };
        let notes = ways.peers.iter().filter_map(Peer::note).chain(ways.withheld());
        notes.chain(ways.had_withheld.iter().cloned()).collect()
    }
}

impl Ways {
    fn open(
        plan: &Plan,
        inputs: &Inputs,
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
            let regions = rackloom_jobs::build_on(plan, *node, own.seeds, inputs).regions();
            let name = plan.members[node.index()].name.clone();
            found.push(Peer::new(*node, name, regions, is_there(*node)));
        }
        let importer = Importer::new(own.node, &directory, seats).with_device_of(memory);
        let has_doorbell = own.doorbell.is_some();
        let (direct, look_due) = (Direct::default(), Instant::ZERO);
        Ok(Self {
            exporter,
            importer,
            direct,
            peers: found,
            look_due,
            has_doorbell,
            exported,
            doubted: Vec::new(),
            had_withheld: Vec::new(),
        })
    }

    fn look(&mut self, now: Instant, memory: &HostMemory) {
        self.exporter.serve(now, memory, &mut |event| tracing::debug!(at_ns = now.0, "memory: {event:?}"));
        for peer in &mut self.peers {
            peer.look(now, &self.importer, &mut self.direct);
        }
    }

    /// Whether somebody who is there has not mapped everything yet, or is not mapped.
    fn is_young(&self) -> bool {
        let wanted = self.peers.iter().filter(|peer| peer.is_seated()).count();
        let is_wanted = |region: &RegionConfig| self.exporter.importers(region.region) < wanted;
        self.peers.iter().any(|peer| !peer.is_settled()) || self.exported.iter().any(is_wanted)
    }

    /// Peers that have withheld their memory.
    fn withheld(&self) -> impl Iterator<Item = String> {
        let withheld = self.peers.iter().filter(|peer| self.direct.is_withheld(peer.node));
        withheld.map(|peer| withheld_note(peer.name()))
    }

    fn name(&self, node: NodeId) -> &str {
        self.place(node).map_or("?", |place| self.peers[place].name())
    }

    fn place(&self, node: NodeId) -> Option<usize> {
        self.peers.iter().position(|peer| peer.node == node)
    }

    fn way(&self, command: &Command<'_>) -> Way {
        let Some(target) = memory_of(command) else { return Way::Direct };
        let Some(place) = self.place(target) else { return Way::Wire };
        match self.peers[place].way(command) {
            // Nobody answers there any more; the wire says how that ends.
            Way::Direct if self.direct.is_lost(target) => Way::Wire,
            way => way,
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
        let Sharing { ways, counts, clock, events, .. } = &mut *self.sharing;
        if let Some(ways) = ways {
            match ways.way(&command) {
                Way::NotYet => return Err(CommandRefused::Busy),
                Way::Wire => {}
                Way::Direct => {
                    let direct = &mut ways.direct;
                    let begun = moved_bytes(&command).map(|_| clock.now());
                    let taken =
                        direct.handle_command(self.memory, &command, &mut |event| events.push(event))?;
                    if taken == Taken::Here {
                        count_direct(counts, &command);
                        // Without bytes it concerns only this side: a wait, a cancel.
                        return Ok(begun.map_or(Carried::Endpoint, |begun| Carried::Direct {
                            took_ns: Some(clock.now().since(begun)),
                        }));
                    }
                }
            }
        }
        if self.sharing.has_opened() && tells_something(&command) {
            // Who hears of it by a frame may look at this memory beside the wire: what was done to it before comes before.
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

/// Whether another node can learn by it that something has happened here.
fn tells_something(command: &Command<'_>) -> bool {
    matches!(
        command,
        Command::Store { .. } | Command::Put { .. } | Command::Atomic { .. } | Command::Send { .. }
    )
}

/// A name of the directory that fits into a socket's address, for as long as this process lives.
fn short_name(directory: &Path) -> std::io::Result<PathBuf> {
    use std::os::fd::IntoRawFd;
    let directory = open(directory, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    // Kept open until the process ends: the name is used for as long as there is a seat.
    Ok(PathBuf::from(format!("/proc/self/fd/{}", directory.into_raw_fd())))
}
