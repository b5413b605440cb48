//! Operations that kernels begin: rings of commands that a node serves.

use std::ffi::{CString, c_char};
use std::sync::{Arc, OnceLock};

use rackloom::fabric::{CommandQueue, Node};
use rackloom::gpu::commands::{Command, QueueArgument, SLOTS_MAX, Status};
use rackloom::gpu::kernels::DEVICE_HEADER;

use crate::codes::{ErrorCode, Failure};
use crate::guard::{self, with_pointers};
use crate::handles;
use crate::node::NodeHandle;
use crate::pointers::{Out, array};

/// Handle of a ring of commands.
pub type CommandQueueHandle = u64;

/// Command: writes a word of 4 or 8 bytes, the operand.
pub const RACKLOOM_COMMAND_STORE: u32 = 1;
/// Command: reads bytes into a local region.
pub const RACKLOOM_COMMAND_LOAD: u32 = 2;
/// Command: copies bytes of a local region to the peer.
pub const RACKLOOM_COMMAND_PUT: u32 = 3;
/// Command: copies bytes of the peer, of any length, into a local region.
pub const RACKLOOM_COMMAND_GET: u32 = 4;
/// Command: adds to a word and returns the old value.
pub const RACKLOOM_COMMAND_FETCH_ADD: u32 = 5;
/// Command: replaces a word that equals `compare` and returns the old value.
pub const RACKLOOM_COMMAND_COMPARE_SWAP: u32 = 6;
/// Command: replaces a word and returns the old value.
pub const RACKLOOM_COMMAND_SWAP: u32 = 7;
/// Command: ends when everything before it is visible.
pub const RACKLOOM_COMMAND_FLUSH: u32 = 8;
/// Command: later commands become visible after earlier ones.
pub const RACKLOOM_COMMAND_FENCE: u32 = 9;

/// Flag of a command: no thread waits for the end, and the ticket is not polled. The next flush reports a failure.
pub const RACKLOOM_COMMAND_POSTED: u32 = 1;
/// Flag of a put: it ends with a signal.
pub const RACKLOOM_COMMAND_SIGNAL: u32 = 2;
/// Flag of a signal: the value is added to the word, and does not replace it.
pub const RACKLOOM_COMMAND_SIGNAL_ADDS: u32 = 4;
/// Flag of a command with a word: it has 4 bytes.
pub const RACKLOOM_COMMAND_WIDTH_4: u32 = 0x4_0000;
/// Flag of a command with a word: it has 8 bytes.
pub const RACKLOOM_COMMAND_WIDTH_8: u32 = 0x8_0000;

/// Status of a command: it is done and visible.
pub const RACKLOOM_STATUS_DONE: u32 = 0;
/// Status of a command: it has no meaning.
pub const RACKLOOM_STATUS_INVALID: u32 = 1;
/// Status of a command: the peer refused.
pub const RACKLOOM_STATUS_REFUSED: u32 = 2;
/// Status of a command: the peer is lost, and nothing was done.
pub const RACKLOOM_STATUS_LOST: u32 = 3;
/// Status of a command: the peer is lost, and the command may have been done.
pub const RACKLOOM_STATUS_OUTCOME_UNKNOWN: u32 = 4;
/// Status of a command: the ring is not served any more.
pub const RACKLOOM_STATUS_CLOSED: u32 = 5;

/// Addresses of a ring, the argument of kernels: `struct rackloom_queue` of `rackloom_kernel_header`. The layout does
/// not change.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CommandRingRecord {
    /// Address of two words: 1 if the ring is closed, and the number of lost peers.
    pub control: u64,
    /// Address of the slots' replies, 64 bytes for each slot: state and value.
    pub replies: u64,
    /// Address of the slots' commands, 128 bytes for each slot.
    pub commands: u64,
    /// Address in the memory of the device: the counter of tickets and, from byte 64 on, the round that each slot is
    /// free for, in 8 bytes.
    pub head: u64,
    /// Number of slots, a power of two.
    pub slots: u64,
}

impl From<QueueArgument> for CommandRingRecord {
    fn from(argument: QueueArgument) -> Self {
        let QueueArgument { control, replies, commands, head, slots } = argument;
        Self { control, replies, commands, head, slots }
    }
}

/// Command in the layout of its slot: `struct rackloom_command` of `rackloom_kernel_header`. The layout does not
/// change.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CommandRecord {
    /// Kind, such as `RACKLOOM_COMMAND_PUT`.
    pub kind: u32,
    /// Number of the peer. `RACKLOOM_ANY_NODE` for a flush or a fence of all peers.
    pub peer: u32,
    /// Number of the peer's region.
    pub region: u32,
    /// A sum of flags, such as `RACKLOOM_COMMAND_POSTED`.
    pub flags: u32,
    /// Offset of the first byte in the peer's region.
    pub offset: u64,
    /// Key of the peer's region.
    pub key: u64,
    /// Number of the local region.
    pub local_region: u32,
    /// Number of the peer's region that has the word of the signal.
    pub signal_region: u32,
    /// Offset of the first byte in the local region.
    pub local_offset: u64,
    /// Length, in bytes.
    pub length: u64,
    /// Value that is stored or added.
    pub operand: u64,
    /// Value that a compare-and-swap expects.
    pub compare: u64,
    /// Offset of the word of the signal in its region.
    pub signal_offset: u64,
    /// Key of the signal's region.
    pub signal_key: u64,
    /// Value of the signal.
    pub signal_value: u64,
}

impl From<CommandRecord> for Command {
    fn from(record: CommandRecord) -> Self {
        let CommandRecord { kind, peer, region, flags, offset, key, local_region, signal_region, .. } =
            record;
        let CommandRecord { local_offset, length, operand, compare, .. } = record;
        let CommandRecord { signal_offset, signal_key, signal_value, .. } = record;
        Self {
            kind,
            peer,
            region,
            flags,
            offset,
            key,
            local_region,
            signal_region,
            local_offset,
            length,
            operand,
            compare,
            signal_offset,
            signal_key,
            signal_value,
        }
    }
}

const fn number_of(status: Status) -> u32 {
    match status {
        Status::Done => RACKLOOM_STATUS_DONE,
        Status::Invalid => RACKLOOM_STATUS_INVALID,
        Status::Refused => RACKLOOM_STATUS_REFUSED,
        Status::Lost => RACKLOOM_STATUS_LOST,
        Status::OutcomeUnknown => RACKLOOM_STATUS_OUTCOME_UNKNOWN,
        Status::Closed => RACKLOOM_STATUS_CLOSED,
    }
}

fn get(queue: CommandQueueHandle) -> Result<Arc<CommandQueue>, Failure> {
    handles::get(queue)
}

/// Opens a ring of at least `slots` slots, 1 to 65536, through which kernels begin operations of a node. The node must
/// have a region on the device that runs the kernels; a fake device serves tests. The node serves the ring with its own
/// threads: new commands begin and completions go back without a call of the program. A node with an open ring does not
/// sleep. The ring keeps the node until it is freed.
///
/// Errors: BAD_ARGUMENT for another number of slots; INVALID if the node has no region on a device; SYSTEM if the
/// device has no memory; CLOSED.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_command_queue_create(
    node: NodeHandle,
    slots: u32,
    queue: *mut CommandQueueHandle,
) -> ErrorCode {
    with_pointers!({
        let queue = Out::new(queue)?;
        let node = handles::get::<Node>(node)?;
        if slots == 0 || slots > SLOTS_MAX {
            return Err(Failure::argument(format!("a ring has 1 to {SLOTS_MAX} slots, not {slots}")));
        }
        queue.set(handles::add(Arc::new(node.command_queue(slots)?))?);
        Ok(())
    })
}

/// Closes a ring and frees its handle. All waits of kernels end with the status closed. The memory of the ring stays
/// until the node ends, because a kernel may still read it.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn rackloom_command_queue_free(queue: CommandQueueHandle) -> ErrorCode {
    guard::call(|| handles::free::<Arc<CommandQueue>>(queue))
}

/// Writes the addresses of a ring, which kernels get as an argument by value. The kernels include
/// `rackloom_kernel_header`.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_command_queue_ring(
    queue: CommandQueueHandle,
    ring: *mut CommandRingRecord,
) -> ErrorCode {
    with_pointers!({
        let ring = Out::new(ring)?;
        ring.set(get(queue)?.argument().into());
        Ok(())
    })
}

/// Issues a command from a thread of the host in place of a kernel, for tests and for machines without a GPU. A ring
/// serves either kernels or threads of the host. `ticket` gets the number with which `rackloom_command_queue_poll`
/// finds the end. A slot stays occupied until then, or until a posted command has ended. A command that has no meaning
/// ends with a status.
///
/// Errors: BUSY if no slot is free; CLOSED if the ring is not served any more.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_command_queue_issue(
    queue: CommandQueueHandle,
    command: *const CommandRecord,
    ticket: *mut u64,
) -> ErrorCode {
    with_pointers!({
        let ticket = Out::new(ticket)?;
        let queue = get(queue)?;
        let command = array(command, 1)?[0];
        let closed = |_: Status| Failure::new(ErrorCode::Closed, "the ring is not served any more");
        let busy = || Failure::new(ErrorCode::Busy, "the ring has no free slot; hint: poll earlier tickets");
        ticket.set(queue.host_kernel().try_issue(&command.into()).map_err(closed)?.ok_or_else(busy)?);
        Ok(())
    })
}

/// Writes the status of a command of `rackloom_command_queue_issue`, one of `RACKLOOM_STATUS_...`, if it has ended.
/// `value`, which may be null, gets the old value of an atomic. One thread polls each ticket, until the command has
/// ended. The ticket of a posted command is not polled.
///
/// Errors: EMPTY if the command has not ended.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_command_queue_poll(
    queue: CommandQueueHandle,
    ticket: u64,
    status: *mut u32,
    value: *mut u64,
) -> ErrorCode {
    with_pointers!({
        let (status, value) = (Out::new(status)?, Out::optional(value)?);
        let none = || Failure::new(ErrorCode::Empty, "the command has not ended");
        let (ended, old) = get(queue)?.host_kernel().poll(ticket).ok_or_else(none)?;
        status.set(number_of(ended));
        if let Some(value) = value {
            value.set(old);
        }
        Ok(())
    })
}

/// Writes the number of peers that the node has lost since the ring was made, as kernels see it.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_command_queue_losses(
    queue: CommandQueueHandle,
    losses: *mut u64,
) -> ErrorCode {
    with_pointers!({
        let losses = Out::new(losses)?;
        losses.set(get(queue)?.host_kernel().losses());
        Ok(())
    })
}

/// Returns the source of the header `rackloom.cuh` for kernels in CUDA, for a compiler at run time or to write it to a
/// file. It has the functions with which kernels issue commands and wait. Its names collide with those of this header,
/// so one source file includes only one of the two. The text is never freed.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn rackloom_kernel_header() -> *const c_char {
    static TEXT: OnceLock<CString> = OnceLock::new();
    TEXT.get_or_init(|| CString::new(DEVICE_HEADER).unwrap_or_default()).as_ptr()
}

#[cfg(test)]
mod tests {
    use rackloom::gpu::commands::{ANY_PEER, CommandKind, POSTED, SIGNAL, SIGNAL_ADDS};

    use super::*;
    use crate::codes::RACKLOOM_ANY_NODE;

    #[test]
    fn numbers_of_commands_are_those_of_the_ring() {
        let kinds = [
            (RACKLOOM_COMMAND_STORE, CommandKind::Store),
            (RACKLOOM_COMMAND_LOAD, CommandKind::Load),
            (RACKLOOM_COMMAND_PUT, CommandKind::Put),
            (RACKLOOM_COMMAND_GET, CommandKind::Get),
            (RACKLOOM_COMMAND_FETCH_ADD, CommandKind::FetchAdd),
            (RACKLOOM_COMMAND_COMPARE_SWAP, CommandKind::CompareSwap),
            (RACKLOOM_COMMAND_SWAP, CommandKind::Swap),
            (RACKLOOM_COMMAND_FLUSH, CommandKind::Flush),
            (RACKLOOM_COMMAND_FENCE, CommandKind::Fence),
        ];
        for (number, kind) in kinds {
            let command = Command { kind: number, ..Command::default() };
            assert_eq!(command.kind(), Some(kind));
        }
        let next = Command { kind: RACKLOOM_COMMAND_FENCE + 1, ..Command::default() };
        assert_eq!(next.kind(), None, "the ring has a kind without a constant");
        let flags = [RACKLOOM_COMMAND_POSTED, RACKLOOM_COMMAND_SIGNAL, RACKLOOM_COMMAND_SIGNAL_ADDS];
        assert_eq!(flags, [POSTED, SIGNAL, SIGNAL_ADDS]);
        for (flags, width) in [(RACKLOOM_COMMAND_WIDTH_4, 4), (RACKLOOM_COMMAND_WIDTH_8, 8)] {
            assert_eq!(Command { flags, ..Command::default() }.width(), width);
        }
        assert_eq!(RACKLOOM_ANY_NODE, ANY_PEER);
    }

    /// Kernels read the numbers of the ring.
    #[test]
    fn numbers_of_a_status_are_those_of_the_ring() {
        let all = [
            Status::Done,
            Status::Invalid,
            Status::Refused,
            Status::Lost,
            Status::OutcomeUnknown,
            Status::Closed,
        ];
        for status in all {
            assert_eq!(number_of(status), u32::from(status as u8), "{status:?}");
        }
    }

    #[test]
    fn the_layouts_are_those_of_the_ring() {
        assert_eq!(size_of::<CommandRecord>(), size_of::<Command>());
        assert_eq!(size_of::<CommandRingRecord>(), size_of::<QueueArgument>());
    }
}
