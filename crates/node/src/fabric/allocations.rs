//! Regions of a node as allocations: attributes of an address, handles for other nodes, and the list of regions.

use std::sync::PoisonError;
use std::time::Duration;

use rackloom_protocol::{Key, NodeId, RegionId, RemoteAddress};

use super::error::{Error, Invalid};
use super::leak_listener::{LeakListener, allocations_of};
use super::node::Node;
use crate::fabric::local::peer_region::PeerRegion;
use crate::fabric::memory::region::Region;
use crate::memory::DeviceChoice;
use crate::pool::LeakReport;

/// First bytes of a handle: the name and the version of its form.
const MAGIC: [u8; 4] = *b"RLH1";

/// Attributes of an address in a region of a node.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PointerAttributes {
    /// Region that contains the address.
    pub region: RegionId,
    /// Offset of the address within the region, in bytes.
    pub offset: u64,
    /// Length of the region, in bytes.
    pub length: u64,
    /// Memory that the region takes, in bytes: at least its length, in whole pages or blocks if it came from a pool.
    pub reserved_bytes: u64,
    /// Device of the memory, or `None` for the host.
    pub device: Option<DeviceChoice>,
    /// The memory came from a [`crate::fabric::MemoryPool`].
    pub is_pooled: bool,
}

impl Node {
    /// Returns attributes of an address of this process, or of the node's device as in [`Region::device_address`]. `None` if it is in no region of this
    /// node. The time grows with the number of regions.
    #[must_use]
    pub fn pointer_attributes(&self, address: u64) -> Option<PointerAttributes> {
        self.with_core(|core| {
            let memory = core.member.as_mut()?.memory_mut();
            let choice = memory.device().map(|device| device.choice);
            memory.regions().find_map(|(region, bytes)| {
                let offset = address.checked_sub(bytes.start()?)?;
                let pooled = bytes.pooled_bytes();
                (offset < bytes.length()).then(|| PointerAttributes {
                    region,
                    offset,
                    length: bytes.length(),
                    reserved_bytes: pooled.map_or(bytes.length(), |pooled| pooled.reserved_bytes()),
                    device: bytes.device().and(choice),
                    is_pooled: pooled.is_some(),
                })
            })
        })
    }

    /// Returns the regions of this node that have a handle now, each with the tag of its allocation from a pool. Empty after the node has left.
    #[must_use]
    pub fn allocations(&self) -> LeakReport {
        self.with_core(allocations_of)
    }

    /// Sets the function that is called when this node leaves, also because its last handle is dropped, and regions still have a handle. The regions
    /// end with the node; the report names those that the program has not dropped before.
    pub fn on_leak(&self, listener: impl FnOnce(&LeakReport) + Send + 'static) {
        let listener = LeakListener::new(listener);
        *self.leak_listener().lock().unwrap_or_else(PoisonError::into_inner) = Some(listener);
    }

    /// Maps a region by the handle that its owner has exported ([`Region::export`]).
    ///
    /// # Errors
    /// [`Error::Invalid`] if the bytes are no handle; those of [`Node::map_peer`].
    pub fn import(&self, handle: &RegionHandle, timeout: Duration) -> Result<PeerRegion, Error> {
        let (address, _) = handle.address_and_length()?;
        self.map_peer(address, timeout)
    }
}

/// Location, key and length of a region, as bytes that another node can open. The program sends them to the node, in a message or in any other manner.
/// They contain the key, so a node that has them may access the region as far as its access rights go.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RegionHandle(pub [u8; 32]);

impl RegionHandle {
    /// Returns the address of the region's first byte, and the length in bytes.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the bytes are no handle.
    pub fn address_and_length(&self) -> Result<(RemoteAddress, u64), Error> {
        if !self.0.starts_with(&MAGIC) || self.0[6..8] != [0; 2] {
            return Err(Error::Invalid(Invalid::RegionHandle));
        }
        let field = |at: usize, bytes: usize| {
            self.0[at..at + bytes].iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
        };
        let address = RemoteAddress {
            node: NodeId(field(4, 2) as u16),
            region: RegionId(field(8, 4) as u32),
            offset: 0,
            key: Key(field(16, 8)),
        };
        Ok((address, field(24, 8)))
    }
}

impl Region {
    /// Returns a handle by which other nodes find and map the region ([`Node::import`]). It is valid until the last handle of the region is dropped.
    #[must_use]
    pub fn export(&self) -> RegionHandle {
        let RemoteAddress { node, region, key, .. } = self.address(0);
        let mut bytes = [0; 32];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..6].copy_from_slice(&node.0.to_le_bytes());
        bytes[8..12].copy_from_slice(&region.0.to_le_bytes());
        bytes[16..24].copy_from_slice(&key.0.to_le_bytes());
        bytes[24..].copy_from_slice(&self.len().to_le_bytes());
        RegionHandle(bytes)
    }
}
