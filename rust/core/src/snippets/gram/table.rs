//! The tables behind a sample: bits that say "no" quickly, and the entries of what passes.

use super::Q;

/// Bits of a filter per gram; the size is rounded up to a power of two.
const BITS_PER_GRAM: usize = 16;

/// Fibonacci hashing: only the upper bits depend on all bytes, so only they are used.
const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

/// Keeps the factors of a key away from zero for ordinary text.
const SALT: u64 = 0xD1B5_4A32_D192_ED03;

#[inline]
pub(super) fn hash(gram: [u8; Q]) -> u64 {
    u64::from_le_bytes(gram).wrapping_mul(MULTIPLIER)
}

/// Hash of the gram at `start`, which must lie in `text`.
#[inline]
pub(super) fn hash_at(text: &[u8], start: usize) -> u64 {
    hash(gram_at(text, start))
}

#[inline]
fn gram_at(text: &[u8], start: usize) -> [u8; Q] {
    let mut gram = [0; Q];
    gram.copy_from_slice(&text[start..start + Q]);
    gram
}

/// How many bytes after a gram are looked at with it, before any pattern is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Width {
    /// Eight more.
    Wide,
    /// Four more: the end of the pattern is near.
    Half,
    /// None.
    Bare,
}

impl Width {
    pub(super) const ALL: [Self; 3] = [Self::Wide, Self::Half, Self::Bare];

    /// The widest that stays within a text of which `left` bytes begin with the gram.
    pub(super) fn within(left: usize) -> Self {
        match left - Q {
            8.. => Self::Wide,
            4.. => Self::Half,
            _ => Self::Bare,
        }
    }
}

/// Hash of the gram at `start` and what follows it; None when the text ends before.
#[inline]
pub(super) fn key_at(text: &[u8], start: usize, width: Width) -> Option<u64> {
    let rest = text.get(start..)?;
    let gram = u64::from_le_bytes(*rest.first_chunk()?);
    let after = &rest[Q..];
    let context = match width {
        Width::Wide => u64::from_le_bytes(*after.first_chunk()?),
        Width::Half => u64::from(u32::from_le_bytes(*after.first_chunk()?)),
        Width::Bare => 0,
    };
    let product = u128::from(gram ^ MULTIPLIER) * u128::from(context ^ SALT);
    Some(low(product >> 64) ^ low(product))
}

#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the low half is what is asked for"
)]
fn low(number: u128) -> u64 {
    number as u64
}

/// The upper bits of a hash as an index; `shift` is at least 32.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "at most 32 bits are left")]
pub(super) fn slot(hash: u64, shift: u32) -> usize {
    (hash >> shift) as usize
}

/// Number of slots, a power of two from 2 to 2^30, for at least `wanted`, and the shift for them.
pub(super) fn slots(wanted: usize) -> (usize, u32) {
    let count = wanted.clamp(2, 1 << 30).next_power_of_two();
    (count, u64::BITS - count.trailing_zeros())
}

/// A bit table: two bits of one word for every hash.
#[derive(Debug)]
pub(super) struct Filter {
    words: Vec<u64>,
    shift: u32,
}

impl Filter {
    pub(super) fn new(hashes: usize) -> Self {
        let (count, shift) = slots(hashes.saturating_mul(BITS_PER_GRAM) / 64);
        Self {
            words: vec![0; count],
            shift,
        }
    }

    pub(super) fn insert(&mut self, hash: u64) {
        self.words[slot(hash, self.shift)] |= bits(hash);
    }

    #[inline]
    pub(super) fn has(&self, hash: u64) -> bool {
        let bits = bits(hash);
        self.words[slot(hash, self.shift)] & bits == bits
    }
}

/// Two bits chosen below the 22 upper bits, which choose the word in any filter up to 32 MB.
#[inline]
fn bits(hash: u64) -> u64 {
    (1 << ((hash >> 36) & 63)) | (1 << ((hash >> 30) & 63))
}

/// One gram of one region.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Entry {
    /// The pattern, or `CROWD`.
    pub(super) pattern: u32,
    /// Offset of the gram in the pattern.
    pub(super) offset: u32,
    mark: u32,
}

impl Entry {
    /// Stands for every pattern of the crowd.
    pub(super) const CROWD: u32 = u32::MAX;

    /// `key` is the key of the gram at `offset`.
    pub(super) fn new(pattern: u32, offset: u32, key: u64) -> Self {
        Self {
            pattern,
            offset,
            mark: mark(key),
        }
    }
}

fn mark(key: u64) -> u32 {
    (key & 0xFFFF_FFFF) as u32
}

/// Entries grouped by the upper bits of their keys.
#[derive(Debug)]
pub(super) struct Table {
    filter: Filter,
    /// Where each group starts; one more than there are groups.
    starts: Vec<u32>,
    entries: Vec<Entry>,
    shift: u32,
}

impl Table {
    /// Fills a table by counting; `items` is walked twice. `size` is about the number of items.
    pub(super) fn build(size: usize, items: impl Iterator<Item = (u64, Entry)> + Clone) -> Self {
        let (groups, shift) = slots(size);
        let mut filter = Filter::new(size);
        let mut starts = vec![0_u32; groups + 1];
        for (key, _) in items.clone() {
            filter.insert(key);
            starts[slot(key, shift)] += 1;
        }
        let mut total = 0;
        for count in &mut starts {
            total += *count;
            *count = total;
        }
        let mut entries = vec![Entry::default(); total as usize];
        for (key, entry) in items {
            let start = &mut starts[slot(key, shift)];
            *start -= 1;
            entries[*start as usize] = entry;
        }
        Self {
            filter,
            starts,
            entries,
            shift,
        }
    }

    /// The entries with this key, and now and then one with another.
    #[inline]
    pub(super) fn entries(&self, key: u64) -> impl Iterator<Item = &Entry> {
        let group = if self.filter.has(key) {
            let group = slot(key, self.shift);
            self.starts[group] as usize..self.starts[group + 1] as usize
        } else {
            0..0
        };
        let mark = mark(key);
        self.entries[group]
            .iter()
            .filter(move |entry| entry.mark == mark)
    }
}
