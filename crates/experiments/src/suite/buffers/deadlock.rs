//! Experiment 11: racks that deadlock, and the settings that prevent it.
//!
//! In a ring every node sends to one three further on and puts its own frames first: buffers fill with frames that wait for each
//! other. In a star every node loads from all others and drains a request only when it has answered: requests
//! wait for answers that wait for requests. A dateline, a bubble, or a channel for answers, and everything arrives.

use crate::answer;
use crate::chart::{Axes, Axis};
use crate::experiment::{Experiment, Measured, Setup, Tolerance, Trial, straight};
use crate::knob::{Knob, KnobKind, Refused};
use crate::stage::Stage;
use crate::traffic::{Flow, Kind};

const NODES: u16 = 8;
/// The shortest path to this distance is unique, unlike that to the opposite node.
const DISTANCE: u16 = 3;
const PUT_BYTES: u64 = 4_096;
const PUTS: u64 = 64;
/// A largest frame of 4240 bytes in credits of 128 with 16 more: 34, and 2 for rounding.
const FRAME_CREDITS: u64 = 34;
const FRAME_BYTES_MAX: u64 = 4_240;
const LOADS: u64 = 400;
const LOAD_BYTES: u64 = 256;

/// Frames delivered by racks that deadlock, and by those that do not.
pub(in crate::suite) static DEADLOCK: Experiment = Experiment {
    number: 11,
    name: "deadlock",
    question: "Which racks stand still for ever, and what keeps them moving?",
    formula: "a ring of one channel, own frames first: 0 delivered, for any buffers, of credits as of pauses; with a dateline, hops or a bubble: all. A \
              star of responders: stalls with one channel, ends with one for answers",
    theory: "A circle of buffers in which each waits for the next stands still once it is full; it cannot close where the channel \
             dependencies have no circle (Dally and Seitz 1987), nor fill where entering it leaves a bubble (Puente et al. 1999).",
    perturbs: "operations of each node",
    knobs: &[Knob {
        name: "buffers",
        description: "largest frames that a channel of the ring holds",
        usual: &["1", "2", "4", "16"],
        reduced: &["1", "4"],
        kind: KnobKind::Count(1, 32),
    }],
    axes: Axes {
        x: Axis { label: "largest frames that a channel holds", is_logarithmic: true },
        y: Axis { label: "operations that end", is_logarithmic: false },
        names: None,
    },
    curve: straight,
    answer: answer::none,
    trials,
};

/// Measures against the circle of a ring: name, lines of the file, channels of a link.
const RINGS: [(&str, &str, u64); 4] = [
    ("ring, one channel", "forwarding: {bubble: false, priority: own, deadlock: allow}", 1),
    (
        "ring with a dateline",
        "forwarding: {bubble: false, priority: own}, channels: {ONE_LANE, rise: dateline}",
        2,
    ),
    (
        "ring, channel by hop",
        "forwarding: {bubble: false, priority: own}, channels: {ONE_LANE, rise: hop}",
        4,
    ),
    ("ring with a bubble", "forwarding: {priority: own}", 1),
];
const ONE_LANE: &str = "lanes: {request: 0, reply: 0, bulk: 0, bulk_reply: 0}";

fn trials(setup: &Setup) -> Result<Vec<Trial>, Refused> {
    let mut trials = Vec::new();
    let (seed, puts, loads) = (setup.seed, setup.run_count(PUTS), setup.run_count(LOADS));
    for (index, (name, rules, channels)) in RINGS.into_iter().enumerate() {
        for buffers in setup.knobs.counts("buffers", setup.reduced) {
            // A bubble needs space for two.
            if name.contains("bubble") && buffers < 2 {
                continue;
            }
            let credits = buffers * FRAME_CREDITS * channels;
            let rules = rules.replace("ONE_LANE", ONE_LANE);
            let expected = if index == 0 { 0 } else { u64::from(NODES) * PUTS };
            trials.push(Trial {
                series: name.to_owned(),
                setting: format!("{name}, {buffers} frames of buffer: puts delivered"),
                is_drawn: true,
                x: buffers as f64,
                expected: expected as f64,
                tolerance: Tolerance::Exact,
                run: Box::new(move || {
                    let credits =
                        format!("credits: {{limit: {credits}, overhead_bytes: 16B, unit_bytes: 128B}},");
                    ring(seed, puts, &rules, "llr: off", &credits)
                }),
            });
        }
    }
    for buffers in setup.knobs.counts("buffers", setup.reduced) {
        trials.push(Trial {
            series: "ring that pauses".to_owned(),
            setting: format!("ring that pauses above {buffers} frames: puts delivered"),
            is_drawn: true,
            x: buffers as f64,
            expected: 0.0,
            tolerance: Tolerance::Exact,
            run: Box::new(move || {
                let pfc = format!("pfc: {{xoff: {}B, watchdog: 0ns}}", buffers * FRAME_BYTES_MAX);
                ring(seed, puts, "forwarding: {priority: own, deadlock: allow}", &pfc, "")
            }),
        });
    }
    for (name, channels, ends) in
        [("one channel", "off", false), ("a channel for answers", "{lanes: {bulk: 0, bulk_reply: 1}}", true)]
    {
        trials.push(Trial {
            series: "star".to_owned(),
            setting: format!("star of responders, {name}: 1 if all loads end, 0 if it stands still"),
            is_drawn: false,
            x: 1.0,
            expected: f64::from(u8::from(ends)),
            tolerance: Tolerance::Exact,
            run: Box::new(move || star(seed, loads, channels)),
        });
    }
    Ok(trials)
}

/// Returns how many operations end; if not all, there must be a circle of full buffers.
fn ended(stage: &mut Stage, wanted: u64) -> Result<Measured, String> {
    let outcome = stage.run();
    let nodes = 0..usize::from(NODES);
    let completed = nodes.map(|node| stage.ledger(node).completed).sum::<u64>();
    let note = match outcome {
        Ok(()) if completed == wanted => None,
        Ok(()) => return Err(format!("{completed} of {wanted} operations ended, and no member waits")),
        Err(stalled) => match stalled.lines().find(|line| line.contains("deadlock:")) {
            Some(circle) => Some(format!("circle of {}", circle.matches("which wait for").count())),
            None => return Err(format!("it stalled without a circle: {stalled}")),
        },
    };
    Ok(Measured { value: completed as f64, note, ..Measured::default() })
}

fn ring(seed: u64, puts: u64, rules: &str, of_link: &str, credits: &str) -> Result<Measured, String> {
    // The link is slow compared with the differences between the nodes' starts.
    let text = format!(
        "{{name: ring, shape: {{ring: {{nodes: {NODES}}}}}, link: {{rate: 1Gbit/s, delay: 500ns, {of_link}}}, \
         {credits} watchdog: 2s, {rules}, \
         timers: {{heartbeat_interval: 1ms}}, \
         transport: {{timeout_initial: 1s, timeout_min: 1s, timeout_max: 1s}}}}"
    );
    let flows =
        (0..NODES).map(|node| vec![Flow::greedy(Kind::Put, (node + DISTANCE) % NODES, PUT_BYTES, puts)]);
    ended(&mut Stage::new(&text, seed, flows.collect())?, u64::from(NODES) * puts)
}

fn star(seed: u64, loads: u64, channels: &str) -> Result<Measured, String> {
    let allow = if channels == "off" { ", deadlock: allow" } else { "" };
    let text = format!(
        "{{name: star, shape: {{star: {{nodes: {NODES}}}}}, link: {{rate: 1Gbit/s, delay: 500ns}}, frame_bytes_max: 400B, \
         credits: {{limit: 16, overhead_bytes: 16B, unit_bytes: 128B}}, packing: {{mode: off}}, watchdog: 2s, channels: {channels}, \
         forwarding: {{bubble: false, drain: answered{allow}}}, timers: {{heartbeat_interval: 1ms}}, \
         transport: {{timeout_initial: 1s, timeout_min: 1s, timeout_max: 1s}}}}"
    );
    let others = |node| (0..NODES).filter(move |other| *other != node);
    let flows = (0..NODES)
        .map(|node| others(node).map(|other| Flow::greedy(Kind::Load, other, LOAD_BYTES, loads)).collect());
    let wanted = u64::from(NODES) * u64::from(NODES - 1) * loads;
    let measured = ended(&mut Stage::new(&text, seed, flows.collect())?, wanted)?;
    let value = f64::from(u8::from(measured.value == wanted as f64));
    Ok(Measured { value, ..measured })
}
