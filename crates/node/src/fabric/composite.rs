//! Transfers of several pieces with one completion: lists, blocks at equal distances, and a put with an immediate value.
//!
//! The pieces are puts or gets of the core. At most [`PIECES_MAX`] of them are in flight at a time. A last operation may follow when all pieces
//! are visible. The whole is an activity: it advances with the polls of the node.

use std::collections::VecDeque;
use std::sync::Arc;

use rackloom_protocol::{Command, LocalRange, NodeId, OperationId, RemoteAddress};

use super::error::{Error, Invalid};
use super::node::Node;
use super::pending::Pending;
use super::queue::Queue;
use crate::fabric::engine::activity::Activity;
use crate::fabric::engine::core::Core;
use crate::fabric::engine::node_engine::Engine;
use crate::fabric::engine::table::{Entry, Sink};
use crate::fabric::memory::region::{Region, Slice};

/// Largest number of pieces in flight.
const PIECES_MAX: usize = 64;
/// Identifier of a command that the engine names.
const NAMELESS: OperationId = OperationId(0);

/// Blocks at equal distances, in the memory of this node and of the target: a column of a matrix, or a face of a cube. Distances count from the
/// beginning of a block to that of the next one, in bytes. They may be shorter than a block.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strided {
    /// Number of blocks.
    pub blocks: u64,
    /// Length of a block, at least one byte.
    pub block_bytes: u64,
    /// Distance of two blocks in the slice of this node.
    pub local_stride: u64,
    /// Distance of two blocks at the remote address.
    pub remote_stride: u64,
}

impl Strided {
    /// Returns the length from the first byte of the first block to the last byte of the last one, or `None` beyond the address space.
    fn span(&self, stride: u64) -> Option<u64> {
        let Some(gaps) = self.blocks.checked_sub(1) else { return Some(0) };
        gaps.checked_mul(stride)?.checked_add(self.block_bytes)
    }
}

/// Direction of the pieces.
#[derive(Clone, Copy, Debug)]
enum Direction {
    Put,
    Get,
}

impl Direction {
    const fn command(self, local: LocalRange, remote: RemoteAddress) -> Command<'static> {
        match self {
            Self::Put => Command::Put { operation: NAMELESS, target: remote, source: local, signal: None },
            Self::Get => Command::Get { operation: NAMELESS, target: remote, into: local },
        }
    }
}

/// Several transfers that have not begun, with one completion. It succeeds when all of them have. After the first failure no further one
/// begins, and the failure is reported when those in flight have ended; some of the others may have happened.
///
/// `Send` and `Sync`. Dropping it before it has begun does nothing.
#[must_use = "a request does nothing until it is waited for, started or submitted"]
#[derive(Debug)]
pub struct CompositeRequest {
    engine: Arc<Engine>,
    pieces: Result<Pieces, Error>,
}

impl CompositeRequest {
    /// Begins the transfers, and blocks until all have ended.
    ///
    /// # Errors
    /// Those of the single transfers.
    pub fn wait(self) -> Result<(), Error> {
        self.start()?.wait()
    }

    /// Begins the transfers now, and returns their handle. They advance in the background. Cancelling the handle lets no further transfer begin.
    ///
    /// # Errors
    /// Errors that are known at once. The handle returns all others.
    pub fn start(self) -> Result<Pending<()>, Error> {
        let engine = Arc::clone(&self.engine);
        let operation = self.hand_over(Sink::Request(None))?;
        Ok(Pending::of_activity(engine, operation))
    }

    /// Begins the transfers. Their one completion, with `context`, arrives in `queue`.
    ///
    /// # Errors
    /// Errors that are known at once. The completion reports all others.
    pub fn submit(self, queue: &Arc<Queue>, context: u64) -> Result<OperationId, Error> {
        self.hand_over(Sink::Queue(Arc::clone(queue), context))
    }

    fn hand_over(self, sink: Sink) -> Result<OperationId, Error> {
        let pieces = self.pieces?;
        let mut held = self.engine.hold();
        let core = held.core();
        core.member()?;
        let operation = core.table.open(Entry { sink, ..Entry::default() });
        core.begin(operation, Box::new(pieces));
        Ok(operation)
    }
}

/// Transfers in progress.
struct Pieces {
    engine: Arc<Engine>,
    /// Commands that have not begun.
    rest: Box<dyn Iterator<Item = Command<'static>> + Send + Sync>,
    /// Command that found a full queue.
    refused: Option<Command<'static>>,
    /// Command that follows when all pieces have ended.
    last: Option<Command<'static>>,
    in_flight: VecDeque<OperationId>,
    failure: Option<Error>,
    /// Regions that the pieces use.
    _regions: Vec<Region>,
}

impl std::fmt::Debug for Pieces {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { in_flight, failure, .. } = self;
        let mut fields = formatter.debug_struct("Pieces");
        fields.field("in_flight", in_flight).field("failure", failure).finish_non_exhaustive()
    }
}

impl Pieces {
    /// Takes the results of pieces that have ended.
    fn collect(&mut self, core: &mut Core) {
        let failure = &mut self.failure;
        self.in_flight.retain(|operation| match core.table.take(*operation) {
            None => true,
            Some(Ok(_)) => false,
            Some(Err(error)) => {
                failure.get_or_insert(error);
                false
            }
        });
    }

    /// Begins as many pieces as the window and the core's queues take. Returns `true` if one began.
    fn issue(&mut self, core: &mut Core) -> bool {
        let mut has_begun = false;
        while self.failure.is_none() && self.in_flight.len() < PIECES_MAX {
            let Some(command) = self.refused.take().or_else(|| self.rest.next()) else { break };
            match core.submit(command, Sink::Request(None)) {
                Ok(operation) => self.in_flight.push_back(operation),
                Err(Error::Busy { .. }) => {
                    self.refused = Some(command);
                    break;
                }
                Err(error) => self.failure = Some(error),
            }
            has_begun = true;
        }
        has_begun
    }
}

impl Activity<Core> for Pieces {
    fn advance(&mut self, core: &mut Core) -> Option<Result<(), Error>> {
        loop {
            self.collect(core);
            if self.issue(core) {
                core.poll();
                continue;
            }
            if !self.in_flight.is_empty() || (self.refused.is_some() && self.failure.is_none()) {
                return None;
            }
            if let Some(failure) = self.failure.take() {
                return Some(Err(failure));
            }
            match self.last.take() {
                Some(last) => self.refused = Some(last),
                None => return Some(Ok(())),
            }
        }
    }
}

impl Drop for Pieces {
    fn drop(&mut self) {
        if self.in_flight.is_empty() {
            return;
        }
        let engine = Arc::clone(&self.engine);
        let mut held = engine.hold();
        for operation in self.in_flight.drain(..) {
            held.core().table.abandon(operation);
        }
    }
}

impl Node {
    /// Copies each slice of this node to its remote address. Targets may be different nodes. Pieces may arrive in any order.
    ///
    /// # Errors
    /// On completion: those of [`Node::put`].
    pub fn put_vector(&self, pieces: &[(Slice, RemoteAddress)]) -> CompositeRequest {
        self.vector(Direction::Put, pieces)
    }

    /// Copies bytes at each remote address to its slice of this node. Sources may be different nodes.
    ///
    /// # Errors
    /// On completion: those of [`Node::get`].
    pub fn get_vector(&self, pieces: &[(Slice, RemoteAddress)]) -> CompositeRequest {
        self.vector(Direction::Get, pieces)
    }

    /// Copies blocks of a slice of this node to blocks at `target`.
    ///
    /// # Errors
    /// On completion: those of [`Node::put`]; [`Error::Invalid`] if the blocks are not within the slice.
    pub fn put_strided(&self, source: &Slice, target: RemoteAddress, layout: Strided) -> CompositeRequest {
        self.strided(Direction::Put, source, target, layout)
    }

    /// Copies blocks at `source` to blocks of a slice of this node.
    ///
    /// # Errors
    /// On completion: those of [`Node::get`]; [`Error::Invalid`] if the blocks are not within the slice.
    pub fn get_strided(&self, source: RemoteAddress, into: &Slice, layout: Strided) -> CompositeRequest {
        self.strided(Direction::Get, into, source, layout)
    }

    /// Copies a slice of this node to `target`, and then sends the target an empty message with the tag `immediate`. The message is sent when the
    /// data are visible, so the receive ([`Node::receive`]) that takes it completes behind them, with the value as the tag. Other libraries call
    /// this a write with immediate data.
    ///
    /// # Errors
    /// On completion: those of [`Node::put`] and [`Node::send`]. No message is sent if the put fails.
    pub fn put_with_immediate(
        &self,
        source: &Slice,
        target: RemoteAddress,
        immediate: u64,
    ) -> CompositeRequest {
        let piece = Direction::Put.command(source.range, target);
        let empty = LocalRange { length: 0, ..source.range };
        let peer: NodeId = target.node;
        let message = Command::Send { operation: NAMELESS, target: peer, tag: immediate, source: empty };
        self.composite(std::iter::once(piece), Some(message), vec![source.region.clone()])
    }

    fn vector(&self, direction: Direction, pieces: &[(Slice, RemoteAddress)]) -> CompositeRequest {
        let commands: Vec<_> =
            pieces.iter().map(|(slice, remote)| direction.command(slice.range, *remote)).collect();
        let mut regions: Vec<Region> = Vec::new();
        for (slice, _) in pieces {
            if !regions.iter().any(|known| Arc::ptr_eq(&known.inner, &slice.region.inner)) {
                regions.push(slice.region.clone());
            }
        }
        self.composite(commands.into_iter(), None, regions)
    }

    fn strided(
        &self,
        direction: Direction,
        slice: &Slice,
        remote: RemoteAddress,
        layout: Strided,
    ) -> CompositeRequest {
        let end = layout.span(layout.remote_stride).and_then(|span| remote.offset.checked_add(span));
        let is_within =
            layout.span(layout.local_stride).is_some_and(|span| span <= slice.range.length) && end.is_some();
        if !is_within {
            let pieces = Err(Error::Invalid(Invalid::OutsideRegion));
            return CompositeRequest { engine: Arc::clone(self.engine()), pieces };
        }
        let range = slice.range;
        let commands = (0..layout.blocks).map(move |block| {
            let offset = range.offset + block * layout.local_stride;
            let local = LocalRange { offset, length: layout.block_bytes, ..range };
            let offset = remote.offset + block * layout.remote_stride;
            direction.command(local, RemoteAddress { offset, ..remote })
        });
        self.composite(commands, None, vec![slice.region.clone()])
    }

    fn composite(
        &self,
        commands: impl Iterator<Item = Command<'static>> + Send + Sync + 'static,
        last: Option<Command<'static>>,
        regions: Vec<Region>,
    ) -> CompositeRequest {
        let engine = Arc::clone(self.engine());
        let are_ours = regions.iter().all(|region| Arc::ptr_eq(&region.inner.engine, &engine));
        let pieces = Pieces {
            engine: Arc::clone(&engine),
            rest: Box::new(commands),
            refused: None,
            last,
            in_flight: VecDeque::new(),
            failure: None,
            _regions: regions,
        };
        let pieces = if are_ours { Ok(pieces) } else { Err(Error::Invalid(Invalid::OtherNode)) };
        CompositeRequest { engine, pieces }
    }
}
