//! The arrays that the ranks give: `rank0.npy`, `rank1.npy`, ... in a directory of the user's.
//!
//! All of them are looked at before anything starts, and all that is wrong with them is said at once. Their data is read
//! from the files where it is needed and never held as a whole: every rank may want every array, because each checks
//! its own result.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rackloom_collectives::{Collective, ElementType};
use rackloom_jobs::collective::Arrays;

use super::npy::{self, Header};

/// One array of each rank that gives one, all alike.
#[derive(Debug)]
pub(crate) struct InputArrays {
    pub(crate) element: ElementType,
    pub(crate) shape: Vec<u64>,
    /// By rank.
    files: Vec<Option<ArrayFile>>,
}

#[derive(Debug)]
struct ArrayFile {
    path: PathBuf,
    file: File,
    data_at: u64,
    data_bytes: u64,
}

/// The name of a rank's file.
pub(super) fn file_name(rank: usize) -> String {
    format!("rank{rank}.npy")
}

impl InputArrays {
    /// Open what the collective needs. `wanted`: the type that the user names, if any.
    ///
    /// # Errors
    /// Everything that is wrong, one line each.
    pub(crate) fn open(
        directory: &Path,
        collective: Collective,
        ranks: usize,
        wanted: Option<ElementType>,
    ) -> Result<Self, Vec<String>> {
        let (mut files, mut problems) = (Vec::new(), Vec::new());
        let mut first: Option<(usize, Header)> = None;
        for rank in 0..ranks {
            // Who gives nothing needs no file.
            if collective.input_elements(rank, ranks, ranks) == 0 {
                files.push(None);
                continue;
            }
            let path = directory.join(file_name(rank));
            let opened = open(&path, wanted).and_then(|(header, file)| {
                let (of, like) = first.get_or_insert_with(|| (rank, header.clone()));
                alike(&header, like, *of)?;
                Ok(file)
            });
            match opened {
                Ok(file) => files.push(Some(file)),
                Err(what) => problems.push(format!("{}: {what}", path.display())),
            }
        }
        match first {
            Some((_, Header { element, shape })) if problems.is_empty() => Ok(Self { element, shape, files }),
            None if problems.is_empty() => Err(vec![format!("{} takes no arrays", collective.name())]),
            _ => Err(problems),
        }
    }

    /// Elements of one rank's array.
    pub(crate) fn elements(&self) -> u64 {
        // Checked when the header was read.
        self.shape.iter().product()
    }
}

/// Whether two headers are of one kind.
fn alike(header: &Header, like: &Header, of: usize) -> Result<(), String> {
    if header.element != like.element {
        return Err(format!("of type {}, but {} is of {}", header.element, file_name(of), like.element));
    }
    if header.shape != like.shape {
        let (shape, other) = (shown(&header.shape), shown(&like.shape));
        return Err(format!(
            "of shape {shape}, but {} is of {other}; hint: all arrays have one shape",
            file_name(of)
        ));
    }
    Ok(())
}

fn shown(shape: &[u64]) -> String {
    let extents: Vec<_> = shape.iter().map(u64::to_string).collect();
    format!("({})", extents.join(", "))
}

fn open(path: &Path, wanted: Option<ElementType>) -> Result<(Header, ArrayFile), String> {
    let file = File::open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            "no such file; hint: every rank gives an array, rank0.npy, rank1.npy, ...".to_owned()
        }
        _ => error.to_string(),
    })?;
    let found = file.metadata().map_err(|error| error.to_string())?;
    if !found.is_file() {
        return Err("not a file".to_owned());
    }
    let length = usize::try_from(found.len()).unwrap_or(usize::MAX);
    let mut prefix = vec![0; npy::PREFIX_BYTES.min(length)];
    file.read_exact_at(&mut prefix, 0).map_err(|error| error.to_string())?;
    let (from, to) = npy::header_place(&prefix)?;
    if length < to {
        return Err("truncated within its header".to_owned());
    }
    let mut text = vec![0; to - from];
    file.read_exact_at(&mut text, from as u64).map_err(|error| error.to_string())?;
    let header = npy::parse(&text, wanted == Some(ElementType::Bf16))?;
    if let Some(wanted) = wanted.filter(|wanted| *wanted != header.element) {
        return Err(format!("of type {}, but --type says {wanted}", header.element));
    }
    let (promised, there) = (header.data_bytes().unwrap_or(u64::MAX), (length - to) as u64);
    if there != promised {
        let what = if there < promised { "truncated" } else { "longer than its header says" };
        return Err(format!("{what}: {there} bytes of data, the header promises {promised}"));
    }
    let array = ArrayFile { path: path.to_owned(), file, data_at: to as u64, data_bytes: promised };
    Ok((header, array))
}

impl Arrays for InputArrays {
    fn element(&self) -> ElementType {
        self.element
    }

    fn bytes(&self, rank: usize) -> u64 {
        self.files.get(rank).and_then(Option::as_ref).map_or(0, |array| array.data_bytes)
    }

    fn read(&self, rank: usize, offset: u64, out: &mut [u8]) -> Result<(), String> {
        let array = self.files.get(rank).and_then(Option::as_ref);
        let array = array.ok_or_else(|| format!("rank {rank} gives no array"))?;
        let end = offset.checked_add(out.len() as u64).filter(|end| *end <= array.data_bytes);
        end.ok_or_else(|| format!("the array of rank {rank} has {} bytes", array.data_bytes))?;
        let read = array.file.read_exact_at(out, array.data_at + offset);
        read.map_err(|error| format!("{}: {error}; it was changed while the rack ran", array.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory of arrays, removed at the end.
    struct Directory(PathBuf);

    impl Directory {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("rackloom-arrays-{}-{name}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn put(&self, rank: usize, element: ElementType, shape: &[u64], cut: usize) {
            let header = Header { element, shape: shape.to_vec() };
            let mut bytes = header.to_bytes();
            bytes.extend((0..header.data_bytes().unwrap()).map(|byte| byte as u8 ^ rank as u8));
            bytes.truncate(bytes.len() - cut);
            std::fs::write(self.0.join(file_name(rank)), bytes).unwrap();
        }

        fn open(
            &self,
            collective: Collective,
            wanted: Option<ElementType>,
        ) -> Result<InputArrays, Vec<String>> {
            InputArrays::open(&self.0, collective, 4, wanted)
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn arrays_that_are_alike_are_read_by_rank_and_offset() {
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
    fn everything_that_is_wrong_is_said_at_once() {
        let directory = Directory::new("bad");
        directory.put(0, ElementType::F32, &[6], 0);
        directory.put(1, ElementType::F32, &[7], 0);
        directory.put(2, ElementType::I32, &[6], 1);
        let problems = directory.open(Collective::AllReduce, None).unwrap_err();
        assert_eq!(problems.len(), 3, "{problems:?}");
        for (problem, part) in problems.iter().zip(["of shape (7)", "truncated: 23 bytes", "no such file"]) {
            assert!(problem.contains(part), "{problem}");
        }
    }

    #[test]
    fn only_who_gives_needs_a_file() {
        let directory = Directory::new("root");
        directory.put(1, ElementType::U8, &[9], 0);
        let arrays = directory.open(Collective::Broadcast { root: 1 }, None).unwrap();
        assert_eq!((arrays.bytes(0), arrays.bytes(1)), (0, 9));
        assert!(directory.open(Collective::Barrier, None).is_err(), "a barrier takes no arrays");
    }

    #[test]
    fn raw_pairs_of_bytes_are_bf16_if_the_user_says_so_and_a_wrong_word_is_refused() {
        let directory = Directory::new("bf16");
        (0..4).for_each(|rank| directory.put(rank, ElementType::Bf16, &[2], 0));
        assert!(directory.open(Collective::AllReduce, None).is_err());
        assert!(directory.open(Collective::AllReduce, Some(ElementType::F16)).is_err());
        let arrays = directory.open(Collective::AllReduce, Some(ElementType::Bf16)).unwrap();
        assert_eq!(arrays.element, ElementType::Bf16);
    }
}
