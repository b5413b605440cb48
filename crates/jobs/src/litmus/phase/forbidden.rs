//! Accesses that an owner must refuse: each with the right typed error, and without a change of any byte.
//!
//! Each attempt has exactly one fault, so exactly one error is right. The owner's check after the round detects changed
//! bytes: the target of each attempt is guarded, patterned, or both. The owner also counts the refusals that its
//! endpoint reported.

use rackloom_protocol::{
    Atomic, AtomicKind, Completion, Key, LocalRange, NodeId, OperationError, RegionId, RemoteAddress, Width,
};

use super::super::findings::{Expected, Findings};
use super::super::lanes::Lane;
use super::super::layout::{DATA, LANES, READABLE, SMALL_LANE_BYTES};
use super::super::run_view::RunView;
use super::{Phase, Poll, Sweeper};
use crate::ranks::request::{Body, Outcome, Request, Tag};

/// Number of a region that does not exist.
const NOWHERE: RegionId = RegionId(99);
/// Length of the puts and gets in bytes: more than one frame of many wires.
const BULK_BYTES: u64 = 4500;
/// Length of the loads in bytes, if that many may be loaded at once: more than one request.
const LOAD_BYTES: u64 = 300;

/// Operation of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attempt {
    Store,
    StorePosted,
    Load,
    FetchAdd,
    Put,
    Get,
    /// The flush that must report the failure of the posted store before it.
    Flush,
}

/// Target of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Aim {
    WrongKey,
    /// The last bytes are outside of the region.
    OverTheEnd,
    BehindTheEnd,
    /// Offset and length overflow.
    AddressOverflow,
    ReadOnly,
    Private,
    Nowhere,
    Odd,
    /// The address is right, but the owner is of another tenant.
    OtherTenant,
}

/// Access that its owner must refuse.
#[derive(Clone, Copy, Debug)]
struct ForbiddenAccess {
    attempt: Attempt,
    aim: Aim,
    /// Error that the access must end with.
    expected: OperationError,
}

const fn forbidden(attempt: Attempt, aim: Aim, expected: OperationError) -> ForbiddenAccess {
    ForbiddenAccess { attempt, aim, expected }
}

const AT_PEERS: [ForbiddenAccess; 16] = [
    forbidden(Attempt::Store, Aim::WrongKey, OperationError::BadKey),
    forbidden(Attempt::Store, Aim::OverTheEnd, OperationError::OutOfBounds),
    forbidden(Attempt::Store, Aim::AddressOverflow, OperationError::OutOfBounds),
    forbidden(Attempt::Store, Aim::ReadOnly, OperationError::PermissionDenied),
    forbidden(Attempt::Store, Aim::Nowhere, OperationError::NoSuchRegion),
    forbidden(Attempt::Load, Aim::WrongKey, OperationError::BadKey),
    forbidden(Attempt::Load, Aim::BehindTheEnd, OperationError::OutOfBounds),
    forbidden(Attempt::Load, Aim::Private, OperationError::PermissionDenied),
    forbidden(Attempt::FetchAdd, Aim::ReadOnly, OperationError::PermissionDenied),
    forbidden(Attempt::FetchAdd, Aim::Odd, OperationError::Misaligned),
    forbidden(Attempt::Put, Aim::OverTheEnd, OperationError::OutOfBounds),
    forbidden(Attempt::Put, Aim::ReadOnly, OperationError::PermissionDenied),
    forbidden(Attempt::Get, Aim::WrongKey, OperationError::BadKey),
    forbidden(Attempt::Get, Aim::Private, OperationError::PermissionDenied),
    forbidden(Attempt::StorePosted, Aim::WrongKey, OperationError::BadKey),
    forbidden(Attempt::Flush, Aim::WrongKey, OperationError::EarlierFailure),
];

const AT_OTHER_TENANTS: [ForbiddenAccess; 4] = [
    forbidden(Attempt::Store, Aim::OtherTenant, OperationError::WrongTenant),
    forbidden(Attempt::Load, Aim::OtherTenant, OperationError::WrongTenant),
    forbidden(Attempt::FetchAdd, Aim::OtherTenant, OperationError::WrongTenant),
    forbidden(Attempt::Put, Aim::OtherTenant, OperationError::WrongTenant),
];

/// Returns the accesses to this target.
fn attempts(view: &RunView, target: u16) -> &'static [ForbiddenAccess] {
    if view.peers.contains(&target) { &AT_PEERS } else { &AT_OTHER_TENANTS }
}

fn bytes(view: &RunView, attempt: Attempt) -> u64 {
    match attempt {
        Attempt::Put | Attempt::Get => BULK_BYTES,
        // The caller's own endpoint would refuse a longer load before it reaches the owner.
        Attempt::Load => LOAD_BYTES.min(view.settings.store_bytes_max),
        _ => 8,
    }
}

fn address(view: &RunView, target: u16, attempt: Attempt, aim: Aim) -> RemoteAddress {
    let data_bytes = view.layout.region_bytes(DATA);
    // The data region begins with a guard.
    let (region, offset) = match aim {
        Aim::WrongKey | Aim::OtherTenant => (DATA, 0),
        Aim::OverTheEnd => (DATA, data_bytes - bytes(view, attempt).min(data_bytes) + 4),
        Aim::BehindTheEnd => (DATA, data_bytes),
        Aim::AddressOverflow => (DATA, u64::MAX - 3),
        Aim::ReadOnly => (READABLE, 0),
        Aim::Private => (LANES, 0),
        Aim::Nowhere => (NOWHERE, 0),
        Aim::Odd => (DATA, 1),
    };
    let address = view.address(target, region, offset);
    let key = if aim == Aim::WrongKey { Key(address.key.0 ^ 1) } else { address.key };
    RemoteAddress { key, ..address }
}

/// Accesses that must fail.
#[derive(Debug, Default)]
pub(crate) struct Forbidden {
    sweeper: Sweeper,
    targets: Vec<u16>,
    lane: Option<Lane>,
    flushes_to_repeat: Vec<u16>,
}

impl Forbidden {
    fn body(&mut self, poll: &mut Poll<'_>, peer: u16, attempt: Attempt, aim: Aim) -> Option<Body> {
        let target = address(poll.view, peer, attempt, aim);
        let data = vec![0xff; bytes(poll.view, attempt) as usize];
        Some(match attempt {
            Attempt::Store => Body::Store { target, data, completion: Completion::Visible },
            Attempt::StorePosted => Body::Store { target, data, completion: Completion::Accepted },
            Attempt::FetchAdd => {
                let width = Width::Eight;
                let atomic = Atomic { kind: AtomicKind::FetchAdd, width, operand: u64::MAX / 3, compare: 0 };
                Body::Atomic { target, atomic }
            }
            Attempt::Load => Body::Load { target, into: self.local(poll, attempt)? },
            Attempt::Put => Body::Put { target, source: self.local(poll, attempt)?, signal: None },
            Attempt::Get => Body::Get { target, into: self.local(poll, attempt)? },
            Attempt::Flush => Body::Flush { target: Some(NodeId(peer)) },
        })
    }

    /// Returns the range in the one lane that serves all attempts. Nothing may ever be written into the lane, and data
    /// read from it must never arrive.
    fn local(&mut self, poll: &mut Poll<'_>, attempt: Attempt) -> Option<LocalRange> {
        if self.lane.is_none() {
            self.lane = poll.lanes.acquire(SMALL_LANE_BYTES, 0);
            let guarded = self.lane?.guarded();
            poll.fill(guarded, poll.view.lane_pattern(), guarded.offset);
        }
        Some(LocalRange { region: LANES, offset: self.lane?.offset(), length: bytes(poll.view, attempt) })
    }

    fn submit_repeated_flushes(&mut self, poll: &mut Poll<'_>) {
        while let Some(peer) = self.flushes_to_repeat.pop() {
            let tag = Tag::Phase { peer, item: u32::MAX };
            poll.issuer.submit(Request::new(tag, Body::Flush { target: Some(NodeId(peer)) }));
        }
    }
}

impl Phase for Forbidden {
    fn name(&self) -> &'static str {
        "forbidden accesses"
    }

    fn submit(&mut self, poll: &mut Poll<'_>) -> bool {
        let view = poll.view;
        if self.targets.is_empty() {
            self.targets = view.peers.iter().copied().chain(view.other_tenants()).collect();
        }
        self.submit_repeated_flushes(poll);
        while poll.issuer.has_space() {
            let targets = std::mem::take(&mut self.targets);
            let next = self.sweeper.current(&targets, |target| attempts(view, target).len());
            self.targets = targets;
            let Some((peer, item)) = next else { return self.flushes_to_repeat.is_empty() };
            let ForbiddenAccess { attempt, aim, expected } = attempts(view, peer)[item as usize];
            let Some(body) = self.body(poll, peer, attempt, aim) else { break };
            let tag = Tag::Phase { peer, item };
            poll.issuer.submit(Request::forbidden(tag, body, expected));
            self.sweeper.take();
        }
        false
    }

    fn succeeded(&mut self, poll: &mut Poll<'_>, _outcome: &Outcome, peer: u16, item: u32) {
        let attempt = attempts(poll.view, peer).get(item as usize).map(|access| access.attempt);
        if attempt == Some(Attempt::Flush) {
            // A flush reports an earlier failure once.
            self.flushes_to_repeat.push(peer);
        }
    }

    fn look(&mut self, poll: &mut Poll<'_>) -> bool {
        if poll.issuer.is_idle()
            && self.flushes_to_repeat.is_empty()
            && let Some(lane) = self.lane.take()
        {
            let pattern = poll.view.lane_pattern();
            let guarded = lane.guarded();
            let expected = Expected::Exactly(pattern, guarded.offset);
            poll.findings.check(poll.memory, guarded, expected, || "lane of refused reads".to_owned());
            poll.lanes.release(lane);
        }
        true
    }
}

/// Describes an attempt.
pub(crate) fn describe_forbidden(view: &RunView, outcome: &Outcome) -> String {
    let Tag::Phase { peer, item } = outcome.tag else { return outcome.kind.name().to_owned() };
    match attempts(view, peer).get(item as usize) {
        Some(ForbiddenAccess { attempt, aim, expected }) => {
            format!("{attempt:?} at {aim:?}, which must be refused ({expected}),")
        }
        None => outcome.kind.name().to_owned(),
    }
}

/// Checks at the owner that its endpoint reported the refusals of every peer, in every round.
pub(crate) fn check_refusals(view: &RunView, findings: &mut Findings) {
    let rounds = view.settings.rounds;
    for peer in &view.peers {
        for error in [
            OperationError::BadKey,
            OperationError::OutOfBounds,
            OperationError::PermissionDenied,
            OperationError::NoSuchRegion,
        ] {
            let reaches_owner = |access: &&ForbiddenAccess| {
                // If offset and length overflow, the caller's own endpoint may detect it first.
                access.expected == error && access.aim != Aim::AddressOverflow
            };
            let attempted = AT_PEERS.iter().filter(reaches_owner).count() as u64;
            let least = attempted * u64::from(rounds);
            let reported = findings.refused.get(&(*peer, error)).copied().unwrap_or(0);
            if reported < least {
                let name = view.name(*peer);
                findings.fail(format!(
                    "{reported} of {least} refusals ({error}) of {name} were reported to the owner"
                ));
            }
        }
    }
}
