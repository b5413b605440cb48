//! What the caller gives and takes: rows of equal length, moved through the staging a few columns at a time.
//!
//! The parts that members exchange are rows. An array that does not fit into the staging is cut into columns; each piece is a
//! collective of its own on the same columns of every row. Bytes are copied; an array of the caller's is never reached by
//! peers.

use std::ops::Range;

use super::super::error::Error;
use super::super::region::{Region, Slice};

/// Bytes that are moved between two regions at a time.
const CHUNK_BYTES: usize = 64 << 10;

/// What is given.
#[derive(Debug)]
pub(super) enum Input<'a> {
    /// It lies where the result goes.
    InPlace,
    Bytes(&'a [u8]),
    Slice(Slice),
}

/// Where the result goes.
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

/// The arrays of one call.
#[derive(Debug)]
pub(super) struct Data<'a> {
    pub(super) input: Input<'a>,
    pub(super) output: Output<'a>,
    pub(super) input_rows: usize,
    pub(super) output_rows: usize,
    pub(super) row_bytes: usize,
}

impl Data<'_> {
    /// No bytes at all.
    pub(super) fn none() -> Self {
        let (input, output) = (Input::InPlace, Output::Bytes(&mut []));
        Self { input, output, input_rows: 0, output_rows: 0, row_bytes: 0 }
    }

    /// Whether the arrays have the rows that are asked for.
    pub(super) fn check(self) -> Result<Self, Error> {
        let input = match &self.input {
            Input::InPlace => self.output.len(),
            Input::Bytes(bytes) => bytes.len(),
            Input::Slice(slice) => slice.range.length as usize,
        };
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
        for row in 0..self.input_rows {
            let at = place + (row * columns.len()) as u64;
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
            match &mut self.output {
                Output::Bytes(bytes) => region.read(at, &mut bytes[cells])?,
                Output::Slice(slice) => {
                    let to = slice.range.offset + cells.start as u64;
                    copy(region, at, &slice.region, to, cells.len())?;
                    // Whoever hears of the end may have a kernel look at it.
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

/// Copy bytes from region to region. Both may change under the hands of peers, so they pass through a place of one's own.
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
