//! A device, memory, and queue pairs that are connected with each other.

use std::sync::Arc;

use rackloom_verbs::engine::{
    AsyncEvent, CompletionQueue, Data, Engine, Events, Kind, Loopback, NewQueuePair, NewShared, Receive,
    Region, Remote, Send, Service, State, Transport,
};
use rackloom_verbs::layout::attributes::{AhAttr, GlobalRoute, QpAttr, QpCap, SrqAttr};
use rackloom_verbs::layout::constants::*;
use rackloom_verbs::layout::work::{Sge, Wc};

/// All rights.
pub(crate) const ALL_ACCESS: u32 =
    ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC;
/// Q_Key of datagram queue pairs.
pub(crate) const QKEY: u32 = 0x1111;

/// Registered memory, aligned to eight bytes.
pub(crate) struct Memory {
    values: Vec<u64>,
    pub(crate) key: u32,
}

impl Memory {
    fn base(&self) -> usize {
        self.values.as_ptr() as usize
    }

    /// Returns a part of the memory.
    pub(crate) fn part(&self, offset: usize, length: usize) -> Sge {
        let length = u32::try_from(length).expect("a short part");
        Sge { addr: (self.base() + offset) as u64, length, lkey: self.key }
    }

    /// Returns a position of the memory, as peers name it.
    pub(crate) fn remote(&self, offset: usize) -> Remote {
        Remote { address: (self.base() + offset) as u64, key: self.key }
    }

    /// Returns the bytes.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        std::hint::black_box(&self.values).iter().flat_map(|value| value.to_ne_bytes()).collect()
    }
}

/// Queue pair with a queue for the completions of its sends and one for those of its receives.
pub(crate) struct End {
    pub(crate) number: u32,
    pub(crate) sends: Arc<CompletionQueue>,
    pub(crate) receives: Arc<CompletionQueue>,
}

/// Takes all completions of a queue.
pub(crate) fn drain(queue: &CompletionQueue) -> Vec<Wc> {
    let mut found = Vec::new();
    queue.poll(usize::MAX, |_, completion| found.push(completion)).expect("no overflow");
    found
}

/// Takes all completions of a queue, as numbers and statuses.
pub(crate) fn statuses(queue: &CompletionQueue) -> Vec<(u64, u32)> {
    drain(queue).iter().map(|completion| (completion.wr_id, completion.status)).collect()
}

/// Device of node 0 with one domain.
pub(crate) struct Device {
    pub(crate) engine: Engine,
    pub(crate) domain: u32,
    pub(crate) events: Arc<Events<AsyncEvent>>,
}

impl Device {
    pub(crate) fn new() -> Self {
        Self::with(Box::new(Loopback::new(0)))
    }

    pub(crate) fn with(transport: Box<dyn Transport>) -> Self {
        Self::of(Engine::new(transport, 7))
    }

    pub(crate) fn of(mut engine: Engine) -> Self {
        let domain = engine.make_domain().expect("a domain");
        let events = Arc::new(Events::new().expect("a descriptor"));
        rustix::fs::fcntl_setfl(events.descriptor(), rustix::fs::OFlags::NONBLOCK).expect("a flag");
        Self { engine, domain, events }
    }

    /// Returns memory with the bytes 0, 1, 2, ... from a first byte on.
    pub(crate) fn memory(&mut self, length: usize, first: u8, access: u32) -> Memory {
        let bytes: Vec<u8> =
            (0..length.next_multiple_of(8)).map(|index| first.wrapping_add(index as u8)).collect();
        let values: Vec<u64> =
            bytes.chunks(8).map(|bytes| u64::from_ne_bytes(bytes.try_into().expect("8 bytes"))).collect();
        let base = values.as_ptr() as usize;
        let region = Region { domain: self.domain, base, virtual_base: base as u64, length, access };
        let key = self.engine.register(region).expect("a region");
        Memory { values, key }
    }

    pub(crate) fn queue(&self, capacity: usize) -> Arc<CompletionQueue> {
        Arc::new(CompletionQueue::new(capacity, None, Arc::clone(&self.events)))
    }

    /// Makes a queue pair in the state `Reset`, with eight places in each queue.
    pub(crate) fn end(&mut self, service: Service, shared: Option<u32>) -> End {
        let (sends, receives) = (self.queue(64), self.queue(64));
        self.end_with(service, shared, sends, receives)
    }

    pub(crate) fn end_with(
        &mut self,
        service: Service,
        shared: Option<u32>,
        sends: Arc<CompletionQueue>,
        receives: Arc<CompletionQueue>,
    ) -> End {
        let capacity =
            QpCap { max_send_wr: 8, max_recv_wr: 8, max_send_sge: 4, max_recv_sge: 4, max_inline_data: 64 };
        let new = NewQueuePair {
            domain: self.domain,
            service,
            send_completions: Arc::clone(&sends),
            receive_completions: Arc::clone(&receives),
            shared,
            capacity,
            signals_all: false,
            events: Arc::clone(&self.events),
        };
        let (number, _) = self.engine.make_queue_pair(new).expect("a queue pair");
        self.engine.set_queue_pair_owner(number, number as usize);
        End { number, sends, receives }
    }

    pub(crate) fn shared(&mut self) -> u32 {
        let attributes = SrqAttr { max_wr: 8, max_sge: 2, srq_limit: 0 };
        let new = NewShared { domain: self.domain, attributes, events: Arc::clone(&self.events) };
        let number = self.engine.make_shared(new).expect("a shared queue");
        self.engine.set_shared_owner(number, 7);
        number
    }

    /// Returns the route to this node itself.
    pub(crate) fn route(&self) -> AhAttr {
        let grh = GlobalRoute { dgid: self.engine.addresses(1)[1], sgid_index: 1, ..GlobalRoute::default() };
        AhAttr { grh, is_global: 1, port_num: 1, ..AhAttr::default() }
    }

    /// Returns attributes for all steps of a queue pair with a peer: one retry of each kind, after waits of 10 and 8.192 microseconds.
    pub(crate) fn attributes(&self, peer: u32) -> QpAttr {
        QpAttr {
            path_mtu: MTU_4096,
            qkey: QKEY,
            dest_qp_num: peer,
            qp_access_flags: ALL_ACCESS,
            ah_attr: self.route(),
            max_rd_atomic: 1,
            max_dest_rd_atomic: 1,
            min_rnr_timer: 1,
            port_num: 1,
            timeout: 1,
            retry_cnt: 1,
            rnr_retry: 1,
            ..QpAttr::default()
        }
    }

    /// Takes a step of a queue pair.
    pub(crate) fn step(&mut self, number: u32, attributes: &QpAttr, to: State, mask: u32) {
        let attributes = QpAttr { qp_state: to as u32, ..*attributes };
        let found = self.engine.modify_queue_pair(number, &attributes, mask | QP_STATE, 0);
        assert_eq!(found, Ok(to), "of queue pair {number}");
    }

    /// Brings a connected queue pair to a state between `Init` and `Rts`.
    pub(crate) fn bring(&mut self, number: u32, attributes: &QpAttr, to: State) {
        let steps = [
            (State::Init, QP_PKEY_INDEX | QP_PORT | QP_ACCESS_FLAGS),
            (
                State::Rtr,
                QP_AV | QP_PATH_MTU | QP_DEST_QPN | QP_RQ_PSN | QP_MAX_DEST_RD_ATOMIC | QP_MIN_RNR_TIMER,
            ),
            (State::Rts, QP_TIMEOUT | QP_RETRY_CNT | QP_RNR_RETRY | QP_SQ_PSN | QP_MAX_QP_RD_ATOMIC),
        ];
        for (state, mask) in steps {
            self.step(number, attributes, state, mask);
            if state == to {
                return;
            }
        }
        panic!("{to:?} is no state on this path");
    }

    /// Returns two connected queue pairs.
    pub(crate) fn connected(&mut self) -> (End, End) {
        let (a, b) = (self.end(Service::Rc, None), self.end(Service::Rc, None));
        self.connect(&a, &b);
        (a, b)
    }

    pub(crate) fn connect(&mut self, a: &End, b: &End) {
        for (own, peer) in [(a, b), (b, a)] {
            let attributes = self.attributes(peer.number);
            self.bring(own.number, &attributes, State::Rts);
        }
    }

    /// Returns a datagram queue pair that is ready.
    pub(crate) fn datagram_end(&mut self) -> End {
        let end = self.end(Service::Ud, None);
        let attributes = self.attributes(0);
        self.step(end.number, &attributes, State::Init, QP_PKEY_INDEX | QP_PORT | QP_QKEY);
        self.step(end.number, &attributes, State::Rtr, 0);
        self.step(end.number, &attributes, State::Rts, QP_SQ_PSN);
        end
    }

    pub(crate) fn send(&mut self, end: &End, send: Send) {
        self.engine.post_send(end.number, send, 0).expect("the send is posted");
    }

    pub(crate) fn receive(&mut self, end: &End, id: u64, parts: &[Sge]) {
        let receive = Receive { id, parts: parts.to_vec() };
        self.engine.post_receive(end.number, receive, 0).expect("the receive is posted");
    }

    pub(crate) fn state(&self, end: &End) -> State {
        let attributes = self.engine.query_queue_pair(end.number).expect("a queue pair");
        State::from_value(attributes.qp_state).expect("a state")
    }

    /// Takes all asynchronous events, as kinds.
    pub(crate) fn kinds(&self) -> Vec<u32> {
        std::iter::from_fn(|| self.events.next(|_| ()).ok()).map(|event| event.kind).collect()
    }
}

/// Returns a signalled send.
pub(crate) fn signalled(id: u64, parts: &[Sge], kind: Kind) -> Send {
    let data = Data::Parts(parts.to_vec());
    Send { id, is_signalled: true, is_solicited: false, is_fenced: false, data, kind, ready_ns: 0 }
}

/// Operation of a plain message.
pub(crate) const SEND: Kind = Kind::Send { immediate: None };
