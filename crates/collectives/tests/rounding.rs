//! Roundings of a 16-bit sum: one if a rank holds all operands, one per step if partial sums travel.
//!
//! The reference shares nothing with the crate: values are the definition of IEEE 754 in f64, and a sum is rounded to the
//! format by trying every one of its values.

use rackloom_collectives::reference::run;
use rackloom_collectives::{Algorithm, Collective, ElementType, ReduceOperation, Request, build};

/// Exponent and mantissa bits.
#[derive(Clone, Copy)]
struct Format {
    element: ElementType,
    exponent: u32,
    mantissa: u32,
}

const HALF: Format = Format { element: ElementType::F16, exponent: 5, mantissa: 10 };
const BRAIN: Format = Format { element: ElementType::Bf16, exponent: 8, mantissa: 7 };

impl Format {
    /// The finite value of 16 bits.
    fn value(self, bits: u16) -> f64 {
        let bias = (1 << (self.exponent - 1)) - 1;
        let exponent = i32::from(bits >> self.mantissa) & ((1 << self.exponent) - 1);
        let mantissa = f64::from(bits & ((1 << self.mantissa) - 1)) / f64::from(1 << self.mantissa);
        let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
        let magnitude = match exponent {
            0 => mantissa * 2.0_f64.powi(1 - bias),
            exponent => (1.0 + mantissa) * 2.0_f64.powi(exponent - bias),
        };
        sign * magnitude
    }

    /// The nearest of all finite values, ties to even.
    fn round(self, value: f64) -> u16 {
        let infinity = ((1_u16 << self.exponent) - 1) << self.mantissa;
        let distance = |bits: u16| (self.value(bits) - value.abs()).abs();
        let nearest = (0..infinity).min_by(|left, right| {
            distance(*left).total_cmp(&distance(*right)).then((left % 2).cmp(&(right % 2)))
        });
        nearest.expect("there are values") | if value < 0.0 { 0x8000 } else { 0 }
    }
}

fn all_reduce(format: Format, algorithm: Algorithm, inputs: &[Vec<u16>]) -> Vec<u16> {
    let outputs = outputs(Collective::AllReduce, format, algorithm, inputs);
    assert!(outputs.iter().all(|output| *output == outputs[0]), "{algorithm}: ranks differ");
    outputs[0].clone()
}

fn outputs(
    collective: Collective,
    format: Format,
    algorithm: Algorithm,
    inputs: &[Vec<u16>],
) -> Vec<Vec<u16>> {
    let (ranks, elements) = (inputs.len(), inputs[0].len());
    // Two servers: the lower half of the ranks, and the others.
    let servers: Vec<usize> = (0..ranks).map(|rank| 2 * rank / ranks).collect();
    let request = Request { collective, ranks, elements, servers: &servers, parts: &[] };
    let schedule = build(&request, algorithm).unwrap();
    let bytes: Vec<Vec<u8>> =
        inputs.iter().map(|input| input.iter().flat_map(|bits| bits.to_le_bytes()).collect()).collect();
    let outputs = run(&schedule, ReduceOperation::Sum, format.element, &bytes).unwrap();
    let values = |output: &Vec<u8>| {
        output.chunks_exact(2).map(|bytes| u16::from_le_bytes(bytes.try_into().unwrap())).collect()
    };
    outputs.iter().map(values).collect()
}

/// Numbers of both signs whose mantissas are full, from one sixteenth to four.
fn random(format: Format, ranks: usize, elements: usize) -> Vec<Vec<u16>> {
    let mut state = 7_u64;
    let mut bits = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let drawn = state >> 32;
        let exponent = (1 << (format.exponent - 1)) - 5 + (drawn >> 16) % 6;
        let mantissa = drawn & ((1 << format.mantissa) - 1);
        ((drawn >> 31 << 15) | (exponent << format.mantissa) | mantissa) as u16
    };
    (0..ranks).map(|_| (0..elements).map(|_| bits()).collect()).collect()
}

/// In f32, rank by rank, and then to the format.
fn rounded_once(format: Format, inputs: &[Vec<u16>], element: usize) -> u16 {
    let values = inputs.iter().map(|input| format.value(input[element]) as f32);
    format.round(f64::from(values.reduce(|sum, value| sum + value).unwrap()))
}

/// To the format after each addition, from rank `first` on around the ring.
fn rounded_at_each_step(format: Format, inputs: &[Vec<u16>], element: usize, first: usize) -> u16 {
    let bits = (0..inputs.len()).map(|step| inputs[(first + step) % inputs.len()][element]);
    bits.reduce(|sum, bits| format.round(format.value(sum) + format.value(bits))).unwrap()
}

/// 2048 and seven ones: 2048 is where f16 begins to count in twos, so a 1 alone is lost.
#[test]
fn seven_ones_beside_2048_are_kept_or_lost() {
    let inputs: Vec<Vec<u16>> =
        [2048.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0].iter().map(|value| vec![HALF.round(*value); 8]).collect();
    let sums = |algorithm| -> Vec<f64> {
        all_reduce(HALF, algorithm, &inputs).into_iter().map(|bits| HALF.value(bits)).collect()
    };
    // 2055, rounded to even.
    assert_eq!(sums(Algorithm::OneShot), [2056.0; 8]);
    assert_eq!(sums(Algorithm::TwoShot), [2056.0; 8]);
    // Chunk c begins at rank c + 1: 7 - c ones are added up before 2048 comes, and c after it. From there on only every
    // other whole number exists, and a tie is rounded to the multiple of four: 2049 to 2048, 2051 and 2053 to 2052, 2055 to 2056.
    let by_chunk = [2056.0, 2056.0, 2052.0, 2052.0, 2052.0, 2052.0, 2048.0, 2048.0];
    assert_eq!(sums(Algorithm::Ring), by_chunk);
    // The other half of the ring's chunks travels in the other direction.
    assert!(sums(Algorithm::BidirectionalRing).contains(&2048.0));
}

#[test]
fn direct_schedules_round_once_and_rings_at_each_step() {
    for format in [HALF, BRAIN] {
        for ranks in [2, 3, 5, 8] {
            let inputs = random(format, ranks, 3 * ranks);
            let mut differ = 0;
            for algorithm in [Algorithm::OneShot, Algorithm::TwoShot] {
                for (element, found) in all_reduce(format, algorithm, &inputs).into_iter().enumerate() {
                    assert_eq!(found, rounded_once(format, &inputs, element), "{algorithm}, {element}");
                }
            }
            for (element, found) in all_reduce(format, Algorithm::Ring, &inputs).into_iter().enumerate() {
                let expected = rounded_at_each_step(format, &inputs, element, element / 3 + 1);
                assert_eq!(found, expected, "ring of {ranks}, {element}");
                differ += usize::from(found != rounded_once(format, &inputs, element));
            }
            assert!(ranks < 5 || differ > 0, "the inputs do not distinguish both orders");
        }
    }
}

/// The order is that of the ranks, for any root.
#[test]
fn a_direct_reduce_rounds_once_at_its_root_and_a_tree_at_each_step() {
    for format in [HALF, BRAIN] {
        for root in [0, 2, 4] {
            let inputs = random(format, 5, 40);
            let reduced = |algorithm| {
                outputs(Collective::Reduce { root }, format, algorithm, &inputs).swap_remove(root)
            };
            let wanted: Vec<_> = (0..40).map(|element| rounded_once(format, &inputs, element)).collect();
            assert_eq!(reduced(Algorithm::Direct), wanted, "root {root}");
            assert_ne!(reduced(Algorithm::Binomial), wanted, "the inputs do not distinguish both orders");
        }
    }
}

/// Halving-doubling sends halves of sums: (a + b) + (c + d), each sum in 16 bits.
#[test]
fn halving_and_doubling_rounds_at_each_step() {
    for format in [HALF, BRAIN] {
        let inputs = random(format, 4, 40);
        let add = |left: u16, right: u16| format.round(format.value(left) + format.value(right));
        for (element, found) in
            all_reduce(format, Algorithm::HalvingDoubling, &inputs).into_iter().enumerate()
        {
            let [a, b, c, d] = [0, 1, 2, 3].map(|rank: usize| inputs[rank][element]);
            assert_eq!(found, add(add(a, b), add(c, d)), "{element}");
        }
    }
}

/// A hierarchy folds each server in one go, and then the servers: two roundings.
#[test]
fn a_hierarchy_rounds_once_per_server_and_once_over_them() {
    for format in [HALF, BRAIN] {
        let inputs = random(format, 8, 40);
        let (lower, upper) = inputs.split_at(4);
        for (element, found) in all_reduce(format, Algorithm::Hierarchical, &inputs).into_iter().enumerate() {
            let [left, right] = [lower, upper].map(|server| rounded_once(format, server, element));
            assert_eq!(found, format.round(format.value(left) + format.value(right)), "{element}");
        }
    }
}

/// A direct scan rounds once at each rank, a chain at each step.
#[test]
fn a_direct_scan_rounds_once_and_a_chain_at_each_rank() {
    for format in [HALF, BRAIN] {
        let inputs = random(format, 6, 12);
        for (collective, ends) in [(Collective::Scan, 1..7), (Collective::ExclusiveScan, 0..6)] {
            let direct = outputs(collective, format, Algorithm::Direct, &inputs);
            let chain = outputs(collective, format, Algorithm::Ring, &inputs);
            for (rank, end) in ends.enumerate().filter(|(_, end)| *end > 0) {
                for element in 0..12 {
                    assert_eq!(direct[rank][element], rounded_once(format, &inputs[..end], element));
                    let stepwise = rounded_at_each_step(format, &inputs[..end], element, 0);
                    assert_eq!(chain[rank][element], stepwise, "{collective}, rank {rank}, {element}");
                }
            }
            assert_ne!(direct[5], chain[5], "the inputs do not distinguish both");
        }
    }
}
