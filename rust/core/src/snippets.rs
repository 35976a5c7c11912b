//! Which lines quote a removed corpus line, and whether somebody who stays said the same.
//!
//! A needle is a text whose presence in a line condemns the line. Every snippet of 12 UTF-16 units or
//! more is a needle as it is stored (V4). One of 24 or more, label included, is also sought in its
//! normalised form without its label (V3). That form is a needle on the line as it stands, because
//! nearly every line is its own normalised form, and on the normalised form of the lines that are not.
//! The labelled form needs no needle of its own: a line that holds it holds the unlabelled one.
//!
//! A snippet that happens to contain a backslash escape is sought twice, as Markdown would show it and
//! as it was said: `C:\*x` is quoted as `C:\\\*x` by whoever escapes properly, as `C:\*x` by the rest.

use std::borrow::Cow;

use memchr::{memchr, memrchr};

use crate::normalise::{composed, next_unusual, normalised, utf16_len};

use self::gram::Gram;

pub mod gram;
pub mod naive;

/// UTF-16 units below which a text is never a needle.
pub(crate) const MINIMUM: usize = 12;

/// UTF-16 units of a stored snippet, label included, from which its other forms count.
const VARIANT_MINIMUM: usize = 24;

/// What the corpus writes before the words of a message.
const LABELS: [&[u8]; 2] = [b"User: ", b"Assistant: "];

/// A compiled set of snippets (texts of removed corpus lines).
#[derive(Debug)]
pub struct Snippets {
    all: Needles,
    shared: Shared,
}

/// What `only_shared` rests on.
#[derive(Debug)]
enum Shared {
    None,
    All,
    /// Some are: the needles of those that are not.
    AllBut(Box<Needles>),
}

/// One engine for lines as they stand, one for normalised lines.
#[derive(Debug)]
struct Needles {
    raw: Gram,
    normal: Gram,
}

impl Snippets {
    /// Compiles `stored`: snippets as they stand in the corpus (label included, trimmed).
    ///
    /// Those under 12 UTF-16 units are ignored. `shared[i]` says that snippet i also stands in a
    /// surviving session's corpus (V20); a missing flag means that it does not.
    pub fn build(stored: &[Vec<u8>], shared: &[bool]) -> Self {
        let flags = || shared.iter().copied().chain(std::iter::repeat(false));
        let is_needle = |text: &[u8]| utf16_len(text) >= MINIMUM && !text.contains(&b'\n');
        let used: Vec<(&[u8], bool)> = stored
            .iter()
            .map(Vec::as_slice)
            .zip(flags())
            .filter(|(text, _)| is_needle(text))
            .collect();
        let count = used.iter().filter(|(_, shared)| *shared).count();
        let shared = if count == 0 {
            Shared::None
        } else if count == used.len() {
            Shared::All
        } else {
            let unshared = used.iter().filter(|(_, shared)| !shared);
            Shared::AllBut(Box::new(Needles::build(unshared.map(|(text, _)| *text))))
        };
        Self {
            all: Needles::build(used.iter().map(|(text, _)| *text)),
            shared,
        }
    }

    /// True when no text is a needle.
    pub fn is_empty(&self) -> bool {
        self.all.raw.is_empty()
    }

    /// Lines of `block` (whole lines) that contain a snippet: the byte offset of each line's start in
    /// `block`, ascending, pushed to `found`.
    pub fn matching_lines(&self, block: &[u8], found: &mut Vec<usize>) {
        self.all.matching_lines(block, found);
    }

    /// Whether one line (with or without terminator) contains a snippet.
    pub fn matches(&self, line: &[u8]) -> bool {
        self.all.matches(line)
    }

    /// True when the line matches and every snippet that matches it, in any form, is shared.
    pub fn only_shared(&self, line: &[u8]) -> bool {
        match &self.shared {
            Shared::None => false,
            Shared::All => self.all.matches(line),
            Shared::AllBut(unshared) => self.all.matches(line) && !unshared.matches(line),
        }
    }
}

impl Needles {
    fn build<'a>(stored: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut raw: Vec<Cow<'a, [u8]>> = Vec::new();
        let mut normal = Vec::new();
        for text in stored {
            let before = normal.len();
            if utf16_len(text) >= VARIANT_MINIMUM {
                variants(text, &mut normal);
            }
            // A plain text ends with its own unlabelled form: the form finds all that it would.
            if !normal[before..].iter().any(|form| text.ends_with(form)) {
                raw.push(Cow::Borrowed(text));
            }
        }
        let normal_engine = Gram::build(&normal);
        raw.append(&mut normal);
        Self {
            raw: Gram::build(&raw),
            normal: normal_engine,
        }
    }

    fn matching_lines(&self, block: &[u8], found: &mut Vec<usize>) {
        let first = found.len();
        self.raw.matching_lines(block, found);
        let known = found.len();
        if self.normal.is_empty() {
            return;
        }
        let mut at = 0;
        while let Some(unusual) = next_unusual(block, at) {
            let start = memrchr(b'\n', &block[at..unusual]).map_or(at, |newline| at + newline + 1);
            at = memchr(b'\n', &block[unusual..]).map_or(block.len(), |n| unusual + n + 1);
            let is_new = found[first..known].binary_search(&start).is_err();
            if is_new && self.matches_normalised(&block[start..at]) {
                found.push(start);
            }
        }
        if found.len() > known {
            found[first..].sort_unstable();
        }
    }

    fn matches(&self, line: &[u8]) -> bool {
        self.raw.is_in(line) || self.matches_normalised(line)
    }

    /// Answers for lines that normalisation changes; for the others `raw` has already answered.
    fn matches_normalised(&self, line: &[u8]) -> bool {
        if self.normal.is_empty() {
            return false;
        }
        match normalised(line) {
            Cow::Borrowed(_) => false,
            Cow::Owned(text) => self.normal.is_in(&text),
        }
    }
}

/// Pushes the forms of V3 of a stored text, each without its label unless that leaves too little.
fn variants<'a>(text: &'a [u8], forms: &mut Vec<Cow<'a, [u8]>>) {
    let shown = normalised(text);
    let said = memchr(b'\\', text).map(|_| composed(text));
    let said = said.filter(|said| *said != shown);
    for form in [Some(shown), said].into_iter().flatten() {
        let form = without_label(form);
        if utf16_len(&form) >= MINIMUM {
            forms.push(form);
        }
    }
}

fn without_label(form: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    let label = LABELS.iter().find(|label| form.starts_with(label));
    let length = label.map_or(0, |label| label.len());
    if length == 0 || utf16_len(&form[length..]) < MINIMUM {
        return form;
    }
    match form {
        Cow::Borrowed(text) => Cow::Borrowed(&text[length..]),
        Cow::Owned(mut text) => {
            text.drain(..length);
            Cow::Owned(text)
        }
    }
}
