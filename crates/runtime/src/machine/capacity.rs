//! Check that the machine has the memory for a rack, before anything starts.
//!
//! A node's region is reserved at the start and filled while the job runs, so a rack that is too large would
//! start and be killed later. The check compares the memory that the rack may fill (memory of all nodes,
//! rings of all links) with the memory that the kernel reports as available without swapping, or with the
//! limit of a control group if that is smaller. The few hundred KiB of each process are not counted.

use std::fs;
use std::path::Path;

use rackloom::wires::packet;
use rackloom_plan::{FrameBuffer, LinkPlan, MemoryDevice, Plan};
use rackloom_protocol::NodeId;

use crate::machine::here::Here;
use crate::outcome::exit::Exit;
use crate::outcome::failure::Failure;
use crate::units;

const HINT: &str = "make `defaults.memory` or `ring_bytes` smaller, or name fewer nodes";

/// Memory that a rack may fill, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Required {
    nodes: u64,
    rings: u64,
}

/// Returns the memory that the kernel keeps for one end of a link on the packet wire, in bytes.
fn kernel_ring_bytes(plan: &Plan, link: &LinkPlan) -> u64 {
    let (ether_type, frame_bytes_max) = (plan.settings.ether_type, plan.wire_bytes_max());
    let (credits, reception) = (link.credits, plan.settings.reception);
    packet::ring_bytes(&packet::Settings { ether_type, frame_bytes_max, credits, reception })
}

impl Required {
    fn by(plan: &Plan, here: &Here) -> Self {
        // A process of a GPU node allocates what it needs when it takes its seat.
        let members = (0..).zip(&plan.members).take(plan.count_without_processes());
        let members = members.filter(|(number, _)| here.runs(plan, NodeId(*number)));
        // Memory of a GPU is not memory of this machine. Its size is checked when it is allocated.
        let on_host =
            members.filter(|(_, member)| !matches!(member.memory.device, Some(MemoryDevice::Cuda(_))));
        let nodes = on_host.map(|(_, member)| member.memory_bytes).fold(0, u64::saturating_add);
        let links = || plan.links.iter().filter(|link| !plan.is_process_link(&link.edge));
        let ends = |link: &LinkPlan| here.ends(plan, &link.edge);
        let rings = match plan.settings.wire.properties().buffer {
            FrameBuffer::Ring => {
                links().map(ends).sum::<u64>().saturating_mul(plan.settings.ring_bytes.into())
            }
            FrameBuffer::KernelRing => links().map(|link| ends(link) * kernel_ring_bytes(plan, link)).sum(),
            // The kernel allocates memory for datagrams as they arrive.
            FrameBuffer::Socket => 0,
        };
        Self { nodes, rings }
    }

    /// Returns a text with the amounts if less than this many bytes are available.
    fn shortage(self, available: u64) -> Option<String> {
        let total = self.nodes.saturating_add(self.rings);
        (total > available).then(|| {
            format!(
                "the rack needs {} of memory (nodes {}, rings {}), and this machine has {} available",
                units::bytes(total),
                units::bytes(self.nodes),
                units::bytes(self.rings),
                units::bytes(available)
            )
        })
    }
}

/// Checks that this machine has the memory for its share of a rack.
///
/// # Errors
/// The memory is short. The failure states the amounts.
pub fn must_suffice(plan: &Plan, here: &Here) -> Result<(), Failure> {
    shortage(plan, here).map_or(Ok(()), |what| Err(Failure::new(Exit::CouldNotStart, what).hint(HINT)))
}

/// Returns a warning if this machine cannot hold the whole rack. The rack may be meant for another machine.
#[must_use]
pub fn warning(plan: &Plan) -> Option<String> {
    shortage(plan, &Here::default()).map(|what| format!("warning: {what}\n  hint:  {HINT}"))
}

/// Returns a text with the shortage; `None` if there is enough, or if the system does not report its memory.
fn shortage(plan: &Plan, here: &Here) -> Option<String> {
    let of_machine = available(&fs::read_to_string("/proc/meminfo").ok()?)?;
    let of_group = left_in_group(Path::new("/sys/fs/cgroup")).unwrap_or(u64::MAX);
    Required::by(plan, here).shortage(of_machine.min(of_group))
}

/// Reads `MemAvailable` of `/proc/meminfo`, in bytes.
fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Returns the memory that the root control group leaves, in bytes, if it has a limit. Cached files count as used there, but
/// the kernel frees them on demand.
fn left_in_group(folder: &Path) -> Option<u64> {
    let text = |file| fs::read_to_string(folder.join(file)).ok();
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let (most, used) = (number(&text("memory.max")?)?, number(&text("memory.current")?)?);
    let statistics = text("memory.stat").unwrap_or_default();
    let cached =
        statistics.lines().find_map(|line| number(line.strip_prefix("inactive_file ")?)).unwrap_or(0);
    Some(most.saturating_sub(used.saturating_sub(cached)))
}

#[cfg(test)]
mod tests {
    use rackloom_plan::WireKind;

    use super::*;

    #[test]
    fn memory_on_a_gpu_does_not_count() {
        let required = |memory: &str| {
            let text =
                format!("name: duo\nshape: {{full-mesh: {{nodes: 2}}}}\ndefaults: {{memory: {memory}}}\n");
            Required::by(&Plan::parse(&text, "test").expect("a plan"), &Here::default()).nodes
        };
        assert_eq!(required("{bytes: 64MiB, device: 'cuda:0'}"), 0);
        assert_eq!(required("{bytes: 64MiB, device: 'fake:0'}"), 128 << 20, "a fake GPU uses host memory");
        assert_eq!(required("64MiB"), 128 << 20);
    }

    #[test]
    fn a_rack_needs_memory_for_its_nodes_and_both_directions_of_its_rings() {
        let text = "name: r\nshape: {star: {nodes: 3}}\ndefaults: {memory: 8MiB}\nring_bytes: 64KiB\n";
        let mut plan = Plan::parse(text, "test").unwrap();
        let required = Required::by(&plan, &Here::default());
        assert_eq!(
            required,
            Required { nodes: 25_165_824, rings: 393_216 },
            "three nodes, three links; a switch has none"
        );
        assert_eq!(required.shortage(25_559_040), None);
        let shortage = required.shortage(25_559_039).unwrap();
        for part in ["24.4 MiB", "nodes 24.0 MiB", "rings 384 KiB", "available"] {
            assert!(shortage.contains(part), "{shortage}");
        }
        plan.set_wire(WireKind::Packet);
        // 192 frames of 4320 bytes with their headers, 15 to a block of 64 KiB, at both ends of three links.
        assert_eq!(Required::by(&plan, &Here::default()).rings, 6 * 13 * 65_536);
        plan.set_wire(WireKind::Udp);
        assert_eq!(Required::by(&plan, &Here::default()).rings, 0);
    }

    #[test]
    fn available_memory_is_read_from_meminfo() {
        let text = "MemTotal:  8000 kB\nMemFree:   1 kB\nMemAvailable:    4096 kB\nBuffers: 7 kB\n";
        assert_eq!(available(text), Some(4 << 20));
        assert_eq!(available("MemTotal: 8000 kB\n"), None);
        assert!(available(&fs::read_to_string("/proc/meminfo").unwrap()).unwrap() > 0);
    }

    #[test]
    fn a_control_group_leaves_its_limit_less_what_is_used_and_not_cached() {
        let folder = std::env::temp_dir().join(format!("rackloom-capacity-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let write = |file: &str, text: &str| fs::write(folder.join(file), text).unwrap();
        assert_eq!(left_in_group(&folder), None, "no limit is reported");
        write("memory.max", "max\n");
        write("memory.current", "700\n");
        assert_eq!(left_in_group(&folder), None, "the limit is `max`");
        write("memory.max", "1000\n");
        assert_eq!(left_in_group(&folder), Some(300));
        write("memory.stat", "anon 100\nfile 600\ninactive_file 500\nactive_file 100\n");
        assert_eq!(left_in_group(&folder), Some(800));
        fs::remove_dir_all(&folder).unwrap();
    }
}
