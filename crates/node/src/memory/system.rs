//! The system's data about its memory, and messages for refused requests.
//!
//! It reads files below /proc and /sys, after a request or a refusal, and never on a hot path. A missing file makes a message shorter. It is not an
//! error of its own.

use std::io;

use super::options::Placement;

const NUMA_NODES_ONLINE: &str = "/sys/devices/system/node/online";
const SHARED_HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";

/// Returns the size in bytes of one page of the default huge page pool.
pub(super) fn default_huge_page_bytes() -> io::Result<u64> {
    let text = std::fs::read_to_string("/proc/meminfo")?;
    let size = text.lines().find_map(|line| kilobytes(line, "Hugepagesize:"));
    size.filter(|size| *size > 0).ok_or_else(|| io::Error::other("the system has none"))
}

/// Returns a message for refused huge pages, with the numbers of the pool.
pub(super) fn huge_pages_refused(cause: &io::Error) -> String {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let number = |name: &str| {
        let found = text.lines().find_map(|line| line.strip_prefix(name))?;
        found.trim().parse::<u64>().ok()
    };
    let pool = match (number("HugePages_Total:"), number("HugePages_Free:"), number("HugePages_Rsvd:")) {
        (Some(total), Some(free), Some(promised)) => {
            let left = free.saturating_sub(promised);
            format!(" ({left} of {total} reserved huge pages are free)")
        }
        _ => String::new(),
    };
    format!(
        "huge pages: {cause}{pool}; transparent ones are requested instead; hint: reserve some (`sysctl vm.nr_hugepages`)"
    )
}

/// Returns a message if the system uses no transparent huge pages for shared memory. The kernel accepts the advice in any case; a file contains the
/// system's setting.
pub(super) fn transparent_huge_pages_refused() -> Option<String> {
    let text = std::fs::read_to_string(SHARED_HUGE_PAGES).ok()?;
    let chosen = text.split_once('[')?.1.split_once(']')?.0;
    let is_off = matches!(chosen, "never" | "deny");
    is_off.then(|| {
        format!(
            "transparent huge pages: the system gives none to shared memory ({SHARED_HUGE_PAGES}: {chosen})"
        )
    })
}

/// Returns the error of a refused binding, with the existing nodes, because they explain most refusals.
pub(super) fn no_such_numa_node(node: u32, cause: &io::Error) -> io::Error {
    let online = std::fs::read_to_string(NUMA_NODES_ONLINE).map_or_else(
        |_| "this system has no NUMA nodes".to_owned(),
        |text| format!("NUMA nodes of this machine: {}", text.trim()),
    );
    let text = format!(
        "cannot bind memory to NUMA node {node}: {cause} ({online}); hint: name a node that is there, or none"
    );
    io::Error::new(cause.kind(), text)
}

/// Reads the entry of the mapping that contains `address` in this process's list of mappings.
pub(super) fn read_smaps(address: usize) -> io::Result<Placement> {
    let text = std::fs::read_to_string("/proc/self/smaps")?;
    let mut lines = text.lines().skip_while(|line| !covers(line, address)).skip(1).peekable();
    if lines.peek().is_none() {
        return Err(io::Error::other("the kernel does not list this mapping"));
    }
    let mut placement = Placement::default();
    for line in lines.take_while(|line| !is_heading(line)) {
        for (name, value) in [
            ("KernelPageSize:", &mut placement.page_bytes),
            ("Rss:", &mut placement.resident_bytes),
            ("Locked:", &mut placement.locked_bytes),
        ] {
            *value = kilobytes(line, name).unwrap_or(*value);
        }
        if let Some(flags) = line.strip_prefix("VmFlags:") {
            placement.huge_advised = flags.split_whitespace().any(|flag| flag == "hg");
        }
    }
    Ok(placement)
}

fn is_heading(line: &str) -> bool {
    line.split_once('-').is_some_and(|(start, _)| usize::from_str_radix(start, 16).is_ok())
}

fn covers(line: &str, address: usize) -> bool {
    let range = line.split(' ').next().and_then(|range| range.split_once('-'));
    let parse = |text| usize::from_str_radix(text, 16).ok();
    range
        .and_then(|(start, end)| Some(parse(start)?..parse(end)?))
        .is_some_and(|range| range.contains(&address))
}

/// Returns the number in a line such as `Rss:   12 kB`, in bytes.
fn kilobytes(line: &str, name: &str) -> Option<u64> {
    let value = line.strip_prefix(name)?.trim().strip_suffix("kB")?;
    value.trim().parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}
