//! One seat's process and the socket to it.
//!
//! The child cannot outlive the supervisor: the kernel kills it when the parent is gone, and, independently, it ends when
//! its socket does. It has a process group of its own, so that Ctrl-C reaches only the supervisor, which then takes
//! the rack down in order.
//!
//! Who takes a vacant seat runs in a process that is nobody's child here: its end is the end of its socket, and all that
//! the supervisor can do to it is to cut that.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::{Child, Command};
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::attendance::{Attendance, hand_over};
use super::wiring::Place;
use crate::channel::bounded_lines::BoundedLines;
use rackloom_control::notice::Notice;
use rackloom_control::order::{Order, Start};

/// Names what is logged.
pub const LOG_VARIABLE: &str = "RACKLOOM_LOG";

/// A longer line is no report.
pub(super) const NOTICE_BYTES_MAX: usize = 64 << 20;

/// What a seat's task tells the supervisor.
#[derive(Debug)]
pub(super) enum Heard {
    /// A line.
    Notice(Notice),
    /// The process has ended.
    Ended(String),
    /// It is time for somebody to follow it.
    Due,
}

/// An order and the descriptors that go along with it.
pub(super) type Said = (Order, Vec<OwnedFd>);

/// The supervisor's handle on one seat.
pub(super) struct Process {
    pub(super) pid: u32,
    /// Whether the supervisor has started it.
    pub(super) is_ours: bool,
    orders: Option<UnboundedSender<Said>>,
    kill: Arc<Notify>,
    /// Names the process itself, so that no other one of the same number is ever signalled.
    handle: Option<Arc<OwnedFd>>,
}

impl Process {
    /// Start a seat. What it says and how it ends arrives at `heard` under its number.
    pub(super) fn start(
        member: usize,
        program: std::process::Command,
        place: &Place,
        log: Option<File>,
        log_level: Option<&str>,
        heard: UnboundedSender<(usize, Heard)>,
    ) -> io::Result<Self> {
        let (ours, theirs) = StdStream::pair()?;
        ours.set_nonblocking(true)?;
        let child = spawn(program, theirs.into(), place, log, log_level)?;
        let pid = child.id().ok_or_else(|| io::Error::other("the process ended at once"))?;
        let (reader, writer) = UnixStream::from_std(ours)?.into_split();
        let (orders, given) = unbounded_channel();
        let kill = Arc::new(Notify::new());
        tokio::spawn(write_orders(writer, given));
        tokio::spawn(attend(member, child, reader, Arc::clone(&kill), heard));
        Ok(Self { pid, is_ours: true, orders: Some(orders), kill, handle: handle_of(pid) })
    }

    /// A seat that a process from elsewhere takes. Its socket is served by whoever drives the [`Attendance`].
    pub(super) fn elsewhere(
        member: usize,
        pid: u32,
        start: Start,
        wires: Vec<OwnedFd>,
        heard: UnboundedSender<(usize, Heard)>,
    ) -> (Self, Attendance) {
        let (orders, given) = unbounded_channel();
        let kill = Arc::new(Notify::new());
        let attendance = Attendance { member, start, wires, given, kill: Arc::clone(&kill), heard };
        (Self { pid, is_ours: false, orders: Some(orders), kill, handle: handle_of(pid) }, attendance)
    }

    /// Say something, without waiting for it to be heard.
    pub(super) fn say(&self, order: Order) {
        self.say_with(order, Vec::new());
    }

    /// The same, with descriptors, which are the seat's alone afterwards.
    pub(super) fn say_with(&self, order: Order, wires: Vec<OwnedFd>) {
        if let Some(orders) = &self.orders {
            // Fails only if the seat is gone, which is heard elsewhere.
            let _ = orders.send((order, wires));
        }
    }

    /// Set it going again after this time, if it stands still then.
    pub(super) fn resume_after(&self, after: Duration) {
        let Some(handle) = self.handle.clone() else { return };
        tokio::spawn(async move {
            tokio::time::sleep(after).await;
            // Fails only if the process is gone, which is heard elsewhere.
            let _ = rustix::process::pidfd_send_signal(&*handle, rustix::process::Signal::CONT);
        });
    }

    /// End the socket, and with it the seat.
    pub(super) fn close(&mut self) {
        self.orders = None;
    }

    /// End the process.
    pub(super) fn kill(&self) {
        self.kill.notify_one();
    }
}

fn handle_of(pid: u32) -> Option<Arc<OwnedFd>> {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).ok()?)?;
    rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok().map(Arc::new)
}

/// Starts the program of a seat, with the socket as its standard input.
fn spawn(
    program: std::process::Command,
    socket: OwnedFd,
    place: &Place,
    log: Option<File>,
    log_level: Option<&str>,
) -> io::Result<Child> {
    use rustix::process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal};
    let parent: Pid = getpid();
    let Place { inherited, own_network } = place.clone();
    let mut command = Command::from(program);
    command.stdin(socket).stdout(Stdio::null()).process_group(0).kill_on_drop(true);
    if let Some(log) = log {
        command.stderr(log);
    }
    if let Some(level) = log_level {
        command.env(LOG_VARIABLE, level);
    }
    // SAFETY: needed to arrange what only the child can arrange for itself. Between fork and exec the closure makes
    // system calls only: it allocates nothing, takes no lock, and touches nothing but the copied numbers.
    unsafe {
        command.pre_exec(move || {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            // The parent may have died before the line above; then no signal would ever come.
            if getppid() != Some(parent) {
                return Err(rustix::io::Errno::SRCH.into());
            }
            if own_network {
                rackloom::namespaces::enter_new_network_namespace()?;
            }
            inherited.iter().try_for_each(|fd| rackloom::wires::keep_across_exec(*fd))
        });
    }
    command.spawn()
}

/// Write orders as fast as the seat reads; at the end of the orders, end the socket.
pub(super) async fn write_orders(mut socket: OwnedWriteHalf, mut orders: UnboundedReceiver<Said>) {
    while let Some((order, wires)) = orders.recv().await {
        let Ok(mut line) = serde_json::to_vec(&order) else { continue };
        line.push(b'\n');
        if hand_over(socket.as_ref(), &line, &wires).await.is_err() {
            return;
        }
    }
    let _ = socket.shutdown().await;
}

/// Pass on what the seat says until its socket ends, then how its process ended.
async fn attend(
    member: usize,
    mut child: Child,
    socket: OwnedReadHalf,
    kill: Arc<Notify>,
    heard: UnboundedSender<(usize, Heard)>,
) {
    let mut lines = BoundedLines::new(socket, NOTICE_BYTES_MAX);
    loop {
        tokio::select! {
            line = lines.next() => {
                let Ok(Some(line)) = line else { break };
                let _ = heard.send((member, Heard::Notice(notice_in(&line))));
            }
            () = kill.notified() => { let _ = child.start_kill(); }
        }
    }
    let how = loop {
        tokio::select! {
            status = child.wait() => break status.map_or_else(|error| error.to_string(), how_it_ended),
            () = kill.notified() => { let _ = child.start_kill(); }
        }
    };
    let _ = heard.send((member, Heard::Ended(how)));
}

pub(super) fn notice_in(line: &[u8]) -> Notice {
    serde_json::from_slice(line)
        .unwrap_or_else(|error| Notice::Failed { what: format!("said something unintelligible: {error}") })
}

fn how_it_ended(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("killed by signal {signal}"),
        (None, Some(code)) => format!("exited with code {code}"),
        (None, None) => "ended".to_owned(),
    }
}
