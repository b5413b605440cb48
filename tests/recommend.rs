//! Search for a rack: the recommended one reaches its target, with bandwidths that follow from the links.

mod support;

use serde_json::Value;
use support::{Ended, rack_file, rackloom, scratch, topology};

fn recommend(arguments: &[&str]) -> (Ended, Value) {
    let (file, json) = (topology("star-8.yaml"), scratch("recommend.json"));
    let (file, json) = (file.to_str().expect("a plain path"), json.to_str().expect("a plain path"));
    let ended =
        rackloom(&["recommend", file, "--collective", "all-reduce", "--json", json]).with(arguments).finish();
    let text = std::fs::read_to_string(json).unwrap_or_else(|_| "null".to_owned());
    (ended, serde_json::from_str(&text).expect("JSON"))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Links of 100 Gbit/s carry 12.5 GB/s, less 154 bytes around each 4096 of payload.
#[test]
fn the_largest_star_is_recommended_with_the_bandwidth_of_its_links() {
    let options = ["--bytes", "8MiB", "--nodes", "4,8", "--shapes", "star", "--target", "busbw=0.8"];
    let (ended, result) = recommend(&[&options[..], &["--algorithm", "two-shot,ring"]].concat());
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
    let best = &result["candidates"][result["recommended"].as_u64().expect("one") as usize];
    assert_eq!((best["nodes"].as_u64(), best["shape"].as_str()), (Some(8), Some("star")));
    assert_eq!((best["links"].as_u64(), best["switches"].as_u64()), (Some(8), Some(1)));
    let payload = 12.5 * 4096.0 / (4096.0 + 154.0);
    let found = number(&best["busbw_GBps"]);
    assert!((0.9..=1.001).contains(&(found / payload)), "{found} of {payload}");
    assert!((number(&best["of_node"]) - found / 12.5).abs() < 1e-9, "{best}");
    // The estimate has the bytes right as well.
    assert!((0.9..=1.1).contains(&(number(&best["estimated_ns"]) / number(&best["simulated_ns"]))), "{best}");
    assert!(ended.stdout.contains("recommended: 8 nodes, star"), "{}", ended.stdout);
    // The command of the recommendation runs.
    let command = best["command"].as_str().expect("a command");
    assert!(ended.stdout.contains(command), "{}", ended.stdout);
    let words: Vec<_> = command
        .split('\'')
        .enumerate()
        .flat_map(|(at, part)| match at % 2 {
            0 => part.split_whitespace().map(str::to_owned).collect::<Vec<_>>(),
            _ => vec![part.to_owned()],
        })
        .skip(1)
        .collect();
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    assert_eq!(
        rackloom(&words).with(&["--repetitions", "1", "--warm-up", "0"]).finish().code,
        Some(0),
        "{command}"
    );
}

#[test]
fn candidates_have_reasons_and_a_target_that_none_meets_is_said() {
    let options =
        ["--bytes", "64KiB", "--nodes", "4,300", "--planes", "1..2", "--target", "busbw=1.0", "--all"];
    let (ended, result) = recommend(&options);
    assert_eq!(ended.code, Some(1), "{}\n{}", ended.stdout, ended.stderr);
    assert!(result["recommended"].is_null());
    let candidates = result["candidates"].as_array().expect("a list");
    // Two planes, a ring and a mesh, of two sizes.
    assert_eq!(candidates.len(), 8);
    let reasons: Vec<_> = candidates.iter().map(|one| one["reason"].as_str().expect("a reason")).collect();
    assert!(reasons.iter().all(|reason| !reason.is_empty()), "{reasons:?}");
    let ring =
        candidates.iter().find(|one| one["shape"] == "ring" && one["nodes"] == 300).expect("a ring of 300");
    assert!(ring["reason"].as_str().is_some_and(|reason| reason.starts_with("cannot be built: ")), "{ring}");
    assert!(ended.stdout.contains("no candidate is known to meet"), "{}", ended.stdout);
}

#[test]
fn a_large_array_is_scaled_and_the_table_says_so() {
    let options = ["--bytes", "1GiB", "--nodes", "4", "--shapes", "full-mesh", "--target", "busbw=30GB/s"];
    let (ended, result) = recommend(&[&options[..], &["--frames-max", "20000"]].concat());
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
    let best = &result["candidates"][0];
    assert!(best["simulated_bytes"].as_u64().expect("a size") < 1 << 26, "{best}");
    assert!(best["reason"].as_str().expect("a reason").contains("scaled from "), "{best}");
    // Three links of 12.5 GB/s at most.
    let found = number(&best["busbw_GBps"]);
    assert!((30.0..=37.5).contains(&found), "{found}");
}

#[test]
fn mistakes_name_the_option_and_have_a_hint() {
    let usual = ["--bytes", "64KiB", "--nodes", "4"];
    for (arguments, part) in [
        (&["--target", "0.8"][..], "busbw=0.8"),
        (&["--target", "busbw=0.8", "--planes", "3..1"], "the smaller one first"),
        (&["--target", "busbw=0.8", "--set", "lnik.rate=1Gbit/s"], "lnik"),
        (&["--target", "busbw=0.8", "--algorithm", "rings"], "two-shot"),
    ] {
        let (ended, _) = recommend(&[&usual[..], arguments].concat());
        assert_eq!(ended.code, Some(2), "{arguments:?}\n{}", ended.stdout);
        assert!(ended.stderr.contains(part) && ended.stderr.contains("hint"), "{part} in\n{}", ended.stderr);
    }
    let file = rack_file("name: bare\nshape: {ring: {nodes: 4}}\n");
    let file = file.to_str().expect("a plain path");
    let options = ["--collective", "all-reduce", "--target", "busbw=0.8"];
    let ended = rackloom(&["recommend", file]).with(&options).with(&usual).finish();
    assert_eq!(ended.code, Some(2), "{}", ended.stdout);
    assert!(ended.stderr.contains("no rate") && ended.stderr.contains("link.rate"), "{}", ended.stderr);
    let options = ["--collective", "barrier", "--target", "busbw=0.8"];
    assert_eq!(rackloom(&["recommend", file]).with(&options).with(&usual).finish().code, Some(2));
}
