//! Declares the choice of a job.

use crate::model::job::{BANDWIDTH, COLLECTIVE, JobKind, LATENCY, LITMUS, TRAFFIC};
use crate::setting::table::{Choose, Key, Kind, Table, key};

pub(crate) static JOB: Table = Table { name: "job", keys: JOB_KEYS, choose: Choose::One };
/// Forms of `job`.
pub(crate) const JOB_FORMS: Kind = Kind::Either(&[Kind::Word(JobKind::NAMES), Kind::Table(&JOB)]);

const JOB_KEYS: &[Key] = &[
    key(
        "litmus",
        Kind::Table(&LITMUS),
        "",
        "Every ordered pair of nodes, every kind of operation, every byte checked by its owner.",
    ),
    key("collective", Kind::Table(&COLLECTIVE), "", "One collective over all nodes."),
    key("latency", Kind::Table(&LATENCY), "", "Latency of single operations."),
    key("bandwidth", Kind::Table(&BANDWIDTH), "", "Throughput of many operations."),
    key(
        "traffic",
        Kind::Table(&TRAFFIC),
        "",
        "Many messages at once; a pattern determines senders and receivers, and every byte is checked.",
    ),
];
