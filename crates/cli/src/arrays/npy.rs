//! NumPy's array files: the header of versions 1 to 3, read and written.
//!
//! What follows the header is the array itself, and the rest of Rackloom never sees anything but its bytes: C order,
//! little endian. Whatever would need a conversion is refused with a word about how to convert it. NumPy has no bf16:
//! such arrays are stored as raw values of two bytes (`V2`), and only the user can say that they are bf16.

use rackloom_collectives::ElementType;

/// First bytes of every such file.
const MAGIC: &[u8] = b"\x93NUMPY";
/// Headers are a line of text; a longer one is no header.
const HEADER_BYTES_MAX: usize = 1 << 20;
/// The most that must be read to know the header's length.
pub(crate) const PREFIX_BYTES: usize = 12;
/// Files that we write put the data at a multiple of this, as NumPy does.
const ALIGNMENT: usize = 64;

/// What a header says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) element: ElementType,
    pub(crate) shape: Vec<u64>,
}

impl Header {
    /// Number of elements; `None` if no machine could hold them.
    pub(crate) fn elements(&self) -> Option<u64> {
        self.shape.iter().try_fold(1_u64, |product, extent| product.checked_mul(*extent))
    }

    /// Bytes of all elements.
    pub(crate) fn data_bytes(&self) -> Option<u64> {
        self.elements()?.checked_mul(self.element.bytes() as u64)
    }

    /// The text of a file's header, version 1, ready to be followed by the data.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let extents: Vec<_> = self.shape.iter().map(|extent| format!("{extent},")).collect();
        let shape = match extents.as_slice() {
            [one] => one.clone(),
            several => several.join(" ").trim_end_matches(',').to_owned(),
        };
        let mut text =
            format!("{{'descr': '{}', 'fortran_order': False, 'shape': ({shape}), }}", descr(self.element));
        let unpadded = MAGIC.len() + 4 + text.len() + 1;
        text.push_str(&" ".repeat(unpadded.next_multiple_of(ALIGNMENT) - unpadded));
        text.push('\n');
        // A shape has few extents, so the text fits into the 16 bits of version 1.
        let length = u16::try_from(text.len()).unwrap_or(u16::MAX);
        [MAGIC, &[1, 0], &length.to_le_bytes(), text.as_bytes()].concat()
    }
}

/// Where the header's text lies in a file that begins with `prefix`: from, to.
pub(crate) fn header_place(prefix: &[u8]) -> Result<(usize, usize), String> {
    if !prefix.starts_with(MAGIC) {
        return Err("not a NumPy file; hint: write it with numpy.save".to_owned());
    }
    let short = || "truncated within its header".to_owned();
    let major = *prefix.get(MAGIC.len()).ok_or_else(short)?;
    let length = prefix.get(MAGIC.len() + 2..).unwrap_or_default();
    let (from, length) = match (major, length) {
        (1, [a, b, ..]) => (10, usize::from(u16::from_le_bytes([*a, *b]))),
        (2 | 3, [a, b, c, d, ..]) => (12, u32::from_le_bytes([*a, *b, *c, *d]) as usize),
        (1..=3, _) => return Err(short()),
        _ => return Err(format!("version {major} of the format is unknown; versions 1 to 3 are read")),
    };
    if length > HEADER_BYTES_MAX {
        return Err(format!("a header of {length} bytes"));
    }
    Ok((from, from + length))
}

/// The header's text. `raw_is_bf16`: raw values of two bytes are bf16.
pub(crate) fn parse(text: &[u8], raw_is_bf16: bool) -> Result<Header, String> {
    let text = std::str::from_utf8(text).map_err(|_| "its header is no text".to_owned())?;
    let entries = Reader { rest: text.trim() }.dictionary()?;
    let find = |key: &str| {
        let found = entries.iter().find(|(name, _)| name == key).map(|(_, value)| value);
        found.ok_or_else(|| format!("its header lacks '{key}'"))
    };
    let element = match find("descr")? {
        Value::Text(descr) => element(descr, raw_is_bf16)?,
        _ => return Err("a structured type; hint: save one plain array per rank".to_owned()),
    };
    match find("fortran_order")? {
        Value::Truth(false) => {}
        Value::Truth(true) => {
            return Err("in Fortran order; hint: numpy.save(file, numpy.ascontiguousarray(array))".to_owned());
        }
        _ => return Err("its header's 'fortran_order' is neither True nor False".to_owned()),
    }
    let Value::Extents(shape) = find("shape")? else {
        return Err("its header's 'shape' is no tuple of numbers".to_owned());
    };
    let header = Header { element, shape: shape.clone() };
    header.data_bytes().ok_or("an array larger than any memory")?;
    Ok(header)
}

const fn descr(element: ElementType) -> &'static str {
    match element {
        ElementType::F32 => "<f4",
        ElementType::F64 => "<f8",
        ElementType::F16 => "<f2",
        ElementType::Bf16 => "|V2",
        ElementType::I32 => "<i4",
        ElementType::I64 => "<i8",
        ElementType::U8 => "|u1",
    }
}

fn element(found: &str, raw_is_bf16: bool) -> Result<ElementType, String> {
    if let Some(kind) = found.strip_prefix('>').filter(|kind| !kind.ends_with('1')) {
        return Err(format!("big-endian ({found}); hint: array.astype('<{kind}')"));
    }
    let plain = found.trim_start_matches(['<', '|', '=', '>']);
    if plain == "V2" {
        let hint = "raw values of two bytes; hint: say --type bf16 if that is what they are";
        return if raw_is_bf16 { Ok(ElementType::Bf16) } else { Err(hint.to_owned()) };
    }
    let known = ElementType::ALL.into_iter().find(|element| &descr(*element)[1..] == plain);
    known.ok_or_else(|| {
        let names: Vec<_> = ElementType::ALL.iter().map(|element| element.name()).collect();
        format!("of type {found}; hint: array.astype to one of {}", names.join(", "))
    })
}

/// What a header's dictionary may hold.
#[derive(Debug, PartialEq)]
enum Value {
    Text(String),
    Truth(bool),
    Extents(Vec<u64>),
    /// A list; only a structured type is one.
    Other,
}

/// Reads the Python literal that a header is. Nothing else of Python is understood.
struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn dictionary(&mut self) -> Result<Vec<(String, Value)>, String> {
        self.expect('{')?;
        let mut entries = Vec::new();
        while !self.take('}') {
            let key = self.text()?;
            self.expect(':')?;
            entries.push((key, self.value()?));
            if !self.take(',') {
                self.expect('}')?;
                break;
            }
        }
        if self.rest.trim().is_empty() { Ok(entries) } else { Err(garbled(self.rest)) }
    }

    fn value(&mut self) -> Result<Value, String> {
        self.rest = self.rest.trim_start();
        for (word, truth) in [("True", true), ("False", false)] {
            if let Some(rest) = self.rest.strip_prefix(word) {
                self.rest = rest;
                return Ok(Value::Truth(truth));
            }
        }
        match self.rest.chars().next() {
            Some('\'' | '"') => self.text().map(Value::Text),
            Some('(') => self.extents().map(Value::Extents),
            Some('[') => {
                let end = self.rest.rfind(']').ok_or_else(|| garbled(self.rest))?;
                self.rest = &self.rest[end + 1..];
                Ok(Value::Other)
            }
            _ => Err(garbled(self.rest)),
        }
    }

    fn text(&mut self) -> Result<String, String> {
        self.rest = self.rest.trim_start();
        let quote = self.rest.chars().next().filter(|first| matches!(first, '\'' | '"'));
        let quote = quote.ok_or_else(|| garbled(self.rest))?;
        let (text, rest) = self.rest[1..].split_once(quote).ok_or_else(|| garbled(self.rest))?;
        self.rest = rest;
        Ok(text.to_owned())
    }

    fn extents(&mut self) -> Result<Vec<u64>, String> {
        self.expect('(')?;
        let (inner, rest) = self.rest.split_once(')').ok_or_else(|| garbled(self.rest))?;
        self.rest = rest;
        let extents = inner.split(',').map(str::trim).filter(|extent| !extent.is_empty());
        extents.map(|extent| extent.trim_end_matches('L').parse().map_err(|_| garbled(extent))).collect()
    }

    fn take(&mut self, expected: char) -> bool {
        let rest = self.rest.trim_start();
        match rest.strip_prefix(expected) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, expected: char) -> Result<(), String> {
        if self.take(expected) { Ok(()) } else { Err(garbled(self.rest)) }
    }
}

fn garbled(rest: &str) -> String {
    let begin: String = rest.chars().take(20).collect();
    format!("its header is garbled at {begin:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(descr: &str, fortran: &str, shape: &str) -> Result<Header, String> {
        parse(
            format!("{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}   \n").as_bytes(),
            false,
        )
    }

    #[test]
    fn what_is_written_is_read_back_with_its_data_aligned() {
        for element in ElementType::ALL {
            for shape in [vec![], vec![7], vec![0], vec![3, 5], vec![2, 3, 4]] {
                let written = Header { element, shape };
                let bytes = written.to_bytes();
                let (from, to) = header_place(&bytes).unwrap();
                assert_eq!((to, to % ALIGNMENT), (bytes.len(), 0));
                assert_eq!(parse(&bytes[from..to], true), Ok(written));
            }
        }
    }

    #[test]
    fn the_text_is_what_numpy_itself_writes() {
        let header = Header { element: ElementType::F32, shape: vec![3] };
        let text = b"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }";
        assert_eq!(&header.to_bytes()[10..10 + text.len()], text);
    }

    #[test]
    fn versions_1_to_3_are_read_and_no_other() {
        assert_eq!(header_place(b"\x93NUMPY\x01\x00\x76\x00{}"), Ok((10, 128)));
        for version in [2, 3] {
            let prefix = [MAGIC, &[version, 0, 0x74, 0, 0, 0]].concat();
            assert_eq!(header_place(&prefix), Ok((12, 128)));
        }
        for bad in
            [&b""[..], b"\x93NUMP", b"PK\x03\x04 npz", b"\x93NUMPY\x04\x00\x00\x00", b"\x93NUMPY\x01\x00\x76"]
        {
            assert!(header_place(bad).is_err(), "{bad:?}");
        }
        assert!(header_place(&[MAGIC, &[2, 0, 0xff, 0xff, 0xff, 0xff]].concat()).is_err(), "absurd length");
    }

    #[test]
    fn what_needs_a_conversion_is_refused_with_the_conversion() {
        for (descr, fortran, hint) in [
            ("'>f4'", "False", "astype('<f4')"),
            ("'<f4'", "True", "ascontiguousarray"),
            ("'<u2'", "False", "astype to one of f32"),
            ("'|V2'", "False", "--type bf16"),
            ("[('a', '<f4'), ('b', '<i4')]", "False", "one plain array per rank"),
        ] {
            let error = header(descr, fortran, "(3,)").unwrap_err();
            assert!(error.contains(hint), "{error}");
        }
    }

    #[test]
    fn one_byte_has_no_byte_order() {
        for descr in ["'|u1'", "'<u1'", "'>u1'"] {
            assert_eq!(header(descr, "False", "(3,)").map(|header| header.element), Ok(ElementType::U8));
        }
    }

    #[test]
    fn nonsense_is_an_error_and_no_panic() {
        for text in
            ["", "{", "{'descr'", "{'descr': <f4}", "[1]", "{'descr': '<f4', 'shape': (3,)} x", "{'a': 'ä"]
        {
            assert!(parse(text.as_bytes(), true).is_err(), "{text}");
        }
        assert!(header("'<f4'", "False", "(18446744073709551615, 2)").is_err());
        assert!(header("'<f4'", "False", "(-1,)").is_err());
        assert!(header("'<f4'", "0", "(1,)").is_err());
        assert!(parse(&[0xff, 0xfe], true).is_err());
    }
}
