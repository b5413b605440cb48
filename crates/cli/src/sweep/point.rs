//! Run of one point, in this process: from a line of the manifest to a result.
//!
//! Every engine ends here. A point that has a result is not run again, so that engines may start it twice.

use std::path::Path;
use std::time::Instant;

use super::folder::{Folder, PointResult};
use super::grid::Point;
use super::inputs::located;
use crate::arguments::sim_arguments;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::sim;

/// Runs the point with this number.
pub(super) fn run(folder: &Folder, index: u64) -> Result<Exit, Failure> {
    let point = folder.point(index)?;
    if folder.result(&point).is_none() {
        folder.write_result(&result(folder, point))?;
    }
    Ok(Exit::Pass)
}

fn result(folder: &Folder, point: Point) -> PointResult {
    let begun = Instant::now();
    let arguments = sim_arguments(&folder.rack(), &point.arguments);
    let in_folder = |copy: &Path| folder.path().join(copy);
    let simulated = arguments.and_then(|arguments| sim::simulate(&located(arguments, in_folder)));
    let took_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    match simulated {
        Ok((report, exit)) => {
            PointResult { point, exit: exit.code(), refused: None, took_ms, report: Some(report) }
        }
        Err(failure) => {
            let refused = Some(failure.to_string());
            PointResult { point, exit: failure.exit.code(), refused, took_ms, report: None }
        }
    }
}
