//! Where a Markdown block ends, line by line (V2).
//!
//! An entry is the CommonMark block that follows its marker. Two things are kept apart from CommonMark
//! on purpose. An unindented line right below a list item is a lazy continuation to a parser, but to
//! whoever wrote it a line of its own: it stays. And a list right below a paragraph, indented more than
//! it, holds the paragraph's details to a reader: it goes.

use crate::fence::Fence;
use crate::line::body;
use crate::markers;
use crate::normalise::{space_len, trim_end};

/// A line as the block rules see it: how far it is indented, and what stands there.
#[derive(Debug, Clone, Copy)]
pub struct Shape<'a> {
    /// Columns of white space before the text, a tab reaching to the next multiple of four.
    pub indent: usize,
    /// The line from its first character that is not white space, without terminator.
    pub text: &'a [u8],
}

/// The head of a list item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ItemHead {
    /// Bytes of the marker, without the blanks around it.
    pub width: usize,
    /// Column at which the item's content begins: a line indented as far is a child.
    pub content: usize,
    /// Bytes from the marker to the content.
    pub skip: usize,
    /// Whether such an item may end a paragraph above it (not empty; if numbered, number 1).
    pub interrupts: bool,
}

/// A block that is being read. Made by [`Block::begin`] from its first line, fed the others in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Block {
    /// A list item with its children.
    Item {
        /// Column of its content.
        content: usize,
        /// The line before was blank.
        after_blank: bool,
    },
    /// A paragraph (a table is one), with the details indented below it.
    Paragraph {
        /// Its own indentation.
        indent: usize,
        /// A detail has begun: only lines indented more than the paragraph still belong.
        nested: bool,
    },
    /// A fenced code block.
    Fenced(Fence),
    /// An indented code block.
    Indented {
        /// Column from which a line belongs.
        from: usize,
    },
    /// A block quote.
    Quote,
    /// An HTML block.
    Html(HtmlEnd),
    /// A block whose last line has been seen.
    Complete,
}

/// What ends an HTML block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HtmlEnd {
    /// The line that holds this text.
    Text(&'static [u8]),
    /// A blank line.
    Blank,
}

/// What a further line is to a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// It belongs.
    Take,
    /// A blank line, which belongs if a later line does.
    Blank,
    /// The block ended before it.
    End,
}

impl<'a> Shape<'a> {
    /// The shape of a line, with or without its terminator.
    pub fn of(line: &'a [u8]) -> Self {
        let mut text = body(line);
        let mut indent = 0;
        loop {
            let space = space_len(text);
            if space == 0 {
                return Self { indent, text };
            }
            indent = if text[0] == b'\t' {
                next_stop(indent)
            } else {
                indent + 1
            };
            text = &text[space..];
        }
    }

    /// Whether the line holds white space only.
    pub fn is_blank(&self) -> bool {
        self.text.is_empty()
    }

    /// Level of the ATX heading that the line is: up to six `#` at column 0, then white space.
    pub fn heading(&self) -> Option<u8> {
        let level = self.text.iter().take_while(|&&byte| byte == b'#').count();
        let is_heading = self.indent == 0 && (1..=6).contains(&level);
        (is_heading && space_len(&self.text[level..]) > 0).then_some(u8::try_from(level).ok()?)
    }

    /// Whether the line is a thematic break: three or more of `*`, `-` or `_` and blanks.
    pub fn is_break(&self) -> bool {
        let Some(&mark @ (b'*' | b'-' | b'_')) = self.text.first() else {
            return false;
        };
        let mut marks = 0;
        for &byte in self.text {
            match byte {
                b' ' | b'\t' | b'\r' => {}
                _ if byte == mark => marks += 1,
                _ => return false,
            }
        }
        marks >= 3
    }

    /// The head of a list item that the line begins with.
    pub fn item(&self) -> Option<ItemHead> {
        let digits = self.text.iter().take_while(|byte| byte.is_ascii_digit());
        let digits = digits.count();
        let width = match self.text.get(digits)? {
            b'-' | b'*' | b'+' if digits == 0 => 1,
            b'.' | b')' if (1..=9).contains(&digits) => digits + 1,
            _ => return None,
        };
        let after = &self.text[width..];
        let blanks = Self::of(after);
        if blanks.is_blank() {
            return Some(ItemHead {
                width,
                content: self.indent + width + 1,
                skip: self.text.len(),
                interrupts: false,
            });
        }
        if space_len(after) == 0 {
            return None;
        }
        let (gap, skip) = self.gap(width);
        Some(ItemHead {
            width,
            content: self.indent + width + gap,
            skip,
            interrupts: digits == 0 || self.text[..digits] == *b"1",
        })
    }

    /// Columns and bytes between a list marker and its content; five or more mean indented code.
    fn gap(&self, width: usize) -> (usize, usize) {
        let start = self.indent + width;
        let mut column = start;
        let mut skip = width;
        while let Some(byte @ (b' ' | b'\t')) = self.text.get(skip) {
            column = if *byte == b'\t' {
                next_stop(column)
            } else {
                column + 1
            };
            skip += 1;
        }
        match column - start {
            // White space that is no blank, such as a no-break space.
            0 => (1, width + space_len(&self.text[width..])),
            gap @ 1..=4 => (gap, skip),
            _ => (1, width + 1),
        }
    }

    /// What ends the HTML block that the line begins, if it begins one that may end a paragraph.
    fn html(&self) -> Option<HtmlEnd> {
        let tag = self.text.strip_prefix(b"<")?;
        if tag.starts_with(b"!--") {
            return Some(HtmlEnd::Text(b"-->"));
        }
        if tag.starts_with(b"?") {
            return Some(HtmlEnd::Text(b"?>"));
        }
        let name = tag.strip_prefix(b"/").unwrap_or(tag);
        let end = name.iter().position(|byte| !byte.is_ascii_alphanumeric());
        let (name, rest) = name.split_at(end.unwrap_or(name.len()));
        if !matches!(
            rest,
            [] | [b' ' | b'\t' | b'\r' | b'>', ..] | [b'/', b'>', ..]
        ) {
            return None;
        }
        let name = name.to_ascii_lowercase();
        let raw = RAW_ELEMENTS.iter().find(|(raw, _)| *raw == name);
        if let Some((_, closing)) = raw {
            return Some(HtmlEnd::Text(closing));
        }
        let is_block = BLOCK_ELEMENTS.contains(&name.as_slice());
        is_block.then_some(HtmlEnd::Blank)
    }

    /// Whether the line is a setext underline.
    fn is_underline(&self) -> bool {
        let text = trim_end(self.text);
        matches!(text, [mark @ (b'=' | b'-'), rest @ ..] if rest.iter().all(|byte| byte == mark))
    }

    /// Whether nothing may take the line into itself: a heading, a break, a comment of the host.
    fn stands_alone(&self) -> bool {
        self.heading().is_some() || self.is_break() || is_hosts(self.text)
    }

    /// Whether the line begins a block that ends a paragraph above it.
    fn interrupts(&self) -> bool {
        self.stands_alone()
            || self.text.starts_with(b">")
            || Fence::opening(self.text).is_some()
            || self.item().is_some_and(|item| item.interrupts)
            || self.html().is_some()
    }
}

impl Block {
    /// The block that begins with this line, which is not blank; `base` is the marker's indentation.
    ///
    /// None for what an entry never takes: a heading, a thematic break, a comment of the host.
    pub fn begin(line: &Shape<'_>, base: usize) -> Option<Self> {
        if line.stands_alone() {
            return None;
        }
        if let Some(item) = line.item() {
            let content = item.content;
            return Some(Self::Item {
                content,
                after_blank: false,
            });
        }
        if line.indent >= base + 4 {
            return Some(Self::Indented { from: base + 4 });
        }
        if let Some(fence) = Fence::opening(line.text) {
            return Some(Self::Fenced(fence));
        }
        if line.text.starts_with(b">") {
            return Some(Self::Quote);
        }
        if let Some(end) = line.html() {
            let is_whole = matches!(end, HtmlEnd::Text(end) if holds(line.text, end));
            return Some(if is_whole {
                Self::Complete
            } else {
                Self::Html(end)
            });
        }
        Some(Self::Paragraph {
            indent: line.indent,
            nested: false,
        })
    }

    /// What the next line is to this block.
    pub fn step(&mut self, line: &Shape<'_>) -> Step {
        if is_hosts(line.text) {
            return Step::End;
        }
        match self {
            Self::Item {
                content,
                after_blank,
            } => item_step(*content, after_blank, line),
            Self::Paragraph { indent, nested } => {
                let step = paragraph_step(*indent, nested, line);
                if step == Step::Take && !*nested && line.is_underline() {
                    *self = Self::Complete;
                }
                step
            }
            Self::Fenced(fence) => {
                if fence.is_closed_by(line.text) {
                    *self = Self::Complete;
                }
                Step::Take
            }
            Self::Indented { .. } if line.is_blank() => Step::Blank,
            Self::Indented { from } => take_if(line.indent >= *from),
            Self::Quote => {
                let is_lazy = !line.is_blank() && !line.interrupts();
                take_if(line.text.starts_with(b">") || is_lazy)
            }
            Self::Html(HtmlEnd::Blank) => take_if(!line.is_blank() && !line.stands_alone()),
            Self::Html(HtmlEnd::Text(end)) => {
                if holds(line.text, end) {
                    *self = Self::Complete;
                }
                Step::Take
            }
            Self::Complete => Step::End,
        }
    }
}

fn item_step(content: usize, after_blank: &mut bool, line: &Shape<'_>) -> Step {
    if line.is_blank() {
        *after_blank = true;
        return Step::Blank;
    }
    let was_blank = std::mem::replace(after_blank, false);
    if line.indent >= content {
        return Step::Take;
    }
    let is_sibling = line.stands_alone() || line.item().is_some();
    take_if(!was_blank && line.indent > 0 && !is_sibling)
}

fn paragraph_step(indent: usize, nested: &mut bool, line: &Shape<'_>) -> Step {
    if line.is_blank() || line.heading().is_some() {
        return Step::End;
    }
    if line.indent > indent {
        *nested |= line.interrupts();
        return Step::Take;
    }
    if *nested {
        return Step::End;
    }
    take_if(line.is_underline() || !line.interrupts())
}

fn take_if(belongs: bool) -> Step {
    if belongs { Step::Take } else { Step::End }
}

/// Whether the host wrote this line as a comment on a line of its own.
fn is_hosts(text: &[u8]) -> bool {
    text.starts_with(b"<!--") && markers::comment(text).is_some()
}

fn holds(text: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(text, part).is_some()
}

fn next_stop(column: usize) -> usize {
    column - column % 4 + 4
}

/// Elements whose content is raw text to its closing tag.
const RAW_ELEMENTS: [(&[u8], &[u8]); 4] = [
    (b"script", b"</script>"),
    (b"pre", b"</pre>"),
    (b"style", b"</style>"),
    (b"textarea", b"</textarea>"),
];

/// Elements that begin a block which a blank line ends (CommonMark 4.6, condition 6).
const BLOCK_ELEMENTS: [&[u8]; 24] = [
    b"address",
    b"article",
    b"aside",
    b"blockquote",
    b"center",
    b"dd",
    b"details",
    b"dialog",
    b"div",
    b"dl",
    b"dt",
    b"figure",
    b"footer",
    b"form",
    b"header",
    b"hr",
    b"li",
    b"main",
    b"ol",
    b"p",
    b"section",
    b"summary",
    b"table",
    b"ul",
];
