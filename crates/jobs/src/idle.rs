//! A job without work: it is over once every other rank is reachable, or at a timeout that names the missing ranks.
//!
//! `--job none` uses it to bring links up and end. It also reports the failure of a job that cannot begin, such as a
//! litmus that does not fit into memory.

use std::collections::BTreeSet;
use std::sync::Arc;

use rackloom_protocol::{Event, Instant, JobMemory, NodeId, RegionConfig};

use crate::job::{Job, Progress, Seat};
use crate::ranks::Rank;
use crate::ranks::start::StartWait;
use crate::report::JobResult;

/// Time between two checks of which ranks are reachable, in nanoseconds.
const INTERVAL_NS: u64 = 1_000_000;

/// Waits until all other ranks are reachable, and ends.
#[derive(Debug)]
pub(crate) struct Idle {
    /// All ranks, for their names.
    ranks: Arc<[Rank]>,
    /// Awaited ranks that have not been reached yet.
    others: BTreeSet<NodeId>,
    /// Time of the next check of all missing ranks. Between checks, events report ranks that become reachable.
    /// While a rack of a thousand ranks comes up, each rank is polled about a thousand times, so a check in every poll
    /// would be slow.
    next_look: Instant,
    wait: StartWait,
    reached: u64,
    failure: Option<String>,
    is_over: bool,
}

impl Idle {
    /// Returns a job that waits for these of the ranks, and gives up `timeout_ns` nanoseconds after the last one was reached.
    pub(crate) fn new(ranks: Arc<[Rank]>, others: BTreeSet<NodeId>, timeout_ns: u64) -> Self {
        Self {
            ranks,
            others,
            next_look: Instant::ZERO,
            wait: StartWait::new(timeout_ns),
            reached: 0,
            failure: None,
            is_over: false,
        }
    }

    /// Returns a job that ends at once with `failure`.
    pub(crate) fn failed(failure: String) -> Self {
        Self { failure: Some(failure), ..Self::new(Arc::new([]), BTreeSet::new(), 0) }
    }

    fn poll(&mut self, now: Instant, is_reachable: impl Fn(NodeId) -> bool) -> Progress {
        if now >= self.next_look {
            self.next_look = now + INTERVAL_NS;
            self.others.retain(|node| !is_reachable(*node));
        }
        self.reached += u64::from(self.wait.record(now, self.others.len()));
        if !self.others.is_empty() && !self.wait.is_over(now) {
            return Progress::Running(Some(now + INTERVAL_NS));
        }
        self.is_over = true;
        Progress::Finished
    }

    fn missing(&self) -> String {
        let names = self.others.iter().map(|node| self.ranks[node.index()].name.as_str());
        names.collect::<Vec<_>>().join(", ")
    }
}

impl Job for Idle {
    fn regions(&self) -> Vec<RegionConfig> {
        Vec::new()
    }

    fn handle_event(&mut self, _now: Instant, event: &Event) {
        if let Event::NodeReached { node } = event {
            self.others.remove(node);
        }
    }

    fn advance(&mut self, now: Instant, seat: &mut dyn Seat, _memory: &mut dyn JobMemory) -> Progress {
        self.poll(now, |node| seat.is_reachable(node))
    }

    fn waiting_for(&self) -> String {
        if self.is_over { "nothing".to_owned() } else { format!("a path to {}", self.missing()) }
    }

    fn result(&mut self) -> JobResult {
        let mut failures: Vec<_> = self.failure.iter().cloned().collect();
        if self.is_over && !self.others.is_empty() {
            failures.push(format!("never reached: {}", self.missing()));
        }
        JobResult { complete: self.is_over && failures.is_empty(), failures, ..JobResult::default() }
    }

    fn progress_count(&self) -> u64 {
        self.reached + u64::from(self.is_over)
    }
}

#[cfg(test)]
mod tests {
    use rackloom_protocol::Tenant;

    use super::*;

    fn idle() -> Idle {
        let ranks = ["n0", "n1", "n2"].map(|name| Rank { name: name.to_owned(), tenant: Tenant(0) });
        Idle::new(Arc::new(ranks), [NodeId(1), NodeId(2)].into(), 5_000_000)
    }

    #[test]
    fn it_passes_once_every_rank_was_reached() {
        let mut job = idle();
        assert_ne!(job.poll(Instant(0), |node| node.0 == 1), Progress::Finished);
        assert_eq!(job.waiting_for(), "a path to n2");
        assert_ne!(
            job.poll(Instant(1), |node| node.0 == 2),
            Progress::Finished,
            "it does not look at every poll"
        );
        job.handle_event(Instant(2), &Event::NodeReached { node: NodeId(2) });
        assert_eq!(job.poll(Instant(2), |_| false), Progress::Finished);
        assert!(job.result().is_pass());
    }

    #[test]
    fn who_was_reached_before_it_began_is_found_by_looking() {
        let mut job = idle();
        assert_ne!(job.poll(Instant(0), |_| false), Progress::Finished);
        assert_eq!(job.poll(Instant(INTERVAL_NS), |_| true), Progress::Finished);
        assert!(job.result().is_pass());
    }

    #[test]
    fn it_does_not_wait_for_ever() {
        let mut job = idle();
        job.poll(Instant(0), |node| node.0 == 1);
        assert_eq!(job.poll(Instant(5_000_000), |_| false), Progress::Finished);
        assert_eq!(job.result().failures, ["never reached: n2"]);
    }

    #[test]
    fn a_job_that_cannot_begin_ends_at_once_and_fails() {
        let mut job = Idle::failed("too large".into());
        assert_eq!(job.poll(Instant(0), |_| false), Progress::Finished);
        assert!(!job.result().is_pass());
    }
}
