//! Construction of one rank's job from a plan.

mod collective;
mod fabric;
mod shared;
mod workload;

use std::cell::OnceCell;
use std::sync::Arc;

use rackloom_collectives::Refused;
use rackloom_plan::trace::TraceLine;
use rackloom_plan::{CollectivePlan, JobKind, Objection, Plan, Subject, Sweep, TrafficPlan};
use rackloom_protocol::NodeId;

pub use self::shared::Seeds;
pub use self::workload::{perform_workload, prepare_workload};

use self::shared::{participants, ranks, smallest_memory, timeout_ns};
use crate::collective::snapshot::Checkpoints;
use crate::collective::{CollectiveError, CollectiveSettings, Common, Inputs};
use crate::idle::Idle;
use crate::job::Job;
use crate::litmus::{Litmus, LitmusSettings};
use crate::pairs::{Measure, PairError, PairSettings, pairs};
use crate::ranks::Rank;
use crate::trace::{TraceError, TraceSettings, trace};
use crate::traffic::{TrafficError, TrafficSettings, traffic};

/// Largest load and store that every endpoint accepts, in bytes.
const LOAD_STORE_BYTES_MAX: u64 = 16_384;
/// Boundary in bytes: a load is cut at multiples of it.
const LOAD_REQUEST_BYTES: u64 = 256;

/// Builds one rank's part of the job that the plan describes. All ranks must get the same plan and the same seeds.
///
/// A job that cannot run, for example because it does not fit into the members' memory, is built all the same: it ends
/// at once, and its result gives the reason. [`objections`] returns the reasons before anything starts.
#[must_use]
pub fn build(plan: &Plan, rank: NodeId, seeds: impl Into<Seeds>) -> Box<dyn Job> {
    build_on(plan, rank, seeds, &Inputs::Pattern)
}

/// Builds like [`build`], with the user's arrays as input if the job is a collective. All ranks must get all arrays.
#[must_use]
pub fn build_on(plan: &Plan, rank: NodeId, seeds: impl Into<Seeds>, inputs: &Inputs) -> Box<dyn Job> {
    build_from(plan, rank, seeds, inputs, Checkpoints::default())
}

/// Builds like [`build_on`], with snapshots to save or to resume from if the job is a collective.
#[must_use]
pub fn build_from(
    plan: &Plan,
    rank: NodeId,
    seeds: impl Into<Seeds>,
    inputs: &Inputs,
    checkpoints: Checkpoints,
) -> Box<dyn Job> {
    Whole::new(plan, seeds.into(), inputs).job_or_reason(rank, checkpoints)
}

/// Builds the jobs of all ranks, and behind them those of switches that reduce, like [`build_on`] for each, for a process that runs them all. They share what each would compute by itself.
#[must_use]
pub fn build_all(plan: &Plan, seeds: impl Into<Seeds>, inputs: &Inputs) -> Vec<Box<dyn Job>> {
    let whole = Whole::new(plan, seeds.into(), inputs);
    let job = |rank| whole.job_or_reason(NodeId(rank), Checkpoints::default());
    (0..plan.graph().participant_count() as u16).map(job).collect()
}

/// Builds the job of a rank without work that waits only for the ranks for which `is_awaited` returns true. A seat of a
/// standing rack uses it while other seats are vacant: a vacant seat is never reached. `is_awaited` must return false for
/// the own rank.
#[must_use]
pub fn wait_for(plan: &Plan, is_awaited: impl Fn(NodeId) -> bool) -> Box<dyn Job> {
    wait_among(plan, ranks(plan), is_awaited)
}

fn wait_among(plan: &Plan, ranks: Arc<[Rank]>, is_awaited: impl Fn(NodeId) -> bool) -> Box<dyn Job> {
    let others = (0..ranks.len() as u16).map(NodeId).filter(|node| is_awaited(*node)).collect();
    Box::new(Idle::new(ranks, others, timeout_ns(plan, u64::MAX)))
}

/// Builds one rank's job of playing a trace, instead of the plan's own job. Every rank must get all lines, ordered by
/// time.
///
/// # Errors
/// The trace does not fit into the members' memory, or the plan has several tenants.
pub fn play_trace(
    plan: &Plan,
    rank: NodeId,
    seeds: impl Into<Seeds>,
    lines: &[TraceLine],
) -> Result<Box<dyn Job>, TraceError> {
    let default = PairSettings::new(Measure::Bandwidth);
    let Seeds { data: seed, keys: key_seed } = seeds.into();
    let settings = TraceSettings {
        seed,
        key_seed,
        memory_bytes: smallest_memory(plan),
        start_timeout_ns: timeout_ns(plan, default.start_timeout_ns),
        drain_timeout_ns: timeout_ns(plan, default.drain_timeout_ns),
    };
    trace(rank, ranks(plan), settings, lines)
}

/// Returns all reasons for which the plan's job cannot run; empty if it can. Checking a file and running it use this
/// same rule.
#[must_use]
pub fn objections(plan: &Plan, inputs: &Inputs) -> Vec<Objection> {
    let of_first = |plan: &Plan| {
        let whole = Whole::new(plan, plan.settings.seed.into(), inputs);
        whole.job(NodeId(0), Checkpoints::default()).err()
    };
    let mut objections = Vec::from_iter(of_first(plan));
    if objections.first().is_some_and(|objection| objection.about == Subject::Tenants) {
        // Further errors show only if all ranks are of one tenant.
        let mut united = plan.clone();
        united.members.iter_mut().for_each(|member| member.tenant = plan.members[0].tenant);
        objections.extend(of_first(&united));
    }
    objections
}

/// The job of a plan, with what its ranks share.
struct Whole<'a> {
    plan: &'a Plan,
    seeds: Seeds,
    inputs: &'a Inputs,
    ranks: Arc<[Rank]>,
    /// Participants and settings of a collective, once a rank has needed them.
    collective: OnceCell<(Arc<[Rank]>, CollectiveSettings)>,
}

impl<'a> Whole<'a> {
    fn new(plan: &'a Plan, seeds: Seeds, inputs: &'a Inputs) -> Self {
        Self { plan, seeds, inputs, ranks: ranks(plan), collective: OnceCell::new() }
    }

    /// Returns the job of a rank. A job that cannot run ends at once, and its result gives the reason.
    fn job_or_reason(&self, rank: NodeId, checkpoints: Checkpoints) -> Box<dyn Job> {
        self.job(rank, checkpoints).unwrap_or_else(|objection| Box::new(Idle::failed(objection.to_string())))
    }

    fn job(&self, rank: NodeId, checkpoints: Checkpoints) -> Result<Box<dyn Job>, Objection> {
        let Self { plan, seeds, ranks, .. } = self;
        Ok(match &plan.job.kind {
            JobKind::Litmus => {
                let litmus = Litmus::new(rank, ranks.to_vec(), litmus_settings(plan, *seeds));
                Box::new(litmus.map_err(|error| Objection::new(Subject::Memory, error.reason()))?)
            }
            JobKind::Collective(job) => {
                let (participants, settings) = self.collective(job)?;
                crate::collective::collective_from(rank, participants, settings, checkpoints)
                    .map_err(|error| objection_of(&error))?
            }
            JobKind::Latency(sweep) => {
                paired(rank, ranks, pair_settings(plan, Measure::Latency, sweep, *seeds))?
            }
            JobKind::Bandwidth(sweep) => {
                paired(rank, ranks, pair_settings(plan, Measure::Bandwidth, sweep, *seeds))?
            }
            JobKind::Traffic(job) => trafficked(plan, rank, ranks, job, *seeds)?,
            JobKind::None => wait_among(plan, ranks.clone(), |other| other != rank),
        })
    }

    /// Returns the participants and settings of a collective.
    fn collective(&self, job: &CollectivePlan) -> Result<(Arc<[Rank]>, CollectiveSettings), Objection> {
        if let Some(known) = self.collective.get() {
            return Ok(known.clone());
        }
        let Self { plan, seeds, inputs, ranks, .. } = self;
        let settings = collective::settings(plan, job, *seeds, inputs, &Common::default());
        let settings = settings.map_err(|error| objection_of(&error))?;
        Ok(self.collective.get_or_init(|| (participants(plan, ranks), settings)).clone())
    }
}

fn objection_of(error: &CollectiveError) -> Objection {
    Objection::new(of_collective(error), error.reason())
}

fn paired(rank: NodeId, ranks: &Arc<[Rank]>, settings: PairSettings) -> Result<Box<dyn Job>, Objection> {
    let about = |error: &PairError| match error {
        PairError::TooLarge { .. } => Subject::Memory,
        PairError::SeveralTenants => Subject::Tenants,
        PairError::TooFew(_) => Subject::Collective,
    };
    pairs(rank, ranks.clone(), settings).map_err(|error| Objection::new(about(&error), error.reason()))
}

fn trafficked(
    plan: &Plan,
    rank: NodeId,
    ranks: &Arc<[Rank]>,
    job: &TrafficPlan,
    seeds: Seeds,
) -> Result<Box<dyn Job>, Objection> {
    let default = PairSettings::new(Measure::Bandwidth);
    let settings = TrafficSettings {
        pattern: job.pattern,
        bytes: job.bytes,
        messages: job.messages.into(),
        seed: seeds.data,
        key_seed: seeds.keys,
        store_bytes_max: u64::from(plan.settings.rdma_threshold_bytes).min(LOAD_STORE_BYTES_MAX),
        memory_bytes: smallest_memory(plan),
        start_timeout_ns: timeout_ns(plan, default.start_timeout_ns),
        drain_timeout_ns: timeout_ns(plan, default.drain_timeout_ns),
    };
    let about = |error: &TrafficError| match error {
        TrafficError::TooLarge { .. } | TrafficError::NoStore(_) => Subject::Memory,
        TrafficError::SeveralTenants => Subject::Tenants,
        TrafficError::TooFew(_) => Subject::Collective,
    };
    traffic(rank, ranks.clone(), settings).map_err(|error| Objection::new(about(&error), error.reason()))
}

const fn of_collective(error: &CollectiveError) -> Subject {
    match error {
        CollectiveError::Refused(Refused::Unsuitable { .. } | Refused::Segments(_))
        | CollectiveError::AdaptsNamed
        | CollectiveError::NoUnits => Subject::Algorithm,
        CollectiveError::Refused(_)
        | CollectiveError::InputLength { .. }
        | CollectiveError::CannotShrink { .. }
        | CollectiveError::ShrinksByOne => Subject::Collective,
        CollectiveError::TooLarge { .. } => Subject::Memory,
        CollectiveError::SeveralTenants => Subject::Tenants,
    }
}

fn pair_settings(plan: &Plan, measure: Measure, sweep: &Sweep, seeds: Seeds) -> PairSettings {
    let default = PairSettings::new(measure);
    PairSettings {
        sizes: sweep.sizes.iter().collect(),
        repetitions: sweep.repetitions,
        warm_up: sweep.warm_up,
        seed: seeds.data,
        key_seed: seeds.keys,
        store_bytes_max: u64::from(plan.settings.rdma_threshold_bytes).min(LOAD_STORE_BYTES_MAX),
        memory_bytes: smallest_memory(plan),
        start_timeout_ns: timeout_ns(plan, default.start_timeout_ns),
        drain_timeout_ns: timeout_ns(plan, default.drain_timeout_ns),
        ..default
    }
}

/// Returns the litmus settings from the plan and the limits of its core.
fn litmus_settings(plan: &Plan, seeds: Seeds) -> LitmusSettings {
    let default = LitmusSettings::default();
    let requests_max = u64::from(plan.settings.outstanding_loads_max);
    LitmusSettings {
        seed: seeds.data,
        key_seed: seeds.keys,
        bytes_max: u64::from(plan.job.litmus.bytes_max),
        memory_bytes: smallest_memory(plan),
        // A misaligned load needs one more request than its length alone requires.
        store_bytes_max: u64::from(plan.settings.rdma_threshold_bytes)
            .min(LOAD_STORE_BYTES_MAX)
            .min(requests_max.saturating_sub(1) * LOAD_REQUEST_BYTES)
            .max(1),
        rounds: plan.job.litmus.rounds,
        offers_max: requests_max as usize,
        start_timeout_ns: timeout_ns(plan, default.start_timeout_ns),
        drain_timeout_ns: timeout_ns(plan, default.drain_timeout_ns),
        ..default
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(more: &str) -> Plan {
        Plan::parse(&format!("name: r\nshape: {{ring: {{nodes: 4}}}}\n{more}"), "test").unwrap()
    }

    #[test]
    fn a_plan_with_a_litmus_builds_a_rank_with_the_plans_numbers() {
        let plan = plan("job: {litmus: {bytes_max: 64KiB, rounds: 3}}\n");
        let settings = litmus_settings(&plan, 9.into());
        assert_eq!((settings.seed, settings.bytes_max, settings.rounds), (9, 65_536, 3));
        assert_eq!(settings.memory_bytes, plan.members[0].memory_bytes);
        assert_eq!(build(&plan, NodeId(2), 9).regions().len(), 5);
    }

    #[test]
    fn few_outstanding_loads_make_small_loads() {
        let mut plan = plan("");
        plan.change(|plan| plan.settings.outstanding_loads_max = 3);
        assert_eq!(litmus_settings(&plan, 0.into()).store_bytes_max, 512);
    }

    #[test]
    fn keys_follow_from_the_seed() {
        let plan = plan("");
        let keys = |seeds: Seeds| {
            build(&plan, NodeId(1), seeds).regions().iter().map(|region| region.key).collect::<Vec<_>>()
        };
        assert_eq!(keys(1.into()), keys(1.into()));
        assert_ne!(keys(1.into()), keys(2.into()));
        for kind in ["litmus", "collective", "latency", "bandwidth", "traffic"] {
            let plan = super::tests::plan(&format!("job: {kind}\n"));
            let keys = |seeds: Seeds| {
                build(&plan, NodeId(1), seeds).regions().iter().map(|region| region.key).collect::<Vec<_>>()
            };
            assert!(!keys(1.into()).is_empty(), "{kind}");
            assert_ne!(
                keys(1.into()),
                keys(Seeds { data: 1, keys: 2 }),
                "{kind}: the secret of the run decides"
            );
            assert_eq!(keys(2.into()), keys(Seeds { data: 1, keys: 2 }), "{kind}: and nothing else");
        }
    }

    #[test]
    fn every_objection_has_a_subject_and_a_hint() {
        for (more, subjects) in [
            (
                "job: {collective: {collective: broadcast, algorithm: halving-doubling}}",
                &[Subject::Algorithm][..],
            ),
            ("job: {collective: {algorithm: one-shot, bytes: 8MiB}}", &[Subject::Memory]),
            ("job: {collective: {algorithm: in-switch}}", &[Subject::Algorithm]),
            ("job: collective\nnodes: {n3: {tenant: 1}}", &[Subject::Tenants]),
            (
                "job: {collective: {algorithm: pairwise}}\nnodes: {n3: {tenant: 1}}",
                &[Subject::Tenants, Subject::Algorithm],
            ),
            ("job: {latency: {bytes: 8MiB}}", &[Subject::Memory]),
            ("job: latency\nnodes: {n3: {tenant: 1}}", &[Subject::Tenants]),
            ("job: {traffic: {pattern: all-to-all, bytes: 3355443B}}", &[Subject::Memory]),
            ("job: {traffic: {pattern: small-stores, bytes: 5000B}}", &[Subject::Memory]),
            ("job: traffic\nnodes: {n3: {tenant: 1}}", &[Subject::Tenants]),
            ("job: litmus\nnodes: {n3: {tenant: 1}}", &[]),
        ] {
            let objections = objections(&plan(more), &Inputs::Pattern);
            let found: Vec<_> = objections.iter().map(|objection| objection.about).collect();
            assert_eq!(found, subjects, "{more}: {objections:?}");
            assert!(
                objections.iter().all(|objection| !objection.hint.starts_with("docs/")),
                "{objections:?}"
            );
        }
    }

    #[test]
    fn a_litmus_that_does_not_fit_says_so_in_its_result() {
        let mut plan = plan("");
        plan.change(|plan| plan.members.iter_mut().for_each(|member| member.memory_bytes = 1000));
        let failures = build(&plan, NodeId(0), 0).result().failures;
        assert!(failures[0].contains("1000 bytes") || failures[0].contains("there are 1000"), "{failures:?}");
    }
}
