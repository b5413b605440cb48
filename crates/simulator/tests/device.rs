//! The model of a GPU: limits, latencies, order and ends of operations.

mod common;

use common::{Counting, Rack, at, local, plan, put};
use rackloom_jobs::collective::Inputs;
use rackloom_protocol::{Command, Event, Instant, NodeId, OperationError};
use rackloom_simulator::{Action, Simulation};

const LINK: &str = "shape: {ring: {nodes: 2}}, link: {delay: 500ns}";

fn rack(device: &str) -> Rack {
    Rack::up(&plan(&format!("{{name: r, {LINK}, device: {{{device}}}}}")), 3)
}

/// Returns the time of one operation from its request to its completion, in nanoseconds.
fn time_of(device: &str, command: Command<'_>) -> u64 {
    let mut rack = rack(device);
    let begun = rack.simulation.now();
    rack.simulation.command(NodeId(0), command).unwrap();
    rack.completions(0, 1)[0].at.since(begun)
}

/// Commands from outside go to the endpoint: only jobs have a device. So a job is needed for the latency.
#[test]
fn a_command_from_outside_does_not_pass_the_device() {
    let put_4k = put(1, at(1, 0), local(0, 4_096));
    assert_eq!(time_of("bulk_latency: 7us", put_4k), time_of("bulk_latency: 0ns", put_4k));
}

fn run(text: &str, rounds: u64) -> u64 {
    let mut simulation = Simulation::new(&plan(text), 5, Counting::jobs(2, rounds));
    simulation.run().unwrap_or_else(|stalled| panic!("{stalled}")).ended_at.0
}

#[test]
fn atomics_begin_after_the_latency_of_the_load_store_path() {
    let with = |device: &str| run(&format!("{{name: r, {LINK}, device: {{{device}}}}}"), 1);
    let none = with("bulk_latency: 9us");
    assert_eq!(with("load_store_latency: 300ns"), none + 300);
    assert_eq!(with("load_store_latency: 5us"), none + 5_000);
}

#[test]
fn a_node_has_a_model_of_its_own() {
    let with = |more: &str| run(&format!("{{name: r, {LINK}{more}}}"), 1);
    let none = with("");
    assert_eq!(with(", nodes: {n0: {device: {load_store_latency: 5us}}}"), none + 5_000);
    let group = ", groups: {fast: {nodes: [n0, n1], device: {load_store_latency: 300ns}}}";
    assert_eq!(with(&format!(", device: {{load_store_latency: 5us}}{group}")), none + 300);
}

#[test]
fn operations_beyond_the_limit_wait_for_earlier_ones() {
    let with = |units: u64, rounds: u64| {
        let device = format!("load_store_units: {units}, load_store_in_flight: 1");
        run(&format!("{{name: r, {LINK}, device: {{{device}}}}}"), rounds)
    };
    // One fetch-add at a time takes a round trip of 1 us.
    let (one, eleven) = (with(1, 1), with(1, 11));
    assert!((eleven - one).abs_diff(10 * 1_000) < 200, "{one} {eleven}");
    let together = with(16, 11);
    assert!(together < one + 1_000, "{together} {one}");
}

#[test]
fn a_reduction_delays_the_transfers_that_follow_it() {
    let time = |device: &str, payload: &str| {
        let text = format!(
            "{{name: r, shape: {{ring: {{nodes: 4}}}}, payload: {payload}, link: {{delay: 500ns, rate: 400Gbit/s}}, device: {{{device}}}, \
             job: {{collective: {{algorithm: ring, bytes: 256KiB, repetitions: 1, warm_up: 0}}}}}}"
        );
        let plan = plan(&text);
        let jobs = rackloom_jobs::build_all(&plan, 5, &Inputs::Pattern);
        let mut simulation = Simulation::new(&plan, 5, jobs);
        simulation.run().unwrap_or_else(|stalled| panic!("{stalled}"));
        let results: Vec<_> = simulation.take_jobs().iter_mut().map(|job| job.result()).collect();
        assert!(results.iter().all(|result| result.is_pass()), "{results:?}");
        simulation.now().0
    };
    for payload in ["full", "elided"] {
        let none = time("bulk_latency: 0ns", payload);
        // Three steps of the reduce-scatter combine 64 KiB each: three accesses of 64 KiB at 1 Tbit/s are 1573 ns.
        let slow = time("memory_rate: 1Tbit/s", payload);
        let added = slow - none;
        assert!((3 * 1_573..3 * 1_573 + 4_000).contains(&added), "{payload}: {added}");
        let by_results = time("reduction_rate: 100Gbit/s", payload) - none;
        // 64 KiB of results at 100 Gbit/s are 5243 ns.
        assert!((3 * 5_243..3 * 5_243 + 400).contains(&by_results), "{payload}: {by_results}");
    }
}

/// The choice of an algorithm measures the reduction under the model: three accesses of each byte, or the rate of results.
#[test]
fn a_choice_measures_the_reduction_of_the_device() {
    let gamma = |device: &str, payload: &str| {
        let text = format!(
            "{{name: r, shape: {{ring: {{nodes: 4}}}}, payload: {payload}, link: {{delay: 500ns, rate: 400Gbit/s}}, device: {{{device}}}, \
             job: {{collective: {{bytes: 4KiB, repetitions: 1, warm_up: 0}}}}}}"
        );
        let plan = plan(&text);
        let mut simulation = Simulation::new(&plan, 5, rackloom_jobs::build_all(&plan, 5, &Inputs::Pattern));
        simulation.run().unwrap_or_else(|stalled| panic!("{stalled}"));
        let notes = simulation.take_jobs()[0].result().notes;
        let note =
            notes.iter().find_map(|note| note.split_once("gamma ")).unwrap_or_else(|| panic!("{notes:?}"));
        note.1.split_whitespace().next().unwrap().parse::<f64>().unwrap()
    };
    for payload in ["full", "elided"] {
        // Each byte is read twice and written once, at 25 bytes per nanosecond.
        assert!((gamma("memory_rate: 200Gbit/s", payload) - 0.12).abs() < 0.001, "{payload}");
        assert!(
            (gamma("memory_rate: 200Gbit/s, reduction_rate: 40Gbit/s", payload) - 0.2).abs() < 0.001,
            "{payload}"
        );
        assert!(gamma("bulk_latency: 1us", payload) < 0.001, "{payload}");
    }
}

#[test]
fn operations_that_wait_on_the_device_end_when_their_target_is_lost() {
    let text = format!("{{name: r, {LINK}, device: {{load_store_latency: 900us}}}}");
    let mut simulation = Simulation::new(&plan(&text), 5, Counting::jobs(2, 40));
    simulation.schedule(Instant(400_000), Action::Kill { member: NodeId(1) });
    simulation.run().unwrap_or_else(|stalled| panic!("{stalled}"));
    let ended = simulation.events().iter().filter(|recorded| {
        matches!(recorded.event, Event::Completed { result: Err(OperationError::Unreachable), .. })
    });
    assert!(ended.count() > 0);
}

/// Little's law: the sum of the times in flight is the number of operations times the round trip.
#[test]
fn the_use_of_a_path_is_the_time_of_its_operations() {
    let used = |units: u64| {
        let device = format!("load_store_units: {units}, load_store_in_flight: 1");
        let text = format!("{{name: r, {LINK}, device: {{{device}}}}}");
        let mut simulation = Simulation::new(&plan(&text), 5, Counting::jobs(2, 11));
        simulation.run().unwrap_or_else(|stalled| panic!("{stalled}"));
        simulation.take_results().members[0].device.unwrap()
    };
    let (one, many) = (used(1).load_store.unwrap(), used(16).load_store.unwrap());
    assert_eq!((one.most, one.slots), (1, 1));
    assert_eq!((many.most, many.slots), (11, 16));
    for path in [one, many] {
        assert!((11_000..11_000 + 400).contains(&path.occupied_ns), "{path:?}");
    }
    assert_eq!(used(1).bulk, None, "nothing limits it");
}

#[test]
fn work_in_own_memory_is_its_bytes_over_the_rate() {
    let text = "{name: r, shape: {ring: {nodes: 4}}, link: {delay: 500ns, rate: 400Gbit/s}, device: {reduction_rate: 100Gbit/s}, \
                job: {collective: {algorithm: ring, bytes: 256KiB, repetitions: 1, warm_up: 0}}}";
    let plan = plan(text);
    let mut simulation = Simulation::new(&plan, 5, rackloom_jobs::build_all(&plan, 5, &Inputs::Pattern));
    simulation.run().unwrap_or_else(|stalled| panic!("{stalled}"));
    for member in simulation.take_results().members {
        // Three steps combine 64 KiB each: 5243 ns at 100 Gbit/s.
        let work_ns = member.device.unwrap().work_ns.unwrap();
        assert!(work_ns.abs_diff(3 * 5_243) <= 3, "{work_ns}");
    }
}

/// The job keeps at most 16 operations in flight, fewer than there are units.
#[test]
fn a_model_without_an_effect_takes_no_time() {
    let with = |device: &str| run(&format!("{{name: r, {LINK}{device}}}"), 50);
    assert_eq!(with(", device: {load_store_units: 1000, bulk_engines: 1000}"), with(""));
}
