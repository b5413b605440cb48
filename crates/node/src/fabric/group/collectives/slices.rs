//! Collectives of slices of the node's regions.

use std::sync::Arc;

use rackloom_collectives::execute::Arithmetic;
use rackloom_collectives::{Collective, ElementType, ReduceOperation};

use crate::fabric::error::{Error, Invalid};
use crate::fabric::group::Group;
use crate::fabric::group::data::{Data, Input, Output, Rows};
use crate::fabric::group::request::{Call, GroupRequest};
use crate::fabric::memory::region::Slice;

/// Arguments of a collective of slices.
#[derive(Debug)]
pub(super) struct SliceArguments {
    collective: Collective,
    arithmetic: Arithmetic,
    input: Slice,
    output: Slice,
    input_rows: Rows,
    output_rows: Rows,
    row_bytes: usize,
    /// Number of rows of the whole array, of which members get parts.
    whole_rows: usize,
}

impl SliceArguments {
    /// Returns a call with these arguments.
    pub(super) fn call(&self) -> Result<Call<'static>, Error> {
        let data = Data {
            input: Input::Slice(self.input.clone()),
            output: Output::Slice(self.output.clone()),
            input_rows: self.input_rows.clone(),
            output_rows: self.output_rows.clone(),
            row_bytes: self.row_bytes,
        };
        let call = Call::new(self.collective, self.arithmetic.clone(), data.check()?);
        Ok(call.with_rows(self.whole_rows))
    }
}

impl Group {
    /// Runs any collective on slices of this node's regions. Such a call can be submitted to a queue: see [`GroupRequest::submit`].
    ///
    /// The root is named by its rank. `input` and `output` have the lengths of the other methods. An all-reduce, a reduce, a broadcast or a scan
    /// may have one slice for both. A slice that the member does not use may be empty. The bytes must not be accessed until the call has ended.
    ///
    /// # Errors
    /// Those of [`GroupRequest::wait`]; [`Error::Invalid`] if a slice belongs to another node.
    pub fn on_slices(
        &self,
        collective: Collective,
        operation: ReduceOperation,
        element: ElementType,
        input: &Slice,
        output: &Slice,
    ) -> GroupRequest<'static> {
        let arguments =
            self.slice_arguments(collective, Arithmetic::Number(operation, element), input, output);
        self.request(arguments.and_then(|arguments| arguments.call()))
    }

    /// Checks the arguments of a collective of slices.
    pub(super) fn slice_arguments(
        &self,
        collective: Collective,
        arithmetic: Arithmetic,
        input: &Slice,
        output: &Slice,
    ) -> Result<SliceArguments, Error> {
        let members = self.members().len();
        if collective.root().is_some_and(|root| root >= members) {
            return Err(Error::Invalid(Invalid::RootNotMember));
        }
        let is_ours =
            |slice: &Slice| Arc::ptr_eq(slice.region.engine(), self.inner.membership.memory.words.engine());
        if !is_ours(input) || !is_ours(output) {
            return Err(Error::Invalid(Invalid::OtherNode));
        }
        // A schedule with one element per part has the number of rows that a member gives and gets.
        let (gives, gets) = (
            collective.input_elements(self.rank(), members, members),
            collective.output_elements(self.rank(), members, members),
        );
        let is_whole = !collective.has_parts();
        let rows = |elements: usize| if is_whole { elements / members } else { elements };
        let (gives, gets) = (rows(gives), rows(gets));
        let row = |slice: &Slice, rows: usize| (slice.range.length as usize).checked_div(rows);
        let row_bytes = row(input, gives).or_else(|| row(output, gets)).unwrap_or(0);
        if !row_bytes.is_multiple_of(arithmetic.element_bytes()) {
            return Err(Error::Invalid(Invalid::PartialElement));
        }
        Ok(SliceArguments {
            collective,
            arithmetic,
            input: input.clone(),
            output: output.clone(),
            input_rows: Rows::equal(gives, row_bytes),
            output_rows: Rows::equal(gets, row_bytes),
            row_bytes,
            whole_rows: if is_whole { 1 } else { members },
        })
    }
}
