//! Random fault scripts for campaigns. Each script uses a few kinds of faults only, at very different rates.
//!
//! Restriction to few kinds finds more faults: a script in which all kinds are possible rarely has many events of one kind. So each
//! script first draws its kinds (Groce et al., "Swarm Testing", ISSTA 2012). Every link fault ends, so a job that does not end
//! shows an error. A script follows from the seed alone.
//!
//! The kinds are those of the document, plus cables and members that are connected late.

use rackloom_protocol::NodeId;

use super::{
    Conditions, ExpectedEnd, Fault, FaultEvent, FaultExpectations, FaultScript, FramePart, JobPosition,
    LinkDirection, MemoryConditions, RequiredEvents, Timing, Trigger, loss_of, select,
};
use crate::impair::Direction;
use crate::model::loss::LossByKind;
use crate::model::pick::{OPERATION_NAMES, Pick};
use crate::model::plan::Plan;
use crate::model::random::{Stream, below};
use crate::schema::EVERY_NS_MIN;

const EVENTS_MAX: u64 = 6;
/// One of this number of scripts kills a member.
const KILLS_ONE_IN: u64 = 4;
/// One of this number of events waits for the job or for frames.
const WAITS_ONE_IN: u64 = 4;
/// Exclusive upper bound of frames that an event waits for, and of packet numbers that it selects.
const FRAMES_MAX: u64 = 200;
/// Exclusive upper bound of runs and steps that an event waits for.
const PROGRESS_MAX: u64 = 8;

/// Time range of a random script.
#[derive(Clone, Copy, Debug)]
pub struct DrawLimits {
    /// Latest beginning of a fault, in nanoseconds.
    pub begin_ns: u64,
    /// Longest duration of a fault, in nanoseconds.
    pub last_ns: u64,
}

/// Kind of a random event. Kills are drawn separately, with a lower probability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Loss,
    LossByFrame,
    LossByContent,
    Corrupt,
    Duplicate,
    Reorder,
    Drop,
    Down,
    Unplug,
    /// Cable, plane or all cables of a member that are not connected at the beginning.
    PluggedLate,
    Partition,
    Delay,
    Slow,
    SlowMemory,
    FailMemory,
    Revoke,
    Pause,
}

const KINDS: [Kind; 17] = [
    Kind::Loss,
    Kind::LossByFrame,
    Kind::LossByContent,
    Kind::Corrupt,
    Kind::Duplicate,
    Kind::Reorder,
    Kind::Drop,
    Kind::Down,
    Kind::Unplug,
    Kind::PluggedLate,
    Kind::Partition,
    Kind::Delay,
    Kind::Slow,
    Kind::SlowMemory,
    Kind::FailMemory,
    Kind::Revoke,
    Kind::Pause,
];

impl Kind {
    /// Returns true if the fault is on or off and does not grow.
    const fn is_sudden(self) -> bool {
        matches!(
            self,
            Self::Drop
                | Self::Down
                | Self::Unplug
                | Self::PluggedLate
                | Self::Partition
                | Self::Revoke
                | Self::Pause
        )
    }
}

/// Draws script number `seed` for this plan's rack.
#[must_use]
pub fn draw(plan: &Plan, seed: u64, reach: DrawLimits) -> FaultScript {
    let mut draws = RandomDraws { stream: Stream::new(seed), drawn: 0 };
    let enabled: Vec<Kind> = KINDS.into_iter().filter(|_| draws.one_in(3)).collect();
    let count = 1 + draws.below(EVENTS_MAX);
    let mut events = Vec::new();
    for _ in 0..count {
        let kind = if enabled.is_empty() { Kind::Loss } else { draws.of(&enabled) };
        events.push(event(&mut draws, plan, kind, reach));
    }
    if draws.one_in(KILLS_ONE_IN) {
        events.push(kill(&mut draws, plan, reach));
    }
    finished(format!("drawn-{seed}"), events)
}

/// Returns a script with an expectation that holds for every script: correct results or a clean error.
pub(super) fn finished(name: String, mut events: Vec<FaultEvent>) -> FaultScript {
    for (line, event) in (1..).zip(&mut events) {
        event.line = line;
    }
    let mut script = FaultScript { name, events, ..FaultScript::default() };
    let lost = script.kills();
    script.expect = FaultExpectations {
        ends: ExpectedEnd::Either,
        happen: RequiredEvents::Any,
        lost,
        ..FaultExpectations::default()
    };
    script
}

/// Stream of random numbers in the order of use.
struct RandomDraws {
    stream: Stream,
    drawn: u64,
}

impl RandomDraws {
    fn below(&mut self, bound: u64) -> u64 {
        self.drawn += 1;
        below(self.stream.at(self.drawn), bound.max(1))
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    fn of<T: Copy>(&mut self, things: &[T]) -> T {
        things[self.below(things.len() as u64) as usize]
    }

    /// Returns a rate between one in a thousand and one. Each order of magnitude is equally likely.
    fn rate(&mut self) -> f64 {
        self.of(&[0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 0.6, 1.0])
    }

    /// Returns a time up to a maximum. Each order of magnitude is equally likely.
    fn time_ns(&mut self, most_ns: u64) -> u64 {
        let shift = self.below(12);
        1 + self.below((most_ns >> shift).max(1))
    }

    fn member(&mut self, plan: &Plan) -> NodeId {
        NodeId(self.below(plan.members.len() as u64) as u16)
    }

    /// Returns a GPU node.
    fn owner(&mut self, plan: &Plan) -> NodeId {
        NodeId(self.below(plan.endpoint_count() as u64) as u16)
    }
}

fn event(draws: &mut RandomDraws, plan: &Plan, kind: Kind, reach: DrawLimits) -> FaultEvent {
    let fault = fault(draws, plan, kind, reach);
    let mut timing = timing(draws, kind, reach);
    let mut trigger = trigger(draws, plan, reach);
    match kind {
        Kind::PluggedLate => {
            trigger = Trigger::At(0);
            timing = Timing { for_ns: timing.for_ns, ..Timing::default() };
        }
        Kind::Drop | Kind::Revoke => timing.for_ns = None,
        _ => {}
    }
    FaultEvent { fault, trigger, timing, label: format!("{kind:?}"), line: 0 }
}

fn kill(draws: &mut RandomDraws, plan: &Plan, reach: DrawLimits) -> FaultEvent {
    let fault = Fault::Kill(vec![draws.member(plan)]);
    let trigger = trigger(draws, plan, reach);
    // In every second script a new incarnation follows.
    let for_ns = draws.one_in(2).then(|| draws.time_ns(reach.last_ns));
    let timing = Timing { for_ns, ..Timing::default() };
    FaultEvent { fault, trigger, timing, label: "Kill".to_owned(), line: 0 }
}

fn timing(draws: &mut RandomDraws, kind: Kind, reach: DrawLimits) -> Timing {
    let for_ns = draws.time_ns(reach.last_ns);
    let repeats = draws.one_in(4);
    Timing {
        for_ns: Some(for_ns),
        ramp_ns: if draws.one_in(4) && !kind.is_sudden() { for_ns / 2 } else { 0 },
        every_ns: repeats.then_some(for_ns.saturating_mul(2).max(EVERY_NS_MIN)),
        times: repeats.then(|| 2 + draws.below(8)),
    }
}

/// Returns a time, or sometimes a number of frames or a run and step of the job, if it has them.
fn trigger(draws: &mut RandomDraws, plan: &Plan, reach: DrawLimits) -> Trigger {
    let at = Trigger::At(draws.below(reach.begin_ns));
    if !draws.one_in(WAITS_ONE_IN) {
        return at;
    }
    if plan.job.kind.has_steps() && draws.one_in(2) {
        let last =
            JobPosition::last(plan).unwrap_or(JobPosition { run: PROGRESS_MAX / 2, step: PROGRESS_MAX });
        let run = 1 + draws.below(PROGRESS_MAX) / 2;
        let step = 1 + draws.below(PROGRESS_MAX);
        let position = JobPosition { run: run.min(last.run), step: step.min(last.step) };
        return Trigger::Reached { node: draws.owner(plan), position };
    }
    Trigger::Frames { direction: one_way(draws, plan), count: 1 + draws.below(FRAMES_MAX) }
}

fn fault(draws: &mut RandomDraws, plan: &Plan, kind: Kind, reach: DrawLimits) -> Fault {
    match kind {
        Kind::Pause => Fault::Pause(vec![draws.member(plan)]),
        Kind::Revoke => Fault::Revoke(vec![draws.owner(plan)]),
        Kind::SlowMemory => {
            let conditions = MemoryConditions { late_ns: draws.time_ns(reach.begin_ns), fail: 0.0 };
            Fault::Memory { members: vec![draws.owner(plan)], conditions }
        }
        Kind::FailMemory => {
            let conditions = MemoryConditions { late_ns: 0, fail: draws.rate() };
            Fault::Memory { members: vec![draws.owner(plan)], conditions }
        }
        Kind::Drop => {
            let mut numbers: Vec<_> = (0..1 + draws.below(4)).map(|_| 1 + draws.below(FRAMES_MAX)).collect();
            numbers.sort_unstable();
            numbers.dedup();
            Fault::Drop { directions: directions(draws, plan), numbers }
        }
        Kind::Partition => {
            let members: Vec<_> =
                (0..plan.members.len() as u16).map(NodeId).filter(|_| draws.one_in(3)).collect();
            let sides = select::boundary(plan, &members);
            let directions = if sides.is_empty() { directions(draws, plan) } else { sides };
            Fault::Links { directions, conditions: Conditions { is_cut: true, ..Conditions::default() } }
        }
        _ => {
            let directions =
                if kind == Kind::PluggedLate { cables(draws, plan) } else { directions(draws, plan) };
            let conditions = conditions(draws, plan, &directions, kind, reach);
            Fault::Links { directions, conditions }
        }
    }
}

fn conditions(
    draws: &mut RandomDraws,
    plan: &Plan,
    directions: &[LinkDirection],
    kind: Kind,
    reach: DrawLimits,
) -> Conditions {
    let none = Conditions::default();
    let rate = draws.rate();
    match kind {
        Kind::Corrupt => Conditions { corrupt: rate, corrupt_part: draws.of(FramePart::ALL), ..none },
        Kind::Duplicate => Conditions { duplicate: rate, ..none },
        Kind::Reorder => Conditions { reorder: rate, ..none },
        Kind::Down => Conditions { is_cut: true, ..none },
        Kind::Unplug | Kind::PluggedLate => Conditions { is_cut: true, is_unplugged: true, ..none },
        Kind::Delay => Conditions { delay_ns: draws.time_ns(reach.begin_ns), ..none },
        Kind::LossByFrame => {
            let kinds: Vec<_> = LossByKind::kinds().map(|(kind, _)| kind).collect();
            Conditions { loss_by_kind: loss_of(&[draws.of(&kinds)], rate), ..none }
        }
        Kind::LossByContent => Conditions { picked: Some((pick(draws), rate)), ..none },
        // A rate share applies only to links with a rate.
        Kind::Slow if directions.iter().all(|direction| has_rate(plan, *direction)) => {
            Conditions { rate_share: draws.of(&[0.9, 0.5, 0.25, 0.1, 0.01]), ..none }
        }
        _ => Conditions { loss: rate, ..none },
    }
}

fn has_rate(plan: &Plan, direction: LinkDirection) -> bool {
    plan.links[usize::from(direction.edge)].profile.rate_bits_per_s.is_some()
}

/// Returns a selection by one or two kinds of operations, or by a range of packet numbers, or both.
fn pick(draws: &mut RandomDraws) -> Pick {
    let form = draws.below(3);
    let count = if form == 1 { 0 } else { 1 + draws.below(2) };
    let operations: Vec<_> = (0..count).map(|_| draws.below(OPERATION_NAMES.len() as u64) as usize).collect();
    let first = draws.below(FRAMES_MAX) as u32;
    let sequence = (form > 0).then(|| (first, first + draws.below(FRAMES_MAX) as u32));
    Pick::new(operations, sequence)
}

fn one_way(draws: &mut RandomDraws, plan: &Plan) -> LinkDirection {
    let edge = draws.below(plan.links.len() as u64) as u16;
    LinkDirection { edge, direction: draws.of(&[Direction::Forward, Direction::Backward]) }
}

/// Returns one direction, one link, all links of a member, all links of a plane, or all links.
fn directions(draws: &mut RandomDraws, plan: &Plan) -> Vec<LinkDirection> {
    match draws.below(10) {
        0..=4 => vec![one_way(draws, plan)],
        5..=6 => {
            let edge = one_way(draws, plan).edge;
            links_where(plan, |known, _| known == edge)
        }
        7..=8 => cables(draws, plan),
        _ => links_where(plan, |_, _| true),
    }
}

/// Returns cables that are connected together: one link, all links of a member, or all links of a plane.
fn cables(draws: &mut RandomDraws, plan: &Plan) -> Vec<LinkDirection> {
    let (one, member) = (one_way(draws, plan).edge, draws.member(plan));
    let plane = plan.links[usize::from(one)].edge.plane;
    match draws.below(3) {
        0 => links_where(plan, |edge, _| edge == one),
        1 => links_where(plan, |_, ends| ends.contains(&member)),
        _ => links_where(plan, |edge, _| plan.links[usize::from(edge)].edge.plane == plane),
    }
}

fn links_where(plan: &Plan, is_meant: impl Fn(u16, [NodeId; 2]) -> bool) -> Vec<LinkDirection> {
    let links = (0..).zip(&plan.links).filter(|(edge, link)| is_meant(*edge, [link.edge.a, link.edge.b]));
    let both =
        |edge| [Direction::Forward, Direction::Backward].map(|direction| LinkDirection { edge, direction });
    links.flat_map(|(edge, _)| both(edge)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that some script connects a cable late, some script a member with all of its links, and some script a plane.
    #[test]
    fn cables_members_and_planes_come_late() {
        let text =
            "{name: r, shape: {star: {nodes: 4, planes: 2}}, link: {rate: 100Gbit/s}, job: {collective: {}}}";
        let plan = Plan::parse(text, "r").unwrap_or_else(|error| panic!("{error}"));
        let reach = DrawLimits { begin_ns: 1_000_000, last_ns: 5_000_000 };
        let scripts: Vec<_> = (0..400).map(|seed| draw(&plan, seed, reach)).collect();
        let events = scripts.iter().flat_map(|script| &script.events);
        let is_late = |event: &&FaultEvent| event.trigger == Trigger::At(0) && event.timing.for_ns.is_some();
        let late = events.filter(is_late).filter_map(|event| match &event.fault {
            Fault::Links { directions, conditions } if conditions.is_unplugged => Some(directions.clone()),
            _ => None,
        });
        let late: Vec<_> = late.collect();
        let of_plane = links_where(&plan, |edge, _| plan.links[usize::from(edge)].edge.plane.0 == 1);
        let of_member = links_where(&plan, |_, ends| ends.contains(&NodeId(2)));
        let cable = links_where(&plan, |edge, _| edge == 0);
        for (what, directions) in [("plane 1", of_plane), ("n2", of_member), ("a cable", cable)] {
            assert!(late.contains(&directions), "{what} never comes late");
        }
    }

    /// Uses a litmus of one round and traffic with few messages, so that most drawn numbers are beyond the job.
    #[test]
    fn drawn_scripts_of_every_job_can_be_read_back() {
        for job in [
            "litmus: {}",
            "litmus: {rounds: 3}",
            "traffic: {messages: 1}",
            "latency: {}",
            "bandwidth: {}",
            "collective: {}",
        ] {
            let text = format!(
                "{{name: r, shape: {{ring: {{nodes: 3}}}}, link: {{rate: 100Gbit/s}}, job: {{{job}}}}}"
            );
            let plan = Plan::parse(&text, "r").unwrap_or_else(|error| panic!("{error}"));
            let reach = DrawLimits { begin_ns: 1_000_000, last_ns: 5_000_000 };
            let texts: Vec<_> = (0..200).map(|seed| draw(&plan, seed, reach).to_text(&plan)).collect();
            assert!(
                texts.iter().any(|text| text.contains("when: {")),
                "no script of {job} waits for the job"
            );
            for text in &texts {
                FaultScript::parse(text, "drawn", &plan)
                    .unwrap_or_else(|error| panic!("{job}: {error}\n{text}"));
            }
        }
    }

    #[test]
    fn drawn_scripts_depend_on_the_seed_only_and_read_back() {
        let text =
            "{name: r, shape: {star: {nodes: 4, planes: 2}}, link: {rate: 100Gbit/s}, job: {collective: {}}}";
        let plan = Plan::parse(text, "r").unwrap_or_else(|error| panic!("{error}"));
        let reach = DrawLimits { begin_ns: 1_000_000, last_ns: 5_000_000 };
        let mut texts: Vec<_> = (0..400).map(|seed| draw(&plan, seed, reach).to_text(&plan)).collect();
        assert_eq!(texts[7], draw(&plan, 7, reach).to_text(&plan));
        for (seed, text) in texts.iter().enumerate() {
            let read =
                FaultScript::parse(text, "drawn", &plan).unwrap_or_else(|error| panic!("{error}\n{text}"));
            assert_eq!(read.to_text(&plan), *text, "{seed}");
        }
        // A partition is written as the cables that it cuts.
        for what in super::super::FaultKind::NAMES.iter().filter(|what| **what != "partition") {
            let word = format!("what: {what},");
            assert!(texts.iter().any(|text| text.contains(&word)), "no script has {what}");
        }
        let more = ["part: header", "part: payload", "operations: [", "sequence: [", "ramp: ", "every: "];
        let of_kinds = LossByKind::kinds().map(|(_, name)| format!("kinds: [{name}]"));
        let of_triggers = ["after: {", "when: {", "at: 0ns"];
        for word in of_kinds.chain(more.iter().chain(&of_triggers).map(|word| (*word).to_owned())) {
            assert!(texts.iter().any(|text| text.contains(&word)), "no script has {word}");
        }
        texts.sort();
        texts.dedup();
        assert_eq!(texts.len(), 400);
    }
}
