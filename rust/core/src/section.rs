//! Sections that name a session: how far they reach.

use crate::block::{Block, Shape, Step};
use crate::refs::session_id_rows;
use crate::tally::Mark;

/// A level below that of every heading: a place that stands under no heading at all.
pub(crate) const NO_HEADING: u8 = 7;

/// A section that is being removed.
#[derive(Debug)]
pub(crate) struct Section {
    pub(crate) start: u64,
    extent: Extent,
}

/// Where a hook note would begin: its heading, or the run of lines under no heading.
#[derive(Debug, Clone)]
pub(crate) struct Anchor {
    pub(crate) mark: Mark,
    pub(crate) level: u8,
}

/// What a section's end is told by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Signs {
    /// Level of the heading that the line is, unless it is code.
    pub(crate) heading: Option<u8>,
    /// The line contains `Session ID:`.
    pub(crate) names_session: bool,
    /// The line is a metadata row for a session that is not selected.
    pub(crate) is_strangers_row: bool,
}

#[derive(Debug)]
enum Extent {
    /// To the next heading of this level or above, or the next `Session ID:`.
    Heading(u8),
    /// To the next heading or `Session ID:`.
    Text,
    /// The list item at this indentation, or to the next `Session ID:`.
    Item { indent: usize, block: Block },
    /// A hook note: to the next heading of this level or above.
    Note(u8),
}

impl Section {
    /// The section that begins with a heading or a line that contains `Session ID:`.
    pub(crate) fn starting(start: u64, line: &Shape<'_>) -> Self {
        let bullet = matches!(line.text, [b'-' | b'*' | b'+', ..]) && line.item().is_some();
        let extent = match (line.heading(), Block::begin(line, line.indent)) {
            (Some(level), _) => Extent::Heading(level),
            (None, Some(block @ Block::Item { .. })) if bullet => {
                let indent = line.indent;
                Extent::Item { indent, block }
            }
            _ => Extent::Text,
        };
        Self { start, extent }
    }

    /// The section of a hook note.
    pub(crate) fn note(anchor: &Anchor) -> Self {
        Self {
            start: anchor.mark.start,
            extent: Extent::Note(anchor.level),
        }
    }

    /// What a further line is to the section.
    pub(crate) fn step(&mut self, line: &Shape<'_>, signs: Signs) -> Step {
        let Signs {
            heading,
            names_session,
            is_strangers_row,
        } = signs;
        let ends = match &mut self.extent {
            Extent::Heading(own) => names_session || heading.is_some_and(|level| level <= *own),
            Extent::Text => names_session || heading.is_some(),
            Extent::Note(NO_HEADING) => is_strangers_row || heading.is_some(),
            Extent::Note(own) => heading.is_some_and(|level| level <= *own),
            Extent::Item { indent, block } => {
                if names_session || heading.is_some() {
                    return Step::End;
                }
                return item_step(*indent, block, line);
            }
        };
        if ends { Step::End } else { Step::Take }
    }

    /// Whether blank lines inside are only decided on by what follows them.
    pub(crate) fn is_item(&self) -> bool {
        matches!(self.extent, Extent::Item { .. })
    }
}

/// The CommonMark item, and as the host has it every line indented more than the bullet.
fn item_step(indent: usize, block: &mut Block, line: &Shape<'_>) -> Step {
    let after_blank = matches!(
        block,
        Block::Item {
            after_blank: true,
            ..
        }
    );
    let step = block.step(line);
    if step == Step::End && !after_blank && line.indent > indent {
        return Step::Take;
    }
    step
}

/// Whether the line contains `Session ID:`, in any case.
pub(crate) fn names_session(line: &[u8]) -> bool {
    session_id_rows(line).next().is_some()
}
