//! Revocation of mapped memory.
//!
//! It has three steps, which a caller that must not block can make one by one: [`Exporter::raise`] raises the generation, so that no access
//! begins any more; [`Exporter::inside`] counts the importers in an access; and, at the deadline, [`Exporter::cut_off`] moves the owner
//! to a fresh file. [`Exporter::revoke`] makes all three, with a bounded wait in between.
//!
//! An importer that checks the generation is harmless once its access has ended, although its pages stay mapped until it drops them. An
//! owner that does not rely on that always cuts off.
//!
//! Bytes that an importer wrote before the move are kept. Bytes that it writes *during* the move may be kept or lost, word by word. Bytes that it
//! writes later reach no other process. This file revokes mappings. The core revokes a region on the wire, which must come first.

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

/// Condition under which a revocation moves the owner to a fresh file.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cut {
    /// If an importer is still in an access at the deadline.
    #[default]
    IfSilent,
    /// If there is an importer: it may not check the generation.
    Always,
}

/// Result of a revocation.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Revoked {
    /// All accesses have ended. Importers keep their pages until they drop them.
    Quiet {
        /// Number of importers that still have a mapping.
        importers: usize,
    },
    /// The owner has moved. Importers keep stale pages.
    CutOff {
        /// Number of importers that were cut off.
        importers: usize,
        /// Number of those that were in an access.
        inside: usize,
    },
}

impl Exporter {
    /// Revokes an export. After `Ok`, no access by this library reaches the region. It can be withdrawn at once after a cut-off, otherwise
    /// when the importers have dropped it.
    ///
    /// After [`ExportError::System`] the region was not moved (no memory for a second copy): no new access begins, but an importer in an
    /// access still shares the pages.
    ///
    /// # Errors
    /// [`ExportError::NotExported`]; [`ExportError::System`] as described above.
    pub fn revoke(
        &mut self,
        memory: &mut HostMemory,
        region: RegionId,
        timeout: Duration,
        cut: Cut,
    ) -> Result<Revoked, ExportError> {
        self.raise(region)?;
        let inside = self.wait_until_accesses_end(region, timeout);
        let importers = self.importers(region);
        if importers == 0 || (inside == 0 && cut == Cut::IfSilent) {
            return Ok(Revoked::Quiet { importers });
        }
        self.cut_off(memory, region)?;
        Ok(Revoked::CutOff { importers, inside })
    }

    /// Sets whether importers have to use frames. Their next access fails with [`super::AccessError::Withheld`] and does nothing. Accesses in
    /// progress continue. Revoked regions stay revoked.
    pub fn withhold(&mut self, is_withheld: bool) {
        self.is_withheld = is_withheld;
        let mark = if is_withheld { WITHHELD } else { 0 };
        for export in &mut self.exports {
            export.is_unconfirmed |= !export.control.raise(export.generation | mark);
        }
    }

    /// Raises the generation: no access begins and no import is granted from now on. Repeated calls change nothing.
    ///
    /// # Errors
    /// [`ExportError::NotExported`].
    pub fn raise(&mut self, region: RegionId) -> Result<(), ExportError> {
        let generation = self.next_generation();
        let export = self.exports.iter_mut().find(|export| export.config.region == region);
        let export = export.ok_or(ExportError::NotExported(region))?;
        export.is_revoked = true;
        export.generation = generation;
        export.is_unconfirmed = !export.control.raise(generation);
        Ok(())
    }

    /// Returns the number of importers in an access. Returns the number of all importers if the system has refused the barrier, because their
    /// announcements are not reliable then.
    #[must_use]
    pub fn inside(&self, region: RegionId) -> usize {
        let Some(export) = self.exported(region) else { return 0 };
        self.slots(region)
            .filter(|slot| export.is_unconfirmed || export.control.in_progress(Slot::new(*slot)) > 0)
            .count()
    }

    /// Moves the owner to a fresh file at the same address, and closes the importers' connections.
    ///
    /// # Errors
    /// [`ExportError::NotExported`]; [`ExportError::System`] if there is no memory for a second copy.
    pub fn cut_off(&mut self, memory: &mut HostMemory, region: RegionId) -> Result<(), ExportError> {
        self.raise(region)?;
        memory.move_to_fresh_file(region).map_err(|cause| ExportError::System { region, cause })?;
        self.connections.retain(|connection| match connection.state {
            State::Importing { region: imported, .. } => imported != region,
            State::AwaitingRequest { .. } | State::Leaving { .. } => true,
        });
        Ok(())
    }

    /// Returns the number of importers that were still in an access at the deadline. An importer that has ended is not in an access.
    fn wait_until_accesses_end(&mut self, region: RegionId, timeout: Duration) -> usize {
        let begun = Instant::now();
        let mut slice_ns = SLICE_NS_MIN;
        loop {
            self.drop_departed();
            let inside = self.inside(region);
            let Some(left) = timeout.checked_sub(begun.elapsed()).filter(|_| inside > 0) else {
                return inside;
            };
            let sockets: Vec<_> = self.connections.iter().map(|one| one.socket.as_fd()).collect();
            let left_ns = u64::try_from(left.as_nanos()).unwrap_or(u64::MAX);
            socket::wait(&sockets, PollFlags::empty(), slice_ns.min(left_ns));
            slice_ns = (2 * slice_ns).min(SLICE_NS_MAX);
        }
    }
}
