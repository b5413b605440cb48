//! Unmodified RDMA programs on seats of a rack: they load the rack's own `libibverbs.so.1`, and their bytes go over its links.

mod support;

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use support::session::Session;
use support::wires::{not_tried, wires};
use support::{over_links, rack_file, within};

const TIMEOUT: Duration = Duration::from_secs(60);
const ROUNDS: u64 = 200;
const BYTES: u64 = 4096;

/// Returns true if the utilities of the distribution are installed. Otherwise the test is skipped.
fn has_utilities(test: &str) -> bool {
    let is_there = Command::new("ibv_rc_pingpong").arg("--help").output().is_ok();
    if !is_there {
        not_tried(&format!("{test}: ibv_rc_pingpong is not installed (package ibverbs-utils)"));
    }
    is_there
}

/// Rack that is up for programs.
struct Rack {
    session: Session,
}

impl Rack {
    fn up(shape: &str, wire: &str, more: &str) -> Self {
        let session = Session::begin();
        let library = Path::new(env!("CARGO_BIN_EXE_rackloom")).with_file_name("ibverbs");
        assert!(library.exists(), "`cargo build --workspace` makes {}", library.display());
        let text = format!("name: verbs\nshape: {{{shape}}}\ntimers: {{heartbeat_interval: 500ms}}\n{more}");
        let file = rack_file(&text);
        session.passes(&["up", file.to_str().expect("a plain path"), "--seats", "programs", "--wire", wire]);
        Self { session }
    }

    /// Starts a program on a seat.
    fn start(&self, seat: &str, program: &[&str]) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rackloom"));
        command.args(["exec", "--seat", seat, "--"]).args(program);
        command.env("XDG_RUNTIME_DIR", &self.session.path);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("the command starts")
    }

    /// Runs a pair of programs on n0 and n1, which must succeed. The second one gets the address of the first. Returns what both print.
    fn pair(&self, program: &[&str]) -> [String; 2] {
        let (is_done, texts) = self.pair_with("n1", program);
        assert!(is_done, "{program:?}\nserver: {}\nclient: {}", texts[0], texts[1]);
        texts
    }

    /// Runs a pair of programs on n0 and on another seat. Returns true if both succeed, and what they print.
    fn pair_with(&self, client_seat: &str, program: &[&str]) -> (bool, [String; 2]) {
        let port =
            TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
        let port = port.port().to_string();
        let arguments = [program, &["-d", "rackloom0", "-g", "1", "-p", &port]].concat();
        let mut server = self.start("n0", &arguments);
        // Nothing says when the server listens: its output stays in its buffer until it ends.
        let client = within(TIMEOUT, "the client connects", || {
            if server.try_wait().expect("it was started").is_some() {
                return Some((false, "the server has ended".to_owned()));
            }
            let (is_done, text) = ended(self.start(client_seat, &[&arguments[..], &["127.0.0.1"]].concat()));
            (is_done || !text.contains("Couldn't connect")).then_some((is_done, text))
        });
        if !client.0 {
            // A server without a client waits for ever.
            let _ = server.kill();
        }
        let (is_done, text) = ended(server);
        (client.0 && is_done, [text, client.1])
    }
}

/// Waits for the end of a program. Returns true if it succeeded, and what it printed.
fn ended(child: Child) -> (bool, String) {
    let output = child.wait_with_output().expect("the program ends");
    let text =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    (output.status.success(), text)
}

/// A program ends as soon as it has the last message, while the sender waits for a reply that the link may lose.
#[test]
fn a_program_ends_after_its_peer_has_the_last_reply() {
    if !has_utilities("a_program_ends_after_its_peer_has_the_last_reply") {
        return;
    }
    let rack = Rack::up("star: {nodes: 3, planes: 1}", "shared-memory", "link: {loss: 3%, delay: 2ms}\n");
    for _ in 0..2 {
        rack.pair(&["ibv_rc_pingpong", "-c", "-n", "5", "-s", "1024"]);
    }
}

/// Program that prints the events of port and device of a seat, and is killed at the end.
struct Watch {
    program: Child,
    printed: Receiver<String>,
}

impl Watch {
    fn of(rack: &Rack, seat: &str) -> Self {
        // Output to a pipe would stay in the buffer of the program.
        let mut program = rack.start(seat, &["stdbuf", "-oL", "ibv_asyncwatch", "-d", "rackloom0"]);
        let printed = lines(&mut program);
        let watch = Self { program, printed };
        watch.line_with("async event FD");
        watch
    }

    fn line_with(&self, text: &str) -> String {
        let begun = Instant::now();
        loop {
            let left = TIMEOUT.saturating_sub(begun.elapsed());
            let line = self.printed.recv_timeout(left).unwrap_or_else(|_| panic!("no line with {text:?}"));
            if line.contains(text) {
                return line;
            }
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

/// Returns a thread that sends the lines of a program.
fn lines(child: &mut Child) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    let output = BufReader::new(child.stdout.take().expect("a pipe"));
    thread::spawn(move || output.lines().map_while(Result::ok).all(|line| sender.send(line).is_ok()));
    receiver
}

#[test]
fn events_of_port_and_device_follow_the_links_of_the_seat_and_its_end() {
    if !has_utilities("events_of_port_and_device_follow_the_links_of_the_seat_and_its_end") {
        return;
    }
    let rack = Rack::up("star: {nodes: 3, planes: 1}", "shared-memory", "");
    let watch = Watch::of(&rack, "n0");
    rack.session.passes(&["inject", "link", "n0--s0", "--down"]);
    watch.line_with("PORT_ERR");
    let (_, state) = ended(rack.start("n1", &["ibv_devinfo", "-d", "rackloom0"]));
    assert!(state.contains("PORT_ACTIVE"), "the port of another seat: {state}");
    rack.session.passes(&["heal"]);
    watch.line_with("PORT_ACTIVE");
    rack.session.passes(&["down"]);
    watch.line_with("DEVICE_FATAL");
}

/// A queue pair stays at its port: it uses the links of one plane, and does not go on over those of another.
#[test]
fn each_plane_is_a_port_of_its_own() {
    if !has_utilities("each_plane_is_a_port_of_its_own") {
        return;
    }
    let rack = Rack::up("star: {nodes: 3, planes: 2}", "shared-memory", "ports: per-plane\n");
    let (rounds, length) = (ROUNDS.to_string(), "65536");
    let program = |port: &'static str| ["ibv_rc_pingpong", "-c", "-n", &rounds, "-s", length, "-i", port];
    rack.pair(&program("2"));
    {
        let watch = Watch::of(&rack, "n0");
        rack.session.passes(&["inject", "plane 1", "--down"]);
        assert!(watch.line_with("PORT_ERR").ends_with("port 2"));
        rack.session.passes(&["heal"]);
        assert!(watch.line_with("PORT_ACTIVE").ends_with("port 2"));
    }
    rack.session.passes(&["inject", "plane 1", "--down"]);
    let (is_done, [_, client]) = rack.pair_with("n1", &program("2"));
    assert!(!is_done && client.contains("(12)"), "no path is left: {client}");
    rack.pair(&["ibv_rc_pingpong", "-c", "-n", "1", "-i", "1"]);
    let path = rack.session.path.join("report.json");
    rack.session.passes(&["down", "--json", path.to_str().expect("a plain path")]);
    let text = std::fs::read_to_string(path).expect("the report");
    let report: Value = serde_json::from_str(&text).expect("JSON");
    let of_plane = |switch: &str| {
        over_links(&report, |link| {
            let is_there = link["name"].as_str().is_some_and(|name| name.contains(switch));
            if is_there { link["bytes_on_wire"].as_u64().expect("a number") } else { 0 }
        })
    };
    let (first, second) = (of_plane("s0"), of_plane("s1"));
    assert!(second > 4 * ROUNDS * 65_536 && first < second / 4, "{first} and {second} bytes");
}

#[test]
fn ping_pong_programs_run_between_two_seats_on_every_wire() {
    let test = "ping_pong_programs_run_between_two_seats_on_every_wire";
    if !has_utilities(test) {
        return;
    }
    for wire in wires(test) {
        let rack = Rack::up("star: {nodes: 3, planes: 1}", wire, "");
        let (rounds, bytes) = (ROUNDS.to_string(), BYTES.to_string());
        // `-c` compares the received bytes, and `-e` sleeps until there is a completion.
        let cases: [&[&str]; 4] = [
            &["ibv_rc_pingpong", "-c", "-n", &rounds, "-s", &bytes],
            &["ibv_rc_pingpong", "-c", "-e", "-n", &rounds, "-s", "65536"],
            &["ibv_ud_pingpong", "-n", &rounds, "-s", "1024"],
            &["ibv_srq_pingpong", "-n", &rounds, "-s", &bytes, "-q", "4"],
        ];
        let cases = if wire == "shared-memory" { &cases[..] } else { &cases[1..3] };
        for program in cases {
            let printed = rack.pair(program);
            for text in &printed {
                assert!(text.contains("iters in"), "{wire}, {program:?}: {text}");
            }
        }
        let path = rack.session.path.join("report.json");
        rack.session.passes(&["down", "--json", path.to_str().expect("a plain path")]);
        let text = std::fs::read_to_string(path).expect("the report");
        let report: Value = serde_json::from_str(&text).expect("JSON");
        let carried = over_links(&report, |link| link["bytes_on_wire"].as_u64().expect("a number"));
        // Each byte of the second case passes two links in each direction.
        assert!(carried > 4 * ROUNDS * 65_536, "{wire}: {carried} bytes went over the links");
    }
}

#[test]
fn a_script_names_a_queue_pair_that_fails_or_is_late() {
    if !has_utilities("a_script_names_a_queue_pair_that_fails_or_is_late") {
        return;
    }
    let rack = Rack::up("star: {nodes: 4, planes: 1}", "shared-memory", "");
    let inject = |words: &[&str]| rack.session.passes(&[&["inject", "node"], words].concat());
    // A message has four packets of 1024 bytes. The faults are injected before the programs start.
    inject(&["n1/1", "--fail-queue-pair", "--packets", "9"]);
    inject(&["n2/2", "--fail-queue-pair"]);
    let program = ["ibv_rc_pingpong", "-n", "20", "-m", "1024"];
    let (is_done, [_, client]) = rack.pair_with("n1", &program);
    assert!(!is_done && client.contains("(12)"), "{client}");
    let (is_done, texts) = rack.pair_with("n2", &program);
    assert!(is_done, "the program has one queue pair: {texts:?}");
    inject(&["n2", "--delay-queue-pair", "5ms"]);
    let (is_done, texts) = rack.pair_with("n2", &program);
    assert!(is_done, "{texts:?}");
    // It prints "20 iters in 0.11 seconds = ...".
    let seconds = texts[1].split("iters in ").nth(1).and_then(|rest| rest.split(' ').next());
    let seconds: f64 = seconds.and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{texts:?}"));
    assert!(seconds >= 20.0 * 0.005, "{texts:?}");
    let refused = rack.session.rackloom(&["inject", "node", "n3", "--fail-queue-pair", "--for", "1s"]);
    assert_eq!(
        refused.code,
        Some(2),
        "n3 has no program that could fail within this time: {}",
        refused.stderr
    );
}

#[test]
fn programs_find_the_files_of_the_device() {
    let rack = Rack::up("star: {nodes: 2, planes: 1}", "shared-memory", "");
    let look =
        "test -c /dev/infiniband/uverbs0 && cat /sys/class/infiniband/rackloom0/ports/1/gid_attrs/types/1";
    let (is_done, text) = ended(rack.start("n0", &["sh", "-c", look]));
    assert!(is_done && text == "RoCE v2\n", "{text}");
    let without =
        rack.session.rackloom(&["exec", "--seat", "n0", "--no-device-files", "--", "sh", "-c", look]);
    assert_eq!(without.code, Some(1), "{}", without.stdout);
    let with = rack.session.passes(&["env", "--seat", "n0"]);
    let without = rack.session.passes(&["env", "--seat", "n0", "--no-device-files"]);
    for variable in ["LD_PRELOAD", "RACKLOOM_DEVICE_FILES"] {
        assert!(with.contains(variable) && !without.contains(variable), "{variable}");
    }
}
