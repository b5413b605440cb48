//! Collectives of arrays of the caller, with parts of equal length.

use rackloom_collectives::Collective;
use rackloom_collectives::execute::Arithmetic;
use rackloom_protocol::NodeId;

use super::reduction::Reducer;
use crate::fabric::error::{Error, Invalid};
use crate::fabric::group::Group;
use crate::fabric::group::arithmetic::MOVED;
use crate::fabric::group::data::Data;
use crate::fabric::group::request::{Call, GroupRequest};
use crate::fabric::memory::element::Element;

impl Group {
    /// Completes when every member has called it as often as this one.
    ///
    /// # Errors
    /// Those of [`GroupRequest::wait`].
    pub fn barrier(&self) -> GroupRequest<'static> {
        self.request(Ok(Call::new(Collective::Barrier, MOVED, Data::none())))
    }

    /// Replaces `values` by the element-wise reduction of all members' `values`. All have one length.
    ///
    /// # Errors
    /// Those of [`GroupRequest::wait`].
    pub fn all_reduce<'a, T: Element>(
        &self,
        values: &'a mut [T],
        reducer: impl Reducer<T>,
    ) -> GroupRequest<'a> {
        let data = Data::whole(values, true, true);
        self.whole(Collective::AllReduce, reducer.arithmetic(), data)
    }

    /// Replaces `values` at the root by the element-wise reduction of all members' `values`. Other members' `values` stay unchanged.
    ///
    /// # Errors
    /// Those of [`GroupRequest::wait`]; [`Error::Invalid`] if the root is not a member.
    pub fn reduce<'a, T: Element>(
        &self,
        values: &'a mut [T],
        reducer: impl Reducer<T>,
        root: NodeId,
    ) -> GroupRequest<'a> {
        self.request(self.root(root).and_then(|root| {
            let data = Data::whole(values, true, root == self.rank());
            Ok(Call::new(Collective::Reduce { root }, reducer.arithmetic(), data.check()?))
        }))
    }

    /// Replaces `values` by those of the root. All have one length.
    ///
    /// # Errors
    /// Those of [`GroupRequest::wait`]; [`Error::Invalid`] if the root is not a member.
    pub fn broadcast<'a, T: Element>(&self, values: &'a mut [T], root: NodeId) -> GroupRequest<'a> {
        self.request(self.root(root).and_then(|root| {
            let data = Data::whole(values, root == self.rank(), true);
            Ok(Call::new(Collective::Broadcast { root }, MOVED, data.check()?))
        }))
    }

    /// Replaces `values` by the element-wise reduction of the `values` of the members up to this one, in rank order: an inclusive scan.
    ///
    /// # Errors
    /// Those of [`GroupRequest::wait`].
    pub fn scan<'a, T: Element>(&self, values: &'a mut [T], reducer: impl Reducer<T>) -> GroupRequest<'a> {
        self.whole(Collective::Scan, reducer.arithmetic(), Data::whole(values, true, true))
    }

    /// Replaces `values` by the element-wise reduction of the `values` of the members before this one, in rank order. At rank 0 `values` stay
    /// unchanged.
    ///
    /// # Errors
    /// Those of [`GroupRequest::wait`].
    pub fn exclusive_scan<'a, T: Element>(
        &self,
        values: &'a mut [T],
        reducer: impl Reducer<T>,
    ) -> GroupRequest<'a> {
        let data = Data::whole(values, true, self.rank() > 0);
        self.whole(Collective::ExclusiveScan, reducer.arithmetic(), data)
    }

    /// Fills `output` with the inputs of all members in rank order. Each input has the length of `output` divided by the number of members.
    ///
    /// # Errors
    /// Those of [`GroupRequest::wait`].
    pub fn all_gather<'a, T: Element>(&self, input: &'a [T], output: &'a mut [T]) -> GroupRequest<'a> {
        let data = Data::between(input, output, 1, self.members().len(), size_of_val(input));
        self.parts(Collective::AllGather, MOVED, data)
    }

    /// Fills `output` with this member's part of the element-wise reduction of all inputs. An input has one part per member, in rank order,
    /// each as long as `output`.
    ///
    /// # Errors
    /// Those of [`GroupRequest::wait`].
    pub fn reduce_scatter<'a, T: Element>(
        &self,
        input: &'a [T],
        output: &'a mut [T],
        reducer: impl Reducer<T>,
    ) -> GroupRequest<'a> {
        let (members, row_bytes) = (self.members().len(), size_of_val(output));
        let data = Data::between(input, output, members, 1, row_bytes);
        self.parts(Collective::ReduceScatter, reducer.arithmetic(), data)
    }

    /// Fills part *p* of `output` with this member's part of the input of member *p*. Input and output have one part per member, in
    /// rank order. All parts have one length.
    ///
    /// # Errors
    /// Those of [`GroupRequest::wait`].
    pub fn all_to_all<'a, T: Element>(&self, input: &'a [T], output: &'a mut [T]) -> GroupRequest<'a> {
        let members = self.members().len();
        let row_bytes = input.len() / members * size_of::<T>();
        self.parts(Collective::AllToAll, MOVED, Data::between(input, output, members, members, row_bytes))
    }

    /// Fills `output` at the root with the inputs of all members in rank order. At other members `output` may be empty.
    ///
    /// # Errors
    /// Those of [`GroupRequest::wait`]; [`Error::Invalid`] if the root is not a member.
    pub fn gather<'a, T: Element>(
        &self,
        input: &'a [T],
        output: &'a mut [T],
        root: NodeId,
    ) -> GroupRequest<'a> {
        self.request(self.root(root).and_then(|root| {
            let output_rows = if root == self.rank() { self.members().len() } else { 0 };
            let data = Data::between(input, output, 1, output_rows, size_of_val(input));
            Ok(self.call(Collective::Gather { root }, MOVED, data.check()?))
        }))
    }

    /// Fills `output` with this member's part of the root's `input`, which has one part per member, each as long as `output`. At other
    /// members `input` may be empty.
    ///
    /// # Errors
    /// Those of [`GroupRequest::wait`]; [`Error::Invalid`] if the root is not a member.
    pub fn scatter<'a, T: Element>(
        &self,
        input: &'a [T],
        output: &'a mut [T],
        root: NodeId,
    ) -> GroupRequest<'a> {
        self.request(self.root(root).and_then(|root| {
            let input_rows = if root == self.rank() { self.members().len() } else { 0 };
            let row_bytes = size_of_val(output);
            let data = Data::between(input, output, input_rows, 1, row_bytes);
            Ok(self.call(Collective::Scatter { root }, MOVED, data.check()?))
        }))
    }

    /// Returns a request for a collective in which every member has the whole array.
    fn whole<'a>(&self, collective: Collective, arithmetic: Arithmetic, data: Data<'a>) -> GroupRequest<'a> {
        self.request(data.check().map(|data| Call::new(collective, arithmetic, data)))
    }

    /// Returns a request for a collective in which every member has a part.
    pub(super) fn parts<'a>(
        &self,
        collective: Collective,
        arithmetic: Arithmetic,
        data: Data<'a>,
    ) -> GroupRequest<'a> {
        self.request(data.check().map(|data| self.call(collective, arithmetic, data)))
    }

    pub(super) fn call<'a>(
        &self,
        collective: Collective,
        arithmetic: Arithmetic,
        data: Data<'a>,
    ) -> Call<'a> {
        Call::new(collective, arithmetic, data).with_rows(self.members().len())
    }

    pub(super) fn request<'a>(&self, call: Result<Call<'a>, Error>) -> GroupRequest<'a> {
        GroupRequest::new(&self.inner, call)
    }

    pub(super) fn root(&self, root: NodeId) -> Result<usize, Error> {
        let rank = self.members().iter().position(|member| *member == root);
        rank.ok_or(Error::Invalid(Invalid::RootNotMember))
    }
}
