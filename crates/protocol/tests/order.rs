//! Order scopes: kept under loss, duplication and reordering, and checked; violated if members do not keep
//! them.

mod harness;

use harness::*;
use rackloom_protocol::wire::frame::FrameKind;
use rackloom_protocol::*;

const BYTES: u64 = 60_000;
const SIGNAL: u64 = 900_000;

fn of(order: OrderScope, keeps_order: bool) -> Options {
    let mut options = options(RetransmissionMode::Selective);
    options.paths = PathConfig { policy: PathPolicy::Spray, order, keeps_order, relays_choose: false };
    options
}

fn put_with_signal(id: u64, offset: u64, source: LocalRange, value: u64) -> Command<'static> {
    let signal = Signal { region: REGION, offset: SIGNAL, key: KEY, kind: SignalKind::Set, value };
    Command::Put { operation: OperationId(id), target: at(1, offset), source, signal: Some(signal) }
}

fn broken(fabric: &Fabric) -> Vec<OrderScope> {
    let broken = fabric.events.iter().filter_map(|(_, _, event)| match event {
        Event::OrderBroken { scope, .. } => Some(*scope),
        _ => None,
    });
    broken.collect()
}

/// Puts with signals to overlapping ranges from node 0 to node 1, among stores and fetch-adds. At each signal
/// its data must be visible.
fn work(fabric: &mut Fabric, what: &str) {
    for round in 1..=30u64 {
        let (fill, id) = (round as u8, round * 10);
        fabric.memory(0)[..BYTES as usize].fill(fill);
        let offset = (round % 3) * 1000;
        let wait = Command::WaitUntil {
            operation: OperationId(id),
            region: REGION,
            offset: SIGNAL,
            condition: Condition::Equal,
            value: round,
            depends_on: None,
        };
        fabric.command(1, wait).expect("a wait of its own");
        fabric.submit(0, posted(at(1, 800_000), &[fill; 8]));
        fabric.submit(0, put_with_signal(id + 1, offset, local(0, BYTES), round));
        fabric.submit(0, fetch_add(id + 2, at(1, 950_000), 1));
        fabric.finish(id).unwrap_or_else(|error| panic!("{what}: wait: {error}"));
        let data = &fabric.memory(1)[offset as usize..][..BYTES as usize];
        assert!(data.iter().all(|byte| *byte == fill), "{what}: signal {round} came before its data");
        fabric.finish(id + 1).unwrap_or_else(|error| panic!("{what}: put: {error}"));
        fabric.finish(id + 2).unwrap_or_else(|error| panic!("{what}: fetch-add: {error}"));
    }
    assert_eq!(fabric.memory(1)[950_000], 30, "{what}: each fetch-add once");
    let held: usize = (0..2).map(|node| fabric.leases_held(node)).sum();
    assert_eq!(held, 0, "{what}: frames are still held");
}

#[test]
fn every_promise_is_kept_under_loss_and_reordering() {
    for order in OrderScope::ALL {
        let mut fabric = Fabric::up(star(2, 4), &of(order, true));
        fabric.shuffle = (order != OrderScope::Path).then_some(17);
        let mut any = lossy(30, 5);
        fabric.filter = Box::new(move |now, edge, forward, bytes| match FrameKind::peek(bytes) {
            Some(FrameKind::Data | FrameKind::Ack) => any(now, edge, forward, bytes),
            _ => true,
        });
        work(&mut fabric, order.name());
        assert_eq!(broken(&fabric), [], "{}", order.name());
    }
}

// W-36
#[test]
fn a_packet_has_a_flag_if_it_was_sent_before() {
    let mut fabric = Fabric::up(star(2, 1), &of(OrderScope::Class, true));
    let seen = std::rc::Rc::new(std::cell::RefCell::new(std::collections::BTreeMap::<u32, Vec<bool>>::new()));
    let (log, mut any) = (seen.clone(), lossy(100, 9));
    fabric.filter = Box::new(move |now, edge, forward, bytes| {
        // On the link to the switch, before any loss.
        if edge != 0 || !forward || FrameKind::peek(bytes) != Some(FrameKind::Data) {
            return true;
        }
        let header = wire::frame::FabricHeader::of(bytes).expect("our own frames parse");
        log.borrow_mut().entry(header.psn).or_default().push(header.again);
        any(now, edge, forward, bytes)
    });
    fabric.submit(0, put(1, at(1, 0), local(0, 10 * BYTES)));
    fabric.finish(1).expect("the put ends well");
    let seen = seen.borrow();
    assert!(seen.values().any(|times| times.len() > 1), "something was sent again");
    for (psn, times) in seen.iter() {
        assert!(!times[0] && times[1..].iter().all(|again| *again), "packet {psn}: {times:?}");
    }
}

/// Queues two puts to overlapping ranges at one time.
fn two_puts_over_one_another(fabric: &mut Fabric) {
    for round in 0..20u64 {
        fabric.memory(0)[..BYTES as usize].fill(1);
        fabric.memory(0)[BYTES as usize..2 * BYTES as usize].fill(2);
        fabric.submit(0, put(round * 2 + 1, at(1, 0), local(0, BYTES)));
        fabric.submit(0, put(round * 2 + 2, at(1, 512), local(BYTES, BYTES)));
        let _ = (fabric.finish(round * 2 + 1), fabric.finish(round * 2 + 2));
    }
}

#[test]
fn the_later_of_two_overlapping_puts_wins_in_an_ordered_region() {
    for order in [OrderScope::Class, OrderScope::Region] {
        let mut fabric = Fabric::up(star(2, 4), &of(order, true));
        fabric.shuffle = Some(3);
        two_puts_over_one_another(&mut fabric);
        assert!(fabric.memory(1)[512..(512 + BYTES) as usize].iter().all(|byte| *byte == 2));
        assert_eq!(broken(&fabric), []);
    }
}

/// Planted violation: no member keeps the order, and the oracle reports the violated scope.
#[test]
fn a_violated_order_scope_is_detected() {
    for order in [OrderScope::Pair, OrderScope::Class, OrderScope::Region] {
        let mut fabric = Fabric::up(star(2, 4), &of(order, false));
        fabric.shuffle = Some(3);
        fabric.submit(0, fetch_add(1000, at(1, 950_000), 1));
        two_puts_over_one_another(&mut fabric);
        let broken = broken(&fabric);
        assert!(!broken.is_empty(), "{}", order.name());
        assert!(broken.iter().all(|scope| *scope == order));
    }
    let mut fabric = Fabric::up(star(2, 4), &of(OrderScope::None, false));
    fabric.shuffle = Some(3);
    two_puts_over_one_another(&mut fabric);
    assert_eq!(broken(&fabric), [], "nothing was promised");
}

/// A command that is refused for now violates nothing, even if it is repeated.
#[test]
fn a_refused_command_violates_no_order_scope() {
    let mut fabric = Fabric::up(star(2, 4), &of(OrderScope::Pair, false));
    fabric.submit(0, put(1, at(1, 0), local(0, BYTES)));
    let mut taken = 0;
    while fabric.command(0, posted(at(1, 800_000), &[1; 64])).is_ok() {
        taken += 1;
    }
    for _ in 0..100 {
        let _ = fabric.command(0, posted(at(1, 800_000), &[1; 64]));
    }
    fabric.finish(1).expect("the put ends well");
    let broken = broken(&fabric).len();
    assert!(0 < broken && broken <= taken, "{broken} for {taken} stores that were taken");
}

/// Packets on one path stay in order while the path exists.
#[test]
fn a_path_that_reorders_violates_the_order_per_path() {
    let seen = |shuffle| {
        let mut fabric = Fabric::up(star(2, 4), &of(OrderScope::Path, true));
        fabric.shuffle = shuffle;
        two_puts_over_one_another(&mut fabric);
        broken(&fabric)
    };
    assert_eq!(seen(None), []);
    assert!(seen(Some(3)).contains(&OrderScope::Path));
}

// W-46
/// The first packet is lost once, so the last packet of its put, which has the signal, waits. The next put
/// takes this path as well.
#[test]
fn packets_of_one_path_wait_behind_a_waiting_signal() {
    let mut fabric = Fabric::up(star(2, 1), &of(OrderScope::Path, true));
    let mut is_lost = false;
    fabric.filter = Box::new(move |_, _, _, bytes| {
        is_lost || FrameKind::peek(bytes) != Some(FrameKind::Data) || {
            is_lost = true;
            false
        }
    });
    fabric.memory(0)[..BYTES as usize].fill(1);
    fabric.memory(0)[BYTES as usize..2 * BYTES as usize].fill(2);
    fabric.submit(0, put_with_signal(1, 0, local(0, BYTES), 5));
    fabric.submit(0, put(2, at(1, 0), local(BYTES, BYTES)));
    fabric.finish(1).expect("the first put ends well");
    fabric.finish(2).expect("the second put ends well");
    assert_eq!(broken(&fabric), []);
    // Retransmitted packets have no promised position. The rest of the later put stays.
    assert!(fabric.memory(1)[8_192..BYTES as usize].iter().all(|byte| *byte == 2), "the later put stays");
}

// W-35
#[test]
fn data_of_puts_is_written_early_only_if_the_order_scope_allows_it() {
    let written_behind_a_hole = |order| {
        let mut fabric = Fabric::up(star(2, 4), &of(order, true));
        // The first data frame is lost during the whole observation.
        let mut first = None;
        fabric.filter = Box::new(move |_, _, _, bytes| {
            if FrameKind::peek(bytes) != Some(FrameKind::Data) {
                return true;
            }
            let psn = wire::layout::u32_at(bytes, wire::layout::PSN);
            psn != *first.get_or_insert(psn)
        });
        fabric.memory(0)[..BYTES as usize].fill(7);
        fabric.submit(0, put_with_signal(1, 0, local(0, BYTES), 5));
        fabric.run_for(10 * DELAY_NS);
        assert_eq!(fabric.memory(1)[SIGNAL as usize], 0, "the signal counts the packets of its put");
        let memory = fabric.memory(1);
        memory[..BYTES as usize].iter().filter(|byte| **byte == 7).count() as u64
    };
    assert_eq!(written_behind_a_hole(OrderScope::Class), 0);
    // All packets except the missing one and the one with the signal.
    assert!(written_behind_a_hole(OrderScope::None) >= BYTES - 2 * 4096);
}

#[test]
fn puts_to_one_range_are_serial_and_other_puts_are_parallel() {
    let took_ns = |offset| {
        let mut fabric = Fabric::up(star(2, 4), &of(OrderScope::Region, true));
        let began = fabric.now;
        fabric.submit(0, put(1, at(1, 0), local(0, 8192)));
        fabric.submit(0, put(2, at(1, offset), local(0, 8192)));
        fabric.finish(2).expect("the put ends well");
        fabric.now.since(began)
    };
    assert!(took_ns(8192 - 1) >= took_ns(8192) + 2 * DELAY_NS, "{} and {}", took_ns(8191), took_ns(8192));
}
