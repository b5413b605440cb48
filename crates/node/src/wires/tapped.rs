//! A device that shows its sent frames to an observer: for captures, and for tests that compare the frames of two engines on a link.
//!
//! It shows frames as the member committed them, before an impairment below it damages them. It changes nothing.

use std::os::fd::BorrowedFd;

use rackloom_protocol::Instant;

use super::forward::forward;
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
    forward!(
        receive,
        leased,
        keep_pages,
        hold,
        release,
        ready,
        slot,
        flush,
        next_due,
        carrier,
        wake_source,
        carrier_source,
        counters
    );

    fn commit(&mut self, length: usize, doorbell: bool) {
        if let Some(frame) = self.device.slot().and_then(|slot| slot.get(..length)) {
            (self.watch)(frame);
        }
        self.device.commit(length, doorbell);
    }
}
