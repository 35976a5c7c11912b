//! Exact search for many patterns at once by sampled 8-grams.
//!
//! Let m be the length of the shortest pattern and s = min(m - 7, 8) the stride. Of every pattern one
//! region of s + 7 bytes is chosen, and the s grams (8-byte windows) of that region are registered. The
//! scan looks at one gram every s bytes: one load, one multiplication, one test in a bit table that
//! fits the cache. What passes is looked up, together with the up to 8 bytes that follow it in the
//! pattern, behind a second bit table; only what is still there is compared byte by byte.
//!
//! Why nothing is missed: let a pattern stand at p, its region at offset r. The grams at p + r,
//! p + r + 1, …, p + r + s - 1 lie inside the occurrence, and all of them are registered. They start at
//! s consecutive positions, and samples are s apart, so exactly one of the s is sampled, provided that
//! sampling began at or before p + r. It did: it begins where the search begins, or at the start of a
//! line after the previous line matched, and no pattern spans a line feed. The tables answer "maybe"
//! for every registered gram: the bytes looked up with it never reach beyond the pattern, so they
//! stand in the occurrence too. The comparison settles it.
//!
//! The region is the one whose grams are rarest in the set, so that a phrase that all patterns share
//! ("User: I think") is not what the text is probed for. Where no rare region exists ("aaaa…"), a gram
//! would lead to thousands of patterns. Such patterns are set aside in byte order and registered by
//! their first s grams; a sample that hits one is settled by binary search. Both tables are filled
//! by counting, and a pattern that begins with another one is dropped, because it can only be found
//! where the other is. So neither the build nor the scan can become quadratic in the set.
//!
//! Patterns under 8 bytes have no gram. They never occur in practice (the minimum is 12 UTF-16 units)
//! and are searched for one by one.

use memchr::{memchr, memmem, memrchr};

use crate::line::lines;

use self::table::{Entry, Filter, Table, Width, hash, hash_at, key_at};

mod build;
mod table;

/// Bytes of a gram.
const Q: usize = 8;

/// Samples tested together.
const BATCH: usize = 4;

/// A compiled set of byte patterns.
#[derive(Debug)]
pub struct Gram {
    patterns: Patterns,
    stride: usize,
    filter: Filter,
    table: Table,
    /// Patterns without a rare region, in byte order.
    crowd: Vec<u32>,
    /// Patterns without a gram.
    short: Vec<(u32, memmem::Finder<'static>)>,
}

/// The distinct patterns of which none begins with another, back to back in byte order.
#[derive(Debug, Default)]
struct Patterns {
    text: Vec<u8>,
    ends: Vec<usize>,
    /// Index of each in the slice that the caller gave.
    names: Vec<u32>,
    longest: usize,
}

/// A verified occurrence.
#[derive(Clone, Copy)]
struct Hit {
    start: usize,
    pattern: u32,
}

impl Gram {
    /// Compiles `patterns`. Empty ones are ignored, equal ones count as the first of them.
    ///
    /// # Panics
    /// With 2^29 patterns or more.
    pub fn build<P: AsRef<[u8]>>(patterns: &[P]) -> Self {
        build::gram(patterns)
    }

    /// True when there is nothing to find.
    pub fn is_empty(&self) -> bool {
        self.patterns.ends.is_empty()
    }

    /// Leftmost occurrence: its start, and the index of the pattern in the slice given to `build`.
    /// Of several patterns that begin there, the shortest.
    pub fn first_in(&self, haystack: &[u8]) -> Option<(usize, usize)> {
        let mut best = self.short_in(haystack);
        let mut window = self.window(haystack, best);
        let mut at = 0;
        // Samples come in order, the occurrences they belong to not quite. Two never begin at one
        // place, for no pattern is a prefix of another.
        while let Some((sample, hit)) = self.search(window, at) {
            if best.is_none_or(|known| hit.start < known.start) {
                best = Some(hit);
                window = self.window(haystack, best);
            }
            at = sample + self.stride;
        }
        let best = best?;
        Some((
            best.start,
            self.patterns.names[best.pattern as usize] as usize,
        ))
    }

    /// Whether any pattern stands in `haystack`.
    pub fn is_in(&self, haystack: &[u8]) -> bool {
        self.search(haystack, 0).is_some() || self.short_in(haystack).is_some()
    }

    /// Pushes the start of every line of `block` (whole lines) that contains a pattern, ascending.
    /// The patterns must not contain `\n`.
    pub fn matching_lines(&self, block: &[u8], found: &mut Vec<usize>) {
        if !self.short.is_empty() {
            return self.matching_lines_one_by_one(block, found);
        }
        let mut at = 0;
        while let Some((_, hit)) = self.search(block, at) {
            let hit = hit.start.max(at);
            let before = &block[at..hit];
            found.push(memrchr(b'\n', before).map_or(at, |newline| at + newline + 1));
            match memchr(b'\n', &block[hit..]) {
                Some(newline) => at = hit + newline + 1,
                None => return,
            }
        }
    }

    fn matching_lines_one_by_one(&self, block: &[u8], found: &mut Vec<usize>) {
        let mut start = 0;
        for line in lines(block) {
            if self.is_in(line) {
                found.push(start);
            }
            start += line.len();
        }
    }

    fn short_in(&self, haystack: &[u8]) -> Option<Hit> {
        let hits = self.short.iter().filter_map(|(pattern, finder)| {
            let (start, pattern) = (finder.find(haystack)?, *pattern);
            Some(Hit { start, pattern })
        });
        hits.min_by_key(|hit| hit.start)
    }

    /// The part of `haystack` where an occurrence that begins before `best` can lie.
    fn window<'a>(&self, haystack: &'a [u8], best: Option<Hit>) -> &'a [u8] {
        let end = best.map_or(usize::MAX, |hit| {
            hit.start.saturating_add(self.patterns.longest)
        });
        &haystack[..end.min(haystack.len())]
    }

    /// First sample at or after `at` that belongs to an occurrence, with the leftmost of its
    /// occurrences. Samples are `at`, `at + stride`, and so on.
    fn search(&self, haystack: &[u8], at: usize) -> Option<(usize, Hit)> {
        match self.stride {
            1 => self.search_by::<1>(haystack, at),
            2 => self.search_by::<2>(haystack, at),
            3 => self.search_by::<3>(haystack, at),
            4 => self.search_by::<4>(haystack, at),
            5 => self.search_by::<5>(haystack, at),
            6 => self.search_by::<6>(haystack, at),
            7 => self.search_by::<7>(haystack, at),
            8 => self.search_by::<8>(haystack, at),
            _ => None,
        }
    }

    fn search_by<const STRIDE: usize>(
        &self,
        haystack: &[u8],
        mut at: usize,
    ) -> Option<(usize, Hit)> {
        let mut rest = haystack.get(at..)?;
        loop {
            // Any sample of the batch lies in its first 3 * 8 + 8 bytes, whatever the stride.
            while let Some(batch) = rest.first_chunk::<{ BATCH * Q }>() {
                let mut maybe = false;
                for sample in 0..BATCH {
                    maybe |= self.filter.has(hash_at(batch, sample * STRIDE));
                }
                if maybe {
                    break;
                }
                at += BATCH * STRIDE;
                rest = &rest[BATCH * STRIDE..];
            }
            for _ in 0..BATCH {
                let gram = rest.first_chunk::<Q>()?;
                if self.filter.has(hash(*gram))
                    && let Some(hit) = self.settle(haystack, at)
                {
                    return Some((at, hit));
                }
                at += STRIDE;
                rest = &rest[STRIDE..];
            }
        }
    }

    /// The leftmost occurrence that the sample at `at` belongs to.
    #[inline(never)]
    fn settle(&self, haystack: &[u8], at: usize) -> Option<Hit> {
        let keys = Width::ALL
            .into_iter()
            .filter_map(|width| key_at(haystack, at, width));
        let entries = keys.flat_map(|key| self.table.entries(key));
        let hits = entries.filter_map(|entry| {
            let start = at.checked_sub(entry.offset as usize)?;
            let tail = &haystack[start..];
            let pattern = match entry.pattern {
                Entry::CROWD => self.crowd_prefix(tail)?,
                pattern => pattern,
            };
            let stands = tail.starts_with(self.patterns.get(pattern));
            stands.then_some(Hit { start, pattern })
        });
        hits.min_by_key(|hit| hit.start)
    }

    /// The only pattern of the crowd that `tail` can begin with.
    fn crowd_prefix(&self, tail: &[u8]) -> Option<u32> {
        // Between a prefix of `tail` and `tail` itself, in byte order, stand only texts that begin
        // with that prefix, and none of the patterns does.
        let after = self
            .crowd
            .partition_point(|&pattern| self.patterns.get(pattern) <= tail);
        after.checked_sub(1).map(|last| self.crowd[last])
    }
}

impl Patterns {
    fn get(&self, pattern: u32) -> &[u8] {
        let pattern = pattern as usize;
        let start = pattern.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start..self.ends[pattern]]
    }
}
