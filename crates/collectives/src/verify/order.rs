//! Order of steps in every possible timing (Lamport 1978), and whether every rank reaches its end.
//!
//! The steps of a rank follow each other; the issue of a transfer comes before the step that awaits it. For each step a
//! vector contains how many steps of each rank are certain to have issued their sends when it starts.

use std::collections::VecDeque;

use super::Finding;
use super::structure::{StepId, TransferSteps};
use crate::schedule::Schedule;

/// The partial order of all steps.
pub(super) struct Order {
    /// By rank and step: for each rank, how many of its steps are over.
    over: Vec<Vec<Box<[u32]>>>,
    /// By rank: what is over when the rank has finished.
    over_at_end: Vec<Box<[u32]>>,
    /// All steps in an order that respects the partial one.
    pub(super) sequence: Vec<StepId>,
    messages_deep: usize,
    /// Number of ranks; units in switches come behind them.
    ranks: usize,
}

/// A rank's progress through its program.
#[derive(Clone)]
struct Progress {
    step: usize,
    over: Box<[u32]>,
    depth: usize,
}

impl Order {
    /// Advances all ranks as far as possible.
    pub(super) fn establish(schedule: &Schedule, steps_of: &TransferSteps) -> Result<Self, Vec<Finding>> {
        let participants = schedule.participants();
        let start = Progress { step: 0, over: vec![0; participants].into(), depth: 0 };
        let mut progress = vec![start; participants];
        let mut order = Self {
            over: vec![Vec::new(); participants],
            ranks: schedule.ranks(),
            over_at_end: Vec::new(),
            sequence: Vec::new(),
            messages_deep: 0,
        };
        // Vector at the issue of a transfer, until its receiver has taken it.
        let mut in_flight: Vec<Option<(Box<[u32]>, usize)>> = vec![None; schedule.transfers.len()];
        let mut runnable: VecDeque<usize> = (0..participants).collect();
        while let Some(rank) = runnable.pop_front() {
            let mut mine = progress[rank].clone();
            while let Some(step) = schedule.programs[rank].steps.get(mine.step) {
                if step.waits.iter().any(|id| in_flight[id.index()].is_none()) {
                    break;
                }
                for id in &step.waits {
                    if let Some((over, depth)) = &in_flight[id.index()] {
                        merge(&mut mine.over, over);
                        mine.depth = mine.depth.max(depth + 1);
                    }
                }
                order.over[rank].push(mine.over.clone());
                order.sequence.push(StepId { rank, step: mine.step });
                mine.step += 1;
                mine.over[rank] = mine.step as u32;
                for id in &step.sends {
                    in_flight[id.index()] = Some((mine.over.clone(), mine.depth));
                    runnable.push_back(steps_of.awaited[id.index()].rank);
                }
            }
            progress[rank] = mine;
        }
        order.messages_deep = progress.iter().map(|progress| progress.depth).max().unwrap_or(0);
        let stuck = stuck(schedule, &progress);
        order.over_at_end = progress.into_iter().map(|progress| progress.over).collect();
        if stuck.is_empty() { Ok(order) } else { Err(stuck) }
    }

    /// Returns true if a step is over, its sends issued, before another rank's step starts.
    pub(super) fn over_before(&self, earlier: StepId, later: StepId) -> bool {
        self.over[later.rank][later.step][earlier.rank] > earlier.step as u32
    }

    pub(super) fn messages_deep(&self) -> usize {
        self.messages_deep
    }

    pub(super) fn synchronizing(&self) -> bool {
        let ranks = self.ranks;
        ranks == 1
            || self.over_at_end[..ranks].iter().all(|over| over[..ranks].iter().all(|&steps| steps > 0))
    }
}

fn merge(into: &mut [u32], from: &[u32]) {
    for (into, from) in into.iter_mut().zip(from) {
        *into = (*into).max(*from);
    }
}

fn stuck(schedule: &Schedule, progress: &[Progress]) -> Vec<Finding> {
    let unfinished = |(rank, progress): (usize, &Progress)| {
        (progress.step < schedule.programs[rank].steps.len())
            .then_some(Finding::Deadlock { rank, step: progress.step })
    };
    progress.iter().enumerate().filter_map(unfinished).collect()
}
