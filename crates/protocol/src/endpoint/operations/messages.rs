//! Tagged messages: sends, receives, and their matching.

use crate::endpoint::Endpoint;
use crate::endpoint::operations::memory_queue::Purpose;
use crate::endpoint::operations::serving::pending;
use crate::endpoint::peer::{Offer, Peer};
use crate::endpoint::stream::Stream;
use crate::error::{CommandRefused, InvalidCommand, OperationError};
use crate::event::Event;
use crate::ids::{Class, NodeId};
use crate::memory::FrameRange;
use crate::operation::bulk::Bulk;
use crate::operation::messages::{
    Content, EAGER_BUDGET_BYTES, EAGER_BYTES_MAX, Posted, Unexpected, eager_cost,
};
use crate::operation::outstanding::{ReplyKind, ReplyWait, VisibleWait, Waiting};
use crate::operation::{LocalRange, OperationId};
use crate::transmit::Following;
use crate::transport::packet::PayloadSource;
use crate::wire::packed::{Operation, message_header};

impl Endpoint {
    // ---- the sender's side
    // -----------------------------------------------------------------------------------------

    pub(in crate::endpoint) fn start_send(
        &mut self,
        peer: &mut Peer,
        operation: OperationId,
        tag: u64,
        source: LocalRange,
    ) -> Result<(), CommandRefused> {
        if source.length > u64::from(u32::MAX) {
            return Err(CommandRefused::Invalid(InvalidCommand::MessageLength));
        }
        if source.length > 0 && !self.regions.holds(source.region, source.offset, source.length) {
            return Err(CommandRefused::Invalid(InvalidCommand::MessageSource));
        }
        self.has_space(peer)?;
        let cost = eager_cost(source.length);
        let fits = source.length <= EAGER_BYTES_MAX.min(self.segment_bytes());
        if fits && peer.eager_unmatched + cost <= EAGER_BUDGET_BYTES {
            peer.eager_unmatched += cost;
            self.send_eager(peer, operation, tag, source);
            return Ok(());
        }
        let Stream { sender, outstanding, .. } = peer.streams.of_mut(Class::Request);
        if outstanding.open_replies() as u32 >= self.forwarder.config.outstanding_loads_max {
            return Err(CommandRefused::Busy);
        }
        let group = self.groups.open(operation, 1);
        let offer = Operation::Offer { tag, length: source.length as u32 };
        let number = sender.append(None, &offer);
        outstanding.expect_reply(ReplyWait {
            number,
            group,
            kind: ReplyKind::Offer,
            missing: 0,
            is_over: false,
        });
        peer.seldom_mut().offers.push_back(Offer { number, source, is_pulled: false });
        Ok(())
    }

    fn send_eager(&mut self, peer: &mut Peer, operation: OperationId, tag: u64, source: LocalRange) {
        self.groups.begin_one();
        let Stream { sender, outstanding, .. } = peer.streams.of_mut(Class::Request);
        let number = if source.length == 0 {
            sender.append(None, &Operation::Message { tag, data: &[] })
        } else {
            let length = source.length as usize;
            let payload = PayloadSource {
                region: source.region,
                offset: source.offset,
                length,
                split: 0,
                answers: None,
                following: Following::default(),
            };
            sender.append_gathered(None, payload, |body| message_header(body, tag, length))
        };
        let wait =
            VisibleWait { first: number, last: number, command: Waiting::Command(operation), error: None };
        outstanding.expect_visible(wait);
    }

    /// Handles a pull: the receiver requests the data of an offer.
    pub(in crate::endpoint) fn serve_pull(
        &mut self,
        peer: &mut Peer,
        number: u32,
        offer: u32,
        length: u32,
    ) -> Result<(), OperationError> {
        // W-85
        let offers = &mut peer.seldom_mut().offers;
        let known = offers.iter_mut().find(|known| known.number == offer && !known.is_pulled);
        let Offer { source, is_pulled, .. } = known.ok_or(OperationError::NoSuchRegion)?;
        if u64::from(length) > source.length {
            return Err(OperationError::OutOfBounds);
        }
        *is_pulled = true;
        let data = Bulk::GetData {
            operation: number,
            region: source.region,
            offset: source.offset,
            length: u64::from(length),
            position: 0,
            transfer: 0,
        };
        peer.streams.of_mut(Class::BulkReply).push_bulk(data);
        Ok(())
    }

    /// Handles the receiver's confirmation of a message: returns the budget of an eager one, ends the send of an
    /// offered one.
    pub(in crate::endpoint) fn take_received(&mut self, peer: &mut Peer, number: u32, cost: u64) {
        let outstanding = &mut peer.streams.of_mut(Class::Request).outstanding;
        match outstanding.reply(number) {
            Some(wait) if wait.kind == ReplyKind::Offer => {
                let group = wait.group;
                outstanding.end_reply(number);
                peer.forget_offer(number);
                self.end_part(group, Ok(0));
            }
            Some(_) => {}
            None => peer.eager_unmatched = peer.eager_unmatched.saturating_sub(cost),
        }
    }

    // ---- the receiver's side ---------------------------------------------------------------------------------------

    pub(in crate::endpoint) fn post_receive(&mut self, posted: Posted) -> Result<(), CommandRefused> {
        if posted.into.length > 0
            && !self.regions.holds(posted.into.region, posted.into.offset, posted.into.length)
        {
            return Err(CommandRefused::Invalid(InvalidCommand::MessageBuffer));
        }
        let Some(message) = self.matching.take_unexpected(&posted) else {
            if let Some(source) = posted.source
                && !self.forwarder.reaches(source)
            {
                return Err(CommandRefused::Unreachable(source));
            }
            self.matching.posted.push_back(posted);
            if posted.source.is_none() {
                self.fail_receives_from_any_source();
            }
            return Ok(());
        };
        if let Some(mut peer) = self.peer_of(message.source) {
            self.deliver(&mut peer, &posted, &message, None);
            for class in [Class::Reply, Class::Bulk] {
                self.queue_data(&mut peer, class);
            }
            self.put_back(peer);
        }
        if let Content::Eager { lease, .. } = message.content {
            self.end_hold(lease);
        }
        Ok(())
    }

    /// Handles a received message or offer. Returns true if memory must act before it is served.
    pub(in crate::endpoint) fn take_message(&mut self, peer: &mut Peer, message: Unexpected) -> bool {
        if let Some(posted) = self.matching.take_posted(peer.node, message.tag) {
            let end = message.number.wrapping_add(1);
            return self.deliver(peer, &posted, &message, Some(end));
        }
        if let Content::Eager { lease, .. } = message.content {
            self.memory.hold(lease);
        }
        self.matching.push_unexpected(message);
        false
    }

    /// Delivers a message to its receive. Returns true if memory must act before the message's operation is served up
    /// to `end`.
    fn deliver(&mut self, peer: &mut Peer, posted: &Posted, message: &Unexpected, end: Option<u32>) -> bool {
        let &Unexpected { tag, length, number, .. } = message;
        let (operation, source) = (posted.operation, peer.node);
        self.forwarder.push_event(Event::MessageMatched { operation, source, tag, length });
        let group = self.groups.open(operation, 1);
        if length > posted.into.length {
            self.send_received(peer, number, eager_cost(length));
            self.end_part(group, Err(OperationError::MessageTruncated));
            return false;
        }
        match message.content {
            _ if length == 0 => {
                self.send_received(peer, number, eager_cost(0));
                self.end_part(group, Ok(0));
                false
            }
            Content::Eager { lease, frame_offset } => {
                self.send_received(peer, number, eager_cost(length));
                let mark = self.memory.mark();
                let LocalRange { region, offset: region_offset, .. } = posted.into;
                self.memory.add_range(FrameRange { frame_offset, length: length as u32, region_offset });
                let purpose = Purpose::Receive { group, length, end };
                self.memory.write(pending(peer, region, purpose), lease, mark);
                end.is_some()
            }
            Content::Offered => {
                let into = LocalRange { length, ..posted.into };
                let pull = Bulk::Pull { group, offer: number, into };
                peer.streams.of_mut(Class::Bulk).push_bulk(pull);
                peer.bulk_requested += 1;
                false
            }
        }
    }

    /// Notifies the sender that a message was received.
    pub(in crate::endpoint) fn send_received(&mut self, peer: &mut Peer, number: u32, cost: u64) {
        let reply = Operation::Received { operation: number, cost };
        peer.streams.of_mut(Class::Reply).sender.append(None, &reply);
    }

    /// Ends the transfer of a message's data: notifies its sender of the result, and ends the receive with the
    /// length.
    pub(in crate::endpoint) fn finish_pull(
        &mut self,
        peer: &mut Peer,
        class: Class,
        number: u32,
        result: Result<u64, OperationError>,
    ) -> Result<u64, OperationError> {
        if class != Class::Bulk {
            return result;
        }
        let Some((offer, length)) = peer.end_pull(number) else { return result };
        // A peer without the offer gets no notification.
        let error = result.err().filter(|error| *error != OperationError::NoSuchRegion);
        match error.and_then(OperationError::wire_code) {
            // W-54
            Some(code) => {
                let refusal = Operation::Refusal { operation: offer, class: Class::Request, code };
                peer.streams.of_mut(Class::Reply).sender.append(None, &refusal);
            }
            None => self.send_received(peer, offer, 0),
        }
        result.map(|_| length)
    }

    /// Ends the receives that name a lost node, and removes its offers.
    pub(in crate::endpoint) fn fail_receives(&mut self, node: NodeId) {
        self.matching.forget_offers(node);
        self.end_receives(Some(node));
    }

    /// Ends receives from any source when no peer is left. A node that never had a peer waits for the first one.
    pub(in crate::endpoint) fn fail_receives_from_any_source(&mut self) {
        let others = || self.config().graph.endpoints().filter(|node| *node != self.config().node);
        if others().any(|node| self.forwarder.reaches(node)) {
            return;
        }
        if others().any(|node| self.forwarder.incarnation(node).is_some()) {
            self.end_receives(None);
        }
    }

    fn end_receives(&mut self, source: Option<NodeId>) {
        while let Some(index) = self.matching.posted.iter().position(|posted| posted.source == source) {
            if let Some(posted) = self.matching.posted.remove(index) {
                let result = Err(OperationError::Unreachable);
                self.forwarder.push_event(Event::Completed { operation: posted.operation, result });
            }
        }
    }
}
