//! Several algorithms of a collective in one run: the order of rows, consistent times, the share of the link rate, and refusals.

mod support;

use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use support::{Ended, rack_file, rackloom, run, scratch, sim, within};

const TIMEOUT: Duration = Duration::from_secs(60);
const LINK_BITS_PER_S: f64 = 10e9;
const NAMES: [&str; 3] = ["ring", "two-shot", "halving-doubling"];

/// Returns a rack of four nodes in a full mesh; `more` are further lines of the rack file.
fn mesh(more: &str) -> std::path::PathBuf {
    rack_file(&format!("name: several\nshape: {{full-mesh: {{nodes: 4}}}}\n{more}\n"))
}

fn rated() -> std::path::PathBuf {
    mesh("link: {rate: 10Gbit/s}")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

fn rows(report: &Value) -> &[Value] {
    report["sweep"].as_array().expect("rows")
}

fn number(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap_or_else(|| panic!("{key} of {row}"))
}

/// Returns algorithm and size of each row.
fn order(report: &Value) -> Vec<(String, u64)> {
    let of = |row: &Value| {
        let name = row["algorithm"].as_str().expect("a name").to_owned();
        (name, row["size_bytes"].as_u64().expect("a size"))
    };
    rows(report).iter().map(of).collect()
}

/// Returns every named algorithm at each size, in the order of the names.
fn expected(names: &[&str], sizes: &[u64]) -> Vec<(String, u64)> {
    let of_size = |size: &u64| names.iter().map(|name| ((*name).to_owned(), *size)).collect::<Vec<_>>();
    sizes.iter().flat_map(of_size).collect()
}

fn refused(ended: &Ended, parts: &[&str]) {
    assert_eq!(ended.code, Some(2), "{}\n{}", ended.stdout, ended.stderr);
    for part in parts {
        assert!(ended.stderr.contains(part), "{part} is missing: {}", ended.stderr);
    }
}

#[test]
fn each_algorithm_has_a_row_per_size_with_times_and_the_share_of_the_link_rate() {
    let file = rated();
    for rack in [run(&file), sim(&file)] {
        let list = NAMES.join(",");
        let options = ["--collective", "all-reduce", "--algorithm", &list, "--sizes", "4KiB..64KiB*16"];
        let ended = rack.with(&options).with(&["--repetitions", "4", "--warm-up", "1"]).finish();
        let report = ended.passed();
        assert_eq!(order(&report), expected(&NAMES, &[4096, 65_536]));
        assert_eq!(report["meta"]["options"]["algorithm"], list.as_str());
        for row in rows(&report) {
            assert_eq!((&row["wrong"], &row["repetitions"]), (&0.into(), &4.into()), "{row}");
            let [min, p50, p99, mean] =
                ["time_min_us", "time_p50_us", "time_p99_us", "time_us"].map(|key| number(row, key));
            assert!(0.0 < min && min <= p50 && p50 <= p99, "{row}");
            assert!((min..=p99).contains(&mean), "p99 of 4 runs is the longest: {row}");
            // An all-reduce of 4 ranks: 2 * 3 / 4 of the size over each link.
            let bits_per_s = number(row, "size_bytes") * 1.5 * 8.0 / (mean * 1e-6);
            let share = bits_per_s / LINK_BITS_PER_S;
            assert!((number(row, "of_link") / share - 1.0).abs() < 1e-6, "{share}: {row}");
        }
        for heading in ["min (us)", "p50 (us)", "p99 (us)", "of link"] {
            assert!(ended.stdout.contains(heading), "{heading} is missing:\n{}", ended.stdout);
        }
    }
}

/// A ring sends on one link at a time, so it can use no more than one link carries.
#[test]
fn a_ring_of_large_arrays_uses_most_of_a_link_and_no_more() {
    let options = ["--collective", "all-reduce", "--algorithm", "ring,bidirectional-ring", "--bytes", "1MiB"];
    let ended = sim(&rated()).with(&options).with(&["--repetitions", "1", "--warm-up", "0"]).finish();
    let report = ended.passed();
    let [ring, both] = [0, 1].map(|index| number(&rows(&report)[index], "of_link"));
    assert!((0.5..1.0).contains(&ring), "{ring}");
    assert!(both > ring, "two rings use links in both directions: {both}");
}

#[test]
fn without_a_rate_of_every_link_there_is_no_share() {
    for file in [mesh(""), mesh("links: {n0--n1: {rate: 10Gbit/s}}")] {
        let options = ["--collective", "all-reduce", "--algorithm", "one-shot,ring", "--bytes", "4KiB"];
        let ended = sim(&file).with(&options).with(&["--repetitions", "1"]).finish();
        let report = ended.passed();
        assert!(rows(&report).iter().all(|row| row["of_link"].is_null()), "{}", report["sweep"]);
        let line = ended.stdout.lines().find(|line| line.starts_with("all-reduce")).expect("a row");
        assert_eq!(line.split_whitespace().filter(|cell| *cell == "-").count(), 1, "{line}");
    }
}

#[test]
fn a_rack_file_names_several_algorithms_as_a_list() {
    let list = "algorithm: [two-shot, ring-pipeline], segments: 4";
    let names = ["direct", "ring"];
    let gather = "collective: all-gather, algorithm: [direct, ring]";
    let carried = "bytes: 4KiB, repetitions: 1, warm_up: 0";
    let file = mesh(&format!("job: {{collective: {{{gather}, {carried}}}}}"));
    for rack in [run(&file), sim(&file)] {
        assert_eq!(order(&rack.finish().passed()), expected(&names, &[4096]));
    }
    // Segments are allowed in a list with the algorithm that uses them. This one cannot do an all-reduce.
    let file = mesh(&format!("job: {{collective: {{{list}, {carried}}}}}"));
    refused(&rackloom(&["check", text(&file)]).finish(), &["ring-pipeline:4 cannot do all-reduce", "hint:"]);
}

#[test]
fn a_list_that_cannot_be_measured_is_refused_by_check_run_and_sim() {
    for (settings, parts) in [
        ("algorithm: [ring, pairwise]", ["pairwise cannot do all-reduce", "hint:"]),
        ("algorithm: [ring, two-shot, ring]", ["algorithm ring is listed twice", "name each algorithm once"]),
        ("algorithm: [auto, ring]", ["algorithm auto stands beside others", "hint:"]),
        ("algorithm: []", ["the list of algorithms is empty", "hint:"]),
        ("algorithm: [ring, two-shoot]", ["`two-shoot` is not a choice", "did you mean `two-shot`?"]),
        ("algorithm: [ring, two-shot], on_loss: shrink", ["several algorithms", "name one algorithm"]),
    ] {
        let file = mesh(&format!("job: {{collective: {{{settings}}}}}"));
        for command in ["check", "run", "sim"] {
            refused(&rackloom(&[command, text(&file)]).finish(), &parts);
        }
    }
    let file = mesh("");
    let options = |list| ["sim", text(&file), "--collective", "all-reduce", "--algorithm", list];
    refused(&rackloom(&options("ring,pairwise")).finish(), &["pairwise cannot do all-reduce", "hint:"]);
    refused(&rackloom(&options("ring,ring")).finish(), &["algorithm ring is listed twice", "hint:"]);
    refused(&rackloom(&options("ring,")).finish(), &["--algorithm"]);
    let shrinking = [&options("ring,two-shot")[..], &["--on-loss", "shrink"]].concat();
    refused(&rackloom(&shrinking).finish(), &["several algorithms", "hint:"]);
}

#[test]
fn the_results_of_several_algorithms_are_not_written_over_each_other() {
    let output = scratch("output");
    let options = ["--collective", "all-reduce", "--algorithm", "ring,two-shot", "--output", text(&output)];
    let ended = sim(&mesh("")).with(&options).finish();
    refused(&ended, &["--output stores the results of one algorithm", "ring,two-shot", "hint:"]);
}

/// The second snapshot is between two runs of the second algorithm.
#[test]
fn a_resumed_job_has_the_rows_of_all_its_algorithms() {
    let (file, snapshots) = (rated(), scratch("snapshots"));
    let job = || {
        run(&file)
            .with(&["--collective", "all-reduce", "--algorithm", "ring,two-shot", "--bytes", "4KiB"])
            .with(&["--repetitions", "4", "--warm-up", "0", "--seed", "5"])
    };
    job().with(&["--checkpoint", text(&snapshots), "--every", "3"]).finish().passed();
    let ended = job().with(&["--restore", text(&snapshots)]).finish();
    let report = ended.passed();
    assert!(ended.stdout.contains("taken up after 6 runs"), "{}", ended.stdout);
    assert_eq!(order(&report), expected(&["ring", "two-shot"], &[4096]));
    assert!(rows(&report).iter().all(|row| row["wrong"] == 0), "{}", report["sweep"]);
}

#[test]
fn the_report_of_a_standing_rack_has_the_rows_as_well() {
    let session = scratch("session");
    std::fs::create_dir(&session).expect("the scratch folder can be written");
    let printed = |arguments: &[&str]| {
        let ended = rackloom(arguments).in_run_directory(&session).finish();
        assert_eq!(ended.code, Some(0), "{arguments:?}\n{}\n{}", ended.stdout, ended.stderr);
        ended.stdout
    };
    let file = rated();
    let options = ["--collective", "all-reduce", "--algorithm", "one-shot,ring", "--bytes", "4KiB"];
    printed(&[&["up", text(&file)][..], &options].concat());
    let verdict = || {
        let status: Value = serde_json::from_str(&printed(&["status", "--json"])).expect("JSON");
        status["racks"][0]["verdict"].clone()
    };
    within(TIMEOUT, "a pass of the job", || (verdict() == "pass").then_some(()));
    let json = scratch("down.json");
    let printed = printed(&["down", "several", "--json", text(&json)]);
    let report = std::fs::read_to_string(json).expect("a report");
    let report: Value = serde_json::from_str(&report).expect("JSON");
    assert_eq!(order(&report), expected(&["one-shot", "ring"], &[4096]));
    assert!(rows(&report).iter().all(|row| row["of_link"].is_number()), "{}", report["sweep"]);
    assert!(printed.contains("of link"), "{printed}");
}

#[test]
fn a_hierarchical_collective_is_right_on_a_rack_of_servers() {
    let file = support::topology("four-servers-of-two.yaml");
    for rack in [run, sim] {
        for collective in ["all-reduce", "reduce-scatter", "all-gather", "broadcast"] {
            let options = ["--job", "collective", "--collective", collective, "--algorithm", "hierarchical"];
            let report =
                rack(&file).with(&options).with(&["--bytes", "7001", "--type", "u8"]).finish().passed();
            assert_eq!(order(&report), expected(&["hierarchical"], &[7001]), "{collective}");
            assert_eq!(rows(&report)[0]["wrong"], 0, "{collective}");
        }
    }
}

/// Two servers of every other rank: four lanes share the array, so each link between servers carries a quarter of what a flat
/// all-reduce sends over it.
#[test]
fn a_hierarchical_all_reduce_of_a_large_array_is_faster_than_a_flat_one_and_chosen() {
    let file = rack_file(
        "name: servers\nshape: {star: {nodes: 8}}\nlink: {rate: 10Gbit/s}\n\
         servers: {left: [n0, n2, n4, n6], right: [n1, n3, n5, n7]}\n",
    );
    let all_reduce = ["--collective", "all-reduce", "--bytes", "1MiB", "--repetitions", "1"];
    let report = |algorithm| sim(&file).with(&all_reduce).with(&["--algorithm", algorithm]).finish().passed();
    let both = report("two-shot,hierarchical");
    let [flat, hierarchical] = [0, 1].map(|row: usize| number(&rows(&both)[row], "time_us"));
    assert!(1.5 * hierarchical < flat, "{hierarchical} us, {flat} us");
    assert_eq!(order(&report("auto")), expected(&["hierarchical"], &[1 << 20]));
}
