//! Contract of the wires of a rack of one kind. A new wire implements it in a file of its own, and [`super::prepare`] makes it.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};

use rackloom_control::grant::{Grant, NewCable};
use rackloom_plan::Plan;
use rackloom_protocol::NodeId;

use crate::outcome::failure::Failure;

/// Reason for refusing a seat with a link to another host.
pub(crate) const TO_OTHER_HOST: &str =
    "it has a link to another host, which is made only when the rack starts";

/// Wires of a rack of one kind, from the start of the rack to its end.
pub(crate) trait Wiring: Send {
    /// Takes the ends of one member, without those of links to vacant seats. Call it once per member.
    fn seat_wires(&mut self, plan: &Plan, node: NodeId, is_vacant: &dyn Fn(NodeId) -> bool) -> SeatWires;

    /// Makes new cables for process `pid`, which takes the seat of `node` in a running rack. `pids`: current process of each member.
    ///
    /// The process gets all its ends at once. Each neighbour gets the other end of its link over its control socket and replaces the cable at that
    /// port. A vacant neighbour gets no cable: its later holder gets a new one. The supervisor keeps no end, so neighbours detect the death of the
    /// process on their links.
    fn takeover(
        &mut self,
        plan: &Plan,
        node: NodeId,
        pid: u32,
        pids: &[Option<u32>],
    ) -> Result<Takeover, String>;

    /// Returns the environment of a process that gets its wires later.
    fn without_wires(&self) -> Environment {
        Environment::default()
    }

    /// Makes the wires that need all processes. `pids`: process of each member; `None` for a vacant seat. It blocks: call it outside of
    /// asynchronous code.
    fn connect(&self, _plan: &Plan, _pids: &[Option<u32>]) -> Result<(), Failure> {
        Ok(())
    }

    /// Wakes a seat that sleeps, so that it polls its control socket. A seat without a doorbell wakes by itself soon.
    fn wake(&self, _member: usize) {}
}

/// Properties that the process of a seat has from its start.
#[derive(Clone, Debug, Default)]
pub(crate) struct Environment {
    /// Descriptors that stay open across its `exec`.
    pub(crate) inherited: Vec<RawFd>,
    /// True if it needs a network namespace of its own.
    pub(crate) own_network: bool,
}

/// Wires of one seat: the grant, and the environment of its process.
pub(crate) struct SeatWires {
    pub(crate) grant: Grant,
    pub(crate) environment: Environment,
    /// Owners of the descriptors of the grant, until the process has inherited them.
    _ends: Box<dyn Send>,
}

impl SeatWires {
    /// Returns the wires of a seat whose process inherits the descriptors of the grant. `ends` owns them.
    pub(crate) fn new(grant: Grant, without_wires: Environment, ends: impl Send + 'static) -> Self {
        let environment = Environment { inherited: grant.descriptors(), ..without_wires };
        Self { grant, environment, _ends: Box::new(ends) }
    }
}

/// Cables of a takeover: the ends of the process, and those of its neighbours.
pub(crate) struct Takeover {
    /// Grant for the process.
    pub(crate) grant: Grant,
    /// Descriptors of the process, in the order in which the grant names them.
    pub(crate) wires: Vec<OwnedFd>,
    /// Cables for the neighbours, each with its member number and its descriptors.
    pub(crate) neighbours: Vec<(usize, NewCable, Vec<OwnedFd>)>,
}

/// Returns new descriptors of the files. All must be open until it returns.
pub(crate) fn duplicates(descriptors: &[RawFd]) -> io::Result<Vec<OwnedFd>> {
    let duplicate = |fd: &RawFd| {
        // SAFETY: needed because wires are named by number. All are open: the caller holds the ends of links
        // until it has the duplicates, and doorbells belong to the wiring. The borrow ends with the line.
        let wire = unsafe { BorrowedFd::borrow_raw(*fd) };
        wire.try_clone_to_owned()
    };
    descriptors.iter().map(duplicate).collect()
}
