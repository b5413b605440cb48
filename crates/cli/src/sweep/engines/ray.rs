//! Tasks of Ray, by a small driver in Python: `scripts/sweep_ray.py`.

use std::path::Path;
use std::process::Command;

use super::order::Order;
use crate::failure::Failure;

/// The driver.
pub(super) const DRIVER: &str = include_str!("../../../../../scripts/sweep_ray.py");

/// Runs the driver to its end.
///
/// # Errors
/// It cannot be started, or does not end well.
pub(super) fn run(driver: &Path, order: &Order<'_>) -> Result<(), Failure> {
    let mut command = Command::new("python3");
    command.arg(driver).arg("--rackloom").arg(&order.program).arg("--out").arg(&order.directory);
    if let Some(address) = &order.options.ray_address {
        command.args(["--address", address]);
    }
    if let Some(jobs) = order.options.jobs {
        command.args(["--jobs", &jobs.to_string()]);
    }
    let status =
        command.status().map_err(|error| Failure::could_not_start("cannot start `python3`", error))?;
    if status.success() {
        return Ok(());
    }
    Err(Failure::could_not_start("the driver of Ray did not end well", status)
        .at_path(driver)
        .hint("install Ray (`pip install ray`); reports that were written are kept"))
}
