//! The packet wire: the same frames on a real interface, through plain packet sockets.
//!
//! The interface may be one end of a virtual pair in a namespace of ours, or a real network card. The kernel filters
//! by EtherType; whom a frame is addressed to is checked by the core, because on a shared segment a socket also sees
//! frames for others.
//!
//! There is no back-pressure from the far side: what its socket cannot hold is gone, and the core's credits are what
//! prevents that. A full queue on this side is felt as a full device. An interface that goes down, or away with the
//! far end's namespace, is a lost carrier.
//!
//! This is the simple form: two sockets, batches, copies. Receive rings and super-frames are for later.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rackloom_protocol::Instant;
use rustix::io::Errno;
use rustix::net::netdevice::name_to_index;

use super::packet_socket::{
    BATCH, FrameBuffer, Received, open_receiver, open_sender, receive_batch, send_batch, take_kernel_drops,
};
use super::{Device, DeviceCounters, DeviceLease, FRAME_BYTES_MAX, WakeSource};
use crate::namespaces::has_carrier;

/// Frames that wait for the kernel to take them.
const SEND_FRAMES_MAX: usize = 2 * BATCH;
/// Received frames that the core may hold before the socket is no longer read.
const LEASES_MAX: usize = 4096;
/// When the kernel's queue was full, how soon to try again.
const RETRY_NS: u64 = 200_000;

/// A port on an interface.
///
/// `Send` and `Sync`. What changes it takes `&mut self`, so one thread drives it at a time.
#[derive(Debug)]
pub struct PacketDevice {
    interface: String,
    frame_bytes_max: usize,
    receiver: OwnedFd,
    sender: OwnedFd,
    received: ReceivedFrames,
    outgoing: Outgoing,
    /// When to try again after the kernel was full.
    retry_at: Instant,
    counters: DeviceCounters,
}

/// Open an interface of this network namespace. Frames longer than `frame_bytes_max` are not received.
pub fn open(interface: &str, ether_type: u16, frame_bytes_max: u16) -> io::Result<PacketDevice> {
    let frame_bytes_max = usize::from(frame_bytes_max);
    if ether_type < 0x0600 || frame_bytes_max > FRAME_BYTES_MAX {
        let what = format!(
            "EtherType {ether_type:#06x} with frames of {frame_bytes_max} bytes: not for a packet wire"
        );
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    }
    let context = |error: io::Error| io::Error::new(error.kind(), format!("interface {interface}: {error}"));
    let carrier =
        rustix::net::socket(rustix::net::AddressFamily::UNIX, rustix::net::SocketType::DGRAM, None)?;
    let index = name_to_index(&carrier, interface).map_err(|errno| context(errno.into()))?;
    Ok(PacketDevice {
        interface: interface.to_owned(),
        frame_bytes_max,
        receiver: open_receiver(index, ether_type).map_err(context)?,
        sender: open_sender(index).map_err(context)?,
        received: ReceivedFrames::default(),
        outgoing: Outgoing::default(),
        retry_at: Instant::NEVER,
        counters: DeviceCounters::default(),
    })
}

/// Received frames, and the buffers for the next ones.
#[derive(Debug)]
struct ReceivedFrames {
    /// Frames with their lengths; the index is the lease.
    frames: Vec<Option<(FrameBuffer, usize)>>,
    free: Vec<u32>,
    arrived: VecDeque<u32>,
    /// Where the kernel puts the next batch.
    batch: Vec<FrameBuffer>,
    spare: Vec<FrameBuffer>,
    /// The last batch was not full: the socket was empty a moment ago.
    drained: bool,
}

impl Default for ReceivedFrames {
    fn default() -> Self {
        let batch = (0..BATCH).map(|_| empty_buffer()).collect();
        let (frames, free, arrived, spare) = Default::default();
        Self { frames, free, arrived, batch, spare, drained: false }
    }
}

impl ReceivedFrames {
    /// Take a batch from the socket. Returns how many frames were too long.
    fn fill(&mut self, socket: &OwnedFd, frame_bytes_max: usize) -> u64 {
        let leased = self.frames.len() - self.free.len();
        let wanted = BATCH.min(LEASES_MAX.saturating_sub(leased));
        if wanted == 0 {
            return 0;
        }
        let mut outcomes = [Received::Cut; BATCH];
        // An error other than "empty" is a carrier that is about to be found missing.
        let taken = receive_batch(socket, &mut self.batch[..wanted], &mut outcomes).unwrap_or(0);
        self.drained = taken < wanted;
        let mut too_long = 0;
        for (place, outcome) in outcomes.iter().enumerate().take(taken) {
            match *outcome {
                Received::Whole(length) if length <= frame_bytes_max => {
                    let empty = self.spare.pop().unwrap_or_else(empty_buffer);
                    let frame = std::mem::replace(&mut self.batch[place], empty);
                    self.arrive(frame, length);
                }
                Received::Whole(_) | Received::Cut => too_long += 1,
            }
        }
        too_long
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

/// Frames committed and not yet taken by the kernel, oldest first from `first`.
#[derive(Debug)]
struct Outgoing {
    buffers: Vec<FrameBuffer>,
    lengths: [usize; SEND_FRAMES_MAX],
    first: usize,
    count: usize,
}

impl Default for Outgoing {
    fn default() -> Self {
        let buffers = (0..SEND_FRAMES_MAX).map(|_| empty_buffer()).collect();
        Self { buffers, lengths: [0; SEND_FRAMES_MAX], first: 0, count: 0 }
    }
}

impl Outgoing {
    fn room(&mut self) -> Option<&mut FrameBuffer> {
        let place = (self.first + self.count) % SEND_FRAMES_MAX;
        (self.count < SEND_FRAMES_MAX).then(|| &mut self.buffers[place])
    }

    fn push(&mut self, length: usize) {
        self.lengths[(self.first + self.count) % SEND_FRAMES_MAX] = length;
        self.count += 1;
    }

    fn frames(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.count).map(|step| {
            let place = (self.first + step) % SEND_FRAMES_MAX;
            &self.buffers[place][..self.lengths[place]]
        })
    }

    fn forget(&mut self, frames: usize) {
        let frames = frames.min(self.count);
        self.first = (self.first + frames) % SEND_FRAMES_MAX;
        self.count -= frames;
    }
}

impl PacketDevice {
    /// Hand the kernel what waits. Returns whether it could take everything.
    fn send(&mut self) -> bool {
        while self.outgoing.count > 0 {
            match send_batch(&self.sender, self.outgoing.frames()) {
                Ok(sent) => self.outgoing.forget(sent),
                Err(error) => match Errno::from_io_error(&error) {
                    Some(Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM | Errno::INTR) => return false,
                    Some(Errno::NETDOWN | Errno::NXIO | Errno::NODEV) => {
                        // No interface, no wire: what waits is lost with it.
                        self.counters.send_errors += self.outgoing.count as u64;
                        self.outgoing.forget(usize::MAX);
                    }
                    _ => {
                        self.counters.send_errors += 1;
                        self.outgoing.forget(1);
                    }
                },
            }
        }
        true
    }

    fn fill(&mut self) {
        self.counters.receive_errors += self.received.fill(&self.receiver, self.frame_bytes_max);
    }
}

impl Device for PacketDevice {
    fn receive(&mut self) -> Option<DeviceLease> {
        // A batch that was not full need not be followed by a call that finds nothing.
        if self.received.arrived.is_empty() && !std::mem::take(&mut self.received.drained) {
            self.fill();
        }
        self.received.arrived.pop_front().map(DeviceLease)
    }

    fn leased(&self, lease: DeviceLease) -> &[u8] {
        match self.received.frames.get(lease.0 as usize) {
            Some(Some((frame, length))) => &frame[..*length],
            Some(None) | None => &[],
        }
    }

    fn release(&mut self, lease: DeviceLease) {
        if let Some((buffer, _)) = self.received.frames.get_mut(lease.0 as usize).and_then(Option::take) {
            self.received.spare.push(buffer);
            self.received.free.push(lease.0);
        }
    }

    fn ready(&mut self) -> bool {
        if self.received.arrived.is_empty() {
            self.fill();
        }
        !self.received.arrived.is_empty()
    }

    fn slot(&mut self) -> Option<&mut [u8]> {
        if self.outgoing.count == SEND_FRAMES_MAX && !self.send() {
            self.counters.full += 1;
            return None;
        }
        self.outgoing.room().map(|room| &mut room[..])
    }

    fn commit(&mut self, length: usize, _doorbell: bool) {
        if self.outgoing.count < SEND_FRAMES_MAX && length <= self.frame_bytes_max {
            self.outgoing.push(length);
        } else {
            self.counters.send_errors += 1;
        }
    }

    fn flush(&mut self, now: Instant) {
        self.retry_at = if self.send() { Instant::NEVER } else { now + RETRY_NS };
    }

    fn next_due(&self) -> Instant {
        self.retry_at
    }

    fn carrier(&mut self) -> bool {
        self.counters.kernel_drops += take_kernel_drops(&self.receiver);
        has_carrier(&self.sender, &self.interface).unwrap_or(false)
    }

    fn wake_source(&self) -> WakeSource<'_> {
        WakeSource::Descriptor(self.receiver.as_fd())
    }

    fn counters(&self) -> DeviceCounters {
        self.counters
    }
}
