//! Standing racks: a supervisor in the background, controlled over a socket, whose seats other processes can take.
//!
//! Reading order: `up` (start a rack) · `rack` (control a rack) · `client` (requests) · `background` (the
//! supervisor in the background) · `clients` (its control socket) · `history` and `events` (events for clients) · `metrics` (metrics over HTTP) · `state` (its status) · `live_capture` (frames as they are recorded) · `links` (traffic,
//! losses and paths) · `jobs` (jobs that users submit) · `network` (IP over the fabric) · `join` (a seat in another process) · `programs` (programs on seats).
//!
//! Requests and answers are in [`rackloom_control::request`] and `docs/control-socket.md`. There is no daemon
//! and no registry: the run directory holds one directory per rack ([`crate::machine::directory`]).

mod background;
mod client;
mod clients;
mod events;
mod history;
mod jobs;
mod join;
mod links;
mod live_capture;
mod metrics;
mod network;
pub mod programs;
mod rack;
mod state;
mod up;

pub use self::background::keep;
pub use self::events::{EventStream, RackEvent};
pub use self::join::join;
pub use self::live_capture::{Captured, LiveCapture, captured_links, follow};
pub use self::rack::{StandingRack, status_with_rates, was_taken_down, watched_status};
pub use self::up::up;
