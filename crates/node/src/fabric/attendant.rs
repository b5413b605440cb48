//! What a node in a taken seat owes the rack that it sits in: answers to its orders, and an end when the rack ends.
//!
//! A thread of its own, because nothing that is said here may hold up a frame. It sleeps on the control socket; the node does
//! not need it to run, so a rack whose supervisor is stopped goes on. `docs/control-socket.md` says what the lines mean.

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

use super::core::{Core, Member};
use super::engine::Engine;
use super::faults::SeatFaults;
use super::notices::{self, NoticeSender};
use super::report;
use super::wake_thread::WakeThread;
use crate::seat::report::port_reports;
use crate::seat::wires::Cabling;
use crate::seat::{FaultPlayer, descriptors};

/// How often it looks whether all links are up, until they are.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// A longer order is a mistake.
const ORDER_BYTES_MAX: usize = 1 << 20;

/// The thread, and what ends it.
#[derive(Debug)]
pub(super) struct Attendant {
    stream: UnixStream,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Attendant {
    /// Close the connection and wait for the thread.
    pub(super) fn end(&self) {
        // If it is closed already, so much the better.
        let _ = self.stream.shutdown(Shutdown::Both);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let thread = thread.filter(|thread| thread.thread().id() != std::thread::current().id());
        thread.map(JoinHandle::join);
    }
}

impl Drop for Attendant {
    fn drop(&mut self) {
        // The thread ends with the connection; nobody waits for it here.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// What attending takes.
pub(super) struct Attendance {
    /// The seat's name.
    pub(super) name: String,
    pub(super) cabling: Cabling,
    /// Who hears wires that do not ring.
    pub(super) wake_thread: Option<WakeThread>,
    pub(super) plan: Plan,
    pub(super) config: MemberConfig,
    /// By port: who is at the other end.
    pub(super) neighbours: Vec<NodeId>,
    /// What the rack file gives the seat.
    pub(super) memory_bytes: u64,
    /// By port: whether somebody sat at the other end when the seat was taken.
    pub(super) expected: Vec<bool>,
    /// What the rack has said already, and what came along.
    pub(super) rest: Vec<u8>,
    pub(super) later: Vec<OwnedFd>,
}

impl Attendance {
    /// Begin, on the connection on which the seat was taken.
    pub(super) fn begin(self, stream: UnixStream, engine: &Arc<Engine>) -> io::Result<Attendant> {
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
        let talk = Talk {
            name,
            cabling,
            wake_thread,
            plan,
            config,
            neighbours,
            memory_bytes,
            expected,
            stream,
            notice_sender,
            engine: Arc::clone(engine),
            heard: rest,
            came: later.into(),
        };
        let thread = Builder::new().name("rackloom-seat".to_owned()).spawn(move || talk.live())?;
        Ok(Attendant { stream: kept, thread: Mutex::new(Some(thread)) })
    }
}

struct Talk {
    name: String,
    cabling: Cabling,
    wake_thread: Option<WakeThread>,
    plan: Plan,
    config: MemberConfig,
    neighbours: Vec<NodeId>,
    memory_bytes: u64,
    expected: Vec<bool>,
    stream: UnixStream,
    notice_sender: Arc<NoticeSender>,
    engine: Arc<Engine>,
    heard: Vec<u8>,
    came: VecDeque<OwnedFd>,
}

impl Talk {
    /// Until the connection ends, and the node with it.
    fn live(mut self) {
        // Whatever went wrong, the seat is not the node's any more.
        let _ = self.talk();
        self.engine.leave();
    }

    fn talk(&mut self) -> io::Result<()> {
        for notice in [Notice::Ready, Notice::Mapped, Notice::Finished] {
            self.say(&notice)?;
        }
        let mut told_up = false;
        loop {
            while let Some(line) = self.next_line() {
                self.obey(&line)?;
            }
            if !told_up && self.are_links_up() {
                told_up = true;
                self.say(&Notice::LinksUp)?;
                self.stream.set_read_timeout(None)?;
            }
            if !self.listen()? {
                return Ok(());
            }
        }
    }

    /// Returns whether the connection goes on.
    fn listen(&mut self) -> io::Result<bool> {
        let (mut chunk, mut came) = ([0; 4096], Vec::new());
        let read = descriptors::receive(&self.stream, &mut chunk, &mut came);
        self.came.extend(came);
        match read {
            Ok(count) => self.heard.extend_from_slice(&chunk[..count]),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                return Ok(true);
            }
            Err(error) => return Err(error),
        }
        Ok(!matches!(read, Ok(0)) && self.heard.len() <= ORDER_BYTES_MAX)
    }

    fn next_line(&mut self) -> Option<Vec<u8>> {
        let end = self.heard.iter().position(|byte| *byte == b'\n')?;
        Some(self.heard.drain(..=end).collect())
    }

    fn obey(&mut self, line: &[u8]) -> io::Result<()> {
        match serde_json::from_slice(line)? {
            Order::SayWaiting => {
                let lines = self.engine.hold().core().waiting_for();
                self.say(&Notice::Waiting { lines })
            }
            Order::SayStatus => {
                let status = self.status();
                self.say(&Notice::Status(status))
            }
            Order::Plug(cable) => {
                let wires = cable.descriptors();
                if wires > self.came.len() {
                    return Err(io::ErrorKind::InvalidData.into());
                }
                let wires: Vec<_> = self.came.drain(..wires).collect();
                if let Some(wake_thread) = &self.wake_thread {
                    // A wire that cannot be listened to is looked at now and then.
                    let _ = wires.iter().try_for_each(|wire| wake_thread.listen_to(wire));
                }
                let faults = self
                    .engine
                    .hold()
                    .core()
                    .faults
                    .as_ref()
                    .and_then(|faults| faults.conditions(cable.port()).cloned());
                // Without a cable the port stays dark, and the node goes on.
                let _ = self.cabling.exchange_under(&cable, wires, faults.as_ref());
                Ok(())
            }
            Order::Inject { first, text } => self.inject(first, &text),
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
                self.say(&Notice::Report(Box::new(report)))
            }
            // The node has no job, and no other node maps its memory.
            Order::Start(_) | Order::Follow(_) | Order::Heal { .. } | Order::Leave | Order::Unknown => Ok(()),
        }
    }

    /// Another process is at the other end of the links to this member.
    fn watch(&self, newcomer: NodeId, process: u32) {
        let mut held = self.engine.hold();
        let Ok(member) = held.core().member() else { return };
        let ports = self.neighbours.iter().enumerate().filter(|(_, neighbour)| **neighbour == newcomer);
        ports.for_each(|(port, _)| member.watch_process(PortId(port as u16), Some(process)));
    }

    fn say(&mut self, notice: &Notice) -> io::Result<()> {
        self.notice_sender.say(notice)
    }

    /// Play these faults from now on.
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
            Err(why) => {
                let why = notices::unplayed(&self.plan, self.config.node.index(), now.0, &why);
                drop(held);
                self.say(&why)
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
            ports: self.ports(),
            events: EventLog::default(),
            waiting: Vec::new(),
            timer_late_max_ns: 0,
            shortage: HostShortage::default(),
        }
    }

    /// Returns the answer to a status order.
    fn status(&self) -> SeatStatus {
        let lit = self.lit();
        let down = self.config.ports.iter().zip(&lit).filter(|(_, lit)| !**lit);
        let mut status = SeatStatus {
            links_up: lit.iter().filter(|lit| **lit).count() as u16,
            links_down: down.map(|(port, _)| port.edge).collect(),
            memory: self.memory().map(Box::new),
            finished: true,
            ..SeatStatus::default()
        };
        let mut held = self.engine.hold();
        if let Ok(member) = held.core().member() {
            status.at_ns = member.now().0;
            status.ports = self.ports_of(member);
            status.paths = self.paths_of(member);
        }
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

    /// By port: whether its link carries data now.
    fn lit(&self) -> Vec<bool> {
        let mut held = self.engine.hold();
        let Ok(member) = held.core().member() else { return Vec::new() };
        let endpoint = member.member();
        let ports = (0..endpoint.port_count()).map(|port| PortId(port as u16));
        ports.map(|port| endpoint.link_state(port).carries_data()).collect()
    }

    fn are_links_up(&self) -> bool {
        let lit = self.lit();
        lit.len() == self.expected.len()
            && self.expected.iter().zip(lit).all(|(expected, lit)| lit || !expected)
    }
}
