//! Rows of a comparison: one fact of both sides, and the judgement on it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Section of a comparison. The order is that of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Section {
    /// Options, rack, job, seed, wire, versions and host.
    Configuration,
    /// Verdict, failures and oracles.
    Verdict,
    /// Duration of the run, and of detection and recovery of faults.
    Time,
    /// Latency of operations.
    Operations,
    /// Goodput of operations.
    Goodput,
    /// Times and bandwidths by size.
    Sweep,
    /// Results of a traffic pattern.
    Traffic,
    /// Results of a workload.
    Workload,
    /// Counters of each direction of each link.
    Links,
    /// State, memory and paths of each member.
    Nodes,
    /// Balance of the load over the links.
    Balance,
    /// Drops, retransmissions, failed operations and events, over the whole rack.
    Losses,
}

impl Section {
    /// All sections, in the order of rows.
    pub const ALL: [Self; 12] = [
        Self::Configuration,
        Self::Verdict,
        Self::Time,
        Self::Operations,
        Self::Goodput,
        Self::Sweep,
        Self::Traffic,
        Self::Workload,
        Self::Links,
        Self::Nodes,
        Self::Balance,
        Self::Losses,
    ];

    /// Returns the name in JSON and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Configuration => "configuration",
            Self::Verdict => "verdict",
            Self::Time => "time",
            Self::Operations => "operations",
            Self::Goodput => "goodput",
            Self::Sweep => "sweep",
            Self::Traffic => "traffic",
            Self::Workload => "workload",
            Self::Links => "links",
            Self::Nodes => "nodes",
            Self::Balance => "balance",
            Self::Losses => "losses",
        }
    }

    /// Returns whether rows of this section are never left out.
    pub(crate) const fn is_complete(self) -> bool {
        matches!(self, Self::Configuration | Self::Verdict)
    }
}

/// Direction in which a value is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// A lower value is better.
    Lower,
    /// A higher value is better.
    Higher,
    /// Neither is better.
    None,
}

/// Judgement on a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Judgement {
    /// Both sides have equal values.
    Equal,
    /// The sides differ, and no direction is better, or the spread is unknown.
    Changed,
    /// The side after is better.
    Better,
    /// The side after is worse.
    Worse,
    /// The ranges of both sides overlap.
    Noise,
    /// Only the side before has a value.
    OnlyBefore,
    /// Only the side after has a value.
    OnlyAfter,
}

impl Judgement {
    /// Returns the name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::Changed => "changed",
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Noise => "noise",
            Self::OnlyBefore => "only-before",
            Self::OnlyAfter => "only-after",
        }
    }

    /// Returns whether the row says that something differs beyond noise.
    #[must_use]
    pub const fn is_difference(self) -> bool {
        !matches!(self, Self::Equal | Self::Noise)
    }
}

/// Reason for which a difference counts as real, or does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Evidence {
    /// Runs in virtual time with equal seeds, a verdict, a state, or a text that a user chose: the difference is real.
    Exact,
    /// The ranges of enough runs are separate.
    Separate,
    /// There are too few runs to know the spread. The difference may be chance.
    TooFewRuns,
    /// The runs have different clocks, whose times are not comparable.
    DifferentClocks,
}

impl Evidence {
    /// Returns whether a difference with this evidence may be better or worse.
    pub(crate) const fn is_sufficient(self) -> bool {
        matches!(self, Self::Exact | Self::Separate)
    }
}

/// Values of one side of a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Side {
    /// A number.
    Number(Spread),
    /// A text.
    Text(Texts),
}

/// Numbers of the runs of one side. Numbers above 2^53 are rounded.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spread {
    /// Median of the runs; of an even number, the mean of both in the middle.
    pub median: f64,
    /// Least value.
    pub least: f64,
    /// Greatest value.
    pub most: f64,
    /// Number of runs that have the value.
    pub runs: usize,
}

/// Texts of the runs of one side.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Texts {
    /// Number of runs by text.
    pub texts: BTreeMap<String, usize>,
}

/// One fact of both sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    /// Section of the fact.
    pub section: Section,
    /// Name of the fact, unique in its section.
    pub name: String,
    /// Unit of the numbers, such as `ns`; empty for texts, counts and ratios.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unit: String,
    /// Direction in which the value is better.
    pub direction: Direction,
    /// Values before; absent if no run has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Side>,
    /// Values after; absent if no run has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Side>,
    /// Relative change of the median: 0.05 is 5 % more. Absent for texts, for values of one side, and if the median before is 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<f64>,
    /// Judgement.
    pub judgement: Judgement,
    /// Evidence for a difference; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// True if the row is worse by more than the threshold of its section. A verdict that is worse is always over it.
    pub is_over_threshold: bool,
    /// True if the row would be over the threshold if the evidence were sufficient.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_suspect: bool,
}

impl Row {
    /// Returns the size of the difference from 0 (none) to 2 (opposite signs). Swapped sides have the same size.
    #[must_use]
    pub fn magnitude(&self) -> f64 {
        match (&self.before, &self.after) {
            (Some(Side::Number(before)), Some(Side::Number(after))) => {
                let greatest = before.median.abs().max(after.median.abs());
                if greatest > 0.0 { (after.median / greatest - before.median / greatest).abs() } else { 0.0 }
            }
            (Some(before), Some(after)) if before == after => 0.0,
            _ => 1.0,
        }
    }
}
