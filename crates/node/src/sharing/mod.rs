//! Memory that members of one server share by mapping it, beside the wire.
//!
//! An owner exports regions with an [`Exporter`]. A peer maps one with an [`Importer`] and uses the [`ImportedRegion`] by loads, stores,
//! copies and atomics. [`Direct`] executes the operations of the wire on it. The identity of a requester comes from the kernel and from
//! the supervisor's [`Seats`], never from a message.
//!
//! An export has this order: export, import, use; then the importer drops, the owner withdraws, the owner frees. An owner that cannot wait for
//! that revokes ([`Exporter::revoke`]). The end of either process closes the connection of the import, which the other side detects.
//!
//! A region on a GPU is exported as a handle, which the importer's device opens ([`Importer::with_device_of`]). Otherwise it is used like
//! any other region.
//!
//! Memory that the owner's program owns cannot be mapped. An import of it reaches it by copies between the two processes (`program_memory`).
//!
//! Mapping is for peers that trust each other. `docs/decisions/revocation.md` describes the limits.

mod access;
mod backing;
mod control;
mod device_words;
mod direct;
mod exporter;
mod first_thread;
mod imported;
mod importer;
mod message;
mod program_memory;
mod revocation;
mod seats;
mod socket;

pub use access::AccessError;
pub(crate) use device_words::DeviceWords;
pub use direct::{CommandPath, Direct};
pub use exporter::{ExportError, ExportEvent, Exporter};
pub(crate) use exporter::{ExportTerms, MemoryOwner, SharedBytes};
pub use imported::{ImportedRegion, Inside};
pub use importer::{ImportError, Importer, PendingImport};
pub use message::Refusal;
pub use revocation::{Cut, Revoked};
pub use seats::{Seat, Seats};
