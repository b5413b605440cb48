//! Tests that submitting and polling allocates nothing per operation, on either node, in any thread.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rackloom::fabric::*;
use rackloom_plan::Plan;

/// Number of requests in flight at once.
const BATCH: u64 = 16;
const BATCHES: u64 = 500;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

struct Counting;

// SAFETY: needed because counting allocations means being the allocator. Every call goes to the system's allocator with unchanged arguments; the
// counter is an atomic and allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
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

/// Performs one batch of each kind of operation, and waits for all completions.
fn batch(initiator: &Node, queue: &Arc<Queue>, mine: &Region, at: RemoteAddress) {
    let into = mine.slice(0..64);
    for number in 0..BATCH {
        initiator.store(at, &[7; 64]).submit(queue, number).unwrap();
        initiator.fetch_add::<u64>(at, 1).submit(queue, number).unwrap();
        initiator.load(at, &into).submit(queue, number).unwrap();
        initiator.put(&into, at).submit(queue, number).unwrap();
    }
    for _ in 0..4 * BATCH {
        let completion = initiator.poll_wait(queue, Duration::from_secs(30)).expect("a completion comes");
        completion.result.unwrap();
    }
}

/// Performs one batch of each kind of operation through a driver, and waits for all completions.
fn driven_batch(driver: &mut Driver, completions: &mut Vec<Completion>, mine: &Region, at: RemoteAddress) {
    for number in 0..BATCH {
        driver.store(at, &[7; 64], number).unwrap();
        driver.store_posted(at, &[7; 64]).unwrap();
        driver.put(mine, 0..64, at, number).unwrap();
        driver.get(at, mine, 0..64, number).unwrap();
    }
    let mut ended = 0;
    while ended < 3 * BATCH {
        assert!(driver.poll_wait(completions, Duration::from_secs(30)) > 0, "a completion comes");
        ended += completions.len() as u64;
        assert!(completions.drain(..).all(|completion| completion.result.is_ok()));
    }
}

#[test]
fn nothing_is_allocated_per_submitted_operation() {
    let plan = Plan::parse("name: two\nshape: {ring: {nodes: 2}}\n", "test").unwrap();
    let fabric = Fabric::local(&plan).unwrap();
    let [initiator, owner] = fabric.nodes() else { panic!("two nodes") };
    let theirs = owner.allocate(RegionOptions::new(1, 7), 64).unwrap();
    let mine = initiator.allocate(RegionOptions::new(1, 7), 64).unwrap();
    let queue = Queue::with_capacity(4 * BATCH as usize);
    for _ in 0..BATCHES {
        batch(initiator, &queue, &mine, theirs.address(0));
    }
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    for _ in 0..BATCHES {
        batch(initiator, &queue, &mine, theirs.address(0));
    }
    let allocated = ALLOCATIONS.load(Ordering::Relaxed) - before;
    let operations = 4 * BATCH * BATCHES;
    // A queue of the core may still grow once, when more frames accumulate than ever before.
    assert!(allocated < operations / 200, "{allocated} allocations for {operations} operations");
    assert!(before > 0, "the counter counts");

    let (mut driver, mut completions) = (initiator.drive().unwrap(), Vec::new());
    let mut count = || {
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        (0..BATCHES).for_each(|_| driven_batch(&mut driver, &mut completions, &mine, theirs.address(0)));
        ALLOCATIONS.load(Ordering::Relaxed) - before
    };
    count();
    let allocated = count();
    assert!(allocated < operations / 200, "{allocated} allocations for {operations} operations of a driver");
}
