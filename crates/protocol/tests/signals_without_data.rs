//! Signals without data: none is executed after a memory failure, after a revocation, or after the sender
//! gave its data up.

mod harness;

use harness::*;
use rackloom_protocol::wire::frame::FrameKind;
use rackloom_protocol::*;

/// Region of the signal words; no fault affects it.
const BOARD: RegionId = RegionId(2);
const BOARD_BYTES: usize = 4096;
/// Length of a put of several frames.
const BYTES: u64 = 20_000;

fn fabric(order: OrderScope) -> Fabric {
    let mut options = options(RetransmissionMode::Selective);
    options.paths = PathConfig { policy: PathPolicy::Spray, order, keeps_order: true, relays_choose: false };
    let mut fabric = Fabric::up(star(2, 4), &options);
    fabric.add_region(1, BOARD, BOARD_BYTES);
    fabric
}

/// Returns a put from node 0 to the same offset of node 1, with a signal to this word.
fn put_and_raise(id: u64, offset: u64, length: u64, word: u64) -> Command<'static> {
    let raise = Signal { region: BOARD, offset: 8 * word, key: KEY, kind: SignalKind::Add, value: 1 };
    let (target, source) = (at(1, offset), local(offset, length));
    Command::Put { operation: OperationId(id), target, source, signal: Some(raise) }
}

fn raised(fabric: &mut Fabric, word: u64) -> u8 {
    fabric.memory_of(1, BOARD)[8 * word as usize]
}

fn is_write(request: &MemoryRequest<'_>) -> bool {
    matches!(request.access, MemoryAccess::Write { .. })
}

/// Fails the write with this number, counted from 0.
fn fails_once(number: u32) -> Fails {
    let mut count = 0;
    Box::new(move |request| {
        count += u32::from(is_write(request));
        is_write(request) && count == number + 1
    })
}

// W-40
#[test]
fn a_put_that_fails_in_part_raises_no_signal() {
    for order in OrderScope::ALL {
        for part in 0..5 {
            let mut fabric = fabric(order);
            fabric.memory(0).fill(7);
            fabric.fail_memory(1, fails_once(part));
            fabric.submit(0, put_and_raise(1, 0, BYTES, 0));
            fabric.submit(0, put_and_raise(2, 100_000, BYTES, 1));
            assert_eq!(fabric.finish(1), Err(OperationError::MemoryFailed), "{} {part}", order.name());
            assert_eq!(fabric.finish(2), Ok(0), "{} {part}: the next one is as good as any", order.name());
            fabric.run_for(1_000_000);
            assert_eq!(raised(&mut fabric, 0), 0, "{} {part}: raised without its data", order.name());
            assert_eq!(raised(&mut fabric, 1), 1, "{} {part}", order.name());
            assert_eq!(fabric.leases_held(1), 0);
        }
    }
}

#[test]
fn a_signal_in_the_frame_of_its_data_is_refused_with_it() {
    let mut fabric = fabric(OrderScope::Class);
    fabric.fail_memory(1, fails_once(0));
    fabric.submit(0, put_and_raise(1, 0, 64, 0));
    assert_eq!(fabric.finish(1), Err(OperationError::MemoryFailed));
    assert_eq!(raised(&mut fabric, 0), 0);
    // Only a signal that counts depends on earlier data.
    fabric.submit(0, put_and_raise(2, 0, 0, 1));
    assert_eq!(fabric.finish(2), Ok(0));
    assert_eq!(raised(&mut fabric, 1), 1);
}

/// The refusal of the data arrives at the initiator long before the signal arrives.
#[test]
fn a_late_signal_of_refused_data_is_refused() {
    let mut fabric = fabric(OrderScope::Class);
    fabric.fail_memory(1, fails_once(0));
    fabric.filter = Box::new(move |now, _, _, bytes| {
        if FrameKind::peek(bytes) != Some(FrameKind::Data) || bytes[wire::layout::CLASS] != 2 {
            return true;
        }
        // The packet with the signal is lost for a while.
        wire::layout::u32_at(bytes, wire::layout::PSN) < 4 || now.0 > 3_000_000
    });
    fabric.submit(0, put_and_raise(1, 0, BYTES, 0));
    let is_refused = |fabric: &Fabric| {
        fabric.events.iter().any(|(_, _, event)| matches!(event, Event::AccessRefused { .. }))
    };
    fabric.run_until("refusal of the data", is_refused);
    fabric.run_for(1_000_000);
    assert_eq!(fabric.outcome(1), None, "the signal is still in flight");
    assert_eq!(fabric.finish(1), Err(OperationError::MemoryFailed));
    assert_eq!(raised(&mut fabric, 0), 0);
}

// W-40
#[test]
fn a_region_revoked_during_a_put_raises_no_signal() {
    let mut broken_off = 0;
    for polls in 0..60 {
        let mut fabric = fabric(OrderScope::Class);
        fabric.shuffle = Some(polls / 10 + 1);
        fabric.memory(0).fill(7);
        fabric.submit(0, put_and_raise(1, 0, BYTES, 0));
        for _ in 0..polls % 10 {
            fabric.step();
        }
        let came = fabric.memory(1)[..BYTES as usize].iter().filter(|byte| **byte == 7).count() as u64;
        fabric.endpoint(1).revoke(REGION);
        let ended = fabric.finish(1);
        fabric.run_for(1_000_000);
        broken_off += u32::from(came > 0 && came < BYTES);
        let is_whole = came == BYTES;
        assert_eq!(ended, if is_whole { Ok(0) } else { Err(OperationError::Revoked) }, "after {polls} polls");
        assert_eq!(raised(&mut fabric, 0), u8::from(is_whole), "after {polls} polls and {came} bytes");
    }
    assert!(broken_off > 5, "none was broken off in the middle");
}

/// The signal has arrived and waits for a packet that its sender will never send: the sender has given the
/// target up, and reports that when the target returns.
#[test]
fn the_signal_of_data_that_its_sender_gave_up_is_refused() {
    let mut fabric = fabric(OrderScope::Class);
    fabric.memory(0).fill(7);
    let cut = fabric.now.0 + 20 * DELAY_NS;
    let healed = cut + 3_000_000;
    fabric.filter = Box::new(move |now, _, _, bytes| {
        let is_second = FrameKind::peek(bytes) == Some(FrameKind::Data)
            && bytes[wire::layout::CLASS] == 2
            && wire::layout::u32_at(bytes, wire::layout::PSN) == 1;
        now.0 > healed || (now.0 < cut && !is_second)
    });
    fabric.submit(0, put_and_raise(1, 0, BYTES, 0));
    assert_eq!(fabric.finish(1), Err(OperationError::OutcomeUnknown));
    fabric.run_until("return", |fabric| fabric.all_nodes_reach_each_other() && fabric.now.0 > healed);
    fabric.run_for(2_000_000);
    assert_eq!(fabric.memory(1)[5000], 0, "a part of the data never came");
    assert_eq!(raised(&mut fabric, 0), 0, "raised without its data");
    fabric.submit(0, put_and_raise(2, 0, BYTES, 1));
    assert_eq!(fabric.finish(2), Ok(0), "the stream continues");
    assert_eq!(raised(&mut fabric, 1), 1);
    fabric.submit(0, Command::Flush { operation: OperationId(3), target: None });
    assert_eq!(fabric.finish(3), Ok(0), "no posted store has failed");
}

/// Any write may fail, and frames are lost, duplicated and late: each visible signal has its data, and the
/// initiator gets the right results.
#[test]
fn signals_and_results_agree_under_write_failures() {
    let mut failed = 0;
    for seed in 0..40 {
        let order = OrderScope::ALL[seed as usize % OrderScope::ALL.len()];
        let mut fabric = fabric(order);
        fabric.shuffle = Some(seed + 1);
        fabric.filter = lossy_data_and_acks(30, seed);
        fabric.memory(0).fill(7);
        let mut is_due = one_in_eight(seed);
        fabric.fail_memory(1, Box::new(move |request| is_due() && is_write(request)));
        for id in 0..60 {
            let (length, slot) = ([64, 300, 5_000, BYTES][id as usize % 4], id % 40);
            fabric.memory(1)[slot as usize * 25_000..][..25_000].fill(0);
            fabric.submit(0, put_and_raise(id, slot * 25_000, length, id));
            if id % 3 == 2 {
                for id in id - 2..=id {
                    let ended = fabric.finish(id);
                    let length = [64, 300, 5_000, BYTES as usize][id as usize % 4];
                    let data = &fabric.memory(1)[id as usize % 40 * 25_000..][..length];
                    let is_whole = data.iter().all(|byte| *byte == 7);
                    let observed = (ended.is_ok(), is_whole, raised(&mut fabric, id));
                    assert!(
                        observed == (true, true, 1) || observed == (false, false, 0),
                        "{} seed {seed} put {id} ended {ended:?}: {observed:?}",
                        order.name()
                    );
                }
            }
        }
        failed += (0..60).filter(|id| fabric.outcome(*id) != Some(Ok(0))).count();
    }
    assert!((200..1800).contains(&failed), "{failed} of 2400 failed");
}
