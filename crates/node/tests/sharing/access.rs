//! Tests of accesses of one process to the memory of another: visibility, contention, order, permission.

use std::time::{Duration, Instant};

use rackloom::sharing::{AccessError, Direct, ExportError, ExportEvent, Exporter, Importer};
use rackloom::wires::Doorbell;
use rackloom_protocol::{
    Access, Atomic, AtomicKind, Command, Condition, Event, JobMemory, LocalRange, Memory, MemoryAccess,
    MemoryDone, MemoryRequest, MemoryToken, OperationId, SignalKind, Width,
};

use super::parts::{ADDS, ANSWER_AT, DATA, ROUNDS, SIGNAL_AT};
use super::rig::*;

fn add_here(owner: &mut Owner, offset: u64, width: Width, operand: u64) {
    let atomic = Atomic { kind: AtomicKind::FetchAdd, width, operand, compare: 0 };
    let access = MemoryAccess::Atomic { offset, atomic };
    let request = MemoryRequest { token: MemoryToken(0), region: REGION, access };
    assert!(matches!(owner.memory.execute(&request, &[]), Some(MemoryDone::Value(_))));
}

#[test]
fn the_owner_sees_the_stores_of_an_importer() {
    let directory = RunDirectory::new("seen");
    let (mut owner, mut other) = with_same_tenant("writer", &directory);
    owner.memory.write(REGION, 8192, b"of owner").unwrap();
    assert_eq!(other.next_line(&mut owner), "written");
    let mut bytes = vec![0; 5003];
    owner.memory.read(REGION, 2, &mut bytes).unwrap();
    let expected = [0].into_iter().chain((0..=255).cycle().take(5001)).chain([0]);
    assert!(bytes.into_iter().eq(expected), "exactly these bytes and no others");
    assert_eq!(owner.word(LENGTH - 8), 11, "swapped, compared in vain, compared and swapped");
    other.finish(&mut owner);
    owner.serve_until(|owner| owner.exporter.importers(REGION) == 0);
    assert_eq!(
        owner.events,
        [
            ExportEvent::Imported { region: REGION, by: SAME_TENANT },
            ExportEvent::Released { region: REGION, by: SAME_TENANT, was_inside: false },
        ]
    );
}

#[test]
fn atomics_of_three_processes_add_up_exactly() {
    let directory = RunDirectory::new("contest");
    let (mut owner, mut first) = with_same_tenant("adder", &directory);
    let mut second = Other::start("adder", &directory);
    owner.exporter.seats_mut().occupy(SAME_TENANT_SECOND, second.process());
    first.send_line("1");
    second.send_line("4");
    assert_eq!(first.next_line(&mut owner), "ready");
    assert_eq!(second.next_line(&mut owner), "ready");
    first.send_line("go");
    second.send_line("go");
    for _ in 0..ADDS {
        add_here(&mut owner, 0, Width::Eight, 3);
        add_here(&mut owner, 64, Width::Four, 5);
    }
    assert_eq!(first.next_line(&mut owner), "added");
    assert_eq!(second.next_line(&mut owner), "added");
    assert_eq!(owner.word(0), 3 * ADDS * 3);
    assert_eq!(owner.word(64), 3 * ADDS * 5);
    assert_eq!(owner.word(128), 2 * ADDS, "compare and swap, by the importers only");
}

#[test]
fn the_data_is_visible_with_its_signal() {
    let directory = RunDirectory::new("signal");
    let (mut owner, mut other) = with_same_tenant("putter", &directory);
    let mut direct = Direct::default();
    let mut data = vec![0; DATA.length as usize];
    for round in 1..=ROUNDS {
        let wait = Command::WaitUntil {
            operation: OperationId(round),
            region: REGION,
            offset: SIGNAL_AT,
            condition: Condition::Equal,
            value: round,
            depends_on: None,
        };
        let mut ended = Vec::new();
        direct.handle_command(&owner.memory, &wait, &mut |event| ended.push(event)).unwrap();
        let deadline = Instant::now() + TIMEOUT;
        while ended.is_empty() {
            owner.serve();
            direct.poll(rackloom_protocol::Instant::ZERO, &owner.memory, &mut |event| ended.push(event));
            assert!(Instant::now() < deadline);
            // On a busy machine the process that puts needs this processor.
            std::thread::yield_now();
        }
        assert_eq!(ended, [Event::Completed { operation: OperationId(round), result: Ok(round) }]);
        owner.memory.read(REGION, DATA.offset, &mut data).unwrap();
        assert!(data.iter().all(|byte| *byte == round as u8), "round {round}");
        owner.memory.write(REGION, ANSWER_AT, &round.to_le_bytes()).unwrap();
    }
    assert_eq!(other.next_line(&mut owner), "put");
}

#[test]
fn two_members_can_import_from_each_other_at_the_same_time() {
    let directory = RunDirectory::new("mutual");
    let (mut owner, mut other) = with_same_tenant("peer", &directory);
    let mut table = seats(std::process::id());
    table.occupy(SAME_TENANT, other.process());
    let importer = Importer::new(PARENT_NODE, directory.path(), table);
    let pending = importer.import(SAME_TENANT, REGION, KEY).unwrap();
    let region = pending.wait(TIMEOUT, || owner.serve()).unwrap();
    assert_eq!(other.next_line(&mut owner), "stored");
    assert_eq!(owner.word(0), u64::from_le_bytes(*b"the peer"));
    region.store(0, b"parental").unwrap();
    other.finish(&mut owner);
}

#[test]
fn a_read_only_export_is_mapped_for_reading() {
    let directory = RunDirectory::new("read-only");
    let mut owner = Owner::new(PARENT_NODE, directory.path(), seats(0));
    owner.exporter.export(&mut owner.memory, config(Access::READ)).unwrap();
    let twice = owner.exporter.export(&mut owner.memory, config(Access::ALL));
    assert!(matches!(twice, Err(ExportError::AlreadyExported(REGION))));
    owner.memory.write(REGION, 8, b"readable").unwrap();
    let region = imported_here(&mut owner, &directory);
    let mut bytes = [0; 8];
    region.load(8, &mut bytes).unwrap();
    assert_eq!(bytes, *b"readable");
    assert_eq!(region.store(0, &[1]), Err(AccessError::PermissionDenied));
    assert_eq!(region.swap(0, Width::Eight, 1), Err(AccessError::PermissionDenied));
    let source = LocalRange { region: REGION, offset: 0, length: 8 };
    assert_eq!(region.copy_from(0, &owner.memory, source), Err(AccessError::PermissionDenied));
    let outside = LocalRange { region: REGION, offset: LENGTH, length: 1 };
    assert_eq!(region.copy_to(0, &owner.memory, outside), Err(AccessError::LocalRange));
}

#[test]
fn a_signal_wakes_an_owner_that_sleeps() {
    let directory = RunDirectory::new("bell");
    let bell = Doorbell::create().unwrap();
    let mut owner = Owner::new(PARENT_NODE, directory.path(), seats(0));
    drop(owner.exporter);
    owner.exporter = Exporter::listen(PARENT_NODE, directory.path(), seats(0), Some(&bell)).unwrap();
    owner.exporter.export(&mut owner.memory, config(Access::ALL)).unwrap();
    let region = imported_here(&mut owner, &directory);
    bell.arm();
    let before = Instant::now();
    let signaller = std::thread::spawn(move || region.signal(64, SignalKind::Set, 1));
    bell.sleep(20_000_000_000);
    assert!(before.elapsed() < Duration::from_secs(10));
    assert_eq!(owner.word(64), 1, "the word is visible when the doorbell has rung");
    signaller.join().unwrap().unwrap();
}
