//! Experiment 4: what lost frames cost, by how they are sent again.
//!
//! A stream of small puts fills a link that loses data frames and nothing else. Goodput is the share of the frames sent
//! that were new, on a link that was never idle. Where losses are so rare that chance would want tens of millions of
//! frames, thirty listed frames are lost instead, far apart, and the cost of one is what counts.

use crate::chart::{Axes, Axis};
use crate::experiment::{Experiment, Measured, Setup, Tolerance, Trial};
use crate::knob::{Knob, KnobKind, Refused};
use crate::stage::Stage;
use crate::theory::retry::{Stream, selective};
use crate::theory::wire::SUE;
use crate::traffic::{Flow, Kind};

const RATE_BITS_PER_S: f64 = 400e9;
const DELAY_NS: f64 = 1_000.0;
/// With 38 bytes of headers and 20 of preamble and gap: 320 on the wire.
const PUT_BYTES: u64 = 262;
const TIMER_NS: u64 = 20_000;
/// Frames beyond the round trip that a loss costs under go-back-N: the lost one, and the later one that tells of it.
const BEHIND: f64 = 2.0;
/// What the turn at a frame's end may add.
const BEHIND_SLACK: f64 = 1.0;
/// Losses that a run waits for.
const EVENTS: f64 = 1_200.0;
/// Below this, losses are listed and not drawn.
const RARE: f64 = 1e-4;
const LISTED: u64 = 30;
/// Frames between two listed losses: more than a loss costs.
const APART: u64 = 1_500;

/// Goodput over frame loss, for each way of sending again.
pub(super) static LOSS_SWEEP: Experiment = Experiment {
    number: 4,
    name: "loss-sweep",
    question: "What do lost frames cost, by how they are sent again?",
    formula: "go-back-N: 1 / (1 + p D + p^2/(1 - p) Dt), D = RTT B/L + 2; selective: 1 - p",
    theory: "Under go-back-N a loss costs all that left until its news came (one negative acknowledgement per gap), and the \
             timer if the first frame sent again is lost too; under selective repeat it costs one frame.",
    perturbs: "loss of the link, or its delay where losses are listed",
    knobs: &[
        Knob {
            name: "link.loss",
            meaning: "probability that a data frame is lost",
            usual: &["1e-5", "1e-4", "1e-3", "1e-2"],
            reduced: &["1e-5", "1e-2"],
            kind: KnobKind::Share,
        },
        Knob {
            name: "transport.mode",
            meaning: "how lost packets are sent again",
            usual: &["go-back-n", "selective"],
            reduced: &[],
            kind: KnobKind::Word,
        },
    ],
    axes: Axes {
        x: Axis { label: "probability that a frame is lost", is_logarithmic: true },
        y: Axis { label: "goodput / link rate", is_logarithmic: false },
    },
    curve,
    trials,
};

/// What a run is told.
#[derive(Clone, Copy, Debug)]
struct Run {
    seed: u64,
    loss: f64,
    delay_ns: u64,
    is_listed: bool,
}

fn trials(setup: &Setup) -> Result<Vec<Trial>, Refused> {
    let mut trials = Vec::new();
    for mode in setup.knobs.words("transport.mode", setup.reduced) {
        for loss in setup.knobs.shares("link.loss", setup.reduced) {
            trials.push(trial(setup, &mode, loss));
        }
    }
    Ok(trials)
}

fn expected(mode: &str, loss: f64, behind: f64) -> f64 {
    let stream = Stream {
        rate_bits_per_s: RATE_BITS_PER_S,
        frame_wire_bytes: SUE.wire_bytes(1, PUT_BYTES) as f64,
        round_trip_ns: 2.0 * DELAY_NS,
        timer_ns: TIMER_NS as f64,
    };
    if mode == "selective" { selective(loss) } else { stream.go_back_n(loss, behind) }
}

fn trial(setup: &Setup, mode: &str, loss: f64) -> Trial {
    let goodput = expected(mode, loss, BEHIND);
    let is_listed = loss < RARE;
    let slack = (goodput - expected(mode, loss, BEHIND + BEHIND_SLACK)).abs();
    let tolerance = if is_listed {
        // One frame more or less per loss.
        Tolerance::Absolute(slack.max(loss / 100.0))
    } else {
        Tolerance::Chance { spread: goodput * (1.0 - goodput), slack }
    };
    let run = if is_listed {
        Run { seed: setup.seed, loss, delay_ns: setup.run_input(DELAY_NS) as u64, is_listed }
    } else {
        Run { seed: setup.seed, loss: setup.run_input(loss), delay_ns: DELAY_NS as u64, is_listed }
    };
    let mode = mode.to_owned();
    Trial {
        series: mode.clone(),
        setting: format!("{mode}, loss {loss:e}"),
        is_drawn: true,
        x: loss,
        expected: goodput,
        tolerance,
        run: Box::new(move || measure(&mode, run, goodput)),
    }
}

fn measure(mode: &str, run: Run, share: f64) -> Result<Measured, String> {
    let Run { seed, loss, delay_ns, is_listed } = run;
    let faults = if is_listed {
        let numbers: Vec<String> = (1..=LISTED).map(|number| (number * APART).to_string()).collect();
        format!("drop_frames: {{n0->n1: [{}]}}", numbers.join(", "))
    } else {
        format!("loss_by_kind: {{data: {loss}}}")
    };
    let text = format!(
        "{{name: pair, shape: {{ring: {{nodes: 2}}}}, ring_bytes: 16MiB, watchdog: 60s, \
         link: {{rate: 400Gbit/s, delay: {delay_ns}ns, headers: sue-like}}, links: {{n0--n1: {{{faults}}}}}, \
         timers: {{heartbeat_interval: 10ms}}, \
         transport: {{mode: {mode}, window_packets: 4096, ack_every_packets: 16, ack_delay: 1us, \
         timeout_initial: {TIMER_NS}ns, timeout_min: {TIMER_NS}ns, timeout_max: {TIMER_NS}ns}}}}"
    );
    let puts = if is_listed { (LISTED + 1) * APART } else { (EVENTS / loss * share) as u64 };
    let mut stage = Stage::new(&text, seed, vec![vec![Flow::greedy(Kind::Put, 1, PUT_BYTES, puts)]])?;
    stage.run()?;
    let wire = stage.forward("n0--n1")?;
    is_never_idle(&stage, wire.data_accounted_bytes)?;
    let (sent, events) = (wire.data_frames_sent, wire.frames_dropped);
    if !is_listed {
        return Ok(Measured { value: puts as f64 / sent as f64, events: Some(events), note: None });
    }
    let cost = (sent - puts) as f64 / events as f64;
    let note = format!("{cost:.2} frames per loss, over {events} listed losses");
    Ok(Measured { value: 1.0 / (1.0 + loss * cost), events: None, note: Some(note) })
}

/// A share of frames is a share of time only while the link sends.
fn is_never_idle(stage: &Stage, data_bytes: u64) -> Result<(), String> {
    let ledger = stage.ledger(0);
    let (Some(began), Some(ended)) = (ledger.began, ledger.ended) else {
        return Err("the traffic did not end".into());
    };
    let busy = data_bytes as f64 * 8e9 / RATE_BITS_PER_S / ended.since(began) as f64;
    if busy > 0.97 {
        Ok(())
    } else {
        Err(format!("the link was busy for {:.1} % of the time only", busy * 100.0))
    }
}

/// Goodput between the losses.
fn curve(series: &str, loss: f64) -> Option<f64> {
    Some(expected(series, loss, BEHIND))
}
