//! The document shows every experiment with its figure, and the figures are those that the command draws.
//!
//! This is the whole set, not the reduced one, so it is also the test that the whole set holds; of the one experiment whose
//! rare losses take tens of millions of frames, only if `RACKLOOM_WHOLE_SET` is set.

use std::io::Write;
use std::path::{Path, PathBuf};

use rackloom_experiments::{Request, all, chart};

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// Takes minutes; its losses that are not rare are tested with the reduced set.
const LONG: &str = "loss-sweep";

/// Prints a note about a skipped test to standard error, which the test runner shows.
fn skipped(what: &str) {
    std::io::stderr()
        .write_all(format!("SKIPPED (1): {what}\n").as_bytes())
        .expect("standard error is there");
}

/// Returns true if both figures have the same elements, and no point differs by a visible distance: a time that
/// differs by a nanosecond is no new figure.
fn looks_like(committed: &str, drawn: &str) -> bool {
    const UNSEEN: f64 = 2.0;
    let words = |text: &str| -> Vec<String> {
        text.split(|end: char| end.is_whitespace() || "\",<>".contains(end)).map(str::to_owned).collect()
    };
    let (committed, drawn) = (words(committed), words(drawn));
    let is_near = |(one, other): (&String, &String)| match (one.parse::<f64>(), other.parse::<f64>()) {
        (Ok(one), Ok(other)) => (one - other).abs() <= UNSEEN,
        _ => one == other,
    };
    committed.len() == drawn.len() && committed.iter().zip(&drawn).all(is_near)
}

#[test]
fn changed_figures_are_recognised() {
    let figure = |height: f64| format!("<circle cx=\"10.0\" cy=\"{height:.1}\"/>");
    assert!(looks_like(&figure(100.0), &figure(101.0)));
    assert!(!looks_like(&figure(100.0), &figure(110.0)));
    assert!(!looks_like("", &figure(100.0)));
}

#[test]
fn committed_figures_are_what_the_whole_set_draws() {
    let is_whole = std::env::var_os("RACKLOOM_WHOLE_SET").is_some();
    for experiment in all() {
        if experiment.name == LONG && !is_whole {
            skipped(&format!(
                "the figure of {LONG} takes tens of millions of frames; RACKLOOM_WHOLE_SET=1 draws it"
            ));
            continue;
        }
        let request = Request { seed: 1, ..Request::default() };
        let findings = experiment.run(&request).unwrap_or_else(|refused| panic!("{refused}"));
        assert!(findings.hold(), "{} does not hold: {:#?}", experiment.name, findings.rows);
        let path = docs().join(format!("figures/{}.svg", experiment.name));
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        let drawn = chart::figure(experiment, &findings);
        assert!(
            looks_like(&committed, &drawn),
            "{} is not what is drawn now; hint: rackloom experiment {} --svg docs/figures/{}.svg",
            path.display(),
            experiment.name,
            experiment.name
        );
    }
}

#[test]
fn the_document_has_every_experiment_with_its_words() {
    let document = std::fs::read_to_string(docs().join("experiments.md")).expect("the document is there");
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    for experiment in all() {
        let heading = format!("\n## {}. {}\n", experiment.number, experiment.name);
        let (_, section) = document.split_once(&heading).unwrap_or_else(|| panic!("no section{heading}"));
        let section = words(section.split("\n## ").next().unwrap_or_default());
        let figure = format!("(figures/{}.svg)", experiment.name);
        for part in [experiment.question, experiment.formula, experiment.theory, experiment.perturbs, &figure]
        {
            assert!(section.contains(&words(part)), "the section of {} lacks {part:?}", experiment.name);
        }
        for knob in experiment.knobs {
            assert!(section.contains(knob.name), "the section of {} lacks {}", experiment.name, knob.name);
        }
    }
}

#[test]
fn a_figure_names_its_axes_and_shows_what_does_not_hold() {
    let experiment = rackloom_experiments::find("outstanding-loads").expect("it is there");
    let figure = |perturb| {
        let request = Request { seed: 1, perturb, reduced: true, ..Request::default() };
        chart::figure(experiment, &experiment.run(&request).unwrap_or_else(|refused| panic!("{refused}")))
    };
    let (holds, fails) = (figure(false), figure(true));
    for words in
        [experiment.name, experiment.axes.x.label, ">throughput (GB/s)<", ">closed form<", ">measured<"]
    {
        assert!(holds.contains(words), "{words}");
    }
    // The legend shows an outline only if there is one.
    let hollow = |figure: &str| figure.matches("class=\"hollow\"").count();
    assert_eq!((hollow(&holds), hollow(&fails)), (0, 2));
    assert!(!holds.contains("does not hold") && fails.contains("does not hold"));
    assert!(holds.trim_end().ends_with("</svg>"));
}

#[test]
fn a_reduced_figure_has_no_place_for_kinds_that_were_not_measured() {
    for (name, measured, left_out) in
        [("patterns", "experts", "all-to-all"), ("bisection", "torus-4x4", "torus-5x5")]
    {
        let experiment = rackloom_experiments::find(name).expect("it is there");
        let request = Request { seed: 1, reduced: true, ..Request::default() };
        let findings = experiment.run(&request).unwrap_or_else(|refused| panic!("{refused}"));
        let figure = chart::figure(experiment, &findings);
        assert!(figure.contains(&format!(">{measured}<")) && !figure.contains(left_out), "{name}: {figure}");
        // Each point stands at its own kind.
        for row in findings.rows.iter().filter(|row| row.is_drawn) {
            let kind = experiment.axes.names.expect("kinds")[row.x as usize - 1];
            assert!(labels(&figure).iter().any(|label| label.contains(kind)), "{name}: {kind}");
        }
    }
}

/// Returns the texts that browsers show beside the pointer.
fn labels(figure: &str) -> Vec<&str> {
    figure
        .lines()
        .filter_map(|line| line.split_once("<title>")?.1.split_once("</title>"))
        .map(|(label, _)| label)
        .collect()
}

#[test]
fn a_figure_has_a_mark_for_every_drawn_row_and_bars_for_several_runs() {
    for name in ["heartbeat", "packing-latency", "patterns", "exact-drop", "lost-credits"] {
        let experiment = rackloom_experiments::find(name).expect("it is there");
        let request = Request { seed: 1, reduced: true, ..Request::default() };
        let findings = experiment.run(&request).unwrap_or_else(|refused| panic!("{refused}"));
        let figure = chart::figure(experiment, &findings);
        let rows: Vec<_> = findings.rows.iter().filter(|row| row.is_drawn).collect();
        // The picture itself has a title too.
        assert_eq!(labels(&figure).len(), rows.len() + 1, "{name}: {figure}");
        let with_bars =
            labels(&figure).iter().filter(|label| label.contains(" to ") && label.ends_with(')')).count();
        let spread = rows.iter().filter(|row| row.spread.is_some()).count();
        assert_eq!(with_bars, spread, "{name}");
        assert_eq!(spread > 0, ["heartbeat", "packing-latency"].contains(&name), "{name}");
        for spread in rows.iter().filter_map(|row| row.spread) {
            assert!(
                spread.low < spread.high
                    && figure.contains("standard deviations") != figure.contains(&spread.of[..8])
            );
        }
    }
}
