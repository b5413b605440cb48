//! A thread that rings a node's doorbell when data arrives on wires without a doorbell: the kernel's sockets.
//!
//! A node of the library sleeps at a doorbell, because its other threads can ring that. Neighbours in shared memory ring it themselves. For
//! sockets, this thread sleeps in the kernel until a datagram arrives, and then rings. So a wake through a socket takes one thread more. A node
//! that is awake polls its wires directly and does not need the thread.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use rustix::event::{EventfdFlags, epoll, eventfd};

use crate::wires::Doorbell;

/// Marks the event that ends the thread.
const OVER: u64 = 1;
/// Marks an event of a wire.
const WIRE: u64 = 0;
/// Number of events that are taken at a time. All have the same effect.
const EVENTS_MAX: usize = 16;

/// Handle of the thread. Dropping it ends the thread.
#[derive(Debug)]
pub(in crate::fabric) struct WakeThread {
    epoll: Arc<OwnedFd>,
    over: OwnedFd,
    thread: Option<JoinHandle<()>>,
}

impl WakeThread {
    /// Starts the thread for threads that sleep at `bell`. It watches no wire yet.
    pub(in crate::fabric) fn open(bell: Doorbell) -> io::Result<Self> {
        let epoll = Arc::new(epoll::create(epoll::CreateFlags::CLOEXEC)?);
        let over = eventfd(0, EventfdFlags::CLOEXEC)?;
        epoll::add(&epoll, &over, epoll::EventData::new_u64(OVER), epoll::EventFlags::IN)?;
        let events = Arc::clone(&epoll);
        let thread = Builder::new().name("rackloom-wake".to_owned()).spawn(move || listen(&events, &bell))?;
        Ok(Self { epoll, over, thread: Some(thread) })
    }

    /// Watches a wire until it is closed. Data that it holds already counts as newly arrived.
    pub(in crate::fabric) fn listen_to(&self, wire: impl AsFd) -> io::Result<()> {
        let flags = epoll::EventFlags::IN | epoll::EventFlags::RDHUP | epoll::EventFlags::ET;
        Ok(epoll::add(&self.epoll, wire, epoll::EventData::new_u64(WIRE), flags)?)
    }
}

impl Drop for WakeThread {
    fn drop(&mut self) {
        // A full counter makes the write fail, but has been written before, which ends the thread as well.
        let _ = rustix::io::write(&self.over, &1_u64.to_ne_bytes());
        // The thread calls nothing that panics.
        self.thread.take().map(JoinHandle::join);
    }
}

fn listen(epoll: &OwnedFd, bell: &Doorbell) {
    let mut events = Vec::with_capacity(EVENTS_MAX);
    loop {
        events.clear();
        match epoll::wait(epoll, rustix::buffer::spare_capacity(&mut events), None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            // No other error is possible for this descriptor. A node without the thread still polls every 100 ms.
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

    /// Longer than any step of the test, and short enough to end a hanging test.
    const BOUND: Duration = Duration::from_secs(20);

    fn sleep(bell: &Doorbell) -> Duration {
        let begun = Instant::now();
        bell.sleep(BOUND.as_nanos() as u64);
        begun.elapsed()
    }

    #[test]
    fn a_datagram_wakes_a_sleeper_before_and_after_it_sleeps() {
        let bell = Doorbell::create().unwrap();
        let wake_thread = WakeThread::open(bell.clone()).unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        socket.send_to(b"before", address).unwrap();
        bell.arm();
        wake_thread.listen_to(&socket).unwrap();
        assert!(sleep(&bell) < BOUND);
        for _ in 0..3 {
            // The earlier datagram was not read. A new one wakes all the same.
            bell.arm();
            let sender = std::thread::spawn(move || {
                UdpSocket::bind("127.0.0.1:0").unwrap().send_to(b"now", address).unwrap();
            });
            assert!(sleep(&bell) < BOUND);
            sender.join().unwrap();
        }
    }

    #[test]
    fn dropping_the_handle_ends_the_thread() {
        let bell = Doorbell::create().unwrap();
        drop(WakeThread::open(bell).unwrap());
    }
}
