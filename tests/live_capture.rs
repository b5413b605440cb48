//! Frames of a rack that is up, as `rackloom capture` and Wireshark get them while they are recorded.

mod support;

use std::fs::Permissions;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal};
use serde_json::Value;
use support::session::Session;
use support::wires::not_tried;
use support::{rack_file, rackloom, root, scratch, send, within};

const TIMEOUT: Duration = Duration::from_secs(60);
/// Exit code of `timeout` for a program that is not there.
const NOT_FOUND: i32 = 127;
/// File of the first link, when the rack has ended.
const FILE: &str = "n0-p0--n1-p1.pcapng";

fn text(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

/// Starts a rack that records frames. Returns the folder of its captures.
fn recording(session: &Session) -> PathBuf {
    let directory = scratch("captured");
    let rack = rack_file("name: live\nshape: {ring: {nodes: 3}}\njob: none\n");
    session.passes(&["up", text(&rack), "--capture", text(&directory)]);
    directory
}

/// Command that runs beside others; ended on drop.
struct Beside(Child);

impl Beside {
    fn start(session: &Session, arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rackloom"));
        command.args(arguments).env("XDG_RUNTIME_DIR", &session.path).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        Self(command.spawn().expect("it starts"))
    }

    fn code(&mut self) -> Option<i32> {
        within(TIMEOUT, "the end of the command", || self.0.try_wait().expect("a child")).code()
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the whole frames of a capture, which may still grow.
fn frames(path: &Path) -> Vec<Value> {
    let ended = rackloom(&["decode", text(path), "--json"]).finish();
    ended.stdout.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}

fn is_sent(frame: &Value) -> bool {
    frame["direction"] == "outbound"
}

/// Returns a frame without its comments, to which the end of the rack adds.
fn plain(mut frame: Value) -> Value {
    frame["comments"].take();
    frame["number"].take();
    frame
}

#[test]
fn a_live_capture_has_the_frames_of_the_file_that_the_rack_leaves() {
    let session = Session::begin();
    let directory = recording(&session);
    let live = scratch("live.pcapng");
    let mut capture = Beside::start(&session, &["capture", "live", "n1--n0", "--write", text(&live)]);
    // Frames from before its start, and frames that follow.
    let before = within(TIMEOUT, "the first frames", || Some(frames(&live).len()).filter(|count| *count > 0));
    within(TIMEOUT, "later frames", || (frames(&live).len() > before).then_some(()));
    session.passes(&["down", "live"]);
    assert_eq!(capture.code(), Some(0));
    let (live, left) = (frames(&live), frames(&directory.join(FILE)));
    let times: Vec<_> = live.iter().map(|frame| frame["time_ns"].as_u64().expect("a time")).collect();
    assert!(times.is_sorted(), "frames of both ends are in order of time");
    let interfaces = |name: &str| live.iter().filter(|frame| frame["interface"] == name).count();
    assert!(interfaces("n0-p0") > 0 && interfaces("n1-p1") > 0, "both ends are there");
    let sent = |frames: Vec<Value>| frames.into_iter().filter(is_sent).map(plain).collect::<Vec<_>>();
    assert_eq!(sent(live), sent(left));
}

#[test]
fn an_interrupt_ends_a_capture_and_leaves_a_whole_file() {
    let session = Session::begin();
    recording(&session);
    let live = scratch("live.pcapng");
    let mut capture = Beside::start(&session, &["capture", "live", "n1--n2", "-w", text(&live)]);
    within(TIMEOUT, "the first frames", || (!frames(&live).is_empty()).then_some(()));
    send(Pid::from_child(&capture.0), Signal::INT);
    assert_eq!(capture.code(), Some(0));
    assert_eq!(rackloom(&["decode", text(&live)]).finish().code, Some(0), "the file ends with a whole block");
}

#[test]
fn a_capture_of_a_rack_whose_supervisor_is_killed_ends_with_an_error() {
    let session = Session::begin();
    recording(&session);
    let live = scratch("live.pcapng");
    let mut capture = Beside::start(&session, &["capture", "live", "n1--n2", "-w", text(&live)]);
    within(TIMEOUT, "the first frames", || (!frames(&live).is_empty()).then_some(()));
    let status = session.passes(&["status", "--json"]);
    let status: Value = serde_json::from_str(&status).expect("JSON");
    let supervisor = status["racks"][0]["pid"].as_i64().expect("a process");
    send(Pid::from_raw(supervisor as i32).expect("a process"), Signal::KILL);
    assert_eq!(capture.code(), Some(5));
    let mut said = String::new();
    capture.0.stderr.take().expect("a pipe").read_to_string(&mut said).expect("text");
    assert!(said.contains("rack live does not answer any more, and was not taken down"), "{said}");
    assert_eq!(rackloom(&["decode", text(&live)]).finish().code, Some(0), "the file ends with a whole block");
}

#[test]
fn wireshark_gets_interfaces_and_frames() {
    let session = Session::begin();
    assert_eq!(session.passes(&["extcap", "--extcap-interfaces"]).lines().count(), 1, "no rack is up");
    recording(&session);
    let listed = session.passes(&["extcap", "--extcap-interfaces", "--extcap-version=4.4"]);
    let interface = "rackloom:live:n2-p0--n0-p1";
    assert_eq!(listed.lines().count(), 4, "a line about the program, and one for each link: {listed}");
    assert!(listed.contains(&format!("interface {{value={interface}}}{{display=")), "{listed}");
    let kinds = session.passes(&["extcap", "--extcap-interface", interface, "--extcap-dlts"]);
    assert!(kinds.starts_with("dlt {number=1}"), "{kinds}");
    assert_eq!(session.passes(&["extcap", "--extcap-interface", interface, "--extcap-config"]), "");
    let fifo = scratch("fifo");
    let made = Command::new("mkfifo").arg(&fifo).status().expect("mkfifo starts");
    assert!(made.success());
    let options = ["extcap", "--capture", "--extcap-interface", interface, "--fifo", text(&fifo)];
    let mut capture = Beside::start(&session, &options);
    let file = std::fs::File::open(&fifo).expect("the other end is opened");
    let mut reader = rackloom_capture::Reader::new(file);
    for _ in 0..3 {
        let record = reader.next_record().expect("a capture").expect("a frame");
        assert!(record.interface_name().starts_with("n2-p0") || record.interface_name().starts_with("n0-p1"));
    }
    // Wireshark closes its end.
    drop(reader);
    assert_eq!(capture.code(), Some(0));
}

/// Home folder in which Wireshark finds this program.
struct Home {
    path: PathBuf,
    /// The program writes its process here before it begins.
    process: PathBuf,
}

impl Home {
    /// Installs the script of docs/how-to/read-frames.md in the personal folder of older and newer versions.
    fn new() -> Self {
        let (path, process) = (scratch("home"), scratch("process"));
        let script = format!(
            "#!/bin/sh\necho $$ >'{}'\nexec '{}' extcap \"$@\"\n",
            text(&process),
            env!("CARGO_BIN_EXE_rackloom")
        );
        for folder in [".config/wireshark/extcap", ".local/lib/wireshark/extcap"] {
            let program = path.join(folder).join("rackloom");
            std::fs::create_dir_all(path.join(folder)).expect("the folder can be written");
            std::fs::write(&program, &script).expect("the folder can be written");
            std::fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("it is there");
        }
        Self { path, process }
    }

    /// Runs tshark with the dissector. Returns its standard output, or `None` if there is no tshark.
    fn tshark(&self, session: &Session, arguments: &[&str]) -> Option<String> {
        let dissector = format!("lua_script:{}", text(&root().join("scripts/rackloom.lua")));
        let mut command = Command::new("timeout");
        command.args([&TIMEOUT.as_secs().to_string(), "tshark", "-X", &dissector]).args(arguments);
        command.env("HOME", &self.path).env("XDG_RUNTIME_DIR", &session.path);
        let done = command
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("WIRESHARK_EXTCAP_DIR")
            .output()
            .expect("timeout starts");
        if done.status.code() == Some(NOT_FOUND) {
            not_tried("tshark cannot be started; frames were not captured by it (apt-get install tshark)");
            return None;
        }
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        Some(String::from_utf8(done.stdout).expect("tshark prints UTF-8"))
    }
}

#[test]
fn tshark_lists_the_links_and_captures_their_frames() {
    let session = Session::begin();
    recording(&session);
    let home = Home::new();
    let Some(listed) = home.tshark(&session, &["-D"]) else { return };
    let links: Vec<_> = listed.lines().filter_map(|line| line.split_once(" (Rackloom live, link ")).collect();
    assert_eq!(links.len(), 3, "{listed}");
    let interface = "rackloom:live:n1-p0--n2-p1";
    assert!(links.iter().any(|(name, _)| name.ends_with(interface)), "{listed}");
    let fields = ["-T", "fields", "-e", "frame.interface_name", "-e", "_ws.col.Protocol"];
    let captured = home.tshark(&session, &[&["-i", interface, "-c", "20"], &fields[..]].concat());
    let captured = captured.expect("tshark is there");
    let frames: Vec<_> = captured.lines().collect();
    assert_eq!(frames.len(), 20, "{captured}");
    let ends = ["n1-p0\tRACKLOOM", "n2-p1\tRACKLOOM"];
    assert!(frames.iter().all(|frame| ends.contains(frame)), "{captured}");
    assert!(ends.iter().all(|end| frames.contains(end)), "frames of both ends: {captured}");
    // The program ends with the capture.
    let process = std::fs::read_to_string(&home.process).expect("the program was started");
    let running = Path::new("/proc").join(process.trim());
    within(TIMEOUT, "the end of the program", || (!running.exists()).then_some(()));
}

#[test]
fn a_rack_without_captures_and_a_link_that_is_not_there_are_refused() {
    let session = Session::begin();
    recording(&session);
    let rack = rack_file("name: silent\nshape: {ring: {nodes: 3}}\njob: none\n");
    session.passes(&["up", text(&rack)]);
    for (arguments, parts) in [
        (["capture", "silent", "n0--n1"], ["records no frames", "--capture DIR"]),
        (["capture", "live", "n0--n9"], ["has no link n0--n9", "n0--n1, n1--n2, n2--n0"]),
        (["capture", "none", "n0--n1"], ["no rack named none", "rackloom status"]),
    ] {
        let ended = session.rackloom(&arguments);
        assert_eq!(ended.code, Some(2), "{}", ended.stderr);
        assert!(parts.iter().all(|part| ended.stderr.contains(part)), "{}", ended.stderr);
    }
    // A refused command leaves the file of an earlier capture as it is.
    let earlier = scratch("earlier.pcapng");
    std::fs::write(&earlier, "frames").expect("the scratch folder can be written");
    for (rack, link) in [("silent", "n0--n1"), ("live", "n0--n9")] {
        assert_eq!(session.rackloom(&["capture", rack, link, "-w", text(&earlier)]).code, Some(2));
        assert_eq!(std::fs::read_to_string(&earlier).expect("it is there"), "frames", "{rack} {link}");
    }
    let listed = session.passes(&["extcap", "--extcap-interfaces"]);
    assert!(listed.contains("rackloom:live:") && !listed.contains("silent"), "{listed}");
}
