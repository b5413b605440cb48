//! Pipeline of processes: nodes that extract features of items, a node that aggregates them, and a node that decides.
//!
//! | node | role | input |
//! |---|---|---|
//! | n0 to n2 | extraction: features of one item, a window of samples of a signal | items that the aggregation grants, as messages |
//! | n3 | aggregation: features in the order of the items, each with its mean over the last items | features, as messages |
//! | n4 | decision: whether the signal is strong | a ring of slots in its memory, each filled by a put with a signal |
//!
//! Each queue is bounded, and a full queue stops the stage before it. The aggregation puts into a free slot only, and the decision frees slots by a
//! store into the aggregation's memory. An extraction node has few grants, and gets the next one when features of it have been received. While the
//! aggregation waits for a free slot, it grants nothing. So the slowest stage sets the rate of all, and memory does not grow.
//!
//! If an extraction process dies, the aggregation's receive ends with [`Error::PeerLost`]. It grants the items of that process to the others, and no
//! item is lost. Aggregation and decision have one process each. If one of them dies, all processes start again from a checkpoint: the decision saves
//! the number of decided items and their result, and everything else follows from the items. The aggregation has the items before the first
//! undecided one extracted again, as many as a mean needs. The decisions are compared with those of one process. The program ends with exit code 1
//! if one differs.
//!
//! | option | effect |
//! |---|---|
//! | `--items 2000` | number of items |
//! | `--decision-us 50` | time that a decision takes, in microseconds: a slow one fills the queues |
//! | `--kill-at 700` | kills a process with SIGKILL when it has this item |
//! | `--kill decision` | stage of that process: `extraction` (unless given), `aggregation` or `decision` |
//!
//! Run it: `cargo build --workspace`, then `cargo run -p rackloom --example pipeline -- --kill-at 700 --kill decision`

mod launch;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use launch::{Arguments, Event, Processes, Rack, Result};
use rackloom::Clock;
use rackloom::fabric::{
    Condition, Error, Key, Node, NodeId, Pending, Received, Region, RegionId, RegionOptions, RemoteAddress,
    Signal, wait_any,
};

const OPTIONS: [&str; 6] = ["--items", "--decision-us", "--kill-at", "--kill", "--checkpoint", "--attempt"];
const EXTRACTORS: usize = 3;
const AGGREGATOR: NodeId = NodeId(EXTRACTORS as u16);
const DECIDER: NodeId = NodeId(EXTRACTORS as u16 + 1);
const NODES: usize = EXTRACTORS + 2;
const KEY: u64 = 0x5eed;
/// Clock of the host, which is the same in all processes.
const CLOCK: Clock = Clock::with_origin(0);
/// Number of items that an extraction node has at most.
const GRANTS_MAX: usize = 4;
/// Number of slots of the decision's queue.
const SLOTS: u64 = 8;
/// Number of decisions between two checkpoints.
const CHECKPOINT_INTERVAL: u64 = 50;
/// Number of times that all processes start, at most.
const ATTEMPTS_MAX: usize = 3;
/// Number of samples of an item.
const SAMPLES: usize = 256;
/// Number of items of a mean.
const MEAN_OVER: usize = 4;
/// Least means of a strong signal.
const ENERGY_MIN: f64 = 0.15;
const CROSSINGS_MIN: f64 = 100.0;
/// Number of items that may be granted before an earlier one has been put. It bounds the rows that wait for their order.
const AHEAD_MAX: u64 = 16;
/// Tags of messages.
const GRANT: u64 = 1;
const FEATURES: u64 = 2;
/// Message to the aggregation: the node reaches all others, and its regions exist.
const READY: u64 = 3;
/// Grant that ends an extraction process.
const NO_MORE: u64 = u64::MAX;
/// Region with the messages of a node.
const MESSAGES: u32 = 1;
/// Region of the decision node: slots, then the number of filled slots.
const QUEUE: u32 = 2;
/// Region of the aggregation node: the number of slots that are free again.
const FREED: u32 = 3;

fn main() -> ExitCode {
    launch::exit_code(Arguments::read(&OPTIONS).and_then(|arguments| run(&arguments)))
}

fn run(arguments: &Arguments) -> Result<bool> {
    let kill = match arguments.text("--kill") {
        None | Some("extraction") => Stage::Extraction,
        Some("aggregation") => Stage::Aggregation,
        Some("decision") => Stage::Decision,
        Some(_) => return Err("--kill is extraction, aggregation or decision".into()),
    };
    let job = Job {
        items: arguments.number_in("--items", 1..=1_000_000, 2000)? as u64,
        decision: Duration::from_micros(arguments.number_in("--decision-us", 0..=1_000_000, 50)? as u64),
        kill_at: arguments.number("--kill-at")?.map(|item| item as u64),
        kill,
        attempt: arguments.number_in("--attempt", 1..=ATTEMPTS_MAX, 1)?,
    };
    if job.kill_at.is_some_and(|item| item >= job.items) {
        return Err(format!("--kill-at is less than the number of items, {}", job.items).into());
    }
    let Some(node) = arguments.take_seat(NODES)? else { return supervise(&job) };
    let file = arguments.text("--checkpoint").ok_or("--checkpoint is missing")?;
    let worked = match node.id() {
        AGGREGATOR => Aggregator::new(&node, &job, Checkpoint::load(Path::new(file))?.decided)?.work(),
        DECIDER => decide(&node, &job, Path::new(file)),
        _ => extract(&node, &job),
    };
    match worked {
        Err(error) if is_end_of_a_stage(&*error) => println!("restart"),
        worked => worked?,
    }
    Ok(true)
}

/// Returns true if the only process of a stage is lost.
fn is_end_of_a_stage(error: &(dyn std::error::Error + 'static)) -> bool {
    matches!(
        error.downcast_ref(),
        Some(
            Error::PeerLost { peer: AGGREGATOR | DECIDER, .. }
                | Error::PeerLeft { peer: AGGREGATOR | DECIDER, .. }
        )
    )
}

/// Options of the program.
struct Job {
    items: u64,
    decision: Duration,
    kill_at: Option<u64>,
    kill: Stage,
    /// Number of the start of all processes, from 1.
    attempt: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Extraction,
    Aggregation,
    Decision,
}

impl Job {
    /// Returns true if a process of this stage is killed with this item.
    fn kills(&self, stage: Stage, item: u64) -> bool {
        self.attempt == 1 && self.kill == stage && self.kill_at == Some(item)
    }
}

/// Has the launcher kill this process.
fn be_killed() -> Result<()> {
    println!("kill");
    launch::wait_for_launcher();
    Err("the launcher has not killed this process".into())
}

/// State of the pipeline from which all processes can start again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Checkpoint {
    /// Number of decided items: all before the first undecided one.
    decided: u64,
    strong: u64,
    hash: u64,
    in_order: bool,
}

impl Checkpoint {
    const START: Self = Self { decided: 0, strong: 0, hash: HASH_START, in_order: true };

    /// Writes the state. The file is complete at any time: a process that dies in this function leaves the previous one.
    fn save(&self, file: &Path) -> Result<()> {
        let Self { decided, strong, hash, in_order } = self;
        let unfinished = file.with_extension("unfinished");
        std::fs::write(&unfinished, format!("{decided} {strong} {hash} {in_order}"))?;
        Ok(std::fs::rename(unfinished, file)?)
    }

    fn load(file: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(file)?;
        let [decided, strong, hash, in_order] = text.split(' ').collect::<Vec<_>>()[..] else {
            return Err("the checkpoint is not understood".into());
        };
        Ok(Self {
            decided: decided.parse()?,
            strong: strong.parse()?,
            hash: hash.parse()?,
            in_order: in_order.parse()?,
        })
    }
}

/// Row that passes through the pipeline. All fields have 8 bytes, so that a row is an array of words.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Row {
    item: u64,
    /// Reading of the host's clock when the extraction of the item began, in nanoseconds.
    begun_ns: u64,
    energy: f64,
    /// Number of changes of sign.
    crossings: f64,
}

const ROW_WORDS: usize = 4;
const ROW_BYTES: u64 = ROW_WORDS as u64 * 8;

impl Row {
    const fn words(self) -> [u64; ROW_WORDS] {
        [self.item, self.begun_ns, self.energy.to_bits(), self.crossings.to_bits()]
    }

    fn read(region: &Region, offset: u64) -> std::result::Result<Self, Error> {
        let mut words = [0_u64; ROW_WORDS];
        region.read(offset, &mut words)?;
        let [item, begun_ns, energy, crossings] = words;
        Ok(Self { item, begun_ns, energy: f64::from_bits(energy), crossings: f64::from_bits(crossings) })
    }

    /// Computes the features of an item.
    fn extract(item: u64) -> Self {
        let begun_ns = CLOCK.now().0;
        let amplitude = ((item * 7) % 64) as f64 / 64.0;
        let sample = |at: usize| amplitude * ((item as usize * 13 + at * at) as f64 / 10.0).sin();
        let samples: Vec<f64> = (0..SAMPLES).map(sample).collect();
        let energy = samples.iter().map(|sample| sample * sample).sum::<f64>() / SAMPLES as f64;
        let crossings = samples.windows(2).filter(|pair| pair[0] * pair[1] < 0.0).count() as f64;
        Self { item, begun_ns, energy, crossings }
    }
}

/// Means over the last items.
#[derive(Default)]
struct Means(VecDeque<Row>);

impl Means {
    /// Returns the row with the means of its features, added in the order of the items.
    fn add(&mut self, row: Row) -> Row {
        self.0.push_back(row);
        if self.0.len() > MEAN_OVER {
            self.0.pop_front();
        }
        let mean = |feature: fn(&Row) -> f64| self.0.iter().map(feature).sum::<f64>() / self.0.len() as f64;
        Row { energy: mean(|row| row.energy), crossings: mean(|row| row.crossings), ..row }
    }
}

/// Returns true if the signal is strong.
fn is_strong(row: &Row) -> bool {
    row.energy >= ENERGY_MIN && row.crossings >= CROSSINGS_MIN
}

/// Returns the address of a region of another node.
const fn address(node: NodeId, region: u32, offset: u64) -> RemoteAddress {
    RemoteAddress { node, region: RegionId(region), offset, key: Key(KEY) }
}

// ---- extraction -------------------------------------------------------------------------------------------------------

/// Extracts the features of each granted item, and sends them to the aggregation.
fn extract(node: &Node, job: &Job) -> Result<()> {
    let region = node.allocate(RegionOptions::new(MESSAGES, KEY), 16 + ROW_BYTES)?;
    let (grant, row) = (region.slice(0..16), region.slice(16..));
    node.send(AGGREGATOR, READY, &region.slice(0..8)).wait()?;
    loop {
        node.receive(Some(AGGREGATOR), GRANT, 0, &grant).wait()?;
        let [item, attempt] = [region.get::<u64>(0)?, region.get::<u64>(8)?];
        if item == NO_MORE {
            launch::wait_for_launcher();
            return Ok(());
        }
        if attempt == 1 && job.kills(Stage::Extraction, item) {
            be_killed()?;
        }
        region.write(16, &Row::extract(item).words())?;
        node.send(AGGREGATOR, FEATURES, &row).wait()?;
    }
}

// ---- aggregation ------------------------------------------------------------------------------------------------------

/// Aggregation node: grants items, receives features, and fills the decision's queue.
struct Aggregator<'a> {
    node: &'a Node,
    job: &'a Job,
    /// A row for the features of each extraction node, a row for the decision, and a grant.
    messages: Region,
    freed: Region,
    extractors: Vec<Extractor>,
    /// First item that was never granted, and items that must be granted again.
    next: u64,
    again: BTreeSet<u64>,
    /// First item that no process has decided yet. Those before it are only extracted for the means.
    first: u64,
    /// Item that is put into the decision's queue next.
    put: u64,
    /// Features that arrived before those of an earlier item.
    early: BTreeMap<u64, Row>,
    means: Means,
    counts: Counts,
}

/// Extraction node that is alive, and its items.
struct Extractor {
    node: NodeId,
    granted: BTreeSet<u64>,
}

/// Counts for the report.
#[derive(Default)]
struct Counts {
    redone: usize,
    granted_max: usize,
    queue_max: u64,
    /// Number of times that the decision's queue was full.
    full: u64,
}

impl<'a> Aggregator<'a> {
    fn new(node: &'a Node, job: &'a Job, first: u64) -> Result<Self> {
        let bytes = (EXTRACTORS as u64 + 1) * ROW_BYTES + 16;
        let messages = node.allocate(RegionOptions::new(MESSAGES, KEY), bytes)?;
        let freed = node.allocate(RegionOptions::new(FREED, KEY), 8)?;
        freed.write(0, &[first])?;
        let next = first.saturating_sub(MEAN_OVER as u64 - 1);
        let extractors =
            (0..AGGREGATOR.0).map(|node| Extractor { node: NodeId(node), granted: BTreeSet::new() });
        let (extractors, means, counts) = (extractors.collect(), Means::default(), Counts::default());
        let (again, early) = (BTreeSet::new(), BTreeMap::new());
        Ok(Self {
            node,
            job,
            messages,
            freed,
            extractors,
            next,
            again,
            first,
            put: next,
            early,
            means,
            counts,
        })
    }

    fn work(mut self) -> Result<()> {
        // No stage dies before all processes have begun.
        for node in (0..NODES as u16).map(NodeId).filter(|node| *node != AGGREGATOR) {
            self.node.receive(Some(node), READY, 0, &self.messages.slice(0..8)).wait()?;
        }
        let receives = self.extractors.iter().map(|from| self.receive(from.node));
        // Receive number i is from extraction node number i of the list.
        let mut receives = receives.collect::<std::result::Result<Vec<_>, _>>()?;
        while self.put < self.job.items {
            self.grant()?;
            let index = wait_any(&mut receives)?;
            let (receive, mut from) = (receives.swap_remove(index), self.extractors.swap_remove(index));
            match receive.wait() {
                Ok(_) => {
                    let row = Row::read(&self.messages, u64::from(from.node.0) * ROW_BYTES)?;
                    from.granted.remove(&row.item);
                    self.early.insert(row.item, row);
                    match self.receive(from.node) {
                        Ok(receive) => {
                            receives.push(receive);
                            self.extractors.push(from);
                        }
                        Err(Error::PeerLost { .. }) => self.grant_again(from),
                        Err(error) => return Err(error.into()),
                    }
                }
                Err(Error::PeerLost { .. }) => self.grant_again(from),
                Err(error) => return Err(error.into()),
            }
            while let Some(row) = self.early.remove(&self.put) {
                self.put(row)?;
            }
        }
        for extractor in &self.extractors {
            self.send_grant(extractor.node, NO_MORE, 0)?;
        }
        let Counts { redone, granted_max, queue_max, full } = self.counts;
        println!("aggregated {} {redone} {granted_max} {queue_max} {full}", self.put);
        // The decision still stores into a region of this node.
        launch::wait_for_launcher();
        Ok(())
    }

    fn receive(&self, from: NodeId) -> std::result::Result<Pending<Received>, Error> {
        let offset = u64::from(from.0) * ROW_BYTES;
        self.node.receive(Some(from), FEATURES, 0, &self.messages.slice(offset..offset + ROW_BYTES)).start()
    }

    /// Grants items to the extraction nodes with the fewest grants, as long as the decision's queue has slots for them.
    fn grant(&mut self) -> Result<()> {
        let end = self.job.items.min(self.put + AHEAD_MAX);
        loop {
            let item = match self.again.first() {
                Some(item) => *item,
                None if self.next < end => self.next,
                None => return Ok(()),
            };
            let fewest =
                self.extractors.iter_mut().min_by_key(|extractor| (extractor.granted.len(), extractor.node));
            let extractor = fewest.ok_or("all extraction nodes are lost")?;
            if extractor.granted.len() == GRANTS_MAX {
                return Ok(());
            }
            extractor.granted.insert(item);
            let (peer, granted) = (extractor.node, extractor.granted.len());
            self.counts.granted_max = self.counts.granted_max.max(granted);
            let attempt = if self.again.remove(&item) { 2 } else { 1 };
            self.next = self.next.max(item + 1);
            match self.send_grant(peer, item, attempt) {
                // The receive from this node ends, too, and its items are granted again.
                Ok(()) | Err(Error::PeerLost { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn send_grant(&self, peer: NodeId, item: u64, attempt: u64) -> std::result::Result<(), Error> {
        let offset = self.messages.len() - 16;
        self.messages.write(offset, &[item, attempt])?;
        self.node.send(peer, GRANT, &self.messages.slice(offset..)).wait()
    }

    /// Notes that the items of a lost extraction node must be granted again.
    fn grant_again(&mut self, lost: Extractor) {
        println!("lost {} {}", lost.node.0, lost.granted.len());
        self.counts.redone += lost.granted.len();
        self.again.extend(lost.granted);
    }

    /// Puts a row into the next slot of the decision's queue, as soon as the slot is free.
    fn put(&mut self, row: Row) -> Result<()> {
        if self.job.kills(Stage::Aggregation, row.item) {
            be_killed()?;
        }
        let row = self.means.add(row);
        if row.item < self.first {
            self.put += 1;
            return Ok(());
        }
        let needed = (self.put + 1).saturating_sub(SLOTS);
        let freed = self.freed.get::<u64>(0)?;
        self.counts.full += u64::from(freed < needed);
        let freed = self.node.wait_until(&self.freed, 0, Condition::AtLeast, needed, DECIDER).wait()?;
        let offset = EXTRACTORS as u64 * ROW_BYTES;
        self.messages.write(offset, &row.words())?;
        let source = self.messages.slice(offset..offset + ROW_BYTES);
        let slot = address(DECIDER, QUEUE, self.put % SLOTS * ROW_BYTES);
        let filled = address(DECIDER, QUEUE, SLOTS * ROW_BYTES);
        self.node.put_with_signal(&source, slot, Signal::add(filled, 1)).wait()?;
        self.put += 1;
        self.counts.queue_max = self.counts.queue_max.max(self.put - freed);
        Ok(())
    }
}

// ---- decision ---------------------------------------------------------------------------------------------------------

/// Decides about each row of the queue after the checkpoint, and frees its slot. Prints the decisions of all attempts and the latencies of this one.
fn decide(node: &Node, job: &Job, file: &Path) -> Result<()> {
    let mut done = Checkpoint::load(file)?;
    let queue = node.allocate(RegionOptions::new(QUEUE, KEY), SLOTS * ROW_BYTES + 8)?;
    queue.write(SLOTS * ROW_BYTES, &[done.decided])?;
    node.send(AGGREGATOR, READY, &queue.slice(0..8)).wait()?;
    let mut latencies_ns = Vec::new();
    for number in done.decided..job.items {
        node.wait_until(&queue, SLOTS * ROW_BYTES, Condition::AtLeast, number + 1, AGGREGATOR).wait()?;
        let row = Row::read(&queue, number % SLOTS * ROW_BYTES)?;
        if job.kills(Stage::Decision, number) {
            be_killed()?;
        }
        let begun = Instant::now();
        let decision = is_strong(&row);
        while begun.elapsed() < job.decision {
            std::hint::spin_loop();
        }
        latencies_ns.push(CLOCK.now().0 - row.begun_ns);
        done.decided += 1;
        done.strong += u64::from(decision);
        done.hash = add_to_hash(done.hash, &row, decision);
        done.in_order &= row.item == number;
        if done.decided.is_multiple_of(CHECKPOINT_INTERVAL) && done.decided < job.items {
            done.save(file)?;
        }
        node.store(address(AGGREGATOR, FREED, 0), &(number + 1).to_le_bytes()).wait()?;
    }
    latencies_ns.sort_unstable();
    let latency = |share: f64| latencies_ns[((latencies_ns.len() - 1) as f64 * share) as usize];
    let [p50, p90, p99, max] = [0.5, 0.9, 0.99, 1.0].map(latency);
    let Checkpoint { strong, hash, in_order, .. } = done;
    println!("decided {strong} {hash:016x} {in_order} {p50} {p90} {p99} {max}");
    launch::wait_for_launcher();
    Ok(())
}

const HASH_START: u64 = 0xcbf2_9ce4_8422_2325;

/// Adds the bits of a row, without its time, and the decision to a hash (FNV-1a).
fn add_to_hash(hash: u64, row: &Row, decision: bool) -> u64 {
    let words = [row.item, row.energy.to_bits(), row.crossings.to_bits(), u64::from(decision)];
    let bytes = words.into_iter().flat_map(u64::to_le_bytes);
    bytes.fold(hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Returns the number of strong items and the hash of all decisions, as one process computes them.
fn decide_alone(items: u64) -> (u64, u64) {
    let mut means = Means::default();
    (0..items).fold((0, HASH_START), |(strong, hash), item| {
        let row = means.add(Row::extract(item));
        let decision = is_strong(&row);
        (strong + u64::from(decision), add_to_hash(hash, &row, decision))
    })
}

// ---- the launcher -----------------------------------------------------------------------------------------------------

/// Starts the rack and its processes, again after the death of a stage, and prints their report. Returns true if the decisions are those of one process.
fn supervise(job: &Job) -> Result<bool> {
    let rack = Rack::up("pipeline", NODES)?;
    let checkpoint: PathBuf = rack.folder().join("checkpoint");
    let file = checkpoint.to_str().ok_or("the folder for files has no plain name")?;
    Checkpoint::START.save(&checkpoint)?;
    for attempt in 1..=ATTEMPTS_MAX {
        if attempt > 1 {
            println!("all processes start again from item {}", Checkpoint::load(&checkpoint)?.decided);
        }
        let processes = rack.start(&["--checkpoint", file, "--attempt", &attempt.to_string()])?;
        if let Some((aggregated, decided)) = follow(processes, job)? {
            return report(job, &aggregated, &decided);
        }
    }
    Err("a stage has died in each attempt".into())
}

/// Reads the lines of all processes until they have ended. Returns the lines of aggregation and decision, or `None` if one of them has died.
fn follow(mut processes: Processes, job: &Job) -> Result<Option<(String, String)>> {
    let (mut aggregated, mut decided, mut killed, mut again) = (None, None, None, false);
    while let Some(event) = processes.next()? {
        match event {
            Event::Line { index, line } => {
                let words: Vec<_> = line.split_whitespace().collect();
                match words[..] {
                    ["kill"] => {
                        processes.kill(index)?;
                        println!("n{index} is killed with item {}", job.kill_at.unwrap_or_default());
                        killed = Some(index);
                    }
                    ["lost", node, items] => println!("n{node} is lost; {items} items are granted again"),
                    ["restart"] => again = true,
                    ["aggregated", ..] => aggregated = Some(line),
                    ["decided", ..] => decided = Some(line),
                    _ => return Err(format!("n{index} has printed {line:?}").into()),
                }
            }
            Event::Ended { index, status } if !status.success() => {
                if killed != Some(index) {
                    return Err(format!("n{index} has ended: {status}").into());
                }
                again |= index >= AGGREGATOR.index();
            }
            Event::Ended { .. } => {}
        }
        if again || (aggregated.is_some() && decided.is_some()) {
            processes.release();
        }
    }
    match (aggregated, decided) {
        (Some(aggregated), Some(decided)) => Ok(Some((aggregated, decided))),
        _ if again => Ok(None),
        _ => Err("the nodes have ended without a result".into()),
    }
}

/// Prints the results. Returns true if the decisions are those of one process.
fn report(job: &Job, aggregated: &str, decided: &str) -> Result<bool> {
    let not_understood = "a line of a node is not understood";
    let [_, put, redone, granted, queue, full] = aggregated.split(' ').collect::<Vec<_>>()[..] else {
        return Err(not_understood.into());
    };
    let [_, strong, hash, in_order, ref latencies @ ..] = decided.split(' ').collect::<Vec<_>>()[..] else {
        return Err(not_understood.into());
    };
    let lost = job.items - put.parse::<u64>()?;
    println!("items {put}, redone {redone}, lost {lost}, strong {strong}");
    println!("queue        most items  limit  times full");
    println!("extraction   {granted:>10}  {GRANTS_MAX:>5}           -");
    println!("decision     {queue:>10}  {SLOTS:>5}  {full:>10}");
    println!("latency from extraction to decision");
    println!("{:>10}  {:>10}  {:>10}  {:>10}", "p50 us", "p90 us", "p99 us", "max us");
    let microseconds = latencies.iter().map(|latency| latency.parse::<f64>().map(|ns| ns / 1e3));
    let cells = microseconds.map(|us| us.map(|us| format!("{us:>10.1}")));
    println!("{}", cells.collect::<std::result::Result<Vec<_>, _>>()?.join("  "));
    let (strong_alone, hash_alone) = decide_alone(job.items);
    let is_equal = lost == 0
        && in_order == "true"
        && strong.parse() == Ok(strong_alone)
        && u64::from_str_radix(hash, 16) == Ok(hash_alone);
    println!("decisions equal to those of one process: {}", if is_equal { "yes" } else { "NO" });
    Ok(is_equal)
}
