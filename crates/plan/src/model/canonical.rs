//! Canonical text of a resolved plan, and its hash.
//!
//! Two files that differ in comments, order, units or stated defaults describe the same rack and have equal hashes. The
//! code destructures the plan by name: a new field does not compile until it is written here or left out on purpose.

use std::fmt::Write;

use rackloom_protocol::{
    CreditConfig, CreditUpdates, Edge, ForwardingConfig, LinkTimers, PackingConfig, PathConfig,
    SharedBufferConfig, TransportConfig,
};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::model::channels::ChannelPlan;
use crate::model::defaults;
use crate::model::expect::Expectations;
use crate::model::headers::HeaderProfile;
use crate::model::hosts::HostPlan;
use crate::model::hub::SwitchKind;
use crate::model::job::JobPlan;
use crate::model::link::{LinkPlan, LinkProfile};
use crate::model::local::LocalPlan;
use crate::model::loss::{Burst, LossByKind};
use crate::model::member::{MemberPlan, MemoryOptions, ShareBy, TenantPlan};
use crate::model::of_link::OwnChannels;
use crate::model::plan::Plan;
use crate::model::timing::{ForwardingPlan, SideLatency};

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

fn text(plan: &Plan) -> String {
    // Left out: the seed, values derived from the hash, and the credit choice, whose result is part of each link.
    let Plan { name, seed: _, epoch: _, config_hash: _, members, hosts, links, credit_choice: _, .. } = plan;
    let mut text = format!("rack {name:?}\n");
    settings(plan, &mut text);
    for MemberPlan { name, role, tenant, server, memory_bytes, memory } in members {
        line(&mut text, format_args!("member {name:?} {role:?} {} {server:?} {memory_bytes}", tenant.0));
        let MemoryOptions { huge_pages, locked, numa_node, device, share, mapped } = memory;
        line(&mut text, format_args!("memory {huge_pages} {locked} {numa_node:?}"));
        if let Some(device) = device {
            line(&mut text, format_args!("memory on {device}"));
        }
        if *share != ShareBy::default() {
            line(&mut text, format_args!("memory by {}", share.name()));
        }
        if let Some(mapped) = mapped {
            line(&mut text, format_args!("memory mapped by {mapped}"));
        }
    }
    for link in links {
        spell_link(link, &mut text);
    }
    for HostPlan { name, members, interface, interfaces, address, addresses } in hosts {
        line(&mut text, format_args!("host {name:?} {members:?} {interface:?} {interfaces:?}"));
        if address.is_some() || !addresses.is_empty() {
            line(&mut text, format_args!("addresses {address:?} {addresses:?}"));
        }
    }
    text
}

fn settings(plan: &Plan, text: &mut String) {
    let Plan {
        name: _,
        seed: _,
        epoch: _,
        config_hash: _,
        members: _,
        hosts: _,
        links: _,
        stated: _,
        reach: _,
        credit_choice: _,
        // The path is specific to one host. Every sealed message proves that the keys are equal.
        security: _,
        // Frames and their times are equal in all modes.
        payload: _,
        switch,
        wire,
        force_wire,
        local,
        checks,
        timers,
        transport,
        paths,
        packing,
        forwarding,
        channels,
        frame_bytes_max,
        outstanding_loads_max,
        ether_type,
        udp_port,
        ring_bytes,
        rdma_threshold_bytes,
        job,
        expect,
        tenants,
        watchdog_ns,
    } = plan;
    line(
        text,
        format_args!("wire {wire:?} checks {checks:?} ether_type {ether_type} ring_bytes {ring_bytes}"),
    );
    // Written only if it is not the default, so that racks from before this setting keep their hash.
    if *force_wire {
        line(text, format_args!("force_wire"));
    }
    if *local != LocalPlan::default() {
        line(text, format_args!("local {local:?}"));
    }
    if *udp_port != defaults::UDP_PORT {
        line(text, format_args!("udp_port {udp_port}"));
    }
    if *switch != SwitchKind::default() {
        line(text, format_args!("switch {switch}"));
    }
    line(
        text,
        format_args!("frame_bytes_max {frame_bytes_max} outstanding_loads_max {outstanding_loads_max}"),
    );
    line(text, format_args!("rdma_threshold_bytes {rdma_threshold_bytes} watchdog_ns {watchdog_ns}"));
    spell_timers(timers, text);
    spell_transport(transport, text);
    if *paths != PathConfig::default() {
        let PathConfig { policy, order, keeps_order, relays_choose } = paths;
        line(text, format_args!("paths {policy:?} {order:?} {keeps_order}"));
        if *relays_choose {
            line(text, format_args!("relays choose"));
        }
    }
    let PackingConfig { mode, operations_max } = packing;
    line(text, format_args!("packing {mode:?} {operations_max}"));
    spell_forwarding(forwarding, text);
    if *channels != ChannelPlan::default() {
        let ChannelPlan { config, limits, datelines, levels_follow: _ } = channels;
        line(text, format_args!("channels {config:?} {limits:?} {datelines:?}"));
    }
    // The derived text of a job contains all of its settings.
    let JobPlan { kind, bytes_max, rounds } = job;
    line(text, format_args!("job {kind:?} {bytes_max} {rounds}"));
    spell_expectations(expect, text);
    for TenantPlan { tenant, memory_bytes_max } in tenants {
        line(text, format_args!("tenant {} {memory_bytes_max}", tenant.0));
    }
}

fn spell_timers(timers: &LinkTimers, text: &mut String) {
    let LinkTimers {
        heartbeat_interval_ns,
        heartbeat_miss_max,
        heartbeat_rest,
        hold_down_ns,
        up_count,
        hello_interval_ns,
    } = timers;
    line(
        text,
        format_args!(
            "timers {heartbeat_interval_ns} {heartbeat_miss_max} {heartbeat_rest} {hold_down_ns} {up_count} {hello_interval_ns}"
        ),
    );
}

/// Written only if it is not the default, as for links, so that racks from before this setting keep their hash.
fn spell_forwarding(forwarding: &ForwardingPlan, text: &mut String) {
    if *forwarding == ForwardingPlan::default() {
        return;
    }
    line(text, format_args!("forwarding {:?} {}", forwarding.mode, forwarding.latency_ns));
    if forwarding.rules != ForwardingConfig::default() {
        let ForwardingConfig { bubble, own_first, until_answered, in_order, mark_above_bytes, shared_buffer } =
            forwarding.rules;
        line(
            text,
            format_args!(
                "ForwardingConfig {{ bubble: {bubble}, own_first: {own_first}, until_answered: {until_answered} }}"
            ),
        );
        if in_order {
            line(text, format_args!("queues by input"));
        }
        if let Some(bytes) = mark_above_bytes {
            line(text, format_args!("marks above {bytes}"));
        }
        if let Some(SharedBufferConfig { bytes, alpha_thousandths, private_bytes }) = shared_buffer {
            line(text, format_args!("shared buffer {bytes} {alpha_thousandths} {private_bytes}"));
        }
    }
    if forwarding.allows_deadlock {
        line(text, format_args!("deadlock allowed"));
    }
}

fn spell_transport(transport: &TransportConfig, text: &mut String) {
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
    line(
        text,
        format_args!(
            "transport {mode:?} {window_packets} {retry_count_max} {ack_every_packets} {ack_delay_ns}"
        ),
    );
    if *reorder_packets != defaults::reorder_packets(*window_packets) {
        line(text, format_args!("reorder {reorder_packets}"));
    }
    line(text, format_args!("timeouts {timeout_initial_ns} {timeout_min_ns} {timeout_max_ns}"));
}

fn spell_expectations(expect: &Expectations, text: &mut String) {
    let Expectations {
        verdict,
        operations_complete,
        elapsed_max_ns,
        retransmitted_min,
        retransmitted_max,
        nodes_lost,
    } = expect;
    line(text, format_args!("expect {verdict} {operations_complete} {elapsed_max_ns:?}"));
    line(text, format_args!("expect {retransmitted_min:?} {retransmitted_max:?} {nodes_lost:?}"));
}

fn spell_link(link: &LinkPlan, text: &mut String) {
    let LinkPlan { name, edge, profile, credits, updates } = link;
    let Edge { a, a_port, b, b_port, plane } = edge;
    line(text, format_args!("link {name:?} {} {} {} {} {}", a.0, a_port.0, b.0, b_port.0, plane.0));
    let LinkProfile {
        rate_bits_per_s,
        delay_ns,
        length_mm,
        medium,
        sides,
        headers,
        loss,
        burst,
        loss_by_kind,
        bit_error_rate,
        corrupt,
        duplicate,
        reorder,
        seed,
        drop_frames,
        // The resulting credits follow below.
        credits: _,
        channels,
        retry,
        pause,
    } = profile;
    // A length replaces the delay, and the medium matters only with a length.
    let delay_ns = if length_mm.is_some() { LinkProfile::DELAY_DEFAULT_NS } else { *delay_ns };
    line(text, format_args!("profile {rate_bits_per_s:?} {delay_ns} {seed:?}"));
    if let Some(length_mm) = length_mm {
        line(text, format_args!("cable {length_mm} {}", medium.name()));
    }
    if *sides != SideLatency::default() {
        let SideLatency { mac_ns, phy_ns, fec_ns } = sides;
        line(text, format_args!("sides {mac_ns} {phy_ns} {fec_ns}"));
    }
    if *headers != HeaderProfile::default() {
        line(text, format_args!("headers {}", headers.name()));
    }
    // Floating-point numbers are written as bits, so that they are not rounded.
    let faults = [loss, corrupt, duplicate, reorder].map(|rate| rate.to_bits());
    line(text, format_args!("faults {faults:x?} {:?} {:?}", drop_frames.forward, drop_frames.backward));
    if *bit_error_rate > 0.0 {
        line(text, format_args!("bit errors {:x}", bit_error_rate.to_bits()));
    }
    if let Some(retry) = retry {
        // Written only if it is on, so that racks from before this setting keep their hash. The derived text contains all fields.
        line(text, format_args!("{retry:?}"));
    }
    if *channels != OwnChannels::default() {
        line(text, format_args!("{channels:?}"));
    }
    if let Some(pause) = pause {
        line(text, format_args!("{pause:?}"));
    }
    if let Some(Burst { enter, leave, loss }) = burst {
        line(text, format_args!("burst {:x?}", [enter, leave, loss].map(|rate| rate.to_bits())));
    }
    for (kind, name) in LossByKind::kinds() {
        if let Some(loss) = loss_by_kind.of(kind) {
            line(text, format_args!("loss of {name} {:x}", loss.to_bits()));
        }
    }
    if *updates != credits.usual_updates() {
        let CreditUpdates { spacing, resync } = updates;
        line(text, format_args!("updates {spacing} {resync}"));
    }
    let CreditConfig { unit_bytes, overhead_bytes, limit } = credits;
    line(text, format_args!("credits {unit_bytes} {overhead_bytes} {limit}"));
}

fn line(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing to a String does not fail.
    let _ = text.write_fmt(arguments);
    text.push('\n');
}
