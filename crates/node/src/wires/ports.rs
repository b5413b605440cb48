//! A node's devices as the core uses them: numbered ports, and one numbering for all leases.
//!
//! A [`LeaseId`] has the port in its upper bits and the device's own lease in its lower bits. Finding a frame takes two shifts and no table.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rackloom_protocol::{BatchedWires, Instant, KeptFrames, LeaseId, PinnedFrames, PortId, Wires, Write};
use thiserror::Error;

use super::bell_ringer::BellRinger;
use super::{Device, DeviceCounters, DeviceLease, Doorbell, FRAME_BYTES_MAX, FaultHand, Offered, WakeSource};

const DEVICE_LEASE_BITS: u32 = 20;
const DEVICE_LEASE_MASK: u32 = (1 << DEVICE_LEASE_BITS) - 1;

/// Maximum number of ports of one member.
pub(super) const PORTS_MAX: usize = 1 << (u32::BITS - DEVICE_LEASE_BITS);

/// Error of a set of devices that cannot be the ports of one member.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PortsError {
    /// There are more devices than lease numbers can distinguish.
    #[error("a member has {count} ports, at most {PORTS_MAX} are possible")]
    TooMany {
        /// Number of devices.
        count: usize,
    },
    /// The plan has larger frames than devices carry.
    #[error("frames of {frame_bytes_max} bytes are too large, wires carry at most {FRAME_BYTES_MAX}")]
    FrameTooLarge {
        /// Frame size of the plan, in bytes.
        frame_bytes_max: usize,
    },
    /// Some ports use one doorbell, others another or none. A single sleep could not wait for all of them.
    #[error("the ports of a member must share one doorbell, or have none")]
    SeveralWakeSources,
}

/// The devices of one member, in port order.
///
/// `Send`, not `Sync`: one thread drives it at a time, and it may move to another.
pub struct Ports {
    devices: Vec<Box<dyn Device>>,
    scratch: Vec<u8>,
    doorbell: Option<Doorbell>,
    /// Set if memory reads frames in place.
    holds: bool,
    /// Descriptor beside those of the devices that ends a sleep when it is readable.
    watched: Option<Watched>,
}

/// Descriptor that ends a sleep.
enum Watched {
    /// The sleeper waits for descriptors.
    Descriptor(OwnedFd),
    /// The sleeper waits for a doorbell, which a thread rings.
    Ringer(BellRinger),
}

impl Ports {
    /// Combines devices, given in port order, for frames of at most `frame_bytes_max` bytes.
    ///
    /// # Errors
    /// [`PortsError`]: too many devices, frames too long for one of them, or devices with different wake sources.
    pub fn new(devices: Vec<Box<dyn Device>>, frame_bytes_max: u16) -> Result<Self, PortsError> {
        let frame_bytes_max = usize::from(frame_bytes_max);
        if devices.len() > PORTS_MAX {
            return Err(PortsError::TooMany { count: devices.len() });
        }
        if frame_bytes_max > FRAME_BYTES_MAX {
            return Err(PortsError::FrameTooLarge { frame_bytes_max });
        }
        let doorbell = common_doorbell(&devices)?;
        Ok(Self {
            devices,
            doorbell,
            scratch: Vec::with_capacity(FRAME_BYTES_MAX),
            holds: false,
            watched: None,
        })
    }

    /// Ends sleeps of the member when `descriptor` is readable, from now on. The caller checks it before each sleep.
    ///
    /// # Errors
    /// A thread is needed, and cannot be started.
    pub fn watch(&mut self, descriptor: OwnedFd) -> io::Result<()> {
        self.watched = Some(match &self.doorbell {
            Some(doorbell) => Watched::Ringer(BellRinger::start(descriptor, doorbell.clone())?),
            None => Watched::Descriptor(descriptor),
        });
        Ok(())
    }

    /// Returns the descriptor that a sleep without a doorbell waits for beside the devices.
    pub(crate) fn watched_descriptor(&self) -> Option<BorrowedFd<'_>> {
        match &self.watched {
            Some(Watched::Descriptor(descriptor)) => Some(descriptor.as_fd()),
            _ => None,
        }
    }

    /// Has the doorbell rung if the watched descriptor is readable. Call it between arming the doorbell and sleeping on it.
    pub(crate) fn arm_ringer(&self) {
        if let Some(Watched::Ringer(ringer)) = &self.watched {
            ringer.arm();
        }
    }

    /// Returns the number of ports.
    #[must_use]
    pub fn count(&self) -> usize {
        self.devices.len()
    }

    /// Returns the next frame received on a port.
    pub fn receive(&mut self, port: PortId) -> Option<LeaseId> {
        Some(name(port, self.devices.get_mut(port.index())?.receive()?))
    }

    /// Offers the next frame received on a port to `take`, which returns whether it has finished with it. Returns `None` if there is no frame, the
    /// lease if `take` has not finished, else `Some(None)`.
    #[inline]
    pub(crate) fn offer(
        &mut self,
        port: PortId,
        take: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Option<Option<LeaseId>> {
        match self.devices.get_mut(port.index())?.offer(take)? {
            Offered::Taken => Some(None),
            Offered::Leased(lease) => Some(Some(name(port, lease))),
        }
    }

    /// Returns addresses and lengths of the memory that contains received frames, for each device whose frames lie in one range. From now on, frames
    /// passed to memory stay there until they are released.
    pub(crate) fn keep_pages(&mut self) -> Vec<(usize, usize)> {
        self.holds = true;
        self.devices.iter_mut().filter_map(|device| device.keep_pages()).collect()
    }

    /// Sends what is due on every port.
    pub fn flush(&mut self, now: Instant) {
        for device in &mut self.devices {
            device.flush(now);
        }
    }

    /// Returns the time at which [`Ports::flush`] must be called next even if nothing is sent.
    #[must_use]
    pub fn next_due(&self) -> Instant {
        self.devices.iter().map(|device| device.next_due()).min().unwrap_or(Instant::NEVER)
    }

    /// Returns whether this port has received a frame.
    pub(crate) fn port_ready(&mut self, port: PortId) -> bool {
        self.devices.get_mut(port.index()).is_some_and(|device| device.ready())
    }

    /// Returns whether any port has received a frame.
    pub fn ready(&mut self) -> bool {
        self.devices.iter_mut().any(|device| device.ready())
    }

    /// Returns whether the neighbour at a port is present.
    pub fn carrier(&mut self, port: PortId) -> bool {
        self.devices.get_mut(port.index()).is_some_and(|device| device.carrier())
    }

    /// Returns the interface for fault scripts at a port, if its device has one.
    pub fn faults(&mut self, port: PortId) -> Option<&mut dyn FaultHand> {
        self.devices.get_mut(port.index())?.faults()
    }

    /// Returns the counters of the device at a port: events that the core cannot see.
    #[must_use]
    pub fn counters(&self, port: PortId) -> DeviceCounters {
        self.devices.get(port.index()).map_or_else(DeviceCounters::default, |device| device.counters())
    }

    /// Returns the doorbell that wakes this member, if its ports have one.
    pub(crate) fn doorbell(&self) -> Option<&Doorbell> {
        self.doorbell.as_ref()
    }

    /// Returns the devices, to wait on.
    pub(crate) fn devices(&self) -> &[Box<dyn Device>] {
        &self.devices
    }
}

impl std::fmt::Debug for Ports {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Ports").field("count", &self.devices.len()).finish_non_exhaustive()
    }
}

/// Returns the doorbell of all devices, or `None` if all have descriptors instead.
fn common_doorbell(devices: &[Box<dyn Device>]) -> Result<Option<Doorbell>, PortsError> {
    let doorbell_of = |device: &dyn Device| match device.wake_source() {
        WakeSource::Doorbell(doorbell) => Some(doorbell.clone()),
        WakeSource::Descriptor(_) => None,
    };
    let first = devices.first().and_then(|device| doorbell_of(&**device));
    if devices.iter().all(|device| doorbell_of(&**device) == first) {
        Ok(first)
    } else {
        Err(PortsError::SeveralWakeSources)
    }
}

fn name(port: PortId, lease: DeviceLease) -> LeaseId {
    debug_assert!(lease.0 <= DEVICE_LEASE_MASK, "a device has fewer than a million frames out");
    LeaseId(u32::from(port.0) << DEVICE_LEASE_BITS | lease.0)
}

fn locate(lease: LeaseId) -> (usize, DeviceLease) {
    ((lease.0 >> DEVICE_LEASE_BITS) as usize, DeviceLease(lease.0 & DEVICE_LEASE_MASK))
}

impl Wires for Ports {
    fn slot(&mut self, port: PortId) -> Option<&mut [u8]> {
        self.devices.get_mut(port.index())?.slot()
    }

    fn copy_lease(&mut self, port: PortId, lease: LeaseId, at: usize, length: usize) {
        let (source, lease) = locate(lease);
        if let Ok([source, target]) = self.devices.get_disjoint_mut([source, port.index()]) {
            copy_range(source.leased(lease), target.slot(), at, length);
        } else if let Some(device) = self.devices.get_mut(port.index()).filter(|_| source == port.index()) {
            // The frame leaves through the port at which it arrived. It is copied twice, because slot and frame belong to the same device.
            self.scratch.clear();
            self.scratch.extend_from_slice(device.leased(lease));
            copy_range(&self.scratch, device.slot(), at, length);
        }
    }

    fn commit(&mut self, port: PortId, length: usize, doorbell: bool) {
        if let Some(device) = self.devices.get_mut(port.index()) {
            device.commit(length, doorbell);
        }
    }

    fn leased(&self, lease: LeaseId) -> &[u8] {
        let (port, lease) = locate(lease);
        self.devices.get(port).map_or(&[], |device| device.leased(lease))
    }

    fn release(&mut self, lease: LeaseId) {
        let (port, lease) = locate(lease);
        if let Some(device) = self.devices.get_mut(port) {
            device.release(lease);
        }
    }
}

impl BatchedWires for Ports {
    fn fill(&mut self, port: PortId, write: &mut Write<'_>) {
        if let Some(device) = self.devices.get_mut(port.index()) {
            device.fill(write);
        }
    }

    fn show(&mut self, port: PortId) {
        if let Some(device) = self.devices.get_mut(port.index()) {
            device.show();
        }
    }
}

impl KeptFrames for Ports {}

impl PinnedFrames for Ports {
    fn pin(&mut self, lease: LeaseId) {
        if self.holds {
            let (port, lease) = locate(lease);
            if let Some(device) = self.devices.get_mut(port) {
                device.hold(lease);
            }
        }
    }
}

fn copy_range(frame: &[u8], target: Option<&mut [u8]>, at: usize, length: usize) {
    let end = at.saturating_add(length);
    if let (Some(from), Some(to)) = (frame.get(at..end), target.and_then(|target| target.get_mut(at..end))) {
        to.copy_from_slice(from);
    }
}
