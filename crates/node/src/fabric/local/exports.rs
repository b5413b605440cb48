//! The exports of a node, and the thread that answers requests for them.
//!
//! The thread sleeps until a request arrives, so the application need not poll the node for peers to map its memory. It ends with the node.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

use rackloom_protocol::NodeId;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::write;

use crate::clock::{Clock, timespec};
use crate::sharing::{Exporter, Seats};
use crate::wires::Doorbell;

/// Longest sleep of the thread. It bounds the time for which a connection without a request is kept.
const SLEEP_NS: u64 = 1_000_000_000;

/// Exports of a node.
#[derive(Debug)]
pub(in crate::fabric) struct Exports {
    exporter: Arc<Mutex<Exporter>>,
    end: OwnedFd,
    thread: Option<JoinHandle<()>>,
}

impl Exports {
    /// Listens for requests, and starts the thread.
    pub(super) fn open(
        node: NodeId,
        directory: &Path,
        seats: Seats,
        doorbell: &Doorbell,
        clock: Clock,
    ) -> io::Result<Self> {
        let exporter = Exporter::listen(node, directory, seats, Some(doorbell))?;
        let requests = exporter.descriptor().try_clone_to_owned()?;
        let exporter = Arc::new(Mutex::new(exporter));
        let end = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let (served, ended) = (Arc::clone(&exporter), end.try_clone()?);
        let thread = Builder::new()
            .name("rackloom-memory".to_owned())
            .spawn(move || serve(&served, &requests, &ended, clock))?;
        Ok(Self { exporter, end, thread: Some(thread) })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Exporter> {
        locked(&self.exporter)
    }
}

/// Enters a poisoned lock too: each change of an exporter is complete before anything can panic.
fn locked(exporter: &Mutex<Exporter>) -> MutexGuard<'_, Exporter> {
    exporter.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve(exporter: &Mutex<Exporter>, requests: &OwnedFd, end: &OwnedFd, clock: Clock) {
    loop {
        let mut awaited =
            [requests, end].map(|descriptor| PollFd::from_borrowed_fd(descriptor.as_fd(), PollFlags::IN));
        // After an interruption nothing is ready, and the loop continues.
        let _ = poll(&mut awaited, Some(&timespec(SLEEP_NS)));
        if !awaited[1].revents().is_empty() {
            return;
        }
        locked(exporter).serve(clock.now(), &mut |event| tracing::debug!("memory: {event:?}"));
    }
}

impl Drop for Exports {
    fn drop(&mut self) {
        // Eight bytes always fit into a counter that is written once.
        let _ = write(&self.end, &1_u64.to_ne_bytes());
        // A panic of the thread is not reported: it holds only the exporter, which ends here.
        self.thread.take().map(JoinHandle::join);
    }
}
