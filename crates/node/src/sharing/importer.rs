//! The importer's side of shared memory: find the owner, verify its process, request the region, map it.
//!
//! An import never blocks by itself: two members that import from each other would wait for each other's event loop.
//! [`PendingImport::poll`] advances as far as possible. [`PendingImport::wait`] polls for a bounded time and lets the caller serve its
//! own importers meanwhile.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rackloom_protocol::{Key, NodeId, RegionId};
use rustix::event::PollFlags;

use super::backing::{Backing, Opened};
use super::control::Control;
use super::imported::{ImportedRegion, Parts};
use super::message::{ANSWER_BYTES, Grant, ImportRequest, Location, Refusal, parse_answer};
use super::program_memory::{ProgramMemory, Unreached};
use super::seats::Seats;
use super::socket;
use crate::mapping::{Mapping, sealed_length};
use crate::memory::{HostMemory, LocalMemory, SharedDevice};
use crate::wires::Doorbell;

const SLICE_NS: u64 = 1_000_000;

/// Reason why an import failed.
///
/// `Send` and `Sync`: plain data.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The owner refused.
    #[error("{owner} does not export {region}: {reason}")]
    Refused {
        /// Owner of the region.
        owner: NodeId,
        /// Requested region.
        region: RegionId,
        /// Reason of the refusal.
        reason: Refusal,
    },
    /// The two seats are not in one server, or one of them is not a seat.
    #[error("{0} is not in this server; hint: go through the wire")]
    OtherServer(NodeId),
    /// A process that is not the owner listens at the owner's address.
    #[error("process {process} of user {user} listens in the place of {owner}")]
    WrongProcess {
        /// Owner of the address.
        owner: NodeId,
        /// Process that listens.
        process: u32,
        /// User of that process.
        user: u32,
    },
    /// The owner ended, or closed the connection, before its answer.
    #[error("{0} closed the connection without an answer")]
    OwnerGone(NodeId),
    /// No answer arrived before the deadline.
    #[error("{owner} does not answer: {cause}")]
    NoAnswer {
        /// Owner of the region.
        owner: NodeId,
        /// Error of the last attempt.
        cause: io::Error,
    },
    /// The descriptors or the answer of the owner cannot be used.
    #[error("what {owner} handed over cannot be mapped: {cause}")]
    Unusable {
        /// Owner of the region.
        owner: NodeId,
        /// Cause.
        cause: io::Error,
    },
    /// The memory belongs to the owner's program, and the system refuses copies between the two processes.
    #[error(
        "the system permits no copies to the memory of {owner}'s program: {cause}; hint: see ptrace_scope and PR_SET_DUMPABLE"
    )]
    CopiesDenied {
        /// Owner of the region.
        owner: NodeId,
        /// Error of the system call.
        cause: io::Error,
    },
}

/// Importer of peers' memory.
///
/// `Send` and `Sync`. Any thread may begin imports. Changes of the seats take `&mut self`.
#[derive(Clone, Debug)]
pub struct Importer {
    node: NodeId,
    directory: PathBuf,
    seats: Seats,
    device: Option<SharedDevice>,
}

impl Importer {
    /// Returns an importer for the member on seat `node`. `directory` is the rack's private run directory.
    #[must_use]
    pub fn new(node: NodeId, directory: &Path, seats: Seats) -> Self {
        Self { node, directory: directory.to_owned(), seats, device: None }
    }

    /// Sets the device of the member's memory. This device opens regions that owners have on devices of its kind, and copies between
    /// the two.
    #[must_use]
    pub fn with_device_of(self, memory: &HostMemory) -> Self {
        Self { device: memory.shared_device().cloned(), ..self }
    }

    /// Sets the device that opens memory of owners from now on.
    pub(crate) fn set_device(&mut self, device: SharedDevice) {
        self.device = Some(device);
    }

    /// Returns the seats, to be updated when processes start and end.
    pub fn seats_mut(&mut self) -> &mut Seats {
        &mut self.seats
    }

    /// Begins to import a region. Sends nothing yet.
    ///
    /// # Errors
    /// [`ImportError::OtherServer`].
    pub fn import(&self, owner: NodeId, region: RegionId, key: Key) -> Result<PendingImport, ImportError> {
        if !self.seats.share_a_server(self.node, owner) {
            return Err(ImportError::OtherServer(owner));
        }
        Ok(PendingImport {
            path: socket::address(&self.directory, owner),
            process: self.seats.seat(owner).and_then(|seat| seat.process),
            owner,
            request: ImportRequest { requester: self.node, region, key },
            connection: None,
            device: self.device.clone(),
        })
    }
}

/// Import in progress.
///
/// `Send` and `Sync`. Its changes take `&mut self`, so one thread drives it at a time.
#[derive(Debug)]
pub struct PendingImport {
    path: PathBuf,
    process: Option<u32>,
    owner: NodeId,
    request: ImportRequest,
    connection: Option<OwnedFd>,
    device: Option<SharedDevice>,
}

impl PendingImport {
    /// Advances as far as possible without blocking. `None`: not finished. After a result or an error, the import has ended.
    ///
    /// # Errors
    /// [`ImportError`]: the owner refuses, has ended, is another process than the rack says, or offers what cannot be mapped.
    pub fn poll(&mut self) -> Result<Option<ImportedRegion>, ImportError> {
        match self.step() {
            Ok(imported) => Ok(Some(imported)),
            Err(Step::NotYet(_)) => Ok(None),
            Err(Step::Failed(error)) => Err(error),
        }
    }

    /// Polls until there is a result, at most for `timeout`. Calls `meanwhile` repeatedly, so that the caller can serve its own importers.
    /// Waits for an owner that does not listen yet.
    ///
    /// # Errors
    /// Those of [`PendingImport::poll`]; [`ImportError::NoAnswer`] at the deadline.
    pub fn wait(
        mut self,
        timeout: Duration,
        mut meanwhile: impl FnMut(),
    ) -> Result<ImportedRegion, ImportError> {
        let begun = Instant::now();
        loop {
            let cause = match self.step() {
                Ok(imported) => return Ok(imported),
                Err(Step::Failed(error)) => return Err(error),
                Err(Step::NotYet(cause)) => cause,
            };
            if begun.elapsed() >= timeout {
                return Err(ImportError::NoAnswer { owner: self.owner, cause });
            }
            meanwhile();
            match &self.connection {
                Some(connection) => {
                    socket::wait(&[connection.as_fd()], PollFlags::IN, SLICE_NS);
                }
                None => {
                    socket::wait(&[], PollFlags::IN, SLICE_NS);
                }
            }
        }
    }

    fn step(&mut self) -> Result<ImportedRegion, Step> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.request()?,
        };
        let mut bytes = [0; ANSWER_BYTES + 1];
        let (length, descriptors) = match socket::receive(connection.as_fd(), &mut bytes) {
            Ok(received) => received,
            Err(cause) if is_passing(&cause) => {
                self.connection = Some(connection);
                return Err(Step::NotYet(cause));
            }
            Err(_) => return Err(Step::Failed(ImportError::OwnerGone(self.owner))),
        };
        if length == 0 {
            return Err(Step::Failed(ImportError::OwnerGone(self.owner)));
        }
        let unusable = |cause| Step::Failed(ImportError::Unusable { owner: self.owner, cause });
        match parse_answer(&bytes[..length]) {
            None => Err(unusable(io::Error::other("the answer makes no sense"))),
            Some(Err(reason)) => Err(Step::Failed(ImportError::Refused {
                owner: self.owner,
                region: self.request.region,
                reason,
            })),
            Some(Ok(grant)) => self.open(connection, grant, descriptors).map_err(Step::Failed),
        }
    }

    /// Connects, verifies the process at the other end, and sends the request.
    fn request(&self) -> Result<OwnedFd, Step> {
        let connection = socket::connect_to(&self.path).map_err(Step::NotYet)?;
        let found = socket::credentials(connection.as_fd()).map_err(Step::NotYet)?;
        if found.user != rustix::process::geteuid().as_raw() || self.process != Some(found.process) {
            let (process, user) = (found.process, found.user);
            return Err(Step::Failed(ImportError::WrongProcess { owner: self.owner, process, user }));
        }
        socket::send(connection.as_fd(), &self.request.emit(), &[]).map_err(Step::NotYet)?;
        Ok(connection)
    }

    fn open(
        &self,
        connection: OwnedFd,
        grant: Grant,
        descriptors: Vec<OwnedFd>,
    ) -> Result<ImportedRegion, ImportError> {
        let owner = self.owner;
        let unusable = |cause| ImportError::Unusable { owner, cause };
        let mut descriptors = descriptors.into_iter();
        let mut next = || descriptors.next().ok_or_else(|| io::Error::other("descriptors are missing"));
        let control = next().map_err(unusable)?;
        let bytes = match &grant.location {
            Location::File => {
                next().and_then(|file| map(&file, &grant)).map(Backing::Pages).map_err(unusable)?
            }
            Location::OnDevice(offer) => {
                let file = if offer.has_file { Some(next().map_err(unusable)?) } else { None };
                let file = file.as_ref().map(AsFd::as_fd);
                let opened = Opened::new(self.device.as_ref(), offer, file, grant.length);
                Backing::Device(opened.map_err(unusable)?)
            }
            Location::InProgram(place) => {
                let opened = ProgramMemory::open(self.process.unwrap_or_default(), place, grant.length);
                Backing::Program(opened.map_err(|unreached| match unreached {
                    Unreached::Denied(cause) => ImportError::CopiesDenied { owner, cause },
                    Unreached::Gone => ImportError::OwnerGone(owner),
                })?)
            }
        };
        let doorbell = next().ok().map(Doorbell::open).transpose().map_err(unusable)?;
        Ok(ImportedRegion::new(Parts {
            bytes,
            control: Control::open(control.as_fd()).map_err(unusable)?,
            connection,
            doorbell,
            grant,
            owner,
            region: self.request.region,
            key: self.request.key,
        }))
    }
}

/// Maps the file of a region.
fn map(file: &OwnedFd, grant: &Grant) -> io::Result<Mapping> {
    let file_length = sealed_length(file.as_fd())?;
    if grant.length > file_length {
        return Err(io::Error::other("the region is longer than its file"));
    }
    let length = usize::try_from(file_length).map_err(|_| io::ErrorKind::OutOfMemory)?;
    let is_writable = grant.access.write || grant.access.atomic;
    if is_writable { Mapping::new(file.as_fd(), length) } else { Mapping::read_only(file.as_fd(), length) }
}

enum Step {
    NotYet(io::Error),
    Failed(ImportError),
}

fn is_passing(cause: &io::Error) -> bool {
    matches!(cause.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
