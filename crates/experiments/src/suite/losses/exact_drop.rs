//! Experiment 5: effects of one lost frame of a thousand under link-level retry.
//!
//! The link loses data frame 901 once. All resulting frames are counted, and the refusals are read off the wire.

use std::sync::{Arc, Mutex, PoisonError};

use rackloom_plan::impair::Direction;
use rackloom_protocol::wire::FrameKind;
use rackloom_protocol::wire::layout::{LINK_ACK, u32_at};
use rackloom_protocol::{NodeId, PortId};

use crate::answer;
use crate::chart::{Axes, Axis};
use crate::experiment::{Experiment, Measured, Setup, Tolerance, Trial, straight};
use crate::knob::{Knob, KnobKind, Refused};
use crate::stage::Stage;
use crate::traffic::{Flow, Kind};

const FRAMES: u64 = 1_000;
const PUT_BYTES: u64 = 256;

/// Counts after one exact loss.
pub(in crate::suite) static EXACT_DROP: Experiment = Experiment {
    number: 5,
    name: "exact-drop",
    question: "What does one lost frame of a thousand set off under link-level retry?",
    formula: "drop frame m of n: one NACK, naming m - 1; one replay; n frames taken; no packet sent again end to end",
    theory: "The receiver refuses once per gap and is silent until the expected frame comes; the replay brings it (UEC-like \
             link-level retry).",
    perturbs: "number of the frame that is lost",
    knobs: &[Knob {
        name: "links.drop_frames",
        description: "number of the data frame that is lost",
        usual: &["901"],
        reduced: &[],
        kind: KnobKind::Count(1, FRAMES - 1),
    }],
    axes: Axes {
        x: Axis { label: "what is counted", is_logarithmic: false },
        y: Axis { label: "count", is_logarithmic: true },
        names: Some(&[]),
    },
    curve: straight,
    answer: answer::none,
    trials,
};

/// Measured quantity of a run.
#[derive(Clone, Copy, Debug)]
enum Quantity {
    Refusals,
    Named,
    Replays,
    Taken,
    SentAgain,
}

fn trials(setup: &Setup) -> Result<Vec<Trial>, Refused> {
    let mut trials = Vec::new();
    for number in setup.knobs.counts("links.drop_frames", setup.reduced) {
        let (seed, lost) = (setup.seed, setup.run_count(number));
        let looks = [
            (Quantity::Refusals, "NACKs", 1),
            (Quantity::Named, "last frame before the gap", number - 1),
            (Quantity::Replays, "replays", 1),
            (Quantity::Taken, "frames taken in order", FRAMES),
            (Quantity::SentAgain, "packets sent again end to end", 0),
        ];
        for (index, (look, what, expected)) in looks.into_iter().enumerate() {
            trials.push(Trial {
                series: what.to_owned(),
                setting: format!("frame {number} of {FRAMES} lost: {what}"),
                is_drawn: true,
                x: index as f64 + 1.0,
                expected: expected as f64,
                tolerance: Tolerance::Exact,
                run: Box::new(move || measure(seed, lost, look)),
            });
        }
    }
    Ok(trials)
}

fn measure(seed: u64, lost: u64, look: Quantity) -> Result<Measured, String> {
    let text = format!(
        "{{name: pair, shape: {{ring: {{nodes: 2}}}}, packing: {{mode: off}}, \
         link: {{rate: 100Gbit/s, delay: 500ns, llr: on}}, links: {{n0--n1: {{drop_frames: {{n0->n1: [{lost}]}}}}}}}}"
    );
    let mut stage = Stage::new(&text, seed, vec![vec![Flow::greedy(Kind::Put, 1, PUT_BYTES, FRAMES)]])?;
    let refusals = Arc::<Mutex<Vec<u32>>>::default();
    let seen = Arc::clone(&refusals);
    stage.simulation.on_frame(move |_, _, direction, frame| {
        if direction == Direction::Backward && FrameKind::peek(frame) == Some(FrameKind::LinkNack) {
            seen.lock().unwrap_or_else(PoisonError::into_inner).push(u32_at(frame, LINK_ACK));
        }
    });
    stage.run()?;
    let refusals = refusals.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let counters = |node| &stage.simulation.counters(NodeId(node), PortId(0)).retry;
    let value = match look {
        Quantity::Refusals => refusals.len() as u64,
        Quantity::Named => refusals.first().copied().ok_or("nothing was refused")?.into(),
        Quantity::Replays => counters(0).replays,
        Quantity::Taken => counters(1).rx_ok,
        Quantity::SentAgain => stage.retransmitted(),
    };
    Ok((value as f64).into())
}
