//! One layer of a graph network: vertices are distributed over the nodes, and edges connect vertices of different nodes.
//!
//! Every node holds the feature rows of its vertices and knows their neighbours. For each vertex it fetches the rows of all neighbours from their
//! nodes, and averages them with the vertex's own. Rows of other nodes are fetched by *get*: all gets are submitted, a bounded number at a time, and
//! each completion identifies the row that has arrived. The owners do nothing. A row is fetched once, however many vertices need it.
//!
//! Run it: `cargo run -p rackloom --example feature_aggregation`

use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::Duration;

use rackloom::fabric::{
    Error, Fabric, Group, GroupOptions, Node, NodeId, Plan, Queue, Region, RegionOptions, RemoteAddress,
};

/// Number of features of one vertex.
const FEATURES: usize = 16;
const ROW_BYTES: u64 = (FEATURES * size_of::<f32>()) as u64;
/// Maximum number of gets in flight.
const IN_FLIGHT_MAX: usize = 64;
const TIMEOUT: Duration = Duration::from_secs(30);

type Row = [f32; FEATURES];

/// A graph whose vertices are distributed round-robin: vertex v is on node v mod n, in its row v div n.
struct Graph {
    vertices: usize,
    nodes: usize,
}

impl Graph {
    /// Returns the neighbours of a vertex. Few edges stay within a node.
    fn neighbours(&self, vertex: usize) -> Vec<usize> {
        (1..=4).map(|step| (vertex * step + 7 * step + 1) % self.vertices).collect()
    }

    fn features(vertex: usize) -> Row {
        std::array::from_fn(|place| ((vertex * 31 + place * 17) % 64) as f32)
    }

    fn of_node(&self, node: usize) -> impl Iterator<Item = usize> {
        (node..self.vertices).step_by(self.nodes)
    }
}

/// Returns the mean of a vertex and its neighbours, in the order of the edges.
fn aggregate(graph: &Graph, vertex: usize, row: impl Fn(usize) -> Row) -> Row {
    let mut sum = row(vertex);
    let neighbours = graph.neighbours(vertex);
    for neighbour in &neighbours {
        sum.iter_mut().zip(row(*neighbour)).for_each(|(sum, part)| *sum += part);
    }
    sum.map(|sum| sum / (neighbours.len() + 1) as f32)
}

/// Fetches the rows of these vertices into a local region, one after the other.
fn fetch(node: &Node, graph: &Graph, own: &Region, landing: &Region, wanted: &[usize]) -> Result<(), Error> {
    let queue = Queue::with_capacity(IN_FLIGHT_MAX);
    let (mut submitted, mut landed) = (0, 0);
    while landed < wanted.len() {
        while submitted < wanted.len() && submitted - landed < IN_FLIGHT_MAX {
            let (owner, row) = (wanted[submitted] % graph.nodes, wanted[submitted] / graph.nodes);
            let source = RemoteAddress { node: NodeId(owner as u16), ..own.address(row as u64 * ROW_BYTES) };
            let place = submitted as u64 * ROW_BYTES;
            match node.get(source, &landing.slice(place..place + ROW_BYTES)).submit(&queue, submitted as u64)
            {
                Ok(_) => submitted += 1,
                // The queue to that owner is full. Some gets must complete first.
                Err(Error::Busy { .. }) if submitted > landed => break,
                Err(error) => return Err(error),
            }
        }
        let completion = node.poll_wait(&queue, TIMEOUT).ok_or(Error::Closed)?;
        completion.result?;
        landed += 1;
    }
    Ok(())
}

/// Computes one node's part: the results of its vertices.
fn layer(node: &Node, graph: &Graph, group: &Group, own: &Region) -> Result<Vec<(usize, Row)>, Error> {
    let me = node.id().index();
    for vertex in graph.of_node(me) {
        own.write((vertex / graph.nodes) as u64 * ROW_BYTES, &Graph::features(vertex))?;
    }
    // No node fetches before all rows are written.
    group.barrier().wait()?;
    let wanted = graph.of_node(me).flat_map(|vertex| graph.neighbours(vertex));
    let wanted: BTreeSet<usize> = wanted.filter(|vertex| vertex % graph.nodes != me).collect();
    let wanted: Vec<usize> = wanted.into_iter().collect();
    let landing = node.allocate(RegionOptions::new(2, 0x5eed), wanted.len() as u64 * ROW_BYTES)?;
    fetch(node, graph, own, &landing, &wanted)?;
    let read = |region: &Region, row: usize| {
        let mut values = Row::default();
        region.read(row as u64 * ROW_BYTES, &mut values).map(|()| values)
    };
    let mut rows = BTreeMap::new();
    for (place, vertex) in wanted.iter().enumerate() {
        rows.insert(*vertex, read(&landing, place)?);
    }
    for vertex in graph.of_node(me) {
        rows.insert(vertex, read(own, vertex / graph.nodes)?);
    }
    let aggregated =
        graph.of_node(me).map(|vertex| (vertex, aggregate(graph, vertex, |vertex| rows[&vertex])));
    let aggregated = aggregated.collect();
    // No node leaves while others may still fetch.
    group.barrier().wait()?;
    Ok(aggregated)
}

/// Returns the rows of all vertices after one layer.
fn run(nodes: usize, vertices: usize) -> Result<Vec<Row>, Box<dyn std::error::Error>> {
    let plan = Plan::parse(&format!("name: graph\nshape: {{full-mesh: {{nodes: {nodes}}}}}\n"), "example")?;
    let fabric = Fabric::local(&plan)?;
    let graph = Graph { vertices, nodes };
    let members: Vec<_> = fabric.nodes().iter().map(Node::id).collect();
    let part = |node: &Node| {
        let group = Group::join(node, GroupOptions::new(1000, 0x5eed), &members)?;
        let own_bytes = vertices.div_ceil(nodes) as u64 * ROW_BYTES;
        let own = node.allocate(RegionOptions::new(1, 0x5eed), own_bytes)?;
        layer(node, &graph, &group, &own)
    };
    let mut rows = vec![Row::default(); vertices];
    thread::scope(|scope| -> Result<(), Box<dyn std::error::Error>> {
        let threads: Vec<_> = fabric.nodes().iter().map(|node| scope.spawn(|| part(node))).collect();
        for thread in threads {
            for (vertex, row) in thread.join().map_err(|_| "a node fell over")?? {
                rows[vertex] = row;
            }
        }
        Ok(())
    })?;
    Ok(rows)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rows = run(4, 1000)?;
    println!("{} vertices on 4 nodes; the first feature of vertex 10 is {}", rows.len(), rows[10][0]);
    Ok(())
}

#[test]
fn distributed_rows_are_those_of_one_loop_over_the_whole_graph() {
    for nodes in [2, 3, 4] {
        let graph = Graph { vertices: 500, nodes };
        let rows = run(nodes, graph.vertices).expect("the mesh works");
        for (vertex, row) in rows.iter().enumerate() {
            assert_eq!(*row, aggregate(&graph, vertex, Graph::features), "vertex {vertex} on {nodes} nodes");
        }
    }
}
