//! Positions of the data are tested at a fixed step: one load, one multiplication, one bit.
//!
//! Why nothing is missed: of each pattern `step` grams are known, which begin one byte apart. Wherever the pattern stands,
//! exactly one of them begins at a multiple of the step, that position is looked at, and the bit of every gram is set. What
//! passes the bit is looked up by 24 bits of the same hash, and compared as a whole. Where the shortest pattern has 8 bytes
//! grams have 7, so that there are two; of hidden patterns one hash of 8 bytes is known, so every position is tested.

use super::anchor::ANCHOR;
use super::pattern::{Gram, Grams, Hash, Pattern, Patterns, padded_word, word_at};

/// Positions that are tested together.
const BATCH: usize = 4;

/// Grams with a tag, by the upper bits of it.
#[derive(Debug, Clone)]
pub(super) struct Engine {
    hash: Hash,
    grams: Grams,
    /// Whether entries hold bytes, not hashes.
    known: bool,
    bits: Bits,
    /// Where the entries of each bucket begin; one more than there are buckets.
    starts: Vec<u32>,
    shift: u32,
    entries: Vec<Entry>,
}

/// A gram and 8 more bytes of its pattern, side by side, so that most of what is no occurrence is settled here.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// Bytes of the gram, or their hash.
    gram: u64,
    beside: u64,
    /// Where both are in the pattern.
    at: u32,
    beside_at: u32,
    pattern: u32,
}

/// One bit for each value of the upper bits of the hash: 8 KB to 2 MB, as small as leaves nearly all of them unset, because
/// a table that does not fit the caches costs more than a few needless looks.
#[derive(Debug, Clone)]
enum Bits {
    Few(Box<[u64; 1 << 10]>),
    Some(Box<[u64; 1 << 14]>),
    Many(Box<[u64; 1 << 16]>),
    Most(Box<[u64; 1 << 18]>),
}

impl Engine {
    /// Compiles the grams of known patterns.
    pub(super) fn known(patterns: &Patterns) -> Self {
        let mut entries = Vec::with_capacity(patterns.list.len() * patterns.grams.step);
        for (pattern, each) in (0..).zip(&patterns.list) {
            for Gram {
                word,
                at,
                beside,
                beside_at,
            } in patterns.grams_of(each)
            {
                let entry = Entry {
                    gram: word,
                    beside,
                    at,
                    beside_at,
                    pattern,
                };
                entries.push((Hash::OPEN.tag(word), entry));
            }
        }
        Self::new(Hash::OPEN, patterns.grams, true, entries)
    }

    /// Compiles hashes of anchors; the index of each is that of its pattern.
    pub(super) fn hidden(hash: Hash, patterns: &Patterns, tags: impl Iterator<Item = u32>) -> Self {
        let entries = (0..).zip(&patterns.list).zip(tags);
        let entries = entries.map(|((pattern, each), tag)| {
            let entry = Entry {
                gram: u64::from(tag),
                beside: 0,
                at: each.anchor,
                beside_at: 0,
                pattern,
            };
            (tag, entry)
        });
        Self::new(hash, patterns.grams, false, entries.collect())
    }

    fn new(hash: Hash, grams: Grams, known: bool, mut entries: Vec<(u32, Entry)>) -> Self {
        entries.sort_unstable_by_key(|(tag, entry)| (*tag, entry.pattern));
        let width = entries.len().next_power_of_two().ilog2().clamp(4, 20);
        let shift = 24 - width;
        let mut starts = vec![0_u32; (1 << width) + 1];
        for (tag, _) in &entries {
            starts[(tag >> shift) as usize + 1] += 1;
        }
        for bucket in 1..starts.len() {
            starts[bucket] += starts[bucket - 1];
        }
        Self {
            hash,
            grams,
            known,
            bits: Bits::of(&entries),
            starts,
            shift,
            entries: entries.into_iter().map(|(_, entry)| entry).collect(),
        }
    }

    /// Reports every occurrence in `data` that ends after `seen`, with its start.
    pub(super) fn scan(
        &self,
        patterns: &Patterns,
        data: &[u8],
        seen: usize,
        report: &mut dyn FnMut(usize, &Pattern),
    ) {
        if self.entries.is_empty() {
            return;
        }
        match self.grams.step {
            1 => self.scan_at::<1>(patterns, data, seen, report),
            2 => self.scan_at::<2>(patterns, data, seen, report),
            4 => self.scan_at::<4>(patterns, data, seen, report),
            _ => self.scan_at::<8>(patterns, data, seen, report),
        }
    }

    fn scan_at<const STEP: usize>(
        &self,
        patterns: &Patterns,
        data: &[u8],
        seen: usize,
        report: &mut dyn FnMut(usize, &Pattern),
    ) {
        let settle = |at| self.settle(patterns, data, at, seen, report);
        let hash = |word| self.hash.of(word & self.grams.mask);
        match &self.bits {
            Bits::Few(bits) => candidates::<STEP, 16, _>(bits, hash, data, settle),
            Bits::Some(bits) => candidates::<STEP, 20, _>(bits, hash, data, settle),
            Bits::Many(bits) => candidates::<STEP, 22, _>(bits, hash, data, settle),
            Bits::Most(bits) => candidates::<STEP, 24, _>(bits, hash, data, settle),
        }
    }

    #[inline(never)]
    fn settle(
        &self,
        patterns: &Patterns,
        data: &[u8],
        at: usize,
        seen: usize,
        report: &mut dyn FnMut(usize, &Pattern),
    ) {
        let word = padded_word(data, at) & self.grams.mask;
        let tag = self.hash.tag(word);
        let gram = if self.known { word } else { u64::from(tag) };
        let bucket = (tag >> self.shift) as usize;
        let range = self.starts[bucket] as usize..self.starts[bucket + 1] as usize;
        for entry in &self.entries[range] {
            if entry.gram != gram {
                continue;
            }
            let Some(start) = at.checked_sub(entry.at as usize) else {
                continue;
            };
            if self.known && word_at(data, start + entry.beside_at as usize) != entry.beside {
                continue;
            }
            let pattern = &patterns.list[entry.pattern as usize];
            let is_new = start + pattern.length as usize > seen;
            if is_new && patterns.stands(pattern, data, start) {
                report(start, pattern);
            }
        }
    }
}

impl Bits {
    fn of(entries: &[(u32, Entry)]) -> Self {
        match entries.len() {
            0..1_000 => Self::Few(filled::<16, _>(entries)),
            1_000..20_000 => Self::Some(filled::<20, _>(entries)),
            20_000..150_000 => Self::Many(filled::<22, _>(entries)),
            _ => Self::Most(filled::<24, _>(entries)),
        }
    }
}

#[allow(
    clippy::unnecessary_box_returns,
    reason = "a table of 2 MB does not fit a stack"
)]
fn filled<const WIDTH: u32, const WORDS: usize>(entries: &[(u32, Entry)]) -> Box<[u64; WORDS]> {
    let mut words = vec![0_u64; WORDS].into_boxed_slice();
    for (tag, _) in entries {
        let bit = tag >> (24 - WIDTH);
        words[(bit / 64) as usize] |= 1 << (bit % 64);
    }
    // The length is WORDS, so this cannot fail, and the other arm is never taken.
    words.try_into().unwrap_or_else(|_| Box::new([0; WORDS]))
}

/// Calls `settle` with every multiple of `STEP` in `data` whose bit is set, and with the last ones whatever their bit.
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "at most 18 bits are left")]
fn candidates<const STEP: usize, const WIDTH: u32, const WORDS: usize>(
    bits: &[u64; WORDS],
    hash: impl Fn(u64) -> u64,
    data: &[u8],
    mut settle: impl FnMut(usize),
) {
    let probe = |span: &[u8], lane: usize| {
        let product = hash(word_at(span, lane * STEP));
        bits[(product >> (64 - WIDTH + 6)) as usize] >> (product >> (64 - WIDTH) & 63)
    };
    let mut at = 0;
    while let Some(span) = data.get(at..at + (BATCH - 1) * STEP + ANCHOR) {
        let mut any = 0;
        for lane in 0..BATCH {
            any |= probe(span, lane);
        }
        if any & 1 == 1 {
            for lane in 0..BATCH {
                if probe(span, lane) & 1 == 1 {
                    settle(at + lane * STEP);
                }
            }
        }
        at += BATCH * STEP;
    }
    for last in (at..data.len()).step_by(STEP) {
        settle(last);
    }
}
