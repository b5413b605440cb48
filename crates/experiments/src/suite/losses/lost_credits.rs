//! Experiment 10: effect of lost frames on credits, with and without resynchronisation.
//!
//! A lost frame has taken credits. If the receiver uses the sender's count of consumed credits, they return with
//! the next frame; if it counts arrivals, they are lost. The credits of both ends must add up in both cases.

use rackloom_protocol::link::credits::CreditBalance;
use rackloom_protocol::{Channel, Inspect, Instant, NodeId, PortId};

use crate::answer;
use crate::chart::{Axes, Axis};
use crate::experiment::{Experiment, Measured, Setup, Tolerance, Trial, straight};
use crate::knob::{Knob, KnobKind, Refused};
use crate::stage::Stage;
use crate::theory::credits::cost;
use crate::traffic::{Flow, Kind};

const PUT_BYTES: u64 = 4_096;
/// Ethernet 14, link 32, fabric 40, region and put 44.
const FRAME_BYTES: u64 = 14 + 32 + 40 + 44 + PUT_BYTES;
const PUTS: u64 = 500;
const LIMIT: u64 = 680;
/// Interval of the long run: throughput of its last fifth beside that of its first.
const FIFTH_NS: u64 = 2_000_000;
/// Interval where credits leak: those of twenty frames are gone after twenty losses, of which the last take long, because
/// few frames leave by then; and chance may add to that.
const LEAKING_FIFTH_NS: u64 = 20_000_000;

/// Credits after losses.
pub(in crate::suite) static LOST_CREDITS: Experiment = Experiment {
    number: 10,
    name: "lost-credits",
    question: "What do lost frames do to credits, with and without resynchronisation?",
    formula: "leaked = lost frames x cost without resync, 0 with it; throughput after a while: none without, as before with it",
    theory: "Credits are conserved: CL = free + held + in flight + returning + leaked at any time. Cyclic counters that name what \
             was consumed repair a loss with the next frame (CBFC-like); counting arrivals never does.",
    perturbs: "frames that are lost",
    knobs: &[Knob {
        name: "link.drop_frames",
        description: "frames that are lost",
        usual: &["1", "2", "5", "10"],
        reduced: &["5"],
        kind: KnobKind::Count(1, 18),
    }],
    axes: Axes {
        x: Axis { label: "frames lost", is_logarithmic: false },
        y: Axis { label: "credits leaked", is_logarithmic: false },
        names: None,
    },
    curve: straight,
    answer: answer::none,
    trials,
};

fn trials(setup: &Setup) -> Result<Vec<Trial>, Refused> {
    let mut trials = Vec::new();
    let seed = setup.seed;
    for resync in [false, true] {
        let word = if resync { "with resync" } else { "without resync" };
        for lost in setup.knobs.counts("link.drop_frames", setup.reduced) {
            let leaked = if resync { 0 } else { lost * cost(FRAME_BYTES, 16, 128) };
            let run_lost = setup.run_count(lost);
            trials.push(Trial {
                series: word.to_owned(),
                setting: format!("{lost} of {PUTS} frames lost, {word}: credits leaked"),
                is_drawn: true,
                x: lost as f64,
                expected: leaked as f64,
                tolerance: Tolerance::Exact,
                run: Box::new(move || leaked_credits(seed, run_lost, resync)),
            });
        }
        let tolerance = if resync { Tolerance::Relative(0.05) } else { Tolerance::Exact };
        trials.push(Trial {
            series: "long run".to_owned(),
            setting: format!("0.2 % of frames corrupted, {word}: last fifth beside the first"),
            is_drawn: false,
            x: 0.0,
            expected: f64::from(u8::from(resync)),
            tolerance,
            run: Box::new(move || late_beside_early(seed, resync)),
        });
    }
    Ok(trials)
}

fn rack(resync: bool, link: &str) -> String {
    format!(
        "{{name: pair, shape: {{ring: {{nodes: 2}}}}, {link}, \
         credits: {{limit: {LIMIT}, overhead_bytes: 16B, unit_bytes: 128B, resync: {resync}}}}}"
    )
}

/// Returns the leaked credits once the rack is at rest. The balance is checked.
fn leaked_credits(seed: u64, lost: u64, resync: bool) -> Result<Measured, String> {
    let numbers: Vec<_> = (1..=lost).map(|nth| (nth * 10).to_string()).collect();
    let link = format!(
        "link: {{rate: 100Gbit/s, delay: 500ns}}, links: {{n0--n1: {{drop_frames: {{n0->n1: [{}]}}}}}}",
        numbers.join(", ")
    );
    let flow = Flow::greedy(Kind::Put, 1, PUT_BYTES, PUTS);
    let mut stage = Stage::new(&rack(resync, &link), seed, vec![vec![flow]])?;
    stage.run()?;
    // The last credits are in flight when the last put is acknowledged; heartbeats bring those that updates do not.
    let rest = Instant(stage.simulation.now().0 + 1_000_000_000);
    stage.simulation.step_until(rest).map_err(|stalled| stalled.to_string())?;
    let credits = |node| {
        let link = stage.simulation.endpoint(NodeId(node)).link(PortId(0));
        link.map(|link| *link.credits(Channel(0))).ok_or("a pair has a link")
    };
    let balance = CreditBalance::of(&credits(0)?, &credits(1)?, 0).ok_or("credits came from nowhere")?;
    let CreditBalance { available, in_flight, held, returning, leaked } = balance;
    if u64::from(available + in_flight + held + returning + leaked) != LIMIT {
        return Err(format!("the credits do not add up: {balance:?}"));
    }
    Ok(f64::from(leaked).into())
}

/// Returns the puts that complete in the last fifth of a long run, beside those of the first.
fn late_beside_early(seed: u64, resync: bool) -> Result<Measured, String> {
    let flow = Flow { open_max: 256, ..Flow::greedy(Kind::Put, 1, PUT_BYTES, 1 << 30) };
    let link = "link: {rate: 100Gbit/s, delay: 500ns, corrupt: 0.2%}, \
                transport: {timeout_initial: 100us, timeout_min: 100us, timeout_max: 1ms, ack_delay: 5us}";
    let mut stage = Stage::new(&rack(resync, link), seed, vec![vec![flow]])?;
    let fifth_ns = if resync { FIFTH_NS } else { LEAKING_FIFTH_NS };
    let mut completed_by = |fifths: u64| {
        let at = Instant(fifths * fifth_ns);
        stage.simulation.step_until(at).map_err(|stalled| stalled.to_string())?;
        Ok::<_, String>(stage.ledger(0).completed as f64)
    };
    let [first, fourth, fifth] = [completed_by(1)?, completed_by(4)?, completed_by(5)?];
    let damaged = stage.forward("n0--n1")?.frames_corrupted;
    if first == 0.0 {
        return Err("nothing was carried in the beginning".into());
    }
    let value = (fifth - fourth) / first;
    let note = format!("{damaged} frames corrupted, {fifth} puts in all");
    Ok(Measured { value, note: Some(note), ..Measured::default() })
}
