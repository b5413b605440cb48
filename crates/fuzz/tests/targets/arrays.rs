//! Headers of `.npy` files.

use rackloom_collectives::ElementType;
use rackloom_fuzz::{MemoryLimit, Target};
use rackloom_jobs::arrays::{HEADER_BYTES_MAX, Header, header_bytes};

const TOKENS: &[&str] = &[
    "'descr': '<f4', ",
    "'fortran_order': False, ",
    "'shape': (3, 4), ",
    "\u{1}\u{0}",
    "\u{93}NUMPY",
    "True",
    "(",
    ")",
    "((((((((",
    "{",
    "}",
    "[",
    "]",
    "'",
    "\\",
    "|V2",
    ">f8",
    "<i8",
    "-1",
    "1L",
    "None",
    "\n",
];

/// Returns headers as NumPy writes them. They do not come from the writer under test, whose mistakes the reader would then repeat.
fn seeds() -> Vec<Vec<u8>> {
    let types = ["<f4", "<f8", "<f2", "|V2", "<i4", "<i8", "|u1"];
    let shapes = ["()", "(7,)", "(2, 3, 4)", "(0, 5)"];
    let header = |descr: &str, order: &str, shape: &str| {
        let text = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n");
        [b"\x93NUMPY\x01\x00", &(text.len() as u16).to_le_bytes()[..], text.as_bytes()].concat()
    };
    let mut seeds: Vec<_> =
        types.iter().flat_map(|descr| shapes.iter().map(|shape| header(descr, "False", shape))).collect();
    seeds.push(header(">f4", "False", "(7,)"));
    seeds.push(header("<f8", "True", "(2, 2)"));
    seeds
}

#[test]
fn headers_of_arrays_are_read_and_written_alike() {
    let target = Target {
        name: "arrays",
        seeds: seeds(),
        tokens: TOKENS,
        input_bytes_max: HEADER_BYTES_MAX,
        memory: MemoryLimit { base_bytes: 16 << 10, per_input_byte: 64 },
    };
    target.run(|prefix| {
        for wanted in [None, Some(ElementType::Bf16)] {
            // A header that is whole names the length of the file; a second attempt has that length.
            let error = match Header::parse(prefix, prefix.len() as u64, wanted) {
                Ok(header) => return survives(&header, prefix, wanted),
                Err(error) => error,
            };
            if let rackloom_jobs::arrays::HeaderError::DataLength { expected, found, .. } = error {
                let file_bytes = prefix.len() as u64 - found + expected;
                if let Ok(header) = Header::parse(prefix, file_bytes, wanted) {
                    return survives(&header, prefix, wanted);
                }
            } else if wanted.is_some() {
                let text = error.to_string();
                assert!(text.contains("hint: "), "{text}");
                return text;
            }
        }
        "a length that does not fit".to_owned()
    });
}

/// Writes a header anew and compares what is read from it.
fn survives(header: &Header, prefix: &[u8], wanted: Option<ElementType>) -> String {
    assert!(header.data_offset <= prefix.len() as u64, "the data begins behind the header that was read");
    let written = header_bytes(header.element, &header.shape);
    let length = written.len() as u64 + header.data_bytes();
    let again = Header::parse(&written, length, wanted).expect("a written header can be read");
    assert_eq!((again.element, &again.shape), (header.element, &header.shape));
    assert_eq!(again.data_offset, written.len() as u64);
    format!("{} with {} axes", header.element, "x".repeat(header.shape.len()))
}
