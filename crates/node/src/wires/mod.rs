//! Wires: frame devices, one per port.
//!
//! A device carries whole Ethernet frames between two neighbours. The contract is weak on purpose, because the core
//! above repairs everything: a device may drop, duplicate, reorder and corrupt. What it may not do: block, invent a
//! frame, panic, or stop for good because one received frame is still referred to.
//!
//! [`shared_memory`] is the default and needs nothing but Linux; [`packet`] puts the same bytes on real interfaces; [`udp`] puts
//! them into datagrams. [`impaired`] wraps any of them and applies a link profile; [`tapped`] wraps any and shows what is sent;
//! [`sealed`] wraps any and authenticates frames; [`jack`] holds any and lets it be exchanged. [`Ports`]
//! makes one [`rackloom_protocol::Wires`] of a node's devices. All pass one conformance suite.

#[cfg(test)]
mod carrier_tests;
#[cfg(test)]
mod conformance;
mod doorbell;
#[cfg(test)]
mod foreign_tests;
pub mod impaired;
#[cfg(test)]
mod in_namespaces;
pub mod jack;
mod leases;
#[cfg(test)]
mod links_under_test;
pub mod packet;
mod packet_batches;
mod packet_outgoing;
mod packet_portable;
mod packet_received;
mod packet_ring;
mod packet_socket;
mod packet_strangers;
mod ports;
mod ring;
pub mod sealed;
pub mod shared_memory;
mod socket;
pub mod tapped;
mod truesize;
pub mod udp;
mod udp_outgoing;
mod udp_received;
mod udp_routed;
mod udp_socket;

use std::io;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};

use rackloom_plan::faults::Conditions;
use rackloom_protocol::{Instant, Write};
use rustix::fs::Timespec;

pub use doorbell::Doorbell;
pub(crate) use packet_socket::{bind as bind_packet_socket, open as open_packet_socket};
pub use ports::{Ports, PortsError};
pub(crate) use socket::{set_option, set_receive_buffer};

/// Largest frame, Ethernet header included, that every device carries: an MTU of 9000 with room to spare.
pub const FRAME_BYTES_MAX: usize = 9216;

/// A received frame that a device still holds. The number is the device's own.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeviceLease(pub u32);

/// What became of a frame that was offered.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Offered {
    /// It is over.
    Taken,
    /// It stays, until [`Device::release`].
    Leased(DeviceLease),
}

/// What a node sleeps on until a device has something.
///
/// `Send` and `Sync`: borrowed.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum WakeSource<'a> {
    /// The node's doorbell; neighbours ring it.
    Doorbell(&'a Doorbell),
    /// A descriptor that becomes readable.
    Descriptor(BorrowedFd<'a>),
}

/// What a device did that the core cannot see.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceCounters {
    /// Frames that the device took but could not send.
    pub send_errors: u64,
    /// Frames that arrived and could not be handed up (too long for a buffer).
    pub receive_errors: u64,
    /// Frames with the tag of a VLAN, of which this wire has none.
    pub tagged: u64,
    /// What others than the neighbour sent, and what was not looked at.
    pub strangers: u64,
    /// Frames that the kernel dropped before this process could take them.
    pub kernel_drops: u64,
    /// Frames without a valid tag, where frames carry tags.
    pub bad_tags: u64,
    /// Frames with a valid tag that had been received before.
    pub replays: u64,
    /// Times that there was no room for a frame.
    pub full: u64,
    /// Received frames that were moved to the heap because the core kept them long.
    pub evacuated: u64,
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
    /// The next received frame. Its bytes stay readable until [`Device::release`].
    fn receive(&mut self) -> Option<DeviceLease>;
    /// Offer the next received frame to somebody who may be done with it at once: true says so, and then it is given back. For the others
    /// this is [`Device::receive`].
    fn offer(&mut self, take: &mut dyn FnMut(&[u8]) -> bool) -> Option<Offered> {
        let lease = self.receive()?;
        if !take(self.leased(lease)) {
            return Some(Offered::Leased(lease));
        }
        self.release(lease);
        Some(Offered::Taken)
    }
    /// The bytes of a frame; empty if the lease is not out.
    fn leased(&self, lease: DeviceLease) -> &[u8];
    /// Where received frames lie, as address and length, if that is one place; it then stays mapped until the process ends, so that
    /// something else than this processor can read them there.
    fn keep_pages(&mut self) -> Option<(usize, usize)> {
        None
    }
    /// Somebody reads this frame where it lies: it stays there until it is given back. Only for devices that keep pages.
    fn hold(&mut self, lease: DeviceLease) {
        let _ = lease;
    }
    /// Give a frame back, in any order.
    fn release(&mut self, lease: DeviceLease);
    /// Whether [`Device::receive`] would give a frame.
    fn ready(&mut self) -> bool;
    /// Room for a frame of [`FRAME_BYTES_MAX`] bytes; `None` while full. Asking twice without a commit gives the same
    /// room with the same bytes.
    fn slot(&mut self) -> Option<&mut [u8]>;
    /// Take the first `length` bytes of the room as a frame. The neighbour may see it at once and must be able to see
    /// it after the next [`Device::flush`]. `doorbell`: wake it if it sleeps.
    fn commit(&mut self, length: usize, doorbell: bool);
    /// Send frames as `write` writes them, until it writes none or there is no room; each wakes a neighbour that sleeps.
    fn fill(&mut self, write: &mut Write<'_>) {
        while let Some(length) = self.slot().and_then(&mut *write) {
            self.commit(length, true);
        }
    }
    /// Let the neighbour see what was committed, if that costs next to nothing; it need not be woken before the next [`Device::flush`].
    fn show(&mut self) {}
    /// Send what was committed and is due; give back to the neighbour what was released.
    fn flush(&mut self, now: Instant);
    /// When [`Device::flush`] must be called even if nothing was committed; [`Instant::NEVER`] if the device holds
    /// nothing back.
    fn next_due(&self) -> Instant {
        Instant::NEVER
    }
    /// Whether the neighbour is still there, as far as the device can tell. May cost a system call.
    fn carrier(&mut self) -> bool;
    /// What to sleep on.
    fn wake_source(&self) -> WakeSource<'_>;
    /// What becomes readable when [`Device::carrier`] may give another answer than before; several devices may share it.
    fn carrier_source(&self) -> Option<BorrowedFd<'_>> {
        None
    }
    /// What happened so far.
    fn counters(&self) -> DeviceCounters;
    /// Pull this end of the cable out, or put it back, at devices that have one to pull. [`Device::carrier`] then tells, here and
    /// at the neighbour.
    fn plug(&mut self, is_plugged: bool) {
        let _ = is_plugged;
    }
    /// The hand of a fault script, at devices that have one.
    fn faults(&mut self) -> Option<&mut dyn FaultHand> {
        None
    }
}

/// Changes what befalls the frames that a device sends, while it sends.
///
/// `Send`, not `Sync`: it is the device's own.
pub trait FaultHand: Send {
    /// Faults may come from now on: frames are counted and judged where they were not before.
    fn begin(&mut self);
    /// From now on these conditions hold on top of the link's profile.
    fn set(&mut self, conditions: &Conditions);
    /// Lose the data frames with these numbers, counted from one for the next.
    fn drop_from_now(&mut self, numbers: &[u64]);
    /// Data frames that were sent, those that were lost included.
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

/// Let a descriptor survive the next `exec` of this process. For the child side of a spawn: it only makes system
/// calls, so it may run between fork and exec.
///
/// # Errors
/// The system's.
pub fn keep_across_exec(fd: RawFd) -> io::Result<()> {
    if fd < 0 {
        return Err(rustix::io::Errno::BADF.into());
    }
    // SAFETY: needed because the descriptor is known by number only, on the child's side of a fork. It is borrowed for
    // this one call; a number that is not open yields an error.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    rustix::io::fcntl_setfd(fd, rustix::io::FdFlags::empty())?;
    Ok(())
}

/// Take over a descriptor that this process was started with, and do not pass it on.
fn adopt(fd: RawFd) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(rustix::io::Errno::BADF.into());
    }
    // SAFETY: needed because inherited descriptors are known by number only. It is borrowed for the next call, which
    // refuses a number that is not open before anything owns it.
    let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
    rustix::io::fcntl_setfd(borrowed, rustix::io::FdFlags::CLOEXEC)?;
    // SAFETY: the descriptor is open; by the contract of the callers' `from_fd` functions it was inherited for this
    // purpose and nothing else in the process owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A duration as the kernel wants it.
pub(crate) fn timespec(nanoseconds: u64) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(nanoseconds / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: (nanoseconds % 1_000_000_000) as _,
    }
}
