//! Construction of the job of a workload, and the choice of its algorithms.
//!
//! Every process must choose equally, so the closed forms take their numbers from the plan and measure nothing.

use std::sync::Arc;

use rackloom_collectives::choose::{Fabric, TopologyKind, choose};
use rackloom_collectives::{Algorithm, AlgorithmKind, Refused, Request};
use rackloom_control::source::ComputeMode;
use rackloom_plan::{AlgorithmList, CollectivePlan, LocalPath, Plan};
use rackloom_protocol::{MemberRole, NodeId};
use rackloom_workloads::Workload;

use super::fabric;
use super::shared::{Seeds, ranks, timeout_ns};
use crate::job::Job;
use crate::pairs::{Measure, PairSettings};
use crate::workload::{Prepared, Rack, WorkloadError, WorkloadSettings, workload};

/// Time per byte that is assumed of links without a rate, in nanoseconds: a copy in memory at 10 GB/s.
const LINK_NS_PER_BYTE: f64 = 0.1;
/// Latency of one hop beside its delay, in nanoseconds.
const HOP_NS: f64 = 500.0;
/// A job shows progress this many times while the watchdog waits.
const SHOWN_PER_WATCHDOG: u64 = 8;

/// Prepares a workload for the GPU nodes of a plan. A collective runs by the first of the listed algorithms that can perform it,
/// and otherwise by the one with the least estimated time. Ranks of one process share the result.
///
/// # Errors
/// The workload contradicts itself or does not fit the rack, a computation is stated by its work and its rank has no compute rate, or none of the listed algorithms can perform a collective of it.
pub fn prepare_workload(
    plan: &Plan,
    workload: Workload,
    algorithms: &AlgorithmList,
) -> Result<Arc<Prepared>, WorkloadError> {
    let (ranks, servers, fabric) = (ranks(plan), plan.server_of_each_rank(), fabric_of(plan));
    let endpoints = plan.members.iter().filter(|member| member.role == MemberRole::Endpoint);
    let (memory_bytes, devices): (Vec<_>, Vec<_>) =
        endpoints.map(|member| (member.memory_bytes, member.device)).unzip();
    let choose = |request: &Request<'_>| algorithm(request, algorithms.kinds(), &fabric);
    let rack = Rack {
        ranks: &ranks,
        memory_bytes: &memory_bytes,
        devices: &devices,
        servers: &servers,
        choose: &choose,
    };
    let prepared = Prepared::new(workload, rack)?;
    must_be_suitable(&prepared, algorithms)?;
    Ok(Arc::new(prepared))
}

/// Builds one rank's job of performing a workload, instead of the plan's own job. In virtual time `compute` is
/// [`ComputeMode::Sleep`].
#[must_use]
pub fn perform_workload(
    plan: &Plan,
    rank: NodeId,
    seeds: impl Into<Seeds>,
    prepared: &Arc<Prepared>,
    compute: ComputeMode,
) -> Box<dyn Job> {
    let default = PairSettings::new(Measure::Bandwidth);
    let Seeds { data: seed, keys: key_seed } = seeds.into();
    let watchdog_ns = plan.settings.watchdog_ns;
    let settings = WorkloadSettings {
        seed,
        key_seed,
        compute,
        progress_ns: if watchdog_ns == 0 { u64::MAX } else { watchdog_ns / SHOWN_PER_WATCHDOG },
        start_timeout_ns: timeout_ns(plan, default.start_timeout_ns),
        drain_timeout_ns: timeout_ns(plan, default.drain_timeout_ns),
    };
    workload(rank, ranks(plan), Arc::clone(prepared), settings)
}

/// Returns the algorithm of a collective.
fn algorithm(request: &Request<'_>, listed: &[AlgorithmKind], fabric: &Fabric) -> Result<Algorithm, Refused> {
    let segments = CollectivePlan::default().segments as usize;
    let segments = segments.try_into().unwrap_or(core::num::NonZeroUsize::MIN);
    let listed = listed.iter().map(|kind| kind.with_segments(segments));
    // Switches take no part in workloads.
    let mut suitable =
        listed.filter(|algorithm| algorithm.switches() == 0 && algorithm.does(request.collective));
    match suitable.next() {
        Some(algorithm) => Ok(algorithm),
        None => choose(request, 1, fabric).map(|choice| choice.algorithm),
    }
}

/// Checks that the listed algorithms have an effect.
fn must_be_suitable(prepared: &Prepared, algorithms: &AlgorithmList) -> Result<(), WorkloadError> {
    let is_listed = |algorithm: Algorithm| algorithms.kinds().contains(&algorithm.kind());
    if algorithms.is_auto() || prepared.schedules().any(|schedule| is_listed(schedule.algorithm)) {
        return Ok(());
    }
    let mut names: Vec<_> = prepared.schedules().map(|schedule| schedule.collective.name()).collect();
    names.sort_unstable();
    names.dedup();
    let collectives = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    Err(WorkloadError::Unsuitable { algorithms: algorithms.to_string(), collectives })
}

/// Returns the numbers of the closed forms, from the links of the plan.
fn fabric_of(plan: &Plan) -> Fabric {
    let (kind, planes) = fabric::kind(plan);
    let hops = if matches!(kind, TopologyKind::Star | TopologyKind::LeafSpine { .. }) { 2.0 } else { 1.0 };
    let latency_ps = plan.links.iter().map(|link| link.profile.latency_ps()).max().unwrap_or(0);
    let LocalPath { latency_ns, rate_bits_per_s } = fabric::slowest_local_path(plan);
    let ns_per_byte = |bits_per_s: Option<u64>| bits_per_s.map(|rate| 8e9 / rate.max(1) as f64);
    Fabric {
        kind,
        planes,
        spread: rackloom_plan::spread(&plan.paths.config()),
        alpha_ns: hops * (latency_ps as f64 / 1000.0 + HOP_NS),
        link_ns_per_byte: ns_per_byte(fabric::slowest_bits_per_s(plan)).unwrap_or(LINK_NS_PER_BYTE),
        local_alpha_ns: latency_ns as f64,
        local_ns_per_byte: ns_per_byte(rate_bits_per_s).unwrap_or(0.0),
        reduce_ns_per_byte: 0.0,
        memory_ns_per_byte: 0.0,
        begin_ns: 0.0,
        transfer_limit: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rackloom_collectives::Collective;
    use rackloom_workloads::text;

    const RACK: &str =
        "name: r\nshape: {ring: {nodes: 4}}\nlink: {rate: 100Gbit/s, delay: 200ns}\njob: none\n";

    fn prepared(
        rack: &str,
        workload: &str,
        algorithms: &[AlgorithmKind],
    ) -> Result<Arc<Prepared>, WorkloadError> {
        let plan = Plan::parse(rack, "test").unwrap();
        let workload = text::read(workload, "w").unwrap();
        let choices: Vec<_> =
            algorithms.iter().map(|kind| rackloom_plan::AlgorithmChoice(Some(*kind))).collect();
        let list =
            if choices.is_empty() { AlgorithmList::AUTO } else { AlgorithmList::new(&choices).unwrap() };
        prepare_workload(&plan, workload, &list)
    }

    fn all_reduce(ranks: usize, bytes: &str) -> String {
        let last = ranks - 1;
        format!("workload w\nranks {ranks}\ngroup 0..{last}\nrank 0..{last}\nall-reduce group 0 {bytes}\n")
    }

    #[test]
    fn a_listed_algorithm_is_used_where_it_can_be() {
        let found =
            prepared(RACK, &all_reduce(4, "1MiB"), &[AlgorithmKind::Pairwise, AlgorithmKind::TwoShot]);
        assert_eq!(
            found.unwrap().schedules().map(|one| one.algorithm).collect::<Vec<_>>(),
            [Algorithm::TwoShot]
        );
        let error =
            prepared(RACK, &all_reduce(4, "1MiB"), &[AlgorithmKind::Pairwise]).unwrap_err().to_string();
        assert!(
            error.contains("--algorithm pairwise") && error.contains("its collectives are all-reduce"),
            "{error}"
        );
        assert!(
            prepared(RACK, &all_reduce(4, "1MiB"), &[AlgorithmKind::InSwitch]).is_err(),
            "no unit takes part"
        );
    }

    #[test]
    fn sizes_decide_where_no_algorithm_is_listed() {
        let plan = Plan::parse(RACK, "test").unwrap();
        let chosen = |bytes| {
            let request = Request {
                collective: Collective::AllReduce,
                ranks: 4,
                elements: bytes,
                servers: &[],
                parts: &[],
            };
            algorithm(&request, &[], &fabric_of(&plan)).unwrap()
        };
        assert_ne!(chosen(8), chosen(1 << 26), "few bytes want few steps, many bytes want all links");
    }

    #[test]
    fn work_without_a_compute_rate_is_refused_and_a_duration_is_not() {
        let device = "device: {compute_rate: 1TFLOP/s}\nnodes: {n1: {device: {launch_latency: 1us}}}\n";
        let work = "workload w\nranks 2\nrank 0 1\ncompute 5us\ncompute 3GFLOP 2MiB\n";
        let error = prepared(RACK, work, &[]).unwrap_err();
        let (node, name) = ("n0".to_owned(), "w".to_owned());
        assert_eq!(error, WorkloadError::NoComputeRate { name, node, rank: 0, operation: 1 });
        let text = error.to_string();
        assert!(
            text.contains("rank 0, operation 1") && text.contains("n0 has no compute rate; hint: "),
            "{text}"
        );
        assert!(
            prepared(&format!("{RACK}{device}"), work, &[]).is_ok(),
            "a node inherits the rate of the rack"
        );
        let only_n0 = format!("{RACK}nodes: {{n0: {{device: {{compute_rate: 1TFLOP/s}}}}}}\n");
        let error = prepared(&only_n0, work, &[]).unwrap_err().to_string();
        assert!(error.contains("rank 1, operation 1") && error.contains("n1 has no"), "{error}");
        assert!(prepared(RACK, "ranks 1\nrank 0\ncompute 5us\n", &[]).is_ok());
    }

    #[test]
    fn what_does_not_fit_the_rack_is_refused_with_a_hint() {
        let small = format!("{RACK}nodes: {{n2: {{memory: 64KiB}}}}\n");
        let tenants = format!("{RACK}nodes: {{n3: {{tenant: 1}}}}\n");
        for (rack, workload, words) in [
            (
                RACK,
                all_reduce(5, "1KiB"),
                "workload w has 5 ranks, the rack has 4 GPU nodes; hint: take a rack of at least 5",
            ),
            (&small, all_reduce(4, "1MiB"), "bytes of memory at n2"),
            (&tenants, all_reduce(4, "1KiB"), "belong to several tenants; hint: "),
        ] {
            let error = prepared(rack, &workload, &[]).unwrap_err().to_string();
            assert!(error.contains(words) && error.contains("; hint: "), "{error}");
        }
        assert!(prepared(&tenants, &all_reduce(3, "1KiB"), &[]).is_ok(), "the ranks are of one tenant");
    }
}
