//! Virtual channels of whole links: each has a queue and credits, and frames change channels where the rules
//! require it.

mod harness;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use harness::*;
use rackloom_protocol::forwarding::waits::cycle;
use rackloom_protocol::link::credits::CreditBalance;
use rackloom_protocol::wire::frame::{Frame, FrameKind};
use rackloom_protocol::wire::layout;
use rackloom_protocol::*;

fn is_data(bytes: &[u8]) -> bool {
    bytes[layout::VERSION_KIND] & 15 == FrameKind::Data as u8
}

fn with_channels(channels: ChannelConfig) -> Options {
    Options { channels, ..options(RetransmissionMode::Selective) }
}

/// Returns a ring in which every node puts to the third node after it, with small buffers, without a bubble,
/// and with own frames first.
fn all_send(channels: ChannelConfig, frames: u32) -> Fabric {
    let mut options = with_channels(channels);
    options.credits.limit = 35 * frames * options.channels.count() as u32;
    options.forwarding =
        ForwardingConfig { bubble: false, priority: ForwardingPriority::Own, ..ForwardingConfig::default() };
    options.datelines = vec![7];
    let mut fabric = Fabric::up(ring(8), &options);
    for node in 0..8u16 {
        let target = at((node + 3) % 8, 500_000);
        fabric.command(usize::from(node), put(u64::from(node), target, local(0, 200_000))).unwrap();
    }
    fabric
}

// W-34
#[test]
fn a_dateline_prevents_the_deadlock_of_a_ring() {
    for rise in [Rise::Dateline, Rise::Hop] {
        let levels = if rise == Rise::Hop { 4 } else { 2 };
        for frames in [1, 2, 4] {
            let one_lane = ChannelConfig { rise, levels, ..ChannelConfig::default() };
            let mut fabric = all_send(one_lane, frames);
            (0..8).for_each(|id| assert_eq!(fabric.finish(id), Ok(0), "{rise:?}, {frames} frames of buffer"));
        }
    }
    // An equal number of channels, of which frames use one.
    let mut fabric = all_send(ChannelConfig { levels: 2, ..ChannelConfig::default() }, 1);
    fabric.run_for(50_000_000);
    assert!((0..8).all(|id| fabric.outcome(id).is_none()));
    let waits = fabric.waits();
    let cycle = cycle(&waits).expect("a circle of full buffers");
    assert!(cycle.len() == 8 && cycle.iter().all(|wait| wait.channel == Some(Channel(0))), "{cycle:?}");
}

// W-32
#[test]
fn frames_name_the_channel_of_their_class_and_level_and_its_counters() {
    let options = Options {
        datelines: vec![0],
        ..with_channels(ChannelConfig { rise: Rise::Dateline, levels: 2, ..ChannelConfig::by_class() })
    };
    let mut fabric = Fabric::up(ring(4), &options);
    let seen = Rc::new(RefCell::new(BTreeSet::new()));
    let sink = seen.clone();
    fabric.filter = Box::new(move |_, edge, _, bytes| {
        if is_data(bytes) {
            let (class, channel) = (bytes[layout::CLASS], bytes[layout::CHANNEL]);
            sink.borrow_mut().insert((edge, class, channel));
        }
        true
    });
    // One link without the dateline, and one with it: node 0 to 3 over edge 3, to 1 over edge 0.
    for (id, target) in [(1, 3), (2, 1)] {
        fabric.command(0, put(id, at(target, 0), local(0, 9_000))).unwrap();
        fabric.command(0, load(10 + id, at(target, 0), local(0, 16))).unwrap();
        fabric.finish(id).unwrap();
        fabric.finish(10 + id).unwrap();
    }
    let expected = [(0, 0, 4), (0, 1, 5), (0, 2, 6), (3, 0, 0), (3, 1, 1), (3, 2, 2)];
    assert_eq!(seen.borrow().iter().copied().collect::<Vec<_>>(), expected);
}

// W-33
#[test]
fn a_frame_on_a_channel_that_the_link_does_not_have_is_dropped() {
    // With retry the hop check covers the whole frame, and the test can compute it.
    let options = Options { retry: Some(RETRY), ..with_channels(ChannelConfig::by_class()) };
    let mut fabric = Fabric::up(ring(2), &options);
    fabric.filter = Box::new(|_, _, forward, bytes| {
        if forward && is_data(bytes) {
            bytes[layout::CHANNEL] = 4;
            wire::seal_hop(bytes);
        }
        true
    });
    fabric.command(0, store(1, at(1, 0), &[1; 8])).unwrap();
    fabric.run_for(1_000_000);
    assert_eq!(fabric.outcome(1), None);
    assert!(fabric.counters(1, 0).dropped_for(DropReason::Malformed) > 0);
    fabric.filter = Box::new(|_, _, _, _| true);
    assert_eq!(fabric.finish(1), Ok(0));
}

// W-32
#[test]
fn ends_with_different_channels_do_not_become_neighbours() {
    let mut fabric = Fabric::new(ring(2), &with_channels(ChannelConfig::by_class()));
    fabric.restart(1, &options(RetransmissionMode::Selective));
    fabric.run_for(1_000_000);
    assert!(!fabric.all_nodes_reach_each_other());
    assert!(fabric.counters(0, 0).dropped_for(DropReason::UnknownSender) > 0);
}

/// Stores are not blocked by bulk data that waits for credits.
#[test]
fn a_channel_without_credits_blocks_no_other_channel() {
    let mut options = with_channels(ChannelConfig::by_class());
    options.credits.limit = 4 * 80;
    let mut fabric = Fabric::up(star(3, 1), &options);
    // Every credit of the bulk channel toward node 1 is lost on its return: its frames stop at the switch.
    fabric.filter = Box::new(|_, edge, forward, bytes| {
        let is_toward_switch = edge == 1 && forward;
        !(is_toward_switch && bytes[layout::CHANNEL] == 2)
    });
    fabric.command(0, put(1, at(1, 0), local(0, 900_000))).unwrap();
    fabric.run_for(2_000_000);
    assert_eq!(fabric.outcome(1), None, "bulk stands still");
    for id in 10..40 {
        fabric.command(0, store(id, at(1, 999_000), &[7; 64])).unwrap();
        fabric.command(2, load(id + 100, at(1, 999_000), local(0, 64))).unwrap();
        assert_eq!((fabric.finish(id), fabric.finish(id + 100)), (Ok(0), Ok(0)));
    }
    assert_eq!(fabric.outcome(1), None);
    fabric.filter = Box::new(|_, _, _, _| true);
    assert_eq!(fabric.finish(1), Ok(0));
}

/// All operations at once over links that lose frames: the credits of each channel balance at any time, and
/// no operation is lost or applied twice.
#[test]
fn credits_of_every_channel_balance_under_loss_with_and_without_retry() {
    for retry in [None, Some(RETRY)] {
        let mut options = with_channels(ChannelConfig {
            rise: Rise::Dateline,
            levels: 2,
            arbiter: ArbiterKind::Weighted,
            weights: vec![4, 4, 1, 1],
            ..ChannelConfig::by_class()
        });
        (options.credits.limit, options.datelines, options.retry) = (8 * 90, vec![3], retry);
        let mut fabric = Fabric::up(ring(4), &options);
        fabric.filter = lossy(20, 5);
        for node in 0..4u16 {
            let (id, opposite) = (u64::from(node), (node + 2) % 4);
            fabric.command(usize::from(node), put(id, at(opposite, 0), local(0, 100_000))).unwrap();
            fabric
                .command(usize::from(node), get(10 + id, at(opposite, 200_000), local(400_000, 50_000)))
                .unwrap();
            fabric.command(usize::from(node), fetch_add(20 + id, at((node + 1) % 4, 900_000), 1)).unwrap();
        }
        let ids = || (0..4).chain(10..14).chain(20..24);
        while ids().any(|id| fabric.outcome(id).is_none()) {
            fabric.step();
            // A replayed frame is on the wire twice and takes its credits once.
            let balance = if retry.is_none() { fabric.balances() } else { Vec::new() };
            for (edge, forward, balance) in balance {
                let balance =
                    balance.unwrap_or_else(|| panic!("edge {edge} {forward}: credits from nowhere"));
                let CreditBalance { available, in_flight, held, returning, leaked } = balance;
                assert_eq!(available + in_flight + held + returning + leaked, 90);
            }
            assert!(fabric.now.0 < 2_000_000_000, "{:?}", fabric.endpoint(0).waiting_for());
        }
        assert!(ids().all(|id| fabric.outcome(id).is_some_and(|outcome| outcome.is_ok())));
        for node in 0..4 {
            assert_eq!(fabric.memory(node)[900_000..900_008], 1_u64.to_le_bytes());
        }
        fabric.filter = Box::new(|_, _, _, _| true);
        fabric.run_for(5_000_000);
        let balance = fabric.balances();
        assert!(
            balance.iter().all(|(_, _, balance)| balance.is_some_and(|balance| balance.leaked == 0)),
            "{balance:?}"
        );
    }
}

#[test]
fn the_line_of_a_frame_names_its_channel() {
    let mut fabric = Fabric::up(ring(2), &with_channels(ChannelConfig::by_class()));
    let lines = Rc::new(RefCell::new(Vec::new()));
    let sink = lines.clone();
    fabric.filter = Box::new(move |_, _, forward, bytes| {
        let (to, from) = if forward { (1, 0) } else { (0, 1) };
        let mac = |node| wire::address::mac(NodeId(node), Plane(0));
        let frame = Frame::parse(bytes, 0x88b5, mac(to), mac(from), 7).expect("our own frames parse");
        sink.borrow_mut().push(wire::dump::line(&frame));
        true
    });
    fabric.command(0, put(1, at(1, 0), local(0, 5_000))).unwrap();
    fabric.finish(1).unwrap();
    let lines = lines.borrow();
    assert!(lines.iter().any(|line| line.starts_with("data m0->m1 bulk psn 0 on channel 2")), "{lines:?}");
}

/// Switch with one undivided link. A frame from that link leaves over another link in its lane, one level
/// higher.
// W-44
#[test]
fn over_an_undivided_link_frames_keep_their_channels_and_share_its_credits() {
    for retry in [None, Some(RETRY)] {
        let rising = ChannelConfig { rise: Rise::Hop, levels: 2, ..ChannelConfig::by_class() };
        let options = Options { undivided: vec![0], retry, ..with_channels(rising) };
        let mut fabric = Fabric::up(star(2, 1), &options);
        let seen = Rc::new(RefCell::new(BTreeSet::new()));
        let sink = seen.clone();
        fabric.filter = Box::new(move |_, edge, forward, bytes| {
            if forward == (edge == 0) && is_data(bytes) {
                sink.borrow_mut().insert((edge, bytes[layout::CHANNEL]));
            }
            true
        });
        for (id, command) in [(1, put(1, at(1, 0), local(0, 9_000))), (2, load(2, at(1, 0), local(0, 16)))] {
            fabric.command(0, command).unwrap();
            fabric.finish(id).unwrap();
        }
        assert_eq!(seen.borrow().iter().copied().collect::<Vec<_>>(), [(0, 0), (0, 2), (1, 4), (1, 6)]);
        fabric.run_for(5_000_000);
        let balance = fabric.balances();
        let balanced = |balance: &Option<CreditBalance>| {
            balance.is_some_and(|balance| balance.held == 0 && balance.leaked == 0)
        };
        assert!(balance.iter().all(|(_, _, balance)| balanced(balance)), "{balance:?}");
        assert_eq!(balance.iter().filter(|(edge, ..)| *edge == 0).count(), 2, "one account per direction");
        assert_eq!(
            balance.iter().filter(|(edge, ..)| *edge == 1).count(),
            16,
            "eight accounts per direction"
        );
    }
}
