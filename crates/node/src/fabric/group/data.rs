//! What the caller gives and takes: rows of equal length, moved through the staging a few columns at a time.
//!
//! The parts that members exchange are rows. An array that does not fit into the staging is cut into columns; each piece is a
//! collective of its own on the same columns of every row. Bytes are copied; an array of the caller's is never reached by
//! peers.

use std::ops::Range;

use super::super::error::Error;
use super::super::region::Region;

/// The arrays of one call.
#[derive(Debug)]
pub(super) struct Data<'a> {
    /// What is given; `None`: it lies where the result goes.
    pub(super) input: Option<&'a [u8]>,
    pub(super) output: &'a mut [u8],
    pub(super) input_rows: usize,
    pub(super) output_rows: usize,
    pub(super) row_bytes: usize,
}

impl Data<'_> {
    /// No bytes at all.
    pub(super) fn none() -> Self {
        Self { input: None, output: &mut [], input_rows: 0, output_rows: 0, row_bytes: 0 }
    }

    /// Whether the arrays have the rows that are asked for.
    pub(super) fn check(self) -> Result<Self, Error> {
        let input = self.input.map_or(self.output.len(), <[u8]>::len);
        let needs = |rows: usize| rows.saturating_mul(self.row_bytes);
        if input < needs(self.input_rows) || self.output.len() < needs(self.output_rows) {
            return Err(Error::Invalid(
                "an array is too short for the collective; hint: one part per member, all of one length",
            ));
        }
        Ok(self)
    }

    /// Copy these columns of what is given to `place`.
    pub(super) fn copy_in(&self, region: &Region, place: u64, columns: &Range<usize>) -> Result<(), Error> {
        let input = self.input.unwrap_or(self.output);
        for row in 0..self.input_rows {
            let at = place + (row * columns.len()) as u64;
            region.write(at, &input[self.cells(row, columns)])?;
        }
        Ok(())
    }

    /// Copy the result of these columns from `place`.
    pub(super) fn copy_out(
        &mut self,
        region: &Region,
        place: u64,
        columns: &Range<usize>,
    ) -> Result<(), Error> {
        for row in 0..self.output_rows {
            let at = place + (row * columns.len()) as u64;
            let cells = self.cells(row, columns);
            region.read(at, &mut self.output[cells])?;
        }
        Ok(())
    }

    const fn cells(&self, row: usize, columns: &Range<usize>) -> Range<usize> {
        let start = row * self.row_bytes;
        start + columns.start..start + columns.end
    }
}
