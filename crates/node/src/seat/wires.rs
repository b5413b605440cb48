//! The devices of a seat, opened from its grant, and new cables for its ports while it runs.
//!
//! Each device is wrapped in the faults of its link. In a rack that stays, or whose fault script restarts members, every port is exchangeable, because the
//! process in the seat at the other end may be absent and may change. The identity comes from the plan. A grant only names what to open.

use std::io;
use std::os::fd::OwnedFd;

use rackloom_plan::Plan;
use rackloom_plan::faults::Conditions;
use rackloom_plan::impair::{Direction, Judge, Verdict};
use rackloom_protocol::{MemberConfig, PortConfig};

use crate::seal::{EndNonce, LinkEnds, RackKey};
use crate::wires::exchangeable_port::{ExchangeablePort, Idle, Inserter};
use crate::wires::impaired::{Impaired, Timing, Watch};
use crate::wires::kinds::Opener;
use crate::wires::sealed::Sealed;
use crate::wires::tapped::Tapped;
use crate::wires::{Device, Doorbell};
use rackloom_control::grant::{Grant, NewCable};

/// Rate below which a modelled rate is slower than the wires by themselves, in bits per second.
const MODELLED_RATE_MAX_BITS_PER_S: u64 = 20_000_000_000;
/// Delay from which a modelled delay is longer than the software's own, in nanoseconds.
const MODELLED_DELAY_MIN_NS: u64 = 10_000;
/// Creates the observer of the frames sent at a port, given by its number. It is called again for every new cable.
///
/// `Send`, not `Sync`: the thread that exchanges cables calls it.
pub type WatchPort = Box<dyn Fn(usize) -> Watch + Send>;

/// Handle that exchanges cables while the seat runs.
///
/// `Send`, not `Sync`: one thread drives it at a time, and it may move to another.
pub struct Cabling {
    opener: Opener,
    /// Key of the rack, if it has one.
    key: Option<RackKey>,
    /// Inserters by port. Empty if cables are not exchanged.
    inserters: Vec<Inserter>,
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
    let key = plan.security.key_file.as_deref().map(RackKey::read).transpose();
    let key = key.map_err(|error| error.to_string())?;
    let (opener, bare) = Opener::open(plan, config, grant, exchanges)?;
    let (inserters, scripted) = (Vec::new(), scripted.to_vec());
    let mut cabling = Cabling { opener, key, inserters, watch_port, scripted, exchanges };
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
        formatter.debug_struct("Cabling").field("node", &self.opener.config().node).finish_non_exhaustive()
    }
}

impl Cabling {
    /// Returns the doorbell that wakes this seat, or `None` if the devices themselves wake it.
    #[must_use]
    pub const fn doorbell(&self) -> Option<&Doorbell> {
        self.opener.doorbell()
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
        let device = self.opener.plug(cable, descriptors)?;
        let mut device = self.finish(port, device)?;
        if let (Some(conditions), Some(hand)) = (conditions, device.faults()) {
            hand.begin();
            hand.set(conditions);
        }
        inserter.insert(device);
        Ok(())
    }

    fn exchangeable_port(&mut self, device: Option<Box<dyn Device>>) -> io::Result<Box<dyn Device>> {
        let idle =
            self.opener.doorbell().cloned().map_or_else(Idle::silence, |mine| Ok(Idle::Doorbell(mine)))?;
        let (port, inserter) = ExchangeablePort::new(device, idle);
        self.inserters.push(inserter);
        Ok(Box::new(port))
    }

    /// Wraps a bare device in the layers of its link: the seal next to the device, faults and observers around it.
    fn finish(&self, port: usize, device: Box<dyn Device>) -> Result<Box<dyn Device>, String> {
        let Some(key) = &self.key else { return Ok(self.impair(port, device)) };
        let MemberConfig { node: mine, ether_type, epoch, .. } = *self.opener.config();
        let PortConfig { edge, neighbour: theirs, plane, .. } = self.opener.config().ports[port];
        let ends = LinkEnds { edge, mine, theirs, plane, ether_type, epoch };
        let nonce = EndNonce::draw().map_err(|error| format!("there are no random numbers: {error}"))?;
        Ok(self.impair(port, Box::new(Sealed::new(device, key.clone(), ends, nonce))))
    }

    /// Wraps a device in the faults of its link. They are applied where a frame is sent, so each direction has one judge. Rate and delay are modelled
    /// only where they have an effect: a model of what is faster than its own arithmetic only costs time.
    fn impair(&self, port: usize, device: Box<dyn Device>) -> Box<dyn Device> {
        let edge = self.opener.config().ports[port].edge;
        let link = &self.opener.plan().links[usize::from(edge)];
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
            if link.edge.a == self.opener.config().node { Direction::Forward } else { Direction::Backward };
        let judge = Judge::new(self.opener.plan().settings.seed, &link.name, direction, profile);
        let impaired = Impaired::new(device, judge, has_delay.then(|| Timing::of(profile)));
        let impaired = impaired.with_profile(profile);
        // A rack that stays has the wrapper for faults that may be injected later. Until then the wrapper should cost nothing.
        let sleeps = !has_delay && !profile.has_faults() && watch.is_none() && self.exchanges;
        Box::new(if sleeps { impaired.dormant() } else { impaired.watched_by(watch) })
    }
}
