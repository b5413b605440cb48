//! The identifiers of a process, and the calls of its program on them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use rustix::io::Errno;

use super::event::{Event, Kind};
use super::host::Host;
use super::link::Link;
use super::message::{Body, Message, REASON_CONSUMER, REASON_NO_LISTENER, REASON_TIMEOUT, Side};
use super::ports::Ports;
use super::state::{Call, State};
use crate::engine::{Events, Process, node_of_port, port_of, seat_of};

/// Most identifiers of a process.
const IDS_MAX: usize = 1 << 16;
/// Most requests that wait at a listener until the program has got their events.
const BACKLOG_MAX: u32 = 1024;
/// Interval between two looks for paths.
const LOOK_NS: u64 = 2_000_000;
/// Time in which a process that has just begun may become reachable. Its neighbours report it, and repeat lost reports with heartbeats, of which an idle
/// node sends two per second.
const APPEAR_NS: u64 = 3_000_000_000;
/// Time in which processes answer a search. They do so without their programs.
const FIND_NS: u64 = 10_000_000_000;
/// Time in which a program accepts or rejects, and in which the other side becomes ready.
const ANSWER_NS: u64 = 60_000_000_000;
/// Time in which the peer answers to the end of a connection.
const END_NS: u64 = 5_000_000_000;

/// Search for a listener in one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Search {
    /// The process is not reached.
    Unreached,
    /// The search is sent.
    Sent,
    /// The process does not listen, or is lost.
    Absent,
}

/// Identifier.
pub(super) struct Id {
    pub(super) events: Arc<Events<Event>>,
    pub(super) state: State,
    pub(super) space: u16,
    /// Own port. 0 if there is none yet.
    pub(super) port: u16,
    shares_port: bool,
    /// The port is taken by this identifier. That of a request belongs to its listener, and is free when the listener has gone.
    holds_port: bool,
    /// Port of the peer.
    pub(super) peer_port: u16,
    /// Queue pair that follows the states of the identifier.
    pub(super) queue_pair: Option<u32>,
    pub(super) link: Link,
    pub(super) peer: Option<Process>,
    /// Number of the peer's identifier. 0 if it is not known.
    pub(super) peer_number: u64,
    /// Private data of the request, while a listener is looked for.
    data: Vec<u8>,
    searches: BTreeMap<Process, Search>,
    /// Time until which processes may appear, or a path.
    appears_by_ns: u64,
    pub(super) deadline_ns: Option<u64>,
    /// The peer has ended the connection before its reply arrived.
    pub(super) ends_early: bool,
    pub(super) backlog: u32,
    /// Requests whose events the program has not got.
    pub(super) waiting: u32,
    /// Listener of a request whose event the program has not got.
    pub(super) listener: Option<u64>,
}

/// Parameters of a connection, as a program gives them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Own side. The number of the first message is set here; that of the queue pair is if the identifier has one.
    pub side: Side,
    /// Retries without an answer.
    pub retry_count: u8,
    /// Private data.
    pub data: Vec<u8>,
}

/// Identifiers of a process.
pub struct Manager {
    pub(super) ids: BTreeMap<u64, Id>,
    ports: Ports,
    next_number: u64,
    deadlines: BTreeSet<(u64, u64)>,
    /// Messages to this process itself.
    pub(super) own: VecDeque<Vec<u8>>,
}

impl Manager {
    /// Returns no identifiers. Numbers begin at a position that follows from the seed, so that a message to an earlier process with the same number
    /// in the fabric finds no identifier.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            ids: BTreeMap::new(),
            ports: Ports::new(seed >> 32),
            next_number: seed | 1,
            deadlines: BTreeSet::new(),
            own: VecDeque::new(),
        }
    }

    /// Makes an identifier, and returns its number.
    ///
    /// # Errors
    /// `ENOMEM` beyond the limit.
    pub fn make(&mut self, events: Arc<Events<Event>>, space: u16) -> Result<u64, Errno> {
        if self.ids.len() >= IDS_MAX {
            return Err(Errno::NOMEM);
        }
        let number = self.next_number;
        self.next_number = self.next_number.wrapping_add(1).max(1);
        let id = Id {
            events,
            state: State::Idle,
            space,
            port: 0,
            shares_port: false,
            holds_port: false,
            peer_port: 0,
            queue_pair: None,
            link: Link {
                own: Side { first_message: first_message(number), ..Side::default() },
                ..Link::default()
            },
            peer: None,
            peer_number: 0,
            data: Vec::new(),
            searches: BTreeMap::new(),
            appears_by_ns: 0,
            deadline_ns: None,
            ends_early: false,
            backlog: 0,
            waiting: 0,
            listener: None,
        };
        self.ids.insert(number, id);
        Ok(number)
    }

    /// Returns the identifier if its state allows a call.
    fn allowed(&mut self, number: u64, call: Call) -> Result<&mut Id, Errno> {
        self.ids.get_mut(&number).filter(|id| id.state.allows(call)).ok_or(Errno::INVAL)
    }

    /// Returns the state of an identifier.
    ///
    /// # Errors
    /// `EINVAL` if it does not exist.
    pub fn state(&self, number: u64) -> Result<State, Errno> {
        self.ids.get(&number).map(|id| id.state).ok_or(Errno::INVAL)
    }

    /// Returns both sides of the connection of an identifier.
    ///
    /// # Errors
    /// `EINVAL` if it does not exist.
    pub fn link(&self, number: u64) -> Result<Link, Errno> {
        self.ids.get(&number).map(|id| id.link).ok_or(Errno::INVAL)
    }

    /// Has further events of an identifier appear in another queue.
    ///
    /// # Errors
    /// `EINVAL` if it does not exist.
    pub fn set_events(&mut self, number: u64, events: Arc<Events<Event>>) -> Result<(), Errno> {
        self.ids.get_mut(&number).ok_or(Errno::INVAL)?.events = events;
        Ok(())
    }

    /// Sets the queue pair that follows the states of the identifier.
    ///
    /// # Errors
    /// `EINVAL` if it does not exist.
    pub fn set_queue_pair(&mut self, number: u64, queue_pair: Option<u32>) -> Result<(), Errno> {
        self.ids.get_mut(&number).ok_or(Errno::INVAL)?.queue_pair = queue_pair;
        Ok(())
    }

    /// Allows other identifiers of this process to have the port, too.
    ///
    /// # Errors
    /// `EINVAL` if the identifier has a port already.
    pub fn share_port(&mut self, number: u64, is_shared: bool) -> Result<(), Errno> {
        self.allowed(number, Call::Bind)?.shares_port = is_shared;
        Ok(())
    }

    /// Sets the port of an identifier; 0 is any free one. Returns the port.
    ///
    /// # Errors
    /// `EADDRINUSE` if another identifier of this process has it, `EINVAL` if this one has a port.
    pub fn bind(&mut self, number: u64, port: u16) -> Result<u16, Errno> {
        let id = self.allowed(number, Call::Bind)?;
        let (space, is_shared) = (id.space, id.shares_port);
        let port = self.ports.take(space, port, is_shared)?;
        if let Some(id) = self.ids.get_mut(&number) {
            (id.state, id.port, id.holds_port) = (State::Bound, port, true);
        }
        Ok(port)
    }

    /// Returns the own port of an identifier, after it got one if it had none.
    fn port(&mut self, number: u64) -> Result<u16, Errno> {
        match self.ids.get(&number).ok_or(Errno::INVAL)?.port {
            0 => self.bind(number, 0),
            port => Ok(port),
        }
    }

    /// Takes requests at the port. Returns the port.
    ///
    /// # Errors
    /// `EINVAL` in other states than idle and bound, `EADDRINUSE` if another identifier listens at the port.
    pub fn listen(&mut self, number: u64, backlog: i32) -> Result<u16, Errno> {
        self.allowed(number, Call::Listen)?;
        let port = self.port(number)?;
        let space = self.ids.get(&number).ok_or(Errno::INVAL)?.space;
        if self.listener(space, port).is_some() {
            return Err(Errno::ADDRINUSE);
        }
        let id = self.ids.get_mut(&number).ok_or(Errno::INVAL)?;
        let backlog = u32::try_from(backlog).unwrap_or(0);
        id.backlog = if backlog == 0 { BACKLOG_MAX } else { backlog.min(BACKLOG_MAX) };
        id.state = State::Listening;
        Ok(port)
    }

    pub(super) fn listener(&self, space: u16, port: u16) -> Option<u64> {
        let is_it = |id: &Id| id.state == State::Listening && (id.space, id.port) == (space, port);
        self.ids.iter().find(|(_, id)| is_it(id)).map(|(number, _)| *number)
    }

    /// Looks for a path to the node of the peer. The result is an event. Returns the own port.
    ///
    /// # Errors
    /// `EINVAL` in other states than idle and bound.
    pub fn resolve_address(
        &mut self,
        number: u64,
        (node, port): (u32, u16),
        timeout_ns: u64,
        now_ns: u64,
        host: &mut dyn Host,
    ) -> Result<u16, Errno> {
        self.allowed(number, Call::ResolveAddress)?;
        let own_port = self.port(number)?;
        let id = self.ids.get_mut(&number).ok_or(Errno::INVAL)?;
        (id.state, id.link.node, id.peer_port) = (State::Resolving, node, port);
        id.appears_by_ns = now_ns.saturating_add(timeout_ns);
        self.look(number, now_ns, host);
        Ok(own_port)
    }

    /// Fails the resolution of an address that no node has.
    ///
    /// # Errors
    /// `EINVAL` in other states than idle and bound.
    pub fn refuse_address(&mut self, number: u64, error: Errno) -> Result<(), Errno> {
        self.allowed(number, Call::ResolveAddress)?;
        self.report(number, Kind::AddressError, -error.raw_os_error());
        Ok(())
    }

    fn look(&mut self, number: u64, now_ns: u64, host: &mut dyn Host) {
        let Some(id) = self.ids.get_mut(&number) else { return };
        // The address of a seat, which is that of its first port, stands for all ports. That of another port stands for itself.
        let (seat, port) = (seat_of(id.link.node), port_of(id.link.node));
        let last = if port == 1 { host.port_count() } else { port };
        let mut nodes = (port..=last).map(|port| node_of_port(seat, port));
        if let Some(node) = nodes.find(|node| host.reaches_node(*node)) {
            id.link.node = node;
            id.state = State::AddressResolved;
            self.set_deadline(number, None);
            self.report(number, Kind::AddressResolved, 0);
        } else if now_ns >= id.appears_by_ns {
            id.state = State::Bound;
            self.set_deadline(number, None);
            self.report(number, Kind::AddressError, -Errno::TIMEDOUT.raw_os_error());
        } else {
            self.set_deadline(number, Some(now_ns + LOOK_NS));
        }
    }

    /// Looks for the route. The result is an event: the fabric chooses paths by itself.
    ///
    /// # Errors
    /// `EINVAL` unless the address is resolved.
    pub fn resolve_route(&mut self, number: u64) -> Result<(), Errno> {
        self.allowed(number, Call::ResolveRoute)?.state = State::RouteResolved;
        self.report(number, Kind::RouteResolved, 0);
        Ok(())
    }

    /// Takes over the parameters of the own side.
    fn configure(id: &mut Id, number: u64, settings: &Settings) {
        id.link.own = settings.side;
        id.link.retry_count = settings.retry_count;
        if let Some(queue_pair) = id.queue_pair {
            id.link.own.queue_pair = queue_pair;
        }
        id.link.own.first_message = first_message(number);
    }

    /// Requests a connection. The result is an event.
    ///
    /// # Errors
    /// `EINVAL` unless the route is resolved.
    pub fn connect(
        &mut self,
        number: u64,
        settings: Settings,
        now_ns: u64,
        host: &mut dyn Host,
    ) -> Result<(), Errno> {
        let id = self.allowed(number, Call::Connect)?;
        Self::configure(id, number, &settings);
        id.data = settings.data;
        id.state = State::Finding;
        let processes = host.processes(id.link.node).into_iter();
        id.searches = processes.map(|process| (process, Search::Unreached)).collect();
        id.appears_by_ns = now_ns + APPEAR_NS;
        self.search(number, now_ns, host);
        self.handle_own(now_ns, host);
        Ok(())
    }

    /// Continues the search for a listener.
    pub(super) fn search(&mut self, number: u64, now_ns: u64, host: &mut dyn Host) {
        let Some(id) = self.ids.get_mut(&number).filter(|id| id.state == State::Finding) else { return };
        let (space, port, node) = (id.space, id.peer_port, id.link.node);
        let unreached = id.searches.iter_mut().filter(|(_, search)| **search == Search::Unreached);
        let reached: Vec<_> = unreached
            .filter(|(process, _)| host.reaches_process(**process))
            .map(|(process, search)| {
                *search = Search::Sent;
                *process
            })
            .collect();
        let started_ns = id.appears_by_ns - APPEAR_NS;
        let count = |wanted| id.searches.values().filter(|search| **search == wanted).count();
        let (unreached, sent) = (count(Search::Unreached), count(Search::Sent));
        let absent = count(Search::Absent);
        let may_appear = unreached + absent > 0 && now_ns < id.appears_by_ns;
        let may_answer = sent > 0 && now_ns < started_ns + FIND_NS;
        let due_ns = if may_appear { now_ns + LOOK_NS } else { started_ns + FIND_NS };
        for process in reached {
            let body = Body::Find { space, port };
            self.send(process, Message { to: 0, from: number, body }, host);
        }
        if may_appear || may_answer {
            self.set_deadline(number, Some(due_ns));
        } else if host.reaches_node(node) {
            self.end(number, State::Closed, Kind::Rejected, REASON_NO_LISTENER.into());
            self.fail_queue_pair(number, now_ns, host);
        } else {
            self.end(number, State::Closed, Kind::Unreachable, -Errno::TIMEDOUT.raw_os_error());
            self.fail_queue_pair(number, now_ns, host);
        }
    }

    /// Has processes without a listener searched again, while one may appear: a program such as perftest listens again after its first connection.
    fn renew_searches(&mut self, number: u64, now_ns: u64) {
        let Some(id) = self.ids.get_mut(&number).filter(|id| now_ns < id.appears_by_ns) else { return };
        let absent = id.searches.values_mut().filter(|search| **search == Search::Absent);
        absent.for_each(|search| *search = Search::Unreached);
    }

    /// Handles the answer of a process to a search.
    pub(super) fn found(
        &mut self,
        number: u64,
        process: Process,
        listens: bool,
        now_ns: u64,
        host: &mut dyn Host,
    ) {
        let Some(id) = self.ids.get_mut(&number).filter(|id| id.state == State::Finding) else { return };
        let Some(search) = id.searches.get_mut(&process) else { return };
        if !listens {
            *search = Search::Absent;
            return self.search(number, now_ns, host);
        }
        id.searches.clear();
        (id.state, id.peer) = (State::Requesting, Some(process));
        let body = Body::Request {
            space: id.space,
            port: id.peer_port,
            source_port: id.port,
            retry_count: id.link.retry_count,
            side: id.link.own,
            data: std::mem::take(&mut id.data),
        };
        self.set_deadline(number, Some(now_ns + ANSWER_NS));
        self.send(process, Message { to: 0, from: number, body }, host);
    }

    /// Notes that the program has got the event of a request.
    pub fn note_request(&mut self, child: u64) {
        let listener = self.ids.get_mut(&child).and_then(|id| id.listener.take());
        if let Some(listener) = listener.and_then(|listener| self.ids.get_mut(&listener)) {
            listener.waiting = listener.waiting.saturating_sub(1);
        }
    }

    /// Accepts a request. An event says when the peer is ready.
    ///
    /// # Errors
    /// `EINVAL` without a request; those of the queue pair.
    pub fn accept(
        &mut self,
        number: u64,
        settings: Settings,
        now_ns: u64,
        host: &mut dyn Host,
    ) -> Result<(), Errno> {
        let id = self.allowed(number, Call::Accept)?;
        let retry_count = id.link.retry_count;
        Self::configure(id, number, &Settings { retry_count, ..settings.clone() });
        if let Some(queue_pair) = id.queue_pair {
            host.connect(queue_pair, &id.link, now_ns)?;
        }
        id.state = State::Accepting;
        let body = Body::Reply { side: id.link.own, data: settings.data };
        self.set_deadline(number, Some(now_ns + ANSWER_NS));
        self.send_to_peer(number, body, host);
        self.handle_own(now_ns, host);
        Ok(())
    }

    /// Rejects a request.
    ///
    /// # Errors
    /// `EINVAL` without a request.
    pub fn reject(
        &mut self,
        number: u64,
        data: Vec<u8>,
        now_ns: u64,
        host: &mut dyn Host,
    ) -> Result<(), Errno> {
        self.allowed(number, Call::Reject)?.state = State::Closed;
        self.send_to_peer(number, Body::Reject { reason: REASON_CONSUMER, data }, host);
        self.handle_own(now_ns, host);
        Ok(())
    }

    /// Ends the handshake, after the program has made its queue pair ready.
    ///
    /// # Errors
    /// `EINVAL` without a reply.
    pub fn establish(&mut self, number: u64, now_ns: u64, host: &mut dyn Host) -> Result<(), Errno> {
        self.allowed(number, Call::Establish)?.state = State::Established;
        self.set_deadline(number, None);
        self.send_to_peer(number, Body::Ready, host);
        self.handle_own(now_ns, host);
        Ok(())
    }

    /// Notes that a message of the peer has arrived at the queue pair, so the peer is ready.
    pub fn note_established(&mut self, number: u64) {
        if self.ids.get(&number).is_some_and(|id| id.state == State::Accepting) {
            self.end(number, State::Established, Kind::Established, 0);
        }
    }

    /// Ends a connection. Returns true if an event about the end follows or is queued.
    ///
    /// # Errors
    /// `EINVAL` if there was no connection.
    pub fn disconnect(&mut self, number: u64, now_ns: u64, host: &mut dyn Host) -> Result<bool, Errno> {
        let id = self.allowed(number, Call::Disconnect)?;
        let follows = !matches!(id.state, State::Closed);
        let sends = follows && id.state != State::Disconnecting;
        if sends {
            id.state = State::Disconnecting;
            self.set_deadline(number, Some(now_ns + END_NS));
        }
        self.fail_queue_pair(number, now_ns, host);
        if sends {
            self.send_to_peer(number, Body::Disconnect, host);
        }
        self.handle_own(now_ns, host);
        Ok(follows)
    }

    /// Destroys an identifier. The peer of a connection gets its end; requests whose events the program has not got are rejected.
    ///
    /// # Errors
    /// `EINVAL` if it does not exist.
    pub fn destroy(&mut self, number: u64, now_ns: u64, host: &mut dyn Host) -> Result<(), Errno> {
        let state = self.state(number)?;
        let reject = |reason| Body::Reject { reason, data: Vec::new() };
        let last = match state {
            State::Requesting | State::Answered => Some(reject(REASON_TIMEOUT)),
            State::Requested => Some(reject(REASON_CONSUMER)),
            State::Accepting | State::Established => Some(Body::Disconnect),
            _ => None,
        };
        if let Some(body) = last {
            self.send_to_peer(number, body, host);
        }
        if state == State::Listening {
            let is_child = |id: &Id| id.listener == Some(number);
            let children = self.ids.iter().filter(|(_, id)| is_child(id)).map(|(child, _)| *child);
            let children: Vec<_> = children.collect();
            for child in children {
                let _ = self.destroy(child, now_ns, host);
            }
        }
        self.set_deadline(number, None);
        self.note_request(number);
        if let Some(id) = self.ids.remove(&number).filter(|id| id.holds_port) {
            self.ports.release(id.space, id.port);
        }
        self.handle_own(now_ns, host);
        Ok(())
    }

    /// Handles messages and losses of other processes.
    pub fn poll(&mut self, now_ns: u64, host: &mut dyn Host) {
        for event in host.take_peer_events() {
            self.arrive(event, now_ns, host);
        }
        self.handle_own(now_ns, host);
    }

    /// Returns the time at which [`Self::expire`] has work.
    #[must_use]
    pub fn next_deadline_ns(&self) -> Option<u64> {
        self.deadlines.first().map(|(deadline_ns, _)| *deadline_ns)
    }

    /// Handles deadlines that have passed.
    pub fn expire(&mut self, now_ns: u64, host: &mut dyn Host) {
        while let Some((deadline_ns, number)) = self.deadlines.first().copied()
            && deadline_ns <= now_ns
        {
            self.set_deadline(number, None);
            let timed_out = -Errno::TIMEDOUT.raw_os_error();
            match self.state(number) {
                Ok(State::Resolving) => self.look(number, now_ns, host),
                Ok(State::Finding) => {
                    self.renew_searches(number, now_ns);
                    self.search(number, now_ns, host);
                }
                Ok(State::Requesting) => {
                    self.send_to_peer(
                        number,
                        Body::Reject { reason: REASON_TIMEOUT, data: Vec::new() },
                        host,
                    );
                    self.end(number, State::Closed, Kind::Unreachable, timed_out);
                    self.fail_queue_pair(number, now_ns, host);
                }
                Ok(State::Accepting) => {
                    self.send_to_peer(number, Body::Disconnect, host);
                    self.end(number, State::Closed, Kind::Unreachable, timed_out);
                    self.fail_queue_pair(number, now_ns, host);
                }
                Ok(State::Disconnecting) => self.end(number, State::Closed, Kind::Disconnected, timed_out),
                _ => {}
            }
        }
        self.handle_own(now_ns, host);
    }

    // ---- means -----------------------------------------------------------------------------------------------------------

    pub(super) fn set_deadline(&mut self, number: u64, deadline_ns: Option<u64>) {
        let Some(id) = self.ids.get_mut(&number) else { return };
        if let Some(before_ns) = std::mem::replace(&mut id.deadline_ns, deadline_ns) {
            self.deadlines.remove(&(before_ns, number));
        }
        if let Some(deadline_ns) = deadline_ns {
            self.deadlines.insert((deadline_ns, number));
        }
    }

    /// Adds an event without data.
    pub(super) fn report(&self, number: u64, kind: Kind, status: i32) {
        if let Some(id) = self.ids.get(&number) {
            id.events.push(Event { side: id.link.peer, ..Event::new(number, kind, status) });
        }
    }

    /// Enters a state without deadline, and reports it.
    pub(super) fn end(&mut self, number: u64, state: State, kind: Kind, status: i32) {
        self.set_deadline(number, None);
        if let Some(id) = self.ids.get_mut(&number) {
            id.state = state;
            self.report(number, kind, status);
        }
    }

    pub(super) fn fail_queue_pair(&self, number: u64, now_ns: u64, host: &mut dyn Host) {
        if let Some(queue_pair) = self.ids.get(&number).and_then(|id| id.queue_pair) {
            host.fail(queue_pair, now_ns);
        }
    }

    pub(super) fn send(&mut self, process: Process, message: Message, host: &mut dyn Host) {
        let bytes = message.encode();
        if process == host.own_process() {
            self.own.push_back(bytes);
        } else {
            host.send_note(process, bytes);
        }
    }

    pub(super) fn send_to_peer(&mut self, number: u64, body: Body, host: &mut dyn Host) {
        let Some(id) = self.ids.get(&number) else { return };
        let (peer, to) = (id.peer, id.peer_number);
        if let Some(peer) = peer {
            self.send(peer, Message { to, from: number, body }, host);
        }
    }
}

/// Returns the number of the first message of an identifier's side. It is a hash, so that messages of an earlier connection are far from it.
const fn first_message(number: u64) -> u32 {
    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u32
}
