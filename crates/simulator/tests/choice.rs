//! Choice of an algorithm on shapes whose links the estimates count, by trials (`algorithm: auto` of a collective) and by estimates alone
//! (collectives of a workload): the choice is nearly as fast as the best of all algorithms, each run in virtual time.

use rackloom_collectives::AlgorithmKind;
use rackloom_jobs::collective::Inputs;
use rackloom_jobs::report::{JobResult, WorkloadReport};
use rackloom_jobs::workload::ComputeMode;
use rackloom_jobs::{build_all, perform_workload, prepare_workload};
use rackloom_plan::{AlgorithmChoice, AlgorithmList, Plan};
use rackloom_protocol::NodeId;
use rackloom_simulator::Simulation;
use rackloom_workloads::text;

/// Time of the choice over the time of the best algorithm, at most.
const WORSE_MAX: f64 = 1.10;
/// Bound of choices by estimates alone, for arrays that fit into one frame. Latencies of single operations, which estimates do not know, decide
/// there.
const WORSE_MAX_SHORT: f64 = 1.35;
const SHORT: &str = "4KiB";
/// Racks of sixteen nodes.
const SHAPES: [&str; 5] = [
    "shape: {torus: {x: 4, y: 4}}, channels: {rise: dateline}",
    "shape: {torus: {x: 8, y: 2}}, channels: {rise: dateline}",
    "shape: {hypercube: {dimensions: 4}}",
    "shape: {leaf-spine: {leaves: 4, nodes_per_leaf: 4, spines: 4}}, paths: {policy: destination}",
    "shape: {leaf-spine: {leaves: 4, nodes_per_leaf: 4, spines: 1}}, paths: {policy: destination}",
];
const SIZES: [&str; 4] = [SHORT, "128KiB", "256KiB", "1MiB"];

fn plan(shape: &str, job: &str) -> Plan {
    let text = format!(
        "{{name: choice, {shape}, payload: elided, link: {{rate: 100Gbit/s, delay: 500ns}}, defaults: {{memory: 64MiB}}, job: {job}}}"
    );
    Plan::parse(&text, "choice").unwrap_or_else(|error| panic!("{error}"))
}

/// Algorithms of an all-reduce among nodes of distinct servers.
const CAN: [&str; 5] = ["ring", "bidirectional-ring", "one-shot", "two-shot", "halving-doubling"];

/// Returns a line if a choice takes more than so many times as long as the best algorithm.
fn too_slow(context: &str, worse_max: f64, chosen_us: f64, tried_us: [f64; CAN.len()]) -> Option<String> {
    let best_us = tried_us.into_iter().fold(f64::INFINITY, f64::min);
    let named: Vec<_> = CAN.into_iter().zip(tried_us).collect();
    (chosen_us > worse_max * best_us).then(|| format!("{context}: {chosen_us:.1} us of {named:.1?}"))
}

/// Returns the algorithm of an all-reduce, and its time in microseconds.
fn collective(shape: &str, bytes: &str, algorithm: &str) -> (String, f64) {
    let job =
        format!("{{collective: {{algorithm: {algorithm}, bytes: {bytes}, repetitions: 1, warm_up: 1}}}}");
    let plan = plan(shape, &job);
    let mut simulation = Simulation::new(&plan, 1, build_all(&plan, 1, &Inputs::Pattern));
    simulation.run().unwrap_or_else(|stalled| panic!("{shape}, {algorithm}: {stalled}"));
    let results: Vec<_> = simulation.take_jobs().iter_mut().map(|job| job.result()).collect();
    assert!(results.iter().all(JobResult::is_pass), "{shape}, {algorithm}");
    let row = &results[0].sweep[0];
    (row.algorithm.clone(), row.time_us)
}

#[test]
fn a_choice_by_trials_is_within_a_tenth_of_the_best_algorithm() {
    let mut wrong = Vec::new();
    for shape in SHAPES {
        for bytes in SIZES {
            let (chosen, _) = collective(shape, bytes, "auto");
            let tried_us = CAN.map(|name| collective(shape, bytes, name).1);
            // The time of a run of its own: ranks begin the first run behind trials at other moments.
            let of_choice = CAN.iter().position(|name| *name == chosen).map(|index| tried_us[index]);
            let context = format!("{shape}, {bytes}, {chosen}");
            wrong.extend(too_slow(&context, WORSE_MAX, of_choice.unwrap_or(f64::INFINITY), tried_us));
        }
    }
    assert_eq!(wrong, [""; 0]);
}

/// Returns the time of a workload that is one all-reduce, in microseconds. Without an algorithm, it is the one with the least estimate.
fn workload_us(shape: &str, bytes: &str, algorithm: Option<&str>) -> f64 {
    let plan = plan(shape, "none");
    let last = plan.endpoint_count() - 1;
    let text = format!(
        "workload one\nranks {}\ngroup 0..{last}\nrank 0..{last}\nall-reduce group 0 {bytes}\n",
        last + 1
    );
    let workload = text::read_checked(&text, "one").unwrap_or_else(|errors| panic!("{errors}"));
    let list = algorithm.map_or(AlgorithmList::AUTO, |name| {
        let kind = AlgorithmKind::from_name(name).expect("an algorithm");
        AlgorithmList::new(&[AlgorithmChoice(Some(kind))]).expect("one algorithm")
    });
    let prepared = prepare_workload(&plan, workload, &list).unwrap_or_else(|error| panic!("{error}"));
    let job = |rank| perform_workload(&plan, NodeId(rank), 1, &prepared, ComputeMode::Sleep);
    let jobs = (0..plan.endpoint_count() as u16).map(job).collect();
    let mut simulation = Simulation::new(&plan, 1, jobs);
    simulation.run().unwrap_or_else(|stalled| panic!("{shape}, {algorithm:?}: {stalled}"));
    let results: Vec<_> = simulation.take_jobs().iter_mut().map(|job| job.result()).collect();
    assert!(results.iter().all(JobResult::is_pass), "{shape}, {algorithm:?}");
    let parts = results.iter().filter_map(|result| Some(("node", result.workload.as_ref()?)));
    WorkloadReport::of(parts).expect("a workload").iteration_ns as f64 / 1_000.0
}

#[test]
fn a_choice_by_estimates_alone_is_within_a_tenth_of_the_best_algorithm() {
    let mut wrong = Vec::new();
    for shape in SHAPES {
        for bytes in SIZES {
            let tried_us = CAN.map(|name| workload_us(shape, bytes, Some(name)));
            let worse_max = if bytes == SHORT { WORSE_MAX_SHORT } else { WORSE_MAX };
            let context = format!("{shape}, {bytes}");
            wrong.extend(too_slow(&context, worse_max, workload_us(shape, bytes, None), tried_us));
        }
    }
    assert_eq!(wrong, [""; 0]);
}
