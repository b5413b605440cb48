//! A device whose frames carry a counter and a keyed tag: the innermost wrapper, next to the real device.
//!
//! Frames that an impairment above this wrapper drops, repeats or damages are sealed afterwards. Faults of a link profile are therefore detected and
//! counted as without a key. Before both ends have agreed on a session, frames are lost, as any device may lose them.

use std::os::fd::BorrowedFd;

use rackloom_protocol::Instant;

use super::forward::forward;
use super::{Device, DeviceCounters, DeviceLease, Offered, WakeSource};
use crate::seal::{EndNonce, LinkEnds, LinkSeal, RackKey, TRAILER_BYTES};

/// Number of refused frames that one call skips. A flood of such frames must not keep a node from its own work.
const REFUSED_PER_CALL_MAX: usize = 64;

/// A device that seals sent frames and opens received frames.
///
/// `Send` and `Sync` as far as the device is. Its changes take `&mut self`.
#[derive(Debug)]
pub struct Sealed<D> {
    device: D,
    seal: LinkSeal,
}

impl<D: Device> Sealed<D> {
    /// Seals this end of a link. `nonce` identifies this opening of the end and is never used twice.
    pub fn new(device: D, key: RackKey, ends: LinkEnds, nonce: EndNonce) -> Self {
        Self { device, seal: LinkSeal::new(key, ends, nonce) }
    }

    /// Returns whether both ends have agreed on a session, so that frames pass.
    pub const fn is_agreed(&self) -> bool {
        self.seal.is_agreed()
    }

    /// Sends the pending answers of the handshake. They leave before the next frame, so that the neighbour can open that frame.
    fn send_answers(&mut self) {
        while let Some(length) = self.device.slot().and_then(|slot| self.seal.answer(slot)) {
            self.device.commit(length, true);
        }
    }
}

impl<D: Device> Device for Sealed<D> {
    forward!(keep_pages, hold, release, ready, show, carrier, wake_source, carrier_source, plug);

    fn receive(&mut self) -> Option<DeviceLease> {
        for _ in 0..REFUSED_PER_CALL_MAX {
            let lease = self.device.receive()?;
            if self.seal.open(self.device.leased(lease)).is_some() {
                return Some(lease);
            }
            self.device.release(lease);
        }
        None
    }
    fn offer(&mut self, take: &mut dyn FnMut(&[u8]) -> bool) -> Option<Offered> {
        for _ in 0..REFUSED_PER_CALL_MAX {
            let (seal, mut is_refused) = (&mut self.seal, false);
            let offered = self.device.offer(&mut |bytes| {
                let opened = seal.open(bytes).and_then(|length| bytes.get(..length));
                is_refused = opened.is_none();
                opened.is_none_or(&mut *take)
            })?;
            if !is_refused {
                return Some(offered);
            }
        }
        None
    }
    fn leased(&self, lease: DeviceLease) -> &[u8] {
        let bytes = self.device.leased(lease);
        &bytes[..bytes.len().saturating_sub(TRAILER_BYTES)]
    }
    fn slot(&mut self) -> Option<&mut [u8]> {
        self.send_answers();
        let slot = self.device.slot()?;
        let length = slot.len().saturating_sub(TRAILER_BYTES);
        slot.get_mut(..length)
    }
    fn commit(&mut self, length: usize, doorbell: bool) {
        if !self.seal.is_agreed() {
            return;
        }
        match self.device.slot().and_then(|slot| self.seal.close(slot, length)) {
            Some(length) => self.device.commit(length, doorbell),
            // The device counts frames that it cannot accept.
            None => self.device.commit(length.saturating_add(TRAILER_BYTES), doorbell),
        }
    }
    fn flush(&mut self, now: Instant) {
        self.send_answers();
        if let Some(length) = self.device.slot().and_then(|slot| self.seal.greeting(now, slot)) {
            self.device.commit(length, true);
        }
        self.device.flush(now);
    }
    fn next_due(&self) -> Instant {
        self.device.next_due().min(self.seal.next_due())
    }
    fn counters(&self) -> DeviceCounters {
        let (bad_tags, replays) = self.seal.refused();
        DeviceCounters { bad_tags, replays, ..self.device.counters() }
    }
}
