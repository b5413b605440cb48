//! Tests that a future whose operation finds no space is woken when there may be some, and is not polled in between.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use rackloom::fabric::{Error, Fabric, Plan, Queue, RegionOptions};

const KEY: u64 = 0x5eed;

/// Counts its wake-ups, and wakes the thread that polls.
struct Counted {
    wakes: AtomicU64,
    thread: Thread,
}

impl Wake for Counted {
    fn wake(self: Arc<Self>) {
        self.wakes.fetch_add(1, Ordering::Relaxed);
        self.thread.unpark();
    }
}

#[test]
fn a_future_that_finds_a_full_queue_is_polled_only_after_an_event() {
    // Answers arrive 60 ms later. Until then no event frees space.
    let text = "name: far\nshape: {ring: {nodes: 2}}\nlink: {delay: 30ms}\n\
                timers: {heartbeat_interval: 400ms}\ntransport: {timeout_min: 2s, timeout_initial: 2s, timeout_max: 4s}\n";
    let fabric = Fabric::local(&Plan::parse(text, "test").unwrap()).unwrap();
    let [initiator, owner] = fabric.nodes() else { unreachable!() };
    let region = owner.allocate(RegionOptions::new(1, KEY), 4096).unwrap();
    let queue = Queue::with_capacity(1 << 20);
    let mut given = 0_u64;
    loop {
        match initiator.store(region.address(0), &given.to_ne_bytes()).submit(&queue, given) {
            Ok(_) => given += 1,
            Err(Error::Busy { .. }) => break,
            Err(error) => panic!("{error}"),
        }
    }
    let counted = Arc::new(Counted { wakes: AtomicU64::new(0), thread: std::thread::current() });
    let waker = Waker::from(Arc::clone(&counted));
    let mut context = Context::from_waker(&waker);
    let seven = 7_u64.to_ne_bytes();
    let mut store = pin!(initiator.store(region.address(8), &seven));
    let mut polls = 0_u64;
    while store.as_mut().poll(&mut context).map(Result::unwrap).is_pending() {
        polls += 1;
        std::thread::park_timeout(Duration::from_secs(10));
    }
    assert_eq!(region.get::<u64>(8).unwrap(), 7);
    // Some frames of acknowledgements arrive meanwhile, and each may wake the future once. Polled in a loop, it would be about 100000 polls.
    assert!(polls <= 200, "{polls} polls for {given} stores in the queue");
    assert!(counted.wakes.load(Ordering::Relaxed) <= 400);
}
