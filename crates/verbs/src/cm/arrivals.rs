//! Messages and losses of other processes.
//!
//! The fabric may deliver two messages of one process in another order than they were sent. So the end of a connection may arrive before its reply or
//! before the message that the peer is ready, and counts as both.

use rustix::io::Errno;

use super::event::{Child, Event, Kind};
use super::host::Host;
use super::manager::Manager;
use super::message::{Body, Message, REASON_NO_LISTENER, REASON_NO_RESOURCES, REASON_TIMEOUT, Side};
use super::state::State;
use crate::engine::{PeerEvent, Process};

/// Sender of a message: its process and the number of its identifier.
type Sender = (Process, u64);

impl Manager {
    /// Handles a message or the loss of a process.
    pub(super) fn arrive(&mut self, event: PeerEvent, now_ns: u64, host: &mut dyn Host) {
        match event {
            PeerEvent::Note { from, bytes } => {
                if let Some(message) = Message::decode(&bytes) {
                    self.handle(from, message, now_ns, host);
                }
            }
            PeerEvent::Lost(process) => self.lose(process, now_ns, host),
        }
    }

    /// Handles messages of this process to itself.
    pub(super) fn handle_own(&mut self, now_ns: u64, host: &mut dyn Host) {
        while let Some(bytes) = self.own.pop_front() {
            let from = host.own_process();
            self.arrive(PeerEvent::Note { from, bytes }, now_ns, host);
        }
    }

    /// Returns the identifier that a message is for.
    fn receiver(&self, (process, from): Sender, to: u64) -> Option<u64> {
        if to != 0 {
            let id = self.ids.get(&to)?;
            let is_peer = id.peer == Some(process) && (id.peer_number == from || id.peer_number == 0);
            return is_peer.then_some(to);
        }
        let found = self.ids.iter().find(|(_, id)| id.peer == Some(process) && id.peer_number == from);
        found.map(|(number, _)| *number)
    }

    fn handle(&mut self, process: Process, message: Message, now_ns: u64, host: &mut dyn Host) {
        let Message { to, from, body } = message;
        let sender = (process, from);
        match body {
            Body::Find { space, port } => {
                let listens = self.listener(space, port).is_some();
                self.send(process, Message { to: from, from: 0, body: Body::Found { listens } }, host);
            }
            Body::Found { listens } => self.found(to, process, listens, now_ns, host),
            Body::Request { space, port, source_port, retry_count, side, data } => {
                let new = Child { number: 0, node: 0, port: source_port, own_port: port };
                self.request(sender, space, new, (side, retry_count, data), host);
            }
            body => match self.receiver(sender, to) {
                Some(number) => self.advance(number, from, body, now_ns, host),
                // The program has destroyed the identifier.
                None if matches!(body, Body::Disconnect | Body::Reply { .. }) => {
                    let is_end = body == Body::Disconnect;
                    let body = if is_end { Body::Disconnected } else { Body::Disconnect };
                    self.send(process, Message { to: from, from: to, body }, host);
                }
                None => {}
            },
        }
    }

    /// Handles a request: makes an identifier, whose number the event has.
    fn request(
        &mut self,
        (process, from): Sender,
        space: u16,
        new: Child,
        (side, retry_count, data): (Side, u8, Vec<u8>),
        host: &mut dyn Host,
    ) {
        let Some(node) = host.node_of_process(process) else { return };
        let made = self.make_child(space, new.own_port);
        let (listener, child) = match made {
            Ok(made) => made,
            Err(reason) => {
                let body = Body::Reject { reason, data: Vec::new() };
                return self.send(process, Message { to: from, from: 0, body }, host);
            }
        };
        if let Some(id) = self.ids.get_mut(&child) {
            (id.state, id.port, id.peer_port) = (State::Requested, new.own_port, new.port);
            (id.link.node, id.link.peer, id.link.retry_count) = (node, side, retry_count);
            (id.peer, id.peer_number, id.listener) = (Some(process), from, Some(listener));
        }
        if let Some(id) = self.ids.get_mut(&listener) {
            id.waiting += 1;
            let child = Some(Child { number: child, node, ..new });
            let event = Event::new(listener, Kind::ConnectRequest, 0);
            id.events.push(Event { side, retry_count, child, data, ..event });
        }
    }

    /// Makes the identifier of a request. Returns the listener and the new number, or the reason of the rejection.
    fn make_child(&mut self, space: u16, port: u16) -> Result<(u64, u64), u16> {
        let listener = self.listener(space, port).ok_or(REASON_NO_LISTENER)?;
        let id = self.ids.get(&listener).filter(|id| id.waiting < id.backlog).ok_or(REASON_NO_RESOURCES)?;
        let events = std::sync::Arc::clone(&id.events);
        let child = self.make(events, space).map_err(|_| REASON_NO_RESOURCES)?;
        Ok((listener, child))
    }

    /// Handles a message to an identifier.
    fn advance(&mut self, number: u64, from: u64, body: Body, now_ns: u64, host: &mut dyn Host) {
        let Ok(state) = self.state(number) else { return };
        match (body, state) {
            (Body::Reply { side, data }, State::Requesting) => {
                self.answer(number, from, side, data, now_ns, host);
            }
            (Body::Ready, State::Accepting) => self.end(number, State::Established, Kind::Established, 0),
            (Body::Reject { reason, data }, State::Requesting | State::Requested | State::Accepting) => {
                self.set_deadline(number, None);
                if let Some(id) = self.ids.get_mut(&number) {
                    id.state = State::Closed;
                    let event = Event::new(number, Kind::Rejected, reason.into());
                    id.events.push(Event { data, ..event });
                }
                self.fail_queue_pair(number, now_ns, host);
            }
            (Body::Disconnect, State::Requesting) => {
                if let Some(id) = self.ids.get_mut(&number) {
                    (id.ends_early, id.peer_number) = (true, from);
                }
            }
            (
                Body::Disconnect,
                State::Requested | State::Accepting | State::Answered | State::Established,
            ) => {
                if state == State::Accepting {
                    self.report(number, Kind::Established, 0);
                }
                self.end(number, State::Closed, Kind::Disconnected, 0);
                self.send_to_peer(number, Body::Disconnected, host);
            }
            (Body::Disconnect, _) => {
                if state == State::Disconnecting {
                    self.end(number, State::Closed, Kind::Disconnected, 0);
                }
                self.send_to_peer(number, Body::Disconnected, host);
            }
            (Body::Disconnected, State::Disconnecting) => {
                self.end(number, State::Closed, Kind::Disconnected, 0);
            }
            _ => {}
        }
    }

    /// Handles a reply: the queue pair becomes ready, or the program makes its own ready.
    fn answer(
        &mut self,
        number: u64,
        from: u64,
        side: Side,
        data: Vec<u8>,
        now_ns: u64,
        host: &mut dyn Host,
    ) {
        self.set_deadline(number, None);
        let Some(id) = self.ids.get_mut(&number) else { return };
        (id.link.peer, id.peer_number) = (side, from);
        let ends_early = id.ends_early;
        let connected = id.queue_pair.map(|queue_pair| host.connect(queue_pair, &id.link, now_ns));
        let (state, kind, status) = match connected {
            None => (State::Answered, Kind::ConnectResponse, 0),
            Some(Ok(())) => (State::Established, Kind::Established, 0),
            Some(Err(error)) => (State::Closed, Kind::ConnectError, -error.raw_os_error()),
        };
        id.state = state;
        let event = Event::new(number, kind, status);
        id.events.push(Event { side, data, ..event });
        match kind {
            Kind::Established => self.send_to_peer(number, Body::Ready, host),
            Kind::ConnectError => {
                self.send_to_peer(number, Body::Reject { reason: REASON_TIMEOUT, data: Vec::new() }, host);
            }
            _ => {}
        }
        if ends_early && state != State::Closed {
            self.end(number, State::Closed, Kind::Disconnected, 0);
            self.send_to_peer(number, Body::Disconnected, host);
        }
    }

    /// Ends the connections and attempts with a process that is lost. Queue pairs flush their work requests.
    fn lose(&mut self, process: Process, now_ns: u64, host: &mut dyn Host) {
        let is_concerned = |number: &u64, manager: &Self| {
            let id = &manager.ids[number];
            id.state == State::Finding || (id.state.has_peer() && id.peer == Some(process))
        };
        let numbers: Vec<_> = self.ids.keys().copied().filter(|number| is_concerned(number, self)).collect();
        let timed_out = -Errno::TIMEDOUT.raw_os_error();
        for number in numbers {
            let (kind, status) = match self.state(number) {
                Ok(State::Finding) => {
                    self.found(number, process, false, now_ns, host);
                    continue;
                }
                Ok(State::Requesting | State::Answered | State::Accepting) => (Kind::Unreachable, timed_out),
                Ok(State::Requested) => (Kind::Rejected, REASON_TIMEOUT.into()),
                _ => (Kind::Disconnected, timed_out),
            };
            self.end(number, State::Closed, kind, status);
            self.fail_queue_pair(number, now_ns, host);
        }
    }
}
