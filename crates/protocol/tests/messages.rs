//! Tagged messages: matching, back-pressure, rendezvous, wildcards, cancel, loss.

mod harness;

use harness::*;
use rackloom_protocol::operation::messages::{EAGER_BUDGET_BYTES, EAGER_BYTES_MAX};
use rackloom_protocol::*;

fn send(id: u64, target: u16, tag: u64, offset: u64, length: u64) -> Command<'static> {
    Command::Send { operation: OperationId(id), target: NodeId(target), tag, source: local(offset, length) }
}

fn receive(id: u64, source: Option<u16>, tag: u64, offset: u64, length: u64) -> Command<'static> {
    receive_masked(id, source, tag, 0, offset, length)
}

fn receive_masked(
    id: u64,
    source: Option<u16>,
    tag: u64,
    ignore: u64,
    offset: u64,
    length: u64,
) -> Command<'static> {
    let into = local(offset, length);
    Command::Receive { operation: OperationId(id), source: source.map(NodeId), tag, ignore, into }
}

fn pair() -> Fabric {
    Fabric::up(ring(2), &options(RetransmissionMode::Selective))
}

/// Fills, sends and receives one message of this length. `receive_first`: the receive is posted first.
fn one_message(length: u64, receive_first: bool) {
    let mut fabric = pair();
    let data: Vec<u8> = (0..length).map(|at| (at * 7 + length) as u8).collect();
    fabric.memory(0)[1000..1000 + length as usize].copy_from_slice(&data);
    if receive_first {
        fabric.command(1, receive(1, Some(0), 5, 300_003, 200_000)).unwrap();
        fabric.command(0, send(2, 1, 5, 1000, length)).unwrap();
    } else {
        fabric.command(0, send(2, 1, 5, 1000, length)).unwrap();
        fabric.run_for(50_000);
        fabric.command(1, receive(1, Some(0), 5, 300_003, 200_000)).unwrap();
    }
    assert_eq!(fabric.finish(1), Ok(length), "the receive returns the length");
    assert_eq!(fabric.finish(2), Ok(0));
    assert_eq!(&fabric.memory(1)[300_003..300_003 + length as usize], &data[..], "{length}");
    assert_eq!(fabric.memory(1)[300_003 + length as usize], 0, "not a byte further");
    let matched = fabric.events.iter().any(|(_, node, event)| {
        *node == 1
            && *event
                == Event::MessageMatched { operation: OperationId(1), source: NodeId(0), tag: 5, length }
    });
    assert!(matched);
    fabric.run_for(100_000);
    assert_eq!(fabric.leases_held(1), 0);
}

#[test]
fn messages_of_every_size_in_either_order() {
    for length in [0, 1, 63, 64, EAGER_BYTES_MAX, EAGER_BYTES_MAX + 1, 100_000] {
        one_message(length, true);
        one_message(length, false);
    }
}

// W-24
#[test]
fn matching_is_in_order_of_posting_and_of_arrival() {
    let mut fabric = pair();
    fabric.memory(0)[..4].copy_from_slice(&[1, 2, 3, 4]);
    for id in 0..4u64 {
        fabric.command(0, send(100 + id, 1, id % 2, id, 1)).unwrap();
    }
    fabric.run_for(50_000);
    fabric.command(1, receive(1, Some(0), 1, 10, 1)).unwrap();
    fabric.command(1, receive_masked(2, None, 0, u64::MAX, 11, 1)).unwrap();
    fabric.command(1, receive(3, None, 0, 12, 1)).unwrap();
    fabric.command(1, receive_masked(4, None, 0xff00, 0xff01, 13, 1)).unwrap();
    for id in 1..=4 {
        assert_eq!(fabric.finish(id), Ok(1));
    }
    assert_eq!(fabric.memory(1)[10..14], [2, 1, 3, 4]);
}

#[test]
fn a_wildcard_receive_takes_a_message_from_any_source() {
    let mut fabric = Fabric::up(ring(4), &options(RetransmissionMode::Selective));
    for source in 1..4u16 {
        fabric.memory(usize::from(source))[0] = source as u8;
        fabric.command(0, receive(u64::from(source), None, 9, u64::from(source), 1)).unwrap();
    }
    for source in 1..4u16 {
        fabric.command(usize::from(source), send(10, 0, 9, 0, 1)).unwrap();
    }
    for id in 1..4 {
        fabric.finish(id).unwrap();
    }
    let mut got = fabric.memory(0)[1..4].to_vec();
    got.sort_unstable();
    assert_eq!(got, [1, 2, 3]);
}

#[test]
fn a_missing_receive_blocks_no_other_traffic_and_holds_bounded_memory() {
    let mut fabric = pair();
    let count = 2 * EAGER_BUDGET_BYTES / 4096;
    for id in 0..count {
        fabric.submit(0, send(1000 + id, 1, 7, 0, 4096));
    }
    fabric.run_for(200_000);
    let ended = |fabric: &Fabric| (0..count).filter(|id| fabric.outcome(1000 + id).is_some()).count() as u64;
    assert_eq!(ended(&fabric), EAGER_BUDGET_BYTES / 4096, "the rest waits at the sender for a receive");
    fabric.command(0, store(1, at(1, 900_000), &[1])).unwrap();
    fabric.command(0, put(2, at(1, 800_000), local(0, 50_000))).unwrap();
    fabric.command(1, receive(3, Some(0), 8, 600_000, 10)).unwrap();
    fabric.command(0, send(4, 1, 8, 0, 10)).unwrap();
    for id in [1, 2, 3, 4] {
        assert!(fabric.finish(id).is_ok(), "operation {id} passes the waiting messages");
    }
    for id in 0..count {
        fabric.command(1, receive(5000 + id, Some(0), 7, 400_000, 4096)).unwrap();
        assert_eq!(fabric.finish(5000 + id), Ok(4096));
    }
    fabric.run_for(100_000);
    assert_eq!(ended(&fabric), count);
    fabric.command(0, send(6, 1, 7, 0, 100)).unwrap();
    assert_eq!(fabric.finish(6), Ok(0), "the budget has come back: eager again");
}

#[test]
fn a_message_longer_than_its_buffer_is_an_error() {
    for length in [100, 50_000] {
        let mut fabric = pair();
        fabric.memory(0)[..length as usize].fill(9);
        fabric.command(1, receive(1, None, 0, 500_000, 99)).unwrap();
        fabric.command(0, send(2, 1, 0, 0, length)).unwrap();
        assert_eq!(fabric.finish(1), Err(OperationError::MessageTruncated));
        assert_eq!(fabric.finish(2), Ok(0));
        assert!(fabric.memory(1).iter().all(|byte| *byte == 0));
    }
}

#[test]
fn a_cancelled_receive_takes_no_message() {
    let mut fabric = pair();
    fabric.command(1, receive(1, None, 0, 0, 10)).unwrap();
    fabric.command(1, Command::Cancel { operation: OperationId(1) }).unwrap();
    assert_eq!(fabric.finish(1), Err(OperationError::Cancelled));
    fabric.memory(0)[0] = 5;
    fabric.command(0, send(2, 1, 0, 0, 1)).unwrap();
    fabric.finish(2).unwrap();
    assert_eq!(fabric.memory(1)[0], 0);
    fabric.command(1, receive(3, None, 0, 0, 10)).unwrap();
    assert_eq!(fabric.finish(3), Ok(1));
    let again = fabric.command(1, Command::Cancel { operation: OperationId(3) });
    assert!(matches!(again, Err(CommandRefused::Invalid(_))));
}

#[test]
fn messages_are_delivered_once_under_loss() {
    for mode in [RetransmissionMode::GoBackN, RetransmissionMode::Selective] {
        let mut fabric = Fabric::up(ring(3), &options(mode));
        let mut any = lossy(50, 4);
        fabric.filter = Box::new(move |now, edge, forward, bytes| {
            let kind = bytes[rackloom_protocol::wire::layout::VERSION_KIND] & 15;
            kind > 2 || any(now, edge, forward, bytes)
        });
        for round in 0..100u64 {
            let length = 1 + round * 97;
            fabric.memory(0)[..length as usize].fill(round as u8);
            fabric.command(0, send(2 * round, 1, round, 0, length)).unwrap();
            fabric.command(1, receive(2 * round + 1, Some(0), round, 500_000, 10_000)).unwrap();
            assert_eq!(fabric.finish(2 * round + 1), Ok(length));
            assert_eq!(fabric.finish(2 * round), Ok(0));
            assert!(
                fabric.memory(1)[500_000..500_000 + length as usize].iter().all(|byte| *byte == round as u8)
            );
        }
        assert!(fabric.counters(0, 0).retransmitted > 0);
    }
}

#[test]
fn the_death_of_either_side_ends_sends_and_receives() {
    let mut fabric = Fabric::up(ring(4), &options(RetransmissionMode::Selective));
    fabric.command(0, receive(1, Some(2), 1, 0, 10)).unwrap();
    fabric.command(0, send(2, 2, 1, 0, 100_000)).unwrap();
    fabric.command(0, receive(3, None, 1, 100, 10)).unwrap();
    fabric.run_for(50_000);
    fabric.kill(2);
    assert_eq!(fabric.finish(1), Err(OperationError::Unreachable));
    assert_eq!(fabric.finish(2), Err(OperationError::OutcomeUnknown), "the offer had left");
    fabric.command(1, send(4, 0, 1, 0, 5)).unwrap();
    assert_eq!(fabric.finish(3), Ok(5), "a receive from any source stays");
    let refused = fabric.command(0, receive(5, Some(2), 1, 0, 10));
    assert_eq!(refused, Err(CommandRefused::Unreachable(NodeId(2))));
}

#[test]
fn receives_from_any_source_end_when_no_node_is_left() {
    let mut fabric = Fabric::up(ring(3), &options(RetransmissionMode::Selective));
    fabric.command(2, send(1, 0, 7, 0, 5)).unwrap();
    fabric.finish(1).unwrap();
    fabric.command(0, receive(2, None, 1, 0, 10)).unwrap();
    fabric.kill(1);
    fabric.run_for(5_000_000);
    assert_eq!(fabric.outcome(2), None, "one is left");
    fabric.kill(2);
    assert_eq!(fabric.finish(2), Err(OperationError::Unreachable));
    fabric.command(0, receive(3, None, 7, 0, 10)).unwrap();
    assert_eq!(fabric.finish(3), Ok(5), "what has come is still a message");
    fabric.command(0, receive(4, None, 7, 0, 10)).unwrap();
    assert_eq!(fabric.finish(4), Err(OperationError::Unreachable));
}

#[test]
fn a_receive_from_any_source_waits_for_the_first_node() {
    let mut fabric = Fabric::new(ring(2), &options(RetransmissionMode::Selective));
    fabric.kill(1);
    fabric.command(0, receive(1, None, 1, 0, 10)).unwrap();
    fabric.run_for(5_000_000);
    assert_eq!(fabric.outcome(1), None, "no node was reached before");
    fabric.restart(1, &options(RetransmissionMode::Selective));
    fabric.run_until("both are up", Fabric::all_nodes_reach_each_other);
    fabric.command(1, send(2, 0, 1, 0, 5)).unwrap();
    assert_eq!(fabric.finish(1), Ok(5));
}

#[test]
fn an_offer_of_a_dead_sender_is_forgotten() {
    let mut fabric = Fabric::up(ring(4), &options(RetransmissionMode::Selective));
    fabric.command(2, send(1, 0, 1, 0, 100_000)).unwrap();
    fabric.command(2, send(2, 0, 2, 0, 100)).unwrap();
    fabric.run_for(50_000);
    fabric.kill(2);
    fabric.run_for(1_000_000);
    fabric.command(0, receive(3, None, 2, 0, 1000)).unwrap();
    assert_eq!(fabric.finish(3), Ok(100), "what had come whole is still a message");
    fabric.command(0, receive(4, None, 1, 0, 200_000)).unwrap();
    fabric.run_for(1_000_000);
    assert_eq!(fabric.outcome(4), None);
}
