//! Tests that frames pass through a running member without a single allocation.

mod relay;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use rackloom::wires::shared_memory::{self, RING_BYTES_MIN};
use rackloom::wires::{Device, Doorbell, Ports};
use rackloom::{Clock, HostMemory, Runtime, WaitPolicy};
use rackloom_protocol::Instant;
use relay::Relay;

const FRAMES: u32 = 100_000;
const BATCH: u32 = 20;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: needed because counting allocations means being the allocator. Every call goes to the system's allocator with unchanged arguments; the
// counter is a plain cell of the calling thread and allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise about `layout` is passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: `pointer` came from the same allocator, with the same layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn nothing_is_allocated_per_frame() {
    let (own, outside) = (Doorbell::create().unwrap(), Doorbell::create().unwrap());
    let (mut source, inner) = shared_memory::pair(RING_BYTES_MIN, &outside, &own).unwrap();
    let (mut sink, outer) = shared_memory::pair(RING_BYTES_MIN, &outside, &own).unwrap();
    let ports = Ports::new(vec![Box::new(inner), Box::new(outer)], 9014).unwrap();
    let clock = Clock::begin();
    let mut runtime = Runtime::new(Relay::new(2), ports, HostMemory::default(), clock, WaitPolicy::EAGER);
    let mut pass = |frames: u32| {
        let mut passed = 0;
        for _ in 0..frames / BATCH {
            for _ in 0..BATCH {
                source.slot().expect("space")[..256].fill(3);
                source.commit(256, true);
            }
            source.flush(Instant::ZERO);
            runtime.poll(clock.now(), &mut |_| {});
            while let Some(lease) = sink.receive() {
                passed += u32::from(sink.leased(lease).len() == 256);
                sink.release(lease);
            }
            sink.flush(Instant::ZERO);
        }
        passed
    };
    assert_eq!(pass(10 * BATCH), 10 * BATCH, "the first frames make space for all others");
    let before = ALLOCATIONS.with(Cell::get);
    let passed = pass(FRAMES);
    let allocated = ALLOCATIONS.with(Cell::get) - before;
    assert!(before > 0, "the counter counts");
    assert_eq!((passed, allocated), (FRAMES, 0));
}
