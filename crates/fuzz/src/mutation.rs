//! Mutations: changes of an input that keep most of it, so that it still reaches code behind the first checks.

use proptest::prelude::*;

/// Values at which arithmetic on lengths and counts overflows or changes its sign.
const EDGES: [u64; 16] = [
    0,
    1,
    0x7f,
    0x80,
    0xff,
    0x100,
    0x7fff,
    0x8000,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x1_0000_0000,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    u64::MAX,
];
/// Longest piece that is removed, repeated or copied, in bytes.
const PIECE_BYTES_MAX: usize = 64;
/// Number of copies of a repeated piece, at most.
const COPIES_MAX: usize = 40;

/// One change. Positions are taken modulo the length of the input.
#[derive(Clone, Debug)]
pub(crate) enum Mutation {
    /// Removes all bytes from a position on.
    Cut { at: usize },
    /// Removes some bytes.
    Remove { at: usize, length: usize },
    /// Repeats some bytes.
    Repeat { at: usize, length: usize, copies: usize },
    /// Replaces the rest by the rest of another input.
    Splice { at: usize, from: usize },
    /// Inserts a piece of another input.
    Copy { at: usize, from: usize, length: usize },
    /// Flips one bit.
    Flip { at: usize, bit: u8 },
    /// Replaces one byte.
    Replace { at: usize, byte: u8 },
    /// Inserts a byte.
    Insert { at: usize, byte: u8 },
    /// Writes a number at the edge of a type.
    Edge { at: usize, which: usize, width: usize, is_big_endian: bool },
    /// Replaces the decimal number at or after a position.
    Number { at: usize, which: usize },
    /// Inserts one of the target's tokens.
    Token { at: usize, which: usize },
}

/// Returns the strategy that draws mutations and shrinks them.
pub(crate) fn mutation() -> impl Strategy<Value = Mutation> {
    let at = any::<usize>;
    let length = || 1..=PIECE_BYTES_MAX;
    let width = prop::sample::select(vec![1_usize, 2, 4, 8]);
    prop_oneof![
        1 => at().prop_map(|at| Mutation::Cut { at }),
        2 => (at(), length()).prop_map(|(at, length)| Mutation::Remove { at, length }),
        1 => (at(), length(), 1..=COPIES_MAX).prop_map(|(at, length, copies)| Mutation::Repeat { at, length, copies }),
        2 => (at(), at()).prop_map(|(at, from)| Mutation::Splice { at, from }),
        2 => (at(), at(), length()).prop_map(|(at, from, length)| Mutation::Copy { at, from, length }),
        4 => (at(), 0..8_u8).prop_map(|(at, bit)| Mutation::Flip { at, bit }),
        3 => (at(), any::<u8>()).prop_map(|(at, byte)| Mutation::Replace { at, byte }),
        2 => (at(), any::<u8>()).prop_map(|(at, byte)| Mutation::Insert { at, byte }),
        3 => (at(), 0..EDGES.len(), width, any::<bool>())
            .prop_map(|(at, which, width, is_big_endian)| Mutation::Edge { at, which, width, is_big_endian }),
        2 => (at(), 0..EDGES.len()).prop_map(|(at, which)| Mutation::Number { at, which }),
        3 => (at(), at()).prop_map(|(at, which)| Mutation::Token { at, which }),
    ]
}

/// Returns `base` after all mutations, cut to `bytes_max`.
pub(crate) fn mutated(
    base: &[u8],
    other: &[u8],
    mutations: &[Mutation],
    tokens: &[&str],
    bytes_max: usize,
) -> Vec<u8> {
    let mut bytes = base.to_vec();
    for mutation in mutations {
        apply(&mut bytes, other, mutation, tokens);
        bytes.truncate(bytes_max);
    }
    bytes
}

/// Returns the range of at most `length` bytes at a position.
fn piece(bytes: &[u8], at: usize, length: usize) -> std::ops::Range<usize> {
    let at = at % (bytes.len() + 1);
    at..(at + length).min(bytes.len())
}

fn insert(bytes: &mut Vec<u8>, at: usize, piece: impl IntoIterator<Item = u8>) {
    let at = at % (bytes.len() + 1);
    bytes.splice(at..at, piece);
}

fn apply(bytes: &mut Vec<u8>, other: &[u8], mutation: &Mutation, tokens: &[&str]) {
    match *mutation {
        Mutation::Cut { at } => bytes.truncate(at % (bytes.len() + 1)),
        Mutation::Remove { at, length } => {
            let range = piece(bytes, at, length);
            bytes.drain(range);
        }
        Mutation::Repeat { at, length, copies } => {
            let range = piece(bytes, at, length);
            let copies = bytes[range.clone()].repeat(copies);
            insert(bytes, range.end, copies);
        }
        Mutation::Splice { at, from } => {
            bytes.truncate(at % (bytes.len() + 1));
            bytes.extend_from_slice(&other[from % (other.len() + 1)..]);
        }
        Mutation::Copy { at, from, length } => {
            insert(bytes, at, other[piece(other, from, length)].iter().copied());
        }
        Mutation::Flip { at, bit } => {
            let range = piece(bytes, at, 1);
            bytes[range].iter_mut().for_each(|byte| *byte ^= 1 << bit);
        }
        Mutation::Replace { at, byte } => {
            let range = piece(bytes, at, 1);
            bytes[range].fill(byte);
        }
        Mutation::Insert { at, byte } => insert(bytes, at, [byte]),
        Mutation::Edge { at, which, width, is_big_endian } => {
            let mut edge = EDGES[which].to_le_bytes()[..width].to_vec();
            if is_big_endian {
                edge.reverse();
            }
            let range = piece(bytes, at, width);
            bytes[range].iter_mut().zip(edge).for_each(|(byte, edge)| *byte = edge);
        }
        Mutation::Number { at, which } => {
            let at = at % (bytes.len() + 1);
            let Some(begin) = bytes[at..].iter().position(u8::is_ascii_digit) else { return };
            let begin = at + begin;
            let length = bytes[begin..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            bytes.splice(begin..begin + length, EDGES[which].to_string().into_bytes());
        }
        Mutation::Token { at, which } => {
            if !tokens.is_empty() {
                insert(bytes, at, tokens[which % tokens.len()].bytes());
            }
        }
    }
}
