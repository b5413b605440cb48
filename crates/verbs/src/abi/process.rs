//! Engine of this process, its clock, and its threads.
//!
//! On a seat of a rack that is up, the first context makes the process an endpoint of its own behind the seat's agent. One thread then serves requests of
//! peers while the program does not poll. Another thread repeats sends after their deadlines. It starts with the first send that waits.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rackloom::fabric::Node;
use rustix::io::Errno;

use super::guard::nothing;
use crate::cm::Manager;
use crate::engine::{Engine, Loopback, Transport, Waiter};
use crate::fabric::{Directory, FabricTransport, PROCESSES_MAX, Ports};

/// Environment variable: rack of the process. Without it queue pairs reach only those of their own process.
pub const RACK_VARIABLE: &str = "RACKLOOM_RACK";
/// Environment variable: seat of the process. Without it there is no device.
pub const SEAT_VARIABLE: &str = "RACKLOOM_SEAT";
/// Environment variable: rank of the process.
pub const RANK_VARIABLE: &str = "RACKLOOM_RANK";
/// Environment variable: numbers of the nodes of all ranks in the plan, separated by commas.
pub const NODES_VARIABLE: &str = "RACKLOOM_NODES";

/// Time without a poll of the program after which the thread serves peers.
const POLLED_NS: u64 = 1_000_000;
/// Time between a completion and the next call of a program that does something else meanwhile, and perhaps waits for data in its memory.
const AWAY_NS: u64 = 20_000;
/// Time for which a program that was away is expected to be away again after its completions. Data that arrive early make an absence short.
const HABIT_NS: u64 = 10_000_000;
/// Longest sleep of the thread that serves peers.
const SERVE_INTERVAL: Duration = Duration::from_millis(50);
/// Longest time in which a process that ends sends its last replies. A peer may be stopped.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);
/// Longest sleep meanwhile, and while requests or receives wait for a peer to be reached.
const SHORT_INTERVAL: Duration = Duration::from_millis(1);

/// Engine of the process, and its connections.
struct Device {
    engine: Engine,
    connections: Manager,
}

impl Device {
    fn poll(&mut self, now_ns: u64) {
        self.engine.poll(now_ns);
        self.connections.poll(now_ns, &mut self.engine);
    }

    fn next_deadline_ns(&self) -> Option<u64> {
        let deadlines = [self.engine.next_deadline_ns(), self.connections.next_deadline_ns()];
        deadlines.into_iter().flatten().min()
    }

    /// Handles deadlines that have passed.
    fn expire(&mut self, now_ns: u64) {
        if self.next_deadline_ns().is_some_and(|deadline_ns| deadline_ns <= now_ns) {
            self.engine.expire(now_ns);
            self.connections.expire(now_ns, &mut self.engine);
        }
    }
}

struct Process {
    /// Number of the system.
    id: u32,
    device: Mutex<Device>,
    changed: Condvar,
    start: Instant,
    has_thread: AtomicBool,
    /// Time at which the thread that repeats sends wakes by itself. Written and read under the lock of the engine.
    wakes_ns: AtomicU64,
    /// Queue pairs of other processes may be reached.
    is_on_fabric: bool,
    /// Time of the last poll of the program.
    polled_ns: AtomicU64,
    /// Time at which the program got a completion, if it has made no call since; else 0.
    left_ns: AtomicU64,
    /// Time until which the program is expected to be away after its completions.
    habit_until_ns: AtomicU64,
}

impl Process {
    fn new(transport: Box<dyn Transport>, is_on_fabric: bool) -> Self {
        Self {
            id: std::process::id(),
            device: Mutex::new(Device {
                engine: Engine::new(transport, seed()),
                connections: Manager::new(seed()),
            }),
            changed: Condvar::new(),
            start: Instant::now(),
            has_thread: AtomicBool::new(false),
            wakes_ns: AtomicU64::new(0),
            is_on_fabric,
            polled_ns: AtomicU64::new(0),
            left_ns: AtomicU64::new(0),
            habit_until_ns: AtomicU64::new(0),
        }
    }

    fn device(&self) -> MutexGuard<'_, Device> {
        self.device.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Notes that the program makes a call.
    fn note_call(&self, now_ns: u64) {
        if self.left_ns.load(Ordering::Relaxed) == 0 {
            return;
        }
        let left_ns = self.left_ns.swap(0, Ordering::Relaxed);
        if left_ns > 0 && now_ns.saturating_sub(left_ns) > AWAY_NS {
            self.habit_until_ns.store(now_ns + HABIT_NS, Ordering::Relaxed);
        }
    }

    /// Repeats sends at their deadlines, for ever.
    fn run(&self) {
        let mut device = self.device();
        loop {
            let now_ns = self.now_ns();
            device.expire(now_ns);
            let deadline_ns = device.next_deadline_ns();
            self.wakes_ns.store(deadline_ns.unwrap_or(u64::MAX), Ordering::Relaxed);
            device = match deadline_ns {
                None => self.changed.wait(device).unwrap_or_else(PoisonError::into_inner),
                Some(deadline_ns) => {
                    let wait = Duration::from_nanos(deadline_ns.saturating_sub(now_ns));
                    self.changed.wait_timeout(device, wait).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// Serves peers while the program does not poll, for ever.
    fn serve(&self, waiter: &Waiter) {
        let mut interval = SHORT_INTERVAL;
        loop {
            let idle_ns = self.now_ns().saturating_sub(self.polled_ns.load(Ordering::Relaxed));
            if idle_ns < POLLED_NS {
                std::thread::sleep(Duration::from_nanos(POLLED_NS));
                continue;
            }
            waiter(interval);
            let mut device = self.device();
            let now_ns = self.now_ns();
            device.poll(now_ns);
            device.expire(now_ns);
            interval = if device.engine.is_pressing() { SHORT_INTERVAL } else { SERVE_INTERVAL };
        }
    }
}

/// Returns a random number.
fn seed() -> u64 {
    RandomState::new().build_hasher().finish()
}

static PROCESS: OnceLock<Process> = OnceLock::new();

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

/// Makes the process an endpoint of its rack, unless it is one.
///
/// # Errors
/// `ENODEV` if there is no such rack or seat, or no place behind it. A line on standard error has the reason.
pub(super) fn open() -> Result<(), Errno> {
    static OPENING: Mutex<()> = Mutex::new(());
    let _opening = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
    if PROCESS.get().is_some() {
        return Ok(());
    }
    let variable = |name| std::env::var(name).ok().filter(|value: &String| !value.is_empty());
    let (Some(rack), Some(seat)) = (variable(RACK_VARIABLE), variable(SEAT_VARIABLE)) else {
        process();
        return Ok(());
    };
    let transport = attach(&rack, &seat).map_err(|reason| {
        eprintln!("rackloom: no device on seat {seat} of rack {rack}: {reason}");
        Errno::NODEV
    })?;
    let process = PROCESS.get_or_init(|| Process::new(Box::new(transport), true));
    let Some(waiter) = process.device().engine.waiter() else { return Ok(()) };
    // SAFETY: needed for programs that end without closing the device. The library is never unloaded, because it has threads.
    unsafe { libc::atexit(flush_at_exit) };
    start("rackloom-serve", move || process.serve(&waiter)).map_err(|_| Errno::AGAIN)
}

/// Takes the process seats of one process behind the seat, one per port.
fn attach(rack: &str, seat: &str) -> Result<Ports, rackloom::fabric::Error> {
    let nodes = Node::join_process_ports(rack, seat)?;
    let count = nodes.len();
    let port = |(node, place): (Node, usize)| {
        let of_port =
            |seats: Vec<_>| seats.into_iter().skip(place).step_by(count).take(PROCESSES_MAX).collect();
        let processes = node.process_seats().into_iter().map(of_port).collect();
        FabricTransport::new(node, Directory::new(processes), u8::try_from(place + 1).unwrap_or(u8::MAX))
    };
    nodes.into_iter().zip(0..).map(port).collect::<Result<_, _>>().map(Ports::new)
}

/// Waits until peers have the replies of this process, before it closes the device or ends: a program sees that a message has arrived before
/// its sender does.
pub(super) fn flush() {
    let Some(process) = PROCESS.get().filter(|process| process.is_on_fabric) else { return };
    if process.id != std::process::id() {
        // A child has no endpoint, and none of the threads that may have held the lock.
        return;
    }
    let deadline = Instant::now() + FLUSH_TIMEOUT;
    let mut waiter = None;
    while Instant::now() < deadline {
        // A signal handler may end a program that holds the lock.
        if let Ok(mut device) = process.device.try_lock() {
            device.poll(process.now_ns());
            if device.engine.is_flushed() {
                return;
            }
            waiter = waiter.or_else(|| device.engine.waiter());
        }
        match &waiter {
            Some(waiter) => waiter(SHORT_INTERVAL),
            None => std::thread::sleep(SHORT_INTERVAL),
        }
    }
}

extern "C" fn flush_at_exit() {
    nothing(|| {
        flush();
        Ok(())
    });
}

fn process() -> &'static Process {
    PROCESS.get_or_init(|| Process::new(Box::new(Loopback::new(node().unwrap_or(0))), false))
}

/// Calls the engine with the time in nanoseconds.
pub(super) fn with<R>(call: impl FnOnce(&mut Engine, u64) -> R) -> R {
    with_device(|device, now_ns| call(&mut device.engine, now_ns))
}

/// Calls the connections of the process, with the engine and the time in nanoseconds.
pub(super) fn with_connections<R>(call: impl FnOnce(&mut Manager, &mut Engine, u64) -> R) -> R {
    with_device(|device, now_ns| call(&mut device.connections, &mut device.engine, now_ns))
}

fn with_device<R>(call: impl FnOnce(&mut Device, u64) -> R) -> R {
    let process = process();
    let now_ns = process.now_ns();
    process.note_call(now_ns);
    let mut device = process.device();
    let result = call(&mut device, now_ns);
    if let Some(deadline_ns) = device.next_deadline_ns() {
        if !process.has_thread.swap(true, Ordering::Relaxed)
            && start("rackloom-verbs", || process.run()).is_err()
        {
            // The next call tries again.
            process.has_thread.store(false, Ordering::Relaxed);
        }
        // A deadline that follows the one that the thread waits for needs no wake-up, which would cost as much as the call.
        if deadline_ns < process.wakes_ns.load(Ordering::Relaxed) {
            process.changed.notify_one();
        }
    }
    result
}

/// Advances requests from and to other processes, for a program that polls and finds nothing. Returns false if that brings nothing.
///
/// A program that polls in a loop occupies a processor that the agents of the rack may need, so the calling thread yields to them first.
pub(super) fn advance() -> bool {
    let Some(process) = PROCESS.get().filter(|process| process.is_on_fabric) else { return false };
    rustix::thread::sched_yield();
    let now_ns = process.now_ns();
    process.polled_ns.store(now_ns, Ordering::Relaxed);
    process.note_call(now_ns);
    // Another thread is at it.
    let Ok(mut device) = process.device.try_lock() else { return false };
    device.poll(now_ns);
    device.expire(now_ns);
    true
}

/// Notes that the program gets completions. A program that was away after the last ones is so again: it does not poll while it waits for data of
/// a peer in its memory, and the fabric would leave the node to its polls.
pub(super) fn note_completions() {
    let Some(process) = PROCESS.get().filter(|process| process.is_on_fabric) else { return };
    let now_ns = process.now_ns();
    process.note_call(now_ns);
    process.left_ns.store(now_ns.max(1), Ordering::Relaxed);
    if now_ns < process.habit_until_ns.load(Ordering::Relaxed)
        && let Ok(mut device) = process.device.try_lock()
    {
        device.engine.hand_over();
    }
}

/// Starts a thread. It takes no signals: they are for the threads of the program.
fn start(name: &str, body: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    // SAFETY: needed to block signals in the new thread, which inherits the mask. Both sets are variables of this function, and the mask
    // of this thread is set back.
    unsafe {
        let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let thread = std::thread::Builder::new().name(name.into()).spawn(body);
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
