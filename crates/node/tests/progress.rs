//! Tests of the threads that drive a node, and of the number of frames that its operations take, read from the node's own counters.

#[path = "fabric/rig.rs"]
mod rig;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rackloom::fabric::*;
use rig::{ended, pair};

const KEY: u64 = 0x5eed;

/// Returns the number of data frames that `node` sends while `act` runs.
fn frames_of(node: &Node, act: impl FnOnce()) -> u64 {
    let before = node.counters().data_frames_sent;
    act();
    node.counters().data_frames_sent - before
}

fn take_all(node: &Node, queue: &Arc<Queue>, count: u64) {
    let mut contexts: Vec<_> = (0..count)
        .map(|_| {
            let completion = ended(node, queue);
            completion.result.unwrap();
            completion.context
        })
        .collect();
    contexts.sort_unstable();
    assert!(contexts.into_iter().eq(0..count), "each request ends once, under its own number");
}

#[test]
fn requests_of_a_batch_share_frames() {
    const STORES: u64 = 48;
    let (initiator, owner) = pair();
    let theirs = owner.allocate(RegionOptions::new(1, KEY), 1024).unwrap();
    let queue = Queue::with_capacity(STORES as usize);
    let value = |number: u64| (number + 1).to_ne_bytes();
    let values: Vec<_> = (0..STORES).map(value).collect();

    let mut batch = initiator.batch();
    for (number, value) in values.iter().enumerate() {
        let number = number as u64;
        batch.add(initiator.store(theirs.address(number * 8), value), number).unwrap();
    }
    let together = frames_of(&initiator, || {
        while !batch.is_empty() {
            batch.submit(&queue);
        }
        take_all(&initiator, &queue, STORES);
    });
    let mut seen = [0_u64; STORES as usize];
    theirs.read(0, &mut seen).unwrap();
    assert!(seen.into_iter().eq(1..=STORES));

    let alone = frames_of(&initiator, || {
        for (number, value) in values.iter().enumerate() {
            let number = number as u64;
            initiator.store(theirs.address(number * 8), value).submit(&queue, number).unwrap();
        }
        take_all(&initiator, &queue, STORES);
    });
    let per_frame = STORES as f64 / together as f64;
    println!(
        "{STORES} stores: {together} frames as a batch ({per_frame:.1} operations each), {alone} one by one"
    );
    assert!(per_frame >= 8.0, "{together} frames for {STORES} stores");
    assert!(together * 2 < alone, "{together} frames together, {alone} one by one");
}

#[test]
fn a_batch_ends_what_is_refused_and_takes_no_request_of_another_node() {
    let (initiator, owner) = pair();
    let theirs = owner.allocate(RegionOptions::new(1, KEY), 64).unwrap();
    let queue = Queue::with_capacity(4);
    let mut batch = initiator.batch();
    batch.add(initiator.store(theirs.address(0), &[]), 0).unwrap();
    batch.add(initiator.fetch_add::<u64>(theirs.address(0), 7), 1).unwrap();
    assert!(matches!(batch.add(owner.fence(None), 2), Err(Error::Invalid(_))));
    assert_eq!((batch.len(), batch.submit(&queue)), (2, 2));
    let refused = ended(&initiator, &queue);
    assert!(matches!((refused.context, refused.result), (0, Err(Error::Invalid(_)))));
    let added = ended(&initiator, &queue);
    assert_eq!((added.context, added.result.unwrap().value), (1, 0));
    assert_eq!(theirs.get::<u64>(0).unwrap(), 7);
}

#[test]
fn the_rest_of_a_batch_waits_for_a_full_queue() {
    let (initiator, owner) = pair();
    let theirs = owner.allocate(RegionOptions::new(1, KEY), 64).unwrap();
    let queue = Queue::with_capacity(16);
    // More atomics than may be outstanding at once.
    let mut batch = initiator.batch();
    for number in 0..5000 {
        batch.add(initiator.fetch_add::<u64>(theirs.address(0), 1), number).unwrap();
    }
    let first = batch.submit(&queue);
    assert!(first > 0 && first < 5000, "{first}");
    let mut ended_count = 0;
    while ended_count < 5000 {
        let completion = ended(&initiator, &queue);
        assert_eq!(completion.result.unwrap().value, completion.context, "in the order of the batch");
        ended_count += 1;
        batch.submit(&queue);
    }
    assert!(batch.is_empty() && theirs.get::<u64>(0).unwrap() == 5000);
}

#[test]
fn a_waiting_thread_drives_the_node_and_the_background_thread_is_idle() {
    const ROUNDS: u64 = 2000;
    let (initiator, owner) = pair();
    let theirs = owner.allocate(RegionOptions::new(1, KEY), 64).unwrap();
    let at = theirs.address(0);
    let (waits, begun) = std::sync::mpsc::channel();
    let waiter = thread::spawn({
        let (owner, theirs) = (owner.clone(), theirs.clone());
        move || {
            // After one round the wait has begun, so that this thread is the driver before it sends the notification.
            owner.wait_until(&theirs, 0, Condition::AtLeast, 1, NodeId(0)).wait().unwrap();
            waits.send(()).unwrap();
            owner.wait_until(&theirs, 0, Condition::AtLeast, ROUNDS, NodeId(0)).wait().unwrap();
            owner.counters()
        }
    });
    initiator.fetch_add::<u64>(at, 1).wait().unwrap();
    begun.recv().unwrap();
    for _ in 1..100 {
        initiator.fetch_add::<u64>(at, 1).wait().unwrap();
    }
    let before = owner.counters();
    for _ in 100..ROUNDS - 1 {
        initiator.fetch_add::<u64>(at, 1).wait().unwrap();
    }
    let during = owner.counters();
    initiator.fetch_add::<u64>(at, 1).wait().unwrap();
    waiter.join().unwrap();
    let callers = during.polls_by_callers - before.polls_by_callers;
    let background = during.polls_by_background - before.polls_by_background;
    println!("{callers} polls by the waiting thread, {background} by the background thread");
    assert_eq!(background, 0, "the waiting thread serves its node alone");
    // Each atomic of the peer needs at least one poll here.
    assert!(callers >= ROUNDS - 101, "{callers}");
}

#[test]
fn reads_of_a_node_do_not_delay_its_service() {
    // Each operation takes microseconds. If reads of the node counted as service, it would take until all readers happen to stop: a tenth of a second
    // or more.
    const OPERATIONS: u64 = 1000;
    let bound = Duration::from_secs(60);
    let (initiator, owner) = pair();
    let theirs = owner.allocate(RegionOptions::new(1, KEY), 64).unwrap();
    let is_over = AtomicBool::new(false);
    let ended = thread::scope(|scope| {
        // One more than there are processors, to keep the gaps between the reads short.
        for _ in 0..3 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let _ = (owner.reaches(initiator.id()), owner.counters());
                }
            });
        }
        let begun = Instant::now();
        let one = |_| initiator.fetch_add::<u64>(theirs.address(0), 1).wait_for(bound).is_ok();
        let ended =
            (0..OPERATIONS).take_while(|_| begun.elapsed() < bound).filter(|number| one(*number)).count();
        is_over.store(true, Ordering::Relaxed);
        ended
    });
    assert_eq!(ended as u64, OPERATIONS, "in {bound:?}");
}
