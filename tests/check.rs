//! `rackloom check` reports every mistake of a file at once, each with its position and a hint, and nothing that
//! `run` refuses later.
//!
//! Each file of `tests/broken/` is wrong in one respect. Its first lines list all expected errors, in the order of the file:
//! `# LINE:COLUMN part of the message`. Nothing here starts a rack.

mod support;

use std::path::{Path, PathBuf};

use support::{Ended, rack_file, rackloom, root};

fn broken() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root().join("tests/broken")).expect("the folder is there");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("it can be listed").path()).collect();
    files.sort();
    assert!(files.len() >= 40, "files are missing: {}", files.len());
    files
}

fn tried(command: &str, file: &Path) -> Ended {
    rackloom(&[command, file.to_str().expect("a plain path")]).finish()
}

/// Returns position and message of everything that was found, and the number of hints.
fn found(file: &Path, stderr: &str) -> (Vec<(String, String)>, usize) {
    let arrow = format!("--> {}:", file.display());
    let mut message = "";
    let mut found = Vec::new();
    for line in stderr.lines() {
        message = line.strip_prefix("error: ").unwrap_or(message);
        if let Some((_, position)) = line.split_once(&arrow) {
            found.push((position.to_owned(), message.to_owned()));
        }
    }
    (found, stderr.lines().filter(|line| line.contains(" = hint: ")).count())
}

#[test]
fn every_mistake_is_reported_with_its_position_and_a_hint() {
    for file in broken() {
        let text = std::fs::read_to_string(&file).expect("it can be read");
        let wanted: Vec<_> = text
            .lines()
            .map_while(|line| line.strip_prefix("# "))
            .map(|line| line.split_once(' ').expect("a position and a message"))
            .collect();
        assert!(!wanted.is_empty(), "{} lists no error", file.display());
        let ended = tried("check", &file);
        let name = file.display();
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{name}\n{}", ended.stderr);
        let (found, hints) = found(&file, &ended.stderr);
        assert_eq!(found.len(), wanted.len(), "{name} expects {wanted:#?}\n{}", ended.stderr);
        assert_eq!(hints, wanted.len(), "{name}: a mistake has no hint\n{}", ended.stderr);
        for ((position, message), (wanted_position, part)) in found.iter().zip(wanted) {
            assert!(
                position == wanted_position && message.contains(part),
                "{name}: {part}\n{}",
                ended.stderr
            );
        }
    }
}

/// There is one checker: commands that run a file report the same mistakes as `check`.
#[test]
fn commands_that_run_a_file_report_the_mistakes_of_check() {
    let names = ["algorithm-for-other-collectives", "working-space-beyond-memory", "ranks-of-two-tenants"];
    for name in names {
        let file = root().join(format!("tests/broken/{name}.yaml"));
        let checked = tried("check", &file).stderr;
        for command in ["run", "sim"] {
            let ended = tried(command, &file);
            assert_eq!((ended.code, &ended.stderr), (Some(2), &checked), "{command} {name}");
        }
    }
}

/// A job of the command line is judged instead of the file's job.
#[test]
fn another_job_is_judged_in_place_of_the_files() {
    let file = root().join("tests/broken/ranks-of-two-tenants.yaml");
    let ring = support::topology("ring-4.yaml");
    let sim = |file: &Path, options: &[&str]| {
        rackloom(&[&["sim", file.to_str().expect("a plain path")][..], options].concat()).finish()
    };
    assert_eq!(sim(&file, &["--job", "none"]).code, Some(0), "the file's job is not run");
    let ended = sim(&ring, &["--collective", "broadcast", "--algorithm", "halving-doubling"]);
    assert_eq!(ended.code, Some(2));
    for part in ["halving-doubling cannot do broadcast", "hint:"] {
        assert!(ended.stderr.contains(part), "{}", ended.stderr);
    }
    // The root has no part in it.
    assert!(!ended.stderr.contains("at rank"), "{}", ended.stderr);
}

#[test]
fn a_key_that_is_left_out_has_the_value_that_the_rack_gets() {
    let text = "name: seats\nshape: {ring: {nodes: 3}}\n";
    for (more, value, is_default) in
        [("", "4", "yes"), ("processes: 7\n", "7", "no"), ("processes: 0\n", "0", "no")]
    {
        let shown = tried("check", &rack_file(&format!("{text}{more}"))).stdout;
        let row = shown.lines().find(|line| line.starts_with("processes ")).expect("the key");
        assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["processes", value, is_default], "{shown}");
    }
}

#[test]
fn a_rack_beyond_the_machine_is_refused_at_the_start_and_a_warning_of_check() {
    // No machine of these tests has 16 TiB.
    let file = rack_file("name: vast\nshape: {star: {nodes: 256}}\ndefaults: {memory: 64GiB}\njob: none\n");
    let checked = tried("check", &file);
    assert_eq!(checked.code, Some(0), "it may be meant for another machine: {}", checked.stderr);
    for command in ["run", "up"] {
        let ended = tried(command, &file);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(3), ""), "{command}: {}", ended.stderr);
        for (stderr, first) in [(&ended.stderr, "error: "), (&checked.stderr, "warning: ")] {
            for part in [first, "16.0 TiB", "available", "hint:"] {
                assert!(stderr.contains(part), "{command}: {part} is missing: {stderr}");
            }
        }
    }
    let small = tried("check", &support::topology("ring-4.yaml"));
    assert_eq!((small.code, small.stderr.as_str()), (Some(0), ""), "no warning without a shortage");
}

#[test]
fn check_shows_memory_settings_that_are_not_the_defaults() {
    let text = "name: held\nshape: {ring: {nodes: 3}}\n";
    let usual = tried("check", &rack_file(text)).stdout;
    assert!(!usual.contains("huge pages"), "{usual}");
    let special = format!(
        "{text}nodes:\n  n1: {{memory: {{bytes: 8MiB, huge_pages: true, numa_node: 0, mapped: 'cuda:0'}}}}\n  n2: {{memory: {{locked: true, device: 'fake:3', share: pool}}}}\n"
    );
    let shown = tried("check", &rack_file(&special)).stdout;
    let lines: Vec<Vec<&str>> = shown.lines().map(|line| line.split_whitespace().collect()).collect();
    let heading =
        ["memory", "of", "huge", "pages", "locked", "numa", "node", "device", "shared", "by", "mapped", "by"];
    let table = lines.iter().position(|line| line == &heading).unwrap_or_else(|| panic!("no table: {shown}"));
    let rows: Vec<_> = lines[table + 1..].iter().filter(|line| line.len() == 7).take(2).collect();
    let [host, device] = [&["yes", "-", "0", "-", "-", "cuda:0"], &["-", "yes", "-", "fake:3", "pool", "-"]];
    assert_eq!(rows, [&[&["n1"][..], host].concat(), &[&["n2"][..], device].concat()], "{shown}");
}

/// The rate of the hint is one with which the links carry traffic.
#[test]
fn a_rate_too_low_for_heartbeats_is_refused_with_one_that_works() {
    let file = rack_file(
        "name: r\nshape: {star: {nodes: 5}}\nlink: {rate: 1kbit/s}\njob: {traffic: {pattern: permutation, messages: 1}}\n",
    );
    let refused = tried("check", &file);
    assert_eq!(refused.code, Some(2), "{}", refused.stdout);
    let (_, hint) = refused.stderr.split_once("hint: write `").expect("a hint");
    let (rate, _) = hint.split_once('`').expect("a rate");
    let arguments = ["sim", file.to_str().expect("a plain path"), "--set", &format!("link.rate={rate}")];
    let ended = rackloom(&arguments).finish();
    assert_eq!(ended.code, Some(0), "{rate}: {}{}", ended.stdout, ended.stderr);
}
