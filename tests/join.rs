//! Seats of a standing rack that this process takes through the library. The binary holds the other seats.
//!
//! `vacant.rs` tests the command (`rackloom seat --join`).

#[path = "../crates/node/examples/take_seats.rs"]
mod take_seats;

mod support;

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use rackloom::fabric::{
    Condition, DeviceChoice, Error, Key, Node, NodeId, RegionId, RegionOptions, RemoteAddress,
};
use rackloom_gpu::device::{Address, StreamId};
use serde_json::Value;
use support::seats::{Rack, start};
use support::wires::has_gpu;
use support::{rackloom, scratch, within};

const TIMEOUT: Duration = Duration::from_secs(30);
/// Time that is longer than any detection of a loss, and shorter than a hang.
const BOUND: Duration = Duration::from_secs(10);
/// Variable that is set for the process that takes a seat and does nothing else.
const HOLD_SEAT: &str = "RACKLOOM_TEST_SIT";

/// Variable that is set for the process that produces rounds.
const PRODUCE: &str = "RACKLOOM_TEST_PRODUCE";

/// Returns a process that takes a seat and waits.
fn seat_holder(rack: &Rack, seat: &str) -> Child {
    start_holder(rack, seat, "")
}

/// Returns a process that takes a seat, with a region on a device as well if one is named, and waits.
fn start_holder(rack: &Rack, seat: &str, device: &str) -> Child {
    start(rack, HOLD_SEAT, "body_of_a_process_that_holds_a_seat", &format!("{seat}={device}"))
}

/// Returns the device that rack files name `fake:N` or `cuda:N`.
fn device_of(name: &str) -> DeviceChoice {
    match name.split_once(':').map(|(kind, number)| (kind, number.parse::<u32>())) {
        Some(("cuda", Ok(index))) => DeviceChoice::Cuda(index),
        Some(("fake", Ok(seed))) => DeviceChoice::Fake(seed.into()),
        _ => panic!("{name} is no device"),
    }
}

/// Body of the other process of the death tests. On its own it does nothing.
#[test]
fn body_of_a_process_that_holds_a_seat() {
    let Ok(seat) = std::env::var(HOLD_SEAT) else {
        // This is no skip: another test starts this one in a process of its own.
        return;
    };
    let [rack, seat, device] = seat.splitn(3, '=').collect::<Vec<_>>().try_into().expect("a seat");
    let node = Node::join(rack, seat).expect("the seat is vacant");
    let _on_device = (!device.is_empty()).then(|| {
        let options = RegionOptions::new(2, 7);
        node.allocate_on_device(options, device_of(device), 4096).expect("memory of the device")
    });
    let region = node.allocate(RegionOptions::new(1, 7), 64).expect("memory");
    node.wait_until_reached(&[NodeId(0)], TIMEOUT).expect("its neighbour is there");
    // The process waits until it is killed; the other test has a shorter timeout.
    let _ = node.wait_until(&region, 0, Condition::Equal, 1, NodeId(0)).wait();
    panic!("the rack ended before the holder was killed");
}

/// Stores a byte until a store needs no frame.
fn store_until_direct(node: &Node, target: RemoteAddress) {
    let before = node.counters().direct_operations;
    within(TIMEOUT, "the memory is mapped", || {
        // The owner may not have allocated the region yet.
        let stored = node.store(target, &[1]).wait();
        (stored.is_ok() && node.counters().direct_operations > before).then_some(())
    });
}

/// A process that holds two seats, and one that is killed and followed by another one, map each other's memory.
#[test]
fn processes_of_one_server_map_each_others_memory() {
    for wire in ["shared-memory", "udp"] {
        let vacant = ["--vacant", "n1,n2,n3", "--wire", wire];
        let rack = Rack::up_with("servers: {box: [n0, n1, n2, n3]}\n", &vacant);
        let [initiator, neighbour] =
            ["n1", "n3"].map(|seat| Node::join(&rack.directory(), seat).expect("the seat is vacant"));
        initiator.wait_until_reached(&[neighbour.id()], TIMEOUT).expect("n3 is reached");
        let region = neighbour.allocate(RegionOptions::new(1, 7), 64).expect("memory");
        store_until_direct(&initiator, region.address(8));
        let at = RemoteAddress { node: NodeId(2), region: RegionId(1), offset: 8, key: Key(7) };
        for round in 0..2 {
            let mut holder = seat_holder(&rack, "n2");
            rack.wait_for("n2", "up");
            initiator.wait_until_reached(&[NodeId(2)], TIMEOUT).expect("n2 is reached");
            store_until_direct(&initiator, at);
            let view = initiator.map_peer(at, TIMEOUT).expect("it is mapped");
            view.write(16, &[77_u64 + round]).expect("it is alive");
            assert_eq!(
                initiator.fetch_add::<u64>(RemoteAddress { offset: 16, ..at }, 1).wait().ok(),
                Some(77 + round)
            );
            assert_eq!(view.get::<u64>(16).ok(), Some(78 + round));
            holder.kill().expect("it runs");
            assert!(holder.wait().expect("a child").signal().is_some());
            let lost = within(BOUND, "the death is detected", || initiator.store(at, &[1]).wait().err());
            assert!(matches!(lost, Error::PeerLost { peer: NodeId(2), .. }), "{lost}");
            within(BOUND, "the view ends with its owner", || view.write(16, &[0_u64]).err());
            // The other seat of this process is not concerned.
            initiator.store(region.address(8), &[9]).wait().expect("n3 is alive");
            rack.wait_for("n2", "lost");
        }
    }
}

/// Rounds of the producer, and the length of each in bytes.
const ROUNDS: u64 = 8;
const ROUND_BYTES: u64 = 4096;

/// Enqueues a copy of one round on a stream of the node's device.
fn copy_round(node: &Node, stream: StreamId, target: u64, source: u64) {
    let copied =
        node.with_device(|device| device.copy(stream, Address(target), Address(source), ROUND_BYTES));
    copied.expect("a device").expect("it is enqueued");
}

/// Makes a stream on the node's device.
fn stream_of(node: &Node) -> StreamId {
    node.with_device(|device| device.stream()).expect("a device").expect("a stream")
}

/// Queries the stream until it is empty. The node goes on meanwhile.
fn wait_for_stream(node: &Node, stream: StreamId) {
    let event = node.with_device(|device| {
        let event = device.event()?;
        device.record(event, stream).map(|()| event)
    });
    let event = event.expect("a device").expect("an event");
    within(TIMEOUT, "the stream ends", || {
        let is_done = node.with_device(|device| device.is_done(event)).expect("a device");
        is_done.expect("it works").then_some(())
    });
}

/// Body of the producer of the test below. On its own it does nothing.
#[test]
fn body_of_a_process_that_produces_rounds() {
    let Ok(seat) = std::env::var(PRODUCE) else {
        // This is no skip: another test starts this one in a process of its own.
        return;
    };
    let [rack, seat, device] = seat.splitn(3, '=').collect::<Vec<_>>().try_into().expect("a seat");
    let node = Node::join(rack, seat).expect("the seat is vacant");
    let options = |region| RegionOptions::new(region, 7);
    let allocate = |region, bytes| {
        node.allocate_on_device(options(region), device_of(device), bytes).expect("memory of the device")
    };
    let source = allocate(3, ROUNDS * ROUND_BYTES);
    source.write(0, &(0..ROUNDS * ROUND_BYTES / 8).collect::<Vec<_>>()).expect("it fits");
    let shared = allocate(2, ROUND_BYTES + 64);
    let [from, to] = [&source, &shared].map(|region| region.device_address().expect("on the device"));
    let stream = stream_of(&node);
    let [ready, finished] =
        [0, 8].map(|offset| shared.stream_event(ROUND_BYTES + offset).expect("it is a word"));
    for round in 0..ROUNDS {
        finished.wait(stream, round).expect("it is enqueued");
        copy_round(&node, stream, to, from + round * ROUND_BYTES);
        ready.record(stream, round + 1).expect("it is enqueued");
    }
    finished.wait(stream, ROUNDS).expect("it is enqueued");
    let done = node.allocate(options(1), 64).expect("memory");
    wait_for_stream(&node, stream);
    done.write(0, &[1_u64]).expect("it fits");
    // The process waits until it is killed.
    let _ = node.wait_until(&done, 8, Condition::Equal, 1, NodeId(0)).wait();
}

/// No processor waits between the rounds: each stream waits for the words of the other.
#[test]
fn streams_of_two_processes_wait_for_each_other() {
    let test = "streams_of_two_processes_wait_for_each_other";
    for device in ["fake:5"].into_iter().chain(has_gpu(test).then_some("cuda:0")) {
        let rack = Rack::up_with("servers: {box: [n0, n1, n2, n3]}\n", &["--vacant", "n1,n2"]);
        let consumer = Node::join(&rack.directory(), "n1").expect("the seat is vacant");
        let options = RegionOptions::new(1, 7);
        let target = consumer.allocate_on_device(options, device_of(device), ROUNDS * ROUND_BYTES);
        let target = target.expect("memory of the device");
        let mut producer =
            start(&rack, PRODUCE, "body_of_a_process_that_produces_rounds", &format!("n2={device}"));
        rack.wait_for("n2", "up");
        consumer.wait_until_reached(&[NodeId(2)], TIMEOUT).expect("n2 is reached");
        let at = |region| RemoteAddress { node: NodeId(2), region: RegionId(region), offset: 0, key: Key(7) };
        let view = within(TIMEOUT, "it is mapped", || consumer.map_peer(at(2), TIMEOUT).ok());
        let stream = stream_of(&consumer);
        let [ready, finished] =
            [0, 8].map(|offset| view.stream_event(ROUND_BYTES + offset).expect("it is a word"));
        let (access, to) = (view.kernel_access().expect("on a device"), target.device_address());
        for round in 0..ROUNDS {
            ready.wait(stream, round + 1).expect("it is enqueued");
            copy_round(&consumer, stream, to.expect("on a device") + round * ROUND_BYTES, access.address());
            finished.record(stream, round + 1).expect("it is enqueued");
        }
        wait_for_stream(&consumer, stream);
        let mut found = vec![0_u64; (ROUNDS * ROUND_BYTES / 8) as usize];
        target.read(0, &mut found).expect("it is within");
        assert!(
            found.iter().zip(0..).all(|(word, at)| *word == at),
            "{device}: a round came too early or late"
        );
        within(TIMEOUT, "the producer's stream ends", || {
            let done = consumer.map_peer(at(1), TIMEOUT).ok()?.get::<u64>(0).ok()?;
            (done == 1).then_some(())
        });
        producer.kill().expect("it runs");
        producer.wait().expect("a child");
    }
}

/// A process on the same device is killed while this one has its memory open, and another process follows.
#[test]
fn processes_of_one_server_open_each_others_memory_on_a_device() {
    let test = "processes_of_one_server_open_each_others_memory_on_a_device";
    for device in ["fake:3"].into_iter().chain(has_gpu(test).then_some("cuda:0")) {
        let rack = Rack::up_with("servers: {box: [n0, n1, n2, n3]}\n", &["--vacant", "n1,n2"]);
        let initiator = Node::join(&rack.directory(), "n1").expect("the seat is vacant");
        let options = RegionOptions::new(1, 7);
        let ours = initiator.allocate_on_device(options, device_of(device), 4096).expect("memory");
        let at = RemoteAddress { node: NodeId(2), region: RegionId(2), offset: 8, key: Key(7) };
        for round in 0..2_u64 {
            let mut holder = start_holder(&rack, "n2", device);
            rack.wait_for("n2", "up");
            initiator.wait_until_reached(&[NodeId(2)], TIMEOUT).expect("n2 is reached");
            store_until_direct(&initiator, at);
            ours.write(0, &[round; 512]).expect("it fits");
            let before = initiator.counters().direct_bytes;
            let target = RemoteAddress { offset: 1024, ..at };
            initiator.put(&ours.slice(0..2048), target).wait().expect("n2 is alive");
            initiator.get(target, &ours.slice(2048..4096)).wait().expect("n2 is alive");
            assert_eq!(initiator.counters().direct_bytes - before, 4096, "{device}");
            assert_eq!(ours.get::<u64>(4088).expect("it is within"), round);
            let view = initiator.map_peer(at, TIMEOUT).expect("it is mapped");
            view.write(16, &[77 + round]).expect("it is alive");
            let word = RemoteAddress { offset: 16, ..at };
            assert_eq!(initiator.fetch_add::<u64>(word, 1).wait().ok(), Some(77 + round), "{device}");
            holder.kill().expect("it runs");
            assert!(holder.wait().expect("a child").signal().is_some());
            let lost = within(BOUND, "the death is detected", || initiator.store(at, &[1]).wait().err());
            assert!(matches!(lost, Error::PeerLost { peer: NodeId(2), .. }), "{device}: {lost}");
            within(BOUND, "the view ends with its owner", || view.write(16, &[0_u64]).err());
            assert_eq!(ours.get::<u64>(0).ok(), Some(round), "{device}: its own memory is not concerned");
            rack.wait_for("n2", "lost");
        }
    }
}

#[test]
fn seats_of_a_rack_on_sockets_are_taken_and_a_sleeping_node_receives() {
    let rack = Rack::up(&["--vacant", "n1,n3", "--wire", "udp"]);
    let (line, numbers) = take_seats::run(&rack.directory(), ["n1", "n3"]).expect("the example works");
    assert_eq!(line, "from a process of my own");
    assert!(numbers.iter().enumerate().all(|(index, number)| *number == 3.0 * index as f64));
    for seat in ["n1", "n3"] {
        rack.wait_for(seat, "lost");
    }
    // A seat that is taken again gets new sockets on both sides. The neighbour that stays is in this process as well.
    let [initiator, target] =
        ["n1", "n3"].map(|seat| Node::join(&rack.directory(), seat).expect("a lost seat is vacant"));
    // Nodes that are up have reported the new incarnation to all others. Until then others may still address the old one.
    for seat in ["n1", "n3"] {
        rack.wait_for(seat, "up");
    }
    initiator.wait_until_reached(&[target.id()], TIMEOUT).expect("the target is reached");
    // Each node detects the loss by itself, and a wait for an unreachable node ends at once.
    target.wait_until_reached(&[initiator.id()], TIMEOUT).expect("the initiator is reached");
    let region = target.allocate(RegionOptions::new(1, 7), 64).expect("memory");
    let sleeper = std::thread::spawn({
        let (target, region, initiator) = (target.clone(), region.clone(), initiator.id());
        move || target.wait_until(&region, 0, Condition::Equal, 5, initiator).wait()
    });
    initiator.store(region.address(0), &5_u64.to_le_bytes()).wait().expect("it arrives");
    assert_eq!(sleeper.join().expect("no panic").expect("it wakes"), 5);
}

#[test]
fn a_rack_on_the_packet_wire_refuses_a_library_with_a_reason() {
    let error = wire_refused();
    assert!(error.contains("network namespace") && error.contains("hint: "), "{error}");
}

/// Returns the error of `Node::join` for a rack that answers like one on the packet wire. No interface is needed.
fn wire_refused() -> String {
    use std::io::{BufRead, BufReader, Write};
    let directory = scratch("packet-rack");
    std::fs::create_dir(&directory).expect("the folder can be written");
    std::fs::set_permissions(&directory, std::os::unix::fs::PermissionsExt::from_mode(0o700)).expect("ours");
    let listener = std::os::unix::net::UnixListener::bind(directory.join("control")).expect("a socket");
    let rack = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client connects");
        let mut line = String::new();
        BufReader::new(&stream).read_line(&mut line).expect("a question");
        stream.write_all(b"{\"status\": {\"wire\": \"packet\", \"epoch\": 1}}\n").expect("an answer");
    });
    let error =
        Node::join(directory.to_str().expect("a plain path"), "n1").expect_err("no seat for a library");
    rack.join().expect("no panic");
    std::fs::remove_dir_all(&directory).expect("it was made above");
    error.to_string()
}

#[test]
fn two_seats_of_one_process_exchange_data_through_the_seats_of_the_command() {
    let rack = Rack::up(&["--vacant", "n1,n3"]);
    let (line, numbers) = take_seats::run(&rack.directory(), ["n1", "n3"]).expect("the example works");
    assert_eq!(line, "from a process of my own");
    assert!(numbers.iter().enumerate().all(|(index, number)| *number == 3.0 * index as f64));
    // The example's nodes are gone with it: the rack has lost both seats, and offers them again.
    for seat in ["n1", "n3"] {
        rack.wait_for(seat, "lost");
    }
    let again = Node::join(&rack.directory(), "n1").expect("a lost seat is vacant");
    again.wait_until_reached(&[NodeId(0), NodeId(2)], TIMEOUT).expect("its neighbours are there");
    let member = rack.wait_for("n1", "up");
    assert_eq!((&member["pid"], &member["links_up"]), (&std::process::id().into(), &2.into()));
    let printed = rack.passes(&["down"]);
    assert!(printed.contains("ring-4"), "{printed}");
    // The end of the rack is the end of the node.
    let region = again.allocate(RegionOptions::new(1, 7), 64);
    let waited =
        region.and_then(|region| again.wait_until(&region, 0, Condition::Equal, 1, NodeId(0)).wait());
    assert!(matches!(waited, Err(Error::Closed | Error::PeerLost { .. })), "{waited:?}");
}

#[test]
fn taken_seats_report_their_memory_and_their_ports() {
    let rack = Rack::up(&["--vacant", "n1,n2"]);
    let [first, second] =
        ["n1", "n2"].map(|seat| Node::join(&rack.directory(), seat).expect("the seat is vacant"));
    first.wait_until_reached(&[second.id()], TIMEOUT).expect("the other seat is taken");
    let kept = second.allocate(RegionOptions::new(8, 7), 6000).expect("memory");
    drop(second.allocate(RegionOptions::new(9, 7), 1000).expect("memory"));
    for index in 0..50 {
        first.store(kept.address(8 * index), &index.to_le_bytes()).wait().expect("the region is there");
    }
    let memory = &rack.member("n2")["memory"];
    let counts = [&memory["used_bytes"]["current"], &memory["used_bytes"]["high"], &memory["frees"]];
    assert_eq!(counts, [&Value::from(6000), &7000.into(), &1.into()], "{memory}");

    let report = rack.session.join("report.json");
    rack.passes(&["down", "--json", report.to_str().expect("a plain path")]);
    let report = std::fs::read(report).expect("the report is written");
    let report: Value = serde_json::from_slice(&report).expect("JSON");
    // Both ends of this link were in this process, so no other member reports it.
    for name in ["n1->n2", "n2->n1"] {
        let links = report["links"].as_array().expect("links");
        let link = links.iter().find(|link| link["name"] == name).expect("there is such a link");
        assert!(link["frames"].as_u64() >= Some(50), "{link}");
        assert!(link["bytes_on_wire"].as_u64() >= Some(50 * 60), "{link}");
    }
}

#[test]
fn the_death_of_a_process_is_the_death_of_its_node() {
    let rack = Rack::up(&["--vacant", "n1,n3"]);
    let mut holder = seat_holder(&rack, "n1");
    let node = Node::join(&rack.directory(), "n3").expect("the seat is vacant");
    node.wait_until_reached(&[NodeId(1)], TIMEOUT).expect("the other process takes its seat");
    let region = node.allocate(RegionOptions::new(1, 7), 64).expect("memory");
    let waiting = std::thread::spawn({
        let (node, region) = (node.clone(), region.clone());
        move || node.wait_until(&region, 0, Condition::Equal, 1, NodeId(1)).wait()
    });
    holder.kill().expect("it is a child");
    let ended = holder.wait().expect("it is a child");
    assert_eq!(ended.signal(), Some(9), "it sat until it was killed");
    let died = Instant::now();
    let waited = waiting.join().expect("no panic");
    assert!(matches!(waited, Err(Error::PeerLost { peer: NodeId(1), .. })), "{waited:?}");
    assert!(died.elapsed() < BOUND, "{:?}", died.elapsed());
    rack.wait_for("n1", "lost");
}

#[test]
fn a_refused_join_has_a_reason() {
    let rack = Rack::up(&["--vacant", "n1", "--wire", "packet"]);
    let reason = |rack: &str, seat: &str| Node::join(rack, seat).expect_err("it cannot be had").to_string();
    let on_packet = reason(&rack.directory(), "n1");
    assert!(on_packet.contains("packet wire") && on_packet.contains("hint:"), "{on_packet}");
    let nowhere = reason(&format!("{}-other", rack.directory()), "n1");
    assert!(nowhere.contains("no rack at") && nowhere.contains("hint:"), "{nowhere}");
    drop(rack);

    let rack = Rack::up(&[]);
    for seat in ["n1", "n9"] {
        let reason = reason(&rack.directory(), seat);
        assert!(reason.contains(&format!("seat {seat}")), "{reason}");
    }
    assert!(Path::new(&rack.directory()).exists());
}

/// Entry of `down --json` for one direction of a link.
fn link_of<'a>(report: &'a Value, name: &str) -> &'a Value {
    let links = report["links"].as_array().expect("links");
    links.iter().find(|link| link["name"] == name).expect("there is such a link")
}

impl Rack {
    /// Takes the rack down and returns its report.
    fn report(&self) -> Value {
        let report = self.session.join("report.json");
        let path = report.to_str().expect("a plain path");
        let _ = rackloom(&["down", "--json", path]).in_run_directory(&self.session).finish();
        serde_json::from_slice(&std::fs::read(report).expect("the report is written")).expect("JSON")
    }

    /// Injects one fault by the command line.
    fn inject(&self, arguments: &[&str]) {
        let printed = self.passes(&[&["inject"], arguments].concat());
        assert!(printed.contains("1 fault injected"), "{printed}");
    }
}

fn lines_of(report: &Value, member: &str) -> Vec<String> {
    let events = report["events"].as_array().expect("events");
    let faults = events.iter().filter(|event| event["kind"] == "fault" && event["member"] == member);
    faults.map(|event| event["text"].as_str().expect("a text").to_owned()).collect()
}

#[test]
fn faults_of_links_are_performed_by_the_program_that_holds_the_seat() {
    let rack = Rack::up_with("checks: always\n", &["--vacant", "n1,n2"]);
    let [initiator, target] =
        ["n1", "n2"].map(|seat| Node::join(&rack.directory(), seat).expect("it is vacant"));
    initiator.wait_until_reached(&[target.id()], TIMEOUT).expect("the other seat is taken");
    target.wait_until_reached(&[initiator.id()], TIMEOUT).expect("the other seat is taken");
    let region = target.allocate(RegionOptions::new(8, 7), 4096).expect("memory");
    let store_all = |round: u64| {
        for index in 0..300 {
            let value = round * 1000 + index;
            initiator
                .store(region.address(8 * index), &value.to_le_bytes())
                .wait()
                .expect("it arrives in the end");
            assert_eq!(region.get::<u64>(8 * index).expect("its own memory"), value);
        }
    };
    for (round, options) in [
        ["--loss", "10%"],
        ["--corrupt", "10%"],
        ["--duplicate", "20%"],
        ["--reorder", "20%"],
        ["--drop", "1,2,3"],
        ["--delay", "2ms"],
    ]
    .into_iter()
    .enumerate()
    {
        let begun = Instant::now();
        let lasting: &[&str] = if options[0] == "--drop" { &[] } else { &["--for", "400ms"] };
        rack.inject(&[&["link", "n1:n2"], &options[..], lasting].concat());
        store_all(round as u64);
        if options[0] == "--delay" {
            // Stores wait for one another, and each is delayed while the fault lasts.
            assert!(begun.elapsed() >= Duration::from_millis(390), "{:?}", begun.elapsed());
        }
    }
    for options in [["--down"], ["--unplug"]] {
        rack.inject(&["link", "n1--n2/forward", options[0], "--for", "800ms"]);
        within(TIMEOUT, "the link is down", || (initiator.port_is_up(&rack) == 1).then_some(()));
        store_all(90);
        within(TIMEOUT, "the link is up again", || (initiator.port_is_up(&rack) == 2).then_some(()));
    }
    let report = rack.report();
    let link = link_of(&report, "n1->n2");
    for what in ["dropped", "corrupted", "duplicated", "reordered"] {
        assert!(link["injected"][what].as_u64() >= Some(3), "{what}: {link}");
    }
    assert_eq!(link["dropped"]["injected"], link["injected"]["dropped"], "{link}");
    let lines = lines_of(&report, "n1");
    for what in ["loss", "corrupt", "duplicate", "reorder", "drop", "delay", "down", "unplug"] {
        assert!(lines.iter().any(|line| line.starts_with(&format!("{what} n1"))), "{what}: {lines:?}");
    }
}

/// Options of `up` that change links hold for the links of a joined node too.
#[test]
fn a_joined_node_has_the_link_level_retry_that_the_rack_was_started_with() {
    let options = ["--vacant", "n1,n2", "--wire", "udp", "--llr", "on", "--loss", "5%"];
    let rack = Rack::up_with("", &options);
    let [initiator, target] =
        ["n1", "n2"].map(|seat| Node::join(&rack.directory(), seat).expect("it is vacant"));
    // n3 is a seat of the command, so each kind of process has a link to the other.
    initiator.wait_until_reached(&[target.id(), NodeId(0)], TIMEOUT).expect("the links come up");
    target.wait_until_reached(&[initiator.id(), NodeId(3)], TIMEOUT).expect("the links come up");
    let region = target.allocate(RegionOptions::new(8, 7), 4096).expect("memory");
    for index in 0..300 {
        initiator.store(region.address(8 * index), &index.to_le_bytes()).wait().expect("it arrives");
    }
    let report = rack.report();
    for name in ["n0->n1", "n1->n0", "n2->n3", "n3->n2"] {
        let link = link_of(&report, name);
        assert!(link["retry"]["tx_init"].as_u64() > Some(0), "{link}");
    }
    let link = link_of(&report, "n1->n2");
    assert!(link["retry"]["tx_replay"].as_u64() > Some(0), "{link}");
}

/// A fault script that flips bits gives the frames of the whole rack the end-to-end check.
#[test]
fn a_joined_node_has_the_check_that_the_fault_script_of_the_rack_requires() {
    let script = scratch("flips.yaml");
    std::fs::write(&script, "name: flips\nevents: [{what: corrupt, where: all, rate: 1%}]\n")
        .expect("a folder");
    let faults = script.to_str().expect("a plain path");
    let rack = Rack::up_with("", &["--vacant", "n1,n2", "--wire", "shared-memory", "--faults", faults]);
    let [initiator, target] =
        ["n1", "n2"].map(|seat| Node::join(&rack.directory(), seat).expect("it is vacant"));
    initiator.wait_until_reached(&[target.id(), NodeId(0)], TIMEOUT).expect("the links come up");
    target.wait_until_reached(&[initiator.id(), NodeId(3)], TIMEOUT).expect("the links come up");
    let region = target.allocate(RegionOptions::new(8, 7), 4096).expect("memory");
    for index in 0..300 {
        initiator.store(region.address(8 * index), &index.to_le_bytes()).wait().expect("it arrives");
    }
    std::fs::remove_file(script).expect("it was written above");
}

trait PortsUp {
    fn port_is_up(&self, rack: &Rack) -> u64;
}

impl PortsUp for Node {
    /// Returns the number of n1's links that carry data, by its own report.
    fn port_is_up(&self, rack: &Rack) -> u64 {
        rack.member("n1")["links_up"].as_u64().unwrap_or(9)
    }
}

#[test]
fn faults_of_memory_are_performed_by_the_program_that_holds_the_seat() {
    let rack = Rack::up(&["--vacant", "n1,n2"]);
    let [initiator, target] =
        ["n1", "n2"].map(|seat| Node::join(&rack.directory(), seat).expect("it is vacant"));
    initiator.wait_until_reached(&[target.id()], TIMEOUT).expect("the other seat is taken");
    target.wait_until_reached(&[initiator.id()], TIMEOUT).expect("the other seat is taken");
    let region = target.allocate(RegionOptions::new(8, 7), 4096).expect("memory");
    let store = || initiator.store(region.address(0), &7_u64.to_le_bytes()).wait();
    store().expect("all is well");

    rack.inject(&["node", "n2", "--slow-memory", "60ms", "--for", "2s"]);
    within(TIMEOUT, "a slow store", || {
        let begun = Instant::now();
        store().expect("slow is not broken");
        (begun.elapsed() >= Duration::from_millis(60)).then_some(())
    });
    within(TIMEOUT, "fast stores again", || {
        let begun = Instant::now();
        store().expect("all is well");
        (begun.elapsed() < Duration::from_millis(60)).then_some(())
    });
    rack.inject(&["node", "n2", "--fail-memory", "100%", "--for", "300ms"]);
    let error = within(TIMEOUT, "a store that fails", || store().err());
    assert!(format!("{error:?}").contains("Memory"), "{error:?}");
    within(TIMEOUT, "a store that works again", || store().ok());
    rack.inject(&["node", "n2", "--revoke"]);
    let error = within(TIMEOUT, "a store that is refused", || store().err());
    assert!(format!("{error:?}").contains("Revoked"), "{error:?}");
}

#[test]
fn a_program_on_a_seat_is_paused_and_killed_by_faults() {
    // The pause must end before neighbours detect a death, also on a link that is not yet idle.
    let rack = Rack::up_with("timers: {heartbeat_interval: 1s}\n", &["--vacant", "n1"]);
    let mut holder = seat_holder(&rack, "n1");
    rack.wait_for("n1", "up");
    let pid = holder.id();
    let state = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it is there");
        stat.rsplit(')').next().expect("fields").trim().chars().next()
    };
    rack.inject(&["node", "n1", "--pause", "700ms"]);
    within(TIMEOUT, "it is stopped", || (state() == Some('T')).then_some(()));
    within(TIMEOUT, "it continues", || (state() != Some('T')).then_some(()));
    rack.wait_for("n1", "up");
    rack.inject(&["node", "n1", "--kill"]);
    let ended = holder.wait().expect("it ends");
    assert_eq!(ended.signal(), Some(9), "{ended:?}");
    rack.wait_for("n1", "lost");
}
