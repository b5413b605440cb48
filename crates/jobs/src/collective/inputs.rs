//! Input data of each rank: the user's arrays, or values that every rank can derive from the seed.
//!
//! Every rank can read every rank's input, because the check of a result needs them all. Derived floating-point values
//! have full mantissas and similar exponents. So a sum in another order has different bits, and no value absorbs the
//! others.

use std::fmt;
use std::sync::Arc;

use rackloom_collectives::{ElementType, ReduceOperation};

use crate::ranks::pattern::Pattern;

const PURPOSE: u64 = 0x696e_7075_7473;

/// Arrays of the user, one per rank, as bytes in row order, little endian.
pub trait Arrays: Send + Sync {
    /// Returns the type of the elements, which is the same in all arrays.
    fn element(&self) -> ElementType;
    /// Returns the length of a rank's array in bytes.
    fn bytes(&self, rank: usize) -> u64;
    /// Copies bytes out of a rank's array.
    ///
    /// # Errors
    /// Text of the reason for which they cannot be read.
    fn read(&self, rank: usize, offset: u64, out: &mut [u8]) -> Result<(), String>;
}

/// Arrays that are held in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldArrays {
    /// Type of the elements.
    pub element: ElementType,
    /// Bytes of the arrays, by rank.
    pub bytes: Vec<Vec<u8>>,
}

impl Arrays for HeldArrays {
    fn element(&self) -> ElementType {
        self.element
    }

    fn bytes(&self, rank: usize) -> u64 {
        self.bytes.get(rank).map_or(0, |array| array.len() as u64)
    }

    fn read(&self, rank: usize, offset: u64, out: &mut [u8]) -> Result<(), String> {
        let array = self.bytes.get(rank).map_or(&[][..], Vec::as_slice);
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let bytes = start.checked_add(out.len()).and_then(|end| array.get(start..end));
        let Some(bytes) = bytes else {
            return Err(format!("the array of rank {rank} has {} bytes", array.len()));
        };
        out.copy_from_slice(bytes);
        Ok(())
    }
}

/// Source of the inputs.
#[derive(Clone, Default)]
pub enum Inputs {
    /// Values derived from the seed.
    #[default]
    Pattern,
    /// Arrays of the user.
    Arrays(Arc<dyn Arrays>),
}

impl fmt::Debug for Inputs {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Pattern => "Pattern",
            Self::Arrays(_) => "Arrays",
        })
    }
}

/// The inputs of all ranks of one job.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    pub(crate) inputs: Inputs,
    /// Ranks whose inputs are used, by rank of the group. Empty if every rank gives its own.
    pub(crate) members: Vec<u16>,
    pub(crate) seed: u64,
    pub(crate) element: ElementType,
    pub(crate) operation: ReduceOperation,
}

impl Given {
    /// Reads bytes of a rank's input from `offset` on. `offset` and length are multiples of the element's size.
    pub(crate) fn read(&self, rank: usize, offset: u64, out: &mut [u8]) -> Result<(), String> {
        let rank = self.members.get(rank).map_or(rank, |member| usize::from(*member));
        match &self.inputs {
            Inputs::Arrays(arrays) => arrays.read(rank, offset, out),
            Inputs::Pattern => {
                Pattern::new(self.seed, &[PURPOSE, rank as u64]).fill(offset, out);
                make_reducible(self.element, self.operation, out);
                Ok(())
            }
        }
    }
}

/// Converts arbitrary bytes into values that are suitable for reductions.
fn make_reducible(element: ElementType, operation: ReduceOperation, bytes: &mut [u8]) {
    match element {
        ElementType::F32 => each(bytes, |word| {
            let bits = u32::from_le_bytes(word);
            ((bits & 0x807f_ffff) | ((125 + (bits >> 23 & 3)) << 23)).to_le_bytes()
        }),
        ElementType::F64 => each(bytes, |word| {
            let bits = u64::from_le_bytes(word);
            ((bits & 0x800f_ffff_ffff_ffff) | ((1021 + (bits >> 52 & 3)) << 52)).to_le_bytes()
        }),
        ElementType::F16 => each(bytes, |word| {
            let bits = u16::from_le_bytes(word);
            ((bits & 0x83ff) | ((13 + (bits >> 10 & 3)) << 10)).to_le_bytes()
        }),
        ElementType::Bf16 => each(bytes, |word| {
            let bits = u16::from_le_bytes(word);
            ((bits & 0x807f) | ((125 + (bits >> 7 & 3)) << 7)).to_le_bytes()
        }),
        // A product of even numbers soon becomes zero and hides errors.
        ElementType::I32 | ElementType::I64 | ElementType::U8 if operation == ReduceOperation::Product => {
            bytes.iter_mut().step_by(element.bytes()).for_each(|byte| *byte |= 1);
        }
        ElementType::I32 | ElementType::I64 | ElementType::U8 => {}
    }
}

fn each<const BYTES: usize>(bytes: &mut [u8], change: impl Fn([u8; BYTES]) -> [u8; BYTES]) {
    bytes.as_chunks_mut().0.iter_mut().for_each(|word| *word = change(*word));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(element: ElementType, operation: ReduceOperation) -> Given {
        Given { inputs: Inputs::Pattern, members: Vec::new(), seed: 5, element, operation }
    }

    fn bytes(given: &Given, rank: usize, offset: u64, length: usize) -> Vec<u8> {
        let mut out = vec![0; length];
        given.read(rank, offset, &mut out).unwrap();
        out
    }

    #[test]
    fn any_part_agrees_with_the_whole_and_ranks_differ() {
        for element in ElementType::ALL {
            let given = given(element, ReduceOperation::Sum);
            let whole = bytes(&given, 3, 0, 4096);
            for start in [8, 1000, 4088] {
                assert_eq!(bytes(&given, 3, start as u64, 8), whole[start..start + 8], "{element}");
            }
            assert_ne!(whole, bytes(&given, 2, 0, 4096), "{element}");
        }
    }

    #[test]
    fn floats_are_finite_and_neither_tiny_nor_huge() {
        let singles = bytes(&given(ElementType::F32, ReduceOperation::Sum), 0, 0, 40_000);
        for word in singles.as_chunks().0 {
            let value = f32::from_le_bytes(*word).abs();
            assert!((0.25..4.0).contains(&value), "{value}");
        }
        let doubles = bytes(&given(ElementType::F64, ReduceOperation::Sum), 0, 0, 40_000);
        for word in doubles.as_chunks().0 {
            let value = f64::from_le_bytes(*word).abs();
            assert!((0.25..4.0).contains(&value), "{value}");
        }
    }

    #[test]
    fn factors_are_odd() {
        for element in [ElementType::U8, ElementType::I32, ElementType::I64] {
            let factors = bytes(&given(element, ReduceOperation::Product), 1, 0, 800);
            assert!(factors.iter().step_by(element.bytes()).all(|byte| byte % 2 == 1));
        }
    }

    #[test]
    fn a_read_beyond_a_users_array_is_an_error() {
        let arrays = HeldArrays { element: ElementType::U8, bytes: vec![vec![1, 2, 3]] };
        assert_eq!(arrays.read(0, 1, &mut [0; 2]), Ok(()));
        assert!(arrays.read(0, 2, &mut [0; 2]).is_err() && arrays.read(0, u64::MAX, &mut [0]).is_err());
        assert!(arrays.read(1, 0, &mut [0]).is_err());
    }
}
