//! Distinguishes a silent neighbour from one that had no processor.
//!
//! A member judges its neighbours by their heartbeats. On a busy host a live neighbour may be silent for longer than the timers allow, because no
//! processor was free for it. Once a heartbeat is overdue, the member's engine therefore reads how long the neighbour's process has waited on a run
//! queue, and how much processor time the host of this virtual machine took away (steal). It passes that time to the protocol, which does not count
//! it as silence. This evidence only delays the loss of a neighbour and never causes one.
//!
//! A neighbour on another host, or one whose `/proc` entry is hidden, provides no evidence. Then only the observer's own lateness counts. Nothing is
//! read as long as all heartbeats are on time. The timeout is extended by [`EXTENSION_NS_MAX`] at most.

mod judge;
mod steal;
mod threads;

pub use threads::own_waited_ns;

use rackloom_protocol::{Inspect, Instant, Overdue, PortId};

use judge::Suspicion;

/// Longest extension of the timeout for one silence, in nanoseconds. A neighbour that gets no processor for longer counts as lost.
pub const EXTENSION_NS_MAX: u64 = 60_000_000_000;
/// Shortest time between two samples of one neighbour in nanoseconds, unless its link is about to go down.
const SAMPLE_INTERVAL_NS: u64 = 20_000_000;

/// A member's measurements of its host, for its report.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shortage {
    /// Longest part of one neighbour's silence during which it had no processor, in nanoseconds.
    pub extension_max_ns: u64,
    /// Number of times that such a part delayed the loss of a neighbour.
    pub deaths_put_off: u64,
}

/// Observer of the processes at the other ends of a member's links.
#[derive(Debug, Default)]
pub(crate) struct Availability {
    neighbours: Vec<Neighbour>,
    shortage: Shortage,
}

#[derive(Debug, Default)]
struct Neighbour {
    process: Option<u32>,
    watch: Option<Watch>,
}

/// Evidence about one silence of a neighbour.
#[derive(Debug)]
struct Watch {
    /// Time of the last heartbeat before the silence.
    since: Instant,
    sampled_at: Instant,
    suspicion: Suspicion,
    stolen_before_ns: u64,
    share: Share,
}

/// Part of the evidence that belongs to the silence as the member counts it.
///
/// A member that itself did not run counts the silence from a later time on. Evidence of the time before is spent then, and the neighbour stays
/// under observation: a new first sample would leave the member without evidence in the short time that it still waits.
#[derive(Clone, Copy, Debug)]
struct Share {
    counted_from: Instant,
    spent_ns: u64,
    latest_ns: u64,
}

impl Share {
    const fn new(counted_from: Instant) -> Self {
        Self { counted_from, spent_ns: 0, latest_ns: 0 }
    }

    /// Takes the evidence of the whole silence. Returns the extension of the timeout for the silence since `counted_from`, in nanoseconds.
    fn of(&mut self, counted_from: Instant, whole_ns: u64) -> u64 {
        if counted_from != self.counted_from {
            self.counted_from = counted_from;
            self.spent_ns = self.latest_ns;
        }
        self.latest_ns = whole_ns.min(EXTENSION_NS_MAX);
        self.latest_ns.saturating_sub(self.spent_ns)
    }
}

impl Availability {
    /// Sets the process of this host at the other end of a port. `None`: the process is on another host, or unknown.
    pub(crate) fn set_process(&mut self, port: PortId, process: Option<u32>) {
        if self.neighbours.len() <= port.index() {
            self.neighbours.resize_with(port.index() + 1, Neighbour::default);
        }
        self.neighbours[port.index()] = Neighbour { process, watch: None };
    }

    /// Returns the measurements so far.
    #[must_use]
    pub(crate) const fn shortage(&self) -> Shortage {
        self.shortage
    }

    /// Checks the neighbours whose heartbeats are overdue and passes the extensions of their timeouts to the member. Call this before the member's timeout is
    /// handled.
    pub(crate) fn extend_timeouts(&mut self, now: Instant, member: &mut dyn Inspect) {
        for (index, neighbour) in self.neighbours.iter_mut().enumerate() {
            let port = PortId(index as u16);
            let Some(process) = neighbour.process else { continue };
            let Some(overdue) = member.link(port).and_then(|link| link.overdue(now)) else {
                neighbour.watch = None;
                continue;
            };
            let is_decisive = now >= overdue.dead_at;
            let Some(extension_ns) = neighbour.look(now, process, &overdue, is_decisive) else { continue };
            member.extend_timeout(now, port, extension_ns);
            self.shortage.extension_max_ns = self.shortage.extension_max_ns.max(extension_ns);
            let dead_at = member.link(port).and_then(|link| link.overdue(now)).map(|overdue| overdue.dead_at);
            if is_decisive && dead_at.is_some_and(|dead_at| now < dead_at) {
                self.shortage.deaths_put_off += 1;
            }
        }
    }
}

impl Neighbour {
    /// Returns the extension of the timeout in nanoseconds, or `None` if there is no new sample.
    fn look(&mut self, now: Instant, process: u32, overdue: &Overdue, is_decisive: bool) -> Option<u64> {
        let since = overdue.since;
        if self.watch.as_ref().is_some_and(|watch| watch.since != since) {
            self.watch = None;
        }
        let Some(watch) = &mut self.watch else {
            let suspicion = Suspicion::begin(now, &threads::sample(process)?);
            let stolen_before_ns = steal::stolen_max_ns();
            let share = Share::new(overdue.counted_from);
            self.watch = Some(Watch { since, sampled_at: now, suspicion, stolen_before_ns, share });
            return None;
        };
        if !is_decisive && now.since(watch.sampled_at) < SAMPLE_INTERVAL_NS {
            return None;
        }
        watch.sampled_at = now;
        let waited_ns = watch.suspicion.observe(now, &threads::sample(process)?);
        let stolen_ns = steal::stolen_max_ns().saturating_sub(watch.stolen_before_ns);
        // Time that the hypervisor took from a processor was taken from any process there, so it extends the timeout only of a process that waited.
        let stolen_ns = if waited_ns > 0 { stolen_ns } else { 0 };
        Some(watch.share.of(overdue.counted_from, waited_ns.saturating_add(stolen_ns)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_member_that_did_not_run_keeps_its_evidence_and_uses_up_the_earlier_extension() {
        let mut share = Share::new(Instant(0));
        assert_eq!(share.of(Instant(0), 300 * MS), 300 * MS);
        assert_eq!(share.of(Instant(0), 4700 * MS), 4700 * MS, "the sample before the silence counts anew");
        assert_eq!(share.of(Instant(4300 * MS), 5300 * MS), 600 * MS);
        assert_eq!(share.of(Instant(4300 * MS), 5400 * MS), 700 * MS);
    }

    #[test]
    fn one_timeout_is_extended_by_the_longest_time_once() {
        let mut share = Share::new(Instant(0));
        assert_eq!(share.of(Instant(0), 2 * EXTENSION_NS_MAX), EXTENSION_NS_MAX);
        assert_eq!(share.of(Instant(1), 3 * EXTENSION_NS_MAX), 0);
    }
}
