//! Authentication of a rack whose file or environment names a key (`docs/decisions/authentication.md`).
//!
//! Every frame of a link gets a trailer of a counter and a keyed tag; so does every message of the supervisors of several
//! hosts. The bytes are those of `docs/wire-format.md` section 15. A rack without a key uses nothing of this.
//!
//! Layers, lowest first: `key` (the secret, and tags) · `window` (which counters have been seen) · `link` (the state of
//! one end of a link). The device that applies it is [`crate::wires::sealed`].
//!
//! It hides nothing: frames travel in clear.

mod key;
mod link;
mod window;

pub use key::{KeyError, KeyPlace, RackKey, Tagger};
pub(crate) use link::LinkSeal;
pub use link::{EndNonce, LinkEnds, TRAILER_BYTES};

/// Bytes of a tag.
pub const TAG_BYTES: usize = key::TAG_BYTES;
