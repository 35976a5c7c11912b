//! Every position of the data is tested: one load, one multiplication, one bit.
//!
//! Why nothing is missed: each pattern has one anchor, 8 bytes at a known offset inside it. Every occurrence contains the
//! anchor, every position is looked at, and the bit of every anchor is set. What passes the bit is looked up by 24 bits of
//! the same hash, and compared as a whole. The price is one test per byte, where the purge's engine samples; in return
//! there is nothing to prove about strides.

use super::pattern::{Hash, Pattern, Patterns, word_at};

/// Positions that are tested together, and the bytes that they cover.
const BATCH: usize = 4;
const SPAN: usize = BATCH + 7;

/// Anchors with a tag, by the upper bits of it.
#[derive(Debug, Clone)]
pub(super) struct Engine {
    hash: Hash,
    /// Whether entries hold bytes, not hashes.
    known: bool,
    bits: Bits,
    /// Where the entries of each bucket begin; one more than there are buckets.
    starts: Vec<u32>,
    shift: u32,
    entries: Vec<Entry>,
}

/// An anchor and 8 more bytes of its pattern, side by side, so that most of what is no occurrence is settled here.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// Bytes of the anchor, or their hash.
    anchor: u64,
    beside: u64,
    /// Where the other bytes are, seen from the anchor.
    shift: i32,
    pattern: u32,
}

/// One bit for each value of the upper bits of the hash: 8 KB to 2 MB, as small as leaves nearly all of them unset.
#[derive(Debug, Clone)]
enum Bits {
    Few(Box<[u64; 1 << 10]>),
    Many(Box<[u64; 1 << 14]>),
    Most(Box<[u64; 1 << 18]>),
}

impl Engine {
    /// Compiles the anchors of known patterns.
    pub(super) fn known(patterns: &Patterns) -> Self {
        let entries = (0..).zip(&patterns.list).map(|(index, pattern)| {
            let (anchor, beside, shift) = patterns.anchor_of(pattern);
            let entry = Entry {
                anchor,
                beside,
                shift,
                pattern: index,
            };
            (Hash::OPEN.tag(anchor), entry)
        });
        Self::new(Hash::OPEN, true, entries.collect())
    }

    /// Compiles hashes of anchors; the index of each is that of its pattern.
    pub(super) fn hidden(hash: Hash, tags: impl Iterator<Item = u32>) -> Self {
        let entries = (0..).zip(tags).map(|(pattern, tag)| {
            let entry = Entry {
                anchor: u64::from(tag),
                beside: 0,
                shift: 0,
                pattern,
            };
            (tag, entry)
        });
        Self::new(hash, false, entries.collect())
    }

    fn new(hash: Hash, known: bool, mut entries: Vec<(u32, Entry)>) -> Self {
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
        let settle = |at| self.settle(patterns, data, at, seen, report);
        match &self.bits {
            Bits::Few(bits) => candidates::<16, _>(bits, self.hash, data, settle),
            Bits::Many(bits) => candidates::<20, _>(bits, self.hash, data, settle),
            Bits::Most(bits) => candidates::<24, _>(bits, self.hash, data, settle),
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
        let word = word_at(data, at);
        let tag = self.hash.tag(word);
        let anchor = if self.known { word } else { u64::from(tag) };
        let bucket = (tag >> self.shift) as usize;
        let range = self.starts[bucket] as usize..self.starts[bucket + 1] as usize;
        for entry in &self.entries[range] {
            if entry.anchor != anchor || self.known && !entry.goes_on(data, at) {
                continue;
            }
            let pattern = &patterns.list[entry.pattern as usize];
            let Some(start) = at.checked_sub(pattern.anchor as usize) else {
                continue;
            };
            let is_new = start + pattern.length as usize > seen;
            if is_new && patterns.stands(pattern, data, start) {
                report(start, pattern);
            }
        }
    }
}

impl Entry {
    /// Whether the bytes beside an anchor at `at` are those of the pattern.
    #[inline]
    fn goes_on(&self, data: &[u8], at: usize) -> bool {
        at.checked_add_signed(self.shift as isize)
            .is_some_and(|beside| word_at(data, beside) == self.beside)
    }
}

impl Bits {
    fn of(entries: &[(u32, Entry)]) -> Self {
        match entries.len() {
            0..1_000 => Self::Few(filled::<16, _>(entries)),
            1_000..50_000 => Self::Many(filled::<20, _>(entries)),
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

/// Calls `settle` with every position of `data` whose bit is set.
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "at most 18 bits are left")]
fn candidates<const WIDTH: u32, const WORDS: usize>(
    bits: &[u64; WORDS],
    hash: Hash,
    data: &[u8],
    mut settle: impl FnMut(usize),
) {
    let probe = |span: &[u8; SPAN], lane: usize| {
        let product = hash.of(word_at(span, lane));
        bits[(product >> (64 - WIDTH + 6)) as usize] >> (product >> (64 - WIDTH) & 63)
    };
    let mut at = 0;
    let mut rest = data;
    while let Some(span) = rest.first_chunk::<SPAN>() {
        let mut any = 0;
        for lane in 0..BATCH {
            any |= probe(span, lane);
        }
        if any & 1 == 1 {
            for lane in 0..BATCH {
                if probe(span, lane) & 1 == 1 {
                    settle(at + lane);
                }
            }
        }
        at += BATCH;
        rest = &rest[BATCH..];
    }
    for last in at..(data.len() + 1).saturating_sub(8) {
        settle(last);
    }
}
