//! Formats of files, with their names in options.

/// Format of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Text format of this project.
    Rackloom,
    /// GOAL text of LogGOPSim and ATLAHS.
    Goal,
    /// Connection matrix of htsim.
    Connections,
    /// Execution traces of Chakra, one file per rank.
    Chakra,
    /// Lines of NCCL with `NCCL_DEBUG=INFO`.
    NcclLog,
    /// Topology that NCCL writes to `NCCL_TOPO_DUMP_FILE`.
    NcclTopology,
    /// Fat tree of htsim.
    Topo,
}

impl Format {
    /// All formats, in the order in which help texts list them.
    pub const ALL: [Self; 7] = [
        Self::Rackloom,
        Self::Goal,
        Self::Connections,
        Self::Chakra,
        Self::NcclLog,
        Self::NcclTopology,
        Self::Topo,
    ];

    /// Returns the name in options.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rackloom => "rackloom",
            Self::Goal => "goal",
            Self::Connections => "connections",
            Self::Chakra => "chakra",
            Self::NcclLog => "nccl-log",
            Self::NcclTopology => "nccl-topology",
            Self::Topo => "topo",
        }
    }

    /// Returns the format with this name, or `None`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// Returns the names of all formats, for messages.
    #[must_use]
    pub fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }

    /// Returns true if files of this format describe hardware and not traffic.
    #[must_use]
    pub const fn is_hardware(self) -> bool {
        matches!(self, Self::NcclTopology | Self::Topo)
    }

    /// Returns the format that the content of a file has, or `None`. Only the first lines are looked at, and for a log of NCCL
    /// all of them.
    #[must_use]
    pub fn of_content(bytes: &[u8]) -> Option<Self> {
        let Ok(text) = core::str::from_utf8(bytes) else { return Some(Self::Chakra) };
        if text.contains(|one: char| one.is_control() && !one.is_whitespace()) {
            return Some(Self::Chakra);
        }
        if text.trim_start().starts_with('<') {
            return Some(Self::NcclTopology);
        }
        if text.contains("NCCL INFO") {
            return Some(Self::NcclLog);
        }
        let is_comment = |line: &str| line.is_empty() || line.starts_with('#') || line.starts_with("//");
        let mut lines = text.lines().map(str::trim).filter(|line| !is_comment(line));
        let first = lines.next()?.split_whitespace().next()?;
        match first.to_ascii_lowercase().as_str() {
            "num_ranks" | "/*" => Some(Self::Goal),
            "workload" | "ranks" => Some(Self::Rackloom),
            "tiers" | "podsize" => Some(Self::Topo),
            "connections" => Some(Self::Connections),
            "nodes" => Some(Self::of_nodes(lines)),
            _ => None,
        }
    }

    /// Returns the format of a file of htsim whose first line states the nodes.
    fn of_nodes<'l>(mut lines: impl Iterator<Item = &'l str>) -> Self {
        let is_tree = |line: &str| {
            let word = line.split_whitespace().next().unwrap_or_default();
            ["tiers", "podsize", "tier"].iter().any(|known| word.eq_ignore_ascii_case(known))
        };
        if lines.next().is_some_and(is_tree) { Self::Topo } else { Self::Connections }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_follow_from_the_content() {
        let cases: [(&[u8], Option<Format>); 12] = [
            (b"# a\nworkload x\nranks 2\n", Some(Format::Rackloom)),
            (b"ranks 2\n", Some(Format::Rackloom)),
            (b"\nnum_ranks 2\nrank 0 {\n}\n", Some(Format::Goal)),
            (b"// a\nnum_ranks 2\n", Some(Format::Goal)),
            (b"Nodes 2\nConnections 1\n0->1 start 0 size 9\n", Some(Format::Connections)),
            (b"# a\nNodes 8\nTiers 3\n", Some(Format::Topo)),
            (b"<system version=\"1\">", Some(Format::NcclTopology)),
            (b"a\nhost:1:1 [0] NCCL INFO Bootstrap\n", Some(Format::NcclLog)),
            (b"\x07\x0a\x051.0.0", Some(Format::Chakra)),
            (b"\xff\xff\xff", Some(Format::Chakra)),
            (b"", None),
            (b"hello", None),
        ];
        for (bytes, format) in cases {
            assert_eq!(Format::of_content(bytes), format, "{}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn names_lead_back_to_formats() {
        assert_eq!(Format::ALL.map(|one| Format::from_name(one.name())), Format::ALL.map(Some));
        assert_eq!(Format::from_name("x"), None);
        assert_eq!(Format::names(), "rackloom, goal, connections, chakra, nccl-log, nccl-topology, topo");
    }
}
