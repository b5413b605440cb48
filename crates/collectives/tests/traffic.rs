//! Bytes of schedules against the closed forms of the literature.

use std::num::NonZeroUsize;

use rackloom_collectives::traffic::{Load, Traffic, traffic};
use rackloom_collectives::{Algorithm, Collective, Request, build};

const ELEMENT_BYTES: usize = 4;

fn count(collective: Collective, algorithm: Algorithm, ranks: usize, elements: usize) -> Traffic {
    let request = Request { collective, ranks, elements, servers: &[], parts: &[] };
    traffic(&build(&request, algorithm).unwrap(), ELEMENT_BYTES)
}

/// Sizes that all parts divide evenly: `S` in bytes, a multiple of 2 N.
fn even(ranks: usize) -> (usize, u64) {
    let elements = 2 * ranks * 3;
    (elements, (elements * ELEMENT_BYTES) as u64)
}

#[test]
fn a_ring_all_reduce_sends_2_n_minus_1_over_n_of_the_array_in_one_direction() {
    for ranks in 3..=17 {
        let (elements, bytes) = even(ranks);
        let traffic = count(Collective::AllReduce, Algorithm::Ring, ranks, elements);
        let n = ranks as u64;
        for rank in 0..ranks {
            let ahead = traffic.between(rank, (rank + 1) % ranks);
            assert_eq!(ahead, Load { bytes: 2 * (n - 1) * bytes / n, messages: 2 * (n - 1) });
            assert_eq!(traffic.sent(rank), ahead, "all traffic is in one direction");
            assert_eq!(traffic.received(rank), ahead);
        }
    }
}

#[test]
fn two_rings_send_half_of_it_in_each_direction() {
    for ranks in 3..=17 {
        let (elements, bytes) = even(ranks);
        let traffic = count(Collective::AllReduce, Algorithm::BidirectionalRing, ranks, elements);
        let n = ranks as u64;
        for rank in 0..ranks {
            let (ahead, back) = ((rank + 1) % ranks, (rank + ranks - 1) % ranks);
            assert_eq!(traffic.between(rank, ahead).bytes, (n - 1) * bytes / n);
            assert_eq!(traffic.between(rank, back).bytes, (n - 1) * bytes / n);
            assert_eq!(traffic.sent(rank).bytes, 2 * (n - 1) * bytes / n);
        }
    }
}

/// Each element travels around the ring twice less one hop, for any partition.
#[test]
fn uneven_parts_change_no_total() {
    for ranks in 1..=17 {
        for elements in 0..=40 {
            let bytes = (elements * ELEMENT_BYTES) as u64;
            for algorithm in [Algorithm::Ring, Algorithm::BidirectionalRing, Algorithm::TwoShot] {
                let all = count(Collective::AllReduce, algorithm, ranks, elements).all();
                assert_eq!(all.bytes, 2 * (ranks as u64 - 1) * bytes, "{algorithm}");
            }
        }
    }
}

#[test]
fn reduce_scatter_and_all_gather_are_half_an_all_reduce() {
    for ranks in 2..=17 {
        let (elements, bytes) = even(ranks);
        let n = ranks as u64;
        for collective in [Collective::ReduceScatter, Collective::AllGather] {
            for algorithm in [Algorithm::Ring, Algorithm::BidirectionalRing, Algorithm::Direct] {
                let traffic = count(collective, algorithm, ranks, elements);
                for rank in 0..ranks {
                    assert_eq!(traffic.sent(rank).bytes, (n - 1) * bytes / n, "{collective} by {algorithm}");
                    assert_eq!(traffic.received(rank).bytes, (n - 1) * bytes / n);
                }
            }
        }
    }
}

#[test]
fn direct_exchanges_load_every_pair_alike() {
    for ranks in 2..=17 {
        let (elements, bytes) = even(ranks);
        let n = ranks as u64;
        let each_pair = |collective, algorithm, load| {
            let traffic = count(collective, algorithm, ranks, elements);
            assert_eq!(traffic.pairs().count(), ranks * (ranks - 1));
            assert!(traffic.pairs().all(|(_, found)| found == load), "{collective} by {algorithm}");
        };
        each_pair(Collective::AllReduce, Algorithm::OneShot, Load { bytes, messages: 1 });
        each_pair(Collective::AllReduce, Algorithm::TwoShot, Load { bytes: 2 * bytes / n, messages: 2 });
        each_pair(Collective::AllToAll, Algorithm::Direct, Load { bytes: bytes / n, messages: 1 });
        each_pair(Collective::AllToAll, Algorithm::Pairwise, Load { bytes: bytes / n, messages: 1 });
    }
}

#[test]
fn halving_doubling_sends_as_much_as_a_ring_in_log_n_messages() {
    for exponent in 1..=5_u32 {
        let ranks = 1 << exponent;
        let (elements, bytes) = even(ranks);
        let traffic = count(Collective::AllReduce, Algorithm::HalvingDoubling, ranks, elements);
        let n = ranks as u64;
        for rank in 0..ranks {
            let load = Load { bytes: 2 * (n - 1) * bytes / n, messages: 2 * u64::from(exponent) };
            assert_eq!(traffic.sent(rank), load);
        }
    }
}

#[test]
fn folding_costs_two_messages_of_full_size_per_rank_that_is_too_many() {
    let (elements, bytes) = (60, 240);
    let core = count(Collective::AllReduce, Algorithm::HalvingDoubling, 4, elements).all();
    for extra in 1..4 {
        let all = count(Collective::AllReduce, Algorithm::HalvingDoubling, 4 + extra, elements).all();
        assert_eq!(all.bytes, core.bytes + 2 * extra as u64 * bytes);
    }
}

#[test]
fn rooted_collectives_move_each_element_once_per_rank_that_needs_it() {
    let segments = NonZeroUsize::new(5).unwrap();
    for ranks in 2..=17 {
        let (elements, bytes) = even(ranks);
        let n = ranks as u64;
        let root = ranks - 1;
        let all = |collective, algorithm| count(collective, algorithm, ranks, elements).all();
        let broadcast = Collective::Broadcast { root };
        let pipeline = all(broadcast, Algorithm::RingPipeline { segments });
        assert_eq!(pipeline, Load { bytes: (n - 1) * bytes, messages: 5 * (n - 1) });
        let once = Load { bytes: (n - 1) * bytes, messages: n - 1 };
        assert_eq!(all(broadcast, Algorithm::Binomial), once);
        for algorithm in [Algorithm::Binomial, Algorithm::Direct] {
            assert_eq!(all(Collective::Reduce { root }, algorithm), once, "{algorithm}");
        }
        let parts = Load { bytes: (n - 1) * bytes / n, messages: n - 1 };
        assert_eq!(all(Collective::Gather { root }, Algorithm::Direct), parts);
        assert_eq!(all(Collective::Scatter { root }, Algorithm::Direct), parts);
    }
}

#[test]
fn a_direct_scan_sends_to_all_higher_ranks_and_a_chain_to_the_next_one() {
    for ranks in 2..=17 {
        for collective in [Collective::Scan, Collective::ExclusiveScan] {
            let direct = count(collective, Algorithm::Direct, ranks, 10);
            let chain = count(collective, Algorithm::Ring, ranks, 10);
            for rank in 0..ranks {
                let higher = (ranks - 1 - rank) as u64;
                assert_eq!(direct.sent(rank), Load { bytes: 40 * higher, messages: higher }, "{collective}");
                let next = higher.min(1);
                assert_eq!(chain.sent(rank), Load { bytes: 40 * next, messages: next }, "{collective}");
            }
        }
    }
}

#[test]
fn a_barrier_moves_no_byte() {
    let all = count(Collective::Barrier, Algorithm::Dissemination, 8, 0).all();
    assert_eq!(all, Load { bytes: 0, messages: 24 });
}

#[test]
fn scratch_is_no_larger_than_what_arrives_unreduced() {
    let scratch = |algorithm, ranks: usize| {
        let request = Request {
            collective: Collective::AllReduce,
            ranks,
            elements: 24 * ranks,
            servers: &[],
            parts: &[],
        };
        let schedule = build(&request, algorithm).unwrap();
        schedule.programs.iter().map(|program| program.scratch).max().unwrap()
    };
    assert_eq!(scratch(Algorithm::Ring, 8), 6 * 24, "the last partial sum lands in the output");
    assert_eq!(
        scratch(Algorithm::OneShot, 8),
        7 * 8 * 24,
        "rank 0 has no contribution that lands in its output"
    );
    assert_eq!(scratch(Algorithm::TwoShot, 8), 7 * 24);
    assert_eq!(scratch(Algorithm::HalvingDoubling, 8), (4 + 2) * 24);
}

/// M servers of W ranks: W lanes share what crosses between servers.
#[test]
fn a_hierarchy_sends_each_element_between_two_servers_once() {
    for (servers, lanes) in [(2, 2), (3, 2), (4, 4), (5, 3)] {
        let ranks = servers * lanes;
        let (elements, bytes) = even(ranks);
        let server_of: Vec<usize> = (0..ranks).map(|rank| rank / lanes).collect();
        let across = |collective| {
            let request = Request { collective, ranks, elements, servers: &server_of, parts: &[] };
            let traffic = traffic(&build(&request, Algorithm::Hierarchical).unwrap(), ELEMENT_BYTES);
            let mut sent = vec![0; ranks];
            for ((from, to), load) in traffic.pairs() {
                sent[from] += if server_of[from] == server_of[to] { 0 } else { load.bytes };
            }
            sent
        };
        let (m, w) = (servers as u64, lanes as u64);
        assert_eq!(across(Collective::AllReduce), vec![2 * (m - 1) * bytes / (m * w); ranks]);
        for collective in [Collective::ReduceScatter, Collective::AllGather] {
            assert_eq!(across(collective), vec![(m - 1) * bytes / (m * w); ranks], "{collective}");
        }
        let broadcast: u64 = across(Collective::Broadcast { root: 1 }).into_iter().sum();
        assert_eq!(broadcast, (m - 1) * bytes);
    }
}
