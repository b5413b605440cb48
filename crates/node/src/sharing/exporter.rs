//! The owner's side: who asked, may they, and which importers are there now.
//!
//! An exporter listens on a named local socket and does everything from [`Exporter::serve`], which never waits, so it
//! fits into an event loop. One connection is one import, and it lasts as long as the importer's mapping. The checks
//! come in this order, so that a stranger learns nothing about regions: user, seat, server; then region, tenant, key,
//! revoked. User and process are those that the kernel reports for the connection; seat, tenant and server follow
//! from them by the supervisor's table. The message is not asked.
//!
//! What a granted importer does with the pages is not checked by anybody: see `docs/decisions/revocation.md`.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rackloom_protocol::{Instant, NodeId, RegionConfig, RegionId, Tenant};
use rustix::event::epoll;
use rustix::net::{SocketFlags, accept_with};

use super::control::{Control, SLOTS_MAX, Slot};
use super::message::{Grant, OnDevice, QUESTION_BYTES, Question, Refusal, emit_answer};
use super::seats::Seats;
use super::socket::{self, DESCRIPTORS_MAX};
use crate::memory::{HostMemory, Offer};
use crate::wires::Doorbell;

const LISTENER: u64 = 0;
/// Connections accepted and events looked at per call.
const EVENTS_PER_SERVE_MAX: usize = 32;
/// Connections that have not asked yet.
const ASKERS_MAX: usize = 256;
/// Longest time between a connection and its request, in nanoseconds. On a busy host, a process may wait seconds for a processor in between.
const QUESTION_PATIENCE_NS: u64 = 10_000_000_000;

/// What happened at an exporter.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExportEvent {
    /// A peer has mapped a region.
    Imported {
        /// Which.
        region: RegionId,
        /// Who.
        by: NodeId,
    },
    /// Somebody was told no.
    Refused {
        /// The asker's process, as the kernel says.
        process: u32,
        /// What it asked for, if it got so far.
        region: Option<RegionId>,
        /// Why not.
        reason: Refusal,
    },
    /// A peer has unmapped a region, or ended.
    Released {
        /// Which.
        region: RegionId,
        /// Who.
        by: NodeId,
        /// It ended in the middle of an access.
        was_inside: bool,
    },
}

/// Why a region was not exported, or an export not withdrawn.
///
/// `Send` and `Sync`: plain data.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The memory has no such region, or not of this length.
    #[error("{0} does not exist with this length")]
    NoSuchRegion(RegionId),
    /// It is exported already; a revoked export counts until it is withdrawn.
    #[error("{0} is exported already")]
    AlreadyExported(RegionId),
    /// It is not exported.
    #[error("{0} is not exported")]
    NotExported(RegionId),
    /// Importers free first.
    #[error("{region} is still mapped by {importers} importers; hint: they free first, or revoke")]
    StillImported {
        /// Which region.
        region: RegionId,
        /// How many imports are open.
        importers: usize,
    },
    /// The system refused a step.
    #[error("{region} cannot be exported: {cause}")]
    System {
        /// Which region.
        region: RegionId,
        /// What it said.
        cause: io::Error,
    },
}

/// Everything that one member exports.
///
/// `Send` and `Sync`. What changes it takes `&mut self`, so one thread drives it at a time.
#[derive(Debug)]
pub struct Exporter {
    node: NodeId,
    path: PathBuf,
    listener: OwnedFd,
    epoll: OwnedFd,
    seats: Seats,
    doorbell: Option<Doorbell>,
    pub(super) exports: Vec<Export>,
    pub(super) connections: Vec<Connection>,
    connection_next: u64,
    generation_next: u64,
}

#[derive(Debug)]
pub(super) struct Export {
    pub(super) config: RegionConfig,
    pub(super) control: Control,
    control_file: OwnedFd,
    /// What opens the region, if it lies on a device.
    offer: Option<Offer>,
    pub(super) generation: u64,
    pub(super) is_revoked: bool,
    /// The last raise of the generation came without a barrier for the importers.
    pub(super) is_unheard: bool,
}

/// A peer that asks or imports.
#[derive(Debug)]
pub(super) struct Connection {
    number: u64,
    pub(super) socket: OwnedFd,
    process: u32,
    asker: Result<Asker, Refusal>,
    pub(super) state: State,
}

#[derive(Clone, Copy, Debug)]
struct Asker {
    node: NodeId,
    tenant: Tenant,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum State {
    Asking { until: Instant },
    Importing { region: RegionId, slot: u32 },
}

impl Exporter {
    /// Listen for the importers of `node` in the rack's private run directory. `doorbell`: what importers ring after
    /// a signal, if the node sleeps on one.
    ///
    /// # Errors
    /// The system's: the directory cannot be used, or there are no descriptors.
    pub fn listen(
        node: NodeId,
        directory: &Path,
        seats: Seats,
        doorbell: Option<&Doorbell>,
    ) -> io::Result<Self> {
        let path = socket::address(directory, node);
        let listener = socket::listen_at(&path)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &listener, epoll::EventData::new_u64(LISTENER), epoll::EventFlags::IN)?;
        Ok(Self {
            node,
            path,
            listener,
            epoll,
            seats,
            doorbell: doorbell.cloned(),
            exports: Vec::new(),
            connections: Vec::new(),
            connection_next: LISTENER + 1,
            generation_next: 1,
        })
    }

    /// Who sits where, to be told of changes.
    pub fn seats_mut(&mut self) -> &mut Seats {
        &mut self.seats
    }

    /// Becomes readable when there is something to serve.
    #[must_use]
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    /// Offer a region under the same terms as on the wire. From now on `memory` refuses to free it.
    ///
    /// # Errors
    /// [`ExportError`]: exported already, no such region of this length, or no memory for the control page.
    pub fn export(&mut self, memory: &mut HostMemory, config: RegionConfig) -> Result<(), ExportError> {
        let region = config.region;
        if self.exported(region).is_some() {
            return Err(ExportError::AlreadyExported(region));
        }
        if memory.length(region) != Some(config.length) {
            return Err(ExportError::NoSuchRegion(region));
        }
        let generation = self.next_generation();
        let (control, control_file) =
            Control::create(generation).map_err(|cause| ExportError::System { region, cause })?;
        let offer =
            memory.offer(region).transpose().map_err(|cause| ExportError::System { region, cause })?;
        memory.set_exported(region, true);
        self.exports.push(Export {
            config,
            control,
            control_file,
            offer,
            generation,
            is_revoked: false,
            is_unheard: false,
        });
        Ok(())
    }

    /// Take an export back that nobody imports any more; `memory` may then free the region.
    ///
    /// # Errors
    /// [`ExportError::NotExported`]; [`ExportError::StillImported`], and nothing is changed.
    pub fn withdraw(&mut self, memory: &mut HostMemory, region: RegionId) -> Result<(), ExportError> {
        let place = self.exports.iter().position(|export| export.config.region == region);
        let place = place.ok_or(ExportError::NotExported(region))?;
        self.drop_departed();
        let importers = self.importers(region);
        if importers > 0 {
            return Err(ExportError::StillImported { region, importers });
        }
        self.exports.swap_remove(place);
        memory.set_exported(region, false);
        Ok(())
    }

    /// Number of imports of a region.
    #[must_use]
    pub fn importers(&self, region: RegionId) -> usize {
        self.slots(region).count()
    }

    /// Who imports a region, one entry per import.
    pub fn imported_by(&self, region: RegionId) -> impl Iterator<Item = NodeId> {
        self.connections.iter().filter_map(move |connection| match (connection.state, connection.asker) {
            (State::Importing { region: imported, .. }, Ok(asker)) if imported == region => Some(asker.node),
            _ => None,
        })
    }

    /// Number of connections, importing or still asking.
    #[must_use]
    pub fn connections_open(&self) -> usize {
        self.connections.len()
    }

    /// Answer who asks, notice who left. Never waits; costs one system call when nothing happened.
    pub fn serve(&mut self, now: Instant, memory: &HostMemory, events: &mut impl FnMut(ExportEvent)) {
        let mut space = [MaybeUninit::uninit(); EVENTS_PER_SERVE_MAX];
        let none = crate::wires::timespec(0);
        // Interrupted or failed: the next turn asks again.
        if let Ok((ready, _)) = epoll::wait(&self.epoll, &mut space, Some(&none)) {
            for event in ready {
                match event.data.u64() {
                    LISTENER => self.accept(now),
                    number => self.attend(number, event.flags, memory, events),
                }
            }
        }
        self.connections.retain(|connection| match connection.state {
            State::Asking { until } => now < until,
            State::Importing { .. } => true,
        });
    }

    fn accept(&mut self, now: Instant) {
        for _ in 0..EVENTS_PER_SERVE_MAX {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            // Nobody there, or no descriptor left: in both cases the next turn tries again.
            let Ok(socket) = accept_with(&self.listener, flags) else { return };
            let asking =
                self.connections.iter().filter(|one| matches!(one.state, State::Asking { .. })).count();
            let Ok(found) = socket::credentials(socket.as_fd()) else { continue };
            let number = self.connection_next;
            let data = epoll::EventData::new_u64(number);
            if asking >= ASKERS_MAX || epoll::add(&self.epoll, &socket, data, epoll::EventFlags::IN).is_err()
            {
                continue;
            }
            self.connection_next += 1;
            self.connections.push(Connection {
                number,
                socket,
                process: found.process,
                asker: self.identify(found),
                state: State::Asking { until: now + QUESTION_PATIENCE_NS },
            });
        }
    }

    fn identify(&self, found: socket::Credentials) -> Result<Asker, Refusal> {
        if found.user != rustix::process::geteuid().as_raw() {
            return Err(Refusal::WrongUser);
        }
        let seat = self.seats.of_process(found.process).ok_or(Refusal::NoSeat)?;
        if !self.seats.share_a_server(self.node, seat.node) {
            return Err(Refusal::OtherServer);
        }
        Ok(Asker { node: seat.node, tenant: seat.tenant })
    }

    fn attend(
        &mut self,
        number: u64,
        flags: epoll::EventFlags,
        memory: &HostMemory,
        events: &mut impl FnMut(ExportEvent),
    ) {
        let Some(place) = self.connections.iter().position(|one| one.number == number) else { return };
        match self.connections[place].state {
            _ if flags.intersects(epoll::EventFlags::HUP | epoll::EventFlags::ERR) => {
                self.part(place, events);
            }
            State::Asking { .. } => self.hear(place, memory, events),
            State::Importing { .. } => {
                // An importer has nothing more to say; its bytes are thrown away so that they do not wake us again.
                let _ = socket::receive(self.connections[place].socket.as_fd(), &mut [0; 64]);
            }
        }
    }

    /// A peer has closed its connection or ended.
    fn part(&mut self, place: usize, events: &mut impl FnMut(ExportEvent)) {
        let gone = self.connections.swap_remove(place);
        let (State::Importing { region, slot }, Ok(asker)) = (gone.state, gone.asker) else { return };
        let control = self.exported(region).map(|export| &export.control);
        let was_inside = control.is_some_and(|control| control.under_way(Slot::new(slot)) > 0);
        if let Some(control) = control {
            control.clear(Slot::new(slot));
        }
        events(ExportEvent::Released { region, by: asker.node, was_inside });
    }

    /// A question has come.
    fn hear(&mut self, place: usize, memory: &HostMemory, events: &mut impl FnMut(ExportEvent)) {
        let connection = &self.connections[place];
        let mut bytes = [0; QUESTION_BYTES + 1];
        let Ok((length, _)) = socket::receive(connection.socket.as_fd(), &mut bytes) else { return };
        let question = Question::parse(&bytes[..length]);
        let (process, asker) = (connection.process, connection.asker);
        let judged = asker.and_then(|asker| Ok((asker, self.judge(asker, question)?)));
        let answered = judged.and_then(|(asker, grant)| {
            self.answer(place, question, grant, memory)?;
            Ok((asker, grant))
        });
        let region = question.map(|question| question.region);
        match (answered, region) {
            (Ok((asker, grant)), Some(region)) => {
                self.connections[place].state = State::Importing { region, slot: grant.slot };
                events(ExportEvent::Imported { region, by: asker.node });
            }
            (refused, region) => {
                let reason = refused.err().unwrap_or(Refusal::Malformed);
                let connection = self.connections.swap_remove(place);
                // If even this cannot be sent, the end of the connection is the answer.
                let _ = socket::send(connection.socket.as_fd(), &emit_answer(Err(reason)), &[]);
                events(ExportEvent::Refused { process, region, reason });
            }
        }
    }

    fn judge(&self, asker: Asker, question: Option<Question>) -> Result<Grant, Refusal> {
        let question = question.ok_or(Refusal::Malformed)?;
        let export = self.exported(question.region).ok_or(Refusal::NoSuchRegion)?;
        if export.config.tenant != asker.tenant {
            return Err(Refusal::WrongTenant);
        }
        if export.config.key != question.key {
            return Err(Refusal::BadKey);
        }
        if export.is_revoked {
            return Err(Refusal::Revoked);
        }
        let taken: Vec<u32> = self.slots(question.region).collect();
        let slot = (0..SLOTS_MAX).find(|slot| !taken.contains(slot)).ok_or(Refusal::TooManyImporters)?;
        let RegionConfig { length, access, .. } = export.config;
        let on_device = export.offer.as_ref().map(|offer| OnDevice {
            kind: offer.kind,
            handle: offer.handle,
            has_file: offer.file.is_some(),
        });
        Ok(Grant { length, generation: export.generation, slot, access, on_device })
    }

    fn answer(
        &self,
        place: usize,
        question: Option<Question>,
        grant: Grant,
        memory: &HostMemory,
    ) -> Result<(), Refusal> {
        let export = question.and_then(|question| self.exported(question.region));
        let export = export.ok_or(Refusal::NoSuchRegion)?;
        let file = match &export.offer {
            Some(offer) => offer.file.as_ref().map(AsFd::as_fd),
            None => Some(memory.file(export.config.region).ok_or(Refusal::OwnerFailed)?),
        };
        let mut descriptors = Vec::with_capacity(DESCRIPTORS_MAX);
        descriptors.push(export.control_file.as_fd());
        descriptors.extend(file);
        // Last, because either of the two may be missing: the importer knows by the grant whether there is a file.
        descriptors.extend(self.doorbell.as_ref().map(Doorbell::as_fd));
        let socket = self.connections[place].socket.as_fd();
        socket::send(socket, &emit_answer(Ok(grant)), &descriptors).map_err(|_| Refusal::OwnerFailed)
    }

    pub(super) fn exported(&self, region: RegionId) -> Option<&Export> {
        self.exports.iter().find(|export| export.config.region == region)
    }

    /// The slots of a region's importers.
    pub(super) fn slots(&self, region: RegionId) -> impl Iterator<Item = u32> {
        self.connections.iter().filter_map(move |connection| match connection.state {
            State::Importing { region: imported, slot } if imported == region => Some(slot),
            _ => None,
        })
    }

    /// Notice importers that have left without waiting for the next turn.
    pub(super) fn drop_departed(&mut self) {
        let sockets: Vec<BorrowedFd<'_>> = self.connections.iter().map(|one| one.socket.as_fd()).collect();
        let gone = socket::wait(&sockets, rustix::event::PollFlags::empty(), 0);
        for place in (0..gone.len()).rev().filter(|place| gone[*place]) {
            self.part(place, &mut |_| ());
        }
    }

    pub(super) fn next_generation(&mut self) -> u64 {
        self.generation_next += 1;
        self.generation_next - 1
    }
}

impl Drop for Exporter {
    /// Importers see an end of the connection; the name is free again.
    fn drop(&mut self) {
        let _ = rustix::fs::unlink(&self.path);
    }
}
