//! Which wires there are, and which of them this system gives us.
//!
//! Shared memory and datagrams are everywhere. The packet wire needs network namespaces; where they are forbidden, what would
//! have run on it is skipped, and said so past the test harness, which swallows what passing tests print.

use std::io::Write;
use std::process::Command;
use std::sync::OnceLock;

use rustix::process::Pid;

/// Set where a skipped test shall count as failed.
const REQUIRED: &str = "RACKLOOM_TEST_REQUIRE_NAMESPACES";
const COULD_NOT_START: i32 = 3;

/// All wires on which `test` can run here. A wire that is missing counts as one skipped test.
pub(crate) fn wires(test: &str) -> Vec<&'static str> {
    let mut wires = vec!["shared-memory", "udp"];
    if has_packet_wire(test) {
        wires.push("packet");
    }
    wires
}

/// Whether racks on the packet wire can be started; if not, `test` counts as skipped there.
pub(crate) fn has_packet_wire(test: &str) -> bool {
    static WHY_NOT: OnceLock<Option<String>> = OnceLock::new();
    let why_not = WHY_NOT.get_or_init(|| {
        let file = super::rack_file("name: can-it\nshape: {ring: {nodes: 2}}\njob: none\n");
        let ended = super::run(&file).with(&["--wire", "packet"]).finish();
        (ended.code == Some(COULD_NOT_START)).then_some(ended.stderr)
    });
    if let Some(why) = why_not {
        skipped(&format!("{test} on the packet wire: {}", why.trim()));
    }
    why_not.is_none()
}

/// Count a test, or a part of one, as skipped.
pub(crate) fn skipped(what: &str) {
    assert!(std::env::var_os(REQUIRED).is_none(), "nothing may be skipped here: {what}");
    let line = format!("SKIPPED (1): {}\n", what.replace('\n', "; "));
    std::io::stderr().write_all(line.as_bytes()).expect("standard error is there");
}

/// Switch off the first interface of a member on the packet wire, with the tools at hand; an error if there are none.
pub(crate) fn cut_first_link(member: Pid) -> Result<(), String> {
    ip_link(member, &["set", "port0", "down"])
}

/// `ip link` in the network namespace of a process, with the tools at hand; an error if there are none.
pub(crate) fn ip_link(process: Pid, arguments: &[&str]) -> Result<(), String> {
    let done = in_network_of(process).args(["ip", "link"]).args(arguments).output();
    let done = done.map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    // Without the program it is not tried; with it, it must succeed.
    match done.status.code() {
        Some(0) => Ok(()),
        Some(127) => Err(said),
        _ => panic!("ip link {arguments:?}: {said}"),
    }
}

/// A command in the network namespace of a process: to be completed with the program.
pub(crate) fn in_network_of(process: Pid) -> Command {
    // An ordinary user's rack lives in a user namespace as well.
    let as_user: &[&str] =
        if rustix::process::geteuid().is_root() { &[] } else { &["-U", "--preserve-credentials"] };
    let mut command = Command::new("nsenter");
    command.args(["-t", &process.as_raw_nonzero().to_string()]).args(as_user).arg("-n");
    command.stdin(std::process::Stdio::null());
    command
}
