//! Seats without a process: left vacant, or lost with their process; and the right to take them.
//!
//! A process that takes a seat was not started by the rack, so each test starts its own and ends it.

mod support;

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use rustix::process::{Pid, Signal};
use rustix::thread::set_thread_res_uid;
use serde_json::{Value, json};
use support::session::Session;
use support::wires::{has_packet_wire, not_tried, wires};
use support::{rack_file, scratch, send, topology, within};

const TIMEOUT: Duration = Duration::from_secs(30);

impl Session {
    fn up(&self, file: &Path, more: &[&str]) -> String {
        self.passes(&[&["up", file.to_str().expect("a plain path")], more].concat())
    }

    fn rack(&self) -> Value {
        let status: Value = serde_json::from_str(&self.passes(&["status", "--json"])).expect("JSON");
        status["racks"][0].clone()
    }

    /// Returns the rack, once all its links are up.
    fn whole_rack(&self) -> Value {
        within(TIMEOUT, "all links", || {
            let rack = self.rack();
            (rack["links_up"] == rack["links_total"]).then_some(rack)
        })
    }

    fn rack_with(&self, name: &str, state: &str) -> Value {
        within(TIMEOUT, &format!("{name} is {state}"), || {
            let rack = self.rack();
            (member(&rack, name)["state"] == state).then_some(rack)
        })
    }

    fn socket(&self, rack: &str) -> PathBuf {
        self.path.join("rackloom").join(rack).join("control")
    }

    fn connect(&self, rack: &str) -> Client {
        Client::on(UnixStream::connect(self.socket(rack)).expect("the rack listens"))
    }

    fn take(&self, seat: &str) -> SeatHolder {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rackloom"));
        command.args(["seat", "--join", seat]).env("XDG_RUNTIME_DIR", &self.path);
        SeatHolder(command.spawn().expect("the binary starts"))
    }
}

/// Process that takes a seat. It is ended with its test.
struct SeatHolder(Child);

impl SeatHolder {
    fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }

    fn leaves_in_order(mut self) {
        let status =
            within(TIMEOUT, "the end of the process", || self.0.try_wait().expect("it can be waited for"));
        assert!(status.success(), "{status}");
    }
}

impl Drop for SeatHolder {
    fn drop(&mut self) {
        self.kill();
    }
}

/// One connection to a control socket.
struct Client(BufReader<UnixStream>);

impl Client {
    fn on(stream: UnixStream) -> Self {
        stream.set_read_timeout(Some(TIMEOUT)).expect("a socket");
        Self(BufReader::new(stream))
    }

    fn answer(&mut self) -> Value {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("an answer in time");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"))
    }

    fn request(&mut self, request: &Value) -> Value {
        // A client that is refused at once may find the socket closed. The answer still arrives.
        let _ = self.0.get_mut().write_all(format!("{request}\n").as_bytes());
        self.answer()
    }

    /// Waits until `count` members have reported this event of `node`, and returns them.
    fn observed_by(&mut self, kind: &str, node: &str, count: usize) -> Vec<String> {
        // A link may go down and up once more before it settles: members count once.
        let mut found = std::collections::BTreeSet::new();
        while found.len() < count {
            let event = self.answer()["event"].take();
            if event["kind"] == kind && event["fields"]["node"] == node {
                found.insert(event["member"].as_str().expect("a name").to_owned());
            }
        }
        found.into_iter().collect()
    }
}

fn member<'r>(rack: &'r Value, name: &str) -> &'r Value {
    let members = rack["members"].as_array().expect("members");
    members.iter().find(|member| member["name"] == name).expect("there is such a member")
}

fn pid(rack: &Value, name: &str) -> Pid {
    let pid = member(rack, name)["pid"].as_i64().expect("a pid");
    Pid::from_raw(pid as i32).expect("no zero")
}

#[test]
fn a_seat_whose_process_died_is_taken_again_under_a_new_incarnation() {
    for wire in wires("a_seat_whose_process_died_is_taken_again_under_a_new_incarnation") {
        let session = Session::begin();
        session.up(&topology("ring-4.yaml"), &["--wire", wire]);
        let mut events = session.connect("ring-4");
        assert_eq!(events.request(&json!({"subscribe": {}})), json!({"subscribed": {}}));
        let rack = session.rack();
        let refused = session.rackloom(&["seat", "--join", "ring-4/n1"]);
        assert_eq!(refused.code, Some(2), "the seat is held: {}", refused.stderr);

        send(pid(&rack, "n1"), Signal::KILL);
        assert_eq!(events.observed_by("node-lost", "n1", 3), ["n0", "n2", "n3"]);
        session.rack_with("n1", "lost");
        let mut first = session.take("ring-4/n1");
        assert_eq!(events.observed_by("node-reached", "n1", 3), ["n0", "n2", "n3"], "{wire}");
        let rack = session.whole_rack();
        assert_eq!(member(&rack, "n1")["pid"], first.0.id());
        assert_eq!(member(&rack, "n1")["note"], Value::Null);

        // Taken once more: the links of the second incarnation must be replaced like those of the first.
        first.kill();
        session.rack_with("n1", "lost");
        let second = session.take("ring-4/n1");
        assert_eq!(events.observed_by("node-reached", "n1", 3), ["n0", "n2", "n3"], "{wire}");
        assert_eq!(member(&session.whole_rack(), "n1")["pid"], second.0.id());
        session.passes(&["down"]);
        second.leaves_in_order();
    }
}

// W-50
#[test]
fn a_process_that_leaves_announces_its_departure_and_frees_the_seat() {
    for wire in wires("a_process_that_leaves_announces_its_departure_and_frees_the_seat") {
        let session = Session::begin();
        session.up(&topology("ring-4.yaml"), &["--wire", wire, "--vacant", "n1"]);
        let first = session.take("ring-4/n1");
        session.whole_rack();
        let mut events = session.connect("ring-4");
        assert_eq!(events.request(&json!({"subscribe": {}})), json!({"subscribed": {}}));
        send(Pid::from_child(&first.0), Signal::TERM);
        assert_eq!(events.observed_by("node-left", "n1", 3), ["n0", "n2", "n3"], "{wire}");
        first.leaves_in_order();
        session.rack_with("n1", "lost");
        let second = session.take("ring-4/n1");
        session.whole_rack();
        session.passes(&["down"]);
        second.leaves_in_order();
    }
}

#[test]
fn two_dead_neighbours_reconnect_after_their_replacement() {
    for wire in wires("two_dead_neighbours_reconnect_after_their_replacement") {
        let session = Session::begin();
        session.up(&topology("ring-4.yaml"), &["--wire", wire]);
        let rack = session.rack();
        for name in ["n1", "n2"] {
            send(pid(&rack, name), Signal::KILL);
            session.rack_with(name, "lost");
        }
        let takers = [session.take("ring-4/n2"), session.take("ring-4/n1")];
        let rack = session.whole_rack();
        assert_eq!(member(&rack, "n1")["pid"], takers[1].0.id());
        session.passes(&["down"]);
        takers.into_iter().for_each(SeatHolder::leaves_in_order);
    }
}

#[test]
fn vacant_seats_are_filled_on_any_wire_and_the_job_is_right() {
    let file = rack_file(
        // No member dies here, and a busy machine must not look like a death.
        "name: late\nshape: {ring: {nodes: 4}}\ntimers: {heartbeat_miss_max: 50}\n\
         job: {litmus: {bytes_max: 64KiB, rounds: 1}}\n",
    );
    for wire in wires("vacant_seats_are_filled_on_any_wire_and_the_job_is_right") {
        let session = Session::begin();
        session.up(&file, &["--vacant", "n2,n3", "--wire", wire, "--job", "litmus"]);
        let rack = session.rack();
        assert_eq!((rack["links_up"].as_u64(), &member(&rack, "n2")["state"]), (Some(1), &"vacant".into()));
        let takers = [session.take("late/n2"), session.take("late/n3")];
        for name in ["n0", "n1", "n2", "n3"] {
            let rack = session.rack_with(name, "up");
            let used = member(&rack, name)["memory_used_bytes"].as_u64().expect("it answers");
            assert!(used > 64 << 10, "the litmus registers memory: {used}");
        }
        let report = scratch("down.json");
        let ended = session.rackloom(&["down", "--json", report.to_str().expect("a plain path")]);
        let report = std::fs::read_to_string(&report).unwrap_or_default();
        assert_eq!(ended.code, Some(0), "{wire}: {}\n{report}", ended.stdout);
        assert!(ended.stdout.contains("litmus: pass"), "{wire}: {}", ended.stdout);
        takers.into_iter().for_each(SeatHolder::leaves_in_order);
    }
}

/// The rack itself replaces a node that an injected fault kills for a time.
#[test]
fn a_node_that_is_killed_for_a_time_gets_a_successor_in_a_standing_rack() {
    for wire in wires("a_node_that_is_killed_for_a_time_gets_a_successor_in_a_standing_rack") {
        let session = Session::begin();
        session.up(&topology("ring-4.yaml"), &["--wire", wire]);
        let first = pid(&session.rack(), "n1");
        session.passes(&["inject", "node", "n1", "--kill", "--for", "50ms"]);
        let rack = within(TIMEOUT, "another process in n1", || {
            let rack = session.rack();
            let is_another = member(&rack, "n1")["state"] == "up" && pid(&rack, "n1") != first;
            is_another.then_some(rack)
        });
        assert_eq!(rack["state"], "up", "{rack}");
        session.whole_rack();
    }
}

/// A plane whose switch joins later: traffic uses the other plane until then, and both afterwards.
#[test]
fn a_plane_is_added_to_a_rack_that_is_up_and_a_member_leaves_in_order() {
    let session = Session::begin();
    session.up(&topology("star-4.yaml"), &["--vacant", "s1"]);
    let rack = session.rack();
    assert_eq!((&rack["links_up"], &rack["links_total"]), (&json!(4), &json!(8)), "one plane of two: {rack}");
    let switch = session.take("star-4/s1");
    let rack = session.whole_rack();
    assert_eq!(member(&rack, "s1")["state"], "up", "{rack}");

    let printed = session.passes(&["down", "star-4", "--seat", "n2"]);
    assert!(printed.contains("seat n2 is vacant"), "{printed}");
    let rack = session.rack_with("n2", "vacant");
    assert!(member(&rack, "n2")["note"].is_null(), "it was no death: {rack}");
    let ended = session.rackloom(&["down", "star-4", "--seat", "n2"]);
    assert_eq!(ended.code, Some(2), "{}\n{}", ended.stdout, ended.stderr);
    assert!(ended.stderr.contains("no process on this host holds seat n2"), "{}", ended.stderr);
    let follower = session.take("star-4/n2");
    session.whole_rack();
    session.passes(&["down", "star-4", "--seat", "s1"]);
    switch.leaves_in_order();
    session.rack_with("s1", "vacant");
    drop(follower);
}

/// The new process gets an interface at the bridge, and its neighbours open theirs for one more link.
#[test]
fn a_seat_at_a_bridge_is_taken_twice() {
    if !has_packet_wire("a_seat_at_a_bridge_is_taken_twice") {
        return;
    }
    let session = Session::begin();
    session.up(&topology("star-4-bridge.yaml"), &["--vacant", "n2"]);
    let mut first = session.take("star-4-bridge/n2");
    assert_eq!(member(&session.whole_rack(), "n2")["pid"], first.0.id());
    first.kill();
    session.rack_with("n2", "lost");
    // A neighbour that joined later is reached at the interface that came with it.
    send(pid(&session.rack(), "n1"), Signal::KILL);
    session.rack_with("n1", "lost");
    let takers = [session.take("star-4-bridge/n2"), session.take("star-4-bridge/n1")];
    let rack = session.whole_rack();
    assert_eq!(member(&rack, "n1")["pid"], takers[1].0.id());
    session.passes(&["down"]);
    takers.into_iter().for_each(SeatHolder::leaves_in_order);
}

#[test]
fn on_the_packet_wire_no_seat_is_in_the_namespace_of_the_system() {
    if !has_packet_wire("on_the_packet_wire_no_seat_is_in_the_namespace_of_the_system") {
        return;
    }
    let session = Session::begin();
    session.up(&topology("ring-4.yaml"), &["--vacant", "n2", "--wire", "packet"]);
    let error = session.connect("ring-4").request(&json!({"join": {"seat": "n2"}}))["error"].take();
    assert_eq!(error["kind"], "refused");
    assert!(error["what"].as_str().expect("a text").contains("network namespace"), "{error}");
    assert_eq!(member(&session.rack(), "n2")["state"], "vacant");
    let taker = session.take("ring-4/n2");
    session.whole_rack();
    session.passes(&["down"]);
    taker.leaves_in_order();
}

#[test]
fn a_refusal_has_a_kind_and_an_unavailable_job_is_refused_with_the_alternatives() {
    let session = Session::begin();
    session.up(&topology("ring-4.yaml"), &[]);
    let mut client = session.connect("ring-4");
    for request in [json!({"job": {}}), json!({"job": 7})] {
        let error = client.request(&request)["error"].take();
        assert_eq!(error["kind"], "refused", "{request}: {error}");
        assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("--job")), "{request}: {error}");
    }
    assert_eq!(client.request(&json!({"dance": {}}))["error"]["kind"], "not-understood");
    assert_eq!(client.request(&json!({"join": {"seat": "n9"}}))["error"]["kind"], "refused");
    assert_eq!(
        client.request(&json!({"status": {}}))["status"]["name"],
        "ring-4",
        "and the client continues"
    );
}

#[test]
fn a_standing_rack_accepts_or_refuses_arrays_with_a_reason() {
    let session = Session::begin();
    let ring = topology("ring-4.yaml");
    let results = scratch("results");
    let results = results.to_str().expect("a plain path");
    let ended = session.rackloom(&["up", ring.to_str().expect("a plain path"), "--output", results]);
    assert_eq!(ended.code, Some(2), "{}", ended.stdout);
    assert!(ended.stderr.contains("hint:") && ended.stderr.contains("--job collective"), "{}", ended.stderr);

    session.up(&ring, &["--collective", "all-reduce", "--bytes", "4KiB", "--output", results]);
    for name in ["n0", "n1", "n2", "n3"] {
        session.rack_with(name, "up");
    }
    session.passes(&["down"]);
    for rank in 0..4 {
        let bytes = std::fs::read(format!("{results}/rank{rank}.npy")).expect("a result of each rank");
        assert!(bytes.starts_with(b"\x93NUMPY") && bytes.len() > 4 << 10);
    }
}

/// The run directory keeps other users out. Here it is opened on purpose, so that only the kernel's credentials of the peer
/// protect it. Credentials belong to threads, so a thread of this process has the other user identifier.
#[test]
fn another_user_is_refused_at_the_socket_itself() {
    if !rustix::process::geteuid().is_root() {
        not_tried("only root can connect as another user");
        return;
    }
    let name = format!("rackloom-other-user-{}", std::process::id());
    let session = Session::begin_at(std::env::temp_dir().join(name));
    session.up(&topology("ring-4.yaml"), &[]);
    let socket = session.socket("ring-4");
    let all = [Some(socket.as_path()), socket.parent(), socket.parent().and_then(Path::parent)];
    let open_to = |mode: u32| {
        for path in all.into_iter().flatten().chain([session.path.as_path()]) {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("the path exists");
        }
    };
    open_to(0o777);
    let other_user = std::thread::spawn({
        let socket = socket.clone();
        move || {
            let other_user = rustix::process::Uid::from_raw(65_534);
            set_thread_res_uid(other_user, other_user, other_user).expect("root may change its user");
            let mut client = Client::on(UnixStream::connect(socket).expect("nothing but the rack refuses"));
            client.request(&json!({"down": {}}))
        }
    });
    let answer = other_user.join().expect("the other user gets an answer");
    open_to(0o700);
    let what = answer["error"]["what"].as_str().unwrap_or_else(|| panic!("it was let in: {answer}"));
    assert!(what.contains("another user"), "{what}");
    assert_eq!(session.rack()["state"], "up", "and the refused request had no effect");
}
