use super::*;

const SECOND: u64 = 1_000_000_000;
const MIB: u64 = 1 << 20;

/// Four nodes of tenant 0, two of tenant 1 with more memory, and a spare one of tenant 0.
fn queue() -> JobQueue {
    let node = |member: usize| Node {
        name: format!("n{member}"),
        member,
        tenant: u16::from(member == 4 || member == 5),
        memory_bytes: if member == 5 { 32 * MIB } else { 16 * MIB },
        is_spare: member == 6,
        job: None,
    };
    JobQueue::new((0..7).map(node).collect(), &graph("star: {nodes: 7}"))
}

fn graph(shape: &str) -> Graph {
    rackloom_plan::Plan::parse(&format!("name: r\nshape: {{{shape}}}\n"), "rack").expect("a rack").graph()
}

fn free() -> Vec<SeatView> {
    vec![SeatView::default(); 7]
}

fn seats(taken: &[usize]) -> Vec<SeatView> {
    let view = |member| SeatView { is_taken: taken.contains(&member), ..SeatView::default() };
    (0..7).map(view).collect()
}

fn counted(count: usize) -> Submission {
    Submission { program: "true".into(), directory: "/".into(), count: Some(count), ..Submission::default() }
}

fn named(names: &[&str]) -> Submission {
    let nodes = names.iter().map(|name| (*name).to_owned()).collect();
    Submission { nodes, count: None, ..counted(0) }
}

fn end(code: i32) -> ProcessEnd {
    ProcessEnd { how: format!("exited with code {code}"), exit_code: Some(code), signal: None }
}

fn refused(submission: Submission) -> String {
    let refused = queue().submit(submission, 0, &free()).unwrap_err();
    assert!(!refused.hint.is_empty());
    refused.what
}

fn state(queue: &JobQueue, job: u64) -> JobState {
    queue.job(job).expect("the job is listed").status.state
}

fn reason(queue: &JobQueue, job: u64) -> &str {
    queue.job(job).and_then(|job| job.status.reason.as_deref()).unwrap_or_default()
}

#[test]
fn a_job_that_can_never_run_is_refused() {
    assert_eq!(refused(counted(6)), "6 nodes are more than the 5 of tenant 0 on this host");
    assert_eq!(refused(counted(0)), "a job has at least one node");
    assert_eq!(refused(named(&["n0", "x9"])), "the rack has no GPU node named x9 on this host");
    assert_eq!(refused(named(&["n0", "n0"])), "node n0 is named twice");
    assert_eq!(refused(named(&["n0", "n4"])), "node n4 is of tenant 1, not of tenant 0");
    let other = Submission { tenant: Some(1), ..named(&["n0"]) };
    assert_eq!(refused(other), "node n0 is of tenant 0, not of tenant 1");
    let none = Submission { tenant: Some(7), ..counted(1) };
    assert_eq!(refused(none), "1 nodes are more than the 0 of tenant 7 on this host");
    let large = Submission { memory_bytes: Some(17 * MIB), ..named(&["n1"]) };
    assert!(refused(large).starts_with("a quota of 17"));
    let large = Submission { memory_bytes: Some(17 * MIB), tenant: Some(1), ..counted(2) };
    assert!(refused(large).contains("are more than the 1 of tenant 1"));
    let both = Submission { count: Some(1), ..named(&["n0"]) };
    assert_eq!(refused(both), "a job has names of nodes or a count");
    assert_eq!(refused(named(&[])), "a job has names of nodes or a count");
    let relative = Submission { directory: "here".into(), ..counted(1) };
    assert_eq!(refused(relative), "here is not absolute");
}

#[test]
fn jobs_of_a_tenant_start_in_order_and_no_later_job_overtakes() {
    let mut queue = queue();
    let [large, larger, small, other] =
        [counted(3), counted(2), counted(1), Submission { tenant: Some(1), ..counted(2) }]
            .map(|submission| queue.submit(submission, 0, &free()).expect("it can run"));
    assert_eq!(queue.poll(0, &free()), [Action::Start(large), Action::Start(other)]);
    assert_eq!(reason(&queue, larger), "waits for 2 nodes, and 1 are free");
    // A node is free for it, and an earlier job of the tenant waits.
    assert_eq!(reason(&queue, small), "waits for job 2, which was submitted before");
    for rank in 0..3 {
        assert_eq!(queue.process_ended(large, rank, end(0), SECOND), []);
    }
    let actions = queue.poll(SECOND, &free());
    let vacated = [0, 1, 2].map(Action::Vacate);
    assert_eq!(actions, [&vacated[..], &[Action::Start(larger), Action::Start(small)]].concat());
    let names: Vec<_> = queue.nodes_of(small).iter().map(|node| node.name.clone()).collect();
    assert_eq!((state(&queue, large), names), (JobState::Passed, vec!["n2".to_owned()]));
}

#[test]
fn a_spare_node_is_used_once_it_is_added() {
    let mut queue = queue();
    let job = queue.submit(counted(5), 0, &free()).expect("the rack has five nodes");
    assert_eq!(queue.poll(0, &free()), []);
    assert_eq!(reason(&queue, job), "waits for 5 nodes, and 4 are free");
    assert_eq!(queue.add_node("n9").unwrap_err().what, "the rack has no GPU node named n9 on this host");
    assert_eq!(queue.add_node("n0").unwrap_err().what, "node n0 is no spare node");
    queue.add_node("n6").expect("it is spare");
    assert_eq!(queue.poll(0, &free()), [Action::Start(job)]);
    assert_eq!(queue.nodes_of(job).last().map(|node| node.member), Some(6));
}

#[test]
fn a_seat_that_is_taken_by_another_process_is_not_free() {
    let mut queue = queue();
    let job = queue.submit(named(&["n1", "n6"]), 0, &free()).expect("it can run");
    assert_eq!(queue.poll(0, &seats(&[1])), []);
    assert_eq!(reason(&queue, job), "waits for n1 (held), n6 (spare)");
}

#[test]
fn the_death_of_one_process_ends_the_job_and_is_named() {
    let mut queue = queue();
    let job = queue.submit(named(&["n2", "n3"]), 0, &free()).expect("it can run");
    queue.poll(0, &free());
    let killed = ProcessEnd { how: "killed by signal 9".into(), exit_code: None, signal: Some(9) };
    assert_eq!(queue.process_ended(job, 1, killed, 10), [Action::Terminate(job)]);
    assert_eq!(reason(&queue, job), "n3: killed by signal 9");
    assert_eq!(queue.poll(GRACE_NS, &seats(&[2])), [], "it may end by itself");
    assert_eq!(queue.poll(10 + GRACE_NS, &seats(&[2])), [Action::Kill(job)]);
    // The second end does not change the reason.
    assert_eq!(queue.process_ended(job, 0, end(1), 20 + GRACE_NS), []);
    assert_eq!(queue.poll(20 + GRACE_NS, &seats(&[2])), [Action::Evict(2)]);
    assert_eq!(queue.poll(30 + GRACE_NS, &free()), [Action::Vacate(2), Action::Vacate(3)]);
    assert_eq!(state(&queue, job), JobState::Failed);
    assert_eq!(reason(&queue, job), "n3: killed by signal 9");
}

/// The exit of another rank, which follows from the death, may be noticed before it.
#[test]
fn a_death_that_is_noticed_after_an_exit_is_named_first() {
    let killed = |signal| ProcessEnd {
        how: format!("killed by signal {signal}"),
        exit_code: None,
        signal: Some(signal),
    };
    for (signal, at_ns, expected) in [
        (9, 1, "n1: killed by signal 9; n0: exited with code 101"),
        (11, 1, "n1: killed by signal 11; n0: exited with code 101"),
        (15, 1, "n0: exited with code 101"),
        (9, GRACE_NS, "n0: exited with code 101"),
    ] {
        let mut queue = queue();
        let job = queue.submit(counted(2), 0, &free()).expect("it can run");
        queue.poll(0, &free());
        queue.process_ended(job, 0, end(101), 0);
        queue.process_ended(job, 1, killed(signal), at_ns);
        assert_eq!(reason(&queue, job), expected);
    }
}

#[test]
fn a_job_beyond_its_time_is_ended() {
    let mut queue = queue();
    let job =
        queue.submit(Submission { time_max_ns: Some(SECOND), ..counted(1) }, 0, &free()).expect("it can run");
    queue.poll(5, &free());
    assert_eq!(queue.poll(SECOND + 4, &free()), []);
    assert_eq!(queue.poll(SECOND + 5, &free()), [Action::Terminate(job)]);
    assert!(reason(&queue, job).starts_with("the job exceeded its time of 1"));
    assert_eq!(queue.process_ended(job, 0, end(0), SECOND + 6), []);
    queue.poll(SECOND + 7, &free());
    assert_eq!(state(&queue, job), JobState::Failed, "an exit in order does not change the outcome");
}

#[test]
fn queued_and_running_jobs_are_cancelled_and_ended_jobs_are_not() {
    let mut queue = queue();
    let [running, queued] =
        [counted(4), counted(1)].map(|job| queue.submit(job, 0, &free()).expect("it can run"));
    queue.poll(0, &free());
    assert_eq!(queue.cancel(queued, "cancelled", 1), Ok(vec![]));
    assert_eq!(state(&queue, queued), JobState::Cancelled);
    assert_eq!(queue.cancel(running, "cancelled", 1), Ok(vec![Action::Terminate(running)]));
    assert_eq!(queue.cancel(running, "again", 2), Ok(vec![]));
    (0..4).for_each(|rank| drop(queue.process_ended(running, rank, end(0), 3)));
    queue.poll(4, &free());
    assert_eq!((state(&queue, running), reason(&queue, running)), (JobState::Cancelled, "cancelled"));
    assert_eq!(queue.cancel(running, "", 5).unwrap_err().what, "job 1 has ended already: cancelled");
    assert_eq!(queue.cancel(9, "", 5).unwrap_err().what, "there is no job 9");
    assert!(!queue.is_active());
}

#[test]
fn the_queue_and_the_list_are_bounded() {
    let mut queue = queue();
    let first = queue.submit(counted(4), 0, &free()).expect("it can run");
    queue.poll(0, &free());
    for _ in 0..QUEUED_MAX {
        queue.submit(counted(1), 0, &free()).expect("it waits");
    }
    assert_eq!(queue.submit(counted(1), 0, &free()).unwrap_err().what, "the queue is full: 64 jobs wait");
    assert_eq!(queue.cancel_all("down", 1), [Action::Terminate(first)]);
    (0..4).for_each(|rank| drop(queue.process_ended(first, rank, end(0), 1)));
    // All 65 have ended. The one that ended first is forgotten, not the one that was submitted first.
    assert_eq!(queue.poll(2, &free())[4..], [Action::Forget(2)]);
    assert_eq!(state(&queue, first), JobState::Cancelled);
    assert_eq!(queue.list(2, &free()).jobs.len(), ENDED_MAX);
    assert!(queue.submit(counted(1), 2, &free()).is_ok_and(|job| job == 66));
}

#[test]
fn accounts_sum_up_bytes_and_time_and_keep_the_high_mark() {
    let mut queue = queue();
    let job = queue.submit(counted(2), 0, &free()).expect("it can run");
    queue.poll(SECOND, &free());
    let used = |bytes, high| {
        let view = SeatView { is_taken: true, bytes, memory_high_bytes: high };
        [&vec![view; 2][..], &free()[2..]].concat()
    };
    queue.poll(2 * SECOND, &used(100, 4096));
    let running = queue.list(3 * SECOND, &free()).tenants[0];
    assert_eq!((running.bytes, running.node_time_ns, running.jobs), (200, 4 * SECOND, 1));
    (0..2).for_each(|rank| drop(queue.process_ended(job, rank, end(0), 4 * SECOND)));
    // The last reports come before the seats are free.
    let last = used(150, 8192).into_iter().map(|view| SeatView { is_taken: false, ..view });
    queue.poll(4 * SECOND, &last.collect::<Vec<_>>());
    let ended = queue.list(9 * SECOND, &free()).tenants[0];
    let expected =
        TenantAccount { tenant: 0, jobs: 1, node_time_ns: 6 * SECOND, bytes: 300, memory_high_bytes: 16384 };
    assert_eq!(ended, expected);
    // A smaller job does not lower the mark.
    queue.submit(counted(1), 0, &free()).expect("it can run");
    queue.poll(10 * SECOND, &used(1, 1));
    let later = queue.list(10 * SECOND, &free()).tenants[0];
    assert_eq!((later.memory_high_bytes, later.jobs), (16384, 2));
}

#[test]
fn a_program_that_cannot_start_fails_its_job() {
    let mut queue = queue();
    let job = queue.submit(counted(2), 0, &free()).expect("it can run");
    queue.poll(0, &free());
    let none = ProcessEnd { how: "cannot start x".into(), exit_code: None, signal: None };
    assert_eq!(queue.process_ended(job, 0, none, 0), [Action::Terminate(job)]);
    assert!(!queue.is_running(job), "the other rank is not started");
    let skipped = ProcessEnd { how: "not started".into(), exit_code: None, signal: None };
    assert_eq!(queue.process_ended(job, 1, skipped, 0), []);
    queue.poll(1, &free());
    assert_eq!((state(&queue, job), reason(&queue, job)), (JobState::Failed, "n0: cannot start x"));
}

#[test]
fn nodes_of_a_job_in_a_ring_are_connected() {
    let node = |member: usize| Node {
        name: format!("n{member}"),
        member,
        tenant: 0,
        memory_bytes: MIB,
        is_spare: false,
        job: None,
    };
    let mut queue = JobQueue::new((0..6).map(node).collect(), &graph("ring: {nodes: 6}"));
    let apart = queue.submit(named(&["n0", "n2"]), 0, &seats(&[])).unwrap_err();
    assert_eq!(apart.what, "n0 does not reach n2: nodes between them have no process");
    // A member that runs forwards.
    let first = queue.submit(named(&["n0", "n2"]), 0, &seats(&[1])).expect("n1 forwards");
    assert_eq!(queue.poll(0, &seats(&[])), []);
    assert_eq!(reason(&queue, first), "waits until n0 reaches n2");
    assert_eq!(queue.poll(0, &seats(&[1])), [Action::Start(first)]);
    // A node of another job forwards only until that job ends.
    let between = queue.submit(named(&["n4"]), 0, &seats(&[1])).expect("it can run");
    let next = queue.submit(counted(2), 0, &seats(&[1])).expect("it can run");
    assert_eq!(queue.poll(0, &seats(&[1])), [Action::Start(between)]);
    assert_eq!(
        reason(&queue, next),
        "waits for 2 nodes that reach each other: 2 are free, and nodes between them forward nothing"
    );
    queue.process_ended(between, 0, end(0), SECOND);
    assert_eq!(queue.poll(SECOND, &seats(&[1])), [Action::Vacate(4), Action::Start(next)]);
    let members: Vec<_> = queue.nodes_of(next).iter().map(|node| node.member).collect();
    assert_eq!(members, [3, 4]);
}
