//! Load of the initiator's core in a run, and the target's part.
//!
//! *Posted* operations are issued as fast as the core takes them, and the time ends when a flush reports that
//! all are visible. Of *acknowledged* operations a fixed number is kept in flight, each until it is visible.
//! The target waits for a word in its memory, as a program would.

use std::io;
use std::time::Instant as WallInstant;

use rackloom_calibrate::Pair;
use rackloom_protocol::{Command, Completion, Condition, LocalRange, OperationId, RegionId};

use crate::measure_error::MeasureError;
use crate::runs::core::{self, Core, DATA_BYTES, END_WORD_AT, REGION, target_address};

/// Number of stores of 64 B that fill a frame of 1500 B. A raw frame counts as this many stores.
pub(crate) const STORES_PER_FRAME: f64 = 18.0;
/// Payload of a put that fills a frame of [`FRAME_BYTES`].
pub(crate) const PUT_BYTES: u64 = 4096;
/// Frame size of racks whose file does not set one.
pub(crate) const FRAME_BYTES: usize = 4240;
const STORE_BYTES: u64 = 64;
/// Number of posted stores between two polls: more than fill the frames of a batch.
const STORES_PER_POLL: u64 = 256;
/// Number of acknowledged operations in flight.
const IN_FLIGHT: u64 = 256;
/// Time for which the target serves after the end, in case an acknowledgement is lost.
const DEPARTURE_NS: u64 = 100_000_000;

/// Settings for frames of up to 1514 bytes, which small operations share.
const PACKED: &str = "frame_bytes_max: 1514B\n";
/// Settings for frames of the default size with one operation each.
const UNPACKED: &str = "packing: {mode: \"off\"}\n";

/// Measures posted stores of 64 B that share frames, per second, on the packet wire.
pub(crate) fn packed_on_packet(pair: Pair, count: u64) -> Result<f64, MeasureError> {
    core::on_packet(pair, PACKED, |core| post(core, count), serve)
}

/// Measures posted stores of 64 B that share frames, per second, on the udp wire.
pub(crate) fn packed_on_udp(pair: Pair, count: u64) -> Result<f64, MeasureError> {
    core::on_udp(pair, PACKED, |core| post(core, count), serve)
}

/// Measures acknowledged stores of 64 B, a frame each, per second, on the packet wire.
pub(crate) fn stores_on_packet(pair: Pair, count: u64) -> Result<f64, MeasureError> {
    core::on_packet(pair, UNPACKED, |core| acknowledge(core, count, store), serve)
}

/// Measures puts that fill a frame of the default size each, per second, on the udp wire.
pub(crate) fn puts_on_udp(pair: Pair, count: u64) -> Result<f64, MeasureError> {
    core::on_udp(pair, UNPACKED, |core| acknowledge(core, count, put), serve)
}

const DATA: [u8; STORE_BYTES as usize] = [0x5a; STORE_BYTES as usize];

fn store(number: u64) -> Command<'static> {
    let target = target_address(number % (DATA_BYTES / STORE_BYTES) * STORE_BYTES);
    let operation = OperationId(number + 1);
    Command::Store { operation, target, data: &DATA, completion: Completion::Visible }
}

fn put(number: u64) -> Command<'static> {
    let offset = number % (DATA_BYTES / PUT_BYTES) * PUT_BYTES;
    let source = LocalRange { region: REGION, offset, length: PUT_BYTES };
    Command::Put { operation: OperationId(number + 1), target: target_address(offset), source, signal: None }
}

/// Keeps operations in flight until `count` have completed. Returns the number per second.
fn acknowledge(mut core: Core, count: u64, make: fn(u64) -> Command<'static>) -> io::Result<f64> {
    core.until(Core::reaches_target)?;
    let (before, begun, mut issued) = (core.completed(), WallInstant::now(), 0);
    while core.completed() - before < count {
        let now = core.now();
        let free_slots = IN_FLIGHT - (issued - (core.completed() - before));
        for _ in 0..free_slots.min(count - issued) {
            if !core.command(now, make(issued))? {
                break;
            }
            issued += 1;
        }
        core.poll()?;
    }
    let per_s = per_second(count, begun);
    end_target(core)?;
    Ok(per_s)
}

fn post(mut core: Core, count: u64) -> io::Result<f64> {
    core.until(Core::reaches_target)?;
    let (begun, mut stored) = (WallInstant::now(), 0);
    while stored < count {
        let now = core.now();
        for _ in 0..STORES_PER_POLL.min(count - stored) {
            let target = target_address(stored % (DATA_BYTES / STORE_BYTES) * STORE_BYTES);
            let (operation, completion) = (OperationId(0), Completion::Accepted);
            if !core.command(now, Command::Store { operation, target, data: &DATA, completion })? {
                break;
            }
            stored += 1;
        }
        core.poll()?;
    }
    core.complete(Command::Flush { operation: OperationId(1), target: None })?;
    let per_s = per_second(count, begun);
    end_target(core)?;
    Ok(per_s)
}

fn per_second(count: u64, begun: WallInstant) -> f64 {
    count as f64 / begun.elapsed().as_secs_f64().max(1e-9)
}

/// Writes the word that ends the target.
fn end_target(mut core: Core) -> io::Result<()> {
    let (target, data) = (target_address(END_WORD_AT), 1_u64.to_le_bytes());
    let operation = OperationId(u64::MAX);
    core.complete(Command::Store { operation, target, data: &data, completion: Completion::Visible })
}

/// Runs the target: waits for the word, then serves repeated frames for a while.
fn serve(mut core: Core) -> io::Result<()> {
    let (region, offset, condition): (RegionId, _, _) = (REGION, END_WORD_AT, Condition::Equal);
    let operation = OperationId(1);
    core.complete(Command::WaitUntil { operation, region, offset, condition, value: 1, depends_on: None })?;
    let end = core.now() + DEPARTURE_NS;
    core.until(|core| core.now() >= end)
}
