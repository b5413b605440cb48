//! Requests that begin together, so that those to one peer share frames.
//!
//! A request that is submitted alone is sent at once: the node polls for it, and a poll sends all frames that are ready. A batch is given to
//! the core as a whole and sent in one poll. The core packs the operations that wait for one peer into one frame, as far as the rack's
//! packing allows. No operation is delayed: the gain comes from waiting in the queue together.

use std::sync::Arc;

use rackloom_protocol::OperationId;

use super::completion::Completion;
use super::error::Error;
use super::queue::Queue;
use super::request::{Outcome, Request};
use crate::fabric::engine::node_engine::Engine;
use crate::fabric::engine::order::Order;
use crate::fabric::engine::table::Sink;

/// Requests of one node that have not begun. `'a` is the lifetime of the bytes of stores.
///
/// `Send` and `Sync`. A batch may be filled and submitted any number of times. It keeps its capacity, so that a batch that is used again
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

    /// Adds a request, with `context` for its completion. It begins when the batch is submitted.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the request belongs to another node, or is not valid on any node.
    pub fn add<T: Outcome>(&mut self, request: Request<'a, T>, context: u64) -> Result<(), Error> {
        let order = request.into_order(&self.engine)?;
        self.orders.push((order, context));
        Ok(())
    }

    /// Returns the number of requests in the batch.
    #[must_use]
    pub fn len(&self) -> usize {
        self.orders.len()
    }

    /// Returns `true` if the batch has no requests.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.orders.is_empty()
    }

    /// Begins the requests in the order in which they were added, up to the first whose peer's queue is full. That request and the
    /// following ones stay in the batch: poll, and submit again. All completions arrive in `queue`, including that of a request that is
    /// refused at once. Returns the number of requests that began.
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
        // Dropping the regions of orders takes the lock.
        drop(held);
        self.orders.drain(..taken);
        taken
    }
}
