//! What passes over a link as a pcapng file, and such a file back as words.
//!
//! A capture shows each frame once: on the interface of the end that sent it, as it went on the wire, with a comment for
//! each thing that befell it: faults that were injected, and why a receiver did not use it. Other tools (Wireshark) read
//! the same file.
//!
//! Rooms: [`block`] (pcapng, written) · [`reader`] (pcapng, read) · [`heading`] (what a file says of its link) ·
//! [`comment`] (the words of the comments) · [`recorder`] (one end writes down what it sees) · [`mod@join`] (several ends make
//! one file) · [`mod@describe`] (a frame as fields) · [`foreign`] (what is not ours, and what carries ours) · [`line`](mod@line) (a frame
//! as one line).
//!
//! Nothing here opens a file, knows a clock or prints: bytes come in as readers and go out as writers. The pcapng code is
//! our own because `pcap-file` 2.0 takes every timestamp for nanoseconds whatever the interface says, and names no offset
//! in its errors.
#![forbid(unsafe_code)]

pub mod block;
pub mod comment;
pub mod describe;
pub mod foreign;
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
