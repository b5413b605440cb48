//! Fast path: recognised frames have the outcome of the general path.
//!
//! Each script runs four times with equal timing. In the first run, frames are written in runs and finished
//! on arrival. In the second, memory is not available when a frame arrives, so that the frame waits for it.
//! In the third, the wire has space for one frame, and each frame begins a poll iteration of its own. The
//! fourth is like the third, and every data frame gets a hop check in flight, so that it must be checked
//! completely. Frames, events, memory and counters must be equal.

mod harness;

use std::cell::RefCell;
use std::rc::Rc;

use harness::*;
use rackloom_protocol::link::counters::PortCounters;
use rackloom_protocol::wire::frame::FrameKind;
use rackloom_protocol::wire::{hop_check, layout};
use rackloom_protocol::*;

const ROUNDS: u64 = 250;
const WRONG_KEY: Key = Key(78);

/// Every sent frame: time, edge, end, and bytes.
type Trace = Vec<(u64, u16, bool, Vec<u8>)>;

/// Path of data frames through the code of both endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CodePath {
    Short,
    Queued,
    OnePerPoll,
    General,
}

struct Random(u64);

impl Random {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

fn give_a_hop_check(frame: &mut [u8]) {
    if frame[layout::VERSION_KIND] & 15 == FrameKind::Data as u8 {
        frame[layout::FLAGS] &= !layout::FLAG_NO_HOP_CHECK;
        let check = hop_check(frame, false);
        layout::put_u32(frame, layout::HOP_CHECK, check);
    }
}

/// Records, loses and delays frames by the seed.
fn filter(path: CodePath, seed: u64, permille: u64, trace: &Rc<RefCell<Trace>>) -> Filter {
    let (mut lose, trace) = (lossy(permille, seed), Rc::clone(trace));
    Box::new(move |now, edge, forward, bytes| {
        trace.borrow_mut().push((now.0, edge, forward, bytes.clone()));
        let stays = lose(now, edge, forward, bytes);
        if path == CodePath::General {
            give_a_hop_check(bytes);
        }
        stays
    })
}

fn some_command(fabric: &mut Fabric, random: &mut Random, id: u64) {
    let (source, other) = (random.roll(3) as usize, 1 + random.roll(2) as u16);
    let target = at((source as u16 + other) % 3, 8 * random.roll(100_000));
    let data = vec![id as u8; 1 + random.roll(200) as usize];
    let command = match random.roll(17) {
        0..6 => posted(target, &data),
        6..9 => store(id, target, &data),
        9 => store(id, RemoteAddress { key: WRONG_KEY, ..target }, &data),
        10 => store(id, RemoteAddress { offset: REGION_BYTES as u64 - 1, ..target }, &data),
        11 => store(id, RemoteAddress { region: RegionId(9), ..target }, &data),
        12 => put(id, target, local(8 * random.roll(1000), 1 + random.roll(20_000))),
        13 => fetch_add(id, target, id),
        14 => Command::WaitUntil {
            operation: OperationId(id),
            region: REGION,
            offset: 8 * random.roll(100_000),
            condition: Condition::NotEqual,
            value: 0,
            depends_on: None,
        },
        15 => get(id, target, local(900_000, 1 + random.roll(9000))),
        _ => Command::Flush { operation: OperationId(id), target: None },
    };
    // Commands that are refused for lack of space or path are refused in all runs.
    let _ = fabric.command(source, command);
}

/// Observable results of a run.
#[derive(PartialEq)]
struct Outcome {
    trace: Trace,
    events: Vec<String>,
    memory: Vec<Vec<u8>>,
    counters: Vec<PortCounters>,
}

fn run(path: CodePath, seed: u64, options: &Options, permille: u64) -> Outcome {
    let (mut random, trace) = (Random(seed), Rc::default());
    let mut fabric = Fabric::new(ring(3), options);
    fabric.filter = filter(path, seed, permille, &trace);
    fabric.at_once = matches!(path, CodePath::Short | CodePath::OnePerPoll);
    fabric.one_frame_per_poll = matches!(path, CodePath::OnePerPoll | CodePath::General);
    fabric.shuffle = (permille > 0).then_some(seed);
    fabric.run_until("bring-up", Fabric::all_nodes_reach_each_other);
    for id in 0..ROUNDS {
        some_command(&mut fabric, &mut random, id);
        match random.roll(200) {
            0 => fabric.restart(2, options),
            1 => fabric.endpoint(1).revoke(REGION),
            2 => {
                let now = fabric.now;
                fabric.endpoint(0).administer_link(now, PortId(0), id % 2 == 0);
            }
            _ => {}
        }
        let pause = random.roll(4) * 700;
        fabric.run_for(pause);
    }
    fabric.run_for(20_000_000);
    let memory = (0..3).map(|node| fabric.memory(node).to_vec()).collect();
    let counters = (0..6).map(|port| fabric.counters(port / 2, (port % 2) as u16)).collect();
    let events = fabric.events.iter().map(|event| format!("{event:?}")).collect();
    Outcome { trace: trace.take(), events, memory, counters }
}

fn difference(one: &Outcome, general: &Outcome) -> String {
    let frame = one.trace.iter().zip(&general.trace).position(|(one, other)| one != other);
    let event = one.events.iter().zip(&general.events).find(|(one, other)| one != other);
    format!("first other frame: {frame:?}, first other event: {event:?}")
}

fn compare(change: impl Fn(&mut Options), permille: u64) {
    for mode in [RetransmissionMode::GoBackN, RetransmissionMode::Selective] {
        for seed in 1..=8 {
            let mut options = options(mode);
            options.end_to_end_check = false;
            change(&mut options);
            let general = run(CodePath::General, seed, &options, permille);
            for path in [CodePath::Short, CodePath::Queued, CodePath::OnePerPoll] {
                let one = run(path, seed, &options, permille);
                let is_same = one == general;
                assert!(is_same, "{path:?}, {mode:?}, seed {seed}: {}", difference(&one, &general));
            }
            assert!(general.trace.len() > 1000, "the script sends something");
        }
    }
}

#[test]
fn packed_operations_have_equal_outcomes_on_all_paths() {
    compare(|_| {}, 0);
}

#[test]
fn single_operations_have_equal_outcomes_on_all_paths() {
    compare(|options| options.packing.mode = PackingMode::Off, 0);
}

#[test]
fn lost_reordered_and_duplicated_frames_have_equal_outcomes_on_all_paths() {
    compare(|_| {}, 30);
}

#[test]
fn frames_of_other_tenants_have_equal_outcomes_on_all_paths() {
    compare(|options| options.tenants = vec![Tenant(0), Tenant(0), Tenant(1)], 5);
}

#[test]
fn packets_with_demands_and_grants_have_equal_outcomes_on_all_paths() {
    for permille in [0, 30] {
        compare(
            |options| {
                options.transport.congestion = CongestionControl::Grants;
                options.transport.grant_packets = Some(3);
            },
            permille,
        );
    }
}
