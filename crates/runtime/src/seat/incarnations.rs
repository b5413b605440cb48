//! Check that no frame of an earlier incarnation is used, from outside of the core, under a script that starts successors.
//!
//! A frame names the incarnations of both of its ends. A frame for an earlier incarnation of this member must not be used, and once a frame of
//! a later incarnation of its source has been used, no frame of an earlier one may be. Only frames to members with an earlier incarnation, and
//! frames from sources with several incarnations, count.
//!
//! The first incarnation seen of a source is accepted: only the order of frames tells which one is current.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use rackloom::ArrivalWatch;
use rackloom_jobs::{Oracle, Verdicts};
use rackloom_protocol::wire::{FabricHeader, FrameKind};
use rackloom_protocol::{DropReason, Incarnation, NodeId};

/// Incarnations seen of one source.
#[derive(Debug, Default)]
struct Source {
    /// Marks of its lives from which frames were used, in that order; the last is the present one.
    used: Vec<u32>,
    /// True if a frame of another incarnation was received and not used.
    has_others: bool,
}

/// Checker of the incarnations of frames that one member receives.
#[derive(Debug)]
struct Watched {
    node: NodeId,
    own: u32,
    has_forebears: bool,
    sources: BTreeMap<NodeId, Source>,
    verdicts: Verdicts,
}

/// Shared checker: one holder passes in frames, the other one reads the verdicts.
#[derive(Clone, Debug)]
pub(super) struct IncarnationChecks(Arc<Mutex<Watched>>);

impl IncarnationChecks {
    /// Watch what comes to this life of a member. `has_forebears`: it is not the first one.
    pub(super) fn of(node: NodeId, life: Incarnation, has_forebears: bool) -> Self {
        let (sources, verdicts) = (BTreeMap::new(), Verdicts::default());
        Self(Arc::new(Mutex::new(Watched { node, own: life.tag(), has_forebears, sources, verdicts })))
    }

    /// For the runtime.
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
        let Self { node, own, has_forebears, sources, verdicts } = self;
        if header.destination != *node {
            return;
        }
        let is_used = unused.is_none();
        if *has_forebears {
            let is_for_this_life = header.destination_incarnation == *own;
            verdicts.judge(Oracle::Lives, is_for_this_life || !is_used, || {
                format!("{node} used a frame that was sent to an earlier life of it")
            });
        }
        let (mark, source) = (header.source_incarnation, sources.entry(header.source).or_default());
        let is_present = source.used.last() == Some(&mark);
        let is_over = !is_present && source.used.contains(&mark);
        if is_used && !is_present && !is_over {
            source.used.push(mark);
        }
        source.has_others |= unused == Some(DropReason::StaleIncarnation);
        if source.used.len() > 1 || source.has_others {
            verdicts.judge(Oracle::Lives, !(is_over && is_used), || {
                format!("{node} used a frame of an earlier life of {}", header.source)
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use rackloom_protocol::{Class, Tenant};

    use super::*;

    const OWN: Incarnation = Incarnation(7);

    /// From member 1 to member 0, with the lives that it names.
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
            ack: None,
            source_incarnation: source,
            destination_incarnation: destination,
            psn: 0,
            first_operation: 0,
        }
    }

    /// How often it looked and what was broken, after frames between these lives, each used or not.
    fn looked_and_broken(has_forebears: bool, frames: &[(u32, u32, bool)]) -> (u64, u64) {
        let lives = IncarnationChecks::of(NodeId(0), OWN, has_forebears);
        for (source, destination, is_used) in frames {
            let unused = (!is_used).then_some(DropReason::StaleIncarnation);
            lives.0.lock().expect("nobody has panicked").see(&header(*source, *destination), unused);
        }
        lives.verdicts().of(Oracle::Lives).map_or((0, 0), |tally| (tally.looked, tally.broken))
    }

    #[test]
    fn who_has_begun_anew_must_not_use_what_was_sent_to_its_earlier_life() {
        let own = OWN.tag();
        assert_eq!(looked_and_broken(true, &[(1, own, true), (1, own + 1, false)]), (3, 0));
        assert_eq!(looked_and_broken(true, &[(1, own + 1, true)]), (1, 1));
        assert_eq!(looked_and_broken(false, &[(1, own, true)]), (0, 0), "nothing to ask of a first life");
    }

    #[test]
    fn after_a_later_life_of_a_source_an_earlier_one_is_over() {
        let own = OWN.tag();
        assert_eq!(looked_and_broken(false, &[(1, own, true), (2, own, true), (1, own, false)]), (2, 0));
        assert_eq!(looked_and_broken(false, &[(1, own, true), (2, own, true), (1, own, true)]), (2, 1));
    }
}
