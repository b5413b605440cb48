//! Members of the harness with their wires, which keep sent frames, and memory, which may fail.

use std::collections::BTreeMap;

use rackloom_protocol::memory::vector::VectorMemory;
use rackloom_protocol::*;

use super::settings::{Options, member_config};
use super::{KEY, REGION, REGION_BYTES};

pub(super) enum AnyMember {
    Endpoint(Box<Endpoint>),
    Switch(Box<Switch>),
}

impl AnyMember {
    pub(super) fn member(&mut self) -> &mut dyn Inspect {
        match self {
            Self::Endpoint(endpoint) => &mut **endpoint,
            Self::Switch(switch) => &mut **switch,
        }
    }
}

#[derive(Default)]
pub(super) struct TestWires {
    pub(super) slot: Vec<u8>,
    pub(super) sent: Vec<(PortId, Vec<u8>)>,
    pub(super) leases: BTreeMap<u32, Vec<u8>>,
    pub(super) next_lease: u32,
    /// Space for one frame at a time.
    pub(super) holds_one: bool,
}

impl Wires for TestWires {
    fn slot(&mut self, _port: PortId) -> Option<&mut [u8]> {
        if self.holds_one && !self.sent.is_empty() {
            return None;
        }
        self.slot.resize(9100, 0);
        Some(&mut self.slot)
    }
    fn copy_lease(&mut self, _port: PortId, lease: LeaseId, at: usize, length: usize) {
        self.slot[at..at + length].copy_from_slice(&self.leases[&lease.0][at..at + length]);
    }
    fn commit(&mut self, port: PortId, length: usize, _doorbell: bool) {
        self.sent.push((port, self.slot[..length].to_vec()));
    }
    fn leased(&self, lease: LeaseId) -> &[u8] {
        &self.leases[&lease.0]
    }
    fn release(&mut self, lease: LeaseId) {
        self.leases.remove(&lease.0).expect("a lease is released once");
    }
}

impl BatchedWires for TestWires {
    fn fill(&mut self, port: PortId, write: &mut Write<'_>) {
        while !self.holds_one {
            let Some(length) = self.slot(port).and_then(&mut *write) else { return };
            self.commit(port, length, true);
        }
    }
}

impl KeptFrames for TestWires {}

impl PinnedFrames for TestWires {}

/// Function that returns true if memory fails to execute a request.
pub type Fails = Box<dyn FnMut(&MemoryRequest<'_>) -> bool>;

/// Function that returns true if bytes cannot be read for transmission: region, offset and length.
pub type Unread = Box<dyn FnMut(RegionId, u64, usize) -> bool>;

/// Memory that may fail.
#[derive(Default)]
pub(super) struct TestMemory {
    pub(super) bytes: VectorMemory,
    pub(super) fails: Option<Fails>,
    pub(super) unread: Option<Unread>,
}

impl Memory for TestMemory {
    fn execute<'m>(&'m mut self, request: &MemoryRequest<'_>, frame: &[u8]) -> Option<MemoryDone<'m>> {
        if self.fails.as_mut().is_some_and(|fails| fails(request)) {
            return Some(MemoryDone::Failed(MemoryFault::Device));
        }
        self.bytes.execute(request, frame)
    }
    fn read(&mut self, region: RegionId, offset: u64, out: &mut [u8]) -> Result<(), MemoryFault> {
        self.bytes.read(region, offset, out)
    }
}

impl DirectMemory for TestMemory {
    fn write_at_once(&mut self, region: RegionId, ranges: &[FrameRange], frame: &[u8]) -> bool {
        self.fails.is_none() && self.bytes.write_at_once(region, ranges, frame)
    }

    fn reads_at_once(&self) -> bool {
        true
    }

    fn read_ahead(
        &mut self,
        region: RegionId,
        offset: u64,
        out: &mut [u8],
        _: Following,
    ) -> Result<(), MemoryFault> {
        if self.unread.as_mut().is_some_and(|unread| unread(region, offset, out.len())) {
            // Half of the bytes have been read when the failure is detected.
            let half = out.len() / 2;
            self.bytes.read(region, offset, &mut out[..half])?;
            return Err(MemoryFault::Device);
        }
        self.bytes.read(region, offset, out)
    }
}

impl JobMemory for TestMemory {
    fn write(&mut self, region: RegionId, offset: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        self.bytes.write(region, offset, bytes)
    }
}

impl<W: PinnedFrames + ?Sized> PayloadPath<W> for TestMemory {}

pub(super) struct Seat {
    pub(super) member: AnyMember,
    pub(super) wires: TestWires,
    pub(super) memory: TestMemory,
    pub(super) alive: bool,
}

impl Seat {
    pub(super) fn new(graph: &Graph, node: NodeId, options: &Options, incarnation: Incarnation) -> Self {
        let config = member_config(graph, node, options, incarnation);
        let mut memory = TestMemory::default();
        let member = if graph.members[node.index()] == MemberRole::Endpoint {
            memory.bytes.add(REGION, REGION_BYTES);
            let tenant = options.tenants[node.index()];
            let mut endpoint = Endpoint::new(config);
            endpoint
                .register(RegionConfig {
                    region: REGION,
                    length: REGION_BYTES as u64,
                    key: KEY,
                    access: Access::ALL,
                    tenant,
                })
                .expect("a fresh endpoint has no regions");
            AnyMember::Endpoint(Box::new(endpoint))
        } else {
            AnyMember::Switch(Box::new(Switch::new(config)))
        };
        Self { member, wires: TestWires::default(), memory, alive: true }
    }
}
