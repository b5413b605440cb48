//! Effects of one event of a fault script, and the event's line in the log.

use rackloom_plan::faults::FaultEvent;
use rackloom_protocol::Instant;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::events::EventRecord;
use crate::zero::is_zero;

/// Kind of the line that marks the begin or the end of a script's event.
pub(super) const KIND: &str = "fault";

/// Effects of one event of the script.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FaultReport {
    /// Number of the event in the script, from one.
    pub event: usize,
    /// Line of the event in the script's file.
    pub line: u32,
    /// Fault and its location, as the file states them.
    pub what: String,
    /// Number of times that the event began.
    pub times: u64,
    /// Number of begins that were over before their member polled. Zero in virtual time.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missed: u64,
    /// Time of the first begin in nanoseconds; absent if the event never began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_ns: Option<u64>,
    /// Longest time in nanoseconds from a begin to the first link that was reported down because of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detected_after_ns: Option<u64>,
    /// Longest time in nanoseconds from a begin to the last path that was changed because of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switched_after_ns: Option<u64>,
    /// Longest time in nanoseconds for detection by heartbeats alone: the intervals that may be missed, plus the travel
    /// time of a frame. The loss of a carrier is detected sooner. Processes take longer by the time that they wait for
    /// a processor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detection_bound_ns: Option<u64>,
    /// Time in nanoseconds by which processes may exceed that bound for lack of a processor: the greatest lateness of a
    /// member's timer. Members that the script itself stops are left out. Absent in virtual time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduling_slack_ns: Option<u64>,
    /// Shortest time in nanoseconds for detection by heartbeats alone: a heartbeat may have left just before the fault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detection_least_ns: Option<u64>,
    /// Longest time in nanoseconds from an end to the time at which the last link concerned was up again, before any
    /// other event began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovered_after_ns: Option<u64>,
    /// Number of begins that no member detected.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unnoticed: u64,
}

impl EventRecord {
    /// Returns the line for the begin or end, at `member`, of an event with its number. `time` numbers the repetitions
    /// of the event from one.
    #[must_use]
    pub fn of_fault(
        now: Instant,
        member: &str,
        number: usize,
        time: u64,
        event: &FaultEvent,
        begins: bool,
    ) -> Self {
        let fields = event.line_fields(number, time, begins);
        Self {
            at_ns: now.0,
            member: member.to_owned(),
            kind: KIND.to_owned(),
            text: event.line_text(begins),
            fields: fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
        }
    }
}
