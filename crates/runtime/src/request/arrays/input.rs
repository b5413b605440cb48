//! Arrays of the ranks, as files in a directory of the user.
//!
//! All files are checked before anything starts, and all problems are reported together. Data is read from
//! the files on demand. It is never held completely in memory: each rank checks its own result and may need
//! every array. [`rackloom_jobs::arrays`] defines the format.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rackloom_collectives::{Collective, ElementType};
use rackloom_jobs::arrays::{HEADER_BYTES_MAX, Header, Problem, agree, file_name};
use rackloom_jobs::collective::Arrays;

use super::destination::rank_of;

/// Maximum number of surplus files that are reported one by one.
const SURPLUS_NAMED_MAX: usize = 4;

/// Arrays of the ranks, all of one type and shape.
#[derive(Debug)]
pub struct InputArrays {
    /// Type of one element.
    pub element: ElementType,
    /// Shape of one rank's array.
    pub shape: Vec<u64>,
    /// Files by rank; `None` for ranks without an array.
    files: Vec<Option<ArrayFile>>,
}

#[derive(Debug)]
struct ArrayFile {
    path: PathBuf,
    file: File,
    header: Header,
}

impl InputArrays {
    /// Opens the arrays that the collective needs. `wanted`: the element type that the user names, if any.
    ///
    /// # Errors
    /// All problems of the files.
    pub fn open(
        directory: &Path,
        collective: Collective,
        ranks: usize,
        wanted: Option<ElementType>,
    ) -> Result<Self, Vec<Problem>> {
        let gives = |rank: &usize| collective.input_elements(*rank, ranks, ranks) > 0;
        let Some(first) = (0..ranks).find(gives) else {
            let what = format!("{} takes no arrays; hint: leave --input out", collective.name());
            return Err(vec![Problem { file: directory.display().to_string(), what }]);
        };
        if let Some(what) = unusable(directory) {
            return Err(vec![Problem { file: directory.display().to_string(), what }]);
        }
        let (mut files, mut headers) = (Vec::new(), Vec::new());
        for rank in 0..ranks {
            let opened = gives(&rank).then(|| ArrayFile::open(directory.join(file_name(rank)), wanted));
            headers.push(opened.as_ref().map(|opened| match opened {
                Ok(file) => Ok(file.header.clone()),
                Err(what) => Err(what.clone()),
            }));
            files.push(opened.and_then(Result::ok));
        }
        // A rank without an array agrees with all others.
        let any = headers.iter().flatten().find_map(|header| header.clone().ok());
        let headers = headers.into_iter().map(|header| header.or(any.clone().map(Ok)));
        let headers = agree(headers.map(|header| header.unwrap_or(Err(String::new()))).collect());
        let surplus_arrays = surplus_arrays(directory, ranks);
        let mut headers = match headers {
            Ok(headers) if surplus_arrays.is_empty() => headers,
            headers => {
                let mut problems = headers.err().unwrap_or_default();
                problems.retain(|problem| !problem.what.is_empty());
                problems.extend(surplus_arrays);
                return Err(problems);
            }
        };
        let Header { element, shape, .. } = headers.swap_remove(first);
        Ok(Self { element, shape, files })
    }

    /// Returns the number of elements of one rank's array.
    pub fn elements(&self) -> u64 {
        // Checked when the header was read.
        self.shape.iter().product()
    }
}

/// Returns a problem for each array of a rank that the rack does not have. Without an error the array would
/// be missing in the result. A user with eight arrays and a rack of four nodes has most likely named the
/// wrong rack.
fn surplus_arrays(directory: &Path, ranks: usize) -> Vec<Problem> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut found: Vec<_> = entries
        .filter_map(|entry| entry.file_name().to_str().and_then(rank_of))
        .filter(|rank| *rank >= ranks)
        .collect();
    found.sort_unstable();
    let named = found.iter().take(SURPLUS_NAMED_MAX).map(|rank| Problem {
        file: file_name(*rank),
        what: format!(
            "the rack has {ranks} ranks, 0 to {}; hint: remove the file, or name a rack of as many nodes as there \
             are arrays",
            ranks.saturating_sub(1)
        ),
    });
    let left = found.len().saturating_sub(SURPLUS_NAMED_MAX);
    let rest = (left > 0).then(|| Problem {
        file: directory.display().to_string(),
        what: format!("{left} more arrays of ranks that the rack does not have"),
    });
    named.chain(rest).collect()
}

/// Returns the reason why no file of this directory can be read. It is reported once, not for each file.
fn unusable(directory: &Path) -> Option<String> {
    match std::fs::metadata(directory) {
        Ok(found) if found.is_dir() => None,
        Ok(_) => {
            Some("not a directory; hint: name the directory that holds rank0.npy, rank1.npy, ...".to_owned())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some(
            "no such directory; hint: name the directory that holds rank0.npy, rank1.npy, ...".to_owned(),
        ),
        Err(error) => Some(format!("{error}; hint: name a directory that you may read")),
    }
}

impl ArrayFile {
    fn open(path: PathBuf, wanted: Option<ElementType>) -> Result<Self, String> {
        let file = File::open(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                "no such file; hint: every rank that provides an array needs a file".to_owned()
            }
            _ => error.to_string(),
        })?;
        let found = file.metadata().map_err(|error| error.to_string())?;
        if !found.is_file() {
            let what = if found.is_dir() { "a directory" } else { "no regular file" };
            return Err(format!("{what}; hint: store the array of this rank as a regular file"));
        }
        let mut prefix = vec![0; usize::try_from(found.len()).unwrap_or(usize::MAX).min(HEADER_BYTES_MAX)];
        file.read_exact_at(&mut prefix, 0).map_err(|error| error.to_string())?;
        let header = Header::parse(&prefix, found.len(), wanted).map_err(|error| error.to_string())?;
        Ok(Self { path, file, header })
    }
}

impl Arrays for InputArrays {
    fn element(&self) -> ElementType {
        self.element
    }

    fn bytes(&self, rank: usize) -> u64 {
        self.files.get(rank).and_then(Option::as_ref).map_or(0, |array| array.header.data_bytes())
    }

    fn read(&self, rank: usize, offset: u64, out: &mut [u8]) -> Result<(), String> {
        let array = self.files.get(rank).and_then(Option::as_ref);
        let array = array.ok_or_else(|| format!("rank {rank} provides no array"))?;
        let bytes = array.header.data_bytes();
        let end = offset.checked_add(out.len() as u64).filter(|end| *end <= bytes);
        end.ok_or_else(|| format!("the array of rank {rank} has {bytes} bytes"))?;
        let read = array.file.read_exact_at(out, array.header.data_offset + offset);
        read.map_err(|error| format!("{}: {error}; it was changed while the rack ran", array.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use rackloom_jobs::arrays::header_bytes;

    use super::*;

    /// Directory of arrays, removed on drop.
    struct Directory(PathBuf);

    impl Directory {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("rackloom-arrays-{}-{name}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn put(&self, rank: usize, element: ElementType, shape: &[u64], cut: usize) {
            let mut bytes = header_bytes(element, shape);
            let data = shape.iter().product::<u64>() as usize * element.bytes();
            bytes.extend((0..data).map(|byte| byte as u8 ^ rank as u8));
            bytes.truncate(bytes.len() - cut);
            std::fs::write(self.0.join(file_name(rank)), bytes).unwrap();
        }

        fn open(
            &self,
            collective: Collective,
            wanted: Option<ElementType>,
        ) -> Result<InputArrays, Vec<Problem>> {
            InputArrays::open(&self.0, collective, 4, wanted)
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn arrays_of_one_type_and_shape_are_read_by_rank_and_offset() {
        let directory = Directory::new("good");
        (0..4).for_each(|rank| directory.put(rank, ElementType::F16, &[3, 5], 0));
        let arrays = directory.open(Collective::AllReduce, None).unwrap();
        assert_eq!((arrays.element, arrays.elements(), arrays.bytes(3)), (ElementType::F16, 15, 30));
        let mut out = [0; 4];
        arrays.read(2, 8, &mut out).unwrap();
        assert_eq!(out, [8 ^ 2, 9 ^ 2, 10 ^ 2, 11 ^ 2]);
        assert!(arrays.read(2, 27, &mut out).is_err() && arrays.read(4, 0, &mut out).is_err());
    }

    #[test]
    fn all_problems_are_reported_together() {
        let directory = Directory::new("bad");
        directory.put(0, ElementType::F32, &[6], 0);
        directory.put(1, ElementType::F32, &[7], 0);
        directory.put(2, ElementType::I32, &[6], 1);
        let problems = directory.open(Collective::AllReduce, None).unwrap_err();
        let mut files: Vec<_> = problems.iter().map(|problem| problem.file.as_str()).collect();
        files.sort_unstable();
        assert_eq!(files, ["rank0.npy", "rank2.npy", "rank3.npy"]);
        let unlike = &problems.iter().find(|problem| problem.file == "rank0.npy").unwrap().what;
        assert!(unlike.contains("rank1.npy"), "with two arrays the error names both: {unlike}");
    }

    #[test]
    fn arrays_of_ranks_that_the_rack_does_not_have_are_reported() {
        let directory = Directory::new("more");
        (0..11).for_each(|rank| directory.put(rank, ElementType::F32, &[3], 0));
        let problems = directory.open(Collective::AllReduce, None).unwrap_err();
        let files: Vec<_> = problems.iter().map(|problem| problem.file.as_str()).collect();
        assert_eq!(files[..4], ["rank4.npy", "rank5.npy", "rank6.npy", "rank7.npy"]);
        assert!(problems[0].what.contains("4 ranks, 0 to 3; hint:"), "{problems:?}");
        assert!(problems.len() == 5 && problems[4].what.starts_with("3 more"), "{problems:?}");
    }

    #[test]
    fn a_directory_that_is_missing_is_one_problem() {
        let missing = std::env::temp_dir().join("rackloom-arrays-nowhere");
        for (path, what) in [(missing, "no such directory"), ("/dev/null".into(), "not a directory")] {
            let problems = InputArrays::open(&path, Collective::AllReduce, 4, None).unwrap_err();
            assert_eq!(problems.len(), 1, "{problems:?}");
            assert!(problems[0].what.starts_with(what) && problems[0].what.contains("hint:"), "{problems:?}");
        }
    }

    #[test]
    fn a_directory_with_the_name_of_an_array_is_reported_with_a_hint() {
        let directory = Directory::new("nested");
        (1..4).for_each(|rank| directory.put(rank, ElementType::F32, &[3], 0));
        std::fs::create_dir(directory.0.join("rank0.npy")).unwrap();
        let problems = directory.open(Collective::AllReduce, None).unwrap_err();
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].what.starts_with("a directory; hint:"), "{problems:?}");
    }

    #[test]
    fn only_ranks_that_provide_data_need_a_file() {
        let directory = Directory::new("root");
        assert_eq!(directory.open(Collective::Broadcast { root: 1 }, None).unwrap_err().len(), 1);
        directory.put(1, ElementType::U8, &[9], 0);
        let arrays = directory.open(Collective::Broadcast { root: 1 }, None).unwrap();
        assert_eq!((arrays.bytes(0), arrays.bytes(1)), (0, 9));
        assert!(directory.open(Collective::Barrier, None).is_err(), "a barrier takes no arrays");
    }

    #[test]
    fn two_byte_raw_elements_are_bf16_on_request() {
        let directory = Directory::new("bf16");
        (0..4).for_each(|rank| directory.put(rank, ElementType::Bf16, &[2], 0));
        assert!(directory.open(Collective::AllReduce, None).is_err());
        let arrays = directory.open(Collective::AllReduce, Some(ElementType::Bf16)).unwrap();
        assert_eq!(arrays.element, ElementType::Bf16);
    }
}
