//! Rows of the simulator: a permutation in which every node puts some bytes into another one's memory.
//!
//! The engine runs in this process, on one thread; bringing the rack up does not count. Payload is kept and looked at. A
//! frame is a data frame delivered at its final node, whatever it crossed; an event is an occurrence in virtual time.

use std::time::Instant;

use rackloom_calibrate::Goal;
use rackloom_plan::Plan;
use rackloom_protocol::{
    Access, Command, Key, LocalRange, NodeId, OperationId, RegionConfig, RegionId, RemoteAddress, Tenant,
};
use rackloom_simulator::Simulation;

use super::bench::Bench;
use super::row::{Obstacle, Row, Sides, Unit};

const REGION: RegionId = RegionId(1);
const KEY: Key = Key(0x5eed);
const NODES: u16 = 128;
const NODES_LARGE: u16 = 1024;
const BYTES: u64 = 2_000_000;
/// What each node of the large rack moves, and each of the small one beside it.
const BYTES_OF_SCALE: u64 = 256 << 10;
/// Payload of a frame of default size.
const PAYLOAD_BYTES: u64 = 4096;
/// Virtual time between two looks, and how much of it may pass in all.
const LOOK_NS: u64 = 20_000;
const LOOKS_MAX: u32 = 1_000_000;

/// What a permutation took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    seconds: f64,
    data_frames: f64,
    occurrences: f64,
}

pub(super) fn rows() -> Vec<Row> {
    vec![
        Row {
            name: "simulator-frames",
            ours: "simulator, data frames: permutation of 2 MB by 128 nodes of a star",
            raw: "",
            unit: Unit::PerSecond,
            goal: Goal::at_least(400e3, 1e6),
            expected: None,
            begin: |bench| alone(bench, |taken| taken.data_frames / taken.seconds),
        },
        Row {
            name: "simulator-events",
            ours: "simulator, events of the same run",
            raw: "",
            unit: Unit::PerSecond,
            goal: Goal::at_least(1e6, 1e6),
            expected: None,
            begin: |bench| alone(bench, |taken| taken.occurrences / taken.seconds),
        },
        Row {
            name: "simulator-scale",
            ours: "simulator, time per data frame: permutation of 256 KiB by 1024 nodes",
            raw: "the same by 128 nodes",
            unit: Unit::Nanoseconds,
            goal: Goal::at_most(1.5, 1.2),
            expected: None,
            begin: scale,
        },
    ]
}

fn alone(bench: &Bench, figure: fn(&Taken) -> f64) -> Result<Sides<'_>, Obstacle> {
    let (bytes, mut number) = (bench.count(BYTES), 0);
    let ours = move || {
        number += 1;
        let taken = bench.permutations.take(number - 1, || permutation(bench, NODES, bytes))?;
        Ok(figure(&taken))
    };
    Ok(Sides { raw: None, ours: Box::new(ours) })
}

fn scale(bench: &Bench) -> Result<Sides<'_>, Obstacle> {
    let bytes = bench.count(BYTES_OF_SCALE);
    // A rack of a thousand takes its time to come up, however little it moves then.
    let large = if bench.count(2) == 2 { NODES_LARGE } else { NODES };
    let per_frame_ns = move |nodes| {
        let taken = permutation(bench, nodes, bytes)?;
        Ok(taken.seconds * 1e9 / taken.data_frames)
    };
    Ok(Sides::new(move || per_frame_ns(large / 8), move || per_frame_ns(large)))
}

fn permutation(bench: &Bench, nodes: u16, bytes: u64) -> Result<Taken, Obstacle> {
    let text = format!("name: permutation\nshape: {{star: {{nodes: {nodes}}}}}\nlink: {{rate: 400Gbit/s}}\n");
    let plan = Plan::parse(&text, "calibrate").map_err(|error| Obstacle::Failed(error.to_string()))?;
    let mut simulation = Simulation::new(&plan, 1, Vec::new());
    let region =
        RegionConfig { region: REGION, length: 2 * bytes, key: KEY, access: Access::ALL, tenant: Tenant(0) };
    for node in (0..nodes).map(NodeId) {
        simulation.memory_mut(node).add(REGION, 2 * bytes as usize);
        // Both halves are touched before the run: what the system takes to find pages is not the simulator's.
        let (source, target) = simulation.memory_mut(node).bytes_mut(REGION).split_at_mut(bytes as usize);
        source.fill(0x5a);
        target.fill(0xff);
        let registered = simulation.endpoint_mut(node).register(region);
        registered.map_err(|_| Obstacle::Failed("a region was refused".to_owned()))?;
    }
    pass(bench, &mut simulation, nodes, |simulation, node| {
        simulation.endpoint(node).is_reachable(partner(node, nodes))
    })?;
    let before = simulation.statistics().occurrences;
    let begun = Instant::now();
    for node in (0..nodes).map(NodeId) {
        let target = RemoteAddress { node: partner(node, nodes), region: REGION, offset: bytes, key: KEY };
        let source = LocalRange { region: REGION, offset: 0, length: bytes };
        let command = Command::Put { operation: OperationId(1), target, source, signal: None };
        let given = simulation.command(node, command);
        given.map_err(|refused| Obstacle::Failed(format!("a put was refused: {refused}")))?;
    }
    pass(bench, &mut simulation, nodes, |simulation, node| {
        simulation.memory(node).bytes(REGION).last() == Some(&0x5a)
    })?;
    let seconds = begun.elapsed().as_secs_f64().max(1e-9);
    let occurrences = (simulation.statistics().occurrences - before) as f64;
    is_whole(&simulation, nodes, bytes)?;
    let data_frames = (bytes.div_ceil(PAYLOAD_BYTES) * u64::from(nodes)) as f64;
    Ok(Taken { seconds, data_frames, occurrences })
}

/// Whom a node puts to: half a rack and one away, so that nobody puts to whom it gets from.
fn partner(node: NodeId, nodes: u16) -> NodeId {
    NodeId((node.0 + nodes / 2 + 1) % nodes)
}

/// Let virtual time pass until this holds for every node.
fn pass(
    bench: &Bench,
    simulation: &mut Simulation,
    nodes: u16,
    holds: impl Fn(&Simulation, NodeId) -> bool,
) -> Result<(), Obstacle> {
    let mut first = 0;
    for _ in 0..LOOKS_MAX {
        if bench.is_interrupted() {
            return Err(Obstacle::Interrupted);
        }
        // What holds once holds for good.
        while first < nodes && holds(simulation, NodeId(first)) {
            first += 1;
        }
        if first == nodes {
            return Ok(());
        }
        let until = simulation.now() + LOOK_NS;
        simulation.step_until(until).map_err(|stalled| Obstacle::Failed(stalled.to_string()))?;
    }
    Err(Obstacle::Failed(format!("node {first} of the permutation was not served")))
}

fn is_whole(simulation: &Simulation, nodes: u16, bytes: u64) -> Result<(), Obstacle> {
    let is_there =
        |node| simulation.memory(node).bytes(REGION)[bytes as usize..].iter().all(|byte| *byte == 0x5a);
    match (0..nodes).map(NodeId).find(|node| !is_there(*node)) {
        Some(node) => Err(Obstacle::Failed(format!("bytes of {node} are missing"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permutation_reaches_every_node_and_counts_its_frames() {
        let taken = permutation(&Bench::new(true).unwrap(), 8, 10_000).unwrap();
        assert_eq!(taken.data_frames, 24.0, "three frames each");
        assert!(taken.seconds > 0.0 && taken.occurrences > taken.data_frames);
    }
}
