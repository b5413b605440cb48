//! Engine: the calls of programs on the objects of the device.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};

use rackloom::fabric::QueuePairFault;
use rustix::io::Errno;

use super::completion::CompletionQueue;
use super::events::{AsyncEvent, Element, Events};
use super::faults::PairFaults;
use super::flights::Flights;
use super::limits;
use super::memory::{Region, Regions, check_access, is_mapped};
use super::objects::Objects;
use super::queue_pair::QueuePair;
use super::receive::Shared;
use super::rules::{Service, State, check_transition};
use super::transport::{Address, Carried, MESSAGE_NUMBERS, Outcome, Port, Ticket, Transport, Waiter};
use super::work::{Data, Kind, Receive, Send};
use crate::layout::Gid;
use crate::layout::attributes::{QpAttr, QpCap, SrqAttr};
use crate::layout::constants::*;

/// New queue pair.
pub struct NewQueuePair {
    /// Domain.
    pub domain: u32,
    /// Service.
    pub service: Service,
    /// Queue of the completions of sends.
    pub send_completions: Arc<CompletionQueue>,
    /// Queue of the completions of receives.
    pub receive_completions: Arc<CompletionQueue>,
    /// Shared receive queue.
    pub shared: Option<u32>,
    /// Capacities.
    pub capacity: QpCap,
    /// Each send is signalled.
    pub signals_all: bool,
    /// Queue of asynchronous events.
    pub events: Arc<Events<AsyncEvent>>,
}

/// New shared receive queue.
pub struct NewShared {
    /// Domain.
    pub domain: u32,
    /// Capacities.
    pub attributes: SrqAttr,
    /// Queue of asynchronous events.
    pub events: Arc<Events<AsyncEvent>>,
}

/// Device of a process.
pub struct Engine {
    objects: Objects,
    transport: Box<dyn Transport>,
    next_number: u32,
    next_queue_pair: u32,
    /// States of the ports. The first element is of port 1.
    ports: Vec<Port>,
    /// Events of open contexts.
    contexts: Vec<Weak<Events<AsyncEvent>>>,
    /// Faults of queue pairs that are active now.
    faults: Vec<QueuePairFault>,
    /// Number of queue pairs that were made.
    made: u32,
    seed: u64,
}

impl Engine {
    /// Returns a device without objects. The numbers of its queue pairs start at a position that follows from the seed.
    ///
    /// Processes of one node share its addresses, so a queue pair that is meant for another process could be found in this one. With a random seed it
    /// is not found, and the connection has no answer.
    #[must_use]
    pub fn new(transport: Box<dyn Transport>, seed: u64) -> Self {
        let next_queue_pair = first_queue_pair(&transport.queue_pair_numbers(), seed);
        let objects = Objects {
            node: transport.own_node(),
            addresses: (1..=transport.port_count()).map(|port| transport.addresses(port).to_vec()).collect(),
            domains: BTreeMap::new(),
            regions: Regions::default(),
            queue_pairs: BTreeMap::new(),
            shared: BTreeMap::new(),
            stalled: BTreeSet::new(),
            awaiting: BTreeSet::new(),
            delayed: BTreeSet::new(),
        };
        let ports = vec![Port::Active; usize::from(transport.port_count())];
        let (contexts, faults, made) = (Vec::new(), Vec::new(), 0);
        Self { objects, transport, next_number: 1, next_queue_pair, ports, contexts, faults, made, seed }
    }

    /// Adds a context, whose events report changes of the port until they are dropped.
    pub fn add_context(&mut self, events: &Arc<Events<AsyncEvent>>) {
        self.contexts.retain(|context| context.strong_count() > 0);
        self.contexts.push(Arc::downgrade(events));
    }

    /// Returns the number of ports.
    #[must_use]
    pub fn port_count(&self) -> u8 {
        self.transport.port_count()
    }

    /// Returns the state of a port, or `None` if it does not exist.
    #[must_use]
    pub fn port(&self, port: u8) -> Option<Port> {
        self.ports.get(usize::from(port).checked_sub(1)?).copied()
    }

    /// Reports changes of the ports. A device that is removed has no working queue pairs.
    fn watch_ports(&mut self) {
        for number in 1..=self.port_count() {
            let port = self.transport.port(number);
            let before = std::mem::replace(&mut self.ports[usize::from(number) - 1], port);
            if before == port {
                continue;
            }
            let kind = match port {
                Port::Active => EVENT_PORT_ACTIVE,
                Port::Down => EVENT_PORT_ERR,
                // The device is removed once.
                Port::Removed if self.ports.iter().filter(|port| **port == Port::Removed).count() > 1 => {
                    continue;
                }
                Port::Removed => EVENT_DEVICE_FATAL,
            };
            for events in self.contexts.iter().filter_map(Weak::upgrade) {
                events.push(AsyncEvent { kind, element: Element::Port(number) });
            }
            if port == Port::Removed {
                self.objects.queue_pairs.values_mut().for_each(QueuePair::enter_error);
                self.objects.stalled.clear();
            }
        }
    }

    /// Returns the addresses of a port, by their index. Empty for a port that does not exist.
    #[must_use]
    pub fn addresses(&self, port: u8) -> &[Gid] {
        self.objects.addresses_of_port(port)
    }

    fn number(&mut self) -> u32 {
        self.next_number = self.next_number.wrapping_add(1).max(1);
        self.next_number
    }

    /// Makes a protection domain and returns its number.
    ///
    /// # Errors
    /// `ENOMEM` beyond the limit of the device.
    pub fn make_domain(&mut self) -> Result<u32, Errno> {
        if self.objects.domains.len() >= limits::DOMAINS as usize {
            return Err(Errno::NOMEM);
        }
        let number = self.number();
        self.objects.domains.insert(number, 0);
        Ok(number)
    }

    /// Destroys a protection domain.
    ///
    /// # Errors
    /// `EBUSY` while it has objects, `EINVAL` if it does not exist.
    pub fn destroy_domain(&mut self, domain: u32) -> Result<(), Errno> {
        match self.objects.domains.get(&domain) {
            None => Err(Errno::INVAL),
            Some(0) => {
                self.objects.domains.remove(&domain);
                Ok(())
            }
            Some(_) => Err(Errno::BUSY),
        }
    }

    /// Counts an object of a domain that the engine itself does not keep, such as an address handle.
    ///
    /// # Errors
    /// `EINVAL` if the domain does not exist.
    pub fn use_domain(&mut self, domain: u32) -> Result<(), Errno> {
        *self.objects.domains.get_mut(&domain).ok_or(Errno::INVAL)? += 1;
        Ok(())
    }

    /// Takes back [`Self::use_domain`].
    pub fn release_domain(&mut self, domain: u32) {
        if let Some(users) = self.objects.domains.get_mut(&domain) {
            debug_assert!(*users > 0, "each release has its use");
            *users = users.saturating_sub(1);
        }
    }

    /// Registers memory and returns its key, for local and for remote use.
    ///
    /// # Errors
    /// `EINVAL` for no bytes or rights that exclude each other, `EOPNOTSUPP` for unknown rights, `EFAULT` if a page is not mapped.
    pub fn register(&mut self, region: Region) -> Result<u32, Errno> {
        check_access(region.access)?;
        if region.length == 0 {
            return Err(Errno::INVAL);
        }
        if !is_mapped(region.base, region.length) {
            return Err(Errno::FAULT);
        }
        self.use_domain(region.domain)?;
        let key = self.objects.regions.insert(region).inspect_err(|_| self.release_domain(region.domain))?;
        if let Err(error) = self.transport.register(key, &region) {
            self.objects.regions.remove(key);
            self.release_domain(region.domain);
            return Err(error);
        }
        Ok(key)
    }

    /// Deregisters memory. No operation accesses it afterwards.
    ///
    /// # Errors
    /// `EINVAL` if no region has the key.
    pub fn deregister(&mut self, key: u32) -> Result<(), Errno> {
        let region = self.objects.regions.remove(key).ok_or(Errno::INVAL)?;
        self.transport.deregister(key);
        self.release_domain(region.domain);
        Ok(())
    }

    /// Makes a shared receive queue and returns its number.
    ///
    /// # Errors
    /// `EINVAL` for capacities beyond the limits or an unknown domain, `ENOMEM` beyond the number of such queues.
    pub fn make_shared(&mut self, new: NewShared) -> Result<u32, Errno> {
        let NewShared { domain, attributes, events } = new;
        let fits =
            (1..=limits::QUEUE_WORK).contains(&attributes.max_wr) && attributes.max_sge <= limits::PARTS;
        if !fits {
            return Err(Errno::INVAL);
        }
        if self.objects.shared.len() >= limits::SHARED as usize {
            return Err(Errno::NOMEM);
        }
        self.use_domain(domain)?;
        let number = self.number();
        // The limit is set by a modification only.
        let attributes = SrqAttr { srq_limit: 0, max_sge: attributes.max_sge.max(1), ..attributes };
        let shared = Shared { domain, attributes, receives: VecDeque::new(), owner: 0, events, users: 0 };
        self.objects.shared.insert(number, shared);
        Ok(number)
    }

    /// Sets the value that events about a shared receive queue carry.
    pub fn set_shared_owner(&mut self, number: u32, owner: usize) {
        if let Some(shared) = self.objects.shared.get_mut(&number) {
            shared.owner = owner;
        }
    }

    /// Changes the limit of a shared receive queue.
    ///
    /// # Errors
    /// `EINVAL` for a limit beyond the capacity, `EOPNOTSUPP` for another capacity.
    pub fn modify_shared(&mut self, number: u32, attributes: SrqAttr, mask: u32) -> Result<(), Errno> {
        let shared = self.objects.shared.get_mut(&number).ok_or(Errno::INVAL)?;
        if mask & !(SRQ_LIMIT | SRQ_MAX_WR) != 0 {
            return Err(Errno::INVAL);
        }
        if mask & SRQ_MAX_WR != 0 {
            return Err(Errno::OPNOTSUPP);
        }
        if mask & SRQ_LIMIT != 0 {
            if attributes.srq_limit > shared.attributes.max_wr {
                return Err(Errno::INVAL);
            }
            shared.attributes.srq_limit = attributes.srq_limit;
        }
        Ok(())
    }

    /// Returns the attributes of a shared receive queue.
    ///
    /// # Errors
    /// `EINVAL` if it does not exist.
    pub fn query_shared(&self, number: u32) -> Result<SrqAttr, Errno> {
        self.objects.shared.get(&number).map(|shared| shared.attributes).ok_or(Errno::INVAL)
    }

    /// Destroys a shared receive queue.
    ///
    /// # Errors
    /// `EBUSY` while a queue pair uses it.
    pub fn destroy_shared(&mut self, number: u32) -> Result<(), Errno> {
        let shared = self.objects.shared.get(&number).ok_or(Errno::INVAL)?;
        if shared.users > 0 {
            return Err(Errno::BUSY);
        }
        let domain = shared.domain;
        self.objects.shared.remove(&number);
        self.release_domain(domain);
        Ok(())
    }

    /// Makes a queue pair in the state `Reset`. Returns its number and its capacities.
    ///
    /// # Errors
    /// `EINVAL` for capacities beyond the limits, an unknown domain or an unknown shared queue, `ENOMEM` beyond the number of queue pairs.
    pub fn make_queue_pair(&mut self, new: NewQueuePair) -> Result<(u32, QpCap), Errno> {
        let wanted = new.capacity;
        let fits = wanted.max_send_wr <= limits::QUEUE_WORK
            && wanted.max_recv_wr <= limits::QUEUE_WORK
            && wanted.max_send_sge <= limits::PARTS
            && wanted.max_recv_sge <= limits::PARTS
            && wanted.max_inline_data <= limits::INLINE_BYTES;
        if !fits {
            return Err(Errno::INVAL);
        }
        if self.objects.queue_pairs.len() >= limits::QUEUE_PAIRS as usize {
            return Err(Errno::NOMEM);
        }
        if new.shared.is_some_and(|shared| !self.objects.shared.contains_key(&shared)) {
            return Err(Errno::INVAL);
        }
        self.use_domain(new.domain)?;
        let mut capacity = wanted;
        if new.shared.is_some() {
            (capacity.max_recv_wr, capacity.max_recv_sge) = (0, 0);
        }
        let number = self.free_queue_pair();
        new.send_completions.users.fetch_add(1, Ordering::Relaxed);
        new.receive_completions.users.fetch_add(1, Ordering::Relaxed);
        if let Some(shared) = new.shared.and_then(|shared| self.objects.shared.get_mut(&shared)) {
            shared.users += 1;
        }
        self.made = self.made.saturating_add(1);
        let mut faults = PairFaults::new(self.made, self.seed);
        faults.set(&self.faults);
        let pair = QueuePair {
            number,
            domain: new.domain,
            service: new.service,
            send_completions: new.send_completions,
            receive_completions: new.receive_completions,
            shared: new.shared,
            capacity,
            signals_all: new.signals_all,
            owner: 0,
            events: new.events,
            state: State::Reset,
            attributes: QpAttr::default(),
            peer: Address { node: None, queue_pair: 0 },
            sends: VecDeque::new(),
            receives: VecDeque::new(),
            places: Arc::new(AtomicU32::new(0)),
            unreported: 0,
            flights: Flights::default(),
            answer_by_ns: None,
            next_message: 0,
            stall: None,
            reports_drain: false,
            is_established: false,
            faults,
        };
        self.objects.queue_pairs.insert(number, pair);
        Ok((number, capacity))
    }

    /// Returns a number that no queue pair has. Numbers are used again as late as possible.
    fn free_queue_pair(&mut self) -> u32 {
        loop {
            let number = self.next_queue_pair;
            let numbers = self.transport.queue_pair_numbers();
            self.next_queue_pair = if number == *numbers.end() { *numbers.start() } else { number + 1 };
            if !self.objects.queue_pairs.contains_key(&number) {
                return number;
            }
        }
    }

    /// Sets the value that events about a queue pair carry.
    pub fn set_queue_pair_owner(&mut self, number: u32, owner: usize) {
        if let Some(pair) = self.objects.queue_pairs.get_mut(&number) {
            pair.owner = owner;
        }
    }

    /// Destroys a queue pair. Its work requests and completions are discarded.
    ///
    /// # Errors
    /// `EINVAL` if it does not exist.
    pub fn destroy_queue_pair(&mut self, number: u32) -> Result<(), Errno> {
        let mut pair = self.objects.queue_pairs.remove(&number).ok_or(Errno::INVAL)?;
        pair.reset();
        self.objects.stalled.remove(&number);
        pair.send_completions.users.fetch_sub(1, Ordering::Relaxed);
        pair.receive_completions.users.fetch_sub(1, Ordering::Relaxed);
        if let Some(shared) = pair.shared.and_then(|shared| self.objects.shared.get_mut(&shared)) {
            shared.users -= 1;
        }
        self.release_domain(pair.domain);
        Ok(())
    }

    /// Returns the attributes of a queue pair, its state and capacities among them.
    ///
    /// # Errors
    /// `EINVAL` if it does not exist.
    pub fn query_queue_pair(&self, number: u32) -> Result<QpAttr, Errno> {
        let pair = self.objects.queue_pairs.get(&number).ok_or(Errno::INVAL)?;
        let state = pair.state as u32;
        let is_draining = pair.state == State::Sqd && (pair.stall.is_some() || !pair.flights.is_empty());
        Ok(QpAttr {
            qp_state: state,
            cur_qp_state: state,
            cap: pair.capacity,
            sq_draining: u8::from(is_draining),
            ..pair.attributes
        })
    }

    /// Changes attributes and state of a queue pair, and returns the new state. A refused change changes nothing.
    ///
    /// # Errors
    /// `EINVAL` for a transition or attributes that the state rules do not allow, and for values out of range.
    pub fn modify_queue_pair(
        &mut self,
        number: u32,
        attributes: &QpAttr,
        mask: u32,
        now_ns: u64,
    ) -> Result<State, Errno> {
        let values = self.objects.check_values(attributes, mask);
        let pair = self.objects.queue_pairs.get_mut(&number).ok_or(Errno::INVAL)?;
        let to = if mask & QP_STATE != 0 {
            State::from_value(attributes.qp_state).ok_or(Errno::INVAL)?
        } else {
            pair.state
        };
        let is_other = mask & QP_CUR_STATE != 0 && attributes.cur_qp_state != pair.state as u32;
        if is_other || check_transition(pair.service, pair.state, to, mask).is_err() {
            return Err(Errno::INVAL);
        }
        values?;
        // A queue pair stays at its port.
        let port = if mask & QP_PORT != 0 { attributes.port_num } else { pair.attributes.port_num };
        if mask & QP_AV != 0 && attributes.ah_attr.port_num != port {
            return Err(Errno::INVAL);
        }
        match to {
            State::Reset => pair.reset(),
            State::Err => pair.enter_error(),
            _ => {
                merge(&mut pair.attributes, attributes, mask);
                if mask & QP_RQ_PSN != 0 {
                    pair.next_message = attributes.rq_psn % MESSAGE_NUMBERS;
                }
                if mask & QP_SQ_PSN != 0 {
                    pair.flights.set_next_message(attributes.sq_psn);
                }
                pair.reports_drain = to == State::Sqd
                    && pair.state == State::Rts
                    && mask & QP_EN_SQD_ASYNC_NOTIFY != 0
                    && attributes.en_sqd_async_notify != 0;
                pair.state = to;
                if pair.service == Service::Rc && mask & (QP_AV | QP_DEST_QPN) != 0 {
                    let node = self.transport.node_of(&pair.attributes.ah_attr.grh.dgid);
                    pair.peer = Address { node, queue_pair: pair.attributes.dest_qp_num };
                }
                pair.report_drain();
            }
        }
        if matches!(to, State::Reset | State::Err) {
            self.objects.stalled.remove(&number);
        }
        self.run(number, now_ns);
        // Peers may wait for this queue pair.
        self.wake(now_ns);
        Ok(to)
    }

    /// Adds a send and starts it, unless earlier ones wait.
    ///
    /// # Errors
    /// `EINVAL` in a state without sends, or for a request that the queue pair does not allow, `ENOMEM` if the send queue is full.
    pub fn post_send(&mut self, number: u32, send: Send, now_ns: u64) -> Result<(), Errno> {
        let pair = self.objects.queue_pairs.get_mut(&number).ok_or(Errno::INVAL)?;
        if matches!(pair.state, State::Reset | State::Init | State::Rtr) {
            return Err(Errno::INVAL);
        }
        check_send(pair, &send)?;
        if pair.places.load(Ordering::Relaxed) >= pair.capacity.max_send_wr {
            return Err(Errno::NOMEM);
        }
        pair.places.fetch_add(1, Ordering::Relaxed);
        let delay_ns = pair.faults.delay_ns();
        let ready_ns = if delay_ns > 0 { now_ns.saturating_add(delay_ns) } else { 0 };
        pair.sends.push_back(Send { ready_ns, ..send });
        if matches!(pair.state, State::Err | State::Sqe) {
            pair.flush_sends();
        } else {
            self.run(number, now_ns);
        }
        Ok(())
    }

    /// Adds a receive to a queue pair.
    ///
    /// # Errors
    /// `EINVAL` in the state `Reset`, with a shared receive queue, or with too many parts, `ENOMEM` if the receive queue is full.
    pub fn post_receive(&mut self, number: u32, receive: Receive, now_ns: u64) -> Result<(), Errno> {
        let pair = self.objects.queue_pairs.get_mut(&number).ok_or(Errno::INVAL)?;
        let fits = receive.parts.len() <= pair.capacity.max_recv_sge as usize;
        if pair.state == State::Reset || pair.shared.is_some() || !fits {
            return Err(Errno::INVAL);
        }
        if pair.receives.len() >= pair.capacity.max_recv_wr as usize {
            return Err(Errno::NOMEM);
        }
        pair.receives.push_back(receive);
        if pair.state == State::Err {
            pair.flush_receives();
        }
        self.wake(now_ns);
        Ok(())
    }

    /// Adds a receive to a shared receive queue.
    ///
    /// # Errors
    /// `EINVAL` with too many parts, `ENOMEM` if the queue is full.
    pub fn post_shared(&mut self, number: u32, receive: Receive, now_ns: u64) -> Result<(), Errno> {
        let shared = self.objects.shared.get_mut(&number).ok_or(Errno::INVAL)?;
        if receive.parts.len() > shared.attributes.max_sge as usize {
            return Err(Errno::INVAL);
        }
        if shared.receives.len() >= shared.attributes.max_wr as usize {
            return Err(Errno::NOMEM);
        }
        shared.receives.push_back(receive);
        self.wake(now_ns);
        Ok(())
    }

    /// Gives the outcome of a request that the transport had left pending.
    pub fn finish(&mut self, ticket: Ticket, outcome: Outcome, now_ns: u64) {
        self.objects.settle(ticket, outcome, now_ns);
        self.run(ticket.queue_pair, now_ns);
    }

    /// Executes requests of peers that have arrived, and continues requests of this process.
    pub fn poll(&mut self, now_ns: u64) {
        for (ticket, outcome) in self.transport.poll(&mut self.objects) {
            self.finish(ticket, outcome, now_ns);
        }
        self.watch_ports();
        if let Some(faults) = self.transport.take_queue_pair_faults() {
            self.objects.queue_pairs.values_mut().for_each(|pair| pair.faults.set(&faults));
            self.faults = faults;
        }
    }

    /// Returns the transport.
    #[must_use]
    pub fn transport(&self) -> &dyn Transport {
        &*self.transport
    }

    /// Returns the transport, for notes between processes.
    pub fn transport_mut(&mut self) -> &mut dyn Transport {
        &mut *self.transport
    }

    /// Returns a function that waits until [`Self::poll`] has work. `None` if it never has.
    #[must_use]
    pub fn waiter(&self) -> Option<Waiter> {
        self.transport.waiter()
    }

    /// Has other threads place data of peers at once from now on, until the next [`Self::poll`].
    pub fn hand_over(&mut self) {
        self.transport.hand_over();
    }

    /// Returns true if [`Self::poll`] is due within milliseconds, also without an event for the waiter.
    #[must_use]
    pub fn is_pressing(&self) -> bool {
        self.transport.is_pressing()
    }

    /// Returns true if peers have everything that this process has sent. A process that ends before leaves peers without replies.
    #[must_use]
    pub fn is_flushed(&self) -> bool {
        self.transport.is_flushed()
    }

    /// Returns the time at which [`Self::expire`] has work, or `None`.
    #[must_use]
    pub fn next_deadline_ns(&self) -> Option<u64> {
        self.objects.next_deadline_ns()
    }

    /// Repeats or fails sends whose wait has ended.
    pub fn expire(&mut self, now_ns: u64) {
        for number in self.objects.expire(now_ns) {
            self.run(number, now_ns);
        }
    }

    /// Repeats sends that wait for a target that may have become ready.
    fn wake(&mut self, now_ns: u64) {
        for number in self.objects.wake_stalled() {
            self.run(number, now_ns);
        }
    }

    /// Starts sends of a queue pair until none may start.
    fn run(&mut self, number: u32, now_ns: u64) {
        while let Some(request) = self.objects.next_request(number, &*self.transport, now_ns) {
            let ticket = request.ticket;
            match self.transport.carry(request, &mut self.objects) {
                Carried::Done(outcome) => self.objects.settle(ticket, outcome, now_ns),
                Carried::Pending => self.objects.note_pending(number, now_ns),
            }
        }
    }
}

/// Returns the first number of a queue pair for a seed.
fn first_queue_pair(numbers: &RangeInclusive<u32>, seed: u64) -> u32 {
    let count = u64::from(numbers.end() - numbers.start() + 1);
    numbers.start() + u32::try_from(seed % count).expect("a number below the largest one")
}

/// Takes over the attributes of a mask.
fn merge(current: &mut QpAttr, new: &QpAttr, mask: u32) {
    macro_rules! take {
        ($($bit:ident => $($field:ident),+;)*) => {
            $(if mask & $bit != 0 { $(current.$field = new.$field;)+ })*
        };
    }
    take! {
        QP_ACCESS_FLAGS => qp_access_flags;
        QP_PKEY_INDEX => pkey_index;
        QP_PORT => port_num;
        QP_QKEY => qkey;
        QP_AV => ah_attr;
        QP_PATH_MTU => path_mtu;
        QP_TIMEOUT => timeout;
        QP_RETRY_CNT => retry_cnt;
        QP_RNR_RETRY => rnr_retry;
        QP_RQ_PSN => rq_psn;
        QP_MAX_QP_RD_ATOMIC => max_rd_atomic;
        QP_MIN_RNR_TIMER => min_rnr_timer;
        QP_SQ_PSN => sq_psn;
        QP_MAX_DEST_RD_ATOMIC => max_dest_rd_atomic;
        QP_PATH_MIG_STATE => path_mig_state;
        QP_DEST_QPN => dest_qp_num;
    }
}

/// Checks that a queue pair allows a send.
fn check_send(pair: &QueuePair, send: &Send) -> Result<(), Errno> {
    let is_datagram = matches!(send.kind, Kind::Datagram { .. });
    let fits_service = is_datagram == (pair.service == Service::Ud);
    let fits_data = match &send.data {
        Data::Parts(parts) => parts.len() <= pair.capacity.max_send_sge as usize,
        Data::Inline(bytes) => bytes.len() <= pair.capacity.max_inline_data as usize && !send.kind.is_fetch(),
    };
    let has_depth = !send.kind.is_fetch() || pair.attributes.max_rd_atomic > 0;
    if fits_service && fits_data && has_depth { Ok(()) } else { Err(Errno::INVAL) }
}
