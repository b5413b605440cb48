//! The report of regions that still have a handle when their node leaves, and its receiver.

use std::fmt;

use rackloom_protocol::RegionId;

use crate::fabric::engine::core::Core;
use crate::fabric::memory::bytes::Bytes;
use crate::pool::{Leak, LeakReport};

/// Function that receives the report of a node that leaves.
pub(super) struct LeakListener(Box<dyn FnOnce(&LeakReport) + Send>);

impl fmt::Debug for LeakListener {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("LeakListener")
    }
}

impl LeakListener {
    pub(super) fn new(listener: impl FnOnce(&LeakReport) + Send + 'static) -> Self {
        Self(Box::new(listener))
    }

    /// Passes a report on, unless there are no leaks.
    pub(super) fn report(self, report: &LeakReport) {
        if !report.is_clean() {
            (self.0)(report);
        }
    }
}

/// Returns the regions that have a handle.
pub(super) fn allocations_of(core: &mut Core) -> LeakReport {
    let Some(member) = &mut core.member else { return LeakReport::default() };
    let config = member.member().config();
    let tenant = config.tenants[config.node.index()];
    let leak = |(region, bytes): (RegionId, &Bytes)| Leak {
        region,
        offset: 0,
        bytes: bytes.length(),
        tenant,
        tag: bytes.pooled_bytes().map(|pooled| pooled.tag.clone()).unwrap_or_default(),
    };
    LeakReport { leaks: member.memory_mut().regions_in_use().map(leak).collect() }
}
