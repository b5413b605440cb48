//! A rack whose memory is on devices: the fake one always, a real one where there is one.
//!
//! The fake device answers late and in odd order, so that an acknowledgement before the bytes are visible would be seen by the
//! owner, who checks its memory. What needs a GPU and has none is printed as skipped, with the reason.

mod support;

use std::path::PathBuf;

use support::wires::has_gpu;
use support::{rack_file, run, topology};

/// A rack of two nodes on one server, with its memory on a device.
fn duo(device: &str, job: &str) -> PathBuf {
    rack_file(&format!(
        "name: duo\nshape: {{full-mesh: {{nodes: 2}}}}\ndefaults: {{server: one, memory: {{bytes: 16MiB, device: '{device}'}}}}\njob: {job}\n"
    ))
}

#[test]
fn a_rack_on_fake_devices_passes_its_litmus_and_its_collectives() {
    let jobs = ["{litmus: {bytes_max: 64KiB}}", "{collective: {bytes: 256KiB}}"];
    for (seed, job) in (7..).zip(jobs) {
        let ended = run(&duo(&format!("fake:{seed}"), job)).finish();
        assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
    }
}

#[test]
fn a_rack_on_a_gpu_passes_or_says_what_is_missing() {
    let file = topology("gpu-2.yaml");
    let ended = run(&file).finish();
    if !has_gpu("a_rack_on_a_gpu_passes_or_says_what_is_missing") {
        assert_eq!(ended.code, Some(3), "{}\n{}", ended.stdout, ended.stderr);
        assert!(
            ended.stderr.contains("no NVIDIA driver") && ended.stderr.contains("hint: "),
            "{}",
            ended.stderr
        );
        return;
    }
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
}

#[test]
fn what_is_no_device_is_told_with_its_place() {
    let ended = run(&duo("cuda", "litmus")).finish();
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    for part in [":3:", "is not a device", "write `cuda:0`"] {
        assert!(ended.stderr.contains(part), "{}", ended.stderr);
    }
}
