//! Collectives of slices of the node's regions.

use std::sync::Arc;

use rackloom_collectives::{Collective, ElementType, ReduceOperation};

use crate::fabric::error::{Error, Invalid};
use crate::fabric::group::Group;
use crate::fabric::group::arithmetic::Arithmetic;
use crate::fabric::group::data::{Data, Input, Output};
use crate::fabric::group::request::{Call, GroupRequest};
use crate::fabric::memory::region::Slice;

impl Group {
    /// Runs any collective on slices of this node's regions. Such a call can be submitted to a queue: see [`GroupRequest::submit`].
    ///
    /// The root is named by its rank. `input` and `output` have the lengths of the other methods. An all-reduce, a reduce or a broadcast may
    /// have one slice for both. A slice that the member does not use may be empty. The bytes must not be accessed until the call has ended.
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
        let members = self.members().len();
        if collective.root().is_some_and(|root| root >= members) {
            return self.request(Err(Error::Invalid(Invalid::RootNotMember)));
        }
        let is_ours =
            |slice: &Slice| Arc::ptr_eq(slice.region.engine(), self.inner.membership.region.engine());
        if !is_ours(input) || !is_ours(output) {
            return self.request(Err(Error::Invalid(Invalid::OtherNode)));
        }
        // A schedule with one element per part has the number of rows that a member gives and gets.
        let (gives, gets) = (
            collective.input_elements(self.rank(), members, members),
            collective.output_elements(self.rank(), members, members),
        );
        let whole = matches!(
            collective,
            Collective::AllReduce | Collective::Reduce { .. } | Collective::Broadcast { .. }
        );
        let rows = |elements: usize| if whole { elements / members } else { elements };
        let (input_rows, output_rows) = (rows(gives), rows(gets));
        let row = |slice: &Slice, rows: usize| (slice.range.length as usize).checked_div(rows);
        let row_bytes = row(input, input_rows).or_else(|| row(output, output_rows)).unwrap_or(0);
        if !row_bytes.is_multiple_of(element.bytes()) {
            return self.request(Err(Error::Invalid(Invalid::PartialElement)));
        }
        let (input, output) = (Input::Slice(input.clone()), Output::Slice(output.clone()));
        let data = Data { input, output, input_rows, output_rows, row_bytes };
        let arithmetic = Arithmetic { operation, element };
        let whole_rows = if whole { 1 } else { members };
        self.request(data.check().map(|data| Call::new(collective, arithmetic, data).with_rows(whole_rows)))
    }
}
