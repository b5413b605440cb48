//! One direction of one link: when a frame leaves, when it arrives, and which faults it meets.
//!
//! Intuition: a channel is a wire with a turnstile. A frame starts when the one before has left, takes its bits
//! divided by the rate, and arrives one propagation delay later. The turnstile opens when the wire is free, not
//! earlier: a sender packs its frame at the moment the link grants, with all that is queued by then.
//!
//! A member that forwards frames may begin before a frame has arrived completely (`crossing`): then it is given the
//! frame when its first bit arrives. The forwarding time is added on the link by which the frame leaves. No routed
//! frame overtakes another there; frames between neighbours join behind the forwarder and wait for none.
//!
//! Members count whole nanoseconds, but a small frame on a fast link lasts 1.7 of them. So departures are kept in
//! picoseconds, and a channel grants within the nanosecond in which the wire becomes free: the wire is
//! never idle for rounding, and at most one nanosecond's worth of frames waits.
//!
//! Nothing is scheduled here; the fabric does that.

use std::collections::VecDeque;

use rackloom_plan::faults::Conditions;
use rackloom_plan::headers::wire_bytes;
use rackloom_plan::impair::{Judge, Verdict};
use rackloom_plan::{ForwardingMode, ForwardingPlan, HeaderProfile, LinkProfile};
use rackloom_protocol::wire::FrameKind;
use rackloom_protocol::wire::layout::{DESTINATION, SOURCE};
use rackloom_protocol::{Instant, NodeId, PortId};

use crate::ids::FrameId;

/// Longest time that a frame waits to be overtaken, beyond its own arrival, in nanoseconds.
pub const REORDER_HOLD_MAX_NS: u64 = 50_000;

const PICOSECONDS_PER_NANOSECOND: u64 = 1_000;
const PICOSECONDS_PER_SECOND: u64 = 1_000_000_000_000;

/// Returns true if the frame carries operations.
pub(crate) fn is_data(frame: &[u8]) -> bool {
    FrameKind::peek(frame) == Some(FrameKind::Data)
}

/// Returns true if the frame travels between two members that need not be neighbours.
fn is_routed(frame: &[u8]) -> bool {
    FrameKind::peek(frame).is_some_and(FrameKind::is_routed)
}

/// Counters of one direction of one link, as the wire saw it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStatistics {
    /// Frames that a member committed.
    pub frames_sent: u64,
    /// Bytes on the wire: check, padding, preamble and gap included.
    pub wire_bytes: u64,
    /// Bytes on the wire with the headers of the link's profile: the count by which the link's rate was divided.
    pub accounted_bytes: u64,
    /// Frames sent that carry operations.
    pub data_frames_sent: u64,
    /// Accounted bytes of the frames that carry operations.
    pub data_accounted_bytes: u64,
    /// Frames that reached the other end, duplicates included.
    pub frames_delivered: u64,
    /// Frames that did not arrive: judged lost, dropped by an action, cut off, or sent to a member that was dead.
    pub frames_dropped: u64,
    /// Frames that had a bit flipped.
    pub frames_corrupted: u64,
    /// Frames that were duplicated.
    pub frames_duplicated: u64,
    /// Frames that were held back for others to overtake.
    pub frames_reordered: u64,
}

impl LinkStatistics {
    /// Adds what the other end of the link has counted.
    pub(crate) fn add(&mut self, other: &Self) {
        let Self {
            frames_sent,
            wire_bytes,
            accounted_bytes,
            data_frames_sent,
            data_accounted_bytes,
            frames_delivered,
            frames_dropped,
            frames_corrupted,
            frames_duplicated,
            frames_reordered,
        } = self;
        for (sum, part) in [
            (frames_sent, other.frames_sent),
            (wire_bytes, other.wire_bytes),
            (accounted_bytes, other.accounted_bytes),
            (data_frames_sent, other.data_frames_sent),
            (data_accounted_bytes, other.data_accounted_bytes),
            (frames_delivered, other.frames_delivered),
            (frames_dropped, other.frames_dropped),
            (frames_corrupted, other.frames_corrupted),
            (frames_duplicated, other.frames_duplicated),
            (frames_reordered, other.frames_reordered),
        ] {
            *sum += part;
        }
    }
}

/// A frame that waits to be overtaken.
#[derive(Clone, Copy, Debug)]
struct Held {
    frame: FrameId,
    overtakers_left: u8,
    until: Instant,
}

/// Changes that a test or a fault script has made to a channel.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LinkFaults {
    /// True if the cable is cut.
    pub(crate) cut: bool,
    /// True if every frame committed from now on is lost.
    pub(crate) drop_all: bool,
    /// Number of the data frame that is lost, counted from now on; 0 is none.
    pub(crate) drop_data_frame: u64,
}

/// One direction of one link.
#[derive(Debug)]
pub(crate) struct Channel {
    pub(crate) sender: NodeId,
    pub(crate) receiver: NodeId,
    pub(crate) receiver_port: PortId,
    /// Frame that the sender is writing.
    pub(crate) write_slot: Option<FrameId>,
    /// Frames that the sender may have to send again, and their lengths; the oldest first.
    pub(crate) kept: VecDeque<(FrameId, u16)>,
    /// True if the next frame that leaves is one of those.
    pub(crate) keeps_next: bool,
    /// True if the sender found the channel busy and is polled when it opens.
    pub(crate) opening_awaited: bool,
    pub(crate) link_faults: LinkFaults,
    pub(crate) statistics: LinkStatistics,
    /// Incarnation of the channel. Every cut begins a new one, so that frames that were in flight are recognised as lost.
    pub(crate) incarnation: u32,
    rate_bits_per_s: Option<u64>,
    latency_ps: u64,
    headers: HeaderProfile,
    /// Time that forwarding takes, and when it begins; `None` if it takes no time and waits for the whole frame.
    crossing: Option<Crossing>,
    busy_until_ps: u64,
    /// Arrival of the last routed frame; no routed frame arrives earlier any more.
    last_arrival_ps: u64,
    // Facts that few links have are stored apart: a large rack's links are used one after the other, and each use
    // costs by the cache line.
    judge: Option<Box<Judge>>,
    /// Conditions of the link from a fault script, if it ever set any.
    conditions: Option<Box<Conditions>>,
    held: Vec<Held>,
}

/// Forwarding by members that do not forward a frame at once when it has arrived completely.
#[derive(Clone, Copy, Debug)]
struct Crossing {
    cuts_through: bool,
    latency_ps: u64,
}

impl Crossing {
    fn of(plan: ForwardingPlan) -> Option<Self> {
        let cuts_through = plan.mode == ForwardingMode::CutThrough;
        let latency_ps = plan.latency_ns * PICOSECONDS_PER_NANOSECOND;
        (cuts_through || latency_ps > 0).then_some(Self { cuts_through, latency_ps })
    }
}

impl Channel {
    pub(crate) fn new(
        sender: NodeId,
        receiver: (NodeId, PortId),
        profile: &LinkProfile,
        crossing: ForwardingPlan,
        judge: Option<Judge>,
    ) -> Self {
        Self {
            sender,
            receiver: receiver.0,
            receiver_port: receiver.1,
            write_slot: None,
            kept: VecDeque::new(),
            keeps_next: false,
            opening_awaited: false,
            link_faults: LinkFaults::default(),
            statistics: LinkStatistics::default(),
            incarnation: 0,
            rate_bits_per_s: profile.rate_bits_per_s,
            latency_ps: profile.latency_ps(),
            headers: profile.headers,
            crossing: Crossing::of(crossing),
            busy_until_ps: 0,
            last_arrival_ps: 0,
            judge: judge.map(Box::new),
            conditions: None,
            held: Vec::new(),
        }
    }

    /// Lets a fault script change the link: installs the judge of its frames, if there is none.
    pub(crate) fn expect_faults(&mut self, judge: impl FnOnce() -> Judge) {
        self.judge.get_or_insert_with(|| Box::new(judge()));
    }

    /// Sets the conditions from now on. Frames in flight on a cable that is cut are lost. Returns true if the sender's
    /// carrier changes with them.
    pub(crate) fn set_conditions(&mut self, conditions: &Conditions) -> bool {
        let before = self.conditions.get_or_insert_default();
        let carrier_changes = conditions.is_unplugged != before.is_unplugged;
        if conditions.is_cut && !before.is_cut {
            self.incarnation += 1;
        }
        **before = *conditions;
        if let Some(judge) = &mut self.judge {
            judge.set(conditions);
        }
        carrier_changes
    }

    /// Drops the data frames with these numbers, counted from one for the next.
    pub(crate) fn drop_from_now(&mut self, numbers: &[u64]) {
        if let Some(judge) = &mut self.judge {
            judge.drop_from_now(numbers);
        }
    }

    /// Returns when the channel takes a frame: the nanosecond in which the wire becomes free.
    pub(crate) fn opens_at(&self) -> Instant {
        Instant(self.busy_until_ps / PICOSECONDS_PER_NANOSECOND)
    }

    /// Puts a frame on the wire. Returns when the other end may have it: when its last bit arrives, or its first if
    /// it is forwarded.
    pub(crate) fn transmit(&mut self, now: Instant, frame: &[u8]) -> Instant {
        let bytes = self.count(frame);
        let start_ps = self.busy_until_ps.max(now.0.saturating_mul(PICOSECONDS_PER_NANOSECOND));
        self.busy_until_ps = start_ps.saturating_add(self.serialisation_ps(bytes));
        let (seen_ps, passing_ps) = self.cross(frame, start_ps);
        let more_ns = self.conditions.as_ref().map_or(0, |conditions| conditions.delay_ns);
        let more_ps = more_ns.saturating_mul(PICOSECONDS_PER_NANOSECOND);
        let latency_ps = self.latency_ps.saturating_add(more_ps);
        let arrival_ps = seen_ps.saturating_add(latency_ps).saturating_add(passing_ps);
        let arrival_ps = if is_routed(frame) { self.in_order(arrival_ps) } else { arrival_ps };
        Instant(arrival_ps.div_ceil(PICOSECONDS_PER_NANOSECOND))
    }

    /// Returns the arrival of a routed frame, no earlier than those before it.
    fn in_order(&mut self, arrival_ps: u64) -> u64 {
        self.last_arrival_ps = self.last_arrival_ps.max(arrival_ps);
        self.last_arrival_ps
    }

    /// Counts a frame and returns its share of the link's rate, in bytes.
    fn count(&mut self, frame: &[u8]) -> u64 {
        let wire = wire_bytes(frame.len()) as u64;
        let accounted = match self.headers {
            HeaderProfile::Own => wire,
            others => others.wire_bytes(frame) as u64,
        };
        self.statistics.frames_sent += 1;
        self.statistics.wire_bytes += wire;
        self.statistics.accounted_bytes += accounted;
        if is_data(frame) {
            self.statistics.data_frames_sent += 1;
            self.statistics.data_accounted_bytes += accounted;
        }
        accounted
    }

    /// Returns when the receiver could begin with a frame on a link without delay, and the sender's forwarding time.
    fn cross(&self, frame: &[u8], start_ps: u64) -> (u64, u64) {
        let Some(crossing) = self.crossing.filter(|_| is_routed(frame)) else {
            return (self.busy_until_ps, 0);
        };
        let end = |at| frame.get(at..at + 2).map(|bytes| NodeId(u16::from_le_bytes([bytes[0], bytes[1]])));
        let is_forwarded = end(DESTINATION).is_some_and(|destination| destination != self.receiver);
        let cuts_through = is_forwarded && crossing.cuts_through;
        let seen_ps = if cuts_through { start_ps } else { self.busy_until_ps };
        let was_passed_on = end(SOURCE).is_some_and(|source| source != self.sender);
        (seen_ps, if was_passed_on { crossing.latency_ps } else { 0 })
    }

    fn serialisation_ps(&self, wire_bytes: u64) -> u64 {
        let Some(rate) = self.rate_bits_per_s else { return 0 };
        let rate = rate.max(1);
        // Frames are far below two megabytes, so that this normally fits, and wide divisions are slow ones.
        let bits_ps =
            (wire_bytes * 8).checked_mul(PICOSECONDS_PER_SECOND).and_then(|bits| bits.checked_add(rate / 2));
        let lasts_ps = match bits_ps {
            Some(bits_ps) => bits_ps / rate,
            None => {
                let bits_ps = u128::from(wire_bytes * 8) * u128::from(PICOSECONDS_PER_SECOND);
                u64::try_from((bits_ps + u128::from(rate / 2)) / u128::from(rate)).unwrap_or(u64::MAX)
            }
        };
        self.conditions.as_ref().map_or(lasts_ps, |conditions| conditions.stretched(lasts_ps))
    }

    /// Returns the verdict on the frame that was just transmitted.
    pub(crate) fn judge(&mut self, frame: &[u8]) -> Verdict {
        let is_data = is_data(frame);
        let mut verdict = self.judge.as_mut().map_or_else(Verdict::default, |judge| judge.judge_frame(frame));
        verdict.drop |= self.link_faults.cut || self.link_faults.drop_all;
        if is_data && self.link_faults.drop_data_frame > 0 {
            self.link_faults.drop_data_frame -= 1;
            verdict.drop |= self.link_faults.drop_data_frame == 0;
        }
        verdict
    }

    /// Holds a frame back until `overtakers` others have passed, at most until the returned time.
    pub(crate) fn hold(&mut self, frame: FrameId, overtakers: u8, arrival: Instant) -> Instant {
        let until = arrival + REORDER_HOLD_MAX_NS;
        self.held.push(Held { frame, overtakers_left: overtakers, until });
        until
    }

    /// Counts a passing frame for those that wait. Calls `let_go` for each that has been overtaken often enough.
    pub(crate) fn overtake(&mut self, mut let_go: impl FnMut(FrameId)) {
        self.held.retain_mut(|held| {
            held.overtakers_left -= 1;
            if held.overtakers_left == 0 {
                let_go(held.frame);
            }
            held.overtakers_left > 0
        });
    }

    /// Ends the wait of a frame at `now`, and returns true if it was still waiting.
    pub(crate) fn hold_is_over(&mut self, frame: FrameId, now: Instant) -> bool {
        let found = self.held.iter().position(|held| held.frame == frame && held.until == now);
        found.map(|index| self.held.remove(index)).is_some()
    }
}

#[cfg(test)]
mod tests {
    use rackloom_protocol::wire::layout::VERSION_KIND;

    use super::*;

    fn channel(rate_bits_per_s: Option<u64>, delay_ns: u64) -> Channel {
        let profile = LinkProfile { rate_bits_per_s, delay_ns, ..LinkProfile::default() };
        Channel::new(NodeId(0), (NodeId(1), PortId(0)), &profile, ForwardingPlan::default(), None)
    }

    /// Returns a data frame between these members.
    fn routed(source: u8, destination: u8, bytes: usize) -> Vec<u8> {
        let mut frame = vec![0; bytes];
        frame[VERSION_KIND] = FrameKind::Data as u8;
        (frame[SOURCE], frame[DESTINATION]) = (source, destination);
        frame
    }

    #[test]
    fn ethernet_pads_and_frames_what_members_write() {
        assert_eq!(wire_bytes(1), 84);
        assert_eq!(wire_bytes(60), 84);
        assert_eq!(wire_bytes(61), 85);
        assert_eq!(wire_bytes(1514), 1538);
    }

    #[test]
    fn a_forwarded_frame_is_seen_when_it_begins_and_is_delayed_on_the_next_link() {
        let crossing =
            ForwardingPlan { mode: ForwardingMode::CutThrough, latency_ns: 250, ..ForwardingPlan::default() };
        let profile =
            LinkProfile { rate_bits_per_s: Some(100_000_000_000), delay_ns: 500, ..LinkProfile::default() };
        let mut channel = Channel::new(NodeId(0), (NodeId(1), PortId(0)), &profile, crossing, None);
        // 1250 wire bytes last 100 ns.
        assert_eq!(
            channel.transmit(Instant(1_000), &routed(0, 2, 1_226)),
            Instant(1_500),
            "goes on behind 1"
        );
        assert_eq!(channel.transmit(Instant(2_000), &routed(0, 1, 1_226)), Instant(2_600), "ends at 1");
        assert_eq!(
            channel.transmit(Instant(3_000), &routed(7, 1, 1_226)),
            Instant(3_850),
            "was passed on by 0"
        );
        assert_eq!(
            channel.transmit(Instant(3_100), &routed(0, 1, 1_226)),
            Instant(3_850),
            "no routed frame overtakes another"
        );
        assert_eq!(
            channel.transmit(Instant(3_200), &[0; 60]),
            Instant(3_707),
            "neighbours' words join behind"
        );
    }

    #[test]
    fn the_rate_is_divided_by_the_header_profile_and_both_counts_are_kept() {
        let profile = LinkProfile {
            rate_bits_per_s: Some(1_000_000_000),
            delay_ns: 0,
            headers: HeaderProfile::Sue,
            ..LinkProfile::default()
        };
        let mut channel =
            Channel::new(NodeId(0), (NodeId(1), PortId(0)), &profile, ForwardingPlan::default(), None);
        // Headers and nothing behind them: a smallest frame of 84 bytes, though ours takes 110.
        assert_eq!(channel.transmit(Instant::ZERO, &routed(0, 1, 86)), Instant(84 * 8));
        assert_eq!((channel.statistics.wire_bytes, channel.statistics.accounted_bytes), (110, 84));
        assert_eq!((channel.statistics.data_frames_sent, channel.statistics.data_accounted_bytes), (1, 84));
    }

    #[test]
    fn frames_leave_one_after_the_other() {
        let mut channel = channel(Some(100_000_000_000), 500);
        // 1250 wire bytes last 100 ns at 100 Gb/s.
        let frame = [0; 1_226];
        assert_eq!(channel.transmit(Instant(1_000), &frame), Instant(1_600));
        assert_eq!(channel.transmit(Instant(1_000), &frame), Instant(1_700));
        assert_eq!(channel.opens_at(), Instant(1_200));
        assert_eq!(channel.transmit(Instant(2_000), &frame), Instant(2_600), "an idle link starts at once");
    }

    #[test]
    fn small_frames_on_a_fast_link_lose_nothing_to_rounding() {
        let mut channel = channel(Some(400_000_000_000), 0);
        // 84 wire bytes last 1.68 ns at 400 Gb/s: granted only when open, 10,000 frames must take 16.8 us.
        let mut now = Instant::ZERO;
        let mut last = Instant::ZERO;
        for _ in 0..10_000 {
            now = now.max(channel.opens_at());
            last = channel.transmit(now, &[0; 60]);
        }
        assert_eq!(last, Instant(16_800));
    }

    #[test]
    fn an_infinite_rate_costs_no_time_and_never_closes() {
        let mut channel = channel(None, 2_000);
        for _ in 0..100 {
            assert_eq!(channel.transmit(Instant(5), &[0; 9_000]), Instant(2_005));
        }
        assert!(channel.opens_at() <= Instant(5));
    }

    #[test]
    fn a_held_frame_is_released_when_enough_frames_have_passed() {
        let mut channel = channel(None, 0);
        channel.hold(FrameId(7), 2, Instant(10));
        let mut gone = Vec::new();
        channel.overtake(|frame| gone.push(frame));
        assert_eq!(gone, []);
        channel.overtake(|frame| gone.push(frame));
        assert_eq!(gone, [FrameId(7)]);
        assert!(!channel.hold_is_over(FrameId(7), Instant(10 + REORDER_HOLD_MAX_NS)));
    }

    #[test]
    fn a_held_frame_that_is_not_overtaken_leaves_at_its_deadline() {
        let mut channel = channel(None, 0);
        let until = channel.hold(FrameId(7), 3, Instant(10));
        assert!(!channel.hold_is_over(FrameId(7), Instant(11)));
        assert!(channel.hold_is_over(FrameId(7), until));
        assert!(!channel.hold_is_over(FrameId(7), until), "it goes once");
    }

    #[test]
    fn only_the_data_frame_with_the_number_is_dropped() {
        let mut channel = channel(None, 0);
        channel.link_faults.drop_data_frame = 2;
        let mut data = [0; 20];
        data[VERSION_KIND] = FrameKind::Data as u8;
        let control = [0; 20];
        let drops: Vec<bool> =
            [&control, &data, &control, &data, &data].map(|frame| channel.judge(frame).drop).to_vec();
        assert_eq!(drops, [false, false, false, true, false]);
    }
}
