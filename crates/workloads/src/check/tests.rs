//! Workloads that can be performed, and mistakes of others.

use crate::check::check;
use crate::model::{Group, RankOperations, Work, Workload};
use crate::text;

/// Reads a text with two ranks, or the number that it states, and checks it.
fn checked(body: &str) -> Result<(), Vec<String>> {
    let heading = if body.starts_with("ranks") { "" } else { "ranks 2\n" };
    let workload = text::read(&format!("{heading}{body}"), "w").unwrap_or_else(|errors| panic!("{errors}"));
    check(&workload).map_err(|errors| errors.iter().map(ToString::to_string).collect())
}

/// Returns the only mistake of a workload.
fn mistake(body: &str) -> String {
    let errors = checked(body).expect_err(body);
    assert_eq!(errors.len(), 1, "{errors:#?}");
    errors.into_iter().next().unwrap()
}

#[test]
fn messages_and_collectives_that_agree_are_accepted() {
    let body = "ranks 3\ngroup 0..2\ngroup 2 0\n\
                rank 0\nsend 1 8B tag 1\nsend 1 9B tag 1\nall-reduce group 0 64B\nbroadcast group 1 5B root 1 after -1\n\
                rank 1\nreceive 0 8B tag 1\nreceive 0 9B tag 1 after -1\nall-reduce group 0 64B after -1\n\
                rank 2\nall-reduce group 0 64B\nbroadcast group 1 5B root 1\n";
    assert_eq!(checked(body), Ok(()));
}

#[test]
fn a_send_does_not_wait_for_its_receive() {
    let body = "rank 0\nsend 1 8B\nreceive 1 8B after -1\nrank 1\nsend 0 8B\nreceive 0 8B after -1\n";
    assert_eq!(checked(body), Ok(()));
}

#[test]
fn receives_before_sends_at_both_ranks_are_a_deadlock() {
    let body =
        "rank 0\ncompute 1ns\nreceive 1 8B\nsend 1 8B after -1\nrank 1\nreceive 0 8B\nsend 0 8B after -1\n";
    let error = mistake(body);
    assert!(error.starts_with("rank 0, operation 1: deadlock: 4 operations can never begin"), "{error}");
    let circle = "rank 0, operation 1 (receive of 8 bytes from rank 1, tag 0) -> rank 1, operation 1 (send of 8 bytes to \
                  rank 0, tag 0) -> rank 1, operation 0 (receive of 8 bytes from rank 0, tag 0) -> rank 0, operation 2 \
                  (send of 8 bytes to rank 1, tag 0)";
    assert!(error.contains(circle), "{error}");
}

#[test]
fn collectives_of_two_groups_in_opposite_order_are_a_deadlock() {
    let ordered = "group 0 1\ngroup 1 0\nrank 0\nbarrier group 0\nbarrier group 1 after -1\n";
    let same = format!("{ordered}rank 1\nbarrier group 0\nbarrier group 1 after -1\n");
    assert_eq!(checked(&same), Ok(()));
    let opposite = format!("{ordered}rank 1\nbarrier group 1\nbarrier group 0 after -1\n");
    let error = mistake(&opposite);
    assert!(error.contains("deadlock: 2 operations"), "{error}");
    // Without dependencies both may be in progress at once.
    let free = "group 0 1\ngroup 1 0\nrank 0\nbarrier group 0\nbarrier group 1\nrank 1\nbarrier group 1\nbarrier group 0\n";
    assert_eq!(checked(free), Ok(()));
}

#[test]
fn a_collective_waits_for_the_previous_one_of_its_group() {
    // Rank 1 reaches its second barrier only after a message that rank 0 sends behind its second one.
    let body = "group 0 1\nrank 0\nbarrier group 0\nbarrier group 0\nsend 1 8B after -1\n\
                rank 1\nbarrier group 0\nreceive 0 8B\nbarrier group 0 after -1\n";
    let error = mistake(body);
    assert!(error.contains("deadlock: 3 operations"), "{error}");
}

#[test]
fn a_send_waits_for_the_begin_of_the_previous_one_with_its_tag() {
    let body = |tag: u32| {
        format!(
            "rank 0\nreceive 1 1B\nsend 1 8B after -1\nsend 1 8B tag {tag}\n\
             rank 1\nreceive 0 8B\nreceive 0 8B tag {tag}\nsend 0 1B after -1\n"
        )
    };
    assert_eq!(checked(&body(1)), Ok(()));
    assert!(mistake(&body(0)).contains("deadlock"));
}

#[test]
fn a_lost_peer_is_named() {
    let error = mistake("rank 0\ncompute 1ns\nsend 1 8B tag 3\nrank 1\ncompute 1ns\n");
    let expected = "rank 0, operation 1: no receive at rank 1 belongs to it: from rank 0 to rank 1 with tag 3 there are 1 \
                    sends and 0 receives; hint: ";
    assert!(error.starts_with(expected), "{error}");
    let error = mistake("rank 1\nreceive 0 8B\n");
    assert!(error.starts_with("rank 1, operation 0: no send at rank 0 belongs to it"), "{error}");
}

#[test]
fn unequal_sizes_are_named_at_the_receive() {
    let error = mistake("rank 0\nsend 1 8B\nsend 1 9B\nrank 1\nreceive 0 8B\nreceive 0 10B\n");
    assert!(
        error.starts_with(
            "rank 1, operation 1: a receive of 10 bytes gets the message of rank 0, operation 1"
        ),
        "{error}"
    );
}

#[test]
fn collectives_that_differ_or_lack_a_rank_are_named() {
    let differ = "group 0 1\nrank 0\nall-reduce group 0 8B\nrank 1\nall-gather group 0 8B\n";
    let error = mistake(differ);
    assert!(
        error.starts_with(
            "rank 1, operation 0: collective 0 of group 0 differs: here it is all-gather of 8 bytes"
        ),
        "{error}"
    );
    let roots = "group 0 1\nrank 0\nbroadcast group 0 8B root 0\nrank 1\nbroadcast group 0 8B root 1\n";
    assert!(mistake(roots).contains("root 1, and rank 0, operation 0"), "{roots}");
    let lacks = "group 0 1\nrank 0\nbarrier group 0\nbarrier group 0\nrank 1\nbarrier group 0\n";
    let error = mistake(lacks);
    assert!(
        error.starts_with(
            "rank 0, operation 1: collective 1 of group 0 lacks ranks: rank 1 has no such operation; 1 of 2"
        ),
        "{error}"
    );
}

/// Returns a workload of two ranks and one group, in which the first rank performs `work`.
fn with(work: Work, phase: u16, dependencies: &[u32]) -> Workload {
    let mut workload = text::read("ranks 3\ngroup 0 1\nrank 0\ncompute 1ns\n", "w").unwrap();
    workload.ranks[0].add(phase, work, dependencies.iter().copied());
    workload
}

#[test]
fn wrong_references_are_named() {
    use rackloom_collectives::CollectiveKind::{AllReduce, Barrier, Broadcast};
    let compute = Work::Compute { duration_ns: 1 };
    let send = |to: u16| Work::Send { to, bytes: 1, tag: 0 };
    let collective = |group, kind, bytes, root| Work::Collective { group, kind, bytes, root };
    let cases = [
        (with(compute, 1, &[]), "there is no phase 1"),
        (with(compute, 0, &[1]), "depends on operation 1, which is not an earlier one"),
        (with(send(3), 0, &[]), "there is no rank 3; the workload has 3"),
        (with(send(0), 0, &[]), "rank 0 exchanges a message with itself"),
        (with(collective(1, AllReduce, 1, 0), 0, &[]), "there is no group 1"),
        (with(collective(0, Broadcast, 1, 2), 0, &[]), "root 2 is beyond the 2 ranks"),
        (with(collective(0, AllReduce, 1, 1), 0, &[]), "all-reduce has no root"),
        (with(collective(0, Barrier, 1, 0), 0, &[]), "barrier carries no bytes"),
    ];
    for (workload, reason) in cases {
        let errors = check(&workload).expect_err(reason);
        let shown = errors[0].to_string();
        assert!(shown.starts_with("rank 0, operation 1: ") && shown.contains(reason), "{shown}");
    }
    let error = mistake("ranks 3\ngroup 0 1\nrank 2\nbarrier group 0\n");
    assert!(error.contains("rank 2 is no member of group 0"), "{error}");
}

#[test]
fn groups_and_names_are_checked() {
    let cases: [(&[u16], &str); 3] = [
        (&[0], "group 0: it has 1 ranks"),
        (&[0, 1, 0], "group 0: rank 0 is listed twice"),
        (&[0, 5], "group 0: there is no rank 5"),
    ];
    for (ranks, reason) in cases {
        let mut workload = text::read("ranks 3\n", "w").unwrap();
        workload.groups = vec![Group { ranks: ranks.to_vec() }];
        assert_eq!(check(&workload).unwrap_err()[0].reason, reason);
    }
    let mut workload = text::read("ranks 1\nphase a\n", "w").unwrap();
    workload.phases = vec!["a".into(), "a".into(), " b".into()];
    let errors = check(&workload).unwrap_err();
    assert_eq!(errors.len(), 2, "{errors:?}");
    workload =
        Workload { ranks: vec![RankOperations::default()], name: "a\nb".into(), ..Workload::default() };
    assert!(check(&workload).unwrap_err()[0].reason.contains("is no name of a workload"));
    assert!(check(&Workload::default()).unwrap_err()[0].reason.contains("has 0 ranks"));
}

#[test]
fn computations_of_a_rank_beyond_a_hundred_years_are_refused_at_their_line() {
    let text = "ranks 2\nrank 1\ncompute 3000000000s\ncompute 100000000s\ncompute 100000000s\ncompute 1ns\n";
    let error = text::read_checked(text, "w").unwrap_err().to_string();
    assert!(
        error.starts_with("w:5:1: rank 1, operation 2: the computations of rank 1 up to here"),
        "{error}"
    );
    assert_eq!(error.lines().count(), 1, "{error}");
    // Each of the computations alone is within the limit, and so is their sum in two ranks.
    let text = "ranks 2\nrank 0 1\ncompute 3000000000s\n";
    assert!(text::read_checked(text, "w").is_ok());
}

#[test]
fn the_number_of_mistakes_is_bounded() {
    let body = format!("rank 0\n{}", "send 1 8B\n".repeat(100));
    assert_eq!(checked(&body).unwrap_err().len(), 20);
}

#[test]
fn a_ring_of_many_ranks_is_accepted_and_its_reversal_is_a_deadlock() {
    let ring = |first: &str, second: &str| {
        let blocks = (0..200).map(|rank| {
            let (next, previous) = ((rank + 1) % 200, (rank + 199) % 200);
            let line = |work: &str| {
                if work == "send" { format!("send {next} 8B") } else { format!("receive {previous} 8B") }
            };
            format!("rank {rank}\n{}\n{} after -1\n", line(first), line(second))
        });
        format!("ranks 200\n{}", blocks.collect::<String>())
    };
    assert_eq!(checked(&ring("send", "receive")), Ok(()));
    let error = mistake(&ring("receive", "send"));
    assert!(error.contains("deadlock: 400 operations") && error.contains("392 more operations"), "{error}");
}
