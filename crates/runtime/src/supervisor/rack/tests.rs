//! What follows from what, step by step.

use rackloom_control::notice::SeatStatus;
use rackloom_jobs::Portion;
use rackloom_jobs::report::{MemberReport, MemberState};
use rackloom_jobs::rest::Rest;

use super::*;

const WATCHDOG_NS: u64 = 10 * TICK_NS;

fn rack() -> Rack {
    let members = [("n0", true), ("n1", true), ("s0", false)];
    Rack::new(members.map(|(name, is_endpoint)| (name.to_owned(), is_endpoint)), WATCHDOG_NS, 3 * TICK_NS)
}

fn running() -> Rack {
    let mut rack = rack();
    for member in 0..3 {
        assert_eq!(rack.heard(member, Notice::Ready), []);
    }
    let mapped: Vec<_> = (0..3).flat_map(|member| rack.heard(member, Notice::Mapped)).collect();
    assert_eq!(mapped, [Step::AllMapped], "once, when the last way is known");
    assert_eq!(rack.heard(0, Notice::LinksUp), []);
    assert_eq!(rack.heard(1, Notice::LinksUp), []);
    assert_eq!(rack.heard(2, Notice::LinksUp), [Step::LinksUp]);
    rack
}

fn report() -> Notice {
    Notice::Report(Box::new(MemberReport::silent("n", None, MemberState::Finished)))
}

fn ticks(rack: &mut Rack, count: u64) -> Vec<Step> {
    (0..count).flat_map(|_| rack.tick()).collect()
}

#[test]
fn nobody_leaves_before_everybody_has_reported() {
    let mut rack = running();
    assert_eq!(rack.heard(0, Notice::Finished), []);
    assert_eq!(rack.heard(1, Notice::Finished), [Step::AskReports]);
    assert_eq!(rack.heard(0, report()), []);
    assert_eq!(rack.heard(1, report()), []);
    assert_eq!(rack.heard(2, report()), [Step::Release]);
    assert_eq!(rack.ended(0, "exit 0".into()), []);
    assert_eq!(rack.ended(1, "exit 0".into()), []);
    assert_eq!(rack.ended(2, "exit 0".into()), [Step::Over]);
    assert_eq!(rack.ending, Some(Ending::Complete));
    assert!(rack.seats.iter().all(|seat| seat.death.is_none()));
}

#[test]
fn a_death_is_noted_and_the_others_go_on() {
    let mut rack = running();
    assert_eq!(rack.ended(0, "killed by signal 9".into()), []);
    assert_eq!(rack.seats[0].death.as_deref(), Some("killed by signal 9"));
    assert_eq!(rack.heard(1, Notice::Finished), [], "member 1 has not noticed the death yet");
    assert_eq!(rack.heard(1, Notice::Lost { member: 0 }), [Step::AskReports]);
}

#[test]
fn members_get_bounded_time_to_notice_a_death() {
    let mut rack = running();
    rack.ended(0, "killed by signal 9".into());
    assert_eq!(rack.heard(1, Notice::Finished), []);
    assert_eq!(ticks(&mut rack, 2), []);
    assert_eq!(ticks(&mut rack, 1), [Step::AskReports]);
}

fn dies_for(rack: &mut Rack, member: usize, after_ns: u64) -> EventRecord {
    let ends = EventRecord {
        at_ns: 0,
        member: "n0".into(),
        kind: "fault".into(),
        text: String::new(),
        fields: [].into(),
    };
    assert_eq!(rack.heard(member, Notice::Returning { after_ns, ends: ends.clone() }), []);
    assert_eq!(rack.ended(member, "killed by signal 9".into()), [Step::FollowAfter(member, after_ns)]);
    ends
}

#[test]
fn who_follows_a_dead_member_is_waited_for_until_its_links_are_up() {
    let mut rack = running();
    let ends = dies_for(&mut rack, 0, 20 * WATCHDOG_NS);
    assert_eq!(rack.heard(1, Notice::Finished), [], "somebody is still to come");
    assert_eq!(ticks(&mut rack, 2 * WATCHDOG_NS / TICK_NS), [], "and nobody barks meanwhile");
    assert_eq!(rack.due_to_be_followed(0), Some(ends));
    rack.taken(0, 77, 0);
    assert_eq!(rack.seats[0].earlier_deaths, ["killed by signal 9"]);
    assert_eq!(rack.heard(0, Notice::Finished), []);
    assert_eq!(rack.heard(0, Notice::LinksUp), [Step::AskReports]);
}

#[test]
fn who_follows_has_bounded_time_to_get_its_links_up() {
    let mut rack = running();
    dies_for(&mut rack, 0, 1);
    rack.taken(0, 77, 0);
    rack.heard(0, Notice::Finished);
    rack.heard(1, Notice::Finished);
    assert_eq!(ticks(&mut rack, 2), []);
    assert_eq!(ticks(&mut rack, 1), [Step::AskReports]);
}

#[test]
fn nobody_follows_once_the_rack_goes_and_a_failure_to_follow_is_told() {
    let mut rack = running();
    dies_for(&mut rack, 0, 1);
    assert_eq!(rack.heard(1, Notice::Finished), []);
    assert_eq!(rack.cannot_be_followed(0, "no process"), []);
    let told = rack.seats[0].death.as_deref();
    assert_eq!(told, Some("killed by signal 9, and nobody could follow: no process"));
    assert_eq!(rack.due_to_be_followed(0), None);
    let mut rack = running();
    dies_for(&mut rack, 0, 1);
    rack.interrupted();
    assert_eq!(rack.due_to_be_followed(0), None);
}

#[test]
fn who_leaves_a_rack_that_stays_reports_first_and_its_seat_is_vacant_then() {
    let mut rack = rack();
    rack.stay(&[]);
    for member in 0..3 {
        rack.heard(member, Notice::Ready);
        rack.heard(member, Notice::Mapped);
        rack.heard(member, Notice::LinksUp);
    }
    assert_eq!(rack.asked_leave(1), [Step::AskLeave(1)]);
    assert_eq!(rack.asked_leave(1), [], "once");
    assert_eq!(rack.heard(1, report()), [Step::LetGo(1)]);
    assert_eq!(rack.ended(1, "exited with code 0".into()), [Step::Left(1)]);
    assert!(
        rack.seats[1].is_vacant && rack.seats[1].death.is_none() && rack.seats[1].earlier_deaths.is_empty()
    );
    assert!(rack.is_running(), "the rack stays");
    rack.taken(1, 77, 0);
    assert!(rack.seats[1].is_alive());
}

#[test]
fn a_member_that_hangs_and_is_lost_is_not_waited_for() {
    let mut rack = running();
    assert_eq!(rack.heard(1, Notice::Lost { member: 0 }), []);
    assert_eq!(rack.heard(1, Notice::Finished), [Step::AskReports]);
    rack.heard(1, report());
    rack.heard(2, report());
    assert_eq!(ticks(&mut rack, LAST_WORD_NS / TICK_NS), [Step::Kill(vec![0])]);
    assert_eq!(rack.seats[0].death.as_deref(), Some("hung: lost by its neighbours, and gave no report"));
    assert_eq!(rack.ended(0, "killed by signal 9".into()), [Step::Release]);
}

#[test]
fn under_a_fault_script_whoever_is_parted_from_the_others_is_waited_for_as_long_as_there_is_time() {
    let mut rack = running();
    rack.wait_for_the_lost(2 * TICK_NS);
    rack.heard(1, Notice::Lost { member: 0 });
    assert_eq!(rack.heard(1, Notice::Finished), []);
    assert_eq!(rack.heard(0, Notice::Finished), [Step::AskReports], "it got to an end of its own");

    let mut rack = running();
    rack.wait_for_the_lost(2 * TICK_NS);
    rack.heard(1, Notice::Lost { member: 0 });
    assert_eq!(rack.heard(1, Notice::Finished), []);
    assert_eq!(ticks(&mut rack, WATCHDOG_NS / TICK_NS - 1), []);
    assert_eq!(rack.heard(0, Notice::Progress { count: 1, portion: None }), [Step::Further]);
    assert_eq!(ticks(&mut rack, WATCHDOG_NS / TICK_NS - 1), [], "it makes progress");
    assert_eq!(ticks(&mut rack, 1), [Step::AskReports], "no progress for the watchdog's time");
}

/// Node 0 loses all paths, finishes alone, and is killed. Nodes 1 and 2 still agree about who goes on.
#[test]
fn members_that_only_a_dead_member_had_lost_are_not_presumed_dead() {
    let members = ["n0", "n1", "n2"].map(|name| (name.to_owned(), true));
    let mut rack = Rack::new(members, WATCHDOG_NS, 3 * TICK_NS);
    let notices: [fn() -> Notice; 3] = [|| Notice::Ready, || Notice::Mapped, || Notice::LinksUp];
    for notice in notices {
        (0..3).for_each(|member| drop(rack.heard(member, notice())));
    }
    rack.wait_for_the_lost(0);
    [1, 2].iter().for_each(|member| drop(rack.heard(0, Notice::Lost { member: *member })));
    assert_eq!(rack.heard(0, Notice::Finished), []);
    rack.heard(0, Notice::Dying);
    assert_eq!(rack.ended(0, "killed".into()), []);
    assert_eq!(ticks(&mut rack, WATCHDOG_NS / TICK_NS - 1), [], "longer than the time to notice a death");
    for member in [1, 2] {
        rack.heard(member, Notice::Lost { member: 0 });
    }
    assert_eq!(rack.heard(1, Notice::Finished), []);
    assert_eq!(rack.heard(2, Notice::Finished), [Step::AskReports]);
    assert_eq!(rack.ending, Some(Ending::Complete));
}

fn rested() -> Notice {
    Notice::Rested(Rest::default())
}

/// Under a fault script, with everybody finished.
fn healing() -> Rack {
    let mut rack = running();
    rack.heal_afterwards(4 * TICK_NS);
    assert_eq!(rack.heard(0, Notice::Finished), []);
    assert_eq!(rack.heard(1, Notice::Finished), [Step::Heal]);
    rack
}

#[test]
fn after_a_script_reports_come_once_everybody_is_at_rest() {
    let mut rack = healing();
    assert_eq!(rack.heard(0, rested()), []);
    assert_eq!(rack.heard(1, rested()), []);
    assert_eq!(rack.heard(2, rested()), [Step::JudgeRest], "switches have ends of links, too");
    assert_eq!(ticks(&mut rack, 1), [Step::Heal], "who is not at rest is asked again");
    assert_eq!(ticks(&mut rack, 1), [], "but not before all have answered");
    (0..3).for_each(|member| drop(rack.heard(member, rested())));
    assert_eq!(rack.is_at_rest(), [Step::AskReports]);
    assert_eq!(rack.ending, Some(Ending::Complete));
    assert_eq!(rack.is_at_rest(), [], "once");
}

#[test]
fn who_never_comes_to_rest_has_bounded_time() {
    let mut rack = healing();
    rack.heard(0, rested());
    assert_eq!(ticks(&mut rack, 3), []);
    assert_eq!(ticks(&mut rack, 1), [Step::AskReports]);
    assert_eq!(rack.ending, Some(Ending::Complete));
    let mut rack = healing();
    assert_eq!(rack.interrupted(), [Step::AskReports], "and who is interrupted does not wait");
}

/// Two GPU nodes and a switch, up and idle, in a rack that stays.
fn standing() -> Rack {
    let mut rack = running();
    rack.stay(&[]);
    (0..2).for_each(|member| drop(rack.heard(member, Notice::Finished)));
    rack
}

#[test]
fn a_rack_that_is_taken_down_comes_to_rest_before_it_goes() {
    let mut rack = standing();
    assert_eq!(rack.asked_down(Some(4 * TICK_NS)), [Step::Heal]);
    assert!(rack.is_healing() && rack.counts_time());
    assert_eq!(rack.asked_down(Some(4 * TICK_NS)), [], "asking twice changes nothing");
    (0..3).for_each(|member| drop(rack.heard(member, rested())));
    assert_eq!(rack.is_at_rest(), [Step::AskReports]);
    assert_eq!(rack.ending, Some(Ending::TakenDown));
    let mut silent = standing();
    drop(silent.asked_down(Some(2 * TICK_NS)));
    assert_eq!(ticks(&mut silent, 2), [Step::AskReports], "nor is anybody waited for without end");
    assert_eq!(silent.ending, Some(Ending::TakenDown));
}

#[test]
fn a_rack_that_is_taken_down_in_the_middle_of_a_job_goes_at_once() {
    let mut rack = running();
    rack.stay(&[]);
    assert_eq!(rack.asked_down(Some(4 * TICK_NS)), [Step::AskReports]);
}

#[test]
fn who_dies_while_everything_is_healed_is_not_waited_for() {
    let mut rack = healing();
    rack.heard(0, rested());
    rack.heard(1, rested());
    assert_eq!(rack.ended(2, "killed by signal 9".into()), []);
    assert_eq!(ticks(&mut rack, 1), [Step::Heal]);
}

#[test]
fn a_death_before_the_links_are_up_ends_the_run_at_once() {
    let mut rack = rack();
    rack.heard(0, Notice::Ready);
    assert_eq!(rack.ended(1, "killed by signal 9".into()), [Step::AskReports]);
    let what = "n1 ended before all links were up: killed by signal 9";
    assert_eq!(rack.ending, Some(Ending::LostEarly(what.into())));
}

#[test]
fn a_death_that_the_script_asks_for_is_no_failure_to_start() {
    let mut rack = rack();
    rack.heard(0, Notice::LinksUp);
    assert_eq!(rack.heard(1, Notice::Dying), []);
    assert_eq!(rack.ended(1, "killed by signal 9".into()), []);
    assert_eq!(rack.ending, None);
    assert_eq!(rack.heard(2, Notice::LinksUp), [Step::LinksUp], "the dead are not waited for");
}

#[test]
fn a_death_in_the_job_counts_as_one_though_others_have_not_said_yet_that_links_are_up() {
    let mut rack = rack();
    rack.heard(1, Notice::LinksUp);
    assert_eq!(rack.ended(1, "killed by signal 9".into()), []);
    assert_eq!(rack.ending, None);
    rack.heard(0, Notice::LinksUp);
    assert_eq!(rack.heard(2, Notice::LinksUp), [Step::LinksUp]);
    rack.heard(0, Notice::Lost { member: 1 });
    assert_eq!(rack.heard(0, Notice::Finished), [Step::AskReports]);
}

#[test]
fn the_slowest_node_that_still_works_says_how_far_the_rack_is() {
    let mut rack = running();
    for (member, done) in [(0, 7), (1, 3)] {
        let portion = Some(Portion { done, total: 10 });
        assert_eq!(rack.heard(member, Notice::Progress { count: done, portion }), [Step::Further]);
    }
    assert_eq!(rack.headway(), Headway { finished: 0, portion: Some(Portion { done: 3, total: 10 }) });
    rack.heard(1, Notice::Finished);
    assert_eq!(rack.headway(), Headway { finished: 1, portion: Some(Portion { done: 7, total: 10 }) });
}

#[test]
fn progress_feeds_the_watchdog_and_repetition_does_not() {
    let mut rack = running();
    assert_eq!(ticks(&mut rack, 9), []);
    assert_eq!(rack.heard(0, Notice::Progress { count: 5, portion: None }), [Step::Further]);
    assert_eq!(ticks(&mut rack, 9), []);
    assert_eq!(rack.heard(0, Notice::Progress { count: 5, portion: None }), []);
    assert_eq!(ticks(&mut rack, 1), [Step::AskWaiting]);
    for member in 0..2 {
        assert_eq!(rack.heard(member, Notice::Waiting { lines: vec!["a signal".into()] }), []);
    }
    assert_eq!(rack.heard(2, Notice::Waiting { lines: vec![] }), [Step::AskReports]);
    assert_eq!(rack.ending, Some(Ending::Stalled));
}

#[test]
fn seats_that_answer_nothing_are_ended_in_bounded_time() {
    let mut rack = running();
    assert_eq!(ticks(&mut rack, 10), [Step::AskWaiting]);
    assert_eq!(ticks(&mut rack, ANSWER_NS / TICK_NS), [Step::AskReports]);
    rack.heard(1, report());
    assert_eq!(ticks(&mut rack, DEPARTURE_NS / TICK_NS), [Step::Kill(vec![0, 1, 2])]);
    assert_eq!(ticks(&mut rack, 1_000), []);
    assert_eq!(rack.seats[0].death.as_deref(), Some("gave no report in time"));
    assert_eq!(rack.seats[1].death, None);
}

#[test]
fn a_seat_that_cannot_begin_ends_the_run_with_its_name() {
    let mut rack = rack();
    assert_eq!(rack.heard(1, Notice::Failed { what: "no memory".into() }), [Step::AskReports]);
    assert_eq!(rack.ending, Some(Ending::CouldNotStart("n1: no memory".into())));
}

#[test]
fn the_first_interrupt_asks_and_the_second_kills() {
    let mut rack = running();
    assert_eq!(rack.interrupted(), [Step::AskReports]);
    assert_eq!(rack.interrupted(), [Step::Kill(vec![0, 1, 2])]);
    assert_eq!(rack.ending, Some(Ending::Interrupted));
}

#[test]
fn a_rack_whose_members_are_all_dead_is_over() {
    let mut rack = running();
    rack.ended(2, "killed by signal 9".into());
    rack.ended(0, "killed by signal 9".into());
    let steps = rack.ended(1, "killed by signal 9".into());
    assert_eq!(steps, [Step::AskReports, Step::Release, Step::Over]);
}

fn staying(vacant: &[usize]) -> Rack {
    let mut rack = rack();
    rack.stay(vacant);
    rack
}

fn status() -> Notice {
    Notice::Status(SeatStatus { links_up: 1, finished: true, ..SeatStatus::default() })
}

#[test]
fn a_rack_that_stays_ends_only_when_it_is_told_to() {
    let mut rack = staying(&[]);
    for member in 0..3 {
        rack.heard(member, Notice::LinksUp);
        assert_eq!(rack.heard(member, Notice::Finished), []);
    }
    assert!(rack.is_running());
    assert_eq!(ticks(&mut rack, 100), []);
    assert_eq!(rack.asked_down(None), [Step::AskReports]);
    assert_eq!(rack.asked_down(None), [], "asking twice changes nothing");
    for member in 0..2 {
        assert_eq!(rack.heard(member, report()), []);
    }
    assert_eq!(rack.heard(2, report()), [Step::Release]);
    assert_eq!(rack.ending, Some(Ending::TakenDown));
}

#[test]
fn a_vacant_seat_counts_for_nothing_until_it_is_taken() {
    let mut rack = staying(&[1]);
    assert_eq!(rack.living().collect::<Vec<_>>(), [0, 2]);
    assert_eq!(rack.heard(0, Notice::LinksUp), []);
    assert_eq!(rack.heard(2, Notice::LinksUp), [Step::LinksUp]);
    rack.taken(1, 77, 5);
    assert_eq!(rack.living().collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(rack.asked_down(None), [Step::AskReports]);
    rack.heard(0, report());
    rack.heard(2, report());
    assert_eq!(rack.ended(1, "left".into()), [Step::Release], "who took a seat is waited for");
}

#[test]
fn a_rack_that_stays_does_not_come_up_without_one_of_its_members() {
    let mut rack = staying(&[]);
    assert_eq!(rack.ended(2, "killed by signal 9".into()), [Step::AskReports]);
    assert_eq!(rack.ending, Some(Ending::CouldNotStart("s0: killed by signal 9".into())));
}

#[test]
fn a_survey_waits_for_the_living_and_not_for_ever() {
    let mut rack = staying(&[0]);
    rack.heard(1, Notice::LinksUp);
    rack.heard(2, Notice::LinksUp);
    assert_eq!(rack.asked_status(), [Step::AskStatus]);
    assert_eq!(rack.asked_status(), [], "one survey serves all who ask");
    assert_eq!(rack.heard(1, status()), []);
    assert_eq!(rack.heard(2, status()), [Step::StatusKnown]);
    assert_eq!(rack.asked_status(), [Step::AskStatus]);
    assert_eq!(rack.heard(1, status()), []);
    assert_eq!(ticks(&mut rack, SURVEY_NS / TICK_NS), [Step::StatusKnown]);
    assert_eq!(rack.seats[2].status, None);
}

#[test]
fn who_follows_a_dead_one_begins_afresh_and_the_death_is_kept() {
    let mut rack = running();
    rack.stay(&[]);
    rack.ended(0, "killed by signal 9".into());
    rack.heard(1, Notice::Lost { member: 0 });
    rack.taken(0, 77, 5);
    let seat = &rack.seats[0];
    assert!(seat.is_alive() && !seat.is_up() && seat.is_endpoint);
    assert_eq!((seat.pid, seat.taken_at_ns, seat.name.as_str()), (77, 5, "n0"));
    assert_eq!((&seat.death, &seat.earlier_deaths[..]), (&None, &["killed by signal 9".to_owned()][..]));
    assert!(rack.seats[1].lost.is_empty(), "it is the one before who was lost");
}

#[test]
fn who_comes_later_and_cannot_begin_takes_nobody_along() {
    let mut rack = running();
    rack.stay(&[]);
    rack.ended(0, "killed by signal 9".into());
    rack.taken(0, 77, 5);
    assert_eq!(rack.heard(0, Notice::Failed { what: "no memory".into() }), []);
    assert_eq!(rack.ended(0, "left its seat".into()), []);
    assert!(rack.is_running());
    assert_eq!(rack.seats[0].death.as_deref(), Some("no memory"));
}

/// A rack of which another host runs the second node and the switch, with its links up.
fn shared() -> Rack {
    let mut rack = rack();
    rack.leave_elsewhere(&[1, 2]);
    assert_eq!(rack.heard(0, Notice::Ready), []);
    assert_eq!(rack.heard(0, Notice::Mapped), [Step::AllMapped]);
    assert_eq!(rack.heard(0, Notice::LinksUp), [Step::LinksUp], "of members elsewhere nobody asks");
    rack
}

#[test]
fn who_has_finished_stays_as_long_as_other_hosts_need_it() {
    let mut rack = shared();
    assert_eq!(rack.heard(0, Notice::Finished), []);
    assert!(rack.has_finished());
    assert_eq!(ticks(&mut rack, 100), [], "however long");
    assert_eq!(rack.hold(true), []);
    assert_eq!(rack.hold(false), [Step::AskReports]);
    assert_eq!(rack.heard(0, report()), [Step::Release]);
    assert_eq!(rack.ended(0, "exited with code 0".to_owned()), [Step::Over]);
}

#[test]
fn nothing_will_come_of_a_host_that_never_came() {
    let mut rack = shared();
    assert_eq!(rack.heard(0, Notice::Finished), []);
    assert_eq!(rack.stall(), [Step::AskWaiting]);
    assert_eq!(rack.heard(0, Notice::Waiting { lines: Vec::new() }), [Step::AskReports]);
    assert_eq!(rack.ending, Some(Ending::Stalled));
}

#[test]
fn a_rack_among_others_can_be_interrupted_while_it_is_held() {
    let mut rack = shared();
    assert_eq!(rack.heard(0, Notice::Finished), []);
    assert_eq!(rack.interrupted(), [Step::AskReports]);
}

#[test]
fn a_rack_at_rest_counts_no_time_until_somebody_asks() {
    let mut rack = running();
    assert!(rack.counts_time(), "a watchdog runs");
    rack.stay(&[]);
    assert!(!rack.counts_time());
    assert_eq!(rack.asked_status(), [Step::AskStatus]);
    assert!(rack.counts_time(), "the answer is due");
    assert!(ticks(&mut rack, 100).contains(&Step::StatusKnown));
    assert!(!rack.counts_time());
    rack.asked_down(None);
    assert!(rack.counts_time(), "so are the reports");
}
