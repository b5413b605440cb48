//! Ends a run that makes no progress, and reports which members wait for what.
//!
//! Frames are not progress: heartbeats and retransmissions continue for ever. Work is: an operation ended, a member's memory
//! was accessed for another node. But jobs can also keep each other at work for ever, polling a word that never
//! changes. So the job's own measure of progress must grow as well, within a longer limit.
//! A run also ends when no event is scheduled, when time does not advance, and when it has handled more events
//! than its limit.

use std::fmt;

use rackloom_protocol::forwarding::waits::{Wait, cycle};
use rackloom_protocol::{Instant, NodeId};
use thiserror::Error;

/// Batches of events at one moment after which time counts as not advancing. A rack of ideal links
/// (no delay, infinite rate) does much in one moment, but not this much.
const BATCHES_PER_INSTANT_MAX: u64 = 1_000_000;

/// A job may take this many times the limit for work until its next progress, as long as there is work: one large transfer
/// over a slow link is a single step of a job.
const JOB_LIMIT_FACTOR: u64 = 20;

/// Reason for which a run was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum StallCause {
    /// No operation ended and no memory was accessed.
    #[error("no progress since {} ns", since.0)]
    NoProgress {
        /// Time of the last progress.
        since: Instant,
    },
    /// Operations ended, but no job made progress.
    #[error("no job got any further since {} ns, though operations go on", since.0)]
    NoJobProgress {
        /// Time of the last progress of a job.
        since: Instant,
    },
    /// No event is scheduled, and not every job is over.
    #[error("nothing is left to happen")]
    NothingScheduled,
    /// Members react to each other without end, and time does not advance.
    #[error("time stands still")]
    TimeStandsStill,
    /// More events than the limit.
    #[error("more than {limit} events; hint: raise the limit if the run is meant to be this long")]
    TooManyEvents {
        /// Maximum number of events.
        limit: u64,
    },
}

/// Conditions that one member waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The member.
    pub node: NodeId,
    /// Name of the member in the plan.
    pub name: String,
    /// State that its job reports, if it has one that is not over.
    pub job: Option<String>,
    /// States that its endpoint reports.
    pub endpoint: Vec<String>,
}

/// Error of a run that was ended because it made no progress.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct Stalled {
    /// Virtual time at the end.
    pub at: Instant,
    /// Reason.
    pub cause: StallCause,
    /// Waiting members; those that wait for nothing are not listed.
    pub waiting: Vec<Waiting>,
    /// Members whose full buffers wait for each other, each for the next and the last for the first; empty if there is no
    /// such cycle.
    pub cycle: Vec<String>,
}

impl Stalled {
    /// Creates the error. `waits`: the waits of all members for buffers; `name` returns the name of a member.
    pub(crate) fn new<'a>(
        at: Instant,
        cause: StallCause,
        waiting: Vec<Waiting>,
        waits: &[Wait],
        name: impl Fn(NodeId) -> &'a str,
    ) -> Self {
        let line = |wait: &Wait| {
            let channel = wait.channel.map_or_else(String::new, |channel| format!(" on {channel}"));
            format!("{} frames in {} for {}{channel}", wait.frames, name(wait.member), name(wait.toward))
        };
        let cycle = cycle(waits).unwrap_or_default();
        Self { at, cause, waiting, cycle: cycle.into_iter().map(line).collect() }
    }
}

impl fmt::Display for Stalled {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "the run stalled at {} ns: {}", self.at.0, self.cause)?;
        if let Some(first) = self.cycle.first() {
            let cycle = self.cycle.join(", which wait for ");
            write!(formatter, "\n  deadlock: {cycle}, which wait for {first}")?;
        }
        for member in &self.waiting {
            if let Some(job) = &member.job {
                write!(formatter, "\n  {} job: {job}", member.name)?;
            }
            for line in &member.endpoint {
                write!(formatter, "\n  {} endpoint: {line}", member.name)?;
            }
        }
        Ok(())
    }
}

/// Times of the last progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Marks {
    work_at: Instant,
    job_at: Instant,
}

impl Marks {
    /// Returns the later ones of both.
    pub(crate) fn later(self, other: Self) -> Self {
        Self { work_at: self.work_at.max(other.work_at), job_at: self.job_at.max(other.job_at) }
    }
}

/// Checks progress, moment by moment.
#[derive(Debug)]
pub(crate) struct Watchdog {
    limit_ns: u64,
    events_max: u64,
    work_at: Instant,
    job_at: Instant,
    moment: Instant,
    batches_of_moment: u64,
}

impl Watchdog {
    pub(crate) fn new(limit_ns: u64) -> Self {
        Self {
            limit_ns,
            events_max: u64::MAX,
            work_at: Instant::ZERO,
            job_at: Instant::ZERO,
            moment: Instant::ZERO,
            batches_of_moment: 0,
        }
    }

    /// Returns the times of the last progress.
    pub(crate) const fn marks(&self) -> Marks {
        Marks { work_at: self.work_at, job_at: self.job_at }
    }

    /// Sets the times of the last progress to those of all members.
    pub(crate) const fn adopt(&mut self, marks: Marks) {
        (self.work_at, self.job_at) = (marks.work_at, marks.job_at);
    }

    pub(crate) fn limit_events(&mut self, events_max: u64) {
        self.events_max = events_max;
    }

    /// Notes that an operation ended or memory was accessed.
    pub(crate) fn work(&mut self, now: Instant) {
        self.work_at = self.work_at.max(now);
    }

    /// Notes that a job made progress.
    pub(crate) fn job_progress(&mut self, now: Instant) {
        (self.work_at, self.job_at) = (self.work_at.max(now), self.job_at.max(now));
    }

    /// Returns an error if the engine must stop; called once per batch of events.
    pub(crate) fn check_engine(&mut self, now: Instant, events_handled: u64) -> Result<(), StallCause> {
        if now != self.moment {
            self.moment = now;
            self.batches_of_moment = 0;
        }
        self.batches_of_moment += 1;
        if self.batches_of_moment > BATCHES_PER_INSTANT_MAX {
            return Err(StallCause::TimeStandsStill);
        }
        if events_handled > self.events_max {
            return Err(StallCause::TooManyEvents { limit: self.events_max });
        }
        Ok(())
    }

    /// Returns the deadline for the jobs' progress, as far as is known now; before then no check is needed.
    pub(crate) fn deadline(&self) -> Instant {
        if self.limit_ns == 0 {
            return Instant::NEVER;
        }
        let after = |at: Instant, ns: u64| Instant(at.0.saturating_add(ns).saturating_add(1));
        after(self.work_at, self.limit_ns)
            .min(after(self.job_at, self.limit_ns.saturating_mul(JOB_LIMIT_FACTOR)))
    }

    /// Returns an error if the jobs make no progress. A limit of 0 disables the check.
    pub(crate) fn check_progress(&self, now: Instant) -> Result<(), StallCause> {
        if self.limit_ns == 0 {
            return Ok(());
        }
        if now.since(self.work_at) > self.limit_ns {
            return Err(StallCause::NoProgress { since: self.work_at });
        }
        if now.since(self.job_at) > self.limit_ns.saturating_mul(JOB_LIMIT_FACTOR) {
            return Err(StallCause::NoJobProgress { since: self.job_at });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_watchdog_fires_after_the_limit_and_work_restarts_it() {
        let mut watchdog = Watchdog::new(100);
        assert_eq!(watchdog.check_progress(Instant(100)), Ok(()));
        assert_eq!(
            watchdog.check_progress(Instant(101)),
            Err(StallCause::NoProgress { since: Instant::ZERO })
        );
        watchdog.work(Instant(50));
        assert_eq!(watchdog.check_progress(Instant(150)), Ok(()));
        assert_eq!(watchdog.check_progress(Instant(151)), Err(StallCause::NoProgress { since: Instant(50) }));
    }

    #[test]
    fn work_without_job_progress_stops_after_a_longer_limit() {
        let mut watchdog = Watchdog::new(100);
        watchdog.job_progress(Instant(30));
        watchdog.work(Instant(2_030));
        assert_eq!(watchdog.check_progress(Instant(2_030)), Ok(()));
        let since = Instant(30);
        assert_eq!(watchdog.check_progress(Instant(2_031)), Err(StallCause::NoJobProgress { since }));
    }

    #[test]
    fn time_must_advance() {
        let mut watchdog = Watchdog::new(0);
        for moment in 0..3 {
            for _ in 0..BATCHES_PER_INSTANT_MAX {
                assert_eq!(watchdog.check_engine(Instant(moment), 0), Ok(()));
            }
        }
        assert_eq!(watchdog.check_engine(Instant(2), 0), Err(StallCause::TimeStandsStill));
    }

    #[test]
    fn events_are_limited() {
        let mut watchdog = Watchdog::new(0);
        watchdog.limit_events(10);
        assert_eq!(watchdog.check_engine(Instant(1), 10), Ok(()));
        assert_eq!(watchdog.check_engine(Instant(2), 11), Err(StallCause::TooManyEvents { limit: 10 }));
    }

    #[test]
    fn the_error_names_waiting_members_and_their_reasons() {
        let stalled = Stalled {
            at: Instant(9),
            cause: StallCause::NothingScheduled,
            waiting: vec![Waiting {
                node: NodeId(2),
                name: "n2".into(),
                job: Some("round 3".into()),
                endpoint: vec!["put 7 to n0".into()],
            }],
            cycle: vec!["2 frames in n2 for n0".into(), "1 frames in n0 for n2".into()],
        };
        assert_eq!(
            stalled.to_string(),
            "the run stalled at 9 ns: nothing is left to happen\n  \
             deadlock: 2 frames in n2 for n0, which wait for 1 frames in n0 for n2, which wait for 2 frames in n2 for n0\n  \
             n2 job: round 3\n  n2 endpoint: put 7 to n0"
        );
    }
}
