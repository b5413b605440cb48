//! Wires, and their availability on this system.
//!
//! Shared memory and datagrams are available everywhere. The packet wire needs network namespaces. If they are forbidden, its
//! tests are skipped, with a line on standard error, because the test harness captures the output of passing tests.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use rustix::process::Pid;
use rustix::thread::{
    CapabilitySets, LinkNameSpaceType, capabilities, configure_capability_in_ambient_set,
    move_into_link_name_space, set_capabilities,
};

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
    let done = match in_network_of(process, "ip").arg("link").args(arguments).output() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(format!("ip: {error}")),
        done => done.expect("the namespaces of the rack can be entered"),
    };
    // A missing program is an error; an existing one must succeed.
    assert!(done.status.success(), "ip link {arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    Ok(())
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

/// Prepares a command in the network namespace of a process, with the rights of the rack's supervisor there. An ordinary user's rack is in a user
/// namespace as well, in which the user is not root, so the rights are passed on explicitly.
pub(crate) fn in_network_of(process: Pid, program: impl AsRef<OsStr>) -> Command {
    let namespace = |kind| {
        let path = format!("/proc/{}/ns/{kind}", process.as_raw_nonzero());
        File::open(path).expect("a running process of this user")
    };
    let (user, network) = (namespace("user"), namespace("net"));
    let is_root = rustix::process::geteuid().is_root();
    let mut command = Command::new(program);
    command.stdin(std::process::Stdio::null());
    let enter = move || {
        if is_root {
            return Ok(move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))?);
        }
        move_into_link_name_space(user.as_fd(), Some(LinkNameSpaceType::User))?;
        move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))?;
        let sets = capabilities(None)?;
        set_capabilities(None, CapabilitySets { inheritable: sets.permitted, ..sets })?;
        for capability in sets.permitted.iter() {
            configure_capability_in_ambient_set(capability, true)?;
        }
        Ok(())
    };
    // SAFETY: needed because a test process has threads, and only a child that has none yet may enter a user namespace. Between fork and exec this
    // makes nothing but system calls.
    unsafe { command.pre_exec(enter) };
    command
}
