//! Array job of Slurm: each element runs its share of the points.

use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

use super::order::{Order, quoted};
use crate::failure::Failure;

/// Returns the script of the job.
pub(super) fn script(order: &Order<'_>) -> String {
    let elements = order.elements();
    let last = elements - 1;
    let at_once = order.options.jobs.map_or_else(String::new, |jobs| format!("%{jobs}"));
    let (directory, program) = (quoted(&order.directory), quoted(&order.program));
    format!(
        "#!/bin/sh\n\
         # Points of a sweep of rackloom, as an array job. A point that dies is run once more; points with a result are not run again.\n\
         #SBATCH --job-name=rackloom-sweep\n\
         #SBATCH --array=0-{last}{at_once}\n\
         #SBATCH --ntasks=1\n\
         #SBATCH --cpus-per-task=1\n\
         #SBATCH --output=/dev/null\n\
         cd {directory} || exit 3\n\
         exec {program} sweep --share \"$SLURM_ARRAY_TASK_ID/{elements}\" --out . > \"logs/share-$SLURM_ARRAY_TASK_ID.txt\" 2>&1\n"
    )
}

/// Submits the script. Returns false if there is no Slurm here.
///
/// # Errors
/// Slurm refuses it.
pub(super) fn submit(script: &Path) -> Result<bool, Failure> {
    let output = match Command::new("sbatch").arg(script).output() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(Failure::could_not_start("cannot start `sbatch`", error)),
        Ok(output) => output,
    };
    if output.status.success() {
        return Ok(true);
    }
    let message = String::from_utf8_lossy(&output.stderr);
    Err(Failure::could_not_start("`sbatch` refuses the job", message.trim())
        .at_path(script)
        .hint("change the script and submit it with `sbatch`"))
}
