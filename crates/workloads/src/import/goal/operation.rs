//! One statement within the block of a rank: an operation, or a dependency between labels.

use crate::error::WorkloadError;
use crate::import::goal::statements::Word;
use crate::model::Work;

/// Statement of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line<'t> {
    /// Operation with its label, if it has one.
    Operation {
        /// Label.
        label: Option<Word<'t>>,
        /// Work.
        work: Work,
        /// True if the operation names a processor or network card.
        has_resource: bool,
    },
    /// Dependency of one label on another.
    Dependency {
        /// Label of the later operation.
        later: Word<'t>,
        /// Label of the earlier operation.
        earlier: Word<'t>,
        /// True if the later operation waits only for the begin of the earlier one.
        is_begin: bool,
    },
}

const FORM: &str =
    "write `l1: send 8b to 1 tag 0`, `l1: recv 8b from 1 tag 0`, `l1: calc 100` or `l2 requires l1`";

/// Reads a statement with at least one word.
pub(super) fn read<'t>(words: &[Word<'t>], unit_ns: u64) -> Result<Line<'t>, WorkloadError> {
    match words {
        [later, word, earlier] if matches!(word.text, "requires" | "irequires") => {
            Ok(Line::Dependency { later: *later, earlier: *earlier, is_begin: word.text == "irequires" })
        }
        [label, colon, rest @ ..] if colon.text == ":" => operation(Some(*label), rest, *label, unit_ns),
        [first, ..] => operation(None, words, *first, unit_ns),
        [] => Err(WorkloadError::whole("an empty statement", FORM)),
    }
}

fn operation<'t>(
    label: Option<Word<'t>>,
    words: &[Word<'t>],
    first: Word<'t>,
    unit_ns: u64,
) -> Result<Line<'t>, WorkloadError> {
    let mut rest = Rest { words, last: first };
    let kind = rest.next()?;
    let work = match kind.text {
        "calc" => {
            let count: u64 = rest.number("number of units")?;
            let duration_ns = count.checked_mul(unit_ns);
            Work::Compute { duration_ns: duration_ns.ok_or_else(|| rest.last.mistake(TOO_LONG, FORM))? }
        }
        "send" => {
            let (bytes, to) = (rest.size()?, rest.peer("to")?);
            Work::Send { to, bytes, tag: rest.tag()? }
        }
        "recv" => {
            let (bytes, from) = (rest.size()?, rest.peer("from")?);
            Work::Receive { from, bytes, tag: rest.tag()? }
        }
        other => return Err(kind.mistake(format!("`{other}` is no operation"), FORM)),
    };
    let has_resource = rest.resources()?;
    Ok(Line::Operation { label, work, has_resource })
}

const TOO_LONG: &str = "the duration does not fit in 64 bits";

/// Words of an operation that are not yet read.
struct Rest<'w, 't> {
    words: &'w [Word<'t>],
    last: Word<'t>,
}

impl<'t> Rest<'_, 't> {
    fn next(&mut self) -> Result<Word<'t>, WorkloadError> {
        let Some((first, rest)) = self.words.split_first() else {
            return Err(self.last.mistake(format!("the statement ends behind `{}`", self.last.text), FORM));
        };
        self.words = rest;
        self.last = *first;
        Ok(*first)
    }

    /// Takes a word if it is the next one.
    fn take(&mut self, text: &str) -> bool {
        let is_next = self.words.first().is_some_and(|word| word.text == text);
        if is_next {
            self.words = &self.words[1..];
        }
        is_next
    }

    fn number<N: core::str::FromStr>(&mut self, what: &str) -> Result<N, WorkloadError> {
        let word = self.next()?;
        word.text.parse().map_err(|_| word.mistake(format!("`{}` is no {what} in range", word.text), FORM))
    }

    /// Reads a size such as `8b` or `8 b`.
    fn size(&mut self) -> Result<u64, WorkloadError> {
        let word = self.next()?;
        let digits = word.text.strip_suffix('b');
        if digits.is_none() && !self.take("b") {
            return Err(word.mistake(format!("`{}` is no size in bytes", word.text), FORM));
        }
        let digits = digits.unwrap_or(word.text);
        digits.parse().map_err(|_| word.mistake(format!("`{}` is no size in range", word.text), FORM))
    }

    fn peer(&mut self, preposition: &str) -> Result<u16, WorkloadError> {
        let word = self.next()?;
        if word.text != preposition {
            return Err(word.mistake(format!("`{}` stands in place of `{preposition}`", word.text), FORM));
        }
        if self.take("-1") {
            return Err(word.mistake("a receive from any rank cannot be imported", "name the sender"));
        }
        self.number("rank")
    }

    fn tag(&mut self) -> Result<u32, WorkloadError> {
        if !self.take("tag") {
            return Ok(0);
        }
        if self.take("-1") {
            return Err(self.last.mistake("a receive of any tag cannot be imported", "name the tag"));
        }
        self.number("tag")
    }

    /// Reads processor and network card up to the end. Returns true if one is named.
    fn resources(&mut self) -> Result<bool, WorkloadError> {
        let mut is_named = false;
        while !self.words.is_empty() {
            let word = self.next()?;
            if !matches!(word.text, "cpu" | "nic") {
                return Err(word.mistake(format!("`{}` is too much here", word.text), FORM));
            }
            is_named |= self.number::<u32>("number")? > 0;
        }
        Ok(is_named)
    }
}
