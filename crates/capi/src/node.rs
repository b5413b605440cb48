//! Nodes: seats, paths, counters, departure.

use std::ffi::c_char;
use std::mem::offset_of;
use std::time::Duration;

use rackloom::fabric::{Node, NodeCounters, RegionId};

use crate::codes::{ErrorCode, Failure};
use crate::guard::{self, with_pointers};
use crate::handles;
use crate::library::{TextHandle, add_text};
use crate::pointers::{self, Out, Sized32, array, put_versioned, text};

/// Handle of a GPU node of this process.
pub type NodeHandle = u64;

macro_rules! counters {
    ($($name:ident),+) => {
        impl CountersRecord {
            const fn of(size: u32, counters: &NodeCounters) -> Self {
                Self { size, reserved: 0, $($name: counters.$name),+ }
            }
        }
    };
}

/// Counters of a node since its start. Bytes are those of whole Ethernet frames. `size` is set by the program.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CountersRecord {
    /// sizeof(rackloom_counters).
    pub size: u32,
    /// 0.
    pub reserved: u32,
    /// Polls of the node by threads of the program.
    pub polls_by_callers: u64,
    /// Polls by the background thread.
    pub polls_by_background: u64,
    /// Operations of this node that have ended.
    pub operations_ended: u64,
    /// Operations on memory of other nodes of this server, mapped or copied, which need no frame.
    pub direct_operations: u64,
    /// Bytes that those operations moved.
    pub direct_bytes: u64,
    /// Frames sent, of all kinds.
    pub frames_sent: u64,
    /// Bytes of the frames sent.
    pub bytes_sent: u64,
    /// Data frames sent, including forwarded and retransmitted ones.
    pub data_frames_sent: u64,
    /// Bytes of the data frames sent.
    pub data_bytes_sent: u64,
    /// Data frames of this node that were retransmitted end to end.
    pub packets_retransmitted: u64,
    /// Frames that a link replayed to its neighbour.
    pub frames_replayed: u64,
    /// Frames forwarded for other members.
    pub frames_forwarded: u64,
    /// Frames received, of all kinds.
    pub frames_received: u64,
    /// Bytes of the frames received.
    pub bytes_received: u64,
    /// Frames received and dropped.
    pub frames_dropped: u64,
    /// Frames of neighbours that did not arrive.
    pub frames_missing: u64,
    /// Number of times that sending stopped because a neighbour had no space.
    pub credit_stalls: u64,
    /// Direct puts and gets that the system copied from or to memory that the program of another process owns.
    pub copied_operations: u64,
    /// Bytes that those operations moved.
    pub copied_bytes: u64,
}

counters!(
    polls_by_callers,
    polls_by_background,
    operations_ended,
    direct_operations,
    direct_bytes,
    frames_sent,
    bytes_sent,
    data_frames_sent,
    data_bytes_sent,
    packets_retransmitted,
    frames_replayed,
    frames_forwarded,
    frames_received,
    bytes_received,
    frames_dropped,
    frames_missing,
    credit_stalls,
    copied_operations,
    copied_bytes
);

// SAFETY: needed to copy it by its bytes. It has the layout of C and begins with its size. It consists of numbers, so every bit pattern is a value.
unsafe impl Sized32 for CountersRecord {
    // Later fields came with version 1.2.
    const SIZE_MIN: usize = offset_of!(Self, copied_operations);
}

/// Takes a vacant seat of a standing rack, or a seat whose process has died. `rack` is the name of the rack, or the path of its directory if it contains a
/// slash. Returns as soon as the seat is taken; `rackloom_node_wait_until_reached` waits for peers. The node ends with the process. It has threads: a
/// process that forks does so before this call.
///
/// Errors: JOIN with a reason and a hint.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_node_join(
    rack: *const c_char,
    seat: *const c_char,
    node: *mut NodeHandle,
) -> ErrorCode {
    with_pointers!({
        let node = Out::new(node)?;
        node.set(handles::add(Node::join(text(rack)?, text(seat)?)?)?);
        Ok(())
    })
}

/// Frees the handle of a node. The node leaves the fabric with its last handle, and with it its regions, groups, drivers and operations in progress.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn rackloom_node_free(node: NodeHandle) -> ErrorCode {
    guard::call(|| handles::free::<Node>(node))
}

/// Returns the number of a node in the rack file.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_node_id(node: NodeHandle, id: *mut u32) -> ErrorCode {
    with_pointers!({
        let id = Out::new(id)?;
        id.set(handles::get::<Node>(node)?.id().0.into());
        Ok(())
    })
}

/// Writes 1 if a live path leads to `peer` now, else 0.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_node_reaches(node: NodeHandle, peer: u32, reaches: *mut u32) -> ErrorCode {
    with_pointers!({
        let reaches = Out::new(reaches)?;
        reaches.set(handles::get::<Node>(node)?.reaches(pointers::node(peer)?).into());
        Ok(())
    })
}

/// Waits until a live path leads to each of the `count` peers.
///
/// Errors: NOT_UP with the conditions that the node waits for; NO_SUCH_NODE; CLOSED.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_node_wait_until_reached(
    node: NodeHandle,
    peers: *const u32,
    count: u64,
    timeout_ns: u64,
) -> ErrorCode {
    with_pointers!({
        let node = handles::get::<Node>(node)?;
        let peers: Vec<_> =
            array(peers, count)?.iter().map(|peer| pointers::node(*peer)).collect::<Result<_, _>>()?;
        Ok(node.wait_until_reached(&peers, Duration::from_nanos(timeout_ns))?)
    })
}

/// Makes a text of the conditions that a node waits for, one in each line, for a watchdog.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_node_waiting_for(node: NodeHandle, lines: *mut TextHandle) -> ErrorCode {
    with_pointers!({
        let lines = Out::new(lines)?;
        let conditions = handles::get::<Node>(node)?.waiting_for();
        lines.set(add_text(conditions.iter().map(|line| format!("{line}\n")).collect())?);
        Ok(())
    })
}

/// Writes the counters of a node.
///
/// Errors: BAD_SIZE.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_node_counters(
    node: NodeHandle,
    counters: *mut CountersRecord,
) -> ErrorCode {
    with_pointers!({
        let found = handles::get::<Node>(node)?.counters();
        put_versioned(counters, |size| CountersRecord::of(size, &found))
    })
}

/// Leaves the fabric in order: waits for all operations of the node towards peers, says so to all members, and leaves. Peers see a departure and not a
/// death.
///
/// Errors: TIMED_OUT, and those of `rackloom_flush`; the node has then not left. CLOSED if it has left before.
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn rackloom_node_leave_in_order(node: NodeHandle, timeout_ns: u64) -> ErrorCode {
    guard::call(|| Ok(handles::get::<Node>(node)?.leave_in_order(Duration::from_nanos(timeout_ns))?))
}

/// Leaves the fabric at once, as if the process had died. All operations of the node end with CLOSED. The handle stays and must be freed.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn rackloom_node_leave(node: NodeHandle) -> ErrorCode {
    guard::call(|| {
        handles::get::<Node>(node)?.leave();
        Ok(())
    })
}

/// Waits until the number of a freed region is free again: until the operations that still use its bytes have ended.
///
/// Errors: REGION_EXISTS if a handle of the region exists; REGION_IN_USE at the deadline; CLOSED.
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn rackloom_node_wait_until_free(node: NodeHandle, region: u32, timeout_ns: u64) -> ErrorCode {
    guard::call(|| {
        let node = handles::get::<Node>(node)?;
        Ok(node.wait_until_free(RegionId(region), Duration::from_nanos(timeout_ns))?)
    })
}

/// Ends a submitted wait, or a submitted receive that has not matched a message. Its completion reports FAILED with the reason CANCELLED.
///
/// Errors: INVALID if there is no such operation, or it has ended.
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn rackloom_node_cancel(node: NodeHandle, operation: u64) -> ErrorCode {
    guard::call(|| {
        Ok::<_, Failure>(handles::get::<Node>(node)?.cancel(rackloom::fabric::OperationId(operation))?)
    })
}
