//! A rack of two hosts: two supervisors, each in a network namespace of its own, which share nothing but one cable.
//!
//! Each test runs in a child of the test process that may lay cables, as root or in a user namespace, and its namespaces go
//! with it. Where the system forbids that, the test counts as skipped.

mod support;

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rackloom::hosts::WordSocket;
use rackloom::namespaces::{
    Cable, CableEnd, NamespaceError, enter_new_network_namespace, enter_supervisor_namespaces, lay_cables,
    switch_off, switch_on_all,
};
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde_json::Value;
use support::wires::skipped;
use support::{monotonic_ns, scratch, topology, within};

/// Set in the child that runs inside the namespaces.
const INSIDE: &str = "RACKLOOM_TEST_INSIDE_NAMESPACES";
const PATIENCE: Duration = Duration::from_secs(100);
const COULD_NOT_START: i32 = 3;
const NODE_LOST: i32 = 4;
const STALLED: i32 = 5;
/// For news to cross two processes on a machine whose processors are all taken.
const FELT_NS_MAX: u64 = 2_000_000_000;

/// Run the test of this name in a child that may lay cables.
fn in_namespaces(test: &str, body: impl FnOnce()) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    if std::env::var_os(INSIDE).is_some() {
        return body();
    }
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let mut command = Command::new(std::env::current_exe().expect("a test has a path"));
    command.args(["--exact", test, "--nocapture"]).env(INSIDE, "1").stdin(Stdio::null());
    // SAFETY: needed because a test process has threads, and only a child that has none yet may enter a user
    // namespace. Between fork and exec this makes nothing but system calls.
    unsafe {
        command.pre_exec(|| match enter_supervisor_namespaces() {
            Err(NamespaceError::Forbidden { cause, .. } | NamespaceError::Cable { cause, .. }) => Err(cause),
            Ok(()) => Ok(()),
            Err(other) => Err(std::io::Error::other(other.to_string())),
        })
    };
    match command.spawn() {
        Ok(mut child) => {
            assert!(child.wait().expect("a child").success(), "{test} failed inside the namespaces")
        }
        Err(cause) => skipped(&format!("{test}: no network namespaces on this system: {cause}")),
    }
}

/// A machine: a network namespace with one interface, `eth1`, as long as its process waits for its input.
struct Machine(Child);

impl Machine {
    fn begin() -> Self {
        let mut command = Command::new("cat");
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        // SAFETY: needed so that the machine has a network of its own. Between fork and exec this makes nothing but system
        // calls.
        unsafe { command.pre_exec(enter_new_network_namespace) };
        Self(command.spawn().expect("cat is everywhere"))
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Two machines and the cable between them.
fn machines() -> [Machine; 2] {
    joined_by(&["eth1"])
}

/// Two machines and a cable for each of these names, which both ends have.
fn joined_by(interfaces: &[&str]) -> [Machine; 2] {
    let machines = ["A", "B"].map(|_| Machine::begin());
    let end = |machine: &Machine, interface: &str, last| CableEnd {
        process: machine.0.id(),
        interface: interface.to_owned(),
        address: [0x02, 0, 0, 0, interface.len() as u8, last],
    };
    let [a, b] = &machines;
    let cable = |name: &&str| Cable { ends: [end(a, name, 1), end(b, name, 2)], mtu: 9000 };
    let cables: Vec<_> = interfaces.iter().map(cable).collect();
    lay_cables(&cables).expect("cables can be laid here");
    let names: Vec<_> = interfaces.iter().map(|name| (*name).to_owned()).collect();
    for machine in &machines {
        let names = names.clone();
        on(machine, move || {
            switch_on_all(&names, Duration::from_secs(10)).expect("the cables have been laid");
        });
    }
    machines
}

/// Do something in a machine's network.
fn on(machine: &Machine, act: impl FnOnce() + Send + 'static) {
    use std::os::fd::AsFd;
    let network = network(machine);
    let acts = move || {
        move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network)).expect("it is ours");
        act();
    };
    std::thread::spawn(acts).join().expect("what is done on a machine");
}

fn network(machine: &Machine) -> File {
    File::open(format!("/proc/{}/ns/net", machine.0.id())).expect("the machine is there")
}

/// `rackloom` on a machine.
struct Host {
    child: Child,
    json: PathBuf,
    pids: PathBuf,
    printed: PathBuf,
}

/// How it ended.
struct Ended {
    code: Option<i32>,
    said: String,
    json: PathBuf,
}

fn command(machine: &Machine, printed: &Path) -> Command {
    use std::os::fd::AsFd;
    let network = network(machine);
    let print =
        || File::options().create(true).append(true).open(printed).expect("the scratch folder is ours");
    let mut command = Command::new(env!("CARGO_BIN_EXE_rackloom"));
    command.env_remove("RACKLOOM_LOG").stdin(Stdio::null()).stdout(print()).stderr(print());
    // SAFETY: needed so that the command runs on this machine. Between fork and exec this makes one system call.
    unsafe {
        command.pre_exec(move || {
            Ok(move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))?)
        })
    };
    command
}

fn run(machine: &Machine, file: &Path, host: &str, more: &[&str]) -> Host {
    let (json, pids, printed) = (scratch("report.json"), scratch("pids.json"), scratch("printed.txt"));
    let mut command = command(machine, &printed);
    command.arg("run").arg(file).args(["--host", host]).args(more);
    command.arg("--json").arg(&json).arg("--pids").arg(&pids);
    Host { child: command.spawn().expect("the binary starts"), json, pids, printed }
}

impl Host {
    fn is_up(&self) {
        within(PATIENCE, "bringing up all links", || self.pids.exists().then_some(()));
    }

    fn kill(&self) {
        kill_process(Pid::from_child(&self.child), Signal::KILL).expect("it is there");
    }

    fn finish(mut self) -> Ended {
        let status = within(PATIENCE, "the end of the run", || self.child.try_wait().expect("a child"));
        let said = std::fs::read_to_string(&self.printed).expect("it was written");
        Ended { code: status.code(), said, json: self.json.clone() }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Ended {
    fn report(&self) -> Value {
        let text =
            std::fs::read_to_string(&self.json).unwrap_or_else(|error| panic!("{error}: {}", self.said));
        serde_json::from_str(&text).expect("the report is JSON")
    }
}

/// The states of all members, by name.
fn states(report: &Value) -> Vec<(String, String)> {
    let word = |value: &Value| value.as_str().expect("a word").to_owned();
    let nodes = report["nodes"].as_array().expect("a list").iter();
    nodes.map(|node| (word(&node["name"]), word(&node["state"]))).collect()
}

/// Both hosts do the file's job; every byte is checked by its owner, on the owner's host.
fn both_pass(more: &[&str]) {
    let [a, b] = machines();
    let file = topology("two-hosts.yaml");
    let hosts = [run(&a, &file, "A", more), run(&b, &file, "B", more)];
    for (place, host) in hosts.map(Host::finish).into_iter().enumerate() {
        assert_eq!(host.code, Some(0), "host {place}: {}", host.said);
        let report = host.report();
        assert_eq!(report["verdict"], "pass");
        assert!(report["verified_bytes"].as_u64() > Some(0), "{report}");
        for (member, (name, state)) in states(&report).into_iter().enumerate() {
            let expected = if member / 2 == place { "finished" } else { "elsewhere" };
            assert_eq!(state, expected, "{name} on host {place}");
        }
        assert!(host.said.contains("3 links up"), "two links leave each host: {}", host.said);
        let links = report["links"].as_array().expect("a list");
        let frames = |name: &str| {
            let link = links.iter().find(|link| link["name"] == name).expect("a link of the ring");
            link["frames"].as_u64().expect("a count")
        };
        for crossing in [["n1->n2", "n3->n0"], ["n2->n1", "n0->n3"]].concat() {
            assert!(frames(crossing) > 100, "{crossing} on host {place}: {report}");
        }
    }
}

#[test]
fn the_litmus_passes_across_two_hosts() {
    in_namespaces("the_litmus_passes_across_two_hosts", || both_pass(&[]));
}

#[test]
fn an_all_reduce_passes_across_two_hosts() {
    let job = ["--job", "collective", "--collective", "all-reduce", "--bytes", "256KiB"];
    in_namespaces("an_all_reduce_passes_across_two_hosts", || both_pass(&job));
}

/// A stranger on the segment, who bears a neighbour's address and speaks as a supervisor, until this is dropped.
struct Stranger {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Stranger {
    fn on(machine: &Machine) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let (over, network) = (Arc::clone(&is_over), network(machine));
        let babble = move || {
            use std::os::fd::AsFd;
            const N1: [u8; 6] = [0x02, 0x52, 0x4c, 0, 0, 1];
            const N2: [u8; 6] = [0x02, 0x52, 0x4c, 0, 0, 2];
            const SUPERVISORS: [u8; 6] = [0x03, 0x52, 0x4c, 0xff, 0xff, 0xff];
            move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network)).expect("it is ours");
            let socket = WordSocket::open("eth1", 0x88b5, SUPERVISORS).expect("eth1 is there");
            let frame = |target: [u8; 6], body: u8| [&target[..], &N2, &[0x88, 0xb5], &[body; 100]].concat();
            while !over.load(Ordering::Relaxed) {
                for frame in
                    [frame(N1, 0xff), frame(SUPERVISORS, 0), frame(SUPERVISORS, b'R'), frame([0xff; 6], 1)]
                {
                    // What the segment has no room for is lost, as a stranger's frames may be.
                    let _ = socket.say(&frame);
                }
                std::thread::sleep(Duration::from_micros(200));
            }
        };
        Self { is_over, thread: Some(std::thread::spawn(babble)) }
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

#[test]
fn a_stranger_on_the_segment_is_counted_and_disturbs_nobody() {
    in_namespaces("a_stranger_on_the_segment_is_counted_and_disturbs_nobody", || {
        let [a, b] = machines();
        let file = topology("two-hosts.yaml");
        let stranger = Stranger::on(&b);
        let hosts = [run(&a, &file, "A", &[]), run(&b, &file, "B", &[])].map(Host::finish);
        drop(stranger);
        for host in &hosts {
            assert_eq!(host.code, Some(0), "{}", host.said);
        }
        let report = hosts[0].report();
        let links = report["links"].as_array().expect("a list");
        let dropped = |name: &str| {
            let link = links.iter().find(|link| link["name"] == name).expect("a link of the ring");
            link["dropped"]["bad-magic"].as_u64().unwrap_or(0)
        };
        assert!(dropped("n2->n1") > 0, "who bears n2's address is heard as n2, and refused: {report}");
        assert_eq!(dropped("n3->n0"), 0, "nobody else's link gets those frames");
    });
}

#[test]
fn a_host_with_another_file_is_told_so() {
    in_namespaces("a_host_with_another_file_is_told_so", || {
        let [a, b] = machines();
        let file = topology("two-hosts.yaml");
        let other = scratch("other.yaml");
        let text = std::fs::read_to_string(&file).expect("it ships");
        std::fs::write(&other, text + "ring_bytes: 2MiB\n").expect("the scratch folder is ours");
        for host in [run(&a, &file, "A", &[]), run(&b, &other, "B", &[])].map(Host::finish) {
            assert_eq!(host.code, Some(COULD_NOT_START), "{}", host.said);
            assert!(
                host.said.contains("runs a rack of this name with another configuration"),
                "{}",
                host.said
            );
            assert!(host.said.contains("hint: "), "{}", host.said);
        }
    });
}

#[test]
fn the_death_of_a_host_is_noticed_by_the_other() {
    in_namespaces("the_death_of_a_host_is_noticed_by_the_other", || {
        let [a, b] = machines();
        let file = topology("two-hosts.yaml");
        let job = [
            "--job",
            "collective",
            "--collective",
            "all-reduce",
            "--bytes",
            "1MiB",
            "--repetitions",
            "100000",
        ];
        let (first, second) = (run(&a, &file, "A", &job), run(&b, &file, "B", &job));
        first.is_up();
        second.is_up();
        second.kill();
        let ended = first.finish();
        assert_eq!(ended.code, Some(NODE_LOST), "{}", ended.said);
        let failures = ended.report()["failures"].to_string();
        for part in
            ["host B on eth1 is not heard any more", "n0: lost nodes [n2, n3]", "n1: lost nodes [n2, n3]"]
        {
            assert!(failures.contains(part), "no {part:?} in {failures}");
        }
    });
}

/// Heartbeats are far too slow here to have noticed anything.
#[test]
fn a_cable_between_hosts_that_is_cut_is_felt_long_before_a_heartbeat() {
    in_namespaces("a_cable_between_hosts_that_is_cut_is_felt_long_before_a_heartbeat", || {
        let [a, b] = joined_by(&["eth1", "eth2"]);
        let file = scratch("rack.yaml");
        let text = "name: two-cables\nshape: {ring: {nodes: 4}}\nwire: packet\n\
                    timers: {heartbeat_interval: 20s}\n\
                    hosts:\n  A: {nodes: [n0, n1], interface: eth1, interfaces: {n3--n0: eth2}}\n  \
                    B: {nodes: [n2, n3], interface: eth1, interfaces: {n3--n0: eth2}}\n\
                    job: {litmus: {bytes_max: 64KiB, rounds: 40}}\n";
        std::fs::write(&file, text).expect("the scratch folder is ours");
        let hosts = [run(&a, &file, "A", &[]), run(&b, &file, "B", &[])];
        hosts.iter().for_each(Host::is_up);
        let pids = std::fs::read_to_string(&hosts[0].pids).expect("it is up");
        let pids: Value = serde_json::from_str(&pids).expect("JSON");
        let origin_ns = pids["origin_monotonic_ns"].as_u64().expect("an origin");
        let cut_at_ns = monotonic_ns();
        // The peer's end: this one's interface stays switched on, and loses its carrier.
        on(&b, || switch_off("eth1").expect("it is there"));
        let cut_after_ns = monotonic_ns();
        let ended = hosts.map(Host::finish);
        for host in &ended {
            assert_eq!(host.code, Some(0), "the ring's other way carries on: {}", host.said);
        }
        let report = ended[0].report();
        let events = report["events"].as_array().expect("events");
        let felt = events.iter().find(|event| {
            let fields = &event["fields"];
            event["member"] == "n1" && fields["port"] == "port0" && fields["cause"] == "carrier"
        });
        let felt = felt.unwrap_or_else(|| panic!("n1 felt nothing: {events:?}"));
        let at_ns = origin_ns + felt["at_ns"].as_u64().expect("a time");
        assert!(at_ns >= cut_at_ns, "it was felt before it was done");
        assert!(at_ns <= cut_after_ns + FELT_NS_MAX, "it took {} ns", at_ns - cut_after_ns);
    });
}

#[test]
fn who_waits_for_a_host_that_does_not_come_says_for_whom() {
    in_namespaces("who_waits_for_a_host_that_does_not_come_says_for_whom", || {
        let [a, _b] = machines();
        let file = scratch("rack.yaml");
        let text = std::fs::read_to_string(topology("two-hosts.yaml")).expect("it ships");
        std::fs::write(&file, text + "watchdog: 1s\n").expect("the scratch folder is ours");
        let ended = run(&a, &file, "A", &[]).finish();
        assert_eq!(ended.code, Some(STALLED), "{}", ended.said);
        let lines = [
            "host B on eth1 has not been heard",
            "n1 waits: host B's n2 has not been heard on eth1",
            "n0 waits: host B's n3 has not been heard on eth1",
        ];
        for line in lines {
            assert!(ended.said.contains(line), "no {line:?} in {}", ended.said);
        }
    });
}

#[test]
fn an_interface_that_is_not_there_is_named() {
    in_namespaces("an_interface_that_is_not_there_is_named", || {
        let [a, _b] = machines();
        let file = scratch("rack.yaml");
        let text = std::fs::read_to_string(topology("two-hosts.yaml")).expect("it ships");
        std::fs::write(&file, text.replace("eth1", "eth9")).expect("the scratch folder is ours");
        let ended = run(&a, &file, "A", &[]).finish();
        assert_eq!(ended.code, Some(COULD_NOT_START), "{}", ended.said);
        assert!(ended.said.contains("this machine has no interface eth9"), "{}", ended.said);
        assert!(ended.said.contains("hint: "), "{}", ended.said);
    });
}

/// One command on a machine, to its end; what it printed.
fn ask(machine: &Machine, session: &Path, arguments: &[&str]) -> String {
    let printed = scratch("printed.txt");
    let mut command = command(machine, &printed);
    let mut child = command.env("XDG_RUNTIME_DIR", session).args(arguments).spawn().expect("it starts");
    let status = within(PATIENCE, arguments[0], || child.try_wait().expect("a child"));
    let said = std::fs::read_to_string(&printed).expect("it was written");
    assert_eq!(status.code(), Some(0), "{arguments:?}: {said}");
    said
}

#[test]
fn a_rack_of_two_hosts_stays_until_each_is_taken_down() {
    in_namespaces("a_rack_of_two_hosts_stays_until_each_is_taken_down", || {
        let machines = machines();
        let file = topology("two-hosts.yaml");
        let file = file.to_str().expect("a plain path");
        let sessions = ["A", "B"].map(|host| {
            use std::os::unix::fs::PermissionsExt;
            let session = scratch(host);
            std::fs::create_dir_all(&session).expect("the scratch folder is ours");
            std::fs::set_permissions(&session, PermissionsExt::from_mode(0o700)).expect("it is ours");
            session
        });
        // `up` returns once all links are up, for which both hosts must be there.
        std::thread::scope(|scope| {
            for (host, (machine, session)) in ["A", "B"].iter().zip(machines.iter().zip(&sessions)) {
                scope.spawn(move || ask(machine, session, &["up", file, "--host", host]));
            }
        });
        let status = ask(&machines[0], &sessions[0], &["status"]);
        assert!(status.contains("3 of 3 links up"), "{status}");
        for (member, word) in [("n0", " up "), ("n1", " up "), ("n2", "elsewhere"), ("n3", "elsewhere")] {
            let line = status.lines().find(|line| line.starts_with(member)).expect("a line per member");
            assert!(line.contains(word), "{line}");
        }
        for (machine, session) in machines.iter().zip(&sessions) {
            assert!(ask(machine, session, &["down"]).contains("rack two-hosts is down"));
        }
    });
}

/// Two machines and a router between them: nothing but IPv4 packets reaches one from the other. `None` where nobody can set
/// addresses.
fn machines_and_router(test: &str) -> Option<[Machine; 3]> {
    let machines = [(); 3].map(|()| Machine::begin());
    let [a, b, router] = &machines;
    let end = |machine: &Machine, interface: &str, last| CableEnd {
        process: machine.0.id(),
        interface: interface.to_owned(),
        address: [0x02, 0, 0, 1, 0, last],
    };
    let cables = [
        Cable { ends: [end(a, "eth1", 1), end(router, "west", 2)], mtu: 9000 },
        Cable { ends: [end(b, "eth1", 3), end(router, "east", 4)], mtu: 9000 },
    ];
    lay_cables(&cables).expect("cables can be laid here");
    let tasks: [(&Machine, &[&str]); 3] = [
        (
            a,
            &[
                "link set lo up",
                "address add 10.1.0.1/24 dev eth1",
                "link set eth1 up",
                "route add default via 10.1.0.254",
            ],
        ),
        (
            b,
            &[
                "link set lo up",
                "address add 10.2.0.1/24 dev eth1",
                "link set eth1 up",
                "route add default via 10.2.0.254",
            ],
        ),
        (
            router,
            &[
                "address add 10.1.0.254/24 dev west",
                "address add 10.2.0.254/24 dev east",
                "link set west up",
                "link set east up",
            ],
        ),
    ];
    for (machine, tasks) in tasks {
        for task in tasks {
            if let Err(why) = ip(machine, task) {
                skipped(&format!("{test}: nobody can set addresses: {why}"));
                return None;
            }
        }
    }
    on(router, || std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").expect("the network is ours"));
    Some(machines)
}

/// `ip` on a machine; an error if there is no such program.
fn ip(machine: &Machine, task: &str) -> Result<(), String> {
    let (tell, hear) = std::sync::mpsc::channel();
    let words: Vec<String> = task.split(' ').map(str::to_owned).collect();
    on(machine, move || tell.send(Command::new("ip").args(words).output()).expect("somebody listens"));
    let output = hear.recv().expect("an answer").map_err(|error| error.to_string())?;
    assert!(output.status.success(), "ip {task}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

const ROUTED: &str = "name: routed\nshape: {ring: {nodes: 4}}\nwire: udp\nwatchdog: 20s\n\
    hosts:\n  A: {nodes: [n0, n1], address: 10.1.0.1}\n  B: {nodes: [n2, n3], address: 10.2.0.1}\n";

fn routed(more: &str) -> PathBuf {
    let file = scratch("routed.yaml");
    std::fs::write(&file, format!("{ROUTED}{more}")).expect("the scratch folder is ours");
    file
}

#[test]
fn hosts_with_a_router_between_them_are_joined_by_datagrams() {
    const TEST: &str = "hosts_with_a_router_between_them_are_joined_by_datagrams";
    in_namespaces(TEST, || {
        let Some([a, b, router]) = machines_and_router(TEST) else { return };
        let reduce = ["--collective", "all-reduce", "--bytes", "256KiB", "--repetitions", "5"];
        for job in [&[][..], &reduce] {
            let file = routed("job: {litmus: {bytes_max: 64KiB, rounds: 8}}\n");
            let hosts = [run(&a, &file, "A", job), run(&b, &file, "B", job)];
            let strangers = std::thread::spawn({
                let network = network(&router);
                move || talk_to_ports(&network)
            });
            let hosts = hosts.map(Host::finish);
            let said = strangers.join().expect("the stranger has nothing to fear");
            for (place, host) in hosts.iter().enumerate() {
                assert_eq!(host.code, Some(0), "host {place}: {}", host.said);
                let report = host.report();
                let links = report["links"].as_array().expect("a list");
                let of = |name: &str| links.iter().find(|link| link["name"] == name).expect("a link");
                for crossing in ["n1->n2", "n2->n1", "n3->n0", "n0->n3"] {
                    assert!(of(crossing)["frames"].as_u64() > Some(20), "{crossing}: {report}");
                }
                let counted = of(["n2->n1", "n1->n2"][place])["dropped"]["turned-away"].as_u64();
                assert!(said == 0 || counted > Some(0), "host {place} did not count strangers: {report}");
            }
        }
    });
}

/// From the router, at its own address, to the ports of the link n1--n2 for a while; how often.
fn talk_to_ports(network: &File) -> u64 {
    use std::os::fd::AsFd;
    move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network)).expect("it is ours");
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").expect("a port");
    let mut said = 0;
    for _ in 0..300 {
        for target in ["10.1.0.1:26002", "10.2.0.1:26002"] {
            // Refused as long as nobody is there.
            said += u64::from(socket.send_to(&[0x5a; 300], target).is_ok());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    said
}

#[test]
fn a_host_beyond_a_router_that_dies_is_noticed() {
    const TEST: &str = "a_host_beyond_a_router_that_dies_is_noticed";
    in_namespaces(TEST, || {
        let Some([a, b, _router]) = machines_and_router(TEST) else { return };
        let file = routed("job: {litmus: {bytes_max: 64KiB, rounds: 100000}}\n");
        let (first, second) = (run(&a, &file, "A", &[]), run(&b, &file, "B", &[]));
        first.is_up();
        second.is_up();
        second.kill();
        let ended = first.finish();
        assert_eq!(ended.code, Some(NODE_LOST), "{}", ended.said);
        let failures = ended.report()["failures"].to_string();
        for part in ["host B at 10.2.0.1 is not heard any more", "n0: lost nodes [n2, n3]"] {
            assert!(failures.contains(part), "no {part:?} in {failures}");
        }
    });
}

#[test]
fn what_is_wrong_with_an_address_or_the_way_is_said() {
    const TEST: &str = "what_is_wrong_with_an_address_or_the_way_is_said";
    in_namespaces(TEST, || {
        let Some([a, _b, router]) = machines_and_router(TEST) else { return };
        let elsewhere = scratch("elsewhere.yaml");
        let text = ROUTED.replace("10.1.0.1", "10.1.0.7");
        std::fs::write(&elsewhere, text).expect("the scratch folder is ours");
        let mut cases = vec![(elsewhere, "this machine has no address 10.1.0.7")];
        cases.push((
            routed("frame_bytes_max: 9014B\n"),
            "carries frames of 8972 bytes in a packet, and the rack sends 9014",
        ));
        for (file, part) in cases {
            let ended = run(&a, &file, "A", &[]).finish();
            assert_eq!(ended.code, Some(COULD_NOT_START), "{}", ended.said);
            assert!(ended.said.contains(part) && ended.said.contains("hint: "), "{}", ended.said);
        }
        drop(router);
        let alone = scratch("alone.yaml");
        let text = ROUTED.replace("watchdog: 20s", "watchdog: 1s");
        std::fs::write(&alone, text).expect("the scratch folder is ours");
        let ended = run(&a, &alone, "A", &[]).finish();
        assert_eq!(ended.code, Some(STALLED), "{}", ended.said);
        for part in
            ["host B at 10.2.0.1 has not been heard", "host B's n2 has not been heard from 10.2.0.1:26002"]
        {
            assert!(ended.said.contains(part), "no {part:?} in {}", ended.said);
        }
    });
}
