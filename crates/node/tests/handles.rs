//! Handles of operations that have begun, and completion queues as futures and descriptors.

#[path = "fabric/rig.rs"]
mod rig;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use rackloom::fabric::*;
use rig::{block_on, pair};

const KEY: u64 = 0x5eed;
/// Longer than any step takes, shorter than a hang.
const BOUND: Duration = Duration::from_secs(20);

fn tag_of(received: Received) -> (u64, u64) {
    (received.tag, received.length)
}

#[test]
fn an_operation_begins_at_once_and_is_tested_or_waited_for() {
    let (initiator, owner) = pair();
    let theirs = owner.allocate(RegionOptions::new(1, KEY), 64).unwrap();
    let stored = initiator.store(theirs.address(0), &[7; 8]).start().unwrap();
    let begun = Instant::now();
    while theirs.get::<u64>(0).unwrap() == 0 {
        assert!(begun.elapsed() < BOUND, "the store has not begun");
        thread::yield_now();
    }
    stored.wait().unwrap();
    let mut added = initiator.fetch_add::<u64>(theirs.address(0), 1).start().unwrap();
    let begun = Instant::now();
    while !added.test() {
        assert!(begun.elapsed() < BOUND, "the operation does not end");
    }
    assert!(added.test(), "it stays ended");
    assert_eq!(added.wait().unwrap(), u64::from_le_bytes([7; 8]));
    let refused = initiator.store(RemoteAddress { key: Key(1), ..theirs.address(0) }, &[1]).start().unwrap();
    assert!(matches!(refused.wait(), Err(Error::Refused { .. })));
    assert!(matches!(initiator.store(theirs.address(0), &[]).start(), Err(Error::Invalid(_))));
    initiator.store_posted(theirs.address(8), &[1]).start().unwrap().wait().unwrap();
    initiator.put(&theirs.slice(0..8), theirs.address(8)).start().expect_err("a region of another node");
}

#[test]
fn receives_are_cancelled_and_take_nothing_from_later_ones() {
    let (sender, receiver) = pair();
    let (from, to) = (sender.id(), receiver.id());
    let theirs = receiver.allocate(RegionOptions::new(1, KEY), 64).unwrap();
    let mine = sender.allocate(RegionOptions::new(1, KEY), 64).unwrap();
    let receive = || receiver.receive(Some(from), 5, 0, &theirs.slice(..)).start().unwrap();
    let mut first = receive();
    assert!(first.wait_for(Duration::from_millis(10)).is_none(), "nothing has been sent");
    first.cancel().unwrap();
    assert!(matches!(first.wait(), Err(Error::Failed(OperationError::Cancelled))));
    drop(receive());
    let mut third = receive();
    sender.send(to, 5, &mine.slice(0..8)).start().unwrap().wait().unwrap();
    let received = third.wait_for(BOUND).expect("the message was not taken by the others").unwrap();
    assert_eq!(tag_of(received), (5, 8));
    assert!(matches!(third.wait(), Err(Error::Closed)), "a result is returned once");
    let mut stored = sender.store(theirs.address(0), &[1]).start().unwrap();
    assert!(matches!(stored.cancel(), Err(Error::Invalid(_))));
    stored.wait().unwrap();
    // A message that has arrived is not lost by a late cancellation.
    sender.send(to, 6, &mine.slice(0..8)).wait().unwrap();
    let mut matched = receiver.receive(Some(from), 6, 0, &theirs.slice(..)).start().unwrap();
    matched.cancel().unwrap();
    let result = matched.wait();
    assert!(matches!(result, Ok(_) | Err(Error::Failed(OperationError::Cancelled))), "{result:?}");
}

#[test]
fn a_started_collective_is_cancelled_and_breaks_its_group() {
    let (first, second) = pair();
    let groups = [&first, &second].map(|node| Group::of_rack(node, GroupOptions::default()).unwrap());
    thread::scope(|scope| {
        for group in &groups {
            scope.spawn(move || group.barrier().wait().unwrap());
        }
    });
    let mut ended = groups.each_ref().map(|group| group.barrier().start().unwrap());
    for one in &mut ended {
        one.wait_for(BOUND).expect("both members have begun").unwrap();
        one.cancel().expect("a collective that has ended stays ended");
    }
    let mut lonely = groups[0].barrier().start().unwrap();
    assert!(!lonely.test(), "the other member has not begun");
    lonely.cancel().unwrap();
    assert!(matches!(lonely.wait(), Err(Error::Failed(OperationError::Cancelled))));
    for group in &groups {
        let late = group.barrier().start().and_then(Pending::wait).unwrap_err();
        assert!(matches!(late, Error::GroupBroken { peer } if peer == first.id()), "{late}");
    }
    // Without its handle a collective continues.
    let again = [&first, &second].map(|node| Group::of_rack(node, GroupOptions::new(9, KEY)).unwrap());
    drop(again[0].barrier().start().unwrap());
    again[1].barrier().wait().unwrap();
}

#[test]
fn wait_any_returns_the_one_that_has_ended_and_wait_all_all_of_them() {
    let (sender, receiver) = pair();
    let theirs = receiver.allocate(RegionOptions::new(1, KEY), 64).unwrap();
    let mine = sender.allocate(RegionOptions::new(1, KEY), 64).unwrap();
    let mut receives: Vec<_> = (0..4)
        .map(|tag| receiver.receive(None, tag, 0, &theirs.slice(8 * tag..8 * tag + 8)).start().unwrap())
        .collect();
    for tag in [2, 0, 3] {
        sender.send(receiver.id(), tag, &mine.slice(0..8)).wait().unwrap();
        let index = wait_any(&mut receives).unwrap();
        assert_eq!(tag_of(receives.remove(index).wait().unwrap()), (tag, 8));
    }
    let to = receiver.id();
    let sent = thread::spawn({
        let (sender, mine) = (sender.clone(), mine.clone());
        move || sender.send(to, 1, &mine.slice(0..8)).wait()
    });
    assert_eq!(wait_any(&mut receives).unwrap(), 0);
    sent.join().unwrap().unwrap();
    let stores: Result<Vec<_>, _> =
        (0..8_u64).map(|at| sender.store(theirs.address(8 * at), &at.to_le_bytes()).start()).collect();
    assert_eq!(wait_all(stores.unwrap()).unwrap().len(), 8);
    assert_eq!(theirs.get::<u64>(56).unwrap(), 7);
    let mut of_two = [
        sender.store(theirs.address(0), &[1]).start().unwrap(),
        receiver.store(mine.address(0), &[1]).start().unwrap(),
    ];
    assert!(matches!(wait_any(&mut of_two), Err(Error::Invalid(_))));
    assert!(matches!(wait_any::<()>(&mut []), Err(Error::Invalid(_))));
    assert_eq!(wait_all(of_two.into()).unwrap(), [(), ()]);
}

/// Counts wakes.
#[derive(Default)]
struct Woken(AtomicU32);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Polls a future that stays pending for a while. Returns the number of its wakes.
fn wakes_while_pending<F: Future>(future: F) -> u32 {
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    let mut future = pin!(future);
    let begun = Instant::now();
    let mut polled = 0;
    while begun.elapsed() < Duration::from_millis(100) {
        if polled <= woken.0.load(Ordering::Relaxed) {
            polled += 1;
            let is_pending = future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending();
            assert!(is_pending, "nothing has been sent");
        }
        thread::sleep(Duration::from_millis(1));
    }
    woken.0.load(Ordering::Relaxed)
}

#[test]
fn futures_are_woken_only_when_they_can_continue() {
    let (sender, receiver) = pair();
    let theirs = receiver.allocate(RegionOptions::new(1, KEY), 64).unwrap();
    let mine = sender.allocate(RegionOptions::new(1, KEY), 64).unwrap();
    let receive = || receiver.receive(None, 5, 0, &theirs.slice(..));
    assert_eq!(wakes_while_pending(receive().start().unwrap()), 0);
    let queue = Queue::with_capacity(4);
    assert_eq!(wakes_while_pending(queue.next()), 0);
    receive().submit(&queue, 9).unwrap();
    sender.send(receiver.id(), 5, &mine.slice(0..8)).wait().unwrap();
    assert_eq!(block_on(queue.next()).context, 9);
    let pending = receive().start().unwrap();
    let sent = thread::spawn({
        let (sender, mine, to) = (sender.clone(), mine.clone(), receiver.id());
        move || {
            thread::sleep(Duration::from_millis(20));
            sender.send(to, 5, &mine.slice(0..8)).wait()
        }
    });
    assert_eq!(tag_of(block_on(pending).unwrap()), (5, 8));
    sent.join().unwrap().unwrap();
}

#[test]
fn several_tasks_share_the_completions_of_a_queue() {
    const EACH: u64 = 200;
    let (initiator, owner) = pair();
    let theirs = owner.allocate(RegionOptions::new(1, KEY), 64).unwrap();
    let queue = Queue::with_capacity(64);
    let taken = AtomicU32::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..EACH {
                    assert!(block_on(queue.next()).result.is_ok());
                    taken.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for count in 0..4 * EACH {
            while let Err(Error::Busy { .. }) = initiator.store(theirs.address(0), &[1]).submit(&queue, count)
            {
                thread::yield_now();
            }
        }
    });
    assert_eq!((taken.into_inner(), queue.len()), (4 * EACH as u32, 0));
}

/// A task of `tokio` waits for the descriptor, as for a socket. The node is driven by its background thread.
#[test]
fn a_descriptor_is_readable_while_a_completion_waits() {
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;
    let (sender, receiver) = pair();
    let theirs = receiver.allocate(RegionOptions::new(1, KEY), 64).unwrap();
    let mine = sender.allocate(RegionOptions::new(1, KEY), 64).unwrap();
    let queue = Queue::with_capacity(4);
    let is_readable = || {
        let descriptor = queue.descriptor().unwrap();
        let mut awaited = [rustix::event::PollFd::new(&descriptor, rustix::event::PollFlags::IN)];
        rustix::event::poll(&mut awaited, Some(&rustix::event::Timespec::default())).unwrap() == 1
    };
    // Completions that arrived before the first use of the descriptor count.
    for context in [1, 2] {
        sender.store(theirs.address(0), &[1]).submit(&queue, context).unwrap();
        let begun = Instant::now();
        while queue.len() < context as usize {
            assert!(begun.elapsed() < BOUND, "the background thread does not drive the node");
            thread::sleep(Duration::from_millis(1));
        }
    }
    assert!(is_readable());
    assert_eq!(queue.pop().map(|one| one.context), Some(1));
    assert!(is_readable(), "one is left");
    assert_eq!(queue.pop().map(|one| one.context), Some(2));
    assert!(!is_readable() && queue.pop().is_none());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
    runtime.block_on(async {
        let descriptor = queue.descriptor().unwrap().try_clone_to_owned().unwrap();
        // SAFETY: needed because `tokio` trusts its caller that the descriptor stays open. It owns this one.
        let ready = unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) }.unwrap();
        for context in 10..15 {
            receiver.receive(None, 5, 0, &theirs.slice(..)).submit(&queue, context).unwrap();
            let sent = thread::spawn({
                let (sender, mine, to) = (sender.clone(), mine.clone(), receiver.id());
                move || {
                    thread::sleep(Duration::from_millis(5));
                    sender.send(to, 5, &mine.slice(0..8)).wait()
                }
            });
            let completion = loop {
                let mut guard = ready.readable().await.unwrap();
                if let Some(completion) = queue.pop() {
                    break completion;
                }
                guard.clear_ready();
            };
            assert_eq!(completion.context, context);
            sent.join().unwrap().unwrap();
        }
    });
}

/// The future of a handle is not polled again after its result.
#[test]
fn an_ended_handle_is_ready_at_once() {
    let (initiator, owner) = pair();
    let theirs = owner.allocate(RegionOptions::new(1, KEY), 64).unwrap();
    let mut stored = initiator.store(theirs.address(0), &[1]).start().unwrap();
    while !stored.test() {}
    let polled = pin!(stored).poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(polled, Poll::Ready(Ok(()))));
}
