//! Racks that start and end leave nothing, and racks do not disturb each other.
//!
//! This is a separate test binary whose tests run one after the other, because it counts the descriptors of
//! the test as well.

mod support;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use support::footprint::Footprint;
use support::wires::wires;
use support::{rack_file, rackloom, run, scratch, topology, within};

static ONE_AFTER_THE_OTHER: Mutex<()> = Mutex::new(());

/// Session of a user. Its path marks everything that is started in it.
struct Session(PathBuf);

impl Session {
    fn begin() -> Self {
        let path = scratch("session");
        std::fs::create_dir(&path).expect("the scratch folder can be written");
        Self(path)
    }

    fn passes(&self, arguments: &[&str]) -> String {
        let ended = rackloom(arguments).in_run_directory(&self.0).finish();
        assert_eq!(ended.code, Some(0), "{arguments:?}\n{}\n{}", ended.stdout, ended.stderr);
        ended.stdout
    }

    /// Returns the racks that are up, with their states.
    fn racks(&self) -> Vec<Value> {
        let status: Value = serde_json::from_str(&self.passes(&["status", "--json"])).expect("JSON");
        status["racks"].as_array().expect("a list of racks").clone()
    }

    /// Returns the remains of racks in the session's directory.
    fn on_disk(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.join("rackloom")).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| name != ".lock").collect()
    }

    /// Waits until everything is as before: sockets of dead processes disappear a moment after them.
    fn is_again(&self, before: &Footprint, when: &str) {
        let look = || (Footprint::of(&self.0) == *before).then_some(());
        let deadline = std::time::Instant::now() + Duration::from_secs(5);
        while look().is_none() {
            let now = Footprint::of(&self.0);
            assert!(std::time::Instant::now() < deadline, "{when}: {now:?} is left, it was {before:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(self.on_disk(), Vec::<String>::new(), "{when}");
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = rackloom(&["down", "--all"]).in_run_directory(&self.0).finish();
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

/// 20 cycles in each build; `RACKLOOM_CYCLES=200` for the long version (docs/measuring.md).
#[test]
fn racks_that_start_and_end_leave_no_resources() {
    let _alone = ONE_AFTER_THE_OTHER.lock().unwrap_or_else(PoisonError::into_inner);
    let cycles = std::env::var("RACKLOOM_CYCLES").ok().and_then(|text| text.parse().ok()).unwrap_or(20);
    let wires = wires("racks_that_start_and_end_leave_no_resources");
    let session = Session::begin();
    let before = Footprint::of(&session.0);
    assert_eq!(before.process_count(), 0);
    for cycle in 0..cycles {
        let wire = wires[cycle % wires.len()];
        // Only the supervisor holds the namespace of the bridges.
        let has_bridge = wire == "packet" && cycle % 2 == 0;
        let file = if has_bridge { "star-4-bridge.yaml" } else { "ring-4.yaml" };
        session.passes(&["up", text(&topology(file)), "--wire", wire]);
        // A member that is delayed by a busy machine answers the next time.
        within(Duration::from_secs(20), "a status with all links up", || {
            let racks = session.racks();
            assert_eq!(racks.len(), 1);
            (racks[0]["links_up"] == racks[0]["links_total"]).then_some(())
        });
        assert_eq!(Footprint::of(&session.0).process_count(), 5, "four members and a supervisor are seen");
        session.passes(&["down"]);
        session.is_again(&before, &format!("after {} cycles on {wire}", cycle + 1));
    }
}

#[test]
fn a_run_does_not_disturb_a_standing_rack() {
    let _alone = ONE_AFTER_THE_OTHER.lock().unwrap_or_else(PoisonError::into_inner);
    let wires = wires("a_run_does_not_disturb_a_standing_rack");
    let session = Session::begin();
    let before = Footprint::of(&session.0);
    let file =
        rack_file("name: twin\nshape: {ring: {nodes: 3}}\njob: {litmus: {bytes_max: 64KiB, rounds: 2}}\n");
    for wire in wires {
        session.passes(&["up", text(&file), "--wire", wire, "--job", "litmus"]);
        let report = run(&file).with(&["--wire", wire]).in_run_directory(&session.0).finish().passed();
        within(Duration::from_secs(20), "the end of the litmus that is up", || {
            let members = session.racks()[0]["members"].as_array().expect("members").clone();
            members.iter().all(|member| member["state"] == "up").then_some(())
        });
        let json = scratch("down.json");
        session.passes(&["down", "--json", text(&json)]);
        let stood: Value =
            serde_json::from_str(&std::fs::read_to_string(&json).expect("a report")).expect("JSON");
        assert_eq!(stood["verdict"], "pass");
        for link in [&report, &stood].iter().flat_map(|report| report["links"].as_array().expect("links")) {
            let foreign_reasons = ["wrong-epoch", "wrong-address", "unknown-sender", "foreign-ether-type"];
            assert!(foreign_reasons.iter().all(|reason| link["dropped"][reason].is_null()), "{wire}: {link}");
        }
        session.is_again(&before, wire);
    }
}
