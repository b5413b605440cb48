//! Experiment 6: behaviour of a link whose acknowledgements are all lost.
//!
//! From one time on no frame returns. The sender's frames are repeated as often as the replay count allows, then the
//! link is flushed and waits for its neighbour.

use rackloom_plan::impair::Direction;
use rackloom_protocol::{Instant, NodeId, PortId};
use rackloom_simulator::Action;

use crate::answer;
use crate::chart::{Axes, Axis};
use crate::experiment::{Experiment, Measured, Setup, Tolerance, Trial, straight};
use crate::knob::{Knob, KnobKind, Refused};
use crate::stage::Stage;
use crate::traffic::{Flow, Kind};

/// The hole opens after the rack is up, and before the only transfer begins.
const OPENS_AT: Instant = Instant(1_000_000);
const BEGINS_AFTER_NS: u64 = 2_000_000;
const LOOKED_AT: Instant = Instant(6_000_000);

/// Counts after an acknowledgement black hole.
pub(in crate::suite) static BLACK_HOLE: Experiment = Experiment {
    number: 6,
    name: "black-hole",
    question: "What does a link do whose acknowledgements all vanish?",
    formula: "n frames outstanding, k replays allowed: n (k + 1) frames sent, n k duplicates, k replays, 1 flush",
    theory: "Each replay sends all that is unacknowledged again; when the replays are used up the link is flushed (UEC-like \
             link-level retry).",
    perturbs: "frames that may be outstanding",
    knobs: &[
        Knob {
            name: "link.llr.outstanding_frames",
            description: "frames that may be unacknowledged",
            usual: &["10"],
            reduced: &[],
            kind: KnobKind::Count(1, 40),
        },
        Knob {
            name: "link.llr.replay_count_max",
            description: "replays in a row",
            usual: &["1", "3", "7"],
            reduced: &["3"],
            kind: KnobKind::Count(1, 100),
        },
    ],
    axes: Axes {
        x: Axis { label: "replays allowed", is_logarithmic: false },
        y: Axis { label: "count", is_logarithmic: false },
        names: None,
    },
    curve: straight,
    answer: answer::none,
    trials,
};

/// Measured quantity of a run.
#[derive(Clone, Copy, Debug)]
enum Quantity {
    Sent,
    Duplicates,
    Replays,
    Flushes,
}

fn trials(setup: &Setup) -> Result<Vec<Trial>, Refused> {
    let mut trials = Vec::new();
    for outstanding in setup.knobs.counts("link.llr.outstanding_frames", setup.reduced) {
        for (look, what) in [
            (Quantity::Sent, "frames sent"),
            (Quantity::Duplicates, "duplicates"),
            (Quantity::Replays, "replays"),
            (Quantity::Flushes, "flushes"),
        ] {
            for replays in setup.knobs.counts("link.llr.replay_count_max", setup.reduced) {
                let expected = match look {
                    Quantity::Sent => outstanding * (replays + 1),
                    Quantity::Duplicates => outstanding * replays,
                    Quantity::Replays => replays,
                    Quantity::Flushes => 1,
                };
                let (seed, run_outstanding) = (setup.seed, setup.run_count(outstanding));
                trials.push(Trial {
                    series: what.to_owned(),
                    setting: format!("{outstanding} outstanding, {replays} replays: {what}"),
                    is_drawn: true,
                    x: replays as f64,
                    expected: expected as f64,
                    tolerance: Tolerance::Exact,
                    run: Box::new(move || measure(seed, run_outstanding, replays, look)),
                });
            }
        }
    }
    Ok(trials)
}

fn measure(seed: u64, outstanding: u64, replays: u64, look: Quantity) -> Result<Measured, String> {
    let text = format!(
        "{{name: pair, shape: {{ring: {{nodes: 2}}}}, timers: {{heartbeat_interval: 100ms}}, \
         transport: {{timeout_initial: 1s, timeout_min: 1s, timeout_max: 1s}}, \
         link: {{rate: 100Gbit/s, delay: 500ns, \
         llr: {{outstanding_frames: {outstanding}, replay_count_max: {replays}}}}}}}"
    );
    let flow = Flow { times_ns: vec![BEGINS_AFTER_NS], ..Flow::greedy(Kind::Put, 1, 200_000, 1) };
    let mut stage = Stage::new(&text, seed, vec![vec![flow]])?;
    let hole = Action::DropAll { edge: stage.edge("n0--n1")?, direction: Some(Direction::Backward) };
    stage.simulation.schedule(OPENS_AT, hole);
    stage.simulation.step_until(LOOKED_AT).map_err(|stalled| stalled.to_string())?;
    let counters = |node| stage.simulation.counters(NodeId(node), PortId(0));
    let value = match look {
        Quantity::Sent => counters(0).data_frames_sent,
        Quantity::Duplicates => counters(1).retry.rx_duplicate_seq,
        Quantity::Replays => counters(0).retry.replays,
        Quantity::Flushes => counters(0).retry.flushes,
    };
    Ok((value as f64).into())
}
