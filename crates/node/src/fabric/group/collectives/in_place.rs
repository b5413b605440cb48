//! Collectives with one array, in which each member's part is in its place already or ends there.
//!
//! All-reduce, reduce, broadcast and scans have one array in any case.

use rackloom_collectives::Collective;
use rackloom_protocol::NodeId;

use super::reduction::Reducer;
use crate::fabric::group::Group;
use crate::fabric::group::arithmetic::MOVED;
use crate::fabric::group::data::{Data, Rows};
use crate::fabric::group::request::GroupRequest;
use crate::fabric::memory::element::Element;

impl Group {
    /// Fills `values` with the parts of all members in rank order. Each member has its own part in its place. Parts have one length: that of
    /// `values` divided by the number of members.
    ///
    /// # Errors
    /// Those of [`GroupRequest::wait`].
    pub fn all_gather_in_place<'a, T: Element>(&self, values: &'a mut [T]) -> GroupRequest<'a> {
        let rows = self.rows(values);
        let own = rows.clone().only(self.rank());
        let row_bytes = self.row_bytes(values);
        self.parts(Collective::AllGather, MOVED, Data::within(values, own, rows, row_bytes))
    }

    /// Replaces this member's part of `values` by that of the element-wise reduction of all members' `values`. Other parts stay unchanged. Parts
    /// have one length: that of `values` divided by the number of members.
    ///
    /// # Errors
    /// Those of [`GroupRequest::wait`].
    pub fn reduce_scatter_in_place<'a, T: Element>(
        &self,
        values: &'a mut [T],
        reducer: impl Reducer<T>,
    ) -> GroupRequest<'a> {
        let rows = self.rows(values);
        let own = rows.clone().only(self.rank());
        let row_bytes = self.row_bytes(values);
        let data = Data::within(values, rows, own, row_bytes);
        self.parts(Collective::ReduceScatter, reducer.arithmetic(), data)
    }

    /// Replaces part *p* of `values` by this member's part of the `values` of member *p*. Parts have one length: that of `values` divided by the
    /// number of members.
    ///
    /// # Errors
    /// Those of [`GroupRequest::wait`].
    pub fn all_to_all_in_place<'a, T: Element>(&self, values: &'a mut [T]) -> GroupRequest<'a> {
        let (rows, row_bytes) = (self.rows(values), self.row_bytes(values));
        self.parts(Collective::AllToAll, MOVED, Data::within(values, rows.clone(), rows, row_bytes))
    }

    /// Fills `values` at the root with the parts of all members in rank order; the root has its own part in its place. At other members `values`
    /// is the part.
    ///
    /// # Errors
    /// Those of [`GroupRequest::wait`]; [`Error::Invalid`](crate::fabric::Error::Invalid) if the root is not a member.
    pub fn gather_in_place<'a, T: Element>(&self, values: &'a mut [T], root: NodeId) -> GroupRequest<'a> {
        self.request(self.root(root).and_then(|root| {
            Ok(self.call(Collective::Gather { root }, MOVED, self.rooted(values, root).check()?))
        }))
    }

    /// Gives each member its part of the root's `values`, in rank order; the root's own part stays in its place. At other members `values` is the
    /// part.
    ///
    /// # Errors
    /// Those of [`GroupRequest::wait`]; [`Error::Invalid`](crate::fabric::Error::Invalid) if the root is not a member.
    pub fn scatter_in_place<'a, T: Element>(&self, values: &'a mut [T], root: NodeId) -> GroupRequest<'a> {
        self.request(self.root(root).and_then(|root| {
            let data = self.rooted(values, root).reversed();
            Ok(self.call(Collective::Scatter { root }, MOVED, data.check()?))
        }))
    }

    /// Returns the arrays of a gather in place.
    fn rooted<'a, T: Element>(&self, values: &'a mut [T], root: usize) -> Data<'a> {
        if root == self.rank() {
            let (rows, row_bytes) = (self.rows(values), self.row_bytes(values));
            return Data::within(values, rows.clone().only(root), rows, row_bytes);
        }
        Data::whole(values, true, false)
    }

    fn rows<T: Element>(&self, values: &[T]) -> Rows {
        Rows::equal(self.members().len(), self.row_bytes(values))
    }

    /// Returns the length of a part in bytes.
    fn row_bytes<T: Element>(&self, values: &[T]) -> usize {
        values.len() / self.members().len() * size_of::<T>()
    }
}
