//! Runs tests that need network interfaces, each in a child of the test process with namespaces of its own.
//!
//! The kernel removes the namespaces when the child ends. Where the system forbids namespaces, a test writes a message directly to standard error,
//! past the test harness, and counts as skipped.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::namespaces::{
    Bridge, BridgeCable, Cable, CableEnd, NamespaceError, bring_up, connect_to_bridges, create_bridges,
    create_cables, enter_supervisor_namespaces,
};

/// Environment variable that is set in the child that runs inside the namespaces.
const INSIDE: &str = "RACKLOOM_TEST_INSIDE_NAMESPACES";
/// Environment variable that makes a skipped test fail.
const REQUIRED: &str = "RACKLOOM_TEST_REQUIRE_NAMESPACES";

/// Runs the test with this path in a child that may create network interfaces.
pub(super) fn in_namespaces(test: &str, body: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        return body();
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]);
    command.env(INSIDE, "1").stdin(Stdio::null());
    // SAFETY: needed because a test process has threads, and only a child that has none yet may enter a user namespace. Between fork and exec the
    // closure makes nothing but system calls.
    unsafe {
        command.pre_exec(|| match enter_supervisor_namespaces() {
            Err(
                NamespaceError::Forbidden { cause, .. }
                | NamespaceError::Cable { cause, .. }
                | NamespaceError::NoBridge { cause, .. },
            ) => Err(cause),
            Ok(()) => Ok(()),
        })
    };
    match command.spawn() {
        Ok(mut child) => assert!(child.wait().unwrap().success(), "the suite failed inside the namespaces"),
        Err(cause) => {
            assert!(std::env::var_os(REQUIRED).is_none(), "namespaces are required: {cause}");
            let text = format!("SKIPPED (1): {test}: no network namespaces on this system: {cause}\n");
            std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes()).unwrap();
        }
    }
}

/// Creates a cable with this number, with both ends in this namespace and switched on. Returns the names of the ends.
pub(super) fn lay(number: u8) -> [String; 2] {
    let end = |side: &str, last| CableEnd {
        process: std::process::id(),
        interface: format!("{side}{number}"),
        address: address(number, last),
    };
    let cable = Cable { ends: [end("local", 0), end("remote", 1)], mtu: 9000 };
    create_cables(std::slice::from_ref(&cable)).unwrap();
    let names = cable.ends.map(|end| end.interface);
    bring_up(&names, Duration::from_secs(10)).unwrap();
    names
}

/// Creates two ends with this number, joined by a bridge of the kernel. The bridge floods frames to unknown addresses to every port. Returns the
/// names of the ends.
pub(super) fn lay_at_bridge(number: u8) -> [String; 2] {
    let bridge = Bridge { name: format!("bridge{number}"), mtu: 9000 };
    create_bridges(std::slice::from_ref(&bridge)).unwrap();
    let cable = |side: &str, last| BridgeCable {
        bridge: bridge.clone(),
        port: bridge_port(side, number),
        end: CableEnd {
            process: std::process::id(),
            interface: format!("{side}{number}"),
            address: address(number, last),
        },
    };
    let cables = [cable("local", 0), cable("remote", 1)];
    connect_to_bridges(&cables).unwrap();
    let names = cables.map(|cable| cable.end.interface);
    bring_up(&names, Duration::from_secs(10)).unwrap();
    names
}

/// Returns the name of the bridge's own end of the cable to this side.
pub(super) fn bridge_port(side: &str, number: u8) -> String {
    format!("to-{side}{number}")
}

/// Returns the MAC address of an end: 0 is local, 1 is remote.
pub(super) const fn address(number: u8, end: u8) -> [u8; 6] {
    [2, 0x52, 0x4c, 0, number, end]
}
