//! Wires: frame devices, one per port.
//!
//! A device carries whole Ethernet frames between two neighbours. The contract is deliberately weak, because the core repairs every error: a device
//! may drop, duplicate, reorder and corrupt frames. A device must not block, invent a frame, panic, or stop for ever because one received frame is
//! still leased.
//!
//! [`shared_memory`] is the default and needs only Linux. [`packet`] sends the same bytes over real interfaces. [`udp`] sends them in datagrams.
//! [`impaired`] wraps any device and applies a link profile. [`tapped`] wraps any device and shows the frames that are sent. [`sealed`] wraps any
//! device and authenticates frames. [`exchangeable_port`] holds any device and lets it be exchanged. [`Ports`] combines the devices of a node into one
//! [`rackloom_protocol::Wires`]. All of them pass one conformance suite.

mod bell_ringer;
#[cfg(test)]
mod carrier_tests;
#[cfg(test)]
mod conformance;
pub(crate) mod descriptors;
mod doorbell;
mod doorbell_word;
pub mod exchangeable_port;
#[cfg(test)]
mod foreign_tests;
mod forward;
pub mod impaired;
#[cfg(test)]
mod in_namespaces;
pub mod kinds;
mod leases;
#[cfg(test)]
mod links_under_test;
mod ports;
mod ring;
mod ring_memory;
#[cfg(test)]
mod ring_tests;
pub mod sealed;
mod socket;
pub mod tapped;
mod truesize;

use std::os::fd::BorrowedFd;

use rackloom_plan::faults::Conditions;
use rackloom_protocol::{Instant, Write};

pub use descriptors::keep_across_exec;
pub use doorbell::Doorbell;
pub(crate) use kinds::packet::socket::{bind as bind_packet_socket, open as open_packet_socket};
pub use kinds::{packet, shared_memory, udp};
pub use ports::{Ports, PortsError};
pub(crate) use socket::{set_option, set_receive_buffer};

/// Size of the largest frame that every device carries, in bytes, with the Ethernet header. It exceeds an MTU of 9000.
pub const FRAME_BYTES_MAX: usize = 9216;

/// A received frame that a device still holds. The device chooses the number.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeviceLease(pub u32);

/// Result of offering a received frame.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Offered {
    /// The receiver has finished with the frame, and it was released.
    Taken,
    /// The frame stays valid until [`Device::release`].
    Leased(DeviceLease),
}

/// Source that wakes a sleeping node when a device has something.
///
/// `Send` and `Sync`: borrowed.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum WakeSource<'a> {
    /// The node's doorbell. Neighbours ring it.
    Doorbell(&'a Doorbell),
    /// A descriptor that becomes readable.
    Descriptor(BorrowedFd<'a>),
}

/// Counters of a device: events that the core cannot see.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceCounters {
    /// Frames that the device accepted but could not send.
    pub send_errors: u64,
    /// Received frames that were too long for a buffer and could not be passed on.
    pub receive_errors: u64,
    /// Frames with a VLAN tag. This wire has no VLANs.
    pub tagged: u64,
    /// Frames that stations other than the neighbour sent. Their contents were not examined.
    pub foreign: u64,
    /// Frames that the kernel dropped before this process could take them.
    pub kernel_drops: u64,
    /// Frames without a valid tag, where frames carry tags.
    pub bad_tags: u64,
    /// Frames with a valid tag that had been received before.
    pub replays: u64,
    /// Number of times that the device had no space for a frame.
    pub full: u64,
    /// Received frames that were moved to the heap because the core kept them long.
    pub copied_out: u64,
    /// Frames that an injected fault dropped.
    pub injected_drops: u64,
    /// Frames in which an injected fault flipped a bit.
    pub injected_corruptions: u64,
    /// Frames that an injected fault sent twice.
    pub injected_duplicates: u64,
    /// Frames that an injected fault sent later than others.
    pub injected_reorders: u64,
}

/// The frame device of one port.
///
/// Devices are `Send`, not `Sync`: one thread drives a device at a time, and it may move to another.
pub trait Device: Send {
    /// Returns the next received frame. Its bytes stay readable until [`Device::release`].
    fn receive(&mut self) -> Option<DeviceLease>;
    /// Offers the next received frame to `take`. If `take` returns true, it has finished with the frame, and the frame is released. Otherwise this is
    /// the same as [`Device::receive`].
    fn offer(&mut self, take: &mut dyn FnMut(&[u8]) -> bool) -> Option<Offered> {
        let lease = self.receive()?;
        if !take(self.leased(lease)) {
            return Some(Offered::Leased(lease));
        }
        self.release(lease);
        Some(Offered::Taken)
    }
    /// Returns the bytes of a frame, or an empty slice if the lease does not exist.
    fn leased(&self, lease: DeviceLease) -> &[u8];
    /// Returns the address and length of the memory that contains the received frames, if it is one range. The range then stays mapped until the
    /// process ends, so that hardware other than this processor can read frames in place.
    fn keep_pages(&mut self) -> Option<(usize, usize)> {
        None
    }
    /// Pins a frame at its present address until it is released, because hardware reads it in place. Only for devices that keep pages.
    fn hold(&mut self, lease: DeviceLease) {
        let _ = lease;
    }
    /// Releases a frame. Frames may be released in any order.
    fn release(&mut self, lease: DeviceLease);
    /// Returns whether [`Device::receive`] would return a frame.
    fn ready(&mut self) -> bool;
    /// Returns space for a frame of [`FRAME_BYTES_MAX`] bytes, or `None` while the device is full. Repeated calls without a commit return the same
    /// space with the same bytes.
    fn slot(&mut self) -> Option<&mut [u8]>;
    /// Commits the first `length` bytes of the slot as a frame. The neighbour may see it at once, and must be able to see it after the next
    /// [`Device::flush`]. `doorbell`: wake the neighbour if it sleeps.
    fn commit(&mut self, length: usize, doorbell: bool);
    /// Sends frames that `write` writes, until it writes none or there is no space. Each frame wakes a sleeping neighbour.
    fn fill(&mut self, write: &mut Write<'_>) {
        while let Some(length) = self.slot().and_then(&mut *write) {
            self.commit(length, true);
        }
    }
    /// Publishes committed frames to the neighbour if that costs next to nothing. The neighbour need not be woken before the next [`Device::flush`].
    fn show(&mut self) {}
    /// Sends the committed frames that are due, and returns the space of released frames to the neighbour.
    fn flush(&mut self, now: Instant);
    /// Returns the time at which [`Device::flush`] must be called even if nothing was committed, or [`Instant::NEVER`] if the device holds nothing
    /// back.
    fn next_due(&self) -> Instant {
        Instant::NEVER
    }
    /// Returns whether the neighbour is present, as far as the device can detect. May make a system call.
    fn carrier(&mut self) -> bool;
    /// Returns the source to sleep on.
    fn wake_source(&self) -> WakeSource<'_>;
    /// Returns a descriptor that becomes readable when the result of [`Device::carrier`] may have changed. Several devices may share it.
    fn carrier_source(&self) -> Option<BorrowedFd<'_>> {
        None
    }
    /// Returns the counters so far.
    fn counters(&self) -> DeviceCounters;
    /// Unplugs this end of the cable, or plugs it in again, at devices that have a cable. [`Device::carrier`] then reports the change, here and at
    /// the neighbour.
    fn plug(&mut self, is_plugged: bool) {
        let _ = is_plugged;
    }
    /// Returns the interface for fault scripts, at devices that have one.
    fn faults(&mut self) -> Option<&mut dyn FaultHand> {
        None
    }
}

/// Interface for fault scripts: changes the faults of the frames that a device sends, while it sends.
///
/// `Send`, not `Sync`: it belongs to the device.
pub trait FaultHand: Send {
    /// Prepares the device for faults: it counts and judges frames from now on.
    fn begin(&mut self);
    /// Sets the conditions that apply from now on, in addition to the link's profile.
    fn set(&mut self, conditions: &Conditions);
    /// Drops the data frames with these numbers. The next data frame has number 1.
    fn drop_from_now(&mut self, numbers: &[u64]);
    /// Returns the number of data frames sent, including those dropped.
    fn data_frames(&self) -> u64;
}

impl<D: Device + ?Sized> Device for Box<D> {
    fn receive(&mut self) -> Option<DeviceLease> {
        (**self).receive()
    }
    fn offer(&mut self, take: &mut dyn FnMut(&[u8]) -> bool) -> Option<Offered> {
        (**self).offer(take)
    }
    fn leased(&self, lease: DeviceLease) -> &[u8] {
        (**self).leased(lease)
    }
    fn keep_pages(&mut self) -> Option<(usize, usize)> {
        (**self).keep_pages()
    }
    fn hold(&mut self, lease: DeviceLease) {
        (**self).hold(lease);
    }
    fn release(&mut self, lease: DeviceLease) {
        (**self).release(lease);
    }
    fn ready(&mut self) -> bool {
        (**self).ready()
    }
    fn slot(&mut self) -> Option<&mut [u8]> {
        (**self).slot()
    }
    fn commit(&mut self, length: usize, doorbell: bool) {
        (**self).commit(length, doorbell);
    }
    fn fill(&mut self, write: &mut Write<'_>) {
        (**self).fill(write);
    }
    fn show(&mut self) {
        (**self).show();
    }
    fn flush(&mut self, now: Instant) {
        (**self).flush(now);
    }
    fn next_due(&self) -> Instant {
        (**self).next_due()
    }
    fn carrier(&mut self) -> bool {
        (**self).carrier()
    }
    fn wake_source(&self) -> WakeSource<'_> {
        (**self).wake_source()
    }
    fn carrier_source(&self) -> Option<BorrowedFd<'_>> {
        (**self).carrier_source()
    }
    fn counters(&self) -> DeviceCounters {
        (**self).counters()
    }
    fn plug(&mut self, is_plugged: bool) {
        (**self).plug(is_plugged);
    }
    fn faults(&mut self) -> Option<&mut dyn FaultHand> {
        (**self).faults()
    }
}
