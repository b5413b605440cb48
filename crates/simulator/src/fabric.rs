//! All links of the rack: the path of a frame from its sender's commit to its receiver.
//!
//! The faults of a link are judged when the frame is committed, so that the frame's whole future is scheduled
//! at once: lost, duplicated, held back, or delivered. Only a cut of the cable can still change it in flight. The
//! receiving end recognises that by the incarnation of the channel.
//!
//! Members appear here only as the ends of channels. [`crate::rack`] decides which members are dead or paused.

use std::sync::Arc;

use rackloom_plan::impair::{Direction, Judge, Verdict};
use rackloom_plan::{ForwardingPlan, LinkPlan};
use rackloom_protocol::{DropReason, Event, Instant, NodeId, PortId};

use crate::frames::{FrameSlab, Parcel};
use crate::ids::ChannelId;
use crate::ids::FrameId;
use crate::link::{Channel, LinkStatistics};
use crate::memory::payload::{Payload, PayloadTable};
use crate::queue::{EventQueue, QueuedEvent};
use crate::trace::{FrameOutcome, Trace};

/// Minimum number of events between two calls of `trim`.
const TRIM_INTERVAL_EVENTS_MIN: u64 = 1 << 14;

/// Called for every frame that a member commits, before faults are applied: time, edge of the graph, direction,
/// and bytes of the frame.
pub type FrameHook = Box<dyn FnMut(Instant, u16, Direction, &[u8]) + Send>;

/// Observer of the outcome of every frame, for captures.
pub trait FrameObserver {
    /// Called when a member has sent a frame. `frame` is as it leaves, with its flipped bit if `verdict` flips one.
    fn sent(&mut self, now: Instant, edge: u16, direction: Direction, frame: &[u8], verdict: &Verdict);
    /// Called when a frame that went in this direction has arrived and its receiver has not used it.
    fn not_used(&mut self, now: Instant, edge: u16, direction: Direction, frame: &[u8], reason: DropReason);
    /// Called when a frame that went in this direction was lost for another reason than its verdict.
    fn lost(&mut self, now: Instant, edge: u16, direction: Direction, frame: &[u8], reason: &str);
}

/// All links, with the frames in flight on them.
pub(crate) struct Fabric {
    pub(crate) queue: EventQueue,
    pub(crate) frames: FrameSlab,
    pub(crate) trace: Trace,
    payload_table: Arc<PayloadTable>,
    channels: Vec<Channel>,
    /// Receivers by channel, beside each other: the links of a large rack are used one after the other.
    receivers: Box<[NodeId]>,
    hook: Option<FrameHook>,
    observer: Option<Box<dyn FrameObserver + Send>>,
    /// Shortest time in which a frame can get from one member to another, in nanoseconds.
    shortest_ns: u64,
    /// True if frames may wait on a link for others to overtake them.
    has_holds: bool,
    /// Members of other parts, if there are any.
    elsewhere: Option<Box<Elsewhere>>,
}

/// Members of other parts, and the frames that have left for them.
#[derive(Debug)]
pub(crate) struct Elsewhere {
    /// Number of this part.
    pub(crate) own: usize,
    /// Part of each member.
    pub(crate) of_member: Arc<[u8]>,
    /// Frames by part.
    pub(crate) parcels: Vec<Parcel>,
}

impl Elsewhere {
    /// Returns the parcel for a member, or `None` if the member is of this part.
    fn parcel_for(&mut self, member: NodeId) -> Option<&mut Parcel> {
        let part = usize::from(self.of_member[member.index()]);
        if part == self.own { None } else { self.parcels.get_mut(part) }
    }
}

impl Fabric {
    /// Creates the links of a plan. `has_checks`: frames carry checks. `seed` drives their faults.
    pub(crate) fn new(
        links: &[LinkPlan],
        has_checks: bool,
        crossing: ForwardingPlan,
        seed: u64,
        buffer_bytes: usize,
        payload_table: Arc<PayloadTable>,
    ) -> Self {
        payload_table.is_watched.set(links.iter().any(|link| link.profile.corrupt > 0.0));
        let seals = |link: &LinkPlan| link.profile.llr.is_some() || !link.updates.resync;
        payload_table.is_summed.set(has_checks && links.iter().any(seals));
        let mut channels = Vec::with_capacity(links.len() * 2);
        for link in links {
            let (a, b) = ((link.edge.a, link.edge.a_port), (link.edge.b, link.edge.b_port));
            for (direction, sender, receiver) in [(Direction::Forward, a, b), (Direction::Backward, b, a)] {
                let judge =
                    link.profile.has_faults().then(|| Judge::new(seed, &link.name, direction, &link.profile));
                channels.push(Channel::new(sender.0, receiver, &link.profile, crossing, judge));
            }
        }
        let shortest_ps = links.iter().map(|link| link.profile.latency_ps()).min().unwrap_or(0);
        Self {
            shortest_ns: shortest_ps / 1_000,
            has_holds: links.iter().any(|link| link.profile.reorder > 0.0),
            queue: EventQueue::default(),
            frames: FrameSlab::new(buffer_bytes, Arc::clone(&payload_table)),
            payload_table,
            trace: Trace::default(),
            receivers: channels.iter().map(|channel| channel.receiver).collect(),
            channels,
            hook: None,
            observer: None,
            elsewhere: None,
        }
    }

    /// Keeps the frame in the write slot of the channel once it leaves, beside `others` kept frames.
    pub(crate) fn keep(&mut self, id: ChannelId, others: usize) {
        self.forget_kept(id, others);
        self.channels[id.index()].keeps_next = true;
    }

    /// Forgets the kept frames of a channel except the last `others`.
    pub(crate) fn forget_kept(&mut self, id: ChannelId, others: usize) {
        let kept = &mut self.channels[id.index()].kept;
        while kept.len() > others
            && let Some((frame, _)) = kept.pop_front()
        {
            self.frames.forget(frame);
        }
    }

    /// Puts a kept frame into the write slot of the channel.
    pub(crate) fn load_kept(&mut self, id: ChannelId, behind: usize) {
        let channel = &self.channels[id.index()];
        let kept_index = channel.kept.len().checked_sub(behind + 1);
        if let (Some(write_slot), Some((kept, length))) =
            (channel.write_slot, kept_index.and_then(|kept_index| channel.kept.get(kept_index)))
        {
            self.frames.load_kept(*kept, write_slot, usize::from(*length));
        }
    }

    /// Gives up memory that is not needed any more. Call it between polls. Returns the number of events after which
    /// the next call is useful.
    pub(crate) fn trim(&mut self) -> u64 {
        // Buffers that senders requested and did not write to.
        for write_slot in self.channels.iter_mut().filter_map(|channel| channel.write_slot.take()) {
            self.frames.release(write_slot);
        }
        self.frames.trim();
        self.queue.trim();
        TRIM_INTERVAL_EVENTS_MIN.max(4 * self.frames.len() as u64)
    }

    /// Stores complete frames from now on: a reader or a fault needs frames in flight with all their bytes.
    pub(crate) fn keep_whole(&self) {
        self.payload_table.is_watched.set(true);
    }

    pub(crate) fn set_hook(&mut self, hook: FrameHook) {
        self.keep_whole();
        self.hook = Some(hook);
    }

    pub(crate) fn set_observer(&mut self, observer: Box<dyn FrameObserver + Send>) {
        // Frames stay as short as without an observer, so that the hash of the run is the same. The observer is shown the referenced bytes.
        self.payload_table.is_observed.set(true);
        self.observer = Some(observer);
    }

    /// Returns for how long the actions of a member cannot affect another member, in nanoseconds; 0 if an observer
    /// needs all events in order, or if the path of a frame is not fixed when it leaves.
    pub(crate) const fn lookahead_ns(&self) -> u64 {
        if self.hook.is_some() || self.observer.is_some() || self.has_holds { 0 } else { self.shortest_ns }
    }

    /// Removes the observers of frames.
    pub(crate) fn remove_observer(&mut self) {
        self.payload_table.is_observed.set(false);
        self.observer = None;
    }

    pub(crate) const fn has_observer(&self) -> bool {
        self.observer.is_some()
    }

    /// Counts a frame that was delivered to a member and that the member did not use.
    pub(crate) fn not_used(&mut self, now: Instant, frame: FrameId, reason: DropReason) {
        self.notify_observer(frame, |observer, edge, direction, bytes| {
            observer.not_used(now, edge, direction, bytes, reason);
        });
    }

    fn notify_observer(
        &mut self,
        frame: FrameId,
        what: impl FnOnce(&mut dyn FrameObserver, u16, Direction, &[u8]),
    ) {
        if let Some(observer) = &mut self.observer {
            let (id, _) = self.frames.carrier(frame);
            what(&mut **observer, id.edge(), id.direction(), self.frames.shown(frame));
        }
    }

    pub(crate) fn channel(&self, id: ChannelId) -> &Channel {
        &self.channels[id.index()]
    }

    /// Returns the channel, or `None` if there is no such link.
    pub(crate) fn channel_mut(&mut self, id: ChannelId) -> Option<&mut Channel> {
        self.channels.get_mut(id.index())
    }

    pub(crate) fn statistics(&self) -> impl Iterator<Item = &LinkStatistics> {
        self.channels.iter().map(|channel| &channel.statistics)
    }

    /// Returns the frame in which the sender may write its next frame. If the channel is busy, schedules its opening.
    pub(crate) fn write_slot(&mut self, now: Instant, id: ChannelId) -> Option<FrameId> {
        let channel = self.channels.get_mut(id.index())?;
        let opens_at = channel.opens_at();
        if opens_at > now {
            if !channel.opening_awaited {
                channel.opening_awaited = true;
                self.queue.push(opens_at, QueuedEvent::Opening(id));
            }
            return None;
        }
        Some(*channel.write_slot.get_or_insert_with(|| self.frames.take(id)))
    }

    /// Puts the frame in the write slot of the channel on the wire.
    pub(crate) fn commit(&mut self, now: Instant, id: ChannelId, length: usize) {
        let channel = &mut self.channels[id.index()];
        let Some(write_slot) = channel.write_slot.take() else { return };
        let bytes = self.frames.draft(write_slot, length);
        if let Some(hook) = &mut self.hook {
            hook(now, id.edge(), id.direction(), bytes);
        }
        let arrival = channel.transmit(now, bytes);
        let verdict = channel.judge(bytes);
        let frame = self.frames.seal(write_slot, length, channel.incarnation);
        if std::mem::take(&mut channel.keeps_next) {
            let is_damaged = verdict.corrupt_bit.is_some();
            let kept = if is_damaged { self.frames.keep_copy(frame) } else { self.frames.keep(frame) };
            channel.kept.push_back((kept, length as u16));
        }
        if let Some(bit) = verdict.corrupt_bit.filter(|_| !verdict.drop) {
            self.frames.flip_bit(frame, bit);
            channel.statistics.frames_corrupted += 1;
        }
        self.notify_observer(frame, |observer, edge, direction, bytes| {
            observer.sent(now, edge, direction, bytes, &verdict);
        });
        if verdict.drop {
            self.lose(now, frame, FrameOutcome::Lost);
        } else {
            self.send(frame, arrival, verdict);
        }
    }

    fn send(&mut self, frame: FrameId, arrival: Instant, verdict: Verdict) {
        let (id, _) = self.frames.carrier(frame);
        let channel = &mut self.channels[id.index()];
        let twin = verdict.duplicate.then(|| self.frames.duplicate(frame));
        if twin.is_some() {
            channel.statistics.frames_duplicated += 1;
        }
        if verdict.reorder_by > 0 {
            channel.statistics.frames_reordered += 1;
            let until = channel.hold(frame, verdict.reorder_by, arrival);
            self.queue.push(until, QueuedEvent::HoldOver(frame));
        } else {
            self.pass(id, frame, arrival);
        }
        if let Some(twin) = twin {
            self.pass(id, twin, arrival);
        }
    }

    /// Sets which members are of other parts. Payloads are copied when they leave from now on.
    pub(crate) fn set_elsewhere(&mut self, elsewhere: Elsewhere) {
        self.payload_table.is_observed.set(true);
        self.elsewhere = Some(Box::new(elsewhere));
    }

    /// Returns the frames that have left for members of other parts, by part.
    pub(crate) fn parcels(&mut self) -> &mut [Parcel] {
        self.elsewhere.as_mut().map_or(&mut [], |elsewhere| &mut elsewhere.parcels)
    }

    /// Schedules the arrival of frames from another part.
    pub(crate) fn receive(&mut self, parcel: &mut Parcel) {
        let Self { frames, queue, receivers, .. } = self;
        frames.unpack(parcel, |frame, id, at| {
            queue.push(at, QueuedEvent::Arrival(frame, receivers[id.index()]));
        });
    }

    /// Schedules the arrival of a frame, and of those that have now been overtaken often enough.
    fn pass(&mut self, id: ChannelId, frame: FrameId, arrival: Instant) {
        let channel = &mut self.channels[id.index()];
        let receiver = channel.receiver;
        if let Some(parcel) = self.elsewhere.as_mut().and_then(|elsewhere| elsewhere.parcel_for(receiver)) {
            // No frame waits to be overtaken here: racks with such links have one thread.
            return self.frames.pack(frame, arrival, parcel);
        }
        self.queue.push(arrival, QueuedEvent::Arrival(frame, receiver));
        channel.overtake(|held| self.queue.push(arrival, QueuedEvent::Arrival(held, receiver)));
    }

    /// Ends the wait of a frame that was held back, and returns true if it was still waiting. A frame that was
    /// overtaken has arrived long ago; its slot may hold another frame.
    pub(crate) fn hold_over(&mut self, now: Instant, frame: FrameId) -> bool {
        if !self.frames.has(frame) {
            return false;
        }
        let (id, _) = self.frames.carrier(frame);
        self.channels[id.index()].hold_is_over(frame, now)
    }

    /// Opens the channel and returns the member that may send.
    pub(crate) fn open(&mut self, id: ChannelId) -> NodeId {
        let channel = &mut self.channels[id.index()];
        channel.opening_awaited = false;
        channel.sender
    }

    /// Returns where a frame arrives; `None` if the link was cut while the frame was in flight. The frame is then lost.
    pub(crate) fn arrive(&mut self, now: Instant, frame: FrameId) -> Option<(NodeId, PortId)> {
        let (id, incarnation) = self.frames.carrier(frame);
        let channel = self.channel(id);
        if channel.incarnation == incarnation {
            return Some((channel.receiver, channel.receiver_port));
        }
        self.lose(now, frame, FrameOutcome::CutOff);
        None
    }

    /// Records that a frame does not reach its receiver.
    pub(crate) fn lose(&mut self, now: Instant, frame: FrameId, outcome: FrameOutcome) {
        let (id, _) = self.frames.carrier(frame);
        let statistics = &mut self.channels[id.index()].statistics;
        statistics.frames_dropped += 1;
        // Each end counts in its own order.
        let number =
            if outcome == FrameOutcome::Lost { statistics.frames_sent } else { statistics.frames_delivered };
        self.trace.frame(now, id, outcome, number, self.frames.traced(frame));
        if let Some(reason) = outcome.beyond_verdict() {
            self.notify_observer(frame, |observer, edge, direction, bytes| {
                observer.lost(now, edge, direction, bytes, reason);
            });
        }
        self.frames.release(frame);
    }

    /// Records that a frame is given to its receiver, and returns its bytes.
    pub(crate) fn deliver(&mut self, now: Instant, frame: FrameId) -> &[u8] {
        let (id, _) = self.frames.carrier(frame);
        let statistics = &mut self.channels[id.index()].statistics;
        statistics.frames_delivered += 1;
        self.trace.frame(
            now,
            id,
            FrameOutcome::Delivered,
            statistics.frames_delivered,
            self.frames.traced(frame),
        );
        self.frames.full(frame)
    }

    /// Sets the bytes that the frame in the write slot of the channel borrows from its sender's memory.
    pub(crate) fn load(&mut self, id: ChannelId, payload: Payload, is_whole: bool) {
        if let Some(write_slot) = self.channel(id).write_slot {
            self.frames.load(write_slot, payload, is_whole || self.payload_table.is_watched.get());
        }
    }

    /// Returns the bytes of a frame from which a member's memory is about to copy.
    pub(crate) fn unload(&mut self, frame: FrameId) -> &[u8] {
        self.payload_table.unload(self.frames.payload(frame));
        self.frames.full_again(frame)
    }

    /// Adds an event of a member to the trace hash. `number`: how many events the member has reported before.
    pub(crate) fn trace_event(&mut self, now: Instant, node: NodeId, number: u64, event: &Event) {
        self.trace.event(now, node, number, event);
    }
}

impl std::fmt::Debug for Fabric {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Fabric").field("channels", &self.channels.len()).finish_non_exhaustive()
    }
}
