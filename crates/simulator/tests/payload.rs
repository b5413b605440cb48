//! In all payload modes, everything but the payload is equal: times, links, counts, and events.

mod common;

use common::{Rack, at, local, plan, put};
use rackloom_jobs::collective::Inputs;
use rackloom_jobs::{Job, JobResult};
use rackloom_plan::impair::Direction;
use rackloom_plan::{PayloadMode, Plan};
use rackloom_protocol::{Instant, JobMemory, NodeId};
use rackloom_simulator::{LinkStatistics, Outcome, RecordedEvent, Simulation, Statistics};

const NODES: u16 = 4;

/// Observable results of a run.
#[derive(Debug, PartialEq)]
struct Seen {
    ended_at: Instant,
    statistics: Statistics,
    events: Vec<RecordedEvent>,
    links: Vec<LinkStatistics>,
}

fn run(plan: &Plan) -> (Seen, Outcome, Vec<JobResult>) {
    let jobs = rackloom_jobs::build_all(plan, 7, &Inputs::Pattern);
    let mut simulation = Simulation::new(plan, 7, jobs);
    let outcome = simulation.run().unwrap_or_else(|stalled| panic!("{stalled}"));
    let directions = [Direction::Forward, Direction::Backward];
    let links = (0..plan.links.len() as u16).flat_map(|edge| directions.map(|direction| (edge, direction)));
    let seen = Seen {
        ended_at: outcome.ended_at,
        statistics: simulation.statistics(),
        events: simulation.events().to_vec(),
        links: links.map(|(edge, direction)| *simulation.link_statistics(edge, direction)).collect(),
    };
    let results = simulation.take_jobs().iter_mut().map(|job: &mut Box<dyn Job>| job.result()).collect();
    (seen, outcome, results)
}

/// Returns the results of one rack in each mode: full, elided.
fn in_each_mode(text: &str) -> [(Seen, Outcome, Vec<JobResult>); 2] {
    [PayloadMode::Full, PayloadMode::Elided].map(|mode| {
        let plan = plan(&format!("{{name: modes, payload: {mode}, {text}}}"));
        assert_eq!(plan.settings.payload, mode);
        run(&plan)
    })
}

fn verified(results: &[JobResult]) -> u64 {
    assert!(
        results.iter().all(|result| result.failures.is_empty() && result.mismatch_count == 0),
        "{results:?}"
    );
    results.iter().map(|result| result.verified_bytes).sum()
}

fn must_agree(text: &str) {
    must_agree_in(text, |seen| seen);
}

/// Compares the modes. `compared`: what must be equal.
fn must_agree_in(text: &str, compared: impl Fn(Seen) -> Seen) {
    let [full, elided] =
        in_each_mode(text).map(|(seen, outcome, results)| (compared(seen), outcome, results));
    assert_eq!((full.0.ended_at, full.0.statistics), (elided.0.ended_at, elided.0.statistics), "{text}");
    assert!(full.0 == elided.0, "{text}: events or links differ");
    assert!(full.0.statistics.frames_delivered > 200, "{:?}", full.0.statistics);
    let [bytes, nothing] = [&full.2, &elided.2].map(|results| verified(results));
    assert!(bytes > 0 && nothing == 0, "{text}: {bytes} and {nothing} bytes are verified");
    let noted = |results: &[JobResult]| results.iter().filter(|result| notes_checks(result)).count();
    assert_eq!((noted(&full.2), noted(&elided.2)), (0, elided.2.len()), "{text}: {:?}", elided.2);
}

/// Returns true if a note states the checks that took the place of a comparison of bytes.
fn notes_checks(result: &JobResult) -> bool {
    result.notes.iter().any(|note| note.starts_with("`payload` is elided, so no bytes were compared: "))
}

#[test]
fn modes_differ_in_nothing_but_bytes_on_clean_links() {
    let ring = "shape: {ring: {nodes: 4}}, link: {rate: 100Gbit/s, delay: 1us}";
    must_agree(&format!("{ring}, job: {{traffic: {{bytes: 10000B, messages: 20}}}}"));
    must_agree(&format!("{ring}, job: {{traffic: {{pattern: all-to-all, bytes: 100B, messages: 20}}}}"));
    must_agree(&format!("{ring}, job: {{traffic: {{pattern: small-stores, bytes: 48B, messages: 200}}}}"));
    must_agree(&format!(
        "{ring}, job: {{latency: {{sizes: {{from: 1B, to: 4KiB, factor: 8}}, repetitions: 3}}}}"
    ));
    must_agree(&format!(
        "{ring}, job: {{bandwidth: {{sizes: {{from: 300B, to: 100KiB, factor: 7}}, repetitions: 3}}}}"
    ));
}

#[test]
fn modes_differ_in_nothing_but_bytes_on_links_that_lose_duplicate_and_reorder() {
    let job = "job: {traffic: {pattern: uniform, bytes: 9000B, messages: 60}}";
    let faults = "loss: 2%, duplicate: 2%, reorder: 2%";
    for llr in ["off", "on"] {
        must_agree(&format!(
            "shape: {{star: {{nodes: 4}}}}, link: {{rate: 100Gbit/s, delay: 1us, llr: {llr}, {faults}}}, {job}"
        ));
    }
    must_agree(&format!(
        "shape: {{ring: {{nodes: 4}}}}, link: {{rate: 100Gbit/s, corrupt: 2%, {faults}}}, {job}"
    ));
    must_agree(&format!(
        "shape: {{star: {{nodes: 4}}}}, link: {{rate: 100Gbit/s, {faults}}}, links: {{n0--s0: {{llr: on}}}}, checks: always, \
         transport: {{mode: go-back-n}}, {job}"
    ));
}

#[test]
fn collectives_take_the_same_time_without_payload_and_are_checked() {
    // Work on many bytes takes a rank several polls at one time, which changes the order of the events of that time.
    let same_time = |text: &str| {
        must_agree_in(text, |seen| {
            let statistics = Statistics { polls: 0, events_handled: 0, ..seen.statistics };
            Seen { statistics, events: Vec::new(), ..seen }
        });
    };
    let algorithms = ["auto", "ring", "bidirectional-ring", "halving-doubling", "two-shot", "one-shot"];
    let links = ["link: {rate: 100Gbit/s}", "link: {rate: 100Gbit/s, loss: 2%, duplicate: 2%, reorder: 2%}"];
    for (algorithm, link) in algorithms.into_iter().flat_map(|algorithm| links.map(|link| (algorithm, link)))
    {
        let size = "bytes: 100000B, repetitions: 2, warm_up: 1";
        let job = format!("job: {{collective: {{algorithm: {algorithm}, {size}}}}}");
        same_time(&format!("shape: {{ring: {{nodes: 4}}}}, {link}, {job}"));
    }
    for collective in [
        "all-gather",
        "reduce-scatter",
        "broadcast",
        "reduce",
        "gather",
        "scatter",
        "all-to-all",
        "scan",
        "exclusive-scan",
    ] {
        let job = format!(
            "job: {{collective: {{collective: {collective}, bytes: 64KiB, repetitions: 2, type: f16}}}}"
        );
        let rack = "name: all, payload: elided, shape: {star: {nodes: 4}}, link: {rate: 100Gbit/s, loss: 1%}";
        let (seen, _, results) = run(&plan(&format!("{{{rack}, {job}}}")));
        assert!(seen.statistics.frames_delivered > 100, "{collective}: {:?}", seen.statistics);
        assert_eq!(verified(&results), 0, "{collective}");
    }
    let servers = "shape: {ring: {nodes: 4}}, servers: {a: [n0, n1], b: [n2, n3]}, link: {rate: 100Gbit/s}";
    let job = "job: {collective: {algorithm: ring, bytes: 64KiB, repetitions: 2, on_loss: shrink}}";
    same_time(&format!("{servers}, {job}"));
}

/// Two nodes per server: their accesses to each other's memory use no frame, and take equal time in every mode.
#[test]
fn modes_differ_in_nothing_but_bytes_on_the_local_path() {
    let servers = "shape: {ring: {nodes: 4}}, servers: {a: [n0, n1], b: [n2, n3]}, link: {rate: 100Gbit/s}";
    let all = "pattern: all-to-all";
    must_agree(&format!("{servers}, job: {{traffic: {{{all}, bytes: 10000B, messages: 20}}}}"));
    must_agree(&format!("{servers}, job: {{traffic: {{{all}, bytes: 48B, messages: 100}}}}"));
    let sizes = "sizes: {from: 300B, to: 100KiB, factor: 7}, repetitions: 3";
    must_agree(&format!("{servers}, job: {{bandwidth: {{{sizes}}}}}"));
}

#[test]
fn an_observer_of_frames_changes_nothing_else() {
    let text = "shape: {star: {nodes: 4}}, link: {rate: 100Gbit/s, loss: 1%}, job: {traffic: {bytes: 9000B}}";
    let plan = plan(&format!("{{name: hooked, {text}}}"));
    let (seen, ..) = run(&plan);
    let jobs = (0..NODES).map(|rank| rackloom_jobs::build(&plan, NodeId(rank), 7)).collect();
    let mut simulation = Simulation::new(&plan, 7, jobs);
    simulation.on_frame(|_, _, _, bytes| assert!(!bytes.is_empty()));
    let outcome = simulation.run().unwrap();
    // The number of frames that exist at once depends on the order in which members are polled.
    let of_all = |statistics: Statistics| Statistics { frames_alive_max: 0, ..statistics };
    let [before, after] = [seen.statistics, simulation.statistics()].map(of_all);
    assert_eq!((outcome.ended_at, after), (seen.ended_at, before));
}

/// A frame holds the bytes that its sender's memory held when it left, independent of later writes there.
#[test]
fn frames_in_flight_keep_the_bytes_with_which_they_left() {
    let mut rack = Rack::up(&plan("{name: pair, shape: {ring: {nodes: 2}}, link: {delay: 1us}}"), 3);
    let pattern: Vec<u8> = (0..20_000).map(|at| (at % 251) as u8).collect();
    rack.simulation.memory_mut(NodeId(0)).bytes_mut(common::REGION)[..20_000].copy_from_slice(&pattern);
    let before = rack.simulation.statistics().frames_sent;
    rack.simulation.command(NodeId(0), put(1, at(1, 30_000), local(0, 20_000))).unwrap();
    rack.pass(500);
    assert!(rack.simulation.statistics().frames_sent >= before + 5, "all of it is in flight");
    let there =
        |rack: &Rack| rack.simulation.memory(NodeId(1)).bytes(common::REGION)[30_000..50_000].to_vec();
    assert!(there(&rack).iter().all(|byte| *byte == 0), "nothing has arrived");
    rack.simulation.memory_mut(NodeId(0)).write(common::REGION, 4_000, &[0xff; 8_000]).unwrap();
    rack.pass(100_000);
    assert_eq!(there(&rack), pattern);
}

#[test]
fn jobs_that_check_every_byte_refuse_the_other_modes() {
    let text = "name: r\nshape: {ring: {nodes: 4}}\njob: litmus\npayload: elided\n";
    let error = Plan::parse(text, "test").unwrap_err().to_string();
    let reason = "compares every byte";
    assert!(error.contains("test:4:10") && error.contains(reason) && error.contains("hint:"), "{error}");
}
