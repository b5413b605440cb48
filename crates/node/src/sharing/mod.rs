//! Memory that members of one server share by mapping it, beside the wire.
//!
//! An owner offers regions through an [`Exporter`]; a peer maps one with an [`Importer`] and uses the
//! [`ImportedRegion`] by loads, stores, copies and atomics; [`Direct`] makes the operations of the wire of that. Who may
//! map what is decided by the kernel's word for the asking process and the supervisor's [`Seats`], never by a message.
//!
//! The order of an export's life: export, import, use; then the importer drops, the owner withdraws, the owner frees.
//! An owner that cannot wait for that revokes ([`Exporter::revoke`]). The end of either process closes the connection
//! of the import, and the other side notices.
//!
//! A region on a GPU is exported as a handle, which the importer's own device opens: the importer says which
//! ([`Importer::with_device_of`]), and everything else is the same.
//!
//! Mapping is for peers that trust each other. What that means is said in `docs/decisions/revocation.md`.

mod backing;
mod control;
mod direct;
mod exporter;
mod imported;
mod importer;
mod lone;
mod message;
mod revocation;
mod seats;
mod socket;

pub use direct::{Direct, Taken};
pub use exporter::{ExportError, ExportEvent, Exporter};
pub use imported::{AccessError, ImportedRegion, Inside};
pub use importer::{ImportError, Importer, PendingImport};
pub use message::Refusal;
pub use revocation::{Cut, Revoked};
pub use seats::{Seat, Seats};
