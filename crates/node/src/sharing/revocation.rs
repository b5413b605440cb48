//! Taking mapped memory back.
//!
//! Three steps, each of which is also there alone for a caller that must not wait: [`Exporter::raise`] the generation,
//! so that no access begins any more; look how many importers are still [`Exporter::inside`] one; and, when patience
//! is over, [`Exporter::cut_off`] those who do not let go, by moving the owner to a fresh file. [`Exporter::revoke`]
//! does all three and waits boundedly in between.
//!
//! An importer that respects the generation is harmless once it is not inside, although its pages stay mapped until
//! it drops them. Who does not want to rely on that cuts always.
//!
//! What a cut-off importer wrote before the move is kept; what it writes *during* the move may be kept or lost, word by
//! word; what it writes later reaches nobody. This file revokes mappings; revoking on the wire is the core's part, and
//! belongs before it.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rackloom_protocol::RegionId;
use rustix::event::PollFlags;

use super::control::{Slot, WITHHELD};
use super::exporter::{ExportError, Exporter, State};
use super::socket;
use crate::memory::HostMemory;

const SLICE_NS_MIN: u64 = 50_000;
const SLICE_NS_MAX: u64 = 1_000_000;

/// When a revocation moves the owner to a fresh file.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cut {
    /// If an importer is still inside when patience is over.
    #[default]
    IfSilent,
    /// If there is an importer at all: it may not respect the generation.
    Always,
}

/// How a revocation went.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Revoked {
    /// Every importer has let go; its pages stay mapped until it drops them.
    Quiet {
        /// Importers that still hold a mapping.
        importers: usize,
    },
    /// The owner has moved; importers keep stale pages.
    CutOff {
        /// Importers that were cut off.
        importers: usize,
        /// How many of them were inside an access.
        inside: usize,
    },
}

impl Exporter {
    /// Take an export back. When this returns `Ok`, nothing that an importer does through this library can reach the
    /// region any more. It can be withdrawn at once after a cut, else once the importers have dropped it.
    ///
    /// On [`ExportError::System`] the region could not be moved (no memory for a second copy): no new access begins,
    /// but a silent importer still shares the pages.
    ///
    /// # Errors
    /// [`ExportError::NotExported`]; [`ExportError::System`] as said above.
    pub fn revoke(
        &mut self,
        memory: &mut HostMemory,
        region: RegionId,
        patience: Duration,
        cut: Cut,
    ) -> Result<Revoked, ExportError> {
        self.raise(region)?;
        let inside = self.wait_until_nobody_is_inside(region, patience);
        let importers = self.importers(region);
        if importers == 0 || (inside == 0 && cut == Cut::IfSilent) {
            return Ok(Revoked::Quiet { importers });
        }
        self.cut_off(memory, region)?;
        Ok(Revoked::CutOff { importers, inside })
    }

    /// From now on importers ask in frames, until this is taken back: they find that out at their next access
    /// ([`super::AccessError::Withheld`]), which does nothing. Accesses that are under way go on. What is revoked stays revoked.
    pub fn withhold(&mut self, is_withheld: bool) {
        let mark = if is_withheld { WITHHELD } else { 0 };
        for export in &mut self.exports {
            export.is_unheard |= !export.control.raise(export.generation | mark);
        }
    }

    /// Raise the generation: from now on no access begins, and no import is granted. Once is enough.
    ///
    /// # Errors
    /// [`ExportError::NotExported`].
    pub fn raise(&mut self, region: RegionId) -> Result<(), ExportError> {
        let generation = self.next_generation();
        let export = self.exports.iter_mut().find(|export| export.config.region == region);
        let export = export.ok_or(ExportError::NotExported(region))?;
        export.is_revoked = true;
        export.generation = generation;
        export.is_unheard = !export.control.raise(generation);
        Ok(())
    }

    /// Number of importers that say they are in the middle of an access; all of them if the system has refused the barrier
    /// without which what they say cannot be relied on.
    #[must_use]
    pub fn inside(&self, region: RegionId) -> usize {
        let Some(export) = self.exported(region) else { return 0 };
        self.slots(region)
            .filter(|slot| export.is_unheard || export.control.under_way(Slot::new(*slot)) > 0)
            .count()
    }

    /// Move the owner to a fresh file at the same address and close the importers' connections.
    ///
    /// # Errors
    /// [`ExportError::NotExported`]; [`ExportError::System`] if there is no memory for a second copy.
    pub fn cut_off(&mut self, memory: &mut HostMemory, region: RegionId) -> Result<(), ExportError> {
        self.raise(region)?;
        memory.move_to_fresh_file(region).map_err(|cause| ExportError::System { region, cause })?;
        self.connections.retain(|connection| match connection.state {
            State::Importing { region: imported, .. } => imported != region,
            State::Asking { .. } => true,
        });
        Ok(())
    }

    /// Returns how many were still inside when patience was over. An importer that ends is not inside.
    fn wait_until_nobody_is_inside(&mut self, region: RegionId, patience: Duration) -> usize {
        let begun = Instant::now();
        let mut slice_ns = SLICE_NS_MIN;
        loop {
            self.drop_departed();
            let inside = self.inside(region);
            let Some(left) = patience.checked_sub(begun.elapsed()).filter(|_| inside > 0) else {
                return inside;
            };
            let sockets: Vec<_> = self.connections.iter().map(|one| one.socket.as_fd()).collect();
            let left_ns = u64::try_from(left.as_nanos()).unwrap_or(u64::MAX);
            socket::wait(&sockets, PollFlags::empty(), slice_ns.min(left_ns));
            slice_ns = (2 * slice_ns).min(SLICE_NS_MAX);
        }
    }
}
