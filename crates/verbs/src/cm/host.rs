//! Surroundings of connection management: other processes, and queue pairs of this one.

use rustix::io::Errno;

use super::link::{Link, attributes};
use crate::engine::{Engine, PeerEvent, Process, State};
use crate::layout::attributes::QpAttr;
use crate::layout::constants::QP_STATE;

/// Other processes, and queue pairs of this process.
pub trait Host {
    /// Returns the node of this process.
    fn own_node(&self) -> u32;

    /// Returns the number of this process.
    fn own_process(&self) -> Process;

    /// Returns the number of ports of this node.
    fn port_count(&self) -> u8;

    /// Returns the processes that a node may have, present or not.
    fn processes(&self, node: u32) -> Vec<Process>;

    /// Returns the node of a process.
    fn node_of_process(&self, process: Process) -> Option<u32>;

    /// Returns true if notes reach a process now.
    fn reaches_process(&self, process: Process) -> bool;

    /// Returns true if a path leads to a node now.
    fn reaches_node(&self, node: u32) -> bool;

    /// Sends a note to another process.
    fn send_note(&mut self, to: Process, bytes: Vec<u8>);

    /// Takes notes and losses of other processes.
    fn take_peer_events(&mut self) -> Vec<PeerEvent>;

    /// Makes a queue pair in the state `Init` ready to receive and to send.
    ///
    /// # Errors
    /// Those of a modification of the queue pair.
    fn connect(&mut self, queue_pair: u32, link: &Link, now_ns: u64) -> Result<(), Errno>;

    /// Sets a queue pair into the error state: its work requests are flushed.
    fn fail(&mut self, queue_pair: u32, now_ns: u64);
}

impl Host for Engine {
    fn own_node(&self) -> u32 {
        self.transport().own_node()
    }

    fn own_process(&self) -> Process {
        self.transport().own_process()
    }

    fn port_count(&self) -> u8 {
        self.transport().port_count()
    }

    fn processes(&self, node: u32) -> Vec<Process> {
        self.transport().processes(node)
    }

    fn node_of_process(&self, process: Process) -> Option<u32> {
        self.transport().node_of_process(process)
    }

    fn reaches_process(&self, process: Process) -> bool {
        self.transport().reaches_process(process)
    }

    fn reaches_node(&self, node: u32) -> bool {
        self.transport().reaches_node(node)
    }

    fn send_note(&mut self, to: Process, bytes: Vec<u8>) {
        self.transport_mut().send_note(to, bytes);
    }

    fn take_peer_events(&mut self) -> Vec<PeerEvent> {
        self.transport_mut().take_peer_events()
    }

    fn connect(&mut self, queue_pair: u32, link: &Link, now_ns: u64) -> Result<(), Errno> {
        for state in [State::Init, State::Rtr, State::Rts] {
            let (values, mask) = attributes(state, link).ok_or(Errno::INVAL)?;
            self.modify_queue_pair(queue_pair, &values, mask, now_ns)?;
        }
        Ok(())
    }

    fn fail(&mut self, queue_pair: u32, now_ns: u64) {
        let error = QpAttr { qp_state: State::Err as u32, ..QpAttr::default() };
        // The queue pair may be destroyed already.
        let _ = self.modify_queue_pair(queue_pair, &error, QP_STATE, now_ns);
    }
}
