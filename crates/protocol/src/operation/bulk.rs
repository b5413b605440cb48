//! Long transfers, which are cut into packets only as the window opens.

use super::groups::GroupId;
use super::{LocalRange, RemoteAddress, Signal};
use crate::error::OperationError;
use crate::ids::RegionId;

/// Transfer that is not yet completely in packets.
#[derive(Clone, Copy, Debug)]
pub enum Bulk {
    /// A put, at the initiator.
    Put {
        /// The command.
        group: GroupId,
        /// Address of the target.
        target: RemoteAddress,
        /// Source of the data.
        source: LocalRange,
        /// Signal after the data.
        signal: Option<Signal>,
        /// Number of bytes already in packets.
        position: u64,
        /// Number of its first operation, if there is one.
        first: Option<u32>,
        /// A refusal that has arrived already: the rest is not sent.
        error: Option<OperationError>,
        /// Identifier of the transfer.
        transfer: u32,
    },
    /// Request of a get, at the initiator.
    Get {
        /// The command.
        group: GroupId,
        /// Address of the source.
        target: RemoteAddress,
        /// Destination of the data.
        into: LocalRange,
    },
    /// Request for the data of an offered message, at the receiver.
    Pull {
        /// The receive.
        group: GroupId,
        /// Number of the offer in the sender's request stream.
        offer: u32,
        /// Destination and length of the data.
        into: LocalRange,
    },
    /// Data of a get, at the target.
    GetData {
        /// Number of the get in the caller's stream.
        operation: u32,
        /// Region of this node.
        region: RegionId,
        /// First byte in the region.
        offset: u64,
        /// Number of bytes.
        length: u64,
        /// Number of bytes already in packets.
        position: u64,
        /// Identifier of the transfer.
        transfer: u32,
    },
}
