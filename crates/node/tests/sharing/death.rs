//! Tests of processes that end, during an access or after ten thousand imports. No resource remains.

use std::process::Command as Process;
use std::time::{Duration, Instant};

use rackloom::sharing::{AccessError, Cut, Direct, ExportEvent, ImportError, Importer, Revoked};
use rackloom_protocol::{Command, Condition, Event, OperationError, OperationId};
use rustix::process::Signal;

use super::parts::CYCLES;
use super::rig::*;

const ALONE: &str = "RACKLOOM_TEST_ALONE";

#[test]
fn an_importer_that_dies_inside_an_access_is_removed() {
    let directory = RunDirectory::new("dead-importer");
    let (mut owner, mut other) = with_same_tenant("sleeper", &directory);
    assert_eq!(other.next_line(&mut owner), "inside");
    assert_eq!(owner.exporter.inside(REGION), 1);
    other.kill();
    owner.serve_until(|owner| owner.exporter.importers(REGION) == 0);
    let released = ExportEvent::Released { region: REGION, by: SAME_TENANT, was_inside: true };
    assert_eq!(owner.events.last(), Some(&released));
    let successor = imported_here(&mut owner, &directory);
    assert_eq!(owner.exporter.inside(REGION), 0, "a later importer begins anew");
    drop(successor);
    let outcome = owner.exporter.revoke(&mut owner.memory, REGION, TIMEOUT, Cut::IfSilent).unwrap();
    assert_eq!(outcome, Revoked::Quiet { importers: 0 }, "its count died with it");
}

#[test]
fn a_death_ends_the_wait_of_a_revocation() {
    let directory = RunDirectory::new("dies-late");
    let (mut owner, mut other) = with_same_tenant("sleeper", &directory);
    assert_eq!(other.next_line(&mut owner), "inside");
    let process = rustix::process::Pid::from_raw(other.process() as i32).unwrap();
    let begun = Instant::now();
    let killer = std::thread::spawn(move || rustix::process::kill_process(process, Signal::KILL));
    let outcome = owner.exporter.revoke(&mut owner.memory, REGION, TIMEOUT, Cut::IfSilent).unwrap();
    assert_eq!(outcome, Revoked::Quiet { importers: 0 });
    assert!(begun.elapsed() < TIMEOUT / 2);
    killer.join().unwrap().unwrap();
}

#[test]
fn the_death_of_the_owner_is_an_error_at_the_importer() {
    for kind in memory_kinds() {
        let directory = RunDirectory::new("dead-owner");
        let mut here = Owner::at(kind, PARENT_NODE, directory.path(), seats(std::process::id()));
        let mut command = Other::command("owner", &directory);
        if kind.device.is_some() {
            command.env(ON_DEVICE, "5");
        }
        let mut other = Other::spawn(command);
        let mut seats = seats(std::process::id());
        seats.occupy(SAME_TENANT, other.process());
        assert_eq!(other.next_line(&mut here), "listening");
        // The owner accepts each process that its table contains. The parent's seat is in the table.
        let importer = Importer::new(PARENT_NODE, directory.path(), seats).with_device_of(&here.memory);
        let import = || importer.import(SAME_TENANT, REGION, KEY).unwrap().wait(TIMEOUT, || ()).unwrap();
        let (checked, used, imported) = (import(), import(), import());
        let mut direct = Direct::default();
        direct.add(imported);
        let wait = Command::WaitUntil {
            operation: OperationId(9),
            region: REGION,
            offset: 0,
            condition: Condition::Equal,
            value: 1,
            depends_on: Some(SAME_TENANT),
        };
        let mut ended = Vec::new();
        direct.handle_command(&here.memory, &wait, &mut |event| ended.push(event)).unwrap();
        checked.check().unwrap();
        used.store(0, &[1]).unwrap();
        other.kill();
        assert_eq!(checked.check(), Err(AccessError::OwnerGone));
        assert_eq!(
            checked.store(0, &[1]),
            Err(AccessError::OwnerGone),
            "later accesses fail without a check"
        );
        let accesses = (0..).take_while(|_| used.store(0, &[1]).is_ok()).count();
        assert!(accesses <= 1024, "an importer without checks detects it after {accesses} accesses");
        assert_eq!(used.load(0, &mut [0]), Err(AccessError::OwnerGone));
        assert!(ended.is_empty() && !direct.is_lost(SAME_TENANT));
        direct.poll(rackloom_protocol::Instant::ZERO, &here.memory, &mut |event| ended.push(event));
        let result = Err(OperationError::Unreachable);
        assert_eq!(ended, [Event::Completed { operation: OperationId(9), result }]);
        assert!(direct.is_lost(SAME_TENANT));
        let again = importer.import(SAME_TENANT, REGION, KEY).unwrap().wait(Duration::from_millis(5), || ());
        assert!(matches!(again, Err(ImportError::NoAnswer { .. })));
    }
}

#[test]
fn ten_thousand_imports_leave_no_descriptor_and_no_mapping() {
    if std::env::var_os(ALONE).is_none() {
        // Other tests of this process open and close files. The count is taken in a process that runs only this test.
        let mut alone = Process::new("/proc/self/exe");
        alone.args(["--exact", "death::ten_thousand_imports_leave_no_descriptor_and_no_mapping"]);
        return assert!(alone.env(ALONE, "1").status().unwrap().success());
    }
    let directory = RunDirectory::new("cycles");
    let (mut owner, mut other) = with_same_tenant("cycler", &directory);
    let before = held();
    assert_eq!(other.next_line(&mut owner), "cycled");
    owner.serve_until(|owner| owner.exporter.importers(REGION) == 0);
    let released = |event: &&ExportEvent| matches!(event, ExportEvent::Released { was_inside: false, .. });
    assert_eq!(owner.events.iter().filter(released).count(), CYCLES + 1);
    assert_eq!(owner.word(0), CYCLES as u64 - 1);
    assert_eq!(held(), before);
    other.finish(&mut owner);
    owner.exporter.withdraw(&mut owner.memory, REGION).unwrap();
}
