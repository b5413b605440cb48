//! Fault scripts at random, for campaigns: each enables some kinds of faults only, at wild rates.
//!
//! Swarms find more than averages: a script in which everything is possible rarely has much of anything, so each one draws first
//! which kinds it may use (Groce et al., "Swarm Testing", ISSTA 2012). Every link fault heals, so that a job that does not end under
//! one has no excuse. A script follows from the seed alone.

use rackloom_protocol::NodeId;
use rackloom_protocol::wire::FrameKind;

use super::{
    Conditions, Ending, Fault, FaultEvent, FaultExpectations, FaultScript, Happen, Timing, Trigger, Way,
    loss_of,
};
use crate::impair::Direction;
use crate::plan::Plan;
use crate::random::{Stream, below};
use crate::schema::EVERY_NS_MIN;

const EVENTS_MAX: u64 = 6;
/// Out of so many scripts one kills a member.
const KILLS_ONE_IN: u64 = 4;
/// Kinds of frames whose loss has consequences of its own.
const KINDS: [FrameKind; 6] = [
    FrameKind::Data,
    FrameKind::Ack,
    FrameKind::Heartbeat,
    FrameKind::Report,
    FrameKind::Credit,
    FrameKind::Hello,
];

/// How far in time a drawn script reaches.
#[derive(Clone, Copy, Debug)]
pub struct Reach {
    /// Faults begin within this time.
    pub begin_ns: u64,
    /// And last up to this long.
    pub last_ns: u64,
}

/// Script number `seed` for this plan's rack.
#[must_use]
pub fn draw(plan: &Plan, seed: u64, reach: Reach) -> FaultScript {
    let mut dice = Dice { stream: Stream::new(seed), drawn: 0 };
    let enabled: Vec<u64> = (0..9).filter(|_| dice.one_in(2)).collect();
    let count = 1 + dice.below(EVENTS_MAX);
    let mut events = Vec::new();
    for _ in 0..count {
        let kind = enabled.get(dice.below(enabled.len() as u64) as usize).copied().unwrap_or(0);
        events.push(event(&mut dice, plan, kind, reach));
    }
    if dice.one_in(KILLS_ONE_IN) {
        let member = NodeId(dice.below(plan.members.len() as u64) as u16);
        let mut kill = event(&mut dice, plan, 0, reach);
        kill.fault = Fault::Kill(vec![member]);
        // A new life takes the seat of every second one.
        let for_ns = dice.one_in(2).then(|| dice.time_ns(reach.last_ns));
        kill.timing = Timing { for_ns, ..Timing::default() };
        events.push(kill);
    }
    finished(format!("drawn-{seed}"), events)
}

/// A script with the expectation that holds for every script: right or a clean error, and never a hang.
pub(super) fn finished(name: String, mut events: Vec<FaultEvent>) -> FaultScript {
    for (line, event) in (1..).zip(&mut events) {
        event.line = line;
    }
    let mut script = FaultScript { name, events, ..FaultScript::default() };
    let lost = script.kills();
    script.expect =
        FaultExpectations { ends: Ending::Either, happen: Happen::Any, lost, ..FaultExpectations::default() };
    script
}

/// Numbers in the order in which they are asked for.
struct Dice {
    stream: Stream,
    drawn: u64,
}

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.drawn += 1;
        below(self.stream.at(self.drawn), bound.max(1))
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    /// Between one in a thousand and all, each order of magnitude as likely.
    fn rate(&mut self) -> f64 {
        const RATES: [f64; 8] = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 0.6, 1.0];
        RATES[self.below(RATES.len() as u64) as usize]
    }

    /// Up to the largest, with short ones as likely as long ones.
    fn time_ns(&mut self, most_ns: u64) -> u64 {
        let shift = self.below(12);
        1 + self.below((most_ns >> shift).max(1))
    }
}

fn event(dice: &mut Dice, plan: &Plan, kind: u64, reach: Reach) -> FaultEvent {
    let ways = ways(dice, plan);
    let rate = dice.rate();
    let none = Conditions::default();
    let conditions = match kind {
        0 => Conditions { loss: rate, ..none },
        1 => Conditions { corrupt: rate, ..none },
        2 => Conditions { duplicate: rate, ..none },
        3 => Conditions { reorder: rate, ..none },
        4 => Conditions { is_cut: true, ..none },
        5 => Conditions { is_cut: true, is_unplugged: true, ..none },
        6 => Conditions { delay_ns: dice.time_ns(reach.begin_ns), ..none },
        _ => {
            let kind = KINDS[dice.below(KINDS.len() as u64) as usize];
            Conditions { loss_by_kind: loss_of(&[kind], rate), ..none }
        }
    };
    let fault = match kind {
        8 => Fault::Pause(vec![NodeId(dice.below(plan.members.len() as u64) as u16)]),
        _ => Fault::Links { ways, conditions },
    };
    let for_ns = dice.time_ns(reach.last_ns);
    let repeats = dice.one_in(4);
    // A cut or a pause is there or not.
    let grows = !matches!(kind, 4 | 5 | 8);
    let timing = Timing {
        for_ns: Some(for_ns),
        ramp_ns: if dice.one_in(4) && grows { for_ns / 2 } else { 0 },
        every_ns: repeats.then_some(for_ns.saturating_mul(2).max(EVERY_NS_MIN)),
        times: repeats.then(|| 2 + dice.below(8)),
    };
    let trigger = Trigger::At(dice.below(reach.begin_ns));
    FaultEvent { fault, trigger, timing, label: format!("kind {kind}"), line: 0 }
}

/// One direction, one link, or all of them.
fn ways(dice: &mut Dice, plan: &Plan) -> Vec<Way> {
    let edge = dice.below(plan.links.len() as u64) as u16;
    let [forward, backward] =
        [Direction::Forward, Direction::Backward].map(|direction| Way { edge, direction });
    match dice.below(8) {
        0..=2 => vec![forward],
        3..=4 => vec![backward],
        5..=6 => vec![forward, backward],
        _ => {
            let edges = 0..plan.links.len() as u16;
            let both =
                |edge| [Direction::Forward, Direction::Backward].map(|direction| Way { edge, direction });
            edges.flat_map(both).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawn_scripts_differ_by_seed_only_and_are_files() {
        let plan = Plan::parse("{name: r, shape: {star: {nodes: 4, planes: 2}}}", "r").expect("a rack");
        let reach = Reach { begin_ns: 1_000_000, last_ns: 5_000_000 };
        let mut texts: Vec<_> = (0..200).map(|seed| draw(&plan, seed, reach).to_text(&plan)).collect();
        assert_eq!(texts[7], draw(&plan, 7, reach).to_text(&plan));
        for text in &texts {
            FaultScript::parse(text, "drawn", &plan).unwrap_or_else(|error| panic!("{error}\n{text}"));
        }
        for what in ["loss", "corrupt", "duplicate", "reorder", "down", "unplug", "delay", "pause", "kill"] {
            let word = format!("what: {what},");
            assert!(texts.iter().any(|text| text.contains(&word)), "no script has {what}");
        }
        texts.sort();
        texts.dedup();
        assert_eq!(texts.len(), 200);
    }
}
