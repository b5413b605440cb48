//! Fat trees of htsim: the files that end with `.topo`.
//!
//! Source of the format: `fat_tree_topology.cpp` of htsim. A tree has two or three tiers of switches. Each switch of tier 0 has
//! `Radix_Down` hosts. It reaches every switch of tier 1 of its pod, or of the tree if there are two tiers. Switches of tier 1 at one
//! position of their pods share switches of tier 2. Lengths of queues are left out.

use crate::error::{WorkloadError, WorkloadErrors};
use crate::import::hardware::{Hardware, LINKS_MAX, Link, MEMBERS_MAX, PARALLEL_MAX, Speed, rack_name};
use crate::import::imported::{Content, File, Imported};
use crate::import::notes::Notes;
use crate::tokens::{Token, Tokens};

/// Reads a fat tree.
pub(super) fn read(file: &File<'_>) -> Result<Imported, WorkloadErrors> {
    let text = file.text()?;
    let mut notes = Notes::default();
    let hardware = parse(text, &mut notes).and_then(|tree| tree.hardware(&file.title(), &mut notes));
    let hardware = hardware.map_err(|error| error.of(file.name))?;
    Ok(Imported { content: Content::Hardware(hardware), notes: notes.finish() })
}

/// Values of one tier. 0 is a value that is missing.
#[derive(Clone, Copy, Debug, Default)]
struct Tier {
    /// Line of its heading; 0 if there is none.
    line: usize,
    radix_down: u64,
    radix_up: u64,
    gbit_per_s: u64,
    delay_ns: u64,
    switch_ns: u64,
    /// Links in parallel between a switch and one below.
    bundle: u64,
}

/// Content of the file.
#[derive(Clone, Copy, Debug, Default)]
struct Tree {
    nodes: u64,
    tiers: u64,
    pod: u64,
    of: [Tier; 3],
}

/// Longest latency of a switch in nanoseconds that a rack file has.
const SWITCH_NS_MAX: u64 = 1_000_000;

type Read<T> = Result<T, WorkloadError>;

const FORM: &str = "write `Nodes 8`, `Tiers 3`, `Podsize 4`, and for each tier `Tier 0`, `Downlink_speed_Gbps 100`, `Radix_Down 2`, \
                    `Radix_Up 2`, `Downlink_Latency_ns 1000`";

fn parse(text: &str, notes: &mut Notes) -> Read<Tree> {
    let mut tree = Tree::default();
    let mut tier = None;
    for (number, line) in (1..).zip(text.lines()) {
        let mut tokens = Tokens::new(number, line);
        if let Some(key) = tokens.next() {
            let value = value(&mut tokens, key)?;
            tree.set((number, key, value), &mut tier, &tokens, notes)?;
        }
    }
    Ok(tree)
}

fn value(tokens: &mut Tokens<'_>, key: Token<'_>) -> Read<u64> {
    let token = tokens.expect("number", FORM)?;
    let value = token.text.parse::<u64>().ok().filter(|value| *value <= 1_000_000_000);
    value.ok_or_else(|| {
        let reason = format!("`{}` is no number up to 1000000000 for `{}`", token.text, key.text);
        tokens.mistake(token, reason, FORM)
    })
}

impl Tree {
    fn set(
        &mut self,
        (line, key, value): (usize, Token<'_>, u64),
        tier: &mut Option<usize>,
        tokens: &Tokens<'_>,
        notes: &mut Notes,
    ) -> Read<()> {
        let word = key.text.to_ascii_lowercase();
        match word.as_str() {
            "nodes" => self.nodes = value,
            "tiers" => self.tiers = value,
            "podsize" => self.pod = value,
            "tier" => {
                let Some(known) = self.of.get_mut(value as usize) else {
                    return Err(tokens.mistake(
                        key,
                        format!("there is no tier {value}"),
                        "tiers are 0, 1 and 2",
                    ));
                };
                *known = Tier { line, bundle: 1, ..Tier::default() };
                *tier = Some(value as usize);
            }
            _ => {
                let Some(tier) = *tier else {
                    return Err(tokens.mistake(
                        key,
                        format!("`{}` stands before the first tier", key.text),
                        FORM,
                    ));
                };
                if !self.of[tier].set(&word, value, notes) {
                    return Err(tokens.mistake(key, format!("`{}` is no value of a tier", key.text), FORM));
                }
            }
        }
        Ok(())
    }
}

impl Tier {
    /// Sets a value. Returns false if there is no such key.
    fn set(&mut self, key: &str, value: u64, notes: &mut Notes) -> bool {
        match key {
            "downlink_speed_gbps" => self.gbit_per_s = value,
            "radix_down" => self.radix_down = value,
            "radix_up" => self.radix_up = value,
            "downlink_latency_ns" => self.delay_ns = value,
            "switch_latency_ns" => self.switch_ns = value,
            "bundle" => self.bundle = value,
            // It follows from the ports.
            "oversubscribed" => {}
            "queue_up" | "queue_down" => {
                notes.count("lengths of queues that are left out; `forwarding` of the rack file has them")
            }
            _ => return false,
        }
        true
    }
}

/// Numbers of switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sizes {
    /// Switches of tier 0 in a pod.
    lower: u64,
    /// Switches of tier 1 in a pod.
    upper: u64,
    /// Pods; one if there are two tiers.
    pods: u64,
    /// Switches of tier 2.
    cores: u64,
}

impl Tree {
    /// Returns members and links.
    fn hardware(&self, title: &str, notes: &mut Notes) -> Read<Hardware> {
        let sizes = self.sizes()?;
        let names =
            |name: &str, count: u64| (0..count).map(|index| format!("{name}{index}")).collect::<Vec<_>>();
        let mut switches = names("tor", sizes.lower * sizes.pods);
        switches.extend(names("agg", sizes.upper * sizes.pods));
        switches.extend(names("core", sizes.cores));
        let latencies: Vec<u64> = self.of[..self.tiers as usize].iter().map(|tier| tier.switch_ns).collect();
        let is_equal = latencies.iter().all(|latency| *latency == latencies[0]);
        if !is_equal {
            notes.count(
                "latencies of switches that differ, so that half of each is added to the delay of its links",
            );
        }
        let mut hardware = Hardware {
            name: rack_name(title),
            nodes: names("n", self.nodes),
            switches,
            links: Vec::new(),
            forwarding_ns: if is_equal { latencies[0] } else { 0 },
        };
        self.add_links(sizes, is_equal, &mut hardware.links);
        Ok(hardware)
    }

    fn add_links(&self, sizes: Sizes, is_equal: bool, links: &mut Vec<Link>) {
        let mut add = |a: String, b: String, tier: usize| {
            let Tier { gbit_per_s, bundle, .. } = self.of[tier];
            let speed =
                Speed { bits_per_s: gbit_per_s * 1_000_000_000, delay_ns: self.delay_ns(tier, is_equal) };
            links.push(Link { a, b, speed, parallel: bundle as u32 });
        };
        for node in 0..self.nodes {
            add(format!("n{node}"), format!("tor{}", node / self.of[0].radix_down), 0);
        }
        for lower in 0..sizes.lower * sizes.pods {
            let pod = lower / sizes.lower;
            for upper in 0..sizes.upper {
                add(format!("tor{lower}"), format!("agg{}", pod * sizes.upper + upper), 1);
            }
        }
        if sizes.cores > 0 {
            let each = self.of[1].radix_up / self.of[2].bundle;
            for upper in 0..sizes.upper * sizes.pods {
                for number in 0..each {
                    add(
                        format!("agg{upper}"),
                        format!("core{}", upper % sizes.upper + sizes.upper * number),
                        2,
                    );
                }
            }
        }
    }

    /// Returns the delay of a link below a tier. Half of the latency of each switch at its ends belongs to it if these differ.
    fn delay_ns(&self, tier: usize, is_equal: bool) -> u64 {
        let below = tier.checked_sub(1).map_or(0, |tier| self.of[tier].switch_ns);
        let ends = if is_equal { 0 } else { self.of[tier].switch_ns + below };
        self.of[tier].delay_ns + ends.div_ceil(2)
    }

    /// Checks that all values are there and that ports match, and returns the numbers of switches.
    fn sizes(&self) -> Read<Sizes> {
        for (name, value) in [("Nodes", self.nodes), ("Tiers", self.tiers), ("Podsize", self.pod)] {
            if value == 0 {
                return Err(WorkloadError::whole(format!("{name} is missing or 0"), FORM));
            }
        }
        if !(2..=3).contains(&self.tiers) {
            return Err(WorkloadError::whole(format!("the tree has {} tiers", self.tiers), "write 2 or 3"));
        }
        if self.nodes > MEMBERS_MAX as u64 {
            let reason = format!("the tree has {} nodes", self.nodes);
            return Err(WorkloadError::whole(reason, format!("a rack has at most {MEMBERS_MAX} members")));
        }
        for tier in 0..self.tiers as usize {
            self.check_tier(tier)?;
        }
        self.matched_sizes()
    }

    fn check_tier(&self, tier: usize) -> Read<()> {
        let Tier { line, radix_down, radix_up, gbit_per_s, switch_ns, bundle, .. } = self.of[tier];
        if line == 0 {
            return Err(WorkloadError::whole(format!("tier {tier} is missing"), FORM));
        }
        let refused = |reason: String, hint: &str| Err(WorkloadError::line(line, 1, reason, hint));
        let is_top = tier + 1 == self.tiers as usize;
        let values = [
            ("Radix_Down", radix_down),
            ("Downlink_speed_Gbps", gbit_per_s),
            ("Bundle", bundle),
            ("Radix_Up", if is_top { 1 } else { radix_up }),
        ];
        if let Some((name, _)) = values.iter().find(|(_, value)| *value == 0) {
            return refused(format!("{name} of tier {tier} is missing or 0"), FORM);
        }
        if radix_down.max(radix_up) > LINKS_MAX as u64 {
            return refused(
                format!("switches of tier {tier} have more than {LINKS_MAX} links"),
                "correct the radix",
            );
        }
        if switch_ns > SWITCH_NS_MAX {
            let hint = format!("a rack file has up to {SWITCH_NS_MAX} ns");
            return refused(format!("switches of tier {tier} take {switch_ns} ns"), &hint);
        }
        if bundle > u64::from(PARALLEL_MAX) {
            return refused(
                format!("tier {tier} has bundles of {bundle} links"),
                "a rack has up to 16 links in parallel",
            );
        }
        if gbit_per_s > 100_000 {
            return refused(
                format!("tier {tier} has links of {gbit_per_s} Gbit/s"),
                "a link has up to 100000 Gbit/s",
            );
        }
        Ok(())
    }

    fn matched_sizes(&self) -> Read<Sizes> {
        let [first, second, third] = self.of;
        let is_three = self.tiers == 3;
        let pod = if is_three { self.pod } else { self.nodes };
        let refused =
            |line: usize, reason: String, hint: &str| Err(WorkloadError::line(line, 1, reason, hint));
        let is_filled = self.nodes.is_multiple_of(pod) && pod.is_multiple_of(first.radix_down);
        if !is_filled || first.bundle != 1 {
            let reason = format!(
                "{} nodes do not fill pods of {pod} with switches of {}",
                self.nodes, first.radix_down
            );
            return refused(
                first.line,
                reason,
                "Nodes is a multiple of Podsize, that of Radix_Down, and nodes have one link",
            );
        }
        let (lower, pods) = (pod / first.radix_down, self.nodes / pod);
        let upper = first.radix_up / second.bundle;
        if upper * second.bundle != first.radix_up || lower * first.radix_up != upper * second.radix_down {
            let reason = format!(
                "{lower} switches of tier 0 with {} links up do not fill switches of tier 1 with {} links down",
                first.radix_up, second.radix_down
            );
            return refused(
                second.line,
                reason,
                "correct Radix_Up of tier 0, or Radix_Down or Bundle of tier 1",
            );
        }
        let mut cores = 0;
        if is_three {
            let each = second.radix_up / third.bundle;
            cores = upper * each;
            if each * third.bundle != second.radix_up
                || cores * third.radix_down != upper * pods * second.radix_up
            {
                let reason = format!(
                    "{} switches of tier 1 with {} links up do not fill {cores} switches of tier 2 with {} links down",
                    upper * pods,
                    second.radix_up,
                    third.radix_down
                );
                return refused(
                    third.line,
                    reason,
                    "correct Radix_Up of tier 1, or Radix_Down or Bundle of tier 2",
                );
            }
        }
        let sizes = Sizes { lower, upper, pods, cores };
        self.check_size(sizes).map(|()| sizes)
    }

    fn check_size(&self, sizes: Sizes) -> Read<()> {
        let Sizes { lower, upper, pods, cores } = sizes;
        let members = self.nodes + (lower + upper) * pods + cores;
        let links = self.nodes
            + lower * pods * self.of[0].radix_up
            + if cores > 0 { upper * pods * self.of[1].radix_up } else { 0 };
        if members > MEMBERS_MAX as u64 || links > LINKS_MAX as u64 {
            let reason = format!("the tree has {members} members and {links} links");
            let hint = format!("a rack has at most {MEMBERS_MAX} members and {LINKS_MAX} links");
            return Err(WorkloadError::whole(reason, hint));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
