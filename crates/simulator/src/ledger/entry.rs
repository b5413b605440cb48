//! One operation as it was requested: the bytes and words that it may change.

use rackloom_protocol::{Command, Completion, LocalRange, NodeId, OperationError, OperationId, RegionId};

/// Range of a node's memory that an operation may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Destination {
    pub(super) holder: NodeId,
    pub(super) region: RegionId,
    pub(super) offset: u64,
    pub(super) length: u64,
}

/// Word that an operation changes as a whole.
pub(super) type Word = (NodeId, RegionId, u64);

/// Facts about an operation that are needed to judge its end.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    Store {
        data: Box<[u8]>,
    },
    Put {
        source: LocalRange,
    },
    /// Loads and gets: they write the initiator's own memory.
    Fetch,
    Atomic,
    Receive,
    Flush {
        target: Option<NodeId>,
    },
    /// Sends and waits, which write nothing by themselves.
    Other,
}

/// An outstanding operation.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) number: u64,
    pub(super) initiator: NodeId,
    /// `None`: a posted store, which has no completion.
    pub(super) operation: Option<OperationId>,
    pub(super) target: Option<NodeId>,
    pub(super) kind: Kind,
    pub(super) destination: Option<Destination>,
    pub(super) word: Option<Word>,
    /// True if the initiator has lost the target since the request.
    pub(super) was_lost: bool,
}

impl Entry {
    /// Returns `None` for commands that are no operations.
    pub(super) fn of(initiator: NodeId, command: &Command<'_>, number: u64) -> Option<Self> {
        let entry = |operation, target, kind| Self {
            number,
            initiator,
            operation: Some(operation),
            target,
            kind,
            destination: None,
            word: None,
            was_lost: false,
        };
        let own = |into: LocalRange| Destination {
            holder: initiator,
            region: into.region,
            offset: into.offset,
            length: into.length,
        };
        Some(match *command {
            Command::Store { operation, target, data, completion } => {
                let (region, offset, length) = (target.region, target.offset, data.len() as u64);
                let mut store = entry(operation, Some(target.node), Kind::Store { data: data.into() });
                store.destination = Some(Destination { holder: target.node, region, offset, length });
                store.operation = (completion == Completion::Visible).then_some(operation);
                store
            }
            Command::Put { operation, target, source, signal } => {
                let (region, offset, length) = (target.region, target.offset, source.length);
                let destination =
                    (length > 0).then_some(Destination { holder: target.node, region, offset, length });
                let word = signal.map(|signal| (target.node, signal.region, signal.offset));
                Self { destination, word, ..entry(operation, Some(target.node), Kind::Put { source }) }
            }
            Command::Load { operation, target, into } | Command::Get { operation, target, into } => {
                let destination = (into.length > 0).then(|| own(into));
                Self { destination, ..entry(operation, Some(target.node), Kind::Fetch) }
            }
            Command::Atomic { operation, target, .. } => {
                let word = Some((target.node, target.region, target.offset));
                Self { word, ..entry(operation, Some(target.node), Kind::Atomic) }
            }
            Command::Receive { operation, into, .. } => {
                let destination = (into.length > 0).then(|| own(into));
                Self { destination, ..entry(operation, None, Kind::Receive) }
            }
            Command::Send { operation, target, .. } => entry(operation, Some(target), Kind::Other),
            Command::WaitUntil { operation, .. } => entry(operation, None, Kind::Other),
            Command::Flush { operation, target } => entry(operation, None, Kind::Flush { target }),
            _ => return None,
        })
    }

    /// Returns true if the operation changes its word after its own data.
    pub(super) const fn is_signal(&self) -> bool {
        matches!(self.kind, Kind::Put { .. })
    }

    /// Returns the number of bytes that must have been written if the operation ended with this result.
    pub(super) fn length_of(&self, result: Result<u64, OperationError>, length: u64) -> u64 {
        match (&self.kind, result) {
            (Kind::Receive, Ok(received)) => received,
            _ => length,
        }
    }

    /// Returns the operation's name for findings.
    pub(super) fn name(&self) -> String {
        let kind = match self.kind {
            Kind::Store { .. } => "store",
            Kind::Put { .. } => "put",
            Kind::Fetch => "load or get",
            Kind::Atomic => "atomic",
            Kind::Receive => "receive",
            Kind::Flush { .. } => "flush",
            Kind::Other => "send or wait",
        };
        let name = self.operation.map_or_else(String::new, |operation| format!(" {}", operation.0));
        let target = self.target.map_or_else(String::new, |target| format!(" to {target}"));
        format!("{kind}{name}{target}")
    }
}
