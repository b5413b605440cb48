//! Commands of the README and of the pages run, and the output that the README shows is that of a run.
//!
//! Values that differ from run to run are masked before the comparison: times, rates, process ids, and how many frames carried the
//! same operations. Counts of operations, sizes of memory and names must be those of a run.

mod support;

use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use support::{rackloom, root, scratch};

/// Pages whose commands run one after the other, in a folder with the rack files that the page shows.
const PAGES: [&str; 15] = [
    "docs/index.md",
    "docs/tutorial.md",
    "docs/how-to/compare-topologies.md",
    "docs/how-to/sweeps.md",
    "docs/how-to/inject-faults.md",
    "docs/how-to/standing-rack.md",
    "docs/how-to/shell.md",
    "docs/how-to/read-frames.md",
    "docs/how-to/draw-a-rack.md",
    "docs/explanation/collectives.md",
    "docs/cli.md",
    "docs/fault-scripts.md",
    "docs/topology-file.md",
    "docs/capture.md",
    "docs/experiments.md",
];

/// Commands of [`PAGES`] that are not run, each with the reason.
const SKIPPED: [(&str, &str); 19] = [
    (
        "run topologies/star-8.yaml --job collective --collective all-reduce --op sum --input arrays --output sums",
        "it needs arrays of the reader; tests/collectives.rs has its own",
    ),
    (
        "run topologies/ring-4.yaml --collective all-reduce --repetitions 1000 --checkpoint saved --every 50",
        "1000 repetitions of each size take minutes without optimisation; tests/checkpoint.rs does fewer",
    ),
    (
        "run topologies/ring-4.yaml --collective all-reduce --repetitions 1000 --restore saved --output sums",
        "it needs the snapshots of the command before",
    ),
    ("inject link n0--n1 --loss 1e-3 --for 20ms", NO_RACK),
    ("inject link 'plane 1' --down --for 2s", NO_RACK),
    ("inject link n2:n3 --loss 100% --kinds ack --for 50ms", NO_RACK),
    ("inject node n3 --pause 60ms", NO_RACK),
    ("inject partition n0 n1 --for 300ms", NO_RACK),
    ("inject script scripts/faults/flapping-cable.yaml", NO_RACK),
    ("run topologies/two-hosts.yaml --host A", TWO_HOSTS),
    ("run topologies/two-hosts.yaml --host B", TWO_HOSTS),
    ("experiment loss-sweep --vary link.llr=on,off --svg losses.svg", SLOW_EXPERIMENT),
    ("experiment all --svg figures", SLOW_EXPERIMENT),
    ("calibrate --gpu cuda:0", "it needs a GPU"),
    (
        "campaign topologies/star-8.yaml --collective all-reduce --runs 1000",
        "a campaign of 1000 runs takes minutes without optimisation; the page shows one of 20 as well",
    ),
    (
        "sweep topologies/star-4.yaml --collective all-reduce --set planes=1,2 --seeds 1..50 --out planes --engine slurm --jobs 20",
        "it needs Slurm; tests/sweep.rs has a part of one",
    ),
    ("sweep --collect --out planes", "it needs the runs of the command before"),
    (
        "recommend topologies/star-8.yaml --collective all-reduce --bytes 1GiB --nodes 8..64 --planes 1..4 --target busbw=0.8",
        "it takes minutes without optimisation; tests/recommend.rs does fewer",
    ),
    ("schema > rack.schema.json", "a shell redirects its output; tests/cli.rs runs `schema`"),
];
const NO_RACK: &str = "the page shows no rack that is up with these links; tests/standing.rs has one";
const TWO_HOSTS: &str = "it needs two machines; tests/hosts.rs runs both supervisors";
const SLOW_EXPERIMENT: &str =
    "it takes minutes without optimisation; crates/experiments runs the set in a test";

/// Returns the reason for which a command is not run, or `None`.
fn skipped(arguments: &[String]) -> Option<&'static str> {
    let command = arguments.join(" ");
    SKIPPED.iter().find(|(shown, _)| *shown == command).map(|(_, reason)| *reason)
}

fn readme() -> String {
    std::fs::read_to_string(root().join("README.md")).expect("README.md is there")
}

/// Columns that differ from run to run, by the first column of a table's heading.
fn varying_columns(heading: &str) -> &'static [&'static str] {
    match heading {
        "member" => &["process"],
        // Compare-swap loops retry as often as needed. Flushes and waits may find nothing left to do.
        "operation" => &["p50", "p99", "max"],
        "link" => &["frames", "on the wire", "retransmitted", "dropped"],
        _ => &[],
    }
}

/// Returns the reproducible part of printed output. Columns are split at two blanks, as the tables are set. The table of
/// events is left out: a busy machine makes a heartbeat late, and the report contains that.
fn constant_part(output: &str) -> Vec<String> {
    let mut headings: Vec<String> = Vec::new();
    let mut lines = Vec::new();
    let tables = output.split("\n\n").filter(|table| !table.trim_start().starts_with("at  "));
    for line in tables.flat_map(str::lines) {
        let cells: Vec<String> =
            line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect();
        if cells.first().is_some_and(|cell| matches!(cell.as_str(), "member" | "operation" | "link")) {
            headings = cells.clone();
        }
        let Some(first) = cells.first().cloned() else { continue };
        let varies = headings.first().map_or(&[][..], |heading| varying_columns(heading));
        let is_row = cells != headings && !headings.is_empty() && cells.len() > 1;
        if is_row {
            let kept = headings.iter().zip(&cells).filter(|(heading, _)| !varies.contains(&heading.as_str()));
            let retried = first.starts_with("compare-swap");
            let kept: Vec<_> = kept.map(|(_, cell)| cell.clone()).collect();
            lines.push(if retried { first } else { kept.join(" | ") });
        } else {
            let is_number = |word: &str| word.contains(|character: char| character.is_ascii_digit());
            let units = ["ns", "us", "ms", "s"];
            let words = line.split_whitespace().filter(|word| !is_number(word) && !units.contains(word));
            lines.push(words.collect::<Vec<_>>().join(" "));
        }
    }
    lines
}

/// Returns the first block of shown output.
fn shown_output(readme: &str) -> &str {
    let (_, after) = readme.split_once("```text\n").expect("README.md shows output");
    after.split_once("```").expect("the block ends").0
}

/// Returns the arguments of commands in indented lines, without the comments.
fn commands(readme: &str) -> Vec<Vec<String>> {
    let shown = readme.lines().filter_map(|line| {
        let line = line.strip_prefix("    ")?.split('#').next()?.trim();
        line.strip_prefix("cargo run --release -- ").or_else(|| line.strip_prefix("rackloom "))
    });
    shown.map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
}

/// Folder for the commands of one page. Racks that are still up at its end are taken down.
struct Folder(PathBuf);

impl Folder {
    /// Makes the folder with links to the files of the project and with the files that `page` shows. Such a file is a block of YAML whose
    /// first line is a comment with its name.
    fn of(page: &str) -> Self {
        let folder = Self(scratch("page"));
        std::fs::create_dir(&folder.0).expect("the scratch folder can be written");
        std::fs::DirBuilder::new().mode(0o700).create(folder.session()).expect("a session directory");
        for name in ["topologies", "scripts"] {
            std::os::unix::fs::symlink(root().join(name), folder.0.join(name)).expect("a link");
        }
        for block in page.split("```yaml\n# ").skip(1) {
            let (name, text) = block.split_once('\n').expect("a block has lines");
            let (text, _) = text.split_once("```").expect("the block ends");
            std::fs::write(folder.0.join(name), text).expect("the folder can be written");
        }
        folder
    }

    /// Returns the folder of the run directories of standing racks.
    fn session(&self) -> PathBuf {
        self.0.join("session")
    }

    fn run(&self, arguments: &[String]) -> support::Ended {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        rackloom(&arguments).in_folder(&self.0).in_run_directory(&self.session()).finish()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        self.run(&["down".to_owned(), "--all".to_owned()]);
        drop(std::fs::remove_dir_all(&self.0));
    }
}

#[test]
fn every_command_of_the_pages_succeeds() {
    for name in PAGES {
        let page =
            std::fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        let commands = commands(&page);
        assert!(!commands.is_empty(), "{name} shows no command");
        let folder = Folder::of(&page);
        for arguments in commands.iter().filter(|arguments| skipped(arguments).is_none()) {
            let ended = folder.run(arguments);
            assert_eq!(ended.code, Some(0), "{name}: {arguments:?}\n{}\n{}", ended.stdout, ended.stderr);
        }
    }
}

#[test]
fn each_skipped_command_is_shown_on_a_page() {
    let texts = PAGES.map(|name| std::fs::read_to_string(root().join(name)).expect("the page can be read"));
    let shown: Vec<_> = texts.iter().flat_map(|text| commands(text)).map(|words| words.join(" ")).collect();
    let stale: Vec<_> =
        SKIPPED.iter().filter(|(command, _)| !shown.iter().any(|one| one == command)).collect();
    assert!(stale.is_empty(), "no page shows them: {stale:?}");
}

#[test]
fn the_output_in_the_readme_is_that_of_a_run() {
    let readme = readme();
    let first = commands(&readme).into_iter().next().expect("README.md shows a command");
    let ended = rackloom(&first.iter().map(String::as_str).collect::<Vec<_>>()).finish();
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
    assert_eq!(constant_part(shown_output(&readme)), constant_part(&ended.stdout));
}

#[test]
fn every_command_shown_succeeds() {
    let page = readme();
    let commands = commands(&page);
    assert!(commands.len() >= 4, "only {} commands were found", commands.len());
    // Commands write below the current folder, so that two users of one machine share no files.
    let folder = Folder::of(&page);
    for arguments in &commands[1..] {
        let ended = folder.run(arguments);
        assert_eq!(ended.code, Some(0), "{arguments:?}\n{}\n{}", ended.stdout, ended.stderr);
    }
}
