/* rackloom.h: the C library of Rackloom. docs/c-library.md is its guide.
 *
 * Made from crates/capi by cbindgen. Do not edit it.
 *
 * Results. Each function that can fail returns a rackloom_error; RACKLOOM_ERROR_OK is 0. rackloom_last_error gives the text of the
 * last failure of the calling thread. Descriptions name errors without RACKLOOM_ERROR_. Each function may also return NULL_POINTER, and for
 * handles BAD_HANDLE, FREED_HANDLE and WRONG_HANDLE_KIND. After an error, results are unchanged unless the description says otherwise.
 *
 * Handles. Objects are 64-bit numbers. 0 is never a handle. A freed handle is recognised. An object that one thread uses while another
 * frees its handle ends with the last call that uses it.
 *
 * Threads. "Threads: any" means that any number of threads may call the function at the same time, also with one handle. "Threads: one at
 * a time for each handle" means that a second call with the handle returns IN_USE while the first one runs. No function may be called in
 * a signal handler. A process that forks does so before it has nodes.
 *
 * Pointers. Memory that a pointer names is valid for the call, and no other thread changes it meanwhile. Descriptions say where it must
 * stay valid for longer. Arrays of the program do not lie in regions, except that rackloom_region_register makes a region of them.
 *
 * Structures with a field `size` begin with zeros (= {0}) and get `size` = sizeof the structure, so that later versions may have more fields.
 */

#ifndef RACKLOOM_H
#define RACKLOOM_H

#include <stddef.h>
#include <stdint.h>

/**
 * Number that names no node. In an operation that may name a peer it means all peers, or any peer.
 */
#define RACKLOOM_ANY_NODE UINT32_MAX

/**
 * Version of the interface: the major number times 1000, plus the minor number. Within a major number, functions, constants and fields of
 * structures with a size are only added.
 */
#define RACKLOOM_ABI_VERSION 1002

/**
 * Timeout without an end, in nanoseconds.
 */
#define RACKLOOM_FOREVER UINT64_MAX

/**
 * Access right: loads and gets.
 */
#define RACKLOOM_ACCESS_READ 1

/**
 * Access right: stores, puts and signals.
 */
#define RACKLOOM_ACCESS_WRITE 2

/**
 * Access right: atomics.
 */
#define RACKLOOM_ACCESS_ATOMIC 4

/**
 * All access rights.
 */
#define RACKLOOM_ACCESS_ALL 7

/**
 * No access right, of one node.
 */
#define RACKLOOM_ACCESS_NONE 8

/**
 * Access rights of the region's options, of one node.
 */
#define RACKLOOM_ACCESS_OF_OPTIONS 16

/**
 * Memory of the host.
 */
#define RACKLOOM_DEVICE_HOST 0

/**
 * Memory of the GPU whose number is given.
 */
#define RACKLOOM_DEVICE_CUDA 1

/**
 * Memory of a fake device, for tests. The number is the seed of its delays.
 */
#define RACKLOOM_DEVICE_FAKE 2

/**
 * Result of a query: a device of a kind for which this version of the header has no number.
 */
#define RACKLOOM_DEVICE_OTHER UINT32_MAX

/**
 * Reuse memory that other nodes still have mapped when none of them is in an access.
 */
#define RACKLOOM_REUSE_FOLLOW_EVENT_DEPENDENCIES 1

/**
 * Reuse memory that other nodes had mapped when all of them have closed it.
 */
#define RACKLOOM_REUSE_OPPORTUNISTIC 2

/**
 * Wait for memory that other nodes use, at most 100 ms, instead of reserving more.
 */
#define RACKLOOM_REUSE_INTERNAL_DEPENDENCIES 4

/**
 * All policies.
 */
#define RACKLOOM_REUSE_ALL 7

/**
 * No policy: memory that other nodes had mapped waits for `rackloom_pool_trim`.
 */
#define RACKLOOM_REUSE_NONE 8

/**
 * Writes `length` bytes at `data` (1 to 16384) at `target`.
 */
#define RACKLOOM_STORE 1

/**
 * Reads 1 to 16384 bytes at `target` into `local`.
 */
#define RACKLOOM_LOAD 2

/**
 * Copies `local` to `target`.
 */
#define RACKLOOM_PUT 3

/**
 * Copies `local` to `target`, and then updates the word of `signal`.
 */
#define RACKLOOM_PUT_WITH_SIGNAL 4

/**
 * Copies bytes at `target` to `local`.
 */
#define RACKLOOM_GET 5

/**
 * Updates a word at `target`: fields `atomic`, `word`, `operand`, `compare`.
 */
#define RACKLOOM_ATOMIC 6

/**
 * Waits for the 8-byte word at `local.offset` of `local.region`: fields `condition`, `operand`, and `peer`, whose loss ends the wait.
 */
#define RACKLOOM_WAIT_UNTIL 7

/**
 * Orders operations to `peer`, or to all nodes.
 */
#define RACKLOOM_FENCE 8

/**
 * Completes when all earlier operations to `peer`, or to all nodes, are visible.
 */
#define RACKLOOM_FLUSH 9

/**
 * Sends `local` as a message with `tag` to `peer`.
 */
#define RACKLOOM_SEND 10

/**
 * Receives a message from `peer`, or from any node, into `local`: fields `tag`, `ignore`.
 */
#define RACKLOOM_RECEIVE 11

/**
 * Atomic: adds, wrapping.
 */
#define RACKLOOM_FETCH_ADD 1

/**
 * Atomic: keeps the bits that the operand has.
 */
#define RACKLOOM_FETCH_AND 2

/**
 * Atomic: sets the bits of the operand.
 */
#define RACKLOOM_FETCH_OR 3

/**
 * Atomic: inverts the bits of the operand.
 */
#define RACKLOOM_FETCH_XOR 4

/**
 * Atomic: replaces the word by the operand if that is smaller.
 */
#define RACKLOOM_FETCH_MIN 5

/**
 * Atomic: replaces the word by the operand if that is larger.
 */
#define RACKLOOM_FETCH_MAX 6

/**
 * Atomic: replaces the word by the operand.
 */
#define RACKLOOM_SWAP 7

/**
 * Atomic: replaces the word by the operand if it equals `compare`.
 */
#define RACKLOOM_COMPARE_SWAP 8

/**
 * Word of 4 bytes without a sign.
 */
#define RACKLOOM_U32 1

/**
 * Word of 4 bytes with a sign.
 */
#define RACKLOOM_I32 2

/**
 * Word of 8 bytes without a sign.
 */
#define RACKLOOM_U64 3

/**
 * Word of 8 bytes with a sign.
 */
#define RACKLOOM_I64 4

/**
 * Condition: the word equals the value.
 */
#define RACKLOOM_EQUAL 1

/**
 * Condition: the word differs from the value.
 */
#define RACKLOOM_NOT_EQUAL 2

/**
 * Condition: the word is at least the value, both without a sign.
 */
#define RACKLOOM_AT_LEAST 3

/**
 * Signal: stores the value in the word.
 */
#define RACKLOOM_SIGNAL_SET 1

/**
 * Signal: adds the value to the word, wrapping.
 */
#define RACKLOOM_SIGNAL_ADD 2

/**
 * Command: writes a word of 4 or 8 bytes, the operand.
 */
#define RACKLOOM_COMMAND_STORE 1

/**
 * Command: reads bytes into a local region.
 */
#define RACKLOOM_COMMAND_LOAD 2

/**
 * Command: copies bytes of a local region to the peer.
 */
#define RACKLOOM_COMMAND_PUT 3

/**
 * Command: copies bytes of the peer, of any length, into a local region.
 */
#define RACKLOOM_COMMAND_GET 4

/**
 * Command: adds to a word and returns the old value.
 */
#define RACKLOOM_COMMAND_FETCH_ADD 5

/**
 * Command: replaces a word that equals `compare` and returns the old value.
 */
#define RACKLOOM_COMMAND_COMPARE_SWAP 6

/**
 * Command: replaces a word and returns the old value.
 */
#define RACKLOOM_COMMAND_SWAP 7

/**
 * Command: ends when everything before it is visible.
 */
#define RACKLOOM_COMMAND_FLUSH 8

/**
 * Command: later commands become visible after earlier ones.
 */
#define RACKLOOM_COMMAND_FENCE 9

/**
 * Flag of a command: no thread waits for the end, and the ticket is not polled. The next flush reports a failure.
 */
#define RACKLOOM_COMMAND_POSTED 1

/**
 * Flag of a put: it ends with a signal.
 */
#define RACKLOOM_COMMAND_SIGNAL 2

/**
 * Flag of a signal: the value is added to the word, and does not replace it.
 */
#define RACKLOOM_COMMAND_SIGNAL_ADDS 4

/**
 * Flag of a command with a word: it has 4 bytes.
 */
#define RACKLOOM_COMMAND_WIDTH_4 262144

/**
 * Flag of a command with a word: it has 8 bytes.
 */
#define RACKLOOM_COMMAND_WIDTH_8 524288

/**
 * Status of a command: it is done and visible.
 */
#define RACKLOOM_STATUS_DONE 0

/**
 * Status of a command: it has no meaning.
 */
#define RACKLOOM_STATUS_INVALID 1

/**
 * Status of a command: the peer refused.
 */
#define RACKLOOM_STATUS_REFUSED 2

/**
 * Status of a command: the peer is lost, and nothing was done.
 */
#define RACKLOOM_STATUS_LOST 3

/**
 * Status of a command: the peer is lost, and the command may have been done.
 */
#define RACKLOOM_STATUS_OUTCOME_UNKNOWN 4

/**
 * Status of a command: the ring is not served any more.
 */
#define RACKLOOM_STATUS_CLOSED 5

/**
 * Algorithm with the shortest estimated time.
 */
#define RACKLOOM_ALGORITHM_AUTOMATIC 0

/**
 * Each rank sends to the next one only.
 */
#define RACKLOOM_ALGORITHM_RING 1

/**
 * Two rings in opposite directions.
 */
#define RACKLOOM_ALGORITHM_BIDIRECTIONAL_RING 2

/**
 * Every rank sends its whole input to every other rank.
 */
#define RACKLOOM_ALGORITHM_ONE_SHOT 3

/**
 * Direct reduce-scatter, then direct all-gather.
 */
#define RACKLOOM_ALGORITHM_TWO_SHOT 4

/**
 * Recursive halving, then recursive doubling.
 */
#define RACKLOOM_ALGORITHM_HALVING_DOUBLING 5

/**
 * All pairs concurrently.
 */
#define RACKLOOM_ALGORITHM_DIRECT 6

/**
 * One partner after the other.
 */
#define RACKLOOM_ALGORITHM_PAIRWISE 7

/**
 * Binomial tree.
 */
#define RACKLOOM_ALGORITHM_BINOMIAL 8

/**
 * Along the ring, in pipelined segments.
 */
#define RACKLOOM_ALGORITHM_RING_PIPELINE 9

/**
 * Barrier: signals at distances that double.
 */
#define RACKLOOM_ALGORITHM_DISSEMINATION 10

/**
 * Barrier: first the ranks of one server, then one leader per server.
 */
#define RACKLOOM_ALGORITHM_TWO_LEVEL 11

/**
 * Inside each server, then between servers.
 */
#define RACKLOOM_ALGORITHM_HIERARCHICAL 12

/**
 * Color of a member that joins no part.
 */
#define RACKLOOM_NO_COLOR UINT32_MAX

/**
 * Cause of a trial: calls took another time than the reference.
 */
#define RACKLOOM_CAUSE_DEVIATED 1

/**
 * Cause of a trial: an algorithm that replaced the first choice was due for a review.
 */
#define RACKLOOM_CAUSE_REVIEW 2

/**
 * Number of entries for the algorithms of a trial. The library tries fewer, so that later versions may try more.
 */
#define RACKLOOM_CANDIDATES_MAX 8

/**
 * Order of operands: any. Collectives use any algorithm.
 */
#define RACKLOOM_COMMUTATIVE 1

/**
 * Order of operands: the left one comes from lower ranks. Collectives use algorithms that keep the order of ranks.
 */
#define RACKLOOM_ORDERED 2

/**
 * Collective without data: completes when all members have called it.
 */
#define RACKLOOM_BARRIER 1

/**
 * Replaces `output` by the reduction of all members' arrays.
 */
#define RACKLOOM_ALL_REDUCE 2

/**
 * Replaces `output` at the root by the reduction of all members' arrays.
 */
#define RACKLOOM_REDUCE 3

/**
 * Replaces `output` by that of the root.
 */
#define RACKLOOM_BROADCAST 4

/**
 * Fills `output` with the inputs of all members in rank order.
 */
#define RACKLOOM_ALL_GATHER 5

/**
 * Fills `output` with this member's part of the reduction of all inputs.
 */
#define RACKLOOM_REDUCE_SCATTER 6

/**
 * Fills part p of `output` with this member's part of the input of member p.
 */
#define RACKLOOM_ALL_TO_ALL 7

/**
 * Fills `output` at the root with the inputs of all members.
 */
#define RACKLOOM_GATHER 8

/**
 * Fills `output` with this member's part of the root's input.
 */
#define RACKLOOM_SCATTER 9

/**
 * Replaces `output` by the reduction of the arrays of the members up to this one, in rank order.
 */
#define RACKLOOM_SCAN 10

/**
 * Replaces `output` by the reduction of the arrays of the members before this one, in rank order. That of rank 0 stays unchanged.
 */
#define RACKLOOM_EXCLUSIVE_SCAN 11

/**
 * Elements: IEEE 754 binary32.
 */
#define RACKLOOM_F32 1

/**
 * Elements: IEEE 754 binary64.
 */
#define RACKLOOM_F64 2

/**
 * Elements: IEEE 754 binary16, for slices of regions.
 */
#define RACKLOOM_F16 3

/**
 * Elements: the upper half of a binary32, for slices of regions.
 */
#define RACKLOOM_BF16 4

/**
 * Elements: 32 bits with a sign.
 */
#define RACKLOOM_INT32 5

/**
 * Elements: 64 bits with a sign.
 */
#define RACKLOOM_INT64 6

/**
 * Elements: bytes.
 */
#define RACKLOOM_BYTE 7

/**
 * Reduction: sum.
 */
#define RACKLOOM_SUM 1

/**
 * Reduction: the least.
 */
#define RACKLOOM_MIN 2

/**
 * Reduction: the greatest.
 */
#define RACKLOOM_MAX 3

/**
 * Reduction: product.
 */
#define RACKLOOM_PRODUCT 4

/**
 * Result of a call. Codes below 20 are errors in the use of the library, codes from 20 are errors of the fabric and of racks.
 * New codes may be added: a program treats an unknown code as a failure.
 */
enum rackloom_error
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * Success.
     */
    RACKLOOM_ERROR_OK = 0,
    /**
     * A pointer is null that must not be.
     */
    RACKLOOM_ERROR_NULL_POINTER = 1,
    /**
     * The number is no handle: it is 0, or the library never returned it.
     */
    RACKLOOM_ERROR_BAD_HANDLE = 2,
    /**
     * The handle was freed before.
     */
    RACKLOOM_ERROR_FREED_HANDLE = 3,
    /**
     * The handle belongs to an object of another kind.
     */
    RACKLOOM_ERROR_WRONG_HANDLE_KIND = 4,
    /**
     * The object, which only one thread at a time may use, is in use by another thread.
     */
    RACKLOOM_ERROR_IN_USE = 5,
    /**
     * The field `size` of a structure is too small, or this library is older than the header of the program.
     */
    RACKLOOM_ERROR_BAD_SIZE = 6,
    /**
     * An argument has no meaning: an unknown constant, a misaligned pointer, arrays that overlap, text that is not UTF-8.
     */
    RACKLOOM_ERROR_BAD_ARGUMENT = 7,
    /**
     * The buffer is too small. The needed length was returned.
     */
    RACKLOOM_ERROR_BUFFER_TOO_SMALL = 8,
    /**
     * The queue has no completion.
     */
    RACKLOOM_ERROR_EMPTY = 9,
    /**
     * There is no free handle.
     */
    RACKLOOM_ERROR_TOO_MANY_HANDLES = 10,
    /**
     * The library has a bug. The call has no other effect on the process.
     */
    RACKLOOM_ERROR_INTERNAL = 11,
    /**
     * A function of the program that the library has called, such as a reduction, called the library.
     */
    RACKLOOM_ERROR_IN_CALLBACK = 12,
    /**
     * The queue towards the peer is full: poll, and try again.
     */
    RACKLOOM_ERROR_BUSY = 20,
    /**
     * No live path leads to the peer.
     */
    RACKLOOM_ERROR_PEER_LOST = 21,
    /**
     * The peer has left in order.
     */
    RACKLOOM_ERROR_PEER_LEFT = 22,
    /**
     * The peer refused the operation. The reason is one of `RACKLOOM_REASON_...`.
     */
    RACKLOOM_ERROR_REFUSED = 23,
    /**
     * The operation failed, and no single peer is the cause: it was cancelled, or a message was too long.
     */
    RACKLOOM_ERROR_FAILED = 24,
    /**
     * The operation is not valid on any node.
     */
    RACKLOOM_ERROR_INVALID = 25,
    /**
     * The rack file has no other GPU node of this number.
     */
    RACKLOOM_ERROR_NO_SUCH_NODE = 26,
    /**
     * The region of a peer cannot be mapped.
     */
    RACKLOOM_ERROR_NOT_MAPPED = 27,
    /**
     * A region of this number exists.
     */
    RACKLOOM_ERROR_REGION_EXISTS = 28,
    /**
     * Operations still use a region of this number, whose last handle was freed.
     */
    RACKLOOM_ERROR_REGION_IN_USE = 29,
    /**
     * A member of the group gave up a collective or calls another one.
     */
    RACKLOOM_ERROR_GROUP_BROKEN = 30,
    /**
     * A member has not joined the group in time.
     */
    RACKLOOM_ERROR_NOT_JOINED = 31,
    /**
     * The deadline passed first.
     */
    RACKLOOM_ERROR_TIMED_OUT = 32,
    /**
     * The node has left the fabric.
     */
    RACKLOOM_ERROR_CLOSED = 33,
    /**
     * The seat of a standing rack cannot be taken.
     */
    RACKLOOM_ERROR_JOIN = 34,
    /**
     * The rack or a node did not reach all its peers in time.
     */
    RACKLOOM_ERROR_NOT_UP = 35,
    /**
     * The operating system refused.
     */
    RACKLOOM_ERROR_SYSTEM = 36,
    /**
     * The fabric reports an error for which this version of the header has no code.
     */
    RACKLOOM_ERROR_OTHER = 37,
    /**
     * The regions of the node would have more bytes than the job on its seat may use, or the blocks of a tenant more than its limit.
     */
    RACKLOOM_ERROR_OVER_QUOTA = 38,
    /**
     * A pool of blocks has no free part that is long enough, and may not grow that far.
     */
    RACKLOOM_ERROR_NO_SPACE = 39,
    /**
     * A rack file, a fault script or an option is wrong.
     */
    RACKLOOM_ERROR_BAD_INPUT = 40,
    /**
     * The processes or wires of a rack could not be made.
     */
    RACKLOOM_ERROR_COULD_NOT_START = 41,
    /**
     * The rack does not answer, has lost a node, or has failed.
     */
    RACKLOOM_ERROR_RACK_FAILED = 42,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum rackloom_error rackloom_error;
#else
typedef int32_t rackloom_error;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Reason why a peer refused an operation, or why an operation failed.
 */
enum rackloom_reason
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * There is none.
     */
    RACKLOOM_REASON_NONE = 0,
    /**
     * The target has no such region.
     */
    RACKLOOM_REASON_NO_SUCH_REGION = 1,
    /**
     * The key is not that of the region.
     */
    RACKLOOM_REASON_BAD_KEY = 2,
    /**
     * The region belongs to another tenant.
     */
    RACKLOOM_REASON_WRONG_TENANT = 3,
    /**
     * The range exceeds the region.
     */
    RACKLOOM_REASON_OUT_OF_BOUNDS = 4,
    /**
     * The region does not allow this kind of access.
     */
    RACKLOOM_REASON_PERMISSION_DENIED = 5,
    /**
     * The region was revoked.
     */
    RACKLOOM_REASON_REVOKED = 6,
    /**
     * The address is not a multiple of the width of the word.
     */
    RACKLOOM_REASON_MISALIGNED = 7,
    /**
     * The memory of the target failed.
     */
    RACKLOOM_REASON_MEMORY_FAILED = 8,
    /**
     * The memory that the data comes from could not be read.
     */
    RACKLOOM_REASON_SOURCE_FAILED = 9,
    /**
     * No live path leads to the target. Nothing was changed there.
     */
    RACKLOOM_REASON_UNREACHABLE = 10,
    /**
     * The target was lost while the operation was in flight.
     */
    RACKLOOM_REASON_OUTCOME_UNKNOWN = 11,
    /**
     * An earlier posted operation failed.
     */
    RACKLOOM_REASON_EARLIER_FAILURE = 12,
    /**
     * The caller cancelled the operation.
     */
    RACKLOOM_REASON_CANCELLED = 13,
    /**
     * The message is longer than its receive.
     */
    RACKLOOM_REASON_MESSAGE_TRUNCATED = 14,
    /**
     * A reason for which this version of the header has no number.
     */
    RACKLOOM_REASON_OTHER = 15,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum rackloom_reason rackloom_reason;
#else
typedef uint32_t rackloom_reason;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Details of the last failure of a thread. `size` is set by the program.
 */
typedef struct rackloom_failure {
    /**
     * sizeof(rackloom_failure).
     */
    uint32_t size;
    /**
     * Code that the call returned.
     */
    int32_t error;
    /**
     * Peer that caused the error, or `RACKLOOM_ANY_NODE`.
     */
    uint32_t peer;
    /**
     * One of `RACKLOOM_REASON_...`.
     */
    uint32_t reason;
    /**
     * 1 if the operation may have happened, or may still happen.
     */
    uint32_t maybe_done;
} rackloom_failure;

/**
 * Handle of a text that the library made: a status, a report, a list.
 */
typedef uint64_t rackloom_text;

/**
 * Handle of a rack inside the process.
 */
typedef uint64_t rackloom_fabric;

/**
 * Handle of a GPU node of this process.
 */
typedef uint64_t rackloom_node;

/**
 * Options of a standing rack. Fields that are zero or null have their defaults.
 */
typedef struct rackloom_rack_options {
    /**
     * sizeof(rackloom_rack_options).
     */
    uint32_t size;
    /**
     * 1 if all data goes in frames, also between nodes of one server.
     */
    uint32_t force_wire;
    /**
     * Path of the program `rackloom`, whose processes the rack consists of. Searched in PATH if null.
     */
    const char *program;
    /**
     * Path of the rack file. Not null.
     */
    const char *file;
    /**
     * Name of the rack; that of the rack file if null.
     */
    const char *name;
    /**
     * Wire: "shared-memory", "udp" or "packet"; that of the rack file if null.
     */
    const char *wire;
    /**
     * Path of a fault script, or null.
     */
    const char *faults;
    /**
     * Path of a directory for logs; the rack's own directory if null.
     */
    const char *log_directory;
    /**
     * Names of the seats that stay vacant for other processes.
     */
    const char *const *vacant;
    /**
     * Number of names in `vacant`.
     */
    uint64_t vacant_count;
    /**
     * Assignments KEY=VALUE to keys of the rack file.
     */
    const char *const *settings;
    /**
     * Number of assignments in `settings`.
     */
    uint64_t settings_count;
} rackloom_rack_options;

/**
 * Handle of a standing rack. It stands for the name of the rack: each call connects, because a rack closes connections that are idle.
 */
typedef uint64_t rackloom_rack;

/**
 * Counters of a node since its start. Bytes are those of whole Ethernet frames. `size` is set by the program.
 */
typedef struct rackloom_counters {
    /**
     * sizeof(rackloom_counters).
     */
    uint32_t size;
    /**
     * 0.
     */
    uint32_t reserved;
    /**
     * Polls of the node by threads of the program.
     */
    uint64_t polls_by_callers;
    /**
     * Polls by the background thread.
     */
    uint64_t polls_by_background;
    /**
     * Operations of this node that have ended.
     */
    uint64_t operations_ended;
    /**
     * Operations on memory of other nodes of this server, mapped or copied, which need no frame.
     */
    uint64_t direct_operations;
    /**
     * Bytes that those operations moved.
     */
    uint64_t direct_bytes;
    /**
     * Frames sent, of all kinds.
     */
    uint64_t frames_sent;
    /**
     * Bytes of the frames sent.
     */
    uint64_t bytes_sent;
    /**
     * Data frames sent, including forwarded and retransmitted ones.
     */
    uint64_t data_frames_sent;
    /**
     * Bytes of the data frames sent.
     */
    uint64_t data_bytes_sent;
    /**
     * Data frames of this node that were retransmitted end to end.
     */
    uint64_t packets_retransmitted;
    /**
     * Frames that a link replayed to its neighbour.
     */
    uint64_t frames_replayed;
    /**
     * Frames forwarded for other members.
     */
    uint64_t frames_forwarded;
    /**
     * Frames received, of all kinds.
     */
    uint64_t frames_received;
    /**
     * Bytes of the frames received.
     */
    uint64_t bytes_received;
    /**
     * Frames received and dropped.
     */
    uint64_t frames_dropped;
    /**
     * Frames of neighbours that did not arrive.
     */
    uint64_t frames_missing;
    /**
     * Number of times that sending stopped because a neighbour had no space.
     */
    uint64_t credit_stalls;
    /**
     * Direct puts and gets that the system copied from or to memory that the program of another process owns.
     */
    uint64_t copied_operations;
    /**
     * Bytes that those operations moved.
     */
    uint64_t copied_bytes;
} rackloom_counters;

/**
 * Number, key and access rights of a region.
 */
typedef struct rackloom_region_options {
    /**
     * sizeof(rackloom_region_options).
     */
    uint32_t size;
    /**
     * Number of the region, unique at its owner.
     */
    uint32_t region;
    /**
     * Key that accesses must bear.
     */
    uint64_t key;
    /**
     * Access rights of peers: a sum of `RACKLOOM_ACCESS_...`. 0 is all of them.
     */
    uint32_t access;
    /**
     * One of `RACKLOOM_DEVICE_...`.
     */
    uint32_t device;
    /**
     * Number of the GPU, or seed of the fake device.
     */
    uint64_t device_number;
} rackloom_region_options;

/**
 * Handle of a region.
 */
typedef uint64_t rackloom_region;

/**
 * Address of a byte in the memory of a node. The layout does not change.
 */
typedef struct rackloom_address {
    /**
     * Number of the node that owns the memory.
     */
    uint32_t node;
    /**
     * Number of the region at that node.
     */
    uint32_t region;
    /**
     * Offset of the first byte in the region.
     */
    uint64_t offset;
    /**
     * Key of the region.
     */
    uint64_t key;
} rackloom_address;

/**
 * Handle of a mapped region of a peer.
 */
typedef uint64_t rackloom_peer_region;

/**
 * Attributes of an address in a region of a node. `size` is set by the program.
 */
typedef struct rackloom_pointer_attributes {
    /**
     * sizeof(rackloom_pointer_attributes).
     */
    uint32_t size;
    /**
     * Number of the region that contains the address.
     */
    uint32_t region;
    /**
     * Offset of the address within the region, in bytes.
     */
    uint64_t offset;
    /**
     * Length of the region, in bytes.
     */
    uint64_t length;
    /**
     * Memory that the region takes, in bytes: at least its length, in whole pages or blocks if it came from a pool.
     */
    uint64_t reserved_bytes;
    /**
     * Device of the memory, one of `RACKLOOM_DEVICE_...`.
     */
    uint32_t device;
    /**
     * 1 if the memory came from a pool.
     */
    uint32_t is_pooled;
    /**
     * Number of the GPU, or seed of the fake device.
     */
    uint64_t device_number;
} rackloom_pointer_attributes;

/**
 * Location, key and length of a region as bytes, which the program sends to another node. A node that has them may access the region as far as its
 * rights go. The layout does not change.
 */
typedef struct rackloom_exported_region {
    /**
     * Bytes without a meaning for the program.
     */
    uint8_t bytes[32];
} rackloom_exported_region;

/**
 * Function that gets the report of memory that was not freed: the JSON array of `rackloom_node_allocations` or
 * `rackloom_block_pool_leaks`, which ends with a zero byte and is valid during the call. `context` is that of the
 * function that has set it.
 *
 * It returns, and does not leave by `longjmp` or by an exception of C++. It runs in the thread whose call has ended
 * the object. It calls no function of the library: such a call returns IN_CALLBACK.
 */
typedef void (*rackloom_leak_function)(const char *leaks, void *context);

/**
 * Options of a pool. Fields that are 0 have their defaults.
 */
typedef struct rackloom_pool_options {
    /**
     * sizeof(rackloom_pool_options).
     */
    uint32_t size;
    /**
     * One of `RACKLOOM_DEVICE_...`.
     */
    uint32_t device;
    /**
     * Number of the GPU, or seed of the fake device.
     */
    uint64_t device_number;
    /**
     * Number of bytes above which unused memory is released to the system, whenever a region gives memory back. 0: nothing unused is kept. UINT64_MAX: everything.
     */
    uint64_t release_threshold;
    /**
     * Policies for memory that other nodes still have mapped: a sum of `RACKLOOM_REUSE_...`. 0 is all of them.
     */
    uint32_t reuse;
    /**
     * 0.
     */
    uint32_t reserved;
} rackloom_pool_options;

/**
 * Handle of a pool.
 */
typedef uint64_t rackloom_pool;

/**
 * Counters of a pool. `size` is set by the program. Reserved is the memory that the pool holds; used is the part that regions hold, in whole pages, or
 * in whole blocks of 2 MiB on a GPU.
 */
typedef struct rackloom_pool_statistics {
    /**
     * sizeof(rackloom_pool_statistics).
     */
    uint32_t size;
    /**
     * 0.
     */
    uint32_t reserved;
    /**
     * Reserved bytes.
     */
    uint64_t reserved_bytes;
    /**
     * Maximum of the reserved bytes since the last reset.
     */
    uint64_t reserved_bytes_high;
    /**
     * Used bytes.
     */
    uint64_t used_bytes;
    /**
     * Maximum of the used bytes since the last reset.
     */
    uint64_t used_bytes_high;
    /**
     * Number of regions that hold memory of the pool.
     */
    uint64_t regions;
    /**
     * Number of regions allocated so far.
     */
    uint64_t allocations;
    /**
     * Number of regions that have given their memory back so far.
     */
    uint64_t frees;
} rackloom_pool_statistics;

/**
 * Region and size of a pool of blocks. Fields that are 0 have their defaults.
 */
typedef struct rackloom_block_pool_options {
    /**
     * sizeof(rackloom_block_pool_options).
     */
    uint32_t size;
    /**
     * Number of the first region. A pool that grows numbers its regions upwards from it.
     */
    uint32_t region;
    /**
     * Key of all regions.
     */
    uint64_t key;
    /**
     * Access rights of peers to all regions: a sum of `RACKLOOM_ACCESS_...`. 0 is all of them.
     */
    uint32_t access;
    /**
     * 0.
     */
    uint32_t reserved;
    /**
     * Length of the first region, in bytes. It is rounded up to a multiple of 64.
     */
    uint64_t bytes;
    /**
     * Smallest region that the pool adds when it has no free space, in bytes. 0: the pool does not grow.
     */
    uint64_t growth_bytes;
    /**
     * Maximum number of bytes of all regions together. 0: no maximum.
     */
    uint64_t reserved_bytes_max;
} rackloom_block_pool_options;

/**
 * Handle of a pool of blocks.
 */
typedef uint64_t rackloom_block_pool;

/**
 * Block of memory that a pool has allocated. Its bytes are those from `offset` of the region. The layout does not
 * change.
 */
typedef struct rackloom_block {
    /**
     * Number of the region of the block.
     */
    uint32_t region;
    /**
     * 0.
     */
    uint32_t reserved;
    /**
     * Offset of the first byte within the region.
     */
    uint64_t offset;
    /**
     * Requested length, in bytes.
     */
    uint64_t bytes;
    /**
     * Number that distinguishes the block from an earlier one at the same offset.
     */
    uint64_t serial;
} rackloom_block;

/**
 * Part of a region of this process, as the local end of a transfer. The layout does not change.
 */
typedef struct rackloom_slice {
    /**
     * Handle of the region.
     */
    rackloom_region region;
    /**
     * Offset of the first byte.
     */
    uint64_t offset;
    /**
     * Length in bytes.
     */
    uint64_t length;
} rackloom_slice;

/**
 * Update of a word of 8 bytes at the node of a put, which becomes visible after the data. The layout does not change.
 */
typedef struct rackloom_signal {
    /**
     * Number of the region of the word.
     */
    uint32_t region;
    /**
     * One of `RACKLOOM_SIGNAL_...`.
     */
    uint32_t kind;
    /**
     * Offset of the word, a multiple of 8.
     */
    uint64_t offset;
    /**
     * Key of the region.
     */
    uint64_t key;
    /**
     * Operand.
     */
    uint64_t value;
} rackloom_signal;

/**
 * Description of one operation. The kind decides which fields are used. Set the others to 0.
 */
typedef struct rackloom_operation {
    /**
     * sizeof(rackloom_operation).
     */
    uint32_t size;
    /**
     * Kind of operation, such as `RACKLOOM_PUT`.
     */
    uint32_t kind;
    /**
     * Address at the peer.
     */
    struct rackloom_address target;
    /**
     * Local end of a transfer, or the word of a wait.
     */
    struct rackloom_slice local;
    /**
     * Bytes of a store. They are copied when the operation begins.
     */
    const void *data;
    /**
     * Number of bytes of a store.
     */
    uint64_t length;
    /**
     * Signal of a put.
     */
    struct rackloom_signal signal;
    /**
     * Kind of atomic, such as `RACKLOOM_FETCH_ADD`.
     */
    uint32_t atomic;
    /**
     * Type of the word of an atomic, such as `RACKLOOM_U64`.
     */
    uint32_t word;
    /**
     * Operand of an atomic, or value of a wait.
     */
    uint64_t operand;
    /**
     * Expected word of `RACKLOOM_COMPARE_SWAP`.
     */
    uint64_t compare;
    /**
     * Condition of a wait, such as `RACKLOOM_EQUAL`.
     */
    uint32_t condition;
    /**
     * Peer of a wait, fence, flush or message. `RACKLOOM_ANY_NODE`: all nodes, or any node.
     */
    uint32_t peer;
    /**
     * Tag of a message.
     */
    uint64_t tag;
    /**
     * Bits of the tag that a receive ignores.
     */
    uint64_t ignore;
} rackloom_operation;

/**
 * End of one operation. The layout does not change.
 */
typedef struct rackloom_completion {
    /**
     * Number that the caller passed with the operation.
     */
    uint64_t context;
    /**
     * Number of the operation at its node.
     */
    uint64_t operation;
    /**
     * Old value of an atomic, word that ended a wait, or length of a message in bytes. Otherwise 0.
     */
    uint64_t value;
    /**
     * Tag of a received message.
     */
    uint64_t tag;
    /**
     * Result of the operation, one of `RACKLOOM_ERROR_...`.
     */
    int32_t error;
    /**
     * Reason of a refusal or a failure, one of `RACKLOOM_REASON_...`.
     */
    uint32_t reason;
    /**
     * Sender of a received message, or the peer that caused the error. `RACKLOOM_ANY_NODE` if there is none.
     */
    uint32_t peer;
    /**
     * 1 if an operation that failed may have happened, or may still happen.
     */
    uint32_t maybe_done;
    /**
     * 0.
     */
    uint64_t reserved[2];
} rackloom_completion;

/**
 * Handle of an operation in progress, of `rackloom_operation_start`.
 */
typedef uint64_t rackloom_pending;

/**
 * Handle of a completion queue.
 */
typedef uint64_t rackloom_queue;

/**
 * Slice of the own node and address at a peer, as one piece of a transfer. The layout does not change.
 */
typedef struct rackloom_piece {
    /**
     * Slice of the own node.
     */
    struct rackloom_slice local;
    /**
     * Address of the first byte at the peer.
     */
    struct rackloom_address remote;
} rackloom_piece;

/**
 * Blocks at equal distances. Distances count from the beginning of a block to that of the next one, in bytes, and may
 * be shorter than a block. The layout does not change.
 */
typedef struct rackloom_strided {
    /**
     * Number of blocks.
     */
    uint64_t blocks;
    /**
     * Length of a block, at least one byte.
     */
    uint64_t block_bytes;
    /**
     * Distance of two blocks in the slice of the own node.
     */
    uint64_t local_stride;
    /**
     * Distance of two blocks at the peer.
     */
    uint64_t remote_stride;
} rackloom_strided;

/**
 * Handle of a ring of commands.
 */
typedef uint64_t rackloom_command_queue;

/**
 * Addresses of a ring, the argument of kernels: `struct rackloom_queue` of `rackloom_kernel_header`. The layout does
 * not change.
 */
typedef struct rackloom_command_ring {
    /**
     * Address of two words: 1 if the ring is closed, and the number of lost peers.
     */
    uint64_t control;
    /**
     * Address of the slots' replies, 64 bytes for each slot: state and value.
     */
    uint64_t replies;
    /**
     * Address of the slots' commands, 128 bytes for each slot.
     */
    uint64_t commands;
    /**
     * Address in the memory of the device: the counter of tickets and, from byte 64 on, the round that each slot is
     * free for, in 8 bytes.
     */
    uint64_t head;
    /**
     * Number of slots, a power of two.
     */
    uint64_t slots;
} rackloom_command_ring;

/**
 * Command in the layout of its slot: `struct rackloom_command` of `rackloom_kernel_header`. The layout does not
 * change.
 */
typedef struct rackloom_command {
    /**
     * Kind, such as `RACKLOOM_COMMAND_PUT`.
     */
    uint32_t kind;
    /**
     * Number of the peer. `RACKLOOM_ANY_NODE` for a flush or a fence of all peers.
     */
    uint32_t peer;
    /**
     * Number of the peer's region.
     */
    uint32_t region;
    /**
     * A sum of flags, such as `RACKLOOM_COMMAND_POSTED`.
     */
    uint32_t flags;
    /**
     * Offset of the first byte in the peer's region.
     */
    uint64_t offset;
    /**
     * Key of the peer's region.
     */
    uint64_t key;
    /**
     * Number of the local region.
     */
    uint32_t local_region;
    /**
     * Number of the peer's region that has the word of the signal.
     */
    uint32_t signal_region;
    /**
     * Offset of the first byte in the local region.
     */
    uint64_t local_offset;
    /**
     * Length, in bytes.
     */
    uint64_t length;
    /**
     * Value that is stored or added.
     */
    uint64_t operand;
    /**
     * Value that a compare-and-swap expects.
     */
    uint64_t compare;
    /**
     * Offset of the word of the signal in its region.
     */
    uint64_t signal_offset;
    /**
     * Key of the signal's region.
     */
    uint64_t signal_key;
    /**
     * Value of the signal.
     */
    uint64_t signal_value;
} rackloom_command;

/**
 * Handle of a driver.
 */
typedef uint64_t rackloom_driver;

/**
 * One of several stores of a driver. The layout does not change.
 */
typedef struct rackloom_store_entry {
    /**
     * Target of the store.
     */
    struct rackloom_address target;
    /**
     * Bytes of the store. They are copied at once.
     */
    const void *data;
    /**
     * Number of bytes, 1 to 16384.
     */
    uint64_t length;
    /**
     * Number for the completion.
     */
    uint64_t context;
} rackloom_store_entry;

/**
 * Options of a group, equal on all members unless stated otherwise. Fields that are 0 have their defaults.
 */
typedef struct rackloom_group_options {
    /**
     * sizeof(rackloom_group_options).
     */
    uint32_t size;
    /**
     * Number of the region of the group with words. The one with arrays has the number in which bit 29 is different. No member has regions of these
     * numbers yet. If 0, numbers and key follow from the rack and the list of members: any node of the tenant can then compute the key.
     */
    uint32_t region;
    /**
     * Key of the regions of the group, if `region` is not 0.
     */
    uint64_t key;
    /**
     * Length of one piece of a collective in bytes; 4 MiB if 0. The region with arrays is three times as long.
     */
    uint64_t staging_bytes;
    /**
     * One of `RACKLOOM_ALGORITHM_...`, for the collectives that it supports.
     */
    uint32_t algorithm;
    /**
     * Number of segments of `RACKLOOM_ALGORITHM_RING_PIPELINE`.
     */
    uint32_t segments;
    /**
     * Time that the first collective of this member waits for members that have not joined; ten seconds if 0. Members may differ.
     */
    uint64_t join_timeout_ns;
    /**
     * Device of the region with arrays, one of `RACKLOOM_DEVICE_...`. Members may differ.
     */
    uint32_t device;
    /**
     * 0.
     */
    uint32_t reserved;
    /**
     * Number of the GPU, or seed of the fake device.
     */
    uint64_t device_number;
    /**
     * Number of collectives that can run at the same time, at most 64; 1 if 0. Further ones wait for the end of earlier ones. Each has its own staging.
     */
    uint64_t lanes;
    /**
     * 1 if the algorithm of a collective is chosen again when its calls become slower or faster by 30 %, for example after the loss of a link. Not together with
     * `algorithm`. `rackloom_group_rechoices` returns the trials. The order of reduction changes with the algorithm, and with it the last bits of
     * floating-point sums.
     */
    uint32_t adaptive;
    /**
     * 0.
     */
    uint32_t reserved_end;
} rackloom_group_options;

/**
 * Handle of a membership in a group.
 */
typedef uint64_t rackloom_group;

/**
 * Algorithm of a trial with its time. The layout does not change.
 */
typedef struct rackloom_candidate {
    /**
     * One of `RACKLOOM_ALGORITHM_...`.
     */
    uint32_t algorithm;
    /**
     * Number of segments of `RACKLOOM_ALGORITHM_RING_PIPELINE`, else 0.
     */
    uint32_t segments;
    /**
     * Time of a call that the members agreed on, in nanoseconds.
     */
    uint64_t time_ns;
} rackloom_candidate;

/**
 * Trial of the suitable algorithms for a collective of one size, and its result. The layout does not change.
 */
typedef struct rackloom_rechoice {
    /**
     * Kind of collective, such as `RACKLOOM_ALL_REDUCE`.
     */
    uint32_t collective;
    /**
     * Lane of the calls.
     */
    uint32_t lane;
    /**
     * Number of bytes of the whole array, or of its first piece if the array does not fit into the staging.
     */
    uint64_t bytes;
    /**
     * Number of calls of this collective and size before the next one.
     */
    uint64_t calls;
    /**
     * Algorithm before the trial. `time_ns` is 0.
     */
    struct rackloom_candidate from;
    /**
     * Algorithm of the following calls, which equals `from` if no other one was fast enough. `time_ns` is 0.
     */
    struct rackloom_candidate to;
    /**
     * One of `RACKLOOM_CAUSE_...`.
     */
    uint32_t cause;
    /**
     * Number of algorithms in `candidates`.
     */
    uint32_t candidate_count;
    /**
     * For `RACKLOOM_CAUSE_DEVIATED`: time of a call when the algorithm was chosen, in nanoseconds.
     */
    uint64_t reference_ns;
    /**
     * For `RACKLOOM_CAUSE_DEVIATED`: time of a call before the trial, in nanoseconds.
     */
    uint64_t now_ns;
    /**
     * Algorithms of the trial with their times, the fastest first.
     */
    struct rackloom_candidate candidates[RACKLOOM_CANDIDATES_MAX];
    /**
     * 0.
     */
    uint64_t reserved[2];
} rackloom_rechoice;

/**
 * Function that replaces each of the `count` elements at `left` by the result of it and the element at the same index of `right`. `context` is that of
 * `rackloom_reduction_create`.
 *
 * It is associative, returns for any values and any `count`, and does not leave by `longjmp` or by an exception of C++. It runs in the thread that makes
 * progress: one that waits for a collective, or the background thread of a node. Several threads may call it at the same time, for different
 * elements. It calls no function of the library: such a call returns IN_CALLBACK.
 */
typedef void (*rackloom_reduction_function)(void *left, const void *right, uint64_t count, void *context);

/**
 * Handle of a reduction that the program defines.
 */
typedef uint64_t rackloom_reduction;

/**
 * Description of one collective. The data is in arrays of the program, or in slices of regions of the node if `output_slice.region` or
 * `input_slice.region` is not 0. Set the fields that are not used to 0.
 *
 * All-reduce, reduce, broadcast and scans change `output` in place; `input` is not used, except that slices may differ. Lengths of arrays are numbers of
 * elements. The output of an all-gather or a gather, and the input of a reduce-scatter or a scatter, have one part per member, in rank order; both arrays of
 * an all-to-all too. The arrays that only the root uses may be empty at other members.
 *
 * Parts have one length, unless `part_counts` gives the length of each. They follow each other without gaps.
 *
 * With `in_place`, the collectives with parts have one array, which is `output`: each member's own part is in its place (all-gather; gather, at the root),
 * ends there (reduce-scatter), stays there (scatter, at the root), or every part is replaced (all-to-all). At other members of a gather and a scatter,
 * `output` is the part.
 */
typedef struct rackloom_collective {
    /**
     * sizeof(rackloom_collective).
     */
    uint32_t size;
    /**
     * Kind of collective, such as `RACKLOOM_ALL_REDUCE`.
     */
    uint32_t kind;
    /**
     * Type of the elements, such as `RACKLOOM_F32`. Any, except for a barrier.
     */
    uint32_t element;
    /**
     * Reduction, such as `RACKLOOM_SUM`, of an all-reduce, reduce or reduce-scatter.
     */
    uint32_t reduction;
    /**
     * Number of the root's node, for a collective with a root.
     */
    uint32_t root;
    /**
     * 0.
     */
    uint32_t reserved;
    /**
     * Array that is read.
     */
    const void *input;
    /**
     * Number of its elements.
     */
    uint64_t input_count;
    /**
     * Array that is written.
     */
    void *output;
    /**
     * Number of its elements.
     */
    uint64_t output_count;
    /**
     * Slice that is read.
     */
    struct rackloom_slice input_slice;
    /**
     * Slice that is written.
     */
    struct rackloom_slice output_slice;
    /**
     * Reduction that the program defines, of `rackloom_reduction_create`, in place of `reduction`. It also says how long elements are, so `element` and
     * `reduction` are 0. For collectives on arrays.
     */
    rackloom_reduction custom_reduction;
    /**
     * Lengths of the parts in elements, equal on all members; null if all parts have one length. Entry r is the length of the part of rank r. Of an
     * all-to-all, entry s * members + r is the number of elements that rank s sends to rank r. For collectives on arrays that are not in place.
     */
    const uint64_t *part_counts;
    /**
     * Number of entries of `part_counts`: that of the members, or its square for an all-to-all.
     */
    uint64_t part_counts_length;
    /**
     * 1 if `output` is also the input of a collective with parts, and there is no `input`. For collectives on arrays.
     */
    uint32_t in_place;
    /**
     * 0.
     */
    uint32_t reserved_end;
} rackloom_collective;

/**
 * Handle of a collective in progress, of `rackloom_collective_start`.
 */
typedef uint64_t rackloom_collective_request;

/**
 * Handle of a collective that runs many times.
 */
typedef uint64_t rackloom_persistent;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Returns the version of the interface of this library. A program compares it with `RACKLOOM_ABI_VERSION` of its header: the major numbers must be
 * equal, and the minor number of the library must not be smaller.
 *
 * Threads: any.
 */
uint32_t rackloom_abi_version(void);

/**
 * Returns the version of this library as text, such as "0.2.0". The text is never freed.
 *
 * Threads: any.
 */
const char *rackloom_version(void);

/**
 * Returns the meaning of a code in a few words, for any number. The text is never freed. `rackloom_last_error` says more.
 *
 * Threads: any.
 */
const char *rackloom_error_text(int32_t error);

/**
 * Copies the text of the last failure of the calling thread, with a hint if there is one. Successful calls leave it as it is. The text is empty if no call
 * of this thread has failed. `length` may be null and gets the length without the final zero.
 *
 * Errors: BUFFER_TOO_SMALL, which is not recorded as a failure.
 * Threads: any. Each thread has its own last failure.
 */
rackloom_error rackloom_last_error(char *buffer,
                                   size_t capacity,
                                   size_t *length);

/**
 * Writes the details of the last failure of the calling thread. `error` is `RACKLOOM_ERROR_OK` if no call of this thread has failed.
 *
 * Errors: BAD_SIZE.
 * Threads: any. Each thread has its own last failure.
 */
rackloom_error rackloom_last_failure(struct rackloom_failure *failure);

/**
 * Returns a pointer to a text, which ends with a zero byte, and its length without that byte. `length` may be null. The pointer is valid until the
 * text is freed.
 *
 * Threads: any.
 */
rackloom_error rackloom_text_data(rackloom_text text,
                                  const char **data,
                                  size_t *length);

/**
 * Frees a text. Its pointer must not be used any more.
 *
 * Threads: any.
 */
rackloom_error rackloom_text_free(rackloom_text text);

/**
 * Starts all nodes and switches of a rack inside this process. Returns when every node reaches every other node. `rack_file` is the text of a rack
 * file, and `name` its name for errors. The nodes have threads: a process that forks does so before this call.
 *
 * Errors: BAD_INPUT with all mistakes of the rack file; SYSTEM; NOT_UP.
 * Threads: any.
 */
rackloom_error rackloom_fabric_local(const char *rack_file,
                                     const char *name,
                                     rackloom_fabric *fabric);

/**
 * Returns the number of GPU nodes of a rack.
 *
 * Threads: any.
 */
rackloom_error rackloom_fabric_node_count(rackloom_fabric fabric, uint32_t *count);

/**
 * Makes a handle of a node. `index` counts the GPU nodes in the order of the rack file, from 0. Each call makes a new handle.
 *
 * Errors: NO_SUCH_NODE.
 * Threads: any.
 */
rackloom_error rackloom_fabric_node(rackloom_fabric fabric,
                                    uint32_t index,
                                    rackloom_node *node);

/**
 * Frees the handle of a rack. Nodes with handles stay. The other nodes leave the rack.
 *
 * Threads: any.
 */
rackloom_error rackloom_fabric_free(rackloom_fabric fabric);

/**
 * Starts a standing rack. Returns once all links between seats that are not vacant carry data. The rack stays when the program ends: end it with
 * `rackloom_rack_down`. The call leaves no thread behind, so that the program may fork afterwards. The supervisor of the rack is a child process: wait for own
 * children by their numbers.
 *
 * Errors: BAD_INPUT, COULD_NOT_START, RACK_FAILED. No process of the rack remains then.
 * Threads: any.
 */
rackloom_error rackloom_rack_up(const struct rackloom_rack_options *options,
                                rackloom_rack *rack);

/**
 * Makes a handle of a standing rack of this user, by its name.
 *
 * Errors: BAD_INPUT if no rack of this name is up.
 * Threads: any.
 */
rackloom_error rackloom_rack_connect(const char *name, rackloom_rack *rack);

/**
 * Makes a text of the names of all standing racks of this user, one in each line.
 *
 * Threads: any.
 */
rackloom_error rackloom_rack_names(rackloom_text *names);

/**
 * Copies the name of a standing rack. `length` may be null and gets the length without the final zero.
 *
 * Errors: BUFFER_TOO_SMALL.
 * Threads: any.
 */
rackloom_error rackloom_rack_name(rackloom_rack rack, char *buffer, size_t capacity, size_t *length);

/**
 * Makes a text of the status of a rack, as JSON: that of `rackloom status --json` for one rack, without rates.
 *
 * Errors: BAD_INPUT if no rack of this name is up; RACK_FAILED if the rack does not answer.
 * Threads: any.
 */
rackloom_error rackloom_rack_status(rackloom_rack rack, rackloom_text *status);

/**
 * Injects the faults of a script, given as text. Returns once the members have received them. `events` may be null and gets the number of events.
 *
 * Errors: BAD_INPUT with the mistakes of the script; RACK_FAILED.
 * Threads: any.
 */
rackloom_error rackloom_rack_inject(rackloom_rack rack,
                                    const char *script,
                                    uint64_t *events);

/**
 * Makes one member leave in order. The rack stays, and the seat is vacant afterwards.
 *
 * Errors: BAD_INPUT if there is no such seat; RACK_FAILED.
 * Threads: any.
 */
rackloom_error rackloom_rack_leave(rackloom_rack rack, const char *seat);

/**
 * Ends a rack. Returns once its supervisor has ended. `report` may be null and gets a text with the report, as JSON. The handle stays and must be freed.
 *
 * Errors: BAD_INPUT if no rack of this name is up; RACK_FAILED if the rack does not answer.
 * Threads: any.
 */
rackloom_error rackloom_rack_down(rackloom_rack rack,
                                  rackloom_text *report);

/**
 * Frees the handle of a rack. The rack stays.
 *
 * Threads: any.
 */
rackloom_error rackloom_rack_free(rackloom_rack rack);

/**
 * Takes a vacant seat of a standing rack, or a seat whose process has died. `rack` is the name of the rack, or the path of its directory if it contains a
 * slash. Returns as soon as the seat is taken; `rackloom_node_wait_until_reached` waits for peers. The node ends with the process. It has threads: a
 * process that forks does so before this call.
 *
 * Errors: JOIN with a reason and a hint.
 * Threads: any.
 */
rackloom_error rackloom_node_join(const char *rack,
                                  const char *seat,
                                  rackloom_node *node);

/**
 * Frees the handle of a node. The node leaves the fabric with its last handle, and with it its regions, groups, drivers and operations in progress.
 *
 * Threads: any.
 */
rackloom_error rackloom_node_free(rackloom_node node);

/**
 * Returns the number of a node in the rack file.
 *
 * Threads: any.
 */
rackloom_error rackloom_node_id(rackloom_node node, uint32_t *id);

/**
 * Writes 1 if a live path leads to `peer` now, else 0.
 *
 * Threads: any.
 */
rackloom_error rackloom_node_reaches(rackloom_node node, uint32_t peer, uint32_t *reaches);

/**
 * Waits until a live path leads to each of the `count` peers.
 *
 * Errors: NOT_UP with the conditions that the node waits for; NO_SUCH_NODE; CLOSED.
 * Threads: any.
 */
rackloom_error rackloom_node_wait_until_reached(rackloom_node node,
                                                const uint32_t *peers,
                                                uint64_t count,
                                                uint64_t timeout_ns);

/**
 * Makes a text of the conditions that a node waits for, one in each line, for a watchdog.
 *
 * Threads: any.
 */
rackloom_error rackloom_node_waiting_for(rackloom_node node, rackloom_text *lines);

/**
 * Writes the counters of a node.
 *
 * Errors: BAD_SIZE.
 * Threads: any.
 */
rackloom_error rackloom_node_counters(rackloom_node node, struct rackloom_counters *counters);

/**
 * Leaves the fabric in order: waits for all operations of the node towards peers, says so to all members, and leaves. Peers see a departure and not a
 * death.
 *
 * Errors: TIMED_OUT, and those of `rackloom_flush`; the node has then not left. CLOSED if it has left before.
 * Threads: any.
 */
rackloom_error rackloom_node_leave_in_order(rackloom_node node,
                                            uint64_t timeout_ns);

/**
 * Leaves the fabric at once, as if the process had died. All operations of the node end with CLOSED. The handle stays and must be freed.
 *
 * Threads: any.
 */
rackloom_error rackloom_node_leave(rackloom_node node);

/**
 * Waits until the number of a freed region is free again: until the operations that still use its bytes have ended.
 *
 * Errors: REGION_EXISTS if a handle of the region exists; REGION_IN_USE at the deadline; CLOSED.
 * Threads: any.
 */
rackloom_error rackloom_node_wait_until_free(rackloom_node node, uint32_t region, uint64_t timeout_ns);

/**
 * Ends a submitted wait, or a submitted receive that has not matched a message. Its completion reports FAILED with the reason CANCELLED.
 *
 * Errors: INVALID if there is no such operation, or it has ended.
 * Threads: any.
 */
rackloom_error rackloom_node_cancel(rackloom_node node,
                                    uint64_t operation);

/**
 * Allocates a region of `length` zeroed bytes, on the host or on a device. Nodes of the same server and tenant may map a region of the host.
 *
 * Errors: REGION_EXISTS, REGION_IN_USE, SYSTEM, CLOSED; OVER_QUOTA on the seat of a job; INVALID for a second device of the node.
 * Threads: any.
 */
rackloom_error rackloom_region_allocate(rackloom_node node,
                                        const struct rackloom_region_options *options,
                                        uint64_t length,
                                        rackloom_region *region);

/**
 * Makes a region of `length` bytes at `base` that the program owns, on the host or on a device. The bytes stay valid until
 * `rackloom_region_deregister` has returned OK. Meanwhile the library and peers read and write them.
 *
 * Errors: those of `rackloom_region_allocate`.
 * Threads: any.
 */
rackloom_error rackloom_region_register(rackloom_node node,
                                        const struct rackloom_region_options *options,
                                        void *base,
                                        uint64_t length,
                                        rackloom_region *region);

/**
 * Frees a region. Access of peers ends at once. Memory of the program must stay valid until `rackloom_node_wait_until_free` has returned OK: better
 * use `rackloom_region_deregister`.
 *
 * Threads: any.
 */
rackloom_error rackloom_region_free(rackloom_region region);

/**
 * Frees a region and waits until no operation of its node uses its bytes. After OK nothing accesses the bytes.
 *
 * Errors: INVALID if another thread, a batch or a collective still uses the region, and REGION_IN_USE if a wait or a receive still uses it after
 * ten seconds. The handle is freed all the same, and `rackloom_node_wait_until_free` waits for the rest.
 * Threads: any.
 */
rackloom_error rackloom_region_deregister(rackloom_region region);

/**
 * Returns the length of a region in bytes.
 *
 * Threads: any.
 */
rackloom_error rackloom_region_length(rackloom_region region, uint64_t *length);

/**
 * Returns the address with which peers access the byte at `offset` of a region.
 *
 * Threads: any.
 */
rackloom_error rackloom_region_address(rackloom_region region, uint64_t offset, struct rackloom_address *address);

/**
 * Returns the first byte of a region of the host. Peers may change the bytes at any time: read words of 4 and 8 bytes with atomic loads, and other data
 * after its signal. The pointer is valid until the region is freed and its operations have ended.
 *
 * Errors: INVALID for a region on a device.
 * Threads: any.
 */
rackloom_error rackloom_region_pointer(rackloom_region region,
                                       void **pointer);

/**
 * Returns the address of a region in the memory of its device, for kernels.
 *
 * Errors: INVALID for a region of the host.
 * Threads: any.
 */
rackloom_error rackloom_region_device_address(rackloom_region region, uint64_t *address);

/**
 * Copies `length` bytes at `data` into a region, at `offset`. An aligned word of 4 or 8 bytes is written at once.
 *
 * Errors: INVALID if they do not fit; FAILED if the device has failed.
 * Threads: any.
 */
rackloom_error rackloom_region_write(rackloom_region region, uint64_t offset, const void *data, uint64_t length);

/**
 * Copies `length` bytes of a region, from `offset`, to `data`. An aligned word of 4 or 8 bytes is read at once.
 *
 * Errors: INVALID if the region has fewer bytes; FAILED if the device has failed.
 * Threads: any.
 */
rackloom_error rackloom_region_read(rackloom_region region, uint64_t offset, void *data, uint64_t length);

/**
 * Maps a region of a peer of the same server. The offset of the address is ignored.
 *
 * Errors: NOT_MAPPED with a reason: the peer is in another server or of another tenant, the rack has `force_wire`, the memory is not of
 * `rackloom_region_allocate`, or there is no answer in time; CLOSED.
 * Threads: any.
 */
rackloom_error rackloom_peer_region_map(rackloom_node node,
                                        struct rackloom_address address,
                                        uint64_t timeout_ns,
                                        rackloom_peer_region *region);

/**
 * Frees a mapped region.
 *
 * Threads: any.
 */
rackloom_error rackloom_peer_region_free(rackloom_peer_region region);

/**
 * Returns the length of a mapped region in bytes.
 *
 * Threads: any.
 */
rackloom_error rackloom_peer_region_length(rackloom_peer_region region, uint64_t *length);

/**
 * Copies `length` bytes at `data` into a mapped region, at `offset`. They are visible to the owner when the call returns.
 *
 * Errors: REFUSED with the reason OUT_OF_BOUNDS, PERMISSION_DENIED or REVOKED; PEER_LOST.
 * Threads: any.
 */
rackloom_error rackloom_peer_region_write(rackloom_peer_region region,
                                          uint64_t offset,
                                          const void *data,
                                          uint64_t length);

/**
 * Copies `length` bytes of a mapped region, from `offset`, to `data`.
 *
 * Errors: those of `rackloom_peer_region_write`.
 * Threads: any.
 */
rackloom_error rackloom_peer_region_read(rackloom_peer_region region, uint64_t offset, void *data, uint64_t length);

/**
 * Updates a word of a mapped region. The arguments are those of `rackloom_atomic`.
 *
 * Errors: those of `rackloom_peer_region_write`; REFUSED with the reason MISALIGNED; BAD_ARGUMENT.
 * Threads: any.
 */
rackloom_error rackloom_peer_region_atomic(rackloom_peer_region region,
                                           uint64_t offset,
                                           uint32_t atomic,
                                           uint32_t word,
                                           uint64_t operand,
                                           uint64_t compare,
                                           uint64_t *old);

/**
 * Stores a word of 8 bytes after all earlier writes of this thread, and ends waits of the owner for it.
 *
 * Errors: those of `rackloom_peer_region_atomic`.
 * Threads: any.
 */
rackloom_error rackloom_peer_region_signal(rackloom_peer_region region, uint64_t offset, uint64_t value);

/**
 * Writes the attributes of an address of this process, or of the node's device as of `rackloom_region_device_address`. The time grows with the number of
 * regions.
 *
 * Errors: INVALID if the address is in no region of the node; BAD_SIZE.
 * Threads: any.
 */
rackloom_error rackloom_node_pointer_attributes(rackloom_node node,
                                                uint64_t address,
                                                struct rackloom_pointer_attributes *attributes);

/**
 * Sets the access rights of one node to a region, in place of those of its options, until the region ends. `access` has the values of
 * `rackloom_pool_set_access`. All mappings of the region end, also those of other nodes.
 *
 * Errors: BAD_ARGUMENT for unknown rights; NO_SUCH_NODE; CLOSED.
 * Threads: any.
 */
rackloom_error rackloom_region_set_access(rackloom_region region,
                                          uint32_t peer,
                                          uint32_t access);

/**
 * Writes the access rights of one node to a region: those that were set for the node or its pool, or else those of the options. `RACKLOOM_ACCESS_NONE` if
 * there are none.
 *
 * Errors: CLOSED.
 * Threads: any.
 */
rackloom_error rackloom_region_access(rackloom_region region,
                                      uint32_t peer,
                                      uint32_t *access);

/**
 * Writes the bytes by which other nodes find and map a region. They are valid until the last handle of the region is freed.
 *
 * Threads: any.
 */
rackloom_error rackloom_region_export(rackloom_region region,
                                      struct rackloom_exported_region *exported);

/**
 * Writes the address of the first byte and the length of an exported region. Each of the two pointers may be null.
 *
 * Errors: INVALID if the bytes are not those of `rackloom_region_export`.
 * Threads: any.
 */
rackloom_error rackloom_exported_region_address(const struct rackloom_exported_region *exported,
                                                struct rackloom_address *address,
                                                uint64_t *length);

/**
 * Maps an exported region of a peer of the same server. `rackloom_peer_region_free` frees it.
 *
 * Errors: INVALID if the bytes are not those of `rackloom_region_export`; those of `rackloom_peer_region_map`.
 * Threads: any.
 */
rackloom_error rackloom_peer_region_import(rackloom_node node,
                                           const struct rackloom_exported_region *exported,
                                           uint64_t timeout_ns,
                                           rackloom_peer_region *region);

/**
 * Makes a text of the regions of a node that have a handle now: a JSON array of objects with `region`, `offset` (0),
 * `bytes`, `tenant` and `tag`. The tag is that of `rackloom_pool_allocate`, and empty for other regions. The array is
 * empty after the node has left.
 *
 * Threads: any.
 */
rackloom_error rackloom_node_allocations(rackloom_node node, rackloom_text *allocations);

/**
 * Sets the function that is called once when a node leaves, also because its last handle is freed, and regions still
 * have a handle. The regions end with the node. It is not called if there is none, and replaces one that was set
 * before. `context`, which may be null, stays valid until the node has left.
 *
 * Threads: any.
 */
rackloom_error rackloom_node_on_leak(rackloom_node node, rackloom_leak_function function, void *context);

/**
 * Makes a pool that is independent of all other pools of the node.
 *
 * Errors: BAD_ARGUMENT for unknown constants; SYSTEM with a hint if there is no such device; INVALID for a second device of the node; CLOSED.
 * Threads: any.
 */
rackloom_error rackloom_pool_create(rackloom_node node,
                                    const struct rackloom_pool_options *options,
                                    rackloom_pool *pool);

/**
 * Makes a handle of the node's default pool on a device, one of `RACKLOOM_DEVICE_...`, or on the host. The rack file sets its threshold and its policies.
 *
 * Errors: those of `rackloom_pool_create`.
 * Threads: any.
 */
rackloom_error rackloom_pool_default(rackloom_node node,
                                     uint32_t device_kind,
                                     uint64_t device_number,
                                     rackloom_pool *pool);

/**
 * Makes a handle of the node's current pool on a device or on the host: that of `rackloom_pool_set_current`, or else the default pool.
 *
 * Errors: those of `rackloom_pool_create`.
 * Threads: any.
 */
rackloom_error rackloom_pool_current(rackloom_node node,
                                     uint32_t device_kind,
                                     uint64_t device_number,
                                     rackloom_pool *pool);

/**
 * Makes a pool the current one of its node, on its device or on the host. The node keeps it until another pool is current.
 *
 * Errors: INVALID if the pool belongs to another node.
 * Threads: any.
 */
rackloom_error rackloom_pool_set_current(rackloom_node node,
                                         rackloom_pool pool);

/**
 * Frees the handle of a pool. The pool ends with its last handle and its last region.
 *
 * Threads: any.
 */
rackloom_error rackloom_pool_free(rackloom_pool pool);

/**
 * Allocates a region of `length` bytes from a pool. `tag` is its purpose, which `rackloom_node_allocations` shows. The bytes are zero only if the system has
 * just provided them. `rackloom_region_free` gives the memory back to the pool, once no operation of the node uses it. The pool has the device, so that of
 * the options is 0.
 *
 * Errors: those of `rackloom_region_allocate`; BAD_ARGUMENT if the options name a device; SYSTEM with a hint if the device has no memory.
 * Threads: any.
 */
rackloom_error rackloom_pool_allocate(rackloom_pool pool,
                                      const struct rackloom_region_options *options,
                                      uint64_t length,
                                      const char *tag,
                                      rackloom_region *region);

/**
 * Sets the access rights of one node to all regions of a pool, those that exist and later ones, in place of those of each region's options. `access` is a
 * sum of `RACKLOOM_ACCESS_...`, or `RACKLOOM_ACCESS_NONE`, or `RACKLOOM_ACCESS_OF_OPTIONS`, which removes the rights that were set. All mappings of the
 * regions end, also those of other nodes.
 *
 * Errors: BAD_ARGUMENT for unknown rights; NO_SUCH_NODE; CLOSED.
 * Threads: any.
 */
rackloom_error rackloom_pool_set_access(rackloom_pool pool,
                                        uint32_t peer,
                                        uint32_t access);

/**
 * Writes the access rights that were set for a node, or `RACKLOOM_ACCESS_OF_OPTIONS`.
 *
 * Threads: any.
 */
rackloom_error rackloom_pool_access(rackloom_pool pool, uint32_t peer, uint32_t *access);

/**
 * Sets the number of bytes above which a pool releases unused memory to the system.
 *
 * Threads: any.
 */
rackloom_error rackloom_pool_set_release_threshold(rackloom_pool pool, uint64_t bytes);

/**
 * Sets the policies for memory that other nodes still have mapped: a sum of `RACKLOOM_REUSE_...`, or `RACKLOOM_REUSE_NONE`. 0 is all of them.
 *
 * Errors: BAD_ARGUMENT.
 * Threads: any.
 */
rackloom_error rackloom_pool_set_reuse(rackloom_pool pool,
                                       uint32_t reuse);

/**
 * Writes the device of a pool, its release threshold and its policies to the options that the program gives. Set `size` before.
 *
 * Errors: BAD_SIZE.
 * Threads: any.
 */
rackloom_error rackloom_pool_settings(rackloom_pool pool,
                                      struct rackloom_pool_options *options);

/**
 * Releases unused memory of a pool to the system, the oldest first, until at most `keep_bytes` stay reserved. Memory in use, and memory that other nodes
 * have mapped, stays. `released`, which may be null, gets the number of bytes released.
 *
 * Threads: any.
 */
rackloom_error rackloom_pool_trim(rackloom_pool pool,
                                  uint64_t keep_bytes,
                                  uint64_t *released);

/**
 * Writes the counters of a pool.
 *
 * Errors: BAD_SIZE.
 * Threads: any.
 */
rackloom_error rackloom_pool_counters(rackloom_pool pool, struct rackloom_pool_statistics *statistics);

/**
 * Resets the maximum values of a pool to the current ones.
 *
 * Threads: any.
 */
rackloom_error rackloom_pool_reset_high(rackloom_pool pool);

/**
 * Makes a pool of blocks in regions of a node, on the host. The pool keeps the node until it is freed.
 *
 * Errors: BAD_ARGUMENT for unknown access rights, or for a maximum below the length of the first region; those of
 * `rackloom_region_allocate`.
 * Threads: any.
 */
rackloom_error rackloom_block_pool_create(rackloom_node node,
                                          const struct rackloom_block_pool_options *options,
                                          rackloom_block_pool *pool);

/**
 * Frees a pool of blocks. Its regions end, also those with blocks that were not freed.
 *
 * Threads: any.
 */
rackloom_error rackloom_block_pool_free(rackloom_block_pool pool);

/**
 * Allocates a block of `bytes`, which may be 0. `align` is a power of two up to 4096, or 0; each block is aligned to
 * 64 bytes. `tenant` is the owner whose limit counts, 0 unless the program has several. `tag` is the purpose of the
 * block, which reports of leaks show. The bytes are not zeroed if an earlier block had them.
 *
 * Errors: NO_SPACE if no free part is long enough and the pool may not grow that far; OVER_QUOTA; BAD_ARGUMENT; those
 * of `rackloom_region_allocate` if the pool had to grow.
 * Threads: any.
 */
rackloom_error rackloom_block_allocate(rackloom_block_pool pool,
                                       uint32_t tenant,
                                       uint64_t bytes,
                                       uint64_t align,
                                       const char *tag,
                                       struct rackloom_block *block);

/**
 * Frees a block. Peers may access its bytes until its region ends, and should no longer do so.
 *
 * Errors: INVALID if the block belongs to another pool, or was freed before.
 * Threads: any.
 */
rackloom_error rackloom_block_free(rackloom_block_pool pool, struct rackloom_block block);

/**
 * Writes the address with which peers access the byte at `offset` of a block.
 *
 * Errors: INVALID if the block belongs to another pool, was freed, or ends before the offset.
 * Threads: any.
 */
rackloom_error rackloom_block_address(rackloom_block_pool pool,
                                      struct rackloom_block block,
                                      uint64_t offset,
                                      struct rackloom_address *address);

/**
 * Makes a handle of the region of a block, for slices and pointers: the block is the part `{region, block.offset,
 * block.bytes}`. Blocks with one number of the region share one handle. While the handle exists,
 * `rackloom_block_pool_trim` and the end of the pool do not end the region for this node.
 *
 * Errors: INVALID if the block belongs to another pool, or was freed.
 * Threads: any.
 */
rackloom_error rackloom_block_region(rackloom_block_pool pool, struct rackloom_block block, rackloom_region *region);

/**
 * Ends regions of a pool without a block, the latest first, until at most `keep_bytes` stay reserved. `released`,
 * which may be null, gets the number of bytes released.
 *
 * Threads: any.
 */
rackloom_error rackloom_block_pool_trim(rackloom_block_pool pool, uint64_t keep_bytes, uint64_t *released);

/**
 * Sets the limit of a tenant in bytes, in whole units of 64 bytes for each block. UINT64_MAX removes the limit. Blocks
 * that the tenant has stay.
 *
 * Errors: BAD_ARGUMENT.
 * Threads: any.
 */
rackloom_error rackloom_block_pool_set_quota(rackloom_block_pool pool, uint32_t tenant, uint64_t limit_bytes);

/**
 * Writes the bytes that the blocks of a tenant take, and their maximum since the last reset. Each of the two pointers
 * may be null.
 *
 * Errors: BAD_ARGUMENT.
 * Threads: any.
 */
rackloom_error rackloom_block_pool_usage(rackloom_block_pool pool,
                                         uint32_t tenant,
                                         uint64_t *bytes,
                                         uint64_t *bytes_high);

/**
 * Writes the counters of a pool of blocks. Used bytes are those of blocks, in whole units of 64 bytes, and `regions`
 * is the number of blocks.
 *
 * Errors: BAD_SIZE.
 * Threads: any.
 */
rackloom_error rackloom_block_pool_counters(rackloom_block_pool pool, struct rackloom_pool_statistics *statistics);

/**
 * Resets the maximum values of a pool of blocks and of its tenants to the current ones.
 *
 * Threads: any.
 */
rackloom_error rackloom_block_pool_reset_high(rackloom_block_pool pool);

/**
 * Makes a text of the blocks that are allocated now: a JSON array of objects with `region`, `offset`, `bytes`,
 * `tenant` and `tag`.
 *
 * Threads: any.
 */
rackloom_error rackloom_block_pool_leaks(rackloom_block_pool pool, rackloom_text *leaks);

/**
 * Sets the function that is called when a pool of blocks ends and blocks are still allocated. It replaces one that was
 * set before. `context`, which may be null, stays valid until the pool has ended.
 *
 * Threads: any.
 */
rackloom_error rackloom_block_pool_on_leak(rackloom_block_pool pool, rackloom_leak_function function, void *context);

/**
 * Begins an operation and waits until it has ended, at most for `timeout_ns`. The calling thread drives the node meanwhile. If the queue towards the peer
 * is full, the call waits for space. At the deadline a receive or a wait is cancelled, and has taken nothing; other operations continue without a
 * completion. `end` may be null and gets value, sender and tag.
 *
 * Errors: BAD_ARGUMENT for unknown constants; handles of `local`; INVALID, NO_SUCH_NODE, REFUSED, FAILED, PEER_LOST, PEER_LEFT, TIMED_OUT, CLOSED.
 * Threads: any.
 */
rackloom_error rackloom_operation_wait(rackloom_node node,
                                       const struct rackloom_operation *operation,
                                       uint64_t timeout_ns,
                                       struct rackloom_completion *end);

/**
 * Begins an operation and returns at once, with a handle to test it and to wait for it. Local bytes of a put or a send must not change until it has
 * ended.
 *
 * Errors: BUSY; errors of `rackloom_operation_wait` that are known at once.
 * Threads: any.
 */
rackloom_error rackloom_operation_start(rackloom_node node,
                                        const struct rackloom_operation *operation,
                                        rackloom_pending *pending);

/**
 * Begins an operation and returns at once. Its completion, with `context`, arrives in `queue`. `number` may be null and gets the number of the operation, for
 * `rackloom_node_cancel`.
 *
 * Errors: BUSY; errors of `rackloom_operation_wait` that are known at once.
 * Threads: any.
 */
rackloom_error rackloom_operation_submit(rackloom_node node,
                                         const struct rackloom_operation *operation,
                                         rackloom_queue queue,
                                         uint64_t context,
                                         uint64_t *number);

/**
 * Begins several operations together, so that those to one peer share frames. Completion `i` has the context `context + i`. `taken` gets the number of
 * operations that began: fewer than `count` if the queue towards a peer is full; poll, and continue from there. An operation that is refused at once
 * counts as taken, and its completion says why. `stride` is the distance between operations in bytes, usually sizeof(rackloom_operation).
 *
 * Errors: BAD_ARGUMENT for unknown constants and handles of `local`, before anything begins.
 * Threads: any.
 */
rackloom_error rackloom_operations_submit(rackloom_node node,
                                          const struct rackloom_operation *operations,
                                          uint64_t stride,
                                          uint64_t count,
                                          rackloom_queue queue,
                                          uint64_t context,
                                          uint64_t *taken);

/**
 * Begins an operation without a completion, and returns when the node has accepted it. The next flush towards its peer waits for it and reports a failure.
 * Local bytes must not be used until then. Receives, waits and flushes cannot be posted.
 *
 * Errors: INVALID, NO_SUCH_NODE, PEER_LOST, PEER_LEFT, CLOSED.
 * Threads: any.
 */
rackloom_error rackloom_operation_post(rackloom_node node,
                                       const struct rackloom_operation *operation);

/**
 * Writes 1 to 16384 bytes at `target`, and waits until they are visible there.
 *
 * Errors: those of `rackloom_operation_wait`.
 * Threads: any.
 */
rackloom_error rackloom_store(rackloom_node node, struct rackloom_address target, const void *data, uint64_t length);

/**
 * Reads 1 to 16384 bytes at `source` into a slice of this node.
 *
 * Errors: those of `rackloom_operation_wait`.
 * Threads: any.
 */
rackloom_error rackloom_load(rackloom_node node, struct rackloom_address source, struct rackloom_slice into);

/**
 * Copies a slice of this node to `target`, and waits until it is visible there.
 *
 * Errors: those of `rackloom_operation_wait`.
 * Threads: any.
 */
rackloom_error rackloom_put(rackloom_node node, struct rackloom_slice source, struct rackloom_address target);

/**
 * Copies a slice of this node to `target`, and then updates a word of 8 bytes at the same node. A reader that sees the new word sees the data.
 *
 * Errors: those of `rackloom_operation_wait`.
 * Threads: any.
 */
rackloom_error rackloom_put_with_signal(rackloom_node node,
                                        struct rackloom_slice source,
                                        struct rackloom_address target,
                                        struct rackloom_signal signal);

/**
 * Copies bytes at `source` to a slice of this node.
 *
 * Errors: those of `rackloom_operation_wait`.
 * Threads: any.
 */
rackloom_error rackloom_get(rackloom_node node, struct rackloom_address source, struct rackloom_slice into);

/**
 * Updates a word of 4 or 8 bytes at `target`: `atomic` is the kind, such as `RACKLOOM_FETCH_ADD`, `word` the type of the word, such as `RACKLOOM_U64`.
 * `compare` is the expected word of `RACKLOOM_COMPARE_SWAP`. `old` may be null and gets the old word.
 *
 * Errors: those of `rackloom_operation_wait`.
 * Threads: any.
 */
rackloom_error rackloom_atomic(rackloom_node node,
                               struct rackloom_address target,
                               uint32_t atomic,
                               uint32_t word,
                               uint64_t operand,
                               uint64_t compare,
                               uint64_t *old);

/**
 * Waits until the 8-byte word at `offset` of a region of this node satisfies a condition, such as `RACKLOOM_EQUAL`. The loss of `from` ends the wait.
 * The word is checked now and after each change by a peer. A write by this process causes no check. `word` may be null and gets the word.
 *
 * Errors: those of `rackloom_operation_wait`.
 * Threads: any.
 */
rackloom_error rackloom_wait_until(rackloom_node node,
                                   rackloom_region region,
                                   uint64_t offset,
                                   uint32_t condition_kind,
                                   uint64_t value,
                                   uint32_t from,
                                   uint64_t *word);

/**
 * Orders operations to `peer`, or to all nodes (`RACKLOOM_ANY_NODE`): those that begin later become visible only after those that began before.
 *
 * Errors: NO_SUCH_NODE, CLOSED.
 * Threads: any. It orders the operations of the node, of all threads.
 */
rackloom_error rackloom_fence(rackloom_node node,
                              uint32_t peer);

/**
 * Waits until all operations to `peer`, or to all nodes (`RACKLOOM_ANY_NODE`), that began before are visible.
 *
 * Errors: REFUSED, PEER_LOST or PEER_LEFT with the target of a posted operation that failed, one for each call; NO_SUCH_NODE, CLOSED.
 * Threads: any.
 */
rackloom_error rackloom_flush(rackloom_node node,
                              uint32_t peer);

/**
 * Sends a slice of this node as a message with `tag`, and waits until the peer holds it.
 *
 * Errors: those of `rackloom_operation_wait`.
 * Threads: any.
 */
rackloom_error rackloom_send(rackloom_node node, uint32_t peer, uint64_t tag, struct rackloom_slice source);

/**
 * Receives the oldest message whose tag equals `tag` in all bits that `ignore` does not set, from `source` or from any node (`RACKLOOM_ANY_NODE`). `end` may be
 * null and gets sender (`peer`), tag and length (`value`).
 *
 * Errors: those of `rackloom_operation_wait`; FAILED with the reason MESSAGE_TRUNCATED if the message is longer than the slice.
 * Threads: any.
 */
rackloom_error rackloom_receive(rackloom_node node,
                                uint32_t source,
                                uint64_t tag,
                                uint64_t ignore,
                                struct rackloom_slice into,
                                struct rackloom_completion *end);

/**
 * Begins the transfers of `count` pieces and returns at once. `kind` is `RACKLOOM_PUT`, from the slices to the peers,
 * or `RACKLOOM_GET`. Peers may be different nodes, and pieces may arrive in any order. One completion, with `context`,
 * arrives in `queue` when all have ended: the first failure, or success. `number` may be null and gets the number of
 * the operation, which its completion has. It cannot be cancelled.
 *
 * Errors: BAD_ARGUMENT for another kind; handles of the slices; INVALID for a slice of another node; CLOSED. The
 * completion has those of `rackloom_put`.
 * Threads: any.
 */
rackloom_error rackloom_vector_submit(rackloom_node node,
                                      uint32_t kind,
                                      const struct rackloom_piece *pieces,
                                      uint64_t count,
                                      rackloom_queue queue,
                                      uint64_t context,
                                      uint64_t *number);

/**
 * Begins the transfers of blocks at equal distances, such as a column of a matrix, and returns at once. The blocks
 * begin at the start of `local` and at `remote`. `kind`, `queue`, `context` and `number` are those of
 * `rackloom_vector_submit`.
 *
 * Errors: those of `rackloom_vector_submit`; INVALID if the blocks are not within the slice.
 * Threads: any.
 */
rackloom_error rackloom_strided_submit(rackloom_node node,
                                       uint32_t kind,
                                       struct rackloom_slice local,
                                       struct rackloom_address remote,
                                       const struct rackloom_strided *layout,
                                       rackloom_queue queue,
                                       uint64_t context,
                                       uint64_t *number);

/**
 * Begins a put of a slice, after which the target gets an empty message with the tag `immediate`, and returns at once.
 * A receive of the target that takes the message completes behind the data. `queue`, `context` and `number` are those
 * of `rackloom_vector_submit`.
 *
 * Errors: those of `rackloom_vector_submit`. The completion has also those of `rackloom_send`. No message is sent if
 * the put fails.
 * Threads: any.
 */
rackloom_error rackloom_put_with_immediate_submit(rackloom_node node,
                                                  struct rackloom_slice local,
                                                  struct rackloom_address remote,
                                                  uint64_t immediate,
                                                  rackloom_queue queue,
                                                  uint64_t context,
                                                  uint64_t *number);

/**
 * Opens a ring of at least `slots` slots, 1 to 65536, through which kernels begin operations of a node. The node must
 * have a region on the device that runs the kernels; a fake device serves tests. The node serves the ring with its own
 * threads: new commands begin and completions go back without a call of the program. A node with an open ring does not
 * sleep. The ring keeps the node until it is freed.
 *
 * Errors: BAD_ARGUMENT for another number of slots; INVALID if the node has no region on a device; SYSTEM if the
 * device has no memory; CLOSED.
 * Threads: any.
 */
rackloom_error rackloom_command_queue_create(rackloom_node node, uint32_t slots, rackloom_command_queue *queue);

/**
 * Closes a ring and frees its handle. All waits of kernels end with the status closed. The memory of the ring stays
 * until the node ends, because a kernel may still read it.
 *
 * Threads: any.
 */
rackloom_error rackloom_command_queue_free(rackloom_command_queue queue);

/**
 * Writes the addresses of a ring, which kernels get as an argument by value. The kernels include
 * `rackloom_kernel_header`.
 *
 * Threads: any.
 */
rackloom_error rackloom_command_queue_ring(rackloom_command_queue queue, struct rackloom_command_ring *ring);

/**
 * Issues a command from a thread of the host in place of a kernel, for tests and for machines without a GPU. A ring
 * serves either kernels or threads of the host. `ticket` gets the number with which `rackloom_command_queue_poll`
 * finds the end. A slot stays occupied until then, or until a posted command has ended. A command that has no meaning
 * ends with a status.
 *
 * Errors: BUSY if no slot is free; CLOSED if the ring is not served any more.
 * Threads: any.
 */
rackloom_error rackloom_command_queue_issue(rackloom_command_queue queue,
                                            const struct rackloom_command *command,
                                            uint64_t *ticket);

/**
 * Writes the status of a command of `rackloom_command_queue_issue`, one of `RACKLOOM_STATUS_...`, if it has ended.
 * `value`, which may be null, gets the old value of an atomic. One thread polls each ticket, until the command has
 * ended. The ticket of a posted command is not polled.
 *
 * Errors: EMPTY if the command has not ended.
 * Threads: any.
 */
rackloom_error rackloom_command_queue_poll(rackloom_command_queue queue,
                                           uint64_t ticket,
                                           uint32_t *status,
                                           uint64_t *value);

/**
 * Writes the number of peers that the node has lost since the ring was made, as kernels see it.
 *
 * Threads: any.
 */
rackloom_error rackloom_command_queue_losses(rackloom_command_queue queue, uint64_t *losses);

/**
 * Returns the source of the header `rackloom.cuh` for kernels in CUDA, for a compiler at run time or to write it to a
 * file. It has the functions with which kernels issue commands and wait. Its names collide with those of this header,
 * so one source file includes only one of the two. The text is never freed.
 *
 * Threads: any.
 */
const char *rackloom_kernel_header(void);

/**
 * Polls the node once, and writes 1 if the operation has ended, else 0. Never blocks.
 *
 * Threads: one at a time for each handle.
 */
rackloom_error rackloom_pending_test(rackloom_pending pending, uint32_t *has_ended);

/**
 * Waits until an operation has ended, at most for `timeout_ns`, and returns its result. `end` may be null. The result is returned once. The handle stays
 * and must be freed.
 *
 * Errors: those of the operation; TIMED_OUT: the operation continues, and the handle can be used again; CLOSED if the result was returned before.
 * Threads: one at a time for each handle.
 */
rackloom_error rackloom_pending_wait(rackloom_pending pending,
                                     uint64_t timeout_ns,
                                     struct rackloom_completion *end);

/**
 * Waits until one of several operations of one node has ended, and returns its index. `rackloom_pending_wait` then returns its result at once.
 *
 * Errors: INVALID for an empty list, or for operations of several nodes; IN_USE also if a handle is named twice; CLOSED.
 * Threads: one at a time for each handle.
 */
rackloom_error rackloom_pending_wait_any(const rackloom_pending *pending,
                                         uint64_t count,
                                         uint64_t *index);

/**
 * Cancels a receive or a wait. Its result is then FAILED with the reason CANCELLED, unless it has ended before. To cancel while another thread waits,
 * use `rackloom_node_cancel`.
 *
 * Errors: INVALID for other operations.
 * Threads: one at a time for each handle.
 */
rackloom_error rackloom_pending_cancel(rackloom_pending pending);

/**
 * Returns the number of an operation at its node, for `rackloom_node_cancel`.
 *
 * Threads: one at a time for each handle.
 */
rackloom_error rackloom_pending_operation(rackloom_pending pending, uint64_t *number);

/**
 * Frees the handle of an operation. An operation to a peer that has not ended continues without a completion. A receive or a wait is cancelled.
 *
 * Threads: any.
 */
rackloom_error rackloom_pending_free(rackloom_pending pending);

/**
 * Makes a completion queue with space for `capacity` completions. It grows if more wait. Operations of several nodes may complete in one queue.
 *
 * Threads: any.
 */
rackloom_error rackloom_queue_create(uint64_t capacity,
                                     rackloom_queue *queue);

/**
 * Frees the handle of a queue. Operations that complete in it continue.
 *
 * Threads: any.
 */
rackloom_error rackloom_queue_free(rackloom_queue queue);

/**
 * Takes the oldest completion. Does not poll a node. The call succeeds for an operation that has failed: `completion->error` says so.
 *
 * Errors: EMPTY.
 * Threads: any. Each completion is taken once.
 */
rackloom_error rackloom_queue_pop(rackloom_queue queue,
                                  struct rackloom_completion *completion);

/**
 * Takes the oldest completion. If there is none, polls the node once and looks again. Never sleeps.
 *
 * Errors: EMPTY.
 * Threads: any.
 */
rackloom_error rackloom_queue_poll(rackloom_queue queue, rackloom_node node, struct rackloom_completion *completion);

/**
 * Takes the oldest completion. While there is none, drives the node and sleeps, at most for `timeout_ns`.
 *
 * Errors: EMPTY at the deadline.
 * Threads: any.
 */
rackloom_error rackloom_queue_next(rackloom_queue queue,
                                   rackloom_node node,
                                   uint64_t timeout_ns,
                                   struct rackloom_completion *completion);

/**
 * Returns a file descriptor that is readable while a completion waits, for `poll` and `epoll`. Do not read or close it: take completions with
 * `rackloom_queue_pop` until there is none. It is valid until the queue is freed.
 *
 * Errors: SYSTEM if the process may have no more descriptors.
 * Threads: any.
 */
rackloom_error rackloom_queue_descriptor(rackloom_queue queue,
                                         int32_t *descriptor);

/**
 * Writes the number of completions that wait, and of operations that succeeded and failed since the queue was made. Each pointer may be null.
 *
 * Threads: any.
 */
rackloom_error rackloom_queue_counts(rackloom_queue queue,
                                     uint64_t *waiting,
                                     uint64_t *succeeded,
                                     uint64_t *failed);

/**
 * Gives a node to one thread that issues operations in a loop and polls in between. Operations then cost less, and completions come in batches. A node has
 * one driver at most. Other handles of the node still work.
 *
 * Errors: INVALID if the node has a driver.
 * Threads: any.
 */
rackloom_error rackloom_driver_begin(rackloom_node node,
                                     rackloom_driver *driver);

/**
 * Frees a driver. Operations in flight continue without a completion.
 *
 * Threads: any.
 */
rackloom_error rackloom_driver_free(rackloom_driver driver);

/**
 * Begins a store of 1 to 16384 bytes. The completion has `context`.
 *
 * Errors: BUSY: poll, and try again; other errors that are known at once.
 * Threads: one at a time for each handle.
 */
rackloom_error rackloom_driver_store(rackloom_driver driver,
                                     struct rackloom_address target,
                                     const void *data,
                                     uint64_t length,
                                     uint64_t context);

/**
 * Begins a store without a completion. The next flush reports a failure.
 *
 * Errors: those of `rackloom_driver_store`.
 * Threads: one at a time for each handle.
 */
rackloom_error rackloom_driver_store_posted(rackloom_driver driver,
                                            struct rackloom_address target,
                                            const void *data,
                                            uint64_t length);

/**
 * Begins several stores in order. `taken` gets the number of stores that were accepted: fewer than `count` if the queue towards a peer is full; poll, and
 * continue from there.
 *
 * Errors: those of `rackloom_driver_store`, if the first store is not accepted.
 * Threads: one at a time for each handle.
 */
rackloom_error rackloom_driver_stores(rackloom_driver driver,
                                      const struct rackloom_store_entry *stores,
                                      uint64_t count,
                                      uint64_t *taken);

/**
 * Begins several stores in order without completions. The next flush reports a failure.
 *
 * Errors: those of `rackloom_driver_stores`.
 * Threads: one at a time for each handle.
 */
rackloom_error rackloom_driver_stores_posted(rackloom_driver driver,
                                             const struct rackloom_store_entry *stores,
                                             uint64_t count,
                                             uint64_t *taken);

/**
 * Begins a copy of a slice of this node to `target`. The completion has `context`.
 *
 * Errors: those of `rackloom_driver_store`.
 * Threads: one at a time for each handle.
 */
rackloom_error rackloom_driver_put(rackloom_driver driver,
                                   struct rackloom_slice source,
                                   struct rackloom_address target,
                                   uint64_t context);

/**
 * Begins a copy of a slice of this node to `target` without a completion. The slice must not change until a flush has ended, which reports a failure.
 *
 * Errors: those of `rackloom_driver_store`.
 * Threads: one at a time for each handle.
 */
rackloom_error rackloom_driver_put_posted(rackloom_driver driver,
                                          struct rackloom_slice source,
                                          struct rackloom_address target);

/**
 * Begins a copy of bytes at `source` to a slice of this node. The completion has `context`.
 *
 * Errors: those of `rackloom_driver_store`.
 * Threads: one at a time for each handle.
 */
rackloom_error rackloom_driver_get(rackloom_driver driver,
                                   struct rackloom_address source,
                                   struct rackloom_slice into,
                                   uint64_t context);

/**
 * Begins any operation. The completion has `context`. `number` may be null and gets the number of the operation, for `rackloom_node_cancel`.
 *
 * Errors: those of `rackloom_operation_submit`.
 * Threads: one at a time for each handle.
 */
rackloom_error rackloom_driver_submit(rackloom_driver driver,
                                      const struct rackloom_operation *operation,
                                      uint64_t context,
                                      uint64_t *number);

/**
 * Begins any operation and waits until it has ended. The next poll returns completions that arrive meanwhile. `end` may be null.
 *
 * Errors: those of `rackloom_operation_wait`.
 * Threads: one at a time for each handle.
 */
rackloom_error rackloom_driver_wait(rackloom_driver driver,
                                    const struct rackloom_operation *operation,
                                    struct rackloom_completion *end);

/**
 * Polls the node, and writes up to `capacity` completions. `count` gets their number. Waits for a completion at most for `timeout_ns`, and with 0 never.
 *
 * Threads: one at a time for each handle.
 */
rackloom_error rackloom_driver_poll(rackloom_driver driver,
                                    uint64_t timeout_ns,
                                    struct rackloom_completion *completions,
                                    uint64_t capacity,
                                    uint64_t *count);

/**
 * Joins the group of all GPU nodes of the rack, in the order of the rack file. `rackloom_group_join` describes the rest.
 *
 * Errors: those of `rackloom_group_join`.
 * Threads: any.
 */
rackloom_error rackloom_group_of_rack(rackloom_node node,
                                      const struct rackloom_group_options *options,
                                      rackloom_group *group);

/**
 * Joins a group of the `count` nodes in `members`, this node among them. All members join with equal options and an equal list, and call equal collectives
 * in the same order. The first collective waits until all have joined.
 *
 * Errors: INVALID if this node is not a member, a member is named twice, the staging is too large, or an adaptive group names an algorithm;
 * NO_SUCH_NODE; those of `rackloom_region_allocate`.
 * Threads: any.
 */
rackloom_error rackloom_group_join(rackloom_node node,
                                   const struct rackloom_group_options *options,
                                   const uint32_t *members,
                                   uint64_t count,
                                   rackloom_group *group);

/**
 * Leaves a group and frees its handle. Members that still need this node get an error: meet in a barrier before.
 *
 * Threads: any.
 */
rackloom_error rackloom_group_free(rackloom_group group);

/**
 * Writes the number of members, and the rank of this node. Each pointer may be null.
 *
 * Threads: any.
 */
rackloom_error rackloom_group_size(rackloom_group group, uint32_t *size, uint32_t *rank);

/**
 * Writes the numbers of the members' nodes, in rank order, to an array of `capacity` numbers.
 *
 * Errors: BUFFER_TOO_SMALL: `rackloom_group_size` has the number of members.
 * Threads: any.
 */
rackloom_error rackloom_group_members(rackloom_group group, uint32_t *members, uint64_t capacity);

/**
 * Makes a group of the members that give the same color, in ascending `order` and then by rank in `group`. `part` gets its handle, or 0 if `color` is
 * `RACKLOOM_NO_COLOR`. The part has the options of `group`; its region has a number that is free at each member, and a random key. All members call it, in
 * the same order as collectives, and it waits for the others.
 *
 * Errors: those of `rackloom_collective_wait` and of `rackloom_region_allocate`.
 * Threads: any. Collectives of a group run in the order in which they begin.
 */
rackloom_error rackloom_group_split(rackloom_group group,
                                    uint32_t color,
                                    uint32_t order,
                                    rackloom_group *part);

/**
 * Makes a group of the members of `group` in the same order, whose collectives are independent of those of `group`. All members call it, as
 * `rackloom_group_split`.
 *
 * Errors: those of `rackloom_group_split`.
 * Threads: any. Collectives of a group run in the order in which they begin.
 */
rackloom_error rackloom_group_duplicate(rackloom_group group,
                                        rackloom_group *duplicate);

/**
 * Makes one group for each server of the rack, of the members in that server. All members call it, as `rackloom_group_split`.
 *
 * Errors: those of `rackloom_group_split`.
 * Threads: any. Collectives of a group run in the order in which they begin.
 */
rackloom_error rackloom_group_split_by_server(rackloom_group group,
                                              rackloom_group *part);

/**
 * Makes a group of the members that have a link in `plane`. `part` gets 0 at the others. All members call it, as `rackloom_group_split`.
 *
 * Errors: those of `rackloom_group_split`; BAD_ARGUMENT for a plane above 255.
 * Threads: any. Collectives of a group run in the order in which they begin.
 */
rackloom_error rackloom_group_on_plane(rackloom_group group,
                                       uint32_t plane,
                                       rackloom_group *part);

/**
 * Writes the last trials of a group whose option `adaptive` is 1, in the order of their ends, to an array of `capacity` entries, and their number to
 * `count`. The group keeps the last 64; if the array is shorter, it gets the newest of them. A group that is not adaptive has none.
 *
 * Threads: any.
 */
rackloom_error rackloom_group_rechoices(rackloom_group group,
                                        struct rackloom_rechoice *rechoices,
                                        uint64_t capacity,
                                        uint64_t *count);

/**
 * Makes a reduction of elements of `element_bytes`: 1, 2, 4, 8, 12, 16, 24, 32, 40, 48, 56, 64 or 128. `order` is one of `RACKLOOM_COMMUTATIVE` and
 * `RACKLOOM_ORDERED`. Elements have the alignment of 8 bytes if that divides their size, else of 4 bytes or of their size. All members use equal
 * functions: the library cannot compare them. `context`, which may be null, stays valid until the reduction is freed and all collectives with it have ended.
 *
 * Errors: BAD_ARGUMENT for another size or order.
 * Threads: any.
 */
rackloom_error rackloom_reduction_create(rackloom_reduction_function function,
                                         void *context,
                                         uint64_t element_bytes,
                                         uint32_t order,
                                         rackloom_reduction *reduction);

/**
 * Frees a reduction. Collectives that use it continue, and still call the function.
 *
 * Threads: any.
 */
rackloom_error rackloom_reduction_free(rackloom_reduction reduction);

/**
 * Runs a collective and waits until this member's part is done. The calling thread drives the node meanwhile.
 *
 * Errors: BAD_ARGUMENT for unknown constants, and for arrays that overlap or are misaligned; INVALID if the arrays do not fit the group; PEER_LOST,
 * PEER_LEFT, GROUP_BROKEN, NOT_JOINED, REFUSED, CLOSED.
 * Threads: any. Collectives of a group run in the order in which they begin.
 */
rackloom_error rackloom_collective_wait(rackloom_group group,
                                        const struct rackloom_collective *collective);

/**
 * Begins a collective and returns at once, with a handle to test it and to wait for it. It advances in the background. The arrays must stay valid, and must
 * not be accessed, until it has ended or `rackloom_collective_free` has returned.
 *
 * Errors: those of `rackloom_collective_wait` that are known at once.
 * Threads: any. Collectives of a group run in the order in which they begin.
 */
rackloom_error rackloom_collective_start(rackloom_group group,
                                         const struct rackloom_collective *collective,
                                         rackloom_collective_request *started);

/**
 * Polls the node once, and writes 1 if a collective has ended, else 0. Never blocks. `rackloom_collective_request_wait` then returns its result at once.
 *
 * Threads: one at a time for each handle.
 */
rackloom_error rackloom_collective_request_test(rackloom_collective_request started,
                                                uint32_t *has_ended);

/**
 * Waits until a collective has ended, at most for `timeout_ns`, and returns its result. The result is returned once. The handle stays and must be freed.
 *
 * Errors: those of `rackloom_collective_wait`; TIMED_OUT: the collective continues, and the handle can be used again; CLOSED also if the result was returned
 * before.
 * Threads: one at a time for each handle.
 */
rackloom_error rackloom_collective_request_wait(rackloom_collective_request started,
                                                uint64_t timeout_ns);

/**
 * Frees a collective. If it has not ended, it ends here and the group breaks, on all members. The arrays are not used any more, unless another thread waits
 * for the collective: then they are in use until that call returns.
 *
 * Threads: any.
 */
rackloom_error rackloom_collective_free(rackloom_collective_request started);

/**
 * Begins a collective and returns at once. Its completion, with `context`, arrives in `queue`. It advances in the background. The arrays must stay valid, and
 * must not be accessed, until the completion has arrived.
 *
 * Errors: those of `rackloom_collective_wait` that are known at once.
 * Threads: any. Collectives of a group run in the order in which they begin.
 */
rackloom_error rackloom_collective_submit(rackloom_group group,
                                          const struct rackloom_collective *collective,
                                          rackloom_queue queue,
                                          uint64_t context);

/**
 * Meets the other members of a group: returns when every member has called it as often as this one.
 *
 * Errors: those of `rackloom_collective_wait`.
 * Threads: any. Collectives of a group run in the order in which they begin.
 */
rackloom_error rackloom_group_barrier(rackloom_group group);

/**
 * Replaces `count` elements at `values` by the reduction of all members' arrays. `element` is a type such as `RACKLOOM_F32`, `reduction` such as
 * `RACKLOOM_SUM`.
 *
 * Errors: those of `rackloom_collective_wait`.
 * Threads: any. Collectives of a group run in the order in which they begin.
 */
rackloom_error rackloom_group_all_reduce(rackloom_group group,
                                         void *values,
                                         uint64_t count,
                                         uint32_t element,
                                         uint32_t reduction);

/**
 * Replaces `count` elements at `values` by those of the node `root`.
 *
 * Errors: those of `rackloom_collective_wait`.
 * Threads: any. Collectives of a group run in the order in which they begin.
 */
rackloom_error rackloom_group_broadcast(rackloom_group group,
                                        void *values,
                                        uint64_t count,
                                        uint32_t element,
                                        uint32_t root);

/**
 * Makes a collective on slices of regions that runs many times: the arguments are checked, and the schedules made, once. It sends nothing, so members may
 * make such collectives in any order. It keeps node, group and regions.
 *
 * Errors: BAD_ARGUMENT for unknown constants, and for a collective on arrays; INVALID if the slices do not fit the group or belong to another node; those of
 * handles for the regions of the slices.
 * Threads: any.
 */
rackloom_error rackloom_persistent_create(rackloom_group group,
                                          const struct rackloom_collective *collective,
                                          rackloom_persistent *persistent);

/**
 * Runs a persistent collective once, and waits until this member's part is done, as `rackloom_collective_wait`.
 *
 * Errors: those of `rackloom_collective_wait`.
 * Threads: any. Collectives of a group run in the order in which they begin.
 */
rackloom_error rackloom_persistent_wait(rackloom_persistent persistent);

/**
 * Begins one run of a persistent collective and returns at once, as `rackloom_collective_start`. Wait for the run, and free it, before the next one starts on
 * the same slices: runs in several lanes may overlap.
 *
 * Errors: those of `rackloom_collective_wait` that are known at once.
 * Threads: any. Collectives of a group run in the order in which they begin.
 */
rackloom_error rackloom_persistent_start(rackloom_persistent persistent,
                                         rackloom_collective_request *started);

/**
 * Begins one run of a persistent collective and returns at once. Its completion, with `context`, arrives in `queue`, as with `rackloom_collective_submit`.
 *
 * Errors: those of `rackloom_collective_wait` that are known at once.
 * Threads: any. Collectives of a group run in the order in which they begin.
 */
rackloom_error rackloom_persistent_submit(rackloom_persistent persistent,
                                          rackloom_queue queue,
                                          uint64_t context);

/**
 * Frees a persistent collective. Runs that have begun continue.
 *
 * Threads: any.
 */
rackloom_error rackloom_persistent_free(rackloom_persistent persistent);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* RACKLOOM_H */
