//! Conversion of a plan's collective to the settings of a collective job.

use std::num::NonZeroUsize;

use rackloom_collectives::{Algorithm, AlgorithmKind};
use rackloom_plan::{CollectivePlan, OnLoss, Plan};

use super::fabric;
use super::shared::{Seeds, smallest_memory, timeout_ns};
use crate::collective::{CollectiveError, CollectiveSettings, Common, Inputs};

/// Returns the settings for the plan's collective.
///
/// # Errors
/// If the plan names reduction in switches, and none of its switches reduces.
pub(super) fn settings(
    plan: &Plan,
    job: &CollectivePlan,
    seeds: Seeds,
    inputs: &Inputs,
    common: &Common,
) -> Result<CollectiveSettings, CollectiveError> {
    let default = CollectiveSettings::default();
    let element = job.element;
    let (topology, planes) = fabric::kind(plan);
    let bytes = element.bytes() as u64;
    let sizes = job.sweep.sizes.iter().map(|size| (size / bytes) as usize);
    let settings = CollectiveSettings {
        collective: job.collective.at(job.root.index()),
        algorithms: algorithms(job, plan.reducing_switches())?,
        adapts: job.adapt,
        operation: job.op,
        element,
        sizes: if job.collective.moves_data() { sizes.collect() } else { vec![0] },
        repetitions: job.sweep.repetitions,
        warm_up: job.sweep.warm_up,
        seed: seeds.data,
        key_seed: seeds.keys,
        inputs: Inputs::Pattern,
        shrinks: job.on_loss == OnLoss::Shrink,
        members: Vec::new(),
        servers: plan.server_of_each_rank(),
        local: fabric::slowest_local_path(plan),
        topology,
        planes,
        spread: rackloom_plan::spread(&plan.paths.config()),
        link_bits_per_s: fabric::slowest_bits_per_s(plan),
        memory_bytes: smallest_memory(plan),
        common: Some(common.clone()),
        start_timeout_ns: timeout_ns(plan, default.start_timeout_ns),
        drain_timeout_ns: timeout_ns(plan, default.drain_timeout_ns),
    };
    Ok(match inputs {
        Inputs::Pattern => settings,
        Inputs::Arrays(arrays) => settings.on_arrays(arrays.clone(), plan.endpoint_count()),
    })
}

/// Returns the named algorithms; none if one is to be chosen. `switches`: number of switches that reduce.
fn algorithms(
    job: &CollectivePlan,
    switches: Option<NonZeroUsize>,
) -> Result<Vec<Algorithm>, CollectiveError> {
    let segments = NonZeroUsize::new(job.segments as usize).unwrap_or(NonZeroUsize::MIN);
    let algorithm = |kind: &AlgorithmKind| match kind {
        AlgorithmKind::InSwitch => {
            let units = Algorithm::InSwitch { switches: switches.unwrap_or(NonZeroUsize::MIN) };
            // A collective that units never perform is refused for that reason, on any rack.
            let can_help = units.does(job.collective.at(job.root.index()));
            if switches.is_none() && can_help { Err(CollectiveError::NoUnits) } else { Ok(units) }
        }
        other => Ok(other.with_segments(segments)),
    };
    job.algorithm.kinds().iter().map(algorithm).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rackloom_collectives::CollectiveKind;
    use rackloom_plan::JobKind;

    fn plan() -> Plan {
        Plan::parse("name: r\nshape: {ring: {nodes: 4}}\njob: collective\n", "test").unwrap()
    }

    fn job(plan: &Plan) -> CollectivePlan {
        let JobKind::Collective(job) = plan.job.kind else { panic!("{:?}", plan.job.kind) };
        job
    }

    #[test]
    fn a_plan_without_a_name_of_an_algorithm_leaves_the_choice_to_the_job() {
        let plan = plan();
        let algorithms = |job: &CollectivePlan| super::algorithms(job, NonZeroUsize::new(2)).unwrap();
        assert_eq!(algorithms(&job(&plan)), []);
        for kind in AlgorithmKind::ALL {
            let job = CollectivePlan { algorithm: kind.into(), segments: 3, ..job(&plan) };
            let [algorithm] = algorithms(&job)[..] else { panic!("{kind}") };
            assert_eq!(algorithm.kind(), kind);
        }
        let in_switch = CollectivePlan { algorithm: AlgorithmKind::InSwitch.into(), ..job(&plan) };
        assert_eq!(algorithms(&in_switch)[0].switches(), 2);
        assert_eq!(super::algorithms(&in_switch, None), Err(CollectiveError::NoUnits));
    }

    #[test]
    fn sizes_are_cut_down_to_whole_elements() {
        let plan = plan();
        let mut job = job(&plan);
        (job.sweep.sizes.from_bytes, job.sweep.sizes.to_bytes) = (6, 100);
        let settings = settings(&plan, &job, 3.into(), &Inputs::Pattern, &Common::default()).unwrap();
        assert_eq!((settings.sizes, settings.seed), (vec![1, 3, 6, 12, 24], 3));
    }

    #[test]
    fn a_barrier_has_one_size_and_that_is_nothing() {
        let plan = plan();
        let job = CollectivePlan { collective: CollectiveKind::Barrier, ..job(&plan) };
        let settings = settings(&plan, &job, 0.into(), &Inputs::Pattern, &Common::default()).unwrap();
        assert_eq!(settings.sizes, [0]);
    }
}
