//! No frame of a life that is over is used: watched from outside of the core, where a script has members begin anew.
//!
//! A frame names the lives of both of its ends. What was sent to an earlier life of this member may not be used, and once a frame
//! of a source's later life has been used, none of an earlier one may. Only frames about which this can be asked are counted: those to who
//! has begun anew, and those from sources of which several lives have been heard.
//!
//! The first look at a source believes it: which of its lives is the present one is the core's to know, and told by the order alone.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use rackloom::ArrivalWatch;
use rackloom_jobs::{Oracle, Verdicts};
use rackloom_protocol::wire::{FabricHeader, FrameKind};
use rackloom_protocol::{DropReason, Incarnation, NodeId};

/// What has been seen of one source.
#[derive(Debug, Default)]
struct Source {
    /// Marks of its lives from which frames were used, in that order; the last is the present one.
    used: Vec<u32>,
    /// Another one was heard and not used.
    has_others: bool,
}

/// The lives at both ends of what comes to one member.
#[derive(Debug)]
struct Watched {
    node: NodeId,
    own: u32,
    has_forebears: bool,
    sources: BTreeMap<NodeId, Source>,
    verdicts: Verdicts,
}

/// The same, in two hands: one shows it frames, the other one asks.
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

    /// What has been seen until now.
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
