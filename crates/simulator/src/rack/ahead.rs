//! One member after the other, each as far as no other member can affect it.
//!
//! A frame that leaves a member reaches no other one before the shortest link's delay is over. So within that time
//! each member may have all of its polls in a row, while its data is in cache, instead of one poll of each member in
//! every moment. A member sees the same frames at the same times in the same order, so nothing else changes; the hash
//! of a run and the list of events do not depend on the order in which members are computed (`trace.rs`), and
//! `tests/ahead.rs` checks that both orders have the same outcome.
//!
//! A run ends with the moment in which the last job does, and no member may get beyond that. So members with
//! unfinished jobs go first and stop where their job is over. Usually one of them is not finished when the time is
//! over, and then all may continue to its end.
//!
//! If an observer must see all members' moments in order (a fault script, a ledger, a capture), they run together.

use rackloom_protocol::{Instant, NodeId};

use super::Simulation;
use crate::queue::{QueuedEvent, Scheduled};
use crate::seat::Due;
use crate::watchdog::Stalled;

/// Longest time that a member runs ahead, also on longer links: the events that it schedules for itself must stay few.
const AHEAD_NS_MAX: u64 = 2_048;
/// Number of arrivals of a member whose frames are loaded together.
const LOADED_TOGETHER: usize = 16;

impl Simulation {
    /// Makes all members run together in every moment, as with an observer. Call it before the run.
    pub fn run_in_step(&mut self) {
        self.ahead.is_forbidden = true;
    }

    /// Returns the time until which members may run by themselves from `at` on, and not beyond `end`; `at` itself if they may not.
    pub(crate) fn ahead_until(&self, at: Instant, end: Instant) -> Instant {
        if self.ahead.is_forbidden || self.script.is_some() || self.is_watched {
            return at;
        }
        let next_action = self.actions_at.peek().map_or(Instant::NEVER, |next| next.0);
        let until = at + self.fabric.lookahead_ns().min(AHEAD_NS_MAX);
        let until = until.min(end).min(next_action);
        if until.since(at) > 1 { until } else { at }
    }

    /// Handles all events before `until`. `stops`: unless the last job is over earlier.
    pub(super) fn run_ahead(&mut self, until: Instant, stops: bool) -> Result<(), Stalled> {
        self.begin_window(until);
        let ends = if stops { self.run_awaited(until) } else { Ok(false) };
        let end = ends.map(|ends| if ends { self.after_latest() } else { until });
        let result = end.and_then(|end| self.run_concerned(end));
        self.end_window();
        result
    }

    /// Begins a window of time in which each member runs by itself: collects the events before `until`.
    pub(crate) fn begin_window(&mut self, until: Instant) {
        self.collect_ahead(until);
        self.ahead.is_running = true;
        self.fabric.queue.run_ahead(until);
    }

    /// Ends a window. Events that are left are put back.
    pub(crate) fn end_window(&mut self) {
        self.fabric.queue.run_together();
        self.now = self.ahead.latest;
        self.ahead.is_running = false;
        self.put_back();
        self.record_in_order();
        self.trim_if_due();
    }

    /// Returns the moment after the last one in which a member was polled.
    pub(crate) fn after_latest(&self) -> Instant {
        Instant(self.ahead.latest.0 + 1)
    }

    /// Removes events that are due before `until` from the queue.
    fn collect_ahead(&mut self, until: Instant) {
        let last = Instant(until.0 - 1);
        while let Some(next) = self.fabric.queue.pop_due(last) {
            let member = match next.what {
                QueuedEvent::Arrival(_, member) | QueuedEvent::Timer(member) | QueuedEvent::Wake(member) => {
                    member
                }
                QueuedEvent::Opening(channel) => self.fabric.channel(channel).sender,
                QueuedEvent::HoldOver(_) | QueuedEvent::Action(_) => {
                    unreachable!("members run together where there is such a thing")
                }
            };
            self.ahead.add(member, next);
        }
    }

    /// Runs the members of a window up to `end`.
    pub(crate) fn run_concerned(&mut self, end: Instant) -> Result<(), Stalled> {
        let concerned = std::mem::take(&mut self.ahead.concerned);
        let result = concerned.iter().try_for_each(|member| self.run_member(*member, end, false));
        self.ahead.concerned = concerned;
        result
    }

    /// Runs members with unfinished jobs, each until its job is over. Returns true if all finished before `until`; if
    /// not, some have not been run.
    pub(crate) fn run_awaited(&mut self, until: Instant) -> Result<bool, Stalled> {
        let concerned = std::mem::take(&mut self.ahead.concerned);
        let result = self.run_awaited_of(&concerned, until);
        self.ahead.concerned = concerned;
        result
    }

    fn run_awaited_of(&mut self, concerned: &[NodeId], until: Instant) -> Result<bool, Stalled> {
        let is_awaited = |member: &&NodeId| self.seats[**member].is_awaited();
        if concerned.iter().filter(is_awaited).count() < self.awaited {
            return Ok(false);
        }
        for member in concerned {
            if self.seats[*member].is_awaited() {
                self.run_member(*member, until, true)?;
                if self.seats[*member].is_awaited() {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Polls a member for all its events before `until`; if it `stops`, up to the one in which its job ends.
    fn run_member(&mut self, member: NodeId, until: Instant, stops: bool) -> Result<(), Stalled> {
        self.go_on(member);
        let mut due = std::mem::take(&mut self.due);
        let awaited = self.awaited;
        let mut done = Ok(());
        self.loaded = 0;
        while done.is_ok() && !(stops && self.awaited < awaited) {
            let at = self.ahead.next_at(member).min(self.fabric.queue.next_own_at());
            if at >= until {
                break;
            }
            self.now = at;
            self.ahead.latest = self.ahead.latest.max(at);
            self.collect_member(member, at, &mut due);
            due.sort_unstable_by_key(Due::order);
            self.poll_member(&due);
            due.clear();
            let events_handled = self.statistics.events_handled;
            done = self.watchdog.check_engine(at, events_handled).map_err(|cause| self.stalled(cause));
        }
        self.due = due;
        let rest: Vec<_> = std::iter::from_fn(|| self.fabric.queue.pop_own()).collect();
        if !rest.is_empty() {
            self.ahead.stopped.entry(member).or_default().extend(rest);
        }
        done
    }

    /// Continues a stopped member with the events that it had scheduled for itself.
    fn go_on(&mut self, member: NodeId) {
        let stopped = self.ahead.stopped.remove(&member).unwrap_or_default();
        stopped.into_iter().for_each(|next| self.fabric.queue.put_back_own(next));
    }

    /// Collects a member's events that are due at `at`.
    fn collect_member(&mut self, member: NodeId, at: Instant, due: &mut Vec<Due>) {
        while self.ahead.next_at(member) == at
            && let Some(next) = self.ahead.pop(member)
        {
            self.statistics.events_handled += 1;
            if self.loaded == 0 {
                self.load_arrivals(member, next);
            }
            self.loaded -= 1;
            self.prepare(next, due);
        }
        while self.fabric.queue.next_own_at() == at
            && let Some(next) = self.fabric.queue.pop_own()
        {
            self.statistics.events_handled += 1;
            self.prepare(next, due);
        }
    }

    /// Loads the frames of a member's next arrivals into the cache. One after the other, when each arrives, the loads would wait for each other:
    /// other members have run since most of these frames were sent.
    fn load_arrivals(&mut self, member: NodeId, first: Scheduled) {
        let next = std::iter::once(&first).chain(self.ahead.next(member));
        let frame = |next: &Scheduled| match next.what {
            QueuedEvent::Arrival(frame, _) => Some(frame),
            _ => None,
        };
        self.fabric.frames.load_into_cache(next.take(LOADED_TOGETHER).filter_map(frame));
        self.loaded = LOADED_TOGETHER;
    }

    /// Puts unhandled events back into the queue, because the run is over before them.
    fn put_back(&mut self) {
        let Self { ahead, fabric, .. } = self;
        let mut concerned = std::mem::take(&mut ahead.concerned);
        let mut rest: Vec<_> = std::mem::take(&mut ahead.stopped).into_values().flatten().collect();
        for member in concerned.drain(..) {
            rest.extend(std::iter::from_fn(|| ahead.pop(member)));
        }
        ahead.concerned = concerned;
        if !rest.is_empty() {
            fabric.queue.put_back(rest);
        }
    }

    /// Records the members' events in the order of time.
    fn record_in_order(&mut self) {
        let mut events = std::mem::take(&mut self.ahead.events);
        events.sort_unstable_by_key(|(at, member, number, _)| (*at, *member, *number));
        for (at, member, _, event) in events.drain(..) {
            self.recording.add(at, member, event);
        }
        self.ahead.events = events;
    }
}
