//! Messages and writes between connected queue pairs.

use rackloom_verbs::engine::{Data, Kind};
use rackloom_verbs::layout::constants::*;
use rackloom_verbs::layout::work::Wc;

use crate::support::{ALL_ACCESS, Device, SEND, drain, signalled, statuses};

#[test]
fn a_message_is_scattered_over_the_parts_of_a_receive() {
    let mut device = Device::new();
    let (a, b) = device.connected();
    let (source, target) = (device.memory(64, 1, 0), device.memory(64, 200, ALL_ACCESS));
    device.receive(&b, 9, &[target.part(40, 3), target.part(8, 20)]);
    device.send(&a, signalled(5, &[source.part(0, 2), source.part(32, 0), source.part(10, 8)], SEND));
    let sent = Wc { wr_id: 5, opcode: WC_SEND, byte_len: 10, qp_num: a.number, ..Wc::default() };
    assert_eq!(drain(&a.sends), [sent]);
    let received = Wc { wr_id: 9, opcode: WC_RECV, byte_len: 10, qp_num: b.number, ..Wc::default() };
    assert_eq!(drain(&b.receives), [received]);
    let bytes = target.bytes();
    assert_eq!(bytes[40..43], [1, 2, 11]);
    assert_eq!(bytes[8..15], [12, 13, 14, 15, 16, 17, 18]);
    assert_eq!((bytes[15], bytes[43], bytes[7]), (215, 243, 207), "bytes beside the parts");
}

#[test]
fn immediate_data_arrive_with_a_message_and_with_a_write() {
    let mut device = Device::new();
    let (a, b) = device.connected();
    let (source, target) = (device.memory(16, 1, 0), device.memory(16, 100, ALL_ACCESS));
    device.receive(&b, 1, &[target.part(0, 16)]);
    device.receive(&b, 2, &[]);
    device.send(&a, signalled(3, &[source.part(0, 4)], Kind::Send { immediate: Some(0xaabb) }));
    let remote = target.remote(8);
    device.send(&a, signalled(4, &[source.part(0, 8)], Kind::Write { remote, immediate: Some(0xccdd) }));
    let received: Vec<_> = drain(&b.receives)
        .iter()
        .map(|wc| (wc.wr_id, wc.opcode, wc.byte_len, wc.imm_data, wc.wc_flags))
        .collect();
    let expected = [(1, WC_RECV, 4, 0xaabb, WC_WITH_IMM), (2, WC_RECV_RDMA_WITH_IMM, 8, 0xccdd, WC_WITH_IMM)];
    assert_eq!(received, expected);
    assert_eq!(target.bytes(), [1, 2, 3, 4, 104, 105, 106, 107, 1, 2, 3, 4, 5, 6, 7, 8]);
}

#[test]
fn a_write_uses_no_receive_and_no_completion_of_the_peer() {
    let mut device = Device::new();
    let (a, b) = device.connected();
    let (source, target) = (device.memory(32, 0, 0), device.memory(32, 100, ALL_ACCESS));
    let kind = Kind::Write { remote: target.remote(1), immediate: None };
    device.send(&a, signalled(1, &[source.part(0, 16), source.part(16, 15)], kind));
    assert_eq!(statuses(&a.sends), [(1, 0)]);
    assert!(drain(&b.receives).is_empty());
    assert_eq!(target.bytes()[1..], source.bytes()[..31]);
    assert_eq!(target.bytes()[0], 100);
}

#[test]
fn inline_data_need_no_registration_and_are_taken_when_posted() {
    let mut device = Device::new();
    let (a, b) = device.connected();
    let target = device.memory(8, 0, ALL_ACCESS);
    let mut send = signalled(1, &[], SEND);
    send.data = Data::Inline(Box::new([7, 8, 9]));
    device.send(&a, send.clone());
    device.receive(&b, 2, &[target.part(0, 8)]);
    assert_eq!(target.bytes()[..4], [7, 8, 9, 3]);
    send.data = Data::Inline(Box::new([0; 65]));
    assert!(device.engine.post_send(a.number, send, 0).is_err(), "more than the queue pair allows");
}

#[test]
fn only_signalled_sends_complete_and_in_the_order_of_their_posting() {
    let mut device = Device::new();
    let (a, _b) = device.connected();
    let (source, target) = (device.memory(8, 0, 0), device.memory(8, 0, ALL_ACCESS));
    let write = Kind::Write { remote: target.remote(0), immediate: None };
    let read = Kind::Read { remote: target.remote(0) };
    let local = device.memory(8, 0, ALL_ACCESS);
    for id in 0..6 {
        let kind = if id % 2 == 0 { write } else { read };
        let part = if id % 2 == 0 { source.part(0, 8) } else { local.part(0, 8) };
        let mut send = signalled(id, &[part], kind);
        send.is_signalled = id != 1 && id != 2;
        device.send(&a, send);
    }
    assert_eq!(statuses(&a.sends), [(0, 0), (3, 0), (4, 0), (5, 0)]);
}

#[test]
fn a_queue_pair_may_be_connected_with_itself() {
    let mut device = Device::new();
    let end = device.end(rackloom_verbs::engine::Service::Rc, None);
    let attributes = device.attributes(end.number);
    device.bring(end.number, &attributes, rackloom_verbs::engine::State::Rts);
    let memory = device.memory(16, 1, ALL_ACCESS);
    device.receive(&end, 1, &[memory.part(8, 8)]);
    device.send(&end, signalled(2, &[memory.part(0, 8)], SEND));
    assert_eq!((statuses(&end.sends), statuses(&end.receives)), (vec![(2, 0)], vec![(1, 0)]));
    assert_eq!(memory.bytes()[8..], [1, 2, 3, 4, 5, 6, 7, 8]);
}

#[test]
fn an_empty_message_and_an_empty_write_are_operations() {
    let mut device = Device::new();
    let (a, b) = device.connected();
    device.receive(&b, 1, &[]);
    device.send(&a, signalled(2, &[], SEND));
    let remote = rackloom_verbs::engine::Remote { address: 0, key: 0 };
    device.send(&a, signalled(3, &[], Kind::Write { remote, immediate: None }));
    assert_eq!(statuses(&a.sends), [(2, 0), (3, 0)]);
    assert_eq!(statuses(&b.receives), [(1, 0)]);
}
