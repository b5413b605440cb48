//! Changes of a plan, and values that follow from its other fields.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;

use rackloom_collectives::AlgorithmKind;
use rackloom_protocol::{CreditConfig, MemberRole, NodeId};

use crate::model::canonical;
use crate::model::jobs::algorithm::AlgorithmList;
use crate::model::jobs::job::JobKind;
use crate::model::links::link::LinkProfile;
use crate::model::links::wire::WireKind;
use crate::model::plan::Plan;
use crate::model::times::stated::Reach;

impl Plan {
    /// Applies a change of a command line, and updates credits, configuration hash and epoch. Call [`Plan::check`] afterwards.
    pub fn change(&mut self, change: impl FnOnce(&mut Self)) {
        change(self);
        self.settle();
    }

    /// Changes the profile of every link, and updates the values that follow from it.
    pub fn override_links(&mut self, change: impl Fn(&mut LinkProfile)) {
        self.change(|plan| plan.links.iter_mut().for_each(|link| change(&mut link.profile)));
    }

    /// Changes the wire, and updates the values that follow from it. These include credits that the file does not state.
    pub fn set_wire(&mut self, wire: WireKind) {
        self.change(|plan| plan.settings.wire = wire);
    }

    /// Makes the workload part of the configuration hash. Hosts with other workloads or algorithms then have other epochs.
    ///
    /// `text`: the workload in its text format as `rackloom_workloads` writes it. `algorithms`: algorithms of its collectives.
    pub fn set_workload(&mut self, text: &str, algorithms: &AlgorithmList) {
        let hash = canonical::workload(text, &algorithms.to_string());
        self.change(|plan| plan.workload = Some(hash));
    }

    /// Returns the number of switches with a reduction unit, or `None` if there are none. All switches of a rack have one, or none has.
    #[must_use]
    pub fn reducing_switches(&self) -> Option<NonZeroUsize> {
        let roles = self.members.iter().map(|member| member.role);
        NonZeroUsize::new(roles.filter(|role| *role == MemberRole::ReducingSwitch).count())
    }

    /// Gives the switches reduction units if the job names the algorithm that uses them, and each node is linked to each switch.
    fn settle_units(&mut self) {
        let is_named = matches!(self.job.kind, JobKind::Collective(job) if job.algorithm.kinds().contains(&AlgorithmKind::InSwitch));
        let reduces = is_named && self.has_star_switches();
        let role = if reduces { MemberRole::ReducingSwitch } else { MemberRole::Switch };
        let switches = self.members.iter_mut().filter(|member| member.role.is_switch());
        switches.for_each(|member| member.role = role);
    }

    /// Returns true if each node is linked to each switch.
    fn has_star_switches(&self) -> bool {
        let numbered = || (0..).map(NodeId).zip(&self.members);
        let switches = || numbered().filter(|(_, member)| member.role.is_switch()).map(|(node, _)| node);
        let mut nodes =
            numbered().filter(|(_, member)| member.role == MemberRole::Endpoint).map(|(node, _)| node);
        let links: BTreeSet<_> = self.links.iter().map(|link| (link.edge.a, link.edge.b)).collect();
        let has_link = |left, right| links.contains(&(left, right)) || links.contains(&(right, left));
        nodes.all(|node| switches().all(|switch| has_link(node, switch)))
    }

    /// Computes reduction units, credits, configuration hash and epoch from the other fields.
    pub(crate) fn settle(&mut self) {
        self.settle_units();
        let wires: Vec<_> = self.links.iter().map(|link| self.wire_of(&link.edge)).collect();
        let shares = self.links_per_interface();
        for (link, wire) in self.links.iter_mut().zip(wires) {
            link.credits = self.credit_choice.resolve(wire, self.settings.ring_bytes);
            link.credits.limit = link.profile.credits.limit.unwrap_or(link.credits.limit / shares);
            let least = self.channels.least_share(&link.profile, link.credits.limit);
            let choice = self.credit_choice.of_link(link.profile.credits);
            link.updates = choice.updates(CreditConfig { limit: least, ..link.credits });
        }
        self.reach = Reach::of(self);
        self.config_hash = canonical::hash(self);
        self.epoch = canonical::epoch(&self.name, self.config_hash);
    }
}
