//! Workloads through the command: the same graph in both engines, and errors that name file, reason and remedy.

mod support;

use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use support::{Ended, rack_file, rackloom, run, scratch, send, sim};

const RACK: &str = "name: worked\nshape: {star: {nodes: 5}}\n";

/// Messages in both directions, collectives of two groups, and computations between.
const STEP: &str = "workload step\nranks 4\nphase forward\nphase gradients\n\
    group 0..3\ngroup 0 2\n\
    rank 0\ncompute 300us\nsend 1 20000B tag 3 after -1\nreceive 1 64B\nin gradients\n\
    all-reduce group 0 100000B after 1 2\nbroadcast group 1 9000B\n\
    rank 1\nreceive 0 20000B tag 3\ncompute 200us after -1\nsend 0 64B after -1\nin gradients\nall-reduce group 0 100000B after -1\n\
    rank 2\ncompute 1ms\nin gradients\nall-reduce group 0 100000B after -1\nbroadcast group 1 9000B\n\
    rank 3\nin gradients\nall-reduce group 0 100000B\ncompute 100us after -1\n";

fn workload(text: &str) -> PathBuf {
    let path = scratch("workload.txt");
    std::fs::write(&path, text).expect("the scratch folder can be written");
    path
}

fn plain(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

/// Performs a workload in virtual time and on processes.
fn in_both(rack: &str, text: &str, of_processes: &[&str]) -> [Ended; 2] {
    let (rack, file) = (rack_file(rack), workload(text));
    let options = ["--workload", plain(&file)];
    let ended = [sim(&rack).with(&options).finish(), run(&rack).with(&options).with(of_processes).finish()];
    for ended in &ended {
        assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
    }
    ended
}

/// Returns what does not depend on time: operations, messages and bytes of the rack, of its ranks and of its phases.
fn counts(report: &Value) -> Vec<Value> {
    let workload = &report["workload"];
    let of = |part: &Value, keys: &[&str]| keys.iter().map(|key| part[key].clone()).collect::<Vec<_>>();
    let mut counts = of(workload, &["name", "operations", "messages", "bytes"]);
    for rank in workload["ranks"].as_array().expect("ranks") {
        counts.extend(of(rank, &["name", "operations", "messages", "bytes"]));
    }
    for phase in workload["phases"].as_array().expect("phases") {
        counts.extend(of(phase, &["name", "operations", "bytes"]));
    }
    counts
}

#[test]
fn with_the_headers_of_another_fabric_a_link_is_not_used_for_longer_than_the_iteration() {
    let count = 600;
    let lines = |line: &str| line.repeat(count);
    let (sends, receives) = (lines("send 1 64B\n"), lines("receive 0 64B\n"));
    let file = workload(&format!("workload small\nranks 2\nrank 0\n{sends}rank 1\n{receives}"));
    let options =
        ["--workload", plain(&file), "--set", "link.headers=sue-lite-like", "--set", "link.rate=1Gbit/s"];
    let report = sim(&rack_file("name: pair\nshape: {ring: {nodes: 2}}\n")).with(&options).finish().passed();
    let iteration_ns = report["workload"]["iteration_ns"].as_f64().expect("a number");
    let uses = report["workload"]["links"].as_array().expect("links");
    let mut greatest: f64 = 0.0;
    for (link, used) in report["links"].as_array().expect("links").iter().zip(uses) {
        assert_eq!(used["bytes"], link["bytes_on_wire"]);
        // 1 Gbit/s are 0.125 bytes per nanosecond. The frames before and after the iteration are few.
        let accounted = link["accounted_bytes"].as_f64().expect("a number") / (0.125 * iteration_ns);
        let share = used["share"].as_f64().expect("a share");
        assert!((share - accounted.min(1.0)).abs() < 1e-9 && accounted < 1.05, "{share}, {accounted}");
        greatest = greatest.max(link["bytes_on_wire"].as_f64().expect("a number") / (0.125 * iteration_ns));
    }
    assert!(
        greatest > 1.2,
        "by bytes on the wire the link would be used for longer than there is time: {greatest}"
    );
}

#[test]
fn ranks_without_operations_are_counted() {
    let file = workload("workload lonely\nranks 4\nrank 1\ncompute 5us\n");
    let rack = rack_file(RACK);
    let ended = sim(&rack).with(&["--workload", plain(&file)]).finish();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let report = ended.report();
    // The rack has five nodes, and the file has four ranks, of which one has operations.
    assert_eq!(report["workload"]["ranks_stated"], 4);
    assert_eq!(report["workload"]["ranks"].as_array().map(Vec::len), Some(1));
    let text = &ended.stdout;
    let mut lines = text.lines().skip_while(|line| !line.starts_with("workload "));
    let heads = lines.next().expect("heads").split("  ").filter(|head| !head.is_empty());
    let heads: Vec<_> = heads.map(str::trim).take(3).collect();
    let row = lines.next().expect("a row").split_whitespace().take(3).collect::<Vec<_>>();
    assert_eq!(
        (heads, row),
        (vec!["workload", "ranks", "with operations"], vec!["lonely", "4", "1"]),
        "{text}"
    );
    let none = workload("workload idle\nranks 3\n");
    let text = sim(&rack).with(&["--workload", plain(&none)]).finish().stdout;
    let row = text.lines().find(|line| line.starts_with("idle ")).unwrap_or_else(|| panic!("{text}"));
    assert_eq!(row.split_whitespace().take(3).collect::<Vec<_>>(), ["idle", "3", "0"]);
}

#[test]
fn both_engines_perform_the_same_operations() {
    for how in ["sleep", "spin"] {
        let [simulated, real] = in_both(RACK, STEP, &["--compute", how]);
        let (simulated, real) = (simulated.report(), real.report());
        assert_eq!((&simulated["job"], &real["job"]), (&"workload".into(), &"workload".into()));
        assert_eq!(counts(&simulated), counts(&real));
        assert_eq!(simulated["workload"]["operations"], 14);
        // A rank computes as long as its operations say, on processes at least.
        let compute = |report: &Value| -> Vec<u64> {
            let ranks = report["workload"]["ranks"].as_array().expect("ranks").iter();
            ranks.map(|rank| rank["compute_ns"].as_u64().expect("a time")).collect()
        };
        assert_eq!(compute(&simulated), [300_000, 200_000, 1_000_000, 100_000]);
        for (least, found) in compute(&simulated).into_iter().zip(compute(&real)) {
            assert!(found >= least, "{how}: {found} ns of {least}");
        }
        // Rank 2 computes for 1 ms before the all-reduce, and rank 3 for 100 us after it.
        let iteration_ns = simulated["workload"]["iteration_ns"].as_u64().expect("a time");
        assert!((1_100_000..1_200_000).contains(&iteration_ns), "{iteration_ns}");
        assert_eq!(simulated["workload"]["links"].as_array().map(Vec::len), Some(10));
        assert_eq!(real["meta"]["options"]["compute"], *how);
    }
}

#[test]
fn work_takes_the_time_of_the_device_in_both_engines() {
    let device = "device: {compute_rate: 1TFLOP/s, launch_latency: 20us, memory_rate: 80Gbit/s}\n";
    let own = "nodes: {n1: {device: {compute_rate: 500GFLOP/s}}}\n";
    let step = "workload work\nranks 3\ngroup 0..2\nrank 0..2\ncompute 300MFLOP 1MB\ncompute 5MB after -1\n\
                all-reduce group 0 100000B after -1\n"
        .replace("compute 5MB", "compute 0FLOP 5MB");
    for how in ["sleep", "spin"] {
        let [simulated, real] = in_both(&format!("{RACK}{device}{own}"), &step, &["--compute", how]);
        let compute = |report: &Value| -> Vec<u64> {
            let ranks = report["workload"]["ranks"].as_array().expect("ranks").iter();
            ranks.map(|rank| rank["compute_ns"].as_u64().expect("a time")).collect()
        };
        // 300 us and 500 us at 1 TFLOP/s and 10 GB/s, two launches; n1 needs 600 us for the operations.
        let expected = [840_000, 1_140_000, 840_000];
        assert_eq!(compute(&simulated.report()), expected);
        for (least, found) in expected.into_iter().zip(compute(&real.report())) {
            assert!(found >= least, "{how}: {found} ns of {least}");
        }
    }
}

#[test]
fn work_without_a_compute_rate_is_refused_with_its_line() {
    let text = "# Both ranks.\nworkload work\nranks 2\n\nrank 0 1  # alike\ncompute 5us\n# The first one.\ncompute 2TFLOP 4MB\n";
    let (rack, file) = (rack_file(RACK), workload(text));
    for engine in ["sim", "run"] {
        let message = refused(&[engine, plain(&rack), "--workload", plain(&file)]);
        assert!(message.contains(&format!("{}:8:1", file.display())), "{message}");
        assert!(message.contains("n0 has no compute rate") && message.contains("compute_rate:"), "{message}");
    }
    let rate = ["--set", "device.compute_rate=1PFLOP/s"];
    let ended = sim(&rack).with(&["--workload", plain(&file)]).with(&rate).finish();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(ended.report()["workload"]["iteration_ns"], 2_005_000);
}

#[test]
fn generated_work_runs_on_racks_of_different_devices() {
    let (timed, stated) = (scratch("timed.txt"), scratch("stated.txt"));
    let model = [
        "workload",
        "generate",
        "training",
        "--model",
        "layers=2,hidden=256,sequence=64,batch=1,vocabulary=0",
        "--dp",
        "2",
    ];
    let generate = |more: &[&str]| {
        let ended = rackloom(&[&model, more].concat()).finish();
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        ended.stdout
    };
    generate(&["--tflops", "2", "--memory-bandwidth", "100", "--launch-ns", "700", "-o", plain(&timed)]);
    let shown = generate(&["--work", "-o", plain(&stated)]);
    assert!(shown.contains("operations max") && shown.contains("moved max"), "{shown}");
    let text = std::fs::read_to_string(&stated).expect("a workload");
    assert!(text.contains("FLOP ") && !text.contains("ns"), "{text}");
    let rack = rack_file("name: worked\nshape: {ring: {nodes: 2}}\n");
    let compute_ns = |file: &Path, tflops: u32| {
        let keys = [
            format!("device.compute_rate={tflops}TFLOP/s"),
            "device.memory_rate=800Gbit/s".to_owned(),
            "device.launch_latency=700ns".to_owned(),
        ];
        let keys: Vec<_> = keys.iter().flat_map(|key| ["--set", key]).collect();
        let ended = sim(&rack).with(&["--workload", plain(file)]).with(&keys).finish();
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let ranks = ended.report()["workload"]["ranks"].clone();
        ranks[0]["compute_ns"].as_u64().expect("a time")
    };
    // The options of the generator and the keys of the rack are one machine.
    assert_eq!(compute_ns(&stated, 2), compute_ns(&timed, 1));
    assert!(compute_ns(&stated, 1) > compute_ns(&stated, 2));
    let both = rackloom(&[&model[..], &["--work", "--tflops", "2"]].concat()).finish();
    assert_eq!(both.code, Some(2), "--work has no rates: {}", both.stderr);
}

#[test]
fn nodes_of_one_server_perform_a_workload_in_shared_memory() {
    let rack = format!("{RACK}servers: {{a: {{nodes: [n0, n1]}}, b: {{nodes: [n2, n3]}}}}\n");
    let [simulated, real] = in_both(&rack, STEP, &[]);
    assert_eq!(counts(&simulated.report()), counts(&real.report()));
}

#[test]
fn the_report_has_tables_of_the_iteration_and_its_phases() {
    let rack = rack_file(&format!("{RACK}link: {{rate: 100Gbit/s}}\n"));
    let file = workload(STEP);
    let ended = sim(&rack).with(&["--workload", plain(&file), "--algorithm", "ring"]).finish();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    for words in ["iteration", "exposed p50", "gradients", "busiest links", "all-reduce of 4 ranks by ring"] {
        assert!(ended.stdout.contains(words), "{words}\n{}", ended.stdout);
    }
}

#[test]
fn a_node_that_is_killed_ends_the_workload_cleanly() {
    let timers = "timers: {heartbeat_interval: 50ms, heartbeat_miss_max: 4}\n";
    let rack = rack_file(&format!("{RACK}{timers}"));
    let file = workload(&STEP.replace("compute 1ms", "compute 60s"));
    let mut running = run(&rack).with(&["--workload", plain(&file)]).start();
    let members = running.members();
    std::thread::sleep(Duration::from_millis(300));
    send(members.pid("n1"), Signal::KILL);
    let ended = running.finish();
    assert_eq!(ended.code, Some(4), "{}\n{}", ended.stdout, ended.stderr);
    let report = ended.report();
    let failures = report["failures"].to_string();
    assert!(failures.contains("lost nodes [n1]"), "{failures}");
    assert!(failures.contains("computing 60000000000 ns in phase forward"), "{failures}");
    members.all_gone(Duration::ZERO);
}

/// Runs a command that must refuse its input, and returns its message.
fn refused(arguments: &[&str]) -> String {
    let ended = rackloom(arguments).finish();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{arguments:?}: {}", ended.stderr);
    assert!(ended.stderr.contains("hint:"), "{arguments:?}: {}", ended.stderr);
    ended.stderr
}

#[test]
fn mistakes_of_a_workload_are_reported_with_their_lines() {
    let cycle = "workload w\nranks 2\nrank 0\nreceive 1 8B\nsend 1 8B after -1\nrank 1\nreceive 0 8B\nsend 0 8B after -1\n";
    for (text, lines, words) in [
        (STEP.replace("send 1 20000B", "send 9 20000B"), ":9:", "there is no rank 9"),
        (STEP.replace("receive 0 20000B tag 3\n", "compute 1us\n"), ":9:", "rank 1"),
        (cycle.to_owned(), ":4", "receive"),
    ] {
        let rack = rack_file(RACK);
        let file = workload(&text);
        for arguments in [
            &["workload", "check", plain(&file)][..],
            &["sim", plain(&rack), "--workload", plain(&file)],
            &["run", plain(&rack), "--workload", plain(&file)],
        ] {
            let message = refused(arguments);
            assert!(message.contains(&file.display().to_string()), "{message}");
            assert!(message.contains(lines) && message.contains(words), "{message}");
        }
    }
}

#[test]
fn a_file_that_is_too_large_is_refused_with_both_sizes() {
    let path = scratch("large.workload");
    let file = std::fs::File::create(&path).expect("the scratch folder can be written");
    file.set_len(300 << 20).expect("a file without content");
    let text = refused(&["workload", "import", plain(&path)]);
    std::fs::remove_file(&path).expect("it is there");
    for part in
        ["the file has 300 MiB, and a file of a workload has 256 MiB at most", "where: ", "hint:  cut it"]
    {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn computations_that_their_device_makes_too_long_are_refused() {
    let rack = rack_file("name: slow\nshape: {ring: {nodes: 2}}\ndevice: {compute_rate: 1MFLOP/s}\n");
    let path = workload("ranks 2\nrank 1\ncompute 3PFLOP\ncompute 100PFLOP\n");
    let text = refused(&["sim", plain(&rack), "--workload", plain(&path)]);
    assert!(
        text.contains("operation 1: the computations of rank 1 up to here take more than a hundred years"),
        "{text}"
    );
}

#[test]
fn a_workload_that_the_rack_cannot_perform_is_refused() {
    let file = workload(STEP);
    for (rack, words) in [
        ("name: small\nshape: {ring: {nodes: 3}}\n", "workload step has 4 ranks, the rack has 3 GPU nodes"),
        ("name: tenants\nshape: {ring: {nodes: 4}}\nnodes: {n3: {tenant: 1}}\n", "several tenants"),
        ("name: little\nshape: {ring: {nodes: 4}}\nnodes: {n3: {memory: 16KiB}}\n", "bytes of memory at n3"),
    ] {
        let rack = rack_file(rack);
        for engine in ["sim", "run"] {
            let message = refused(&[engine, plain(&rack), "--workload", plain(&file)]);
            assert!(message.contains(words), "{message}");
        }
    }
}

#[test]
fn options_that_mean_nothing_to_a_workload_are_refused() {
    let (rack, file) = (rack_file(RACK), workload(STEP));
    let sim = |more: &[&str]| {
        let ended = rackloom(&[&["sim", plain(&rack), "--workload", plain(&file)], more].concat()).finish();
        (ended.code, ended.stderr)
    };
    for more in [
        &["--job", "litmus"][..],
        &["--trace", plain(&file)],
        &["--bytes", "8B"],
        &["--repetitions", "3"],
        &["--algorithm", "pairwise"],
        &["--algorithm", "ring,ring"],
    ] {
        let (code, message) = sim(more);
        assert_eq!(code, Some(2), "{more:?}: {message}");
    }
    for job in [&[][..], &["--job", "none"]] {
        let message = refused(&[&["run", plain(&rack), "--compute", "spin"], job].concat());
        assert!(message.contains("--compute has no effect without a workload"), "{message}");
    }
    let missing = rackloom(&["sim", plain(&rack), "--workload", "/nonexistent/w"]).finish();
    assert!(missing.stderr.contains("cannot read the workload"), "{}", missing.stderr);
}

#[test]
fn a_workload_without_a_name_has_that_of_its_file() {
    let file = scratch("nameless.wl");
    std::fs::write(&file, STEP.replace("workload step\n", "")).expect("it can be written");
    let stem = file.file_stem().and_then(|stem| stem.to_str()).expect("a plain path");
    let checked = rackloom(&["workload", "check", plain(&file)]).finish();
    assert!(checked.stdout.starts_with(&format!("{stem}: 4 ranks")), "{}", checked.stdout);
}

/// Messages name the options, and defaults that a model fills in are stated.
#[test]
fn options_of_generated_workloads_are_checked_by_their_names() {
    for (options, words) in [
        (["decode", "--tokens", "0"], "--tokens"),
        (["training", "--dp", "0"], "--dp"),
        (["training", "--micro-batches", "0"], "--micro-batches"),
        (["training", "--tflops", "nan"], "--tflops"),
        (["training", "--memory-bandwidth", "0"], "--memory-bandwidth"),
        (["training", "--element-bytes", "0"], "--element-bytes"),
        (["training", "--model", "layers=2,hidden=64,layers=3"], "`layers` is stated twice"),
    ] {
        let message = refused(&[&["workload", "generate"][..], &options].concat());
        assert!(message.contains(words), "{message}");
    }
    let model = |numbers: &str| rackloom(&["workload", "generate", "training", "--model", numbers]).finish();
    let partial = model("layers=2,hidden=64");
    assert_eq!(partial.code, Some(0), "{}", partial.stderr);
    assert!(partial.stderr.contains("sequence=2048,batch=1,vocabulary=32000"), "{}", partial.stderr);
    let full = model("layers=2,hidden=64,sequence=8,batch=1,vocabulary=100");
    assert_eq!((full.code, full.stderr.as_str()), (Some(0), ""));
}

#[test]
fn a_workload_is_written_as_it_was_read() {
    let (file, written) = (workload(STEP), scratch("written.txt"));
    let import = rackloom(&["workload", "import", plain(&file), "-o", plain(&written)]).finish();
    assert_eq!(import.code, Some(0), "{}", import.stderr);
    let [first, second] =
        [&file, &written].map(|file| rackloom(&["workload", "check", plain(file)]).finish().stdout);
    assert_eq!(first, second);
    assert!(first.contains("step: 4 ranks, 2 groups, 14 operations"), "{first}");
}
