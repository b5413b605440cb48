//! Experiment 30: what a switch that reduces gains over a ring on the same star.
//!
//! A ring needs 2 (N - 1) steps and moves almost twice the array over each link. A switch that reduces needs one way up and one way
//! down, and moves the array once. The time counts from the rank that begins last, because a unit has only what all ranks have
//! sent. The barrier before a run does not release all ranks at the same time.

use crate::chart::{Axes, Axis};
use crate::experiment::{Experiment, Measured, Row, Setup, Tolerance, Trial};
use crate::knob::{Knob, KnobKind, Refused};
use crate::stage::{plan, sweep};
use crate::theory::collective::Fabric;
use crate::theory::wire::{SUE, serialisation_ns};

const RANKS: u64 = 16;
const RATE_BITS_PER_S: f64 = 100e9;
const DELAY_NS: f64 = 2_000.0;
/// Payload of a frame of a long transfer, in bytes.
const FRAME_BYTES: u64 = 4_096;
/// Bytes of a slot of a unit: 4096 elements of 4 bytes.
const SLOT_BYTES: f64 = 16_384.0;
/// Size at which the bandwidths are compared.
const LARGE_BYTES: u64 = 4 << 20;

/// Times of an all-reduce by a ring and by the switch over sizes, and the ratio of their bus bandwidths.
pub(in crate::suite) static IN_SWITCH: Experiment = Experiment {
    number: 30,
    name: "in-switch",
    question: "What does a switch that reduces gain over a ring?",
    formula: "in the switch 2d + (S + min(S, slot))/b, ring 2(N-1)(2d + S/Nb) + 2d; ratio of bus bandwidths at large sizes: towards 2(N-1)/N",
    theory: "The last segment arrives at the switch after the delay d and the time of the whole array; then it goes down to all ranks at once, \
             behind another delay. Each link carries the array once in each direction, and 2(N-1)/N times in a ring (SHARP, Graham et al. 2016).",
    perturbs: "delay of the links",
    knobs: &[Knob {
        name: "bytes",
        description: "bytes of the array",
        usual: &["1024", "16384", "131072", "1048576", "4194304"],
        reduced: &["1024", "1048576"],
        kind: KnobKind::Bytes(256, 8 << 20),
    }],
    axes: Axes {
        x: Axis { label: "size of the array (B)", is_logarithmic: true },
        y: Axis { label: "time of an all-reduce (us)", is_logarithmic: true },
        names: None,
    },
    curve,
    answer: in_words,
    trials,
};

/// Way to perform an all-reduce on the star.
#[derive(Clone, Copy, Debug)]
enum Variant {
    Ring,
    InSwitch,
}

impl Variant {
    const ALL: [Self; 2] = [Self::Ring, Self::InSwitch];

    const fn name(self) -> &'static str {
        match self {
            Self::Ring => "ring",
            Self::InSwitch => "in-switch",
        }
    }

    fn expected_ns(self, bytes: f64) -> f64 {
        match self {
            Self::Ring => fabric().ring_all_reduce_ns(bytes),
            Self::InSwitch => fabric().in_switch_all_reduce_ns(bytes, SLOT_BYTES),
        }
    }

    /// Returns the time from the last rank's begin; of a ring, the slowest rank's time.
    fn time_ns(self, seed: u64, delay_ns: u64, bytes: u64) -> Result<f64, String> {
        let text = format!(
            "{{name: in-switch, shape: {{star: {{nodes: {RANKS}}}}}, defaults: {{memory: 64MiB}}, \
             link: {{rate: 100Gbit/s, delay: {delay_ns}ns, headers: sue-like}}, forwarding: {{mode: cut-through}}, \
             job: {{collective: {{algorithm: {}, bytes: {bytes}B, repetitions: 1, warm_up: 1}}}}}}",
            self.name()
        );
        let times = sweep(&plan(&text)?, seed, &[])?;
        let times = times.first().ok_or_else(|| "the all-reduce was not measured".to_owned())?;
        Ok(match self {
            Self::Ring => times.mean_ns,
            Self::InSwitch => times.least_mean_ns,
        })
    }
}

/// Returns the links' properties as the formulas define them. A step crosses two links.
fn fabric() -> Fabric {
    let frame_ns = serialisation_ns(SUE.wire_bytes(1, FRAME_BYTES), RATE_BITS_PER_S);
    Fabric {
        alpha_ns: 2.0 * DELAY_NS,
        finish_ns: 2.0 * DELAY_NS,
        link_bytes_per_ns: FRAME_BYTES as f64 / frame_ns,
        ranks: RANKS as f64,
    }
}

fn trials(setup: &Setup) -> Result<Vec<Trial>, Refused> {
    let (seed, delay_ns) = (setup.seed, setup.run_count(DELAY_NS as u64));
    let mut trials = Vec::new();
    for variant in Variant::ALL {
        for bytes in setup.knobs.counts("bytes", setup.reduced) {
            trials.push(Trial {
                series: variant.name().to_owned(),
                setting: format!("{}, {bytes} B", variant.name()),
                is_drawn: true,
                x: bytes as f64,
                expected: variant.expected_ns(bytes as f64) / 1e3,
                tolerance: Tolerance::Relative(0.02),
                run: Box::new(move || Ok((variant.time_ns(seed, delay_ns, bytes)? / 1e3).into())),
            });
        }
    }
    trials.push(ratio(seed, delay_ns));
    Ok(trials)
}

/// Returns the ratio of the bus bandwidths at a large size, which is that of the times.
fn ratio(seed: u64, delay_ns: u64) -> Trial {
    let bytes = LARGE_BYTES as f64;
    Trial {
        series: "ratio of bus bandwidths".to_owned(),
        setting: format!("{LARGE_BYTES} B, bus bandwidth in the switch over that of the ring"),
        is_drawn: false,
        x: bytes,
        expected: Variant::Ring.expected_ns(bytes) / Variant::InSwitch.expected_ns(bytes),
        tolerance: Tolerance::Relative(0.02),
        run: Box::new(move || {
            let [ring_ns, in_switch_ns] = [Variant::Ring, Variant::InSwitch]
                .map(|variant| variant.time_ns(seed, delay_ns, LARGE_BYTES));
            Ok(Measured::from(ring_ns? / in_switch_ns?))
        }),
    }
}

/// Returns how many times faster the switch is at each size, as text.
fn in_words(rows: &[Row]) -> Vec<String> {
    let measured = |variant: Variant| {
        rows.iter()
            .filter(move |row| row.is_drawn && row.series == variant.name())
            .filter_map(|row| row.measured)
    };
    let sizes = rows.iter().filter(|row| row.is_drawn && row.series == Variant::Ring.name()).map(|row| row.x);
    sizes
        .zip(measured(Variant::Ring).zip(measured(Variant::InSwitch)))
        .map(|(bytes, (ring_us, in_switch_us))| {
            format!(
                "{bytes} B: {in_switch_us:.1} us in the switch, {:.1} times as fast as the ring",
                ring_us / in_switch_us
            )
        })
        .collect()
}

/// Returns the time between the sizes.
fn curve(series: &str, bytes: f64) -> Option<f64> {
    let variant = Variant::ALL.into_iter().find(|variant| variant.name() == series)?;
    Some(variant.expected_ns(bytes) / 1e3)
}
