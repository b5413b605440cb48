//! Requests of peers: messages that arrive, and data that are fetched for them.

use std::time::Instant;

use rackloom::fabric::{Ended, Error, Key, NodeId, RegionId, RemoteAddress};

use super::incoming::{Arrival, Stream};
use super::message::{Content, Grant, Message, REPLIES_MAX, Route, Source};
use super::operation::{INCOMING, RECEIVED, Start};
use super::transport::{FabricTransport, notice};
use crate::engine::{
    Address, Due, Notice, Operation, Outcome, Payload, PeerEvent, Piece, Process, Remote, Request, Target,
    Ticket,
};

impl FabricTransport {
    /// Handles a message, and posts its receive again.
    pub(super) fn received(&mut self, slot: usize, result: Result<Ended, Error>, target: &mut dyn Target) {
        let Ok(Ended { value, matched: Some((peer, _)), .. }) = result else {
            // No peer is reached, or the message was too long for any slot.
            self.idle.push(slot);
            return;
        };
        let bytes = self.incoming.read(slot, value as usize);
        self.start(Start::Receive { slot }, RECEIVED | slot as u64);
        if let Some(message) = bytes.ok().and_then(|bytes| Message::decode(&bytes)) {
            self.serve(peer, message, target);
        }
    }

    /// Returns the queue pair of a peer, or `None` if it is not one of that process.
    fn sender(&self, peer: NodeId, queue_pair: u32) -> Option<Address> {
        let place = self.directory.place_of(peer)?;
        let is_own = place.queue_pairs().contains(&queue_pair);
        is_own.then_some(Address { node: Some(self.node_of_seat(place.seat)), queue_pair })
    }

    fn serve(&mut self, peer: NodeId, message: Message, target: &mut dyn Target) {
        match message {
            Message::Replies(replies) => {
                replies.into_iter().for_each(|(number, outcome)| self.replied(peer, number, outcome));
            }
            Message::Granted { number, grant } => self.granted(peer, number, grant),
            Message::Closed { queue_pair } => {
                self.jobs.revoke(peer, queue_pair);
            }
            Message::Note(bytes) => {
                self.watch(peer);
                self.peer_events.push(PeerEvent::Note { from: Process(peer.0), bytes });
            }
            Message::Datagram { from, to, immediate, is_solicited, header, at, data } => {
                let Some(from) = self.sender(peer, from) else { return };
                self.watch(peer);
                let payload = Payload::Bytes(data.into());
                let operation = Operation::Datagram { payload, immediate, is_solicited, header };
                let request = self.request(from, to, operation);
                for request in self.datagrams.receive(peer, at, request, Instant::now()) {
                    target.execute(&request);
                }
            }
            Message::Send { route, message: number, .. }
            | Message::Written { route, message: number, .. } => {
                let Some(from) = self.sender(peer, route.from) else { return };
                self.watch(peer);
                let stream = Stream { process: peer, from: route.from, to: route.to };
                match target.due(from, route.to, number) {
                    Due::Now | Due::Later => {
                        // A message that is sent again replaces the one that is held: its reply is the one that the sender knows.
                        self.requests.held.entry(stream).or_default().insert(number, message);
                        self.execute_held(stream, from, target);
                    }
                    Due::Before => self.reply(peer, route, Outcome::Done),
                    Due::Never => self.reply(peer, route, Outcome::NoAnswer),
                }
            }
            Message::Apply { route, key, address, length, right } => {
                let Some(from) = self.sender(peer, route.from) else { return };
                let remote = Remote { address, key };
                match target.permit(from, route.to, remote, length, right) {
                    Ok(region) => {
                        self.watch(peer);
                        let stream = Stream { process: peer, from: route.from, to: route.to };
                        self.requests.granted.insert(stream);
                        let grant = Grant {
                            virtual_base: region.virtual_base,
                            length: region.length as u64,
                            key: self.regions.fabric_key(key).unwrap_or(0),
                        };
                        self.notify(peer, Message::Granted { number: route.number, grant });
                    }
                    Err(outcome) => self.reply(peer, route, outcome),
                }
            }
        }
    }

    /// Executes messages of a connection that are the next ones. A short one waits until the data of long ones before it have arrived.
    fn execute_held(&mut self, stream: Stream, from: Address, target: &mut dyn Target) {
        loop {
            let Some(held) = self.requests.held.get_mut(&stream) else { return };
            held.retain(|number, _| matches!(target.due(from, stream.to, *number), Due::Now | Due::Later));
            let next = held.keys().copied().find(|number| target.due(from, stream.to, *number) == Due::Now);
            let is_fetching = self.requests.lines.contains_key(&stream);
            let is_long =
                |message: &Message| matches!(message, Message::Send { content: Content::Sources(_), .. });
            let next = next.filter(|number| !is_fetching || held.get(number).is_some_and(is_long));
            let message = next.and_then(|number| held.remove(&number));
            if held.is_empty() {
                self.requests.held.remove(&stream);
            }
            let Some(message) = message else { return };
            self.execute(stream.process, from, message, target);
        }
    }

    /// Executes a message.
    fn execute(&mut self, peer: NodeId, from: Address, message: Message, target: &mut dyn Target) {
        let (route, outcome) = match message {
            Message::Send { route, immediate, is_solicited, content: Content::Bytes(bytes), .. } => {
                let payload = Payload::Bytes(bytes.into());
                let operation = Operation::Send { payload, immediate, is_solicited };
                (route, target.execute(&self.request(from, route.to, operation)))
            }
            Message::Send { route, immediate, is_solicited, content: Content::Sources(sources), .. } => {
                return self.fetch(peer, (from, route), notice(immediate, is_solicited), &sources, target);
            }
            Message::Written { route, length, immediate, is_solicited, .. } => {
                let notice = notice(Some(immediate), is_solicited);
                (route, target.complete_write(from, route.to, length, notice))
            }
            _ => return,
        };
        self.reply(peer, route, outcome);
    }

    fn request(&self, from: Address, to: u32, operation: Operation) -> Request {
        let to = Address { node: Some(self.node_of_seat(self.place.seat)), queue_pair: to };
        // The numbers belong to another process, and nothing here uses them.
        let ticket = Ticket { queue_pair: from.queue_pair, sequence: 0 };
        Request { ticket, from, to, message: 0, operation }
    }

    /// Adds a reply. Replies to one peer leave together, because each message costs a frame.
    fn reply(&mut self, peer: NodeId, route: Route, outcome: Outcome) {
        let replies = self.requests.replies.entry(peer).or_default();
        replies.push((route.number, outcome));
        if replies.len() == REPLIES_MAX {
            self.send_replies();
        }
    }

    /// Sends the replies of this poll.
    pub(super) fn send_replies(&mut self) {
        for (peer, replies) in std::mem::take(&mut self.requests.replies) {
            self.notify(peer, Message::Replies(replies));
        }
    }

    /// Gets the data of a long message into a receive.
    fn fetch(
        &mut self,
        peer: NodeId,
        (from, route): (Address, Route),
        notice: Notice,
        sources: &[Source],
        target: &mut dyn Target,
    ) {
        let length = sources.iter().map(|source| source.length).sum();
        let arriving = match target.begin_message(from, route.to, length) {
            Ok(arriving) => arriving,
            Err(outcome) => return self.reply(peer, route, outcome),
        };
        let gets = self.gets(peer, sources, &arriving.pieces);
        let number = self.number();
        let left = gets.as_ref().map_or(0, Vec::len);
        let is_complete = gets.is_some();
        let stream = Stream { process: peer, from: route.from, to: route.to };
        let arrival = Arrival { stream, route, arriving, notice, left, is_complete };
        self.requests.arrivals.insert(number, arrival);
        self.requests.lines.entry(stream).or_default().push_back(number);
        match gets {
            Some(gets) if !gets.is_empty() => {
                gets.into_iter().for_each(|get| self.start(get, INCOMING | number));
            }
            // The fabric reports nothing about it.
            _ => self.end_line(stream, target),
        }
    }

    /// Returns the gets that fill pieces from sources of the same total length. `None` if memory is no longer registered.
    fn gets(&self, peer: NodeId, sources: &[Source], pieces: &[Piece]) -> Option<Vec<Start>> {
        let mut gets = Vec::new();
        let (mut pieces, mut sources) = (pieces.iter().copied(), sources.iter().copied());
        let (mut piece, mut source) = (pieces.next(), sources.next());
        while let (Some(into), Some(from)) = (piece, source) {
            let length = (into.length() as u64).min(from.length);
            if length > 0 {
                let bytes = usize::try_from(length).ok()?;
                let address = RemoteAddress {
                    node: peer,
                    region: RegionId(from.region),
                    offset: from.offset,
                    key: Key(from.key),
                };
                gets.push(Start::Get { source: address, into: self.regions.slice(into.part(0..bytes))? });
            }
            let (into_left, from_left) = (into.length() as u64 - length, from.length - length);
            piece = match into_left {
                0 => pieces.next(),
                left => Some(into.part(into.length() - usize::try_from(left).ok()?..into.length())),
            };
            source = match from_left {
                0 => sources.next(),
                left => Some(Source { offset: from.offset.checked_add(length)?, length: left, ..from }),
            };
        }
        Some(gets)
    }

    /// Handles the end of a get for a message.
    pub(super) fn fetched(&mut self, number: u64, is_done: bool, target: &mut dyn Target) {
        let Some(arrival) = self.requests.arrivals.get_mut(&number) else { return };
        arrival.left = arrival.left.saturating_sub(1);
        arrival.is_complete &= is_done;
        let stream = arrival.stream;
        self.end_line(stream, target);
    }

    /// Completes the oldest messages of a connection whose data have arrived.
    fn end_line(&mut self, stream: Stream, target: &mut dyn Target) {
        while let Some(line) = self.requests.lines.get_mut(&stream) {
            let Some(number) = line.front() else {
                self.requests.lines.remove(&stream);
                break;
            };
            if self.requests.arrivals.get(number).is_some_and(|arrival| arrival.left > 0) {
                return;
            }
            let arrival = self.requests.arrivals.remove(number);
            line.pop_front();
            if let Some(Arrival { route, arriving, notice, is_complete, .. }) = arrival {
                let outcome = target.end_message(arriving, notice, is_complete);
                self.reply(stream.process, route, outcome);
            }
        }
        if let Some(from) = self.sender(stream.process, stream.from) {
            self.execute_held(stream, from, target);
        }
    }

    /// Informs peers with grants that a connection has closed, and drops its messages.
    pub(super) fn close_ended(&mut self, target: &dyn Target) {
        let mut requests = std::mem::take(&mut self.requests);
        let is_open = |stream: &Stream| {
            let sender = self.sender(stream.process, stream.from);
            sender.is_some_and(|sender| target.is_open(sender, stream.to))
        };
        requests.held.retain(|stream, _| is_open(stream));
        let closed: Vec<_> = requests.granted.iter().copied().filter(|stream| !is_open(stream)).collect();
        requests.granted.retain(|stream| !closed.contains(stream));
        self.requests = requests;
        for Stream { process, to, .. } in closed {
            self.notify(process, Message::Closed { queue_pair: to });
        }
    }
}
