//! A rack of devices, and connections between them.

use std::time::{Duration, Instant};

use rackloom::fabric::{Fabric, Node, Plan};
use rackloom_verbs::engine::{CompletionQueue, Engine, Service, State};
use rackloom_verbs::fabric::{Directory, FabricTransport};
use rackloom_verbs::layout::attributes::{AhAttr, GlobalRoute, QpAttr};
use rackloom_verbs::layout::constants::*;
use rackloom_verbs::layout::work::Wc;

use crate::support::{Device, End, drain};

const TIMEOUT: Duration = Duration::from_secs(60);

/// Devices by the number of their node.
pub(crate) struct Rack {
    pub(crate) devices: Vec<Device>,
    pub(crate) nodes: Vec<Node>,
    begun: Instant,
}

impl Rack {
    /// Brings up the rack of a file, with a device on each node. `of`: processes of each seat.
    pub(crate) fn of(text: &str, of: &[&[usize]]) -> Self {
        let fabric = Fabric::local(&Plan::parse(text, "test").expect("a plan")).expect("a rack");
        let nodes = fabric.into_nodes();
        let processes = of.iter().map(|seat| seat.iter().map(|index| nodes[*index].id()).collect()).collect();
        let directory = Directory::new(processes);
        let devices = (7..).zip(&nodes).map(|(seed, node)| {
            let transport = FabricTransport::new(node.clone(), directory.clone(), 1).expect("memory");
            Device::of(Engine::new(Box::new(transport), seed))
        });
        Self { devices: devices.collect(), nodes, begun: Instant::now() }
    }

    /// Two nodes with a process each.
    pub(crate) fn two(more: &str) -> Self {
        Self::of(&format!("name: two\nshape: {{ring: {{nodes: 2}}}}\n{more}"), &[&[0], &[1]])
    }

    pub(crate) fn now_ns(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_nanos()).expect("a test is short")
    }

    /// Advances all devices once.
    pub(crate) fn poll(&mut self) {
        let now_ns = self.now_ns();
        for device in &mut self.devices {
            device.engine.poll(now_ns);
            device.engine.expire(now_ns);
        }
    }

    /// Advances all devices until there is a result.
    pub(crate) fn until<T>(&mut self, what: &str, mut look: impl FnMut(&mut Self) -> Option<T>) -> T {
        let begun = Instant::now();
        loop {
            if let Some(found) = look(self) {
                return found;
            }
            assert!(begun.elapsed() < TIMEOUT, "{what}");
            self.poll();
        }
    }

    /// Returns the next completions of a queue, as many as `count`.
    pub(crate) fn completions(&mut self, queue: &CompletionQueue, count: usize) -> Vec<Wc> {
        let mut found = Vec::new();
        self.until("a completion", |_| {
            found.extend(drain(queue));
            (found.len() >= count).then_some(())
        });
        found
    }

    /// Returns the route of device `from` to the node of device `to`.
    pub(crate) fn route(&self, to: usize) -> AhAttr {
        let dgid = self.devices[to].engine.addresses(1)[1];
        let grh = GlobalRoute { dgid, sgid_index: 1, ..GlobalRoute::default() };
        AhAttr { grh, is_global: 1, port_num: 1, ..AhAttr::default() }
    }

    pub(crate) fn attributes(&self, own: usize, to: usize, peer: &End) -> QpAttr {
        // 4.3 s for an answer, 67 ms before a repetition, and as long as needed for a receive.
        QpAttr {
            ah_attr: self.route(to),
            timeout: 14,
            retry_cnt: 7,
            rnr_retry: 7,
            ..self.devices[own].attributes(peer.number)
        }
    }

    /// Makes a connected queue pair on each of two devices.
    pub(crate) fn connected(&mut self, a: usize, b: usize) -> (End, End) {
        let ends = (self.devices[a].end(Service::Rc, None), self.devices[b].end(Service::Rc, None));
        for (own, to, end, peer) in [(a, b, &ends.0, &ends.1), (b, a, &ends.1, &ends.0)] {
            let attributes = self.attributes(own, to, peer);
            self.devices[own].bring(end.number, &attributes, State::Rts);
        }
        ends
    }

    /// Posts a send of a device.
    pub(crate) fn send(&mut self, device: usize, end: &End, send: rackloom_verbs::engine::Send) {
        let now_ns = self.now_ns();
        self.devices[device].engine.post_send(end.number, send, now_ns).expect("the send is posted");
    }
}

/// Checks that all completions are successes, and returns their numbers.
pub(crate) fn successes(completions: &[Wc]) -> Vec<u64> {
    assert!(completions.iter().all(|completion| completion.status == 0), "{completions:?}");
    completions.iter().map(|completion| completion.wr_id).collect()
}

pub(crate) use rackloom_verbs::engine::Kind;

/// Address of a datagram queue pair.
pub(crate) fn datagram(route: AhAttr, queue_pair: u32, immediate: Option<u32>) -> Kind {
    Kind::Datagram { route, queue_pair, key: crate::support::QKEY, immediate }
}

/// All rights.
pub(crate) const ALL: u32 =
    ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC;
