//! Memory that nodes of one server map: which operations need no frame, their order with frames, waits, and the end of a region.

use std::thread;
use std::time::{Duration, Instant};

use rackloom::fabric::*;

const KEY: u64 = 0x5eed;
const BYTES: u64 = 1 << 16;
/// Longer than any step takes, shorter than a hang.
const BOUND: Duration = Duration::from_secs(20);

/// Starts a rack of two nodes in one server. `more` are further lines of the rack file.
fn pair(more: &str) -> [Node; 2] {
    let text = format!("name: pair\nshape: {{ring: {{nodes: 2}}}}\nservers: {{box: [n0, n1]}}\n{more}");
    let plan = Plan::parse(&text, "test").unwrap();
    Fabric::local(&plan).unwrap().into_nodes().try_into().unwrap()
}

/// Stores a zero at the beginning of the region until a store needs no frame.
fn map(initiator: &Node, region: &Region) {
    let begun = Instant::now();
    let before = initiator.counters().direct_operations;
    while initiator.counters().direct_operations == before {
        initiator.store(region.address(0), &[0]).wait().unwrap();
        assert!(begun.elapsed() < BOUND, "the region is not mapped");
        thread::yield_now();
    }
}

/// Returns the number of direct operations and of data frames that `act` causes at the initiator.
fn cost(initiator: &Node, act: impl FnOnce()) -> (u64, u64) {
    let before = initiator.counters();
    act();
    let after = initiator.counters();
    (after.direct_operations - before.direct_operations, after.data_frames_sent - before.data_frames_sent)
}

#[test]
fn every_operation_on_mapped_memory_needs_no_frame() {
    let [initiator, owner] = pair("");
    let theirs = owner.allocate(RegionOptions::new(1, KEY), BYTES).unwrap();
    let mine = initiator.allocate(RegionOptions::new(1, KEY), BYTES).unwrap();
    map(&initiator, &theirs);
    let direct = |operations, act: &mut dyn FnMut()| {
        assert_eq!(cost(&initiator, act), (operations, 0));
    };
    direct(1, &mut || initiator.store(theirs.address(8), b"abcdefgh").wait().unwrap());
    assert_eq!(theirs.get::<u64>(8).unwrap(), u64::from_le_bytes(*b"abcdefgh"));
    direct(1, &mut || initiator.load(theirs.address(8), &mine.slice(0..8)).wait().unwrap());
    direct(1, &mut || initiator.get(theirs.address(8), &mine.slice(8..16)).wait().unwrap());
    let mut seen = [0_u8; 16];
    mine.read(0, &mut seen).unwrap();
    assert_eq!(&seen, b"abcdefghabcdefgh");
    mine.write(0, &[7_u8; 4096]).unwrap();
    let signal = Signal { region: RegionId(1), offset: 16, key: Key(KEY), kind: SignalKind::Add, value: 3 };
    direct(2, &mut || {
        initiator.put(&mine.slice(0..4096), theirs.address(4096)).wait().unwrap();
        initiator.put_with_signal(&mine.slice(0..64), theirs.address(9000), signal).wait().unwrap();
    });
    assert_eq!([4096, 8191, 9063].map(|at| theirs.get::<u8>(at).unwrap()), [7; 3]);
    assert_eq!(theirs.get::<u64>(16).unwrap(), 3);
    let at = theirs.address(16);
    direct(3, &mut || {
        assert_eq!(initiator.fetch_add::<u64>(at, 4).wait().unwrap(), 3);
        assert_eq!(initiator.compare_swap::<u64>(at, 7, 9).wait().unwrap(), 7);
        assert_eq!(initiator.swap::<u64>(at, 1).wait().unwrap(), 9);
    });
    direct(2, &mut || {
        initiator.store_posted(theirs.address(24), &[1; 8]).wait().unwrap();
        initiator.put(&mine.slice(0..8), theirs.address(32)).posted().wait().unwrap();
        initiator.flush(Some(owner.id())).wait().unwrap();
    });
    // The driver's own calls, single and in lists.
    let mut driver = initiator.drive().unwrap();
    let mut completions = Vec::new();
    direct(5, &mut || {
        driver.store(theirs.address(40), &[5; 8], 1).unwrap();
        driver.store_posted(theirs.address(48), &[6; 8]).unwrap();
        driver.put(&mine, 0..8, theirs.address(56), 2).unwrap();
        let stores = [Store::new(theirs.address(64), &[8; 8], 3), Store::new(theirs.address(72), &[9; 8], 4)];
        assert_eq!(driver.stores(&stores[..1]).unwrap(), 1);
        assert_eq!(driver.stores_posted(&stores[1..]).unwrap(), 1);
        driver.poll(&mut completions);
    });
    let contexts: Vec<_> = completions.iter().map(|one| (one.context, one.result.is_ok())).collect();
    assert_eq!(contexts, [(1, true), (2, true), (3, true)]);
    let words = [24, 32, 40, 48, 56, 64, 72].map(|at| theirs.get::<u8>(at).unwrap());
    assert_eq!(words, [1, 7, 5, 6, 7, 8, 9]);
}

#[test]
fn force_wire_and_other_servers_use_frames() {
    let ring = "name: pair\nshape: {ring: {nodes: 2}}\n";
    let apart = Plan::parse(ring, "test").unwrap();
    let apart: [Node; 2] = Fabric::local(&apart).unwrap().into_nodes().try_into().unwrap();
    for [initiator, owner] in [pair("force_wire: true\n"), apart] {
        let theirs = owner.allocate(RegionOptions::new(1, KEY), BYTES).unwrap();
        for _ in 0..100 {
            let (direct, frames) = cost(&initiator, || {
                initiator.store(theirs.address(8), &[1]).wait().unwrap();
            });
            assert!(direct == 0 && frames > 0);
        }
        let error = initiator.map_peer(theirs.address(0), BOUND).unwrap_err();
        assert!(matches!(error, Error::NotMapped { .. }), "{error}");
    }
}

#[test]
fn memory_of_the_program_is_reached_in_frames() {
    let [initiator, owner] = pair("");
    let theirs = owner.register(RegionOptions::new(1, KEY), vec![0_u64; 512]).unwrap();
    let begun = Instant::now();
    // Longer than an answer takes. The refusal is remembered, and the operations continue.
    while begun.elapsed() < Duration::from_millis(50) {
        let (direct, _) = cost(&initiator, || initiator.store(theirs.address(8), &[1]).wait().unwrap());
        assert_eq!(direct, 0);
    }
    let error = initiator.map_peer(theirs.address(0), BOUND).unwrap_err();
    assert!(error.to_string().contains("no such region is exported"), "{error}");
}

/// A put to memory that is reached in frames is in flight, and the word that announces it is mapped. The fence must hold.
#[test]
fn a_direct_store_does_not_overtake_earlier_frames() {
    let [initiator, owner] = pair("");
    let words = owner.allocate(RegionOptions::new(1, KEY), 64).unwrap();
    let data = owner.register(RegionOptions::new(2, KEY), vec![0_u64; 8192]).unwrap();
    let mine = initiator.allocate(RegionOptions::new(1, KEY), BYTES).unwrap();
    map(&initiator, &words);
    let before = initiator.counters().direct_operations;
    let queue = Queue::with_capacity(8);
    for round in 1..=200_u64 {
        mine.write(0, &vec![round; 8192]).unwrap();
        initiator.put(&mine.slice(..), data.address(0)).submit(&queue, round).unwrap();
        initiator.fence(Some(owner.id())).wait().unwrap();
        initiator.store(words.address(0), &round.to_le_bytes()).wait().unwrap();
        assert_eq!(words.get::<u64>(0).unwrap(), round);
        let mut seen = vec![0_u64; 8192];
        data.read(0, &mut seen).unwrap();
        assert!(seen.iter().all(|word| *word == round), "round {round}: the word is visible before the data");
        assert!(initiator.poll_wait(&queue, BOUND).unwrap().result.is_ok());
        // Nothing is in flight now, so the next store is direct again.
        initiator.store(words.address(8), &round.to_le_bytes()).wait().unwrap();
    }
    assert!(initiator.counters().direct_operations - before >= 200);
}

#[test]
fn a_direct_store_ends_the_wait_of_a_sleeping_owner() {
    let [initiator, owner] = pair("");
    let words = owner.allocate(RegionOptions::new(1, KEY), 64).unwrap();
    map(&initiator, &words);
    let from = initiator.id();
    for round in 1..=20_u64 {
        thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                let begun = Instant::now();
                let word = owner.wait_until(&words, 8, Condition::AtLeast, round, from).wait().unwrap();
                (word, begun.elapsed())
            });
            // Longer than a node without traffic stays awake.
            thread::sleep(Duration::from_millis(5));
            let (direct, _) = cost(&initiator, || {
                initiator.store(words.address(8), &round.to_le_bytes()).wait().unwrap();
            });
            assert_eq!(direct, 1);
            let (word, _) = waiter.join().unwrap();
            assert_eq!(word, round);
        });
    }
    // No thread polls for this wait: the background thread ends it.
    let queue = Queue::with_capacity(1);
    owner.wait_until(&words, 16, Condition::Equal, 5, from).submit(&queue, 9).unwrap();
    thread::sleep(Duration::from_millis(5));
    initiator.store(words.address(16), &5_u64.to_le_bytes()).wait().unwrap();
    assert_eq!(owner.poll_wait(&queue, BOUND).unwrap().context, 9);
}

#[test]
fn a_dropped_region_is_refused_and_its_number_can_be_mapped_again() {
    let [initiator, owner] = pair("");
    for round in 0..3_u64 {
        let theirs = owner.allocate(RegionOptions::new(1, KEY + round), 64).unwrap();
        map(&initiator, &theirs);
        let (at, view) = (theirs.address(8), initiator.map_peer(theirs.address(0), BOUND).unwrap());
        view.write(8, &[round]).unwrap();
        assert_eq!(theirs.get::<u64>(8).unwrap(), round);
        map(&initiator, &theirs);
        drop(theirs);
        let error = initiator.store(at, &[1]).wait().unwrap_err();
        assert!(matches!(error, Error::Refused { .. }), "{error}");
        let error = view.write(8, &[1_u64]).unwrap_err();
        assert!(matches!(error, Error::Refused { reason: OperationError::Revoked, .. }), "{error}");
    }
}

#[test]
fn what_the_owner_does_not_allow_is_refused_by_the_owner() {
    let [initiator, owner] = pair("");
    let only_read = Access { read: true, write: false, atomic: false };
    let theirs = owner.allocate(RegionOptions::new(1, KEY).access(only_read), 64).unwrap();
    let mine = initiator.allocate(RegionOptions::new(1, KEY), 64).unwrap();
    let begun = Instant::now();
    while initiator.counters().direct_operations == 0 {
        initiator.load(theirs.address(0), &mine.slice(0..8)).wait().unwrap();
        assert!(begun.elapsed() < BOUND);
    }
    let reason = |error: Error| match error {
        Error::Refused { reason, .. } => reason,
        other => panic!("{other}"),
    };
    let denied = initiator.store(theirs.address(0), &[1]).wait().unwrap_err();
    assert_eq!(reason(denied), OperationError::PermissionDenied);
    let outside = initiator.load(theirs.address(60), &mine.slice(0..8)).wait().unwrap_err();
    assert_eq!(reason(outside), OperationError::OutOfBounds);
    let wrong = RemoteAddress { key: Key(KEY + 1), ..theirs.address(0) };
    assert!(matches!(initiator.load(wrong, &mine.slice(0..8)).wait(), Err(Error::Refused { .. })));
    // A local range beyond its region is an error of the caller.
    assert!(matches!(initiator.load(theirs.address(0), &mine.slice(60..68)).wait(), Err(Error::Invalid(_))));
    assert!(matches!(initiator.store(theirs.address(0), &[]).wait(), Err(Error::Invalid(_))));
}

#[test]
fn a_view_of_a_peer_reads_writes_and_signals() {
    let [initiator, owner] = pair("");
    let theirs = owner.allocate(RegionOptions::new(1, KEY), 64).unwrap();
    let mine = initiator.allocate(RegionOptions::new(1, KEY), 64).unwrap();
    let view = mine.map_peer(&initiator, owner.id(), BOUND).unwrap();
    assert_eq!((view.owner(), view.region(), view.len()), (owner.id(), RegionId(1), 64));
    view.write(8, &[1.5_f32, 2.5]).unwrap();
    assert_eq!(theirs.get::<f32>(12).unwrap(), 2.5);
    theirs.write(16, &[40_u64]).unwrap();
    assert_eq!(view.fetch_add::<u64>(16, 2).unwrap(), 40);
    assert_eq!(view.compare_swap::<u64>(16, 42, 43).unwrap(), 42);
    assert_eq!(view.get::<u64>(16).unwrap(), 43);
    let outside = view.write(60, &[0_u64]).unwrap_err();
    assert!(matches!(outside, Error::Refused { reason: OperationError::OutOfBounds, .. }), "{outside}");
    let several = view.enter().unwrap();
    several.write(32, &[1_u64, 2]).unwrap();
    let mut seen = [0_u64];
    several.read(40, &mut seen).unwrap();
    assert_eq!((seen, theirs.get::<u64>(32).unwrap()), ([2], 1));
    assert!(several.write(64, &[0_u8]).is_err());
    drop(several);
    let from = initiator.id();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| owner.wait_until(&theirs, 24, Condition::Equal, 7, from).wait());
        thread::sleep(Duration::from_millis(5));
        view.signal(24, 7).unwrap();
        assert_eq!(waiter.join().unwrap().unwrap(), 7);
    });
}

#[test]
fn collectives_of_a_server_need_few_frames() {
    const COUNT: usize = 4096;
    let text = "name: box\nshape: {full-mesh: {nodes: 4}}\nservers: {box: [n0, n1, n2, n3]}\n";
    let fabric = Fabric::local(&Plan::parse(text, "test").unwrap()).unwrap();
    let members: Vec<NodeId> = fabric.nodes().iter().map(Node::id).collect();
    thread::scope(|scope| {
        for node in fabric.nodes() {
            let members = &members;
            scope.spawn(move || {
                let group = Group::join(node, GroupOptions::new(9, KEY), members).unwrap();
                // Every member needs a mapping of the memory of every other one, which its owner serves in a thread of
                // its own. All members stop after the same round, because each round agrees on the end of the next.
                let begun = Instant::now();
                let mut is_direct = [0_i32];
                for round in 1.. {
                    let mut sums = vec![round as f32; COUNT];
                    let before = node.counters();
                    group.all_reduce(&mut sums, ReduceOperation::Sum).wait().unwrap();
                    let direct = node.counters().direct_bytes - before.direct_bytes;
                    assert!(sums.iter().all(|sum| *sum == 4.0 * round as f32));
                    is_direct[0] = i32::from(direct >= 4 * COUNT as u64);
                    group.all_reduce(&mut is_direct, ReduceOperation::Min).wait().unwrap();
                    if is_direct[0] == 1 {
                        break;
                    }
                    assert!(begun.elapsed() < BOUND, "{direct} bytes of the last all-reduce without a frame");
                }
            });
        }
    });
}
