//! Conversion of a plan's collective to the settings of a collective job.

use std::num::NonZeroUsize;

use rackloom_collectives::{Algorithm, Collective, ElementType, ReduceOperation};
use rackloom_plan::{AlgorithmName, CollectivePlan, OnLoss, Plan};

use super::fabric;
use super::shared::{Seeds, smallest_memory, timeout_ns};
use crate::collective::{CollectiveSettings, Inputs};

/// Returns the settings for the plan's collective.
///
/// # Errors
/// Text of the reason, if the plan requests something that no rank can do.
pub(super) fn settings(
    plan: &Plan,
    job: &CollectivePlan,
    seeds: Seeds,
    inputs: &Inputs,
) -> Result<CollectiveSettings, String> {
    let default = CollectiveSettings::default();
    let element = named(job.element.name(), ElementType::ALL, ElementType::name)?;
    let (topology, planes) = fabric::kind(plan);
    let bytes = element.bytes() as u64;
    let sizes = job.sweep.sizes.iter().map(|size| (size / bytes) as usize);
    let settings = CollectiveSettings {
        collective: collective(job)?,
        algorithms: algorithms(job)?,
        operation: named(job.op.name(), ReduceOperation::ALL, ReduceOperation::name)?,
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
        topology,
        planes,
        link_bits_per_s: fabric::slowest_bits_per_s(plan),
        memory_bytes: smallest_memory(plan),
        start_timeout_ns: timeout_ns(plan, default.start_timeout_ns),
        drain_timeout_ns: timeout_ns(plan, default.drain_timeout_ns),
    };
    Ok(match inputs {
        Inputs::Pattern => settings,
        Inputs::Arrays(arrays) => settings.on_arrays(arrays.clone(), plan.endpoint_count()),
    })
}

fn collective(job: &CollectivePlan) -> Result<Collective, String> {
    let name = job.collective.name();
    Collective::from_name(name, job.root.index()).ok_or_else(|| format!("no such collective: {name}"))
}

/// Returns the named algorithms; none if one is to be chosen.
fn algorithms(job: &CollectivePlan) -> Result<Vec<Algorithm>, String> {
    let segments = NonZeroUsize::new(job.segments as usize).unwrap_or(NonZeroUsize::MIN);
    let names = job.algorithm.names().iter().filter(|name| **name != AlgorithmName::Auto);
    names.map(|name| named(name.name(), Algorithm::all(segments), Algorithm::name)).collect()
}

fn named<T: Copy, const COUNT: usize>(
    name: &str,
    all: [T; COUNT],
    name_of: impl Fn(T) -> &'static str,
) -> Result<T, String> {
    all.into_iter().find(|one| name_of(*one) == name).ok_or_else(|| format!("unknown: {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rackloom_plan::{CollectiveName, ElementName, JobKind, OperatorName};

    fn plan() -> Plan {
        Plan::parse("name: r\nshape: {ring: {nodes: 4}}\njob: collective\n", "test").unwrap()
    }

    fn job(plan: &Plan) -> CollectivePlan {
        let JobKind::Collective(job) = plan.job.kind else { panic!("{:?}", plan.job.kind) };
        job
    }

    #[test]
    fn every_word_of_a_plan_has_a_meaning() {
        let plan = plan();
        for collective in CollectiveName::ALL {
            let job = CollectivePlan { collective: *collective, ..job(&plan) };
            assert_eq!(super::collective(&job).unwrap().name(), collective.name());
        }
        for algorithm in AlgorithmName::ALL {
            let job = CollectivePlan { algorithm: (*algorithm).into(), ..job(&plan) };
            let meant = super::algorithms(&job).unwrap().first().map_or("auto", |one| one.name());
            assert_eq!(meant, algorithm.name());
        }
        for element in ElementName::ALL {
            let job = CollectivePlan { element: *element, ..job(&plan) };
            let settings = settings(&plan, &job, 0.into(), &Inputs::Pattern).unwrap();
            assert_eq!(settings.element.bytes() as u64, element.bytes());
        }
        for op in OperatorName::ALL {
            let job = CollectivePlan { op: *op, ..job(&plan) };
            assert_eq!(
                settings(&plan, &job, 0.into(), &Inputs::Pattern).unwrap().operation.name(),
                op.name()
            );
        }
    }

    #[test]
    fn sizes_are_cut_down_to_whole_elements() {
        let plan = plan();
        let mut job = job(&plan);
        (job.sweep.sizes.from_bytes, job.sweep.sizes.to_bytes) = (6, 100);
        let settings = settings(&plan, &job, 3.into(), &Inputs::Pattern).unwrap();
        assert_eq!((settings.sizes, settings.seed), (vec![1, 3, 6, 12, 24], 3));
    }

    #[test]
    fn a_barrier_has_one_size_and_that_is_nothing() {
        let plan = plan();
        let job = CollectivePlan { collective: CollectiveName::Barrier, ..job(&plan) };
        assert_eq!(settings(&plan, &job, 0.into(), &Inputs::Pattern).unwrap().sizes, [0]);
    }
}
