//! All rows, in the order of the table. Goals are ratios to the raw loop: the floor and the good value.

mod idle;
mod racks;
mod simulated;
mod whole;

use rackloom_calibrate::copy::Copies;
use rackloom_calibrate::{Expected, Goal};

use crate::bench::Bench;
use crate::measure_error::MeasureError;
use crate::row::{Row, Sides, Unit};
use crate::runs::direct::Mapped;
use crate::runs::fabric::{MappedNodes, NodePair, Packing};
use crate::runs::program::raw_loop;
use crate::runs::raw_loop::RawLoop;

/// Number of records, or of own operations, for a take of some tens of milliseconds.
const RECORDS: u64 = 1_000_000;
const STORES: u64 = 200_000;
const LARGE_RECORDS: u64 = 100_000;
const PUTS: u64 = 30_000;
const TRIPS: u64 = 100_000;
const STORE_TRIPS: u64 = 30_000;
const PAGE: usize = 4096;
const MIB: usize = 1 << 20;

/// Returns every row.
pub(crate) fn all() -> Vec<Row> {
    let mut rows = shared_memory();
    rows.extend(direct());
    rows.extend(racks::packet());
    rows.extend(racks::collectives());
    rows.extend(idle::rows());
    rows.extend(whole::rows());
    // A rack of a thousand nodes takes longest.
    rows.extend(simulated::rows());
    rows
}

/// Rows of the shared-memory wire.
fn shared_memory() -> Vec<Row> {
    vec![
        Row {
            name: "store-single",
            ours: "acknowledged stores of 64 B, a frame each, 256 in flight",
            raw: "ring, records of 64 B written, read and released one by one, 256 in flight",
            unit: Unit::PerSecond,
            goal: Goal::at_least(0.30, 0.50),
            expected: Some(Expected::RING_64_SINGLE_PER_S),
            begin: store_single,
        },
        Row {
            name: "store-packed",
            ours: "posted stores of 64 B that share frames, all over 64 MiB, until all are visible",
            raw: "ring, records of 64 stores of 64 B, each store to the same offset in 64 MiB as ours",
            unit: Unit::PerSecond,
            goal: Goal::at_least(0.50, 0.75),
            expected: Some(Expected::SCATTER_64_PER_S),
            begin: store_packed,
        },
        Row {
            name: "put-4096",
            ours: "puts of 4 KiB until visible, 256 in flight",
            raw: "ring, records of 4096 B written, read and released one by one, 256 in flight",
            unit: Unit::PerSecond,
            goal: Goal::at_least(0.65, 0.85),
            expected: Some(Expected::RING_4096_PER_S),
            begin: put_4096,
        },
        Row {
            name: "round-trip",
            ours: "a store of 64 B until acknowledged as visible",
            raw: "a record of 64 B there and one back over two rings",
            unit: Unit::Nanoseconds,
            goal: Goal::at_most(2.0, 1.5),
            expected: Some(Expected::RING_ROUND_TRIP_NS),
            begin: round_trip,
        },
    ]
}

/// Rows of mapped memory of a peer on the same server.
fn direct() -> Vec<Row> {
    let row = |name, ours, raw, expected, begin| Row {
        name,
        ours,
        raw,
        unit: Unit::PerSecond,
        // Within a tenth of a copy is the goal.
        goal: Goal::at_least(0.90, 0.90),
        expected,
        begin,
    };
    vec![
        row("direct-store-64", "direct stores of 64 B", "copies of 64 B within 4 KiB", None, direct_store_64),
        row(
            "direct-store-64-inside",
            "direct stores of 64 B, announced together",
            "copies of 64 B within 4 KiB",
            None,
            direct_store_64_inside,
        ),
        row(
            "node-put-1m",
            "puts of 1 MiB into mapped memory of a node (API)",
            "copies of 1 MiB",
            Some(Expected::COPY_MIB_PER_S),
            node_put_1m,
        ),
        row(
            "direct-store-4096",
            "direct stores of 4 KiB",
            "copies of 4 KiB, hot",
            Some(Expected::COPY_4096_PER_S),
            direct_store_4096,
        ),
        row(
            "direct-load-4096",
            "direct loads of 4 KiB",
            "copies of 4 KiB, hot",
            Some(Expected::COPY_4096_PER_S),
            direct_load_4096,
        ),
        row(
            "direct-copy-1m",
            "direct copies of 1 MiB between regions",
            "copies of 1 MiB",
            Some(Expected::COPY_MIB_PER_S),
            direct_copy_1m,
        ),
    ]
}

/// Number of round trips for a reading of the distance: few, so that the host does not move a processor
/// meanwhile.
const LINE_TRIPS: u64 = 5_000;

fn line_ns(bench: &Bench) -> Result<f64, MeasureError> {
    raw_loop(bench, RawLoop::CacheLine, bench.count(LINE_TRIPS))
}

fn store_single(bench: &Bench) -> Result<Sides<'_>, MeasureError> {
    let (pair, mut pair_of_nodes) = (bench.pair()?, NodePair::new(Packing::Off)?);
    let (records, stores) = (bench.count(RECORDS), bench.count(STORES));
    Ok(Sides::across(
        move || raw_loop(bench, RawLoop::Ring64Acknowledged, records),
        move || pair_of_nodes.act(pair, |initiator| initiator.acknowledged_stores_per_s(stores)),
        move || line_ns(bench),
    ))
}

fn store_packed(bench: &Bench) -> Result<Sides<'_>, MeasureError> {
    let (pair, mut pair_of_nodes) = (bench.pair()?, NodePair::for_scattered_stores()?);
    let (records, stores) = (bench.count(4 * RECORDS), bench.count(10 * STORES));
    Ok(Sides::across(
        move || raw_loop(bench, RawLoop::Scatter, records),
        move || pair_of_nodes.act(pair, |initiator| initiator.scattered_stores_per_s(stores)),
        move || line_ns(bench),
    ))
}

fn put_4096(bench: &Bench) -> Result<Sides<'_>, MeasureError> {
    let (pair, mut pair_of_nodes) = (bench.pair()?, NodePair::new(Packing::Opportunistic)?);
    let (records, puts) = (bench.count(LARGE_RECORDS), bench.count(PUTS));
    Ok(Sides::across(
        move || raw_loop(bench, RawLoop::Ring4096, records),
        move || pair_of_nodes.act(pair, |initiator| initiator.puts_per_s(PAGE as u64, puts)),
        move || line_ns(bench),
    ))
}

fn round_trip(bench: &Bench) -> Result<Sides<'_>, MeasureError> {
    let (pair, mut pair_of_nodes) = (bench.pair()?, NodePair::new(Packing::Opportunistic)?);
    let (trips, stores) = (bench.count(TRIPS), bench.count(STORE_TRIPS));
    Ok(Sides::across(
        move || raw_loop(bench, RawLoop::RingRoundTrip, trips),
        move || pair_of_nodes.act(pair, |initiator| initiator.store_round_trip_ns(stores)),
        move || line_ns(bench),
    ))
}

fn direct_store_64(bench: &Bench) -> Result<Sides<'_>, MeasureError> {
    let (mut copies, mapped) = (Copies::new(PAGE)?, Mapped::new(bench, PAGE as u64)?);
    let count = bench.count(5_000_000);
    Ok(Sides::new(move || Ok(copies.per_s(64, count)), move || mapped.stores_per_s::<64>(count)))
}

fn direct_store_64_inside(bench: &Bench) -> Result<Sides<'_>, MeasureError> {
    let (mut copies, mapped) = (Copies::new(PAGE)?, Mapped::new(bench, PAGE as u64)?);
    let count = bench.count(5_000_000);
    Ok(Sides::new(move || Ok(copies.per_s(64, count)), move || mapped.stores_inside_per_s::<64>(count)))
}

fn direct_store_4096(bench: &Bench) -> Result<Sides<'_>, MeasureError> {
    let (mut copies, mapped) = (Copies::new(PAGE)?, Mapped::new(bench, PAGE as u64)?);
    let count = bench.count(500_000);
    Ok(Sides::new(move || Ok(copies.per_s(PAGE, count)), move || mapped.stores_per_s::<PAGE>(count)))
}

fn direct_load_4096(bench: &Bench) -> Result<Sides<'_>, MeasureError> {
    let (mut copies, mapped) = (Copies::new(PAGE)?, Mapped::new(bench, PAGE as u64)?);
    let count = bench.count(500_000);
    Ok(Sides::new(move || Ok(copies.per_s(PAGE, count)), move || mapped.loads_per_s::<PAGE>(count)))
}

fn node_put_1m(bench: &Bench) -> Result<Sides<'_>, MeasureError> {
    let (mut copies, mut nodes) = (Copies::new(MIB)?, MappedNodes::new(MIB as u64)?);
    let count = bench.count(1000);
    Ok(Sides::new(move || Ok(copies.per_s(MIB, count)), move || nodes.puts_per_s(count)))
}

fn direct_copy_1m(bench: &Bench) -> Result<Sides<'_>, MeasureError> {
    let (mut copies, mapped) = (Copies::new(MIB)?, Mapped::new(bench, MIB as u64)?);
    let count = bench.count(1000);
    Ok(Sides::new(move || Ok(copies.per_s(MIB, count)), move || mapped.copies_per_s(MIB as u64, count)))
}
