//! Collectives whose parts have different lengths.
//!
//! All members give the same list of lengths, in elements. Parts may be empty, and follow each other in the arrays without gaps.

use rackloom_collectives::Collective;
use rackloom_collectives::execute::Arithmetic;
use rackloom_protocol::NodeId;

use super::reduction::Reducer;
use crate::fabric::error::{Error, Invalid};
use crate::fabric::group::Group;
use crate::fabric::group::arithmetic::MOVED;
use crate::fabric::group::data::{Data, Rows};
use crate::fabric::group::request::{Call, GroupRequest};
use crate::fabric::memory::element::Element;

impl Group {
    /// Fills `output` with the inputs of all members in rank order. The input of rank *r* has `counts[r]` elements.
    ///
    /// # Errors
    /// Those of [`GroupRequest::wait`]; [`Error::Invalid`] if `counts` does not have one length for each member.
    pub fn all_gather_v<'a, T: Element>(
        &self,
        input: &'a [T],
        output: &'a mut [T],
        counts: &[usize],
    ) -> GroupRequest<'a> {
        self.unequal_parts::<T>(Ok(Collective::AllGather), MOVED, counts, |own, all, longest| {
            Data::between_rows(input, output, own, all, longest)
        })
    }

    /// Fills `output` with this member's part of the element-wise reduction of all inputs. An input has a part of `counts[r]` elements for each
    /// rank *r*, in rank order.
    ///
    /// # Errors
    /// Those of [`GroupRequest::wait`]; [`Error::Invalid`] if `counts` does not have one length for each member.
    pub fn reduce_scatter_v<'a, T: Element>(
        &self,
        input: &'a [T],
        output: &'a mut [T],
        counts: &[usize],
        reducer: impl Reducer<T>,
    ) -> GroupRequest<'a> {
        let arithmetic = reducer.arithmetic();
        self.unequal_parts::<T>(Ok(Collective::ReduceScatter), arithmetic, counts, |own, all, longest| {
            Data::between_rows(input, output, all, own, longest)
        })
    }

    /// Fills `output` at the root with the inputs of all members in rank order. The input of rank *r* has `counts[r]` elements. At other members
    /// `output` may be empty.
    ///
    /// # Errors
    /// Those of [`GroupRequest::wait`]; [`Error::Invalid`] if the root is not a member, or `counts` does not have one length for each member.
    pub fn gather_v<'a, T: Element>(
        &self,
        input: &'a [T],
        output: &'a mut [T],
        counts: &[usize],
        root: NodeId,
    ) -> GroupRequest<'a> {
        let collective = self.root(root).map(|root| Collective::Gather { root });
        self.unequal_parts::<T>(collective, MOVED, counts, |own, all, longest| {
            Data::between_rows(input, output, own, all, longest)
        })
    }

    /// Fills `output` with this member's part of the root's `input`, which has a part of `counts[r]` elements for each rank *r*, in rank order. At
    /// other members `input` may be empty.
    ///
    /// # Errors
    /// Those of [`GroupRequest::wait`]; [`Error::Invalid`] if the root is not a member, or `counts` does not have one length for each member.
    pub fn scatter_v<'a, T: Element>(
        &self,
        input: &'a [T],
        output: &'a mut [T],
        counts: &[usize],
        root: NodeId,
    ) -> GroupRequest<'a> {
        let collective = self.root(root).map(|root| Collective::Scatter { root });
        self.unequal_parts::<T>(collective, MOVED, counts, |own, all, longest| {
            Data::between_rows(input, output, all, own, longest)
        })
    }

    /// Fills `output` with this member's parts of all inputs, in the order of their senders. `counts` has a row for each sender, in rank order:
    /// element `s * members + r` is the number of elements that rank *s* sends to rank *r*. Members that know only their own row get the others by
    /// [`Group::all_gather`].
    ///
    /// # Errors
    /// Those of [`GroupRequest::wait`]; [`Error::Invalid`] if `counts` does not have one length for each pair of members.
    pub fn all_to_all_v<'a, T: Element>(
        &self,
        input: &'a [T],
        output: &'a mut [T],
        counts: &[usize],
    ) -> GroupRequest<'a> {
        let (rank, members) = (self.rank(), self.members().len());
        if counts.len() != members * members {
            return self.request(Err(Error::Invalid(Invalid::PartCount)));
        }
        let sent = rows::<T>(&counts[rank * members..(rank + 1) * members]);
        let received =
            Rows::listed(counts.iter().skip(rank).step_by(members).map(|count| bytes::<T>(*count)));
        let data = Data::between_rows(input, output, sent, received, longest::<T>(counts));
        self.request(unequal::<T>(Collective::AllToAll, MOVED, data, counts))
    }

    /// Returns a request for a collective with one part for each member. `data` makes the arrays of the member's own row, of all rows, which only
    /// the root has if there is one, and of the length of the longest row.
    fn unequal_parts<'a, T: Element>(
        &self,
        collective: Result<Collective, Error>,
        arithmetic: Arithmetic,
        counts: &[usize],
        data: impl FnOnce(Rows, Rows, usize) -> Data<'a>,
    ) -> GroupRequest<'a> {
        let rank = self.rank();
        self.request(collective.and_then(|collective| {
            if counts.len() != self.members().len() {
                return Err(Error::Invalid(Invalid::PartCount));
            }
            let has_all = collective.root().is_none_or(|root| root == rank);
            let all = if has_all { rows::<T>(counts) } else { Rows::equal(0, 0) };
            let own = rows::<T>(&counts[rank..=rank]);
            unequal::<T>(collective, arithmetic, data(own, all, longest::<T>(counts)), counts)
        }))
    }
}

/// Returns a call with parts of `counts` elements of type `T`.
fn unequal<'a, T>(
    collective: Collective,
    arithmetic: Arithmetic,
    data: Data<'a>,
    counts: &[usize],
) -> Result<Call<'a>, Error> {
    let data = data.check()?;
    // A collective that only moves bytes counts bytes.
    let unit = size_of::<T>() / arithmetic.element_bytes();
    let parts = counts.iter().map(|count| count.saturating_mul(unit)).collect();
    Ok(Call::new(collective, arithmetic, data).with_parts(parts))
}

fn rows<T>(counts: &[usize]) -> Rows {
    Rows::listed(counts.iter().map(|count| bytes::<T>(*count)))
}

/// Returns the length of the longest part in bytes.
fn longest<T>(counts: &[usize]) -> usize {
    bytes::<T>(counts.iter().copied().max().unwrap_or(0))
}

const fn bytes<T>(count: usize) -> usize {
    count.saturating_mul(size_of::<T>())
}
