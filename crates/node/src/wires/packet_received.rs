//! How frames come to a packet socket, and which of them are for the core to judge.
//!
//! Through a ring that the kernel fills where we see it, in batches, or one by one through a portable channel. Where they come,
//! they are leased out of; what this port could not have been sent is counted and goes no further. Who sent a frame, and
//! whether it is one of ours, is not asked here.

use std::io;
use std::os::fd::OwnedFd;

use super::packet::Settings;
use super::packet_batches::ReceiveBatches;
use super::packet_portable::Portable;
use super::packet_ring::ReceiveRing;
use super::packet_socket::Arrival;
use super::socket::set_receive_buffer;
use super::{DeviceLease, truesize};

/// How frames come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reception {
    /// The kernel puts them where we see them.
    Ring,
    /// The kernel keeps them until we ask, in a buffer of this size, as it counts.
    Batches {
        /// What to ask for; the kernel may grant less.
        buffer_bytes: usize,
    },
    /// The same, frame by frame, in both directions.
    Portable {
        /// What to ask for; the kernel may grant less.
        buffer_bytes: usize,
    },
}

/// Where received frames are.
#[derive(Debug)]
pub(super) enum Received {
    /// Where the kernel puts them.
    Ring(ReceiveRing),
    /// In buffers of ours.
    Batches(Box<ReceiveBatches>),
    /// In buffers of the channel's.
    Portable(Box<Portable>),
}

/// Which frames are not for the core to judge.
#[derive(Debug)]
pub(super) struct Filter {
    /// Longest frame of the rack.
    pub(super) frame_bytes_max: usize,
    /// That of the interface.
    pub(super) address: [u8; 6],
    /// Frames that were longer.
    pub(super) too_long: u64,
    /// Frames with a tag of a VLAN that does not exist here.
    pub(super) tagged: u64,
}

impl Filter {
    /// Whether a frame goes to the core. The kernel takes VLAN tags off, and says of a frame in a VLAN that does not exist
    /// here that it is for others; one that is addressed to this interface must have had such a tag.
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
    /// Be ready for what comes to a socket that is not bound yet. Refused where credits admit more than the kernel would keep.
    pub(super) fn attach(
        reception: Reception,
        receiver: &OwnedFd,
        interface: &str,
        settings: &Settings,
    ) -> io::Result<Self> {
        let (credits, frame_bytes_max) = (&settings.credits, usize::from(settings.frame_bytes_max));
        let ask_for = |buffer_bytes| {
            let granted_bytes = set_receive_buffer(receiver, buffer_bytes)?;
            truesize::check(granted_bytes, credits, frame_bytes_max)
        };
        Ok(match reception {
            Reception::Ring => {
                Self::Ring(ReceiveRing::attach(receiver, truesize::frames_max(credits), frame_bytes_max)?)
            }
            Reception::Batches { buffer_bytes } => {
                ask_for(buffer_bytes)?;
                Self::Batches(Box::default())
            }
            Reception::Portable { buffer_bytes } => {
                ask_for(buffer_bytes)?;
                Self::Portable(Box::new(Portable::attach(receiver, interface, settings.ether_type)?))
            }
        })
    }

    /// Whether a frame has come.
    pub(super) fn ready(&mut self, receiver: &OwnedFd, filter: &mut Filter) -> bool {
        let wanted = |arrival: Arrival, bytes: &[u8]| filter.admits(arrival, bytes);
        match self {
            Self::Ring(ring) => ring.ready(),
            Self::Batches(batches) => batches.ready(receiver, wanted),
            Self::Portable(portable) => portable.ready(wanted),
        }
    }

    /// Take the next frame.
    pub(super) fn take(&mut self, receiver: &OwnedFd, filter: &mut Filter) -> Option<DeviceLease> {
        let wanted = |arrival: Arrival, bytes: &[u8]| filter.admits(arrival, bytes);
        match self {
            Self::Ring(ring) => ring.take(wanted),
            Self::Batches(batches) => batches.take(receiver, wanted),
            Self::Portable(portable) => portable.take(wanted),
        }
    }

    /// The bytes under a lease.
    pub(super) fn bytes(&self, lease: DeviceLease) -> &[u8] {
        match self {
            Self::Ring(ring) => ring.bytes(lease),
            Self::Batches(batches) => batches.bytes(lease),
            Self::Portable(portable) => portable.bytes(lease),
        }
    }

    /// Give a lease back.
    pub(super) fn release(&mut self, lease: DeviceLease) {
        match self {
            Self::Ring(ring) => ring.release(lease),
            Self::Batches(batches) => batches.release(lease),
            Self::Portable(portable) => portable.release(lease),
        }
    }

    /// The turn is over.
    pub(super) fn settle(&mut self) {
        if let Self::Ring(ring) = self {
            ring.settle();
        }
    }

    /// Frames that were moved out of the kernel's way.
    pub(super) fn evacuated(&self) -> u64 {
        match self {
            Self::Ring(ring) => ring.evacuated(),
            Self::Batches(_) | Self::Portable(_) => 0,
        }
    }
}
