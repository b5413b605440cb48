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
