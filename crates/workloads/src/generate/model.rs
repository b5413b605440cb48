//! Five numbers of a transformer, and the sizes that follow from them.
//!
//! A layer has 4 h² parameters in attention and 8 h² in its two-layer perceptron of width 4 h, 12 h² together; the vocabulary adds
//! V h once. Source: Narayanan et al., "Efficient large-scale language model training on GPU clusters using Megatron-LM", SC 2021,
//! equation 2, without its small terms (biases, normalisation, positions).
//!
//! A parameter costs 2 floating-point operations per token in the forward pass and 4 in the backward pass, 6 together. Source:
//! Kaplan et al., "Scaling laws for neural language models", 2020, section 2.1. The term of attention that grows with the sequence
//! is left out, as there; it is small while the sequence is shorter than 6 h.

use std::ops::RangeInclusive;

use crate::generate::refused::Refused;
use crate::machine::Machine;
use crate::model::Work;

/// Transformer that is trained, or that answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Model {
    /// Layers, 1 to 65536.
    pub layers: u32,
    /// Width of the hidden state in elements, 1 to 1048576.
    pub hidden: u32,
    /// Tokens of one sequence, 1 to 4194304.
    pub sequence: u32,
    /// Sequences of one micro-batch of a replica, 1 to 65536.
    pub batch: u32,
    /// Tokens of the vocabulary, up to 16777216. With 0 there is no matrix behind the last layer.
    pub vocabulary: u32,
}

/// Part of a layer that is computed at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Attention.
    Attention,
    /// Perceptron, or one expert.
    Perceptron,
    /// Matrix of the vocabulary, once behind the last layer.
    Vocabulary,
}

/// Part of a layer on one rank of a tensor-parallel group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    /// Parameters of the part on this rank.
    pub(super) parameters: u64,
    /// Width of the input and output of the part.
    hidden: u64,
}

impl Model {
    /// Returns the number of parameters of the whole model: 12 layers h² + vocabulary h.
    #[must_use]
    pub fn parameters(&self) -> u64 {
        let layer = self.part(Part::Attention, 1).parameters + self.part(Part::Perceptron, 1).parameters;
        u64::from(self.layers) * layer + self.part(Part::Vocabulary, 1).parameters
    }

    /// Returns the number of tokens of one micro-batch.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        u64::from(self.sequence) * u64::from(self.batch)
    }

    /// Returns a part on one of `tensor` ranks that divide it.
    pub(super) fn part(&self, part: Part, tensor: u32) -> Share {
        let hidden = u64::from(self.hidden);
        let parameters = match part {
            Part::Attention => 4 * hidden * hidden,
            Part::Perceptron => 8 * hidden * hidden,
            Part::Vocabulary => u64::from(self.vocabulary) * hidden,
        };
        Share { parameters: parameters.div_ceil(u64::from(tensor)), hidden }
    }

    /// Returns the bytes of the hidden state of some tokens.
    pub(super) fn state_bytes(&self, tokens: u64, machine: &Machine) -> u64 {
        tokens * u64::from(self.hidden) * machine.element_bytes
    }

    /// Names of the numbers and their ranges. No size exceeds 64 bits within them.
    pub const RANGES: [(&str, RangeInclusive<u32>); 5] = [
        ("layers", 1..=1 << 16),
        ("hidden", 1..=1 << 20),
        ("sequence", 1..=1 << 22),
        ("batch", 1..=1 << 16),
        ("vocabulary", 0..=1 << 24),
    ];

    /// Checks that all numbers are in range, and that the machine has rates.
    pub(super) fn check(&self, machine: &Machine) -> Result<(), Refused> {
        let values = [self.layers, self.hidden, self.sequence, self.batch, self.vocabulary];
        for ((name, range), value) in Self::RANGES.into_iter().zip(values) {
            if !range.contains(&value) {
                let advice = format!("write {} to {}", range.start(), range.end());
                return Err(Refused::new(format!("{name} is {value}"), advice));
            }
        }
        machine
            .check()
            .map_err(|name| Refused::new(format!("{name} is not above 0"), "state a rate or size"))?;
        if machine.element_bytes > 16 {
            let reason = format!("element_bytes is {}", machine.element_bytes);
            return Err(Refused::new(reason, "an element has 1 to 16 bytes"));
        }
        Ok(())
    }
}

impl Share {
    /// Returns the forward pass: 2 operations per parameter and token; parameters, input and output are moved once. `more_bytes` are
    /// moved in addition.
    pub(super) fn forward(self, tokens: u64, more_bytes: u64, machine: &Machine) -> Work {
        machine.compute(self.flops(tokens), self.moved(tokens, machine) + u128::from(more_bytes))
    }

    /// Returns the backward pass: twice the operations and bytes of the forward pass, for the gradients of the input and of the
    /// parameters.
    pub(super) fn backward(self, tokens: u64, machine: &Machine) -> Work {
        machine.compute(2 * self.flops(tokens), 2 * self.moved(tokens, machine))
    }

    fn flops(self, tokens: u64) -> u128 {
        2 * u128::from(self.parameters) * u128::from(tokens)
    }

    fn moved(self, tokens: u64, machine: &Machine) -> u128 {
        let state = 2 * u128::from(tokens) * u128::from(self.hidden);
        (u128::from(self.parameters) + state) * u128::from(machine.element_bytes)
    }
}
