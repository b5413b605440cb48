//! Racks of two hosts with a key. An attacker without a key that can send on the segment between them changes
//! nothing.

mod support;

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use rackloom::hosts::MessageSocket;
use rackloom_protocol::wire::check::crc32c;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde_json::Value;
use support::machines::{
    COULD_NOT_START, Ended, Host, Machine, NODE_LOST, STALLED, TIMEOUT, in_namespaces, machines, network, run,
};
use support::{scratch, within};

const ETHER_TYPE: u16 = 0x88b5;
const N1: [u8; 6] = [0x02, 0x52, 0x4c, 0, 0, 1];
const N2: [u8; 6] = [0x02, 0x52, 0x4c, 0, 0, 2];
const SUPERVISORS: [u8; 6] = [0x03, 0x52, 0x4c, 0xff, 0xff, 0xff];
/// Bytes that authentication adds to a frame.
const TRAILER_BYTES: usize = 16;
/// Most recorded frames that are kept of each direction.
const KEPT_MAX: usize = 4000;

fn key_file(content: u8) -> PathBuf {
    let key = scratch("rack.key");
    std::fs::write(&key, [content; 32]).expect("the scratch folder is writable");
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).expect("the file exists");
    key
}

/// Writes the rack file of both hosts. The link n1--n2 is one of the two between them.
fn rack(key: Option<&Path>, rounds: u32) -> PathBuf {
    let file = scratch("rack.yaml");
    let key = key.map_or(String::new(), |key| format!("security: {{key_file: {}}}\n", key.display()));
    let text = format!(
        "name: between\nshape: {{ring: {{nodes: 4}}}}\nwire: packet\nwatchdog: 20s\n{key}\
         hosts:\n  A: {{nodes: [n0, n1], interface: eth1}}\n  B: {{nodes: [n2, n3], interface: eth1}}\n\
         job: {{litmus: {{bytes_max: 64KiB, rounds: {rounds}}}}}\n"
    );
    std::fs::write(&file, text).expect("the scratch folder is writable");
    file
}

/// Frames that passed from one host to the other.
#[derive(Clone, Debug, Default)]
struct Recorded {
    /// All frames, up to the limit.
    all: Vec<Vec<u8>>,
    /// Last frame of each kind. Messages between hosts have no kind.
    last: BTreeMap<u8, Vec<u8>>,
}

impl Recorded {
    fn note(&mut self, frame: &[u8]) {
        let kind = if frame.starts_with(&SUPERVISORS) { 0 } else { frame[16] };
        self.last.insert(kind, frame.to_vec());
        if self.all.len() < KEPT_MAX {
            self.all.push(frame.to_vec());
        }
    }
}

/// Attacker on the segment between two hosts: receives everything, sends anything, and has no key.
struct Forger {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    recorded: [Arc<Mutex<Recorded>>; 2],
}

impl Forger {
    /// Sends the result of `forge` on the recorded frames to both hosts, repeatedly, by direction, with the number of the round.
    fn between(
        [a, b]: &[Machine; 2],
        forge: impl Fn(&Recorded, u32) -> Vec<Vec<u8>> + Clone + Send + 'static,
    ) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let recorded = [(); 2].map(|()| Arc::new(Mutex::new(Recorded::default())));
        let mut threads = Vec::new();
        for (direction, (sender, receiver, target)) in [(a, b, N1), (b, a, N2)].into_iter().enumerate() {
            let networks = [network(sender), network(receiver)];
            let (over, recorded, forge) =
                (Arc::clone(&is_over), Arc::clone(&recorded[direction]), forge.clone());
            threads.push(std::thread::spawn(move || {
                // A socket stays in the network namespace in which it was opened: frames are received here and sent from there.
                let [here, there] = networks.map(|network| {
                    move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))
                        .expect("a namespace of this test");
                    [target, SUPERVISORS]
                        .map(|group| MessageSocket::open("eth1", ETHER_TYPE, group).expect("eth1"))
                });
                let mut buffer = [0; 9100];
                let mut round = 0;
                while !over.load(Ordering::Relaxed) {
                    let forged = {
                        let mut recorded = recorded.lock().expect("nothing panics");
                        for socket in &here {
                            for _ in 0..200 {
                                let Some(frame) = socket.receive(&mut buffer) else { break };
                                recorded.note(frame);
                            }
                        }
                        forge(&recorded, round)
                    };
                    // Frames that the segment cannot take are lost.
                    forged.iter().for_each(|frame| drop(there[0].send(frame)));
                    round += 1;
                    std::thread::sleep(Duration::from_millis(2));
                }
            }));
        }
        Self { is_over, threads, recorded }
    }

    fn recorded(&self) -> [Recorded; 2] {
        [0, 1].map(|direction| self.recorded[direction].lock().expect("nothing panics").clone())
    }
}

impl Drop for Forger {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn add(frame: &mut [u8], at: usize, bytes: usize, more: u32) {
    if let Some(field) = frame.get_mut(at..at + bytes) {
        let mut wide = [0; 8];
        wide[..bytes].copy_from_slice(field);
        let sum = u64::from_le_bytes(wide).wrapping_add(more.into());
        field.copy_from_slice(&sum.to_le_bytes()[..bytes]);
    }
}

/// Makes both checks of a frame valid again. An end that knows the format can do that.
fn check_again(frame: &mut [u8]) {
    let (is_routed, covers_all) = (matches!(frame[16] & 15, 1 | 2), frame[17] & 4 != 0);
    if is_routed && frame.len() >= 86 {
        let check = crc32c(&[&frame[46..82], &frame[86..]].concat());
        frame[82..86].copy_from_slice(&check.to_le_bytes());
    }
    let body = if !is_routed || covers_all { &frame[46..] } else { &[] };
    let check = crc32c(&[&frame[14..42], body].concat());
    frame[42..46].copy_from_slice(&check.to_le_bytes());
}

/// Returns forgeries of a real frame: other contents with valid checks, but without a valid tag.
fn forged(kind: u8, real: &[u8], round: u32) -> Vec<Vec<u8>> {
    let length = 46 + usize::from(u16::from_le_bytes([real[20], real[21]]));
    let Some(frame) = real.get(..length) else { return Vec::new() };
    let ahead = 1000 + round;
    let mut all = Vec::new();
    let mut make = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut frame = frame.to_vec();
        change(&mut frame);
        check_again(&mut frame);
        all.push(frame);
    };
    match kind & 15 {
        // Data of the next packets, with other bytes and the right region and key.
        1 => make(&|frame| {
            add(frame, 66, 4, 1 + round % 4);
            let last = frame.len() - 1;
            frame[last] ^= 0xff;
        }),
        // Acknowledgements of packets that have not arrived.
        2 => make(&|frame| {
            add(frame, 90, 4, 5);
            add(frame, 94, 4, 5);
        }),
        // A later incarnation.
        3 => make(&|frame| add(frame, 58, 4, ahead)),
        // The link is down.
        4 => {
            make(&|frame| {
                add(frame, 46, 4, ahead);
                frame[54..56].copy_from_slice(&3_u16.to_le_bytes());
            });
            make(&|frame| add(frame, 46, 4, ahead));
        }
        // A report that no link carries data any more.
        5 => make(&|frame| {
            add(frame, 58, 4, ahead);
            (64..frame.len()).step_by(4).for_each(|at| frame[at] &= !3);
        }),
        // Credits that were never freed. From this header, a link acknowledgement and a NACK as well.
        6 => {
            make(&|frame| {
                add(frame, 34, 4, 300);
                add(frame, 38, 4, 300);
            });
            for other in [7, 8] {
                make(&|frame| {
                    frame.truncate(46);
                    frame[16] = frame[16] & 0xf0 | other;
                    frame[20..22].fill(0);
                    add(frame, 30, 4, 50);
                });
            }
        }
        // A link acknowledgement of unsent frames, a NACK of an old frame, and numbers that begin again.
        7 | 8 => make(&|frame| add(frame, 30, 4, 50)),
        9 | 10 => make(&|frame| {
            add(frame, 26, 4, 100);
            add(frame, 46, 4, 1);
        }),
        _ => {}
    }
    all
}

/// Returns a message that reports the departure of its host, with a valid check.
fn forged_message(real: &[u8], round: u32) -> Vec<Vec<u8>> {
    let end = 30 + 16 * usize::from(real[19]);
    let speaker = usize::from(u16::from_le_bytes([real[26], real[27]]));
    let mut gone = real.to_vec();
    add(&mut gone, 30 + 16 * speaker + 8, 4, 1000 + round);
    gone[30 + 16 * speaker + 12] = 3;
    let mut later = real.to_vec();
    add(&mut later, 30 + 16 * speaker + 4, 4, 1 + round);
    [gone, later]
        .into_iter()
        .flat_map(|mut message| {
            let check = crc32c(&message[..end]).to_le_bytes();
            message[end..end + 4].copy_from_slice(&check);
            let mut plain = message.clone();
            plain[18] = 2;
            let check = crc32c(&plain[..end]).to_le_bytes();
            plain[end..end + 4].copy_from_slice(&check);
            [message, plain]
        })
        .collect()
}

/// Returns all forgeries of a round.
fn all_recorded(recorded: &Recorded, round: u32) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for (kind, real) in &recorded.last {
        // The last frame, again.
        all.push(real.clone());
        if *kind == 0 {
            all.extend(forged_message(real, round));
            continue;
        }
        let trailer = real.get(real.len().saturating_sub(TRAILER_BYTES)..).unwrap_or_default();
        for forged in forged(*kind, real, round) {
            let mut numbered = [&forged[..], trailer].concat();
            let counter = forged.len();
            add(&mut numbered, counter, 8, 10 + round);
            all.extend([forged, numbered]);
        }
        // A greeting with another nonce.
        if *kind == 0x2c {
            let mut later = real.clone();
            later[24] ^= 1;
            all.push(later);
        }
    }
    // Frames of the past.
    let past = recorded.all.len().max(1);
    all.extend((0..4).filter_map(|index| recorded.all.get((round as usize * 4 + index) % past).cloned()));
    all
}

fn dropped(report: &Value, link: &str, reason: &str) -> u64 {
    let links = report["links"].as_array().expect("a list");
    let link = links.iter().find(|found| found["name"] == link).expect("a link of the ring");
    link["dropped"][reason].as_u64().unwrap_or(0)
}

/// Returns the times at which links went down before the end.
fn links_lost(report: &Value) -> Vec<String> {
    let events = report["events"].as_array().expect("a list");
    let lost = events.iter().filter(|event| event["fields"]["to"] == "down");
    lost.map(|event| format!("{} {}", event["member"], event["text"])).collect()
}

/// Checks that both hosts pass, no link was lost, and the report counts the refused frames.
fn passes_and_counts(ended: &[Ended; 2]) {
    for (host, link) in ended.iter().zip(["n2->n1", "n1->n2"]) {
        assert_eq!(host.code, Some(0), "{}", host.output);
        let report = host.report();
        assert_eq!(report["verdict"], "pass");
        assert!(dropped(&report, link, "bad-tag") > 100, "{report}");
        assert!(dropped(&report, link, "replayed") > 100, "{report}");
        let notes = report["notes"].to_string();
        assert!(notes.contains("messages between hosts were refused"), "{notes}");
        assert!(!notes.contains("unauthenticated"), "{notes}");
        assert_eq!(links_lost(&report), [] as [String; 0]);
        assert!(host.output.contains("bad-tag"), "the text has it as well: {}", host.output);
    }
}

/// Checks that a rack with a key and these other keys of the file passes beside an attacker that forges all these kinds of frames.
fn passes_beside_a_forger(more: &str, kinds: &[u8]) {
    let machines = machines();
    let key = key_file(7);
    let file = rack(Some(&key), 60);
    let text = std::fs::read_to_string(&file).expect("it was written");
    std::fs::write(&file, text + more).expect("the scratch folder is writable");
    let forger = Forger::between(&machines, all_recorded);
    let [a, b] = &machines;
    let ended = [run(a, &file, "A", &[]), run(b, &file, "B", &[])].map(Host::finish);
    let recorded = forger.recorded();
    drop(forger);
    for recorded in &recorded {
        let recorded: Vec<_> = recorded.last.keys().copied().collect();
        for kind in kinds {
            assert!(recorded.contains(kind), "nothing of kind {kind:#x} was forged: {recorded:x?}");
        }
    }
    passes_and_counts(&ended);
}

#[test]
fn a_forger_on_the_segment_changes_nothing() {
    in_namespaces("a_forger_on_the_segment_changes_nothing", || {
        passes_beside_a_forger("", &[0, 0x11, 0x12, 0x13, 0x14, 0x15, 0x2c]);
    });
}

#[test]
fn a_forger_changes_nothing_on_links_with_retry() {
    in_namespaces("a_forger_changes_nothing_on_links_with_retry", || {
        passes_beside_a_forger(
            "link: {llr: on, loss: 1%}\n",
            &[0, 0x11, 0x14, 0x15, 0x17, 0x18, 0x19, 0x1a, 0x2c],
        );
    });
}

/// Shows that the test above can fail.
#[test]
fn the_same_forger_disturbs_a_rack_without_a_key() {
    in_namespaces("the_same_forger_disturbs_a_rack_without_a_key", || {
        let machines = machines();
        let file = rack(None, 60);
        let _forger = Forger::between(&machines, all_recorded);
        let [a, b] = &machines;
        // A forged frame must arrive at the right time: one of several runs is enough. A host that accepts
        // forged messages may also wait for the other host without end.
        let is_disturbed = |_| {
            let ended = [run(a, &file, "A", &[]), run(b, &file, "B", &[])]
                .map(|host| host.finish_within(Duration::from_secs(20)));
            let is_whole = |host: &Ended| host.code == Some(0) && links_lost(&host.report()).is_empty();
            !ended.iter().all(|host| host.as_ref().is_some_and(is_whole))
        };
        assert!((0..5).any(is_disturbed), "the forger is harmless");
    });
}

#[test]
fn frames_and_messages_of_an_earlier_run_change_nothing() {
    in_namespaces("frames_and_messages_of_an_earlier_run_change_nothing", || {
        let machines = machines();
        let key = key_file(7);
        let file = rack(Some(&key), 60);
        let [a, b] = &machines;
        let recorder = Forger::between(&machines, |_, _| Vec::new());
        for host in [run(a, &file, "A", &[]), run(b, &file, "B", &[])].map(Host::finish) {
            assert_eq!(host.code, Some(0), "{}", host.output);
            let report = host.report();
            let refused = |link| dropped(&report, link, "bad-tag") + dropped(&report, link, "replayed");
            assert_eq!(["n2->n1", "n1->n2"].map(refused), [0; 2], "nothing was forged: {report}");
        }
        let old = recorder.recorded();
        drop(recorder);
        assert!(old.iter().all(|recorded| recorded.all.len() > 500 && recorded.last.contains_key(&0)));
        // Both directions are sent to both hosts: the addresses select the receiver. The last messages report the end of the run.
        let ends: Vec<_> = old.iter().flat_map(|recorded| recorded.last.values().cloned()).collect();
        let past: Vec<_> = old.into_iter().flat_map(|recorded| recorded.all).collect();
        let again = move |_: &Recorded, round: u32| -> Vec<Vec<u8>> {
            let some = (0..20).map(|index| past[(round as usize * 20 + index) % past.len()].clone());
            some.chain(ends.iter().cloned()).collect()
        };
        let forger = Forger::between(&machines, again);
        // One host is late: the other receives only old frames for a while.
        let first = run(a, &file, "A", &[]);
        std::thread::sleep(Duration::from_secs(3));
        let ended = [first, run(b, &file, "B", &[])].map(Host::finish);
        drop(forger);
        for (host, link) in ended.iter().zip(["n2->n1", "n1->n2"]) {
            assert_eq!(host.code, Some(0), "{}", host.output);
            let report = host.report();
            assert_eq!(report["verdict"], "pass");
            assert!(dropped(&report, link, "bad-tag") > 100, "{report}");
        }
    });
}

#[test]
fn repeated_and_forged_heartbeats_do_not_hide_a_death() {
    in_namespaces("repeated_and_forged_heartbeats_do_not_hide_a_death", || {
        let machines = machines();
        let key = key_file(7);
        let file = rack(Some(&key), 1_000_000);
        let heartbeats = |recorded: &Recorded, round: u32| -> Vec<Vec<u8>> {
            let Some(real) = recorded.last.get(&0x14) else { return Vec::new() };
            let past = recorded.all.iter().filter(|frame| frame[16] == 0x14).cloned();
            let message = recorded.last.get(&0).cloned();
            // The second forged frame reports a healthy member, under a number of its own.
            past.take(20)
                .chain(forged(0x14, real, round).pop())
                .chain([real.clone()])
                .chain(message)
                .collect()
        };
        let [a, b] = &machines;
        let (first, second) = (run(a, &file, "A", &[]), run(b, &file, "B", &[]));
        first.is_up();
        second.is_up();
        let forger = Forger::between(&machines, heartbeats);
        within(TIMEOUT, "a heartbeat", || {
            forger.recorded().iter().all(|recorded| recorded.last.contains_key(&0x14)).then_some(())
        });
        second.kill();
        let ended = first.finish();
        drop(forger);
        assert_eq!(ended.code, Some(NODE_LOST), "{}", ended.output);
        let report = ended.report();
        let failures = report["failures"].to_string();
        for part in ["host B on eth1 sends no messages any more", "n1: lost nodes [n2, n3]"] {
            assert!(failures.contains(part), "no {part:?} in {failures}");
        }
        assert!(dropped(&report, "n2->n1", "replayed") > 0, "{report}");
    });
}

/// Runs two hosts on the loopback interface, on the udp wire, each with its own rack file. Returns exit codes and output.
fn on_loopback(number: u8, security: [&str; 2]) -> [(Option<i32>, String); 2] {
    let number_of_process = std::process::id();
    let network = format!("127.{}.{}", 64 + (number_of_process >> 8) % 64, number_of_process % 256);
    let [a, b] = [1, 2].map(|end| format!("{network}.{}", 100 + 2 * number + end));
    let hosts = ["A", "B"].iter().zip(security).map(|(host, security)| {
        let file = scratch(&format!("{host}.yaml"));
        let text = format!(
            "name: keyed\nshape: {{ring: {{nodes: 4}}}}\nwire: udp\nwatchdog: 5s\n{security}\
             hosts:\n  A: {{nodes: [n0, n1], address: {a}}}\n  B: {{nodes: [n2, n3], address: {b}}}\n\
             job: {{litmus: {{bytes_max: 64KiB, rounds: 4}}}}\n"
        );
        std::fs::write(&file, text).expect("the scratch folder is writable");
        let mut command = Command::new(env!("CARGO_BIN_EXE_rackloom"));
        command
            .arg("run")
            .arg(&file)
            .args(["--host", host])
            .stdin(Stdio::null())
            .env_remove("RACKLOOM_KEY_FILE");
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts")
    });
    let hosts: Vec<_> = hosts.collect();
    let ended = hosts.into_iter().map(|host| {
        let output = host.wait_with_output().expect("it ends");
        let output_text =
            [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        (output.status.code(), output_text.concat())
    });
    ended.collect::<Vec<_>>().try_into().expect("two hosts")
}

#[test]
fn hosts_with_one_key_pass_on_the_udp_wire_and_hosts_without_a_key_have_a_note() {
    let key = key_file(7);
    let security = format!("security: {{key_file: {}}}\n", key.display());
    for (code, output) in on_loopback(0, [&security, &security]) {
        assert_eq!(code, Some(0), "{output}");
        assert!(output.contains("verdict: pass") && !output.contains("unauthenticated"), "{output}");
        assert!(!output.contains("bad-tag") && !output.contains("replayed"), "nothing was forged: {output}");
    }
    for (code, output) in on_loopback(1, ["", ""]) {
        assert_eq!(code, Some(0), "{output}");
        assert!(output.contains("note: unauthenticated"), "{output}");
    }
}

#[test]
fn hosts_with_different_keys_do_not_connect_and_report_the_reason() {
    let keys = [7, 8].map(|content| format!("security: {{key_file: {}}}\n", key_file(content).display()));
    for (code, output) in on_loopback(2, [&keys[0], &keys[1]]) {
        assert_eq!(code, Some(STALLED), "{output}");
        assert!(
            output.contains("messages without a valid tag were refused: is the key file the same"),
            "{output}"
        );
    }
}

#[test]
fn a_host_without_the_key_reports_that_it_has_none() {
    let security = format!("security: {{key_file: {}}}\n", key_file(7).display());
    let [(with_key, output), (without, its)] = on_loopback(4, [&security, ""]);
    assert_eq!(with_key, Some(STALLED), "{output}");
    assert!(output.contains("messages without a valid tag were refused"), "{output}");
    assert_eq!(without, Some(COULD_NOT_START), "{its}");
    assert!(its.contains("host A authenticates its messages, and this host has no key"), "{its}");
}

#[test]
fn a_key_file_that_others_can_read_or_that_is_short_is_refused() {
    let key = key_file(7);
    let security = format!("security: {{key_file: {}}}\n", key.display());
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o640)).expect("the file exists");
    for (code, output) in on_loopback(3, [&security, &security]) {
        assert_eq!(code, Some(2), "{output}");
        assert!(output.contains("hint: chmod 600"), "{output}");
    }
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).expect("the file exists");
    std::fs::write(&key, [7; 31]).expect("the file exists");
    for (code, output) in on_loopback(3, [&security, &security]) {
        assert_eq!(code, Some(2), "{output}");
        assert!(output.contains("31 bytes, and a key has at least 32"), "{output}");
    }
}

/// Runs one command to its end and returns its output.
fn printed(arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rackloom"));
    let output = command.args(arguments).env_remove("RACKLOOM_KEY_FILE").output().expect("the binary starts");
    let printed =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    assert!(output.status.success(), "{arguments:?}: {printed}");
    printed
}

#[test]
fn check_reports_missing_authentication_and_virtual_time_ignores_keys() {
    let [open, keyed] = [None, Some(key_file(7))].map(|key| rack(key.as_deref(), 2));
    let [open, keyed] = [&open, &keyed].map(|file| file.to_str().expect("a plain path"));
    assert!(printed(&["check", open]).contains("note: unauthenticated"));
    let shown = printed(&["check", keyed]);
    assert!(shown.contains("no effect in virtual time") && !shown.contains("unauthenticated"), "{shown}");
    let hashes = [open, keyed].map(|file| {
        let json = scratch("report.json");
        let shown = printed(&["sim", file, "--json", json.to_str().expect("a plain path")]);
        assert_eq!(shown.contains("has no effect in virtual time"), file == keyed, "{shown}");
        let report: Value =
            serde_json::from_slice(&std::fs::read(&json).expect("it was written")).expect("JSON");
        (report["trace_hash"].clone(), report["config_hash"].clone())
    });
    assert!(hashes[0] == hashes[1] && !hashes[0].0.is_null(), "{hashes:?}");
}
