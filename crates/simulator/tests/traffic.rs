//! The traffic job in virtual time: completion of each pattern against its closed form, and every byte checked.

use rackloom_jobs::collective::Inputs;
use rackloom_jobs::report::{TrafficPart, TrafficReport};
use rackloom_plan::Plan;

use rackloom_simulator::Simulation;

const NODES: u64 = 8;
const MESSAGES: u64 = 200;
const BYTES: u64 = 4_096;
const DELAY_NS: f64 = 500.0;
/// Of one message at 100 Gbit/s: SUE-like headers of 30 bytes, a command of 8 before the data and one before the signal of 8,
/// preamble and gap of 20.
const MESSAGE_NS: f64 = (30 + 8 + BYTES + 8 + 8 + 20) as f64 * 8.0 / 100.0;

fn plan(pattern: &str, more: &str) -> Plan {
    let text = format!(
        "{{name: traffic, shape: {{star: {{nodes: {NODES}, planes: 1}}}}, forwarding: {{mode: cut-through}}, \
         link: {{rate: 100Gbit/s, delay: {DELAY_NS}ns, headers: sue-like}}, frame_bytes_max: 4352B, \
         job: {{traffic: {{pattern: {pattern}, bytes: {BYTES}B, messages: {MESSAGES}}}}}{more}}}"
    );
    Plan::parse(&text, "traffic").unwrap_or_else(|error| panic!("{error}"))
}

fn run(plan: &Plan) -> (TrafficReport, u64) {
    let jobs = rackloom_jobs::build_all(plan, 3, &Inputs::Pattern);
    let mut simulation = Simulation::new(plan, 3, jobs);
    simulation.run().unwrap_or_else(|stalled| panic!("{stalled}"));
    let results: Vec<_> = simulation.take_jobs().iter_mut().map(|job| job.result()).collect();
    for result in &results {
        assert!(result.is_pass(), "{:?} {:?}", result.failures, result.mismatches);
    }
    let verified = results.iter().map(|result| result.verified_bytes).sum();
    let parts: Vec<TrafficPart> = results.into_iter().filter_map(|result| result.traffic).collect();
    (TrafficReport::of(parts.iter()).expect("all ranks had traffic"), verified)
}

fn near(found: f64, expected: f64, share: f64, what: &str) {
    assert!((found / expected - 1.0).abs() <= share, "{what}: {found}, expected {expected}");
}

#[test]
fn patterns_take_as_long_as_their_busiest_port() {
    let path_ns = 2.0 * DELAY_NS;
    let (others, messages) = ((NODES - 1) as f64, MESSAGES as f64);
    // Messages at the busiest port.
    let experts: f64 = others * messages;
    for (pattern, busiest) in [
        ("permutation", messages),
        ("kv-cache", messages),
        ("incast", others * messages),
        ("all-to-all", others * messages),
        ("experts", experts),
    ] {
        let (report, verified) = run(&plan(pattern, ""));
        let expected = busiest * MESSAGE_NS + 2.0 * path_ns;
        near(report.completion_ns as f64, expected, 0.05, pattern);
        assert_eq!(report.bytes, report.messages * BYTES, "{pattern}");
        assert!(verified >= BYTES, "{pattern}");
        near(report.goodput_gbps, report.bytes as f64 / report.completion_ns as f64, 1e-9, pattern);
    }
}

#[test]
fn a_pipeline_fills_once_and_then_moves_a_message_per_serialisation() {
    let (report, _) = run(&plan("pipeline", ""));
    // A stage passes a message on when all of it has come over both links.
    let stage_ns = MESSAGE_NS + 2.0 * DELAY_NS;
    let stages = (NODES - 1) as f64;
    let expected = stages * stage_ns + (MESSAGES - 1) as f64 * MESSAGE_NS + 2.0 * DELAY_NS;
    near(report.completion_ns as f64, expected, 0.05, "pipeline");
}

#[test]
fn a_train_waits_for_all_ranks_between_its_rounds() {
    let (report, _) = run(&plan("tensor-parallel", ""));
    // A round is over when the last of the others' messages has come over both links.
    let round_ns = (NODES - 1) as f64 * MESSAGE_NS + 2.0 * DELAY_NS;
    near(report.completion_ns as f64, MESSAGES as f64 * round_ns + 2.0 * DELAY_NS, 0.05, "tensor-parallel");
}

#[test]
fn symmetric_patterns_are_fair_and_the_popular_expert_starves_no_rank() {
    let fairness = |pattern| run(&plan(pattern, "")).0.fairness;
    for pattern in ["permutation", "all-to-all", "incast"] {
        assert!(fairness(pattern) > 0.95, "{pattern}: {}", fairness(pattern));
    }
    assert!(fairness("pipeline") < 1.0);
}

#[test]
fn every_pattern_passes_over_lossy_sprayed_planes() {
    for pattern in ["uniform", "small-stores", "experts", "pipeline", "tensor-parallel"] {
        let more = ", paths: {policy: spray, order: none}, timers: {heartbeat_interval: 20us, hello_interval: 1us}, \
                    transport: {timeout_initial: 100us, timeout_min: 50us, ack_delay: 5us}";
        let mut plan = plan(pattern, more);
        plan.override_links(|link| (link.loss, link.reorder) = (0.01, 0.01));
        let (report, verified) = run(&plan);
        assert!(report.messages > 0 && verified > 0, "{pattern}");
    }
}
