//! Jobs that users submit to a standing rack (`docs/decisions/jobs-on-a-standing-rack.md`).
//!
//! Reading order: `queue` (state of all jobs) · `output` (bounded log of a process) · `process` (one process of a job) · `runner`
//! (connects the queue with processes, seats and files).

mod output;
mod process;
mod queue;
mod runner;

pub(super) use self::runner::JobRunner;
