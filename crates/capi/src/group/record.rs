//! Description of a collective: its kind, elements, reduction and data.

use std::ffi::c_void;
use std::mem::offset_of;

use rackloom::fabric::{Collective, ElementType, ReduceOperation};

use super::reduction::ReductionHandle;
use crate::codes::Failure;
use crate::operation::unknown;
use crate::pointers::{Sized32, truth};
use crate::region::LocalSlice;

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
/// Replaces `output` by the reduction of the arrays of the members up to this one, in rank order.
pub const RACKLOOM_SCAN: u32 = 10;
/// Replaces `output` by the reduction of the arrays of the members before this one, in rank order. That of rank 0 stays unchanged.
pub const RACKLOOM_EXCLUSIVE_SCAN: u32 = 11;

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

/// Description of one collective. The data is in arrays of the program, or in slices of regions of the node if `output_slice.region` or
/// `input_slice.region` is not 0. Set the fields that are not used to 0.
///
/// All-reduce, reduce, broadcast and scans change `output` in place; `input` is not used, except that slices may differ. Lengths of arrays are numbers of
/// elements. The output of an all-gather or a gather, and the input of a reduce-scatter or a scatter, have one part per member, in rank order; both arrays of
/// an all-to-all too. The arrays that only the root uses may be empty at other members.
///
/// Parts have one length, unless `part_counts` gives the length of each. They follow each other without gaps.
///
/// With `in_place`, the collectives with parts have one array, which is `output`: each member's own part is in its place (all-gather; gather, at the root),
/// ends there (reduce-scatter), stays there (scatter, at the root), or every part is replaced (all-to-all). At other members of a gather and a scatter,
/// `output` is the part.
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
    /// Reduction that the program defines, of `rackloom_reduction_create`, in place of `reduction`. It also says how long elements are, so `element` and
    /// `reduction` are 0. For collectives on arrays.
    pub custom_reduction: ReductionHandle,
    /// Lengths of the parts in elements, equal on all members; null if all parts have one length. Entry r is the length of the part of rank r. Of an
    /// all-to-all, entry s * members + r is the number of elements that rank s sends to rank r. For collectives on arrays that are not in place.
    pub part_counts: *const u64,
    /// Number of entries of `part_counts`: that of the members, or its square for an all-to-all.
    pub part_counts_length: u64,
    /// 1 if `output` is also the input of a collective with parts, and there is no `input`. For collectives on arrays.
    pub in_place: u32,
    /// 0.
    pub reserved_end: u32,
}

// SAFETY: needed to copy it by its bytes. It has the layout of C and begins with its size. It consists of numbers and raw pointers, so every bit
// pattern is a value: a pointer is not read here.
unsafe impl Sized32 for CollectiveRecord {
    const SIZE_MIN: usize = offset_of!(Self, custom_reduction);
}

impl CollectiveRecord {
    pub(super) const fn in_place(kind: u32, values: *mut c_void, count: u64, element: u32) -> Self {
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
            custom_reduction: 0,
            part_counts: std::ptr::null(),
            part_counts_length: 0,
            in_place: 0,
            reserved_end: 0,
        }
    }

    /// Returns `true` if every member has the whole array.
    pub(super) const fn is_whole(&self) -> bool {
        matches!(
            self.kind,
            RACKLOOM_ALL_REDUCE
                | RACKLOOM_REDUCE
                | RACKLOOM_BROADCAST
                | RACKLOOM_SCAN
                | RACKLOOM_EXCLUSIVE_SCAN
        )
    }

    /// Returns `true` if the data is in slices of regions.
    pub(super) const fn has_slices(&self) -> bool {
        self.input_slice.region != 0 || self.output_slice.region != 0
    }

    pub(super) fn is_in_place(&self) -> Result<bool, Failure> {
        truth("in_place", self.in_place)
    }
}

pub(super) fn reduction(number: u32) -> Result<ReduceOperation, Failure> {
    match number {
        RACKLOOM_SUM => Ok(ReduceOperation::Sum),
        RACKLOOM_MIN => Ok(ReduceOperation::Min),
        RACKLOOM_MAX => Ok(ReduceOperation::Max),
        RACKLOOM_PRODUCT => Ok(ReduceOperation::Product),
        _ => Err(unknown("reduction", number)),
    }
}

pub(super) fn element(number: u32) -> Result<ElementType, Failure> {
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

/// Returns the number of a kind of collective.
pub(super) const fn kind_of(collective: Collective) -> u32 {
    match collective {
        Collective::Barrier => RACKLOOM_BARRIER,
        Collective::AllReduce => RACKLOOM_ALL_REDUCE,
        Collective::Reduce { .. } => RACKLOOM_REDUCE,
        Collective::Broadcast { .. } => RACKLOOM_BROADCAST,
        Collective::AllGather => RACKLOOM_ALL_GATHER,
        Collective::ReduceScatter => RACKLOOM_REDUCE_SCATTER,
        Collective::AllToAll => RACKLOOM_ALL_TO_ALL,
        Collective::Gather { .. } => RACKLOOM_GATHER,
        Collective::Scatter { .. } => RACKLOOM_SCATTER,
        Collective::Scan => RACKLOOM_SCAN,
        Collective::ExclusiveScan => RACKLOOM_EXCLUSIVE_SCAN,
    }
}
