//! Fabric of a few members, joined by links with a fixed delay and a filter that may drop frames. It drives
//! the core and is much simpler than the simulator.
#![allow(dead_code, unused_imports, reason = "each test file uses its own part of the harness")]
#![allow(unreachable_pub, reason = "a module of test targets")]

mod commands;
mod graphs;
mod losses;
mod members;
mod settings;

use rackloom_protocol::*;

pub use commands::*;
pub use graphs::*;
pub use losses::*;
use members::{AnyMember, Seat};
pub use members::{Fails, Unread};
pub use settings::*;

pub const DELAY_NS: u64 = 1_000;
pub const REGION: RegionId = RegionId(1);
pub const KEY: Key = Key(77);
pub const REGION_BYTES: usize = 1 << 20;

/// Filter of frames in flight: (time, edge, from the edge's `a` end, bytes); returns false to drop the frame.
pub type Filter = Box<dyn FnMut(Instant, u16, bool, &mut Vec<u8>) -> bool>;

/// Frames in flight: (arrival, insertion, member, port, bytes).
type Flight = (u64, u64, usize, u16, Vec<u8>);

pub struct Fabric {
    pub now: Instant,
    pub graph: Graph,
    pub events: Vec<(Instant, usize, Event)>,
    pub filter: Filter,
    /// Seed, if data frames are delayed by up to three delays and sometimes sent twice.
    pub shuffle: Option<u64>,
    /// True if memory is available when a frame arrives.
    pub at_once: bool,
    /// True if each poll iteration sends at most one frame, so that no frame is part of a run.
    pub one_frame_per_poll: bool,
    seats: Vec<Seat>,
    flights: Vec<Flight>,
    counter: u64,
}

impl Fabric {
    pub fn new(graph: Graph, options: &Options) -> Self {
        let seats = (0..graph.members.len())
            .map(|index| Seat::new(&graph, NodeId(index as u16), options, Incarnation(1000 + index as u64)))
            .collect();
        Self {
            now: Instant::ZERO,
            graph,
            events: Vec::new(),
            filter: Box::new(|_, _, _, _| true),
            shuffle: None,
            at_once: true,
            one_frame_per_poll: false,
            seats,
            flights: Vec::new(),
            counter: 0,
        }
    }

    /// Returns a fabric whose endpoints all reach each other.
    pub fn up(graph: Graph, options: &Options) -> Self {
        let mut fabric = Self::new(graph, options);
        fabric.run_until("bring-up", |fabric| fabric.all_nodes_reach_each_other());
        fabric
    }

    pub fn all_nodes_reach_each_other(&self) -> bool {
        self.seats.iter().all(|seat| match &seat.member {
            AnyMember::Endpoint(endpoint) => !seat.alive || endpoint.reaches_all(),
            AnyMember::Switch(_) => true,
        })
    }

    pub fn endpoint(&mut self, node: usize) -> &mut Endpoint {
        match &mut self.seats[node].member {
            AnyMember::Endpoint(endpoint) => endpoint,
            AnyMember::Switch(_) => panic!("member {node} is a switch"),
        }
    }

    pub fn memory(&mut self, node: usize) -> &mut [u8] {
        self.memory_of(node, REGION)
    }

    pub fn memory_of(&mut self, node: usize, region: RegionId) -> &mut [u8] {
        self.seats[node].memory.bytes.bytes_mut(region)
    }

    /// Makes memory fail from now on where `fails` returns true.
    pub fn fail_memory(&mut self, node: usize, fails: Fails) {
        self.seats[node].memory.fails = Some(fails);
    }

    /// Makes bytes unreadable for transmission from now on where `unread` returns true.
    pub fn fail_sources(&mut self, node: usize, unread: Unread) {
        self.seats[node].memory.unread = Some(unread);
    }

    /// Adds a second region that all nodes may access.
    pub fn add_region(&mut self, node: usize, region: RegionId, length: usize) {
        self.seats[node].memory.bytes.add(region, length);
        let tenant = self.endpoint(node).config().tenants[node];
        let config = RegionConfig { region, length: length as u64, key: KEY, access: Access::ALL, tenant };
        self.endpoint(node).register(config).expect("a new name");
    }

    pub fn counters(&mut self, node: usize, port: u16) -> link::counters::PortCounters {
        self.seats[node].member.member().port_counters(PortId(port)).clone()
    }

    /// Returns the distribution of credits of each link direction: (edge, from the edge's `a` end, balance), of every
    /// channel. Frames in flight are counted on the wires, independently of the members.
    pub fn balances(&mut self) -> Vec<(usize, bool, Option<link::credits::CreditBalance>)> {
        let mut balance = Vec::new();
        for (index, edge) in self.graph.edges.clone().into_iter().enumerate() {
            for (forward, from, to) in [
                (true, (edge.a, edge.a_port), (edge.b, edge.b_port)),
                (false, (edge.b, edge.b_port), (edge.a, edge.a_port)),
            ] {
                let accounts = self.accounts(from);
                let receiver = self.accounts(to);
                for channel in (0..accounts.count() as u8).map(Channel) {
                    let (sender, receiver) = (accounts.credits(channel), receiver.credits(channel));
                    let is_here = |flight: &&Flight| flight.2 == to.0.index() && flight.3 == to.1.0;
                    let is_data = |flight: &&Flight| flight.4[wire::layout::VERSION_KIND] & 15 == 1;
                    let kept_under = |named: u8| accounts.kept_under(Channel(named));
                    let is_of_it = |flight: &&Flight| kept_under(flight.4[wire::layout::CHANNEL]) == channel;
                    let flights = self.flights.iter().filter(is_here).filter(is_data).filter(is_of_it);
                    let in_flight = flights.map(|flight| sender.cost(flight.4.len())).sum();
                    balance.push((
                        index,
                        forward,
                        link::credits::CreditBalance::of(sender, receiver, in_flight),
                    ));
                }
            }
        }
        balance
    }

    fn accounts(&mut self, (node, port): (NodeId, PortId)) -> link::accounts::Accounts {
        self.seats[node.index()].member.member().link(port).expect("a link").accounts.clone()
    }

    pub fn link(&mut self, node: usize, port: PortId) -> &link::Link {
        self.seats[node].member.member().link(port).expect("a link")
    }

    /// Returns the waits of every member's frames in transit.
    pub fn waits(&mut self) -> Vec<forwarding::waits::Wait> {
        self.seats.iter_mut().flat_map(|seat| seat.member.member().waits()).collect()
    }

    pub fn leases_held(&self, node: usize) -> usize {
        self.seats[node].wires.leases.len()
    }

    pub fn kill(&mut self, node: usize) {
        self.seats[node].alive = false;
        self.flights.retain(|flight| flight.2 != node);
    }

    /// Restarts a killed member with a new incarnation.
    pub fn restart(&mut self, node: usize, options: &Options) {
        let incarnation = Incarnation(5000 + self.now.0);
        self.seats[node] = Seat::new(&self.graph, NodeId(node as u16), options, incarnation);
    }

    pub fn command(&mut self, node: usize, command: Command<'_>) -> Result<(), CommandRefused> {
        let now = self.now;
        let result = self.endpoint(node).handle_command(now, command);
        self.drain(node);
        result
    }

    /// Issues a command. Lets time pass while the queue is full.
    pub fn submit(&mut self, node: usize, command: Command<'_>) {
        for _ in 0..100_000 {
            match self.command(node, command) {
                Ok(()) => return,
                Err(CommandRefused::Busy) => self.step(),
                Err(refused) => panic!("{refused}"),
            }
        }
        panic!("busy for ever: {:?}", self.endpoint(node).waiting_for());
    }

    pub fn outcome(&self, operation: u64) -> Option<Result<u64, OperationError>> {
        self.events.iter().find_map(|(_, _, event)| match event {
            Event::Completed { operation: id, result } if id.0 == operation => Some(*result),
            _ => None,
        })
    }

    /// Runs until an operation ends, and returns its result.
    pub fn finish(&mut self, operation: u64) -> Result<u64, OperationError> {
        self.run_until("operation", |fabric| fabric.outcome(operation).is_some());
        self.outcome(operation).expect("it has just ended")
    }

    pub fn run_until(&mut self, what: &str, mut done: impl FnMut(&Self) -> bool) {
        let limit = self.now + 2_000_000_000;
        while !done(self) {
            if self.now >= limit {
                for node in 0..self.graph.endpoint_count() {
                    eprintln!("member {node} waits for {:?}", self.endpoint(node).waiting_for());
                }
                panic!("{what}: no end in two virtual seconds");
            }
            self.step();
        }
    }

    pub fn run_for(&mut self, span_ns: u64) {
        let end = self.now + span_ns;
        while self.next_time() <= end {
            self.step();
        }
        self.now = end;
    }

    fn next_time(&mut self) -> Instant {
        let flight = self.flights.iter().map(|flight| Instant(flight.0)).min().unwrap_or(Instant::NEVER);
        self.seats
            .iter_mut()
            .filter(|seat| seat.alive)
            .map(|seat| seat.member.member().poll_timeout())
            .fold(flight, Instant::min)
    }

    /// Advances to the next time at which something happens.
    pub fn step(&mut self) {
        let next = self.next_time();
        assert!(next != Instant::NEVER, "nothing will ever happen");
        self.now = self.now.max(next);
        self.flights.sort_by_key(|flight| (flight.0, flight.1));
        let due = self.flights.iter().take_while(|flight| flight.0 <= self.now.0).count();
        let arrived: Vec<_> = self.flights.drain(..due).collect();
        for (_, _, member, port, bytes) in arrived {
            self.deliver(member, PortId(port), bytes);
        }
        for node in 0..self.seats.len() {
            if self.seats[node].alive {
                let now = self.now;
                let member = self.seats[node].member.member();
                if member.poll_timeout() <= now {
                    member.handle_timeout(now);
                }
                self.drain(node);
            }
        }
    }

    /// Delivers a frame to a member.
    pub fn deliver(&mut self, node: usize, port: PortId, bytes: Vec<u8>) {
        let now = self.now;
        let seat = &mut self.seats[node];
        if !seat.alive {
            return;
        }
        let member = seat.member.member();
        if !self.at_once || !member.take_at_once(now, port, &bytes, &mut seat.memory) {
            let lease = LeaseId(seat.wires.next_lease);
            seat.wires.next_lease = (seat.wires.next_lease + 1) % 100_000;
            seat.wires.leases.insert(lease.0, bytes.clone());
            member.handle_frame(now, port, lease, &bytes);
        }
        if member.poll_timeout() <= now {
            member.handle_timeout(now);
        }
        self.drain(node);
    }

    /// Returns an extra delay of the next frame, and true if it is sent twice.
    fn shuffled(&mut self) -> (u64, bool) {
        let Some(state) = &mut self.shuffle else { return (0, false) };
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let late = if *state >> 60 < 3 { (*state >> 33) % (3 * DELAY_NS) } else { 0 };
        (late, *state >> 40 & 15 == 0)
    }

    fn drain(&mut self, node: usize) {
        while self.drain_once(node) && self.one_frame_per_poll {}
    }

    /// Returns true if a frame has left.
    fn drain_once(&mut self, node: usize) -> bool {
        let now = self.now;
        let seat = &mut self.seats[node];
        seat.wires.holds_one = self.one_frame_per_poll;
        let mut events = Vec::new();
        drain(seat.member.member(), now, &mut seat.wires, &mut seat.memory, &mut |event| events.push(event));
        self.events.extend(events.into_iter().map(|event| (now, node, event)));
        let sent = std::mem::take(&mut self.seats[node].wires.sent);
        let has_sent = !sent.is_empty();
        for (port, mut bytes) in sent {
            let edge = self.graph.ports(NodeId(node as u16))[port.index()].edge;
            let ends = self.graph.edges[usize::from(edge)];
            let forward = ends.a.index() == node;
            let (target, target_port) = if forward { (ends.b, ends.b_port) } else { (ends.a, ends.a_port) };
            if (self.filter)(now, edge, forward, &mut bytes) {
                let (late, twice) = self.shuffled();
                for _ in 0..if twice { 2 } else { 1 } {
                    self.counter += 1;
                    let arrival = now.0 + DELAY_NS + late;
                    self.flights.push((arrival, self.counter, target.index(), target_port.0, bytes.clone()));
                }
            }
        }
        has_sent
    }
}
