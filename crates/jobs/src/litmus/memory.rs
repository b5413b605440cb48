//! Preparation of the owner's memory before a round, and its check after the round.
//!
//! Before the round, guards get their pattern, slots and flags become zero, and contended words get their initial
//! value. After it, the owner checks every byte of the regions that others may write, through its own memory and not
//! through the fabric. All bytes that are not a slot or a word are guard and must not have changed.

use rackloom_protocol::{JobMemory, LocalRange};

use super::fill::{fill, write};
use super::findings::{Expected, Findings, read_word};
use super::layout::{CONTROL, Content, DATA, Extent, READABLE};
use super::phase::check_contended;
use super::run_view::{RunView, width};
use crate::ranks::barrier::Barrier;

/// Extent to which a check may expect data to be complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Certainty {
    /// All ranks have passed the barrier after the round: all data must be there.
    Whole,
    /// The run was broken off: the data present must be right, and the data of each flag that is set must be there.
    Partial,
}

/// Brings the rank's memory into the state in which every round begins. Barrier and abort words are not changed,
/// because other ranks may be ahead.
pub(crate) fn prepare(view: &RunView, memory: &mut dyn JobMemory, findings: &mut Findings) {
    for region in [CONTROL, DATA] {
        let guard = view.guard_pattern(region);
        for Extent { offset, bytes, content } in view.layout.extents(region) {
            let range = LocalRange { region, offset, length: bytes };
            match content {
                Content::Guard => fill(memory, findings, range, guard, offset),
                Content::Slot { .. } | Content::Flag { .. } | Content::Ledger(_) => {
                    write(memory, findings, range, |_, out| out.fill(0));
                }
                Content::Contended(word) => {
                    let value = view.contended_initial(view.rank, word).to_le_bytes();
                    let length = width(word).bytes() as usize;
                    write(memory, findings, range, |_, out| out.copy_from_slice(&value[..length]));
                }
                Content::Abort | Content::Barrier { .. } => {}
            }
        }
    }
    if view.round == 0 {
        fill(memory, findings, readable(view), view.readable_pattern(view.rank), 0);
    }
}

/// Returns the whole region that others may only read.
fn readable(view: &RunView) -> LocalRange {
    LocalRange { region: READABLE, offset: 0, length: view.layout.region_bytes(READABLE) }
}

/// Checks every byte that others may have written, and the bytes that they must not write.
pub(crate) fn sweep(
    view: &RunView,
    memory: &mut dyn JobMemory,
    findings: &mut Findings,
    certainty: Certainty,
) {
    for region in [CONTROL, DATA] {
        let guard = view.guard_pattern(region);
        for extent in view.layout.extents(region) {
            match extent.content {
                Content::Guard => {
                    let range = LocalRange { region, offset: extent.offset, length: extent.bytes };
                    let expected = Expected::Exactly(guard, extent.offset);
                    findings.check(memory, range, expected, || "guard".to_owned());
                }
                Content::Slot { distance, case } => {
                    sweep_slot(view, memory, findings, certainty, distance, case)
                }
                Content::Flag { distance, case } => {
                    sweep_flag(view, memory, findings, certainty, distance, case);
                }
                Content::Contended(word) if certainty == Certainty::Whole => {
                    check_contended(view, memory, findings, word);
                }
                Content::Contended(_) | Content::Ledger(_) | Content::Abort | Content::Barrier { .. } => {}
            }
        }
    }
    let expected = Expected::Exactly(view.readable_pattern(view.rank), 0);
    findings.check(memory, readable(view), expected, || "read-only region".to_owned());
}

/// Checks the slots that were written without order. A barrier separates the writers' flushes from this check.
pub(crate) fn sweep_writes(view: &RunView, memory: &mut dyn JobMemory, findings: &mut Findings) {
    for extent in view.layout.extents(DATA) {
        if let Content::Slot { distance, case } = extent.content
            && !view.layout.cases(distance)[usize::from(case)].kind.has_flag()
        {
            sweep_slot(view, memory, findings, Certainty::Whole, distance, case);
        }
    }
}

fn is_peer(view: &RunView, writer: u16) -> bool {
    view.peers.contains(&writer)
}

fn sweep_slot(
    view: &RunView,
    memory: &mut dyn JobMemory,
    findings: &mut Findings,
    certainty: Certainty,
    distance: u16,
    number: u16,
) {
    let writer = view.layout.writer(view.rank, distance);
    let case = view.layout.cases(distance)[usize::from(number)];
    let offset = view.layout.slot_offset(distance, number);
    let range = LocalRange { region: DATA, offset, length: case.bytes };
    let pattern = view.slot_pattern(writer, view.rank, number);
    let is_flag_up =
        case.kind.has_flag() && read_word(memory, CONTROL, view.layout.flag_offset(distance, number), 8) != 0;
    let expected = match certainty {
        _ if !is_peer(view, writer) => Expected::Zero,
        Certainty::Partial if !is_flag_up => Expected::AtMost(pattern, 0),
        Certainty::Partial if case.kind.is_fenced() => Expected::Fenced(pattern, 0),
        Certainty::Whole | Certainty::Partial => Expected::Exactly(pattern, 0),
    };
    findings.check(memory, range, expected, || view.describe(writer, &case));
}

fn sweep_flag(
    view: &RunView,
    memory: &mut dyn JobMemory,
    findings: &mut Findings,
    certainty: Certainty,
    distance: u16,
    number: u16,
) {
    let writer = view.layout.writer(view.rank, distance);
    let offset = view.layout.flag_offset(distance, number);
    let found = read_word(memory, CONTROL, offset, 8);
    let is_absence_right = certainty == Certainty::Partial || !is_peer(view, writer);
    if found == 0 && is_absence_right {
        return;
    }
    let expected = if is_peer(view, writer) { view.flag_value(writer, view.rank, number) } else { 0 };
    let case = view.layout.cases(distance)[usize::from(number)];
    findings
        .check_word(CONTROL, offset, found, expected, || format!("flag of {}", view.describe(writer, &case)));
}

/// Checks the barrier words after the last barrier, when no rank signals any more. Each word must have counted every
/// barrier exactly once, and no rank may have broken off.
pub(crate) fn check_barrier_words(
    view: &RunView,
    memory: &mut dyn JobMemory,
    findings: &mut Findings,
    barrier: &Barrier,
) {
    for (step, expected) in barrier.words() {
        let offset = view.layout.barrier_offset(step);
        let found = read_word(memory, CONTROL, offset, 8);
        findings.check_word(CONTROL, offset, found, expected, || format!("barrier word {step}"));
    }
}
