//! Many operands into one result that is rounded once: `((a op b) op c) op ...`.
//!
//! A reduction of two 16-bit values must round its result to 16 bits, because the result has the type of the array. A
//! rank that holds all operands can do better: f16 and bf16 are converted to f32, stay f32 between the operations,
//! and are rounded to 16 bits when the result is taken. The other types keep no more than they have, so their bits
//! are those of one [`reduce`](super::reduce) after the other.
//!
//! The f32 operations themselves round, in the order of the operands: this is not an exact sum.

use super::{ReduceError, ReduceOperation, bf16, f16, reduce};
use crate::array::ElementType;

/// A reduction in progress; its buffer is reused for the next result.
#[derive(Debug)]
pub struct Accumulator {
    operation: ReduceOperation,
    element: ElementType,
    /// Value in the type of the computation.
    value: Vec<u8>,
    /// Operand in the type of the computation.
    operand: Vec<u8>,
    is_empty: bool,
}

impl Accumulator {
    /// Creates an empty accumulator.
    #[must_use]
    pub const fn new(operation: ReduceOperation, element: ElementType) -> Self {
        Self { operation, element, value: Vec::new(), operand: Vec::new(), is_empty: true }
    }

    /// Returns true if it keeps more of a value than the elements' type does. If not, reducing one operand after the
    /// other gives the same bits, without a copy here.
    #[must_use]
    pub fn is_wider(&self) -> bool {
        computed_in(self.element) != self.element
    }

    /// Takes the next operand.
    ///
    /// # Errors
    /// If it is not as long as the ones before, or no whole number of elements; nothing is changed then.
    pub fn take(&mut self, operand: &[u8]) -> Result<(), ReduceError> {
        if !operand.len().is_multiple_of(self.element.bytes()) {
            return Err(ReduceError::PartialElement { bytes: operand.len(), element: self.element });
        }
        let computed_in = computed_in(self.element);
        if self.is_empty {
            widen(self.element, operand, &mut self.value);
            self.is_empty = false;
            return Ok(());
        }
        if computed_in == self.element {
            return reduce(self.operation, computed_in, &mut self.value, operand);
        }
        let taken = self.value.len() / computed_in.bytes() * self.element.bytes();
        if taken != operand.len() {
            return Err(ReduceError::Length { accumulator: taken, operand: operand.len() });
        }
        widen(self.element, operand, &mut self.operand);
        reduce(self.operation, computed_in, &mut self.value, &self.operand)
    }

    /// Rounds the value into `out`, and empties the accumulator. A single operand is returned unchanged, except that a NaN
    /// of 16 bits loses its payload.
    ///
    /// # Errors
    /// If `out` is not as long as the operands; the operands stay then.
    pub fn finish(&mut self, out: &mut [u8]) -> Result<(), ReduceError> {
        let elements = self.value.len() / computed_in(self.element).bytes();
        let taken = if self.is_empty { 0 } else { elements * self.element.bytes() };
        if taken != out.len() {
            return Err(ReduceError::Length { accumulator: taken, operand: out.len() });
        }
        match self.element {
            ElementType::F16 => f16::narrow_all(&self.value[..elements * 4], out),
            ElementType::Bf16 => bf16::narrow_all(&self.value[..elements * 4], out),
            _ => out.copy_from_slice(&self.value[..taken]),
        }
        self.is_empty = true;
        Ok(())
    }
}

/// Returns the type between two operations.
const fn computed_in(element: ElementType) -> ElementType {
    match element {
        ElementType::F16 | ElementType::Bf16 => ElementType::F32,
        other => other,
    }
}

fn widen(element: ElementType, from: &[u8], to: &mut Vec<u8>) {
    to.resize(from.len() / element.bytes() * computed_in(element).bytes(), 0);
    match element {
        ElementType::F16 => f16::widen_all(from, to),
        ElementType::Bf16 => bf16::widen_all(from, to),
        _ => to.copy_from_slice(from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_f16(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|value| half::f16::from_f32(*value).to_le_bytes()).collect()
    }

    #[test]
    fn sixteen_bits_are_rounded_once_and_the_buffer_can_be_used_again() {
        let mut accumulator = Accumulator::new(ReduceOperation::Sum, ElementType::F16);
        for _ in 0..2 {
            accumulator.take(&of_f16(&[2048.0, 1.0, 60_000.0])).unwrap();
            for _ in 0..7 {
                accumulator.take(&of_f16(&[1.0, 1.0, 60_000.0])).unwrap();
            }
            let mut out = vec![0; 6];
            accumulator.finish(&mut out).unwrap();
            // 2055 is between 2054 and 2056, and the even neighbour is taken.
            assert_eq!(out, of_f16(&[2056.0, 8.0, f32::INFINITY]));
        }
    }

    #[test]
    fn an_overflow_only_between_two_operations_does_not_occur() {
        let mut accumulator = Accumulator::new(ReduceOperation::Sum, ElementType::F16);
        for value in [60_000.0, 60_000.0, -60_000.0] {
            accumulator.take(&of_f16(&[value])).unwrap();
        }
        let mut out = vec![0; 2];
        accumulator.finish(&mut out).unwrap();
        assert_eq!(out, of_f16(&[60_000.0]));
    }

    #[test]
    fn unfitting_lengths_are_refused_and_change_nothing() {
        for element in ElementType::ALL {
            let mut accumulator = Accumulator::new(ReduceOperation::Max, element);
            let bytes = element.bytes();
            accumulator.take(&vec![0; 4 * bytes]).unwrap();
            let length = ReduceError::Length { accumulator: 4 * bytes, operand: 2 * bytes };
            assert_eq!(accumulator.take(&vec![0; 2 * bytes]), Err(length));
            assert_eq!(accumulator.finish(&mut vec![0; 2 * bytes]), Err(length));
            assert_eq!(accumulator.finish(&mut vec![1; 4 * bytes]), Ok(()));
            assert!(accumulator.finish(&mut vec![1; 4 * bytes]).is_err(), "it is empty");
        }
        let mut accumulator = Accumulator::new(ReduceOperation::Sum, ElementType::F16);
        let cut = ReduceError::PartialElement { bytes: 3, element: ElementType::F16 };
        assert_eq!(accumulator.take(&[0; 3]), Err(cut));
    }
}
