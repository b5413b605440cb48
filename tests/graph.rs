//! `rackloom graph`: pictures of rack files, with and without the report of a run.

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use support::{Ended, rack_file, rackloom, root, scratch, sim, topology};

fn text(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

fn graph(file: &Path, arguments: &[&str]) -> Ended {
    rackloom(&["graph", text(file)]).with(arguments).finish()
}

/// Returns the picture that the command prints.
fn drawn(file: &Path, arguments: &[&str]) -> String {
    let ended = graph(file, arguments);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{arguments:?}");
    ended.stdout
}

fn topologies() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root().join("topologies")).expect("the folder is there");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == "yaml"));
    files.sort();
    assert!(files.len() > 15, "files are missing: {}", files.len());
    files
}

/// Returns the names and links of a text for Graphviz. Fails if a line is none that this grammar has:
/// `graph`, attributes, `ID [..];`, `ID -- ID [..];`, `subgraph ID { .. }`.
fn parsed(dot: &str) -> (Vec<String>, Vec<(String, String)>) {
    let mut lines = dot.lines();
    assert!(lines.next().is_some_and(|line| line.starts_with("graph \"") && line.ends_with("\" {")), "{dot}");
    let (mut names, mut links) = (Vec::new(), Vec::new());
    let mut is_closed = false;
    for line in lines {
        assert!(!is_closed, "text after the end: {line}");
        let line = line.trim();
        let body = line.strip_suffix(';').unwrap_or(line);
        if line == "}" {
            is_closed = true;
        } else if body.starts_with("subgraph cluster_") {
            assert!(body.contains("{ label=\"") && body.ends_with('}'), "{line}");
        } else if body.starts_with("layout=") || body.starts_with("label=\"") || body.starts_with("node [") {
            assert!(line.ends_with(';'), "{line}");
        } else {
            let (ends, attributes) = body.split_once(" [").unwrap_or_else(|| panic!("no attributes: {line}"));
            assert!(attributes.ends_with(']') && line.ends_with(';'), "{line}");
            match ends.split_once(" -- ") {
                Some((one, other)) => links.push((one.to_owned(), other.to_owned())),
                None => names.push(ends.to_owned()),
            }
        }
    }
    assert!(is_closed, "no end: {dot}");
    (names, links)
}

#[test]
fn every_shipped_rack_has_a_picture_in_each_format() {
    for file in topologies() {
        let plan = rackloom(&["check", text(&file)]).finish();
        assert_eq!(plan.code, Some(0), "{}", plan.stderr);
        let svg = drawn(&file, &[]);
        assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"), "{}", file.display());
        assert_eq!(svg.matches("<svg ").count(), 1, "{}", file.display());
        let (names, links) = parsed(&drawn(&file, &["--format", "dot"]));
        let mermaid = drawn(&file, &["--format", "mermaid"]);
        assert!(mermaid.contains("flowchart BT"), "{mermaid}");
        // Few enough for Mermaid to have all of them.
        assert!(links.len() <= 500, "{}", file.display());
        let count = mermaid.lines().filter(|line| line.contains(" --- ")).count();
        assert_eq!(count, links.len(), "{}", file.display());
        for (one, other) in &links {
            assert!(names.contains(one) && names.contains(other), "{one} -- {other}");
        }
        // The legend has one of each kind.
        let count = |kind: &str| svg.matches(&format!("<rect class=\"{kind}\"")).count().saturating_sub(1);
        assert_eq!(count("node") + count("switch"), names.len(), "{}", file.display());
        // A text beside the pointer for each link.
        assert_eq!(svg.matches("<path class=\"link").count(), links.len(), "{}", file.display());
        graphviz_reads(&file, names.len());
    }
}

/// Lets Graphviz draw the rack, if it is installed.
fn graphviz_reads(file: &Path, members: usize) {
    let out = scratch("rack.dot");
    assert_eq!(drawn(file, &["--format", "dot", "-o", text(&out)]), "");
    let Ok(output) = Command::new("dot").arg("-Tplain").arg(&out).output() else { return };
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}: {}", file.display(), String::from_utf8_lossy(&output.stderr));
    assert_eq!(
        printed.lines().filter(|line| line.starts_with("node ")).count(),
        members,
        "{}",
        file.display()
    );
}

/// Runs a rack in virtual time; returns the path of its report.
fn report_of(file: &Path, arguments: &[&str]) -> PathBuf {
    let path = scratch("graph-report.json");
    let ended = sim(file).with(arguments).finish();
    let report = ended.report();
    std::fs::write(&path, report.to_string()).expect("the scratch folder can be written");
    path
}

/// Returns the percentages that the picture names for links.
fn uses(svg: &str) -> Vec<f64> {
    let titles = svg.lines().filter(|line| line.contains("<path class=\"link")).filter_map(|line| {
        line.split_once("<title>")?.1.split_once(" %")?.0.rsplit_once(", ")?.1.parse().ok()
    });
    titles.collect()
}

#[test]
fn a_report_colours_links_by_their_use() {
    let ring = topology("ring-4.yaml");
    let text_of = std::fs::read_to_string(&ring).expect("the file");
    let path = report_of(
        &ring,
        &[
            "--collective",
            "all-reduce",
            "--algorithm",
            "ring",
            "--bytes",
            "1MiB",
            "--set",
            "link.rate=10Gbit/s",
        ],
    );
    let svg = drawn(&ring, &["--report", text(&path), "--set", "link.rate=10Gbit/s"]);
    let report: Value =
        serde_json::from_str(&std::fs::read_to_string(&path).expect("it is there")).expect("JSON");
    let used = uses(&svg);
    assert_eq!(used.len(), report["links"].as_array().expect("links").len() / 2, "{text_of}");
    // From the report alone: bytes that the rate was charged for, over rate times duration.
    let elapsed = report["elapsed_ns"].as_f64().expect("a number");
    let share =
        |direction: &Value| 100.0 * direction["accounted_bytes"].as_f64().expect("bytes") / (1.25 * elapsed);
    for (pair, used) in report["links"].as_array().expect("links").chunks(2).zip(used) {
        let expected = share(&pair[0]).max(share(&pair[1]));
        assert!((expected - used).abs() <= expected * 0.01, "{expected} {used}");
        assert!(used > 1.0, "a link without use");
    }
    assert!(svg.contains("use of the rate") && svg.contains("verdict pass"));
    assert!(!svg.contains("link with faults") && !svg.contains("link that is down"));
    // Without a rate for all, the busiest link is the measure.
    let plain = drawn(
        &ring,
        &[
            "--report",
            text(&report_of(&ring, &["--set", "link.rate=unlimited"])),
            "--set",
            "link.rate=unlimited",
        ],
    );
    assert!(plain.contains("of those of the busiest link") && uses(&plain).contains(&100.0), "{plain}");
}

#[test]
fn faults_of_a_report_are_marked() {
    let ring = topology("ring-4.yaml");
    let script = scratch("faults.yaml");
    let cut = "name: cut\nevents:\n  - {what: down, where: n0--n1, at: 20us}\n";
    std::fs::write(&script, cut).expect("the scratch folder can be written");
    let path =
        report_of(&ring, &["--collective", "all-reduce", "--repetitions", "50", "--faults", text(&script)]);
    let svg = drawn(&ring, &["--report", text(&path)]);
    let failed: Vec<&str> = svg
        .lines()
        .filter(|line| line.contains("<path class=\"link") && line.contains(" failed\""))
        .collect();
    assert!(failed.iter().any(|line| line.contains("n0--n1")), "{svg}");
    assert!(!failed.iter().any(|line| line.contains("n2--n3")), "{svg}");
    assert!(svg.contains("link that is down"));
    let dot = drawn(&ring, &["--report", text(&path), "--format", "dot"]);
    // Duplicates on the other links follow from the cut, and are no faults of theirs.
    assert_eq!((dot.matches("style=dotted").count(), dot.matches("style=dashed").count()), (1, 0), "{dot}");
    let lossy = report_of(&ring, &["--set", "link.loss=5%", "--collective", "all-reduce"]);
    let dot = drawn(&ring, &["--report", text(&lossy), "--set", "link.loss=5%", "--format", "dot"]);
    assert_eq!((dot.matches("style=dotted").count(), dot.matches("style=dashed").count()), (0, 4), "{dot}");
}

/// Fails unless the command refuses with each of these texts.
fn refused(file: &Path, report: &Path, parts: &[&str]) {
    let ended = graph(file, &["--report", text(report)]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{}", ended.stderr);
    for part in parts.iter().chain(&["hint", text(report)]) {
        assert!(ended.stderr.contains(part), "{part} in {}", ended.stderr);
    }
}

#[test]
fn reports_that_do_not_fit_are_refused_with_what_and_where() {
    let ring = topology("ring-4.yaml");
    let path = report_of(&ring, &[]);
    let report = std::fs::read_to_string(&path).expect("it is there");
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut value: Value = serde_json::from_str(&report).expect("JSON");
        change(&mut value);
        let path = scratch("changed.json");
        std::fs::write(&path, value.to_string()).expect("the scratch folder can be written");
        path
    };
    let written = |text: &str| {
        let path = scratch("written.json");
        std::fs::write(&path, text).expect("the scratch folder can be written");
        path
    };
    // The unchanged one is taken.
    assert!(drawn(&ring, &["--report", text(&changed(&|_| {}))]).contains("verdict pass"));
    refused(&ring, Path::new("no-such-report.json"), &["cannot read the report"]);
    refused(&ring, &written(&report[..report.len() / 2]), &["truncated", "line 1, column"]);
    refused(&ring, &written("name: r\n"), &["no JSON", "line 1, column"]);
    refused(&ring, &written("[]"), &["no report of a run"]);
    refused(
        &ring,
        &written("{\"hold\": true, \"experiments\": []}"),
        &["no report of a run", "verdict", "links"],
    );
    refused(
        &ring,
        &changed(&|report| report["manifest"]["version"] = "0.1.7".into()),
        &["manifest.version", "0.1.7"],
    );
    refused(
        &ring,
        &changed(&|report| drop(report["manifest"].as_object_mut().map(|all| all.remove("version")))),
        &["manifest.version"],
    );
    refused(
        &ring,
        &changed(&|report| report["links"][0]["frames"] = "many".into()),
        &["another form", "many", "line 1 column"],
    );
    refused(&topology("ring-8.yaml"), &path, &["another rack", "meta.rack", "ring-4", "ring-8"]);
    // The name alone is no proof.
    let same_name = rack_file("name: ring-4\nshape: {ring: {nodes: 5}}\n");
    refused(&same_name, &path, &["another rack", "`nodes` lacks `n4`"]);
    let same_members = rack_file("name: ring-4\nshape: {full-mesh: {nodes: 4}}\n");
    refused(&same_members, &path, &["another rack", "`links` lacks `n0->n2`"]);
}

#[test]
fn a_rack_of_1024_members_has_a_small_picture() {
    let racks = [
        ("star: {nodes: 1020, planes: 4}", 1020, 4),
        ("torus: {x: 16, y: 8, z: 8}", 1024, 0),
        ("full-mesh: {nodes: 256}", 256, 0),
        ("hypercube: {dimensions: 10}", 1024, 0),
    ];
    for (shape, nodes, switches) in racks {
        let channels = if shape.starts_with("torus") { "channels: {rise: dateline}\n" } else { "" };
        let file = rack_file(&format!("name: large\nshape: {{{shape}}}\n{channels}"));
        let svg = drawn(&file, &[]);
        assert!(svg.len() < 2_000_000, "{shape}: {} bytes", svg.len());
        // The legend has one of each kind.
        assert_eq!(svg.matches("<rect class=\"node\"").count(), nodes + 1, "{shape}");
        assert_eq!(
            svg.matches("<rect class=\"switch\"").count(),
            if switches > 0 { switches + 1 } else { 0 },
            "{shape}"
        );
        assert_eq!(parsed(&drawn(&file, &["--format", "dot"])).0.len(), nodes + switches, "{shape}");
    }
}

#[test]
fn a_picture_is_written_to_a_file_or_refused() {
    let ring = topology("ring-4.yaml");
    let path = scratch("ring.svg");
    assert_eq!(drawn(&ring, &["-o", text(&path)]), "");
    assert_eq!(
        std::fs::read_to_string(&path).expect("it is there").trim_end(),
        drawn(&ring, &["-o", "-"]).trim_end()
    );
    let ended = graph(&ring, &["-o", "no-such-folder/ring.svg"]);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("no-such-folder/ring.svg"), "{}", ended.stderr);
}
