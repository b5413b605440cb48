//! Tests of the public API: every operation in its three forms, several threads, two fabrics, lost peers, and the background thread.

#[path = "fabric/rig.rs"]
mod rig;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rackloom::fabric::*;
use rig::{block_on, ended, local, pair};

const KEY: u64 = 0x5eed;
const BYTES: u64 = 1 << 16;
/// Longer than any detection of a loss takes, shorter than a hang.
const BOUND: Duration = Duration::from_secs(10);

/// Ends a request in each of the three forms.
fn three_forms<'a, T: Outcome>(node: &Node, make: impl Fn() -> Request<'a, T>, check: impl Fn(T, u64)) {
    check(make().wait().unwrap(), 0);
    check(block_on(make()).unwrap(), 1);
    let queue = Queue::with_capacity(4);
    make().submit(&queue, 77).unwrap();
    let completion = ended(node, &queue);
    assert_eq!(completion.context, 77);
    check(T::of(completion.result.unwrap()), 2);
    assert_eq!((queue.succeeded(), queue.failed(), queue.len()), (1, 0, 0));
}

#[test]
fn stores_and_loads_in_three_forms() {
    let (initiator, owner) = pair();
    let theirs = owner.allocate(RegionOptions::new(1, KEY), BYTES).unwrap();
    let mine = initiator.allocate(RegionOptions::new(1, KEY), BYTES).unwrap();
    three_forms(
        &initiator,
        || initiator.store(theirs.address(3), b"abcde"),
        |(), _| {
            let mut seen = [0_u8; 5];
            theirs.read(3, &mut seen).unwrap();
            assert_eq!(&seen, b"abcde", "visible at the target when the store has ended");
            theirs.write(3, &[0_u8; 5]).unwrap();
        },
    );
    theirs.write(100, &[7_u64, 8, 9]).unwrap();
    three_forms(
        &initiator,
        || initiator.load(theirs.address(100), &mine.slice(40..64)),
        |(), _| {
            let mut seen = [0_u64; 3];
            mine.read(40, &mut seen).unwrap();
            assert_eq!(seen, [7, 8, 9]);
            mine.write(40, &[0_u64; 3]).unwrap();
        },
    );
    three_forms(&initiator, || initiator.store_posted(theirs.address(0), b"posted"), |(), _| {});
    three_forms(&initiator, || initiator.fence(None), |(), _| {});
    three_forms(
        &initiator,
        || initiator.flush(Some(owner.id())),
        |(), _| {
            let mut seen = [0_u8; 6];
            theirs.read(0, &mut seen).unwrap();
            assert_eq!(&seen, b"posted", "visible after the flush");
        },
    );
}

#[test]
fn puts_and_gets_in_three_forms() {
    let (initiator, owner) = pair();
    let theirs = owner.allocate(RegionOptions::new(1, KEY), BYTES).unwrap();
    let numbers: Vec<u32> = (0..BYTES as u32 / 4).map(|number| number.wrapping_mul(2_654_435_761)).collect();
    let mine = initiator.register(RegionOptions::new(5, KEY), numbers.clone()).unwrap();
    three_forms(
        &initiator,
        || initiator.put(&mine.slice(..), theirs.address(0)),
        |(), _| {
            let mut seen = vec![0_u32; numbers.len()];
            theirs.read(0, &mut seen).unwrap();
            assert!(seen == numbers);
            theirs.write(0, &vec![0_u8; BYTES as usize]).unwrap();
        },
    );
    theirs.write(0, &numbers).unwrap();
    mine.write(0, &vec![0_u8; BYTES as usize]).unwrap();
    three_forms(
        &initiator,
        || initiator.get(theirs.address(4), &mine.slice(4..BYTES)),
        |(), _| {
            let mut seen = vec![0_u32; numbers.len() - 1];
            mine.read(4, &mut seen).unwrap();
            assert!(seen == numbers[1..]);
            mine.write(4, &vec![0_u8; BYTES as usize - 4]).unwrap();
        },
    );
    assert_eq!(mine.deregister::<u32>().unwrap().expect("the caller's own buffer").len(), numbers.len());
}

#[test]
fn signals_and_waits_in_three_forms() {
    let (initiator, owner) = pair();
    let theirs = owner.allocate(RegionOptions::new(1, KEY), BYTES).unwrap();
    let mine = initiator.allocate(RegionOptions::new(1, KEY), BYTES).unwrap();
    let target = theirs.address(0);
    let signal =
        Signal { region: target.region, offset: 4096, key: target.key, kind: SignalKind::Add, value: 1 };
    let put = || initiator.put_with_signal(&mine.slice(0..4096), target, signal);
    three_forms(&initiator, put, |(), form| assert_eq!(theirs.get::<u64>(4096).unwrap(), form + 1));
    let wait = || owner.wait_until(&theirs, 4096, Condition::AtLeast, 3, initiator.id());
    three_forms(&owner, wait, |word, _| assert_eq!(word, 3));
    let waiter = thread::spawn({
        let (owner, theirs) = (owner.clone(), theirs.clone());
        move || owner.wait_until(&theirs, 4096, Condition::Equal, 4, NodeId(0)).wait()
    });
    put().wait().unwrap();
    assert_eq!(waiter.join().unwrap().unwrap(), 4);
}

/// Ends atomics of one type in three forms. `small` has the numbers 0 to 127, in this type.
fn atomics_of<W: Word + Outcome + PartialEq + std::fmt::Debug>(at: u64, small: impl Fn(u8) -> W) {
    let (initiator, owner) = pair();
    let theirs = owner.allocate(RegionOptions::new(1, KEY), 128).unwrap();
    let at = theirs.address(at);
    theirs.write(at.offset, &[small(0)]).unwrap();
    let check = |olds: [u8; 3]| {
        let small = &small;
        move |old: W, form: u64| assert_eq!(old, small(olds[form as usize]))
    };
    three_forms(&initiator, || initiator.fetch_add(at, small(10)), check([0, 10, 20]));
    three_forms(&initiator, || initiator.swap(at, small(99)), check([30, 99, 99]));
    three_forms(&initiator, || initiator.compare_swap(at, small(99), small(5)), check([99, 5, 5]));
    three_forms(&initiator, || initiator.fetch_or(at, small(0b1010)), check([5, 0b1111, 0b1111]));
    three_forms(&initiator, || initiator.fetch_xor(at, small(0b0110)), check([0b1111, 0b1001, 0b1111]));
    three_forms(&initiator, || initiator.fetch_and(at, small(0b1100)), check([0b1001, 0b1000, 0b1000]));
    three_forms(&initiator, || initiator.fetch_max(at, small(100)), check([8, 100, 100]));
    three_forms(&initiator, || initiator.fetch_min(at, small(7)), check([100, 7, 7]));
    assert_eq!(theirs.get::<W>(at.offset).unwrap(), small(7));
}

#[test]
fn atomics_of_all_types_in_three_forms() {
    atomics_of(32, u32::from);
    atomics_of(36, i32::from);
    atomics_of(64, u64::from);
    atomics_of(72, i64::from);
}

/// The type decides about the order: the bits of -2 are those of a large number.
#[test]
fn minimum_and_maximum_follow_the_sign_of_the_type() {
    let (initiator, owner) = pair();
    let theirs = owner.allocate(RegionOptions::new(1, KEY), 64).unwrap();
    let at = theirs.address(8);
    theirs.write(8, &[3_i32, 77]).unwrap();
    assert_eq!(initiator.fetch_min(at, -2_i32).wait().unwrap(), 3);
    assert_eq!(initiator.fetch_max(at, 1_i32).wait().unwrap(), -2);
    assert_eq!(initiator.fetch_max(at, (-2_i32).cast_unsigned()).wait().unwrap(), 1);
    assert_eq!(initiator.fetch_min(at, 5_u32).wait().unwrap(), u32::MAX - 1);
    assert_eq!((theirs.get::<i32>(8).unwrap(), theirs.get::<i32>(12).unwrap()), (5, 77));
    theirs.write(16, &[i64::MIN]).unwrap();
    assert_eq!(initiator.fetch_min(theirs.address(16), 0_u64).wait().unwrap(), 1 << 63);
    theirs.write(16, &[i64::MIN]).unwrap();
    assert_eq!(initiator.fetch_max(theirs.address(16), -1_i64).wait().unwrap(), i64::MIN);
    assert_eq!(theirs.get::<i64>(16).unwrap(), -1);
    let misaligned = initiator.fetch_or(theirs.address(10), 1_u32).wait().unwrap_err();
    assert!(matches!(misaligned, Error::Refused { reason: OperationError::Misaligned, .. }), "{misaligned}");
}

#[test]
fn messages_in_three_forms_short_and_long_and_from_any_source() {
    let (initiator, owner) = pair();
    let mine = initiator.allocate(RegionOptions::new(1, KEY), BYTES).unwrap();
    let theirs = owner.allocate(RegionOptions::new(1, KEY), BYTES).unwrap();
    for length in [0, 8, BYTES] {
        let receiver = thread::spawn({
            let (owner, theirs) = (owner.clone(), theirs.clone());
            move || {
                let receive = || owner.receive(None, 0xab00, 0xff, &theirs.slice(..));
                three_forms(&owner, receive, |received, _| {
                    assert_eq!((received.source, received.length), (NodeId(0), length));
                    assert_eq!(received.tag, 0xab05);
                });
            }
        });
        three_forms(&initiator, || initiator.send(NodeId(1), 0xab05, &mine.slice(..length)), |(), _| {});
        receiver.join().unwrap();
    }
    let queue = Queue::with_capacity(1);
    let receive = owner.receive(Some(initiator.id()), 9, 0, &theirs.slice(..)).submit(&queue, 1).unwrap();
    owner.cancel(receive).unwrap();
    let result = ended(&owner, &queue).result;
    assert!(matches!(result, Err(Error::Failed(OperationError::Cancelled))), "{result:?}");
    assert!(owner.cancel(receive).is_err(), "it has ended");
}

#[test]
fn a_refusal_names_the_peer() {
    let (initiator, owner) = pair();
    let theirs = owner.allocate(RegionOptions::new(1, KEY).access(Access::READ), 64).unwrap();
    let refused = |result: Result<(), Error>| match result {
        Err(Error::Refused { peer, reason }) => (peer, reason),
        other => panic!("{other:?}"),
    };
    let at = theirs.address(0);
    assert_eq!(refused(initiator.store(at, &[1]).wait()), (owner.id(), OperationError::PermissionDenied));
    let wrong = RemoteAddress { key: Key(1), ..at };
    assert_eq!(refused(initiator.store(wrong, &[1]).wait()), (owner.id(), OperationError::BadKey));
    drop(theirs);
    assert_eq!(refused(initiator.store(at, &[1]).wait()), (owner.id(), OperationError::Revoked));
    assert!(matches!(
        initiator.store(RemoteAddress { node: initiator.id(), ..at }, &[1]).wait(),
        Err(Error::NoSuchNode(_))
    ));
    let foreign = owner.allocate(RegionOptions::new(2, KEY), 64).unwrap();
    assert!(matches!(initiator.load(at, &foreign.slice(..)).wait(), Err(Error::Invalid(_))));
    assert!(matches!(owner.allocate(RegionOptions::new(2, KEY), 64), Err(Error::RegionExists(_))));
}

#[test]
fn several_threads_share_a_node() {
    let (initiator, owner) = pair();
    let theirs = owner.allocate(RegionOptions::new(1, KEY), 64).unwrap();
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let (initiator, address) = (initiator.clone(), theirs.address(0));
            thread::spawn(move || {
                (0..200).map(|_| initiator.fetch_add::<u64>(address, 1).wait().unwrap()).collect()
            })
        })
        .collect();
    let mut seen: Vec<u64> =
        threads.into_iter().flat_map(|thread| -> Vec<u64> { thread.join().unwrap() }).collect();
    seen.sort_unstable();
    assert!(seen.into_iter().eq(0..800), "each old value is seen once");
}

#[test]
fn two_fabrics_in_one_process_are_separate() {
    let (first, second) = (pair(), pair());
    let here = first.1.allocate(RegionOptions::new(1, KEY), 64).unwrap();
    let there = second.1.allocate(RegionOptions::new(1, KEY), 64).unwrap();
    first.0.store(here.address(0), &[1; 8]).wait().unwrap();
    second.0.store(there.address(0), &[2; 8]).wait().unwrap();
    drop(second);
    first.0.store(here.address(8), &[1; 8]).wait().unwrap();
    assert_eq!(here.get::<u64>(0).unwrap(), 0x0101_0101_0101_0101);
    assert_eq!(there.get::<u64>(0).unwrap(), 0x0202_0202_0202_0202);
}

#[test]
fn a_local_rack_with_switches_and_faults_passes_a_barrier() {
    let plan = "name: star\nshape: {star: {nodes: 3}}\nlink: {loss: 2%, duplicate: 2%}\n";
    let nodes = local(plan).into_nodes();
    let members: Vec<NodeId> = nodes.iter().map(Node::id).collect();
    let options = GroupOptions::new(900, KEY);
    let groups: Vec<_> = nodes.iter().map(|node| Group::join(node, options, &members).unwrap()).collect();
    let counter = nodes[0].allocate(RegionOptions::new(1, KEY), 8).unwrap();
    let at = counter.address(0);
    let threads: Vec<_> = nodes
        .into_iter()
        .zip(groups)
        .map(|(node, group)| {
            thread::spawn(move || {
                for round in 1..=20 {
                    if node.id() != at.node {
                        node.fetch_add::<u64>(at, 1).wait().unwrap();
                    }
                    group.barrier().wait().unwrap();
                    if node.id() != at.node {
                        assert_eq!(node.fetch_add::<u64>(at, 0).wait().unwrap(), 2 * round);
                    }
                    group.barrier().wait().unwrap();
                }
                // Nodes stay until all are through, because a node that leaves is lost to the others.
                (node, group)
            })
        })
        .collect();
    let stayed: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    assert_eq!(stayed.len(), 3);
}

#[test]
fn the_death_of_a_peer_ends_every_operation_with_it() {
    let (initiator, owner) = pair();
    let mine = initiator.allocate(RegionOptions::new(1, KEY), BYTES).unwrap();
    let theirs = owner.allocate(RegionOptions::new(1, KEY), BYTES).unwrap();
    let (at, peer) = (theirs.address(0), owner.id());
    let queue = Queue::with_capacity(8);
    let group = Group::join(&initiator, GroupOptions::new(7, KEY), &[initiator.id(), peer]).unwrap();
    initiator.wait_until(&mine, 0, Condition::Equal, 1, peer).submit(&queue, 1).unwrap();
    initiator.receive(Some(peer), 1, 0, &mine.slice(..)).submit(&queue, 2).unwrap();
    initiator.send(peer, 1, &mine.slice(..)).submit(&queue, 3).unwrap();
    owner.leave();
    let begin = Instant::now();
    // An operation that begins now ends like the others, or is refused at once if the loss has been detected.
    let begun = [
        initiator.put(&mine.slice(..), at).submit(&queue, 4).map(|_| 4),
        initiator.fetch_add::<u64>(at, 1).submit(&queue, 5).map(|_| 5),
    ];
    let mut expected = vec![1, 2, 3];
    for submitted in begun {
        match submitted {
            Ok(context) => expected.push(context),
            Err(error) => {
                assert!(
                    matches!(error, Error::PeerLost { peer: lost_peer, .. } if lost_peer == peer),
                    "{error}"
                )
            }
        }
    }
    let mut contexts: Vec<_> = expected
        .iter()
        .map(|_| {
            let completion = ended(&initiator, &queue);
            let error = completion.result.unwrap_err();
            assert!(matches!(error, Error::PeerLost { peer: lost_peer, .. } if lost_peer == peer), "{error}");
            completion.context
        })
        .collect();
    contexts.sort_unstable();
    assert_eq!(contexts, expected);
    let into = mine.slice(0..8);
    let lost = |error: Error| assert_eq!(error.peer(), Some(peer), "{error}");
    lost(initiator.store(at, &[1]).wait().unwrap_err());
    lost(initiator.load(at, &into).wait().unwrap_err());
    lost(initiator.get(at, &into).wait().unwrap_err());
    lost(initiator.put(&into, at).wait().unwrap_err());
    lost(initiator.swap::<u64>(at, 1).wait().unwrap_err());
    lost(initiator.send(peer, 1, &into).wait().unwrap_err());
    lost(initiator.receive(Some(peer), 1, 0, &into).wait().unwrap_err());
    lost(initiator.wait_until(&mine, 0, Condition::Equal, 1, peer).wait().unwrap_err());
    lost(block_on(initiator.store(at, &[1])).unwrap_err());
    lost(group.barrier().wait().unwrap_err());
    assert!(begin.elapsed() < BOUND);
    assert!(matches!(owner.store(at, &[1]).wait(), Err(Error::Closed)));
}

#[test]
fn a_node_that_leaves_ends_its_own_waits() {
    let (initiator, owner) = pair();
    let mine = initiator.allocate(RegionOptions::new(1, KEY), 64).unwrap();
    let waiters: Vec<_> = (0..3)
        .map(|_| {
            let (initiator, mine, peer) = (initiator.clone(), mine.clone(), owner.id());
            thread::spawn(move || initiator.wait_until(&mine, 0, Condition::Equal, 1, peer).wait())
        })
        .collect();
    initiator.leave();
    for waiter in waiters {
        assert!(matches!(waiter.join().unwrap(), Err(Error::Closed)));
    }
    assert!(initiator.poll_wait(&Queue::with_capacity(1), BOUND).is_none(), "no completion can come");
}

#[test]
fn the_background_thread_serves_peers_while_the_application_computes() {
    let (initiator, owner) = pair();
    let theirs = owner.allocate(RegionOptions::new(1, KEY), 64).unwrap();
    let mine = initiator.allocate(RegionOptions::new(1, KEY), 64).unwrap();
    let is_over = Arc::new(AtomicBool::new(false));
    let computing = thread::spawn({
        let is_over = Arc::clone(&is_over);
        move || {
            let mut sum = 0_u64;
            while !is_over.load(Ordering::Relaxed) {
                sum = sum.wrapping_mul(31).wrapping_add(7);
            }
            // This thread owns the node and does not call it.
            (sum, owner)
        }
    });
    theirs.write(0, &[41_u64]).unwrap();
    for round in 0..50 {
        initiator.load(theirs.address(0), &mine.slice(0..8)).wait().unwrap();
        assert_eq!(mine.get::<u64>(0).unwrap(), 41 + round);
        initiator.fetch_add::<u64>(theirs.address(0), 1).wait().unwrap();
    }
    is_over.store(true, Ordering::Relaxed);
    computing.join().unwrap();
}

#[test]
fn posted_stores_that_wait_for_a_full_frame_leave_without_another_call() {
    let (initiator, owner) = pair();
    let theirs = owner.allocate(RegionOptions::new(1, KEY), 4096).unwrap();
    for round in 1..=20_u64 {
        // The first store leaves at once. Those after it find it in flight and wait. Rounds of few and of
        // many stores find the background thread asleep and awake.
        for number in 0..round * 8 {
            initiator.store_posted(theirs.address(number * 8), &round.to_ne_bytes()).wait().unwrap();
        }
        // The initiator is not called any more, so only its background thread can send the rest.
        let last = (round * 8 - 1) * 8;
        let queue = Queue::with_capacity(1);
        let wait = owner.wait_until(&theirs, last, Condition::Equal, round, initiator.id());
        wait.submit(&queue, round).unwrap();
        let arrived = owner.poll_wait(&queue, Duration::from_secs(20)).expect("the last store arrives");
        assert_eq!(arrived.result.unwrap().value, round);
    }
}

#[test]
fn a_dropped_future_does_not_end_its_operation_or_free_its_memory() {
    let (initiator, owner) = pair();
    let theirs = owner.allocate(RegionOptions::new(1, KEY), BYTES).unwrap();
    let mine = initiator.register(RegionOptions::new(1, KEY), vec![3_u8; BYTES as usize]).unwrap();
    {
        let mut put = Box::pin(initiator.put(&mine.slice(..), theirs.address(0)));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let _ = put.as_mut().poll(&mut context);
    }
    assert_eq!(mine.deregister::<u8>().unwrap().expect("owned memory").len() as u64, BYTES);
    initiator.flush(None).wait().unwrap();
    let mut seen = vec![0_u8; BYTES as usize];
    theirs.read(0, &mut seen).unwrap();
    assert!(seen.iter().all(|byte| *byte == 3));
}

#[test]
fn memory_of_the_caller_is_accessed_in_place() {
    let (initiator, owner) = pair();
    let mut words = vec![1_u64, 2, 3];
    let length = size_of_val(words.as_slice());
    // SAFETY: needed to lend memory. `words` is neither touched nor dropped before the region is deregistered.
    let from_caller =
        unsafe { owner.register_raw(RegionOptions::new(1, KEY), words.as_mut_ptr().cast(), length) }.unwrap();
    assert_eq!(initiator.fetch_add::<u64>(from_caller.address(8), 40).wait().unwrap(), 2);
    let (at, slice) = (from_caller.address(0), from_caller.slice(..));
    let refused = from_caller.clone().deregister::<u64>().expect_err("a slice still holds the region");
    assert!(matches!(refused, Error::Invalid(_)), "{refused}");
    drop(slice);
    assert!(from_caller.deregister::<u64>().unwrap().is_none(), "there was no buffer to give back");
    assert_eq!(words, [1, 42, 3]);
    let refused = initiator.store(at, &[1]).wait().unwrap_err();
    assert!(matches!(refused, Error::Refused { reason: OperationError::Revoked, .. }), "{refused}");
}

#[test]
fn types_are_send_and_sync_as_documented() {
    fn shared<T: Send + Sync>() {}
    fn sent<T: Send>() {}
    shared::<Fabric>();
    shared::<Node>();
    shared::<Region>();
    shared::<Slice>();
    shared::<Queue>();
    shared::<Group>();
    shared::<Error>();
    sent::<Request<'_, u64>>();
    sent::<GroupRequest<'_>>();
    sent::<Completion>();
}
