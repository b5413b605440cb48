//! Many GPU nodes and switches on one thread, in virtual time.
//!
//! The members are the same state machines that run in real processes ([`rackloom_protocol::Endpoint`] and
//! [`rackloom_protocol::Switch`]), polled by the same [`rackloom_protocol::drain`], carrying the same jobs. Here
//! time is a number that jumps from one scheduled event to the next, links are arithmetic, and whatever is
//! random comes from the seed; so a run repeats to the bit, and says so with its trace hash.
//!
//! Rooms, in reading order: `queue` (what happens when) · `frames` (bytes of frames, reused) · `leases` (who holds
//! which) · `payload`, `loans`, `shadow` (what frames carry of long transfers) · `memories`, `takings`, `spans` (what comes of it in the
//! memories) · `seat_memory` (a memory as its node sees it) · `link` (one direction of one link) · `fabric` (all links: from commit to arrival) · `wires` (the fabric as one member
//! sees it) · `seat` (one member and its turn) · [`rack`] (all members, the run) · [`rack::actions`] (what a test or
//! a fault script does to the rack) · `rack::conduct` (a fault script, played) · `ledger` (what must never happen, watched from all sides) · `trace`, `recording`, [`watchdog`], [`outcome`] (what a run tells).
//!
//! It does not read files, print, or know any real clock.
#![forbid(unsafe_code)]

mod fabric;
mod frames;
mod leases;
mod ledger;
mod link;
mod lists;
mod loans;
mod local;
mod memories;
mod payload;
mod queue;
mod recording;
mod seat;
mod seat_memory;
mod shadow;
mod spans;
mod takings;
mod trace;
mod wires;

pub mod outcome;
pub mod rack;
pub mod watchdog;

pub use fabric::{FrameHook, FrameWitness};
pub use link::{LinkStatistics, REORDER_HOLD_MAX_NS};
pub use outcome::{MemberState, Outcome, Statistics};
pub use rack::actions::Action;
pub use rack::{Happening, Simulation, incarnation};
pub use rackloom_plan::headers::wire_bytes;
pub use watchdog::{StallCause, Stalled, Waiting};
