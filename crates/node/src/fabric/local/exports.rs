//! The exports of a node, and the thread that answers requests for them.
//!
//! The thread sleeps until a request arrives, so the application need not poll the node for peers to map its memory. It ends with the node, or
//! when the last importer has closed the node's memory on a device, which must not be freed before.

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

    pub(in crate::fabric) fn lock(&self) -> MutexGuard<'_, Exporter> {
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
        let has_ended = !awaited[1].revents().is_empty();
        let mut exporter = locked(exporter);
        exporter.serve(clock.now(), &mut |event| tracing::debug!("memory: {event:?}"));
        if has_ended {
            break;
        }
    }
    while locked(exporter).keeps_memory() {
        let mut awaited = [PollFd::new(requests, PollFlags::IN)];
        let _ = poll(&mut awaited, Some(&timespec(SLEEP_NS)));
        locked(exporter).serve(clock.now(), &mut |event| tracing::debug!("memory: {event:?}"));
    }
}

impl Drop for Exports {
    fn drop(&mut self) {
        let keeps_memory = self.lock().end();
        // Eight bytes always fit into a counter that is written once.
        let _ = write(&self.end, &1_u64.to_ne_bytes());
        if !keeps_memory {
            // A panic of the thread is not reported: it holds only the exporter, which ends here.
            self.thread.take().map(JoinHandle::join);
        }
    }
}

#[cfg(test)]
#[cfg(feature = "gpu")]
mod tests {
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use crate::fabric::{DeviceChoice, Fabric, Node, Plan, RegionOptions};

    const BOUND: Duration = Duration::from_secs(20);

    /// A device must not free memory that another process has open.
    #[test]
    fn memory_on_a_device_outlives_its_node_until_importers_have_closed_it() {
        let text = "name: pair\nshape: {ring: {nodes: 2}}\nservers: {box: [n0, n1]}\n";
        let fabric = Fabric::local(&Plan::parse(text, "test").unwrap()).unwrap();
        let [initiator, owner]: [Node; 2] = fabric.into_nodes().try_into().unwrap();
        let (options, device) = (RegionOptions::new(1, 7), DeviceChoice::Fake(1));
        let _opens_memory = initiator.allocate_on_device(options, device, 64).unwrap();
        let region = owner.allocate_on_device(options, device, 64).unwrap();
        let view = initiator.map_peer(region.address(0), BOUND).unwrap();
        let bytes = Arc::downgrade(&region.inner.bytes);
        owner.leave();
        drop((owner, region));
        assert_eq!(bytes.strong_count(), 1, "the view has it open");
        drop(view);
        let begun = Instant::now();
        while bytes.strong_count() > 0 {
            assert!(begun.elapsed() < BOUND, "it is not freed");
            std::thread::yield_now();
        }
    }
}
