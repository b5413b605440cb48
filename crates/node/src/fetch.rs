//! Lines of memory asked for before they are needed.
//!
//! A line that another processor has had takes 50 to 150 ns to come. Who knows early which one is next has it come meanwhile. None of
//! these has an effect that a program sees; where the processor has no such instruction, they do nothing.

/// A line that will be read, or written where no other processor has it.
#[inline(always)]
pub(crate) fn fetch(line: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: needed because it is an intrinsic. A prefetch faults on no address and changes nothing but caches.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = line;
}

/// A line that will be written, and that another processor has had: it comes as this processor's own.
#[inline(always)]
pub(crate) fn fetch_to_write(line: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        // The intrinsic becomes a fetch for reading unless the whole program is compiled for processors that have this one; where
        // it is missing, it does nothing.
        // SAFETY: needed because there is no other way to the instruction. It faults on no address and changes nothing but caches.
        unsafe {
            std::arch::asm!("prefetchw [{line}]", line = in(reg) line.addr(), options(nomem, nostack, preserves_flags));
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = line;
}
