//! Header of a `.npy` file: six bytes of magic, a version, a length, and a Python dictionary in plain text.
//!
//! The parser reads versions 1 to 3 (NumPy, "NEP 1" and `numpy.lib.format`), as NumPy writes them: the three keys in
//! any order. It refuses, each with a hint: big-endian data, Fortran order, structured and other types, and a file
//! whose length does not match its header. Files are written in version 1. This module processes only bytes, no files.

use rackloom_collectives::ElementType;
use rackloom_collectives::algorithm::ELEMENTS_MAX;
use thiserror::Error;

use super::literal::{self, Literal};

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// Length of the file's beginning that is enough to read any reasonable header, in bytes. A header has a few dozen
/// bytes.
pub const HEADER_BYTES_MAX: usize = 64 << 10;
/// Alignment of the data in NumPy's files, in bytes.
const ALIGNMENT: usize = 64;
/// Maximum number of axes. NumPy's own limit is 64.
const DIMENSIONS_MAX: usize = 64;

/// Content of a file's header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Type of the elements.
    pub element: ElementType,
    /// Length of each axis; empty for a single number.
    pub shape: Vec<u64>,
    /// Offset of the data in bytes.
    pub data_offset: u64,
}

/// Reason for which a file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HeaderError {
    /// The file is not an array.
    #[error("not a .npy file; hint: write it with numpy.save")]
    NotAnArray,
    /// The version of the format does not exist, or is newer than supported.
    #[error(".npy version {0}.{1}; hint: versions 1.0, 2.0 and 3.0 are read")]
    Version(u8, u8),
    /// The file ends within its header, or the header is unreasonably long.
    #[error("the header says that it has {0} bytes; hint: the file is damaged or cut short")]
    HeaderLength(u64),
    /// The dictionary is malformed.
    #[error("the header is malformed: {0}; hint: write the file with numpy.save")]
    Malformed(String),
    /// The elements are big-endian.
    #[error("the elements are big-endian ({0}); hint: array.astype(array.dtype.newbyteorder('<'))")]
    BigEndian(String),
    /// The array is stored column by column.
    #[error("the array is in Fortran order; hint: numpy.ascontiguousarray(array)")]
    FortranOrder,
    /// The element type is not supported.
    #[error("elements of type {0}; hint: one of f32, f64, f16, i32, i64, u8, or bf16 as two-byte void")]
    Type(String),
    /// The elements are two-byte void, and the user named no type for them.
    #[error("elements are two-byte void, which may be anything; hint: say --dtype bf16 if they are bf16")]
    Void,
    /// The element type is not the one that the user named.
    #[error("elements are {found}, not {wanted}; hint: array.astype, or another --dtype")]
    OtherType {
        /// Type in the file.
        found: ElementType,
        /// Type that the user named.
        wanted: ElementType,
    },
    /// The array is larger than the supported maximum.
    #[error("an array of shape {0} is too large; hint: at most {ELEMENTS_MAX} elements")]
    TooLarge(String),
    /// The file is cut short, or has data after the array.
    #[error("shape {shape} needs {expected} bytes of data, the file has {found}; hint: {}", if found < expected { "it is cut short" } else { "one array per file" })]
    DataLength {
        /// Shape of the array.
        shape: String,
        /// Length of the data according to the header, in bytes.
        expected: u64,
        /// Length of the data in the file, in bytes.
        found: u64,
    },
}

impl Header {
    /// Parses a header. `prefix` is the beginning of the file, all of it or [`HEADER_BYTES_MAX`] bytes. `file_bytes` is
    /// the file's length. `wanted` is the type that the user names. It must be named for bf16.
    ///
    /// # Errors
    /// The file is not an array that can be used.
    pub fn parse(prefix: &[u8], file_bytes: u64, wanted: Option<ElementType>) -> Result<Self, HeaderError> {
        let (text, data_offset) = text_of(prefix)?;
        let Fields { descr, is_fortran, shape } = fields(text)?;
        let element = element_of(&descr, wanted)?;
        if let Some(wanted) = wanted.filter(|wanted| *wanted != element) {
            return Err(HeaderError::OtherType { found: element, wanted });
        }
        // With one axis both orders are equal.
        if is_fortran && shape.len() > 1 {
            return Err(HeaderError::FortranOrder);
        }
        let elements = shape.iter().try_fold(1_u64, |product, axis| product.checked_mul(*axis));
        let bytes = elements
            .filter(|elements| *elements <= ELEMENTS_MAX as u64)
            .map(|elements| elements * element.bytes() as u64);
        let Some(expected) = bytes else { return Err(HeaderError::TooLarge(shape_text(&shape))) };
        let found = file_bytes.saturating_sub(data_offset);
        if found != expected {
            return Err(HeaderError::DataLength { shape: shape_text(&shape), expected, found });
        }
        Ok(Self { element, shape, data_offset })
    }

    /// Returns the number of elements.
    #[must_use]
    pub fn elements(&self) -> u64 {
        self.shape.iter().product()
    }

    /// Returns the length of the data in bytes.
    #[must_use]
    pub fn data_bytes(&self) -> u64 {
        self.elements() * self.element.bytes() as u64
    }
}

/// Returns the bytes before the data of a file with such an array.
#[must_use]
pub fn header_bytes(element: ElementType, shape: &[u64]) -> Vec<u8> {
    let descr = match element {
        ElementType::F32 => "<f4",
        ElementType::F64 => "<f8",
        ElementType::F16 => "<f2",
        ElementType::Bf16 => "|V2",
        ElementType::I32 => "<i4",
        ElementType::I64 => "<i8",
        ElementType::U8 => "|u1",
    };
    let shape = shape_text(shape);
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    let before = MAGIC.len() + 4;
    let padded = (before + text.len() + 1).next_multiple_of(ALIGNMENT) - before;
    text.extend(std::iter::repeat_n(' ', padded - 1 - text.len()));
    text.push('\n');
    let mut bytes = MAGIC.to_vec();
    bytes.extend([1, 0]);
    // At most 64 axes of 20 digits.
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.into_bytes());
    bytes
}

/// Returns a shape as Python writes it.
#[must_use]
pub fn shape_text(shape: &[u64]) -> String {
    let axes: Vec<_> = shape.iter().map(u64::to_string).collect();
    if let [axis] = axes.as_slice() { format!("({axis},)") } else { format!("({})", axes.join(", ")) }
}

/// Returns the dictionary and the offset of its end.
fn text_of(prefix: &[u8]) -> Result<(&str, u64), HeaderError> {
    let rest = prefix.strip_prefix(MAGIC.as_slice()).ok_or(HeaderError::NotAnArray)?;
    let Some((&[major, minor], rest)) = rest.split_first_chunk() else { return Err(HeaderError::NotAnArray) };
    let (length, before) = match (major, rest) {
        _ if minor != 0 || !(1..=3).contains(&major) => return Err(HeaderError::Version(major, minor)),
        (1, [a, b, ..]) => (u64::from(u16::from_le_bytes([*a, *b])), 2),
        (2 | 3, [a, b, c, d, ..]) => (u64::from(u32::from_le_bytes([*a, *b, *c, *d])), 4),
        _ => return Err(HeaderError::HeaderLength(0)),
    };
    let text = usize::try_from(length).ok().and_then(|length| rest[before..].get(..length));
    let text = text.ok_or(HeaderError::HeaderLength(length))?;
    let text = std::str::from_utf8(text).map_err(|_| HeaderError::Malformed("it is no text".to_owned()))?;
    Ok((text, (MAGIC.len() + 2 + before) as u64 + length))
}

/// Values of a header.
struct Fields {
    /// Description of the type.
    descr: Literal,
    /// True if the first index changes fastest.
    is_fortran: bool,
    shape: Vec<u64>,
}

fn fields(text: &str) -> Result<Fields, HeaderError> {
    let malformed = |what: &str| HeaderError::Malformed(what.to_owned());
    let mut entries = literal::dictionary(text).map_err(HeaderError::Malformed)?;
    let mut take = |key: &str| {
        let at = entries.iter().position(|(known, _)| known == key);
        at.map(|at| entries.swap_remove(at).1).ok_or_else(|| malformed(&format!("no '{key}'")))
    };
    let (descr, order, shape) = (take("descr")?, take("fortran_order")?, take("shape")?);
    if let Some((key, _)) = entries.first() {
        return Err(malformed(&format!("'{key}' is unknown or stands there twice")));
    }
    let Literal::Truth(is_fortran) = order else {
        return Err(malformed("'fortran_order' is no truth value"));
    };
    let Literal::Sequence(axes) = shape else { return Err(malformed("'shape' is no tuple")) };
    let axes: Option<Vec<u64>> = axes
        .into_iter()
        .map(|axis| if let Literal::Number(number) = axis { Some(number) } else { None })
        .collect();
    let axes = axes.filter(|axes| axes.len() <= DIMENSIONS_MAX);
    let shape = axes.ok_or_else(|| malformed("'shape' is no tuple of a few numbers"))?;
    Ok(Fields { descr, is_fortran, shape })
}

fn element_of(descr: &Literal, wanted: Option<ElementType>) -> Result<ElementType, HeaderError> {
    let Literal::Text(descr) = descr else { return Err(HeaderError::Type("a structure".to_owned())) };
    Ok(match descr.as_str() {
        "<f4" => ElementType::F32,
        "<f8" => ElementType::F64,
        "<f2" => ElementType::F16,
        "<i4" => ElementType::I32,
        "<i8" => ElementType::I64,
        "|u1" | "<u1" | ">u1" | "u1" => ElementType::U8,
        // NumPy writes the first, the bfloat16 of ml_dtypes the second.
        "|V2" | "<V2" if wanted == Some(ElementType::Bf16) => ElementType::Bf16,
        "|V2" | "<V2" => return Err(HeaderError::Void),
        big if big.starts_with('>') => return Err(HeaderError::BigEndian(big.to_owned())),
        other => return Err(HeaderError::Type(format!("'{}'", other.escape_default()))),
    })
}
