//! Record of a rank's operations while the job runs: the latencies since the last look, and the first operations one by one.

use rackloom_control::recorder::{OperationRecording, RecentOperations};
use rackloom_protocol::{Instant, NodeId};

use crate::measure::OperationKind;
use crate::quantile::nearest_rank;
use crate::report::OperationSpan;

/// Latencies that are kept between two looks. Of more, every second, fourth or later one is kept.
const RECENT_MAX: usize = 4_096;

/// Record of a rank's operations.
#[derive(Debug, Default)]
pub(crate) struct Observer {
    recording: OperationRecording,
    recent: Recent,
    spans: Vec<Span>,
    omitted: u64,
}

/// Latencies since the last look. A list is short where a histogram of all latencies has to be searched and cleared at each look.
#[derive(Debug, Default)]
struct Recent {
    /// Operations that ended, with those that ended with an error.
    count: u64,
    /// Operations among them that have a latency: those without an error.
    timed: u64,
    /// Two to this power is the distance of two operations whose latencies are kept.
    spread: u32,
    latencies_ns: Vec<u64>,
}

/// An operation that has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) kind: OperationKind,
    pub(crate) target: Option<NodeId>,
    pub(crate) begun: Instant,
    pub(crate) ended: Instant,
    pub(crate) bytes: u64,
    pub(crate) error: Option<&'static str>,
}

impl Observer {
    /// Returns an observer that records this.
    pub(crate) fn new(recording: OperationRecording) -> Self {
        Self { recording, ..Self::default() }
    }

    /// Records the end of an operation.
    pub(crate) fn record(&mut self, span: Span) {
        if self.recording.has_latencies {
            self.recent.count += 1;
            if span.error.is_none() {
                self.recent.record(span.ended.since(span.begun));
            }
        }
        if self.spans.len() < self.recording.spans_max {
            self.spans.push(span);
        } else if self.recording.spans_max > 0 {
            self.omitted += 1;
        }
    }

    /// Returns the operations that have ended since the last call.
    pub(crate) fn take_recent(&mut self) -> RecentOperations {
        self.recent.take()
    }

    /// Returns the recorded operations of `node`, with the names of their targets.
    pub(crate) fn spans(&self, node: &str, name: impl Fn(NodeId) -> String) -> Vec<OperationSpan> {
        let of = |span: &Span| OperationSpan {
            node: node.to_owned(),
            kind: span.kind,
            peer: span.target.map(&name),
            begin_ns: span.begun.0,
            end_ns: span.ended.0,
            bytes: span.bytes,
            error: span.error.map(str::to_owned),
        };
        self.spans.iter().map(of).collect()
    }

    /// Returns a note if there were more operations than are kept.
    pub(crate) fn note(&self) -> Option<String> {
        let kept = self.recording.spans_max;
        (self.omitted > 0).then(|| format!("of each node the first {kept} operations are recorded"))
    }
}

impl Recent {
    fn record(&mut self, latency_ns: u64) {
        if self.timed.is_multiple_of(1 << self.spread) {
            if self.latencies_ns.len() == RECENT_MAX {
                let mut is_kept = false;
                self.latencies_ns.retain(|_| {
                    is_kept = !is_kept;
                    is_kept
                });
                self.spread += 1;
            }
            self.latencies_ns.push(latency_ns);
        }
        self.timed += 1;
    }

    fn take(&mut self) -> RecentOperations {
        let count = std::mem::take(&mut self.count);
        (self.timed, self.spread) = (0, 0);
        self.latencies_ns.sort_unstable();
        let quantile = |share| nearest_rank(&self.latencies_ns, share).unwrap_or(0);
        let recent = RecentOperations { count, p50_ns: quantile(0.5), p99_ns: quantile(0.99) };
        self.latencies_ns.clear();
        recent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(begun: u64, ended: u64) -> Span {
        let (begun, ended) = (Instant(begun), Instant(ended));
        Span { kind: OperationKind::Put, target: Some(NodeId(1)), begun, ended, bytes: 64, error: None }
    }

    #[test]
    fn each_look_has_the_operations_since_the_last_one() {
        let mut observer = Observer::new(OperationRecording { has_latencies: true, spans_max: 0 });
        observer.record(put(0, 10));
        observer.record(put(0, 30));
        observer.record(Span { error: Some("unreachable"), ..put(0, 900) });
        let recent = RecentOperations { count: 3, p50_ns: 10, p99_ns: 30 };
        assert_eq!(observer.take_recent(), recent, "an error has ended, and has no latency");
        assert_eq!(observer.take_recent(), RecentOperations::default());
        observer.record(put(40, 60));
        assert_eq!(observer.take_recent().p50_ns, 20);
        assert!(observer.spans("n0", |node| node.to_string()).is_empty());
    }

    #[test]
    fn of_many_operations_latencies_are_kept_at_equal_distances() {
        let mut recent = Recent::default();
        let many = 20 * RECENT_MAX as u64;
        (1..=many).for_each(|latency_ns| recent.record(latency_ns));
        recent.count = many;
        assert!((RECENT_MAX / 2..=RECENT_MAX).contains(&recent.latencies_ns.len()));
        let taken = recent.take();
        assert_eq!(taken.count, many);
        assert!(
            taken.p50_ns.abs_diff(many / 2) < 64 && taken.p99_ns.abs_diff(many / 100 * 99) < 64,
            "{taken:?}"
        );
        assert_eq!(recent.take(), RecentOperations::default());
    }

    #[test]
    fn the_first_operations_are_kept_and_the_others_are_noted() {
        let mut observer = Observer::new(OperationRecording { has_latencies: false, spans_max: 1 });
        observer.record(put(5, 10));
        assert_eq!(observer.note(), None);
        observer.record(put(10, 30));
        let spans = observer.spans("n0", |_| "n1".to_owned());
        assert_eq!((spans.len(), spans[0].begin_ns, spans[0].end_ns), (1, 5, 10));
        assert_eq!((spans[0].node.as_str(), spans[0].peer.as_deref()), ("n0", Some("n1")));
        assert!(observer.note().is_some());
    }
}
