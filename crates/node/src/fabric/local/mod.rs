//! Direct access of a node to the memory of other nodes of its server.
//!
//! A node exports the regions that it allocates to the nodes of its server and tenant ([`exports`]). It maps a region of a peer after the first
//! operation on it ([`LocalPaths::access`]). Regions on a device are opened by the device of the importer, if it has one of the same kind. `docs/decisions/local-memory.md` gives the reasons.
//!
//! *Memory of the program.* A region that another process has registered cannot be mapped. The system copies the bytes of puts and gets between
//! the two processes, under the rules of mapped memory. All else on it goes in frames.
//!
//! *Path.* An operation is direct if its region is mapped, the peer is reachable, and all earlier operations to that peer have ended. All
//! other operations go in frames: while a mapping is requested, to memory that cannot be mapped, and while frames to the peer are in flight.
//! So a direct access never overtakes a frame. Frames never overtake a direct access, because it has ended when the call returns.
//!
//! *Errors.* A direct access that fails has done nothing, or its region is revoked. It is then repeated in frames, so that the owner decides
//! about the result and counts refusals. If a device has failed, an operation that must not be done twice ends with an error instead.
//!
//! *End of a region.* The owner does not wait for importers, except with memory on a device, which it frees when they have closed it, and with
//! memory of the program, which it gives back when no copy is in progress.
//! [`LocalPaths::poll`] looks for regions whose owner has ended them.
//!
//! *Waits.* A peer changes a word of this node without a frame, and rings the doorbell. [`LocalPaths::poll`] reads the awaited words and
//! tells the endpoint which waits have ended.

pub(super) mod exports;
pub(super) mod peer_region;

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rackloom_plan::Plan;
use rackloom_protocol::operation::{GET_BYTES_MAX, LOAD_STORE_BYTES_MAX};
use rackloom_protocol::{
    Access, Command, Instant, NodeId, OperationError, RegionConfig, RegionId, RemoteAddress, Signal,
};
use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Pid, test_kill_process};

use self::exports::Exports;
use crate::clock::Clock;
use crate::fabric::engine::deaths::Deaths;
use crate::fabric::engine::member::Member;
use crate::fabric::memory::bytes::RegionMemory;
use crate::memory::{LocalMemory, SharedDevice};
use crate::sharing::{
    AccessError, DeviceWords, Direct, ExportTerms, ImportError, Importer, PendingImport, Seats, SharedBytes,
};
use crate::wires::Doorbell;

/// Interval between looks for answers to requests for memory, in nanoseconds. Each costs a system call per request.
const ANSWER_INTERVAL_NS: u64 = 100_000;
/// Longest time for an answer.
const ANSWER_TIMEOUT_NS: u64 = 10_000_000_000;
/// Time after the first refusal until the region is requested again: its owner may be about to allocate it. It doubles with each refusal.
const RETRY_MIN_NS: u64 = 1_000_000;
/// Longest such time. The number of a region may be given to other memory later.
const RETRY_MAX_NS: u64 = 1_000_000_000;
/// Interval between looks for regions on a device that their owners have ended, in nanoseconds. Each reads one word per region.
const ENDED_INTERVAL_NS: u64 = 20_000_000;
/// Interval between looks for copies of peers from and to ended regions, in nanoseconds.
const COPIES_INTERVAL_NS: u64 = 100_000;
/// Largest number of requests and refusals that are remembered. Operations on further regions go in frames.
const REQUESTS_MAX: usize = 4096;

/// Memory that a node shares, and memory that others share with it.
#[derive(Debug)]
pub(super) struct LocalPaths {
    importer: Importer,
    exports: Arc<Exports>,
    direct: Direct,
    /// Peers by number in the plan; `None` for members whose memory cannot be mapped.
    peers: Vec<Option<LocalPeer>>,
    requests: Vec<MappingRequest>,
    answers_due: Instant,
    /// Time of the next look for regions that their owners have ended.
    ended_due: Instant,
    /// Time of the next read of awaited words on a device.
    device_words: DeviceWords,
    deaths: u64,
    counts: DirectCounts,
    /// Regions whose changes wake this node, because it waited for a word of them since it slept last.
    awaited: Vec<RegionId>,
    /// Time of the next look for copies of peers from and to regions that have ended.
    copies_due: Instant,
    /// A refusal of copies by the system was logged.
    has_logged_denial: bool,
    /// The directory by which sockets are named. Closed last.
    _directory: OwnedFd,
}

#[derive(Clone, Copy, Debug, Default)]
struct LocalPeer {
    /// Deaths of the peer that have been handled.
    deaths: u32,
}

/// Direct operations of a node.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DirectCounts {
    pub(super) operations: u64,
    pub(super) bytes: u64,
    /// Those of them that the system copied from or to the memory of a program, and their bytes.
    pub(super) copies: u64,
    pub(super) copied_bytes: u64,
}

#[derive(Debug)]
struct MappingRequest {
    owner: NodeId,
    region: RegionId,
    state: RequestState,
    /// Time until the request is repeated if it is refused.
    retry_ns: u64,
}

impl MappingRequest {
    fn refuse(&mut self, reason: String, now: Instant) {
        self.state = RequestState::Refused { reason, until: now + self.retry_ns };
        self.retry_ns = (2 * self.retry_ns).min(RETRY_MAX_NS);
    }
}

#[derive(Debug)]
enum RequestState {
    Pending { import: Box<PendingImport>, until: Instant },
    Refused { reason: String, until: Instant },
}

/// Progress of a mapping.
#[derive(Debug)]
pub(super) enum MappingState<'a> {
    Mapped,
    /// The memory belongs to the owner's program. Puts and gets are copies between the two processes, and nothing is mapped.
    InProgram,
    Pending,
    Refused(&'a str),
    /// The owner is in another server or of another tenant, or the rack is set to use frames.
    NotLocal,
}

/// Place and identity of a node in a rack whose nodes share memory.
pub(super) struct Place<'a> {
    pub(super) plan: &'a Plan,
    pub(super) node: NodeId,
    /// Private directory with the sockets of the owners.
    pub(super) directory: &'a Path,
    /// Process of each member of this host, by number in the plan.
    pub(super) processes: &'a [Option<u32>],
    pub(super) doorbell: &'a Doorbell,
    pub(super) clock: Clock,
}

impl LocalPaths {
    /// Opens the local paths of a node. Returns `None` if no member can share memory with it.
    ///
    /// # Errors
    /// The system has no descriptors or threads, or the directory cannot be used.
    pub(super) fn open(place: &Place<'_>) -> std::io::Result<Option<Self>> {
        let Place { plan, node, directory, .. } = *place;
        let local = if plan.settings.force_wire { Vec::new() } else { plan.memory_peers(node) };
        if local.is_empty() {
            return Ok(None);
        }
        let mut seats = Seats::of_plan(plan);
        for (member, process) in (0..).map(NodeId).zip(place.processes) {
            if let Some(process) = *process {
                seats.occupy(member, process);
            }
        }
        seats.occupy(node, std::process::id());
        // The address of a socket has 107 bytes, and the path of the directory may be longer.
        let opened = open(directory, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let directory = PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd()));
        let exports = Exports::open(node, &directory, seats.clone(), place.doorbell, place.clock)?;
        let mut peers = vec![None; plan.members.len()];
        local.iter().for_each(|peer| peers[peer.index()] = Some(LocalPeer::default()));
        Ok(Some(Self {
            importer: Importer::new(node, &directory, seats),
            exports: Arc::new(exports),
            direct: Direct::default(),
            peers,
            requests: Vec::new(),
            answers_due: Instant::NEVER,
            ended_due: Instant::NEVER,
            device_words: DeviceWords::default(),
            deaths: 0,
            counts: DirectCounts::default(),
            awaited: Vec::new(),
            copies_due: Instant::NEVER,
            has_logged_denial: false,
            _directory: opened,
        }))
    }

    /// Exports a new region to the peers. Without descriptors for it, peers use frames.
    pub(super) fn export(&self, config: RegionConfig, bytes: SharedBytes, terms: ExportTerms) {
        let mut exporter = self.exports.lock();
        let exported = exporter.export_bytes(config, bytes, terms);
        exporter.set_awaited(config.region, self.awaited.contains(&config.region));
        if let Err(error) = exported {
            tracing::debug!("{error}; peers use frames");
        }
    }

    /// Opens regions on devices of peers with this node's device from now on.
    pub(super) fn set_device(&mut self, device: &SharedDevice) {
        self.importer.set_device(SharedDevice::clone(device));
        // Without a device, regions on a device were refused here.
        self.requests.retain(|request| !matches!(request.state, RequestState::Refused { .. }));
    }

    /// Ends the access of peers to a region. Returns the number of the ended export if peers keep its memory.
    pub(super) fn retire(&mut self, region: RegionId) -> Option<u64> {
        self.copies_due = Instant::ZERO;
        self.exports.lock().retire(region)
    }

    /// Returns `true` if a peer still copies from or to an ended region of the program.
    pub(super) fn is_copied(&self, region: RegionId) -> bool {
        self.exports.lock().regions_in_copies().contains(&region)
    }

    /// Ends all exports, and waits until no peer copies from or to the memory of the program. A copy lasts as long as the system needs for it; a peer
    /// that is stopped in one is waited for until it continues or ends.
    pub(super) fn end(&self) {
        let mut exporter = self.exports.lock();
        exporter.end();
        while !exporter.regions_in_copies().is_empty() {
            drop(exporter);
            std::thread::sleep(Duration::from_nanos(COPIES_INTERVAL_NS));
            exporter = self.exports.lock();
        }
    }

    /// Sets the access rights of one peer to a region. All mappings of the region end, and may be requested again.
    pub(super) fn set_access(&self, region: RegionId, peer: NodeId, access: Option<Access>) {
        self.exports.lock().set_access(region, peer, access);
    }

    /// Returns the exports of this node.
    pub(super) fn exports(&self) -> Arc<Exports> {
        Arc::clone(&self.exports)
    }

    /// Ends the access of peers to all regions, for a fault script.
    pub(super) fn revoke_all(&self) {
        let mut exporter = self.exports.lock();
        for region in exporter.regions() {
            exporter.retire(region);
        }
    }

    /// Makes peers use frames for all regions of this node, because frames only meet the faults of a script in memory.
    pub(super) fn withhold(&self) {
        self.exports.lock().withhold(true);
    }

    /// Returns the number of direct operations, and their bytes.
    pub(super) const fn counts(&self) -> DirectCounts {
        self.counts
    }

    /// Executes a command on mapped memory of a peer. Returns the result, or `None` if the command must go in frames.
    pub(super) fn access(
        &mut self,
        member: &mut Member,
        command: &Command<'_>,
    ) -> Option<Result<u64, OperationError>> {
        let (target, bytes) = target_of(command)?;
        let is_peer = self.peers.get(target.node.index()).is_some_and(Option::is_some);
        if !is_peer || !member.member().is_idle_towards(target.node) {
            return None;
        }
        if !self.direct.reaches(target.node, target.region) {
            self.request(member.last_poll(), &target);
            return None;
        }
        if let Some(word) = signal_of(command)
            && !self.direct.reaches(word.node, word.region)
        {
            self.request(member.last_poll(), &word);
            return None;
        }
        let memory = member.memory_mut();
        if memory.has_faults() {
            return None;
        }
        match self.direct.access(memory, command) {
            Ok(Some(Ok(value))) => {
                self.counts.operations += 1;
                self.counts.bytes += bytes;
                if self.direct.is_in_program(target.node, target.region) {
                    self.counts.copies += 1;
                    self.counts.copied_bytes += bytes;
                }
                let now = member.last_poll();
                member.note_work(now);
                Some(Ok(value))
            }
            Ok(Some(Err(failed @ AccessError::DeviceFailed))) if !can_be_repeated(command) => {
                Some(Err(failed.as_operation_error()))
            }
            Ok(Some(Err(failed @ AccessError::BadMemory))) => Some(Err(failed.as_operation_error())),
            Ok(Some(Err(AccessError::NotPermitted))) => {
                self.deny_copies(member.last_poll(), &target);
                None
            }
            Ok(Some(Err(AccessError::Revoked | AccessError::OwnerGone))) => {
                self.direct.forget_region(target.node, target.region);
                None
            }
            _ => None,
        }
    }

    /// Continues requests for memory, handles deaths, and ends waits for words that peers have changed.
    pub(super) fn poll(&mut self, member: &mut Member, deaths: &Deaths) {
        let now = member.last_poll();
        if deaths.total() != self.deaths {
            self.deaths = deaths.total();
            self.handle_deaths(deaths);
        }
        if now >= self.answers_due {
            self.take_answers(now);
        }
        if now >= self.ended_due {
            self.drop_ended(now);
        }
        if now >= self.copies_due {
            let has_copies = !self.exports.lock().regions_in_copies().is_empty();
            self.copies_due = if has_copies { now + COPIES_INTERVAL_NS } else { Instant::NEVER };
        }
        let (endpoint, memory) = member.parts_mut();
        let reads_device = self.device_words.are_due(now);
        let mut has_read = false;
        let word = |region, offset| {
            let is_on_device = memory.is_on_device(region);
            has_read |= is_on_device;
            if is_on_device && !reads_device { None } else { memory.word(region, offset).ok() }
        };
        if endpoint.look_at_satisfied_waits(word) {
            member.note_work(now);
        }
        if reads_device && has_read {
            self.device_words.note_reads(now);
        }
    }

    /// Has peers wake this node when they change a region, because it waits for a word of it. Call it before the word is read.
    pub(super) fn await_word(&mut self, region: RegionId) {
        if !self.awaited.contains(&region) {
            self.awaited.push(region);
            self.exports.lock().set_awaited(region, true);
        }
    }

    /// Prepares a sleep: without a wait, changes of peers need not wake this node. Each wake-up costs the peer a system call.
    pub(super) fn prepare_sleep(&mut self, member: &Member) {
        if self.awaited.is_empty() || member.member().has_waits() {
            return;
        }
        let mut exporter = self.exports.lock();
        self.awaited.drain(..).for_each(|region| exporter.set_awaited(region, false));
    }

    /// Returns `true` if a peer has changed an awaited word. For a thread that is about to sleep.
    pub(super) fn is_ready(member: &mut Member) -> bool {
        let (endpoint, memory) = member.parts_mut();
        let memory: &RegionMemory = memory;
        endpoint.has_satisfied_wait(|region, offset| memory.word(region, offset).ok())
    }

    /// Returns the latest time of the next poll.
    pub(super) fn next_poll(&self) -> Instant {
        self.answers_due.min(self.ended_due).min(self.copies_due)
    }

    /// Handles a new process in the seat of a peer.
    pub(super) fn seated(&mut self, node: NodeId, process: u32) {
        self.importer.seats_mut().occupy(node, process);
        self.exports.lock().seats_mut().occupy(node, process);
        self.forget(node);
    }

    /// Requests the memory at an address, if that has not happened. Returns the state of its mapping.
    pub(super) fn request(&mut self, now: Instant, target: &RemoteAddress) -> MappingState<'_> {
        let RemoteAddress { node: owner, region, key, .. } = *target;
        if !self.peers.get(owner.index()).is_some_and(Option::is_some) {
            return MappingState::NotLocal;
        }
        if self.direct.reaches(owner, region) {
            let is_in_program = self.direct.is_in_program(owner, region);
            return if is_in_program { MappingState::InProgram } else { MappingState::Mapped };
        }
        let is_over = |state: &RequestState, since_ns: u64| matches!(state, RequestState::Refused { until, .. } if now >= *until + since_ns);
        // A refusal is remembered for longer than it holds, because the next one holds twice as long.
        self.requests.retain(|request| !is_over(&request.state, RETRY_MAX_NS));
        let known = self.requests.iter().position(|one| (one.owner, one.region) == (owner, region));
        let index = match known {
            Some(index) => index,
            None if self.requests.len() >= REQUESTS_MAX => return MappingState::Refused("too many requests"),
            None => {
                let state = RequestState::Refused { reason: String::new(), until: now };
                self.requests.push(MappingRequest { owner, region, state, retry_ns: RETRY_MIN_NS });
                self.requests.len() - 1
            }
        };
        let request = &mut self.requests[index];
        if is_over(&request.state, 0) {
            match self.importer.import(owner, region, key) {
                Ok(import) => {
                    self.answers_due = now;
                    let until = now + ANSWER_TIMEOUT_NS;
                    request.state = RequestState::Pending { import: Box::new(import), until };
                }
                Err(error) => request.refuse(error.to_string(), now),
            }
        }
        match &request.state {
            RequestState::Pending { .. } => MappingState::Pending,
            RequestState::Refused { reason, .. } => MappingState::Refused(reason),
        }
    }

    /// Takes the import of a region that [`Self::request`] reports as mapped. Its operations then need another mapping.
    pub(super) fn take(&mut self, owner: NodeId, region: RegionId) -> Option<crate::sharing::ImportedRegion> {
        self.direct.take(owner, region)
    }

    fn take_answers(&mut self, now: Instant) {
        let Self { requests, direct, has_logged_denial, .. } = self;
        let (mut are_pending, mut has_new) = (false, false);
        requests.retain_mut(|request| {
            let RequestState::Pending { import, until } = &mut request.state else { return true };
            let reason = match import.poll() {
                Ok(Some(imported)) => {
                    direct.add(imported);
                    has_new = true;
                    return false;
                }
                Ok(None) if now < *until => {
                    are_pending = true;
                    return true;
                }
                Ok(None) => "no answer in time".to_owned(),
                Err(error) => {
                    if matches!(error, ImportError::CopiesDenied { .. }) && !*has_logged_denial {
                        *has_logged_denial = true;
                        tracing::warn!("{error}; puts and gets use frames");
                    }
                    error.to_string()
                }
            };
            request.refuse(reason, now);
            true
        });
        self.answers_due = if are_pending { now + ANSWER_INTERVAL_NS } else { Instant::NEVER };
        if has_new {
            self.drop_ended(now);
        }
    }

    /// Makes operations on a region of a peer's program use frames for a while, because the system has refused a copy.
    fn deny_copies(&mut self, now: Instant, target: &RemoteAddress) {
        let RemoteAddress { node: owner, region, .. } = *target;
        self.direct.forget_region(owner, region);
        let reason = AccessError::NotPermitted.to_string();
        if !std::mem::replace(&mut self.has_logged_denial, true) {
            tracing::warn!("{owner}, {region}: {reason}; puts and gets use frames");
        }
        let state = RequestState::Refused { reason, until: now + RETRY_MAX_NS };
        self.requests.push(MappingRequest { owner, region, state, retry_ns: RETRY_MAX_NS });
    }

    /// Drops regions whose owners have ended them.
    fn drop_ended(&mut self, now: Instant) {
        self.ended_due = if self.direct.drop_ended() { now + ENDED_INTERVAL_NS } else { Instant::NEVER };
    }

    fn handle_deaths(&mut self, deaths: &Deaths) {
        for index in 0..self.peers.len() {
            let node = NodeId(index as u16);
            let Some(peer) = &mut self.peers[index] else { continue };
            if deaths.of(node) == peer.deaths {
                continue;
            }
            peer.deaths = deaths.of(node);
            self.forget(node);
            let process = self.importer.seats_mut().seat(node).and_then(|seat| seat.process);
            // The number of an ended process may be used again. A peer that is only unreachable keeps its seat.
            if process.is_some_and(has_ended) {
                self.importer.seats_mut().vacate(node);
                self.exports.lock().seats_mut().vacate(node);
            }
        }
    }

    fn forget(&mut self, node: NodeId) {
        self.direct.forget(node);
        self.requests.retain(|request| request.owner != node);
    }
}

impl Drop for LocalPaths {
    fn drop(&mut self) {
        // Another user of the exports may keep them for a moment longer, and the directory of the socket closes now.
        self.end();
    }
}

fn has_ended(process: u32) -> bool {
    let process = i32::try_from(process).ok().and_then(Pid::from_raw);
    process.is_none_or(|process| test_kill_process(process) == Err(rustix::io::Errno::SRCH))
}

/// Returns `true` if a command has the same effect when a part of it was done before.
const fn can_be_repeated(command: &Command<'_>) -> bool {
    !matches!(command, Command::Atomic { .. } | Command::Put { signal: Some(_), .. })
}

/// Returns the address of the word that a put signals.
const fn signal_of(command: &Command<'_>) -> Option<RemoteAddress> {
    match *command {
        Command::Put { target, signal: Some(Signal { region, offset, key, .. }), .. } => {
            Some(RemoteAddress { node: target.node, region, offset, key })
        }
        _ => None,
    }
}

/// Returns the address that a command accesses, and its bytes. `None` for commands that always go in frames, and for lengths that are refused there.
fn target_of(command: &Command<'_>) -> Option<(RemoteAddress, u64)> {
    let is_short = |length: u64| (1..=LOAD_STORE_BYTES_MAX as u64).contains(&length);
    match *command {
        Command::Store { target, data, .. } if is_short(data.len() as u64) => {
            Some((target, data.len() as u64))
        }
        Command::Load { target, into, .. } if is_short(into.length) => Some((target, into.length)),
        Command::Atomic { target, atomic, .. } => Some((target, atomic.width.bytes())),
        Command::Put { target, source, signal, .. } if source.length > 0 || signal.is_some() => {
            Some((target, source.length))
        }
        Command::Get { target, into, .. } if (1..=GET_BYTES_MAX).contains(&into.length) => {
            Some((target, into.length))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_request_is_repeated_soon_and_then_less_often() {
        let state = RequestState::Refused { reason: String::new(), until: Instant::ZERO };
        let mut request =
            MappingRequest { owner: NodeId(1), region: RegionId(7), state, retry_ns: RETRY_MIN_NS };
        let mut waits = (0..12).map(|_| {
            request.refuse("no such region".to_owned(), Instant::ZERO);
            let RequestState::Refused { until, .. } = request.state else { panic!("it was refused") };
            until.since(Instant::ZERO) / 1_000_000
        });
        assert!(waits.by_ref().take(10).eq([1, 2, 4, 8, 16, 32, 64, 128, 256, 512]));
        assert!(waits.eq([1000, 1000]));
    }
}
