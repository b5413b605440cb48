//! The caller's arrays: rows of equal length that are copied through the staging, a few columns at a time.
//!
//! Members exchange rows. An array that does not fit into the staging is cut into columns. Each piece is a collective of its own on the same
//! columns of every row. Bytes are copied: peers never access an array of the caller.

use std::ops::Range;

use super::super::error::{Error, Invalid};
use crate::fabric::memory::element::{Element, bytes_of, bytes_of_mut};
use crate::fabric::memory::region::{Region, Slice};

/// Number of bytes that are copied between two regions at a time.
const CHUNK_BYTES: usize = 64 << 10;

/// Input of a member.
#[derive(Debug)]
pub(super) enum Input<'a> {
    /// The input is in the output array.
    InPlace,
    Bytes(&'a [u8]),
    Slice(Slice),
}

/// Output of a member.
#[derive(Debug)]
pub(super) enum Output<'a> {
    Bytes(&'a mut [u8]),
    Slice(Slice),
}

impl Output<'_> {
    const fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Slice(slice) => slice.range.length as usize,
        }
    }
}

/// Arrays of one call.
#[derive(Debug)]
pub(super) struct Data<'a> {
    pub(super) input: Input<'a>,
    pub(super) output: Output<'a>,
    pub(super) input_rows: usize,
    pub(super) output_rows: usize,
    pub(super) row_bytes: usize,
}

impl Data<'_> {
    /// Returns empty arrays.
    pub(super) fn none() -> Self {
        let (input, output) = (Input::InPlace, Output::Bytes(&mut []));
        Self { input, output, input_rows: 0, output_rows: 0, row_bytes: 0 }
    }

    /// Checks that the arrays have enough bytes for their rows.
    pub(super) fn check(self) -> Result<Self, Error> {
        let input = match &self.input {
            Input::InPlace => self.output.len(),
            Input::Bytes(bytes) => bytes.len(),
            Input::Slice(slice) => slice.range.length as usize,
        };
        let needs = |rows: usize| rows.saturating_mul(self.row_bytes);
        if input < needs(self.input_rows) || self.output.len() < needs(self.output_rows) {
            return Err(Error::Invalid(Invalid::ArrayTooShort));
        }
        Ok(self)
    }

    /// Copies these columns of the input to offset `base`.
    pub(super) fn copy_in(&self, region: &Region, base: u64, columns: &Range<usize>) -> Result<(), Error> {
        for row in 0..self.input_rows {
            let at = base + (row * columns.len()) as u64;
            let cells = self.cells(row, columns);
            match (&self.input, &self.output) {
                (Input::Bytes(bytes), _) => region.write(at, &bytes[cells])?,
                (Input::InPlace, Output::Bytes(bytes)) => region.write(at, &bytes[cells])?,
                (Input::Slice(slice), _) | (Input::InPlace, Output::Slice(slice)) => {
                    let from = slice.range.offset + cells.start as u64;
                    copy(&slice.region, from, region, at, cells.len())?;
                }
            }
        }
        Ok(())
    }

    /// Copies the result of these columns from offset `base`.
    pub(super) fn copy_out(
        &mut self,
        region: &Region,
        base: u64,
        columns: &Range<usize>,
    ) -> Result<(), Error> {
        for row in 0..self.output_rows {
            let at = base + (row * columns.len()) as u64;
            let cells = self.cells(row, columns);
            match &mut self.output {
                Output::Bytes(bytes) => region.read(at, &mut bytes[cells])?,
                Output::Slice(slice) => {
                    let to = slice.range.offset + cells.start as u64;
                    copy(region, at, &slice.region, to, cells.len())?;
                    // The caller may start a kernel that reads the result as soon as the call has ended.
                    slice.region.settle()?;
                }
            }
        }
        Ok(())
    }

    const fn cells(&self, row: usize, columns: &Range<usize>) -> Range<usize> {
        let start = row * self.row_bytes;
        start + columns.start..start + columns.end
    }
}

impl<'a> Data<'a> {
    pub(super) fn within<T: Element>(values: &'a mut [T]) -> Self {
        let row_bytes = size_of_val(values);
        let (input, output) = (Input::InPlace, Output::Bytes(bytes_of_mut(values)));
        Self { input, output, input_rows: 0, output_rows: 0, row_bytes }
    }

    pub(super) fn between<T: Element>(
        input: &'a [T],
        output: &'a mut [T],
        input_rows: usize,
        output_rows: usize,
        row_bytes: usize,
    ) -> Self {
        let (input, output) = (Input::Bytes(bytes_of(input)), Output::Bytes(bytes_of_mut(output)));
        Self { input, output, input_rows, output_rows, row_bytes }
    }
}

/// Copies bytes from region to region. Peers may change both meanwhile, so the bytes pass through a buffer of this thread.
fn copy(from: &Region, from_offset: u64, to: &Region, to_offset: u64, length: usize) -> Result<(), Error> {
    if from.copy_on_device(from_offset, to, to_offset, length as u64)? {
        return Ok(());
    }
    let mut chunk = [0_u8; CHUNK_BYTES];
    for start in (0..length).step_by(CHUNK_BYTES) {
        let chunk = &mut chunk[..CHUNK_BYTES.min(length - start)];
        from.read(from_offset + start as u64, chunk)?;
        to.write(to_offset + start as u64, chunk)?;
    }
    Ok(())
}
