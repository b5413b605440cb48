//! Long transfers, cut into packets only as the window opens.

use super::groups::GroupId;
use super::{LocalRange, RemoteAddress, Signal};
use crate::error::OperationError;
use crate::ids::RegionId;

/// A transfer that is not yet wholly in packets.
#[derive(Clone, Copy, Debug)]
pub enum Bulk {
    /// Caller's side of a put.
    Put {
        /// The command.
        group: GroupId,
        /// Where to.
        target: RemoteAddress,
        /// Where from.
        source: LocalRange,
        /// What follows the data.
        signal: Option<Signal>,
        /// Bytes already in packets.
        position: u64,
        /// Number of its first operation, once there is one.
        first: Option<u32>,
        /// A refusal that has come already: the rest is not sent.
        error: Option<OperationError>,
        /// Its name among the transfers that have begun.
        transfer: u32,
    },
    /// Caller's side of a get: the request.
    Get {
        /// The command.
        group: GroupId,
        /// Where from.
        target: RemoteAddress,
        /// Where to.
        into: LocalRange,
    },
    /// Receiver's side of a message on offer: the request for its data.
    Pull {
        /// The receive.
        group: GroupId,
        /// Number of the offer in the sender's request stream.
        offer: u32,
        /// Where to, and how many bytes.
        into: LocalRange,
    },
    /// Owner's side of a get: its data.
    GetData {
        /// Number of the get in the caller's stream.
        operation: u32,
        /// Own region.
        region: RegionId,
        /// First byte.
        offset: u64,
        /// Bytes.
        length: u64,
        /// Bytes already in packets.
        position: u64,
        /// Its name among the transfers that have begun.
        transfer: u32,
    },
}
