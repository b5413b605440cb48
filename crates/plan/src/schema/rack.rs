//! Declares the top level of the file: its tables, and the names of rack and members. Single values are
//! [`crate::model::rack_settings`].

use crate::model::jobs::expect::EXPECT;
use crate::model::links::channels::CHANNELS;
use crate::model::links::credits::CREDITS;
use crate::model::links::link::LINK;
use crate::model::members::device::DEVICE;
use crate::model::members::local::LOCAL;
use crate::model::members::member::{SECURITY, TENANT};
use crate::model::members::paths::PATHS;
use crate::model::rack_settings::RACK_SETTINGS;
use crate::model::times::timers::TIMERS;
use crate::model::times::timing::FORWARDING;
use crate::model::transport::{PACKING, TRANSPORT};
use crate::schema::job::JOB_FORMS;
use crate::schema::{DEFAULTS, GROUP, HOST, NODE, SERVER, SHAPE};
use crate::setting::name::Named;
use crate::setting::table::{By, Key, Kind, RACK_NAME, REQUIRED, Table, joined, key, table};

/// Forms of `channels`.
const CHANNELS_FORMS: Kind = Kind::Either(&[Kind::Choice(&["off", "by-class"]), Kind::Table(&CHANNELS)]);
/// Forms of `timers`.
const TIMERS_FORMS: Kind = Kind::Either(&[Kind::Choice(&["auto"]), Kind::Table(&TIMERS)]);

const KEYS_MAX: usize = STRUCTURE.len() + RACK_SETTINGS.keys.len() + TABLES.len();
static KEYS: [Key; KEYS_MAX] = joined(&[STRUCTURE, RACK_SETTINGS.keys, TABLES]);

pub(crate) static RACK: Table = table(RACK_NAME, &KEYS);

/// Members and links.
const STRUCTURE: &[Key] = &[
    key(
        "name",
        Kind::Name(Named::Rack),
        REQUIRED,
        "Name of the rack. With the configuration hash it makes the 16-bit epoch that every frame carries.",
    ),
    key("shape", Kind::Table(&SHAPE), REQUIRED, "Members and links."),
    key(
        "defaults",
        Kind::Table(&DEFAULTS),
        "",
        "Settings of every node that neither its entry nor its group states.",
    ),
    key("groups", Kind::TableBy(By::Group, &GROUP), "", "Settings that several nodes share."),
    key("nodes", Kind::TableBy(By::Member, &NODE), "", "Settings of single members."),
    key(
        "servers",
        Kind::Servers(&SERVER),
        "",
        "Members that sit in one server: `{box0: [n0, n1], box1: [n2, n3]}`. A server may also be named by a group or \
         by the member itself, but not differently. A table sets the server's own local path: \
         `{box0: {nodes: [n0, n1], local: {latency: 1us}}}`.",
    ),
    key(
        "local",
        Kind::Table(&LOCAL),
        "",
        "The path between the memories of nodes of one server, in virtual time. `servers` sets it for single servers.",
    ),
    key(
        "device",
        Kind::Table(&DEVICE),
        "",
        "Model of the GPU of every node, in virtual time: what limits its own part of communication.",
    ),
    key(
        "hosts",
        Kind::TableBy(By::Host, &HOST),
        "",
        "Members of each machine, and the interface of links between machines: `{A: {nodes: [n0, n1], interface: eth1}, B: \
         {nodes: [n2, n3], interface: eth1}}`. `run` and `up` start one host's share with `--host`, and all \
         members without it.",
    ),
    key(
        "tenants",
        Kind::TableBy(By::Tenant, &TENANT),
        "",
        "Quotas of single tenants: `1: {memory_max: 16MiB}`.",
    ),
    key(
        "security",
        Kind::Table(&SECURITY),
        "",
        "The key with which frames, and messages between hosts, are authenticated; between real processes.",
    ),
    key("link", Kind::Table(&LINK), "", "Properties of every link."),
    key(
        "links",
        Kind::TableBy(By::Link, &LINK),
        "",
        "Properties of single links: `n0--n1: {loss: 1%}`. Either end may be named first; the second of parallel links \
         is `n0--n1#1`. Keys that are not named keep the value of `link`.",
    ),
];

/// Tables of settings.
const TABLES: &[Key] = &[
    key(
        "timers",
        TIMERS_FORMS,
        "`auto`",
        "Timers after which a link counts as lost, and as back. With `auto`, and for each key that is left open here and in `transport`, real \
         processes take the default of the key, and virtual time takes a value that follows from the links.",
    ),
    key("transport", Kind::Table(&TRANSPORT), "", "End-to-end reliability."),
    key("paths", Kind::Table(&PATHS), "", "Choice of the path of a packet where several lead to its node."),
    key("packing", Kind::Table(&PACKING), "", "Packing of small operations into frames."),
    key(
        "forwarding",
        Kind::Table(&FORWARDING),
        "",
        "Time and buffers with which a switch, or a node that relays for others, forwards a frame; in virtual time.",
    ),
    key("credits", Kind::Table(&CREDITS), "", "Flow control of a link."),
    key(
        "channels",
        CHANNELS_FORMS,
        "`off`",
        "Virtual channels of every link, each with a queue and credits of its own: none, one for each message class, or as the \
         table says.",
    ),
    key("job", JOB_FORMS, "`litmus`", "Job of the rack."),
    key("expect", Kind::Table(&EXPECT), "", "Expectations that the report compares with the run."),
];
