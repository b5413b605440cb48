//! Experiment 12: time until a neighbour's death is detected.
//!
//! A neighbour is killed at times spread evenly over its heartbeat interval, with chance within each part; the
//! survivor's link goes down when its silence has lasted long enough. There is no other sign: carriers stay up.

use rackloom_plan::random_share;
use rackloom_protocol::{Event, Instant, LinkCause, LinkState, NodeId};
use rackloom_simulator::{Action, RecordedEvent, Simulation};

use crate::answer;
use crate::chart::{Axes, Axis};
use crate::experiment::{Experiment, Measured, Setup, Tolerance, Trial, straight};
use crate::knob::{Knob, KnobKind, Refused};
use crate::stage::plan;
use crate::theory::failure::{detection_mean_ns, detection_ns};

const DELAY_NS: u64 = 500;
const NANOSECONDS_PER_MICROSECOND: u64 = 1_000;

/// Least, mean and longest detection time over interval and misses.
pub(in crate::suite) static HEARTBEAT: Experiment = Experiment {
    number: 12,
    name: "heartbeat",
    question: "How long does the detection of a neighbour's death take?",
    formula: "detection within [(k - 1) T + d, k T + d], mean (k - 1/2) T + d",
    theory: "The last heartbeat left at most one interval T before the death and arrived after d; the link is down k \
             intervals after it came.",
    perturbs: "heartbeat interval",
    knobs: &[
        Knob {
            name: "timers.heartbeat_interval",
            description: "microseconds between heartbeats",
            usual: &["10", "100", "1000"],
            reduced: &["100"],
            kind: KnobKind::Microseconds(1, 1_000_000),
        },
        Knob {
            name: "timers.heartbeat_miss_max",
            description: "heartbeats missed until the link is down",
            usual: &["2", "3", "5"],
            reduced: &["2", "5"],
            kind: KnobKind::Count(1, 100),
        },
    ],
    axes: Axes {
        x: Axis { label: "heartbeat interval (us)", is_logarithmic: true },
        y: Axis { label: "time until the death is detected (us)", is_logarithmic: true },
        names: None,
    },
    curve: straight,
    answer: answer::none,
    trials,
};

/// Measured quantity over all deaths.
#[derive(Clone, Copy, Debug)]
enum Quantity {
    Least,
    Mean,
    Most,
}

fn trials(setup: &Setup) -> Result<Vec<Trial>, Refused> {
    let deaths = if setup.reduced { 20 } else { 100 };
    let mut trials = Vec::new();
    for misses in setup.knobs.counts("timers.heartbeat_miss_max", setup.reduced) {
        for look in [Quantity::Least, Quantity::Mean, Quantity::Most] {
            for interval_us in setup.knobs.counts("timers.heartbeat_interval", setup.reduced) {
                trials.push(trial(setup, interval_us, misses, look, deaths));
            }
        }
    }
    Ok(trials)
}

fn trial(setup: &Setup, interval_us: u64, misses: u64, look: Quantity, deaths: u64) -> Trial {
    let interval_ns = (interval_us * NANOSECONDS_PER_MICROSECOND) as f64;
    let (least, most) = detection_ns(interval_ns, misses, DELAY_NS as f64);
    let (least_us, most_us) = (least / 1e3, most / 1e3);
    // There is one death per part of the interval, so the extremes are within two parts of the bounds.
    let part_us = 2.0 * interval_us as f64 / deaths as f64;
    let (word, expected, tolerance) = match look {
        Quantity::Least => ("least", least_us, Tolerance::Between(least_us, least_us + part_us)),
        Quantity::Mean => {
            let mean = detection_mean_ns(interval_ns, misses, DELAY_NS as f64) / 1e3;
            ("mean", mean, Tolerance::Absolute(part_us))
        }
        Quantity::Most => ("most", most_us, Tolerance::Between(most_us - part_us, most_us)),
    };
    let (seed, run_interval_ns) = (setup.seed, setup.run_count(interval_us * NANOSECONDS_PER_MICROSECOND));
    Trial {
        series: format!("{misses} misses, {word}"),
        setting: format!("T = {interval_us} us, k = {misses}, {word} of {deaths}"),
        // The extremes are the ends of the bars.
        is_drawn: matches!(look, Quantity::Mean),
        x: interval_us as f64,
        expected,
        tolerance,
        run: Box::new(move || measure(seed, run_interval_ns, misses, look, deaths)),
    }
}

fn measure(
    seed: u64,
    interval_ns: u64,
    misses: u64,
    look: Quantity,
    deaths: u64,
) -> Result<Measured, String> {
    let mut detections = Vec::new();
    for death in 0..deaths {
        let phase = (death as f64 + random_share(seed, death)) / deaths as f64;
        detections.push(detection_of(interval_ns, misses, (phase * interval_ns as f64) as u64)? as f64);
    }
    let least = detections.iter().copied().fold(f64::INFINITY, f64::min);
    let most = detections.iter().copied().fold(0.0, f64::max);
    let value = match look {
        Quantity::Least => least,
        Quantity::Mean => detections.iter().sum::<f64>() / deaths as f64,
        Quantity::Most => most,
    };
    let measured = Measured::from(value / 1e3);
    Ok(match look {
        Quantity::Mean => measured.with_spread(least / 1e3, most / 1e3, "least and most of all deaths"),
        Quantity::Least | Quantity::Most => measured,
    })
}

/// Returns the detection time of a death at this phase of the interval, in nanoseconds.
fn detection_of(interval_ns: u64, misses: u64, phase_ns: u64) -> Result<u64, String> {
    let text = format!(
        "{{name: pair, shape: {{ring: {{nodes: 2}}}}, link: {{delay: {DELAY_NS}ns}}, \
         timers: {{heartbeat_interval: {interval_ns}ns, heartbeat_miss_max: {misses}, hello_interval: 1us}}}}"
    );
    let mut simulation = Simulation::new(&plan(&text)?, 1, Vec::new());
    let (survivor, victim) = (NodeId(0), NodeId(1));
    let death = Instant(20 * interval_ns + phase_ns);
    simulation.schedule(death, Action::Kill { member: victim });
    simulation.step_until(death + interval_ns * (misses + 2)).map_err(|stalled| stalled.to_string())?;
    let noticed = simulation.events().iter().find(|RecordedEvent { at, node, event }| {
        let is_it =
            matches!(event, Event::LinkChanged { to: LinkState::Down, cause: LinkCause::HeartbeatDead, .. });
        is_it && *node == survivor && *at >= death
    });
    noticed.map(|recorded| recorded.at.since(death)).ok_or_else(|| "the death was never detected".to_owned())
}
