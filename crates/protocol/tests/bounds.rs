//! Memory growth of a node whose neighbour ignores every limit: bounded by a stated number of bytes.
//!
//! Node 1 gets made-up packets in the name of node 0, a million operations of each kind. Node 0 never
//! acknowledges an answer. The allocator counts the bytes that node 1 holds.

mod harness;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use harness::*;
use rackloom_protocol::memory::vector::VectorMemory;
use rackloom_protocol::wire::layout;
use rackloom_protocol::wire::packed::Operation;
use rackloom_protocol::*;

thread_local! {
    static LIVE: Cell<i64> = const { Cell::new(0) };
}

struct Counting;

fn count(bytes: i64) {
    let _ = LIVE.try_with(|live| live.set(live.get() + bytes));
}

// SAFETY: every call is passed on unchanged to the system allocator; counting touches no memory of the caller.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller's promise about `layout` is passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: the caller's promise about `pointer` and `layout` is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(new_size as i64 - layout.size() as i64);
        // SAFETY: the caller's promise about `pointer`, `layout` and `new_size` is passed on.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const OPERATIONS_SENT: usize = 1_000_000;
/// Bytes by which node 1 may grow, leased frames included. The window is 256 packets of at most 4,352 bytes,
/// and a class of answers has at most two windows of packets and a few more.
const BYTES_MAX: i64 = 8 << 20;

/// Node 1, and a data frame that node 0 has sent to it.
struct Victim {
    fabric: Fabric,
    frame: Vec<u8>,
    leases: BTreeMap<u32, Vec<u8>>,
    next_lease: u32,
    memory: VectorMemory,
    /// Requests to memory. They are not answered.
    is_memory_stuck: bool,
    /// Number of the next packet and of its first operation, by class.
    next: [(u32, u32); 4],
}

impl Victim {
    fn new() -> Self {
        let mut options = options(RetransmissionMode::Selective);
        (options.transport.window_packets, options.transport.reorder_packets) = (256, 256);
        let mut fabric = Fabric::up(ring(2), &options);
        let caught = Rc::new(RefCell::new(Vec::new()));
        let sink = caught.clone();
        fabric.filter = Box::new(move |_, _, forward, bytes| {
            let is_data = bytes[layout::VERSION_KIND] & 15 == 1;
            if forward && is_data && sink.borrow().is_empty() {
                *sink.borrow_mut() = bytes.clone();
            }
            !is_data
        });
        fabric.command(0, store(1, at(1, 0), &[7; 8])).unwrap();
        // Offers of node 1, for pulls.
        let send = |id| Command::Send {
            operation: OperationId(id),
            target: NodeId(0),
            tag: 1,
            source: local(0, 9_000),
        };
        for id in 10..20 {
            fabric.command(1, send(id)).unwrap();
        }
        let frame = caught.borrow().clone();
        let mut memory = VectorMemory::default();
        memory.add(REGION, REGION_BYTES);
        Self {
            fabric,
            frame,
            leases: BTreeMap::new(),
            next_lease: 0,
            memory,
            is_memory_stuck: false,
            next: [(0, 0); 4],
        }
    }

    fn dropped(&mut self, reason: DropReason) -> u64 {
        self.fabric.counters(1, 0).dropped[reason as usize]
    }

    /// Delivers a packet of these operations to node 1, and executes its memory requests. None of its frames are sent
    /// and none of its events polled. Returns true if the packet was accepted.
    fn give(&mut self, class: Class, key: Key, operation: &Operation<'_>, count: usize) -> bool {
        let (psn, first) = self.next[class.index()];
        let mut frame = self.frame[..layout::OPERATIONS].to_vec();
        Operation::Select { region: REGION, key }.encode(&mut frame);
        for _ in 0..count {
            operation.encode(&mut frame);
        }
        assert!(frame.len() <= 4352, "{} bytes", frame.len());
        frame[layout::CLASS] = class as u8;
        frame[layout::OPERATION_COUNT] = count as u8;
        layout::put_u32(&mut frame, layout::PSN, psn);
        layout::put_u32(&mut frame, layout::FIRST_OPERATION, first);
        let length = frame.len() - layout::FABRIC;
        layout::put_u16(&mut frame, layout::LENGTH, length as u16);
        wire::seal_end_to_end(&mut frame);
        let check = wire::hop_check(&frame, false);
        layout::put_u32(&mut frame, layout::HOP_CHECK, check);

        let before = self.dropped(DropReason::ServingFull);
        let now = self.fabric.now;
        let lease = LeaseId(self.next_lease);
        self.next_lease = (self.next_lease + 1) % 1_000_000;
        self.leases.insert(lease.0, frame.clone());
        let endpoint = self.fabric.endpoint(1);
        endpoint.handle_frame(now, PortId(0), lease, &frame);
        if !self.is_memory_stuck {
            while let Some(request) = endpoint.poll_memory() {
                let leased = match request.access {
                    MemoryAccess::Write { lease, .. } => self.leases[&lease.0].clone(),
                    _ => Vec::new(),
                };
                let token = request.token;
                let done = self.memory.execute(&request, &leased).expect("it answers at once");
                endpoint.handle_memory_done(now, token, done);
            }
        }
        while let Some(lease) = endpoint.poll_release() {
            self.leases.remove(&lease.0).expect("a lease is released once");
        }
        let is_taken = self.dropped(DropReason::ServingFull) == before;
        if is_taken {
            self.next[class.index()] = (psn.wrapping_add(1), first.wrapping_add(count as u32));
        }
        is_taken
    }
}

/// Result of a flood: growth of node 1 in bytes, packets accepted, packets dropped.
fn flood(
    mut victim: Victim,
    class: Class,
    key: Key,
    operation: &Operation<'_>,
    count: usize,
) -> (i64, usize, usize) {
    let before = LIVE.get();
    let (mut taken, mut refused, mut peak) = (0, 0, 0);
    for _ in 0..OPERATIONS_SENT / count {
        if victim.give(class, key, operation, count) {
            taken += 1;
        } else {
            refused += 1;
        }
        peak = peak.max(LIVE.get() - before);
    }
    (peak, taken, refused)
}

fn assert_bounded(what: &str, class: Class, key: Key, operation: &Operation<'_>, count: usize) {
    for is_memory_stuck in [false, true] {
        let victim = Victim { is_memory_stuck, ..Victim::new() };
        let (peak, taken, refused) = flood(victim, class, key, operation, count);
        println!(
            "{what}, memory stuck {is_memory_stuck}: {peak} bytes at most, {taken} packets taken, {refused} refused"
        );
        assert!(peak <= BYTES_MAX, "{what}, memory stuck {is_memory_stuck}: {peak} bytes");
    }
}

// W-84
#[test]
fn loads_that_are_never_acknowledged_use_bounded_memory() {
    let load = Operation::Load { offset: 0, length: 256 };
    assert_bounded("loads", Class::Request, KEY, &load, 200);
    assert_bounded("loads in the bulk class", Class::Bulk, KEY, &load, 200);
}

// W-84
#[test]
fn atomics_use_bounded_memory() {
    let atomic = Atomic { kind: AtomicKind::FetchAdd, width: Width::Eight, operand: 1, compare: 0 };
    assert_bounded("atomics", Class::Request, KEY, &Operation::Atomic { offset: 0, atomic }, 140);
}

// W-84
#[test]
fn gets_use_bounded_memory() {
    assert_bounded("gets", Class::Bulk, KEY, &Operation::Get { offset: 0, length: 1 << 20 }, 200);
}

// W-84
#[test]
fn refused_operations_use_bounded_memory() {
    let store = Operation::Store { offset: 0, data: &[1; 4] };
    assert_bounded("stores with a wrong key", Class::Request, Key(1), &store, 200);
    assert_bounded(
        "puts beyond the region",
        Class::Bulk,
        KEY,
        &Operation::Get { offset: u64::MAX, length: 8 },
        200,
    );
    assert_bounded("requests as replies", Class::Reply, KEY, &Operation::Load { offset: 0, length: 8 }, 200);
}

// W-84
#[test]
fn messages_without_a_receive_use_bounded_memory() {
    assert_bounded("empty messages", Class::Request, KEY, &Operation::Message { tag: 1, data: &[] }, 200);
    assert_bounded("messages", Class::Request, KEY, &Operation::Message { tag: 1, data: &[1; 4] }, 200);
    assert_bounded("offers", Class::Request, KEY, &Operation::Offer { tag: 1, length: 5_000 }, 200);
}

// W-84
#[test]
fn stores_and_signals_use_bounded_memory() {
    assert_bounded("stores", Class::Request, KEY, &Operation::Store { offset: 0, data: &[1; 4] }, 200);
    let signal = Operation::Signal { offset: 0, kind: SignalKind::Add, value: 1, counted: 0 };
    assert_bounded("signals", Class::Bulk, KEY, &signal, 170);
}

// W-85
#[test]
fn an_offer_is_pulled_once() {
    assert_bounded("pulls", Class::Bulk, KEY, &Operation::Pull { offer: 0, length: 9_000 }, 200);
    let mut victim = Victim::new();
    assert!(victim.give(Class::Bulk, KEY, &Operation::Pull { offer: 0, length: 9_000 }, 1));
    let refusals = |victim: &mut Victim| {
        let mut refusals = 0;
        while let Some(event) = victim.fabric.endpoint(1).poll_event() {
            refusals += usize::from(matches!(event, Event::AccessRefused { .. }));
        }
        refusals
    };
    assert_eq!(refusals(&mut victim), 0, "the first pull is served");
    assert!(victim.give(Class::Bulk, KEY, &Operation::Pull { offer: 0, length: 9_000 }, 1));
    assert_eq!(refusals(&mut victim), 1, "the second one is refused");
}
