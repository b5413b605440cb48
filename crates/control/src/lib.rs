//! Messages between the processes of a rack, and the records of its reports. Each type is defined once, with its serialised form.
//!
//! - [`source`]: request for a rack, as supervisor and seats receive it.
//! - [`order`] and [`notice`]: lines from the supervisor to a seat, and from a seat to the supervisor.
//! - [`grant`]: wires of a seat, by descriptor.
//! - [`request`] and [`links`]: lines on the control socket of a standing rack (`docs/control-socket.md`).
//! - [`status_words`]: brief status of a seat as integers, for shared memory.
//! - [`submitted`]: jobs that users submit to a standing rack.
//! - [`recorder`]: time series of a member while it runs.
//! - [`report`], [`measure`], [`oracle`] and [`rest`]: results of members, and the report that is assembled from them.
//!
//! This crate opens no socket and no file.

pub mod grant;
pub mod key;
pub mod links;
pub mod measure;
mod named_value;
pub mod notice;
pub mod oracle;
pub mod order;
pub mod portion;
pub mod recorder;
pub mod report;
pub mod request;
pub mod rest;
pub mod source;
pub mod status_words;
pub mod submitted;
mod zero;
