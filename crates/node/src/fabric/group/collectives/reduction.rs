//! Reductions of collectives: those that the fabric knows, and those of the caller.

use std::fmt;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use rackloom_collectives::execute::{Arithmetic, CustomReduction};
use rackloom_collectives::{ReduceError, ReduceOperation};

use crate::fabric::memory::element::{Element, Number, with_values};

pub(super) mod sealed {
    use super::Arithmetic;

    pub trait Reduces<T> {
        fn arithmetic(&self) -> Arithmetic;
    }
}

/// Reduction of elements of one type: a [`ReduceOperation`] on numbers, or a reference to a [`Reduction`]. Sealed.
///
/// Reducers are `Send` and `Sync`.
pub trait Reducer<T>: sealed::Reduces<T> {}

impl<T: Number> sealed::Reduces<T> for ReduceOperation {
    fn arithmetic(&self) -> Arithmetic {
        Arithmetic::Number(*self, T::TYPE)
    }
}

impl<T: Number> Reducer<T> for ReduceOperation {}

/// Reduction that the caller defines, on elements of type `T`. All members call a collective with the same reduction; the fabric cannot
/// compare functions.
///
/// The function gets two slices of equal length, and replaces each element of the left one by the result of it and the right one. It must be
/// associative. The collective may cut an array anywhere between two elements, so the function gets any number of elements. It runs in the
/// thread that drives the node, and must not use that node. If it panics, the collective fails with
/// [`Invalid::ReductionPanicked`](crate::fabric::Invalid::ReductionPanicked), and the group is broken.
///
/// Arrays of numbers are elements, too: `[f64; 2]` may be a value and its index.
///
/// `Send` and `Sync`. Clones share the function.
///
/// ```
/// # use rackloom::fabric::{Fabric, Group, GroupOptions, Node, Reduction};
/// # let plan = rackloom::fabric::Plan::parse("name: two\nshape: {ring: {nodes: 2}}\n", "example")?;
/// # let fabric = Fabric::local(&plan)?;
/// # let members: Vec<_> = fabric.nodes().iter().map(Node::id).collect();
/// // The larger value, and the node that has it.
/// let largest = Reduction::commutative(|left: &mut [[i64; 2]], right: &[[i64; 2]]| {
///     for (left, right) in left.iter_mut().zip(right) {
///         *left = (*left).max(*right);
///     }
/// });
/// # std::thread::scope(|scope| {
/// #     for node in fabric.nodes() {
/// #         let (members, largest) = (&members, &largest);
/// #         scope.spawn(move || {
/// #             let group = Group::join(node, GroupOptions::default(), members).unwrap();
/// let mut mine = [[10 - i64::from(node.id().0), i64::from(node.id().0)]];
/// group.all_reduce(&mut mine, largest).wait().unwrap();
/// assert_eq!(mine, [[10, 0]]);
/// #         });
/// #     }
/// # });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Reduction<T> {
    custom: CustomReduction,
    element: PhantomData<fn(T)>,
}

impl<T: Element> Reduction<T> {
    /// Creates a reduction whose result does not depend on the order of the operands. Collectives use any algorithm.
    #[must_use]
    pub fn commutative(function: impl Fn(&mut [T], &[T]) + Send + Sync + 'static) -> Self {
        Self::new(function, false)
    }

    /// Creates a reduction whose operands have an order: the left one comes from lower ranks. Collectives use algorithms that keep the order of
    /// ranks, which send more or reduce less in parallel.
    #[must_use]
    pub fn ordered(function: impl Fn(&mut [T], &[T]) + Send + Sync + 'static) -> Self {
        Self::new(function, true)
    }

    fn new(function: impl Fn(&mut [T], &[T]) + Send + Sync + 'static, is_ordered: bool) -> Self {
        const { assert!(size_of::<T>() <= CustomReduction::ELEMENT_BYTES_MAX, "the element is too large") };
        let on_bytes = move |left: &mut [u8], right: &[u8]| {
            let reduced = catch_unwind(AssertUnwindSafe(|| with_values(left, right, &function)));
            reduced.map_err(|_| ReduceError::Panicked)
        };
        let custom = CustomReduction::new(size_of::<T>(), is_ordered, Arc::new(on_bytes));
        Self { custom, element: PhantomData }
    }
}

impl<T> fmt::Debug for Reduction<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Reduction").field(&self.custom).finish()
    }
}

impl<T: Element> sealed::Reduces<T> for &Reduction<T> {
    fn arithmetic(&self) -> Arithmetic {
        Arithmetic::Custom(self.custom.clone())
    }
}

impl<T: Element> Reducer<T> for &Reduction<T> {}
