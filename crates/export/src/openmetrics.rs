//! Metrics of a standing rack, as text that Prometheus and other scrapers read.
//!
//! [`exposition()`] writes what a [`RackStatus`] has. Counters of a member begin anew when another process takes its seat, as
//! scrapers expect of a restarted process. A member or end of a link that did not answer has no samples of its counters.
//!
//! The number of series grows with members and directions of links, and not with pairs of nodes: of the paths of a node, the
//! metrics have the number of nodes that it reaches and the least number of paths to one of them.

use std::collections::{BTreeMap, HashMap};

use rackloom_control::links::LinkStatus;
use rackloom_control::notice::IpCounters;
use rackloom_control::report::PathCount;
use rackloom_control::request::{MemberStatus, RackStatus};
use rackloom_control::submitted::{JobList, JobState, TenantAccount};

use crate::exposition::{Exposition, Label, Number};
pub use crate::exposition::{Family, FamilyKind, Format};

/// States of a rack.
const RACK_STATES: [&str; 3] = ["starting", "up", "going"];
/// States of a member.
const MEMBER_STATES: [&str; 7] = ["vacant", "elsewhere", "starting", "working", "up", "silent", "lost"];
/// States of a member that answers and carries frames.
const STATES_UP: [&str; 2] = ["working", "up"];
/// States of jobs that have not ended. The status has only the latest of the others.
const JOB_STATES: [JobState; 3] = [JobState::Queued, JobState::Running, JobState::Ending];
/// States of nodes for jobs.
const NODE_STATES: [&str; 4] = ["free", "job", "held", "spare"];

/// Declares the families, and the list of all.
macro_rules! families {
    ($($constant:ident: $kind:ident $name:literal $unit:literal $help:literal;)+) => {
        $(static $constant: Family = Family { name: $name, kind: FamilyKind::$kind, unit: $unit, help: $help };)+

        /// All families, in the order of the text.
        pub static FAMILIES: &[&Family] = &[$(&$constant,)+];
    };
}

families! {
    RACK: Info "rackloom_rack" "" "Rack, with wire, job and hash of its configuration.";
    RACK_STATE: Gauge "rackloom_rack_state" "" "1 for the state of the rack, 0 for all other states.";
    RACK_UPTIME: Gauge "rackloom_rack_uptime_seconds" "seconds" "Time since the supervisor started.";
    LINKS: Gauge "rackloom_links" "" "Links with an end on this host.";
    LINKS_UP: Gauge "rackloom_links_up" "" "Links that carry data at both ends.";
    FAULTS: Gauge "rackloom_faults" "" "Faults in effect, by the member that applies them.";
    FAULT_AGE: Gauge "rackloom_fault_age_seconds" "seconds" "Time since the oldest fault of this kind and target began at this member.";
    MEMBER: Info "rackloom_member" "" "Member, with role, server and tenant.";
    MEMBER_UP: Gauge "rackloom_member_up" "" "1 if the member answers and works, otherwise 0.";
    MEMBER_STATE: Gauge "rackloom_member_state" "" "1 for the state of the member, 0 for all other states.";
    MEMBER_UPTIME: Gauge "rackloom_member_uptime_seconds" "seconds" "Time since the process took the seat.";
    MEMBER_LINKS: Gauge "rackloom_member_links" "" "Links of the member.";
    MEMBER_LINKS_UP: Gauge "rackloom_member_links_up" "" "Links that carry data, as the member sees them.";
    NODES_REACHED: Gauge "rackloom_member_reached_nodes" "" "Other GPU nodes to which a live path leads.";
    NODES_UNREACHED: Gauge "rackloom_member_unreached_nodes" "" "Other GPU nodes to which no live path leads.";
    PATHS_ALIVE: Gauge "rackloom_member_paths_alive_min" "" "Least number of live shortest paths to another GPU node, by the ports at which they begin.";
    MEMORY_LIMIT: Gauge "rackloom_member_memory_limit_bytes" "bytes" "Memory of the node.";
    MEMORY_USED: Gauge "rackloom_member_memory_registered_bytes" "bytes" "Memory registered with the fabric.";
    MEMORY_USED_PEAK: Gauge "rackloom_member_memory_registered_peak_bytes" "bytes" "Most memory that was registered with the fabric at one time.";
    MEMORY_RESERVED: Gauge "rackloom_member_memory_reserved_bytes" "bytes" "Memory taken from the system, in whole pages.";
    PROCESSOR: Counter "rackloom_member_processor_seconds" "seconds" "Processor time of the member's process.";
    INCARNATION: Gauge "rackloom_member_incarnation" "" "Incarnation of the member.";
    CARRIED: Counter "rackloom_member_operations" "" "Operations of the job on memory of other nodes, by the path that carried them.";
    CARRIED_BYTES: Counter "rackloom_member_operation_bytes" "bytes" "Bytes of these operations.";
    IP_FRAMES: Counter "rackloom_member_ip_frames" "" "Frames of IP over the fabric.";
    IP_BYTES: Counter "rackloom_member_ip_bytes" "bytes" "Bytes of these frames, with a header of 10 bytes each.";
    IP_DROPPED: Counter "rackloom_member_ip_dropped_frames" "" "Frames of IP over the fabric that were dropped.";
    LINK_UP: Gauge "rackloom_link_up" "" "1 if the link carries data at every end on this host, otherwise 0.";
    LINK_FRAMES: Counter "rackloom_link_sent_frames" "" "Frames that the sending end handed to its device.";
    LINK_BYTES: Counter "rackloom_link_sent_bytes" "bytes" "Bytes of these frames, with the Ethernet header.";
    LINK_RETRANSMITTED: Counter "rackloom_link_retransmitted_packets" "" "Packets that the sending end, as their source, sent again.";
    LINK_REPLAYED: Counter "rackloom_link_replayed_frames" "" "Frames that link-level retry sent again.";
    LINK_CREDIT_WAITS: Counter "rackloom_link_credit_waits" "" "Times that sending stopped for lack of credits or because of a pause.";
    LINK_MISSING: Counter "rackloom_link_missing_frames" "" "Frames that never arrived, by gaps in the link's sequence.";
    LINK_DROPPED: Counter "rackloom_link_dropped_frames" "" "Lost frames, by reason.";
    JOBS: Gauge "rackloom_jobs" "" "Submitted jobs that have not ended.";
    JOB_NODES: Gauge "rackloom_job_nodes" "" "GPU nodes, by their use for submitted jobs.";
    TENANT_JOBS: Counter "rackloom_tenant_started_jobs" "" "Jobs of the tenant that have started.";
    TENANT_TIME: Counter "rackloom_tenant_node_seconds" "seconds" "Time of the tenant's jobs, summed over their nodes.";
    TENANT_BYTES: Counter "rackloom_tenant_moved_bytes" "bytes" "Bytes that the tenant's jobs have moved.";
    TENANT_MEMORY: Gauge "rackloom_tenant_memory_peak_bytes" "bytes" "Most memory that all nodes of the tenant had registered at one time.";
}

/// Returns the metrics of a rack.
#[must_use]
pub fn exposition(status: &RackStatus, format: Format) -> String {
    let mut exposition = Exposition::new(format);
    rack(&mut exposition, status);
    members(&mut exposition, status);
    links(&mut exposition, status);
    if let Some(submitted) = &status.submitted {
        jobs(&mut exposition, &status.name, submitted);
    }
    exposition.finish()
}

const fn flag(is_set: bool) -> Number {
    Number::Count(is_set as u64)
}

fn count(number: usize) -> Number {
    Number::Count(number as u64)
}

fn rack(exposition: &mut Exposition, status: &RackStatus) {
    let rack = ("rack", status.name.as_str());
    let labels =
        [rack, ("wire", &status.wire), ("job", &status.job), ("config_hash", status.config_hash.as_str())];
    exposition.family(&RACK).add(&labels, Number::Count(1));
    let mut states = exposition.family(&RACK_STATE);
    for state in RACK_STATES {
        states.add(&[rack, ("state", state)], flag(state == status.state));
    }
    exposition.family(&RACK_UPTIME).add(&[rack], Number::Nanoseconds(status.uptime_ns));
    exposition.family(&LINKS).add(&[rack], count(status.links_total));
    exposition.family(&LINKS_UP).add(&[rack], count(status.links_up));
    faults(exposition, status, rack);
}

fn faults(exposition: &mut Exposition, status: &RackStatus, rack: Label<'_>) {
    let mut counts: BTreeMap<&str, u64> =
        status.members.iter().map(|member| (member.name.as_str(), 0)).collect();
    let mut ages = BTreeMap::<(&str, &str), u64>::new();
    for fault in &status.faults {
        *counts.entry(&fault.member).or_default() += 1;
        let age_ns = ages.entry((&fault.what, &fault.member)).or_default();
        *age_ns = (*age_ns).max(fault.age_ns);
    }
    let mut samples = exposition.family(&FAULTS);
    for (member, faults) in counts {
        samples.add(&[rack, ("member", member)], Number::Count(faults));
    }
    let mut samples = exposition.family(&FAULT_AGE);
    for ((what, member), age_ns) in ages {
        samples.add(&[rack, ("fault", what), ("member", member)], Number::Nanoseconds(age_ns));
    }
}

/// Adds a gauge or counter of all members that have the value.
fn of_members(
    exposition: &mut Exposition,
    status: &RackStatus,
    family: &'static Family,
    value: impl Fn(&MemberStatus) -> Option<Number>,
) {
    let mut samples = exposition.family(family);
    for member in &status.members {
        if let Some(value) = value(member) {
            samples.add(&[("rack", &status.name), ("member", &member.name)], value);
        }
    }
}

fn members(exposition: &mut Exposition, status: &RackStatus) {
    let rack = ("rack", status.name.as_str());
    let mut samples = exposition.family(&MEMBER);
    for member in &status.members {
        let tenant = member.tenant.to_string();
        let labels = [
            rack,
            ("member", &member.name),
            ("role", &member.role),
            ("server", &member.server),
            ("tenant", &tenant),
        ];
        samples.add(&labels, Number::Count(1));
    }
    of_members(exposition, status, &MEMBER_UP, |member| {
        Some(flag(STATES_UP.contains(&member.state.as_str())))
    });
    let mut samples = exposition.family(&MEMBER_STATE);
    for member in &status.members {
        for state in MEMBER_STATES {
            let labels = [rack, ("member", &member.name), ("state", state)];
            samples.add(&labels, flag(state == member.state));
        }
    }
    of_members(exposition, status, &MEMBER_UPTIME, |member| member.uptime_ns.map(Number::Nanoseconds));
    of_members(exposition, status, &MEMBER_LINKS, |member| Some(count(member.links_total)));
    of_members(exposition, status, &MEMBER_LINKS_UP, |member| {
        member.links_up.map(|links| Number::Count(u64::from(links)))
    });
    paths(exposition, status);
    memory(exposition, status);
    of_members(exposition, status, &PROCESSOR, |member| member.processor_ns.map(Number::Nanoseconds));
    of_members(exposition, status, &INCARNATION, |member| member.incarnation.map(Number::Count));
    carried(exposition, status);
    ip(exposition, status);
}

fn paths(exposition: &mut Exposition, status: &RackStatus) {
    let nodes = |is_reached: bool| {
        move |member: &MemberStatus| {
            let paths = member.paths.as_ref()?.iter();
            Some(count(paths.filter(|path| (path.live > 0) == is_reached).count()))
        }
    };
    of_members(exposition, status, &NODES_REACHED, nodes(true));
    of_members(exposition, status, &NODES_UNREACHED, nodes(false));
    of_members(exposition, status, &PATHS_ALIVE, |member| {
        member.paths.as_ref()?.iter().map(|path| path.live).min().map(count)
    });
}

fn memory(exposition: &mut Exposition, status: &RackStatus) {
    // Switches have no memory.
    of_members(exposition, status, &MEMORY_LIMIT, |member| {
        Some(Number::Count(member.memory_bytes)).filter(|_| member.memory_bytes > 0)
    });
    of_members(exposition, status, &MEMORY_USED, |member| member.memory_used_bytes.map(Number::Count));
    of_members(exposition, status, &MEMORY_USED_PEAK, |member| {
        member.memory.as_ref().map(|memory| Number::Count(memory.used_bytes.high))
    });
    of_members(exposition, status, &MEMORY_RESERVED, |member| {
        member.memory.as_ref().map(|memory| Number::Count(memory.reserved_bytes.current))
    });
}

/// Adds a family with a sample for each value that `values` returns for a member, and with `label` for their difference.
fn of_members_by(
    exposition: &mut Exposition,
    status: &RackStatus,
    family: &'static Family,
    label: &'static str,
    values: impl Fn(&MemberStatus) -> Vec<(&'static str, u64)>,
) {
    let mut samples = exposition.family(family);
    for member in &status.members {
        for (value, number) in values(member) {
            let labels = [("rack", status.name.as_str()), ("member", &member.name), (label, value)];
            samples.add(&labels, Number::Count(number));
        }
    }
}

fn carried(exposition: &mut Exposition, status: &RackStatus) {
    let paths = |of: fn(&PathCount) -> u64| {
        move |member: &MemberStatus| {
            let carried = member.carried.as_ref();
            carried.map_or_else(Vec::new, |carried| {
                vec![("direct", of(&carried.direct)), ("frames", of(&carried.frames))]
            })
        }
    };
    of_members_by(exposition, status, &CARRIED, "path", paths(|path| path.operations));
    of_members_by(exposition, status, &CARRIED_BYTES, "path", paths(|path| path.bytes));
}

fn ip(exposition: &mut Exposition, status: &RackStatus) {
    let counters = |of: fn(&IpCounters) -> Vec<(&'static str, u64)>| {
        move |member: &MemberStatus| member.ip.as_ref().map_or_else(Vec::new, of)
    };
    of_members_by(
        exposition,
        status,
        &IP_FRAMES,
        "direction",
        counters(|ip| vec![("sent", ip.frames_sent), ("received", ip.frames_received)]),
    );
    of_members_by(
        exposition,
        status,
        &IP_BYTES,
        "direction",
        counters(|ip| vec![("sent", ip.bytes_sent), ("received", ip.bytes_received)]),
    );
    of_members_by(
        exposition,
        status,
        &IP_DROPPED,
        "reason",
        counters(|ip| {
            vec![("queue-full", ip.queue_full), ("unreached", ip.unreached), ("refused", ip.refused)]
        }),
    );
}

/// Adds a family with a sample for each value that `values` returns for a direction of a link. `label` names their difference; it is
/// empty if there is one value.
fn of_links(
    exposition: &mut Exposition,
    status: &RackStatus,
    family: &'static Family,
    label: &'static str,
    values: impl Fn(&LinkStatus) -> Vec<(String, u64)>,
) {
    let mut samples = exposition.family(family);
    for link in &status.links {
        let plane = link.plane.to_string();
        for (value, number) in values(link) {
            let mut labels = vec![
                ("rack", status.name.as_str()),
                ("link", &link.name),
                ("from", &link.from),
                ("to", &link.to),
                ("plane", &plane),
            ];
            if !label.is_empty() {
                labels.push((label, &value));
            }
            samples.add(&labels, Number::Count(number));
        }
    }
}

fn links(exposition: &mut Exposition, status: &RackStatus) {
    let members: HashMap<&str, &MemberStatus> =
        status.members.iter().map(|member| (member.name.as_str(), member)).collect();
    // An end on another host does not answer here, and does not count.
    let carries = |end: &str, link: u16| match members.get(end) {
        Some(member) if member.state != "elsewhere" => {
            Some(member.links_up.is_some() && !member.links_down.contains(&link))
        }
        _ => None,
    };
    of_links(exposition, status, &LINK_UP, "", |link| {
        let ends = [carries(&link.from, link.link), carries(&link.to, link.link)];
        let mut here = ends.into_iter().flatten().peekable();
        let is_up = here.peek().is_some() && here.all(|carries| carries);
        vec![(String::new(), u64::from(is_up))]
    });
    let kinds = |all: u64, data: u64| {
        vec![("data".to_owned(), data), ("control".to_owned(), all.saturating_sub(data))]
    };
    of_links(exposition, status, &LINK_FRAMES, "kind", |link| {
        link.sent.as_ref().map_or_else(Vec::new, |sent| kinds(sent.frames, sent.data_frames))
    });
    of_links(exposition, status, &LINK_BYTES, "kind", |link| {
        link.sent.as_ref().map_or_else(Vec::new, |sent| kinds(sent.bytes, sent.data_bytes))
    });
    let one = |number: Option<u64>| number.map(|number| (String::new(), number)).into_iter().collect();
    of_links(exposition, status, &LINK_RETRANSMITTED, "", |link| {
        one(link.sent.as_ref().map(|sent| sent.retransmitted))
    });
    of_links(exposition, status, &LINK_REPLAYED, "", |link| {
        one(link.sent.as_ref().map(|sent| sent.replayed))
    });
    of_links(exposition, status, &LINK_CREDIT_WAITS, "", |link| {
        one(link.sent.as_ref().map(|sent| sent.credit_waits))
    });
    of_links(exposition, status, &LINK_MISSING, "", |link| one(link.missing));
    of_links(exposition, status, &LINK_DROPPED, "reason", |link| {
        link.dropped.iter().flatten().map(|(reason, count)| (reason.clone(), *count)).collect()
    });
}

fn jobs(exposition: &mut Exposition, rack: &str, list: &JobList) {
    let rack = ("rack", rack);
    let mut samples = exposition.family(&JOBS);
    for state in JOB_STATES {
        let jobs = list.jobs.iter().filter(|job| job.state == state).count();
        samples.add(&[rack, ("state", state.name())], count(jobs));
    }
    let mut samples = exposition.family(&JOB_NODES);
    for state in NODE_STATES {
        let nodes = list.nodes.iter().filter(|node| node.state == state).count();
        samples.add(&[rack, ("state", state)], count(nodes));
    }
    let mut of_tenants = |family: &'static Family, value: fn(&TenantAccount) -> Number| {
        let mut samples = exposition.family(family);
        for account in &list.tenants {
            samples.add(&[rack, ("tenant", &account.tenant.to_string())], value(account));
        }
    };
    of_tenants(&TENANT_JOBS, |account| Number::Count(account.jobs));
    of_tenants(&TENANT_TIME, |account| Number::Nanoseconds(account.node_time_ns));
    of_tenants(&TENANT_BYTES, |account| Number::Count(account.bytes));
    of_tenants(&TENANT_MEMORY, |account| Number::Count(account.memory_high_bytes));
}
