//! Every algorithm, for every number of ranks and elements within reach, keeps its collective's promise.

use std::num::NonZeroUsize;

use proptest::prelude::*;
use rackloom_collectives::algorithm::suitable;
use rackloom_collectives::partition::part;
use rackloom_collectives::verify::{Report, verify};
use rackloom_collectives::{Algorithm, Collective, Parts, Request, Schedule, build};

fn segments(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).unwrap()
}

fn schedule(collective: Collective, algorithm: Algorithm, ranks: usize, elements: usize) -> Schedule {
    build(&Request { collective, ranks, elements, servers: &[], parts: &[] }, algorithm).unwrap()
}

fn proved(schedule: &Schedule) -> Report {
    let (collective, algorithm, ranks) = (schedule.collective, schedule.algorithm, schedule.ranks());
    verify(schedule).unwrap_or_else(|findings| {
        let elements = schedule.elements;
        panic!("{collective} by {algorithm}, {ranks} ranks, {elements} elements: {findings:?}")
    })
}

#[test]
fn each_schedule_of_up_to_17_ranks_is_proved_for_small_sizes_and_around_multiples() {
    for ranks in 1..=17 {
        let around = [ranks - 1, ranks, ranks + 1, 3 * ranks, 3 * ranks + 1];
        for elements in (0..=20).chain(around) {
            for collective in Collective::all(ranks / 2) {
                for algorithm in suitable(collective, segments(3)) {
                    proved(&schedule(collective, algorithm, ranks, elements));
                }
            }
        }
    }
}

/// Returns every division of ranks into servers, in any order of ranks.
fn divisions(ranks: usize) -> Vec<Vec<usize>> {
    let mut all = vec![vec![0]];
    for _ in 1..ranks {
        let longer = |servers: &Vec<usize>| {
            let next = servers.iter().max().unwrap() + 1;
            (0..=next).map(|server| [&servers[..], &[server]].concat()).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(longer).collect();
    }
    all
}

/// Returns every division of ranks into servers of consecutive ranks, and for each a division into servers of equal sizes to
/// which the ranks are dealt in turn.
fn divisions_in_order(ranks: usize) -> Vec<Vec<usize>> {
    let consecutive = |cuts: usize| {
        let is_cut = |rank: usize| cuts >> (rank - 1) & 1;
        (0..ranks).map(|rank| (1..=rank).map(is_cut).sum()).collect::<Vec<usize>>()
    };
    let dealt = |servers: &Vec<usize>| {
        let mut left: Vec<_> =
            (0..ranks).map(|server| servers.iter().filter(|&&one| one == server).count()).collect();
        let mut turns = (0..ranks).cycle();
        let mut next = || {
            let server = turns.find(|&server| left[server] > 0).unwrap();
            left[server] -= 1;
            server
        };
        (0..ranks).map(|_| next()).collect::<Vec<_>>()
    };
    let consecutive: Vec<_> = (0..1 << (ranks - 1)).map(consecutive).collect();
    let dealt: Vec<_> = consecutive.iter().map(dealt).collect();
    [consecutive, dealt].concat()
}

fn on_servers(collective: Collective, elements: usize, servers: &[usize]) -> Schedule {
    let request = Request { collective, ranks: servers.len(), elements, servers, parts: &[] };
    build(&request, Algorithm::Hierarchical).unwrap()
}

#[test]
fn hierarchical_schedules_of_up_to_9_ranks_are_proved_for_every_size_of_servers() {
    for ranks in 2..=9 {
        let divisions = if ranks <= 6 { divisions(ranks) } else { divisions_in_order(ranks) };
        for servers in divisions {
            for collective in Collective::all(ranks / 2) {
                if !Algorithm::Hierarchical.does(collective) {
                    continue;
                }
                for elements in [0, 1, 3, 5 * ranks + 1] {
                    proved(&on_servers(collective, elements, &servers));
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn each_schedule_is_proved_for_any_size_and_root(
        ranks in 1_usize..=17,
        elements in 0_usize..=200,
        root in any::<prop::sample::Index>(),
        pieces in 1_usize..=20,
    ) {
        for collective in Collective::all(root.index(ranks)) {
            for algorithm in suitable(collective, segments(pieces)) {
                proved(&schedule(collective, algorithm, ranks, elements));
            }
        }
    }

    #[test]
    fn hierarchical_schedules_are_proved_for_any_placement_of_ranks(
        servers in prop::collection::vec(0_usize..7, 2..=20),
        elements in 0_usize..=150,
        root in any::<prop::sample::Index>(),
    ) {
        for collective in Collective::all(root.index(servers.len())) {
            if Algorithm::Hierarchical.does(collective) {
                let schedule = on_servers(collective, elements, &servers);
                let report = proved(&schedule);
                let synchronizes = collective.synchronizes(servers.len(), elements);
                prop_assert!(report.synchronizing || !synchronizes, "{collective} of {elements}");
            }
        }
    }

    #[test]
    fn a_two_level_barrier_holds_for_any_placement_of_ranks(servers in prop::collection::vec(0_usize..6, 1..=17)) {
        let request = Request { collective: Collective::Barrier, ranks: servers.len(), elements: 0, servers: &servers, parts: &[] };
        proved(&build(&request, Algorithm::TwoLevel).unwrap());
    }
}

#[test]
fn large_racks_are_proved_too() {
    for (collective, algorithm) in [
        (Collective::AllReduce, Algorithm::Ring),
        (Collective::AllReduce, Algorithm::BidirectionalRing),
        (Collective::AllReduce, Algorithm::HalvingDoubling),
        (Collective::AllToAll, Algorithm::Direct),
    ] {
        proved(&schedule(collective, algorithm, 64, 200));
    }
}

/// Number of times that the step latency is paid, as the literature states it.
#[test]
fn chains_of_messages_are_as_long_as_the_closed_forms_say() {
    let log2_up = |ranks: usize| ranks.next_power_of_two().trailing_zeros() as usize;
    // In a binomial tree the distance of a rank from the root is the number of its bits.
    let bits_max = |ranks: usize| (0..ranks).map(|rank| rank.count_ones() as usize).max().unwrap();
    for ranks in 2..=17 {
        let depth = |collective, algorithm| proved(&schedule(collective, algorithm, ranks, 60)).messages_deep;
        let broadcast = Collective::Broadcast { root: 1 };
        assert_eq!(depth(Collective::AllReduce, Algorithm::Ring), 2 * (ranks - 1));
        assert_eq!(depth(Collective::AllReduce, Algorithm::BidirectionalRing), 2 * (ranks - 1));
        assert_eq!(depth(Collective::ReduceScatter, Algorithm::Ring), ranks - 1);
        assert_eq!(depth(Collective::AllGather, Algorithm::Ring), ranks - 1);
        assert_eq!(depth(Collective::AllReduce, Algorithm::OneShot), 1);
        assert_eq!(depth(Collective::AllReduce, Algorithm::TwoShot), 2);
        assert_eq!(depth(Collective::AllToAll, Algorithm::Direct), 1);
        assert_eq!(depth(Collective::AllToAll, Algorithm::Pairwise), ranks - 1);
        assert_eq!(depth(broadcast, Algorithm::Binomial), bits_max(ranks));
        assert_eq!(depth(Collective::Reduce { root: 1 }, Algorithm::Binomial), bits_max(ranks));
        assert_eq!(depth(broadcast, Algorithm::RingPipeline { segments: segments(5) }), ranks - 1);
        assert_eq!(depth(Collective::Scan, Algorithm::Ring), ranks - 1);
        assert_eq!(depth(Collective::ExclusiveScan, Algorithm::Ring), ranks - 1);
        assert_eq!(depth(Collective::Scan, Algorithm::Direct), 1);
        assert_eq!(depth(Collective::Barrier, Algorithm::Dissemination), log2_up(ranks));
        let fold = if ranks.is_power_of_two() { 0 } else { 2 };
        let core = ranks.ilog2() as usize;
        assert_eq!(depth(Collective::AllReduce, Algorithm::HalvingDoubling), 2 * core + fold);
    }
}

#[test]
fn a_two_level_barrier_goes_up_across_and_down() {
    let servers = [0, 0, 1, 1, 2, 2, 3, 3];
    let request =
        Request { collective: Collective::Barrier, ranks: 8, elements: 0, servers: &servers, parts: &[] };
    let schedule = build(&request, Algorithm::TwoLevel).unwrap();
    let expected = Report { messages_deep: 4, synchronizing: true, keeps_rank_order: true };
    assert_eq!(proved(&schedule), expected);
    let crossing =
        schedule.transfers.iter().filter(|transfer| servers[transfer.from] != servers[transfer.to]);
    assert_eq!(crossing.count(), 4 * 2, "four leaders, two rounds");
}

#[test]
fn algorithms_that_keep_the_order_of_ranks_are_known() {
    for collective in [0, 2].into_iter().flat_map(Collective::all) {
        for algorithm in suitable(collective, segments(3)) {
            let servers: &[usize] =
                if algorithm == Algorithm::Hierarchical { &[0, 1, 0, 1, 2, 2, 0, 1] } else { &[] };
            let keeps = |ranks: usize, elements| {
                let servers = &servers[..servers.len().min(ranks)];
                let request = Request { collective, ranks, elements, servers, parts: &[] };
                proved(&build(&request, algorithm).unwrap()).keeps_rank_order
            };
            let keeps_always = (3..=8).all(|ranks| (0..=20).all(|elements| keeps(ranks, elements)));
            assert_eq!(keeps_always, algorithm.keeps_rank_order(collective), "{collective} by {algorithm}");
        }
    }
}

#[test]
fn ranks_that_may_run_ahead_are_known() {
    let synchronizing =
        |collective, algorithm, elements| proved(&schedule(collective, algorithm, 8, elements)).synchronizing;
    assert!(synchronizing(Collective::AllReduce, Algorithm::Ring, 8));
    assert!(synchronizing(Collective::AllReduce, Algorithm::OneShot, 1));
    assert!(synchronizing(Collective::AllGather, Algorithm::Direct, 8));
    // A root sends and continues; ranks without a part depend on no other.
    assert!(!synchronizing(Collective::Broadcast { root: 0 }, Algorithm::Binomial, 8));
    assert!(!synchronizing(Collective::ReduceScatter, Algorithm::Ring, 7));
    assert!(!synchronizing(Collective::AllReduce, Algorithm::Ring, 0));
}

#[test]
fn synchronizing_collectives_synchronize_under_every_algorithm() {
    for ranks in 1..=9 {
        for elements in [0, 1, 5, ranks, 20] {
            for collective in Collective::all(ranks - 1) {
                let elements = if collective == Collective::Barrier { 0 } else { elements };
                if !collective.synchronizes(ranks, elements) {
                    continue;
                }
                for algorithm in suitable(collective, segments(3)) {
                    let report = proved(&schedule(collective, algorithm, ranks, elements));
                    assert!(report.synchronizing, "{collective} of {elements} by {algorithm}, {ranks} ranks");
                }
            }
        }
    }
}

/// Four servers of two: inside a server, across in a message per phase, and inside again.
#[test]
fn hierarchical_collectives_are_as_deep_as_their_phases() {
    let depth = |collective, servers: &[usize]| proved(&on_servers(collective, 64, servers)).messages_deep;
    let four = [0, 0, 1, 1, 2, 2, 3, 3];
    assert_eq!(depth(Collective::AllReduce, &four), 4);
    assert_eq!(depth(Collective::ReduceScatter, &four), 2);
    assert_eq!(depth(Collective::AllGather, &four), 2);
    assert_eq!(depth(Collective::Broadcast { root: 3 }, &four), 3);
    // Eight servers are three levels of a tree.
    let eight: Vec<usize> = (0..16).map(|rank| rank / 2).collect();
    assert_eq!(depth(Collective::Broadcast { root: 3 }, &eight), 1 + 3 + 1);
}

/// Returns the algorithms that take unequal parts, each with its collective.
fn on_parts(root: usize) -> Vec<(Collective, Algorithm)> {
    let of = |collective: Collective| {
        suitable(collective, segments(1)).map(move |algorithm| (collective, algorithm)).collect::<Vec<_>>()
    };
    Collective::all(root).into_iter().filter(|one| one.has_parts()).flat_map(of).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn schedules_of_unequal_parts_are_proved(
        servers in prop::collection::vec(0_usize..4, 1..=9),
        lengths in prop::collection::vec(prop_oneof![Just(0), 0_usize..4, 0_usize..20], 81),
        root in any::<prop::sample::Index>(),
    ) {
        let ranks = servers.len();
        for (collective, algorithm) in on_parts(root.index(ranks)) {
            let count = if collective == Collective::AllToAll { ranks * ranks } else { ranks };
            let parts = &lengths[..count];
            let elements = parts.iter().sum();
            let request = Request { collective, ranks, elements, servers: &servers, parts };
            let report = proved(&build(&request, algorithm).unwrap());
            let must_synchronize = collective.root().is_none() && parts.iter().all(|part| *part > 0);
            prop_assert!(report.synchronizing || !must_synchronize, "{collective} by {algorithm}");
        }
    }

    /// Lists of the lengths that an equal partition has give the schedules that no list gives.
    #[test]
    fn listed_equal_parts_change_nothing(ranks in 2_usize..=9, elements in 0_usize..=40) {
        for (collective, algorithm) in on_parts(0) {
            let row: Vec<usize> = (0..ranks).map(|rank| part(elements, ranks, rank).len()).collect();
            let is_exchange = collective == Collective::AllToAll;
            let (parts, sum) = if is_exchange { (row.repeat(ranks), elements * ranks) } else { (row, elements) };
            let request = Request { collective, ranks, elements: sum, servers: &[], parts: &parts };
            let listed = build(&request, algorithm).unwrap();
            let equal = schedule(collective, algorithm, ranks, elements);
            prop_assert_eq!((listed.transfers, listed.programs), (equal.transfers, equal.programs));
        }
    }
}

#[test]
fn a_schedule_whose_parts_are_others_is_refused() {
    let request =
        Request { collective: Collective::AllGather, ranks: 3, elements: 6, servers: &[], parts: &[1, 2, 3] };
    let mut schedule = build(&request, Algorithm::Ring).unwrap();
    schedule.parts = Parts::listed(&[1, 3, 2]);
    assert!(verify(&schedule).is_err());
    schedule.parts = Parts::listed(&[1, 2, 2, 1]);
    assert!(verify(&schedule).is_err());
}
