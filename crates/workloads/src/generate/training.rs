//! One training step with any combination of data, tensor, pipeline and expert parallelism.
//!
//! Tensor parallelism reduces the hidden state behind attention and behind the perceptron, in both directions. Source: Shoeybi et
//! al., "Megatron-LM", 2019, section 3. Expert parallelism exchanges tokens before and behind the perceptron, in both directions;
//! each token goes to one expert. Source: Fedus, Zoph, Shazeer, "Switch transformers", 2021, section 2. Stages of a pipeline send
//! the hidden state forward and its gradient backward. Behind the backward pass of each layer of the last micro-batch, its
//! gradients are reduced while earlier layers are computed. Source: Li et al., "PyTorch distributed", VLDB 2020, section 3.2.

use rackloom_collectives::CollectiveKind::{AllReduce, AllToAll};

use crate::generate::degrees::{Degrees, Position};
use crate::generate::groups::{Groups, Members};
use crate::generate::list::List;
use crate::generate::model::{Model, Part};
use crate::generate::refused::{Refused, within_time};
use crate::generate::schedule::Pass;
use crate::machine::Machine;
use crate::model::{RankOperations, Work, Workload};

const FORWARD: u16 = 0;
const BACKWARD: u16 = 1;
const GRADIENTS: u16 = 2;
/// Tags of messages between stages.
const STATE: u32 = 0;
const GRADIENT: u32 = 1;

/// Returns one training step. Phases: `forward`, `backward`, `gradients`.
///
/// # Errors
///
/// Returns the number that is out of range.
pub fn training(model: &Model, machine: &Machine, degrees: &Degrees) -> Result<Workload, Refused> {
    model.check(machine)?;
    degrees.check(model)?;
    let groups = Groups::new(degrees)?;
    let step = Step { model, machine, degrees, groups: &groups };
    let ranks = (0..degrees.ranks() as u32).map(|rank| step.rank(rank)).collect();
    let Degrees { data, tensor, pipeline, expert, .. } = degrees;
    within_time(Workload {
        name: format!("training dp{data} tp{tensor} pp{pipeline} ep{expert}"),
        phases: ["forward", "backward", "gradients"].map(str::to_owned).to_vec(),
        groups: groups.list,
        ranks,
    })
}

struct Step<'s> {
    model: &'s Model,
    machine: &'s Machine,
    degrees: &'s Degrees,
    groups: &'s Groups,
}

impl Step<'_> {
    fn rank(&self, rank: u32) -> RankOperations {
        let position = self.degrees.position(rank);
        let Degrees { pipeline, micro_batches, schedule, .. } = *self.degrees;
        let mut stage = Stage { step: self, rank: rank as usize, position, list: List::default() };
        for pass in schedule.passes(position.pipeline, pipeline, micro_batches) {
            match pass {
                Pass::Forward => stage.forward(),
                Pass::Backward { is_last } => stage.backward(is_last),
            }
        }
        stage.list.finish()
    }

    fn state_bytes(&self) -> u64 {
        self.model.state_bytes(self.model.tokens(), self.machine)
    }
}

/// Stage of one rank.
struct Stage<'s> {
    step: &'s Step<'s>,
    rank: usize,
    position: Position,
    list: List,
}

impl Stage<'_> {
    fn forward(&mut self) {
        self.list.begin(FORWARD);
        let mut from = self.neighbour(false).map(|from| self.receive(from, STATE));
        for _ in 0..self.layers() {
            self.compute(Part::Attention, self.forward_work(Part::Attention), from.take());
            self.compute(Part::Perceptron, self.forward_work(Part::Perceptron), None);
        }
        match self.neighbour(true) {
            Some(next) => self.send(next, STATE),
            None => self.vocabulary(self.forward_work(Part::Vocabulary)),
        }
    }

    fn backward(&mut self, is_last: bool) {
        self.list.begin(BACKWARD);
        let mut from = self.neighbour(true).map(|from| self.receive(from, GRADIENT));
        if from.is_none() {
            self.vocabulary(self.backward_work(Part::Vocabulary));
            if is_last && self.step.model.vocabulary > 0 {
                let groups = self.step.groups;
                self.reduce(&groups.shared, &[Part::Vocabulary]);
            }
        }
        for _ in 0..self.layers() {
            self.compute(Part::Perceptron, self.backward_work(Part::Perceptron), from.take());
            self.compute(Part::Attention, self.backward_work(Part::Attention), None);
            if is_last {
                self.gradients();
            }
        }
        if let Some(previous) = self.neighbour(false) {
            self.send(previous, GRADIENT);
        }
    }

    /// Adds the computation of a part with the exchanges around it.
    fn compute(&mut self, part: Part, work: Work, from: Option<Work>) {
        let bytes = self.step.state_bytes();
        let tensor = self.group(&self.step.groups.tensor);
        let expert = self.group(&self.step.groups.expert).filter(|_| part == Part::Perceptron);
        let exchange = expert.map(|group| Work::Collective { group, kind: AllToAll, bytes, root: 0 });
        let (first, second) = exchange.map_or((work, None), |exchange| (exchange, Some(work)));
        match from {
            Some(receive) => self.list.receive(receive, first),
            None => self.list.then(first),
        }
        second.into_iter().for_each(|work| self.list.then(work));
        self.list.collective(tensor, AllReduce, bytes);
        self.list.collective(expert, AllToAll, bytes);
    }

    fn vocabulary(&mut self, work: Work) {
        if self.step.model.vocabulary > 0 {
            self.list.then(work);
        }
    }

    /// Reduces the gradients of one layer.
    fn gradients(&mut self) {
        let groups = self.step.groups;
        if self.step.degrees.expert > 1 {
            self.reduce(&groups.shared, &[Part::Attention]);
            self.reduce(&groups.experts, &[Part::Perceptron]);
        } else {
            self.reduce(&groups.shared, &[Part::Attention, Part::Perceptron]);
        }
    }

    /// Reduces gradients of some parts beside the chain.
    fn reduce(&mut self, members: &Option<Members>, parts: &[Part]) {
        let Step { model, machine, degrees, .. } = *self.step;
        let parameters: u64 = parts.iter().map(|part| model.part(*part, degrees.tensor).parameters).sum();
        let group = self.group(members);
        self.list.collective_beside(GRADIENTS, group, AllReduce, parameters * machine.element_bytes);
    }

    fn forward_work(&self, part: Part) -> Work {
        let Step { model, machine, degrees, .. } = *self.step;
        model.part(part, degrees.tensor).forward(model.tokens(), 0, machine)
    }

    fn backward_work(&self, part: Part) -> Work {
        let Step { model, machine, degrees, .. } = *self.step;
        model.part(part, degrees.tensor).backward(model.tokens(), machine)
    }

    fn layers(&self) -> u32 {
        self.step.degrees.layers(self.step.model, self.position.pipeline)
    }

    fn group(&self, members: &Option<Members>) -> Option<u16> {
        members.as_ref().map(|members| members[self.rank])
    }

    /// Returns the rank of the next or previous stage with the same position in the other dimensions.
    fn neighbour(&self, is_next: bool) -> Option<u16> {
        let stage = self.position.pipeline;
        let stage = if is_next { Some(stage + 1) } else { stage.checked_sub(1) };
        let stage = stage.filter(|stage| *stage < self.step.degrees.pipeline)?;
        Some(self.step.degrees.rank(Position { pipeline: stage, ..self.position }) as u16)
    }

    fn send(&mut self, to: u16, tag: u32) {
        let phase = if tag == STATE { FORWARD } else { BACKWARD };
        self.list.beside(phase, Work::Send { to, bytes: self.step.state_bytes(), tag });
    }

    fn receive(&self, from: u16, tag: u32) -> Work {
        Work::Receive { from, bytes: self.step.state_bytes(), tag }
    }
}
