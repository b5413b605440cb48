//! A rack in virtual time with its traffic: from the text of a rack file to the counters of wires and ledgers.
//!
//! This file has no expected values.

use std::sync::{Arc, Mutex, PoisonError};

use rackloom_jobs::Job;
use rackloom_jobs::collective::Inputs;
use rackloom_jobs::report::WorkloadReport;
use rackloom_jobs::workload::ComputeMode;
use rackloom_plan::impair::Direction;
use rackloom_plan::{AlgorithmChoice, AlgorithmKind, AlgorithmList, Plan};
use rackloom_protocol::{Instant, NodeId};
use rackloom_simulator::{Action, LinkStatistics, Simulation};
use rackloom_workloads::text;

use crate::traffic::{Flow, Ledger, Traffic};

/// A rack whose nodes carry given flows.
pub(crate) struct Stage {
    pub(crate) simulation: Simulation,
    ledgers: Vec<Arc<Mutex<Ledger>>>,
    plan: Plan,
}

/// Parses a plan from the text of a rack file.
pub(crate) fn plan(text: &str) -> Result<Plan, String> {
    Plan::parse(text, "experiment").map_err(|error| error.to_string())
}

/// One direction of a link, with its counters.
pub(crate) struct LinkDirection<'s> {
    pub(crate) link: &'s str,
    pub(crate) direction: Direction,
    pub(crate) statistics: &'s LinkStatistics,
}

impl Stage {
    /// Creates a rack at time 0; node `n` carries `flows[n]`, nodes beyond the list carry none.
    pub(crate) fn new(text: &str, seed: u64, flows: Vec<Vec<Flow>>) -> Result<Self, String> {
        let plan = plan(text)?;
        let nodes = plan.endpoint_count();
        let mut flows = flows.into_iter();
        let (jobs, ledgers) = (0..nodes)
            .map(|rank| {
                let (tenant, own) = (plan.members[rank].tenant, flows.next().unwrap_or_default());
                let (job, ledger) = Traffic::new(rank as u16, nodes as u16, tenant, own);
                (Box::new(job) as Box<dyn Job>, ledger)
            })
            .unzip();
        let simulation = Simulation::new(&plan, seed, jobs);
        Ok(Self { simulation, ledgers, plan })
    }

    /// Returns the rack's plan.
    pub(crate) const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Runs until every node's traffic is over.
    pub(crate) fn run(&mut self) -> Result<(), String> {
        self.simulation.run().map(|_| ()).map_err(|stalled| stalled.to_string())
    }

    /// Returns a copy of a node's ledger.
    pub(crate) fn ledger(&self, node: usize) -> Ledger {
        self.ledgers[node].lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the counters of the first direction of the link with this name.
    pub(crate) fn forward(&self, link: &str) -> Result<LinkStatistics, String> {
        Ok(*self.simulation.link_statistics(self.edge(link)?, Direction::Forward))
    }

    /// Returns the data frames per nanosecond in the first direction of a link, over `measured` frames, after
    /// `skipped` frames that do not count.
    pub(crate) fn data_frames_per_ns(
        &mut self,
        link: &str,
        skipped: u64,
        measured: u64,
    ) -> Result<f64, String> {
        let begin = self.when_sent(link, skipped)?;
        let end = self.when_sent(link, begin.1 + measured)?;
        Ok((end.1 - begin.1) as f64 / end.0.since(begin.0) as f64)
    }

    /// Runs until `frames` data frames have left over a link. Returns the time, and the number of frames that had left by then.
    fn when_sent(&mut self, link: &str, frames: u64) -> Result<(Instant, u64), String> {
        const STEP_NS: u64 = 100;
        const TIMEOUT_NS: u64 = 10_000_000_000;
        let mut last = (self.simulation.now(), 0);
        loop {
            let now = self.simulation.now();
            let sent = self.forward(link)?.data_frames_sent;
            if sent > last.1 {
                last = (now, sent);
            }
            if sent >= frames {
                return Ok((now, sent));
            }
            if now.since(last.0) > TIMEOUT_NS {
                return Err(format!("{link} stalls: {sent} of {frames} data frames have left"));
            }
            self.simulation.step_until(now + STEP_NS).map_err(|stalled| stalled.to_string())?;
        }
    }

    /// Returns the index of a link.
    pub(crate) fn edge(&self, link: &str) -> Result<u16, String> {
        let edge = self.plan.links.iter().position(|one| one.name == link);
        edge.map(|edge| edge as u16).ok_or_else(|| format!("the rack has no link {link}"))
    }

    /// Returns every direction of every link.
    pub(crate) fn directions(&self) -> impl Iterator<Item = LinkDirection<'_>> {
        self.plan.links.iter().enumerate().flat_map(|(edge, link)| {
            [Direction::Forward, Direction::Backward].map(|direction| {
                let statistics = self.simulation.link_statistics(edge as u16, direction);
                LinkDirection { link: &link.name, direction, statistics }
            })
        })
    }

    /// Returns the number of packets that all nodes have retransmitted.
    pub(crate) fn retransmitted(&self) -> u64 {
        let graph = self.plan.graph();
        let ports = (0..self.plan.endpoint_count() as u16).flat_map(|node| {
            let ports = graph.ports(NodeId(node)).len() as u16;
            (0..ports).map(move |port| (NodeId(node), rackloom_protocol::PortId(port)))
        });
        ports.map(|(node, port)| self.simulation.counters(node, port).retransmitted).sum()
    }
}

/// Runs the plan's all-reduce, with these actions on the rack. Returns the mean time of each of its sizes, in nanoseconds, of
/// the rank for which that is longest.
pub(crate) fn all_reduce(
    text: &str,
    seed: u64,
    actions: &[(Instant, Action)],
) -> Result<Vec<(u64, f64)>, String> {
    let sizes = sweep(&plan(text)?, seed, actions)?;
    Ok(sizes.into_iter().map(|size| (size.bytes, size.mean_ns)).collect())
}

/// Performs a workload, in the text format, with one algorithm for its collectives. Returns the time of its iteration in nanoseconds.
pub(crate) fn iteration_ns(
    rack: &str,
    seed: u64,
    workload: &str,
    algorithm: AlgorithmKind,
) -> Result<f64, String> {
    let plan = plan(rack)?;
    let workload = text::read_checked(workload, "workload").map_err(|errors| errors.to_string())?;
    let list =
        AlgorithmList::new(&[AlgorithmChoice(Some(algorithm))]).map_err(|objection| objection.message)?;
    let prepared =
        rackloom_jobs::prepare_workload(&plan, workload, &list).map_err(|error| error.to_string())?;
    let job =
        |rank| rackloom_jobs::perform_workload(&plan, NodeId(rank), seed, &prepared, ComputeMode::Sleep);
    let jobs = (0..plan.endpoint_count() as u16).map(job).collect();
    let mut simulation = Simulation::new(&plan, seed, jobs);
    simulation.run().map_err(|stalled| stalled.to_string())?;
    let results: Vec<_> = simulation.take_jobs().iter_mut().map(|job| job.result()).collect();
    if let Some(wrong) = results.iter().find(|result| !result.is_pass()) {
        return Err(format!("the workload is wrong: {:?}", wrong.failures));
    }
    let names = plan.members.iter().map(|member| member.name.as_str());
    let parts = names.zip(&results).filter_map(|(name, result)| Some((name, result.workload.as_ref()?)));
    let report = WorkloadReport::of(parts).ok_or("the workload was not measured")?;
    Ok(report.iteration_ns as f64)
}

/// Times of one size of an all-reduce, of the rank for which the mean is longest.
pub(crate) struct Sweep {
    pub(crate) bytes: u64,
    pub(crate) mean_ns: f64,
    /// Mean of the rank for which it is shortest: of the rank that began last, if all end together.
    pub(crate) least_mean_ns: f64,
    pub(crate) median_ns: f64,
    /// Shortest run.
    pub(crate) least_ns: f64,
    /// Time that 99 % of the runs do not exceed.
    pub(crate) p99_ns: f64,
    /// Number of changes of the algorithm in the course of the runs.
    pub(crate) changes: usize,
}

/// Runs the plan's all-reduce, with these actions on the rack. Returns the times of each of its sizes.
pub(crate) fn sweep(plan: &Plan, seed: u64, actions: &[(Instant, Action)]) -> Result<Vec<Sweep>, String> {
    let jobs = rackloom_jobs::build_all(plan, seed, &Inputs::Pattern);
    let mut simulation = Simulation::new(plan, seed, jobs);
    for (at, action) in actions {
        simulation.schedule(*at, *action);
    }
    simulation.run().map_err(|stalled| stalled.to_string())?;
    let mut slowest: Vec<Sweep> = Vec::new();
    for mut job in simulation.take_jobs() {
        let result = job.result();
        if !result.is_pass() {
            return Err(format!("the all-reduce is wrong: {:?}", result.failures));
        }
        for (index, row) in result.sweep.iter().enumerate() {
            let size = Sweep {
                bytes: row.size_bytes,
                mean_ns: row.time_us * 1e3,
                least_mean_ns: row.time_us * 1e3,
                median_ns: row.time_p50_us.unwrap_or(f64::NAN) * 1e3,
                least_ns: row.time_min_us.unwrap_or(f64::NAN) * 1e3,
                p99_ns: row.time_p99_us.unwrap_or(f64::NAN) * 1e3,
                changes: row.rechoices.iter().filter(|rechoice| rechoice.from != rechoice.to).count(),
            };
            match slowest.get_mut(index) {
                Some(slowest) => {
                    let least_mean_ns = slowest.least_mean_ns.min(size.mean_ns);
                    if slowest.mean_ns < size.mean_ns {
                        *slowest = size;
                    }
                    slowest.least_mean_ns = least_mean_ns;
                }
                None => slowest.push(size),
            }
        }
    }
    Ok(slowest)
}
