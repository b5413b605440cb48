//! Every experiment holds, and its verdict depends on its run.
//!
//! The dependency matters: an input of the run is raised by a fifth, the formula's is not, and the verdict must
//! become a failure. An experiment whose numbers came from its formula would pass.

use std::collections::BTreeMap;

use rackloom_experiments::{Experiment, Findings, Request, Verdict, all, chart, find};

fn run(experiment: &Experiment, perturb: bool) -> Findings {
    let request = Request { seed: 1, perturb, reduced: true, ..Request::default() };
    experiment.run(&request).unwrap_or_else(|refused| panic!("{refused}"))
}

fn shown(findings: &Findings) -> String {
    let lines = findings.rows.iter().map(|row| {
        let measured = row.measured.map_or_else(|| "-".to_owned(), |value| value.to_string());
        format!(
            "{:?} {}: {measured}, expected {} ({}) {}",
            row.verdict, row.setting, row.expected, row.tolerance, row.note
        )
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn every_experiment_holds() {
    let mut failed = String::new();
    for experiment in all() {
        let findings = run(experiment, false);
        if !findings.hold() || findings.rows.is_empty() {
            failed += &format!("{}\n{}\n", experiment.name, shown(&findings));
        }
    }
    assert!(failed.is_empty(), "{failed}");
}

#[test]
fn a_fifth_more_of_one_input_flips_every_verdict() {
    let mut unmoved = String::new();
    for experiment in all() {
        let findings = run(experiment, true);
        assert_eq!(findings.perturbed, Some(experiment.perturbs));
        if !findings.rows.iter().any(|row| row.verdict == Verdict::Fail) {
            unmoved +=
                &format!("{} with more {}\n{}\n", experiment.name, experiment.perturbs, shown(&findings));
        }
    }
    assert!(unmoved.is_empty(), "{unmoved}");
}

/// A verdict that depends on the seed is chance and no result: verdicts that rest on chance hold for other seeds too.
#[test]
fn other_seeds_hold_too() {
    let seeds = |name: &str, vary: &[(&str, &str)]| {
        let experiment = find(name).expect("it is there");
        let vary: BTreeMap<_, _> =
            vary.iter().map(|(knob, value)| ((*knob).to_owned(), vec![(*value).to_owned()])).collect();
        for seed in 2..8 {
            let request = Request { seed, reduced: true, vary: vary.clone(), ..Request::default() };
            let findings = experiment.run(&request).unwrap_or_else(|refused| panic!("{refused}"));
            assert!(findings.hold(), "{name}, seed {seed}\n{}", shown(&findings));
        }
    };
    seeds("loss-sweep", &[("link.loss", "0.01"), ("transport.mode", "go-back-n")]);
    seeds("lost-credits", &[]);
    seeds("fetch-add-storm", &[]);
    seeds("path-policies", &[]);
    seeds("head-of-line", &[("forwarding.queues", "by-input")]);
    seeds("bit-errors", &[]);
}

#[test]
fn the_same_seed_gives_the_same_numbers_and_figures() {
    let experiment = find("fetch-add-storm").expect("it is there");
    let (first, second) = (run(experiment, false), run(experiment, false));
    assert_eq!(shown(&first), shown(&second));
    assert_eq!(chart::figure(experiment, &first), chart::figure(experiment, &second));
}

#[test]
fn varied_values_replace_usual_ones() {
    let experiment = find("size-sweep").expect("it is there");
    let vary = BTreeMap::from([
        ("bytes".to_owned(), vec!["100".to_owned()]),
        ("link.headers".to_owned(), vec!["roce-like".to_owned()]),
    ]);
    let findings = experiment.run(&Request { seed: 1, vary, ..Request::default() }).expect("it runs");
    // 78 bytes of headers and 20 of preamble and gap.
    let [row] = &findings.rows[..] else { panic!("{}", shown(&findings)) };
    assert_eq!(row.measured, Some(100.0 * 100.0 / 198.0), "{}", shown(&findings));
}

#[test]
fn numbers_and_names_are_given_once() {
    for (index, experiment) in all().iter().enumerate() {
        let others = &all()[index + 1..];
        assert!(others.iter().all(|other| other.name != experiment.name && other.number > experiment.number));
    }
}
