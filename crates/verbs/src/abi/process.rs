//! Engine of this process, its clock, and the thread that repeats sends after their deadlines.
//!
//! The thread starts with the first send that waits. It runs the engine only at deadlines, so a program that never waits has no thread of ours.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::engine::{Engine, Loopback};

/// Environment variable: seat of the process. Without it there is no device.
pub const SEAT_VARIABLE: &str = "RACKLOOM_SEAT";
/// Environment variable: rank of the process.
pub const RANK_VARIABLE: &str = "RACKLOOM_RANK";
/// Environment variable: numbers of the nodes of all ranks in the plan, separated by commas.
pub const NODES_VARIABLE: &str = "RACKLOOM_NODES";

struct Process {
    engine: Mutex<Engine>,
    changed: Condvar,
    start: Instant,
    has_thread: AtomicBool,
}

impl Process {
    fn engine(&self) -> MutexGuard<'_, Engine> {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Repeats sends at their deadlines, for ever.
    fn run(&self) {
        let mut engine = self.engine();
        loop {
            let now_ns = self.now_ns();
            engine.expire(now_ns);
            engine = match engine.next_deadline_ns() {
                None => self.changed.wait(engine).unwrap_or_else(PoisonError::into_inner),
                Some(deadline_ns) => {
                    let wait = Duration::from_nanos(deadline_ns.saturating_sub(now_ns));
                    self.changed.wait_timeout(engine, wait).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}

/// Returns the number of this process's node, or `None` if it has no seat.
pub(super) fn node() -> Option<u32> {
    let seat = std::env::var_os(SEAT_VARIABLE).filter(|seat| !seat.is_empty());
    seat.map(|_| {
        let variable = |name| std::env::var(name).unwrap_or_default();
        node_of(&variable(RANK_VARIABLE), &variable(NODES_VARIABLE))
    })
}

/// Returns the number of the node of a rank: that in the list of all nodes, else the rank itself, else 0.
fn node_of(rank: &str, nodes: &str) -> u32 {
    let rank = rank.parse().unwrap_or(0);
    let listed = usize::try_from(rank).ok().and_then(|rank| nodes.split(',').nth(rank)?.parse().ok());
    listed.unwrap_or(rank)
}

fn process() -> &'static Process {
    static PROCESS: OnceLock<Process> = OnceLock::new();
    PROCESS.get_or_init(|| Process {
        engine: Mutex::new(Engine::new(
            Box::new(Loopback::new(node().unwrap_or(0))),
            RandomState::new().build_hasher().finish(),
        )),
        changed: Condvar::new(),
        start: Instant::now(),
        has_thread: AtomicBool::new(false),
    })
}

/// Calls the engine with the time in nanoseconds.
pub(super) fn with<R>(call: impl FnOnce(&mut Engine, u64) -> R) -> R {
    let process = process();
    let mut engine = process.engine();
    let result = call(&mut engine, process.now_ns());
    if engine.next_deadline_ns().is_some() {
        if !process.has_thread.swap(true, Ordering::Relaxed) && start(process).is_err() {
            // The next call tries again.
            process.has_thread.store(false, Ordering::Relaxed);
        }
        process.changed.notify_one();
    }
    result
}

/// Starts the thread. It takes no signals: they are for the threads of the program.
fn start(process: &'static Process) -> std::io::Result<()> {
    // SAFETY: needed to block signals in the new thread, which inherits the mask. Both sets are variables of this function, and the mask
    // of this thread is set back.
    unsafe {
        let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let thread = std::thread::Builder::new().name("rackloom-verbs".into()).spawn(|| process.run());
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        thread.map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_node_is_that_of_the_rank() {
        assert_eq!(node_of("1", "4,7"), 7);
        assert_eq!(node_of("3", ""), 3);
        assert_eq!(node_of("3", "4,7"), 3, "a list that is too short");
        assert_eq!(node_of("", ""), 0);
    }
}
