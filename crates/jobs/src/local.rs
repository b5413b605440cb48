//! Operations that nodes of one server carry out on each other's memory without a frame.
//!
//! Both engines use this module, so one rack file puts the same operations on the links in processes and in virtual
//! time. `rackloom_plan::Plan::memory_peers` lists which nodes share memory. [`LocalPeer::allows`] decides which
//! operations the owner would grant. Other operations go to the owner in a frame, so that the owner counts the attempt.
//! Tagged messages always go in frames.
//!
//! The engine performs the access: processes map the memory, virtual time uses the server's local path.

use rackloom_protocol::{Command, NodeId, RegionConfig, RemoteAddress, Signal};

use crate::report::{PathCount, PathReport};

const WORD_BYTES: u64 = 8;

/// A node of the same server, with the regions that it shares.
#[derive(Clone, Debug)]
pub struct LocalPeer {
    /// The owner of the regions.
    pub node: NodeId,
    regions: Vec<RegionConfig>,
}

impl LocalPeer {
    /// Returns a peer whose job has these regions. Regions that allow no access are left out.
    pub fn new(node: NodeId, regions: impl IntoIterator<Item = RegionConfig>) -> Self {
        Self { node, regions: regions.into_iter().filter(is_shared).collect() }
    }

    /// Returns the shared regions, in the order of the job.
    #[must_use]
    pub fn regions(&self) -> &[RegionConfig] {
        &self.regions
    }

    /// Returns whether the owner would grant the access of `command`.
    #[must_use]
    pub fn allows(&self, command: &Command<'_>) -> bool {
        match *command {
            Command::Store { target, data, .. } => {
                self.holds(target, data.len() as u64, |region| region.access.write)
            }
            Command::Load { target, into, .. } | Command::Get { target, into, .. } => {
                self.holds(target, into.length, |region| region.access.read)
            }
            Command::Atomic { target, atomic, .. } => {
                let width = atomic.width.bytes();
                target.offset.is_multiple_of(width)
                    && self.holds(target, width, |region| region.access.atomic)
            }
            Command::Put { target, source, signal, .. } => {
                self.holds(target, source.length, |region| region.access.write)
                    && signal.is_none_or(|signal| self.holds_signal(signal))
            }
            _ => false,
        }
    }

    fn holds_signal(&self, signal: Signal) -> bool {
        let Signal { region, offset, key, .. } = signal;
        let word = RemoteAddress { node: self.node, region, offset, key };
        offset.is_multiple_of(WORD_BYTES) && self.holds(word, WORD_BYTES, |region| region.access.write)
    }

    fn holds(&self, target: RemoteAddress, length: u64, allows: impl Fn(&RegionConfig) -> bool) -> bool {
        let region = self.regions.iter().find(|region| region.region == target.region);
        region.is_some_and(|region| {
            let end = target.offset.checked_add(length);
            region.key == target.key && end.is_some_and(|end| end <= region.length) && allows(region)
        })
    }
}

/// Returns whether a region allows any access. Its owner shares such a region.
#[must_use]
pub const fn is_shared(region: &RegionConfig) -> bool {
    region.access.read || region.access.write || region.access.atomic
}

/// Returns the node whose memory a command uses; `None` for messages, waits, fences and flushes.
#[must_use]
pub const fn memory_of(command: &Command<'_>) -> Option<NodeId> {
    match *command {
        Command::Store { target, .. }
        | Command::Load { target, .. }
        | Command::Atomic { target, .. }
        | Command::Put { target, .. }
        | Command::Get { target, .. } => Some(target.node),
        _ => None,
    }
}

/// Returns the bytes that an operation on another node moves; `None` for commands that concern only this node.
#[must_use]
pub const fn moved_bytes(command: &Command<'_>) -> Option<u64> {
    match *command {
        Command::Store { data, .. } => Some(data.len() as u64),
        Command::Atomic { atomic, .. } => Some(atomic.width.bytes()),
        Command::Put { source: range, .. }
        | Command::Load { into: range, .. }
        | Command::Get { into: range, .. }
        | Command::Send { source: range, .. } => Some(range.length),
        _ => None,
    }
}

/// Counts an accepted command that took the local path.
pub fn count_direct(paths: &mut PathReport, command: &Command<'_>) {
    count(&mut paths.direct, command);
}

/// Counts an accepted command that went in frames.
pub fn count_frames(paths: &mut PathReport, command: &Command<'_>) {
    count(&mut paths.frames, command);
}

const fn count(counter: &mut PathCount, command: &Command<'_>) {
    if let Some(bytes) = moved_bytes(command) {
        counter.operations += 1;
        counter.bytes += bytes;
    }
}

/// Returns the report's note on a peer whose memory is no longer used directly, because of a fault.
#[must_use]
pub fn withheld_note(name: &str) -> String {
    format!("memory of {name} is reached in frames since a fault of the script has struck it")
}

#[cfg(test)]
mod tests {
    use rackloom_protocol::{Access, Completion, Key, OperationId, RegionId, SignalKind, Tenant};

    use super::*;

    const OWNER: NodeId = NodeId(1);

    fn region(region: u32, access: Access) -> RegionConfig {
        RegionConfig { region: RegionId(region), length: 64, key: Key(7), access, tenant: Tenant(0) }
    }

    fn peer() -> LocalPeer {
        let none = Access { read: false, write: false, atomic: false };
        let words = Access { read: true, write: false, atomic: true };
        let data = Access { read: true, write: true, atomic: false };
        LocalPeer::new(OWNER, [region(1, words), region(2, data), region(3, none)])
    }

    fn at(region: u32, offset: u64, key: u64) -> RemoteAddress {
        RemoteAddress { node: OWNER, region: RegionId(region), offset, key: Key(key) }
    }

    fn store(target: RemoteAddress) -> Command<'static> {
        let (operation, completion) = (OperationId(1), Completion::Visible);
        Command::Store { operation, target, data: &[0; 8], completion }
    }

    #[test]
    fn what_the_owner_would_refuse_takes_no_local_path() {
        let peer = peer();
        assert_eq!(peer.regions().len(), 2, "a region without any access is not shared");
        assert!(peer.allows(&store(at(2, 56, 7))));
        let refused = [at(2, 57, 7), at(2, 56, 8), at(1, 0, 7), at(3, 0, 7), at(9, 0, 7), at(2, u64::MAX, 7)];
        for target in refused {
            assert!(!peer.allows(&store(target)), "{target:?}");
        }
    }

    #[test]
    fn a_put_needs_its_data_and_its_signal_granted() {
        let source = rackloom_protocol::LocalRange { region: RegionId(1), offset: 0, length: 8 };
        let put = |signal| Command::Put { operation: OperationId(1), target: at(2, 0, 7), source, signal };
        let signal = |region, offset| {
            let (region, key, kind) = (RegionId(region), Key(7), SignalKind::Set);
            Some(Signal { region, offset, key, kind, value: 1 })
        };
        assert!(peer().allows(&put(None)) && peer().allows(&put(signal(2, 8))));
        assert!(!peer().allows(&put(signal(2, 9))), "a word is aligned");
        assert!(!peer().allows(&put(signal(1, 8))), "its region allows no writes");
    }
}
