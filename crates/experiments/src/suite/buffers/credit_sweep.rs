//! Experiment 8: how many credits a link needs, how often they must come back, and how small they should be.
//!
//! Two nodes, one stream, a link whose loop holds some dozens of frames. Only credits are scarce:
//! acknowledgements of packets, which carry credits too, wait until all has been measured.

use crate::answer;
use crate::chart::{Axes, Axis};
use crate::experiment::{Experiment, Measured, Row, Setup, Tolerance, Trial};
use crate::knob::{Knob, KnobKind, Refused};
use crate::stage::Stage;
use crate::theory::credits::{CreditLoop, cost};
use crate::traffic::{Flow, Kind};

const RATE_BITS_PER_S: f64 = 400e9;
const DELAY_NS: f64 = 1_000.0;
/// Headers of a put with our own profile: Ethernet 14, link 32, fabric 40, region and put 44.
const HEADER_BYTES: u64 = 14 + 32 + 40 + 44;
/// Check, preamble and gap.
const BESIDE_FRAME_BYTES: u64 = 24;
const OVERHEAD_BYTES: u64 = 16;
/// A credit update is a smallest frame.
const UPDATE_WIRE_BYTES: f64 = 84.0;
/// Size of the puts of the sweep, and of its credits.
const PUT_BYTES: u64 = 4_096;
const UNIT_BYTES: u64 = 128;
/// Size of the puts that show the benefit of small credits, and of the buffer that the credits stand for.
const SMALL_PUT_BYTES: u64 = 64;
const BUFFER_BYTES: u64 = 16_384;
const SMALL_SPACING_BYTES: u64 = 2_048;
const SMALL: &str = "small credits";
/// Begin and end of the measured interval are within an update, and there are some hundred updates.
const TOLERANCE: Tolerance = Tolerance::Relative(0.02);
/// Number of frames before the measurement; together with the measured ones fewer than the window of packets.
const SKIPPED: u64 = 300;
const MEASURED: u64 = 3_300;

/// Throughput over credits, for several spacings of updates.
pub(in crate::suite) static CREDIT_SWEEP: Experiment = Experiment {
    number: 8,
    name: "credit-sweep",
    question: "How many credits does a link need, how often must they come back, how small should one be?",
    formula: "min(1, q m L/B / (RTT + update/B + (m - r) L/B)), n = floor(CL/cost) = q m + r frames, m = ceil(spacing/cost) per update, \
              cost = ceil((frame + overhead)/unit)",
    theory: "A frame leaves only with credits; the receiver collects freed ones until they are worth an update (CBFC-like), which \
             returns those of m frames. The update that m frames bring about left with frame m - r of an earlier one's, and takes \
             the round trip. A frame that does not fill its credits wastes the rest.",
    perturbs: "credits of the link",
    knobs: &[
        Knob {
            name: "credits.update_spacing",
            description: "bytes freed before an update leaves",
            usual: &["4096", "32768", "131072"],
            reduced: &["4096", "32768"],
            kind: KnobKind::Bytes(1, 1 << 30),
        },
        Knob {
            name: "credits.limit",
            description: "credits of the link, of 128 bytes each",
            usual: &["70", "140", "280", "420", "560", "840", "1120", "1680", "2240"],
            reduced: &["280", "840", "2240"],
            kind: KnobKind::Count(34, 100_000),
        },
        Knob {
            name: "credits.unit_bytes",
            description: "bytes of a credit, for puts of 64 bytes and 16 KiB of credits",
            usual: &["32", "64", "128", "256", "512", "2048"],
            reduced: &["64", "512"],
            kind: KnobKind::Bytes(32, 2048),
        },
    ],
    axes: Axes {
        x: Axis { label: "credits of the link (128 B each)", is_logarithmic: true },
        y: Axis { label: "throughput / link rate", is_logarithmic: false },
        names: None,
    },
    curve,
    answer: in_words,
    trials,
};

/// Settings of a link, and its load.
#[derive(Clone, Copy, Debug)]
struct Link {
    put_bytes: u64,
    unit_bytes: u64,
    limit: u64,
    spacing_bytes: u64,
}

impl Link {
    const fn of_the_sweep(limit: u64, spacing_bytes: u64) -> Self {
        Self { put_bytes: PUT_BYTES, unit_bytes: UNIT_BYTES, limit, spacing_bytes }
    }

    const fn wire_bytes(self) -> f64 {
        (HEADER_BYTES + self.put_bytes + BESIDE_FRAME_BYTES) as f64
    }

    const fn theory(self) -> CreditLoop {
        CreditLoop {
            rate_bits_per_s: RATE_BITS_PER_S,
            frame_wire_bytes: self.wire_bytes(),
            frame_credits: cost(HEADER_BYTES + self.put_bytes, OVERHEAD_BYTES, self.unit_bytes),
            limit: self.limit,
            unit_bytes: self.unit_bytes,
            spacing_credits: self.spacing_bytes / self.unit_bytes,
            round_trip_ns: 2.0 * DELAY_NS,
            update_wire_bytes: UPDATE_WIRE_BYTES,
        }
    }

    /// Returns true if updates leave at all: the frames that the credits hold must be worth one.
    const fn has_updates(self) -> bool {
        let CreditLoop { limit, frame_credits, spacing_credits, .. } = self.theory();
        limit / frame_credits * frame_credits >= spacing_credits
    }
}

/// Returns the closed form between the points.
fn curve(series: &str, limit: f64) -> Option<f64> {
    let kibibytes: f64 = series.split(' ').nth(1)?.parse().ok()?;
    let link = Link::of_the_sweep(limit as u64, (kibibytes * 1024.0) as u64);
    Some(link.theory().throughput())
}

/// Returns from how many credits on the link is full, and the throughput by size of a credit, as text.
fn in_words(rows: &[Row]) -> Vec<String> {
    let line = |(series, points): (&str, Vec<(f64, f64)>)| {
        if series == SMALL {
            let shares = points
                .iter()
                .map(|(unit, share)| format!("{} in credits of {unit} B", answer::per_cent(*share)));
            return format!(
                "puts of {SMALL_PUT_BYTES} B with 16 KiB: {}",
                shares.collect::<Vec<_>>().join(", ")
            );
        }
        match answer::holds_from(&points, answer::FULL) {
            Some(limit) => format!(
                "{series}: full rate from {limit} credits, {} KiB, on",
                limit * UNIT_BYTES as f64 / 1024.0
            ),
            None => format!("{series}: full rate with none of these credits"),
        }
    };
    answer::by_series(rows).into_iter().map(line).collect()
}

fn trials(setup: &Setup) -> Result<Vec<Trial>, Refused> {
    let mut trials = Vec::new();
    for spacing in setup.knobs.counts("credits.update_spacing", setup.reduced) {
        for limit in setup.knobs.counts("credits.limit", setup.reduced) {
            let link = Link::of_the_sweep(limit, spacing);
            if link.has_updates() {
                let setting = format!("{limit} credits, updates by {spacing} B");
                trials.push(trial(setup, link, format!("updates: {} KiB", spacing as f64 / 1024.0), setting));
            }
        }
    }
    if trials.is_empty() {
        let what = "no update would ever leave: each `credits.update_spacing` is above each `credits.limit`";
        let hint = "a credit is 128 bytes, and a limit counts by whole frames of 34 credits";
        return Err(Refused { what: what.to_owned(), hint: hint.to_owned() });
    }
    for unit in setup.knobs.counts("credits.unit_bytes", setup.reduced) {
        let link = Link {
            put_bytes: SMALL_PUT_BYTES,
            unit_bytes: unit,
            limit: BUFFER_BYTES / unit,
            spacing_bytes: SMALL_SPACING_BYTES,
        };
        let setting = format!("puts of {SMALL_PUT_BYTES} B, 16 KiB in credits of {unit} B");
        trials.push(Trial {
            x: unit as f64,
            is_drawn: false,
            ..trial(setup, link, SMALL.to_owned(), setting)
        });
    }
    Ok(trials)
}

fn trial(setup: &Setup, link: Link, series: String, setting: String) -> Trial {
    let (least, most) = link.theory().bounds();
    let run = Link { limit: setup.run_count(link.limit), ..link };
    let seed = setup.seed;
    Trial {
        series,
        setting,
        is_drawn: true,
        x: link.limit as f64,
        expected: link.theory().throughput(),
        tolerance: TOLERANCE,
        run: Box::new(move || {
            let value = measure(seed, run)?;
            let note = format!("usual bounds {least:.3} .. {most:.3}");
            Ok(Measured { value, note: (value < 0.99).then_some(note), ..Measured::default() })
        }),
    }
}

fn measure(seed: u64, link: Link) -> Result<f64, String> {
    let Link { put_bytes, unit_bytes, limit, spacing_bytes } = link;
    // A pair needs no bubble, which would keep the credits of a frame from being used.
    let text = format!(
        "{{name: pair, shape: {{ring: {{nodes: 2}}}}, ring_bytes: 16MiB, forwarding: {{bubble: false}}, packing: {{mode: off}}, \
         link: {{rate: 400Gbit/s, delay: {DELAY_NS}ns}}, \
         transport: {{window_packets: 4096, ack_every_packets: 4096, ack_delay: 5ms}}, \
         credits: {{unit_bytes: {unit_bytes}B, overhead_bytes: {OVERHEAD_BYTES}B, limit: {limit}, update_spacing: {spacing_bytes}B}}}}"
    );
    let flow = Flow::greedy(Kind::Put, 1, put_bytes, 2 * (SKIPPED + MEASURED));
    let mut stage = Stage::new(&text, seed, vec![vec![flow]])?;
    let frames_per_ns = stage.data_frames_per_ns("n0--n1", SKIPPED, MEASURED)?;
    Ok(frames_per_ns * link.wire_bytes() * 8e9 / RATE_BITS_PER_S)
}
