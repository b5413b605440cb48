//! Routes, losses, returns and new incarnations of remote nodes, and the timers of streams.

use alloc::boxed::Box;

use crate::endpoint::Endpoint;
use crate::endpoint::peer::{Peer, Reach};
use crate::endpoint::stream::Stream;
use crate::error::OperationError;
use crate::event::Event;
use crate::ids::{Class, NodeId};
use crate::link::credits::is_ahead;
use crate::operation::bulk::Bulk;
use crate::operation::outstanding::ReplyKind;
use crate::per_channel::PerChannel;
use crate::time::Instant;

impl Endpoint {
    /// Follows a change of the forwarding table or of the known incarnations.
    pub(super) fn follow_routes(&mut self, now: Instant) {
        if !self.forwarder.routes_changed && self.forwarder.new_incarnations.is_empty() {
            return;
        }
        while let Some(node) = self.forwarder.new_incarnations.pop() {
            self.meet_new_incarnation(node);
        }
        if !core::mem::take(&mut self.forwarder.routes_changed) {
            return;
        }
        let lines = self.ready_data.iter_mut().flat_map(PerChannel::iter_mut);
        lines.for_each(alloc::collections::VecDeque::clear);
        self.ready_acks.iter_mut().for_each(alloc::collections::VecDeque::clear);
        for index in 0..self.known.len() {
            let node = self.known[index];
            let Some(mut peer) = self.peers[node.index()].take() else { continue };
            self.follow_peer(now, &mut peer);
            self.drain_answered(&peer);
            self.put_back(peer);
        }
        if !self.words.is_empty() || !self.matching.is_empty() {
            let count = self.config().graph.members.len() as u16;
            for node in (0..count).map(NodeId) {
                if node != self.config().node && !self.forwarder.reaches(node) {
                    self.fail_waits(node);
                }
            }
            self.fail_receives_from_any_source();
        }
        self.end_flushes();
    }

    fn follow_peer(&mut self, now: Instant, peer: &mut Box<Peer>) {
        peer.streams.iter_mut().for_each(|stream| stream.tickets = 0);
        peer.is_ack_queued = false;
        let reachable = self.forwarder.reaches(peer.node);
        if !reachable && peer.reach == Reach::Reached {
            peer.reach = Reach::Lost;
            self.fail_peer(peer, false);
            self.forget_grants(peer);
        }
        let returns = reachable && peer.reach == Reach::Lost;
        peer.reach = if reachable { Reach::Reached } else { Reach::Lost };
        let mut announced = None;
        let mut moved = false;
        let lost_paths = self.find_paths(peer);
        for class in Class::ALL {
            let old = peer.ports[class.index()];
            let new = self.forwarder.route(peer.node, self.entropy(peer.node, class));
            peer.ports[class.index()] = new;
            if old != new && old.is_some() && new.is_some() && announced != Some((old, new)) {
                announced = Some((old, new));
                self.forwarder.push_event(Event::PathChanged { destination: peer.node, from: old, to: new });
            }
            let is_moved = new.is_some() && (returns || (old != new && !peer.uses_several_paths()));
            moved |= is_moved || !lost_paths.is_empty();
            let Some(Stream { sender, .. }) = peer.streams.get_mut(class) else { continue };
            for path in &lost_paths {
                sender.handle_path_lost(now, path.0);
            }
            if is_moved {
                sender.handle_path_change(now);
            }
            let deadline = sender.deadline().filter(|_| moved);
            self.arm_stream(peer, deadline);
            self.queue_data(peer, class);
        }
        if moved {
            // W-25
            peer.streams.iter_mut().for_each(|stream| stream.receiver.repeat_ack());
        }
        self.queue_ack(peer);
    }

    fn meet_new_incarnation(&mut self, node: NodeId) {
        let Some(incarnation) = self.forwarder.incarnation(node) else { return };
        let Some(mut old) = self.peers[node.index()].take() else { return };
        if old.incarnation == incarnation {
            self.put_back(old);
            return;
        }
        self.fail_peer(&mut old, true);
        self.forget_grants(&mut old);
        for stream in old.streams.iter_mut() {
            for lease in stream.receiver.take_held() {
                if self.memory.end_hold(lease) {
                    self.forwarder.release(lease);
                }
            }
        }
        let mut fresh = self.fresh_peer(node, old.position, incarnation);
        fresh.posted_error = old.posted_error;
        self.put_back(fresh);
        self.fail_waits(node);
        self.forwarder.push_event(Event::NodeRestarted { node });
        self.forwarder.routes_changed = true;
    }

    /// Ends the operations towards a peer that has no path or whose incarnation is over. Operations that were sent
    /// have an unknown outcome; unsent ones are discarded.
    fn fail_peer(&mut self, peer: &mut Peer, is_over: bool) {
        let posted = peer.posted_in_flight();
        for class in [Class::Request, Class::Bulk] {
            let Some(stream) = peer.streams.get_mut(class) else { continue };
            let unsent = stream.sender.first_unsent_operation();
            let was_sent = |number: u32| is_ahead(unsent, number);
            let (mut visible, replies) = stream.outstanding.drain();
            while let Some(wait) = visible.pop_front() {
                self.end_waiting(wait.command, Err(loss(was_sent(wait.first))));
            }
            for wait in replies.into_iter().filter(|wait| !wait.is_over) {
                // A lost load or get has changed nothing.
                let has_effect = matches!(wait.kind, ReplyKind::Value | ReplyKind::Offer);
                let may_have_happened = has_effect && was_sent(wait.number);
                self.end_part(wait.group, Err(loss(may_have_happened)));
            }
            for bulk in core::mem::take(&mut stream.bulk) {
                match bulk {
                    Bulk::Put { group, first, .. } => {
                        self.end_part(group, Err(loss(first.is_some_and(was_sent))));
                    }
                    Bulk::Get { group, .. } | Bulk::Pull { group, .. } => {
                        self.end_part(group, Err(OperationError::Unreachable))
                    }
                    Bulk::GetData { .. } => {}
                }
            }
            stream.sender.void();
        }
        peer.forget_operations(is_over);
        let is_reported = self.fail_flushes(peer.node, posted);
        if posted.is_some() && !is_reported {
            peer.posted_error = peer.posted_error.or(Some(OperationError::OutcomeUnknown));
        }
    }

    fn fail_waits(&mut self, node: NodeId) {
        self.fail_receives(node);
        // Writes of the node from before its loss count: each awaited word is read once more.
        for index in 0..self.words.len() {
            let wait = &mut self.words[index];
            if wait.depends_on == Some(node) && !core::mem::replace(&mut wait.is_last, true) {
                self.look_at_word(index);
            }
        }
    }

    /// Handles retransmission timeouts and delayed acknowledgements, and finds the next deadline. Peers whose deadlines are later than now and than
    /// that of a peer before them are not looked at.
    pub(super) fn handle_stream_timeouts(&mut self, now: Instant) {
        self.next_deadline = Instant::NEVER;
        for index in 0..self.known.len() {
            if self.deadlines[index] > now && self.deadlines[index] >= self.next_deadline {
                continue;
            }
            let node = self.known[index];
            let Some(mut peer) = self.peers[node.index()].take() else { continue };
            if peer.reach == Reach::Reached {
                self.deadlines[index] = Instant::NEVER;
                self.handle_peer_timeouts(now, &mut peer);
            }
            self.put_back(peer);
        }
        self.handle_grant_timeout(now);
        self.end_flushes();
    }

    fn handle_peer_timeouts(&mut self, now: Instant, peer: &mut Peer) {
        for class in Class::ALL {
            let Some(stream) = peer.streams.get_mut(class) else { continue };
            if !stream.sender.handle_timeout(now) {
                self.fail_peer(peer, false);
            }
            let Some(Stream { sender, receiver, .. }) = peer.streams.get_mut(class) else { continue };
            receiver.handle_timeout(now);
            let deadlines = [sender.deadline(), receiver.deadline()];
            deadlines.into_iter().for_each(|deadline| self.arm_stream(peer, deadline));
            self.queue_data(peer, class);
        }
        self.queue_ack(peer);
    }
}

const fn loss(may_have_happened: bool) -> OperationError {
    if may_have_happened { OperationError::OutcomeUnknown } else { OperationError::Unreachable }
}
