//! Standing racks whose seats a test takes through the library, and processes of a test binary that take seats.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::{rackloom, scratch, topology, within};

const TIMEOUT: Duration = Duration::from_secs(30);

/// A standing rack in a session of its own.
pub(crate) struct Rack {
    pub(crate) session: PathBuf,
    pub(crate) name: &'static str,
}

impl Rack {
    pub(crate) fn up(more: &[&str]) -> Self {
        let session = scratch("session");
        std::fs::create_dir(&session).expect("the folder can be written");
        let rack = Self { session, name: "ring-4" };
        let file = topology("ring-4.yaml");
        rack.passes(&[&["up", file.to_str().expect("a plain path")], more].concat());
        rack
    }

    /// Starts a rack of four nodes in a ring, from a file with `text`.
    pub(crate) fn up_with(text: &str, more: &[&str]) -> Self {
        let session = scratch("session");
        std::fs::create_dir(&session).expect("the folder can be written");
        let file = session.join("ring-4.yaml");
        let text = format!("name: ring-4\nshape: {{ring: {{nodes: 4}}}}\n{text}");
        std::fs::write(&file, text).expect("the folder can be written");
        let rack = Self { session, name: "ring-4" };
        rack.passes(&[&["up", file.to_str().expect("a plain path")], more].concat());
        rack
    }

    pub(crate) fn passes(&self, arguments: &[&str]) -> String {
        let ended = rackloom(arguments).in_run_directory(&self.session).finish();
        assert_eq!(ended.code, Some(0), "{arguments:?}\n{}\n{}", ended.stdout, ended.stderr);
        ended.stdout
    }

    /// Returns the rack's own directory, by which the library finds it independently of this process's environment.
    pub(crate) fn directory(&self) -> String {
        let path = self.session.join("rackloom").join(self.name);
        path.to_str().expect("a plain path").to_owned()
    }

    pub(crate) fn member(&self, name: &str) -> Value {
        let status: Value = serde_json::from_str(&self.passes(&["status", "--json"])).expect("JSON");
        let members = status["racks"][0]["members"].as_array().expect("members");
        members.iter().find(|member| member["name"] == name).expect("there is such a member").clone()
    }

    pub(crate) fn wait_for(&self, name: &str, state: &str) -> Value {
        within(TIMEOUT, &format!("{name} is {state}"), || {
            Some(self.member(name)).filter(|member| member["state"] == state)
        })
    }
}

impl Drop for Rack {
    fn drop(&mut self) {
        let _ = rackloom(&["down"]).in_run_directory(&self.session).finish();
        let _ = std::fs::remove_dir_all(&self.session);
    }
}

/// Starts a body in a process of its own, with the rack and `what` in a variable.
pub(crate) fn start(rack: &Rack, variable: &str, body: &str, what: &str) -> Child {
    Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", body, "--nocapture"])
        .env(variable, format!("{}={what}", rack.directory()))
        .stdout(Stdio::null())
        .spawn()
        .expect("this test starts once more")
}
