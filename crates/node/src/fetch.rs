//! Prefetch of cache lines.
//!
//! A cache line that another processor has modified takes 50 to 150 ns to arrive. A caller that knows early which line it needs next starts the
//! transfer early. A prefetch has no visible effect apart from time. On processors without the instruction these functions do nothing.

/// Prefetches a line that will be read, or that will be written and is in no other processor's cache.
#[inline(always)]
pub(crate) fn fetch(line: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: sound because a prefetch faults on no address and changes only caches. Needed because it is an intrinsic.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = line;
}

/// Prefetches a line that will be written and that another processor has modified. The line arrives in exclusive state.
#[inline(always)]
pub(crate) fn fetch_to_write(line: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: sound because the instruction faults on no address and changes only caches. Needed because the intrinsic for writing compiles to a
        // prefetch for reading unless the whole program targets processors with this instruction. On a processor without it, the instruction does
        // nothing.
        unsafe {
            std::arch::asm!("prefetchw [{line}]", line = in(reg) line.addr(), options(nomem, nostack, preserves_flags));
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = line;
}
