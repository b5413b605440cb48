//! Fault injection on any wire, and optionally modelled timing: applies a link profile on the sending side.
//!
//! The plan's judge decides which fault each frame suffers. The simulator uses the same judge. This wrapper applies the decision to real frames: it
//! drops them, flips a bit, sends them twice, or lets later frames overtake them. A frame that waits to be overtaken is sent after [`HOLD_NS_MAX`] at
//! the latest. It is late, but never lost.
//!
//! Rate and delay are not modelled unless the caller requests it. In wall time, delays below about 50 microseconds are lost in the noise of the host,
//! and timing would only slow down a run that checks correctness.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;

use rackloom_plan::LinkProfile;
use rackloom_plan::faults::Conditions;
use rackloom_plan::headers::wire_bytes;
use rackloom_plan::impair::{Judge, Verdict};
use rackloom_protocol::Instant;

use super::forward::forward;
use super::{Device, DeviceCounters, DeviceLease, FaultHand, Offered, WakeSource};

/// Longest time that a frame waits to be overtaken, in nanoseconds.
pub const HOLD_NS_MAX: u64 = 200_000;

/// Number of frames that a modelled cable holds before the device is full.
const IN_FLIGHT_MAX: usize = 4096;
/// Longest queueing time of a frame on a modelled cable, in nanoseconds. A longer queue would delay heartbeats and link acknowledgements behind data.
/// A shorter one would leave the cable idle while the host wakes the sender.
const QUEUE_NS_MAX: u64 = 200_000;
/// Delay before the next attempt after the device was full, in nanoseconds.
const RETRY_NS: u64 = 100_000;

/// Modelled timing of a link.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// Rate in bits per second, or `None` for the device's own speed.
    pub rate_bits_per_s: Option<u64>,
    /// Propagation delay, in nanoseconds.
    pub delay_ns: u64,
}

impl Timing {
    /// Returns the timing that a profile states.
    #[must_use]
    pub fn of(profile: &LinkProfile) -> Self {
        Self { rate_bits_per_s: profile.rate_bits_per_s, delay_ns: profile.latency_ns() }
    }

    /// Returns the time of a frame on the wire, with check, padding, preamble and gap.
    fn serialisation_ns(&self, frame_bytes: usize) -> u64 {
        let Some(rate) = self.rate_bits_per_s else { return 0 };
        let bits_ns = wire_bytes(frame_bytes) as u128 * 8 * 1_000_000_000;
        u64::try_from(bits_ns.div_ceil(u128::from(rate.max(1)))).unwrap_or(u64::MAX)
    }
}

/// A copied frame that is sent later.
#[derive(Debug)]
struct Kept {
    frame: Vec<u8>,
    doorbell: bool,
    /// Time at which the frame is sent. `None` until the flush after its commit, because a commit has no time.
    due: Option<Instant>,
    /// Number of frames that still have to overtake this one.
    overtakers_left: u8,
}

/// Callback for every frame that is judged. It receives the frame as sent, including a flipped bit, and the verdict.
///
/// `Send`, not `Sync`: the thread that drives the device calls it.
pub type Watch = Box<dyn FnMut(&[u8], &Verdict) + Send>;

/// A device that applies the faults of a link to the frames that it sends.
///
/// `Send`, not `Sync`: one thread drives it at a time, and it may move to another.
pub struct Impaired<D> {
    device: D,
    judge: Judge,
    /// Timing that the caller requested at creation, without faults.
    usual_timing: Option<Timing>,
    /// Timing that is in effect now.
    timing: Option<Timing>,
    conditions: Conditions,
    /// Timing of the profile, whether it is in effect or not. Fault actions modify it.
    modelled: Timing,
    /// Time at which the modelled cable has accepted the last bit.
    busy_until: Instant,
    /// Serialisation time of the frames committed since the last flush, in nanoseconds.
    committed_ns: u64,
    flushed_at: Instant,
    /// Set if the queue was too long for a frame since the last flush.
    has_refused: bool,
    /// Time at which a frame that was refused should be offered again.
    space_due: Option<Instant>,
    /// Frames on the modelled cable, and frames that found the device full. First in, first out.
    in_flight: VecDeque<Kept>,
    /// Frames that wait to be overtaken.
    held: Vec<Kept>,
    buffers: Vec<Vec<u8>>,
    counters: DeviceCounters,
    watch: Option<Watch>,
    /// Set until a fault script begins, on a link without faults of its own. Frames are neither judged nor counted.
    is_dormant: bool,
}

impl<D: Device> Impaired<D> {
    /// Wraps `device` so that `judge` decides on every sent frame. Pass `timing` only if rate and delay are to be modelled too.
    pub fn new(device: D, judge: Judge, timing: Option<Timing>) -> Self {
        Self {
            device,
            judge,
            usual_timing: timing,
            timing,
            conditions: Conditions::default(),
            modelled: timing.unwrap_or_default(),
            busy_until: Instant::ZERO,
            committed_ns: 0,
            flushed_at: Instant::ZERO,
            has_refused: false,
            space_due: None,
            in_flight: VecDeque::new(),
            held: Vec::new(),
            buffers: Vec::new(),
            counters: DeviceCounters::default(),
            watch: None,
            is_dormant: false,
        }
    }

    /// Sets the timing that fault actions modify, for a link whose timing is not modelled otherwise.
    #[must_use]
    pub fn with_profile(mut self, profile: &LinkProfile) -> Self {
        self.modelled = Timing::of(profile);
        self
    }

    /// Passes every frame through, unjudged, until a fault script begins. For links that have no faults of their own.
    #[must_use]
    pub fn dormant(mut self) -> Self {
        self.is_dormant = true;
        self
    }

    /// Sets the callback that receives every frame and its verdict.
    #[must_use]
    pub fn watched_by(mut self, watch: Option<Watch>) -> Self {
        self.watch = watch;
        self
    }

    /// Returns whether frames go through the modelled cable. On a cable that has just become fast again they stay behind the frames still on it.
    fn is_timed(&self) -> bool {
        self.timing.is_some() || !self.in_flight.is_empty()
    }

    /// Copies the frame in the device's slot.
    fn copy(&mut self, length: usize, doorbell: bool) -> Option<Kept> {
        let mut frame = self.buffers.pop().unwrap_or_default();
        frame.clear();
        frame.extend_from_slice(self.device.slot()?.get(..length)?);
        Some(Kept { frame, doorbell, due: None, overtakers_left: 0 })
    }

    /// Returns whether the modelled cable has enough frames queued. The queue is short, like that of a network card, so that the member chooses the
    /// next frame only shortly before the frame can leave.
    fn has_long_queue(&self) -> bool {
        self.timing.is_some()
            && self.busy_until.since(self.flushed_at).saturating_add(self.committed_ns) > QUEUE_NS_MAX
    }

    /// Records the time at which a frame that found the queue too long should be offered again.
    fn note_space(&mut self, now: Instant) {
        self.flushed_at = now;
        if std::mem::take(&mut self.has_refused) {
            let space_at = Instant(self.busy_until.0.saturating_sub(QUEUE_NS_MAX));
            self.space_due = Some(space_at.max(now + 1));
        } else if self.space_due.is_some_and(|due| due <= now) {
            self.space_due = None;
        }
    }

    /// Sends a copy: to the modelled cable if there is one, else to the device as soon as it has space.
    fn depart(&mut self, kept: Kept) {
        if self.is_timed() || !self.send(&kept) {
            let timing = self.timing.unwrap_or_default();
            self.committed_ns = self.committed_ns.saturating_add(timing.serialisation_ns(kept.frame.len()));
            self.in_flight.push_back(Kept { due: None, ..kept });
        } else {
            self.buffers.push(kept.frame);
        }
    }

    /// Puts a copy on the device. Returns whether there was space for it.
    fn send(&mut self, kept: &Kept) -> bool {
        let length = kept.frame.len();
        let Some(slot) = self.device.slot().and_then(|slot| slot.get_mut(..length)) else { return false };
        slot.copy_from_slice(&kept.frame);
        self.device.commit(length, kept.doorbell);
        true
    }

    /// Sends the frame in the device's slot `copies` times. Without a modelled cable the first copy is committed in place.
    fn depart_from_slot(&mut self, length: usize, doorbell: bool, copies: usize) {
        let in_place = usize::from(!self.is_timed());
        let kept: [Option<Kept>; 2] = std::array::from_fn(|copy| {
            (copy + in_place < copies).then(|| self.copy(length, doorbell)).flatten()
        });
        if in_place > 0 {
            self.device.commit(length, doorbell);
        }
        for kept in kept.into_iter().flatten() {
            self.depart(kept);
        }
    }

    /// Counts one passed frame for every held frame, and releases the held frames that have been overtaken often enough.
    fn overtake(&mut self) {
        for kept in &mut self.held {
            kept.overtakers_left = kept.overtakers_left.saturating_sub(1);
        }
        self.release_held(|kept| kept.overtakers_left == 0);
    }

    fn release_held(&mut self, may_go: impl Fn(&Kept) -> bool) {
        while let Some(index) = self.held.iter().position(&may_go) {
            let kept = self.held.remove(index);
            self.depart(kept);
        }
    }

    /// Sets the due time of frames that were committed since the last flush.
    fn stamp(&mut self, now: Instant) {
        for kept in self.held.iter_mut().filter(|kept| kept.due.is_none()) {
            kept.due = Some(now + HOLD_NS_MAX);
        }
        let timing = self.timing.unwrap_or_default();
        for kept in self.in_flight.iter_mut().filter(|kept| kept.due.is_none()) {
            self.busy_until = self.busy_until.max(now) + timing.serialisation_ns(kept.frame.len());
            kept.due = Some(self.busy_until + timing.delay_ns);
        }
        self.committed_ns = 0;
    }

    /// Passes the frames that have reached the end of the cable to the device.
    fn arrive(&mut self, now: Instant) {
        while self.in_flight.front().is_some_and(|kept| kept.due <= Some(now)) {
            let Some(mut kept) = self.in_flight.pop_front() else { return };
            if !self.send(&kept) {
                kept.due = Some(now + RETRY_NS);
                return self.in_flight.push_front(kept);
            }
            self.buffers.push(kept.frame);
        }
    }
}

impl<D: std::fmt::Debug> std::fmt::Debug for Impaired<D> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Impaired").field("device", &self.device).finish_non_exhaustive()
    }
}

impl<D: Device> Device for Impaired<D> {
    forward!(receive, offer, leased, keep_pages, hold, release, ready, wake_source, carrier_source);

    fn slot(&mut self) -> Option<&mut [u8]> {
        if self.in_flight.len() >= IN_FLIGHT_MAX || self.has_long_queue() {
            self.counters.full += 1;
            self.has_refused = true;
            return None;
        }
        self.device.slot()
    }

    fn commit(&mut self, length: usize, doorbell: bool) {
        if self.is_dormant {
            return self.device.commit(length, doorbell);
        }
        let Some(frame) = self.device.slot().and_then(|slot| slot.get_mut(..length)) else {
            self.counters.send_errors += 1;
            return;
        };
        let verdict = self.judge.judge_frame(frame);
        if let Some(bit) = verdict.corrupt_bit
            && let Some(byte) = frame.get_mut(bit as usize / 8)
        {
            *byte ^= 1 << (bit % 8);
            self.counters.injected_corruptions += 1;
        }
        if let Some(watch) = &mut self.watch {
            watch(frame, &verdict);
        }
        if verdict.drop {
            self.counters.injected_drops += 1;
            return;
        }
        let copies = 1 + usize::from(verdict.duplicate);
        self.counters.injected_duplicates += u64::from(verdict.duplicate);
        if verdict.reorder_by == 0 {
            self.depart_from_slot(length, doorbell, copies);
            self.overtake();
            return;
        }
        self.counters.injected_reorders += 1;
        for _ in 0..copies {
            if let Some(kept) = self.copy(length, doorbell) {
                self.held.push(Kept { overtakers_left: verdict.reorder_by, ..kept });
            }
        }
    }

    fn flush(&mut self, now: Instant) {
        self.release_held(|kept| kept.due.is_some_and(|due| due <= now));
        self.stamp(now);
        self.arrive(now);
        self.note_space(now);
        self.device.flush(now);
    }

    fn next_due(&self) -> Instant {
        let kept = self.in_flight.front().into_iter().chain(&self.held);
        kept.filter_map(|kept| kept.due).chain(self.space_due).fold(self.device.next_due(), Instant::min)
    }

    fn carrier(&mut self) -> bool {
        !self.conditions.is_unplugged && self.device.carrier()
    }

    fn counters(&self) -> DeviceCounters {
        let (own, inner) = (self.counters, self.device.counters());
        DeviceCounters {
            send_errors: own.send_errors + inner.send_errors,
            full: own.full + inner.full,
            injected_drops: own.injected_drops + inner.injected_drops,
            injected_corruptions: own.injected_corruptions + inner.injected_corruptions,
            injected_duplicates: own.injected_duplicates + inner.injected_duplicates,
            injected_reorders: own.injected_reorders + inner.injected_reorders,
            ..inner
        }
    }

    fn faults(&mut self) -> Option<&mut dyn FaultHand> {
        Some(self)
    }
}

impl<D: Device> FaultHand for Impaired<D> {
    fn begin(&mut self) {
        self.is_dormant = false;
    }

    fn set(&mut self, conditions: &Conditions) {
        if conditions.is_unplugged != self.conditions.is_unplugged {
            self.device.plug(!conditions.is_unplugged);
        }
        self.conditions = *conditions;
        self.judge.set(conditions);
        let changes_timing = conditions.delay_ns > 0 || conditions.rate_share < 1.0;
        let usual = self.usual_timing.or_else(|| changes_timing.then_some(self.modelled));
        self.timing = usual.map(|usual| Timing {
            rate_bits_per_s: usual.rate_bits_per_s.map(|rate| (rate as f64 * conditions.rate_share) as u64),
            delay_ns: usual.delay_ns.saturating_add(conditions.delay_ns),
        });
    }

    fn drop_from_now(&mut self, numbers: &[u64]) {
        self.judge.drop_from_now(numbers);
    }

    fn data_frames(&self) -> u64 {
        self.judge.data_frames()
    }
}

#[cfg(test)]
mod tests {
    use rackloom_plan::impair::Direction;
    use rackloom_protocol::wire::FrameKind;
    use rackloom_protocol::wire::layout::VERSION_KIND as KIND_OFFSET;

    use super::super::shared_memory::{RING_BYTES_MIN, SharedMemoryDevice, pair};
    use super::super::{Doorbell, FRAME_BYTES_MAX};
    use super::*;

    const FRAMES: u32 = 4000;
    const FRAME_BYTES: usize = 100;

    fn judge(profile: &LinkProfile) -> Judge {
        Judge::new(11, "n0--n1", Direction::Forward, profile)
    }

    fn link(
        profile: &LinkProfile,
        timing: Option<Timing>,
    ) -> (Impaired<SharedMemoryDevice>, SharedMemoryDevice) {
        let bells = (Doorbell::create().unwrap(), Doorbell::create().unwrap());
        let (local, remote) = pair(RING_BYTES_MIN, &bells.0, &bells.1).unwrap();
        (Impaired::new(local, judge(profile), timing), remote)
    }

    fn send(local: &mut impl Device, number: u32) {
        let slot = &mut local.slot().unwrap()[..FRAME_BYTES];
        slot.fill(0);
        slot[..4].copy_from_slice(&number.to_le_bytes());
        slot[KIND_OFFSET] = FrameKind::Data as u8;
        local.commit(FRAME_BYTES, true);
    }

    fn receive_all(remote: &mut impl Device, into: &mut Vec<Vec<u8>>) {
        while let Some(lease) = remote.receive() {
            into.push(remote.leased(lease).to_vec());
            remote.release(lease);
        }
        remote.flush(Instant::ZERO);
    }

    /// Sends numbered frames, one per microsecond, and waits until no frame is held back. Returns the received frames and the counters.
    fn run(profile: &LinkProfile) -> (Vec<Vec<u8>>, DeviceCounters) {
        let (mut local, mut remote) = link(profile, None);
        let mut arrived = Vec::new();
        for number in 0..FRAMES {
            send(&mut local, number);
            local.flush(Instant(u64::from(number) * 1000));
            receive_all(&mut remote, &mut arrived);
        }
        let end = local.next_due();
        if end != Instant::NEVER {
            local.flush(Instant(u64::from(FRAMES) * 1000) + HOLD_NS_MAX);
        }
        receive_all(&mut remote, &mut arrived);
        assert_eq!(local.next_due(), Instant::NEVER, "nothing is held for ever");
        (arrived, local.counters())
    }

    fn number(frame: &[u8]) -> u32 {
        u32::from_le_bytes(frame[..4].try_into().unwrap())
    }

    #[test]
    fn exactly_the_frames_with_a_drop_verdict_are_lost() {
        let profile = LinkProfile { loss: 0.05, ..LinkProfile::default() };
        let (arrived, counters) = run(&profile);
        let mut same_judge = judge(&profile);
        let spared: Vec<u32> = (0..FRAMES).filter(|_| !same_judge.judge(FRAME_BYTES, None).drop).collect();
        assert_eq!(arrived.iter().map(|frame| number(frame)).collect::<Vec<_>>(), spared);
        assert!(counters.injected_drops > 0);
        assert_eq!(counters.injected_drops as usize + arrived.len(), FRAMES as usize);
    }

    #[test]
    fn a_slow_cable_limits_its_queue_and_states_when_space_is_free() {
        // A frame of 100 bytes has 124 on the wire, with check, preamble and gap. At 1 Mbit/s they take 992 us.
        let slow = Timing { rate_bits_per_s: Some(1_000_000), delay_ns: 0 };
        let (mut local, _remote) = link(&LinkProfile::default(), Some(slow));
        local.flush(Instant(0));
        send(&mut local, 1);
        assert!(local.slot().is_none(), "before the flush as well");
        local.flush(Instant(0));
        assert_eq!(local.next_due(), Instant(992_000 - QUEUE_NS_MAX));
        local.flush(Instant(791_999));
        assert!(local.slot().is_none());
        local.flush(Instant(792_000));
        assert!(local.slot().is_some());
        local.flush(Instant(792_001));
        local.flush(Instant(792_002));
        assert_eq!(local.next_due(), Instant(992_000), "only the frame on the cable is waited for");
    }

    #[test]
    fn a_corrupted_frame_differs_in_one_bit() {
        let (arrived, counters) = run(&LinkProfile { corrupt: 0.05, ..LinkProfile::default() });
        let mut flipped = 0;
        for (sent, frame) in (0..FRAMES).zip(&arrived) {
            let mut expected = [0; FRAME_BYTES];
            expected[..4].copy_from_slice(&sent.to_le_bytes());
            expected[KIND_OFFSET] = FrameKind::Data as u8;
            let bits: u32 = expected.iter().zip(frame).map(|(a, b)| (a ^ b).count_ones()).sum();
            assert!(bits <= 1);
            flipped += u64::from(bits);
        }
        assert_eq!(arrived.len(), FRAMES as usize);
        assert!(flipped > 0);
        assert_eq!(flipped, counters.injected_corruptions);
    }

    #[test]
    fn a_duplicated_frame_arrives_twice_unchanged() {
        let (arrived, counters) = run(&LinkProfile { duplicate: 0.05, ..LinkProfile::default() });
        let twice = arrived.windows(2).filter(|pair| pair[0] == pair[1]).count();
        assert!(twice > 0);
        assert_eq!(twice as u64, counters.injected_duplicates);
        assert_eq!(arrived.len(), FRAMES as usize + twice);
    }

    #[test]
    fn an_observer_sees_every_frame_and_its_fault() {
        let profile = LinkProfile { loss: 0.1, corrupt: 0.1, duplicate: 0.1, ..LinkProfile::default() };
        let (local, mut remote) = link(&profile, None);
        let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let sink = std::sync::Arc::clone(&seen);
        let watch: Watch =
            Box::new(move |frame, verdict| sink.lock().unwrap().push((frame.to_vec(), *verdict)));
        let mut local = local.watched_by(Some(watch));
        let mut arrived = Vec::new();
        for number in 0..FRAMES {
            send(&mut local, number);
            local.flush(Instant(u64::from(number)));
            receive_all(&mut remote, &mut arrived);
        }
        let seen = seen.lock().unwrap();
        assert_eq!(seen.len(), FRAMES as usize);
        let passed = seen.iter().filter(|(_, verdict)| !verdict.drop);
        let expected: Vec<_> = passed
            .flat_map(|(frame, verdict)| vec![frame.clone(); 1 + usize::from(verdict.duplicate)])
            .collect();
        assert!(seen.iter().any(|(_, verdict)| verdict.drop) && arrived == expected);
    }

    #[test]
    fn an_overtaken_frame_is_late_and_never_lost() {
        let (arrived, counters) = run(&LinkProfile { reorder: 0.05, ..LinkProfile::default() });
        let mut numbers: Vec<u32> = arrived.iter().map(|frame| number(frame)).collect();
        let late = numbers.windows(2).filter(|pair| pair[0] > pair[1]).count();
        assert!(late > 0 && counters.injected_reorders as usize >= late);
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(0..FRAMES), "each came once");
    }

    #[test]
    fn a_reordered_frame_without_a_successor_leaves_after_its_time() {
        let (mut local, mut remote) = link(&LinkProfile { reorder: 1.0, ..LinkProfile::default() }, None);
        send(&mut local, 1);
        local.flush(Instant(500));
        assert!(!remote.ready());
        assert_eq!(local.next_due(), Instant(500 + HOLD_NS_MAX));
        local.flush(local.next_due());
        assert!(remote.ready());
    }

    #[test]
    fn a_modelled_cable_delays_its_frames() {
        // A frame of 100 bytes has 124 on the wire, which take 9.92 microseconds at 100 Mbit/s; the cable has a delay of 1 millisecond.
        let timing = Timing { rate_bits_per_s: Some(100_000_000), delay_ns: 1_000_000 };
        let (mut local, mut remote) = link(&LinkProfile::default(), Some(timing));
        for number in 0..3 {
            send(&mut local, number);
        }
        local.flush(Instant(70));
        assert_eq!(local.next_due(), Instant(1_009_990));
        let mut arrived = Vec::new();
        for (now, expected) in
            [(1_009_989, 0), (1_009_990, 1), (1_019_909, 1), (1_019_910, 2), (1_029_830, 3)]
        {
            local.flush(Instant(now));
            receive_all(&mut remote, &mut arrived);
            assert_eq!(arrived.len(), expected, "at {now}");
        }
    }

    #[test]
    fn a_modelled_cable_keeps_frames_while_the_device_is_full() {
        let timing = Timing { rate_bits_per_s: None, delay_ns: 1000 };
        let (mut local, mut remote) = link(&LinkProfile::default(), Some(timing));
        let sent = (RING_BYTES_MIN as usize / FRAME_BYTES * 2).min(IN_FLIGHT_MAX) as u32;
        for number in 0..sent {
            send(&mut local, number);
        }
        let mut arrived = Vec::new();
        let mut now = Instant::ZERO;
        local.flush(now);
        while local.next_due() != Instant::NEVER {
            now = local.next_due().max(now + 1);
            local.flush(now);
            receive_all(&mut remote, &mut arrived);
            assert!(now < Instant(1_000_000_000), "no end in sight");
        }
        receive_all(&mut remote, &mut arrived);
        assert!(arrived.iter().map(|frame| number(frame)).eq(0..sent));
        assert!(local.slot().is_some_and(|slot| slot.len() == FRAME_BYTES_MAX));
    }
}
