//! Collectives that run many times with the same arguments.

use std::sync::Arc;

use rackloom_collectives::execute::Arithmetic;
use rackloom_collectives::{Collective, ElementType, ReduceOperation};

use super::slices::SliceArguments;
use crate::fabric::error::Error;
use crate::fabric::group::Group;
use crate::fabric::group::request::GroupRequest;
use crate::fabric::group::schedules::Prepared;
use crate::fabric::group::shared::Inner;
use crate::fabric::memory::region::Slice;
use crate::fabric::node::Node;

/// Collective of slices whose arguments are checked and whose schedules are made once. [`Group::persistent`] makes it.
///
/// `Send` and `Sync`. It keeps node and region of the group.
#[derive(Debug)]
pub struct PersistentCollective {
    group: Arc<Inner>,
    /// Keeps the node.
    _node: Node,
    arguments: SliceArguments,
    prepared: Arc<Prepared>,
}

impl PersistentCollective {
    /// Returns a request for one run, as [`Group::on_slices`] does. All members begin it at this place of the order of their collectives.
    ///
    /// # Errors
    /// Those of [`GroupRequest::wait`].
    pub fn request(&self) -> GroupRequest<'static> {
        let call = self.arguments.call().map(|call| call.with_prepared(Arc::clone(&self.prepared)));
        GroupRequest::new(&self.group, call)
    }
}

impl Group {
    /// Prepares a collective that runs many times on the same slices. The arguments are those of [`Group::on_slices`]. It sends nothing: members
    /// need not prepare collectives in the same order.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the slices do not fit the group or belong to another node.
    pub fn persistent(
        &self,
        collective: Collective,
        operation: ReduceOperation,
        element: ElementType,
        input: &Slice,
        output: &Slice,
    ) -> Result<PersistentCollective, Error> {
        let arguments =
            self.slice_arguments(collective, Arithmetic::Number(operation, element), input, output)?;
        let prepared = Arc::new(arguments.call()?.prepare(&self.inner)?);
        let (group, node) = (Arc::clone(&self.inner), self.node.clone());
        Ok(PersistentCollective { group, _node: node, arguments, prepared })
    }
}
