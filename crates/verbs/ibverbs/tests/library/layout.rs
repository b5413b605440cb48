//! Our structures against those of the distribution's headers: a program in C prints their sizes and positions.

use std::fmt::Write;

use rackloom_verbs::layout::{attributes, connection, context, device, objects, query, work};

use super::support::{compile, has_headers, printed, skip};

/// Adds lines for the size of a structure and the positions of fields, for the program and for us. The names in C stand in texts.
macro_rules! same {
    ($program:ident, $ours:ident, $type:ty, $name:literal $(, $field:ident as $c:literal)*) => {
        writeln!($program, "printf(\"{0} %zu\\n\", sizeof(struct {0}));", $name).expect("a text");
        writeln!($ours, "{} {}", $name, size_of::<$type>()).expect("a text");
        same!(positions $program, $ours, $type, $name $(, $field as $c)*);
    };
    (positions $program:ident, $ours:ident, $type:ty, $name:literal $(, $field:ident as $c:literal)*) => {
        $(
            writeln!($program, "printf(\"{0}.{1} %zu\\n\", offsetof(struct {0}, {1}));", $name, $c).expect("a text");
            writeln!($ours, "{}.{} {}", $name, $c, core::mem::offset_of!($type, $field)).expect("a text");
        )*
    };
}

/// Adds lines for positions below the context, which do not depend on the version.
macro_rules! below_context {
    ($program:ident, $ours:ident, $($field:ident as $c:literal),*) => {
        $(
            let text = "offsetof(struct verbs_context, context) - offsetof(struct verbs_context";
            writeln!($program, "printf(\"{0} %zu\\n\", {text}, {0}));", $c).expect("a text");
            let distance = core::mem::offset_of!(context::VerbsContext, context)
                - core::mem::offset_of!(context::VerbsContext, $field);
            writeln!($ours, "{} {distance}", $c).expect("a text");
        )*
    };
}

/// Returns the program's lines, and the lines that it should print.
fn comparison() -> (String, String) {
    let (mut p, mut o) = (String::new(), String::new());
    same!(p, o, device::Device, "ibv_device", node_type as "node_type", transport_type as "transport_type", name as "name",
        dev_name as "dev_name", dev_path as "dev_path", ibdev_path as "ibdev_path");
    same!(p, o, objects::Context, "ibv_context", device as "device", ops as "ops", cmd_fd as "cmd_fd", async_fd as "async_fd",
        num_comp_vectors as "num_comp_vectors", mutex as "mutex", abi_compat as "abi_compat");
    same!(p, o, objects::ContextOps, "ibv_context_ops", memory_windows as "alloc_mw", poll_cq as "poll_cq",
        req_notify_cq as "req_notify_cq", post_srq_recv as "post_srq_recv", post_send as "post_send", post_recv as "post_recv");
    below_context!(p, o, query_port as "query_port", query_device_ex as "query_device_ex", size as "sz");
    same!(p, o, objects::Pd, "ibv_pd", context as "context", handle as "handle");
    same!(p, o, objects::Mr, "ibv_mr", pd as "pd", addr as "addr", length as "length", handle as "handle", lkey as "lkey", rkey as "rkey");
    same!(p, o, objects::CompChannel, "ibv_comp_channel", context as "context", fd as "fd", refcnt as "refcnt");
    same!(p, o, objects::Cq, "ibv_cq", channel as "channel", cq_context as "cq_context", handle as "handle", cqe as "cqe",
        mutex as "mutex", cond as "cond", comp_events_completed as "comp_events_completed",
        async_events_completed as "async_events_completed");
    same!(p, o, objects::Srq, "ibv_srq", srq_context as "srq_context", pd as "pd", handle as "handle", mutex as "mutex",
        cond as "cond", events_completed as "events_completed");
    same!(p, o, objects::Qp, "ibv_qp", qp_context as "qp_context", pd as "pd", send_cq as "send_cq", recv_cq as "recv_cq",
        srq as "srq", handle as "handle", qp_num as "qp_num", state as "state", qp_type as "qp_type", mutex as "mutex",
        cond as "cond", events_completed as "events_completed");
    same!(p, o, objects::Ah, "ibv_ah", context as "context", pd as "pd", handle as "handle");
    same!(p, o, objects::AsyncEvent, "ibv_async_event", element as "element", event_type as "event_type");
    same!(p, o, work::Sge, "ibv_sge", addr as "addr", length as "length", lkey as "lkey");
    same!(p, o, work::RecvWr, "ibv_recv_wr", wr_id as "wr_id", next as "next", sg_list as "sg_list", num_sge as "num_sge");
    same!(p, o, work::SendWr, "ibv_send_wr", wr_id as "wr_id", next as "next", sg_list as "sg_list", num_sge as "num_sge",
        opcode as "opcode", send_flags as "send_flags", imm_data as "imm_data", wr as "wr", qp_type as "qp_type", others as "tso");
    same!(p, o, work::Wc, "ibv_wc", wr_id as "wr_id", status as "status", opcode as "opcode", vendor_err as "vendor_err",
        byte_len as "byte_len", imm_data as "imm_data", qp_num as "qp_num", src_qp as "src_qp", wc_flags as "wc_flags",
        pkey_index as "pkey_index", slid as "slid", sl as "sl", dlid_path_bits as "dlid_path_bits");
    same!(p, o, attributes::GlobalRoute, "ibv_global_route", dgid as "dgid", flow_label as "flow_label",
        sgid_index as "sgid_index", hop_limit as "hop_limit", traffic_class as "traffic_class");
    same!(p, o, attributes::AhAttr, "ibv_ah_attr", grh as "grh", dlid as "dlid", sl as "sl", src_path_bits as "src_path_bits",
        static_rate as "static_rate", is_global as "is_global", port_num as "port_num");
    same!(p, o, attributes::QpCap, "ibv_qp_cap", max_send_wr as "max_send_wr", max_recv_wr as "max_recv_wr",
        max_send_sge as "max_send_sge", max_recv_sge as "max_recv_sge", max_inline_data as "max_inline_data");
    same!(p, o, attributes::QpInitAttr, "ibv_qp_init_attr", qp_context as "qp_context", send_cq as "send_cq", recv_cq as "recv_cq",
        srq as "srq", cap as "cap", qp_type as "qp_type", sq_sig_all as "sq_sig_all");
    same!(p, o, attributes::QpAttr, "ibv_qp_attr", qp_state as "qp_state", cur_qp_state as "cur_qp_state", path_mtu as "path_mtu",
        path_mig_state as "path_mig_state", qkey as "qkey", rq_psn as "rq_psn", sq_psn as "sq_psn", dest_qp_num as "dest_qp_num",
        qp_access_flags as "qp_access_flags", cap as "cap", ah_attr as "ah_attr", alt_ah_attr as "alt_ah_attr",
        pkey_index as "pkey_index", alt_pkey_index as "alt_pkey_index", en_sqd_async_notify as "en_sqd_async_notify",
        sq_draining as "sq_draining", max_rd_atomic as "max_rd_atomic", max_dest_rd_atomic as "max_dest_rd_atomic",
        min_rnr_timer as "min_rnr_timer", port_num as "port_num", timeout as "timeout", retry_cnt as "retry_cnt",
        rnr_retry as "rnr_retry", alt_port_num as "alt_port_num", alt_timeout as "alt_timeout", rate_limit as "rate_limit");
    same!(p, o, attributes::SrqAttr, "ibv_srq_attr", max_wr as "max_wr", max_sge as "max_sge", srq_limit as "srq_limit");
    same!(p, o, attributes::SrqInitAttr, "ibv_srq_init_attr", srq_context as "srq_context", attr as "attr");
    same!(p, o, query::DeviceAttr, "ibv_device_attr", fw_ver as "fw_ver", node_guid as "node_guid", sys_image_guid as "sys_image_guid",
        max_mr_size as "max_mr_size", page_size_cap as "page_size_cap", vendor_id as "vendor_id",
        vendor_part_id as "vendor_part_id", hw_ver as "hw_ver", max_qp as "max_qp", max_qp_wr as "max_qp_wr",
        device_cap_flags as "device_cap_flags", max_sge as "max_sge", max_sge_rd as "max_sge_rd", max_cq as "max_cq",
        max_cqe as "max_cqe", max_mr as "max_mr", max_pd as "max_pd", max_qp_rd_atom as "max_qp_rd_atom",
        max_ee_rd_atom as "max_ee_rd_atom", max_res_rd_atom as "max_res_rd_atom", max_qp_init_rd_atom as "max_qp_init_rd_atom",
        max_ee_init_rd_atom as "max_ee_init_rd_atom", atomic_cap as "atomic_cap", unused as "max_ee",
        max_mcast_grp as "max_mcast_grp", max_mcast_qp_attach as "max_mcast_qp_attach",
        max_total_mcast_qp_attach as "max_total_mcast_qp_attach", max_ah as "max_ah", fast_registration as "max_fmr",
        max_srq as "max_srq", max_srq_wr as "max_srq_wr", max_srq_sge as "max_srq_sge", max_pkeys as "max_pkeys",
        local_ca_ack_delay as "local_ca_ack_delay", phys_port_cnt as "phys_port_cnt");
    same!(p, o, query::DeviceAttrEx, "ibv_device_attr_ex", orig_attr as "orig_attr", comp_mask as "comp_mask",
        device_cap_flags_ex as "device_cap_flags_ex", phys_port_cnt_ex as "phys_port_cnt_ex");
    // Its size grows with versions; callers pass the size that they know.
    same!(positions p, o, query::PortAttr, "ibv_port_attr", state as "state", max_mtu as "max_mtu", active_mtu as "active_mtu",
        gid_tbl_len as "gid_tbl_len", port_cap_flags as "port_cap_flags", max_msg_sz as "max_msg_sz",
        bad_pkey_cntr as "bad_pkey_cntr", qkey_viol_cntr as "qkey_viol_cntr", pkey_tbl_len as "pkey_tbl_len", lid as "lid",
        sm_lid as "sm_lid", lmc as "lmc", max_vl_num as "max_vl_num", sm_sl as "sm_sl", subnet_timeout as "subnet_timeout",
        init_type_reply as "init_type_reply", active_width as "active_width", active_speed as "active_speed",
        phys_state as "phys_state", link_layer as "link_layer", flags as "flags", port_cap_flags2 as "port_cap_flags2");
    same!(p, o, query::GidEntry, "ibv_gid_entry", gid as "gid", gid_index as "gid_index", port_num as "port_num",
        gid_type as "gid_type", ndev_ifindex as "ndev_ifindex");
    (p, o)
}

/// Returns the lines for the structures of connection management.
fn connections() -> (String, String) {
    let (mut p, mut o) = (String::new(), String::new());
    same!(p, o, connection::EventChannel, "rdma_event_channel", fd as "fd");
    same!(p, o, connection::Addresses, "rdma_addr", source as "src_addr", destination as "dst_addr", infiniband as "addr");
    same!(p, o, connection::Route, "rdma_route", addresses as "addr", path_rec as "path_rec", num_paths as "num_paths");
    same!(p, o, connection::CmId, "rdma_cm_id", verbs as "verbs", channel as "channel", context as "context", qp as "qp", route as "route",
        ps as "ps", port_num as "port_num", event as "event", send_cq_channel as "send_cq_channel", send_cq as "send_cq",
        recv_cq_channel as "recv_cq_channel", recv_cq as "recv_cq", srq as "srq", pd as "pd", qp_type as "qp_type");
    same!(p, o, connection::ConnParam, "rdma_conn_param", private_data as "private_data", private_data_len as "private_data_len",
        responder_resources as "responder_resources", initiator_depth as "initiator_depth", flow_control as "flow_control",
        retry_count as "retry_count", rnr_retry_count as "rnr_retry_count", srq as "srq", qp_num as "qp_num");
    same!(p, o, connection::UdParam, "rdma_ud_param", private_data_len as "private_data_len", ah_attr as "ah_attr", qp_num as "qp_num",
        qkey as "qkey");
    same!(p, o, connection::CmEvent, "rdma_cm_event", id as "id", listen_id as "listen_id", event as "event", status as "status",
        param as "param");
    same!(p, o, connection::AddrInfo, "rdma_addrinfo", ai_flags as "ai_flags", ai_family as "ai_family", ai_qp_type as "ai_qp_type",
        ai_port_space as "ai_port_space", ai_src_len as "ai_src_len", ai_dst_len as "ai_dst_len", ai_src_addr as "ai_src_addr",
        ai_dst_addr as "ai_dst_addr", ai_src_canonname as "ai_src_canonname", ai_dst_canonname as "ai_dst_canonname",
        ai_route_len as "ai_route_len", ai_route as "ai_route", ai_connect_len as "ai_connect_len", ai_connect as "ai_connect",
        ai_next as "ai_next");
    (p, o)
}

#[test]
fn structures_of_connections_are_those_of_the_distribution_s_headers() {
    const NAME: &str = "structures_of_connections_are_those_of_the_distribution_s_headers";
    if !std::path::Path::new("/usr/include/rdma/rdma_cma.h").exists() {
        skip(NAME, "the headers of librdmacm are not installed (package librdmacm-dev)");
        return;
    }
    compare("#include <rdma/rdma_cma.h>", connections(), 50);
}

#[test]
fn structures_are_those_of_the_distribution_s_headers() {
    if !has_headers("structures_are_those_of_the_distribution_s_headers") {
        return;
    }
    compare("#include <infiniband/verbs.h>", comparison(), 200);
}

/// Compares our lines with those that a program with the header prints.
fn compare(header: &str, (lines, ours): (String, String), least: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let (source, program) = (folder.path().join("layout.c"), folder.path().join("layout"));
    let text = format!(
        "{header}\n#include <stddef.h>\n#include <stdio.h>\nint main(void) {{\n{lines}return 0;\n}}\n"
    );
    std::fs::write(&source, text).expect("a source");
    compile(&source, &program, &[]);
    let theirs = printed(&mut std::process::Command::new(program));
    assert!(ours.lines().count() > least, "only {} lines", ours.lines().count());
    let different: Vec<_> =
        ours.lines().zip(theirs.lines()).filter(|(ours, theirs)| ours != theirs).collect();
    assert_eq!(different, [], "ours and theirs");
    assert_eq!(ours.lines().count(), theirs.lines().count());
}
