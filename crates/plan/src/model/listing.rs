//! List of all keys of a plan with their values, for `rackloom check`.
//!
//! The keys come from their declarations ([`crate::setting::section`]), so a new key is in the list without further code.

use std::collections::BTreeMap;

use crate::model::plan::Plan;
use crate::setting::section::{Section, Visit};
use crate::setting::table::{DefaultText, Key};
use crate::setting::value::Shown;

/// Key of a rack file with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Path of the key in a rack file: `timers.hold_down`.
    pub key: String,
    /// Value as a rack file states it.
    pub value: String,
    /// True if the value equals its default.
    pub is_default: bool,
}

/// Returns true if the text of a default is a number, and no description.
fn is_value(stated: &str) -> bool {
    stated.starts_with(|first: char| first.is_ascii_digit())
}

/// Receiver of the keys of one section.
#[derive(Default)]
struct List {
    settings: Vec<Setting>,
    path: Vec<String>,
}

impl Visit for List {
    fn value(&mut self, key: &'static Key, value: &dyn Shown, is_default: bool) {
        let path: Vec<&str> = self.path.iter().map(String::as_str).chain([key.name]).collect();
        // The absence of a value can stand for one, which the declaration states.
        let value = match key.default {
            DefaultText::Text(stated) if is_default && is_value(stated) => stated.to_owned(),
            _ => value.shown(&key.kind),
        };
        self.settings.push(Setting { key: path.join("."), value, is_default });
    }

    /// Values of single links belong to hosts, which the list does not contain.
    fn of_link(&mut self, _: &'static Key, _: usize, _: &dyn Shown) {}

    fn open(&mut self, key: &'static Key) {
        self.path.push(key.name.to_owned());
    }

    fn close(&mut self) {
        self.path.pop();
    }
}

impl List {
    fn section(&mut self, section: &impl Section, key: &str) {
        self.below(key, |list| section.visit(list));
    }

    fn below(&mut self, key: &str, visit: impl FnOnce(&mut Self)) {
        self.path.push(key.to_owned());
        visit(self);
        self.path.pop();
    }

    /// Adds the keys of many sections: below `common` if all have one value, and below its own name for each other value that is
    /// not the default.
    fn many<'s, S: Section + 's>(
        &mut self,
        sections: impl Iterator<Item = (String, &'s S)>,
        common: &str,
        count: usize,
    ) {
        let mut by_key: BTreeMap<(usize, String), Vec<(String, Setting)>> = BTreeMap::new();
        for (name, section) in sections {
            let mut list = Self::default();
            section.visit(&mut list);
            for (index, setting) in list.settings.into_iter().enumerate() {
                by_key.entry((index, setting.key.clone())).or_default().push((name.clone(), setting));
            }
        }
        for ((_, key), settings) in by_key {
            let is_common =
                settings.len() == count && settings.iter().all(|(_, other)| *other == settings[0].1);
            if is_common {
                self.settings.push(Setting { key: format!("{common}.{key}"), ..settings[0].1.clone() });
                continue;
            }
            let own = settings.into_iter().filter(|(_, setting)| !setting.is_default);
            self.settings
                .extend(own.map(|(name, setting)| Setting { key: format!("{name}.{key}"), ..setting }));
        }
    }
}

impl Plan {
    /// Returns all keys with their values, in the order of the document. A key of links or memories stands once if all have one
    /// value.
    #[must_use]
    pub fn all_settings(&self) -> Vec<Setting> {
        let mut list = List::default();
        self.settings.visit(&mut list);
        list.section(&self.timers, "timers");
        list.section(&self.transport, "transport");
        list.section(&self.paths, "paths");
        list.section(&self.packing, "packing");
        list.section(&self.forwarding, "forwarding");
        list.section(&self.credit_choice, "credits");
        list.below("channels", |list| self.channels.visit(list));
        list.below("job", |list| {
            list.below(self.job.kind.name(), |list| self.job.kind.visit(&self.job.litmus, list));
        });
        list.section(&self.expect, "expect");
        list.section(&self.security, "security");
        list.section(&self.local.of_rack, "local");
        for (server, own) in self.local.of_servers.iter().filter(|(_, own)| **own != self.local.of_rack) {
            list.section(own, &format!("servers.{server}.local"));
        }
        list.section(&self.device, "device");
        for node in &self.members {
            if let Some(device) = node.own_device(&self.device) {
                list.section(device, &format!("nodes.{}.device", node.name));
            }
        }
        for quota in &self.tenants {
            list.section(quota, &format!("tenants.{}", quota.tenant.0));
        }
        let memories =
            self.members.iter().map(|member| (format!("nodes.{}.memory", member.name), &member.memory));
        list.many(memories, "defaults.memory", self.members.len());
        let links = self.links.iter().map(|link| (format!("links.{}", link.name), &link.profile));
        list.many(links, "link", self.links.len());
        list.settings
    }
}
