//! Functions that this library has by name only: calls of parts that it lacks, and private functions of other drivers.
//!
//! Programs link drivers of vendors, which bind private functions when they are loaded. They are never called, because the device is of none of these
//! vendors. The distribution's librdmacm binds functions that convert answers of the kernel, of which there are none. A call returns an error in the form of its result. Arguments are not read, so the functions have none here: the caller
//! of C removes its arguments itself.

use core::ffi::{c_int, c_void};

use rustix::io::Errno;

use super::guard;

macro_rules! refused {
    (code: $($code:ident)*; number: $($number:ident)*; object: $($object:ident)*; nothing: $($nothing:ident)*;) => {
        $(/// Returns `EOPNOTSUPP`.
        #[unsafe(no_mangle)]
        pub extern "C" fn $code() -> c_int {
            guard::code(|| Err(Errno::OPNOTSUPP))
        })*
        $(/// Returns -1, with `errno` `EOPNOTSUPP`.
        #[unsafe(no_mangle)]
        pub extern "C" fn $number() -> c_int {
            guard::number(|| Err(Errno::OPNOTSUPP))
        })*
        $(/// Returns null, with `errno` `EOPNOTSUPP`.
        #[unsafe(no_mangle)]
        pub extern "C" fn $object() -> *mut c_void {
            guard::object(|| Err(Errno::OPNOTSUPP))
        })*
        $(/// Does nothing.
        #[unsafe(no_mangle)]
        pub extern "C" fn $nothing() {})*
    };
}

refused! {
    code:
        ibv_attach_mcast ibv_detach_mcast ibv_query_ece ibv_set_ece execute_ioctl
        __ioctl_final_num_attrs ibv_cmd_advise_mr ibv_cmd_alloc_dm ibv_cmd_alloc_mw ibv_cmd_alloc_pd ibv_cmd_attach_mcast
        ibv_cmd_close_xrcd ibv_cmd_create_ah ibv_cmd_create_counters ibv_cmd_create_cq ibv_cmd_create_cq_ex ibv_cmd_create_flow
        ibv_cmd_create_flow_action_esp ibv_cmd_create_qp ibv_cmd_create_qp_ex ibv_cmd_create_qp_ex2
        ibv_cmd_create_rwq_ind_table ibv_cmd_create_srq ibv_cmd_create_srq_ex ibv_cmd_create_wq ibv_cmd_dealloc_mw
        ibv_cmd_dealloc_pd ibv_cmd_dereg_mr ibv_cmd_destroy_ah ibv_cmd_destroy_counters ibv_cmd_destroy_cq ibv_cmd_destroy_flow
        ibv_cmd_destroy_flow_action ibv_cmd_destroy_qp ibv_cmd_destroy_rwq_ind_table ibv_cmd_destroy_srq ibv_cmd_destroy_wq
        ibv_cmd_detach_mcast ibv_cmd_free_dm ibv_cmd_get_context ibv_cmd_modify_cq ibv_cmd_modify_flow_action_esp
        ibv_cmd_modify_qp ibv_cmd_modify_qp_ex ibv_cmd_modify_srq ibv_cmd_modify_wq ibv_cmd_open_qp ibv_cmd_open_xrcd
        ibv_cmd_post_recv ibv_cmd_post_send ibv_cmd_post_srq_recv ibv_cmd_query_context ibv_cmd_query_device_any
        ibv_cmd_query_mr ibv_cmd_query_port ibv_cmd_query_qp ibv_cmd_query_srq ibv_cmd_read_counters ibv_cmd_reg_dm_mr
        ibv_cmd_reg_dmabuf_mr ibv_cmd_reg_mr ibv_cmd_req_notify_cq ibv_cmd_rereg_mr ibv_cmd_resize_cq;
    number:
        ibv_rereg_mr ibv_resolve_eth_l2_from_gid ibv_cmd_poll_cq ibv_read_ibdev_sysfs_file;
    object:
        ibv_import_device ibv_import_pd ibv_import_mr ibv_import_dm ibv_reg_dmabuf_mr
        _verbs_init_and_alloc_context verbs_open_device;
    nothing:
        ibv_unimport_pd ibv_unimport_mr ibv_unimport_dm ibv_register_driver
        verbs_register_driver_34 verbs_set_ops verbs_uninit_context verbs_init_cq verbs_allow_disassociate_destroy __verbs_log
        ibv_copy_ah_attr_from_kern ibv_copy_qp_attr_from_kern ibv_copy_path_rec_from_kern ibv_copy_path_rec_to_kern;
}
