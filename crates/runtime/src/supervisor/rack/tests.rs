//! Tests of the state machine: notices in, steps out.

use rackloom_control::notice::SeatStatus;
use rackloom_control::report::PortReport;
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
        assert_eq!(rack.handle_notice(member, Notice::Ready), []);
    }
    let mapped: Vec<_> = (0..3).flat_map(|member| rack.handle_notice(member, Notice::Mapped)).collect();
    assert_eq!(mapped, [Step::AllMapped], "once, when the last path is decided");
    assert_eq!(rack.handle_notice(0, Notice::LinksUp), []);
    assert_eq!(rack.handle_notice(1, Notice::LinksUp), []);
    assert_eq!(rack.handle_notice(2, Notice::LinksUp), [Step::LinksUp]);
    rack
}

fn report() -> Notice {
    Notice::Report(Box::new(MemberReport::silent("n", None, MemberState::Finished)))
}

fn ticks(rack: &mut Rack, count: u64) -> Vec<Step> {
    (0..count).flat_map(|_| rack.tick()).collect()
}

#[test]
fn members_end_only_when_all_have_reported() {
    let mut rack = running();
    assert_eq!(rack.handle_notice(0, Notice::Finished), []);
    assert_eq!(rack.handle_notice(1, Notice::Finished), [Step::RequestReports]);
    assert_eq!(rack.handle_notice(0, report()), []);
    assert_eq!(rack.handle_notice(1, report()), []);
    assert_eq!(rack.handle_notice(2, report()), [Step::CloseSockets]);
    assert_eq!(rack.ended(0, "exit 0".into()), []);
    assert_eq!(rack.ended(1, "exit 0".into()), []);
    assert_eq!(rack.ended(2, "exit 0".into()), [Step::Over]);
    assert_eq!(rack.ending, Some(Ending::Complete));
    assert!(rack.seats.iter().all(|seat| seat.death.is_none()));
}

#[test]
fn a_death_is_recorded_and_the_other_members_continue() {
    let mut rack = running();
    assert_eq!(rack.ended(0, "killed by signal 9".into()), []);
    assert_eq!(rack.seats[0].death.as_deref(), Some("killed by signal 9"));
    assert_eq!(rack.handle_notice(1, Notice::Finished), [], "member 1 has not noticed the death yet");
    assert_eq!(rack.handle_notice(1, Notice::Lost { member: 0 }), [Step::RequestReports]);
}

#[test]
fn the_time_to_detect_a_death_is_bounded() {
    let mut rack = running();
    rack.ended(0, "killed by signal 9".into());
    assert_eq!(rack.handle_notice(1, Notice::Finished), []);
    assert_eq!(ticks(&mut rack, 2), []);
    assert_eq!(ticks(&mut rack, 1), [Step::RequestReports]);
}

fn dies_for(rack: &mut Rack, member: usize, after_ns: u64) -> EventRecord {
    let ends = EventRecord {
        at_ns: 0,
        member: "n0".into(),
        kind: "fault".into(),
        text: String::new(),
        fields: [].into(),
    };
    assert_eq!(rack.handle_notice(member, Notice::Returning { after_ns, ends: ends.clone() }), []);
    assert_eq!(
        rack.ended(member, "killed by signal 9".into()),
        [Step::StartSuccessorAfter(member, after_ns)]
    );
    ends
}

#[test]
fn the_run_waits_until_the_links_of_a_successor_are_up() {
    let mut rack = running();
    let ends = dies_for(&mut rack, 0, 20 * WATCHDOG_NS);
    assert_eq!(rack.handle_notice(1, Notice::Finished), [], "a successor is expected");
    assert_eq!(ticks(&mut rack, 2 * WATCHDOG_NS / TICK_NS), [], "the watchdog does not expire meanwhile");
    assert_eq!(rack.due_successor(0), Some(ends));
    rack.taken(0, 77, 0);
    assert_eq!(rack.seats[0].earlier_deaths, ["killed by signal 9"]);
    assert_eq!(rack.handle_notice(0, Notice::Finished), []);
    assert_eq!(rack.handle_notice(0, Notice::LinksUp), [Step::RequestReports]);
}

#[test]
fn the_time_for_the_links_of_a_successor_is_bounded() {
    let mut rack = running();
    dies_for(&mut rack, 0, 1);
    rack.taken(0, 77, 0);
    rack.handle_notice(0, Notice::Finished);
    rack.handle_notice(1, Notice::Finished);
    assert_eq!(ticks(&mut rack, 2), []);
    assert_eq!(ticks(&mut rack, 1), [Step::RequestReports]);
}

#[test]
fn no_successor_starts_while_the_rack_ends_and_a_failed_start_is_recorded() {
    let mut rack = running();
    dies_for(&mut rack, 0, 1);
    assert_eq!(rack.handle_notice(1, Notice::Finished), []);
    assert_eq!(rack.successor_failed(0, "no process"), []);
    let death = rack.seats[0].death.as_deref();
    assert_eq!(death, Some("killed by signal 9, and no successor could start: no process"));
    assert_eq!(rack.due_successor(0), None);
    let mut rack = running();
    dies_for(&mut rack, 0, 1);
    rack.interrupted();
    assert_eq!(rack.due_successor(0), None);
}

#[test]
fn a_member_that_leaves_a_standing_rack_reports_and_its_seat_becomes_vacant() {
    let mut rack = rack();
    rack.stay(&[]);
    for member in 0..3 {
        rack.handle_notice(member, Notice::Ready);
        rack.handle_notice(member, Notice::Mapped);
        rack.handle_notice(member, Notice::LinksUp);
    }
    assert_eq!(rack.request_leave(1), [Step::RequestLeave(1)]);
    assert_eq!(rack.request_leave(1), [], "once");
    assert_eq!(rack.handle_notice(1, report()), [Step::CloseSocket(1)]);
    assert_eq!(rack.ended(1, "exited with code 0".into()), [Step::Left(1), Step::SeatFreed]);
    assert!(
        rack.seats[1].is_vacant() && rack.seats[1].death.is_none() && rack.seats[1].earlier_deaths.is_empty()
    );
    assert!(rack.is_running(), "the rack stays");
    assert_eq!(rack.starting().count(), 0);
    rack.taken(1, 77, 0);
    assert!(rack.seats[1].is_alive());
    assert_eq!(rack.starting().collect::<Vec<_>>(), [1]);
}

#[test]
fn the_counters_of_a_seat_are_those_of_all_its_processes() {
    let report_of = |frames_sent: u64| {
        let mut report = MemberReport::silent("n1", None, MemberState::Finished);
        report.ports = vec![PortReport { edge: 4, frames_sent, ..PortReport::default() }];
        Notice::Report(Box::new(report))
    };
    let mut rack = running();
    rack.stay(&[]);
    drop(rack.request_leave(1));
    assert_eq!(rack.handle_notice(1, report_of(5)), [Step::CloseSocket(1)]);
    drop(rack.ended(1, "exited with code 0".into()));
    rack.taken(1, 77, 0);
    drop(rack.request_leave(1));
    drop(rack.handle_notice(1, report_of(7)));
    drop(rack.ended(1, "exited with code 0".into()));
    let frames = |ports: &[PortReport]| {
        let [port] = ports else { panic!("{ports:?}") };
        (port.frames_sent, port.is_partial)
    };
    rack.taken(1, 78, 0);
    drop(rack.ended(1, "killed by signal 9".into()));
    rack.taken(1, 79, 0);
    drop(rack.request_down(None));
    drop(rack.handle_notice(1, report_of(9)));
    assert_eq!(frames(&rack.seats[1].take_ports()), (21, true), "the process that was killed had no report");
}

#[test]
fn a_hung_member_that_others_have_lost_is_not_waited_for() {
    let mut rack = running();
    assert_eq!(rack.handle_notice(1, Notice::Lost { member: 0 }), []);
    assert_eq!(rack.handle_notice(1, Notice::Finished), [Step::RequestReports]);
    rack.handle_notice(1, report());
    rack.handle_notice(2, report());
    assert_eq!(ticks(&mut rack, LOST_REPORT_NS / TICK_NS), [Step::Kill(vec![0])]);
    assert_eq!(rack.seats[0].death.as_deref(), Some("hung: lost by its neighbours, and sent no report"));
    assert_eq!(rack.ended(0, "killed by signal 9".into()), [Step::CloseSockets]);
}

#[test]
fn under_a_fault_script_separated_members_are_waited_for_within_the_limit() {
    let mut rack = running();
    rack.wait_for_lost(2 * TICK_NS);
    rack.handle_notice(1, Notice::Lost { member: 0 });
    assert_eq!(rack.handle_notice(1, Notice::Finished), []);
    assert_eq!(rack.handle_notice(0, Notice::Finished), [Step::RequestReports], "it finished by itself");

    let mut rack = running();
    rack.wait_for_lost(2 * TICK_NS);
    rack.handle_notice(1, Notice::Lost { member: 0 });
    assert_eq!(rack.handle_notice(1, Notice::Finished), []);
    assert_eq!(ticks(&mut rack, WATCHDOG_NS / TICK_NS - 1), []);
    assert_eq!(rack.handle_notice(0, Notice::Progress { count: 1, portion: None }), [Step::Progress]);
    assert_eq!(ticks(&mut rack, WATCHDOG_NS / TICK_NS - 1), [], "it makes progress");
    assert_eq!(ticks(&mut rack, 1), [Step::RequestReports], "no progress for the watchdog's time");
}

/// Node 0 loses all paths, finishes alone, and is killed. Nodes 1 and 2 have not agreed yet on the remaining
/// nodes.
#[test]
fn members_that_only_a_dead_member_had_lost_are_not_presumed_dead() {
    let members = ["n0", "n1", "n2"].map(|name| (name.to_owned(), true));
    let mut rack = Rack::new(members, WATCHDOG_NS, 3 * TICK_NS);
    let notices: [fn() -> Notice; 3] = [|| Notice::Ready, || Notice::Mapped, || Notice::LinksUp];
    for notice in notices {
        (0..3).for_each(|member| drop(rack.handle_notice(member, notice())));
    }
    rack.wait_for_lost(0);
    [1, 2].iter().for_each(|member| drop(rack.handle_notice(0, Notice::Lost { member: *member })));
    assert_eq!(rack.handle_notice(0, Notice::Finished), []);
    rack.handle_notice(0, Notice::Dying);
    assert_eq!(rack.ended(0, "killed".into()), []);
    assert_eq!(ticks(&mut rack, WATCHDOG_NS / TICK_NS - 1), [], "longer than the time to detect a death");
    for member in [1, 2] {
        rack.handle_notice(member, Notice::Lost { member: 0 });
    }
    assert_eq!(rack.handle_notice(1, Notice::Finished), []);
    assert_eq!(rack.handle_notice(2, Notice::Finished), [Step::RequestReports]);
    assert_eq!(rack.ending, Some(Ending::Complete));
}

fn rested() -> Notice {
    Notice::Rested(Rest::default())
}

/// Returns a rack with a fault script whose nodes have all finished.
fn healing() -> Rack {
    let mut rack = running();
    rack.heal_after_job(4 * TICK_NS);
    assert_eq!(rack.handle_notice(0, Notice::Finished), []);
    assert_eq!(rack.handle_notice(1, Notice::Finished), [Step::Heal]);
    rack
}

#[test]
fn after_a_script_members_report_once_all_are_at_rest() {
    let mut rack = healing();
    assert_eq!(rack.handle_notice(0, rested()), []);
    assert_eq!(rack.handle_notice(1, rested()), []);
    assert_eq!(rack.handle_notice(2, rested()), [Step::JudgeRest], "switches have ends of links as well");
    assert_eq!(ticks(&mut rack, 1), [Step::Heal], "members that are not at rest get another request");
    assert_eq!(ticks(&mut rack, 1), [], "but not before all have answered");
    (0..3).for_each(|member| drop(rack.handle_notice(member, rested())));
    assert_eq!(rack.is_at_rest(), [Step::RequestReports]);
    assert_eq!(rack.ending, Some(Ending::Complete));
    assert_eq!(rack.is_at_rest(), [], "once");
}

#[test]
fn the_time_to_come_to_rest_is_bounded() {
    let mut rack = healing();
    rack.handle_notice(0, rested());
    assert_eq!(ticks(&mut rack, 3), []);
    assert_eq!(ticks(&mut rack, 1), [Step::RequestReports]);
    assert_eq!(rack.ending, Some(Ending::Complete));
    let mut rack = healing();
    assert_eq!(rack.interrupted(), [Step::RequestReports], "an interruption does not wait");
}

/// Returns a standing rack of two GPU nodes and a switch, up and idle.
fn standing() -> Rack {
    let mut rack = running();
    rack.stay(&[]);
    (0..2).for_each(|member| drop(rack.handle_notice(member, Notice::Finished)));
    rack
}

#[test]
fn a_rack_comes_to_rest_before_it_is_taken_down() {
    let mut rack = standing();
    assert_eq!(rack.request_down(Some(4 * TICK_NS)), [Step::Heal]);
    assert!(rack.is_healing() && rack.counts_time());
    assert_eq!(rack.request_down(Some(4 * TICK_NS)), [], "a second request changes nothing");
    (0..3).for_each(|member| drop(rack.handle_notice(member, rested())));
    assert_eq!(rack.is_at_rest(), [Step::RequestReports]);
    assert_eq!(rack.ending, Some(Ending::TakenDown));
    let mut silent = standing();
    drop(silent.request_down(Some(2 * TICK_NS)));
    assert_eq!(ticks(&mut silent, 2), [Step::RequestReports], "the wait is bounded");
    assert_eq!(silent.ending, Some(Ending::TakenDown));
}

#[test]
fn a_rack_without_a_live_member_is_taken_down_at_once() {
    let mut rack = standing();
    (0..3).for_each(|member| drop(rack.ended(member, "exited".into())));
    let steps = rack.request_down(Some(4 * TICK_NS));
    assert!(!rack.is_healing() && steps.contains(&Step::RequestReports), "{steps:?}");
}

#[test]
fn a_rack_that_is_taken_down_during_a_job_ends_at_once() {
    let mut rack = running();
    rack.stay(&[]);
    assert_eq!(rack.request_down(Some(4 * TICK_NS)), [Step::RequestReports]);
}

#[test]
fn a_member_that_dies_while_faults_end_is_not_waited_for() {
    let mut rack = healing();
    rack.handle_notice(0, rested());
    rack.handle_notice(1, rested());
    assert_eq!(rack.ended(2, "killed by signal 9".into()), []);
    assert_eq!(ticks(&mut rack, 1), [Step::Heal]);
}

#[test]
fn a_death_before_the_links_are_up_ends_the_run() {
    let mut rack = rack();
    rack.handle_notice(0, Notice::Ready);
    assert_eq!(rack.ended(1, "killed by signal 9".into()), [Step::RequestReports]);
    let what = "n1 ended before all links were up: killed by signal 9";
    assert_eq!(rack.ending, Some(Ending::LostEarly(what.into())));
}

#[test]
fn a_death_by_script_is_no_failure_to_start() {
    let mut rack = rack();
    rack.handle_notice(0, Notice::LinksUp);
    assert_eq!(rack.handle_notice(1, Notice::Dying), []);
    assert_eq!(rack.ended(1, "killed by signal 9".into()), []);
    assert_eq!(rack.ending, None);
    assert_eq!(rack.handle_notice(2, Notice::LinksUp), [Step::LinksUp], "a dead member is not waited for");
}

#[test]
fn a_death_in_the_job_is_no_early_loss_although_notices_of_other_links_are_missing() {
    let mut rack = rack();
    rack.handle_notice(1, Notice::LinksUp);
    assert_eq!(rack.ended(1, "killed by signal 9".into()), []);
    assert_eq!(rack.ending, None);
    rack.handle_notice(0, Notice::LinksUp);
    assert_eq!(rack.handle_notice(2, Notice::LinksUp), [Step::LinksUp]);
    rack.handle_notice(0, Notice::Lost { member: 1 });
    assert_eq!(rack.handle_notice(0, Notice::Finished), [Step::RequestReports]);
}

#[test]
fn progress_counts_the_pieces_of_all_nodes() {
    let mut rack = running();
    for (member, done) in [(0, 7), (1, 3)] {
        let portion = Some(Portion::new(done, 10));
        assert_eq!(rack.handle_notice(member, Notice::Progress { count: done, portion }), [Step::Progress]);
    }
    let counted = |rack: &Rack| (rack.progress().finished, rack.progress().thousandths);
    assert_eq!(counted(&rack), (0, [10_000, 20_000]));
    rack.handle_notice(1, Notice::Finished);
    assert_eq!(counted(&rack), (1, [17_000, 20_000]));
}

#[test]
fn new_progress_resets_the_watchdog_and_repeated_progress_does_not() {
    let mut rack = running();
    assert_eq!(ticks(&mut rack, 9), []);
    assert_eq!(rack.handle_notice(0, Notice::Progress { count: 5, portion: None }), [Step::Progress]);
    assert_eq!(ticks(&mut rack, 9), []);
    assert_eq!(rack.handle_notice(0, Notice::Progress { count: 5, portion: None }), []);
    assert_eq!(ticks(&mut rack, 1), [Step::RequestWaiting]);
    for member in 0..2 {
        assert_eq!(rack.handle_notice(member, Notice::Waiting { lines: vec!["a signal".into()] }), []);
    }
    assert_eq!(rack.handle_notice(2, Notice::Waiting { lines: vec![] }), [Step::RequestReports]);
    assert_eq!(rack.ending, Some(Ending::Stalled));
}

#[test]
fn silent_seats_are_killed_in_bounded_time() {
    let mut rack = running();
    assert_eq!(ticks(&mut rack, 10), [Step::RequestWaiting]);
    assert_eq!(ticks(&mut rack, ANSWER_NS / TICK_NS), [Step::RequestReports]);
    rack.handle_notice(1, report());
    assert_eq!(ticks(&mut rack, DEPARTURE_NS / TICK_NS), [Step::Kill(vec![0, 1, 2])]);
    assert_eq!(ticks(&mut rack, 1_000), []);
    assert_eq!(rack.seats[0].death.as_deref(), Some("sent no report in time"));
    assert_eq!(rack.seats[1].death, None);
}

#[test]
fn a_seat_that_cannot_start_ends_the_run_with_its_name() {
    let mut rack = rack();
    assert_eq!(rack.handle_notice(1, Notice::Failed { what: "no memory".into() }), [Step::RequestReports]);
    assert_eq!(rack.ending, Some(Ending::CouldNotStart("n1: no memory".into())));
}

#[test]
fn the_first_interruption_requests_reports_and_the_second_kills() {
    let mut rack = running();
    assert_eq!(rack.interrupted(), [Step::RequestReports]);
    assert_eq!(rack.interrupted(), [Step::Kill(vec![0, 1, 2])]);
    assert_eq!(rack.ending, Some(Ending::Interrupted));
}

#[test]
fn a_rack_whose_members_are_all_dead_ends() {
    let mut rack = running();
    rack.ended(2, "killed by signal 9".into());
    rack.ended(0, "killed by signal 9".into());
    let steps = rack.ended(1, "killed by signal 9".into());
    assert_eq!(steps, [Step::RequestReports, Step::CloseSockets, Step::Over]);
}

fn staying(vacant: &[usize]) -> Rack {
    let mut rack = rack();
    rack.stay(vacant);
    rack
}

#[test]
fn a_seat_of_another_host_stays_elsewhere_in_a_standing_rack() {
    let mut rack = rack();
    rack.set_elsewhere(&[1]);
    rack.stay(&[0, 1]);
    assert!(rack.seats[0].is_vacant() && !rack.seats[0].is_elsewhere());
    assert!(rack.seats[1].is_vacant() && rack.seats[1].is_elsewhere());
}

#[test]
fn a_member_gets_one_request_to_leave() {
    let mut rack = running();
    assert_eq!(rack.request_leave(1), [Step::RequestLeave(1)]);
    assert_eq!(rack.request_leave(1), []);
    assert!(rack.seats[1].is_alive(), "it reports first");
}

fn status() -> Notice {
    Notice::Status(SeatStatus { links_up: 1, finished: true, ..SeatStatus::default() })
}

#[test]
fn a_standing_rack_ends_only_on_request() {
    let mut rack = staying(&[]);
    for member in 0..3 {
        rack.handle_notice(member, Notice::LinksUp);
        assert_eq!(rack.handle_notice(member, Notice::Finished), []);
    }
    assert!(rack.is_running());
    assert_eq!(ticks(&mut rack, 100), []);
    assert_eq!(rack.request_down(None), [Step::RequestReports]);
    assert_eq!(rack.request_down(None), [], "a second request changes nothing");
    for member in 0..2 {
        assert_eq!(rack.handle_notice(member, report()), []);
    }
    assert_eq!(rack.handle_notice(2, report()), [Step::CloseSockets]);
    assert_eq!(rack.ending, Some(Ending::TakenDown));
}

#[test]
fn a_vacant_seat_does_not_count_until_it_is_taken() {
    let mut rack = staying(&[1]);
    assert_eq!(rack.live().collect::<Vec<_>>(), [0, 2]);
    assert_eq!(rack.handle_notice(0, Notice::LinksUp), []);
    assert_eq!(rack.handle_notice(2, Notice::LinksUp), [Step::LinksUp]);
    rack.taken(1, 77, 5);
    assert_eq!(rack.live().collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(rack.request_down(None), [Step::RequestReports]);
    rack.handle_notice(0, report());
    rack.handle_notice(2, report());
    assert_eq!(rack.ended(1, "left".into()), [Step::CloseSockets], "a member that took a seat is waited for");
}

#[test]
fn a_standing_rack_does_not_come_up_if_a_member_dies() {
    let mut rack = staying(&[]);
    assert_eq!(rack.ended(2, "killed by signal 9".into()), [Step::RequestReports]);
    assert_eq!(rack.ending, Some(Ending::CouldNotStart("s0: killed by signal 9".into())));
}

#[test]
fn a_survey_waits_for_live_members_within_a_limit() {
    let mut rack = staying(&[0]);
    rack.handle_notice(1, Notice::LinksUp);
    rack.handle_notice(2, Notice::LinksUp);
    assert_eq!(rack.request_status(|_, _| None), [Step::RequestStatus]);
    assert_eq!(rack.request_status(|_, _| None), [], "one survey serves all requests");
    assert_eq!(rack.handle_notice(1, status()), []);
    assert_eq!(rack.handle_notice(2, status()), [Step::StatusKnown]);
    assert_eq!(rack.request_status(|_, _| None), [Step::RequestStatus]);
    assert_eq!(rack.handle_notice(1, status()), []);
    assert_eq!(ticks(&mut rack, SURVEY_NS / TICK_NS), [Step::StatusKnown]);
    assert_eq!(rack.seats[2].status, None);
}

#[test]
fn members_whose_status_is_known_are_sent_no_request() {
    let mut rack = staying(&[0]);
    rack.handle_notice(1, Notice::LinksUp);
    rack.handle_notice(2, Notice::LinksUp);
    let known = |at_ns: u64| SeatStatus { at_ns, ..SeatStatus::default() };
    assert_eq!(rack.request_status(|member, _| (member == 1).then(|| known(5))), [Step::RequestStatus]);
    assert_eq!((rack.seats[1].status.clone(), rack.seats[2].status.clone()), (Some(known(5)), None));
    assert_eq!(rack.handle_notice(2, status()), [Step::StatusKnown]);
    let mut earlier = Vec::new();
    let steps = rack.request_status(|member, status| {
        earlier.push((member, status.map(|status| status.at_ns)));
        Some(known(6))
    });
    assert_eq!(steps, [Step::StatusKnown], "no message is sent, and no tick is awaited");
    assert_eq!(earlier, [(1, Some(5)), (2, Some(0))], "the answers of live members");
    assert!(!rack.counts_time());
    rack.ended(1, "killed by signal 9".into());
    rack.taken(1, 78, 9);
    let steps = rack.request_status(|_, status| status.map(|_| known(7)));
    assert_eq!(steps, [Step::RequestStatus], "another process has not answered yet");
    assert_eq!(rack.seats[2].status, Some(known(7)));
}

#[test]
fn a_successor_begins_anew_and_the_death_is_kept() {
    let mut rack = running();
    rack.stay(&[]);
    rack.ended(0, "killed by signal 9".into());
    rack.handle_notice(1, Notice::Lost { member: 0 });
    rack.taken(0, 77, 5);
    let seat = &rack.seats[0];
    assert!(seat.is_alive() && !seat.is_up() && seat.is_endpoint);
    assert_eq!((seat.pid, seat.taken_at_ns, seat.name.as_str()), (77, 5, "n0"));
    assert_eq!((&seat.death, &seat.earlier_deaths[..]), (&None, &["killed by signal 9".to_owned()][..]));
    assert!(rack.seats[1].lost.is_empty(), "the lost one was the earlier process");
}

#[test]
fn a_later_process_that_cannot_start_does_not_end_the_rack() {
    let mut rack = running();
    rack.stay(&[]);
    rack.ended(0, "killed by signal 9".into());
    rack.taken(0, 77, 5);
    assert_eq!(rack.handle_notice(0, Notice::Failed { what: "no memory".into() }), []);
    assert_eq!(rack.ended(0, "left its seat".into()), [Step::SeatFreed]);
    assert!(rack.is_running());
    assert_eq!(rack.seats[0].death.as_deref(), Some("no memory"));
}

/// Returns a rack with its links up, of which another host runs the second node and the switch.
fn shared() -> Rack {
    let mut rack = rack();
    rack.set_elsewhere(&[1, 2]);
    assert_eq!(rack.handle_notice(0, Notice::Ready), []);
    assert_eq!(rack.handle_notice(0, Notice::Mapped), [Step::AllMapped]);
    assert_eq!(
        rack.handle_notice(0, Notice::LinksUp),
        [Step::LinksUp],
        "members on other hosts do not count"
    );
    rack
}

#[test]
fn finished_members_stay_while_other_hosts_need_them() {
    let mut rack = shared();
    assert_eq!(rack.handle_notice(0, Notice::Finished), []);
    assert!(rack.has_finished());
    assert_eq!(ticks(&mut rack, 100), [], "without a limit");
    assert_eq!(rack.set_held(true), []);
    assert_eq!(rack.set_held(false), [Step::RequestReports]);
    assert_eq!(rack.handle_notice(0, report()), [Step::CloseSockets]);
    assert_eq!(rack.ended(0, "exited with code 0".to_owned()), [Step::Over]);
}

#[test]
fn a_missing_host_stalls_the_rack() {
    let mut rack = shared();
    assert_eq!(rack.handle_notice(0, Notice::Finished), []);
    assert_eq!(rack.stall(), [Step::RequestWaiting]);
    assert_eq!(rack.handle_notice(0, Notice::Waiting { lines: Vec::new() }), [Step::RequestReports]);
    assert_eq!(rack.ending, Some(Ending::Stalled));
}

#[test]
fn a_rack_that_waits_for_other_hosts_can_be_interrupted() {
    let mut rack = shared();
    assert_eq!(rack.handle_notice(0, Notice::Finished), []);
    assert_eq!(rack.interrupted(), [Step::RequestReports]);
}

#[test]
fn an_idle_standing_rack_counts_no_time_without_a_request() {
    let mut rack = running();
    assert!(rack.counts_time(), "a watchdog runs");
    rack.stay(&[]);
    assert!(!rack.counts_time());
    assert_eq!(rack.request_status(|_, _| None), [Step::RequestStatus]);
    assert!(rack.counts_time(), "an answer is outstanding");
    assert!(ticks(&mut rack, 100).contains(&Step::StatusKnown));
    assert!(!rack.counts_time());
    rack.request_down(None);
    assert!(rack.counts_time(), "reports are outstanding");
}

/// A GPU node with two process seats, of which the first is held.
fn with_processes() -> Rack {
    let members = [("n0", true), ("n1", true), ("n0.p0", false), ("n0.p1", false)];
    let members = members.map(|(name, is_endpoint)| (name.to_owned(), is_endpoint));
    let mut rack = Rack::new(members, WATCHDOG_NS, 3 * TICK_NS);
    rack.set_processes([(2, 0), (3, 0)]);
    rack.stay(&[2, 3]);
    for member in 0..2 {
        for notice in [Notice::Ready, Notice::Mapped, Notice::LinksUp, Notice::Finished] {
            rack.handle_notice(member, notice);
        }
    }
    assert!(rack.is_running(), "process seats are not waited for");
    rack.taken(2, 77, 0);
    rack
}

#[test]
fn the_end_of_a_process_frees_its_seat_and_is_no_death() {
    let mut rack = with_processes();
    assert_eq!(rack.ended(2, "left its seat".into()), [Step::Left(2), Step::SeatFreed]);
    assert!(rack.seats[2].is_vacant() && rack.seats[2].death.is_none());
    rack.taken(2, 78, 0);
    assert_eq!(rack.seats[2].process_of, Some(0), "the next process is behind the node, too");
    assert!(rack.seats[2].earlier_deaths.is_empty());
}

#[test]
fn processes_end_with_the_process_of_their_node() {
    let mut rack = with_processes();
    assert_eq!(rack.ended(1, "killed by signal 9".into()), [Step::SeatFreed], "the other node has none");
    assert_eq!(rack.ended(0, "killed by signal 9".into()), [Step::Kill(vec![2]), Step::SeatFreed]);
    let mut left = with_processes();
    drop(left.request_leave(0));
    drop(left.handle_notice(0, report()));
    assert_eq!(
        left.ended(0, "exited with code 0".into()),
        [Step::Left(0), Step::SeatFreed, Step::Kill(vec![2])]
    );
}
