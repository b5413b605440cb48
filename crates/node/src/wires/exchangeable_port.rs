//! A port whose cable can be exchanged while its node runs, or that has no cable.
//!
//! The seat at the other end of a link may be vacant, or its process may have died and another process may take the seat. The old cable is then
//! useless, and a new one is supplied through an [`Inserter`]. The device takes the new cable when its carrier is polled next, so the data path is
//! not affected.
//!
//! Between two cables the carrier is absent for at least one poll of the carrier, so that the core notices the new link. Frames of the old cable that
//! the core still holds stay readable until the core releases them. One bit of a lease selects one of two cables. A third cable waits until the core
//! holds no frame of the first.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use rackloom_protocol::{Instant, Write};

use super::{Device, DeviceCounters, DeviceLease, Doorbell, FaultHand, Offered, WakeSource};

/// Bit of a lease that selects one of the two cables.
const SIDE_BIT: u32 = 1 << 19;

/// Wake source of a port without a cable.
///
/// `Send` and `Sync`: plain data.
#[derive(Debug)]
#[non_exhaustive]
pub enum Idle {
    /// The node's own doorbell, which its ports share.
    Doorbell(Doorbell),
    /// A descriptor that never becomes readable, for wires that wake by descriptor.
    Descriptor(OwnedFd),
}

impl Idle {
    /// Creates a descriptor that never becomes readable.
    ///
    /// # Errors
    /// The error of the system.
    pub fn silence() -> std::io::Result<Self> {
        Ok(Self::Descriptor(rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC)?))
    }
}

type Handover = Arc<Mutex<Option<Box<dyn Device>>>>;

/// Handle that exchanges the cable of a [`ExchangeablePort`].
///
/// `Send` and `Sync`. Any thread may exchange the cable. The port takes it at its next poll.
#[derive(Clone)]
pub struct Inserter {
    handover: Handover,
}

impl std::fmt::Debug for Inserter {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Inserter").finish_non_exhaustive()
    }
}

impl Inserter {
    /// Exchanges the cable at the next poll. Replaces a cable that was inserted and not yet taken. All cables of a jack must wake the node through
    /// the source that its [`Idle`] names.
    pub fn insert(&self, device: Box<dyn Device>) {
        *self.handover.lock().unwrap_or_else(PoisonError::into_inner) = Some(device);
    }
}

/// One cable, and the number of its frames that the core holds.
struct Cable {
    device: Box<dyn Device>,
    frames_out: usize,
}

impl Cable {
    /// Returns the core's lease for a frame of this cable.
    fn give(&mut self, lease: DeviceLease, side: u32) -> Option<DeviceLease> {
        if lease.0 & SIDE_BIT != 0 {
            // The core holds half a million frames. This one is dropped, as any device may drop a frame.
            self.device.release(lease);
            return None;
        }
        self.frames_out += 1;
        Some(DeviceLease(lease.0 | side))
    }
}

/// A port whose cable can be exchanged.
///
/// `Send`, not `Sync`: one thread drives it at a time, and it may move to another.
pub struct ExchangeablePort {
    /// The cable in use, at index `current`, and the one before it.
    cables: [Option<Cable>; 2],
    current: usize,
    handover: Handover,
    idle: Idle,
    /// Sum of the counters of removed cables.
    past: DeviceCounters,
}

impl ExchangeablePort {
    /// Creates a port with this cable, or without one.
    #[must_use]
    pub fn new(device: Option<Box<dyn Device>>, idle: Idle) -> (Self, Inserter) {
        let handover = Handover::default();
        let cable = device.map(|device| Cable { device, frames_out: 0 });
        let past = DeviceCounters::default();
        let port = Self { cables: [cable, None], current: 0, handover: Arc::clone(&handover), idle, past };
        (port, Inserter { handover })
    }

    fn cable(&self) -> Option<&Cable> {
        self.cables[self.current].as_ref()
    }

    fn cable_mut(&mut self) -> Option<&mut Cable> {
        self.cables[self.current].as_mut()
    }

    /// Takes the inserted cable, if there is one and the other slot is free. Returns whether a cable was inserted, taken or not: the old one is no
    /// longer valid in both cases.
    fn exchange(&mut self) -> bool {
        let handover = Arc::clone(&self.handover);
        let mut brought = handover.lock().unwrap_or_else(PoisonError::into_inner);
        if brought.is_none() {
            return false;
        }
        let other = 1 - self.current;
        self.forget_if_unused(other);
        if self.cables[other].is_none() {
            self.cables[other] = brought.take().map(|device| Cable { device, frames_out: 0 });
            let old = std::mem::replace(&mut self.current, other);
            self.forget_if_unused(old);
        }
        true
    }

    fn forget_if_unused(&mut self, index: usize) {
        if self.cables[index].as_ref().is_some_and(|cable| cable.frames_out == 0)
            && let Some(cable) = self.cables[index].take()
        {
            self.past = sum(self.past, cable.device.counters());
        }
    }

    fn side(&self) -> u32 {
        if self.current == 0 { 0 } else { SIDE_BIT }
    }
}

/// Splits a lease into the index of its cable and the lease there.
fn split(lease: DeviceLease) -> (usize, DeviceLease) {
    (usize::from(lease.0 & SIDE_BIT != 0), DeviceLease(lease.0 & !SIDE_BIT))
}

impl Device for ExchangeablePort {
    fn receive(&mut self) -> Option<DeviceLease> {
        let side = self.side();
        let cable = self.cable_mut()?;
        let lease = cable.device.receive()?;
        cable.give(lease, side)
    }

    fn offer(&mut self, take: &mut dyn FnMut(&[u8]) -> bool) -> Option<Offered> {
        let side = self.side();
        let cable = self.cable_mut()?;
        match cable.device.offer(take)? {
            Offered::Taken => Some(Offered::Taken),
            Offered::Leased(lease) => cable.give(lease, side).map(Offered::Leased),
        }
    }

    fn leased(&self, lease: DeviceLease) -> &[u8] {
        let (index, lease) = split(lease);
        self.cables[index].as_ref().map_or(&[], |cable| cable.device.leased(lease))
    }

    fn keep_pages(&mut self) -> Option<(usize, usize)> {
        self.cable_mut()?.device.keep_pages()
    }

    fn hold(&mut self, lease: DeviceLease) {
        let (index, lease) = split(lease);
        if let Some(cable) = &mut self.cables[index] {
            cable.device.hold(lease);
        }
    }

    fn release(&mut self, lease: DeviceLease) {
        let (index, lease) = split(lease);
        if let Some(cable) = &mut self.cables[index] {
            cable.device.release(lease);
            cable.frames_out = cable.frames_out.saturating_sub(1);
        }
    }

    fn ready(&mut self) -> bool {
        self.cable_mut().is_some_and(|cable| cable.device.ready())
    }

    fn slot(&mut self) -> Option<&mut [u8]> {
        self.cable_mut()?.device.slot()
    }

    fn commit(&mut self, length: usize, doorbell: bool) {
        if let Some(cable) = self.cable_mut() {
            cable.device.commit(length, doorbell);
        }
    }

    fn fill(&mut self, write: &mut Write<'_>) {
        if let Some(cable) = self.cable_mut() {
            cable.device.fill(write);
        }
    }

    fn flush(&mut self, now: Instant) {
        // The old cable is flushed too: its remote end may wait for space that the core has just released.
        self.cables.iter_mut().flatten().for_each(|cable| cable.device.flush(now));
    }

    fn next_due(&self) -> Instant {
        self.cable().map_or(Instant::NEVER, |cable| cable.device.next_due())
    }

    fn carrier(&mut self) -> bool {
        // The carrier is absent at the poll that exchanges cables, and at every poll until the exchange is possible.
        !self.exchange() && self.cable_mut().is_some_and(|cable| cable.device.carrier())
    }

    fn carrier_source(&self) -> Option<BorrowedFd<'_>> {
        self.cable()?.device.carrier_source()
    }

    fn wake_source(&self) -> WakeSource<'_> {
        match (&self.idle, self.cable()) {
            (Idle::Doorbell(doorbell), _) => WakeSource::Doorbell(doorbell),
            (Idle::Descriptor(_), Some(cable)) => cable.device.wake_source(),
            (Idle::Descriptor(silence), None) => WakeSource::Descriptor(silence.as_fd()),
        }
    }

    fn counters(&self) -> DeviceCounters {
        let present = self.cables.iter().flatten().map(|cable| cable.device.counters());
        present.fold(self.past, sum)
    }

    fn faults(&mut self) -> Option<&mut dyn FaultHand> {
        self.cable_mut()?.device.faults()
    }
}

fn sum(a: DeviceCounters, b: DeviceCounters) -> DeviceCounters {
    DeviceCounters {
        send_errors: a.send_errors + b.send_errors,
        receive_errors: a.receive_errors + b.receive_errors,
        tagged: a.tagged + b.tagged,
        foreign: a.foreign + b.foreign,
        kernel_drops: a.kernel_drops + b.kernel_drops,
        bad_tags: a.bad_tags + b.bad_tags,
        replays: a.replays + b.replays,
        full: a.full + b.full,
        copied_out: a.copied_out + b.copied_out,
        injected_drops: a.injected_drops + b.injected_drops,
        injected_corruptions: a.injected_corruptions + b.injected_corruptions,
        injected_duplicates: a.injected_duplicates + b.injected_duplicates,
        injected_reorders: a.injected_reorders + b.injected_reorders,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wires::shared_memory::{RING_BYTES_MIN, SharedMemoryDevice, pair};

    fn bell() -> Doorbell {
        Doorbell::create().unwrap()
    }

    fn cable(bell: &Doorbell) -> (Box<dyn Device>, SharedMemoryDevice) {
        let (local, remote) = pair(RING_BYTES_MIN, bell, bell).unwrap();
        (Box::new(local), remote)
    }

    fn send(device: &mut dyn Device, text: &[u8]) {
        device.slot().unwrap()[..text.len()].copy_from_slice(text);
        device.commit(text.len(), false);
        device.flush(Instant::ZERO);
    }

    #[test]
    fn without_a_cable_there_is_no_carrier_no_slot_and_no_frame() {
        let (mut port, _) = ExchangeablePort::new(None, Idle::silence().unwrap());
        assert!(!port.carrier() && !port.ready());
        assert!(port.slot().is_none() && port.receive().is_none());
        port.commit(10, true);
        port.flush(Instant::ZERO);
        assert!(matches!(port.wake_source(), WakeSource::Descriptor(_)));
    }

    #[test]
    fn the_carrier_is_absent_for_one_look_between_two_cables() {
        let bell = bell();
        let ((first, _remote), (second, mut other)) = (cable(&bell), cable(&bell));
        let (mut port, inserter) = ExchangeablePort::new(Some(first), Idle::Doorbell(bell));
        assert!(port.carrier());
        inserter.insert(second);
        assert!(!port.carrier());
        assert!(port.carrier());
        send(&mut port, b"to the new one");
        let lease = other.receive().unwrap();
        assert_eq!(other.leased(lease), b"to the new one");
    }

    #[test]
    fn frames_of_the_old_cable_stay_readable_and_a_third_one_waits_for_them() {
        let bell = bell();
        let ((first, mut remote), (second, mut other)) = (cable(&bell), cable(&bell));
        let (mut port, inserter) = ExchangeablePort::new(Some(first), Idle::Doorbell(bell.clone()));
        send(&mut remote, b"old");
        let old = port.receive().unwrap();
        drop(remote);
        inserter.insert(second);
        assert!(!port.carrier());
        send(&mut other, b"new");
        let new = port.receive().unwrap();
        assert_ne!(old, new);
        assert_eq!((port.leased(old), port.leased(new)), (&b"old"[..], &b"new"[..]));
        port.release(new);

        let (third, mut last) = cable(&bell);
        inserter.insert(third);
        assert!(!port.carrier() && !port.carrier(), "it waits as long as the first one is read");
        assert_eq!(port.leased(old), b"old");
        port.release(old);
        assert!(!port.carrier());
        assert!(port.carrier());
        send(&mut last, b"third");
        let lease = port.receive().unwrap();
        assert_eq!(port.leased(lease), b"third");
    }
}
