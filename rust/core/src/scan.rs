//! The one pass over a text: what each line is, and what becomes of it.

use std::ops::Range;

use memchr::memmem::Finder;

use crate::block::{Shape, Step};
use crate::fence::{Fences, Role};
use crate::line::{body, lines};
use crate::markers::{Comment, comment};
use crate::refs::{HookField, next_session_row};
use crate::scrub::{Scrub, Scrubber};
use crate::section::{Anchor, NO_HEADING, Section, Signs, names_session};
use crate::tally::Tally;
use crate::unit::{self, Membership, Units};

/// The state between two lines.
pub(crate) struct Scan<'s> {
    scrubber: &'s Scrubber,
    offset: u64,
    number: u64,
    after_blank: bool,
    fences: Fences,
    units: Units,
    section: Option<Section>,
    anchor: Option<Anchor>,
    /// Notes whose `Session Key` is selected, while no row says that they are another session's.
    keyed: Vec<Anchor>,
    /// Start of a note whose `Session ID` row names another session: its key says nothing then.
    strange: Option<u64>,
    tally: Tally,
    untraced: Vec<String>,
    quoting: Vec<usize>,
}

/// What the scan of a block has found ahead of the line that it is at.
struct Ahead<'b> {
    block: &'b [u8],
    opening: &'b Finder<'static>,
    comment: usize,
    session: usize,
}

/// A line and what the cheap searches say about it.
struct Line<'a> {
    bytes: &'a [u8],
    unit: unit::Line<'a>,
    /// It quotes a snippet.
    quotes: bool,
    /// It may hold a `Session ID` or `Session Key` row.
    may_name: bool,
}

impl<'s> Scan<'s> {
    /// The state before the first line.
    pub(crate) fn new(scrubber: &'s Scrubber) -> Self {
        Self {
            scrubber,
            offset: 0,
            number: 0,
            after_blank: true,
            fences: Fences::default(),
            units: Units::default(),
            section: None,
            anchor: None,
            keyed: Vec::new(),
            strange: None,
            tally: Tally::default(),
            untraced: Vec::new(),
            quoting: Vec::new(),
        }
    }

    /// Reads a block of whole lines; only the last of all may lack its terminator.
    pub(crate) fn read(&mut self, block: &[u8]) {
        let scrubber = self.scrubber;
        let mut quoting = std::mem::take(&mut self.quoting);
        quoting.clear();
        scrubber.quoting_lines(block, &mut quoting);
        let mut quotes = quoting.iter().copied().peekable();
        let mut ahead = Ahead::new(block, scrubber.comment_opening());
        let mut at = 0;
        for line in lines(block) {
            let end = at + line.len();
            let quotes = quotes.next_if_eq(&at).is_some();
            let has_comment = ahead.has_comment(at, end);
            let may_name = ahead.may_name(at, end);
            let is_marked = quotes || has_comment || may_name;
            if is_marked || !self.is_idle() || !self.pass(line) {
                self.step(line, quotes, has_comment, may_name);
            }
            at = end;
        }
        self.quoting = quoting;
    }

    /// Whether nothing that began above is waiting for the next line.
    fn is_idle(&self) -> bool {
        self.units.is_idle() && self.section.is_none()
    }

    /// The short way for a line that stays: no heading, and nothing waits for it or was found in it.
    /// False when it has to go the long way.
    fn pass(&mut self, line: &[u8]) -> bool {
        match line {
            [b'#' | 0xEF, ..] => return false,
            [b'\n'] | [b'\r', b'\n'] => {
                self.advance(line, true);
                return true;
            }
            [first, ..] if first.is_ascii_alphabetic() => self.fences.pass_plain(),
            _ => {
                let shape = Shape::of(line);
                if shape.is_blank() {
                    return false;
                }
                self.fences.step(&shape, self.offset)
            }
        };
        if self.after_blank && !self.is_below_heading() {
            let mark = self.tally.mark(self.offset);
            let level = NO_HEADING;
            self.anchor = Some(Anchor { mark, level });
        }
        self.tally.refused |= self.tally.history && is_highlight(line);
        self.advance(line, false);
        true
    }

    fn advance(&mut self, line: &[u8], blank: bool) {
        self.after_blank = blank;
        self.offset += line.len() as u64;
        self.number += 1;
    }

    fn step(&mut self, bytes: &[u8], quotes: bool, has_comment: bool, may_name: bool) {
        // A BOM is no part of the first line's text: the heading behind it is one.
        let visible = match bytes.strip_prefix(b"\xEF\xBB\xBF") {
            Some(visible) if self.offset == 0 => visible,
            _ => bytes,
        };
        let shape = Shape::of(visible);
        let line = Line {
            bytes,
            unit: unit::Line {
                span: self.offset..self.offset + bytes.len() as u64,
                shape,
                comment: if has_comment { comment(bytes) } else { None },
                role: self.fences.step(&shape, self.offset),
            },
            quotes,
            may_name,
        };
        self.note_key(&line);
        self.decide(&line);
        self.advance(bytes, shape.is_blank());
    }

    /// Decides on one line. Order: headings end sections, then marker, quotation, session.
    fn decide(&mut self, line: &Line<'_>) {
        let shape = &line.unit.shape;
        let heading = shape.heading().filter(|_| line.unit.role == Role::Outside);
        if let Some(level) = heading {
            self.resolve_keyed(level);
        }
        let section = self.step_section(line, heading);
        let anchor = self.anchor_at(line, heading);
        let keys = self.scrubber.entry_keys();
        let in_section = self.section.is_some();
        let membership = self
            .units
            .step(&line.unit, keys, in_section, &mut self.tally);
        // A run of lines that continues an entry is no beginning.
        if anchor.is_some() && !self.units.reach_back_of(self.offset) {
            self.anchor = anchor;
        }
        if membership == Membership::Doomed {
            return;
        }
        let goes = match section {
            Some(step) => self.remove_in_section(line, step),
            None => !shape.is_blank() && self.remove_by_text(line),
        };
        match membership {
            Membership::Below(markers) if goes => self.remove_markers(markers),
            Membership::Member if !goes && !shape.is_blank() => self.units.keep_member(),
            _ => {}
        }
        if !goes && !shape.is_blank() {
            self.keep(line);
        }
    }

    fn note_key(&mut self, line: &Line<'_>) {
        if let Some(Comment::Promotion(key)) = line.unit.comment {
            let key = String::from_utf8_lossy(key);
            if !self.scrubber.is_known(&key) {
                self.untraced.push(key.into_owned());
            }
        }
    }

    /// The tally before this line, if a note that a later row condemns could begin with it.
    fn anchor_at(&self, line: &Line<'_>, heading: Option<u8>) -> Option<Anchor> {
        let level = heading.unwrap_or(NO_HEADING);
        let is_run = self.after_blank && !line.unit.shape.is_blank() && !self.is_below_heading();
        (heading.is_some() || is_run).then(|| Anchor {
            mark: self.tally.mark(self.offset),
            level,
        })
    }

    fn is_below_heading(&self) -> bool {
        self.anchor.as_ref().is_some_and(|at| at.level < NO_HEADING)
    }

    /// What the line is to the section being removed; None when there is none, or it just ended.
    fn step_section(&mut self, line: &Line<'_>, heading: Option<u8>) -> Option<Step> {
        let section = self.section.as_mut()?;
        let row = line
            .may_name
            .then(|| self.scrubber.refs().hook_row(line.bytes));
        // A section that began inside a fenced block knows the headings of that block.
        let heading = match line.unit.role {
            Role::Inside(opened) if opened < section.start => line.unit.shape.heading(),
            _ => heading,
        };
        let signs = Signs {
            heading,
            names_session: line.may_name && names_session(line.bytes),
            is_strangers_row: row
                .flatten()
                .is_some_and(|row| row.field == HookField::Id && !row.selected),
        };
        let step = section.step(&line.unit.shape, signs);
        if step == Step::End {
            self.section = None;
            return None;
        }
        Some(step)
    }

    /// Removes a line of a section; false when it stays after all.
    fn remove_in_section(&mut self, line: &Line<'_>, step: Step) -> bool {
        let Some(section) = &self.section else {
            return false;
        };
        let span = line.unit.span.clone();
        match (step, &line.unit.role) {
            (Step::Blank, _) => return false,
            // Code that was opened above the section is closed below it, or all that follows is code.
            (_, Role::Closes(opened)) if *opened < section.start => return false,
            _ if section.is_item() => self.tally.cover(section.start..span.end),
            _ => self.tally.cover(span),
        }
        true
    }

    fn remove_markers(&mut self, markers: Range<u64>) {
        let line = self.tally.removed.pop();
        self.tally.cover(markers);
        if let Some(line) = line {
            self.tally.cover(line);
        }
    }

    /// Removes the line if it quotes a snippet, or with its section if it names a session.
    fn remove_by_text(&mut self, line: &Line<'_>) -> bool {
        if line.may_name && self.remove_note(line) {
            return true;
        }
        let span = line.unit.span.clone();
        if line.quotes {
            self.tally.cover(span);
            self.tally.lines += 1;
            if self.scrubber.snippets().only_shared(line.bytes) {
                self.tally.shared_lines.push(self.number + 1);
            }
            return true;
        }
        let shape = &line.unit.shape;
        let may_start = shape.heading().is_some() || (line.may_name && names_session(line.bytes));
        if !may_start || !self.scrubber.refs().named_in(line.bytes) {
            return false;
        }
        self.tally.entries += 1;
        self.section = Some(Section::starting(span.start, shape));
        self.tally.cover(span);
        true
    }

    /// V6: a bold `Session ID` row of a selected session removes its note from the heading on.
    fn remove_note(&mut self, line: &Line<'_>) -> bool {
        let row = self.scrubber.refs().hook_row(line.bytes);
        let (Some(row), Some(anchor)) = (row, self.anchor.clone()) else {
            return false;
        };
        match row.field {
            HookField::Key if row.selected && self.strange != Some(anchor.mark.start) => {
                self.keyed.push(anchor);
            }
            HookField::Id if row.selected && row.bold => {
                self.keyed
                    .retain(|note| note.mark.start < anchor.mark.start);
                self.retract(&anchor, line.unit.span.end);
                self.section = Some(Section::note(&anchor));
                return true;
            }
            _ => {}
        }
        false
    }

    /// Removes everything from the anchor to `end`, as one entry.
    fn retract(&mut self, anchor: &Anchor, end: u64) {
        self.tally.rewind(&anchor.mark);
        self.tally.entries += 1;
        self.tally.cover(anchor.mark.start..end);
    }

    /// Notes that end above a heading of this level, known by their key alone, go.
    fn resolve_keyed(&mut self, level: u8) {
        while let Some(note) = self.keyed.pop_if(|note| note.level >= level) {
            self.retract(&note, self.offset);
        }
    }

    /// Takes note of a line that stays.
    fn keep(&mut self, line: &Line<'_>) {
        let bytes = line.bytes;
        if line.may_name {
            let row = self.scrubber.refs().hook_row(bytes);
            if row.is_some_and(|row| row.field == HookField::Id && !row.selected) {
                self.keyed.clear();
                self.strange = self.anchor.as_ref().map(|note| note.mark.start);
            }
        }
        match bytes.first() {
            Some(b'#') => self.tally.history |= is_history(bytes),
            Some(b' ') => self.tally.refused |= self.tally.history && is_highlight(bytes),
            _ => {}
        }
    }

    /// Decides on what the end of the text decides.
    pub(crate) fn finish(mut self) -> Scrub {
        self.resolve_keyed(0);
        self.units.finish(&mut self.tally);
        Scrub {
            removed: self.tally.removed,
            entries: self.tally.entries,
            lines: self.tally.lines,
            shared_lines: self.tally.shared_lines,
            stacked: self.tally.stacked,
            untraced: self.untraced,
            history_refused: self.tally.refused,
            bytes: self.offset,
        }
    }
}

impl<'b> Ahead<'b> {
    fn new(block: &'b [u8], opening: &'b Finder<'static>) -> Self {
        Self {
            block,
            opening,
            comment: opening.find(block).unwrap_or(usize::MAX),
            session: next_session_row(block, 0).unwrap_or(usize::MAX),
        }
    }

    fn has_comment(&mut self, start: usize, end: usize) -> bool {
        if self.comment < start {
            let found = self.opening.find(&self.block[start..]);
            self.comment = found.map_or(usize::MAX, |at| start + at);
        }
        self.comment < end
    }

    fn may_name(&mut self, start: usize, end: usize) -> bool {
        if self.session < start {
            self.session = next_session_row(self.block, start).unwrap_or(usize::MAX);
        }
        self.session < end
    }
}

fn is_history(line: &[u8]) -> bool {
    body(line) == b"## Memory Consolidation History"
}

fn is_highlight(line: &[u8]) -> bool {
    line.starts_with(b"  - `+ ") || line.starts_with(b"  - `- ")
}
