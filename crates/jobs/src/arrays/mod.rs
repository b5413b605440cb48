//! Arrays of the user: one `.npy` file per rank as input, one per rank as output.
//!
//! This module opens no files. The caller reads and writes them, and this module interprets the bytes. All files are
//! checked before an error is returned, so that the user sees every mistake at once.
//!
//! A result keeps the shape of the inputs if possible ([`result_shape`]). Otherwise it is flat.

mod header;
mod literal;

use std::fmt;

use rackloom_collectives::partition::part;
use rackloom_collectives::{Collective, ElementType};

use crate::collective::HeldArrays;

pub use self::header::{HEADER_BYTES_MAX, Header, HeaderError, header_bytes, shape_text};

/// Maximum number of files of a group that an error names.
const NAMED_MAX: usize = 4;

/// Returns the name of a rank's file, in the folders of inputs and outputs.
#[must_use]
pub fn file_name(rank: usize) -> String {
    format!("rank{rank}.npy")
}

/// Problem with a rank's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Name of the file.
    pub file: String,
    /// Description of the problem, with a hint.
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.file, self.what)
    }
}

/// Arrays of all ranks, with equal types and shapes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserArrays {
    /// Shape of each array.
    pub shape: Vec<u64>,
    /// Type and bytes of the arrays.
    pub held: HeldArrays,
}

/// Checks the headers of all ranks' files, which must agree in type and shape. `headers` are by rank. `Err` is the
/// reason for which a file cannot be read at all.
///
/// # Errors
/// Every problem with any of the files.
pub fn agree(headers: Vec<Result<Header, String>>) -> Result<Vec<Header>, Vec<Problem>> {
    let mut problems = Vec::new();
    let mut good = Vec::new();
    for (rank, header) in headers.into_iter().enumerate() {
        match header {
            Ok(header) => good.push((rank, header)),
            Err(what) => problems.push(Problem { file: file_name(rank), what }),
        }
    }
    let types = good.iter().map(|(rank, header)| (*rank, header.element.to_string()));
    problems.extend(unlike(types.collect(), |found, others, wanted| {
        format!("elements are {found}, those of {others} are {wanted}; hint: all ranks give the same type")
    }));
    let shapes = good.iter().map(|(rank, header)| (*rank, shape_text(&header.shape)));
    problems.extend(unlike(shapes.collect(), |found, others, wanted| {
        format!("shape {found}, that of {others} is {wanted}; hint: all ranks give the same shape")
    }));
    if problems.is_empty() { Ok(good.into_iter().map(|(_, header)| header).collect()) } else { Err(problems) }
}

/// Returns a problem for each rank whose value differs. If more than half of the ranks agree, each of the others gets a
/// problem. Without a majority it is unknown which ranks are wrong, so the groups are compared with each other.
fn unlike(found: Vec<(usize, String)>, say: impl Fn(&str, &str, &str) -> String) -> Vec<Problem> {
    let count = found.len();
    let mut groups: Vec<(String, Vec<usize>)> = Vec::new();
    for (rank, value) in found {
        match groups.iter_mut().find(|(known, _)| *known == value) {
            Some((_, ranks)) => ranks.push(rank),
            None => groups.push((value, vec![rank])),
        }
    }
    let Some(reference) = groups.iter().position(|(_, ranks)| ranks.len() * 2 > count) else {
        return groups.windows(2).map(|pair| difference(&pair[0], &pair[1], &say)).collect();
    };
    let (wanted, ranks) = groups.swap_remove(reference);
    let model = file_name(ranks[0]);
    let others = if ranks.len() > 1 { format!("{model} and {} more", ranks.len() - 1) } else { model };
    let mut odd: Vec<_> =
        groups.iter().flat_map(|(value, ranks)| ranks.iter().map(move |rank| (*rank, value))).collect();
    odd.sort_unstable();
    odd.into_iter()
        .map(|(rank, value)| Problem { file: file_name(rank), what: say(value, &others, &wanted) })
        .collect()
}

fn difference(
    (value, ranks): &(String, Vec<usize>),
    (other, others): &(String, Vec<usize>),
    say: &impl Fn(&str, &str, &str) -> String,
) -> Problem {
    Problem { file: names(ranks), what: say(value, &names(others), other) }
}

/// Returns the file names of these ranks, the first few by name.
fn names(ranks: &[usize]) -> String {
    let mut names: Vec<_> = ranks.iter().take(NAMED_MAX).map(|rank| file_name(*rank)).collect();
    if ranks.len() > NAMED_MAX {
        names.push(format!("{} more", ranks.len() - NAMED_MAX));
    }
    names.join(", ")
}

/// Loads the arrays of all ranks. `read` returns the bytes of the file with a name, or the reason for a failure.
/// `wanted` is the type that the user names.
///
/// # Errors
/// Every problem with any of the files.
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

/// Returns the shape of a rank's result if each rank gave an array of `shape`; `None` if the rank gets nothing.
///
/// - *all-reduce, reduce, broadcast, scan, exclusive-scan*: the shape of the input.
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
        Collective::ExclusiveScan if rank == 0 => None,
        Collective::AllReduce
        | Collective::Reduce { .. }
        | Collective::Broadcast { .. }
        | Collective::Scan
        | Collective::ExclusiveScan => Some(shape.to_vec()),
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
