//! Campaigns that fail every part: outcomes that follow from the shape of the rack, and the expected goodput as computed by hand.

mod support;

use std::path::Path;

use serde_json::Value;
use support::schema::mistakes;
use support::{Ended, rack_file, rackloom, scratch, topology};

struct Campaign {
    ended: Ended,
    result: Value,
}

fn campaign(rack: &str, arguments: &[&str]) -> Campaign {
    campaign_of(&topology(rack), arguments)
}

fn campaign_of(file: &Path, arguments: &[&str]) -> Campaign {
    let json = scratch("exhaustive.json");
    let (file, json) = (file.to_str().expect("a plain path"), json.to_str().expect("a plain path"));
    let ended = rackloom(&["campaign", file, "--json", json]).with(arguments).finish();
    let text = std::fs::read_to_string(json).unwrap_or_else(|_| "null".to_owned());
    Campaign { ended, result: serde_json::from_str(&text).expect("JSON") }
}

impl Campaign {
    /// Returns name of the parts, outcome and goodput of each case.
    fn outcomes(&self) -> Vec<(String, String, f64)> {
        assert_eq!(self.ended.code, Some(0), "{}\n{}", self.ended.stdout, self.ended.stderr);
        assert_eq!(mistakes("exhaustive", &self.result), [""; 0]);
        let cases = self.result["outcomes"].as_array().expect("a list of cases").iter();
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let names = |case: &Value| {
            case["parts"]
                .as_array()
                .expect("a list of parts")
                .iter()
                .map(text)
                .collect::<Vec<_>>()
                .join(" + ")
        };
        cases
            .map(|case| (names(case), text(&case["outcome"]), case["goodput"].as_f64().expect("a number")))
            .collect()
    }
}

/// A store from n0 to n1 crosses one cable of 100 us, and three without that cable. No other cable is on its path.
#[test]
fn a_ring_without_the_cable_of_a_store_takes_three_times_as_long() {
    let options = ["--exhaustive", "links:1", "--job", "latency", "--bytes", "8B", "--repetitions", "20"];
    let junit = scratch("exhaustive.xml");
    let more = ["--set", "link.delay=100us", "--junit", junit.to_str().expect("a plain path")];
    let campaign = campaign("ring-4.yaml", &[&options[..], &more].concat());
    let outcomes = campaign.outcomes();
    assert_eq!(outcomes.len(), 4);
    for (part, outcome, goodput) in &outcomes {
        let (expected, share) = if part == "n0--n1" { ("degraded", 1.0 / 3.0) } else { ("survived", 1.0) };
        assert_eq!(outcome, expected, "{part}");
        assert!((goodput / share - 1.0).abs() < 0.01, "{part}: {goodput}");
    }
    assert!(campaign.ended.stdout.contains("degraded by 66."), "{}", campaign.ended.stdout);
    assert!(campaign.ended.stdout.contains("4 of 4 failures ran: 3 survived, 1 degraded, 0 lost, 0 wrong"));
    // Each case has the time of its job.
    let cases = std::fs::read_to_string(&junit).expect("it is written");
    for case in campaign.result["outcomes"].as_array().expect("a list of cases") {
        let name = format!("name=\"links {}\"", case["parts"][0].as_str().expect("a name"));
        let seconds = case["time_ns"].as_f64().expect("a time") / 1e9;
        assert!(cases.contains(&format!("{name} time=\"{seconds:.9}\"")), "{name}: {cases}");
    }
}

/// Scripts run at the same time, so the time of the suite is that of the campaign.
#[test]
fn cases_of_drawn_scripts_have_the_times_of_their_runs() {
    let junit = scratch("drawn.xml");
    let options = ["--runs", "6", "--threads", "2", "--junit", junit.to_str().expect("a plain path")];
    let (rack, json) = (topology("ring-4.yaml"), scratch("drawn.json"));
    let paths = [&rack, &json].map(|path| path.to_str().expect("a plain path"));
    let ended = rackloom(&["campaign", paths[0], "--json", paths[1]]).with(&options).finish();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let result: Value =
        serde_json::from_str(&std::fs::read_to_string(&json).expect("it is written")).expect("JSON");
    let cases = std::fs::read_to_string(&junit).expect("it is written");
    let time = |line: &str| -> f64 {
        let (_, rest) = line.split_once(" time=\"").unwrap_or_else(|| panic!("no time in {line}"));
        rest.split('"').next().and_then(|time| time.parse().ok()).expect("a number")
    };
    let lines = |element: &str| {
        cases.lines().filter(|line| line.trim_start().starts_with(element)).collect::<Vec<_>>()
    };
    let elapsed_s = result["elapsed_s"].as_f64().expect("a time");
    for suite in [lines("<testsuites "), lines("<testsuite ")].concat() {
        assert!((time(suite) - elapsed_s).abs() < 1e-6, "{suite} in a campaign of {elapsed_s} s");
    }
    let of_cases: Vec<_> = lines("<testcase ").into_iter().map(time).collect();
    assert_eq!(of_cases.len(), 6, "{cases}");
    assert!(of_cases.iter().all(|seconds| *seconds > 0.0 && *seconds <= elapsed_s), "{of_cases:?}");
}

/// Two cuts divide a ring, whichever they are.
#[test]
fn two_cuts_of_a_ring_lose_the_job() {
    let options =
        ["--exhaustive", "links:2", "--collective", "all-reduce", "--bytes", "4KiB", "--algorithm", "ring"];
    let campaign = campaign("ring-4.yaml", &options);
    let outcomes = campaign.outcomes();
    assert_eq!(outcomes.len(), 6);
    assert!(
        outcomes.iter().all(|(_, outcome, goodput)| outcome == "lost" && *goodput == 0.0),
        "{outcomes:?}"
    );
    assert!(campaign.ended.stdout.contains("n0--n1 + n1--n2"), "{}", campaign.ended.stdout);
}

#[test]
fn a_switch_of_two_is_survived_and_the_expected_goodput_is_as_by_hand() {
    let options =
        ["--exhaustive", "switches:1,switches:2", "--set", "planes=2", "--collective", "all-reduce"];
    let rates = [
        "--bytes",
        "64KiB",
        "--algorithm",
        "two-shot",
        "--failure-rates",
        "switches=0.01/h",
        "--repair",
        "10h",
    ];
    let campaign = campaign("star-4.yaml", &[&options[..], &rates].concat());
    let outcomes = campaign.outcomes();
    let names: Vec<_> = outcomes.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(names, ["s0", "s1", "s0 + s1"]);
    assert_eq!(outcomes[2].1, "lost");
    let alone = [outcomes[0].2, outcomes[1].2];
    assert!(alone.iter().all(|goodput| (0.3..=1.0).contains(goodput)), "{alone:?}");
    // Each switch is down for 0.1 / 1.1 of the time: both are up for (10/11)^2, exactly one of them is down for 10/121.
    let by_hand = 100.0 / 121.0 + 10.0 / 121.0 * (alone[0] + alone[1]);
    let expected = &campaign.result["expected"];
    for bound in ["goodput_least", "goodput_most"] {
        let found = expected[bound].as_f64().expect("a number");
        assert!((found - by_hand).abs() < 1e-9, "{bound}: {found}, by hand {by_hand}");
    }
    let loss = |index: usize| expected["parts"][index]["loss"].as_f64().expect("a number");
    // Alone 10/121 of the lost goodput, and half of the 1/121 in which nothing is left.
    let mut by_hand = alone.map(|goodput| 10.0 / 121.0 * (1.0 - goodput) + 0.5 / 121.0);
    by_hand.sort_by(|one, other| other.total_cmp(one));
    assert!((loss(0) - by_hand[0]).abs() < 1e-9 && (loss(1) - by_hand[1]).abs() < 1e-9, "{expected}");
    assert!(campaign.ended.stdout.contains("expected goodput: "), "{}", campaign.ended.stdout);
}

/// A star with two planes goes on without one switch. With a cable of the other plane it has no path to the node at that cable.
#[test]
fn a_cable_and_a_switch_at_once_lose_the_job_only_in_different_planes() {
    let options = ["--exhaustive", "links+switches", "--set", "planes=2", "--collective", "all-reduce"];
    let campaign =
        campaign("star-4.yaml", &[&options[..], &["--bytes", "4KiB", "--algorithm", "two-shot"]].concat());
    let outcomes = campaign.outcomes();
    // Eight cables and two switches.
    assert_eq!(outcomes.len(), 16);
    for (parts, outcome, _) in &outcomes {
        let (cable, switch) = parts.split_once(" + ").expect("two parts");
        assert!(cable.contains("--") && !switch.contains("--"), "{parts}");
        let is_of_switch = cable.ends_with(&format!("--{switch}"));
        assert_eq!(outcome == "lost", !is_of_switch, "{parts}: {outcome}");
    }
    assert!(
        campaign.result["outcomes"]
            .as_array()
            .is_some_and(|cases| cases.iter().all(|case| case["kind"] == "links+switches"))
    );
}

/// States in which a cable and a switch are down have a probability of their own, and the rates of both.
#[test]
fn pairs_across_kinds_count_in_the_expected_goodput() {
    let options = ["--set", "planes=2", "--collective", "all-reduce", "--bytes", "4KiB", "--repair", "10h"];
    let rates = ["--algorithm", "two-shot", "--failure-rates", "links=0.01/h,switches=0.02/h"];
    let covered = |exhaustive: &str| {
        let parts = [&["--exhaustive", exhaustive][..], &options, &rates].concat();
        let campaign = campaign("star-4.yaml", &parts);
        campaign.outcomes();
        campaign.result["expected"]["covered"].as_f64().expect("a number")
    };
    let alone = covered("links:1,switches:1");
    let across = covered("links:1,switches:1,switches+links");
    // Eight cables with the ratio 0.1, two switches with 0.2, and 16 pairs of both.
    let healthy = 1.1_f64.powi(-8) * 1.2_f64.powi(-2);
    assert!((alone - healthy * (1.0 + 8.0 * 0.1 + 2.0 * 0.2)).abs() < 1e-9, "{alone}");
    assert!((across - alone - healthy * 16.0 * 0.1 * 0.2).abs() < 1e-9, "{across} and {alone}");
}

#[test]
fn a_lost_node_ends_the_job_unless_the_others_go_on() {
    let job =
        ["--exhaustive", "nodes:1", "--collective", "all-reduce", "--bytes", "4KiB", "--algorithm", "ring"];
    // A ring of three takes less time than one of four.
    for (more, outcome) in [(&[][..], "lost"), (&["--on-loss", "shrink"], "survived")] {
        let campaign = campaign("star-4.yaml", &[&job[..], more].concat());
        let outcomes = campaign.outcomes();
        assert_eq!(outcomes.len(), 4);
        assert!(outcomes.iter().all(|(_, found, _)| found == outcome), "{more:?}: {outcomes:?}");
    }
}

/// A single rank exchanges nothing with others, and no rank even less.
#[test]
fn a_job_with_fewer_than_two_ranks_left_is_lost() {
    let ring = rack_file("name: two\nshape: {ring: {nodes: 2}}\n");
    let star = rack_file("name: two\nshape: {star: {nodes: 2, planes: 1}}\n");
    let job = ["--exhaustive", "nodes:1,nodes:2", "--collective", "all-reduce", "--bytes", "64KiB"];
    let rates = ["--failure-rates", "nodes=1/d", "--repair", "24h"];
    for more in [&[][..], &["--on-loss", "shrink", "--algorithm", "ring"]] {
        for file in [&ring, &star] {
            let campaign = campaign_of(file, &[&job[..], &rates, more].concat());
            let outcomes = campaign.outcomes();
            assert_eq!(outcomes.len(), 3);
            assert!(
                outcomes.iter().all(|(_, found, goodput)| found == "lost" && *goodput == 0.0),
                "{outcomes:?}"
            );
            // Each node is up half of the time, and the job needs both.
            let expected = &campaign.result["expected"];
            for bound in ["goodput_least", "goodput_most"] {
                assert!((expected[bound].as_f64().expect("a number") - 0.25).abs() < 1e-9, "{expected}");
            }
        }
    }
    let litmus = campaign_of(&ring, &["--exhaustive", "nodes:2", "--job", "litmus"]);
    assert_eq!(litmus.outcomes()[0].1, "lost");
}

#[test]
fn mistakes_name_the_option_and_have_a_hint() {
    let job = ["--collective", "all-reduce"];
    for (arguments, parts) in [
        (&["--exhaustive", "planes:1"][..], &["links, switches or nodes"][..]),
        (&["--exhaustive", "links:3"], &["links:1"]),
        (&["--exhaustive", "links+cables"], &["`cables` are no parts", "links+switches"]),
        (&["--exhaustive", "links+switches"], &["--exhaustive", "the rack has no such parts"]),
        (&["--exhaustive", "switches:1"], &["--exhaustive", "the rack has no such parts"]),
        (&["--exhaustive", "links:1", "--engine", "processes"], &["virtual time"]),
        (
            &["--exhaustive", "links:1", "--time-limit", "0ms"],
            &["4 failures would take about ", "--time-limit"],
        ),
        (
            &["--exhaustive", "links:2", "--failure-rates", "links=1/h", "--repair", "1h"],
            &["--exhaustive links:1"],
        ),
        (
            &["--exhaustive", "links:1", "--failure-rates", "links=1/h", "--repair", "nodes=1h"],
            &["--repair links=4h"],
        ),
        (&["--exhaustive", "links:1", "--failure-rates", "links=1/h"], &["--repair"]),
    ] {
        let campaign = campaign("ring-4.yaml", &[arguments, &job].concat());
        assert_eq!(campaign.ended.code, Some(2), "{arguments:?}\n{}", campaign.ended.stdout);
        for part in parts.iter().chain(&["hint"]) {
            assert!(campaign.ended.stderr.contains(part), "{part} in\n{}", campaign.ended.stderr);
        }
    }
    let idle = campaign("ring-4.yaml", &["--exhaustive", "links:1", "--job", "none"]);
    assert_eq!(idle.ended.code, Some(2), "{}", idle.ended.stdout);
    assert!(idle.ended.stderr.contains("hint"), "{}", idle.ended.stderr);
}
