//! The request of an importer and the answer of an owner: one packet each on a local socket.
//!
//! The request names the importer's seat, a region and its key. The owner checks that the process holds the seat. The answer is a grant, which comes with descriptors, or a refusal with
//! its reason. All numbers are little endian, so that a recorded exchange has the same meaning on every machine.

use rackloom_protocol::{Access, Key, NodeId, RegionId};

use super::program_memory::{InProgram, SECRET_BYTES};
use crate::memory::{DeviceKind, HANDLE_BYTES};

const MAGIC: [u8; 4] = *b"RLMI";
const VERSION: u16 = 6;
const READ: u8 = 1;
const WRITE: u8 = 2;
const ATOMIC: u8 = 4;

/// Length of a request.
pub(super) const REQUEST_BYTES: usize = 24;
/// Length of an answer.
pub(super) const ANSWER_BYTES: usize = 32 + HANDLE_BYTES;

/// Reason why an owner does not export a region to a requester.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The requester runs as another user.
    #[error("the requester runs as another user")]
    WrongUser,
    /// The requester's process holds no seat of the rack.
    #[error("the requester's process holds no seat of this rack")]
    NoSeat,
    /// The requester's seat is in another server.
    #[error("the requester's seat is in another server; hint: go through the wire")]
    OtherServer,
    /// There is no such export.
    #[error("no such region is exported")]
    NoSuchRegion,
    /// The requester's seat belongs to another tenant.
    #[error("the region belongs to another tenant")]
    WrongTenant,
    /// The key does not match the region.
    #[error("wrong key")]
    BadKey,
    /// The region was revoked.
    #[error("the region was revoked")]
    Revoked,
    /// The owner has no slot for another importer.
    #[error("too many importers")]
    TooManyImporters,
    /// The owner cannot parse the request.
    #[error("the owner did not understand; hint: both sides must be of one version")]
    Malformed,
    /// The owner's system refused a step.
    #[error("the owner's system refused")]
    OwnerFailed,
    /// The owner has withdrawn the requester's access rights.
    #[error("the requester has no access to the region")]
    NoAccess,
}

impl Refusal {
    const ALL: [Self; 11] = [
        Self::WrongUser,
        Self::NoSeat,
        Self::OtherServer,
        Self::NoSuchRegion,
        Self::WrongTenant,
        Self::BadKey,
        Self::Revoked,
        Self::TooManyImporters,
        Self::Malformed,
        Self::OwnerFailed,
        Self::NoAccess,
    ];

    fn code(self) -> u16 {
        Self::ALL.iter().position(|known| *known == self).map_or(0, |index| index as u16 + 1)
    }

    fn from_code(code: u16) -> Option<Self> {
        Self::ALL.get(usize::from(code).checked_sub(1)?).copied()
    }
}

/// Request for a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ImportRequest {
    /// Seat of the requester.
    pub(super) requester: NodeId,
    pub(super) region: RegionId,
    pub(super) key: Key,
}

impl ImportRequest {
    pub(super) fn emit(self) -> [u8; REQUEST_BYTES] {
        let mut bytes = [0; REQUEST_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..6].copy_from_slice(&VERSION.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.region.0.to_le_bytes());
        bytes[12..14].copy_from_slice(&self.requester.0.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.key.0.to_le_bytes());
        bytes
    }

    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; REQUEST_BYTES] = bytes.try_into().ok()?;
        if !is_ours(bytes) {
            return None;
        }
        let region = RegionId(u32::from_le_bytes(field(bytes, 8)?));
        let requester = NodeId(u16::from_le_bytes(field(bytes, 12)?));
        Some(Self { requester, region, key: Key(u64::from_le_bytes(field(bytes, 16)?)) })
    }
}

/// Kinds of devices, in the order of their numbers from 1; 0 is none.
const KINDS: [DeviceKind; 2] = [DeviceKind::Cuda, DeviceKind::Fake];

/// Number of memory of a program, in the field of the kind of device.
const PROGRAM: u8 = u8::MAX;

/// Object by which an importer uses the bytes of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Location {
    /// A file, whose descriptor comes with the answer.
    File,
    OnDevice(OnDevice),
    /// Memory of the owner's program, which is reached by copies.
    InProgram(InProgram),
}

/// Handle that opens a region on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OnDevice {
    pub(super) kind: DeviceKind,
    pub(super) handle: [u8; HANDLE_BYTES],
    /// A descriptor comes with the answer.
    pub(super) has_file: bool,
}

/// Parameters of a grant, besides its descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grant {
    pub(super) length: u64,
    pub(super) generation: u64,
    pub(super) slot: u32,
    pub(super) access: Access,
    /// The owner keeps the memory until the importer has closed it, so an importer closes it soon after the end of the export.
    pub(super) is_awaited: bool,
    pub(super) location: Location,
}

pub(super) fn emit_answer(answer: Result<Grant, Refusal>) -> [u8; ANSWER_BYTES] {
    let mut bytes = [0; ANSWER_BYTES];
    bytes[..4].copy_from_slice(&MAGIC);
    bytes[4..6].copy_from_slice(&VERSION.to_le_bytes());
    match answer {
        Err(refusal) => bytes[6..8].copy_from_slice(&refusal.code().to_le_bytes()),
        Ok(grant) => {
            let Access { read, write, atomic } = grant.access;
            let bits = [(read, READ), (write, WRITE), (atomic, ATOMIC)];
            bytes[8..12].copy_from_slice(&grant.slot.to_le_bytes());
            bytes[12] = bits.iter().map(|(is_allowed, bit)| u8::from(*is_allowed) * bit).sum();
            bytes[15] = u8::from(grant.is_awaited);
            bytes[16..24].copy_from_slice(&grant.length.to_le_bytes());
            bytes[24..32].copy_from_slice(&grant.generation.to_le_bytes());
            match grant.location {
                Location::File => {}
                Location::OnDevice(OnDevice { kind, handle, has_file }) => {
                    bytes[14] = u8::from(has_file);
                    bytes[13] =
                        KINDS.iter().position(|known| *known == kind).map_or(0, |index| index as u8 + 1);
                    bytes[32..].copy_from_slice(&handle);
                }
                Location::InProgram(InProgram { address, secret_address, secret }) => {
                    bytes[13] = PROGRAM;
                    bytes[32..40].copy_from_slice(&address.to_le_bytes());
                    bytes[40..48].copy_from_slice(&secret_address.to_le_bytes());
                    bytes[48..48 + SECRET_BYTES].copy_from_slice(&secret);
                }
            }
        }
    }
    bytes
}

/// Parses an answer. `None` if the bytes are not one.
pub(super) fn parse_answer(bytes: &[u8]) -> Option<Result<Grant, Refusal>> {
    let bytes: &[u8; ANSWER_BYTES] = bytes.try_into().ok()?;
    if !is_ours(bytes) {
        return None;
    }
    let code = u16::from_le_bytes(field(bytes, 6)?);
    if code != 0 {
        return Refusal::from_code(code).map(Err);
    }
    let bits = bytes[12];
    let access = Access { read: bits & READ != 0, write: bits & WRITE != 0, atomic: bits & ATOMIC != 0 };
    let location = match bytes[13] {
        0 => Location::File,
        PROGRAM => Location::InProgram(InProgram {
            address: u64::from_le_bytes(field(bytes, 32)?),
            secret_address: u64::from_le_bytes(field(bytes, 40)?),
            secret: field(bytes, 48)?,
        }),
        number => Location::OnDevice(OnDevice {
            kind: *KINDS.get(usize::from(number) - 1)?,
            handle: field(bytes, 32)?,
            has_file: bytes[14] != 0,
        }),
    };
    Some(Ok(Grant {
        length: u64::from_le_bytes(field(bytes, 16)?),
        generation: u64::from_le_bytes(field(bytes, 24)?),
        slot: u32::from_le_bytes(field(bytes, 8)?),
        access,
        is_awaited: bytes[15] != 0,
        location,
    }))
}

fn is_ours(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC) && bytes[4..6] == VERSION.to_le_bytes()
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn requests_and_grants_are_parsed_after_emission(
            requester in any::<u16>(), region in any::<u32>(), key in any::<u64>(), length in any::<u64>(), generation in any::<u64>(),
            slot in any::<u32>(), rights in any::<[bool; 3]>(), index in 0..4_usize, byte in any::<u8>(),
            has_file in any::<bool>(), is_awaited in any::<bool>(), addresses in any::<[u64; 2]>(),
        ) {
            let request = ImportRequest { requester: NodeId(requester), region: RegionId(region), key: Key(key) };
            prop_assert_eq!(ImportRequest::parse(&request.emit()), Some(request));
            let [read, write, atomic] = rights;
            let [address, secret_address] = addresses;
            let location = match index {
                0 => Location::File,
                3 => Location::InProgram(InProgram { address, secret_address, secret: [byte; SECRET_BYTES] }),
                _ => Location::OnDevice(OnDevice { kind: KINDS[index - 1], handle: [byte; HANDLE_BYTES], has_file }),
            };
            let grant = Grant { length, generation, slot, access: Access { read, write, atomic }, is_awaited, location };
            prop_assert_eq!(parse_answer(&emit_answer(Ok(grant))), Some(Ok(grant)));
        }

        #[test]
        fn any_bytes_can_be_parsed(bytes in prop::collection::vec(any::<u8>(), 0..64), valid in any::<bool>()) {
            let mut bytes = bytes;
            if valid && bytes.len() >= 6 {
                bytes[..4].copy_from_slice(&MAGIC);
                bytes[4..6].copy_from_slice(&VERSION.to_le_bytes());
            }
            prop_assert!(bytes.len() == REQUEST_BYTES || ImportRequest::parse(&bytes).is_none());
            prop_assert!(bytes.len() == ANSWER_BYTES || parse_answer(&bytes).is_none());
        }
    }

    #[test]
    fn refusals_are_parsed_after_emission() {
        for refusal in Refusal::ALL {
            assert_ne!(refusal.code(), 0);
            assert_eq!(parse_answer(&emit_answer(Err(refusal))), Some(Err(refusal)));
        }
        assert_eq!(Refusal::from_code(0), None);
        assert_eq!(Refusal::from_code(999), None);
    }
}
