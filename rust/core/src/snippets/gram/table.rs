//! The two tables behind a sample: a bit table that says "no" quickly, and the entries by gram.

use super::Q;

/// Bits of the filter per gram; the size is rounded up to a power of two.
const BITS_PER_GRAM: usize = 16;

/// Bytes around and including a gram that an entry's mark stands for.
const MARKED: usize = 12;

/// Fibonacci hashing: only the upper bits depend on all bytes, so only they are used.
const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

#[inline]
pub(super) fn hash(gram: [u8; Q]) -> u64 {
    u64::from_le_bytes(gram).wrapping_mul(MULTIPLIER)
}

/// The upper bits of a hash as an index; `shift` is at least 32.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "at most 32 bits are left after the shift"
)]
pub(super) fn slot(hash: u64, shift: u32) -> usize {
    (hash >> shift) as usize
}

/// Number of slots, a power of two from 2 to 2^30, for at least `wanted`, and the shift for them.
pub(super) fn slots(wanted: usize) -> (usize, u32) {
    let count = wanted.clamp(2, 1 << 30).next_power_of_two();
    (count, u64::BITS - count.trailing_zeros())
}

/// A bit table: two bits of one word for every registered gram.
#[derive(Debug)]
pub(super) struct Filter {
    words: Vec<u64>,
    shift: u32,
}

impl Filter {
    pub(super) fn new(grams: usize) -> Self {
        let (count, shift) = slots(grams.saturating_mul(BITS_PER_GRAM) / 64);
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

/// How an entry is checked and what it leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// One pattern; its mark covers the gram and 4 bytes around it, of which this many come before.
    Within(u32),
    /// One pattern under 12 bytes; its mark covers the gram alone.
    Bare,
    /// Some pattern of the crowd; its mark covers the gram alone.
    Crowd,
}

/// One gram of one region.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Entry {
    pattern: u32,
    /// Offset of the gram in the pattern, above three bits for the kind.
    place: u32,
    mark: u32,
}

impl Entry {
    /// The gram at `offset` of a pattern with this text.
    pub(super) fn of_pattern(pattern: u32, text: &[u8], offset: u32) -> Self {
        let start = offset as usize;
        if text.len() < MARKED {
            let mark = gram_mark(hash_at(text, start));
            return Self::new(pattern, offset, Kind::Bare, mark);
        }
        // As many as possible of the four bytes after the gram: they are the ones to be read next.
        let latest = text.len() - MARKED;
        let before = u32::try_from(start.saturating_sub(latest)).unwrap_or(0);
        let mark = wide_mark(text, start - before as usize).unwrap_or(0);
        Self::new(pattern, offset, Kind::Within(before), mark)
    }

    /// The gram with this hash, at `offset` of some pattern of the crowd.
    pub(super) fn of_crowd(hash: u64, offset: u32) -> Self {
        Self::new(0, offset, Kind::Crowd, gram_mark(hash))
    }

    fn new(pattern: u32, offset: u32, kind: Kind, mark: u32) -> Self {
        let kind = match kind {
            Kind::Within(before) => before,
            Kind::Bare => 5,
            Kind::Crowd => 6,
        };
        let place = offset << 3 | kind;
        Self {
            pattern,
            place,
            mark,
        }
    }

    pub(super) fn pattern(self) -> u32 {
        self.pattern
    }

    pub(super) fn offset(self) -> usize {
        (self.place >> 3) as usize
    }

    pub(super) fn kind(self) -> Kind {
        match self.place & 7 {
            5 => Kind::Bare,
            6 => Kind::Crowd,
            before => Kind::Within(before),
        }
    }

    /// False when the bytes around the sample at `at`, whose gram has this hash, rule the entry out.
    #[inline]
    pub(super) fn agrees(self, haystack: &[u8], at: usize, hash: u64) -> bool {
        match self.kind() {
            Kind::Within(before) => {
                let start = at.checked_sub(before as usize);
                start.and_then(|start| wide_mark(haystack, start)) == Some(self.mark)
            }
            Kind::Bare | Kind::Crowd => gram_mark(hash) == self.mark,
        }
    }
}

fn gram_mark(hash: u64) -> u32 {
    ((hash >> 16) & 0xFFFF_FFFF) as u32
}

/// Hash of the 12 bytes at `start`; None when there are fewer.
#[inline]
fn wide_mark(text: &[u8], start: usize) -> Option<u32> {
    let window = text.get(start..)?.first_chunk::<MARKED>()?;
    let [a, b, c, d, e, f, g, h, rest @ ..] = *window;
    let tail = u64::from(u32::from_le_bytes(rest));
    let mixed = u64::from_le_bytes([a, b, c, d, e, f, g, h]) ^ (tail << 15);
    Some((mixed.wrapping_mul(MULTIPLIER) >> 32) as u32)
}

/// Hash of the gram at `start`, which must lie in `text`.
#[inline]
pub(super) fn hash_at(text: &[u8], start: usize) -> u64 {
    let mut gram = [0; Q];
    gram.copy_from_slice(&text[start..start + Q]);
    hash(gram)
}

/// Entries grouped by the upper bits of their gram's hash.
#[derive(Debug)]
pub(super) struct Table {
    /// Where each group starts; one more than there are groups.
    starts: Vec<u32>,
    entries: Vec<Entry>,
    shift: u32,
}

impl Table {
    /// Fills a table by counting; `items` is walked twice. `size` is about the number of items.
    pub(super) fn build(size: usize, items: impl Iterator<Item = (u64, Entry)> + Clone) -> Self {
        let (groups, shift) = slots(size);
        let mut starts = vec![0_u32; groups + 1];
        for (hash, _) in items.clone() {
            starts[slot(hash, shift)] += 1;
        }
        let mut total = 0;
        for count in &mut starts {
            total += *count;
            *count = total;
        }
        let mut entries = vec![Entry::default(); total as usize];
        for (hash, entry) in items {
            let start = &mut starts[slot(hash, shift)];
            *start -= 1;
            entries[*start as usize] = entry;
        }
        Self {
            starts,
            entries,
            shift,
        }
    }

    #[inline]
    pub(super) fn entries(&self, hash: u64) -> &[Entry] {
        let group = slot(hash, self.shift);
        let range = self.starts[group] as usize..self.starts[group + 1] as usize;
        &self.entries[range]
    }
}
