//! Rings a node's doorbell when something arrives on wires that ring none: sockets of the kernel's.
//!
//! A node of the library sleeps on a doorbell, because that is what its other threads can ring. Neighbours in shared memory
//! ring it themselves; for sockets a thread of this process does, which sleeps in the kernel until a datagram comes. So a
//! sleeper is woken by way of one thread more; a node that is awake hears its wires directly and does not need it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use rustix::event::{EventfdFlags, epoll, eventfd};

use crate::wires::Doorbell;

/// Marks the event that ends the thread.
const OVER: u64 = 1;
/// Marks what comes over a wire.
const WIRE: u64 = 0;
/// Events that are taken at a time; they all mean the same.
const EVENTS_MAX: usize = 16;

/// The thread, for as long as this lives.
#[derive(Debug)]
pub(super) struct WakeThread {
    epoll: Arc<OwnedFd>,
    over: OwnedFd,
    thread: Option<JoinHandle<()>>,
}

impl WakeThread {
    /// Listen on behalf of whoever sleeps on `bell`, to nothing yet.
    pub(super) fn open(bell: Doorbell) -> io::Result<Self> {
        let epoll = Arc::new(epoll::create(epoll::CreateFlags::CLOEXEC)?);
        let over = eventfd(0, EventfdFlags::CLOEXEC)?;
        epoll::add(&epoll, &over, epoll::EventData::new_u64(OVER), epoll::EventFlags::IN)?;
        let events = Arc::clone(&epoll);
        let thread = Builder::new().name("rackloom-ear".to_owned()).spawn(move || listen(&events, &bell))?;
        Ok(Self { epoll, over, thread: Some(thread) })
    }

    /// Listen to this wire too, until it is closed. What it holds already counts as having just come.
    pub(super) fn listen_to(&self, wire: impl AsFd) -> io::Result<()> {
        let flags = epoll::EventFlags::IN | epoll::EventFlags::RDHUP | epoll::EventFlags::ET;
        Ok(epoll::add(&self.epoll, wire, epoll::EventData::new_u64(WIRE), flags)?)
    }
}

impl Drop for WakeThread {
    fn drop(&mut self) {
        // A counter that is full has been written to, which is all that is wanted.
        let _ = rustix::io::write(&self.over, &1_u64.to_ne_bytes());
        // It calls nobody who could panic.
        self.thread.take().map(JoinHandle::join);
    }
}

fn listen(epoll: &OwnedFd, bell: &Doorbell) {
    let mut events = Vec::with_capacity(EVENTS_MAX);
    loop {
        events.clear();
        match epoll::wait(epoll, rustix::buffer::spare_capacity(&mut events), None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            // Nothing else can be wrong with a descriptor of one's own; a node without an ear still looks now and then.
            Err(_) => return,
        }
        if events.iter().any(|event| event.data.u64() == OVER) {
            return;
        }
        bell.ring();
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::time::{Duration, Instant};

    use super::*;

    /// Longer than anything here takes, shorter than a hang.
    const BOUND: Duration = Duration::from_secs(20);

    fn sleep(bell: &Doorbell) -> Duration {
        let begun = Instant::now();
        bell.sleep(BOUND.as_nanos() as u64);
        begun.elapsed()
    }

    #[test]
    fn a_datagram_wakes_the_sleeper_whether_it_comes_before_or_after() {
        let bell = Doorbell::create().unwrap();
        let wake_thread = WakeThread::open(bell.clone()).unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        socket.send_to(b"before", address).unwrap();
        bell.arm();
        wake_thread.listen_to(&socket).unwrap();
        assert!(sleep(&bell) < BOUND);
        for _ in 0..3 {
            // Nobody has read what came before; what comes now is heard all the same.
            bell.arm();
            let sender = std::thread::spawn(move || {
                UdpSocket::bind("127.0.0.1:0").unwrap().send_to(b"now", address).unwrap();
            });
            assert!(sleep(&bell) < BOUND);
            sender.join().unwrap();
        }
    }

    #[test]
    fn it_ends_with_its_value() {
        let bell = Doorbell::create().unwrap();
        drop(WakeThread::open(bell).unwrap());
    }
}
