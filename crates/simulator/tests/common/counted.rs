//! The system's allocator, with a count of the allocations of each thread.
//!
//! A test declares [`Counted`] as its global allocator and compares two results of [`allocated`]. What is freed is not subtracted.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Allocations of a thread since its start.
#[derive(Clone, Copy, Debug, Default)]
pub struct Allocated {
    pub count: u64,
    pub bytes: u64,
}

thread_local! {
    static ALLOCATED: Cell<Allocated> = const { Cell::new(Allocated { count: 0, bytes: 0 }) };
}

/// Returns the allocations of this thread so far.
pub fn allocated() -> Allocated {
    ALLOCATED.get()
}

/// The system's allocator. A longer allocation in place of a shorter one counts as a new one.
pub struct Counted;

// SAFETY: a global allocator cannot be written without `unsafe`; every call is passed unchanged to the system's allocator,
// and counting neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Allocated { count, bytes } = ALLOCATED.get();
        ALLOCATED.set(Allocated { count: count + 1, bytes: bytes + layout.size() as u64 });
        // SAFETY: the caller's promises are the ones that the system's allocator requires.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the memory to free comes from the system's allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}
