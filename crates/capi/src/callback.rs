//! Reductions of the program: functions of C with the size of their elements, which collectives call.
//!
//! A function gets pointers and a number of elements. It runs in a thread that drives a node and holds the node's lock, so a call of the library
//! from it would wait for itself: such calls fail (`guard`).

use std::ffi::c_void;

use rackloom::fabric::{Element, Reduction};

use crate::codes::Failure;
use crate::guard;

/// Function of the program that reduces `count` elements of `right` into those of `left`. The last argument is its context.
type Function = unsafe extern "C" fn(*mut c_void, *const c_void, u64, *mut c_void);

/// Function of the program with its context.
#[derive(Clone, Copy)]
pub(crate) struct Callback {
    function: Function,
    context: *mut c_void,
}

// SAFETY: needed because any thread that drives a node calls the function. Sound because the maker of a `Callback` promises that any thread may do so.
unsafe impl Send for Callback {}
// SAFETY: needed because several threads may call the function at the same time. Sound because the maker of a `Callback` promises that they may.
unsafe impl Sync for Callback {}

impl Callback {
    /// Returns a function with its context.
    ///
    /// # Safety
    /// Any number of threads may call the function with the context at the same time, until the value and its copies are dropped. It accesses nothing
    /// but the elements and what belongs to the context, and returns.
    pub(crate) const unsafe fn new(function: Function, context: *mut c_void) -> Self {
        Self { function, context }
    }

    fn reduce<T: Element>(self, left: &mut [T], right: &[T]) {
        let count = left.len().min(right.len()) as u64;
        let (left, right) = (left.as_mut_ptr().cast(), right.as_ptr().cast());
        // SAFETY: needed because the function is one of C. `new` has its promise; the pointers have `count` elements each, aligned for their type.
        guard::in_callback(|| unsafe { (self.function)(left, right, count, self.context) });
    }

    fn reduction<T: Element>(self, is_ordered: bool) -> Reduction<T> {
        let function = move |left: &mut [T], right: &[T]| self.reduce(left, right);
        if is_ordered { Reduction::ordered(function) } else { Reduction::commutative(function) }
    }
}

/// Code that uses a reduction of any type of elements.
pub(crate) trait Use {
    /// Result.
    type Output;
    /// Uses the reduction.
    fn apply<T: Element>(self, reduction: &Reduction<T>) -> Self::Output;
}

macro_rules! sizes {
    ($($variant:ident: $element:ty,)+) => {
        /// Reduction of the program, by the size of its elements.
        pub(crate) enum CallerReduction {
            $(#[doc = concat!("Elements as long as `", stringify!($element), "`.")] $variant(Reduction<$element>),)+
        }

        impl CallerReduction {
            /// Makes a reduction of elements of this size. `is_ordered`: the operands are in the order of ranks.
            pub(crate) fn new(callback: Callback, element_bytes: u64, is_ordered: bool) -> Result<Self, Failure> {
                $(if element_bytes == size_of::<$element>() as u64 {
                    return Ok(Self::$variant(callback.reduction(is_ordered)));
                })+
                let sizes = [$(size_of::<$element>()),+];
                Err(Failure::argument(format!("no elements have {element_bytes} bytes; hint: one of {sizes:?}")))
            }

            /// Gives the reduction to code for any type of elements.
            pub(crate) fn with<U: Use>(&self, code: U) -> U::Output {
                match self {
                    $(Self::$variant(reduction) => code.apply(reduction),)+
                }
            }
        }
    };
}

sizes! {
    Bytes1: u8,
    Bytes2: u16,
    Bytes4: u32,
    Bytes8: u64,
    Bytes12: [u32; 3],
    Bytes16: [u64; 2],
    Bytes24: [u64; 3],
    Bytes32: [u64; 4],
    Bytes40: [u64; 5],
    Bytes48: [u64; 6],
    Bytes56: [u64; 7],
    Bytes64: [u64; 8],
    Bytes128: [u64; 16],
}
