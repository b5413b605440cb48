//! What anybody who may open a standing rack's control socket can ask, and what it answers: one JSON object per line.
//!
//! `docs/control-socket.md` is the law for these lines; a test holds every example in it against these types. Requests
//! refuse fields they do not know, so that a misspelled wish is not granted as another one.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::links::{LinkStatus, PathStatus};
use crate::order::Joined;
use crate::report::{EventRecord, MemoryReport, PathReport, Report, Verdict};

/// Version of this language; grows when a line changes its meaning.
pub const PROTOCOL: u32 = 1;

/// A longer request is a mistake.
pub const REQUEST_BYTES_MAX: usize = 64 << 10;

/// A wish that names nothing more.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

/// One line from a client.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// How is everybody?
    Status(Nothing),
    /// Take the rack down.
    Down(Nothing),
    /// Tell what happens from now on.
    Subscribe(Nothing),
    /// Give me a vacant seat.
    Join(Join),
    /// Take whoever sits there out, in order; the rack stays.
    Leave(Join),
    /// Let these faults befall the rack.
    Inject(Inject),
    /// Another job for a rack that is up, whatever it holds: refused, with what there is instead.
    Job(Value),
}

/// Which seat.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Join {
    /// Its name in the plan.
    pub seat: String,
}

/// Which faults.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Inject {
    /// The text of a fault script; times count from now.
    pub script: String,
    /// The text was made from words of a command line: mistakes are said without a place in it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inline: bool,
}

/// Faults that are on their way.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Injection {
    /// Events of the script.
    pub events: usize,
}

/// One line from the rack.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// To `status`.
    Status(Box<RackStatus>),
    /// To `down`, once no member is left.
    Down(Box<Report>),
    /// To `subscribe`; events follow.
    Subscribed(Nothing),
    /// Something happened.
    Event(EventRecord),
    /// The client was too slow for this many events.
    Missed(u64),
    /// To `join`: the seat, with its wires attached. From here on the connection is the seat's.
    Joined(Box<Joined>),
    /// To `leave`: nobody sits there any more.
    Left(Nothing),
    /// To `inject`: the members have been told.
    Injected(Injection),
    /// To a request that is refused or not understood.
    Error(Refusal),
}

/// Why not.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Which kind of refusal it is, for programs.
    #[serde(default)]
    pub kind: RefusalKind,
}

/// What a program can tell refusals apart by.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RefusalKind {
    /// The line is no request of this language.
    NotUnderstood,
    /// It cannot be had, or not now.
    #[default]
    Refused,
}

/// How a rack is.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
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
    /// How the job went; absent while it is not over, where there is none, and where the file expects something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Identity of the rack on the wire.
    pub epoch: u16,
    /// Hash of the plan.
    pub config_hash: String,
    /// How long there has been a supervisor.
    pub uptime_ns: u64,
    /// Links that both ends say carry data; an end that did not answer does not count.
    pub links_up: usize,
    /// Links of the plan.
    pub links_total: usize,
    /// Members in the plan's order.
    pub members: Vec<MemberStatus>,
    /// Faults in effect now, scripted and injected, by event and member.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<ActiveFault>,
    /// Both directions of every link with an end here, in the plan's order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<LinkStatus>,
}

/// A fault in effect.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct ActiveFault {
    /// Kind and place, as the script has them.
    pub what: String,
    /// Member that applies it.
    pub member: String,
    /// Time since it began.
    pub age_ns: u64,
}

/// How a member is.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct MemberStatus {
    /// Its name.
    pub name: String,
    /// `gpu node` or `switch`.
    pub role: String,
    /// Its process; none if the seat is vacant.
    pub pid: Option<u32>,
    /// The server it sits in.
    pub server: String,
    /// Its partition.
    pub tenant: u32,
    /// `vacant`, `starting`, `working`, `up`, `silent` or `lost`.
    pub state: String,
    /// How its part of the job went; absent while it is not over, and of those who do not do it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// How a lost one ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Memory registered with the fabric.
    pub memory_used_bytes: Option<u64>,
    /// Memory of the node.
    pub memory_bytes: u64,
    /// How that memory is held and used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryReport>,
    /// Its links that carry data, as it sees them.
    pub links_up: Option<u16>,
    /// Its links that carry no data, by place in the plan, as it sees them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links_down: Vec<u16>,
    /// Its links.
    pub links_total: usize,
    /// How long its process has been there.
    pub uptime_ns: Option<u64>,
    /// Its live paths to all other GPU nodes; absent for switches and for those who did not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paths: Option<Vec<PathStatus>>,
    /// Operations of its job over shared memory and in frames, where it could share memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried: Option<PathReport>,
}

impl Answer {
    /// A refusal.
    pub fn refuse(what: impl Into<String>, hint: Option<&str>) -> Self {
        Self::refuse_as(RefusalKind::Refused, what, hint)
    }

    fn refuse_as(kind: RefusalKind, what: impl Into<String>, hint: Option<&str>) -> Self {
        Self::Error(Refusal { what: what.into(), hint: hint.map(str::to_owned), kind })
    }

    /// The line, with its end.
    pub fn line(&self) -> Vec<u8> {
        // These types have no maps with other keys than strings, which is all that could fail.
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line
    }
}

impl Request {
    /// From a client's line.
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
    fn every_example_of_the_document_is_a_line_of_this_language() {
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
            Request::Status(Nothing {}),
            Request::Down(Nothing {}),
            Request::Subscribe(Nothing {}),
            join,
            leave,
        ] {
            assert!(requests.contains(&request), "the document lacks an example of {request:?}");
        }
        assert!(examples.len() > requests.len(), "the document shows answers as well");
    }

    #[test]
    fn a_misspelled_wish_is_not_granted_as_another_one() {
        for line in
            ["{\"status\": {\"name\": 1}}", "{\"Status\": {}}", "{\"join\": {\"seat\": \"n1\", \"x\": 1}}"]
        {
            assert!(Request::from_line(line.as_bytes()).is_err(), "{line}");
        }
    }
}
