//! Foreign frames on a segment that many links share: frames that arrive at an interface and belong to none of its links.
//!
//! A bridge floods frames to unknown addresses to every port. Such frames must neither take the space of our own frames nor vanish uncounted. They
//! arrive at a socket of their own, which one link of each interface reads at intervals, a batch at a time. The core judges these frames like any
//! other and counts them by drop reason. The kernel counts the frames that exceed this rate.

use std::cell::Cell;
use std::io;
use std::os::fd::OwnedFd;

use super::batches::ReceiveBatches;
use super::socket::{self, Arrival, BATCH, take_kernel_drops};
use crate::hosts::filter;
use crate::wires::DeviceLease;

/// Bit that distinguishes leases of foreign frames from those of the link's own frames, of which there are far fewer.
const FOREIGN_BIT: u32 = 1 << 18;

/// Receiver of frames that belong to no link.
#[derive(Debug)]
pub(super) struct ForeignFrames {
    socket: OwnedFd,
    batches: ReceiveBatches,
    /// Number of frames that may be taken before the next call of `look`.
    left: usize,
    /// Number of frames that found no space in the socket.
    unseen: Cell<u64>,
}

impl ForeignFrames {
    /// Opens a socket for every frame of this EtherType, except those that these neighbours send to `mine`.
    pub(super) fn open(
        index: u32,
        ether_type: u16,
        mine: [u8; 6],
        neighbours: &[[u8; 6]],
    ) -> io::Result<Self> {
        let socket = socket::open()?;
        filter::attach(&socket, &mut filter::all_but(mine, neighbours))?;
        socket::bind(&socket, index, ether_type)?;
        Ok(Self { socket, batches: ReceiveBatches::default(), left: 0, unseen: Cell::default() })
    }

    /// Binds the socket to another interface.
    pub(super) fn rebind(&self, index: u32, ether_type: u16) -> io::Result<()> {
        socket::bind(&self.socket, index, ether_type)
    }

    /// Permits another batch of frames.
    pub(super) fn look(&mut self) {
        self.left = BATCH;
    }

    /// Takes the next wanted frame, if the present batch permits it.
    pub(super) fn take(&mut self, wanted: impl FnMut(Arrival, &[u8]) -> bool) -> Option<DeviceLease> {
        self.left = self.left.checked_sub(1)?;
        let lease = self.batches.take(&self.socket, wanted);
        if lease.is_none() {
            self.left = 0;
        }
        lease.map(|lease| DeviceLease(lease.0 | FOREIGN_BIT))
    }

    /// Returns the lease within this receiver, or `None` if the lease does not belong to it.
    pub(super) const fn own(lease: DeviceLease) -> Option<DeviceLease> {
        if lease.0 & FOREIGN_BIT == 0 { None } else { Some(DeviceLease(lease.0 & !FOREIGN_BIT)) }
    }

    /// Returns the bytes of a lease of this receiver.
    pub(super) fn bytes(&self, own: DeviceLease) -> &[u8] {
        self.batches.bytes(own)
    }

    /// Releases a lease of this receiver.
    pub(super) fn release(&mut self, own: DeviceLease) {
        self.batches.release(own);
    }

    /// Returns the number of frames that were dropped unread.
    pub(super) fn refused(&self) -> u64 {
        self.unseen.set(self.unseen.get() + take_kernel_drops(&self.socket));
        self.unseen.get()
    }
}
