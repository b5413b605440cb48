//! The shipped racks: each reads without a mistake and becomes what its comment says.

use std::path::Path;

use rackloom_plan::{JobKind, Plan};
use rackloom_protocol::{Incarnation, MemberRole, NodeId};

fn shipped(name: &str) -> Plan {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../topologies").join(name);
    Plan::read(&path).unwrap_or_else(|error| panic!("{error}"))
}

/// `n0: n1 n3` and so on: whom each port of each member leads to.
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
fn full_mesh_of_four() {
    let plan = shipped("full-mesh-4.yaml");
    assert_eq!(ports(&plan), ["n0: n1 n2 n3", "n1: n0 n2 n3", "n2: n0 n1 n3", "n3: n0 n1 n2"]);
    assert_eq!(plan.links.len(), 6);
}

#[test]
fn every_shipped_file_reads_and_carries_its_own_name() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../topologies");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let plan = Plan::read(&path).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(Some(plan.name.as_str()), path.file_stem().and_then(|stem| stem.to_str()));
        assert_eq!(plan.job.kind, JobKind::Litmus);
        let mut servers: Vec<&str> = plan.members.iter().map(|member| member.server.as_str()).collect();
        servers.sort_unstable();
        servers.dedup();
        assert_eq!(servers.len(), plan.members.len(), "nobody shares a server unless the file says so");
        count += 1;
    }
    assert!(count >= 3);
}

#[test]
fn the_example_of_the_document_reads() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/topology-file.md");
    let document = std::fs::read_to_string(path).unwrap();
    let examples: Vec<&str> =
        document.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(examples.len(), 2);
    Plan::parse(examples[0], "first example").unwrap_or_else(|error| panic!("{error}"));
    let shape = format!("name: custom\n{}", examples[1]);
    Plan::parse(&shape, "second example").unwrap_or_else(|error| panic!("{error}"));
}
