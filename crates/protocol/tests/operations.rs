//! Operations of every kind, end to end, on a healthy fabric.

mod harness;

use harness::*;
use rackloom_protocol::*;

fn pattern(length: usize, seed: u8) -> Vec<u8> {
    (0..length).map(|index| (index as u8).wrapping_mul(31) ^ seed ^ (index >> 8) as u8).collect()
}

fn pair() -> Fabric {
    Fabric::up(ring(2), &options(RetransmissionMode::Selective))
}

#[test]
fn a_store_is_visible_when_it_completes() {
    let mut fabric = pair();
    fabric.command(0, store(1, at(1, 5), b"seven bytes")).unwrap();
    assert_eq!(fabric.outcome(1), None, "not before the other side has it");
    assert_eq!(fabric.finish(1), Ok(0));
    assert_eq!(&fabric.memory(1)[5..16], b"seven bytes");
    assert_eq!(fabric.memory(1)[4], 0);
    assert_eq!(fabric.memory(1)[16], 0);
}

#[test]
fn a_store_of_one_hop_takes_one_round_trip() {
    let mut fabric = pair();
    let start = fabric.now;
    fabric.command(0, store(1, at(1, 0), &[1])).unwrap();
    fabric.finish(1).unwrap();
    assert_eq!(fabric.now.since(start), 2 * DELAY_NS);
}

#[test]
fn loads_of_every_alignment() {
    let mut fabric = pair();
    let data = pattern(2000, 3);
    fabric.memory(1)[..2000].copy_from_slice(&data);
    for (id, (offset, length)) in
        [(0usize, 1usize), (1, 255), (255, 2), (250, 700), (0, 1024), (13, 1111)].into_iter().enumerate()
    {
        let id = id as u64 + 1;
        fabric.command(0, load(id, at(1, offset as u64), local(100_000, length as u64))).unwrap();
        assert_eq!(fabric.finish(id), Ok(0));
        assert_eq!(fabric.memory(0)[100_000..100_000 + length], data[offset..offset + length]);
    }
}

// W-15
#[test]
fn a_load_sees_the_stores_before_it_and_none_after() {
    let mut fabric = pair();
    fabric.command(0, posted(at(1, 0), &[1])).unwrap();
    fabric.command(0, load(1, at(1, 0), local(500, 1))).unwrap();
    fabric.command(0, posted(at(1, 0), &[2])).unwrap();
    fabric.command(0, load(2, at(1, 0), local(501, 1))).unwrap();
    fabric.finish(2).unwrap();
    assert_eq!(fabric.memory(0)[500..502], [1, 2]);
}

#[test]
fn atomics_of_both_widths() {
    let mut fabric = pair();
    fabric.memory(1)[..8].copy_from_slice(&u64::MAX.to_le_bytes());
    let cases = [
        (AtomicKind::FetchAdd, Width::Four, 2, 0, u64::from(u32::MAX), 0xffff_ffff_0000_0001),
        (AtomicKind::FetchAdd, Width::Eight, 1, 0, 0xffff_ffff_0000_0001, 0xffff_ffff_0000_0002),
        (AtomicKind::CompareSwap, Width::Eight, 9, 5, 0xffff_ffff_0000_0002, 0xffff_ffff_0000_0002),
        (AtomicKind::CompareSwap, Width::Four, 9, 2, 2, 0xffff_ffff_0000_0009),
        (AtomicKind::Swap, Width::Eight, 4, 0, 0xffff_ffff_0000_0009, 4),
        (AtomicKind::Or, Width::Four, 0xff_0000_0003, 0, 4, 7),
        (AtomicKind::Xor, Width::Eight, 0xf0_0000_0005, 0, 7, 0xf0_0000_0002),
        (AtomicKind::And, Width::Four, 6, 0, 2, 0xf0_0000_0002),
        (AtomicKind::Max, Width::Four, 0xffff_fffe, 0, 2, 0xf0_ffff_fffe),
        (AtomicKind::MaxSigned, Width::Four, 1, 0, 0xffff_fffe, 0xf0_0000_0001),
        (AtomicKind::MinSigned, Width::Four, 0xffff_fffe, 0, 1, 0xf0_ffff_fffe),
        (AtomicKind::Min, Width::Eight, 9, 0, 0xf0_ffff_fffe, 9),
        (AtomicKind::MinSigned, Width::Eight, u64::MAX, 0, 9, u64::MAX),
        (AtomicKind::MaxSigned, Width::Eight, 9, 0, u64::MAX, 9),
        (AtomicKind::Max, Width::Eight, 8, 0, 9, 9),
    ];
    for (id, (kind, width, operand, compare, old, after)) in cases.into_iter().enumerate() {
        let id = id as u64 + 1;
        fabric.command(0, atomic(id, at(1, 0), kind, width, operand, compare)).unwrap();
        assert_eq!(fabric.finish(id), Ok(old), "{kind:?} {width:?}");
        let word: [u8; 8] = fabric.memory(1)[..8].try_into().unwrap();
        assert_eq!(u64::from_le_bytes(word), after, "{kind:?} {width:?}");
    }
}

#[test]
fn puts_and_gets_of_many_sizes() {
    let mut fabric = pair();
    for (id, length) in [1usize, 64, 255, 4096, 4097, 100_001].into_iter().enumerate() {
        let id = 2 * id as u64 + 1;
        let data = pattern(length, id as u8);
        fabric.memory(0)[..length].copy_from_slice(&data);
        fabric.command(0, put(id, at(1, 300_003), local(0, length as u64))).unwrap();
        assert_eq!(fabric.finish(id), Ok(0));
        assert_eq!(fabric.memory(1)[300_003..300_003 + length], data);
        fabric.command(0, get(id + 1, at(1, 300_003), local(500_001, length as u64))).unwrap();
        assert_eq!(fabric.finish(id + 1), Ok(0));
        assert_eq!(fabric.memory(0)[500_001..500_001 + length], data);
    }
}

#[test]
fn a_signal_is_seen_after_its_data() {
    let mut fabric = pair();
    let length = 50_000;
    fabric.memory(0)[..length].copy_from_slice(&pattern(length, 9));
    let wait = Command::WaitUntil {
        operation: OperationId(1),
        region: REGION,
        offset: 800_000,
        condition: Condition::Equal,
        value: 42,
        depends_on: Some(NodeId(0)),
    };
    fabric.command(1, wait).unwrap();
    let signal = Signal { region: REGION, offset: 800_000, key: KEY, kind: SignalKind::Set, value: 42 };
    let source = local(0, length as u64);
    let put = Command::Put { operation: OperationId(2), target: at(1, 0), source, signal: Some(signal) };
    fabric.command(0, put).unwrap();
    assert_eq!(fabric.finish(1), Ok(42));
    assert_eq!(fabric.memory(1)[..length], pattern(length, 9));
    assert_eq!(fabric.finish(2), Ok(0));
}

#[test]
fn a_wait_can_be_cancelled() {
    let mut fabric = pair();
    let wait = Command::WaitUntil {
        operation: OperationId(1),
        region: REGION,
        offset: 0,
        condition: Condition::AtLeast,
        value: 1,
        depends_on: None,
    };
    fabric.command(0, wait).unwrap();
    fabric.command(0, Command::Cancel { operation: OperationId(1) }).unwrap();
    assert_eq!(fabric.finish(1), Err(OperationError::Cancelled));
}

#[test]
fn a_flush_covers_posted_stores_and_long_puts() {
    let mut fabric = pair();
    fabric.memory(0)[..200_000].fill(7);
    fabric.command(0, put(1, at(1, 0), local(0, 200_000))).unwrap();
    fabric.command(0, posted(at(1, 300_000), &[9; 100])).unwrap();
    fabric.command(0, Command::Flush { operation: OperationId(2), target: Some(NodeId(1)) }).unwrap();
    fabric.finish(2).unwrap();
    assert_eq!(fabric.outcome(1), Some(Ok(0)), "the put has ended as well");
    assert!(fabric.memory(1)[..200_000].iter().all(|byte| *byte == 7));
    assert_eq!(fabric.memory(1)[300_000], 9);
}

#[test]
fn a_fence_orders_a_store_behind_a_long_put() {
    let mut fabric = pair();
    fabric.memory(0)[..300_000].fill(7);
    fabric.command(0, put(1, at(1, 0), local(0, 300_000))).unwrap();
    fabric.command(0, Command::Fence { target: Some(NodeId(1)) }).unwrap();
    let flag = store(2, at(1, 400_000), &[1]);
    assert_eq!(fabric.command(0, flag), Err(CommandRefused::Busy), "held back by the fence");
    fabric.submit(0, flag);
    assert!(
        fabric.memory(1)[..300_000].iter().all(|byte| *byte == 7),
        "the data was there before the flag left"
    );
    fabric.finish(2).unwrap();
}

// W-11
#[test]
fn small_stores_share_frames() {
    let mut packed = options(RetransmissionMode::Selective);
    packed.frame_bytes_max = 1514;
    let mut fabric = Fabric::up(ring(2), &packed);
    let before = fabric.counters(0, 0).data_frames_sent;
    let now = fabric.now;
    for index in 0..180u64 {
        fabric.endpoint(0).handle_command(now, posted(at(1, index * 64), &[index as u8; 64])).unwrap();
    }
    fabric.command(0, Command::Flush { operation: OperationId(1), target: None }).unwrap();
    fabric.finish(1).unwrap();
    assert_eq!(
        fabric.counters(0, 0).data_frames_sent - before,
        10,
        "eighteen 64-byte stores to a 1500-byte frame"
    );
    assert!((0..180usize).all(|index| fabric.memory(1)[index * 64..][..64] == [index as u8; 64]));
}

#[test]
fn every_lease_is_released() {
    let mut fabric = Fabric::up(ring(4), &options(RetransmissionMode::Selective));
    fabric.command(0, put(1, at(2, 0), local(0, 100_000))).unwrap();
    fabric.command(1, get(2, at(3, 0), local(0, 100_000))).unwrap();
    fabric.finish(1).unwrap();
    fabric.finish(2).unwrap();
    fabric.run_for(50_000);
    for node in 0..4 {
        assert_eq!(fabric.leases_held(node), 0, "node {node}");
    }
}

#[test]
fn a_transit_hop_is_counted() {
    let mut fabric = Fabric::up(ring(4), &options(RetransmissionMode::Selective));
    fabric.command(0, put(1, at(2, 0), local(0, 40_960))).unwrap();
    fabric.finish(1).unwrap();
    let sent: Vec<u64> = (0..2).map(|port| fabric.counters(0, port).data_frames_sent).collect();
    assert_eq!(sent.iter().sum::<u64>(), 10);
    let via = if sent[0] > 0 { 1 } else { 3 };
    let passed: u64 = (0..2).map(|port| fabric.counters(via, port).forwarded).sum();
    assert!(passed >= 10, "{passed} frames passed on by node {via}");
    let idle: u64 = (0..2).map(|port| fabric.counters(4 - via, port).forwarded).sum();
    assert_eq!(idle, 0);
}

#[test]
fn star_and_mesh_carry_every_operation() {
    for graph in [star(4, 2), mesh(4)] {
        let mut fabric = Fabric::up(graph, &options(RetransmissionMode::Selective));
        let mut id = 0;
        for source in 0..4u16 {
            for target in (0..4u16).filter(|target| *target != source) {
                id += 1;
                let data = [source as u8 * 16 + target as u8 + 1; 1000];
                fabric.submit(usize::from(source), store(id, at(target, u64::from(source) * 1000), &data));
            }
        }
        for id in 1..=id {
            assert_eq!(fabric.finish(id), Ok(0));
        }
        for source in 0..4usize {
            for target in (0..4usize).filter(|target| *target != source) {
                assert_eq!(fabric.memory(target)[source * 1000 + 999], (source * 16 + target + 1) as u8);
            }
        }
    }
}
