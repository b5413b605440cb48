//! Fat trees that are read and refused.

use crate::import::hardware::{Hardware, Speed};
use crate::import::{Content, File, Imported};

const TWO_TIERS: &str = "Nodes 8\nTiers 2\nPodsize 8\n\nTier 0\nDownlink_speed_Gbps 100\nRadix_Down 4\nRadix_Up 2\nQueue_Up 9\n\
                         Downlink_Latency_ns 1000\nSwitch_Latency_ns 300\nOversubscribed 2\n\nTier 1\nDownlink_speed_Gbps 200\n\
                         Radix_Down 2\nDownlink_Latency_ns 500\nSwitch_Latency_ns 300\n";
const THREE_TIERS: &str = "# Two pods of two by two.\nNodes 8\nTiers 3\nPodsize 4\nTier 0\nDownlink_speed_Gbps 200\nRadix_Down 2\n\
                           Radix_Up 2\nDownlink_Latency_ns 1000\nTier 1\nDownlink_speed_Gbps 200\nRadix_Down 2\nRadix_Up 4\n\
                           Downlink_Latency_ns 1000\nSwitch_Latency_ns 100\nTier 2\nDownlink_speed_Gbps 100\nRadix_Down 4\n\
                           Downlink_Latency_ns 1000\nBundle 2\n";

fn imported(text: &str) -> Result<Imported, String> {
    super::read(&File { name: "a.topo", bytes: text.as_bytes() }).map_err(|errors| errors.to_string())
}

fn hardware(text: &str) -> Hardware {
    match imported(text).unwrap().content {
        Content::Hardware(hardware) => hardware,
        Content::Workload(_) => panic!("a workload"),
    }
}

/// Returns the links as `a b x parallel`.
fn links(hardware: &Hardware) -> Vec<String> {
    hardware.links.iter().map(|link| format!("{} {} x{}", link.a, link.b, link.parallel)).collect()
}

#[test]
fn two_tiers_are_leaves_and_spines() {
    let hardware = hardware(TWO_TIERS);
    assert_eq!(hardware.nodes, ["n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7"]);
    assert_eq!(hardware.switches, ["tor0", "tor1", "agg0", "agg1"]);
    let expected = [
        "n0 tor0 x1",
        "n1 tor0 x1",
        "n2 tor0 x1",
        "n3 tor0 x1",
        "n4 tor1 x1",
        "n5 tor1 x1",
        "n6 tor1 x1",
        "n7 tor1 x1",
        "tor0 agg0 x1",
        "tor0 agg1 x1",
        "tor1 agg0 x1",
        "tor1 agg1 x1",
    ];
    assert_eq!(links(&hardware), expected);
    assert_eq!(hardware.links[0].speed, Speed { bits_per_s: 100_000_000_000, delay_ns: 1_000 });
    assert_eq!(hardware.links[8].speed, Speed { bits_per_s: 200_000_000_000, delay_ns: 500 });
    assert_eq!((hardware.forwarding_ns, hardware.name.as_str()), (300, "a"));
    let notes = imported(TWO_TIERS).unwrap().notes;
    assert_eq!(notes, ["lengths of queues that are left out; `forwarding` of the rack file has them: 1"]);
}

#[test]
fn three_tiers_have_cores_that_switches_at_one_position_share() {
    let hardware = hardware(THREE_TIERS);
    let shown = links(&hardware);
    assert_eq!((hardware.switches.len(), shown.len()), (4 + 4 + 4, 8 + 8 + 8));
    assert_eq!(shown[8..12], ["tor0 agg0 x1", "tor0 agg1 x1", "tor1 agg0 x1", "tor1 agg1 x1"]);
    let cores = [
        "agg0 core0 x2",
        "agg0 core2 x2",
        "agg1 core1 x2",
        "agg1 core3 x2",
        "agg2 core0 x2",
        "agg2 core2 x2",
        "agg3 core1 x2",
        "agg3 core3 x2",
    ];
    assert_eq!(shown[16..], cores);
    // Latencies of 0, 100 and 0 ns: half of the switch in the middle belongs to each link.
    assert_eq!(hardware.forwarding_ns, 0);
    let delays = [0, 8, 16].map(|index: usize| hardware.links[index].speed.delay_ns);
    assert_eq!(delays, [1_000, 1_050, 1_050]);
}

#[test]
fn the_number_of_links_follows_from_the_ports() {
    let large = TWO_TIERS
        .replace("Nodes 8", "Nodes 1024")
        .replace("Podsize 8", "Podsize 1024")
        .replace("Radix_Down 4", "Radix_Down 64");
    let large = large.replace("Radix_Up 2", "Radix_Up 8").replace("Radix_Down 2", "Radix_Down 16");
    // 1024 nodes, 16 switches with 8 links up each.
    assert_eq!(hardware(&large).links.len(), 1_024 + 16 * 8);
}

#[test]
fn mistakes_name_their_line() {
    let cases = [
        (TWO_TIERS.replace("Radix_Up 2", "Radix_Sideways 2"), "8:1: `Radix_Sideways` is no value of a tier"),
        (
            TWO_TIERS.replace("Radix_Up 2", "Radix_Up x"),
            "8:10: `x` is no number up to 1000000000 for `Radix_Up`",
        ),
        (TWO_TIERS.replace("Radix_Up 2", "Radix_Up"), "8:9: the line ends before its number"),
        (TWO_TIERS.replace("Radix_Up 2", "Radix_Up 0"), "5:1: Radix_Up of tier 0 is missing or 0"),
        (
            TWO_TIERS.replace("Radix_Down 2", "Radix_Down 3"),
            "14:1: 2 switches of tier 0 with 2 links up do not fill switches of tier 1 with 3",
        ),
        (
            TWO_TIERS.replace("Radix_Up 2", "Radix_Up 70000"),
            "5:1: switches of tier 0 have more than 65535 links",
        ),
        (TWO_TIERS.replace("Tier 1", "Tier 3"), "14:1: there is no tier 3"),
        (
            TWO_TIERS.replace("Podsize 8\n", "Podsize 8\nRadix_Up 1\n"),
            "4:1: `Radix_Up` stands before the first tier",
        ),
        (
            TWO_TIERS.replace("Switch_Latency_ns 300", "Switch_Latency_ns 2000000"),
            "5:1: switches of tier 0 take 2000000 ns",
        ),
        (
            THREE_TIERS.replace("Podsize 4", "Podsize 3"),
            "5:1: 8 nodes do not fill pods of 3 with switches of 2",
        ),
        (THREE_TIERS.replace("Bundle 2", "Bundle 17"), "16:1: tier 2 has bundles of 17 links"),
        (
            THREE_TIERS.replace("Bundle 2", "Bundle 3"),
            "16:1: 4 switches of tier 1 with 4 links up do not fill 2 switches of tier 2",
        ),
    ];
    for (text, expected) in cases {
        let errors = imported(&text).expect_err(&text);
        assert!(errors.starts_with(&format!("a.topo:{expected}")), "{text}{errors}");
    }
    let cases = [
        (TWO_TIERS.replace("Nodes 8", ""), "Nodes is missing or 0"),
        (TWO_TIERS.replace("Tiers 2", "Tiers 4"), "the tree has 4 tiers"),
        (TWO_TIERS.replace("Nodes 8", "Nodes 900000000"), "the tree has 900000000 nodes"),
        (THREE_TIERS.split_once("Tier 2").unwrap().0.to_owned(), "tier 2 is missing"),
    ];
    for (text, expected) in cases {
        let errors = imported(&text).expect_err(&text);
        assert!(errors.starts_with(&format!("a.topo: {expected}")), "{text}{errors}");
    }
}
