//! `rackloom experiment`: list, table, figure, JSON, refusals, exit codes.
//!
//! `crates/experiments/tests` check that the experiments hold.

mod support;

use support::{Ended, rackloom};

fn experiment(arguments: &[&str]) -> Ended {
    rackloom(&[&["experiment"], arguments].concat()).finish()
}

fn refused(arguments: &[&str], part: &str) {
    let ended = experiment(arguments);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{}", ended.stderr);
    assert!(ended.stderr.contains(part) && ended.stderr.contains("hint:"), "{part}: {}", ended.stderr);
}

#[test]
fn the_list_names_every_experiment_with_its_inputs() {
    let list = experiment(&["list"]);
    assert_eq!(list.code, Some(0), "{}", list.stderr);
    for name in ["size-sweep", "loss-sweep", "heartbeat", "all-reduce", "fetch-add-storm"] {
        assert!(list.stdout.contains(name), "{name}\n{}", list.stdout);
    }
    assert!(list.stdout.contains("transport.mode"), "{}", list.stdout);
    let json: serde_json::Value =
        serde_json::from_str(&experiment(&["list", "--json"]).stdout).expect("JSON");
    assert_eq!(json[0]["name"], "size-sweep");
}

#[test]
fn one_experiment_prints_its_theory_beside_its_numbers_and_draws_them() {
    let figure = std::env::temp_dir().join(format!("rackloom-figure-{}.svg", std::process::id()));
    let path = figure.to_str().expect("a plain path");
    let ended =
        experiment(&["size-sweep", "--vary", "bytes=64", "--vary", "link.headers=sue-like", "--svg", path]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    // 64 of 122 bytes.
    for part in [
        "efficiency = P / (max(64, H + P + T) + 20)",
        "sue-like, 64 B",
        "52.459",
        "exact",
        "pass: 1 of 1 hold",
    ] {
        assert!(ended.stdout.contains(part), "{part}\n{}", ended.stdout);
    }
    let svg = std::fs::read_to_string(&figure).expect("the figure was written");
    std::fs::remove_file(&figure).expect("the figure can be removed");
    assert!(svg.starts_with("<svg ") && svg.contains(">payload of one message"), "{svg}");
}

#[test]
fn an_experiment_compares_transports_with_and_without_link_retry() {
    let ended =
        experiment(&["loss-sweep", "--vary", "link.llr=on,off", "--vary", "link.loss=1%", "--reduced"]);
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    for part in [
        "selective, loss 1e-2",
        "go-back-n, llr, loss 1e-2",
        "=> go-back-n: less than 95.0 % of the link; 2",
        "losses",
    ] {
        assert!(ended.stdout.contains(part), "{part}\n{}", ended.stdout);
    }
}

#[test]
fn a_failed_verdict_decides_the_exit_code() {
    let ended = experiment(&["outstanding-loads", "--reduced", "--perturb", "--json"]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let json: serde_json::Value = serde_json::from_str(&ended.stdout).expect("JSON and nothing else");
    assert_eq!(
        (&json["hold"], &json["experiments"][0]["rows"][0]["verdict"]),
        (&false.into(), &"fail".into())
    );
    assert_eq!(json["experiments"][0]["perturbed"], "delay of the link");
}

#[test]
fn an_unknown_experiment_is_refused_with_the_known_ones() {
    refused(&["size-swep"], "there is no experiment `size-swep`");
    refused(&["size-sweep", "--vary", "bites=64"], "nothing called `bites`");
    refused(
        &["loss-sweep", "--vary", "link.loss=5e-2,10%"],
        "`link.loss` of `5e-2` is not above 0 and at most 0.02",
    );
    refused(&["size-sweep", "--vary", "bytes"], "no values");
    refused(&["size-sweep", "--vary", "bytes="], "varied over no values");
    refused(&["size-sweep", "--vary", "bytes=1", "--vary", "bytes=2"], "`bytes` is varied twice");
    refused(&["all", "--vary", "bytes=64"], "--vary is for one experiment");
    refused(&["loss-sweep", "--vary", "link.loss=2"], "`link.loss` of `2` is not above 0 and at most 0.02");
    refused(&["size-sweep", "--vary", "bytes=1MiB"], "not a size from 1 to 4096 bytes");
    refused(&["path-loss", "--vary", "shape.star.planes=13"], "not a whole number from 2 to 12");
    // A spacing above the credits: an update would never leave.
    let never = ["credit-sweep", "--vary", "credits.limit=34", "--vary", "credits.update_spacing=8KiB"];
    refused(&never, "no update would ever leave");
}
