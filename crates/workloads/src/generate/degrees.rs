//! Division of a training step among ranks in four dimensions.
//!
//! Neighbouring ranks are in one tensor-parallel group, because those exchange most; the order is tensor, expert, data, pipeline,
//! like in Megatron-LM. Ranks of an expert-parallel group process different tokens, like those of a data-parallel group.

use crate::generate::model::Model;
use crate::generate::refused::Refused;
use crate::generate::schedule::Schedule;
use crate::model::{OPERATIONS_MAX, RANKS_MAX};

/// Number of ranks in each dimension, and of micro-batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Degrees {
    /// Replicas of the model, which process different tokens.
    pub data: u32,
    /// Ranks that divide each matrix.
    pub tensor: u32,
    /// Stages of consecutive layers.
    pub pipeline: u32,
    /// Experts of each layer, one per rank of a group. Each token goes to one expert.
    pub expert: u32,
    /// Micro-batches of one step.
    pub micro_batches: u32,
    /// Order of the micro-batches in a stage.
    pub schedule: Schedule,
}

impl Default for Degrees {
    /// Returns one rank and one micro-batch.
    fn default() -> Self {
        let schedule = Schedule::OneForwardOneBackward;
        Self { data: 1, tensor: 1, pipeline: 1, expert: 1, micro_batches: 1, schedule }
    }
}

/// Position of a rank in each dimension, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Position in the tensor-parallel group.
    pub tensor: u32,
    /// Position in the expert-parallel group.
    pub expert: u32,
    /// Number of the replica.
    pub data: u32,
    /// Stage.
    pub pipeline: u32,
}

impl Degrees {
    /// Returns the number of ranks.
    #[must_use]
    pub fn ranks(&self) -> u64 {
        [self.tensor, self.expert, self.data, self.pipeline]
            .into_iter()
            .map(u64::from)
            .fold(1, u64::saturating_mul)
    }

    /// Returns the position of a rank below [`Degrees::ranks`].
    #[must_use]
    pub const fn position(&self, rank: u32) -> Position {
        let replica = rank / self.tensor;
        let group = replica / self.expert;
        Position {
            tensor: rank % self.tensor,
            expert: replica % self.expert,
            data: group % self.data,
            pipeline: group / self.data,
        }
    }

    /// Returns the rank at a position.
    #[must_use]
    pub const fn rank(&self, position: Position) -> u32 {
        let group = position.data + self.data * position.pipeline;
        position.tensor + self.tensor * (position.expert + self.expert * group)
    }

    /// Returns the number of layers of a stage. Earlier stages have one more if the division has a remainder.
    pub(super) const fn layers(&self, model: &Model, stage: u32) -> u32 {
        model.layers / self.pipeline + (stage < model.layers % self.pipeline) as u32
    }

    /// Checks that the degrees fit the model and each other.
    pub(super) fn check(&self, model: &Model) -> Result<(), Refused> {
        let degrees = [
            ("data", self.data),
            ("tensor", self.tensor),
            ("pipeline", self.pipeline),
            ("expert", self.expert),
            ("micro-batches", self.micro_batches),
        ];
        if let Some((name, _)) = degrees.iter().find(|(_, degree)| *degree == 0) {
            return Err(Refused::new(format!("{name} is 0"), "write 1 if the step is not divided this way"));
        }
        if self.ranks() > RANKS_MAX as u64 {
            let reason = format!("the degrees make {} ranks", self.ranks());
            return Err(Refused::new(reason, format!("their product is at most {RANKS_MAX}")));
        }
        if self.pipeline > model.layers {
            let reason = format!("{} stages share {} layers", self.pipeline, model.layers);
            return Err(Refused::new(reason, "a stage has at least one layer"));
        }
        if self.tensor > model.hidden {
            let reason = format!("{} ranks share a width of {}", self.tensor, model.hidden);
            return Err(Refused::new(reason, "a rank has at least one column"));
        }
        self.check_size(model)
    }

    /// Compares the number of operations with the bound of a workload.
    fn check_size(&self, model: &Model) -> Result<(), Refused> {
        // Of a layer and micro-batch in both directions: 4 computations, 4 reductions, 4 exchanges. Of a micro-batch: 4 messages
        // and 2 computations of the vocabulary. Of a layer: 2 gradients.
        let layers = u64::from(self.layers(model, 0));
        let chunk = 12 * layers + 6;
        let operations = u64::from(self.micro_batches).saturating_mul(chunk).saturating_add(2 * layers + 1);
        if operations.saturating_mul(self.ranks()) > OPERATIONS_MAX as u64 {
            let reason = format!("{} ranks perform up to {operations} operations each", self.ranks());
            let hint =
                format!("at most {OPERATIONS_MAX} are generated; use fewer layers, micro-batches or ranks");
            return Err(Refused::new(reason, hint));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_in_one_tensor_parallel_group() {
        let degrees = Degrees { data: 2, tensor: 4, pipeline: 3, expert: 5, ..Degrees::default() };
        assert_eq!(degrees.ranks(), 120);
        assert_eq!(degrees.position(0), Position { tensor: 0, expert: 0, data: 0, pipeline: 0 });
        assert_eq!(degrees.position(5), Position { tensor: 1, expert: 1, data: 0, pipeline: 0 });
        assert_eq!(degrees.position(20), Position { tensor: 0, expert: 0, data: 1, pipeline: 0 });
        assert_eq!(degrees.position(119), Position { tensor: 3, expert: 4, data: 1, pipeline: 2 });
        for rank in 0..120 {
            assert_eq!(degrees.rank(degrees.position(rank)), rank);
        }
    }

    #[test]
    fn layers_are_divided_as_evenly_as_possible() {
        let model = Model { layers: 8, hidden: 1, sequence: 1, batch: 1, vocabulary: 0 };
        let degrees = Degrees { pipeline: 3, ..Degrees::default() };
        assert_eq!([0, 1, 2].map(|stage| degrees.layers(&model, stage)), [3, 3, 2]);
    }
}
