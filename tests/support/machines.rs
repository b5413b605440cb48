//! Machines of a rack of several hosts: network namespaces that share only links, each with a supervisor of its own.
//!
//! A test runs in a child of the test process that may make links, as root or in a user namespace. Its namespaces end
//! with it. If the system forbids that, the test counts as skipped.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rackloom::namespaces::{
    Bridge, BridgeCable, Cable, CableEnd, NamespaceError, connect_to_bridges, create_bridges, create_cables,
    enter_new_network_namespace, enter_supervisor_namespaces, set_mtu, switch_on_all,
};
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde_json::Value;

use super::wires::skipped;
use super::{scratch, within};

/// Variable that is set in the child that runs inside the namespaces.
const INSIDE: &str = "RACKLOOM_TEST_INSIDE_NAMESPACES";
pub(crate) const TIMEOUT: Duration = Duration::from_secs(100);
pub(crate) const COULD_NOT_START: i32 = 3;
pub(crate) const NODE_LOST: i32 = 4;
pub(crate) const STALLED: i32 = 5;

/// Runs the test of this name in a child that may make links.
pub(crate) fn in_namespaces(test: &str, body: impl FnOnce()) {
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

/// Machine: a network namespace with one interface, `eth1`, as long as its process waits for its input.
pub(crate) struct Machine(Child);

impl Machine {
    /// Process that holds the namespace.
    pub(crate) fn process(&self) -> u32 {
        self.0.id()
    }

    /// Makes a machine without an interface.
    pub(crate) fn begin() -> Self {
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

/// Two machines and the link between them.
pub(crate) fn machines() -> [Machine; 2] {
    joined_by(&["eth1"])
}

/// Makes two machines and a link for each of these names, which both ends have.
pub(crate) fn joined_by(interfaces: &[&str]) -> [Machine; 2] {
    let machines = ["A", "B"].map(|_| Machine::begin());
    let end = |machine: &Machine, interface: &str, last| CableEnd {
        process: machine.process(),
        interface: interface.to_owned(),
        address: [0x02, 0, 0, 0, interface.len() as u8, last],
    };
    let [a, b] = &machines;
    let cable = |name: &&str| Cable { ends: [end(a, name, 1), end(b, name, 2)], mtu: 9000 };
    let cables: Vec<_> = interfaces.iter().map(cable).collect();
    create_cables(&cables).expect("cables can be laid here");
    let names: Vec<_> = interfaces.iter().map(|name| (*name).to_owned()).collect();
    for machine in &machines {
        let names = names.clone();
        on(machine, move || {
            switch_on_all(&names, Duration::from_secs(10)).expect("the cables have been laid");
        });
    }
    machines
}

/// Makes two machines whose interfaces carry 9000 bytes, with a switch between them that carries `mtu`.
pub(crate) fn joined_across_a_bridge_of(mtu: u32) -> [Machine; 2] {
    let machines = ["A", "B"].map(|_| Machine::begin());
    let bridge = Bridge { name: format!("between{mtu}"), mtu };
    create_bridges(std::slice::from_ref(&bridge)).expect("the kernel has bridges");
    let cable = |(index, machine): (usize, &Machine)| BridgeCable {
        bridge: bridge.clone(),
        port: format!("b{mtu}-{index}"),
        end: CableEnd {
            process: machine.process(),
            interface: "eth1".to_owned(),
            address: [0x02, 0, 0, 0, 1, index as u8],
        },
    };
    let cables: Vec<_> = machines.iter().enumerate().map(cable).collect();
    connect_to_bridges(&cables).expect("cables can be laid here");
    for machine in &machines {
        on(machine, || {
            set_mtu("eth1", 9000).expect("a virtual interface takes that");
            switch_on_all(&["eth1".to_owned()], Duration::from_secs(10)).expect("the cables have been laid");
        });
    }
    machines
}

/// Runs a function in a machine's network namespace.
pub(crate) fn on(machine: &Machine, act: impl FnOnce() + Send + 'static) {
    use std::os::fd::AsFd;
    let network = network(machine);
    let acts = move || {
        move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))
            .expect("the network exists");
        act();
    };
    std::thread::spawn(acts).join().expect("what is done on a machine");
}

pub(crate) fn network(machine: &Machine) -> File {
    File::open(format!("/proc/{}/ns/net", machine.process())).expect("the machine is there")
}

/// Starts `rackloom` on a machine.
pub(crate) struct Host {
    child: Child,
    json: PathBuf,
    pub(crate) pids: PathBuf,
    printed: PathBuf,
}

/// Result of a command on a machine.
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) output: String,
    json: PathBuf,
}

pub(crate) fn command(machine: &Machine, printed: &Path) -> Command {
    use std::os::fd::AsFd;
    let network = network(machine);
    let print =
        || File::options().create(true).append(true).open(printed).expect("the scratch folder is writable");
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

pub(crate) fn run(machine: &Machine, file: &Path, host: &str, more: &[&str]) -> Host {
    let (json, pids, printed) = (scratch("report.json"), scratch("pids.json"), scratch("printed.txt"));
    let mut command = command(machine, &printed);
    command.arg("run").arg(file).args(["--host", host]).args(more);
    command.arg("--json").arg(&json).arg("--pids").arg(&pids);
    Host { child: command.spawn().expect("the binary starts"), json, pids, printed }
}

impl Host {
    pub(crate) fn is_up(&self) {
        within(TIMEOUT, "bringing up all links", || self.pids.exists().then_some(()));
    }

    pub(crate) fn kill(&self) {
        kill_process(Pid::from_child(&self.child), Signal::KILL).expect("it is there");
    }

    /// Waits for the end of a run. Returns `None` and kills the run if it takes longer than `limit`.
    pub(crate) fn finish_within(mut self, limit: Duration) -> Option<Ended> {
        let deadline = Instant::now() + limit;
        while self.child.try_wait().expect("a child").is_none() {
            if Instant::now() > deadline {
                return None;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Some(self.finish())
    }

    pub(crate) fn finish(mut self) -> Ended {
        let status = within(TIMEOUT, "the end of the run", || self.child.try_wait().expect("a child"));
        let output = std::fs::read_to_string(&self.printed).expect("it was written");
        Ended { code: status.code(), output, json: self.json.clone() }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Ended {
    pub(crate) fn report(&self) -> Value {
        let text =
            std::fs::read_to_string(&self.json).unwrap_or_else(|error| panic!("{error}: {}", self.output));
        serde_json::from_str(&text).expect("the report is JSON")
    }
}
