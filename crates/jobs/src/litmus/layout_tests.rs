//! Tests that a layout covers its regions, keeps objects apart, and is equal for writer and owner.

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

fn settings(bytes_max: u64, memory_bytes: u64) -> LitmusSettings {
    LitmusSettings { bytes_max, memory_bytes, ..LitmusSettings::default() }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn extents_cover_a_region_without_gap_or_overlap_and_guards_are_wide(
        ranks in 1_u16..12,
        bytes_max in 1_u64..200_000,
        memory_bytes in 2_000_000_u64..64_000_000,
    ) {
        let layout = Layout::new(ranks, &settings(bytes_max, memory_bytes)).unwrap();
        prop_assert!(layout.total_bytes() <= memory_bytes);
        for region in [CONTROL, DATA] {
            let mut cursor = 0;
            let mut guard_bytes = 0;
            let mut seen = HashSet::new();
            for extent in layout.extents(region) {
                prop_assert_eq!(extent.offset, cursor);
                cursor += extent.bytes;
                if extent.content == Content::Guard {
                    guard_bytes += extent.bytes;
                } else {
                    prop_assert!(guard_bytes >= GUARD_BYTES, "{extent:?} after {guard_bytes}");
                    guard_bytes = 0;
                    prop_assert!(seen.insert(extent.content), "{extent:?} twice");
                }
            }
            prop_assert!(guard_bytes >= GUARD_BYTES);
            prop_assert_eq!(cursor, layout.region_bytes(region));
        }
    }

    #[test]
    fn a_writers_address_is_the_owners_extent(ranks in 2_u16..10, bytes_max in 1_u64..70_000) {
        let layout = Layout::new(ranks, &settings(bytes_max, 64_000_000)).unwrap();
        let mut slots = 0;
        for extent in layout.extents(DATA).chain(layout.extents(CONTROL)) {
            match extent.content {
                Content::Slot { distance, case } => {
                    slots += 1;
                    prop_assert_eq!(layout.slot_offset(distance, case), extent.offset);
                    let expected = layout.cases(distance)[usize::from(case)];
                    prop_assert_eq!((expected.bytes, expected.misalignment), (extent.bytes, extent.offset % 64));
                }
                Content::Flag { distance, case } => {
                    prop_assert_eq!(layout.flag_offset(distance, case), extent.offset);
                    prop_assert_eq!(extent.offset % 8, 0);
                }
                Content::Contended(word) => {
                    prop_assert_eq!(layout.contended_offset(word), extent.offset);
                    prop_assert_eq!(extent.offset % extent.bytes, 0);
                }
                Content::Ledger(word) => prop_assert_eq!(layout.ledger_offset(word), extent.offset),
                Content::Barrier { round } => prop_assert_eq!(layout.barrier_offset(round), extent.offset),
                Content::Abort => prop_assert_eq!(layout.abort_offset(), extent.offset),
                Content::Guard => {}
            }
        }
        let expected: usize = (1..ranks).map(|distance| layout.cases(distance).len()).sum();
        prop_assert_eq!(slots, expected);
    }

    #[test]
    fn distance_and_writer_undo_each_other(ranks in 1_u16..2000, a in any::<u16>(), b in any::<u16>()) {
        let layout = Layout::with_sizes(ranks, &settings(1, 1), 1, 1);
        let (writer, owner) = (a % ranks, b % ranks);
        prop_assert_eq!(layout.writer(owner, layout.distance(writer, owner)), writer);
        prop_assert_eq!((writer + layout.distance(writer, owner)) % ranks, owner);
    }
}

fn largest(layout: &Layout, distance: u16) -> u64 {
    layout.cases(distance).iter().map(|case| case.bytes).max().unwrap()
}

#[test]
fn four_ranks_with_default_settings_exchange_a_mebibyte_in_every_pair() {
    let layout = Layout::new(4, &LitmusSettings::default()).unwrap();
    for distance in 1..4 {
        assert_eq!(largest(&layout, distance), 1 << 20);
        assert_eq!(layout.reads(distance).iter().map(|case| case.bytes).max(), Some(1 << 20));
    }
}

#[test]
fn where_memory_is_short_distant_ranks_give_way_first() {
    let layout = Layout::new(4, &settings(1 << 20, 9 << 20)).unwrap();
    assert_eq!(largest(&layout, 1), 1 << 20);
    assert!(largest(&layout, 2) < 1 << 20);
    assert_eq!(largest(&layout, 2), largest(&layout, 3));
    let small = Layout::new(4, &settings(1 << 20, 1 << 20)).unwrap();
    assert_eq!((largest(&small, 1), largest(&small, 2)), (65_537, 4097));
}

#[test]
fn giving_way_is_said() {
    let wanted = settings(1 << 20, 9 << 20);
    let said = Layout::new(4, &wanted).unwrap().shortfall(&wanted).unwrap();
    assert!(said.contains("1048576 bytes between neighbouring ranks, 65537 between others"), "{said}");
    let wanted = settings(1 << 20, 64 << 20);
    assert_eq!(Layout::new(4, &wanted).unwrap().shortfall(&wanted), None);
}

#[test]
fn the_largest_racks_still_get_a_layout() {
    let settings = settings(1 << 20, 64 << 20);
    let layout = Layout::new(1024, &settings).unwrap();
    assert!(layout.total_bytes() <= settings.memory_bytes);
}

#[test]
fn many_ranks_keep_traffic_moderate() {
    let settings = LitmusSettings::default();
    let layout = Layout::new(64, &settings).unwrap();
    assert_eq!(largest(&layout, 1), 1 << 20);
    assert!(layout.traffic_bytes() <= settings.round_bytes_max, "{}", layout.traffic_bytes());
}

#[test]
fn too_little_memory_is_said_with_both_numbers() {
    let error = Layout::new(4, &settings(1 << 20, 1000)).unwrap_err();
    assert_eq!(error.memory_bytes, 1000);
    assert!(error.needed_bytes > 1000 && error.to_string().contains("hint:"));
}
