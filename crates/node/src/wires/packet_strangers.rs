//! Strangers on a segment that many share: what comes to an interface and is for none of its links.
//!
//! A bridge sends what it has not learned to every port. Those frames must neither take the room of our own nor vanish uncounted. So
//! they come to a socket of their own, which one link of each interface looks at now and then, a batch at a time; the core judges what
//! is found there like any frame, and says why it is of no use. What comes faster is counted by the kernel.

use std::cell::Cell;
use std::io;
use std::os::fd::OwnedFd;

use super::DeviceLease;
use super::packet_batches::ReceiveBatches;
use super::packet_socket::{self, Arrival, BATCH, take_kernel_drops};
use crate::hosts::filter;

/// Tells leases of strangers' frames from those of the link's own, of which there are far fewer.
const STRANGER_BIT: u32 = 1 << 18;

/// Hears what is for no link.
#[derive(Debug)]
pub(super) struct Strangers {
    socket: OwnedFd,
    batches: ReceiveBatches,
    /// Frames that may be taken before the next look.
    left: usize,
    /// What came while nobody looked, and found no room.
    unseen: Cell<u64>,
}

impl Strangers {
    /// Everything of this EtherType but what these neighbours send to `mine`.
    pub(super) fn open(
        index: u32,
        ether_type: u16,
        mine: [u8; 6],
        neighbours: &[[u8; 6]],
    ) -> io::Result<Self> {
        let socket = packet_socket::open()?;
        filter::attach(&socket, &mut filter::all_but(mine, neighbours))?;
        packet_socket::bind(&socket, index, ether_type)?;
        Ok(Self { socket, batches: ReceiveBatches::default(), left: 0, unseen: Cell::default() })
    }

    /// The interface is another one now.
    pub(super) fn rebind(&self, index: u32, ether_type: u16) -> io::Result<()> {
        packet_socket::bind(&self.socket, index, ether_type)
    }

    /// It is time to look again.
    pub(super) fn look(&mut self) {
        self.left = BATCH;
    }

    /// The next frame that is wanted, if it is time for one.
    pub(super) fn take(&mut self, wanted: impl FnMut(Arrival, &[u8]) -> bool) -> Option<DeviceLease> {
        self.left = self.left.checked_sub(1)?;
        let lease = self.batches.take(&self.socket, wanted);
        if lease.is_none() {
            self.left = 0;
        }
        lease.map(|lease| DeviceLease(lease.0 | STRANGER_BIT))
    }

    /// Whether a lease is of a frame from here, and its number here.
    pub(super) const fn own(lease: DeviceLease) -> Option<DeviceLease> {
        if lease.0 & STRANGER_BIT == 0 { None } else { Some(DeviceLease(lease.0 & !STRANGER_BIT)) }
    }

    /// The bytes under a lease of its own.
    pub(super) fn bytes(&self, own: DeviceLease) -> &[u8] {
        self.batches.bytes(own)
    }

    /// Give back a lease of its own.
    pub(super) fn release(&mut self, own: DeviceLease) {
        self.batches.release(own);
    }

    /// How many frames nobody has looked at.
    pub(super) fn turned_away(&self) -> u64 {
        self.unseen.set(self.unseen.get() + take_kernel_drops(&self.socket));
        self.unseen.get()
    }
}
