//! Reception of frames on a packet socket, and the filter that decides which of them the core receives.
//!
//! Frames arrive through a ring that the kernel fills in shared memory, in batches, or one by one through a portable channel. The core leases them
//! from there. The filter counts and discards frames that this port cannot have been sent. It does not check the sender of a frame, nor whether the
//! frame belongs to the rack.

use std::io;
use std::os::fd::OwnedFd;

use super::batches::ReceiveBatches;
use super::portable::Portable;
use super::ring::ReceiveRing;
use super::settings::Settings;
use super::socket::Arrival;
use crate::wires::socket::set_receive_buffer;
use crate::wires::{DeviceLease, truesize};

/// Method of reception.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::wires) enum Reception {
    /// The kernel writes frames into memory shared with this process.
    Ring,
    /// The kernel keeps frames in its buffer until they are read, a batch per system call.
    Batches {
        /// Size of the buffer to request, in bytes as the kernel counts them. The kernel may grant less.
        buffer_bytes: usize,
    },
    /// The kernel keeps frames in its buffer, and each frame takes a system call, in both directions.
    Portable {
        /// Size of the buffer to request, in bytes as the kernel counts them. The kernel may grant less.
        buffer_bytes: usize,
    },
}

/// Storage of received frames.
#[derive(Debug)]
pub(super) enum Received {
    /// Memory shared with the kernel.
    Ring(ReceiveRing),
    /// Buffers of this process.
    Batches(Box<ReceiveBatches>),
    /// Buffers of the portable channel.
    Portable(Box<Portable>),
}

/// Filter for frames that the core does not receive.
#[derive(Debug)]
pub(super) struct Filter {
    /// Length of the longest frame of the rack, in bytes.
    pub(super) frame_bytes_max: usize,
    /// Address of the interface.
    pub(super) address: [u8; 6],
    /// Number of frames that were longer.
    pub(super) too_long: u64,
    /// Number of frames with the tag of a VLAN that does not exist here.
    pub(super) tagged: u64,
}

impl Filter {
    /// Returns whether a frame goes to the core. The kernel removes VLAN tags, and marks a frame of a VLAN that does not exist here as addressed to
    /// others. A frame that is marked this way and has the address of this interface must have had such a tag.
    pub(super) fn admits(&mut self, arrival: Arrival, bytes: &[u8]) -> bool {
        if !arrival.is_whole || arrival.length > self.frame_bytes_max {
            self.too_long += 1;
            return false;
        }
        if arrival.for_others && bytes.starts_with(&self.address) {
            self.tagged += 1;
            return false;
        }
        true
    }
}

impl Received {
    /// Prepares reception on an unbound socket. Refuses if the credits admit more than the kernel would keep.
    pub(super) fn attach(
        reception: Reception,
        receiver: &OwnedFd,
        interface: &str,
        settings: &Settings,
    ) -> io::Result<Self> {
        let (credits, frame_bytes_max) = (&settings.credits, usize::from(settings.frame_bytes_max));
        let set_buffer = |buffer_bytes| {
            let granted_bytes = set_receive_buffer(receiver, buffer_bytes)?;
            truesize::check(granted_bytes, credits, frame_bytes_max)
        };
        Ok(match reception {
            Reception::Ring => {
                Self::Ring(ReceiveRing::attach(receiver, truesize::frames_max(credits), frame_bytes_max)?)
            }
            Reception::Batches { buffer_bytes } => {
                set_buffer(buffer_bytes)?;
                Self::Batches(Box::default())
            }
            Reception::Portable { buffer_bytes } => {
                set_buffer(buffer_bytes)?;
                Self::Portable(Box::new(Portable::attach(receiver, interface, settings.ether_type)?))
            }
        })
    }

    /// Returns whether a frame has been received.
    pub(super) fn ready(&mut self, receiver: &OwnedFd, filter: &mut Filter) -> bool {
        let wanted = |arrival: Arrival, bytes: &[u8]| filter.admits(arrival, bytes);
        match self {
            Self::Ring(ring) => ring.ready(),
            Self::Batches(batches) => batches.ready(receiver, wanted),
            Self::Portable(portable) => portable.ready(wanted),
        }
    }

    /// Takes the next frame.
    pub(super) fn take(&mut self, receiver: &OwnedFd, filter: &mut Filter) -> Option<DeviceLease> {
        let wanted = |arrival: Arrival, bytes: &[u8]| filter.admits(arrival, bytes);
        match self {
            Self::Ring(ring) => ring.take(wanted),
            Self::Batches(batches) => batches.take(receiver, wanted),
            Self::Portable(portable) => portable.take(wanted),
        }
    }

    /// Returns the bytes of a lease.
    pub(super) fn bytes(&self, lease: DeviceLease) -> &[u8] {
        match self {
            Self::Ring(ring) => ring.bytes(lease),
            Self::Batches(batches) => batches.bytes(lease),
            Self::Portable(portable) => portable.bytes(lease),
        }
    }

    /// Releases a lease.
    pub(super) fn release(&mut self, lease: DeviceLease) {
        match self {
            Self::Ring(ring) => ring.release(lease),
            Self::Batches(batches) => batches.release(lease),
            Self::Portable(portable) => portable.release(lease),
        }
    }

    /// Prepares for sleep at the end of a poll.
    pub(super) fn settle(&mut self) {
        if let Self::Ring(ring) = self {
            ring.settle();
        }
    }

    /// Returns the number of frames moved out of the ring.
    pub(super) fn copied_out(&self) -> u64 {
        match self {
            Self::Ring(ring) => ring.copied_out(),
            Self::Batches(_) | Self::Portable(_) => 0,
        }
    }
}
