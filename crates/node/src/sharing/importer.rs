//! The asking side: find the owner, make sure that it is the owner, ask, map.
//!
//! An import never blocks by itself: two members that import from each other would wait for each other's event loop.
//! [`PendingImport::poll`] goes a step further whenever it can; [`PendingImport::wait`] polls for a bounded time and
//! lets the caller serve its own importers meanwhile.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rackloom_protocol::{Key, NodeId, RegionId};
use rustix::event::PollFlags;

use super::backing::{Backing, Opened};
use super::control::Control;
use super::imported::{ImportedRegion, Parts};
use super::message::{ANSWER_BYTES, Grant, Question, Refusal, parse_answer};
use super::seats::Seats;
use super::socket;
use crate::mapping::{Mapping, sealed_length};
use crate::memory::{HostMemory, SharedDevice};
use crate::wires::Doorbell;

const SLICE_NS: u64 = 1_000_000;

/// Why an import failed.
///
/// `Send` and `Sync`: plain data.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The owner said no.
    #[error("{owner} does not export {region}: {reason}")]
    Refused {
        /// Whose memory it is.
        owner: NodeId,
        /// Which region.
        region: RegionId,
        /// What it said.
        reason: Refusal,
    },
    /// The two seats are not in one server, or one of them is not a seat.
    #[error("{0} is not in this server; hint: go through the wire")]
    OtherServer(NodeId),
    /// Somebody who is not the owner listens in its place.
    #[error("process {process} of user {user} listens in the place of {owner}")]
    Impostor {
        /// Whose place it is.
        owner: NodeId,
        /// Who listens.
        process: u32,
        /// As whom.
        user: u32,
    },
    /// The owner ended, or closed the connection, before it had answered.
    #[error("{0} closed the connection without an answer")]
    OwnerGone(NodeId),
    /// No answer within the patience.
    #[error("{owner} does not answer: {cause}")]
    NoAnswer {
        /// Whose memory it is.
        owner: NodeId,
        /// What the last attempt met.
        cause: io::Error,
    },
    /// What the owner handed over cannot be used.
    #[error("what {owner} handed over cannot be mapped: {cause}")]
    Unusable {
        /// Whose memory it is.
        owner: NodeId,
        /// Why.
        cause: io::Error,
    },
}

/// Where a member asks for the memory of its peers.
///
/// `Send` and `Sync`. Imports may be begun by any thread; the seats are changed through `&mut self`.
#[derive(Clone, Debug)]
pub struct Importer {
    node: NodeId,
    directory: PathBuf,
    seats: Seats,
    device: Option<SharedDevice>,
}

impl Importer {
    /// For the member on seat `node`; `directory` is the rack's private run directory.
    #[must_use]
    pub fn new(node: NodeId, directory: &Path, seats: Seats) -> Self {
        Self { node, directory: directory.to_owned(), seats, device: None }
    }

    /// The same for a member whose memory lies on a device: that device opens what owners have on devices of its kind, and copies between
    /// the two are its own.
    #[must_use]
    pub fn with_device_of(self, memory: &HostMemory) -> Self {
        Self { device: memory.shared_device().cloned(), ..self }
    }

    /// Who sits where, to be told of changes.
    pub fn seats_mut(&mut self) -> &mut Seats {
        &mut self.seats
    }

    /// Begin to import a region. Nothing has been sent yet.
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
            question: Question { region, key },
            connection: None,
            device: self.device.clone(),
        })
    }
}

/// An import under way.
///
/// `Send` and `Sync`. What changes it takes `&mut self`, so one thread drives it at a time.
#[derive(Debug)]
pub struct PendingImport {
    path: PathBuf,
    process: Option<u32>,
    owner: NodeId,
    question: Question,
    connection: Option<OwnedFd>,
    device: Option<SharedDevice>,
}

impl PendingImport {
    /// Go as far as possible without waiting. `None`: not there yet. After an answer or an error, it is over.
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

    /// Poll until there is an answer, at most for `patience`. `meanwhile` is called again and again, so that the
    /// caller can serve those who import from *it*. An owner that does not listen yet is waited for.
    ///
    /// # Errors
    /// As for [`PendingImport::poll`]; [`ImportError::NoAnswer`] when `patience` ran out.
    pub fn wait(
        mut self,
        patience: Duration,
        mut meanwhile: impl FnMut(),
    ) -> Result<ImportedRegion, ImportError> {
        let begun = Instant::now();
        loop {
            let cause = match self.step() {
                Ok(imported) => return Ok(imported),
                Err(Step::Failed(error)) => return Err(error),
                Err(Step::NotYet(cause)) => cause,
            };
            if begun.elapsed() >= patience {
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
            None => self.ask()?,
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
                region: self.question.region,
                reason,
            })),
            Some(Ok(grant)) => self.open(connection, grant, descriptors).map_err(unusable),
        }
    }

    /// Connect, see who is there, and ask.
    fn ask(&self) -> Result<OwnedFd, Step> {
        let connection = socket::connect_to(&self.path).map_err(Step::NotYet)?;
        let found = socket::credentials(connection.as_fd()).map_err(Step::NotYet)?;
        if found.user != rustix::process::geteuid().as_raw() || self.process != Some(found.process) {
            let (process, user) = (found.process, found.user);
            return Err(Step::Failed(ImportError::Impostor { owner: self.owner, process, user }));
        }
        socket::send(connection.as_fd(), &self.question.emit(), &[]).map_err(Step::NotYet)?;
        Ok(connection)
    }

    fn open(
        &self,
        connection: OwnedFd,
        grant: Grant,
        descriptors: Vec<OwnedFd>,
    ) -> io::Result<ImportedRegion> {
        let mut descriptors = descriptors.into_iter();
        let missing = || io::Error::other("descriptors are missing");
        let control = descriptors.next().ok_or_else(missing)?;
        let has_file = grant.on_device.is_none_or(|offer| offer.has_file);
        let file = if has_file { Some(descriptors.next().ok_or_else(missing)?) } else { None };
        let doorbell = descriptors.next().map(Doorbell::open).transpose()?;
        let bytes = match (&grant.on_device, file) {
            (Some(offer), file) => {
                let file = file.as_ref().map(AsFd::as_fd);
                Backing::Device(Opened::new(self.device.as_ref(), offer, file, grant.length)?)
            }
            (None, file) => Backing::Pages(map(&file.ok_or_else(missing)?, &grant)?),
        };
        Ok(ImportedRegion::new(Parts {
            bytes,
            control: Control::open(control.as_fd())?,
            connection,
            doorbell,
            grant,
            owner: self.owner,
            region: self.question.region,
            key: self.question.key,
        }))
    }
}

/// Map the file of a region.
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
