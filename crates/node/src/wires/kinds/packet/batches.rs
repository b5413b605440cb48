//! Reception of a packet socket without a ring: the kernel copies frames out, a batch per system call.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;

use super::socket::{Arrival, BATCH, FrameBuffer, receive_batch};
use crate::wires::{DeviceLease, FRAME_BYTES_MAX};

/// Number of received frames that the core may hold before the socket is no longer read.
const LEASES_MAX: usize = 4096;

/// Received frames, and the buffers for the next ones.
#[derive(Debug)]
pub(super) struct ReceiveBatches {
    /// Frames with their lengths. The index is the lease.
    frames: Vec<Option<(FrameBuffer, usize)>>,
    free: Vec<u32>,
    arrived: VecDeque<u32>,
    /// Buffers that the kernel fills with the next batch.
    batch: Vec<FrameBuffer>,
    spare: Vec<FrameBuffer>,
    /// Set if the last batch was not full: the socket was empty just now.
    drained: bool,
}

impl Default for ReceiveBatches {
    fn default() -> Self {
        let batch = (0..BATCH).map(|_| empty_buffer()).collect();
        let (frames, free, arrived, spare) = Default::default();
        Self { frames, free, arrived, batch, spare, drained: false }
    }
}

impl ReceiveBatches {
    /// Returns whether a frame has been received.
    pub(super) fn ready(&mut self, socket: &OwnedFd, wanted: impl FnMut(Arrival, &[u8]) -> bool) -> bool {
        if self.arrived.is_empty() {
            self.fill(socket, wanted);
        }
        !self.arrived.is_empty()
    }

    /// Takes the next wanted frame.
    pub(super) fn take(
        &mut self,
        socket: &OwnedFd,
        wanted: impl FnMut(Arrival, &[u8]) -> bool,
    ) -> Option<DeviceLease> {
        // After a batch that was not full, one call would most likely find nothing. It is skipped.
        if self.arrived.is_empty() && !std::mem::take(&mut self.drained) {
            self.fill(socket, wanted);
        }
        self.arrived.pop_front().map(DeviceLease)
    }

    /// Returns the bytes of a lease, or an empty slice if there is no such lease.
    pub(super) fn bytes(&self, lease: DeviceLease) -> &[u8] {
        match self.frames.get(lease.0 as usize) {
            Some(Some((frame, length))) => &frame[..*length],
            Some(None) | None => &[],
        }
    }

    /// Releases a lease. Does nothing if the lease does not exist.
    pub(super) fn release(&mut self, lease: DeviceLease) {
        if let Some((buffer, _)) = self.frames.get_mut(lease.0 as usize).and_then(Option::take) {
            self.spare.push(buffer);
            self.free.push(lease.0);
        }
    }

    /// Reads a batch from the socket.
    fn fill(&mut self, socket: &OwnedFd, mut wanted: impl FnMut(Arrival, &[u8]) -> bool) {
        let leased = self.frames.len() - self.free.len();
        let count = BATCH.min(LEASES_MAX.saturating_sub(leased));
        if count == 0 {
            return;
        }
        let mut arrivals = [Arrival::default(); BATCH];
        // An error other than "empty" means a lost carrier, which the carrier's next poll detects.
        let taken = receive_batch(socket, &mut self.batch[..count], &mut arrivals).unwrap_or(0);
        self.drained = taken < count;
        for (index, arrival) in arrivals.iter().enumerate().take(taken) {
            let bytes = &self.batch[index][..arrival.length.min(FRAME_BYTES_MAX)];
            if wanted(*arrival, bytes) {
                let empty = self.spare.pop().unwrap_or_else(empty_buffer);
                let frame = std::mem::replace(&mut self.batch[index], empty);
                self.arrive(frame, arrival.length);
            }
        }
    }

    fn arrive(&mut self, frame: FrameBuffer, length: usize) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.frames.push(None);
            (self.frames.len() - 1) as u32
        });
        self.frames[slot as usize] = Some((frame, length));
        self.arrived.push_back(slot);
    }
}

fn empty_buffer() -> FrameBuffer {
    Box::new([0; FRAME_BYTES_MAX])
}
