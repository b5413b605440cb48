//! Rows of whole racks: the packet wire, a collective of two ranks, and one of more ranks than processors.

use rackloom_calibrate::{Expected, Goal, processors};

use crate::bench::Bench;
use crate::measure_error::MeasureError;
use crate::row::{Row, Sides, Unit};
use crate::runs::load::{FRAME_BYTES, PUT_BYTES, STORES_PER_FRAME};
use crate::runs::program::{On, job_ns, rack_file, raw_loop, words};
use crate::runs::raw_loop::RawLoop;

/// Number of frames of a take, or of round trips.
const FRAMES: u64 = 200_000;
const LARGE_FRAMES: u64 = 50_000;
const PACKED_STORES: u64 = 2_000_000;
const STORES: u64 = 200_000;
const MESSAGES: u64 = 20_000;
const TRIPS: u64 = 20_000;
/// Payload of a put that fills a frame of 9014 bytes: a multiple of 256 behind at most 130 bytes of headers.
const JUMBO_PUT_BYTES: u64 = 8704;
const RANKS: u32 = 16;
/// Size of the array that they reduce.
const ARRAY: &str = "4MiB";

pub(crate) fn packet() -> Vec<Row> {
    let mut rows = single_frames();
    rows.extend(packed_and_joined());
    rows.push(Row {
        name: "packet-star",
        ours: "packet wire, puts of 64 KiB through a switch's process",
        raw: "the same puts over one cable, without a switch",
        unit: Unit::PerSecond,
        // Each frame passes the kernel twice, so half is the maximum.
        goal: Goal::at_least(0.35, 0.45),
        expected: None,
        begin: packet_star,
    });
    rows
}

/// Rows with one operation per frame and one frame per packet of the kernel.
fn single_frames() -> Vec<Row> {
    let row = |name, ours, raw, floor_and_good: (f64, f64), expected, begin| Row {
        name,
        ours,
        raw,
        unit: Unit::PerSecond,
        goal: Goal::at_least(floor_and_good.0, floor_and_good.1),
        expected: Some(expected),
        begin,
    };
    vec![
        row(
            "packet-64",
            "packet wire, acknowledged stores of 64 B, a frame each, 256 in flight",
            "frames of 64 B by sendmmsg and recvmmsg with credits",
            (0.75, 0.90),
            Expected::PACKET_64_PER_S,
            |bench| cores(bench, RawLoop::Packet64, 1.0, RawLoop::StoresOnPacket, STORES, 1.0),
        ),
        row(
            "packet-4096",
            "packet wire, puts of 4 KiB, a frame each, 16 in flight",
            "frames of 4096 B by sendmmsg and recvmmsg with credits",
            (0.70, 0.85),
            Expected::PACKET_4096_PER_S,
            |bench| frames(bench, RawLoop::Packet4096, LARGE_FRAMES, "put", 4096),
        ),
        row(
            "packet-9000",
            "packet wire, puts of 8704 B, a frame each, 16 in flight",
            "frames of 9000 B by sendmmsg and recvmmsg with credits",
            (0.75, 0.90),
            Expected::PACKET_9000_PER_S,
            |bench| frames(bench, RawLoop::Packet9000, LARGE_FRAMES, "put", JUMBO_PUT_BYTES),
        ),
        Row {
            name: "packet-round-trip",
            ours: "packet wire, a store of 64 B until acknowledged as visible",
            raw: "a frame of 64 B there and one back, both sides awake",
            unit: Unit::Nanoseconds,
            goal: Goal::at_most(1.4, 1.2),
            expected: Some(Expected::PACKET_ROUND_TRIP_NS),
            begin: packet_round_trip,
        },
    ]
}

/// Rows with many operations per frame, or many frames per piece that the kernel splits.
fn packed_and_joined() -> Vec<Row> {
    vec![
        Row {
            name: "packet-packed",
            ours: "packet wire, posted stores of 64 B that share frames of 1514 B, until all are visible",
            raw: "frames of 1500 B by sendmmsg and recvmmsg with credits, 18 stores each",
            unit: Unit::PerSecond,
            goal: Goal::at_least(0.60, 0.80),
            expected: None,
            begin: |bench| {
                cores(
                    bench,
                    RawLoop::Packet1500,
                    STORES_PER_FRAME,
                    RawLoop::PackedOnPacket,
                    PACKED_STORES,
                    1.0,
                )
            },
        },
        Row {
            name: "udp-packed",
            ours: "udp wire, the same stores; datagrams that wait together leave as one piece",
            raw: "datagrams of 1500 B in pieces of 43 (UDP_SEGMENT, UDP_GRO), 18 stores each",
            unit: Unit::PerSecond,
            goal: Goal::at_least(0.45, 0.65),
            expected: None,
            begin: |bench| {
                cores(
                    bench,
                    RawLoop::SuperFrames1500,
                    STORES_PER_FRAME,
                    RawLoop::PackedOnUdp,
                    PACKED_STORES,
                    1.0,
                )
            },
        },
        Row {
            name: "udp-frames",
            ours: "udp wire, puts of 4 KiB that fill a frame each, 256 in flight; bytes of payload",
            raw: "datagrams of 4240 B in pieces of 15 (UDP_SEGMENT, UDP_GRO); bytes",
            unit: Unit::PerSecond,
            goal: Goal::at_least(0.45, 0.65),
            expected: None,
            begin: |bench| {
                let (raw_bytes, our_bytes) = (FRAME_BYTES as f64, PUT_BYTES as f64);
                cores(bench, RawLoop::SuperFrames4240, raw_bytes, RawLoop::PutsOnUdp, FRAMES, our_bytes)
            },
        },
    ]
}

pub(crate) fn collectives() -> Vec<Row> {
    vec![
        Row {
            name: "all-reduce",
            ours: "all-reduce of 1 MiB (f32 sum) by 2 processes, frames of 9014 B",
            raw: "copy, flag, add, copy, flag by 2 processes",
            unit: Unit::Nanoseconds,
            // Equal to 0.35 and 0.6 of the raw loop's rate.
            goal: Goal::at_most(1.0 / 0.35, 1.0 / 0.6),
            expected: None,
            begin: all_reduce,
        },
        Row {
            name: "sixteen-ranks",
            ours: "ring all-reduce of 4 MiB by 16 processes on all processors, frames of 9014 B",
            raw: "the work of these ranks, taken from 2 with a processor each, over the processors",
            unit: Unit::Nanoseconds,
            goal: Goal::at_most(2.0, 1.3),
            expected: None,
            begin: sixteen_ranks,
        },
    ]
}

/// Two nodes with the largest frames, for large arrays: half as many headers as with the default size.
const TWO_LARGE_FRAMES: &str = "name: calibrate-two\nshape: {ring: {nodes: 2}}\nframe_bytes_max: 9014B\n";
/// Two nodes whose operations have a frame each.
const TWO_UNPACKED: &str =
    "name: calibrate-two\nshape: {ring: {nodes: 2}}\nframe_bytes_max: 9014B\npacking: {mode: \"off\"}\n";

fn frames<'b>(
    bench: &'b Bench,
    raw: RawLoop,
    frames: u64,
    what: &'static str,
    message_bytes: u64,
) -> Result<Sides<'b>, MeasureError> {
    bench.pair()?;
    let file = rack_file(bench, "packet", TWO_UNPACKED)?;
    let (frames, messages) = (bench.count(frames), bench.count(MESSAGES));
    let run = format!(
        "--wire packet --job bandwidth --bytes {message_bytes} --repetitions {messages} --warm-up 500 --json -"
    );
    let arguments: Vec<_> = ["run".to_owned(), file].into_iter().chain(words(&run)).collect();
    Ok(Sides::new(
        move || raw_loop(bench, raw, frames),
        move || Ok(1e9 / job_ns(bench, On::Pair, what, &arguments)?),
    ))
}

/// Compares a raw loop of frames with a core and a device in each of two processes. `raw_worth` and
/// `our_worth`: value of one frame and of one operation.
fn cores(
    bench: &Bench,
    raw: RawLoop,
    raw_worth: f64,
    ours: RawLoop,
    operations: u64,
    our_worth: f64,
) -> Result<Sides<'_>, MeasureError> {
    bench.pair()?;
    let (frames, operations) = (bench.count(FRAMES), bench.count(operations));
    Ok(Sides::new(
        move || Ok(raw_loop(bench, raw, frames)? * raw_worth),
        move || Ok(raw_loop(bench, ours, operations)? * our_worth),
    ))
}

/// Compares two own runs: the cost of a switch.
fn packet_star(bench: &Bench) -> Result<Sides<'_>, MeasureError> {
    bench.pair()?;
    let star = TWO_UNPACKED.replace("ring", "star");
    // With shorter messages the few that the job has in flight would not keep three processes busy.
    let messages = bench.count(MESSAGES / 10);
    let run =
        format!("--wire packet --job bandwidth --bytes 64KiB --repetitions {messages} --warm-up 50 --json -");
    let arguments = |file| -> Vec<_> { ["run".to_owned(), file].into_iter().chain(words(&run)).collect() };
    let cable = arguments(rack_file(bench, "packet", TWO_UNPACKED)?);
    let star = arguments(rack_file(bench, "packet-star", &star)?);
    Ok(Sides::new(
        move || Ok(1e9 / job_ns(bench, On::Pair, "put", &cable)?),
        move || Ok(1e9 / job_ns(bench, On::Pair, "put", &star)?),
    ))
}

fn packet_round_trip(bench: &Bench) -> Result<Sides<'_>, MeasureError> {
    bench.pair()?;
    let file = rack_file(bench, "packet", TWO_UNPACKED)?;
    let trips = bench.count(TRIPS);
    let run = format!("--wire packet --job latency --bytes 64 --repetitions {trips} --json -");
    let arguments: Vec<_> = ["run".to_owned(), file].into_iter().chain(words(&run)).collect();
    Ok(Sides::new(
        move || raw_loop(bench, RawLoop::PacketRoundTrip, trips),
        move || job_ns(bench, On::Pair, "store", &arguments),
    ))
}

fn all_reduce(bench: &Bench) -> Result<Sides<'_>, MeasureError> {
    bench.pair()?;
    let file = rack_file(bench, "two", TWO_LARGE_FRAMES)?;
    let count = bench.count(500);
    let run = format!("--job collective --collective all-reduce --bytes 1MiB --repetitions {count} --json -");
    let arguments: Vec<_> = ["run".to_owned(), file].into_iter().chain(words(&run)).collect();
    Ok(Sides::new(
        move || raw_loop(bench, RawLoop::Exchange, count),
        move || job_ns(bench, On::Pair, "all-reduce", &arguments),
    ))
}

/// Returns the share of an array that each rank sends in a ring all-reduce, and receives.
fn share_moved(ranks: u32) -> f64 {
    f64::from(2 * (ranks - 1)) / f64::from(ranks)
}

/// Compares many ranks with two ranks that have a processor each. The arrays are of equal size, so memory is
/// equally far from the processor. The two ranks give the work per byte. All ranks move a known number of
/// bytes, and the processors share that work.
fn sixteen_ranks(bench: &Bench) -> Result<Sides<'_>, MeasureError> {
    bench.pair()?;
    let processors = processors::allowed()?.len().min(RANKS as usize) as f64;
    let two = rack_file(bench, "two", TWO_LARGE_FRAMES)?;
    let all =
        format!("name: calibrate-{RANKS}\nshape: {{ring: {{nodes: {RANKS}}}}}\nframe_bytes_max: 9014B\n");
    let all = rack_file(bench, "ranks", &all)?;
    let line = |bytes: &str, repetitions: u64| {
        words(&format!(
            "--job collective --collective all-reduce --algorithm ring --bytes {bytes} --repetitions {repetitions} --warm-up 1 --json -"
        ))
    };
    let begin = |file: String, line: Vec<String>| -> Vec<String> {
        ["run".to_owned(), file].into_iter().chain(line).collect()
    };
    let two_ranks = begin(two, line(ARRAY, bench.count(50)));
    let all_ranks = begin(all, line(ARRAY, bench.count(50).min(10)));
    let work = share_moved(RANKS) / share_moved(2) * f64::from(RANKS) / processors;
    Ok(Sides::new(
        move || Ok(job_ns(bench, On::Pair, "all-reduce", &two_ranks)? * work),
        move || job_ns(bench, On::All, "all-reduce", &all_ranks),
    ))
}
