//! The thread of a node in a taken seat that answers the orders of the rack, and ends the node when the rack ends.
//!
//! It is a thread of its own, so that messages delay no frame. It sleeps on the control socket. The node does not need it to run: a rack whose
//! supervisor is stopped continues. `docs/control-socket.md` documents the messages.

use std::collections::VecDeque;
use std::io;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use rackloom_control::notice::{Notice, SeatStatus};
use rackloom_control::order::Order;
use rackloom_control::report::{EventLog, HostShortage, MemberReport, MemberState, MemoryReport, PortReport};
use rackloom_plan::Plan;
use rackloom_protocol::{Member as _, MemberConfig, NodeId, PortId};

use super::report;
use crate::clock::process_time_ns;
use crate::fabric::engine::core::Core;
use crate::fabric::engine::member::Member;
use crate::fabric::engine::node_engine::Engine;
use crate::fabric::seat::faults::SeatFaults;
use crate::fabric::seat::notices::{self, NoticeSender};
use crate::fabric::seat::wake_thread::WakeThread;
use crate::seat::report::port_reports;
use crate::seat::wires::Cabling;
use crate::seat::{FaultPlayer, descriptors};

/// Interval between checks of the links, until all are up.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// Longest order. A longer one is an error.
const ORDER_BYTES_MAX: usize = 1 << 20;

/// Handle of the thread.
#[derive(Debug)]
pub(super) struct SeatControlThread {
    stream: UnixStream,
    thread: Mutex<Option<JoinHandle<()>>>,
    source: Arc<StatusSource>,
    notice_sender: Arc<NoticeSender>,
}

impl SeatControlThread {
    /// Sends the status of the node, unless it has left. The rack accounts what the node has done until its end.
    pub(super) fn send_last_status(&self) {
        if self.source.has_member() {
            // Fails only if the rack has ended.
            let _ = self.notice_sender.send(&Notice::Status(self.source.status(false)));
        }
    }

    /// Closes the connection and waits for the thread.
    pub(super) fn end(&self) {
        // The connection may be closed already.
        let _ = self.stream.shutdown(Shutdown::Both);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let thread = thread.filter(|thread| thread.thread().id() != std::thread::current().id());
        thread.map(JoinHandle::join);
    }
}

impl Drop for SeatControlThread {
    fn drop(&mut self) {
        // The thread ends with the connection. There is no need to wait for it here.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// Arguments of the thread.
pub(super) struct SeatControl {
    /// The seat's name.
    pub(super) name: String,
    pub(super) cabling: Cabling,
    /// Thread that watches wires without a doorbell.
    pub(super) wake_thread: Option<WakeThread>,
    pub(super) plan: Plan,
    pub(super) config: MemberConfig,
    /// Member at the other end, by port.
    pub(super) neighbours: Vec<NodeId>,
    /// Memory that the node may use, in bytes.
    pub(super) memory_bytes: u64,
    /// `true` for ports whose other end had a process when the seat was taken.
    pub(super) expected: Vec<bool>,
    /// Bytes that arrived after the join answer, and descriptors with them.
    pub(super) rest: Vec<u8>,
    pub(super) later: Vec<OwnedFd>,
}

impl SeatControl {
    /// Starts the thread on the connection over which the seat was taken.
    pub(super) fn begin(self, stream: UnixStream, engine: &Arc<Engine>) -> io::Result<SeatControlThread> {
        stream.set_read_timeout(Some(LOOK_AGAIN))?;
        let kept = stream.try_clone()?;
        let Self {
            name,
            cabling,
            wake_thread,
            plan,
            config,
            neighbours,
            memory_bytes,
            expected,
            rest,
            later,
        } = self;
        let notice_sender = Arc::new(NoticeSender::new(stream.try_clone()?));
        let source =
            Arc::new(StatusSource { engine: Arc::clone(engine), config: config.clone(), memory_bytes });
        let connection = ControlConnection {
            name,
            cabling,
            wake_thread,
            plan,
            config,
            neighbours,
            expected,
            stream,
            notice_sender: Arc::clone(&notice_sender),
            source: Arc::clone(&source),
            engine: Arc::clone(engine),
            received: rest,
            came: later.into(),
        };
        let thread = Builder::new().name("rackloom-seat".to_owned()).spawn(move || connection.run())?;
        Ok(SeatControlThread { stream: kept, thread: Mutex::new(Some(thread)), source, notice_sender })
    }
}

struct ControlConnection {
    name: String,
    cabling: Cabling,
    wake_thread: Option<WakeThread>,
    plan: Plan,
    config: MemberConfig,
    neighbours: Vec<NodeId>,
    expected: Vec<bool>,
    stream: UnixStream,
    notice_sender: Arc<NoticeSender>,
    source: Arc<StatusSource>,
    engine: Arc<Engine>,
    received: Vec<u8>,
    came: VecDeque<OwnedFd>,
}

impl ControlConnection {
    /// Runs until the connection ends, and then ends the node.
    fn run(mut self) {
        // After any error, the node no longer holds the seat.
        let _ = self.exchange_messages();
        self.engine.leave();
    }

    fn exchange_messages(&mut self) -> io::Result<()> {
        for notice in [Notice::Ready, Notice::Mapped, Notice::Finished] {
            self.send(&notice)?;
        }
        let mut has_sent_up = false;
        loop {
            while let Some(line) = self.next_line() {
                self.perform_order(&line)?;
            }
            if !has_sent_up && self.are_links_up() {
                has_sent_up = true;
                self.send(&Notice::LinksUp)?;
                self.stream.set_read_timeout(None)?;
            }
            if !self.listen()? {
                return Ok(());
            }
        }
    }

    /// Handles what has arrived. Returns `false` when the connection has ended.
    fn listen(&mut self) -> io::Result<bool> {
        let (mut chunk, mut came) = ([0; 4096], Vec::new());
        let read = descriptors::receive(&self.stream, &mut chunk, &mut came);
        self.came.extend(came);
        match read {
            Ok(count) => self.received.extend_from_slice(&chunk[..count]),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                return Ok(true);
            }
            Err(error) => return Err(error),
        }
        Ok(!matches!(read, Ok(0)) && self.received.len() <= ORDER_BYTES_MAX)
    }

    fn next_line(&mut self) -> Option<Vec<u8>> {
        let end = self.received.iter().position(|byte| *byte == b'\n')?;
        Some(self.received.drain(..=end).collect())
    }

    fn perform_order(&mut self, line: &[u8]) -> io::Result<()> {
        match serde_json::from_slice(line)? {
            Order::SayWaiting => {
                let lines = self.engine.hold().core().waiting_for();
                self.send(&Notice::Waiting { lines })
            }
            Order::SayStatus { brief } => {
                let status = self.source.status(brief);
                self.send(&Notice::Status(status))
            }
            Order::Plug(cable) => {
                let wires = cable.descriptors();
                if wires > self.came.len() {
                    return Err(io::ErrorKind::InvalidData.into());
                }
                let wires: Vec<_> = self.came.drain(..wires).collect();
                if let Some(wake_thread) = &self.wake_thread {
                    // A wire that cannot be watched is polled every 100 ms.
                    let _ = wires.iter().try_for_each(|wire| wake_thread.listen_to(wire));
                }
                let faults = self
                    .engine
                    .hold()
                    .core()
                    .faults
                    .as_ref()
                    .and_then(|faults| faults.conditions(cable.port()).cloned());
                // Without a cable the port has no carrier, and the node continues.
                if self.cabling.exchange_under(&cable, wires, faults.as_ref()).is_ok()
                    && let Ok(member) = self.engine.hold().core().member()
                {
                    member.handle_new_cable(PortId(cable.port() as u16));
                }
                Ok(())
            }
            Order::Inject { first, text } => self.inject(first, &text),
            Order::EndFaults => {
                let mut held = self.engine.hold();
                if let Core { member: Some(member), faults: Some(faults), .. } = held.core() {
                    faults.end_all(member);
                }
                Ok(())
            }
            Order::SetOff { event } => {
                let mut held = self.engine.hold();
                if let Core { member: Some(member), faults: Some(faults), .. } = held.core() {
                    faults.handle_set_off(member, event);
                }
                Ok(())
            }
            Order::Seated { member, process, .. } => {
                self.watch(NodeId(member), process);
                Ok(())
            }
            Order::Report => {
                let report = self.report();
                self.send(&Notice::Report(Box::new(report)))
            }
            // The node has no job.
            Order::Start(_)
            | Order::Follow(_)
            | Order::Free { .. }
            | Order::Heal { .. }
            | Order::Leave
            | Order::Unknown => Ok(()),
        }
    }

    /// Handles a new process in a seat: at the other end of links to this member, or in this server.
    fn watch(&self, successor: NodeId, process: u32) {
        let mut held = self.engine.hold();
        if let Some(local) = &mut held.core().local {
            local.seated(successor, process);
        }
        let Ok(member) = held.core().member() else { return };
        let ports = self.neighbours.iter().enumerate().filter(|(_, neighbour)| **neighbour == successor);
        ports.for_each(|(port, _)| member.watch_process(PortId(port as u16), Some(process)));
    }

    fn send(&mut self, notice: &Notice) -> io::Result<()> {
        self.notice_sender.send(notice)
    }

    /// Adds these faults from now on.
    fn inject(&mut self, first: usize, text: &str) -> io::Result<()> {
        let mut held = self.engine.hold();
        let Core { member: Some(member), faults, .. } = held.core() else { return Ok(()) };
        let faults = faults.get_or_insert_with(|| {
            let player = FaultPlayer::new(None, &self.plan, &self.config, &[]);
            Box::new(SeatFaults::new(player, Arc::clone(&self.notice_sender)))
        });
        let now = member.now();
        match faults.inject(member, first, text) {
            Ok(()) => Ok(()),
            Err(reason) => {
                let reason = notices::unplayed(&self.plan, self.config.node.index(), now.0, &reason);
                drop(held);
                self.send(&reason)
            }
        }
    }

    /// Returns the report of a member without a job.
    fn report(&self) -> MemberReport {
        MemberReport {
            name: self.name.clone(),
            pid: Some(std::process::id()),
            state: MemberState::Finished,
            job: None,
            ports: self.source.ports(),
            events: EventLog::default(),
            waiting: Vec::new(),
            timer_late_max_ns: 0,
            shortage: HostShortage::default(),
            series: None,
        }
    }

    fn are_links_up(&self) -> bool {
        let lit = self.source.lit();
        lit.len() == self.expected.len()
            && self.expected.iter().zip(lit).all(|(expected, lit)| lit || !expected)
    }
}

/// Source of the status of a node.
#[derive(Debug)]
struct StatusSource {
    engine: Arc<Engine>,
    config: MemberConfig,
    /// Memory that the node may use, in bytes.
    memory_bytes: u64,
}

impl StatusSource {
    /// Returns true until the node has left.
    fn has_member(&self) -> bool {
        self.engine.hold().core().member().is_ok()
    }

    /// Returns the answer to a status order.
    fn status(&self, brief: bool) -> SeatStatus {
        let lit = self.lit();
        let down = self.config.ports.iter().zip(&lit).filter(|(_, lit)| !**lit);
        let mut status = SeatStatus {
            links_up: lit.iter().filter(|lit| **lit).count() as u16,
            links_down: down.map(|(port, _)| port.edge).collect(),
            memory: self.memory().map(Box::new),
            finished: true,
            processor_ns: process_time_ns(),
            incarnation: self.config.incarnation.0,
            ..SeatStatus::default()
        };
        let mut held = self.engine.hold();
        if let Ok(member) = held.core().member() {
            status.at_ns = member.now().0;
            status.ports = self.ports_of(member);
            status.paths = if brief { Vec::new() } else { self.paths_of(member) };
        }
        status.direct_bytes = held.core().counters().direct_bytes;
        status
    }

    /// Returns the ports at which live shortest paths begin, by destination, in the plan's order of members.
    fn paths_of(&self, member: &Member) -> Vec<Vec<u16>> {
        let endpoint = member.member();
        let ports = |node| endpoint.paths(NodeId(node)).map(|port| port.0).collect();
        (0..self.config.graph.members.len() as u16).map(ports).collect()
    }

    /// Returns the counters of all ports.
    fn ports_of(&self, member: &Member) -> Vec<PortReport> {
        port_reports(member.member(), member.ports(), self.config.ports.iter().map(|port| port.edge))
    }

    /// Returns the counters of all ports; none once the node has left.
    fn ports(&self) -> Vec<PortReport> {
        let mut held = self.engine.hold();
        held.core().member().map_or_else(|_| Vec::new(), |member| self.ports_of(member))
    }

    /// Returns the memory of the regions, or `None` once the node has left.
    fn memory(&self) -> Option<MemoryReport> {
        let mut held = self.engine.hold();
        let Core { member: Some(member), table, .. } = held.core() else { return None };
        Some(report::memory(member.memory_mut().account(&table.uses), self.memory_bytes))
    }

    /// Returns `true` for each port whose link carries data now.
    fn lit(&self) -> Vec<bool> {
        let mut held = self.engine.hold();
        let Ok(member) = held.core().member() else { return Vec::new() };
        let endpoint = member.member();
        let ports = (0..endpoint.port_count()).map(|port| PortId(port as u16));
        ports.map(|port| endpoint.link_state(port).carries_data()).collect()
    }
}
