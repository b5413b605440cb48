//! Totals of generated workloads against closed forms that are written here, and the bubble of a pipeline.

use std::collections::HashMap;

use rackloom_collectives::CollectiveKind::{AllReduce, AllToAll};

use crate::check::check;
use crate::generate::{
    Degrees, Model, Refused, Schedule, data_parallel, decode, expert_parallel, pipeline_parallel, prefill,
    tensor_parallel, training,
};
use crate::machine::{Machine, Rates};
use crate::model::{RankOperations, Work, Workload};

/// 32 tokens, 768 parameters per layer, 256 of the vocabulary: 3328 together.
const MODEL: Model = Model { layers: 4, hidden: 8, sequence: 16, batch: 2, vocabulary: 32 };
/// One floating-point operation per nanosecond.
const COMPUTER: Machine = Machine {
    rates: Some(Rates { flops_per_s: 1e9, memory_bytes_per_s: 1e30, launch_ns: 0 }),
    element_bytes: 2,
};
/// Bytes of the hidden state of 32 tokens.
const STATE: u64 = 32 * 8 * 2;

fn compute_ns(rank: &RankOperations) -> u64 {
    let duration = |work: Work| if let Work::Compute { duration_ns } = work { duration_ns } else { 0 };
    rank.operations().iter().map(|operation| duration(operation.work)).sum()
}

/// Returns the bytes of all collectives of one kind and phase.
fn collective_bytes(
    workload: &Workload,
    rank: usize,
    of: rackloom_collectives::CollectiveKind,
    phase: &str,
) -> Vec<u64> {
    let operations = workload.ranks[rank].operations().iter();
    let operations = operations.filter(|one| workload.phases[usize::from(one.phase)] == phase);
    let bytes = |work: Work| match work {
        Work::Collective { kind, bytes, .. } if kind == of => Some(bytes),
        _ => None,
    };
    operations.filter_map(|operation| bytes(operation.work)).collect()
}

fn sent(rank: &RankOperations) -> Vec<u64> {
    let bytes = |work: Work| if let Work::Send { bytes, .. } = work { Some(bytes) } else { None };
    rank.operations().iter().filter_map(|operation| bytes(operation.work)).collect()
}

fn checked(workload: Result<Workload, Refused>) -> Workload {
    let workload = workload.unwrap();
    assert_eq!(check(&workload), Ok(()), "{}", workload.name);
    workload
}

#[test]
fn a_data_parallel_step_computes_six_operations_per_parameter_and_token() {
    let workload = checked(data_parallel(&MODEL, &COMPUTER, 4));
    assert_eq!((MODEL.parameters(), MODEL.tokens()), (3_328, 32));
    for (rank, operations) in workload.ranks.iter().enumerate() {
        assert_eq!(compute_ns(operations), 6 * 3_328 * 32);
        // 2 parts of 4 layers and the vocabulary in both directions; a reduction per layer and one of the vocabulary.
        assert_eq!(operations.operations().len(), 9 + 9 + 5);
        let gradients = collective_bytes(&workload, rank, AllReduce, "gradients");
        assert_eq!(gradients, [512, 1_536, 1_536, 1_536, 1_536]);
    }
    assert_eq!(workload.groups[0].ranks, [0, 1, 2, 3]);
}

#[test]
fn gradients_are_reduced_beside_the_computation_of_earlier_layers() {
    let workload = checked(data_parallel(&MODEL, &COMPUTER, 2));
    let rank = &workload.ranks[0];
    let position =
        |phase: u16| rank.operations().iter().position(|operation| operation.phase == phase).unwrap();
    let gradients: Vec<u32> =
        (0..).zip(rank.operations()).filter(|(_, one)| one.phase == 2).map(|(index, _)| index).collect();
    let last_backward = rank.operations().iter().rposition(|operation| operation.phase == 1).unwrap();
    assert!(position(1) < position(2) && position(2) < last_backward);
    for operation in rank.operations() {
        let waits = rank.dependencies(operation).iter().any(|dependency| gradients.contains(dependency));
        assert!(!waits, "{operation:?} waits for a reduction of gradients");
    }
    // The reduction of the last layer waits for both of its parts and nothing later.
    let second = &rank.operations()[gradients[1] as usize];
    assert_eq!(rank.dependencies(second), [gradients[1] - 1]);
}

#[test]
fn tensor_parallel_ranks_divide_computation_and_reduce_the_state_four_times_per_layer() {
    let workload = checked(tensor_parallel(&MODEL, &COMPUTER, 2));
    for (rank, operations) in workload.ranks.iter().enumerate() {
        assert_eq!(compute_ns(operations), 6 * 3_328 * 32 / 2);
        assert_eq!(operations.operations().len(), 9 + 9 + 16);
        for phase in ["forward", "backward"] {
            assert_eq!(collective_bytes(&workload, rank, AllReduce, phase), [STATE; 8]);
        }
        assert_eq!(collective_bytes(&workload, rank, AllReduce, "gradients"), [0_u64; 0]);
    }
}

#[test]
fn expert_parallel_ranks_exchange_tokens_four_times_per_layer() {
    let workload = checked(expert_parallel(&MODEL, &COMPUTER, 4));
    for (rank, operations) in workload.ranks.iter().enumerate() {
        assert_eq!(compute_ns(operations), 6 * 3_328 * 32);
        assert_eq!(operations.operations().len(), 9 + 9 + 16 + 5);
        for phase in ["forward", "backward"] {
            assert_eq!(collective_bytes(&workload, rank, AllToAll, phase), [STATE; 8]);
        }
        // Attention and vocabulary are replicated; experts are not.
        assert_eq!(collective_bytes(&workload, rank, AllReduce, "gradients"), [512; 5]);
    }
}

/// Returns the end of the last operation, if messages take no time.
fn end_ns(workload: &Workload) -> u64 {
    let mut ends: Vec<Vec<u64>> =
        workload.ranks.iter().map(|rank| vec![0; rank.operations().len()]).collect();
    loop {
        let before = ends.clone();
        let mut sends = HashMap::<_, Vec<u64>>::new();
        for (from, rank) in workload.ranks.iter().enumerate() {
            for (index, operation) in rank.operations().iter().enumerate() {
                if let Work::Send { to, tag, .. } = operation.work {
                    sends.entry((from as u16, to, tag)).or_default().push(before[from][index]);
                }
            }
        }
        for (this, rank) in workload.ranks.iter().enumerate() {
            let mut received = HashMap::<_, usize>::new();
            let mut busy = 0;
            for (index, operation) in rank.operations().iter().enumerate() {
                let dependencies = rank.dependencies(operation).iter();
                let ready = dependencies.map(|one| ends[this][*one as usize]).max().unwrap_or(0);
                ends[this][index] = match operation.work {
                    Work::Compute { duration_ns } => {
                        busy = ready.max(busy) + duration_ns;
                        busy
                    }
                    Work::Receive { from, tag, .. } => {
                        let number = received.entry((from, tag)).or_default();
                        *number += 1;
                        ready.max(sends[&(from, this as u16, tag)][*number - 1])
                    }
                    Work::Send { .. } | Work::Collective { .. } | Work::Kernel { .. } => ready,
                };
            }
        }
        if ends == before {
            return ends.into_iter().flatten().max().unwrap();
        }
    }
}

#[test]
fn a_pipeline_is_idle_for_its_bubble() {
    let model = Model { vocabulary: 0, ..MODEL };
    let (stages, micro_batches) = (4_u32, 6_u32);
    let pass = 6 * 768 * 32;
    for schedule in Schedule::ALL {
        let degrees = Degrees { pipeline: stages, micro_batches, schedule, ..Degrees::default() };
        let workload = checked(training(&model, &COMPUTER, &degrees));
        for rank in &workload.ranks {
            assert_eq!(compute_ns(rank), u64::from(micro_batches) * pass);
        }
        // A share of (p - 1) / (m + p - 1) is idle: 3 of 9 passes.
        assert_eq!(end_ns(&workload), 9 * pass, "{}", schedule.name());
    }
}

#[test]
fn stages_send_states_forward_and_gradients_backward() {
    let workload = checked(pipeline_parallel(&MODEL, &COMPUTER, 3, 5));
    let messages: Vec<_> = workload.ranks.iter().map(sent).collect();
    assert_eq!(messages, [vec![STATE; 5], vec![STATE; 10], vec![STATE; 5]]);
    // Stages of 2, 1 and 1 layers; the last one has the vocabulary.
    let of_stages: Vec<_> = workload.ranks.iter().map(compute_ns).collect();
    assert_eq!(of_stages, [5 * 6 * 1_536 * 32, 5 * 6 * 768 * 32, 5 * 6 * (768 + 256) * 32]);
}

#[test]
fn all_dimensions_together_divide_the_step() {
    let degrees =
        Degrees { data: 2, tensor: 2, pipeline: 2, expert: 2, micro_batches: 4, ..Degrees::default() };
    let workload = checked(training(&MODEL, &COMPUTER, &degrees));
    assert_eq!(workload.ranks.len(), 16);
    for (rank, operations) in workload.ranks.iter().enumerate() {
        let is_last = rank >= 8;
        let parameters = 2 * 768 + if is_last { 256 } else { 0 };
        assert_eq!(compute_ns(operations), 4 * 6 * parameters * 32 / 2, "rank {rank}");
        assert_eq!(sent(operations), [STATE; 4]);
        let mut gradients = collective_bytes(&workload, rank, AllReduce, "gradients");
        if is_last {
            assert_eq!(gradients.remove(0), 256);
        }
        assert_eq!(gradients, [256, 512, 256, 512], "rank {rank}");
        assert_eq!(collective_bytes(&workload, rank, AllToAll, "backward").len(), 4 * 2 * 2);
    }
}

#[test]
fn every_combination_can_be_performed() {
    for bits in 0..16_u32 {
        let degree = |bit: u32| if bits & 1 << bit == 0 { 1 } else { 2 };
        for schedule in Schedule::ALL {
            let degrees = Degrees {
                data: degree(0),
                tensor: degree(1),
                pipeline: degree(2),
                expert: degree(3),
                micro_batches: 3,
                schedule,
            };
            checked(training(&MODEL, &Machine::default(), &degrees));
        }
    }
}

#[test]
fn prefill_computes_all_tokens_and_the_vocabulary_of_the_last() {
    let workload = checked(prefill(&MODEL, &COMPUTER, 2));
    for rank in 0..2 {
        assert_eq!(compute_ns(&workload.ranks[rank]), (2 * 4 * 768 * 32 + 2 * 256 * 2) / 2);
        assert_eq!(collective_bytes(&workload, rank, AllReduce, "prefill"), [STATE; 8]);
    }
    assert_eq!(checked(prefill(&MODEL, &COMPUTER, 1)).groups, []);
}

#[test]
fn decode_reads_parameters_and_the_growing_cache() {
    // One byte per nanosecond.
    let rates = Rates { flops_per_s: 1e30, memory_bytes_per_s: 1e9, launch_ns: 0 };
    let memory = Machine { rates: Some(rates), element_bytes: 2 };
    let workload = checked(decode(&MODEL, &memory, 2, 3));
    // Of a token: per layer 320 bytes of attention, 576 of the perceptron, and 32 of the cache for each of 16, 17 and 18 earlier
    // tokens; 320 of the vocabulary.
    let token = |context: u64| 4 * (320 + 576 + 32 * context) + 320;
    for (rank, operations) in workload.ranks.iter().enumerate() {
        assert_eq!(compute_ns(operations), token(16) + token(17) + token(18));
        // The state of two tokens, twice per layer and token.
        assert_eq!(collective_bytes(&workload, rank, AllReduce, "decode"), [2 * 8 * 2; 24]);
    }
}

#[test]
fn numbers_out_of_range_are_refused() {
    let refused = |model: Model, degrees: Degrees| training(&model, &COMPUTER, &degrees).unwrap_err().reason;
    let one = Degrees::default();
    assert_eq!(refused(Model { layers: 0, ..MODEL }, one), "layers is 0");
    assert_eq!(refused(Model { hidden: u32::MAX, ..MODEL }, one), "hidden is 4294967295");
    assert_eq!(refused(MODEL, Degrees { tensor: 0, ..one }), "tensor is 0");
    assert_eq!(refused(MODEL, Degrees { pipeline: 5, ..one }), "5 stages share 4 layers");
    assert_eq!(refused(MODEL, Degrees { tensor: 9, ..one }), "9 ranks share a width of 8");
    let many = Degrees { data: u32::MAX, tensor: 8, ..one };
    assert_eq!(refused(MODEL, many), "the degrees make 34359738360 ranks");
    let long = Degrees { micro_batches: u32::MAX, ..one };
    assert!(refused(MODEL, long).contains("operations each"));
    let stopped = Rates { flops_per_s: 0.0, memory_bytes_per_s: 1.0, launch_ns: 0 };
    let machine = Machine { rates: Some(stopped), ..COMPUTER };
    assert_eq!(data_parallel(&MODEL, &machine, 2).unwrap_err().reason, "flops_per_s is not above 0");
    let largest =
        Model { layers: 1, hidden: 1 << 20, sequence: 1 << 22, batch: 1 << 16, vocabulary: 1 << 24 };
    let beyond = tensor_parallel(&largest, &COMPUTER, 2).unwrap_err().reason;
    assert!(beyond.contains("take more than a hundred years"), "{beyond}");
    let fast = Rates { flops_per_s: 1e18, memory_bytes_per_s: 1e30, launch_ns: 0 };
    let wide = Machine { rates: Some(fast), element_bytes: 16 };
    checked(tensor_parallel(&largest, &wide, 2));
    checked(decode(&largest, &wide, 2, 2));
}

#[test]
fn without_rates_the_same_computations_are_stated_as_work() {
    let rates = Rates { flops_per_s: 3e9, memory_bytes_per_s: 7e8, launch_ns: 11 };
    let of = |rates| Machine { rates, element_bytes: 2 };
    let (timed, stated) = (of(Some(rates)), of(None));
    let degrees = Degrees { data: 2, tensor: 2, pipeline: 2, micro_batches: 3, ..Degrees::default() };
    let pairs = [
        (training(&MODEL, &timed, &degrees), training(&MODEL, &stated, &degrees)),
        (prefill(&MODEL, &timed, 2), prefill(&MODEL, &stated, 2)),
        (decode(&MODEL, &timed, 2, 3), decode(&MODEL, &stated, 2, 3)),
    ];
    for (timed, stated) in pairs {
        let (timed, mut stated) = (checked(timed), checked(stated));
        let mut flops_of_first = 0;
        for (rank, operations) in stated.ranks.iter_mut().enumerate() {
            let replaced = operations.replace_work(|_, work| match work {
                Work::Compute { .. } => Err("a duration"),
                Work::Kernel { flops, bytes } => {
                    flops_of_first += if rank == 0 { flops } else { 0 };
                    let duration_ns = rates.duration_ns(flops as f64, bytes as f64);
                    Ok(Some(Work::Compute { duration_ns }))
                }
                _ => Ok(None),
            });
            assert_eq!(replaced, Ok(()));
        }
        assert_eq!(stated, timed);
        assert!(flops_of_first > 0, "{}", timed.name);
        if timed.phases.len() > 1 {
            // The first of two stages has no vocabulary: 3 micro-batches of 6 operations for each of half of the parameters of 2 layers.
            assert_eq!(flops_of_first, 3 * 6 * 32 * 2 * 768 / 2);
        }
    }
}
