// Moves many small ranges in one launch: a warp per range. Either side may be pinned memory of the host, so the same kernel
// lands stores that came in frames and gathers what remote loads ask for.
//
// A range that is one aligned word of 4 or 8 bytes is written whole: a kernel that polls the word sees the old value or the
// new one. Ranges of one launch are in no order; whoever launches keeps overlapping ones apart.

struct Move {
    unsigned long long target;
    unsigned long long source;
    unsigned long long bytes;
};

typedef unsigned long long word8;

template <typename Word>
__device__ void move_words(unsigned long long target, unsigned long long source, unsigned long long bytes, unsigned lane)
{
    volatile Word *to = (volatile Word *)target;
    const volatile Word *from = (const volatile Word *)source;
    unsigned long long count = bytes / sizeof(Word);
    for (unsigned long long at = lane; at < count; at += 32) to[at] = from[at];
}

// 16 bytes at a time where both sides allow it: the body of a long range.
__device__ void move_wide(unsigned long long target, unsigned long long source, unsigned long long bytes, unsigned lane)
{
    uint4 *to = (uint4 *)target;
    const uint4 *from = (const uint4 *)source;
    unsigned long long count = bytes / 16;
    for (unsigned long long at = lane; at < count; at += 32) to[at] = from[at];
}

extern "C" __global__ void move_ranges(const Move *moves, unsigned count)
{
    unsigned lane = threadIdx.x % 32;
    unsigned warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    unsigned warps = gridDim.x * blockDim.x / 32;
    for (unsigned at = warp; at < count; at += warps) {
        unsigned long long target = moves[at].target, source = moves[at].source, bytes = moves[at].bytes;
        if ((target ^ source) % 16 == 0 && bytes >= 32) {
            unsigned long long head = (16 - target % 16) % 16;
            move_words<unsigned char>(target, source, head, lane);
            unsigned long long body = (bytes - head) & ~15ull;
            move_wide(target + head, source + head, body, lane);
            move_words<unsigned char>(target + head + body, source + head + body, bytes - head - body, lane);
        } else if ((target | source | bytes) % 8 == 0) {
            move_words<word8>(target, source, bytes, lane);
        } else if ((target | source | bytes) % 4 == 0) {
            move_words<unsigned>(target, source, bytes, lane);
        } else {
            move_words<unsigned char>(target, source, bytes, lane);
        }
    }
    // Visible to the host and to other devices before the launch counts as done.
    __threadfence_system();
}
