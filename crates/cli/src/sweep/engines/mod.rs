//! Engines that distribute the points of a manifest over machines. Each gets a file of its own form, and runs `rackloom sweep` with `--share` or
//! `--point` on machines that see the directory of the sweep.

mod kubernetes;
mod order;
mod ray;
mod slurm;

use std::path::{Path, PathBuf};

use self::order::Order;
use super::collect::{self, print};
use super::folder::Folder;
use super::workers::Died;
use crate::arguments::SweepArguments;
use crate::exit::Exit;
use crate::failure::Failure;

/// Engine that distributes points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Engine {
    Slurm,
    Ray,
    Kubernetes,
}

/// Writes the files of an engine, and submits them if there is one here.
pub(super) fn run(engine: Engine, folder: &Folder, options: &SweepArguments) -> Result<Exit, Failure> {
    let points = folder.points()?;
    let order = Order {
        directory: absolute(folder.path())?,
        program: std::env::current_exe()
            .map_err(|error| Failure::could_not_start("the path of this program is not known", error))?,
        points: points.len() as u64,
        options,
    };
    match engine {
        Engine::Slurm => {
            let path = folder.write("job.sh", &slurm::script(&order))?;
            let submitted = !options.no_submit && slurm::submit(&path)?;
            let next = if submitted { "submitted" } else { "written; submit it with `sbatch`" };
            print(&format!("{}: {next}\n{}", path.display(), collect_command(folder)))?;
        }
        Engine::Kubernetes => {
            let path = folder.write("job.yaml", &kubernetes::job(&order))?;
            let next = "written; submit it with `kubectl apply -f`";
            print(&format!("{}: {next}\n{}", path.display(), collect_command(folder)))?;
        }
        Engine::Ray => {
            let path = folder.write("sweep_ray.py", ray::DRIVER)?;
            if !options.no_submit {
                ray::run(&path, &order)?;
                return collect::results(folder, &points, &Died::new(), &options.page);
            }
            print(&format!("{}: written\n{}", path.display(), collect_command(folder)))?;
        }
    }
    Ok(Exit::Pass)
}

fn collect_command(folder: &Folder) -> String {
    format!("results, when it has run: rackloom sweep --collect --out {}", folder.path().display())
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|error| Failure::bad_input(error.to_string()).at_path(path))
}
