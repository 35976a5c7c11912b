//! What a receipt keeps of needles: windows as keyed hashes.
//!
//! A record has 16 bytes: how the window is spelled (1), its length (2), the offset of its anchor (2), the lower 24 bits of
//! the keyed hash of the anchor (3), and the first 8 bytes of HMAC-SHA256 of the window (8). Numbers are little-endian.
//!
//! A window is not cut: a text that stays may begin like one that went.

use super::anchor::{ANCHOR, Census};
use super::pattern::{Key, TAG};
use super::spelling::{Class, Window};
use crate::{Error, Result};

/// Bytes of a record.
pub(super) const RECORD: usize = 16;

/// Bytes of the longest window whose length a record can hold. Texts that are looked for are far shorter in any spelling.
const LONGEST: usize = u16::MAX as usize;

/// One window of a needle that is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Shingle {
    kind: u8,
    pub(super) length: u16,
    pub(super) anchor: u16,
    /// Hash of the anchor.
    pub(super) tag: u32,
    pub(super) mac: [u8; TAG],
}

impl Shingle {
    /// Shingles of all whole windows, sorted, each once.
    pub(super) fn all_of(windows: &[(u32, Window)], key: &Key) -> Vec<Self> {
        let whole = windows
            .iter()
            .filter(|(_, window)| window.class == Class::Whole);
        let cut = whole.map(|(_, window)| {
            let length = window.bytes.len().min(LONGEST);
            (window.kind as u8, &window.bytes[..length])
        });
        let census = Census::of(cut.clone().map(|(_, bytes)| bytes));
        let mut shingles: Vec<Self> = cut
            .map(|(kind, bytes)| Self::new(kind, bytes, census.best(bytes), key))
            .collect();
        shingles.sort_unstable();
        shingles.dedup();
        shingles
    }

    fn new(kind: u8, window: &[u8], anchor: usize, key: &Key) -> Self {
        // Neither is above the longest.
        let short = |number: usize| u16::try_from(number).unwrap_or(u16::MAX);
        Self {
            kind,
            length: short(window.len()),
            anchor: short(anchor),
            tag: key.hash().tag(super::pattern::word_at(window, anchor)),
            mac: key.mac(window),
        }
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.push(self.kind);
        out.extend(self.length.to_le_bytes());
        out.extend(self.anchor.to_le_bytes());
        out.extend(&self.tag.to_le_bytes()[..3]);
        out.extend(self.mac);
    }

    /// Reads records that stand back to back.
    pub(super) fn read_all(bytes: &[u8]) -> Result<Vec<Self>> {
        let (records, rest) = bytes.as_chunks::<RECORD>();
        let shingles: Option<Vec<Self>> = records.iter().map(Self::read).collect();
        shingles
            .filter(|_| rest.is_empty())
            .ok_or_else(|| Error::Refused("the shingles are damaged".to_owned()))
    }

    fn read(record: &[u8; RECORD]) -> Option<Self> {
        let [kind, l0, l1, a0, a1, low, middle, high, mac @ ..] = *record;
        let (length, anchor) = (u16::from_le_bytes([l0, l1]), u16::from_le_bytes([a0, a1]));
        let fits = usize::from(anchor) + ANCHOR <= usize::from(length);
        fits.then(|| Self {
            kind,
            length,
            anchor,
            tag: u32::from_le_bytes([low, middle, high, 0]),
            mac,
        })
    }
}
