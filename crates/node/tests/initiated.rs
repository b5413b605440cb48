//! Tests of operations that kernels begin: every kind, many threads, a barrier of two nodes, and failures after which no kernel waits.
//!
//! Kernels are threads of the host on the fake device. On a GPU, if there is one, they are real kernels.

#![cfg(feature = "gpu")]

use std::io::Write;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rackloom::fabric::{CommandQueue, DeviceChoice, Fabric, Node, NodeId, Plan, Region, RegionOptions};
use rackloom::gpu::commands::{
    ANY_PEER, Command, CommandKind, HostKernel, HostTeam, HostWords, POSTED, SIGNAL, SLOTS_MAX, Status,
};
use rackloom::gpu::cuda::{Argument, Program};
use rackloom::gpu::device::{Device, StreamId};
use rackloom::gpu::kernels::INITIATED;
use rackloom::gpu::{Cuda, Driver};

const KEY: u64 = 0x5eed;
const REGION: u32 = 1;
const BYTES: u64 = 1 << 20;
const SLOTS: u32 = 64;

struct Rig {
    fabric: Fabric,
    regions: Vec<Region>,
}

impl Rig {
    fn new(device: DeviceChoice) -> Self {
        let plan = Plan::parse("name: two\nshape: {ring: {nodes: 2}}\n", "test").unwrap();
        let fabric = Fabric::local(&plan).unwrap();
        let options = RegionOptions::new(REGION, KEY);
        let region = |node: &Node| node.allocate_on_device(options, device, BYTES).unwrap();
        let regions = fabric.nodes().iter().map(region).collect();
        Self { fabric, regions }
    }

    fn node(&self, index: usize) -> &Node {
        &self.fabric.nodes()[index]
    }

    fn queue(&self, index: usize) -> CommandQueue {
        self.node(index).command_queue(SLOTS).unwrap()
    }
}

fn to(peer: NodeId, kind: CommandKind, offset: u64) -> Command {
    let (kind, peer) = (kind as u32, u32::from(peer.0));
    Command { kind, peer, region: REGION, offset, key: KEY, flags: 8 << 16, ..Command::default() }
}

fn done(kernel: &HostKernel, command: Command) -> u64 {
    let (status, value) = kernel.call(&command);
    assert_eq!(status, Status::Done, "{command:?}");
    value
}

#[test]
fn every_operation_of_a_kernel_matches_the_librarys() {
    let rig = Rig::new(DeviceChoice::Fake(5));
    let (queue, peer) = (rig.queue(0), rig.node(1).id());
    let kernel = queue.host_kernel();
    let theirs = &rig.regions[1];
    done(&kernel, Command { operand: 40, ..to(peer, CommandKind::Store, 64) });
    assert_eq!(done(&kernel, Command { operand: 2, ..to(peer, CommandKind::FetchAdd, 64) }), 40);
    let swap = Command { operand: 7, compare: 42, ..to(peer, CommandKind::CompareSwap, 64) };
    assert_eq!(done(&kernel, swap), 42);
    assert_eq!(done(&kernel, Command { operand: 9, ..to(peer, CommandKind::Swap, 64) }), 7);
    assert_eq!(theirs.get::<u64>(64).unwrap(), 9);
    let data: Vec<u8> = (0..100_000_u32).map(|at| (at * 7) as u8).collect();
    rig.regions[0].write(4096, &data).unwrap();
    let own = Command { local_region: REGION, local_offset: 4096, length: 100_000, ..Command::default() };
    let put = to(peer, CommandKind::Put, 8192);
    let signal = Command {
        flags: put.flags | SIGNAL,
        signal_region: REGION,
        signal_offset: 128,
        signal_key: KEY,
        signal_value: 5,
        ..Command { kind: put.kind, peer: put.peer, region: REGION, offset: 8192, key: KEY, ..own }
    };
    done(&kernel, signal);
    assert_eq!(theirs.get::<u64>(128).unwrap(), 5);
    let mut found = vec![0_u8; 100_000];
    theirs.read(8192, &mut found).unwrap();
    assert_eq!(found, data);
    for (kind, length) in [(CommandKind::Load, 300), (CommandKind::Get, 100_000)] {
        let from = to(peer, kind, 8192);
        done(&kernel, Command { local_region: REGION, local_offset: 300_000, length, ..from });
        found = vec![0; length as usize];
        rig.regions[0].read(300_000, &mut found).unwrap();
        assert_eq!(found, data[..length as usize]);
    }
}

#[test]
fn an_invalid_command_of_a_kernel_fails_alone() {
    let rig = Rig::new(DeviceChoice::Fake(6));
    let (queue, peer) = (rig.queue(0), rig.node(1).id());
    let kernel = queue.host_kernel();
    let store = to(peer, CommandKind::Store, 64);
    assert_eq!(kernel.call(&Command { offset: 1 << 40, ..store }).0, Status::Refused);
    assert_eq!(kernel.call(&Command { key: 1, ..store }).0, Status::Refused);
    assert_eq!(kernel.call(&Command { kind: 99, ..store }).0, Status::Invalid);
    assert_eq!(kernel.call(&Command { peer: 7, ..store }).0, Status::Invalid);
    assert_eq!(kernel.call(&Command { peer: 1 << 20, ..store }).0, Status::Invalid);
    assert_eq!(kernel.call(&Command { flags: 3 << 16, ..store }).0, Status::Invalid);
    let invalid = Command { local_region: 77, length: 8, ..to(peer, CommandKind::Put, 0) };
    assert_eq!(kernel.call(&invalid).0, Status::Invalid);
    // A posted command has no status of its own. The next flush returns it.
    kernel.issue(&Command { offset: 1 << 40, flags: store.flags | POSTED, ..store }).unwrap();
    let flush = Command { kind: CommandKind::Flush as u32, peer: ANY_PEER, ..Command::default() };
    assert_eq!(kernel.call(&flush).0, Status::Refused);
    assert_eq!(kernel.call(&flush).0, Status::Done);
}

#[test]
fn more_threads_than_slots_share_a_ring() {
    let rig = Rig::new(DeviceChoice::Fake(7));
    let (queue, peer) = (rig.node(0).command_queue(4).unwrap(), rig.node(1).id());
    let kernel = queue.host_kernel();
    std::thread::scope(|scope| {
        for thread in 0..8_u64 {
            let kernel = &kernel;
            scope.spawn(move || {
                for at in 0..50 {
                    let store = Command { operand: at, ..to(peer, CommandKind::Store, 1024 + thread * 8) };
                    if at % 3 == 0 {
                        kernel.issue(&Command { flags: store.flags | POSTED, ..store }).unwrap();
                    } else {
                        done(kernel, store);
                    }
                    done(kernel, Command { operand: 1, ..to(peer, CommandKind::FetchAdd, 512) });
                }
            });
        }
    });
    assert_eq!(rig.regions[1].get::<u64>(512).unwrap(), 400);
}

#[test]
fn a_waiting_kernel_gets_an_error_when_its_node_or_its_peer_is_gone() {
    let rig = Rig::new(DeviceChoice::Fake(8));
    let (first, second) = (rig.queue(0), rig.queue(1));
    let (initiator, owner) = (first.host_kernel(), second.host_kernel());
    let (here, there) = (rig.node(0).id(), rig.node(1).id());
    done(&initiator, Command { operand: 1, ..to(there, CommandKind::Store, 0) });
    let losses = initiator.losses();
    std::thread::scope(|scope| {
        let looping = scope.spawn(|| {
            loop {
                let (status, _) =
                    initiator.call(&Command { operand: 1, ..to(there, CommandKind::FetchAdd, 8) });
                if status != Status::Done {
                    return status;
                }
            }
        });
        rig.node(1).leave();
        // The kernel whose node has left.
        assert_eq!(owner.call(&to(here, CommandKind::Store, 0)).0, Status::Closed);
        assert!(matches!(looping.join().unwrap(), Status::Lost | Status::OutcomeUnknown));
    });
    let begun = Instant::now();
    while initiator.losses() == losses && begun.elapsed() < Duration::from_secs(20) {
        std::thread::yield_now();
    }
    assert_eq!(initiator.losses(), losses + 1, "a kernel that waits for a word checks this counter");
    drop(first);
    assert_eq!(initiator.call(&to(there, CommandKind::Store, 0)).0, Status::Closed);
}

#[test]
fn blocks_of_two_nodes_pass_a_barrier_through_the_fabric() {
    const BLOCKS: u64 = 3;
    const ROUNDS: u64 = 20;
    const WORDS_AT: u64 = 65_536;
    let rig = Rig::new(DeviceChoice::Fake(6));
    let queues = [rig.queue(0), rig.queue(1)];
    let kernels = [0, 1].map(|index: usize| queues[index].host_kernel());
    let nodes: Vec<_> = [0, 1].map(|place| u32::from(rig.node(place).id().0)).into();
    let team = |index: usize| {
        HostTeam::new(
            nodes.clone(),
            index,
            HostWords { region: REGION, offset: WORDS_AT, key: KEY },
            kernels[index].losses(),
            BLOCKS,
        )
    };
    let (teams, counters) = ([team(0), team(1)], [0, 1].map(|_| std::sync::atomic::AtomicU64::new(0)));
    let look = |index: usize, other: usize| {
        let mut word = [0; 8];
        rig.regions[index].read(WORDS_AT + 8 * other as u64, &mut word).unwrap();
        u64::from_le_bytes(word)
    };
    let play = |index: usize| {
        for round in 1..=ROUNDS {
            counters[index].fetch_add(1, Ordering::AcqRel);
            assert_eq!(kernels[index].barrier(&teams[index], |other| look(index, other)), Status::Done);
            let counted = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Acquire);
            assert!(counters.iter().all(|counter| counted(counter) == round * BLOCKS), "round {round}");
            assert_eq!(kernels[index].barrier(&teams[index], |other| look(index, other)), Status::Done);
        }
    };
    std::thread::scope(|scope| {
        let play = &play;
        (0..2 * BLOCKS).for_each(|block| drop(scope.spawn(move || play((block % 2) as usize))));
    });
}

#[test]
fn a_node_that_serves_a_ring_without_sleep_admits_other_threads() {
    let rig = Rig::new(DeviceChoice::Fake(9));
    let _queues = [rig.queue(0), rig.queue(1)];
    for _ in 0..200 {
        // Long enough that no thread counts as a visitor, and the background thread has the node to itself.
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_micros(500) {
            std::hint::spin_loop();
        }
        assert!(rig.node(0).reaches(rig.node(1).id()));
    }
}

#[test]
fn a_ring_has_at_most_the_largest_number_of_slots() {
    let rig = Rig::new(DeviceChoice::Fake(10));
    let queue = rig.node(0).command_queue(u32::MAX).unwrap();
    assert_eq!(queue.argument().slots, u64::from(SLOTS_MAX));
    done(&queue.host_kernel(), Command { operand: 1, ..to(rig.node(1).id(), CommandKind::Store, 64) });
}

#[test]
fn without_a_device_there_is_no_ring() {
    let plan = Plan::parse("name: two\nshape: {ring: {nodes: 2}}\n", "test").unwrap();
    let fabric = Fabric::local(&plan).unwrap();
    let refused = fabric.nodes()[0].command_queue(4).unwrap_err();
    assert!(refused.to_string().contains("hint: "), "{refused}");
}

/// Opens the first GPU a second time, besides the nodes, with the test's kernels. Prints the reason if that fails.
fn gpu(test: &str) -> Option<(Cuda, Program, StreamId)> {
    let opened = Driver::open().and_then(|driver| {
        let mut cuda = Cuda::open(&driver, 0)?;
        let program = cuda.load(INITIATED)?;
        let stream = cuda.stream()?;
        Ok((cuda, program, stream))
    });
    let report = |error: &rackloom::gpu::GpuError| {
        std::io::stderr().write_all(format!("SKIPPED (1): {test}: {error}\n").as_bytes()).unwrap();
    };
    opened.inspect_err(report).ok()
}

fn words(queue: &CommandQueue) -> [u64; 5] {
    let argument = queue.argument();
    [argument.control, argument.replies, argument.commands, argument.head, argument.slots]
}

/// Returns a word of pinned memory.
fn word(pinned: &rackloom::gpu::Pinned, at: usize) -> u64 {
    pinned.word(at * 8).load(Ordering::Acquire)
}

#[test]
fn kernels_of_a_gpu_do_every_operation() {
    let Some((mut cuda, program, stream)) = gpu("kernels_of_a_gpu_do_every_operation") else { return };
    let rig = Rig::new(DeviceChoice::Cuda(0));
    let queue = rig.queue(0);
    let result = cuda.pin(64).unwrap();
    let arguments = [
        Argument::Words(&words(&queue)),
        Argument::Word(rig.node(1).id().0.into()),
        Argument::Word(REGION),
        Argument::Wide(KEY),
        Argument::Word(REGION),
        Argument::Wide(rig.regions[0].device_address().unwrap()),
        Argument::Wide(result.address(0).0),
    ];
    // SAFETY: the kernel's own arguments, all of memory that exists until it has ended.
    unsafe { cuda.launch_kernel(stream, &program, "every_operation", 1, 1, &arguments) }.unwrap();
    // The kernel ends by waiting for a word that the other node sets.
    rig.node(1).store(rig.regions[0].address(0), &1_u64.to_le_bytes()).wait().unwrap();
    cuda.synchronize(stream).unwrap();
    assert_eq!(word(&result, 0), 0, "the number of the operation that went wrong");
}

#[test]
fn kernels_of_two_nodes_pass_a_barrier_of_many_blocks() {
    const ROUNDS: u64 = 50;
    const BLOCKS: u32 = 16;
    let Some((mut cuda, program, stream)) = gpu("kernels_of_two_nodes_pass_a_barrier_of_many_blocks") else {
        return;
    };
    let rig = Rig::new(DeviceChoice::Cuda(0));
    let queues = [rig.queue(0), rig.queue(1)];
    let second = cuda.stream().unwrap();
    let mut pinned = cuda.pin(4096).unwrap();
    let losses = queues[0].host_kernel().losses();
    for (index, queue) in queues.iter().enumerate() {
        // Two words for the blocks and a counter: 64 bytes of device memory for each node.
        let own = cuda.allocate(64).unwrap();
        let nodes = [rig.node(0).id().0, rig.node(1).id().0].map(u32::from);
        let (words_at, base) = (65_536_u64, 512 * index);
        let put = |pinned: &mut rackloom::gpu::Pinned, at: usize, bytes: &[u8]| {
            pinned.write(base + at, bytes).unwrap();
        };
        put(&mut pinned, 256, &nodes[0].to_le_bytes());
        put(&mut pinned, 260, &nodes[1].to_le_bytes());
        let team: Vec<u64> = vec![
            pinned.address(base + 256).0,
            2 | (index as u64) << 32,
            u64::from(REGION) << 32,
            words_at,
            KEY,
            rig.regions[index].device_address().unwrap() + words_at,
            own.0,
            losses,
        ];
        let team: Vec<u8> = team.into_iter().flat_map(u64::to_le_bytes).collect();
        put(&mut pinned, 0, &team);
        let arguments = [
            Argument::Words(&words(queue)),
            Argument::Wide(pinned.address(base).0),
            Argument::Word(REGION),
            Argument::Wide(own.0 + 32),
            Argument::Wide(ROUNDS),
            Argument::Wide(pinned.address(base + 128).0),
            Argument::Wide(pinned.address(base + 136).0),
        ];
        let on = if index == 0 { stream } else { second };
        // SAFETY: the kernel's own arguments, all of memory that exists until it has ended.
        unsafe { cuda.launch_kernel(on, &program, "barriers", BLOCKS, 64, &arguments) }.unwrap();
    }
    cuda.synchronize(stream).unwrap();
    cuda.synchronize(second).unwrap();
    for index in 0..2 {
        assert_eq!((word(&pinned, index * 64 + 16), word(&pinned, index * 64 + 17)), (0, 1), "node {index}");
    }
}

/// Returns the median of times in the device's clock, in nanoseconds. All of them together took `all_ms` milliseconds.
fn median_ns(times: &rackloom::gpu::Pinned, count: usize, all_ms: f32) -> f64 {
    let mut clocks: Vec<u64> = (0..count).map(|at| word(times, at)).collect();
    let sum: u64 = clocks.iter().sum();
    clocks.sort_unstable();
    clocks[count / 2] as f64 * f64::from(all_ms) * 1e6 / sum as f64
}

#[test]
fn a_store_of_a_kernel_is_measured_beside_a_bare_loop_with_the_host() {
    const COUNT: usize = 2000;
    let name = "a_store_of_a_kernel_is_measured_beside_a_bare_loop_with_the_host";
    let Some((mut cuda, program, stream)) = gpu(name) else { return };
    let rig = Rig::new(DeviceChoice::Cuda(0));
    let queue = rig.queue(0);
    let (times, result) = (cuda.pin(COUNT * 8).unwrap(), cuda.pin(64).unwrap());
    let (from, until) = (cuda.timer().unwrap(), cuda.timer().unwrap());
    let arguments = [
        Argument::Words(&words(&queue)),
        Argument::Word(rig.node(1).id().0.into()),
        Argument::Word(REGION),
        Argument::Wide(KEY),
        Argument::Wide(COUNT as u64),
        Argument::Wide(times.address(0).0),
        Argument::Wide(result.address(0).0),
    ];
    cuda.record(from, stream).unwrap();
    // SAFETY: the kernel's own arguments, all of memory that exists until it has ended.
    unsafe { cuda.launch_kernel(stream, &program, "store_round_trips", 1, 1, &arguments) }.unwrap();
    cuda.record(until, stream).unwrap();
    cuda.synchronize(stream).unwrap();
    assert_eq!(word(&result, 0), 1, "all of them are done");
    assert_eq!(rig.regions[1].get::<u64>(0).unwrap(), COUNT as u64);
    let store_ns = median_ns(&times, COUNT, cuda.elapsed_ms(from, until).unwrap());
    std::io::stderr().write_all(b"the stores are done; now the bare loop\n").unwrap();
    // The bare loop consists of two words and a host that polls.
    let control_words = cuda.pin(128).unwrap();
    let arguments = [
        Argument::Wide(control_words.address(0).0),
        Argument::Wide(control_words.address(64).0),
        Argument::Wide(COUNT as u64),
        Argument::Wide(times.address(0).0),
    ];
    cuda.record(from, stream).unwrap();
    // SAFETY: the kernel's own arguments, all of memory that exists until it has ended.
    unsafe { cuda.launch_kernel(stream, &program, "raw_round_trips", 1, 1, &arguments) }.unwrap();
    cuda.record(until, stream).unwrap();
    for at in 1..=COUNT as u64 {
        while word(&control_words, 0) != at {
            std::hint::spin_loop();
        }
        control_words.word(64).store(at, Ordering::Release);
    }
    cuda.synchronize(stream).unwrap();
    let raw_ns = median_ns(&times, COUNT, cuda.elapsed_ms(from, until).unwrap());
    let line = format!(
        "a store of a kernel until it is acknowledged as visible: {:.1} us; a word to the host and back: {:.1} us\n",
        store_ns / 1e3,
        raw_ns / 1e3
    );
    std::io::stderr().write_all(line.as_bytes()).unwrap();
}
