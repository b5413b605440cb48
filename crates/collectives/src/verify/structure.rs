//! Is the schedule well formed? Bounds, sizes, peers, numbers, everything sent once and awaited once.

use super::Finding;
use crate::schedule::{Buffer, Program, Schedule, Span, TransferId};

/// A step of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StepId {
    pub(super) rank: usize,
    pub(super) step: usize,
}

/// Steps that issue and await each transfer, by transfer.
pub(super) struct TransferSteps {
    pub(super) issued: Vec<StepId>,
    pub(super) awaited: Vec<StepId>,
}

pub(super) fn check(schedule: &Schedule) -> Result<TransferSteps, Vec<Finding>> {
    let participants = schedule.ranks() + schedule.algorithm.switches();
    if participants != schedule.participants() {
        return Err(vec![Finding::BufferSize { rank: participants.min(schedule.participants()) }]);
    }
    let mut findings = Vec::new();
    check_programs(schedule, &mut findings);
    check_transfers(schedule, &mut findings);
    if !findings.is_empty() {
        return Err(findings);
    }
    let steps_of = locate(schedule)?;
    check_numbers(schedule)?;
    Ok(steps_of)
}

fn check_programs(schedule: &Schedule, findings: &mut Vec<Finding>) {
    let (collective, parts) = (schedule.collective, &schedule.parts);
    for (rank, program) in schedule.programs.iter().enumerate() {
        let expected = if rank < parts.ranks() {
            (collective.input_of(rank, parts), collective.output_of(rank, parts))
        } else {
            (0, 0)
        };
        if (program.input, program.output) != expected {
            findings.push(Finding::BufferSize { rank });
        }
        for work in program.steps.iter().flat_map(|step| &step.work) {
            let (sources, target) = (program.sources(work), work.target());
            bounds(rank, program, target, findings);
            written(rank, target, findings);
            if sources.is_empty() {
                findings.push(Finding::NoOperands { rank, target });
            }
            for &source in sources {
                bounds(rank, program, source, findings);
                if source.length != target.length || source.overlaps(target) {
                    findings.push(Finding::Mismatch { rank, from: source, to: target });
                }
            }
        }
    }
}

fn check_transfers(schedule: &Schedule, findings: &mut Vec<Finding>) {
    for (index, transfer) in schedule.transfers.iter().enumerate() {
        let (from, to) = (transfer.from, transfer.to);
        let (Some(sender), Some(receiver), true) =
            (schedule.programs.get(from), schedule.programs.get(to), from != to)
        else {
            findings.push(Finding::BadPeer { transfer: TransferId(index as u32), from, to });
            continue;
        };
        bounds(from, sender, transfer.source, findings);
        bounds(to, receiver, transfer.target, findings);
        written(to, transfer.target, findings);
        if transfer.source.length != transfer.target.length {
            findings.push(Finding::Mismatch { rank: from, from: transfer.source, to: transfer.target });
        }
    }
}

fn bounds(rank: usize, program: &Program, span: Span, findings: &mut Vec<Finding>) {
    let end = span.start.checked_add(span.length);
    if end.is_none_or(|end| end > program.elements(span.buffer)) {
        findings.push(Finding::OutOfBounds { rank, span });
    }
}

fn written(rank: usize, target: Span, findings: &mut Vec<Finding>) {
    if target.buffer == Buffer::Input && target.length > 0 {
        findings.push(Finding::InputWritten { rank, span: target });
    }
}

fn locate(schedule: &Schedule) -> Result<TransferSteps, Vec<Finding>> {
    let mut findings = Vec::new();
    let mut issued: Vec<Vec<StepId>> = vec![Vec::new(); schedule.transfers.len()];
    let mut awaited = issued.clone();
    for (rank, program) in schedule.programs.iter().enumerate() {
        for (step, content) in program.steps.iter().enumerate() {
            let mut note = |ids: &[TransferId], steps_of: &mut Vec<Vec<StepId>>, sending: bool| {
                for &transfer in ids {
                    let known = schedule.transfers.get(transfer.index());
                    if known.is_some_and(|known| rank == if sending { known.from } else { known.to }) {
                        steps_of[transfer.index()].push(StepId { rank, step });
                    } else {
                        findings.push(Finding::ForeignTransfer { rank, transfer });
                    }
                }
            };
            note(&content.sends, &mut issued, true);
            note(&content.waits, &mut awaited, false);
        }
    }
    for (index, (issued, awaited)) in issued.iter().zip(&awaited).enumerate() {
        if (issued.len(), awaited.len()) != (1, 1) {
            let (sent, awaited) = (issued.len(), awaited.len());
            findings.push(Finding::NotOnce { transfer: TransferId(index as u32), sent, awaited });
        }
    }
    if findings.is_empty() {
        Ok(TransferSteps { issued: issued.concat(), awaited: awaited.concat() })
    } else {
        Err(findings)
    }
}

/// Checks that numbers of a pair count up in the order of issue, and that arrivals of a receiver are a permutation without gaps.
fn check_numbers(schedule: &Schedule) -> Result<(), Vec<Finding>> {
    let participants = schedule.participants();
    let mut findings = Vec::new();
    let mut seen: Vec<Vec<bool>> =
        schedule.programs.iter().map(|program| vec![false; program.arrivals as usize]).collect();
    for program in &schedule.programs {
        let mut next = vec![0; participants];
        for &id in program.steps.iter().flat_map(|step| &step.sends) {
            let transfer = schedule.transfer(id);
            let in_order = transfer.number == next[transfer.to];
            next[transfer.to] += 1;
            let fresh = seen[transfer.to]
                .get_mut(transfer.arrival as usize)
                .is_some_and(|seen| !core::mem::replace(seen, true));
            if !in_order || !fresh {
                findings.push(Finding::BadNumber { transfer: id });
            }
        }
    }
    if let Some(rank) = seen.iter().position(|arrivals| arrivals.contains(&false)) {
        let id = schedule.transfers.iter().position(|transfer| transfer.to == rank).unwrap_or(0);
        findings.push(Finding::BadNumber { transfer: TransferId(id as u32) });
    }
    if findings.is_empty() { Ok(()) } else { Err(findings) }
}
