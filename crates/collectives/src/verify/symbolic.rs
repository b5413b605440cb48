//! Runs a schedule on symbols: each element is "position p of the inputs, reduced over this multiset of ranks".
//!
//! Each distinct multiset is stored once and named by a number, so that an element is two numbers for any number of ranks in
//! it.

use std::collections::HashMap;

use super::Finding;
use super::order::Order;
use super::promise::{Contributors, One, promise};
use crate::schedule::{Buffer, Local, Program, Schedule, Span};

/// A symbolic value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Value {
    position: usize,
    ranks: SetId,
    /// The operands were reduced in ascending order of rank.
    is_in_order: bool,
}

/// Number of a multiset in [`Multisets`].
type SetId = u32;
/// One element of memory; `None` was never written.
type Cell = Option<Value>;

/// Multisets of ranks, as sorted lists.
#[derive(Default)]
struct Multisets {
    lists: Vec<Vec<u32>>,
    numbers: HashMap<Vec<u32>, SetId>,
    unions: HashMap<(SetId, SetId), SetId>,
}

impl Multisets {
    fn number(&mut self, list: Vec<u32>) -> SetId {
        let next = self.lists.len() as SetId;
        *self.numbers.entry(list.clone()).or_insert_with(|| {
            self.lists.push(list);
            next
        })
    }

    fn union(&mut self, left: SetId, right: SetId) -> SetId {
        if let Some(&known) = self.unions.get(&(left, right)) {
            return known;
        }
        let mut list = [&self.lists[left as usize][..], &self.lists[right as usize]].concat();
        list.sort_unstable();
        let number = self.number(list);
        self.unions.insert((left, right), number);
        number
    }
}

/// The memory of all ranks.
struct Memory {
    cells: Vec<[Vec<Cell>; 3]>,
    multisets: Multisets,
    findings: Vec<Finding>,
}

/// Result of a symbolic run.
pub(super) struct Outcome {
    /// Errors during the run, and outputs that differ from the definition.
    pub(super) findings: Vec<Finding>,
    /// Every output is reduced in ascending order of rank.
    pub(super) is_in_order: bool,
}

/// Runs the schedule.
pub(super) fn run(schedule: &Schedule, order: &Order) -> Outcome {
    let mut memory = Memory::new(schedule);
    for at in &order.sequence {
        let program = &schedule.programs[at.rank];
        let step = &program.steps[at.step];
        for work in &step.work {
            memory.work(at.rank, program, work);
        }
        for &id in &step.sends {
            let transfer = schedule.transfer(id);
            let values = memory.read(transfer.from, transfer.source);
            memory.write(transfer.to, transfer.target, &values);
        }
    }
    memory.judge(schedule);
    let outputs = memory.cells.iter().flat_map(|of_rank| &of_rank[index(Buffer::Output)]);
    let is_in_order = outputs.flatten().all(|value| value.is_in_order);
    Outcome { findings: memory.findings, is_in_order }
}

impl Memory {
    fn new(schedule: &Schedule) -> Self {
        let mut multisets = Multisets::default();
        let of_rank = |rank: usize| {
            let program = &schedule.programs[rank];
            let ranks = multisets.number(vec![rank as u32]);
            let input = (0..program.input)
                .map(|position| Some(Value { position, ranks, is_in_order: true }))
                .collect();
            [input, vec![None; program.output], vec![None; program.scratch]]
        };
        let cells = (0..schedule.participants()).map(of_rank).collect();
        Self { cells, multisets, findings: Vec::new() }
    }

    fn work(&mut self, rank: usize, program: &Program, work: &Local) {
        let target = work.target();
        let mut operands = program.sources(work).iter();
        let first = match work {
            Local::Reduce { target, .. } => Some(target),
            Local::Copy { .. } | Local::Fold { .. } => operands.next(),
        };
        // A fold without operands was found before.
        let Some(first) = first else { return };
        let mut values = self.read(rank, *first);
        for operand in operands {
            let right = self.read(rank, *operand);
            values = values.into_iter().zip(right).map(|pair| self.reduce(rank, target, pair)).collect();
        }
        self.write(rank, target, &values);
    }

    fn reduce(&mut self, rank: usize, span: Span, pair: (Cell, Cell)) -> Cell {
        let (Some(left), Some(right)) = pair else { return None };
        if left.position != right.position {
            let (left, right) = (left.position, right.position);
            self.findings.push(Finding::MixedElements { rank, span, left, right });
            return None;
        }
        let last = self.multisets.lists[left.ranks as usize].last();
        let first = self.multisets.lists[right.ranks as usize].first();
        let is_in_order = left.is_in_order && right.is_in_order && last < first;
        Some(Value { ranks: self.multisets.union(left.ranks, right.ranks), is_in_order, ..left })
    }

    fn read(&mut self, rank: usize, span: Span) -> Vec<Cell> {
        let values = self.cells[rank][index(span.buffer)][span.range()].to_vec();
        if values.contains(&None) {
            self.findings.push(Finding::Uninitialised { rank, span });
        }
        values
    }

    fn write(&mut self, rank: usize, span: Span, values: &[Cell]) {
        self.cells[rank][index(span.buffer)][span.range()].copy_from_slice(values);
    }

    /// Compares the outputs with the definition; one finding per rank is enough.
    fn judge(&mut self, schedule: &Schedule) {
        let ranks = schedule.ranks();
        let all_ranks = self.multisets.number((0..ranks as u32).collect());
        let mut below: Option<(usize, SetId)> = None;
        for rank in 0..ranks {
            for element in 0..schedule.programs[rank].output {
                let expected = promise(schedule.collective, &schedule.parts, rank, element);
                let set = match expected.contributors {
                    Contributors::All => all_ranks,
                    Contributors::Below(end) => match below {
                        Some((known, set)) if known == end => set,
                        _ => {
                            let set = self.multisets.number((0..end as u32).collect());
                            below = Some((end, set));
                            set
                        }
                    },
                    Contributors::One(from) => self.multisets.number(vec![from as u32]),
                };
                let found = self.cells[rank][index(Buffer::Output)][element];
                let is_right =
                    found.is_some_and(|value| value.position == expected.position && value.ranks == set);
                if !is_right {
                    self.findings.push(self.wrong(rank, element, found, expected));
                    break;
                }
            }
        }
    }

    fn wrong(&self, rank: usize, element: usize, found: Cell, expected: One) -> Finding {
        let found = found.map_or("never written".to_owned(), |value| {
            format!("position {} of ranks {:?}", value.position, self.multisets.lists[value.ranks as usize])
        });
        let of = match expected.contributors {
            Contributors::All => "all ranks".to_owned(),
            Contributors::Below(end) => format!("ranks 0..{end}"),
            Contributors::One(from) => format!("rank {from}"),
        };
        let expected = format!("position {} of {of}", expected.position);
        Finding::WrongResult { rank, element, found, expected }
    }
}

fn index(buffer: Buffer) -> usize {
    match buffer {
        Buffer::Input => 0,
        Buffer::Output => 1,
        Buffer::Scratch => 2,
    }
}
