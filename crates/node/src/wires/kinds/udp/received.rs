//! Received datagrams of a UDP wire: many frames in one buffer, leased one by one.
//!
//! The kernel delivers joined what the sender had it cut, up to 64 KiB. A buffer therefore holds up to 64 frames, and is reused once the last of them
//! has been released. One frame that the core keeps would keep 64 KiB. When too many buffers are in use, the remaining frames of the emptiest one
//! move to the heap.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;

use super::socket::{BATCH, Message, receive_batch};
use crate::wires::{DeviceLease, FRAME_BYTES_MAX};

/// Length of the longest message that the kernel joins, in bytes.
const BUFFER_BYTES: usize = 64 << 10;
/// Number of buffers that may be in use before frames are moved from one.
const BUFFERS_MAX: usize = 4 * BATCH;
/// Number of received frames that the core may hold before the socket is no longer read.
const LEASES_MAX: usize = 4096;

/// Position of a leased frame.
#[derive(Debug)]
enum LeasedFrame {
    Free,
    In { buffer: usize, at: usize, length: usize },
    Heap(Vec<u8>),
}

#[derive(Debug)]
struct Buffer {
    bytes: Box<[u8]>,
    /// Number of leases on its frames.
    leases: usize,
}

/// Received frames, and the buffers for the next ones.
#[derive(Debug, Default)]
pub(super) struct Received {
    /// Buffers with frames in them. A leased frame refers to its buffer by index.
    buffers: Vec<Buffer>,
    /// Indices of buffers that are empty and have moved to the spare ones.
    vacant: Vec<usize>,
    /// Empty buffers. Those that became empty last are used first, because they are still in the cache.
    spare: Vec<Box<[u8]>>,
    leased: Vec<LeasedFrame>,
    free: Vec<u32>,
    arrived: VecDeque<u32>,
    /// Set if the last batch was not full: the socket was empty just now.
    drained: bool,
    /// Number of buffers to offer next: one while little traffic arrives, because each buffer costs time even if it stays empty.
    offer: usize,
    /// Number of frames moved to the heap.
    pub(super) copied_out: u64,
    /// Number of frames longer than the link's maximum.
    pub(super) too_long: u64,
    /// Set if a sent datagram was refused: the neighbour's socket is closed.
    pub(super) is_refused: bool,
}

impl Received {
    /// Returns whether a frame has been received.
    pub(super) fn ready(&mut self, socket: &OwnedFd, frame_bytes_max: usize) -> bool {
        if self.arrived.is_empty() {
            self.fill(socket, frame_bytes_max);
        }
        !self.arrived.is_empty()
    }

    /// Takes the next frame.
    pub(super) fn take(&mut self, socket: &OwnedFd, frame_bytes_max: usize) -> Option<DeviceLease> {
        // After a batch that was not full, one call would most likely find nothing. It is skipped.
        if self.arrived.is_empty() && !std::mem::take(&mut self.drained) {
            self.fill(socket, frame_bytes_max);
        }
        self.arrived.pop_front().map(DeviceLease)
    }

    /// Returns the bytes of a lease, or an empty slice if there is no such lease.
    pub(super) fn bytes(&self, lease: DeviceLease) -> &[u8] {
        match self.leased.get(lease.0 as usize) {
            Some(LeasedFrame::In { buffer, at, length }) => &self.buffers[*buffer].bytes[*at..*at + *length],
            Some(LeasedFrame::Heap(bytes)) => bytes,
            Some(LeasedFrame::Free) | None => &[],
        }
    }

    /// Releases a lease. Does nothing if the lease does not exist.
    pub(super) fn release(&mut self, lease: DeviceLease) {
        let Some(entry) = self.leased.get_mut(lease.0 as usize) else { return };
        match std::mem::replace(entry, LeasedFrame::Free) {
            LeasedFrame::Free => return,
            LeasedFrame::In { buffer, .. } => self.leave(buffer),
            LeasedFrame::Heap(_) => {}
        }
        self.free.push(lease.0);
    }

    fn leave(&mut self, buffer: usize) {
        self.buffers[buffer].leases -= 1;
        self.retire_if_empty(buffer);
    }

    fn retire_if_empty(&mut self, buffer: usize) {
        if self.buffers[buffer].leases == 0 {
            self.spare.push(std::mem::take(&mut self.buffers[buffer].bytes));
            self.vacant.push(buffer);
        }
    }

    /// Reads a batch from the socket.
    fn fill(&mut self, socket: &OwnedFd, frame_bytes_max: usize) {
        if self.leased.len() - self.free.len() >= LEASES_MAX {
            return;
        }
        self.provide();
        let offered = self.spare.len().min(self.offer.max(1));
        let mut messages = [Message::default(); BATCH];
        let buffers = self.spare.iter_mut().rev().take(offered).map(|bytes| &mut bytes[..]);
        // An error other than "empty" means a lost carrier, which the carrier's next poll detects. The kernel reports it once.
        let taken = receive_batch(socket, buffers, &mut messages).unwrap_or_else(|error| {
            self.is_refused |= error.kind() == io::ErrorKind::ConnectionRefused;
            0
        });
        self.drained = taken < offered;
        self.offer = if self.drained { taken + 1 } else { BATCH.min(2 * offered) };
        for message in messages.into_iter().take(taken) {
            let Some(bytes) = self.spare.pop() else { return };
            self.arrive(bytes, message, frame_bytes_max);
        }
    }

    /// Leases each frame of a message.
    fn arrive(&mut self, bytes: Box<[u8]>, message: Message, frame_bytes_max: usize) {
        let filled = Buffer { bytes, leases: 0 };
        let buffer = self.vacant.pop().unwrap_or(self.buffers.len());
        match self.buffers.get_mut(buffer) {
            Some(entry) => *entry = filled,
            None => self.buffers.push(filled),
        }
        let piece_bytes = message.piece_bytes.unwrap_or(message.length);
        let mut at = 0;
        while at < message.length {
            let length = piece_bytes.min(message.length - at);
            if length <= frame_bytes_max.min(FRAME_BYTES_MAX) && message.is_whole {
                self.lease(LeasedFrame::In { buffer, at, length });
                self.buffers[buffer].leases += 1;
            } else {
                self.too_long += 1;
            }
            at += length;
        }
        self.retire_if_empty(buffer);
    }

    fn lease(&mut self, entry: LeasedFrame) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.leased.push(LeasedFrame::Free);
            (self.leased.len() - 1) as u32
        });
        self.leased[slot as usize] = entry;
        self.arrived.push_back(slot);
    }

    /// Provides a buffer for the next message.
    fn provide(&mut self) {
        let in_use = |received: &Self| received.buffers.len() - received.vacant.len();
        while self.spare.len() < BATCH && self.spare.len() + in_use(self) < BUFFERS_MAX {
            // The kernel zeroes each page on first use.
            self.spare.push(vec![0; BUFFER_BYTES].into());
        }
        if !self.spare.is_empty() {
            return;
        }
        let filled = (0..self.buffers.len()).filter(|entry| self.buffers[*entry].leases > 0);
        let Some(emptiest) = filled.min_by_key(|entry| self.buffers[*entry].leases) else { return };
        for slot in 0..self.leased.len() {
            if matches!(self.leased[slot], LeasedFrame::In { buffer, .. } if buffer == emptiest) {
                let bytes = self.bytes(DeviceLease(slot as u32)).to_vec();
                self.leased[slot] = LeasedFrame::Heap(bytes);
                self.copied_out += 1;
                self.leave(emptiest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::socket::{connected_pair, join_received, send_batch};
    use super::*;

    const FRAME_BYTES: usize = 100;

    fn take(received: &mut Received, socket: &OwnedFd) -> Option<DeviceLease> {
        // Datagrams over the loopback interface have arrived when the sender's call returns.
        received.take(socket, FRAME_BYTES_MAX).or_else(|| received.take(socket, FRAME_BYTES_MAX))
    }

    #[test]
    fn many_frames_cross_in_one_piece_and_share_a_buffer() {
        let (local, remote) = connected_pair().unwrap();
        join_received(&remote).unwrap();
        let bytes: Vec<u8> = (0..64).flat_map(|frame| [frame; FRAME_BYTES]).collect();
        let message = (&bytes[..bytes.len() - 40], Some(FRAME_BYTES as u16));
        assert_eq!(send_batch(&local, [message].into_iter()).unwrap(), 1);
        let mut received = Received::default();
        for frame in 0..64 {
            let lease = take(&mut received, &remote).expect("a frame");
            let length = if frame == 63 { FRAME_BYTES - 40 } else { FRAME_BYTES };
            assert_eq!(received.bytes(lease), &[frame; FRAME_BYTES][..length]);
        }
        assert_eq!(take(&mut received, &remote), None);
        assert_eq!(received.buffers.len(), 1, "it was not cut on its way");
    }

    #[test]
    fn a_frame_kept_from_each_buffer_stops_nothing() {
        let (local, remote) = connected_pair().unwrap();
        let mut received = Received::default();
        let kept: Vec<_> = (0..2 * BUFFERS_MAX)
            .map(|frame| {
                let bytes = [frame as u8; FRAME_BYTES];
                assert_eq!(send_batch(&local, [(&bytes[..], None)].into_iter()).unwrap(), 1);
                take(&mut received, &remote).expect("a frame")
            })
            .collect();
        assert!(received.copied_out > 0 && received.buffers.len() <= BUFFERS_MAX);
        for (frame, lease) in kept.into_iter().enumerate() {
            assert_eq!(received.bytes(lease), [frame as u8; FRAME_BYTES]);
            received.release(lease);
            received.release(lease);
        }
        assert_eq!(received.spare.len(), BUFFERS_MAX, "every buffer is back, once");
    }

    #[test]
    fn datagrams_longer_than_any_frame_are_counted() {
        let (local, remote) = connected_pair().unwrap();
        let mut received = Received::default();
        assert_eq!(send_batch(&local, [(&[1; 5000][..], None)].into_iter()).unwrap(), 1);
        assert_eq!(received.take(&remote, 4240), None);
        assert_eq!(received.too_long, 1);
    }
}
