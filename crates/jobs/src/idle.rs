//! The job that does nothing: it is over once every other rank can be reached, or it says why it cannot be.
//!
//! `--job none` brings links up and ends; a litmus that does not fit into memory fails with words instead of a panic.

use std::collections::BTreeMap;

use rackloom_protocol::{Event, Instant, Memory, NodeId, RegionConfig};

use crate::job::{Job, Progress, Seat};
use crate::report::JobResult;

/// Time between looks at who can be reached.
const INTERVAL_NS: u64 = 1_000_000;

/// Waits for the others, and ends.
#[derive(Debug)]
pub(crate) struct Idle {
    /// The other ranks that have not been reached yet, and their names.
    others: BTreeMap<NodeId, String>,
    /// When they are asked for, one by one; in between it is told who comes. A rack that comes up gives a thousand ranks a thousand
    /// turns each.
    next_look: Instant,
    timeout_ns: u64,
    until: Option<Instant>,
    failure: Option<String>,
    is_over: bool,
}

impl Idle {
    /// Wait until all others can be reached, but no longer than `timeout_ns`.
    pub(crate) fn new(others: Vec<(NodeId, String)>, timeout_ns: u64) -> Self {
        let (others, next_look) = (others.into_iter().collect(), Instant::ZERO);
        Self { others, next_look, timeout_ns, until: None, failure: None, is_over: false }
    }

    /// A job that cannot even begin.
    pub(crate) fn failed(failure: String) -> Self {
        Self { failure: Some(failure), ..Self::new(Vec::new(), 0) }
    }

    fn turn(&mut self, now: Instant, is_reachable: impl Fn(NodeId) -> bool) -> Progress {
        let until = *self.until.get_or_insert(now + self.timeout_ns);
        if now >= self.next_look {
            self.next_look = now + INTERVAL_NS;
            self.others.retain(|node, _| !is_reachable(*node));
        }
        if !self.others.is_empty() && now < until {
            return Progress::Running(Some(now + INTERVAL_NS));
        }
        self.is_over = true;
        Progress::Finished
    }

    fn missing(&self) -> String {
        self.others.values().map(String::as_str).collect::<Vec<_>>().join(", ")
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

    fn advance(&mut self, now: Instant, seat: &mut dyn Seat, _memory: &mut dyn Memory) -> Progress {
        self.turn(now, |node| seat.is_reachable(node))
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
        u64::from(self.is_over)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn idle() -> Idle {
        Idle::new(vec![(NodeId(1), "n1".into()), (NodeId(2), "n2".into())], 5_000_000)
    }

    #[test]
    fn it_ends_well_once_everybody_has_been_reached() {
        let mut job = idle();
        assert_ne!(job.turn(Instant(0), |node| node.0 == 1), Progress::Finished);
        assert_eq!(job.waiting_for(), "a path to n2");
        assert_ne!(
            job.turn(Instant(1), |node| node.0 == 2),
            Progress::Finished,
            "it does not look at every turn"
        );
        job.handle_event(Instant(2), &Event::NodeReached { node: NodeId(2) });
        assert_eq!(job.turn(Instant(2), |_| false), Progress::Finished);
        assert!(job.result().is_pass());
    }

    #[test]
    fn who_was_reached_before_it_began_is_found_by_looking() {
        let mut job = idle();
        assert_ne!(job.turn(Instant(0), |_| false), Progress::Finished);
        assert_eq!(job.turn(Instant(INTERVAL_NS), |_| true), Progress::Finished);
        assert!(job.result().is_pass());
    }

    #[test]
    fn it_does_not_wait_for_ever() {
        let mut job = idle();
        job.turn(Instant(0), |node| node.0 == 1);
        assert_eq!(job.turn(Instant(5_000_000), |_| false), Progress::Finished);
        assert_eq!(job.result().failures, ["never reached: n2"]);
    }

    #[test]
    fn a_job_that_cannot_begin_ends_at_once_and_fails() {
        let mut job = Idle::failed("too large".into());
        assert_eq!(job.turn(Instant(0), |_| false), Progress::Finished);
        assert!(!job.result().is_pass());
    }
}
