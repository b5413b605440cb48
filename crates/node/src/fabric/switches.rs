//! Shared parts of a rack inside one process: threads that drive switches, and a directory of sockets.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};

use rackloom_protocol::Switch;
use tempfile::TempDir;

use super::error::Error;
use crate::runtime::Runtime;
use crate::wires::Doorbell;

/// Threads that drive switches. They end when the value is dropped.
#[derive(Debug, Default)]
pub(super) struct Switches {
    running: Vec<(Arc<AtomicBool>, Doorbell, JoinHandle<()>)>,
    /// Directory through which nodes map each other's memory. Removed with this value.
    directory: Option<TempDir>,
}

impl Switches {
    /// Keeps the directory of a rack whose nodes share memory.
    pub(super) fn keep(&mut self, directory: Option<TempDir>) {
        self.directory = directory;
    }

    pub(super) fn start(&mut self, mut runtime: Runtime<Switch>, bell: Doorbell) -> Result<(), Error> {
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let live = move || {
            while !over.load(Ordering::Acquire) {
                if !runtime.poll(runtime.now(), &mut |_| {}) {
                    runtime.wait_unless(rackloom_protocol::Instant::NEVER, |_| over.load(Ordering::Acquire));
                }
            }
        };
        let thread = Builder::new().name("rackloom-switch".to_owned()).spawn(live);
        let thread = thread.map_err(Error::system("cannot start a switch's thread"))?;
        self.running.push((is_over, bell, thread));
        Ok(())
    }
}

impl Drop for Switches {
    fn drop(&mut self) {
        for (is_over, bell, _) in &self.running {
            is_over.store(true, Ordering::Release);
            bell.ring();
        }
        for (_, _, thread) in self.running.drain(..) {
            // A switch whose thread has panicked has ended as well.
            let _ = thread.join();
        }
    }
}
