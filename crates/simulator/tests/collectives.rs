//! Collectives on whole racks in virtual time: the bits of the reference under all link faults, a death at every step, and as many
//! bytes on the links as the schedule states.

mod common;

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

use common::plan;
use rackloom_collectives::algorithm::suitable;
use rackloom_collectives::traffic::traffic;
use rackloom_collectives::{
    Algorithm, Collective, ElementType, ReduceOperation, Request, Schedule, build, reference,
};
use rackloom_jobs::collective::{CollectiveSettings, HeldArrays, Inputs, collective};
use rackloom_jobs::{Job, JobResult, Output, Progress, Rank, Seat};
use rackloom_plan::{Clock, Plan};
use rackloom_protocol::{Event, Instant, JobMemory, NodeId, PortId, RegionConfig, RetransmissionMode};
use rackloom_simulator::{Action, Simulation};

const TIMERS: &str = "timers: {heartbeat_interval: 100us, heartbeat_miss_max: 4, hello_interval: 50us}, \
     transport: {timeout_initial: 1ms, timeout_min: 100us, timeout_max: 10ms, ack_delay: 2us}, watchdog: 1s";

fn rack(shape: &str) -> Plan {
    plan(&format!("{{name: rack, shape: {{{shape}}}, {TIMERS}}}"))
}

fn jobs(plan: &Plan, settings: &CollectiveSettings) -> Vec<Box<dyn Job>> {
    let endpoints = plan.members.iter().take(plan.endpoint_count());
    let ranks: std::sync::Arc<[Rank]> =
        endpoints.map(|member| Rank { name: member.name.clone(), tenant: member.tenant }).collect();
    let job = |rank| collective(NodeId(rank), ranks.clone(), settings.clone()).expect("a valid request");
    (0..ranks.len() as u16).map(job).collect()
}

fn settings(
    collective: Collective,
    algorithm: Algorithm,
    element: ElementType,
    elements: usize,
) -> CollectiveSettings {
    CollectiveSettings {
        collective,
        algorithms: vec![algorithm],
        element,
        sizes: vec![elements],
        repetitions: 2,
        warm_up: 0,
        ..CollectiveSettings::default()
    }
}

fn schedule(settings: &CollectiveSettings, ranks: usize) -> Schedule {
    let request = Request {
        collective: settings.collective,
        ranks,
        elements: settings.sizes[0],
        servers: &settings.servers,
        parts: &[],
    };
    build(&request, settings.algorithms[0]).expect("a valid request")
}

/// Returns arrays with every bit pattern.
fn arrays(schedule: &Schedule, element: ElementType) -> Vec<Vec<u8>> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    let programs = schedule.programs.iter();
    programs.map(|program| (0..program.input * element.bytes()).map(|_| next()).collect()).collect()
}

fn output(simulation: &Simulation, job: &dyn Job, rank: u16) -> Option<Vec<u8>> {
    let Output { region, .. } = job.output()?;
    let bytes = job.output()?.bytes() as usize;
    Some(simulation.memory(NodeId(rank)).bytes(region)[..bytes].to_vec())
}

/// Run on arrays of a user, and compare every rank's output with the schedule run on plain arrays.
fn assert_right(plan: &Plan, settings: &CollectiveSettings) {
    let ranks = plan.endpoint_count();
    let schedule = schedule(settings, ranks);
    let arrays = arrays(&schedule, settings.element);
    let wanted = reference::run(&schedule, settings.operation, settings.element, &arrays).unwrap();
    let inputs = Inputs::Arrays(Arc::new(HeldArrays { element: settings.element, bytes: arrays }));
    let settings = CollectiveSettings { inputs, ..settings.clone() };
    let mut simulation = Simulation::new(plan, 5, jobs(plan, &settings));
    let what = format!("{} by {} of {}", settings.collective, schedule.algorithm, settings.element);
    simulation.run().unwrap_or_else(|stalled| panic!("{what}: {stalled}"));
    for (rank, mut job) in simulation.take_jobs().into_iter().enumerate() {
        let result = job.result();
        assert!(result.is_pass(), "{what}, rank {rank} of {ranks}: {:?}", result.failures);
        let found = output(&simulation, &*job, rank as u16);
        assert_eq!(found.as_ref(), Some(&wanted[rank]), "{what}, rank {rank} of {ranks}");
    }
}

fn segments() -> NonZeroUsize {
    NonZeroUsize::new(3).unwrap()
}

#[test]
fn every_collective_algorithm_and_type_at_odd_sizes_on_two_to_eight_ranks() {
    let mut turn = 0;
    for ranks in 2..=8 {
        for shape in ["ring: {nodes: N}", "star: {nodes: N, planes: 2}", "full-mesh: {nodes: N}"] {
            let plan = rack(&shape.replace('N', &ranks.to_string()));
            for collective in Collective::all(ranks / 2) {
                for algorithm in suitable(collective, segments()) {
                    let sizes = ElementType::ALL.map(|element| (element, 1023));
                    let few = [(ElementType::F64, 0), (ElementType::U8, 1), (ElementType::F16, 3)];
                    for (element, elements) in sizes.into_iter().chain(few) {
                        // Operations alternate, so that each is combined with every algorithm, shape and type.
                        turn += 1;
                        let operation = ReduceOperation::ALL[turn % ReduceOperation::ALL.len()];
                        let settings = settings(collective, algorithm, element, elements);
                        assert_right(&plan, &CollectiveSettings { operation, repetitions: 1, ..settings });
                    }
                }
            }
        }
    }
}

#[test]
fn two_percent_loss_changes_only_the_time() {
    for shape in ["ring: {nodes: 4}", "star: {nodes: 5, planes: 2}", "full-mesh: {nodes: 3}"] {
        for mode in [RetransmissionMode::GoBackN, RetransmissionMode::Selective] {
            let mut plan = rack(shape);
            plan.transport.mode = mode;
            plan.override_links(|link| link.loss = 0.02);
            for collective in Collective::all(1) {
                for algorithm in suitable(collective, segments()) {
                    for (element, elements) in [(ElementType::F32, 13), (ElementType::Bf16, 20_001)] {
                        assert_right(&plan, &settings(collective, algorithm, element, elements));
                    }
                }
            }
        }
    }
}

#[test]
fn ranks_of_one_server_meet_before_servers_do() {
    let plan = rack("ring: {nodes: 6}");
    let servers = vec![0, 0, 1, 1, 1, 2];
    let settings = CollectiveSettings {
        servers,
        ..settings(Collective::Barrier, Algorithm::TwoLevel, ElementType::U8, 0)
    };
    assert_right(&plan, &settings);
}

/// A job that records when its state changes.
struct Watched {
    job: Box<dyn Job>,
    positions: Arc<Mutex<Vec<(Instant, String)>>>,
}

impl Job for Watched {
    fn regions(&self) -> Vec<RegionConfig> {
        self.job.regions()
    }
    fn handle_event(&mut self, now: Instant, event: &Event) {
        self.job.handle_event(now, event);
    }
    fn advance(&mut self, now: Instant, seat: &mut dyn Seat, memory: &mut dyn JobMemory) -> Progress {
        let progress = self.job.advance(now, seat, memory);
        let place = self.job.waiting_for();
        let place = place.split(" (").next().unwrap_or_default().to_owned();
        let mut positions = self.positions.lock().unwrap();
        if positions.last().is_none_or(|(_, last)| *last != place) {
            positions.push((now, place));
        }
        progress
    }
    fn waiting_for(&self) -> String {
        self.job.waiting_for()
    }
    fn result(&mut self) -> JobResult {
        self.job.result()
    }
    fn progress_count(&self) -> u64 {
        self.job.progress_count()
    }
}

/// Returns when a rank entered each of its states in an undisturbed run.
fn states_of(plan: &Plan, settings: &CollectiveSettings, rank: usize) -> Vec<(Instant, String)> {
    let positions = Arc::new(Mutex::new(Vec::new()));
    let mut jobs = jobs(plan, settings);
    let job = std::mem::replace(&mut jobs[rank], Box::new(common::Idle));
    jobs[rank] = Box::new(Watched { job, positions: positions.clone() });
    Simulation::new(plan, 5, jobs).run().unwrap_or_else(|stalled| panic!("{stalled}"));
    positions.lock().unwrap().clone()
}

#[test]
fn a_rank_killed_at_every_step_leaves_right_sums_or_its_name() {
    let plan = rack("ring: {nodes: 8}");
    let settings = settings(Collective::AllReduce, Algorithm::Ring, ElementType::F32, 100_003);
    let timers = plan.timers_on(Clock::Virtual);
    let noticed_by = timers.heartbeat_interval_ns * u64::from(timers.heartbeat_miss_max);
    let settings = CollectiveSettings { repetitions: 1, start_timeout_ns: noticed_by * 3 / 2, ..settings };
    let positions = states_of(&plan, &settings, 3);
    let steps = schedule(&settings, 8).programs[3].steps.len();
    let is_seen = |step: usize| positions.iter().any(|(_, place)| place.contains(&format!("step {step} of")));
    assert!(steps >= 14 && (2..=steps).all(is_seen), "{positions:#?}");
    for ((at, place), next) in positions.iter().zip(positions.iter().skip(1)) {
        for moment in [at.0 + 1, at.0.midpoint(next.0.0)] {
            let mut simulation = Simulation::new(&plan, 5, jobs(&plan, &settings));
            simulation.schedule(Instant(moment), Action::Kill { member: NodeId(3) });
            let outcome = simulation.run().unwrap_or_else(|stalled| panic!("{place}: {stalled}"));
            let took_ns = outcome.ended_at.since(Instant(moment));
            let bound_ns = 2 * noticed_by;
            assert!(took_ns <= bound_ns, "{place}: {took_ns} ns");
            for (rank, job) in simulation.take_jobs().iter_mut().enumerate().filter(|(rank, _)| *rank != 3) {
                let result = job.result();
                assert_eq!(result.mismatch_count, 0, "{place}, rank {rank}");
                assert!(result.complete || result.lost_nodes == ["n3"], "{place}, rank {rank}: {result:#?}");
                assert_eq!(result.complete, job.output().is_some(), "{place}, rank {rank}");
            }
        }
    }
}

/// Runs with this action at the beginning and in the middle of every step of rank 1: every rank must have the right sum.
fn leaves_right_sums_at_every_step(shape: &str, action: Action) {
    let plan = rack(shape);
    let settings = settings(Collective::AllReduce, Algorithm::Ring, ElementType::I32, 30_011);
    let settings = CollectiveSettings { repetitions: 1, warm_up: 0, ..settings };
    let timers = plan.timers_on(Clock::Virtual);
    let noticed_by = timers.heartbeat_interval_ns * u64::from(timers.heartbeat_miss_max);
    let ranks = plan.endpoint_count();
    let mut baseline = Simulation::new(&plan, 5, jobs(&plan, &settings));
    let baseline_ns = baseline.run().unwrap_or_else(|stalled| panic!("{stalled}")).ended_at.0;
    let positions = states_of(&plan, &settings, 1);
    let steps = schedule(&settings, ranks).programs[1].steps.len();
    let seen = positions.iter().filter(|(_, place)| place.contains("step ")).count();
    assert!(seen + 1 >= steps, "{seen} of {steps} steps are seen: {positions:#?}");
    for ((at, place), next) in positions.iter().zip(positions.iter().skip(1)) {
        for moment in [at.0 + 1, at.0.midpoint(next.0.0)] {
            let mut simulation = Simulation::new(&plan, 5, jobs(&plan, &settings));
            simulation.schedule(Instant(moment), action);
            let outcome = simulation.run().unwrap_or_else(|stalled| panic!("{shape}, {place}: {stalled}"));
            // Packets in flight are sent again at once when the loss is detected, or after their timeout.
            let bound_ns =
                baseline_ns + 2 * noticed_by + plan.transport_on(Clock::Virtual).timeout_initial_ns;
            assert!(outcome.ended_at.0 <= bound_ns, "{shape}, {place}: {} ns", outcome.ended_at.0);
            for (rank, job) in simulation.take_jobs().iter_mut().enumerate() {
                let result = job.result();
                let is_right = result.is_pass() && result.verified_bytes > 0 && job.output().is_some();
                assert!(is_right, "{shape}, {place}, rank {rank}: {result:#?}");
            }
        }
    }
}

#[test]
fn a_link_cut_at_every_step_leaves_right_sums() {
    leaves_right_sums_at_every_step("ring: {nodes: 8}", Action::Cut { edge: 1, direction: None });
}

#[test]
fn a_plane_killed_at_every_step_leaves_right_sums() {
    for switch in [8, 9] {
        let kill = Action::Kill { member: NodeId(switch) };
        leaves_right_sums_at_every_step("star: {nodes: 8, planes: 2}", kill);
    }
}

/// Data bytes and frames that each rank sent through each port.
fn sent(plan: &Plan, settings: &CollectiveSettings) -> Vec<Vec<(u64, u64)>> {
    let mut simulation = Simulation::new(plan, 5, jobs(plan, settings));
    simulation.run().unwrap_or_else(|stalled| panic!("{stalled}"));
    let ports = |rank: usize| 0..plan.graph().ports(NodeId(rank as u16)).len() as u16;
    (0..plan.endpoint_count())
        .map(|rank| {
            let counters = ports(rank).map(|port| simulation.counters(NodeId(rank as u16), PortId(port)));
            counters.map(|counters| (counters.data_bytes_sent, counters.data_frames_sent)).collect()
        })
        .collect()
}

#[test]
fn links_carry_the_schedules_bytes_and_headers() {
    /// Ethernet, link and fabric headers, region, operation and signal: at most this much beside the payload of a frame.
    const FRAME_OVERHEAD_BYTES: u64 = 160;
    /// A run's barrier and its acknowledged signals, at most, on one link direction.
    const MEETING_BYTES: u64 = 8 * 8 * FRAME_OVERHEAD_BYTES;
    let ranks = 8;
    let plan = rack("ring: {nodes: 8}");
    for (algorithm, directions) in [(Algorithm::Ring, 1), (Algorithm::BidirectionalRing, 2)] {
        let settings = settings(Collective::AllReduce, algorithm, ElementType::F32, 8 * 4096 * 2);
        let [few, more] =
            [1, 3].map(|repetitions| sent(&plan, &CollectiveSettings { repetitions, ..settings.clone() }));
        let bytes = settings.sizes[0] as u64 * 4;
        // 2 (N - 1) / N S, over as many directions as are used.
        let payload = 2 * (ranks - 1) * bytes / ranks / directions;
        let traffic = traffic(&schedule(&settings, ranks as usize), 4);
        assert_eq!(traffic.between(3, 4).bytes, payload);
        for (rank, (few, more)) in few.iter().zip(&more).enumerate() {
            let runs =
                few.iter().zip(more).map(|(few, more)| ((more.0 - few.0) / 2, (more.1 - few.1).div_ceil(2)));
            let mut runs: Vec<_> = runs.collect();
            runs.sort_unstable();
            for (index, (sent, frames)) in runs.iter().rev().enumerate() {
                let payload = if index < directions as usize { payload } else { 0 };
                let most = payload + frames * FRAME_OVERHEAD_BYTES + MEETING_BYTES;
                assert!(
                    (payload..=most).contains(sent),
                    "{algorithm}, rank {rank}: {sent} bytes in {frames} frames, payload {payload}, at most {most}"
                );
                assert!(*sent < payload * 105 / 100 + MEETING_BYTES, "overhead beyond 5 percent");
            }
        }
    }
}

#[test]
fn a_choice_depends_on_the_fabric() {
    let chosen = |link: &str, bytes: usize| {
        let plan = plan(&format!("{{name: rack, shape: {{ring: {{nodes: 8}}}}, link: {link}, {TIMERS}}}"));
        let settings = CollectiveSettings {
            sizes: vec![bytes / 4],
            repetitions: 1,
            warm_up: 0,
            topology: rackloom_collectives::choose::TopologyKind::Ring,
            ..CollectiveSettings::default()
        };
        let mut simulation = Simulation::new(&plan, 5, jobs(&plan, &settings));
        simulation.run().unwrap_or_else(|stalled| panic!("{stalled}"));
        let rows: Vec<_> =
            simulation.take_jobs().iter_mut().map(|job| job.result().sweep[0].algorithm.clone()).collect();
        assert!(rows.iter().all(|algorithm| *algorithm == rows[0]), "ranks disagree: {rows:?}");
        rows[0].clone()
    };
    let far = "{delay: 20us, rate: 400Gbit/s}";
    let thin = "{delay: 100ns, rate: 10Gbit/s}";
    assert_eq!(chosen(thin, 1 << 20), "bidirectional-ring", "bytes cost: as few as possible, both ways");
    assert_ne!(chosen(far, 64), "bidirectional-ring", "steps cost: as few as possible");
}
