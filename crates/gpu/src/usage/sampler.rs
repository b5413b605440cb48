//! A thread that reads a GPU once per period, between the begin and the end of a job.
//!
//! The thread opens its source first, which may take some time, and then waits for the job. No call of the caller waits for the
//! source, except [`Sampler::finish`], for a stated time.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::reading::{Source, Usage};
use crate::error::GpuError;

/// Shortest interval over which a device's rates have a meaning: the refresh interval of its counters.
const RATES_INTERVAL_MIN: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The job has not begun.
    Before,
    /// The job runs.
    Within,
    /// The job has ended.
    After,
    /// No job has begun, and none will.
    Never,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    usage: Usage,
    /// Result of the thread, once it has ended.
    ended: Option<Result<(), GpuError>>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    /// Locks the state. Sums are whole between any two statements, so a poisoned lock is entered.
    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits while `is_early`, and no longer than `timeout` if there is one. Returns the state.
    fn wait_while(
        &self,
        timeout: Option<Duration>,
        mut is_early: impl FnMut(&mut State) -> bool,
    ) -> MutexGuard<'_, State> {
        let state = self.locked();
        match timeout {
            None => self.changed.wait_while(state, is_early).unwrap_or_else(PoisonError::into_inner),
            Some(timeout) => {
                let waited = self.changed.wait_timeout_while(state, timeout, &mut is_early);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        }
    }

    fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.locked());
        self.changed.notify_all();
    }
}

/// Sampler of one GPU. Its thread ends after [`Self::end`], or when this value is dropped.
///
/// `Send` and `Sync`.
#[derive(Debug)]
pub struct Sampler(Arc<Shared>);

impl Sampler {
    /// Starts the thread. `observe` opens a source, and calls [`Window::observe`] with it.
    ///
    /// # Errors
    /// [`GpuError::System`]: the system has no thread.
    pub fn start(
        period: Duration,
        usage: Usage,
        observe: impl FnOnce(&mut Window) -> Result<(), GpuError> + Send + 'static,
    ) -> Result<Self, GpuError> {
        let state = State { phase: Phase::Before, usage, ended: None };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let mut window = Window { shared: Arc::clone(&shared), period };
        let thread = thread::Builder::new().name("gpu-usage".to_owned());
        let started = thread.spawn(move || {
            let result = observe(&mut window);
            window.shared.set(|state| state.ended = Some(result));
        });
        started.map_err(|error| GpuError::system("a thread that reads the use of the GPU", &error))?;
        Ok(Self(shared))
    }

    /// Begins the window of readings. Later calls have no effect.
    pub fn begin(&self) {
        self.0.set(|state| {
            if state.phase == Phase::Before {
                state.phase = Phase::Within;
            }
        });
    }

    /// Ends the window of readings. The thread reads once more.
    pub fn end(&self) {
        self.0.set(|state| {
            state.phase = match state.phase {
                Phase::Before | Phase::Never => Phase::Never,
                Phase::Within | Phase::After => Phase::After,
            };
        });
    }

    /// Ends the window, and returns the sums of all readings. Waits no longer than `timeout` for the last reading; without it the
    /// sums are those of the readings before.
    ///
    /// # Errors
    /// [`GpuError::NoManagement`]: the library cannot be used, or does not know the device.
    pub fn finish(&self, timeout: Duration) -> Result<Usage, GpuError> {
        self.end();
        let state = self.0.wait_while(Some(timeout), |state| state.ended.is_none());
        match &state.ended {
            Some(Err(error)) => Err(error.clone()),
            _ => Ok(state.usage.clone()),
        }
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.end();
    }
}

/// Window in which a sampler reads.
#[derive(Debug)]
pub struct Window {
    shared: Arc<Shared>,
    period: Duration,
}

impl Window {
    /// Corrects what is known of the device, before the first reading.
    pub fn describe(&mut self, change: impl FnOnce(&mut Usage)) {
        self.shared.set(|state| change(&mut state.usage));
    }

    /// Waits for the begin of the window, reads the source once per period, and once more at the end. The first reading is one
    /// period after the begin: a utilisation describes the time before its reading.
    pub fn observe(&mut self, source: &mut impl Source) {
        let phase = self.shared.wait_while(None, |state| state.phase == Phase::Before).phase;
        if phase == Phase::Never {
            return;
        }
        source.begin_rates();
        let begin = Instant::now();
        loop {
            let phase = self.shared.wait_while(Some(self.period), |state| state.phase == Phase::Within).phase;
            let reading = source.read();
            self.shared.locked().usage.add(reading);
            if phase != Phase::Within {
                break;
            }
        }
        if begin.elapsed() >= RATES_INTERVAL_MIN {
            let rates = source.rates();
            self.shared.locked().usage.rates = rates;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{self, Receiver, Sender};

    use super::super::reading::{Rates, Reading, RunningSum};
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    /// Source whose readings count up. It reports each reading, and its end.
    struct Counting {
        count: u64,
        reads: Sender<u64>,
    }

    impl Source for Counting {
        fn read(&mut self) -> Reading {
            self.count += 1;
            // A test that has seen enough may have dropped its end.
            let _ = self.reads.send(self.count);
            Reading { busy_percent: Some(self.count), ..Reading::default() }
        }

        fn begin_rates(&mut self) {
            assert_eq!(self.count, 0, "rates begin before the first reading");
        }

        fn rates(&mut self) -> Rates {
            Rates { nvlink_sent: Some(self.count), ..Rates::default() }
        }
    }

    fn counting(period: Duration) -> (Sampler, Receiver<u64>) {
        let (reads, seen) = mpsc::channel();
        let sampler = Sampler::start(period, Usage::default(), move |window| {
            window.describe(|usage| usage.memory_bytes = Some(64));
            window.observe(&mut Counting { count: 0, reads });
            Ok(())
        });
        (sampler.expect("a thread"), seen)
    }

    #[test]
    fn readings_are_summed_from_the_begin_to_one_after_the_end() {
        let (sampler, seen) = counting(Duration::from_millis(1));
        sampler.begin();
        for expected in 1..=150 {
            assert_eq!(seen.recv_timeout(LONG), Ok(expected));
        }
        let usage = sampler.finish(LONG).expect("the source opens");
        let count = usage.readings;
        assert!(count > 150, "the end is read as well: {count}");
        assert_eq!(usage.busy_percent, RunningSum { count, sum: count * (count + 1) / 2, max: count });
        assert_eq!(usage.memory_busy_percent, RunningSum::default());
        assert_eq!(usage.memory_bytes, Some(64));
        // 150 periods of a millisecond are longer than the shortest interval of rates.
        assert_eq!(usage.rates.nvlink_sent, Some(count));
    }

    #[test]
    fn a_job_shorter_than_a_period_has_one_reading_and_no_rates() {
        let (sampler, seen) = counting(LONG);
        sampler.begin();
        let usage = sampler.finish(LONG).expect("the source opens");
        assert_eq!((usage.readings, seen.recv_timeout(LONG)), (1, Ok(1)));
        assert_eq!(usage.rates, Rates::default());
    }

    #[test]
    fn a_sampler_that_never_begins_reads_nothing_and_its_thread_ends() {
        let (sampler, seen) = counting(Duration::from_millis(1));
        drop(sampler);
        assert_eq!(seen.recv_timeout(LONG), Err(mpsc::RecvTimeoutError::Disconnected));
    }

    #[test]
    fn a_source_that_does_not_open_is_an_error_of_the_end() {
        let refused = GpuError::NoManagement { reason: "no library".to_owned() };
        let error = refused.clone();
        let sampler = Sampler::start(LONG, Usage::default(), move |_| Err(error)).expect("a thread");
        sampler.begin();
        assert_eq!(sampler.finish(LONG), Err(refused));
    }

    #[test]
    fn a_source_that_hangs_delays_the_end_by_the_timeout_only() {
        let (release, held) = mpsc::channel::<()>();
        let sampler = Sampler::start(LONG, Usage::default(), move |_| {
            let _ = held.recv();
            Ok(())
        });
        let usage = sampler.expect("a thread").finish(Duration::from_millis(1));
        assert_eq!(usage, Ok(Usage::default()));
        drop(release);
    }
}
