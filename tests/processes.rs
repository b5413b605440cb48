//! Processes of a program on a seat: each takes a process seat behind the GPU node and is an endpoint of its own.
//!
//! The programs are this test binary, which `rackloom exec` starts once more, and which starts a child.

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use rackloom::fabric::{Error, Key, Node, NodeId, Region, RegionId, RegionOptions, RemoteAddress};
use rustix::process::Signal;
use serde_json::Value;
use support::session::Session;
use support::wires::wires;
use support::{rack_file, send, within};

const TIMEOUT: Duration = Duration::from_secs(60);
/// Variable that is set for the program on a seat: what it does, and node numbers.
const PROGRAM: &str = "RACKLOOM_TEST_PROGRAM";
/// Variable that is set for its child.
const CHILD: &str = "RACKLOOM_TEST_CHILD";
/// Offset of the counter in the region of each process. A slot for each node comes before it.
const COUNTER: u64 = 512;
const KEY: u64 = 7;

fn rack_of(shape: &str) -> String {
    format!("name: procs\nshape: {shape}\ntimers: {{heartbeat_interval: 500ms}}\n")
}

const STAR: &str = "{star: {nodes: 2, planes: 1}}";

impl Session {
    fn up(text: &str, more: &[&str]) -> Self {
        let session = Self::begin();
        let file = rack_file(text);
        session.passes(&[&["up", file.to_str().expect("a plain path")], more].concat());
        session
    }

    fn up_for_programs(shape: &str, wire: &str, processes: &str) -> Self {
        Self::up(&rack_of(shape), &["--seats", "programs", "--wire", wire, "--processes", processes])
    }

    /// Starts this binary on a seat. The program does what `task` says.
    fn start(&self, seat: &str, task: &str) -> Program {
        let binary = std::env::current_exe().expect("this test");
        let mut command = Command::new(env!("CARGO_BIN_EXE_rackloom"));
        command.args(["exec", "--seat", seat, "--"]).arg(binary);
        command.args(["--exact", "body_of_a_program", "--nocapture"]);
        command.env("XDG_RUNTIME_DIR", &self.path).env(PROGRAM, task).env_remove(CHILD);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        Program::of(command.spawn().expect("the command starts"))
    }

    fn rack(&self) -> Value {
        let status: Value = serde_json::from_str(&self.passes(&["status", "--json"])).expect("JSON");
        status["racks"][0].clone()
    }

    /// Returns the names of the held process seats.
    fn processes(&self) -> Vec<String> {
        let rack = self.rack();
        let members = rack["members"].as_array().expect("members").iter();
        let processes = members.filter(|member| member["role"] == "process");
        processes.map(|member| member["name"].as_str().expect("a name").to_owned()).collect()
    }

    fn directory(&self) -> String {
        self.path.join("rackloom/procs").to_str().expect("a plain path").to_owned()
    }
}

/// A process that the test talks to by lines. Its own lines begin with `@`. It is killed on drop.
struct Program {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Program {
    fn of(mut child: Child) -> Self {
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        Self { input: child.stdin.take(), child, output }
    }

    /// Reads its next line. The process ends its output when it fails.
    fn line(&mut self) -> String {
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).expect("a pipe") > 0, "the process has ended");
            // The line may follow a text of the test harness.
            if let Some((_, text)) = line.trim_end().split_once('@') {
                return text.to_owned();
            }
        }
    }

    fn expect(&mut self, expected: &str) {
        assert_eq!(self.line(), expected);
    }

    /// Closes its input, and waits for its end.
    fn end(mut self) {
        drop(self.input.take());
        let status = self.child.wait().expect("the process ends");
        assert!(status.success(), "{status}");
    }

    fn kill(&mut self) {
        send(rustix::process::Pid::from_child(&self.child), Signal::KILL);
        self.child.wait().expect("the process ends");
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn say(line: &str) {
    let mut output = std::io::stdout().lock();
    writeln!(output, "@{line}").and_then(|()| output.flush()).expect("the test reads");
}

/// Waits until the test closes the input.
fn wait_for_the_test() {
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

/// Takes a process seat of the GPU node that the environment names.
fn join() -> Result<Node, Error> {
    let name = |variable| std::env::var(variable).expect("`rackloom exec` sets it");
    Node::join_process(&name("RACKLOOM_RACK"), &name("RACKLOOM_SEAT"))
}

/// Starts this process once more, as a child that does what `task` says.
fn child(task: &str) -> Program {
    let mut command = Command::new(std::env::current_exe().expect("this test"));
    command.args(["--exact", "body_of_a_program", "--nocapture"]).env(CHILD, task);
    Program::of(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts"))
}

/// Body of the programs and of their children. On its own it does nothing.
#[test]
fn body_of_a_program() {
    // This is no skip: the other tests start this one in a process of its own.
    let Ok(program) = std::env::var(PROGRAM) else { return };
    let task = std::env::var(CHILD).unwrap_or(program);
    match task.split_once('=').unwrap_or((&task, "")) {
        ("both", nodes) => {
            let mut child = child(&format!("exchange={nodes}"));
            let node = join().expect("a seat is vacant");
            let _region = exchange(&node, &numbers(nodes));
            child.expect("exchanged");
            say("exchanged");
            wait_for_the_test();
            child.end();
        }
        ("exchange", nodes) => {
            let node = join().expect("a seat is vacant");
            let _region = exchange(&node, &numbers(nodes));
            say("exchanged");
            wait_for_the_test();
        }
        ("hold", _) => {
            let node = join().expect("a seat is vacant");
            say(&node.id().0.to_string());
            wait_for_the_test();
        }
        ("own", peer) => survive(&numbers(peer)),
        ("seats", _) => take_seats(),
        ("race", _) => race(),
        ("nothing", _) => {
            say("started");
            wait_for_the_test();
        }
        (other, _) => panic!("{other} is no task"),
    }
}

fn numbers(text: &str) -> Vec<NodeId> {
    text.split(',').map(|number| NodeId(number.parse().expect("a number"))).collect()
}

fn region_of(node: &Node) -> Region {
    node.allocate(RegionOptions::new(1, KEY), 1024).expect("memory")
}

fn at(node: NodeId, offset: u64) -> RemoteAddress {
    RemoteAddress { node, region: RegionId(1), offset, key: Key(KEY) }
}

/// Writes the own number into a slot of every other process, counts there, and waits until all others have done the same here.
fn exchange(node: &Node, nodes: &[NodeId]) -> Region {
    let (mine, source) = (region_of(node), node.allocate(RegionOptions::new(2, KEY), 8).expect("memory"));
    source.write(0, &[u64::from(node.id().0)]).expect("it is in the region");
    node.wait_until_reached(nodes, TIMEOUT).expect("all processes are reached");
    let others: Vec<_> = nodes.iter().copied().filter(|other| *other != node.id()).collect();
    for other in &others {
        let slot = at(*other, 8 * u64::from(node.id().0));
        // The other one may not have its region yet.
        within(TIMEOUT, "the put", || node.put(&source.slice(..), slot).wait().ok());
        node.fetch_add::<u64>(at(*other, COUNTER), 1).wait().expect("the region is there");
    }
    within(TIMEOUT, "the counts of the others", || {
        (mine.get::<u64>(COUNTER).expect("own memory") == others.len() as u64).then_some(())
    });
    for other in others {
        assert_eq!(mine.get::<u64>(8 * u64::from(other.0)).expect("own memory"), u64::from(other.0));
    }
    mine
}

/// Takes a seat, exchanges data with another process, and reports its loss.
fn survive(nodes: &[NodeId]) {
    let node = join().expect("a seat is vacant");
    let mine = exchange(&node, nodes);
    say("exchanged");
    let other = nodes.iter().find(|other| **other != node.id()).expect("another one");
    let lost = within(TIMEOUT, "the loss", || node.put(&mine.slice(..8), at(*other, 0)).wait().err());
    assert!(matches!(lost, Error::PeerLost { peer, .. } if peer == *other), "{lost}");
    say("lost");
    wait_for_the_test();
}

/// Takes both process seats, in this process and in children that end.
fn take_seats() {
    let first = join().expect("a seat is vacant");
    let mut second = child("hold");
    let number = second.line();
    assert_ne!(number, first.id().0.to_string());
    let refused = join().expect_err("both seats are taken").to_string();
    assert!(refused.contains("seat n0 has 2 process seats, and all are taken"), "{refused}");
    assert!(refused.contains("--processes 4"), "{refused}");
    second.end();
    let again = within(TIMEOUT, "the seat of a child that exits is free", || join().ok());
    assert_eq!(again.id().0.to_string(), number);
    first.wait_until_reached(&[again.id()], TIMEOUT).expect("the other process is reached");
    again.leave();
    drop(again);
    let mut third = within(TIMEOUT, "the seat of a node that leaves is free", || {
        let mut third = child("hold");
        let mut line = String::new();
        while !line.contains('@') {
            line.clear();
            if third.output.read_line(&mut line).ok()? == 0 {
                return None;
            }
        }
        Some(third)
    });
    third.kill();
    within(TIMEOUT, "the seat of a child that is killed is free", || join().ok());
    say("done");
    wait_for_the_test();
}

/// Takes all seats at one time.
fn race() {
    let joins: Vec<_> = (0..4).map(|_| std::thread::spawn(join)).collect();
    let joined =
        joins.into_iter().map(|join| join.join().expect("no panic").expect("there are as many seats"));
    let nodes: Vec<Node> = joined.collect();
    let mut ids: Vec<u16> = nodes.iter().map(|node| node.id().0).collect();
    ids.sort_unstable();
    assert_eq!(ids, [3, 4, 5, 6]);
    say("done");
    wait_for_the_test();
}

#[test]
fn processes_of_two_programs_reach_each_other_on_every_wire() {
    for wire in wires("processes_of_two_programs_reach_each_other_on_every_wire") {
        // Processes have the numbers after the nodes and the switch.
        for (shape, nodes) in [(STAR, "3,4,5,6"), ("{ring: {nodes: 3}}", "3,4,5,6")] {
            let session = Session::up_for_programs(shape, wire, "2");
            assert_eq!(session.processes(), [] as [&str; 0], "{wire}");
            let task = format!("both={nodes}");
            let third = shape.contains("ring").then(|| session.start("n2", "nothing"));
            let mut programs = ["n0", "n1"].map(|seat| session.start(seat, &task));
            programs.iter_mut().for_each(|program| program.expect("exchanged"));
            assert_eq!(session.processes(), ["n0.p0", "n0.p1", "n1.p0", "n1.p1"], "{wire}");
            let rack = session.rack();
            assert_eq!(
                rack["links_total"],
                if third.is_some() { 7 } else { 6 },
                "links of vacant seats do not count"
            );
            programs.into_iter().for_each(Program::end);
            within(TIMEOUT, "all process seats are free", || session.processes().is_empty().then_some(()));
            third.into_iter().for_each(Program::end);
            let path = session.path.join("report.json");
            session.passes(&["down", "--json", path.to_str().expect("a plain path")]);
            let report = std::fs::read_to_string(path).expect("the report");
            assert!(
                !report.contains("\"name\": \"n0.p0\""),
                "a seat that no process holds is not in the report"
            );
        }
    }
}

#[test]
fn the_seat_of_a_process_that_ends_is_free_again() {
    for wire in wires("the_seat_of_a_process_that_ends_is_free_again") {
        let session = Session::up_for_programs(STAR, wire, "2");
        let mut program = session.start("n0", "seats");
        program.expect("done");
        program.end();
        // A death of a process is no death of a node.
        session.passes(&["down"]);
    }
}

#[test]
fn processes_that_join_at_one_time_get_a_seat_each() {
    // The file states no number, so each node has four.
    let session = Session::up(&rack_of(STAR), &["--seats", "programs"]);
    let mut program = session.start("n0", "race");
    program.expect("done");
    program.end();
}

#[test]
fn the_processes_of_a_killed_program_are_lost() {
    for wire in wires("the_processes_of_a_killed_program_are_lost") {
        let session = Session::up_for_programs(STAR, wire, "1");
        let mut survivor = session.start("n1", "own=3,4");
        let mut killed = session.start("n0", "exchange=3,4");
        killed.expect("exchanged");
        survivor.expect("exchanged");
        killed.kill();
        survivor.expect("lost");
        within(TIMEOUT, "its process seat is free", || (session.processes() == ["n1.p0"]).then_some(()));
        // The seat of the node and those behind it can be taken again.
        let mut next = within(TIMEOUT, "another program", || {
            let mut next = session.start("n0", "hold");
            let mut line = String::new();
            while !line.contains('@') {
                line.clear();
                if next.output.read_line(&mut line).ok()? == 0 {
                    return None;
                }
            }
            Some(next)
        });
        assert_eq!(session.processes(), ["n0.p0", "n1.p0"]);
        drop(next.input.take());
        next.end();
        survivor.end();
    }
}

/// The children of a program outlive it, and their nodes end.
#[test]
fn a_node_ends_with_the_program_before_it() {
    let session = Session::up_for_programs(STAR, "shared-memory", "1");
    let mut program = session.start("n0", "nothing");
    program.expect("started");
    // Any process of the user may take the seat, as long as a program is there.
    let node = Node::join_process(&session.directory(), "n0").expect("a seat is vacant");
    program.kill();
    within(TIMEOUT, "the node ends", || {
        let ended = node.allocate(RegionOptions::new(1, KEY), 64).err()?;
        matches!(ended, Error::Closed).then_some(())
    });
}

#[test]
fn a_process_seat_is_taken_by_its_name_on_every_wire() {
    for wire in wires("a_process_seat_is_taken_by_its_name_on_every_wire") {
        let session = Session::up_for_programs(STAR, wire, "2");
        let mut program = session.start("n0", "nothing");
        program.expect("started");
        let node = Node::join(&session.directory(), "n0.p1").expect("a process seat has a name");
        node.wait_until_reached(&[NodeId(0)], TIMEOUT).expect("its GPU node is reached");
        assert_eq!(session.processes(), ["n0.p1"], "{wire}");
        drop(node);
        program.end();
    }
}

#[test]
fn process_seats_that_cannot_be_taken_are_refused() {
    let session = Session::up(&format!("{}processes: 1\n", rack_of(STAR)), &["--seats", "programs"]);
    let refused = |seat: &str| {
        Node::join_process(&session.directory(), seat).map(|_| ()).expect_err("it is refused").to_string()
    };
    assert!(refused("n0").contains("no process holds seat n0"), "{}", refused("n0"));
    for seat in ["n7", "s0", "n0.p0"] {
        assert!(refused(seat).contains(&format!("no GPU node named {seat}")), "{}", refused(seat));
    }
    let mut program = session.start("n0", "nothing");
    program.expect("started");
    let node = Node::join(&session.directory(), "n0.p0").expect("a process seat has a name");
    assert!(refused("n0").contains("seat n0 has 1 process seat, and it is taken"), "{}", refused("n0"));
    let taken = Node::join(&session.directory(), "n0.p0").map(|_| ()).expect_err("it is taken").to_string();
    assert!(taken.contains("a process holds seat n0.p0"), "{taken}");
    let no_program = session.rackloom(&["exec", "--seat", "n0.p0", "--", "true"]);
    assert_eq!(no_program.code, Some(2), "a process seat is for processes of a program");
    drop(node);
    program.end();
    session.passes(&["down"]);
    let none = Session::up(&rack_of(STAR), &["--seats", "programs", "--processes", "0"]);
    let what =
        Node::join_process(&none.directory(), "n0").map(|_| ()).expect_err("there is none").to_string();
    assert!(what.contains("seat n0 has no process seats"), "{what}");
}

#[test]
fn other_racks_ignore_the_key() {
    let plain = Session::up(&rack_of(STAR), &[]).rack();
    let session = Session::up(&format!("{}processes: 3\n", rack_of(STAR)), &[]);
    let stated = session.rack();
    assert_eq!((&plain["config_hash"], &plain["epoch"]), (&stated["config_hash"], &stated["epoch"]));
    assert_eq!(
        (&stated["links_total"], stated["members"].as_array().map(Vec::len)),
        (&Value::from(2), Some(3))
    );
    let file = rack_file(&rack_of(STAR));
    let ended = session.rackloom(&["up", file.to_str().expect("a plain path"), "--processes", "2"]);
    assert_eq!(ended.code, Some(2), "the option belongs to --seats programs");
}
