//! Campaigns find planted bugs and minimise their scripts. Built only with the feature `planted-bugs`.

mod support;

use support::{rack_file, rackloom, scratch};

/// A rack small enough for many runs, in which every kind of operation occurs and each fetch-add is counted.
const LITMUS: &str =
    "name: planted\nshape: {ring: {nodes: 3}}\njob: {litmus: {bytes_max: 2KiB, rounds: 1}}\n";
/// Several frames for each signal.
const SUMS: &str = "name: planted\nshape: {ring: {nodes: 4}}\n\
                    job: {collective: {algorithm: ring, bytes: 64KiB, repetitions: 3, warm_up: 1}}\n";

fn is_found_and_small(bug: &str, rack: &str) {
    let file = rack_file(rack);
    let export = scratch("planted");
    let (rack, directory) = (file.to_str().expect("a plain path"), export.to_str().expect("a plain path"));
    let command = ["campaign", rack, "--runs", "2000", "--failures-max", "1", "--export", directory];
    let ended = rackloom(&command).in_environment("RACKLOOM_PLANT", bug).finish();
    assert_eq!(ended.code, Some(1), "{bug} was not found\n{}\n{}", ended.stdout, ended.stderr);
    let scripts: Vec<_> = std::fs::read_dir(&export).expect("it was made").collect();
    for script in scripts {
        let path = script.expect("it can be listed").path();
        let text = std::fs::read_to_string(&path).expect("it can be read");
        assert!(text.matches("what:").count() <= 3, "{bug}: not small:\n{text}");
        let again = ["sim", rack, "--faults", path.to_str().expect("a plain path")];
        let with = rackloom(&again).in_environment("RACKLOOM_PLANT", bug).finish();
        assert_ne!(with.code, Some(0), "{bug}: the exported script passes\n{text}");
        let without = rackloom(&again).finish();
        assert_eq!(without.code, Some(0), "{bug}: the script fails without it\n{text}\n{}", without.stdout);
    }
    let _ = std::fs::remove_dir_all(export);
}

#[test]
fn packets_accepted_twice_are_found() {
    is_found_and_small("taken-twice", LITMUS);
}

#[test]
fn a_signal_that_overtakes_its_data_is_found() {
    is_found_and_small("signal-overtakes-data", SUMS);
}

#[test]
fn operations_that_are_acknowledged_before_they_are_visible_are_found() {
    is_found_and_small("ack-before-visible", SUMS);
}

/// Random scripts rarely lose all reports for longer than a link stays down, which this bug needs. It has its
/// own script.
#[test]
fn used_frames_for_earlier_incarnations_are_found() {
    let rack =
        rack_file("name: planted\nshape: {star: {nodes: 3}}\njob: {litmus: {bytes_max: 2KiB, rounds: 1}}\n");
    let script = rack_file(
        "name: reborn\nevents:\n  \
         - {what: loss, where: s0->n0, rate: 1.0, kinds: [report], at: 5us, for: 5s}\n  \
         - {what: kill, where: n1, at: 10us, for: 20us}\n\
         expect: {ends: right-or-clean-error, happen: any}\n",
    );
    let [rack, script] = [&rack, &script].map(|path| path.to_str().expect("a plain path"));
    let command = ["sim", rack, "--faults", script];
    let with = rackloom(&command).in_environment("RACKLOOM_PLANT", "stale-epoch-taken").finish();
    assert!(with.stdout.contains("oracle incarnations"), "{}", with.stdout);
    let without = rackloom(&command).finish();
    assert!(!without.stdout.contains("oracle incarnations"), "{}", without.stdout);
}

#[test]
fn credits_that_leak_are_found() {
    is_found_and_small("credit-leak", SUMS);
}

#[test]
fn an_unknown_bug_is_refused() {
    let ended = rackloom(&["schema"]).in_environment("RACKLOOM_PLANT", "rubbish").finish();
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("hint:"), "{}", ended.stderr);
}
