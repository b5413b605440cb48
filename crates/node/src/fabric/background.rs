//! The thread that keeps a node alive while the application computes.
//!
//! It sleeps on the doorbell, serves what comes, and stands aside as long as anybody else drives or visits the node often. It
//! ends with the node.

use std::io;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use rackloom_protocol::Instant;

use super::engine::{Core, Engine};

/// Start it.
pub(super) fn start(engine: &Arc<Engine>) -> io::Result<JoinHandle<()>> {
    let name = format!("rackloom-{}", engine.node);
    let engine = Arc::clone(engine);
    Builder::new().name(name).spawn(move || live(&engine))
}

/// A turn of this thread's.
fn turn(core: &mut Core) -> bool {
    core.background_turns += 1;
    core.turn()
}

fn live(engine: &Engine) {
    let mut held = engine.hold_in_background();
    while !held.core().has_left {
        let core = held.core();
        if engine.is_attended() {
            // Those who come and go are looked after now and then; one who drives for long says when he stops.
            held = held.rest();
        } else if core.has_driver || !core.standby.is_empty() {
            held = held.stand_aside();
        } else if turn(held.core()) {
            if engine.is_wanted() || !held.core().table.to_wake.is_empty() {
                held = held.give_way();
            }
        } else if engine.stays_awake_for_tasks(held.core()) {
            if engine.is_wanted() {
                held = held.give_way();
            }
        } else {
            held = held.sleep(Instant::NEVER, false);
            // Where there was no sleep, because a device is at work, the lock was not let go of either.
            if engine.is_wanted() {
                held = held.give_way();
            }
        }
    }
}
