//! Tests of many regions in memory that the program owns: ranges that overlap, with keys and access rights of their own, added and removed
//! while peers use others.

#[path = "fabric/rig.rs"]
mod rig;

use rackloom::fabric::*;
use rig::local;

const REGIONS: u32 = 3000;
/// Distance of the beginnings of two regions. They are longer, so each byte is in many regions.
const STEP: usize = 16;
const LENGTH: usize = 4096;

const RACKS: [&str; 2] =
    ["name: near\nshape: {ring: {nodes: 2}}\n", "name: far\nshape: {ring: {nodes: 2}}\nforce_wire: true\n"];

/// Returns the rights of a region: all of them, or one is missing.
fn rights(region: u32) -> Access {
    Access { read: region % 4 != 1, write: region % 4 != 2, atomic: region % 4 != 3 }
}

fn key(region: u32) -> u64 {
    0x5eed_0000 + u64::from(region) * 7
}

/// Registers one of the ranges of `bytes`.
fn register(owner: &Node, bytes: &mut [u8], region: u32, key: u64) -> Region {
    let range = &mut bytes[region as usize * STEP..][..LENGTH];
    let options = RegionOptions::new(region, key).access(rights(region));
    // SAFETY: needed because the program owns the bytes. They live until the node has left, and are read only through regions before that.
    unsafe { owner.register_raw(options, range.as_mut_ptr(), LENGTH) }.unwrap()
}

fn is_refused(result: Result<(), Error>) -> bool {
    match result {
        Ok(()) => false,
        Err(Error::Refused { .. }) => true,
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn thousands_of_regions_overlap_and_keep_their_own_rights() {
    for plan in RACKS {
        let mut bytes = vec![0_u8; (REGIONS as usize - 1) * STEP + LENGTH];
        let nodes = local(plan).into_nodes();
        let [owner, peer] = &nodes[..] else { unreachable!() };
        let mut regions: Vec<_> =
            (0..REGIONS).map(|region| Some(register(owner, &mut bytes, region, key(region)))).collect();
        let own = peer.allocate(RegionOptions::new(1, 1), 64).unwrap();
        let at = |region: u32, offset: u64| {
            let options = RegionOptions::new(region, key(region));
            RemoteAddress { node: owner.id(), region: options.region, offset, key: options.key }
        };

        // A byte that is written through one region is read through every region that contains it.
        for region in (0..REGIONS).step_by(97) {
            let target = at(region, 2048 + 8);
            let written = region.to_le_bytes();
            assert_eq!(is_refused(peer.store(target, &written).wait()), !rights(region).write, "{region}");
            for later in (region..(region + 100).min(REGIONS)).step_by(13) {
                let source = at(later, 2048 + 8 - u64::from(later - region) * STEP as u64);
                let result = peer.load(source, &own.slice(0..4)).wait();
                assert_eq!(is_refused(result), !rights(later).read, "{later}");
                if rights(region).write && rights(later).read {
                    assert_eq!(own.get::<u32>(0).unwrap(), region, "{later}");
                }
            }
            let added = peer.fetch_add::<u64>(at(region, 64), 1).wait().map(drop);
            assert_eq!(is_refused(added), !rights(region).atomic, "{region}");
            // A neighbour's key opens nothing.
            let foreign = RemoteAddress { key: at(region + 1, 0).key, ..target };
            assert!(is_refused(peer.store(foreign, &written).wait()));
        }

        // Every second region goes. The others stay, and the numbers are taken again with other keys.
        for region in (1..REGIONS).step_by(2) {
            assert!(regions[region as usize].take().unwrap().deregister::<u8>().unwrap().is_none());
        }
        for region in (1..REGIONS).step_by(50) {
            assert!(is_refused(peer.load(at(region, 0), &own.slice(0..4)).wait()), "{region} is gone");
            let before = peer.load(at(region - 1, 0), &own.slice(0..4)).wait();
            assert_eq!(is_refused(before), !rights(region - 1).read);
        }
        for region in (1..REGIONS).step_by(2) {
            regions[region as usize] = Some(register(owner, &mut bytes, region, key(region) ^ 1));
        }
        for region in (1..REGIONS).step_by(50) {
            let old = at(region, 0);
            let new = RemoteAddress { key: RegionOptions::new(region, key(region) ^ 1).key, ..old };
            assert!(is_refused(peer.load(old, &own.slice(0..4)).wait()), "{region}: the old key");
            let result = peer.load(new, &own.slice(0..4)).wait();
            assert_eq!(is_refused(result), !rights(region).read, "{region}: the new key");
        }
        drop(regions);
        for node in &nodes {
            node.leave();
        }
    }
}
