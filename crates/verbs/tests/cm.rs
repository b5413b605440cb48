//! Connections between the identifiers of two processes, without a fabric: messages wait in queues until the test delivers them.

use std::collections::VecDeque;
use std::sync::Arc;

use rackloom_verbs::cm::{
    ACCEPT_DATA_BYTES, Event, Host, Kind, Link, Manager, REASON_CONSUMER, REASON_NO_LISTENER, Settings, Side,
    State,
};
use rackloom_verbs::engine::{Events, PeerEvent, Process};
use rustix::io::Errno;

const SPACE: u16 = 0x106;
const PORT: u16 = 7174;
const SECOND_NS: u64 = 1_000_000_000;

/// Queue pairs that were made ready, and those in error.
#[derive(Default)]
struct Surroundings {
    process: u16,
    is_alone: bool,
    refuses: bool,
    sent: VecDeque<(Process, Vec<u8>)>,
    arrived: Vec<PeerEvent>,
    ready: Vec<(u32, Link)>,
    failed: Vec<u32>,
}

impl Host for Surroundings {
    fn own_node(&self) -> u32 {
        self.process.into()
    }
    fn own_process(&self) -> Process {
        Process(self.process)
    }
    fn port_count(&self) -> u8 {
        1
    }

    fn processes(&self, node: u32) -> Vec<Process> {
        vec![Process(u16::try_from(node).expect("a small number")), Process(9)]
    }
    fn node_of_process(&self, process: Process) -> Option<u32> {
        (process.0 < 2).then_some(process.0.into())
    }
    fn reaches_process(&self, process: Process) -> bool {
        process.0 < 2 && !self.is_alone
    }
    fn reaches_node(&self, node: u32) -> bool {
        node < 2 && !self.is_alone
    }
    fn send_note(&mut self, to: Process, bytes: Vec<u8>) {
        self.sent.push_back((to, bytes));
    }
    fn take_peer_events(&mut self) -> Vec<PeerEvent> {
        std::mem::take(&mut self.arrived)
    }
    fn connect(&mut self, queue_pair: u32, link: &Link, _now_ns: u64) -> Result<(), Errno> {
        self.ready.push((queue_pair, *link));
        if self.refuses { Err(Errno::INVAL) } else { Ok(()) }
    }
    fn fail(&mut self, queue_pair: u32, _now_ns: u64) {
        self.failed.push(queue_pair);
    }
}

/// Process with its identifiers and one queue of events.
struct End {
    manager: Manager,
    host: Surroundings,
    events: Arc<Events<Event>>,
}

impl End {
    fn new(process: u16) -> Self {
        let events = Arc::new(Events::new().expect("a descriptor"));
        rustix::fs::fcntl_setfl(events.descriptor(), rustix::fs::OFlags::NONBLOCK).expect("a flag");
        let host = Surroundings { process, ..Surroundings::default() };
        Self { manager: Manager::new(u64::from(process) << 40 | 7), host, events }
    }

    fn id(&mut self) -> u64 {
        self.manager.make(Arc::clone(&self.events), SPACE).expect("an identifier")
    }

    fn event(&self) -> Event {
        self.events.next(|_| ()).expect("an event")
    }

    /// Takes all events, as kinds and statuses.
    fn kinds(&self) -> Vec<(Kind, i32)> {
        std::iter::from_fn(|| self.events.next(|_| ()).ok()).map(|event| (event.kind, event.status)).collect()
    }

    fn listener(&mut self, backlog: i32) -> u64 {
        let id = self.id();
        self.manager.bind(id, PORT).expect("a free port");
        self.manager.listen(id, backlog).expect("a listener");
        id
    }

    /// Returns an identifier with a route to node 1 and a queue pair.
    fn routed(&mut self) -> u64 {
        let id = self.id();
        self.manager.resolve_address(id, (1, PORT), SECOND_NS, 0, &mut self.host).expect("a call");
        self.manager.resolve_route(id).expect("a call");
        assert_eq!(self.kinds(), [(Kind::AddressResolved, 0), (Kind::RouteResolved, 0)]);
        self.manager.set_queue_pair(id, Some(0x11)).expect("it exists");
        id
    }

    fn connect(&mut self, id: u64, data: &[u8]) {
        let side = Side { responder_resources: 3, initiator_depth: 5, rnr_retry_count: 6, ..Side::default() };
        let settings = Settings { side, retry_count: 4, data: data.to_vec() };
        self.manager.connect(id, settings, 0, &mut self.host).expect("a route");
    }

    fn disconnect(&mut self, id: u64) {
        self.manager.disconnect(id, 0, &mut self.host).expect("a connection");
    }
}

/// Delivers messages until none is left.
fn deliver(ends: &mut [End; 2]) {
    loop {
        let mut is_idle = true;
        for from in 0..2 {
            while let Some((to, bytes)) = ends[from].host.sent.pop_front() {
                is_idle = false;
                let from = Process(u16::try_from(from).expect("0 or 1"));
                let end = &mut ends[usize::from(to.0)];
                end.host.arrived.push(PeerEvent::Note { from, bytes });
                end.manager.poll(0, &mut end.host);
            }
        }
        if is_idle {
            return;
        }
    }
}

/// Returns two processes, the identifier that requests, and the one that a listener got.
fn requested() -> ([End; 2], u64, u64) {
    let mut ends = [End::new(0), End::new(1)];
    let listener = ends[1].listener(1);
    let id = ends[0].routed();
    ends[0].connect(id, b"hello");
    deliver(&mut ends);
    let event = ends[1].event();
    let child = event.child.expect("an identifier");
    assert_eq!((event.id, event.kind, &event.data[..]), (listener, Kind::ConnectRequest, &b"hello"[..]));
    assert_eq!((child.node, child.own_port), (0, PORT));
    assert_eq!((event.side.queue_pair, event.side.initiator_depth, event.retry_count), (0x11, 5, 4));
    ends[1].manager.note_request(child.number);
    ends[1].manager.set_queue_pair(child.number, Some(0x22)).expect("it exists");
    (ends, id, child.number)
}

fn accept(end: &mut End, child: u64, data: &[u8]) {
    let side = Side { responder_resources: 2, initiator_depth: 3, rnr_retry_count: 7, ..Side::default() };
    let settings = Settings { side, retry_count: 0, data: data.to_vec() };
    end.manager.accept(child, settings, 0, &mut end.host).expect("a request");
}

fn connected() -> ([End; 2], u64, u64) {
    let (mut ends, id, child) = requested();
    accept(&mut ends[1], child, &[1; ACCEPT_DATA_BYTES]);
    deliver(&mut ends);
    let event = ends[0].event();
    assert_eq!((event.kind, event.status, event.data.len()), (Kind::Established, 0, ACCEPT_DATA_BYTES));
    assert_eq!(ends[1].kinds(), [(Kind::Established, 0)]);
    (ends, id, child)
}

#[test]
fn both_queue_pairs_of_a_connection_get_each_other_s_numbers() {
    let (ends, ..) = connected();
    let [(client, to_server), (server, to_client)] = [&ends[0].host.ready[0], &ends[1].host.ready[0]];
    assert_eq!((*client, *server), (0x11, 0x22));
    assert_eq!((to_server.node, to_client.node), (1, 0));
    assert_eq!((to_server.peer.queue_pair, to_client.peer.queue_pair), (0x22, 0x11));
    assert_eq!(to_server.own.first_message, to_client.peer.first_message);
    assert_eq!(to_server.peer.first_message, to_client.own.first_message);
    assert_eq!((to_server.retry_count, to_client.retry_count), (4, 4));
}

#[test]
fn each_side_gets_one_event_about_the_end_of_a_connection() {
    let (mut ends, id, child) = connected();
    ends[0].disconnect(id);
    deliver(&mut ends);
    assert_eq!(ends[0].kinds(), [(Kind::Disconnected, 0)]);
    assert_eq!(ends[1].kinds(), [(Kind::Disconnected, 0)]);
    assert_eq!((&ends[0].host.failed[..], &ends[1].host.failed[..]), (&[0x11][..], &[][..]));
    // The program of the other side ends its own queue pair.
    ends[1].disconnect(child);
    deliver(&mut ends);
    assert_eq!(ends[1].host.failed, [0x22]);
    assert_eq!((ends[0].kinds(), ends[1].kinds()), (vec![], vec![]));
}

#[test]
fn both_sides_may_end_a_connection_at_the_same_time() {
    let (mut ends, id, child) = connected();
    ends[0].disconnect(id);
    ends[1].disconnect(child);
    deliver(&mut ends);
    assert_eq!(ends[0].kinds(), [(Kind::Disconnected, 0)]);
    assert_eq!(ends[1].kinds(), [(Kind::Disconnected, 0)]);
}

#[test]
fn a_request_without_a_listener_is_rejected() {
    let mut ends = [End::new(0), End::new(1)];
    let id = ends[0].routed();
    ends[0].connect(id, b"");
    deliver(&mut ends);
    assert_eq!(ends[0].kinds(), [], "another process of the node may begin");
    ends[0].manager.expire(2 * SECOND_NS, &mut ends[0].host);
    deliver(&mut ends);
    assert_eq!(ends[0].kinds(), [], "its report may be lost");
    ends[0].manager.expire(4 * SECOND_NS, &mut ends[0].host);
    assert_eq!(ends[0].kinds(), [(Kind::Rejected, REASON_NO_LISTENER.into())]);
    assert_eq!(ends[0].host.failed, [0x11]);
}

/// perftest with `-R` listens again after its first connection, and its peer connects at once.
#[test]
fn a_listener_that_appears_soon_gets_the_request() {
    let mut ends = [End::new(0), End::new(1)];
    let id = ends[0].routed();
    ends[0].connect(id, b"");
    deliver(&mut ends);
    ends[1].listener(1);
    let due_ns = ends[0].manager.next_deadline_ns().expect("it searches again");
    assert!(due_ns < SECOND_NS / 10);
    ends[0].manager.expire(due_ns, &mut ends[0].host);
    deliver(&mut ends);
    assert_eq!(ends[1].kinds(), [(Kind::ConnectRequest, 0)]);
    assert_eq!(ends[0].kinds(), []);
}

#[test]
fn a_program_rejects_with_data_and_a_destroyed_listener_rejects_without() {
    let (mut ends, _, child) = requested();
    ends[1].manager.reject(child, b"no".to_vec(), 0, &mut ends[1].host).expect("a request");
    deliver(&mut ends);
    let event = ends[0].event();
    assert_eq!(
        (event.kind, event.status, &event.data[..]),
        (Kind::Rejected, REASON_CONSUMER.into(), &b"no"[..])
    );

    let mut ends = [End::new(0), End::new(1)];
    let listener = ends[1].listener(1);
    let id = ends[0].routed();
    ends[0].connect(id, b"");
    deliver(&mut ends);
    ends[1].manager.destroy(listener, 0, &mut ends[1].host).expect("it exists");
    deliver(&mut ends);
    assert_eq!(ends[0].kinds(), [(Kind::Rejected, REASON_CONSUMER.into())]);
}

#[test]
fn requests_beyond_the_backlog_are_rejected_until_the_program_has_got_the_events() {
    let mut ends = [End::new(0), End::new(1)];
    ends[1].listener(1);
    let all = [(); 2].map(|()| ends[0].routed());
    for id in all {
        ends[0].connect(id, b"");
    }
    deliver(&mut ends);
    assert_eq!(ends[0].kinds(), [(Kind::Rejected, 3)]);
    let child = ends[1].event().child.expect("a request").number;
    ends[1].manager.note_request(child);
    let id = ends[0].routed();
    ends[0].connect(id, b"");
    deliver(&mut ends);
    assert_eq!(ends[1].event().kind, Kind::ConnectRequest);
}

#[test]
fn the_loss_of_a_process_ends_its_connections_and_flushes_their_queue_pairs() {
    let (mut ends, ..) = connected();
    ends[0].host.arrived.push(PeerEvent::Lost(Process(1)));
    ends[0].manager.poll(0, &mut ends[0].host);
    assert_eq!(ends[0].kinds(), [(Kind::Disconnected, -Errno::TIMEDOUT.raw_os_error())]);
    assert_eq!(ends[0].host.failed, [0x11]);
    let (mut ends, ..) = requested();
    ends[0].host.arrived.push(PeerEvent::Lost(Process(1)));
    ends[0].manager.poll(0, &mut ends[0].host);
    assert_eq!(ends[0].kinds(), [(Kind::Unreachable, -Errno::TIMEDOUT.raw_os_error())]);
}

#[test]
fn a_withdrawn_request_is_an_event_of_the_other_side() {
    let (mut ends, id, child) = requested();
    ends[0].manager.destroy(id, 0, &mut ends[0].host).expect("it exists");
    deliver(&mut ends);
    assert_eq!(ends[1].kinds(), [(Kind::Rejected, 4)]);
    assert_eq!(ends[1].manager.state(child), Ok(State::Closed));
}

#[test]
fn the_end_may_arrive_before_the_reply_and_before_the_message_that_the_peer_is_ready() {
    let (mut ends, _, child) = requested();
    accept(&mut ends[1], child, b"");
    ends[1].disconnect(child);
    ends[1].host.sent.make_contiguous().reverse();
    deliver(&mut ends);
    assert_eq!(ends[0].kinds(), [(Kind::Established, 0), (Kind::Disconnected, 0)]);
    let (mut ends, id, child) = requested();
    accept(&mut ends[1], child, b"");
    let (_, bytes) = ends[1].host.sent.pop_front().expect("a reply");
    ends[0].host.arrived.push(PeerEvent::Note { from: Process(1), bytes });
    ends[0].manager.poll(0, &mut ends[0].host);
    ends[0].disconnect(id);
    ends[0].host.sent.make_contiguous().reverse();
    deliver(&mut ends);
    assert_eq!(ends[1].kinds(), [(Kind::Established, 0), (Kind::Disconnected, 0)]);
}

#[test]
fn a_queue_pair_that_cannot_be_made_ready_is_an_error_of_both_sides() {
    let (mut ends, _, child) = requested();
    ends[0].host.refuses = true;
    accept(&mut ends[1], child, b"");
    deliver(&mut ends);
    assert_eq!(ends[0].kinds(), [(Kind::ConnectError, -Errno::INVAL.raw_os_error())]);
    assert_eq!(ends[1].kinds(), [(Kind::Rejected, 4)]);
}

#[test]
fn a_program_with_a_queue_pair_of_its_own_establishes_the_connection_itself() {
    let (mut ends, id, child) = requested();
    ends[0].manager.set_queue_pair(id, None).expect("it exists");
    accept(&mut ends[1], child, b"");
    deliver(&mut ends);
    assert_eq!(ends[0].kinds(), [(Kind::ConnectResponse, 0)]);
    assert_eq!(ends[1].kinds(), []);
    ends[0].manager.establish(id, 0, &mut ends[0].host).expect("a reply");
    deliver(&mut ends);
    assert_eq!(ends[1].kinds(), [(Kind::Established, 0)]);
}

#[test]
fn waits_end_at_their_deadlines() {
    let mut ends = [End::new(0), End::new(1)];
    ends[0].host.is_alone = true;
    let id = ends[0].id();
    ends[0].manager.resolve_address(id, (1, PORT), SECOND_NS, 0, &mut ends[0].host).expect("a call");
    assert!(ends[0].manager.next_deadline_ns().is_some_and(|deadline_ns| deadline_ns < SECOND_NS));
    ends[0].manager.expire(SECOND_NS, &mut ends[0].host);
    assert_eq!(ends[0].kinds(), [(Kind::AddressError, -Errno::TIMEDOUT.raw_os_error())]);
    let (mut ends, _, child) = requested();
    ends[0].manager.expire(61 * SECOND_NS, &mut ends[0].host);
    assert_eq!(ends[0].kinds(), [(Kind::Unreachable, -Errno::TIMEDOUT.raw_os_error())]);
    deliver(&mut ends);
    assert_eq!(ends[1].kinds(), [(Kind::Rejected, 4)]);
    assert_eq!(ends[1].manager.accept(child, Settings::default(), 0, &mut ends[1].host), Err(Errno::INVAL));
    let (mut ends, id, _) = connected();
    ends[0].disconnect(id);
    ends[0].manager.expire(6 * SECOND_NS, &mut ends[0].host);
    assert_eq!(ends[0].kinds(), [(Kind::Disconnected, -Errno::TIMEDOUT.raw_os_error())]);
    assert_eq!(ends[0].manager.next_deadline_ns(), None);
}

#[test]
fn two_identifiers_of_one_process_connect() {
    let mut end = End::new(1);
    end.listener(4);
    let id = end.routed();
    end.connect(id, b"self");
    let child = end.event().child.expect("a request").number;
    accept(&mut end, child, b"");
    assert_eq!(end.kinds(), [(Kind::Established, 0), (Kind::Established, 0)]);
    end.manager.destroy(id, 0, &mut end.host).expect("it exists");
    assert_eq!(end.kinds(), [(Kind::Disconnected, 0)]);
}

#[test]
fn a_message_of_another_process_does_not_reach_a_connection() {
    let (mut ends, id, child) = connected();
    ends[0].disconnect(id);
    let (_, bytes) = ends[0].host.sent.pop_front().expect("the end");
    ends[1].host.arrived.push(PeerEvent::Note { from: Process(2), bytes });
    ends[1].manager.poll(0, &mut ends[1].host);
    assert_eq!(ends[1].manager.state(child), Ok(State::Established));
}

#[test]
fn a_port_is_free_again_when_its_listener_is_destroyed() {
    let mut ends = [End::new(0), End::new(1)];
    let listener = ends[1].listener(1);
    let second = ends[1].id();
    assert_eq!(ends[1].manager.bind(second, PORT), Err(Errno::ADDRINUSE));
    let id = ends[0].routed();
    ends[0].connect(id, b"");
    deliver(&mut ends);
    let child = ends[1].event().child.expect("a request").number;
    ends[1].manager.note_request(child);
    ends[1].manager.destroy(listener, 0, &mut ends[1].host).expect("it exists");
    assert_eq!(ends[1].manager.bind(second, PORT), Ok(PORT), "a connection keeps no port");
    assert_eq!(ends[1].manager.state(child), Ok(State::Requested));
}
