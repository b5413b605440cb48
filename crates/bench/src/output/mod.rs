//! Output of the tool: report for programs, tables and progress for people.

pub(super) mod print;
pub(super) mod progress;
pub(super) mod report;
pub(super) mod show;
pub(super) mod table;
