//! Nodes, switches and links of a rack, as files of other tools describe them, and the rack file of it.
//!
//! `docs/topology-file.md` has the rack file. Jobs, faults and settings are not part of the description.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Most members of a rack file.
pub const MEMBERS_MAX: usize = 16_384;
/// Most links of a rack file, parallel ones counted.
pub const LINKS_MAX: usize = 65_535;
/// Most links in parallel that one entry of a rack file has.
pub const PARALLEL_MAX: u32 = 16;

/// Members and links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hardware {
    /// Name of the rack.
    pub name: String,
    /// Names of GPU nodes, in the order of their ranks.
    pub nodes: Vec<String>,
    /// Names of switches.
    pub switches: Vec<String>,
    /// Links between members.
    pub links: Vec<Link>,
    /// Time in nanoseconds in which every switch forwards a frame.
    pub forwarding_ns: u64,
}

/// Link between two members, or several in parallel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Name of one end.
    pub a: String,
    /// Name of the other end.
    pub b: String,
    /// Properties.
    pub speed: Speed,
    /// Number of links in parallel, each with these properties.
    pub parallel: u32,
}

/// Properties of a link in each direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Speed {
    /// Rate in bits per second.
    pub bits_per_s: u64,
    /// Delay from one end to the other in nanoseconds.
    pub delay_ns: u64,
}

/// Rates of a rack file in bits per second, the lowest and the highest.
const RATES: (u64, u64) = (1_000, 100_000_000_000_000);

impl Hardware {
    /// Returns a rack file. It states the most frequent properties once, and others per link.
    #[must_use]
    pub fn to_rack_yaml(&self) -> String {
        let mut text = format!("name: \"{}\"\nshape:\n  custom:\n", self.name);
        text.push_str(&format!("    nodes: [{}]\n", self.nodes.join(", ")));
        if !self.switches.is_empty() {
            text.push_str(&format!("    switches: [{}]\n", self.switches.join(", ")));
        }
        text.push_str("    links:\n");
        for Link { a, b, parallel, .. } in &self.links {
            let parallel = if *parallel > 1 { format!(", parallel: {parallel}") } else { String::new() };
            text.push_str(&format!("      - {{a: {a}, b: {b}{parallel}}}\n"));
        }
        if let Some(common) = self.common() {
            text.push_str(&format!("link: {}\n", common.yaml()));
            text.push_str(&self.exceptions(common));
        }
        if self.forwarding_ns > 0 {
            text.push_str(&format!("forwarding: {{latency: {}ns}}\n", self.forwarding_ns));
        }
        text
    }

    /// Returns the properties that most links have; of several, the slowest.
    fn common(&self) -> Option<Speed> {
        let mut counts = BTreeMap::<Speed, u32>::new();
        self.links.iter().for_each(|link| *counts.entry(link.speed).or_default() += 1);
        let most = counts.values().max().copied()?;
        counts.into_iter().find(|(_, count)| *count == most).map(|(speed, _)| speed)
    }

    /// Returns the section of links with other properties.
    fn exceptions(&self, common: Speed) -> String {
        let mut text = String::new();
        for link in self.links.iter().filter(|link| link.speed != common) {
            for number in 0..link.parallel {
                let suffix = if number == 0 { String::new() } else { format!("#{number}") };
                // Writing to a `String` cannot fail.
                let _ = writeln!(text, "  {}--{}{suffix}: {}", link.a, link.b, link.speed.yaml());
            }
        }
        if text.is_empty() { text } else { format!("links:\n{text}") }
    }
}

impl Speed {
    /// Returns the properties as a table of a rack file. Rates outside of its range take its end.
    fn yaml(self) -> String {
        const UNITS: [(&str, u64); 4] = [
            ("Tbit/s", 1_000_000_000_000),
            ("Gbit/s", 1_000_000_000),
            ("Mbit/s", 1_000_000),
            ("kbit/s", 1_000),
        ];
        let rate = self.bits_per_s.clamp(RATES.0, RATES.1);
        let unit = UNITS.iter().find(|(_, size)| rate.is_multiple_of(*size));
        let rate =
            unit.map_or_else(|| format!("{rate}bit/s"), |(name, size)| format!("{}{name}", rate / size));
        format!("{{rate: {rate}, delay: {}ns}}", self.delay_ns)
    }
}

/// Returns a text as a name of a rack file: letters, digits, `_`, `.` and single `-`, at most 32 of them.
pub(super) fn rack_name(text: &str) -> String {
    let mut name = String::new();
    for one in text.chars() {
        let one = if one.is_ascii_alphanumeric() || "_.".contains(one) { one } else { '-' };
        let is_fine =
            if name.is_empty() { one.is_ascii_alphanumeric() } else { one != '-' || !name.ends_with('-') };
        if is_fine && name.len() < 32 {
            name.push(one);
        }
    }
    let name = name.trim_end_matches('-');
    if name.is_empty() { "rack".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(a: &str, b: &str, bits_per_s: u64, parallel: u32) -> Link {
        Link { a: a.into(), b: b.into(), speed: Speed { bits_per_s, delay_ns: 500 }, parallel }
    }

    #[test]
    fn the_rack_file_states_frequent_properties_once() {
        let hardware = Hardware {
            name: "two".into(),
            nodes: vec!["n0".into(), "n1".into()],
            switches: vec!["s0".into()],
            links: vec![
                link("n0", "s0", 100_000_000_000, 1),
                link("n1", "s0", 100_000_000_000, 1),
                link("n0", "n1", 2_500_000_000, 2),
            ],
            forwarding_ns: 300,
        };
        let expected = "name: \"two\"
shape:
  custom:
    nodes: [n0, n1]
    switches: [s0]
    links:
      - {a: n0, b: s0}
      - {a: n1, b: s0}
      - {a: n0, b: n1, parallel: 2}
link: {rate: 100Gbit/s, delay: 500ns}
links:
  n0--n1: {rate: 2500Mbit/s, delay: 500ns}
  n0--n1#1: {rate: 2500Mbit/s, delay: 500ns}
forwarding: {latency: 300ns}
";
        assert_eq!(hardware.to_rack_yaml(), expected);
    }

    #[test]
    fn rates_are_whole_numbers_of_a_unit_within_the_range() {
        let rate = |bits_per_s: u64| Speed { bits_per_s, delay_ns: 0 }.yaml();
        assert_eq!(rate(3_000_000_000_000), "{rate: 3Tbit/s, delay: 0ns}");
        assert_eq!(rate(1_234_567), "{rate: 1234567bit/s, delay: 0ns}");
        assert_eq!(rate(0), "{rate: 1kbit/s, delay: 0ns}");
        assert_eq!(rate(u64::MAX), "{rate: 100Tbit/s, delay: 0ns}");
    }

    #[test]
    fn names_follow_the_rules_of_the_rack_file() {
        let names =
            ["fat_tree.1024", "--a  b--", "", "é", "12345678901234567890123456789012345"].map(rack_name);
        assert_eq!(names, ["fat_tree.1024", "a-b", "rack", "rack", "12345678901234567890123456789012"]);
    }
}
