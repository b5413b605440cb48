//! Reduction and multicast in the switches of a star, in virtual time: the bits of the reference, under loss and after the death of a
//! rank or of a switch; and the bytes on the links.

mod common;

use std::sync::Arc;

use common::plan;
use rackloom_collectives::{
    CollectiveKind, ElementType, Parts, ReduceError, ReduceOperation, reduce::reduce,
};
use rackloom_jobs::JobResult;
use rackloom_jobs::collective::{HeldArrays, Inputs};
use rackloom_plan::Plan;
use rackloom_protocol::{Instant, MemberRole, NodeId, PortId, RetransmissionMode};
use rackloom_simulator::{Action, Simulation};

const DONE: [CollectiveKind; 5] = [
    CollectiveKind::AllReduce,
    CollectiveKind::ReduceScatter,
    CollectiveKind::AllGather,
    CollectiveKind::Broadcast,
    CollectiveKind::Reduce,
];

const TIMERS: &str = "timers: {heartbeat_interval: 100us, heartbeat_miss_max: 4, hello_interval: 50us}, \
     transport: {timeout_initial: 1ms, timeout_min: 100us, timeout_max: 10ms, ack_delay: 2us}, watchdog: 1s";

/// Returns a star whose job is a collective in switches. `more`: further keys of the rack, `settings`: further settings of the job.
fn star(nodes: usize, planes: usize, kind: CollectiveKind, settings: &str, more: &str) -> Plan {
    plan(&format!(
        "{{name: rack, shape: {{star: {{nodes: {nodes}, planes: {planes}}}}}, {TIMERS}, {more} \
         job: {{collective: {{collective: {kind}, algorithm: in-switch, {settings} repetitions: 2, warm_up: 0}}}}}}"
    ))
}

/// Input of each rank: consecutive values of a generator, which differ between ranks.
fn arrays(kind: CollectiveKind, ranks: usize, elements: usize, element: ElementType) -> Vec<Vec<u8>> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    let of_rank = |rank| kind.at(0).input_elements(rank, ranks, elements) * element.bytes();
    (0..ranks).map(|rank| (0..of_rank(rank)).map(|_| next()).collect()).collect()
}

/// Result of each rank by the definition of the collective, with one reduction after the other in the order of ranks.
fn wanted(
    kind: CollectiveKind,
    inputs: &[Vec<u8>],
    elements: usize,
    element: ElementType,
) -> Result<Vec<Vec<u8>>, ReduceError> {
    let (ranks, parts) = (inputs.len(), Parts::equal(inputs.len(), elements));
    let mut sum = inputs[0].clone();
    if kind.reduces() {
        for input in &inputs[1..] {
            reduce(ReduceOperation::Sum, element, &mut sum, input)?;
        }
    }
    let part = |rank| {
        let range = parts.part(rank);
        sum[range.start * element.bytes()..range.end * element.bytes()].to_vec()
    };
    Ok((0..ranks)
        .map(|rank| match kind {
            CollectiveKind::ReduceScatter => part(rank),
            CollectiveKind::AllGather => inputs.concat(),
            CollectiveKind::Reduce if rank > 0 => Vec::new(),
            _ => sum.clone(),
        })
        .collect())
}

fn simulation(plan: &Plan, inputs: &Inputs) -> Simulation {
    Simulation::new(plan, 5, rackloom_jobs::build_all(plan, 5, inputs))
}

fn results(simulation: &mut Simulation) -> Vec<JobResult> {
    simulation.take_jobs().iter_mut().map(|job| job.result()).collect()
}

/// Runs on given arrays, and compares the output of every rank with the definition.
fn assert_right(plan: &Plan, kind: CollectiveKind, elements: usize, element: ElementType) {
    let ranks = plan.endpoint_count();
    let arrays = arrays(kind, ranks, elements, element);
    let wanted = wanted(kind, &arrays, elements, element).unwrap();
    let inputs = Inputs::Arrays(Arc::new(HeldArrays { element, bytes: arrays }));
    let mut simulation = simulation(plan, &inputs);
    let what = format!("{kind} of {elements} {element} by {ranks}");
    simulation.run().unwrap_or_else(|stalled| panic!("{what}: {stalled}"));
    let mut jobs = simulation.take_jobs();
    assert!(jobs.len() > ranks, "the switches take part");
    for (rank, job) in jobs.iter_mut().enumerate() {
        let result = job.result();
        assert!(result.is_pass() && result.complete, "{what}, {rank}: {result:?}");
        let Some(output) = job.output() else {
            assert!(rank >= ranks, "{what}: no output at {rank}");
            continue;
        };
        let bytes = simulation.memory(NodeId(rank as u16)).bytes(output.region);
        assert!(bytes[..output.bytes() as usize] == wanted[rank], "{what}: another result at {rank}");
    }
}

#[test]
fn each_collective_gives_the_result_of_its_definition() {
    for (nodes, planes) in [(2, 1), (5, 1), (3, 2), (4, 3)] {
        for kind in DONE {
            let plan = star(nodes, planes, kind, "", "");
            assert_eq!(plan.reducing_switches().map(|count| count.get()), Some(planes));
            for (element, elements) in [
                (ElementType::F64, 0),
                (ElementType::U8, 1),
                (ElementType::F32, 13),
                (ElementType::I32, 4097),
                // Slots are used again.
                (ElementType::U8, 17 * 4096 * planes + 5),
            ] {
                assert_right(&plan, kind, elements, element);
            }
        }
    }
}

#[test]
fn loss_and_corruption_change_only_the_time() {
    for mode in [RetransmissionMode::GoBackN, RetransmissionMode::Selective] {
        for kind in DONE {
            let mut plan = star(4, 1, kind, "", "");
            plan.transport.mode = mode;
            plan.override_links(|link| (link.loss, link.corrupt) = (0.02, 0.01));
            assert_right(&plan, kind, 36 * 4096 + 3, ElementType::U8);
        }
    }
}

#[test]
fn a_switch_that_does_not_reduce_has_no_job() {
    let plan = star(3, 1, CollectiveKind::AllReduce, "", "");
    assert_eq!(plan.members[3].role, MemberRole::ReducingSwitch);
    let mut ring = plan;
    ring.change(|plan| {
        if let rackloom_plan::JobKind::Collective(job) = &mut plan.job.kind {
            job.algorithm = rackloom_collectives::AlgorithmKind::Ring.into();
        }
    });
    assert_eq!((ring.members[3].role, ring.reducing_switches()), (MemberRole::Switch, None));
    let mut simulation = simulation(&ring, &Inputs::Pattern);
    simulation.run().unwrap_or_else(|stalled| panic!("{stalled}"));
    assert_eq!(simulation.take_jobs().len(), 3);
}

#[test]
fn fingerprints_are_checked_where_no_payload_is_kept() {
    for kind in DONE {
        let plan = star(4, 2, kind, "bytes: 1MiB,", "payload: elided,");
        let mut simulation = simulation(&plan, &Inputs::Pattern);
        simulation.run().unwrap_or_else(|stalled| panic!("{kind}: {stalled}"));
        for result in results(&mut simulation) {
            assert!(result.is_pass() && result.complete, "{kind}: {result:?}");
        }
    }
}

#[test]
fn each_link_carries_the_array_once_in_each_direction() {
    let bytes = 4 << 20;
    let sent = |repetitions: u32| {
        let mut plan = star(8, 1, CollectiveKind::AllReduce, "bytes: 4MiB,", "");
        plan.change(|plan| {
            if let rackloom_plan::JobKind::Collective(job) = &mut plan.job.kind {
                job.sweep.repetitions = repetitions;
            }
        });
        let mut simulation = simulation(&plan, &Inputs::Pattern);
        simulation.run().unwrap_or_else(|stalled| panic!("{stalled}"));
        let of = |member: u16, port: u16| simulation.counters(NodeId(member), PortId(port)).data_bytes_sent;
        [(3, 0), (8, 3)].map(|(member, port)| of(member, port))
    };
    let (one, three) = (sent(1), sent(3));
    for (one, three) in one.into_iter().zip(three) {
        let of_run = (three - one) / 2;
        assert!((bytes..bytes * 106 / 100).contains(&of_run), "{of_run} bytes for an array of {bytes}");
    }
}

#[test]
fn the_death_of_a_rank_ends_the_collective_with_its_name() {
    let plan = star(
        5,
        1,
        CollectiveKind::AllReduce,
        "bytes: 8MiB,",
        "defaults: {memory: 256MiB}, link: {rate: 100Gbit/s, delay: 200ns},",
    );
    for killed_us in [30, 500, 900] {
        let mut simulation = simulation(&plan, &Inputs::Pattern);
        simulation.schedule(Instant(killed_us * 1000), Action::Kill { member: NodeId(3) });
        simulation.run().unwrap_or_else(|stalled| panic!("{killed_us} us: {stalled}"));
        let results = results(&mut simulation);
        for result in results.iter().enumerate().filter(|(member, _)| *member != 3).map(|(_, result)| result)
        {
            assert!(!result.complete && result.failures.is_empty(), "{killed_us} us: {result:?}");
            assert_eq!(result.lost_nodes, ["n3"], "{killed_us} us");
        }
    }
}

/// Runs an all-reduce in which a member dies, and returns the results of the other ranks.
fn after_death(member: u16, settings: &str) -> Vec<JobResult> {
    let settings = format!("bytes: 8MiB, {settings}");
    let more = "defaults: {memory: 256MiB}, link: {rate: 100Gbit/s, delay: 200ns},";
    let plan = star(4, 2, CollectiveKind::AllReduce, &settings, more);
    let mut simulation = simulation(&plan, &Inputs::Pattern);
    simulation.schedule(Instant(500_000), Action::Kill { member: NodeId(member) });
    simulation.run().unwrap_or_else(|stalled| panic!("{stalled}"));
    let results = results(&mut simulation).into_iter().take(4).enumerate();
    results.filter(|(rank, _)| *rank != usize::from(member)).map(|(_, result)| result).collect()
}

#[test]
fn the_death_of_a_switch_ends_the_collective_with_its_name() {
    for result in after_death(5, "") {
        assert!(!result.complete && result.failures.is_empty(), "{result:?}");
        assert_eq!(result.lost_nodes, ["s1"]);
    }
}

#[test]
fn after_the_death_of_a_switch_all_ranks_go_on_by_the_ring() {
    for result in after_death(5, "on_loss: shrink,") {
        assert!(result.complete && result.is_pass(), "{result:?}");
        assert_eq!(result.group, ["n0", "n1", "n2", "n3"]);
        assert!(result.verified_bytes >= 2 * (8 << 20), "{}", result.verified_bytes);
    }
}

#[test]
fn after_the_death_of_a_rank_the_others_go_on_by_the_ring() {
    for result in after_death(2, "on_loss: shrink,") {
        assert!(result.complete && result.is_pass(), "{result:?}");
        assert_eq!(result.group, ["n0", "n1", "n3"]);
    }
}
