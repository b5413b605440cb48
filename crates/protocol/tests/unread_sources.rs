//! Unreadable sources: if bytes cannot be read when their frame leaves, the frame carries no data in their
//! place. The operation ends in an error, its signal is not executed, and the stream continues.

mod harness;

use harness::*;
use rackloom_protocol::operation::messages::{EAGER_BUDGET_BYTES, EAGER_BYTES_MAX};
use rackloom_protocol::wire::frame::FrameKind;
use rackloom_protocol::*;

const BOARD: RegionId = RegionId(2);
const BOARD_BYTES: usize = 4096;
/// Length of a put of several frames.
const BYTES: u64 = 20_000;
const FAILED: Result<u64, OperationError> = Err(OperationError::SourceFailed);

fn fabric_with(options: &mut Options, order: OrderScope) -> Fabric {
    options.paths = PathConfig { policy: PathPolicy::Spray, order, keeps_order: true, relays_choose: false };
    let mut fabric = Fabric::up(star(2, 4), options);
    fabric.add_region(1, BOARD, BOARD_BYTES);
    fabric
}

fn fabric(order: OrderScope) -> Fabric {
    fabric_with(&mut options(RetransmissionMode::Selective), order)
}

fn put_and_raise(id: u64, offset: u64, length: u64, word: u64) -> Command<'static> {
    let raise = Signal { region: BOARD, offset: 8 * word, key: KEY, kind: SignalKind::Add, value: 1 };
    let (target, source) = (at(1, offset), local(offset, length));
    Command::Put { operation: OperationId(id), target, source, signal: Some(raise) }
}

fn raised(fabric: &mut Fabric, word: u64) -> u8 {
    fabric.memory_of(1, BOARD)[8 * word as usize]
}

/// Fails the read with this number, counted from 0.
fn unread_once(number: u32) -> Unread {
    let mut count = 0;
    Box::new(move |_, _, _| {
        count += 1;
        count == number + 1
    })
}

fn has_reported(fabric: &Fabric, node: usize) -> bool {
    let reported = Event::SourceFailed { region: REGION };
    fabric.events.iter().any(|(_, at, event)| *at == node && *event == reported)
}

fn send(id: u64, tag: u64, offset: u64, length: u64) -> Command<'static> {
    Command::Send { operation: OperationId(id), target: NodeId(1), tag, source: local(offset, length) }
}

fn receive(id: u64, tag: u64, offset: u64, length: u64) -> Command<'static> {
    let (source, into) = (Some(NodeId(0)), local(offset, length));
    Command::Receive { operation: OperationId(id), source, tag, ignore: 0, into }
}

// W-52 W-53
#[test]
fn no_unreadable_part_of_a_put_is_written() {
    for (order, one_frame_per_poll) in
        OrderScope::ALL.into_iter().flat_map(|order| [(order, false), (order, true)])
    {
        for part in 0..5 {
            let case = format!("{} {part} {one_frame_per_poll}", order.name());
            let mut fabric = fabric(order);
            fabric.one_frame_per_poll = one_frame_per_poll;
            fabric.memory(0).fill(7);
            fabric.memory(1).fill(3);
            fabric.fail_sources(0, unread_once(part));
            fabric.submit(0, put_and_raise(1, 0, BYTES, 0));
            fabric.submit(0, put_and_raise(2, 100_000, BYTES, 1));
            assert_eq!(fabric.finish(1), FAILED, "{case}");
            assert_eq!(fabric.finish(2), Ok(0), "{case}: the next one is as good as any");
            fabric.run_for(1_000_000);
            assert!(has_reported(&fabric, 0), "{case}");
            assert_eq!(raised(&mut fabric, 0), 0, "{case}: raised without its data");
            assert_eq!(raised(&mut fabric, 1), 1, "{case}");
            let bytes = &fabric.memory(1)[..BYTES as usize];
            assert!(bytes.iter().all(|byte| matches!(byte, 3 | 7)), "{case}: bytes that no node has sent");
            assert!(bytes.contains(&3), "{case}: bytes that could not be read have come");
            assert_eq!(fabric.leases_held(1), 0, "{case}");
        }
    }
}

/// Checked for runs of frames and single frames, with and without checks, without credit resynchronisation,
/// and with link retry.
#[test]
fn a_void_takes_the_credits_of_its_data() {
    for variant in 0..4 {
        let mut options = options(RetransmissionMode::GoBackN);
        (options.end_to_end_check, options.resync) = (variant == 1, variant != 2);
        options.retry = (variant == 3).then_some(RETRY);
        let mut fabric = Fabric::up(ring(2), &options);
        fabric.memory(0).fill(7);
        let mut count = 0;
        fabric.fail_sources(
            0,
            Box::new(move |_, _, _| {
                count += 1;
                count % 3 == 0
            }),
        );
        for id in 0..60 {
            fabric.memory(1)[..64].fill(0);
            fabric.submit(0, put(id, at(1, 0), local(0, 64)));
            let (ended, came) = (fabric.finish(id), fabric.memory(1)[0] == 7);
            assert!(matches!((ended, came), (Ok(0), true) | (FAILED, false)), "{variant} {id}: {ended:?}");
            assert_eq!(ended.is_err(), id % 3 == 2, "{variant} {id}");
        }
        fabric.run_for(1_000_000);
        for (edge, forward, balance) in fabric.balances() {
            let balance = balance.expect("links that are up");
            assert_eq!(balance.held + balance.leaked, 0, "{variant}: {edge} {forward} {balance:?}");
        }
    }
}

// W-53
#[test]
fn the_accepted_packet_decides_the_outcome() {
    for (loses_first, expected) in [(true, FAILED), (false, Ok(0))] {
        let mut fabric = fabric(OrderScope::Class);
        fabric.memory(0).fill(7);
        let mut seen = 0;
        // Either the data or all acknowledgements are lost for a while. In both cases the data is
        // retransmitted, and cannot be read then.
        fabric.filter = Box::new(move |_, _, _, bytes| {
            let kind = FrameKind::peek(bytes);
            let is_data = kind == Some(FrameKind::Data) && bytes[wire::layout::CLASS] == 2;
            if loses_first {
                seen += u32::from(is_data);
                return !is_data || seen > 1;
            }
            seen += u32::from(kind == Some(FrameKind::Ack));
            kind != Some(FrameKind::Ack) || seen > 4
        });
        let mut count = 0;
        fabric.fail_sources(
            0,
            Box::new(move |_, _, _| {
                count += 1;
                count > 1
            }),
        );
        fabric.submit(0, put_and_raise(1, 0, 64, 0));
        assert_eq!(fabric.finish(1), expected);
        assert!(has_reported(&fabric, 0), "it was retransmitted");
        assert_eq!(raised(&mut fabric, 0), u8::from(expected.is_ok()));
        assert_eq!(fabric.memory(1)[0] == 7, expected.is_ok());
    }
}

#[test]
fn a_get_of_unreadable_memory_is_refused() {
    for part in 0..5 {
        let mut fabric = fabric(OrderScope::Class);
        fabric.memory(1).fill(7);
        fabric.memory(0).fill(3);
        fabric.fail_sources(1, unread_once(part));
        fabric.submit(0, get(1, at(1, 0), local(0, BYTES)));
        assert_eq!(fabric.finish(1), FAILED, "{part}");
        assert!(has_reported(&fabric, 1));
        fabric.run_for(1_000_000);
        assert!(
            fabric.memory(0).iter().all(|byte| matches!(byte, 3 | 7)),
            "{part}: bytes that no node has sent"
        );
        fabric.submit(0, get(2, at(1, 0), local(0, BYTES)));
        assert_eq!(fabric.finish(2), Ok(0), "{part}: the next one is as good as any");
    }
}

#[test]
fn an_unreadable_message_matches_no_receive_and_releases_its_budget() {
    let mut fabric = Fabric::up(ring(2), &options(RetransmissionMode::Selective));
    fabric.memory(0).fill(7);
    fabric.command(1, receive(1, 5, 0, 4096)).unwrap();
    let count = 2 * EAGER_BUDGET_BYTES / EAGER_BYTES_MAX;
    fabric.fail_sources(0, Box::new(|_, _, _| true));
    for id in 100..100 + count {
        fabric.submit(0, send(id, 5, 0, EAGER_BYTES_MAX));
        assert_eq!(fabric.finish(id), FAILED);
    }
    assert_eq!(fabric.outcome(1), None, "nothing has come");
    fabric.fail_sources(0, Box::new(|_, _, _| false));
    fabric.submit(0, send(2, 5, 0, 64));
    assert_eq!(fabric.finish(1), Ok(64));
    assert_eq!(fabric.finish(2), Ok(0));
    // No receive matches these messages: only those within the budget end.
    for id in 10..10 + EAGER_BUDGET_BYTES / EAGER_BYTES_MAX {
        fabric.submit(0, send(id, 6, 0, EAGER_BYTES_MAX));
        assert_eq!(fabric.finish(id), Ok(0), "the whole budget is there");
    }
}

// W-54
#[test]
fn both_ends_of_an_unreadable_offered_message_get_an_error() {
    let mut fabric = Fabric::up(ring(2), &options(RetransmissionMode::Selective));
    fabric.memory(0).fill(7);
    fabric.fail_sources(0, unread_once(1));
    fabric.command(1, receive(1, 5, 0, BYTES)).unwrap();
    fabric.submit(0, send(2, 5, 0, BYTES));
    assert_eq!(fabric.finish(1), FAILED);
    assert_eq!(fabric.finish(2), FAILED);
    fabric.command(1, receive(3, 5, 0, BYTES)).unwrap();
    fabric.submit(0, send(4, 5, 0, BYTES));
    assert_eq!((fabric.finish(3), fabric.finish(4)), (Ok(BYTES), Ok(0)));
}

/// Any read may fail, and frames are lost, duplicated and late: each visible signal has its data, and the
/// initiator gets the right results.
#[test]
fn signals_and_results_agree_under_read_failures() {
    let mut failed = 0;
    for seed in 0..20 {
        let order = OrderScope::ALL[seed as usize % OrderScope::ALL.len()];
        let mut fabric = fabric(order);
        fabric.shuffle = Some(seed + 1);
        fabric.filter = lossy_data_and_acks(30, seed);
        fabric.memory(0).fill(7);
        let mut is_due = one_in_eight(seed);
        fabric.fail_sources(0, Box::new(move |_, _, _| is_due()));
        for id in 0..60 {
            let length = [64, 300, 5_000, BYTES][id as usize % 4];
            let offset = id % 40 * 25_000;
            fabric.memory(1)[offset as usize..][..25_000].fill(0);
            fabric.submit(0, put_and_raise(id, offset, length, id));
            let ended = fabric.finish(id);
            let is_whole =
                fabric.memory(1)[offset as usize..][..length as usize].iter().all(|byte| *byte == 7);
            let observed = (ended, is_whole, raised(&mut fabric, id));
            assert!(
                matches!(observed, (Ok(0), true, 1) | (FAILED, false, 0)),
                "{} seed {seed} put {id}: {observed:?}",
                order.name()
            );
            failed += u32::from(ended.is_err());
        }
    }
    assert!((100..900).contains(&failed), "{failed} of 1200 failed");
}
