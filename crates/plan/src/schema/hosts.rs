//! Declares the hosts of a rack.

use crate::schema::{Key, Kind, REQUIRED, Table, key, table};

pub(crate) static HOST: Table = table("hosts", KEYS);

const KEYS: &[Key] = &[
    key(
        "nodes",
        Kind::Names,
        REQUIRED,
        "Members that run on this host. Every member, switches too, runs on one host.",
    ),
    key(
        "interface",
        Kind::Name,
        "",
        "The interface of this host at which its links to other hosts leave. It may carry several links.",
    ),
    key(
        "interfaces",
        Kind::NameByLink,
        "as `interface`",
        "The interface of single links instead: `{n1--n2: eth2}`. Each of these links has its other end on another host.",
    ),
    key(
        "address",
        Kind::Name,
        "",
        "On the udp wire: the IPv4 address of this host at which its links to other hosts leave, and at which it is found.",
    ),
    key(
        "addresses",
        Kind::NameByLink,
        "as `address`",
        "On the udp wire: the address of single links instead: `{n1--n2: 10.2.0.1}`.",
    ),
];
