//! The devices of a seat, opened from its grant, and new cables for its ports while it runs.
//!
//! Each device is wrapped in the faults of its link. In a rack that stays, or whose fault script restarts members, every port is exchangeable, because the
//! process in the seat at the other end may be absent and may change. The identity comes from the plan. A grant only names what to open.

use std::io;
use std::os::fd::{IntoRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

use rackloom_plan::Plan;
use rackloom_plan::faults::Conditions;
use rackloom_plan::impair::{Direction, Judge, Verdict};
use rackloom_protocol::wire::address::mac;
use rackloom_protocol::{MemberConfig, PortConfig};

use crate::namespaces::{LinkEvents, bring_up, switch_on_all};
use crate::seal::{EndNonce, LinkEnds, RackKey};
use crate::wires::exchangeable_port::{ExchangeablePort, Idle, Inserter};
use crate::wires::impaired::{Impaired, Timing, Watch};
use crate::wires::sealed::Sealed;
use crate::wires::tapped::Tapped;
use crate::wires::{Device, Doorbell, packet, shared_memory, udp};
use rackloom_control::grant::{Grant, NewCable, Outlet, SharedMemoryPort};

/// Rate below which a modelled rate is slower than the wires by themselves, in bits per second.
const MODELLED_RATE_MAX_BITS_PER_S: u64 = 20_000_000_000;
/// Delay from which a modelled delay is longer than the software's own, in nanoseconds.
const MODELLED_DELAY_MIN_NS: u64 = 10_000;
/// Timeout for all neighbours to switch on their ends of the cables.
const CABLE_TIMEOUT: Duration = Duration::from_secs(20);
/// Timeout for an interface that has been created already to appear.
const APPEAR_TIMEOUT: Duration = Duration::from_millis(100);

/// Creates the observer of the frames sent at a port, given by its number. It is called again for every new cable.
///
/// `Send`, not `Sync`: the thread that exchanges cables calls it.
pub type WatchPort = Box<dyn Fn(usize) -> Watch + Send>;

/// Handle that exchanges cables while the seat runs.
///
/// `Send`, not `Sync`: one thread drives it at a time, and it may move to another.
pub struct Cabling {
    plan: Plan,
    config: MemberConfig,
    /// Key of the rack, if it has one.
    key: Option<RackKey>,
    /// Inserters by port. Empty if cables are not exchanged.
    inserters: Vec<Inserter>,
    /// Doorbell of the seat, on shared memory.
    doorbell: Option<Doorbell>,
    /// Notifications about the seat's interfaces, on the packet wire.
    link_events: Option<Arc<LinkEvents>>,
    watch_port: Option<WatchPort>,
    /// Links at which a fault script will act.
    scripted: Vec<u16>,
    exchanges: bool,
}

/// Opens one device per port. Returns them with the handle that exchanges their cables. `exchanges`: cables may be exchanged, because the rack stays
/// or an ended member may be replaced. `scripted`: links, by index in the plan, at which a fault script will act.
///
/// # Errors
/// A message, if a wire cannot be opened.
pub fn open(
    plan: &Plan,
    config: &MemberConfig,
    grant: &Grant,
    exchanges: bool,
    watch_port: Option<WatchPort>,
    scripted: &[u16],
) -> Result<(Vec<Box<dyn Device>>, Cabling), String> {
    let link_events = match grant {
        // The socket is opened before the first interface is switched on, so that no notification is missed. Without notifications carriers are
        // polled.
        Grant::Packet { .. } => LinkEvents::listen().map(Arc::new).ok(),
        _ => None,
    };
    let key = plan.security.key_file.as_deref().map(RackKey::read).transpose();
    let key = key.map_err(|error| error.to_string())?;
    let (bare, doorbell) = match grant {
        Grant::SharedMemory { doorbell, neighbour_doorbells, ports } => {
            let (devices, mine) = open_shared_memory(*doorbell, neighbour_doorbells, ports)
                .map_err(|error| format!("cannot open the shared-memory wires: {error}"))?;
            (devices, Some(mine))
        }
        Grant::Packet { interfaces, outlets } => {
            let mut devices = open_packet(plan, config, interfaces, exchanges, link_events.as_ref())?;
            for outlet in outlets {
                *device_slot(&mut devices, outlet.port)? = Some(open_outlet(plan, config, outlet)?);
            }
            (devices, None)
        }
        Grant::Udp { ports, outlets } => {
            let open = |(port, fds): (usize, &Option<[RawFd; 2]>)| {
                fds.map(|fds| open_udp(plan, config, port, udp::End::from_fds(fds))).transpose()
            };
            let mut devices: Bare = ports.iter().enumerate().map(open).collect::<Result<_, _>>()?;
            for outlet in outlets {
                let end = udp::End::routed_from_fds(outlet.sockets);
                *device_slot(&mut devices, outlet.port)? = Some(open_udp(plan, config, outlet.port, end)?);
            }
            (devices, None)
        }
    };
    if bare.len() != config.ports.len() {
        return Err(format!("{} wires for {} ports", bare.len(), config.ports.len()));
    }
    let (plan, config, inserters) = (plan.clone(), config.clone(), Vec::new());
    let scripted = scripted.to_vec();
    let mut cabling =
        Cabling { plan, config, key, inserters, doorbell, link_events, watch_port, scripted, exchanges };
    let mut devices = Vec::new();
    for (port, bare) in bare.into_iter().enumerate() {
        let device = bare.map(|device| cabling.finish(port, device)).transpose()?;
        devices.push(match device {
            Some(device) if !exchanges => device,
            device => {
                cabling.exchangeable_port(device).map_err(|error| format!("cannot make a port: {error}"))?
            }
        });
    }
    Ok((devices, cabling))
}

impl std::fmt::Debug for Cabling {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Cabling").field("node", &self.config.node).finish_non_exhaustive()
    }
}

impl Cabling {
    /// Returns the doorbell that wakes this seat, or `None` if the devices themselves wake it.
    #[must_use]
    pub const fn doorbell(&self) -> Option<&Doorbell> {
        self.doorbell.as_ref()
    }

    /// Exchanges the cable at a port. If the new cable cannot be opened, the port stays as it is.
    ///
    /// # Errors
    /// A message, if the cable cannot be opened.
    pub fn exchange(&self, cable: &NewCable, descriptors: Vec<OwnedFd>) -> Result<(), String> {
        self.exchange_under(cable, descriptors, None)
    }

    /// Exchanges the cable at a port while a fault script acts there: these conditions apply to the new cable as well.
    ///
    /// # Errors
    /// A message, if the cable cannot be opened.
    pub fn exchange_under(
        &self,
        cable: &NewCable,
        descriptors: Vec<OwnedFd>,
        conditions: Option<&Conditions>,
    ) -> Result<(), String> {
        let port = cable.port();
        let inserter = self.inserters.get(port).ok_or_else(|| format!("port {port} keeps its cable"))?;
        let device = match (cable, &self.doorbell) {
            (NewCable::SharedMemory { .. }, Some(mine)) => plug_shared_memory(mine, descriptors)
                .map_err(|error| format!("cannot open the new wires of port {port}: {error}"))?,
            (NewCable::Packet { interface, .. }, None) => {
                let interface = std::slice::from_ref(interface);
                switch_on_all(interface, APPEAR_TIMEOUT).map_err(|error| error.to_string())?;
                open_interface(&self.plan, &self.config, port, &interface[0], self.link_events.as_ref())?
            }
            (NewCable::Udp { .. }, None) => {
                let fds = <[OwnedFd; 2]>::try_from(descriptors);
                let fds = fds.map_err(|_| io::Error::from(io::ErrorKind::InvalidData));
                let end = fds.and_then(|fds| udp::End::from_fds(fds.map(IntoRawFd::into_raw_fd)));
                open_udp(&self.plan, &self.config, port, end)?
            }
            _ => return Err(format!("port {port} was brought a cable of another wire")),
        };
        let mut device = self.finish(port, device)?;
        if let (Some(conditions), Some(hand)) = (conditions, device.faults()) {
            hand.begin();
            hand.set(conditions);
        }
        inserter.insert(device);
        Ok(())
    }

    fn exchangeable_port(&mut self, device: Option<Box<dyn Device>>) -> io::Result<Box<dyn Device>> {
        let idle = self.doorbell.clone().map_or_else(Idle::silence, |mine| Ok(Idle::Doorbell(mine)))?;
        let (port, inserter) = ExchangeablePort::new(device, idle);
        self.inserters.push(inserter);
        Ok(Box::new(port))
    }

    /// Wraps a bare device in the layers of its link: the seal next to the device, faults and observers around it.
    fn finish(&self, port: usize, device: Box<dyn Device>) -> Result<Box<dyn Device>, String> {
        let Some(key) = &self.key else { return Ok(self.impair(port, device)) };
        let MemberConfig { node: mine, ether_type, epoch, .. } = self.config;
        let PortConfig { edge, neighbour: theirs, plane, .. } = self.config.ports[port];
        let ends = LinkEnds { edge, mine, theirs, plane, ether_type, epoch };
        let nonce = EndNonce::draw().map_err(|error| format!("there are no random numbers: {error}"))?;
        Ok(self.impair(port, Box::new(Sealed::new(device, key.clone(), ends, nonce))))
    }

    /// Wraps a device in the faults of its link. They are applied where a frame is sent, so each direction has one judge. Rate and delay are modelled
    /// only where they have an effect: a model of what is faster than its own arithmetic only costs time.
    fn impair(&self, port: usize, device: Box<dyn Device>) -> Box<dyn Device> {
        let edge = self.config.ports[port].edge;
        let link = &self.plan.links[usize::from(edge)];
        let profile = &link.profile;
        let has_delay = profile.latency_ns() >= MODELLED_DELAY_MIN_NS
            || profile
                .rate_bits_per_s
                .is_some_and(|rate_bits_per_s| rate_bits_per_s < MODELLED_RATE_MAX_BITS_PER_S);
        let watch = self.watch_port.as_ref().map(|watch_port| watch_port(port));
        if !has_delay && !profile.has_faults() && !self.scripted.contains(&edge) {
            return match watch {
                Some(mut watch) => {
                    Box::new(Tapped::new(device, move |frame: &[u8]| watch(frame, &Verdict::default())))
                }
                None => device,
            };
        }
        let direction =
            if link.edge.a == self.config.node { Direction::Forward } else { Direction::Backward };
        let judge = Judge::new(self.plan.settings.seed, &link.name, direction, profile);
        let impaired = Impaired::new(device, judge, has_delay.then(|| Timing::of(profile)));
        let impaired = impaired.with_profile(profile);
        // A rack that stays has the wrapper for faults that may be injected later. Until then the wrapper should cost nothing.
        let sleeps = !has_delay && !profile.has_faults() && watch.is_none() && self.exchanges;
        Box::new(if sleeps { impaired.dormant() } else { impaired.watched_by(watch) })
    }
}

/// Devices by port. `None` where there is no cable.
type Bare = Vec<Option<Box<dyn Device>>>;

fn device_slot(devices: &mut Bare, port: usize) -> Result<&mut Option<Box<dyn Device>>, String> {
    devices.get_mut(port).ok_or_else(|| format!("the plan has no port {port}"))
}

fn open_shared_memory(
    doorbell: RawFd,
    neighbour_doorbells: &[RawFd],
    ports: &[Option<SharedMemoryPort>],
) -> io::Result<(Bare, Doorbell)> {
    let mine = Doorbell::from_fd(doorbell)?;
    let neighbours: Vec<_> =
        neighbour_doorbells.iter().map(|fd| Doorbell::from_fd(*fd)).collect::<io::Result<_>>()?;
    let open = |port: &SharedMemoryPort| {
        let theirs = neighbours.get(port.neighbour).ok_or(io::ErrorKind::InvalidData)?;
        let device = shared_memory::End::from_fds(port.end)?.open(&mine, theirs)?;
        Ok(Box::new(device) as Box<dyn Device>)
    };
    let devices = ports.iter().map(|port| port.as_ref().map(open).transpose()).collect::<io::Result<_>>()?;
    Ok((devices, mine))
}

/// Opens the end of a link and the neighbour's doorbell from the descriptors sent with the message.
fn plug_shared_memory(mine: &Doorbell, descriptors: Vec<OwnedFd>) -> io::Result<Box<dyn Device>> {
    let [send, receive, carrier, theirs] =
        <[OwnedFd; 4]>::try_from(descriptors).map_err(|_| io::ErrorKind::InvalidData)?;
    let theirs = Doorbell::from_fd(theirs.into_raw_fd())?;
    let end = [send, receive, carrier].map(IntoRawFd::into_raw_fd);
    Ok(Box::new(shared_memory::End::from_fds(end)?.open(mine, &theirs)?))
}

/// Opens the interfaces of a seat. Where cables may be exchanged it does not wait for the other ends, because a busy or stopped neighbour must not
/// delay the seat.
fn open_packet(
    plan: &Plan,
    config: &MemberConfig,
    interfaces: &[Option<String>],
    exchanges: bool,
    link_events: Option<&Arc<LinkEvents>>,
) -> Result<Bare, String> {
    let present: Vec<_> = interfaces.iter().flatten().cloned().collect();
    let bring_up = if exchanges { switch_on_all } else { bring_up };
    bring_up(&present, CABLE_TIMEOUT).map_err(|error| format!("cannot use the packet wire: {error}"))?;
    let open = |(port, interface): (usize, &Option<String>)| {
        interface
            .as_ref()
            .map(|interface| open_interface(plan, config, port, interface, link_events))
            .transpose()
    };
    interfaces.iter().enumerate().map(open).collect()
}

/// Opens a port that leaves the machine. Its sockets include notifications about its interface, which do not reach the seat's namespace.
fn open_outlet(plan: &Plan, config: &MemberConfig, outlet: &Outlet) -> Result<Box<dyn Device>, String> {
    let settings = packet_settings(plan, config, outlet.port)?;
    let device = packet::open_inherited(&outlet.interface, &settings, outlet.sockets);
    let device =
        device.map_err(|error| format!("cannot use the sockets of a link to another host: {error}"))?;
    Ok(Box::new(device))
}

fn packet_settings(plan: &Plan, config: &MemberConfig, port: usize) -> Result<packet::Settings, String> {
    let link = config.ports.get(port).ok_or_else(|| format!("the plan has no port {port}"))?;
    let (ether_type, frame_bytes_max) = (config.ether_type, plan.wire_bytes_max());
    Ok(packet::Settings {
        ether_type,
        frame_bytes_max,
        credits: link.credits,
        reception: plan.settings.reception,
    })
}

/// Returns the addresses on the segment of a port: at a bridge, those of all members of the plane. Returns `None` without bridges.
fn segment(plan: &Plan, config: &MemberConfig, port: usize) -> Option<packet::Segment> {
    if !plan.has_bridges() {
        return None;
    }
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

fn open_interface(
    plan: &Plan,
    config: &MemberConfig,
    port: usize,
    interface: &str,
    link_events: Option<&Arc<LinkEvents>>,
) -> Result<Box<dyn Device>, String> {
    let settings = packet_settings(plan, config, port)?;
    let device = match segment(plan, config, port) {
        Some(segment) => packet::open_on_segment(interface, &settings, &segment),
        None => packet::open(interface, &settings),
    };
    let device = device.map_err(|error| format!("cannot open a packet socket: {error}"))?;
    Ok(match link_events {
        Some(link_events) => Box::new(device.with_link_events(link_events)),
        None => Box::new(device),
    })
}

fn open_udp(
    plan: &Plan,
    config: &MemberConfig,
    port: usize,
    end: io::Result<udp::End>,
) -> Result<Box<dyn Device>, String> {
    let link = config.ports.get(port).ok_or_else(|| format!("the plan has no port {port}"))?;
    let settings = udp::Settings { frame_bytes_max: plan.wire_bytes_max(), credits: link.credits };
    let device = end.and_then(|end| end.open(&settings));
    let device = device.map_err(|error| format!("cannot open the udp wire of port {port}: {error}"))?;
    Ok(Box::new(if plan.is_sealed() { device.ignoring_refusals() } else { device }))
}
