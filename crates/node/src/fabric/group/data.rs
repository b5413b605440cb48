//! The caller's arrays: rows that are copied through the staging, a few columns at a time.
//!
//! Members exchange rows. An array that does not fit into the staging is cut into columns. Each piece is a collective of its own on the same
//! columns of every row; a short row has none of the later columns. Peers never access an array of the caller: they write to the staging. Input is
//! read where it is if it is one range ([`Data::source`]).

use std::ops::Range;

use super::super::error::{Error, Invalid};
use crate::fabric::memory::element::{Element, bytes_of, bytes_of_mut};
use crate::fabric::memory::region::{Region, Slice};

/// Number of bytes that are copied between two regions at a time.
const CHUNK_BYTES: usize = 64 << 10;

/// Place of the input of a run.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source<'d> {
    /// It was copied to the staging.
    Staging,
    /// Array of the caller. What is put is copied to the staging before.
    Array(&'d [u8]),
    /// Region of this node, from this offset.
    Region(&'d Region, u64),
}

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

/// Rows of an array, one after the other, and those of them that the member gives or gets.
#[derive(Clone, Debug)]
pub(super) struct Rows {
    lengths: Lengths,
    used: Range<usize>,
}

#[derive(Clone, Debug)]
enum Lengths {
    /// Length of each row in bytes.
    Equal(usize),
    /// Start of each row in bytes, and the end of the last one.
    Listed(Vec<usize>),
}

impl Rows {
    /// Returns `count` rows of equal length.
    pub(super) const fn equal(count: usize, row_bytes: usize) -> Self {
        Self { lengths: Lengths::Equal(row_bytes), used: 0..count }
    }

    /// Returns rows of these lengths in bytes.
    pub(super) fn listed(lengths: impl Iterator<Item = usize>) -> Self {
        let mut starts = vec![0_usize];
        for length in lengths {
            starts.push(starts[starts.len() - 1].saturating_add(length));
        }
        let used = 0..starts.len() - 1;
        Self { lengths: Lengths::Listed(starts), used }
    }

    /// Returns the array of which the member gives or gets only this row.
    pub(super) fn only(self, row: usize) -> Self {
        Self { used: row..row + 1, ..self }
    }

    /// Returns a row, as positions in the array.
    fn row(&self, row: usize) -> Range<usize> {
        match &self.lengths {
            Lengths::Equal(row_bytes) => row.saturating_mul(*row_bytes)..(row + 1).saturating_mul(*row_bytes),
            Lengths::Listed(starts) => starts[row]..starts[row + 1],
        }
    }

    /// Returns the length that the array needs for the rows that are used.
    fn needed_bytes(&self) -> usize {
        if self.used.is_empty() { 0 } else { self.row(self.used.end - 1).end }
    }

    /// Returns the cells of these columns, row by row, as positions in the array. Cells follow each other without a gap in the staging.
    fn cells(&self, columns: &Range<usize>) -> impl Iterator<Item = Range<usize>> {
        self.used.clone().map(|row| {
            let row = self.row(row);
            let at = |column: usize| row.start + column.min(row.len());
            at(columns.start)..at(columns.end)
        })
    }
}

/// Arrays of one call.
#[derive(Debug)]
pub(super) struct Data<'a> {
    pub(super) input: Input<'a>,
    pub(super) output: Output<'a>,
    pub(super) input_rows: Rows,
    pub(super) output_rows: Rows,
    /// Length of the longest row of all members.
    pub(super) row_bytes: usize,
}

impl Data<'_> {
    /// Returns empty arrays.
    pub(super) fn none() -> Self {
        let (input, output) = (Input::InPlace, Output::Bytes(&mut []));
        let none = Rows::equal(0, 0);
        Self { input, output, input_rows: none.clone(), output_rows: none, row_bytes: 0 }
    }

    /// Checks that the arrays have enough bytes for their rows.
    pub(super) fn check(self) -> Result<Self, Error> {
        let input = match &self.input {
            Input::InPlace => self.output.len(),
            Input::Bytes(bytes) => bytes.len(),
            Input::Slice(slice) => slice.range.length as usize,
        };
        let output = self.output.len();
        if input < self.input_rows.needed_bytes() || output < self.output_rows.needed_bytes() {
            return Err(Error::Invalid(Invalid::ArrayTooShort));
        }
        Ok(self)
    }

    /// Returns the place of these columns of the input, if they are one range that `staging`'s memory can be combined with.
    pub(super) fn source(&self, staging: &Region, columns: &Range<usize>) -> Source<'_> {
        let mut cells = self.input_rows.cells(columns).filter(|cells| !cells.is_empty());
        let Some(first) = cells.next() else { return Source::Staging };
        let end = cells.try_fold(first.end, |end, cells| (cells.start == end).then_some(cells.end));
        let Some(end) = end else { return Source::Staging };
        match (&self.input, &self.output) {
            (Input::Bytes(bytes), _) if staging.is_on_host() => Source::Array(&bytes[first.start..end]),
            (Input::InPlace, Output::Bytes(bytes)) if staging.is_on_host() => {
                Source::Array(&bytes[first.start..end])
            }
            (Input::Slice(slice), _) | (Input::InPlace, Output::Slice(slice))
                if staging.is_beside(&slice.region) =>
            {
                Source::Region(&slice.region, slice.range.offset + first.start as u64)
            }
            _ => Source::Staging,
        }
    }

    /// Copies these columns of the input to offset `base`.
    pub(super) fn copy_in(&self, region: &Region, base: u64, columns: &Range<usize>) -> Result<(), Error> {
        let mut at = base;
        for cells in self.input_rows.cells(columns) {
            let length = cells.len();
            match (&self.input, &self.output) {
                (Input::Bytes(bytes), _) => region.write(at, &bytes[cells])?,
                (Input::InPlace, Output::Bytes(bytes)) => region.write(at, &bytes[cells])?,
                (Input::Slice(slice), _) | (Input::InPlace, Output::Slice(slice)) => {
                    let from = slice.range.offset + cells.start as u64;
                    copy(&slice.region, from, region, at, length)?;
                }
            }
            at += length as u64;
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
        let mut at = base;
        for cells in self.output_rows.cells(columns) {
            let length = cells.len();
            match &mut self.output {
                Output::Bytes(bytes) => region.read(at, &mut bytes[cells])?,
                Output::Slice(slice) => {
                    let to = slice.range.offset + cells.start as u64;
                    copy(region, at, &slice.region, to, length)?;
                    // The caller may start a kernel that reads the result as soon as the call has ended.
                    slice.region.settle()?;
                }
            }
            at += length as u64;
        }
        Ok(())
    }
}

impl<'a> Data<'a> {
    /// Returns one array for input and output, which is one row. `gives`: it is the input; `gets`: it is the output.
    pub(super) fn whole<T: Element>(values: &'a mut [T], gives: bool, gets: bool) -> Self {
        let row_bytes = size_of_val(values);
        let rows = |is_used: bool| Rows::equal(usize::from(is_used), row_bytes);
        Self::within(values, rows(gives), rows(gets), row_bytes)
    }

    /// Returns one array for input and output.
    pub(super) fn within<T: Element>(
        values: &'a mut [T],
        input_rows: Rows,
        output_rows: Rows,
        row_bytes: usize,
    ) -> Self {
        let (input, output) = (Input::InPlace, Output::Bytes(bytes_of_mut(values)));
        Self { input, output, input_rows, output_rows, row_bytes }
    }

    /// Returns the arrays with the rows that the member gives and those that it gets exchanged.
    pub(super) fn reversed(self) -> Self {
        Self { input_rows: self.output_rows, output_rows: self.input_rows, ..self }
    }

    /// Returns two arrays with rows of equal length.
    pub(super) fn between<T: Element>(
        input: &'a [T],
        output: &'a mut [T],
        gives: usize,
        gets: usize,
        row_bytes: usize,
    ) -> Self {
        let (gives, gets) = (Rows::equal(gives, row_bytes), Rows::equal(gets, row_bytes));
        Self::between_rows(input, output, gives, gets, row_bytes)
    }

    /// Returns two arrays.
    pub(super) fn between_rows<T: Element>(
        input: &'a [T],
        output: &'a mut [T],
        input_rows: Rows,
        output_rows: Rows,
        row_bytes: usize,
    ) -> Self {
        let (input, output) = (Input::Bytes(bytes_of(input)), Output::Bytes(bytes_of_mut(output)));
        Self { input, output, input_rows, output_rows, row_bytes }
    }
}

/// Copies bytes from region to region.
fn copy(from: &Region, from_offset: u64, to: &Region, to_offset: u64, length: usize) -> Result<(), Error> {
    if to.copy_from(to_offset, from, from_offset, length)? {
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
