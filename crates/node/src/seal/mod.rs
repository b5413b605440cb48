//! Authentication of a rack whose file or environment names a key (`docs/decisions/authentication.md`).
//!
//! Every frame of a link gets a trailer of a counter and a keyed tag. So does every message between the supervisors of several hosts.
//! `docs/wire-format.md` section 15 defines the bytes. A rack without a key does not use this module.
//!
//! Layers, lowest first: `key` (the secret, and tags) · `window` (the received counters) · `link` (the state of one end of a link). The device that
//! applies them is [`crate::wires::sealed`].
//!
//! It provides no confidentiality: frames are sent in clear.

mod key;
mod link;
mod window;

pub use key::{KeyError, RackKey, Tagger};
pub(crate) use link::LinkSeal;
pub use link::{EndNonce, LinkEnds, TRAILER_BYTES};
pub use rackloom_control::key::KeyLocation;

/// Length of a tag, in bytes.
pub const TAG_BYTES: usize = key::TAG_BYTES;
