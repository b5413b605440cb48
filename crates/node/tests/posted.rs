//! Tests of posted operations, which end for their caller as soon as the core has accepted them: their effects, and the reports of their failures.

#[path = "fabric/rig.rs"]
mod rig;

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Waker};
use std::time::Duration;

use rackloom::fabric::*;
use rig::{block_on, ended, pair};

const KEY: u64 = 0x5eed;
const BYTES: u64 = 1 << 16;
/// Longer than any detection of a loss takes, shorter than a hang.
const BOUND: Duration = Duration::from_secs(60);

/// Posts one kind of operation in every form, and waits for it by a flush each time. `check` verifies its effect.
fn post_in_every_form<T: Outcome>(node: &Node, make: impl Fn() -> Request<'static, T>, check: impl Fn(u64)) {
    let flushed = |form| {
        node.flush(None).wait_for(BOUND).unwrap();
        check(form);
    };
    make().posted().wait().unwrap();
    flushed(1);
    block_on(make().posted()).unwrap();
    flushed(2);
    let queue = Queue::with_capacity(2);
    make().posted().submit(&queue, 7).unwrap();
    let completion = queue.pop().expect("a posted operation completes at once");
    assert_eq!((completion.context, completion.result.unwrap().value), (7, 0));
    flushed(3);
    let mut batch = node.batch();
    batch.add(make().posted(), 8).unwrap();
    assert_eq!((batch.submit(&queue), queue.pop().map(|completion| completion.context)), (1, Some(8)));
    flushed(4);
    let mut driver = node.drive().unwrap();
    driver.submit(make().posted(), 9).unwrap();
    let mut completions = Vec::new();
    driver.poll(&mut completions);
    assert_eq!(completions.iter().map(|completion| completion.context).collect::<Vec<_>>(), [9]);
    driver.wait(node.flush(None)).unwrap();
    check(5);
    assert!(queue.is_empty() && driver.poll(&mut completions) == 0, "one completion each");
}

#[test]
fn every_operation_to_a_peer_can_be_posted() {
    let (initiator, owner) = pair();
    let theirs = owner.allocate(RegionOptions::new(1, KEY), BYTES).unwrap();
    let mine = initiator.register(RegionOptions::new(2, KEY), vec![3_u8; BYTES as usize]).unwrap();
    let seen_and_cleared = |_: u64| {
        let mut seen = vec![0_u8; 40_000];
        theirs.read(0, &mut seen).unwrap();
        assert!(seen.iter().all(|byte| *byte == 3), "visible after the flush");
        theirs.write(0, &vec![0_u8; 40_000]).unwrap();
    };
    post_in_every_form(
        &initiator,
        || initiator.put(&mine.slice(..40_000), theirs.address(0)),
        seen_and_cleared,
    );
    let signal = Signal::add(theirs.address(50_000), 1);
    post_in_every_form(
        &initiator,
        || initiator.put_with_signal(&mine.slice(..8), theirs.address(0), signal),
        |form| assert_eq!(theirs.get::<u64>(50_000).unwrap(), form),
    );
    post_in_every_form(
        &initiator,
        || initiator.fetch_add::<u64>(theirs.address(50_008), 2),
        |form| assert_eq!(theirs.get::<u64>(50_008).unwrap(), 2 * form),
    );
    let landed_and_cleared = |_: u64| {
        assert_eq!(mine.get::<u64>(8).unwrap(), 77, "here after the flush");
        mine.write(8, &[0_u64]).unwrap();
    };
    theirs.write(60_000, &[77_u64]).unwrap();
    post_in_every_form(
        &initiator,
        || initiator.get(theirs.address(60_000), &mine.slice(8..16)),
        landed_and_cleared,
    );
    post_in_every_form(
        &initiator,
        || initiator.load(theirs.address(60_000), &mine.slice(8..16)),
        landed_and_cleared,
    );
    mine.write(0, &[9_u64]).unwrap();
    post_in_every_form(
        &initiator,
        || initiator.send(owner.id(), 5, &mine.slice(..8)),
        |_| assert_eq!(owner.receive(None, 5, 0, &theirs.slice(..8)).wait_for(BOUND).unwrap().length, 8),
    );
    assert_eq!(mine.deregister::<u8>().unwrap().expect("nothing uses it any more").len() as u64, BYTES);
}

#[test]
fn a_driver_posts_puts_that_a_flush_waits_for() {
    const PUTS: u64 = 3000;
    let (initiator, owner) = pair();
    let theirs = owner.allocate(RegionOptions::new(1, KEY), 16 * PUTS).unwrap();
    let numbers: Vec<u64> = (0..2 * PUTS).collect();
    let mine = initiator.register(RegionOptions::new(2, KEY), numbers.clone()).unwrap();
    let mut driver = initiator.drive().unwrap();
    let mut none = Vec::new();
    for offset in (0..PUTS).map(|number| 16 * number) {
        while let Err(error) = driver.put_posted(&mine, offset..offset + 16, theirs.address(offset)) {
            assert!(matches!(error, Error::Busy { .. }), "{error}");
            driver.poll(&mut none);
        }
    }
    driver.wait(initiator.flush(Some(owner.id()))).unwrap();
    assert!(none.is_empty(), "a posted put has no completion");
    let mut seen = vec![0_u64; numbers.len()];
    theirs.read(0, &mut seen).unwrap();
    assert!(seen == numbers);
}

#[test]
fn a_refusal_is_reported_by_the_next_flush_once() {
    let (initiator, owner) = pair();
    let theirs = owner.allocate(RegionOptions::new(1, KEY), 64).unwrap();
    let mine = initiator.allocate(RegionOptions::new(2, KEY), 64).unwrap();
    let wrong = RemoteAddress { key: Key(1), ..theirs.address(0) };
    let refused = |error: Error| match error {
        Error::Refused { peer, reason } => assert_eq!((peer, reason), (owner.id(), OperationError::BadKey)),
        error => panic!("{error}"),
    };
    for target in [None, Some(owner.id())] {
        initiator.put(&mine.slice(..), wrong).posted().wait().unwrap();
        refused(initiator.flush(target).wait_for(BOUND).unwrap_err());
        initiator.flush(target).wait_for(BOUND).unwrap();
    }
    let mut driver = initiator.drive().unwrap();
    driver.put_posted(&mine, 0..8, wrong).unwrap();
    refused(driver.wait(initiator.flush(None)).unwrap_err());
    driver.wait(initiator.flush(None)).unwrap();
    driver.put(&mine, 0..8, wrong, 1).unwrap();
    let mut completions = Vec::new();
    assert_eq!(driver.poll_wait(&mut completions, BOUND), 1);
    refused(completions.remove(0).result.unwrap_err());
    driver.wait(initiator.flush(None)).expect("a flush does not report operations with a completion");
}

#[test]
fn a_posted_put_lost_with_its_target_fails_a_flush() {
    for target in [None, Some(NodeId(1))] {
        let (initiator, owner) = pair();
        let theirs = owner.allocate(RegionOptions::new(1, KEY), BYTES).unwrap();
        let mine = initiator.allocate(RegionOptions::new(2, KEY), BYTES).unwrap();
        owner.leave();
        // The core accepts the operation, unless the loss has been detected already.
        let posted = initiator.put(&mine.slice(..), theirs.address(0)).posted().wait();
        let gone = initiator.receive(Some(owner.id()), 1, 0, &mine.slice(..)).wait_for(BOUND).unwrap_err();
        assert_eq!(gone.peer(), Some(owner.id()), "{gone}");
        let error = initiator.flush(target).wait_for(BOUND).err();
        match (&posted, target, error) {
            (Ok(()), _, Some(Error::PeerLost { peer, .. })) => assert_eq!(peer, owner.id()),
            (Err(_), Some(_), Some(Error::PeerLost { peer, .. })) => assert_eq!(peer, owner.id()),
            (Err(_), None, None) => {}
            (_, _, error) => panic!("{posted:?}, then {error:?}"),
        }
        initiator.flush(None).wait_for(BOUND).expect("it has been reported");
    }
}

#[test]
fn waits_cannot_be_posted_and_a_started_request_cannot_be_started_again() {
    let (initiator, owner) = pair();
    let mine = initiator.allocate(RegionOptions::new(2, KEY), 64).unwrap();
    let invalid = |result: Result<(), Error>| assert!(matches!(result, Err(Error::Invalid(_))), "{result:?}");
    invalid(initiator.receive(None, 1, 0, &mine.slice(..)).posted().wait());
    invalid(initiator.wait_until(&mine, 0, Condition::Equal, 1, owner.id()).posted().wait());
    invalid(initiator.flush(None).posted().wait());
    initiator.fence(None).posted().wait().expect("a fence ends at once");

    let mut receive = initiator.receive(None, 1, 0, &mine.slice(..));
    assert!(Pin::new(&mut receive).poll(&mut Context::from_waker(Waker::noop())).is_pending());
    let queue = Queue::with_capacity(1);
    invalid(receive.submit(&queue, 1).map(|_| ()));
    let theirs = owner.register(RegionOptions::new(2, KEY), vec![1_u64]).unwrap();
    owner.send(initiator.id(), 1, &theirs.slice(..)).wait().unwrap();
    initiator.receive(None, 1, 0, &mine.slice(..)).submit(&queue, 2).unwrap();
    assert_eq!(ended(&initiator, &queue).context, 2, "the first one has no effect");
}

#[test]
fn the_number_of_a_dropped_region_is_free_once_no_operation_uses_it() {
    let (initiator, owner) = pair();
    let options = RegionOptions::new(2, KEY);
    let queue = Queue::with_capacity(1);
    for round in 0..100 {
        let mine = initiator.allocate(options, 64).unwrap_or_else(|error| panic!("round {round}: {error}"));
        assert!(matches!(initiator.allocate(options, 64), Err(Error::RegionExists(_))));
        let error = initiator.wait_until_free(RegionId(2), BOUND).unwrap_err();
        assert!(matches!(error, Error::RegionExists(_)), "a handle is alive: {error}");
        drop(mine);
    }
    initiator.wait_until_free(RegionId(2), Duration::ZERO).expect("nothing uses it");

    let mine = initiator.allocate(options, 64).unwrap();
    let receive = initiator.receive(Some(owner.id()), 1, 0, &mine.slice(..)).submit(&queue, 1).unwrap();
    drop(mine);
    let error = initiator.allocate(options, 64).unwrap_err();
    assert!(matches!(error, Error::RegionInUse(RegionId(2))), "{error}");
    let error = initiator.wait_until_free(RegionId(2), Duration::from_millis(1)).unwrap_err();
    assert!(matches!(error, Error::RegionInUse(RegionId(2))), "{error}");
    initiator.cancel(receive).unwrap();
    initiator.wait_until_free(RegionId(2), BOUND).unwrap();

    // An operation to a peer ends without further calls.
    let theirs = owner.allocate(RegionOptions::new(1, KEY), BYTES).unwrap();
    let mine = initiator.allocate(options, BYTES).unwrap();
    initiator.put(&mine.slice(..), theirs.address(0)).posted().wait().unwrap();
    drop(mine);
    initiator.wait_until_free(RegionId(2), BOUND).unwrap();
    initiator.allocate(options, 64).unwrap();
}

#[test]
fn bytes_and_frames_are_counted_on_both_sides() {
    let (initiator, owner) = pair();
    let theirs = owner.allocate(RegionOptions::new(1, KEY), BYTES).unwrap();
    let mine = initiator.allocate(RegionOptions::new(2, KEY), BYTES).unwrap();
    let before = (initiator.counters(), owner.counters());
    initiator.put(&mine.slice(..), theirs.address(0)).wait().unwrap();
    let after = (initiator.counters(), owner.counters());
    let (data_bytes, bytes) =
        (after.0.data_bytes_sent - before.0.data_bytes_sent, after.0.bytes_sent - before.0.bytes_sent);
    assert!(data_bytes > BYTES && data_bytes < BYTES + BYTES / 4, "{data_bytes} bytes for {BYTES}");
    assert!(bytes >= data_bytes);
    assert!(after.1.bytes_received - before.1.bytes_received >= data_bytes);
    assert!(after.1.frames_received > before.1.frames_received && after.0.frames_sent > before.0.frames_sent);
    assert_eq!((after.1.frames_dropped, after.1.frames_missing), (0, 0));
}

#[test]
fn retransmitted_packets_are_counted() {
    let nodes = rig::local("name: two\nshape: {ring: {nodes: 2}}\nlink: {loss: 20%}\n").into_nodes();
    let [initiator, owner] = <[Node; 2]>::try_from(nodes).unwrap();
    let theirs = owner.allocate(RegionOptions::new(1, KEY), BYTES).unwrap();
    for _ in 0..200 {
        initiator.store(theirs.address(0), &[1; 64]).wait().unwrap();
    }
    let counters = initiator.counters();
    assert!(counters.packets_retransmitted > 0, "{counters:?}");
}
