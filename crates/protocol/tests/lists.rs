//! Lists of stores: equal to single stores in accepted and refused stores, frames, events and memory.

mod harness;

use std::cell::RefCell;
use std::rc::Rc;

use harness::*;
use rackloom_protocol::*;

const ROUNDS: u64 = 200;

/// Observations of a run: accepted stores of each list with the reason for the rest, all frames, events,
/// memory.
#[derive(PartialEq, Debug)]
struct Outcome {
    taken: Vec<(usize, Option<CommandRefused>)>,
    frames: Vec<Vec<u8>>,
    events: Vec<String>,
    memory: Vec<Vec<u8>>,
}

struct Random(u64);

impl Random {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// Name, destination and bytes of a store.
type SomeStore = (OperationId, RemoteAddress, Vec<u8>);

/// Returns stores to node 1, to a missing node, or to the sender itself; mostly valid ones.
fn some_stores(random: &mut Random, first: u64) -> (u16, Vec<SomeStore>) {
    let node = match random.roll(20) {
        0 => 0,
        1 => 9,
        _ => 1,
    };
    let count = 1 + [3, 40, 900][random.roll(3) as usize];
    // A few stores are invalid or long.
    let rarity = if random.roll(2) == 0 { 60 } else { 100_000 };
    let store = |id| {
        let target = match random.roll(rarity) {
            0 => at(node, u64::MAX - 3),
            1 => RemoteAddress { region: RegionId(9), ..at(node, 0) },
            _ => at(node, 8 * random.roll(100_000)),
        };
        let length = [0, 20_000, 9000]
            .get(random.roll(rarity) as usize)
            .copied()
            .unwrap_or(1 + random.roll(200) as usize);
        (OperationId(id), target, vec![id as u8; length])
    };
    (node, (first..first + count).map(store).collect())
}

/// Issues other commands, so that there are fences, a second class, and operations that end late.
fn something_else(fabric: &mut Fabric, random: &mut Random, id: u64) {
    let command = match random.roll(4) {
        0 => Command::Fence { target: Some(NodeId(1)) },
        1 => put(id, at(1, 0), local(0, 30_000)),
        2 => fetch_add(id, at(1, 64), 1),
        _ => Command::Flush { operation: OperationId(id), target: None },
    };
    let _ = fabric.command(0, command);
}

fn run(options: &Options, seed: u64, is_list: bool) -> Outcome {
    let (mut random, frames) = (Random(seed), Rc::new(RefCell::new(Vec::new())));
    let mut fabric = Fabric::up(ring(2), options);
    let kept = Rc::clone(&frames);
    fabric.filter = Box::new(move |_, _, _, bytes| {
        kept.borrow_mut().push(bytes.clone());
        true
    });
    let mut taken = Vec::new();
    for round in 0..ROUNDS {
        let (node, stores) = some_stores(&mut random, 1000 * round);
        let level = if random.roll(2) == 0 { Completion::Visible } else { Completion::Accepted };
        let now = fabric.now;
        let endpoint = fabric.endpoint(0);
        taken.push(if is_list {
            let list = stores.iter().map(|(operation, target, data)| ListedStore {
                operation: *operation,
                target,
                data,
            });
            endpoint.stores(NodeId(node), list, level)
        } else {
            let refused = stores.iter().enumerate().find_map(|(index, (operation, target, data))| {
                let store =
                    Command::Store { operation: *operation, target: *target, data, completion: level };
                endpoint.handle_command(now, store).err().map(|refused| (index, Some(refused)))
            });
            refused.unwrap_or((stores.len(), None))
        });
        something_else(&mut fabric, &mut random, 1000 * round + 999);
        fabric.run_for(random.roll(4) * 3000);
    }
    fabric.run_for(20_000_000);
    let memory = (0..2).map(|node| fabric.memory(node).to_vec()).collect();
    let events = fabric.events.iter().map(|event| format!("{event:?}")).collect();
    Outcome { taken, frames: frames.take(), events, memory }
}

fn compare(change: impl Fn(&mut Options)) -> Vec<(usize, Option<CommandRefused>)> {
    let mut all = Vec::new();
    for seed in 1..=6 {
        let mut options = options(RetransmissionMode::Selective);
        change(&mut options);
        let (list, alone) = (run(&options, seed, true), run(&options, seed, false));
        assert_eq!(list.taken, alone.taken, "seed {seed}");
        assert!(list == alone, "seed {seed}: frames, events or memory differ");
        assert!(list.frames.len() > 1000, "the script sends something");
        all.extend(list.taken);
    }
    all
}

#[test]
fn a_list_has_the_outcome_of_its_single_stores() {
    let taken = compare(|options| options.transport.window_packets = 8);
    let stopped = |reason: fn(&CommandRefused) -> bool| {
        taken.iter().filter(|(count, refused)| *count > 0 && refused.as_ref().is_some_and(reason)).count()
    };
    assert!(
        stopped(|refused| *refused == CommandRefused::Busy) > 10,
        "queues were full in the midst of a list"
    );
    assert!(stopped(|refused| matches!(refused, CommandRefused::Invalid(_))) > 10, "stores were wrong");
    assert!(taken.iter().any(|(_, refused)| matches!(refused, Some(CommandRefused::NoSuchNode(_)))));
}

#[test]
fn a_list_of_stores_in_frames_of_their_own_has_an_equal_outcome() {
    compare(|options| options.packing.mode = PackingMode::Off);
}

#[test]
fn a_list_with_classes_that_wait_has_an_equal_outcome() {
    let taken = compare(|options| options.paths.order = OrderScope::Pair);
    let at_once = |(count, refused): &&(usize, _)| *count == 0 && *refused == Some(CommandRefused::Busy);
    assert!(taken.iter().filter(at_once).count() > 10, "some had to wait for a put");
}

#[test]
fn a_list_with_reported_order_violations_has_an_equal_outcome() {
    compare(|options| {
        options.paths.order = OrderScope::Pair;
        options.paths.keeps_order = false;
    });
}
