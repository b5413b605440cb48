//! Tests of a pool in the regions of a node: peers reach its blocks, it grows and shrinks, and blocks of another pool are refused.

use std::sync::{Arc, Mutex};

use rackloom::fabric::{Error, Fabric, Plan, RegionOptions};
use rackloom::pool::{BlockRequest, PoolError};
use rackloom_protocol::Tenant;

const BYTES: u64 = 4096;

fn fabric() -> Fabric {
    let plan = Plan::parse("name: pair\nshape: {ring: {nodes: 2}}\n", "test").unwrap();
    Fabric::local(&plan).unwrap()
}

fn wanted(bytes: u64) -> BlockRequest<'static> {
    BlockRequest::new(Tenant(1), bytes, "test")
}

#[test]
fn peers_reach_each_block_and_nothing_else_of_the_pool_changes() {
    let fabric = fabric();
    let [first, second] = fabric.nodes() else { unreachable!() };
    let mut pool = second.pool(RegionOptions::new(1, 9), BYTES).unwrap();
    let blocks: Vec<_> = (0..4).map(|_| pool.allocate(wanted(100)).unwrap()).collect();
    for (number, block) in (1..).zip(&blocks) {
        first.store(pool.address(block, 0).unwrap(), &[number; 100]).wait().unwrap();
    }
    for (number, block) in (1..).zip(&blocks) {
        let mut found = [0_u8; 128];
        pool.region(block).unwrap().read(block.offset, &mut found).unwrap();
        assert_eq!(found[..100], [number; 100]);
        assert_eq!(found[100..], [0; 28], "the rest of the block's cache lines");
    }
    // A block is the source of a transfer, too.
    let back = first.allocate(RegionOptions::new(1, 3), 100).unwrap();
    second.put(&pool.slice(&blocks[2]).unwrap(), back.address(0)).wait().unwrap();
    let mut found = [0_u8; 100];
    back.read(0, &mut found).unwrap();
    assert_eq!(found, [3; 100]);
}

#[test]
fn a_pool_grows_by_regions_that_peers_reach_and_gives_them_back() {
    let fabric = fabric();
    let [first, second] = fabric.nodes() else { unreachable!() };
    let mut pool = second.pool(RegionOptions::new(5, 9), BYTES).unwrap().growing(BYTES, 2 * BYTES);
    let kept = pool.allocate(wanted(BYTES)).unwrap();
    let added = pool.allocate(wanted(BYTES)).unwrap();
    assert_eq!((kept.region.0, added.region.0), (5, 6));
    let address = pool.address(&added, 8).unwrap();
    first.store(address, &[1; 8]).wait().unwrap();
    assert!(matches!(pool.allocate(wanted(1)), Err(PoolError::NoSpace { .. })));
    pool.free(added).unwrap();
    assert_eq!(pool.trim(0), BYTES);
    assert!(pool.address(&added, 0).is_none(), "its region is gone");
    assert!(matches!(first.store(address, &[1; 8]).wait(), Err(Error::Refused { .. })));
    first.store(pool.address(&kept, 0).unwrap(), &[1; 8]).wait().unwrap();
}

#[test]
fn a_number_in_use_is_refused_and_leaks_are_reported() {
    let fabric = fabric();
    let node = &fabric.nodes()[0];
    let _region = node.allocate(RegionOptions::new(1, 9), 64).unwrap();
    let refused = node.pool(RegionOptions::new(1, 9), BYTES).unwrap_err();
    assert!(refused.to_string().contains("registered already"), "{refused}");
    let mut pool = node.pool(RegionOptions::new(2, 9), BYTES).unwrap();
    let seen = Arc::new(Mutex::new(None));
    let report = Arc::clone(&seen);
    pool.on_leak(move |leaks| *report.lock().unwrap() = Some(leaks.clone()));
    pool.allocate(wanted(10)).unwrap();
    drop(pool);
    let leaks = seen.lock().unwrap().take().expect("a report");
    assert_eq!((leaks.leaks.len(), leaks.leaks[0].bytes), (1, 10));
}
