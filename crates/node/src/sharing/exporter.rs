//! The owner's side of shared memory: checks of requests, and the list of importers.
//!
//! An exporter listens on a named local socket. [`Exporter::serve`] does all work and never blocks, so it fits into an event loop. One
//! connection is one import, and lasts as long as the importer's mapping. The checks have this order, so that an unknown process learns nothing
//! about regions: user, seat, server; then region, tenant, key, revoked. The kernel reports user and process of the connection. The message names
//! the requester's seat, because a process may hold several seats; the supervisor's table must assign that seat to the process. Tenant and
//! server follow from the table.
//!
//! Nothing checks the accesses of a granted importer: see `docs/decisions/revocation.md`.

use std::any::Any;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rackloom_protocol::{Access, Instant, NodeId, RegionConfig, RegionId, Tenant};
use rustix::event::epoll;
use rustix::net::{SocketFlags, accept_with};

use super::control::{Control, OWNER_LEFT, SLOTS_MAX, Slot, WITHHELD};
use super::message::{Grant, ImportRequest, Location, OnDevice, REQUEST_BYTES, Refusal, emit_answer};
use super::program_memory::{InProgram, SECRET_BYTES};
use super::seats::Seats;
use super::socket::{self, DESCRIPTORS_MAX};
use crate::memory::{HostMemory, Offer};
use crate::wires::Doorbell;

const LISTENER: u64 = 0;
/// Number of connections that are accepted, and of events that are handled, per call.
const EVENTS_PER_SERVE_MAX: usize = 32;
/// Largest number of connections without a request.
const REQUESTERS_MAX: usize = 256;
/// Longest time between a connection and its request, in nanoseconds. On a busy host, a process may wait seconds for a processor in between.
const REQUEST_TIMEOUT_NS: u64 = 10_000_000_000;

/// Event of an exporter.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExportEvent {
    /// A peer has mapped a region.
    Imported {
        /// Region that was mapped.
        region: RegionId,
        /// Importer.
        by: NodeId,
    },
    /// A request was refused.
    Refused {
        /// Process of the requester, as reported by the kernel.
        process: u32,
        /// Requested region, if the request was read.
        region: Option<RegionId>,
        /// Reason of the refusal.
        reason: Refusal,
    },
    /// A peer has unmapped a region, or has ended.
    Released {
        /// Region that was unmapped.
        region: RegionId,
        /// Importer.
        by: NodeId,
        /// The importer ended during an access.
        was_inside: bool,
    },
}

/// Reason why a region was not exported, or an export not withdrawn.
///
/// `Send` and `Sync`: plain data.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The memory has no such region, or the region has another length.
    #[error("{0} does not exist with this length")]
    NoSuchRegion(RegionId),
    /// The region is exported already. A revoked export counts until it is withdrawn.
    #[error("{0} is exported already")]
    AlreadyExported(RegionId),
    /// The region is not exported.
    #[error("{0} is not exported")]
    NotExported(RegionId),
    /// Importers still map the region.
    #[error("{region} is still mapped by {importers} importers; hint: they free first, or revoke")]
    StillImported {
        /// Region of the export.
        region: RegionId,
        /// Number of open imports.
        importers: usize,
    },
    /// The system refused a step.
    #[error("{region} cannot be exported: {cause}")]
    System {
        /// Region of the export.
        region: RegionId,
        /// Error of the system.
        cause: io::Error,
    },
}

/// All exports of one member.
///
/// `Send` and `Sync`. Its changes take `&mut self`, so one thread drives it at a time.
#[derive(Debug)]
pub struct Exporter {
    node: NodeId,
    path: PathBuf,
    /// `None` after [`Exporter::end`].
    listener: Option<OwnedFd>,
    epoll: OwnedFd,
    seats: Seats,
    doorbell: Option<Doorbell>,
    pub(super) exports: Vec<Export>,
    /// Memory of the program that was never requested. It has no control pages yet, because a program may register thousands of regions.
    unrequested: Vec<Unrequested>,
    /// Bytes by which importers recognise the memory of this process. At a fixed address.
    secret: Box<[u8; SECRET_BYTES]>,
    /// Ended exports whose memory waits for importers.
    kept: Vec<Kept>,
    pub(super) connections: Vec<Connection>,
    connection_next: u64,
    generation_next: u64,
    /// Importers have to use frames.
    pub(super) is_withheld: bool,
}

#[derive(Debug)]
pub(super) struct Export {
    pub(super) config: RegionConfig,
    pub(super) control: Control,
    control_file: OwnedFd,
    bytes: SharedBytes,
    terms: ExportTerms,
    pub(super) generation: u64,
    pub(super) is_revoked: bool,
    /// The last raise of the generation came without a barrier for the importers.
    pub(super) is_unconfirmed: bool,
}

/// Object that an importer opens to use the bytes of a region.
#[derive(Debug)]
pub(crate) enum SharedBytes {
    /// A sealed file.
    File(OwnedFd),
    /// A handle for the importer's device.
    OnDevice(Offer),
    /// Memory of this process at an address, which nothing else keeps. Other processes copy; importers in this process are refused. The
    /// terms must have an owner, which is dropped when no copy is in progress.
    InProgram(u64),
}

/// Region in the memory of the program that was never requested.
#[derive(Debug)]
struct Unrequested {
    config: RegionConfig,
    address: u64,
    terms: ExportTerms,
    is_awaited: bool,
}

/// Terms of an export besides those of the region.
#[derive(Debug, Default)]
pub(crate) struct ExportTerms {
    /// Keeps the memory allocated while an importer has it open, also after the export. `None` if the importers' mappings suffice, or the caller
    /// keeps the memory until the export is withdrawn.
    pub(crate) owner: Option<MemoryOwner>,
    /// Access rights of single nodes, in place of those of the region.
    pub(crate) rights: Vec<(NodeId, Access)>,
}

impl ExportTerms {
    fn set_rights(&mut self, node: NodeId, access: Option<Access>) {
        self.rights.retain(|(known, _)| *known != node);
        self.rights.extend(access.map(|access| (node, access)));
    }
}

/// Value that frees the memory of a region when it is dropped.
pub(crate) type MemoryOwner = Arc<dyn Any + Send + Sync>;

/// Ended export of memory that importers have not closed yet.
#[derive(Debug)]
struct Kept {
    region: RegionId,
    /// Other processes copy, so the memory is not needed any more once no copy is in progress.
    is_in_program: bool,
    /// Generation at the end of the export, which no other export has.
    generation: u64,
    control: Control,
    /// Announcements of importers are not reliable.
    is_unconfirmed: bool,
    #[expect(dead_code, reason = "dropped when the last importer has closed the memory")]
    owner: MemoryOwner,
}

/// Connection of a requester or an importer.
#[derive(Debug)]
pub(super) struct Connection {
    number: u64,
    pub(super) socket: OwnedFd,
    peer: socket::Credentials,
    pub(super) state: State,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum State {
    AwaitingRequest {
        until: Instant,
    },
    Importing {
        region: RegionId,
        by: NodeId,
        slot: u32,
    },
    /// The export has ended, and its memory waits until the importer has closed it.
    Leaving {
        generation: u64,
        slot: u32,
    },
}

/// Accepted request for a region.
struct Granted<'e> {
    request: ImportRequest,
    export: &'e Export,
    grant: Grant,
}

impl Exporter {
    /// Listens for the importers of `node` in the rack's private run directory. Importers ring `doorbell` after a signal, if the node
    /// sleeps at one.
    ///
    /// # Errors
    /// Errors of the system: the directory cannot be used, or there are no descriptors.
    pub fn listen(
        node: NodeId,
        directory: &Path,
        seats: Seats,
        doorbell: Option<&Doorbell>,
    ) -> io::Result<Self> {
        let mut secret = [0; SECRET_BYTES];
        rustix::rand::getrandom(&mut secret, rustix::rand::GetRandomFlags::empty())?;
        let path = socket::address(directory, node);
        let listener = socket::listen_at(&path)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &listener, epoll::EventData::new_u64(LISTENER), epoll::EventFlags::IN)?;
        Ok(Self {
            node,
            path,
            listener: Some(listener),
            epoll,
            seats,
            doorbell: doorbell.cloned(),
            exports: Vec::new(),
            unrequested: Vec::new(),
            secret: Box::new(secret),
            kept: Vec::new(),
            connections: Vec::new(),
            connection_next: LISTENER + 1,
            generation_next: 1,
            is_withheld: false,
        })
    }

    /// Returns the seats, to be updated when processes start and end.
    pub fn seats_mut(&mut self) -> &mut Seats {
        &mut self.seats
    }

    /// Returns the descriptor that is readable when [`Exporter::serve`] has work.
    #[must_use]
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    /// Exports a region under its terms on the wire. From now on `memory` refuses to free it.
    ///
    /// # Errors
    /// [`ExportError`]: the region is exported already, does not exist with this length, or there is no memory for the control page.
    pub fn export(&mut self, memory: &mut HostMemory, config: RegionConfig) -> Result<(), ExportError> {
        let region = config.region;
        if self.exported(region).is_some() {
            return Err(ExportError::AlreadyExported(region));
        }
        if memory.length(region) != Some(config.length) {
            return Err(ExportError::NoSuchRegion(region));
        }
        let bytes = match memory.offer(region) {
            Some(offer) => offer.map(SharedBytes::OnDevice),
            None => memory
                .file(region)
                .ok_or(io::ErrorKind::NotFound.into())
                .and_then(|file| file.try_clone_to_owned())
                .map(SharedBytes::File),
        };
        self.export_bytes(
            config,
            bytes.map_err(|cause| ExportError::System { region, cause })?,
            ExportTerms::default(),
        )?;
        memory.set_exported(region, true);
        Ok(())
    }

    /// Exports a region whose bytes the caller keeps until the export is withdrawn or retired. An owner is kept here until the last importer has
    /// closed the memory.
    ///
    /// # Errors
    /// [`ExportError::AlreadyExported`], [`ExportError::System`].
    pub(crate) fn export_bytes(
        &mut self,
        config: RegionConfig,
        bytes: SharedBytes,
        terms: ExportTerms,
    ) -> Result<(), ExportError> {
        let region = config.region;
        if self.exported(region).is_some() || self.unrequested(region).is_some() {
            return Err(ExportError::AlreadyExported(region));
        }
        if let SharedBytes::InProgram(address) = bytes {
            debug_assert!(terms.owner.is_some(), "the memory would not be kept for copies in progress");
            self.unrequested.push(Unrequested { config, address, terms, is_awaited: true });
            return Ok(());
        }
        let control = Control::create(self.first_generation());
        self.add_export(config, bytes, terms, control)
    }

    /// Makes an export of memory of the program, for its first importer.
    fn export_requested(&mut self, region: RegionId) -> Result<(), ExportError> {
        let Some(index) = self.unrequested(region) else { return Ok(()) };
        let control = Control::create_without_barriers(self.first_generation());
        let control = control.map_err(|cause| ExportError::System { region, cause })?;
        let Unrequested { config, address, terms, is_awaited } = self.unrequested.swap_remove(index);
        self.add_export(config, SharedBytes::InProgram(address), terms, Ok(control))?;
        self.set_awaited(region, is_awaited);
        Ok(())
    }

    fn unrequested(&self, region: RegionId) -> Option<usize> {
        self.unrequested.iter().position(|one| one.config.region == region)
    }

    /// Returns the generation for the control pages of the next export, with the mark of memory that is withheld.
    const fn first_generation(&self) -> u64 {
        self.generation_next | if self.is_withheld { WITHHELD } else { 0 }
    }

    /// Adds an export whose control pages have the next generation.
    fn add_export(
        &mut self,
        config: RegionConfig,
        bytes: SharedBytes,
        terms: ExportTerms,
        control: io::Result<(Control, OwnedFd)>,
    ) -> Result<(), ExportError> {
        let (control, control_file) =
            control.map_err(|cause| ExportError::System { region: config.region, cause })?;
        let generation = self.next_generation();
        self.exports.push(Export {
            config,
            control,
            control_file,
            bytes,
            terms,
            generation,
            is_revoked: false,
            is_unconfirmed: false,
        });
        Ok(())
    }

    /// Withdraws an export without importers. `memory` may then free the region.
    ///
    /// # Errors
    /// [`ExportError::NotExported`]; [`ExportError::StillImported`], and nothing changes.
    pub fn withdraw(&mut self, memory: &mut HostMemory, region: RegionId) -> Result<(), ExportError> {
        let index = self.exports.iter().position(|export| export.config.region == region);
        let index = index.ok_or(ExportError::NotExported(region))?;
        self.drop_departed();
        let importers = self.importers(region);
        if importers > 0 {
            return Err(ExportError::StillImported { region, importers });
        }
        self.exports.swap_remove(index);
        memory.set_exported(region, false);
        Ok(())
    }

    /// Ends an export at once, with or without importers, because the owner drops the region. Importers keep their pages, and each later access of
    /// theirs fails with [`super::AccessError::Revoked`]. Memory with an owner stays allocated until the last importer has closed it: if there is one,
    /// returns the generation by which [`Exporter::quiet_among`] knows the export. Does nothing if the region is not exported.
    pub(crate) fn retire(&mut self, region: RegionId) -> Option<u64> {
        if let Some(index) = self.unrequested(region) {
            self.unrequested.swap_remove(index);
            return None;
        }
        self.raise(region).ok()?;
        let index = self.exports.iter().position(|export| export.config.region == region)?;
        self.close(index)
    }

    /// Ends all exports and accepts no more requests, because the owner leaves. Each later access of an importer fails with
    /// [`super::AccessError::OwnerGone`]. Returns `true` if importers still have memory with an owner open: call [`Exporter::serve`] until
    /// [`Exporter::keeps_memory`] is false.
    pub(crate) fn end(&mut self) -> bool {
        if self.listener.take().is_some() {
            let _ = rustix::fs::unlink(&self.path);
        }
        self.unrequested.clear();
        while !self.exports.is_empty() {
            let generation = self.next_generation();
            let export = &mut self.exports[0];
            // Importers in an access may go on: their pages, and memory with an owner, stay until they have left.
            export.control.raise_without_barrier(OWNER_LEFT);
            export.generation = generation;
            export.is_unconfirmed = export.control.has_barriers();
            self.close(0);
        }
        self.connections.retain(|connection| matches!(connection.state, State::Leaving { .. }));
        self.keeps_memory()
    }

    /// Returns `true` if memory of ended exports waits for importers.
    pub(crate) fn keeps_memory(&self) -> bool {
        !self.kept.is_empty()
    }

    /// Returns the number of those ended exports whose importers still have the memory open, and are in no access. No further access begins.
    pub(crate) fn quiet_among(&self, generations: &[u64]) -> usize {
        let named = self.kept.iter().filter(|kept| generations.contains(&kept.generation));
        named.filter(|kept| self.is_quiet(kept)).count()
    }

    /// Returns `true` if no importer of an ended export is in an access.
    fn is_quiet(&self, kept: &Kept) -> bool {
        let in_progress = |connection: &Connection| match connection.state {
            State::Leaving { generation, slot } if generation == kept.generation => {
                kept.control.in_progress(Slot::new(slot))
            }
            _ => 0,
        };
        !kept.is_unconfirmed && self.connections.iter().all(|connection| in_progress(connection) == 0)
    }

    /// Returns the regions of the program from or to which an importer still copies, after the end of their export. Drops the owners of all others, and
    /// the connections of importers that have ended.
    pub(crate) fn regions_in_copies(&mut self) -> Vec<RegionId> {
        if !self.kept.iter().any(|kept| kept.is_in_program) {
            return Vec::new();
        }
        self.drop_departed();
        let quiet = self.kept.iter().filter(|kept| kept.is_in_program && self.is_quiet(kept));
        let quiet: Vec<u64> = quiet.map(|kept| kept.generation).collect();
        let is_quiet =
            |state| matches!(state, State::Leaving { generation, .. } if quiet.contains(&generation));
        self.connections.retain(|connection| !is_quiet(connection.state));
        self.kept.retain(|kept| !quiet.contains(&kept.generation));
        self.kept.iter().filter(|kept| kept.is_in_program).map(|kept| kept.region).collect()
    }

    /// Returns `true` if importers of an ended export still have the memory open.
    pub(crate) fn is_kept(&self, generation: u64) -> bool {
        self.kept.iter().any(|kept| kept.generation == generation)
    }

    /// Removes an export whose generation was raised. Its importers are disconnected, or awaited if the memory has an owner: then returns the
    /// generation.
    fn close(&mut self, index: usize) -> Option<u64> {
        let Export { config, bytes, terms, control, generation, is_unconfirmed, .. } =
            self.exports.swap_remove(index);
        let is_in_program = matches!(bytes, SharedBytes::InProgram(_));
        let is_importing =
            |state| matches!(state, State::Importing { region, .. } if region == config.region);
        let Some(owner) = terms.owner else {
            self.connections.retain(|connection| !is_importing(connection.state));
            return None;
        };
        let mut importers = 0;
        for connection in &mut self.connections {
            if let State::Importing { region, slot, .. } = connection.state
                && region == config.region
            {
                connection.state = State::Leaving { generation, slot };
                importers += 1;
            }
        }
        if importers == 0 {
            return None;
        }
        let region = config.region;
        self.kept.push(Kept { region, is_in_program, generation, control, is_unconfirmed, owner });
        if is_in_program {
            self.regions_in_copies();
            return None;
        }
        Some(generation)
    }

    /// Gives the memory of an ended export back if no importer has it open.
    fn free_kept(&mut self, generation: u64) {
        let is_leaving =
            |state| matches!(state, State::Leaving { generation: left, .. } if left == generation);
        if !self.connections.iter().any(|connection| is_leaving(connection.state)) {
            self.kept.retain(|kept| kept.generation != generation);
        }
    }

    /// Sets the access rights of one node to a region, in place of those of the region; `None` removes them. All imports of the region end: their next
    /// access fails with [`super::AccessError::Revoked`], and they may be requested again.
    pub(crate) fn set_access(&mut self, region: RegionId, node: NodeId, access: Option<Access>) {
        if let Some(index) = self.unrequested(region) {
            self.unrequested[index].terms.set_rights(node, access);
            return;
        }
        let generation = self.next_generation();
        let is_open = |export: &&mut Export| export.config.region == region && !export.is_revoked;
        let Some(export) = self.exports.iter_mut().find(is_open) else { return };
        export.terms.set_rights(node, access);
        export.generation = generation;
        let mark = if self.is_withheld { WITHHELD } else { 0 };
        export.is_unconfirmed = !export.control.raise(generation | mark);
    }

    /// Sets whether changes of a region must wake the owner. They do unless an owner that knows its waits says otherwise.
    pub(crate) fn set_awaited(&mut self, region: RegionId, is_awaited: bool) {
        if let Some(index) = self.unrequested(region) {
            self.unrequested[index].is_awaited = is_awaited;
        }
        if let Some(export) = self.exported(region) {
            export.control.set_awaited(is_awaited);
        }
    }

    /// Returns the numbers of all exported regions.
    pub(crate) fn regions(&self) -> Vec<RegionId> {
        let unrequested = self.unrequested.iter().map(|one| one.config.region);
        self.exports.iter().map(|export| export.config.region).chain(unrequested).collect()
    }

    /// Returns the number of imports of a region.
    #[must_use]
    pub fn importers(&self, region: RegionId) -> usize {
        self.slots(region).count()
    }

    /// Returns the importers of a region, one entry per import.
    pub fn imported_by(&self, region: RegionId) -> impl Iterator<Item = NodeId> {
        self.connections.iter().filter_map(move |connection| match connection.state {
            State::Importing { region: imported, by, .. } if imported == region => Some(by),
            _ => None,
        })
    }

    /// Returns the number of connections, with and without an import.
    #[must_use]
    pub fn connections_open(&self) -> usize {
        self.connections.len()
    }

    /// Answers requests and handles importers that have left. Never blocks. Costs one system call when nothing happened.
    pub fn serve(&mut self, now: Instant, events: &mut impl FnMut(ExportEvent)) {
        let mut space = [MaybeUninit::uninit(); EVENTS_PER_SERVE_MAX];
        let none = crate::clock::timespec(0);
        // After an interruption or a failure, the next call tries again.
        if let Ok((ready, _)) = epoll::wait(&self.epoll, &mut space, Some(&none)) {
            for event in ready {
                match event.data.u64() {
                    LISTENER => self.accept(now),
                    number => self.handle_event(number, event.flags, events),
                }
            }
        }
        self.connections.retain(|connection| match connection.state {
            State::AwaitingRequest { until } => now < until,
            State::Importing { .. } | State::Leaving { .. } => true,
        });
    }

    fn accept(&mut self, now: Instant) {
        for _ in 0..EVENTS_PER_SERVE_MAX {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            // There is no connection, or no descriptor is left. In both cases the next call tries again.
            let Some(Ok(socket)) = self.listener.as_ref().map(|one| accept_with(one, flags)) else { return };
            let awaiting = self
                .connections
                .iter()
                .filter(|one| matches!(one.state, State::AwaitingRequest { .. }))
                .count();
            let Ok(found) = socket::credentials(socket.as_fd()) else { continue };
            let number = self.connection_next;
            let data = epoll::EventData::new_u64(number);
            if awaiting >= REQUESTERS_MAX
                || epoll::add(&self.epoll, &socket, data, epoll::EventFlags::IN).is_err()
            {
                continue;
            }
            self.connection_next += 1;
            self.connections.push(Connection {
                number,
                socket,
                peer: found,
                state: State::AwaitingRequest { until: now + REQUEST_TIMEOUT_NS },
            });
        }
    }

    /// Returns the tenant of the requester's seat. The kernel reports user and process; the seat, which the message names, must be held by that
    /// process.
    fn identify(
        &self,
        found: socket::Credentials,
        request: Option<ImportRequest>,
    ) -> Result<Tenant, Refusal> {
        if found.user != rustix::process::geteuid().as_raw() {
            return Err(Refusal::WrongUser);
        }
        if !self.seats.is_seated(found.process) {
            return Err(Refusal::NoSeat);
        }
        let requester = request.ok_or(Refusal::Malformed)?.requester;
        let seat = self.seats.seat(requester).filter(|seat| seat.process == Some(found.process));
        let seat = seat.ok_or(Refusal::NoSeat)?;
        if !self.seats.share_a_server(self.node, seat.node) {
            return Err(Refusal::OtherServer);
        }
        Ok(seat.tenant)
    }

    fn handle_event(&mut self, number: u64, flags: epoll::EventFlags, events: &mut impl FnMut(ExportEvent)) {
        let Some(index) = self.connections.iter().position(|one| one.number == number) else { return };
        match self.connections[index].state {
            _ if flags.intersects(epoll::EventFlags::HUP | epoll::EventFlags::ERR) => {
                self.release(index, events);
            }
            State::AwaitingRequest { .. } => self.handle_request(index, events),
            State::Importing { .. } | State::Leaving { .. } => {
                // An importer sends nothing after its request. Its bytes are dropped, so that they do not wake the owner again.
                let _ = socket::receive(self.connections[index].socket.as_fd(), &mut [0; 64]);
            }
        }
    }

    /// Handles a peer that has closed its connection or ended.
    fn release(&mut self, index: usize, events: &mut impl FnMut(ExportEvent)) {
        let gone = self.connections.swap_remove(index);
        if let State::Leaving { generation, .. } = gone.state {
            self.free_kept(generation);
        }
        let State::Importing { region, by, slot } = gone.state else { return };
        let control = self.exported(region).map(|export| &export.control);
        let was_inside = control.is_some_and(|control| control.in_progress(Slot::new(slot)) > 0);
        if let Some(control) = control {
            control.clear(Slot::new(slot));
        }
        events(ExportEvent::Released { region, by, was_inside });
    }

    /// Handles a request.
    fn handle_request(&mut self, index: usize, events: &mut impl FnMut(ExportEvent)) {
        let connection = &self.connections[index];
        let mut bytes = [0; REQUEST_BYTES + 1];
        let Ok((length, _)) = socket::receive(connection.socket.as_fd(), &mut bytes) else { return };
        let peer = connection.peer;
        let request = ImportRequest::parse(&bytes[..length]);
        // Nodes of one process exchange frames about its memory. A withheld region is not exported at all.
        if let (Some(request), true, false) = (request, self.may_copy(peer, request), self.is_withheld)
            && let Err(error) = self.export_requested(request.region)
        {
            tracing::debug!("{error}; peers use frames");
        }
        let connection = &self.connections[index];
        let granted = self.grant(peer, request).and_then(|Granted { request, export, grant }| {
            send_grant(connection.socket.as_fd(), export, grant, self.doorbell.as_ref())?;
            Ok((request, grant.slot))
        });
        match granted {
            Ok((ImportRequest { region, requester: by, .. }, slot)) => {
                self.connections[index].state = State::Importing { region, by, slot };
                events(ExportEvent::Imported { region, by });
            }
            Err(reason) => {
                let connection = self.connections.swap_remove(index);
                // If the refusal cannot be sent, the end of the connection replaces it.
                let _ = socket::send(connection.socket.as_fd(), &emit_answer(Err(reason)), &[]);
                let region = request.map(|request| request.region);
                events(ExportEvent::Refused { process: connection.peer.process, region, reason });
            }
        }
    }

    /// Returns `true` if the requester is another process that may know about regions of this node.
    fn may_copy(&self, peer: socket::Credentials, request: Option<ImportRequest>) -> bool {
        peer.process != std::process::id() && self.identify(peer, request).is_ok()
    }

    fn grant(
        &self,
        peer: socket::Credentials,
        request: Option<ImportRequest>,
    ) -> Result<Granted<'_>, Refusal> {
        let tenant = self.identify(peer, request)?;
        let request = request.ok_or(Refusal::Malformed)?;
        let export = self.exported(request.region).ok_or(Refusal::NoSuchRegion)?;
        if export.config.tenant != tenant {
            return Err(Refusal::WrongTenant);
        }
        if export.config.key != request.key {
            return Err(Refusal::BadKey);
        }
        if export.is_revoked {
            return Err(Refusal::Revoked);
        }
        let taken: Vec<u32> = self.slots(request.region).collect();
        let slot = (0..SLOTS_MAX).find(|slot| !taken.contains(slot)).ok_or(Refusal::TooManyImporters)?;
        let RegionConfig { length, access, .. } = export.config;
        let own = export.terms.rights.iter().find(|(node, _)| *node == request.requester);
        let access = own.map_or(access, |(_, access)| *access);
        if access == Access::NONE {
            return Err(Refusal::NoAccess);
        }
        let location = match &export.bytes {
            SharedBytes::File(_) => Location::File,
            SharedBytes::OnDevice(offer) => Location::OnDevice(OnDevice {
                kind: offer.kind,
                handle: offer.handle,
                has_file: offer.file.is_some(),
            }),
            SharedBytes::InProgram(_) if peer.process == std::process::id() => {
                return Err(Refusal::NoSuchRegion);
            }
            SharedBytes::InProgram(address) => Location::InProgram(InProgram {
                address: *address,
                secret_address: self.secret.as_ptr().addr() as u64,
                secret: *self.secret,
            }),
        };
        // Copies are announced, and an import without one needs no memory of the owner.
        let is_awaited = export.terms.owner.is_some() && !matches!(location, Location::InProgram(_));
        let grant = Grant { length, generation: export.generation, slot, access, is_awaited, location };
        Ok(Granted { request, export, grant })
    }

    pub(super) fn exported(&self, region: RegionId) -> Option<&Export> {
        self.exports.iter().find(|export| export.config.region == region)
    }

    /// Returns the slots of a region's importers.
    pub(super) fn slots(&self, region: RegionId) -> impl Iterator<Item = u32> {
        self.connections.iter().filter_map(move |connection| match connection.state {
            State::Importing { region: imported, slot, .. } if imported == region => Some(slot),
            _ => None,
        })
    }

    /// Removes importers that have left, without waiting for the next call of `serve`.
    pub(super) fn drop_departed(&mut self) {
        let sockets: Vec<BorrowedFd<'_>> = self.connections.iter().map(|one| one.socket.as_fd()).collect();
        let gone = socket::wait(&sockets, rustix::event::PollFlags::empty(), 0);
        for index in (0..gone.len()).rev().filter(|index| gone[*index]) {
            self.release(index, &mut |_| ());
        }
    }

    pub(super) fn next_generation(&mut self) -> u64 {
        self.generation_next += 1;
        self.generation_next - 1
    }
}

fn send_grant(
    socket: BorrowedFd<'_>,
    export: &Export,
    grant: Grant,
    doorbell: Option<&Doorbell>,
) -> Result<(), Refusal> {
    let file = match &export.bytes {
        SharedBytes::File(file) => Some(file),
        SharedBytes::OnDevice(offer) => offer.file.as_ref(),
        SharedBytes::InProgram(_) => None,
    };
    let mut descriptors = Vec::with_capacity(DESCRIPTORS_MAX);
    descriptors.push(export.control_file.as_fd());
    descriptors.extend(file.map(AsFd::as_fd));
    // The doorbell comes last, because file and doorbell may be missing. The grant tells if there is a file.
    descriptors.extend(doorbell.map(Doorbell::as_fd));
    socket::send(socket, &emit_answer(Ok(grant)), &descriptors).map_err(|_| Refusal::OwnerFailed)
}

impl Drop for Exporter {
    /// Closes the connections of the importers and frees the name.
    fn drop(&mut self) {
        if self.listener.is_some() {
            let _ = rustix::fs::unlink(&self.path);
        }
    }
}

#[cfg(test)]
#[path = "exporter_tests.rs"]
mod tests;
