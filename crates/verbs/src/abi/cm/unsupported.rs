//! Calls of connection management that this library has by name only: multicast, extended options of connections, extended shared receive queues,
//! and sockets over connections. Programs such as `rping` bind names of all these when they are loaded.

use rustix::io::Errno;

use crate::abi::guard;

macro_rules! unsupported {
    ($($name:ident)*) => {
        $(/// Returns -1, with `errno` `EOPNOTSUPP`.
        #[unsafe(no_mangle)]
        pub extern "C" fn $name() -> isize {
            guard::number(|| Err(Errno::OPNOTSUPP)) as isize
        })*
    };
}

unsupported! {
    rdma_join_multicast rdma_join_multicast_ex rdma_leave_multicast rdma_set_local_ece rdma_get_remote_ece rdma_create_srq_ex
    raccept rbind rclose rconnect rfcntl rgetpeername rgetsockname rgetsockopt riomap riounmap riowrite rlisten rpoll rread
    rreadv rrecv rrecvfrom rrecvmsg rselect rsend rsendmsg rsendto rsetsockopt rshutdown rsocket rwrite rwritev
}
