//! `rackloom calibrate --gpu`: measures the sizes from which each method of moving bytes is the fastest on a
//! device, and stores them for later nodes.
//!
//! [`rackloom_gpu::tiers`] measures. This module selects the device and prints the results.

use rackloom::memory::open_device;
use rackloom_gpu::GpuError;
use rackloom_gpu::tiers::{Tiers, Timed, measure};
use rackloom_plan::MemoryDevice;
use serde_json::{Value, json};

use crate::arguments::Output;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::present::table::{Column, Table};
use crate::present::units;
use crate::reporting::{print_data, print_text};

/// Measures a device and stores the result.
pub(super) fn run(device: &str, json: bool) -> Result<Exit, Failure> {
    let unknown =
        || Failure::bad_input(format!("{device} is not a device")).at("--gpu").hint("write `cuda:0`");
    let choice = MemoryDevice::named(device).ok_or_else(unknown)?;
    let (opened, name) = open_device(choice.into()).map_err(|error| failure_of(&error))?;
    let (tiers, timed) = measure(opened).map_err(|error| failure_of(&error))?;
    let kept = tiers
        .keep(&name)
        .map_err(|error| Failure::could_not_start("cannot store the measured sizes", error))?;
    let kept = kept.display().to_string();
    match json {
        true => print_data(&format!("{:#}", as_json(device, &name, &tiers, &timed, &kept)))?,
        false => print_text(&Output { json: None }, &as_table(device, &tiers, &timed, &kept))?,
    }
    Ok(Exit::Pass)
}

fn failure_of(error: &GpuError) -> Failure {
    Failure::new(Exit::CouldNotStart, error.what()).hint(error.hint())
}

fn as_table(device: &str, tiers: &Tiers, timed: &[Timed], kept: &str) -> String {
    let columns =
        ["bytes", "staged", "in place", "by a kernel", "by engines", "piece by piece", "read ahead"];
    let mut table = Table::new(&columns.map(Column::Right));
    for one in timed {
        let times =
            [one.staged_ns, one.in_place_ns, one.kernel_ns, one.engines_ns, one.piecewise_ns, one.ahead_ns];
        table.row(std::iter::once(units::bytes(one.bytes)).chain(times.map(units::time)));
    }
    let Tiers { in_place_bytes_min, engine_bytes_min, ahead_bytes_min } = *tiers;
    format!(
        "{}\n{device}: in place from {}, engines from {}, read ahead from {}\nstored in {kept}: nodes on this device use them from now on",
        table.render(),
        units::bytes(in_place_bytes_min),
        units::bytes(engine_bytes_min),
        units::bytes(ahead_bytes_min),
    )
}

fn as_json(device: &str, name: &str, tiers: &Tiers, timed: &[Timed], kept: &str) -> Value {
    let row = |one: &Timed| {
        json!({
            "bytes": one.bytes,
            "staged_ns": one.staged_ns,
            "in_place_ns": one.in_place_ns,
            "kernel_ns": one.kernel_ns,
            "engines_ns": one.engines_ns,
            "piecewise_ns": one.piecewise_ns,
            "ahead_ns": one.ahead_ns,
        })
    };
    json!({
        "device": device,
        "name": name,
        "tiers": {
            "in_place_bytes_min": tiers.in_place_bytes_min,
            "engine_bytes_min": tiers.engine_bytes_min,
            "ahead_bytes_min": tiers.ahead_bytes_min,
        },
        "kept": kept,
        "timed": timed.iter().map(row).collect::<Vec<_>>(),
    })
}
