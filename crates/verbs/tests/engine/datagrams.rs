//! Unreliable datagrams.

use rackloom_verbs::engine::{Kind, State};
use rackloom_verbs::layout::constants::*;

use crate::support::{ALL_ACCESS, Device, End, QKEY, SEND, drain, signalled, statuses};

fn datagram(device: &Device, to: &End, key: u32) -> Kind {
    Kind::Datagram { route: device.route(), queue_pair: to.number, key, immediate: Some(0x1234) }
}

#[test]
fn a_datagram_arrives_behind_a_header_with_the_addresses() {
    let mut device = Device::new();
    let (a, b) = (device.datagram_end(), device.datagram_end());
    let memory = device.memory(64, 1, ALL_ACCESS);
    device.receive(&b, 2, &[memory.part(16, 48)]);
    let kind = datagram(&device, &b, QKEY);
    device.send(&a, signalled(1, &[memory.part(0, 8)], kind));
    assert_eq!(statuses(&a.sends), [(1, 0)]);
    let found = drain(&b.receives);
    assert_eq!((found[0].wr_id, found[0].status, found[0].opcode), (2, 0, WC_RECV));
    assert_eq!((found[0].byte_len, found[0].src_qp, found[0].imm_data), (48, a.number, 0x1234));
    assert_eq!((found[0].wc_flags, found[0].sl), (WC_GRH | WC_WITH_IMM, 10));
    let bytes = memory.bytes();
    assert_eq!(bytes[56..], [1, 2, 3, 4, 5, 6, 7, 8]);
    let own = &device.engine.addresses(1)[1][12..];
    assert_eq!((&bytes[48..52], &bytes[52..56], bytes[36]), (own, own, 0x45));
}

#[test]
fn datagrams_that_no_queue_pair_takes_are_lost_and_their_sends_are_done() {
    let mut device = Device::new();
    let (a, b) = (device.datagram_end(), device.datagram_end());
    let (c, _d) = device.connected();
    let memory = device.memory(64, 1, ALL_ACCESS);
    let wrong_key = datagram(&device, &b, QKEY + 1);
    let no_receive = datagram(&device, &b, QKEY);
    let mut connected = datagram(&device, &c, QKEY);
    device.receive(&c, 4, &[memory.part(0, 64)]);
    for (id, kind) in [no_receive, wrong_key, connected].into_iter().enumerate() {
        device.send(&a, signalled(id as u64, &[memory.part(0, 8)], kind));
        if id == 0 {
            device.receive(&b, 3, &[memory.part(0, 64)]);
        }
    }
    if let Kind::Datagram { route, queue_pair, .. } = &mut connected {
        (route.grh.dgid[0], *queue_pair) = (1, b.number);
    }
    device.send(&a, signalled(3, &[memory.part(0, 8)], connected));
    assert_eq!(statuses(&a.sends), [(0, 0), (1, 0), (2, 0), (3, 0)]);
    assert_eq!((statuses(&b.receives), statuses(&c.receives)), (vec![], vec![]));
}

#[test]
fn a_controlled_key_is_that_of_the_sender() {
    let mut device = Device::new();
    let (a, b) = (device.datagram_end(), device.datagram_end());
    device.receive(&b, 1, &[]);
    let memory = device.memory(64, 1, ALL_ACCESS);
    let kind = datagram(&device, &b, 1 << 31);
    device.send(&a, signalled(1, &[memory.part(0, 8)], kind));
    assert_eq!(statuses(&b.receives), [(1, 1)], "the receive is found, and is too short for a header");
}

#[test]
fn a_datagram_that_is_too_long_fails_locally_and_the_queue_pair_recovers() {
    let mut device = Device::new();
    let (a, b) = (device.datagram_end(), device.datagram_end());
    let memory = device.memory(4097, 1, ALL_ACCESS);
    let kind = datagram(&device, &b, QKEY);
    device.send(&a, signalled(1, &[memory.part(0, 4097)], kind));
    device.send(&a, signalled(2, &[memory.part(0, 1)], kind));
    assert_eq!(statuses(&a.sends), [(1, 1), (2, 5)]);
    assert_eq!(device.state(&a), State::Sqe);
    let attributes = device.attributes(0);
    device.step(a.number, &attributes, State::Rts, 0);
    device.send(&a, signalled(3, &[memory.part(0, 4096)], kind));
    assert_eq!(statuses(&a.sends), [(3, 0)]);
}

#[test]
fn operations_of_connections_are_refused() {
    let mut device = Device::new();
    let a = device.datagram_end();
    assert!(device.engine.post_send(a.number, signalled(1, &[], SEND), 0).is_err());
    let (c, _d) = device.connected();
    let kind = datagram(&device, &a, QKEY);
    assert!(device.engine.post_send(c.number, signalled(1, &[], kind), 0).is_err());
}
