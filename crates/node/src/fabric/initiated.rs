//! Operations that kernels begin: a ring of commands that the driver of the node serves.
//!
//! `rackloom_gpu` defines the ring and its protocol ([`rackloom_gpu::commands`]). This file translates commands and submits them to the core
//! like any request. An activity checks the ring after every poll: new commands go to the core at once, and completions go back at once. A
//! node with an open ring does not sleep, because a kernel rings no doorbell.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rackloom_gpu::commands::{
    ANY_PEER, Command as DeviceCommand, CommandKind, CommandRing, HostKernel, QueueArgument, SIGNAL,
    SIGNAL_ADDS, Status,
};
use rackloom_protocol::{
    Atomic, AtomicKind, Command, Completion as Level, Key, LocalRange, NodeId, OperationError, RegionId,
    RemoteAddress, Signal, Width,
};

use super::completion::Completion;
use super::error::{Error, Invalid};
use super::node::Node;
use super::queue::Queue;
use crate::fabric::engine::activity::Activity;
use crate::fabric::engine::core::Core;
use crate::fabric::engine::order::NAMELESS;
use crate::fabric::engine::table::{Entry, Sink};
use crate::fabric::memory::device_memory::DeviceMemory;

/// Ring of operations that kernels begin on behalf of this node. Kernels take [`CommandQueue::argument`] and include `crates/gpu/kernels/rackloom.cuh`
/// ([`rackloom_gpu::kernels::DEVICE_HEADER`]), which documents the guarantees.
///
/// `Send` and `Sync`. Dropping it closes the ring: every waiting kernel gets a closed status. The memory of the ring is kept until the node
/// ends, because a kernel may still read it.
#[derive(Debug)]
pub struct CommandQueue {
    node: Node,
    is_over: Arc<AtomicBool>,
    argument: QueueArgument,
    host: Arc<HostKernel>,
}

impl Node {
    /// Opens a ring with at least `slots` slots, through which kernels begin operations of this node. It has at most
    /// [`rackloom_gpu::commands::SLOTS_MAX`] slots. Kernels address regions of this node and of others by number and key. The node must have a
    /// region on the device that runs the kernels.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a node without a region on a device; [`Error::System`] if the device has no memory for the ring;
    /// [`Error::Closed`].
    pub fn command_queue(&self, slots: u32) -> Result<CommandQueue, Error> {
        let device = self.with_core(|core| Ok::<_, Error>(core.member()?.memory_mut().device().cloned()))?;
        let device = device.ok_or(Error::Invalid(Invalid::NoDevice))?;
        let ring = CommandRing::new(device.lock().device(), slots).map_err(|cause| Error::System {
            what: "cannot make a ring",
            cause: std::io::Error::other(cause),
        })?;
        let (argument, host) = (ring.argument(), Arc::new(ring.host_kernel()));
        let is_over = Arc::new(AtomicBool::new(false));
        let serving = Serving {
            ring: Some(ring),
            ended: Queue::with_capacity(argument.slots as usize),
            waiting: None,
            is_over: Arc::clone(&is_over),
            device,
        };
        serving.device.watchers().fetch_add(1, Ordering::AcqRel);
        self.with_core(|core| {
            core.member()?;
            let operation = core.table.open(Entry { sink: Sink::Discard, ..Entry::default() });
            core.begin(operation, Box::new(serving));
            Ok::<_, Error>(())
        })?;
        // A thread that sleeps at the doorbell must wake, because kernels ring no doorbell.
        self.with_core(Core::visit);
        Ok(CommandQueue { node: self.clone(), is_over, argument, host })
    }
}

impl CommandQueue {
    /// Returns the argument for kernels, passed by value.
    #[must_use]
    pub const fn argument(&self) -> QueueArgument {
        self.argument
    }

    /// Returns a kernel that runs on the host, for tests and for machines without a device. A ring serves kernels of one kind only.
    #[must_use]
    pub fn host_kernel(&self) -> Arc<HostKernel> {
        Arc::clone(&self.host)
    }

    /// Returns the node.
    #[must_use]
    pub const fn node(&self) -> &Node {
        &self.node
    }
}

impl Drop for CommandQueue {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        self.node.with_core(Core::visit);
    }
}

/// A ring that is open.
struct Serving {
    /// Always `Some` until the end.
    ring: Option<CommandRing>,
    /// Completions of commands that the core has. The context is twice the ticket.
    ended: Arc<Queue>,
    /// Command that the core had no space for.
    waiting: Option<(u64, DeviceCommand)>,
    is_over: Arc<AtomicBool>,
    device: Arc<DeviceMemory>,
}

impl Activity<Core> for Serving {
    fn advance(&mut self, core: &mut Core) -> Option<Result<(), Error>> {
        if self.is_over.load(Ordering::Acquire) {
            return Some(Ok(()));
        }
        let ring = self.ring.as_mut()?;
        ring.set_losses(core.table.deaths.total());
        loop {
            let mut is_given = false;
            while let Some((ticket, requested)) = self.waiting.take().or_else(|| ring.poll()) {
                match give(core, &requested, ticket, &self.ended) {
                    Ok(Given::Under) => {}
                    Ok(Given::Over) => ring.complete(ticket, requested.is_posted(), Status::Done, 0),
                    Err(Error::Busy { .. }) => {
                        self.waiting = Some((ticket, requested));
                        break;
                    }
                    Err(error) => ring.complete(ticket, requested.is_posted(), status(&error), 0),
                }
                is_given = true;
            }
            while let Some(Completion { context: ticket, result, .. }) = self.ended.pop() {
                let (status, value) = match &result {
                    Ok(ended) => (Status::Done, ended.value),
                    Err(error) => (status(error), 0),
                };
                ring.complete(ticket, false, status, value);
            }
            if !is_given {
                return None;
            }
            // The poll sends new commands, and ends those that complete at once.
            core.poll();
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.device.watchers().fetch_sub(1, Ordering::AcqRel);
        if let Some(mut ring) = self.ring.take() {
            ring.close();
            self.device.keep_ring(ring);
        }
    }
}

/// State of a command that the core has accepted.
enum Given {
    /// Its completion follows.
    Under,
    /// It has no completion.
    Over,
}

fn give(core: &mut Core, requested: &DeviceCommand, ticket: u64, ended: &Arc<Queue>) -> Result<Given, Error> {
    let word = requested.operand.to_le_bytes();
    let command = command(requested, &word)?;
    if matches!(command, Command::Fence { .. }) {
        core.submit(command, Sink::Discard)?;
        return Ok(Given::Over);
    }
    if !requested.is_posted() {
        core.submit(command, Sink::Queue(Arc::clone(ended), ticket))?;
        return Ok(Given::Under);
    }
    let sink = if matches!(command, Command::Store { .. }) { Sink::Discard } else { Sink::Posted };
    core.submit(command, sink)?;
    Ok(Given::Over)
}

/// Translates a kernel's command for the core.
fn command<'w>(requested: &DeviceCommand, word: &'w [u8; 8]) -> Result<Command<'w>, Error> {
    let operation = NAMELESS;
    let node =
        |number: u32| u16::try_from(number).map(NodeId).map_err(|_| Error::Invalid(Invalid::UnknownNode));
    let peer = || node(requested.peer);
    let all_or_peer = || if requested.peer == ANY_PEER { Ok(None) } else { peer().map(Some) };
    let target = || -> Result<RemoteAddress, Error> {
        let (region, key) = (RegionId(requested.region), Key(requested.key));
        Ok(RemoteAddress { node: peer()?, region, offset: requested.offset, key })
    };
    let own = LocalRange {
        region: RegionId(requested.local_region),
        offset: requested.local_offset,
        length: requested.length,
    };
    Ok(match requested.kind().ok_or(Error::Invalid(Invalid::UnknownCommand))? {
        CommandKind::Store => {
            let data = word.get(..requested.width() as usize).filter(|data| matches!(data.len(), 4 | 8));
            let data = data.ok_or(Error::Invalid(Invalid::StoreWidth))?;
            let completion = if requested.is_posted() { Level::Accepted } else { Level::Visible };
            Command::Store { operation, target: target()?, data, completion }
        }
        CommandKind::Load => Command::Load { operation, target: target()?, into: own },
        CommandKind::Get => Command::Get { operation, target: target()?, into: own },
        CommandKind::Put => {
            let signal = (requested.flags & SIGNAL != 0).then(|| signal(requested, target()?)).transpose()?;
            Command::Put { operation, target: target()?, source: own, signal }
        }
        kind @ (CommandKind::FetchAdd | CommandKind::CompareSwap | CommandKind::Swap) => {
            Command::Atomic { operation, target: target()?, atomic: atomic(requested, kind)? }
        }
        CommandKind::Flush => Command::Flush { operation, target: all_or_peer()? },
        CommandKind::Fence => Command::Fence { target: all_or_peer()? },
    })
}

fn signal(requested: &DeviceCommand, data: RemoteAddress) -> Result<Signal, Error> {
    let (region, key) = (RegionId(requested.signal_region), Key(requested.signal_key));
    let word = RemoteAddress { region, offset: requested.signal_offset, key, ..data };
    let value = requested.signal_value;
    Ok(if requested.flags & SIGNAL_ADDS != 0 { Signal::add(word, value) } else { Signal::set(word, value) })
}

fn atomic(requested: &DeviceCommand, kind: CommandKind) -> Result<Atomic, Error> {
    let width = match requested.width() {
        4 => Width::Four,
        8 => Width::Eight,
        _ => return Err(Error::Invalid(Invalid::AtomicWidth)),
    };
    let kind = match kind {
        CommandKind::FetchAdd => AtomicKind::FetchAdd,
        CommandKind::CompareSwap => AtomicKind::CompareSwap,
        _ => AtomicKind::Swap,
    };
    Ok(Atomic { kind, width, operand: requested.operand, compare: requested.compare })
}

/// Translates an error for a kernel.
const fn status(error: &Error) -> Status {
    match error {
        Error::PeerLost { maybe_done: true, .. } | Error::PeerLeft { maybe_done: true, .. } => {
            Status::OutcomeUnknown
        }
        Error::PeerLost { .. } | Error::PeerLeft { .. } => Status::Lost,
        Error::Refused { .. } | Error::Failed(OperationError::EarlierFailure) => Status::Refused,
        Error::Closed => Status::Closed,
        _ => Status::Invalid,
    }
}
