//! Experiment 14: how long an all-reduce takes on three topologies, and where one shot loses to two.
//!
//! The collectives of the library run over simulated wires with every byte checked; times are those of the slowest
//! rank. The crossover is found between measured points and not in the formulas.

use crate::chart::{Axes, Axis};
use crate::experiment::{Experiment, Measured, Row, Setup, Tolerance, Trial};
use crate::knob::{Knob, KnobKind, Refused};
use crate::stage::all_reduce;
use crate::theory::collective::Fabric;
use crate::theory::wire::{SUE, serialisation_ns};

const RANKS: u64 = 8;
const RATE_BITS_PER_S: f64 = 100e9;
const DELAY_NS: f64 = 2_000.0;
/// Payload of a frame of a long transfer, in bytes.
const SEGMENT_BYTES: u64 = 4_096;
/// Steps begin in whole nanoseconds, and a crossover is found between steps of 4 KiB.
const TOLERANCE: Tolerance = Tolerance::Relative(0.02);

/// Times of an all-reduce over sizes, and the crossover of one and two shots.
pub(in crate::suite) static ALL_REDUCE: Experiment = Experiment {
    number: 14,
    name: "all-reduce",
    question: "How long does an all-reduce take on a ring, a mesh and a star, and when does one shot win?",
    formula: "ring 2(N-1)(a + S/Nb), both directions 2(N-1)(a + S/2Nb); mesh 2(a + S/Nb) or a + S/b; star 2a + 2(N-1)/N S/b or \
              2 log2(N) a + 2(N-1)/N S/b; each + the last acknowledgement's delay; one shot wins below a b/(1 - 2/N)",
    theory: "Each step costs the delay of its last byte (alpha) and the time of its bytes on the busiest link; b is the link's \
             rate times the share of payload in its frames (the alpha-beta model of collectives). A rank is done when the \
             acknowledgements of its own bytes have arrived.",
    perturbs: "delay of the links",
    knobs: &[Knob {
        name: "bytes",
        description: "bytes of the array",
        usual: &["8192", "32768", "131072", "524288", "2097152"],
        reduced: &["8192", "524288"],
        kind: KnobKind::Bytes(256, 4 << 20),
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

/// A topology with its algorithm.
#[derive(Clone, Copy, Debug)]
struct Variant {
    name: &'static str,
    shape: &'static str,
    algorithm: &'static str,
    links_per_step: f64,
    time_ns: fn(&Fabric, f64) -> f64,
}

const VARIANTS: [Variant; 6] = [
    Variant {
        name: "ring",
        shape: "ring: {nodes: 8}",
        algorithm: "ring",
        links_per_step: 1.0,
        time_ns: Fabric::ring_all_reduce_ns,
    },
    Variant {
        name: "mesh, two shots",
        shape: "full-mesh: {nodes: 8}",
        algorithm: "two-shot",
        links_per_step: 1.0,
        time_ns: Fabric::mesh_two_shot_ns,
    },
    Variant {
        name: "mesh, one shot",
        shape: "full-mesh: {nodes: 8}",
        algorithm: "one-shot",
        links_per_step: 1.0,
        time_ns: Fabric::mesh_one_shot_ns,
    },
    Variant {
        name: "star, two shots",
        shape: "star: {nodes: 8}",
        algorithm: "two-shot",
        links_per_step: 2.0,
        time_ns: Fabric::star_two_shot_ns,
    },
    Variant {
        name: "ring, both directions",
        shape: "ring: {nodes: 8}",
        algorithm: "bidirectional-ring",
        links_per_step: 1.0,
        time_ns: Fabric::two_rings_all_reduce_ns,
    },
    Variant {
        name: "star, halving-doubling",
        shape: "star: {nodes: 8}",
        algorithm: "halving-doubling",
        links_per_step: 2.0,
        time_ns: Fabric::star_halving_doubling_ns,
    },
];

/// Returns the links' properties as the formulas define them.
fn fabric(variant: &Variant) -> Fabric {
    let frame_ns = serialisation_ns(SUE.wire_bytes(1, SEGMENT_BYTES), RATE_BITS_PER_S);
    Fabric {
        alpha_ns: variant.links_per_step * DELAY_NS,
        finish_ns: variant.links_per_step * DELAY_NS,
        link_bytes_per_ns: SEGMENT_BYTES as f64 / frame_ns,
        ranks: RANKS as f64,
    }
}

/// Returns the fastest algorithm for each size, as text.
fn in_words(rows: &[Row]) -> Vec<String> {
    let timed = || rows.iter().filter(|row| row.is_drawn).filter_map(|row| Some((row, row.measured?)));
    let mut sizes: Vec<f64> = timed().map(|(row, _)| row.x).collect();
    sizes.sort_by(f64::total_cmp);
    sizes.dedup();
    let fastest = |size: f64| {
        let (row, time_us) =
            timed().filter(|(row, _)| row.x == size).min_by(|one, other| one.1.total_cmp(&other.1))?;
        Some(format!("{size} B: {} is fastest, {time_us:.1} us", row.series))
    };
    sizes.into_iter().filter_map(fastest).collect()
}

fn trials(setup: &Setup) -> Result<Vec<Trial>, Refused> {
    let (seed, delay_ns) = (setup.seed, setup.run_count(DELAY_NS as u64));
    let mut trials = Vec::new();
    for variant in VARIANTS {
        for bytes in setup.knobs.counts("bytes", setup.reduced) {
            trials.push(Trial {
                series: variant.name.to_owned(),
                setting: format!("{}, {bytes} B", variant.name),
                is_drawn: true,
                x: bytes as f64,
                expected: (variant.time_ns)(&fabric(&variant), bytes as f64) / 1e3,
                tolerance: TOLERANCE,
                run: Box::new(move || Ok((time_ns(seed, variant, delay_ns, bytes)? / 1e3).into())),
            });
        }
    }
    trials.push(crossover(seed, delay_ns));
    Ok(trials)
}

fn time_ns(seed: u64, variant: Variant, delay_ns: u64, bytes: u64) -> Result<f64, String> {
    let text = format!(
        "{{name: collective, shape: {{{}}}, defaults: {{memory: 64MiB}}, link: {{rate: 100Gbit/s, delay: {delay_ns}ns, headers: sue-like}}, \
         forwarding: {{mode: cut-through}}, \
         job: {{collective: {{algorithm: {}, bytes: {bytes}B, repetitions: 1, warm_up: 1}}}}}}",
        variant.shape, variant.algorithm
    );
    let times = all_reduce(&text, seed, &[])?;
    times.first().map(|(_, time_ns)| *time_ns).ok_or_else(|| "the all-reduce was not measured".to_owned())
}

/// Returns the size at which both algorithms of a mesh take equal time: between the last size at which one shot wins and the next.
fn crossover(seed: u64, delay_ns: u64) -> Trial {
    let [_, two, one, ..] = VARIANTS;
    let expected = fabric(&one).one_shot_crossover_bytes();
    Trial {
        series: "crossover on the mesh".to_owned(),
        setting: "mesh, size at which both take the same time (B)".to_owned(),
        is_drawn: false,
        x: expected,
        expected,
        tolerance: TOLERANCE,
        run: Box::new(move || {
            let gain = |bytes| -> Result<f64, String> {
                Ok(time_ns(seed, two, delay_ns, bytes)? - time_ns(seed, one, delay_ns, bytes)?)
            };
            let mut last = (4_096, gain(4_096)?);
            for bytes in (2..64).map(|step| step * 4_096) {
                let next = (bytes, gain(bytes)?);
                if next.1 <= 0.0 {
                    let share = last.1 / (last.1 - next.1);
                    let value = last.0 as f64 + share * (next.0 - last.0) as f64;
                    return Ok(Measured::from(value));
                }
                last = next;
            }
            Err("one shot wins at every size".to_owned())
        }),
    }
}

/// Returns the time between the sizes.
fn curve(series: &str, bytes: f64) -> Option<f64> {
    let variant = VARIANTS.iter().find(|variant| variant.name == series)?;
    Some((variant.time_ns)(&fabric(variant), bytes) / 1e3)
}
