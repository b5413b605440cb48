//! Doorbell: wakes a sleeping node when a neighbour has written into one of its rings.
//!
//! Every node has one doorbell for all its links: a word in a small shared file that contains "asleep" or "awake". A sender that has published frames
//! reads the word. It makes a system call only if the owner sleeps, so a busy pair of nodes makes none.
//!
//! [`super::doorbell_word`] has the order in which both sides write and read, so that no wake-up is lost.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use rustix::thread::futex;

use super::descriptors::adopt;
use super::doorbell_word::{self, ASLEEP};
use crate::mapping::{Mapping, sealed_length, sealed_memfd, whole_pages};
use crate::slack::Slack;

/// The doorbell of one node. Clones refer to the same doorbell.
///
/// `Send` and `Sync`. Any thread may ring. Only the owner sleeps on it.
#[derive(Clone, Debug)]
pub struct Doorbell {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    file: OwnedFd,
    page: Mapping,
}

impl PartialEq for Doorbell {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}

impl Eq for Doorbell {}

impl Doorbell {
    /// Creates a doorbell whose owner is awake.
    ///
    /// # Errors
    /// The error of the system.
    pub fn create() -> io::Result<Self> {
        let length = whole_pages(4).ok_or(io::ErrorKind::OutOfMemory)?;
        Self::open(sealed_memfd("rackloom-doorbell", length)?)
    }

    /// Returns the descriptor that other processes need. The doorbell keeps ownership. The descriptor is closed on exec unless
    /// [`super::keep_across_exec`] is called for it.
    #[must_use]
    pub fn fd(&self) -> RawFd {
        self.shared.file.as_raw_fd()
    }

    /// Returns the file, to send it through a socket.
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.file.as_fd()
    }

    /// Takes over a descriptor that this process inherited.
    ///
    /// # Errors
    /// The error of the system. Its kind is `InvalidData` if the file is too short for a doorbell.
    pub fn from_fd(fd: RawFd) -> io::Result<Self> {
        Self::open(adopt(fd)?)
    }

    /// Takes over the file of a doorbell that was received through a socket.
    pub(crate) fn open(file: OwnedFd) -> io::Result<Self> {
        if sealed_length(file.as_fd())? < 4 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "doorbell file is too short"));
        }
        let page = Mapping::new(file.as_fd(), 4)?;
        Ok(Self { shared: Arc::new(Shared { file, page }) })
    }

    /// Wakes the owner if it sleeps. Call this after the frames have been published.
    pub fn ring(&self) {
        doorbell_word::ring(self.word(), |word| {
            // The sender could not repair a failed wake-up, and the owner's sleep ends at its timeout in any case. Several threads of the owner may
            // sleep on the doorbell. Each checks its own rings.
            let _ = futex::wake(word, futex::Flags::empty(), i32::MAX as u32);
        });
    }

    /// Announces that the owner is about to sleep. The owner must check all its rings once more before it sleeps.
    pub fn arm(&self) {
        doorbell_word::arm(self.word());
    }

    /// Marks the owner as awake.
    pub fn disarm(&self) {
        doorbell_word::disarm(self.word());
    }

    /// Sleeps until a sender rings, at most `timeout_ns()` nanoseconds. Does not sleep if `is_ready`, which is called after the doorbell is armed,
    /// returns `true`.
    pub(crate) fn park(&self, is_ready: impl FnOnce() -> bool, timeout_ns: impl FnOnce() -> u64) {
        doorbell_word::park(self.word(), is_ready, || {
            let timeout_ns = timeout_ns();
            if timeout_ns > 0 {
                self.sleep(timeout_ns);
            }
        });
    }

    /// Sleeps until a sender rings, at most `timeout_ns` nanoseconds. Returns at once if a sender has rung since [`Self::arm`].
    pub fn sleep(&self, timeout_ns: u64) {
        let timeout = crate::clock::timespec(timeout_ns);
        let _slack = Slack::for_sleep(timeout_ns);
        // The owner checks its rings in every case: woken, rung before the sleep, interrupted or timed out.
        let _ = futex::wait(self.word(), futex::Flags::empty(), ASLEEP, Some(&timeout));
    }

    fn word(&self) -> &AtomicU32 {
        // SAFETY: needed because the word lies in pages shared with other processes. The mapping is at least 4 bytes long, page aligned, and exists
        // as long as `self`. Every process accesses the word only as an atomic.
        unsafe { AtomicU32::from_ptr(self.shared.page.base().cast()) }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_ring_between_arming_and_sleeping_is_not_lost() {
        let owner = Doorbell::create().unwrap();
        let neighbour =
            Doorbell::from_fd(crate::mapping::duplicate(&owner.shared.file).map(leak).unwrap()).unwrap();
        owner.arm();
        neighbour.ring();
        let before = Instant::now();
        owner.sleep(5_000_000_000);
        assert!(before.elapsed() < Duration::from_secs(2));
    }

    #[test]
    fn a_sleeper_is_woken_by_a_ring_and_by_the_end_of_its_time() {
        let owner = Doorbell::create().unwrap();
        let neighbour = owner.clone();
        owner.arm();
        let before = Instant::now();
        let ringer = thread::spawn(move || neighbour.ring());
        owner.sleep(5_000_000_000);
        assert!(before.elapsed() < Duration::from_secs(2));
        ringer.join().unwrap();
        owner.arm();
        let before = Instant::now();
        owner.sleep(2_000_000);
        assert!(before.elapsed() >= Duration::from_millis(2), "an armed bell lets its owner sleep");
        owner.disarm();
    }

    #[test]
    fn an_unsealed_file_is_refused() {
        let file = rustix::fs::memfd_create("loose", rustix::fs::MemfdFlags::ALLOW_SEALING).unwrap();
        rustix::fs::ftruncate(&file, 4096).unwrap();
        assert_eq!(Doorbell::from_fd(leak(file)).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    fn leak(file: OwnedFd) -> RawFd {
        std::os::fd::IntoRawFd::into_raw_fd(file)
    }
}
