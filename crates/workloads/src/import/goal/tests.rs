//! GOAL texts that are read and refused.

use crate::import::{Content, File, Imported, Options};
use crate::model::{Work, Workload};
use crate::text;

fn imported(body: &str) -> Result<Imported, String> {
    let file = File { name: "a.goal", bytes: body.as_bytes() };
    super::read(&file, &Options { goal_unit_ns: 10, ..Options::default() })
        .map_err(|errors| errors.to_string())
}

fn workload(body: &str) -> Workload {
    match imported(body).unwrap().content {
        Content::Workload(workload) => workload,
        Content::Hardware(_) => panic!("hardware"),
    }
}

#[test]
fn operations_and_dependencies_are_read() {
    let body = "// An exchange.\nnum_ranks 2\n\nrank 0 {\nl1: send 1024b to 1 tag 2\nl2: recv 8 b from 1\n\
                l3: calc 100 cpu 0\nl3 requires l1\nl3 requires l2\n}\n\
                rank 1 { l2: recv 1024b from 0 tag 2; l1: send 8b to 0 tag 0 cpu 1 nic 0; l1 requires l2 }\n";
    let expected = "workload a\nranks 2\nphase main\nrank 0\nsend 1 1KiB tag 2\nreceive 1 8B\ncompute 1us after 0 1\n\
                    rank 1\nreceive 0 1KiB tag 2\nsend 0 8B after 0\n";
    assert_eq!(workload(body), text::read(expected, "w").unwrap());
    let notes = imported(body).unwrap().notes;
    assert_eq!(notes, ["operations whose processor or network card is left out: 1"]);
}

#[test]
fn a_dependency_may_name_a_later_operation_and_its_begin() {
    let body = "num_ranks 1\nrank 0 {\na: calc 1\nb: calc 2\nc: calc 3\na requires b\nc irequires a\n}\n";
    let workload = workload(body);
    let rank = &workload.ranks[0];
    let listed: Vec<_> = rank
        .operations()
        .iter()
        .map(|one| {
            let Work::Compute { duration_ns } = one.work else { panic!("{one:?}") };
            (duration_ns, rank.dependencies(one).to_vec())
        })
        .collect();
    // b, then a and c, which both wait for b only.
    assert_eq!(listed, [(20, vec![]), (10, vec![0]), (30, vec![0])]);
}

#[test]
fn mistakes_name_line_and_column() {
    let block = |body: &str| format!("num_ranks 2\nrank 0 {{\n{body}\n}}\n");
    let cases = [
        (block("a: sand 8b to 1"), "3:4: `sand` is no operation"),
        (block("a: send 8 to 1"), "3:9: `8` is no size in bytes"),
        (block("a: send 99999999999999999999b to 1"), "3:9: `99999999999999999999b` is no size in range"),
        (block("a: send 8b from 1"), "3:12: `from` stands in place of `to`"),
        (block("a: send 8b to 70000"), "3:15: `70000` is no rank in range"),
        (block("a: send 8b to 7"), "3:1: rank 0, operation 0: there is no rank 7; the workload has 2"),
        (block("a: send 8b to 0"), "3:1: rank 0, operation 0: rank 0 exchanges a message with itself"),
        (block("a: send 8b to 1"), "3:1: rank 0, operation 0: no receive at rank 1 belongs to it"),
        (block("a: recv 8b from -1"), "3:12: a receive from any rank cannot be imported"),
        (block("a: recv 8b from 1 tag -1"), "3:17: a receive of any tag cannot be imported"),
        (block("a: calc"), "3:4: the statement ends behind `calc`"),
        (block("a: calc 2000000000000000000"), "3:9: the duration does not fit in 64 bits"),
        (block("a: calc 1 x"), "3:11: `x` is too much here"),
        (block("a: calc 1\na: calc 2"), "4:1: label a is used already, in line 3"),
        (block("a: calc 1\na requires b"), "4:12: there is no label b in rank 0"),
        (
            block("a: calc 1\nb: calc 1\na requires b\nb requires a"),
            "3:1: 2 operations of rank 0 wait for each other in a circle: line 3, line 4",
        ),
        (block("}\nrank 0 {"), "4:6: rank 0 has a block already, in line 2"),
        (block("rank 1 {"), "3:6: the block of rank 0 is not closed"),
        ("num_ranks 2\nrank 2 {\n}\n".into(), "2:6: there is no rank `2`; 2 are stated"),
        ("num_ranks 1099511627776\n".into(), "1:11: `1099511627776` is no number from 1 to 65536"),
        ("num_ranks 1\nnum_ranks 1\n".into(), "2:11: the number of ranks is stated twice"),
        ("num_ranks 1\ncalc 5\n".into(), "2:1: a statement stands outside of a rank"),
        ("num_ranks 1\n}\n".into(), "2:1: a closing brace without its rank"),
        ("num_ranks 1\nrank 0 {\n".into(), "2:1: the block of rank 0 is not closed"),
        ("num_ranks 1\n{\n".into(), "2:1: a brace without its rank"),
    ];
    for (body, expected) in cases {
        let errors = imported(&body).expect_err(&body);
        assert!(errors.starts_with(&format!("a.goal:{expected}")), "{body}{errors}");
    }
    assert!(imported("").unwrap_err().starts_with("a.goal: the number of ranks is missing"));
}

#[test]
fn receives_before_sends_at_both_ranks_are_reported_at_their_lines() {
    let body = "num_ranks 2\nrank 0 {\na: recv 8b from 1\nb: send 8b to 1\nb requires a\n}\n\
                rank 1 {\na: recv 8b from 0\nb: send 8b to 0\nb requires a\n}\n";
    let errors = imported(body).unwrap_err();
    assert!(errors.starts_with("a.goal:3:1: rank 0, operation 0: deadlock: 4 operations"), "{errors}");
}

#[test]
fn the_example_of_the_page_is_read() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/how-to/run-workloads.md");
    let page = std::fs::read_to_string(page).unwrap_or_else(|error| panic!("{page}: {error}"));
    let example = page.split("```\n").nth(1).expect("a block");
    assert_eq!(workload(example).ranks.len(), 2);
}

#[test]
fn a_label_that_is_used_twice_leaves_its_dependencies_to_the_first() {
    let body = "num_ranks 1\nrank 0 {\nl1: calc 5\nl1: calc 6\nl2: calc 7\nl2: calc 8\nl1 requires l2\n}\n";
    let mistakes = imported(body).unwrap_err();
    assert!(mistakes.contains("a.goal:4:1: label l1 is used already, in line 3"), "{mistakes}");
    assert!(mistakes.contains("a.goal:6:1: label l2 is used already, in line 5"), "{mistakes}");
}

#[test]
fn a_text_of_another_format_is_refused_by_its_first_lines() {
    let text = imported(&"a line of text\n".repeat(30)).unwrap_err();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 4, "{text}");
    assert!(lines[2].starts_with("a.goal:3:1: `a` is no operation"), "{text}");
    let reason =
        "a.goal: 27 more mistakes, and no line with the number of ranks: the file does not look like GOAL";
    assert!(lines[3].starts_with(reason) && lines[3].contains("connections"), "{text}");
    let one = imported("calc 5\n").unwrap_err();
    assert!(one.contains("\na.goal: no line with the number of ranks"), "{one}");
}

#[test]
fn mistakes_beyond_the_first_ones_are_counted() {
    let text = imported(&format!("num_ranks 1\nrank 0 {{\n{}}}\n", "copy 5\n".repeat(50))).unwrap_err();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 20, "{text}");
    assert!(lines[19].starts_with("a.goal: 31 more mistakes; hint: "), "{text}");
}
