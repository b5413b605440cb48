//! Every key that a rack file may contain, declared once.
//!
//! Readers refuse what is not declared here; tests hold that each declared key is read and is documented in
//! `docs/topology-file.md`.

/// The keys of one table.
#[derive(Debug)]
pub(crate) struct Table {
    /// Heading of the table in the document.
    pub(crate) name: &'static str,
    /// Its keys.
    pub(crate) keys: &'static [&'static str],
}

pub(crate) const RACK: Table = Table {
    name: "rack",
    keys: &[
        "name",
        "seed",
        "shape",
        "defaults",
        "nodes",
        "link",
        "links",
        "wire",
        "checks",
        "timers",
        "transport",
        "packing",
        "credits",
        "frame_bytes_max",
        "ring_bytes",
        "ether_type",
        "outstanding_loads_max",
        "rdma_threshold_bytes",
        "watchdog",
        "job",
    ],
};
pub(crate) const SHAPE: Table = Table { name: "shape", keys: &["ring", "star", "full-mesh", "custom"] };
pub(crate) const RING: Table = Table { name: "shape.ring", keys: &["nodes"] };
pub(crate) const STAR: Table = Table { name: "shape.star", keys: &["nodes", "planes"] };
pub(crate) const FULL_MESH: Table = Table { name: "shape.full-mesh", keys: &["nodes"] };
pub(crate) const CUSTOM: Table = Table { name: "shape.custom", keys: &["nodes", "switches", "links"] };
pub(crate) const CUSTOM_LINK: Table = Table { name: "shape.custom.links", keys: &["a", "b", "plane"] };
pub(crate) const DEFAULTS: Table = Table { name: "defaults", keys: &["memory", "tenant"] };
pub(crate) const NODE: Table = Table { name: "nodes", keys: &["memory", "tenant", "server"] };
pub(crate) const SWITCH: Table = Table { name: "nodes", keys: &["server"] };
pub(crate) const LINK: Table = Table {
    name: "link",
    keys: &["rate", "delay", "loss", "corrupt", "duplicate", "reorder", "seed", "drop_frames"],
};
pub(crate) const TIMERS: Table = Table {
    name: "timers",
    keys: &["heartbeat_interval", "heartbeat_miss_max", "hold_down", "up_count", "hello_interval"],
};
pub(crate) const TRANSPORT: Table = Table {
    name: "transport",
    keys: &[
        "mode",
        "window_packets",
        "timeout_initial",
        "timeout_min",
        "timeout_max",
        "retry_count_max",
        "ack_every_packets",
        "ack_delay",
    ],
};
pub(crate) const PACKING: Table = Table { name: "packing", keys: &["mode", "operations_max"] };
pub(crate) const CREDITS: Table = Table { name: "credits", keys: &["unit_bytes", "overhead_bytes", "limit"] };
pub(crate) const JOB: Table = Table { name: "job", keys: &["litmus"] };
pub(crate) const LITMUS: Table = Table { name: "job.litmus", keys: &["bytes_max", "rounds"] };

/// All tables, for the tests that hold them against the document and the readers.
#[cfg(test)]
pub(crate) const TABLES: &[&Table] = &[
    &RACK,
    &SHAPE,
    &RING,
    &STAR,
    &FULL_MESH,
    &CUSTOM,
    &CUSTOM_LINK,
    &DEFAULTS,
    &NODE,
    &SWITCH,
    &LINK,
    &TIMERS,
    &TRANSPORT,
    &PACKING,
    &CREDITS,
    &JOB,
    &LITMUS,
];

#[cfg(test)]
mod tests {
    use super::TABLES;
    use crate::plan::Plan;

    /// A file that uses every key, each on a line of its own with its value, if that is a single one.
    const EVERYTHING: &str = include_str!("../../tests/every-key.yaml");

    fn document() -> String {
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/topology-file.md")).unwrap()
    }

    /// The part of the document under the heading of one table.
    fn section<'text>(document: &'text str, name: &str) -> &'text str {
        let heading = format!("\n## `{name}`\n");
        let start = document.find(&heading).unwrap_or_else(|| panic!("no section `{name}`")) + heading.len();
        let length = document[start..].find("\n## ").unwrap_or(document.len() - start);
        &document[start..start + length]
    }

    #[test]
    fn every_key_is_documented_in_the_section_of_its_table() {
        let document = document();
        for table in TABLES {
            for key in table.keys {
                let row = format!("\n| `{key}` |");
                assert!(
                    section(&document, table.name).contains(&row),
                    "`{key}` of `{}` has no row",
                    table.name
                );
            }
        }
    }

    #[test]
    fn every_documented_key_exists() {
        let document = document();
        for name in document.lines().filter_map(|line| line.strip_prefix("## `")?.strip_suffix('`')) {
            let known: Vec<&str> = TABLES
                .iter()
                .filter(|table| table.name == name)
                .flat_map(|table| table.keys)
                .copied()
                .collect();
            assert!(!known.is_empty(), "no table `{name}`");
            for key in section(&document, name)
                .lines()
                .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
            {
                assert!(known.contains(&key), "`{key}` of `{name}` is documented and does not exist");
            }
        }
    }

    #[test]
    fn every_key_is_read() {
        Plan::parse(EVERYTHING, "every-key.yaml").unwrap_or_else(|error| panic!("{error}"));
        for (index, line) in EVERYTHING.lines().enumerate() {
            let Some((key, value)) = line.split_once(": ") else { continue };
            // A value that no key takes: whoever reads it must complain, at this line.
            let broken = EVERYTHING.replacen(line, &format!("{key}: \"?{}\"", value.replace('"', "")), 1);
            let error = Plan::parse(&broken, "broken").expect_err(line);
            let number = u32::try_from(index + 1).unwrap();
            assert!(
                error.mistakes.iter().any(|mistake| mistake.line == number),
                "{line} is not read:\n{error}"
            );
        }
        for table in TABLES
            .iter()
            .filter(|table| !["shape.ring", "shape.star", "shape.full-mesh"].contains(&table.name))
        {
            for key in table.keys.iter().filter(|key| !["ring", "star", "full-mesh"].contains(key)) {
                assert!(
                    EVERYTHING
                        .lines()
                        .any(|line| line.trim_start_matches([' ', '-']).starts_with(&format!("{key}:"))),
                    "`{key}` is missing"
                );
            }
        }
    }
}
