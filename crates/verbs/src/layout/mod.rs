//! Structures of the verbs ABI on 64-bit Linux, as `libibverbs.so.1` of rdma-core 65 has them. Sizes and positions are checked at compile time.
//!
//! Names are those of the C structures without their prefix. Enumerations of C are `u32`, because a program may pass any value;
//! [`constants`] has the values. Locks and condition variables of C are opaque bytes: zero is their initial value on Linux.

pub mod attributes;
pub mod connection;
pub mod constants;
pub mod context;
pub mod device;
pub mod objects;
pub mod query;
pub mod work;

/// `union ibv_gid`: an address of a port.
pub type Gid = [u8; 16];
/// Storage of a `pthread_mutex_t`.
pub type Mutex = [u64; 5];
/// Storage of a `pthread_cond_t`.
pub type Condition = [u64; 6];

/// Checks the size of a structure, and positions of its fields, at compile time.
macro_rules! layout {
    ($type:ty, $size:expr $(, $field:ident at $offset:expr)* $(,)?) => {
        const _: () = {
            assert!(size_of::<$type>() == $size);
            $(assert!(core::mem::offset_of!($type, $field) == $offset);)*
        };
    };
}
pub(crate) use layout;
