//! Tests of racks of several hosts: the settings, and the links between hosts.

use rackloom_plan::{Plan, PlanError, WireKind};

const RING: &str = "name: r\nshape: {ring: {nodes: 4}}\n";

fn plan(hosts: &str) -> Plan {
    Plan::parse(&format!("{RING}{hosts}"), "rack").unwrap_or_else(|error| panic!("{error}"))
}

fn wrong(hosts: &str) -> PlanError {
    match Plan::parse(&format!("{RING}{hosts}"), "rack") {
        Err(error) => error,
        Ok(_) => panic!("accepted: {hosts}"),
    }
}

const TWO: &str = "hosts:
  A: {nodes: [n0, n1], interface: eth1}
  B: {nodes: [n2, n3], interface: eth7, interfaces: {n0--n3: eth8}}
";

#[test]
fn links_between_hosts_leave_at_their_interfaces() {
    let plan = plan(TWO);
    let crossing = plan.links.iter().filter(|link| plan.joins_hosts(&link.edge));
    let crossing: Vec<&str> = crossing.map(|link| link.name.as_str()).collect();
    assert_eq!(crossing, ["n1--n2", "n3--n0"]);
    let (a, b) = (plan.host_named("A").unwrap(), plan.host_named("B").unwrap());
    let edge = |name: &str| plan.links.iter().position(|link| link.name == name).unwrap();
    assert_eq!(a.interface_of(edge("n1--n2")), Some("eth1"));
    assert_eq!(b.interface_of(edge("n1--n2")), Some("eth7"));
    assert_eq!(b.interface_of(edge("n3--n0")), Some("eth8"));
}

#[test]
fn a_link_between_hosts_has_the_credits_of_the_packet_wire_and_the_end_to_end_check() {
    let (alone, shared) = (plan(""), plan(TWO));
    assert_eq!(shared.settings.wire, WireKind::SharedMemory);
    assert!(!alone.end_to_end_check() && shared.end_to_end_check());
    let mut packet = plan("");
    packet.set_wire(WireKind::Packet);
    for (index, link) in shared.links.iter().enumerate() {
        let same_as = if shared.joins_hosts(&link.edge) { &packet } else { &alone };
        assert_eq!(link.credits, same_as.links[index].credits, "{}", link.name);
    }
}

#[test]
fn the_hosts_of_members_are_part_of_the_configuration() {
    let moved = TWO.replace("eth7", "eth9");
    assert_ne!(plan(TWO).config_hash, plan(&moved).config_hash);
    assert_ne!(plan("").config_hash, plan(TWO).config_hash);
}

#[test]
fn mistakes_about_hosts_are_reported_with_their_positions() {
    let cases = [
        ("hosts: {A: {nodes: [n0, n1], interface: e}}", "n2, n3 run on no host"),
        ("hosts: {A: {nodes: [n0, n9, n1, n2, n3]}}", "there is no member `n9`"),
        ("hosts: {A: {nodes: [n0, n1, n2, n3]}, B: {nodes: [n1]}}", "`n1` runs on host `A` already"),
        ("hosts: {A: {nodes: [n0, n1, n2, n3, n0]}}", "`n0` is named twice"),
        ("hosts: {A: {interface: e}, B: {nodes: [n0, n1, n2, n3]}}", "the host `A` has no nodes"),
        (
            "hosts: {A: {nodes: [n0, n1, n2, n3], interfaces: {n0--n1: e}}}",
            "`n0--n1` does not leave host `A`",
        ),
        (
            "hosts: {A: {nodes: [n0, n1, n2, n3], interface: a-name-of-20-letters}}",
            "is not a name of an interface",
        ),
        ("hosts: {A: {nodes: [n0, n1, n2, n3], interfaces: {n0--n2: e}}}", "there is no link `n0--n2`"),
    ];
    for (text, expected) in cases {
        let error = wrong(text);
        let messages: Vec<_> = error.mistakes.iter().map(|mistake| mistake.message.as_str()).collect();
        assert!(messages.iter().any(|message| message.contains(expected)), "{text}: {messages:?}");
        assert!(error.mistakes.iter().all(|mistake| mistake.line == 3 && mistake.column > 0), "{error}");
        assert_eq!(messages.len(), 1, "{messages:?}");
    }
}

#[test]
fn a_link_that_leaves_has_an_interface_at_both_ends() {
    let error = wrong("hosts:\n  A: {nodes: [n0, n1], interface: eth1}\n  B: {nodes: [n2, n3]}\n");
    let found: Vec<_> =
        error.mistakes.iter().map(|mistake| (mistake.line, mistake.message.as_str())).collect();
    assert_eq!(found.len(), 2, "{found:?}");
    for (line, message) in found {
        assert_eq!(line, 5);
        assert!(message.contains("leaves host `B`, which names no interface for it"), "{message}");
    }
}

const ROUTED: &str = "wire: udp
hosts:
  A: {nodes: [n0, n1], address: 10.1.0.1, addresses: {n0--n3: 10.1.1.1}}
  B: {nodes: [n2, n3], address: 10.2.0.1}
";

#[test]
fn on_the_udp_wire_links_between_hosts_have_addresses_and_ports() {
    let plan = plan(ROUTED);
    let address = |host: &str, link: &str| {
        let edge = plan.links.iter().position(|known| known.name == link).unwrap();
        assert_eq!(plan.wire_of(&plan.links[edge].edge), WireKind::Udp);
        plan.udp_address(plan.host_named(host).unwrap(), edge).unwrap().to_string()
    };
    assert_eq!(address("A", "n1--n2"), "10.1.0.1:26002");
    assert_eq!(address("B", "n1--n2"), "10.2.0.1:26002");
    assert_eq!(address("A", "n3--n0"), "10.1.1.1:26004");
    assert_eq!(address("B", "n3--n0"), "10.2.0.1:26004");
    let moved = ROUTED.replace("10.2.0.1", "10.2.0.2");
    assert_ne!(plan.config_hash, self::plan(&moved).config_hash);
}

#[test]
fn mistakes_about_addresses_are_reported() {
    let cases = [
        (ROUTED.replace(", address: 10.1.0.1", ""), "has no `address`"),
        (ROUTED.replace("10.2.0.1", "10.2.0.256"), "is not an IPv4 address of a machine"),
        (ROUTED.replace("10.2.0.1", "224.0.0.1"), "is not an IPv4 address of a machine"),
        (ROUTED.replace("n0--n3", "n0--n1"), "`n0--n1` does not leave host `A`"),
        (format!("{ROUTED}udp_port: 65533\n"), "beyond 65535"),
    ];
    for (text, expected) in cases {
        let error = wrong(&text);
        assert_eq!(error.mistakes.len(), 1, "{error}");
        let mistake = &error.mistakes[0];
        assert!(mistake.message.contains(expected) && mistake.line >= 3, "{error}");
    }
}

#[test]
fn a_server_is_of_one_host() {
    let error = wrong(&format!("servers: {{box: [n1, n2]}}\n{TWO}"));
    assert_eq!(error.mistakes.len(), 1, "{error}");
    assert!(error.mistakes[0].message.contains("server `box` has members on hosts A and B"), "{error}");
}

#[test]
fn links_with_equal_addresses_need_separate_interfaces() {
    let parallel = |interfaces: &str| {
        format!(
            "name: r\nshape: {{custom: {{nodes: [l, r], links: [{{a: l, b: r, parallel: 2}}]}}}}\n\
             hosts: {{A: {{nodes: [l], interface: e{interfaces}}}, B: {{nodes: [r], interface: e{interfaces}}}}}\n"
        )
    };
    let Err(error) = Plan::parse(&parallel(""), "rack") else { panic!("accepted") };
    assert!(error.mistakes[0].message.contains("join the same two members in one plane at e"), "{error}");
    Plan::parse(&parallel(", interfaces: {l--r#1: f}"), "rack").unwrap_or_else(|error| panic!("{error}"));
}
