//! Origin of a report: machine, time and command.
//!
//! These values differ between two runs that are otherwise equal. They stand in one object, so that a comparison of two reports can remove
//! them together.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Origin of a report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Meta {
    /// Name of the rack.
    pub rack: String,
    /// Command line as typed; the program is always written `rackloom`.
    pub command: String,
    /// Options in effect after the file, the command line and the defaults were combined, by name.
    pub options: BTreeMap<String, String>,
    /// Time at which the report was made, as RFC 3339 in UTC.
    pub date: String,
    /// Machine that made the report.
    pub host: HostReport,
    /// Versions of the program and of the wire format.
    pub versions: Versions,
    /// Git commit that the program was built from, or `unknown`.
    pub commit: String,
}

/// Machine that made a report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostReport {
    /// Host name.
    pub name: String,
    /// Name, release and machine type of the kernel.
    pub kernel: String,
    /// Processors that the process may use.
    pub processors: u32,
}

/// Versions that decide how a report is read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Versions {
    /// Version of `rackloom`.
    pub rackloom: String,
    /// Version of the wire format.
    pub wire: u32,
}
