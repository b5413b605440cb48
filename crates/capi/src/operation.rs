//! Operations on the memory of peers, messages, waits.

use std::ffi::c_void;
use std::sync::Arc;
use std::time::Duration;

use rackloom::fabric::{Condition, Ended, Node, Outcome, Queue, Region, Request, Signal, SignalKind, Word};

use crate::codes::{CompletionRecord, ErrorCode, Failure, RACKLOOM_ANY_NODE};
use crate::guard::with_pointers;
use crate::handles::{self, Exclusive};
use crate::node::NodeHandle;
use crate::pending::PendingHandle;
use crate::pointers::{self, Out, Sized32, array, put_end, versioned};
use crate::queue::QueueHandle;
use crate::region::{Address, LocalSlice, RegionHandle};

/// Writes `length` bytes at `data` (1 to 16384) at `target`.
pub const RACKLOOM_STORE: u32 = 1;
/// Reads 1 to 16384 bytes at `target` into `local`.
pub const RACKLOOM_LOAD: u32 = 2;
/// Copies `local` to `target`.
pub const RACKLOOM_PUT: u32 = 3;
/// Copies `local` to `target`, and then updates the word of `signal`.
pub const RACKLOOM_PUT_WITH_SIGNAL: u32 = 4;
/// Copies bytes at `target` to `local`.
pub const RACKLOOM_GET: u32 = 5;
/// Updates a word at `target`: fields `atomic`, `word`, `operand`, `compare`.
pub const RACKLOOM_ATOMIC: u32 = 6;
/// Waits for the 8-byte word at `local.offset` of `local.region`: fields `condition`, `operand`, and `peer`, whose loss ends the wait.
pub const RACKLOOM_WAIT_UNTIL: u32 = 7;
/// Orders operations to `peer`, or to all nodes.
pub const RACKLOOM_FENCE: u32 = 8;
/// Completes when all earlier operations to `peer`, or to all nodes, are visible.
pub const RACKLOOM_FLUSH: u32 = 9;
/// Sends `local` as a message with `tag` to `peer`.
pub const RACKLOOM_SEND: u32 = 10;
/// Receives a message from `peer`, or from any node, into `local`: fields `tag`, `ignore`.
pub const RACKLOOM_RECEIVE: u32 = 11;

/// Atomic: adds, wrapping.
pub const RACKLOOM_FETCH_ADD: u32 = 1;
/// Atomic: keeps the bits that the operand has.
pub const RACKLOOM_FETCH_AND: u32 = 2;
/// Atomic: sets the bits of the operand.
pub const RACKLOOM_FETCH_OR: u32 = 3;
/// Atomic: inverts the bits of the operand.
pub const RACKLOOM_FETCH_XOR: u32 = 4;
/// Atomic: replaces the word by the operand if that is smaller.
pub const RACKLOOM_FETCH_MIN: u32 = 5;
/// Atomic: replaces the word by the operand if that is larger.
pub const RACKLOOM_FETCH_MAX: u32 = 6;
/// Atomic: replaces the word by the operand.
pub const RACKLOOM_SWAP: u32 = 7;
/// Atomic: replaces the word by the operand if it equals `compare`.
pub const RACKLOOM_COMPARE_SWAP: u32 = 8;

/// Word of 4 bytes without a sign.
pub const RACKLOOM_U32: u32 = 1;
/// Word of 4 bytes with a sign.
pub const RACKLOOM_I32: u32 = 2;
/// Word of 8 bytes without a sign.
pub const RACKLOOM_U64: u32 = 3;
/// Word of 8 bytes with a sign.
pub const RACKLOOM_I64: u32 = 4;

/// Condition: the word equals the value.
pub const RACKLOOM_EQUAL: u32 = 1;
/// Condition: the word differs from the value.
pub const RACKLOOM_NOT_EQUAL: u32 = 2;
/// Condition: the word is at least the value, both without a sign.
pub const RACKLOOM_AT_LEAST: u32 = 3;

/// Signal: stores the value in the word.
pub const RACKLOOM_SIGNAL_SET: u32 = 1;
/// Signal: adds the value to the word, wrapping.
pub const RACKLOOM_SIGNAL_ADD: u32 = 2;

/// Update of a word of 8 bytes at the node of a put, which becomes visible after the data. The layout does not change.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SignalRecord {
    /// Number of the region of the word.
    pub region: u32,
    /// One of `RACKLOOM_SIGNAL_...`.
    pub kind: u32,
    /// Offset of the word, a multiple of 8.
    pub offset: u64,
    /// Key of the region.
    pub key: u64,
    /// Operand.
    pub value: u64,
}

impl SignalRecord {
    fn read(self) -> Result<Signal, Failure> {
        use rackloom::fabric::{Key, RegionId};
        let Self { region, kind, offset, key, value } = self;
        let kind = match kind {
            RACKLOOM_SIGNAL_SET => SignalKind::Set,
            RACKLOOM_SIGNAL_ADD => SignalKind::Add,
            _ => return Err(unknown("kind of signal", kind)),
        };
        Ok(Signal { region: RegionId(region), offset, key: Key(key), kind, value })
    }
}

/// Description of one operation. The kind decides which fields are used. Set the others to 0.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// sizeof(rackloom_operation).
    pub size: u32,
    /// Kind of operation, such as `RACKLOOM_PUT`.
    pub kind: u32,
    /// Address at the peer.
    pub target: Address,
    /// Local end of a transfer, or the word of a wait.
    pub local: LocalSlice,
    /// Bytes of a store. They are copied when the operation begins.
    pub data: *const c_void,
    /// Number of bytes of a store.
    pub length: u64,
    /// Signal of a put.
    pub signal: SignalRecord,
    /// Kind of atomic, such as `RACKLOOM_FETCH_ADD`.
    pub atomic: u32,
    /// Type of the word of an atomic, such as `RACKLOOM_U64`.
    pub word: u32,
    /// Operand of an atomic, or value of a wait.
    pub operand: u64,
    /// Expected word of `RACKLOOM_COMPARE_SWAP`.
    pub compare: u64,
    /// Condition of a wait, such as `RACKLOOM_EQUAL`.
    pub condition: u32,
    /// Peer of a wait, fence, flush or message. `RACKLOOM_ANY_NODE`: all nodes, or any node.
    pub peer: u32,
    /// Tag of a message.
    pub tag: u64,
    /// Bits of the tag that a receive ignores.
    pub ignore: u64,
}

// SAFETY: needed to copy it by its bytes. It has the layout of C and begins with its size. It consists of numbers and raw pointers, so every bit
// pattern is a value: a pointer is not read here.
unsafe impl Sized32 for Operation {
    const SIZE_MIN: usize = size_of::<Self>();
}

pub(crate) fn unknown(what: &str, number: u32) -> Failure {
    Failure::argument(format!("there is no {what} {number}"))
}

fn optional_peer(peer: u32) -> Result<Option<rackloom::fabric::NodeId>, Failure> {
    if peer == RACKLOOM_ANY_NODE { Ok(None) } else { pointers::node(peer).map(Some) }
}

fn condition(number: u32) -> Result<Condition, Failure> {
    match number {
        RACKLOOM_EQUAL => Ok(Condition::Equal),
        RACKLOOM_NOT_EQUAL => Ok(Condition::NotEqual),
        RACKLOOM_AT_LEAST => Ok(Condition::AtLeast),
        _ => Err(unknown("condition", number)),
    }
}

/// Makes the request of an operation.
///
/// # Safety
/// The bytes of a store are valid for reads and do not change during `'a`.
pub(crate) unsafe fn request<'a>(node: &Node, operation: &Operation) -> Result<Request<'a, Ended>, Failure> {
    let target = || operation.target.read();
    let local = || operation.local.read();
    Ok(match operation.kind {
        RACKLOOM_STORE => {
            // SAFETY: needed because the bytes are memory of C. The caller makes the promise.
            let data = unsafe { array::<u8>(operation.data.cast(), operation.length)? };
            node.store(target()?, data).untyped()
        }
        RACKLOOM_LOAD => node.load(target()?, &local()?).untyped(),
        RACKLOOM_PUT => node.put(&local()?, target()?).untyped(),
        RACKLOOM_PUT_WITH_SIGNAL => {
            node.put_with_signal(&local()?, target()?, operation.signal.read()?).untyped()
        }
        RACKLOOM_GET => node.get(target()?, &local()?).untyped(),
        RACKLOOM_ATOMIC => match operation.word {
            RACKLOOM_U32 => {
                atomic::<u32>(node, operation, operation.operand as u32, operation.compare as u32)?
            }
            RACKLOOM_I32 => {
                atomic::<i32>(node, operation, operation.operand as i32, operation.compare as i32)?
            }
            RACKLOOM_U64 => atomic::<u64>(node, operation, operation.operand, operation.compare)?,
            RACKLOOM_I64 => {
                atomic::<i64>(node, operation, operation.operand as i64, operation.compare as i64)?
            }
            word => return Err(unknown("type of word", word)),
        },
        RACKLOOM_WAIT_UNTIL => {
            let region = handles::get::<Region>(operation.local.region)?;
            let (condition, from) = (condition(operation.condition)?, pointers::node(operation.peer)?);
            node.wait_until(&region, operation.local.offset, condition, operation.operand, from).untyped()
        }
        RACKLOOM_FENCE => node.fence(optional_peer(operation.peer)?).untyped(),
        RACKLOOM_FLUSH => node.flush(optional_peer(operation.peer)?).untyped(),
        RACKLOOM_SEND => node.send(pointers::node(operation.peer)?, operation.tag, &local()?).untyped(),
        RACKLOOM_RECEIVE => {
            let source = optional_peer(operation.peer)?;
            node.receive(source, operation.tag, operation.ignore, &local()?).untyped()
        }
        kind => return Err(unknown("kind of operation", kind)),
    })
}

fn atomic<W: Word + Outcome>(
    node: &Node,
    operation: &Operation,
    operand: W,
    compare: W,
) -> Result<Request<'static, Ended>, Failure> {
    let target = operation.target.read()?;
    Ok(match operation.atomic {
        RACKLOOM_FETCH_ADD => node.fetch_add(target, operand),
        RACKLOOM_FETCH_AND => node.fetch_and(target, operand),
        RACKLOOM_FETCH_OR => node.fetch_or(target, operand),
        RACKLOOM_FETCH_XOR => node.fetch_xor(target, operand),
        RACKLOOM_FETCH_MIN => node.fetch_min(target, operand),
        RACKLOOM_FETCH_MAX => node.fetch_max(target, operand),
        RACKLOOM_SWAP => node.swap(target, operand),
        RACKLOOM_COMPARE_SWAP => node.compare_swap(target, compare, operand),
        kind => return Err(unknown("kind of atomic", kind)),
    }
    .untyped())
}

/// Begins an operation and waits until it has ended, at most for `timeout_ns`. The calling thread drives the node meanwhile. If the queue towards the peer
/// is full, the call waits for space. At the deadline a receive or a wait is cancelled, and has taken nothing; other operations continue without a
/// completion. `end` may be null and gets value, sender and tag.
///
/// Errors: BAD_ARGUMENT for unknown constants; handles of `local`; INVALID, NO_SUCH_NODE, REFUSED, FAILED, PEER_LOST, PEER_LEFT, TIMED_OUT, CLOSED.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_operation_wait(
    node: NodeHandle,
    operation: *const Operation,
    timeout_ns: u64,
    end: *mut CompletionRecord,
) -> ErrorCode {
    with_pointers!({
        let end = Out::optional(end)?;
        let node = handles::get::<Node>(node)?;
        let request = request(&node, &versioned(operation)?)?;
        put_end(end, 0, request.wait_for(Duration::from_nanos(timeout_ns)).map_err(Failure::from))
    })
}

/// Begins an operation and returns at once, with a handle to test it and to wait for it. Local bytes of a put or a send must not change until it has
/// ended.
///
/// Errors: BUSY; errors of `rackloom_operation_wait` that are known at once.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_operation_start(
    node: NodeHandle,
    operation: *const Operation,
    pending: *mut PendingHandle,
) -> ErrorCode {
    with_pointers!({
        let pending = Out::new(pending)?;
        let node = handles::get::<Node>(node)?;
        let started = request(&node, &versioned(operation)?)?.start()?;
        pending.set(handles::add(Exclusive::new(started))?);
        Ok(())
    })
}

/// Begins an operation and returns at once. Its completion, with `context`, arrives in `queue`. `number` may be null and gets the number of the operation, for
/// `rackloom_node_cancel`.
///
/// Errors: BUSY; errors of `rackloom_operation_wait` that are known at once.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_operation_submit(
    node: NodeHandle,
    operation: *const Operation,
    queue: QueueHandle,
    context: u64,
    number: *mut u64,
) -> ErrorCode {
    with_pointers!({
        let number = Out::optional(number)?;
        let (node, queue) = (handles::get::<Node>(node)?, handles::get::<Arc<Queue>>(queue)?);
        let submitted = request(&node, &versioned(operation)?)?.submit(&queue, context)?;
        if let Some(number) = number {
            number.set(submitted.0);
        }
        Ok(())
    })
}

/// Begins several operations together, so that those to one peer share frames. Completion `i` has the context `context + i`. `taken` gets the number of
/// operations that began: fewer than `count` if the queue towards a peer is full; poll, and continue from there. An operation that is refused at once
/// counts as taken, and its completion says why. `stride` is the distance between operations in bytes, usually sizeof(rackloom_operation).
///
/// Errors: BAD_ARGUMENT for unknown constants and handles of `local`, before anything begins.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_operations_submit(
    node: NodeHandle,
    operations: *const Operation,
    stride: u64,
    count: u64,
    queue: QueueHandle,
    context: u64,
    taken: *mut u64,
) -> ErrorCode {
    with_pointers!({
        let taken = Out::new(taken)?;
        let (node, queue) = (handles::get::<Node>(node)?, handles::get::<Arc<Queue>>(queue)?);
        let bytes = stride.checked_mul(count).filter(|_| stride > 0);
        let bytes = bytes.ok_or_else(|| Failure::argument("the operations have no length"))?;
        let all = array::<u8>(operations.cast(), bytes)?;
        let mut batch = node.batch();
        for (index, one) in (0..count).zip(all.chunks_exact(stride as usize)) {
            let size = one.first_chunk().map(|size| u32::from_ne_bytes(*size));
            if size.is_none_or(|size| u64::from(size) > stride) {
                return Err(Failure::new(ErrorCode::BadSize, "an operation is longer than the stride"));
            }
            let operation = versioned(one.as_ptr().cast::<Operation>())?;
            batch.add(request(&node, &operation)?, context.wrapping_add(index))?;
        }
        taken.set(batch.submit(&queue) as u64);
        Ok(())
    })
}

/// Begins an operation without a completion, and returns when the node has accepted it. The next flush towards its peer waits for it and reports a failure.
/// Local bytes must not be used until then. Receives, waits and flushes cannot be posted.
///
/// Errors: INVALID, NO_SUCH_NODE, PEER_LOST, PEER_LEFT, CLOSED.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_operation_post(node: NodeHandle, operation: *const Operation) -> ErrorCode {
    with_pointers!({
        let node = handles::get::<Node>(node)?;
        Ok(request(&node, &versioned(operation)?)?.posted().wait()?)
    })
}

/// Writes 1 to 16384 bytes at `target`, and waits until they are visible there.
///
/// Errors: those of `rackloom_operation_wait`.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_store(
    node: NodeHandle,
    target: Address,
    data: *const c_void,
    length: u64,
) -> ErrorCode {
    with_pointers!({
        let node = handles::get::<Node>(node)?;
        Ok(node.store(target.read()?, array::<u8>(data.cast(), length)?).wait()?)
    })
}

/// Reads 1 to 16384 bytes at `source` into a slice of this node.
///
/// Errors: those of `rackloom_operation_wait`.
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn rackloom_load(node: NodeHandle, source: Address, into: LocalSlice) -> ErrorCode {
    crate::guard::call(|| Ok(handles::get::<Node>(node)?.load(source.read()?, &into.read()?).wait()?))
}

/// Copies a slice of this node to `target`, and waits until it is visible there.
///
/// Errors: those of `rackloom_operation_wait`.
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn rackloom_put(node: NodeHandle, source: LocalSlice, target: Address) -> ErrorCode {
    crate::guard::call(|| Ok(handles::get::<Node>(node)?.put(&source.read()?, target.read()?).wait()?))
}

/// Copies a slice of this node to `target`, and then updates a word of 8 bytes at the same node. A reader that sees the new word sees the data.
///
/// Errors: those of `rackloom_operation_wait`.
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn rackloom_put_with_signal(
    node: NodeHandle,
    source: LocalSlice,
    target: Address,
    signal: SignalRecord,
) -> ErrorCode {
    crate::guard::call(|| {
        let node = handles::get::<Node>(node)?;
        Ok(node.put_with_signal(&source.read()?, target.read()?, signal.read()?).wait()?)
    })
}

/// Copies bytes at `source` to a slice of this node.
///
/// Errors: those of `rackloom_operation_wait`.
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn rackloom_get(node: NodeHandle, source: Address, into: LocalSlice) -> ErrorCode {
    crate::guard::call(|| Ok(handles::get::<Node>(node)?.get(source.read()?, &into.read()?).wait()?))
}

/// Updates a word of 4 or 8 bytes at `target`: `atomic` is the kind, such as `RACKLOOM_FETCH_ADD`, `word` the type of the word, such as `RACKLOOM_U64`.
/// `compare` is the expected word of `RACKLOOM_COMPARE_SWAP`. `old` may be null and gets the old word.
///
/// Errors: those of `rackloom_operation_wait`.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_atomic(
    node: NodeHandle,
    target: Address,
    atomic: u32,
    word: u32,
    operand: u64,
    compare: u64,
    old: *mut u64,
) -> ErrorCode {
    with_pointers!({
        let old = Out::optional(old)?;
        let node = handles::get::<Node>(node)?;
        let operation =
            Operation { target, atomic, word, operand, compare, ..Operation::of(RACKLOOM_ATOMIC) };
        let ended = request(&node, &operation)?.wait()?;
        if let Some(old) = old {
            old.set(ended.value);
        }
        Ok(())
    })
}

impl Operation {
    /// Returns an operation of a kind, all of whose fields are 0.
    const fn of(kind: u32) -> Self {
        let (region, offset, key, length, value) = (0, 0, 0, 0, 0);
        Self {
            size: size_of::<Self>() as u32,
            kind,
            target: Address { node: 0, region, offset, key },
            local: LocalSlice { region: 0, offset, length },
            data: std::ptr::null(),
            length,
            signal: SignalRecord { region, kind: 0, offset, key, value },
            atomic: 0,
            word: 0,
            operand: 0,
            compare: 0,
            condition: 0,
            peer: 0,
            tag: 0,
            ignore: 0,
        }
    }
}

/// Waits until the 8-byte word at `offset` of a region of this node satisfies a condition, such as `RACKLOOM_EQUAL`. The loss of `from` ends the wait.
/// The word is checked now and after each change by a peer. A write by this process causes no check. `word` may be null and gets the word.
///
/// Errors: those of `rackloom_operation_wait`.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_wait_until(
    node: NodeHandle,
    region: RegionHandle,
    offset: u64,
    condition_kind: u32,
    value: u64,
    from: u32,
    word: *mut u64,
) -> ErrorCode {
    with_pointers!({
        let word = Out::optional(word)?;
        let (node, region) = (handles::get::<Node>(node)?, handles::get::<Region>(region)?);
        let (condition, from) = (condition(condition_kind)?, pointers::node(from)?);
        let found = node.wait_until(&region, offset, condition, value, from).wait()?;
        if let Some(word) = word {
            word.set(found);
        }
        Ok(())
    })
}

/// Orders operations to `peer`, or to all nodes (`RACKLOOM_ANY_NODE`): those that begin later become visible only after those that began before.
///
/// Errors: NO_SUCH_NODE, CLOSED.
/// Threads: any. It orders the operations of the node, of all threads.
#[unsafe(no_mangle)]
pub extern "C" fn rackloom_fence(node: NodeHandle, peer: u32) -> ErrorCode {
    crate::guard::call(|| Ok(handles::get::<Node>(node)?.fence(optional_peer(peer)?).wait()?))
}

/// Waits until all operations to `peer`, or to all nodes (`RACKLOOM_ANY_NODE`), that began before are visible.
///
/// Errors: REFUSED, PEER_LOST or PEER_LEFT with the target of a posted operation that failed, one for each call; NO_SUCH_NODE, CLOSED.
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn rackloom_flush(node: NodeHandle, peer: u32) -> ErrorCode {
    crate::guard::call(|| Ok(handles::get::<Node>(node)?.flush(optional_peer(peer)?).wait()?))
}

/// Sends a slice of this node as a message with `tag`, and waits until the peer holds it.
///
/// Errors: those of `rackloom_operation_wait`.
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn rackloom_send(node: NodeHandle, peer: u32, tag: u64, source: LocalSlice) -> ErrorCode {
    crate::guard::call(|| {
        let node = handles::get::<Node>(node)?;
        Ok(node.send(pointers::node(peer)?, tag, &source.read()?).wait()?)
    })
}

/// Receives the oldest message whose tag equals `tag` in all bits that `ignore` does not set, from `source` or from any node (`RACKLOOM_ANY_NODE`). `end` may be
/// null and gets sender (`peer`), tag and length (`value`).
///
/// Errors: those of `rackloom_operation_wait`; FAILED with the reason MESSAGE_TRUNCATED if the message is longer than the slice.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_receive(
    node: NodeHandle,
    source: u32,
    tag: u64,
    ignore: u64,
    into: LocalSlice,
    end: *mut CompletionRecord,
) -> ErrorCode {
    with_pointers!({
        let end = Out::optional(end)?;
        let node = handles::get::<Node>(node)?;
        let request = node.receive(optional_peer(source)?, tag, ignore, &into.read()?).untyped();
        put_end(end, 0, request.wait().map_err(Failure::from))
    })
}
