//! Directory of the results, made and checked before anything starts.
//!
//! A directory with results of an earlier run with more ranks would hold a mixture of both afterwards. Those
//! files may be the user's only copy: they are not removed, and the run is refused. Results that this run
//! writes as well are replaced, each when the new one is complete. The directory of the input arrays is
//! refused. Unfinished files of killed runs are removed.

use std::fs;
use std::path::{Path, PathBuf};

use rackloom_control::source::ArrayOptions;
use rackloom_jobs::arrays::file_name;

use crate::outcome::failure::Failure;

/// Maximum number of files that an error names.
const NAMED_MAX: usize = 4;

/// Makes the directory of results that `options` names. `is_written`: true for each rank that will write a result there.
///
/// # Errors
/// The directory cannot be made or written, or holds other files of results.
pub fn make_destination(options: &ArrayOptions, is_written: &[bool]) -> Result<(), Failure> {
    let Some(directory) = &options.output else { return Ok(()) };
    if let Some(input) = &options.input {
        must_differ(input, directory)?;
    }
    fs::create_dir_all(directory).map_err(|error| {
        Failure::bad_input(format!("cannot make the directory of results: {error}"))
            .at_path(directory)
            .hint("name an existing directory, or one whose parent can be written")
    })?;
    let unreadable = |error| {
        Failure::bad_input(format!("cannot list the directory of results: {error}")).at_path(directory)
    };
    let mut surplus = Vec::new();
    for entry in fs::read_dir(directory).map_err(unreadable)? {
        let name = entry.map_err(unreadable)?.file_name();
        let Some(name) = name.to_str() else { continue };
        if let Some(process) = name.strip_prefix('.').and_then(process_of) {
            sweep(&directory.join(name), process);
        } else if let Some(rank) = rank_of(name)
            && !is_written.get(rank).is_some_and(|is_written| *is_written)
        {
            surplus.push((rank, name.to_owned()));
        }
    }
    refuse_surplus(directory, surplus)?;
    let ranks = is_written.iter().enumerate().filter(|(_, is_written)| **is_written);
    ranks.map(|(rank, _)| directory.join(file_name(rank))).try_for_each(|path| must_take_a_file(&path))?;
    must_be_writable(directory)
}

/// Returns the path of this process's unfinished result of `rank`.
pub(super) fn temporary_name(directory: &Path, rank: usize) -> PathBuf {
    directory.join(format!(".{}.{}", file_name(rank), std::process::id()))
}

/// Checks that input and output are different directories. Links are resolved.
fn must_differ(input: &Path, output: &Path) -> Result<(), Failure> {
    let (Ok(given), Ok(wanted)) = (fs::canonicalize(input), fs::canonicalize(output)) else { return Ok(()) };
    if given != wanted {
        return Ok(());
    }
    Err(Failure::bad_input("the results would replace the arrays of --input")
        .at_path(output)
        .hint("name another directory as --output"))
}

pub(super) fn rank_of(name: &str) -> Option<usize> {
    let rank = name.strip_prefix("rank")?.strip_suffix(".npy")?.parse().ok()?;
    // `rank007.npy` is not a name that this crate writes.
    (file_name(rank) == name).then_some(rank)
}

/// Returns the process of an unfinished result such as `rank3.npy.4711`.
fn process_of(name: &str) -> Option<u32> {
    let (of_rank, process) = name.rsplit_once('.')?;
    rank_of(of_rank)?;
    process.parse().ok()
}

/// Removes an unfinished result, unless the process that writes it runs.
fn sweep(path: &Path, process: u32) {
    if !Path::new(&format!("/proc/{process}")).exists() {
        // A remaining file does no harm.
        let _ = fs::remove_file(path);
    }
}

fn refuse_surplus(directory: &Path, mut surplus: Vec<(usize, String)>) -> Result<(), Failure> {
    if surplus.is_empty() {
        return Ok(());
    }
    surplus.sort_unstable();
    let mut names: Vec<_> = surplus.iter().take(NAMED_MAX).map(|(_, name)| name.clone()).collect();
    if surplus.len() > NAMED_MAX {
        names.push(format!("{} more", surplus.len() - NAMED_MAX));
    }
    let what =
        format!("{} would stay beside the results of this run, which does not write them", names.join(", "));
    Err(Failure::bad_input(what)
        .at_path(directory)
        .hint("remove the results of an earlier run, or name another directory"))
}

fn must_take_a_file(path: &Path) -> Result<(), Failure> {
    let is_in_the_way = fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
    if !is_in_the_way {
        return Ok(());
    }
    Err(Failure::bad_input("a directory has the name of a result")
        .at_path(path)
        .hint("remove it, or name another directory"))
}

/// Checks that results can be written, before a long job runs.
fn must_be_writable(directory: &Path) -> Result<(), Failure> {
    let probe = directory.join(format!(".rackloom.{}", std::process::id()));
    let made = crate::machine::exclusive::create(&probe).and_then(|_| fs::remove_file(&probe));
    made.map_err(|error| {
        Failure::bad_input(format!("cannot write into the directory of results: {error}"))
            .at_path(directory)
            .hint("name a directory that you may write to")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Directory with these empty files, removed on drop.
    struct Scratch(PathBuf);

    impl Scratch {
        fn with(name: &str, files: &[&str]) -> Self {
            let path = std::env::temp_dir().join(format!("rackloom-place-{}-{name}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            files.iter().for_each(|file| fs::write(path.join(file), "").unwrap());
            Self(path)
        }

        fn make(&self, is_written: &[bool]) -> Result<(), String> {
            let options = ArrayOptions { input: None, output: Some(self.0.clone()) };
            make_destination(&options, is_written).map_err(|failure| failure.to_string())
        }

        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(&self.0).unwrap();
            let mut names: Vec<_> =
                entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn results_that_this_run_does_not_replace_are_refused_and_kept() {
        let scratch =
            Scratch::with("stale", &["rank0.npy", "rank2.npy", "rank10.npy", "notes.txt", "rank02.npy"]);
        assert_eq!(scratch.make(&[true; 11]), Ok(()), "all are replaced");
        let refused = scratch.make(&[true, true]).unwrap_err();
        assert!(refused.starts_with("rank2.npy, rank10.npy would stay"), "{refused}");
        assert!(refused.contains("hint:"), "{refused}");
        let refused = scratch.make(&[false, true, true]).unwrap_err();
        assert!(
            refused.starts_with("rank0.npy, rank10.npy"),
            "a rank without a result writes no file: {refused}"
        );
        assert_eq!(scratch.names().len(), 5, "nothing was removed or added");
    }

    #[test]
    fn the_directory_of_the_input_arrays_is_refused_for_results() {
        let scratch = Scratch::with("given", &["rank0.npy"]);
        let link = scratch.0.join("link");
        std::os::unix::fs::symlink(&scratch.0, &link).unwrap();
        for output in [scratch.0.clone(), scratch.0.join("."), link] {
            let options = ArrayOptions { input: Some(scratch.0.clone()), output: Some(output) };
            let refused = make_destination(&options, &[true]).unwrap_err().to_string();
            assert!(refused.contains("would replace") && refused.contains("hint:"), "{refused}");
        }
        let beside = scratch.0.join("sums");
        let options = ArrayOptions { input: Some(scratch.0.clone()), output: Some(beside) };
        assert!(make_destination(&options, &[true]).is_ok(), "a directory within it is allowed");
    }

    #[test]
    fn an_unfinished_result_is_removed_unless_its_process_runs() {
        let living = format!(".rank1.npy.{}", std::process::id());
        // No process has this number: the kernel's maximum is smaller.
        let scratch = Scratch::with("half", &[".rank1.npy.4194305", &living, ".rank1.npy.swp"]);
        assert_eq!(scratch.make(&[true, true]), Ok(()));
        let mut left = [living, ".rank1.npy.swp".to_owned()];
        left.sort();
        assert_eq!(scratch.names(), left);
    }

    #[test]
    fn a_directory_with_the_name_of_a_result_is_refused() {
        let scratch = Scratch::with("blocked", &[]);
        fs::create_dir(scratch.0.join("rank1.npy")).unwrap();
        let refused = scratch.make(&[true, true]).unwrap_err();
        assert!(refused.contains("rank1.npy") && refused.contains("hint:"), "{refused}");
    }
}
