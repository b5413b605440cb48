//! The user's arrays: one `.npy` file per rank in, one per rank out.
//!
//! Nothing here opens a file: the caller reads and writes, this room says what the bytes mean. All files are looked at before
//! anything is said, so that a user hears about every mistake at once.
//!
//! A result keeps the shape of the inputs where it can ([`result_shape`]); where it cannot, it is flat.

mod header;
mod literal;

use std::fmt;

use rackloom_collectives::partition::part;
use rackloom_collectives::{Collective, ElementType};

use crate::collective::HeldArrays;

pub use self::header::{HEADER_BYTES_MAX, Header, HeaderError, header_bytes, shape_text};

/// The name of a rank's file, in the folder of inputs and in that of outputs.
#[must_use]
pub fn file_name(rank: usize) -> String {
    format!("rank{rank}.npy")
}

/// Something wrong with a rank's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file's name.
    pub file: String,
    /// What is wrong, with a hint.
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.file, self.what)
    }
}

/// Arrays of all ranks that fit together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserArrays {
    /// The shape of each.
    pub shape: Vec<u64>,
    /// Type and bytes.
    pub held: HeldArrays,
}

/// Look at the headers of all ranks' files; they must agree in type and shape. `headers` are by rank; `Err` says why a file
/// cannot be read at all.
///
/// # Errors
/// Everything that is wrong with any of the files.
pub fn agree(headers: Vec<Result<Header, String>>) -> Result<Vec<Header>, Vec<Problem>> {
    let mut problems = Vec::new();
    let mut good = Vec::new();
    for (rank, header) in headers.into_iter().enumerate() {
        match header {
            Ok(header) => good.push((rank, header)),
            Err(what) => problems.push(Problem { file: file_name(rank), what }),
        }
    }
    if let Some((first_rank, first)) = good.first() {
        let first_file = file_name(*first_rank);
        for (rank, header) in &good {
            let file = file_name(*rank);
            if header.element != first.element {
                let what = format!(
                    "elements are {}, those of {first_file} are {}; hint: all ranks give the same type",
                    header.element, first.element
                );
                problems.push(Problem { file: file.clone(), what });
            }
            if header.shape != first.shape {
                let (found, wanted) = (shape_text(&header.shape), shape_text(&first.shape));
                let what = format!(
                    "shape {found}, that of {first_file} is {wanted}; hint: all ranks give the same shape"
                );
                problems.push(Problem { file, what });
            }
        }
    }
    if problems.is_empty() { Ok(good.into_iter().map(|(_, header)| header).collect()) } else { Err(problems) }
}

/// Read the arrays of all ranks. `read` gives the bytes of the file with a name, or says why not; `wanted` is the type that
/// the user names.
///
/// # Errors
/// Everything that is wrong with any of the files.
pub fn load(
    ranks: usize,
    wanted: Option<ElementType>,
    mut read: impl FnMut(&str) -> Result<Vec<u8>, String>,
) -> Result<UserArrays, Vec<Problem>> {
    let mut files = Vec::with_capacity(ranks);
    let mut headers = Vec::with_capacity(ranks);
    for rank in 0..ranks {
        let file = read(&file_name(rank));
        headers.push(file.as_ref().map_err(String::clone).and_then(|file| {
            Header::parse(file, file.len() as u64, wanted).map_err(|error| error.to_string())
        }));
        files.push(file.unwrap_or_default());
    }
    let headers = agree(headers)?;
    for (file, header) in files.iter_mut().zip(&headers) {
        file.drain(..header.data_offset as usize);
    }
    let first = headers.into_iter().next();
    let (element, shape) =
        first.map_or((wanted.unwrap_or(ElementType::F32), vec![0]), |first| (first.element, first.shape));
    Ok(UserArrays { shape, held: HeldArrays { element, bytes: files } })
}

/// The shape of a rank's result where each rank gave an array of `shape`; `None` where the rank gets nothing.
///
/// - *all-reduce, reduce, broadcast*: the shape of the input.
/// - *all-gather, gather*: the inputs behind each other along the first axis.
/// - *reduce-scatter, scatter*: a rank's share of the first axis, if the ranks divide it; else flat.
/// - *all-to-all*: the shape of the input, if the ranks divide the first axis; else flat.
#[must_use]
pub fn result_shape(collective: Collective, rank: usize, ranks: usize, shape: &[u64]) -> Option<Vec<u64>> {
    let whole: u64 = shape.iter().product();
    let share = part(whole as usize, ranks, rank).len() as u64;
    let (first, rest) = shape.split_first().map_or((1, &[][..]), |(first, rest)| (*first, rest));
    let is_divided = !shape.is_empty() && first.is_multiple_of(ranks as u64);
    let along_first = |axis: u64| [&[axis], rest].concat();
    match collective {
        Collective::Barrier => None,
        Collective::Reduce { root } | Collective::Gather { root } if root != rank => None,
        Collective::AllReduce | Collective::Reduce { .. } | Collective::Broadcast { .. } => {
            Some(shape.to_vec())
        }
        Collective::AllGather | Collective::Gather { .. } => Some(along_first(first * ranks as u64)),
        Collective::ReduceScatter | Collective::Scatter { .. } if is_divided => {
            Some(along_first(first / ranks as u64))
        }
        Collective::ReduceScatter | Collective::Scatter { .. } => Some(vec![share]),
        Collective::AllToAll if is_divided => Some(shape.to_vec()),
        Collective::AllToAll => Some(vec![share * ranks as u64]),
    }
}

#[cfg(test)]
mod tests;
