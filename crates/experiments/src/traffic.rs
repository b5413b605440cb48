//! Traffic of nodes in an experiment: flows of operations to others, as fast as allowed or at given times, and a ledger of
//! their completions.
//!
//! A flow keeps at most so many operations open, or issues each at its time. It begins when the node reaches
//! all others, and is over when all of its operations have ended; a node without flows is over at once and answers others.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use rackloom_jobs::{Job, JobResult, Progress, Seat};
use rackloom_plan::random_share;
use rackloom_protocol::{
    Access, Atomic, AtomicKind, Command, CommandRefused, Completion, Event, Instant, JobMemory, Key,
    LocalRange, NodeId, OperationError, OperationId, RegionConfig, RegionId, RemoteAddress, Tenant, Width,
};

/// The one region of every node.
pub(crate) const REGION: RegionId = RegionId(1);
const REGION_BYTES: u64 = 1 << 20;
const KEY: Key = Key(0x5eed);
/// Bits of the number of an operation within its flow; the upper bits of an identity are the flow.
const FLOW_SHIFT: u32 = 40;
const STORE_BYTES_MAX: usize = 16 << 10;
static PATTERN: [u8; STORE_BYTES_MAX] = [0x5a; STORE_BYTES_MAX];

/// Kind of a flow's operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Store,
    Load,
    Put,
    /// Fetch-add of 1 to the word at the flow's offset.
    FetchAdd,
}

/// Operations of one kind to one node.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub(crate) kind: Kind,
    pub(crate) target: u16,
    pub(crate) bytes: u64,
    pub(crate) count: u64,
    /// Maximum number of operations that are open at the same time.
    pub(crate) open_max: u64,
    /// Time of issue of each operation, after the begin; empty for as fast as possible.
    pub(crate) times_ns: Vec<u64>,
    /// Offset in the target's region.
    pub(crate) offset: u64,
}

impl Flow {
    /// Returns a flow of `count` operations, issued as fast as possible.
    pub(crate) fn greedy(kind: Kind, target: u16, bytes: u64, count: u64) -> Self {
        Self { kind, target, bytes, count, open_max: u64::MAX, times_ns: Vec::new(), offset: 0 }
    }
}

/// Record of a node's flows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    /// Time at which the first operation could be issued.
    pub(crate) began: Option<Instant>,
    /// Time at which a tenth of all operations had succeeded.
    pub(crate) warm: Option<Instant>,
    /// Time at which the last one ended.
    pub(crate) ended: Option<Instant>,
    /// Operations that succeeded after the tenth.
    pub(crate) completed_warm: u64,
    /// Operations that succeeded.
    pub(crate) completed: u64,
    /// Operations that succeeded by flow, in the order of the flows.
    pub(crate) completed_of: Vec<u64>,
    /// Operations with an unknown outcome.
    pub(crate) unknown: u64,
    /// Operations that certainly did not happen.
    pub(crate) failed: u64,
    /// Durations of operations, of flows with given times.
    pub(crate) latencies_ns: Vec<u64>,
}

impl Ledger {
    /// Returns the operations per second between the tenth of all and the last.
    pub(crate) fn operations_per_s(&self) -> Result<f64, String> {
        let (Some(warm), Some(ended)) = (self.warm, self.ended) else {
            return Err("the traffic did not end".into());
        };
        let took_ns = ended.since(warm);
        if took_ns == 0 {
            Err("the traffic took no time".into())
        } else {
            Ok(self.completed_warm as f64 * 1e9 / took_ns as f64)
        }
    }

    /// Returns the latency that this share of all operations do not exceed.
    pub(crate) fn quantile_ns(&self, share: f64) -> Option<u64> {
        let mut latencies = self.latencies_ns.clone();
        latencies.sort_unstable();
        latencies.get((latencies.len() as f64 * share) as usize).copied()
    }
}

/// Progress of a flow.
#[derive(Debug)]
struct Course {
    flow: Flow,
    issued: u64,
    ended: u64,
    /// Times of issue of open operations, if latencies are recorded.
    open: BTreeMap<u64, Instant>,
}

/// Flows of one node.
#[derive(Debug)]
pub(crate) struct Traffic {
    rank: u16,
    nodes: u16,
    courses: Vec<Course>,
    total: u64,
    lost: Vec<NodeId>,
    ledger: Arc<Mutex<Ledger>>,
    tenant: Tenant,
}

impl Traffic {
    /// Creates the job, and the ledger that it writes.
    pub(crate) fn new(rank: u16, nodes: u16, tenant: Tenant, flows: Vec<Flow>) -> (Self, Arc<Mutex<Ledger>>) {
        let noted = Ledger { completed_of: vec![0; flows.len()], ..Ledger::default() };
        let ledger = Arc::new(Mutex::new(noted));
        let total = flows.iter().map(|flow| flow.count).sum();
        let courses =
            flows.into_iter().map(|flow| Course { flow, issued: 0, ended: 0, open: BTreeMap::new() });
        let courses = courses.collect();
        let job = Self { rank, nodes, courses, total, lost: Vec::new(), ledger: Arc::clone(&ledger), tenant };
        (job, ledger)
    }

    fn note(&self, note: impl FnOnce(&mut Ledger)) {
        note(&mut self.ledger.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn begin(&self, now: Instant, seat: &dyn Seat) -> Option<Instant> {
        let mut ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        if ledger.began.is_none() {
            let mut others = (0..self.nodes).filter(|other| *other != self.rank);
            if !others.all(|other| seat.is_reachable(NodeId(other))) {
                return None;
            }
            ledger.began = Some(now);
        }
        ledger.began
    }

    /// Issues the operations of a flow that are due. Returns when to continue, if that is a matter of time.
    fn issue(&mut self, index: usize, now: Instant, began: Instant, seat: &mut dyn Seat) -> Option<Instant> {
        loop {
            let course = &mut self.courses[index];
            let Flow { count, open_max, ref times_ns, .. } = course.flow;
            if course.issued == count || course.issued - course.ended >= open_max {
                return None;
            }
            let due = times_ns.get(course.issued as usize).map_or(began, |after_ns| began + *after_ns);
            if due > now {
                return Some(due);
            }
            match seat.command(now, course.flow.command(index, course.issued)) {
                Ok(_) => {
                    if !course.flow.times_ns.is_empty() {
                        // Back-pressure counts: an operation begins when it was due.
                        course.open.insert(course.issued, due);
                    }
                    course.issued += 1;
                }
                Err(CommandRefused::Unreachable(node)) if self.lost.contains(&node) => {
                    course.issued += 1;
                    course.ended += 1;
                    self.note(|ledger| ledger.failed += 1);
                }
                Err(_) => return None,
            }
        }
    }

    fn end(&mut self, now: Instant, operation: OperationId, result: Result<u64, OperationError>) {
        let flow = (operation.0 >> FLOW_SHIFT) as usize;
        let Some(course) = self.courses.get_mut(flow) else { return };
        course.ended += 1;
        let latency =
            course.open.remove(&(operation.0 & ((1 << FLOW_SHIFT) - 1))).map(|began| now.since(began));
        let tenth = self.total / 10;
        self.note(|ledger| {
            match result {
                Ok(_) => {
                    ledger.completed += 1;
                    ledger.completed_of[flow] += 1;
                }
                Err(OperationError::OutcomeUnknown) => ledger.unknown += 1,
                Err(_) => ledger.failed += 1,
            }
            // Operations that end together with the tenth took no time after it.
            if result.is_ok() && ledger.warm.is_some_and(|warm| now > warm) {
                ledger.completed_warm += 1;
            }
            if ledger.completed == tenth && ledger.warm.is_none() {
                ledger.warm = Some(now);
            }
            ledger.ended = Some(now);
            ledger.latencies_ns.extend(latency);
        });
    }

    fn is_over(&self) -> bool {
        self.courses.iter().all(|course| course.ended == course.flow.count)
    }
}

impl Flow {
    fn command(&self, index: usize, number: u64) -> Command<'static> {
        let operation = OperationId((index as u64) << FLOW_SHIFT | number);
        let target =
            RemoteAddress { node: NodeId(self.target), region: REGION, offset: self.offset, key: KEY };
        let here = LocalRange { region: REGION, offset: 0, length: self.bytes };
        match self.kind {
            Kind::Store => {
                let data = &PATTERN[..(self.bytes as usize).min(STORE_BYTES_MAX)];
                Command::Store { operation, target, data, completion: Completion::Visible }
            }
            Kind::Load => Command::Load { operation, target, into: here },
            Kind::Put => Command::Put { operation, target, source: here, signal: None },
            Kind::FetchAdd => {
                let atomic =
                    Atomic { kind: AtomicKind::FetchAdd, width: Width::Eight, operand: 1, compare: 0 };
                Command::Atomic { operation, target, atomic }
            }
        }
    }
}

impl Job for Traffic {
    fn regions(&self) -> Vec<RegionConfig> {
        let (access, tenant) = (Access::ALL, self.tenant);
        vec![RegionConfig { region: REGION, length: REGION_BYTES, key: KEY, access, tenant }]
    }

    fn handle_event(&mut self, now: Instant, event: &Event) {
        match event {
            Event::Completed { operation, result } => self.end(now, *operation, *result),
            Event::NodeLost { node } => self.lost.push(*node),
            _ => {}
        }
    }

    fn advance(&mut self, now: Instant, seat: &mut dyn Seat, _memory: &mut dyn JobMemory) -> Progress {
        if self.is_over() {
            return Progress::Finished;
        }
        let Some(began) = self.begin(now, seat) else { return Progress::Running(None) };
        let mut wake: Option<Instant> = None;
        for index in 0..self.courses.len() {
            if let Some(at) = self.issue(index, now, began, seat) {
                wake = Some(wake.map_or(at, |other| other.min(at)));
            }
        }
        if self.is_over() { Progress::Finished } else { Progress::Running(wake) }
    }

    fn waiting_for(&self) -> String {
        let ended: u64 = self.courses.iter().map(|course| course.ended).sum();
        format!("{} of {} operations", self.total - ended, self.total)
    }

    fn result(&mut self) -> JobResult {
        JobResult { complete: self.is_over(), ..JobResult::default() }
    }

    fn progress_count(&self) -> u64 {
        self.courses.iter().map(|course| course.ended).sum()
    }
}

/// Returns random arrival times, `gap_ns` apart on average: each gap is drawn from an exponential distribution.
pub(crate) fn random_times_ns(seed: u64, count: u64, gap_ns: f64) -> Vec<u64> {
    let mut at_ns = 0.0;
    let times = (0..count).map(|number| {
        at_ns += -(1.0 - random_share(seed, number)).ln() * gap_ns;
        at_ns as u64
    });
    times.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_times_keep_their_mean_and_their_order() {
        let times = random_times_ns(7, 10_000, 1_000.0);
        assert!(times.windows(2).all(|pair| pair[0] <= pair[1]));
        let mean = *times.last().unwrap() as f64 / 10_000.0;
        // Three standard deviations of a mean of 10,000 exponential gaps.
        assert!((mean - 1_000.0).abs() < 30.0, "{mean}");
        assert_ne!(times, random_times_ns(8, 10_000, 1_000.0));
    }
}
