//! placeholder
use super::*;
use std::io;
use std::os::fd::AsFd as _;
/// A port on a real interface.
#[derive(Debug)]
pub struct PacketDevice {
    socket: OwnedFd,
}
/// Open.
pub fn open(interface: &str, ether_type: u16, frame_bytes_max: u16) -> io::Result<PacketDevice> {
    let _ = (interface, ether_type, frame_bytes_max);
    Err(io::ErrorKind::Unsupported.into())
}
impl Device for PacketDevice {
    fn receive(&mut self) -> Option<DeviceLease> {
        None
    }
    fn leased(&self, _lease: DeviceLease) -> &[u8] {
        &[]
    }
    fn release(&mut self, _lease: DeviceLease) {}
    fn ready(&mut self) -> bool {
        false
    }
    fn slot(&mut self) -> Option<&mut [u8]> {
        None
    }
    fn commit(&mut self, _length: usize, _doorbell: bool) {}
    fn flush(&mut self, _now: Instant) {}
    fn carrier(&mut self) -> bool {
        false
    }
    fn wake_source(&self) -> WakeSource<'_> {
        WakeSource::Descriptor(self.socket.as_fd())
    }
    fn counters(&self) -> DeviceCounters {
        DeviceCounters::default()
    }
}
