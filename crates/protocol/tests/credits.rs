//! Credits of whole links: none are created, and lost ones are recovered or leak, as configured.

mod harness;

use harness::*;
use rackloom_protocol::link::credits::CreditBalance;
use rackloom_protocol::wire::frame::FrameKind;
use rackloom_protocol::wire::layout;
use rackloom_protocol::*;

fn tight(resync: bool) -> Options {
    let mut options = options(RetransmissionMode::Selective);
    options.credits.limit = 90;
    options.resync = resync;
    options
}

fn is_data(bytes: &[u8]) -> bool {
    bytes[layout::VERSION_KIND] & 15 == FrameKind::Data as u8
}

/// Returns the credits of every direction. They must balance at any time.
fn balanced(fabric: &mut Fabric) -> Vec<CreditBalance> {
    let now = fabric.now;
    let balance = fabric.balances().into_iter();
    balance
        .map(|(edge, forward, balance)| {
            let balance =
                balance.unwrap_or_else(|| panic!("{now:?}: edge {edge} {forward}: credits from nowhere"));
            let CreditBalance { available, in_flight, held, returning, leaked } = balance;
            assert_eq!(
                available + in_flight + held + returning + leaked,
                90,
                "{now:?}: edge {edge} {forward}"
            );
            balance
        })
        .collect()
}

/// Every node sends to the opposite node through relays. The credits are checked after every step.
fn work(fabric: &mut Fabric) {
    for node in 0..4u16 {
        let target = at((node + 2) % 4, 0);
        fabric.command(usize::from(node), put(u64::from(node), target, local(0, 300_000))).unwrap();
    }
    while (0..4).any(|id| fabric.outcome(id).is_none()) {
        fabric.step();
        balanced(fabric);
        assert!(fabric.now.0 < 2_000_000_000, "{:?}", fabric.endpoint(0).waiting_for());
    }
}

// W-19
#[test]
fn credits_are_conserved_at_any_time_and_none_leaks_without_loss() {
    for resync in [true, false] {
        let mut fabric = Fabric::up(ring(4), &tight(resync));
        work(&mut fabric);
        fabric.run_for(1_000_000);
        assert!(balanced(&mut fabric).iter().all(|balance| balance.leaked == 0 && balance.in_flight == 0));
    }
}

/// Drops every n-th data frame of one link.
fn lose_every(nth: u32) -> Filter {
    let mut count = 0;
    Box::new(move |_, edge, forward, bytes| {
        let counts = edge == 0 && forward && is_data(bytes);
        count += u32::from(counts);
        !(counts && count % nth == 0)
    })
}

// W-20
#[test]
fn with_resync_the_credits_of_lost_frames_are_recovered() {
    let mut fabric = Fabric::up(ring(4), &tight(true));
    fabric.filter = lose_every(10);
    work(&mut fabric);
    assert!(fabric.counters(1, 1).missing > 5, "frames were lost");
    fabric.filter = Box::new(|_, _, _, _| true);
    fabric.command(0, put(9, at(1, 0), local(0, 5_000))).unwrap();
    fabric.finish(9).unwrap();
    fabric.run_for(1_000_000);
    assert!(balanced(&mut fabric).iter().all(|balance| balance.leaked == 0));
}

// W-30
#[test]
fn without_resync_credits_leak_until_the_link_stops_and_return_when_it_goes_down() {
    let mut fabric = Fabric::up(ring(2), &tight(false));
    fabric.filter = lose_every(10);
    fabric.command(0, put(1, at(1, 0), local(0, 900_000))).unwrap();
    let mut leaked = 0;
    for _ in 0..40 {
        fabric.run_for(200_000);
        let balance = balanced(&mut fabric)[0];
        assert!(balance.leaked >= leaked, "a leak closes by itself");
        leaked = balance.leaked;
    }
    // A largest frame costs 35 credits, and a member's own frame leaves only if two would fit.
    assert!(leaked > 90 - 2 * 35, "{leaked} credits leaked");
    let sent = fabric.counters(0, 0).data_frames_sent;
    fabric.run_for(5_000_000);
    assert_eq!(fabric.counters(0, 0).data_frames_sent, sent, "nothing moves any more");
    assert_eq!(fabric.outcome(1), None);

    fabric.filter = Box::new(|_, _, _, _| true);
    let now = fabric.now;
    fabric.endpoint(0).administer_link(now, PortId(0), false);
    fabric.run_for(1_000_000);
    let now = fabric.now;
    fabric.endpoint(0).administer_link(now, PortId(0), true);
    fabric.run_until("return", Fabric::all_nodes_reach_each_other);
    assert_eq!(balanced(&mut fabric)[0].leaked, 0);
    let ended = fabric.finish(1);
    assert!(matches!(ended, Ok(0) | Err(OperationError::OutcomeUnknown)), "{ended:?}");
    fabric.command(0, put(2, at(1, 0), local(0, 300_000))).unwrap();
    assert_eq!(fabric.finish(2), Ok(0), "all credits are back");
}

#[test]
fn the_credits_of_a_corrupted_frame_leak_as_those_of_a_lost_one() {
    let mut options = tight(false);
    options.credits.limit = 200;
    let mut fabric = Fabric::up(ring(2), &options);
    let mut count = 0;
    fabric.filter = Box::new(move |_, _, forward, bytes| {
        if forward && is_data(bytes) {
            count += 1;
            if count == 3 {
                bytes[1000] ^= 1;
            }
        }
        true
    });
    fabric.command(0, put(1, at(1, 0), local(0, 100_000))).unwrap();
    fabric.finish(1).unwrap();
    fabric.run_for(1_000_000);
    assert_eq!(fabric.counters(1, 0).dropped_for(DropReason::HopCheck), 1);
    let (_, _, balance) = fabric.balances()[0];
    // 4096 bytes behind headers of 130, and 16 more.
    assert_eq!(balance.map(|balance| balance.leaked), Some(34));
}

#[test]
fn narrow_updates_send_more_credit_frames_than_wide_ones() {
    let updates = |spacing| {
        let mut options = tight(true);
        options.credits.limit = 720;
        options.update_spacing = Some(spacing);
        let mut fabric = Fabric::up(ring(2), &options);
        fabric.command(0, put(1, at(1, 0), local(0, 900_000))).unwrap();
        fabric.finish(1).unwrap();
        fabric.counters(1, 0).credit_updates
    };
    assert!(updates(30) > 2 * updates(300), "{} and {}", updates(30), updates(300));
}

// W-20
#[test]
fn an_impossible_counter_is_counted_at_its_port() {
    let mut fabric = Fabric::up(ring(2), &options(RetransmissionMode::Selective));
    fabric.filter = Box::new(|_, edge, forward, bytes| {
        if edge == 0 && forward && bytes[wire::layout::VERSION_KIND] & 15 == 4 {
            wire::layout::put_u32(bytes, wire::layout::FREED, 1 << 30);
            let check = wire::hop_check(bytes, true);
            wire::layout::put_u32(bytes, wire::layout::HOP_CHECK, check);
        }
        true
    });
    fabric.run_for(250_000);
    assert!(fabric.counters(1, 0).credit_violations >= 2);
    assert_eq!(fabric.counters(0, 0).credit_violations, 0);
}
