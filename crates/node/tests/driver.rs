//! Tests of a node that one thread drives: operations of its driver, and access of other threads meanwhile.

#[path = "fabric/rig.rs"]
mod rig;

use std::thread;
use std::time::Duration;

use rackloom::fabric::*;
use rig::{local, pair};

const KEY: u64 = 0x5eed;
const BYTES: u64 = 1 << 16;
/// Longer than any detection of a loss takes, shorter than a hang.
const BOUND: Duration = Duration::from_secs(10);

/// Returns the contexts of the next `count` completions, in order of number. Each must succeed.
fn contexts(driver: &mut Driver, count: usize) -> Vec<u64> {
    let (mut completions, mut contexts) = (Vec::new(), Vec::new());
    while contexts.len() < count {
        assert!(driver.poll_wait(&mut completions, BOUND) > 0, "{} of {count} ended", contexts.len());
        for completion in completions.drain(..) {
            completion.result.unwrap();
            contexts.push(completion.context);
        }
    }
    contexts.sort_unstable();
    contexts
}

#[test]
fn a_driver_performs_every_request() {
    let (initiator, owner) = pair();
    let theirs = owner.allocate(RegionOptions::new(1, KEY), BYTES).unwrap();
    let mine = initiator.allocate(RegionOptions::new(2, KEY), BYTES).unwrap();
    mine.write(0, &[1_u64, 2, 3, 4]).unwrap();
    let mut driver = initiator.drive().unwrap();

    driver.store(theirs.address(0), b"stored", 1).unwrap();
    driver.put(&mine, 0..32, theirs.address(100), 2).unwrap();
    driver.submit(initiator.fetch_add::<u64>(theirs.address(8), 5), 3).unwrap();
    assert_eq!(contexts(&mut driver, 3), [1, 2, 3]);
    let mut seen = [0_u8; 6];
    theirs.read(0, &mut seen).unwrap();
    assert_eq!((&seen, theirs.get::<u64>(8).unwrap()), (b"stored", 5));
    let mut seen = [0_u64; 4];
    theirs.read(100, &mut seen).unwrap();
    assert_eq!(seen, [1, 2, 3, 4]);

    driver.get(theirs.address(100), &mine, 64..96, 4).unwrap();
    driver.submit(initiator.load(theirs.address(0), &mine.slice(96..102)), 5).unwrap();
    assert_eq!(contexts(&mut driver, 2), [4, 5]);
    let mut seen = [0_u8; 6];
    mine.read(96, &mut seen).unwrap();
    assert_eq!((mine.get::<u64>(88).unwrap(), &seen), (4, b"stored"));

    for number in 0..1000_u64 {
        while let Err(error) =
            driver.store_posted(theirs.address(1000 + number % 8 * 8), &number.to_ne_bytes())
        {
            assert!(matches!(error, Error::Busy { .. }), "{error}");
            assert_eq!(driver.poll(&mut Vec::new()), 0, "a posted store has no completion");
        }
    }
    driver.wait(initiator.flush(Some(owner.id()))).unwrap();
    assert_eq!(theirs.get::<u64>(1000 + 7 * 8).unwrap(), 999);
}

#[test]
fn a_full_queue_is_an_error_until_some_polls() {
    let (initiator, owner) = pair();
    let theirs = owner.allocate(RegionOptions::new(1, KEY), 64).unwrap();
    let mut driver = initiator.drive().unwrap();
    let (mut completions, mut ended, mut begun, mut busy) = (Vec::new(), 0, 0, 0);
    while ended < 5000 {
        while begun < 5000 {
            match driver.submit(initiator.fetch_add::<u64>(theirs.address(0), 1), begun) {
                Ok(_) => begun += 1,
                Err(Error::Busy { peer }) => {
                    assert_eq!(peer, Some(owner.id()));
                    busy += 1;
                    break;
                }
                Err(error) => panic!("{error}"),
            }
        }
        driver.poll_wait(&mut completions, BOUND);
        for completion in completions.drain(..) {
            assert_eq!(completion.result.unwrap().value, completion.context, "in the order of submission");
            ended += 1;
        }
    }
    assert!(busy > 0, "more atomics than may be outstanding at once");
    assert_eq!(theirs.get::<u64>(0).unwrap(), 5000);
}

#[test]
fn peers_are_served_while_a_driver_computes() {
    let (initiator, owner) = pair();
    let mine = initiator.allocate(RegionOptions::new(1, KEY), 64).unwrap();
    let mut driver = initiator.drive().unwrap();
    // The driver has polled often enough that the background thread leaves the node alone. Then the driver stops polling.
    (0..1000).for_each(|_| assert_eq!(driver.poll(&mut Vec::new()), 0));
    for number in 0..100 {
        assert_eq!(owner.fetch_add::<u64>(mine.address(0), 1).wait().unwrap(), number);
    }
    assert_eq!(mine.get::<u64>(0).unwrap(), 100);
    assert!(initiator.counters().polls_by_background > 0);
}

#[test]
fn other_threads_can_use_a_driven_node() {
    const EACH: u64 = 2000;
    let (initiator, owner) = pair();
    let theirs = owner.allocate(RegionOptions::new(1, KEY), 64).unwrap();
    let mut driver = initiator.drive().unwrap();
    thread::scope(|scope| {
        let others = [8, 16].map(|offset| {
            let (initiator, at) = (initiator.clone(), theirs.address(offset));
            scope.spawn(move || {
                let add = |number| assert_eq!(initiator.fetch_add::<u64>(at, 1).wait().unwrap(), number);
                (0..EACH).for_each(add);
            })
        });
        let (mut completions, mut begun, mut ended) = (Vec::new(), 0, 0);
        while ended < EACH || others.iter().any(|other| !other.is_finished()) {
            if begun < EACH && begun - ended < 16 {
                driver.submit(initiator.fetch_add::<u64>(theirs.address(0), 1), begun).unwrap();
                begun += 1;
            }
            driver.poll(&mut completions);
            for completion in completions.drain(..) {
                assert_eq!(completion.result.unwrap().value, completion.context);
                ended += 1;
            }
        }
    });
    let mut seen = [0_u64; 3];
    theirs.read(0, &mut seen).unwrap();
    assert_eq!(seen, [EACH; 3]);
}

#[test]
fn the_driving_thread_can_use_the_nodes_other_handles() {
    let (initiator, owner) = pair();
    let theirs = owner.allocate(RegionOptions::new(1, KEY), 64).unwrap();
    let mut driver = initiator.drive().unwrap();
    driver.store(theirs.address(0), &[1; 8], 1).unwrap();
    initiator.store(theirs.address(8), &[2; 8]).wait().unwrap();
    let queue = Queue::with_capacity(1);
    initiator.store(theirs.address(16), &[3; 8]).submit(&queue, 7).unwrap();
    // A region is created and dropped while operations are in flight.
    let mine = initiator.allocate(RegionOptions::new(9, KEY), 64).unwrap();
    driver.put(&mine, 0..8, theirs.address(24), 2).unwrap();
    drop(mine);
    assert_eq!(contexts(&mut driver, 2), [1, 2]);
    assert_eq!(rig::ended(&initiator, &queue).context, 7);
    assert!(initiator.allocate(RegionOptions::new(9, KEY), 64).is_ok(), "its number is free again");
    assert_eq!(theirs.get::<u64>(16).unwrap(), u64::from_ne_bytes([3; 8]));
}

#[test]
fn a_node_has_one_driver_and_a_later_one_gets_no_completions_of_the_earlier() {
    let (initiator, owner) = pair();
    let theirs = owner.allocate(RegionOptions::new(1, KEY), 64).unwrap();
    let mut first = initiator.drive().unwrap();
    assert!(matches!(initiator.drive(), Err(Error::Invalid(_))));
    first.store(theirs.address(0), &[1; 8], 1).unwrap();
    drop(first);
    let mut second = initiator.drive().unwrap();
    second.store(theirs.address(8), &[2; 8], 2).unwrap();
    assert_eq!(contexts(&mut second, 1), [2]);
    assert_eq!(theirs.get::<u64>(0).unwrap(), u64::from_ne_bytes([1; 8]), "operations in flight continue");
    assert_eq!(second.poll_wait(&mut Vec::new(), Duration::ZERO), 0);
}

#[test]
fn a_driver_gets_errors_for_a_dead_peer_and_a_closed_node() {
    let nodes =
        local("name: two\nshape: {ring: {nodes: 2}}\ntimers: {heartbeat_interval: 10ms}\n").into_nodes();
    let [initiator, owner] = <[Node; 2]>::try_from(nodes).unwrap();
    let theirs = owner.allocate(RegionOptions::new(1, KEY), 64).unwrap();
    let at = theirs.address(0);
    let mut driver = initiator.drive().unwrap();
    owner.leave();
    let begun = driver.store(at, &[1; 8], 1);
    let error = match begun {
        Ok(_) => {
            let mut completions = Vec::new();
            assert_eq!(driver.poll_wait(&mut completions, BOUND), 1);
            completions.remove(0).result.unwrap_err()
        }
        Err(error) => error,
    };
    assert!(matches!(error, Error::PeerLost { peer, .. } if peer == NodeId(1)), "{error}");
    initiator.leave();
    assert!(matches!(driver.store(at, &[1; 8], 2), Err(Error::Closed)));
    assert_eq!(driver.poll_wait(&mut Vec::new(), BOUND), 0);
}

#[test]
fn posted_stores_of_a_driver_share_frames() {
    const STORES: u64 = 4096;
    let (initiator, owner) = pair();
    let theirs = owner.allocate(RegionOptions::new(1, KEY), BYTES).unwrap();
    let mut driver = initiator.drive().unwrap();
    let before = initiator.counters().data_frames_sent;
    for number in 0..STORES {
        while driver.store_posted(theirs.address(number * 16), &number.to_ne_bytes()).is_err() {
            driver.poll(&mut Vec::new());
        }
    }
    driver.wait(initiator.flush(None)).unwrap();
    let frames = initiator.counters().data_frames_sent - before;
    assert!((0..STORES).all(|number| theirs.get::<u64>(number * 16).unwrap() == number));
    assert!(frames * 8 < STORES, "{frames} frames for {STORES} stores");
}

#[test]
fn a_list_of_stores_stops_at_the_first_invalid_one() {
    let nodes = local("name: three\nshape: {full-mesh: {nodes: 3}}\n").into_nodes();
    let [initiator, one, other] = <[Node; 3]>::try_from(nodes).unwrap();
    let theirs = [&one, &other].map(|node| node.allocate(RegionOptions::new(1, KEY), BYTES).unwrap());
    let mut driver = initiator.drive().unwrap();
    let words: Vec<u64> = (0..100).collect();
    let bytes: Vec<_> = words.iter().map(|word| word.to_ne_bytes()).collect();
    let store = |number: u64| {
        Store::new(theirs[number as usize / 3 % 2].address(number * 8), &bytes[number as usize], number)
    };
    let mut stores: Vec<_> = (0..100).map(store).collect();
    assert_eq!(driver.stores(&stores).unwrap(), 100);
    assert_eq!(contexts(&mut driver, 100), words);
    assert!((0..100).all(|number| theirs[number as usize / 3 % 2].get::<u64>(number * 8).unwrap() == number));

    stores[70].data = &[];
    assert_eq!(driver.stores(&stores).unwrap(), 70, "the call that begins with the invalid store fails");
    assert_eq!(contexts(&mut driver, 70), words[..70]);
    assert!(matches!(driver.stores(&stores[70..]), Err(Error::Invalid(_))));
    assert!(matches!(driver.stores_posted(&stores[70..]), Err(Error::Invalid(_))));
    assert_eq!(driver.stores_posted(&stores).unwrap(), 70);
    driver.wait(initiator.flush(None)).unwrap();
    assert_eq!(driver.poll(&mut Vec::new()), 0, "neither a refused store nor a posted one has a completion");
    assert_eq!(driver.stores(&[]).unwrap(), 0);
}

#[test]
fn a_list_longer_than_the_queue_is_accepted_in_pieces() {
    const STORES: u64 = 1_000;
    // At most sixteen packets may wait, and each store is one.
    let plan = "name: two\nshape: {ring: {nodes: 2}}\npacking: {mode: \"off\"}\ntransport: {window_packets: 16, ack_every_packets: 4}\n";
    let [initiator, owner] = <[Node; 2]>::try_from(local(plan).into_nodes()).unwrap();
    let theirs = owner.allocate(RegionOptions::new(1, KEY), 8 * STORES).unwrap();
    let mut driver = initiator.drive().unwrap();
    let bytes: Vec<_> = (0..STORES).map(u64::to_ne_bytes).collect();
    let at = |number| theirs.address(8 * number);
    let stores: Vec<_> =
        (0..).zip(&bytes).map(|(number, data)| Store::new(at(number), data, number)).collect();
    let (mut taken, mut calls) = (0, 0_u64);
    while taken < stores.len() {
        match driver.stores_posted(&stores[taken..]) {
            Ok(count) => taken += count,
            Err(Error::Busy { peer }) => assert_eq!(peer, Some(owner.id())),
            Err(error) => panic!("{error}"),
        }
        calls += 1;
        driver.poll(&mut Vec::new());
    }
    assert!(calls >= STORES / 16, "{calls} calls for more than the queue takes");
    driver.wait(initiator.flush(None)).unwrap();
    assert!((0..STORES).all(|number| theirs.get::<u64>(8 * number).unwrap() == number));
}
