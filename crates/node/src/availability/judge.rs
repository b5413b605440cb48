//! Computes how much of a neighbour's silence was time without an available processor.
//!
//! The kernel adds a wait on a run queue to `schedstat` only after the wait has ended. A wait in progress is detected by a thread that is runnable
//! and whose run time does not change between two samples. A thread that is runnable and whose run time grows has a processor. A stopped or sleeping
//! thread does not need one.
//!
//! The code is pure: samples and times are arguments.

use rackloom_protocol::Instant;

use super::threads::{ProcessSample, ThreadSample, ThreadState};

/// State of a silent process since its heartbeat became overdue.
#[derive(Clone, Debug)]
pub(crate) struct Suspicion {
    started_ticks: u64,
    threads: Vec<Track>,
}

/// State of one thread since it was first seen.
#[derive(Clone, Copy, Debug)]
struct Track {
    thread: u32,
    /// Waiting time when the thread was first seen, in nanoseconds.
    waited_before_ns: u64,
    /// The latest sample.
    latest: ThreadSample,
    /// Time since which the thread has been seen runnable without any progress.
    waiting_since: Option<Instant>,
    /// Time of the latest sample.
    latest_at: Instant,
    /// Time between samples that both found the thread blocked in the kernel, in nanoseconds.
    blocked_ns: u64,
}

impl Track {
    fn begin(now: Instant, sample: ThreadSample) -> Self {
        let waiting_since = (sample.state == ThreadState::Runnable).then_some(now);
        let (thread, waited_before_ns) = (sample.thread, sample.waited_ns);
        Self { thread, waited_before_ns, latest: sample, waiting_since, latest_at: now, blocked_ns: 0 }
    }

    fn observe(&mut self, now: Instant, sample: ThreadSample) {
        let stands_still = (sample.run_ns, sample.waited_ns) == (self.latest.run_ns, self.latest.waited_ns);
        self.waiting_since = match (sample.state, stands_still) {
            (ThreadState::Runnable, true) => self.waiting_since.or(Some(now)),
            (ThreadState::Runnable, false) => Some(now),
            (ThreadState::Blocked | ThreadState::Stopped | ThreadState::Asleep, _) => None,
        };
        if (self.latest.state, sample.state) == (ThreadState::Blocked, ThreadState::Blocked) {
            self.blocked_ns = self.blocked_ns.saturating_add(now.since(self.latest_at));
        }
        self.latest = sample;
        self.latest_at = now;
    }

    /// Returns the waits that have ended since the thread was first seen, the one in progress, and the time in the kernel, in nanoseconds.
    fn waited_ns(&self, now: Instant) -> u64 {
        let ended_ns = self.latest.waited_ns.saturating_sub(self.waited_before_ns);
        let in_progress_ns = self.waiting_since.map_or(0, |since| now.since(since));
        ended_ns.saturating_add(in_progress_ns).saturating_add(self.blocked_ns)
    }
}

impl Suspicion {
    /// Creates the state from the first sample of a process whose heartbeat is overdue.
    #[must_use]
    pub(super) fn begin(now: Instant, sample: &ProcessSample) -> Self {
        let threads = sample.threads.iter().map(|thread| Track::begin(now, *thread)).collect();
        Self { started_ticks: sample.started_ticks, threads }
    }

    /// Adds a sample. Returns how long the process has waited for a processor since the first one, in nanoseconds: the longest
    /// of its threads, because any of them may be the one that serves its links. Zero if the number belongs to another process now.
    pub(super) fn observe(&mut self, now: Instant, sample: &ProcessSample) -> u64 {
        if sample.started_ticks != self.started_ticks {
            self.threads.clear();
            return 0;
        }
        for thread in &sample.threads {
            match self.threads.iter_mut().find(|track| track.thread == thread.thread) {
                Some(track) => track.observe(now, *thread),
                None => self.threads.push(Track::begin(now, *thread)),
            }
        }
        self.threads.retain(|track| sample.threads.iter().any(|thread| thread.thread == track.thread));
        self.threads.iter().map(|track| track.waited_ns(now)).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ThreadState::{Asleep, Blocked, Runnable, Stopped};

    const MS: u64 = 1_000_000;

    fn process(threads: &[(u32, ThreadState, u64, u64)]) -> ProcessSample {
        let thread = |(thread, state, run_ms, waited_ms): &(u32, ThreadState, u64, u64)| ThreadSample {
            thread: *thread,
            state: *state,
            run_ns: run_ms * MS,
            waited_ns: waited_ms * MS,
        };
        ProcessSample { started_ticks: 7, threads: threads.iter().map(thread).collect() }
    }

    /// A test case: its name, samples of one thread as state, run time and waiting time in milliseconds, and the extension in milliseconds.
    type Case = (&'static str, &'static [(ThreadState, u64, u64)], u64);

    /// Returns the extension for one thread after samples 100 ms apart, in milliseconds.
    fn extension_ms(samples: &[(ThreadState, u64, u64)]) -> u64 {
        let mut extension_ns = 0;
        let mut suspicion: Option<Suspicion> = None;
        for (number, (state, run_ms, waited_ms)) in samples.iter().enumerate() {
            let (now, sample) =
                (Instant(number as u64 * 100 * MS), process(&[(1, *state, *run_ms, *waited_ms)]));
            match &mut suspicion {
                Some(suspicion) => extension_ns = suspicion.observe(now, &sample),
                None => suspicion = Some(Suspicion::begin(now, &sample)),
            }
        }
        extension_ns / MS
    }

    #[test]
    fn state_and_progress_decide_the_extension() {
        let table: &[Case] = &[
            ("stopped is silence", &[(Stopped, 5, 9), (Stopped, 5, 9), (Stopped, 5, 9)], 0),
            ("asleep is silence", &[(Asleep, 5, 9), (Asleep, 5, 9), (Asleep, 5, 9)], 0),
            (
                "runnable and running is silence",
                &[(Runnable, 5, 9), (Runnable, 99, 9), (Runnable, 199, 9)],
                0,
            ),
            (
                "runnable and standing still waits",
                &[(Runnable, 5, 9), (Runnable, 5, 9), (Runnable, 5, 9)],
                200,
            ),
            ("blocked in the kernel", &[(Blocked, 5, 9), (Blocked, 5, 9), (Asleep, 6, 9)], 100),
            ("a wait that has ended", &[(Asleep, 5, 9), (Asleep, 6, 99), (Asleep, 6, 99)], 90),
            (
                "a wait in progress counts once when it ends",
                &[(Runnable, 5, 0), (Runnable, 5, 0), (Asleep, 6, 190)],
                190,
            ),
            ("short runs between waits", &[(Runnable, 5, 0), (Runnable, 6, 99), (Runnable, 6, 99)], 199),
            ("stopped after a wait", &[(Runnable, 5, 0), (Stopped, 5, 80), (Stopped, 5, 80)], 80),
        ];
        for (what, samples, expected_ms) in table {
            assert_eq!(extension_ms(samples), *expected_ms, "{what}");
        }
    }

    #[test]
    fn the_thread_that_waits_longest_decides() {
        let mut suspicion = Suspicion::begin(Instant(0), &process(&[(1, Runnable, 5, 0), (2, Asleep, 5, 0)]));
        let later = process(&[(1, Runnable, 95, 0), (2, Asleep, 6, 70), (3, Runnable, 0, 0)]);
        assert_eq!(suspicion.observe(Instant(100 * MS), &later), 70 * MS);
    }

    #[test]
    fn another_process_under_the_same_number_is_no_evidence() {
        let mut suspicion = Suspicion::begin(Instant(0), &process(&[(1, Runnable, 5, 0)]));
        let other = ProcessSample { started_ticks: 8, ..process(&[(1, Runnable, 5, 0)]) };
        assert_eq!(suspicion.observe(Instant(100 * MS), &other), 0);
    }
}
