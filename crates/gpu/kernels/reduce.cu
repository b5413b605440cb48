// target[i] = target[i] (op) source[i]: the arithmetic of collectives, one kernel per operation and type.
//
// Small floats are computed as float and rounded to nearest even once per element, as the host does. Sums and products of
// integers wrap. What is not a number is the quiet NaN with no sign and no payload; the minimum and maximum of a number and a NaN
// is a NaN, and -0 is less than +0. All of this as the host does it, to the bit.

typedef unsigned short u16;

struct f16 { u16 bits; };
struct bf16 { u16 bits; };

__device__ float widen(f16 value) { float wide; asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(value.bits)); return wide; }
__device__ float widen(bf16 value) { return __uint_as_float((unsigned)value.bits << 16); }
__device__ void narrow(float wide, f16 &value)
{
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(value.bits) : "f"(wide));
    if (wide != wide) value.bits = 0x7e00u;
}
__device__ void narrow(float wide, bf16 &value)
{
    unsigned bits = __float_as_uint(wide);
    bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
    value.bits = is_nan ? (u16)0x7fc0u : (u16)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

template <typename T> __device__ T one_nan(T value) { return value; }
__device__ float one_nan(float value) { return value != value ? __uint_as_float(0x7fc00000u) : value; }
__device__ double one_nan(double value) { return value != value ? __longlong_as_double(0x7ff8000000000000ll) : value; }
template <typename T> __device__ bool has_nan(T a, T b) { return a != a || b != b; }

// No multiplication is merged with an addition: there is one operation only.
struct Sum { template <typename T> __device__ static T of(T a, T b) { return one_nan(a + b); } };
struct Product { template <typename T> __device__ static T of(T a, T b) { return one_nan(a * b); } };
struct Min {
    template <typename T> __device__ static T of(T a, T b) { return b < a ? b : a; }
    __device__ static float of(float a, float b) { return has_nan(a, b) ? one_nan(a + b) : signbit(a) ? (b < a ? b : a) : (b <= a ? b : a); }
    __device__ static double of(double a, double b) { return has_nan(a, b) ? one_nan(a + b) : signbit(a) ? (b < a ? b : a) : (b <= a ? b : a); }
};
struct Max {
    template <typename T> __device__ static T of(T a, T b) { return a < b ? b : a; }
    __device__ static float of(float a, float b) { return has_nan(a, b) ? one_nan(a + b) : signbit(a) ? (a <= b ? b : a) : (a < b ? b : a); }
    __device__ static double of(double a, double b) { return has_nan(a, b) ? one_nan(a + b) : signbit(a) ? (a <= b ? b : a) : (a < b ? b : a); }
};

template <typename Op, typename T> __device__ T combine(T a, T b) { return Op::of(a, b); }
template <typename Op> __device__ f16 combine(f16 a, f16 b) { f16 c; narrow(Op::of(widen(a), widen(b)), c); return c; }
template <typename Op> __device__ bf16 combine(bf16 a, bf16 b) { bf16 c; narrow(Op::of(widen(a), widen(b)), c); return c; }

// Sixteen bytes of elements.
template <typename T> union Pack { uint4 whole; T parts[16 / sizeof(T)]; __device__ Pack() {} };

template <typename Op, typename T> __device__ void reduce(T *target, const T *source, unsigned long long count)
{
    const unsigned long long per = 16 / sizeof(T);
    unsigned long long first = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
    bool is_wide = ((unsigned long long)target | (unsigned long long)source) % 16 == 0;
    unsigned long long packs = is_wide ? count / per : 0;
    for (unsigned long long at = first; at < packs; at += step) {
        Pack<T> ours, theirs;
        ours.whole = ((uint4 *)target)[at];
        theirs.whole = ((const uint4 *)source)[at];
        for (unsigned part = 0; part < per; part++) ours.parts[part] = combine<Op>(ours.parts[part], theirs.parts[part]);
        ((uint4 *)target)[at] = ours.whole;
    }
    for (unsigned long long at = packs * per + first; at < count; at += step) target[at] = combine<Op>(target[at], source[at]);
}

#define KERNEL(op, Op, name, T) \
    extern "C" __global__ void reduce_##op##_##name(T *target, const T *source, unsigned long long count) \
    { reduce<Op, T>(target, source, count); }
// Signed sums and products are computed without a sign, where they may wrap.
#define KERNELS(name, T, Wrapping) \
    KERNEL(sum, Sum, name, Wrapping) KERNEL(prod, Product, name, Wrapping) KERNEL(min, Min, name, T) KERNEL(max, Max, name, T)

KERNELS(f32, float, float)
KERNELS(f64, double, double)
KERNELS(f16, f16, f16)
KERNELS(bf16, bf16, bf16)
KERNELS(i32, int, unsigned)
KERNELS(i64, long long, unsigned long long)
