//! A compiled set of needles.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;
use std::sync::OnceLock;

use super::engine::Engine;
use super::pattern::{Key, Pattern, Patterns, narrow};
use super::shingle::{RECORD, Shingle};
use super::spelling::{self, Class, Window};
use super::stream::Scan;
use super::wire::{Message, parts};
use super::{Needle, naive};
use crate::Result;

/// Needles in all their spellings, ready to be looked for.
#[derive(Debug)]
pub struct Needles {
    message: Message,
    count: usize,
    /// What a hidden set was made from, read.
    shingles: Vec<Shingle>,
    compiled: OnceLock<Compiled>,
}

/// What a search needs. It is made when the first one begins: most sets are only passed on.
#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) patterns: Patterns,
    pub(super) engine: Engine,
}

/// An occurrence of a window of a needle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hit {
    /// Where it begins.
    pub offset: u64,
    /// Bytes of the window.
    pub length: u32,
    /// Which needle: its place in the set, of shingles that of the shingle.
    pub needle: u32,
    /// Where such a window counts.
    pub class: Class,
}

impl Hit {
    pub(super) fn new(offset: u64, pattern: &Pattern) -> Self {
        Self {
            offset,
            length: pattern.length,
            needle: pattern.needle,
            class: pattern.class,
        }
    }
}

impl Needles {
    /// Compiles needles, each once. Those that are too short to be looked for are left out: `len` does not count them.
    pub fn new(needles: Vec<Needle>) -> Self {
        let mut known = BTreeSet::new();
        let mut distinct = needles;
        distinct.retain(|needle| spelling::is_searchable(needle) && known.insert(parts(needle)));
        drop(known);
        Self {
            count: distinct.len(),
            message: Message::Known(distinct),
            shingles: Vec::new(),
            compiled: OnceLock::new(),
        }
    }

    pub(super) fn compiled(&self) -> &Compiled {
        self.compiled.get_or_init(|| match &self.message {
            Message::Known(needles) => Compiled::known(needles),
            Message::Hidden { key, .. } => Compiled::hidden(key, &self.shingles),
        })
    }

    /// The set that [`shingles`](Self::shingles) made, under the same key. It finds their windows exactly like the set it
    /// was made from, only that texts are compared by 8 bytes of a MAC.
    ///
    /// # Errors
    /// [`Error::Refused`](crate::Error::Refused) when the shingles are damaged.
    pub fn from_shingles<S: AsRef<[u8]>>(shingles: &[S], key: &[u8]) -> Result<Self> {
        let mut distinct = BTreeSet::new();
        for bytes in shingles {
            distinct.extend(Shingle::read_all(bytes.as_ref())?);
        }
        let mut records = Vec::new();
        for shingle in &distinct {
            shingle.write(&mut records);
        }
        Ok(Self {
            count: distinct.len(),
            message: Message::Hidden {
                key: key.to_vec(),
                shingles: records,
            },
            shingles: distinct.into_iter().collect(),
            compiled: OnceLock::new(),
        })
    }

    /// The set without the needles whose mark is set, which are numbered as in [`Hit::needle`].
    ///
    /// # Errors
    /// Those of [`from_shingles`](Self::from_shingles).
    pub fn without(&self, marked: &[bool]) -> Result<Self> {
        let rest = marked.iter().map(|mark| !mark);
        match &self.message {
            Message::Known(needles) => {
                let pairs = needles.iter().zip(rest).filter(|(_, stays)| *stays);
                Ok(Self::new(pairs.map(|(needle, _)| needle.clone()).collect()))
            }
            Message::Hidden { key, shingles } => {
                let pairs = shingles
                    .chunks(RECORD)
                    .zip(rest)
                    .filter(|(_, stays)| *stays);
                let kept: Vec<&[u8]> = pairs.map(|(record, _)| record).collect();
                Self::from_shingles(&kept, key)
            }
        }
    }

    /// Number of needles; of a set made from shingles, that of the shingles.
    pub fn len(&self) -> usize {
        self.count
    }

    /// True when there is nothing to find.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// What a receipt keeps instead of the needles: records of 16 bytes back to back, sorted, so that their order tells
    /// nothing. A set that was made from shingles gives them back, whatever the key.
    ///
    /// There is one for each spelling of a text as a whole, raw needle and embedding; terms and fragments have none. A
    /// record shows how the window is spelled, its length, the place of 8 bytes in it, 24 bits of a keyed hash of those and
    /// 8 bytes of HMAC-SHA256 of the window. Without the key it tells the length, and whether two windows share their 8
    /// bytes. The hash of the 8 bytes is fast, not strong: whoever guesses some of them right can find its parameters (not
    /// the key) and test further guesses. Whoever has the key can test any guess of a whole window, which is what it is
    /// for.
    pub fn shingles(&self, key: &[u8]) -> Vec<u8> {
        match &self.message {
            Message::Hidden { shingles, .. } => shingles.clone(),
            Message::Known(needles) => {
                let mut records = Vec::new();
                for shingle in Shingle::all_of(&windows(needles), &Key::new(key)) {
                    shingle.write(&mut records);
                }
                records
            }
        }
    }

    /// The set as bytes, for a pipe to a process of the same build. They hold the needles, or the key.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.message.to_bytes()
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote.
    ///
    /// # Errors
    /// [`Error::Refused`](crate::Error::Refused) when the bytes are damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        match Message::from_bytes(bytes)? {
            Message::Known(needles) => Ok(Self::new(needles)),
            Message::Hidden { key, shingles } => Self::from_shingles(&[shingles], &key),
        }
    }

    /// Every occurrence in `data`, sorted.
    pub fn hits_in(&self, data: &[u8]) -> Vec<Hit> {
        let mut hits = Vec::new();
        let Compiled { patterns, engine } = self.compiled();
        engine.scan(patterns, data, 0, &mut |start, pattern| {
            hits.push(Hit::new(start as u64, pattern));
        });
        hits.sort_unstable();
        hits
    }

    /// Every occurrence in a stream that is read in steps of `step` bytes, sorted.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) with the name `path`, [`Error::Interrupted`](crate::Error::Interrupted).
    pub fn hits_from(&self, reader: &mut dyn Read, step: usize, path: &Path) -> Result<Vec<Hit>> {
        let (mut hits, mut buffer) = (Vec::new(), Vec::new());
        let mut scan = Scan::with_step(self, &mut buffer, 0, step);
        let mut report = |start, pattern: &Pattern| hits.push(Hit::new(start, pattern));
        scan.through(reader, path, &mut report)?;
        hits.sort_unstable();
        Ok(hits)
    }

    /// What the engine must answer for a set of known needles, by the obvious search.
    pub fn naive_hits_in(&self, data: &[u8]) -> Vec<Hit> {
        let mut hits = Vec::new();
        if let Message::Known(needles) = &self.message {
            for (needle, window) in windows(needles) {
                hits.extend(naive::starts(data, &window.bytes).map(|start| Hit {
                    offset: start as u64,
                    length: narrow(window.bytes.len()),
                    needle,
                    class: window.class,
                }));
            }
        }
        hits.sort_unstable();
        hits
    }
}

impl Compiled {
    fn known(needles: &[Needle]) -> Self {
        let patterns = Patterns::known(&windows(needles));
        let engine = Engine::known(&patterns);
        Self { patterns, engine }
    }

    fn hidden(key: &[u8], shingles: &[Shingle]) -> Self {
        let secret = Key::new(key);
        let hash = secret.hash();
        let mut patterns = Patterns::hidden(secret);
        for shingle in shingles {
            patterns.hide(shingle.length, shingle.anchor, shingle.mac);
        }
        let tags = shingles.iter().map(|shingle| shingle.tag);
        let engine = Engine::hidden(hash, &patterns, tags);
        Self { patterns, engine }
    }
}

fn windows(needles: &[Needle]) -> Vec<(u32, Window)> {
    let numbered = needles.iter().enumerate();
    numbered
        .flat_map(|(needle, content)| {
            let windows = spelling::windows(content).into_iter();
            windows.map(move |window| (narrow(needle), window))
        })
        .collect()
}
