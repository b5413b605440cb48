//! Memory that a program owns, between two processes of one server: the system copies it, and everything else goes in frames.

mod support;

use std::process::Child;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rackloom::fabric::*;
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, remove_capability_from_bounding_set, set_capabilities,
};
use support::seats::{Rack, start};
use support::within;

const TIMEOUT: Duration = Duration::from_secs(30);
const BOUND: Duration = Duration::from_secs(10);
const SERVER: &str = "servers: {box: [n0, n1, n2, n3]}\n";
/// Variable that is set for the other process.
const OWNER: &str = "RACKLOOM_TEST_OWNER";

const WORDS: u64 = 1 << 17;
const BYTES: u64 = 8 * WORDS;
const PAGE: u64 = 4096;

/// Regions of both processes.
const CONTROL: u32 = 1;
const DATA: u32 = 2;
const READ_ONLY: u32 = 3;
const WITH_A_HOLE: u32 = 4;
const MAPPED: u32 = 5;

/// Words of the control region.
const COMMAND: u64 = 0;
const STEP: u64 = 8;
const ARGUMENT: u64 = 16;
const DONE: u64 = 24;
const RESULT: u64 = 32;

/// Steps of the other process.
#[derive(Clone, Copy, Debug)]
#[repr(u64)]
enum Step {
    /// Returns 1 if the data region has the pattern of the argument.
    Check = 1,
    /// Puts the pattern of the argument into the data region of the other node, gets its read-only region, and returns the copies.
    Copy,
    /// Ends the data region, and writes the pattern of the argument into its memory.
    Deregister,
    /// Returns 1 if the memory of the ended data region still has the pattern of the argument.
    CheckEnded,
    /// Registers the data region again.
    Register,
    /// Forbids (0) or permits (1) that other processes of the user copy.
    SetDumpable,
}

const STEPS: [Step; 6] =
    [Step::Check, Step::Copy, Step::Deregister, Step::CheckEnded, Step::Register, Step::SetDumpable];

fn pattern(seed: u64) -> Vec<u64> {
    (0..WORDS).map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ seed).collect()
}

const fn options(region: u32) -> RegionOptions {
    RegionOptions::new(region, 7)
}

const fn at(node: u16, region: u32, offset: u64) -> RemoteAddress {
    RemoteAddress { node: NodeId(node), region: RegionId(region), offset, key: Key(7) }
}

fn read_only(node: &Node, seed: u64) -> Region {
    let access = Access { read: true, write: false, atomic: false };
    node.register(options(READ_ONLY).access(access), pattern(seed)).expect("a region")
}

/// Memory of three pages, the second of which the program has made inaccessible although it is registered.
fn with_a_hole(node: &Node) -> Region {
    use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect};
    let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
    let bytes = 3 * PAGE as usize;
    // SAFETY: the pages are new, and nothing but the region uses them. Only copies by the system reach them, which fail for that page.
    unsafe {
        let base = mmap_anonymous(std::ptr::null_mut(), bytes, protection, flags).expect("memory");
        let middle = base.byte_add(PAGE as usize);
        mprotect(middle, PAGE as usize, MprotectFlags::empty()).expect("it is mapped");
        node.register_raw(options(WITH_A_HOLE), base.cast(), bytes).expect("a region")
    }
}

/// Copies until a put of the whole region was a copy of the system.
fn put_until_copied(node: &Node, from: &Region, to: RemoteAddress) {
    let before = node.counters().copied_operations;
    within(TIMEOUT, "the system copies", || {
        let put = node.put(&from.slice(..), to).wait();
        (put.is_ok() && node.counters().copied_operations > before).then_some(())
    });
}

/// Gets until a get of the read-only region of the other node was a copy of the system.
fn get_until_copied(node: &Node, into: &Region) {
    let other = 3 - node.id().0;
    let before = node.counters().copied_operations;
    within(TIMEOUT, "the system copies", || {
        node.get(at(other, READ_ONLY, 0), &into.slice(..)).wait().expect("it is readable");
        (node.counters().copied_operations > before).then_some(())
    });
}

/// Returns the copies by the system, their bytes, and the data frames that `act` causes at the node.
fn cost(node: &Node, act: impl FnOnce()) -> [u64; 3] {
    let before = node.counters();
    act();
    let after = node.counters();
    [
        after.copied_operations - before.copied_operations,
        after.copied_bytes - before.copied_bytes,
        after.data_frames_sent - before.data_frames_sent,
    ]
}

/// Body of the other process. On its own it does nothing.
#[test]
fn body_of_a_process_that_owns_memory() {
    let Ok(seat) = std::env::var(OWNER) else {
        // This is no skip: other tests start this one in a process of its own.
        return;
    };
    let (rack, seat) = seat.split_once('=').expect("a seat");
    let node = Node::join(rack, seat).expect("the seat is vacant");
    let mut data = Some(node.register(options(DATA), pattern(1)).expect("a region"));
    let _read_only = read_only(&node, 2);
    let _with_a_hole = with_a_hole(&node);
    let _mapped = node.allocate(options(MAPPED), BYTES).expect("memory");
    let control = node.allocate(options(CONTROL), 64).expect("memory");
    node.wait_until_reached(&[NodeId(1)], TIMEOUT).expect("the test is there");
    let mut ended = Vec::new();
    for round in 1.. {
        // The loss of the test ends the wait.
        let Ok(_) = node.wait_until(&control, COMMAND, Condition::Equal, round, NodeId(1)).wait() else {
            return;
        };
        let [step, argument] = [STEP, ARGUMENT].map(|word| control.get::<u64>(word).expect("a word"));
        let step = *STEPS.iter().find(|known| **known as u64 == step).expect("a step");
        let held = |data: &Option<Region>| data.clone().expect("it is registered");
        let result = match step {
            Step::Check => {
                let mut found = vec![0_u64; WORDS as usize];
                held(&data).read(0, &mut found).expect("it fits");
                u64::from(found == pattern(argument))
            }
            Step::Copy => {
                let data = held(&data);
                data.write(0, &pattern(argument)).expect("it fits");
                put_until_copied(&node, &data, at(1, DATA, 0));
                get_until_copied(&node, &data);
                let [copies, _, frames] = cost(&node, || {
                    node.get(at(1, READ_ONLY, 0), &data.slice(..)).wait().expect("it is readable");
                    node.put(&data.slice(..), at(1, DATA, 0)).wait().expect("it is writable");
                });
                if frames == 0 { copies } else { 1000 + frames }
            }
            Step::Deregister => {
                let region = data.take().expect("it is registered");
                let values = pattern(argument);
                ended = region.deregister::<u64>().expect("no copy lasts").expect("a vector");
                // From the end, so that a copy that is still in progress overwrites some of it.
                ended.iter_mut().zip(values).rev().for_each(|(word, value)| *word = value);
                1
            }
            Step::CheckEnded => u64::from(ended == pattern(argument)),
            Step::Register => {
                data = Some(node.register(options(DATA), std::mem::take(&mut ended)).expect("a region"));
                1
            }
            Step::SetDumpable => {
                let dumpable =
                    if argument == 1 { DumpableBehavior::Dumpable } else { DumpableBehavior::NotDumpable };
                u64::from(set_dumpable_behavior(dumpable).is_ok())
            }
        };
        control.write(RESULT, &[result]).expect("it fits");
        control.write(DONE, &[round]).expect("it fits");
    }
}

/// A rack, this process on one seat and another one on the next seat.
struct Pair {
    node: Node,
    other: Child,
    view: Option<PeerRegion>,
    round: AtomicU64,
    _rack: Rack,
}

fn pair(text: &str) -> Pair {
    let rack = Rack::up_with(text, &["--vacant", "n1,n2"]);
    let node = Node::join(&rack.directory(), "n1").expect("the seat is vacant");
    let other = start(&rack, OWNER, "body_of_a_process_that_owns_memory", "n2");
    rack.wait_for("n2", "up");
    node.wait_until_reached(&[NodeId(2)], TIMEOUT).expect("n2 is reached");
    Pair { node, other, view: None, round: AtomicU64::new(0), _rack: rack }
}

impl Pair {
    /// Maps the control region, after the other process has made it.
    fn mapped(mut self) -> Self {
        self.view =
            Some(within(TIMEOUT, "it is mapped", || self.node.map_peer(at(2, CONTROL, 0), TIMEOUT).ok()));
        self
    }

    /// Has the other process perform a step. Returns the result.
    fn perform(&self, step: Step, argument: u64) -> u64 {
        let round = self.round.fetch_add(1, Ordering::Relaxed) + 1;
        let view = self.view.as_ref().expect("it is mapped");
        view.write(STEP, &[step as u64, argument]).expect("it is alive");
        view.signal(COMMAND, round).expect("it is alive");
        within(TIMEOUT, "the step is done", || {
            (view.get::<u64>(DONE).expect("it is alive") == round).then_some(())
        });
        view.get(RESULT).expect("it is alive")
    }

    fn copies(&self, act: impl FnOnce()) -> [u64; 3] {
        cost(&self.node, act)
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        let _ = self.other.kill();
        let _ = self.other.wait();
    }
}

fn reason(error: &Error) -> OperationError {
    match error {
        Error::Refused { reason, .. } => *reason,
        other => panic!("{other}"),
    }
}

#[test]
fn the_system_copies_between_the_programs_of_two_processes() {
    let mut pair = pair(SERVER).mapped();
    let node = pair.node.clone();
    let mine = node.register(options(DATA), pattern(5)).expect("a region");
    let other_data = read_only(&node, 6);
    put_until_copied(&node, &mine, at(2, DATA, 0));
    assert_eq!(pair.perform(Step::Check, 5), 1, "the bytes are there");

    // Both directions of this node, at odd addresses too. The words of the read-only region are never written.
    assert_eq!(
        pair.copies(|| node.put(&mine.slice(..), at(2, DATA, 0)).wait().expect("a put")),
        [1, BYTES, 0]
    );
    get_until_copied(&node, &mine);
    assert_eq!(
        pair.copies(|| node.get(at(2, READ_ONLY, 3), &mine.slice(3..)).wait().expect("a get")),
        [1, BYTES - 3, 0]
    );
    let mut found = vec![0_u64; WORDS as usize];
    mine.read(0, &mut found).expect("it fits");
    assert!(found[1..] == pattern(2)[1..], "the bytes of the other process");
    // The other process copies, from and to this one.
    assert_eq!(pair.perform(Step::Copy, 7), 2, "two copies without a frame");
    mine.read(0, &mut found).expect("it fits");
    assert!(found == pattern(6), "it has put what it got here");

    everything_else_uses_frames(&pair, &mine);
    let denied = node.put(&mine.slice(..64), at(2, READ_ONLY, 0)).wait().expect_err("read only");
    assert_eq!(reason(&denied), OperationError::PermissionDenied);
    let outside = node.get(at(2, DATA, BYTES - 60), &mine.slice(..64)).wait().expect_err("out of bounds");
    assert_eq!(reason(&outside), OperationError::OutOfBounds);
    let wrong = RemoteAddress { key: Key(8), ..at(2, DATA, 0) };
    node.get(wrong, &mine.slice(..64)).wait().expect_err("another key");
    an_inaccessible_page_is_an_error(&node, &mine);

    assert_eq!(pair.perform(Step::Deregister, 9), 1);
    let ended = pair.copies(|| {
        let refused = node.put(&mine.slice(..), at(2, DATA, 0)).wait().expect_err("it has ended");
        assert!(matches!(refused, Error::Refused { .. }), "{refused}");
    });
    assert_eq!(ended[0], 0);
    assert_eq!(pair.perform(Step::CheckEnded, 9), 1, "nothing was written after the end");

    // A killed owner is lost, and a killed importer holds no memory.
    pair.other.kill().expect("it runs");
    pair.other.wait().expect("a child");
    let lost = within(BOUND, "the death is detected", || {
        node.get(at(2, READ_ONLY, 0), &mine.slice(..64)).wait().err()
    });
    assert!(matches!(lost, Error::PeerLost { peer: NodeId(2), .. }), "{lost}");
    let returned = mine.deregister::<u64>().expect("no copy lasts").expect("a vector");
    assert_eq!(returned.len() as u64, WORDS);
    assert_eq!(other_data.len(), BYTES);
}

fn everything_else_uses_frames(pair: &Pair, mine: &Region) {
    let node = &pair.node;
    let frames = |act: &mut dyn FnMut()| {
        let [copies, _, frames] = pair.copies(act);
        assert!(copies == 0 && frames > 0, "{copies} copies, {frames} frames");
    };
    frames(&mut || node.store(at(2, DATA, 0), &41_u64.to_le_bytes()).wait().expect("a store"));
    frames(&mut || assert_eq!(node.fetch_add::<u64>(at(2, DATA, 0), 1).wait().expect("an atomic"), 41));
    frames(&mut || node.load(at(2, DATA, 0), &mine.slice(..8)).wait().expect("a load"));
    assert_eq!(mine.get::<u64>(0).expect("a word"), 42);
    // A copy might tear a word.
    frames(&mut || node.put(&mine.slice(..8), at(2, DATA, 8)).wait().expect("a put"));
    let signal = Signal::set(at(2, DATA, 16), 3);
    frames(&mut || {
        node.put_with_signal(&mine.slice(..64), at(2, DATA, 64), signal).wait().expect("a put with a signal");
    });
    let not_mapped = node.map_peer(at(2, DATA, 0), BOUND).expect_err("it cannot be mapped");
    assert!(not_mapped.to_string().contains("belongs to the owner's program"), "{not_mapped}");
}

fn an_inaccessible_page_is_an_error(node: &Node, mine: &Region) {
    within(TIMEOUT, "the system copies", || {
        let before = node.counters().copied_operations;
        let first = node.put(&mine.slice(..PAGE), at(2, WITH_A_HOLE, 0)).wait();
        first.expect("the first page is there");
        (node.counters().copied_operations > before).then_some(())
    });
    let error =
        node.put(&mine.slice(..3 * PAGE), at(2, WITH_A_HOLE, 0)).wait().expect_err("a page is inaccessible");
    assert_eq!(reason(&error), OperationError::MemoryFailed);
    node.get(at(2, WITH_A_HOLE, 0), &mine.slice(..PAGE)).wait().expect("the first page is there");
}

/// Ends the loop of another thread, after a failure too.
struct SetAtEnd<'a>(&'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A put that is in progress when the owner ends the region writes nothing after `deregister` has returned.
#[test]
fn memory_is_given_back_while_the_other_process_copies() {
    const ROUNDS: u64 = 6;
    let pair = pair(SERVER).mapped();
    let node = &pair.node;
    let mine = node.register(options(DATA), pattern(5)).expect("a region");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let until_the_end = SetAtEnd(&is_over);
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let put = node.put(&mine.slice(..), at(2, DATA, 0)).wait();
                assert!(matches!(put, Ok(()) | Err(Error::Refused { .. })), "{put:?}");
            }
        });
        let is_kept = (0..ROUNDS).all(|round| {
            let copied = node.counters().copied_operations;
            within(TIMEOUT, "the system copies", || {
                (node.counters().copied_operations > copied + 3).then_some(())
            });
            let is_kept = pair.perform(Step::Deregister, round) == 1
                && (0..20).all(|_| pair.perform(Step::CheckEnded, round) == 1);
            pair.perform(Step::Register, 0);
            is_kept
        });
        drop(until_the_end);
        assert!(is_kept, "the memory was written after its end");
    });
}

#[test]
fn force_wire_copies_nothing() {
    let pair = pair(&format!("{SERVER}force_wire: true\n"));
    let node = &pair.node;
    let mine = node.register(options(DATA), pattern(5)).expect("a region");
    within(TIMEOUT, "the region is there", || node.put(&mine.slice(..), at(2, DATA, 0)).wait().ok());
    for _ in 0..20 {
        let [copies, _, frames] = pair.copies(|| {
            node.put(&mine.slice(..), at(2, DATA, 0)).wait().expect("a put");
            node.get(at(2, READ_ONLY, 0), &mine.slice(..)).wait().expect("a get");
        });
        assert!(copies == 0 && frames > 0);
    }
    let mut found = vec![0_u64; WORDS as usize];
    mine.read(0, &mut found).expect("it fits");
    assert!(found == pattern(2));
}

/// Takes the right to copy from every process from this thread and from those that it starts, so that it is as for any user.
fn drop_capability() {
    let right = CapabilitySet::SYS_PTRACE;
    // A user without capabilities cannot remove one, and needs not.
    let _ = remove_capability_from_bounding_set(right);
    let CapabilitySets { effective, permitted, inheritable } =
        capabilities(None).expect("its own capabilities");
    let [effective, permitted, inheritable] = [effective, permitted, inheritable].map(|set| set - right);
    let sets = CapabilitySets { effective, permitted, inheritable };
    set_capabilities(None, sets).expect("a thread may drop a capability");
}

#[test]
fn puts_and_gets_use_frames_while_the_system_permits_no_copies() {
    // Capabilities belong to a thread.
    let body = || {
        drop_capability();
        let pair = pair(SERVER).mapped();
        let node = &pair.node;
        let mine = node.register(options(DATA), pattern(5)).expect("a region");
        let uses_frames = || {
            let [copies, _, frames] =
                pair.copies(|| node.put(&mine.slice(..), at(2, DATA, 0)).wait().expect("a put"));
            assert!(copies == 0 && frames > 0, "{copies} copies, {frames} frames");
            assert_eq!(pair.perform(Step::Check, 5), 1);
        };
        // Denied from the first operation on.
        assert_eq!(pair.perform(Step::SetDumpable, 0), 1);
        let denied = within(TIMEOUT, "the system refuses", || {
            uses_frames();
            let error = node.map_peer(at(2, DATA, 0), BOUND).expect_err("it cannot be mapped").to_string();
            error.contains("permits no copies").then_some(error)
        });
        assert!(denied.contains("hint: "), "{denied}");
        uses_frames();
        // Permitted, and then denied while the region is in use.
        assert_eq!(pair.perform(Step::SetDumpable, 1), 1);
        put_until_copied(node, &mine, at(2, DATA, 0));
        assert_eq!(pair.perform(Step::SetDumpable, 0), 1);
        uses_frames();
        assert_eq!(pair.perform(Step::SetDumpable, 1), 1);
        put_until_copied(node, &mine, at(2, DATA, 0));
    };
    std::thread::spawn(body).join().expect("no panic");
}

/// Variable with the number of operations of each take.
const OPERATIONS: &str = "RACKLOOM_COPIES_OPERATIONS";
/// Number of takes of each path, which alternate.
const TAKES: usize = 9;

/// Prints the time of one put and one get until it is visible, by length and path. A few operations unless a variable says more.
#[test]
fn copies_are_measured_beside_frames_and_mapped_memory() {
    let operations: u64 = std::env::var(OPERATIONS).ok().and_then(|number| number.parse().ok()).unwrap_or(2);
    let [copied, framed] = [pair(SERVER), pair(&format!("{SERVER}force_wire: true\n"))];
    let [mine, theirs] =
        [&copied, &framed].map(|pair| pair.node.register(options(DATA), pattern(5)).expect("a region"));
    put_until_copied(&copied.node, &mine, at(2, DATA, 0));
    within(TIMEOUT, "the memory is mapped", || copied.node.map_peer(at(2, MAPPED, 0), TIMEOUT).ok());
    within(TIMEOUT, "the region is there", || framed.node.put(&theirs.slice(..), at(2, DATA, 0)).wait().ok());
    let paths = [
        ("copied", &copied, &mine, DATA),
        ("frames", &framed, &theirs, DATA),
        ("mapped", &copied, &mine, MAPPED),
    ];
    for (length, is_put) in
        [4 << 10, 64 << 10, 1 << 20].into_iter().flat_map(|length| [(length, true), (length, false)])
    {
        let mut times = [const { Vec::new() }; 3];
        // The first take of each path is a warm-up: it also requests the memory.
        for take in 0..=TAKES {
            for ((path, pair, buffer, region), times) in paths.iter().zip(&mut times) {
                let before = pair.node.counters();
                let begun = Instant::now();
                for _ in 0..operations {
                    let (slice, target) = (buffer.slice(..length), at(2, *region, 0));
                    let node = &pair.node;
                    let request = if is_put { node.put(&slice, target) } else { node.get(target, &slice) };
                    request.wait().expect("n2 is there");
                }
                let time_ns = begun.elapsed().as_nanos() as u64 / operations;
                if take == 0 {
                    within(TIMEOUT, "the memory is mapped", || {
                        let before = pair.node.counters().direct_operations;
                        pair.node.put(&buffer.slice(..16), at(2, *region, 0)).wait().expect("n2 is there");
                        (*path == "frames" || pair.node.counters().direct_operations > before).then_some(())
                    });
                    continue;
                }
                let after = pair.node.counters();
                let counted = [
                    after.copied_operations - before.copied_operations,
                    after.direct_operations - before.direct_operations,
                ];
                let expected = match *path {
                    "copied" => [operations; 2],
                    "mapped" => [0, operations],
                    _ => [0; 2],
                };
                assert_eq!(counted, expected, "{path}");
                times.push(time_ns);
            }
        }
        let name = if is_put { "put" } else { "get" };
        for ((path, ..), mut times) in paths.iter().zip(times) {
            times.sort_unstable();
            let (low, median, high) = (times[0], times[TAKES / 2], times[TAKES - 1]);
            let rate = length as f64 / median as f64;
            println!(
                "{name} of {:4} KiB, {path}: {median} ns ({low} to {high}), {rate:.2} GB/s",
                length >> 10
            );
        }
    }
}
