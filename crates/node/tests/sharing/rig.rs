//! Two processes for a test: this one, and one that runs a named part of the same binary.
//!
//! They exchange lines: the child on its standard output, the parent on the child's standard input. A process that waits for a line serves its
//! exporter meanwhile. Every wait has a timeout.

use std::fs::read_dir;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant};

use rackloom::HostMemory;
use rackloom::memory::{DeviceChoice, MemoryOptions};
use rackloom::sharing::{ExportEvent, Exporter, ImportError, ImportedRegion, Importer, Seat, Seats};
use rackloom_protocol::{Access, Key, Memory, NodeId, RegionConfig, RegionId, Tenant};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

pub(crate) const REGION: RegionId = RegionId(1);
pub(crate) const KEY: Key = Key(0x0bad_cafe);
pub(crate) const LENGTH: u64 = 256 << 10;
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);
pub(crate) const PART: &str = "RACKLOOM_TEST_PART";
const DIRECTORY: &str = "RACKLOOM_TEST_DIRECTORY";
const PARENT: &str = "RACKLOOM_TEST_PARENT";
/// Environment variable that is set for a child whose memory is on a fake device.
pub(crate) const ON_DEVICE: &str = "RACKLOOM_TEST_ON_DEVICE";

/// Returns the kinds of memory in a test: host memory, and fake devices with two seeds, one without and one with a pool.
pub(crate) fn memory_kinds() -> Vec<MemoryOptions> {
    let on = |seed| MemoryOptions::default().device(Some(DeviceChoice::Fake(seed)));
    let mut kinds = vec![MemoryOptions::default()];
    kinds.extend(cfg!(feature = "gpu").then(|| [on(3), on(11).pool(true)]).into_iter().flatten());
    kinds
}

/// Returns the kind of memory of a child.
fn memory_of_child() -> MemoryOptions {
    let seed = std::env::var(ON_DEVICE).ok().and_then(|seed| seed.parse().ok());
    MemoryOptions::default().device(seed.map(DeviceChoice::Fake))
}

/// The parent's seat, and those that a child may get.
pub(crate) const PARENT_NODE: NodeId = NodeId(0);
pub(crate) const SAME_TENANT: NodeId = NodeId(1);
pub(crate) const OTHER_TENANT: NodeId = NodeId(2);
pub(crate) const OTHER_SERVER: NodeId = NodeId(3);
pub(crate) const SAME_TENANT_SECOND: NodeId = NodeId(4);

/// Returns a rack of five seats in which only the parent holds a seat.
pub(crate) fn seats(parent: u32) -> Seats {
    let seat = |node, tenant, server: &str| Seat {
        node,
        tenant: Tenant(tenant),
        server: server.to_owned(),
        process: (node == PARENT_NODE).then_some(parent),
    };
    [
        seat(PARENT_NODE, 1, "here"),
        seat(SAME_TENANT, 1, "here"),
        seat(OTHER_TENANT, 2, "here"),
        seat(OTHER_SERVER, 1, "there"),
        seat(SAME_TENANT_SECOND, 1, "here"),
    ]
    .into_iter()
    .collect()
}

pub(crate) fn config(access: Access) -> RegionConfig {
    RegionConfig { region: REGION, length: LENGTH, key: KEY, access, tenant: Tenant(1) }
}

/// A directory that is removed with this value.
pub(crate) struct RunDirectory(PathBuf);

impl RunDirectory {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("rackloom-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for RunDirectory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A member that exports.
pub(crate) struct Owner {
    pub(crate) exporter: Exporter,
    pub(crate) memory: HostMemory,
    pub(crate) events: Vec<ExportEvent>,
    begun: Instant,
}

impl Owner {
    pub(crate) fn new(node: NodeId, directory: &Path, seats: Seats) -> Self {
        Self::at(memory_of_child(), node, directory, seats)
    }

    pub(crate) fn at(kind: MemoryOptions, node: NodeId, directory: &Path, seats: Seats) -> Self {
        let mut memory = HostMemory::default();
        memory.allocate_with(REGION, LENGTH, kind).unwrap();
        let exporter = Exporter::listen(node, directory, seats, None).unwrap();
        Self { exporter, memory, events: Vec::new(), begun: Instant::now() }
    }

    pub(crate) fn exporting(node: NodeId, directory: &Path, seats: Seats) -> Self {
        let mut owner = Self::new(node, directory, seats);
        owner.exporter.export(&mut owner.memory, config(Access::ALL)).unwrap();
        owner
    }

    pub(crate) fn serve(&mut self) {
        self.serve_at(self.begun.elapsed().as_nanos() as u64);
    }

    pub(crate) fn serve_at(&mut self, now_ns: u64) {
        let now = rackloom_protocol::Instant(now_ns);
        let events = &mut self.events;
        self.exporter.serve(now, &mut |event| events.push(event));
    }

    /// Sleeps until a peer sends a request or leaves, at most 1 ms, then serves.
    pub(crate) fn serve_a_while(&mut self) {
        let mut sources = [PollFd::from_borrowed_fd(self.exporter.descriptor(), PollFlags::IN)];
        let _ = poll(&mut sources, Some(&Timespec { tv_sec: 0, tv_nsec: 1_000_000 }));
        self.serve();
    }

    pub(crate) fn serve_until(&mut self, mut done: impl FnMut(&mut Self) -> bool) {
        let deadline = Instant::now() + TIMEOUT;
        while !done(self) {
            assert!(Instant::now() < deadline, "nothing more happened after {:?}", self.events);
            self.serve_a_while();
        }
    }

    pub(crate) fn bytes(&mut self) -> Vec<u8> {
        let mut bytes = vec![0; LENGTH as usize];
        self.memory.read(REGION, 0, &mut bytes).unwrap();
        bytes
    }

    pub(crate) fn word(&mut self, offset: u64) -> u64 {
        let mut bytes = [0; 8];
        self.memory.read(REGION, offset, &mut bytes).unwrap();
        u64::from_le_bytes(bytes)
    }
}

/// The other process, as used by the parent.
pub(crate) struct Other {
    pub(crate) child: Child,
    lines: Receiver<String>,
    input: Option<ChildStdin>,
}

impl Other {
    pub(crate) fn command(part: &str, directory: &RunDirectory) -> Command {
        let mut command = Command::new("/proc/self/exe");
        command.args(["--exact", "play_a_part", "--nocapture"]).env(PART, part);
        command.env(DIRECTORY, directory.path()).env(PARENT, std::process::id().to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command
    }

    pub(crate) fn start(part: &str, directory: &RunDirectory) -> Self {
        Self::spawn(Self::command(part, directory))
    }

    pub(crate) fn spawn(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                // The first line may follow output of the test harness.
                if let Some((_, line)) = line.split_once("> ") {
                    let _ = sender.send(line.to_owned());
                }
            }
        });
        let input = child.stdin.take();
        Self { child, lines, input }
    }

    /// Returns the next line of the other process, and serves `owner` meanwhile.
    pub(crate) fn next_line(&mut self, owner: &mut Owner) -> String {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            match self.lines.try_recv() {
                Ok(line) => return line,
                Err(TryRecvError::Disconnected) => panic!("the other process ended early"),
                Err(TryRecvError::Empty) => assert!(Instant::now() < deadline, "no line arrived"),
            }
            owner.serve_a_while();
        }
    }

    pub(crate) fn send_line(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let process = rustix::process::Pid::from_raw(self.process() as i32).unwrap();
        rustix::process::kill_process(process, signal).unwrap();
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits until the other process ends by itself and without an error.
    pub(crate) fn finish(mut self, owner: &mut Owner) {
        drop(self.input.take());
        let deadline = Instant::now() + TIMEOUT;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return assert!(status.success(), "the other process failed");
            }
            assert!(Instant::now() < deadline, "the other process does not end");
            owner.serve_a_while();
        }
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts this process as owner, and another one in the friend's seat.
pub(crate) fn with_same_tenant(part: &str, directory: &RunDirectory) -> (Owner, Other) {
    let mut owner = Owner::exporting(PARENT_NODE, directory.path(), seats(std::process::id()));
    let other = Other::start(part, directory);
    assert!(owner.exporter.seats_mut().occupy(SAME_TENANT, other.process()));
    (owner, other)
}

/// Imports a region of this process into this process. In the owner's table the process is the friend, in the importer's table it is the owner.
pub(crate) fn imported_here(owner: &mut Owner, directory: &RunDirectory) -> ImportedRegion {
    imported_by(&HostMemory::default(), owner, directory).unwrap()
}

/// Imports a region of this process by the device of a memory, if the memory has one.
pub(crate) fn imported_by(
    memory: &HostMemory,
    owner: &mut Owner,
    directory: &RunDirectory,
) -> Result<ImportedRegion, ImportError> {
    owner.exporter.seats_mut().occupy(SAME_TENANT, std::process::id());
    let importer =
        Importer::new(SAME_TENANT, directory.path(), seats(std::process::id())).with_device_of(memory);
    importer.import(PARENT_NODE, REGION, KEY)?.wait(TIMEOUT, || owner.serve())
}

/// Sends a line from a child to its parent.
pub(crate) fn send_line(line: &str) {
    println!("> {line}");
}

/// Returns the next line that a child receives from its parent. Empty after the last line.
pub(crate) fn next_line() -> String {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    line.trim().to_owned()
}

pub(crate) fn child_directory() -> PathBuf {
    std::env::var_os(DIRECTORY).unwrap().into()
}

pub(crate) fn child_seats() -> Seats {
    seats(std::env::var(PARENT).unwrap().parse().unwrap())
}

/// Imports a region of the parent into a child.
pub(crate) fn import(node: NodeId, region: RegionId, key: Key) -> Result<ImportedRegion, ImportError> {
    let importer = Importer::new(node, &child_directory(), child_seats());
    importer.import(PARENT_NODE, region, key)?.wait(TIMEOUT, || ())
}

/// Returns the number of open descriptors, and of mappings of shared files, of this process.
pub(crate) fn held() -> (usize, usize) {
    let descriptors = read_dir("/proc/self/fd").unwrap().count();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    (descriptors, maps.lines().filter(|line| line.contains("memfd:rackloom")).count())
}
