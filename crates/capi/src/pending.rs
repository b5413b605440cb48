//! Operations in progress.

use std::sync::Arc;
use std::time::Duration;

use rackloom::fabric::{Ended, Pending, wait_any};

use crate::codes::{CompletionRecord, ErrorCode, Failure};
use crate::guard::{self, with_pointers};
use crate::handles::{self, Exclusive};
use crate::pointers::{Out, array, put_end};

/// Handle of an operation in progress, of `rackloom_operation_start`.
pub type PendingHandle = u64;

type InProgress = Arc<Exclusive<Pending<Ended>>>;

/// Polls the node once, and writes 1 if the operation has ended, else 0. Never blocks.
///
/// Threads: one at a time for each handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_pending_test(pending: PendingHandle, has_ended: *mut u32) -> ErrorCode {
    with_pointers!({
        let has_ended = Out::new(has_ended)?;
        has_ended.set(handles::get::<InProgress>(pending)?.with(|pending| Ok(pending.test()))?.into());
        Ok(())
    })
}

/// Waits until an operation has ended, at most for `timeout_ns`, and returns its result. `end` may be null. The result is returned once. The handle stays
/// and must be freed.
///
/// Errors: those of the operation; TIMED_OUT: the operation continues, and the handle can be used again; CLOSED if the result was returned before.
/// Threads: one at a time for each handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_pending_wait(
    pending: PendingHandle,
    timeout_ns: u64,
    end: *mut CompletionRecord,
) -> ErrorCode {
    with_pointers!({
        let end = Out::optional(end)?;
        let (number, result) = handles::get::<InProgress>(pending)?.with(|pending| {
            let ended = pending.wait_for(Duration::from_nanos(timeout_ns));
            let late = || {
                Err(Failure {
                    maybe_done: true,
                    ..Failure::new(ErrorCode::TimedOut, "the operation continues")
                })
            };
            Ok((pending.id().0, ended.map_or_else(late, |result| result.map_err(Failure::from))))
        })?;
        put_end(end, number, result)
    })
}

/// Waits until one of several operations of one node has ended, and returns its index. `rackloom_pending_wait` then returns its result at once.
///
/// Errors: INVALID for an empty list, or for operations of several nodes; IN_USE also if a handle is named twice; CLOSED.
/// Threads: one at a time for each handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_pending_wait_any(
    pending: *const PendingHandle,
    count: u64,
    index: *mut u64,
) -> ErrorCode {
    with_pointers!({
        let index = Out::new(index)?;
        let all: Vec<InProgress> =
            array(pending, count)?.iter().map(|handle| handles::get(*handle)).collect::<Result<_, _>>()?;
        let mut places = all.iter().map(|one| one.enter()).collect::<Result<Vec<_>, _>>()?;
        let mut operations: Vec<_> = places.iter_mut().filter_map(|place| place.take()).collect();
        let ended = wait_any(&mut operations);
        places.iter_mut().zip(operations).for_each(|(place, operation)| **place = Some(operation));
        index.set(ended? as u64);
        Ok(())
    })
}

/// Cancels a receive or a wait. Its result is then FAILED with the reason CANCELLED, unless it has ended before. To cancel while another thread waits,
/// use `rackloom_node_cancel`.
///
/// Errors: INVALID for other operations.
/// Threads: one at a time for each handle.
#[unsafe(no_mangle)]
pub extern "C" fn rackloom_pending_cancel(pending: PendingHandle) -> ErrorCode {
    guard::call(|| handles::get::<InProgress>(pending)?.with(|pending| Ok(pending.cancel()?)))
}

/// Returns the number of an operation at its node, for `rackloom_node_cancel`.
///
/// Threads: one at a time for each handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_pending_operation(pending: PendingHandle, number: *mut u64) -> ErrorCode {
    with_pointers!({
        let number = Out::new(number)?;
        number.set(handles::get::<InProgress>(pending)?.with(|pending| Ok(pending.id().0))?);
        Ok(())
    })
}

/// Frees the handle of an operation. An operation to a peer that has not ended continues without a completion. A receive or a wait is cancelled.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn rackloom_pending_free(pending: PendingHandle) -> ErrorCode {
    guard::call(|| handles::free::<InProgress>(pending))
}
