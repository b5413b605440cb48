//! Memory of a node at rest, counted at the allocator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use rackloom_plan::Plan;
use rackloom_protocol::NodeId;
use rackloom_simulator::Simulation;

/// Maximum for an idle node, its share of the switch and the links included.
const NODE_BYTES_MAX: i64 = 64 << 10;

thread_local! {
    static LIVE_BYTES: Cell<i64> = const { Cell::new(0) };
}

struct Counted;

// SAFETY: a global allocator cannot be written without `unsafe`; every call is passed unchanged to the system's allocator,
// and counting neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE_BYTES.with(|live| live.set(live.get() + layout.size() as i64));
        // SAFETY: the caller's promises are the ones that the system's allocator requires.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE_BYTES.with(|live| live.set(live.get() - layout.size() as i64));
        // SAFETY: the memory to free comes from the system's allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counted = Counted;

/// Returns the bytes per node of a star that has come up and rests, without frames in flight.
fn idle_node_bytes(nodes: u16) -> i64 {
    let text = format!("{{name: idle, shape: {{star: {{nodes: {nodes}}}}}, job: none}}");
    let plan = Plan::parse(&text, "test").unwrap_or_else(|error| panic!("{error}"));
    let before = LIVE_BYTES.get();
    let mut simulation = Simulation::new(&plan, 1, Vec::new());
    let reaches_all =
        |simulation: &Simulation| (0..nodes).all(|node| simulation.endpoint(NodeId(node)).reaches_all());
    for _ in 0..1_000 {
        if reaches_all(&simulation) {
            break;
        }
        let until = simulation.now() + 1_000_000;
        simulation.step_until(until).unwrap();
    }
    assert!(reaches_all(&simulation), "the rack comes up");
    let until = simulation.now() + 1_000_000_000;
    simulation.step_until(until).unwrap();
    (LIVE_BYTES.get() - before) / i64::from(nodes)
}

#[test]
fn an_idle_node_takes_less_than_64_kib() {
    for nodes in [16, 64, 256, 1024] {
        let bytes = idle_node_bytes(nodes);
        println!("{nodes} nodes: {bytes} bytes each");
        assert!(bytes < NODE_BYTES_MAX, "{nodes} nodes take {bytes} bytes each");
    }
    // Other sizes are only printed: a member's table of all others grows with the rack (docs/measuring.md).
    if let Ok(nodes) = std::env::var("RACKLOOM_IDLE_NODES") {
        println!("{nodes} nodes: {} bytes each", idle_node_bytes(nodes.parse().expect("a number of nodes")));
    }
}
