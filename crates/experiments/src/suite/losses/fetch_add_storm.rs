//! Experiment 15: every operation happens exactly once under all faults.
//!
//! Every node adds to a counter at the first node while a script loses, duplicates and reorders frames, cuts a link or kills a
//! node. The final counter must agree with the completions of the callers.

use rackloom_protocol::{Instant, NodeId};
use rackloom_simulator::Action;

use crate::answer;
use crate::chart::{Axes, Axis};
use crate::experiment::{Experiment, Measured, Setup, Tolerance, Trial, straight};
use crate::knob::{Knob, KnobKind, Refused};
use crate::stage::Stage;
use crate::traffic::{Flow, Kind, REGION};

const NODES: u64 = 4;
/// Delay of a cut or a kill per operation of a node: in the middle of the traffic.
const FAULT_AFTER_NS: u64 = 130;
/// The node that a kill hits.
const VICTIM: usize = 3;
const OPEN_MAX: u64 = 8;

/// A counter under every script of faults.
pub(in crate::suite) static FETCH_ADD_STORM: Experiment = Experiment {
    number: 15,
    name: "fetch-add-storm",
    question: "Does every fetch-add happen exactly once under any fault?",
    formula: "completed <= counter <= completed + unknown; all of them if no node dies",
    theory: "A stream numbers its packets and the target takes each number once, on any path and however often it \
             comes; the outcome of an operation in flight to or from a dead node is reported as unknown.",
    perturbs: "fetch-adds that each node issues",
    knobs: &[
        Knob {
            name: "script",
            description: "the faults of the fabric",
            usual: &["clean", "drop", "duplicate", "reorder", "corrupt", "all", "cut", "kill"],
            reduced: &["all", "cut", "kill"],
            kind: KnobKind::Choice,
        },
        Knob {
            name: "operations",
            description: "fetch-adds of each node",
            usual: &["2000"],
            reduced: &["500"],
            kind: KnobKind::Count(100, 1_000_000),
        },
    ],
    axes: Axes {
        x: Axis { label: "script", is_logarithmic: false },
        y: Axis { label: "counter", is_logarithmic: false },
        names: Some(&[]),
    },
    curve: straight,
    answer: answer::none,
    trials,
};

fn trials(setup: &Setup) -> Result<Vec<Trial>, Refused> {
    let mut trials = Vec::new();
    for operations in setup.knobs.counts("operations", setup.reduced) {
        for (number, script) in setup.knobs.values("script", setup.reduced).into_iter().enumerate() {
            trials.push(trial(setup, number, script, operations));
        }
    }
    Ok(trials)
}

fn trial(setup: &Setup, number: usize, script: String, operations: u64) -> Trial {
    let all = ((NODES - 1) * operations) as f64;
    // Without the dead node's completions, the counter has those of the living nodes and the dead node's outstanding operations.
    let living = ((NODES - 2) * operations) as f64;
    let (expected, tolerance) = match script.as_str() {
        "kill" => (living, Tolerance::Between(living, living + OPEN_MAX as f64)),
        _ => (all, Tolerance::Exact),
    };
    let (seed, issued) = (setup.seed, setup.run_count(operations));
    Trial {
        series: script.clone(),
        setting: format!("{} nodes x {operations} fetch-adds, {script}", NODES - 1),
        is_drawn: true,
        x: number as f64 + 1.0,
        expected,
        tolerance,
        run: Box::new(move || measure(seed, &script, issued)),
    }
}

fn faults(script: &str) -> &'static str {
    match script {
        "drop" => ", loss: 5%",
        "duplicate" => ", duplicate: 20%",
        "reorder" => ", reorder: 20%",
        "corrupt" => ", corrupt: 5%",
        "all" => ", loss: 2%, duplicate: 5%, reorder: 5%, corrupt: 2%",
        _ => "",
    }
}

fn measure(seed: u64, script: &str, operations: u64) -> Result<Measured, String> {
    let text = format!(
        "{{name: mesh, shape: {{full-mesh: {{nodes: {NODES}}}}}, link: {{delay: 1us, rate: 10Gbit/s{}}}, \
         timers: {{heartbeat_interval: 100us, hello_interval: 10us}}, \
         transport: {{timeout_initial: 300us, timeout_min: 100us, timeout_max: 2ms, ack_delay: 10us}}}}",
        faults(script)
    );
    let flow = || Flow { open_max: OPEN_MAX, ..Flow::greedy(Kind::FetchAdd, 0, 8, operations) };
    let flows = (0..NODES).map(|node| if node == 0 { Vec::new() } else { vec![flow()] }).collect();
    let mut stage = Stage::new(&text, seed, flows)?;
    let fault_at = Instant(operations * FAULT_AFTER_NS);
    match script {
        "cut" => {
            stage.simulation.schedule(fault_at, Action::Cut { edge: stage.edge("n0--n2")?, direction: None })
        }
        "kill" => stage.simulation.schedule(fault_at, Action::Kill { member: NodeId(VICTIM as u16) }),
        _ => {}
    }
    stage.run()?;
    let bytes = stage.simulation.memory(NodeId(0)).bytes(REGION);
    let counter = bytes.first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
    let ledgers = (1..NODES as usize).map(|node| stage.ledger(node));
    let (completed, unknown) =
        ledgers.fold((0, 0), |(completed, unknown), one| (completed + one.completed, unknown + one.unknown));
    judge(script, counter, completed, unknown, operations)?;
    let note = format!("{completed} completed, {unknown} unknown, {} sent again", stage.retransmitted());
    let lost_completions = if script == "kill" { stage.ledger(VICTIM).completed } else { 0 };
    Ok(Measured { value: (counter - lost_completions) as f64, note: Some(note), ..Measured::default() })
}

/// Compares the callers' completions with the counter.
fn judge(script: &str, counter: u64, completed: u64, unknown: u64, operations: u64) -> Result<(), String> {
    // The dead node's operations that were outstanding at its death may have happened without a completion.
    let unreported = if script == "kill" { OPEN_MAX.min(operations) } else { 0 };
    if counter < completed || counter > completed + unknown + unreported {
        return Err(format!(
            "the counter is {counter}, callers got {completed} completions and {unknown} unknown"
        ));
    }
    if script != "kill" && unknown > 0 {
        return Err(format!("{unknown} outcomes are unknown although no node died"));
    }
    Ok(())
}
