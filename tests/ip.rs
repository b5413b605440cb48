//! IP over the fabric: programs that know nothing but sockets run on seats of a rack, and their bytes go over its links.

mod support;

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use support::session::Session;
use support::wires::{COULD_NOT_START, has_packet_wire, skipped, wires};
use support::{over_links, rack_file, retransmitted, within};

const TIMEOUT: Duration = Duration::from_secs(60);
const BYTES: usize = 16 << 20;

/// Prints a line once it listens, and the sum of the bytes of each connection.
const SERVER: &str = "
import hashlib, socket, time
listener = socket.create_server(('0.0.0.0', 5000))
print('ready', flush=True)
connection, _ = listener.accept()
digest, length = hashlib.sha256(), 0
while data := connection.recv(1 << 20):
    digest.update(data)
    length += len(data)
print(length, digest.hexdigest(), flush=True)
time.sleep(1000)
";

/// Sends bytes that depend on their place. Prints their sum, and stops when the server does.
const CLIENT: &str = "
import hashlib, socket, sys, time
data = b''.join(hashlib.sha256(str(place).encode()).digest() for place in range(int(sys.argv[2]) // 32))
connection = socket.create_connection((sys.argv[1], 5000))
print('connected', flush=True)
connection.sendall(data)
connection.close()
print(len(data), hashlib.sha256(data).hexdigest(), flush=True)
time.sleep(1000)
";

/// Rack that is up for programs.
struct Rack {
    session: Session,
}

/// Program on a seat. It is killed on drop.
struct Program {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Rack {
    fn up(nodes: usize, planes: usize, wire: &str, more: &str) -> Self {
        let session = Session::begin();
        let text = format!(
            "name: ip\nshape: {{star: {{nodes: {nodes}, planes: {planes}}}}}\ntimers: {{heartbeat_interval: 500ms}}\n{more}"
        );
        let file = rack_file(&text);
        session.passes(&["up", file.to_str().expect("a plain path"), "--seats", "programs", "--wire", wire]);
        Self { session }
    }

    /// Starts a program in the network of a seat, and waits for its first line.
    fn start(&self, seat: &str, program: &[&str]) -> (Program, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rackloom"));
        command.args(["exec", "--seat", seat, "--net", "rack", "--"]).args(program);
        command.env("XDG_RUNTIME_DIR", &self.session.path);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the command starts");
        let mut program = Program { output: BufReader::new(child.stdout.take().expect("a pipe")), child };
        let line = program.line();
        (program, line)
    }

    fn python(&self, seat: &str, script: &str, arguments: &[&str]) -> (Program, String) {
        self.start(seat, &[&["python3", "-c", script], arguments].concat())
    }

    /// Sends bytes from n1 to n0, and calls `meanwhile` in between. Returns the programs, so that their seats are in the report of the rack.
    fn transfer(&self, bytes: usize, meanwhile: impl FnOnce()) -> [Program; 2] {
        let (mut server, line) = self.python("n0", SERVER, &[]);
        assert_eq!(line, "ready", "{}", server.errors());
        let (mut client, line) = self.python("n1", CLIENT, &["n0", &bytes.to_string()]);
        assert_eq!(line, "connected", "{}", client.errors());
        meanwhile();
        let (sent, received) = (client.line(), server.line());
        assert!(sent.starts_with(&bytes.to_string()), "{sent}: {}", client.errors());
        assert_eq!(sent, received);
        [server, client]
    }

    fn status(&self) -> Value {
        let status = self.session.passes(&["status", "--json"]);
        serde_json::from_str::<Value>(&status).expect("JSON")["racks"][0].clone()
    }

    fn down(&self) -> Value {
        let path = self.session.path.join("report.json");
        self.session.passes(&["down", "--json", path.to_str().expect("a plain path")]);
        serde_json::from_str(&std::fs::read_to_string(path).expect("the report")).expect("JSON")
    }
}

impl Program {
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a pipe");
        line.trim_end().to_owned()
    }

    /// Ends the program, and returns its standard error.
    fn errors(&mut self) -> String {
        let _ = self.child.kill();
        let mut text = String::new();
        if let Some(mut error) = self.child.stderr.take() {
            error.read_to_string(&mut text).expect("a pipe");
        }
        text
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns true if seats have networks here. Otherwise the test counts as skipped.
fn has_networks(test: &str) -> bool {
    has_packet_wire(test)
}

#[test]
fn programs_reach_each_other_by_name_on_every_wire() {
    let test = "programs_reach_each_other_by_name_on_every_wire";
    if !has_networks(test) {
        return;
    }
    for wire in wires(test) {
        let rack = Rack::up(3, 2, wire, "");
        let programs = rack.transfer(BYTES, || {});
        drop(programs);
        let (_holder, _) = rack.start("n2", &["sh", "-c", "echo; exec sleep 1000"]);
        let script = "echo $(hostname) $RACKLOOM_ADDRESS $(getent hosts n2) $(id -u) $(ls /sys/class/net)";
        let (_, line) = rack.start("n1", &["sh", "-c", script]);
        let user = rustix::process::getuid().as_raw();
        assert_eq!(line, format!("n1 10.82.0.2 10.82.0.3 n2 {user} lo rack0"), "{wire}");
        let report = rack.down();
        let carried = over_links(&report, |link| link["bytes_on_wire"].as_u64().expect("a number"));
        assert!(carried > BYTES as u64, "{wire}: the links carried {carried} bytes");
    }
}

/// The fabric repeats lost frames, and streams move to the other plane.
#[test]
fn a_stream_survives_losses_and_the_loss_of_a_plane() {
    let test = "a_stream_survives_losses_and_the_loss_of_a_plane";
    if !has_networks(test) {
        return;
    }
    for wire in wires(test) {
        let rack = Rack::up(2, 2, wire, "link: {loss: 1%}\n");
        let begun = Instant::now();
        let _programs = rack.transfer(2 * BYTES, || {
            rack.session.passes(&["inject", "link", "plane 0", "--down", "--for", "2s"]);
        });
        assert!(begun.elapsed() < TIMEOUT, "{wire}: {:?}", begun.elapsed());
        let report = rack.down();
        assert!(retransmitted(&report) > 0, "{wire}");
    }
}

#[test]
fn datagrams_of_any_length_arrive_and_those_to_groups_reach_all() {
    if !has_networks("datagrams_of_any_length_arrive_and_those_to_groups_reach_all") {
        return;
    }
    let rack = Rack::up(4, 1, "shared-memory", "");
    let receiver = "
import socket, struct
receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
receiver.bind(('', 5001))
group = struct.pack('4s4s', socket.inet_aton('239.1.2.3'), socket.inet_aton('0.0.0.0'))
receiver.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, group)
receiver.settimeout(40)
print('ready', flush=True)
seen = []
while len(seen) < 5:
    data, sender = receiver.recvfrom(70000)
    assert data == bytes([data[0]]) * len(data) and sender[0] == '10.82.0.2', sender
    seen.append(len(data))
print(*seen, flush=True)
";
    let sender = "
import socket
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
for length in [1, 3900, 60000]:
    for name in ['n0', 'n2']:
        sender.sendto(bytes([length % 251]) * length, (name, 5001))
sender.sendto(b'g' * 100, ('239.1.2.3', 5001))
sender.sendto(b'b' * 200, ('10.82.255.255', 5001))
print('sent', flush=True)
";
    let mut receivers: Vec<_> = ["n0", "n2"].map(|seat| rack.python(seat, receiver, &[])).into();
    let (mut program, line) = rack.python("n1", sender, &[]);
    assert_eq!(line, "sent", "{}", program.errors());
    for (receiver, _) in &mut receivers {
        let line = receiver.line();
        let mut lengths: Vec<_> = line.split(' ').collect();
        lengths.sort_unstable();
        assert_eq!(lengths, ["1", "100", "200", "3900", "60000"], "{}", receiver.errors());
    }
}

/// A question for the address of a node goes to that node alone, so a node without a program does not answer.
#[test]
fn a_node_that_is_not_there_is_no_host() {
    if !has_networks("a_node_that_is_not_there_is_no_host") {
        return;
    }
    let rack = Rack::up(3, 1, "udp", "");
    let (server, line) = rack.python("n0", SERVER, &[]);
    assert_eq!(line, "ready");
    let client = "
import errno, socket, sys, time
try:
    socket.create_connection(('n2', 5000), timeout=30)
except OSError as error:
    print(errno.errorcode[error.errno], flush=True)
connection = socket.create_connection(('n0', 5000))
connection.settimeout(30)
print('connected', flush=True)
print(connection.recv(1) == b'', flush=True)
";
    let (mut client, line) = rack.python("n1", client, &[]);
    assert_eq!(line, "EHOSTUNREACH", "{}", client.errors());
    assert_eq!(client.line(), "connected");
    drop(server);
    // The seat of a dead node keeps no connection: the kernel of its network is gone with it.
    let ends = within(TIMEOUT, "the node is lost", || {
        let status = rack.status();
        let member = status["members"].as_array().expect("members")[0].clone();
        (member["state"] == "lost").then_some(member)
    });
    assert_eq!(ends["ip"], Value::Null);
}

#[test]
fn the_status_counts_frames() {
    if !has_networks("the_status_counts_frames") {
        return;
    }
    let rack = Rack::up(2, 1, "shared-memory", "");
    let (_server, _) = rack.python("n0", SERVER, &[]);
    let client = CLIENT.replace("connection.close()", "print('done', flush=True); time.sleep(1000)");
    let (mut client, _) = rack.python("n1", &client, &["n0", "1000000"]);
    assert_eq!(client.line(), "done");
    let counters = within(TIMEOUT, "all bytes are counted", || {
        let members = rack.status()["members"].as_array().expect("members").clone();
        let [to, from] = [&members[0]["ip"], &members[1]["ip"]].map(Value::clone);
        (to["bytes_received"].as_u64()? > 1_000_000).then_some((to, from))
    });
    assert!(counters.1["bytes_sent"].as_u64().expect("a count") > 1_000_000);
    for dropped in ["queue_full", "refused"] {
        assert_eq!(counters.0[dropped], 0, "{dropped}");
    }
    assert_eq!(rack.status()["ip"]["network"], "10.82.0.0/16");
    let text = rack.session.passes(&["status"]);
    assert!(text.contains("IP of") && text.contains("10.82.0.1"), "{text}");
}

#[test]
fn a_rack_without_ip_says_so() {
    let rack = Rack::up(2, 1, "shared-memory", "ip: false\n");
    assert_eq!(rack.status()["ip"], Value::Null);
    let ended = rack.session.rackloom(&["exec", "--seat", "n0", "--net", "rack", "--", "true"]);
    assert_eq!(ended.code, Some(COULD_NOT_START), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("the rack has no IP") && ended.stderr.contains("hint:"),
        "{}",
        ended.stderr
    );
    rack.session.passes(&["exec", "--seat", "n0", "--", "true"]);
}

/// A user without the right to namespaces has no interface, and all the rest.
#[test]
fn without_namespaces_programs_use_the_network_of_the_host() {
    let test = "without_namespaces_programs_use_the_network_of_the_host";
    if !has_networks(test) {
        return;
    }
    let session = Session::begin();
    let file = rack_file("name: bare\nshape: {star: {nodes: 2, planes: 1}}\n");
    let rackloom = env!("CARGO_BIN_EXE_rackloom");
    let script = format!(
        "echo 0 > /proc/sys/user/max_user_namespaces || exit 99
         exec setpriv --bounding-set=-all --inh-caps=-all sh -c '
            {rackloom} up {file} --seats programs || exit 98
            {rackloom} status
            {rackloom} exec --seat n0 -- true || exit 97
            {rackloom} exec --seat n0 --net rack -- true; echo code $?
            {rackloom} down'",
        file = file.display()
    );
    let mut command = Command::new("unshare");
    command.args(["-U", "-r", "sh", "-c", &script]).env("XDG_RUNTIME_DIR", &session.path);
    let Ok(output) = command.stdin(Stdio::null()).output() else {
        return skipped(&format!("{test}: `unshare` is not installed"));
    };
    let [text, error] =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert_eq!(output.status.code(), Some(0), "{text}\n{error}");
    assert!(text.contains("no seat has an interface rack0: it needs a user namespace"), "{text}\n{error}");
    assert!(text.contains(&format!("code {COULD_NOT_START}")), "{text}\n{error}");
    assert!(error.contains("which this system forbids"), "{error}");
}
