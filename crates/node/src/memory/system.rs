//! What the system says about its memory, and the words for what it refused.
//!
//! Files below /proc and /sys, read when something was asked for or refused, never on a hot path. A file that is missing
//! makes a text shorter; it is no error of its own.

use std::io;

use super::options::Placement;

const NUMA_NODES_ONLINE: &str = "/sys/devices/system/node/online";
const SHARED_HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";

/// Size of one page of the pool that is taken when no size is named.
pub(super) fn default_huge_page_bytes() -> io::Result<u64> {
    let text = std::fs::read_to_string("/proc/meminfo")?;
    let size = text.lines().find_map(|line| kilobytes(line, "Hugepagesize:"));
    size.filter(|size| *size > 0).ok_or_else(|| io::Error::other("the system has none"))
}

/// Why there are no pages of the pool, with its numbers.
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
        "huge pages: {cause}{pool}; transparent ones are asked for instead; hint: reserve some (`sysctl vm.nr_hugepages`)"
    )
}

/// Advice is taken even where it will not be followed; what the system does with it is said in one word of a file.
pub(super) fn transparent_ones_are_off() -> Option<String> {
    let text = std::fs::read_to_string(SHARED_HUGE_PAGES).ok()?;
    let chosen = text.split_once('[')?.1.split_once(']')?.0;
    let is_off = matches!(chosen, "never" | "deny");
    is_off.then(|| {
        format!(
            "transparent huge pages: the system gives none to shared memory ({SHARED_HUGE_PAGES}: {chosen})"
        )
    })
}

/// Binding was refused; which nodes there are says mostly why.
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

/// The entry of the mapping that contains `address` in this process's list of mappings.
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

/// The number in a line such as `Rss:   12 kB`, in bytes.
fn kilobytes(line: &str, name: &str) -> Option<u64> {
    let value = line.strip_prefix(name)?.trim().strip_suffix("kB")?;
    value.trim().parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}
