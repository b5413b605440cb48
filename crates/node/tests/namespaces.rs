//! Tests of members in network namespaces of their own: cables, frames, a killed neighbour, and cleanup.
//!
//! The test has three parts, each in a process of its own and selected by an environment variable: the supervisor, a node that sends requests, and a
//! node that answers them. It runs as the user who started it and, for root, also as a user without rights. Where the system forbids namespaces, it
//! writes a message to standard error and counts as skipped.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rackloom::namespaces::{
    Cable, CableEnd, NamespaceError, bring_up, create_cables, enter_new_network_namespace,
    enter_supervisor_namespaces,
};
use rackloom::wires::{Device, packet};
use rackloom_protocol::CreditConfig;

const PART: &str = "RACKLOOM_TEST_PART";
const REQUIRED: &str = "RACKLOOM_TEST_REQUIRE_NAMESPACES";
const NAME: &str = "members_exchange_frames_over_cables_and_a_killed_one_leaves_nothing";
const UNPRIVILEGED_USER: u32 = 65_534;
const TIMEOUT: Duration = Duration::from_secs(20);

#[test]
fn members_exchange_frames_over_cables_and_a_killed_one_leaves_nothing() {
    match std::env::var(PART).as_deref() {
        Ok("supervisor") => supervise(),
        Ok("requester") => request(),
        Ok("answerer") => answer(),
        _ => {
            run_supervisor("as the user of this test", || Ok(()));
            if rustix::process::geteuid().is_root() {
                run_supervisor("as a user without rights", drop_rights);
            }
        }
    }
}

/// Returns a command that runs this test in another part.
fn part(name: &str) -> Command {
    // The program is not named by its path, because a user without rights may have no access to its folder.
    let mut command = Command::new("/proc/self/exe");
    command.args(["--exact", NAME, "--nocapture"]).env(PART, name).stdin(Stdio::null());
    command
}

fn run_supervisor(user: &str, become_user: fn() -> std::io::Result<()>) {
    let mut command = part("supervisor");
    // SAFETY: needed because only a process without threads may enter a user namespace. Between fork and exec this makes nothing but system calls.
    unsafe {
        command.pre_exec(move || {
            become_user()?;
            enter_supervisor_namespaces().map_err(|error| match error {
                NamespaceError::Forbidden { cause, .. } | NamespaceError::Cable { cause, .. } => cause,
                other => std::io::Error::other(other),
            })
        })
    };
    match command.status() {
        Ok(status) => assert!(status.success(), "{user}: {status}"),
        Err(cause) => {
            assert!(std::env::var_os(REQUIRED).is_none(), "namespaces are required, {user}: {cause}");
            let text =
                format!("SKIPPED (1): {NAME}, {user}: no network namespaces on this system: {cause}\n");
            std::io::stderr().write_all(text.as_bytes()).unwrap();
        }
    }
}

/// Changes the user from root to the unprivileged user, between fork and exec.
fn drop_rights() -> std::io::Result<()> {
    // SAFETY: needed because these calls have no safe form for a process between fork and exec. They take numbers, and an empty list by length zero.
    let results = unsafe {
        [
            libc::setgroups(0, std::ptr::null()),
            libc::setgid(UNPRIVILEGED_USER),
            libc::setuid(UNPRIVILEGED_USER),
            // A change of user removes the access to the process's own entries in /proc, to which the maps are written.
            libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0),
        ]
    };
    if results.iter().any(|result| *result < 0) { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}

fn supervise() {
    let mut requester = spawn_member("requester");
    let mut answerer = spawn_member("answerer");
    let end = |child: &Child, last| CableEnd {
        process: child.id(),
        interface: "p0".to_owned(),
        address: [2, 0x52, 0x4c, 0, 0, last],
    };
    create_cables(&[Cable { ends: [end(&requester, 1), end(&answerer, 2)], mtu: 9000 }]).unwrap();
    let mut lines = BufReader::new(requester.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().ends_with("all answered")));
    answerer.kill().unwrap();
    answerer.wait().unwrap();
    assert!(requester.wait().unwrap().success(), "the requester noticed the end of its neighbour");
    let deadline = Instant::now() + TIMEOUT;
    while interfaces() != ["lo"] {
        assert!(Instant::now() < deadline, "left behind: {:?}", interfaces());
        std::thread::yield_now();
    }
}

fn spawn_member(name: &str) -> Child {
    let mut command = part(name);
    command.stdout(Stdio::piped());
    // SAFETY: needed so that the namespace exists when the spawn returns. It makes nothing but system calls.
    unsafe { command.pre_exec(enter_new_network_namespace) };
    command.spawn().unwrap()
}

/// Returns the names of the interfaces in this process's namespace.
fn interfaces() -> Vec<String> {
    let table = std::fs::read_to_string("/proc/net/dev").unwrap();
    table
        .lines()
        .skip(2)
        .filter_map(|line| line.split(':').next())
        .map(|name| name.trim().to_owned())
        .collect()
}

fn open_port() -> packet::PacketDevice {
    bring_up(&["p0".to_owned()], TIMEOUT).unwrap();
    let credits = CreditConfig { unit_bytes: 256, overhead_bytes: 1024, limit: 640 };
    packet::open(
        "p0",
        &packet::Settings {
            ether_type: 0x88b5,
            frame_bytes_max: 9014,
            credits,
            reception: Default::default(),
        },
    )
    .unwrap()
}

fn request() {
    let mut port = open_port();
    let deadline = Instant::now() + TIMEOUT;
    for number in 0..100_u8 {
        let mut answered = false;
        // The neighbour may open its port later than this one, so the request is repeated until it is answered.
        while !answered {
            assert!(Instant::now() < deadline, "no answer");
            send(&mut port, &request_frame(number));
            let retry_at = Instant::now() + Duration::from_millis(50);
            while !answered && Instant::now() < retry_at {
                while let Some(lease) = port.receive() {
                    answered |= port.leased(lease)[20] == number && port.leased(lease)[21] == 0xaa;
                    port.release(lease);
                }
                std::thread::yield_now();
            }
        }
    }
    println!("all answered");
    while port.carrier() {
        assert!(Instant::now() < deadline, "the carrier outlives the neighbour");
        std::thread::yield_now();
    }
    send(&mut port, &request_frame(0));
}

fn answer() {
    let mut port = open_port();
    let deadline = Instant::now() + 2 * TIMEOUT;
    while Instant::now() < deadline {
        while let Some(lease) = port.receive() {
            let mut frame = port.leased(lease).to_vec();
            port.release(lease);
            frame[21] = 0xaa;
            send(&mut port, &frame);
        }
        std::thread::yield_now();
    }
    panic!("this neighbour was not ended");
}

fn request_frame(number: u8) -> Vec<u8> {
    let mut frame = vec![0; 64];
    frame[..6].copy_from_slice(&[2, 0x52, 0x4c, 0, 0, 2]);
    frame[12..14].copy_from_slice(&[0x88, 0xb5]);
    frame[20] = number;
    frame
}

fn send(port: &mut packet::PacketDevice, frame: &[u8]) {
    port.slot().unwrap()[..frame.len()].copy_from_slice(frame);
    port.commit(frame.len(), true);
    port.flush(rackloom_protocol::Instant::ZERO);
}
