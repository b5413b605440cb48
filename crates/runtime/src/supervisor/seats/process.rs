//! Process of one seat, and its control socket.
//!
//! A child cannot outlive the supervisor: the kernel kills it when the parent has ended, and it ends when its
//! socket closes. It has a process group of its own, so Ctrl-C reaches only the supervisor, which then takes
//! the rack down in order.
//!
//! A process that takes a vacant seat is no child of the supervisor. Its end is the end of its socket, and
//! the supervisor can only close that socket.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::os::unix::net::UnixStream as StdStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rackloom_control::order::{Order, Start};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedReadHalf;
use tokio::process::{Child, Command};
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::page::SeatPage;
use super::service::SeatService;
use super::socket::{NOTICE_BYTES_MAX, OrderWithWires, SeatMessage, parse_notice, write_orders};
use crate::channel::bounded_lines::BoundedLines;
use crate::machine::child::die_with_parent;
use crate::supervisor::wires::contract::Environment;

/// Environment variable with the log filter of seats.
pub const LOG_VARIABLE: &str = "RACKLOOM_LOG";

/// Supervisor's handle of one seat.
pub(crate) struct Process {
    pub(crate) pid: u32,
    /// True if the supervisor has started it.
    pub(crate) is_ours: bool,
    orders: Option<UnboundedSender<OrderWithWires>>,
    kill: Arc<Notify>,
    /// Kernel's handle of the process. A signal through it never reaches another process of this number.
    handle: Option<Arc<OwnedFd>>,
    /// Status page of a seat that the supervisor has started.
    pub(crate) page: Option<SeatPage>,
    /// Descriptor of the page in the process of the seat.
    pub(crate) page_descriptor: Option<RawFd>,
}

impl Process {
    /// Starts a seat. Its notices and its end are sent to `messages` with the number of the member. `page`: its status page, with the file.
    pub(crate) fn start(
        member: usize,
        program: std::process::Command,
        environment: &Environment,
        page: Option<(SeatPage, OwnedFd)>,
        log: Option<File>,
        log_level: Option<&str>,
        messages: UnboundedSender<(usize, SeatMessage)>,
    ) -> io::Result<Self> {
        let (page, page_file) = page.unzip();
        let page_descriptor = page_file.as_ref().map(|file| file.as_raw_fd());
        let mut environment = environment.clone();
        environment.inherited.extend(page_descriptor);
        let (ours, theirs) = StdStream::pair()?;
        ours.set_nonblocking(true)?;
        let child = spawn(program, theirs.into(), environment, log, log_level)?;
        drop(page_file);
        let pid = child.id().ok_or_else(|| io::Error::other("the process ended at once"))?;
        let (reader, writer) = UnixStream::from_std(ours)?.into_split();
        let (orders, queued) = unbounded_channel();
        let kill = Arc::new(Notify::new());
        tokio::spawn(write_orders(writer, queued));
        tokio::spawn(forward_notices(member, child, reader, Arc::clone(&kill), messages));
        let handle = handle_of(pid);
        Ok(Self { pid, is_ours: true, orders: Some(orders), kill, handle, page, page_descriptor })
    }

    /// Returns the handle of a seat that another process takes. [`SeatService::serve`] serves its socket.
    pub(crate) fn elsewhere(
        member: usize,
        pid: u32,
        start: Start,
        wires: Vec<OwnedFd>,
        messages: UnboundedSender<(usize, SeatMessage)>,
    ) -> (Self, SeatService) {
        let (orders, queued) = unbounded_channel();
        let kill = Arc::new(Notify::new());
        let service = SeatService { member, start, wires, orders: queued, kill: Arc::clone(&kill), messages };
        let handle = handle_of(pid);
        let orders = Some(orders);
        (Self { pid, is_ours: false, orders, kill, handle, page: None, page_descriptor: None }, service)
    }

    /// Queues an order, without waiting.
    pub(crate) fn send(&self, order: Order) {
        self.send_with(order, Vec::new());
    }

    /// Queues an order with descriptors. Only the seat owns them afterwards.
    pub(crate) fn send_with(&self, order: Order, wires: Vec<OwnedFd>) {
        if let Some(orders) = &self.orders {
            // Fails only if the seat has ended, which is reported separately.
            let _ = orders.send((order, wires));
        }
    }

    /// Resumes the process after this time, if it is stopped then.
    pub(crate) fn resume_after(&self, after: Duration) {
        let Some(handle) = self.handle.clone() else { return };
        tokio::spawn(async move {
            tokio::time::sleep(after).await;
            // Fails only if the process has ended, which is reported separately.
            let _ = rustix::process::pidfd_send_signal(&*handle, rustix::process::Signal::CONT);
        });
    }

    /// Closes the socket, which ends the seat.
    pub(crate) fn close(&mut self) {
        self.orders = None;
    }

    /// Kills the process.
    pub(crate) fn kill(&self) {
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
    environment: Environment,
    log: Option<File>,
    log_level: Option<&str>,
) -> io::Result<Child> {
    let Environment { inherited, own_network } = environment;
    let mut command = Command::from(program);
    command.stdin(socket).stdout(Stdio::null()).process_group(0).kill_on_drop(true);
    if let Some(log) = log {
        command.stderr(log);
    }
    if let Some(level) = log_level {
        command.env(LOG_VARIABLE, level);
    }
    die_with_parent(command.as_std_mut());
    // SAFETY: needed to arrange what only the child can arrange for itself. Between fork and exec the closure makes
    // system calls only: it allocates nothing, takes no lock, and touches nothing but the copied numbers.
    unsafe {
        command.pre_exec(move || {
            if own_network {
                rackloom::namespaces::enter_new_network_namespace()?;
            }
            inherited.iter().try_for_each(|fd| rackloom::wires::keep_across_exec(*fd))
        });
    }
    command.spawn()
}

/// Forwards notices until the end of the socket, then the end of the process.
async fn forward_notices(
    member: usize,
    mut child: Child,
    socket: OwnedReadHalf,
    kill: Arc<Notify>,
    messages: UnboundedSender<(usize, SeatMessage)>,
) {
    let mut lines = BoundedLines::new(socket, NOTICE_BYTES_MAX);
    loop {
        tokio::select! {
            line = lines.next() => {
                let Ok(Some(line)) = line else { break };
                let _ = messages.send((member, SeatMessage::Notice(parse_notice(&line))));
            }
            () = kill.notified() => { let _ = child.start_kill(); }
        }
    }
    let how = loop {
        tokio::select! {
            status = child.wait() => break status.map_or_else(|error| error.to_string(), describe_end),
            () = kill.notified() => { let _ = child.start_kill(); }
        }
    };
    let _ = messages.send((member, SeatMessage::Ended(how)));
}

fn describe_end(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("killed by signal {signal}"),
        (None, Some(code)) => format!("exited with code {code}"),
        (None, None) => "ended".to_owned(),
    }
}
