//! Examples of the library, run as a user runs them: as processes, with their options, also when one of their processes is killed.
//!
//! `cargo test --workspace` builds the examples. Each run has a run directory of its own, in which nothing may be left.

mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use support::session::Session;
use support::{rackloom, within};

/// Longest time of one program, on a busy machine. The programs limit each of their own waits to a minute.
const TIMEOUT: Duration = Duration::from_secs(240);

/// Returns the path of an example, which Cargo puts beside the command.
fn example(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_BIN_EXE_rackloom")).parent().expect("a folder");
    let path = folder.join("examples").join(name);
    assert!(path.exists(), "{} is missing; `cargo build --workspace --examples` makes it", path.display());
    path
}

impl Session {
    /// Runs an example to its end.
    fn run(&self, name: &str, arguments: &[&str]) -> Output {
        let mut command = Command::new(example(name));
        command.args(arguments).env("XDG_RUNTIME_DIR", &self.path).env("TMPDIR", &self.path);
        command.env("RACKLOOM", env!("CARGO_BIN_EXE_rackloom"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let shown = format!("{command:?}");
        let mut child = command.spawn().expect("the example starts");
        // The examples print less than a pipe holds.
        within(TIMEOUT, &shown, || child.try_wait().expect("a child"));
        child.wait_with_output().expect("a child")
    }

    /// Returns the output of an example that ends with 0 and prints no error.
    fn example_passes(&self, name: &str, arguments: &[&str]) -> String {
        let Output { status, stdout, stderr } = self.run(name, arguments);
        let (stdout, stderr) = (text(&stdout), text(&stderr));
        assert!(status.success() && stderr.is_empty(), "{name} {arguments:?}: {status}\n{stdout}\n{stderr}");
        let left = self.left_files();
        assert!(left.is_empty(), "{name} leaves {left:?}");
        stdout
    }

    /// Returns the names of files of examples and of folders of racks.
    fn left_files(&self) -> Vec<String> {
        let names = |folder: PathBuf| {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect::<Vec<_>>()
        };
        let racks = names(self.path.join("rackloom")).into_iter().filter(|name| !name.starts_with('.'));
        let files = names(self.path.clone()).into_iter().filter(|name| name != "rackloom");
        files.chain(racks).collect()
    }

    /// Returns the error of an example that ends with 1.
    fn fails(&self, name: &str, arguments: &[&str]) -> String {
        let Output { status, stdout, stderr } = self.run(name, arguments);
        assert_eq!(status.code(), Some(1), "{name} {arguments:?}\n{}\n{}", text(&stdout), text(&stderr));
        text(&stderr)
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the words of the lines that begin with two numbers, which are the rows of a table.
fn rows(printed: &str) -> Vec<Vec<&str>> {
    let rows = printed.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let is_number = |word: &&str| word.parse::<f64>().is_ok();
    rows.filter(|row| row.len() > 1 && row[..2].iter().all(is_number)).collect()
}

/// Checks the table of a training: step, ranks, loss, loss of one process, and `yes` if all ranks have the bits of the latter. Returns the number of
/// ranks of each step.
fn ranks_of_equal_steps(printed: &str) -> Vec<&str> {
    let rows = rows(printed);
    for (number, row) in rows.iter().enumerate() {
        assert_eq!((row[0], row[4]), (number.to_string().as_str(), "yes"), "{printed}");
        assert_eq!(row[2], row[3], "{printed}");
    }
    let loss = |row: &[&str]| row[2].parse::<f64>().expect("a loss");
    assert!(loss(&rows[rows.len() - 1]) < loss(&rows[0]), "it learns nothing\n{printed}");
    rows.iter().map(|row| row[1]).collect()
}

/// Returns the number of operations of a training that needed no frame.
fn operations_through_memory(printed: &str) -> u64 {
    let line = printed.lines().find(|line| line.contains(" operations through memory of the server; "));
    let line = line.map(|line| line.trim_start_matches("rank 0: "));
    let number = line.and_then(|line| line.split(' ').next()?.parse().ok());
    number.expect("a line with the number of operations")
}

#[test]
fn training_has_the_bits_of_one_process() {
    let session = Session::begin();
    for nodes in ["2", "3", "4"] {
        let printed = session.example_passes("training", &["--nodes", nodes, "--steps", "12"]);
        assert_eq!(ranks_of_equal_steps(&printed), [nodes; 12], "{printed}");
        assert!(operations_through_memory(&printed) > 0, "{printed}");
        let all = format!("{nodes} of {nodes} ranks have the network of one process, to the bit\n");
        assert!(printed.ends_with(&all), "{printed}");
    }
}

/// Ranks that join first request the memory of others before it exists. Calls use it soon after it exists, and not only a second later.
#[test]
fn calls_of_a_group_go_through_memory_of_the_server_from_the_start() {
    let session = Session::begin();
    // Three rows, each with a checked call, 20 calls that are not measured, and 150 that are.
    let calls = 3 * (1 + 20 + 150);
    let arguments = ["--calls", "50", "--takes", "3", "--bytes", "262144"];
    for (more, in_memory) in
        [(&[][..], true), (&["--path", "frames"], false), (&["--device", "fake:7"], true)]
    {
        let printed = session.example_passes("group_times", &[&arguments, more].concat());
        assert!(printed.ends_with("0 wrong elements on all ranks\n"), "{printed}");
        assert_eq!(operations_through_memory(&printed) > calls, in_memory, "{printed}");
    }
    assert!(session.fails("group_times", &["--nodes", "1"]).contains("--nodes is 2 to 16"));
}

/// Steps that sum their buckets after the backward pass have the bits of the others. Frames carry the buckets if links have a delay.
#[test]
fn training_compares_steps_with_and_without_overlap() {
    let session = Session::begin();
    let arguments =
        ["--nodes", "2", "--steps", "12", "--overlap", "compare", "--layers", "3", "--width", "16"];
    for (more, has_delay) in [(&[][..], false), (&["--link-delay-us", "100"], true)] {
        let printed = session.example_passes("training", &[&arguments, more].concat());
        assert_eq!(ranks_of_equal_steps(&printed), ["2"; 12], "{printed}");
        assert_eq!(operations_through_memory(&printed) == 0, has_delay, "{printed}");
        for kind in ["during backward", "after backward"] {
            let line =
                printed.lines().find_map(|line| line.strip_prefix(kind)).expect("a line for each kind");
            let numbers: Vec<u64> =
                line.split_whitespace().map(|word| word.parse().expect("a number")).collect();
            let [steps, median, min, max, _] = numbers[..] else { panic!("{printed}") };
            // The first four steps do not count.
            assert!(steps == 4 && 0 < min && min <= median && median <= max, "{printed}");
            // Each bucket crosses a link in each direction before its step ends.
            assert!(!has_delay || min >= 100, "{printed}");
        }
    }
}

/// The comparison is not trivial: a ring adds in another order than the ranks, and the program says so.
#[test]
fn training_with_another_order_of_addition_ends_with_1() {
    let session = Session::begin();
    let Output { status, stdout, .. } = session.run("training", &["--steps", "12", "--algorithm", "ring"]);
    let printed = text(&stdout);
    assert_eq!(status.code(), Some(1), "{printed}");
    assert!(
        printed.contains("  NO ")
            && printed.ends_with("0 of 4 ranks have the network of one process, to the bit\n"),
        "{printed}"
    );
    let printed = session.example_passes("training", &["--steps", "12", "--algorithm", "one-shot"]);
    assert_eq!(ranks_of_equal_steps(&printed), ["4"; 12], "{printed}");
}

#[test]
fn training_with_gradients_on_a_device_has_the_bits_of_one_process() {
    let printed = Session::begin().example_passes("training", &["--device", "fake:7", "--steps", "6"]);
    assert_eq!(ranks_of_equal_steps(&printed), ["4"; 6], "{printed}");
}

#[test]
fn training_on_a_missing_device_ends_with_one_error() {
    let error = Session::begin().fails("training", &["--device", "cuda:99"]);
    assert!(error.starts_with("error: cannot open the device: ") && error.contains("hint: "), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
}

#[test]
fn training_goes_on_with_the_remaining_ranks_after_a_kill() {
    let session = Session::begin();
    for (kill_at, ranks) in [("0", ["3"; 6]), ("2", ["4", "4", "3", "3", "3", "3"])] {
        let printed = session.example_passes("training", &["--steps", "6", "--kill-at", kill_at]);
        assert!(printed.starts_with(&format!("n1 is killed in step {kill_at}\n")), "{printed}");
        assert_eq!(ranks_of_equal_steps(&printed), ranks, "{printed}");
        assert!(printed.ends_with("3 of 3 ranks have the network of one process, to the bit\n"), "{printed}");
    }
}

#[test]
fn training_goes_on_from_a_checkpoint_after_a_kill() {
    let session = Session::begin();
    for (kill_at, again) in [("3", "0"), ("7", "5")] {
        let arguments = ["--steps", "9", "--kill-at", kill_at, "--recovery", "checkpoint"];
        let printed = session.example_passes("training", &arguments);
        let expected = format!("n1 is killed in step {kill_at}\nall ranks start again from step {again}\n");
        assert!(printed.starts_with(&expected), "{printed}");
        assert_eq!(ranks_of_equal_steps(&printed), ["4"; 9], "{printed}");
        assert!(printed.ends_with("4 of 4 ranks have the network of one process, to the bit\n"), "{printed}");
    }
}

#[test]
fn every_ping_is_received_once() {
    let printed = Session::begin().example_passes("ping_pong", &[]);
    assert!(printed.starts_with("1000 rounds, the ball shows 2000; "), "{printed}");
}

#[test]
fn every_rank_of_a_ring_has_the_sum_of_all() {
    let session = Session::begin();
    for ranks in [2, 3, 4] {
        let printed = session.example_passes("ring_all_reduce", &[&ranks.to_string()]);
        let expected =
            format!("{ranks} ranks, {} numbers each; every rank has the sum of all\n", ranks * 1024);
        assert_eq!(printed, expected);
    }
}

#[test]
fn workers_of_a_parameter_server_find_the_line() {
    let printed = Session::begin().example_passes("parameter_server", &[]);
    let numbers: Vec<f64> = printed.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [_, _, slope, intercept, ..] = numbers[..] else { panic!("{printed}") };
    assert!((slope - 3.0).abs() < 0.05 && (intercept + 2.0).abs() < 0.05, "{printed}");
}

#[test]
fn a_process_takes_two_seats_of_a_rack_and_a_missing_rack_is_an_error() {
    let session = Session::begin();
    let file = support::topology("ring-4.yaml");
    let file = file.to_str().expect("a plain path");
    let on_rack = |arguments: &[&str]| {
        let ended = rackloom(arguments).in_run_directory(&session.path).finish();
        assert_eq!(ended.code, Some(0), "{arguments:?}\n{}\n{}", ended.stdout, ended.stderr);
    };
    on_rack(&["up", file, "--vacant", "n1,n3"]);
    let Output { status, stdout, stderr } = session.run("take_seats", &["ring-4", "n1", "n3"]);
    assert!(status.success(), "{}", text(&stderr));
    assert_eq!(text(&stdout), "n3 has read \"from a process of my own\"; number 10 of the sum is 30\n");
    on_rack(&["down", "ring-4"]);
    let error = session.fails("take_seats", &["ring-4", "n1", "n3"]);
    assert!(error.contains("no rack at"), "{error}");
}

/// Returns the numbers of the line that begins with `items`: items, redone items, lost items and strong ones.
fn items(printed: &str) -> [u64; 4] {
    let line = printed.lines().find(|line| line.starts_with("items ")).expect("a line of counts");
    let numbers = line.split([' ', ',']).filter_map(|word| word.parse().ok());
    numbers.collect::<Vec<_>>().try_into().expect("four numbers")
}

/// Checks the latencies, the limits of the queues and the comparison with one process.
fn check_pipeline(printed: &str) {
    // Without points, latencies in microseconds are whole numbers of tenths.
    let tenths = printed.replace('.', "");
    let latencies = rows(&tenths);
    let [latencies] = &latencies[..] else { panic!("one row of latencies\n{printed}") };
    let latencies: Vec<u64> = latencies.iter().map(|word| word.parse().expect("a latency")).collect();
    assert!(latencies.len() == 4 && latencies[0] > 0 && latencies.is_sorted(), "{printed}");
    for (queue, limit) in [("extraction", 4), ("decision", 8)] {
        let line = printed.lines().find(|line| line.starts_with(queue)).expect("a line for each queue");
        let numbers: Vec<u64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        assert!((1..=limit).contains(&numbers[0]) && numbers[1] == limit, "{printed}");
    }
    assert!(printed.ends_with("\ndecisions equal to those of one process: yes\n"), "{printed}");
}

#[test]
fn pipeline_decides_as_one_process_and_its_queues_are_bounded() {
    let session = Session::begin();
    for decision_us in ["0", "300"] {
        let printed = session.example_passes("pipeline", &["--items", "300", "--decision-us", decision_us]);
        check_pipeline(&printed);
        let [items, redone, lost, strong] = items(&printed);
        assert_eq!((items, redone, lost), (300, 0, 0), "{printed}");
        assert!(strong > 0 && strong < items, "{printed}");
    }
}

#[test]
fn pipeline_extracts_the_items_of_a_killed_process_again() {
    let session = Session::begin();
    for kill_at in ["0", "150", "299"] {
        let printed = session.example_passes("pipeline", &["--items", "300", "--kill-at", kill_at]);
        check_pipeline(&printed);
        let [items, redone, lost, _] = items(&printed);
        assert!((items, lost) == (300, 0) && (1..=4).contains(&redone), "{printed}");
        let killed = printed.split_whitespace().next().expect("the name of a node");
        assert!(printed.starts_with(&format!("{killed} is killed with item {kill_at}\n")), "{printed}");
        assert!(
            printed.contains(&format!("\n{killed} is lost; {redone} items are granted again\n")),
            "{printed}"
        );
    }
}

/// The aggregation and the decision have one process each. The decisions before the checkpoint are not made again.
#[test]
fn pipeline_goes_on_from_a_checkpoint_after_a_kill_of_any_other_stage() {
    let session = Session::begin();
    for (stage, node) in [("aggregation", "n3"), ("decision", "n4")] {
        for kill_at in [0_u64, 1, 137, 299] {
            let kill_at_text = kill_at.to_string();
            let arguments = ["--items", "300", "--kill-at", &kill_at_text, "--kill", stage];
            let printed = session.example_passes("pipeline", &arguments);
            check_pipeline(&printed);
            let [items, _, lost, strong] = items(&printed);
            assert!((items, lost) == (300, 0) && strong > 0, "{printed}");
            let mut lines = printed.lines().filter(|line| !line.contains("are granted again"));
            assert_eq!(
                lines.next(),
                Some(format!("{node} is killed with item {kill_at}").as_str()),
                "{printed}"
            );
            let again =
                lines.next().and_then(|line| line.strip_prefix("all processes start again from item "));
            let again: u64 = again.and_then(|item| item.parse().ok()).expect("the first item");
            // The decision is at most a queue behind the aggregation.
            assert!(again.is_multiple_of(50) && again <= kill_at && kill_at < again + 50 + 8, "{printed}");
        }
    }
}

#[test]
fn options_that_an_example_does_not_have_are_errors() {
    let session = Session::begin();
    for name in ["training", "pipeline"] {
        let error = session.fails(name, &["--speed", "3"]);
        assert!(error.starts_with("error: there is no option --speed; options: --"), "{error}");
        let error = session.fails(name, &["--kill-at", "1000000"]);
        assert!(error.starts_with("error: --kill-at is less than the number of "), "{error}");
        let error = session.fails(name, &["--kill-at"]);
        assert_eq!(error, "error: --kill-at has no value\n");
    }
    let error = session.fails("pipeline", &["--kill", "all"]);
    assert_eq!(error, "error: --kill is extraction, aggregation or decision\n");
}
