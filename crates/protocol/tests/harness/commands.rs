//! Constructors of commands.

use rackloom_protocol::*;

use super::{KEY, REGION};

pub fn at(node: u16, offset: u64) -> RemoteAddress {
    RemoteAddress { node: NodeId(node), region: REGION, offset, key: KEY }
}

pub fn local(offset: u64, length: u64) -> LocalRange {
    LocalRange { region: REGION, offset, length }
}

pub fn store(id: u64, target: RemoteAddress, data: &[u8]) -> Command<'_> {
    Command::Store { operation: OperationId(id), target, data, completion: Completion::Visible }
}

pub fn posted(target: RemoteAddress, data: &[u8]) -> Command<'_> {
    Command::Store { operation: OperationId(u64::MAX), target, data, completion: Completion::Accepted }
}

pub fn load(id: u64, target: RemoteAddress, into: LocalRange) -> Command<'static> {
    Command::Load { operation: OperationId(id), target, into }
}

pub fn put(id: u64, target: RemoteAddress, source: LocalRange) -> Command<'static> {
    Command::Put { operation: OperationId(id), target, source, signal: None }
}

pub fn get(id: u64, target: RemoteAddress, into: LocalRange) -> Command<'static> {
    Command::Get { operation: OperationId(id), target, into }
}

pub fn fetch_add(id: u64, target: RemoteAddress, operand: u64) -> Command<'static> {
    atomic(id, target, AtomicKind::FetchAdd, Width::Eight, operand, 0)
}

pub fn atomic(
    id: u64,
    target: RemoteAddress,
    kind: AtomicKind,
    width: Width,
    operand: u64,
    compare: u64,
) -> Command<'static> {
    Command::Atomic { operation: OperationId(id), target, atomic: Atomic { kind, width, operand, compare } }
}
