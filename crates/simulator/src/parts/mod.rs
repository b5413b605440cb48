//! A rack in parts, on several threads.
//!
//! Each part has some of the members (`partition.rs`), with a queue, frames and memories of its own. A frame reaches its
//! receiver no earlier than the delay of the shortest link after it has left. So all parts handle the same window of time, which
//! is no longer than that delay, and only then exchange the frames that have left for members of other parts.
//!
//! Results do not depend on the number of parts. Each member sees the same frames at the same times in the same order, as with
//! members that run ahead of each other on one thread (`rack/ahead.rs`). The hash of a run is a sum over records that name their
//! channel or member (`trace.rs`), and events are merged in the order of time and member. `tests/threads.rs` compares racks.
//!
//! A window has two steps. First, members with unfinished jobs run. Then the end of the window is known: the end of the last job,
//! if all are over. Up to that end the other members run. A part with an unfinished job knows that end without the other parts.
//!
//! The first thread coordinates. It computes a window with little work alone, one part after the other, while the other threads sleep.
//! A window with much work is shared: each thread takes one part after the other until none is left. There are more parts than
//! threads, because parts have unequal work. The threads meet at the begin, between the steps if the jobs of a part are over, and
//! at the end. The number of events of the latest windows decides (`load.rs`), which repeats from run to run.
//!
//! Racks that need all events in one order have one part ([`objection`]).

mod load;
mod meeting;
mod part;
mod partition;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rackloom_jobs::Job;
use rackloom_jobs::recorder::Recording;
use rackloom_plan::Plan;
use rackloom_protocol::forwarding::waits::Wait;
use rackloom_protocol::route::graph::SharedGraph;
use rackloom_protocol::{Instant, NodeId};

use self::load::Load;
use self::meeting::Meeting;
use self::part::{Ending, Part, PartEnd, Standing};
use crate::fabric::Elsewhere;
use crate::frames::Parcel;
use crate::rack::Simulation;
use crate::results::RunResults;
use crate::watchdog::{StallCause, Stalled, Waiting};

/// Average number of events from which on threads share a window. Fewer events take less time than it takes to wake a thread.
const SHARED_EVENTS_MIN: u64 = 512;

/// Threads of a run.
#[derive(Clone, Copy, Debug)]
pub struct Threads {
    /// Number of threads. More threads than processors have no use.
    pub count: usize,
    /// Average number of events of a window from which on the threads share it. The results do not depend on it.
    pub shared_events_min: u64,
}

impl From<usize> for Threads {
    fn from(count: usize) -> Self {
        Self { count, shared_events_min: SHARED_EVENTS_MIN }
    }
}

/// Largest number of threads.
pub const THREADS_MAX: usize = 64;

/// Parts for each of several threads, so that parts with unequal work share the threads evenly: the part with the switch of a star may have
/// more work than all others. In stars of 1024, eight were as fast as four or faster, and faster than two.
const PARTS_PER_THREAD: usize = 8;

/// Largest number of parts. Their numbers are bytes.
pub const PARTS_MAX: usize = 256;

/// Returns the reason for which a rack must be computed by one thread, if there is one.
#[must_use]
pub fn objection(plan: &Plan) -> Option<&'static str> {
    let links = || plan.links.iter().map(|link| &link.profile);
    if plan.has_memory_peers() {
        Some("nodes of one server share memory, so their operations affect each other at once")
    } else if links().any(|profile| profile.reorder > 0.0) {
        Some("frames of a link that reorders them wait for others")
    } else if links().any(|profile| profile.latency_ps() < 1_000) {
        Some("a link is shorter than a nanosecond, so that its ends affect each other at once")
    } else {
        None
    }
}

/// Runs a rack on several threads until the job of every endpoint is over. `jobs`: one for each endpoint. `look` is called
/// with the number of a part and its members, after each `every` events of the part and at the end.
///
/// Returns the results, and the reason if the run has stalled.
///
/// # Panics
/// If there is an [`objection`], or if the number of jobs is not that of the endpoints. Both are errors of the caller.
pub fn run(
    plan: &Plan,
    seed: u64,
    jobs: Vec<Box<dyn Job>>,
    threads: impl Into<Threads>,
    recording: &Recording,
    every: u64,
    look: &(impl Fn(usize, &Simulation) + Sync),
) -> (RunResults, Option<Stalled>) {
    assert_eq!(objection(plan), None, "a rack for one thread");
    let graph = SharedGraph::from(plan.graph());
    let counts = [graph.endpoint_count(), graph.participant_count()];
    assert!(counts.contains(&jobs.len()), "one job for each member with a part of it");
    let Threads { count, shared_events_min } = threads.into();
    let members = graph.members.len();
    let workers = count.clamp(1, THREADS_MAX.min(members));
    let count = if workers == 1 { 1 } else { (workers * PARTS_PER_THREAD).min(PARTS_MAX.min(members)) };
    let of_member: Arc<[u8]> = partition::partition(&graph, count).into();
    let mut shares: Vec<_> = (0..count).map(|_| Vec::new()).collect();
    for (node, job) in (0..).map(NodeId).zip(jobs) {
        shares[usize::from(of_member[node.index()])].push((node, job));
    }
    let parts = std::thread::scope(|scope| {
        let build = |(own, jobs): (usize, Vec<_>)| {
            let (graph, of_member) = (&graph, &of_member);
            scope.spawn(move || {
                let is_here = |node: NodeId| usize::from(of_member[node.index()]) == own;
                let mut simulation = Simulation::with_members(plan, seed, graph, jobs, is_here);
                simulation.record_series(recording);
                simulation.set_elsewhere(Elsewhere {
                    own,
                    of_member: Arc::clone(of_member),
                    parcels: (0..count).map(|_| Parcel::default()).collect(),
                });
                Part::new(own, simulation, count, every)
            })
        };
        let building: Vec<_> = shares.into_iter().enumerate().map(build).collect();
        building.into_iter().map(|thread| joined(thread.join())).collect()
    });
    let division = Division::new(parts, workers);
    let (cause, windows_shared) = std::thread::scope(|scope| {
        let division = &division;
        let work = |thread| scope.spawn(move || division.work(thread, look));
        let others: Vec<_> = (1..workers).map(work).collect();
        let ended = division.coordinate(Load::new(shared_events_min), look);
        others.into_iter().for_each(|worker| joined(worker.join()));
        ended
    });
    let mut parts = division.into_ends(cause.is_some(), look);
    let stalled = cause.map(|cause| stalled(plan, cause, &mut parts));
    let mut results = RunResults::join(parts.into_iter().map(|part| part.results).collect());
    results.windows_shared = windows_shared;
    (results, stalled)
}

/// Returns the value of a thread, or continues its panic.
fn joined<T>(ended: std::thread::Result<T>) -> T {
    ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Joins what the members of all threads wait for.
fn stalled(plan: &Plan, cause: StallCause, parts: &mut [PartEnd]) -> Stalled {
    let at = parts.iter().map(|part| part.results.now).max().unwrap_or(Instant::ZERO);
    let (mut waiting, mut waits) = (Vec::new(), Vec::new());
    for part in parts {
        waiting.append(&mut part.waiting);
        waits.append(&mut part.waits);
    }
    waiting.sort_by_key(|one: &Waiting| one.node);
    waits.sort_by_key(|one: &Wait| one.member);
    let name = |node: NodeId| plan.members.get(node.index()).map_or("?", |member| member.name.as_str());
    Stalled::new(at, cause, waiting, &waits, name)
}

/// All parts, and the meetings of the threads that compute them.
struct Division {
    parts: Vec<Mutex<Part>>,
    /// Next part that a thread takes in a shared window. The first thread resets it before the window.
    next: AtomicUsize,
    /// The first thread brings the end of a window for all threads, or `None` at the end of the run.
    orders: Meeting<Option<Instant>>,
    /// Each thread brings the state of the parts that it has begun, if it has.
    between: Meeting<Option<Ending>>,
    done: Meeting<()>,
}

/// Ends the meetings when a thread ends or panics, so that the others end as well.
struct Guard<'d>(&'d Division);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.0.orders.abandon();
        if std::thread::panicking() {
            self.0.between.abandon();
            self.0.done.abandon();
        }
    }
}

impl Division {
    fn new(parts: Vec<Part>, threads: usize) -> Self {
        Self {
            parts: parts.into_iter().map(Mutex::new).collect(),
            next: AtomicUsize::new(0),
            orders: Meeting::new(threads),
            between: Meeting::new(threads),
            done: Meeting::new(threads),
        }
    }

    fn part(&self, number: usize) -> MutexGuard<'_, Part> {
        self.parts[number].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn all(&self) -> Vec<MutexGuard<'_, Part>> {
        (0..self.parts.len()).map(|number| self.part(number)).collect()
    }

    /// Handles windows until the run is over. Returns the cause if it has stalled, and the number of windows that the threads shared.
    fn coordinate(&self, mut load: Load, look: &impl Fn(usize, &Simulation)) -> (Option<StallCause>, u64) {
        let _guard = Guard(self);
        let mut windows_shared = 0;
        let mut parts = self.all();
        loop {
            let is_shared = parts.len() > 1 && load.is_worth_sharing();
            exchange(&mut parts, is_shared);
            let Some(standing) = parts.iter_mut().map(|part| part.standing()).reduce(Standing::join) else {
                return (None, windows_shared);
            };
            if standing.cause.is_some() || standing.awaited == 0 {
                return (standing.cause, windows_shared);
            }
            parts.iter_mut().for_each(|part| part.simulation.adopt(standing.marks));
            let until = match parts[0].simulation.window_end(standing.next_at) {
                Ok(until) => until,
                Err(cause) => return (Some(cause), windows_shared),
            };
            if is_shared {
                drop(parts);
                self.next.store(0, Ordering::Relaxed);
                windows_shared += 1;
                // `None`: another thread has panicked, and the results are not used.
                if self.orders.meet(0, Some(until)).is_none() || !self.run_shared(0, until, look) {
                    return (None, windows_shared);
                }
                parts = self.all();
            } else {
                run_alone(&mut parts, until, look);
            }
            load.add(parts.iter_mut().map(|part| part.take_handled()).sum());
        }
    }

    /// Computes parts in all shared windows.
    fn work(&self, thread: usize, look: &impl Fn(usize, &Simulation)) {
        let _guard = Guard(self);
        while let Some(until) = self.orders.meet(thread, None).and_then(|orders| orders[0]) {
            if !self.run_shared(thread, until, look) {
                return;
            }
        }
    }

    /// Computes parts in one shared window until none is left. Returns false if another thread has panicked.
    fn run_shared(&self, thread: usize, until: Instant, look: &impl Fn(usize, &Simulation)) -> bool {
        let mut begun = None;
        let mut waiting = Vec::new();
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.parts.len() {
                break;
            }
            let mut part = self.part(number);
            let ending = part.begin(until);
            begun = Some(begun.map_or(ending, |begun: Ending| begun.join(ending)));
            if ending.ends() {
                waiting.push(part);
            } else {
                part.finish(until);
                part.look_if_due(look);
            }
        }
        if waiting.is_empty() {
            self.between.bring(thread, begun);
        } else {
            let Some(endings) = self.between.meet(thread, begun) else { return false };
            let end = Ending::end_of(endings.into_iter().flatten(), until);
            for mut part in waiting {
                part.finish(end);
                part.look_if_due(look);
            }
        }
        self.done.meet(thread, ()).is_some()
    }

    fn into_ends(self, has_stalled: bool, look: &impl Fn(usize, &Simulation)) -> Vec<PartEnd> {
        let parts =
            self.parts.into_iter().map(|part| part.into_inner().unwrap_or_else(PoisonError::into_inner));
        parts.map(|part| part.into_end(has_stalled, look)).collect()
    }
}

/// Moves frames to the parts of their receivers. With `is_shared`, each part takes them in when its thread computes it.
fn exchange(parts: &mut [MutexGuard<'_, Part>], is_shared: bool) {
    for from in 0..parts.len() {
        if !parts[from].may_have_sent() {
            continue;
        }
        for to in (0..parts.len()).filter(|to| *to != from) {
            let Some(mut parcel) = parts[from].take_parcel(to) else { continue };
            parts[to].accept(from, &mut parcel, is_shared);
            parts[from].simulation.parcels()[to] = parcel;
        }
    }
}

/// Computes a window of all parts on this thread.
fn run_alone(parts: &mut [MutexGuard<'_, Part>], until: Instant, look: &impl Fn(usize, &Simulation)) {
    let is_due = |part: &mut MutexGuard<'_, Part>| part.next_at() < until;
    let due: Vec<usize> = (0..parts.len()).filter(|number| is_due(&mut parts[*number])).collect();
    for number in &due {
        parts[*number].begin(until);
    }
    let end = Ending::end_of(parts.iter().map(|part| part.ending()), until);
    for number in due {
        parts[number].finish(end);
        parts[number].look_if_due(look);
    }
}
