//! The entries of a memory file: who labels them, and a hash of their bytes. A certificate compares them before and after.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::block::Shape;
use crate::fence::Fences;
use crate::line::{LineReader, lines};
use crate::markers::{Comment, comment};
use crate::tally::Tally;
use crate::unit::{self, Membership, Units};

/// One entry with its markers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Keys of its markers, from above.
    pub keys: Vec<String>,
    /// SHA-256 of markers and block, without blank lines.
    pub hash: [u8; 32],
}

/// The entries of the file at `path`, in order.
pub fn entries_of(path: &Path) -> io::Result<Vec<Entry>> {
    entries(File::open(path)?)
}

/// The entries of a text, in order. Memory is bounded by its longest line and the number of entries.
pub fn entries(source: impl Read) -> io::Result<Vec<Entry>> {
    let mut reader = LineReader::new(source);
    let mut listing = Listing::default();
    while let Some(block) = reader.next_block()? {
        for line in lines(block) {
            listing.read(line);
        }
    }
    listing.close();
    Ok(listing.found)
}

#[derive(Default)]
struct Listing {
    offset: u64,
    fences: Fences,
    units: Units,
    tally: Tally,
    open: Option<Open>,
    found: Vec<Entry>,
}

#[derive(Default)]
struct Open {
    keys: Vec<String>,
    hash: Sha256,
    has_block: bool,
}

impl Listing {
    fn read(&mut self, bytes: &[u8]) {
        let visible = match bytes.strip_prefix(b"\xEF\xBB\xBF") {
            Some(visible) if self.offset == 0 => visible,
            _ => bytes,
        };
        let shape = Shape::of(visible);
        let line = unit::Line {
            span: self.offset..self.offset + bytes.len() as u64,
            shape,
            comment: comment(bytes),
            role: self.fences.step(&shape, self.offset),
        };
        self.offset += bytes.len() as u64;
        let membership = self
            .units
            .step(&line, &HashSet::new(), false, &mut self.tally);
        match (&line.comment, membership) {
            (Some(Comment::Promotion(key)), _) => self.mark(key, visible),
            (_, Membership::Member) if !shape.is_blank() => self.extend(visible),
            (None, Membership::Outside) if !shape.is_blank() => self.close(),
            _ => {}
        }
    }

    fn mark(&mut self, key: &[u8], line: &[u8]) {
        if self.open.as_ref().is_some_and(|open| open.has_block) {
            self.close();
        }
        let open = self.open.get_or_insert_default();
        open.keys.push(String::from_utf8_lossy(key).into_owned());
        open.hash.update(line);
    }

    fn extend(&mut self, line: &[u8]) {
        if let Some(open) = &mut self.open {
            open.has_block = true;
            open.hash.update(line);
        }
    }

    /// Markers that label nothing are no entry.
    fn close(&mut self) {
        if let Some(open) = self.open.take().filter(|open| open.has_block) {
            self.found.push(Entry {
                keys: open.keys,
                hash: open.hash.finalize().into(),
            });
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn keys(text: &str) -> Vec<Vec<String>> {
        let found = entries(text.as_bytes()).unwrap();
        found.into_iter().map(|entry| entry.keys).collect()
    }

    fn marker(key: &str) -> String {
        format!("<!-- openclaw-memory-promotion:{key} -->\n")
    }

    #[test]
    fn each_unit_is_an_entry_with_all_its_keys() {
        let text = format!(
            "# Notes\n{}{}- a\n  b\n- stranger\n\n{}\n- c\n{}",
            marker("x"),
            marker("y"),
            marker("z"),
            marker("alone")
        );
        assert_eq!(keys(&text), [vec!["x", "y"], vec!["z"]]);
    }

    #[test]
    fn the_hash_is_that_of_its_own_bytes() {
        let one = format!("{}- a\n  b\n- other\n", marker("x"));
        let same = format!("# Heading\n\n{}- a\n  b\n\ntext\n", marker("x"));
        let changed = format!("{}- a\n  c\n- other\n", marker("x"));
        let hash = |text: &str| entries(text.as_bytes()).unwrap()[0].hash;
        assert_eq!(hash(&one), hash(&same));
        assert_ne!(hash(&one), hash(&changed));
    }
}
