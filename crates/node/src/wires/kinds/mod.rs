//! Kinds of wires, one module for each value of the key `wire`, and how a seat opens them from its grant.
//!
//! The devices are bare. [`crate::seat::wires`] wraps them in the faults of their links.

pub mod packet;
pub mod shared_memory;
pub mod udp;

use std::io;
use std::os::fd::{IntoRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

use rackloom_control::grant::{Grant, NewCable, Outlet, SharedMemoryPort};
use rackloom_plan::Plan;
use rackloom_protocol::wire::address::mac;
use rackloom_protocol::{MemberConfig, PortConfig};

use super::{Device, Doorbell};
use crate::namespaces::{LinkEvents, bring_up, switch_on_all};

/// Timeout for all neighbours to switch on their ends of the cables.
const CABLE_TIMEOUT: Duration = Duration::from_secs(20);
/// Timeout for an interface that has been created already to appear.
const APPEAR_TIMEOUT: Duration = Duration::from_millis(100);

/// Bare devices by port. `None` where there is no cable.
pub(crate) type Bare = Vec<Option<Box<dyn Device>>>;

/// Opens the devices of a seat, at its start and for each new cable.
pub(crate) struct Opener {
    plan: Plan,
    config: MemberConfig,
    /// Doorbell of the seat, on shared memory.
    doorbell: Option<Doorbell>,
    /// Notifications about the seat's interfaces, on the packet wire.
    link_events: Option<Arc<LinkEvents>>,
}

impl Opener {
    /// Opens the devices that a grant names. `exchanges`: cables may be exchanged, so a neighbour may be absent.
    ///
    /// # Errors
    /// A message, if a wire cannot be opened.
    pub(crate) fn open(
        plan: &Plan,
        config: &MemberConfig,
        grant: &Grant,
        exchanges: bool,
    ) -> Result<(Self, Bare), String> {
        let mut opener =
            Self { plan: plan.clone(), config: config.clone(), doorbell: None, link_events: None };
        let bare = match grant {
            Grant::SharedMemory { doorbell, neighbour_doorbells, ports } => opener
                .open_shared_memory(*doorbell, neighbour_doorbells, ports)
                .map_err(|error| format!("cannot open the shared-memory wires: {error}"))?,
            Grant::Packet { interfaces, outlets } => {
                // The socket is opened before the first interface is switched on, so that no notification is missed. Without notifications carriers
                // are polled.
                opener.link_events = LinkEvents::listen().map(Arc::new).ok();
                let mut devices = opener.open_packet(interfaces, exchanges)?;
                for outlet in outlets {
                    *device_slot(&mut devices, outlet.port)? = Some(opener.open_outlet(outlet)?);
                }
                devices
            }
            Grant::Udp { ports, outlets } => {
                let open = |(port, fds): (usize, &Option<[RawFd; 2]>)| {
                    fds.map(|fds| opener.open_udp(port, udp::End::from_fds(fds))).transpose()
                };
                let mut devices: Bare = ports.iter().enumerate().map(open).collect::<Result<_, _>>()?;
                for outlet in outlets {
                    let end = udp::End::routed_from_fds(outlet.sockets);
                    *device_slot(&mut devices, outlet.port)? = Some(opener.open_udp(outlet.port, end)?);
                }
                devices
            }
        };
        if bare.len() != config.ports.len() {
            return Err(format!("{} wires for {} ports", bare.len(), config.ports.len()));
        }
        Ok((opener, bare))
    }

    /// Opens the device of a new cable.
    ///
    /// # Errors
    /// A message, if the cable cannot be opened or is of another kind than the seat's wires.
    pub(crate) fn plug(
        &self,
        cable: &NewCable,
        descriptors: Vec<OwnedFd>,
    ) -> Result<Box<dyn Device>, String> {
        let port = cable.port();
        match (cable, &self.doorbell) {
            (NewCable::SharedMemory { .. }, Some(mine)) => plug_shared_memory(mine, descriptors)
                .map_err(|error| format!("cannot open the new wires of port {port}: {error}")),
            (NewCable::Packet { interface, .. }, None) => {
                switch_on_all(std::slice::from_ref(interface), APPEAR_TIMEOUT)
                    .map_err(|error| error.to_string())?;
                self.open_interface(port, interface)
            }
            (NewCable::Udp { .. }, None) => {
                let fds = <[OwnedFd; 2]>::try_from(descriptors);
                let fds = fds.map_err(|_| io::Error::from(io::ErrorKind::InvalidData));
                let end = fds.and_then(|fds| udp::End::from_fds(fds.map(IntoRawFd::into_raw_fd)));
                self.open_udp(port, end)
            }
            _ => Err(format!("port {port} was brought a cable of another wire")),
        }
    }

    /// Returns the plan of the rack.
    pub(crate) const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns the member's part of the plan.
    pub(crate) const fn config(&self) -> &MemberConfig {
        &self.config
    }

    /// Returns the doorbell that wakes the seat, or `None` if the devices themselves wake it.
    pub(crate) const fn doorbell(&self) -> Option<&Doorbell> {
        self.doorbell.as_ref()
    }

    fn open_shared_memory(
        &mut self,
        doorbell: RawFd,
        neighbour_doorbells: &[RawFd],
        ports: &[Option<SharedMemoryPort>],
    ) -> io::Result<Bare> {
        let mine = Doorbell::from_fd(doorbell)?;
        let neighbours: Vec<_> =
            neighbour_doorbells.iter().map(|fd| Doorbell::from_fd(*fd)).collect::<io::Result<_>>()?;
        let open = |port: &SharedMemoryPort| {
            let theirs = neighbours.get(port.neighbour).ok_or(io::ErrorKind::InvalidData)?;
            let device = shared_memory::End::from_fds(port.end)?.open(&mine, theirs)?;
            Ok(Box::new(device) as Box<dyn Device>)
        };
        let devices = ports.iter().map(|port| port.as_ref().map(open).transpose()).collect();
        self.doorbell = Some(mine);
        devices
    }

    /// Opens the interfaces of a seat. Where cables may be exchanged it does not wait for the other ends, because a busy or stopped neighbour must
    /// not delay the seat.
    fn open_packet(&self, interfaces: &[Option<String>], exchanges: bool) -> Result<Bare, String> {
        let present: Vec<_> = interfaces.iter().flatten().cloned().collect();
        let bring_up = if exchanges { switch_on_all } else { bring_up };
        bring_up(&present, CABLE_TIMEOUT).map_err(|error| format!("cannot use the packet wire: {error}"))?;
        let open = |(port, interface): (usize, &Option<String>)| {
            interface.as_ref().map(|interface| self.open_interface(port, interface)).transpose()
        };
        interfaces.iter().enumerate().map(open).collect()
    }

    /// Opens a port that leaves the machine. Its sockets include notifications about its interface, which do not reach the seat's namespace.
    fn open_outlet(&self, outlet: &Outlet) -> Result<Box<dyn Device>, String> {
        let settings = self.packet_settings(outlet.port)?;
        let device = packet::open_inherited(&outlet.interface, &settings, outlet.sockets);
        let device =
            device.map_err(|error| format!("cannot use the sockets of a link to another host: {error}"))?;
        Ok(Box::new(device))
    }

    fn packet_settings(&self, port: usize) -> Result<packet::Settings, String> {
        let link = self.port(port)?;
        Ok(packet::Settings {
            ether_type: self.config.ether_type,
            frame_bytes_max: self.plan.wire_bytes_max(),
            credits: link.credits,
            reception: self.plan.settings.reception,
        })
    }

    fn port(&self, port: usize) -> Result<&PortConfig, String> {
        self.config.ports.get(port).ok_or_else(|| format!("the plan has no port {port}"))
    }

    /// Returns the addresses on the segment of a port: at a bridge, those of all members of the plane. Returns `None` without bridges.
    fn segment(&self, port: usize) -> Option<packet::Segment> {
        if !self.plan.has_bridges() {
            return None;
        }
        let config = &self.config;
        let here = config.ports.get(port)?;
        let on_segment = || config.ports.iter().enumerate().filter(|(_, other)| other.plane == here.plane);
        let address = |port: &PortConfig| mac(port.neighbour, port.plane);
        let neighbours = on_segment().map(|(_, other)| address(other));
        let is_first = on_segment().next().is_some_and(|(first, _)| first == port);
        Some(packet::Segment {
            mine: mac(config.node, here.plane),
            theirs: address(here),
            neighbours: is_first.then(|| neighbours.collect()),
        })
    }

    fn open_interface(&self, port: usize, interface: &str) -> Result<Box<dyn Device>, String> {
        let settings = self.packet_settings(port)?;
        let device = match self.segment(port) {
            Some(segment) => packet::open_on_segment(interface, &settings, &segment),
            None => packet::open(interface, &settings),
        };
        let device = device.map_err(|error| format!("cannot open a packet socket: {error}"))?;
        Ok(match &self.link_events {
            Some(link_events) => Box::new(device.with_link_events(link_events)),
            None => Box::new(device),
        })
    }

    fn open_udp(&self, port: usize, end: io::Result<udp::End>) -> Result<Box<dyn Device>, String> {
        let link = self.port(port)?;
        let settings = udp::Settings { frame_bytes_max: self.plan.wire_bytes_max(), credits: link.credits };
        let device = end.and_then(|end| end.open(&settings));
        let device = device.map_err(|error| format!("cannot open the udp wire of port {port}: {error}"))?;
        Ok(Box::new(if self.plan.is_sealed() { device.ignoring_refusals() } else { device }))
    }
}

fn device_slot(devices: &mut Bare, port: usize) -> Result<&mut Option<Box<dyn Device>>, String> {
    devices.get_mut(port).ok_or_else(|| format!("the plan has no port {port}"))
}

/// Opens the end of a link and the neighbour's doorbell from the descriptors sent with the message.
fn plug_shared_memory(mine: &Doorbell, descriptors: Vec<OwnedFd>) -> io::Result<Box<dyn Device>> {
    let [send, receive, carrier, theirs] =
        <[OwnedFd; 4]>::try_from(descriptors).map_err(|_| io::ErrorKind::InvalidData)?;
    let theirs = Doorbell::from_fd(theirs.into_raw_fd())?;
    let end = [send, receive, carrier].map(IntoRawFd::into_raw_fd);
    Ok(Box::new(shared_memory::End::from_fds(end)?.open(mine, &theirs)?))
}
