//! Topologies that are read and refused.

use crate::import::hardware::Hardware;
use crate::import::{Content, File, Imported};

/// Two processors: one with a switch, two GPUs and a network card, the other with one GPU.
const SERVER: &str = r#"<system version="1">
  <cpu host_hash="0x1" numaid="0" affinity="ff" arch="x86_64" vendor="AuthenticAMD" familyid="175" modelid="1">
    <pci busid="0000:01:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">
      <pci busid="0000:02:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
        <gpu dev="0" sm="90" rank="1" gdr="1">
          <nvlink target="0000:03:00.0" count="4" tclass="0x030200"/>
          <nvlink target="0000:AA:00.0" count="2" tclass="0x068000"/>
        </gpu>
      </pci>
      <pci busid="0000:03:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="8">
        <gpu dev="1" sm="90" rank="0" gdr="1">
          <nvlink target="0000:02:00.0" count="4" tclass="0x030200"/>
          <nvlink target="0000:aa:00.0" count="2" tclass="0x068000"/>
          <nvlink target="0000:99:00.0" count="1" tclass="0x030200"/>
        </gpu>
      </pci>
      <pci busid="0000:04:00.0" class="0x020000" link_speed="8.0 GT/s PCIe" link_width="16">
        <nic>
          <net name="mlx5_0" dev="0" speed="200000" port="1" latency="0.000000"/>
          <net name="mlx5_1" dev="1" speed="0" port="2"/>
        </nic>
      </pci>
      <pci busid="0000:05:00.0" class="0x010802" link_speed="8.0 GT/s PCIe" link_width="4"/>
    </pci>
  </cpu>
  <cpu host_hash="0x1" numaid="1" affinity="ff00" arch="x86_64" vendor="AuthenticAMD">
    <pci busid="0000:81:00.0" class="0x030200" link_speed="" link_width="0">
      <gpu dev="2" sm="70" rank="2" gdr="1">
        <c2c bw="50000" count="2"/>
      </gpu>
    </pci>
  </cpu>
</system>
"#;

fn imported(files: &[(&str, &str)]) -> Result<Imported, String> {
    let files: Vec<_> = files.iter().map(|(name, text)| File { name, bytes: text.as_bytes() }).collect();
    super::read(&files).map_err(|errors| errors.to_string())
}

fn hardware(files: &[(&str, &str)]) -> Hardware {
    match imported(files).unwrap().content {
        Content::Hardware(hardware) => hardware,
        Content::Workload(_) => panic!("a workload"),
    }
}

#[test]
fn gpus_are_nodes_and_other_devices_are_switches() {
    let hardware = hardware(&[("dgx.xml", SERVER)]);
    assert_eq!(hardware.name, "dgx");
    // In the order of their ranks.
    assert_eq!(hardware.nodes, ["gpu1", "gpu0", "gpu2"]);
    assert_eq!(hardware.switches, ["cpu0", "pci0", "nic0", "cpu1", "nvs0", "network"]);
    let links: Vec<_> = hardware
        .links
        .iter()
        .map(|link| format!("{} {} {}", link.a, link.b, link.speed.bits_per_s / 1_000_000))
        .collect();
    // In Mbit/s. Four and two NVLinks of 164.8 Gbit/s. 16 GT/s on 16 lanes are 252061 Mbit/s; a link to a device without
    // a speed is 8 GT/s on 16 lanes; two links of 50 GB/s in a package are faster.
    let expected = [
        "cpu0 cpu1 128000",
        "gpu0 gpu1 659200",
        "gpu0 nvs0 329600",
        "gpu0 pci0 252061",
        "gpu1 nvs0 329600",
        "gpu1 pci0 126030",
        "gpu2 cpu1 800000",
        "nic0 network 210000",
        "nic0 pci0 126030",
        "pci0 cpu0 252061",
    ];
    assert_eq!(links, expected);
    let notes = imported(&[("dgx.xml", SERVER)]).unwrap().notes;
    assert_eq!(notes[0], "NVLinks to devices that the file does not have, which are left out: 1");
}

#[test]
fn several_files_are_servers_on_one_network() {
    let hardware = hardware(&[("a.xml", SERVER), ("b.xml", SERVER)]);
    assert_eq!(hardware.nodes, ["h0.gpu1", "h0.gpu0", "h0.gpu2", "h1.gpu1", "h1.gpu0", "h1.gpu2"]);
    let cards: Vec<_> =
        hardware.links.iter().filter(|link| link.b == "network").map(|link| link.a.as_str()).collect();
    assert_eq!(cards, ["h0.nic0", "h1.nic0"]);
}

#[test]
fn mistakes_name_line_and_column() {
    let cases = [
        (SERVER.replace("</cpu>\n  <cpu", "<cpu"), "a.xml:32:"),
        (SERVER.replace("dev=\"2\" ", ""), "a.xml:28:7: gpu has no attribute dev"),
        (SERVER.replace("dev=\"2\"", "dev=\"x\""), "a.xml:28:7: dev=\"x\" of gpu is no number in range"),
        (SERVER.replace("dev=\"2\"", "dev=\"1\""), "a.xml:28:7: GPU 1 is in the file twice"),
        (
            SERVER.replace("count=\"1\"", "count=\"99999999999\""),
            "a.xml:14:11: count=\"99999999999\" of nvlink is no number",
        ),
        (SERVER.replace("target=\"0000:99:00.0\" ", ""), "a.xml:14:11: nvlink has no attribute target"),
        (
            SERVER.replace("speed=\"200000\"", "speed=\"-1\""),
            "a.xml:19:11: speed=\"-1\" of net is no number in range",
        ),
        (SERVER.replace("system", "graphs"), "a.xml:1:1: the file is a graphs and no system"),
        ("<system/>".to_owned(), "a.xml: the files have no GPU"),
        ("<system>".to_owned(), "a.xml:1:"),
        ("<!DOCTYPE a [<!ENTITY b \"c\">]><system/>".to_owned(), "a.xml:1:"),
    ];
    for (text, expected) in cases {
        let errors = imported(&[("a.xml", &text)]).expect_err(&text);
        assert!(errors.starts_with(expected), "{errors}");
    }
}

#[test]
fn a_file_with_many_elements_is_refused() {
    let text = format!("<system>{}</system>", "<pci/>".repeat(1 << 18));
    let errors = imported(&[("a.xml", &text)]).unwrap_err();
    assert!(errors.contains("the file is no XML"), "{errors}");
    let deep = format!("<system>{}{}</system>", "<pci>".repeat(100_000), "</pci>".repeat(100_000));
    assert!(imported(&[("a.xml", &deep)]).unwrap_err().contains("the files have no GPU"));
}
