//! Mapped memory taken back, from those who listen, those who do not, and those who never ask.

use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use rackloom::memory::FreeRefused;
use rackloom::sharing::{Cut, ExportError, Revoked};
use rackloom_protocol::Memory;
use rustix::process::Signal;

use super::rig::*;

#[test]
fn an_importer_that_respects_the_generation_stops_before_the_revocation_returns() {
    let directory = RunDirectory::new("revoke");
    let (mut owner, mut other) = with_friend("worker", &directory);
    assert_eq!(other.hear(&mut owner), "working");
    owner.serve_until(|owner| owner.word(0) > 1000);
    let outcome = owner.exporter.revoke(&mut owner.memory, REGION, PATIENCE, Cut::IfSilent).unwrap();
    assert_eq!(outcome, Revoked::Quiet { importers: 1 });
    let last = owner.word(0);
    assert_eq!(other.hear(&mut owner), "Revoked");
    assert_eq!(owner.word(0), last, "no store after the revocation has returned");
    let withdrawn = owner.exporter.withdraw(&mut owner.memory, REGION);
    assert!(matches!(withdrawn, Err(ExportError::StillImported { importers: 1, .. })));
    other.tell("drop");
    assert_eq!(other.hear(&mut owner), "dropped");
    owner.exporter.withdraw(&mut owner.memory, REGION).unwrap();
    owner.memory.free(REGION).unwrap();
}

#[test]
fn an_importer_that_stays_silent_is_cut_off_and_its_late_store_reaches_nobody() {
    let directory = RunDirectory::new("silent");
    let (mut owner, mut other) = with_friend("sleeper", &directory);
    let pattern: Vec<u8> = (0..LENGTH - 8).map(|at| (at % 251) as u8).collect();
    owner.memory.write(REGION, 8, &pattern).unwrap();
    assert_eq!(other.hear(&mut owner), "inside");
    other.signal(Signal::STOP);
    let patience = Duration::from_millis(30);
    let begun = Instant::now();
    let outcome = owner.exporter.revoke(&mut owner.memory, REGION, patience, Cut::IfSilent).unwrap();
    assert_eq!(outcome, Revoked::CutOff { importers: 1, inside: 1 });
    assert!(begun.elapsed() >= patience && begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
    assert_eq!(owner.word(0), 1, "what it had written before is kept");
    let mut kept = vec![0; pattern.len()];
    owner.memory.read(REGION, 8, &mut kept).unwrap();
    assert!(kept == pattern, "and so is everything else");
    other.signal(Signal::CONT);
    other.tell("store");
    assert_eq!(other.hear(&mut owner), "Revoked");
    assert_eq!(owner.word(0), 1);
    owner.exporter.withdraw(&mut owner.memory, REGION).unwrap();
}

/// The library cannot stop a process that writes without asking. Moving away can.
#[test]
fn an_importer_that_writes_without_asking_is_cut_off_by_always_moving() {
    let directory = RunDirectory::new("scribble");
    let (mut owner, mut other) = with_friend("scribbler", &directory);
    let file = owner.memory.file(REGION).unwrap().as_raw_fd();
    other.tell(&format!("/proc/{}/fd/{file}", std::process::id()));
    assert_eq!(other.hear(&mut owner), "scribbled");
    assert_eq!(owner.word(0), 1);
    let outcome = owner.exporter.revoke(&mut owner.memory, REGION, PATIENCE, Cut::Always).unwrap();
    assert_eq!(outcome, Revoked::CutOff { importers: 1, inside: 0 });
    other.tell("again");
    assert_eq!(other.hear(&mut owner), "scribbled again");
    assert_eq!(owner.word(0), 1);
    owner.memory.write(REGION, 0, &3_u64.to_le_bytes()).unwrap();
    assert_eq!(owner.word(0), 3, "the owner goes on at the same address");
}

#[test]
fn an_owner_frees_after_its_importers() {
    let directory = RunDirectory::new("order");
    let (mut owner, mut other) = with_friend("holder", &directory);
    assert_eq!(other.hear(&mut owner), "holding");
    assert_eq!(owner.memory.free(REGION), Err(FreeRefused::Exported(REGION)));
    let withdrawn = owner.exporter.withdraw(&mut owner.memory, REGION);
    assert!(matches!(withdrawn, Err(ExportError::StillImported { importers: 1, .. })));
    assert_eq!(owner.memory.free(REGION), Err(FreeRefused::Exported(REGION)));
    other.tell("let go");
    assert_eq!(other.hear(&mut owner), "let go");
    owner.exporter.withdraw(&mut owner.memory, REGION).unwrap();
    assert_eq!(owner.memory.free(REGION), Ok(()));
    let again = owner.exporter.withdraw(&mut owner.memory, REGION);
    assert!(matches!(again, Err(ExportError::NotExported(REGION))));
}
