//! Headings of the groups of options in help texts.

/// Options that select the work.
pub(super) const WHAT: &str = "What runs";
/// Options of the data.
pub(super) const DATA: &str = "Data";
/// Options of links and wires.
pub(super) const LINKS: &str = "Links and wires";
/// Options of faults.
pub(super) const FAULTS: &str = "Faults";
/// Options of results and logs.
pub(super) const OUTPUT: &str = "Output";
/// Options of the engine that runs many points.
pub(super) const ENGINE: &str = "Engine";
/// Options of a campaign that fails every part.
pub(super) const EXHAUSTIVE: &str = "Every failure";
/// Options of a search over racks.
pub(super) const SEARCH: &str = "Search";
