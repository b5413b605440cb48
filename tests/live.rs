//! Views of a rack that is up: `top` in a pseudo-terminal, `events`, `status --watch`, metrics over HTTP, and the end of faults.

mod support;

use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::num::NonZeroU16;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::Value;
use support::session::Session;
use support::{rackloom, topology, within};

const TIMEOUT: Duration = Duration::from_secs(30);

/// Program in a pseudo-terminal, with its screen.
struct Screen {
    child: Child,
    keys: File,
    screen: Arc<Mutex<vt100::Parser>>,
}

impl Screen {
    /// Starts the command in a terminal of 80 columns and 24 rows.
    fn begin(session: &Session, arguments: &[&str]) -> Self {
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal");
        grantpt(&controller).expect("it can be used");
        unlockpt(&controller).expect("it can be opened");
        let name = ptsname(&controller, Vec::new()).expect("it has a name");
        let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&controller, size).expect("it has a size");
        let path = name.to_str().expect("a plain path").to_owned();
        let terminal = File::options().read(true).write(true).open(path).expect("its other end");
        let end = || Stdio::from(OwnedFd::from(terminal.try_clone().expect("one more descriptor")));
        let child = Command::new(env!("CARGO_BIN_EXE_rackloom"))
            .args(arguments)
            .env("XDG_RUNTIME_DIR", &session.path)
            .env("TERM", "xterm-256color")
            .env("LANG", "C.UTF-8")
            .env_remove("LC_ALL")
            .env("NO_COLOR", "1")
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .expect("the binary starts");
        let keys = File::from(controller);
        let mut output = keys.try_clone().expect("one more descriptor");
        let [rows, columns] = [24, 80].map(|cells| NonZeroU16::new(cells).expect("not zero"));
        let screen = Arc::new(Mutex::new(vt100::Parser::new(rows, columns, 0)));
        let shown = Arc::clone(&screen);
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(length) = output.read(&mut piece) {
                if length == 0 {
                    return;
                }
                shown.lock().unwrap_or_else(PoisonError::into_inner).process(&piece[..length]);
            }
        });
        Self { child, keys, screen }
    }

    fn text(&self) -> String {
        self.screen.lock().unwrap_or_else(PoisonError::into_inner).screen().contents()
    }

    fn shows(&self, text: &str) {
        let mut last = String::new();
        let shown = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            within(TIMEOUT, text, || {
                last = self.text();
                last.contains(text).then_some(())
            });
        }));
        assert!(shown.is_ok(), "`{text}` is not on the screen:\n{last}");
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("the terminal takes keys");
    }

    fn ended(&mut self) -> Option<i32> {
        within(TIMEOUT, "the end of the view", || self.child.try_wait().expect("it can be waited for")).code()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn up(session: &Session, more: &[&str]) -> String {
    let file = topology("ring-4.yaml");
    let mut arguments = vec!["up", file.to_str().expect("a plain path")];
    arguments.extend(more);
    session.passes(&arguments)
}

fn status(session: &Session) -> Value {
    let status: Value = serde_json::from_str(&session.passes(&["status", "--json"])).expect("JSON");
    status["racks"][0].clone()
}

#[test]
fn top_shows_a_rack_and_injects_and_heals_after_a_confirmation() {
    let session = Session::begin();
    up(&session, &[]);
    let mut top = Screen::begin(&session, &["top", "--interval", "100ms"]);
    for text in ["rack ring-4", "4 of 4 links up", "n0->n1", "gpu node", "no fault", "q quit"] {
        top.shows(text);
    }
    // Rates need two answers.
    top.shows("B/s");
    top.press("/n2->");
    top.shows("filter: n2->_");
    top.press("\r");
    within(TIMEOUT, "the filter", || (!top.text().contains("n0->n1")).then_some(()));
    top.press("/\u{1b}");
    top.shows("n0->n1");
    top.press("l");
    top.shows("rate: 1%}? y/n");
    top.press("n");
    top.shows("nothing was changed");
    assert_eq!(status(&session)["faults"].as_array().map_or(0, Vec::len), 0, "it was not confirmed");
    top.press("l");
    top.shows("y/n");
    top.press("y");
    top.shows("faults in force");
    // No file states the fault, so it has no line. Both ends apply it.
    top.shows("1 fault in force");
    top.shows("loss n0--n1 (injected) at n0, n1");
    let fault = &status(&session)["faults"][0]["what"];
    assert_eq!(fault, "loss n0--n1 (injected)");
    top.press("h");
    top.shows("end all faults? y/n");
    top.press("y");
    top.shows("no fault");
    top.press("?");
    top.shows("order by the next column");
    top.press(" q");
    assert_eq!(top.ended(), Some(0));
    session.passes(&["down"]);
}

#[test]
fn top_ends_in_order_when_the_rack_is_taken_down() {
    let session = Session::begin();
    up(&session, &[]);
    let mut top = Screen::begin(&session, &["top", "--interval", "50ms"]);
    top.shows("4 of 4 links up");
    session.passes(&["down"]);
    assert_eq!(top.ended(), Some(0));
    top.shows("rack ring-4 was taken down");
    assert!(!top.text().contains("without an answer"), "{}", top.text());
}

#[test]
fn views_of_a_rack_whose_supervisor_is_killed_end_with_an_error() {
    let session = Session::begin();
    up(&session, &[]);
    let mut top = Screen::begin(&session, &["top", "--interval", "50ms"]);
    top.shows("4 of 4 links up");
    let mut watch = Screen::begin(&session, &["status", "--watch", "50ms"]);
    watch.shows("paths of");
    let mut followed = Screen::begin(&session, &["events", "--follow"]);
    let mut in_json = Screen::begin(&session, &["events", "--follow", "--json"]);
    for events in [&followed, &in_json] {
        events.shows("link-changed");
    }
    let supervisor = status(&session)["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok());
    let supervisor = supervisor.and_then(rustix::process::Pid::from_raw).expect("a process");
    rustix::process::kill_process(supervisor, rustix::process::Signal::KILL).expect("it is of this user");
    assert_eq!([top.ended(), watch.ended(), followed.ended(), in_json.ended()], [Some(5); 4]);
    for view in [&watch, &followed, &in_json] {
        view.shows("rack ring-4 does not answer any more, and was not taken down");
    }
    top.shows("error: rack ring-4");
    assert!(!top.text().contains("taken down"), "{}", top.text());
}

#[test]
fn top_without_a_terminal_is_refused_with_the_commands_for_scripts() {
    let session = Session::begin();
    let ended = session.rackloom(&["top"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("status --watch"), "{}", ended.stderr);
}

#[test]
fn faults_end_on_request_and_events_tell_of_both() {
    let session = Session::begin();
    up(&session, &[]);
    session.passes(&["inject", "link", "n0--n1", "--down"]);
    let has_fault = |count: usize| {
        within(TIMEOUT, "the faults", || {
            (status(&session)["faults"].as_array().map_or(0, Vec::len) == count).then_some(())
        });
    };
    has_fault(2);
    // Both ends apply the fault, which is one.
    let faults = status(&session)["faults"].clone();
    assert_eq!(faults[0]["fault"], faults[1]["fault"], "{faults}");
    let shown = session.passes(&["status"]);
    let rows: Vec<_> = shown.lines().filter(|line| line.contains("down n0--n1 (injected)")).collect();
    assert!(rows.len() == 1 && rows[0].contains("n0 n1"), "{shown}");
    within(TIMEOUT, "the loss of the link", || (status(&session)["links_up"] == 3).then_some(()));
    session.passes(&["heal"]);
    has_fault(0);
    within(TIMEOUT, "the return of the link", || (status(&session)["links_up"] == 4).then_some(()));
    let events = session.passes(&["events", "--json"]);
    let events: Vec<Value> =
        events.lines().map(|line| serde_json::from_str(line).expect("one object per line")).collect();
    let of_faults = |begins: &str| {
        events.iter().filter(|event| event["kind"] == "fault" && event["fields"]["begins"] == begins).count()
    };
    assert_eq!((of_faults("true"), of_faults("false")), (2, 2), "{events:?}");
    assert!(session.passes(&["events"]).contains("link-changed"));
    session.passes(&["down"]);
}

/// Returns the first lines of a command that goes on until it is killed.
fn first_lines(session: &Session, arguments: &[&str], count: usize) -> Vec<String> {
    use std::io::BufRead as _;
    let mut child = Command::new(env!("CARGO_BIN_EXE_rackloom"))
        .args(arguments)
        .env("XDG_RUNTIME_DIR", &session.path)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let output = std::io::BufReader::new(child.stdout.take().expect("it was piped"));
    let lines = output.lines().take(count).map(|line| line.expect("a line")).collect();
    let _ = child.kill();
    let _ = child.wait();
    lines
}

/// Returns true if a command that goes on until it is killed ends soon after its reader has taken one line.
fn ends_after_a_line(session: &Session, arguments: &[&str]) -> bool {
    use std::io::BufRead as _;
    let mut child = Command::new(env!("CARGO_BIN_EXE_rackloom"))
        .args(arguments)
        .env("XDG_RUNTIME_DIR", &session.path)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut output = std::io::BufReader::new(child.stdout.take().expect("it was piped"));
    output.read_line(&mut String::new()).expect("a line");
    drop(output);
    let code = within(TIMEOUT, "the end of the command", || {
        Some(child.try_wait().expect("it can be waited for")?.code())
    });
    code == Some(0)
}

#[test]
fn commands_that_go_on_end_with_their_reader() {
    let session = Session::begin();
    up(&session, &[]);
    // An event, so that there is a line. No other one follows.
    session.passes(&["inject", "link", "n2--n3", "--down", "--for", "10ms"]);
    within(TIMEOUT, "the fault", || session.passes(&["events"]).contains("down n2--n3 ends").then_some(()));
    assert!(ends_after_a_line(&session, &["events", "--follow"]));
    assert!(ends_after_a_line(&session, &["status", "--watch", "600s"]));
    session.passes(&["down"]);
}

#[test]
fn looks_are_not_more_frequent_than_a_rack_can_bear() {
    let session = Session::begin();
    for (arguments, words) in [
        (["status", "--watch", "1ns"], "shorter than 10 ms"),
        (["status", "--watch", "9999us"], "shorter than 10 ms"),
        (["top", "--interval", "1ms"], "shorter than 10 ms"),
        (["top", "--interval", "soon"], "no interval"),
    ] {
        let ended = rackloom(&arguments).in_run_directory(&session.path).finish();
        assert_eq!(ended.code, Some(2), "{arguments:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(words) && ended.stderr.contains("hint:  write "), "{}", ended.stderr);
    }
    // This one is refused because no rack is up.
    let ended = rackloom(&["status", "--watch", "10ms"]).in_run_directory(&session.path).finish();
    assert!(ended.stderr.contains("no rack is up"), "{}", ended.stderr);
}

#[test]
fn a_status_is_printed_again_after_each_interval() {
    let session = Session::begin();
    up(&session, &[]);
    let lines = first_lines(&session, &["status", "--watch", "50ms", "--json"], 3);
    let uptimes: Vec<u64> = lines
        .iter()
        .map(|line| serde_json::from_str::<Value>(line).expect("one status per line"))
        .map(|status| status["racks"][0]["uptime_ns"].as_u64().expect("a time"))
        .collect();
    assert!(uptimes.is_sorted_by(|one, next| one < next), "{uptimes:?}");
    let member = &status(&session)["members"][0];
    assert!(
        member["processor_ns"].as_u64() > Some(0) && member["incarnation"].as_u64() > Some(0),
        "{member}"
    );
    session.passes(&["down"]);
}

#[test]
fn a_watched_status_ends_in_order_with_the_rack() {
    use std::io::BufRead as _;
    for more in [&[][..], &["--json"], &["ring-4"], &["ring-4", "--json"]] {
        let session = Session::begin();
        up(&session, &[]);
        let mut child = Command::new(env!("CARGO_BIN_EXE_rackloom"))
            .args([&["status", "--watch", "20ms"], more].concat())
            .env("XDG_RUNTIME_DIR", &session.path)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let mut output = std::io::BufReader::new(child.stdout.take().expect("it was piped"));
        output.read_line(&mut String::new()).expect("a line");
        let reader = std::thread::spawn(move || output.lines().map_while(Result::ok).collect::<Vec<_>>());
        session.passes(&["down"]);
        let ended = child.wait_with_output().expect("it ends with the rack");
        let lines = reader.join().expect("it only reads");
        let errors = String::from_utf8_lossy(&ended.stderr);
        assert_eq!((ended.status.code(), &*errors), (Some(0), ""), "{more:?}");
        if more.contains(&"--json") {
            let racks = |line: &String| serde_json::from_str::<Value>(line).expect("JSON")["racks"].clone();
            let counts: Vec<_> =
                lines.iter().map(|line| racks(line).as_array().map_or(0, Vec::len)).collect();
            assert!(counts.iter().all(|count| *count == 1), "{counts:?}");
        }
    }
}

#[test]
fn events_follow_until_the_rack_ends() {
    let session = Session::begin();
    up(&session, &[]);
    let child = Command::new(env!("CARGO_BIN_EXE_rackloom"))
        .args(["events", "--follow", "--json"])
        .env("XDG_RUNTIME_DIR", &session.path)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    session.passes(&["inject", "link", "n2--n3", "--down", "--for", "10ms"]);
    within(TIMEOUT, "the fault", || session.passes(&["events"]).contains("down n2--n3 ends").then_some(()));
    session.passes(&["down"]);
    let output = child.wait_with_output().expect("it ends with the rack");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert_eq!(output.status.code(), Some(0));
    assert!(text.contains("down n2--n3 begins") && text.contains("down n2--n3 ends"), "{text}");
}

/// Sends a request and returns the answer.
fn http(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("the address is open");
    stream.set_read_timeout(Some(TIMEOUT)).expect("a socket");
    stream.write_all(request.as_bytes()).expect("it takes the request");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("it answers and closes");
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn metrics_are_served_to_those_who_request_them_right() {
    let session = Session::begin();
    let printed = up(&session, &["--metrics", "127.0.0.1:0"]);
    let address = printed.split("http://").nth(1).and_then(|rest| rest.split("/metrics").next());
    let address = address.unwrap_or_else(|| panic!("no address in {printed}"));
    session.passes(&["inject", "link", "n0--n1", "--loss", "50%"]);
    within(TIMEOUT, "the fault in the metrics", || {
        let answer =
            http(address, "GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: application/openmetrics-text\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.trim_end().ends_with("# EOF"), "{answer}");
        assert!(answer.contains("rackloom_link_sent_frames_total{"), "{answer}");
        answer.contains("loss n0--n1").then_some(())
    });
    assert!(http(address, "GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
    assert!(http(address, "POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
    assert!(http(address, "\u{1}\u{2}\u{3}\r\n\r\n").starts_with("HTTP/1.1 400"));
    let long = format!("GET /metrics HTTP/1.1\r\nX: {}\r\n", "a".repeat(9_000));
    assert!(http(address, &long).starts_with("HTTP/1.1 400"));
    let taken = session.rackloom(&["up", "topologies/star-4.yaml", "--metrics", address]);
    assert_eq!(taken.code, Some(2), "{}", taken.stderr);
    assert!(taken.stderr.contains("cannot serve metrics"), "{}", taken.stderr);
    session.passes(&["down"]);
}
