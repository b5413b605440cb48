//! Brief statuses of a standing rack: members are not woken for them, and no old figures are shown as present ones.
//!
//! A member logs each request for its status, so the logs show who was sent one. No test waits for a fixed time: each condition is polled, with a
//! timeout.

mod support;

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal};
use serde_json::Value;
use support::{rack_file, rackloom, scratch, send, within};

const TIMEOUT: Duration = Duration::from_secs(60);
/// Time between two looks.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// Looks in a row that send no request, before a rack counts as watched without messages.
const LOOKS: usize = 10;

/// Standing ring of four nodes without a job, with a connection to its control socket.
struct Rack {
    session: PathBuf,
    client: BufReader<UnixStream>,
}

impl Rack {
    fn up() -> Self {
        let session = scratch("session");
        std::fs::create_dir(&session).expect("the folder can be written");
        let file = rack_file("name: watched\nshape: {ring: {nodes: 4}}\n");
        let up = rackloom(&["up", file.to_str().expect("a plain path")]);
        let ended = up.in_run_directory(&session).in_environment("RACKLOOM_LOG", "debug").finish();
        assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
        let socket = UnixStream::connect(session.join("rackloom/watched/control")).expect("the rack listens");
        Self { session, client: BufReader::new(socket) }
    }

    /// Returns a brief status.
    fn look(&mut self) -> Value {
        self.client.get_mut().write_all(b"{\"status\": {\"brief\": true}}\n").expect("the rack reads");
        let mut line = String::new();
        self.client.read_line(&mut line).expect("the rack answers");
        serde_json::from_str::<Value>(&line).expect("JSON")["status"].take()
    }

    /// Looks until the condition holds.
    fn look_until(&mut self, what: &str, condition: impl Fn(&Value) -> bool) -> Value {
        within(TIMEOUT, what, || {
            std::thread::sleep(LOOK_INTERVAL);
            Some(self.look()).filter(|status| condition(status))
        })
    }

    /// Returns the number of requests for their status that these members have received.
    fn requests(&self, members: &[&str]) -> usize {
        let log = |name: &&str| {
            let path = self.session.join(format!("rackloom/watched/logs/{name}.log"));
            std::fs::read_to_string(path).expect("the log of a member")
        };
        members.iter().map(|name| log(name).matches("status requested").count()).sum()
    }

    /// Looks until these members have shown new figures in each of several looks in a row, and were sent no request meanwhile.
    fn is_watched_without_requests(&mut self, members: &[&str]) {
        within(TIMEOUT, "looks without requests", || {
            let (sent, first) = (self.requests(members), self.look());
            for _ in 0..LOOKS {
                std::thread::sleep(LOOK_INTERVAL);
                self.look();
            }
            let last = self.look();
            let is_later = |name: &&str| {
                let at_ns = |status: &Value| member(status, name)["at_ns"].as_u64();
                member(&last, name)["state"] == "up" && at_ns(&first) < at_ns(&last)
            };
            (self.requests(members) == sent && members.iter().all(is_later)).then_some(())
        });
    }
}

impl Drop for Rack {
    fn drop(&mut self) {
        let _ = rackloom(&["down"]).in_run_directory(&self.session).finish();
        let _ = std::fs::remove_dir_all(&self.session);
    }
}

fn member<'s>(status: &'s Value, name: &str) -> &'s Value {
    let members = status["members"].as_array().expect("members");
    members.iter().find(|member| member["name"] == name).expect("the member")
}

fn link<'s>(status: &'s Value, name: &str) -> &'s Value {
    let links = status["links"].as_array().expect("links");
    links.iter().find(|link| link["name"] == name).expect("the link")
}

fn process_of(status: &Value, name: &str) -> Pid {
    let pid = member(status, name)["pid"].as_i64().expect("a pid");
    Pid::from_raw(i32::try_from(pid).expect("a pid")).expect("no zero")
}

/// Returns true if nothing is shown that a process without an answer cannot have sent.
fn has_no_figures(status: &Value, name: &str) -> bool {
    let member = member(status, name);
    let of_member = ["at_ns", "processor_ns", "incarnation", "links_up", "memory_used_bytes"];
    let links = status["links"].as_array().expect("links");
    let has_sent = |link: &Value| link["from"] == name && !link["sent"].is_null();
    of_member.iter().all(|figure| member[figure].is_null()) && !links.iter().any(has_sent)
}

const ALL: [&str; 4] = ["n0", "n1", "n2", "n3"];

#[test]
fn members_are_sent_no_requests_while_a_rack_is_watched() {
    let mut rack = Rack::up();
    let before = rack.requests(&ALL);
    let first = rack.look();
    assert!(rack.requests(&ALL) >= before + ALL.len(), "the first look sends a request to each member");
    rack.is_watched_without_requests(&ALL);
    // Figures from pages are those of an answer: each counter is there, and none has gone back.
    let later = rack.look();
    for (name, back) in [("n0->n1", "n1->n0"), ("n2->n3", "n3->n2")] {
        let (old, new) = (link(&first, name), link(&later, name));
        for counter in ["at_ns", "frames", "bytes"] {
            let [old, new] = [old, new].map(|link| link["sent"][counter].as_u64());
            assert!(new > old && old.is_some(), "{counter}: {old:?} {new:?}");
        }
        assert_eq!(link(&later, back)["missing"], link(&first, back)["missing"]);
    }
    for field in
        ["pid", "incarnation", "memory", "memory_used_bytes", "links_up", "links_total", "links_down"]
    {
        assert_eq!(member(&later, "n0")[field], member(&first, "n0")[field], "{field}");
    }
    assert!(member(&later, "n0")["processor_ns"].as_u64() > member(&first, "n0")["processor_ns"].as_u64());
}

#[test]
fn a_status_that_is_watched_sends_one_request_for_two_samples() {
    const STATUSES: usize = 12;
    let rack = Rack::up();
    let before = rack.requests(&ALL);
    let mut child = Command::new(env!("CARGO_BIN_EXE_rackloom"))
        .args(["status", "--watch", "200ms", "--json"])
        .env("XDG_RUNTIME_DIR", &rack.session)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let output = BufReader::new(child.stdout.take().expect("it was piped"));
    let lines: Vec<_> = output.lines().take(STATUSES).map(|line| line.expect("a line")).collect();
    let _ = child.kill();
    let _ = child.wait();
    let racks: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    // A member of a busy machine may send no frame between two samples, but not between all.
    let has_rate = |status: &Value| link(status, "n0->n1")["rate"]["frames_per_s"].as_u64() > Some(0);
    assert!(racks.iter().any(|look| has_rate(&look["racks"][0])), "{racks:?}");
    let status = &racks[STATUSES - 1]["racks"][0];
    assert!(member(status, "n0")["paths"].is_array(), "{status}");
    // Some of the first samples may come from requests on a busy machine, but not most of them.
    let requests = rack.requests(&ALL) - before;
    assert!(requests < ALL.len() * STATUSES * 3 / 2, "{requests} requests");
}

#[test]
fn a_stopped_member_is_silent_and_the_others_are_still_sent_no_requests() {
    let mut rack = Rack::up();
    rack.is_watched_without_requests(&ALL);
    let stopped = process_of(&rack.look(), "n2");
    send(stopped, Signal::STOP);
    rack.look_until("a silent member without figures", |status| {
        member(status, "n2")["state"] == "silent" && has_no_figures(status, "n2")
    });
    rack.is_watched_without_requests(&["n0", "n1", "n3"]);
    assert_eq!(member(&rack.look(), "n2")["state"], "silent", "it stays silent");
    send(stopped, Signal::CONT);
    rack.look_until("the member after its stop", |status| {
        member(status, "n2")["state"] == "up" && member(status, "n2")["links_up"] == 2
    });
    rack.is_watched_without_requests(&ALL);
}

#[test]
fn a_killed_member_has_no_figures() {
    let mut rack = Rack::up();
    rack.is_watched_without_requests(&ALL);
    send(process_of(&rack.look(), "n1"), Signal::KILL);
    let status = rack.look_until("a lost member without figures", |status| {
        member(status, "n1")["state"] == "lost" && has_no_figures(status, "n1")
    });
    assert_eq!(link(&status, "n1->n2")["unanswered"][0], "n1");
    rack.look_until("links of the neighbours that are down", |status| {
        ["n0", "n2"].iter().all(|name| member(status, name)["links_up"] == 1)
    });
    rack.is_watched_without_requests(&["n0", "n2", "n3"]);
}

#[test]
fn a_successor_has_a_page_of_its_own() {
    let mut rack = Rack::up();
    rack.is_watched_without_requests(&ALL);
    let before = rack.look();
    let (old, incarnation) = (process_of(&before, "n1"), member(&before, "n1")["incarnation"].as_u64());
    let inject = rackloom(&["inject", "node", "n1", "--kill", "--for", "200ms"]);
    let ended = inject.in_run_directory(&rack.session).finish();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let is_successor = |status: &Value| {
        let new = member(status, "n1");
        new["state"] == "up" && new["links_up"] == 2 && new["incarnation"].as_u64() > incarnation
    };
    let status = rack.look_until("the successor", is_successor);
    assert_ne!(process_of(&status, "n1"), old);
    rack.is_watched_without_requests(&ALL);
    let status = rack.look();
    assert!(is_successor(&status), "{status}");
    let sent = |status: &Value| link(status, "n1->n2")["sent"]["at_ns"].as_u64();
    assert!(sent(&status) > sent(&before));
}
