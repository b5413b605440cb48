//! Order in which every engine polls a member.

use super::member::{FrameCompletion, Member, PollSteps, Shortcuts};
use super::payload::{LeavingPayload, PayloadPath};
use super::wires::{BatchedWires, KeptFrames, PinnedFrames};
use crate::event::Event;
use crate::ids::PortId;
use crate::memory::MemoryDone;
use crate::time::Instant;
use crate::transmit::{Body, Passage, Transmit};
use crate::wire;

/// Polls a member for all its output, in the one fixed order: routes, memory, frames port by port, leases, events.
///
/// Returns true if there was any.
pub fn drain<M, W, R>(
    member: &mut M,
    now: Instant,
    wires: &mut W,
    memory: &mut R,
    events: &mut impl FnMut(Event),
) -> bool
where
    M: Member + PollSteps + Shortcuts + FrameCompletion + ?Sized,
    W: BatchedWires + KeptFrames + PinnedFrames + ?Sized,
    R: PayloadPath<W>,
{
    member.settle(now);
    let mut progress = drain_memory(member, now, wires, memory);
    let mut from = PortId(0);
    while let Some(port) = member.next_port(now, from) {
        from = PortId(port.0 + 1);
        let before = core::mem::take(&mut progress);
        while member.wants_transmit(now, port) {
            if member.send_run(now, port, memory, &mut |write| wires.fill(port, write)) {
                progress = true;
                continue;
            }
            let Some(out) = wires.slot(port) else { break };
            // Borrowed, not moved: its fields were just written one by one, and a copy of the whole would wait for
            // all of them.
            let Some(transmit) = &member.poll_transmit(now, port, out) else { break };
            complete(member, now, port, transmit, wires, memory);
            progress = true;
        }
        if progress {
            wires.show(port);
        }
        progress |= before;
    }
    progress |= member.must_poll_again();
    while let Some(lease) = member.poll_release() {
        wires.release(lease);
    }
    while let Some(event) = member.poll_event() {
        events(event);
        progress = true;
    }
    progress
}

fn drain_memory<M, W, R>(member: &mut M, now: Instant, wires: &mut W, memory: &mut R) -> bool
where
    M: Member + ?Sized,
    W: PinnedFrames + ?Sized,
    R: PayloadPath<W>,
{
    let mut progress = false;
    while let Some(request) = member.poll_memory() {
        let token = request.token;
        if let Some(done) = memory.execute_with(wires, &request) {
            // A fresh value: the answer was just written in part, after a copy of the whole frame that may still be
            // on its way to the cache, and would be read back as a whole.
            let done = if matches!(done, MemoryDone::Written) { MemoryDone::Written } else { done };
            member.handle_memory_done(now, token, done);
        }
        progress = true;
    }
    while let Some((token, done)) = memory.poll_done() {
        member.handle_memory_done(now, token, done);
        progress = true;
    }
    progress
}

fn complete<M, W, R>(
    member: &mut M,
    now: Instant,
    port: PortId,
    transmit: &Transmit,
    wires: &mut W,
    memory: &mut R,
) where
    M: FrameCompletion + ?Sized,
    W: KeptFrames + PinnedFrames + ?Sized,
    R: PayloadPath<W>,
{
    if transmit.passage == Passage::Discarded {
        // An uncommitted buffer is returned again by the next call.
        return;
    }
    if let Body::Lease { lease, at, length } = transmit.body {
        wires.copy_lease(port, lease, at, length);
    }
    if let Body::Kept { behind } = transmit.body {
        wires.load_kept(port, behind);
    }
    // W-52
    if let Body::Memory { region, offset, at, length, following } = transmit.body
        && memory
            .load(wires, port, transmit, &LeavingPayload { region, offset, at, length, following })
            .is_err()
        && let Some(out) = wires.slot(port)
    {
        wire::packed::make_void(
            &mut out[wire::layout::OPERATIONS..transmit.length],
            at - wire::layout::OPERATIONS,
        );
        member.note_source_failed(region);
    }
    if transmit.end_to_end_check
        && let Some(out) = wires.slot(port)
    {
        wire::seal_end_to_end(&mut out[..transmit.length]);
    }
    match transmit.passage {
        Passage::Plain | Passage::Unprotected | Passage::Discarded => {}
        Passage::Kept => {
            let is_kept = member
                .repeatable(port)
                .is_some_and(|frames| wires.keep(port, transmit.length, frames.saturating_sub(1)));
            if let Some(out) = wires.slot(port) {
                member.keep_sent(now, port, &mut out[..transmit.length], is_kept);
            }
        }
        Passage::Repeated => {
            if let Some(out) = wires.slot(port) {
                member.refresh_sent(port, &mut out[..transmit.length]);
            }
        }
    }
    wires.commit(port, transmit.length, transmit.doorbell);
}
