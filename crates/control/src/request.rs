//! Requests and answers on the control socket of a standing rack: one JSON object per line.
//!
//! `docs/control-socket.md` defines these lines, and a test reads every example in it. Unknown fields of a request are errors, so that a
//! misspelled request has no other effect.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::links::{LinkStatus, PathStatus};
use crate::notice::IpCounters;
use crate::order::Joined;
use crate::report::{EventRecord, MemoryReport, PathReport, Report, Verdict};
use crate::submitted::{JobList, JobNumber, Submission};

/// Version of the protocol. It grows when a line changes its meaning.
pub const PROTOCOL: u32 = 1;

/// Role of processes of GPU nodes, in a status.
pub const PROCESS: &str = "process";

/// Maximum length of a request, in bytes.
pub const REQUEST_BYTES_MAX: usize = 64 << 10;

/// Object without fields.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

/// Content of a status.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct StatusOptions {
    /// True without the paths of all nodes, whose number grows with the square of the rack: for clients that request a status again and again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub brief: bool,
}

/// Line from a client.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// Requests the status of the rack.
    Status(StatusOptions),
    /// Ends the rack.
    Down(Nothing),
    /// Requests all events from now on.
    Subscribe(Nothing),
    /// Requests the latest events.
    Events(Nothing),
    /// Requests a vacant seat.
    Join(Join),
    /// Requests the first vacant process seat of a GPU node.
    JoinProcess(Join),
    /// Makes one member leave in order. The rack stays.
    Leave(Join),
    /// Injects faults.
    Inject(Inject),
    /// Ends all faults that are in effect or still to come.
    EndFaults(Nothing),
    /// Requests another job for a running rack. Always refused, with a hint.
    Job(Value),
    /// Submits a job, which starts when its nodes are free.
    SubmitJob(Box<Submission>),
    /// Requests the jobs, the accounts of tenants and the use of nodes.
    ListJobs(Nothing),
    /// Cancels a job.
    CancelJob(JobNumber),
    /// Adds a spare node, for jobs from now on.
    AddNode(Join),
}

/// Latest events of a rack, in the order in which the supervisor received them.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub struct EventList {
    /// Events.
    pub events: Vec<EventRecord>,
    /// Number of earlier events that are not kept.
    pub omitted: u64,
}

/// Seat of a request.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Join {
    /// Name of the member in the plan.
    pub seat: String,
}

/// Faults of a request.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Inject {
    /// Text of a fault script. Times count from now.
    pub script: String,
    /// True if the text was made from options: errors then name no lines of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inline: bool,
}

/// Result of an injection.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Injection {
    /// Number of events in the script.
    pub events: usize,
}

/// Line from the rack.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Answer to `status`.
    Status(Box<RackStatus>),
    /// Answer to `down`, once no member is left.
    Down(Box<Report>),
    /// Answer to `subscribe`. Events follow.
    Subscribed(Nothing),
    /// Answer to `events`.
    Events(EventList),
    /// An event, after `subscribe`.
    Event(EventRecord),
    /// Number of events that the client was too slow to receive.
    Missed(u64),
    /// Answer to `join` and `join-process`: the seat. Descriptors of its wires are sent with the line. The connection is the control socket of the seat afterwards.
    Joined(Box<Joined>),
    /// Answer to `leave`: the seat is vacant.
    Left(Nothing),
    /// Answer to `inject`: the members have received the faults.
    Injected(Injection),
    /// Answer to `end-faults`: the members have received the request.
    FaultsEnded(Nothing),
    /// Answer to `submit-job`: the number of the job.
    Submitted(JobNumber),
    /// Answer to `list-jobs`.
    Jobs(Box<JobList>),
    /// Answer to `cancel-job`: the job ends, or has been taken out of the queue.
    Cancelled(JobNumber),
    /// Answer to `add-node`.
    NodeAdded(Nothing),
    /// Answer to a request that is refused or not understood.
    Error(Refusal),
}

/// Refusal of a request.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// Cause.
    pub what: String,
    /// Remedy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Kind of refusal, for programs.
    #[serde(default)]
    pub kind: RefusalKind,
}

/// Kind of refusal.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RefusalKind {
    /// The line is not a request.
    NotUnderstood,
    /// The request cannot be granted, or not now.
    #[default]
    Refused,
}

/// Status of a rack. Fields that a rack of another version leaves out are empty.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(default)]
pub struct RackStatus {
    /// [`PROTOCOL`].
    pub protocol: u32,
    /// Name of the rack.
    pub name: String,
    /// Process of the supervisor.
    pub pid: u32,
    /// `starting`, `up` or `going`.
    pub state: String,
    /// Name of the wire.
    pub wire: String,
    /// Name of the job.
    pub job: String,
    /// Verdict of the job; absent while it runs, without a job, and if the rack file has expectations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Identity of the rack on the wire.
    pub epoch: u16,
    /// Hash of the plan.
    pub config_hash: String,
    /// Time since the supervisor started, in nanoseconds.
    pub uptime_ns: u64,
    /// Number of links that carry data at both ends. An end that did not answer does not count.
    pub links_up: usize,
    /// Number of links in the plan.
    pub links_total: usize,
    /// Members in the plan's order.
    pub members: Vec<MemberStatus>,
    /// Faults in effect now, scripted and injected, by event and member.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<ActiveFault>,
    /// Both directions of every link with an end here, in the plan's order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<LinkStatus>,
    /// IP over the fabric; absent in a rack without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip: Option<IpStatus>,
    /// Number of ports of the RDMA device of a seat; absent in a rack without process seats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_ports: Option<usize>,
    /// Address at which metrics are served over HTTP; absent if they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<String>,
    /// Submitted jobs, accounts of tenants and use of nodes; absent before the first submission.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submitted: Option<JobList>,
    /// Files in which the rack records frames; absent in a rack without captures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub captures: Option<CaptureStatus>,
}

/// Files in which a rack records frames.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct CaptureStatus {
    /// Directory of the files.
    pub directory: PathBuf,
    /// Number of the run, which the names of its files contain: the monotonic clock at its start, in nanoseconds.
    pub run: u64,
}

/// IP over the fabric in a rack for programs.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(default)]
pub struct IpStatus {
    /// Network of all seats, such as `10.82.0.0/16`.
    pub network: String,
    /// Reason why no seat has an interface; absent if they have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
}

/// Fault in effect.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct ActiveFault {
    /// Number of the fault in its rack. All members that apply one fault have the same number.
    #[serde(default)]
    pub fault: usize,
    /// Kind and target, in the terms of the script.
    pub what: String,
    /// Member that applies it.
    pub member: String,
    /// Time since the fault began, in nanoseconds.
    pub age_ns: u64,
}

/// Status of a member.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct MemberStatus {
    /// Name of the member.
    pub name: String,
    /// `gpu node`, `switch`, or `process` of a GPU node. Processes without a holder are left out.
    pub role: String,
    /// Process of the member; null if the seat is vacant.
    pub pid: Option<u32>,
    /// Server of the member.
    pub server: String,
    /// Tenant of the member.
    pub tenant: u32,
    /// `vacant`, `starting`, `working`, `up`, `silent` or `lost`.
    pub state: String,
    /// Verdict about its part of the job; absent while it runs, and for members without a part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// End of the process of a lost member.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Memory registered with the fabric, in bytes.
    pub memory_used_bytes: Option<u64>,
    /// Memory of the node, in bytes.
    pub memory_bytes: u64,
    /// Details of that memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryReport>,
    /// Number of its links that carry data at its end.
    pub links_up: Option<u16>,
    /// Links that carry no data at its end, by index in the plan.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links_down: Vec<u16>,
    /// Number of its links.
    pub links_total: usize,
    /// Time since its process took the seat, in nanoseconds.
    pub uptime_ns: Option<u64>,
    /// Time at which the member read its figures, on the rack's clock; absent if it did not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_ns: Option<u64>,
    /// Processor time of its process so far, in nanoseconds; null if it did not answer.
    #[serde(default)]
    pub processor_ns: Option<u64>,
    /// Incarnation of the member; null if it did not answer.
    #[serde(default)]
    pub incarnation: Option<u64>,
    /// Live paths to all other GPU nodes; absent for switches and for members that did not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paths: Option<Vec<PathStatus>>,
    /// Operations of its job over mapped memory and in frames; absent if it shares no memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried: Option<PathReport>,
    /// Frames of IP over the fabric; absent for members without an interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip: Option<IpCounters>,
}

impl Answer {
    /// Returns a refusal.
    pub fn refuse(what: impl Into<String>, hint: Option<&str>) -> Self {
        Self::refuse_as(RefusalKind::Refused, what, hint)
    }

    fn refuse_as(kind: RefusalKind, what: impl Into<String>, hint: Option<&str>) -> Self {
        Self::Error(Refusal { what: what.into(), hint: hint.map(str::to_owned), kind })
    }

    /// Returns the answer as a line, with its newline.
    pub fn line(&self) -> Vec<u8> {
        // These types have no maps with other keys than strings, which is all that could fail.
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line
    }
}

impl Request {
    /// Reads a client's line.
    ///
    /// # Errors
    /// The answer to a line that is not a request.
    pub fn from_line(line: &[u8]) -> Result<Self, Answer> {
        serde_json::from_slice(line).map_err(|error| {
            Answer::refuse_as(
                RefusalKind::NotUnderstood,
                format!("not a request: {error}"),
                Some("one JSON object per line: {\"status\": {}}, {\"down\": {}}, {\"subscribe\": {}}, {\"join\": {\"seat\": \"n2\"}}"),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of the fenced examples.
    fn examples(document: &str) -> Vec<&str> {
        let blocks = document.split("```json\n").skip(1).filter_map(|block| block.split("```").next());
        blocks.flat_map(str::lines).collect()
    }

    #[test]
    fn every_example_of_the_document_is_a_request_or_an_answer() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/control-socket.md");
        let document = std::fs::read_to_string(path).expect("docs/control-socket.md is there");
        let examples = examples(&document);
        let mut requests = Vec::new();
        for line in &examples {
            match Request::from_line(line.as_bytes()) {
                Ok(request) => requests.push(request),
                Err(_) => drop(
                    serde_json::from_str::<Answer>(line).unwrap_or_else(|error| panic!("{line}: {error}")),
                ),
            }
        }
        let join = Request::Join(Join { seat: "n2".into() });
        let leave = Request::Leave(Join { seat: "n2".into() });
        for request in [
            Request::Status(StatusOptions::default()),
            Request::Status(StatusOptions { brief: true }),
            Request::Down(Nothing {}),
            Request::Subscribe(Nothing {}),
            join,
            leave,
            Request::EndFaults(Nothing {}),
            Request::Events(Nothing {}),
            Request::ListJobs(Nothing {}),
            Request::CancelJob(JobNumber { job: 1 }),
            Request::AddNode(Join { seat: "n2".into() }),
        ] {
            assert!(requests.contains(&request), "the document lacks an example of {request:?}");
        }
        assert!(examples.len() > requests.len(), "the document shows answers as well");
    }

    #[test]
    fn a_misspelled_request_is_refused() {
        for line in
            ["{\"status\": {\"name\": 1}}", "{\"Status\": {}}", "{\"join\": {\"seat\": \"n1\", \"x\": 1}}"]
        {
            assert!(Request::from_line(line.as_bytes()).is_err(), "{line}");
        }
    }
}
