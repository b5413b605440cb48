//! Wires, and their availability on this system.
//!
//! Shared memory and datagrams are available everywhere. The packet wire needs network namespaces. If they are forbidden, its
//! tests are skipped, with a line on standard error, because the test harness captures the output of passing tests.

use std::io::Write;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use rustix::process::Pid;

/// Variable that makes a skipped test fail.
const REQUIRED: &str = "RACKLOOM_TEST_REQUIRE_NAMESPACES";
pub(crate) const COULD_NOT_START: i32 = 3;

/// Returns all wires on which `test` can run here. A missing wire counts as one skipped test.
pub(crate) fn wires(test: &str) -> Vec<&'static str> {
    let mut wires = vec!["shared-memory", "udp"];
    if has_packet_wire(test) {
        wires.push("packet");
    }
    wires
}

/// Returns whether racks on the packet wire can be started. If not, `test` counts as skipped.
pub(crate) fn has_packet_wire(test: &str) -> bool {
    static MISSING: OnceLock<Option<String>> = OnceLock::new();
    let missing = MISSING.get_or_init(|| {
        let file = super::rack_file("name: can-it\nshape: {ring: {nodes: 2}}\njob: none\n");
        let ended = super::run(&file).with(&["--wire", "packet"]).finish();
        (ended.code == Some(COULD_NOT_START)).then_some(ended.stderr)
    });
    if let Some(reason) = missing {
        skipped(&format!("{test} on the packet wire: {}", reason.trim()));
    }
    missing.is_none()
}

/// Counts a test, or a part of one, as skipped because this system forbids namespaces or lacks the tools to enter them.
pub(crate) fn skipped(what: &str) {
    assert!(std::env::var_os(REQUIRED).is_none(), "nothing may be skipped here: {what}");
    not_tried(what);
}

/// Counts a test, or a part of one, as skipped for any other reason.
pub(crate) fn not_tried(what: &str) {
    let line = format!("SKIPPED (1): {}\n", what.replace('\n', "; "));
    std::io::stderr().write_all(line.as_bytes()).expect("standard error is there");
}

/// Returns whether this machine has a GPU. If not, `what` counts as skipped.
pub(crate) fn has_gpu(what: &str) -> bool {
    let ended = super::rackloom(&["gpu", "info", "--json"]).finish();
    if ended.code == Some(0) {
        return true;
    }
    // A machine without a GPU must give this error and no other.
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    assert!(ended.stderr.contains("hint:") && ended.stdout.is_empty(), "{}", ended.stderr);
    not_tried(&format!("{what}: {}", ended.stderr.lines().next().unwrap_or_default()));
    false
}

/// Switches off the first interface of a member on the packet wire, with the available tools. Returns an error if there are none.
pub(crate) fn cut_first_link(member: Pid) -> Result<(), String> {
    ip_link(member, &["set", "port0", "down"])
}

/// Runs `ip link` in the network namespace of a process, with the available tools. Returns an error if there are none.
pub(crate) fn ip_link(process: Pid, arguments: &[&str]) -> Result<(), String> {
    let done = in_network_of(process).args(["ip", "link"]).args(arguments).output();
    let done = done.map_err(|error| error.to_string())?;
    let stderr = String::from_utf8_lossy(&done.stderr).into_owned();
    // A missing program is an error; an existing one must succeed.
    match done.status.code() {
        Some(0) => Ok(()),
        Some(127) => Err(stderr),
        _ => panic!("ip link {arguments:?}: {stderr}"),
    }
}

/// Waits until this many frames have arrived at the interfaces of a member on the packet wire: its job runs then.
pub(crate) fn has_received(member: Pid, frames: u64) {
    let path = format!("/proc/{}/net/dev", member.as_raw_nonzero());
    super::within(
        Duration::from_secs(30),
        &format!("{frames} frames to process {}", member.as_raw_nonzero()),
        || {
            let table = std::fs::read_to_string(&path).expect("a running process");
            let ports = table.lines().skip(2).filter_map(|line| line.split_once(':'));
            let ports = ports.filter(|(name, _)| name.trim() != "lo");
            let counts =
                ports.filter_map(|(_, counts)| counts.split_whitespace().nth(1)?.parse::<u64>().ok());
            (counts.sum::<u64>() >= frames).then_some(())
        },
    );
}

/// Prepares a command in the network namespace of a process. The caller adds the program.
pub(crate) fn in_network_of(process: Pid) -> Command {
    // An ordinary user's rack is in a user namespace as well.
    let as_user: &[&str] =
        if rustix::process::geteuid().is_root() { &[] } else { &["-U", "--preserve-credentials"] };
    let mut command = Command::new("nsenter");
    command.args(["-t", &process.as_raw_nonzero().to_string()]).args(as_user).arg("-n");
    command.stdin(std::process::Stdio::null());
    command
}
