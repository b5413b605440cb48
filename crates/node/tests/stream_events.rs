//! Events in words of regions: streams of two nodes' devices wait for each other, and no processor waits.

#![cfg(feature = "gpu")]

use std::time::{Duration, Instant};

use rackloom::fabric::*;
use rackloom_gpu::device::{Address, StreamId};

const KEY: u64 = 0x5eed;
const BYTES: u64 = 4096;
const ROUNDS: u64 = 20;
const BOUND: Duration = Duration::from_secs(20);
/// Offsets of the words behind the data.
const READY: u64 = BYTES;
const FINISHED: u64 = BYTES + 8;

fn options(region: u32) -> RegionOptions {
    RegionOptions::new(region, KEY)
}

fn pair() -> [Node; 2] {
    let text = "name: pair\nshape: {ring: {nodes: 2}}\nservers: {box: [n0, n1]}\n";
    Fabric::local(&Plan::parse(text, "test").unwrap()).unwrap().into_nodes().try_into().unwrap()
}

fn stream(node: &Node) -> StreamId {
    node.with_device(|device| device.stream().unwrap()).unwrap()
}

/// Enqueues a copy on a stream of the node's device.
fn copy(node: &Node, stream: StreamId, target: u64, source: u64) {
    node.with_device(|device| device.copy(stream, Address(target), Address(source), BYTES).unwrap()).unwrap();
}

#[test]
fn a_producer_and_a_consumer_need_no_processor_between_rounds() {
    for seed in 0..10 {
        let [producer, consumer] = pair();
        let devices = [DeviceChoice::Fake(seed), DeviceChoice::Fake(seed + 100)];
        let source = producer.allocate_on_device(options(1), devices[0], ROUNDS * BYTES).unwrap();
        let shared = producer.allocate_on_device(options(2), devices[0], BYTES + 64).unwrap();
        let target = consumer.allocate_on_device(options(1), devices[1], ROUNDS * BYTES).unwrap();
        let data: Vec<u64> = (0..ROUNDS * BYTES / 8).map(|at| at * 7 + seed).collect();
        source.write(0, &data).unwrap();
        let view = consumer.map_peer(shared.address(0), BOUND).unwrap();
        let [from, to] = [&source, &target].map(|region| region.device_address().unwrap());
        let own = shared.device_address().unwrap();
        let (produces, consumes) = (stream(&producer), stream(&consumer));
        let (ready, finished) = (shared.stream_event(READY).unwrap(), shared.stream_event(FINISHED).unwrap());
        let (is_ready, has_finished) =
            (view.stream_event(READY).unwrap(), view.stream_event(FINISHED).unwrap());
        let access = view.kernel_access().unwrap();
        for round in 0..ROUNDS {
            finished.wait(produces, round).unwrap();
            copy(&producer, produces, own, from + round * BYTES);
            ready.record(produces, round + 1).unwrap();
            is_ready.wait(consumes, round + 1).unwrap();
            copy(&consumer, consumes, to + round * BYTES, access.address());
            has_finished.record(consumes, round + 1).unwrap();
        }
        // A fake device works only while it is used, so both are queried.
        let events = [(&producer, produces), (&consumer, consumes)].map(|(node, stream)| {
            let event = node.with_device(|device| {
                let event = device.event().unwrap();
                device.record(event, stream).unwrap();
                event
            });
            (node, event.unwrap())
        });
        let is_done = |(node, event): &(&Node, _)| node.with_device(|device| device.is_done(*event).unwrap());
        let begun = Instant::now();
        while events.each_ref().map(is_done) != [Some(true); 2] {
            assert!(begun.elapsed() < BOUND, "seed {seed}: a stream waits");
        }
        let mut found = vec![0_u64; data.len()];
        target.read(0, &mut found).unwrap();
        assert!(found == data, "seed {seed}: a round was read too early, or overwritten too early");
    }
}

#[test]
fn an_event_keeps_the_memory_of_a_pool_from_being_reused() {
    let [owner, peer] = pair();
    let device = DeviceChoice::Fake(1);
    let _device = peer.allocate_on_device(options(9), device, 64).unwrap();
    let pool = owner.default_pool(Some(device)).unwrap();
    let policies = rackloom::pool::ReusePolicies::NONE.follow_event_dependencies(true);
    pool.set_reuse_policies(policies);
    let region = pool.allocate(options(1), 64, "shared").unwrap();
    let address = region.device_address();
    let view = peer.map_peer(region.address(0), BOUND).unwrap();
    let event = view.stream_event(8).unwrap();
    drop(region);
    assert_ne!(pool.allocate(options(2), 64, "next").unwrap().device_address(), address);
    drop(event);
    let begun = Instant::now();
    while pool.allocate(options(2), 64, "next").unwrap().device_address() != address {
        assert!(begun.elapsed() < BOUND);
    }
    let revoked = view.stream_event(8).unwrap_err();
    assert!(matches!(revoked, Error::Refused { reason: OperationError::Revoked, .. }), "{revoked}");
}

#[test]
fn an_event_is_an_aligned_word_on_a_device_with_the_rights_of_the_region() {
    let [owner, peer] = pair();
    let device = DeviceChoice::Fake(1);
    let _device = peer.allocate_on_device(options(9), device, 64).unwrap();
    let region = owner.allocate_on_device(options(1).access(Access::READ), device, 64).unwrap();
    let on_host = owner.allocate(options(2), 64).unwrap();
    assert!(matches!(on_host.stream_event(0), Err(Error::Invalid(Invalid::NotOnDevice))));
    for offset in [4, 64] {
        assert!(matches!(region.stream_event(offset), Err(Error::Invalid(_))), "{offset}");
    }
    let view = peer.map_peer(region.address(0), BOUND).unwrap();
    let reason = |error: Error| match error {
        Error::Refused { reason, .. } => reason,
        other => panic!("{other}"),
    };
    assert_eq!(reason(view.stream_event(4).unwrap_err()), OperationError::Misaligned);
    assert_eq!(reason(view.stream_event(64).unwrap_err()), OperationError::OutOfBounds);
    let event = view.stream_event(0).unwrap();
    let own = stream(&peer);
    event.wait(own, 0).unwrap();
    assert_eq!(reason(event.record(own, 1).unwrap_err()), OperationError::PermissionDenied);
    let pages = peer.map_peer(on_host.address(0), BOUND).unwrap();
    assert!(matches!(pages.kernel_access(), Err(Error::Invalid(Invalid::NotOnDevice))));
    assert!(matches!(pages.stream_event(0), Err(Error::Invalid(Invalid::NotOnDevice))));
}
