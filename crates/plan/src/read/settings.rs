//! Reads timers, transport, packing, forwarding and credits: tables of plain values over defaults.

use rackloom_protocol::{
    ForwardingConfig, LinkTimers, OrderScope, PackingConfig, PathConfig, PathPolicy, SharedBufferConfig,
    TransportConfig,
};

use crate::model::defaults::{self, CreditChoice};
use crate::model::stated::Stated;
use crate::model::timing::{ForwardingMode, ForwardingPlan};
use crate::read::document::Content;
use crate::read::fields::{Fields, Reader, in_range};
use crate::read::mistake::Complaint;
use crate::schema;
use crate::setting::quantity::{bytes, nanoseconds, thousandths, whole};

/// Reads a size that must fit a smaller type.
pub(crate) fn bytes_as<T: TryFrom<u64>>(text: &str) -> Result<T, Complaint> {
    let value = bytes(text)?;
    T::try_from(value).map_err(|_| {
        let hint = "its range stands in docs/topology-file.md and in `rackloom schema`";
        Complaint::about(format!("{value} bytes is too large")).hint(hint).beyond_type()
    })
}

pub(crate) fn timers(reader: &mut Reader<'_>, rack: &Fields<'_>) -> LinkTimers {
    if !rack.is_table("timers") {
        reader.choice(rack, "timers", (), &[("auto", ())]);
        return defaults::TIMERS;
    }
    let fields = reader.open_under(rack, "timers", &schema::TIMERS);
    let base = defaults::TIMERS;
    let heartbeat_interval_ns =
        reader.value(&fields, "heartbeat_interval", base.heartbeat_interval_ns, nanoseconds);
    let heartbeat_miss_max = reader.value(&fields, "heartbeat_miss_max", base.heartbeat_miss_max, whole);
    let hold_down_ns = defaults::hold_down_ns(heartbeat_interval_ns, heartbeat_miss_max);
    let heartbeat_rest = defaults::heartbeat_rest(heartbeat_interval_ns);
    LinkTimers {
        heartbeat_interval_ns,
        heartbeat_miss_max,
        heartbeat_rest: reader.value(&fields, "heartbeat_rest", heartbeat_rest, whole),
        hold_down_ns: reader.value(&fields, "hold_down", hold_down_ns, nanoseconds),
        up_count: reader.value(&fields, "up_count", base.up_count, whole),
        hello_interval_ns: reader.value(&fields, "hello_interval", base.hello_interval_ns, nanoseconds),
    }
}

pub(crate) fn transport(reader: &mut Reader<'_>, rack: &Fields<'_>) -> TransportConfig {
    let fields = reader.open_under(rack, "transport", &schema::TRANSPORT);
    let base = defaults::TRANSPORT;
    let window_packets = reader.value(&fields, "window_packets", base.window_packets, whole);
    let reorder_packets = defaults::reorder_packets(window_packets);
    TransportConfig {
        mode: reader.word(&fields, "mode", base.mode),
        window_packets,
        reorder_packets: reader.value(&fields, "reorder_packets", reorder_packets, whole),
        timeout_initial_ns: reader.value(&fields, "timeout_initial", base.timeout_initial_ns, nanoseconds),
        timeout_min_ns: reader.value(&fields, "timeout_min", base.timeout_min_ns, nanoseconds),
        timeout_max_ns: reader.value(&fields, "timeout_max", base.timeout_max_ns, nanoseconds),
        retry_count_max: reader.value(&fields, "retry_count_max", base.retry_count_max, whole),
        ack_every_packets: reader.value(&fields, "ack_every_packets", base.ack_every_packets, whole),
        ack_delay_ns: reader.value(&fields, "ack_delay", base.ack_delay_ns, nanoseconds),
    }
}

/// Returns the set of timing keys that the file states.
pub(crate) fn stated(rack: &Fields<'_>) -> Stated {
    let stands = |table: &'static str, key: &str| match rack.find(table).map(|value| &value.content) {
        Some(Content::Table(entries)) => entries.iter().any(|entry| entry.key == key),
        _ => false,
    };
    Stated {
        heartbeat_interval: stands("timers", "heartbeat_interval"),
        heartbeat_rest: stands("timers", "heartbeat_rest"),
        hold_down: stands("timers", "hold_down"),
        hello_interval: stands("timers", "hello_interval"),
        timeout_initial: stands("transport", "timeout_initial"),
        timeout_min: stands("transport", "timeout_min"),
        timeout_max: stands("transport", "timeout_max"),
        ack_delay: stands("transport", "ack_delay"),
    }
}

pub(crate) fn paths(reader: &mut Reader<'_>, rack: &Fields<'_>) -> PathConfig {
    let fields = reader.open_under(rack, "paths", &schema::PATHS);
    PathConfig {
        policy: reader.word(&fields, "policy", PathPolicy::default()),
        order: reader.word(&fields, "order", OrderScope::default()),
        keeps_order: reader.flag(&fields, "keep_order", true),
        relays_choose: reader.choice(&fields, "relays", false, &[("flow", false), ("policy", true)]),
    }
}

pub(crate) fn packing(reader: &mut Reader<'_>, rack: &Fields<'_>) -> PackingConfig {
    let fields = reader.open_under(rack, "packing", &schema::PACKING);
    let base = defaults::PACKING;
    PackingConfig {
        mode: reader.word(&fields, "mode", base.mode),
        operations_max: reader.value(&fields, "operations_max", base.operations_max, whole),
    }
}

pub(crate) fn forwarding(reader: &mut Reader<'_>, rack: &Fields<'_>) -> ForwardingPlan {
    let fields = reader.open_under(rack, "forwarding", &schema::FORWARDING);
    ForwardingPlan {
        mode: reader.word(&fields, "mode", ForwardingMode::default()),
        latency_ns: reader.value(&fields, "latency", 0, |text| {
            in_range(&schema::FORWARDING, "latency", nanoseconds(text)?)
        }),
        rules: ForwardingConfig {
            bubble: reader.flag(&fields, "bubble", true),
            own_first: reader.choice(&fields, "priority", false, &[("transit", false), ("own", true)]),
            until_answered: reader.choice(&fields, "drain", false, &[("at-once", false), ("answered", true)]),
            in_order: reader.choice(&fields, "queues", false, &[("by-output", false), ("by-input", true)]),
            mark_above_bytes: reader.value(&fields, "mark_above", None, |text| bytes_as(text).map(Some)),
            shared_buffer: shared_buffer(reader, &fields),
        },
        allows_deadlock: reader.choice(&fields, "deadlock", false, &[("refuse", false), ("allow", true)]),
    }
}

fn shared_buffer(reader: &mut Reader<'_>, forwarding: &Fields<'_>) -> Option<SharedBufferConfig> {
    let position = forwarding.find("buffer")?.position;
    reader.positions.note(forwarding.path_of("buffer"), position);
    let fields = reader.open_under(forwarding, "buffer", &schema::BUFFER);
    if fields.find("bytes").is_none() {
        let message = format!("`{}` has no `bytes`", forwarding.path_of("buffer"));
        let hint = "write like `buffer: {bytes: 4MiB, alpha: 0.5}`";
        reader.complain(position, Complaint::about(message).hint(hint));
    }
    Some(SharedBufferConfig {
        bytes: reader.value(&fields, "bytes", 1, bytes),
        alpha_thousandths: reader.value(&fields, "alpha", 1_000, thousandths),
        private_bytes: reader.value(&fields, "private", 0, bytes_as),
    })
}

pub(crate) fn credits(reader: &mut Reader<'_>, rack: &Fields<'_>) -> CreditChoice {
    let fields = reader.open_under(rack, "credits", &schema::CREDITS);
    CreditChoice {
        unit_bytes: reader.value(&fields, "unit_bytes", None, |text| bytes_as(text).map(Some)),
        overhead_bytes: reader.value(&fields, "overhead_bytes", None, |text| bytes_as(text).map(Some)),
        limit: reader.value(&fields, "limit", None, |text| whole(text).map(Some)),
        update_spacing_bytes: reader.value(&fields, "update_spacing", None, |text| bytes(text).map(Some)),
        leaks: !reader.flag(&fields, "resync", true),
        counter_bits: reader.value(&fields, "counter_bits", None, |text| whole(text).map(Some)),
    }
}
