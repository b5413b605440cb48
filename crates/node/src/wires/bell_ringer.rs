//! A thread that rings a doorbell when a descriptor is readable, for a member that sleeps on a doorbell and has a descriptor besides.
//!
//! The member arms it before each sleep. It rings once, and rests until it is armed again. A member that is awake checks the descriptor itself.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use rustix::event::{PollFd, PollFlags, poll};

use super::Doorbell;
use crate::clock::timespec;

/// Longest wait of the thread for the descriptor. Afterwards it checks that its member exists.
const WAIT_NS_MAX: u64 = 500_000_000;

pub(super) struct BellRinger {
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
}

struct Shared {
    descriptor: OwnedFd,
    doorbell: Doorbell,
    is_armed: AtomicBool,
    has_ended: AtomicBool,
}

impl BellRinger {
    pub(super) fn start(descriptor: OwnedFd, doorbell: Doorbell) -> io::Result<Self> {
        let (is_armed, has_ended) = Default::default();
        let shared = Arc::new(Shared { descriptor, doorbell, is_armed, has_ended });
        let of_thread = Arc::clone(&shared);
        let thread = thread::Builder::new().name("ringer".to_owned()).spawn(move || of_thread.run())?;
        Ok(Self { shared, thread })
    }

    /// Has the doorbell rung once when the descriptor is readable. At once if it is readable now.
    pub(super) fn arm(&self) {
        if !self.shared.is_armed.swap(true, Ordering::AcqRel) {
            self.thread.thread().unpark();
        }
    }
}

impl Drop for BellRinger {
    fn drop(&mut self) {
        // The thread ends within its longest wait. Nothing depends on that.
        self.shared.has_ended.store(true, Ordering::Release);
        self.thread.thread().unpark();
    }
}

impl Shared {
    fn run(&self) {
        while !self.has_ended.load(Ordering::Acquire) {
            if !self.is_armed.load(Ordering::Acquire) {
                thread::park();
                continue;
            }
            let mut interest = [PollFd::new(&self.descriptor, PollFlags::IN)];
            if !matches!(poll(&mut interest, Some(&timespec(WAIT_NS_MAX))), Ok(0)) {
                self.is_armed.store(false, Ordering::Release);
                self.doorbell.ring();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_readable_descriptor_ends_each_armed_sleep() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let doorbell = Doorbell::create().unwrap();
        let ringer = BellRinger::start(ours.into(), doorbell.clone()).unwrap();
        for round in 0..3 {
            doorbell.arm();
            ringer.arm();
            if round == 0 {
                theirs.write_all(b"a").unwrap();
            }
            let begun = Instant::now();
            doorbell.sleep(20_000_000_000);
            doorbell.disarm();
            assert!(begun.elapsed() < Duration::from_secs(10), "round {round}: the byte is still unread");
        }
    }
}
