//! Many GPU nodes and switches in virtual time, on one thread or several.
//!
//! The members are the state machines that also run in real processes ([`rackloom_protocol::Endpoint`] and
//! [`rackloom_protocol::Switch`]), polled by the same [`rackloom_protocol::drain`], carrying the same jobs. Here
//! time is a number that jumps from one scheduled event to the next, links are arithmetic, and all
//! random choices come from the seed. So a run repeats to the bit, which its trace hash shows.
//!
//! Modules, in reading order: `ids` (numbers of frames and channels) · `cells` (values with several owners) · `queue` (scheduled events) · `frames` (bytes
//! of frames, reused) · `leases` (frames that a member holds) · `memory` (payloads of long transfers, the memories
//! that take them, and a memory as its node sees it) · `link` (one direction of one link) · `fabric` (all links:
//! from commit to arrival) · `wires` (the fabric as one member sees it) · `device` (the GPU of a
//! node) · `seat` (one member and its poll) ·
//! [`rack`] (all members, the run) · [`parts`] (the same on several threads) · [`rack::actions`] (actions of a test or a fault script on the rack) ·
//! `rack::play_faults` (a fault script, played) · `ledger` (oracle of all operations) · `trace`, `recording`,
//! [`watchdog`], [`outcome`], `results` (results of a run).
//!
//! The crate does not read files, print, or read a real clock.
#![forbid(unsafe_code)]

mod cells;
mod device;
mod fabric;
mod frames;
mod ids;
mod leases;
mod ledger;
mod link;
mod lists;
mod local;
mod memory;
mod queue;
mod recording;
mod results;
mod seat;
mod seats;
mod trace;
mod wires;

pub mod outcome;
pub mod parts;
pub mod rack;
pub mod watchdog;

pub use fabric::{FrameHook, FrameObserver};
pub use link::{LinkStatistics, REORDER_HOLD_MAX_NS};
pub use outcome::{FaultTransition, MemberState, Outcome, Statistics};
pub use rack::actions::Action;
pub use rack::{Simulation, incarnation};
pub use rackloom_plan::headers::wire_bytes;
pub use recording::RecordedEvent;
pub use results::{MemberResults, RunResults};
pub use watchdog::{StallCause, Stalled, Waiting};
