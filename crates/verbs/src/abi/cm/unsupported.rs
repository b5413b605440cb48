//! Calls of connection management that this library has by name only: multicast, extended options of connections, extended shared receive queues.

use core::ffi::c_int;

use rustix::io::Errno;

use crate::abi::guard;

macro_rules! unsupported {
    ($($name:ident)*) => {
        $(/// Returns -1, with `errno` `EOPNOTSUPP`.
        #[unsafe(no_mangle)]
        pub extern "C" fn $name() -> c_int {
            guard::number(|| Err(Errno::OPNOTSUPP))
        })*
    };
}

unsupported! {
    rdma_join_multicast rdma_join_multicast_ex rdma_leave_multicast rdma_set_local_ece rdma_get_remote_ece rdma_create_srq_ex
}
