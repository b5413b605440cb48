//! Captures agree with the report, on every wire and in the simulator.
//!
//! A report counts; a capture shows each frame once, and each fault on the frame that it struck. `tests/dissector.rs` tests
//! the view of Wireshark on the files.

mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use support::{
    Ended, Rackloom, Running, injected, over_links, rack_file, rackloom, run, scratch, send, sim, within,
};

/// Three nodes, so that frames are also forwarded.
const RING: &str = "name: r3\nshape: {ring: {nodes: 3}}\n";
const FAULTS: [&str; 8] = ["--loss", "1%", "--corrupt", "0.5%", "--duplicate", "1%", "--reorder", "1%"];
const LINKS: [&str; 3] = ["n0-p0--n1-p1.pcapng", "n1-p0--n2-p1.pcapng", "n2-p0--n0-p1.pcapng"];

fn text(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

/// Returns the names in a directory.
fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("the directory is there");
    let mut names: Vec<_> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    names
}

fn decode(path: &Path, options: &[&str]) -> Ended {
    rackloom(&[&["decode", text(path)][..], options].concat()).finish()
}

/// Returns the frames of a valid capture.
fn frames(path: &Path) -> Vec<Value> {
    let ended = decode(path, &["--json"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    ended.stdout.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}

fn comments(frame: &Value) -> impl Iterator<Item = &str> {
    frame["comments"].as_array().expect("a list").iter().map(|comment| comment.as_str().expect("text"))
}

/// Returns the number of comments with this beginning.
fn commented(frames: &[Value], beginning: &str) -> u64 {
    frames.iter().flat_map(comments).filter(|comment| comment.starts_with(beginning)).count() as u64
}

/// Returns the frames of all captures of a directory, each once and in order of time.
fn all_frames(directory: &Path) -> Vec<Value> {
    assert_eq!(names(directory), LINKS, "one file per link and nothing else");
    let mut all = Vec::new();
    for name in LINKS {
        let frames = frames(&directory.join(name));
        let times: Vec<_> = frames.iter().map(|frame| frame["time_ns"].as_u64().expect("a time")).collect();
        assert!(times.is_sorted(), "{name} is in order of time");
        let from = |end: usize| {
            let end = name.trim_end_matches(".pcapng").split("--").nth(end).expect("two ends").to_owned();
            frames.iter().filter(|frame| frame["interface"] == end.as_str()).count()
        };
        assert_eq!(from(0) + from(1), frames.len(), "{name}");
        assert!(from(0) > 10 && from(1) > 10, "{name}: both ends speak");
        all.extend(frames);
    }
    all
}

/// Returns the number of frames that receivers dropped, by reason. Frames that faults removed have comments of their own.
fn dropped_by_reason(report: &Value) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for link in report["links"].as_array().expect("a list of links") {
        for (reason, count) in link["dropped"].as_object().expect("a table") {
            *sums.entry(reason.clone()).or_default() += count.as_u64().expect("a count");
        }
    }
    let taken_away = sums.remove("injected").unwrap_or(0);
    assert_eq!(taken_away, injected(report, "dropped"), "the link table shows them as well");
    sums
}

fn dropped_by_comment(frames: &[Value]) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    let reasons = frames.iter().flat_map(comments).filter_map(|comment| comment.strip_prefix("dropped by "));
    for reason in reasons {
        let (_, reason) = reason.split_once(": ").expect("end and reason");
        *sums.entry(reason.to_owned()).or_default() += 1;
    }
    sums
}

#[test]
fn the_simulators_captures_hold_every_frame_and_every_fault() {
    let directory = scratch("captures");
    let file = rack_file(RING);
    let ended = sim(&file).with(&["--capture", text(&directory)]).with(&FAULTS).finish();
    let report = ended.passed();
    let frames = all_frames(&directory);
    assert_eq!(frames.len() as u64, over_links(&report, |link| link["frames"].as_u64().expect("a count")));
    for (comment, what) in [
        ("injected: dropped", "dropped"),
        ("injected: corrupted", "corrupted"),
        ("injected: duplicated", "duplicated"),
        ("injected: delayed", "reordered"),
    ] {
        assert!(injected(&report, what) > 0);
        assert_eq!(commented(&frames, comment), injected(&report, what), "{comment}");
    }
    let by_comment = dropped_by_comment(&frames);
    assert_eq!(by_comment, dropped_by_reason(&report));
    for reason in ["hop-check", "duplicate"] {
        assert!(by_comment.contains_key(reason), "{by_comment:?}");
    }
    assert!(frames.iter().all(|frame| frame["direction"] == "outbound"), "no other sender was on the link");
}

/// Compares the link table with captures of a ring of four, whose nodes forward frames. Without corruption, because corruption may change the kind
/// of a captured frame.
#[test]
fn the_link_table_counts_data_control_and_forwarded_frames_like_the_capture() {
    let directory = scratch("kinds");
    let faults = ["--capture", text(&directory), "--loss", "1%", "--duplicate", "1%"];
    let report = sim(&rack_file("name: r4\nshape: {ring: {nodes: 4}}\n")).with(&faults).finish().passed();
    let captured: Vec<_> = names(&directory).iter().flat_map(|name| frames(&directory.join(name))).collect();
    let mut forwarded = 0;
    for link in report["links"].as_array().expect("a list of links") {
        let (sender, receiver) =
            link["name"].as_str().and_then(|name| name.split_once("->")).expect("a direction");
        // Port 0 of a node of a ring leads to the node with the next number.
        let is_next = [("n0", "n1"), ("n1", "n2"), ("n2", "n3"), ("n3", "n0")].contains(&(sender, receiver));
        let port = format!("{sender}-p{}", u8::from(!is_next));
        let sent: Vec<_> = captured.iter().filter(|frame| frame["interface"] == port.as_str()).collect();
        let data = sent.iter().filter(|frame| frame["kind"] == "data").count();
        let sources = sent.iter().filter_map(|frame| Some(format!("n{}", frame["source"].as_u64()?)));
        let of_others = sources.filter(|source| source != sender).count();
        assert_eq!(link["data_frames"], data, "{link}");
        assert_eq!(link["control_frames"], sent.len() - data, "{link}");
        assert_eq!(link["forwarded"], of_others, "{link}");
        assert!(data > 0 && sent.len() > data, "{link}");
        forwarded += of_others;
    }
    assert!(forwarded > 0, "some paths have two hops");
}

/// Without corruption frames carry their payload by reference. A capture shows the bytes in this case as
/// well.
#[test]
fn a_simulated_capture_without_corruption_changes_nothing_and_holds_the_bytes() {
    for (more, options) in [
        ("", &["--collective", "all-reduce", "--bytes", "64KiB", "--repetitions", "2"][..]),
        ("", &["--loss", "1%", "--duplicate", "1%", "--reorder", "1%"][..]),
        ("link: {rate: 100Gbit/s, llr: on, loss: 0.5%}\n", &[]),
        ("checks: always\n", &[]),
        ("payload: elided\njob: {bandwidth: {bytes: 64KiB, repetitions: 4}}\n", &[]),
    ] {
        let directory = scratch("captures");
        let file = rack_file(&format!("{RING}{more}"));
        let hash =
            |more: &[&str]| sim(&file).with(options).with(more).finish().passed()["trace_hash"].clone();
        assert_eq!(hash(&["--capture", text(&directory)]), hash(&[]), "{more} {options:?}");
        let frames = all_frames(&directory);
        assert!(commented(&frames, "dropped by n0-p0: hop-check") == 0, "{more} {options:?}");
    }
}

#[test]
fn a_simulated_capture_changes_nothing_and_repeats_to_the_byte() {
    let file = rack_file(RING);
    let (first, second) = (scratch("first"), scratch("second"));
    let hash =
        |options: &[&str]| sim(&file).with(options).with(&FAULTS).finish().passed()["trace_hash"].clone();
    let without = hash(&[]);
    for directory in [&first, &second] {
        assert_eq!(hash(&["--capture", text(directory)]), without);
    }
    for name in LINKS {
        let bytes = |directory: &Path| std::fs::read(directory.join(name)).expect("a capture");
        assert!(bytes(&first) == bytes(&second), "{name} differs");
    }
}

/// A report is made before the last frames of a run: a capture contains at least the frames that it counts.
fn captures_of_processes_hold_what_the_report_counts(wire: &str) {
    let directory = scratch("captures");
    let file = rack_file(RING);
    let options = ["--capture", text(&directory), "--wire", wire];
    let report = run(&file).with(&options).with(&FAULTS).finish().passed();
    let frames = all_frames(&directory);
    assert_eq!(commented(&frames, "capture: "), 0, "nothing was left out");
    let counted = over_links(&report, |link| link["frames"].as_u64().expect("a count"));
    assert!(frames.len() as u64 >= counted, "{} frames of {counted}", frames.len());
    for (comment, what) in [("injected: dropped", "dropped"), ("injected: corrupted", "corrupted")] {
        let (shown, counted) = (commented(&frames, comment), injected(&report, what));
        assert!(counted > 0 && shown >= counted, "{comment}: {shown} of {counted}");
    }
    let by_comment = dropped_by_comment(&frames);
    for (reason, counted) in dropped_by_reason(&report) {
        let shown = by_comment.get(&reason).copied().unwrap_or_default();
        assert!(shown >= counted, "{reason}: {shown} of {counted}");
    }
    let foreign = frames.iter().filter(|frame| frame["direction"] == "inbound").count();
    assert_eq!(foreign, 0, "every frame that was not used is found where it was sent");
}

#[test]
fn captures_over_shared_memory_hold_what_the_report_counts() {
    captures_of_processes_hold_what_the_report_counts("shared-memory");
}

#[test]
fn captures_of_raw_frames_hold_what_the_report_counts() {
    captures_of_processes_hold_what_the_report_counts("packet");
}

/// Starts a rack whose litmus does not end by itself within any test.
fn busy_rack(directory: &Path) -> Running {
    let job = "job: {litmus: {bytes_max: 64KiB, rounds: 100000}}\n";
    let options = ["--capture", text(directory), "--capture-bytes", "2MiB"];
    run(&rack_file(&format!("{RING}{job}"))).with(&options).start()
}

#[test]
fn a_killed_node_leaves_captures_that_can_be_read() {
    let directory = scratch("captures");
    let mut rack = busy_rack(&directory);
    let members = rack.members();
    // Wait until part of it has been written.
    within(Duration::from_secs(60), "the first frames on disk", || {
        let parts = std::fs::read_dir(&directory).ok()?;
        let sizes = parts.filter_map(|part| part.ok()?.metadata().ok()).map(|part| part.len());
        (sizes.filter(|bytes| *bytes > 4096).count() >= 6).then_some(())
    });
    send(members.pid("n1"), Signal::KILL);
    let ended = rack.finish();
    assert_eq!(ended.code, Some(4), "{}\n{}", ended.stdout, ended.stderr);
    let frames = all_frames(&directory);
    assert!(frames.iter().any(|frame| frame["kind"] == "data" && frame["source"] == 1));
}

#[test]
fn the_capture_parts_of_a_killed_supervisor_can_be_read() {
    let directory = scratch("captures");
    let mut rack = busy_rack(&directory);
    let members = rack.members();
    send(rack.supervisor(), Signal::KILL);
    members.all_gone(Duration::from_secs(60));
    drop(rack);
    let parts = names(&directory);
    assert_eq!(parts.len(), 6, "each end of each link wrote one: {parts:?}");
    for part in parts {
        let ended = decode(&directory.join(&part), &[]);
        let is_torn = ended.stderr.contains("the file ends within a block");
        assert!(
            ended.code == Some(0) || is_torn || ended.stderr.contains("the file is empty"),
            "{}",
            ended.stderr
        );
    }
}

#[test]
fn a_standing_rack_has_its_captures_when_it_is_down() {
    let (directory, session) = (scratch("captures"), scratch("session"));
    std::fs::create_dir_all(&session).expect("a scratch folder");
    let file = rack_file("name: stays\nshape: {ring: {nodes: 3}}\n");
    let up =
        rackloom(&["up", text(&file), "--capture", text(&directory)]).in_run_directory(&session).finish();
    assert_eq!(up.code, Some(0), "{}", up.stderr);
    assert_eq!(names(&directory).len(), 6, "a part per end while it is up");
    let down = rackloom(&["down", "stays"]).in_run_directory(&session).finish();
    assert_eq!(down.code, Some(0), "{}", down.stderr);
    assert_eq!(names(&directory), LINKS);
    let hello = frames(&directory.join(LINKS[0])).into_iter().find(|frame| frame["kind"] == "hello");
    assert!(hello.is_some_and(|hello| hello["hello"]["frame_bytes_max"].as_u64() > Some(1000)));
}

#[test]
fn a_capture_stops_at_its_limit_with_a_note() {
    let directory = scratch("captures");
    let options = ["--capture", text(&directory), "--capture-bytes", "128KiB"];
    let ended = sim(&rack_file(RING)).with(&options).finish();
    let report = ended.passed();
    let notes = report["notes"].as_array().expect("a list of notes").iter();
    assert_eq!(notes.filter(|note| note.as_str().is_some_and(|note| note.contains("is full"))).count(), 3);
    for name in LINKS {
        let path = directory.join(name);
        let length = std::fs::metadata(&path).expect("a capture").len();
        assert!((128 << 10..(128 << 10) + 10_000).contains(&length), "{name}: {length} bytes");
        let frames = frames(&path);
        let last = frames.last().expect("frames");
        assert_eq!(comments(last).last(), Some("capture: full at 131072 bytes, later frames are missing"));
    }
}

/// Returns a small capture with known contents.
fn small_capture() -> PathBuf {
    let directory = scratch("captures");
    let rack = "name: small\nshape: {ring: {nodes: 3}}\njob: none\n";
    sim(&rack_file(rack)).with(&["--capture", text(&directory)]).finish().passed();
    directory.join(LINKS[0])
}

#[test]
fn decode_shows_the_selected_frames() {
    let path = small_capture();
    let lines = |options: &[&str]| {
        let ended = decode(&path, options);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        ended.stdout.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let all = lines(&[]);
    assert!(all.len() > 4);
    assert_eq!(lines(&["--first", "3"]), all[..3]);
    let hellos = lines(&["--kind", "hello"]);
    assert!(!hellos.is_empty() && hellos.len() < all.len());
    assert!(hellos.iter().all(|line| line.contains("  hello n")));
    let of_n1 = lines(&["--node", "n1"]);
    assert!(!of_n1.is_empty() && of_n1.iter().all(|line| line.contains("  n1-p1 >  ")), "{of_n1:#?}");
    assert!(lines(&["--kind", "atomic"]).is_empty());
}

/// Writes the frames of a capture as a classic pcap file with times in nanoseconds.
fn as_classic(path: &Path, is_big_endian: bool) -> PathBuf {
    let capture = std::fs::File::open(path).expect("a capture");
    let mut reader = rackloom_capture::Reader::new(std::io::BufReader::new(capture));
    let number = |number: u32| if is_big_endian { number.to_be_bytes() } else { number.to_le_bytes() };
    let version = if is_big_endian { [0, 2, 0, 4] } else { [2, 0, 4, 0] };
    let mut file = [number(0xa1b2_3c4d), version].concat();
    file.extend([0, 0, 1 << 18, 1].map(number).concat());
    while let Some(record) = reader.next_record().expect("it is whole") {
        let length = record.frame.len() as u32;
        let (seconds, fraction) = (record.timestamp_ns / 1_000_000_000, record.timestamp_ns % 1_000_000_000);
        file.extend([seconds as u32, fraction as u32, length, length].map(number).concat());
        file.extend_from_slice(record.frame);
    }
    let classic = scratch("classic.pcap");
    std::fs::write(&classic, file).expect("it can be written");
    classic
}

#[test]
fn decode_reads_classic_files_and_standard_input() {
    let path = small_capture();
    let frames = |ended: support::Ended| {
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let lines = ended.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON"));
        lines.collect::<Vec<serde_json::Value>>()
    };
    let expected = frames(decode(&path, &["--json"]));
    assert!(expected.len() > 4);
    for is_big_endian in [false, true] {
        let found = frames(decode(&as_classic(&path, is_big_endian), &["--json"]));
        assert_eq!(found.len(), expected.len());
        for (found, mut expected) in found.into_iter().zip(expected.clone()) {
            // A classic file has neither names nor directions nor comments.
            expected["interface"] = "".into();
            expected["direction"] = "unknown".into();
            expected["comments"] = serde_json::json!([]);
            assert_eq!(found, expected);
        }
    }
    let piped = |options: &[&str]| {
        let command = std::process::Command::new(env!("CARGO_BIN_EXE_rackloom"))
            .args(["decode", "-"])
            .args(options)
            .stdin(std::fs::File::open(&path).expect("a capture"))
            .output()
            .expect("it starts");
        assert!(command.status.success(), "{}", String::from_utf8_lossy(&command.stderr));
        String::from_utf8(command.stdout).expect("text")
    };
    assert_eq!(piped(&["--kind", "hello"]), decode(&path, &["--kind", "hello"]).stdout);
    assert_eq!(piped(&[]), decode(&path, &[]).stdout);
}

#[test]
fn decode_refuses_unreadable_files_with_position_and_hint() {
    let path = small_capture();
    let whole = std::fs::read(&path).expect("a capture");
    let lines = decode(&path, &[]).stdout.lines().count();
    std::fs::write(&path, &whole[..whole.len() - 7]).expect("it can be written");
    let torn = decode(&path, &[]);
    assert_eq!((torn.code, torn.stdout.lines().count()), (Some(2), lines - 1), "what is whole is shown");
    let classic = scratch("classic.pcap");
    std::fs::write(&classic, [0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0]).expect("it can be written");
    let cases = [
        (torn, ["the file ends within a block", ", byte "]),
        (decode(&classic, &[]), ["the file ends within a block", ", byte 0"]),
        (decode(&rack_file(RING), &[]), ["this is neither a pcapng nor a pcap file", "where: "]),
        (decode(Path::new("no-such.pcapng"), &[]), ["cannot read: No such file", "where: no-such.pcapng"]),
        (decode(Path::new("/"), &[]), ["cannot read: ", "where: /"]),
    ];
    for (ended, parts) in cases {
        assert_eq!(ended.code, Some(2));
        for part in parts.iter().chain(&["error: ", "where: ", "hint: "]) {
            assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
        }
    }
    std::fs::write(&path, &whole).expect("it can be written");
    let unknown = decode(&path, &["--node", "n9"]);
    assert_eq!(unknown.code, Some(2));
    assert!(
        unknown.stderr.contains("has no n9") && unknown.stderr.contains("n0, n1, n2"),
        "{}",
        unknown.stderr
    );
}

#[test]
fn an_impossible_capture_is_refused_before_anything_starts() {
    let file = rack_file(RING);
    for command in ["run", "sim", "up"] {
        for (options, part) in [
            (&["--capture", "/proc/none"][..], "cannot make the directory of captures"),
            (&["--capture", "/tmp", "--capture-bytes", "1KiB"], "64KiB at least"),
            (&["--capture-bytes", "1MiB"], "--capture <DIR>"),
        ] {
            let ended = rackloom(&[&[command, text(&file)][..], options].concat()).finish();
            assert_eq!(ended.code, Some(2), "{command} {options:?}");
            assert!(ended.stderr.contains(part), "{}", ended.stderr);
        }
    }
}

/// `fold` of docs/litmus-job.md, computed from the page alone.
fn fold(seed: u64, parts: &[u64]) -> u64 {
    let mix = |value: u64| {
        let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    };
    parts.iter().fold(mix(seed), |sum, part| mix(sum ^ mix(*part)).rotate_left(17))
}

/// Returns how often the keys that follow from the seed of the rack file are in the captures of a litmus.
fn guessable_keys(command: Rackloom, seed: u64) -> usize {
    let directory = scratch("keys");
    let ended = command.with(&["--seed", &seed.to_string(), "--capture", text(&directory)]).finish();
    ended.passed();
    // Region 2 of every node: every litmus writes there.
    let keys: Vec<_> = (0..3).map(|owner| fold(seed, &[5, owner, 2]).to_le_bytes()).collect();
    let files =
        names(&directory).into_iter().map(|name| std::fs::read(directory.join(name)).expect("a capture"));
    files.map(|bytes| bytes.windows(8).filter(|window| keys.iter().any(|key| key == window)).count()).sum()
}

#[test]
fn keys_of_regions_follow_from_the_seed_in_virtual_time_alone() {
    let file = rack_file(&format!("{RING}job: {{litmus: {{rounds: 1, bytes_max: 4KiB}}}}\n"));
    assert!(guessable_keys(sim(&file), 77) > 100, "keys follow from the seed as on the page");
    assert_eq!(guessable_keys(run(&file), 77), 0, "between processes they are a secret of the run");
}
