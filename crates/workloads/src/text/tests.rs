//! Texts that are read, written and refused.

use proptest::collection::vec;
use proptest::prelude::*;
use rackloom_collectives::CollectiveKind;

use crate::error::Place;
use crate::model::{Group, RankOperations, Work, Workload};
use crate::text::{place_of, read, read_checked, write};

const EXCHANGE: &str = "\
# Two ranks exchange messages and reduce a result.
workload an exchange
ranks 2
phase forward
phase gradients
group 0..1
rank 0
compute 1500ns
send 1 4KiB tag 7 after -1
receive 1 4KiB
in gradients
all-reduce group 0 1MiB after 1 2  # both
rank 1
receive 0 4KiB tag 7
send 0 4KiB after -1
in gradients
all-reduce group 0 1MiB after -1
";

fn exchange() -> Workload {
    let all_reduce = Work::Collective { group: 0, kind: CollectiveKind::AllReduce, bytes: 1 << 20, root: 0 };
    let mut first = RankOperations::default();
    first.add(0, Work::Compute { duration_ns: 1_500 }, []);
    first.add(0, Work::Send { to: 1, bytes: 4_096, tag: 7 }, [0]);
    first.add(0, Work::Receive { from: 1, bytes: 4_096, tag: 0 }, []);
    first.add(1, all_reduce, [1, 2]);
    let mut second = RankOperations::default();
    second.add(0, Work::Receive { from: 0, bytes: 4_096, tag: 7 }, []);
    second.add(0, Work::Send { to: 0, bytes: 4_096, tag: 0 }, [0]);
    second.add(1, all_reduce, [1]);
    Workload {
        name: "an exchange".into(),
        phases: vec!["forward".into(), "gradients".into()],
        groups: vec![Group { ranks: vec![0, 1] }],
        ranks: vec![first, second],
    }
}

#[test]
fn a_text_is_read() {
    assert_eq!(read_checked(EXCHANGE, "w"), Ok(exchange()));
}

#[test]
fn ranks_with_equal_operations_share_a_block() {
    let mut workload = exchange();
    let mut list = RankOperations::default();
    list.add(1, Work::Compute { duration_ns: 2_000 }, []);
    list.add(1, Work::Compute { duration_ns: 3_000 }, [0]);
    workload.groups[0].ranks = vec![0, 1, 2, 3, 5];
    workload.ranks =
        vec![list.clone(), RankOperations::default(), list.clone(), list.clone(), list.clone(), list];
    let text = "workload an exchange\nranks 6\nphase forward\nphase gradients\ngroup 0..3 5\nrank 0 2..5\n\
                in gradients\ncompute 2us\ncompute 3us after -1\n";
    assert_eq!(write(&workload), text);
    assert_eq!(read(text, "w"), Ok(workload));
}

#[test]
fn a_text_without_phases_has_one() {
    let workload = read_checked("ranks 1\nrank 0\ncompute 1ns\n", "w").unwrap();
    assert_eq!(workload.phases, ["main"]);
    assert_eq!(workload.ranks[0].operations()[0].phase, 0);
}

/// A name that cannot stand in a text is changed, so that the written text can be read.
#[test]
fn a_workload_without_a_name_has_that_of_its_file() {
    let named = |origin: &str| read("ranks 1\nrank 0\n", origin).unwrap_or_else(|errors| panic!("{errors}"));
    for (origin, name) in [("folder/step one.wl", "step one"), ("a #1.wl", "a -1"), ("", "")] {
        let workload = named(origin);
        assert_eq!(workload.name, name, "{origin}");
        assert_eq!(read(&write(&workload), ""), Ok(workload));
    }
    assert_eq!(read("workload w\nranks 1\nrank 0\n", "x").map(|one| one.name).as_deref(), Ok("w"));
}

#[test]
fn a_computation_is_stated_by_its_duration_or_by_its_work() {
    let text = "ranks 1\nphase main\nrank 0\ncompute 1us\ncompute 2TFLOP 4MiB\ncompute 1500FLOP after -1\n";
    let workload = read_checked(text, "w").unwrap_or_else(|errors| panic!("{errors}"));
    let works: Vec<_> = workload.ranks[0].operations().iter().map(|operation| operation.work).collect();
    let kernel = |flops, bytes| Work::Kernel { flops, bytes };
    assert_eq!(
        works,
        [Work::Compute { duration_ns: 1_000 }, kernel(2_000_000_000_000, 4 << 20), kernel(1_500, 0)]
    );
    assert_eq!(workload.ranks[0].dependencies(&workload.ranks[0].operations()[2]), [1]);
    assert_eq!(write(&workload), format!("workload w\n{text}"));
    assert_eq!(
        read("ranks 1\nrank 0\ncompute 2000GFLOP 0B\n", "w").map(|one| write(&one)).as_deref(),
        Ok("workload w\nranks 1\nphase main\nrank 0\ncompute 2TFLOP\n")
    );
}

#[test]
fn the_line_of_an_operation_is_found() {
    let text = "ranks 3\n# a\nrank 1 2\ncompute 1us\n\ncompute 2TFLOP\n";
    assert_eq!(place_of(text, 2, 1), Some(Place::Line { line: 6, column: 1 }));
    assert_eq!((place_of(text, 0, 0), place_of(text, 2, 2), place_of("ranks x", 0, 0)), (None, None, None));
}

/// Wrong texts behind `ranks 2 / phase a / group 0 1 / rank 0 / compute 1ns`, with line, column and a part of the reason.
const REFUSED: &[(&str, &str, &str)] = &[
    ("computer 1ns", "6:1", "`computer` is no operation"),
    ("compute 5", "6:9", "no whole number"),
    ("compute", "6:8", "the line ends before its duration"),
    (
        "compute 2e12FLOP",
        "6:9",
        "`2e12FLOP` is no whole number with one of the units PFLOP, TFLOP, GFLOP, MFLOP, kFLOP, FLOP",
    ),
    ("compute 2tflop", "6:9", "with one of the units PFLOP"),
    ("compute 99999PFLOP", "6:9", "does not fit in 64 bits"),
    ("compute 2TFLOP 4", "6:16", "with one of the units GiB"),
    ("compute 2TFLOP 4B 1", "6:19", "`1` is too much here"),
    ("compute 4MB", "6:9", "with one of the units s, ms, us, ns"),
    ("compute 1ns after 1", "6:19", "`1` is no earlier operation; this one is number 1"),
    ("compute 1ns after -2", "6:19", "`-2` is no earlier operation"),
    ("compute 1ns after -0", "6:19", "`-0` is no earlier operation"),
    ("compute 1ns after", "6:18", "the line ends before its operations"),
    ("compute 1ns 7", "6:13", "`7` is too much here"),
    ("send 1", "6:7", "the line ends before its size"),
    ("send x 1B", "6:6", "`x` is no rank"),
    ("send 70000 1B", "6:6", "`70000` is no rank"),
    ("send 1 99999999999GiB", "6:8", "does not fit in 64 bits"),
    ("receive 1 1B tag -1", "6:18", "`-1` is no tag"),
    ("all-reduce 0 1B", "6:12", "`0` stands in place of `group`"),
    ("all-reduce group 0", "6:19", "the line ends before its size"),
    ("all-reduce group 0 1B root 1", "6:23", "`root` is too much here"),
    ("broadcast group 0 1B root", "6:26", "the line ends before its root"),
    ("barrier group 0 1B", "6:17", "`1B` is too much here"),
    ("in b", "6:4", "there is no phase b"),
    ("phase b", "6:7", "a phase is stated behind a rank"),
    ("phase a", "6:7", "phase a is stated twice"),
    ("ranks 3", "6:7", "stated twice"),
    ("ranks 1099511627776", "6:7", "is no number from 1 to 65536"),
    ("rank 2", "6:1", "there is no rank 2"),
    ("rank 1..0", "6:6", "ends before it begins"),
    ("rank 1\ncompute 1ns\nrank 0\ncompute 1ns", "8:1", "rank 0 has operations already"),
    ("group", "6:6", "the line ends before its ranks"),
    ("group 0 0 1", "6:7", "group 1: rank 0 is listed twice"),
    ("group 1", "6:7", "group 1: it has 1 ranks"),
    ("group 0..2", "6:7", "group 1: there is no rank 2"),
    ("group 0..65535 0", "6:16", "lists ranks twice"),
    ("workload", "6:9", "the line has no name"),
];

#[test]
fn mistakes_name_line_and_column() {
    for (text, place, reason) in REFUSED {
        let text = format!("ranks 2\nphase a\ngroup 0 1\nrank 0\ncompute 1ns\n{text}\n");
        let errors = read(&text, "w").expect_err(&text).to_string();
        assert!(errors.starts_with(&format!("w:{place}: ")) && errors.contains(reason), "{text}{errors}");
        assert!(errors.contains("; hint: "), "{errors}");
    }
}

#[test]
fn an_operation_before_the_first_rank_is_refused() {
    let errors = read("ranks 1\ncompute 1ns\n", "w").unwrap_err().to_string();
    assert!(errors.starts_with("w:2:1: an operation stands before the first `rank`"), "{errors}");
    let errors = read("# empty\n", "w").unwrap_err().to_string();
    assert!(errors.starts_with("w: the workload has no ranks"), "{errors}");
}

#[test]
fn all_mistakes_of_a_text_are_found_up_to_a_bound() {
    let text = format!("ranks 1\nrank 0\n{}", "x\n".repeat(1_000));
    assert_eq!(read(&text, "w").unwrap_err().errors.len(), 20);
    let two = read("ranks 1\nrank 0\nx\ncompute 1ns\ny\n", "w").unwrap_err().errors;
    assert_eq!(two.len(), 2);
}

#[test]
fn a_lost_peer_is_reported_at_its_line() {
    let text = "ranks 2\nrank 0\ncompute 1ns\nsend 1 8B tag 3\nrank 1\ncompute 1ns\n";
    let errors = read_checked(text, "w").unwrap_err().to_string();
    assert!(errors.starts_with("w:4:1: rank 0, operation 1: no receive at rank 1"), "{errors}");
}

#[test]
fn a_short_text_cannot_fill_the_memory() {
    let text = format!("ranks 65536\nrank 0..65535\n{}", "compute 1ns\n".repeat(1_000));
    let errors = read(&text, "w").unwrap_err().to_string();
    assert!(errors.starts_with("w:2:1: there are more than 16777216 operations"), "{errors}");
}

/// Returns works for ranks 0 to 3 and groups 0 to 1, without regard to partners.
fn works() -> impl Strategy<Value = Work> {
    let kinds = prop::sample::select(CollectiveKind::ALL.to_vec());
    prop_oneof![
        any::<u64>().prop_map(|duration_ns| Work::Compute { duration_ns }),
        (any::<u64>(), any::<u64>()).prop_map(|(flops, bytes)| Work::Kernel { flops, bytes }),
        (0..4_u16, any::<u64>(), any::<u32>()).prop_map(|(to, bytes, tag)| Work::Send { to, bytes, tag }),
        (0..4_u16, any::<u64>(), any::<u32>()).prop_map(|(from, bytes, tag)| Work::Receive {
            from,
            bytes,
            tag
        }),
        (0..2_u16, kinds, any::<u64>(), 0..2_u16).prop_map(|(group, kind, bytes, root)| Work::Collective {
            group,
            kind,
            bytes: if kind.moves_data() { bytes } else { 0 },
            root: if kind.has_root() { root } else { 0 },
        }),
    ]
}

fn lists() -> impl Strategy<Value = RankOperations> {
    vec((0..3_u16, works(), vec(any::<prop::sample::Index>(), 0..3)), 0..12).prop_map(|operations| {
        let mut list = RankOperations::default();
        for (index, (phase, work, dependencies)) in operations.into_iter().enumerate() {
            let earlier = dependencies.iter().filter(|_| index > 0).map(|one| one.index(index) as u32);
            list.add(phase, work, earlier.collect::<Vec<_>>());
        }
        list
    })
}

proptest! {
    #[test]
    fn a_text_that_was_written_is_read_as_the_equal_workload(ranks in vec(lists(), 4), name in "[a-z](é| b)?") {
        let workload = Workload {
            name,
            phases: vec!["a".into(), "b c".into(), "é".into()],
            groups: vec![Group { ranks: vec![0, 1, 2, 3] }, Group { ranks: vec![3, 1] }],
            ranks,
        };
        prop_assert_eq!(read(&write(&workload), "w"), Ok(workload));
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "(ranks|rank|in|group|phase|send|compute|barrier|after|[ 0-9a-z.#é-]|\n){0,60}") {
        let _ = read_checked(&text, "w");
    }
}

#[test]
fn the_example_of_the_page_is_read() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/workloads.md");
    let page = std::fs::read_to_string(page).unwrap_or_else(|error| panic!("{page}: {error}"));
    let example = page.split("```\n").nth(1).expect("a block");
    let workload = read_checked(example, "page").unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(Workload { name: "an exchange".into(), ..workload }, exchange());
}
