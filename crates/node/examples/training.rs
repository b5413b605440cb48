//! Data-parallel training with one process per GPU node. Gradients are summed in buckets while the backward pass goes on.
//!
//! Each process has every fourth point of the data. The backward pass begins at the last layer. As soon as the gradient of a layer is computed, it is
//! a bucket: its all-reduce starts ([`GroupRequest::start`](rackloom::fabric::GroupRequest::start)) and advances in the background, while the
//! gradients of the layers below are computed. Two buckets can be summed at the same time ([`GroupOptions::lanes`]).
//!
//! The all-reduce is [`Algorithm::TwoShot`], which adds the contributions in the order of the ranks. So each sum has the bits that one process gets
//! by adding the parts in that order. The program compares loss and model of all ranks with such a process, and ends with exit code 1 if a bit
//! differs.
//!
//! | option | effect |
//! |---|---|
//! | `--nodes 4`, `--steps 30` | number of processes, and of steps |
//! | `--algorithm ring` | another algorithm of the all-reduce. A ring adds in another order, so its bits differ for more than two ranks |
//! | `--device cuda:0` | gradients and group are in the memory of this device; `fake:7` is a device without a GPU |
//! | `--kill-at 12` | kills process n1 with SIGKILL in this step, while a bucket of the step is in flight |
//! | `--overlap compare` | every second step sums its buckets only after the backward pass, and the medians of both kinds of steps are printed |
//! | `--layers 2`, `--width 32` | number of hidden layers, and units of each |
//! | `--link-delay-us 500` | delay of each link; all operations then go in frames over the links, also between processes of one server |
//! | `--recovery shrink` | after a death the remaining ranks make a new group, divide the data among them, and repeat the step |
//! | `--recovery checkpoint` | after a death all processes start again, from the last file that rank 0 has saved |
//!
//! Run it: `cargo build --workspace`, then `cargo run -p rackloom --example training -- --kill-at 12`

mod launch;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use launch::{Arguments, Event, Processes, Rack, Result, TIMEOUT};
use rackloom::fabric::{
    Algorithm, Collective, DeviceChoice, ElementType, Error, Fabric, Group, GroupOptions, Node, NodeCounters,
    NodeId, Plan, ReduceOperation, Region, RegionOptions, Slice, wait_all,
};
use rackloom_plan::MemoryDevice;

const OPTIONS: [&str; 12] = [
    "--nodes",
    "--steps",
    "--algorithm",
    "--device",
    "--kill-at",
    "--overlap",
    "--layers",
    "--width",
    "--link-delay-us",
    "--recovery",
    "--checkpoint",
    "--attempt",
];
const KEY: u64 = 0x5eed;
/// Points per dimension of the data.
const SIDE: usize = 16;
const POINTS: usize = SIDE * SIDE;
/// Learning rate of a network of this width.
const RATE: f32 = 0.5;
const RATE_WIDTH: f32 = 32.0;
/// Number of buckets that are summed at the same time.
const LANES: usize = 2;
const STAGING_BYTES: u64 = 64 << 10;
/// Number of steps between two checkpoints.
const CHECKPOINT_INTERVAL: usize = 5;
/// Node that `--kill-at` kills.
const VICTIM: usize = 1;

fn main() -> ExitCode {
    launch::exit_code(Arguments::read(&OPTIONS).and_then(|arguments| run(&arguments)))
}

fn run(arguments: &Arguments) -> Result<bool> {
    let job = Job::new(arguments)?;
    match arguments.take_seat(job.nodes)? {
        Some(node) => {
            let file = arguments.text("--checkpoint").ok_or("--checkpoint is missing")?;
            Worker::new(&node, job, file.into())?.work()
        }
        None => supervise(&job),
    }
}

/// Options of the program.
#[derive(Clone, Debug)]
struct Job {
    nodes: usize,
    steps: usize,
    algorithm: Algorithm,
    device: Option<DeviceChoice>,
    kill_at: Option<usize>,
    recovery: Recovery,
    /// Every second step sums its buckets after the backward pass.
    compares: bool,
    shape: Shape,
    link_delay_us: Option<usize>,
    /// 2 if all processes have started again after a death.
    attempt: usize,
}

/// Hidden layers of the network.
#[derive(Clone, Copy, Debug)]
struct Shape {
    layers: usize,
    /// Units of each.
    width: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Recovery {
    Shrink,
    Checkpoint,
}

impl Job {
    fn new(arguments: &Arguments) -> Result<Self> {
        let device = arguments.text("--device").map(|name| {
            MemoryDevice::named(name).map(DeviceChoice::from).ok_or("--device is cuda:NUMBER or fake:NUMBER")
        });
        let recovery = match arguments.text("--recovery") {
            None | Some("shrink") => Recovery::Shrink,
            Some("checkpoint") => Recovery::Checkpoint,
            Some(_) => return Err("--recovery is shrink or checkpoint".into()),
        };
        let steps = arguments.number_in("--steps", 1..=10_000, 30)?;
        let kill_at = arguments.number("--kill-at")?;
        if kill_at.is_some_and(|step| step >= steps) {
            return Err(format!("--kill-at is less than the number of steps, {steps}").into());
        }
        let nodes = arguments.number_in("--nodes", 2..=16, 4)?;
        let attempt = arguments.number_in("--attempt", 1..=2, 1)?;
        let algorithm = arguments.text("--algorithm").map_or(Ok(Algorithm::TwoShot), str::parse)?;
        if !algorithm.does(Collective::AllReduce) {
            return Err(format!("{algorithm} does no all-reduce").into());
        }
        let compares = match arguments.text("--overlap") {
            None | Some("always") => false,
            Some("compare") => true,
            Some(_) => return Err("--overlap is always or compare".into()),
        };
        let layers = arguments.number_in("--layers", 1..=16, 2)?;
        let shape = Shape { layers, width: arguments.number_in("--width", 1..=1024, 32)? };
        let link_delay_us = arguments.number("--link-delay-us")?;
        let device = device.transpose()?;
        Ok(Self {
            nodes,
            steps,
            algorithm,
            device,
            kill_at,
            recovery,
            compares,
            shape,
            link_delay_us,
            attempt,
        })
    }

    /// Returns true if the buckets of this step are summed during the backward pass.
    const fn overlaps(&self, step: usize) -> bool {
        !self.compares || step.is_multiple_of(2)
    }

    /// Returns true if a process is killed in this step.
    fn kills_in(&self, step: usize) -> bool {
        self.attempt == 1 && self.kill_at == Some(step)
    }
}

// ---- the network ------------------------------------------------------------------------------------------------------

/// Network of dense layers with tanh between them. It learns the product of its two inputs.
#[derive(Clone, Debug, PartialEq)]
struct Network {
    layers: Vec<Layer>,
}

/// Weights and bias of each unit, one unit after the other.
#[derive(Clone, Debug, PartialEq)]
struct Layer {
    inputs: usize,
    parameters: Vec<f32>,
}

/// Inputs and targets of the points of one part.
struct Part {
    inputs: Vec<f32>,
    targets: Vec<f32>,
}

impl Part {
    /// Returns part number `part` of `parts`: every `parts`-th point.
    fn new(part: usize, parts: usize) -> Self {
        let coordinate = |index: usize| index as f32 * 2.0 / (SIDE - 1) as f32 - 1.0;
        let points =
            (part..POINTS).step_by(parts).map(|point| (coordinate(point % SIDE), coordinate(point / SIDE)));
        let (inputs, targets) = points.map(|(x, y)| ([x, y], x * y)).unzip::<_, _, Vec<_>, _>();
        Self { inputs: inputs.concat(), targets }
    }
}

impl Layer {
    fn units(&self) -> impl Iterator<Item = (&[f32], f32)> {
        self.parameters.chunks_exact(self.inputs + 1).map(|unit| (&unit[..self.inputs], unit[self.inputs]))
    }

    /// Returns the sums of all units for all points, before tanh.
    fn forward(&self, inputs: &[f32]) -> Vec<f32> {
        let point = |point: &[f32]| -> Vec<f32> {
            let sum = |weights: &[f32]| {
                weights.iter().zip(point).map(|(weight, input)| weight * input).sum::<f32>()
            };
            self.units().map(|(weights, bias)| sum(weights) + bias).collect()
        };
        inputs.chunks_exact(self.inputs).flat_map(point).collect()
    }

    /// Returns the gradient of the parameters. `errors` are the derivatives of the loss by the sums of the units.
    fn gradient(&self, inputs: &[f32], errors: &[f32]) -> Vec<f32> {
        let units = self.parameters.len() / (self.inputs + 1);
        let mut gradient = vec![0.0; self.parameters.len()];
        for (inputs, errors) in inputs.chunks_exact(self.inputs).zip(errors.chunks_exact(units)) {
            for (unit, error) in gradient.chunks_exact_mut(self.inputs + 1).zip(errors) {
                let (weights, bias) = unit.split_at_mut(self.inputs);
                weights.iter_mut().zip(inputs).for_each(|(weight, input)| *weight += error * input);
                bias[0] += error;
            }
        }
        gradient
    }

    /// Returns the derivatives of the loss by the sums of the layer below, whose outputs are `inputs`.
    fn errors_below(&self, inputs: &[f32], errors: &[f32]) -> Vec<f32> {
        let units = self.parameters.len() / (self.inputs + 1);
        let mut below = Vec::with_capacity(inputs.len());
        for (inputs, errors) in inputs.chunks_exact(self.inputs).zip(errors.chunks_exact(units)) {
            let mut sums = vec![0.0; self.inputs];
            for ((weights, _), error) in self.units().zip(errors) {
                sums.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += error * weight);
            }
            below.extend(sums.iter().zip(inputs).map(|(sum, output)| sum * (1.0 - output * output)));
        }
        below
    }
}

impl Network {
    /// Returns a network with small parameters, equal in all processes. It has two inputs and one output.
    fn new(shape: Shape) -> Self {
        let mut state = 12_345_u32;
        let mut random = |scale: f32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            ((state >> 8) as f32 / (1 << 23) as f32 - 1.0) * scale
        };
        let widths: Vec<_> =
            [2].into_iter().chain(std::iter::repeat_n(shape.width, shape.layers)).chain([1]).collect();
        let layers = widths.windows(2).map(|widths| {
            let scale = (1.0 / widths[0] as f32).sqrt();
            let parameters = (0..(widths[0] + 1) * widths[1]).map(|_| random(scale)).collect();
            Layer { inputs: widths[0], parameters }
        });
        Self { layers: layers.collect() }
    }

    /// Returns the number of elements of each bucket. The bucket of the last layer also has the loss.
    fn bucket_lengths(&self) -> Vec<usize> {
        let mut lengths: Vec<_> = self.layers.iter().map(|layer| layer.parameters.len()).collect();
        lengths[self.layers.len() - 1] += 1;
        lengths
    }

    /// Computes the gradient on one part, from the last layer to the first. Calls `ready` with the number of each bucket as soon as its values are
    /// known.
    fn backward<E>(
        &self,
        part: &Part,
        mut ready: impl FnMut(usize, &[f32]) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let mut activations = vec![part.inputs.clone()];
        for layer in &self.layers {
            let mut sums = layer.forward(&activations[activations.len() - 1]);
            if activations.len() < self.layers.len() {
                sums.iter_mut().for_each(|sum| *sum = sum.tanh());
            }
            activations.push(sums);
        }
        let outputs = activations[self.layers.len()].iter().zip(&part.targets);
        let mut errors: Vec<_> = outputs.map(|(output, target)| (output - target) / POINTS as f32).collect();
        let loss: f32 = errors.iter().map(|error| error * error * POINTS as f32).sum();
        for (number, layer) in self.layers.iter().enumerate().rev() {
            let inputs = &activations[number];
            let mut bucket = layer.gradient(inputs, &errors);
            if number + 1 == self.layers.len() {
                bucket.push(loss);
            }
            ready(number, &bucket)?;
            if number > 0 {
                errors = layer.errors_below(inputs, &errors);
            }
        }
        Ok(())
    }

    /// Takes a step against the summed gradient. Returns the loss before it.
    fn descend(&mut self, buckets: &[Vec<f32>]) -> f32 {
        // A wide layer takes smaller steps, or the training diverges.
        let rate = RATE * RATE_WIDTH / self.layers[self.layers.len() - 1].inputs as f32;
        for (layer, bucket) in self.layers.iter_mut().zip(buckets) {
            layer.parameters.iter_mut().zip(bucket).for_each(|(parameter, slope)| *parameter -= rate * slope);
        }
        buckets.last().and_then(|bucket| bucket.last()).copied().unwrap_or(f32::NAN)
    }

    fn parameters(&self) -> impl Iterator<Item = &f32> {
        self.layers.iter().flat_map(|layer| &layer.parameters)
    }

    /// Returns a hash of the bits of all parameters (FNV-1a).
    fn hash(&self) -> u64 {
        let bytes = self.parameters().flat_map(|parameter| parameter.to_bits().to_le_bytes());
        bytes
            .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
    }

    /// Writes step and parameters. The file is complete at any time: a process that dies in this function leaves the previous one.
    fn save(&self, file: &Path, step: usize) -> Result<()> {
        let bits: Vec<_> =
            self.parameters().map(|parameter| format!("{:08x}\n", parameter.to_bits())).collect();
        let unfinished = file.with_extension("unfinished");
        std::fs::write(&unfinished, format!("{step}\n{}", bits.concat()))?;
        Ok(std::fs::rename(unfinished, file)?)
    }

    /// Returns the step and the network of a checkpoint.
    fn load(file: &Path, shape: Shape) -> Result<(usize, Self)> {
        let text = std::fs::read_to_string(file)?;
        let mut lines = text.lines();
        let step = lines.next().ok_or("the checkpoint is empty")?.parse()?;
        let mut network = Self::new(shape);
        for parameter in network.layers.iter_mut().flat_map(|layer| &mut layer.parameters) {
            let bits = lines.next().ok_or("the checkpoint is too short")?;
            *parameter = f32::from_bits(u32::from_str_radix(bits, 16)?);
        }
        Ok((step, network))
    }
}

/// Trains in this process alone. Returns the loss of each step, and the final network. In each step the data has `parts(step)` parts, whose buckets
/// are added in order.
fn train_alone(steps: usize, shape: Shape, parts: impl Fn(usize) -> usize) -> (Vec<f32>, Network) {
    let mut network = Network::new(shape);
    let losses = (0..steps).map(|step| {
        let mut sums: Vec<Vec<f32>> = vec![Vec::new(); network.layers.len()];
        for part in (0..parts(step)).map(|part| Part::new(part, parts(step))) {
            let added = network.backward(&part, |number, bucket| {
                let sum = &mut sums[number];
                if sum.is_empty() {
                    sum.extend(bucket);
                } else {
                    sum.iter_mut().zip(bucket).for_each(|(sum, value)| *sum += value);
                }
                Ok::<(), std::convert::Infallible>(())
            });
            let Ok(()) = added;
        }
        network.descend(&sums)
    });
    let losses = losses.collect();
    (losses, network)
}

// ---- one rank ---------------------------------------------------------------------------------------------------------

/// Rank of the training, in a process of its own.
struct Worker<'a> {
    node: &'a Node,
    job: Job,
    /// File that rank 0 saves.
    checkpoint: PathBuf,
    gradients: Region,
    /// Range of each bucket in `gradients`.
    buckets: Vec<Slice>,
    group: Group,
    part: Part,
    step: usize,
    network: Network,
    /// Network before the last step.
    previous: Network,
}

impl<'a> Worker<'a> {
    /// Begins with a new network, or in the second attempt with that of the checkpoint.
    fn new(node: &'a Node, job: Job, checkpoint: PathBuf) -> Result<Self> {
        let begin = || (0, Network::new(job.shape));
        let (step, network) = if job.attempt > 1 { Network::load(&checkpoint, job.shape)? } else { begin() };
        let lengths: Vec<_> = network.bucket_lengths().iter().map(|length| *length as u64 * 4).collect();
        let (options, bytes) = (RegionOptions::new(1, KEY), lengths.iter().sum());
        let gradients = match job.device {
            Some(device) => node.allocate_on_device(options, device, bytes)?,
            None => node.allocate(options, bytes)?,
        };
        let mut begin = 0;
        let slice = |length: &u64| {
            begin += length;
            gradients.slice(begin - length..begin)
        };
        let buckets = lengths.iter().map(slice).collect();
        let members: Vec<_> = (0..job.nodes as u16).map(NodeId).collect();
        let group = join(node, &job, &members)?;
        // A rank that is killed before another one has reached it is no loss to that one, which would wait for it.
        group.barrier().wait()?;
        let part = Part::new(group.rank(), members.len());
        let previous = network.clone();
        Ok(Self { node, job, checkpoint, gradients, buckets, group, part, step, network, previous })
    }

    /// Trains, and prints a line for each step and one at the end. Then serves its peers until the launcher lets it end.
    fn work(mut self) -> Result<bool> {
        while self.step < self.job.steps {
            match self.sum_gradients() {
                Ok((buckets, backward, waited)) => self.descend(&buckets, backward, waited)?,
                Err(error) if !is_death(&error) => return Err(error.into()),
                Err(_) if self.job.recovery == Recovery::Checkpoint => {
                    println!("restart");
                    return Ok(true);
                }
                Err(_) => self.shrink()?,
            }
        }
        let NodeCounters { direct_operations, data_frames_sent, .. } = self.node.counters();
        println!("done {:016x} {direct_operations} {data_frames_sent}", self.network.hash());
        launch::wait_for_launcher();
        Ok(true)
    }

    /// Computes the gradient on this rank's part, and sums each bucket over all ranks while the next one is computed, or after all of them. Returns the sums, the
    /// duration of the backward pass, and the time that the rank waited after it.
    fn sum_gradients(&self) -> std::result::Result<(Vec<Vec<f32>>, Duration, Duration), Error> {
        let begun = Instant::now();
        let (mut pending, mut later) = (Vec::new(), Vec::new());
        let overlaps = self.job.overlaps(self.step);
        let computed = self.network.backward(&self.part, |number, values| {
            let bucket = &self.buckets[number];
            self.gradients.write(self.offset(number), values)?;
            let (all_reduce, sum) = (Collective::AllReduce, ReduceOperation::Sum);
            let request = self.group.on_slices(all_reduce, sum, ElementType::F32, bucket, bucket);
            if overlaps {
                pending.push(request.start()?);
            } else {
                later.push(request);
            }
            if self.job.kills_in(self.step) && self.node.id().index() == VICTIM {
                println!("kill");
                launch::wait_for_launcher();
                return Err(Error::Closed);
            }
            Ok(())
        });
        let backward = begun.elapsed();
        let started = later.into_iter().try_for_each(|request| request.start().map(|one| pending.push(one)));
        // All buckets end before their bytes are used again, also if one of them fails.
        let summed = wait_all(pending);
        computed?;
        started?;
        summed?;
        let waited = begun.elapsed() - backward;
        let read = |(number, length): (usize, usize)| {
            let mut values = vec![0.0; length];
            self.gradients.read(self.offset(number), &mut values).map(|()| values)
        };
        let sums = self.network.bucket_lengths().into_iter().enumerate().map(read);
        Ok((sums.collect::<std::result::Result<_, _>>()?, backward, waited))
    }

    /// Returns the offset of a bucket in the region, in bytes.
    fn offset(&self, number: usize) -> u64 {
        self.network.bucket_lengths()[..number].iter().map(|length| *length as u64 * 4).sum()
    }

    fn descend(&mut self, buckets: &[Vec<f32>], backward: Duration, waited: Duration) -> Result<()> {
        self.previous.clone_from(&self.network);
        let loss = self.network.descend(buckets);
        let ranks = self.group.members().len();
        let (backward, waited) = (backward.as_micros(), waited.as_micros());
        println!("step {} {ranks} {:08x} {backward} {waited}", self.step, loss.to_bits());
        self.step += 1;
        if self.group.rank() == 0 && self.step.is_multiple_of(CHECKPOINT_INTERVAL) {
            self.network.save(&self.checkpoint, self.step)?;
        }
        Ok(())
    }

    /// Makes a group of the remaining ranks, and continues with the first step that one of them has not finished.
    fn shrink(&mut self) -> Result<()> {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            // The error of a collective may name a rank that gave up because of the death. So each rank finds out which ranks are lost.
            let is_left = |member: &NodeId| *member == self.node.id() || self.node.reaches(*member);
            let left: Vec<_> = self.group.members().iter().copied().filter(is_left).collect();
            if left.len() == self.group.members().len() {
                if Instant::now() > deadline {
                    return Err("a collective has failed, and all ranks are alive".into());
                }
                thread::sleep(Duration::from_millis(1));
                continue;
            }
            self.group = join(self.node, &self.job, &left)?;
            let mut first = [self.step as i64];
            match self.group.all_reduce(&mut first, ReduceOperation::Min).wait() {
                Ok(()) => {
                    self.part = Part::new(self.group.rank(), left.len());
                    self.go_back_to(first[0] as usize);
                    return Ok(());
                }
                Err(error) if is_death(&error) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Takes back the last step, if another rank has not finished it. A rank cannot finish two steps more than another one.
    fn go_back_to(&mut self, step: usize) {
        if step < self.step {
            self.network.clone_from(&self.previous);
            self.step = step;
        }
    }
}

/// Joins the group of these nodes. Each number of members has a region of its own, so that late data of an earlier group reaches no later one.
fn join(node: &Node, job: &Job, members: &[NodeId]) -> std::result::Result<Group, Error> {
    let mut options = GroupOptions::new(100 + members.len() as u32, KEY)
        .algorithm(job.algorithm)
        .lanes(LANES)
        .staging(STAGING_BYTES)
        .join_timeout(TIMEOUT);
    options.device = job.device;
    Group::join(node, options, members)
}

/// Returns true for the errors of a collective that has lost a member, or that another member gave up for that reason.
fn is_death(error: &Error) -> bool {
    matches!(
        error,
        Error::PeerLost { .. } | Error::PeerLeft { .. } | Error::GroupBroken { .. } | Error::Refused { .. }
    )
}

// ---- the launcher -----------------------------------------------------------------------------------------------------

/// Results that the ranks have printed.
#[derive(Default)]
struct Results {
    /// Step and rank of each line. A repeated step replaces the first attempt.
    steps: BTreeMap<(usize, usize), Step>,
    /// Hash of the final network of each rank.
    networks: BTreeMap<usize, u64>,
    /// Operations of all ranks through shared memory, and frames that carried the other ones.
    direct_operations: u64,
    data_frames: u64,
}

/// Result of one step on one rank.
struct Step {
    ranks: usize,
    loss: f32,
    backward_us: u64,
    waited_us: u64,
}

impl Step {
    /// Reads a line: step, number of ranks, bits of the loss, and two times. Returns the step's number as well.
    fn parse(words: &[&str]) -> Option<(usize, Self)> {
        let [step, ranks, loss, backward, waited] = words else { return None };
        let loss = f32::from_bits(u32::from_str_radix(loss, 16).ok()?);
        let (backward_us, waited_us) = (backward.parse().ok()?, waited.parse().ok()?);
        Some((step.parse().ok()?, Self { ranks: ranks.parse().ok()?, loss, backward_us, waited_us }))
    }
}

/// Starts the rack and its processes, and compares their results with those of one process. Returns true if they are equal.
fn supervise(job: &Job) -> Result<bool> {
    if let Some(device) = job.device {
        check_device(device)?;
    }
    let link = job.link_delay_us.map(|delay| format!("force_wire: true\nlink: {{delay: {delay}us}}\n"));
    let rack = Rack::up_with("training", job.nodes, &link.unwrap_or_default())?;
    let mut results = Results::default();
    let checkpoint = rack.folder().join("checkpoint");
    let file = checkpoint.to_str().ok_or("the folder for files has no plain name")?;
    Network::new(job.shape).save(&checkpoint, 0)?;
    let again = follow(rack.start(&["--checkpoint", file])?, job, &mut results)?;
    if again {
        println!("all ranks start again from step {}", Network::load(&checkpoint, job.shape)?.0);
        follow(rack.start(&["--checkpoint", file, "--attempt", "2"])?, job, &mut results)?;
    }
    Ok(report(job, &results))
}

/// Opens the device, so that a missing one is one error and not one of each rank.
fn check_device(device: DeviceChoice) -> Result<()> {
    let fabric = Fabric::local(&Plan::parse("name: check\nshape: {ring: {nodes: 2}}\n", "check")?)?;
    fabric.nodes()[0].allocate_on_device(RegionOptions::new(1, KEY), device, 4096)?;
    Ok(())
}

/// Reads the lines of all processes until they have ended. Returns true if they must start again.
fn follow(mut processes: Processes, job: &Job, results: &mut Results) -> Result<bool> {
    let (mut left, mut done, mut again) = (job.nodes, 0, false);
    let mut killed = None;
    while let Some(event) = processes.next()? {
        match event {
            Event::Line { index, line } => match line.split_whitespace().collect::<Vec<_>>()[..] {
                ["step", ref words @ ..] => {
                    let (number, step) = Step::parse(words).ok_or("a line of a rank is not understood")?;
                    results.steps.insert((number, index), step);
                }
                ["kill"] => {
                    processes.kill(index)?;
                    println!("n{index} is killed in step {}", job.kill_at.unwrap_or_default());
                    (killed, left) = (Some(index), left - 1);
                }
                ["restart"] => again = true,
                ["done", hash, direct_operations, data_frames] => {
                    results.networks.insert(index, u64::from_str_radix(hash, 16)?);
                    results.direct_operations += direct_operations.parse::<u64>()?;
                    results.data_frames += data_frames.parse::<u64>()?;
                    done += 1;
                }
                _ => return Err(format!("n{index} has printed {line:?}").into()),
            },
            Event::Ended { index, status } => {
                if !status.success() && killed != Some(index) {
                    return Err(format!("n{index} has ended: {status}").into());
                }
            }
        }
        if done == left {
            processes.release();
        }
    }
    Ok(again)
}

/// Prints a table of all steps. Returns true if all ranks have the losses and the network of one process.
fn report(job: &Job, results: &Results) -> bool {
    let ranks_in = |number: usize| {
        let (_, step) = results.steps.range((number, 0)..(number + 1, 0)).next()?;
        Some(step.ranks)
    };
    let (losses, network) = train_alone(job.steps, job.shape, |step| ranks_in(step).unwrap_or(1));
    println!("step  ranks           loss    one process  equal  backward us  then waited us");
    let mut equal = true;
    for (number, alone) in losses.iter().enumerate() {
        let mut ranks = results.steps.range((number, 0)..(number + 1, 0)).map(|(_, step)| step).peekable();
        let Some(first) = ranks.peek() else {
            println!("{number:>4}  missing");
            equal = false;
            continue;
        };
        let Step { ranks: count, loss, backward_us, waited_us } = **first;
        let is_equal = ranks.all(|step| step.loss.to_bits() == alone.to_bits());
        let word = if is_equal { "yes" } else { "NO" };
        println!(
            "{number:>4}  {count:>5}  {loss:>13.10}  {alone:>13.10}  {word:<5}  {backward_us:>11}  {waited_us:>14}"
        );
        equal &= is_equal;
    }
    if job.compares {
        compare(job, results);
    }
    let left = job.nodes - usize::from(job.kill_at.is_some() && job.recovery == Recovery::Shrink);
    let equal_networks = results.networks.values().filter(|hash| **hash == network.hash()).count();
    let Results { direct_operations, data_frames, .. } = results;
    println!(
        "{direct_operations} operations through memory of the server; {data_frames} frames for all others"
    );
    println!("final loss {:.10}", losses.last().copied().unwrap_or(f32::NAN));
    println!("{equal_networks} of {left} ranks have the network of one process, to the bit");
    equal && equal_networks == left
}

/// Number of steps that do not count: the first ones map memory.
const WARM_UP_STEPS: usize = 4;

/// Prints the median, the least and the longest time of steps with and without overlap. The slowest rank of a step counts.
fn compare(job: &Job, results: &Results) {
    println!("buckets              steps   median us      min us      max us   thereof waiting us");
    for (overlaps, name) in [(true, "during backward"), (false, "after backward")] {
        let numbers = (WARM_UP_STEPS..job.steps).filter(|step| job.overlaps(*step) == overlaps);
        let slowest = |number: usize| {
            let ranks = results.steps.range((number, 0)..(number + 1, 0)).map(|(_, step)| step);
            ranks.map(|step| (step.backward_us + step.waited_us, step.waited_us)).max()
        };
        let mut times: Vec<_> = numbers.filter_map(slowest).collect();
        times.sort_unstable();
        let (Some(min), Some(max)) = (times.first(), times.last()) else { continue };
        let (median, waited) = times[times.len() / 2];
        println!("{name:<18}  {:>6}  {median:>10}  {:>10}  {:>10}  {waited:>19}", times.len(), min.0, max.0);
    }
}
