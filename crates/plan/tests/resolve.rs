//! What a file resolves to: defaults, inheritance, the configuration hash, and what a command line may change.

use rackloom_plan::{Checks, DropFrames, JobKind, Plan, WireKind};
use rackloom_protocol::{
    CreditConfig, Incarnation, NodeId, PackingMode, Plane, PortId, RetransmissionMode, Tenant,
};

const MINIMAL: &str = "name: small\nshape: {ring: {nodes: 4}}\n";

fn plan(text: &str) -> Plan {
    Plan::parse(text, "test").unwrap_or_else(|error| panic!("{error}"))
}

fn with(lines: &str) -> Plan {
    plan(&format!("{MINIMAL}{lines}"))
}

#[test]
fn a_file_that_says_nothing_gets_the_documented_defaults() {
    let plan = plan(MINIMAL);
    assert_eq!(
        (plan.wire, plan.checks, plan.job.kind),
        (WireKind::SharedMemory, Checks::Auto, JobKind::Litmus)
    );
    assert_eq!(plan.links[0].credits, CreditConfig { unit_bytes: 128, overhead_bytes: 16, limit: 4096 });
    assert_eq!(plan.timers.hold_down_ns, 1_000_000_000, "twice the detection time of 500 ms");
    assert_eq!(plan.links[0].profile.rate_bits_per_s, None);
    assert!(!plan.links[0].profile.has_faults());
    assert!(!plan.end_to_end_check());
}

#[test]
fn every_key_arrives_where_it_belongs() {
    let plan = plan(include_str!("every-key.yaml"));
    let [left, right, hub] = [&plan.members[0], &plan.members[1], &plan.members[2]];
    assert_eq!((left.memory_bytes, left.tenant, left.server.as_str()), (8 << 20, Tenant(2), "server-left"));
    assert_eq!((right.memory_bytes, right.tenant, right.server.as_str()), (16 << 20, Tenant(3), "annex"));
    assert_eq!((hub.memory_bytes, hub.server.as_str()), (0, "closet"));
    assert_eq!(plan.links[1].name, "hub--right");
    let edge = plan.links[1].edge;
    assert_eq!((edge.a, edge.a_port, edge.b, edge.b_port), (NodeId(2), PortId(1), NodeId(1), PortId(0)));
    assert_eq!(edge.plane, Plane(0));
    let both = DropFrames { forward: vec![2, 4], backward: vec![2, 4] };
    assert_eq!(plan.links[1].profile.drop_frames, both);
    assert_eq!(plan.links[1].profile.rate_bits_per_s, Some(50_000_000_000));
    let own = &plan.links[0].profile;
    assert_eq!((own.rate_bits_per_s, own.delay_ns, own.seed), (None, 1_000, Some(77)));
    assert_eq!((own.loss, own.corrupt, own.duplicate, own.reorder), (0.25, 0.125, 0.5, 0.01));
    assert_eq!(own.drop_frames, DropFrames { forward: vec![901], backward: vec![] });
    assert_eq!(plan.links[0].credits, CreditConfig { unit_bytes: 64, overhead_bytes: 8, limit: 1000 });

    let config = plan.member_config(NodeId(2), Incarnation(5));
    assert_eq!(
        (config.incarnation, config.ether_type, config.frame_bytes_max),
        (Incarnation(5), 0x88B6, 1514)
    );
    assert_eq!(config.ports.iter().map(|port| port.neighbour.0).collect::<Vec<_>>(), [0, 1]);
    assert!(config.end_to_end_check);
    assert_eq!(
        config.tenants,
        [Tenant(2), Tenant(3), Tenant(2)],
        "every member knows every seat's partition"
    );
    assert_eq!((config.packing.mode, config.packing.operations_max), (PackingMode::Off, 16));
    assert_eq!(config.transport.mode, RetransmissionMode::GoBackN);
    assert_eq!((config.transport.window_packets, config.transport.ack_delay_ns), (32, 50_000));
    assert_eq!((config.timers.hold_down_ns, config.timers.up_count), (70_000_000, 4));
    assert_eq!((plan.seed, plan.watchdog_ns, plan.rdma_threshold_bytes), (9, 5_000_000_000, 1024));
    assert_eq!((plan.job.bytes_max, plan.job.rounds), (65_536, 2));
}

#[test]
fn spelling_does_not_move_the_hash_and_every_setting_does() {
    let base = plan(MINIMAL).config_hash;
    let same = "# a comment\nshape:\n  ring:\n    nodes: 0x4\nname: \"small\"\nring_bytes: 1024KiB\nlink: {delay: 0.5us}\n";
    assert_eq!(plan(same).config_hash, base);
    assert_eq!(with("seed: 99").config_hash, base, "the seed is reported beside the hash");
    let changes = [
        "wire: packet",
        "checks: always",
        "ring_bytes: 2MiB",
        "frame_bytes_max: 4000B",
        "ether_type: 0x88B6",
        "outstanding_loads_max: 63",
        "rdma_threshold_bytes: 4095B",
        "watchdog: 31s",
        "job: none",
        "job: {litmus: {rounds: 2}}",
        "job: {litmus: {bytes_max: 2MiB}}",
        "timers: {up_count: 4}",
        "timers: {hello_interval: 3ms}",
        "transport: {mode: go-back-n}",
        "transport: {retry_count_max: 1}",
        "transport: {timeout_initial: 21ms}",
        "packing: {mode: off}",
        "packing: {operations_max: 63}",
        "defaults: {memory: 8MiB}",
        "nodes: {n1: {tenant: 1}}",
        "nodes: {n1: {server: s}}",
        "link: {loss: 1%}",
        "link: {rate: 1Gbit/s}",
        "links: {n0--n1: {delay: 501ns}}",
        "links: {n0--n1: {seed: 1}}",
        "links: {n0--n1: {drop_frames: {n0->n1: [1]}}}",
        "links: {n0--n1: {drop_frames: {n1->n0: [1]}}}",
        "credits: {limit: 2000}",
        "credits: {limit: 2000}\nring_bytes: 2MiB",
    ];
    let mut hashes: Vec<u64> = changes.iter().map(|lines| with(lines).config_hash).collect();
    hashes.push(base);
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), changes.len() + 1, "each change has a hash of its own");
    assert_ne!(plan("name: other\nshape: {ring: {nodes: 4}}").config_hash, base);
}

#[test]
fn the_epoch_is_never_zero_and_follows_the_plan() {
    let epochs: Vec<u16> =
        (2..200).map(|nodes| plan(&format!("name: r\nshape: {{star: {{nodes: {nodes}}}}}")).epoch).collect();
    assert!(epochs.iter().all(|epoch| *epoch != 0));
    let mut distinct = epochs.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert!(distinct.len() > epochs.len() - 5, "16 bits rarely collide");
}

#[test]
fn a_changed_profile_changes_hash_epoch_and_check() {
    let mut changed = plan(MINIMAL);
    let before = changed.config_hash;
    changed.override_links(|profile| profile.corrupt = 0.01);
    assert_ne!(changed.config_hash, before);
    assert_eq!(changed.config_hash, with("link: {corrupt: 1%}").config_hash, "as if the file had said it");
    assert_eq!(changed.epoch, with("link: {corrupt: 1%}").epoch);
    assert!(changed.member_config(NodeId(0), Incarnation(1)).end_to_end_check);
    assert!(changed.check().is_ok());
    changed.override_links(|profile| profile.loss = 1.5);
    let error = changed.check().unwrap_err();
    assert_eq!(error.mistakes.len(), 1, "one mistake, however many links: {error}");
    assert!(error.mistakes[0].message.contains("loss"));
}

#[test]
fn another_wire_brings_its_own_credits_unless_the_file_fixes_them() {
    let mut moved = plan(MINIMAL);
    moved.set_wire(WireKind::Packet);
    assert_eq!(moved.links[3].credits, CreditConfig { unit_bytes: 256, overhead_bytes: 1024, limit: 640 });
    assert!(moved.end_to_end_check());
    assert_eq!(moved.config_hash, with("wire: packet").config_hash);
    moved.set_wire(WireKind::SharedMemory);
    assert_eq!(moved.config_hash, plan(MINIMAL).config_hash);
    let mut fixed = with("credits: {limit: 300}");
    fixed.set_wire(WireKind::Packet);
    assert_eq!(fixed.links[0].credits.limit, 300);
}

#[test]
fn seats_are_found_by_name() {
    let plan = plan("name: s\nshape: {star: {nodes: 2}}");
    assert_eq!(plan.node_named("s0"), Some(NodeId(2)));
    assert_eq!(plan.node_named("n2"), None);
}
