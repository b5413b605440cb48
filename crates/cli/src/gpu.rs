//! `rackloom gpu`: properties of this machine's GPUs, as tables or as JSON.

use rackloom_gpu::{DeviceInfo, Driver, Machine, PeerInfo, probe};
use serde_json::{Value, json};

use crate::arguments::{GpuArguments, GpuCommand, Output};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::present::table::{Column, Table};
use crate::reporting::{print_data, print_text};

/// Runs `rackloom gpu`.
pub(crate) fn run(arguments: &GpuArguments) -> Result<Exit, Failure> {
    let GpuCommand::Info { json } = arguments.command;
    let machine = Driver::open()
        .and_then(|driver| probe(&driver))
        .map_err(|error| Failure::new(Exit::CouldNotStart, error.what()).hint(error.hint()))?;
    match json {
        true => print_data(&format!("{:#}", as_json(&machine)))?,
        false => print_text(&Output { json: None }, as_tables(&machine).trim_end_matches('\n'))?,
    }
    Ok(Exit::Pass)
}

fn version(counted: i32) -> String {
    format!("{}.{}", counted / 1000, counted % 1000 / 10)
}

fn as_tables(machine: &Machine) -> String {
    let mut text = format!("driver: CUDA {}\n\n{}\n", version(machine.driver_version), devices(machine));
    if !machine.peers.is_empty() {
        text += &format!("\n{}\n", peers(machine));
    }
    if !machine.missing.is_empty() {
        text += &format!("\nthe driver lacks: {}\n", machine.missing.join(" "));
    }
    text
}

fn yes_or_dash(condition: bool) -> String {
    if condition { "yes" } else { "-" }.to_owned()
}

fn devices(machine: &Machine) -> String {
    let mut table = Table::new(&[
        Column::Left("device"),
        Column::Left("name"),
        Column::Right("memory"),
        Column::Right("compute"),
        Column::Right("multiprocessors"),
        Column::Right("copy engines"),
        Column::Left("handles"),
        Column::Left("pools"),
        Column::Left("pool descriptors"),
        Column::Left("pci"),
    ]);
    for device in &machine.devices {
        let (major, minor) = device.compute_capability;
        table.row([
            format!("cuda:{}", device.index),
            device.name.clone(),
            format!("{:.1} GiB", device.memory_bytes as f64 / (1_u64 << 30) as f64),
            format!("{major}.{minor}"),
            device.multiprocessors.to_string(),
            device.copy_engines.to_string(),
            yes_or_dash(device.ipc_handles),
            yes_or_dash(device.pools.has_pools()),
            yes_or_dash(device.pools.has_descriptors()),
            device.pci.clone(),
        ]);
    }
    table.render()
}

fn peers(machine: &Machine) -> String {
    let mut table = Table::new(&[
        Column::Left("from"),
        Column::Left("to"),
        Column::Left("access"),
        Column::Left("atomics"),
        Column::Right("rank"),
    ]);
    for peer in &machine.peers {
        table.row([
            format!("cuda:{}", peer.source),
            format!("cuda:{}", peer.target),
            yes_or_dash(peer.access),
            yes_or_dash(peer.atomics),
            peer.performance_rank.to_string(),
        ]);
    }
    table.render()
}

fn as_json(machine: &Machine) -> Value {
    let device = |device: &DeviceInfo| {
        json!({
            "index": device.index,
            "name": device.name,
            "uuid": device.uuid,
            "pci": device.pci,
            "compute_capability": [device.compute_capability.0, device.compute_capability.1],
            "memory_bytes": device.memory_bytes,
            "multiprocessors": device.multiprocessors,
            "copy_engines": device.copy_engines,
            "numa_node": device.numa_node,
            "maps_host_memory": device.maps_host_memory,
            "ipc_handles": device.ipc_handles,
            "pools": device.pools.has_pools(),
            "pool_descriptors": device.pools.has_descriptors(),
        })
    };
    let peer = |peer: &PeerInfo| {
        json!({
            "source": peer.source,
            "target": peer.target,
            "access": peer.access,
            "atomics": peer.atomics,
            "performance_rank": peer.performance_rank,
        })
    };
    json!({
        "driver_version": version(machine.driver_version),
        "missing": machine.missing,
        "devices": machine.devices.iter().map(device).collect::<Vec<_>>(),
        "peers": machine.peers.iter().map(peer).collect::<Vec<_>>(),
    })
}
