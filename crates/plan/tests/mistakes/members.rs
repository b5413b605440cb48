//! Tests of mistakes in shapes, members, links, servers and tenants.

use rackloom_plan::Plan;

use crate::{expect, wrong};

#[test]
fn an_explicit_rack_must_use_its_own_names() {
    let error = wrong(
        "\
name: custom
shape:
  custom:
    nodes: [left, right, left, alone]
    switches: [hub, -x]
    links:
      - {a: left, b: hub}
      - {a: right, b: rihgt}
      - {a: left, b: left}
      - {a: hub, b: left}
      - {a: left}
",
    );
    insta::assert_snapshot!(error);
}

#[test]
fn a_member_without_a_path_is_named() {
    let error = wrong(
        "\
name: custom
shape:
  custom:
    nodes: [a, b, c, d]
    links: [{a: a, b: b}, {a: c, b: d}]
",
    );
    insta::assert_snapshot!(error);
}

#[test]
fn a_shape_is_one_of_its_kind() {
    for (shape, part) in [
        ("shape:", "says nothing"),
        ("shape: ring", "is a table"),
        ("shape: {}", "is empty"),
        ("shape: {rng: {nodes: 4}}", "unknown key `rng`"),
        ("shape: {ring: {nodes: 4}, star: {nodes: 4}}", "one shape"),
        ("shape: {ring: {}}", "the number of nodes"),
        ("shape: {ring: 4}", "is a table"),
        ("shape: {ring: {nodes: 4, planes: 2}}", "unknown key `planes`"),
    ] {
        let error = wrong(&format!("name: r\n{shape}"));
        assert!(error.mistakes[0].message.contains(part), "{error}");
    }
}

#[test]
fn groups_servers_and_tenants_must_match_the_rack_and_each_other() {
    let error = wrong(
        "\
name: grouped
shape: {star: {nodes: 4}}
defaults: {tenant: 1, memory: {bytes: 8MiB, hugepages: true, locked: maybe}}
groups:
  left: {nodes: [n0, n1, n4], tenant: 1, server: box}
  right: {nodes: [n1, n2], memory: {numa_node: 5000}}
  unknown: {tenant: 2}
  bad--name: {nodes: [n3], server: a b}
nodes:
  n2: {memory: {bytes: 1KiB}, server: attic}
  s0: {memory: 1MiB}
servers:
  cellar: [n2, n3]
  closet: [n3, n0]
  loft: n1
tenants:
  1: {memory_max: 16MiB}
  01: {}
  2: {memory_max: 1MiB}
  many: {memory_max: 1MiB}
",
    );
    insta::assert_snapshot!(error);
}

#[test]
fn a_tenant_gets_no_more_memory_than_its_quota() {
    let rack = "defaults: {memory: 3MiB}\nnodes: {n3: {tenant: 1}}\ntenants: {0: {memory_max: 9MiB}, 1: {}}";
    assert!(Plan::parse(&format!("name: r\nshape: {{ring: {{nodes: 4}}}}\n{rack}"), "rack.yaml").is_ok());
    expect(
        &rack.replace("9MiB", "8MiB"),
        &["the nodes of tenant 0 (n0, n1, n2) have 9MiB of memory, more than its `memory_max` of 8MiB"],
    );
    expect("tenants: {7: {memory_max: 8MiB}}", &["no node is of tenant 7"]);
}

/// Returns `count` nodes in a row, and more links.
fn row(count: usize, more: &str) -> String {
    let nodes: Vec<String> = (0..count).map(|node| format!("n{node}")).collect();
    let links: Vec<String> =
        nodes.windows(2).map(|pair| format!("{{a: {}, b: {}}}", pair[0], pair[1])).collect();
    let (nodes, links) = (nodes.join(", "), links.join(", "));
    format!("name: row\nshape: {{custom: {{nodes: [{nodes}], links: [{links}{more}]}}}}\nring_bytes: 64KiB\n")
}

#[test]
fn the_hop_limit_suffices_for_every_path() {
    assert!(Plan::parse(&row(256, ""), "rack.yaml").is_ok());
    let error = wrong(&row(257, ""));
    assert!(error.mistakes[0].message.contains("`n0` and `n256` are 256 links apart"), "{error}");
    // Closed to a ring, no two nodes are more than 128 links apart, until a link is cut.
    assert!(Plan::parse(&row(256, ", {a: n255, b: n0}"), "rack.yaml").is_ok());
    let error = wrong(&row(257, ", {a: n256, b: n0}"));
    assert_eq!(error.mistakes.len(), 1, "{error}");
    assert!(error.mistakes[0].message.contains("without `n0--n1` its ends are 256 links apart"), "{error}");
    // A chord halves the detour, and a second link avoids it. Deadlock of such rings is tested
    // elsewhere.
    let row = |count, more| row(count, more) + "forwarding: {deadlock: allow}\n";
    assert!(Plan::parse(&row(257, ", {a: n256, b: n0}, {a: n0, b: n128}"), "rack.yaml").is_ok());
    let doubled = row(257, ", {a: n256, b: n0}")
        .replace("}, ", ", parallel: 2}, ")
        .replace("n0}]", "n0, parallel: 2}]");
    Plan::parse(&doubled, "rack.yaml").unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn only_the_member_without_a_link_is_reported() {
    let text = "name: r\nshape: {custom: {nodes: [a, b, c], switches: [s], links: [{a: b, b: c}]}}\n";
    let error = wrong(text);
    let messages: Vec<&str> = error.mistakes.iter().map(|mistake| mistake.message.as_str()).collect();
    assert_eq!(messages, ["`a` has no link", "`s` has no link"]);
}

#[test]
fn a_pair_is_linked_once_per_plane_or_in_parallel() {
    let links = |links: &str| format!("name: r\nshape: {{custom: {{nodes: [a, b], links: [{links}]}}}}\n");
    for fine in ["{a: a, b: b, parallel: 16}", "{a: a, b: b}, {a: b, b: a, plane: 1, parallel: 2}"] {
        Plan::parse(&links(fine), "rack.yaml").unwrap_or_else(|error| panic!("{error}"));
    }
    for (bad, part) in [
        ("{a: a, b: b}, {a: b, b: a}", "`b` and `a` are linked twice in plane 0"),
        ("{a: a, b: b, plane: 2}, {a: a, b: b, plane: 2, parallel: 2}", "twice in plane 2"),
        ("{a: a, b: b, parallel: 0}", "`shape.custom.links.parallel` is 0, outside 1 to 16"),
        ("{a: a, b: b, plane: 12}", "`shape.custom.links.plane` is 12, outside 0 to 11"),
    ] {
        let error = wrong(&links(bad));
        assert!(error.mistakes[0].message.contains(part), "{error}");
    }
    let named =
        links("{a: a, b: b, parallel: 2}") + "links: {b--a#1: {drop_frames: {a->b: [3]}}, a--b#2: {}}\n";
    let error = wrong(&named);
    assert_eq!(error.mistakes.len(), 1, "{error}");
    assert_eq!(error.mistakes[0].message, "there is no link `a--b#2`");
}

#[test]
fn a_switch_has_a_server_and_nothing_else() {
    let error = wrong("name: r\nshape: {star: {nodes: 2}}\nnodes: {s0: {memory: 1MiB}}\n");
    assert!(error.mistakes[0].message.contains("unknown key `memory`"), "{error}");
}

#[test]
fn a_switch_reports_all_its_links_in_one_frame() {
    let error = wrong("name: r\nshape: {star: {nodes: 2000}}\nring_bytes: 64KiB\n");
    assert_eq!(error.mistakes.len(), 1);
    assert!(error.mistakes[0].message.contains("has 2000 links"), "{error}");
}

#[test]
fn named_shapes_state_their_sizes_and_fit_a_rack() {
    let first = |shape: &str| {
        let error = wrong(&format!("name: r\nshape: {{{shape}}}\nchannels: {{rise: dateline}}\n"));
        let mistake = &error.mistakes[0];
        assert_eq!((error.mistakes.len(), mistake.line), (1, 2), "{error}");
        format!("{}; {}", mistake.message, mistake.hint)
    };
    for (shape, parts) in [
        ("torus: {x: 4}", ["`shape.torus` does not state `y`", "write `torus: {x: 4, y: 4}`"]),
        ("hypercube: {}", ["does not state `dimensions`", "{dimensions: 4}"]),
        ("leaf-spine: {leaves: 4, spines: 2}", ["does not state `nodes_per_leaf`", "nodes_per_leaf: 8"]),
        ("torus: {x: 1, y: 4}", ["`shape.torus.x` is 1, outside 2 to 256", ""]),
        ("hypercube: {dimensions: 15}", ["is 15, outside 1 to 14", ""]),
        (
            "torus: {x: 128, y: 129}",
            ["16512 nodes, of which 16384 are possible", "make `x`, `y` or `z` smaller"],
        ),
        (
            "leaf-spine: {leaves: 128, nodes_per_leaf: 128, spines: 1}",
            ["16384 nodes and 129 switches are more than 16384 members", "fewer leaves"],
        ),
        (
            "leaf-spine: {leaves: 256, nodes_per_leaf: 1, spines: 256, parallel: 16}",
            ["have 1048832 links, of which 65535 are possible", "parallel links"],
        ),
    ] {
        let found = first(shape);
        assert!(parts.iter().all(|part| found.contains(part)), "{shape}: {found}");
    }
}

#[test]
fn a_torus_without_datelines_is_refused_with_the_key_that_helps() {
    let error = wrong("name: r\nshape: {torus: {x: 4, y: 4}}\n");
    let mistake = &error.mistakes[0];
    assert!(mistake.message.contains("this rack can deadlock"), "{error}");
    assert!(mistake.hint.contains("`channels: {rise: dateline}` (a torus)"), "{error}");
    for fine in ["torus: {x: 3, y: 3}", "hypercube: {dimensions: 3}"] {
        let text = format!("name: r\nshape: {{{fine}}}\n");
        Plan::parse(&text, "rack.yaml").unwrap_or_else(|error| panic!("{error}"));
    }
}
