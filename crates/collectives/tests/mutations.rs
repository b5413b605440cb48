//! A schedule with any single error is refused: the proof can fail.

use std::num::NonZeroUsize;

use rackloom_collectives::algorithm::suitable;
use rackloom_collectives::schedule::{Pieces, Transfers};
use rackloom_collectives::verify::{Finding, verify};
use rackloom_collectives::{Algorithm, Buffer, Collective, Local, Operands, Request, Schedule, Span, build};

const RANKS: usize = 6;
const ELEMENTS: usize = 20;

fn schedule(collective: Collective, algorithm: Algorithm) -> Schedule {
    // A hierarchy has two lanes.
    let servers = if algorithm == Algorithm::Hierarchical { [0, 1, 1, 0, 1, 1] } else { [0, 0, 1, 1, 1, 2] };
    build(&Request { collective, ranks: RANKS, elements: ELEMENTS, servers: &servers, parts: &[] }, algorithm)
        .unwrap()
}

fn all_schedules() -> Vec<Schedule> {
    let segments = NonZeroUsize::new(3).unwrap();
    let of =
        |collective| suitable(collective, segments).map(move |algorithm| schedule(collective, algorithm));
    Collective::all(2).into_iter().flat_map(of).collect()
}

/// Applies `break_it` at positions 0, 1, 2, ... of each schedule until it finds no such position; each result must be refused.
fn every_position_is_checked(break_it: impl Fn(&mut Schedule, usize) -> Option<()>) {
    let mut broken = 0;
    for whole in all_schedules() {
        for position in 0.. {
            let mut schedule = whole.clone();
            if break_it(&mut schedule, position).is_none() {
                break;
            }
            broken += 1;
            let name = format!("{} by {}, position {position}", schedule.collective, schedule.algorithm);
            assert!(verify(&schedule).is_err(), "{name} is accepted");
        }
    }
    assert!(broken > 100, "only {broken} positions were tried");
}

/// Returns the `position`th step of all ranks.
fn step_of(schedule: &Schedule, mut position: usize) -> Option<(usize, usize)> {
    for (rank, program) in schedule.programs.iter().enumerate() {
        if position < program.steps.len() {
            return Some((rank, position));
        }
        position -= program.steps.len();
    }
    None
}

/// Returns the `position`th piece of local work of all ranks.
fn work_of(schedule: &mut Schedule, mut position: usize) -> Option<(&mut Pieces, usize)> {
    for step in schedule.programs.iter_mut().flat_map(|program| &mut program.steps) {
        if position < step.work.len() {
            return Some((&mut step.work, position));
        }
        position -= step.work.len();
    }
    None
}

#[test]
fn a_missing_step() {
    every_position_is_checked(|schedule, position| {
        let (rank, step) = step_of(schedule, position)?;
        schedule.programs[rank].steps.remove(step);
        Some(())
    });
}

#[test]
fn a_step_that_waits_for_nothing() {
    every_position_is_checked(|schedule, position| {
        let steps = schedule.programs.iter_mut().flat_map(|program| &mut program.steps);
        steps.filter(|step| !step.waits.is_empty()).nth(position)?.waits.clear();
        Some(())
    });
}

/// Waits too late: the transfer is awaited once, but by the rank's last step.
#[test]
fn a_wait_that_comes_too_late_races_or_gives_wrong_results() {
    let mut schedule = schedule(Collective::AllReduce, Algorithm::Ring);
    for rank in 0..RANKS {
        let mut whole = schedule.clone();
        let steps = &mut whole.programs[rank].steps;
        let late = std::mem::take(&mut steps[1].waits);
        steps.last_mut().unwrap().waits.extend(late);
        let findings = verify(&whole).unwrap_err();
        assert!(findings.iter().any(|finding| matches!(finding, Finding::Race { .. })), "{findings:?}");
    }
    schedule.programs[0].steps.swap(1, 2);
    assert!(verify(&schedule).is_err());
}

#[test]
fn a_missing_piece_of_local_work() {
    every_position_is_checked(|schedule, position| {
        let (work, index) = work_of(schedule, position)?;
        work.remove(index);
        Some(())
    });
}

#[test]
fn a_piece_of_local_work_done_twice() {
    for whole in all_schedules().into_iter().filter(|schedule| schedule.collective.reduces()) {
        for position in 0.. {
            let mut schedule = whole.clone();
            let Some((work, index)) = work_of(&mut schedule, position) else { break };
            work.insert(index, work[index]);
            // A second copy or fold changes nothing; a second reduction counts a rank twice.
            let harmless = matches!(work[index], Local::Copy { .. } | Local::Fold { .. });
            assert_eq!(
                verify(&schedule).is_ok(),
                harmless,
                "{} by {}",
                schedule.collective,
                schedule.algorithm
            );
        }
    }
}

#[test]
fn a_wrong_chunk_is_sent() {
    every_position_is_checked(|schedule, position| {
        let full = |span: Span, elements: usize| span.length == elements;
        let sizes: Vec<_> = schedule.programs.clone();
        let candidates = schedule.transfers.iter_mut().filter(|transfer| {
            let elements = sizes[transfer.from].elements(transfer.source.buffer);
            transfer.source.length > 0 && !full(transfer.source, elements)
        });
        let transfer = candidates.into_iter().nth(position)?;
        let elements = sizes[transfer.from].elements(transfer.source.buffer);
        transfer.source.start = if transfer.source.end() < elements { transfer.source.start + 1 } else { 0 };
        Some(())
    });
}

#[test]
fn a_chunk_lands_at_a_wrong_offset() {
    every_position_is_checked(|schedule, position| {
        let data = |transfer: &&mut rackloom_collectives::Transfer| transfer.target.length > 0;
        let transfer = schedule.transfers.iter_mut().filter(data).nth(position)?;
        transfer.target.start += 1;
        Some(())
    });
}

#[test]
fn two_transfers_of_a_sender_go_to_each_others_receiver() {
    every_position_is_checked(|schedule, position| {
        let transfers = &mut schedule.transfers;
        let differ = |left: usize, right: usize| {
            transfers[left].from == transfers[right].from && transfers[left].to != transfers[right].to
        };
        let count = transfers.len();
        let pairs = (0..count).flat_map(|left| (left + 1..count).map(move |right| (left, right)));
        let (left, right) = pairs.filter(|&(left, right)| differ(left, right)).nth(position)?;
        let to = transfers[left].to;
        transfers[left].to = transfers[right].to;
        transfers[right].to = to;
        Some(())
    });
}

#[test]
fn a_send_goes_to_a_wrong_peer() {
    every_position_is_checked(|schedule, position| {
        let transfer = schedule.transfers.get_mut(position)?;
        transfer.to = (0..RANKS).find(|&rank| rank != transfer.to && rank != transfer.from)?;
        Some(())
    });
}

#[test]
fn a_send_is_forgotten_or_doubled() {
    every_position_is_checked(|schedule, position| {
        let steps = schedule.programs.iter_mut().flat_map(|program| &mut program.steps);
        steps.filter(|step| !step.sends.is_empty()).nth(position / 2).map(|step| {
            if position % 2 == 0 {
                step.sends.pop();
            } else {
                step.sends.push(step.sends[0]);
            }
        })
    });
}

#[test]
fn numbers_and_arrivals_that_repeat() {
    every_position_is_checked(|schedule, position| {
        let transfer = schedule.transfers.get_mut(position / 2)?;
        if position % 2 == 0 {
            transfer.number += 1;
        } else {
            transfer.arrival += 1;
        }
        Some(())
    });
}

/// One slot for all arrivals of a rank: the second put may overwrite what the first brought.
#[test]
fn slots_that_are_shared_race() {
    let whole = schedule(Collective::AllReduce, Algorithm::OneShot);
    let mut schedule = whole.clone();
    for transfer in &mut schedule.transfers {
        if transfer.target.buffer == Buffer::Scratch {
            transfer.target.start = 0;
        }
    }
    for operand in schedule.programs.iter_mut().flat_map(|program| &mut program.operands) {
        if operand.buffer == Buffer::Scratch {
            operand.start = 0;
        }
    }
    let findings = verify(&schedule).unwrap_err();
    assert!(findings.iter().any(|finding| matches!(finding, Finding::Race { .. })), "{findings:?}");
}

/// One operand taken for another, one too many, one too few, and none at all.
#[test]
fn a_fold_of_the_wrong_operands() {
    let whole = schedule(Collective::AllReduce, Algorithm::OneShot);
    let broken_by = |break_it: &dyn Fn(&mut Schedule)| {
        let mut schedule = whole.clone();
        break_it(&mut schedule);
        verify(&schedule).unwrap_err()
    };
    broken_by(&|schedule| schedule.programs[1].operands[3] = schedule.programs[1].operands[2]);
    let fold = |schedule: &mut Schedule, change: &dyn Fn(&mut Operands)| {
        let work = schedule.programs[1].steps.iter_mut().flat_map(|step| &mut step.work);
        for work in work {
            let Local::Fold { operands, .. } = work else { panic!("{work:?}") };
            change(operands);
        }
    };
    broken_by(&|schedule| fold(schedule, &|operands| operands.count -= 1));
    let none = [
        broken_by(&|schedule| fold(schedule, &|operands| operands.count += 1)),
        broken_by(&|schedule| fold(schedule, &|operands| operands.start = u32::MAX)),
        broken_by(&|schedule| fold(schedule, &|operands| operands.count = 0)),
    ];
    for findings in none {
        assert!(matches!(findings[..], [Finding::NoOperands { rank: 1, .. }]), "{findings:?}");
    }
}

/// Sent elements must stay: a retransmission reads them again, even when the receiver already has them.
#[test]
fn a_source_that_is_written_again() {
    let mut schedule = schedule(Collective::AllReduce, Algorithm::Ring);
    let sent = schedule.transfers.iter().find(|transfer| transfer.source.buffer == Buffer::Scratch).unwrap();
    let (rank, span) = (sent.from, sent.source);
    let last = schedule.programs[rank].steps.last_mut().unwrap();
    last.work.push(Local::Copy { source: Span::new(Buffer::Input, 0..span.length), target: span });
    assert_eq!(verify(&schedule), Err(vec![Finding::SourceRewritten { rank, span }]));
}

/// Sender and receiver both omit a transfer: only the result shows it.
#[test]
fn a_transfer_that_both_sides_forget() {
    every_position_is_checked(|schedule, position| {
        if schedule.collective == Collective::Barrier {
            return None; // Some signals of six ranks are redundant.
        }
        let gone = *schedule.transfers.get(position)?;
        schedule.transfers.remove(position);
        for transfer in &mut schedule.transfers {
            let same_pair = (transfer.from, transfer.to) == (gone.from, gone.to);
            transfer.number -= u32::from(same_pair && transfer.number > gone.number);
            transfer.arrival -= u32::from(transfer.to == gone.to && transfer.arrival > gone.arrival);
        }
        schedule.programs[gone.to].arrivals -= 1;
        for step in schedule.programs.iter_mut().flat_map(|program| &mut program.steps) {
            for ids in [&mut step.waits, &mut step.sends] {
                ids.retain(|id| id.index() != position);
                ids.iter_mut().for_each(|id| id.0 -= u32::from(id.index() > position));
            }
        }
        Some(())
    });
}

#[test]
fn ranks_that_wait_for_each_other() {
    let mut schedule = schedule(Collective::AllToAll, Algorithm::Direct);
    for program in &mut schedule.programs {
        let waits: Transfers =
            program.steps.iter_mut().flat_map(|step| std::mem::take(&mut step.waits)).collect();
        program.steps[0].waits = waits;
    }
    let findings = verify(&schedule).unwrap_err();
    let stuck = findings.iter().filter(|finding| matches!(finding, Finding::Deadlock { step: 0, .. }));
    assert_eq!(stuck.count(), RANKS);
}

#[test]
fn a_barrier_that_lets_one_rank_through() {
    let mut schedule = schedule(Collective::Barrier, Algorithm::Dissemination);
    // Without the last round no rank depends on all ranks.
    let last = schedule.rounds() - 2;
    let dropped: Vec<_> = schedule
        .programs
        .iter_mut()
        .flat_map(|program| &mut program.steps)
        .filter(|step| step.round == last)
        .flat_map(|step| std::mem::take(&mut step.sends))
        .collect();
    for program in &mut schedule.programs {
        for step in &mut program.steps {
            step.waits.retain(|id| !dropped.contains(id));
        }
        program.arrivals -= 1;
    }
    // Transfers of the last round were built last, so the others keep their indices.
    schedule.transfers.truncate(schedule.transfers.len() - dropped.len());
    assert_eq!(verify(&schedule), Err(vec![Finding::BarrierLeaks]));
}
