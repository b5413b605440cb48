//! Changes of a plan, and values that follow from its other fields.

use rackloom_protocol::CreditConfig;

use crate::model::canonical;
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

    /// Computes credits, configuration hash and epoch from the other fields.
    pub(crate) fn settle(&mut self) {
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
