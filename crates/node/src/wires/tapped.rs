//! A device that shows its sent frames to an observer: for captures, and for tests that compare the frames of two engines on a link.
//!
//! It shows frames as the member committed them, before an impairment below it damages them. It changes nothing.

use std::os::fd::BorrowedFd;

use rackloom_protocol::Instant;

use super::{Device, DeviceCounters, DeviceLease, WakeSource};

/// A device that shows each committed frame to `watch`.
///
/// `Send` and `Sync` as far as the device and the observer are. Its changes take `&mut self`.
#[derive(Debug)]
pub struct Tapped<D, W> {
    device: D,
    watch: W,
}

impl<D: Device, W: FnMut(&[u8]) + Send> Tapped<D, W> {
    /// Passes each frame that is sent on `device` to `watch`.
    pub fn new(device: D, watch: W) -> Self {
        Self { device, watch }
    }
}

impl<D: Device, W: FnMut(&[u8]) + Send> Device for Tapped<D, W> {
    fn receive(&mut self) -> Option<DeviceLease> {
        self.device.receive()
    }
    fn leased(&self, lease: DeviceLease) -> &[u8] {
        self.device.leased(lease)
    }
    fn keep_pages(&mut self) -> Option<(usize, usize)> {
        self.device.keep_pages()
    }
    fn hold(&mut self, lease: DeviceLease) {
        self.device.hold(lease);
    }
    fn release(&mut self, lease: DeviceLease) {
        self.device.release(lease);
    }
    fn ready(&mut self) -> bool {
        self.device.ready()
    }
    fn slot(&mut self) -> Option<&mut [u8]> {
        self.device.slot()
    }
    fn commit(&mut self, length: usize, doorbell: bool) {
        if let Some(frame) = self.device.slot().and_then(|room| room.get(..length)) {
            (self.watch)(frame);
        }
        self.device.commit(length, doorbell);
    }
    fn flush(&mut self, now: Instant) {
        self.device.flush(now);
    }
    fn next_due(&self) -> Instant {
        self.device.next_due()
    }
    fn carrier(&mut self) -> bool {
        self.device.carrier()
    }
    fn wake_source(&self) -> WakeSource<'_> {
        self.device.wake_source()
    }
    fn carrier_source(&self) -> Option<BorrowedFd<'_>> {
        self.device.carrier_source()
    }
    fn counters(&self) -> DeviceCounters {
        self.device.counters()
    }
}
