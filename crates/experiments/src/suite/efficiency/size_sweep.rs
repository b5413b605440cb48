//! Experiment 1: how much of a link is payload, by size and kind of headers.
//!
//! Stores of one size leave one per frame, back to back, over a link of 8 Gbit/s, which takes one nanosecond per byte. The run writes
//! a capture (pcapng), and the experiment counts in its bytes: the payload in the operations of each frame, and the bytes that a
//! frame takes of the link as the time from its timestamp to that of the next frame. With our own headers the frame's length in
//! the capture, with frame check, preamble and gap, is a second count of the same, and both must agree.

use crate::answer;
use crate::captured::{Capture, DataFrame};
use crate::chart::{Axes, Axis};
use crate::experiment::{Experiment, Measured, Setup, Tolerance, Trial};
use crate::knob::{Knob, KnobKind, Refused};
use crate::stage::Stage;
use crate::theory::wire::{Headers, OWN, PROFILES};
use crate::traffic::{Flow, Kind};

const STORES: u64 = 64;
/// Frame check, which no capture shows.
const CHECK_BYTES: u64 = 4;
/// Preamble and gap.
const PREAMBLE_AND_GAP_BYTES: u64 = 20;
/// Least frame with its check.
const FRAME_BYTES_MIN: u64 = 64;

/// Payload efficiency over sizes, for each profile of headers.
pub(in crate::suite) static SIZE_SWEEP: Experiment = Experiment {
    number: 1,
    name: "size-sweep",
    question: "How much of a link is payload, by message size and kind of headers?",
    formula: "efficiency = P / (max(64, H + P + T) + 20)",
    theory: "One message per frame pays the headers H and trailer T of its profile, the smallest Ethernet frame, and \
             preamble and gap (IEEE 802.3; header sizes as the fabrics publish them).",
    perturbs: "bytes of each store",
    knobs: &[
        Knob {
            name: "link.headers",
            description: "profile of headers",
            usual: &["own", "sue-lite-like", "sue-like", "esun-like", "ethlink-like", "roce-like"],
            reduced: &[],
            kind: KnobKind::Choice,
        },
        Knob {
            name: "bytes",
            description: "bytes of one store",
            usual: &["32", "64", "128", "256", "512", "1024", "2048", "4096"],
            reduced: &["32", "256", "4096"],
            kind: KnobKind::Bytes(1, 4096),
        },
    ],
    axes: Axes {
        x: Axis { label: "payload of one message (B)", is_logarithmic: true },
        y: Axis { label: "payload / bytes on the wire (%)", is_logarithmic: false },
        names: None,
    },
    curve,
    answer: answer::none,
    trials,
};

fn trials(setup: &Setup) -> Result<Vec<Trial>, Refused> {
    let mut trials = Vec::new();
    for name in setup.knobs.values("link.headers", setup.reduced) {
        let headers = PROFILES.iter().find(|headers| headers.name == name);
        for bytes in setup.knobs.counts("bytes", setup.reduced) {
            let Some(headers) = headers.copied() else { continue };
            trials.push(trial(setup, headers, bytes));
        }
    }
    Ok(trials)
}

fn trial(setup: &Setup, headers: Headers, bytes: u64) -> Trial {
    let (seed, sent_bytes) = (setup.seed, setup.run_count(bytes));
    Trial {
        series: headers.name.to_owned(),
        setting: format!("{}, {bytes} B", headers.name),
        is_drawn: true,
        x: bytes as f64,
        expected: headers.efficiency(1, bytes) * 100.0,
        tolerance: Tolerance::Exact,
        run: Box::new(move || {
            let text = format!(
                "{{name: pair, shape: {{ring: {{nodes: 2}}}}, packing: {{mode: off}}, frame_bytes_max: 9014B, \
                 link: {{rate: 8Gbit/s, delay: 500ns, headers: {}}}}}",
                headers.name
            );
            let flow = Flow::greedy(Kind::Store, 1, sent_bytes, STORES);
            let mut stage = Stage::new(&text, seed, vec![vec![flow]])?;
            let capture = Capture::begin(&mut stage, "n0--n1")?;
            stage.run()?;
            efficiency(&capture.data_frames()?, headers.name == OWN.name).map(Measured::from)
        }),
    }
}

/// Returns the share of the link's bytes that is payload, in per cent. Every frame must hold one store; between two
/// frames the link may have been idle, so the shortest time to the next frame counts.
fn efficiency(frames: &[DataFrame], has_own_headers: bool) -> Result<f64, String> {
    let (Some(first), Some(link_bytes)) =
        (frames.first(), frames.iter().filter_map(|frame| frame.to_next_ns).min())
    else {
        return Err("the capture has no two data frames".to_owned());
    };
    if frames.len() as u64 != STORES || frames.iter().any(|frame| frame.payload_bytes != first.payload_bytes)
    {
        return Err(format!("the capture has {} data frames, not {STORES} of one store each", frames.len()));
    }
    let on_the_wire = (first.bytes + CHECK_BYTES).max(FRAME_BYTES_MIN) + PREAMBLE_AND_GAP_BYTES;
    if has_own_headers && on_the_wire != link_bytes {
        return Err(format!(
            "a frame has {on_the_wire} bytes in the capture and takes the link {link_bytes} ns"
        ));
    }
    Ok(first.payload_bytes as f64 * 100.0 / link_bytes as f64)
}

/// Returns the efficiency between the sizes.
fn curve(series: &str, bytes: f64) -> Option<f64> {
    let headers = PROFILES.iter().find(|headers| headers.name == series)?;
    Some(headers.efficiency(1, bytes.round() as u64) * 100.0)
}
