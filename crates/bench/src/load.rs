//! What the near side of our own runs asks of its core, and what the far side does meanwhile.
//!
//! *Posted* operations are handed over as fast as the core takes them, and the time ends when a flush says that all are visible.
//! *Acknowledged* ones are kept under way in a fixed number, each until it is visible. The far side waits for a word in its
//! memory, as a program would.

use std::io;
use std::time::Instant as WallInstant;

use rackloom_calibrate::Pair;
use rackloom_protocol::{Command, Completion, Condition, LocalRange, OperationId, RegionId};

use super::core::{self, Core, DATA_BYTES, REGION, WORD_AT, there};
use super::obstacle::Obstacle;

/// Stores of 64 B that fill a frame of 1500 B: what a raw frame counts for.
pub(super) const STORES_PER_FRAME: f64 = 18.0;
/// Payload of a put that fills a frame of the usual size, [`FRAME_BYTES`].
pub(super) const PUT_BYTES: u64 = 4096;
/// What racks have whose file says nothing.
pub(super) const FRAME_BYTES: usize = 4240;
const STORE_BYTES: u64 = 64;
/// Posted stores between two turns: more than fill the frames of a batch.
const STORES_PER_TURN: u64 = 256;
/// Acknowledged operations under way.
const UNDER_WAY: u64 = 256;
/// How long the far side stays for who may need an acknowledgement again.
const FAREWELL_NS: u64 = 100_000_000;

/// Frames of up to 1514 bytes, which small operations share.
const PACKED: &str = "frame_bytes_max: 1514B\n";
/// Frames of the usual size, an operation each.
const UNPACKED: &str = "packing: {mode: \"off\"}\n";

/// Posted stores of 64 B that share frames, per second, on the packet wire.
pub(super) fn packed_on_packet(pair: Pair, count: u64) -> Result<f64, Obstacle> {
    core::on_packet(pair, PACKED, |core| post(core, count), serve)
}

/// The same on the udp wire.
pub(super) fn packed_on_udp(pair: Pair, count: u64) -> Result<f64, Obstacle> {
    core::on_udp(pair, PACKED, |core| post(core, count), serve)
}

/// Acknowledged stores of 64 B, a frame each, per second, on the packet wire.
pub(super) fn stores_on_packet(pair: Pair, count: u64) -> Result<f64, Obstacle> {
    core::on_packet(pair, UNPACKED, |core| acknowledge(core, count, store), serve)
}

/// Puts that fill a frame of the usual size each, per second, on the udp wire.
pub(super) fn puts_on_udp(pair: Pair, count: u64) -> Result<f64, Obstacle> {
    core::on_udp(pair, UNPACKED, |core| acknowledge(core, count, put), serve)
}

const DATA: [u8; STORE_BYTES as usize] = [0x5a; STORE_BYTES as usize];

fn store(number: u64) -> Command<'static> {
    let target = there(number % (DATA_BYTES / STORE_BYTES) * STORE_BYTES);
    let operation = OperationId(number + 1);
    Command::Store { operation, target, data: &DATA, completion: Completion::Visible }
}

fn put(number: u64) -> Command<'static> {
    let offset = number % (DATA_BYTES / PUT_BYTES) * PUT_BYTES;
    let source = LocalRange { region: REGION, offset, length: PUT_BYTES };
    Command::Put { operation: OperationId(number + 1), target: there(offset), source, signal: None }
}

/// Keep operations under way until so many have ended; how many that was per second.
fn acknowledge(mut core: Core, count: u64, make: fn(u64) -> Command<'static>) -> io::Result<f64> {
    core.until(Core::reaches_the_far_side)?;
    let (before, begun, mut issued) = (core.completed(), WallInstant::now(), 0);
    while core.completed() - before < count {
        let now = core.now();
        let room = UNDER_WAY - (issued - (core.completed() - before));
        for _ in 0..room.min(count - issued) {
            if !core.command(now, make(issued))? {
                break;
            }
            issued += 1;
        }
        core.turn()?;
    }
    let per_s = per_second(count, begun);
    say_goodbye(core)?;
    Ok(per_s)
}

fn post(mut core: Core, count: u64) -> io::Result<f64> {
    core.until(Core::reaches_the_far_side)?;
    let (begun, mut stored) = (WallInstant::now(), 0);
    while stored < count {
        let now = core.now();
        for _ in 0..STORES_PER_TURN.min(count - stored) {
            let target = there(stored % (DATA_BYTES / STORE_BYTES) * STORE_BYTES);
            let (operation, completion) = (OperationId(0), Completion::Accepted);
            if !core.command(now, Command::Store { operation, target, data: &DATA, completion })? {
                break;
            }
            stored += 1;
        }
        core.turn()?;
    }
    core.complete(Command::Flush { operation: OperationId(1), target: None })?;
    let per_s = per_second(count, begun);
    say_goodbye(core)?;
    Ok(per_s)
}

fn per_second(count: u64, begun: WallInstant) -> f64 {
    count as f64 / begun.elapsed().as_secs_f64().max(1e-9)
}

/// Write the word that the far side waits for.
fn say_goodbye(mut core: Core) -> io::Result<()> {
    let (target, data) = (there(WORD_AT), 1_u64.to_le_bytes());
    let operation = OperationId(u64::MAX);
    core.complete(Command::Store { operation, target, data: &data, completion: Completion::Visible })
}

/// The far side: wait for the word, and then for whoever needs an acknowledgement again.
fn serve(mut core: Core) -> io::Result<()> {
    let (region, offset, condition): (RegionId, _, _) = (REGION, WORD_AT, Condition::Equal);
    let operation = OperationId(1);
    core.complete(Command::WaitUntil { operation, region, offset, condition, value: 1, depends_on: None })?;
    let end = core.now() + FAREWELL_NS;
    core.until(|core| core.now() >= end)
}
