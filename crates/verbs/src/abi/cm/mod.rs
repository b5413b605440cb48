//! Exported functions of `librdmacm.so.1`. The file is that of `libibverbs.so.1`, under a second name: both libraries have the same device.
//!
//! Calls return 0, or -1 and `errno`. The rules are in [`crate::cm`]; here are the structures of C around them.

pub mod address;
pub mod channel;
pub mod connect;
mod device;
pub mod endpoint;
pub mod event;
pub mod identifier;
pub mod lookup;
mod object;
pub mod queue_pair;
pub mod resolve;
pub mod unsupported;

pub use device::{rdma_free_devices, rdma_get_devices};
