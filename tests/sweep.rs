//! Sweeps: a grid of runs, resumable, with workers that may die, and with engines that distribute its points.
//!
//! The times of points are compared with those of `rackloom sim`, which has no part in a sweep's files.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Signal, test_kill_process};
use support::{Rackloom, rackloom, scratch, send, topology, within};

const TIMEOUT: Duration = Duration::from_secs(120);

/// Grid of 8 runs: two losses, two numbers of planes, two seeds.
const GRID: [&str; 8] =
    ["--set", "link.loss=0,1%", "--set", "planes=1,2", "--seeds", "1..2", "--algorithm", "ring"];
const JOB: [&str; 6] = ["--collective", "all-reduce", "--bytes", "16KiB", "--repetitions", "5"];
/// Job that takes a second or more, so that there is time to end it.
const SLOW_JOB: [&str; 6] = ["--collective", "all-reduce", "--bytes", "256KiB", "--repetitions", "200"];

fn path(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

fn star() -> PathBuf {
    topology("star-4.yaml")
}

fn sweep(out: &Path, arguments: &[&str]) -> Rackloom {
    rackloom(&["sweep", path(&star()), "--out", path(out)]).with(arguments)
}

fn results(out: &Path) -> String {
    fs::read_to_string(out.join("results.csv")).expect("the sweep has results")
}

/// Returns the rows of the results, by column.
fn rows(csv: &str) -> Vec<BTreeMap<String, String>> {
    let mut lines = csv.lines();
    let titles: Vec<_> = lines.next().expect("a heading").split(',').map(str::to_owned).collect();
    lines.map(|line| titles.iter().cloned().zip(line.split(',').map(str::to_owned)).collect()).collect()
}

/// Returns the processes that run a point of this sweep, by point.
fn workers(out: &Path) -> BTreeMap<u64, Pid> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir("/proc").expect("/proc").flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw)
        else {
            continue;
        };
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let words: Vec<_> = line.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
        let is_ours = words.iter().any(|word| word == path(out));
        let point = words.iter().position(|word| word == "--point").and_then(|at| words.get(at + 1));
        if let (true, Some(point)) = (is_ours, point.and_then(|point| point.parse().ok())) {
            found.insert(point, pid);
        }
    }
    found
}

fn finished_points(out: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(out.join("points")) else { return Vec::new() };
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| !name.starts_with('.')).collect()
}

#[test]
fn every_point_of_a_grid_has_the_times_of_its_own_run() {
    let out = scratch("sweep");
    let ended = sweep(&out, &[&GRID[..], &JOB].concat()).finish();
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
    let rows = rows(&results(&out));
    assert_eq!(rows.len(), 8);
    assert!(rows.iter().all(|row| row["verdict"] == "pass"), "{rows:?}");
    let shown: Vec<_> = rows
        .iter()
        .map(|row| [&row["link.loss"], &row["planes"], &row["seed"]].map(String::as_str))
        .collect();
    assert_eq!(shown[..3], [["0", "1", "1"], ["0", "1", "2"], ["0", "2", "1"]]);
    assert_eq!(shown[7], ["1%", "2", "2"]);
    for row in [&rows[2], &rows[7]] {
        let options = ["--loss", &row["link.loss"], "--seed", &row["seed"], "--algorithm", "ring"];
        let planes = format!("shape.star.planes={}", row["planes"]);
        let alone =
            support::sim(&star()).with(&JOB).with(&options).with(&["--set", &planes]).finish().passed();
        let time_us = alone["sweep"][0]["time_us"].as_f64().expect("a time");
        let of_sweep: f64 = row["time_ns"].parse().expect("a time");
        assert!((of_sweep - time_us * 1000.0).abs() < 1e-3, "{of_sweep} and {time_us}");
        assert_eq!(row["retransmitted"], support::retransmitted(&alone).to_string());
    }
    assert_ne!(rows[6]["time_ns"], rows[7]["time_ns"], "seeds differ");
    let summary = fs::read_to_string(out.join("summary.txt")).expect("a summary");
    assert!(summary.starts_with("8 runs: 8 pass\n"), "{summary}");
    assert_eq!(
        summary.lines().filter(|line| line.contains("ring")).count(),
        4,
        "seeds are joined:\n{summary}"
    );
    let figure = fs::read_to_string(out.join("plot.svg")).expect("a figure");
    assert_eq!(figure.matches("<polyline").count(), 2, "a line for each number of planes");
}

#[test]
fn each_operation_of_a_run_is_a_row_with_its_own_time() {
    let out = scratch("operations");
    let job = ["--job", "latency", "--bytes", "64"];
    let ended = sweep(&out, &job).with(&["--set", "link.delay=100ns,1us"]).finish();
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
    let alone = support::sim(&star()).with(&job).with(&["--set", "link.delay=1us"]).finish().passed();
    let measured = alone["sweep"].as_array().expect("rows");
    assert!(measured.len() > 1, "several operations");
    let summary = fs::read_to_string(out.join("summary.txt")).expect("a summary");
    let lines: Vec<Vec<&str>> = summary.lines().map(|line| line.split_whitespace().collect()).collect();
    let csv = rows(&results(&out));
    assert_eq!(csv.len(), 2 * measured.len());
    for row in measured {
        let [what, pair] = ["what", "pair"].map(|field| row[field].as_str().expect("a text"));
        let time_us = row["time_us"].as_f64().expect("a time");
        let expected = ["1us", what, pair, "64", "1", "1", &format!("{time_us:.2}")].map(str::to_owned);
        assert!(
            lines.iter().any(|line| line.starts_with(&expected.each_ref().map(String::as_str))),
            "{summary}"
        );
        let is_row = |one: &&BTreeMap<String, String>| {
            (one["link.delay"].as_str(), one["what"].as_str(), one["pair"].as_str()) == ("1us", what, pair)
        };
        let found: Vec<_> = csv.iter().filter(is_row).collect();
        assert_eq!(found.len(), 1, "{what} {pair}");
        let time_ns: f64 = found[0]["time_ns"].parse().expect("a time");
        assert!((time_ns - time_us * 1000.0).abs() < 1e-3, "{what} {pair}: {time_ns} and {time_us} us");
    }
}

#[test]
fn a_sweep_that_was_killed_goes_on_and_has_the_same_results() {
    let (whole, broken) = (scratch("whole"), scratch("broken"));
    let arguments = [&GRID[..], &SLOW_JOB].concat();
    let ended = sweep(&whole, &arguments).finish();
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
    let running = sweep(&broken, &arguments).start();
    within(TIMEOUT, "the first results", || (finished_points(&broken).len() >= 2).then_some(()));
    send(running.supervisor(), Signal::KILL);
    let _ = running.finish();
    let orphans = workers(&broken);
    within(TIMEOUT, "the end of its workers", || {
        orphans.values().all(|pid| support::is_gone(*pid)).then_some(())
    });
    let before = finished_points(&broken);
    assert!(before.len() < 8, "it was killed before its end");
    assert!(!broken.join("results.csv").exists());
    let time = |name: &String| {
        fs::metadata(broken.join("points").join(name)).and_then(|it| it.modified()).expect("a time")
    };
    let times: Vec<_> = before.iter().map(time).collect();
    let ended = sweep(&broken, &arguments).finish();
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
    assert_eq!(before.iter().map(time).collect::<Vec<_>>(), times, "finished points are not run again");
    assert!(ended.stderr.contains(&format!("{} done before", before.len())), "{}", ended.stderr);
    assert_eq!(results(&broken), results(&whole));
}

/// Kills the process of a point `times` times.
fn kill_point(out: &Path, point: u64, times: usize) {
    let mut killed: Vec<Pid> = Vec::new();
    while killed.len() < times {
        let pid = within(TIMEOUT, "a process of the point", || {
            workers(out).get(&point).copied().filter(|pid| !killed.contains(pid))
        });
        // It may have ended by itself, which would be seen below: it is then not killed.
        if test_kill_process(pid).is_ok() {
            send(pid, Signal::KILL);
            killed.push(pid);
        }
    }
}

#[test]
fn a_worker_that_dies_is_run_again_and_one_that_dies_twice_is_listed() {
    for (times, code, verdict) in [(1, 0, "pass"), (2, 1, "died")] {
        let out = scratch("deaths");
        let running = sweep(&out, &[&GRID[..], &SLOW_JOB].concat()).start();
        kill_point(&out, 7, times);
        let ended = running.finish();
        assert_eq!(ended.code, Some(code), "{}\n{}", ended.stdout, ended.stderr);
        let rows = rows(&results(&out));
        assert_eq!(rows.len(), 8);
        assert_eq!(rows[7]["verdict"], verdict);
        assert!(rows[..7].iter().all(|row| row["verdict"] == "pass"), "nothing else is lost: {rows:?}");
        let is_listed =
            ended.stdout.contains("point 7 (link.loss=1% planes=2 algorithm=ring seed=2): died: signal 9");
        assert_eq!(is_listed, verdict == "died", "{}", ended.stdout);
    }
}

#[test]
fn an_interrupted_sweep_prints_what_it_has() {
    let out = scratch("interrupted");
    let running = sweep(&out, &[&GRID[..], &SLOW_JOB].concat()).start();
    within(TIMEOUT, "a result", || (!finished_points(&out).is_empty()).then_some(()));
    send(running.supervisor(), Signal::INT);
    let ended = running.finish();
    assert_eq!(ended.code, Some(6), "{}\n{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains("8 runs: ") && ended.stdout.contains(" missing"), "{}", ended.stdout);
    assert!(workers(&out).is_empty(), "no worker is left");
}

#[test]
fn a_grid_that_takes_too_long_is_estimated_and_not_run() {
    let out = scratch("long");
    let ended = sweep(&out, &[&JOB[..], &["--seeds", "1..3000", "--time-limit", "1s"]].concat()).finish();
    assert_eq!(ended.code, Some(2), "{}\n{}", ended.stdout, ended.stderr);
    for part in ["the grid of 3000 runs would take about ", "limit of 1 s", "hint:", "--time-limit"] {
        assert!(ended.stderr.contains(part), "{part} in\n{}", ended.stderr);
    }
    assert!(finished_points(&out).len() < 100, "only a few runs for the estimate");
}

#[test]
fn a_grid_whose_first_runs_exceed_the_limit_has_an_estimate() {
    let out = scratch("longer");
    let job = [&SLOW_JOB[..5], &["2000"]].concat();
    let options = ["--seeds", "1..60", "--jobs", "2", "--time-limit", "100ms"];
    let ended = sweep(&out, &job).with(&options).finish();
    assert_eq!(ended.code, Some(2), "{}\n{}", ended.stdout, ended.stderr);
    // 30 pairs of runs, each of which takes longer than the limit.
    let part = "the grid of 60 runs would take at least 3 s, longer than the time limit of 100 ms: 0 of its first 3 runs ended within it";
    assert!(ended.stderr.contains(part) && ended.stderr.contains("hint:"), "{}", ended.stderr);
    assert!(finished_points(&out).is_empty());
}

#[test]
fn mistakes_name_the_option_and_have_a_hint() {
    let out = scratch("mistakes");
    for (arguments, parts) in [
        (&["--set", "lnik.loss=0,1%"][..], &["--set lnik.loss=0", "did you mean `link`?"][..]),
        (&["--set", "link.loss=0,2"], &["--set link.loss=2", "0%"]),
        (&["--set", "rate=1Gbit/s,2Gbit/s"], &["--set rate=1Gbit/s", "link.rate", "local.rate"]),
        (&["--set", "planes=1,2,x"], &["--set shape.star.planes=x"]),
        (&["--set", "planes"], &["--set planes", "KEY=A,B"]),
        (&["--set", "planes=1,1"], &["`planes` has the value 1 twice"]),
        (&["--seeds", "5..1"], &["write the smaller one first"]),
        (&["--algorithm", "rings"], &["did you mean"]),
        (&["--time-limit", "soon"], &["30min"]),
    ] {
        let ended = sweep(&out, arguments).with(&["--collective", "all-reduce"]).finish();
        assert_eq!(ended.code, Some(2), "{arguments:?}\n{}\n{}", ended.stdout, ended.stderr);
        for part in parts.iter().chain(&["hint"]) {
            assert!(ended.stderr.contains(part), "{part} in\n{}", ended.stderr);
        }
        assert!(!out.join("manifest.jsonl").exists(), "nothing was started: {arguments:?}");
    }
}

#[test]
fn a_directory_with_another_sweep_is_refused() {
    let out = scratch("another");
    let one = [&JOB[..], &["--seeds", "1..2"]].concat();
    assert_eq!(sweep(&out, &one).finish().code, Some(0));
    let ended = sweep(&out, &[&JOB[..], &["--seeds", "1..3"]].concat()).finish();
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("another sweep") && ended.stderr.contains("hint:"), "{}", ended.stderr);
    let ended = rackloom(&["sweep", "--collect", "--out", path(&scratch("nothing"))]).finish();
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("manifest") && ended.stderr.contains("hint:"), "{}", ended.stderr);
}

/// Writes a workload of this number of layers on four ranks.
fn write_workload(path: &Path, layers: &str) {
    let model = format!("layers={layers},hidden=64,sequence=16,batch=1,vocabulary=0");
    let arguments = ["workload", "generate", "training", "--dp", "4", "--model", &model, "-o"];
    let ended = rackloom(&arguments).with(&[self::path(path)]).finish();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

#[test]
fn a_workload_is_performed_at_every_point_from_a_copy() {
    let (out, folder) = (scratch("workload"), scratch("files"));
    fs::create_dir_all(&folder).expect("the scratch folder can be written");
    let file = folder.join("step.txt");
    write_workload(&file, "1");
    let options = ["--workload", path(&file), "--set", "link.delay=100ns,1us"];
    let alone =
        support::sim(&star()).with(&options[..2]).with(&["--set", "link.delay=1us"]).finish().passed();
    let ended = sweep(&out, &options).with(&["--engine", "slurm", "--no-submit"]).finish();
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
    write_workload(&file, "2");
    // Runs read the copy: the file is another one by now.
    assert_eq!(rackloom(&["sweep", "--share", "0/1", "--out", path(&out)]).finish().code, Some(0));
    let found = rows(&collected(&out));
    assert_eq!(found.iter().map(|row| row["what"].as_str()).collect::<Vec<_>>(), ["workload"; 2]);
    let expected = alone["workload"]["iteration_ns"].as_u64().expect("a time");
    assert_eq!(found[1]["time_ns"], expected.to_string());
    assert_ne!(found[0]["time_ns"], found[1]["time_ns"], "the delay has an effect");
    let ended = sweep(&out, &options).finish();
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    let part = "the directory holds a sweep with another file for --workload";
    assert!(ended.stderr.contains(part) && ended.stderr.contains("hint:"), "{}", ended.stderr);
    write_workload(&file, "1");
    let ended = sweep(&out, &options).finish();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stderr.contains("2 done before"), "{}", ended.stderr);
}

#[test]
fn faults_and_traces_hold_for_every_point() {
    let (out, folder) = (scratch("faults"), scratch("files"));
    fs::create_dir_all(&folder).expect("the scratch folder can be written");
    let (script, trace) = (folder.join("cut.yaml"), folder.join("trace.csv"));
    let cut = "name: cut\nevents:\n  - {what: loss, where: n0->s0, rate: 100%, at: 0us, for: 20us}\nexpect: {ends: right}\n";
    fs::write(&script, cut).expect("the scratch folder can be written");
    fs::write(&trace, "time,source,destination,bytes,kind\n0ns,n0,n1,4KiB,put\n2us,n2,n3,64B,store\n")
        .expect("the scratch folder can be written");
    let options = ["--faults", path(&script), "--trace", path(&trace)];
    let ended = sweep(&out, &options).with(&["--set", "link.delay=100ns,1us"]).finish();
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
    let found = rows(&results(&out));
    assert_eq!(found.len(), 2);
    for row in &found {
        let delay = format!("link.delay={}", row["link.delay"]);
        let alone = support::sim(&star()).with(&options).with(&["--set", &delay]).finish().passed();
        let completion = alone["traffic"]["completion_ns"].as_u64().expect("a time");
        assert_eq!(row["time_ns"], completion.to_string(), "{delay}");
        assert_eq!(row["retransmitted"], support::retransmitted(&alone).to_string());
        assert_ne!(row["dropped"], "0", "the script takes frames away");
    }
    // A file with a mistake is refused under the name that the user gave.
    fs::write(&script, cut.replace("what: loss", "what: lots")).expect("the scratch folder can be written");
    let ended = sweep(&scratch("mistake"), &options).finish();
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains(path(&script)) && ended.stderr.contains("lots"), "{}", ended.stderr);
}

#[test]
fn a_manifest_and_a_result_that_are_too_large_are_not_read() {
    let out = scratch("large");
    assert_eq!(sweep(&out, &[&JOB[..], &["--seeds", "1..2"]].concat()).finish().code, Some(0));
    let enlarge = |name: &str| {
        let file = fs::File::create(out.join(name)).expect("the scratch folder can be written");
        file.set_len(2 << 30).expect("a file without blocks");
    };
    let collect = || rackloom(&["sweep", "--collect", "--out", path(&out)]).finish();
    enlarge("points/000001.json");
    let ended = collect();
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stdout.contains("2 runs: 1 missing, 1 pass"), "{}", ended.stdout);
    enlarge("manifest.jsonl");
    let ended = collect();
    assert_eq!(ended.code, Some(2), "{}", ended.stdout);
    let part = "the file has 2.00 GiB, and a manifest has 1.00 GiB at most";
    assert!(ended.stderr.contains(part) && ended.stderr.contains("hint:"), "{}", ended.stderr);
}

#[test]
fn the_result_of_a_point_is_a_report() {
    let out = scratch("reports");
    let grid = ["--set", "nodes=8,4", "--set", "expect.nodes_lost=[],[n7]"];
    assert_eq!(sweep(&out, &[&grid[..], &JOB].concat()).finish().code, Some(1));
    let point = |number: u64| out.join(format!("points/{number:06}.json"));
    let alone = scratch("alone.json");
    let of_point = ["--set", "shape.star.nodes=4", "--set", "expect.nodes_lost=[]", "--json", path(&alone)];
    let ended = rackloom(&["sim", path(&star())]).with(&JOB).with(&of_point).finish();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let shown = |file: &Path| rackloom(&["report", path(file)]).finish();
    let ended = shown(&point(2));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(ended.stdout, shown(&alone).stdout);
    let ended = rackloom(&["diff", path(&alone), path(&point(2)), "--fail-over", "0%"]).finish();
    assert!(ended.stdout.contains("nothing has changed"), "{}\n{}", ended.stdout, ended.stderr);
    let rack = path(&out.join("rack.yaml")).to_owned();
    let ended = rackloom(&["graph", &rack, "--set", "nodes=4", "--report", path(&point(2))]).finish();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let ended = shown(&point(3));
    assert_eq!(ended.code, Some(2), "{}", ended.stdout);
    for part in ["its run was refused: ", "n7", "000003.json", "hint:"] {
        assert!(ended.stderr.contains(part), "{part} in {}", ended.stderr);
    }
}

#[test]
fn a_run_that_is_refused_is_a_row_and_ends_no_other() {
    let out = scratch("refused");
    // Each value can run by itself. Four nodes have no n7, and of eight none is lost.
    let grid = ["--set", "nodes=8,4", "--set", "expect.nodes_lost=[],[n7]"];
    let ended = sweep(&out, &[&grid[..], &JOB].concat()).finish();
    assert_eq!(ended.code, Some(1), "{}\n{}", ended.stdout, ended.stderr);
    let rows = rows(&results(&out));
    let verdicts: Vec<_> = rows.iter().map(|row| row["verdict"].as_str()).collect();
    assert_eq!(verdicts, ["pass", "fail", "pass", "refused"]);
    assert!(ended.stdout.contains("point 3 (nodes=4 expect.nodes_lost=[n7]): refused: "), "{}", ended.stdout);
}

/// Makes a folder with a program of this name, which is a shell script.
fn program(name: &str, text: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let folder = scratch("bin");
    fs::create_dir_all(&folder).expect("the scratch folder can be written");
    let path = folder.join(name);
    fs::write(&path, text).expect("a script");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it can be executed");
    folder
}

fn with_path(folder: &Path) -> String {
    format!("{}:{}", path(folder), std::env::var("PATH").unwrap_or_default())
}

fn collected(out: &Path) -> String {
    let ended = rackloom(&["sweep", "--collect", "--out", path(out)]).finish();
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
    results(out)
}

fn of_local() -> String {
    let local = scratch("local");
    assert_eq!(sweep(&local, &[&GRID[..], &JOB].concat()).finish().code, Some(0));
    results(&local)
}

#[test]
fn an_array_job_of_slurm_gives_the_results_of_this_machine() {
    let out = scratch("slurm");
    // Runs each element of the array, as Slurm would.
    let sbatch = "#!/bin/sh\nlast=$(sed -n 's/^#SBATCH --array=0-\\([0-9]*\\)%3$/\\1/p' \"$1\")\n\
                  for index in $(seq 0 \"$last\"); do SLURM_ARRAY_TASK_ID=$index sh \"$1\" || exit 1; done\n";
    let folder = program("sbatch", sbatch);
    let arguments = [&GRID[..], &JOB, &["--engine", "slurm", "--jobs", "3"]].concat();
    let ended = sweep(&out, &arguments).in_environment("PATH", &with_path(&folder)).finish();
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains("submitted"), "{}", ended.stdout);
    assert_eq!(finished_points(&out).len(), 8);
    assert_eq!(collected(&out), of_local());
}

#[test]
fn nothing_is_submitted_without_slurm_or_on_request() {
    let folder = program("sbatch", "#!/bin/sh\nexit 1\n");
    for (variable, more, code) in [
        ("/nonexistent".to_owned(), &[][..], 0),
        (with_path(&folder), &["--no-submit"], 0),
        (with_path(&folder), &[], 3),
    ] {
        let out = scratch("slurm");
        let arguments = [&GRID[..], &JOB, &["--engine", "slurm"], more].concat();
        let ended = sweep(&out, &arguments).in_environment("PATH", &variable).finish();
        assert_eq!(ended.code, Some(code), "{}\n{}", ended.stdout, ended.stderr);
        assert!(out.join("job.sh").exists() && finished_points(&out).is_empty());
    }
}

#[test]
fn an_indexed_job_of_kubernetes_gives_the_results_of_this_machine() {
    let out = scratch("kubernetes");
    let arguments = [&GRID[..], &JOB, &["--engine", "kubernetes", "--image", "example/rackloom:1"]].concat();
    assert_eq!(sweep(&out, &arguments).finish().code, Some(0));
    let job = fs::read_to_string(out.join("job.yaml")).expect("a job");
    let value = |key: &str| {
        let line =
            job.lines().find_map(|line| line.trim().strip_prefix(&format!("{key}: ")).map(str::to_owned));
        line.unwrap_or_else(|| panic!("no {key} in\n{job}"))
    };
    assert_eq!((value("completionMode"), value("completions")), ("Indexed".to_owned(), "8".to_owned()));
    assert_eq!(value("image"), "\"example/rackloom:1\"");
    let command = value("command");
    let command =
        command.strip_prefix("[sh, -c, ").and_then(|rest| rest.strip_suffix(']')).expect("a shell command");
    let command: String = serde_json::from_str(command).expect("a quoted text");
    // The volume of the container is the directory of the sweep.
    let command = command.replace("--out /sweep", &format!("--out '{}'", path(&out)));
    let folder = program("unused", "");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_rackloom"), folder.join("rackloom")).expect("a link");
    for index in 0..8 {
        let status = Command::new("sh")
            .args(["-c", &command])
            .env("PATH", with_path(&folder))
            .env("JOB_COMPLETION_INDEX", index.to_string())
            .status();
        assert!(status.expect("a shell").success());
    }
    assert_eq!(collected(&out), of_local());
}

#[test]
fn a_share_runs_its_points_only_and_once() {
    let out = scratch("share");
    let arguments = [&GRID[..], &JOB, &["--engine", "slurm", "--no-submit"]].concat();
    assert_eq!(sweep(&out, &arguments).finish().code, Some(0));
    let share = || rackloom(&["sweep", "--share", "1/3", "--out", path(&out)]).finish();
    assert_eq!(share().code, Some(0));
    let mut points = finished_points(&out);
    points.sort();
    assert_eq!(points, ["000001.json", "000004.json", "000007.json"]);
    assert_eq!(share().code, Some(0), "finished points are left alone");
    let ended = rackloom(&["sweep", "--point", "8", "--out", path(&out)]).finish();
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("no point 8") && ended.stderr.contains("hint:"), "{}", ended.stderr);
}
