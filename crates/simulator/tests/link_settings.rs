//! Credits and channels of single links: each setting with its effect, and without other effects.

mod common;

use common::{Rack, at, local, plan, put, store};
use rackloom_protocol::link::credits::CreditBalance;
use rackloom_protocol::{Channel, Inspect, NodeId, OperationId, PortId};

/// The switch.
const SWITCH: NodeId = NodeId(2);

/// Returns the duration of a store behind a long put that fills the slow link from the switch to its target.
fn store_behind_a_put_ns(channels: &str) -> u64 {
    let text = format!(
        "{{name: lanes, shape: {{star: {{nodes: 2}}}}, channels: {{rise: never}}, frame_bytes_max: 1514B, packing: {{mode: off}}, \
         credits: {{limit: 1000, unit_bytes: 128B}}, link: {{rate: 100Gbit/s, delay: 500ns}}, \
         links: {{n1--s0: {{rate: 1Gbit/s, channels: {channels}}}}}}}"
    );
    let mut rack = Rack::up(&plan(&text), 1);
    rack.command(0, put(1, at(1, 0), local(0, 60_000)));
    rack.pass(50_000);
    let begun = rack.simulation.now();
    rack.command(0, store(2, at(1, 60_000), &[7; 8]));
    let done = rack.completions(0, 2);
    let store = done.iter().find(|done| done.operation == OperationId(2)).expect("the store is over");
    assert!(done.iter().all(|done| done.result.is_ok()), "{done:?}");
    store.at.since(begun)
}

#[test]
fn a_store_waits_for_an_earlier_put_only_on_an_undivided_link() {
    let (divided, undivided) = (store_behind_a_put_ns("on"), store_behind_a_put_ns("off"));
    // A frame of 1514 bytes lasts 12 us there.
    assert!(divided < 40_000 && undivided > 3 * divided, "{divided} ns divided, {undivided} ns undivided");
    let few_for_bulk = store_behind_a_put_ns("{limits: [400, 24, 24, 24]}");
    assert!(few_for_bulk < 40_000, "{few_for_bulk} ns");
}

/// Returns the credit frames that the switch has sent to each of two nodes after equal puts of both.
fn credit_updates(links: &str) -> [u64; 2] {
    let text = format!(
        "{{name: spacing, shape: {{star: {{nodes: 2}}}}, link: {{rate: 100Gbit/s}}, {links} credits: {{update_spacing: 64KiB}}}}"
    );
    let mut rack = Rack::up(&plan(&text), 1);
    let before = [0, 1].map(|port| rack.simulation.counters(SWITCH, PortId(port)).credit_updates);
    for (node, other) in [(0, 1), (1, 0)] {
        rack.command(node, put(1, at(other, 0), local(0, 60_000)));
        rack.completions(node, 1);
        rack.pass(1_000_000);
    }
    [0, 1]
        .map(|port| rack.simulation.counters(SWITCH, PortId(port)).credit_updates - before[usize::from(port)])
}

#[test]
fn a_link_with_its_own_credit_spacing_returns_credits_at_that_spacing() {
    let alike = credit_updates("");
    let [own, other] = credit_updates("links: {n0--s0: {credits: {update_spacing: 4KiB}}},");
    assert!(own >= alike[0] + 8, "{own} updates by 4 KiB, {} by 64 KiB", alike[0]);
    assert_eq!(other, alike[1], "the other link is unchanged");
}

#[test]
fn only_a_link_that_does_not_resynchronise_leaks_the_credits_of_lost_frames() {
    let text = "{name: leak, shape: {ring: {nodes: 3}}, link: {rate: 100Gbit/s, drop_frames: [3, 5]}, \
                links: {n0--n1: {credits: {resync: false}}}}";
    let mut rack = Rack::up(&plan(text), 1);
    rack.command(0, put(1, at(1, 0), local(0, 60_000)));
    rack.command(0, put(2, at(2, 0), local(0, 60_000)));
    assert!(rack.completions(0, 2).iter().all(|done| done.result.is_ok()));
    rack.pass(1_000_000_000);
    let leaked = |(from, out), (to, into)| {
        let credits = |node, port| {
            let link = rack.simulation.endpoint(NodeId(node)).link(PortId(port)).expect("a link");
            *link.credits(Channel(0))
        };
        CreditBalance::of(&credits(from, out), &credits(to, into), 0).expect("credits from somewhere").leaked
    };
    // A ring's port 0 leads to the next node and port 1 to the one before.
    assert!(leaked((0, 0), (1, 1)) > 0, "two frames are lost for good");
    assert_eq!(leaked((0, 1), (2, 0)), 0);
}
