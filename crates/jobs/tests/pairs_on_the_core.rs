//! Latency and bandwidth on real endpoints, over links of 500 ns without a rate.

#![allow(dead_code, unreachable_pub, reason = "the rig is a module of this test alone")]

mod rig;

use rackloom_jobs::Rank;
use rackloom_jobs::pairs::{Measure, PairSettings, Pairs, pairs};
use rackloom_jobs::report::Verdict;
use rackloom_plan::Plan;
use rig::Rig;

fn rig(shape: &str, settings: &PairSettings) -> Rig {
    let ranks = |plan: &Plan| {
        let endpoints = plan.members.iter().take(plan.endpoint_count());
        endpoints.map(|member| Rank { name: member.name.clone(), tenant: member.tenant }).collect()
    };
    Rig::with(&format!("name: t\nshape: {{{shape}}}\n"), |plan, rank| {
        pairs(rank, ranks(plan), settings.clone()).unwrap_or_else(|error| panic!("{error}"))
    })
}

fn settings(measure: Measure) -> PairSettings {
    PairSettings {
        sizes: vec![0, 1, 100, 5000, 300_000],
        repetitions: 10,
        warm_up: 2,
        ..PairSettings::new(measure)
    }
}

#[test]
fn a_latency_is_what_the_way_takes() {
    let mut rig = rig("ring: {nodes: 3}", &settings(Measure::Latency));
    rig.run();
    let report = rig.report();
    assert_eq!(report.verdict, Verdict::Pass, "{:#?}", report.failures);
    let row = |what: &str, size: u64| {
        let mut rows = report.sweep.iter().filter(|row| row.what == what && row.size_bytes == size);
        rows.next().unwrap_or_else(|| panic!("no row {what} {size}: {:#?}", report.sweep)).clone()
    };
    for what in ["store", "put", "get"] {
        let time_us = row(what, 100).time_us;
        // The round trip, and at most the time for which an acknowledgement may be delayed.
        let held_us = rig.plan.transport.ack_delay_ns as f64 / 1000.0;
        assert!((1.0..=1.0 + held_us).contains(&time_us), "{what} takes {time_us} us");
    }
    assert!((0.5..0.6).contains(&row("send", 100).time_us), "one way: {:?}", row("send", 100));
    assert!((0.5..0.6).contains(&row("send", 0).time_us), "no bytes, one way");
    assert!(
        !report.sweep.iter().any(|row| row.what == "store" && row.size_bytes > 1024),
        "too large for a store"
    );
    assert!(report.sweep.iter().all(|row| row.wrong == 0 && row.pair == "n0->n1" && row.repetitions == 10));
}

#[test]
fn bandwidth_counts_messages_that_are_in_flight_together() {
    let mut rig = rig("full-mesh: {nodes: 2}", &settings(Measure::Bandwidth));
    rig.run();
    let report = rig.report();
    assert_eq!(report.verdict, Verdict::Pass, "{:#?}", report.failures);
    let put = report.sweep.iter().find(|row| row.what == "put" && row.size_bytes == 100).unwrap();
    assert!(put.time_us < 0.5, "ten messages share one way: {put:?}");
    assert!(
        (put.algorithm_gbps.unwrap() - 100.0 / (put.time_us * 1000.0)).abs() < 1e-9
            && put.bus_gbps == put.algorithm_gbps
    );
    assert!(report.verified_bytes > 600_000);
}

#[test]
fn all_pairs_have_a_row_each() {
    let settings = PairSettings { pairs: Pairs::All, sizes: vec![64], ..settings(Measure::Latency) };
    let mut rig = rig("ring: {nodes: 4}", &settings);
    rig.run();
    let report = rig.report();
    assert_eq!(report.verdict, Verdict::Pass, "{:#?}", report.failures);
    let sends: Vec<_> = report.sweep.iter().filter(|row| row.what == "send").collect();
    assert_eq!(sends.len(), 12);
    let time_us = |pair: &str| sends.iter().find(|row| row.pair == pair).unwrap().time_us;
    assert!(time_us("n0->n2") > 1.9 * time_us("n0->n1"), "two hops are farther than one");
}

#[test]
fn a_byte_that_never_came_is_counted() {
    let settings = PairSettings { sizes: vec![5000], ..settings(Measure::Latency) };
    let mut rig = rig("ring: {nodes: 2}", &settings);
    rig.run_until(|rig| {
        rig.waiting_for(1).contains("the barrier before put of 5000 bytes") && rig.memory(1, 3)[4999] != 0
    });
    // The exchange is over or not begun. The test changes the source of the next data without the core.
    rig.memory(0, 2)[17] ^= 1;
    rig.run();
    let report = rig.report();
    assert_eq!(report.verdict, Verdict::Fail);
    assert_eq!(report.sweep.iter().find(|row| row.what == "put").unwrap().wrong, 1, "{:#?}", report.sweep);
}

#[test]
fn a_death_ends_it_with_the_name() {
    for dead in [0, 1, 2] {
        let mut rig = rig("ring: {nodes: 3}", &settings(Measure::Latency));
        rig.run_until(|rig| rig.waiting_for(0).contains("get of 5000"));
        rig.kill(dead);
        rig.run();
        for rank in (0..3).filter(|rank| *rank != dead) {
            assert_eq!(rig.result(rank).lost_nodes, [format!("n{dead}")], "{:?}", rig.result(rank).failures);
        }
    }
}
