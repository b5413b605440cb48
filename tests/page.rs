//! Pages of results: `--html`, and `rackloom report`. A browser opens them in `scripts/page.sh`.

mod support;

use std::path::{Path, PathBuf};

use serde_json::Value;
use support::schema::mistakes;
use support::{Ended, rack_file, rackloom, run, scratch, sim, topology};

fn text(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn written(name: &str, content: &str) -> PathBuf {
    let path = scratch(name);
    std::fs::write(&path, content).expect("the scratch folder can be written");
    path
}

/// Fails unless the page is complete, has one script, and loads nothing.
fn check_page(html: &str) {
    assert!(html.starts_with("<!DOCTYPE html>") && html.trim_end().ends_with("</html>"), "{html}");
    assert_eq!((html.matches("<script").count(), html.matches("</script").count()), (1, 1));
    assert!(html.contains("default-src 'none'") && html.contains("script-src 'sha256-"), "no policy");
    let loaded = html.replace("http://www.w3.org/2000/svg", "");
    for part in ["http://", "https://", "<img", "<iframe", "<object", "<script src", "@import", "url("] {
        assert!(!loaded.contains(part), "{part}");
    }
}

/// Returns the first cells of the rows of the table with this title.
fn rows<'a>(html: &'a str, title: &str) -> Vec<&'a str> {
    let start =
        html.find(&format!("<caption>{title}</caption>")).unwrap_or_else(|| panic!("no table {title}"));
    let table = html[start..].split("</table>").next().expect("a table");
    let cells = table.split("<th scope=\"row\"").skip(1);
    cells
        .map(|cell| cell.split_once('>').expect("a cell").1.split("</th>").next().expect("its text"))
        .collect()
}

fn show(report: &Path, arguments: &[&str]) -> Ended {
    rackloom(&["report", text(report)]).with(arguments).finish()
}

const CUT: &str = "name: cut\nevents:\n  - {what: down, where: n0--n1, at: 20us}\n";

#[test]
fn a_simulation_writes_its_page_and_its_report_gives_the_page_and_the_tables_again() {
    let html = scratch("ring.html");
    let options = ["--collective", "all-reduce", "--algorithm", "ring,two-shot", "--sizes", "4KiB..64KiB"];
    let ended = sim(&topology("ring-4.yaml")).with(&options).with(&["--html", text(&html)]).finish();
    let report = ended.passed();
    let page = read(&html);
    check_page(&page);
    assert!(page.contains("<title>ring-4: collective</title>") && page.contains("verdict: pass"));
    assert!(page.contains(report["trace_hash"].as_str().expect("a hash")));
    // One row for each member, direction, size and algorithm.
    assert_eq!(rows(&page, "Nodes and switches"), ["n0", "n1", "n2", "n3"]);
    assert_eq!(rows(&page, "Links, by direction").len(), report["links"].as_array().expect("links").len());
    assert_eq!(rows(&page, "Times and bandwidths").len(), report["sweep"].as_array().expect("rows").len());
    assert_eq!(rows(&page, "Events").len(), report["events"].as_array().expect("events").len());
    assert!(page.contains("all-reduce two-shot") && page.contains("Latency by kind of operation"));

    let json = written("ring.json", &report.to_string());
    let printed = show(&json, &["--html", "-"]);
    assert_eq!((printed.code, printed.stderr.as_str()), (Some(0), ""));
    assert_eq!(
        printed.stdout.trim_end(),
        page.trim_end(),
        "the page of the report differs from that of the run"
    );
    let again = scratch("again.html");
    assert_eq!(show(&json, &["--html", text(&again)]).stdout, "");
    assert_eq!(read(&again), page);
    let tables = show(&json, &[]);
    assert_eq!((tables.code, tables.stdout.as_str()), (Some(0), ended.stdout.as_str()));
}

/// Digits of a number that is read are those of the number that was written. The times of this run need all of their digits.
#[test]
fn numbers_of_a_report_have_the_digits_of_the_run() {
    let (html, json) = (scratch("run.html"), scratch("run.json"));
    let rack = topology("ring-4.yaml");
    let options = ["sim", text(&rack), "--collective", "all-reduce"];
    rackloom(&options).with(&["--html", text(&html), "--json", text(&json)]).finish();
    let (page, again) = (read(&html), show(&json, &["--html", "-"]).stdout);
    let differing: Vec<_> = page.lines().zip(again.lines()).filter(|(run, report)| run != report).collect();
    assert!(page.contains("data-key") && differing.is_empty(), "{differing:?}");
}

#[test]
fn faults_of_processes_are_on_the_page() {
    let script = written(
        "cut.yaml",
        "name: cut\nevents:\n  - {what: down, where: n0--n1, at: 5ms}\nexpect: {ends: right-or-clean-error}\n",
    );
    let html = scratch("cut.html");
    let ended = run(&topology("ring-4.yaml"))
        .with(&[
            "--collective",
            "all-reduce",
            "--algorithm",
            "ring",
            "--bytes",
            "64KiB",
            "--repetitions",
            "300",
        ])
        .with(&["--faults", text(&script), "--html", text(&html)])
        .finish();
    let report = ended.report();
    let page = read(&html);
    check_page(&page);
    assert_eq!(rows(&page, "Faults of the script").len(), 1);
    assert!(page.contains(&format!("verdict: {}", report["verdict"].as_str().expect("a verdict"))));
    let lane = "<text x=";
    assert!(page.contains("faults injected") && page.contains(lane), "no time line");
    assert!(page.contains("down n0--n1 begins (line 3)"));
    // A process has an identifier, virtual time has none.
    assert!(page.contains("process") && page.contains("wall time"));
}

#[test]
fn hostile_texts_of_files_and_reports_are_text() {
    let hostile = "x'<img src=x onerror=alert(1)>\"&";
    // A rack file may have any file name, and its longest names.
    let folder = scratch("folder");
    std::fs::create_dir_all(&folder).expect("the scratch folder can be written");
    let long = format!("{}.a-b_c", "n".repeat(26));
    let file = folder.join(format!("{hostile}.yaml"));
    let rack =
        format!("name: r\nshape:\n  custom:\n    nodes: [{long}, n1]\n    links: [{{a: {long}, b: n1}}]\n");
    std::fs::write(&file, rack).expect("any name of a file");
    let html = scratch("hostile.html");
    let report = sim(&file).with(&["--html", text(&html)]).finish().passed();
    let page = read(&html);
    check_page(&page);
    assert!(page.contains("&lt;img src=x onerror=alert(1)&gt;") && !page.contains("<img"));
    assert!(rows(&page, "Nodes and switches").contains(&long.as_str()));

    // A report may have any name.
    let name = "</script><script>alert(1)</script>\u{202e}\u{5d0}";
    let quoted = Value::from(name).to_string();
    let inner = &quoted[1..quoted.len() - 1];
    let edited = report.to_string().replace(&long, inner);
    let json = written("hostile.json", &edited);
    let page = show(&json, &["--html", "-"]).stdout;
    check_page(&page);
    assert!(
        page.contains("&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;") && !page.contains('\u{202e}')
    );
    assert_eq!(rows(&page, "Nodes and switches").len(), 2);
    let very_long = report.to_string().replace(&long, &"long".repeat(25_000));
    let page = show(&written("long.json", &very_long), &["--html", "-"]).stdout;
    check_page(&page);
    assert!(page.len() < 200_000, "{} bytes", page.len());
}

/// Fails unless the command refuses the file with each of these texts.
fn refused(report: &Path, parts: &[&str]) {
    for html in [&[][..], &["--html", "-"]] {
        let ended = show(report, html);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{}", ended.stderr);
        for part in parts.iter().chain(&["hint", text(report)]) {
            assert!(ended.stderr.contains(part), "{part} in {}", ended.stderr);
        }
    }
}

#[test]
fn a_report_with_the_use_of_a_real_gpu_matches_the_schema_and_is_printed() {
    let mut report = sim(&topology("ring-4.yaml")).finish().passed();
    assert_eq!(report.get("gpu_use"), None, "virtual time has no real GPU");
    report["gpu_use"] = serde_json::json!([{
        "uuid": "GPU-1b2c3d4e", "name": "NVIDIA H200", "nodes": ["n0", "n1"], "samples": 8,
        "busy_share": {"mean": 0.5, "max": 0.75},
        "memory_used_max_bytes": 3_221_225_472_u64,
        "memory_bytes": 150_323_855_360_u64,
        "pcie_sent_bytes_per_s": 1_500_000_000,
        "power_w": {"mean": 120.5, "max": 130.0},
    }]);
    assert_eq!(mistakes("report", &report), [""; 0]);
    let json = written("gpu.json", &report.to_string());
    let printed = show(&json, &[]);
    let mut lines = printed.stdout.lines().skip_while(|line| !line.starts_with("use of the real GPUs"));
    let (head, row) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let words = |line: &str| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).count();
    assert_eq!((words(head), words(row)), (8, 8), "{}", printed.stdout);
    for cell in ["GPU-1b2c3d4e", "n0, n1", "50.0 %", "75.0 %", "3.00 GiB", "140 GiB", "1.50 GB/s"] {
        assert!(row.contains(cell), "{cell}: {}", printed.stdout);
    }
    let page = show(&json, &["--html", "-"]).stdout;
    check_page(&page);
    assert_eq!(rows(&page, "Real GPUs"), ["NVIDIA H200"]);
    report["gpu_use"][0]["power"] = 1.into();
    assert_ne!(mistakes("report", &report), [""; 0], "the schema lists every field");
}

#[test]
fn foreign_truncated_and_old_files_are_refused() {
    let report = sim(&topology("ring-4.yaml")).finish().passed();
    let whole = report.to_string();
    let old = |version: &str| {
        let mut report = report.clone();
        report["manifest"]["version"] = version.into();
        written("old.json", &report.to_string())
    };
    refused(&written("half.json", &whole[..whole.len() / 2]), &["truncated", "line 1"]);
    refused(&written("text.json", "verdict: pass\n"), &["no JSON"]);
    refused(
        &written("foreign.json", "{\"hold\": true, \"experiments\": []}"),
        &["no report of a run", "manifest"],
    );
    refused(&old("0.1.7"), &["manifest.version", "0.1.7"]);
    refused(&old("9.0.0"), &["manifest.version", "9.0.0"]);
    refused(Path::new("no-such-report.json"), &["cannot read the report"]);
    assert_eq!(show(&written("whole.json", &whole), &[]).code, Some(0));
}

#[test]
fn a_page_that_cannot_be_written_is_refused_before_the_run() {
    let ring = topology("ring-4.yaml");
    let folder = scratch("sweep");
    for command in [
        &["sim", text(&ring)][..],
        &["run", text(&ring)],
        &["campaign", text(&ring), "--runs", "1"],
        &["experiment", "incast"],
        &["sweep", text(&ring), "--out", text(&folder)],
    ] {
        let ended = rackloom(command).with(&["--html", "no-such-folder/page.html"]).finish();
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{command:?}: {}", ended.stderr);
        assert!(ended.stderr.contains("no-such-folder/page.html"), "{}", ended.stderr);
        let ended = rackloom(command).with(&["--html", "-"]).finish();
        assert_eq!(ended.code, Some(2), "{command:?}: {}", ended.stderr);
        assert!(ended.stderr.contains("rackloom report REPORT.json --html -"), "{}", ended.stderr);
    }
    let one = scratch("one");
    let ended = rackloom(&["sim", text(&ring), "--json", text(&one), "--html", text(&one)]).finish();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{}", ended.stderr);
    assert!(ended.stderr.contains("name one file") && !one.exists(), "{}", ended.stderr);
    assert!(!folder.exists(), "a sweep that was refused left a folder");
}

#[test]
fn options_without_a_page_are_refused() {
    let html = scratch("none.html");
    let listed = rackloom(&["experiment", "list", "--html", text(&html)]).finish();
    assert_eq!(listed.code, Some(2), "{}", listed.stderr);
    let folder = scratch("slurm");
    let ring = topology("ring-4.yaml");
    let submitted =
        rackloom(&["sweep", text(&ring), "--out", text(&folder), "--engine", "slurm", "--no-submit"])
            .with(&["--html", text(&html)])
            .finish();
    assert_eq!(submitted.code, Some(2), "{}", submitted.stderr);
    assert!(submitted.stderr.contains("--collect"), "{}", submitted.stderr);
    assert!(!html.exists());
}

#[test]
fn experiments_sweeps_and_campaigns_have_pages() {
    let ring = topology("ring-4.yaml");
    let html = scratch("other.html");
    let experiment =
        rackloom(&["experiment", "incast", "--reduced", "--json", "--html", text(&html)]).finish();
    let findings: Value = serde_json::from_str(&experiment.stdout).expect("JSON");
    let page = read(&html);
    check_page(&page);
    assert_eq!(rows(&page, "Rows").len(), findings["experiments"][0]["rows"].as_array().expect("rows").len());
    assert!(page.contains("Experiment incast") && page.contains("<svg ") && page.contains("verdict: pass"));

    let folder = scratch("sweep");
    let grid = [
        "--set",
        "link.loss=0,1e-3",
        "--algorithm",
        "ring,two-shot",
        "--seeds",
        "1..2",
        "--collective",
        "all-reduce",
    ];
    let sweep =
        rackloom(&["sweep", text(&ring), "--out", text(&folder), "--html", text(&html)]).with(&grid).finish();
    assert_eq!(sweep.code, Some(0), "{}", sweep.stderr);
    let page = read(&html);
    check_page(&page);
    let lines = read(&folder.join("results.csv")).lines().count();
    assert_eq!(
        (rows(&page, "Runs").len(), rows(&page, "Combinations of values, over all seeds").len()),
        (lines - 1, 4)
    );
    let collected = scratch("collected.html");
    let ended =
        rackloom(&["sweep", "--collect", "--out", text(&folder), "--html", text(&collected)]).finish();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let without_command = |page: &str| {
        page.replace(
            page.split("<code>").nth(1).expect("a command").split("</code>").next().expect("its end"),
            "",
        )
    };
    assert_eq!(without_command(&read(&collected)), without_command(&page));

    let campaign = rackloom(&["campaign", text(&ring), "--runs", "5", "--html", text(&html)]).finish();
    assert_eq!(campaign.code, Some(0), "{}", campaign.stderr);
    let page = read(&html);
    check_page(&page);
    assert!(page.contains("<dt>ran</dt><dd>5</dd>"), "{page}");

    let cases =
        rackloom(&["campaign", text(&ring), "--exhaustive", "links:1,nodes:1", "--collective", "all-reduce"])
            .with(&["--failure-rates", "links=1e-5/h,nodes=1e-6/h", "--repair", "4h", "--html", text(&html)])
            .finish();
    assert_eq!(cases.code, Some(0), "{}", cases.stderr);
    let page = read(&html);
    check_page(&page);
    assert_eq!(rows(&page, "Outcomes").len(), 8);
    assert!(page.contains("Parts that matter most"));
}

#[test]
fn a_picture_of_a_report_and_that_on_its_page_are_one() {
    let ring = topology("ring-4.yaml");
    let script = written("cut.yaml", CUT);
    let html = scratch("cut.html");
    let options = ["--collective", "all-reduce", "--repetitions", "50", "--faults", text(&script)];
    let report = sim(&ring).with(&options).with(&["--html", text(&html)]).finish().report();
    let json = written("cut.json", &report.to_string());
    let drawn = rackloom(&["graph", text(&ring), "--report", text(&json)]).finish();
    assert_eq!(drawn.code, Some(0), "{}", drawn.stderr);
    assert!(drawn.stdout.contains("link that is down"));
    assert!(read(&html).contains(drawn.stdout.trim_end()), "the pictures differ");
    // A rack without a report has none of its colours.
    let other = rack_file("name: ring-4\nshape: {ring: {nodes: 4}}\n");
    assert!(!rackloom(&["graph", text(&other)]).finish().stdout.contains("link that is down"));
}
