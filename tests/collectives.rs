//! Collectives through the command, on arrays in files: results equal plain arithmetic to the bit.
//!
//! The expectation is computed here, value by value, by code without schedules. Floating-point inputs
//! are small whole numbers, whose sums and products every type here holds exactly, so the order of a reduction cannot hide a
//! mistake. Where python3 with NumPy is installed, NumPy checks as well.

mod support;

use std::path::Path;
use std::process::Command;

use support::arrays::{arrays, bytes_of, header, npy, reduced, result, values};
use support::wires::not_tried;
use support::{Ended, Rackloom, rack_file, retransmitted, run, scratch, sim};

const RING: &str = "{ring: {nodes: 4}}";
const STAR: &str = "{star: {nodes: 5, planes: 2}}";
const MESH: &str = "{full-mesh: {nodes: 3}}";

const TYPES: [&str; 7] = ["f32", "f64", "f16", "bf16", "i32", "i64", "u8"];
const OPS: [&str; 4] = ["sum", "min", "max", "prod"];

fn nodes(shape: &str) -> usize {
    let digits: String =
        shape.split("nodes: ").nth(1).expect("a count").chars().take_while(char::is_ascii_digit).collect();
    digits.parse().expect("a number")
}

fn job(engine: &str, shape: &str, collective: &str, element: &str, input: &Path, output: &Path) -> Rackloom {
    let file = rack_file(&format!("name: sums\nshape: {shape}\n"));
    let rack = match engine {
        "sim" => sim(&file),
        wire => run(&file).with(&["--wire", wire]),
    };
    let text = |path: &Path| path.to_str().expect("a plain path").to_owned();
    rack.with(&["--job", "collective", "--collective", collective, "--type", element]).with(&[
        "--repetitions",
        "1",
        "--warm-up",
        "0",
        "--input",
        &text(input),
        "--output",
        &text(output),
    ])
}

/// Checks that an all-reduce gives the reduction at every rank.
fn reduces(
    engine: &str,
    shape: &str,
    element: &str,
    op: &str,
    count: usize,
    more: &[&str],
) -> serde_json::Value {
    let values = values(element, op, nodes(shape), count);
    let (input, output) = (arrays(element, &values), scratch("output"));
    let ended =
        job(engine, shape, "all-reduce", element, &input, &output).with(&["--op", op]).with(more).finish();
    let report = ended.passed();
    let expected = bytes_of(element, &reduced(element, op, &values));
    for rank in 0..values.len() {
        let (of_shape, data) = result(&output, rank);
        assert_eq!(of_shape, format!("({count},)"));
        assert!(data == expected, "{engine} {shape} {element} {op} {count} {more:?}: rank {rank} is wrong");
    }
    check_with_numpy(&input, &output, op, values.len());
    let beside: Vec<_> = std::fs::read_dir(&output).expect("it is there").flatten().collect();
    assert_eq!(beside.len(), values.len(), "nothing but the results is left");
    for directory in [input, output] {
        std::fs::remove_dir_all(directory).expect("it exists");
    }
    report
}

/// Checks the results with NumPy, if there is one. 16-bit floats are reduced in float32, rank by rank, and rounded once. NumPy has no
/// bf16, so its bits are the upper half of a float32 there and are rounded by hand.
fn check_with_numpy(input: &Path, output: &Path, op: &str, ranks: usize) {
    const SCRIPT: &str = "import sys, numpy as np\n\
        i, o, op, n = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])\n\
        a = [np.load(f'{i}/rank{r}.npy') for r in range(n)]\n\
        f = dict(sum=np.add, prod=np.multiply, min=np.minimum, max=np.maximum)[op]\n\
        t = a[0].dtype\n\
        if t.kind == 'V': a = [(x.view('<u2').astype('<u4') << 16).view('<f4') for x in a]\n\
        if t == '<f2': a = [x.astype('<f4') for x in a]\n\
        want = f.reduce(np.stack(a), axis=0, dtype=a[0].dtype)\n\
        if t.kind == 'V':\n\
        \x20   u = want.view('<u4')\n\
        \x20   want = ((u + 0x7fff + ((u >> 16) & 1)) >> 16).astype('<u2')\n\
        if t == '<f2': want = want.astype('<f2')\n\
        sys.exit(any(np.load(f'{o}/rank{r}.npy').tobytes() != want.tobytes() for r in range(n)))\n";
    let python = std::env::var("RACKLOOM_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let has_numpy =
        Command::new(&python).args(["-c", "import numpy"]).output().is_ok_and(|done| done.status.success());
    if !has_numpy {
        not_tried(&format!("{python} has no NumPy; what this file computes itself was compared"));
        return;
    }
    let done = Command::new(python)
        .args(["-c", SCRIPT])
        .args([input, output])
        .args([op, &ranks.to_string()])
        .output();
    let done = done.expect("python starts");
    assert!(done.status.success(), "NumPy differs: {}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn every_type_and_every_operation_is_exact() {
    for (index, element) in TYPES.into_iter().enumerate() {
        for (number, op) in OPS.into_iter().enumerate() {
            reduces("sim", RING, element, op, 37 + 13 * index + number, &[]);
        }
    }
}

/// Runs each shape on both wires and in virtual time, with and without loss, with types, operations and odd sizes in rotation.
fn goes_everywhere(shape: &str, types: [&str; 3]) {
    let mut number = 0;
    for engine in ["shared-memory", "packet", "sim"] {
        for loss in ["0%", "2%"] {
            let (element, op) = (types[number % 3], OPS[number % 4]);
            let count = [50_001, 1, 20_011, 4_097, 30_013, 10_007][number];
            let report = reduces(engine, shape, element, op, count, &["--loss", loss]);
            if loss == "0%" && engine == "sim" {
                assert_eq!(retransmitted(&report), 0);
            }
            if loss == "2%" && count > 20_000 {
                assert!(retransmitted(&report) > 0, "{engine}: the loss was not there");
            }
            number += 1;
        }
    }
}

#[test]
fn a_ring_reduces_on_both_wires_and_in_virtual_time() {
    goes_everywhere(RING, ["f32", "u8", "i64"]);
}

#[test]
fn a_star_reduces_on_both_wires_and_in_virtual_time() {
    goes_everywhere(STAR, ["f16", "f64", "i32"]);
}

#[test]
fn a_mesh_reduces_on_both_wires_and_in_virtual_time() {
    goes_everywhere(MESH, ["bf16", "f32", "u8"]);
}

/// Every type with every operation, shape, wire or engine and loss: 504 racks. Run by hand with `RACKLOOM_WHOLE_PRODUCT=1`
/// (docs/measuring.md). The tests above cover each type, operation, shape, engine and loss, and a part of their pairs.
#[test]
fn every_combination_of_type_operation_shape_and_engine() {
    if std::env::var_os("RACKLOOM_WHOLE_PRODUCT").is_none() {
        not_tried(
            "every_combination_of_type_operation_shape_and_engine takes minutes; RACKLOOM_WHOLE_PRODUCT=1 runs it",
        );
        return;
    }
    for (index, element) in TYPES.into_iter().enumerate() {
        for op in OPS {
            for shape in [RING, STAR, MESH] {
                for (engine, count) in [("shared-memory", 9_001), ("packet", 7_001), ("sim", 8_009)] {
                    for loss in ["0%", "2%"] {
                        reduces(engine, shape, element, op, count + 2 * index, &["--loss", loss]);
                    }
                }
            }
        }
    }
}

/// Type of floating-point numbers: conversion from and to a double, and the largest error of one rounding.
struct Floats {
    element: &'static str,
    encode: fn(f64) -> Vec<u8>,
    decode: fn(&[u8]) -> f64,
    unit_roundoff: f64,
}

/// Returns every value of a binary16 from zero to the greatest, ascending. The index is the value's bits.
fn halves() -> &'static [f64] {
    static HALVES: std::sync::LazyLock<Vec<f64>> = std::sync::LazyLock::new(|| {
        let value = |bits: u16| match (bits >> 10, f64::from(bits & 0x3ff) / 1024.0) {
            (0, fraction) => fraction * 2.0_f64.powi(-14),
            (exponent, fraction) => (1.0 + fraction) * 2.0_f64.powi(i32::from(exponent) - 15),
        };
        (0..0x7c00).map(value).collect()
    });
    &HALVES
}

/// Returns the nearest binary16, ties to even.
fn half_bits(value: f64) -> u16 {
    let (halves, magnitude) = (halves(), value.abs());
    let above = halves.partition_point(|half| *half < magnitude).min(halves.len() - 1);
    let below = above.saturating_sub(1);
    let (down, up) = (magnitude - halves[below], halves[above] - magnitude);
    let nearest = if down < up || (down == up && below % 2 == 0) { below } else { above };
    nearest as u16 | if value.is_sign_negative() { 0x8000 } else { 0 }
}

const FLOATS: [Floats; 4] = [
    Floats {
        element: "f32",
        encode: |value| (value as f32).to_le_bytes().to_vec(),
        decode: |bytes| f64::from(f32::from_le_bytes(bytes.try_into().expect("four bytes"))),
        unit_roundoff: 1.0 / (1_u64 << 24) as f64,
    },
    Floats {
        element: "f64",
        encode: |value| value.to_le_bytes().to_vec(),
        decode: |bytes| f64::from_le_bytes(bytes.try_into().expect("eight bytes")),
        unit_roundoff: f64::EPSILON / 2.0,
    },
    Floats {
        element: "bf16",
        encode: |value| (((value as f32).to_bits() >> 16) as u16).to_le_bytes().to_vec(),
        decode: |bytes| {
            let bits = u16::from_le_bytes(bytes.try_into().expect("two bytes"));
            f64::from(f32::from_bits(u32::from(bits) << 16))
        },
        unit_roundoff: 1.0 / 256.0,
    },
    Floats {
        element: "f16",
        encode: |value| half_bits(value).to_le_bytes().to_vec(),
        decode: |bytes| {
            let bits = u16::from_le_bytes(bytes.try_into().expect("two bytes"));
            halves()[usize::from(bits & 0x7fff)] * if bits >> 15 == 1 { -1.0 } else { 1.0 }
        },
        unit_roundoff: 1.0 / 2048.0,
    },
];

/// Returns encoded arrays of numbers between -1 and 1 with full mantissas.
fn random_floats(floats: &Floats, ranks: usize, count: usize) -> Vec<Vec<u8>> {
    let numbers = values("i64", "sum", ranks, count);
    let encoded = |value: &i64| (floats.encode)(*value as f64 / i64::MAX as f64);
    numbers.iter().map(|array| array.iter().flat_map(encoded).collect()).collect()
}

fn put_arrays(element: &str, arrays: &[Vec<u8>], count: usize) -> std::path::PathBuf {
    let input = scratch("input");
    std::fs::create_dir(&input).expect("the scratch folder can be written");
    for (rank, bytes) in arrays.iter().enumerate() {
        let file = npy(&header(support::arrays::descr(element), &format!("({count},)")), bytes);
        std::fs::write(input.join(format!("rank{rank}.npy")), file).expect("it can be written");
    }
    input
}

/// If a rank holds all operands, 16-bit sums are those of f32 in the order of the ranks, rounded once, to the bit.
#[test]
fn sixteen_bit_sums_of_full_mantissas_are_rounded_once_by_direct_schedules() {
    let bits_of_bf16 = |sum: f32| ((sum.to_bits() + 0x7fff + (sum.to_bits() >> 16 & 1)) >> 16) as u16;
    for floats in FLOATS.iter().filter(|floats| floats.element.ends_with("f16")) {
        for (engine, algorithm) in [("sim", "one-shot"), ("sim", "two-shot"), ("shared-memory", "two-shot")] {
            let (ranks, count) = (nodes(STAR), 1009);
            let given = random_floats(floats, ranks, count);
            let (input, output) = (put_arrays(floats.element, &given, count), scratch("output"));
            let options = ["--algorithm", algorithm];
            job(engine, STAR, "all-reduce", floats.element, &input, &output).with(&options).finish().passed();
            let expected = (0..count).flat_map(|index| {
                let of_rank = |bytes: &Vec<u8>| (floats.decode)(&bytes[index * 2..][..2]) as f32;
                let sum = given.iter().map(of_rank).reduce(|sum, value| sum + value).expect("a rank");
                let is_half = floats.element == "f16";
                if is_half { half_bits(sum.into()) } else { bits_of_bf16(sum) }.to_le_bytes()
            });
            let expected: Vec<_> = expected.collect();
            for rank in 0..ranks {
                assert!(result(&output, rank).1 == expected, "{} by {algorithm} on {engine}", floats.element);
            }
            check_with_numpy(&input, &output, "sum", ranks);
        }
    }
}

/// In any order, a sum of N numbers goes through N - 1 additions. If each result is rounded once, with relative error at
/// most u, the sum errs by at most (N - 1) u / (1 - (N - 1) u) times the sum of the magnitudes (Higham 2002, 4.2). bf16 is
/// rounded twice per addition (to f32 first), and the comparison sums doubles itself; 2 u each covers both.
#[test]
fn random_floats_are_equal_at_every_rank_and_within_the_rounding_bound() {
    for (floats, (shape, engine)) in
        FLOATS.iter().zip([(RING, "shared-memory"), (STAR, "packet"), (MESH, "sim"), (RING, "sim")])
    {
        let (ranks, count) = (nodes(shape), 10_007);
        let given = random_floats(floats, ranks, count);
        let (input, output) = (put_arrays(floats.element, &given, count), scratch("output"));
        job(engine, shape, "all-reduce", floats.element, &input, &output).finish().passed();
        let first = result(&output, 0).1;
        for rank in 1..ranks {
            assert!(result(&output, rank).1 == first, "{}: rank {rank} has other bits", floats.element);
        }
        let width = first.len() / count;
        let error_share = 2.0 * floats.unit_roundoff * (ranks - 1) as f64;
        let bound_share = error_share / (1.0 - error_share);
        for (index, found) in first.chunks(width).enumerate() {
            let of_rank = |bytes: &Vec<u8>| (floats.decode)(&bytes[index * width..][..width]);
            let sum: f64 = given.iter().map(of_rank).sum();
            let magnitude: f64 = given.iter().map(|bytes| of_rank(bytes).abs()).sum();
            let error = ((floats.decode)(found) - sum).abs();
            assert!(error <= bound_share * magnitude, "{}, element {index}: off by {error}", floats.element);
        }
    }
}

#[test]
fn every_algorithm_and_every_size_gives_the_same() {
    for algorithm in ["ring", "bidirectional-ring", "one-shot", "two-shot", "halving-doubling"] {
        for count in [0, 1, 3, 1001] {
            reduces("sim", STAR, "i32", "sum", count, &["--algorithm", algorithm]);
        }
    }
}

/// Returns the elements of part `part` of `count`. The first parts are one longer.
fn part(count: usize, ranks: usize, part: usize) -> std::ops::Range<usize> {
    let start = |part: usize| part * (count / ranks) + part.min(count % ranks);
    start(part)..start(part + 1)
}

#[test]
fn every_collective_moves_the_values_to_the_right_ranks() {
    let ranks = nodes(RING);
    for engine in ["shared-memory", "sim"] {
        let given = values("i64", "sum", ranks, 1003);
        let sum = reduced("i64", "sum", &given);
        let piece = |array: &[i64], rank| array[part(array.len(), ranks, rank)].to_vec();
        let expected = |collective: &str, rank: usize| match collective {
            "broadcast" => Some(given[2].clone()),
            "reduce" => (rank == 2).then(|| sum.clone()),
            "reduce-scatter" => Some(piece(&sum, rank)),
            "scatter" => Some(piece(&given[2], rank)),
            "all-gather" => Some(given.concat()),
            "gather" => (rank == 2).then(|| given.concat()),
            "scan" => Some(reduced("i64", "sum", &given[..=rank])),
            "exclusive-scan" => (rank > 0).then(|| reduced("i64", "sum", &given[..rank])),
            _ => Some(given.iter().flat_map(|array| piece(array, rank)).collect()),
        };
        let moving =
            "broadcast reduce reduce-scatter scatter all-gather gather all-to-all scan exclusive-scan";
        for collective in moving.split(' ') {
            let (input, output) = (arrays("i64", &given), scratch("output"));
            let rooted = ["broadcast", "reduce", "scatter", "gather"].contains(&collective);
            let root: &[&str] = if rooted { &["--root", "n2"] } else { &[] };
            job(engine, RING, collective, "i64", &input, &output).with(root).finish().passed();
            for rank in 0..ranks {
                match expected(collective, rank) {
                    Some(values) => {
                        let found = result(&output, rank).1;
                        assert!(
                            found == bytes_of("i64", &values),
                            "{engine} {collective}: rank {rank} is wrong"
                        );
                    }
                    None => assert!(!output.join(format!("rank{rank}.npy")).exists(), "{collective}: {rank}"),
                }
            }
        }
    }
}

fn refused(ended: &Ended, parts: &[&str]) {
    assert_eq!(ended.code, Some(2), "{}\n{}", ended.stdout, ended.stderr);
    assert_eq!(ended.stdout, "", "nothing was started");
    for part in parts {
        assert!(ended.stderr.contains(part), "{part} is missing:\n{}", ended.stderr);
    }
}

#[test]
fn arrays_that_cannot_be_used_are_refused_all_at_once() {
    let input = arrays("f32", &values("f32", "sum", 5, 6));
    let put = |rank: usize, file: Vec<u8>| {
        std::fs::write(input.join(format!("rank{rank}.npy")), file).expect("it can")
    };
    put(1, npy(&header(">f4", "(6,)"), &[0; 24]));
    put(2, npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", &[0; 24]));
    put(3, npy(&header("<f4", "(2, 3)"), &[0; 24]));
    put(4, npy(&header("<f4", "(6,)"), &[0; 23]));
    let output = scratch("output");
    for engine in ["shared-memory", "sim"] {
        let ended = job(engine, "{ring: {nodes: 6}}", "all-reduce", "f32", &input, &output).finish();
        refused(
            &ended,
            &[
                "rank1.npy: the elements are big-endian",
                "rank2.npy: the array is in Fortran order",
                "rank0.npy: shape (6,), that of rank3.npy is (2, 3)",
                "rank4.npy: shape (6,) needs 24 bytes of data, the file has 23",
                "rank5.npy: no such file",
                "hint",
            ],
        );
    }
    assert!(!output.exists());
}

#[test]
fn input_arrays_are_not_overwritten_and_not_ignored_without_a_note() {
    let input = arrays("f32", &values("f32", "sum", 5, 6));
    let read = || std::fs::read(input.join("rank0.npy")).expect("it is there");
    let (before, dotted) = (read(), input.join("."));
    for engine in ["shared-memory", "sim"] {
        let same = job(engine, "{ring: {nodes: 5}}", "all-reduce", "f32", &input, &dotted).finish();
        refused(&same, &["would replace the arrays of --input", "hint:"]);
        let fewer = job(engine, RING, "all-reduce", "f32", &input, &scratch("output")).finish();
        let left_over = format!("rank{}.npy: the rack has {} ranks", nodes(RING), nodes(RING));
        refused(&fewer, &[&left_over, "hint:"]);
    }
    assert_eq!(read(), before);
}

/// Elided payload moves no bytes: nothing is started, and no folder is made.
#[test]
fn arrays_are_refused_without_payload() {
    let (input, output) = (arrays("f32", &vec![vec![1; 4]; 4]), scratch("output"));
    let [input, output] = [&input, &output].map(|path| path.to_str().expect("a plain path"));
    for (in_file, options) in [("", &["--payload", "elided"][..]), ("payload: elided\n", &[])] {
        let file = rack_file(&format!("name: elided\nshape: {RING}\n{in_file}"));
        for (option, directory) in [("--input", input), ("--output", output)] {
            let ended = sim(&file).with(&["--collective", "all-reduce", option, directory]).with(options);
            refused(&ended.finish(), &["`payload` is elided", option, "--payload full", "hint:"]);
        }
    }
    assert!(!Path::new(output).exists());
}

#[test]
fn a_job_larger_than_memory_is_refused_with_the_numbers() {
    let file = rack_file("name: small\nshape: {ring: {nodes: 4}}\ndefaults: {memory: 64KiB}\njob: none\n");
    for rack in [run(&file), sim(&file)] {
        refused(&rack.with(&["--collective", "all-reduce", "--bytes", "1MiB"]).finish(), &["2MiB", "64KiB"]);
    }
}

#[test]
fn options_without_effect_on_a_collective_are_refused() {
    let file = rack_file("name: meaning\nshape: {ring: {nodes: 4}}\n");
    for rack in [run, sim] {
        let refused_with = |options: &[&str], parts: &[&str]| {
            refused(&rack(&file).with(&["--collective"]).with(options).finish(), parts);
        };
        refused_with(&["broadcast", "--op", "max"], &["--op means nothing to broadcast", "hint:"]);
        refused_with(&["all-reduce", "--root", "n1"], &["--root means nothing to all-reduce", "hint:"]);
        refused_with(&["barrier", "--bytes", "8B"], &["--bytes means nothing to barrier", "hint:"]);
        refused_with(&["barrier", "--input", "/"], &["barrier takes and gives no arrays", "hint:"]);
        refused_with(&["send-recv"], &["send-recv"]);
    }
}

#[test]
fn a_barrier_takes_time_and_moves_nothing() {
    let file = rack_file("name: meet\nshape: {ring: {nodes: 4}}\n");
    for rack in [run(&file), sim(&file)] {
        let ended = rack.with(&["--collective", "barrier", "--repetitions", "3"]).finish();
        let row = &ended.passed()["sweep"][0];
        assert_eq!(
            (&row["what"], &row["size_bytes"], &row["count"]),
            (&"barrier".into(), &0.into(), &0.into())
        );
        assert!(row["time_us"].as_f64() > Some(0.0), "{row}");
        assert!(row["algbw_GBps"].is_null() && row["busbw_GBps"].is_null(), "{row}");
        let line = ended.stdout.lines().find(|line| line.starts_with("barrier")).expect("a row");
        assert_eq!(line.split_whitespace().filter(|cell| *cell == "-").count(), 3, "{line}");
    }
    let printed =
        support::rackloom(&["schedule", file.to_str().expect("plain"), "--collective", "barrier"]).finish();
    assert_eq!(printed.code, Some(0), "{}", printed.stderr);
    assert!(!printed.stdout.contains("elements"), "{}", printed.stdout);
}

#[test]
fn results_of_a_run_with_more_ranks_are_not_mixed_with_new_ones() {
    let output = scratch("output");
    let all_reduce = |shape: &str, engine: &str| {
        let input = arrays("i32", &values("i32", "sum", nodes(shape), 100));
        job(engine, shape, "all-reduce", "i32", &input, &output).finish()
    };
    all_reduce(STAR, "sim").passed();
    let before = result(&output, 0);
    for engine in ["sim", "shared-memory"] {
        refused(&all_reduce(RING, engine), &["rank4.npy would stay beside", "hint:"]);
    }
    assert_eq!(result(&output, 0), before, "nothing was touched");
    std::fs::remove_file(output.join("rank4.npy")).expect("it is there");
    all_reduce(RING, "shared-memory").passed();
    assert_ne!(result(&output, 0), before, "those of the same ranks are replaced");
}

#[test]
fn a_sweep_has_the_usual_columns() {
    let file = rack_file("name: sweep\nshape: {ring: {nodes: 4}}\n");
    for rack in [run(&file), sim(&file)] {
        let ended = rack
            .with(&["--collective", "all-reduce", "--sizes", "8B..4KiB*8", "--repetitions", "2"])
            .finish();
        let report = ended.passed();
        for heading in
            ["size (B)", "count", "type", "op", "time (us)", "algbw (GB/s)", "busbw (GB/s)", "wrong"]
        {
            assert!(ended.stdout.contains(heading), "{heading} is missing:\n{}", ended.stdout);
        }
        assert!(ended.stdout.contains("estimated"), "the choice has a reason:\n{}", ended.stdout);
        let sizes: Vec<_> =
            report["sweep"].as_array().expect("rows").iter().map(|row| &row["size_bytes"]).collect();
        assert_eq!(sizes, [8, 64, 512, 4096]);
    }
}

#[test]
fn latency_and_bandwidth_measure_pairs() {
    let file = rack_file("name: pairs\nshape: {ring: {nodes: 3}}\n");
    for job in ["latency", "bandwidth"] {
        for rack in [run(&file), sim(&file)] {
            let options = ["--job", job, "--bytes", "4KiB", "--repetitions", "5", "--warm-up", "1"];
            let report = rack.with(&options).finish().passed();
            let rows = report["sweep"].as_array().expect("rows");
            assert!(
                !rows.is_empty() && rows.iter().all(|row| row["time_us"].as_f64() > Some(0.0)),
                "{rows:?}"
            );
        }
    }
}
