//! Methods of a device that a wrapper passes on to the device inside it.

/// Implements the named methods of [`super::Device`] by those of the field `device`.
macro_rules! forward {
    ($($method:ident),+ $(,)?) => { $(forward!(@ $method);)+ };
    (@ receive) => { fn receive(&mut self) -> Option<DeviceLease> { self.device.receive() } };
    (@ offer) => {
        fn offer(&mut self, take: &mut dyn FnMut(&[u8]) -> bool) -> Option<Offered> { self.device.offer(take) }
    };
    (@ leased) => { fn leased(&self, lease: DeviceLease) -> &[u8] { self.device.leased(lease) } };
    (@ keep_pages) => { fn keep_pages(&mut self) -> Option<(usize, usize)> { self.device.keep_pages() } };
    (@ hold) => { fn hold(&mut self, lease: DeviceLease) { self.device.hold(lease); } };
    (@ release) => { fn release(&mut self, lease: DeviceLease) { self.device.release(lease); } };
    (@ ready) => { fn ready(&mut self) -> bool { self.device.ready() } };
    (@ slot) => { fn slot(&mut self) -> Option<&mut [u8]> { self.device.slot() } };
    (@ show) => { fn show(&mut self) { self.device.show(); } };
    (@ flush) => { fn flush(&mut self, now: Instant) { self.device.flush(now); } };
    (@ next_due) => { fn next_due(&self) -> Instant { self.device.next_due() } };
    (@ carrier) => { fn carrier(&mut self) -> bool { self.device.carrier() } };
    (@ wake_source) => { fn wake_source(&self) -> WakeSource<'_> { self.device.wake_source() } };
    (@ carrier_source) => { fn carrier_source(&self) -> Option<BorrowedFd<'_>> { self.device.carrier_source() } };
    (@ counters) => { fn counters(&self) -> DeviceCounters { self.device.counters() } };
    (@ plug) => { fn plug(&mut self, is_plugged: bool) { self.device.plug(is_plugged); } };
}

pub(super) use forward;
