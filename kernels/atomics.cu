// Atomics that came in frames, one after another in one thread: their order is the order of asking. Each is atomic with
// respect to every kernel of this device and of its peers, and to the host.

struct Atomic {
    unsigned long long target;
    unsigned long long result;
    unsigned long long operand;
    unsigned long long compare;
    unsigned kind; // 0 add, 1 compare and swap, 2 swap
    unsigned width; // 4 or 8
};

template <typename Word>
__device__ Word apply(const Atomic &atomic)
{
    Word *word = (Word *)atomic.target;
    if (atomic.kind == 0) return atomicAdd_system(word, (Word)atomic.operand);
    if (atomic.kind == 1) return atomicCAS_system(word, (Word)atomic.compare, (Word)atomic.operand);
    return atomicExch_system(word, (Word)atomic.operand);
}

extern "C" __global__ void atomics(const Atomic *atomics, unsigned count)
{
    for (unsigned at = 0; at < count; at++) {
        // Whatever was written before is seen by whoever sees this word.
        __threadfence_system();
        const Atomic atomic = atomics[at];
        unsigned long long old =
            atomic.width == 8 ? apply<unsigned long long>(atomic) : (unsigned long long)apply<unsigned>(atomic);
        *(volatile unsigned long long *)atomic.result = old;
    }
    __threadfence_system();
}
