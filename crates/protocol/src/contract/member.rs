//! Member of the fabric as its engine sees it: five inputs, five outputs, and optional extensions.

use super::memory::DirectMemory;
use crate::error::CommandRefused;
use crate::event::Event;
use crate::ids::{PortId, RegionId};
use crate::memory::{LeaseId, MemoryDone, MemoryRequest, MemoryToken};
use crate::operation::Command;
use crate::time::Instant;
use crate::transmit::Transmit;

/// Member of the fabric: an endpoint or a switch.
///
/// The engine passes each input when it has one, then polls all outputs until each returns nothing. [`super::drain`]
/// does the polling.
pub trait Member {
    // ---- inputs

    /// Handles a received frame. `bytes` stay readable under `lease` until the member releases it.
    fn handle_frame(&mut self, now: Instant, port: PortId, lease: LeaseId, bytes: &[u8]);
    /// Handles a command of the caller. A switch refuses all commands.
    ///
    /// # Errors
    /// If the command is refused; nothing was done then.
    fn handle_command(&mut self, now: Instant, command: Command<'_>) -> Result<(), CommandRefused>;
    /// Handles an answer of memory.
    fn handle_memory_done(&mut self, now: Instant, token: MemoryToken, done: MemoryDone<'_>);
    /// Handles a loss or return of the carrier of the device at `port`.
    fn handle_carrier(&mut self, now: Instant, port: PortId, up: bool);
    /// Handles the exchange of the cable at `port` for a new one.
    fn handle_new_cable(&mut self, now: Instant, port: PortId);
    /// Handles the passage of time, when the time of `poll_timeout` has come. An early call is harmless.
    fn handle_timeout(&mut self, now: Instant);

    // ---- outputs

    /// Writes the next frame for `port` into `out`, which has space for the largest frame.
    fn poll_transmit(&mut self, now: Instant, port: PortId, out: &mut [u8]) -> Option<Transmit>;
    /// Returns the next memory request, in order.
    fn poll_memory(&mut self) -> Option<MemoryRequest<'_>>;
    /// Returns the next lease that nothing refers to any more.
    fn poll_release(&mut self) -> Option<LeaseId>;
    /// Returns the next event.
    fn poll_event(&mut self) -> Option<Event>;
    /// Returns the time of the next `handle_timeout`, or [`Instant::NEVER`] if no timer runs.
    fn poll_timeout(&self) -> Instant;

    /// Number of ports. It never changes.
    fn port_count(&self) -> usize;
}

/// Optional steps of a poll iteration: work that is done once for all inputs, and hints at ports without output.
///
/// With the defaults all ports are polled, in order.
pub trait PollSteps: Member {
    /// Does the work that all inputs since the last poll iteration share, for example new routes from all reports.
    /// [`super::drain`] begins with it.
    fn settle(&mut self, now: Instant) {
        let _ = now;
    }
    /// Returns the first port from `from` on for which `poll_transmit` may produce a frame now.
    fn next_port(&mut self, now: Instant, from: PortId) -> Option<PortId> {
        let _ = now;
        (from.index() < self.port_count()).then_some(from)
    }
    /// Returns false if `poll_transmit` would produce no frame for this port now. No buffer is requested of the device
    /// then.
    fn wants_transmit(&self, now: Instant, port: PortId) -> bool {
        let _ = (now, port);
        true
    }
    /// Returns true if ports that were polled before may have something to send since the last call; all must be
    /// polled again.
    fn must_poll_again(&mut self) -> bool {
        false
    }
}

/// Optional fast paths of a member. They have the effect of the plain calls, which tests prove, and cost less.
pub trait Shortcuts: Member {
    /// Handles a received frame completely, with direct access to memory. Returns true if the frame is finished and
    /// needs no lease. Returns false if nothing was changed; call [`Member::handle_frame`] then. The outcome is that
    /// of `handle_frame`, without the cost of a lease and a memory request.
    fn take_at_once(
        &mut self,
        now: Instant,
        port: PortId,
        bytes: &[u8],
        memory: &mut dyn DirectMemory,
    ) -> bool {
        let _ = (now, port, bytes, memory);
        false
    }
    /// Sends own frames that differ from the last one through `port` in their numbers only. `fill` gets a function
    /// that writes them one after another, complete. Returns true if any has left. The frames are those that
    /// [`Member::poll_transmit`] would send, without the repeated checks.
    fn send_run(
        &mut self,
        now: Instant,
        port: PortId,
        memory: &mut dyn DirectMemory,
        fill: &mut Fill<'_>,
    ) -> bool {
        let _ = (now, port, memory, fill);
        false
    }
}

/// Optional last changes to a frame, between `poll_transmit` and the device: link-level retry, and payload that could
/// not be read. The defaults are for a member without either.
pub trait FrameCompletion: Member {
    /// Completes and keeps a copy of a frame with [`crate::transmit::Passage::Kept`], unless the device has one
    /// (`is_kept`).
    fn keep_sent(&mut self, now: Instant, port: PortId, frame: &mut [u8], is_kept: bool) {
        let _ = (now, port, frame, is_kept);
    }
    /// Returns the number of frames of `port` that may have to be replayed, the last one included, or `None` without
    /// link-level retry.
    fn repeatable(&self, port: PortId) -> Option<usize> {
        let _ = port;
        None
    }
    /// Updates a replayed frame ([`crate::transmit::Passage::Repeated`]) in the device's slot, which contains it as it
    /// was kept.
    fn refresh_sent(&mut self, port: PortId, frame: &mut [u8]) {
        let _ = (port, frame);
    }
    /// Records that bytes of this region could not be read for a frame, which leaves void.
    fn note_source_failed(&mut self, region: RegionId) {
        let _ = region;
    }
}

/// Optional evidence about neighbours on a busy host. In virtual time no such evidence exists.
pub trait TimeoutExtensions: Member {
    /// Sets the part of the present silence of the neighbour at `port` that does not count, in nanoseconds, because
    /// its host had no processor for it. Call it before [`Member::handle_timeout`].
    fn extend_timeout(&mut self, now: Instant, port: PortId, extension_ns: u64) {
        let _ = (now, port, extension_ns);
    }
}

/// Writes the next frame into the buffer and returns its length, or `None` if there is no further frame.
pub type Write<'w> = dyn FnMut(&mut [u8]) -> Option<usize> + 'w;

/// Calls its argument with a buffer per frame, as long as there are buffers and it writes frames.
pub type Fill<'f> = dyn FnMut(&mut Write<'_>) + 'f;
