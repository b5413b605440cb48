//! Reductions that the program defines.

use std::ffi::c_void;
use std::sync::Arc;

use crate::callback::{Callback, CallerReduction};
use crate::codes::{ErrorCode, Failure};
use crate::guard::{self, with_pointers};
use crate::handles;
use crate::operation::unknown;
use crate::pointers::Out;

/// Handle of a reduction that the program defines.
pub type ReductionHandle = u64;

/// Function that replaces each of the `count` elements at `left` by the result of it and the element at the same index of `right`. `context` is that of
/// `rackloom_reduction_create`.
///
/// It is associative, returns for any values and any `count`, and does not leave by `longjmp` or by an exception of C++. It runs in the thread that makes
/// progress: one that waits for a collective, or the background thread of a node. Several threads may call it at the same time, for different
/// elements. It calls no function of the library: such a call returns IN_CALLBACK.
pub type ReductionFunction =
    Option<unsafe extern "C" fn(left: *mut c_void, right: *const c_void, count: u64, context: *mut c_void)>;

/// Order of operands: any. Collectives use any algorithm.
pub const RACKLOOM_COMMUTATIVE: u32 = 1;
/// Order of operands: the left one comes from lower ranks. Collectives use algorithms that keep the order of ranks.
pub const RACKLOOM_ORDERED: u32 = 2;

/// Makes a reduction of elements of `element_bytes`: 1, 2, 4, 8, 12, 16, 24, 32, 40, 48, 56, 64 or 128. `order` is one of `RACKLOOM_COMMUTATIVE` and
/// `RACKLOOM_ORDERED`. Elements have the alignment of 8 bytes if that divides their size, else of 4 bytes or of their size. All members use equal
/// functions: the library cannot compare them. `context`, which may be null, stays valid until the reduction is freed and all collectives with it have ended.
///
/// Errors: BAD_ARGUMENT for another size or order.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_reduction_create(
    function: ReductionFunction,
    context: *mut c_void,
    element_bytes: u64,
    order: u32,
    reduction: *mut ReductionHandle,
) -> ErrorCode {
    with_pointers!({
        let reduction = Out::new(reduction)?;
        let none = || Failure::new(ErrorCode::NullPointer, "the function is null");
        let callback = Callback::new(function.ok_or_else(none)?, context);
        let is_ordered = match order {
            RACKLOOM_COMMUTATIVE => false,
            RACKLOOM_ORDERED => true,
            _ => return Err(unknown("order of operands", order)),
        };
        reduction.set(handles::add(Arc::new(CallerReduction::new(callback, element_bytes, is_ordered)?))?);
        Ok(())
    })
}

/// Frees a reduction. Collectives that use it continue, and still call the function.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn rackloom_reduction_free(reduction: ReductionHandle) -> ErrorCode {
    guard::call(|| handles::free::<Arc<CallerReduction>>(reduction))
}
