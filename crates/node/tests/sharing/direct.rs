//! Tests of the wire's commands on mapped memory, or on memory that a device has opened: which are performed, their results, and which are left to
//! the wire.

use rackloom::memory::MemoryOptions;
use rackloom::sharing::{CommandPath, Cut, Direct};
use rackloom_protocol::{
    Access, Atomic, AtomicKind, Command, CommandRefused, Completion, Condition, Event, JobMemory, Key,
    LocalRange, Memory, NodeId, OperationError, OperationId, RegionId, RemoteAddress, Signal, SignalKind,
    Width,
};

use super::rig::*;

const OPERATION: OperationId = OperationId(5);
const OWN: LocalRange = LocalRange { region: RegionId(1), offset: 0, length: 1000 };

/// A member that has imported the region of another one in the same process.
struct Bench {
    _directory: RunDirectory,
    owner: Owner,
    direct: Direct,
    memory: rackloom::HostMemory,
}

impl Bench {
    fn new(kind: MemoryOptions, name: &str, access: Access) -> Self {
        Self::with_owner(kind, name, access, |_| {})
    }

    /// Makes a bench whose owner is prepared before it exports its region.
    fn with_owner(kind: MemoryOptions, name: &str, access: Access, prepare: impl FnOnce(&mut Owner)) -> Self {
        let directory = RunDirectory::new(name);
        let mut owner = Owner::at(kind, PARENT_NODE, directory.path(), seats(0));
        prepare(&mut owner);
        owner.exporter.export(&mut owner.memory, config(access)).unwrap();
        let mut memory = rackloom::HostMemory::default();
        memory.allocate_with(OWN.region, OWN.length, kind).unwrap();
        let mut direct = Direct::default();
        direct.add(imported_by(&memory, &mut owner, &directory).unwrap());
        Self { _directory: directory, owner, direct, memory }
    }

    /// Returns the result of the command, if it ended within the call.
    fn run(&mut self, command: Command<'_>) -> Option<Result<u64, OperationError>> {
        let mut ended = None;
        let mut collect = |event| match event {
            Event::Completed { operation: OPERATION, result } => ended = Some(result),
            other => panic!("{other:?}"),
        };
        let handled = self.direct.handle_command(&self.memory, &command, &mut collect).unwrap();
        assert_eq!(handled, CommandPath::Direct);
        ended
    }

    /// Returns whether the command is left to the wire.
    fn leaves(&mut self, command: Command<'_>) -> bool {
        let handled = self.direct.handle_command(&self.memory, &command, &mut |event| panic!("{event:?}"));
        handled == Ok(CommandPath::Frames)
    }
}

fn at(offset: u64) -> RemoteAddress {
    RemoteAddress { node: PARENT_NODE, region: REGION, offset, key: KEY }
}

fn store(offset: u64, data: &[u8], completion: Completion) -> Command<'_> {
    Command::Store { operation: OPERATION, target: at(offset), data, completion }
}

fn wait(value: u64, depends_on: Option<NodeId>) -> Command<'static> {
    let (operation, region, offset) = (OPERATION, OWN.region, 8);
    Command::WaitUntil { operation, region, offset, condition: Condition::AtLeast, value, depends_on }
}

#[test]
fn every_kind_of_operation_does_what_it_does_on_the_wire() {
    for kind in memory_kinds() {
        let mut bench = Bench::new(kind, "kinds", Access::ALL);
        assert_eq!(bench.run(store(16, b"stored", Completion::Visible)), Some(Ok(0)));
        assert_eq!(bench.run(store(22, b" and posted", Completion::Accepted)), None);
        let into = LocalRange { offset: 100, length: 17, ..OWN };
        assert_eq!(bench.run(Command::Load { operation: OPERATION, target: at(16), into }), Some(Ok(0)));
        let mut bytes = [0; 17];
        bench.memory.read(OWN.region, 100, &mut bytes).unwrap();
        assert_eq!(&bytes, b"stored and posted");
        for (kind, operand, compare, old, new) in [
            (AtomicKind::FetchAdd, 5, 0, 0, 5),
            (AtomicKind::CompareSwap, 9, 4, 5, 5),
            (AtomicKind::CompareSwap, 9, 5, 5, 9),
            (AtomicKind::Swap, 1, 0, 9, 1),
        ] {
            let atomic = Atomic { kind, width: Width::Eight, operand, compare };
            let command = Command::Atomic { operation: OPERATION, target: at(64), atomic };
            assert_eq!(bench.run(command), Some(Ok(old)), "{kind:?}");
            assert_eq!(bench.owner.word(64), new, "{kind:?}");
        }
        bench.memory.write(OWN.region, 0, &[7; 1000]).unwrap();
        let signal = Some(Signal { region: REGION, offset: 72, key: KEY, kind: SignalKind::Add, value: 3 });
        let put = Command::Put { operation: OPERATION, target: at(4001), source: OWN, signal };
        assert_eq!([bench.run(put), bench.run(put)], [Some(Ok(0)); 2]);
        assert_eq!(bench.owner.word(72), 6);
        let mut data = [0; 1002];
        bench.owner.memory.read(REGION, 4000, &mut data).unwrap();
        assert!(data[0] == 0 && data[1..1001] == [7; 1000] && data[1001] == 0);
        let nothing = LocalRange { length: 0, ..OWN };
        let bare = Command::Put { operation: OPERATION, target: at(0), source: nothing, signal };
        assert_eq!(bench.run(bare), Some(Ok(0)));
        assert_eq!(bench.owner.word(72), 9, "a put of nothing is a signal");
        bench.owner.memory.write(REGION, 0, &[8; 500]).unwrap();
        let into = LocalRange { offset: 250, length: 500, ..OWN };
        assert_eq!(bench.run(Command::Get { operation: OPERATION, target: at(0), into }), Some(Ok(0)));
        let mut all = [0; 1000];
        bench.memory.read(OWN.region, 0, &mut all).unwrap();
        assert!(all[..250] == [7; 250] && all[250..750] == [8; 500] && all[750..] == [7; 250]);
    }
}

#[test]
fn bad_accesses_end_as_on_the_wire_and_change_nothing() {
    for kind in memory_kinds() {
        let mut bench = Bench::new(kind, "bad", Access::ALL);
        let outside = Some(Err(OperationError::OutOfBounds));
        assert_eq!(bench.run(store(LENGTH - 1, b"ab", Completion::Visible)), outside);
        let atomic = Atomic { kind: AtomicKind::Swap, width: Width::Eight, operand: 1, compare: 0 };
        let misaligned = Command::Atomic { operation: OPERATION, target: at(4), atomic };
        assert_eq!(bench.run(misaligned), Some(Err(OperationError::Misaligned)));
        for (offset, error) in [(LENGTH, OperationError::OutOfBounds), (12, OperationError::Misaligned)] {
            let signal = Some(Signal { region: REGION, offset, key: KEY, kind: SignalKind::Set, value: 1 });
            bench.memory.write(OWN.region, 0, &[1; 8]).unwrap();
            let put = Command::Put { operation: OPERATION, target: at(0), source: OWN, signal };
            assert_eq!(bench.run(put), Some(Err(error)));
            assert_eq!(bench.owner.word(0), 0, "a put whose signal is impossible writes nothing");
        }
        let too_long = LocalRange { length: 1001, ..OWN };
        let get = Command::Get { operation: OPERATION, target: at(0), into: too_long };
        let refused = bench.direct.handle_command(&bench.memory, &get, &mut |event| panic!("{event:?}"));
        assert!(matches!(refused, Err(CommandRefused::Invalid(_))));
        let mut read_only = Bench::new(kind, "bad-write", Access::READ);
        let denied = Some(Err(OperationError::PermissionDenied));
        assert_eq!(read_only.run(store(0, b"a", Completion::Visible)), denied);
    }
}

#[test]
fn operations_on_regions_that_are_not_imported_use_the_wire() {
    for kind in memory_kinds() {
        let mut bench = Bench::new(kind, "wire", Access::ALL);
        let data = &b"x"[..];
        for target in [
            RemoteAddress { node: SAME_TENANT, ..at(0) },
            RemoteAddress { region: RegionId(9), ..at(0) },
            RemoteAddress { key: Key(1), ..at(0) },
        ] {
            let completion = Completion::Visible;
            assert!(bench.leaves(Command::Store { operation: OPERATION, target, data, completion }));
        }
        let elsewhere = Signal { region: RegionId(9), offset: 0, key: KEY, kind: SignalKind::Set, value: 1 };
        let (target, source, signal) = (at(0), OWN, Some(elsewhere));
        assert!(bench.leaves(Command::Put { operation: OPERATION, target, source, signal }));
        assert!(bench.leaves(Command::Flush { operation: OPERATION, target: None }));
        assert!(bench.leaves(Command::Fence { target: None }));
        assert!(bench.leaves(Command::Cancel { operation: OPERATION }));
        assert!(bench.direct.reaches(PARENT_NODE, REGION));
        bench.direct.forget(PARENT_NODE);
        assert!(bench.leaves(store(0, b"x", Completion::Visible)));
        // The owner detects a closed socket at one of its next polls.
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(5);
        while bench.owner.exporter.importers(REGION) > 0 {
            assert!(std::time::Instant::now() < deadline, "forgetting is dropping");
            bench.owner.serve();
        }
    }
}

#[test]
fn a_posted_store_that_fails_makes_the_next_flush_fail() {
    for kind in memory_kinds() {
        let mut bench = Bench::new(kind, "posted", Access::ALL);
        assert_eq!(bench.run(store(LENGTH, b"a", Completion::Accepted)), None);
        assert!(bench.leaves(Command::Flush { operation: OPERATION, target: Some(SAME_TENANT) }));
        let flush = Command::Flush { operation: OPERATION, target: Some(PARENT_NODE) };
        assert_eq!(bench.run(flush), Some(Err(OperationError::EarlierFailure)));
        assert!(bench.leaves(flush), "once");
    }
}

#[test]
fn waits_end_by_their_word_by_a_cancel_or_by_a_loss() {
    for kind in memory_kinds() {
        let mut bench = Bench::new(kind, "waits", Access::ALL);
        bench.memory.write(OWN.region, 8, &4_u64.to_le_bytes()).unwrap();
        assert_eq!(bench.run(wait(4, None)), Some(Ok(4)), "true already");
        assert_eq!(bench.run(wait(5, None)), None);
        assert!(!bench.direct.is_ready(&bench.memory));
        bench.memory.write(OWN.region, 8, &6_u64.to_le_bytes()).unwrap();
        assert!(bench.direct.is_ready(&bench.memory));
        let mut ended = Vec::new();
        let now = rackloom_protocol::Instant::ZERO;
        assert!(bench.direct.poll(now, &bench.memory, &mut |event| ended.push(event)));
        assert!(!bench.direct.poll(now, &bench.memory, &mut |event| ended.push(event)));
        assert_eq!(ended, [Event::Completed { operation: OPERATION, result: Ok(6) }]);
        assert_eq!(bench.run(wait(7, None)), None);
        let cancelled = bench.run(Command::Cancel { operation: OPERATION });
        assert_eq!(cancelled, Some(Err(OperationError::Cancelled)));
        assert_eq!(bench.run(wait(7, Some(OTHER_SERVER))), None);
        ended.clear();
        bench.direct.node_lost(SAME_TENANT, &mut |event| ended.push(event));
        assert_eq!(ended, []);
        bench.direct.node_lost(OTHER_SERVER, &mut |event| ended.push(event));
        let result = Err(OperationError::Unreachable);
        assert_eq!(ended, [Event::Completed { operation: OPERATION, result }]);
    }
}

#[test]
fn operations_on_a_revoked_region_end_as_revoked() {
    for kind in memory_kinds() {
        let mut bench = Bench::new(kind, "revoked", Access::ALL);
        bench.owner.exporter.revoke(&mut bench.owner.memory, REGION, TIMEOUT, Cut::IfSilent).unwrap();
        let revoked = Some(Err(OperationError::Revoked));
        assert_eq!(bench.run(store(0, b"late", Completion::Visible)), revoked);
        assert_eq!(bench.owner.word(0), 0);
    }
}

#[test]
fn withheld_memory_is_accessed_in_frames_from_then_on() {
    for kind in memory_kinds() {
        let mut bench = Bench::new(kind, "withheld", Access::ALL);
        assert_eq!(bench.run(store(16, b"before", Completion::Visible)), Some(Ok(0)));
        bench.owner.exporter.withhold(true);
        assert!(
            bench.leaves(store(16, b"during", Completion::Visible)) && bench.direct.is_withheld(PARENT_NODE)
        );
        assert!(bench.leaves(Command::Load { operation: OPERATION, target: at(16), into: OWN }));
        assert_eq!(&bench.owner.bytes()[16..22], b"before", "nothing was done");
        bench.owner.exporter.withhold(false);
        assert!(
            bench.leaves(store(16, b"after!", Completion::Visible)),
            "a store in a frame may be in flight"
        );
        bench.direct.forget(PARENT_NODE);
        assert!(!bench.direct.is_withheld(PARENT_NODE));
    }
}

#[test]
fn an_importer_without_accesses_while_memory_was_withheld_continues() {
    for kind in memory_kinds() {
        let mut bench = Bench::new(kind, "withheld-unseen", Access::ALL);
        bench.owner.exporter.withhold(true);
        bench.owner.exporter.withhold(false);
        assert_eq!(bench.run(store(16, b"direct", Completion::Visible)), Some(Ok(0)));
        bench.owner.exporter.raise(REGION).unwrap();
        bench.owner.exporter.withhold(true);
        assert_eq!(bench.run(store(16, b"refuse", Completion::Visible)), Some(Err(OperationError::Revoked)));
    }
}

#[test]
fn a_region_that_is_exported_while_memory_is_withheld_is_withheld_too() {
    for kind in memory_kinds() {
        let mut bench =
            Bench::with_owner(kind, "withheld-first", Access::ALL, |owner| owner.exporter.withhold(true));
        assert!(bench.leaves(store(16, b"during", Completion::Visible)));
        assert_eq!(&bench.owner.bytes()[16..22], &[0; 6], "nothing was done");
        let mut bench = Bench::with_owner(kind, "withheld-no-more", Access::ALL, |owner| {
            owner.exporter.withhold(true);
            owner.exporter.withhold(false);
        });
        assert_eq!(bench.run(store(16, b"direct", Completion::Visible)), Some(Ok(0)));
    }
}
