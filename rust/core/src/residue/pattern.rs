//! The windows of a set of needles, and what is compared where an anchor stands.

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use super::anchor::{ANCHOR, Census};
use super::spelling::{Class, Window};

/// Bytes of a MAC that shingles keep.
pub(super) const TAG: usize = 8;

/// With more grams, nearly every position passes the test of the engine, and looking at fewer of them gains nothing.
const MOST_GRAMS: usize = 1 << 20;

/// A window of one needle.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pattern {
    /// Index of the needle.
    pub(super) needle: u32,
    pub(super) class: Class,
    /// Bytes of the window.
    pub(super) length: u32,
    /// Offset of its anchor: of the first gram that it is found by.
    pub(super) anchor: u32,
    /// Where in [`Patterns::bytes`] its bytes or its MAC begin.
    at: usize,
}

/// Windows to look for, known as bytes or only as MACs.
#[derive(Debug, Clone)]
pub(super) struct Patterns {
    pub(super) list: Vec<Pattern>,
    bytes: Vec<u8>,
    key: Option<Key>,
    pub(super) grams: Grams,
    pub(super) longest: usize,
}

/// By which bytes patterns are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Grams {
    /// How far apart the positions are that are looked at; of each pattern as many grams, one byte apart, are known.
    pub(super) step: usize,
    /// The bytes of a little-endian word that belong to a gram.
    pub(super) mask: u64,
}

impl Grams {
    /// The anchors of hidden patterns: 8 bytes of each, of which one hash is known.
    const HIDDEN: Self = Self {
        step: 1,
        mask: u64::MAX,
    };

    /// The widest step for `count` patterns of `shortest` bytes or more, which is at least 8.
    fn of(count: usize, shortest: usize) -> Self {
        let widest = match shortest {
            ..11 => 2,
            11..15 => 4,
            _ => 8,
        };
        let mut step = widest;
        while step > 1 && count.saturating_mul(step) > MOST_GRAMS {
            step /= 2;
        }
        let fits = ANCHOR + step - 1 <= shortest;
        Self {
            step,
            mask: if fits { u64::MAX } else { u64::MAX >> 8 },
        }
    }

    /// Bytes of a gram.
    fn length(self) -> usize {
        ANCHOR - (self.mask.leading_zeros() / 8) as usize
    }

    /// Bytes that the grams of a pattern cover.
    fn region(self) -> usize {
        self.length() + self.step - 1
    }
}

impl Patterns {
    /// Windows of which the bytes are known, each with the index of its needle.
    pub(super) fn known(windows: &[(u32, Window)]) -> Self {
        let bytes = windows.iter().map(|(_, window)| window.bytes.as_slice());
        let census = Census::of(bytes.clone());
        let shortest = bytes.map(<[u8]>::len).min().unwrap_or(ANCHOR);
        let grams = Grams::of(windows.len(), shortest);
        let mut patterns = Self::empty(None, grams);
        for (needle, window) in windows {
            patterns.list.push(Pattern {
                needle: *needle,
                class: window.class,
                length: narrow(window.bytes.len()),
                anchor: narrow(census.best_region(&window.bytes, grams.region())),
                at: patterns.bytes.len(),
            });
            patterns.bytes.extend_from_slice(&window.bytes);
            patterns.longest = patterns.longest.max(window.bytes.len());
        }
        patterns
    }

    /// No windows yet; those that will be added are known by their MAC under `key`.
    pub(super) fn hidden(key: Key) -> Self {
        Self::empty(Some(key), Grams::HIDDEN)
    }

    /// Adds a window that is known by its MAC.
    pub(super) fn hide(&mut self, length: u16, anchor: u16, mac: [u8; TAG]) {
        self.list.push(Pattern {
            needle: narrow(self.list.len()),
            class: Class::Whole,
            length: u32::from(length),
            anchor: u32::from(anchor),
            at: self.bytes.len(),
        });
        self.bytes.extend_from_slice(&mac);
        self.longest = self.longest.max(usize::from(length));
    }

    fn empty(key: Option<Key>, grams: Grams) -> Self {
        Self {
            list: Vec::new(),
            bytes: Vec::new(),
            key,
            grams,
            longest: 0,
        }
    }

    /// Does `pattern` stand at `start` of `data`?
    pub(super) fn stands(&self, pattern: &Pattern, data: &[u8], start: usize) -> bool {
        let Some(found) = data.get(start..start + pattern.length as usize) else {
            return false;
        };
        match &self.key {
            None => found == self.bytes_of(pattern),
            Some(key) => key.mac(found) == self.bytes[pattern.at..pattern.at + TAG],
        }
    }

    /// Bytes of a pattern of a known set.
    pub(super) fn bytes_of(&self, pattern: &Pattern) -> &[u8] {
        &self.bytes[pattern.at..pattern.at + pattern.length as usize]
    }

    /// Every gram by which a pattern of a known set is found.
    pub(super) fn grams_of(&self, pattern: &Pattern) -> impl Iterator<Item = Gram> {
        let (bytes, first) = (self.bytes_of(pattern), pattern.anchor as usize);
        let Grams { step, mask } = self.grams;
        (first..first + step).map(move |at| {
            let beside_at = beside(bytes.len(), at);
            Gram {
                word: padded_word(bytes, at) & mask,
                at: narrow(at),
                beside: word_at(bytes, beside_at),
                beside_at: narrow(beside_at),
            }
        })
    }
}

/// Bytes of a pattern by which it is found, and 8 others of it as far as there are any, with their offsets.
pub(super) struct Gram {
    pub(super) word: u64,
    pub(super) at: u32,
    pub(super) beside: u64,
    pub(super) beside_at: u32,
}

/// Where in `length` bytes (8 or more) there are 8 that share as few as possible with the gram at `at`.
fn beside(length: usize, at: usize) -> usize {
    let ahead = (length - ANCHOR).saturating_sub(at).min(ANCHOR);
    let back = at.min(ANCHOR);
    if ahead >= back { at + ahead } else { at - back }
}

/// The 8 bytes at `at`, with zeros for those behind the end.
#[inline]
pub(super) fn padded_word(bytes: &[u8], at: usize) -> u64 {
    let rest = bytes.get(at..).unwrap_or_default();
    let mut word = [0; ANCHOR];
    let length = rest.len().min(ANCHOR);
    word[..length].copy_from_slice(&rest[..length]);
    u64::from_le_bytes(word)
}

/// The 8 bytes at `at`; 0 where there are fewer.
#[inline]
pub(super) fn word_at(bytes: &[u8], at: usize) -> u64 {
    let word = bytes.get(at..).and_then(<[u8]>::first_chunk::<ANCHOR>);
    word.map_or(0, |word| u64::from_le_bytes(*word))
}

/// Lengths and numbers of windows: a set of more than 4 GB could not be held anyway.
pub(super) fn narrow(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// A key of shingles.
#[derive(Debug, Clone)]
pub(super) struct Key {
    mac: Hmac<Sha256>,
}

impl Key {
    pub(super) fn new(key: &[u8]) -> Self {
        // Padded, or hashed, to one block as HMAC prescribes, so that a key of any length is one.
        let mut block = [0; 64];
        if key.len() > block.len() {
            block[..32].copy_from_slice(&Sha256::digest(key));
        } else {
            block[..key.len()].copy_from_slice(key);
        }
        Self {
            mac: Hmac::new(&block.into()),
        }
    }

    /// First 8 bytes of HMAC-SHA256.
    pub(super) fn mac(&self, window: &[u8]) -> [u8; TAG] {
        let mut tag = [0; TAG];
        tag.copy_from_slice(&self.full(window)[..TAG]);
        tag
    }

    /// The hash of anchors that belongs to this key.
    pub(super) fn hash(&self) -> Hash {
        let derived = self.full(b"cenotaph residue anchor");
        Hash {
            factor: word_at(&derived, 0) | 1,
        }
    }

    fn full(&self, message: &[u8]) -> Vec<u8> {
        let mac = self.mac.clone().chain_update(message);
        mac.finalize().into_bytes().to_vec()
    }
}

/// Multiply-shift: the upper bits of the product depend on all bytes of an anchor.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hash {
    factor: u64,
}

impl Hash {
    /// For sets whose bytes are known, where the hash hides nothing.
    pub(super) const OPEN: Self = Self {
        factor: 0xD6E8_FEB8_6659_FD93,
    };

    /// The product; its upper bits are the hash.
    #[inline]
    pub(super) fn of(self, word: u64) -> u64 {
        word.wrapping_mul(self.factor)
    }

    /// The upper 24 bits.
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "24 bits are left")]
    pub(super) fn tag(self, word: u64) -> u32 {
        (self.of(word) >> 40) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grams_of_a_pattern_lie_inside_it() {
        for shortest in ANCHOR..40 {
            for count in [0, 1, MOST_GRAMS / 8, MOST_GRAMS / 4, MOST_GRAMS * 2] {
                let grams = Grams::of(count, shortest);
                assert!(grams.region() <= shortest, "{count} of {shortest} bytes");
                assert!([1, 2, 4, 8].contains(&grams.step));
                assert!(grams.length() >= 7);
            }
        }
        assert_eq!(Grams::of(1, 16).step, 8);
        assert_eq!(Grams::of(1, 12).step, 4);
        assert_eq!(Grams::of(MOST_GRAMS * 2, 16).step, 1);
    }

    #[test]
    fn other_bytes_of_a_pattern_lie_inside_it() {
        for length in ANCHOR..40 {
            for at in 0..=length - 7 {
                let beside = beside(length, at);
                assert!(beside + ANCHOR <= length && beside.abs_diff(at) <= ANCHOR);
            }
        }
    }
}
