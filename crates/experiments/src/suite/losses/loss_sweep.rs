//! Experiment 4: cost of lost frames, by kind of retransmission.
//!
//! A stream of small puts fills the path from a node over a switch to another; the first link loses data frames and nothing
//! else. Goodput is the share of the frames sent there that were new, on a link that was never idle. End to end the round
//! trip is 2 us, most of it on the second link; the loop of the first, where it repeats by itself, is a tenth of that.
//! Where losses are so rare that a random run would need tens of millions of frames, thirty listed frames are lost instead, far
//! apart, and the cost of one is measured.

use crate::answer;
use crate::chart::{Axes, Axis};
use crate::experiment::{Experiment, Measured, Row, Setup, Tolerance, Trial};
use crate::knob::{Knob, KnobKind, Refused};
use crate::stage::Stage;
use crate::theory::retry::{Stream, selective};
use crate::theory::wire::SUE;
use crate::traffic::{Flow, Kind};

const RATE_BITS_PER_S: f64 = 400e9;
/// Delay of the first link, which loses.
const DELAY_NS: f64 = 100.0;
/// Delay of the second link.
const REST_NS: f64 = 900.0;
/// With 38 bytes of headers and 20 of preamble and gap: 320 on the wire.
const PUT_BYTES: u64 = 262;
const TIMER_NS: u64 = 20_000;
const REPLAY_TIMER_NS: u64 = 2_000;
/// Frames beyond the round trip that a loss costs under go-back-N: the lost one, a part of the later one that reveals
/// it, and a part of the one that is being sent when the refusal arrives.
const BEHIND: f64 = 2.0;
const BEHIND_SLACK: f64 = 1.0;
/// The largest loss for which the closed forms hold, in thousandths. Beyond it the first frames sent again are lost so often that the
/// windows run empty while timers run, and the link is idle, which no term of the forms counts.
const LOSS_MAX_THOUSANDTHS: u16 = 20;
/// Losses that a run needs, without those of frames that are discarded anyway.
const EVENTS: f64 = 4_800.0;
/// Maximum number of puts, which meet 2400 losses at 1e-3.
const PUTS_MAX: f64 = 2.4e6;
/// A run is longer if it meets fewer losses than these: a thousand, and three standard deviations more.
const EVENTS_MIN: f64 = 1_105.0;
/// Below this, losses are listed and not drawn.
const RARE: f64 = 1e-4;
/// From this rate on losses are met soon.
const FREQUENT: f64 = 1e-3;
const LISTED: u64 = 30;
/// Frames between two listed losses: more than a loss costs.
const APART: u64 = 1_500;

/// Goodput over frame loss, for each kind of retransmission.
pub(in crate::suite) static LOSS_SWEEP: Experiment = Experiment {
    number: 4,
    name: "loss-sweep",
    question: "What do lost frames cost, by how they are sent again?",
    formula: "go-back-N, end to end or on the link: 1 / (1 + p D + p^2/(1 - p) Dt), D = RTT B/L + 2; selective end to end: 1 - p",
    theory: "Under go-back-N a loss costs all frames sent until the negative acknowledgement came (one per gap), and the \
             timer if the first frame sent again is lost too; under selective repeat it costs one frame. A link that \
             repeats by itself (UEC-like link-level retry) goes back too, over a shorter RTT, and leaves nothing to the transport.",
    perturbs: "loss of the link, or the delay of the second link where losses are listed",
    knobs: &[
        Knob {
            name: "link.loss",
            description: "probability that a data frame is lost",
            usual: &["1e-5", "1e-4", "1e-3", "1e-2"],
            reduced: &["1e-5", "1e-2"],
            kind: KnobKind::ShareUpTo { thousandths: LOSS_MAX_THOUSANDTHS },
        },
        Knob {
            name: "transport.mode",
            description: "how lost packets are sent again end to end",
            usual: &["go-back-n", "selective"],
            reduced: &[],
            kind: KnobKind::Choice,
        },
        Knob {
            name: "link.llr",
            description: "whether the link repeats by itself",
            usual: &["off", "on"],
            reduced: &[],
            kind: KnobKind::Choice,
        },
    ],
    axes: Axes {
        x: Axis { label: "probability that a frame is lost", is_logarithmic: true },
        y: Axis { label: "goodput / link rate", is_logarithmic: false },
        names: None,
    },
    curve,
    answer: in_words,
    trials,
};

/// The member that retransmits, and the retransmitted frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Recovery {
    is_selective: bool,
    is_on_the_link: bool,
}

impl Recovery {
    const ALL: [Self; 4] = [
        Self { is_selective: false, is_on_the_link: false },
        Self { is_selective: true, is_on_the_link: false },
        Self { is_selective: false, is_on_the_link: true },
        Self { is_selective: true, is_on_the_link: true },
    ];

    const fn transport_mode(self) -> &'static str {
        if self.is_selective { "selective" } else { "go-back-n" }
    }

    /// Returns the name in tables and figures.
    fn name(self) -> String {
        let on_the_link = if self.is_on_the_link { ", llr" } else { "" };
        format!("{}{on_the_link}", self.transport_mode())
    }

    /// Returns true if a loss costs the frames that left after it: end to end, or on the link, which always goes back.
    const fn goes_back(self) -> bool {
        self.is_on_the_link || !self.is_selective
    }

    fn stream(self) -> Stream {
        let (one_way_ns, timer_ns) = match self.is_on_the_link {
            true => (DELAY_NS, REPLAY_TIMER_NS),
            false => (DELAY_NS + REST_NS, TIMER_NS),
        };
        Stream {
            rate_bits_per_s: RATE_BITS_PER_S,
            frame_wire_bytes: SUE.wire_bytes(1, PUT_BYTES) as f64,
            round_trip_ns: 2.0 * one_way_ns,
            timer_ns: timer_ns as f64,
        }
    }

    fn goodput(self, loss: f64, behind: f64) -> f64 {
        if self.goes_back() { self.stream().go_back_n(loss, behind) } else { selective(loss) }
    }

    /// Returns the change of goodput by all counted losses of a run together.
    fn spread(self, loss: f64) -> f64 {
        let goodput = self.goodput(loss, BEHIND);
        let uneven = if self.goes_back() { self.stream().unevenness(loss, BEHIND) } else { 1.0 };
        goodput * (1.0 - goodput) * uneven
    }
}

/// Inputs of a run.
#[derive(Clone, Copy, Debug)]
struct Run {
    seed: u64,
    loss: f64,
    rest_ns: u64,
    is_listed: bool,
}

/// Returns the loss that each kind of retransmission tolerates, as text.
fn in_words(rows: &[Row]) -> Vec<String> {
    const KEPT: f64 = 0.95;
    let line = |(name, points): (&str, Vec<(f64, f64)>)| {
        let keeps = match answer::holds_up_to(&points, KEPT) {
            Some(loss) => format!("{} of the link and more up to a loss of {loss:e}", answer::per_cent(KEPT)),
            None => format!("less than {} of the link", answer::per_cent(KEPT)),
        };
        let (most, share) = *points.last()?;
        Some(format!("{name}: {keeps}; {} at {most:e}", answer::per_cent(share)))
    };
    answer::by_series(rows).into_iter().filter_map(line).collect()
}

fn trials(setup: &Setup) -> Result<Vec<Trial>, Refused> {
    let modes = setup.knobs.values("transport.mode", setup.reduced);
    let retries = setup.knobs.values("link.llr", setup.reduced);
    let losses = setup.knobs.shares("link.loss", setup.reduced);
    let is_wanted = |recovery: &Recovery| {
        let retry = if recovery.is_on_the_link { "on" } else { "off" };
        modes.iter().any(|mode| mode == recovery.transport_mode()) && retries.iter().any(|one| one == retry)
    };
    // Where the link repeats, the transport has nothing left to choose. Frequent losses show that. Rare ones, which take most of
    // the time, are run only on request.
    let is_selected = |recovery: Recovery, loss: f64| {
        let is_long = (RARE..FREQUENT).contains(&loss);
        let is_requested = setup.knobs.is_varied("link.loss") || setup.knobs.is_varied("transport.mode");
        !(recovery.is_on_the_link && recovery.is_selective && is_long) || is_requested
    };
    let repairs = Recovery::ALL.into_iter().filter(is_wanted);
    let pairs = repairs.flat_map(|recovery| losses.iter().map(move |loss| (recovery, *loss)));
    let selected = pairs.filter(|(recovery, loss)| is_selected(*recovery, *loss));
    Ok(selected.map(|(recovery, loss)| trial(setup, recovery, loss)).collect())
}

fn trial(setup: &Setup, recovery: Recovery, loss: f64) -> Trial {
    let goodput = recovery.goodput(loss, BEHIND);
    let is_listed = loss < RARE;
    let slack = (goodput - recovery.goodput(loss, BEHIND + BEHIND_SLACK)).abs();
    let tolerance = if is_listed {
        // One frame more or less per loss.
        Tolerance::Absolute(slack.max(loss / 100.0))
    } else {
        Tolerance::Chance { spread: recovery.spread(loss), slack }
    };
    let run = if is_listed {
        Run { seed: setup.seed, loss, rest_ns: setup.run_input(REST_NS) as u64, is_listed }
    } else {
        Run { seed: setup.seed, loss: setup.run_input(loss), rest_ns: REST_NS as u64, is_listed }
    };
    Trial {
        series: recovery.name(),
        setting: format!("{}, loss {loss:e}", recovery.name()),
        is_drawn: true,
        x: loss,
        expected: goodput,
        tolerance,
        run: Box::new(move || measure(recovery, run)),
    }
}

fn measure(recovery: Recovery, run: Run) -> Result<Measured, String> {
    let Run { seed, loss, rest_ns, is_listed } = run;
    let faults = if is_listed {
        let numbers: Vec<String> = (1..=LISTED).map(|number| (number * APART).to_string()).collect();
        format!("drop_frames: {{n0->s0: [{}]}}", numbers.join(", "))
    } else {
        format!("loss_by_kind: {{data: {loss}}}")
    };
    let mode = recovery.transport_mode();
    let llr = match recovery.is_on_the_link {
        true => format!(", llr: {{replay_timer: {REPLAY_TIMER_NS}ns, ack_delay: 100ns}}"),
        false => String::new(),
    };
    let text = format!(
        "{{name: two, shape: {{star: {{nodes: 2}}}}, ring_bytes: 16MiB, watchdog: 60s, \
         link: {{rate: 400Gbit/s, delay: {DELAY_NS}ns, headers: sue-like{llr}}}, links: {{n0--s0: {{{faults}}}, n1--s0: {{delay: {rest_ns}ns}}}}, \
         forwarding: {{mode: cut-through}}, \
         timers: {{heartbeat_interval: 10ms}}, \
         transport: {{mode: {mode}, window_packets: 4096, ack_every_packets: 16, ack_delay: 1us, \
         timeout_initial: {TIMER_NS}ns, timeout_min: {TIMER_NS}ns, timeout_max: {TIMER_NS}ns}}}}"
    );
    let puts = if is_listed { (LISTED + 1) * APART } else { puts_for(loss) };
    let mut stage = Stage::new(&text, seed, vec![vec![Flow::greedy(Kind::Put, 1, PUT_BYTES, puts)]])?;
    stage.run()?;
    let wire = stage.forward("n0--s0")?;
    is_never_idle(&stage, wire.data_accounted_bytes)?;
    let (sent, lost) = (wire.data_frames_sent, wire.frames_dropped);
    if !is_listed {
        let share = puts as f64 / sent as f64;
        // The loss of a frame that is discarded anyway costs nothing and carries no information.
        let events = if recovery.goes_back() { (lost as f64 * share) as u64 } else { lost };
        return Ok(Measured { value: share, events: Some(events), ..Measured::default() });
    }
    let cost = (sent - puts) as f64 / lost as f64;
    let note = format!("{cost:.2} frames per loss, over {lost} listed losses");
    Ok(Measured { value: 1.0 / (1.0 + loss * cost), note: Some(note), ..Measured::default() })
}

/// Returns the number of puts that meets enough losses, and not more.
fn puts_for(loss: f64) -> u64 {
    (EVENTS / loss).min(PUTS_MAX).max(EVENTS_MIN / loss) as u64
}

/// Checks that the link always sends: only then is a share of frames a share of time.
fn is_never_idle(stage: &Stage, data_bytes: u64) -> Result<(), String> {
    let ledger = stage.ledger(0);
    let (Some(began), Some(ended)) = (ledger.began, ledger.ended) else {
        return Err("the traffic did not end".into());
    };
    let busy = data_bytes as f64 * 8e9 / RATE_BITS_PER_S / ended.since(began) as f64;
    // A timer may end the run: twenty microseconds of some hundred.
    if busy > 0.9 {
        Ok(())
    } else {
        Err(format!("the link was busy for {:.1} % of the time only", busy * 100.0))
    }
}

/// Returns the goodput between the losses.
fn curve(series: &str, loss: f64) -> Option<f64> {
    let recovery = Recovery::ALL.into_iter().find(|recovery| recovery.name() == series)?;
    Some(recovery.goodput(loss, BEHIND))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOSS: f64 = 0.01;
    const PUTS: u64 = 6_000;
    const SEEDS: u64 = 16;

    /// Returns the goodput at the first link where both lose one in a hundred data frames.
    fn goodput(recovery: Recovery, seed: u64) -> f64 {
        let text = format!(
            "{{name: two, shape: {{star: {{nodes: 2}}}}, ring_bytes: 16MiB, watchdog: 60s, \
             link: {{rate: 400Gbit/s, delay: {DELAY_NS}ns, headers: sue-like, loss_by_kind: {{data: {LOSS}}}}}, \
             links: {{n1--s0: {{delay: {REST_NS}ns}}}}, forwarding: {{mode: cut-through}}, timers: {{heartbeat_interval: 10ms}}, \
             transport: {{mode: {}, window_packets: 4096, ack_every_packets: 16, ack_delay: 1us, \
             timeout_initial: {TIMER_NS}ns, timeout_min: {TIMER_NS}ns, timeout_max: {TIMER_NS}ns}}}}",
            recovery.transport_mode()
        );
        let flows = vec![vec![Flow::greedy(Kind::Put, 1, PUT_BYTES, PUTS)]];
        let mut stage = Stage::new(&text, seed, flows).expect("a stage");
        stage.run().expect("everything comes");
        PUTS as f64 / stage.forward("n0--s0").expect("the link").data_frames_sent as f64
    }

    fn settings(vary: &[(&str, &str)]) -> Vec<String> {
        let values =
            vary.iter().map(|(knob, value)| ((*knob).to_owned(), vec![(*value).to_owned()])).collect();
        let knobs = crate::knob::Knobs::new("loss-sweep", LOSS_SWEEP.knobs, &values).expect("known knobs");
        trials(&Setup::whole(knobs)).expect("trials").into_iter().map(|trial| trial.setting).collect()
    }

    #[test]
    fn long_runs_of_a_repeating_link_are_made_only_on_request() {
        let rare = "selective, llr, loss 1e-4".to_owned();
        let usual = settings(&[]);
        assert!(usual.len() == 15 && !usual.contains(&rare), "{usual:?}");
        assert!(usual.contains(&"go-back-n, llr, loss 1e-4".to_owned()), "{usual:?}");
        for setting in [("link.loss", "1e-4"), ("transport.mode", "selective")] {
            assert!(settings(&[setting]).contains(&rare), "{setting:?}");
        }
    }

    #[test]
    fn runs_are_long_enough_for_their_losses() {
        assert_eq!([1e-4, 1e-3, 1e-2].map(puts_for), [11_050_000, 2_400_000, 480_000]);
    }

    /// The spread is that of the runs themselves, not of a formula.
    #[test]
    fn with_one_per_cent_lost_on_every_link_goodput_is_within_three_sigma_of_the_closed_form() {
        let on_both_links = 1.0 - (1.0 - LOSS) * (1.0 - LOSS);
        for recovery in Recovery::ALL.into_iter().filter(|recovery| !recovery.is_on_the_link) {
            let expected = recovery.goodput(on_both_links, BEHIND);
            let slack = (expected - recovery.goodput(on_both_links, BEHIND + BEHIND_SLACK)).abs();
            let runs: Vec<f64> = (1..=SEEDS).map(|seed| goodput(recovery, seed)).collect();
            let mean = runs.iter().sum::<f64>() / SEEDS as f64;
            let variance = runs.iter().map(|run| (run - mean).powi(2)).sum::<f64>() / (SEEDS - 1) as f64;
            let sigma = variance.sqrt();
            let name = recovery.name();
            assert!(sigma > 0.0 && sigma < expected / 5.0, "{name}: {sigma}");
            let off = (mean - expected).abs();
            assert!(
                off <= 3.0 * sigma / (SEEDS as f64).sqrt() + slack,
                "{name}: {mean} is {off} off {expected}, sigma {sigma}"
            );
            for run in runs {
                assert!(
                    (run - expected).abs() <= 3.0 * sigma + slack,
                    "{name}: {run}, not {expected} +- 3 x {sigma}"
                );
            }
        }
    }
}
