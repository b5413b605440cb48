//! Collectives of a group: by description, and three of them by name.

use std::ffi::c_void;
use std::sync::Arc;
use std::time::Duration;

use rackloom::fabric::{Element, ElementType, Group, GroupRequest, Queue, Reduction};

use super::arrays::on_arrays;
use super::membership::GroupHandle;
use super::record::{
    CollectiveRecord, RACKLOOM_ALL_REDUCE, RACKLOOM_BARRIER, RACKLOOM_BROADCAST, element, reduction,
};
use super::slices::SliceArguments;
use crate::callback::{CallerReduction, Use};
use crate::codes::{ErrorCode, Failure};
use crate::guard::{self, with_pointers};
use crate::handles::{self, Exclusive};
use crate::in_progress::InProgress;
use crate::pointers::{Out, versioned};
use crate::queue::QueueHandle;

/// Handle of a collective in progress, of `rackloom_collective_start`.
pub type CollectiveHandle = u64;

/// Makes the request of a collective.
///
/// # Safety
/// The arrays are valid, and nothing else accesses the output, until the request has ended or is dropped.
unsafe fn request(group: &Group, record: &CollectiveRecord) -> Result<GroupRequest<'static>, Failure> {
    if record.kind == RACKLOOM_BARRIER {
        return Ok(group.barrier());
    }
    if record.has_slices() {
        let SliceArguments { collective, operation, element, input, output } =
            SliceArguments::read(group, record)?;
        return Ok(group.on_slices(collective, operation, element, &input, &output));
    }
    if record.custom_reduction != 0 {
        if record.element != 0 || record.reduction != 0 {
            let text = "custom_reduction takes the place of element and reduction, which must be 0";
            return Err(Failure::argument(text));
        }
        return handles::get::<Arc<CallerReduction>>(record.custom_reduction)?.with(Custom { group, record });
    }
    let operation = || reduction(record.reduction);
    // SAFETY: needed because the arrays are memory of C. The caller makes the promise.
    unsafe {
        match element(record.element)? {
            ElementType::F32 => on_arrays::<f32, _>(group, record, operation),
            ElementType::F64 => on_arrays::<f64, _>(group, record, operation),
            ElementType::I32 => on_arrays::<i32, _>(group, record, operation),
            ElementType::I64 => on_arrays::<i64, _>(group, record, operation),
            ElementType::U8 => on_arrays::<u8, _>(group, record, operation),
            _ => Err(Failure::argument("elements of 16 bits need slices of regions")),
        }
    }
}

/// Collective on arrays with a reduction of the program. It is made only by [`request`], whose caller promises that the arrays are valid.
struct Custom<'a> {
    group: &'a Group,
    record: &'a CollectiveRecord,
}

impl Use for Custom<'_> {
    type Output = Result<GroupRequest<'static>, Failure>;

    fn apply<T: Element>(self, reduction: &Reduction<T>) -> Self::Output {
        // SAFETY: needed because the arrays are memory of C. The caller of `request` makes the promise.
        unsafe { on_arrays::<T, _>(self.group, self.record, || Ok(reduction)) }
    }
}

/// Runs a collective and waits until this member's part is done. The calling thread drives the node meanwhile.
///
/// Errors: BAD_ARGUMENT for unknown constants, and for arrays that overlap or are misaligned; INVALID if the arrays do not fit the group; PEER_LOST,
/// PEER_LEFT, GROUP_BROKEN, NOT_JOINED, REFUSED, CLOSED.
/// Threads: any. Collectives of a group run in the order in which they begin.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_collective_wait(
    group: GroupHandle,
    collective: *const CollectiveRecord,
) -> ErrorCode {
    with_pointers!({
        let group = handles::get::<Arc<Group>>(group)?;
        Ok(request(&group, &versioned(collective)?)?.wait()?)
    })
}

/// Begins a collective and returns at once, with a handle to test it and to wait for it. It advances in the background. The arrays must stay valid, and must
/// not be accessed, until it has ended or `rackloom_collective_free` has returned.
///
/// Errors: those of `rackloom_collective_wait` that are known at once.
/// Threads: any. Collectives of a group run in the order in which they begin.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_collective_start(
    group: GroupHandle,
    collective: *const CollectiveRecord,
    started: *mut CollectiveHandle,
) -> ErrorCode {
    with_pointers!({
        let started = Out::new(started)?;
        let group = handles::get::<Arc<Group>>(group)?;
        let request = request(&group, &versioned(collective)?)?;
        started.set(handles::add(Exclusive::new(InProgress::begin(request)?))?);
        Ok(())
    })
}

/// Polls the node once, and writes 1 if a collective has ended, else 0. Never blocks. `rackloom_collective_request_wait` then returns its result at once.
///
/// Threads: one at a time for each handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_collective_request_test(
    started: CollectiveHandle,
    has_ended: *mut u32,
) -> ErrorCode {
    with_pointers!({
        let has_ended = Out::new(has_ended)?;
        let started = handles::get::<Arc<Exclusive<InProgress>>>(started)?;
        has_ended.set(started.with(|collective| Ok(collective.test()))?.into());
        Ok(())
    })
}

/// Waits until a collective has ended, at most for `timeout_ns`, and returns its result. The result is returned once. The handle stays and must be freed.
///
/// Errors: those of `rackloom_collective_wait`; TIMED_OUT: the collective continues, and the handle can be used again; CLOSED also if the result was returned
/// before.
/// Threads: one at a time for each handle.
#[unsafe(no_mangle)]
pub extern "C" fn rackloom_collective_request_wait(started: CollectiveHandle, timeout_ns: u64) -> ErrorCode {
    guard::call(|| {
        let started = handles::get::<Arc<Exclusive<InProgress>>>(started)?;
        started.with(|collective| collective.wait(Duration::from_nanos(timeout_ns)))
    })
}

/// Frees a collective. If it has not ended, it ends here and the group breaks, on all members. The arrays are not used any more, unless another thread waits
/// for the collective: then they are in use until that call returns.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn rackloom_collective_free(started: CollectiveHandle) -> ErrorCode {
    guard::call(|| handles::free::<Arc<Exclusive<InProgress>>>(started))
}

/// Begins a collective and returns at once. Its completion, with `context`, arrives in `queue`. It advances in the background. The arrays must stay valid, and
/// must not be accessed, until the completion has arrived.
///
/// Errors: those of `rackloom_collective_wait` that are known at once.
/// Threads: any. Collectives of a group run in the order in which they begin.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_collective_submit(
    group: GroupHandle,
    collective: *const CollectiveRecord,
    queue: QueueHandle,
    context: u64,
) -> ErrorCode {
    with_pointers!({
        let (group, queue) = (handles::get::<Arc<Group>>(group)?, handles::get::<Arc<Queue>>(queue)?);
        request(&group, &versioned(collective)?)?.submit(&queue, context)?;
        Ok(())
    })
}

/// Meets the other members of a group: returns when every member has called it as often as this one.
///
/// Errors: those of `rackloom_collective_wait`.
/// Threads: any. Collectives of a group run in the order in which they begin.
#[unsafe(no_mangle)]
pub extern "C" fn rackloom_group_barrier(group: GroupHandle) -> ErrorCode {
    guard::call(|| Ok(handles::get::<Arc<Group>>(group)?.barrier().wait()?))
}

/// Replaces `count` elements at `values` by the reduction of all members' arrays. `element` is a type such as `RACKLOOM_F32`, `reduction` such as
/// `RACKLOOM_SUM`.
///
/// Errors: those of `rackloom_collective_wait`.
/// Threads: any. Collectives of a group run in the order in which they begin.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_group_all_reduce(
    group: GroupHandle,
    values: *mut c_void,
    count: u64,
    element: u32,
    reduction: u32,
) -> ErrorCode {
    let all_reduce = CollectiveRecord::in_place(RACKLOOM_ALL_REDUCE, values, count, element);
    with_pointers!({ wait(group, &CollectiveRecord { reduction, ..all_reduce }) })
}

/// Replaces `count` elements at `values` by those of the node `root`.
///
/// Errors: those of `rackloom_collective_wait`.
/// Threads: any. Collectives of a group run in the order in which they begin.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_group_broadcast(
    group: GroupHandle,
    values: *mut c_void,
    count: u64,
    element: u32,
    root: u32,
) -> ErrorCode {
    let broadcast = CollectiveRecord::in_place(RACKLOOM_BROADCAST, values, count, element);
    with_pointers!({ wait(group, &CollectiveRecord { root, ..broadcast }) })
}

/// Runs a collective.
///
/// # Safety
/// The arrays are valid, and nothing else accesses the output during the call.
unsafe fn wait(group: GroupHandle, collective: &CollectiveRecord) -> Result<(), Failure> {
    let group = handles::get::<Arc<Group>>(group)?;
    // SAFETY: needed because the arrays are memory of C. The caller makes the promise, and the request ends here.
    Ok(unsafe { request(&group, collective) }?.wait()?)
}
