//! Operations that bring data of the peer.

use rackloom_verbs::engine::Kind;
use rackloom_verbs::layout::constants::*;

use crate::support::{ALL_ACCESS, Device, drain, signalled, statuses};

#[test]
fn a_read_is_scattered() {
    let mut device = Device::new();
    let (a, _b) = device.connected();
    let (local, remote) =
        (device.memory(32, 200, ACCESS_LOCAL_WRITE), device.memory(32, 0, ACCESS_REMOTE_READ));
    let kind = Kind::Read { remote: remote.remote(4) };
    device.send(&a, signalled(1, &[local.part(0, 3), local.part(16, 9)], kind));
    let found = drain(&a.sends);
    assert_eq!((found[0].status, found[0].opcode, found[0].byte_len), (0, WC_RDMA_READ, 12));
    assert_eq!(local.bytes()[..4], [4, 5, 6, 203]);
    assert_eq!(local.bytes()[16..25], [7, 8, 9, 10, 11, 12, 13, 14, 15]);
}

#[test]
fn atomic_operations_return_the_old_value() {
    let mut device = Device::new();
    let (a, _b) = device.connected();
    let (local, counter) = (device.memory(24, 0, ALL_ACCESS), device.memory(8, 0, ALL_ACCESS));
    let start = u64::from_ne_bytes(counter.bytes().try_into().expect("8 bytes"));
    let remote = counter.remote(0);
    let wrapping = Kind::FetchAdd { remote, add: u64::MAX };
    let miss = Kind::CompareSwap { remote, expected: start, new: 1 };
    let hit = Kind::CompareSwap { remote, expected: start.wrapping_sub(1), new: 42 };
    for (index, kind) in [wrapping, miss, hit].into_iter().enumerate() {
        device.send(&a, signalled(index as u64, &[local.part(index * 8, 8)], kind));
    }
    let opcodes: Vec<_> = drain(&a.sends).iter().map(|wc| (wc.status, wc.opcode, wc.byte_len)).collect();
    assert_eq!(opcodes, [(0, WC_FETCH_ADD, 8), (0, WC_COMP_SWAP, 8), (0, WC_COMP_SWAP, 8)]);
    let old: Vec<_> =
        local.bytes().chunks(8).map(|old| u64::from_ne_bytes(old.try_into().expect("8"))).collect();
    assert_eq!(old, [start, start.wrapping_sub(1), start.wrapping_sub(1)]);
    assert_eq!(counter.bytes(), 42_u64.to_ne_bytes());
}

#[test]
fn an_address_that_is_not_aligned_is_an_invalid_request() {
    let mut device = Device::new();
    let (a, _b) = device.connected();
    let memory = device.memory(24, 0, ALL_ACCESS);
    let kind = Kind::FetchAdd { remote: memory.remote(4), add: 1 };
    device.send(&a, signalled(1, &[memory.part(16, 8)], kind));
    assert_eq!(statuses(&a.sends), [(1, 9)]);
    assert_eq!(device.kinds(), [EVENT_QP_REQ_ERR]);
}

#[test]
fn a_value_of_another_length_fails_locally() {
    let mut device = Device::new();
    let (a, _b) = device.connected();
    let memory = device.memory(24, 0, ALL_ACCESS);
    let kind = Kind::FetchAdd { remote: memory.remote(0), add: 1 };
    device.send(&a, signalled(1, &[memory.part(16, 4)], kind));
    assert_eq!(statuses(&a.sends), [(1, 1)]);
    assert_eq!(memory.bytes()[0], 0);
}
