//! Remains of racks: the state of this user's machine before and after.
//!
//! Processes and paths are found by a mark that only this test's racks carry in their environment, so that other racks on
//! the machine do not count. A process, a mount or a descriptor keeps a network namespace; all
//! three are counted, so no namespace is left when they are as before.

use std::path::Path;

use rustix::process::Pid;

use super::is_gone;

/// Everything that could be left.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Footprint {
    /// Processes with the mark in their environment.
    processes: Vec<u32>,
    /// Names in `/dev/shm`.
    shared_memory: Vec<String>,
    /// Network interfaces of this namespace.
    interfaces: Vec<String>,
    /// Namespaces that are held by a mount.
    mounted_namespaces: usize,
    /// Unix sockets whose path contains the mark.
    sockets: usize,
    /// Descriptors of the test itself, which started everything.
    descriptors: usize,
}

impl Footprint {
    /// Returns the present state, for racks that carry `mark`.
    pub(crate) fn of(mark: &Path) -> Self {
        let mark = mark.to_str().expect("a plain path");
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").expect("/proc is there");
        let sockets = std::fs::read_to_string("/proc/net/unix").expect("/proc is there");
        Self {
            processes: marked_processes(mark),
            shared_memory: names("/dev/shm"),
            interfaces: names("/sys/class/net"),
            mounted_namespaces: mounts.lines().filter(|line| line.contains(" nsfs ")).count(),
            sockets: sockets.lines().filter(|line| line.contains(mark)).count(),
            descriptors: names("/proc/self/fd").len(),
        }
    }

    /// Returns the number of processes.
    pub(crate) fn process_count(&self) -> usize {
        self.processes.len()
    }
}

/// Returns the running processes with the mark in their environment.
fn marked_processes(mark: &str) -> Vec<u32> {
    let mark = mark.as_bytes();
    let knows = |pid: &u32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.windows(mark.len()).any(|window| window == mark)
    };
    let pids = names("/proc").into_iter().filter_map(|name| name.parse().ok());
    pids.filter(knows).filter(|pid| !is_gone(Pid::from_raw(*pid as i32).expect("no zero"))).collect()
}

/// Returns the names in a directory, in order; none if there is no such directory.
fn names(directory: &str) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
