//! Allocations per frame of a warm stream: none, counted over 100,000 frames.

mod harness;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use rackloom_protocol::memory::vector::VectorMemory;
use rackloom_protocol::*;

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is passed on unchanged to the system allocator; counting touches no memory of the caller.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise about `layout` is passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise about `pointer` and `layout` is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise about `pointer`, `layout` and `new_size` is passed on.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Wires with fixed slots. Sent frames stay in `outbox` until the loop delivers them.
struct FixedWires {
    slot: Vec<u8>,
    outbox: Vec<Vec<u8>>,
    sent: usize,
    inbox: Vec<Vec<u8>>,
    free: Vec<u32>,
}

impl FixedWires {
    fn new() -> Self {
        let slots = || (0..256).map(|_| Vec::with_capacity(4400)).collect();
        Self { slot: vec![0; 4400], outbox: slots(), sent: 0, inbox: slots(), free: (0..256).collect() }
    }
}

impl Wires for FixedWires {
    fn slot(&mut self, _port: PortId) -> Option<&mut [u8]> {
        (self.sent < self.outbox.len()).then_some(&mut self.slot[..])
    }
    fn copy_lease(&mut self, _port: PortId, lease: LeaseId, at: usize, length: usize) {
        self.slot[at..at + length].copy_from_slice(&self.inbox[lease.0 as usize][at..at + length]);
    }
    fn commit(&mut self, _port: PortId, length: usize, _doorbell: bool) {
        self.outbox[self.sent].clear();
        self.outbox[self.sent].extend_from_slice(&self.slot[..length]);
        self.sent += 1;
    }
    fn leased(&self, lease: LeaseId) -> &[u8] {
        &self.inbox[lease.0 as usize]
    }
    fn release(&mut self, lease: LeaseId) {
        self.free.push(lease.0);
    }
}

impl BatchedWires for FixedWires {}

impl KeptFrames for FixedWires {}

impl PinnedFrames for FixedWires {}

struct Side {
    endpoint: Endpoint,
    wires: FixedWires,
    memory: VectorMemory,
}

fn side(node: u16, retry: Option<RetryConfig>) -> Side {
    let options = harness::options(RetransmissionMode::Selective);
    let graph = harness::ring(2);
    let config = MemberConfig {
        node: NodeId(node),
        incarnation: Incarnation(u64::from(node) + 1),
        epoch: 1,
        tenants: [Tenant(0); 2].into(),
        ether_type: 0x88b5,
        ports: vec![PortConfig {
            edge: 0,
            neighbour: NodeId(1 - node),
            plane: Plane(0),
            dimension: 0,
            credits: options.credits,
            channel_limits: Vec::new(),
            is_undivided: false,
            is_dateline: false,
            updates: options.credits.usual_updates(),
            retry,
            pause: None,
        }],
        graph: graph.into(),
        timers: harness::TIMERS,
        transport: options.transport,
        packing: options.packing,
        paths: options.paths,
        forwarding: options.forwarding,
        channels: options.channels,
        end_to_end_check: true,
        outstanding_loads_max: 64,
        frame_bytes_max: 4352,
    };
    let mut endpoint = Endpoint::new(config);
    let region = RegionConfig {
        region: harness::REGION,
        length: 1 << 20,
        key: harness::KEY,
        access: Access::ALL,
        tenant: Tenant(0),
    };
    endpoint.register(region).unwrap();
    let mut memory = VectorMemory::default();
    memory.add(harness::REGION, 1 << 20);
    Side { endpoint, wires: FixedWires::new(), memory }
}

/// Delivers the frames of `from` and lets `to` answer. Returns the number of frames.
fn carry(now: Instant, from: &mut Side, to: &mut Side) -> u64 {
    let count = std::mem::take(&mut from.wires.sent);
    for index in 0..count {
        let slot = to.wires.free.pop().expect("leases come back") as usize;
        std::mem::swap(&mut to.wires.inbox[slot], &mut from.wires.outbox[index]);
        let bytes = std::mem::take(&mut to.wires.inbox[slot]);
        to.endpoint.handle_frame(now, PortId(0), LeaseId(slot as u32), &bytes);
        to.wires.inbox[slot] = bytes;
    }
    settle(now, to);
    count as u64
}

fn settle(now: Instant, side: &mut Side) {
    if side.endpoint.poll_timeout() <= now {
        side.endpoint.handle_timeout(now);
    }
    drain(&mut side.endpoint, now, &mut side.wires, &mut side.memory, &mut |_| {});
}

#[test]
fn nothing_is_allocated_per_frame() {
    for retry in [None, Some(harness::RETRY)] {
        frames_without_allocation(retry);
    }
}

fn frames_without_allocation(retry: Option<RetryConfig>) {
    let (mut left, mut right) = (side(0, retry), side(1, retry));
    let mut now = Instant::ZERO;
    let mut frames = 0;
    let mut warm = None;
    let data = [5; 64];
    let target = harness::at(1, 4096);
    while frames < 120_000 {
        now = now + 1000;
        for _ in 0..16 {
            let store = Command::Store {
                operation: OperationId(1),
                target,
                data: &data,
                completion: Completion::Visible,
            };
            let _ = left.endpoint.handle_command(now, store);
            let _ = left.endpoint.handle_command(now, harness::fetch_add(2, target, 1));
            let _ = left.endpoint.handle_command(now, harness::load(3, target, harness::local(0, 200)));
        }
        let _ = left.endpoint.handle_command(now, harness::put(4, target, harness::local(8192, 20_000)));
        let _ = left.endpoint.handle_command(now, harness::get(5, target, harness::local(40_000, 20_000)));
        settle(now, &mut left);
        frames += carry(now, &mut left, &mut right);
        frames += carry(now, &mut right, &mut left);
        if warm.is_none() && frames > 20_000 {
            warm = Some(ALLOCATIONS.load(Ordering::Relaxed));
        }
    }
    let fresh = ALLOCATIONS.load(Ordering::Relaxed) - warm.expect("enough frames to get warm");
    assert_eq!(fresh, 0, "allocations over 100,000 frames");
}
