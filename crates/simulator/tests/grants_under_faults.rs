//! Racks with `congestion: grants` under fault scripts, in virtual time: all data are right, nothing stalls, no more is granted than the pool,
//! and all pools are free at the end.

mod common;

use common::plan;
use rackloom_jobs::collective::Inputs;
use rackloom_jobs::recorder::Recording;
use rackloom_jobs::{JobResult, Oracle, build_all};
use rackloom_plan::faults::{DrawLimits, FaultScript, draw};
use rackloom_plan::impair::Direction;
use rackloom_plan::{Checks, Clock, Plan};
use rackloom_protocol::{Inspect, NodeId};
use rackloom_simulator::{MemberState, Simulation, parts};

/// Racks that cross grants with the other options: a name, their keys without the job, and a link that faults interrupt.
const FABRICS: [(&str, &str, &str); 10] = [
    (
        "one plane",
        "shape: {star: {nodes: 5}}, transport: {congestion: grants, grant_packets: 2}, link: {LINK}",
        "n1--s0",
    ),
    (
        "three planes, spray, default pool",
        "shape: {star: {nodes: 4, planes: 3}}, paths: {policy: spray, order: none}, transport: {congestion: grants}, link: {LINK}",
        "n1--s2",
    ),
    (
        "two planes, link-level retry",
        "shape: {star: {nodes: 4, planes: 2}}, paths: {policy: round-robin, order: none}, \
         transport: {congestion: grants, grant_packets: 3, ack_every_packets: 1}, link: {LINK, llr: on}",
        "n1--s1",
    ),
    (
        "few credits",
        "shape: {star: {nodes: 4}}, credits: {limit: 200}, transport: {congestion: grants, grant_packets: 4}, link: {LINK}",
        "n2--s0",
    ),
    (
        "pauses",
        "shape: {star: {nodes: 4}}, transport: {congestion: grants, grant_packets: 8}, link: {LINK, pfc: on}",
        "n1--s0",
    ),
    (
        "ring with transit",
        "shape: {ring: {nodes: 5}}, transport: {congestion: grants, grant_packets: 1}, link: {LINK}",
        "n1--n2",
    ),
    (
        "ring with link-level retry, go-back-n",
        "shape: {ring: {nodes: 4}}, transport: {congestion: grants, mode: go-back-n, grant_packets: 2}, link: {LINK, llr: on}",
        "n1--n2",
    ),
    (
        "torus",
        "shape: {torus: {x: 3, y: 3}}, channels: {rise: dateline}, transport: {congestion: grants, grant_packets: 3}, link: {LINK}",
        "n0--n1",
    ),
    (
        "mesh without payload",
        "shape: {full-mesh: {nodes: 4}}, payload: elided, transport: {congestion: grants}, link: {LINK}",
        "n1--n2",
    ),
    (
        "small window",
        "shape: {star: {nodes: 4}}, forwarding: {mode: store-and-forward}, \
         transport: {congestion: grants, window_packets: 4, ack_every_packets: 2, grant_packets: 64}, link: {LINK}",
        "n1--s0",
    ),
];
const LINK: &str = "rate: 100Gbit/s, delay: 500ns";

/// Jobs: many senders to one, all to all in both directions, and a collective with an error for each run that a loss breaks off.
const JOBS: [&str; 3] = [
    "{traffic: {pattern: incast, bytes: 16KiB, messages: 12}}",
    "{traffic: {pattern: all-to-all, bytes: 12KiB, messages: 6}}",
    "{collective: {bytes: 64KiB, repetitions: 3, warm_up: 0, on_loss: shrink}}",
];

/// Faults after which all nodes still live, and all data must be right.
const FAULTS: [(&str, &str); 10] = [
    ("loss", "{what: loss, where: all, rate: 5%}"),
    ("acknowledgements and grants lost", "{what: loss, where: all, rate: 20%, kinds: [ack]}"),
    ("corruption", "{what: corrupt, where: all, rate: 5%}"),
    (
        "twice and out of order",
        "{what: duplicate, where: all, rate: 10%}\n  - {what: reorder, where: all, rate: 10%}",
    ),
    ("down and up", "{what: down, where: LINK, at: 15us, for: 30us}"),
    ("cable pulled and back", "{what: unplug, where: LINK, at: 15us, for: 30us}"),
    ("slow link", "{what: slow, where: LINK, share: 10%, at: 8us}"),
    ("longer path", "{what: delay, where: LINK, by: 8us, at: 10us, for: 60us}"),
    ("paused node", "{what: pause, where: n0, at: 15us, for: 40us}"),
    ("slow memory", "{what: slow-memory, where: [n0], by: 700ns, at: 8233ns, for: 40us}"),
];

fn rack(fabric: &str, job: &str) -> Plan {
    let mut plan = plan(&format!("{{name: grants, {}, job: {job}}}", fabric.replace("LINK", LINK)));
    // Scripts may corrupt frames.
    plan.change(|plan| plan.settings.checks = Checks::Always);
    plan
}

fn script(plan: &Plan, events: &str, link: &str, expect: &str) -> FaultScript {
    let text = format!("name: faults\nevents:\n  - {}\nexpect: {expect}\n", events.replace("LINK", link));
    FaultScript::parse(&text, "faults", plan).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// End of a run.
struct Ended {
    /// Results of the nodes that live.
    results: Vec<JobResult>,
    /// Most packets that one node had granted at a time.
    granted_max: u32,
    /// Findings of the oracles, and pools that are not free, after all faults were healed.
    wrong: Vec<String>,
    /// Nodes whose pools were judged.
    pools: usize,
    fault_transitions: usize,
}

/// Runs a rack under a script to the end of its job, heals it, and looks at all pools.
fn run(context: &str, plan: &Plan, script: &FaultScript) -> Ended {
    let mut simulation =
        Simulation::new(plan, plan.settings.seed, build_all(plan, plan.settings.seed, &Inputs::Pattern));
    simulation.watch();
    simulation.limit_events(20_000_000);
    simulation.play(script, plan, plan.settings.seed);
    let nodes = || (0..plan.endpoint_count() as u16).map(NodeId);
    let is_live = |simulation: &Simulation, node: NodeId| simulation.state(node) != MemberState::Killed;
    let mut granted_max = 0;
    let look = |simulation: &Simulation| {
        let granted = nodes().filter_map(|node| simulation.endpoint(node).granted_packets());
        granted_max = granted.fold(granted_max, u32::max);
    };
    simulation.run_watched(25, look).unwrap_or_else(|stalled| panic!("{context}: {stalled}"));
    let fault_transitions = simulation.fault_transitions().len();
    let living: Vec<_> = nodes().filter(|node| is_live(&simulation, *node)).collect();
    let jobs = nodes().zip(simulation.take_jobs()).filter(|(node, _)| living.contains(node));
    let results = jobs.map(|(_, mut job)| job.result()).collect();
    simulation.heal_and_probe();
    let mut wrong = simulation.verdicts().failures();
    let judged = simulation.verdicts().of(Oracle::Credits).map_or(0, |tally| tally.looked);
    let pools = living.iter().filter(|node| simulation.endpoint(**node).granted_packets() == Some(0)).count();
    if pools != living.len() || judged < pools as u64 {
        wrong.push(format!("{pools} pools of {} are free, {judged} were judged", living.len()));
    }
    Ended { results, granted_max, wrong, pools, fault_transitions }
}

#[test]
fn all_data_are_right_and_all_pools_are_free_under_faults_of_links_and_nodes() {
    for (name, fabric, link) in FABRICS {
        for job in JOBS {
            let plan = rack(fabric, job);
            let pool = plan.transport_on(Clock::Virtual).grant_pool().expect("a pool");
            let switches = plan.members.iter().filter(|member| member.role.is_switch()).count();
            for (fault, events) in FAULTS {
                // A node behind the only switch is lost when both of its ends see no carrier.
                if switches == 1 && events.contains("unplug") {
                    continue;
                }
                let context = format!("{name}, {fault}, {job}");
                let ended = run(&context, &plan, &script(&plan, events, link, "{ends: right, happen: any}"));
                assert_eq!(ended.wrong, [""; 0], "{context}");
                assert_eq!(ended.pools, plan.endpoint_count(), "{context}");
                assert!(ended.fault_transitions > 0, "{context}: no fault has begun");
                assert!(
                    (1..=pool).contains(&ended.granted_max),
                    "{context}: {} of {pool}",
                    ended.granted_max
                );
                for (rank, result) in ended.results.iter().enumerate() {
                    let JobResult {
                        failures,
                        clean_errors,
                        refusals,
                        lost_nodes,
                        mismatch_count,
                        complete,
                        oracles,
                        ..
                    } = result;
                    assert!(
                        result.is_pass(),
                        "{context}, rank {rank}: {failures:?} {clean_errors:?} {refusals:?} {lost_nodes:?} {mismatch_count} {complete} {oracles:?}"
                    );
                }
                let is_verified = ended.results.iter().any(|result| result.verified_bytes > 0);
                assert!(is_verified || fabric.contains("elided"), "{context}");
            }
        }
    }
}

/// Nodes end with errors that name what is lost. No byte is wrong, and the pools of the others are whole, also when the node is back.
#[test]
fn a_node_that_is_killed_and_returns_and_a_plane_that_is_lost_leave_no_share_behind() {
    let kills = [
        "{what: kill, where: n2, at: 12us}",
        "{what: kill, where: n2, at: 12us, for: 60us}",
        "{what: kill, where: n0, at: 12us, for: 60us}",
        "{what: partition, where: [n0, n1], at: 12us, for: 100us}",
        "{what: down, where: n1, at: 12us, for: 5ms}",
        "{what: unplug, where: LINK, at: 15us, for: 30us}",
    ];
    for (name, fabric, link) in FABRICS {
        for job in JOBS {
            let plan = rack(fabric, job);
            for events in kills {
                let context = format!("{name}, {events}, {job}");
                let script = script(&plan, events, link, "{ends: right-or-clean-error, happen: any}");
                let ended = run(&context, &plan, &script);
                assert_eq!(ended.wrong, [""; 0], "{context}");
                assert!(ended.granted_max > 0 && ended.fault_transitions > 0, "{context}");
                for (rank, result) in ended.results.iter().enumerate() {
                    assert_eq!(
                        (result.mismatch_count, &result.failures[..]),
                        (0, &[][..]),
                        "{context}, rank {rank}"
                    );
                }
            }
        }
    }
    // A plane of several is lost, and its switch: the others carry all data.
    for events in ["{what: unplug, where: plane 1, at: 12us}", "{what: kill, where: s1, at: 12us}"] {
        for (name, fabric, link) in &FABRICS[1..3] {
            for job in JOBS {
                let (context, plan) = (format!("{name}, {events}, {job}"), rack(fabric, job));
                let ended = run(&context, &plan, &script(&plan, events, link, "{ends: right, happen: any}"));
                assert_eq!(ended.wrong, [""; 0], "{context}");
                assert!(ended.fault_transitions > 0, "{context}");
                assert!(ended.results.iter().all(JobResult::is_pass), "{context}");
            }
        }
    }
}

/// Scripts of campaigns, with several faults at once.
#[test]
fn drawn_scripts_leave_no_share_behind() {
    for (number, (name, fabric, _)) in (0..).zip(FABRICS) {
        for job in JOBS {
            let plan = rack(fabric, job);
            for seed in 0..4 {
                let reach = DrawLimits { begin_ns: 100_000, last_ns: 300_000 };
                let script = draw(&plan, 1_000 * number + seed, reach);
                let context = format!("{name}, {job}, under\n{}", script.to_text(&plan));
                let ended = run(&context, &plan, &script);
                assert_eq!(ended.wrong, [""; 0], "{context}");
                let mismatches: u64 = ended.results.iter().map(|result| result.mismatch_count).sum();
                assert!(mismatches == 0 || script.refuses(), "{context}: {mismatches} wrong bytes");
            }
        }
    }
}

/// Five nodes send to one through a switch. The faults lose no frame and are shorter than a timeout, so nothing is sent twice.
#[test]
fn the_queue_is_within_its_bound_while_links_are_slow_and_nodes_pause() {
    const SENDERS: u16 = 5;
    let queue_max = |congestion: &str, events: &str| {
        let transport = format!("ack_every_packets: 1, timeout_min: 1ms, timeout_initial: 2ms{congestion}");
        let plan = plan(&format!(
            "{{name: incast, shape: {{star: {{nodes: {}}}}}, link: {{{LINK}}}, transport: {{{transport}}}, ring_bytes: 16MiB, \
             job: {{traffic: {{pattern: incast, bytes: 64KiB, messages: 8}}}}}}",
            SENDERS + 1
        ));
        let jobs = build_all(&plan, plan.settings.seed, &Inputs::Pattern);
        let mut simulation = Simulation::new(&plan, plan.settings.seed, jobs);
        simulation.play(&script(&plan, events, "", "{ends: right}"), &plan, plan.settings.seed);
        let sent = |simulation: &Simulation, link: u16, direction| {
            simulation.link_statistics(link, direction).data_frames_sent
        };
        let mut queue_max = 0;
        let look = |simulation: &Simulation| {
            let all = |direction| (0..=SENDERS).map(|link| sent(simulation, link, direction)).sum::<u64>();
            queue_max = queue_max.max(all(Direction::Forward) - all(Direction::Backward));
        };
        simulation.run_watched(1, look).unwrap_or_else(|stalled| panic!("{stalled}"));
        let results: Vec<_> = simulation.take_jobs().iter_mut().map(|job| job.result()).collect();
        assert!(results.iter().all(JobResult::is_pass), "{events}: {results:?}");
        queue_max
    };
    for events in [
        "{what: slow, where: s0->n0, share: 5%, at: 20us, for: 200us}",
        "{what: delay, where: n2--s0, by: 20us, at: 20us, for: 200us}",
        "{what: pause, where: n0, at: 30us, for: 100us}",
        "{what: pause, where: s0, at: 30us, for: 100us}",
        "{what: slow-memory, where: [n0], by: 5us, at: 20us, for: 200us}",
    ] {
        for pool in [1, 8, 24] {
            let found = queue_max(&format!(", congestion: grants, grant_packets: {pool}"), events);
            assert!(found <= pool + u64::from(SENDERS), "pool of {pool}, {events}: {found} packets");
        }
        // The bound is no property of the load.
        let found = queue_max("", events);
        assert!(found > 24 + u64::from(SENDERS), "{events}: {found} packets without grants");
    }
}

#[test]
fn racks_with_grants_and_losses_have_the_outcome_of_one_thread_on_two() {
    for (name, fabric, _) in [FABRICS[1], FABRICS[6], FABRICS[8]] {
        let lossy = fabric.replace("LINK", &format!("{LINK}, loss: 2%, corrupt: 1%, duplicate: 2%"));
        for job in JOBS {
            let plan = plan(&format!("{{name: grants, {lossy}, job: {job}}}"));
            let jobs = || build_all(&plan, 5, &Inputs::Pattern);
            let mut alone = Simulation::new(&plan, 5, jobs());
            let outcome = alone.run().unwrap_or_else(|stalled| panic!("{name}: {stalled}"));
            let (mut together, stalled) =
                parts::run(&plan, 5, jobs(), 2, &Recording::default(), 1_000, &|_, _| {});
            assert!(stalled.is_none(), "{name}, {job}");
            assert_eq!(together.trace_hash, outcome.trace_hash, "{name}, {job}");
            let results =
                together.members.iter_mut().filter_map(|member| Some(member.job.as_mut()?.result()));
            let results: Vec<_> = results.collect();
            assert!(
                !results.is_empty() && results.iter().all(JobResult::is_pass),
                "{name}, {job}: {results:?}"
            );
        }
    }
}

/// An answer of slow memory may cause a request of a member that had been polled to the end, also in a rack without grants.
#[test]
fn slow_memory_leaves_no_request_of_a_member_with_one_link_behind() {
    for congestion in ["off", "grants"] {
        let fabric =
            format!("shape: {{star: {{nodes: 5}}}}, transport: {{congestion: {congestion}}}, link: {{LINK}}");
        let plan = rack(&fabric, JOBS[0]);
        for at_ns in (4_000..44_000).step_by(2_000) {
            let events =
                format!("{{what: slow-memory, where: [n1, n0], by: 180ns, at: {at_ns}ns, for: 400ns}}");
            let script = script(&plan, &events, "", "{ends: right}");
            let jobs = build_all(&plan, plan.settings.seed, &Inputs::Pattern);
            let mut simulation = Simulation::new(&plan, plan.settings.seed, jobs);
            simulation.play(&script, &plan, plan.settings.seed);
            simulation.run().unwrap_or_else(|stalled| panic!("{congestion}, {at_ns}: {stalled}"));
            assert!(
                simulation.take_jobs().iter_mut().all(|job| job.result().is_pass()),
                "{congestion}, {at_ns}"
            );
        }
    }
}
