//! Sets of ranks as text: `0..3 8 12..15`. Both ends of a range belong to it.

use std::fmt::Write as _;

/// Returns ranks as text, with a range for each sequence of at least three ascending ranks.
pub(crate) fn write(ranks: &[u16]) -> String {
    let mut text = String::new();
    for run in ranks.chunk_by(|one, next| one.checked_add(1) == Some(*next)) {
        let gap = if text.is_empty() { "" } else { " " };
        // Writing to a `String` cannot fail.
        let _ = match run {
            [first, .., last] if run.len() > 2 => write!(text, "{gap}{first}..{last}"),
            _ => write!(text, "{gap}{}", run.iter().map(u16::to_string).collect::<Vec<_>>().join(" ")),
        };
    }
    text
}

/// Adds the ranks of one part, such as `8` or `0..3`, to `ranks`.
///
/// # Errors
///
/// Returns the reason if the part is no rank and no range.
pub(crate) fn read_part(part: &str, ranks: &mut Vec<u16>) -> Result<(), String> {
    let number = |text: &str| text.parse::<u16>().map_err(|_| format!("`{text}` is no rank"));
    let Some((first, last)) = part.split_once("..") else {
        ranks.push(number(part)?);
        return Ok(());
    };
    let (first, last) = (number(first)?, number(last)?);
    if first > last {
        return Err(format!("the range {part} ends before it begins"));
    }
    ranks.extend(first..=last);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_of_three_are_ranges() {
        assert_eq!(write(&[0, 1, 2, 3, 8, 9, 20, 19, 65535]), "0..3 8 9 20 19 65535");
        assert_eq!(write(&[]), "");
    }

    #[test]
    fn parts_are_read_or_refused() {
        let mut ranks = Vec::new();
        assert_eq!(read_part("7", &mut ranks), Ok(()));
        assert_eq!(read_part("65533..65535", &mut ranks), Ok(()));
        assert_eq!(ranks, [7, 65533, 65534, 65535]);
        for wrong in ["", "-1", "65536", "3..", "..3", "5..4", "1..2..3"] {
            assert!(read_part(wrong, &mut ranks).is_err(), "{wrong}");
        }
    }
}
