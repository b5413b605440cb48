//! Estimates against the closed forms as the literature writes them, and choices on both sides of each crossover.
//!
//! `a` is alpha, `b` the rate of a link in bytes per ns, `s` the size in bytes, `n` the number of ranks.

use std::num::NonZeroUsize;

use rackloom_collectives::choose::{Choice, Fabric, Spread, TopologyKind, TransferLimit, choose};
use rackloom_collectives::schedule::{Local, Program};
use rackloom_collectives::{Algorithm, Collective, Refused, Request, build};

const ALPHA_NS: f64 = 1200.0;
/// 400 Gb/s.
const RATE: f64 = 50.0;

fn fabric(kind: TopologyKind) -> Fabric {
    Fabric {
        kind,
        planes: 1,
        spread: Spread::EQUAL,
        alpha_ns: ALPHA_NS,
        link_ns_per_byte: 1.0 / RATE,
        local_alpha_ns: 100.0,
        local_ns_per_byte: 0.001,
        reduce_ns_per_byte: 0.0,
        memory_ns_per_byte: 0.0,
        begin_ns: 0.0,
        transfer_limit: None,
    }
}

fn request(collective: Collective, ranks: usize, bytes: usize) -> Request<'static> {
    Request { collective, ranks, elements: bytes, servers: &[], parts: &[] }
}

fn chosen(collective: Collective, ranks: usize, bytes: usize, fabric: &Fabric) -> Choice {
    choose(&request(collective, ranks, bytes), 1, fabric).unwrap()
}

fn time_ns(choice: &Choice, algorithm: Algorithm) -> f64 {
    choice.estimates.iter().find(|estimate| estimate.algorithm == algorithm).unwrap().time_ns
}

/// Function that counts elements of a program.
type ElementsOf = fn(&Program) -> usize;

/// Elements that a program reduces into others.
fn reduced_elements(program: &Program) -> usize {
    let work = program.steps.iter().flat_map(|step| &step.work);
    let reduced = work.map(|work| match work {
        Local::Copy { .. } => 0,
        Local::Reduce { target, .. } => target.length,
        Local::Fold { target, .. } => (program.sources(work).len() - 1) * target.length,
    });
    reduced.sum()
}

/// Elements that a program reads and writes to reduce and to copy.
fn moved_elements(program: &Program) -> usize {
    let work = program.steps.iter().flat_map(|step| &step.work);
    work.map(|work| program.amounts(work).0 * work.target().length).sum()
}

fn assert_close(found: f64, expected: f64, what: &str) {
    assert!((found - expected).abs() <= 1e-9 * expected, "{what}: {found}, not {expected}");
}

#[test]
fn all_reduce_takes_the_times_that_the_closed_forms_give() {
    let (a, b) = (ALPHA_NS, RATE);
    for ranks in [4_usize, 8, 16] {
        let (n, s) = (ranks as f64, 1_048_576.0);
        let of = |kind, algorithm| {
            time_ns(&chosen(Collective::AllReduce, ranks, 1 << 20, &fabric(kind)), algorithm)
        };
        for kind in [TopologyKind::Ring, TopologyKind::Star, TopologyKind::Mesh] {
            assert_close(of(kind, Algorithm::Ring), 2.0 * (n - 1.0) * (a + s / (n * b)), "ring");
        }
        for kind in [TopologyKind::Ring, TopologyKind::Mesh] {
            let expected = 2.0 * (n - 1.0) * (a + s / (2.0 * n * b));
            assert_close(of(kind, Algorithm::BidirectionalRing), expected, "two counter-rotating rings");
        }
        assert_close(of(TopologyKind::Mesh, Algorithm::TwoShot), 2.0 * (a + s / (n * b)), "two-shot, mesh");
        assert_close(of(TopologyKind::Mesh, Algorithm::OneShot), a + s / b, "one-shot, mesh");
        let star = 2.0 * a + 2.0 * (n - 1.0) / n * s / b;
        assert_close(of(TopologyKind::Star, Algorithm::TwoShot), star, "two-shot, star");
        let halving = 2.0 * n.log2() * a + 2.0 * (n - 1.0) / n * s / b;
        assert_close(of(TopologyKind::Star, Algorithm::HalvingDoubling), halving, "halving-doubling, star");
        // Uniform traffic on a ring: mean hops N^2 / (4 (N - 1)), and each rank sends over two links.
        let hops = n * n / (4.0 * (n - 1.0));
        let ring = n / 2.0 * a + (n - 1.0) * s * hops / (2.0 * b);
        assert_close(of(TopologyKind::Ring, Algorithm::OneShot), ring, "one-shot, ring");
    }
}

#[test]
fn shapes_of_several_hops_share_their_links() {
    let (a, b, s) = (ALPHA_NS, RATE, 1_048_576.0);
    let of = |kind, algorithm| time_ns(&chosen(Collective::AllReduce, 16, 1 << 20, &fabric(kind)), algorithm);
    // Recursive halving and doubling was made for hypercubes: each partner is a neighbour.
    let halving = of(TopologyKind::Hypercube, Algorithm::HalvingDoubling);
    assert_close(halving, 8.0 * a + 2.0 * 15.0 / 16.0 * s / b, "halving-doubling, hypercube");
    // Half of the messages cross the middle of a cube, 8 x 8 over eight links.
    let bisected = of(TopologyKind::Hypercube, Algorithm::TwoShot);
    assert_close(bisected, 2.0 * (4.0 * a + 8.0 * s / 16.0 / b), "two-shot, hypercube");
    let torus = TopologyKind::Torus { sizes: [4, 4, 1] };
    // Each of four rows passes one message per round to the next row, by one hop more.
    assert_close(of(torus, Algorithm::Ring), 30.0 * (20.0 / 16.0 * a + s / 16.0 / b), "ring, torus");
    // In a direction of a ring, four messages go to the next rank, and four take two hops to the opposite one.
    assert_close(of(torus, Algorithm::OneShot), 4.0 * a + 12.0 * s / b, "one-shot, torus of even sizes");
    // In rings of five, both directions are equal: five messages of one hop and five of two cross links in each.
    let odd = fabric(TopologyKind::Torus { sizes: [5, 5, 1] });
    let odd = time_ns(&chosen(Collective::AllReduce, 25, 1 << 20, &odd), Algorithm::OneShot);
    assert_close(odd, 4.0 * a + (5.0 + 10.0) * s / b, "one-shot, torus of odd sizes");
    let leaves = |uplinks| TopologyKind::LeafSpine { ranks_per_leaf: 4, uplinks };
    // As on a star, with two switches more in between.
    let wide = of(leaves(4), Algorithm::TwoShot);
    assert_close(wide, 2.0 * (2.0 * a + 15.0 * s / 16.0 / b), "two-shot, as many links up as down");
    // Four ranks send to twelve over one link.
    let narrow = of(leaves(1), Algorithm::TwoShot);
    assert_close(narrow, 2.0 * (2.0 * a + 48.0 * s / 16.0 / b), "two-shot, one link up");
    // A ring of ranks leaves each leaf once.
    assert_close(of(leaves(1), Algorithm::Ring), 30.0 * (1.25 * a + s / 16.0 / b), "ring, one link up");
}

#[test]
fn reduce_scatter_and_all_gather_take_half_of_it() {
    for kind in [TopologyKind::Ring, TopologyKind::Star, TopologyKind::Mesh, TopologyKind::Custom] {
        for algorithm in [Algorithm::Ring, Algorithm::BidirectionalRing] {
            let whole = time_ns(&chosen(Collective::AllReduce, 8, 4096, &fabric(kind)), algorithm);
            for collective in [Collective::ReduceScatter, Collective::AllGather] {
                let half = time_ns(&chosen(collective, 8, 4096, &fabric(kind)), algorithm);
                assert_close(2.0 * half, whole, "half");
            }
        }
    }
}

/// On a full mesh one-shot wins over two-shot iff S < alpha b / (1 - 2/N).
#[test]
fn one_shot_gives_way_to_two_shot_at_the_crossover() {
    let mesh = fabric(TopologyKind::Mesh);
    for ranks in [4_usize, 8, 16] {
        let crossover = ALPHA_NS * RATE / (1.0 - 2.0 / ranks as f64);
        let at = |factor: f64| {
            chosen(Collective::AllReduce, ranks, (crossover * factor) as usize, &mesh).algorithm
        };
        assert_eq!(at(0.99), Algorithm::OneShot, "{ranks} ranks");
        assert_eq!(at(1.01), Algorithm::TwoShot, "{ranks} ranks");
    }
}

#[test]
fn a_perturbed_measurement_moves_the_crossover() {
    let crossover = (ALPHA_NS * RATE / (1.0 - 2.0 / 8.0)) as usize;
    let slow = Fabric { link_ns_per_byte: 1.2 / RATE, ..fabric(TopologyKind::Mesh) };
    let late = Fabric { alpha_ns: 1.2 * ALPHA_NS, ..fabric(TopologyKind::Mesh) };
    let at = |factor: f64, fabric: &Fabric| {
        chosen(Collective::AllReduce, 8, (crossover as f64 * factor) as usize, fabric).algorithm
    };
    assert_eq!(at(0.99, &slow), Algorithm::TwoShot);
    assert_eq!(at(1.01, &late), Algorithm::OneShot);
}

#[test]
fn each_topology_gets_its_best_algorithm() {
    let large = 1 << 26;
    let best = |kind, bytes| chosen(Collective::AllReduce, 8, bytes, &fabric(kind)).algorithm;
    assert_eq!(best(TopologyKind::Ring, large), Algorithm::BidirectionalRing);
    assert_eq!(best(TopologyKind::Mesh, large), Algorithm::TwoShot);
    assert_eq!(best(TopologyKind::Star, large), Algorithm::TwoShot);
    for kind in [TopologyKind::Ring, TopologyKind::Star, TopologyKind::Mesh, TopologyKind::Custom] {
        assert_eq!(best(kind, 8), Algorithm::OneShot, "{kind:?}");
    }
}

#[test]
fn planes_of_a_star_share_the_bytes_but_not_the_latency() {
    let bytes = 1 << 20;
    let one = fabric(TopologyKind::Star);
    let four = Fabric { planes: 4, ..one };
    let latency = time_ns(&chosen(Collective::AllToAll, 8, 0, &one), Algorithm::Direct);
    let with = |fabric| time_ns(&chosen(Collective::AllToAll, 8, bytes, fabric), Algorithm::Direct) - latency;
    assert_close(latency, ALPHA_NS, "nothing sent");
    assert_close(4.0 * with(&four), with(&one), "a quarter of the time on the links");
}

/// The rates of memory and of the arithmetic both limit a reduction, and the slower one counts.
#[test]
fn the_slower_one_of_memory_and_arithmetic_counts() {
    let mesh = fabric(TopologyKind::Mesh);
    let of =
        |fabric: &Fabric| time_ns(&chosen(Collective::AllReduce, 8, 1 << 20, fabric), Algorithm::OneShot);
    let with = |reduce_ns_per_byte, memory_ns_per_byte| {
        of(&Fabric { reduce_ns_per_byte, memory_ns_per_byte, ..mesh }) - of(&mesh)
    };
    // Seven reductions; eight reads and a write.
    assert_close(with(1.0, 0.5), f64::from(7 << 20), "arithmetic");
    assert_close(with(0.5, 1.0), f64::from(9 << 20), "memory");
}

#[test]
fn one_transfer_in_flight_makes_messages_follow_each_other() {
    let mesh = fabric(TopologyKind::Mesh);
    let limit = |in_flight| {
        let in_flight = NonZeroUsize::new(in_flight).unwrap();
        Fabric { transfer_limit: Some(TransferLimit { in_flight, end_ns: 600.0 }), ..mesh }
    };
    let of =
        |fabric: &Fabric, algorithm| time_ns(&chosen(Collective::AllReduce, 8, 1 << 20, fabric), algorithm);
    let transfer = ALPHA_NS + 600.0 + 1_048_576.0 / RATE;
    assert_close(of(&limit(1), Algorithm::OneShot), 7.0 * transfer, "one after the other");
    assert_eq!(of(&limit(7), Algorithm::Ring), of(&mesh, Algorithm::Ring), "a ring needs one at a time");
    let step = ALPHA_NS + 600.0 + 131_072.0 / RATE;
    assert_close(
        of(&limit(1), Algorithm::Ring),
        14.0 * step,
        "the next one begins when the last one is acknowledged",
    );
}

#[test]
fn a_broadcast_is_cut_into_as_many_segments_as_pay() {
    let ring = fabric(TopologyKind::Ring);
    let collective = Collective::Broadcast { root: 0 };
    let small = chosen(collective, 8, 64, &ring);
    let whole = Algorithm::RingPipeline { segments: NonZeroUsize::MIN };
    assert_eq!(small.algorithm, Algorithm::Binomial, "fewer steps of the same latency");
    assert!(small.estimates.iter().any(|estimate| estimate.algorithm == whole), "{small}");
    let large = chosen(collective, 8, 1 << 24, &ring);
    let Algorithm::RingPipeline { segments } = large.algorithm else { panic!("{large}") };
    // Neither fewer nor more segments would be faster.
    let time = |segments: f64| (6.0 + segments) * (ALPHA_NS + 16_777_216.0 / segments / RATE);
    let best = segments.get() as f64;
    assert_close(large.estimates[0].time_ns, time(best), "pipeline");
    assert!(time(best) <= time(best - 1.0) && time(best) <= time(best + 1.0), "{segments} segments");
}

/// Two ranks send as many bytes with either algorithm. One-shot saves a step and reduces the whole array where the others
/// reduce half of it, so it wins iff S / 2 gamma < alpha.
#[test]
fn slow_reduction_favours_algorithms_that_reduce_less() {
    let gamma = 0.1;
    let busy = Fabric { reduce_ns_per_byte: gamma, ..fabric(TopologyKind::Ring) };
    let at = |factor: f64, fabric: &Fabric| {
        let bytes = (factor * 2.0 * ALPHA_NS / gamma) as usize;
        chosen(Collective::AllReduce, 2, bytes, fabric).algorithm
    };
    assert_eq!((at(0.99, &busy), at(1.01, &busy)), (Algorithm::OneShot, Algorithm::Ring));
    assert_eq!(at(1.01, &fabric(TopologyKind::Ring)), Algorithm::OneShot, "where it takes none");
}

/// The reductions of the programs are those of the estimates.
#[test]
fn estimates_match_the_reductions_of_the_busiest_rank() {
    let elements = 1 << 12;
    let servers: Vec<usize> = (0..8).map(|rank| rank / 2).collect();
    for (collective, ranks) in
        [(Collective::AllReduce, 8), (Collective::AllReduce, 6), (Collective::ReduceScatter, 8)]
            .into_iter()
            .chain([(Collective::Reduce { root: 1 }, 8)])
    {
        let request = Request { servers: &servers[..ranks], ..request(collective, ranks, elements) };
        let mesh = fabric(TopologyKind::Mesh);
        let still = Fabric { alpha_ns: 0.0, link_ns_per_byte: 0.0, ..mesh };
        let still = Fabric { local_alpha_ns: 0.0, local_ns_per_byte: 0.0, ..still };
        let reducing = Fabric { reduce_ns_per_byte: 1.0, ..still };
        let moving = Fabric { memory_ns_per_byte: 1.0, ..still };
        let elements_of: [(&str, _, ElementsOf); 2] =
            [("reduced", reducing, reduced_elements), ("moved", moving, moved_elements)];
        for (name, fabric, elements_of) in elements_of {
            for estimate in choose(&request, 1, &fabric).unwrap().estimates {
                let schedule = build(&request, estimate.algorithm).unwrap();
                let counted = schedule.programs.iter().map(elements_of).max().unwrap() as f64;
                let what = format!("{collective} of {ranks} by {}", estimate.algorithm);
                // Parts of unequal length differ by an element, of which each is moved three times.
                assert!(
                    (counted - estimate.time_ns).abs() <= 3.0 * ranks as f64,
                    "{what}: {counted} {name}, not {}",
                    estimate.time_ns
                );
            }
        }
    }
}

/// To the root of a ring of 8 it is 4 hops, and each of its two links carries 4 arrays; a tree takes 1 + 2 + 4 hops and
/// 3 arrays. So direct wins iff S < 3 alpha b.
#[test]
fn a_reduce_goes_straight_to_the_root_where_latency_counts_more_than_its_links() {
    let ring = fabric(TopologyKind::Ring);
    let at = |factor: f64| {
        let bytes = (factor * 3.0 * ALPHA_NS * RATE) as usize;
        chosen(Collective::Reduce { root: 2 }, 8, bytes, &ring).algorithm
    };
    assert_eq!((at(0.99), at(1.01)), (Algorithm::Direct, Algorithm::Binomial));
}

/// On a mesh a direct scan is one step of the whole array, and a chain takes N-1. A ring's middle link carries N^2/8 arrays.
#[test]
fn scans_go_directly_where_each_pair_has_a_link() {
    let of = |kind, algorithm| time_ns(&chosen(Collective::Scan, 8, 1 << 20, &fabric(kind)), algorithm);
    let step = ALPHA_NS + 1_048_576.0 / RATE;
    assert_close(of(TopologyKind::Mesh, Algorithm::Direct), step, "direct, mesh");
    for kind in [TopologyKind::Mesh, TopologyKind::Star, TopologyKind::Ring] {
        assert_close(of(kind, Algorithm::Ring), 7.0 * step, "chain");
    }
    let ring = 4.0 * ALPHA_NS + 8.0 * 1_048_576.0 / RATE;
    assert_close(of(TopologyKind::Ring, Algorithm::Direct), ring, "direct, ring");
    let large = chosen(Collective::ExclusiveScan, 8, 1 << 20, &fabric(TopologyKind::Ring)).algorithm;
    assert_eq!(large, Algorithm::Ring);
}

#[test]
fn ranks_that_share_servers_get_a_barrier_of_two_levels() {
    let star = fabric(TopologyKind::Star);
    let servers: Vec<usize> = (0..8).map(|rank| rank / 4).collect();
    let request =
        Request { collective: Collective::Barrier, ranks: 8, elements: 0, servers: &servers, parts: &[] };
    let choice = choose(&request, 1, &star).unwrap();
    assert_eq!(choice.algorithm, Algorithm::TwoLevel);
    assert_close(choice.estimates[0].time_ns, ALPHA_NS + 2.0 * 100.0, "one round of leaders, up and down");
    assert_close(time_ns(&choice, Algorithm::Dissemination), 3.0 * ALPHA_NS, "three rounds");
    let alone = choose(&Request { servers: &[], ..request }, 1, &star).unwrap();
    assert_eq!(alone.algorithm, Algorithm::Dissemination);
}

fn on_servers(collective: Collective, bytes: usize, servers: &[usize]) -> Choice {
    let request = Request { servers, ..request(collective, servers.len(), bytes) };
    choose(&request, 1, &fabric(TopologyKind::Star)).unwrap()
}

/// M servers of W ranks at a star: in each server (W - 1) S bytes per phase, and S (M - 1) / (M W) on each link.
#[test]
fn a_hierarchy_takes_the_time_that_its_closed_form_gives() {
    let (local_alpha, local_beta) = (100.0, 0.001);
    for (servers, lanes) in [(2, 4), (4, 2), (8, 8)] {
        let server_of: Vec<usize> = (0..servers * lanes).map(|rank| rank / lanes).collect();
        let (m, w, s) = (servers as f64, lanes as f64, 1_048_576.0);
        let of = |collective| time_ns(&on_servers(collective, 1 << 20, &server_of), Algorithm::Hierarchical);
        let inside = local_alpha + (w - 1.0) * s * local_beta;
        let across = ALPHA_NS + (m - 1.0) / (m * w) * s / RATE;
        assert_close(of(Collective::AllReduce), 2.0 * (inside + across), "all-reduce");
        assert_close(of(Collective::ReduceScatter), inside + across, "reduce-scatter");
        assert_close(of(Collective::AllGather), inside + across, "all-gather");
        let passed = if servers > 4 {
            m.log2() * (ALPHA_NS + s / (w * RATE))
        } else {
            ALPHA_NS + (m - 1.0) * s / (w * RATE)
        };
        let broadcast = of(Collective::Broadcast { root: 0 });
        assert_close(broadcast, local_alpha + passed + inside, "broadcast");
    }
}

#[test]
fn a_hierarchy_is_chosen_only_where_there_are_two_levels() {
    let is_candidate = |servers: &[usize]| {
        let choice = on_servers(Collective::AllReduce, 1 << 20, servers);
        choice.estimates.iter().any(|estimate| estimate.algorithm == Algorithm::Hierarchical)
    };
    assert!(is_candidate(&[0, 1, 2, 0]));
    assert!(!is_candidate(&[0, 0, 0, 0]), "one server");
    assert!(!is_candidate(&[0, 1, 2, 3]), "no rank shares a server");
    let best = |bytes| on_servers(Collective::AllReduce, bytes, &[0, 0, 1, 1, 2, 2, 3, 3]).algorithm;
    assert_eq!((best(8), best(1 << 20)), (Algorithm::OneShot, Algorithm::Hierarchical));
}

/// A ring moves the largest part N-1 times, direct receives each part once.
#[test]
fn unequal_parts_take_longer_where_they_move_one_at_a_time() {
    let parts = [4096, 0, 0, 0];
    let request = Request { parts: &parts, ..request(Collective::AllGather, 4, 4096) };
    let choice = choose(&request, 1, &fabric(TopologyKind::Star)).unwrap();
    assert_close(time_ns(&choice, Algorithm::Ring), 3.0 * (ALPHA_NS + 4096.0 / RATE), "ring");
    assert_close(time_ns(&choice, Algorithm::Direct), ALPHA_NS + 0.75 * 4096.0 / RATE, "direct");
    let blocks = [&[16_384][..], &[0; 15]].concat();
    let request = Request { collective: Collective::AllToAll, elements: 16_384, parts: &blocks, ..request };
    let choice = choose(&request, 1, &fabric(TopologyKind::Star)).unwrap();
    assert_close(time_ns(&choice, Algorithm::Pairwise), 3.0 * (ALPHA_NS + 16_384.0 / RATE), "pairwise");
}

#[test]
fn a_choice_names_its_reason() {
    let choice = chosen(Collective::AllToAll, 8, 1 << 20, &fabric(TopologyKind::Star));
    assert_eq!(choice.to_string(), "direct, estimated 19.6 us (pairwise 26.8 us)");
}

#[test]
fn one_rank_and_odd_measurements_are_handled() {
    let silent = Fabric { alpha_ns: 0.0, link_ns_per_byte: 0.0, ..fabric(TopologyKind::Ring) };
    let broken = Fabric { alpha_ns: f64::NAN, link_ns_per_byte: -1.0, ..silent };
    for fabric in [silent, broken] {
        for ranks in [1, 2, 3, 1024] {
            for collective in Collective::all(0) {
                let choice = chosen(collective, ranks, 1 << 30, &fabric);
                assert!(choice.algorithm.does(collective));
            }
        }
    }
    assert_eq!(choose(&request(Collective::AllReduce, 0, 8), 1, &silent), Err(Refused::Ranks(0)));
}
