//! Tests of reading, checking, writing and playing scripts.

use rackloom_protocol::{Event, Instant, LinkCause, LinkState, NodeId, PortId};

use crate::model::plan::Plan;

use super::*;

const RING: &str = "{name: rack, shape: {ring: {nodes: 4}}, job: {collective: {bytes: 4KiB}}}";

fn ring() -> Plan {
    Plan::parse(RING, "ring").expect("a rack")
}

fn script(events: &str) -> FaultScript {
    let text = format!("name: test\nevents:\n{events}");
    FaultScript::parse(&text, "test", &ring()).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns every mistake of a script, each as `line: message / hint`.
fn mistakes(text: &str) -> Vec<String> {
    let error = FaultScript::parse(text, "test", &ring()).expect_err(text);
    let found = |mistake: &crate::read::mistake::Mistake| {
        assert!(!mistake.hint.is_empty());
        format!("{}: {} / {}", mistake.line, mistake.message, mistake.hint)
    };
    error.mistakes.iter().map(found).collect()
}

#[test]
fn targets_name_links_directions_members_and_planes() {
    let chosen = |location: &str| {
        let script = script(&format!("  - {{what: down, where: {location}}}"));
        let plan = ring();
        script.events[0].fault.directions().iter().map(|direction| direction.name(&plan)).collect::<Vec<_>>()
    };
    assert_eq!(chosen("n0->n1"), ["n0->n1"]);
    assert_eq!(chosen("n1->n0"), ["n1->n0"]);
    assert_eq!(chosen("n1--n0"), ["n0->n1", "n1->n0"]);
    assert_eq!(chosen("n1"), ["n0->n1", "n1->n0", "n1->n2", "n2->n1"]);
    assert_eq!(chosen("[n0->n1, n0--n1]"), ["n0->n1", "n1->n0"], "each once");
    assert_eq!(chosen("plane 0").len(), 8);
    assert_eq!(chosen("all").len(), 8);
    let split = script("  - {what: partition, where: [n0, n1]}");
    let plan = ring();
    let cut: Vec<_> =
        split.events[0].fault.directions().iter().map(|direction| direction.name(&plan)).collect();
    assert_eq!(cut, ["n1->n2", "n2->n1", "n3->n0", "n0->n3"]);
}

#[test]
fn all_mistakes_are_reported_at_once_with_their_lines() {
    let text = "\
name: bad
events:
  - {what: down, where: n0--n9}
  - {what: los, where: all, rate: 1%}
  - {what: kill, where: n7, rate: 1%}
  - {what: loss, where: n0->n1}
  - {what: down, where: all, at: -3ms}
  - {what: down, where: all, at: 3}
  - {what: down, where: plane 4, times: 2}
  - {what: down, where: n0->n1, every: 5ms, for: 9ms}
  - {what: down, where: n0->n1, at: 1ms, after: {frames: 3, direction: n0--n1}}
  - {what: drop, where: n0->n1, frames: [0], for: 3ms}
expect: {ends: rigth, lost: [n9], retransmitted_min: 5, retransmitted_max: 3}
";
    let found = mistakes(text);
    let expected = [
        (3, "there is no link `n0--n9`", "links are"),
        (4, "`los` is not a choice", "did you mean `loss`?"),
        (5, "there is no member `n7`", "members are"),
        (5, "`rate` means nothing to `kill`", "it belongs to loss, corrupt, duplicate, reorder"),
        (6, "`loss` needs `rate`", "Share of frames"),
        (7, "lies in the past", "all links are up"),
        (8, "has no unit", "3ns"),
        (9, "there is no plane `4`", "planes are 0 to 0"),
        (9, "`times` has no effect without `every`", "add `every`"),
        (10, "begin again before it has ended", "shorter"),
        (11, "`at` and `after` both state when", "leave one"),
        (11, "is no direction of a link", "n0:n1"),
        (12, "counts frames from 1", "number 1"),
        (12, "cannot last", "leave `for` out"),
        (13, "`rigth` is not a choice", "did you mean `right`?"),
        (13, "there is no member `n9`", "members are"),
        (13, "cannot be sent again", "swap"),
    ];
    for (line, message, hint) in expected {
        let begin = format!("{line}: ");
        let is_meant = |one: &&String| one.starts_with(&begin) && one.contains(message) && one.contains(hint);
        assert!(found.iter().any(|one| is_meant(&one)), "line {line}: {message}\n{found:#?}");
    }
    assert_eq!(found.len(), expected.len(), "{found:#?}");
}

#[test]
fn contradictions_are_refused() {
    for (text, message) in [
        ("events: [{what: kill, where: n1}]\nexpect: {ends: right}", "cannot end right without n1"),
        ("events: [{what: kill, where: n1}]\nexpect: {lost: []}", "not expected to be lost"),
        ("events: [{what: down, where: n1}]\nexpect: {lost: [n1]}", "no event kills it"),
        ("events: [{what: down, where: n1, at: 9ms}]\nexpect: {elapsed_max: 5ms}", "after the job's end"),
        (
            "events: [{what: loss, where: n1, rate: 1%}]\nexpect: {detected_within: 5ms}",
            "nothing to be detected",
        ),
        (
            "events: [{what: down, where: n1}]\nexpect: {detected_within: 5ms, switched_within: 4ms}",
            "before the fault is detected",
        ),
        ("events: [{what: slow, where: n1, share: 25%}]", "has no rate"),
        ("events: [{what: partition, where: [n0, n1, n2, n3]}]", "touches no link"),
        ("events: []\nexpect: {retransmitted_min: 5, retransmitted_max: 4}", "cannot be sent again"),
    ] {
        let found = mistakes(&format!("name: t\n{text}\n"));
        assert!(found.iter().any(|one| one.contains(message)), "{text}: {found:?}");
    }
}

#[test]
fn a_job_trigger_needs_a_job_with_runs_and_steps() {
    let found = |job: &str, location: &str| {
        let plan = format!("{{name: r, shape: {{ring: {{nodes: 4}}}}, job: {job}}}");
        let plan = Plan::parse(&plan, "r").unwrap_or_else(|error| panic!("{error}"));
        let text = format!("name: t\nevents: [{{what: kill, where: n1, when: {{node: n2, {location}}}}}]\n");
        FaultScript::parse(&text, "t", &plan).err().map(|error| error.to_string()).unwrap_or_default()
    };
    let refused = found("none", "run: 3");
    assert!(refused.contains("job none has no runs and steps") && refused.contains("t:2:10"), "{refused}");
    for (job, location) in [
        ("{litmus: {rounds: 2}}", "run: 3"),
        ("{litmus: {rounds: 2}}", "step: 7"),
        ("{traffic: {messages: 5}}", "run: 2"),
        ("{traffic: {messages: 5}}", "step: 21"),
    ] {
        assert!(
            found(job, location).contains("never comes to run"),
            "{job} {location}: {}",
            found(job, location)
        );
    }
    for (job, location) in [
        ("{litmus: {rounds: 2}}", "run: 2, step: 6"),
        ("{traffic: {messages: 5}}", "step: 20"),
        ("{latency: {}}", "run: 2, step: 3"),
        ("{bandwidth: {}}", "run: 2, step: 3"),
        ("{collective: {}}", "run: 3, step: 9"),
    ] {
        assert_eq!(found(job, location), "", "{job} {location}");
    }
}

#[test]
fn the_usual_expectation_is_the_strictest_that_the_script_permits() {
    let expect = |events: &str| script(events).expect;
    assert_eq!(expect("  - {what: down, where: n1}").ends, ExpectedEnd::Right);
    let killed = expect("  - {what: kill, where: n1}");
    assert_eq!((killed.ends, killed.lost), (ExpectedEnd::Either, vec![NodeId(1)]));
    let restarted = expect("  - {what: kill, where: n1, for: 5ms}");
    assert_eq!((restarted.ends, restarted.lost), (ExpectedEnd::Either, vec![]));
}

#[test]
fn a_written_script_reads_back_unchanged() {
    let text = "
  - {what: loss, where: n0->n1, rate: 1%, kinds: [ack, credit], at: 3ms, for: 2ms, ramp: 1ms}
  - {what: corrupt, where: n0--n1, rate: 0.001, after: {frames: 7, direction: n2->n1}}
  - {what: duplicate, where: n0--n1, rate: 0.5}
  - {what: reorder, where: n0--n1, rate: 0.5}
  - {what: drop, where: n3->n0, frames: [3, 1], when: {node: n2, run: 2, step: 5}}
  - {what: down, where: n1, for: 1us, every: 3us, times: 4}
  - {what: unplug, where: n1--n2}
  - {what: delay, where: all, by: 5us}
  - {what: pause, where: [n0, n2], for: 3ms}
  - {what: kill, where: n3}";
    let read = script(text);
    let again = FaultScript::parse(&read.to_text(&ring()), "again", &ring());
    let again = again.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(again.expect, read.expect);
    for (one, other) in read.events.iter().zip(&again.events) {
        assert_eq!((&one.fault, one.trigger, one.timing), (&other.fault, other.trigger, other.timing));
    }
    assert_eq!(read.events.len(), again.events.len());
}

/// Returns the scheduler of a ring node whose links have come up at 1000.
fn lit(script: &FaultScript, member: u16) -> FaultScheduler {
    let mut scheduler =
        FaultScheduler::new(script, &ring(), NodeId(member)).expect("a fault affects the member");
    for port in 0..2 {
        let up = Event::LinkChanged {
            port: PortId(port),
            from: LinkState::Down,
            to: LinkState::Up,
            cause: LinkCause::Hello,
        };
        scheduler.advance(Instant(500), |_| 0, || None);
        assert_eq!((scheduler.poll(), scheduler.next_due(Instant(500))), (None, Instant::NEVER));
        scheduler.handle_event(Instant(1_000), &up);
    }
    scheduler
}

/// Returns all actions at a time.
fn actions(
    scheduler: &mut FaultScheduler,
    now: u64,
    frames: u64,
    position: Option<JobPosition>,
) -> Vec<FaultAction> {
    scheduler.advance(Instant(now), |_| frames, || position);
    std::iter::from_fn(|| scheduler.poll()).collect()
}

#[test]
fn faults_that_are_cancelled_end_at_once_and_never_begin() {
    let script = script(
        "  - {what: down, where: n0->n1, at: 200ns}\n  - {what: loss, where: n0->n1, rate: 1%, at: 9us}\n",
    );
    let mut scheduler = lit(&script, 0);
    let report = |begins| FaultAction::Report { event: 0, begins, time: 1 };
    let direction = script.events[0].fault.directions()[0];
    let off = FaultAction::Set { direction, conditions: Conditions::default() };
    assert!(actions(&mut scheduler, 1_200, 0, None).contains(&report(true)));
    scheduler.cancel_all(Instant(2_000));
    assert_eq!(actions(&mut scheduler, 2_000, 0, None), [report(false), off]);
    assert_eq!(scheduler.next_due(Instant(2_000)), Instant::NEVER);
    assert_eq!(actions(&mut scheduler, 20_000, 0, None), [], "the second one does not begin");
    scheduler.add(7, &script.events[..1], &ring(), NodeId(0), Some(Instant(20_000)));
    let later = FaultAction::Report { event: 7, begins: true, time: 1 };
    assert!(actions(&mut scheduler, 20_300, 0, None).contains(&later), "later faults are not concerned");
}

#[test]
fn time_counts_from_the_last_link_and_a_flap_comes_and_goes() {
    let script = script("  - {what: down, where: n0->n1, at: 200ns, for: 300ns, every: 1us, times: 2}");
    let mut scheduler = lit(&script, 0);
    assert_eq!(actions(&mut scheduler, 1_199, 0, None), []);
    assert_eq!(scheduler.next_due(Instant(1_199)), Instant(1_200));
    let direction = script.events[0].fault.directions()[0];
    let cut = Conditions { is_cut: true, ..Conditions::default() };
    let (on, off) = (
        FaultAction::Set { direction, conditions: cut },
        FaultAction::Set { direction, conditions: Conditions::default() },
    );
    let say = |begins, time| FaultAction::Report { event: 0, begins, time };
    for (now, expected, next) in [
        (1_200, vec![say(true, 1), on.clone()], 1_500),
        (1_500, vec![say(false, 1), off.clone()], 2_200),
        (2_200, vec![say(true, 2), on], 2_500),
        (2_600, vec![say(false, 2), off], u64::MAX),
    ] {
        assert_eq!(actions(&mut scheduler, now, 0, None), expected, "at {now}");
        assert_eq!(scheduler.next_due(Instant(now)), Instant(next), "at {now}");
    }
    assert!(FaultScheduler::new(&script, &ring(), NodeId(1)).is_none(), "the receiver is not affected");
}

#[test]
fn overlapping_faults_leave_no_residue() {
    let script = script(
        "  - {what: loss, where: n0->n1, rate: 10%, at: 0ns, for: 500ns}\n  \
         - {what: loss, where: n0->n1, rate: 30%, at: 100ns, for: 100ns}\n",
    );
    let mut scheduler = lit(&script, 0);
    let loss = |actions: Vec<FaultAction>| {
        let mut set = actions.into_iter().filter_map(|action| match action {
            FaultAction::Set { conditions, .. } => Some(conditions.loss),
            _ => None,
        });
        set.next_back()
    };
    let seen: Vec<_> =
        [1_000, 1_100, 1_200, 1_500].map(|now| loss(actions(&mut scheduler, now, 0, None))).to_vec();
    assert_eq!(seen, [Some(0.1), Some(0.3), Some(0.1), Some(0.0)]);
}

#[test]
fn a_job_trigger_affects_the_member_and_notifies_others() {
    let script = script("  - {what: kill, where: [n1, n2], when: {node: n1, run: 2, step: 3}}");
    let mut first = lit(&script, 1);
    let at = |run, step| Some(JobPosition { run, step });
    assert_eq!(actions(&mut first, 2_000, 0, at(2, 2)), []);
    let kill = FaultAction::Kill { event: 0, restart_after_ns: None };
    let begins = FaultAction::Report { event: 0, begins: true, time: 1 };
    assert_eq!(
        actions(&mut first, 2_001, 0, at(2, 4)),
        [begins.clone(), kill.clone()],
        "a step may be missed"
    );
    assert_eq!((first.poll_notification(), first.poll_notification()), (Some(0), None));

    let mut second = lit(&script, 2);
    assert_eq!(
        actions(&mut second, 5_000, 0, at(9, 9)),
        [],
        "the progress of the other member does not count"
    );
    second.event_began(Instant(5_001), 0);
    assert_eq!(std::iter::from_fn(|| second.poll()).collect::<Vec<_>>(), [begins, kill]);
}

#[test]
fn the_old_name_of_the_direction_is_accepted_once() {
    let read =
        |keys: &str| script(&format!("  - {{what: down, where: n0->n1, after: {{frames: 10, {keys}}}}}"));
    assert_eq!(read("way: n0->n1").events, read("direction: n0->n1").events);
    let text = "name: x\nevents:\n  - {what: down, where: n0->n1, after: {frames: 3, way: n0->n1, direction: n0->n1}}\n";
    assert_eq!(mistakes(text).len(), 1, "{:?}", mistakes(text));
}

#[test]
fn frames_are_counted_where_they_leave() {
    let script =
        script("  - {what: drop, where: n2->n1, frames: [2], after: {frames: 10, direction: n0->n1}}");
    let mut sender = lit(&script, 0);
    assert_eq!((actions(&mut sender, 2_000, 9, None), sender.poll_notification()), (vec![], None));
    assert_eq!((actions(&mut sender, 2_001, 10, None), sender.poll_notification()), (vec![], Some(0)));
    let mut dropper = lit(&script, 2);
    dropper.event_began(Instant(2_002), 0);
    let direction = script.events[0].fault.directions()[0];
    let drop = FaultAction::Drop { direction, numbers: vec![2] };
    let over = FaultAction::Report { event: 0, begins: true, time: 1 };
    assert_eq!(std::iter::from_fn(|| dropper.poll()).collect::<Vec<_>>(), [over, drop]);
}

#[test]
fn faults_added_later_count_from_then_and_join_active_ones() {
    let script = script("  - {what: loss, where: n0->n1, rate: 10%}");
    let mut scheduler = lit(&script, 0);
    assert_eq!(actions(&mut scheduler, 1_000, 0, None).len(), 2);
    let more = "name: more\nevents: [{what: loss, where: n0->n1, rate: 30%, at: 50ns, for: 100ns}]\n";
    let more = FaultScript::parse(more, "more", &ring()).expect("a script");
    scheduler.add(7, &more.events, &ring(), NodeId(0), Some(Instant(9_000)));
    assert_eq!(actions(&mut scheduler, 9_049, 0, None), []);
    assert_eq!(scheduler.next_due(Instant(9_049)), Instant(9_050));
    let direction = script.events[0].fault.directions()[0];
    let set = |loss| FaultAction::Set { direction, conditions: Conditions { loss, ..Conditions::default() } };
    let say = |begins| FaultAction::Report { event: 7, begins, time: 1 };
    assert_eq!(actions(&mut scheduler, 9_050, 0, None), [say(true), set(0.3)]);
    assert_eq!(actions(&mut scheduler, 9_150, 0, None), [say(false), set(0.1)]);
    assert_eq!(scheduler.event(7).map(|event| event.label.as_str()), Some("loss n0->n1"));
}

#[test]
fn the_example_of_the_document_is_a_script() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/fault-scripts.md");
    let document = std::fs::read_to_string(path).expect("the document is there");
    let rack = "{name: r, shape: {ring: {nodes: 8}}, job: {collective: {bytes: 4KiB}}}";
    let plan = Plan::parse(rack, "r").expect("a rack");
    let examples: Vec<_> =
        document.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(!examples.is_empty());
    for example in examples {
        FaultScript::parse(example, "example", &plan).unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn a_pause_that_has_ended_does_not_stop_a_late_member_again() {
    let script = script(
        "  - {what: pause, where: n0, for: 500ns}\n  - {what: pause, where: n0, at: 100ns, for: 100ns}",
    );
    let mut scheduler = lit(&script, 0);
    let paused = |actions: Vec<FaultAction>| {
        actions.into_iter().filter(|action| matches!(action, FaultAction::Pause { .. })).collect::<Vec<_>>()
    };
    assert_eq!(paused(actions(&mut scheduler, 1_050, 0, None)), [FaultAction::Pause { for_ns: 450 }]);
    assert_eq!(paused(actions(&mut scheduler, 1_500, 0, None)), [], "the member was stopped all that time");
}

#[test]
fn memory_has_the_worst_active_condition_and_keys_are_revoked_once() {
    let script = script(
        "  - {what: slow-memory, where: n0, by: 100ns, for: 500ns}\n  \
         - {what: fail-memory, where: [n0, n1], rate: 25%, at: 100ns, for: 100ns}\n  \
         - {what: revoke, where: n0, at: 300ns}\n",
    );
    let mut scheduler = lit(&script, 0);
    let mut at = |now| {
        let stated = |action: &FaultAction| !matches!(action, FaultAction::Report { .. });
        actions(&mut scheduler, now, 0, None).into_iter().filter(stated).collect::<Vec<_>>()
    };
    let memory = |late_ns, fail| FaultAction::Memory(MemoryConditions { late_ns, fail });
    assert_eq!(at(1_000), [memory(100, 0.0)]);
    assert_eq!(at(1_100), [memory(100, 0.25)]);
    assert_eq!(at(1_200), [memory(100, 0.0)]);
    assert_eq!(at(1_300), [FaultAction::Revoke]);
    assert_eq!(at(1_301), []);
    assert_eq!(at(1_500), [memory(0, 0.0)]);
    assert!(script.refuses() && !script.picks());
    assert!(FaultScheduler::new(&script, &ring(), NodeId(2)).is_none());
}

#[test]
fn frame_selections_and_memory_faults_read_back_unchanged() {
    let script = script(
        "  - {what: loss, where: n0->n1, rate: 50%, operations: [put, signal], sequence: [3, 9]}\n  \
         - {what: slow-memory, where: n0, by: 1us, ramp: 1ms}\n  \
         - {what: fail-memory, where: n1, rate: 1%, for: 1ms}\n  \
         - {what: revoke, where: n2, at: 3ms}\n  \
         - {what: kill, where: n3, at: 4ms, for: 1ms}\n",
    );
    assert!(script.picks());
    let text = script.to_text(&ring());
    let again = FaultScript::parse(&text, "again", &ring()).unwrap_or_else(|error| panic!("{error}\n{text}"));
    for (one, other) in script.events.iter().zip(&again.events) {
        assert_eq!(
            (&one.fault, one.trigger, one.timing),
            (&other.fault, other.trigger, other.timing),
            "{text}"
        );
    }
}

#[test]
fn invalid_memory_faults_and_frame_selections_are_refused() {
    for (event, found) in [
        ("{what: loss, where: all, rate: 1%, operations: [putt]}", "no operation in a frame"),
        ("{what: loss, where: all, rate: 1%, sequence: [9, 3]}", "range of packet numbers"),
        ("{what: loss, where: all, rate: 1%, sequence: [9]}", "range of packet numbers"),
        ("{what: loss, where: all, rate: 1%, operations: [put], kinds: [ack]}", "leave `kinds` out"),
        ("{what: revoke, where: n0, for: 3ms}", "cannot last"),
        ("{what: down, where: all, operations: [put]}", "means nothing to `down`"),
        ("{what: slow-memory, where: n0--n1, by: 1us}", "no member"),
        ("{what: slow-memory, where: n0}", "by"),
    ] {
        let text = format!("name: t\nevents: [{event}]\n");
        let message = FaultScript::parse(&text, "t", &ring()).expect_err(event).to_string();
        assert!(message.contains(found), "{event}: {message}");
    }
    let star = Plan::parse("{name: r, shape: {star: {nodes: 2, planes: 1}}}", "r").expect("a rack");
    let text = "name: t\nevents: [{what: revoke, where: s0}]\n";
    let found = FaultScript::parse(text, "t", &star).expect_err("a switch").to_string();
    assert!(found.contains("is a switch and has no memory"), "{found}");
}
