//! Rows of the simulator: a permutation in which every node puts some bytes into another node's memory.
//!
//! The engine runs in this process, on one thread. Starting the rack does not count, and a first permutation
//! does not count, in which members and links allocate the memory that they keep for frames in flight.
//! Payload is moved and checked, unless a row says otherwise. A frame is a data frame delivered at its final
//! node, over any number of hops. An event is an event in virtual time. One row is an all-reduce on links
//! with faults, every element of which is checked.

use std::time::Instant;

use rackloom_calibrate::Goal;
use rackloom_jobs::collective::Inputs;
use rackloom_plan::{PayloadMode, Plan};
use rackloom_protocol::{
    Access, Command, Key, LocalRange, NodeId, OperationId, RegionConfig, RegionId, RemoteAddress, Signal,
    SignalKind, Tenant,
};
use rackloom_simulator::Simulation;

use crate::bench::Bench;
use crate::measure_error::MeasureError;
use crate::row::{Row, Sides, Unit};
use crate::takes::PermutationTake;

const REGION: RegionId = RegionId(1);
const KEY: Key = Key(0x5eed);
const NODES: u16 = 128;
const NODES_LARGE: u16 = 1024;
const BYTES: u64 = 2_000_000;
/// Bytes that each node of the large rack moves, and each of the small rack that it is compared with.
const BYTES_OF_SCALE: u64 = 256 << 10;
/// Payload of a frame of default size.
const PAYLOAD_BYTES: u64 = 4096;
/// Bytes of the word that the signal of a put writes, and its values in the first and the second permutation.
const WORD_BYTES: u64 = 8;
const SIGNAL_VALUES: [u64; 2] = [1, 2];
/// Sixteen ranks reduce arrays of 64 KiB over links that lose, duplicate, delay and damage frames, and replay
/// lost ones.
const ALL_REDUCE: &str = "name: all-reduce\nshape: {star: {nodes: 16}}\n\
    link: {rate: 400Gbit/s, delay: 500ns, llr: on, loss: 1%, duplicate: 1%, reorder: 1%, corrupt: 1%}\n\
    job: {collective: {bytes: 64KiB, repetitions: 1, warm_up: 0, algorithm: ring}}\n";
/// Virtual time between two polls, and their maximum number.
const POLL_NS: u64 = 20_000;
const POLLS_MAX: u32 = 1_000_000;

/// Rack of a measurement.
#[derive(Clone, Copy, Debug)]
struct Setup {
    nodes: u16,
    payload: PayloadMode,
    has_retry: bool,
}

impl Setup {
    const fn of(nodes: u16, payload: PayloadMode) -> Self {
        Self { nodes, payload, has_retry: false }
    }
}

pub(crate) fn rows() -> Vec<Row> {
    vec![
        Row {
            name: "simulator-frames",
            ours: "inner loop of the simulator, data frames: permutation of 2 MB by 128 nodes of a star",
            raw: "",
            unit: Unit::PerSecond,
            goal: Goal::at_least(400e3, 1e6),
            expected: None,
            begin: |bench| ours_only(bench, |taken| taken.data_frames / taken.seconds),
        },
        Row {
            name: "simulator-events",
            ours: "inner loop of the simulator, events of the same run",
            raw: "",
            unit: Unit::PerSecond,
            goal: Goal::at_least(1e6, 1e6),
            expected: None,
            begin: |bench| ours_only(bench, |taken| taken.events_handled / taken.seconds),
        },
        Row {
            name: "simulator-elided",
            ours: "inner loop of the simulator, data frames, payload elided: permutation of 2 MB by 128 nodes of a star",
            raw: "",
            unit: Unit::PerSecond,
            goal: Goal::at_least(500e3, 1e6),
            expected: None,
            begin: |bench| {
                timed(bench, Setup::of(NODES, PayloadMode::Elided), BYTES, |taken| {
                    taken.data_frames / taken.seconds
                })
            },
        },
        Row {
            name: "simulator-retry",
            ours: "inner loop of the simulator, events, payload elided, link-level retry on: permutation of 2 MB by 128 nodes",
            raw: "",
            unit: Unit::PerSecond,
            goal: Goal::at_least(2e6, 2e6),
            expected: None,
            begin: |bench| with_retry(bench, NODES, BYTES, |taken| taken.events_handled / taken.seconds),
        },
        Row {
            name: "simulator-retry-frames",
            ours: "inner loop of the simulator, data frames of the same",
            raw: "",
            unit: Unit::PerSecond,
            goal: Goal::at_least(500e3, 500e3),
            expected: None,
            begin: |bench| with_retry(bench, NODES, BYTES, |taken| taken.data_frames / taken.seconds),
        },
        Row {
            name: "simulator-retry-1024",
            ours: "inner loop of the simulator, data frames, payload elided, link-level retry on: permutation of 256 KiB by 1024 nodes",
            raw: "",
            unit: Unit::PerSecond,
            goal: Goal::at_least(400e3, 400e3),
            expected: None,
            begin: |bench| {
                with_retry(bench, large(bench), BYTES_OF_SCALE, |taken| taken.data_frames / taken.seconds)
            },
        },
        size_row::<16>(
            "simulator-16",
            "inner loop of the simulator, time per data frame: permutation of 256 KiB by 16 nodes",
        ),
        size_row::<64>(
            "simulator-64",
            "inner loop of the simulator, time per data frame: permutation of 256 KiB by 64 nodes",
        ),
        size_row::<256>(
            "simulator-256",
            "inner loop of the simulator, time per data frame: permutation of 256 KiB by 256 nodes",
        ),
        Row {
            name: "simulator-all-reduce",
            ours: "simulator, all-reduce of 64 KiB by 16 nodes with faults and retry, brought up and checked",
            raw: "",
            unit: Unit::Nanoseconds,
            goal: Goal::at_most(50e6, 50e6),
            expected: None,
            begin: |bench| Ok(Sides { raw: None, ours: Box::new(move || all_reduce(bench)), line_ns: None }),
        },
        Row {
            name: "simulator-1024",
            ours: "inner loop of the simulator, data frames, payload elided: permutation of 256 KiB by 1024 nodes",
            raw: "",
            unit: Unit::PerSecond,
            goal: Goal::at_least(400e3, 1e6),
            expected: None,
            begin: |bench| {
                timed(bench, Setup::of(large(bench), PayloadMode::Elided), BYTES_OF_SCALE, |taken| {
                    taken.data_frames / taken.seconds
                })
            },
        },
        Row {
            name: "simulator-scale",
            ours: "inner loop of the simulator, time per data frame: permutation of 256 KiB by 1024 nodes",
            raw: "the same by 128 nodes",
            unit: Unit::Nanoseconds,
            goal: Goal::at_most(1.5, 1.2),
            expected: None,
            begin: scale,
        },
    ]
}

/// Returns a row for the cost of a frame in a rack of this size.
fn size_row<const COUNT: u16>(name: &'static str, ours: &'static str) -> Row {
    Row {
        name,
        ours,
        raw: "",
        unit: Unit::Nanoseconds,
        goal: Goal::at_most(2_500.0, 1_000.0),
        expected: None,
        begin: |bench| {
            let setup = Setup::of(COUNT, PayloadMode::Full);
            timed(bench, setup, BYTES_OF_SCALE, |taken| taken.seconds * 1e9 / taken.data_frames)
        },
    }
}

fn ours_only(bench: &Bench, figure: fn(&PermutationTake) -> f64) -> Result<Sides<'_>, MeasureError> {
    let (bytes, mut number) = (bench.count(BYTES), 0);
    let ours = move || {
        number += 1;
        let setup = Setup::of(NODES, PayloadMode::Full);
        let taken = bench.permutations.take(number - 1, || permutation(bench, setup, bytes))?;
        Ok(figure(&taken))
    };
    Ok(Sides { raw: None, ours: Box::new(ours), line_ns: None })
}

/// Runs a permutation with every part of the link layer on, and no payload.
fn with_retry(
    bench: &Bench,
    nodes: u16,
    bytes: u64,
    figure: fn(&PermutationTake) -> f64,
) -> Result<Sides<'_>, MeasureError> {
    timed(bench, Setup { has_retry: true, ..Setup::of(nodes, PayloadMode::Elided) }, bytes, figure)
}

fn timed(
    bench: &Bench,
    setup: Setup,
    bytes: u64,
    figure: fn(&PermutationTake) -> f64,
) -> Result<Sides<'_>, MeasureError> {
    let bytes = bench.count(bytes);
    let ours = move || Ok(figure(&permutation(bench, setup, bytes)?));
    Ok(Sides { raw: None, ours: Box::new(ours), line_ns: None })
}

/// Returns the size of the large rack: smaller with `--quick`, because starting a thousand nodes takes long.
fn large(bench: &Bench) -> u16 {
    if bench.count(2) == 2 { NODES_LARGE } else { NODES }
}

fn scale(bench: &Bench) -> Result<Sides<'_>, MeasureError> {
    let (bytes, large) = (bench.count(BYTES_OF_SCALE), large(bench));
    let per_frame_ns = move |nodes| {
        let taken = permutation(bench, Setup::of(nodes, PayloadMode::Full), bytes)?;
        Ok(taken.seconds * 1e9 / taken.data_frames)
    };
    Ok(Sides::new(move || per_frame_ns(large / 8), move || per_frame_ns(large)))
}

/// Measures the nanoseconds from an empty process to the last checked element.
fn all_reduce(bench: &Bench) -> Result<f64, MeasureError> {
    let begun = Instant::now();
    let plan =
        Plan::parse(ALL_REDUCE, "calibrate").map_err(|error| MeasureError::Failed(error.to_string()))?;
    let jobs = rackloom_jobs::build_all(&plan, plan.settings.seed, &Inputs::Pattern);
    let mut simulation = Simulation::new(&plan, plan.settings.seed, jobs);
    simulation.run().map_err(|stalled| MeasureError::Failed(stalled.to_string()))?;
    let results = simulation.take_jobs().iter_mut().map(|job| job.result()).collect::<Vec<_>>();
    let nanoseconds = begun.elapsed().as_secs_f64() * 1e9;
    if bench.is_interrupted() {
        return Err(MeasureError::Interrupted);
    }
    let is_right = |result: &rackloom_jobs::JobResult| {
        result.failures.is_empty() && result.mismatch_count == 0 && result.verified_bytes > 0
    };
    let statistics = simulation.statistics();
    match results.iter().all(is_right) && statistics.frames_dropped > 0 {
        true => Ok(nanoseconds),
        false => Err(MeasureError::Failed("the all-reduce went wrong, or no fault was injected".to_owned())),
    }
}

/// Runs two permutations. The second one counts.
fn permutation(bench: &Bench, setup: Setup, bytes: u64) -> Result<PermutationTake, MeasureError> {
    let mut simulation = rack(bench, setup, bytes)?;
    permute(bench, &mut simulation, setup, bytes, SIGNAL_VALUES[0])?;
    if setup.payload == PayloadMode::Full {
        for node in (0..setup.nodes).map(NodeId) {
            target(&mut simulation, node, bytes).fill(0xff);
        }
    }
    let before = simulation.statistics().events_handled;
    let begun = Instant::now();
    permute(bench, &mut simulation, setup, bytes, SIGNAL_VALUES[1])?;
    let seconds = begun.elapsed().as_secs_f64().max(1e-9);
    let events_handled = (simulation.statistics().events_handled - before) as f64;
    if setup.payload == PayloadMode::Full {
        check_data(&simulation, setup.nodes, bytes)?;
    }
    let data_frames = (bytes.div_ceil(PAYLOAD_BYTES) * u64::from(setup.nodes)) as f64;
    Ok(PermutationTake { seconds, data_frames, events_handled })
}

/// Issues one put from every node, and runs until the signals of all puts have arrived.
fn permute(
    bench: &Bench,
    simulation: &mut Simulation,
    setup: Setup,
    bytes: u64,
    signal_value: u64,
) -> Result<(), MeasureError> {
    for node in (0..setup.nodes).map(NodeId) {
        let given = simulation.command(node, put(peer(node, setup.nodes), bytes, signal_value));
        given.map_err(|refused| MeasureError::Failed(format!("a put was refused: {refused}")))?;
    }
    run_until(bench, simulation, setup.nodes, |simulation, node| {
        simulation.memory(node).bytes(REGION).ends_with(&signal_value.to_le_bytes())
    })
}

/// Returns a rack with all links up and touched memory.
fn rack(bench: &Bench, setup: Setup, bytes: u64) -> Result<Simulation, MeasureError> {
    let Setup { nodes, payload, has_retry } = setup;
    let retry = if has_retry { "on" } else { "off" };
    let text = format!(
        "name: permutation\nshape: {{star: {{nodes: {nodes}}}}}\nlink: {{rate: 400Gbit/s, llr: {retry}}}\n\
         payload: {payload}\njob: none\n"
    );
    let plan = Plan::parse(&text, "calibrate").map_err(|error| MeasureError::Failed(error.to_string()))?;
    let mut simulation = Simulation::new(&plan, 1, Vec::new());
    let length = signal_offset(bytes) + WORD_BYTES;
    let region = RegionConfig { region: REGION, length, key: KEY, access: Access::ALL, tenant: Tenant(0) };
    for node in (0..nodes).map(NodeId) {
        simulation.memory_mut(node).add(REGION, length as usize);
        simulation.memory_mut(node).bytes_mut(REGION).fill(0x5a);
        let registered = simulation.endpoint_mut(node).register(region);
        registered.map_err(|_| MeasureError::Failed("a region was refused".to_owned()))?;
    }
    run_until(bench, &mut simulation, nodes, |simulation, node| {
        simulation.endpoint(node).is_reachable(peer(node, nodes))
    })?;
    Ok(simulation)
}

/// Returns the memory to which a node's peer writes.
fn target(simulation: &mut Simulation, node: NodeId, bytes: u64) -> &mut [u8] {
    &mut simulation.memory_mut(node).bytes_mut(REGION)[bytes as usize..][..bytes as usize]
}

/// Returns a put from the first half of a node's memory to the second half of its peer's, with a signal.
const fn put(node: NodeId, bytes: u64, signal_value: u64) -> Command<'static> {
    let target = RemoteAddress { node, region: REGION, offset: bytes, key: KEY };
    let source = LocalRange { region: REGION, offset: 0, length: bytes };
    let signal = Signal {
        region: REGION,
        offset: signal_offset(bytes),
        key: KEY,
        kind: SignalKind::Set,
        value: signal_value,
    };
    Command::Put { operation: OperationId(1), target, source, signal: Some(signal) }
}

/// Returns the offset of the signal's word: behind both halves, aligned for any length.
const fn signal_offset(bytes: u64) -> u64 {
    (2 * bytes).next_multiple_of(WORD_BYTES)
}

/// Returns the peer to which a node puts: half a rack and one away, so that no node puts to the node that
/// puts to it.
fn peer(node: NodeId, nodes: u16) -> NodeId {
    NodeId((node.0 + nodes / 2 + 1) % nodes)
}

/// Runs until a condition holds for every node.
fn run_until(
    bench: &Bench,
    simulation: &mut Simulation,
    nodes: u16,
    holds: impl Fn(&Simulation, NodeId) -> bool,
) -> Result<(), MeasureError> {
    let mut first = 0;
    for _ in 0..POLLS_MAX {
        if bench.is_interrupted() {
            return Err(MeasureError::Interrupted);
        }
        // Nodes for which the condition holds are not checked again.
        while first < nodes && holds(simulation, NodeId(first)) {
            first += 1;
        }
        if first == nodes {
            return Ok(());
        }
        let until = simulation.now() + POLL_NS;
        simulation.step_until(until).map_err(|stalled| MeasureError::Failed(stalled.to_string()))?;
    }
    Err(MeasureError::Failed(format!("node {first} of the permutation was not served")))
}

fn check_data(simulation: &Simulation, nodes: u16, bytes: u64) -> Result<(), MeasureError> {
    let is_there = |node| {
        simulation.memory(node).bytes(REGION)[bytes as usize..][..bytes as usize]
            .iter()
            .all(|byte| *byte == 0x5a)
    };
    match (0..nodes).map(NodeId).find(|node| !is_there(*node)) {
        Some(node) => Err(MeasureError::Failed(format!("bytes of {node} are missing"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permutation_reaches_every_node_and_its_frames_are_counted() {
        let bench = Bench::new(true).unwrap();
        for payload in [PayloadMode::Full, PayloadMode::Elided] {
            let taken = permutation(&bench, Setup::of(8, payload), 10_000).unwrap();
            assert_eq!(taken.data_frames, 24.0, "three frames each");
            // A size as with `--quick`, with which the signal's word is not aligned by itself.
            assert_eq!(permutation(&bench, Setup::of(8, payload), 2_621).unwrap().data_frames, 8.0);
            assert!(taken.seconds > 0.0 && taken.events_handled > taken.data_frames);
        }
    }

    #[test]
    fn the_all_reduce_has_faults_and_a_correct_result() {
        assert!(all_reduce(&Bench::new(true).unwrap()).unwrap() > 0.0);
    }
}
