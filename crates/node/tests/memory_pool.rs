//! Pools of a node: which memory is handed out again, what is released, and what others still have open.
//!
//! Each test runs on the host, and on a fake device.

use std::thread;
use std::time::{Duration, Instant};

use rackloom::fabric::*;
use rackloom::pool::{REUSE_WAIT_MS, ReusePolicies};

const KEY: u64 = 0x5eed;
const PAGE: u64 = 4096;
/// Longer than any step takes, shorter than a hang.
const BOUND: Duration = Duration::from_secs(20);

fn options(region: u32) -> RegionOptions {
    RegionOptions::new(region, KEY)
}

/// Starts a rack of two nodes in one server.
fn pair() -> [Node; 2] {
    let text = "name: pair\nshape: {ring: {nodes: 2}}\nservers: {box: [n0, n1]}\n";
    Fabric::local(&Plan::parse(text, "test").unwrap()).unwrap().into_nodes().try_into().unwrap()
}

fn places() -> Vec<Option<DeviceChoice>> {
    let mut places = vec![None];
    if cfg!(feature = "gpu") {
        places.push(Some(DeviceChoice::Fake(3)));
    }
    places
}

/// Returns the address of a region, on its device or in this process.
fn start(region: &Region) -> u64 {
    let host = region.host_address().map(|address| address.as_ptr().addr() as u64);
    region.device_address().or(host).unwrap()
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < BOUND, "{what}");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn memory_is_kept_up_to_the_threshold_and_handed_out_again() {
    for place in places() {
        let [node, _] = pair();
        let pool = node.new_pool(place).unwrap();
        assert_eq!((pool.device(), pool.release_threshold()), (place, 0));
        let first = pool.allocate(options(1), 10_000, "first").unwrap();
        assert_eq!((first.len(), first.get::<u64>(9992).unwrap()), (10_000, 0), "new memory is zeroed");
        first.write(0, &[7_u64; 1250]).unwrap();
        let address = start(&first);
        drop(first);
        assert_eq!(pool.statistics().reserved.current, 0, "nothing unused is kept by default");

        pool.set_release_threshold(6 * PAGE);
        let first = pool.allocate(options(1), 10_000, "first").unwrap();
        let address_again = start(&first);
        assert!(
            place.is_none() || address_again != address,
            "a fake device gives every allocation its own address"
        );
        drop(first);
        let second = pool.allocate(options(2), 9000, "second").unwrap();
        assert_eq!(start(&second), address_again);
        assert!(matches!(second.write(8996, &[0_u64]), Err(Error::Invalid(_))), "the region is shorter");
        let third = pool.allocate(options(3), 4 * PAGE, "third").unwrap();
        let counts = pool.statistics();
        assert_eq!((counts.reserved.current, counts.used.current, counts.blocks), (7 * PAGE, 7 * PAGE, 2));
        drop(second);
        let counts = pool.statistics();
        assert_eq!(
            (counts.reserved.current, counts.used.current),
            (4 * PAGE, 4 * PAGE),
            "above the threshold"
        );
        drop(third);
        let counts = pool.statistics();
        assert_eq!((counts.reserved.current, counts.used.current, counts.blocks), (4 * PAGE, 0, 0));
        assert_eq!((counts.reserved.high, counts.used.high), (7 * PAGE, 7 * PAGE));
        assert_eq!((counts.allocations, counts.frees), (4, 4));
        assert_eq!((pool.trim(4 * PAGE), pool.trim(0)), (0, 4 * PAGE));
        pool.reset_high();
        let counts = pool.statistics();
        assert_eq!((counts.reserved.high, counts.used.high), (0, 0));
    }
}

#[test]
fn a_node_has_a_default_and_a_current_pool_for_each_place() {
    let nodes = pair();
    let node = &nodes[0];
    for place in places() {
        let region = node.default_pool(place).unwrap().allocate(options(1), 1, "one").unwrap();
        let used = |pool: MemoryPool| pool.statistics().used.current;
        assert_eq!(used(node.default_pool(place).unwrap()), PAGE);
        assert_eq!(used(node.current_pool(place).unwrap()), PAGE, "the default pool is current");
        let own = node.new_pool(place).unwrap();
        assert_eq!(used(own.clone()), 0);
        node.set_current_pool(&own).unwrap();
        drop(own);
        let second = node.current_pool(place).unwrap().allocate(options(2), 2 * PAGE, "two").unwrap();
        assert_eq!(used(node.current_pool(place).unwrap()), 2 * PAGE);
        assert_eq!(used(node.default_pool(place).unwrap()), PAGE);
        let error = nodes[1].set_current_pool(&node.current_pool(place).unwrap()).unwrap_err();
        assert!(matches!(error, Error::Invalid(Invalid::OtherNode)), "{error}");
        drop((region, second));
    }
    let pool = node.default_pool(None).unwrap();
    let first = pool.allocate(options(5), 64, "first").unwrap();
    assert!(matches!(pool.allocate(options(5), 64, "second"), Err(Error::RegionExists(_))));
    drop(first);
    assert_eq!(pool.statistics().used.current, 0, "a refused allocation gives its memory back");
    node.leave();
    assert!(matches!(node.default_pool(None), Err(Error::Closed)));
    assert!(matches!(pool.allocate(options(6), 64, "late"), Err(Error::Closed)));
}

/// Region of a pool whose policies are tested, a view of it at the peer, and its address.
fn opened(
    node: &Node,
    peer: &Node,
    place: Option<DeviceChoice>,
    policies: ReusePolicies,
) -> (MemoryPool, PeerRegion, u64) {
    let pool = node.new_pool(place).unwrap();
    pool.set_release_threshold(u64::MAX);
    pool.set_reuse_policies(policies);
    assert_eq!(pool.reuse_policies(), policies);
    let region = pool.allocate(options(1), 64, "opened").unwrap();
    let view = peer.map_peer(region.address(0), BOUND).unwrap();
    view.write(0, &[5_u64]).unwrap();
    assert_eq!(region.get::<u64>(0).unwrap(), 5);
    (pool, view, start(&region))
}

/// Returns `true` if the next allocation uses the memory at `address`.
fn reuses(pool: &MemoryPool, address: u64) -> bool {
    let region = pool.allocate(options(2), 64, "next").unwrap();
    start(&region) == address
}

#[test]
fn memory_that_a_peer_has_open_is_reused_as_the_policies_say() {
    let none = ReusePolicies::NONE;
    let follow = none.follow_event_dependencies(true);
    for place in places() {
        let [node, peer] = pair();
        let _device = place.map(|place| peer.allocate_on_device(options(9), place, 64).unwrap());

        // A peer that is in no access keeps the memory open, and cannot use it any more.
        let (pool, view, address) = opened(&node, &peer, place, follow);
        let region = pool.allocate(options(2), 64, "next").unwrap();
        assert_eq!(start(&region), address);
        region.write(0, &[6_u64]).unwrap();
        let refused = view.write(0, &[7_u64]).unwrap_err();
        assert!(matches!(refused, Error::Refused { reason: OperationError::Revoked, .. }), "{refused}");
        assert_eq!(region.get::<u64>(0).unwrap(), 6);
        // The second use of the memory can be opened beside the first one.
        let second = peer.map_peer(region.address(0), BOUND).unwrap();
        assert_eq!(second.get::<u64>(0).unwrap(), 6);
        assert_eq!(pool.trim(0), 0, "it is in use");
        drop(region);
        assert_eq!(pool.trim(0), 0, "peers have it open");
        drop((view, second));
        until("it is not released", || pool.trim(0) == PAGE);

        // During an access it is not reused.
        let pool = node.new_pool(place).unwrap();
        pool.set_release_threshold(u64::MAX);
        pool.set_reuse_policies(follow);
        let region = pool.allocate(options(1), 64, "opened").unwrap();
        let (view, address) = (peer.map_peer(region.address(0), BOUND).unwrap(), start(&region));
        let inside = view.enter().unwrap();
        drop(region);
        assert!(!reuses(&pool, address));
        drop(inside);
        assert!(reuses(&pool, address));

        // While it is open it is not reused.
        let (pool, view, address) = opened(&node, &peer, place, none.opportunistic(true));
        assert!(!reuses(&pool, address));
        drop(view);
        until("it is not reused", || reuses(&pool, address));

        let (pool, view, address) = opened(&node, &peer, place, none);
        drop(view);
        assert!(!reuses(&pool, address));
        until("it is not released", || pool.trim(0) >= PAGE && pool.statistics().reserved.current == 0);
    }
}

#[test]
fn an_allocation_waits_for_a_peer_if_the_policies_say_so() {
    for place in places() {
        let [node, peer] = pair();
        let _device = place.map(|place| peer.allocate_on_device(options(9), place, 64).unwrap());
        let policies = ReusePolicies::NONE.internal_dependencies(true);
        let (pool, view, address) = opened(&node, &peer, place, policies);
        let begun = Instant::now();
        assert!(!reuses(&pool, address), "the peer keeps it, so more is reserved in the end");
        assert!(begun.elapsed() >= Duration::from_millis(REUSE_WAIT_MS));
        thread::scope(|scope| {
            scope.spawn(move || drop(view));
            // The other piece is free at once, so an allocation needs both.
            let both = || {
                let regions = [2, 3].map(|region| pool.allocate(options(region), 64, "next").unwrap());
                regions.iter().any(|region| start(region) == address)
            };
            until("it is not reused", both);
        });
    }
}

#[test]
fn peers_use_regions_of_a_pool_as_any_other_region() {
    for place in places() {
        let [node, peer] = pair();
        let mine = peer.allocate(options(1), 4096).unwrap();
        let _device = place.map(|place| peer.allocate_on_device(options(9), place, 64).unwrap());
        let pool = node.default_pool(place).unwrap();
        for round in 0..3_u64 {
            let region = pool.allocate(options(1), 4096, "shared").unwrap();
            mine.write(0, &[round; 512]).unwrap();
            let begun = Instant::now();
            let before = peer.counters().direct_operations;
            while peer.counters().direct_operations == before {
                peer.put(&mine.slice(..), region.address(0)).wait().unwrap();
                assert!(begun.elapsed() < BOUND, "it is not mapped");
            }
            let mut found = vec![0_u64; 512];
            region.read(0, &mut found).unwrap();
            assert!(found.iter().all(|word| *word == round));
            let at = region.address(8);
            drop(region);
            assert!(matches!(peer.store(at, &[1]).wait(), Err(Error::Refused { .. })));
        }
    }
}

#[test]
fn an_address_has_the_attributes_of_its_allocation() {
    for place in places() {
        let [node, peer] = pair();
        let pool = node.default_pool(place).unwrap();
        let pooled = pool.allocate(options(3), 5000, "pooled").unwrap();
        let found = node.pointer_attributes(start(&pooled) + 4999).expect("the last byte");
        assert_eq!((found.region, found.offset, found.length), (RegionId(3), 4999, 5000));
        assert_eq!((found.reserved_bytes, found.device, found.is_pooled), (2 * PAGE, place, true));
        assert_eq!(
            node.pointer_attributes(start(&pooled) + 5000),
            None,
            "the rest of the page is no part of it"
        );
        assert_eq!(peer.pointer_attributes(start(&pooled)), None, "it belongs to another node");
        let plain = node.allocate(options(4), 100).unwrap();
        let found = node.pointer_attributes(start(&plain) + 1).expect("within");
        assert_eq!((found.region, found.device, found.is_pooled), (RegionId(4), None, false));
        let address = start(&plain);
        drop(plain);
        assert_eq!(node.pointer_attributes(address), None);
    }
}

#[test]
fn a_handle_opens_an_allocation_at_another_node() {
    for place in places() {
        let [node, peer] = pair();
        let _device = place.map(|place| peer.allocate_on_device(options(9), place, 64).unwrap());
        let region = node.default_pool(place).unwrap().allocate(options(3), 100, "exported").unwrap();
        let handle = region.export();
        assert_eq!(handle.address_and_length().unwrap(), (region.address(0), 100));
        let view = peer.import(&handle, BOUND).unwrap();
        view.write(92, &[9_u64]).unwrap();
        assert_eq!((region.get::<u64>(92).unwrap(), view.len()), (9, 100));
        let mut other = handle;
        other.0[0] ^= 1;
        let error = peer.import(&other, BOUND).unwrap_err();
        assert!(matches!(error, Error::Invalid(Invalid::RegionHandle)), "{error}");
        let mut wrong_key = handle;
        wrong_key.0[16] ^= 1;
        assert!(matches!(peer.import(&wrong_key, BOUND), Err(Error::NotMapped { .. })));
        drop((region, view));
        assert!(matches!(peer.import(&handle, BOUND), Err(Error::NotMapped { .. })));
    }
}

#[test]
fn a_node_that_leaves_reports_regions_that_were_not_dropped() {
    use std::sync::mpsc::channel;
    for place in places() {
        let [node, other] = pair();
        let (sender, reports) = channel();
        for node in [&node, &other] {
            let sender = sender.clone();
            node.on_leak(move |report| sender.send(report.clone()).unwrap());
        }
        let pool = node.default_pool(place).unwrap();
        drop(pool.allocate(options(1), 64, "dropped").unwrap());
        let kept = pool.allocate(options(2), 100, "activations").unwrap();
        let plain = node.allocate(options(5), 30).unwrap();
        let lines = |report: &rackloom::pool::LeakReport| -> Vec<_> {
            report.leaks.iter().map(|leak| (leak.region.0, leak.bytes, leak.tag.clone())).collect()
        };
        let expected = vec![(2, 100, "activations".to_owned()), (5, 30, String::new())];
        assert_eq!(lines(&node.allocations()), expected);
        drop((node, pool));
        assert_eq!(lines(&reports.try_recv().unwrap()), expected);
        drop((kept, plain, other));
        assert!(reports.try_recv().is_err(), "the other node has nothing to report");
    }
}

#[test]
fn the_rack_file_sets_up_the_default_pools() {
    let text = "name: pair\nshape: {ring: {nodes: 2}}\nnodes: {n1: {memory: {bytes: 1MiB, \
                pool_release_threshold: 64KiB, pool_reuse: opportunistic}}}\n";
    let fabric = Fabric::local(&Plan::parse(text, "test").unwrap()).unwrap();
    let [plain, set_up] = fabric.nodes() else { unreachable!() };
    for place in places() {
        let pool = plain.default_pool(place).unwrap();
        assert_eq!((pool.release_threshold(), pool.reuse_policies()), (0, ReusePolicies::ALL));
        let pool = set_up.default_pool(place).unwrap();
        let policies = ReusePolicies::NONE.opportunistic(true);
        assert_eq!((pool.release_threshold(), pool.reuse_policies()), (64 << 10, policies));
        let pool = set_up.new_pool(place).unwrap();
        assert_eq!((pool.release_threshold(), pool.reuse_policies()), (0, ReusePolicies::ALL));
    }
}

#[test]
fn rights_of_one_node_replace_those_of_a_region_and_of_a_pool() {
    let text = "name: three\nshape: {full-mesh: {nodes: 3}}\nservers: {box: [n0, n1, n2]}\n";
    let denied = |result: Result<(), Error>| {
        let error = result.unwrap_err();
        assert!(matches!(error, Error::Refused { reason: OperationError::PermissionDenied, .. }), "{error}");
    };
    for place in places() {
        let fabric = Fabric::local(&Plan::parse(text, "test").unwrap()).unwrap();
        let [owner, first, second]: [Node; 3] = fabric.into_nodes().try_into().unwrap();
        let _devices =
            [&first, &second].map(|node| place.map(|place| node.allocate_on_device(options(9), place, 64)));
        let into = first.allocate(options(1), 64).unwrap();
        let pool = owner.new_pool(place).unwrap();
        let region = pool.allocate(options(1), 64, "shared").unwrap();
        let view = second.map_peer(region.address(0), BOUND).unwrap();
        let store = |node: &Node, region: &Region| node.store(region.address(0), &[1; 8]).wait();
        let load = || first.load(region.address(0), &into.slice(0..8)).wait();
        let direct = |act: &dyn Fn()| {
            let before = first.counters().direct_operations;
            until("it is not mapped", || {
                act();
                first.counters().direct_operations > before
            });
        };
        direct(&|| store(&first, &region).unwrap());

        assert_eq!(pool.access(first.id()), None);
        pool.set_access(first.id(), Some(Access::READ)).unwrap();
        assert_eq!(pool.access(first.id()), Some(Access::READ));
        assert_eq!(region.peer_access(first.id()).unwrap(), Access::READ);
        assert_eq!(region.peer_access(second.id()).unwrap(), Access::ALL);
        denied(store(&first, &region));
        direct(&|| load().unwrap());
        denied(store(&first, &region));
        store(&second, &region).unwrap();
        let revoked = view.write(0, &[1_u64]).unwrap_err();
        assert!(matches!(revoked, Error::Refused { reason: OperationError::Revoked, .. }), "{revoked}");
        second.map_peer(region.address(0), BOUND).unwrap().write(0, &[1_u64]).unwrap();
        let later = pool.allocate(options(2), 64, "later").unwrap();
        denied(store(&first, &later));
        store(&second, &later).unwrap();

        region.set_peer_access(first.id(), Some(Access::NONE)).unwrap();
        denied(load());
        let error = first.map_peer(region.address(0), BOUND).unwrap_err();
        assert!(error.to_string().contains("no access"), "{error}");
        pool.set_access(first.id(), None).unwrap();
        assert_eq!((pool.access(first.id()), region.peer_access(first.id()).unwrap()), (None, Access::ALL));
        for region in [&region, &later] {
            store(&first, region).unwrap();
        }
        // Rights end with their region.
        region.set_peer_access(first.id(), Some(Access::NONE)).unwrap();
        drop(region);
        let again = owner.allocate(options(1), 64).unwrap();
        store(&first, &again).unwrap();
        assert!(matches!(pool.set_access(NodeId(7), None), Err(Error::NoSuchNode(NodeId(7)))));
        assert!(matches!(again.set_peer_access(NodeId(7), None), Err(Error::NoSuchNode(NodeId(7)))));
    }
}
