//! Check that no frame of an earlier incarnation is used. It applies to fault scripts that start successors,
//! and works outside of the core.
//!
//! A frame names the incarnations of both of its ends. A frame for an earlier incarnation of this member must
//! not be used. Once a frame of a later incarnation of its source has been used, no frame of an earlier
//! incarnation may be used. Only frames to members with an earlier incarnation, and frames from sources with
//! several incarnations, are counted.
//!
//! The first incarnation seen of a source is accepted: only the order of frames tells which incarnation is
//! current.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use rackloom::ArrivalWatch;
use rackloom_jobs::{Oracle, Verdicts};
use rackloom_protocol::wire::{FabricHeader, FrameKind};
use rackloom_protocol::{DropReason, Incarnation, NodeId};

/// Incarnations seen of one source.
#[derive(Debug, Default)]
struct Source {
    /// Tags of the incarnations whose frames were used, in that order. The last one is the current
    /// incarnation.
    used: Vec<u32>,
    /// True if a frame of another incarnation was received and not used.
    has_others: bool,
}

/// Checker of the incarnations of frames that one member receives.
#[derive(Debug)]
struct Watched {
    node: NodeId,
    own: u32,
    is_successor: bool,
    sources: BTreeMap<NodeId, Source>,
    verdicts: Verdicts,
}

/// Shared checker: one holder passes in frames, the other reads the verdicts.
#[derive(Clone, Debug)]
pub(super) struct IncarnationChecks(Arc<Mutex<Watched>>);

impl IncarnationChecks {
    /// Returns a checker for a member. `is_successor`: the member has an earlier incarnation.
    pub(super) fn of(node: NodeId, incarnation: Incarnation, is_successor: bool) -> Self {
        let (sources, verdicts) = (BTreeMap::new(), Verdicts::default());
        Self(Arc::new(Mutex::new(Watched { node, own: incarnation.tag(), is_successor, sources, verdicts })))
    }

    /// Returns a watch that passes each received frame to the checker.
    pub(super) fn watch(&self) -> ArrivalWatch {
        let watched = Arc::clone(&self.0);
        Box::new(move |_, frame, reason| {
            if !FrameKind::peek(frame).is_some_and(FrameKind::is_routed) {
                return;
            }
            let Ok(header) = FabricHeader::of(frame) else { return };
            watched.lock().unwrap_or_else(PoisonError::into_inner).see(&header, reason);
        })
    }

    /// Returns the verdicts so far.
    pub(super) fn verdicts(&self) -> Verdicts {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).verdicts.clone()
    }
}

impl Watched {
    fn see(&mut self, header: &FabricHeader, unused: Option<DropReason>) {
        let Self { node, own, is_successor, sources, verdicts } = self;
        if header.destination != *node {
            return;
        }
        let is_used = unused.is_none();
        if *is_successor {
            let is_for_this_incarnation = header.destination_incarnation == *own;
            verdicts.judge(Oracle::Incarnations, is_for_this_incarnation || !is_used, || {
                format!("{node} used a frame that was sent to an earlier incarnation of it")
            });
        }
        let (tag, source) = (header.source_incarnation, sources.entry(header.source).or_default());
        let is_present = source.used.last() == Some(&tag);
        let is_over = !is_present && source.used.contains(&tag);
        if is_used && !is_present && !is_over {
            source.used.push(tag);
        }
        source.has_others |= unused == Some(DropReason::StaleIncarnation);
        if source.used.len() > 1 || source.has_others {
            verdicts.judge(Oracle::Incarnations, !(is_over && is_used), || {
                format!("{node} used a frame of an earlier incarnation of {}", header.source)
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use rackloom_protocol::{Class, Tenant};

    use rackloom_protocol::wire::demand::Demand;

    use super::*;

    const OWN: Incarnation = Incarnation(7);

    /// Returns a header of a frame from member 1 to member 0, with these tags of incarnations.
    fn header(source: u32, destination: u32) -> FabricHeader {
        FabricHeader {
            destination: NodeId(0),
            source: NodeId(1),
            class: Class::ALL[0],
            operation_count: 1,
            tenant: Tenant(0),
            entropy: 0,
            ack_now: false,
            again: false,
            demand: Demand::NONE,
            ack: None,
            source_incarnation: source,
            destination_incarnation: destination,
            psn: 0,
            first_operation: 0,
        }
    }

    /// Returns the number of judged frames and of violations, for frames with these tags, each used or not.
    fn judged_and_broken(is_successor: bool, frames: &[(u32, u32, bool)]) -> (u64, u64) {
        let checks = IncarnationChecks::of(NodeId(0), OWN, is_successor);
        for (source, destination, is_used) in frames {
            let unused = (!is_used).then_some(DropReason::StaleIncarnation);
            checks.0.lock().expect("no thread has panicked").see(&header(*source, *destination), unused);
        }
        checks.verdicts().of(Oracle::Incarnations).map_or((0, 0), |tally| (tally.looked, tally.broken))
    }

    #[test]
    fn a_successor_must_not_use_frames_for_its_earlier_incarnation() {
        let own = OWN.tag();
        assert_eq!(judged_and_broken(true, &[(1, own, true), (1, own + 1, false)]), (3, 0));
        assert_eq!(judged_and_broken(true, &[(1, own + 1, true)]), (1, 1));
        assert_eq!(judged_and_broken(false, &[(1, own, true)]), (0, 0), "a first incarnation is not judged");
    }

    #[test]
    fn frames_of_an_earlier_incarnation_of_a_source_must_not_be_used_after_a_later_one() {
        let own = OWN.tag();
        assert_eq!(judged_and_broken(false, &[(1, own, true), (2, own, true), (1, own, false)]), (2, 0));
        assert_eq!(judged_and_broken(false, &[(1, own, true), (2, own, true), (1, own, true)]), (2, 1));
    }
}
