//! Which wires there are, and which of them this system gives us.
//!
//! Shared memory and datagrams are everywhere. The packet wire needs network namespaces; where they are forbidden, what would
//! have run on it is skipped, and said so past the test harness, which swallows what passing tests print.

use std::io::Write;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use rustix::process::Pid;

/// Set where a skipped test shall count as failed.
const REQUIRED: &str = "RACKLOOM_TEST_REQUIRE_NAMESPACES";
pub(crate) const COULD_NOT_START: i32 = 3;

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

/// Count a test, or a part of one, as skipped because this system withholds namespaces or what it takes to reach into them.
pub(crate) fn skipped(what: &str) {
    assert!(std::env::var_os(REQUIRED).is_none(), "nothing may be skipped here: {what}");
    not_tried(what);
}

/// Count a test, or a part of one, as skipped for any other reason.
pub(crate) fn not_tried(what: &str) {
    let line = format!("SKIPPED (1): {}\n", what.replace('\n', "; "));
    std::io::stderr().write_all(line.as_bytes()).expect("standard error is there");
}

/// Whether this machine has a GPU; else `what` is counted as skipped.
pub(crate) fn has_gpu(what: &str) -> bool {
    let ended = super::rackloom(&["gpu", "info", "--json"]).finish();
    if ended.code == Some(0) {
        return true;
    }
    // Nothing else may be wrong with a machine without a GPU.
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    assert!(ended.stderr.contains("hint:") && ended.stdout.is_empty(), "{}", ended.stderr);
    not_tried(&format!("{what}: {}", ended.stderr.lines().next().unwrap_or_default()));
    false
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

/// Wait until so many frames have come to the interfaces of a member on the packet wire: its job is under way then.
pub(crate) fn has_received(member: Pid, frames: u64) {
    let path = format!("/proc/{}/net/dev", member.as_raw_nonzero());
    super::within(
        Duration::from_secs(30),
        &format!("{frames} frames to process {}", member.as_raw_nonzero()),
        || {
            let table = std::fs::read_to_string(&path).expect("a process that lives");
            let ports = table.lines().skip(2).filter_map(|line| line.split_once(':'));
            let ports = ports.filter(|(name, _)| name.trim() != "lo");
            let counts =
                ports.filter_map(|(_, counts)| counts.split_whitespace().nth(1)?.parse::<u64>().ok());
            (counts.sum::<u64>() >= frames).then_some(())
        },
    );
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
