//! A node written from `docs/wire-format.md` alone (`scripts/peer.py`) runs the litmus with a rackloom node.
//!
//! The peer is the second host of a rack on the udp wire, on the loopback interface: no rights are needed.
//! Each test has its own addresses. Without Python or NumPy the tests are skipped with a reason.

mod support;

use std::io::Read;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use support::wires::not_tried;
use support::{root, scratch};

const TIMEOUT: Duration = Duration::from_secs(300);

/// Returns the Python that has NumPy, as `scripts/ci.sh` names it.
fn python(test: &str) -> Option<String> {
    let python = std::env::var("RACKLOOM_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let probe = Command::new(&python).args(["-c", "import numpy"]).output();
    match probe {
        Ok(output) if output.status.success() => Some(python),
        Ok(output) => {
            let reason = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            not_tried(&format!("{test}: {python} has no NumPy: {reason}"));
            None
        }
        Err(error) => {
            not_tried(&format!("{test}: there is no {python}: {error}"));
            None
        }
    }
}

/// Settings of a rack with a peer.
struct Case<'a> {
    /// Distinguishes the addresses of tests that run at the same time.
    number: u8,
    /// Further keys of the rack file.
    keys: &'a str,
    /// Further arguments of the peer.
    peer: &'a [&'a str],
}

/// Results of both ends: the rack's exit code and its report, and the peer's output.
fn played(test: &str, case: &Case<'_>) -> Option<(Option<i32>, String, Output)> {
    let python = python(test)?;
    let process = std::process::id();
    let network = format!("127.{}.{}", 64 + (process >> 8) % 64, process % 256);
    let [a, b] = [1, 2].map(|end| format!("{network}.{}", 2 * case.number + end));
    let file = scratch("peer.yaml");
    let text = format!(
        "name: with-a-peer\nshape: {{ring: {{nodes: 2}}}}\nwire: udp\nwatchdog: 60s\ntimers: {{heartbeat_interval: 500ms}}\n\
         hosts:\n  A: {{nodes: [n0], address: {a}}}\n  B: {{nodes: [n1], address: {b}}}\n\
         job: {{litmus: {{bytes_max: 64KiB, rounds: 2}}}}\n{}",
        case.keys
    );
    std::fs::write(&file, text).expect("the scratch folder can be written");
    let mut rack = Command::new(env!("CARGO_BIN_EXE_rackloom"));
    rack.arg("run").arg(&file).args(["--host", "A"]).stdin(Stdio::null());
    let mut peer = Command::new(python);
    peer.arg(root().join("scripts/peer.py")).args(["--name", "with-a-peer", "--rounds", "2"]);
    peer.args(["--listen", &b, "--connect", &a]).args(case.peer).stdin(Stdio::null());
    peer.env("PYTHONDONTWRITEBYTECODE", "1");
    let [rack, peer] = [rack, peer].map(|mut command| {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("both programs are there")
    });
    let peer = finished(peer);
    let rack = finished(rack);
    let output = String::from_utf8_lossy(&rack.stdout).into_owned() + &String::from_utf8_lossy(&rack.stderr);
    Some((rack.status.code(), output, peer))
}

/// Returns the output of a child that ends in time. A child that does not is killed, and its test fails on the exit code.
fn finished(mut child: Child) -> Output {
    let pipes = (child.stdout.take().expect("piped"), child.stderr.take().expect("piped"));
    let read = |mut pipe: Box<dyn Read + Send>| {
        std::thread::spawn(move || {
            let mut text = Vec::new();
            pipe.read_to_end(&mut text).expect("a pipe of a child can be read");
            text
        })
    };
    let [stdout, stderr] = [read(Box::new(pipes.0)), read(Box::new(pipes.1))];
    let deadline = Instant::now() + TIMEOUT;
    while child.try_wait().expect("a child").is_none() {
        if Instant::now() > deadline {
            let _ = child.kill();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let status = child.wait().expect("a child");
    let [stdout, stderr] = [stdout, stderr].map(|reader| reader.join().expect("it only reads"));
    Output { status, stdout, stderr }
}

fn passes(test: &str, case: &Case<'_>) {
    let Some((code, output, peer)) = played(test, case) else { return };
    let peer_output =
        String::from_utf8_lossy(&peer.stdout).into_owned() + &String::from_utf8_lossy(&peer.stderr);
    assert_eq!(peer.status.code(), Some(0), "the peer: {peer_output}\nthe rack: {output}");
    assert_eq!(code, Some(0), "the rack: {output}\nthe peer: {peer_output}");
    assert!(output.contains("verdict: pass"), "{output}");
    let verified =
        peer_output.split("passed: ").nth(1).and_then(|rest| rest.split(' ').next()?.parse::<u64>().ok());
    assert!(verified > Some(1_000_000), "the peer has verified too few bytes: {peer_output}");
}

#[test]
fn a_node_written_from_the_page_passes_a_litmus() {
    passes("a_node_written_from_the_page_passes_a_litmus", &Case { number: 0, keys: "", peer: &[] });
}

#[test]
fn a_node_written_from_the_page_passes_a_litmus_under_loss_in_both_directions() {
    passes(
        "a_node_written_from_the_page_passes_a_litmus_under_loss_in_both_directions",
        &Case { number: 1, keys: "link: {loss: 3%}\n", peer: &["--loss", "0.03"] },
    );
}

#[test]
fn a_peer_that_writes_other_bytes_fails() {
    let case = Case { number: 2, keys: "", peer: &["--spoil"] };
    let Some((code, output, _)) = played("a_peer_that_writes_other_bytes_fails", &case) else { return };
    assert_eq!(code, Some(1), "{output}");
    assert!(output.contains("(store-posted of 1 bytes by n1"), "the wrong byte is not named: {output}");
}

#[test]
fn a_node_written_from_the_page_passes_a_litmus_in_a_rack_with_a_key() {
    use std::os::unix::fs::PermissionsExt;
    let key = scratch("rack.key");
    std::fs::write(&key, [7; 32]).expect("the scratch folder can be written");
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).expect("the file exists");
    let key = key.to_str().expect("a plain path");
    passes(
        "a_node_written_from_the_page_passes_a_litmus_in_a_rack_with_a_key",
        &Case {
            number: 3,
            keys: &format!("security: {{key_file: {key}}}\nlink: {{loss: 1%}}\n"),
            peer: &["--key-file", key, "--loss", "0.01"],
        },
    );
}
