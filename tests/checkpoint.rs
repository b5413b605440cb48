//! A collective that was killed and resumed has the result of an undisturbed run.

mod support;

use std::path::{Path, PathBuf};

use support::{Ended, Rackloom, rack_file, run, scratch};

const RANKS: usize = 4;
/// Runs of the collective. The node dies in the third last one, so that little is left after the resumption.
const RUNS: u64 = 9;
const DIES_IN: u64 = 7;

/// Starts the job with a fixed identity: every snapshot contains it.
fn job(rack: &Path) -> Rackloom {
    job_of_seed(rack, "11")
}

fn job_of_seed(rack: &Path, seed: &str) -> Rackloom {
    run(rack)
        .with(&["--collective", "all-reduce", "--type", "f32", "--algorithm", "ring", "--bytes", "48KiB"])
        .with(&["--repetitions", &RUNS.to_string(), "--warm-up", "0", "--seed", seed])
}

fn rack() -> PathBuf {
    rack_file(&format!(
        "name: taken-up\nshape: {{ring: {{nodes: {RANKS}}}}}\n\
         timers: {{heartbeat_interval: 250ms, heartbeat_miss_max: 4}}\n"
    ))
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

/// Runs it until n2 kills itself, with snapshots after every second run.
fn killed(rack: &Path, snapshots: &Path) -> Ended {
    let script = rack_file(&format!(
        "name: dies\nevents:\n  - {{what: kill, where: n2, when: {{node: n2, run: {DIES_IN}, step: 2}}}}\n\
         expect: {{ends: clean-error}}\n"
    ));
    job(rack).with(&["--checkpoint", text(snapshots), "--every", "2", "--faults", text(&script)]).finish()
}

fn restored(rack: &Path, snapshots: &Path) -> Ended {
    job(rack).with(&["--restore", text(snapshots)]).finish()
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("a directory");
    let mut names: Vec<_> =
        entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("plain")).collect();
    names.sort();
    names
}

#[test]
fn a_killed_and_resumed_collective_has_the_bytes_of_an_undisturbed_one() {
    let (rack, snapshots) = (rack(), scratch("snapshots"));
    let (undisturbed, taken_up) = (scratch("undisturbed"), scratch("taken-up"));
    let whole = job(&rack).with(&["--output", text(&undisturbed)]).finish();
    assert_eq!(whole.code, Some(0), "{}\n{}", whole.stdout, whole.stderr);
    let broken = killed(&rack, &snapshots);
    assert_eq!(broken.code, Some(0), "a clean error was expected\n{}\n{}", broken.stdout, broken.stderr);
    // Two snapshots of each rank, the last of them after run 6.
    let mut expected: Vec<_> =
        (0..RANKS).flat_map(|rank| [4, 6].map(|run| format!("rank{rank}.{run}.snapshot"))).collect();
    expected.sort();
    assert_eq!(names(&snapshots), expected);

    let rest = job(&rack).with(&["--restore", text(&snapshots), "--output", text(&taken_up)]).finish();
    assert_eq!(rest.code, Some(0), "{}\n{}", rest.stdout, rest.stderr);
    assert!(rest.stdout.contains("taken up after 6 runs"), "{}", rest.stdout);
    for rank in 0..RANKS {
        let bytes = |folder: &Path| std::fs::read(folder.join(format!("rank{rank}.npy"))).expect("a result");
        assert!(bytes(&undisturbed) == bytes(&taken_up), "rank {rank} has other bytes");
    }

    // A rank that died while saving has no newest snapshot: all ranks use the one before.
    std::fs::remove_file(snapshots.join("rank3.6.snapshot")).expect("it was there");
    let rest = restored(&rack, &snapshots);
    assert_eq!(rest.code, Some(0), "{}\n{}", rest.stdout, rest.stderr);
    assert!(rest.stdout.contains("taken up after 4 runs"), "{}", rest.stdout);
}

#[test]
fn a_snapshot_that_is_damaged_or_foreign_is_refused_before_anything_starts() {
    let (rack, snapshots) = (rack(), scratch("damaged"));
    let broken = killed(&rack, &snapshots);
    assert_eq!(broken.code, Some(0), "{}\n{}", broken.stdout, broken.stderr);
    let path = snapshots.join("rank1.6.snapshot");
    let sound = std::fs::read(&path).expect("a snapshot");
    let refused = |bytes: &[u8], case: &str| {
        std::fs::write(&path, bytes).expect("it can be written");
        let ended = restored(&rack, &snapshots);
        assert_eq!(ended.code, Some(2), "{case}: {}\n{}", ended.stdout, ended.stderr);
        for part in [case, "rank1.6.snapshot", "hint:"] {
            assert!(ended.stderr.contains(part), "`{part}` is missing in {}", ended.stderr);
        }
    };
    refused(&sound[..sound.len() / 2], "and should have");
    refused(&sound[..10], "it ends within its header");
    refused(b"", "it ends within its header");
    let mut flipped = sound.clone();
    flipped[sound.len() - 100] ^= 4;
    refused(&flipped, "checksum is wrong");
    flipped.clone_from(&sound);
    flipped[0] ^= 1;
    refused(&flipped, "no snapshot");
    let of_another_rank = std::fs::read(snapshots.join("rank2.6.snapshot")).expect("a snapshot");
    refused(&of_another_rank, "of rank 2");
    std::fs::write(&path, &sound).expect("it can be written");

    let other = job_of_seed(&rack, "12").with(&["--restore", text(&snapshots)]).finish();
    assert_eq!(other.code, Some(2), "{}", other.stdout);
    assert!(other.stderr.contains("with the seed 11"), "{}", other.stderr);
    let other = run(&rack).with(&["--job", "litmus", "--restore", text(&snapshots)]).finish();
    assert_eq!(other.code, Some(2), "{}", other.stdout);
    let empty = restored(&rack, &scratch("empty-snapshots"));
    assert!(empty.code == Some(2) && empty.stderr.contains("hint:"), "{}", empty.stderr);
}
