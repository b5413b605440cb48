//! Unmodified programs that use connection management on seats of a rack: they load the rack's own `librdmacm.so.1`.

mod support;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use support::session::Session;
use support::wires::not_tried;
use support::{rack_file, within};

const TIMEOUT: Duration = Duration::from_secs(60);
/// Address of the seat n0.
const SERVER: &str = "10.82.0.1";

/// Returns true if a program is installed. Otherwise the test is skipped.
fn has(test: &str, program: &str, package: &str) -> bool {
    let is_there = Command::new(program).arg("-h").output().is_ok();
    if !is_there {
        not_tried(&format!("{test}: {program} is not installed (package {package})"));
    }
    is_there
}

/// Brings up a rack of three seats with loss.
fn up() -> Session {
    let session = Session::begin();
    let library = Path::new(env!("CARGO_BIN_EXE_rackloom")).with_file_name("ibverbs");
    assert!(library.exists(), "`cargo build --workspace` makes {}", library.display());
    let file = rack_file("name: rdmacm\nshape: {star: {nodes: 3, planes: 1}}\nlink: {loss: 1%}\n");
    let file = file.to_str().expect("a plain path").to_owned();
    session.passes(&["up", &file, "--seats", "programs", "--wire", "shared-memory"]);
    session
}

fn start(session: &Session, seat: &str, program: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rackloom"));
    command.args(["exec", "--seat", seat, "--"]).args(program);
    command.env("XDG_RUNTIME_DIR", &session.path);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the command starts")
}

/// Waits for the end of a program. Returns true if it succeeded, and its output.
fn ended(child: Child) -> (bool, String) {
    let output = child.wait_with_output().expect("the program ends");
    let text =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    (output.status.success(), text)
}

/// Runs a server on n0 and a client on n1. The client starts again until the server listens. Returns the output of both.
fn pair(session: &Session, server: &[&str], client: &[&str]) -> [String; 2] {
    let mut serving = start(session, "n0", server);
    let (is_done, client_text) = within(TIMEOUT, "the client connects", || {
        if serving.try_wait().expect("it was started").is_some() {
            return Some((false, "the server has ended".to_owned()));
        }
        let (is_done, text) = ended(start(session, "n1", client));
        let is_early = ["REJECTED", "UNREACHABLE", "ADDR_ERROR"].iter().any(|event| text.contains(event));
        (is_done || !is_early).then_some((is_done, text))
    });
    if !is_done {
        // A server without a client waits for ever.
        let _ = serving.kill();
    }
    let (serves, server_text) = ended(serving);
    assert!(is_done && serves, "{client:?}\nserver: {server_text}\nclient: {client_text}");
    [server_text, client_text]
}

#[test]
fn rping_and_ucmatose_connect_by_the_address_of_a_seat() {
    const TEST: &str = "rping_and_ucmatose_connect_by_the_address_of_a_seat";
    if !has(TEST, "rping", "rdmacm-utils") {
        return;
    }
    let session = up();
    let outputs =
        pair(&session, &["rping", "-s", "-C", "10", "-v"], &["rping", "-c", "-a", SERVER, "-C", "10", "-v"]);
    for output in outputs {
        assert!(output.contains("rdma-ping-9"), "{output}");
    }
    let outputs = pair(
        &session,
        &["ucmatose", "-C", "20", "-S", "4096"],
        &["ucmatose", "-s", SERVER, "-C", "20", "-S", "4096"],
    );
    for output in outputs {
        assert!(output.contains("return status 0"), "{output}");
    }
    // Synchronous identifiers.
    let outputs = pair(&session, &["rdma_server"], &["rdma_client", "-s", SERVER]);
    for output in outputs {
        assert!(output.contains("end 0"), "{output}");
    }
    let (is_done, output) = ended(start(&session, "n1", &["rping", "-c", "-a", "10.82.0.9", "-C", "1"]));
    assert!(!is_done && output.contains("ADDR_ERROR"), "an address without a seat: {output}");
}

#[test]
fn two_programs_of_one_seat_connect() {
    const TEST: &str = "two_programs_of_one_seat_connect";
    if !has(TEST, "rping", "rdmacm-utils") {
        return;
    }
    let session = up();
    let both = "rping -s -C 3 -v & for attempt in 1 2 3 4 5 6 7 8 9; do rping -c -a 127.0.0.1 -C 3 -v && break; sleep 1; done; wait";
    let (is_done, output) = ended(start(&session, "n0", &["sh", "-c", both]));
    assert!(is_done && output.matches("rdma-ping-2").count() == 2, "{output}");
}

#[test]
fn a_program_whose_peer_is_killed_gets_the_end_of_its_connection() {
    const TEST: &str = "a_program_whose_peer_is_killed_gets_the_end_of_its_connection";
    if !has(TEST, "rping", "rdmacm-utils") {
        return;
    }
    let session = up();
    let server = "rping -s -C 100000000 & sleep 3; kill -9 $!; sleep 3";
    let serving = start(&session, "n0", &["sh", "-c", server]);
    let output = within(TIMEOUT, "the connection ends", || {
        let (_, text) =
            ended(start(&session, "n1", &["timeout", "30", "rping", "-c", "-a", SERVER, "-C", "100000000"]));
        text.contains("DISCONNECT EVENT").then_some(text)
    });
    assert!(output.contains("DISCONNECT EVENT"), "{output}");
    ended(serving);
}

#[test]
fn perftest_connects_with_connection_management() {
    const TEST: &str = "perftest_connects_with_connection_management";
    if !has(TEST, "ib_write_bw", "perftest") {
        return;
    }
    let session = up();
    let arguments = ["ib_write_bw", "-R", "-d", "rackloom0", "-x", "1", "-F", "-n", "100", "-s", "65536"];
    let outputs = pair(&session, &arguments, &[&arguments[..], &[SERVER]].concat());
    for output in outputs {
        assert!(output.contains("65536      100"), "{output}");
    }
}
