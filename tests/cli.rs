//! Command line: help, errors, exit codes.
//!
//! Nothing here starts a rack.

mod support;

use support::{Ended, TOPOLOGIES, rack_file, rackloom, root, scratch, topology};

fn help(arguments: &[&str]) -> String {
    let ended = rackloom(arguments).finish();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    ended.stdout
}

fn refused(arguments: &[&str]) -> Ended {
    let ended = rackloom(arguments).finish();
    assert_eq!(ended.code, Some(2), "{}\n{}", ended.stdout, ended.stderr);
    assert_eq!(ended.stdout, "", "nothing but the error is printed");
    assert!(ended.stderr.contains("hint:"), "no hint in\n{}", ended.stderr);
    ended
}

#[test]
fn help_matches_its_snapshots() {
    insta::assert_snapshot!("help", help(&["--help"]));
    insta::assert_snapshot!("help-run", help(&["run", "--help"]));
    insta::assert_snapshot!("help-sim", help(&["sim", "--help"]));
    insta::assert_snapshot!("help-check", help(&["check", "--help"]));
    insta::assert_snapshot!("help-workload-generate", help(&["workload", "generate", "--help"]));
    insta::assert_snapshot!("help-workload-import", help(&["workload", "import", "--help"]));
    insta::assert_snapshot!("help-graph", help(&["graph", "--help"]));
    insta::assert_snapshot!("help-report", help(&["report", "--help"]));
    insta::assert_snapshot!("help-schedule", help(&["schedule", "--help"]));
    insta::assert_snapshot!("help-up", help(&["up", "--help"]));
    insta::assert_snapshot!("help-status", help(&["status", "--help"]));
    insta::assert_snapshot!("help-down", help(&["down", "--help"]));
    insta::assert_snapshot!("help-seat", help(&["seat", "--help"]));
    insta::assert_snapshot!("help-decode", help(&["decode", "--help"]));
    insta::assert_snapshot!("help-campaign", help(&["campaign", "--help"]));
    insta::assert_snapshot!("help-sweep", help(&["sweep", "--help"]));
    insta::assert_snapshot!("help-recommend", help(&["recommend", "--help"]));
    insta::assert_snapshot!("help-inject", help(&["inject", "link", "--help"]));
    insta::assert_snapshot!("help-experiment", help(&["experiment", "--help"]));
    insta::assert_snapshot!("help-calibrate", help(&["calibrate", "--help"]));
    insta::assert_snapshot!("help-capture", help(&["capture", "--help"]));
    insta::assert_snapshot!("help-extcap", help(&["extcap", "--help"]));
    insta::assert_snapshot!("help-init", help(&["init", "--help"]));
    insta::assert_snapshot!("help-completions", help(&["completions", "--help"]));
    insta::assert_snapshot!("help-man", help(&["man", "--help"]));
    insta::assert_snapshot!("help-gpu-info", help(&["gpu", "info", "--help"]));
    insta::assert_snapshot!("help-job", help(&["job", "--help"]));
    insta::assert_snapshot!("help-job-submit", help(&["job", "submit", "--help"]));
    insta::assert_snapshot!("help-exec", help(&["exec", "--help"]));
    insta::assert_snapshot!("help-env", help(&["env", "--help"]));
}

/// `rackloom ... | head`: the reader has exited before anything was printed. The command ends with its usual code and does not panic (101).
#[test]
fn a_closed_pipe_does_not_change_the_exit_code() {
    let ring = topology("ring-4.yaml");
    let ring = ring.to_str().expect("a plain path");
    let (runs, reads) = (["--collective", "barrier", "--json", "-"], ["--collective", "all-reduce"]);
    for (arguments, code) in [
        (vec!["--help"], 0),
        (vec!["run", "--help"], 0),
        (vec!["check", ring], 0),
        (vec!["schema"], 0),
        (vec!["experiment", "list"], 0),
        (vec!["experiment", "list", "--json"], 0),
        (vec!["experiment", "outstanding-loads", "--reduced"], 0),
        (vec!["experiment", "outstanding-loads", "--reduced", "--perturb"], 1),
        ([&["schedule", ring], &reads[..]].concat(), 0),
        ([&["sim", ring], &runs[..]].concat(), 0),
        ([&["run", ring], &reads[..]].concat(), 0),
        (vec!["decode", "no-such-capture.pcapng"], 2),
        (vec!["no-such-command"], 2),
        (vec!["sim", "no-such-rack.yaml"], 2),
        (vec!["sim", ring, "--loss", "7"], 2),
    ] {
        let closed = || {
            let (reader, writer) = std::io::pipe().expect("a pipe");
            drop(reader);
            writer
        };
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_rackloom"));
        let status = command.current_dir(root()).args(&arguments).stdout(closed()).stderr(closed()).status();
        assert_eq!(status.expect("it starts").code(), Some(code), "{arguments:?}");
    }
}

#[test]
fn every_option_is_in_the_document() {
    let document = std::fs::read_to_string(root().join("docs/cli.md")).expect("docs/cli.md is there");
    for command in [
        "run",
        "sim",
        "campaign",
        "sweep",
        "recommend",
        "check",
        "graph",
        "report",
        "schedule",
        "up",
        "status",
        "down",
        "seat",
        "decode",
        "experiment",
        "calibrate",
        "capture",
        "diff",
        "events",
        "extcap",
        "heal",
        "init",
        "top",
        "completions",
        "man",
        "job submit",
        "job list",
        "job cancel",
        "job add-node",
    ] {
        let help = help(&command.split(' ').chain(["--help"]).collect::<Vec<_>>());
        let words = help.split(|character: char| !(character.is_ascii_alphanumeric() || character == '-'));
        for option in words.filter(|word| word.starts_with("--") && word.len() > 2 && *word != "--help") {
            assert!(document.contains(&format!("`{option}")), "docs/cli.md lacks {option} of {command}");
        }
    }
}

#[test]
fn every_shipped_file_is_a_plan() {
    for name in TOPOLOGIES {
        let plan = help(&["check", topology(name).to_str().expect("a plain path")]);
        for heading in ["member", "link", "setting"] {
            assert!(plan.lines().any(|line| line.starts_with(heading)), "{name} lacks a table of {heading}s");
        }
    }
}

#[test]
fn a_missing_file_is_bad_input_with_path_and_hint() {
    for command in ["run", "sim", "check", "up"] {
        let ended = refused(&[command, "topologies/no-such-rack.yaml"]);
        for part in ["error: ", "where: topologies/no-such-rack.yaml", "hint: "] {
            assert!(ended.stderr.contains(part), "{}", ended.stderr);
        }
    }
}

#[test]
fn two_mistakes_are_both_reported_with_line_and_column() {
    let path = rack_file("name: broken\nshape: {ring: {nodes: 4}}\nlnik: {loss: 1%}\nwatchdog: 5 apples\n");
    let ended = refused(&["run", path.to_str().expect("a plain path")]);
    for part in ["lnik", "apples", ":3:", ":4:", "hint"] {
        assert!(ended.stderr.contains(part), "{part} is missing:\n{}", ended.stderr);
    }
}

#[test]
fn a_file_that_is_no_text_is_bad_input() {
    let path = support::scratch("noise.yaml");
    std::fs::write(&path, [0xff, 0xfe, 0x00, 0x80]).expect("the scratch folder can be written");
    refused(&["check", path.to_str().expect("a plain path")]);
    refused(&["check", "/"]);
}

#[test]
fn bad_arguments_are_bad_input() {
    let ring = topology("ring-4.yaml");
    let ring = ring.to_str().expect("a plain path");
    for arguments in [
        &["fly", ring][..],
        &["run"],
        &["run", ring, "--loss", "2"],
        &["run", ring, "--loss", "many"],
        &["run", ring, "--wire", "string"],
        &["sim", ring, "--wire", "packet"],
        &["sim", ring, "--transport", "hope"],
        &["run", ring, "--seed", "-1"],
        &["seat"],
        &["keep"],
        &["seat", "--join", "no-place"],
        &["up", ring, "--name", "a/b"],
        &["up", ring, "--job", "hope"],
        &["down", "--all", "ring-4"],
    ] {
        refused(arguments);
    }
}

#[test]
fn json_on_standard_output_is_alone_there() {
    let ring = topology("ring-4.yaml");
    let ended = rackloom(&["sim", ring.to_str().expect("a plain path"), "--json", "-"]).finish();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let report: serde_json::Value = serde_json::from_str(&ended.stdout).expect("nothing but JSON");
    assert_eq!(report["clock"], "virtual");
    assert!(ended.stderr.contains("verdict: pass"));
}

#[test]
fn a_schedule_is_printed_completely_or_as_a_choice() {
    let ring = topology("ring-4.yaml");
    let ring = ring.to_str().expect("a plain path");
    let options = ["--collective", "all-reduce", "--bytes", "64B"];
    let plan = |more: &[&str]| help(&[&["schedule", ring][..], &options, more].concat());
    insta::assert_snapshot!("plan-two-shot", plan(&["--algorithm", "two-shot"]));
    insta::assert_snapshot!("plan-choices", plan(&[]));
    refused(&["schedule", ring]);
    refused(&["schedule", ring, "--collective", "broadcast", "--algorithm", "two-shot"]);
    // Options that change no schedule are refused.
    for option in
        ["--loss", "--transport", "--repetitions", "--warm-up", "--seed", "--op", "--job", "--sizes"]
    {
        let ended = refused(&["schedule", ring, "--collective", "all-reduce", option, "1"]);
        assert!(ended.stderr.contains(&format!("unexpected argument '{option}'")), "{}", ended.stderr);
    }
    // Accepted options change it.
    let collective = ["--collective", "broadcast", "--algorithm", "binomial"];
    let of = |more: &[&str]| help(&[&["schedule", ring][..], &collective, more].concat());
    let plain = of(&[]);
    for more in [["--root", "n1"], ["--bytes", "12B"], ["--type", "f64"], ["--rounds", "1"]] {
        assert_ne!(of(&more), plain, "{more:?} changes nothing");
    }
}

#[test]
fn the_schema_is_json() {
    let schema: serde_json::Value = serde_json::from_str(&help(&["schema"])).expect("JSON");
    assert_eq!(schema["title"], "rackloom rack file");
    let schema: serde_json::Value = serde_json::from_str(&help(&["schema", "faults"])).expect("JSON");
    assert_eq!(schema["title"], "rackloom fault script");
}

#[test]
fn an_option_without_effect_is_refused() {
    let ring = topology("ring-4.yaml");
    let ring = ring.to_str().expect("a plain path");
    for options in [
        &["--bytes", "8B"][..],
        &["--job", "latency", "--op", "sum"],
        &["--collective", "sum"],
        &["--collective", "reduce", "--root", "n7"],
        &["--job", "litmus", "--input", "/"],
        &["--job", "bandwidth", "--sizes", "8.."],
        &["--collective", "all-reduce", "--bytes", "8B", "--input", "/"],
    ] {
        refused(&[&["run", ring][..], options].concat());
    }
}

#[test]
fn options_of_an_output_or_engine_that_is_absent_are_refused() {
    let ring = topology("ring-4.yaml");
    let ring = ring.to_str().expect("a plain path");
    let folder = scratch("grid");
    let folder = folder.to_str().expect("a plain path");
    for (command, option) in [
        (&["sim", ring, "--series-interval", "5us"][..], "--series-interval"),
        (&["run", ring, "--series-interval", "5us"], "--series-interval"),
        (&["sweep", ring, "--out", folder, "--no-submit"], "--no-submit"),
        (&["sweep", ring, "--out", folder, "--ray-address", "host:1"], "--ray-address"),
        (
            &["sweep", ring, "--out", folder, "--engine", "ray", "--no-submit", "--ray-address", "host:1"],
            "--ray-address",
        ),
        (&["sweep", ring, "--out", folder, "--engine", "slurm", "--image", "x"], "--image"),
        (&["sweep", ring, "--out", folder, "--volume-claim", "x"], "--volume-claim"),
        (&["campaign", ring, "--failures-max", "0"], "--failures-max"),
        (&["campaign", ring, "--runs", "0"], "--runs"),
        (&["campaign", ring, "--exhaustive", "switches:1", "--job", "latency"], "--exhaustive"),
    ] {
        let ended = refused(command);
        assert!(ended.stderr.contains(option), "{command:?}: {}", ended.stderr);
    }
    assert!(!std::path::Path::new(folder).exists(), "a sweep that was refused left a folder");
}

/// Elided payload leaves times and events as they are, and so the drawn scripts and their ends.
#[test]
fn a_campaign_takes_the_payload_as_a_simulation_does() {
    let ring = topology("ring-4.yaml");
    let json = scratch("campaign.json");
    let (ring, json) = (ring.to_str().expect("a plain path"), json.to_str().expect("a plain path"));
    let campaign = ["campaign", ring, "--runs", "2", "--collective", "all-reduce", "--payload"];
    let ended = rackloom(&[&campaign[..], &["elided", "--json", json]].concat()).finish();
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    let text = std::fs::read_to_string(json).expect("a result");
    let result: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((&result["ran"], &result["verdict"]), (&2.into(), &"pass".into()));
    // The job of the file compares every byte.
    let ended = refused(&["campaign", ring, "--runs", "2", "--payload", "elided"]);
    assert!(ended.stderr.contains("`payload` is elided"), "{}", ended.stderr);
    refused(&[&campaign[..], &["elided", "--engine", "processes"]].concat());
}

#[test]
fn a_negative_number_is_refused_with_its_option() {
    for (command, option) in [
        (&["diff", "a.json", "b.json", "--rows", "-1"][..], "--rows"),
        (&["diff", "a.json", "b.json", "--fail-over", "-5%"], "--fail-over"),
        (&["sim", "topologies/ring-4.yaml", "--loss", "-1"], "--loss"),
        (&["campaign", "topologies/ring-4.yaml", "--runs", "-3"], "--runs"),
    ] {
        let ended = refused(command);
        assert!(ended.stderr.contains(option), "{command:?}: {}", ended.stderr);
        assert!(!ended.stderr.contains("unexpected argument"), "{command:?}: {}", ended.stderr);
    }
}

#[test]
fn options_of_two_jobs_exclude_each_other() {
    let ring = topology("ring-4.yaml");
    let ring = ring.to_str().expect("a plain path");
    for (options, pair) in [
        (["--pattern", "uniform", "--collective", "all-reduce"], "--pattern and --collective exclude"),
        (["--pattern", "permutation", "--algorithm", "ring"], "--pattern and --algorithm exclude"),
        (["--collective", "all-reduce", "--messages", "2"], "--messages and --collective exclude"),
    ] {
        let ended = refused(&[&["sim", ring][..], &options].concat());
        assert!(ended.stderr.contains(pair) && ended.stderr.contains("leave one"), "{}", ended.stderr);
    }
}

/// An output that is a file of the input would destroy it. Two paths to one file are one file.
#[test]
fn an_output_does_not_overwrite_an_input() {
    let folder = scratch("inputs");
    std::fs::create_dir(&folder).expect("the scratch folder can be written");
    let kept = [
        ("rack.yaml", "name: r\nshape: {ring: {nodes: 3}}\njob: none\n"),
        ("faults.yaml", "name: f\nevents: []\n"),
        ("work.wl", "workload w 2\n"),
        ("report.json", "{}"),
    ];
    kept.iter().for_each(|(name, text)| std::fs::write(folder.join(name), text).expect("it can be written"));
    std::os::unix::fs::symlink("rack.yaml", folder.join("link")).expect("a link");
    std::fs::hard_link(folder.join("report.json"), folder.join("other.json")).expect("a second name");
    for (line, option, input) in [
        ("sim rack.yaml --json rack.yaml", "--json", "the rack file"),
        ("sim rack.yaml --html ./rack.yaml", "--html", "the rack file"),
        ("sim rack.yaml --series link", "--series", "the rack file"),
        ("run rack.yaml --pids rack.yaml", "--pids", "the rack file"),
        ("run rack.yaml --faults faults.yaml --junit faults.yaml", "--junit", "the fault script of --faults"),
        ("sim rack.yaml --workload work.wl --json work.wl", "--json", "the workload of --workload"),
        ("sim rack.yaml --trace work.wl --perfetto work.wl", "--perfetto", "the trace of --trace"),
        ("campaign rack.yaml --runs 1 --junit rack.yaml", "--junit", "the rack file"),
        ("campaign rack.yaml --runs 1 --resume rack.yaml", "--resume", "the rack file"),
        ("sweep rack.yaml --out grid --html link", "--html", "the rack file"),
        (
            "recommend rack.yaml --collective all-reduce --bytes 1MiB --target busbw=0.8 --nodes 2..4 --json rack.yaml",
            "--json",
            "the rack file",
        ),
        ("graph rack.yaml -o rack.yaml", "--output", "the rack file"),
        ("graph rack.yaml --report report.json -o other.json", "--output", "the report of --report"),
        ("report report.json --html other.json", "--html", "the report"),
        ("diff report.json faults.yaml --json faults.yaml", "--json", "a report"),
        ("workload import work.wl -o work.wl", "--output", "a file of the workload"),
    ] {
        let arguments: Vec<_> = line.split(' ').collect();
        let ended = rackloom(&arguments).in_folder(&folder).finish();
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{line}: {}", ended.stderr);
        let what = format!("{option} would overwrite {input}\n");
        assert!(ended.stderr.contains(&what) && ended.stderr.contains("hint:"), "{line}: {}", ended.stderr);
    }
    for (name, text) in kept {
        assert_eq!(std::fs::read_to_string(folder.join(name)).expect("it is there"), text, "{name}");
    }
    for line in ["sim rack.yaml --series new --junit ./new", "experiment incast --svg new --html ./new"] {
        let arguments: Vec<_> = line.split(' ').collect();
        let ended = rackloom(&arguments).in_folder(&folder).finish();
        assert_eq!(ended.code, Some(2), "{line}: {}", ended.stderr);
        assert!(ended.stderr.contains("name one file") && ended.stderr.contains("hint:"), "{}", ended.stderr);
    }
}

/// Standard output has the tables. A file that is named `-` would be a surprise.
#[test]
fn a_file_beside_the_tables_is_not_standard_output() {
    let folder = scratch("dash");
    std::fs::create_dir_all(&folder).expect("it can be made");
    let ring = topology("ring-4.yaml");
    let ring = ring.to_str().expect("a plain path");
    for line in [
        "sim RACK --series -",
        "sim RACK --perfetto -",
        "sim RACK --junit=-",
        "sim RACK --html -",
        "sim RACK --capture -",
        "run RACK --pids -",
        "run RACK --output -",
        "run RACK --checkpoint -",
        "run RACK --log-dir -",
        "campaign RACK --runs 1 --junit -",
        "campaign RACK --runs 1 --resume -",
        "campaign RACK --runs 1 --export -",
        "experiment incast --svg -",
        "sweep RACK --out -",
        "workload generate training --dp 4 -o -",
        "man -",
    ] {
        let arguments: Vec<_> =
            line.split(' ').map(|word| if word == "RACK" { ring } else { word }).collect();
        let ended = rackloom(&arguments).in_folder(&folder).finish();
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{line}: {}", ended.stderr);
        assert!(ended.stderr.contains("standard output has other text\n"), "{line}: {}", ended.stderr);
        assert!(ended.stderr.contains("hint:  name a "), "{line}: {}", ended.stderr);
    }
    let printed = rackloom(&["init", "ring", "-o", "-"]).in_folder(&folder).finish();
    assert_eq!(printed.stdout, rackloom(&["init", "ring"]).finish().stdout, "{}", printed.stderr);
    let left: Vec<_> = std::fs::read_dir(&folder).expect("it is there").collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn injected_losses_are_in_the_link_table_and_settings_replace_those_of_the_file() {
    let ring = topology("ring-4.yaml");
    let ring = ring.to_str().expect("a plain path");
    let ended = rackloom(&["sim", ring, "--set", "link.loss=5%", "--set", "name=set"]).finish();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let line = ended.stdout.lines().find(|line| line.starts_with("n0->n1")).expect("a link");
    assert!(line.contains("injected "), "{line}");
    let ended = rackloom(&["check", ring, "--set", "link.loss=500%"]).finish();
    assert_eq!(ended.code, Some(2), "{}", ended.stdout);
    assert!(ended.stderr.contains("--set link.loss=500%"), "{}", ended.stderr);
    let one = ["--job", "latency", "--sizes", "64KiB", "--repetitions", "2", "--warm-up", "0"];
    let ended = rackloom(&[&["sim", ring][..], &one].concat()).finish();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.contains("65536"), "{}", ended.stdout);
}

#[test]
fn a_figure_that_cannot_be_written_is_refused_before_the_experiment() {
    let ended = rackloom(&["experiment", "size-sweep", "--svg", "/nowhere/sizes.svg"]).finish();
    assert_eq!(ended.code, Some(2), "{}", ended.stdout);
    assert!(ended.stdout.is_empty() && ended.stderr.contains("cannot write"), "{}", ended.stderr);
}

/// The message has both numbers, for the job that will run and not for the job of the file.
#[test]
fn memory_is_compared_with_the_job_that_will_run() {
    let file = rack_file("name: small\nshape: {ring: {nodes: 3}}\ndefaults: {memory: 512KiB}\n");
    let file = file.to_str().expect("a plain path");
    let fits = ["--collective", "all-reduce", "--bytes", "4KiB", "--repetitions", "1"];
    let ended = rackloom(&[&["sim", file][..], &fits].concat()).finish();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    for (options, parts) in [
        (&[][..], ["litmus takes 1MiB", "512KiB"]),
        (&["--collective", "all-reduce", "--bytes", "300KiB"], ["collective takes 600KiB", "512KiB"]),
        (&["--job", "latency", "--bytes", "1MiB"], ["latency takes 2MiB", "512KiB"]),
        (&["--job", "bandwidth"], ["bandwidth takes 2MiB", "512KiB"]),
    ] {
        for command in ["run", "sim"] {
            let ended = refused(&[&[command, file][..], options].concat());
            assert!(parts.iter().all(|part| ended.stderr.contains(part)), "{command}: {}", ended.stderr);
        }
    }
}

/// Expectations decide: an elapsed time that cannot be met fails the run, and nothing else changes.
#[test]
fn expectations_of_the_file_decide_the_verdict() {
    let verdict = |expect: &str| {
        let file =
            rack_file(&format!("name: e\nshape: {{ring: {{nodes: 3}}}}\njob: none\nexpect: {expect}\n"));
        let ended = support::sim(&file).finish();
        (ended.code, ended.stdout)
    };
    assert_eq!(verdict("{elapsed_max: 10s}").0, Some(0));
    let (code, printed) = verdict("{elapsed_max: 1ns, retransmitted_min: 1}");
    assert_eq!(code, Some(1));
    for part in ["expected to take at most 1 ns", "expected at least 1 retransmissions"] {
        assert!(printed.contains(part), "{printed}");
    }
    assert_eq!(verdict("{verdict: fail}").0, Some(1), "the job passed");
}
