// What kernels may do to the memory of other nodes: store, load, put, get, atomics, signals, waits, barriers.
//
// A kernel does nothing of this itself. It gives commands through a ring in pinned memory (`rackloom_queue`, an argument by value), which
// the node's event loop on the host serves; frames do the rest. So the price of an operation is that of the fabric plus two crossings of
// the bus, and a kernel that waits holds its multiprocessor meanwhile.
//
// Memory model
//
// 1. What a thread has written before it gives a command is seen by the command: giving is a release at system scope. What *other* threads
//    have written must be ordered before by the kernel: __syncthreads() within a block, a fence and a flag or a grid-wide barrier beyond.
// 2. When `rackloom_wait` has returned RACKLOOM_DONE, the operation is visible at its target, and what it brought (a load, a get) is visible
//    to the thread that waited: waiting is an acquire at system scope. Other threads learn of it as in 1.
// 3. A signal word of 8 bytes becomes visible after the data of its put, and after every put and store to the same node that was given
//    before a `rackloom_fence`. `rackloom_wait_until` is an acquire at system scope: who sees the word sees the data.
// 4. An aligned word of 4 or 8 bytes that was stored by itself is seen old or new, never torn. Other ranges may be seen half-written.
// 5. Atomics are atomic with respect to other nodes' atomics and to every kernel's `_system` atomics on the same word; mixed with plain
//    accesses they are not.
// 6. Two commands are carried out in the order of their tickets as far as the fabric keeps order: two plain stores may be seen in either.
//
// Rules
//
// - Each ticket is waited for once, by one thread. Posted commands have none; `rackloom_flush` ends when all of them are visible, and
//   fails if one of them has.
// - A thread that gives more commands than the ring has slots before it waits for the first one waits for itself for ever.
// - Nobody hangs on others: when the host closes the ring every wait returns RACKLOOM_CLOSED, and when a peer is lost its operations
//   return RACKLOOM_LOST or RACKLOOM_OUTCOME_UNKNOWN, and `rackloom_wait_until` returns RACKLOOM_LOST whoever was lost.
// - A barrier needs every block of the launch on the device at the same time: no more blocks than fit.
//
// Regions, keys and numbers of nodes are those of the library; this file knows no others.

#ifndef RACKLOOM_CUH
#define RACKLOOM_CUH

typedef unsigned int rackloom_u32;
typedef unsigned long long rackloom_u64;

enum {
    RACKLOOM_DONE = 0,
    RACKLOOM_INVALID = 1,
    RACKLOOM_REFUSED = 2,
    RACKLOOM_LOST = 3,
    RACKLOOM_OUTCOME_UNKNOWN = 4,
    RACKLOOM_CLOSED = 5,
};

enum {
    RACKLOOM_STORE = 1,
    RACKLOOM_LOAD = 2,
    RACKLOOM_PUT = 3,
    RACKLOOM_GET = 4,
    RACKLOOM_FETCH_ADD = 5,
    RACKLOOM_COMPARE_SWAP = 6,
    RACKLOOM_SWAP = 7,
    RACKLOOM_FLUSH = 8,
    RACKLOOM_FENCE = 9,
};

enum { RACKLOOM_POSTED = 1, RACKLOOM_SIGNAL = 2, RACKLOOM_SIGNAL_ADDS = 4 };

const rackloom_u32 RACKLOOM_ANY_PEER = 0xffffffffu;
const rackloom_u64 RACKLOOM_NO_TICKET = ~0ull;

// As the host hands it over.
struct rackloom_queue {
    rackloom_u64 control;  // closed; how many peers were lost
    rackloom_u64 replies;  // 64 bytes for each slot: state, value
    rackloom_u64 commands; // 128 bytes for each slot
    rackloom_u64 head;     // in device memory: tickets; from byte 64 on, the round that each slot is free for
    rackloom_u64 slots;
};

struct rackloom_command {
    rackloom_u32 kind, peer, region, flags;
    rackloom_u64 offset, key;
    rackloom_u32 local_region, signal_region;
    rackloom_u64 local_offset, length, operand, compare, signal_offset, signal_key, signal_value;
};

// Memory of another node.
struct rackloom_address {
    rackloom_u32 node, region;
    rackloom_u64 offset, key;
};

// Memory of one's own, as the node knows it.
struct rackloom_slice {
    rackloom_u32 region;
    rackloom_u64 offset, length;
};

__device__ inline rackloom_u64 rackloom_acquire(rackloom_u64 at)
{
    rackloom_u64 word;
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(word) : "l"(at) : "memory");
    return word;
}

__device__ inline void rackloom_release(rackloom_u64 at, rackloom_u64 word)
{
    asm volatile("st.release.sys.global.u64 [%0], %1;" : : "l"(at), "l"(word) : "memory");
}

__device__ inline bool rackloom_is_closed(const rackloom_queue &queue) { return rackloom_acquire(queue.control) != 0; }

__device__ inline rackloom_u64 rackloom_losses(const rackloom_queue &queue) { return rackloom_acquire(queue.control + 8); }

// Give a command: its ticket, or RACKLOOM_NO_TICKET if nobody serves the ring.
__device__ inline rackloom_u64 rackloom_issue(const rackloom_queue &queue, const rackloom_command &command)
{
    rackloom_u64 ticket = atomicAdd((rackloom_u64 *)queue.head, 1ull);
    rackloom_u64 slot = ticket % queue.slots, round = ticket / queue.slots;
    rackloom_u64 state = queue.replies + slot * 64;
    // Whoever has seen the end of the slot's last command says so in device memory; a posted one is freed by the host.
    for (unsigned spins = 0; *(volatile rackloom_u64 *)(queue.head + 64 + slot * 8) != round; spins++) {
        if (round > 0 && rackloom_acquire(state) == ((round - 1) << 16 | 3)) break;
        if (spins % 64 == 63 && rackloom_is_closed(queue)) return RACKLOOM_NO_TICKET;
    }
    const rackloom_u64 *from = (const rackloom_u64 *)&command;
    volatile rackloom_u64 *to = (volatile rackloom_u64 *)(queue.commands + slot * 128);
    for (unsigned word = 0; word < sizeof(rackloom_command) / 8; word++) to[word] = from[word];
    __threadfence_system();
    rackloom_release(state, round << 16 | 1);
    return ticket;
}

// Wait for the end of a command that was not posted; the old value of an atomic goes to `value`.
__device__ inline int rackloom_wait(const rackloom_queue &queue, rackloom_u64 ticket, rackloom_u64 *value = 0)
{
    if (ticket == RACKLOOM_NO_TICKET) return RACKLOOM_CLOSED;
    rackloom_u64 slot = ticket % queue.slots, round = ticket / queue.slots;
    rackloom_u64 at = queue.replies + slot * 64, state;
    for (unsigned spins = 0;; spins++) {
        state = rackloom_acquire(at);
        if ((state & 0xff) == 2 && state >> 16 == round) break;
        if (spins % 64 == 63 && rackloom_is_closed(queue)) return RACKLOOM_CLOSED;
    }
    if (value) *value = *(volatile rackloom_u64 *)(at + 8);
    __threadfence_system();
    *(volatile rackloom_u64 *)(queue.head + 64 + slot * 8) = round + 1;
    return (int)(state >> 8 & 0xff);
}

__device__ inline rackloom_command rackloom_to(rackloom_u32 kind, rackloom_address target)
{
    rackloom_command command = {};
    command.kind = kind, command.peer = target.node, command.region = target.region;
    command.offset = target.offset, command.key = target.key;
    return command;
}

__device__ inline int rackloom_end(const rackloom_queue &queue, rackloom_command command, bool is_posted)
{
    command.flags |= is_posted ? RACKLOOM_POSTED : 0;
    rackloom_u64 ticket = rackloom_issue(queue, command);
    if (is_posted) return ticket == RACKLOOM_NO_TICKET ? RACKLOOM_CLOSED : RACKLOOM_DONE;
    return rackloom_wait(queue, ticket);
}

// Write an aligned word of 4 or 8 bytes.
__device__ inline int rackloom_store(const rackloom_queue &queue, rackloom_address target, rackloom_u64 word, unsigned width = 8, bool is_posted = false)
{
    rackloom_command command = rackloom_to(RACKLOOM_STORE, target);
    command.flags = width << 16, command.operand = word;
    return rackloom_end(queue, command, is_posted);
}

// Read up to 16384 bytes, or any number of them, into one's own region.
__device__ inline int rackloom_load(const rackloom_queue &queue, rackloom_address source, rackloom_slice into)
{
    rackloom_command command = rackloom_to(into.length > 16384 ? RACKLOOM_GET : RACKLOOM_LOAD, source);
    command.local_region = into.region, command.local_offset = into.offset, command.length = into.length;
    return rackloom_end(queue, command, false);
}

__device__ inline int rackloom_put(const rackloom_queue &queue, rackloom_slice source, rackloom_address target, bool is_posted = false)
{
    rackloom_command command = rackloom_to(RACKLOOM_PUT, target);
    command.local_region = source.region, command.local_offset = source.offset, command.length = source.length;
    return rackloom_end(queue, command, is_posted);
}

// A put, after which a word of 8 bytes at the same node is set, or added to.
__device__ inline int rackloom_put_signal(
    const rackloom_queue &queue, rackloom_slice source, rackloom_address target, rackloom_address signal, rackloom_u64 value, bool adds = false,
    bool is_posted = false)
{
    rackloom_command command = rackloom_to(RACKLOOM_PUT, target);
    command.flags = RACKLOOM_SIGNAL | (adds ? RACKLOOM_SIGNAL_ADDS : 0);
    command.local_region = source.region, command.local_offset = source.offset, command.length = source.length;
    command.signal_region = signal.region, command.signal_offset = signal.offset, command.signal_key = signal.key;
    command.signal_value = value;
    return rackloom_end(queue, command, is_posted);
}

__device__ inline int rackloom_atomic(
    const rackloom_queue &queue, rackloom_u32 kind, rackloom_address target, rackloom_u64 operand, rackloom_u64 compare, unsigned width,
    rackloom_u64 *old)
{
    rackloom_command command = rackloom_to(kind, target);
    command.flags = width << 16, command.operand = operand, command.compare = compare;
    return rackloom_wait(queue, rackloom_issue(queue, command), old);
}

__device__ inline int rackloom_fetch_add(const rackloom_queue &queue, rackloom_address target, rackloom_u64 addend, rackloom_u64 *old, unsigned width = 8)
{
    return rackloom_atomic(queue, RACKLOOM_FETCH_ADD, target, addend, 0, width, old);
}

__device__ inline int rackloom_compare_swap(
    const rackloom_queue &queue, rackloom_address target, rackloom_u64 expected, rackloom_u64 word, rackloom_u64 *old, unsigned width = 8)
{
    return rackloom_atomic(queue, RACKLOOM_COMPARE_SWAP, target, word, expected, width, old);
}

__device__ inline int rackloom_swap(const rackloom_queue &queue, rackloom_address target, rackloom_u64 word, rackloom_u64 *old, unsigned width = 8)
{
    return rackloom_atomic(queue, RACKLOOM_SWAP, target, word, 0, width, old);
}

// Whatever is given later to this node, or to anybody, becomes visible later.
__device__ inline int rackloom_fence(const rackloom_queue &queue, rackloom_u32 node = RACKLOOM_ANY_PEER)
{
    rackloom_command command = {};
    command.kind = RACKLOOM_FENCE, command.peer = node;
    return rackloom_end(queue, command, true);
}

// Ends when everything that was given before is visible.
__device__ inline int rackloom_flush(const rackloom_queue &queue, rackloom_u32 node = RACKLOOM_ANY_PEER)
{
    rackloom_command command = {};
    command.kind = RACKLOOM_FLUSH, command.peer = node;
    return rackloom_end(queue, command, false);
}

// Wait until a word of 8 bytes in memory of this device is at least `value`. `losses`: what rackloom_losses said before whoever is to change
// the word was known to be there.
__device__ inline int rackloom_wait_until(const rackloom_queue &queue, const rackloom_u64 *word, rackloom_u64 value, rackloom_u64 losses)
{
    for (unsigned spins = 0; rackloom_acquire((rackloom_u64)word) < value; spins++) {
        if (spins % 1024 != 1023) continue;
        if (rackloom_is_closed(queue)) return RACKLOOM_CLOSED;
        // A last look: what has come has come.
        if (rackloom_losses(queue) != losses) return rackloom_acquire((rackloom_u64)word) >= value ? RACKLOOM_DONE : RACKLOOM_LOST;
    }
    return RACKLOOM_DONE;
}

// Who meets in a barrier. Each node has `count` words of 8 bytes at the same place of a region of its own, in the memory of its device, and
// two words of device memory that nobody else knows; all are zero at first.
struct rackloom_team {
    const rackloom_u32 *nodes; // their numbers, the same on all
    rackloom_u32 count, place; // how many, and which of them is this one
    rackloom_address words;    // where the words lie at each of them; `node` means nothing
    rackloom_u64 *own_words;   // the same, as kernels of this node see them
    rackloom_u64 *blocks;      // arrived; round
    rackloom_u64 losses;
};

__device__ inline int rackloom_meet_others(const rackloom_queue &queue, const rackloom_team &team, rackloom_u64 round)
{
    // What this node has given before is visible at the others before they see it arrive.
    int status = rackloom_fence(queue);
    for (unsigned other = 0; other < team.count && status == RACKLOOM_DONE; other++) {
        if (other == team.place) continue;
        rackloom_address word = team.words;
        word.node = team.nodes[other], word.offset += 8ull * team.place;
        status = rackloom_store(queue, word, round, 8, true);
    }
    for (unsigned other = 0; other < team.count && status == RACKLOOM_DONE; other++) {
        if (other != team.place) status = rackloom_wait_until(queue, team.own_words + other, round, team.losses);
    }
    return status;
}

// Ends when every thread of every block of this launch on every node has come: first the block, then the device, then the fabric. Called
// by all threads of all blocks.
__device__ inline int rackloom_barrier(const rackloom_queue &queue, const rackloom_team &team)
{
    __shared__ int status;
    __syncthreads();
    if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0) {
        rackloom_u64 blocks = (rackloom_u64)gridDim.x * gridDim.y * gridDim.z, arrived = (rackloom_u64)team.blocks;
        rackloom_u64 before = rackloom_acquire(arrived + 8);
        // The status travels in the lower byte of the round.
        rackloom_u64 round = (before >> 8) + 1;
        __threadfence_system();
        if (atomicAdd((rackloom_u64 *)arrived, 1ull) == blocks - 1) {
            __threadfence_system();
            *(volatile rackloom_u64 *)arrived = 0;
            status = rackloom_meet_others(queue, team, round);
            rackloom_release(arrived + 8, round << 8 | (rackloom_u64)status);
        } else {
            rackloom_u64 now;
            while ((now = rackloom_acquire(arrived + 8)) == before) {}
            status = (int)(now & 0xff);
        }
    }
    __syncthreads();
    return status;
}

#endif
