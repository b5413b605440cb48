//! Hosts with a router between them: only IPv4 packets pass, and links use datagrams.

mod support;

use std::fs::File;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use rackloom::namespaces::{Cable, CableEnd, create_cables};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use support::machines::{
    COULD_NOT_START, Host, Machine, NODE_LOST, STALLED, in_namespaces, network, on, run,
};
use support::scratch;
use support::wires::skipped;

/// Two machines and a router between them: only IPv4 packets pass from one to the other. `None` if addresses cannot
/// be set.
fn machines_and_router(test: &str) -> Option<[Machine; 3]> {
    let machines = [(); 3].map(|()| Machine::begin());
    let [a, b, router] = &machines;
    let end = |machine: &Machine, interface: &str, last| CableEnd {
        process: machine.process(),
        interface: interface.to_owned(),
        address: [0x02, 0, 0, 1, 0, last],
    };
    let cables = [
        Cable { ends: [end(a, "eth1", 1), end(router, "west", 2)], mtu: 9000 },
        Cable { ends: [end(b, "eth1", 3), end(router, "east", 4)], mtu: 9000 },
    ];
    create_cables(&cables).expect("cables can be laid here");
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
            if let Err(reason) = ip(machine, task) {
                skipped(&format!("{test}: addresses cannot be set: {reason}"));
                return None;
            }
        }
    }
    forwards(router, true);
    Some(machines)
}

/// Switches forwarding of a router on or off. (The end of a router's process would remove its interfaces at
/// some later time, and with them the addresses at their other ends.)
fn forwards(router: &Machine, is_on: bool) {
    let setting = u8::from(is_on).to_string();
    on(router, || std::fs::write("/proc/sys/net/ipv4/ip_forward", setting).expect("the setting is writable"));
}

/// Runs `ip` on a machine. Returns an error if there is no such program.
fn ip(machine: &Machine, task: &str) -> Result<(), String> {
    let (send, receive) = std::sync::mpsc::channel();
    let arguments: Vec<String> = task.split(' ').map(str::to_owned).collect();
    on(machine, move || send.send(Command::new("ip").args(arguments).output()).expect("the receiver waits"));
    let output = receive.recv().expect("an answer").map_err(|error| error.to_string())?;
    assert!(output.status.success(), "ip {task}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

const ROUTED: &str = "name: routed\nshape: {ring: {nodes: 4}}\nwire: udp\nwatchdog: 20s\n\
    hosts:\n  A: {nodes: [n0, n1], address: 10.1.0.1}\n  B: {nodes: [n2, n3], address: 10.2.0.1}\n";

fn routed(more: &str) -> PathBuf {
    let file = scratch("routed.yaml");
    std::fs::write(&file, format!("{ROUTED}{more}")).expect("the scratch folder is writable");
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
            let foreign_sender = std::thread::spawn({
                let network = network(&router);
                move || send_to_ports(&network)
            });
            let hosts = hosts.map(Host::finish);
            let sent = foreign_sender.join().expect("the thread does not panic");
            for (index, host) in hosts.iter().enumerate() {
                assert_eq!(host.code, Some(0), "host {index}: {}", host.output);
                let report = host.report();
                let links = report["links"].as_array().expect("a list");
                let of = |name: &str| links.iter().find(|link| link["name"] == name).expect("a link");
                for crossing in ["n1->n2", "n2->n1", "n3->n0", "n0->n3"] {
                    assert!(of(crossing)["frames"].as_u64() > Some(20), "{crossing}: {report}");
                }
                let counted = of(["n2->n1", "n1->n2"][index])["dropped"]["filtered"].as_u64();
                assert!(
                    sent == 0 || counted > Some(0),
                    "host {index} did not count foreign datagrams: {report}"
                );
            }
        }
    });
}

/// Sends from the router, at its own address, to the ports of the link n1--n2 for a while. Returns the number of datagrams.
fn send_to_ports(network: &File) -> u64 {
    use std::os::fd::AsFd;
    move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network)).expect("the network exists");
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").expect("a port");
    let mut sent = 0;
    for _ in 0..300 {
        for target in ["10.1.0.1:26002", "10.2.0.1:26002"] {
            // The kernel refuses the datagram while the port is not open.
            sent += u64::from(socket.send_to(&[0x5a; 300], target).is_ok());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    sent
}

#[test]
fn the_death_of_a_host_behind_a_router_is_detected() {
    const TEST: &str = "the_death_of_a_host_behind_a_router_is_detected";
    in_namespaces(TEST, || {
        let Some([a, b, _router]) = machines_and_router(TEST) else { return };
        let file = routed("job: {litmus: {bytes_max: 64KiB, rounds: 100000}}\n");
        let (first, second) = (run(&a, &file, "A", &[]), run(&b, &file, "B", &[]));
        first.is_up();
        second.is_up();
        second.kill();
        let ended = first.finish();
        assert_eq!(ended.code, Some(NODE_LOST), "{}", ended.output);
        let failures = ended.report()["failures"].to_string();
        for part in ["host B at 10.2.0.1 sends no messages any more", "n0: lost nodes [n2, n3]"] {
            assert!(failures.contains(part), "no {part:?} in {failures}");
        }
    });
}

#[test]
fn a_wrong_address_or_path_is_reported() {
    const TEST: &str = "a_wrong_address_or_path_is_reported";
    in_namespaces(TEST, || {
        let Some([a, _b, router]) = machines_and_router(TEST) else { return };
        let elsewhere = scratch("elsewhere.yaml");
        let text = ROUTED.replace("10.1.0.1", "10.1.0.7");
        std::fs::write(&elsewhere, text).expect("the scratch folder is writable");
        let mut cases = vec![(elsewhere, "this machine has no address 10.1.0.7")];
        cases.push((
            routed("frame_bytes_max: 9014B\n"),
            "carries frames of 8972 bytes in a packet, and the rack sends 9014",
        ));
        for (file, part) in cases {
            let ended = run(&a, &file, "A", &[]).finish();
            assert_eq!(ended.code, Some(COULD_NOT_START), "{}", ended.output);
            assert!(ended.output.contains(part) && ended.output.contains("hint: "), "{}", ended.output);
        }
        forwards(&router, false);
        let alone = scratch("alone.yaml");
        let text = ROUTED.replace("watchdog: 20s", "watchdog: 1s");
        std::fs::write(&alone, text).expect("the scratch folder is writable");
        let ended = run(&a, &alone, "A", &[]).finish();
        assert_eq!(ended.code, Some(STALLED), "{}", ended.output);
        for part in
            ["host B at 10.2.0.1 has sent no message", "host B's n2 has sent no frame from 10.2.0.1:26002"]
        {
            assert!(ended.output.contains(part), "no {part:?} in {}", ended.output);
        }
    });
}
