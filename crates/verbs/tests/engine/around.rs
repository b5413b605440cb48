//! Transport within the process whose requests are carried by a function of the test.

use std::sync::{Arc, Mutex};

use rackloom::fabric::QueuePairFault;
use rackloom_verbs::engine::{Carried, Loopback, Request, Target, Transport};
use rackloom_verbs::layout::Gid;

/// Faults of queue pairs that a transport reports at the next poll.
pub(crate) type Faults = Arc<Mutex<Option<Vec<QueuePairFault>>>>;

/// The transport. All but the carrying is that of the process itself.
pub(crate) struct Around<C> {
    loopback: Loopback,
    carry: C,
    pub(crate) faults: Faults,
}

impl<C: FnMut(&mut Loopback, Request, &mut dyn Target) -> Carried + Send> Around<C> {
    pub(crate) fn new(carry: C) -> Self {
        Self { loopback: Loopback::new(0), carry, faults: Faults::default() }
    }
}

impl<C: FnMut(&mut Loopback, Request, &mut dyn Target) -> Carried + Send> Transport for Around<C> {
    fn own_node(&self) -> u32 {
        self.loopback.own_node()
    }

    fn addresses(&self, port: u8) -> &[Gid] {
        self.loopback.addresses(port)
    }

    fn node_of(&self, address: &Gid) -> Option<u32> {
        self.loopback.node_of(address)
    }

    fn carry(&mut self, request: Request, target: &mut dyn Target) -> Carried {
        (self.carry)(&mut self.loopback, request, target)
    }

    fn take_queue_pair_faults(&mut self) -> Option<Vec<QueuePairFault>> {
        self.faults.lock().expect("no panic").take()
    }
}
