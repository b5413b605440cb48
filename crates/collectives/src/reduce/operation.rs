//! Operations of reductions by name, and the reasons why nothing is reduced.

use core::fmt;
use core::str::FromStr;

use thiserror::Error;

use crate::array::ElementType;

/// Operation that combines two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReduceOperation {
    /// Addition.
    Sum,
    /// The lesser.
    Min,
    /// The greater.
    Max,
    /// Multiplication.
    Product,
}

impl ReduceOperation {
    /// Every operation.
    pub const ALL: [Self; 4] = [Self::Sum, Self::Min, Self::Max, Self::Product];

    /// Returns the name that options and reports use (as NCCL's).
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Min => "min",
            Self::Max => "max",
            Self::Product => "prod",
        }
    }
}

impl fmt::Display for ReduceOperation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// Error: no operation has this name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown reduction \"{0}\"; hint: one of sum, min, max, prod")]
pub struct UnknownReduceOperation(pub String);

impl FromStr for ReduceOperation {
    type Err = UnknownReduceOperation;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|operation| operation.name() == name)
            .ok_or_else(|| UnknownReduceOperation(name.to_owned()))
    }
}

/// Reason why nothing was reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ReduceError {
    /// The two sides differ in length.
    #[error("cannot reduce {operand} bytes into {accumulator}; hint: both sides have the same length")]
    Length {
        /// Bytes of the accumulator.
        accumulator: usize,
        /// Bytes of the operand.
        operand: usize,
    },
    /// The last element is cut.
    #[error("{bytes} bytes are no whole number of {element} elements; hint: one takes {} bytes", .element.bytes())]
    PartialElement {
        /// Length of both sides.
        bytes: usize,
        /// Type of the elements.
        element: ElementType,
    },
}
