//! A rack on several threads.
//!
//! Each thread computes some of the members (`partition.rs`), with a queue, frames and memories of its own. A frame reaches its
//! receiver no earlier than the delay of the shortest link after it has left. So all threads handle the same window of time, which
//! is no longer than that delay, and only then exchange the frames that have left for members on other threads.
//!
//! Results do not depend on the number of threads. Each member sees the same frames at the same times in the same order, as with
//! members that run ahead of each other on one thread (`rack/ahead.rs`). The hash of a run is a sum over records that name their
//! channel or member (`trace.rs`), and events are merged in the order of time and member. `tests/threads.rs` compares racks.
//!
//! Two meetings belong to a window. At the first one the threads agree on its begin. Then members with unfinished jobs run. At
//! the second one the threads agree on its end: the end of the last job, if all are over. Then the other members run.
//!
//! Racks that need all events in one order have one thread ([`objection`]).

mod meeting;
mod partition;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rackloom_jobs::Job;
use rackloom_jobs::recorder::Recording;
use rackloom_plan::Plan;
use rackloom_protocol::forwarding::waits::Wait;
use rackloom_protocol::route::graph::SharedGraph;
use rackloom_protocol::{Instant, NodeId};

use self::meeting::Meeting;
use crate::fabric::Elsewhere;
use crate::frames::Parcel;
use crate::rack::Simulation;
use crate::results::{PartResults, RunResults};
use crate::watchdog::{Marks, StallCause, Stalled, Waiting};

/// Largest number of threads.
pub const THREADS_MAX: usize = 64;

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
/// with the number of a thread and its members, after each `every` events of the thread and at the end.
///
/// Returns the results, and the reason if the run has stalled.
///
/// # Panics
/// If there is an [`objection`], or if the number of jobs is not that of the endpoints. Both are errors of the caller.
pub fn run(
    plan: &Plan,
    seed: u64,
    jobs: Vec<Box<dyn Job>>,
    threads: usize,
    recording: &Recording,
    every: u64,
    look: &(impl Fn(usize, &Simulation) + Sync),
) -> (RunResults, Option<Stalled>) {
    assert_eq!(objection(plan), None, "a rack for one thread");
    let graph = SharedGraph::from(plan.graph());
    let counts = [graph.endpoint_count(), graph.participant_count()];
    assert!(counts.contains(&jobs.len()), "one job for each member with a part of it");
    let threads = threads.clamp(1, THREADS_MAX.min(graph.members.len()));
    let of_member: Arc<[u8]> = partition::partition(&graph, threads).into();
    let mut shares: Vec<_> = (0..threads).map(|_| Vec::new()).collect();
    for (node, job) in (0..).map(NodeId).zip(jobs) {
        shares[usize::from(of_member[node.index()])].push((node, job));
    }
    let shared = Shared::new(threads);
    let ended = std::thread::scope(|scope| {
        let start = |(own, jobs): (usize, Vec<_>)| {
            let (shared, graph, of_member) = (&shared, &graph, &of_member);
            scope.spawn(move || {
                let _guard = Guard(shared);
                let is_here = |node: NodeId| usize::from(of_member[node.index()]) == own;
                let mut simulation = Simulation::with_members(plan, seed, graph, jobs, is_here);
                simulation.record_series(recording);
                simulation.set_elsewhere(Elsewhere {
                    own,
                    threads: Arc::clone(of_member),
                    parcels: (0..threads).map(|_| Parcel::default()).collect(),
                });
                Part { own, simulation, shared, every, next_look: every }.run(look)
            })
        };
        let running: Vec<_> = shares.into_iter().enumerate().map(start).collect();
        running.into_iter().map(|thread| thread.join()).collect::<Vec<_>>()
    });
    let mut parts = Vec::new();
    for part in ended {
        parts.push(part.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
    }
    let stalled = stalled(plan, &mut parts);
    (RunResults::join(parts.into_iter().map(|part| part.results).collect()), stalled)
}

/// Joins what the members of all threads wait for, if the run has stalled.
fn stalled(plan: &Plan, parts: &mut [PartEnd]) -> Option<Stalled> {
    let cause = parts.iter().find_map(|part| part.cause)?;
    let at = parts.iter().map(|part| part.results.now).max().unwrap_or(Instant::ZERO);
    let (mut waiting, mut waits) = (Vec::new(), Vec::new());
    for part in parts {
        waiting.append(&mut part.waiting);
        waits.append(&mut part.waits);
    }
    waiting.sort_by_key(|one: &Waiting| one.node);
    waits.sort_by_key(|one: &Wait| one.member);
    let name = |node: NodeId| plan.members.get(node.index()).map_or("?", |member| member.name.as_str());
    Some(Stalled::new(at, cause, waiting, &waits, name))
}

/// Meetings and parcels of all threads.
struct Shared {
    begin: Meeting<Standing>,
    end: Meeting<Ending>,
    /// Parcels by sending thread, then by receiving thread.
    parcels: Vec<Vec<Mutex<Parcel>>>,
}

impl Shared {
    fn new(threads: usize) -> Self {
        let row = || (0..threads).map(|_| Mutex::default()).collect();
        Self {
            begin: Meeting::new(threads),
            end: Meeting::new(threads),
            parcels: (0..threads).map(|_| row()).collect(),
        }
    }

    fn parcel(&self, from: usize, to: usize) -> MutexGuard<'_, Parcel> {
        self.parcels[from][to].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the meetings when a thread panics, so that the others end as well.
struct Guard<'s>(&'s Shared);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.begin.abandon();
            self.0.end.abandon();
        }
    }
}

/// State of a thread before a window.
#[derive(Clone, Copy, Debug)]
struct Standing {
    /// Time of its next event, and of the first frame that it has sent to another thread.
    next_at: Instant,
    /// Living endpoints whose job is not over.
    awaited: usize,
    marks: Marks,
    cause: Option<StallCause>,
}

/// State of a thread after its members with unfinished jobs have run.
#[derive(Clone, Copy, Debug)]
struct Ending {
    /// True if none of its jobs is unfinished.
    ends: bool,
    /// Moment after the last poll of one of its members.
    after: Instant,
}

/// Members of one thread.
struct Part<'s> {
    own: usize,
    simulation: Simulation,
    shared: &'s Shared,
    every: u64,
    next_look: u64,
}

/// Results of one thread.
struct PartEnd {
    results: PartResults,
    cause: Option<StallCause>,
    waiting: Vec<Waiting>,
    waits: Vec<Wait>,
}

impl Part<'_> {
    fn run(mut self, look: &impl Fn(usize, &Simulation)) -> PartEnd {
        let mut cause = None;
        // `None`: another thread has panicked, and the results are not used.
        while let Some(standing) = self.meet(cause) {
            cause = standing.cause;
            if cause.is_some() || standing.awaited == 0 {
                break;
            }
            cause = self.run_window(&standing).err();
            self.look_if_due(look);
        }
        self.simulation.settle();
        look(self.own, &self.simulation);
        let (waiting, waits) = match cause {
            Some(_) => (self.simulation.waiting(), self.simulation.waits()),
            None => (Vec::new(), Vec::new()),
        };
        PartEnd { results: self.simulation.take_part(), cause, waiting, waits }
    }

    /// Exchanges frames and state with the other threads. Returns the state of all.
    fn meet(&mut self, cause: Option<StallCause>) -> Option<Standing> {
        let mut next_at = self.simulation.next_at();
        for (to, parcel) in self.simulation.parcels().iter_mut().enumerate().filter(|(to, _)| *to != self.own)
        {
            next_at = next_at.min(parcel.first_arrival());
            std::mem::swap(parcel, &mut *self.shared.parcel(self.own, to));
        }
        let own =
            Standing { next_at, awaited: self.simulation.awaited(), marks: self.simulation.marks(), cause };
        let all = self.shared.begin.meet(self.own, own)?;
        for from in (0..all.len()).filter(|from| *from != self.own) {
            self.simulation.receive(&mut self.shared.parcel(from, self.own));
        }
        let joined = all.into_iter().reduce(Standing::join)?;
        self.simulation.adopt(joined.marks);
        Some(joined)
    }

    /// Handles one window of time.
    fn run_window(&mut self, standing: &Standing) -> Result<(), StallCause> {
        let until = self.simulation.window_end(standing.next_at)?;
        self.simulation.begin_window(until);
        let ends = self.simulation.run_awaited(until).map_err(|stalled| stalled.cause);
        let own = Ending { ends: matches!(ends, Ok(true)), after: self.simulation.after_latest() };
        let end = self.shared.end.meet(self.own, own).map_or(until, |all| {
            let last = all.iter().map(|ending| ending.after).max().unwrap_or(until);
            if all.iter().all(|ending| ending.ends) { last } else { until }
        });
        let result = ends.and_then(|_| self.simulation.run_concerned(end).map_err(|stalled| stalled.cause));
        self.simulation.end_window();
        result
    }

    fn look_if_due(&mut self, look: &impl Fn(usize, &Simulation)) {
        let handled = self.simulation.events_handled();
        if handled >= self.next_look {
            self.next_look = handled.saturating_add(self.every);
            self.simulation.settle();
            look(self.own, &self.simulation);
        }
    }
}

impl Standing {
    fn join(self, other: Self) -> Self {
        Self {
            next_at: self.next_at.min(other.next_at),
            awaited: self.awaited + other.awaited,
            marks: self.marks.later(other.marks),
            cause: self.cause.or(other.cause),
        }
    }
}
