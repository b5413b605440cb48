//! The background thread, which serves a node while the application computes.
//!
//! It sleeps at the doorbell, handles frames that arrive, and stands aside while another thread drives the node or visits it often. It ends with
//! the node.

use std::io;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use rackloom_protocol::Instant;

use super::core::Core;
use super::node_engine::Engine;

/// Starts the thread.
pub(in crate::fabric) fn start(engine: &Arc<Engine>) -> io::Result<JoinHandle<()>> {
    let name = format!("rackloom-{}", engine.node);
    let engine = Arc::clone(engine);
    Builder::new().name(name).spawn(move || live(&engine))
}

/// Polls the node, and counts the poll as one of this thread.
fn poll(core: &mut Core) -> bool {
    core.background_polls += 1;
    core.poll()
}

fn live(engine: &Engine) {
    let mut held = engine.hold_in_background();
    while held.core().member.is_some() {
        let core = held.core();
        let listens = engine.listens_beside_polls(core);
        if engine.take_was_polled() && !listens {
            // Visits are checked now and then. A thread that drives for long wakes this thread when it stops.
            held = held.rest();
        } else if core.has_driver || !core.standby.is_empty() {
            held = held.stand_aside();
        } else if poll(held.core()) {
            if engine.is_wanted() || !held.core().table.to_wake.is_empty() {
                held = held.yield_lock();
            }
        } else if engine.stays_awake_for_tasks(held.core()) || listens && engine.stays_awake(held.core()) {
            if engine.is_wanted() {
                held = held.yield_lock();
            }
        } else {
            held = held.sleep(Instant::NEVER, false);
            // `sleep` returns at once, with the lock still held, while a device is at work.
            if engine.is_wanted() {
                held = held.yield_lock();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;
    use std::time::{Duration, Instant};

    use crate::fabric::engine::core::Background;
    use crate::fabric::{Condition, Fabric, Plan, Queue, RegionOptions};

    const LOOKS: usize = 50;

    #[test]
    fn a_pause_of_the_polls_ends_the_rest() {
        let plan = Plan::parse("name: two\nshape: {ring: {nodes: 2}}\n", "test").unwrap();
        let fabric = Fabric::local(&plan).unwrap();
        let (node, queue) = (&fabric.nodes()[0], Queue::with_capacity(1));
        let is_resting = || node.engine().hold_for_task().core().background == Background::Resting;
        let poll_until = |done: &dyn Fn() -> bool| {
            let begun = Instant::now();
            while !done() {
                assert!(node.poll(&queue).is_none());
                assert!(begun.elapsed() < Duration::from_secs(10));
            }
        };
        poll_until(&is_resting);
        node.pause_polls();
        assert!(!is_resting());
        poll_until(&is_resting);

        // With a processor of its own it polls as well, and does not rest meanwhile.
        node.engine().hold_for_task().core().listens_until = rackloom_protocol::Instant::NEVER;
        node.pause_polls();
        let background_polls = || node.engine().hold_for_task().core().background_polls;
        let before = background_polls();
        poll_until(&|| {
            assert!(!is_resting());
            background_polls() > before + 10
        });
    }

    /// A waiting driver that lets the background thread in must not look like a visitor. Otherwise the thread would return every 100 us, and
    /// take the lock from the driver each time.
    #[test]
    fn the_background_thread_does_not_disturb_a_long_wait() {
        let plan = Plan::parse("name: two\nshape: {ring: {nodes: 2}}\n", "test").unwrap();
        let fabric = Fabric::local(&plan).unwrap();
        let [initiator, target] = fabric.nodes() else { unreachable!() };
        let words = target.allocate(RegionOptions::new(1, 0x5eed), 16).unwrap();
        let is_over = AtomicBool::new(false);
        let left_alone = thread::scope(|scope| {
            scope.spawn(|| {
                let mut driver = target.drive().unwrap();
                while target.engine().hold_for_task().core().background != Background::Resting {
                    driver.poll(&mut Vec::new());
                }
                driver.wait(target.wait_until(&words, 0, Condition::AtLeast, 1, initiator.id())).unwrap();
            });
            // Traffic that keeps the driver awake.
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    initiator.fetch_add::<u64>(words.address(8), 1).wait().unwrap();
                }
                initiator.store(words.address(0), &1_u64.to_ne_bytes()).wait().unwrap();
            });
            // The check takes the lock as well, so it is made rarely.
            let look = |_: &usize| {
                thread::park_timeout(Duration::from_millis(10));
                target.engine().hold_for_task().core().background == Background::Aside
            };
            let left_alone = (0..LOOKS).filter(look).count();
            is_over.store(true, Ordering::Relaxed);
            left_alone
        });
        assert!(left_alone > LOOKS / 2, "at {left_alone} of {LOOKS} looks");
    }
}
