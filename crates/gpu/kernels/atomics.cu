// Atomics that came in frames, one after another in one thread: their order is the order of asking. Each is atomic with
// respect to every kernel of this device and of its peers, and to the host.

struct Atomic {
    unsigned long long target;
    unsigned long long result;
    unsigned long long operand;
    unsigned long long compare;
    unsigned kind; // 0 add, 1 compare and swap, 2 swap, 3 and, 4 or, 5 xor, 6 min, 7 max, 8 and 9 the same with signs
    unsigned width; // 4 or 8
};

template <typename Word, typename Signed>
__device__ Word apply(const Atomic &atomic)
{
    Word *word = (Word *)atomic.target;
    const Word operand = (Word)atomic.operand;
    switch (atomic.kind) {
    case 0: return atomicAdd_system(word, operand);
    case 1: return atomicCAS_system(word, (Word)atomic.compare, operand);
    case 3: return atomicAnd_system(word, operand);
    case 4: return atomicOr_system(word, operand);
    case 5: return atomicXor_system(word, operand);
    case 6: return atomicMin_system(word, operand);
    case 7: return atomicMax_system(word, operand);
    case 8: return (Word)atomicMin_system((Signed *)word, (Signed)operand);
    case 9: return (Word)atomicMax_system((Signed *)word, (Signed)operand);
    default: return atomicExch_system(word, operand);
    }
}

extern "C" __global__ void atomics(const Atomic *atomics, unsigned count)
{
    for (unsigned at = 0; at < count; at++) {
        // Whatever was written before is seen by whoever sees this word.
        __threadfence_system();
        const Atomic atomic = atomics[at];
        unsigned long long old = atomic.width == 8 ? apply<unsigned long long, long long>(atomic)
                                                   : (unsigned long long)apply<unsigned, int>(atomic);
        *(volatile unsigned long long *)atomic.result = old;
    }
    __threadfence_system();
}
