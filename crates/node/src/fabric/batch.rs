//! Several requests begun together, so that what goes to one peer shares frames.
//!
//! A request that is submitted alone leaves at once: the node makes a turn for it, and a turn sends whatever it can. A batch
//! is given to the core as a whole and then sent in one turn; the core packs what stands in line for one peer into one frame,
//! as far as the rack's packing allows. Nothing is held back: what a batch gains, it gains by standing in line together.

use std::sync::Arc;

use rackloom_protocol::OperationId;

use super::engine::Engine;
use super::error::Error;
use super::order::Order;
use super::queue::{Completion, Queue};
use super::request::{Outcome, Request};
use super::table::Sink;

/// Requests of one node that have not begun. `'a` is the life of the bytes that stores carry.
///
/// `Send` and `Sync`. It may be filled and submitted any number of times; its room is kept, so that a batch that is used again
/// allocates nothing.
#[derive(Debug)]
pub struct Batch<'a> {
    engine: Arc<Engine>,
    orders: Vec<(Order<'a>, u64)>,
}

impl<'a> Batch<'a> {
    pub(super) const fn new(engine: Arc<Engine>) -> Self {
        Self { engine, orders: Vec::new() }
    }

    /// Add a request, marked with `context`. It begins when the batch is submitted.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the request belongs to another node, or cannot be carried out by anybody.
    pub fn add<T: Outcome>(&mut self, request: Request<'a, T>, context: u64) -> Result<(), Error> {
        let order = request.into_order(&self.engine)?;
        self.orders.push((order, context));
        Ok(())
    }

    /// Requests that wait to be submitted.
    #[must_use]
    pub fn len(&self) -> usize {
        self.orders.len()
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.orders.is_empty()
    }

    /// Begin the requests in the order in which they were added, up to the first whose peer's queue is full; that one and
    /// those behind it stay in the batch: poll, and submit again. Each completion goes to `queue`, also that of a request
    /// which is refused at once. Returns how many were taken.
    pub fn submit(&mut self, queue: &Arc<Queue>) -> usize {
        let engine = Arc::clone(&self.engine);
        let mut held = engine.hold();
        let core = held.core();
        let mut taken = 0;
        for (order, context) in &self.orders {
            match core.give(order, Sink::Queue(Arc::clone(queue), *context)) {
                Ok(_) => {}
                Err(Error::Busy { .. }) => break,
                Err(error) => {
                    let (context, operation) = (*context, OperationId(0));
                    let completion = Completion { context, operation, result: Err(error) };
                    core.table.to_wake.extend(queue.push(completion));
                }
            }
            taken += 1;
        }
        if taken > 0 {
            core.visit_to_send();
        }
        // Regions among the orders take the lock when they go.
        drop(held);
        self.orders.drain(..taken);
        taken
    }
}
