//! Rates, losses and paths in `rackloom status`, of members that the rack has started and of seats that a program holds.
//!
//! No test waits for a fixed time: each condition is polled, with a timeout.

mod support;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rackloom::fabric::{Node, RegionOptions};
use rustix::process::{Pid, Signal};
use serde_json::{Value, json};
use support::{rack_file, rackloom, scratch, send, topology, within};

const TIMEOUT: Duration = Duration::from_secs(60);

/// Standing rack in its own session.
struct Rack {
    session: PathBuf,
    name: &'static str,
}

impl Rack {
    fn up(file: &std::path::Path, name: &'static str, more: &[&str]) -> Self {
        let session = scratch("session");
        std::fs::create_dir(&session).expect("the folder can be written");
        let rack = Self { session, name };
        rack.passes(&[&["up", file.to_str().expect("a plain path")], more].concat());
        rack
    }

    fn passes(&self, arguments: &[&str]) -> String {
        let ended = rackloom(arguments).in_run_directory(&self.session).finish();
        assert_eq!(ended.code, Some(0), "{arguments:?}\n{}\n{}", ended.stdout, ended.stderr);
        ended.stdout
    }

    fn directory(&self) -> String {
        let path = self.session.join("rackloom").join(self.name);
        path.to_str().expect("a plain path").to_owned()
    }

    fn status(&self) -> Value {
        let status: Value = serde_json::from_str(&self.passes(&["status", "--json"])).expect("JSON");
        status["racks"][0].clone()
    }

    /// Polls the status until the condition holds.
    fn wait_for(&self, what: &str, condition: impl Fn(&Value) -> bool) -> Value {
        within(TIMEOUT, what, || Some(self.status()).filter(&condition))
    }
}

impl Drop for Rack {
    fn drop(&mut self) {
        let _ = rackloom(&["down"]).in_run_directory(&self.session).finish();
        let _ = std::fs::remove_dir_all(&self.session);
    }
}

fn named<'r>(rack: &'r Value, list: &str, name: &str) -> &'r Value {
    let all = rack[list].as_array().unwrap_or_else(|| panic!("no {list} in {rack}"));
    all.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("no {name} in {list}: {rack}"))
}

fn link<'r>(rack: &'r Value, name: &str) -> &'r Value {
    named(rack, "links", name)
}

/// Returns data frames per second, or `None` if the rate is unknown.
fn data_rate(rack: &Value, name: &str) -> Option<u64> {
    link(rack, name)["rate"]["data_frames_per_s"].as_u64()
}

fn injected(rack: &Value, name: &str) -> u64 {
    link(rack, name)["dropped"]["injected"].as_u64().unwrap_or(0)
}

fn path<'r>(rack: &'r Value, from: &str, to: &str) -> &'r Value {
    let paths = named(rack, "members", from)["paths"].as_array().expect("a GPU node that answered has paths");
    paths.iter().find(|path| path["to"] == to).expect("a path to each GPU node")
}

/// Returns whether every member has answered twice.
fn has_rates(rack: &Value) -> bool {
    rack["links"]
        .as_array()
        .expect("links")
        .iter()
        .all(|link| link["rate"].is_object() && link["missing"].is_u64())
}

/// Checks that each field that the documents name has its type.
fn is_documented(link: &Value) {
    for text in ["name", "from", "to"] {
        assert!(link[text].is_string(), "{text}: {link}");
    }
    for count in ["at_ns", "frames", "bytes", "data_frames", "data_bytes", "retransmitted", "replayed"] {
        assert!(link["sent"][count].is_u64(), "sent.{count}: {link}");
    }
    for rate in ["interval_ns", "frames_per_s", "bytes_per_s", "data_frames_per_s", "data_bytes_per_s"] {
        assert!(link["rate"][rate].is_u64(), "rate.{rate}: {link}");
    }
    assert!(link["plane"].is_u64() && link["missing"].is_u64() && link["dropped"].is_object(), "{link}");
}

#[test]
fn rates_losses_and_paths_of_a_job_in_progress_are_shown() {
    let file = rack_file(
        "name: busy\nshape: {star: {nodes: 2, planes: 2}}\n\
         job: {collective: {collective: all-reduce, bytes: 64KiB, repetitions: 1000000}}\n",
    );
    let rack = Rack::up(&file, "busy", &["--job", "collective"]);
    let is_loaded = |status: &Value| {
        let of_switches = |to: &str| {
            ["s0", "s1"]
                .iter()
                .filter_map(|switch| data_rate(status, &format!("{switch}->{to}")))
                .sum::<u64>()
        };
        of_switches("n0") > 0 && of_switches("n1") > 0
    };
    let status = rack.wait_for("data on links and both planes alive", |status| {
        is_loaded(status) && path(status, "n0", "n1")["live"] == 2 && has_rates(status)
    });
    status["links"].as_array().expect("links").iter().for_each(is_documented);
    assert_eq!(
        path(&status, "n0", "n1"),
        &json!({"to": "n1", "live": 2, "planes": [0, 1], "links": ["n0->s0", "n0->s1"]})
    );
    assert!(named(&status, "members", "s0")["paths"].is_null(), "a switch sends nothing of its own");

    rack.passes(&["inject", "link", "plane 1", "--down"]);
    let status = rack.wait_for("one path of two, with the job on it", |status| {
        path(status, "n0", "n1")["live"] == 1 && is_loaded(status)
    });
    assert_eq!(
        path(&status, "n0", "n1"),
        &json!({"to": "n1", "live": 1, "planes": [0], "links": ["n0->s0"]})
    );
    rack.wait_for("no data in the plane that is down", |status| {
        data_rate(status, "n0->s1") == Some(0) && data_rate(status, "n0->s0").is_some_and(|rate| rate > 0)
    });

    rack.passes(&["inject", "link", "n0:s0", "--loss", "5%"]);
    let status = rack.wait_for("losses by name", |status| {
        injected(status, "n0->s0") > 0 && link(status, "n0->s0")["missing"].as_u64() > Some(0)
    });
    assert_eq!(injected(&status, "n1->s0"), 0, "nothing was injected there: {status}");
    rack.wait_for("packets sent again", |status| {
        link(status, "n0->s0")["sent"]["retransmitted"].as_u64() > Some(0)
    });
    let shown = rack.passes(&["status"]);
    for part in ["rates now, over", "data frames/s", "wire rate", "retransmitted", "injected ", "paths of"] {
        assert!(shown.contains(part), "{part} is missing:\n{shown}");
    }
}

#[test]
fn links_are_idle_after_the_job_and_their_counters_stay() {
    let file =
        rack_file("name: brief\nshape: {ring: {nodes: 3}}\njob: {litmus: {bytes_max: 64KiB, rounds: 1}}\n");
    let rack = Rack::up(&file, "brief", &["--job", "litmus"]);
    let status = rack.wait_for("idle links after the job", |status| {
        let links = status["links"].as_array().expect("links");
        status["verdict"] == "pass"
            && links
                .iter()
                .all(|link| link["rate"]["data_frames_per_s"] == 0 && link["rate"]["data_bytes_per_s"] == 0)
    });
    for link in status["links"].as_array().expect("links") {
        assert!(link["sent"]["data_frames"].as_u64() > Some(0), "{link}");
        is_documented(link);
    }
}

#[test]
fn rates_and_losses_of_a_program_on_a_seat_are_shown() {
    let rack = Rack::up(&topology("ring-4.yaml"), "ring-4", &["--vacant", "n1,n2"]);
    let [from, to] =
        ["n1", "n2"].map(|seat| Node::join(&rack.directory(), seat).expect("the seat is vacant"));
    from.wait_until_reached(&[to.id()], TIMEOUT).expect("the other seat is taken");
    let region = to.allocate(RegionOptions::new(1, 7), 64).expect("memory");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                from.store(region.address(0), &[7; 8]).wait().expect("the region is there");
            }
        });
        // The stores end with the test, also if it fails.
        let ended = Ends(&is_over);
        let status = rack.wait_for("data on the link that carries it", |status| {
            data_rate(status, "n1->n2").is_some_and(|rate| rate > 0)
                && has_rates(status)
                && path(status, "n0", "n2")["live"] == 2
        });
        is_documented(link(&status, "n1->n2"));
        for idle in ["n0->n3", "n3->n0"] {
            assert_eq!(data_rate(&status, idle), Some(0), "{}", link(&status, idle));
        }
        assert_eq!(path(&status, "n1", "n2")["links"], json!(["n1->n2"]));
        rack.passes(&["inject", "link", "n1:n2", "--loss", "20%", "--for", "2s"]);
        rack.wait_for("injected losses of a program's link", |status| {
            injected(status, "n1->n2") > 0
                && link(status, "n1->n2")["sent"]["retransmitted"].as_u64() > Some(0)
        });
        drop(ended);
    });
    rack.wait_for("an idle link", |status| data_rate(status, "n1->n2") == Some(0));
}

struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_member_that_does_not_answer_in_time_has_dashes() {
    let rack = Rack::up(&topology("ring-4.yaml"), "ring-4", &["--vacant", "n0"]);
    let stopped = named(&rack.status(), "members", "n2")["pid"].as_i64().expect("a pid");
    send(Pid::from_raw(stopped as i32).expect("no zero"), Signal::STOP);
    let status = rack.wait_for("answers of all but the stopped member", |status| {
        link(status, "n2->n3")["sent"].is_null() && link(status, "n3->n2")["rate"].is_object()
    });
    let (out, back) = (link(&status, "n2->n3"), link(&status, "n3->n2"));
    assert_eq!((&out["sent"], &out["rate"]), (&Value::Null, &Value::Null), "{out}");
    assert_eq!(out["unanswered"], json!(["n2"]));
    assert!(out["missing"].is_u64(), "the other end answered: {out}");
    assert!(back["rate"]["frames_per_s"].is_u64() && back["missing"].is_null(), "{back}");
    let unknown = link(&status, "n0->n1");
    assert_eq!(unknown["unanswered"], json!(["n0"]), "a vacant seat has no counters");
    assert!(named(&status, "members", "n2")["paths"].is_null());
    let shown = rack.passes(&["status", "ring-4"]);
    let row = shown.lines().find(|line| line.starts_with("n2->n3")).expect("a row of the link");
    let cells: Vec<_> = row.split_whitespace().collect();
    assert_eq!(cells[..8], ["n2->n3", "0", "-", "-", "-", "-", "-", "-"], "{shown}");
    assert!(row.ends_with("- of n2"), "{row}");
}
