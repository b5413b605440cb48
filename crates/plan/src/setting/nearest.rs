//! Search for the name that a user meant.

/// Returns the candidate that is most similar to `text`, if it is similar enough. Names that differ in their numbers only are not
/// considered.
pub(crate) fn nearest<'name>(
    text: &str,
    candidates: impl IntoIterator<Item = &'name str>,
) -> Option<&'name str> {
    let letters =
        |text: &str| text.chars().filter(|character| !character.is_ascii_digit()).collect::<String>();
    // Limits the cost of the search for hostile files.
    const CHARACTERS_MAX: usize = 64;
    const CANDIDATES_MAX: usize = 1_000;
    let length = text.chars().count();
    if length > CHARACTERS_MAX {
        return None;
    }
    let allowed = (length / 3).max(1);
    candidates
        .into_iter()
        .take(CANDIDATES_MAX)
        .filter(|candidate| letters(text) != letters(candidate))
        .map(|candidate| (edits(text, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Returns the number of characters that must be changed, added, removed or swapped with a neighbour (optimal string alignment).
fn edits(left: &str, right: &str) -> usize {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=right.len()).collect()];
    for line in 1..=left.len() {
        let mut row = vec![line];
        for column in 1..=right.len() {
            let same = left[line - 1] == right[column - 1];
            let mut least = rows[line - 1][column - 1] + usize::from(!same);
            least = least.min(rows[line - 1][column] + 1).min(row[column - 1] + 1);
            let swapped = line > 1
                && column > 1
                && left[line - 1] == right[column - 2]
                && left[line - 2] == right[column - 1];
            if swapped {
                least = least.min(rows[line - 2][column - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[left.len()][right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_names_are_proposed_and_other_numbers_are_not() {
        let keys = ["rate", "delay", "loss", "corrupt"];
        for (typed, meant) in [("los", "loss"), ("dealy", "delay"), ("corupt", "corrupt"), ("rat", "rate")] {
            assert_eq!(nearest(typed, keys), Some(meant));
        }
        assert_eq!(nearest("bandwidth", keys), None);
        assert_eq!(nearest("n9", ["n0", "n1"]), None);
        assert_eq!(nearest("m1", ["n0", "n1"]), Some("n1"));
    }
}
