//! Transport of a device with several ports: one transport per port, each over an endpoint of its own.

use std::ops::RangeInclusive;

use rackloom::fabric::QueuePairFault;
use rustix::io::Errno;

use super::transport::{FabricTransport, waiter_of};
use crate::engine::{
    Carried, Outcome, PeerEvent, Port, Process, Region, Request, Target, Ticket, Transport, Waiter, port_of,
};
use crate::layout::Gid;

/// Ports of a process. A queue pair uses the port of its node's number.
pub struct Ports {
    /// The first element is port 1. There is at least one.
    ports: Vec<FabricTransport>,
}

impl Ports {
    /// Returns the transport of a process with these ports, of which port 1 is the first.
    ///
    /// # Panics
    /// Without a port.
    #[must_use]
    pub fn new(ports: Vec<FabricTransport>) -> Self {
        assert!(!ports.is_empty(), "a device has a port");
        Self { ports }
    }

    fn place(&self, port: u8) -> Option<usize> {
        usize::from(port).checked_sub(1).filter(|place| *place < self.ports.len())
    }

    /// Returns the transport of the port of a node.
    fn of_node(&self, node: u32) -> Option<&FabricTransport> {
        self.place(port_of(node)).map(|place| &self.ports[place])
    }

    /// Returns the place of the port over which a process is reached.
    fn place_of_process(&self, process: Process) -> Option<usize> {
        self.ports.iter().position(|port| port.node_of_process(process).is_some())
    }
}

impl Transport for Ports {
    fn own_node(&self) -> u32 {
        self.ports[0].own_node()
    }

    fn port_count(&self) -> u8 {
        u8::try_from(self.ports.len()).unwrap_or(u8::MAX)
    }

    fn addresses(&self, port: u8) -> &[Gid] {
        self.place(port).map_or(&[], |place| self.ports[place].addresses(port))
    }

    fn node_of(&self, address: &Gid) -> Option<u32> {
        self.ports.iter().find_map(|port| port.node_of(address))
    }

    fn carry(&mut self, request: Request, target: &mut dyn Target) -> Carried {
        let place = request.from.node.and_then(|node| self.place(port_of(node)));
        self.ports[place.unwrap_or(0)].carry(request, target)
    }

    fn queue_pair_numbers(&self) -> RangeInclusive<u32> {
        self.ports[0].queue_pair_numbers()
    }

    fn register(&mut self, key: u32, region: &Region) -> Result<(), Errno> {
        for place in 0..self.ports.len() {
            if let Err(error) = self.ports[place].register(key, region) {
                self.ports[..place].iter_mut().for_each(|port| port.deregister(key));
                return Err(error);
            }
        }
        Ok(())
    }

    fn deregister(&mut self, key: u32) {
        self.ports.iter_mut().for_each(|port| port.deregister(key));
    }

    fn poll(&mut self, target: &mut dyn Target) -> Vec<(Ticket, Outcome)> {
        let mut ended = self.ports[0].poll(target);
        for port in &mut self.ports[1..] {
            ended.append(&mut port.poll(target));
        }
        ended
    }

    fn waiter(&self) -> Option<Waiter> {
        Some(waiter_of(self.ports.iter().map(|port| port.queue().clone()).collect()))
    }

    fn hand_over(&mut self) {
        self.ports.iter_mut().for_each(Transport::hand_over);
    }

    fn is_pressing(&self) -> bool {
        self.ports.iter().any(Transport::is_pressing)
    }

    fn port(&self, port: u8) -> Port {
        self.place(port).map_or(Port::Down, |place| self.ports[place].port(port))
    }

    fn take_queue_pair_faults(&mut self) -> Option<Vec<QueuePairFault>> {
        // All endpoints of the process have the same ones.
        self.ports[0].take_queue_pair_faults()
    }

    fn is_flushed(&self) -> bool {
        self.ports.iter().all(Transport::is_flushed)
    }

    fn own_process(&self) -> Process {
        self.ports[0].own_process()
    }

    fn processes(&self, node: u32) -> Vec<Process> {
        self.of_node(node).map_or_else(Vec::new, |port| port.processes(node))
    }

    fn node_of_process(&self, process: Process) -> Option<u32> {
        self.ports.iter().find_map(|port| port.node_of_process(process))
    }

    fn reaches_process(&self, process: Process) -> bool {
        self.place_of_process(process).is_some_and(|place| self.ports[place].reaches_process(process))
    }

    fn reaches_node(&self, node: u32) -> bool {
        self.of_node(node).is_some_and(|port| port.reaches_node(node))
    }

    fn send_note(&mut self, to: Process, bytes: Vec<u8>) {
        if let Some(place) = self.place_of_process(to) {
            self.ports[place].send_note(to, bytes);
        }
    }

    fn take_peer_events(&mut self) -> Vec<PeerEvent> {
        self.ports.iter_mut().flat_map(Transport::take_peer_events).collect()
    }
}
