//! `--netns-names`: names of the members' network namespaces, as `ip netns` shows them. They disappear with
//! the rack, after every kind of end.

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Signal, test_kill_process};
use support::wires::{has_packet_wire, skipped};
use support::{Running, rack_file, rackloom, run, send, within};

const NAMES: &str = "/run/netns";
const TIMEOUT: Duration = Duration::from_secs(10);

/// Returns a rack with a unique name.
fn rack(which: &str) -> (String, PathBuf) {
    let name = format!("named-{}-{which}", std::process::id());
    let file = rack_file(&format!(
        "name: {name}\nshape: {{star: {{nodes: 2}}}}\nwire: packet\n\
         job: {{litmus: {{bytes_max: 64KiB, rounds: 100000}}}}\n"
    ));
    (name, file)
}

fn start(file: &Path) -> Running {
    run(file).with(&["--netns-names"]).start()
}

/// Returns the names that belong to a rack.
fn names(rack: &str) -> Vec<String> {
    let entries = std::fs::read_dir(NAMES).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<_> = names.filter(|name| name.starts_with(&format!("{rack}-"))).collect();
    names.sort();
    names
}

/// Returns whether root's mounts are available.
fn may_name(test: &str) -> bool {
    if !has_packet_wire(test) {
        return false;
    }
    let (_, file) = rack("probe");
    let text = std::fs::read_to_string(&file).expect("it was written");
    std::fs::write(&file, text + "timers: {}\n").expect("the scratch folder is writable");
    let probe = run(&file).with(&["--netns-names", "--job", "none"]).finish();
    match probe.code {
        Some(0) => true,
        Some(3) => {
            skipped(&format!("{test}: {}", probe.stderr));
            false
        }
        _ => panic!("{}\n{}", probe.stdout, probe.stderr),
    }
}

#[test]
fn namespaces_have_names_while_their_members_run() {
    const TEST: &str = "namespaces_have_names_while_their_members_run";
    if !may_name(TEST) {
        return;
    }
    let (name, file) = rack("a");
    let mut running = start(&file);
    let members = running.members();
    let all = ["n0", "n1", "s0"].map(|member| format!("{name}-{member}"));
    assert_eq!(names(&name), all);
    let inside =
        |path: &Path| std::fs::metadata(path).map(|about| std::os::unix::fs::MetadataExt::ino(&about));
    for (member, pid) in &members.pids {
        let named = inside(&Path::new(NAMES).join(format!("{name}-{member}"))).expect("it can be read");
        let its =
            inside(Path::new(&format!("/proc/{}/ns/net", pid.as_raw_nonzero()))).expect("the process runs");
        assert_eq!(named, its, "{member}");
    }
    match Command::new("ip").args(["netns", "list"]).output() {
        Err(reason) => skipped(&format!("{TEST}: `ip netns` is not used: {reason}")),
        Ok(output) => {
            let listed = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(all.iter().all(|name| listed.contains(name.as_str())), "{listed}");
        }
    }
    // A name would keep the dead member's interfaces.
    send(members.pid("n1"), Signal::KILL);
    within(TIMEOUT, "the removal of the dead member's name", || (names(&name).len() < 3).then_some(()));
    running.finish();
    assert_eq!(names(&name), Vec::<String>::new());
}

#[test]
fn names_are_removed_even_if_the_supervisor_is_killed() {
    if !may_name("names_are_removed_even_if_the_supervisor_is_killed") {
        return;
    }
    let (dead, file) = rack("killed");
    let mut running = start(&file);
    let members = running.members();
    assert_eq!(names(&dead).len(), 3);
    let sweeper = sweeper_of(running.supervisor());
    send(running.supervisor(), Signal::KILL);
    members.all_gone(TIMEOUT);
    within(TIMEOUT, "the removal of the names", || names(&dead).is_empty().then_some(()));
    within(TIMEOUT, "the end of the sweeper", || test_kill_process(sweeper).is_err().then_some(()));
}

/// Returns the process that removes the names of a supervisor if it is killed.
fn sweeper_of(supervisor: Pid) -> Pid {
    let supervisor = supervisor.as_raw_nonzero();
    let children = std::fs::read_to_string(format!("/proc/{supervisor}/task/{supervisor}/children"));
    let children = children.expect("the process runs");
    let mut children = children.split_whitespace();
    let sweeper = children.find(|child| {
        let line = std::fs::read_to_string(format!("/proc/{child}/cmdline"));
        line.is_ok_and(|line| line.contains("sweep-names"))
    });
    Pid::from_raw(sweeper.expect("a sweeper runs").parse().expect("a number")).expect("a process")
}

#[test]
fn names_of_a_killed_rack_are_removed_by_the_next_one() {
    if !may_name("names_of_a_killed_rack_are_removed_by_the_next_one") {
        return;
    }
    let ((dead, file), (other, other_file)) = (rack("dead"), rack("running"));
    let mut running = start(&file);
    let members = running.members();
    send(sweeper_of(running.supervisor()), Signal::KILL);
    send(running.supervisor(), Signal::KILL);
    members.all_gone(TIMEOUT);
    drop(running);
    assert_eq!(names(&dead).len(), 3, "they were not removed");

    let mut running = start(&other_file);
    running.members();
    assert_eq!(names(&dead), Vec::<String>::new());
    assert_eq!(names(&other).len(), 3);
    // This rack ends in order.
    drop(running);
    let (third, file) = rack("third");
    run(&file).with(&["--netns-names", "--job", "none"]).finish().passed();
    assert_eq!(names(&third), [""; 0]);
}

#[test]
fn a_wire_without_namespaces_has_no_names() {
    let (_, file) = rack("udp");
    let file = file.to_str().expect("a plain path");
    let ended = rackloom(&["run", file, "--wire", "udp", "--netns-names"]).finish();
    assert_eq!(ended.code, Some(2), "{}", ended.stdout);
    assert!(ended.stderr.contains("members on the udp wire have no namespaces"), "{}", ended.stderr);
    assert!(ended.stderr.contains("hint:"), "{}", ended.stderr);
}
