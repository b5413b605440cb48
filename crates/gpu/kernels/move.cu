// Moves many small ranges in one launch: so many warps per range as its longest takes, a KiB for each, because their reads cross the
// bus and few of them are in flight at a time. Either side may be pinned memory of the host, so the same kernel
// lands stores that came in frames and gathers what remote loads ask for.
//
// A range that is one aligned word of 4 or 8 bytes is written whole: a kernel that polls the word sees the old value or the
// new one. Ranges of one launch are in no order; whoever launches keeps overlapping ones apart.
//
// Longer ranges are written 16 bytes at a time, wherever their source lies: bytes in a frame begin where its headers end. What is
// read are whole aligned words then, up to 15 bytes before and behind the range, which lie in the same pages as the range.

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

// 16 bytes at a time where both sides allow it: the body of a long range. Two words of a lane are in flight at once.
__device__ void move_wide(unsigned long long target, unsigned long long source, unsigned long long bytes, unsigned lane)
{
    uint4 *to = (uint4 *)target;
    const uint4 *from = (const uint4 *)source;
    unsigned long long count = bytes / 16;
    for (unsigned long long at = lane; at < count; at += 64) {
        bool has_second = at + 32 < count;
        uint4 first = from[at], second = has_second ? from[at + 32] : first;
        to[at] = first;
        if (has_second) to[at + 32] = second;
    }
}

// The 16 bytes that begin `words` 4-byte words and `bits` bits into `low`, going on into `high`.
__device__ uint4 shifted(uint4 low, uint4 high, unsigned words, unsigned bits)
{
    unsigned a, b, c, d, e;
    if (words == 0) a = low.x, b = low.y, c = low.z, d = low.w, e = high.x;
    else if (words == 1) a = low.y, b = low.z, c = low.w, d = high.x, e = high.y;
    else if (words == 2) a = low.z, b = low.w, c = high.x, d = high.y, e = high.z;
    else a = low.w, b = high.x, c = high.y, d = high.z, e = high.w;
    return make_uint4(__funnelshift_r(a, b, bits), __funnelshift_r(b, c, bits), __funnelshift_r(c, d, bits), __funnelshift_r(d, e, bits));
}

// The word of the next lane; the last lane's is `beyond`, which lane 0 holds.
__device__ uint4 next_lane(uint4 own, uint4 beyond, unsigned lane)
{
    uint4 next;
    unsigned all = 0xffffffffu;
    unsigned x = __shfl_sync(all, beyond.x, 0), y = __shfl_sync(all, beyond.y, 0);
    unsigned z = __shfl_sync(all, beyond.z, 0), w = __shfl_sync(all, beyond.w, 0);
    next.x = __shfl_down_sync(all, own.x, 1), next.y = __shfl_down_sync(all, own.y, 1);
    next.z = __shfl_down_sync(all, own.z, 1), next.w = __shfl_down_sync(all, own.w, 1);
    return lane == 31 ? make_uint4(x, y, z, w) : next;
}

// Moves a range whose source is not aligned as the target is: whole words are read, each once, and put together anew.
__device__ void move_crooked(unsigned long long target, unsigned long long source, unsigned long long bytes, unsigned lane)
{
    uint4 *to = (uint4 *)target;
    const uint4 *from = (const uint4 *)(source & ~15ull);
    unsigned words = source % 16 / 4, bits = source % 4 * 8;
    unsigned long long count = bytes / 16;
    const uint4 nothing = make_uint4(0, 0, 0, 0);
    for (unsigned long long base = 0; base < count; base += 64) {
        unsigned long long at = base + lane;
        uint4 first = at <= count ? from[at] : nothing;
        uint4 second = at + 32 <= count ? from[at + 32] : nothing;
        uint4 beyond = lane == 0 && base + 64 <= count ? from[base + 64] : nothing;
        uint4 after_first = next_lane(first, second, lane), after_second = next_lane(second, beyond, lane);
        if (at < count) to[at] = shifted(first, after_first, words, bits);
        if (at + 32 < count) to[at + 32] = shifted(second, after_second, words, bits);
    }
}

const unsigned long long PIECE_BYTES = 1024;

__device__ void move_piece(unsigned long long target, unsigned long long source, unsigned long long bytes, unsigned lane)
{
    bool is_even = (target ^ source) % 16 == 0;
    if (bytes >= 128 || (is_even && bytes >= 32)) {
        unsigned long long head = (16 - target % 16) % 16;
        move_words<unsigned char>(target, source, head, lane);
        unsigned long long body = (bytes - head) & ~15ull;
        if (is_even) move_wide(target + head, source + head, body, lane);
        else move_crooked(target + head, source + head, body, lane);
        move_words<unsigned char>(target + head + body, source + head + body, bytes - head - body, lane);
    } else if ((target | source | bytes) % 8 == 0) {
        move_words<word8>(target, source, bytes, lane);
    } else if ((target | source | bytes) % 4 == 0) {
        move_words<unsigned>(target, source, bytes, lane);
    } else {
        move_words<unsigned char>(target, source, bytes, lane);
    }
}

extern "C" __global__ void move_ranges(const Move *moves, unsigned count, unsigned warps_per_range)
{
    unsigned lane = threadIdx.x % 32;
    unsigned warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    unsigned warps = gridDim.x * blockDim.x / 32;
    for (unsigned at = warp; at < count * warps_per_range; at += warps) {
        const Move &move = moves[at / warps_per_range];
        unsigned long long target = move.target, source = move.source, bytes = move.bytes;
        unsigned long long step = warps_per_range * PIECE_BYTES;
        for (unsigned long long from = at % warps_per_range * PIECE_BYTES; from < bytes; from += step) {
            unsigned long long left = bytes - from;
            move_piece(target + from, source + from, left < PIECE_BYTES ? left : PIECE_BYTES, lane);
        }
    }
    // Visible to the host and to other devices before the launch counts as done.
    __threadfence_system();
}
