//! Schedules run on real arrays: right values, the same bits on every rank, for any timing.

use std::num::NonZeroUsize;

use proptest::prelude::*;
use rackloom_collectives::algorithm::suitable;
use rackloom_collectives::partition::part;
use rackloom_collectives::reference::{RunError, run, run_with};
use rackloom_collectives::{Algorithm, Collective, ElementType, ReduceOperation, Request, Schedule, build};

fn schedule(collective: Collective, algorithm: Algorithm, servers: &[usize], elements: usize) -> Schedule {
    build(&Request { collective, ranks: servers.len(), elements, servers, parts: &[] }, algorithm).unwrap()
}

/// Draws the server of each rank.
fn servers(random: &mut Random, ranks: usize) -> Vec<usize> {
    let servers = 1 + random.below(ranks);
    (0..ranks).map(|_| random.below(servers)).collect()
}

/// A small generator, so that a failing case is named by its seed alone.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn below(&mut self, bound: usize) -> usize {
        self.next() as usize % bound
    }

    /// Values of very different size, so that every order of summation has its own rounding.
    fn float(&mut self) -> f32 {
        let scale = 2.0_f32.powi(self.below(20) as i32 - 10);
        (self.below(2001) as f32 - 1000.0) * scale
    }
}

fn float_inputs(schedule: &Schedule, random: &mut Random) -> Vec<Vec<u8>> {
    let input = |program: &rackloom_collectives::Program| {
        (0..program.input).flat_map(|_| random.float().to_le_bytes()).collect()
    };
    schedule.programs.iter().map(input).collect()
}

fn integers(bytes: &[u8]) -> Vec<i64> {
    bytes.chunks_exact(8).map(|bytes| i64::from_le_bytes(bytes.try_into().unwrap())).collect()
}

/// The collective by its definition, on integers, where the order of reduction means nothing.
fn expected(collective: Collective, inputs: &[Vec<i64>], elements: usize, rank: usize) -> Vec<i64> {
    let ranks = inputs.len();
    let sum = |position| inputs.iter().map(|input: &Vec<i64>| input[position]).sum();
    let sums: Vec<i64> = if collective.reduces() { (0..elements).map(sum).collect() } else { Vec::new() };
    let mine = part(elements, ranks, rank);
    let prefix = |end: usize| -> Vec<i64> {
        (0..elements).map(|position| inputs[..end].iter().map(|input| input[position]).sum()).collect()
    };
    match collective {
        Collective::AllReduce => sums,
        Collective::Reduce { root } if root == rank => sums,
        Collective::ReduceScatter => sums[mine].to_vec(),
        Collective::AllGather => inputs.concat(),
        Collective::Gather { root } if root == rank => inputs.concat(),
        Collective::Broadcast { root } => inputs[root].clone(),
        Collective::Scatter { root } => inputs[root][mine].to_vec(),
        Collective::AllToAll => inputs.iter().flat_map(|input| input[mine.clone()].to_vec()).collect(),
        Collective::Scan => prefix(rank + 1),
        Collective::ExclusiveScan if rank > 0 => prefix(rank),
        Collective::Reduce { .. }
        | Collective::Gather { .. }
        | Collective::Barrier
        | Collective::ExclusiveScan => Vec::new(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn integers_match_the_definition(
        ranks in 1_usize..=17, elements in 0_usize..=60, root in any::<prop::sample::Index>(), seed in any::<u64>(),
    ) {
        let mut random = Random(seed);
        let servers = servers(&mut random, ranks);
        for collective in Collective::all(root.index(ranks)) {
            for algorithm in suitable(collective, NonZeroUsize::new(4).unwrap()) {
                let schedule = schedule(collective, algorithm, &servers, elements);
                let inputs: Vec<Vec<i64>> = schedule.programs.iter()
                    .map(|program| (0..program.input).map(|_| random.next() as i64 - (1 << 30)).collect()).collect();
                let bytes: Vec<Vec<u8>> = inputs.iter()
                    .map(|input| input.iter().flat_map(|value| value.to_le_bytes()).collect()).collect();
                let outputs = run(&schedule, ReduceOperation::Sum, ElementType::I64, &bytes).unwrap();
                for (rank, output) in outputs.iter().enumerate() {
                    let expected = expected(collective, &inputs, elements, rank);
                    prop_assert_eq!(integers(output), expected, "{} by {}, rank {}", collective, algorithm, rank);
                }
            }
        }
    }

    #[test]
    fn timing_changes_no_bit_of_a_floating_point_sum(
        ranks in 2_usize..=9, elements in 1_usize..=40, seed in any::<u64>(),
    ) {
        let mut random = Random(seed);
        let servers = servers(&mut random, ranks);
        for algorithm in suitable(Collective::AllReduce, NonZeroUsize::MIN) {
            let schedule = schedule(Collective::AllReduce, algorithm, &servers, elements);
            let inputs = float_inputs(&schedule, &mut random);
            let first = run(&schedule, ReduceOperation::Sum, ElementType::F32, &inputs).unwrap();
            prop_assert!(first.windows(2).all(|pair| pair[0] == pair[1]), "{}: ranks differ", algorithm);
            let mut choose = |count| random.below(count);
            let other = run_with(&schedule, ReduceOperation::Sum, ElementType::F32, &inputs, &mut choose).unwrap();
            prop_assert_eq!(&first, &other, "{}: timing matters", algorithm);
        }
    }
}

/// The documented orders of reduction, distinguished by rounding: 2^24 absorbs a 1 that is added to it alone.
#[test]
fn orders_of_reduction_are_the_documented_ones() {
    let big = 16_777_216.0_f32;
    let inputs: Vec<Vec<u8>> =
        [1.0, 1.0, big, -big].iter().map(|value: &f32| value.to_le_bytes().repeat(4)).collect();
    let result = |algorithm| {
        let schedule = schedule(Collective::AllReduce, algorithm, &[0, 1, 0, 1], 4);
        let outputs = run(&schedule, ReduceOperation::Sum, ElementType::F32, &inputs).unwrap();
        outputs[0]
            .chunks_exact(4)
            .map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap()))
            .collect::<Vec<_>>()
    };
    // ((1 + 1) + big) - big
    assert_eq!(result(Algorithm::OneShot), [2.0; 4]);
    assert_eq!(result(Algorithm::TwoShot), [2.0; 4]);
    // Chunk c starts at rank c + 1: ((1 + big) - big) + 1, ((big - big) + 1) + 1, ((-big + 1) + 1) + big, 2.
    assert_eq!(result(Algorithm::Ring), [1.0, 2.0, 2.0, 2.0]);
    // (1 + 1) + (big - big)
    assert_eq!(result(Algorithm::HalvingDoubling), [2.0; 4]);
    // Ranks 0 and 2 are in one server, 1 and 3 in the other: (1 + big) + (1 - big), where the first 1 is lost.
    assert_eq!(result(Algorithm::Hierarchical), [1.0; 4]);
}

/// Unequal parts by their definition, on integers.
#[test]
fn unequal_parts_reach_the_right_ranks() {
    let lengths = [3, 0, 5, 1];
    let ranks = lengths.len();
    let starts = |rank: usize| lengths[..rank].iter().sum::<usize>();
    let mut random = Random(9);
    let root = 2;
    for collective in Collective::all(root).into_iter().filter(|one| one.has_parts()) {
        let is_exchange = collective == Collective::AllToAll;
        // Rank r sends a block of r + lengths[to] elements to rank `to`.
        let blocks: Vec<usize> = (0..ranks).flat_map(|from| lengths.map(|length| from + length)).collect();
        let parts = if is_exchange { &blocks[..] } else { &lengths[..] };
        for algorithm in suitable(collective, NonZeroUsize::MIN) {
            let request =
                Request { collective, ranks, elements: parts.iter().sum(), servers: &[0, 1, 1, 0], parts };
            let schedule = build(&request, algorithm).unwrap();
            let inputs: Vec<Vec<i64>> = schedule
                .programs
                .iter()
                .map(|program| (0..program.input).map(|_| random.next() as i64).collect())
                .collect();
            let bytes: Vec<Vec<u8>> = inputs
                .iter()
                .map(|input| input.iter().flat_map(|value| value.to_le_bytes()).collect())
                .collect();
            let outputs = run(&schedule, ReduceOperation::Sum, ElementType::I64, &bytes).unwrap();
            for (rank, output) in outputs.iter().enumerate() {
                let mine = starts(rank)..starts(rank + 1);
                let block = |from: usize| {
                    let start: usize = blocks[from * ranks..from * ranks + rank].iter().sum();
                    inputs[from][start..start + blocks[from * ranks + rank]].to_vec()
                };
                let expected: Vec<i64> = match collective {
                    Collective::ReduceScatter => {
                        mine.map(|position| inputs.iter().map(|input| input[position]).sum()).collect()
                    }
                    Collective::Scatter { .. } => inputs[root][mine].to_vec(),
                    Collective::AllToAll => (0..ranks).flat_map(block).collect(),
                    Collective::Gather { .. } if rank != root => Vec::new(),
                    _ => inputs.concat(),
                };
                assert_eq!(integers(output), expected, "{collective} by {algorithm}, rank {rank}");
            }
        }
    }
}

/// A scan is the left fold in the order of ranks, by both algorithms.
#[test]
fn scans_reduce_in_the_order_of_ranks() {
    let mut random = Random(3);
    for collective in [Collective::Scan, Collective::ExclusiveScan] {
        for algorithm in [Algorithm::Direct, Algorithm::Ring] {
            let schedule = schedule(collective, algorithm, &[0; 7], 30);
            let inputs = float_inputs(&schedule, &mut random);
            let outputs = run(&schedule, ReduceOperation::Sum, ElementType::F32, &inputs).unwrap();
            let value = |bytes: &[u8], element: usize| {
                f32::from_le_bytes(bytes[4 * element..4 * element + 4].try_into().unwrap())
            };
            for (rank, output) in outputs.iter().enumerate() {
                let end = if collective == Collective::Scan { rank + 1 } else { rank };
                for element in 0..output.len() / 4 {
                    let values = inputs[..end].iter().map(|input| value(input, element));
                    let expected = values.reduce(|sum, value| sum + value).unwrap();
                    assert_eq!(value(output, element), expected, "{collective} by {algorithm}, rank {rank}");
                }
            }
        }
    }
}

#[test]
fn inputs_that_do_not_fit_are_refused() {
    let schedule = schedule(Collective::AllReduce, Algorithm::Ring, &[0; 3], 4);
    let run = |inputs: &[Vec<u8>]| run(&schedule, ReduceOperation::Sum, ElementType::U8, inputs).unwrap_err();
    assert_eq!(run(&[vec![0; 4], vec![0; 4]]), RunError::InputCount { found: 2, expected: 3 });
    let short = RunError::InputLength { rank: 1, found: 3, expected: 4 };
    assert_eq!(run(&[vec![0; 4], vec![0; 3], vec![0; 4]]), short);
}
