//! State at rest: once the job is over and all faults have ended, a seat reads eight bytes from each neighbour and reports its counters.
//!
//! The supervisor names the live members ([`rackloom_control::order::Order::Heal`]) and repeats the order while answers are missing. The reads do
//! not change measurements: the report is made before the first read, and only findings of the oracles are added to it.

use rackloom_jobs::Seeds;
use rackloom_jobs::report::MemberReport;
use rackloom_jobs::rest::{self, LinkEnd, Rest};
use rackloom_plan::Plan;
use rackloom_protocol::{
    Command, Endpoint, Event, Inspect, Instant, LocalRange, Member, MemberRole, NodeId, OperationError,
    OperationId, RegionConfig, RemoteAddress,
};

/// Base of the identities of these reads. Jobs use smaller ones.
const FIRST_QUESTION: u64 = 1 << 63;
const WORD_BYTES: u64 = 8;

/// Read of eight bytes from one neighbour.
#[derive(Clone, Copy, Debug)]
struct Question {
    target: NodeId,
    /// Where its word is; nothing where it does no job.
    there: Option<RegionConfig>,
    /// Under which name, if it is under way.
    operation: Option<OperationId>,
    is_answered: bool,
}

/// One seat after the job.
#[derive(Debug)]
pub(super) struct Afterwards {
    questions: Vec<Question>,
    next: u64,
    /// Where answers go; nothing where this seat does no job.
    here: Option<RegionConfig>,
    /// The seat's report as it was before, without its job's part.
    before: Box<MemberReport>,
}

/// The first region of a node's job that peers may read a word of.
fn word(regions: &[RegionConfig]) -> Option<RegionConfig> {
    regions.iter().find(|region| region.access.read && region.length >= WORD_BYTES).copied()
}

fn is_node(plan: &Plan, node: NodeId) -> bool {
    plan.members.get(node.index()).is_some_and(|member| member.role == MemberRole::Endpoint)
}

impl Afterwards {
    /// Nothing asked yet; switches ask nothing. `regions` are those of the seat's own job.
    pub(super) fn begin(
        plan: &Plan,
        node: NodeId,
        living: &[NodeId],
        seeds: Seeds,
        regions: &[RegionConfig],
        before: MemberReport,
    ) -> Self {
        let edges: Vec<_> = plan.links.iter().map(|link| link.edge).collect();
        let lives = |other: NodeId| living.contains(&other);
        let targets = rest::whom_to_ask(&edges, node, |other| is_node(plan, other), lives).into_iter();
        let targets = targets.filter(|_| is_node(plan, node));
        let question = |target| {
            let there = word(&rackloom_jobs::build(plan, target, seeds).regions());
            Question { target, there, operation: None, is_answered: false }
        };
        let questions = targets.map(question).collect();
        Self { questions, next: FIRST_QUESTION, here: word(regions), before: Box::new(before) }
    }

    /// Starts a read from each neighbour without an answer and without a read in flight. Returns whether a read was started.
    pub(super) fn ask(&mut self, now: Instant, endpoint: &mut Endpoint) -> bool {
        let Self { questions, next, here, .. } = self;
        let mut any = false;
        for question in questions.iter_mut().filter(|one| !one.is_answered && one.operation.is_none()) {
            let (Some(here), Some(there)) = (&here, &question.there) else {
                // Where one of the two has no job, there is no word: a way to the other one is enough.
                question.is_answered = endpoint.is_reachable(question.target);
                continue;
            };
            let operation = OperationId(*next);
            let target =
                RemoteAddress { node: question.target, region: there.region, offset: 0, key: there.key };
            let into = LocalRange { region: here.region, offset: 0, length: WORD_BYTES };
            if endpoint.handle_command(now, Command::Load { operation, target, into }).is_ok() {
                (question.operation, any) = (Some(operation), true);
                *next += 1;
            }
        }
        any
    }

    /// Returns whether this event completes one of these reads.
    pub(super) fn hear(&mut self, event: &Event) -> bool {
        let Event::Completed { operation, result } = *event else { return false };
        if operation.0 < FIRST_QUESTION {
            return false;
        }
        if let Some(question) = self.questions.iter_mut().find(|one| one.operation == Some(operation)) {
            question.operation = None;
            // Whoever says no has heard the question; what was lost because its link was still coming back is asked again.
            let is_lost = matches!(result, Err(OperationError::Unreachable | OperationError::OutcomeUnknown));
            question.is_answered = !is_lost;
        }
        true
    }

    /// Returns the report as it was when all faults had ended, with later findings of the oracles.
    pub(super) fn keep_what_was(self, report: &mut MemberReport) {
        if report.events.broken_promise().is_none() {
            (report.ports, report.events) = (self.before.ports, self.before.events);
        }
    }

    /// Returns the state of the seat now.
    pub(super) fn rest(&self, member: &dyn Inspect, edges: &[u16]) -> Rest {
        let (answered, unanswered): (Vec<&Question>, Vec<&Question>) =
            self.questions.iter().partition(|one| one.is_answered);
        Rest {
            answered: answered.len() as u64,
            unanswered: unanswered.iter().map(|one| one.target.0).collect(),
            ends: LinkEnd::of_member(member, edges.iter().copied()),
        }
    }
}
