// Kernels that use other nodes' memory: how long an operation takes, beside a bare loop with the host, and whether all of them do what
// `rackloom.cuh` (which is put before this text) says.

// A store and its acknowledgement, again and again, by one thread. The time of each in `times`, in the device's clock.
extern "C" __global__ void store_round_trips(
    rackloom_queue queue, rackloom_u32 node, rackloom_u32 region, rackloom_u64 key, rackloom_u64 count, rackloom_u64 *times, rackloom_u64 *result)
{
    rackloom_address target = {node, region, 0, key};
    for (rackloom_u64 at = 0; at < count; at++) {
        rackloom_u64 begun = clock64();
        int status = rackloom_store(queue, target, at + 1);
        times[at] = clock64() - begun;
        if (status != RACKLOOM_DONE) { *result = 100 + status; return; }
    }
    *result = 1;
}

// The bare loop: a word to the host, a word back.
extern "C" __global__ void raw_round_trips(rackloom_u64 question, rackloom_u64 answer, rackloom_u64 count, rackloom_u64 *times)
{
    for (rackloom_u64 at = 0; at < count; at++) {
        rackloom_u64 begun = clock64();
        rackloom_release(question, at + 1);
        while (rackloom_acquire(answer) != at + 1) {}
        times[at] = clock64() - begun;
    }
}

// Every operation once; the number of the first one that went wrong in `result`, 0 if none did. The node's own region begins with `own`: a
// word that the other node signals, then scratch; the other's region is all zeros at first.
extern "C" __global__ void every_operation(
    rackloom_queue queue, rackloom_u32 node, rackloom_u32 region, rackloom_u64 key, rackloom_u32 own_region, rackloom_u64 *own, rackloom_u64 *result)
{
    rackloom_address word = {node, region, 64, key}, data = {node, region, 4096, key}, signal = {node, region, 128, key};
    rackloom_u64 old = 0;
    *result = 1;
    if (rackloom_store(queue, word, 40) != RACKLOOM_DONE) return;
    *result = 2;
    if (rackloom_fetch_add(queue, word, 2, &old) != RACKLOOM_DONE || old != 40) return;
    *result = 3;
    if (rackloom_compare_swap(queue, word, 42, 7, &old) != RACKLOOM_DONE || old != 42) return;
    *result = 4;
    if (rackloom_swap(queue, word, 9, &old) != RACKLOOM_DONE || old != 7) return;
    *result = 5;
    for (unsigned at = 0; at < 1024; at++) own[64 + at] = 0x0101010101010101ull * (at % 251);
    rackloom_slice source = {own_region, 512, 8192};
    if (rackloom_put_signal(queue, source, data, signal, 5) != RACKLOOM_DONE) return;
    *result = 6;
    rackloom_slice into = {own_region, 16384, 8192};
    if (rackloom_load(queue, data, into) != RACKLOOM_DONE) return;
    *result = 7;
    for (unsigned at = 0; at < 1024; at++)
        if (((volatile rackloom_u64 *)own)[2048 + at] != 0x0101010101010101ull * (at % 251)) return;
    *result = 8;
    rackloom_slice there = {own_region, 32768, 8};
    if (rackloom_load(queue, signal, there) != RACKLOOM_DONE || ((volatile rackloom_u64 *)own)[4096] != 5) return;
    *result = 9;
    rackloom_address outside = {node, region, 1ull << 40, key};
    if (rackloom_store(queue, outside, 1) != RACKLOOM_REFUSED) return;
    *result = 10;
    for (unsigned at = 0; at < 100; at++)
        if (rackloom_store(queue, word, at, 8, true) != RACKLOOM_DONE) return;
    *result = 11;
    if (rackloom_flush(queue) != RACKLOOM_DONE) return;
    if (rackloom_load(queue, word, there) != RACKLOOM_DONE || ((volatile rackloom_u64 *)own)[4096] != 99) return;
    *result = 12;
    if (rackloom_wait_until(queue, own, 1, rackloom_losses(queue)) != RACKLOOM_DONE) return;
    *result = 0;
}

// Rounds of a barrier with many blocks. Between two of them each block counts in a word of its node; behind each, the words of all blocks of
// this node and the word of the next node are what they must be, else `wrong` is counted up.
extern "C" __global__ void barriers(
    rackloom_queue queue, const rackloom_team *shared_team, rackloom_u32 own_region, rackloom_u64 *counter, rackloom_u64 rounds, rackloom_u64 *wrong,
    rackloom_u64 *status)
{
    rackloom_team team = *shared_team;
    for (rackloom_u64 round = 1; round <= rounds; round++) {
        if (threadIdx.x == 0) atomicAdd(counter, 1ull);
        int ended = rackloom_barrier(queue, team);
        if (ended != RACKLOOM_DONE) { if (threadIdx.x == 0) *status = 100 + ended; return; }
        if (threadIdx.x == 0 && *(volatile rackloom_u64 *)counter != round * gridDim.x) atomicAdd(wrong, 1ull);
        ended = rackloom_barrier(queue, team);
        if (ended != RACKLOOM_DONE) { if (threadIdx.x == 0) *status = 100 + ended; return; }
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) *status = 1;
}
