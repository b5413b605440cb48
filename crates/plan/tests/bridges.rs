//! Tests of stars with bridges: links between nodes, and the credits of their interfaces.

use rackloom_plan::{Plan, PlanError, SwitchKind, WireKind};

fn text(nodes: u16, planes: u8, more: &str) -> String {
    format!("name: r\nshape: {{star: {{nodes: {nodes}, planes: {planes}, switch: bridge}}}}\n{more}")
}

fn plan(nodes: u16, planes: u8, more: &str) -> Plan {
    Plan::parse(&text(nodes, planes, more), "rack").unwrap_or_else(|error| panic!("{error}"))
}

fn wrong(nodes: u16, planes: u8, more: &str) -> PlanError {
    match Plan::parse(&text(nodes, planes, more), "rack") {
        Err(error) => error,
        Ok(_) => panic!("accepted: {nodes} nodes, {planes} planes, {more}"),
    }
}

const PACKET: &str = "wire: packet\n";

#[test]
fn a_bridge_is_no_member_and_every_two_nodes_have_a_link_in_each_plane() {
    let plan = plan(4, 3, PACKET);
    assert_eq!((plan.members.len(), plan.endpoint_count(), plan.links.len()), (4, 4, 18));
    assert_eq!(
        (plan.switch, plan.has_bridges(), plan.settings.wire),
        (SwitchKind::Bridge, true, WireKind::Packet)
    );
    let in_plane = |plane| plan.links.iter().filter(|link| link.edge.plane.0 == plane).count();
    assert_eq!([in_plane(0), in_plane(1), in_plane(2)], [6, 6, 6]);
    assert!(plan.end_to_end_check(), "an Ethernet switch may change a frame");
}

#[test]
fn the_receive_buffer_of_an_interface_is_divided_among_its_links() {
    let alone = plan(2, 1, PACKET).links[0].credits;
    for nodes in [3, 4, 9, 16] {
        let shared = plan(nodes, 1, PACKET);
        let of_interface: u32 =
            shared.links.iter().take(usize::from(nodes) - 1).map(|link| link.credits.limit).sum();
        assert!(of_interface <= alone.limit, "{nodes} nodes: {of_interface} of {}", alone.limit);
        assert!(of_interface + u32::from(nodes) > alone.limit, "{nodes} nodes waste credits: {of_interface}");
    }
    let two_planes = plan(4, 2, PACKET).links[0].credits;
    assert_eq!(two_planes, plan(4, 1, PACKET).links[0].credits, "each plane has an interface of its own");
}

#[test]
fn a_share_that_cannot_hold_two_frames_is_refused_with_both_numbers() {
    let error = wrong(20, 1, PACKET);
    assert_eq!(error.mistakes.len(), 1, "{error}");
    let text = error.to_string();
    for part in ["640 credits", "19 links", "33 for each", "needs at least 42", "`credits.limit` to 798"] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    plan(20, 1, "wire: packet\ncredits: {limit: 798}\n");
    wrong(20, 1, "wire: packet\ncredits: {limit: 797}\n");
    plan(20, 1, "wire: packet\nframe_bytes_max: 1514B\n");
}

#[test]
fn a_bridge_needs_real_interfaces_of_one_machine() {
    let error = wrong(4, 1, "");
    assert_eq!(error.mistakes.len(), 1, "{error}");
    assert!(error.to_string().contains("needs the packet wire, and the rack has shared-memory"), "{error}");
    assert_eq!(error.mistakes[0].line, 2);
    let hosts = "hosts: {A: {nodes: [n0, n1], interface: e}, B: {nodes: [n2, n3], interface: e}}\n";
    let error = wrong(4, 1, &format!("{PACKET}{hosts}"));
    assert!(error.to_string().contains("cannot join several `hosts`"), "{error}");
    let mut moved = plan(4, 1, PACKET);
    moved.set_wire(WireKind::Udp);
    assert!(moved.check().is_err(), "a command line cannot select another wire either");
}

#[test]
fn too_many_links_are_refused_before_they_are_made() {
    for (nodes, planes) in [(4084, 12), (363, 1), (4000, 1)] {
        let text = wrong(nodes, planes, PACKET).to_string();
        assert!(text.contains("65535 are possible"), "{text}");
    }
}

#[test]
fn the_kind_of_switch_is_part_of_the_configuration() {
    let star = |switch: &str| {
        let text = format!("name: r\nshape: {{star: {{nodes: 2{switch}}}}}\nwire: packet\n");
        Plan::parse(&text, "rack").unwrap_or_else(|error| panic!("{error}")).config_hash
    };
    assert_eq!(star(""), star(", switch: member"));
    assert_ne!(star(""), star(", switch: bridge"));
}
