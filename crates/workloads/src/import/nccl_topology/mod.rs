//! Topologies that NCCL writes to `NCCL_TOPO_DUMP_FILE`: GPUs, processors, PCI Express, NVLink and network cards of a server.
//!
//! GPUs are nodes; all other devices are switches. NVLinks between two devices are one link of their joint rate. Network cards of
//! all servers meet in one switch. Several files are several servers. The files have no delays.

mod elements;
mod server;

use std::collections::BTreeMap;

use roxmltree::{Document, ParsingOptions};

use crate::error::{WorkloadError, WorkloadErrors};
use crate::import::hardware::{Hardware, LINKS_MAX, Link, MEMBERS_MAX, Speed, rack_name};
use crate::import::imported::{Content, File, Imported};
use crate::import::nccl_topology::server::Server;
use crate::import::notes::Notes;

/// Most elements and texts of a file.
const XML_NODES_MAX: u32 = 1 << 18;
/// Delay of every link in nanoseconds, as that of a rack file.
const DELAY_NS: u64 = 500;
/// Switch that joins the network cards of all servers.
const NETWORK: &str = "network";

/// Reads the topologies of some servers.
pub(super) fn read(files: &[File<'_>]) -> Result<Imported, WorkloadErrors> {
    let mut notes = Notes::default();
    let mut rack = Rack::default();
    for (index, file) in files.iter().enumerate() {
        let prefix = if files.len() > 1 { format!("h{index}.") } else { String::new() };
        let in_file = |error: WorkloadError| error.of(file.name);
        let text = file.text()?;
        let options = ParsingOptions { nodes_limit: XML_NODES_MAX, ..ParsingOptions::default() };
        let document =
            Document::parse_with_options(text, options).map_err(|error| in_file(unreadable(&error)))?;
        let server = Server::read(&document, prefix, &mut notes).map_err(in_file)?;
        rack.add(server);
        notes.count("files without delays, whose links have 500 ns");
    }
    let name = files.first().map_or("", |file| file.name);
    let title = files.first().map_or_else(String::new, File::title);
    let hardware = rack.hardware(&title).map_err(|error| error.of(name))?;
    Ok(Imported { content: Content::Hardware(hardware), notes: notes.finish() })
}

fn unreadable(error: &roxmltree::Error) -> WorkloadError {
    let position = error.pos();
    let hint = "the file is cut off or damaged; dump the topology again with NCCL_TOPO_DUMP_FILE";
    let reason = format!("the file is no XML: {error}");
    WorkloadError::line(position.row.max(1) as usize, position.col.max(1) as usize, reason, hint)
}

/// Members of all servers.
#[derive(Debug, Default)]
struct Rack {
    nodes: Vec<String>,
    switches: Vec<String>,
    /// Rate of each link by its ends.
    links: BTreeMap<(String, String), u64>,
    has_network: bool,
}

impl Rack {
    fn add(&mut self, server: Server) {
        self.nodes.extend(server.nodes);
        self.switches.extend(server.switches);
        self.links.extend(server.links);
        self.has_network |= !server.networks.is_empty();
        let networks = server.networks.into_iter();
        self.links.extend(networks.map(|(card, rate)| ((card, NETWORK.to_owned()), rate)));
    }

    fn hardware(self, title: &str) -> Result<Hardware, WorkloadError> {
        let mut switches = self.switches;
        if self.has_network {
            switches.push(NETWORK.to_owned());
        }
        let (members, links) = (self.nodes.len() + switches.len(), self.links.len());
        if self.nodes.is_empty() {
            return Err(WorkloadError::whole(
                "the files have no GPU",
                "name files that NCCL wrote on servers with GPUs",
            ));
        }
        if members > MEMBERS_MAX || links > LINKS_MAX {
            let reason = format!("the files have {members} members and {links} links");
            let hint = format!("a rack has at most {MEMBERS_MAX} members and {LINKS_MAX} links");
            return Err(WorkloadError::whole(reason, hint));
        }
        let link = |((a, b), bits_per_s): ((String, String), u64)| {
            let speed = Speed { bits_per_s, delay_ns: DELAY_NS };
            Link { a, b, speed, parallel: 1 }
        };
        let links = self.links.into_iter().map(link).collect();
        Ok(Hardware { name: rack_name(title), nodes: self.nodes, switches, links, forwarding_ns: 0 })
    }
}

#[cfg(test)]
mod tests;
