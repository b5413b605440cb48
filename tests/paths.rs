//! Paths and order: an order guarantee that holds, one that does not, traffic over sprayed planes, and
//! traffic that the receiver grants, with processes and in virtual time.

mod support;

use std::path::Path;

use support::{Ended, rack_file, run, sim};

const ENGINES: [&str; 2] = ["sim", "run"];

fn tried(engine: &str, file: &Path, more: &[&str]) -> Ended {
    let rack = if engine == "run" { run(file) } else { sim(file) };
    rack.with(more).finish()
}

fn sprayed(paths: &str) -> String {
    format!(
        "name: sprayed\nshape: {{star: {{nodes: 3, planes: 4}}}}\nlink: {{delay: 20us, reorder: 20%}}\n\
         paths: {{policy: spray, {paths}}}\njob: {{traffic: {{pattern: all-to-all, bytes: 32KiB, messages: 50}}}}\n"
    )
}

#[test]
fn a_broken_guarantee_of_order_fails_the_run_and_names_the_event() {
    let file = rack_file(&sprayed("order: class, keep_order: false"));
    for engine in ENGINES {
        let ended = tried(engine, &file, &[]);
        assert_eq!(ended.code, Some(1), "{engine}: {}", ended.stderr);
        let report = ended.report();
        let failures = report["failures"].as_array().expect("a list");
        let is_reported = |failure: &serde_json::Value| {
            failure.as_str().is_some_and(|text| text.contains("order per class did not hold"))
        };
        assert!(failures.iter().any(is_reported), "{engine}: {failures:?}");
        let events = report["events"].as_array().expect("a list");
        assert!(events.iter().any(|event| event["kind"] == "order-broken"), "{engine}: no such event");
    }
}

#[test]
fn every_guarantee_of_order_holds_over_reordering_links() {
    for order in ["pair", "class", "region", "none"] {
        let file = rack_file(&sprayed(&format!("order: {order}")));
        for engine in ENGINES {
            let ended = tried(engine, &file, &[]);
            assert_eq!(ended.code, Some(0), "{engine} {order}: {}", ended.stderr);
            let report = ended.report();
            let traffic = &report["traffic"];
            assert_eq!((&traffic["pattern"], &traffic["messages"]), (&"all-to-all".into(), &300.into()));
            assert!(traffic["completion_ns"].as_u64() > Some(0), "{traffic}");
            let fairness = traffic["fairness"].as_f64().expect("a number");
            assert!(fairness > 0.3 && fairness <= 1.0 + 1e-9, "{engine} {order}: {traffic}");
        }
    }
}

#[test]
fn a_pattern_on_the_command_line_means_the_traffic_job() {
    let file = rack_file("name: r\nshape: {ring: {nodes: 4}}\n");
    for engine in ENGINES {
        let ended = tried(engine, &file, &["--pattern", "incast", "--messages", "7", "--bytes", "1KiB"]);
        let report = ended.passed();
        assert_eq!(report["job"], "traffic");
        assert_eq!(
            (&report["traffic"]["messages"], &report["traffic"]["bytes"]),
            (&21.into(), &21_504.into())
        );
    }
    let refused = tried("sim", &file, &["--job", "latency", "--messages", "7"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("--messages means nothing to job latency"), "{}", refused.stderr);
}

/// Five nodes on two planes, of which four send to the first one. The receiver grants eight packets in total.
const GRANTED: &str = "name: granted\nshape: {star: {nodes: 5, planes: 2}}\n\
                       transport: {congestion: grants, grant_packets: 8}\n";

#[test]
fn traffic_that_the_receiver_grants_completes_with_processes_and_in_virtual_time() {
    let file = rack_file(GRANTED);
    let incast = ["--pattern", "incast", "--messages", "200", "--bytes", "64KiB"];
    for engine in ENGINES {
        for faults in [&[][..], &["--loss", "1%", "--reorder", "1%"]] {
            let report = tried(engine, &file, &[&incast, faults].concat()).passed();
            assert_eq!(report["traffic"]["messages"], 800, "{engine} {faults:?}");
        }
        // Every operation of the litmus, in all classes.
        tried(engine, &file, &["--job", "litmus", "--loss", "1%"]).passed();
    }
}
