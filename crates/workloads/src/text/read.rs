//! A workload from text.
//!
//! Each line is read alone; a mistake in one leaves the others to be read. References between lines of a block are checked here,
//! because the line is known. The partners of messages and the order between ranks are checked by [`check`](crate::check()).

use core::mem;
use std::path::Path;
use std::sync::Arc;

use rackloom_collectives::CollectiveKind;

use crate::check::check_group;
use crate::error::{ERRORS_MAX, Place, WorkloadError, WorkloadErrors};
use crate::located::{Places, check_at};
use crate::model::{
    DEPENDENCIES_MAX, GROUPS_MAX, Group, OPERATIONS_MAX, PHASES_MAX, RANKS_MAX, RankOperations, Work,
    Workload,
};
use crate::ranks;
use crate::text::quantity::{is_flops, read_flops, read_size, read_time};
use crate::tokens::{Token, Tokens};

/// Name of the phase of a text without phases.
const ONLY_PHASE: &str = "main";
/// Most ranks of all groups together.
const MEMBERS_MAX: usize = 1 << 24;

/// Reads a workload. `origin` is the name of the file, for messages and for a workload without a name.
///
/// # Errors
///
/// Returns the mistakes of the text, each with line and column. Partners of messages and the order are not checked.
pub fn read(text: &str, origin: &str) -> Result<Workload, WorkloadErrors> {
    read_lines(text, origin).map(|(workload, _)| workload)
}

/// Reads a workload and checks it. `origin` is the name of the file, for messages and for a workload without a name.
///
/// # Errors
///
/// Returns the mistakes of the text, each with line and column, or those that [`check`](crate::check()) finds, each with the line
/// of its operation.
pub fn read_checked(text: &str, origin: &str) -> Result<Workload, WorkloadErrors> {
    let (workload, places) = read_lines(text, origin)?;
    check_at(&workload, &places, |_| origin).map(|()| workload)
}

/// Returns the place of an operation in a text, both counted from 0; `None` if the text is no workload or has no such operation.
#[must_use]
pub fn place_of(text: &str, rank: usize, operation: usize) -> Option<Place> {
    let (_, places) = read_lines(text, "").ok()?;
    places.get(rank)?.get(operation).copied()
}

fn read_lines(text: &str, origin: &str) -> Result<(Workload, Places), WorkloadErrors> {
    let mut reader = Reader::default();
    let mut errors = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        errors.extend(reader.line(number, line).err());
        if errors.len() >= ERRORS_MAX {
            break;
        }
    }
    errors.extend(reader.end_block().err());
    if reader.workload.ranks.is_empty() && errors.is_empty() {
        errors.push(WorkloadError::whole("the workload has no ranks", RANKS_HINT));
    }
    if reader.workload.name.is_empty() {
        reader.workload.name = name_of_file(origin);
    }
    if errors.is_empty() {
        Ok((reader.workload, reader.places))
    } else {
        Err(WorkloadErrors::new(origin, errors))
    }
}

/// Returns the name of a workload that states none: that of its file, without folder and extension.
fn name_of_file(origin: &str) -> String {
    let stem = Path::new(origin).file_stem().unwrap_or_default().to_string_lossy();
    // The text of a workload can hold the name.
    let plain = stem.replace(|one: char| one.is_control() || one == '#', "-");
    plain.trim().to_owned()
}

const RANKS_HINT: &str = "begin with the number of ranks: `ranks 8`";
const OPERATION_HINT: &str = "an operation is `compute 5us`, `compute 2TFLOP 4MB`, `send 1 4KiB`, `receive 1 4KiB` or `all-reduce group 0 1MiB`, and \
                              may end with `after -1`";
const AFTER_HINT: &str =
    "name earlier operations of the block: `after 0` is the first, `after -1` the previous one";

/// Lines that are read so far.
#[derive(Default)]
struct Reader {
    workload: Workload,
    places: Places,
    /// Ranks of groups, together.
    members: usize,
    operations: usize,
    dependencies: usize,
    block: Block,
}

/// Block of the ranks that share a list of operations.
#[derive(Default)]
struct Block {
    /// Line of its heading; 0 before the first block.
    line: usize,
    ranks: Vec<u16>,
    phase: u16,
    operations: RankOperations,
    lines: Vec<usize>,
}

type Outcome = Result<(), WorkloadError>;

impl Reader {
    fn line(&mut self, number: usize, text: &str) -> Outcome {
        let mut tokens = Tokens::new(number, text);
        let Some(first) = tokens.next() else { return Ok(()) };
        match first.text {
            "workload" => self.name(&mut tokens),
            "ranks" => self.ranks(&mut tokens),
            "phase" => self.phase(&mut tokens),
            "group" => self.group(&mut tokens),
            "rank" => self.rank(number, first, &mut tokens),
            "in" => self.in_phase(&mut tokens),
            _ => self.operation(number, first, &mut tokens),
        }
    }

    fn name(&mut self, tokens: &mut Tokens<'_>) -> Outcome {
        self.workload.name = name(tokens, "`workload training-step`")?.text.to_owned();
        Ok(())
    }

    fn ranks(&mut self, tokens: &mut Tokens<'_>) -> Outcome {
        let token = tokens.expect("number of ranks", RANKS_HINT)?;
        let count = token.text.parse::<usize>().ok().filter(|count| (1..=RANKS_MAX).contains(count));
        let Some(count) = count else {
            let reason = format!("`{}` is no number from 1 to {RANKS_MAX}", token.text);
            return Err(tokens.mistake(token, reason, RANKS_HINT));
        };
        if !self.workload.ranks.is_empty() {
            return Err(tokens.mistake(
                token,
                "the number of ranks is stated twice",
                "leave one of them out",
            ));
        }
        self.workload.ranks = vec![RankOperations::default(); count];
        self.places = vec![Arc::default(); count];
        end(tokens)
    }

    fn phase(&mut self, tokens: &mut Tokens<'_>) -> Outcome {
        let token = name(tokens, "`phase forward`")?;
        let phases = &mut self.workload.phases;
        if phases.iter().any(|phase| phase == token.text) {
            let reason = format!("phase {} is stated twice", token.text);
            return Err(tokens.mistake(token, reason, "leave one of them out, or choose another name"));
        }
        if self.block.line > 0 {
            let hint = "list all phases before the first `rank`";
            return Err(tokens.mistake(token, "a phase is stated behind a rank", hint));
        }
        if phases.len() >= PHASES_MAX {
            let reason = format!("there are more than {PHASES_MAX} phases");
            return Err(tokens.mistake(token, reason, "use fewer phases"));
        }
        phases.push(token.text.to_owned());
        Ok(())
    }

    fn group(&mut self, tokens: &mut Tokens<'_>) -> Outcome {
        let first = tokens.clone().rest();
        let ranks = ranks_of(tokens)?;
        self.members += ranks.len();
        if self.workload.groups.len() >= GROUPS_MAX || self.members > MEMBERS_MAX {
            let reason = format!(
                "there are more than {GROUPS_MAX} groups, or more than {MEMBERS_MAX} ranks in all of them"
            );
            return Err(tokens.mistake(first, reason, "use fewer groups"));
        }
        let group = Group { ranks };
        // A file may list groups before it states the number of ranks.
        let count = if self.workload.ranks.is_empty() { RANKS_MAX } else { self.workload.ranks.len() };
        let index = self.workload.groups.len();
        let checked = check_group(&group, count);
        self.workload.groups.push(group);
        checked.map_err(|(reason, hint)| tokens.mistake(first, format!("group {index}: {reason}"), hint))
    }

    fn rank(&mut self, number: usize, first: Token<'_>, tokens: &mut Tokens<'_>) -> Outcome {
        self.end_block()?;
        let ranks = ranks_of(tokens);
        self.block.line = number;
        if self.workload.phases.is_empty() {
            self.workload.phases.push(ONLY_PHASE.to_owned());
        }
        let ranks = ranks?;
        let count = self.workload.ranks.len();
        if let Some(rank) = ranks.iter().find(|rank| usize::from(**rank) >= count) {
            let reason = format!("there is no rank {rank}; {count} ranks are stated");
            return Err(tokens.mistake(first, reason, RANKS_HINT));
        }
        self.block.ranks = ranks;
        Ok(())
    }

    /// Gives the operations of the block to its ranks.
    fn end_block(&mut self) -> Outcome {
        let Block { line, ranks, operations, lines, .. } = mem::take(&mut self.block);
        self.block.line = line;
        let refused = |reason: String, hint: &str| Err(WorkloadError::line(line, 1, reason, hint));
        self.operations += operations.operations().len() * ranks.len();
        self.dependencies += operations.dependency_count() * ranks.len();
        if self.operations > OPERATIONS_MAX || self.dependencies > DEPENDENCIES_MAX {
            let reason =
                format!("there are more than {OPERATIONS_MAX} operations or {DEPENDENCIES_MAX} dependencies");
            return refused(reason, "use fewer ranks or a shorter trace");
        }
        let places: Arc<[Place]> = lines.into_iter().map(|line| Place::Line { line, column: 1 }).collect();
        for rank in ranks {
            let place = &mut self.workload.ranks[usize::from(rank)];
            if !place.operations().is_empty() {
                let reason = format!("rank {rank} has operations already");
                return refused(reason, "list each rank once, in one block");
            }
            *place = operations.clone();
            self.places[usize::from(rank)] = Arc::clone(&places);
        }
        Ok(())
    }

    fn in_phase(&mut self, tokens: &mut Tokens<'_>) -> Outcome {
        let token = name(tokens, "`in forward`")?;
        if self.block.line == 0 {
            return Err(tokens.mistake(
                token,
                "a phase begins before the first `rank`",
                "move the line behind `rank 0`",
            ));
        }
        let phase = self.workload.phases.iter().position(|phase| phase == token.text);
        let Some(phase) = phase else {
            let reason = format!("there is no phase {}", token.text);
            let hint = "list each phase before the first `rank`: `phase forward`";
            return Err(tokens.mistake(token, reason, hint));
        };
        self.block.phase = phase as u16;
        Ok(())
    }

    fn operation(&mut self, number: usize, first: Token<'_>, tokens: &mut Tokens<'_>) -> Outcome {
        let work = work(first, tokens)?;
        if self.block.line == 0 {
            let reason = "an operation stands before the first `rank`";
            return Err(tokens.mistake(first, reason, "begin the block of a rank: `rank 0`"));
        }
        let index = self.block.lines.len();
        let dependencies = dependencies(index, tokens)?;
        if index >= OPERATIONS_MAX {
            return Err(tokens.mistake(first, "the block is too long", "use a shorter trace"));
        }
        self.block.operations.add(self.block.phase, work, dependencies);
        self.block.lines.push(number);
        Ok(())
    }
}

/// Reads a name up to the end of the line.
fn name<'t>(tokens: &mut Tokens<'t>, example: &str) -> Result<Token<'t>, WorkloadError> {
    let token = tokens.rest();
    if token.text.is_empty() || token.text.contains(|one: char| one.is_control() || one == '#') {
        let hint = format!("write {example}; a name has no `#` and no control characters");
        return Err(tokens.mistake(token, "the line has no name", &hint));
    }
    Ok(token)
}

/// Reads the ranks up to the end of the line.
fn ranks_of(tokens: &mut Tokens<'_>) -> Result<Vec<u16>, WorkloadError> {
    const HINT: &str = "list ranks: `0 1 4..7`; both ends of a range belong to it";
    let mut ranks = Vec::new();
    let mut part = tokens.expect("ranks", HINT)?;
    loop {
        ranks::read_part(part.text, &mut ranks).map_err(|reason| tokens.mistake(part, reason, HINT))?;
        if ranks.len() > RANKS_MAX {
            return Err(tokens.mistake(part, "the line lists ranks twice", HINT));
        }
        let Some(next) = tokens.next() else { return Ok(ranks) };
        part = next;
    }
}

/// Refuses further parts of a line.
fn end(tokens: &mut Tokens<'_>) -> Outcome {
    match tokens.next() {
        Some(token) => Err(tokens.mistake(
            token,
            format!("`{}` is too much here", token.text),
            "remove the rest of the line",
        )),
        None => Ok(()),
    }
}

fn work(first: Token<'_>, tokens: &mut Tokens<'_>) -> Result<Work, WorkloadError> {
    match first.text {
        "compute" => compute(tokens),
        "send" => {
            let (to, bytes, tag) = (rank(tokens)?, size(tokens)?, option(tokens, "tag")?);
            Ok(Work::Send { to, bytes, tag })
        }
        "receive" => {
            let (from, bytes, tag) = (rank(tokens)?, size(tokens)?, option(tokens, "tag")?);
            Ok(Work::Receive { from, bytes, tag })
        }
        other => match CollectiveKind::from_name(other) {
            Some(kind) => collective(kind, tokens),
            None => Err(tokens.mistake(first, format!("`{other}` is no operation"), OPERATION_HINT)),
        },
    }
}

/// Reads a duration, or operations and bytes. Without a size there are no bytes.
fn compute(tokens: &mut Tokens<'_>) -> Result<Work, WorkloadError> {
    const HINT: &str = "write a duration, as `1500ns` or `2us`, or the work, as `2TFLOP` or `2TFLOP 4MB`";
    let token = tokens.expect("duration", HINT)?;
    if !is_flops(token.text) {
        let duration_ns = read_time(token.text).map_err(|reason| tokens.mistake(token, reason, HINT))?;
        return Ok(Work::Compute { duration_ns });
    }
    let flops = read_flops(token.text).map_err(|reason| tokens.mistake(token, reason, HINT))?;
    let has_size = tokens.clone().next().is_some_and(|next| next.text != "after");
    let bytes = if has_size { size(tokens)? } else { 0 };
    Ok(Work::Kernel { flops, bytes })
}

fn collective(kind: CollectiveKind, tokens: &mut Tokens<'_>) -> Result<Work, WorkloadError> {
    let hint = format!("name the group behind the kind: `{kind} group 0`");
    let word = tokens.expect("group", &hint)?;
    if word.text != "group" {
        return Err(tokens.mistake(word, format!("`{}` stands in place of `group`", word.text), &hint));
    }
    let token = tokens.expect("group", &hint)?;
    let group = number(token, tokens, "number of a group", &hint)?;
    let bytes = if kind.moves_data() { size(tokens)? } else { 0 };
    let root = if kind.has_root() { option(tokens, "root")? } else { 0 };
    Ok(Work::Collective { group, kind, bytes, root })
}

fn rank(tokens: &mut Tokens<'_>) -> Result<u16, WorkloadError> {
    let token = tokens.expect("peer", OPERATION_HINT)?;
    number(token, tokens, "rank", "ranks count from 0")
}

fn size(tokens: &mut Tokens<'_>) -> Result<u64, WorkloadError> {
    let token = tokens.expect("size", OPERATION_HINT)?;
    read_size(token.text).map_err(|reason| tokens.mistake(token, reason, "write `4096B` or `4KiB`"))
}

/// Reads a number behind its word, or returns 0 if the word is not there.
fn option<N: core::str::FromStr + Default>(tokens: &mut Tokens<'_>, word: &str) -> Result<N, WorkloadError> {
    if tokens.take(word).is_none() {
        return Ok(N::default());
    }
    let hint = format!("write a number behind it: `{word} 1`");
    let token = tokens.expect(word, &hint)?;
    number(token, tokens, word, &hint)
}

fn number<N: core::str::FromStr>(
    token: Token<'_>,
    tokens: &Tokens<'_>,
    what: &str,
    hint: &str,
) -> Result<N, WorkloadError> {
    token.text.parse().map_err(|_| tokens.mistake(token, format!("`{}` is no {what}", token.text), hint))
}

/// Reads the indices behind `after` up to the end of the line.
fn dependencies(index: usize, tokens: &mut Tokens<'_>) -> Result<Vec<u32>, WorkloadError> {
    if tokens.take("after").is_none() {
        return end(tokens).map(|()| Vec::new());
    }
    let mut found = Vec::new();
    let mut token = tokens.expect("operations", AFTER_HINT)?;
    loop {
        let Some(dependency) = dependency(index, token.text) else {
            let reason =
                format!("`{}` is no earlier operation; this one is number {index} of its block", token.text);
            return Err(tokens.mistake(token, reason, AFTER_HINT));
        };
        found.push(dependency);
        let Some(next) = tokens.next() else { return Ok(found) };
        token = next;
    }
}

/// Returns the index that a text names, if it is below `index`.
fn dependency(index: usize, text: &str) -> Option<u32> {
    let named = match text.strip_prefix('-') {
        Some(distance) => index.checked_sub(distance.parse().ok()?)?,
        None => text.parse().ok()?,
    };
    u32::try_from(named).ok().filter(|_| named < index)
}
