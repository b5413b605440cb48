//! Path to one peer of the same server: vacant, being requested, direct, or in frames.
//!
//! The path is direct only if *every* region that the peer's job shares has been mapped. Otherwise all commands go in frames, and the report states
//! the reason. Nothing here waits.

use rackloom::sharing::{Direct, ImportError, ImportedRegion, Importer, PendingImport, Refusal};
use rackloom_jobs::local::LocalPeer;
use rackloom_protocol::{Command, Instant, NodeId, RegionConfig};

/// How long a peer may take to answer, from its first frame of life to its last excuse.
const PATIENCE_NS: u64 = 10_000_000_000;

/// Path of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Direct,
    Wire,
    /// It is not decided.
    NotYet,
}

/// One peer.
pub(super) struct Peer {
    pub(super) node: NodeId,
    name: String,
    /// Regions that its job shares.
    shared: LocalPeer,
    state: State,
}

enum State {
    /// Nobody sits there, or nobody any more.
    Vacant,
    /// Questions are out; the first half of the regions may be mapped already.
    Asking {
        until: Option<Instant>,
        pending: Option<PendingImport>,
        mapped: Vec<ImportedRegion>,
    },
    Direct,
    Wire {
        why: String,
    },
}

impl State {
    fn asking() -> Self {
        Self::Asking { until: None, pending: None, mapped: Vec::new() }
    }
}

impl Peer {
    pub(super) fn new(node: NodeId, name: String, regions: Vec<RegionConfig>, is_there: bool) -> Self {
        let state = if is_there { State::asking() } else { State::Vacant };
        Self { node, name, shared: LocalPeer::new(node, regions), state }
    }

    /// Begin to ask for its memory, from the first region on.
    pub(super) fn ask(&mut self, now: Instant) {
        self.state = State::Asking { until: Some(now + PATIENCE_NS), pending: None, mapped: Vec::new() };
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Nothing is wanted of it any more. That it could not be reached directly remains to be told.
    pub(super) fn let_go(&mut self) {
        if !matches!(self.state, State::Wire { .. }) {
            self.state = State::Vacant;
        }
    }

    /// It is gone.
    pub(super) fn lose(&mut self) {
        self.state = State::Vacant;
    }

    pub(super) fn is_seated(&self) -> bool {
        !matches!(self.state, State::Vacant)
    }

    pub(super) fn is_settled(&self) -> bool {
        !matches!(self.state, State::Asking { .. })
    }

    /// Why it is not reached directly, if it could be.
    pub(super) fn note(&self) -> Option<String> {
        match &self.state {
            State::Wire { why } => Some(format!("memory of {} is reached in frames: {why}", self.name)),
            _ => None,
        }
    }

    /// A step further, if it is being asked.
    pub(super) fn look(&mut self, now: Instant, importer: &Importer, direct: &mut Direct) {
        let State::Asking { until, pending, mapped } = &mut self.state else { return };
        let until = *until.get_or_insert(now + PATIENCE_NS);
        let outcome = loop {
            let Some(region) = self.shared.regions().get(mapped.len()) else { break Ok(()) };
            match step(importer, self.node, region, pending) {
                Ok(Some(imported)) => mapped.push(imported),
                Ok(None) if now < until => return,
                Ok(None) => break Err("no answer in time".to_owned()),
                Err(error) if now < until && is_passing(&error) => return,
                Err(error) => break Err(error.to_string()),
            }
        };
        self.state = match outcome {
            Ok(()) => {
                mapped.drain(..).for_each(|imported| direct.add(imported));
                State::Direct
            }
            Err(why) => State::Wire { why },
        };
    }

    /// Returns the path of a command to this peer.
    pub(super) fn way(&self, command: &Command<'_>) -> Way {
        match self.state {
            State::Asking { .. } => Way::NotYet,
            State::Direct if self.shared.allows(command) => Way::Direct,
            _ => Way::Wire,
        }
    }
}

fn step(
    importer: &Importer,
    node: NodeId,
    region: &RegionConfig,
    pending: &mut Option<PendingImport>,
) -> Result<Option<ImportedRegion>, ImportError> {
    let mut asked = match pending.take() {
        Some(asked) => asked,
        None => importer.import(node, region.region, region.key)?,
    };
    let answer = asked.poll()?;
    if answer.is_none() {
        *pending = Some(asked);
    }
    Ok(answer)
}

/// Whether asking again may help: the peer has not been told yet who sits where.
fn is_passing(error: &ImportError) -> bool {
    matches!(error, ImportError::Refused { reason: Refusal::NoSeat | Refusal::NoSuchRegion, .. })
}
