//! Reduction and multicast in switches: each rank sends its elements once to a unit in a switch, which sends the result once to each rank.
//!
//! The array is cut into segments, one per round, and rounds are dealt to the units in turn. A unit waits for one contribution of each rank,
//! folds them in ascending order of rank, and sends the result to every rank that gets it. A collective without a reduction sends
//! what one rank has given to all others.
//!
//! A unit has a fixed number of slots for any size of the array. The *window* is that number for all units together. A rank contributes to round *k* + window only
//! after the results of round *k* have arrived. So when a unit has all contributions to a round, every rank has the results of the round one window before.
//! A unit that folds may then use the slots of that round again. A unit that passes contributions on writes no results, but the
//! contributions themselves arrive earlier: it has twice as many slots. In every round each rank and the unit exchange at least a signal, because the
//! order of rounds depends on it.
//!
//! Sources in slots are written again after they have arrived everywhere. No other algorithm does that (`verify/races.rs`).

use std::ops::Range;

use crate::builder::{Builder, Sent, input, output};
use crate::collective::Collective;
use crate::schedule::Span;

/// Elements of a segment.
const SEGMENT_ELEMENTS: usize = 4096;
/// Minimum number of elements of a segment where a round has a segment of each rank's part.
const PART_ELEMENTS_MIN: usize = 256;
/// Number of rounds for which a unit that folds has slots.
const ROUNDS: usize = 16;

/// Sizes of the memory of a unit.
#[derive(Clone, Copy, Debug)]
struct Slots {
    /// Elements of a slot.
    elements: usize,
    /// Number of rounds that a unit has in progress.
    rounds: usize,
}

/// Lays out a collective over the switches behind the ranks. There must be at least two ranks.
pub(super) fn lay_out(builder: &mut Builder) {
    let elements = match builder.collective {
        Collective::ReduceScatter => (SEGMENT_ELEMENTS / builder.ranks).max(PART_ELEMENTS_MIN),
        _ => SEGMENT_ELEMENTS,
    };
    lay_out_in(builder, Slots { elements, rounds: ROUNDS });
}

/// Elements that take one path: from one rank or, reduced, from all; to one rank or to all others.
#[derive(Clone, Debug)]
struct Flow {
    /// Positions in the whole array.
    elements: Range<usize>,
    /// Rank that gives the elements; `None` if they are a reduction of all.
    from: Option<usize>,
    /// Rank that gets the elements; `None` if all do.
    to: Option<usize>,
}

impl Flow {
    fn gives(&self, rank: usize) -> bool {
        self.from.is_none_or(|from| from == rank)
    }

    fn gets(&self, rank: usize) -> bool {
        self.from != Some(rank) && self.to.is_none_or(|to| to == rank)
    }

    /// Returns the segment of a round, as positions in the whole array.
    fn segment(&self, round: usize, elements: usize) -> Range<usize> {
        let at = |round: usize| self.elements.end.min(self.elements.start + round * elements);
        at(round)..at(round + 1)
    }

    fn source(&self, segment: &Range<usize>) -> Span {
        input(if self.from.is_some() { self.within(segment) } else { segment.clone() })
    }

    fn target(&self, segment: &Range<usize>) -> Span {
        output(if self.to.is_some() { self.within(segment) } else { segment.clone() })
    }

    const fn within(&self, segment: &Range<usize>) -> Range<usize> {
        segment.start - self.elements.start..segment.end - self.elements.start
    }
}

fn flows(builder: &Builder) -> Vec<Flow> {
    let flow = |elements, from, to| Flow { elements, from, to };
    let (all, ranks) = (0..builder.elements, 0..builder.ranks);
    match builder.collective {
        Collective::ReduceScatter => ranks.map(|rank| flow(builder.part(rank), None, Some(rank))).collect(),
        Collective::AllGather => ranks.map(|rank| flow(builder.part(rank), Some(rank), None)).collect(),
        Collective::Broadcast { root } => vec![flow(all, Some(root), None)],
        Collective::Reduce { root } => vec![flow(all, None, Some(root))],
        _ => vec![flow(all, None, None)],
    }
}

/// Slots of one round of a unit, by flow.
#[derive(Clone, Debug)]
struct RoundSlots {
    /// Contributions by rank; of one rank in a flow without a reduction.
    contributions: Vec<Vec<Span>>,
    /// Results of reductions; the contribution in a flow without one.
    results: Vec<Span>,
}

fn round_slots(builder: &mut Builder, unit: usize, flows: &[Flow], elements: usize) -> RoundSlots {
    let ranks = builder.ranks;
    let (mut contributions, mut results) = (Vec::new(), Vec::new());
    for flow in flows {
        let length = flow.elements.len().min(elements);
        let givers = if flow.from.is_some() { 1 } else { ranks };
        let of_flow: Vec<_> = (0..givers).map(|_| builder.slot(unit, length)).collect();
        results.push(if flow.from.is_some() { of_flow[0] } else { builder.slot(unit, length) });
        contributions.push(of_flow);
    }
    RoundSlots { contributions, results }
}

/// Returns the beginning of a slot.
const fn begin(slot: Span, length: usize) -> Span {
    Span { length, ..slot }
}

fn lay_out_in(builder: &mut Builder, sizes: Slots) {
    let flows = flows(builder);
    let units = builder.units();
    let rounds = flows.iter().map(|flow| flow.elements.len().div_ceil(sizes.elements)).max().unwrap_or(0);
    let window = sizes.rounds * units.len();
    let passes_on = flows.iter().any(|flow| flow.from.is_some());
    let depth = if passes_on { 2 * sizes.rounds } else { sizes.rounds };
    let slots: Vec<Vec<RoundSlots>> = units
        .clone()
        .enumerate()
        .map(|(number, unit)| {
            let of_unit = (rounds + units.len() - 1 - number) / units.len();
            (0..depth.min(of_unit)).map(|_| round_slots(builder, unit, &flows, sizes.elements)).collect()
        })
        .collect();
    let mut results: Vec<Vec<Vec<Sent>>> = Vec::with_capacity(rounds);
    for round in 0..rounds + window {
        let number = round % units.len();
        let of_unit = &slots[number];
        let of_round = (round < rounds).then(|| Round {
            number: round,
            unit: units.start + number,
            flows: &flows,
            slots: &of_unit[round / units.len() % of_unit.len()],
            elements: sizes.elements,
        });
        let mut contributions = Vec::new();
        for rank in 0..builder.ranks {
            builder.step(rank, round);
            let arrived = round.checked_sub(window).and_then(|before| results.get(before));
            arrived
                .into_iter()
                .flat_map(|of_ranks| &of_ranks[rank])
                .for_each(|sent| builder.wait(rank, *sent));
            contributions.extend(of_round.as_ref().map(|of_round| of_round.contribute(builder, rank)));
        }
        results.extend(of_round.map(|of_round| of_round.work(builder, contributions)));
    }
    keep_own_elements(builder, &flows, rounds + window);
}

/// One round, which is the work of one unit.
struct Round<'a> {
    number: usize,
    unit: usize,
    flows: &'a [Flow],
    slots: &'a RoundSlots,
    elements: usize,
}

impl Round<'_> {
    /// Sends what a rank gives in this round.
    fn contribute(&self, builder: &mut Builder, rank: usize) -> Vec<Sent> {
        let mut sent = Vec::new();
        for (flow, slots) in self.flows.iter().zip(&self.slots.contributions) {
            let segment = flow.segment(self.number, self.elements);
            if flow.gives(rank) && !segment.is_empty() {
                let slot = slots[if flow.from.is_some() { 0 } else { rank }];
                sent.push(builder.send(rank, self.unit, flow.source(&segment), begin(slot, segment.len())));
            }
        }
        if sent.is_empty() {
            sent.push(builder.signal(rank, self.unit));
        }
        sent
    }

    /// Waits for all contributions, folds them, and sends the results. Returns the transfers by receiver.
    fn work(&self, builder: &mut Builder, contributions: Vec<Vec<Sent>>) -> Vec<Vec<Sent>> {
        builder.step(self.unit, self.number);
        contributions.into_iter().flatten().for_each(|sent| builder.wait(self.unit, sent));
        for (index, flow) in self.flows.iter().enumerate().filter(|(_, flow)| flow.from.is_none()) {
            let length = flow.segment(self.number, self.elements).len();
            let operands: Vec<_> =
                self.slots.contributions[index].iter().map(|slot| begin(*slot, length)).collect();
            builder.fold(self.unit, &operands, begin(self.slots.results[index], length));
        }
        (0..builder.ranks).map(|rank| self.answer(builder, rank)).collect()
    }

    /// Sends what a rank gets in this round.
    fn answer(&self, builder: &mut Builder, rank: usize) -> Vec<Sent> {
        let mut sent = Vec::new();
        for (flow, slot) in self.flows.iter().zip(&self.slots.results) {
            let segment = flow.segment(self.number, self.elements);
            if flow.gets(rank) && !segment.is_empty() {
                sent.push(builder.send(self.unit, rank, begin(*slot, segment.len()), flow.target(&segment)));
            }
        }
        if sent.is_empty() {
            sent.push(builder.signal(self.unit, rank));
        }
        sent
    }
}

/// Copies what a rank gives to all into its own result.
fn keep_own_elements(builder: &mut Builder, flows: &[Flow], round: usize) {
    for flow in flows {
        if let Some(rank) = flow.from {
            builder.step(rank, round);
            builder.copy(rank, flow.source(&flow.elements), flow.target(&flow.elements));
        }
    }
}

#[cfg(test)]
mod tests {
    use core::num::NonZeroUsize;

    use super::*;
    use crate::algorithm::{Algorithm, Request};
    use crate::schedule::{Schedule, Step};
    use crate::verify::{Finding, verify};

    const DONE: [Collective; 5] = [
        Collective::AllReduce,
        Collective::ReduceScatter,
        Collective::AllGather,
        Collective::Broadcast { root: 1 },
        Collective::Reduce { root: 1 },
    ];

    fn schedule(
        collective: Collective,
        ranks: usize,
        units: usize,
        elements: usize,
        sizes: Slots,
    ) -> Schedule {
        of_parts(&Request { collective, ranks, elements, servers: &[], parts: &[] }, units, sizes)
    }

    fn of_parts(request: &Request<'_>, units: usize, sizes: Slots) -> Schedule {
        let algorithm = Algorithm::InSwitch { switches: NonZeroUsize::new(units).unwrap() };
        let mut builder = Builder::new(request);
        builder.add_units(units);
        lay_out_in(&mut builder, sizes);
        builder.finish(algorithm)
    }

    fn assert_proved(schedule: &Schedule) {
        let report = verify(schedule).unwrap_or_else(|findings| {
            let (what, ranks, elements) = (schedule.collective, schedule.ranks(), schedule.elements);
            panic!("{what} of {elements} elements, {ranks} ranks: {findings:?}")
        });
        assert!(report.keeps_rank_order, "{}", schedule.collective);
    }

    #[test]
    fn slots_that_are_used_again_are_proved() {
        for ranks in 2..=5 {
            for units in 1..=3 {
                for (elements, rounds) in [(1, 1), (3, 1), (2, 2), (1, 3)] {
                    for array in [0, 1, ranks - 1, ranks, 7, 4 * ranks + 1, 40] {
                        for collective in DONE {
                            let sizes = Slots { elements, rounds };
                            assert_proved(&schedule(collective, ranks, units, array, sizes));
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn parts_of_any_length_are_proved() {
        for parts in [[0, 30, 0], [1, 0, 17], [9, 9, 1], [0, 0, 0]] {
            for collective in [Collective::AllGather, Collective::ReduceScatter] {
                let request = Request {
                    collective,
                    ranks: 3,
                    elements: parts.iter().sum(),
                    servers: &[],
                    parts: &parts,
                };
                assert_proved(&of_parts(&request, 2, Slots { elements: 2, rounds: 2 }));
            }
        }
    }

    /// One slot too few, or a rank that does not wait, would let a contribution overwrite another one.
    #[test]
    fn a_rank_that_does_not_wait_races() {
        for collective in DONE {
            let mut schedule = schedule(collective, 3, 1, 40, Slots { elements: 2, rounds: 2 });
            let giver = 1;
            let steps = &mut schedule.programs[giver].steps;
            let late = steps.iter_mut().flat_map(|step| std::mem::take(&mut step.waits)).collect();
            steps.push(Step { waits: late, ..Step::default() });
            let findings = verify(&schedule).unwrap_err();
            assert!(
                findings.iter().any(|one| matches!(one, Finding::Race { .. })),
                "{collective}: {findings:?}"
            );
        }
    }

    #[test]
    fn memory_of_a_unit_does_not_grow_with_the_array() {
        let sizes = Slots { elements: 4, rounds: 2 };
        for collective in DONE {
            let scratch =
                |elements| schedule(collective, 3, 1, elements, sizes).programs.last().unwrap().scratch;
            assert_eq!(scratch(1000), scratch(2000), "{collective}");
        }
        let all_reduce = schedule(Collective::AllReduce, 3, 1, 1000, sizes);
        assert_eq!(all_reduce.programs[3].scratch, 2 * (3 + 1) * 4);
    }

    #[test]
    fn each_rank_of_an_all_reduce_sends_and_receives_the_array_once() {
        let schedule = schedule(Collective::AllReduce, 4, 2, 1000, Slots { elements: 7, rounds: 3 });
        let traffic = crate::traffic::traffic(&schedule, 1);
        for rank in 0..4 {
            assert_eq!((traffic.sent(rank).bytes, traffic.received(rank).bytes), (1000, 1000));
        }
        let of_units = [4, 5].map(|unit| traffic.received(unit).bytes);
        assert_eq!(of_units, [4 * 503, 4 * 497], "72 and 71 rounds of 7 elements, the last one of 6");
    }
}
