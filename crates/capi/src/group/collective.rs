//! Collectives of a group: by description, and three of them by name.

use std::ffi::c_void;
use std::sync::Arc;
use std::time::Duration;

use rackloom::fabric::{Collective, ElementType, Group, GroupRequest, Number, Queue, ReduceOperation};

use super::membership::GroupHandle;
use super::record::{
    CollectiveRecord, RACKLOOM_ALL_GATHER, RACKLOOM_ALL_REDUCE, RACKLOOM_ALL_TO_ALL, RACKLOOM_BARRIER,
    RACKLOOM_BROADCAST, RACKLOOM_GATHER, RACKLOOM_REDUCE, RACKLOOM_REDUCE_SCATTER, RACKLOOM_SCATTER, element,
    reduction,
};
use crate::codes::{ErrorCode, Failure};
use crate::guard::{self, with_pointers};
use crate::handles::{self, Exclusive};
use crate::in_progress::InProgress;
use crate::operation::unknown;
use crate::pointers::{self, Out, array, array_mut, check_apart, versioned};
use crate::queue::QueueHandle;
use crate::region::LocalSlice;

/// Handle of a collective in progress, of `rackloom_collective_start`.
pub type CollectiveHandle = u64;

/// Makes the request of a collective.
///
/// # Safety
/// The arrays are valid, and nothing else accesses the output, until the request has ended or is dropped.
unsafe fn request(group: &Group, collective: &CollectiveRecord) -> Result<GroupRequest<'static>, Failure> {
    if collective.kind == RACKLOOM_BARRIER {
        return Ok(group.barrier());
    }
    if collective.input_slice.region != 0 || collective.output_slice.region != 0 {
        return on_slices(group, collective);
    }
    // SAFETY: needed because the arrays are memory of C. The caller makes the promise.
    unsafe {
        match element(collective.element)? {
            ElementType::F32 => on_arrays::<f32>(group, collective),
            ElementType::F64 => on_arrays::<f64>(group, collective),
            ElementType::I32 => on_arrays::<i32>(group, collective),
            ElementType::I64 => on_arrays::<i64>(group, collective),
            ElementType::U8 => on_arrays::<u8>(group, collective),
            _ => Err(Failure::argument("elements of 16 bits need slices of regions")),
        }
    }
}

fn on_slices(group: &Group, record: &CollectiveRecord) -> Result<GroupRequest<'static>, Failure> {
    let reduces = matches!(record.kind, RACKLOOM_ALL_REDUCE | RACKLOOM_REDUCE | RACKLOOM_REDUCE_SCATTER);
    let operation = if reduces { reduction(record.reduction)? } else { ReduceOperation::Sum };
    let root = || {
        let root = pointers::node(record.root)?;
        let rank = group.members().iter().position(|member| *member == root);
        rank.ok_or_else(|| Failure::new(ErrorCode::Invalid, "the root is not a member of the group"))
    };
    let collective = match record.kind {
        RACKLOOM_ALL_REDUCE => Collective::AllReduce,
        RACKLOOM_REDUCE => Collective::Reduce { root: root()? },
        RACKLOOM_BROADCAST => Collective::Broadcast { root: root()? },
        RACKLOOM_ALL_GATHER => Collective::AllGather,
        RACKLOOM_REDUCE_SCATTER => Collective::ReduceScatter,
        RACKLOOM_ALL_TO_ALL => Collective::AllToAll,
        RACKLOOM_GATHER => Collective::Gather { root: root()? },
        RACKLOOM_SCATTER => Collective::Scatter { root: root()? },
        kind => return Err(unknown("kind of collective", kind)),
    };
    // A slice that is not given is empty, or that of a collective in place.
    let (input, output) = match (record.input_slice, record.output_slice) {
        (LocalSlice { region: 0, .. }, output) => (output, output),
        (input, LocalSlice { region: 0, .. }) => (input, LocalSlice { length: 0, ..input }),
        both => both,
    };
    Ok(group.on_slices(collective, operation, element(record.element)?, &input.read()?, &output.read()?))
}

/// Makes the request of a collective on arrays.
///
/// # Safety
/// That of [`request`].
unsafe fn on_arrays<T: Number>(
    group: &Group,
    record: &CollectiveRecord,
) -> Result<GroupRequest<'static>, Failure> {
    let bytes = |count: u64| count.saturating_mul(size_of::<T>() as u64);
    let is_in_place = matches!(record.kind, RACKLOOM_ALL_REDUCE | RACKLOOM_REDUCE | RACKLOOM_BROADCAST);
    if is_in_place && !record.input.is_null() {
        return Err(Failure::argument("the collective is in place, and has no input"));
    }
    check_apart(
        (record.input, bytes(record.input_count)),
        (record.output.cast_const(), bytes(record.output_count)),
    )?;
    // SAFETY: needed because the arrays are memory of C. The caller promises that they are valid and not accessed otherwise; they are apart.
    let (input, output) = unsafe {
        let input = if is_in_place { &[] } else { array::<T>(record.input.cast(), record.input_count)? };
        (input, array_mut::<T>(record.output.cast(), record.output_count)?)
    };
    let root = || pointers::node(record.root);
    let operation = || reduction(record.reduction);
    Ok(match record.kind {
        RACKLOOM_ALL_REDUCE => group.all_reduce(output, operation()?),
        RACKLOOM_REDUCE => group.reduce(output, operation()?, root()?),
        RACKLOOM_BROADCAST => group.broadcast(output, root()?),
        RACKLOOM_ALL_GATHER => group.all_gather(input, output),
        RACKLOOM_REDUCE_SCATTER => group.reduce_scatter(input, output, operation()?),
        RACKLOOM_ALL_TO_ALL => group.all_to_all(input, output),
        RACKLOOM_GATHER => group.gather(input, output, root()?),
        RACKLOOM_SCATTER => group.scatter(input, output, root()?),
        kind => return Err(unknown("kind of collective", kind)),
    })
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
