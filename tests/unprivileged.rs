//! Every wire works for a user without rights: no root, no capability, no home directory.
//!
//! Run by root, the racks are started as the user without rights; run by another user, as that user.

mod support;

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;
use support::wires::skipped;

const UNPRIVILEGED: u32 = 65_534;
const COULD_NOT_START: i32 = 3;
const RACK: &str = "name: unprivileged\nshape: {star: {nodes: 3, planes: 2}}\n\
                    job: {litmus: {bytes_max: 64KiB, rounds: 1}}\n";

/// Folder that every user may enter. It is removed with the test.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns a folder for one test: several run in one process.
fn folder(test: &str) -> Folder {
    let name = format!("rackloom-user-{}-{test}", std::process::id());
    let folder = Folder(std::env::temp_dir().join(name));
    fs::create_dir_all(&folder.0).expect("temporary files can be written");
    fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o755)).expect("the folder exists");
    folder
}

#[test]
fn every_wire_works_for_a_user_without_rights() {
    let folder = folder("works");
    let file = folder.0.join("rack.yaml");
    fs::write(&file, RACK).expect("the folder can be written");
    // The program is not started by path: such a user may not be allowed to reach it.
    let binary = File::open(env!("CARGO_BIN_EXE_rackloom")).expect("the binary is there");
    rustix::io::fcntl_setfd(&binary, rustix::io::FdFlags::empty()).expect("it is open");
    for wire in ["shared-memory", "udp", "packet"] {
        let mut command = Command::new(format!("/proc/self/fd/{}", binary.as_raw_fd()));
        command.arg("run").arg(&file).args(["--wire", wire, "--json", "-"]).current_dir("/");
        command.env_remove("XDG_RUNTIME_DIR").env_remove("RACKLOOM_LOG").stdin(Stdio::null());
        if rustix::process::geteuid().is_root() {
            command.uid(UNPRIVILEGED).gid(UNPRIVILEGED);
        }
        let output = command.output().expect("the binary starts");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        if wire == "packet" && output.status.code() == Some(COULD_NOT_START) {
            assert!(stderr.contains("which this system forbids") && stderr.contains("hint:"), "{stderr}");
            skipped(&format!("every_wire_works_for_a_user_without_rights on the packet wire: {stderr}"));
            continue;
        }
        assert_eq!(output.status.code(), Some(0), "{wire}: {stderr}");
        let report: Value = serde_json::from_slice(&output.stdout).expect("the report is JSON");
        assert_eq!((&report["verdict"], &report["wire"]), (&"pass".into(), &wire.into()));
        assert!(report["verified_bytes"].as_u64() > Some(0), "{wire}");
    }
}

/// Starts the rack in a user namespace in which no further one can be made.
#[test]
fn a_system_without_namespaces_reports_the_missing_part_and_the_available_wires() {
    const TEST: &str = "a_system_without_namespaces_reports_the_missing_part_and_the_available_wires";
    const FORBID: &str = "echo 0 > /proc/sys/user/max_user_namespaces && \
                          echo 0 > /proc/sys/user/max_net_namespaces || exit 99; exec \"$0\" \"$@\"";
    let folder = folder("forbidden");
    let file = folder.0.join("rack.yaml");
    fs::write(&file, RACK).expect("the folder can be written");
    let run = |wire: &str| {
        let mut command = Command::new("unshare");
        command.args(["-Ur", "sh", "-c", FORBID, env!("CARGO_BIN_EXE_rackloom"), "run"]);
        command.arg(&file).args(["--wire", wire]).env_remove("RACKLOOM_LOG").stdin(Stdio::null()).output()
    };
    let forbidden = match run("packet") {
        Ok(output) if ![Some(1), Some(99), Some(127)].contains(&output.status.code()) => output,
        Ok(output) => {
            return skipped(&format!("{TEST}: {}", String::from_utf8_lossy(&output.stderr)));
        }
        Err(reason) => return skipped(&format!("{TEST}: no `unshare`: {reason}")),
    };
    let stderr = String::from_utf8_lossy(&forbidden.stderr).into_owned();
    assert_eq!(forbidden.status.code(), Some(COULD_NOT_START), "{stderr}");
    let sentences: Vec<_> = stderr.lines().filter(|line| line.starts_with("error: ")).collect();
    assert_eq!(sentences.len(), 1, "{stderr}");
    assert!(
        sentences[0].contains(
            "the packet wire is not available: it needs a user namespace, which this system forbids"
        ),
        "{stderr}"
    );
    for wire in ["shared-memory", "udp"] {
        assert!(stderr.contains(&format!("`--wire {wire}`")), "{stderr}");
        let output = run(wire).expect("it ran before");
        assert_eq!(output.status.code(), Some(0), "{wire}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

/// A user who cannot open `/dev/null` starts no process. The error of the kernel names no file.
#[test]
fn a_null_device_that_cannot_be_opened_is_named() {
    const TEST: &str = "a_null_device_that_cannot_be_opened_is_named";
    // A file without permissions is closed to its owner who has no capability.
    const HIDE: &str = "chmod 000 \"$0\" && mount --bind \"$0\" /dev/null || exit 99
                        exec setpriv --bounding-set=-all --inh-caps=-all \"$@\"";
    let folder = folder("null");
    let (file, closed) = (folder.0.join("rack.yaml"), folder.0.join("closed"));
    for (path, text) in [(&file, RACK), (&closed, "")] {
        fs::write(path, text).expect("the folder can be written");
    }
    let mut command = Command::new("unshare");
    command.args(["-Urm", "sh", "-c", HIDE]).arg(&closed).args([env!("CARGO_BIN_EXE_rackloom"), "run"]);
    command.arg(&file).args(["--wire", "shared-memory"]).env_remove("RACKLOOM_LOG").stdin(Stdio::null());
    let output = match command.output() {
        Ok(output) if ![Some(1), Some(99), Some(127)].contains(&output.status.code()) => output,
        Ok(output) => return skipped(&format!("{TEST}: {}", String::from_utf8_lossy(&output.stderr))),
        Err(reason) => return skipped(&format!("{TEST}: no `unshare`: {reason}")),
    };
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(COULD_NOT_START), "{stderr}");
    for part in ["cannot start a process for n0", "where: /dev/null", "hint:  this user must be able to"] {
        assert!(stderr.contains(part), "{stderr}");
    }
}
