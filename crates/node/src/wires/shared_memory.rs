//! The default wire: two rings in shared memory, one per direction, and a pair of connected sockets that nobody
//! writes to.
//!
//! The supervisor creates a link with [`create`] and gives one [`End`] to each of two processes, as three inherited
//! descriptors. The sockets are the carrier: when a process ends, however it ends, the kernel closes its socket and
//! the neighbour reads end-of-file. Nothing has a name in the file system, so nothing is left behind.
//!
//! For that to work each socket must be open in one process only: descriptors are closed on exec unless
//! [`super::keep_across_exec`] says otherwise, and the supervisor drops its ends once the processes run.
//!
//! This wire trusts its neighbours not to write into frames that the core is reading; both are processes of one rack
//! started by one user. It does not trust indices and lengths.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};

use rackloom_protocol::Instant;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, recv, socketpair};

use super::leases::Leases;
use super::ring::{Broken, Consumer, Producer, file_bytes};
use super::{Device, DeviceCounters, DeviceLease, FRAME_BYTES_MAX, WakeSource, adopt};
use crate::mapping::{duplicate, sealed_memfd};

pub use super::doorbell::Doorbell;

/// Smallest ring that still holds a few frames of the largest size.
pub const RING_BYTES_MIN: u32 = 64 * 1024;
/// Largest ring.
pub const RING_BYTES_MAX: u32 = 64 * 1024 * 1024;

/// One end of a link, not opened yet: the ring to send, the ring to receive, the carrier.
#[derive(Debug)]
pub struct End {
    send: OwnedFd,
    receive: OwnedFd,
    carrier: OwnedFd,
}

/// A new link. `ring_bytes` is the size of one direction: a power of two from [`RING_BYTES_MIN`] to
/// [`RING_BYTES_MAX`].
pub fn create(ring_bytes: u32) -> io::Result<(End, End)> {
    if !ring_bytes.is_power_of_two() || !(RING_BYTES_MIN..=RING_BYTES_MAX).contains(&ring_bytes) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!(
                "ring of {ring_bytes} bytes: must be a power of two from {RING_BYTES_MIN} to {RING_BYTES_MAX}"
            ),
        ));
    }
    let forward = sealed_memfd("rackloom-ring", file_bytes(ring_bytes))?;
    let backward = sealed_memfd("rackloom-ring", file_bytes(ring_bytes))?;
    let (a, b) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    let first = End { send: duplicate(&forward)?, receive: duplicate(&backward)?, carrier: a };
    let second = End { send: backward, receive: forward, carrier: b };
    Ok((first, second))
}

impl End {
    /// The descriptors, still owned by this end: to be inherited by the process that will open it.
    #[must_use]
    pub fn fds(&self) -> [RawFd; 3] {
        [self.send.as_raw_fd(), self.receive.as_raw_fd(), self.carrier.as_raw_fd()]
    }

    /// Take over the descriptors that this process was started with, in the order of [`End::fds`].
    pub fn from_fds(fds: [RawFd; 3]) -> io::Result<Self> {
        let [send, receive, carrier] = fds;
        Ok(Self { send: adopt(send)?, receive: adopt(receive)?, carrier: adopt(carrier)? })
    }

    /// Map the rings. `my_doorbell` wakes this node, `peer_doorbell` the neighbour.
    pub fn open(self, my_doorbell: &Doorbell, peer_doorbell: &Doorbell) -> io::Result<SharedMemoryDevice> {
        Ok(SharedMemoryDevice {
            producer: Producer::open(self.send.as_fd())?,
            consumer: Consumer::open(self.receive.as_fd())?,
            leases: Leases::default(),
            carrier: self.carrier,
            my_doorbell: my_doorbell.clone(),
            peer_doorbell: peer_doorbell.clone(),
            ring_peer: false,
            has_slot: false,
            broken: false,
            counters: DeviceCounters::default(),
        })
    }
}

/// Two devices joined by a link within one process: for tests and for racks of threads. All devices of a member
/// share its doorbell.
pub fn pair(
    ring_bytes: u32,
    first: &Doorbell,
    second: &Doorbell,
) -> io::Result<(SharedMemoryDevice, SharedMemoryDevice)> {
    let (a, b) = create(ring_bytes)?;
    Ok((a.open(first, second)?, b.open(second, first)?))
}

/// A port on a shared-memory link.
#[derive(Debug)]
pub struct SharedMemoryDevice {
    producer: Producer,
    consumer: Consumer,
    leases: Leases,
    carrier: OwnedFd,
    my_doorbell: Doorbell,
    peer_doorbell: Doorbell,
    ring_peer: bool,
    has_slot: bool,
    broken: bool,
    counters: DeviceCounters,
}

impl SharedMemoryDevice {
    /// A neighbour that writes nonsense into indices is as good as gone.
    fn believe<T>(&mut self, result: Result<T, Broken>) -> Option<T> {
        self.broken |= result.is_err();
        result.ok()
    }
}

impl Device for SharedMemoryDevice {
    fn receive(&mut self) -> Option<DeviceLease> {
        if self.broken {
            return None;
        }
        let next = self.consumer.next();
        let record = self.believe(next)??;
        Some(self.leases.take(record))
    }

    fn leased(&self, lease: DeviceLease) -> &[u8] {
        self.leases.bytes(&self.consumer, lease)
    }

    fn release(&mut self, lease: DeviceLease) {
        self.leases.release(&mut self.consumer, lease);
    }

    fn ready(&mut self) -> bool {
        let ready = self.consumer.ready();
        !self.broken && self.believe(ready).unwrap_or(false)
    }

    fn slot(&mut self) -> Option<&mut [u8]> {
        if self.broken {
            return None;
        }
        match self.producer.slot(FRAME_BYTES_MAX) {
            Ok(room) => {
                self.has_slot = room.is_some();
                self.counters.full += u64::from(room.is_none());
                room
            }
            Err(Broken) => {
                self.broken = true;
                None
            }
        }
    }

    fn commit(&mut self, length: usize, doorbell: bool) {
        if !std::mem::take(&mut self.has_slot) || length > FRAME_BYTES_MAX {
            self.counters.send_errors += 1;
            return;
        }
        self.producer.commit(length);
        self.ring_peer |= doorbell;
    }

    fn flush(&mut self, _now: Instant) {
        let published = self.producer.publish();
        self.leases.evacuate(&mut self.consumer);
        let starved = self.consumer.publish();
        let ring = published && std::mem::take(&mut self.ring_peer);
        if ring || starved {
            self.peer_doorbell.ring();
        }
    }

    fn carrier(&mut self) -> bool {
        let mut byte = [0; 1];
        match recv(&self.carrier, &mut byte, RecvFlags::DONTWAIT | RecvFlags::PEEK) {
            Ok((0, _)) => false,
            Ok(_) | Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => !self.broken,
            Err(_) => false,
        }
    }

    fn wake_source(&self) -> WakeSource<'_> {
        WakeSource::Doorbell(&self.my_doorbell)
    }

    fn counters(&self) -> DeviceCounters {
        DeviceCounters { evacuated: self.leases.evacuated(), ..self.counters }
    }
}
