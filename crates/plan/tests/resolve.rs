//! Tests of plans from files: defaults, inheritance, the configuration hash, and changes by a command line.

use rackloom_plan::{
    AlgorithmKind, Burst, Checks, Clock, CollectiveKind, DeadlockPolicy, DropFrames, ElementType,
    Expectations, ExpectedVerdict, ForwardingMode, ForwardingPlan, HeaderProfile, JobKind, JobName,
    LossByKind, Medium, MemoryDevice, MemoryOptions, OwnCredits, PausePlan, Plan, PoolReuse, ReduceOperation,
    ShareBy, ShortHeadroom, Sizes, Sweep, TenantPlan, WireKind,
};
use rackloom_protocol::{
    ArbiterKind, ChannelConfig, CreditConfig, CreditUpdates, FlushPolicy, ForwardingConfig,
    ForwardingPriority, Incarnation, NodeId, PackingMode, Plane, PortId, RequestDrain, RetransmissionMode,
    Rise, SharedBufferConfig, Tenant, TransitQueues,
};

const MINIMAL: &str = "name: small\nshape: {ring: {nodes: 4}}\n";

fn plan(text: &str) -> Plan {
    Plan::parse(text, "test").unwrap_or_else(|error| panic!("{error}"))
}

fn with(lines: &str) -> Plan {
    plan(&format!("{MINIMAL}{lines}"))
}

#[test]
fn an_empty_file_gets_the_documented_defaults() {
    let plan = plan(MINIMAL);
    assert_eq!(
        (plan.settings.wire, plan.settings.checks, plan.job.kind),
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
    assert_eq!((left.memory_bytes, left.tenant, left.server.as_str()), (8 << 20, Tenant(2), "attic"));
    assert_eq!((right.memory_bytes, right.tenant, right.server.as_str()), (16 << 20, Tenant(3), "annex"));
    assert_eq!((hub.memory_bytes, hub.server.as_str()), (0, "closet"));
    let device = Some(MemoryDevice::Fake(7));
    let held = MemoryOptions {
        huge_pages: true,
        locked: true,
        numa_node: Some(1),
        device,
        share: ShareBy::Pool,
        pool_release_threshold: 1 << 20,
        pool_reuse: PoolReuse::Opportunistic,
        mapped: Some(MemoryDevice::Cuda(1)),
    };
    assert_eq!((left.memory, right.memory, hub.memory), (held, held, MemoryOptions::default()));
    assert_eq!(plan.tenants, [TenantPlan { tenant: Tenant(3), memory_max_bytes: 16 << 20 }]);
    let expect = Expectations {
        verdict: ExpectedVerdict::Fail,
        operations_complete: true,
        elapsed_max_ns: Some(5_000_000_000),
        retransmitted_min: Some(1),
        retransmitted_max: Some(900),
        nodes_lost: vec![NodeId(2)],
    };
    assert_eq!(plan.expect, expect);
    let names: Vec<&str> = plan.links.iter().map(|link| link.name.as_str()).collect();
    assert_eq!(names, ["left--hub", "left--hub#1", "hub--right"]);
    let edge = plan.links[2].edge;
    assert_eq!((edge.a, edge.a_port, edge.b, edge.b_port), (NodeId(2), PortId(2), NodeId(1), PortId(0)));
    assert_eq!(edge.plane, Plane(0));
    let both = DropFrames { forward: vec![2, 4], backward: vec![2, 4] };
    assert_eq!(plan.links[2].profile.drop_frames, both);
    assert_eq!(plan.links[2].profile.rate_bits_per_s, Some(50_000_000_000));
    let own = &plan.links[0].profile;
    assert_eq!((own.rate_bits_per_s, own.delay_ns, own.seed), (None, 1_000, Some(77)));
    assert_eq!((own.length_mm, own.medium, own.headers), (Some(3_000), Medium::Fibre, HeaderProfile::Sue));
    assert_eq!((own.mac_latency_ns, own.phy_latency_ns, own.fec_latency_ns), (5, 6, 7));
    assert_eq!(own.latency_ps(), 14_700 + 36_000, "the length counts, not the delay of all links");
    assert_eq!(plan.links[2].profile.latency_ns(), 1_036);
    let pause = PausePlan {
        xoff_bytes: 32 << 10,
        xon_bytes: Some(8 << 10),
        headroom_bytes: Some(48 << 10),
        short_headroom: ShortHeadroom::Allow,
        quanta: 512,
        response_delay_ns: 300,
        watchdog_ns: 3_000_000,
    };
    assert_eq!((own.pfc, plan.links[2].profile.pfc), (Some(pause), None));
    let buffer =
        Some(SharedBufferConfig { bytes: 512 << 10, alpha_thousandths: 125, private_bytes: 12 << 10 });
    let rules = ForwardingConfig {
        bubble: false,
        priority: ForwardingPriority::Own,
        drain: RequestDrain::Answered,
        queues: TransitQueues::ByInput,
        mark_above_bytes: Some(24 << 10),
        shared_buffer: buffer,
    };
    assert_eq!((own.bit_error_rate, own.credits), (1e-9, OwnCredits::default()));
    let credits = OwnCredits { limit: Some(2_000), update_spacing_bytes: Some(8 << 10), resync: Some(true) };
    assert_eq!((plan.links[2].profile.credits, plan.links[2].credits.limit), (credits, 2_000));
    assert_eq!(plan.links[2].updates, CreditUpdates { spacing: 128, resync: true });
    let divided = &plan.member_config(NodeId(1), Incarnation(1)).ports[0];
    assert_eq!(
        (divided.is_undivided, &divided.channel_limits[..]),
        (false, &[400, 400, 400, 200, 200, 150][..])
    );
    let shared = &plan.member_config(NodeId(0), Incarnation(1)).ports[0];
    assert_eq!((shared.is_undivided, shared.channel_limits.len()), (true, 0));
    let forwarding = ForwardingPlan {
        mode: ForwardingMode::StoreAndForward,
        latency_ns: 250,
        bubble: false,
        priority: ForwardingPriority::Own,
        drain: RequestDrain::Answered,
        queues: TransitQueues::ByInput,
        buffer,
        mark_above_bytes: Some(24 << 10),
        deadlock: DeadlockPolicy::Allow,
    };
    assert_eq!((plan.forwarding, plan.forwarding.config()), (forwarding, rules));
    let channels = ChannelConfig {
        lane_of: [0, 1, 2, 2],
        levels: 2,
        rise: Rise::Dateline,
        arbiter: ArbiterKind::Weighted,
        weights: vec![4, 4, 1],
    };
    assert_eq!((&plan.channels.config, &plan.channels.datelines[..]), (&channels, &[2][..]));
    let port = &plan.member_config(NodeId(1), Incarnation(1)).ports[0];
    assert!(port.is_dateline);
    let common = &plan.member_config(NodeId(0), Incarnation(1)).ports[1];
    assert_eq!(common.channel_limits, [200, 200, 200, 100, 100, 100]);
    // 4 KiB are 64 credits of 64 bytes.
    assert_eq!(plan.links[0].updates, CreditUpdates { spacing: 64, resync: false });
    assert_eq!(plan.links[0].profile.llr, None);
    let retry = plan.links[2].profile.llr.expect("on");
    assert_eq!((retry.sequence_bits, retry.outstanding_frames, retry.replay_count_max), (16, 500, 9));
    assert_eq!((retry.outstanding_bytes, retry.ack_spacing_bytes), (64 << 10, 1 << 10));
    assert_eq!((retry.ack_delay_ns, retry.replay_timer_ns), (Some(2_000), Some(20_000)));
    assert_eq!(retry.flush, FlushPolicy::Discard);
    assert_eq!(own.burst, Some(Burst { enter: 0.005, leave: 0.2, loss: 0.5 }));
    let by_kind: Vec<_> = LossByKind::kinds().map(|(kind, _)| own.loss_by_kind.of(kind)).collect();
    assert_eq!(by_kind, [0.1, 0.2, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09].map(Some));
    assert_eq!((own.loss, own.corrupt, own.duplicate, own.reorder), (0.25, 0.125, 0.5, 0.01));
    assert_eq!(own.drop_frames, DropFrames { forward: vec![901], backward: vec![] });
    assert_eq!(plan.links[0].credits, CreditConfig { unit_bytes: 64, overhead_bytes: 8, limit: 1000 });

    let config = plan.member_config(NodeId(2), Incarnation(5));
    assert_eq!(
        (config.incarnation, config.ether_type, config.frame_bytes_max),
        (Incarnation(5), 0x88B6, 1514)
    );
    assert_eq!(config.ports.iter().map(|port| port.neighbour.0).collect::<Vec<_>>(), [0, 0, 1]);
    assert!(config.end_to_end_check);
    assert_eq!(
        config.tenants,
        [Tenant(2), Tenant(3), Tenant(2)].into(),
        "every member has the tenant of every node"
    );
    assert_eq!((config.packing.mode, config.packing.operations_max), (PackingMode::Off, 16));
    assert_eq!(config.transport.mode, RetransmissionMode::GoBackN);
    assert_eq!((config.transport.window_packets, config.transport.ack_delay_ns), (32, 50_000));
    assert_eq!((config.timers.hold_down_ns, config.timers.up_count), (70_000_000, 4));
    assert_eq!(
        (plan.settings.seed, plan.settings.watchdog_ns, plan.settings.rdma_threshold_bytes),
        (9, 5_000_000_000, 1024)
    );
    assert_eq!((plan.job.litmus.bytes_max, plan.job.litmus.rounds), (65_536, 2));
}

#[test]
fn every_setting_changes_the_hash_and_spelling_does_not() {
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
        "reception: batches",
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
        "job: collective",
        "job: latency",
        "job: bandwidth",
        "job: {collective: {collective: all-gather}}",
        "job: {collective: {algorithm: ring}}",
        "job: {collective: {algorithm: ring-pipeline}}",
        "job: {collective: {algorithm: ring-pipeline, segments: 9}}",
        "job: {collective: {op: max}}",
        "job: {collective: {adapt: true}}",
        "job: {collective: {type: f64}}",
        "job: {collective: {bytes: 1KiB}}",
        "job: {collective: {sizes: {from: 1KiB, to: 4KiB}}}",
        "job: {collective: {sizes: {from: 1KiB, to: 4KiB, factor: 4}}}",
        "job: {collective: {repetitions: 1}}",
        "job: {collective: {warm_up: 0}}",
        "job: {collective: {collective: reduce, root: n1}}",
        "expect: {verdict: fail}",
        "expect: {operations_complete: true}",
        "expect: {elapsed_max: 1s}",
        "expect: {retransmitted_min: 1}",
        "expect: {retransmitted_max: 1}",
        "expect: {nodes_lost: [n1]}",
        "defaults: {memory: {huge_pages: true}}",
        "nodes: {n1: {memory: {locked: true}}}",
        "nodes: {n1: {memory: {numa_node: 0}}}",
        "nodes: {n1: {memory: {device: 'cuda:0'}}}",
        "nodes: {n1: {memory: {device: 'fake:0'}}}",
        "nodes: {n1: {memory: {device: 'fake:0', share: pool}}}",
        "nodes: {n1: {memory: {mapped: 'fake:0'}}}",
        "servers: {box: [n0, n1]}",
        "tenants: {0: {memory_max: 1GiB}}",
        "credits: {limit: 2000}",
        "credits: {limit: 2000}\nring_bytes: 2MiB",
    ];
    let mut hashes: Vec<u64> = changes.iter().map(|lines| with(lines).config_hash).collect();
    hashes.push(base);
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), changes.len() + 1, "each change has another hash");
    assert_ne!(plan("name: other\nshape: {ring: {nodes: 4}}").config_hash, base);
}

#[test]
fn a_group_is_a_shorter_spelling() {
    let by_group = with("groups: {g: {nodes: [n1, n2], tenant: 1, server: box, memory: 8MiB}}");
    let seat = "{tenant: 1, server: box, memory: {bytes: 8MiB}}";
    let by_node = with(&format!("nodes: {{n1: {seat}, n2: {seat}}}"));
    assert_eq!(by_group.members, by_node.members);
    assert_eq!(by_group.config_hash, by_node.config_hash);
    let by_list = with("servers: {box: [n2, n1]}\ngroups: {g: {nodes: [n1, n2], tenant: 1, memory: 8MiB}}");
    assert_eq!(by_list.config_hash, by_node.config_hash);
}

#[test]
fn values_inherit_key_by_key_from_the_group_and_then_from_the_defaults() {
    let plan = with(
        "\
defaults: {memory: {bytes: 8MiB, huge_pages: true}, tenant: 7, server: common}
groups: {g: {nodes: [n1, n2], memory: {locked: true, numa_node: 1}, tenant: 1}}
nodes: {n2: {memory: {huge_pages: false, bytes: 16MiB}, server: own}}
servers: {listed: [n1]}
",
    );
    let held = |node: usize| {
        let MemoryOptions { huge_pages, locked, numa_node, .. } = plan.members[node].memory;
        (plan.members[node].memory_bytes >> 20, huge_pages, locked, numa_node)
    };
    assert_eq!(held(0), (8, true, false, None));
    assert_eq!(held(1), (8, true, true, Some(1)));
    assert_eq!(held(2), (16, false, true, Some(1)));
    let tenants: Vec<u16> = plan.members.iter().map(|member| member.tenant.0).collect();
    assert_eq!(tenants, [7, 1, 1, 7]);
    let servers: Vec<&str> = plan.members.iter().map(|member| member.server.as_str()).collect();
    assert_eq!(servers, ["common", "listed", "own", "common"]);
}

#[test]
fn a_server_has_its_members_and_ranks() {
    let rack = "name: s\nshape: {star: {nodes: 3}}\nservers: {b: [n2, s0, n0]}\ndefaults: {server: a}";
    let plan = plan(rack);
    let servers = [("b", vec![NodeId(0), NodeId(2), NodeId(3)]), ("a", vec![NodeId(1)])];
    assert_eq!(plan.servers(), servers);
    assert_eq!(plan.ranks_of_server("b"), [NodeId(0), NodeId(2)], "a switch is no rank");
    assert_eq!(plan.ranks_of_server("c"), []);
    assert_eq!(plan.server_of_each_rank(), [0, 1, 0]);
    assert!(plan.same_server(NodeId(0), NodeId(3)) && !plan.same_server(NodeId(0), NodeId(1)));
    // A switch is in a server of nodes only if its own entry states it.
    assert_eq!(plan_of_star().members[3].server, "server-s0");
}

fn plan_of_star() -> Plan {
    plan("name: s\nshape: {star: {nodes: 3}}\ndefaults: {server: a}")
}

#[test]
fn a_job_comes_with_its_settings() {
    let racks: Vec<Plan> = include_str!("every-key-alternatives.yaml").split("---\n").map(plan).collect();
    let JobKind::Collective(broadcast) = racks[0].job.kind else { panic!("{:?}", racks[0].job) };
    assert_eq!(
        (broadcast.collective, broadcast.algorithm, broadcast.segments, broadcast.root),
        (CollectiveKind::Broadcast, AlgorithmKind::RingPipeline.into(), 16, NodeId(2))
    );
    assert_eq!(broadcast.element, ElementType::Bf16);
    let JobKind::Collective(all_reduce) = racks[1].job.kind else { panic!("{:?}", racks[1].job) };
    assert_eq!(all_reduce.op, ReduceOperation::Max);
    assert_eq!(broadcast.sweep, Sweep { sizes: Sizes::one(65_536), repetitions: 3, warm_up: 1 });
    assert_eq!(racks[0].memory_needed_by_job(), 131_072, "input and output");
    let sizes = racks[1].job.kind.sweep().unwrap().sizes;
    assert_eq!(sizes.iter().collect::<Vec<_>>(), [8, 32, 128, 512, 2048, 8192, 32_768]);
    let JobKind::Latency(latency) = racks[3].job.kind else { panic!("{:?}", racks[3].job) };
    assert_eq!(latency.repetitions, Sweep::LATENCY.repetitions);
    assert_eq!(latency.sizes.iter().collect::<Vec<_>>(), [8, 16, 32, 64]);
    for name in JobName::NAMES {
        assert_eq!(
            Some(with(&format!("job: {name}")).job.kind),
            JobName::from_name(name).map(JobName::with_defaults),
            "a single name means the defaults"
        );
    }
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
    assert_eq!(
        changed.config_hash,
        with("link: {corrupt: 1%}").config_hash,
        "equal to the hash of a file with this setting"
    );
    assert_eq!(changed.epoch, with("link: {corrupt: 1%}").epoch);
    assert!(changed.member_config(NodeId(0), Incarnation(1)).end_to_end_check);
    assert!(changed.check().is_ok());
    changed.override_links(|profile| profile.loss = 1.5);
    let error = changed.check().unwrap_err();
    assert_eq!(error.mistakes.len(), 1, "one mistake, however many links: {error}");
    assert!(error.mistakes[0].message.contains("loss"));
}

#[test]
fn another_wire_has_its_default_credits_unless_the_file_sets_them() {
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

#[test]
fn retry_is_inherited_key_by_key_and_each_clock_has_its_timer() {
    let text = "name: r\nshape: {ring: {nodes: 4}}\nlink: {delay: 1us, llr: {ack_spacing: 1KiB}}\n\
                links: {n0--n1: {llr: {outstanding_frames: 7}}, n1--n2: {llr: off}, n2--n3: {llr: on}}\n";
    let plan = Plan::parse(text, "rack").unwrap_or_else(|error| panic!("{error}"));
    let retry = |port: usize, node, clock| {
        plan.member_config_on(clock, NodeId(node), Incarnation(1)).ports[port].retry
    };
    // Port 0 of a ring's node leads to the next node.
    let own = retry(0, 0, Clock::Virtual).unwrap();
    assert_eq!((own.outstanding_frames, own.ack_spacing_bytes), (7, 1024));
    assert_eq!(own.replay_timer_ns, 3 * 2_000 + 500);
    assert_eq!(retry(0, 1, Clock::Virtual), None);
    let common = retry(0, 2, Clock::Wall).unwrap();
    assert_eq!((common.outstanding_frames, common.ack_spacing_bytes), (1024, 1024));
    assert_eq!((common.replay_timer_ns, common.ack_delay_ns), (3_000_000, 750_000));
    let hash = |text: &str| Plan::parse(text, "rack").unwrap().config_hash;
    let base = "name: r\nshape: {ring: {nodes: 4}}\n";
    assert_ne!(hash(base), hash(&format!("{base}link: {{llr: on}}\n")));
}

/// A frame of 4352 bytes takes 351 ns at 100 Gbit/s, a hop 851 ns, and 2 x 4 hops 6808 ns: the time of 20 frames.
#[test]
fn the_pool_of_grants_and_the_least_timeout_follow_from_the_links() {
    let transport = |planes: u8, keys: &str, clock| {
        let text = format!(
            "{{name: r, shape: {{star: {{nodes: 33, planes: {planes}}}}}, frame_bytes_max: 4352B, \
             link: {{rate: 100Gbit/s, delay: 500ns}}, forwarding: {{mark_above: 43520B}}, transport: {{{keys}}}}}"
        );
        Plan::parse(&text, "rack").unwrap_or_else(|error| panic!("{error}")).transport_on(clock)
    };
    let off = transport(1, "congestion: off", Clock::Virtual);
    assert_eq!((off.grant_pool(), off.timeout_min_ns), (None, 2 * 6_808 + 256 * 351 + 1));
    let grants = transport(1, "congestion: grants", Clock::Virtual);
    assert_eq!(grants.grant_pool(), Some(20));
    assert_eq!(grants.timeout_min_ns, off.timeout_min_ns + (20 + 33) * 351);
    assert_eq!(transport(2, "congestion: grants", Clock::Virtual).grant_pool(), Some(40));
    let stated = transport(2, "congestion: grants, grant_packets: 7", Clock::Virtual);
    assert_eq!(stated.grant_pool(), Some(7));
    let marks = transport(1, "congestion: dctcp", Clock::Virtual);
    assert_eq!(marks.timeout_min_ns, off.timeout_min_ns + (10 + 33) * 351);
    // Real processes have no rates: a window.
    assert_eq!(transport(2, "congestion: grants, window_packets: 99", Clock::Wall).grant_pool(), Some(99));
}
