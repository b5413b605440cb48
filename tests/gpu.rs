//! Racks whose memory is on devices: always on the fake one, and on a real one if there is one.
//!
//! The fake device answers late and out of order. The owner checks its memory, so it detects an
//! acknowledgement before the bytes are visible. Nodes of one server open each other's memory; with
//! `--force-wire` the operations go in frames. Tests that need a missing GPU are printed as skipped, with the
//! reason.

mod support;

use std::path::PathBuf;
use std::time::Duration;

use rustix::process::Signal;
use support::wires::has_gpu;
use support::{rack_file, rackloom, run, send, topology};

/// A rack of two nodes on one server, with its memory on a device.
fn duo(device: &str, job: &str) -> PathBuf {
    duo_by(device, "handle", job)
}

fn duo_by(device: &str, share: &str, job: &str) -> PathBuf {
    rack_file(&format!(
        "name: duo\nshape: {{full-mesh: {{nodes: 2}}}}\n\
         defaults: {{server: one, memory: {{bytes: 16MiB, device: '{device}', share: {share}}}}}\njob: {job}\n"
    ))
}

#[test]
fn a_rack_on_fake_devices_passes_its_litmus_and_its_collectives() {
    let jobs = ["{litmus: {bytes_max: 64KiB}}", "{collective: {bytes: 256KiB}}"];
    for (seed, job) in (7..).zip(jobs) {
        for path in [&[][..], &["--force-wire"]] {
            let ended = run(&duo(&format!("fake:{seed}"), job)).with(path).finish();
            assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
        }
    }
}

#[test]
fn nodes_of_one_server_use_each_other_s_device_memory_and_the_links_carry_no_data() {
    const BYTES: u64 = 1 << 20;
    for device in devices("nodes_of_one_server_use_each_other_s_device_memory_and_the_links_carry_no_data") {
        let file = duo(device, "{collective: {bytes: 1MiB}}");
        let direct = run(&file).finish().passed();
        let pooled = run(&duo_by(device, "pool", "{collective: {bytes: 1MiB}}")).finish().passed();
        let forced = run(&file).with(&["--force-wire"]).finish().passed();
        let cases =
            [(&direct, "direct", "frames"), (&pooled, "direct", "frames"), (&forced, "frames", "direct")];
        for (report, used, unused) in cases {
            for node in report["nodes"].as_array().expect("nodes") {
                let bytes = |path: &str| node["paths"][path]["bytes"].as_u64().expect("a number");
                assert!(bytes(used) >= BYTES / 2 && bytes(unused) == 0, "{device}: {}", node["paths"]);
            }
        }
    }
}

#[test]
fn a_pool_on_a_device_is_counted_in_the_report_and_in_the_status() {
    for device in devices("a_pool_on_a_device_is_counted_in_the_report_and_in_the_status") {
        let file = duo_by(device, "pool", "{litmus: {bytes_max: 64KiB}}");
        let ended = run(&file).finish();
        let report = ended.passed();
        let memory = &report["nodes"][0]["memory"];
        let (pool, used) = (&memory["pool"], &memory["used_bytes"]["high"]);
        assert!(pool["used_bytes"]["high"].as_u64() >= used.as_u64() && used.as_u64() > Some(0), "{memory}");
        assert!(pool["reserved_bytes"]["high"].as_u64() >= pool["used_bytes"]["high"].as_u64(), "{memory}");
        assert_eq!(pool["used_bytes"]["current"], 0, "everything was given back: {memory}");
        assert!(ended.stdout.contains(&format!("in a pool on {device}")), "{}", ended.stdout);

        let session = support::scratch("pool");
        let up = rackloom(&["up", &file.display().to_string(), "--job", "litmus"])
            .in_run_directory(&session)
            .finish();
        assert_eq!(up.code, Some(0), "{}{}", up.stdout, up.stderr);
        let table = rackloom(&["status"]).in_run_directory(&session).finish().stdout;
        // The job may have ended or not.
        rackloom(&["down"]).in_run_directory(&session).finish();
        let row = table.lines().find(|line| line.contains(&format!("  a pool on {device}")));
        let row = row.unwrap_or_else(|| panic!("{table}"));
        assert!(row.starts_with("n0") && row.matches("iB").count() == 4, "{table}");
    }
}

#[test]
fn between_the_host_and_a_device_everything_goes_in_frames() {
    let file = rack_file(
        "name: mixed\nshape: {full-mesh: {nodes: 2}}\ndefaults: {server: one, memory: 16MiB}\n\
         nodes: {n1: {memory: {bytes: 16MiB, device: 'fake:4'}}}\njob: {litmus: {bytes_max: 64KiB}}\n",
    );
    let report = run(&file).finish().passed();
    for node in report["nodes"].as_array().expect("nodes") {
        let operations = node["paths"]["direct"]["operations"].as_u64();
        assert_eq!(operations.unwrap_or(0), 0, "{}", node["paths"]);
    }
}

/// Returns the fake device, and the first GPU if there is one.
fn devices(test: &str) -> Vec<&'static str> {
    let mut devices = vec!["fake:3"];
    devices.extend(has_gpu(test).then_some("cuda:0"));
    devices
}

#[test]
fn every_collective_of_four_nodes_on_one_device_is_right_to_the_bit() {
    let collectives = ["all-reduce", "reduce-scatter", "reduce", "all-gather", "broadcast", "all-to-all"];
    for device in devices("every_collective_of_four_nodes_on_one_device_is_right_to_the_bit") {
        let file = rack_file(&format!(
            "name: quartet\nshape: {{full-mesh: {{nodes: 4}}}}\ndefaults: {{server: one, memory: {{bytes: 16MiB, device: '{device}'}}}}\n"
        ));
        // The kernels do not combine single bytes, so the host does; small floats are combined in a wider type by the host.
        let kinds = [("f32", "sum"), ("i64", "prod"), ("bf16", "max"), ("f16", "sum"), ("u8", "sum")];
        for (collective, (element, operation)) in collectives.into_iter().zip(kinds.into_iter().cycle()) {
            let mut arguments = vec!["--collective", collective, "--bytes", "48KiB", "--type", element];
            if collective.contains("reduce") {
                arguments.extend(["--op", operation]);
            }
            run(&file).with(&arguments).finish().passed();
        }
        for algorithm in ["ring", "two-shot", "halving-doubling", "one-shot"] {
            let arguments = ["--collective", "all-reduce", "--bytes", "48KiB", "--type", "i32"];
            run(&file).with(&arguments).with(&["--algorithm", algorithm]).finish().passed();
        }
    }
}

#[test]
fn a_node_killed_in_an_all_reduce_on_a_device_is_named_without_a_hang() {
    for device in devices("a_node_killed_in_an_all_reduce_on_a_device_is_named_without_a_hang") {
        for (into_the_job_ms, path) in [(0, &[][..]), (20, &[]), (20, &["--force-wire"]), (300, &[])] {
            let file = rack_file(&format!(
                "name: trio\nshape: {{ring: {{nodes: 3}}}}\ndefaults: {{server: one, memory: {{bytes: 16MiB, device: '{device}'}}}}\n\
                 timers: {{heartbeat_interval: 50ms, heartbeat_miss_max: 4}}\n"
            ));
            let endless = ["--collective", "all-reduce", "--bytes", "1MiB", "--repetitions", "1000000"];
            let mut rack = run(&file).with(&endless).with(path).start();
            let members = rack.members();
            std::thread::sleep(Duration::from_millis(into_the_job_ms));
            send(members.pid("n1"), Signal::KILL);
            let ended = rack.finish();
            assert_eq!(ended.code, Some(4), "{}\n{}", ended.stdout, ended.stderr);
            let report = ended.report();
            let events = report["events"].as_array().expect("events");
            for survivor in ["n0", "n2"] {
                let is_it = |event: &&serde_json::Value| {
                    event["kind"] == "node-lost"
                        && event["member"] == survivor
                        && event["fields"]["node"] == "n1"
                };
                assert!(
                    events.iter().any(|event| is_it(&event)),
                    "{survivor} did not name it\n{}",
                    ended.stdout
                );
            }
            members.all_gone(Duration::from_secs(60));
        }
    }
}

#[test]
fn a_rack_on_a_gpu_passes_or_reports_the_missing_part() {
    let file = topology("gpu-2.yaml");
    let ended = run(&file).finish();
    if !has_gpu("a_rack_on_a_gpu_passes_or_reports_the_missing_part") {
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
fn the_use_of_a_real_gpu_is_reported_and_a_fake_device_has_none() {
    const NAME: &str = "the_use_of_a_real_gpu_is_reported_and_a_fake_device_has_none";
    const DRIVER_PERIOD_MAX_NS: u64 = 1_000_000_000;
    let job = ["--collective", "all-reduce", "--bytes", "1MiB"];
    let ended = run(&duo("fake:3", "litmus")).with(&job).finish();
    assert_eq!(ended.passed().get("gpu_use"), None);
    assert!(!ended.stdout.contains("use of the real GPUs"), "{}", ended.stdout);
    if !has_gpu(NAME) {
        return;
    }
    let listed = rackloom(&["gpu", "info", "--json"]).finish().stdout;
    let listed: serde_json::Value = serde_json::from_str(&listed).expect("JSON");
    let last = listed["devices"].as_array().expect("devices").last().expect("a device");
    // For the rack, the last GPU is the only one.
    let ended = run(&duo("cuda:0", "litmus"))
        .with(&job)
        .with(&["--repetitions", "4000"])
        .in_environment("CUDA_VISIBLE_DEVICES", &last["index"].to_string())
        .finish();
    let report = ended.passed();
    assert_eq!(support::schema::mistakes("report", &report), [""; 0]);
    let uses = report["gpu_use"].as_array().expect("a GPU was used");
    assert_eq!(uses.len(), 1, "{uses:?}");
    let used = &uses[0];
    let digits = |uuid: &serde_json::Value| uuid.as_str().expect("a name").get(4..).map(str::to_owned);
    assert_eq!(digits(&used["uuid"]), digits(&last["uuid"]), "{used}");
    assert_eq!(used["nodes"], serde_json::json!(["n0", "n1"]), "{used}");
    assert!(used["samples"].as_u64() >= Some(2), "{used}");
    // Each node has blocks of 2 MiB on the GPU, beside its context.
    assert!(used["memory_used_max_bytes"].as_u64() > Some(4 << 20), "{used}");
    assert!(used["memory_bytes"].as_u64() >= used["memory_used_max_bytes"].as_u64(), "{used}");
    assert!(ended.stdout.contains("use of the real GPUs"), "{}", ended.stdout);
    // Parts of a GPU (MIG) have no utilisation of their own.
    if let Some(max) = used["busy_share"]["max"].as_f64() {
        assert!((0.0..=1.0).contains(&max), "{used}");
        let is_long = report["elapsed_ns"].as_u64() > Some(2 * DRIVER_PERIOD_MAX_NS);
        assert!(max > 0.0 || !is_long, "reductions are kernels: {used}");
    }
}

#[test]
fn measured_sizes_are_stored_used_and_reported() {
    let home = support::scratch("cache").display().to_string();
    let file = duo("fake:9", "{litmus: {bytes_max: 64KiB}}");
    let tiers = |report: &serde_json::Value| report["nodes"][0]["memory"]["tiers"].clone();
    let before = run(&file).in_environment("XDG_CACHE_HOME", &home).finish().passed();
    assert_eq!(tiers(&before)["measured"], false, "{}", tiers(&before));
    let calibrate = ["calibrate", "--gpu", "fake:9", "--json"];
    let measured = rackloom(&calibrate).in_environment("XDG_CACHE_HOME", &home).finish();
    assert_eq!(measured.code, Some(0), "{}", measured.stderr);
    let measured: serde_json::Value = serde_json::from_str(&measured.stdout).expect("JSON");
    assert_eq!(measured["timed"].as_array().map(Vec::len), Some(15));
    // Unusual sizes, to show that they are read from the file.
    let kept = measured["kept"].as_str().expect("a path");
    std::fs::write(kept, "in-place 777\nengines 8192\nahead 1048576\n").expect("it was written just now");
    let after = run(&file).in_environment("XDG_CACHE_HOME", &home).finish().passed();
    let found = tiers(&after);
    assert_eq!((&found["in_place_bytes_min"], &found["measured"]), (&777.into(), &true.into()), "{found}");
    let ended = rackloom(&["calibrate", "--gpu", "cuda"]).finish();
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
}

#[test]
fn an_invalid_device_is_reported_with_its_position() {
    let ended = run(&duo("cuda", "litmus")).finish();
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    for part in [":3:", "is not a device", "write `cuda:0`"] {
        assert!(ended.stderr.contains(part), "{}", ended.stderr);
    }
}

#[test]
fn host_memory_that_a_device_has_mapped_is_reported_or_refused() {
    let rack = |device: &str| {
        rack_file(&format!(
            "name: duo\nshape: {{full-mesh: {{nodes: 2}}}}\n\
             defaults: {{server: one, memory: {{bytes: 16MiB, mapped: '{device}'}}}}\njob: {{litmus: {{bytes_max: 64KiB}}}}\n"
        ))
    };
    for device in devices("host_memory_that_a_device_has_mapped_is_reported_or_refused") {
        let ended = run(&rack(device)).finish();
        let report = ended.passed();
        assert_eq!(report["nodes"][0]["memory"]["mapped_by"], device);
        assert!(ended.stdout.contains(&format!("mapped by {device}")), "{}", ended.stdout);
    }
    let ended = run(&rack("cuda:99")).finish();
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    assert!(ended.stderr.contains("hint: "), "{}", ended.stderr);
}
