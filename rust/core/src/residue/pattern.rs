//! The windows of a set of needles, and what is compared where an anchor stands.

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use super::anchor::{ANCHOR, Census};
use super::spelling::{Class, Window};

/// Bytes of a MAC that shingles keep.
pub(super) const TAG: usize = 8;

/// A window of one needle.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pattern {
    /// Index of the needle.
    pub(super) needle: u32,
    pub(super) class: Class,
    /// Bytes of the window.
    pub(super) length: u32,
    /// Offset of its anchor.
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
    pub(super) longest: usize,
}

impl Patterns {
    /// Windows of which the bytes are known, each with the index of its needle.
    pub(super) fn known(windows: &[(u32, Window)]) -> Self {
        let census = Census::of(windows.iter().map(|(_, window)| window.bytes.as_slice()));
        let mut patterns = Self::empty(None);
        for (needle, window) in windows {
            patterns.list.push(Pattern {
                needle: *needle,
                class: window.class,
                length: narrow(window.bytes.len()),
                anchor: narrow(census.best(&window.bytes)),
                at: patterns.bytes.len(),
            });
            patterns.bytes.extend_from_slice(&window.bytes);
            patterns.longest = patterns.longest.max(window.bytes.len());
        }
        patterns
    }

    /// No windows yet; those that will be added are known by their MAC under `key`.
    pub(super) fn hidden(key: Key) -> Self {
        Self::empty(Some(key))
    }

    /// Adds a window that is known by its MAC.
    pub(super) fn hide(&mut self, length: u8, anchor: u8, mac: [u8; TAG]) {
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

    fn empty(key: Option<Key>) -> Self {
        Self {
            list: Vec::new(),
            bytes: Vec::new(),
            key,
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

    /// The 8 bytes by which a pattern of a known set is found, 8 others of it as far as there are any, and how far those
    /// are from the anchor.
    pub(super) fn anchor_of(&self, pattern: &Pattern) -> (u64, u64, i32) {
        let (bytes, at) = (self.bytes_of(pattern), pattern.anchor as usize);
        // Eight bytes on, or fewer where the pattern ends, or back.
        let ahead = ANCHOR.min(bytes.len() - ANCHOR - at);
        let (beside, shift) = match i32::try_from(ahead) {
            Ok(shift) if shift > 0 => (at + ahead, shift),
            _ if at >= ANCHOR => (at - ANCHOR, -8),
            _ => (at, 0),
        };
        (word_at(bytes, at), word_at(bytes, beside), shift)
    }
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
