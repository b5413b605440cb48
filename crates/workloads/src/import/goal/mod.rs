//! GOAL: the schedules of LogGOPSim and ATLAHS as text.
//!
//! Source of the format: Hoefler, Siebert, Lumsdaine, "Group operation assembly language", ICPP 2009, and the reader `txt2bin` of
//! LogGOPSim. Binary GOAL files, receives from any rank and of any tag are refused. Processors and network cards of a rank are left
//! out: a rank computes one operation at a time.

mod operation;
mod statements;

use std::collections::HashMap;
use std::sync::Arc;

use crate::error::{ERRORS_MAX, Place, WorkloadError, WorkloadErrors};
use crate::import::format::Format;
use crate::import::goal::operation::Line;
use crate::import::goal::statements::{End, Statement, Statements, Word};
use crate::import::imported::{Content, File, Imported, Options};
use crate::import::notes::Notes;
use crate::import::order::{Node, Ordered, Stuck, ordered};
use crate::located::{Places, check_at};
use crate::model::{RANKS_MAX, RankOperations, Workload};

/// Reads GOAL text.
pub(super) fn read(file: &File<'_>, options: &Options) -> Result<Imported, WorkloadErrors> {
    let text = file.text()?;
    let mut reader = Reader { unit_ns: options.goal_unit_ns, ..Reader::default() };
    let (mut errors, mut omitted) = (Vec::new(), 0_u64);
    for statement in Statements::new(text) {
        let Err(error) = reader.statement(&statement) else { continue };
        let errors_max = if reader.is_foreign() { FOREIGN_MAX } else { ERRORS_MAX - 1 };
        if errors.len() < errors_max { errors.push(error) } else { omitted += 1 }
    }
    if !errors.is_empty() && reader.is_foreign() {
        errors.push(foreign(omitted));
    } else if omitted > 0 {
        errors.push(WorkloadError::whole(format!("{omitted} more mistakes"), "correct the first ones"));
    } else {
        errors.extend(reader.end().err());
    }
    if !errors.is_empty() {
        return Err(WorkloadErrors::new(file.name, errors));
    }
    let workload = Workload {
        name: file.title(),
        phases: vec!["main".to_owned()],
        groups: Vec::new(),
        ranks: reader.ranks,
    };
    check_at(&workload, &reader.places, |_| file.name)?;
    Ok(Imported { content: Content::Workload(workload), notes: reader.notes.finish() })
}

/// Most mistakes that are listed of a text without a number of ranks.
const FOREIGN_MAX: usize = 3;

/// Returns the mistake of a text of another format.
fn foreign(omitted: u64) -> WorkloadError {
    let more = if omitted > 0 { format!("{omitted} more mistakes, and ") } else { String::new() };
    let reason = format!("{more}no line with the number of ranks: the file does not look like GOAL");
    let hint = format!("begin with `num_ranks 8`, or name another format: {}", Format::names());
    WorkloadError::whole(reason, hint)
}

const HEADER: &str = "begin with the number of ranks: `num_ranks 8`";
const BLOCK: &str = "write one block per rank: `rank 0 {`, its operations, `}`";

type Outcome = Result<(), WorkloadError>;

/// Text that is read so far.
#[derive(Debug, Default)]
struct Reader<'t> {
    unit_ns: u64,
    has_header: bool,
    ranks: Vec<RankOperations>,
    places: Places,
    /// Line of the block of each rank; 0 where there is none yet.
    blocks: Vec<usize>,
    block: Option<Block<'t>>,
    notes: Notes,
}

/// Block of one rank.
#[derive(Debug)]
struct Block<'t> {
    rank: usize,
    nodes: Vec<Node>,
    lines: Vec<usize>,
    labels: HashMap<&'t str, u32>,
    /// Dependencies by label, which may be defined later.
    dependencies: Vec<Dependency<'t>>,
}

#[derive(Clone, Copy, Debug)]
struct Dependency<'t> {
    later: Word<'t>,
    earlier: Word<'t>,
    is_begin: bool,
}

impl<'t> Reader<'t> {
    fn statement(&mut self, statement: &Statement<'t>) -> Outcome {
        let read = match statement.words.as_slice() {
            [] if statement.end == End::Open => {
                Err(WorkloadError::line(statement.line, 1, "a brace without its rank", BLOCK))
            }
            [] => Ok(()),
            [word, count] if word.text == "num_ranks" => self.num_ranks(*count),
            [word, rank] if word.text == "rank" && statement.end == End::Open => self.open(*rank),
            [first, ..] if statement.end == End::Open => {
                Err(first.mistake("a brace without its rank", BLOCK))
            }
            words => self.operation(words),
        };
        if statement.end == End::Close {
            read?;
            return self.close(statement.line);
        }
        read
    }

    /// Returns true as long as there was no line with the number of ranks, with which GOAL begins.
    fn is_foreign(&self) -> bool {
        !self.has_header
    }

    fn num_ranks(&mut self, word: Word<'t>) -> Outcome {
        self.has_header = true;
        let count = word.text.parse::<usize>().ok().filter(|count| (1..=RANKS_MAX).contains(count));
        let Some(count) = count else {
            let reason = format!("`{}` is no number from 1 to {RANKS_MAX}", word.text);
            return Err(word.mistake(reason, HEADER));
        };
        if !self.ranks.is_empty() {
            return Err(word.mistake("the number of ranks is stated twice", "leave one of them out"));
        }
        self.ranks = vec![RankOperations::default(); count];
        self.places = vec![Arc::default(); count];
        self.blocks = vec![0; count];
        Ok(())
    }

    fn open(&mut self, word: Word<'t>) -> Outcome {
        if let Some(block) = &self.block {
            let reason = format!("the block of rank {} is not closed", block.rank);
            return Err(word.mistake(reason, BLOCK));
        }
        let rank = word.text.parse::<usize>().ok().filter(|rank| *rank < self.ranks.len());
        let Some(rank) = rank else {
            let reason = format!("there is no rank `{}`; {} are stated", word.text, self.ranks.len());
            return Err(word.mistake(reason, HEADER));
        };
        if self.blocks[rank] > 0 {
            let reason = format!("rank {rank} has a block already, in line {}", self.blocks[rank]);
            return Err(word.mistake(reason, BLOCK));
        }
        self.blocks[rank] = word.line;
        self.block = Some(Block::new(rank));
        Ok(())
    }

    fn operation(&mut self, words: &[Word<'t>]) -> Outcome {
        let line = operation::read(words, self.unit_ns)?;
        let (Some(block), Some(first)) = (self.block.as_mut(), words.first()) else {
            let line = words.first().map_or(0, |first| first.line);
            return Err(WorkloadError::line(line, 1, "a statement stands outside of a rank", BLOCK));
        };
        match line {
            Line::Operation { label, work, has_resource } => {
                if has_resource {
                    self.notes.count("operations whose processor or network card is left out");
                }
                block.add(label, Node { work: Some((0, work)), ..Node::default() }, first.line)
            }
            Line::Dependency { later, earlier, is_begin } => {
                if is_begin {
                    self.notes.count("dependencies on the begin of an operation, which wait for what that operation waits for");
                }
                block.dependencies.push(Dependency { later, earlier, is_begin });
                Ok(())
            }
        }
    }

    fn close(&mut self, line: usize) -> Outcome {
        let Some(mut block) = self.block.take() else {
            return Err(WorkloadError::line(line, 1, "a closing brace without its rank", BLOCK));
        };
        let Ordered { operations, nodes } = block.ordered()?;
        let place = |node: &u32| Place::Line { line: block.lines[*node as usize], column: 1 };
        self.places[block.rank] = nodes.iter().map(place).collect();
        self.ranks[block.rank] = operations;
        Ok(())
    }

    fn end(&mut self) -> Outcome {
        if let Some(block) = &self.block {
            let line = self.blocks[block.rank];
            let reason = format!("the block of rank {} is not closed", block.rank);
            return Err(WorkloadError::line(line, 1, reason, BLOCK));
        }
        if self.ranks.is_empty() {
            return Err(WorkloadError::whole("the number of ranks is missing", HEADER));
        }
        Ok(())
    }
}

impl<'t> Block<'t> {
    fn new(rank: usize) -> Self {
        Self { rank, nodes: Vec::new(), lines: Vec::new(), labels: HashMap::new(), dependencies: Vec::new() }
    }

    fn add(&mut self, label: Option<Word<'t>>, node: Node, line: usize) -> Outcome {
        if let Some(label) = label {
            // A label that is refused names no operation.
            if let Some(first) = self.labels.get(label.text) {
                let reason =
                    format!("label {} is used already, in line {}", label.text, self.lines[*first as usize]);
                return Err(label.mistake(reason, "give each operation of a rank a label of its own"));
            }
            self.labels.insert(label.text, self.nodes.len() as u32);
        }
        self.nodes.push(node);
        self.lines.push(line);
        Ok(())
    }

    /// Resolves the labels and returns the operations in order.
    fn ordered(&mut self) -> Result<Ordered, WorkloadError> {
        for Dependency { later, earlier, is_begin } in &self.dependencies {
            let (later, index) = (self.label(*later)?, self.label(*earlier)?);
            let node = &mut self.nodes[later as usize];
            if *is_begin { node.after_begin.push(index) } else { node.after.push(index) }
        }
        ordered(&self.nodes).map_err(|stuck| self.stuck(&stuck))
    }

    fn label(&self, word: Word<'t>) -> Result<u32, WorkloadError> {
        self.labels.get(word.text).copied().ok_or_else(|| {
            let reason = format!("there is no label {} in rank {}", word.text, self.rank);
            word.mistake(reason, "labels belong to one rank; define it in this block")
        })
    }

    fn stuck(&self, stuck: &Stuck) -> WorkloadError {
        let Stuck::Circle(circle) = stuck else {
            return WorkloadError::whole("a rank has too many dependencies", "split the schedule");
        };
        let lines: Vec<_> = circle.iter().map(|node| self.lines[*node as usize]).collect();
        let shown: Vec<_> = lines.iter().take(8).map(|line| format!("line {line}")).collect();
        let more = if lines.len() > 8 { ", ..." } else { "" };
        let reason = format!(
            "{} operations of rank {} wait for each other in a circle: {}{more}",
            lines.len(),
            self.rank,
            shown.join(", ")
        );
        let line = lines.iter().min().copied().unwrap_or(1);
        WorkloadError::line(line, 1, reason, "remove one of their dependencies")
    }
}

#[cfg(test)]
mod tests;
