//! Devices of one server and the links between them.

use std::collections::{BTreeMap, HashMap, HashSet};

use roxmltree::{Document, Node, NodeId};

use crate::error::WorkloadError;
use crate::import::nccl_topology::elements::{
    Element, LOCAL, network_rate, nvlink_rate, pci_rate, processor_rate,
};
use crate::import::notes::Notes;

/// Members and links of one server.
#[derive(Debug, Default)]
pub(super) struct Server {
    /// Begin of the names of all members.
    prefix: String,
    /// GPUs, in the order of ranks or devices.
    pub(super) nodes: Vec<String>,
    /// Other devices.
    pub(super) switches: Vec<String>,
    /// Rate of each link by its ends.
    pub(super) links: BTreeMap<(String, String), u64>,
    /// Rate of each network card towards the network.
    pub(super) networks: Vec<(String, u64)>,
    /// Member of each element.
    members: HashMap<NodeId, String>,
    /// GPU at each address on the bus.
    gpus: HashMap<String, String>,
    /// NVSwitch at each address on the bus.
    nvswitches: HashMap<String, String>,
}

type Outcome = Result<(), WorkloadError>;

impl Server {
    /// Reads a topology. Names of members begin with `prefix`.
    pub(super) fn read(
        document: &Document<'_>,
        prefix: String,
        notes: &mut Notes,
    ) -> Result<Self, WorkloadError> {
        let root = document.root_element();
        if !root.has_tag_name("system") {
            let reason = format!("the file is a {} and no system", root.tag_name().name());
            let hint = "name a file that NCCL wrote to NCCL_TOPO_DUMP_FILE";
            return Err(Element { node: root }.mistake(reason, hint));
        }
        let mut server = Self { prefix, ..Self::default() };
        server.add_gpus(root)?;
        server.add_devices(root)?;
        for node in root.descendants() {
            match node.tag_name().name() {
                "nvlink" => server.add_nvlink(node, notes)?,
                "c2c" => server.add_chip_link(node)?,
                _ => {}
            }
        }
        server.join_processors(root);
        Ok(server)
    }

    fn name(&self, kind: &str, index: usize) -> String {
        format!("{}{kind}{index}", self.prefix)
    }

    /// Adds a link. Of two between the same members, the faster one counts.
    fn link(&mut self, a: String, b: String, rate: u64) {
        let ends = if self.links.contains_key(&(b.clone(), a.clone())) { (b, a) } else { (a, b) };
        let known = self.links.entry(ends).or_default();
        *known = rate.max(*known);
    }

    /// Adds all GPUs, in the order of their ranks, or of their devices without ranks.
    fn add_gpus(&mut self, root: Node<'_, '_>) -> Outcome {
        let mut gpus = Vec::new();
        for node in root.descendants().filter(|node| node.has_tag_name("gpu")) {
            let element = Element { node };
            let device = element.wanted("dev")?;
            gpus.push((element.number("rank")?.unwrap_or(device), device, node));
        }
        gpus.sort_by_key(|(rank, device, _)| (*rank, *device));
        let mut known = HashSet::new();
        for (_, device, node) in gpus {
            let element = Element { node };
            if !known.insert(device) {
                return Err(element
                    .mistake(format!("GPU {device} is in the file twice"), "give each GPU its own dev"));
            }
            let name = self.name("gpu", device as usize);
            self.nodes.push(name.clone());
            let parent = node.parent_element().map(|node| Element { node });
            if let Some(address) = parent.and_then(|parent| parent.address("busid")) {
                self.gpus.insert(address, name.clone());
            }
            self.members.insert(node.id(), name);
        }
        Ok(())
    }

    /// Adds processors, PCI switches and network cards above GPUs and networks, with their links.
    fn add_devices(&mut self, root: Node<'_, '_>) -> Outcome {
        let used = used(root);
        let (mut cpus, mut bridges, mut cards) = (0, 0, 0);
        let next = |count: &mut usize| {
            *count += 1;
            *count - 1
        };
        for node in root.descendants().filter(|node| used.contains(&node.id())) {
            let element = Element { node };
            let gpu = element.child("gpu").and_then(|gpu| self.members.get(&gpu.node.id()).cloned());
            let name = match (node.tag_name().name(), gpu) {
                ("cpu", _) => self.switch("cpu", next(&mut cpus)),
                // The element of a card on the bus stands for the card.
                ("pci", Some(gpu)) => gpu,
                ("pci", None) if element.child("nic").is_some() => continue,
                ("pci", None) => self.switch("pci", next(&mut bridges)),
                ("nic", _) => self.switch("nic", next(&mut cards)),
                _ => continue,
            };
            self.members.insert(node.id(), name.clone());
            if node.has_tag_name("nic") {
                self.networks.extend(network_rate(element)?.map(|rate| (name.clone(), rate)));
            }
            self.join_parent(node, name)?;
        }
        Ok(())
    }

    fn switch(&mut self, kind: &str, index: usize) -> String {
        let name = self.name(kind, index);
        self.switches.push(name.clone());
        name
    }

    /// Links a device with the next one above it.
    fn join_parent(&mut self, node: Node<'_, '_>, name: String) -> Outcome {
        let above = node.ancestors().skip(1).find_map(|above| self.members.get(&above.id()).cloned());
        let Some(above) = above else { return Ok(()) };
        let is_pci = |node: &Node<'_, '_>| node.has_tag_name("pci");
        let pci = node.ancestors().take(2).find(is_pci);
        let rate = pci.map_or(Ok(LOCAL), |node| pci_rate(Element { node }))?;
        self.link(name, above, rate);
        Ok(())
    }

    fn add_nvlink(&mut self, node: Node<'_, '_>, notes: &mut Notes) -> Outcome {
        let element = Element { node };
        let count = element.wanted("count")?;
        let Some((gpu, capability)) = self.gpu_above(node)? else {
            return Err(
                element.mistake("an nvlink stands outside of a gpu".to_owned(), "dump the topology again")
            );
        };
        let rate = nvlink_rate(capability).saturating_mul(u64::from(count));
        let Some(target) = element.address("target") else {
            return Err(
                element.mistake("nvlink has no attribute target".to_owned(), "dump the topology again")
            );
        };
        let other = if element.is_class("tclass", "0x0680") && !element.is_class("tclass", "0x068001") {
            Some(self.nvswitch(target))
        } else if element.is_class("tclass", "0x06") {
            self.processor_above(node)
        } else {
            self.gpus.get(&target).cloned()
        };
        match other {
            Some(other) => self.link(gpu, other, rate),
            None => notes.count("NVLinks to devices that the file does not have, which are left out"),
        }
        Ok(())
    }

    fn nvswitch(&mut self, address: String) -> String {
        if let Some(name) = self.nvswitches.get(&address) {
            return name.clone();
        }
        let name = self.switch("nvs", self.nvswitches.len());
        self.nvswitches.insert(address, name.clone());
        name
    }

    /// Adds the link between a GPU and the processor in its package. Its rate is stated in MB/s.
    fn add_chip_link(&mut self, node: Node<'_, '_>) -> Outcome {
        let element = Element { node };
        let (count, mbyte) = (element.wanted("count")?, element.wanted("bw")?);
        let rate = u64::from(count).saturating_mul(u64::from(mbyte)).saturating_mul(8_000_000);
        if let (Some((gpu, _)), Some(processor)) = (self.gpu_above(node)?, self.processor_above(node)) {
            self.link(gpu, processor, rate);
        }
        Ok(())
    }

    /// Returns the GPU that an element belongs to, with its compute capability times ten.
    fn gpu_above(&self, node: Node<'_, '_>) -> Result<Option<(String, u32)>, WorkloadError> {
        let Some(gpu) = node.ancestors().find(|above| above.has_tag_name("gpu")) else { return Ok(None) };
        let capability = Element { node: gpu }.number("sm")?.unwrap_or(80);
        Ok(self.members.get(&gpu.id()).map(|name| (name.clone(), capability)))
    }

    fn processor_above(&self, node: Node<'_, '_>) -> Option<String> {
        let processor = node.ancestors().find(|above| above.has_tag_name("cpu"))?;
        self.members.get(&processor.id()).cloned()
    }

    /// Links each two processors of the server.
    fn join_processors(&mut self, root: Node<'_, '_>) {
        let processors: Vec<_> = root
            .children()
            .filter(|child| child.has_tag_name("cpu"))
            .filter_map(|node| {
                Some((self.members.get(&node.id())?.clone(), processor_rate(Element { node })))
            })
            .collect();
        for (index, (first, rate)) in processors.iter().enumerate() {
            for (second, other) in &processors[index + 1..] {
                self.link(first.clone(), second.clone(), *rate.min(other));
            }
        }
    }
}

/// Returns the elements that are above GPUs or network cards, and these.
fn used(root: Node<'_, '_>) -> HashSet<NodeId> {
    let mut used = HashSet::new();
    for device in root.descendants().filter(|node| node.has_tag_name("gpu") || node.has_tag_name("nic")) {
        for above in device.ancestors() {
            if !used.insert(above.id()) {
                break;
            }
        }
    }
    used
}
