//! Every key that a rack file may contain, declared once.
//!
//! Readers refuse what is not declared here; tests hold that each declared key is read and is documented in
//! `docs/topology-file.md`.

/// The keys of one table.
#[derive(Debug)]
pub(crate) struct Table {
    /// Heading of the table in the document.
    pub(crate) name: &'static str,
    /// Its keys.
    pub(crate) keys: &'static [&'static str],
}

pub(crate) const RACK: Table = Table {
    name: "rack",
    keys: &[
        "name",
        "seed",
        "shape",
        "defaults",
        "nodes",
        "link",
        "links",
        "wire",
        "checks",
        "timers",
        "transport",
        "packing",
        "credits",
        "frame_bytes_max",
        "ring_bytes",
        "ether_type",
        "outstanding_loads_max",
        "rdma_threshold_bytes",
        "watchdog",
        "job",
    ],
};
pub(crate) const SHAPE: Table = Table { name: "shape", keys: &["ring", "star", "full-mesh", "custom"] };
pub(crate) const RING: Table = Table { name: "shape.ring", keys: &["nodes"] };
pub(crate) const STAR: Table = Table { name: "shape.star", keys: &["nodes", "planes"] };
pub(crate) const FULL_MESH: Table = Table { name: "shape.full-mesh", keys: &["nodes"] };
pub(crate) const CUSTOM: Table = Table { name: "shape.custom", keys: &["nodes", "switches", "links"] };
pub(crate) const CUSTOM_LINK: Table = Table { name: "shape.custom.links", keys: &["a", "b", "plane"] };
pub(crate) const DEFAULTS: Table = Table { name: "defaults", keys: &["memory", "tenant"] };
pub(crate) const NODE: Table = Table { name: "nodes", keys: &["memory", "tenant", "server"] };
pub(crate) const SWITCH: Table = Table { name: "nodes (of a switch)", keys: &["server"] };
pub(crate) const LINK: Table = Table {
    name: "link",
    keys: &["rate", "delay", "loss", "corrupt", "duplicate", "reorder", "seed", "drop_frames"],
};
pub(crate) const TIMERS: Table = Table {
    name: "timers",
    keys: &["heartbeat_interval", "heartbeat_miss_max", "hold_down", "up_count", "hello_interval"],
};
pub(crate) const TRANSPORT: Table = Table {
    name: "transport",
    keys: &[
        "mode",
        "window_packets",
        "timeout_initial",
        "timeout_min",
        "timeout_max",
        "retry_count_max",
        "ack_every_packets",
        "ack_delay",
    ],
};
pub(crate) const PACKING: Table = Table { name: "packing", keys: &["mode", "operations_max"] };
pub(crate) const CREDITS: Table = Table { name: "credits", keys: &["unit_bytes", "overhead_bytes", "limit"] };
pub(crate) const JOB: Table = Table { name: "job", keys: &["litmus"] };
pub(crate) const LITMUS: Table = Table { name: "job.litmus", keys: &["bytes_max", "rounds"] };

/// All tables, for the tests that hold them against the document and the readers.
#[cfg(test)]
pub(crate) const TABLES: &[&Table] = &[
    &RACK, &SHAPE, &RING, &STAR, &FULL_MESH, &CUSTOM, &CUSTOM_LINK, &DEFAULTS, &NODE, &SWITCH, &LINK, &TIMERS,
    &TRANSPORT, &PACKING, &CREDITS, &JOB, &LITMUS,
];
