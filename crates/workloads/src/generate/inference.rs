//! Inference with tensor parallelism: the prompts at once, then one token after the other.
//!
//! The time of a token is mostly that of memory: all parameters and the keys and values of all earlier tokens are read. Source: Pope
//! et al., "Efficiently scaling transformer inference", 2022, section 2.

use rackloom_collectives::CollectiveKind::AllReduce;

use crate::generate::degrees::Degrees;
use crate::generate::groups::Groups;
use crate::generate::list::List;
use crate::generate::model::{Model, Part};
use crate::generate::refused::{Refused, within_time};
use crate::machine::Machine;
use crate::model::{RankOperations, Work, Workload};

/// Returns the forward pass of all prompts: `batch` sequences of `sequence` tokens. The vocabulary is applied to the last token of
/// each sequence. Phase: `prefill`.
///
/// # Errors
///
/// Returns the number that is out of range.
pub fn prefill(model: &Model, machine: &Machine, tensor: u32) -> Result<Workload, Refused> {
    inference(model, machine, tensor, 1, "prefill", |list, pass| pass.tokens(list, model.tokens(), 0))
}

/// Returns the forward passes of `tokens` tokens of each of `batch` sequences, one after the other, behind prompts of `sequence`
/// tokens. Phase: `decode`.
///
/// # Errors
///
/// Returns the number that is out of range.
pub fn decode(model: &Model, machine: &Machine, tensor: u32, tokens: u32) -> Result<Workload, Refused> {
    inference(model, machine, tensor, tokens, "decode", |list, pass| {
        for token in 0..u64::from(tokens) {
            let context = u64::from(model.sequence) + token;
            pass.tokens(list, u64::from(model.batch), pass.cache_bytes(context));
        }
    })
}

/// Returns a workload in which each rank performs the operations that `add` adds. `passes` bounds their number.
fn inference(
    model: &Model,
    machine: &Machine,
    tensor: u32,
    passes: u32,
    phase: &str,
    add: impl Fn(&mut List, &Pass<'_>),
) -> Result<Workload, Refused> {
    let degrees = Degrees { tensor, micro_batches: passes, ..Degrees::default() };
    model.check(machine)?;
    degrees.check(model)?;
    let groups = Groups::new(&degrees)?;
    let group = groups.tensor.as_ref().and_then(|members| members.first().copied());
    let pass = Pass { model, machine, tensor, group };
    let mut list = List::default();
    add(&mut list, &pass);
    let operations: RankOperations = list.finish();
    within_time(Workload {
        name: format!("{phase} tp{tensor}"),
        phases: vec![phase.to_owned()],
        groups: groups.list,
        // All ranks are in one group and do the same.
        ranks: vec![operations; tensor as usize],
    })
}

/// Forward pass through all layers.
struct Pass<'p> {
    model: &'p Model,
    machine: &'p Machine,
    tensor: u32,
    group: Option<u16>,
}

impl Pass<'_> {
    /// Adds a pass of some tokens. `cache_bytes` are read by attention in each layer.
    fn tokens(&self, list: &mut List, tokens: u64, cache_bytes: u64) {
        let state = self.model.state_bytes(tokens, self.machine);
        for _ in 0..self.model.layers {
            for (part, more_bytes) in [(Part::Attention, cache_bytes), (Part::Perceptron, 0)] {
                list.then(self.work(part, tokens, more_bytes));
                list.collective(self.group, AllReduce, state);
            }
        }
        if self.model.vocabulary > 0 {
            list.then(self.work(Part::Vocabulary, u64::from(self.model.batch), 0));
        }
    }

    fn work(&self, part: Part, tokens: u64, more_bytes: u64) -> Work {
        self.model.part(part, self.tensor).forward(tokens, more_bytes, self.machine)
    }

    /// Returns the bytes of the keys and values of one layer on one rank, for `context` earlier tokens of each sequence.
    fn cache_bytes(&self, context: u64) -> u64 {
        let state = self.model.state_bytes(context * u64::from(self.model.batch), self.machine);
        state.saturating_mul(2).div_ceil(u64::from(self.tensor))
    }
}
