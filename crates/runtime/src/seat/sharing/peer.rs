//! Path to one peer of the same server: vacant, being requested, direct, or in frames.
//!
//! The path is direct only if *every* region that the peer's job shares has been mapped. Otherwise all
//! commands go in frames, and the report states the reason. No function here waits.

use rackloom::sharing::{Direct, ImportError, ImportedRegion, Importer, PendingImport, Refusal};
use rackloom_jobs::local::LocalPeer;
use rackloom_protocol::{Command, Instant, NodeId, RegionConfig};

/// Longest time for a peer to answer all requests, from the first poll.
const REQUEST_TIMEOUT_NS: u64 = 10_000_000_000;

/// Path of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PeerPath {
    Direct,
    Wire,
    /// The path is not decided yet.
    Undecided,
}

/// One peer of the same server.
pub(super) struct Peer {
    pub(super) node: NodeId,
    name: String,
    /// Regions that the peer's job shares.
    shared: LocalPeer,
    state: State,
}

enum State {
    /// No process holds the seat.
    Vacant,
    /// Requests are outstanding. Some regions may already be mapped.
    Requesting {
        until: Option<Instant>,
        pending: Option<PendingImport>,
        mapped: Vec<ImportedRegion>,
    },
    Direct,
    Wire {
        reason: String,
    },
}

impl State {
    fn requesting() -> Self {
        Self::Requesting { until: None, pending: None, mapped: Vec::new() }
    }
}

impl Peer {
    pub(super) fn new(node: NodeId, name: String, regions: Vec<RegionConfig>, is_there: bool) -> Self {
        let state = if is_there { State::requesting() } else { State::Vacant };
        Self { node, name, shared: LocalPeer::new(node, regions), state }
    }

    /// Starts to request the peer's memory, from its first region.
    pub(super) fn request(&mut self, now: Instant) {
        self.state =
            State::Requesting { until: Some(now + REQUEST_TIMEOUT_NS), pending: None, mapped: Vec::new() };
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Stops the use of the peer's memory. The note about a path in frames remains.
    pub(super) fn release(&mut self) {
        if !matches!(self.state, State::Wire { .. }) {
            self.state = State::Vacant;
        }
    }

    /// Handles the loss of the peer.
    pub(super) fn lose(&mut self) {
        self.state = State::Vacant;
    }

    pub(super) fn is_seated(&self) -> bool {
        !matches!(self.state, State::Vacant)
    }

    pub(super) fn is_settled(&self) -> bool {
        !matches!(self.state, State::Requesting { .. })
    }

    /// Returns the reason why a peer of the server is reached in frames, as a note.
    pub(super) fn note(&self) -> Option<String> {
        match &self.state {
            State::Wire { reason } => Some(format!("memory of {} is reached in frames: {reason}", self.name)),
            _ => None,
        }
    }

    /// Continues outstanding requests. `direct` receives the regions once all are mapped.
    pub(super) fn poll(&mut self, now: Instant, importer: &Importer, direct: &mut Direct) {
        let State::Requesting { until, pending, mapped } = &mut self.state else { return };
        let until = *until.get_or_insert(now + REQUEST_TIMEOUT_NS);
        let outcome = loop {
            let Some(region) = self.shared.regions().get(mapped.len()) else { break Ok(()) };
            match step(importer, self.node, region, pending) {
                Ok(Some(imported)) => mapped.push(imported),
                Ok(None) if now < until => return,
                Ok(None) => break Err("no answer in time".to_owned()),
                Err(error) if now < until && is_temporary(&error) => return,
                Err(error) => break Err(error.to_string()),
            }
        };
        self.state = match outcome {
            Ok(()) => {
                mapped.drain(..).for_each(|imported| direct.add(imported));
                State::Direct
            }
            Err(reason) => State::Wire { reason },
        };
    }

    /// Returns the path of a command to this peer.
    pub(super) fn path(&self, command: &Command<'_>) -> PeerPath {
        match self.state {
            State::Requesting { .. } => PeerPath::Undecided,
            State::Direct if self.shared.allows(command) => PeerPath::Direct,
            _ => PeerPath::Wire,
        }
    }
}

fn step(
    importer: &Importer,
    node: NodeId,
    region: &RegionConfig,
    pending: &mut Option<PendingImport>,
) -> Result<Option<ImportedRegion>, ImportError> {
    let mut import = match pending.take() {
        Some(import) => import,
        None => importer.import(node, region.region, region.key)?,
    };
    let answer = import.poll()?;
    if answer.is_none() {
        *pending = Some(import);
    }
    Ok(answer)
}

/// Returns true if a repeated request may succeed: the peer does not know yet which process holds which seat.
fn is_temporary(error: &ImportError) -> bool {
    matches!(error, ImportError::Refused { reason: Refusal::NoSeat | Refusal::NoSuchRegion, .. })
}
