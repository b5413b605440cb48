//! Tests of a memory against a model of plain vectors, and of its bounds, region numbers and limits.

use proptest::prelude::*;
use rackloom_protocol::memory::vector::VectorMemory;
use rackloom_protocol::{Atomic, AtomicKind, LeaseId, MemoryToken, Tenant, Width};

use super::*;

const REGION: RegionId = RegionId(7);
const LENGTH: u64 = 5000;

#[derive(Clone, Debug)]
enum Step {
    Write(Vec<(u8, u64)>),
    Read { offset: u64, length: u32 },
    Atomic { offset: u64, atomic: Atomic },
}

fn step() -> impl Strategy<Value = Step> {
    let range = (any::<u8>(), 0..LENGTH + 100);
    let kind = prop_oneof![
        Just(AtomicKind::FetchAdd),
        Just(AtomicKind::CompareSwap),
        Just(AtomicKind::Swap),
        Just(AtomicKind::Set)
    ];
    let width = prop_oneof![Just(Width::Four), Just(Width::Eight)];
    let atomic = (kind, width, any::<u64>(), 0..3_u64, 0..LENGTH / 8 + 10);
    prop_oneof![
        prop::collection::vec(range, 1..4).prop_map(Step::Write),
        (0..LENGTH + 100, 0..257_u32).prop_map(|(offset, length)| Step::Read { offset, length }),
        atomic.prop_map(|(kind, width, operand, compare, word)| {
            let offset = word * width.bytes();
            Step::Atomic { offset, atomic: Atomic { kind, width, operand, compare } }
        }),
    ]
}

proptest! {
    /// Mapped memory answers every request as the memory of plain vectors does, faults included.
    #[test]
    fn host_memory_is_a_vector_of_bytes(steps in prop::collection::vec(step(), 1..60)) {
        let frame: Vec<u8> = (0..255).collect();
        let mut host = HostMemory::default();
        let mut model = VectorMemory::default();
        host.allocate(REGION, LENGTH).unwrap();
        model.add(REGION, LENGTH as usize);
        for step in steps {
            let mut ranges = Vec::new();
            let access = match step {
                Step::Write(parts) => {
                    ranges.extend(parts.into_iter().map(|(length, region_offset)| FrameRange {
                        frame_offset: u32::from(255 - length),
                        length: u32::from(length),
                        region_offset,
                    }));
                    MemoryAccess::Write { lease: LeaseId(0), ranges: &ranges }
                }
                Step::Read { offset, length } => MemoryAccess::Read { offset, length: length.min(256) },
                Step::Atomic { offset, atomic } => MemoryAccess::Atomic { offset, atomic },
            };
            let request = MemoryRequest { token: MemoryToken(1), region: REGION, access };
            prop_assert_eq!(host.execute(&request, &frame), model.execute(&request, &frame));
        }
        let mut bytes = vec![0; LENGTH as usize];
        host.read(REGION, 0, &mut bytes).unwrap();
        prop_assert_eq!(&bytes[..], model.bytes(REGION));
    }
}

#[test]
fn nothing_outside_a_region_can_be_reached() {
    let mut memory = HostMemory::default();
    memory.allocate(REGION, 100).unwrap();
    // The page continues after the region, but the range is out of bounds.
    for (offset, length) in [(0, 101), (100, 1), (101, 0), (u64::MAX, 1), (u64::MAX - 3, 8), (1 << 40, 8)] {
        assert_eq!(memory.write(REGION, offset, &vec![1; length]), Err(MemoryFault::NotMapped), "{offset}");
        assert_eq!(
            memory.read(REGION, offset, &mut vec![1; length]),
            Err(MemoryFault::NotMapped),
            "{offset}"
        );
    }
    assert_eq!(memory.write(REGION, 100, &[]), Ok(()));
    assert_eq!(memory.write(RegionId(8), 0, &[1]), Err(MemoryFault::NotMapped));
    let ranges = [FrameRange { frame_offset: 10, length: 20, region_offset: 0 }];
    let access = MemoryAccess::Write { lease: LeaseId(0), ranges: &ranges };
    let request = MemoryRequest { token: MemoryToken(1), region: REGION, access };
    assert_eq!(memory.execute(&request, &[0; 29]), Some(MemoryDone::Failed(MemoryFault::Device)));
}

#[test]
fn regions_are_added_and_removed_by_number() {
    let mut memory = HostMemory::default();
    for region in [3, 1, 2] {
        memory.allocate(RegionId(region), u64::from(region) * 10).unwrap();
    }
    assert!(memory.allocate(RegionId(2), 8).is_err());
    assert_eq!(memory.length(RegionId(3)), Some(30));
    assert_eq!(memory.free(RegionId(2)), Ok(()));
    assert_eq!(memory.free(RegionId(2)), Err(FreeRefused::NoSuchRegion(RegionId(2))));
    assert_eq!(memory.length(RegionId(2)), None);
    assert_eq!(memory.length(RegionId(1)), Some(10));
    memory.allocate(RegionId(9), 0).unwrap();
    assert!(memory.allocate(RegionId(10), u64::MAX).is_err());
}

#[test]
fn a_regions_file_shows_its_bytes_and_cannot_be_cut() {
    let mut memory = HostMemory::default();
    memory.allocate(REGION, 64).unwrap();
    memory.write(REGION, 8, &[1, 2, 3]).unwrap();
    let file = memory.file(REGION).unwrap();
    let mut bytes = [0; 3];
    rustix::io::pread(file, &mut bytes, 8).unwrap();
    assert_eq!(bytes, [1, 2, 3]);
    assert!(rustix::fs::ftruncate(file, 0).is_err());
}

#[test]
fn locks_and_bindings_move_with_the_pages() {
    let mut memory = HostMemory::default();
    let options = MemoryOptions { lock: true, numa_node: Some(0), ..MemoryOptions::default() };
    if let Err(cause) = memory.allocate_with(REGION, 4096, options) {
        let text = format!("SKIPPED (1): locks_and_bindings_move_with_the_pages: {cause}\n");
        return std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes()).unwrap();
    }
    memory.move_to_fresh_file(REGION).unwrap();
    memory.write(REGION, 0, &[1]).unwrap();
    let placement = memory.placement(REGION).unwrap();
    assert_eq!((placement.numa_nodes, placement.locked_bytes), (vec![0], placement.resident_bytes));
    assert!(memory.granted(REGION).unwrap().locked && placement.resident_bytes > 0);
}

#[test]
fn a_new_file_has_the_same_bytes_at_the_same_address_and_no_other_mapping() {
    for huge_pages in [false, true] {
        let mut memory = HostMemory::default();
        let options = MemoryOptions::default().huge_pages(huge_pages);
        memory.allocate_with(REGION, 100_000, options).unwrap();
        memory.write(REGION, 99_990, b"the end").unwrap();
        let old = crate::mapping::duplicate(memory.file(REGION).unwrap()).unwrap();
        let granted = memory.granted(REGION).unwrap().pages;
        let address = memory.window(REGION).unwrap().range(0, 1).unwrap();
        memory.move_to_fresh_file(REGION).unwrap();
        assert_eq!(memory.window(REGION).unwrap().range(0, 1).unwrap(), address);
        assert_eq!(memory.granted(REGION).unwrap().pages, granted);
        assert_eq!(memory.placement(REGION).unwrap().huge_advised, granted == Pages::Advised);
        let mut bytes = [0; 7];
        memory.read(REGION, 99_990, &mut bytes).unwrap();
        assert_eq!(&bytes, b"the end");
        memory.write(REGION, 99_990, b"private").unwrap();
        if granted != Pages::Huge {
            rustix::io::pread(&old, &mut bytes, 99_990).unwrap();
            assert_eq!(&bytes, b"the end", "the old file stays as it was");
            rustix::io::pread(memory.file(REGION).unwrap(), &mut bytes, 99_990).unwrap();
            assert_eq!(&bytes, b"private", "the region's file is the fresh one");
        }
    }
}

#[test]
fn allocations_stop_at_the_quota_of_node_and_tenant() {
    let tenant = Tenant(3);
    let limits = |node, bytes_max| MemoryLimits {
        node_bytes_max: Some(node),
        tenant: Some(TenantLimit { tenant, bytes_max }),
    };
    let mut memory = HostMemory::limited(limits(10_000, 50_000));
    memory.allocate(RegionId(1), 6000).unwrap();
    let refused = memory.allocate(RegionId(2), 4001).unwrap_err();
    assert!(
        matches!(refused, AllocateError::NodeFull { requested: 4001, used: 6000, limit: 10_000, .. }),
        "{refused}"
    );
    assert!(refused.to_string().contains("4001 bytes requested, 6000 of 10000 used; hint: "), "{refused}");
    memory.allocate(RegionId(2), 4000).unwrap();
    assert!(memory.allocate(RegionId(3), u64::MAX).is_err(), "no sum overflows");
    memory.free(RegionId(1)).unwrap();
    memory.allocate(RegionId(3), 6000).unwrap();

    let mut memory = HostMemory::limited(limits(50_000, 10_000));
    memory.allocate(RegionId(1), 10_000).unwrap();
    let refused = memory.allocate(RegionId(2), 1).unwrap_err();
    let AllocateError::Quota { exceeded, .. } = &refused else { panic!("{refused}") };
    assert_eq!(*exceeded, QuotaExceeded { tenant, requested: 1, used: 10_000, limit: 10_000 });
    assert_eq!(std::io::Error::from(refused).kind(), std::io::ErrorKind::QuotaExceeded);
    assert_eq!(memory.total_bytes(), 10_000, "what was refused left nothing behind");
}

#[test]
fn allocations_and_frees_are_counted() {
    let mut memory = HostMemory::default();
    let page_bytes = rustix::param::page_size() as u64;
    memory.allocate(RegionId(1), 10).unwrap();
    memory.allocate(RegionId(2), page_bytes + 1).unwrap();
    memory.free(RegionId(2)).unwrap();
    memory.allocate(RegionId(1), 10).unwrap_err();
    let Statistics { reserved, used, blocks, allocations, frees } = memory.statistics();
    assert_eq!(reserved, Usage { current: page_bytes, high: 3 * page_bytes });
    assert_eq!(used, Usage { current: 10, high: page_bytes + 11 });
    assert_eq!((blocks, allocations, frees), (1, 2, 1));
    assert_eq!(memory.regions().collect::<Vec<_>>(), [RegionId(1)]);
}
