//! Tests of regions on devices of two members: the differences from pages.

#![cfg(feature = "gpu")]

use std::time::Duration;

use rackloom::HostMemory;
use rackloom::memory::{DeviceChoice, FreeRefused, MemoryOptions};
use rackloom::sharing::{AccessError, Cut, ExportError, ImportError, Importer, Revoked};
use rackloom_protocol::{Access, JobMemory, LocalRange, Memory, RegionConfig, RegionId, SignalKind, Width};

use super::rig::*;

const OWN: RegionId = RegionId(7);
/// More than one piece of a transfer through a buffer.
const BYTES: u64 = 150_000;

fn on(seed: u64) -> MemoryOptions {
    MemoryOptions::default().device(Some(DeviceChoice::Fake(seed)))
}

fn exporting(directory: &RunDirectory) -> Owner {
    exporting_from(on(3), directory)
}

fn exporting_from(kind: MemoryOptions, directory: &RunDirectory) -> Owner {
    let mut owner = Owner::at(kind, PARENT_NODE, directory.path(), seats(0));
    owner.exporter.export(&mut owner.memory, config(Access::ALL)).unwrap();
    owner
}

fn memory(kind: MemoryOptions) -> HostMemory {
    let mut memory = HostMemory::default();
    memory.allocate_with(OWN, BYTES, kind).unwrap();
    memory
}

#[test]
fn stores_loads_and_copies_are_visible_to_both_with_every_seed() {
    for seed in 20..30 {
        let directory = RunDirectory::new(&format!("device-{seed}"));
        let mut owner = exporting_from(on(3).pool(seed % 2 == 0), &directory);
        owner.memory.write(REGION, 8192, b"of owner").unwrap();
        let mut own = memory(on(seed));
        let there = imported_by(&own, &mut owner, &directory).unwrap();
        let mut found = [0; 8];
        there.load(8192, &mut found).unwrap();
        assert_eq!(&found, b"of owner");
        let bytes: Vec<u8> = (0..251).cycle().take(BYTES as usize).collect();
        own.write(OWN, 0, &bytes).unwrap();
        // Earlier requests to the device are performed first, without waiting for the device.
        let source = LocalRange { region: OWN, offset: 1, length: BYTES - 1 };
        there.copy_from(100, &own, source).unwrap();
        there.signal(0, SignalKind::Add, 2).unwrap();
        there.signal(0, SignalKind::Add, 2).unwrap();
        assert_eq!((owner.word(0), there.fetch_add(0, Width::Eight, 1)), (4, Ok(4)));
        assert_eq!(owner.bytes()[100..99 + BYTES as usize], bytes[1..]);
        own.write(OWN, 0, &[0; 1000]).unwrap();
        there.copy_to(100, &own, LocalRange { region: OWN, offset: 500, length: 300 }).unwrap();
        let mut found = [0; 1000];
        own.read(OWN, 0, &mut found).unwrap();
        assert!(found[..500] == [0; 500] && found[500..800] == bytes[1..301] && found[800..] == [0; 200]);
    }
}

#[test]
fn bytes_move_between_pages_and_a_device_through_a_buffer() {
    let directory = RunDirectory::new("mixed");
    let mut owner = exporting(&directory);
    // The importer has a region on its device and one in pages.
    let mut own = memory(on(5));
    let pages = RegionId(8);
    own.allocate(pages, BYTES).unwrap();
    let there = imported_by(&own, &mut owner, &directory).unwrap();
    let bytes: Vec<u8> = (0..249).cycle().take(BYTES as usize).collect();
    own.write(pages, 0, &bytes).unwrap();
    there.copy_from(3, &own, LocalRange { region: pages, offset: 0, length: BYTES }).unwrap();
    assert_eq!(owner.bytes()[3..3 + BYTES as usize], bytes);
    own.write(pages, 0, &vec![0; BYTES as usize]).unwrap();
    there.copy_to(3, &own, LocalRange { region: pages, offset: 0, length: BYTES }).unwrap();
    let mut found = vec![0; BYTES as usize];
    own.read(pages, 0, &mut found).unwrap();
    assert_eq!(found, bytes);
}

#[test]
fn an_importer_without_a_device_gets_a_hint() {
    let directory = RunDirectory::new("no-device");
    let mut owner = exporting(&directory);
    let error = imported_by(&HostMemory::default(), &mut owner, &directory).unwrap_err();
    assert!(matches!(error, ImportError::Unusable { .. }), "{error}");
    assert!(error.to_string().contains("this member has none; hint: "), "{error}");
}

#[test]
fn importers_close_before_the_owner_frees_and_revocation_is_cooperative() {
    let directory = RunDirectory::new("device-order");
    let mut owner = exporting(&directory);
    let own = memory(on(9));
    let there = imported_by(&own, &mut owner, &directory).unwrap();
    assert_eq!(owner.memory.free(REGION), Err(FreeRefused::Exported(REGION)));
    // A process inside an access cannot be cut off: a driver cannot revoke a mapping.
    let inside = there.enter().unwrap();
    let outcome = owner.exporter.revoke(&mut owner.memory, REGION, Duration::from_millis(5), Cut::IfSilent);
    assert!(matches!(outcome, Err(ExportError::System { .. })), "{outcome:?}");
    assert!(outcome.unwrap_err().to_string().contains("cooperative"));
    assert_eq!(inside.store(0, &[1]), Err(AccessError::Revoked), "no new access begins");
    drop(inside);
    let outcome = owner.exporter.revoke(&mut owner.memory, REGION, TIMEOUT, Cut::IfSilent).unwrap();
    assert_eq!(outcome, Revoked::Quiet { importers: 1 });
    let refused = owner.exporter.withdraw(&mut owner.memory, REGION);
    assert!(matches!(refused, Err(ExportError::StillImported { importers: 1, .. })));
    drop(there);
    owner.serve_until(|owner| owner.exporter.importers(REGION) == 0);
    owner.exporter.withdraw(&mut owner.memory, REGION).unwrap();
    owner.memory.free(REGION).unwrap();
}

#[test]
fn regions_of_a_pool_are_opened_separately() {
    let directory = RunDirectory::new("device-pool");
    let mut owner = exporting_from(on(4).pool(true), &directory);
    let other = RegionId(9);
    owner.memory.allocate_with(other, LENGTH, on(4).pool(true)).unwrap();
    owner.exporter.export(&mut owner.memory, RegionConfig { region: other, ..config(Access::ALL) }).unwrap();
    let own = memory(on(5));
    let first = imported_by(&own, &mut owner, &directory).unwrap();
    let importer =
        Importer::new(SAME_TENANT, directory.path(), seats(std::process::id())).with_device_of(&own);
    let second = importer.import(PARENT_NODE, other, KEY).unwrap().wait(TIMEOUT, || owner.serve()).unwrap();
    first.store(LENGTH - 8, &[1; 8]).unwrap();
    second.store(0, &[2; 8]).unwrap();
    let mut found = [0; 8];
    owner.memory.read(other, 0, &mut found).unwrap();
    assert_eq!((owner.word(LENGTH - 8), found), (u64::from_le_bytes([1; 8]), [2; 8]));
    let pool = owner.memory.pool().expect("a pool");
    assert_eq!((pool.used.current, pool.used.high), (2 * LENGTH, 2 * LENGTH));
    assert!(pool.reserved.current >= pool.used.current);
    // One region is freed, and the other stays as it is.
    drop(second);
    owner.serve_until(|owner| owner.exporter.importers(other) == 0);
    owner.exporter.withdraw(&mut owner.memory, other).unwrap();
    owner.memory.free(other).unwrap();
    let pool = owner.memory.pool().expect("a pool");
    assert_eq!((pool.used.current, pool.used.high), (LENGTH, 2 * LENGTH));
    first.load(LENGTH - 8, &mut found).unwrap();
    assert_eq!(found, [1; 8]);
    assert_eq!(own.pool(), None, "an importer has none");
}
