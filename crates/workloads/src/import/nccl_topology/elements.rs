//! Attributes of elements, and the rates of links that follow from them.
//!
//! Source: `src/graph/xml.cc`, `src/graph/topo.cc` and `src/graph/topo.h` of NCCL. Rates of NVLink and between processors are those
//! that NCCL uses; rates of PCI Express follow from transfers, lanes and line code.

use roxmltree::Node;

use crate::error::WorkloadError;

/// Rates in bits per second.
const GBIT: u64 = 1_000_000_000;
/// Rate within a device in bits per second: 5000 GB/s.
pub(super) const LOCAL: u64 = 40_000 * GBIT;
/// Rate of a network card without a speed in Mbit/s.
const NETWORK_MBIT: u64 = 10_000;

/// Position of an element in its file, and mistakes there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Element<'a, 'i> {
    /// Element.
    pub(super) node: Node<'a, 'i>,
}

impl<'a, 'i> Element<'a, 'i> {
    /// Returns a mistake at this element.
    pub(super) fn mistake(&self, reason: String, hint: &str) -> WorkloadError {
        let position = self.node.document().text_pos_at(self.node.range().start);
        WorkloadError::line(position.row as usize, position.col as usize, reason, hint)
    }

    /// Returns an attribute that is a number of at least 0, or `None` if it is missing or empty.
    pub(super) fn number(&self, name: &str) -> Result<Option<u32>, WorkloadError> {
        let Some(text) = self.node.attribute(name).filter(|text| !text.is_empty()) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| {
            let element = self.node.tag_name().name();
            self.mistake(
                format!("{name}=\"{text}\" of {element} is no number in range"),
                "correct the attribute",
            )
        })
    }

    /// Returns an attribute that is a number, or the mistake that it is missing.
    pub(super) fn wanted(&self, name: &str) -> Result<u32, WorkloadError> {
        let element = self.node.tag_name().name();
        self.number(name)?.ok_or_else(|| {
            self.mistake(
                format!("{element} has no attribute {name}"),
                "dump the topology again with NCCL_TOPO_DUMP_FILE",
            )
        })
    }

    /// Returns the address on the bus that an attribute names, in lower case.
    pub(super) fn address(&self, name: &str) -> Option<String> {
        self.node.attribute(name).map(str::to_ascii_lowercase)
    }

    /// Returns true if the class of a device begins with these digits.
    pub(super) fn is_class(&self, name: &str, begin: &str) -> bool {
        self.node.attribute(name).is_some_and(|class| class.starts_with(begin))
    }

    /// Returns the first child of a kind.
    pub(super) fn child(&self, name: &str) -> Option<Element<'a, 'i>> {
        self.node.children().find(|child| child.has_tag_name(name)).map(|node| Element { node })
    }
}

/// Returns the rate of a device on PCI Express in bits per second.
pub(super) fn pci_rate(pci: Element<'_, '_>) -> Result<u64, WorkloadError> {
    let lanes = pci.number("link_width")?.filter(|lanes| *lanes > 0).unwrap_or(16);
    let speed = pci.node.attribute("link_speed").unwrap_or_default();
    let transfers = speed.split_whitespace().next().and_then(|word| word.parse::<f64>().ok());
    // Without a speed NCCL assumes the third generation.
    let transfers = transfers.filter(|transfers| (1.0..=1_000.0).contains(transfers)).unwrap_or(8.0);
    let code = if transfers <= 5.0 { 0.8 } else { 128.0 / 130.0 };
    let mbit = transfers * 1_000.0 * code * f64::from(lanes.min(32));
    Ok(mbit as u64 * 1_000_000)
}

/// Returns the rate of one NVLink in bits per second, for the compute capability of the GPU times ten.
pub(super) const fn nvlink_rate(capability: u32) -> u64 {
    match capability {
        100.. => 320_800_000_000,
        90..100 => 164_800_000_000,
        86 => 96 * GBIT,
        60..70 => 144 * GBIT,
        _ => 160 * GBIT,
    }
}

/// Returns the rate of the link between a processor and another one of its server in bits per second.
pub(super) fn processor_rate(cpu: Element<'_, '_>) -> u64 {
    let is = |name: &str, value: &str| cpu.node.attribute(name) == Some(value);
    let is_slow = is("arch", "arm64") || is("vendor", "CentaurHauls") || is("vendor", "  Shanghai  ");
    let gbyte = if is("arch", "ppc64") {
        32
    } else if is_slow {
        6
    } else if is("vendor", "AuthenticAMD") {
        16
    } else {
        10
    };
    gbyte * 8 * GBIT
}

/// Returns the rate of a network card with all its ports in bits per second.
pub(super) fn network_rate(nic: Element<'_, '_>) -> Result<Option<u64>, WorkloadError> {
    let mut rate = None;
    for node in nic.node.children().filter(|child| child.has_tag_name("net")) {
        let mbit = Element { node }.number("speed")?.map_or(0, u64::from);
        let mbit = if mbit == 0 { NETWORK_MBIT } else { mbit };
        rate = Some(rate.unwrap_or(0) + mbit * 1_000_000);
    }
    Ok(rate)
}

#[cfg(test)]
mod tests {
    use roxmltree::Document;

    use super::*;

    /// Returns the value of the root element of a text.
    fn of<T>(text: &str, value: impl Fn(Element<'_, '_>) -> T) -> T {
        let document = Document::parse(text).expect("XML");
        value(Element { node: document.root_element() })
    }

    #[test]
    fn rates_of_pci_express_follow_from_transfers_lanes_and_line_code() {
        let rate = |speed: &str, lanes: u32| {
            let text = format!("<pci link_speed=\"{speed}\" link_width=\"{lanes}\"/>");
            of(&text, |pci| pci_rate(pci).expect("a rate")) / 1_000_000
        };
        assert_eq!(rate("2.5 GT/s", 4), 8_000);
        assert_eq!(rate("5 GT/s PCIe", 8), 32_000);
        assert_eq!(rate("32.0 GT/s PCIe", 16), 504_123);
        // Without a value: the third generation, sixteen lanes.
        assert_eq!([rate("", 16), rate("Unknown", 0), rate("8.0 GT/s", 0)], [126_030; 3]);
        assert_eq!(of("<pci/>", |pci| pci_rate(pci).expect("a rate")) / 1_000_000, 126_030);
    }

    #[test]
    fn rates_of_nvlink_follow_from_the_compute_capability() {
        // GB/s of one link: 18, 20, 20, 12, 20.6, 40.1.
        let rates = [60, 70, 80, 86, 90, 100, 103].map(|capability| nvlink_rate(capability) / 100_000_000);
        assert_eq!(rates, [1_440, 1_600, 1_600, 960, 1_648, 3_208, 3_208]);
    }

    #[test]
    fn rates_between_processors_follow_from_their_maker() {
        let rate = |attributes: &str| of(&format!("<cpu {attributes}/>"), processor_rate) / 1_000_000_000;
        let makers = [
            "arch=\"ppc64\"",
            "arch=\"arm64\"",
            "vendor=\"AuthenticAMD\"",
            "vendor=\"GenuineIntel\"",
            "vendor=\"CentaurHauls\"",
        ];
        assert_eq!(makers.map(rate), [256, 48, 128, 80, 48]);
    }

    #[test]
    fn ports_of_a_card_add_up() {
        let rate = |nets: &str| of(&format!("<nic>{nets}</nic>"), |nic| network_rate(nic).expect("a rate"));
        assert_eq!(rate(""), None);
        assert_eq!(rate("<net speed=\"400000\"/><net/>"), Some(410_000_000_000));
    }
}
