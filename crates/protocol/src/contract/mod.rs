//! Contract between a member and its engine: the member, its wires, its memory, and the order of polling.
//!
//! A real event loop and the simulator both implement [`Wires`] and [`Memory`] and both call [`drain`]. Neither calls
//! `poll_*` itself, so they cannot differ.
//!
//! The base traits are complete: a member, wires or memory that implements only them works. Every other trait here is
//! an extension with a default for each method, and an empty `impl` takes the defaults.
//!
//! | base | extension | purpose |
//! |---|---|---|
//! | [`Member`] | [`PollSteps`] | hints at idle ports, and work that is done once per poll iteration |
//! | | [`Shortcuts`] | frames handled or sent within one call |
//! | | [`FrameCompletion`] | last changes to a frame, for link-level retry and unreadable payload |
//! | | [`TimeoutExtensions`] | evidence that a silent neighbour had no processor |
//! | [`Wires`] | [`BatchedWires`] | several frames per call |
//! | | [`KeptFrames`] | replays from the device's own copies |
//! | | [`PinnedFrames`] | frames that hardware reads in place |
//! | [`Memory`] | [`DirectMemory`] | answers within the call |
//! | | [`JobMemory`] | access by the member's own caller |
//! | | [`PayloadPath`] | payload between memory and frames other than by copying |

mod drain;
mod member;
mod memory;
mod payload;
mod wires;

pub use drain::drain;
pub use member::{Fill, FrameCompletion, Member, PollSteps, Shortcuts, TimeoutExtensions, Write};
pub use memory::{Arithmetic, Combine, Comparison, DirectMemory, JobMemory, Memory, Number};
pub use payload::{LeavingPayload, PayloadPath};
pub use wires::{BatchedWires, KeptFrames, PinnedFrames, Wires};
