//! Requests of peers: messages that arrive, and data that are fetched for them.

use rackloom::fabric::{Ended, Error, Key, NodeId, RegionId, RemoteAddress};

use super::incoming::Arrival;
use super::message::{Content, Grant, Message, Route, Source};
use super::transport::{FabricTransport, INCOMING, RECEIVED, Start, notice};
use crate::engine::{Address, Notice, Operation, Outcome, Payload, Piece, Remote, Request, Target, Ticket};

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
        is_own.then_some(Address { node: Some(place.seat), queue_pair })
    }

    fn serve(&mut self, peer: NodeId, message: Message, target: &mut dyn Target) {
        match message {
            Message::Reply { number, outcome } => self.replied(peer, number, outcome),
            Message::Granted { number, grant } => self.granted(peer, number, grant),
            Message::Closed { queue_pair } => {
                self.grants.retain(|name, _| (name.process, name.to) != (peer, queue_pair));
            }
            Message::Datagram { from, to, immediate, is_solicited, header, data } => {
                let Some(from) = self.sender(peer, from) else { return };
                let payload = Payload::Bytes(data.into());
                let operation = Operation::Datagram { payload, immediate, is_solicited, header };
                target.execute(&self.request(from, to, operation));
            }
            Message::Send { route, immediate, is_solicited, content } => {
                let Some(from) = self.sender(peer, route.from) else { return };
                self.watch(peer);
                match content {
                    Content::Bytes(bytes) => {
                        let payload = Payload::Bytes(bytes.into());
                        let operation = Operation::Send { payload, immediate, is_solicited };
                        let outcome = target.execute(&self.request(from, route.to, operation));
                        self.reply(peer, route, outcome);
                    }
                    Content::Sources(sources) => {
                        self.fetch(peer, (from, route), notice(immediate, is_solicited), &sources, target);
                    }
                }
            }
            Message::Written { route, length, immediate, is_solicited } => {
                let Some(from) = self.sender(peer, route.from) else { return };
                let outcome =
                    target.complete_write(from, route.to, length, notice(Some(immediate), is_solicited));
                self.reply(peer, route, outcome);
            }
            Message::Apply { route, key, address, length, right } => {
                let Some(from) = self.sender(peer, route.from) else { return };
                let remote = Remote { address, key };
                match target.permit(from, route.to, remote, length, right) {
                    Ok(region) => {
                        self.watch(peer);
                        self.requests.granted.insert((peer, route.from, route.to));
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

    fn request(&self, from: Address, to: u32, operation: Operation) -> Request {
        let to = Address { node: Some(self.place.seat), queue_pair: to };
        // The number belongs to another process, and nothing here uses it.
        Request { ticket: Ticket { queue_pair: from.queue_pair, sequence: 0 }, from, to, operation }
    }

    fn reply(&mut self, peer: NodeId, route: Route, outcome: Outcome) {
        self.notify(peer, Message::Reply { number: route.number, outcome });
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
        let incoming = Arrival { peer, number: route.number, arriving, notice, left, is_complete };
        self.requests.arrivals.insert(number, incoming);
        match gets {
            Some(gets) if !gets.is_empty() => {
                gets.into_iter().for_each(|get| self.start(get, INCOMING | number));
            }
            _ => self.end_incoming(number, target),
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
        let Some(incoming) = self.requests.arrivals.get_mut(&number) else { return };
        incoming.left = incoming.left.saturating_sub(1);
        incoming.is_complete &= is_done;
        if incoming.left == 0 {
            self.end_incoming(number, target);
        }
    }

    fn end_incoming(&mut self, number: u64, target: &mut dyn Target) {
        let Some(incoming) = self.requests.arrivals.remove(&number) else { return };
        let outcome = target.end_message(incoming.arriving, incoming.notice, incoming.is_complete);
        self.notify(incoming.peer, Message::Reply { number: incoming.number, outcome });
    }

    /// Tells peers with grants that a connection has closed.
    pub(super) fn close_ended(&mut self, target: &dyn Target) {
        let granted = std::mem::take(&mut self.requests.granted);
        for (peer, from, to) in granted {
            let sender = self.sender(peer, from);
            if sender.is_some_and(|sender| target.is_open(sender, to)) {
                self.requests.granted.insert((peer, from, to));
            } else {
                self.notify(peer, Message::Closed { queue_pair: to });
            }
        }
    }
}
