//! Canonical encoding of a resolved plan, its hash, and the epoch of a rack.
//!
//! `docs/decisions/canonical-encoding.md` defines the encoding. It is text: a line with the version, then one line `key=value` for each
//! value that differs from its default. Two files that differ in comments, order, units or stated defaults describe the same
//! rack and have equal encodings. The declaration of a key ([`crate::setting::section`]) says how its value is encoded. This file
//! puts the sections of a plan in order.

use rackloom_protocol::{CreditConfig, CreditUpdates, Edge, MemberRole};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::model::defaults;
use crate::model::jobs::job::{JobKind, JobPlan};
use crate::model::links::link::LinkPlan;
use crate::model::members::device::DeviceModel;
use crate::model::members::hub::SwitchKind;
use crate::model::members::local::LocalPlan;
use crate::model::members::member::MemberPlan;
use crate::model::plan::Plan;
use crate::setting::section::{Section, Visit};
use crate::setting::table::Key;
use crate::setting::value::Shown;

/// Version of the encoding. It grows with every change of the rules, of the form of a value, and of a default.
pub(crate) const VERSION: u32 = 1;

/// Returns the hash of the configuration. It excludes the seed, which reports state beside it.
pub(crate) fn hash(plan: &Plan) -> u64 {
    xxh3_64(text(plan).as_bytes())
}

/// Returns the hash of a workload and of the algorithms of its collectives.
pub(crate) fn workload(text: &str, algorithms: &str) -> u64 {
    xxh3_64_with_seed(text.as_bytes(), xxh3_64(algorithms.as_bytes()))
}

/// Returns the identity on the wire. Zero is reserved for "no rack".
pub(crate) fn epoch(name: &str, config_hash: u64) -> u16 {
    let wide = xxh3_64_with_seed(name.as_bytes(), config_hash);
    let folded = (wide ^ (wide >> 16) ^ (wide >> 32) ^ (wide >> 48)) as u16;
    folded.max(1)
}

impl Plan {
    /// Returns the canonical encoding, of which `config_hash` is the hash. `docs/decisions/canonical-encoding.md` defines it.
    #[must_use]
    pub fn canonical_encoding(&self) -> String {
        text(self)
    }
}

/// Encoding in the making.
struct Encoder<'plan> {
    links: &'plan [LinkPlan],
    text: String,
    /// Path of the current table with a dot behind it, or nothing.
    path: String,
    /// Lengths of the paths of the tables around the current one.
    outer: Vec<usize>,
    /// Number of open tables that are not encoded.
    left_out: usize,
}

impl Encoder<'_> {
    /// Writes a line.
    fn put(&mut self, key: &str, value: &str) {
        debug_assert!(!value.contains(['\n', '=']), "{value:?} is not a canonical value");
        self.text.extend([&self.path, key, "=", value, "\n"]);
    }

    /// Writes the values of a table below `key`.
    fn table(&mut self, key: &str, write: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        self.path.extend([key, "."]);
        write(self);
        self.path.truncate(length);
    }

    /// Writes the section below `key`.
    fn section(&mut self, key: &str, section: &impl Section) {
        self.table(key, |to| section.visit(to));
    }
}

impl Visit for Encoder<'_> {
    fn value(&mut self, key: &'static Key, value: &dyn Shown, is_default: bool) {
        if !is_default && key.is_encoded && self.left_out == 0 {
            let mut text = String::new();
            value.encode(&key.kind, &mut text);
            self.put(key.name, &text);
        }
    }

    fn of_link(&mut self, key: &'static Key, edge: usize, value: &dyn Shown) {
        let link = self.links.get(edge).map_or_else(|| edge.to_string(), |link| link.name.clone());
        let mut text = String::new();
        value.encode(&key.kind, &mut text);
        self.put(&format!("{}.{link}", key.name), &text);
    }

    fn open(&mut self, key: &'static Key) {
        self.outer.push(self.path.len());
        self.path.extend([key.name, "."]);
        self.left_out += usize::from(!key.is_encoded || self.left_out > 0);
    }

    fn close(&mut self) {
        self.path.truncate(self.outer.pop().unwrap_or(0));
        self.left_out = self.left_out.saturating_sub(1);
    }
}

fn text(plan: &Plan) -> String {
    let text = format!("rackloom-plan {VERSION}\n");
    let mut encoder =
        Encoder { links: &plan.links, text, path: String::new(), outer: Vec::new(), left_out: 0 };
    rack(plan, &mut encoder);
    encoder.text
}

fn rack(plan: &Plan, to: &mut Encoder<'_>) {
    let Plan {
        name,
        settings,
        // They follow from the encoding.
        epoch: _,
        config_hash: _,
        members,
        hosts,
        links,
        // Its only key is not encoded: every sealed message proves that the keys are equal.
        security: _,
        switch,
        local,
        device,
        timers,
        transport,
        packing,
        paths,
        forwarding,
        channels,
        job,
        workload,
        expect,
        tenants,
        // Real processes use the values above, and virtual time computes the others from the plan.
        stated: _,
        states_repetitions: _,
        reach: _,
        // The resulting credits are part of each link.
        credit_choice: _,
    } = plan;
    to.put("name", name);
    if *switch != SwitchKind::default() {
        to.put("switch", switch.name());
    }
    settings.visit(to);
    to.section("timers", timers);
    to.section("transport", transport);
    to.section("paths", paths);
    to.section("packing", packing);
    to.section("forwarding", forwarding);
    to.table("channels", |to| channels.visit(to));
    self::job(job, to);
    if let Some(hash) = workload {
        to.put("workload", &format!("{hash:016x}"));
    }
    to.section("expect", expect);
    self::local(local, to);
    to.section("device", device);
    for quota in tenants {
        to.section(&format!("tenants.{}", quota.tenant.0), quota);
    }
    for member in members {
        self::member(member, device, to);
    }
    for host in hosts {
        to.section(&format!("hosts.{}", host.name), host);
    }
    for link in links {
        self::link(link, to);
    }
}

/// A job is its name and the settings of that job.
fn job(job: &JobPlan, to: &mut Encoder<'_>) {
    let JobPlan { kind, litmus } = job;
    if *kind != JobKind::Litmus {
        to.put("job", kind.name());
    }
    to.table(&format!("job.{}", kind.name()), |to| kind.visit(litmus, to));
}

/// The path of a server is written if it is not that of the rack.
fn local(local: &LocalPlan, to: &mut Encoder<'_>) {
    let LocalPlan { of_rack, of_servers } = local;
    to.section("local", of_rack);
    for (server, own) in of_servers.iter().filter(|(_, own)| *own != of_rack) {
        to.section(&format!("servers.{server}.local"), own);
    }
}

fn member(member: &MemberPlan, of_rack: &DeviceModel, to: &mut Encoder<'_>) {
    let MemberPlan { name, role, tenant, server, memory_bytes, memory, device: _ } = member;
    let key = format!("nodes.{name}");
    let (role, memory_default) = match role {
        MemberRole::Endpoint => ("node", defaults::MEMORY_BYTES),
        MemberRole::Switch => ("switch", 0),
        MemberRole::ReducingSwitch => ("reducing-switch", 0),
        MemberRole::Process => ("process", defaults::MEMORY_BYTES),
        MemberRole::PinnedProcess => ("pinned-process", defaults::MEMORY_BYTES),
    };
    to.put(&key, role);
    to.table(&key, |to| {
        if tenant.0 != 0 {
            to.put("tenant", &tenant.0.to_string());
        }
        if server.strip_prefix("server-") != Some(name) {
            to.put("server", server);
        }
        if *memory_bytes != memory_default {
            to.put("memory.bytes", &memory_bytes.to_string());
        }
        to.section("memory", memory);
        if let Some(device) = member.own_device(of_rack) {
            // Says that keys that are not listed have their defaults, and not those of the rack.
            to.put("device", "own");
            to.section("device", device);
        }
    });
}

fn link(link: &LinkPlan, to: &mut Encoder<'_>) {
    let LinkPlan { name, edge, dimension, profile, credits, updates } = link;
    let key = format!("links.{name}");
    let Edge { a, a_port, b, b_port, plane } = edge;
    to.put(&key, &format!("{}:{},{}:{},{}", a.0, a_port.0, b.0, b_port.0, plane.0));
    to.table(&key, |to| {
        if *dimension != 0 {
            to.put("dimension", &dimension.to_string());
        }
        profile.visit(to);
        to.table("credits", |to| {
            let CreditConfig { unit_bytes, overhead_bytes, limit } = credits;
            to.put("unit_bytes", &unit_bytes.to_string());
            to.put("overhead_bytes", &overhead_bytes.to_string());
            to.put("limit", &limit.to_string());
            let CreditUpdates { spacing, resync } = updates;
            let usual = credits.usual_updates();
            if *spacing != usual.spacing {
                to.put("update_spacing", &spacing.to_string());
            }
            if *resync != usual.resync {
                to.put("resync", &resync.to_string());
            }
        });
    });
}
