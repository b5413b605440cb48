//! Traces that are read and refused. The bytes are written here, field by field, as the format defines them.

use crate::import::{Content, File, Imported, Options};
use crate::machine::{Machine, Rates};
use crate::model::Workload;
use crate::text;

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// Field with a number.
fn number(tag: u64, value: u64) -> Vec<u8> {
    [varint(tag << 3), varint(value)].concat()
}

/// Field with bytes.
fn bytes(tag: u64, value: &[u8]) -> Vec<u8> {
    [varint(tag << 3 | 2), varint(value.len() as u64), value.to_vec()].concat()
}

/// Attribute of a node, whose value is a field.
fn attribute(name: &str, value: &[u8]) -> Vec<u8> {
    bytes(10, &[bytes(1, name.as_bytes()), value.to_vec()].concat())
}

fn int64(name: &str, value: u64) -> Vec<u8> {
    attribute(name, &number(9, value))
}

/// Node with identity, type, data dependencies and further fields.
fn node(id: u64, kind: u64, after: &[u64], more: &[Vec<u8>]) -> Vec<u8> {
    let packed: Vec<u8> = after.iter().flat_map(|id| varint(*id)).collect();
    [number(1, id), bytes(2, b"name"), number(3, kind), bytes(5, &packed), more.concat()].concat()
}

fn compute(id: u64, micros: u64, after: &[u64]) -> Vec<u8> {
    node(id, 4, after, &[number(7, micros)])
}

/// File with metadata and nodes.
fn trace(nodes: &[Vec<u8>]) -> Vec<u8> {
    let metadata = bytes(1, b"0.0.4");
    let records = core::iter::once(&metadata).chain(nodes);
    records.flat_map(|record| [varint(record.len() as u64), record.clone()].concat()).collect()
}

fn read(files: &[(&str, Vec<u8>)], options: &Options) -> Result<Imported, String> {
    let files: Vec<_> = files.iter().map(|(name, bytes)| File { name, bytes }).collect();
    super::read(&files, options).map_err(|errors| errors.to_string())
}

fn options() -> Options {
    // One operation and one byte per nanosecond.
    let rates = Rates { flops_per_s: 1e9, memory_bytes_per_s: 1e9, launch_ns: 0 };
    let machine = Machine { rates: Some(rates), element_bytes: 2 };
    Options { machine, ..Options::default() }
}

fn workload(files: &[(&str, Vec<u8>)]) -> Workload {
    match read(files, &options()).unwrap().content {
        Content::Workload(workload) => workload,
        Content::Hardware(_) => panic!("hardware"),
    }
}

/// Returns the only mistake of a trace of two ranks whose first has these nodes.
fn mistake(nodes: &[Vec<u8>]) -> String {
    read(&[("t.0.et", trace(nodes)), ("t.1.et", trace(&[]))], &options()).unwrap_err()
}

#[test]
fn computations_messages_and_collectives_are_read() {
    let all_reduce =
        |id: u64, after: &[u64]| node(id, 7, after, &[int64("comm_type", 0), int64("comm_size", 4_096)]);
    let all_gather =
        |id: u64, after: &[u64]| node(id, 7, after, &[int64("comm_type", 2), int64("comm_size", 100)]);
    let send = node(
        30,
        5,
        &[10],
        &[int64("comm_dst", 1), int64("comm_size", 64), attribute("comm_tag", &number(7, 9))],
    );
    let receive = node(
        5,
        6,
        &[],
        &[int64("comm_src", 0), int64("comm_dst", 1), int64("comm_size", 64), int64("comm_tag", 9)],
    );
    let first = trace(&[all_reduce(20, &[10]), compute(10, 3, &[]), send, all_gather(40, &[20, 30])]);
    let second = trace(&[receive, all_reduce(6, &[5]), all_gather(7, &[6])]);
    let text = "workload step\nranks 2\nphase main\ngroup 0 1\n\
                rank 0\ncompute 3us\nall-reduce group 0 4KiB after 0\nsend 1 64B tag 9 after 0\n\
                all-gather group 0 200B after 1 2\n\
                rank 1\nreceive 0 64B tag 9\nall-reduce group 0 4KiB after 0\nall-gather group 0 200B after 1\n";
    // Ranks follow from the names, not from the order.
    let files = [("a/step.1.et", second), ("a/step.0.et", first)];
    assert_eq!(workload(&files), text::read(text, "w").unwrap());
}

#[test]
fn each_kind_of_collective_states_the_bytes_of_the_whole_array() {
    // Ten bytes of each of two ranks; the root is rank 1.
    let kinds = [
        "all-reduce group 0 10B",
        "reduce group 0 10B root 1",
        "all-gather group 0 20B",
        "gather group 0 20B root 1",
        "scatter group 0 10B root 1",
        "broadcast group 0 10B root 1",
        "all-to-all group 0 10B",
        "reduce-scatter group 0 10B",
        "reduce-scatter group 0 10B",
        "barrier group 0",
    ];
    for (number, operation) in (0..).zip(kinds) {
        let attributes = [int64("comm_type", number), int64("comm_size", 10), int64("root_rank", 1)];
        let one = trace(&[node(1, 7, &[], &attributes)]);
        let text = format!("workload t\nranks 2\nphase main\ngroup 0 1\nrank 0 1\n{operation}\n");
        let files = [("t.0.et", one.clone()), ("t.1.et", one)];
        assert_eq!(workload(&files), text::read(&text, "w").unwrap(), "{number}");
    }
}

#[test]
fn durations_follow_from_operations_and_bytes_where_they_are_missing() {
    let counted = node(1, 4, &[], &[int64("num_ops", 500), attribute("tensor_size", &number(13, 700))]);
    let load = node(2, 2, &[1], &[attribute("tensor_size", &number(13, 40))]);
    let text = "workload t\nranks 1\nphase main\nrank 0\ncompute 700ns\ncompute 40ns after 0\n";
    let files = [("t.et", trace(&[counted, load]))];
    assert_eq!(workload(&files), text::read(text, "w").unwrap());
    // Without rates the work is kept.
    let stated = Options { machine: Machine { rates: None, element_bytes: 2 }, ..Options::default() };
    let Imported { content, notes } = read(&files, &stated).unwrap();
    let text = "workload t\nranks 1\nphase main\nrank 0\ncompute 500FLOP 700B\ncompute 0FLOP 40B after 0\n";
    assert_eq!(content, Content::Workload(text::read(text, "w").unwrap()));
    assert!(notes[0].contains("stated by num_ops and tensor_size"), "{notes:?}");
}

#[test]
fn nodes_without_work_pass_dependencies_on() {
    let processor = node(2, 4, &[1], &[number(7, 50), attribute("is_cpu_op", &number(27, 1))]);
    let metadata = node(3, 1, &[2], &[]);
    // The call of a collective by a processor has no attributes of one.
    let called = node(5, 7, &[3], &[attribute("is_cpu_op", &number(27, 1))]);
    // The control dependency on the caller would make a circle.
    let last = compute(4, 2, &[5]);
    let processor = [processor, number(4, 4)].concat();
    let file = ("t.0.et", trace(&[compute(1, 1, &[]), processor, metadata, called, last]));
    let text = "workload t\nranks 1\nphase main\nrank 0\ncompute 1us\ncompute 2us after 0\n";
    assert_eq!(workload(core::slice::from_ref(&file)), text::read(text, "w").unwrap());
    let notes = read(&[file], &options()).unwrap().notes;
    let expected = [
        "operations of processors that take no time here: 2",
        "nodes of metadata, storage, batches and checkpoints that do nothing: 1",
        "control dependencies that are left out: on missing nodes, or of a trace with data dependencies: 1",
    ];
    assert_eq!(notes, expected);
}

#[test]
fn control_dependencies_count_in_a_trace_without_others() {
    // Each in a field of its own, not packed; node 77 is missing.
    let last = [compute(4, 2, &[]), number(4, 1), number(4, 77)].concat();
    let text = "workload t\nranks 1\nphase main\nrank 0\ncompute 1us\ncompute 2us after 0\n";
    let files = [("t.0.et", trace(&[compute(1, 1, &[]), last]))];
    assert_eq!(workload(&files), text::read(text, "w").unwrap());
    let notes = read(&files, &options()).unwrap().notes;
    assert_eq!(notes.len(), 1, "{notes:?}");
}

fn barrier(more: Vec<u8>) -> Vec<u8> {
    trace(&[node(1, 7, &[], &[int64("comm_type", 9), more])])
}

#[test]
fn groups_come_from_a_file_of_names() {
    let named = |name: &str| barrier(attribute("pg_name", &bytes(29, name.as_bytes())));
    let json = br#"{"a": [0, 2], "b": [3, 1]}"#.to_vec();
    let files = [
        ("t.0.et", named("a")),
        ("t.1.et", named("b")),
        ("t.2.et", named("a")),
        ("t.3.et", named("b")),
        ("g.json", json),
    ];
    let groups: Vec<_> = workload(&files).groups.into_iter().map(|group| group.ranks).collect();
    assert_eq!(groups, [[0, 2], [3, 1]]);
    let wrong = [("t.0.et", named("c")), ("g.json", b"{\"a\": [0]}".to_vec())];
    let error = read(&wrong, &options()).unwrap_err();
    assert!(error.starts_with("t.0.et: record 1: node 1: there is no process group c"), "{error}");
    let beyond = [("t.0.et", named("a")), ("g.json", b"{\"a\": [0, 1]}".to_vec())];
    assert!(
        read(&beyond, &options()).unwrap_err().starts_with("g.json: group a is no list of ranks below 1")
    );
    let broken = [("t.0.et", named("a")), ("g.json", b"{\"a\": [0, 1}".to_vec())];
    assert!(read(&broken, &options()).unwrap_err().starts_with("g.json:1:12: the file is no JSON"));
}

#[test]
fn groups_follow_from_involved_dimensions() {
    let involved = |first: u64, second: u64| {
        let list = bytes(28, &bytes(1, &[first as u8, second as u8]));
        trace(&[node(
            1,
            7,
            &[],
            &[int64("comm_type", 0), int64("comm_size", 8), attribute("involved_dim", &list)],
        )])
    };
    let files = |file: Vec<u8>| -> Vec<(String, Vec<u8>)> {
        (0..6).map(|rank| (format!("t.{rank}.et"), file.clone())).collect()
    };
    let groups = |file: Vec<u8>, dimensions: &[u32]| {
        let files = files(file);
        let files: Vec<_> = files.iter().map(|(name, bytes)| (name.as_str(), bytes.clone())).collect();
        let options = Options { dimensions: dimensions.to_vec(), ..options() };
        read(&files, &options).map(|imported| match imported.content {
            Content::Workload(workload) => {
                workload.groups.into_iter().map(|group| group.ranks).collect::<Vec<_>>()
            }
            Content::Hardware(_) => panic!("hardware"),
        })
    };
    // Rank 5 is at (1, 2) of 2 x 3.
    assert_eq!(groups(involved(1, 0), &[2, 3]).unwrap(), [[0, 1], [2, 3], [4, 5]]);
    assert_eq!(groups(involved(0, 1), &[2, 3]).unwrap(), [[0, 2, 4], [1, 3, 5]]);
    assert_eq!(groups(involved(1, 1), &[]).unwrap(), [[0, 1, 2, 3, 4, 5]]);
    let error = groups(involved(1, 0), &[]).unwrap_err();
    assert!(error.contains("involves some of 2 dimensions, and 0 are stated"), "{error}");
    let error = groups(involved(1, 0), &[2, 2]).unwrap_err();
    assert!(error.contains("the dimensions [2, 2] do not make 6 ranks"), "{error}");
}

#[test]
fn a_circle_an_unknown_node_and_a_node_that_is_there_twice_are_named() {
    let error = mistake(&[compute(7, 1, &[9]), compute(8, 1, &[7]), compute(9, 1, &[8])]);
    assert!(
        error.starts_with("t.0.et: record 1: 3 nodes depend on each other in a circle: 7 -> 9 -> 8"),
        "{error}"
    );
    let error = mistake(&[compute(7, 1, &[]), compute(8, 1, &[99])]);
    assert!(
        error.starts_with("t.0.et: record 2: node 8 depends on node 99, which the trace does not have"),
        "{error}"
    );
    let error = mistake(&[compute(7, 1, &[]), compute(7, 1, &[])]);
    assert!(error.starts_with("t.0.et: record 2: node 7 is in the trace twice, also in record 1"), "{error}");
}

#[test]
fn a_lost_peer_is_reported_at_its_record() {
    let send = node(1, 5, &[], &[int64("comm_dst", 1), int64("comm_size", 64)]);
    let error = mistake(&[compute(9, 1, &[]), send]);
    assert!(error.starts_with("t.0.et: record 2: rank 0, operation 1: no receive at rank 1"), "{error}");
    let error = read(&[("t.0.et", trace(&[])), ("t.2.et", trace(&[]))], &options()).unwrap_err();
    assert!(error.starts_with("t.2.et: rank 1 has no file, and this one is of rank 2"), "{error}");
    let error = read(&[("a.0.et", trace(&[])), ("b.0.et", trace(&[]))], &options()).unwrap_err();
    assert!(error.contains("rank 0 has two files"), "{error}");
}

#[test]
fn wrong_nodes_are_named() {
    let negative = u64::MAX - 4;
    let cases = [
        (node(3, 11, &[], &[]), "node 3: there is no type 11 of a node"),
        (compute(3, u64::MAX, &[]), "node 3: its duration does not fit in 64 bits"),
        (node(3, 4, &[], &[int64("num_ops", negative)]), "node 3: its num_ops is no number of at least 0"),
        (node(3, 5, &[], &[int64("comm_size", 1)]), "node 3: its comm_dst is missing"),
        (node(3, 5, &[], &[int64("comm_dst", 1)]), "node 3: its comm_size is missing"),
        (node(3, 5, &[], &[int64("comm_dst", 70_000)]), "node 3: there is no rank 70000"),
        (
            node(3, 5, &[], &[int64("comm_dst", 1), int64("comm_src", 4)]),
            "node 3: its comm_src is not the rank 0",
        ),
        (
            node(3, 5, &[], &[int64("comm_dst", 1), int64("comm_size", 1), int64("comm_tag", 1 << 32)]),
            "node 3: its comm_tag 4294967296 does not fit in 32 bits",
        ),
        (node(3, 7, &[], &[]), "node 3: its comm_type is unknown or missing"),
        (node(3, 7, &[], &[int64("comm_type", 10)]), "node 3: its comm_type is unknown or missing"),
        (node(3, 7, &[], &[int64("comm_type", 0)]), "node 3: its comm_size is missing"),
        (
            node(3, 7, &[], &[int64("comm_type", 2), attribute("comm_size", &number(13, u64::MAX))]),
            "node 3: its array does not fit in 64 bits",
        ),
        (
            node(3, 7, &[], &[int64("comm_type", 5), int64("comm_size", 8), int64("root_rank", 5)]),
            "node 3: its root_rank 5 is no member of its group",
        ),
        (vec![0xFF], "the record is no node"),
    ];
    for (node, expected) in cases {
        let error = mistake(&[node]);
        assert!(error.starts_with(&format!("t.0.et: record 1: {expected}")), "{error}");
    }
}

#[test]
fn files_that_are_cut_off_or_compressed_are_refused_at_each_length() {
    let whole = trace(&[compute(1, 1, &[]), compute(2, 1, &[1])]);
    let mut readable = 0;
    for length in 0..whole.len() {
        match read(&[("t.et", whole[..length].to_vec())], &options()) {
            Ok(_) => readable += 1,
            Err(error) => assert!(error.starts_with("t.et: record "), "{length}: {error}"),
        }
    }
    // Cuts between records: behind nothing, the metadata and the first node.
    assert_eq!(readable, 3);
    let error = read(&[("t.et", vec![0x1F, 0x8B, 8])], &options()).unwrap_err();
    assert!(error.starts_with("t.et: the file is compressed"), "{error}");
    assert!(read(&[], &options()).unwrap_err().contains("there is no trace"));
}
