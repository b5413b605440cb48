//! Search for a rack: the recommended one reaches its target, with bandwidths that follow from the links.

mod support;

use std::path::Path;

use serde_json::Value;
use support::schema::mistakes;
use support::{Ended, rack_file, rackloom, scratch, topology};

fn recommend(arguments: &[&str]) -> (Ended, Value) {
    recommend_for(&topology("star-8.yaml"), arguments)
}

fn recommend_for(file: &Path, arguments: &[&str]) -> (Ended, Value) {
    let json = scratch("recommend.json");
    let (file, json) = (file.to_str().expect("a plain path"), json.to_str().expect("a plain path"));
    let ended =
        rackloom(&["recommend", file, "--collective", "all-reduce", "--json", json]).with(arguments).finish();
    let text = std::fs::read_to_string(json).unwrap_or_else(|_| "null".to_owned());
    let result: Value = serde_json::from_str(&text).expect("JSON");
    if !result.is_null() {
        assert_eq!(mistakes("recommend", &result), [""; 0]);
    }
    (ended, result)
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
    // Of each of two sizes: a star with one plane or two, a ring, a mesh, leaves with as many spines as nodes or half as many and with one
    // plane or two, tori of two and of three dimensions, and a hypercube.
    assert_eq!(candidates.len(), 2 * (2 + 1 + 1 + 2 * 2 + 2 + 1));
    let reasons: Vec<_> = candidates.iter().map(|one| one["reason"].as_str().expect("a reason")).collect();
    assert!(reasons.iter().all(|reason| !reason.is_empty()), "{reasons:?}");
    let ring =
        candidates.iter().find(|one| one["shape"] == "ring" && one["nodes"] == 300).expect("a ring of 300");
    assert!(ring["reason"].as_str().is_some_and(|reason| reason.starts_with("cannot be built: ")), "{ring}");
    assert!(ended.stdout.contains("no candidate is known to meet"), "{}", ended.stdout);
}

/// The number of segments is a setting of the job, which the rack file may not have.
#[test]
fn a_pipeline_is_simulated_with_its_segments() {
    let file = topology("star-8.yaml");
    let options = ["--bytes", "2MiB", "--nodes", "6", "--shapes", "star", "--target", "busbw=0.5"];
    let options = [&["--collective", "broadcast", "--algorithm", "ring-pipeline"][..], &options].concat();
    let json = scratch("recommend.json");
    let json = json.to_str().expect("a plain path");
    let ended = rackloom(&["recommend", file.to_str().expect("a plain path"), "--json", json])
        .with(&options)
        .finish();
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
    let text = std::fs::read_to_string(json).expect("a result");
    let result: Value = serde_json::from_str(&text).expect("JSON");
    let best = &result["candidates"][result["recommended"].as_u64().expect("one") as usize];
    let command = best["command"].as_str().expect("a command");
    assert!(command.contains("segments: ") && best["state"] == "simulated", "{best}");
    // The data crosses one link out of the root and one into each other node.
    assert!((0.5..=1.0).contains(&number(&best["of_node"])), "{best}");
}

/// A torus needs channels with datelines, and other shapes have none.
#[test]
fn the_channels_of_a_torus_do_not_hinder_other_shapes() {
    let options =
        ["--bytes", "64KiB", "--nodes", "8", "--shapes", "star,full-mesh,torus", "--target", "busbw=0.01"];
    let (ended, result) = recommend_for(&topology("torus-4x4.yaml"), &options);
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
    let candidates = result["candidates"].as_array().expect("a list");
    assert_eq!(candidates.len(), 4, "a star, a mesh and two tori");
    assert!(candidates.iter().all(|one| one["state"] != "impossible"), "{result}");
    let star = candidates.iter().find(|one| one["shape"] == "star").expect("a star");
    assert!(
        star["command"].as_str().is_some_and(|command| command.contains("channels.rise=never")),
        "{star}"
    );
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

/// Returns the candidates of a search, for which the sizes of a shape do not exist.
#[test]
fn numbers_of_nodes_that_a_shape_cannot_have_are_rejected_with_the_reason() {
    let shapes = ["--shapes", "torus,hypercube,leaf-spine", "--nodes", "6,7,8", "--target", "busbw=0.01"];
    let (ended, result) = recommend(&[&["--bytes", "64KiB", "--all"][..], &shapes].concat());
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
    let candidates = result["candidates"].as_array().expect("a list");
    let of = |nodes: u64, shape: &str| {
        let meant = candidates.iter().filter(|one| one["nodes"] == nodes && one["shape"] == shape);
        meant.map(|one| (one["sizes"].as_str().expect("a text"), one)).collect::<Vec<_>>()
    };
    let possible = |nodes: u64, shape: &str| {
        let possible = of(nodes, shape).into_iter().filter(|(_, one)| one["state"] != "impossible");
        let mut sizes: Vec<_> = possible.map(|(sizes, _)| sizes).collect();
        sizes.sort_unstable();
        sizes
    };
    assert_eq!(possible(8, "torus"), ["2x2x2", "4x2"]);
    assert_eq!(possible(6, "torus"), ["3x2"]);
    assert_eq!(possible(8, "leaf-spine"), ["4x2, 1 spine", "4x2, 2 spines"]);
    assert_eq!(possible(8, "hypercube"), [""]);
    for (nodes, shape, reason) in [
        (7, "torus", "the number of nodes is prime"),
        (6, "torus", "fewer than three factors"),
        (6, "hypercube", "no power of two"),
        (7, "leaf-spine", "the number of nodes is prime"),
    ] {
        let rejected = of(nodes, shape).into_iter().filter(|(_, one)| one["state"] == "impossible");
        let reasons: Vec<_> = rejected.map(|(_, one)| one["reason"].as_str().expect("a text")).collect();
        assert!(!reasons.is_empty(), "{nodes} nodes, {shape}");
        assert!(reasons.iter().any(|text| text.contains(reason)), "{nodes} nodes, {shape}: {reasons:?}");
        assert!(ended.stdout.contains(reason), "{reason} in\n{}", ended.stdout);
    }
    // If no number has such a rack, the command line is wrong.
    let (ended, _) =
        recommend(&["--bytes", "64KiB", "--shapes", "hypercube", "--nodes", "6", "--target", "busbw=1.0"]);
    assert_eq!(ended.code, Some(2), "{}", ended.stdout);
    assert!(ended.stderr.contains("no power of two") && ended.stderr.contains("--nodes"), "{}", ended.stderr);
}

/// Rack of sixteen nodes, algorithm and policy of paths, and the band in which the estimate over the simulated time must lie.
struct Band {
    shape: &'static str,
    sizes: &'static str,
    planes: u64,
    algorithm: &'static str,
    policy: &'static str,
    least: f64,
    most: f64,
}

const fn band(
    (shape, sizes, planes): (&'static str, &'static str, u64),
    (algorithm, policy): (&'static str, &'static str),
    (least, most): (f64, f64),
) -> Band {
    Band { shape, sizes, planes, algorithm, policy, least, most }
}

/// Band of racks whose links are used as the model counts them.
const NEAR: (f64, f64) = (0.9, 1.1);
/// Band of racks whose flows share links by chance.
const DRAWN: (f64, f64) = (0.75, 1.35);

const WIDE: &str = "4x4, 4 spines";
const NARROW: &str = "4x4, 2 spines";

const BANDS: [Band; 34] = [
    band(("star", "", 1), ("two-shot", "flow"), NEAR),
    band(("ring", "", 1), ("ring", "flow"), NEAR),
    band(("full-mesh", "", 1), ("two-shot", "flow"), NEAR),
    band(("leaf-spine", WIDE, 1), ("ring", "flow"), NEAR),
    band(("leaf-spine", WIDE, 1), ("two-shot", "destination"), NEAR),
    band(("leaf-spine", NARROW, 1), ("two-shot", "destination"), NEAR),
    band(("leaf-spine", NARROW, 1), ("halving-doubling", "destination"), NEAR),
    band(("leaf-spine", WIDE, 1), ("two-shot", "flow"), DRAWN),
    band(("leaf-spine", NARROW, 1), ("two-shot", "flow"), DRAWN),
    band(("leaf-spine", WIDE, 1), ("halving-doubling", "flow"), DRAWN),
    band(("hypercube", "", 1), ("ring", "flow"), NEAR),
    band(("hypercube", "", 1), ("two-shot", "flow"), NEAR),
    band(("hypercube", "", 1), ("halving-doubling", "flow"), NEAR),
    band(("torus", "4x4", 1), ("ring", "flow"), NEAR),
    band(("torus", "4x4", 1), ("bidirectional-ring", "flow"), NEAR),
    band(("torus", "4x2x2", 1), ("ring", "flow"), NEAR),
    band(("torus", "4x4", 1), ("two-shot", "flow"), (0.65, 1.1)),
    band(("torus", "4x4", 1), ("halving-doubling", "flow"), (0.65, 1.1)),
    band(("torus", "4x2x2", 1), ("two-shot", "flow"), (0.65, 1.1)),
    // Here destinations alternate between both directions of the only ring, and the model assumes one direction.
    band(("torus", "4x2x2", 1), ("two-shot", "destination"), (1.3, 1.6)),
    // A flow uses one plane.
    band(("star", "", 3), ("ring", "flow"), NEAR),
    band(("star", "", 4), ("halving-doubling", "flow"), NEAR),
    band(("star", "", 3), ("two-shot", "flow"), DRAWN),
    band(("star", "", 4), ("two-shot", "address"), DRAWN),
    band(("leaf-spine", NARROW, 4), ("ring", "flow"), NEAR),
    band(("leaf-spine", NARROW, 3), ("two-shot", "flow"), DRAWN),
    band(("leaf-spine", WIDE, 4), ("halving-doubling", "flow"), DRAWN),
    // A node receives over one plane.
    band(("star", "", 4), ("two-shot", "destination"), NEAR),
    band(("star", "", 3), ("bidirectional-ring", "destination"), NEAR),
    band(("leaf-spine", WIDE, 4), ("two-shot", "destination"), NEAR),
    band(("leaf-spine", NARROW, 3), ("two-shot", "destination"), NEAR),
    // Packets use all planes, and leaves hash the flows of each.
    band(("star", "", 3), ("two-shot", "round-robin"), NEAR),
    band(("star", "", 4), ("ring", "round-robin"), (0.85, 1.1)),
    band(("leaf-spine", NARROW, 4), ("two-shot", "round-robin"), DRAWN),
];

/// Returns estimate over simulation, as the search prints both, of an all-reduce of 4 MiB.
fn ratio(band: &Band) -> f64 {
    let Band { shape, sizes, planes, algorithm, policy, .. } = band;
    let options = ["--bytes", "4MiB", "--nodes", "16", "--shapes", shape, "--algorithm", algorithm];
    let (policy, planes) = (format!("paths.policy={policy}"), planes.to_string());
    let more = ["--planes", &planes, "--target", "busbw=0.001", "--best", "8", "--set", &policy];
    let (ended, result) = recommend(&[&options[..], &more].concat());
    let candidates = result["candidates"].as_array().expect("a list").iter();
    let one = candidates.into_iter().find(|one| one["sizes"] == *sizes);
    let one = one.unwrap_or_else(|| panic!("{shape} {sizes} in\n{}\n{}", ended.stdout, ended.stderr));
    assert_eq!(one["state"], "simulated", "{one}");
    number(&one["estimated_ns"]) / number(&one["simulated_ns"])
}

/// Links that the model counts, and frames, queues and switches of the simulation. The bands are stated in docs/how-to/sweeps.md.
#[test]
fn estimates_of_every_shape_are_near_the_simulation() {
    let mut wrong = Vec::new();
    for band in &BANDS {
        let (found, Band { shape, sizes, planes, algorithm, policy, least, most }) = (ratio(band), band);
        println!("{shape} {sizes}, planes {planes}, {algorithm}, {policy}: {found:.2}");
        if !(*least..=*most).contains(&found) {
            wrong.push(format!(
                "{shape} {sizes}, planes {planes}, {algorithm}, {policy}: {found:.2}, not {least} to {most}"
            ));
        }
    }
    assert_eq!(wrong, [""; 0]);
}

/// Algorithms of an all-reduce that nodes perform alone.
const ALGORITHMS: [&str; 5] = ["ring", "bidirectional-ring", "one-shot", "two-shot", "halving-doubling"];

/// Largest factor between the time of the named algorithm and that of the best one.
const CHOSEN_MAX: f64 = 1.3;

/// Returns the estimate and the simulated time of an all-reduce on eight nodes, and the algorithm.
fn on_device(file: &Path, shape: &str, bytes: &str, algorithms: &[&str]) -> (f64, f64, String) {
    let options = ["--bytes", bytes, "--nodes", "8", "--shapes", shape, "--target", "busbw=0.0001"];
    let named = algorithms.iter().flat_map(|name| ["--algorithm", *name]);
    let (ended, result) = recommend_for(file, &options.into_iter().chain(named).collect::<Vec<_>>());
    let one = &result["candidates"][0];
    assert_eq!(one["state"], "simulated", "{one}\n{}", ended.stderr);
    let algorithm = one["algorithm"].as_str().expect("a name").to_owned();
    (number(&one["estimated_ns"]), number(&one["simulated_ns"]), algorithm)
}

/// Memory, arithmetic and engines of a node limit it more than its links do.
#[test]
fn estimates_know_the_device_and_name_the_algorithm_that_is_best_with_it() {
    let devices = [
        ("memory_rate: 200Gbit/s", ["star", "full-mesh"]),
        ("reduction_rate: 50Gbit/s", ["star", "ring"]),
        ("bulk_engines: 1, bulk_in_flight: 1, bulk_latency: 5us", ["star", "full-mesh"]),
        (
            "memory_rate: 200Gbit/s, bulk_engines: 1, bulk_in_flight: 1, bulk_latency: 5us",
            ["star", "full-mesh"],
        ),
    ];
    let mut wrong = Vec::new();
    for (device, shapes) in devices {
        let file = rack_file(&format!(
            "name: device\nshape: {{star: {{nodes: 8}}}}\nlink: {{rate: 100Gbit/s, delay: 500ns}}\ndevice: {{{device}}}\n"
        ));
        for shape in shapes {
            for bytes in ["256KiB", "2MiB"] {
                let mut best_ns = f64::MAX;
                for algorithm in ALGORITHMS {
                    let (estimate_ns, simulated_ns, _) = on_device(&file, shape, bytes, &[algorithm]);
                    let found = estimate_ns / simulated_ns;
                    println!("{device}, {shape}, {bytes}, {algorithm}: {found:.2}");
                    // Each direction of a bidirectional ring sends while the other one reduces, and the model adds both.
                    let most = if algorithm == "bidirectional-ring" { 1.45 } else { 1.15 };
                    if !(0.85..=most).contains(&found) {
                        wrong.push(format!("{device}, {shape}, {bytes}, {algorithm}: {found:.2}"));
                    }
                    best_ns = best_ns.min(simulated_ns);
                }
                let (_, chosen_ns, algorithm) = on_device(&file, shape, bytes, &[]);
                // For that reason a bidirectional ring is not named where it is the best one.
                if chosen_ns > CHOSEN_MAX * best_ns {
                    wrong.push(format!(
                        "{device}, {shape}, {bytes}: {algorithm} takes {chosen_ns} ns, the best {best_ns} ns"
                    ));
                }
            }
        }
    }
    assert_eq!(wrong, [""; 0]);
}

/// `recommend` prints commands for `sim`, so it refuses the arrays that `sim` refuses.
#[test]
fn an_array_of_no_whole_elements_is_refused_as_in_a_simulation() {
    let file = topology("star-8.yaml");
    let file = file.to_str().expect("a plain path");
    let array = ["--collective", "all-reduce", "--bytes", "3", "--type", "f32"];
    let simulated = rackloom(&["sim", file]).with(&array).finish();
    let searched =
        rackloom(&["recommend", file]).with(&array).with(&["--nodes", "8", "--target", "busbw=0.1"]).finish();
    assert!(simulated.stderr.contains("3B are no whole number of f32 elements"), "{}", simulated.stderr);
    assert_eq!((searched.code, &searched.stderr), (simulated.code, &simulated.stderr));
    assert_eq!(searched.code, Some(2));
}

/// Sixteen times as many nodes send 256 times as many frames in a one-shot: hours, where the small rack takes a second.
const LONG: [&str; 10] = [
    "--bytes",
    "64MiB",
    "--shapes",
    "star",
    "--algorithm",
    "one-shot",
    "--target",
    "busbw=0.001",
    "--frames-max",
    "10000000000",
];

#[test]
fn a_simulation_that_would_take_longer_than_the_limit_is_not_begun() {
    let (ended, result) = recommend(&[&LONG[..], &["--nodes", "4,64", "--time-limit", "30s"]].concat());
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
    assert_eq!((&result["is_complete"], &result["time_limit_s"]), (&false.into(), &30.0.into()));
    let [large, small] = [0, 1].map(|index| &result["candidates"][index]);
    assert_eq!(
        (&large["state"], &small["state"]),
        (&"not-simulated".into(), &"simulated".into()),
        "{result}"
    );
    assert!(large["reason"].as_str().is_some_and(|reason| reason.contains("would take about")), "{large}");
    assert_eq!(result["recommended"], 1);
    let stated = "1 of 2 simulations ended; not simulated: 64 nodes, star";
    for part in [stated, "among those that were simulated"] {
        assert!(ended.stdout.contains(part), "{part} in\n{}", ended.stdout);
    }
    assert!(ended.stderr.contains("1 more simulations, about "), "{}", ended.stderr);
    assert!(number(&result["elapsed_s"]) < 30.0, "{result}");
}

#[test]
fn a_simulation_is_ended_at_the_time_limit() {
    for (limit, state, part) in
        [("4s", "not-simulated", "came, after "), ("0s", "not-built", "came before its build")]
    {
        let (ended, result) = recommend(&[&LONG[..], &["--nodes", "64", "--time-limit", limit]].concat());
        assert_eq!(ended.code, Some(7), "{}\n{}", ended.stdout, ended.stderr);
        let one = &result["candidates"][0];
        assert_eq!((&one["state"], &result["recommended"]), (&state.into(), &Value::Null), "{result}");
        assert!(one["reason"].as_str().is_some_and(|reason| reason.contains(part)), "{part} in {one}");
        assert!(ended.stdout.contains("--time-limit"), "{}", ended.stdout);
        // Hours without a limit.
        assert!(number(&result["elapsed_s"]) < 60.0, "{result}");
    }
}

/// Up to 32 planes of 1024 nodes take most of a minute to build. Small racks are built and simulated before.
#[test]
fn the_time_limit_bounds_the_builds_of_candidates_and_says_which_were_not_built() {
    let options = ["--bytes", "64KiB", "--nodes", "4,8,512,1000,1024", "--planes", "1..32", "--all"];
    let (ended, result) =
        recommend(&[&options[..], &["--target", "busbw=0.01", "--time-limit", "6s"]].concat());
    assert!([Some(0), Some(7)].contains(&ended.code), "{}\n{}", ended.stdout, ended.stderr);
    // One simulation may be built again, and a check may come late on a busy host.
    assert!(number(&result["elapsed_s"]) < 12.0, "{}", result["elapsed_s"]);
    assert_eq!(result["is_complete"], false);
    let candidates = result["candidates"].as_array().expect("a list");
    let of = |state: &str| candidates.iter().filter(|one| one["state"] == state).collect::<Vec<_>>();
    let (not_built, estimated) = (of("not-built"), of("estimated"));
    assert!(not_built.iter().any(|one| one["nodes"] == 1024), "{}", ended.stdout);
    assert!(not_built.iter().all(|one| one["nodes"].as_u64() >= Some(512)), "{}", ended.stdout);
    assert!(estimated.iter().any(|one| one["nodes"] == 8), "{}", ended.stdout);
    for one in not_built {
        let reason = one["reason"].as_str().expect("a text");
        let is_stated = ["would take about", "came before its build", "came, after"]
            .iter()
            .any(|part| reason.contains(part));
        assert!(reason.starts_with("not built: ") && is_stated, "{one}");
        assert!(one["estimated_ns"].is_null() && one["command"] == "", "{one}");
    }
    assert!(ended.stdout.contains("candidates were built; not built: "), "{}", ended.stdout);
    // Without a limit that comes, all are built.
    let small = ["--bytes", "64KiB", "--nodes", "4,8", "--planes", "1..32", "--target", "busbw=0.01"];
    let (_, result) = recommend(&small);
    assert_eq!(result["is_complete"], true);
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
