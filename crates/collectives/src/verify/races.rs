//! Do two accesses of one element race? Is anything that was sent written again?
//!
//! A local access is a point in its rank's program. A transfer is an interval: it may read its source and write its
//! target at any time between its issue and the start of the step that awaits it. Two accesses conflict when they share an
//! element and one of them writes; conflicting accesses must be ordered.

use super::Finding;
use super::order::Order;
use super::structure::{StepId, TransferSteps};
use crate::schedule::{Buffer, Schedule, Span};

/// Position within a step: 0 is its start, after its arrivals; work follows; `ISSUE` is the issue of its sends.
type Phase = usize;
const START: Phase = 0;
const ISSUE: Phase = usize::MAX;

#[derive(Clone, Copy)]
struct Moment {
    at: StepId,
    phase: Phase,
}

#[derive(Clone, Copy)]
struct Access {
    span: Span,
    writes: bool,
    /// The source of a put, which must never change again.
    sent: bool,
    begin: Moment,
    end: Moment,
}

/// Returns every race and every rewritten source.
pub(super) fn find(schedule: &Schedule, steps_of: &TransferSteps, order: &Order) -> Vec<Finding> {
    let mut accesses = local_accesses(schedule);
    add_transfers(schedule, steps_of, &mut accesses);
    let mut findings = Vec::new();
    for (rank, accesses) in accesses.iter_mut().enumerate() {
        for buffer in [Buffer::Output, Buffer::Scratch] {
            let mut here: Vec<_> =
                accesses.iter().filter(|access| access.span.buffer == buffer).copied().collect();
            here.sort_by_key(|access| access.span.start);
            compare(rank, &here, rank >= schedule.ranks(), order, &mut findings);
        }
    }
    findings
}

fn local_accesses(schedule: &Schedule) -> Vec<Vec<Access>> {
    let of_rank = |rank: usize| {
        let mut accesses = Vec::new();
        for (step, content) in schedule.programs[rank].steps.iter().enumerate() {
            for (index, work) in content.work.iter().enumerate() {
                let at = Moment { at: StepId { rank, step }, phase: index + 1 };
                let access = |span, writes| Access { span, writes, sent: false, begin: at, end: at };
                let sources = schedule.programs[rank].sources(work).iter();
                accesses.extend(sources.map(|source| access(*source, false)));
                accesses.push(access(work.target(), true));
            }
        }
        accesses
    };
    (0..schedule.participants()).map(of_rank).collect()
}

fn add_transfers(schedule: &Schedule, steps_of: &TransferSteps, accesses: &mut [Vec<Access>]) {
    for (index, transfer) in schedule.transfers.iter().enumerate() {
        let begin = Moment { at: steps_of.issued[index], phase: ISSUE };
        let end = Moment { at: steps_of.awaited[index], phase: START };
        let (source, target) = (transfer.source, transfer.target);
        accesses[transfer.from].push(Access { span: source, writes: false, sent: true, begin, end });
        accesses[transfer.to].push(Access { span: target, writes: true, sent: false, begin, end });
    }
}

/// Compares accesses, which must be sorted by their first element.
fn compare(rank: usize, accesses: &[Access], may_rewrite: bool, order: &Order, findings: &mut Vec<Finding>) {
    for (index, first) in accesses.iter().enumerate() {
        let reach = accesses[index + 1..].iter().take_while(|second| second.span.start < first.span.end());
        for second in reach {
            if !first.span.overlaps(second.span) || !(first.writes || second.writes) {
                continue;
            }
            if !ordered(order, first, second) {
                findings.push(Finding::Race { rank, first: first.span, second: second.span });
            } else if !may_rewrite && (rewritten(order, first, second) || rewritten(order, second, first)) {
                let span = if first.writes { first.span } else { second.span };
                findings.push(Finding::SourceRewritten { rank, span });
            }
        }
    }
}

fn ordered(order: &Order, first: &Access, second: &Access) -> bool {
    before(order, first.end, second.begin) || before(order, second.end, first.begin)
}

fn rewritten(order: &Order, source: &Access, write: &Access) -> bool {
    source.sent && write.writes && before(order, source.end, write.begin)
}

/// Returns true if one moment is strictly before the other, in every timing.
fn before(order: &Order, earlier: Moment, later: Moment) -> bool {
    if earlier.at.rank == later.at.rank {
        return (earlier.at.step, earlier.phase) < (later.at.step, later.phase);
    }
    order.over_before(earlier.at, later.at)
}
