//! Groups of nodes and their collectives.

use std::ffi::c_void;
use std::mem::offset_of;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use rackloom::fabric::{
    Algorithm, Collective, ElementType, Group, GroupOptions, GroupRequest, Node, Number, Queue,
    ReduceOperation,
};

use crate::codes::{ErrorCode, Failure};
use crate::guard::{self, with_pointers};
use crate::handles::{self, Exclusive};
use crate::in_progress::InProgress;
use crate::node::NodeHandle;
use crate::operation::unknown;
use crate::pointers::{self, Out, Sized32, array, array_mut, check_apart, versioned};
use crate::queue::QueueHandle;
use crate::region::{LocalSlice, device};

/// Handle of a membership in a group.
pub type GroupHandle = u64;
/// Handle of a collective in progress, of `rackloom_collective_start`.
pub type CollectiveHandle = u64;

/// Collective without data: completes when all members have called it.
pub const RACKLOOM_BARRIER: u32 = 1;
/// Replaces `output` by the reduction of all members' arrays.
pub const RACKLOOM_ALL_REDUCE: u32 = 2;
/// Replaces `output` at the root by the reduction of all members' arrays.
pub const RACKLOOM_REDUCE: u32 = 3;
/// Replaces `output` by that of the root.
pub const RACKLOOM_BROADCAST: u32 = 4;
/// Fills `output` with the inputs of all members in rank order.
pub const RACKLOOM_ALL_GATHER: u32 = 5;
/// Fills `output` with this member's part of the reduction of all inputs.
pub const RACKLOOM_REDUCE_SCATTER: u32 = 6;
/// Fills part p of `output` with this member's part of the input of member p.
pub const RACKLOOM_ALL_TO_ALL: u32 = 7;
/// Fills `output` at the root with the inputs of all members.
pub const RACKLOOM_GATHER: u32 = 8;
/// Fills `output` with this member's part of the root's input.
pub const RACKLOOM_SCATTER: u32 = 9;

/// Elements: IEEE 754 binary32.
pub const RACKLOOM_F32: u32 = 1;
/// Elements: IEEE 754 binary64.
pub const RACKLOOM_F64: u32 = 2;
/// Elements: IEEE 754 binary16, for slices of regions.
pub const RACKLOOM_F16: u32 = 3;
/// Elements: the upper half of a binary32, for slices of regions.
pub const RACKLOOM_BF16: u32 = 4;
/// Elements: 32 bits with a sign.
pub const RACKLOOM_INT32: u32 = 5;
/// Elements: 64 bits with a sign.
pub const RACKLOOM_INT64: u32 = 6;
/// Elements: bytes.
pub const RACKLOOM_BYTE: u32 = 7;

/// Reduction: sum.
pub const RACKLOOM_SUM: u32 = 1;
/// Reduction: the least.
pub const RACKLOOM_MIN: u32 = 2;
/// Reduction: the greatest.
pub const RACKLOOM_MAX: u32 = 3;
/// Reduction: product.
pub const RACKLOOM_PRODUCT: u32 = 4;

/// Algorithm with the shortest estimated time.
pub const RACKLOOM_ALGORITHM_AUTOMATIC: u32 = 0;
/// Each rank sends to the next one only.
pub const RACKLOOM_ALGORITHM_RING: u32 = 1;
/// Two rings in opposite directions.
pub const RACKLOOM_ALGORITHM_BIDIRECTIONAL_RING: u32 = 2;
/// Every rank sends its whole input to every other rank.
pub const RACKLOOM_ALGORITHM_ONE_SHOT: u32 = 3;
/// Direct reduce-scatter, then direct all-gather.
pub const RACKLOOM_ALGORITHM_TWO_SHOT: u32 = 4;
/// Recursive halving, then recursive doubling.
pub const RACKLOOM_ALGORITHM_HALVING_DOUBLING: u32 = 5;
/// All pairs concurrently.
pub const RACKLOOM_ALGORITHM_DIRECT: u32 = 6;
/// One partner after the other.
pub const RACKLOOM_ALGORITHM_PAIRWISE: u32 = 7;
/// Binomial tree.
pub const RACKLOOM_ALGORITHM_BINOMIAL: u32 = 8;
/// Along the ring, in pipelined segments.
pub const RACKLOOM_ALGORITHM_RING_PIPELINE: u32 = 9;
/// Barrier: signals at distances that double.
pub const RACKLOOM_ALGORITHM_DISSEMINATION: u32 = 10;
/// Barrier: first the ranks of one server, then one leader per server.
pub const RACKLOOM_ALGORITHM_TWO_LEVEL: u32 = 11;
/// Inside each server, then between servers.
pub const RACKLOOM_ALGORITHM_HIERARCHICAL: u32 = 12;

/// Options of a group, equal on all members unless stated otherwise. Fields that are 0 have their defaults.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct GroupSettings {
    /// sizeof(rackloom_group_options).
    pub size: u32,
    /// Number of the region of the group. No member has a region of this number yet. If 0, number and key follow from the rack and the list of members: any
    /// node of the tenant can then compute the key.
    pub region: u32,
    /// Key of the region of the group, if `region` is not 0.
    pub key: u64,
    /// Length of one piece of a collective in bytes; 4 MiB if 0. The region is three times as long.
    pub staging_bytes: u64,
    /// One of `RACKLOOM_ALGORITHM_...`, for the collectives that it supports.
    pub algorithm: u32,
    /// Number of segments of `RACKLOOM_ALGORITHM_RING_PIPELINE`.
    pub segments: u32,
    /// Time that the first collective of this member waits for members that have not joined; ten seconds if 0. Members may differ.
    pub join_timeout_ns: u64,
    /// Device of the region, one of `RACKLOOM_DEVICE_...`. Members may differ.
    pub device: u32,
    /// 0.
    pub reserved: u32,
    /// Number of the GPU, or seed of the fake device.
    pub device_number: u64,
    /// Number of collectives that can run at the same time, at most 64; 1 if 0. Further ones wait for the end of earlier ones. Each has its own staging.
    pub lanes: u64,
}

// SAFETY: needed to copy it by its bytes. It has the layout of C and begins with its size. It consists of numbers, so every bit pattern is a value.
unsafe impl Sized32 for GroupSettings {
    const SIZE_MIN: usize = offset_of!(Self, lanes);
}

impl GroupSettings {
    fn read(&self) -> Result<GroupOptions, Failure> {
        let named = GroupOptions::new(self.region, self.key);
        let mut options = if self.region == 0 { GroupOptions::default() } else { named };
        options.algorithm = self.algorithm()?;
        options.device = device(self.device, self.device_number)?;
        if self.staging_bytes > 0 {
            options.staging_bytes = self.staging_bytes;
        }
        if self.join_timeout_ns > 0 {
            options.join_timeout = Duration::from_nanos(self.join_timeout_ns);
        }
        if self.lanes > 0 {
            // A number that no index can have is out of bounds as well.
            options.lanes = usize::try_from(self.lanes).unwrap_or(usize::MAX);
        }
        Ok(options)
    }

    fn algorithm(&self) -> Result<Option<Algorithm>, Failure> {
        Ok(Some(match self.algorithm {
            RACKLOOM_ALGORITHM_AUTOMATIC => return Ok(None),
            RACKLOOM_ALGORITHM_RING => Algorithm::Ring,
            RACKLOOM_ALGORITHM_BIDIRECTIONAL_RING => Algorithm::BidirectionalRing,
            RACKLOOM_ALGORITHM_ONE_SHOT => Algorithm::OneShot,
            RACKLOOM_ALGORITHM_TWO_SHOT => Algorithm::TwoShot,
            RACKLOOM_ALGORITHM_HALVING_DOUBLING => Algorithm::HalvingDoubling,
            RACKLOOM_ALGORITHM_DIRECT => Algorithm::Direct,
            RACKLOOM_ALGORITHM_PAIRWISE => Algorithm::Pairwise,
            RACKLOOM_ALGORITHM_BINOMIAL => Algorithm::Binomial,
            RACKLOOM_ALGORITHM_RING_PIPELINE => {
                let segments = NonZeroUsize::new(self.segments as usize);
                Algorithm::RingPipeline {
                    segments: segments.ok_or_else(|| Failure::argument("no segments"))?,
                }
            }
            RACKLOOM_ALGORITHM_DISSEMINATION => Algorithm::Dissemination,
            RACKLOOM_ALGORITHM_TWO_LEVEL => Algorithm::TwoLevel,
            RACKLOOM_ALGORITHM_HIERARCHICAL => Algorithm::Hierarchical,
            other => return Err(unknown("algorithm", other)),
        }))
    }
}

/// Description of one collective. The data is in arrays of the program, or in slices of regions of the node if `output_slice.region` or
/// `input_slice.region` is not 0. Set the fields that are not used to 0.
///
/// All-reduce, reduce and broadcast change `output` in place; `input` is not used, except that slices may differ. Lengths of arrays are numbers of elements.
/// The output of an all-gather or a gather, and the input of a reduce-scatter or a scatter, have one part per member; those of an all-to-all too. The
/// arrays that only the root uses may be empty at other members.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CollectiveRecord {
    /// sizeof(rackloom_collective).
    pub size: u32,
    /// Kind of collective, such as `RACKLOOM_ALL_REDUCE`.
    pub kind: u32,
    /// Type of the elements, such as `RACKLOOM_F32`. Any, except for a barrier.
    pub element: u32,
    /// Reduction, such as `RACKLOOM_SUM`, of an all-reduce, reduce or reduce-scatter.
    pub reduction: u32,
    /// Number of the root's node, for a collective with a root.
    pub root: u32,
    /// 0.
    pub reserved: u32,
    /// Array that is read.
    pub input: *const c_void,
    /// Number of its elements.
    pub input_count: u64,
    /// Array that is written.
    pub output: *mut c_void,
    /// Number of its elements.
    pub output_count: u64,
    /// Slice that is read.
    pub input_slice: LocalSlice,
    /// Slice that is written.
    pub output_slice: LocalSlice,
}

// SAFETY: needed to copy it by its bytes. It has the layout of C and begins with its size. It consists of numbers and raw pointers, so every bit
// pattern is a value: a pointer is not read here.
unsafe impl Sized32 for CollectiveRecord {
    const SIZE_MIN: usize = size_of::<Self>();
}

fn reduction(number: u32) -> Result<ReduceOperation, Failure> {
    match number {
        RACKLOOM_SUM => Ok(ReduceOperation::Sum),
        RACKLOOM_MIN => Ok(ReduceOperation::Min),
        RACKLOOM_MAX => Ok(ReduceOperation::Max),
        RACKLOOM_PRODUCT => Ok(ReduceOperation::Product),
        _ => Err(unknown("reduction", number)),
    }
}

fn element(number: u32) -> Result<ElementType, Failure> {
    match number {
        RACKLOOM_F32 => Ok(ElementType::F32),
        RACKLOOM_F64 => Ok(ElementType::F64),
        RACKLOOM_F16 => Ok(ElementType::F16),
        RACKLOOM_BF16 => Ok(ElementType::Bf16),
        RACKLOOM_INT32 => Ok(ElementType::I32),
        RACKLOOM_INT64 => Ok(ElementType::I64),
        RACKLOOM_BYTE => Ok(ElementType::U8),
        _ => Err(unknown("type of elements", number)),
    }
}

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

/// Joins the group of all GPU nodes of the rack, in the order of the rack file. `rackloom_group_join` describes the rest.
///
/// Errors: those of `rackloom_group_join`.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_group_of_rack(
    node: NodeHandle,
    options: *const GroupSettings,
    group: *mut GroupHandle,
) -> ErrorCode {
    with_pointers!({
        let group = Out::new(group)?;
        let node = handles::get::<Node>(node)?;
        let options = versioned(options)?.read()?;
        group.set(handles::add(Arc::new(Group::of_rack(&node, options)?))?);
        Ok(())
    })
}

/// Joins a group of the `count` nodes in `members`, this node among them. All members join with equal options and an equal list, and call equal collectives
/// in the same order. The first collective waits until all have joined.
///
/// Errors: INVALID if this node is not a member, a member is named twice, or the staging is too large; NO_SUCH_NODE; those of `rackloom_region_allocate`.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_group_join(
    node: NodeHandle,
    options: *const GroupSettings,
    members: *const u32,
    count: u64,
    group: *mut GroupHandle,
) -> ErrorCode {
    with_pointers!({
        let group = Out::new(group)?;
        let node = handles::get::<Node>(node)?;
        let options = versioned(options)?.read()?;
        let members: Vec<_> =
            array(members, count)?.iter().map(|member| pointers::node(*member)).collect::<Result<_, _>>()?;
        group.set(handles::add(Arc::new(Group::join(&node, options, &members)?))?);
        Ok(())
    })
}

/// Leaves a group and frees its handle. Members that still need this node get an error: meet in a barrier before.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn rackloom_group_free(group: GroupHandle) -> ErrorCode {
    guard::call(|| handles::free::<Arc<Group>>(group))
}

/// Writes the number of members, and the rank of this node. Each pointer may be null.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_group_size(
    group: GroupHandle,
    size: *mut u32,
    rank: *mut u32,
) -> ErrorCode {
    with_pointers!({
        let group = handles::get::<Arc<Group>>(group)?;
        let (size, rank) = (Out::optional(size)?, Out::optional(rank)?);
        if let Some(size) = size {
            size.set(group.members().len() as u32);
        }
        if let Some(rank) = rank {
            rank.set(group.rank() as u32);
        }
        Ok(())
    })
}

/// Writes the numbers of the members' nodes, in rank order, to an array of `capacity` numbers.
///
/// Errors: BUFFER_TOO_SMALL: `rackloom_group_size` has the number of members.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_group_members(
    group: GroupHandle,
    members: *mut u32,
    capacity: u64,
) -> ErrorCode {
    with_pointers!({
        let group = handles::get::<Arc<Group>>(group)?;
        let places = array_mut(members, capacity)?;
        let known = group.members();
        let Some(places) = places.get_mut(..known.len()) else {
            let text = format!("the group has {} members", known.len());
            return Err(Failure::new(ErrorCode::BufferTooSmall, text));
        };
        places.iter_mut().zip(known).for_each(|(place, member)| *place = member.0.into());
        Ok(())
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

impl CollectiveRecord {
    const fn in_place(kind: u32, values: *mut c_void, count: u64, element: u32) -> Self {
        let none = LocalSlice { region: 0, offset: 0, length: 0 };
        Self {
            size: size_of::<Self>() as u32,
            kind,
            element,
            reduction: 0,
            root: 0,
            reserved: 0,
            input: std::ptr::null(),
            input_count: 0,
            output: values,
            output_count: count,
            input_slice: none,
            output_slice: none,
        }
    }
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
