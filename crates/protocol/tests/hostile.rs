//! Foreign bytes and forbidden accesses: refused, reported, and without effect on memory.

mod harness;

use harness::*;
use proptest::prelude::*;
use rackloom_protocol::wire::address::mac;
use rackloom_protocol::wire::frame::Frame;
use rackloom_protocol::wire::packed::Operations;
use rackloom_protocol::wire::{dump, layout, seal_end_to_end};
use rackloom_protocol::*;

fn pair() -> Fabric {
    let mut options = options(RetransmissionMode::Selective);
    options.tenants[1] = Tenant(0);
    Fabric::up(ring(2), &options)
}

fn refused(fabric: &mut Fabric, id: u64, target: RemoteAddress, expected: OperationError) {
    let before = fabric.memory(1).to_vec();
    fabric.command(0, store(id, target, &[0xee; 8])).unwrap();
    assert_eq!(fabric.finish(id), Err(expected), "store");
    fabric.command(0, put(id + 1, target, local(0, 8))).unwrap();
    assert_eq!(fabric.finish(id + 1), Err(expected), "put");
    fabric.command(0, load(id + 2, target, local(0, 8))).unwrap();
    assert_eq!(fabric.finish(id + 2), Err(expected), "load");
    fabric.command(0, get(id + 3, target, local(0, 8))).unwrap();
    assert_eq!(fabric.finish(id + 3), Err(expected), "get");
    fabric.command(0, fetch_add(id + 4, target, 1)).unwrap();
    assert_eq!(fabric.finish(id + 4), Err(expected), "fetch-add");
    assert!(fabric.memory(1) == before, "no byte changed");
    let named = fabric.events.iter().filter(|(_, node, event)| {
        *node == 1
            && matches!(event, Event::AccessRefused { error, source: NodeId(0), .. } if *error == expected)
    });
    assert_eq!(named.count(), 5, "the owner gets an event");
    fabric.events.clear();
}

#[test]
fn every_forbidden_access_is_refused_by_name() {
    let mut fabric = pair();
    refused(&mut fabric, 10, RemoteAddress { key: Key(1), ..at(1, 0) }, OperationError::BadKey);
    let elsewhere = RemoteAddress { region: RegionId(9), ..at(1, 0) };
    refused(&mut fabric, 20, elsewhere, OperationError::NoSuchRegion);
    refused(&mut fabric, 30, at(1, REGION_BYTES as u64 - 7), OperationError::OutOfBounds);
    let beyond = fabric.command(0, load(40, at(1, u64::MAX - 3), local(0, 8)));
    assert!(matches!(beyond, Err(CommandRefused::Invalid(_))));
    fabric.endpoint(1).revoke(REGION);
    refused(&mut fabric, 50, at(1, 0), OperationError::Revoked);
}

#[test]
fn a_get_whose_region_is_revoked_in_flight_is_refused() {
    let mut fabric = pair();
    fabric.memory(1)[..100_000].fill(7);
    // All data is lost until the region is revoked, so it is retransmitted afterwards.
    fabric.filter = Box::new(|_, _, forward, bytes| forward || bytes.len() < 1000);
    fabric.command(0, get(1, at(1, 0), local(0, 100_000))).unwrap();
    fabric.run_for(60_000);
    fabric.endpoint(1).revoke(REGION);
    fabric.memory(1).fill(9);
    fabric.filter = Box::new(|_, _, _, _| true);
    assert_eq!(fabric.finish(1), Err(OperationError::Revoked));
    fabric.run_for(2_000_000);
    assert!(!fabric.memory(0).contains(&9), "bytes that are no longer the region's");
    let is_refusal =
        |event: &Event| matches!(event, Event::AccessRefused { error: OperationError::Revoked, .. });
    assert!(
        fabric.events.iter().any(|(_, node, event)| *node == 1 && is_refusal(event)),
        "the owner gets an event"
    );
}

#[test]
fn another_tenant_is_refused() {
    let mut options = options(RetransmissionMode::Selective);
    options.tenants[1] = Tenant(5);
    let mut fabric = Fabric::up(ring(2), &options);
    refused(&mut fabric, 10, at(1, 0), OperationError::WrongTenant);
}

#[test]
fn a_read_only_region_is_read_only() {
    let mut fabric = pair();
    fabric.endpoint(1).revoke(REGION);
    let read_only = RegionConfig {
        region: REGION,
        length: REGION_BYTES as u64,
        key: KEY,
        access: Access::READ,
        tenant: Tenant(0),
    };
    fabric.endpoint(1).register(read_only).unwrap();
    fabric.command(0, store(1, at(1, 0), &[1])).unwrap();
    assert_eq!(fabric.finish(1), Err(OperationError::PermissionDenied));
    fabric.command(0, fetch_add(2, at(1, 0), 1)).unwrap();
    assert_eq!(fabric.finish(2), Err(OperationError::PermissionDenied));
    fabric.command(0, load(3, at(1, 0), local(0, 8))).unwrap();
    assert_eq!(fabric.finish(3), Ok(0));
    assert_eq!(fabric.memory(1)[0], 0);
}

// W-13
#[test]
fn a_put_that_leaves_the_region_at_its_end_writes_no_byte() {
    let mut fabric = pair();
    fabric.memory(0)[..100_000].fill(1);
    fabric.command(0, put(1, at(1, REGION_BYTES as u64 - 99_999), local(0, 100_000))).unwrap();
    assert_eq!(fabric.finish(1), Err(OperationError::OutOfBounds));
    assert!(fabric.memory(1).iter().all(|byte| *byte == 0));
}

#[test]
fn a_misaligned_atomic_is_refused() {
    let mut fabric = pair();
    fabric.command(0, fetch_add(1, at(1, 4), 1)).unwrap();
    assert_eq!(fabric.finish(1), Err(OperationError::Misaligned));
    fabric.command(0, atomic(2, at(1, 4), AtomicKind::FetchAdd, Width::Four, 1, 0)).unwrap();
    assert_eq!(fabric.finish(2), Ok(0));
}

#[test]
fn a_flush_right_after_a_failed_store_fails() {
    let mut fabric = pair();
    fabric.command(0, posted(RemoteAddress { key: Key(1), ..at(1, 0) }, &[1])).unwrap();
    fabric.command(0, Command::Flush { operation: OperationId(1), target: None }).unwrap();
    assert_eq!(fabric.finish(1), Err(OperationError::EarlierFailure));
}

#[test]
fn a_failed_posted_store_makes_the_next_flush_fail_and_only_that_one() {
    let mut fabric = pair();
    fabric.command(0, posted(RemoteAddress { key: Key(1), ..at(1, 0) }, &[1])).unwrap();
    fabric.run_for(100_000);
    fabric.command(0, Command::Flush { operation: OperationId(1), target: None }).unwrap();
    assert_eq!(fabric.finish(1), Err(OperationError::EarlierFailure));
    fabric.command(0, Command::Flush { operation: OperationId(2), target: None }).unwrap();
    assert_eq!(fabric.finish(2), Ok(0));
}

// W-14
#[test]
fn a_refused_store_among_accepted_ones_is_identified() {
    let mut fabric = pair();
    for id in 1..=20 {
        let target = if id == 7 { RemoteAddress { key: Key(1), ..at(1, 0) } } else { at(1, id * 8) };
        fabric.command(0, store(id, target, &[id as u8])).unwrap();
    }
    for id in 1..=20 {
        let expected = if id == 7 { Err(OperationError::BadKey) } else { Ok(0) };
        assert_eq!(fabric.finish(id), expected, "store {id}");
    }
}

/// Returns a fabric and a data frame that node 0 has sent to node 1.
fn genuine() -> (Fabric, Vec<u8>) {
    let mut fabric = pair();
    let caught = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let sink = caught.clone();
    fabric.filter = Box::new(move |_, _, forward, bytes| {
        if forward && bytes[layout::VERSION_KIND] & 15 == 1 && sink.borrow().is_empty() {
            *sink.borrow_mut() = bytes.clone();
            return false;
        }
        true
    });
    fabric.command(0, store(1, at(1, 0), &[7; 64])).unwrap();
    let bytes = caught.borrow().clone();
    (fabric, bytes)
}

/// Computes both checks of a forged frame.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    seal_end_to_end(&mut bytes);
    let check = wire::hop_check(&bytes, false);
    layout::put_u32(&mut bytes, layout::HOP_CHECK, check);
    bytes
}

fn deliver(fabric: &mut Fabric, bytes: Vec<u8>) -> Vec<DropReason> {
    fabric.events.clear();
    let before = fabric.memory(1).to_vec();
    fabric.deliver(1, PortId(0), bytes);
    assert!(fabric.memory(1) == before, "no byte changed");
    fabric
        .events
        .iter()
        .filter_map(|(_, _, event)| match event {
            Event::FrameDropped { reason, .. } => Some(*reason),
            _ => None,
        })
        .collect()
}

type Forgery = fn(&mut Vec<u8>);

// W-1 W-2 W-3 W-4 W-6 W-8
#[test]
fn every_forged_field_has_its_reason() {
    let cases: [(&str, Forgery, DropReason); 12] = [
        ("short", |bytes| bytes.truncate(40), DropReason::Truncated),
        ("cut in the payload", |bytes| bytes.truncate(100), DropReason::Truncated),
        ("another EtherType", |bytes| bytes[layout::ETHER_TYPE] = 8, DropReason::ForeignEtherType),
        ("another address", |bytes| bytes[5] ^= 1, DropReason::WrongAddress),
        ("a forged source", |bytes| bytes[11] ^= 1, DropReason::WrongAddress),
        ("magic", |bytes| bytes[layout::MAGIC] ^= 1, DropReason::BadMagic),
        ("version", |bytes| bytes[layout::VERSION_KIND] ^= 0x20, DropReason::BadVersion),
        ("kind", |bytes| bytes[layout::VERSION_KIND] |= 15, DropReason::Malformed),
        ("hop check", |bytes| bytes[layout::HOP_CHECK] ^= 1, DropReason::HopCheck),
        ("a flipped payload bit", |bytes| bytes[120] ^= 1, DropReason::EndToEndCheck),
        (
            "an old epoch",
            |bytes| {
                bytes[layout::EPOCH] ^= 1;
                *bytes = sealed(std::mem::take(bytes));
            },
            DropReason::WrongEpoch,
        ),
        (
            "an old session",
            |bytes| {
                bytes[layout::SESSION] ^= 1;
                *bytes = sealed(std::mem::take(bytes));
            },
            DropReason::StaleLink,
        ),
    ];
    for (what, forge, reason) in cases {
        let (mut fabric, mut bytes) = genuine();
        forge(&mut bytes);
        assert_eq!(deliver(&mut fabric, bytes), [reason], "{what}");
        fabric.finish(1).expect("the genuine store still completes");
    }
}

// W-7
#[test]
fn identity_comes_from_the_plan_and_not_from_the_frame() {
    let cases: [(&str, usize, DropReason); 5] = [
        ("tenant", layout::TENANT, DropReason::UnknownSender),
        ("source", layout::SOURCE + 1, DropReason::UnknownSender),
        ("incarnation of the source", layout::SOURCE_INCARNATION, DropReason::StaleIncarnation),
        ("incarnation of the destination", layout::DESTINATION_INCARNATION, DropReason::StaleIncarnation),
        ("class", layout::CLASS, DropReason::Malformed),
    ];
    for (what, at, reason) in cases {
        let (mut fabric, mut bytes) = genuine();
        bytes[at] ^= 0x40;
        assert_eq!(deliver(&mut fabric, sealed(bytes)), [reason], "{what}");
    }
}

#[test]
fn a_frame_without_the_required_check_is_refused() {
    let (mut fabric, mut bytes) = genuine();
    bytes[layout::FLAGS] = 0;
    assert_eq!(deliver(&mut fabric, sealed(bytes)), [DropReason::CheckMissing]);
    let (mut fabric, mut bytes) = genuine();
    bytes[layout::FLAGS] |= layout::FLAG_NO_HOP_CHECK;
    layout::put_u32(&mut bytes, layout::HOP_CHECK, 0);
    assert_eq!(deliver(&mut fabric, bytes), [DropReason::CheckMissing], "of the hop");
}

#[test]
fn a_frame_that_declares_no_hop_check_has_none() {
    let (mut fabric, mut bytes) = genuine();
    bytes[layout::FLAGS] |= layout::FLAG_NO_HOP_CHECK;
    assert_eq!(deliver(&mut fabric, bytes), [DropReason::HopCheck]);
}

// W-9 W-10
#[test]
fn the_end_to_end_check_detects_a_bit_flipped_inside_a_switch() {
    // The switch recomputes the hop check. Only the end-to-end check, which it never changes, detects this.
    let (mut fabric, mut bytes) = genuine();
    bytes[130] ^= 4;
    let check = wire::hop_check(&bytes, false);
    layout::put_u32(&mut bytes, layout::HOP_CHECK, check);
    assert_eq!(deliver(&mut fabric, bytes), [DropReason::EndToEndCheck]);
}

// W-12
#[test]
fn a_list_of_operations_with_a_wrong_length_is_not_executed() {
    let (mut fabric, mut bytes) = genuine();
    layout::put_u16(&mut bytes, layout::OPERATIONS + 16 + 2, 4000);
    assert_eq!(deliver(&mut fabric, sealed(bytes)), [DropReason::Malformed]);
}

// W-16
#[test]
fn a_hello_of_an_unknown_member_is_refused() {
    let mut fabric = pair();
    let caught = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let sink = caught.clone();
    fabric.filter = Box::new(move |_, _, forward, bytes| {
        if forward && bytes[layout::VERSION_KIND] & 15 == 4 {
            *sink.borrow_mut() = bytes.clone();
        }
        true
    });
    fabric.run_for(300_000);
    let mut bytes = caught.borrow().clone();
    bytes.resize(layout::FABRIC + wire::control::HELLO_BYTES, 0);
    bytes[layout::VERSION_KIND] = layout::VERSION << 4 | 3;
    let hello = wire::control::Hello {
        node: NodeId(9),
        port: PortId(0),
        plane: Plane(0),
        requests_answer: true,
        frame_bytes_max: 4352,
        incarnation: Incarnation(1 << 60),
        received_incarnation: Incarnation(0),
        options: 1,
    };
    hello.write(&mut bytes[layout::FABRIC..]);
    layout::put_u16(&mut bytes, layout::LENGTH, wire::control::HELLO_BYTES as u16);
    let check = wire::hop_check(&bytes, true);
    layout::put_u32(&mut bytes, layout::HOP_CHECK, check);
    assert_eq!(deliver(&mut fabric, bytes), [DropReason::UnknownSender]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_make_the_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = Frame::parse(&bytes, 0x88b5, mac(NodeId(1), Plane(0)), mac(NodeId(0), Plane(0)), 7);
        for operation in Operations::new(&bytes) {
            let _ = operation;
        }
    }

    #[test]
    fn no_mutation_of_a_real_frame_panics_or_writes(
        flips in proptest::collection::vec((0usize..190, any::<u8>()), 1..6),
        reseal in any::<bool>(),
    ) {
        let (mut fabric, mut bytes) = genuine();
        let original = bytes.clone();
        for (at, value) in flips {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
        }
        // A later change of a byte can restore it.
        let touched = bytes != original;
        let length = usize::from(layout::u16_at(&bytes, layout::LENGTH));
        let whole = layout::FABRIC + length <= bytes.len() && length >= layout::OPERATIONS - layout::FABRIC;
        if let Ok(frame) = Frame::parse(&bytes, 0x88b5, mac(NodeId(1), Plane(0)), mac(NodeId(0), Plane(0)), 7) {
            prop_assert!(!dump::line(&frame).is_empty());
        }
        if reseal && whole {
            // With both checks forged, the frame cannot be distinguished from a real one. It must only not
            // panic.
            fabric.deliver(1, PortId(0), sealed(bytes));
        } else if touched {
            deliver(&mut fabric, bytes);
        }
        fabric.run_for(10_000);
    }
}
