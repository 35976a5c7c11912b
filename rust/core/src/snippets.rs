//! Which lines quote a removed corpus line (naive stand-in until the text branch is merged).

use memchr::memmem;

use crate::line::lines;
use crate::normalise::{normalised, utf16_len};

/// A compiled set of snippets (texts of removed corpus lines).
#[derive(Debug)]
pub struct Snippets {
    /// Stored form, normalised form without label (24 units or more), shared.
    stored: Vec<(Vec<u8>, Option<Vec<u8>>, bool)>,
}

impl Snippets {
    /// Compiles `stored`; `shared[i]` says that snippet i also stands in a surviving session's corpus.
    pub fn build(stored: &[Vec<u8>], shared: &[bool]) -> Self {
        let flags = shared.iter().copied().chain(std::iter::repeat(false));
        let used = stored
            .iter()
            .zip(flags)
            .filter(|(text, _)| utf16_len(text) >= 12);
        let stored = used.map(|(text, shared)| {
            let form = (utf16_len(text) >= 24).then(|| {
                let form = normalised(text).into_owned();
                let bare = form
                    .strip_prefix(b"User: ")
                    .or(form.strip_prefix(b"Assistant: "));
                bare.filter(|bare| utf16_len(bare) >= 12)
                    .map(<[u8]>::to_vec)
                    .unwrap_or(form)
            });
            (text.clone(), form, shared)
        });
        Self {
            stored: stored.collect(),
        }
    }

    /// True when no text is a needle.
    pub fn is_empty(&self) -> bool {
        self.stored.is_empty()
    }

    /// Byte offset in `block` of each line that contains a snippet, ascending, pushed to `found`.
    pub fn matching_lines(&self, block: &[u8], found: &mut Vec<usize>) {
        let mut at = 0;
        for line in lines(block) {
            if self.matches(line) {
                found.push(at);
            }
            at += line.len();
        }
    }

    /// Whether one line contains a snippet.
    pub fn matches(&self, line: &[u8]) -> bool {
        self.sought(line).next().is_some()
    }

    /// True when the line matches and every snippet that matches it is shared.
    pub fn only_shared(&self, line: &[u8]) -> bool {
        self.matches(line) && self.sought(line).all(|shared| shared)
    }

    fn sought<'a>(&'a self, line: &'a [u8]) -> impl Iterator<Item = bool> + 'a {
        self.stored.iter().filter_map(move |(text, form, shared)| {
            let hit = memmem::find(line, text).is_some()
                || form.as_ref().is_some_and(|form| {
                    memmem::find(line, form).is_some()
                        || memmem::find(&normalised(line), form).is_some()
                });
            hit.then_some(*shared)
        })
    }
}
