//! One seat's process and the socket to it.
//!
//! The child cannot outlive the supervisor: the kernel kills it when the parent is gone, and, independently, it ends when
//! its socket does. It has a process group of its own, so that Ctrl-C reaches only the supervisor, which then takes
//! the rack down in order.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::{Child, Command};
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::wiring::Plugs;
use crate::control::{Notice, Order};

/// What a seat's task tells the supervisor.
#[derive(Debug)]
pub(super) enum Heard {
    /// A line.
    Notice(Notice),
    /// The process has ended.
    Ended(String),
}

/// The supervisor's handle on one seat.
pub(super) struct Process {
    pub(super) pid: u32,
    orders: Option<UnboundedSender<Order>>,
    kill: Arc<Notify>,
}

impl Process {
    /// Start a seat. What it says and how it ends arrives at `heard` under its number.
    pub(super) fn start(
        member: usize,
        plugs: &Plugs,
        heard: UnboundedSender<(usize, Heard)>,
    ) -> io::Result<Self> {
        let (ours, theirs) = StdStream::pair()?;
        ours.set_nonblocking(true)?;
        let child = spawn(theirs.into(), plugs)?;
        let pid = child.id().ok_or_else(|| io::Error::other("the process ended at once"))?;
        let (reader, writer) = UnixStream::from_std(ours)?.into_split();
        let (orders, given) = unbounded_channel();
        let kill = Arc::new(Notify::new());
        tokio::spawn(write_orders(writer, given));
        tokio::spawn(attend(member, child, reader, Arc::clone(&kill), heard));
        Ok(Self { pid, orders: Some(orders), kill })
    }

    /// Say something, without waiting for it to be heard.
    pub(super) fn say(&self, order: Order) {
        if let Some(orders) = &self.orders {
            // Fails only if the seat is gone, which is heard elsewhere.
            let _ = orders.send(order);
        }
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

/// The same program as `rackloom seat`, with the socket as its standard input.
fn spawn(socket: OwnedFd, plugs: &Plugs) -> io::Result<Child> {
    use rustix::process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal};
    let parent: Pid = getpid();
    let (inherited, own_network) = (plugs.inherited.clone(), plugs.own_network);
    let mut command = Command::new("/proc/self/exe");
    command.arg("seat").stdin(socket).stdout(Stdio::null()).process_group(0).kill_on_drop(true);
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
async fn write_orders(mut socket: OwnedWriteHalf, mut orders: UnboundedReceiver<Order>) {
    while let Some(order) = orders.recv().await {
        let Ok(mut line) = serde_json::to_vec(&order) else { continue };
        line.push(b'\n');
        if socket.write_all(&line).await.is_err() {
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
    let mut lines = BufReader::new(socket).lines();
    loop {
        tokio::select! {
            line = lines.next_line() => {
                let Ok(Some(line)) = line else { break };
                let notice = serde_json::from_str(&line)
                    .unwrap_or_else(|error| Notice::Failed { what: format!("said something unintelligible: {error}") });
                let _ = heard.send((member, Heard::Notice(notice)));
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

fn how_it_ended(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("killed by signal {signal}"),
        (None, Some(code)) => format!("exited with code {code}"),
        (None, None) => "ended".to_owned(),
    }
}
