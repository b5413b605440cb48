//! Collectives on real endpoints and switches: every collective with every algorithm gives the bits of its schedule, on
//! arrays of any size. Corrupted bytes are detected. A loss ends the run with the name of the lost node.

#![allow(dead_code, unreachable_pub, reason = "the rig is a module of this test alone")]

mod rig;

use std::num::NonZeroUsize;
use std::sync::Arc;

use rackloom_collectives::algorithm::suitable;
use rackloom_collectives::choose::TopologyKind;
use rackloom_collectives::{Algorithm, Collective, ElementType, ReduceOperation, Request, build, reference};
use rackloom_jobs::Rank;
use rackloom_jobs::collective::{CollectiveSettings, HeldArrays, Inputs, collective};
use rackloom_jobs::report::Verdict;
use rackloom_plan::Plan;
use rig::Rig;

const SEGMENTS: NonZeroUsize = NonZeroUsize::new(3).unwrap();

fn ranks(plan: &Plan) -> Arc<[Rank]> {
    let endpoints = plan.members.iter().take(plan.endpoint_count());
    endpoints.map(|member| Rank { name: member.name.clone(), tenant: member.tenant }).collect()
}

fn rig(shape: &str, settings: &CollectiveSettings) -> Rig {
    Rig::with(&format!("name: t\nshape: {{{shape}}}\n"), |plan, rank| {
        collective(rank, ranks(plan), settings.clone()).unwrap_or_else(|error| panic!("{error}"))
    })
}

fn once(
    collective: Collective,
    algorithm: Algorithm,
    element: ElementType,
    elements: usize,
) -> CollectiveSettings {
    CollectiveSettings {
        collective,
        algorithms: vec![algorithm],
        element,
        sizes: vec![elements],
        repetitions: 1,
        warm_up: 0,
        ..CollectiveSettings::default()
    }
}

/// Arrays with every bit pattern, including not-a-number values.
fn arrays(settings: &CollectiveSettings, count: usize) -> Vec<Vec<u8>> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    let elements = |rank| settings.collective.input_elements(rank, count, settings.sizes[0]);
    (0..count).map(|rank| (0..elements(rank) * settings.element.bytes()).map(|_| next()).collect()).collect()
}

fn held(bytes: Vec<Vec<u8>>, element: ElementType) -> HeldArrays {
    HeldArrays { element, bytes }
}

/// Runs on a user's arrays. Every rank's output equals that of the schedule run on plain arrays.
fn assert_right(shape: &str, count: usize, settings: &CollectiveSettings) {
    let arrays = arrays(settings, count);
    let request = Request {
        collective: settings.collective,
        ranks: count,
        elements: settings.sizes[0],
        servers: &[],
        parts: &[],
    };
    let schedule = build(&request, settings.algorithms[0]).unwrap();
    let wanted = reference::run(&schedule, settings.operation, settings.element, &arrays).unwrap();
    let settings = CollectiveSettings {
        inputs: Inputs::Arrays(Arc::new(held(arrays, settings.element))),
        ..settings.clone()
    };
    let mut rig = rig(shape, &settings);
    rig.run();
    let what = format!("{} by {} on {shape}", settings.collective, schedule.algorithm);
    for (rank, wanted) in wanted.iter().enumerate() {
        let result = rig.result(rank);
        assert!(result.is_pass(), "{what}, {}, rank {rank}: {:?}", settings.element, result.failures);
        assert_eq!(rig.output(rank).as_ref(), Some(wanted), "{what}, {}, rank {rank}", settings.element);
        assert_eq!(result.verified_bytes, wanted.len() as u64, "{what}");
    }
}

#[test]
fn every_collective_by_every_algorithm_on_every_shape_gives_the_bits_of_its_schedule() {
    for (shape, count) in [
        ("ring: {nodes: 2}", 2),
        ("ring: {nodes: 5}", 5),
        ("star: {nodes: 3, planes: 2}", 3),
        ("full-mesh: {nodes: 8}", 8),
    ] {
        for collective in Collective::all(count - 1) {
            for algorithm in suitable(collective, SEGMENTS) {
                for elements in [0, 1, 13, 4097] {
                    assert_right(shape, count, &once(collective, algorithm, ElementType::F32, elements));
                }
            }
        }
    }
}

#[test]
fn every_element_type_and_operation() {
    for element in ElementType::ALL {
        for operation in ReduceOperation::ALL {
            for algorithm in suitable(Collective::AllReduce, SEGMENTS) {
                let settings =
                    CollectiveSettings { operation, ..once(Collective::AllReduce, algorithm, element, 1001) };
                assert_right("ring: {nodes: 3}", 3, &settings);
            }
        }
    }
}

#[test]
fn arrays_of_many_turns_and_blocks() {
    let elements = (3 << 20) / 4 + 5;
    for algorithm in [Algorithm::Ring, Algorithm::OneShot, Algorithm::HalvingDoubling] {
        assert_right(
            "ring: {nodes: 4}",
            4,
            &once(Collective::AllReduce, algorithm, ElementType::F32, elements),
        );
    }
}

fn sweep() -> CollectiveSettings {
    CollectiveSettings {
        sizes: vec![0, 1, 100, 10_000],
        repetitions: 3,
        warm_up: 2,
        topology: TopologyKind::Ring,
        ..CollectiveSettings::default()
    }
}

#[test]
fn a_sweep_has_a_row_per_size_with_the_reason_for_each_algorithm() {
    let mut rig = rig("ring: {nodes: 4}", &sweep());
    rig.run();
    let report = rig.report();
    assert_eq!(report.verdict, Verdict::Pass, "{:#?}", report.failures);
    assert_eq!(report.sweep.iter().map(|row| row.size_bytes).collect::<Vec<_>>(), [0, 4, 400, 40_000]);
    for row in &report.sweep {
        assert_eq!((row.wrong, row.repetitions, row.what.as_str()), (0, 3, "all-reduce"));
        assert!(row.size_bytes == 0 || (row.time_us > 0.5 && row.time_us < 1000.0), "{row:?}");
        assert!(
            (row.bus_gbps.unwrap() - row.algorithm_gbps.unwrap() * 1.5).abs() < 1e-12,
            "2 (N - 1) / N of 4 ranks: {row:?}"
        );
    }
    // Every run of every size is checked at every rank.
    assert_eq!(report.verified_bytes, 5 * 4 * (4 + 400 + 40_000));
    let choices = report.notes.iter().filter(|note| note.contains("estimated")).count();
    assert_eq!(choices, 4, "{:?}", report.notes);
    assert!(report.notes.iter().any(|note| note.contains("alpha") && note.contains("between n0 and n1")));
}

#[test]
fn what_is_measured_of_the_fabric_is_what_the_fabric_is() {
    let mut rig = rig("ring: {nodes: 3}", &sweep());
    rig.run();
    let notes = rig.report().notes;
    let note = notes.iter().find(|note| note.contains("alpha")).unwrap();
    // The rig's links take 500 ns and have no rate. Beta is not zero because of a window that had to be acknowledged.
    assert!(note.contains("alpha 0.50 us, beta 0.00"), "{note}");
}

fn run_to(rig: &mut Rig, rank: usize, activity: &str) {
    let mut seen = Vec::new();
    rig.run_until(|rig| {
        seen.push(rig.waiting_for(rank));
        seen.last().is_some_and(|seen| seen.contains(activity))
    });
    seen.dedup();
    assert!(rig.waiting_for(rank).contains(activity), "the run never came to {activity:?}: {seen:#?}");
}

#[test]
fn a_wrong_element_is_found_named_and_leaves_no_output() {
    let settings = once(Collective::AllGather, Algorithm::Ring, ElementType::I64, 1000);
    let settings = CollectiveSettings { warm_up: 1, ..settings };
    let mut rig = rig("ring: {nodes: 4}", &settings);
    // The data from n1 has been passed on, and no rank writes there any more.
    run_to(&mut rig, 2, "run 2 of 2, step 4 of");
    rig.memory(2, 4)[300 * 8 + 3] ^= 0x10;
    rig.run();
    let result = rig.result(2);
    assert_eq!(result.mismatch_count, 1);
    let mismatch = &result.mismatches[0];
    assert_eq!((mismatch.region, mismatch.offset), (4, 2403));
    assert_eq!(mismatch.location, "element 300 of the result of all-gather");
    assert_eq!(rig.output(2), None);
    let report = rig.report();
    assert_eq!(report.verdict, Verdict::Fail);
    assert_eq!(report.sweep[0].wrong, 1);
}

#[test]
fn a_killed_rank_is_named_by_every_other_wherever_they_are() {
    for (algorithm, activity) in [
        (None, "measuring the fabric, 5 of"),
        (Some(Algorithm::Ring), "400 bytes by ring, run 1 of 5, step 2"),
        (Some(Algorithm::Ring), "400 bytes by ring, run 5 of 5, step 6"),
        (Some(Algorithm::OneShot), "10000 bytes by one-shot, run 2 of 5, step 2"),
        (Some(Algorithm::HalvingDoubling), "the barrier before all-reduce of 10000 bytes"),
    ] {
        let settings = CollectiveSettings {
            algorithms: algorithm.into_iter().collect(),
            sizes: vec![100, 2500],
            ..sweep()
        };
        let mut rig = rig("ring: {nodes: 4}", &settings);
        run_to(&mut rig, 0, activity);
        rig.kill(2);
        let killed_at = rig.now;
        rig.run();
        for rank in [0, 1, 3] {
            let result = rig.result(rank);
            assert!(!result.complete && rig.output(rank).is_none(), "{activity}");
            assert_eq!(result.lost_nodes, ["n2"], "{activity}: {:?}", result.failures);
            assert_eq!(result.mismatch_count, 0, "{activity}: {:?}", result.mismatches);
            assert!(!result.failures.iter().any(|failure| failure.contains("did not end")), "{activity}");
        }
        let timers = rig.plan.timers;
        let noticed_by = timers.heartbeat_interval_ns * u64::from(timers.heartbeat_miss_max);
        assert!(rig.now.since(killed_at) <= 2 * noticed_by, "{activity}");
    }
}

#[test]
fn what_cannot_be_done_is_refused_before_anything_starts() {
    let refused = |settings: CollectiveSettings, tenants: [u16; 2]| {
        let rank = |tenant| Rank { name: "n".into(), tenant: rackloom_protocol::Tenant(tenant) };
        let ranks = tenants.map(rank).into();
        collective(rackloom_protocol::NodeId(0), ranks, settings).err().map(|error| error.to_string())
    };
    let all_reduce = once(Collective::AllReduce, Algorithm::Ring, ElementType::F32, 100);
    assert_eq!(refused(all_reduce.clone(), [0, 0]), None);
    assert!(refused(all_reduce.clone(), [0, 1]).unwrap().contains("several tenants"));
    let small = CollectiveSettings { memory_bytes: 1000, ..all_reduce.clone() };
    assert!(refused(small, [0, 0]).unwrap().contains("there are 1000"));
    let short = CollectiveSettings {
        inputs: Inputs::Arrays(Arc::new(held(vec![vec![0; 400], vec![0; 399]], ElementType::F32))),
        ..all_reduce.clone()
    };
    assert!(refused(short, [0, 0]).unwrap().contains("rank 1 gives 399 bytes"));
    let unsuitable = CollectiveSettings { algorithms: vec![Algorithm::Pairwise], ..all_reduce };
    assert!(refused(unsuitable, [0, 0]).unwrap().contains("pairwise cannot do all-reduce"));
}
