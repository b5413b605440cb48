//! Memory on a device that nodes of one server open: which operations need no frame, rights, waits, collectives, and the end of a region.
//!
//! The device is a fake one, whose delays and order depend on a seed. On a GPU, nodes need separate processes for this: `tests/gpu.rs` has that test.

#![cfg(feature = "gpu")]

use std::thread;
use std::time::{Duration, Instant};

use rackloom::fabric::*;

const KEY: u64 = 0x5eed;
const BYTES: u64 = 1 << 16;
/// Longer than any step takes, shorter than a hang.
const BOUND: Duration = Duration::from_secs(20);

fn options(region: u32) -> RegionOptions {
    RegionOptions::new(region, KEY)
}

/// Starts a rack of two nodes in one server. `more` are further lines of the rack file.
fn pair(more: &str) -> [Node; 2] {
    let text = format!("name: pair\nshape: {{ring: {{nodes: 2}}}}\nservers: {{box: [n0, n1]}}\n{more}");
    let plan = Plan::parse(&text, "test").unwrap();
    Fabric::local(&plan).unwrap().into_nodes().try_into().unwrap()
}

/// Repeats `act` until it needs no frame.
fn until_direct(initiator: &Node, mut act: impl FnMut()) {
    let begun = Instant::now();
    let before = initiator.counters().direct_operations;
    while initiator.counters().direct_operations == before {
        act();
        assert!(begun.elapsed() < BOUND, "the region is not opened");
        thread::yield_now();
    }
}

/// Stores a zero at the beginning of the region until a store needs no frame.
fn open(initiator: &Node, region: &Region) {
    until_direct(initiator, || initiator.store(region.address(0), &[0]).wait().unwrap());
}

/// Returns the number of direct operations and of data frames that `act` causes at the initiator.
fn cost(initiator: &Node, act: impl FnOnce()) -> (u64, u64) {
    let before = initiator.counters();
    act();
    let after = initiator.counters();
    (after.direct_operations - before.direct_operations, after.data_frames_sent - before.data_frames_sent)
}

fn bytes_of(region: &Region, offset: u64, length: u64) -> Vec<u8> {
    let mut found = vec![0; length as usize];
    region.read(offset, &mut found).unwrap();
    found
}

fn pattern(seed: u64, bytes: u64) -> Vec<u8> {
    (0..bytes).map(|at| (at.wrapping_mul(31).wrapping_add(seed * 7) >> 3) as u8).collect()
}

/// Allocates a region on the node's device, or on the host.
fn place(node: &Node, is_on_device: bool, device: DeviceChoice) -> Region {
    match is_on_device {
        true => node.allocate_on_device(options(1), device, BYTES).unwrap(),
        false => node.allocate(options(1), BYTES).unwrap(),
    }
}

#[test]
fn operations_on_a_device_of_a_peer_need_no_frame() {
    for (seed, [ours, theirs]) in (0..).zip([[true, true], [false, true], [true, false], [true, true]]) {
        let [initiator, owner] = pair("");
        let devices = [DeviceChoice::Fake(seed), DeviceChoice::Fake(seed + 10)];
        // Without a device of its own, a node opens none of a peer.
        let _device = initiator.allocate_on_device(options(9), devices[0], 64).unwrap();
        let (mine, theirs) = (place(&initiator, ours, devices[0]), place(&owner, theirs, devices[1]));
        open(&initiator, &theirs);
        let direct = |operations, act: &mut dyn FnMut()| {
            assert_eq!(cost(&initiator, act), (operations, 0));
        };
        direct(1, &mut || initiator.store(theirs.address(8), b"abcdefgh").wait().unwrap());
        assert_eq!(bytes_of(&theirs, 8, 8), b"abcdefgh");
        theirs.write(3, b"written by the owner").unwrap();
        direct(2, &mut || {
            initiator.load(theirs.address(3), &mine.slice(0..20)).wait().unwrap();
            initiator.get(theirs.address(3), &mine.slice(100..120)).wait().unwrap();
        });
        assert_eq!(bytes_of(&mine, 0, 20), b"written by the owner");
        assert_eq!(bytes_of(&mine, 100, 20), b"written by the owner");
        let data = pattern(1, BYTES - 8192);
        mine.write(64, &data).unwrap();
        let signal = Signal::set(theirs.address(16), 5);
        direct(2, &mut || {
            initiator.put(&mine.slice(64..64 + data.len() as u64), theirs.address(4096)).wait().unwrap();
            initiator.put_with_signal(&mine.slice(64..128), theirs.address(1000), signal).wait().unwrap();
        });
        assert_eq!(bytes_of(&theirs, 4096, data.len() as u64), data);
        assert_eq!(bytes_of(&theirs, 1000, 64), data[..64]);
        assert_eq!(theirs.get::<u64>(16).unwrap(), 5);
        let at = theirs.address(16);
        direct(3, &mut || {
            assert_eq!(initiator.fetch_add::<u64>(at, 4).wait().unwrap(), 5);
            assert_eq!(initiator.compare_swap::<u64>(at, 9, 1).wait().unwrap(), 9);
            assert_eq!(initiator.swap::<u32>(at, 7).wait().unwrap(), 1);
        });
        direct(2, &mut || {
            initiator.store_posted(theirs.address(24), &[1; 8]).wait().unwrap();
            initiator.put(&mine.slice(64..72), theirs.address(32)).posted().wait().unwrap();
            initiator.flush(Some(owner.id())).wait().unwrap();
        });
        assert_eq!((bytes_of(&theirs, 24, 8), bytes_of(&theirs, 32, 8)), (vec![1; 8], data[..8].to_vec()));
        let view = initiator.map_peer(theirs.address(0), BOUND).unwrap();
        view.write(40, &[1.5_f32, 2.5]).unwrap();
        assert_eq!(theirs.get::<f32>(44).unwrap(), 2.5);
        assert_eq!(view.fetch_add::<u64>(16, 1).unwrap(), 7);
        assert_eq!(view.get::<u64>(16).unwrap(), 8);
    }
}

#[test]
fn a_node_without_a_device_uses_frames_until_it_opens_one() {
    let [initiator, owner] = pair("");
    let theirs = owner.allocate_on_device(options(1), DeviceChoice::Fake(1), BYTES).unwrap();
    let error = initiator.map_peer(theirs.address(0), BOUND).unwrap_err();
    assert!(error.to_string().contains("this member has none"), "{error}");
    let (direct, frames) = cost(&initiator, || initiator.store(theirs.address(8), &[1]).wait().unwrap());
    assert!(direct == 0 && frames > 0);
    let _mine = initiator.allocate_on_device(options(1), DeviceChoice::Fake(2), 64).unwrap();
    open(&initiator, &theirs);
    assert_eq!(theirs.get::<u8>(8).unwrap(), 1);
}

#[test]
fn force_wire_and_memory_of_the_caller_use_frames() {
    let device = DeviceChoice::Fake(1);
    for forced in [true, false] {
        let [initiator, owner] = pair(if forced { "force_wire: true\n" } else { "" });
        let first = owner.allocate_on_device(options(1), device, BYTES).unwrap();
        let address = owner.with_device(|device| device.allocate(64).unwrap()).unwrap();
        // SAFETY: the memory is the device's, and lives as long as the device.
        let callers = unsafe { owner.register_on_device(options(2), device, address.0, 64) }.unwrap();
        let _mine = initiator.allocate_on_device(options(1), DeviceChoice::Fake(2), 64).unwrap();
        let theirs = if forced { &first } else { &callers };
        let error = initiator.map_peer(theirs.address(0), BOUND).unwrap_err();
        assert!(matches!(error, Error::NotMapped { .. }), "{error}");
        let (direct, frames) = cost(&initiator, || initiator.store(theirs.address(8), &[1]).wait().unwrap());
        assert!(direct == 0 && frames > 0);
        assert_eq!(theirs.get::<u8>(8).unwrap(), 1);
    }
}

#[test]
fn an_access_that_the_owner_does_not_allow_is_refused_by_the_owner() {
    let [initiator, owner] = pair("");
    let only_read = Access { read: true, write: false, atomic: false };
    let theirs = owner.allocate_on_device(options(1).access(only_read), DeviceChoice::Fake(1), 64).unwrap();
    let mine = initiator.allocate_on_device(options(1), DeviceChoice::Fake(2), 64).unwrap();
    until_direct(&initiator, || {
        initiator.load(theirs.address(0), &mine.slice(0..8)).wait().unwrap();
    });
    let reason = |error: Error| match error {
        Error::Refused { reason, .. } => reason,
        other => panic!("{other}"),
    };
    let denied = initiator.store(theirs.address(0), &[1]).wait().unwrap_err();
    assert_eq!(reason(denied), OperationError::PermissionDenied);
    let denied = initiator.fetch_add::<u64>(theirs.address(0), 1).wait().unwrap_err();
    assert_eq!(reason(denied), OperationError::PermissionDenied);
    let outside = initiator.load(theirs.address(60), &mine.slice(0..8)).wait().unwrap_err();
    assert_eq!(reason(outside), OperationError::OutOfBounds);
    let wrong = RemoteAddress { key: Key(KEY + 1), ..theirs.address(0) };
    assert!(matches!(initiator.load(wrong, &mine.slice(0..8)).wait(), Err(Error::Refused { .. })));
    assert!(matches!(initiator.load(theirs.address(0), &mine.slice(60..68)).wait(), Err(Error::Invalid(_))));
}

/// Returns `true` if an address is memory of a node's device. A device shares only memory that was not freed.
fn is_allocated(node: &Node, address: u64) -> bool {
    node.with_device(|device| device.share(rackloom_gpu::device::Address(address)).is_ok()).unwrap()
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < BOUND, "{what}");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn memory_is_freed_when_its_owner_and_all_importers_have_dropped_it() {
    let [initiator, owner] = pair("");
    let _keeps_the_devices = [&initiator, &owner]
        .map(|node| node.allocate_on_device(options(9), DeviceChoice::Fake(7), 64).unwrap());
    for round in 0..3_u64 {
        let options = RegionOptions::new(1, KEY + round);
        let theirs = owner.allocate_on_device(options, DeviceChoice::Fake(7), 4096).unwrap();
        let (at, address) = (theirs.address(8), theirs.device_address().unwrap());
        let view = initiator.map_peer(theirs.address(0), BOUND).unwrap();
        open(&initiator, &theirs);
        drop(theirs);
        let error = initiator.store(at, &[1]).wait().unwrap_err();
        assert!(matches!(error, Error::Refused { .. }), "{error}");
        let error = view.write(8, &[1_u64]).unwrap_err();
        assert!(matches!(error, Error::Refused { reason: OperationError::Revoked, .. }), "{error}");
        // A new region of the same number is independent of the importers of the old one.
        let again = owner.allocate_on_device(options, DeviceChoice::Fake(7), 4096).unwrap();
        open(&initiator, &again);
        initiator.store(again.address(16), &[3; 8]).wait().unwrap();
        assert_eq!(bytes_of(&again, 16, 8), [3; 8]);
        assert_ne!(again.device_address(), Some(address));
        assert!(is_allocated(&owner, address), "the view still has it open");
        drop(view);
        until("the memory is not freed", || !is_allocated(&owner, address));
        // The node's own import is dropped without an operation.
        let address = again.device_address().unwrap();
        drop(again);
        until("the node keeps an ended region open", || !is_allocated(&owner, address));
    }
}

#[test]
fn a_direct_store_ends_the_wait_of_a_sleeping_owner() {
    let [initiator, owner] = pair("");
    let words = owner.allocate_on_device(options(1), DeviceChoice::Fake(1), 64).unwrap();
    let mine = initiator.allocate_on_device(options(1), DeviceChoice::Fake(2), 64).unwrap();
    open(&initiator, &words);
    let from = initiator.id();
    for round in 1..=20_u64 {
        thread::scope(|scope| {
            let waiter =
                scope.spawn(|| owner.wait_until(&words, 8, Condition::AtLeast, round, from).wait().unwrap());
            // Longer than a node without traffic stays awake.
            thread::sleep(Duration::from_millis(5));
            let signal = Signal::set(words.address(8), round);
            let (direct, _) = cost(&initiator, || {
                initiator.put_with_signal(&mine.slice(0..8), words.address(16), signal).wait().unwrap();
            });
            assert_eq!((direct, waiter.join().unwrap()), (1, round));
        });
    }
}

#[test]
fn the_end_of_an_owner_ends_operations_and_views() {
    for leaves in [true, false] {
        let [initiator, owner] = pair("");
        let theirs = owner.allocate_on_device(options(1), DeviceChoice::Fake(1), 64).unwrap();
        let _mine = initiator.allocate_on_device(options(1), DeviceChoice::Fake(2), 64).unwrap();
        let (at, peer) = (theirs.address(8), owner.id());
        let view = initiator.map_peer(at, BOUND).unwrap();
        open(&initiator, &theirs);
        if leaves {
            owner.leave()
        } else {
            drop((theirs, owner))
        }
        let error = view.write(8, &[1_u64]).unwrap_err();
        let is_lost = matches!(error, Error::PeerLost { peer: lost, .. } if lost == peer);
        let is_revoked = matches!(error, Error::Refused { reason: OperationError::Revoked, .. });
        assert!(if leaves { is_lost } else { is_revoked }, "{error}");
        let error = initiator.store(at, &[1]).wait().unwrap_err();
        assert!(matches!(error, Error::PeerLost { .. } | Error::Refused { .. }), "{error}");
    }
}

#[test]
fn collectives_on_devices_of_a_server_need_few_frames() {
    const COUNT: usize = 4096;
    let text = "name: box\nshape: {full-mesh: {nodes: 3}}\nservers: {box: [n0, n1, n2]}\n";
    let fabric = Fabric::local(&Plan::parse(text, "test").unwrap()).unwrap();
    let members: Vec<NodeId> = fabric.nodes().iter().map(Node::id).collect();
    thread::scope(|scope| {
        for node in fabric.nodes() {
            let members = &members;
            scope.spawn(move || {
                let device = DeviceChoice::Fake(node.id().0.into());
                let group = Group::join(node, GroupOptions::new(9, KEY).device(device), members).unwrap();
                let values = node.allocate_on_device(options(1), device, 4 * COUNT as u64).unwrap();
                let begun = Instant::now();
                let mut is_direct = [0_i32];
                for round in 1.. {
                    values.write(0, &vec![round as f32; COUNT]).unwrap();
                    let before = node.counters();
                    let (whole, queue) = (values.slice(..), Queue::with_capacity(1));
                    let sum = ReduceOperation::Sum;
                    let request =
                        group.on_slices(Collective::AllReduce, sum, ElementType::F32, &whole, &whole);
                    request.submit(&queue, 1).unwrap();
                    node.poll_wait(&queue, BOUND).expect("it ends").result.unwrap();
                    let direct = node.counters().direct_bytes - before.direct_bytes;
                    let mut sums = vec![0_f32; COUNT];
                    values.read(0, &mut sums).unwrap();
                    assert!(sums.iter().all(|sum| *sum == 3.0 * round as f32));
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

/// A processor reads a word on a device a thousand times slower than one of the host.
#[test]
fn words_of_a_group_on_a_device_are_in_memory_of_the_host() {
    /// Bit in which the numbers of the two regions of a group differ.
    const ARRAYS: u32 = 1 << 29;
    let [first, second] = pair("");
    let members = [first.id(), second.id()];
    let groups = [&first, &second].map(|node| {
        let device = DeviceChoice::Fake(node.id().0.into());
        Group::join(node, GroupOptions::new(9, KEY).device(device), &members).unwrap()
    });
    let address =
        |region: u32| RemoteAddress { node: second.id(), region: RegionId(region), offset: 0, key: Key(KEY) };
    let words = first.map_peer(address(9), BOUND).unwrap();
    assert!(matches!(words.kernel_access(), Err(Error::Invalid(Invalid::NotOnDevice))));
    let arrays = first.map_peer(address(9 ^ ARRAYS), BOUND).unwrap();
    arrays.kernel_access().unwrap();
    // Both numbers are in use until the group ends.
    for region in [9, 9 ^ ARRAYS] {
        let refused = second.allocate(options(region), 64).unwrap_err();
        assert!(matches!(refused, Error::RegionExists(_)), "{refused}");
    }
    drop(groups);
}
