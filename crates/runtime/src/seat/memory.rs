//! Memory of a seat: allocated as the rack file states, counted, and freed after the job.
//!
//! Locking and binding are required: a node without them does not start. Huge pages are optional: a node
//! without them reports that and continues. Regions that are still in use at the end are listed. No function
//! here waits.

use rackloom::HostMemory;
use rackloom::memory::{DeviceChoice, MemoryLimits, MemoryOptions, Pages, Statistics, TenantLimit, Usage};
use rackloom_jobs::Job;
use rackloom_jobs::report::{LeakedRegion, Level, MemoryReport, PoolReport, Tiers};
use rackloom_plan::{MemberPlan, Plan, ShareBy};
use rackloom_protocol::{Endpoint, NodeId, RegionConfig, RegionId};

use super::sharing::Sharing;

/// Length of the region with which the options are tried if the job has no memory.
const TRIAL_BYTES: u64 = 4096;

/// Allocates and registers the regions of the job. `beside`: bytes of regions that follow with [`allocate_beside`].
pub(super) fn allocate(
    plan: &Plan,
    node: NodeId,
    mut endpoint: Endpoint,
    job: &dyn Job,
    beside: u64,
) -> Result<(Endpoint, HostMemory), String> {
    let member = &plan.members[node.index()];
    let options = options(member);
    let mut memory = HostMemory::limited(limits(plan, node, beside));
    let regions = job.regions();
    if regions.is_empty() {
        // The trial is not in the node's own memory: it would change the counts.
        let demands = options.huge_pages(false);
        let tried = HostMemory::default().allocate_with(RegionId(0), TRIAL_BYTES, demands).map(|_| ());
        tried.map_err(|error| format!("cannot hold memory as demanded: {error}"))?;
    }
    let words = job.word_regions();
    for region in regions {
        let length = region.length;
        let is_on_host = words.contains(&region.region);
        let options = if is_on_host { options.device(None) } else { options };
        memory
            .allocate_with(region.region, length, options)
            .map_err(|error| format!("cannot allocate {length} bytes: {error}"))?;
        endpoint.register(region).map_err(|error| format!("cannot register {}: {error}", region.region))?;
    }
    log(&member.name, &describe(&memory));
    Ok((endpoint, memory))
}

/// Allocates and registers regions of the seat itself, beside those of the job and beyond the memory of the node.
pub(super) fn allocate_beside(
    memory: &mut HostMemory,
    endpoint: &mut Endpoint,
    regions: &[RegionConfig],
) -> Result<(), String> {
    for region in regions {
        memory
            .allocate_with(region.region, region.length, MemoryOptions::default())
            .map_err(|error| format!("cannot allocate {} bytes: {error}", region.length))?;
        endpoint.register(*region).map_err(|error| format!("cannot register {}: {error}", region.region))?;
    }
    Ok(())
}

fn options(member: &MemberPlan) -> MemoryOptions {
    let rackloom_plan::MemoryOptions { huge_pages, locked, numa_node, device, share, mapped, .. } =
        member.memory;
    let options = MemoryOptions::default().huge_pages(huge_pages).lock(locked);
    options
        .numa_node(numa_node.map(u32::from))
        .device(device.map(DeviceChoice::from))
        .pool(share == ShareBy::Pool)
        .mapped(mapped.map(DeviceChoice::from))
}

/// Returns the limits of a node. The node's tenant may use on this node what its quota leaves if the tenant's
/// other nodes use all of their memory. `beside`: bytes of the seat itself, which do not count.
fn limits(plan: &Plan, node: NodeId, beside: u64) -> MemoryLimits {
    let own = &plan.members[node.index()];
    let quota = plan.tenants.iter().find(|quota| quota.tenant == own.tenant);
    let others = plan.members.iter().enumerate();
    let others = others.filter(|(index, other)| *index != node.index() && other.tenant == own.tenant);
    let theirs = others.fold(0_u64, |sum, (_, other)| sum.saturating_add(other.memory_bytes));
    let limit = quota.map(|quota| TenantLimit {
        tenant: own.tenant,
        bytes_max: quota.memory_max_bytes.saturating_sub(theirs).saturating_add(beside),
    });
    MemoryLimits::default().node(own.memory_bytes.saturating_add(beside)).tenant(limit)
}

/// Logs a summary, and a line for each option that was not granted.
fn log(name: &str, report: &MemoryReport) {
    let held = report.held().unwrap_or_else(|| "plain".to_owned());
    let MemoryReport { allocations, used_bytes, .. } = report;
    tracing::info!("{name}: {allocations} regions of {} bytes: {held}", used_bytes.current);
    for reason in &report.ungranted {
        tracing::info!("{name}: not granted: {reason}");
    }
}

/// Returns the report about the current memory.
pub(super) fn describe(memory: &HostMemory) -> MemoryReport {
    let mut report = MemoryReport::default();
    count(&mut report, memory);
    let mut nodes = Vec::new();
    for region in memory.regions() {
        let (Some(granted), Some(bytes)) = (memory.granted(region), memory.reserved(region)) else {
            continue;
        };
        match granted.pages {
            Pages::Huge => report.huge_bytes += bytes,
            Pages::Advised => report.advised_bytes += bytes,
            _ => {}
        }
        report.locked_bytes += if granted.locked { bytes } else { 0 };
        nodes.push(granted.numa_node);
        report.ungranted.extend(granted.reasons.iter().cloned());
    }
    report.device = memory.device().map(|device| device.to_string());
    report.mapped_by = memory.mapped_by().map(|device| device.to_string());
    report.tiers = memory.tiers().map(|tiers| Tiers {
        in_place_bytes_min: tiers.in_place_bytes_min,
        engine_bytes_min: tiers.engine_bytes_min,
        ahead_bytes_min: tiers.ahead_bytes_min,
        measured: tiers.is_measured,
    });
    report.ungranted.sort_unstable();
    report.ungranted.dedup();
    report.numa_node =
        nodes.first().copied().flatten().filter(|_| nodes.iter().all(|node| *node == nodes[0]));
    report
}

fn count(report: &mut MemoryReport, memory: &HostMemory) {
    let level = |usage: Usage| Level { current: usage.current, high: usage.high };
    let Statistics { reserved, used, allocations, frees, .. } = memory.statistics();
    report.limit_bytes = memory.limits().node_bytes_max.unwrap_or(u64::MAX);
    (report.reserved_bytes, report.used_bytes) = (level(reserved), level(used));
    let pool = memory.pool().map(|pool| (level(pool.reserved), level(pool.used)));
    report.pool = pool.map(|(reserved_bytes, used_bytes)| PoolReport { reserved_bytes, used_bytes });
    (report.allocations, report.frees) = (allocations, frees);
}

/// Frees the memory of a job that has ended. Regions that cannot be freed are named in the report.
pub(super) fn free(
    mut report: MemoryReport,
    endpoint: &mut Endpoint,
    sharing: &mut Sharing,
    memory: &mut HostMemory,
) -> MemoryReport {
    let regions: Vec<_> = memory.regions().collect();
    for region in regions {
        let bytes = memory.length(region).unwrap_or(0);
        let withdrawn = sharing.withdraw(memory, region);
        // The region is revoked in both cases: no later frame may access it.
        endpoint.revoke(region);
        let freed = withdrawn.and_then(|()| memory.free(region).map_err(|refused| refused.to_string()));
        if let Err(reason) = freed {
            report.leaks.push(LeakedRegion { region: region.0, bytes, reason });
        }
    }
    count(&mut report, memory);
    report
}

#[cfg(test)]
mod tests {
    use rackloom_plan::TenantPlan;
    use rackloom_protocol::Tenant;

    use super::*;

    fn plan(text: &str) -> Plan {
        Plan::parse(text, "test").expect("a plan")
    }

    #[test]
    fn limits_are_the_memory_of_the_node_and_the_rest_of_the_quota() {
        let mut plan = plan(
            "name: trio\nshape: {ring: {nodes: 3}}\ndefaults: {memory: 10MiB}\nnodes: {n2: {tenant: 1}}\ntenants: {0: {memory_max: 24MiB}}\n",
        );
        let of = |plan: &Plan, node| limits(plan, NodeId(node), 0);
        let mebibytes = |limits: MemoryLimits| limits.tenant.map(|limit| limit.bytes_max >> 20);
        assert_eq!(of(&plan, 0).node_bytes_max, Some(10 << 20));
        assert_eq!(mebibytes(of(&plan, 0)), Some(14), "the other node of tenant 0 has ten");
        assert_eq!(mebibytes(of(&plan, 2)), None, "tenant 1 has no quota");
        plan.tenants = vec![TenantPlan { tenant: Tenant(0), memory_max_bytes: 1 << 20 }];
        assert_eq!(mebibytes(of(&plan, 1)), Some(0), "an exhausted quota leaves no bytes");
    }

    #[test]
    fn memory_on_a_device_is_counted_and_named() {
        let mut memory = HostMemory::default();
        let options = MemoryOptions::default().device(Some(DeviceChoice::Fake(7)));
        memory.allocate_with(RegionId(1), 4096, options).expect("a fake device is always there");
        let report = describe(&memory);
        assert_eq!(report.used_bytes.current, 4096);
        let held = report.held().expect("a device is named");
        assert!(held.starts_with("on fake:7 (in place from "), "{held}");
        let other = MemoryOptions::default().device(Some(DeviceChoice::Fake(8)));
        let refused = memory.allocate_with(RegionId(2), 64, other).expect_err("another device");
        assert!(refused.to_string().contains("one device per node"), "{refused}");
    }

    #[test]
    fn options_that_were_not_granted_are_reported_once() {
        let mut memory = HostMemory::default();
        let options = MemoryOptions::default().huge_pages(true);
        for region in [1, 2] {
            memory.allocate_with(RegionId(region), 4096, options).expect("huge pages are optional");
        }
        let report = describe(&memory);
        assert_eq!(report.allocations, 2);
        assert!(report.huge_bytes + report.advised_bytes > 0 || !report.ungranted.is_empty());
        let mut once = report.ungranted.clone();
        once.dedup();
        assert_eq!(once, report.ungranted);
    }
}
