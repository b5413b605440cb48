//! Random fault scripts for campaigns. Each script uses a few kinds of faults only, at very different rates.
//!
//! Restriction to few kinds finds more faults: a script in which all kinds are possible rarely has many events of one kind. So each
//! script first draws its kinds (Groce et al., "Swarm Testing", ISSTA 2012). Every link fault ends, so a job that does not end
//! shows an error. A script follows from the seed alone.
//!
//! The kinds are those of the document, and cables and members that are connected late. A kind that is added is drawn without a change of
//! this file: its values come from the ranges of its keys.

use rackloom_protocol::NodeId;

use super::kind::Target;
use super::{
    ExpectedEnd, Fault, FaultEvent, FaultExpectations, FaultKind, FaultScript, JobPosition, LinkDirection,
    RequiredEvents, Timing, Trigger, select,
};
use crate::impair::Direction;
use crate::model::links::loss::KIND_NAMES;
use crate::model::links::pick::OPERATION_NAMES;
use crate::model::plan::Plan;
use crate::model::random::{Stream, below};
use crate::schema::{EVERY_NS_MIN, EventKeys, Key, Kind};
use crate::setting::section::{Section, Source};
use crate::setting::value::Value;

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

/// Form of a random event, where a kind has several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// The only form of most kinds.
    Usual,
    /// Loss of frames of one kind.
    ByFrame,
    /// Loss of frames by their operations or packet numbers.
    ByContent,
    /// Cable, plane or all cables of a member that are not connected at the beginning.
    Late,
}

/// Kind and form of a random event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DrawnKind {
    kind: FaultKind,
    form: Form,
}

impl DrawnKind {
    const fn usual(kind: FaultKind) -> Self {
        Self { kind, form: Form::Usual }
    }

    /// Returns all kinds in their forms. Kills are drawn separately, with a lower probability. The order is that of the document, except
    /// that partitions come before delays: a script follows from its seed by this order.
    fn all() -> impl Iterator<Item = Self> {
        // A campaign runs jobs, which have no queue pairs.
        let of_jobs = FaultKind::ALL.iter().filter(|kind| !kind.is_of_queue_pairs());
        of_jobs.flat_map(|kind| match kind {
            FaultKind::Kill | FaultKind::Partition => Vec::new(),
            FaultKind::Loss => {
                let forms = [Form::Usual, Form::ByFrame, Form::ByContent];
                forms.map(|form| Self { kind: *kind, form }).to_vec()
            }
            FaultKind::Unplug => {
                let late = Self { kind: *kind, form: Form::Late };
                vec![Self::usual(*kind), late, Self::usual(FaultKind::Partition)]
            }
            _ => vec![Self::usual(*kind)],
        })
    }

    /// Returns the name for reports.
    fn label(self) -> String {
        match self.form {
            Form::Usual => format!("{:?}", self.kind),
            Form::ByFrame => "LossByFrame".to_owned(),
            Form::ByContent => "LossByContent".to_owned(),
            Form::Late => "PluggedLate".to_owned(),
        }
    }
}

/// Draws script number `seed` for this plan's rack.
#[must_use]
pub fn draw(plan: &Plan, seed: u64, reach: DrawLimits) -> FaultScript {
    let mut draws = RandomDraws { stream: Stream::new(seed), drawn: 0 };
    let enabled: Vec<_> = DrawnKind::all().filter(|_| draws.one_in(3)).collect();
    let count = 1 + draws.below(EVENTS_MAX);
    let mut events = Vec::new();
    for _ in 0..count {
        let kind = if enabled.is_empty() { DrawnKind::usual(FaultKind::Loss) } else { draws.of(&enabled) };
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

fn event(draws: &mut RandomDraws, plan: &Plan, drawn: DrawnKind, reach: DrawLimits) -> FaultEvent {
    let fault = fault(draws, plan, drawn, reach);
    let mut timing = timing(draws, drawn.kind, reach);
    let mut trigger = trigger(draws, plan, reach);
    if drawn.form == Form::Late {
        trigger = Trigger::At(0);
        timing = Timing { for_ns: timing.for_ns, ..Timing::default() };
    }
    if drawn.kind.is_moment() {
        timing.for_ns = None;
    }
    FaultEvent { fault, trigger, timing, label: drawn.label(), line: 0 }
}

fn kill(draws: &mut RandomDraws, plan: &Plan, reach: DrawLimits) -> FaultEvent {
    let fault = Fault::Kill(vec![draws.member(plan)]);
    let trigger = trigger(draws, plan, reach);
    // In every second script a new incarnation follows.
    let for_ns = draws.one_in(2).then(|| draws.time_ns(reach.last_ns));
    let timing = Timing { for_ns, ..Timing::default() };
    FaultEvent { fault, trigger, timing, label: "Kill".to_owned(), line: 0 }
}

fn timing(draws: &mut RandomDraws, kind: FaultKind, reach: DrawLimits) -> Timing {
    let for_ns = draws.time_ns(reach.last_ns);
    let repeats = draws.one_in(4);
    Timing {
        for_ns: Some(for_ns),
        ramp_ns: if draws.one_in(4) && kind.grows() { for_ns / 2 } else { 0 },
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

fn fault(draws: &mut RandomDraws, plan: &Plan, drawn: DrawnKind, reach: DrawLimits) -> Fault {
    let target = drawn.kind.keys().target;
    let mut keys = EventKeys { what: drawn.kind, ..EventKeys::default() };
    if target == Target::Links && !drawn.kind.is_moment() {
        let directions = if drawn.form == Form::Late { cables(draws, plan) } else { directions(draws, plan) };
        // A rate share applies only to links with a rate.
        if drawn.kind == FaultKind::Slow && !directions.iter().all(|direction| has_rate(plan, *direction)) {
            keys.what = FaultKind::Loss;
        }
        // Every kind draws a rate, also if it has none: a script follows from its seed by the order of the draws.
        keys.rate = Some(draws.rate());
        match drawn.form {
            Form::ByFrame => keys.kinds = vec![draws.of(KIND_NAMES)],
            Form::ByContent => select_frames(draws, &mut keys),
            Form::Usual | Form::Late => draw_values(draws, &mut keys, &["rate"], reach),
        }
        return Fault::stated_by(&keys, directions, Vec::new(), Vec::new());
    }
    draw_values(draws, &mut keys, &[], reach);
    let (mut links, mut members) = (Vec::new(), Vec::new());
    match target {
        Target::Links => links = directions(draws, plan),
        Target::Boundary => {
            let side: Vec<_> =
                (0..plan.members.len() as u16).map(NodeId).filter(|_| draws.one_in(3)).collect();
            let boundary = select::boundary(plan, &side);
            links = if boundary.is_empty() { directions(draws, plan) } else { boundary };
        }
        Target::Members => members.push(draws.member(plan)),
        // Queue pairs are never drawn.
        Target::Owners | Target::QueuePairs => members.push(draws.owner(plan)),
    }
    Fault::stated_by(&keys, links, members, Vec::new())
}

/// Draws the values of the kind's keys, within their declared ranges, but not of the keys `drawn`.
fn draw_values(draws: &mut RandomDraws, keys: &mut EventKeys, drawn: &[&str], reach: DrawLimits) {
    let open: Vec<_> = keys.what.keys().of_values().filter(|key| !drawn.contains(key)).collect();
    if open.contains(&"frames") {
        keys.frames = (0..1 + draws.below(4)).map(|_| 1 + draws.below(FRAMES_MAX)).collect();
        keys.frames.sort_unstable();
        keys.frames.dedup();
    }
    keys.read_over(&mut DrawnValues { draws, open, most_ns: reach.begin_ns });
}

/// Source of random values for the keys of an event, in place of a file.
struct DrawnValues<'d> {
    draws: &'d mut RandomDraws,
    /// Keys that get a value.
    open: Vec<&'static str>,
    /// Longest time, in nanoseconds.
    most_ns: u64,
}

impl Source for DrawnValues<'_> {
    fn value<T: Value>(&mut self, key: &'static Key, otherwise: T) -> T {
        if !self.open.contains(&key.name) {
            return otherwise;
        }
        let text = match key.kind {
            Kind::Probability if key.name == "share" => {
                self.draws.of(&[0.9, 0.5, 0.25, 0.1, 0.01]).to_string()
            }
            Kind::Probability => self.draws.rate().to_string(),
            Kind::Time(..) => format!("{}ns", self.draws.time_ns(self.most_ns)),
            Kind::Count(least, most) => {
                let beyond = most.min(least + FRAMES_MAX);
                (least + self.draws.below(beyond - least)).to_string()
            }
            Kind::Choice(names) => self.draws.of(names).to_owned(),
            kind => unreachable!("{kind:?} of `{}` is not drawn", key.name),
        };
        T::read(&text, &key.kind).unwrap_or(otherwise)
    }
}

fn has_rate(plan: &Plan, direction: LinkDirection) -> bool {
    plan.links[usize::from(direction.edge)].profile.rate_bits_per_s.is_some()
}

/// Draws a selection by one or two kinds of operations, or by a range of packet numbers, or both.
fn select_frames(draws: &mut RandomDraws, keys: &mut EventKeys) {
    let form = draws.below(3);
    let count = if form == 1 { 0 } else { 1 + draws.below(2) };
    keys.operations = (0..count).map(|_| draws.of(OPERATION_NAMES)).collect();
    let first = draws.below(FRAMES_MAX) as u32;
    if form > 0 {
        keys.sequence = vec![first, first + draws.below(FRAMES_MAX) as u32];
    }
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
    use crate::model::links::loss::LossByKind;

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
        let of_jobs = FaultKind::ALL.iter().filter(|kind| !kind.is_of_queue_pairs());
        for what in of_jobs.filter(|kind| **kind != FaultKind::Partition) {
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
