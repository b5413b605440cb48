//! Connection matrices that are read and refused.

use crate::import::{Content, File, Imported};
use crate::model::Workload;
use crate::text;

fn imported(body: &str) -> Result<Imported, String> {
    super::read(&File { name: "a.cm", bytes: body.as_bytes() }).map_err(|errors| errors.to_string())
}

fn workload(body: &str) -> Workload {
    match imported(body).unwrap().content {
        Content::Workload(workload) => workload,
        Content::Hardware(_) => panic!("hardware"),
    }
}

/// Returns the workload of a text with phase `main` and name `a`.
fn expected(body: &str) -> Workload {
    text::read(&format!("workload a\nphase main\n{body}"), "w").unwrap()
}

#[test]
fn connections_are_messages_after_their_start_times() {
    let body = "Nodes 3\nConnections 4\n# all to one\n0->2 start 0 size 2000000\n1->2 start 5000.000 size 10\n\
                1->0 id 7 start 2001 size 20 prio 3\n1->2 start 5000 size 30\n";
    let text = "ranks 3\n\
                rank 0\nsend 2 2000000B tag 0\nreceive 1 20B tag 2\n\
                rank 1\ncompute 3ns\nsend 0 20B tag 2 after 0\ncompute 2ns after 0\nsend 2 10B tag 1 after 2\n\
                send 2 30B tag 3 after 2\n\
                rank 2\nreceive 0 2000000B tag 0\nreceive 1 10B tag 1\nreceive 1 30B tag 3\n";
    let same = |workload: &Workload| {
        // The order of independent operations does not matter here.
        let mut lines: Vec<_> = workload
            .ranks
            .iter()
            .map(|rank| {
                let operations = rank.operations().iter();
                let after = |one| {
                    let works =
                        rank.dependencies(one).iter().map(|index| &rank.operations()[*index as usize].work);
                    format!("{:?}", works.collect::<Vec<_>>())
                };
                let mut lines: Vec<_> =
                    operations.map(|one| format!("{:?} after {}", one.work, after(one))).collect();
                lines.sort();
                lines
            })
            .collect();
        lines.push(vec![workload.name.clone()]);
        lines
    };
    assert_eq!(same(&workload(body)), same(&expected(text)));
    let notes = imported(body).unwrap().notes;
    assert_eq!(
        notes,
        [
            "connections whose priority or addition to another flow is left out: 1",
            "start times that are rounded up to a nanosecond: 1"
        ]
    );
}

#[test]
fn a_trigger_of_one_connection_is_a_dependency() {
    let body = "Nodes 2\nConnections 2\nTriggers 1\n0->1 id 1 start 0 size 8 send_done_trigger 5\n\
                0->1 id 2 trigger 5 size 9\ntrigger id 5 oneshot\n";
    let text = "ranks 2\nrank 0\nsend 1 8B tag 0\nsend 1 9B tag 1 after 0\n\
                rank 1\nreceive 0 8B tag 0\nreceive 0 9B tag 1\n";
    assert_eq!(workload(body), expected(text));
    assert_eq!(imported(body).unwrap().notes, [""; 0]);
}

#[test]
fn a_trigger_of_another_host_is_a_message() {
    let body = "Nodes 3\nConnections 2\nTriggers 1\n0->1 id 1 start 0 size 8 recv_done_trigger 5\n\
                2->0 id 2 trigger 5 size 9\ntrigger id 5 oneshot\n";
    let text = "ranks 3\nrank 0\nsend 1 8B tag 0\nreceive 2 9B tag 1\n\
                rank 1\nreceive 0 8B tag 0\nsend 2 8B tag 2 after 0\n\
                rank 2\nreceive 1 8B tag 2\nsend 0 9B tag 1 after 0\n";
    assert_eq!(workload(body), expected(text));
    let notes = imported(body).unwrap().notes;
    assert_eq!(notes, ["triggers between hosts, each carried by a message of 8 bytes: 1"]);
}

#[test]
fn a_barrier_waits_for_all_and_starts_connections_of_several_hosts() {
    let body = "Nodes 3\nConnections 4\nTriggers 1\n0->1 id 1 start 0 size 8 recv_done_trigger 5\n\
                0->2 id 2 start 0 size 8 send_done_trigger 5\n1->0 id 3 trigger 5 size 1\n2->0 id 4 trigger 5 size 2\n\
                trigger id 5 barrier count 2\n";
    let text = "ranks 3\n\
                rank 0\nsend 1 8B tag 0\nsend 2 8B tag 1\nreceive 1 1B tag 2\nreceive 2 2B tag 3\nsend 1 8B tag 4 after 1\n\
                rank 1\nreceive 0 8B tag 0\nreceive 0 8B tag 4\nsend 0 1B tag 2 after 0 1\nsend 2 8B tag 5 after 0 1\n\
                rank 2\nreceive 0 8B tag 1\nreceive 1 8B tag 5\nsend 0 2B tag 3 after 1\n";
    assert_eq!(workload(body), expected(text));
}

#[test]
fn activations_of_a_multishot_trigger_start_one_connection_each() {
    let body = "Nodes 2\nConnections 3\nTriggers 1\n0->1 id 1 start 0 size 1 send_done_trigger 5\n\
                0->1 id 2 trigger 5 size 2 send_done_trigger 5\n0->1 id 3 trigger 5 size 3 send_done_trigger 5\n\
                trigger id 5 multishot\n";
    let text = "ranks 2\nrank 0\nsend 1 1B\nsend 1 2B tag 1 after 0\nsend 1 3B tag 2 after 1\n\
                rank 1\nreceive 0 1B\nreceive 0 2B tag 1\nreceive 0 3B tag 2\n";
    assert_eq!(workload(body), expected(text));
}

#[test]
fn mistakes_name_their_line() {
    let with = |line: &str| format!("Nodes 4\n{line}\n");
    let cases = [
        (with("0-1 start 0 size 1"), "2:1: `0-1` begins no line"),
        (with("0->70000 start 0 size 1"), "2:1: `70000` is no host"),
        (with("0->4 start 0 size 1"), "2:1: there is no host 4; the header states 4"),
        (with("0->0 start 0 size 1"), "2:1: rank 0, operation 0: rank 0 exchanges a message with itself"),
        (with("0->1 start 0"), "2:1: the connection has no size"),
        (with("0->1 start 0 size 0"), "2:1: a size of 0 is a flow without an end"),
        (
            with("0->1 start 0 size 99999999999999999999"),
            "2:19: `99999999999999999999` is no number in range",
        ),
        (with("0->1 start x size 1"), "2:12: `x` is no time in picoseconds"),
        (with("0->1 size 1"), "2:1: nothing starts the connection"),
        (with("0->1 start 0 trigger 1 size 1"), "2:1: both a time and a trigger start the connection"),
        (with("0->1 start 0 size 1 colour 2"), "2:21: `colour` is no part of a connection"),
        (with("0->1 trigger 9 size 1"), "2:1: there is no trigger 9"),
        (with("0->1 id 0 start 0 size 1"), "2:6: `id` is 0"),
        (
            with("0->1 id 1 start 0 size 1\n0->1 id 1 start 0 size 1"),
            "3:1: the id is used already, in line 2",
        ),
        (with("Connections 2\n0->1 start 0 size 1"), "2:1: the header states 2, and the file has 1"),
        (with("Connections 1099511627776"), "2:1: the header states 1099511627776, and the file has 0"),
        (with("trigger id 1"), "2:1: the trigger has no kind"),
        (with("trigger oneshot"), "2:1: the trigger has no id"),
        (with("trigger id 1 barrier"), "2:1: the barrier has no count"),
        (with("trigger id 1 oneshot\ntrigger id 1 oneshot"), "3:1: trigger 1 is stated twice"),
        (
            with(
                "trigger id 1 oneshot\n0->1 start 0 size 1 send_done_trigger 1\n0->1 start 0 size 1 send_done_trigger 1\n\
                  0->1 trigger 1 size 1",
            ),
            "2:1: trigger 1 fires after the first of 2 ends",
        ),
        (
            with(
                "trigger id 1 barrier count 2\n0->1 start 0 size 1 send_done_trigger 1\n0->1 trigger 1 size 1",
            ),
            "2:1: barrier 1 fires after 2 activations, and 1 connections activate it",
        ),
        (
            with("trigger id 1 multishot\n0->1 trigger 1 size 1"),
            "2:1: trigger 1 starts 1 connections, and 0 activate it",
        ),
        (
            with("trigger id 1 oneshot\n0->1 trigger 1 size 1 send_done_trigger 1"),
            "3:1: connections wait for each other in a circle: lines 3",
        ),
        ("Nodes 1099511627776\n".into(), "1:1: the file has 1099511627776 nodes"),
        ("Nodes 0\n".into(), "1:1: the file has 0 nodes"),
    ];
    for (body, expected) in cases {
        let errors = imported(&body).expect_err(&body);
        assert!(errors.starts_with(&format!("a.cm:{expected}")), "{body}{errors}");
    }
    assert!(imported("").unwrap_err().starts_with("a.cm: the number of nodes is missing"));
}

#[test]
fn connections_of_two_hosts_that_wait_for_each_other_are_a_deadlock() {
    let body = "Nodes 2\ntrigger id 1 oneshot\ntrigger id 2 oneshot\n0->1 trigger 1 size 1 recv_done_trigger 2\n\
                1->0 trigger 2 size 1 recv_done_trigger 1\n";
    let errors = imported(body).unwrap_err();
    assert!(errors.contains("deadlock"), "{errors}");
}
