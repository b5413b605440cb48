//! Standing racks: they start, report their state, end, and leave nothing; also with garbage on their control socket.
//!
//! Each test has its own run directory, so that it finds no other racks, and takes its racks down in any
//! case.

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Pid, Signal};
use serde_json::{Value, json};
use support::session::Session;
use support::wires::{not_tried, wires};
use support::{TOPOLOGIES, is_gone, rack_file, scratch, send, topology, within};

const TIMEOUT: Duration = Duration::from_secs(20);

impl Session {
    fn up(&self, file: &Path, more: &[&str]) -> String {
        let mut arguments = vec!["up", file.to_str().expect("a plain path")];
        arguments.extend(more);
        self.passes(&arguments)
    }

    fn racks(&self) -> Vec<Value> {
        let status: Value = serde_json::from_str(&self.passes(&["status", "--json"])).expect("JSON");
        status["racks"].as_array().expect("a list of racks").clone()
    }

    fn rack(&self, name: &str) -> Value {
        let found = self.racks().into_iter().find(|rack| rack["name"] == name);
        found.unwrap_or_else(|| panic!("{name} is not up"))
    }

    fn directory(&self) -> PathBuf {
        self.path.join("rackloom")
    }

    fn connect(&self, name: &str) -> Client {
        let stream =
            UnixStream::connect(self.directory().join(name).join("control")).expect("the rack listens");
        stream.set_read_timeout(Some(TIMEOUT)).expect("a socket");
        Client(BufReader::new(stream))
    }

    /// Returns the racks that have left anything on disk.
    fn left_on_disk(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.directory()).expect("the run directory is there");
        let names =
            entries.map(|entry| entry.expect("it can be listed").file_name().into_string().expect("UTF-8"));
        names.filter(|name| name != ".lock").collect()
    }

    /// Returns the processes of this session.
    fn processes(&self) -> Vec<u32> {
        let mark = self.path.as_os_str().as_encoded_bytes();
        let knows = |pid: &u32| {
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.windows(mark.len()).any(|window| window == mark)
        };
        let all = std::fs::read_dir("/proc").expect("/proc is there").flatten();
        let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter(knows).filter(|pid| !is_gone(Pid::from_raw(*pid as i32).expect("no zero"))).collect()
    }
}

/// One connection to a control socket.
struct Client(BufReader<UnixStream>);

impl Client {
    fn send(&mut self, bytes: &[u8]) {
        // The other end may have closed the connection already.
        let _ = self.0.get_mut().write_all(bytes);
    }

    fn answer(&mut self) -> Value {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("an answer in time");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"))
    }

    fn request(&mut self, request: &Value) -> Value {
        self.send(format!("{request}\n").as_bytes());
        self.answer()
    }
}

fn pids(rack: &Value) -> Vec<Pid> {
    let members =
        rack["members"].as_array().expect("members").iter().filter_map(|member| member["pid"].as_i64());
    members.chain(rack["pid"].as_i64()).map(|pid| Pid::from_raw(pid as i32).expect("no zero")).collect()
}

fn all_gone(pids: &[Pid]) {
    for pid in pids {
        within(TIMEOUT, "the end of a process", || is_gone(*pid).then_some(()));
    }
}

fn member<'r>(rack: &'r Value, name: &str) -> &'r Value {
    let members = rack["members"].as_array().expect("members");
    members.iter().find(|member| member["name"] == name).expect("there is such a member")
}

#[test]
fn options_imply_the_job_of_a_rack_that_comes_up() {
    let session = Session::begin();
    let jobs: [(&[&str], &str); 3] =
        [(&[], "none"), (&["--pattern", "uniform"], "traffic"), (&["--collective", "barrier"], "collective")];
    for (options, job) in jobs {
        session.up(&topology("ring-4.yaml"), options);
        assert_eq!(session.rack("ring-4")["job"], job, "{options:?}");
        session.passes(&["down"]);
    }
}

#[test]
fn every_shape_comes_up_reports_its_state_and_goes_down() {
    let session = Session::begin();
    for name in TOPOLOGIES {
        let table = session.up(&topology(name), &[]);
        let rack = session.racks().remove(0);
        assert_eq!(rack["state"], "up");
        assert_eq!(rack["links_up"], rack["links_total"]);
        for member in rack["members"].as_array().expect("members") {
            assert!(table.contains(member["name"].as_str().expect("a name")), "{table}");
            assert_eq!(member["state"], "up");
            assert_eq!(member["links_up"], member["links_total"]);
        }
        let pids = pids(&rack);
        assert!(pids.iter().all(|pid| !is_gone(*pid)));
        let shown = session.passes(&["status", rack["name"].as_str().expect("a name")]);
        for heading in ["node", "process", "server", "tenant", "state", "memory used", "links up", "uptime"] {
            assert!(shown.contains(heading), "{heading} is missing:\n{shown}");
        }
        session.passes(&["down"]);
        all_gone(&pids);
        assert_eq!(session.left_on_disk(), Vec::<String>::new());
    }
    assert_eq!(session.passes(&["status"]), "no rack is up\n");
}

#[test]
fn the_run_directory_is_private() {
    let session = Session::begin();
    session.up(&topology("ring-4.yaml"), &[]);
    let mode = std::fs::metadata(session.directory()).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    let socket = session.directory().join("ring-4/control");
    let mode = std::fs::metadata(&socket).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "the socket belongs to its user, with every umask");
    std::fs::set_permissions(session.directory(), std::fs::Permissions::from_mode(0o755))
        .expect("the directory exists");
    let ended = session.rackloom(&["status"]);
    assert_eq!(ended.code, Some(3), "a directory that others can enter is not trusted: {}", ended.stdout);
    std::fs::set_permissions(session.directory(), std::fs::Permissions::from_mode(0o700))
        .expect("the directory exists");
}

#[test]
fn two_racks_of_one_file_do_not_disturb_each_other() {
    let session = Session::begin();
    let file =
        rack_file("name: a\nshape: {ring: {nodes: 3}}\njob: {litmus: {bytes_max: 64KiB, rounds: 1}}\n");
    let ended = [&["--name", "a"][..], &["--name", "b"], &["--name", "c", "--wire", "packet"]];
    for more in ended {
        session.up(&file, &[more, &["--job", "litmus"]].concat());
    }
    let racks = session.racks();
    assert_eq!(racks.iter().map(|rack| &rack["name"]).collect::<Vec<_>>(), ["a", "b", "c"]);
    assert_ne!(racks[0]["epoch"], racks[1]["epoch"], "frames of one would be dropped by the other");
    for name in ["a", "b", "c"] {
        let rack = within(TIMEOUT, "a pass of the litmus", || {
            let rack = session.rack(name);
            (rack["verdict"] == "pass").then_some(rack)
        });
        let members = rack["members"].as_array().expect("members");
        assert!(members.iter().all(|node| node["verdict"] == "pass" && node["state"] == "up"), "{rack}");
    }
    within(TIMEOUT, "the verdict as a table", || {
        let shown = session.passes(&["status", "a"]);
        let parts = shown.lines().filter(|line| line.starts_with('n') && line.ends_with("pass")).count();
        (shown.contains("job litmus: pass") && parts == 3).then_some(())
    });
    for name in ["b", "a", "c"] {
        let json = scratch("down.json");
        let printed = session.passes(&["down", name, "--json", json.to_str().expect("a plain path")]);
        assert!(printed.contains("litmus: pass"), "{printed}");
        for part in ["operation", "p99", "n0->n1", "verdict: pass"] {
            assert!(printed.contains(part), "the report that `run` prints: {printed}");
        }
        let report: Value =
            serde_json::from_str(&std::fs::read_to_string(json).expect("a report")).expect("JSON");
        assert_eq!(report["verdict"], "pass");
        assert!(report["notes"].is_array(), "notes are always there");
        assert_eq!(report["nodes"].as_array().expect("nodes").len(), 3);
        for link in report["links"].as_array().expect("links") {
            let foreign_reasons = ["wrong-epoch", "wrong-address", "unknown-sender", "foreign-ether-type"];
            assert!(foreign_reasons.iter().all(|reason| link["dropped"][reason].is_null()), "{name}: {link}");
        }
    }
    assert_eq!(session.left_on_disk(), Vec::<String>::new());
}

#[test]
fn a_name_is_unique_and_free_again_afterwards() {
    let session = Session::begin();
    let ring = topology("ring-4.yaml");
    session.up(&ring, &[]);
    let again = session.rackloom(&["up", ring.to_str().expect("a plain path")]);
    assert_eq!(again.code, Some(3), "{}", again.stdout);
    assert!(
        again.stderr.contains("ring-4 is up already") && again.stderr.contains("--name"),
        "{}",
        again.stderr
    );
    session.up(&ring, &["--name", "other"]);
    let unclear = session.rackloom(&["down"]);
    assert_eq!(unclear.code, Some(2));
    assert!(unclear.stderr.contains("other, ring-4"), "{}", unclear.stderr);
    session.passes(&["down", "ring-4"]);
    session.up(&ring, &[]);
    session.passes(&["down", "--all"]);
    assert_eq!(session.rackloom(&["down"]).code, Some(2), "nothing is up");
    assert_eq!(session.rackloom(&["down", "ring-4"]).code, Some(2), "it is not up");
    assert_eq!(
        session.rackloom(&["up", ring.to_str().expect("a plain path"), "--name", "../out"]).code,
        Some(2)
    );
}

#[test]
fn members_end_with_a_killed_supervisor_and_the_next_start_removes_its_files() {
    let session = Session::begin();
    for wire in wires("members_end_with_a_killed_supervisor_and_the_next_start_removes_its_files") {
        session.up(&topology("star-4.yaml"), &["--wire", wire]);
        let rack = session.rack("star-4");
        send(Pid::from_raw(rack["pid"].as_i64().expect("a pid") as i32).expect("no zero"), Signal::KILL);
        all_gone(&pids(&rack));
        assert_eq!(session.left_on_disk(), ["star-4"], "no process was left to remove it");
        assert_eq!(session.passes(&["status"]), "no rack is up\n");
        session.up(&topology("ring-4.yaml"), &[]);
        assert_eq!(session.left_on_disk(), ["ring-4"], "the next start swept");
        session.passes(&["down"]);
    }
    assert_eq!(session.processes(), Vec::<u32>::new());
}

#[test]
fn a_killed_node_is_shown_and_the_rack_stays() {
    let session = Session::begin();
    session.up(&topology("full-mesh-4.yaml"), &[]);
    let mut events = session.connect("full-mesh-4");
    assert_eq!(events.request(&json!({"subscribe": {}})), json!({"subscribed": {}}));
    let rack = session.rack("full-mesh-4");
    let dead = member(&rack, "n1")["pid"].as_i64().expect("a pid");
    send(Pid::from_raw(dead as i32).expect("no zero"), Signal::KILL);
    let mut reporters = Vec::new();
    while reporters.len() < 3 {
        let event = events.answer();
        if event["event"]["kind"] == "node-lost" && event["event"]["fields"]["node"] == "n1" {
            reporters.push(event["event"]["member"].as_str().expect("a name").to_owned());
        }
    }
    reporters.sort();
    assert_eq!(reporters, ["n0", "n2", "n3"]);
    let rack = session.rack("full-mesh-4");
    assert_eq!(member(&rack, "n1")["state"], "lost");
    assert!(member(&rack, "n1")["note"].as_str().expect("how").contains("killed by signal 9"));
    assert_eq!((&rack["state"], rack["links_up"].as_u64()), (&"up".into(), Some(3)));
    session.passes(&["down"]);
}

/// `status` and `down` agree on the job.
#[test]
fn a_death_after_the_job_counts_against_it() {
    let session = Session::begin();
    let file =
        rack_file("name: a\nshape: {ring: {nodes: 3}}\njob: {litmus: {bytes_max: 64KiB, rounds: 1}}\n");
    session.up(&file, &["--job", "litmus"]);
    let rack = within(TIMEOUT, "the end of the litmus", || {
        let rack = session.rack("a");
        (!rack["verdict"].is_null()).then_some(rack)
    });
    assert_eq!(rack["verdict"], "pass");
    let dead = member(&rack, "n1")["pid"].as_i64().expect("a pid");
    send(Pid::from_raw(dead as i32).expect("no zero"), Signal::KILL);
    within(TIMEOUT, "the loss of n1", || {
        let rack = session.rack("a");
        (member(&rack, "n1")["state"] == "lost").then(|| assert_eq!(rack["verdict"], "fail", "{rack}"))
    });
    let ended = session.rackloom(&["down"]);
    assert_eq!(ended.code, Some(1), "{}", ended.stdout);
    assert!(ended.stdout.contains("litmus: fail"), "{}", ended.stdout);
}

#[test]
fn a_stopped_member_is_silent_and_delays_no_other() {
    let session = Session::begin();
    session.up(&topology("ring-4.yaml"), &[]);
    let stopped = member(&session.rack("ring-4"), "n2")["pid"].as_i64().expect("a pid");
    let stopped = Pid::from_raw(stopped as i32).expect("no zero");
    send(stopped, Signal::STOP);
    let rack = session.rack("ring-4");
    assert_eq!(member(&rack, "n2")["state"], "silent");
    assert_eq!(member(&rack, "n0")["state"], "up");
    let json = scratch("down.json");
    let ended = session.rackloom(&["down", "--json", json.to_str().expect("a plain path")]);
    let report: Value =
        serde_json::from_str(&std::fs::read_to_string(json).expect("a report")).expect("JSON");
    // The member sent no report. Text, file and code agree.
    assert_eq!((report["verdict"].as_str(), ended.code), (Some("fail"), Some(1)), "{}", ended.stdout);
    assert!(ended.stdout.contains("verdict: fail"), "{}", ended.stdout);
    assert!(is_gone(stopped));
}

#[test]
fn a_vacant_seat_is_taken_by_another_process_and_lost_with_it() {
    let session = Session::begin();
    let ring = topology("ring-4.yaml");
    let ring_path = ring.to_str().expect("a plain path");
    let ended = session.rackloom(&["up", ring_path, "--vacant", "n9"]);
    assert_eq!(ended.code, Some(2), "{}", ended.stdout);
    assert!(ended.stderr.contains("hint:  its members are n0, n1, n2, n3"), "{}", ended.stderr);
    session.up(&ring, &["--vacant", "n2,n3"]);
    let rack = session.rack("ring-4");
    assert_eq!((rack["state"].as_str(), rack["links_up"].as_u64()), (Some("up"), Some(1)));
    assert_eq!(
        (&member(&rack, "n2")["state"], &member(&rack, "n2")["pid"]),
        (&"vacant".into(), &Value::Null)
    );
    assert_eq!(session.rackloom(&["seat", "--join", "ring-4/n0"]).code, Some(2), "the seat is held");
    assert_eq!(session.rackloom(&["seat", "--join", "ring-4/n7"]).code, Some(2), "there is no such seat");

    let join = |seat: &str| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_rackloom"));
        command.args(["seat", "--join", seat]).env("XDG_RUNTIME_DIR", &session.path);
        command.spawn().expect("the binary starts")
    };
    let (mut n2, mut n3) = (join("ring-4/n2"), join("ring-4/n3"));
    let rack = within(TIMEOUT, "all links", || {
        let rack = session.rack("ring-4");
        (rack["links_up"] == 4).then_some(rack)
    });
    assert_eq!(member(&rack, "n2")["pid"], n2.id());
    assert_eq!(member(&rack, "n3")["state"], "up");
    n3.kill().expect("it runs");
    n3.wait().expect("it ends");
    within(TIMEOUT, "the loss of n3", || {
        let rack = session.rack("ring-4");
        (member(&rack, "n3")["state"] == "lost" && rack["links_up"] == 2).then_some(())
    });
    session.passes(&["down"]);
    let status = within(TIMEOUT, "the end of n2", || n2.try_wait().expect("it can be waited for"));
    assert!(status.success(), "a process that took a seat leaves in order: {status}");
}

#[test]
fn a_seat_that_stays_vacant_is_no_failure_of_a_rack_without_a_job() {
    let session = Session::begin();
    // The neighbours of n2 reach each other over n0. In the second rack, n3 is reached by no path at all.
    for vacant in ["n2", "n0,n2"] {
        session.up(&topology("ring-4.yaml"), &["--job", "none", "--vacant", vacant]);
        let json = session.path.join("report.json");
        let ended = session.rackloom(&["down", "--json", json.to_str().expect("a plain path")]);
        let report = std::fs::read(&json).expect("down wrote a report");
        let report: Value = serde_json::from_slice(&report).expect("JSON");
        assert_eq!((ended.code, report["verdict"].as_str()), (Some(0), Some("pass")), "{}", ended.stdout);
        assert_eq!(report["failures"], json!([]), "{}", ended.stdout);
        assert!(!ended.stdout.contains("had not ended"), "{}", ended.stdout);
    }
}

#[test]
fn a_process_that_took_a_seat_ends_with_the_supervisor() {
    let session = Session::begin();
    session.up(&topology("ring-4.yaml"), &["--vacant", "n2"]);
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_rackloom"));
    let mut n2 = command
        .args(["seat", "--join", "ring-4/n2"])
        .env("XDG_RUNTIME_DIR", &session.path)
        .spawn()
        .expect("the binary starts");
    within(TIMEOUT, "all links", || (session.rack("ring-4")["links_up"] == 4).then_some(()));
    let supervisor = session.rack("ring-4")["pid"].as_i64().expect("a pid");
    send(Pid::from_raw(supervisor as i32).expect("no zero"), Signal::KILL);
    within(TIMEOUT, "the end of n2", || n2.try_wait().expect("it can be waited for"));
}

#[test]
fn the_control_socket_survives_invalid_input() {
    let session = Session::begin();
    session.up(&topology("ring-4.yaml"), &[]);
    let before = session.rack("ring-4")["pid"].clone();
    let mut client = session.connect("ring-4");
    for malformed in [
        &b"\n"[..],
        b"status\n",
        b"{}\n",
        b"[]\n",
        b"null\n",
        b"{\"status\": {}\n",
        b"{\"status\": {}, \"down\": {}}\n",
        b"{\"status\": {\"deep\": 1}}\n",
        b"{\"join\": {}}\n",
        b"{\"join\": {\"seat\": 7}}\n",
        b"{\"join\": {\"seat\": \"../n1\"}}\n",
        b"{\"inject\": {}}\n",
        b"\xff\xfe\x00\x01\n",
    ] {
        client.send(malformed);
        let answer = client.answer();
        assert!(answer["error"]["what"].is_string(), "{malformed:?}: {answer}");
    }
    assert_eq!(
        client.request(&json!({"status": {}}))["status"]["name"],
        "ring-4",
        "and continues with this client"
    );

    // A line without an end is refused with an error.
    client.send(&vec![b'{'; 1 << 20]);
    let mut rest = String::new();
    let _ = client.0.read_to_string(&mut rest);
    assert!(rest.is_empty() || rest.contains("a line of more than"), "{rest}");

    // Half a request and a close; and more clients than allowed.
    session.connect("ring-4").send(b"{\"down\"");
    let mut clients: Vec<_> = (0..60).map(|_| session.connect("ring-4")).collect();
    clients.last_mut().expect("a client").send(b"{\"status\": {}}\n");
    assert!(clients.last_mut().expect("a client").answer()["error"]["what"].is_string());
    drop(clients);
    let after = within(TIMEOUT, "an answer after the clients have left", || {
        let ended = session.rackloom(&["status", "--json"]);
        (ended.code == Some(0)).then(|| session.rack("ring-4")["pid"].clone())
    });
    assert_eq!(before, after, "the same supervisor");
    session.passes(&["down"]);
}

#[test]
fn clients_that_use_all_connections_cannot_prevent_the_end_of_a_rack() {
    let session = Session::begin();
    session.up(&topology("ring-4.yaml"), &[]);
    let mut clients: Vec<_> = (0..31).map(|_| session.connect("ring-4")).collect();
    // All clients are connected once the last one is answered.
    clients.last_mut().expect("a client").request(&json!({"status": {}}));
    let mut last = session.connect("ring-4");
    let refusal = last.request(&json!({"subscribe": {}}));
    assert!(refusal["error"]["hint"].as_str().is_some_and(|hint| hint.contains("down")), "{refusal}");
    session.passes(&["down"]);
    drop(clients);
}

#[test]
fn each_member_logs_to_its_own_file() {
    let session = Session::begin();
    let logs = scratch("logs");
    session.up(&topology("ring-4.yaml"), &["--log-dir", logs.to_str().expect("a plain path"), "-v"]);
    session.passes(&["down"]);
    for name in ["n0", "n1", "n2", "n3"] {
        let text = std::fs::read_to_string(logs.join(format!("{name}.log"))).expect("a log");
        assert!(text.contains("init -> up"), "{name}: {text}");
    }
    let quiet = scratch("quiet");
    session.up(&topology("ring-4.yaml"), &["--log-dir", quiet.to_str().expect("a plain path")]);
    session.passes(&["down"]);
    assert_eq!(std::fs::read_to_string(quiet.join("n0.log")).expect("a log"), "", "quiet by default");
}

/// 20 times in each build; `RACKLOOM_CYCLES=200` for the long version.
#[test]
fn racks_that_start_and_end_leave_no_resources() {
    let cycles = std::env::var("RACKLOOM_CYCLES").ok().and_then(|text| text.parse().ok()).unwrap_or(20);
    let session = Session::begin();
    let wires = wires("racks_that_start_and_end_leave_no_resources");
    for cycle in 0..cycles {
        let wire = wires[cycle % wires.len()];
        session.up(&topology("ring-4.yaml"), &["--wire", wire]);
        let answer = session.connect("ring-4").request(&json!({"status": {}}));
        assert_eq!(answer["status"]["links_up"], 4);
        session.passes(&["down"]);
        assert_eq!(session.left_on_disk(), Vec::<String>::new(), "after {cycle} cycles");
        let left = session.processes();
        assert!(left.is_empty(), "processes {left:?} are left after {cycle} cycles");
    }
}

#[test]
fn faults_injected_into_a_standing_rack_are_reported_as_events_and_end() {
    let session = Session::begin();
    let file = rack_file(
        "name: injected\nshape: {ring: {nodes: 4}}\ntimers: {heartbeat_interval: 20ms, heartbeat_miss_max: 3, \
         hold_down: 20ms}\n",
    );
    session.up(&file, &[]);
    let mut listener = session.connect("injected");
    assert!(listener.request(&json!({"subscribe": {}}))["subscribed"].is_object());
    let printed = session.passes(&["inject", "link", "n0--n1", "--down", "--for", "300ms"]);
    assert!(printed.contains("1 fault injected"), "{printed}");
    let mut waits_for = |kind: &str, text: &str| loop {
        let event = listener.answer()["event"].take();
        if event["kind"] == kind && event["text"].as_str().is_some_and(|event_text| event_text.contains(text))
        {
            return;
        }
    };
    waits_for("fault", "down n0--n1 begins (injected)");
    waits_for("link-changed", "-> down");
    waits_for("fault", "down n0--n1 ends (injected)");
    waits_for("link-changed", "-> up");
    drop(listener);

    for (arguments, part) in [
        (&["link", "n0--n9", "--down"][..], "no link `n0--n9`"),
        (&["link", "n0--n1", "--corrupt", "1%"], "checks: always"),
        (&["node", "n7", "--kill"], "no member `n7`"),
        (&["link", "n0--n1"], "no fault is named"),
        (&["link", "n0-", "--down"], "a shell takes `>`"),
        (&["link", "n0--n1", "--loss", "500%"], "`--loss`"),
        (&["link", "n0--n1", "--down", "--delay", "soon"], "`--delay`"),
        (&["node", "n0", "--pause", "never"], "`--pause`"),
        (&["link", "n0--n1", "--down", "--ramp", "5"], "`--ramp`"),
        (&["link", "n0--n1", "--down", "--every", "1s"], "`--every` without `--for`"),
        (&["link", "n0--n1", "--down", "--rack", "absent"], "no rack named absent"),
    ] {
        let ended = session.rackloom(&[&["inject"][..], arguments].concat());
        assert_eq!(ended.code, Some(2), "{arguments:?}\n{}", ended.stdout);
        assert!(
            ended.stderr.contains(part) && ended.stderr.contains("hint:"),
            "{arguments:?}: {}",
            ended.stderr
        );
        for absent in ["the script:", "events[", "fault-scripts.md"] {
            assert!(!ended.stderr.contains(absent), "there was no script: {}", ended.stderr);
        }
    }

    session.passes(&["inject", "node", "n2", "--kill"]);
    within(TIMEOUT, "the loss of n2", || {
        let rack = session.rack("injected");
        let members = rack["members"].as_array()?.clone();
        members.iter().any(|member| member["name"] == "n2" && member["state"] == "lost").then_some(())
    });
    session.passes(&["down"]);
    let ended = session.rackloom(&["inject", "link", "n0--n1", "--down"]);
    assert_eq!(ended.code, Some(2), "a rack that is down is an error");
    assert!(ended.stderr.contains("no rack is up"), "{}", ended.stderr);
}

/// The hint is a command that works.
#[test]
fn a_rack_among_several_is_named_as_the_command_takes_it() {
    let session = Session::begin();
    let file = rack_file("name: one\nshape: {ring: {nodes: 2}}\n");
    session.up(&file, &["--name", "aa"]);
    session.up(&file, &["--name", "bb"]);
    for (arguments, hint) in [
        (&["heal"][..], "`rackloom heal aa`"),
        (&["events", "--json"], "`rackloom events aa --json`"),
        (&["job", "list"], "`rackloom job list aa`"),
        (&["down", "--seat", "n0"], "`rackloom down aa --seat n0`"),
        (&["inject", "link", "all", "--loss", "1%"], "with --rack"),
        (&["job", "cancel", "1"], "with --rack"),
    ] {
        let ended = session.rackloom(arguments);
        assert_eq!(ended.code, Some(2), "{arguments:?}: {}", ended.stdout);
        assert!(ended.stderr.contains("several racks are up: aa, bb"), "{}", ended.stderr);
        assert!(ended.stderr.contains(hint), "{arguments:?}: {}", ended.stderr);
    }
    for command in [&["heal", "aa"][..], &["events", "aa", "--json"], &["job", "list", "aa"]] {
        session.passes(command);
    }
    session.passes(&["down", "--all"]);
}

/// Takes the only rack down, with any verdict, and reads its report.
fn taken_down(session: &Session) -> Value {
    let json = scratch("down.json");
    session.rackloom(&["down", "--json", json.to_str().expect("a plain path")]);
    let text = std::fs::read_to_string(&json).expect("the report is written");
    serde_json::from_str(&text).expect("it is JSON")
}

/// Faults without an end are ended with the rack: first all faults are ended, and live members reach each
/// other.
#[test]
fn a_rack_is_healed_and_at_rest_before_it_is_taken_down() {
    let session = Session::begin();
    let oracle = |report: &Value, name: &str| {
        let tally = &report["oracles"][name];
        let count = |key: &str| tally[key].as_u64().unwrap_or(0);
        (count("looked"), count("unjudged"), count("broken"))
    };
    session.up(&topology("ring-4.yaml"), &["--job", "litmus"]);
    within(TIMEOUT, "the job's end", || (session.rack("ring-4")["verdict"] == "pass").then_some(()));
    session.passes(&["inject", "link", "n0--n1", "--down"]);
    session.passes(&["inject", "partition", "n2"]);
    session.passes(&["inject", "link", "all", "--loss", "50%", "--kinds", "credit"]);
    session.passes(&["inject", "node", "n3", "--fail-memory", "100%"]);
    within(TIMEOUT, "links that are down", || (session.rack("ring-4")["links_up"] == 1).then_some(()));
    let report = taken_down(&session);
    assert_eq!((&report["verdict"], oracle(&report, "progress")), (&json!("pass"), (8, 0, 0)), "{report}");
    let (looked, unjudged, broken) = oracle(&report, "credits");
    assert!(looked > 0 && (unjudged, broken) == (0, 0), "{report}");

    let job = ["--collective", "all-reduce", "--bytes", "1MiB", "--repetitions", "100000"];
    session.up(&topology("ring-4.yaml"), &job);
    let report = taken_down(&session);
    assert_eq!(
        oracle(&report, "progress"),
        (0, 1, 0),
        "in the middle of a job no member is at rest: {report}"
    );
}

/// One event of every kind, into a star of two planes; numbers in the order of the lines.
const EVERY_KIND: &str = "name: every-kind
events:
  - {what: loss, where: n0->s0, rate: 10%, for: 20ms}
  - {what: corrupt, where: n0--s0, rate: 1%, for: 20ms}
  - {what: duplicate, where: n0--s1, rate: 10%, for: 20ms}
  - {what: reorder, where: n0--s1, rate: 10%, for: 20ms, ramp: 5ms}
  - {what: drop, where: n2->s1, frames: [1, 2]}
  - {what: down, where: n3--s0, for: 30ms}
  - {what: unplug, where: plane 1, for: 20ms}
  - {what: delay, where: n1, by: 1ms, for: 20ms}
  - {what: slow, where: n1--s1, share: 0.5, for: 20ms}
  - {what: partition, where: [n0, n1], for: 10ms}
  - {what: slow-memory, where: n0, by: 1ms, for: 10ms}
  - {what: fail-memory, where: n0, rate: 50%, for: 10ms}
  - {what: revoke, where: n3}
  - {what: pause, where: [n2, s0], for: 20ms}
  - {what: kill, where: n1, for: 50ms, at: 500ms}
  - {what: kill, where: s1, for: 50ms, at: 500ms}
";

#[test]
fn faults_of_every_kind_begin_and_end_in_a_standing_rack_which_recovers() {
    let session = Session::begin();
    let rack = "name: every\nshape: {star: {nodes: 4, planes: 2}}\nlink: {rate: 100Gbit/s, delay: 500ns}\nchecks: always\n";
    session.up(&rack_file(rack), &[]);
    let mut listener = session.connect("every");
    assert!(listener.request(&json!({"subscribe": {}}))["subscribed"].is_object());
    let kinds = EVERY_KIND.matches("what:").count();
    let script = rack_file(EVERY_KIND);
    let printed = session.passes(&["inject", "script", script.to_str().expect("a plain path")]);
    assert!(printed.contains(&format!("{kinds} faults injected")), "{printed}");
    // Faults that act at once have no end.
    let endless = ["5", "13"];
    let begin = (1..=kinds).map(|number| (number.to_string(), "true".to_owned()));
    let end = (1..=kinds).map(|number| (number.to_string(), "false".to_owned()));
    let end = end.filter(|(number, _)| !endless.contains(&number.as_str()));
    let mut awaited: std::collections::BTreeSet<_> = begin.chain(end).collect();
    while !awaited.is_empty() {
        let event = listener.answer()["event"].take();
        if event["kind"] == "fault" {
            let field = |name: &str| event["fields"][name].as_str().unwrap_or_default().to_owned();
            awaited.remove(&(field("event"), field("begins")));
        }
    }
    within(TIMEOUT, "all links", || {
        let rack = session.rack("every");
        (rack["links_up"] == 8 && rack["members"].as_array()?.iter().all(|member| member["state"] == "up"))
            .then_some(())
    });
    session.passes(&["down"]);
}

/// The two programs of `scripts/`, started as a user would: they drive their own rack and assert on its
/// events.
#[test]
fn the_example_programs_drive_a_live_rack_through_its_control_socket() {
    for (interpreter, program) in [("bash", "scripts/live-rack.sh"), ("python3", "scripts/live_rack.py")] {
        if std::process::Command::new(interpreter).arg("--version").output().is_err() {
            not_tried(&format!("{program}: there is no {interpreter} here"));
            continue;
        }
        let session = Session::begin();
        let output = std::process::Command::new(interpreter)
            .arg(support::root().join(program))
            .env("RACKLOOM", env!("CARGO_BIN_EXE_rackloom"))
            .env("XDG_RUNTIME_DIR", &session.path)
            .current_dir(support::root())
            .output()
            .expect("it starts");
        let [stdout, stderr] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
        assert!(output.status.success(), "{program}\n{stdout}\n{stderr}");
        assert!(stdout.contains("as it should be"), "{program}\n{stdout}");
    }
}

#[test]
fn status_shows_faults_while_they_last() {
    let session = Session::begin();
    session.up(&topology("ring-4.yaml"), &[]);
    assert!(session.rack("ring-4")["faults"].is_null());
    session.passes(&["inject", "link", "n0--n1", "--loss", "50%"]);
    let faults =
        within(TIMEOUT, "the fault in the status", || session.rack("ring-4")["faults"].as_array().cloned());
    for member in ["n0", "n1"] {
        let fault = faults.iter().find(|fault| fault["member"] == member);
        let fault = fault.unwrap_or_else(|| panic!("{member} is missing in {faults:?}"));
        assert_eq!(fault["what"], "loss n0--n1 (injected)", "{fault}");
        assert!(fault["age_ns"].as_u64().is_some_and(|age_ns| age_ns > 0), "{fault}");
    }
    assert!(session.passes(&["status"]).contains("active fault"));
}
