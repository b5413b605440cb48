//! A few members joined by links with a fixed delay and a filter that may drop frames. Far simpler than the
//! simulator on purpose: it is here to drive the core, not to model anything.
#![allow(dead_code, reason = "each test file uses its own part of the harness")]
#![allow(unreachable_pub, reason = "a module of test targets")]

use std::collections::BTreeMap;

use rackloom_protocol::memory::vector::VectorMemory;
use rackloom_protocol::wire::frame::FrameKind;
use rackloom_protocol::*;

pub const DELAY_NS: u64 = 1_000;
pub const REGION: RegionId = RegionId(1);
pub const KEY: Key = Key(77);
pub const REGION_BYTES: usize = 1 << 20;

/// What a test may do to a frame: (time, edge, from the edge's `a` end, bytes) -> keep it?
pub type Filter = Box<dyn FnMut(Instant, u16, bool, &mut Vec<u8>) -> bool>;

enum AnyMember {
    Endpoint(Box<Endpoint>),
    Switch(Box<Switch>),
}

impl AnyMember {
    fn member(&mut self) -> &mut dyn Member {
        match self {
            Self::Endpoint(endpoint) => &mut **endpoint,
            Self::Switch(switch) => &mut **switch,
        }
    }
}

#[derive(Default)]
struct TestWires {
    slot: Vec<u8>,
    sent: Vec<(PortId, Vec<u8>)>,
    leases: BTreeMap<u32, Vec<u8>>,
    next_lease: u32,
    /// There is room for one frame until it is taken away.
    holds_one: bool,
}

impl Wires for TestWires {
    fn slot(&mut self, _port: PortId) -> Option<&mut [u8]> {
        if self.holds_one && !self.sent.is_empty() {
            return None;
        }
        self.slot.resize(9100, 0);
        Some(&mut self.slot)
    }
    fn copy_lease(&mut self, _port: PortId, lease: LeaseId, at: usize, length: usize) {
        self.slot[at..at + length].copy_from_slice(&self.leases[&lease.0][at..at + length]);
    }
    fn commit(&mut self, port: PortId, length: usize, _doorbell: bool) {
        self.sent.push((port, self.slot[..length].to_vec()));
    }
    fn fill(&mut self, port: PortId, write: &mut Write<'_>) {
        while !self.holds_one {
            let Some(length) = self.slot(port).and_then(&mut *write) else { return };
            self.commit(port, length, true);
        }
    }
    fn leased(&self, lease: LeaseId) -> &[u8] {
        &self.leases[&lease.0]
    }
    fn release(&mut self, lease: LeaseId) {
        self.leases.remove(&lease.0).expect("a lease is released once");
    }
}

/// Says of a request whether memory fails to carry it out.
pub type Fails = Box<dyn FnMut(&MemoryRequest<'_>) -> bool>;

/// Says of bytes that are about to leave whether they cannot be read: their region, offset and number.
pub type Unread = Box<dyn FnMut(RegionId, u64, usize) -> bool>;

/// Memory that may fail.
#[derive(Default)]
struct TestMemory {
    bytes: VectorMemory,
    fails: Option<Fails>,
    unread: Option<Unread>,
}

impl Memory for TestMemory {
    fn execute<'m>(&'m mut self, request: &MemoryRequest<'_>, frame: &[u8]) -> Option<MemoryDone<'m>> {
        if self.fails.as_mut().is_some_and(|fails| fails(request)) {
            return Some(MemoryDone::Failed(MemoryFault::Device));
        }
        self.bytes.execute(request, frame)
    }
    fn write_at_once(&mut self, region: RegionId, ranges: &[FrameRange], frame: &[u8]) -> bool {
        self.fails.is_none() && self.bytes.write_at_once(region, ranges, frame)
    }
    fn reads_at_once(&self) -> bool {
        true
    }
    fn read(&mut self, region: RegionId, offset: u64, out: &mut [u8]) -> Result<(), MemoryFault> {
        self.bytes.read(region, offset, out)
    }
    fn read_in_row(
        &mut self,
        region: RegionId,
        offset: u64,
        out: &mut [u8],
        _: Following,
    ) -> Result<(), MemoryFault> {
        if self.unread.as_mut().is_some_and(|unread| unread(region, offset, out.len())) {
            // Half of them have been read when that is found out.
            let half = out.len() / 2;
            self.bytes.read(region, offset, &mut out[..half])?;
            return Err(MemoryFault::Device);
        }
        self.bytes.read(region, offset, out)
    }
    fn write(&mut self, region: RegionId, offset: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        self.bytes.write(region, offset, bytes)
    }
}

struct Seat {
    member: AnyMember,
    wires: TestWires,
    memory: TestMemory,
    alive: bool,
}

/// Frames under way: (arrival, insertion, member, port, bytes).
type Flight = (u64, u64, usize, u16, Vec<u8>);

pub struct Fabric {
    pub now: Instant,
    pub graph: Graph,
    pub events: Vec<(Instant, usize, Event)>,
    pub filter: Filter,
    /// With a seed: data frames are delayed by up to three delays and sometimes sent twice.
    pub shuffle: Option<u64>,
    /// Memory is at hand when a frame comes in.
    pub at_once: bool,
    /// A member's turn is over when it has sent a frame, and it has as many turns as it wants: no frame is one of a run.
    pub one_a_turn: bool,
    seats: Vec<Seat>,
    flights: Vec<Flight>,
    counter: u64,
}

pub struct Options {
    pub transport: TransportConfig,
    pub packing: PackingConfig,
    pub paths: PathConfig,
    pub end_to_end_check: bool,
    pub tenants: Vec<Tenant>,
    pub credits: CreditConfig,
    pub retry: Option<RetryConfig>,
    pub pause: Option<PauseConfig>,
    pub resync: bool,
    pub forwarding: ForwardingConfig,
    pub update_spacing: Option<u32>,
    pub channels: ChannelConfig,
    pub datelines: Vec<u16>,
    /// Links that divide nothing among the channels, by edge.
    pub undivided: Vec<u16>,
    pub frame_bytes_max: u16,
    pub timers: LinkTimers,
}

pub fn options(mode: RetransmissionMode) -> Options {
    Options {
        transport: TransportConfig {
            mode,
            window_packets: 32,
            reorder_packets: 32,
            timeout_initial_ns: 100_000,
            timeout_min_ns: 50_000,
            timeout_max_ns: 1_000_000,
            retry_count_max: 0,
            ack_every_packets: 8,
            ack_delay_ns: 5_000,
        },
        packing: PackingConfig { mode: PackingMode::Opportunistic, operations_max: 64 },
        paths: PathConfig::default(),
        end_to_end_check: true,
        tenants: vec![Tenant(0); 64],
        credits: CreditConfig { unit_bytes: 128, overhead_bytes: 16, limit: 2000 },
        retry: None,
        pause: None,
        resync: true,
        forwarding: ForwardingConfig::default(),
        update_spacing: None,
        channels: ChannelConfig::default(),
        datelines: Vec::new(),
        undivided: Vec::new(),
        frame_bytes_max: 4352,
        timers: TIMERS,
    }
}

/// Link-level retry for the harness's links, whose loop is two delays.
pub const RETRY: RetryConfig = RetryConfig {
    sequence_bits: 20,
    outstanding_frames: 64,
    outstanding_bytes: 1 << 18,
    ack_spacing_bytes: 2_048,
    ack_delay_ns: 500,
    replay_timer_ns: RetryConfig::timer_for_loop_ns(2 * DELAY_NS),
    replay_count_max: RetryConfig::REPLAYS_UNLIMITED,
    flush: FlushPolicy::Block,
};

pub const TIMERS: LinkTimers = LinkTimers {
    heartbeat_interval_ns: 100_000,
    heartbeat_rest: 1,
    heartbeat_miss_max: 3,
    hold_down_ns: 500_000,
    up_count: 3,
    hello_interval_ns: 10_000,
};

pub fn ring(nodes: u16) -> Graph {
    let edges = (0..if nodes == 2 { 1 } else { nodes })
        .map(|node| Edge {
            a: NodeId(node),
            a_port: PortId(0),
            b: NodeId((node + 1) % nodes),
            b_port: PortId(if nodes == 2 { 0 } else { 1 }),
            plane: Plane(0),
        })
        .collect();
    Graph { members: vec![MemberRole::Endpoint; usize::from(nodes)], edges }
}

pub fn star(nodes: u16, planes: u8) -> Graph {
    let mut members = vec![MemberRole::Endpoint; usize::from(nodes)];
    let mut edges = Vec::new();
    for plane in 0..planes {
        let hub = NodeId(nodes + u16::from(plane));
        members.push(MemberRole::Switch);
        for node in 0..nodes {
            let (a_port, b_port) = (PortId(u16::from(plane)), PortId(node));
            edges.push(Edge { a: NodeId(node), a_port, b: hub, b_port, plane: Plane(plane) });
        }
    }
    Graph { members, edges }
}

pub fn mesh(nodes: u16) -> Graph {
    let mut edges = Vec::new();
    for a in 0..nodes {
        for b in a + 1..nodes {
            edges.push(Edge {
                a: NodeId(a),
                a_port: PortId(b - 1),
                b: NodeId(b),
                b_port: PortId(a),
                plane: Plane(0),
            });
        }
    }
    Graph { members: vec![MemberRole::Endpoint; usize::from(nodes)], edges }
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
            one_a_turn: false,
            seats,
            flights: Vec::new(),
            counter: 0,
        }
    }

    /// A fabric whose endpoints all reach each other.
    pub fn up(graph: Graph, options: &Options) -> Self {
        let mut fabric = Self::new(graph, options);
        fabric.run_until("bring-up", |fabric| fabric.everyone_reaches_everyone());
        fabric
    }

    pub fn everyone_reaches_everyone(&self) -> bool {
        self.seats.iter().all(|seat| match &seat.member {
            AnyMember::Endpoint(endpoint) => !seat.alive || endpoint.reaches_everyone(),
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

    /// From now on memory fails where `fails` says so.
    pub fn fail_memory(&mut self, node: usize, fails: Fails) {
        self.seats[node].memory.fails = Some(fails);
    }

    /// From now on bytes that are to leave cannot be read where `unread` says so.
    pub fn fail_sources(&mut self, node: usize, unread: Unread) {
        self.seats[node].memory.unread = Some(unread);
    }

    /// A second region that everybody may use.
    pub fn add_region(&mut self, node: usize, region: RegionId, length: usize) {
        self.seats[node].memory.bytes.add(region, length);
        let tenant = self.endpoint(node).config().tenants[node];
        let config = RegionConfig { region, length: length as u64, key: KEY, access: Access::ALL, tenant };
        self.endpoint(node).register(config).expect("a new name");
    }

    pub fn counters(&mut self, node: usize, port: u16) -> link::counters::PortCounters {
        self.seats[node].member.member().port_counters(PortId(port)).clone()
    }

    /// Where the credits of each link direction are now: (edge, from the edge's `a` end, books), of every channel. What is under way is
    /// counted on the wires, not asked of anybody.
    pub fn books(&mut self) -> Vec<(usize, bool, Option<link::credits::Books>)> {
        let mut books = Vec::new();
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
                    let under_way = flights.map(|flight| sender.cost(flight.4.len())).sum();
                    books.push((index, forward, link::credits::Books::of(sender, receiver, under_way)));
                }
            }
        }
        books
    }

    fn accounts(&mut self, (node, port): (NodeId, PortId)) -> link::accounts::Accounts {
        self.seats[node.index()].member.member().link(port).expect("a link").accounts.clone()
    }

    pub fn link(&mut self, node: usize, port: PortId) -> &link::Link {
        self.seats[node].member.member().link(port).expect("a link")
    }

    /// What every member's frames in transit wait for.
    pub fn waits(&mut self) -> Vec<switch::waits::Wait> {
        self.seats.iter_mut().flat_map(|seat| seat.member.member().waits()).collect()
    }

    pub fn leases_held(&self, node: usize) -> usize {
        self.seats[node].wires.leases.len()
    }

    pub fn kill(&mut self, node: usize) {
        self.seats[node].alive = false;
        self.flights.retain(|flight| flight.2 != node);
    }

    /// A killed member begins a new life.
    pub fn restart(&mut self, node: usize, options: &Options) {
        let life = Incarnation(5000 + self.now.0);
        self.seats[node] = Seat::new(&self.graph, NodeId(node as u16), options, life);
    }

    pub fn command(&mut self, node: usize, command: Command<'_>) -> Result<(), CommandRefused> {
        let now = self.now;
        let result = self.endpoint(node).handle_command(now, command);
        self.drain(node);
        result
    }

    /// Issue a command, letting time pass while the queue is full.
    pub fn insist(&mut self, node: usize, command: Command<'_>) {
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

    /// Run until an operation ends, and say how.
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

    /// Go to the next moment at which something happens.
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

    /// Give a member a frame.
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

    /// Extra delay of the next frame, and whether it is sent twice.
    fn shuffled(&mut self) -> (u64, bool) {
        let Some(state) = &mut self.shuffle else { return (0, false) };
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let late = if *state >> 60 < 3 { (*state >> 33) % (3 * DELAY_NS) } else { 0 };
        (late, *state >> 40 & 15 == 0)
    }

    fn drain(&mut self, node: usize) {
        while self.drain_once(node) && self.one_a_turn {}
    }

    /// Whether a frame has left.
    fn drain_once(&mut self, node: usize) -> bool {
        let now = self.now;
        let seat = &mut self.seats[node];
        seat.wires.holds_one = self.one_a_turn;
        let mut events = Vec::new();
        drain(seat.member.member(), now, &mut seat.wires, &mut seat.memory, &mut |event| events.push(event));
        self.events.extend(events.into_iter().map(|event| (now, node, event)));
        let sent = std::mem::take(&mut self.seats[node].wires.sent);
        let has_sent = !sent.is_empty();
        for (port, mut bytes) in sent {
            let (edge, ..) = self.graph.ports(NodeId(node as u16))[port.index()];
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

/// What a member of the harness is told at birth.
pub fn member_config(
    graph: &Graph,
    node: NodeId,
    options: &Options,
    incarnation: Incarnation,
) -> MemberConfig {
    MemberConfig {
        node,
        incarnation,
        epoch: 7,
        tenants: options.tenants.as_slice().into(),
        ether_type: 0x88b5,
        ports: graph
            .ports(node)
            .into_iter()
            .map(|(edge, neighbour, plane)| PortConfig {
                edge,
                neighbour,
                plane,
                credits: options.credits,
                channel_limits: Vec::new(),
                is_undivided: options.undivided.contains(&edge),
                is_dateline: options.datelines.contains(&edge),
                updates: CreditUpdates {
                    resync: options.resync,
                    spacing: options.update_spacing.unwrap_or(options.credits.limit / 4),
                },
                retry: options.retry,
                pause: options.pause,
            })
            .collect(),
        graph: graph.clone().into(),
        timers: options.timers,
        transport: options.transport,
        packing: options.packing,
        paths: options.paths,
        forwarding: options.forwarding,
        channels: options.channels.clone(),
        end_to_end_check: options.end_to_end_check,
        outstanding_loads_max: 64,
        frame_bytes_max: options.frame_bytes_max,
    }
}

impl Seat {
    fn new(graph: &Graph, node: NodeId, options: &Options, incarnation: Incarnation) -> Self {
        let config = member_config(graph, node, options, incarnation);
        let mut memory = TestMemory::default();
        let member = if graph.members[node.index()] == MemberRole::Endpoint {
            memory.bytes.add(REGION, REGION_BYTES);
            let tenant = options.tenants[node.index()];
            let mut endpoint = Endpoint::new(config);
            endpoint
                .register(RegionConfig {
                    region: REGION,
                    length: REGION_BYTES as u64,
                    key: KEY,
                    access: Access::ALL,
                    tenant,
                })
                .expect("a fresh endpoint has no regions");
            AnyMember::Endpoint(Box::new(endpoint))
        } else {
            AnyMember::Switch(Box::new(Switch::new(config)))
        };
        Self { member, wires: TestWires::default(), memory, alive: true }
    }
}

// ---- commands in short ------------------------------------------------------------------------------------------------

pub fn at(node: u16, offset: u64) -> RemoteAddress {
    RemoteAddress { node: NodeId(node), region: REGION, offset, key: KEY }
}

pub fn local(offset: u64, length: u64) -> LocalRange {
    LocalRange { region: REGION, offset, length }
}

pub fn store(id: u64, target: RemoteAddress, data: &[u8]) -> Command<'_> {
    Command::Store { operation: OperationId(id), target, data, completion: Completion::Visible }
}

pub fn posted(target: RemoteAddress, data: &[u8]) -> Command<'_> {
    Command::Store { operation: OperationId(u64::MAX), target, data, completion: Completion::Accepted }
}

pub fn load(id: u64, target: RemoteAddress, into: LocalRange) -> Command<'static> {
    Command::Load { operation: OperationId(id), target, into }
}

pub fn put(id: u64, target: RemoteAddress, source: LocalRange) -> Command<'static> {
    Command::Put { operation: OperationId(id), target, source, signal: None }
}

pub fn get(id: u64, target: RemoteAddress, into: LocalRange) -> Command<'static> {
    Command::Get { operation: OperationId(id), target, into }
}

pub fn fetch_add(id: u64, target: RemoteAddress, operand: u64) -> Command<'static> {
    atomic(id, target, AtomicKind::FetchAdd, Width::Eight, operand, 0)
}

pub fn atomic(
    id: u64,
    target: RemoteAddress,
    kind: AtomicKind,
    width: Width,
    operand: u64,
    compare: u64,
) -> Command<'static> {
    Command::Atomic { operation: OperationId(id), target, atomic: Atomic { kind, width, operand, compare } }
}

/// A reproducible filter that drops, with probability `permille` / 1000.
pub fn lossy(permille: u64, seed: u64) -> Filter {
    let mut state = seed;
    Box::new(move |_, _, _, _| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % 1000 >= permille
    })
}

/// Loses so many per mille of what is routed from end to end, and nothing that belongs to a link.
pub fn lossy_data_and_acks(permille: u64, seed: u64) -> Filter {
    let mut any = lossy(permille, seed);
    Box::new(move |now, edge, forward, bytes| match FrameKind::peek(bytes) {
        Some(FrameKind::Data | FrameKind::Ack) => any(now, edge, forward, bytes),
        _ => true,
    })
}

/// Dice that say yes once in eight times.
pub fn one_in_eight(seed: u64) -> impl FnMut() -> bool {
    let mut state = seed;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 61 == 0
    }
}
