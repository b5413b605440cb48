//! The default wire: two rings in shared memory, one per direction, and a pair of connected sockets that carry no data.
//!
//! The supervisor creates a link with [`create`] and gives one [`End`] to each of two processes, as three inherited descriptors. The sockets are the
//! carrier: when a process ends for any reason, the kernel closes its socket, and the neighbour reads end-of-file. Nothing has a name in the file
//! system, so nothing is left behind.
//!
//! Each socket must therefore be open in one process only. Descriptors are closed on exec unless [`crate::wires::keep_across_exec`] is called, and the
//! supervisor drops its ends once the processes run.
//!
//! This wire trusts its neighbours not to write into frames that the core is reading. Both are processes of one rack, started by one user. It does
//! not trust indices and lengths.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};

use rackloom_protocol::Instant;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use crate::mapping::{duplicate, sealed_memfd};
use crate::wires::descriptors::adopt;
use crate::wires::leases::Leases;
use crate::wires::ring::{Broken, Consumer, Producer};
use crate::wires::ring_memory::file_bytes;
use crate::wires::socket::has_peer;
use crate::wires::{Device, DeviceCounters, DeviceLease, FRAME_BYTES_MAX, Offered, WakeSource};

pub use crate::wires::doorbell::Doorbell;

/// Size of the smallest ring, in bytes. It still holds a few frames of the largest size.
pub const RING_BYTES_MIN: u32 = 64 * 1024;
/// Size of the largest ring, in bytes.
pub const RING_BYTES_MAX: u32 = 64 * 1024 * 1024;

/// One end of a link, not opened yet: the ring to send, the ring to receive, the carrier.
///
/// `Send` and `Sync`: descriptors that it owns.
#[derive(Debug)]
pub struct End {
    send: OwnedFd,
    receive: OwnedFd,
    carrier: OwnedFd,
}

/// Creates a link. `ring_bytes` is the size of one direction: a power of two from [`RING_BYTES_MIN`] to [`RING_BYTES_MAX`].
///
/// # Errors
/// The error of the system, or `InvalidInput` for another size.
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
    /// Returns the descriptors, for the process that will inherit and open them. This end keeps ownership.
    #[must_use]
    pub fn fds(&self) -> [RawFd; 3] {
        [self.send.as_raw_fd(), self.receive.as_raw_fd(), self.carrier.as_raw_fd()]
    }

    /// Takes over inherited descriptors, in the order of [`End::fds`].
    ///
    /// # Errors
    /// The error of the system.
    pub fn from_fds(fds: [RawFd; 3]) -> io::Result<Self> {
        let [send, receive, carrier] = fds;
        Ok(Self { send: adopt(send)?, receive: adopt(receive)?, carrier: adopt(carrier)? })
    }

    /// Maps the rings. `my_doorbell` wakes this node, `peer_doorbell` the neighbour.
    ///
    /// # Errors
    /// The error of the system. Its kind is `InvalidData` if a file is not a ring.
    pub fn open(self, my_doorbell: &Doorbell, peer_doorbell: &Doorbell) -> io::Result<SharedMemoryDevice> {
        Ok(SharedMemoryDevice {
            producer: Producer::open(self.send.as_fd())?,
            consumer: Consumer::open(self.receive.as_fd())?,
            leases: Leases::default(),
            carrier: self.carrier,
            my_doorbell: my_doorbell.clone(),
            peer_doorbell: peer_doorbell.clone(),
            ring_peer: false,
            is_shown: false,
            has_slot: false,
            ring_state: RingState::Intact,
            counters: DeviceCounters::default(),
        })
    }
}

/// Creates two devices joined by a link within one process, for tests and for racks of threads. All devices of a member share its doorbell.
///
/// # Errors
/// The error of the system.
pub fn pair(
    ring_bytes: u32,
    first: &Doorbell,
    second: &Doorbell,
) -> io::Result<(SharedMemoryDevice, SharedMemoryDevice)> {
    let (a, b) = create(ring_bytes)?;
    Ok((a.open(first, second)?, b.open(second, first)?))
}

/// Condition of the rings that are shared with the neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RingState {
    /// All indices were possible.
    Intact,
    /// The neighbour wrote impossible indices. It counts as absent.
    Broken,
}

/// A port on a shared-memory link.
///
/// `Send` and `Sync`. Its changes take `&mut self`, so one thread drives it at a time.
#[derive(Debug)]
pub struct SharedMemoryDevice {
    producer: Producer,
    consumer: Consumer,
    leases: Leases,
    carrier: OwnedFd,
    my_doorbell: Doorbell,
    peer_doorbell: Doorbell,
    ring_peer: bool,
    /// Set if frames were published since the last flush, which then wakes the neighbour.
    is_shown: bool,
    has_slot: bool,
    ring_state: RingState,
    counters: DeviceCounters,
}

impl SharedMemoryDevice {
    /// Marks the link as broken if the neighbour wrote impossible indices. The neighbour then counts as absent.
    fn unless_broken<T>(&mut self, result: Result<T, Broken>) -> Option<T> {
        if result.is_err() {
            self.ring_state = RingState::Broken;
        }
        result.ok()
    }
}

impl Device for SharedMemoryDevice {
    fn receive(&mut self) -> Option<DeviceLease> {
        if self.ring_state == RingState::Broken {
            return None;
        }
        let next = self.consumer.next();
        let record = self.unless_broken(next)??;
        Some(self.leases.take(record))
    }

    fn offer(&mut self, take: &mut dyn FnMut(&[u8]) -> bool) -> Option<Offered> {
        if self.ring_state == RingState::Broken {
            return None;
        }
        let next = self.consumer.next();
        let record = self.unless_broken(next)??;
        if !take(self.consumer.bytes(record)) {
            return Some(Offered::Leased(self.leases.take(record)));
        }
        self.leases.pass(&mut self.consumer, record);
        Some(Offered::Taken)
    }

    fn leased(&self, lease: DeviceLease) -> &[u8] {
        self.leases.bytes(&self.consumer, lease)
    }

    fn keep_pages(&mut self) -> Option<(usize, usize)> {
        Some(self.consumer.keep_pages())
    }

    fn hold(&mut self, lease: DeviceLease) {
        self.leases.hold(lease);
    }

    fn release(&mut self, lease: DeviceLease) {
        self.leases.release(&mut self.consumer, lease);
    }

    fn ready(&mut self) -> bool {
        let ready = self.consumer.ready();
        self.ring_state == RingState::Intact && self.unless_broken(ready).unwrap_or(false)
    }

    fn slot(&mut self) -> Option<&mut [u8]> {
        if self.ring_state == RingState::Broken {
            return None;
        }
        match self.producer.slot(FRAME_BYTES_MAX) {
            Ok(slot) => {
                self.has_slot = slot.is_some();
                self.counters.full += u64::from(slot.is_none());
                slot
            }
            Err(Broken) => {
                self.ring_state = RingState::Broken;
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

    fn show(&mut self) {
        self.is_shown |= self.producer.publish();
    }

    fn flush(&mut self, _now: Instant) {
        self.show();
        self.leases.evacuate(&mut self.consumer);
        let starved = self.consumer.publish();
        let published = std::mem::take(&mut self.is_shown);
        let ring = published && std::mem::take(&mut self.ring_peer);
        if ring || starved {
            self.peer_doorbell.ring();
        }
    }

    fn carrier(&mut self) -> bool {
        self.ring_state == RingState::Intact && has_peer(&self.carrier)
    }

    fn wake_source(&self) -> WakeSource<'_> {
        WakeSource::Doorbell(&self.my_doorbell)
    }

    fn counters(&self) -> DeviceCounters {
        DeviceCounters { copied_out: self.leases.copied_out(), ..self.counters }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::{Duration, Instant as WallInstant};

    use super::*;

    const FRAMES: u32 = 200_000;
    const NAP_NS: u64 = 20_000_000_000;

    /// Sleeps until `look` finds something. A lost wake-up would make the sleep last until its timeout.
    fn nap_until<T>(bell: &Doorbell, mut look: impl FnMut() -> Option<T>) -> T {
        loop {
            bell.arm();
            let found = look();
            if found.is_none() {
                let before = WallInstant::now();
                bell.sleep(NAP_NS);
                assert!(before.elapsed() < Duration::from_nanos(NAP_NS / 2), "a wake-up was lost");
            }
            bell.disarm();
            if let Some(found) = found {
                return found;
            }
        }
    }

    #[test]
    fn two_threads_that_sleep_whenever_they_can_lose_no_frame_and_no_wake_up() {
        let (sender_bell, receiver_bell) = (Doorbell::create().unwrap(), Doorbell::create().unwrap());
        let (mut sender, mut receiver) = pair(RING_BYTES_MIN, &sender_bell, &receiver_bell).unwrap();
        let length = |number: u32| 64 + (number.wrapping_mul(2_654_435_761) >> 22) as usize;
        let sending = thread::spawn(move || {
            for number in 0..FRAMES {
                if sender.slot().is_none() {
                    sender.flush(Instant::ZERO);
                    nap_until(&sender_bell, || sender.slot().is_some().then_some(()));
                }
                let slot = &mut sender.slot().unwrap()[..length(number)];
                slot.fill(number as u8);
                slot[..4].copy_from_slice(&number.to_le_bytes());
                sender.commit(length(number), true);
                if number % 7 == 0 {
                    sender.flush(Instant::ZERO);
                }
            }
            sender.flush(Instant::ZERO);
            sender
        });
        for number in 0..FRAMES {
            let lease = receiver.receive().unwrap_or_else(|| {
                receiver.flush(Instant::ZERO);
                nap_until(&receiver_bell, || receiver.receive())
            });
            let bytes = receiver.leased(lease);
            assert_eq!(bytes.len(), length(number));
            assert_eq!(bytes[..4], number.to_le_bytes());
            assert!(bytes[4..].iter().all(|byte| *byte == number as u8));
            receiver.release(lease);
            if number % 5 == 0 {
                receiver.flush(Instant::ZERO);
            }
        }
        drop(sending.join().unwrap());
    }

    #[test]
    fn an_end_travels_as_three_descriptors() {
        let (local, remote) = create(RING_BYTES_MIN).unwrap();
        let copies = remote.fds().map(|fd| {
            // SAFETY: the descriptor belongs to `remote`, which exists until after the call.
            let fd = unsafe { std::os::fd::BorrowedFd::borrow_raw(fd) };
            std::os::fd::IntoRawFd::into_raw_fd(duplicate(fd).unwrap())
        });
        let bell = Doorbell::create().unwrap();
        let mut inherited = End::from_fds(copies).unwrap().open(&bell, &bell).unwrap();
        let mut local = local.open(&bell, &bell).unwrap();
        local.slot().unwrap()[..4].copy_from_slice(b"ping");
        local.commit(4, true);
        local.flush(Instant::ZERO);
        let lease = inherited.receive().unwrap();
        assert_eq!(inherited.leased(lease), b"ping");
        drop(remote);
        assert!(local.carrier(), "the inherited socket still holds the carrier");
        drop(inherited);
        assert!(!local.carrier());
    }

    #[test]
    fn descriptors_and_sizes_that_form_no_ring_are_refused() {
        assert!(End::from_fds([-1, -1, -1]).is_err());
        for ring_bytes in [0, 1000, 65_535, 65_537, 1 << 27] {
            assert_eq!(create(ring_bytes).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        }
    }
}
