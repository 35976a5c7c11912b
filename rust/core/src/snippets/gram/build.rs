//! Compiles a set: distinct patterns, the rarest region of each, the tables.

use memchr::memmem;

use super::table::{Entry, Filter, Table, Width, hash_at, key_at, slot, slots};
use super::{Gram, Patterns, Q};

/// Longest stride: longer regions would have to contain common grams.
const LONGEST_STRIDE: usize = 8;

/// Bytes at the start of a pattern in which its region is sought.
const REACH: usize = 64 << 10;

/// Entries of one group from which on its patterns go to the crowd.
const CROWDED: u32 = 32;

/// Most patterns that the 32-bit tables of eight entries each can take.
const LIMIT: usize = 1 << 29;

pub(super) fn gram<P: AsRef<[u8]>>(given: &[P]) -> Gram {
    assert!(given.len() < LIMIT, "too many patterns for one set");
    let patterns = distinct(given);
    let (mut long, mut short) = (Vec::new(), Vec::new());
    for pattern in (0..).take(patterns.ends.len()) {
        let text = patterns.get(pattern);
        if text.len() < Q {
            short.push((pattern, memmem::Finder::new(text).into_owned()));
        } else {
            long.push(pattern);
        }
    }
    let shortest = long
        .iter()
        .map(|&pattern| patterns.get(pattern).len())
        .min();
    let stride = shortest.map_or(0, |length| (length - Q + 1).min(LONGEST_STRIDE));
    let (regular, crowd) = regions(&patterns, &long, stride);
    let (filter, table) = tables(&patterns, &regular, &crowd, stride);
    Gram {
        patterns,
        stride,
        filter,
        table,
        crowd: crowd.into_iter().map(|(pattern, _)| pattern).collect(),
        short,
    }
}

/// Sorts, and drops every pattern that begins with another one.
fn distinct<P: AsRef<[u8]>>(given: &[P]) -> Patterns {
    // The first eight bytes beside the slice spare the sort most of its cache misses.
    let mut sorted: Vec<(u64, &[u8], u32)> = given
        .iter()
        .map(AsRef::as_ref)
        .zip(0..)
        .filter(|(text, _)| !text.is_empty())
        .map(|(text, name)| (leading(text), text, name))
        .collect();
    sorted.sort_unstable();
    let mut kept: Option<&[u8]> = None;
    sorted.retain(|&(_, text, _)| {
        let new = kept.is_none_or(|kept| !text.starts_with(kept));
        if new {
            kept = Some(text);
        }
        new
    });
    let mut patterns = Patterns {
        text: Vec::with_capacity(sorted.iter().map(|(_, text, _)| text.len()).sum()),
        ends: Vec::with_capacity(sorted.len()),
        names: sorted.iter().map(|&(_, _, name)| name).collect(),
        longest: sorted
            .iter()
            .map(|(_, text, _)| text.len())
            .max()
            .unwrap_or(0),
    };
    for (_, text, _) in sorted {
        patterns.text.extend_from_slice(text);
        patterns.ends.push(patterns.text.len());
    }
    patterns
}

/// The first eight bytes as a number in byte order, as if zeros followed a shorter text.
fn leading(text: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    for (byte, &value) in bytes.iter_mut().zip(text) {
        *byte = value;
    }
    u64::from_be_bytes(bytes)
}

/// A pattern and the offset of its region.
type Region = (u32, u32);

/// The region of each pattern that has a rare one, and the patterns that have none.
fn regions(patterns: &Patterns, long: &[u32], stride: usize) -> (Vec<Region>, Vec<Region>) {
    let counts = Counts::of(patterns, long);
    let mut scratch = Vec::new();
    let chosen: Vec<Region> = long
        .iter()
        .map(|&pattern| {
            let offset = counts.rarest(patterns.get(pattern), stride, &mut scratch);
            (pattern, offset)
        })
        .collect();
    let (groups, shift) = slots(chosen.len() * stride);
    let mut sizes = vec![0_u32; groups];
    for &region in &chosen {
        for (key, _) in keys(patterns, region, stride) {
            sizes[slot(key, shift)] += 1;
        }
    }
    let (regular, mut crowd): (Vec<Region>, Vec<Region>) =
        chosen.into_iter().partition(|&region| {
            keys(patterns, region, stride).all(|(key, _)| sizes[slot(key, shift)] <= CROWDED)
        });
    // At the start a key leads to no more than `stride` entries, however many patterns share it.
    for (_, offset) in &mut crowd {
        *offset = 0;
    }
    (regular, crowd)
}

fn tables(
    patterns: &Patterns,
    regular: &[Region],
    crowd: &[Region],
    stride: usize,
) -> (Filter, Table) {
    let mut filter = Filter::new((regular.len() + crowd.len()) * stride);
    for &(pattern, region) in regular.iter().chain(crowd) {
        for offset in region as usize..region as usize + stride {
            filter.insert(hash_at(patterns.get(pattern), offset));
        }
    }
    let mut common: Vec<(u64, u32)> = crowd
        .iter()
        .flat_map(|&region| keys(patterns, region, stride))
        .collect();
    common.sort_unstable();
    common.dedup();
    let own = regular.iter().flat_map(|&region| {
        keys(patterns, region, stride)
            .map(move |(key, offset)| (key, Entry::new(region.0, offset, key)))
    });
    let common = common
        .iter()
        .map(|&(key, offset)| (key, Entry::new(Entry::CROWD, offset, key)));
    let size = regular.len() * stride + common.len();
    (filter, Table::build(size, own.chain(common)))
}

/// Key and offset of the grams of a region.
fn keys(
    patterns: &Patterns,
    (pattern, region): Region,
    stride: usize,
) -> impl Iterator<Item = (u64, u32)> + Clone {
    let text = patterns.get(pattern);
    (region..).take(stride).filter_map(|offset| {
        let start = offset as usize;
        let key = key_at(text, start, Width::within(text.len() - start))?;
        Some((key, offset))
    })
}

/// How often each gram stands in the set, roughly: grams may share a counter, and of a large set only
/// every so many patterns are counted. It guides a choice, and takes 8 MB and little time for any set.
struct Counts {
    counters: Vec<u16>,
    shift: u32,
}

impl Counts {
    const MOST: usize = 1 << 22;

    fn of(patterns: &Patterns, long: &[u32]) -> Self {
        let (count, shift) = slots((patterns.text.len() * 2).min(Self::MOST));
        let mut counts = Self {
            counters: vec![0; count],
            shift,
        };
        let step = 1 + patterns.text.len() / Self::MOST;
        for &pattern in long.iter().step_by(step) {
            for gram in head(patterns.get(pattern)).windows(Q) {
                let counter = &mut counts.counters[slot(hash_at(gram, 0), shift)];
                *counter = counter.saturating_add(1);
            }
        }
        counts
    }

    /// Offset of the `stride` grams that together stand least often in the set.
    fn rarest(&self, text: &[u8], stride: usize, scratch: &mut Vec<u32>) -> u32 {
        scratch.clear();
        let counter = |gram| self.counters[slot(hash_at(gram, 0), self.shift)];
        scratch.extend(head(text).windows(Q).map(|gram| u32::from(counter(gram))));
        let sums = scratch
            .windows(stride)
            .map(|counts| counts.iter().sum::<u32>());
        let rarest = sums.zip(0..).min();
        rarest.map_or(0, |(_, offset)| offset)
    }
}

fn head(text: &[u8]) -> &[u8] {
    &text[..text.len().min(REACH)]
}
