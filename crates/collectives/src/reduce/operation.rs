//! Operations of reductions by name, and the reasons why nothing is reduced.

use core::str::FromStr;

use thiserror::Error;

use crate::array::ElementType;
use crate::named::named;

named! {
    /// Operation that combines two values. The names are those of NCCL.
    #[non_exhaustive]
    pub enum ReduceOperation {
        /// Addition.
        Sum = "sum",
        /// The lesser.
        Min = "min",
        /// The greater.
        Max = "max",
        /// Multiplication.
        Product = "prod",
    }
}

/// Error: no operation has this name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown reduction \"{0}\"; hint: one of sum, min, max, prod")]
pub struct UnknownReduceOperation(pub String);

impl FromStr for ReduceOperation {
    type Err = UnknownReduceOperation;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::from_name(name).ok_or_else(|| UnknownReduceOperation(name.to_owned()))
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
    /// A reduction of the caller failed.
    #[error(
        "the reduction of the caller panicked; hint: it returns for any values, and for any number of elements"
    )]
    Panicked,
}
