//! Tests of the shipped racks: each reads without a mistake and has the members and links that its comment states.

use std::path::Path;

use rackloom_plan::{AlgorithmKind, JobKind, Plan};
use rackloom_protocol::{Incarnation, MemberRole, NodeId};

fn shipped(name: &str) -> Plan {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../topologies").join(name);
    Plan::read(&path).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the neighbours at the ports of each member, as `n0: n1 n3`.
fn ports(plan: &Plan) -> Vec<String> {
    (0..plan.members.len())
        .map(|index| {
            let node = NodeId(index as u16);
            let config = plan.member_config(node, Incarnation(1));
            let neighbours: Vec<&str> =
                config.ports.iter().map(|port| plan.members[port.neighbour.index()].name.as_str()).collect();
            format!("{}: {}", plan.members[index].name, neighbours.join(" "))
        })
        .collect()
}

#[test]
fn ring_of_four() {
    let plan = shipped("ring-4.yaml");
    assert_eq!(ports(&plan), ["n0: n1 n3", "n1: n2 n0", "n2: n3 n1", "n3: n0 n2"]);
    assert_eq!(plan.links.len(), 4);
}

#[test]
fn star_of_four_with_two_planes() {
    let plan = shipped("star-4.yaml");
    let expected = ["n0: s0 s1", "n1: s0 s1", "n2: s0 s1", "n3: s0 s1", "s0: n0 n1 n2 n3", "s1: n0 n1 n2 n3"];
    assert_eq!(ports(&plan), expected);
    assert_eq!(plan.endpoint_count(), 4);
    assert_eq!(plan.members[4].role, MemberRole::Switch);
}

#[test]
fn star_of_four_at_two_bridges() {
    let plan = shipped("star-4-bridge.yaml");
    let expected =
        ["n0: n1 n2 n3 n1 n2 n3", "n1: n0 n2 n3 n0 n2 n3", "n2: n0 n1 n3 n0 n1 n3", "n3: n0 n1 n2 n0 n1 n2"];
    assert_eq!(ports(&plan), expected);
}

#[test]
fn full_mesh_of_four() {
    let plan = shipped("full-mesh-4.yaml");
    assert_eq!(ports(&plan), ["n0: n1 n2 n3", "n1: n0 n2 n3", "n2: n0 n1 n3", "n3: n0 n1 n2"]);
    assert_eq!(plan.links.len(), 6);
}

/// Returns members, links, and links of each member.
fn counts(name: &str) -> (usize, usize, Vec<usize>) {
    let plan = shipped(name);
    let ports = (0..plan.members.len()).map(|index| plan.graph().ports(NodeId(index as u16)).len());
    (plan.endpoint_count(), plan.links.len(), ports.collect())
}

#[test]
fn larger_racks_of_the_three_shapes() {
    assert_eq!(counts("ring-8.yaml"), (8, 8, vec![2; 8]));
    assert_eq!(counts("ring-64.yaml"), (64, 64, vec![2; 64]));
    assert_eq!(counts("full-mesh-8.yaml"), (8, 28, vec![7; 8]));
    assert_eq!(counts("star-8.yaml"), (8, 16, [vec![2; 8], vec![8; 2]].concat()));
    let JobKind::Collective(job) = shipped("ring-64.yaml").job.kind else { panic!("no collective") };
    assert_eq!((job.algorithm, job.sweep.sizes.largest_bytes()), (AlgorithmKind::Ring.into(), 65_536));
    let planes = shipped("star-8.yaml").links.iter().filter(|link| link.edge.plane.0 == 1).count();
    assert_eq!(planes, 8, "half of the links are in the second plane");
}

#[test]
fn four_servers_of_two() {
    let name = "four-servers-of-two.yaml";
    assert_eq!(counts(name), (8, 16, [vec![3; 8], vec![4; 2]].concat()));
    let plan = shipped(name);
    assert_eq!(plan.server_of_each_rank(), [0, 0, 1, 1, 2, 2, 3, 3]);
    assert_eq!(plan.ranks_of_server("server2"), [NodeId(4), NodeId(5)]);
    assert_eq!(plan.servers().len(), 6, "each switch is a server of its own");
    let pair: Vec<&str> = plan.links[..2].iter().map(|link| link.name.as_str()).collect();
    assert_eq!(pair, ["n0--n1", "n0--n1#1"]);
    let expected = ["n0: n1 n1 rail0", "n1: n0 n0 rail1"];
    assert_eq!(ports(&plan)[..2], expected);
}

#[test]
fn a_torus_of_two_by_three() {
    let name = "torus-2x3.yaml";
    assert_eq!(counts(name), (6, 12, vec![4; 6]));
    let plan = shipped(name);
    assert_eq!(ports(&plan)[0], "r0c0: r0c1 r0c2 r1c0 r1c0");
    let memory: Vec<u64> = plan.members.iter().map(|member| member.memory_bytes >> 20).collect();
    assert_eq!(memory, [4, 4, 4, 8, 8, 16], "defaults, group, node");
    assert!(plan.members[5].memory.locked && !plan.members[4].memory.locked);
    let slow = plan.links.iter().filter(|link| link.profile.delay_ns == 1_000);
    assert_eq!(slow.map(|link| link.name.as_str()).collect::<Vec<_>>(), ["r0c2--r0c0", "r1c2--r1c0"]);
}

#[test]
fn leaves_with_two_spines() {
    assert_eq!(counts("leaf-spine-8.yaml"), (8, 16, [vec![1; 8], vec![4; 6]].concat()));
    let plan = shipped("leaf-spine-8.yaml");
    assert_eq!(ports(&plan)[8], "leaf0: n0 n1 spine0 spine1");
    assert_eq!(ports(&plan)[13], "spine1: leaf0 leaf1 leaf2 leaf3");
}

#[test]
fn tori_of_two_and_of_three_dimensions() {
    assert_eq!(counts("torus-4x4.yaml"), (16, 32, vec![4; 16]));
    assert_eq!(counts("torus-4x2x2.yaml"), (16, 32, vec![4; 16]));
    let square = shipped("torus-4x4.yaml");
    assert_eq!(ports(&square)[5], "n5: n6 n4 n9 n1");
    assert_eq!((square.channels.config.levels, square.channels.datelines.len()), (3, 8));
    let config = square.member_config(NodeId(5), Incarnation(1));
    assert_eq!(config.ports.iter().map(|port| port.dimension).collect::<Vec<_>>(), [0, 0, 1, 1]);
    let pillars = shipped("torus-4x2x2.yaml");
    assert_eq!(ports(&pillars)[5], "n5: n6 n4 n1 n13");
    assert_eq!(pillars.channels.config.levels, 2, "one more than dimensions with rings");
}

#[test]
fn a_hypercube_of_eight() {
    assert_eq!(counts("hypercube-8.yaml"), (8, 12, vec![3; 8]));
    let plan = shipped("hypercube-8.yaml");
    assert_eq!((ports(&plan)[5].as_str(), plan.channels.config.count()), ("n5: n4 n7 n1", 1));
}

#[test]
fn every_shipped_file_reads_and_carries_its_own_name() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../topologies");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let plan = Plan::read(&path).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(Some(plan.name.as_str()), path.file_stem().and_then(|stem| stem.to_str()));
        let is_litmus = plan.job.kind == JobKind::Litmus;
        assert_eq!(is_litmus, plan.endpoint_count() <= 8, "the litmus goes over all pairs");
        let text = std::fs::read_to_string(&path).unwrap();
        let says_so = text.contains("\nservers:") || text.contains("{server: ");
        let shared = plan.servers().len() < plan.members.len();
        assert_eq!(shared, says_so, "members share a server only if the file states it");
        count += 1;
    }
    assert_eq!(count, 19);
}

#[test]
fn the_example_of_the_document_reads() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/topology-file.md");
    let document = std::fs::read_to_string(path).unwrap();
    let examples: Vec<&str> =
        document.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    // Text before each example, in the order of the document.
    let ring = "name: r\nshape: {ring: {nodes: 4}}\n";
    let star = "name: s\nshape: {star: {nodes: 4}}\n";
    let before = ["", "name: custom\n", ring, ring, star, ring, ring, star, ring];
    assert_eq!(examples.len(), before.len());
    for (before, example) in before.iter().zip(examples) {
        Plan::parse(&format!("{before}{example}"), "example").unwrap_or_else(|error| panic!("{error}"));
    }
}
