//! Tests of a pool against a model, and of its limits, counters and leak reports.

use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use rackloom::HostMemory;
use rackloom::pool::{
    Block, BlockRequest, GRANULE_BYTES, Pool, PoolError, PoolOptions, QuotaExceeded, Usage,
};
use rackloom_protocol::{JobMemory, Memory, RegionId, Tenant};

const FIRST: RegionId = RegionId(10);
const BYTES: u64 = 64 << 10;

fn wanted(bytes: u64) -> BlockRequest<'static> {
    BlockRequest::new(Tenant(1), bytes, "test")
}

fn growing(reserved_bytes_max: u64) -> PoolOptions {
    PoolOptions::fixed(FIRST).growing(BYTES, reserved_bytes_max)
}

fn pool(options: PoolOptions) -> (HostMemory, Pool) {
    let mut memory = HostMemory::default();
    let pool = Pool::new(&mut memory, BYTES, options).unwrap();
    (memory, pool)
}

fn fill(memory: &mut HostMemory, block: Block, byte: u8) {
    memory.write(block.region, block.offset, &vec![byte; block.bytes as usize]).unwrap();
}

fn is_filled(memory: &mut HostMemory, block: Block, byte: u8) -> bool {
    let mut bytes = vec![!byte; block.bytes as usize];
    memory.read(block.region, block.offset, &mut bytes).unwrap();
    bytes.into_iter().all(|found| found == byte)
}

proptest! {
    /// Blocks keep their contents until they are freed, whichever other blocks are allocated and freed. The counters are the sums over the allocated
    /// blocks. When every block is freed, the free space is one part again.
    #[test]
    fn blocks_keep_their_bytes_and_freed_space_is_merged(
        steps in prop::collection::vec((0_u8..10, 0_u64..9000, 0_u32..13, 1_u16..4, any::<usize>()), 1..120),
    ) {
        let quota = 40 << 10;
        let (mut memory, mut pool) = pool(growing(3 * BYTES));
        pool.set_quota(Tenant(3), Some(quota));
        let mut alive: Vec<(Block, Tenant, u8)> = Vec::new();
        let taken = |bytes: u64| bytes.max(1).div_ceil(GRANULE_BYTES) * GRANULE_BYTES;
        let mut high = 0;
        for (number, (kind, bytes, align, tenant, which)) in steps.into_iter().enumerate() {
            let tenant = Tenant(tenant);
            let held = |alive: &[(Block, Tenant, u8)], tenant: Option<Tenant>| -> u64 {
                alive
                    .iter()
                    .filter(|(_, owner, _)| tenant.is_none_or(|tenant| tenant == *owner))
                    .map(|(block, ..)| taken(block.bytes))
                    .sum()
            };
            if kind < 6 {
                let align = 1 << align;
                match pool.allocate(&mut memory, BlockRequest::new(tenant, bytes, "model").align(align)) {
                    Ok(block) => {
                        prop_assert_eq!(block.offset % align, 0);
                        fill(&mut memory, block, number as u8);
                        alive.push((block, tenant, number as u8));
                    }
                    Err(PoolError::Quota(QuotaExceeded { requested, used, limit, .. })) => {
                        prop_assert_eq!((tenant, requested, limit), (Tenant(3), taken(bytes), quota));
                        prop_assert_eq!(used, held(&alive, Some(tenant)));
                        prop_assert!(used + requested > quota);
                    }
                    Err(PoolError::NoSpace { largest, .. }) => {
                        prop_assert!(largest < taken(bytes) + align);
                        prop_assert!(held(&alive, None) + taken(bytes) > BYTES, "an empty region would do");
                    }
                    Err(other) => return Err(TestCaseError::fail(other.to_string())),
                }
            } else if kind < 9 && !alive.is_empty() {
                let (block, _, byte) = alive.swap_remove(which % alive.len());
                prop_assert!(is_filled(&mut memory, block, byte));
                pool.free(block).unwrap();
                prop_assert!(pool.free(block).is_err());
            } else {
                pool.trim(&mut memory, 0);
            }
            high = high.max(held(&alive, None));
            let statistics = pool.statistics();
            prop_assert_eq!(statistics.used, Usage { current: held(&alive, None), high });
            prop_assert_eq!(statistics.blocks, alive.len());
            let reserved: u64 = pool.regions().map(|region| memory.length(region).unwrap()).sum();
            prop_assert_eq!(statistics.reserved.current, reserved);
            prop_assert!(statistics.reserved.high <= 3 * BYTES);
            prop_assert!(held(&alive, Some(Tenant(3))) <= quota);
            prop_assert_eq!(pool.usage(tenant).current, held(&alive, Some(tenant)));
        }
        for (block, _, byte) in alive {
            prop_assert!(is_filled(&mut memory, block, byte));
            pool.free(block).unwrap();
        }
        prop_assert!(pool.leaks().is_clean());
        let reserved = pool.statistics().reserved.current;
        prop_assert_eq!(pool.trim(&mut memory, 0), reserved, "every region is whole and goes back");
        prop_assert_eq!(pool.regions().count(), 0);
    }
}

#[test]
fn a_quota_error_has_the_requested_used_and_allowed_bytes() {
    let (mut memory, mut pool) = pool(PoolOptions::fixed(FIRST));
    pool.set_quota(Tenant(1), Some(1024));
    let first = pool.allocate(&mut memory, wanted(1000)).unwrap();
    let refused = pool.allocate(&mut memory, wanted(1)).unwrap_err();
    let quota = QuotaExceeded { tenant: Tenant(1), requested: 64, used: 1024, limit: 1024 };
    assert!(matches!(refused, PoolError::Quota(found) if found == quota), "{refused}");
    pool.allocate(&mut memory, BlockRequest::new(Tenant(2), 2000, "test")).unwrap();
    assert!(pool.allocate(&mut memory, wanted(u64::MAX)).is_err());
    pool.free(first).unwrap();
    pool.allocate(&mut memory, wanted(1024)).unwrap();
    pool.set_quota(Tenant(1), None);
    pool.allocate(&mut memory, wanted(1024)).unwrap();
}

#[test]
fn a_full_pool_is_an_error_and_a_growing_pool_stops_at_its_limit() {
    let (mut memory, mut fixed) = pool(PoolOptions::fixed(FIRST));
    fixed.allocate(&mut memory, wanted(BYTES - 128)).unwrap();
    let refused = fixed.allocate(&mut memory, wanted(129)).unwrap_err();
    assert!(
        matches!(refused, PoolError::NoSpace { requested: 192, largest: 128, reserved: BYTES, .. }),
        "{refused}"
    );
    fixed.allocate(&mut memory, wanted(128)).unwrap();
    for align in [0, 3, 8192] {
        let misaligned = fixed.allocate(&mut memory, wanted(1).align(align));
        assert!(matches!(misaligned, Err(PoolError::BadAlignment(found)) if found == align));
    }

    let (mut memory, mut growing) = pool(growing(2 * BYTES + 1000));
    let large = growing.allocate(&mut memory, wanted(BYTES + 1)).unwrap();
    assert_eq!(large.region, RegionId(FIRST.0 + 1), "a separate region");
    assert!(matches!(growing.allocate(&mut memory, wanted(BYTES + 1)), Err(PoolError::NoSpace { .. })));
    let reserved = growing.statistics().reserved;
    growing.free(large).unwrap();
    assert_eq!(growing.trim(&mut memory, BYTES), BYTES + 64);
    assert_eq!(memory.length(large.region), None);
    assert_eq!(growing.statistics().reserved, Usage { current: BYTES, high: reserved.current });
    growing.reset_high();
    assert_eq!(growing.statistics().reserved, Usage { current: BYTES, high: BYTES });
}

#[test]
fn a_limit_below_the_reserved_bytes_ends_growth() {
    let (mut memory, mut pool) = pool(PoolOptions::fixed(FIRST));
    pool.set_growth(BYTES, BYTES / 2);
    pool.allocate(&mut memory, wanted(BYTES)).unwrap();
    let refused = pool.allocate(&mut memory, wanted(1)).unwrap_err();
    assert!(matches!(refused, PoolError::NoSpace { requested: 64, reserved: BYTES, .. }), "{refused}");
}

#[test]
fn a_block_is_found_by_its_serial_number_while_it_is_allocated() {
    let (mut memory, mut pool) = pool(PoolOptions::fixed(FIRST));
    let old = pool.allocate(&mut memory, wanted(10)).unwrap();
    assert_eq!(pool.find(old.region, old.offset, old.serial()), Some(old));
    assert_eq!(pool.find(old.region, old.offset, old.serial() + 1), None);
    assert_eq!(pool.find(old.region, old.offset + 1, old.serial()), None);
    pool.free(old).unwrap();
    let new = pool.allocate(&mut memory, wanted(20)).unwrap();
    assert_eq!(pool.find(old.region, old.offset, old.serial()), None);
    assert_eq!(pool.find(new.region, new.offset, new.serial()), Some(new));
}

#[test]
fn a_block_is_freed_once_and_only_by_its_own_handle() {
    let (mut memory, mut pool) = pool(PoolOptions::fixed(FIRST));
    let old = pool.allocate(&mut memory, wanted(10)).unwrap();
    pool.free(old).unwrap();
    let new = pool.allocate(&mut memory, wanted(10)).unwrap();
    assert_eq!((old.region, old.offset), (new.region, new.offset));
    assert!(matches!(pool.free(old), Err(PoolError::NotAllocated { .. })), "an old handle of this range");
    pool.free(new).unwrap();
}

#[test]
fn blocks_that_are_not_freed_are_reported_with_size_and_tag() {
    let (mut memory, mut pool) = pool(PoolOptions::fixed(FIRST));
    let reported = Arc::new(Mutex::new(Vec::new()));
    let listener = Arc::clone(&reported);
    pool.on_leak(move |report| listener.lock().unwrap().push(report.to_string()));
    let freed = pool.allocate(&mut memory, wanted(100)).unwrap();
    pool.allocate(&mut memory, BlockRequest::new(Tenant(2), 1000, "gradients")).unwrap();
    pool.allocate(&mut memory, BlockRequest::new(Tenant(1), 7, "weights")).unwrap();
    pool.free(freed).unwrap();
    assert_eq!(pool.leaks().bytes(), 1007);
    drop(pool);
    let expected = "2 allocations with 1007 bytes leaked\
        \n  region10 + 0x80: 1000 bytes of tenant2, gradients\
        \n  region10 + 0x480: 7 bytes of tenant1, weights";
    assert_eq!(*reported.lock().unwrap(), [expected]);
}
