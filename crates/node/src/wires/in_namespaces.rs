//! Tests that need interfaces: each in a child of the test process with namespaces of its own, which go with it.
//!
//! Where the system forbids namespaces, a test says so loudly, past the test harness, and counts as skipped.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::namespaces::{
    Bridge, BridgeCable, Cable, CableEnd, NamespaceError, bring_up, enter_supervisor_namespaces, lay_cables,
    make_bridges, plug_into_bridges,
};

/// Set in the child that runs inside the namespaces.
const INSIDE: &str = "RACKLOOM_TEST_INSIDE_NAMESPACES";
/// Set where a skipped test shall count as failed.
const REQUIRED: &str = "RACKLOOM_TEST_REQUIRE_NAMESPACES";

/// Run the test of this path in a child that may lay cables.
pub(super) fn in_namespaces(test: &str, body: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        return body();
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]);
    command.env(INSIDE, "1").stdin(Stdio::null());
    // SAFETY: needed because a test process has threads, and only a child that has none yet may enter a user
    // namespace. Between fork and exec this makes nothing but system calls.
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

/// A cable with this number, both ends here and switched on; their names.
pub(super) fn lay(number: u8) -> [String; 2] {
    let end = |side: &str, last| CableEnd {
        process: std::process::id(),
        interface: format!("{side}{number}"),
        address: address(number, last),
    };
    let cable = Cable { ends: [end("near", 0), end("far", 1)], mtu: 9000 };
    lay_cables(std::slice::from_ref(&cable)).unwrap();
    let names = cable.ends.map(|end| end.interface);
    bring_up(&names, Duration::from_secs(10)).unwrap();
    names
}

/// The same with a bridge of the kernel between the ends. It gives what it does not know to every port.
pub(super) fn lay_at_bridge(number: u8) -> [String; 2] {
    let bridge = Bridge { name: format!("bridge{number}"), mtu: 9000 };
    make_bridges(std::slice::from_ref(&bridge)).unwrap();
    let cable = |side: &str, last| BridgeCable {
        bridge: bridge.clone(),
        port: bridge_port(side, number),
        end: CableEnd {
            process: std::process::id(),
            interface: format!("{side}{number}"),
            address: address(number, last),
        },
    };
    let cables = [cable("near", 0), cable("far", 1)];
    plug_into_bridges(&cables).unwrap();
    let names = cables.map(|cable| cable.end.interface);
    bring_up(&names, Duration::from_secs(10)).unwrap();
    names
}

/// The bridge's own end of the cable to this side.
pub(super) fn bridge_port(side: &str, number: u8) -> String {
    format!("to-{side}{number}")
}

/// The MAC address of an end: 0 near, 1 far.
pub(super) const fn address(number: u8, end: u8) -> [u8; 6] {
    [2, 0x52, 0x4c, 0, number, end]
}
