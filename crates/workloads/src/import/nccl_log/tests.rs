//! Logs that are read and refused.

use crate::import::{Content, File, Imported};
use crate::model::Workload;
use crate::text;

/// Line of a process whose host, process and device follow from `gpu`.
fn line(gpu: u32, body: &str) -> String {
    format!("n{0}:10{0}:20{0} [{0}] NCCL INFO {body}\n", gpu)
}

fn ready(gpu: u32, communicator: &str, rank: u32, ranks: u32, name: &str) -> String {
    line(
        gpu,
        &format!(
            "ncclCommInitRank comm {communicator} rank {rank} nranks {ranks} cudaDev 0 busId 1 {name} - Init COMPLETE"
        ),
    )
}

/// Call with its number, count of floats, root, communicator and stream.
fn call(
    gpu: u32,
    name: &str,
    (number, count, root): (u32, u64, u32),
    communicator: &str,
    stream: &str,
) -> String {
    line(
        gpu,
        &format!(
            "{name}: opCount {number:x} sendbuff 0x1 recvbuff 0x2 count {count} datatype 7 op 0 root {root} comm {communicator} \
             [nranks=2] stream {stream}"
        ),
    )
}

fn imported(files: &[(&str, String)]) -> Result<Imported, String> {
    let files: Vec<_> = files.iter().map(|(name, text)| File { name, bytes: text.as_bytes() }).collect();
    super::read(&files).map_err(|errors| errors.to_string())
}

fn workload(files: &[(&str, String)]) -> Workload {
    match imported(files).unwrap().content {
        Content::Workload(workload) => workload,
        Content::Hardware(_) => panic!("hardware"),
    }
}

fn expected(body: &str) -> Workload {
    text::read(&format!("workload a\nphase main\n{body}"), "w").unwrap()
}

#[test]
fn calls_of_a_stream_follow_each_other_and_streams_are_independent() {
    let of = |gpu: u32| {
        [
            ready(gpu, "0xc", 1 - gpu, 2, "commId 0xfe"),
            line(gpu, "Channel 00/02 : 0 1"),
            call(gpu, "AllReduce", (0, 256, 0), "0xc", "0xd"),
            call(gpu, "AllGather", (1, 256, 0), "0xc", "0xd"),
            call(gpu, "Broadcast", (2, 256, 1), "0xc", "0xe"),
        ]
        .concat()
    };
    let rank = "all-reduce group 0 1KiB\nall-gather group 0 2KiB after 0\nbroadcast group 0 1KiB root 1\n";
    let text = format!("ranks 2\ngroup 0 1\nrank 0 1\n{rank}");
    assert_eq!(workload(&[("a.log", of(0)), ("b.log", of(1))]), expected(&text));
    // Lines of both in one file.
    assert_eq!(workload(&[("a.log", of(0) + &of(1))]), expected(&text));
    let notes = imported(&[("a.log", of(0) + &of(1))]).unwrap().notes;
    assert_eq!(notes, ["logs without times, so that no rank computes between its calls: 1"]);
}

#[test]
fn messages_of_one_group_of_calls_run_together() {
    let of = |gpu: u32| {
        let other = 1 - gpu;
        [
            ready(gpu, "0xc", gpu, 2, "commId 0xfe"),
            call(gpu, "Recv", (0, 2, other), "0xc", "0xd"),
            call(gpu, "Send", (0, 2, other), "0xc", "0xd"),
            call(gpu, "Send", (0, 2, gpu), "0xc", "0xd"),
            call(gpu, "Send", (1, 3, other), "0xc", "0xd"),
            call(gpu, "Recv", (2, 3, other), "0xc", "0xd"),
        ]
        .concat()
    };
    let block = |rank: u32| {
        let other = 1 - rank;
        format!(
            "rank {rank}\nreceive {other} 8B\nsend {other} 8B\nsend {other} 12B after 0 1\nreceive {other} 12B after 2\n"
        )
    };
    let text = format!("ranks 2\ngroup 0 1\n{}{}", block(0), block(1));
    let files = [("a.log", of(0) + &of(1))];
    assert_eq!(workload(&files), expected(&text));
    let notes = imported(&files).unwrap().notes;
    assert_eq!(notes[0], "messages of a rank to itself that are left out: 2");
}

#[test]
fn each_kind_states_the_bytes_of_the_whole_array() {
    // Ten floats: of the array, or of one of two parts.
    let cases = [
        ("AllReduce", "all-reduce group 0 40B"),
        ("AllGather", "all-gather group 0 80B"),
        ("ReduceScatter", "reduce-scatter group 0 80B"),
        ("Broadcast", "broadcast group 0 40B root 1"),
        ("Bcast", "broadcast group 0 40B root 1"),
        ("Reduce", "reduce group 0 40B root 1"),
        ("AlltoAll", "all-to-all group 0 80B"),
        ("AllToAll", "all-to-all group 0 80B"),
        ("Gather", "gather group 0 80B root 1"),
        ("Scatter", "scatter group 0 80B root 1"),
    ];
    let ready: String = (0..2).map(|gpu| ready(gpu, "0xc", gpu, 2, "commId 0xfe")).collect();
    for (name, operation) in cases {
        let calls: String = (0..2).map(|gpu| call(gpu, name, (0, 10, 1), "0xc", "0xd")).collect();
        let text = format!("ranks 2\ngroup 0 1\nrank 0 1\n{operation}\n");
        assert_eq!(workload(&[("a.log", ready.clone() + &calls)]), expected(&text), "{name}");
    }
}

#[test]
fn communicators_of_parts_are_groups_of_ranks() {
    let world = |gpu: u32| ready(gpu, "0xa", 3 - gpu, 4, "commId 0x1");
    // GPUs 0 and 2 are ranks 3 and 1 of all, and ranks 0 and 1 of a part.
    let part = |gpu: u32| {
        let split = format!("parent 0xa childCount 1 color {} key 0", gpu % 2);
        ready(gpu, "0xb", gpu / 2, 2, &split) + &call(gpu, "ReduceScatter", (0, 1, 0), "0xb", "0xd")
    };
    let log: String = (0..4).map(world).chain((0..4).map(part)).collect();
    let text = "ranks 4\ngroup 0..3\ngroup 3 1\ngroup 2 0\nrank 0 2\nreduce-scatter group 2 8B\n\
                rank 1 3\nreduce-scatter group 1 8B\n";
    assert_eq!(workload(&[("a.log", log)]), expected(text));
}

#[test]
fn communicators_without_a_name_match_in_their_order() {
    let of = |gpu: u32| {
        let calls = |communicator: &str| call(gpu, "AllReduce", (0, 1, 0), communicator, communicator);
        // The addresses differ between processes.
        let (first, second) = if gpu == 0 { ("0xa", "0xb") } else { ("0xb", "0xa") };
        [ready(gpu, first, gpu, 2, ""), ready(gpu, second, 1 - gpu, 2, ""), calls(first), calls(second)]
            .concat()
    };
    let text = "ranks 2\ngroup 0 1\ngroup 1 0\nrank 0 1\nall-reduce group 0 4B\nall-reduce group 1 4B\n";
    assert_eq!(workload(&[("a.log", of(0)), ("b.log", of(1))]), expected(text));
}

#[test]
fn mistakes_name_file_and_line() {
    let world = |gpu: u32| ready(gpu, "0xa", gpu, 2, "commId 0x1");
    let both = world(0) + &world(1);
    let reduce = |gpu: u32, count: u64| call(gpu, "AllReduce", (0, count, 0), "0xa", "0xd");
    let cases = [
        (world(0), "a.log: rank 1 of the 2 ranks of communicator 0x1 has no line"),
        (reduce(0, 1), "a.log:1:1: no line before states the ranks of communicator 0xa"),
        (String::new(), "a.log: the log has no line with `Init COMPLETE`"),
        (
            both.clone() + &reduce(0, 1),
            "a.log:3:1: rank 0, operation 0: collective 0 of group 0 lacks ranks: rank 1",
        ),
        (
            both.clone() + &reduce(0, 1) + &reduce(1, 2),
            "a.log:4:1: rank 1, operation 0: collective 0 of group 0 differs: here it is all-reduce of 8 bytes",
        ),
        (
            both.clone() + &call(0, "Send", (0, 1, 1), "0xa", "0xd"),
            "a.log:3:1: rank 0, operation 0: no receive at rank 1 belongs to it",
        ),
        (
            both.clone() + &call(0, "Send", (0, 1, 2), "0xa", "0xd"),
            "a.log:3:1: there is no rank 2 in a communicator of 2",
        ),
        (
            both.clone() + &reduce(0, u64::MAX),
            "a.log:3:1: 18446744073709551615 elements do not fit in 64 bits",
        ),
        (both.clone() + &line(0, "AllReduce: opCount 0 sendb"), "a.log:3:1: the line has no `datatype`"),
        (
            ready(0, "0xa", 0, 2, "") + &ready(1, "0xa", 0, 2, ""),
            "a.log:2:1: two GPUs are rank 0 of communicator",
        ),
        (
            world(0) + &ready(1, "0xa", 1, 3, "commId 0x1"),
            "a.log:2:1: communicator 0x1 has 2 ranks elsewhere, and 3 here",
        ),
        (ready(0, "0xa", 2, 2, ""), "a.log:1:1: rank 2 of 2 is out of range"),
        (ready(0, "0xa", 0, u32::MAX, ""), "a.log:1:1: rank 0 of 4294967295 is out of range"),
        (ready(0, "0xa", 0, 2, "parent 0xf color 0"), "a.log:1:1: its parent is not in the log"),
    ];
    for (text, expected) in cases {
        let errors = imported(&[("a.log", text.clone())]).expect_err(&text);
        assert!(errors.starts_with(expected), "{text}{errors}");
    }
}
