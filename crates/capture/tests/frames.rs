//! Frames built by the protocol, described: every kind of operation with each of its fields.

use rackloom_capture::line::Line;
use rackloom_capture::{Described, Direction, describe};
use rackloom_protocol::wire::demand::Demand;
use rackloom_protocol::wire::frame::{HopCheck, StreamAck};
use rackloom_protocol::wire::layout::{FABRIC, HOP_CHECK, OPERATIONS};
use rackloom_protocol::wire::packed::Operation;
use rackloom_protocol::wire::{FabricHeader, FrameKind, LinkHeader, seal_end_to_end};
use rackloom_protocol::{
    Atomic, AtomicKind, Channel, Class, Key, NodeId, RegionId, SignalKind, Tenant, Width,
};

fn routed(kind: FrameKind, operations: &[Operation<'_>]) -> Vec<u8> {
    let mut packed = Vec::new();
    operations.iter().for_each(|operation| operation.encode(&mut packed));
    let mut frame = vec![0; OPERATIONS];
    frame.extend_from_slice(&packed);
    let header = FabricHeader {
        destination: NodeId(1),
        source: NodeId(0),
        class: Class::Request,
        operation_count: operations.iter().filter(|operation| operation.is_numbered()).count() as u8,
        tenant: Tenant(3),
        entropy: 77,
        ack_now: true,
        again: false,
        demand: Demand::of_packets(70),
        ack: Some(StreamAck { class: Class::Reply, psn: 5, operation: 6 }),
        source_incarnation: 8,
        destination_incarnation: 9,
        psn: 10,
        first_operation: 11,
    };
    header.write(&mut frame);
    let link = LinkHeader {
        kind,
        epoch: 12,
        length: (frame.len() - FABRIC) as u16,
        hop_limit: 255,
        channel: Channel(0),
        session: 13,
        sequence: 14,
        link_ack: 15,
        consumed: 16,
        freed: 17,
        has_end_to_end_check: true,
        hop_check: HopCheck::Header,
        is_unprotected: false,
        is_marked: false,
    };
    link.write(&mut frame, 0x88b5, [2, 0x52, 0x4c, 0, 0, 0], [2, 0x52, 0x4c, 0, 0, 1]);
    // The check reads the length, which the link header holds.
    seal_end_to_end(&mut frame);
    frame
}

fn line(frame: &Described) -> String {
    let members = ["n0".to_owned()];
    let (direction, interface) = (Direction::Outbound, "n0-p0");
    let line = Line {
        timestamp_ns: 1_000_000_002,
        interface,
        direction,
        frame,
        datagram: None,
        members: &members,
        comments: &[],
    };
    line.to_string()
}

#[test]
fn every_operation_is_shown_with_its_numbers() {
    let atomic = Atomic { kind: AtomicKind::CompareSwap, width: Width::Eight, operand: 21, compare: 22 };
    let shown_operation = |operation: Operation<'_>| {
        let select = Operation::Select { region: RegionId(4), key: Key(5) };
        let described = describe(&routed(FrameKind::Data, &[select, operation]));
        assert_eq!(described.problem, None);
        let line = line(&described);
        let (_, shown) = line.split_once("[select r4]  [").expect("the select and the operation");
        shown.split_once(']').expect("the operation ends").0.to_owned()
    };
    let data = &[0; 9];
    let cases = [
        (Operation::Store { offset: 64, data }, "11 store r4+0x40 9B"),
        (Operation::Load { offset: 64, length: 8 }, "11 load r4+0x40 8B"),
        (Operation::Atomic { offset: 64, atomic }, "11 atomic r4+0x40 compare-swap value 21 compare 22 8B"),
        (
            Operation::Signal { offset: 64, kind: SignalKind::Add, value: 3, counted: 0 },
            "11 signal r4+0x40 add value 3",
        ),
        (Operation::Put { offset: 64, start: 0, total: 100, data }, "11 put r4+0x40 9B of 100B"),
        (Operation::Get { offset: 64, length: 5000 }, "11 get r4+0x40 5000B"),
        (Operation::Message { tag: 6, data }, "11 message tag 6 9B"),
        (Operation::Offer { tag: 6, length: 99 }, "11 offer tag 6 99B"),
        (Operation::Pull { offer: 7, length: 99 }, "11 pull of 7 99B"),
        (Operation::LoadReply { operation: 7, data }, "11 load-reply of 7 9B"),
        (Operation::AtomicReply { operation: 7, value: 1 }, "11 atomic-reply of 7 value 1"),
        (Operation::GetData { operation: 7, position: 2, data }, "11 get-data of 7 at 2 9B"),
        (Operation::Received { operation: 7, cost: 64 }, "11 received of 7 budget 64"),
        (
            Operation::Refusal { operation: 7, class: Class::Bulk, code: 4 },
            "11 refusal bulk out-of-bounds of 7",
        ),
    ];
    for (operation, expected) in cases {
        assert_eq!(shown_operation(operation), expected);
    }
}

#[test]
fn headers_and_acks_are_shown() {
    let bitmap = &[0xa0, 1];
    let ack = Operation::Ack { class: Class::Bulk, psn: 30, operation: 31, hole: true, marked: true, bitmap };
    let grant = Operation::Grant { class: Class::Bulk, psn: 40 };
    let described = describe(&routed(FrameKind::Ack, &[ack, grant]));
    let expected = "    1.000000002  n0-p0 >  ack n0 to m1 request ack-now demand 64  [ack bulk psn 30 op 31 hole marked has a001]  [grant bulk psn 40]  \
                    ack reply psn 5 op 6  credits 16/17";
    assert_eq!(line(&described), expected);
}

#[test]
fn a_damaged_frame_has_no_fields_that_its_check_covers() {
    let mut frame = routed(FrameKind::Data, &[]);
    frame[HOP_CHECK] ^= 1;
    let described = describe(&frame);
    assert_eq!((described.problem, described.link), (Some("hop-check"), None));

    let mut frame = routed(FrameKind::Data, &[Operation::Message { tag: 1, data: &[1, 2] }]);
    let last = frame.len() - 1;
    frame[last] ^= 1;
    let described = describe(&frame);
    assert_eq!(described.problem, Some("end-to-end-check"));
    assert_eq!(described.fabric.expect("routed").end_to_end_check, "bad");

    let described = describe(&[0x33; 60]);
    assert!(!described.is_ours());
    assert!(line(&described).ends_with("type 0x3333 60B  (not ours)"), "{}", line(&described));
}
