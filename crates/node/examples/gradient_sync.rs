//! Data-parallel training: every node computes the gradient on its part of the data, all gradients are summed, and every node takes the same step.
//!
//! The model has one hidden layer and learns x1*x2. Gradients are sent as tagged messages: the workers send theirs to node 0, which adds them in the
//! order of the nodes and sends the sum back. The result is therefore identical, to the bit, to that of one process that adds the same parts in the
//! same order.
//!
//! Run it: `cargo run -p rackloom --example gradient_sync`

use std::thread;

use rackloom::fabric::{Error, Fabric, Node, NodeId, Plan, RegionOptions};

const HIDDEN: usize = 8;
/// Number of parameters: two weights and a bias per hidden unit, one weight to the output, and one bias of the output. A gradient also carries the
/// loss.
const PARAMETERS: usize = 4 * HIDDEN + 1;
const RATE: f32 = 0.3;
const POINTS: usize = 64;
type Gradient = [f32; PARAMETERS + 1];

/// Returns initial parameters: small, unequal, and the same on all nodes.
fn beginning() -> [f32; PARAMETERS] {
    std::array::from_fn(|index| ((index * 37 + 11) % 29) as f32 / 14.5 - 1.0)
}

/// Returns gradient and loss on the points of one part, each divided by the number of all points.
fn gradient(model: &[f32; PARAMETERS], part: usize, parts: usize) -> Gradient {
    let mut sum = [0.0; PARAMETERS + 1];
    for point in (part..POINTS).step_by(parts) {
        let x = [(point % 8) as f32 / 3.5 - 1.0, (point / 8) as f32 / 3.5 - 1.0];
        let unit = |h: usize| (model[4 * h] * x[0] + model[4 * h + 1] * x[1] + model[4 * h + 2]).tanh();
        let output = (0..HIDDEN).map(|h| model[4 * h + 3] * unit(h)).sum::<f32>() + model[PARAMETERS - 1];
        let error = (output - x[0] * x[1]) / POINTS as f32;
        for h in 0..HIDDEN {
            let (active, weight) = (unit(h), model[4 * h + 3]);
            let inner = error * weight * (1.0 - active * active);
            sum[4 * h] += inner * x[0];
            sum[4 * h + 1] += inner * x[1];
            sum[4 * h + 2] += inner;
            sum[4 * h + 3] += error * active;
        }
        sum[PARAMETERS - 1] += error;
        sum[PARAMETERS] += error * error * POINTS as f32;
    }
    sum
}

fn add(sum: &mut Gradient, part: &Gradient) {
    sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
}

/// Trains the model. `synchronise` replaces the local gradient by the sum of all. Returns the loss before each step, and the model.
fn train(
    (part, parts): (usize, usize),
    steps: usize,
    mut synchronise: impl FnMut(u64, &mut Gradient) -> Result<(), Error>,
) -> Result<(Vec<f32>, [f32; PARAMETERS]), Error> {
    let mut model = beginning();
    let mut losses = Vec::new();
    for step in 0..steps {
        let mut sum = gradient(&model, part, parts);
        synchronise(step as u64, &mut sum)?;
        losses.push(sum[PARAMETERS]);
        model.iter_mut().zip(&sum).for_each(|(weight, slope)| *weight -= RATE * slope);
    }
    Ok((losses, model))
}

/// Returns the result of a single process.
fn alone(parts: usize, steps: usize) -> (Vec<f32>, [f32; PARAMETERS]) {
    let mut model = beginning();
    let mut losses = Vec::new();
    for _ in 0..steps {
        let mut sum = gradient(&model, 0, parts);
        (1..parts).for_each(|part| add(&mut sum, &gradient(&model, part, parts)));
        losses.push(sum[PARAMETERS]);
        model.iter_mut().zip(&sum).for_each(|(weight, slope)| *weight -= RATE * slope);
    }
    (losses, model)
}

/// Trains on one node of several.
fn work(node: &Node, parts: usize, steps: usize) -> Result<(Vec<f32>, [f32; PARAMETERS]), Error> {
    let region = node.allocate(RegionOptions::new(1, 0x5eed), size_of::<Gradient>() as u64)?;
    let (place, whole, root) = (node.id().index(), region.slice(..), NodeId(0));
    let others = || (1..parts as u16).map(NodeId);
    train((place, parts), steps, |step, sum| {
        if node.id() == root {
            for other in others() {
                node.receive(Some(other), step, 0, &whole).wait()?;
                let mut theirs = [0.0; PARAMETERS + 1];
                region.read(0, &mut theirs)?;
                add(sum, &theirs);
            }
            region.write(0, &sum[..])?;
            others().try_for_each(|other| node.send(other, step, &whole).wait())
        } else {
            region.write(0, &sum[..])?;
            node.send(root, step, &whole).wait()?;
            node.receive(Some(root), step, 0, &whole).wait()?;
            region.read(0, sum)
        }
    })
}

type Trained = (Vec<f32>, [f32; PARAMETERS]);

fn together(nodes: usize, steps: usize) -> Result<Vec<Trained>, Box<dyn std::error::Error>> {
    let plan = Plan::parse(&format!("name: mesh\nshape: {{full-mesh: {{nodes: {nodes}}}}}\n"), "example")?;
    let fabric = Fabric::local(&plan)?;
    thread::scope(|scope| {
        let threads: Vec<_> =
            fabric.nodes().iter().map(|node| scope.spawn(move || work(node, nodes, steps))).collect();
        threads.into_iter().map(|thread| Ok(thread.join().map_err(|_| "a node fell over")??)).collect()
    })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let steps = 300;
    let trained = together(3, steps)?;
    let (losses, model) = &trained[0];
    let same = trained.iter().all(|(_, other)| other == model) && alone(3, steps).1 == *model;
    println!("loss {:.4} -> {:.4} in {steps} steps on 3 nodes", losses[0], losses[steps - 1]);
    println!("every node and a single process have the same model: {same}");
    Ok(())
}

#[test]
fn training_on_three_nodes_is_training_on_one() {
    let expected = alone(3, 120);
    assert!(expected.0[119] < expected.0[0] / 2.0, "{} -> {}", expected.0[0], expected.0[119]);
    for trained in together(3, 120).expect("training ends") {
        assert!(trained == expected, "to the bit");
    }
}
