//! Tests with files as NumPy 2.4 writes them, with files that it would not write, and of the shapes of results.

use proptest::prelude::*;
use rackloom_collectives::CollectiveKind;

use super::*;

const SPACES: &str = "                                                                                ";

/// Returns a file with this dictionary, padded as NumPy does, and data.
fn file(version: u8, dictionary: &str, data: &[u8]) -> Vec<u8> {
    let before = if version == 1 { 10 } else { 12 };
    let spaces = 127 - before - dictionary.len();
    let text = format!("{dictionary}{}\n", &SPACES[..spaces]);
    let mut file = b"\x93NUMPY".to_vec();
    file.extend([version, 0]);
    let length = (text.len() as u32).to_le_bytes();
    file.extend(if version == 1 { &length[..2] } else { &length });
    file.extend(text.into_bytes());
    file.extend(data);
    file
}

fn parse(file: &[u8], wanted: Option<ElementType>) -> Result<Header, HeaderError> {
    Header::parse(file, file.len() as u64, wanted)
}

fn simple(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    file(1, &format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}"), data)
}

#[test]
fn a_file_as_numpy_writes_it_is_read_byte_for_byte() {
    // numpy.save of arange(3, dtype='<f4').reshape(3, 1), NumPy 2.4.6.
    let written = b"\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (3, 1), }\
        \x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\
        \x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\
        \x20\x20\n\x00\x00\x00\x00\x00\x00\x80?\x00\x00\x00@";
    let header = parse(written, None).unwrap();
    assert_eq!(header, Header { element: ElementType::F32, shape: vec![3, 1], data_offset: 128 });
    assert_eq!((header.elements(), header.data_bytes()), (3, 12));
}

#[test]
fn all_versions_types_and_shapes_are_read() {
    let types = [
        ("'<f4'", ElementType::F32),
        ("'<f8'", ElementType::F64),
        ("'<f2'", ElementType::F16),
        ("'<i4'", ElementType::I32),
        ("'<i8'", ElementType::I64),
        ("'|u1'", ElementType::U8),
    ];
    for (descr, element) in types {
        assert_eq!(
            parse(&simple(descr, "(2,)", &[0; 16][..2 * element.bytes()]), None).unwrap().element,
            element
        );
    }
    for void in ["'|V2'", "'<V2'"] {
        let file = simple(void, "(2,)", &[0; 4]);
        assert_eq!(parse(&file, Some(ElementType::Bf16)).unwrap().element, ElementType::Bf16);
        assert_eq!(parse(&file, None), Err(HeaderError::Void));
    }
    for (shape, axes) in
        [("()", vec![]), ("(0, 2)", vec![0, 2]), ("(1, 1, 1)", vec![1, 1, 1]), ("(1L,)", vec![1])]
    {
        let elements = axes.iter().product::<u64>() as usize;
        assert_eq!(parse(&simple("'|u1'", shape, &[7][..elements]), None).unwrap().shape, axes);
    }
    for version in [1, 2, 3] {
        let dictionary = "{'shape': (2,), 'fortran_order': True, 'descr': '<f2'}";
        assert_eq!(
            parse(&file(version, dictionary, &[0; 4]), None).unwrap().data_offset,
            128,
            "version {version}"
        );
    }
}

#[test]
fn what_cannot_be_used_is_refused_with_a_hint() {
    let data = [0; 16];
    let fortran = "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }";
    let whole = simple("'<f4'", "(4,)", &data);
    let mut version = whole.clone();
    version[6] = 4;
    let wrong: [(Vec<u8>, &str); 14] = [
        (Vec::new(), "not a .npy file"),
        (b"PK\x03\x04".to_vec(), "not a .npy file"),
        (version, ".npy version 4.0"),
        (whole[..20].to_vec(), "the header says that it has 118 bytes"),
        (whole[..140].to_vec(), "needs 16 bytes of data, the file has 12; hint: it is cut short"),
        (simple("'<f4'", "(3,)", &data), "needs 12 bytes of data, the file has 16; hint: one array per file"),
        (simple("'>f4'", "(4,)", &data), "big-endian"),
        (file(1, fortran, &data), "Fortran order"),
        (simple("'<c8'", "(2,)", &data), "type '<c8'"),
        (simple("'|O'", "(2,)", &data), "type '|O'"),
        (simple("[('a', '<f4')]", "(4,)", &data), "type a structure"),
        (simple("'<f4'", "(4294967296, 4294967296, 4)", &data), "too large"),
        (simple("'<f4'", "4", &data), "'shape' is no tuple"),
        (file(1, "{'descr': '<f4', 'fortran_order': False}", &data), "no 'shape'"),
    ];
    for (file, part) in wrong {
        let error = parse(&file, None).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
        assert!(error.contains("hint:"), "{error}");
    }
    let other = parse(&whole, Some(ElementType::F64)).unwrap_err();
    assert_eq!(other, HeaderError::OtherType { found: ElementType::F32, wanted: ElementType::F64 });
}

#[test]
fn all_problems_of_all_ranks_are_reported_together() {
    let read = |name: &str| match name {
        "rank0.npy" => Ok(simple("'<f4'", "(4,)", &[0; 16])),
        "rank1.npy" => Err("no such file".to_owned()),
        "rank2.npy" => Ok(simple("'<i4'", "(2, 2)", &[0; 16])),
        _ => Ok(simple("'>f4'", "(4,)", &[0; 16])),
    };
    let problems: Vec<_> = load(4, None, read).unwrap_err().iter().map(ToString::to_string).collect();
    assert_eq!(problems.len(), 4, "{problems:#?}");
    for part in [
        "rank1.npy: no such file",
        "rank0.npy: elements are f32, those of rank2.npy are i32",
        "rank0.npy: shape (4,), that of rank2.npy is (2, 2)",
        "rank3.npy: the elements are big-endian",
    ] {
        assert!(problems.iter().any(|problem| problem.contains(part)), "{part} in {problems:#?}");
    }
}

/// Returns the problems of eight files with these shapes.
fn said_of(shapes: [&str; 8]) -> Vec<String> {
    let read = |name: &str| {
        let rank: usize = name.trim_start_matches("rank").trim_end_matches(".npy").parse().unwrap();
        Ok(simple("'<f4'", shapes[rank], &[0; 16]))
    };
    load(8, None, read).unwrap_err().iter().map(ToString::to_string).collect()
}

#[test]
fn few_items_are_found_among_many_at_every_position() {
    let (few, many) = ("(2, 2)", "(4,)");
    let said = said_of([few, few, many, many, many, many, many, many]);
    assert_eq!(said.len(), 2, "{said:#?}");
    for (problem, rank) in said.iter().zip([0, 1]) {
        let start = format!("rank{rank}.npy: shape (2, 2), that of rank2.npy and 5 more is (4,); hint:");
        assert!(problem.starts_with(&start), "{problem}");
    }
}

#[test]
fn without_a_majority_both_groups_are_named() {
    let said = said_of(["(2, 2)", "(2, 2)", "(2, 2)", "(2, 2)", "(4,)", "(4,)", "(4,)", "(4,)"]);
    assert_eq!(said.len(), 1, "{said:#?}");
    for part in [
        "rank0.npy, rank1.npy, rank2.npy, rank3.npy: shape (2, 2)",
        "rank4.npy, rank5.npy, rank6.npy, rank7.npy is (4,)",
    ] {
        assert!(said[0].contains(part), "{said:?}");
    }
}

#[test]
fn arrays_that_agree_are_held_without_their_headers() {
    let read = |name: &str| Ok(simple("'|u1'", "(3, 1)", name.as_bytes()[..3].try_into().unwrap_or(&[0; 3])));
    let arrays = load(2, Some(ElementType::U8), read).unwrap();
    assert_eq!((arrays.shape, arrays.held.element), (vec![3, 1], ElementType::U8));
    assert_eq!(arrays.held.bytes, [b"ran", b"ran"]);
}

#[test]
fn results_keep_their_shape_where_the_ranks_divide_the_first_axis() {
    let shape = |collective, rank, shape: &[u64]| result_shape(collective, rank, 4, shape);
    assert_eq!(shape(Collective::AllReduce, 1, &[3, 5]), Some(vec![3, 5]));
    assert_eq!(shape(Collective::AllReduce, 1, &[]), Some(vec![]));
    assert_eq!(shape(Collective::AllGather, 1, &[3, 5]), Some(vec![12, 5]));
    assert_eq!(shape(Collective::AllGather, 1, &[]), Some(vec![4]));
    assert_eq!(shape(Collective::ReduceScatter, 1, &[8, 5]), Some(vec![2, 5]));
    assert_eq!(shape(Collective::ReduceScatter, 0, &[3, 3]), Some(vec![3]));
    assert_eq!(shape(Collective::ReduceScatter, 3, &[3, 3]), Some(vec![2]));
    assert_eq!(shape(Collective::AllToAll, 0, &[4, 2]), Some(vec![4, 2]));
    assert_eq!(shape(Collective::AllToAll, 0, &[5]), Some(vec![8]));
    assert_eq!(shape(Collective::Reduce { root: 2 }, 1, &[5]), None);
    assert_eq!(shape(Collective::Scan, 0, &[3, 5]), Some(vec![3, 5]));
    assert_eq!(shape(Collective::ExclusiveScan, 0, &[3, 5]), None);
    assert_eq!(shape(Collective::ExclusiveScan, 1, &[3, 5]), Some(vec![3, 5]));
    assert_eq!(shape(Collective::Gather { root: 2 }, 2, &[5]), Some(vec![20]));
}

proptest! {
    #[test]
    fn a_shape_has_as_many_elements_as_the_collective_gives(
        axes in proptest::collection::vec(0_u64..7, 0..4), ranks in 1_usize..6, which in 0..CollectiveKind::ALL.len(),
        root in 0_usize..6,
    ) {
        let root = root % ranks;
        let collective = Collective::all(root)[which];
        let given = axes.iter().product::<u64>() as usize;
        let whole = match collective {
            Collective::AllGather | Collective::Gather { .. } => given * ranks,
            _ => given,
        };
        for rank in 0..ranks {
            let elements = collective.output_elements(rank, ranks, whole) as u64;
            let shape = result_shape(collective, rank, ranks, &axes);
            prop_assert_eq!(shape.map_or(0, |shape| shape.iter().product()), elements);
        }
    }

    #[test]
    fn what_is_written_is_read_again(axes in proptest::collection::vec(0_u64..9, 0..5), which in 0_usize..7) {
        let element = ElementType::ALL[which];
        let mut written = header_bytes(element, &axes);
        prop_assert_eq!(written.len() % 64, 0);
        let data_bytes = axes.iter().product::<u64>() as usize * element.bytes();
        written.resize(written.len() + data_bytes, 1);
        let header = parse(&written, Some(element)).unwrap();
        prop_assert_eq!((header.element, header.shape), (element, axes));
    }

    #[test]
    fn no_bytes_are_too_strange(bytes in proptest::collection::vec(any::<u8>(), 0..200), at in 0_usize..128, value in any::<u8>()) {
        let _ = parse(&bytes, None);
        let mut damaged = simple("'<f4'", "(4,)", &[0; 16]);
        damaged[at] = value;
        let _ = parse(&damaged, None);
    }
}
