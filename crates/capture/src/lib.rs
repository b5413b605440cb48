//! Captures: frames of a link as a pcapng file, and such a file, or a classic pcap file, as text.
//!
//! A capture shows each frame once: on the interface of the end that sent it, as it went on the wire, with a comment for
//! each event of the frame: injected faults, and the reason why a receiver did not use it. Other tools (Wireshark) read
//! the same file.
//!
//! Modules: [`block`] (pcapng, written) · [`reader`] (pcapng and classic pcap, read) · [`heading`] (names of the link and the members) ·
//! [`comment`] (texts of the comments) · [`recorder`] (records of one end) · [`growing`] (a file that is still written) · [`mod@join`] (several ends make
//! one file) · [`mod@describe`] (a frame as fields) · [`foreign`] (frames of other protocols, and datagrams with
//! frames of this one) · [`line`](mod@line) (a frame as one line).
//!
//! The crate opens no file, reads no clock and does not print: bytes come in as readers and go out as writers. The pcapng
//! code is our own (`docs/capture.md` says why).
#![forbid(unsafe_code)]

pub mod block;
mod classic;
pub mod comment;
pub mod describe;
pub mod foreign;
pub mod growing;
pub mod heading;
pub mod join;
pub mod line;
pub mod reader;
pub mod recorder;

pub use describe::{Described, describe};
pub use heading::Heading;
pub use join::{Joined, join};
pub use reader::{Direction, ReadError, Reader, Record, Section};
pub use recorder::Recorder;
