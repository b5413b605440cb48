//! Canonical encoding of a resolved plan, its hash, and the epoch of a rack.
//!
//! `docs/decisions/canonical-encoding.md` defines the encoding. It is text: a line with the version, then one line `key=value` for each
//! value that differs from its default. Two files that differ in comments, order, units or stated defaults describe the same
//! rack and have equal encodings. The code destructures the plan by name: a new field does not compile until it is encoded here
//! or left out on purpose.

use std::fmt::Write;

use rackloom_protocol::{
    ChannelConfig, CreditConfig, CreditUpdates, Edge, ForwardingConfig, LinkTimers, MemberRole,
    PackingConfig, PathConfig, SharedBufferConfig, TransportConfig,
};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::model::channels::{ChannelPlan, LANE_KEYS};
use crate::model::defaults;
use crate::model::expect::Expectations;
use crate::model::hosts::HostPlan;
use crate::model::job::{CollectivePlan, JobKind, JobPlan, Sizes, Sweep, TrafficPlan};
use crate::model::link::{DropFrames, LinkPlan, LinkProfile};
use crate::model::local::{LocalPath, LocalPlan};
use crate::model::loss::{Burst, LossByKind};
use crate::model::member::{MemberPlan, MemoryOptions, TenantPlan};
use crate::model::of_link::OwnChannels;
use crate::model::pause::PausePlan;
use crate::model::plan::Plan;
use crate::model::retry::RetryPlan;
use crate::model::timing::{ForwardingPlan, SideLatency};
use crate::setting::word::Word;

/// Version of the encoding. It grows with every change of the rules, of the form of a value, and of a default.
pub(crate) const VERSION: u32 = 1;

/// Returns the hash of the configuration. It excludes the seed, which reports state beside it.
pub(crate) fn hash(plan: &Plan) -> u64 {
    xxh3_64(text(plan).as_bytes())
}

/// Returns the identity on the wire. Zero is reserved for "no rack".
pub(crate) fn epoch(name: &str, config_hash: u64) -> u16 {
    let wide = xxh3_64_with_seed(name.as_bytes(), config_hash);
    let folded = (wide ^ (wide >> 16) ^ (wide >> 32) ^ (wide >> 48)) as u16;
    folded.max(1)
}

/// Value with a canonical form.
trait Canonical {
    /// Appends the canonical form.
    fn encode(&self, text: &mut String);
}

/// Encoding in the making.
struct Encoder {
    text: String,
    /// Path of the current table with a dot behind it, or nothing.
    path: String,
}

impl Encoder {
    /// Writes a value in every case.
    fn put(&mut self, key: &str, value: &(impl Canonical + ?Sized)) {
        self.text.push_str(&self.path);
        self.text.push_str(key);
        self.text.push('=');
        value.encode(&mut self.text);
        self.text.push('\n');
    }

    /// Writes a value if it is not the default.
    fn differs<T: Canonical + PartialEq>(&mut self, key: &str, value: &T, default: &T) {
        if value != default {
            self.put(key, value);
        }
    }

    /// Writes a word if it is not the default.
    fn word<T: Word>(&mut self, key: &str, value: T, default: T) {
        if value != default {
            self.put(key, value.word());
        }
    }

    /// Writes `true` as `word`, which is not the default.
    fn if_set(&mut self, key: &str, is_set: bool, word: &str) {
        if is_set {
            self.put(key, word);
        }
    }

    /// Writes the values of a table below `key`.
    fn table(&mut self, key: &str, write: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        self.path.push_str(key);
        self.path.push('.');
        write(self);
        self.path.truncate(length);
    }
}

impl Plan {
    /// Returns the canonical encoding, of which `config_hash` is the hash. `docs/decisions/canonical-encoding.md` defines it.
    #[must_use]
    pub fn canonical_encoding(&self) -> String {
        text(self)
    }
}

fn text(plan: &Plan) -> String {
    let mut encoder = Encoder { text: format!("rackloom-plan {VERSION}\n"), path: String::new() };
    rack(plan, &mut encoder);
    encoder.text
}

fn rack(plan: &Plan, to: &mut Encoder) {
    let Plan {
        name,
        // A report states it beside the hash.
        seed: _,
        // They follow from the encoding.
        epoch: _,
        config_hash: _,
        members,
        hosts,
        links,
        // The path is specific to one host. Every sealed message proves that the keys are equal.
        security: _,
        switch,
        wire,
        force_wire,
        local,
        checks,
        timers,
        transport,
        packing,
        paths,
        forwarding,
        channels,
        frame_bytes_max,
        outstanding_loads_max,
        ether_type,
        reception,
        udp_port,
        ring_bytes,
        rdma_threshold_bytes,
        // Frames and their times are equal in all modes.
        payload: _,
        job,
        expect,
        tenants,
        watchdog_ns,
        // Real processes use the values above, and virtual time computes the others from the plan.
        stated: _,
        reach: _,
        // The resulting credits are part of each link.
        credit_choice: _,
    } = plan;
    to.put("name", name.as_str());
    to.word("switch", *switch, Default::default());
    to.word("wire", *wire, Default::default());
    to.differs("force_wire", force_wire, &false);
    to.word("checks", *checks, Default::default());
    to.differs("frame_bytes_max", frame_bytes_max, &defaults::FRAME_BYTES_MAX);
    to.differs("ring_bytes", ring_bytes, &defaults::RING_BYTES);
    to.differs("ether_type", ether_type, &defaults::ETHER_TYPE);
    to.differs("udp_port", udp_port, &defaults::UDP_PORT);
    to.word("reception", *reception, Default::default());
    to.differs("outstanding_loads_max", outstanding_loads_max, &defaults::OUTSTANDING_LOADS_MAX);
    to.differs("rdma_threshold_bytes", rdma_threshold_bytes, &defaults::RDMA_THRESHOLD_BYTES);
    to.differs("watchdog", watchdog_ns, &defaults::WATCHDOG_NS);
    to.table("timers", |to| self::timers(timers, to));
    to.table("transport", |to| self::transport(transport, to));
    to.table("paths", |to| {
        let PathConfig { policy, order, keeps_order, relays_choose } = paths;
        to.word("policy", *policy, Default::default());
        to.word("order", *order, Default::default());
        to.differs("keep_order", keeps_order, &true);
        to.if_set("relays", *relays_choose, "policy");
    });
    to.table("packing", |to| {
        let PackingConfig { mode, operations_max } = packing;
        to.word("mode", *mode, defaults::PACKING.mode);
        to.differs("operations_max", operations_max, &defaults::PACKING.operations_max);
    });
    to.table("forwarding", |to| self::forwarding(forwarding, to));
    to.table("channels", |to| self::channels(channels, to));
    self::job(job, to);
    to.table("expect", |to| expectations(expect, to));
    self::local(local, to);
    for TenantPlan { tenant, memory_bytes_max } in tenants {
        to.table(&format!("tenants.{}", tenant.0), |to| {
            to.differs("memory_max", memory_bytes_max, &u64::MAX)
        });
    }
    for member in members {
        self::member(member, to);
    }
    for host in hosts {
        to.table(&format!("hosts.{}", host.name), |to| self::host(host, links, to));
    }
    for link in links {
        self::link(link, to);
    }
}

fn timers(timers: &LinkTimers, to: &mut Encoder) {
    let LinkTimers {
        heartbeat_interval_ns,
        heartbeat_miss_max,
        heartbeat_rest,
        hold_down_ns,
        up_count,
        hello_interval_ns,
    } = timers;
    let base = defaults::TIMERS;
    to.differs("heartbeat_interval", heartbeat_interval_ns, &base.heartbeat_interval_ns);
    to.differs("heartbeat_miss_max", heartbeat_miss_max, &base.heartbeat_miss_max);
    to.differs("heartbeat_rest", heartbeat_rest, &defaults::heartbeat_rest(*heartbeat_interval_ns));
    let hold_down_default = defaults::hold_down_ns(*heartbeat_interval_ns, *heartbeat_miss_max);
    to.differs("hold_down", hold_down_ns, &hold_down_default);
    to.differs("up_count", up_count, &base.up_count);
    to.differs("hello_interval", hello_interval_ns, &base.hello_interval_ns);
}

fn transport(transport: &TransportConfig, to: &mut Encoder) {
    let TransportConfig {
        mode,
        window_packets,
        reorder_packets,
        timeout_initial_ns,
        timeout_min_ns,
        timeout_max_ns,
        retry_count_max,
        ack_every_packets,
        ack_delay_ns,
    } = transport;
    let base = defaults::TRANSPORT;
    to.word("mode", *mode, base.mode);
    to.differs("window_packets", window_packets, &base.window_packets);
    to.differs("reorder_packets", reorder_packets, &defaults::reorder_packets(*window_packets));
    to.differs("timeout_initial", timeout_initial_ns, &base.timeout_initial_ns);
    to.differs("timeout_min", timeout_min_ns, &base.timeout_min_ns);
    to.differs("timeout_max", timeout_max_ns, &base.timeout_max_ns);
    to.differs("retry_count_max", retry_count_max, &base.retry_count_max);
    to.differs("ack_every_packets", ack_every_packets, &base.ack_every_packets);
    to.differs("ack_delay", ack_delay_ns, &base.ack_delay_ns);
}

fn forwarding(forwarding: &ForwardingPlan, to: &mut Encoder) {
    let ForwardingPlan { mode, latency_ns, rules, allows_deadlock } = forwarding;
    let ForwardingConfig { bubble, own_first, until_answered, in_order, mark_above_bytes, shared_buffer } =
        rules;
    to.word("mode", *mode, Default::default());
    to.differs("latency", latency_ns, &0);
    to.differs("bubble", bubble, &true);
    to.if_set("priority", *own_first, "own");
    to.if_set("drain", *until_answered, "answered");
    to.if_set("queues", *in_order, "by-input");
    if let Some(SharedBufferConfig { bytes, alpha_thousandths, private_bytes }) = shared_buffer {
        to.table("buffer", |to| {
            to.put("bytes", bytes);
            to.differs("alpha", alpha_thousandths, &1_000);
            to.differs("private", private_bytes, &0);
        });
    }
    to.differs("mark_above", mark_above_bytes, &None);
    to.if_set("deadlock", *allows_deadlock, "allow");
}

fn channels(channels: &ChannelPlan, to: &mut Encoder) {
    let ChannelPlan { config, limits, datelines, levels_follow: _ } = channels;
    let ChannelConfig { lane_of, levels, rise, arbiter, weights } = config;
    if *lane_of != ChannelConfig::default().lane_of {
        to.table("lanes", |to| {
            for (class, key) in LANE_KEYS {
                to.put(key, &lane_of[class.index()]);
            }
        });
    }
    to.word("rise", *rise, Default::default());
    to.differs("levels", levels, &1);
    to.differs("datelines", datelines, &Vec::new());
    to.word("arbiter", *arbiter, Default::default());
    to.differs("weights", weights, &Vec::new());
    to.differs("limits", limits, &Vec::new());
}

/// A job is its name and the settings of that job.
fn job(job: &JobPlan, to: &mut Encoder) {
    let JobPlan { kind, bytes_max, rounds } = job;
    if *kind != JobKind::Litmus {
        to.put("job", kind.name());
    }
    to.table(&format!("job.{}", kind.name()), |to| match kind {
        JobKind::None => {}
        JobKind::Litmus => {
            to.differs("bytes_max", bytes_max, &defaults::JOB.bytes_max);
            to.differs("rounds", rounds, &defaults::JOB.rounds);
        }
        JobKind::Latency(plan) => sweep(plan, &Sweep::LATENCY, to),
        JobKind::Bandwidth(plan) => sweep(plan, &Sweep::BANDWIDTH, to),
        JobKind::Traffic(TrafficPlan { pattern, bytes, messages }) => {
            let base = TrafficPlan::default();
            to.word("pattern", *pattern, base.pattern);
            to.differs("bytes", bytes, &base.bytes);
            to.differs("messages", messages, &base.messages);
        }
        JobKind::Collective(plan) => {
            let CollectivePlan { collective, algorithm, segments, op, element, sweep, root, on_loss } = plan;
            let base = CollectivePlan::default();
            to.word("collective", *collective, base.collective);
            if *algorithm != base.algorithm {
                to.put("algorithm", algorithm.to_string().as_str());
            }
            to.differs("segments", segments, &base.segments);
            to.word("op", *op, base.op);
            to.word("type", *element, base.element);
            self::sweep(sweep, &base.sweep, to);
            to.differs("root", &root.0, &base.root.0);
            to.word("on_loss", *on_loss, base.on_loss);
        }
    });
}

fn sweep(sweep: &Sweep, base: &Sweep, to: &mut Encoder) {
    let Sweep { sizes, repetitions, warm_up } = sweep;
    to.differs("sizes", sizes, &base.sizes);
    to.differs("repetitions", repetitions, &base.repetitions);
    to.differs("warm_up", warm_up, &base.warm_up);
}

fn expectations(expect: &Expectations, to: &mut Encoder) {
    let Expectations {
        verdict,
        operations_complete,
        elapsed_max_ns,
        retransmitted_min,
        retransmitted_max,
        nodes_lost,
    } = expect;
    to.word("verdict", *verdict, Default::default());
    to.differs("operations_complete", operations_complete, &false);
    to.differs("elapsed_max", elapsed_max_ns, &None);
    to.differs("retransmitted_min", retransmitted_min, &None);
    to.differs("retransmitted_max", retransmitted_max, &None);
    to.differs("nodes_lost", &nodes_lost.iter().map(|node| node.0).collect(), &Vec::new());
}

/// The path of a server is written if it is not that of the rack.
fn local(local: &LocalPlan, to: &mut Encoder) {
    let LocalPlan { of_rack, of_servers } = local;
    let mut path = |key: &str, path: &LocalPath, base: &LocalPath| {
        let LocalPath { latency_ns, rate_bits_per_s } = path;
        to.table(key, |to| {
            to.differs("latency", latency_ns, &base.latency_ns);
            if *rate_bits_per_s != base.rate_bits_per_s {
                rate(to, *rate_bits_per_s);
            }
        });
    };
    path("local", of_rack, &LocalPath::default());
    for (server, own) in of_servers {
        path(&format!("servers.{server}.local"), own, of_rack);
    }
}

fn rate(to: &mut Encoder, rate_bits_per_s: Option<u64>) {
    match rate_bits_per_s {
        Some(rate) => to.put("rate", &rate),
        None => to.put("rate", "unlimited"),
    }
}

fn member(member: &MemberPlan, to: &mut Encoder) {
    let MemberPlan { name, role, tenant, server, memory_bytes, memory } = member;
    let key = format!("nodes.{name}");
    let (role, memory_default) = match role {
        MemberRole::Endpoint => ("node", defaults::MEMORY_BYTES),
        MemberRole::Switch => ("switch", 0),
    };
    to.put(&key, role);
    to.table(&key, |to| {
        to.differs("tenant", &tenant.0, &0);
        if server.strip_prefix("server-") != Some(name) {
            to.put("server", server.as_str());
        }
        to.table("memory", |to| {
            let MemoryOptions { huge_pages, locked, numa_node, device, share, mapped } = memory;
            to.differs("bytes", memory_bytes, &memory_default);
            to.differs("huge_pages", huge_pages, &false);
            to.differs("locked", locked, &false);
            to.differs("numa_node", numa_node, &None);
            if let Some(device) = device {
                to.put("device", device.to_string().as_str());
            }
            to.word("share", *share, Default::default());
            if let Some(mapped) = mapped {
                to.put("mapped", mapped.to_string().as_str());
            }
        });
    });
}

fn host(host: &HostPlan, links: &[LinkPlan], to: &mut Encoder) {
    let HostPlan { name: _, members, interface, interfaces, address, addresses } = host;
    let name_of = |edge: &usize| links.get(*edge).map_or_else(|| edge.to_string(), |link| link.name.clone());
    to.put("nodes", &members.iter().map(|member| member.0).collect::<Vec<_>>());
    if let Some(interface) = interface {
        to.put("interface", interface.as_str());
    }
    for (edge, interface) in interfaces {
        to.put(&format!("interfaces.{}", name_of(edge)), interface.as_str());
    }
    if let Some(address) = address {
        to.put("address", address.to_string().as_str());
    }
    for (edge, address) in addresses {
        to.put(&format!("addresses.{}", name_of(edge)), address.to_string().as_str());
    }
}

fn link(link: &LinkPlan, to: &mut Encoder) {
    let LinkPlan { name, edge, profile, credits, updates } = link;
    let key = format!("links.{name}");
    to.put(&key, edge);
    to.table(&key, |to| {
        self::profile(profile, to);
        to.table("credits", |to| {
            let CreditConfig { unit_bytes, overhead_bytes, limit } = credits;
            to.put("unit_bytes", unit_bytes);
            to.put("overhead_bytes", overhead_bytes);
            to.put("limit", limit);
            let CreditUpdates { spacing, resync } = updates;
            let usual = credits.usual_updates();
            to.differs("update_spacing", spacing, &usual.spacing);
            to.differs("resync", resync, &usual.resync);
        });
    });
}

fn profile(profile: &LinkProfile, to: &mut Encoder) {
    let base = LinkProfile::default();
    let LinkProfile {
        rate_bits_per_s,
        delay_ns,
        length_mm,
        medium,
        sides: SideLatency { mac_ns, phy_ns, fec_ns },
        headers,
        loss,
        burst,
        loss_by_kind,
        bit_error_rate,
        corrupt,
        duplicate,
        reorder,
        seed,
        drop_frames: DropFrames { forward, backward },
        // The resulting credits follow.
        credits: _,
        channels: OwnChannels { are_divided, limits },
        retry,
        pause,
    } = profile;
    to.differs("rate", rate_bits_per_s, &None);
    // A length replaces the delay, and the medium has a meaning only with a length.
    match length_mm {
        Some(length_mm) => {
            to.put("length", length_mm);
            to.word("medium", *medium, base.medium);
        }
        None => to.differs("delay", delay_ns, &base.delay_ns),
    }
    to.differs("mac_latency", mac_ns, &0);
    to.differs("phy_latency", phy_ns, &0);
    to.differs("fec_latency", fec_ns, &0);
    to.word("headers", *headers, base.headers);
    to.differs("loss", loss, &0.0);
    if let Some(Burst { enter, leave, loss }) = burst {
        to.table("burst", |to| {
            to.put("enter", enter);
            to.put("leave", leave);
            to.differs("loss", loss, &1.0);
        });
    }
    to.table("loss_by_kind", |to| {
        for (kind, name) in LossByKind::kinds() {
            to.differs(name, &loss_by_kind.of(kind), &None);
        }
    });
    to.differs("bit_error_rate", bit_error_rate, &0.0);
    to.differs("corrupt", corrupt, &0.0);
    to.differs("duplicate", duplicate, &0.0);
    to.differs("reorder", reorder, &0.0);
    to.differs("seed", seed, &None);
    to.differs("drop_frames.forward", forward, &Vec::new());
    to.differs("drop_frames.backward", backward, &Vec::new());
    to.if_set("channels", !are_divided, "off");
    to.differs("channels.limits", limits, &Vec::new());
    if let Some(retry) = retry {
        to.put("llr", "on");
        to.table("llr", |to| self::retry(retry, to));
    }
    if let Some(pause) = pause {
        to.put("pfc", "on");
        to.table("pfc", |to| self::pause(pause, to));
    }
}

fn retry(retry: &RetryPlan, to: &mut Encoder) {
    let base = RetryPlan::default();
    let RetryPlan {
        sequence_bits,
        outstanding_frames,
        outstanding_bytes,
        ack_spacing_bytes,
        ack_delay_ns,
        replay_timer_ns,
        replay_count_max,
        flush,
    } = retry;
    to.differs("sequence_bits", sequence_bits, &base.sequence_bits);
    to.differs("outstanding_frames", outstanding_frames, &base.outstanding_frames);
    to.differs("outstanding_bytes", outstanding_bytes, &base.outstanding_bytes);
    to.differs("ack_spacing", ack_spacing_bytes, &base.ack_spacing_bytes);
    to.differs("ack_delay", ack_delay_ns, &None);
    to.differs("replay_timer", replay_timer_ns, &None);
    to.differs("replay_count_max", replay_count_max, &base.replay_count_max);
    to.word("flush", *flush, base.flush);
}

fn pause(pause: &PausePlan, to: &mut Encoder) {
    let base = PausePlan::default();
    let PausePlan {
        xoff_bytes,
        xon_bytes,
        headroom_bytes,
        allows_short_headroom,
        quanta,
        response_delay_ns,
        watchdog_ns,
    } = pause;
    to.differs("xoff", xoff_bytes, &base.xoff_bytes);
    to.differs("xon", xon_bytes, &None);
    to.differs("headroom", headroom_bytes, &None);
    to.if_set("short_headroom", *allows_short_headroom, "allow");
    to.differs("quanta", quanta, &base.quanta);
    to.differs("response_delay", response_delay_ns, &base.response_delay_ns);
    to.differs("watchdog", watchdog_ns, &base.watchdog_ns);
}

/// Implements [`Canonical`] for whole numbers and flags: decimal digits, `true` and `false`.
macro_rules! as_displayed {
    ($($type:ty),+) => {$(
        impl Canonical for $type {
            fn encode(&self, text: &mut String) {
                // Writing to a String does not fail.
                let _ = write!(text, "{self}");
            }
        }
    )+};
}

as_displayed!(u8, u16, u32, u64, bool);

/// Names and words. They contain no line break and no `=`, because the reader of names refuses both.
impl Canonical for str {
    fn encode(&self, text: &mut String) {
        debug_assert!(!self.contains(['\n', '=']), "{self:?} is not a name");
        text.push_str(self);
    }
}

/// The 64 bits of IEEE 754 as 16 hexadecimal digits, so that nothing is rounded.
impl Canonical for f64 {
    fn encode(&self, text: &mut String) {
        let _ = write!(text, "{:016x}", self.to_bits());
    }
}

impl<T: Canonical> Canonical for Option<T> {
    fn encode(&self, text: &mut String) {
        match self {
            Some(value) => value.encode(text),
            None => text.push_str("none"),
        }
    }
}

/// Values with commas between them.
impl<T: Canonical> Canonical for Vec<T> {
    fn encode(&self, text: &mut String) {
        for (index, value) in self.iter().enumerate() {
            if index > 0 {
                text.push(',');
            }
            value.encode(text);
        }
    }
}

/// Member and port of both ends, and the plane.
impl Canonical for Edge {
    fn encode(&self, text: &mut String) {
        let Self { a, a_port, b, b_port, plane } = self;
        let _ = write!(text, "{}:{},{}:{},{}", a.0, a_port.0, b.0, b_port.0, plane.0);
    }
}

/// First size, largest size and factor.
impl Canonical for Sizes {
    fn encode(&self, text: &mut String) {
        let Self { from_bytes, to_bytes, factor } = self;
        let _ = write!(text, "{from_bytes}..{to_bytes}*{factor}");
    }
}
