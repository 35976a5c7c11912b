//! Entries: markers and the block that they label are one unit (V1).

use std::collections::HashSet;
use std::ops::Range;

use crate::block::{Block, Shape, Step};
use crate::fence::Role;
use crate::markers::Comment;
use crate::tally::Tally;

/// What unit recognition needs to know of a line.
#[derive(Debug, Clone)]
pub(crate) struct Line<'a> {
    /// Where it lies in the text, terminator included.
    pub(crate) span: Range<u64>,
    pub(crate) shape: Shape<'a>,
    pub(crate) comment: Option<Comment<'a>>,
    pub(crate) role: Role,
}

/// What a line is to the units of its text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Membership {
    /// In no block of a unit.
    Outside,
    /// In no block, right below markers that label nothing and are not selected; they lie here. If this
    /// line goes they would come to label what follows.
    Below(Range<u64>),
    /// In the block of a unit that is not selected.
    Member,
    /// Part of a selected unit, and already removed.
    Doomed,
}

/// Recognises units line by line.
#[derive(Debug, Default)]
pub(crate) struct Units {
    open: Option<Unit>,
    /// Start of the line before, if that is a lineage comment in no unit.
    lineage: Option<u64>,
}

#[derive(Debug)]
struct Unit {
    start: u64,
    /// End of the last marker or lineage line above the block.
    head_end: u64,
    /// Indentation of the first marker.
    base: usize,
    selected: bool,
    /// The markers stand inside a fenced block, whose end is not theirs.
    enclosed: bool,
    /// Keys that are not selected, until one is.
    unselected: Vec<String>,
    block: Option<Block>,
    /// End of the last line of the block.
    taken: u64,
    /// A line of the block stays.
    kept: bool,
}

impl Units {
    /// Whether the next line could be part of a unit, whatever it is.
    pub(crate) fn is_idle(&self) -> bool {
        self.open.is_none() && self.lineage.is_none()
    }

    /// Whether the unit being read, if there is one, began before byte `start`.
    pub(crate) fn reach_back_of(&self, start: u64) -> bool {
        self.open.as_ref().is_some_and(|unit| unit.start < start)
    }

    /// Notes that the line just reported as a member stays.
    pub(crate) fn keep_member(&mut self) {
        if let Some(unit) = &mut self.open {
            unit.kept = true;
        }
    }

    /// Takes in the next line. `keys` are the selected ones; nothing is counted while `in_section`,
    /// a section that goes as a whole.
    pub(crate) fn step(
        &mut self,
        line: &Line<'_>,
        keys: &HashSet<String>,
        in_section: bool,
        tally: &mut Tally,
    ) -> Membership {
        let lineage = self.lineage.take();
        match line.comment {
            Some(Comment::Promotion(key)) => {
                let key = String::from_utf8_lossy(key);
                let selected = keys.contains(&*key);
                let key = (!selected).then(|| key.into_owned());
                let unit = self.head(line, lineage, tally);
                unit.add_marker(line.span.end, key, in_section, tally)
            }
            Some(Comment::Lineage(_)) => self.lineage_line(line, tally),
            _ => self.other_line(line, tally),
        }
    }

    /// Ends the last unit at the end of the text.
    pub(crate) fn finish(&mut self, tally: &mut Tally) {
        if let Some(unit) = self.open.take() {
            unit.close(tally);
        }
    }

    /// The unit whose head this marker line begins or continues.
    fn head(&mut self, line: &Line<'_>, lineage: Option<u64>, tally: &mut Tally) -> &mut Unit {
        if self.open.as_ref().is_some_and(|unit| unit.block.is_some()) {
            self.finish(tally);
        }
        self.open.get_or_insert_with(|| Unit {
            start: lineage.unwrap_or(line.span.start),
            head_end: line.span.end,
            base: line.shape.indent,
            selected: false,
            enclosed: matches!(line.role, Role::Inside(_)),
            unselected: Vec::new(),
            block: None,
            taken: 0,
            kept: false,
        })
    }

    fn lineage_line(&mut self, line: &Line<'_>, tally: &mut Tally) -> Membership {
        match &mut self.open {
            Some(unit) if unit.block.is_none() => unit.extend_head(line.span.end, tally),
            _ => {
                self.finish(tally);
                self.lineage = Some(line.span.start);
                Membership::Outside
            }
        }
    }

    fn other_line(&mut self, line: &Line<'_>, tally: &mut Tally) -> Membership {
        let Some(unit) = &mut self.open else {
            return Membership::Outside;
        };
        match unit.step(line) {
            Step::Take if unit.selected => {
                tally.cover(unit.start..line.span.end);
                Membership::Doomed
            }
            Step::Take => Membership::Member,
            Step::Blank => Membership::Outside,
            Step::End => {
                let labels_nothing = unit.block.is_none() && !unit.selected;
                let head = unit.start..unit.head_end;
                self.finish(tally);
                if labels_nothing {
                    Membership::Below(head)
                } else {
                    Membership::Outside
                }
            }
        }
    }
}

impl Unit {
    /// `key` is None for a selected one.
    fn add_marker(
        &mut self,
        end: u64,
        key: Option<String>,
        in_section: bool,
        tally: &mut Tally,
    ) -> Membership {
        self.selected |= key.is_none();
        if !in_section {
            tally.entries += u64::from(key.is_none());
            self.unselected.extend(key);
        }
        if self.selected {
            // An entry that is stacked with a selected one goes too, and is counted.
            tally.entries += self.unselected.len() as u64;
            tally.stacked.append(&mut self.unselected);
        }
        self.extend_head(end, tally)
    }

    fn extend_head(&mut self, end: u64, tally: &mut Tally) -> Membership {
        self.head_end = end;
        if !self.selected {
            return Membership::Outside;
        }
        tally.cover(self.start..end);
        Membership::Doomed
    }

    fn step(&mut self, line: &Line<'_>) -> Step {
        let step = match &mut self.block {
            None if line.shape.is_blank() => return Step::Blank,
            None => {
                let is_end = self.enclosed && matches!(line.role, Role::Closes(_));
                self.block = Block::begin(&line.shape, self.base).filter(|_| !is_end);
                match self.block {
                    Some(_) => Step::Take,
                    None => Step::End,
                }
            }
            Some(block) => {
                let is_child =
                    matches!(block, Block::Item { content, .. } if line.shape.indent >= *content);
                let is_end = self.enclosed && matches!(line.role, Role::Closes(_)) && !is_child;
                if is_end {
                    Step::End
                } else {
                    block.step(&line.shape)
                }
            }
        };
        if step == Step::Take {
            self.taken = line.span.end;
        }
        step
    }

    /// Markers that are left without any text go with it, lest they label what comes next.
    fn close(self, tally: &mut Tally) {
        if self.block.is_some() && !self.selected && !self.kept {
            tally.cover(self.start..self.taken);
        }
    }
}
