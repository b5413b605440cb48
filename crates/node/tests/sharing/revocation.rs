//! Tests of revoked memory: importers that answer, importers that do not, and importers that access without a check.

use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rackloom::memory::FreeRefused;
use rackloom::sharing::{Cut, ExportError, Importer, Revoked, Seat};
use rackloom_protocol::{Access, JobMemory, Memory, NodeId, Tenant};
use rustix::process::Signal;

use super::rig::*;

#[test]
fn a_cooperative_importer_stops_before_the_revocation_returns() {
    let directory = RunDirectory::new("revoke");
    let (mut owner, mut other) = with_same_tenant("worker", &directory);
    assert_eq!(other.next_line(&mut owner), "working");
    owner.serve_until(|owner| owner.word(0) > 1000);
    let outcome = owner.exporter.revoke(&mut owner.memory, REGION, TIMEOUT, Cut::IfSilent).unwrap();
    assert_eq!(outcome, Revoked::Quiet { importers: 1 });
    let last = owner.word(0);
    assert_eq!(other.next_line(&mut owner), "Revoked");
    assert_eq!(owner.word(0), last, "no store after the revocation has returned");
    let withdrawn = owner.exporter.withdraw(&mut owner.memory, REGION);
    assert!(matches!(withdrawn, Err(ExportError::StillImported { importers: 1, .. })));
    other.send_line("drop");
    assert_eq!(other.next_line(&mut owner), "dropped");
    owner.exporter.withdraw(&mut owner.memory, REGION).unwrap();
    owner.memory.free(REGION).unwrap();
}

/// Two threads of one importer announce themselves in two different ways. Each is seen by the owner or sees
/// the revocation.
#[test]
fn no_store_of_any_thread_is_visible_after_a_cooperative_revocation() {
    let directory = RunDirectory::new("race");
    let me = std::process::id();
    let sitting = |node: NodeId| {
        let seat = |other| Seat { node: other, tenant: Tenant(1), server: "here".to_owned(), process: None };
        [Seat { process: Some(me), ..seat(node) }, seat(NodeId(1 - node.0))].into_iter().collect()
    };
    let mut owner = Owner::new(PARENT_NODE, directory.path(), sitting(SAME_TENANT));
    let importer = Importer::new(SAME_TENANT, directory.path(), sitting(PARENT_NODE));
    for round in 0..100 {
        owner.exporter.export(&mut owner.memory, config(Access::ALL)).unwrap();
        let pending = importer.import(PARENT_NODE, REGION, KEY).unwrap();
        let imported = pending.wait(TIMEOUT, || owner.serve()).unwrap();
        let mut last = Vec::new();
        let begun = [(); 2].map(|()| AtomicBool::new(false));
        std::thread::scope(|scope| {
            for (begun, offset) in begun.iter().zip([0, LENGTH / 2]) {
                let imported = &imported;
                scope.spawn(move || {
                    // Long enough to be inside a store when the owner revokes.
                    let mut bytes = vec![0; LENGTH as usize / 2];
                    while imported.store(offset, &bytes).is_ok() {
                        begun.store(true, Ordering::Relaxed);
                        let next = bytes[0] + 1_u8;
                        bytes.fill(next % 100);
                    }
                });
            }
            let deadline = Instant::now() + TIMEOUT;
            while !begun.iter().all(|begun| begun.load(Ordering::Relaxed)) {
                assert!(Instant::now() < deadline, "the threads do not store");
                std::thread::yield_now();
            }
            let outcome = owner.exporter.revoke(&mut owner.memory, REGION, TIMEOUT, Cut::IfSilent).unwrap();
            last = owner.bytes();
            assert_eq!(outcome, Revoked::Quiet { importers: 1 });
        });
        // Both threads ended at their first refused store.
        assert!(owner.bytes() == last, "round {round}");
        drop(imported);
        owner.serve_until(|owner| owner.exporter.importers(REGION) == 0);
        owner.exporter.withdraw(&mut owner.memory, REGION).unwrap();
    }
}

#[test]
fn a_silent_importer_is_cut_off_and_its_late_store_has_no_effect() {
    let directory = RunDirectory::new("silent");
    let (mut owner, mut other) = with_same_tenant("sleeper", &directory);
    let pattern: Vec<u8> = (0..LENGTH - 8).map(|at| (at % 251) as u8).collect();
    owner.memory.write(REGION, 8, &pattern).unwrap();
    assert_eq!(other.next_line(&mut owner), "inside");
    other.signal(Signal::STOP);
    let timeout = Duration::from_millis(30);
    let begun = Instant::now();
    let outcome = owner.exporter.revoke(&mut owner.memory, REGION, timeout, Cut::IfSilent).unwrap();
    assert_eq!(outcome, Revoked::CutOff { importers: 1, inside: 1 });
    assert!(begun.elapsed() >= timeout && begun.elapsed() < TIMEOUT, "{:?}", begun.elapsed());
    assert_eq!(owner.word(0), 1, "what it had written before is kept");
    let mut kept = vec![0; pattern.len()];
    owner.memory.read(REGION, 8, &mut kept).unwrap();
    assert!(kept == pattern, "and so is everything else");
    other.signal(Signal::CONT);
    other.send_line("store");
    assert_eq!(other.next_line(&mut owner), "Revoked");
    assert_eq!(owner.word(0), 1);
    owner.exporter.withdraw(&mut owner.memory, REGION).unwrap();
}

/// The library cannot stop a process that writes without a check, but moving the region away can.
#[test]
fn an_importer_that_writes_without_a_check_is_cut_off_by_moving_the_region() {
    let directory = RunDirectory::new("scribble");
    let (mut owner, mut other) = with_same_tenant("overwriter", &directory);
    let file = owner.memory.file(REGION).unwrap().as_raw_fd();
    other.send_line(&format!("/proc/{}/fd/{file}", std::process::id()));
    assert_eq!(other.next_line(&mut owner), "scribbled");
    assert_eq!(owner.word(0), 1);
    let outcome = owner.exporter.revoke(&mut owner.memory, REGION, TIMEOUT, Cut::Always).unwrap();
    assert_eq!(outcome, Revoked::CutOff { importers: 1, inside: 0 });
    other.send_line("again");
    assert_eq!(other.next_line(&mut owner), "scribbled again");
    assert_eq!(owner.word(0), 1);
    owner.memory.write(REGION, 0, &3_u64.to_le_bytes()).unwrap();
    assert_eq!(owner.word(0), 3, "the owner continues at its address");
}

#[test]
fn an_owner_frees_after_its_importers() {
    let directory = RunDirectory::new("order");
    let (mut owner, mut other) = with_same_tenant("holder", &directory);
    assert_eq!(other.next_line(&mut owner), "holding");
    assert_eq!(owner.memory.free(REGION), Err(FreeRefused::Exported(REGION)));
    let withdrawn = owner.exporter.withdraw(&mut owner.memory, REGION);
    assert!(matches!(withdrawn, Err(ExportError::StillImported { importers: 1, .. })));
    assert_eq!(owner.memory.free(REGION), Err(FreeRefused::Exported(REGION)));
    other.send_line("let go");
    assert_eq!(other.next_line(&mut owner), "let go");
    owner.exporter.withdraw(&mut owner.memory, REGION).unwrap();
    assert_eq!(owner.memory.free(REGION), Ok(()));
    let again = owner.exporter.withdraw(&mut owner.memory, REGION);
    assert!(matches!(again, Err(ExportError::NotExported(REGION))));
}
