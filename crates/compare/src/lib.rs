//! Comparison of reports of runs: differences between two sides, each with one run or several.
//!
//! [`compare()`] reads the facts of all reports, pairs them by section and name, and judges each pair. [`Comparison`] is
//! the result, with serde and a JSON schema.
//!
//! A run counts once on its side. Reports are of one run if they are equal, or if they have one seed, one trace hash and
//! one verdict in virtual time. A note has the number of reports that do not count.
//!
//! # Rule
//!
//! A fact is a number or a text. A number may have a better direction. Each side has the median, the least and the
//! greatest value of its runs.
//!
//! 1. Equal values are `equal`. Values of one side only are `only-before` or `only-after`.
//! 2. **Equal seeds in virtual time.** A run in virtual time depends on its configuration and its seed alone. If both
//!    sides have the same seeds, runs of equal seeds are pairs, and a difference of a pair is real. If all pairs that
//!    differ do so in one direction, the row is `better` or `worse`, or `changed` if the fact has no better direction.
//! 3. **All other runs.** If the ranges from least to greatest value of both sides overlap, the row is `noise`. If they
//!    are separate, and there are enough runs, the row is `better`, `worse` or `changed`. If there are too few runs, the
//!    row is `changed` with the evidence `too-few-runs`: the spread is unknown. Runs with different clocks are
//!    never better or worse.
//!
//! Suppose that nothing has changed, so that all runs are exchangeable. The chance that the ranges of `n` and `m` runs
//! are separate is then 2 / C(n + m, n), and half of it that the later side is the worse one:
//!
//! | runs on each side | separate | worse in error |
//! |---|---|---|
//! | 1 | 1 | 0.5 |
//! | 2 | 0.33 | 0.17 |
//! | 3 | 0.10 | 0.05 |
//! | 4 | 0.029 | 0.014 |
//! | 5 | 0.0079 | 0.0040 |
//!
//! Enough runs means a chance of at most 0.1, thus three on each side. These chances are those of one row. A comparison has
//! many rows, which depend on each other. Ten runs of a collective over processes on a busy machine, divided at random into equal sides
//! 300 times, gave a row over 5 % in 43 % of the comparisons with three runs on each side, in 13 % with four, and in 5 % with five.
//! [`Basis::false_alarms`] has the expected number of such rows.
//! Runs are exchangeable only if no other load, temperature or time of day separates the sides: alternate the sides
//! when you run them.
//!
//! 4. A row is over its threshold if it is worse, and its medians differ by more than the threshold of its section. Sections without a threshold
//!    have no such row. So a false alarm
//!    needs separate ranges and a difference of that size. A value that was 0 and is now worse is over any threshold.
//!
//! Texts that a user chose, such as options, are `changed` if the sides do not have the same ones. Texts that are results, such as the
//! chosen algorithm, are `noise` if other runs than those of rule 2 have one in common.
//!
//! If all runs have time series, rows of links have the mean and the greatest rate, and [`OverTime`] has the time at which each link differs the
//! most. None of these is judged.
//!
//! The verdict is worse if the worst verdict of the runs after is worse than that of the runs before.
#![forbid(unsafe_code)]

mod compare;
mod comparison;
mod facts;
mod judge;
mod over_time;
mod row;
mod runs;
mod thresholds;

pub use compare::compare;
pub use comparison::{Basis, Comparison, Outcome, SectionCounts};
pub use judge::separation_chance;
pub use over_time::{OverTime, RateDifference};
pub use row::{Direction, Evidence, Judgement, Row, Section, Side, Spread, Texts};
pub use thresholds::{Limits, ThresholdError, Thresholds};
