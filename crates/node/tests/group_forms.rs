//! Tests of the forms of collectives: parts of different lengths, arrays in place, scans, reductions of the caller, and persistent collectives.

#[path = "fabric/rig.rs"]
mod rig;

use std::thread;

use rackloom::fabric::*;
use rig::local;

const KEY: u64 = 0x5eed;
const BOXES: &str = "name: boxes\nshape: {star: {nodes: 6}}\nservers: {a: [n0, n2, n4], b: [n1, n3]}\n";
const SUM: ReduceOperation = ReduceOperation::Sum;

fn ring(nodes: usize) -> String {
    format!("name: ring\nshape: {{ring: {{nodes: {nodes}}}}}\n")
}

/// Runs `act` on every node of the rack in a thread, as member of a group of all.
fn together<T: Send>(plan: &str, options: GroupOptions, act: impl Fn(&Node, Group) -> T + Sync) -> Vec<T> {
    let nodes = local(plan).into_nodes();
    let act = &act;
    thread::scope(|scope| {
        let threads: Vec<_> = nodes
            .iter()
            .map(|node| scope.spawn(move || act(node, Group::of_rack(node, options).unwrap())))
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Racks of several shapes, with small staging so that arrays are cut into pieces, and lossy links.
fn racks() -> Vec<(String, GroupOptions)> {
    let lossy = "name: star\nshape: {star: {nodes: 3}}\nlink: {loss: 1%, duplicate: 1%}\n".to_owned();
    vec![
        (ring(2), GroupOptions::default()),
        (ring(5), GroupOptions::default().staging(1 << 12)),
        (lossy, GroupOptions::default().staging(1 << 13)),
        (BOXES.to_owned(), GroupOptions::default().staging(1 << 13)),
        (ring(4), GroupOptions::default().algorithm(Algorithm::Ring)),
    ]
}

/// Returns values that differ for each sender, receiver and position.
fn message(from: usize, to: usize, length: usize) -> Vec<u32> {
    (0..length).map(|position| (from * 1_000_000 + to * 100_000 + position) as u32).collect()
}

/// Returns lists of lengths for this number of members: mixed, with empty ones, all at one member, none.
fn lists(members: usize) -> Vec<Vec<usize>> {
    let at = |length: &dyn Fn(usize) -> usize| (0..members).map(length).collect::<Vec<_>>();
    vec![
        at(&|rank| 3 * rank + 1),
        at(&|rank| if rank % 2 == 0 { 700 * (members - rank) } else { 0 }),
        at(&|rank| if rank == members - 1 { 2500 } else { 0 }),
        at(&|_| 0),
        at(&|_| 9),
    ]
}

#[test]
fn parts_of_different_lengths_reach_their_places() {
    for (plan, options) in racks() {
        together(&plan, options, |_, group| {
            let (me, count) = (group.rank(), group.members().len());
            let root = group.members()[count / 2];
            for counts in lists(count) {
                let total: usize = counts.iter().sum();
                let of_all: Vec<_> = (0..count).flat_map(|rank| message(rank, 0, counts[rank])).collect();
                let mine = message(me, 0, counts[me]);
                let mut output = vec![0; total];
                group.all_gather_v(&mine, &mut output, &counts).wait().unwrap();
                assert_eq!(output, of_all, "all-gather {counts:?}");
                let mut output = vec![0; if me == count / 2 { total } else { 0 }];
                group.gather_v(&mine, &mut output, &counts, root).wait().unwrap();
                assert!(output.is_empty() || output == of_all, "gather {counts:?}");
                let mut output = vec![0; counts[me]];
                let input: &[u32] = if me == count / 2 { &of_all } else { &[] };
                group.scatter_v(input, &mut output, &counts, root).wait().unwrap();
                assert_eq!(output, mine, "scatter {counts:?}");

                let input: Vec<_> = (0..total as i64).map(|position| position * (me as i64 + 1)).collect();
                let mut output = vec![0_i64; counts[me]];
                group.reduce_scatter_v(&input, &mut output, &counts, SUM).wait().unwrap();
                let start: usize = counts[..me].iter().sum();
                let factor = (count * (count + 1) / 2) as i64;
                let expected: Vec<_> =
                    (start..start + counts[me]).map(|position| position as i64 * factor).collect();
                assert_eq!(output, expected, "reduce-scatter {counts:?}");
            }
        });
    }
}

#[test]
fn each_pair_of_an_all_to_all_has_its_own_length() {
    for (plan, options) in racks() {
        together(&plan, options, |_, group| {
            let (me, count) = (group.rank(), group.members().len());
            for scale in [0, 1, 300] {
                let sent = |from: usize, to: usize| scale * ((from * 7 + to * 3) % 5);
                let own: Vec<_> = (0..count).map(|to| sent(me, to) as u64).collect();
                // Members learn the lengths of the others as a program does.
                let mut counts = vec![0; count * count];
                group.all_gather(&own, &mut counts).wait().unwrap();
                let counts: Vec<_> = counts.into_iter().map(|count| count as usize).collect();
                let input: Vec<_> = (0..count).flat_map(|to| message(me, to, sent(me, to))).collect();
                let expected: Vec<_> =
                    (0..count).flat_map(|from| message(from, me, sent(from, me))).collect();
                let mut output = vec![0; expected.len()];
                group.all_to_all_v(&input, &mut output, &counts).wait().unwrap();
                assert_eq!(output, expected, "scale {scale}");
            }
        });
    }
}

#[test]
fn different_lists_of_lengths_break_the_group() {
    let results = together(&ring(2), GroupOptions::default(), |_, group| {
        let counts = if group.rank() == 0 { [1, 3] } else { [2, 2] };
        let mut output = [0_u8; 4];
        let result = group.all_gather_v(&[1_u8; 3], &mut output, &counts).wait();
        (result, group)
    });
    for (result, _) in &results {
        assert!(matches!(result, Err(Error::GroupBroken { .. })), "{result:?}");
    }
}

#[test]
fn lists_that_do_not_fit_are_refused_before_anything_is_sent() {
    together(&ring(2), GroupOptions::default(), |_, group| {
        let root = group.members()[0];
        let (input, mut output) = ([0_u8; 4], [0_u8; 4]);
        let refused = |result: Result<(), Error>| match result {
            Err(Error::Invalid(invalid)) => invalid,
            other => panic!("{other:?}"),
        };
        assert!(matches!(refused(group.all_gather_v(&input, &mut output, &[4]).wait()), Invalid::PartCount));
        assert!(matches!(
            refused(group.all_to_all_v(&input, &mut output, &[1, 2]).wait()),
            Invalid::PartCount
        ));
        assert!(matches!(
            refused(group.scatter_v(&input, &mut output, &[1, 1, 1], root).wait()),
            Invalid::PartCount
        ));
        for counts in [[3, 3], [usize::MAX, 2], [usize::MAX, usize::MAX]] {
            assert!(matches!(
                refused(group.all_gather_v(&input, &mut output, &counts).wait()),
                Invalid::ArrayTooShort
            ));
        }
        group.barrier().wait().unwrap();
    });
}

#[test]
fn arrays_in_place_have_the_results_of_two_arrays() {
    for (plan, options) in racks() {
        together(&plan, options, |_, group| {
            let (me, count) = (group.rank(), group.members().len());
            let root = group.members()[count - 1];
            for part in [0, 1, 5, 1200] {
                let own = me * part..(me + 1) * part;
                let filled = |rank: usize| message(rank, 0, count * part);
                let of_all: Vec<_> = (0..count).flat_map(|rank| message(rank, 1, part)).collect();

                let mut values = vec![0; count * part];
                values[own.clone()].copy_from_slice(&message(me, 1, part));
                group.all_gather_in_place(&mut values).wait().unwrap();
                assert_eq!(values, of_all, "all-gather");

                let mut values: Vec<_> = filled(me).into_iter().map(i64::from).collect();
                let before = values.clone();
                group.reduce_scatter_in_place(&mut values, SUM).wait().unwrap();
                for (position, value) in values.iter().enumerate() {
                    let sum: i64 = (0..count).map(|rank| i64::from(filled(rank)[position])).sum();
                    let expected = if own.contains(&position) { sum } else { before[position] };
                    assert_eq!(*value, expected, "reduce-scatter {position}");
                }

                let mut values: Vec<_> = (0..count).flat_map(|to| message(me, to, part)).collect();
                group.all_to_all_in_place(&mut values).wait().unwrap();
                let expected: Vec<_> = (0..count).flat_map(|from| message(from, me, part)).collect();
                assert_eq!(values, expected, "all-to-all");

                let is_root = me == count - 1;
                let mut values = if is_root { vec![0; count * part] } else { message(me, 1, part) };
                if is_root {
                    values[own.clone()].copy_from_slice(&message(me, 1, part));
                }
                group.gather_in_place(&mut values, root).wait().unwrap();
                assert_eq!(values, if is_root { of_all.clone() } else { message(me, 1, part) }, "gather");

                let mut values = if is_root { of_all.clone() } else { vec![0; part] };
                group.scatter_in_place(&mut values, root).wait().unwrap();
                assert_eq!(values, if is_root { of_all } else { message(me, 1, part) }, "scatter");
            }
        });
    }
}

/// Matrix of two rows, row by row. Products wrap, are associative, and do not commute.
type Matrix = [u64; 4];

fn product(left: &Matrix, right: &Matrix) -> Matrix {
    let cell = |row: usize, column: usize| {
        let first = left[2 * row].wrapping_mul(right[column]);
        first.wrapping_add(left[2 * row + 1].wrapping_mul(right[2 + column]))
    };
    [cell(0, 0), cell(0, 1), cell(1, 0), cell(1, 1)]
}

fn matrices(rank: usize, length: usize) -> Vec<Matrix> {
    let seed = |position: usize| (rank * 31 + position * 17 + 1) as u64;
    (0..length).map(|position| [seed(position), 1, rank as u64 + 2, seed(position) ^ 5]).collect()
}

/// Returns the products of the matrices of these ranks, in order.
fn products(ranks: std::ops::Range<usize>, length: usize) -> Vec<Matrix> {
    let identity = [1, 0, 0, 1];
    let factors: Vec<_> = ranks.map(|rank| matrices(rank, length)).collect();
    (0..length)
        .map(|position| {
            factors
                .iter()
                .fold(identity, |product_so_far, of_rank| product(&product_so_far, &of_rank[position]))
        })
        .collect()
}

fn multiply() -> Reduction<Matrix> {
    Reduction::ordered(|left: &mut [Matrix], right: &[Matrix]| {
        for (left, right) in left.iter_mut().zip(right) {
            *left = product(left, right);
        }
    })
}

#[test]
fn a_reduction_that_does_not_commute_has_its_operands_in_the_order_of_ranks() {
    for (plan, options) in racks() {
        let multiply = multiply();
        together(&plan, options, |_, group| {
            let (me, count) = (group.rank(), group.members().len());
            for part in [1, 7, 600] {
                let mine = || matrices(me, part);
                let mut values = mine();
                group.all_reduce(&mut values, &multiply).wait().unwrap();
                assert_eq!(values, products(0..count, part), "all-reduce");
                for root in 0..count {
                    let mut values = mine();
                    group.reduce(&mut values, &multiply, group.members()[root]).wait().unwrap();
                    let expected = if me == root { products(0..count, part) } else { mine() };
                    assert_eq!(values, expected, "reduce to {root}");
                }
                let mut values = mine();
                group.scan(&mut values, &multiply).wait().unwrap();
                assert_eq!(values, products(0..me + 1, part), "scan");
                let mut values = mine();
                group.exclusive_scan(&mut values, &multiply).wait().unwrap();
                let expected = if me == 0 { mine() } else { products(0..me, part) };
                assert_eq!(values, expected, "exclusive scan");
                let whole = matrices(me, part * count);
                let mut values = vec![[0; 4]; part];
                group.reduce_scatter(&whole, &mut values, &multiply).wait().unwrap();
                let expected = &products(0..count, part * count)[me * part..][..part];
                assert_eq!(values, expected, "reduce-scatter");
                let counts: Vec<_> = (0..count).map(|rank| rank * part).collect();
                let whole = matrices(me, counts.iter().sum());
                let mut values = vec![[0; 4]; counts[me]];
                group.reduce_scatter_v(&whole, &mut values, &counts, &multiply).wait().unwrap();
                let start: usize = counts[..me].iter().sum();
                let expected = &products(0..count, whole.len())[start..][..counts[me]];
                assert_eq!(values, expected, "reduce-scatter of different lengths");
            }
        });
    }
}

#[test]
fn elements_of_any_size_are_never_cut() {
    // Blocks of work have sizes of powers of two, which 24 bytes do not divide.
    let largest = Reduction::commutative(|left: &mut [[i64; 3]], right: &[[i64; 3]]| {
        for (left, right) in left.iter_mut().zip(right) {
            *left = (*left).max(*right);
        }
    });
    for algorithm in [None, Some(Algorithm::Ring), Some(Algorithm::OneShot)] {
        let mut options = GroupOptions::default();
        options.algorithm = algorithm;
        together(&ring(3), options, |_, group| {
            let of = |rank: usize, position: usize| {
                [((rank * 5 + position * 3) % 7) as i64, rank as i64, position as i64]
            };
            let mut values: Vec<_> = (0..3000).map(|position| of(group.rank(), position)).collect();
            group.all_reduce(&mut values, &largest).wait().unwrap();
            for (position, value) in values.iter().enumerate() {
                let expected = (0..3).map(|rank| of(rank, position)).max().unwrap();
                assert_eq!(*value, expected, "{position}");
            }
        });
    }
}

#[test]
fn scans_end_with_sums_of_lower_ranks() {
    for (plan, options) in racks() {
        together(&plan, options, |_, group| {
            let me = group.rank() as i64;
            for length in [0, 1, 3000] {
                let mut values = vec![me + 1; length];
                group.scan(&mut values, SUM).wait().unwrap();
                assert!(values.iter().all(|value| *value == (me + 1) * (me + 2) / 2), "scan");
                let mut values = vec![me + 1; length];
                group.exclusive_scan(&mut values, SUM).wait().unwrap();
                let expected = if me == 0 { 1 } else { me * (me + 1) / 2 };
                assert!(values.iter().all(|value| *value == expected), "exclusive scan");
            }
        });
    }
}

#[test]
fn a_reduction_that_panics_is_an_error_on_all_members() {
    let failing = Reduction::commutative(|_: &mut [i64], right: &[i64]| assert_ne!(right[0], 7));
    let results = together(&ring(3), GroupOptions::default(), |_, group| {
        let mut values = [7_i64; 3];
        (group.all_reduce(&mut values, &failing).wait(), group)
    });
    let panicked =
        |result: &Result<(), Error>| matches!(result, Err(Error::Invalid(Invalid::ReductionPanicked)));
    assert!(results.iter().any(|(result, _)| panicked(result)));
    for (result, group) in &results {
        assert!(panicked(result) || matches!(result, Err(Error::GroupBroken { .. })), "{result:?}");
        assert!(matches!(group.barrier().wait(), Err(Error::GroupBroken { .. })));
    }
}

#[test]
fn persistent_collectives_run_many_times_among_others() {
    for staging in [1 << 20, 1 << 12] {
        together(&ring(3), GroupOptions::default().staging(staging).lanes(2), |node, group| {
            let (me, count, part) = (group.rank(), group.members().len(), 700);
            let allocate = |number: u32, words: usize| {
                node.allocate(RegionOptions::new(number, KEY), words as u64 * 8).unwrap()
            };
            let (values, gathered) = (allocate(1, part), allocate(2, part * count));
            let element = ElementType::I64;
            let all = values.slice(..);
            let reduce = group.persistent(Collective::AllReduce, SUM, element, &all, &all).unwrap();
            let gather =
                group.persistent(Collective::AllGather, SUM, element, &all, &gathered.slice(..)).unwrap();
            for run in 0..5 {
                values.write(0, &vec![(me + run) as i64; part]).unwrap();
                reduce.request().wait().unwrap();
                let sum = (count * run + count * (count - 1) / 2) as i64;
                let mut seen = vec![0_i64; part];
                values.read(0, &mut seen).unwrap();
                assert!(seen.iter().all(|value| *value == sum), "run {run}: {} for {sum}", seen[0]);

                values.write(0, &vec![(me * 10 + run) as i64; part]).unwrap();
                let pending = gather.request().start().unwrap();
                group.barrier().wait().unwrap();
                pending.wait().unwrap();
                let mut seen = vec![0_i64; part * count];
                gathered.read(0, &mut seen).unwrap();
                let expected: Vec<_> =
                    (0..count).flat_map(|rank| vec![(rank * 10 + run) as i64; part]).collect();
                assert_eq!(seen, expected, "run {run}");
            }
            let short = group.persistent(Collective::AllGather, SUM, element, &all, &all);
            assert!(matches!(short, Err(Error::Invalid(Invalid::ArrayTooShort))));
            group.barrier().wait().unwrap();
        });
    }
}

#[test]
fn scans_of_slices_take_the_whole_array() {
    together(&ring(3), GroupOptions::default(), |node, group| {
        let me = group.rank() as i64;
        for (number, collective) in [(1, Collective::Scan), (2, Collective::ExclusiveScan)] {
            // Five elements: no multiple of the number of members.
            let values = node.register(RegionOptions::new(number, KEY), vec![me + 1; 5]).unwrap();
            let all = values.slice(..);
            group.on_slices(collective, SUM, ElementType::I64, &all, &all).wait().unwrap();
            let mut seen = [0_i64; 5];
            values.read(0, &mut seen).unwrap();
            let expected = match (collective, me) {
                (Collective::Scan, _) => (me + 1) * (me + 2) / 2,
                (_, 0) => 1,
                _ => me * (me + 1) / 2,
            };
            assert_eq!(seen, [expected; 5], "{collective}");
        }
    });
}
