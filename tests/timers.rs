//! Timers that a rack file leaves open follow from the links in virtual time, and stated ones take precedence.

mod support;

use std::path::Path;

use serde_json::Value;
use support::{rack_file, rackloom, scratch, sim};

fn rack(shape: &str, more: &str) -> String {
    format!(
        "name: timers\nshape: {shape}\nlink: {{rate: 400Gbit/s, delay: 100ns}}\n{more}\
         job: {{collective: {{collective: all-reduce, algorithm: ring, bytes: 1MiB, repetitions: 10, warm_up: 1}}}}\n"
    )
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

/// Returns the time of one collective, by the report.
fn time_us(report: &Value) -> f64 {
    report["sweep"][0]["time_us"].as_f64().unwrap_or_else(|| panic!("no time in {}", report["sweep"]))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// With timers of milliseconds one loss costs as much as a thousand collectives, so the curve jumps.
#[test]
fn more_loss_takes_more_time_and_a_percent_less_than_twice_the_time() {
    for shape in ["{ring: {nodes: 4}}", "{star: {nodes: 6, planes: 2}}", "{full-mesh: {nodes: 4}}"] {
        let file = rack_file(&rack(shape, ""));
        let time = |loss: &str| {
            let of_seed = |seed: u64| {
                let seed = seed.to_string();
                time_us(&sim(&file).with(&["--loss", loss, "--seed", &seed]).finish().passed())
            };
            median((1..=5).map(of_seed).collect())
        };
        let times = ["0", "0.1%", "1%", "3%", "10%"].map(time);
        assert!(times.is_sorted(), "{shape}: {times:?}");
        assert!(times[2] < 2.0 * times[0], "{shape}: {times:?}");
    }
}

#[test]
fn a_cut_plane_costs_as_long_as_the_timers_allow() {
    let script = scratch("plane.yaml");
    std::fs::write(
        &script,
        "name: plane\nevents:\n  - {what: down, where: plane 0, at: 20us}\nexpect: {ends: right}\n",
    )
    .expect("a file");
    let shape = "{star: {nodes: 8, planes: 2}}";
    let elapsed_ns = |more: &str, options: &[&str]| {
        let report = sim(&rack_file(&rack(shape, more))).with(options).finish().passed();
        report["elapsed_ns"].as_u64().expect("a time")
    };
    let faults = ["--faults", text(&script)];
    let cost_ns = elapsed_ns("", &faults) - elapsed_ns("", &[]);
    assert!((100_000..1_000_000).contains(&cost_ns), "{cost_ns} ns");
    let stated = "timers: {heartbeat_interval: 2ms, heartbeat_miss_max: 4}\n";
    let cost_ns = elapsed_ns(stated, &faults) - elapsed_ns(stated, &[]);
    assert!((5_000_000..9_000_000).contains(&cost_ns), "{cost_ns} ns");
}

#[test]
fn auto_is_the_default_and_check_shows_both_clocks() {
    let check = |more: &str| {
        let file = rack_file(&rack("{ring: {nodes: 4}}", more));
        let ended = rackloom(&["check", text(&file)]).finish();
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let line = |name: &str| {
            let line = ended.stdout.lines().find(|line| line.starts_with(name));
            line.unwrap_or_else(|| panic!("no {name} in {}", ended.stdout)).to_owned()
        };
        [line("heartbeat"), line("retransmission timeout"), line("acknowledgement delay")]
    };
    let open = check("");
    assert_eq!(check("timers: auto\n"), open);
    assert!(open[0].ends_with("100 ms x 5, at rest every 5; in virtual time 50.0 us x 5"), "{open:?}");
    assert!(open.iter().all(|line| line.contains("in virtual time")), "{open:?}");
    let stated = check(
        "timers: {heartbeat_interval: 7ms}\n\
         transport: {ack_delay: 30us, timeout_min: 5ms, timeout_initial: 6ms, timeout_max: 8ms}\n",
    );
    assert!(!stated.iter().any(|line| line.contains("in virtual time")), "{stated:?}");
    assert!(stated[1].ends_with("5.00 ms .. 8.00 ms, first 6.00 ms"), "{stated:?}");
}
