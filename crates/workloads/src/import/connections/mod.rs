//! Connection matrices of htsim as messages.
//!
//! A connection is a send and a receive. A start time is a computation before the send. A trigger is a dependency; where it starts
//! connections of other hosts, a notice of a few bytes carries it there, over one host for all. Failures of links, priorities and
//! additions to flows are left out.

mod lines;
mod triggers;

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{ERRORS_MAX, Place, WorkloadError, WorkloadErrors};
use crate::import::connections::lines::{Connection, Header, Line, Trigger};
use crate::import::connections::triggers::{End, Start};
use crate::import::imported::{Content, File, Imported};
use crate::import::notes::Notes;
use crate::import::order::{Node, Ordered, Stuck, ordered};
use crate::located::check_at;
use crate::model::{RANKS_MAX, Work, Workload};

/// Length of a message that carries a trigger from one host to another, in bytes.
const NOTICE_BYTES: u64 = 8;
const NOTICE_NOTE: &str = "triggers between hosts, each carried by a message of 8 bytes";
const PS_PER_NS: u64 = 1_000;

/// Reads a connection matrix.
pub(super) fn read(file: &File<'_>) -> Result<Imported, WorkloadErrors> {
    let text = file.text()?;
    let matrix = Matrix::read(text).map_err(|errors| WorkloadErrors::new(file.name, errors))?;
    let mut notes = Notes::default();
    let in_file = |error: WorkloadError| error.of(file.name);
    let hosts = matrix.hosts(&mut notes).map_err(in_file)?;
    let mut workload =
        Workload { name: file.title(), phases: vec!["main".to_owned()], ..Workload::default() };
    let mut places = Vec::new();
    for host in hosts {
        let Ordered { operations, nodes } =
            ordered(&host.nodes).map_err(|stuck| in_file(host.stuck(&stuck)))?;
        let place = |node: &u32| Place::Line { line: host.lines[*node as usize], column: 1 };
        places.push(nodes.iter().map(place).collect());
        workload.ranks.push(operations);
    }
    check_at(&workload, &places, |_| file.name)?;
    Ok(Imported { content: Content::Workload(workload), notes: notes.finish() })
}

/// Content of the file.
#[derive(Debug, Default)]
struct Matrix {
    hosts: usize,
    connections: Vec<Connection>,
    triggers: Vec<Trigger>,
    failures: u64,
}

impl Matrix {
    fn read(text: &str) -> Result<Self, Vec<WorkloadError>> {
        let mut matrix = Self::default();
        let mut counts = Vec::new();
        let mut errors = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            match lines::read(number, line) {
                Ok(None) => {}
                Ok(Some(Line::Count(header, count))) => counts.push((number, header, count)),
                Ok(Some(Line::Connection(connection))) => matrix.connections.push(connection),
                Ok(Some(Line::Trigger(trigger))) => matrix.triggers.push(trigger),
                Ok(Some(Line::Failure)) => matrix.failures += 1,
                Err(error) => errors.push(error),
            }
            if errors.len() >= ERRORS_MAX {
                return Err(errors);
            }
        }
        if errors.is_empty() {
            errors.extend(counts.into_iter().filter_map(|count| matrix.compare(count).err()));
        }
        if errors.is_empty() {
            errors.extend(matrix.check().err());
        }
        if errors.is_empty() { Ok(matrix) } else { Err(errors) }
    }

    /// Compares a number of the header with the file.
    fn compare(&mut self, (line, header, stated): (usize, Header, u64)) -> Result<(), WorkloadError> {
        let refused = |reason: String, hint: &str| Err(WorkloadError::line(line, 1, reason, hint));
        let found = match header {
            Header::Nodes if (1..=RANKS_MAX as u64).contains(&stated) => {
                self.hosts = stated as usize;
                return Ok(());
            }
            Header::Nodes => {
                return refused(format!("the file has {stated} nodes"), "a workload has 1 to 65536 ranks");
            }
            Header::Connections => self.connections.len() as u64,
            Header::Triggers => self.triggers.len() as u64,
            Header::Failures => self.failures,
        };
        if found == stated {
            return Ok(());
        }
        refused(format!("the header states {stated}, and the file has {found}"), "correct the number")
    }

    /// Checks hosts and identities.
    fn check(&self) -> Result<(), WorkloadError> {
        if self.hosts == 0 {
            return Err(WorkloadError::whole("the number of nodes is missing", "begin with `Nodes 16`"));
        }
        let mut known = BTreeMap::new();
        for Connection { line, from, to, id, .. } in &self.connections {
            let refused = |reason: String, hint: &str| Err(WorkloadError::line(*line, 1, reason, hint));
            let beyond = [from, to].into_iter().find(|host| usize::from(**host) >= self.hosts);
            if let Some(host) = beyond {
                let reason = format!("there is no host {host}; the header states {}", self.hosts);
                return refused(reason, "hosts count from 0");
            }
            if let Some(first) = id.and_then(|id| known.insert(id, *line)) {
                let reason = format!("the id is used already, in line {first}");
                return refused(reason, "give each connection an id of its own");
            }
        }
        Ok(())
    }

    /// Returns the operations of all hosts.
    fn hosts(&self, notes: &mut Notes) -> Result<Vec<Host>, WorkloadError> {
        let mut builder = Builder::new(self);
        builder.add_connections(notes);
        builder.add_start_times(notes);
        // Tags of notices follow those of connections.
        let starts = triggers::starts(&self.connections, &self.triggers)?;
        for start in &starts {
            builder.add_start(start, notes);
        }
        for _ in 0..self.failures {
            notes.count("failures of links that are left out; a fault script has them");
        }
        Ok(builder.hosts)
    }
}

/// Operations of one host.
#[derive(Clone, Debug, Default)]
struct Host {
    nodes: Vec<Node>,
    /// Line of each node.
    lines: Vec<usize>,
}

impl Host {
    fn add(&mut self, line: usize, work: Work, after: Vec<u32>) -> u32 {
        self.nodes.push(Node { work: Some((0, work)), after, after_begin: Vec::new() });
        self.lines.push(line);
        (self.nodes.len() - 1) as u32
    }

    fn stuck(&self, stuck: &Stuck) -> WorkloadError {
        let hint = "a connection cannot wait for itself; change a trigger";
        match stuck {
            Stuck::Circle(circle) => {
                let mut lines: Vec<_> = circle.iter().map(|node| self.lines[*node as usize]).collect();
                lines.sort_unstable();
                lines.dedup();
                let shown: Vec<_> = lines.iter().take(8).map(usize::to_string).collect();
                let reason =
                    format!("connections wait for each other in a circle: lines {}", shown.join(", "));
                WorkloadError::line(lines.first().copied().unwrap_or(1), 1, reason, hint)
            }
            Stuck::TooLarge => WorkloadError::whole("a host has too many dependencies", hint),
        }
    }
}

/// Send and receive of a connection: index of the node in its host.
#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    send: u32,
    receive: u32,
}

struct Builder<'m> {
    matrix: &'m Matrix,
    hosts: Vec<Host>,
    flows: Vec<Flow>,
    next_tag: u32,
}

impl<'m> Builder<'m> {
    fn new(matrix: &'m Matrix) -> Self {
        Self { matrix, hosts: vec![Host::default(); matrix.hosts], flows: Vec::new(), next_tag: 0 }
    }

    fn tag(&mut self) -> u32 {
        self.next_tag += 1;
        self.next_tag - 1
    }

    fn add_connections(&mut self, notes: &mut Notes) {
        for Connection { line, from, to, bytes, has_more, .. } in &self.matrix.connections {
            let (bytes, tag) = (*bytes, self.tag());
            let send = Work::Send { to: *to, bytes, tag };
            let send = self.hosts[usize::from(*from)].add(*line, send, Vec::new());
            let receive = Work::Receive { from: *from, bytes, tag };
            let receive = self.hosts[usize::from(*to)].add(*line, receive, Vec::new());
            self.flows.push(Flow { send, receive });
            if *has_more {
                notes.count("connections whose priority or addition to another flow is left out");
            }
        }
    }

    /// Adds the computations before connections that start at a time. A host computes from one start to the next.
    fn add_start_times(&mut self, notes: &mut Notes) {
        let timed = self.matrix.connections.iter().enumerate();
        let mut timed: Vec<_> = timed
            .filter_map(|(index, one)| {
                one.start_ps.filter(|start| *start > 0).map(|start| (one.from, start, index))
            })
            .collect();
        timed.sort_unstable();
        for of_host in timed.chunk_by(|one, other| one.0 == other.0) {
            let (mut now_ns, mut before) = (0, None);
            for (from, start_ps, index) in of_host {
                let start_ns = start_ps.div_ceil(PS_PER_NS);
                if start_ps % PS_PER_NS > 0 {
                    notes.count("start times that are rounded up to a nanosecond");
                }
                let host = &mut self.hosts[usize::from(*from)];
                if start_ns > now_ns {
                    let work = Work::Compute { duration_ns: start_ns - now_ns };
                    let line = self.matrix.connections[*index].line;
                    before = Some(host.add(line, work, before.into_iter().collect()));
                    now_ns = start_ns;
                }
                host.nodes[self.flows[*index].send as usize].after.extend(before);
            }
        }
    }

    /// Adds the dependencies of connections that wait for ends, and notices where these are at other hosts.
    fn add_start(&mut self, start: &Start, notes: &mut Notes) {
        let Some(first) = start.connections.first() else { return };
        let home = self.matrix.connections[*first].from;
        let after: Vec<u32> = start.after.iter().map(|end| self.end_at(*end, home, notes)).collect();
        let targets: BTreeSet<u16> =
            start.connections.iter().map(|one| self.matrix.connections[*one].from).collect();
        for host in targets {
            let mut waits = after.clone();
            if host != home {
                notes.count(NOTICE_NOTE);
                waits = vec![self.notice((home, waits), host, self.matrix.connections[*first].line)];
            }
            for connection in &start.connections {
                if self.matrix.connections[*connection].from == host {
                    let send = self.flows[*connection].send as usize;
                    self.hosts[usize::from(host)].nodes[send].after.extend(&waits);
                }
            }
        }
    }

    /// Returns the node at host `home` that ends with the end of a connection.
    fn end_at(&mut self, end: End, home: u16, notes: &mut Notes) -> u32 {
        let Connection { line, from, to, .. } = self.matrix.connections[end.connection];
        let flow = self.flows[end.connection];
        let (host, node) = if end.is_receive { (to, flow.receive) } else { (from, flow.send) };
        if host == home {
            return node;
        }
        notes.count(NOTICE_NOTE);
        self.notice((host, vec![node]), home, line)
    }

    /// Adds a notice of `from`, which waits for nodes there, to `to`. Returns the receive.
    fn notice(&mut self, (from, after): (u16, Vec<u32>), to: u16, line: usize) -> u32 {
        let (bytes, tag) = (NOTICE_BYTES, self.tag());
        self.hosts[usize::from(from)].add(line, Work::Send { to, bytes, tag }, after);
        self.hosts[usize::from(to)].add(line, Work::Receive { from, bytes, tag }, Vec::new())
    }
}

#[cfg(test)]
mod tests;
