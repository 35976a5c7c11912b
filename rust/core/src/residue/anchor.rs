//! Which bytes of a window it is found by.
//!
//! Any would do. Those that are rare in the whole set lead to few comparisons, and so do those without the letters that
//! every text is full of.

/// Bytes of an anchor.
pub(super) const ANCHOR: usize = 8;

const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

/// Approximate numbers of all 8-byte windows of a set.
pub(super) struct Census {
    counts: Vec<u16>,
    shift: u32,
}

impl Census {
    /// Counts the windows of `texts`.
    pub(super) fn of<'t>(texts: impl Iterator<Item = &'t [u8]> + Clone) -> Self {
        let all: usize = texts.clone().map(<[u8]>::len).sum();
        let bits = (all * 4).next_power_of_two().ilog2().clamp(8, 24);
        let mut census = Self {
            counts: vec![0; 1 << bits],
            shift: 64 - bits,
        };
        for word in texts.flat_map(words) {
            let slot = census.slot(word);
            census.counts[slot] = census.counts[slot].saturating_add(1);
        }
        census
    }

    /// Offset of the best anchor of `text`, which has 8 bytes or more.
    pub(super) fn best(&self, text: &[u8]) -> usize {
        self.best_region(text, ANCHOR)
    }

    /// Offset of the `length` bytes, 8 or more, in which the most common 8 bytes are least common. `text` has `length` bytes
    /// or more.
    pub(super) fn best_region(&self, text: &[u8], length: usize) -> usize {
        let mut weight = text.iter().map(|byte| WEIGHTS[usize::from(*byte)]);
        let mut common: u64 = weight.by_ref().take(ANCHOR - 1).map(u64::from).sum();
        let mut leaving = text
            .iter()
            .map(|byte| u64::from(WEIGHTS[usize::from(*byte)]));
        let costs: Vec<u64> = words(text)
            .zip(weight)
            .map(|(word, entering)| {
                common += u64::from(entering);
                let count = u64::from(self.counts[self.slot(word)]);
                let cost = u64::from(is_flat(word)) << 32 | count << 8 | common;
                common -= leaving.next().unwrap_or_default();
                cost
            })
            .collect();
        let regions = costs.windows(length + 1 - ANCHOR).enumerate();
        regions
            .min_by_key(|(_, region)| region.iter().max().copied())
            .map_or(0, |(at, _)| at)
    }

    #[allow(clippy::cast_possible_truncation, reason = "at most 24 bits are left")]
    fn slot(&self, word: u64) -> usize {
        (word.wrapping_mul(FACTOR) >> self.shift) as usize
    }
}

fn words(text: &[u8]) -> impl Iterator<Item = u64> {
    text.windows(ANCHOR)
        .filter_map(|window| window.first_chunk())
        .map(|window| u64::from_le_bytes(*window))
}

/// Runs of blanks, dashes and zeros: at most two different bytes.
fn is_flat(word: u64) -> bool {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let first = word & 0xFF;
    let differing = word ^ (EACH * first);
    if differing == 0 {
        return true;
    }
    let at = differing.trailing_zeros() / 8 * 8;
    let second = (word >> at) & 0xFF;
    word.to_le_bytes()
        .into_iter()
        .all(|byte| u64::from(byte) == first || u64::from(byte) == second)
}

/// How common a byte is in texts, from 0 to 2: eight of them stay below 256.
const WEIGHTS: [u8; 256] = {
    let mut weights = [0; 256];
    let mut letter = b'a';
    while letter <= b'z' {
        weights[letter as usize] = 1;
        letter += 1;
    }
    let common = b"\0 etaoinsrhl";
    let mut at = 0;
    while at < common.len() {
        weights[common[at] as usize] = 2;
        at += 1;
    }
    weights
};

#[cfg(test)]
mod tests {
    use super::*;

    /// Weights, flatness and counts as their definitions say, a window at a time.
    fn obvious(census: &Census, text: &[u8], length: usize) -> usize {
        let cost = |word: u64| {
            let mut bytes = word.to_le_bytes();
            let common: u32 = bytes
                .iter()
                .map(|byte| u32::from(WEIGHTS[usize::from(*byte)]))
                .sum();
            bytes.sort_unstable();
            let changes = bytes.windows(2).filter(|pair| pair[0] != pair[1]).count();
            (changes < 2, census.counts[census.slot(word)], common)
        };
        let costs: Vec<_> = words(text).map(cost).collect();
        let regions = costs.windows(length + 1 - ANCHOR).enumerate();
        let best = regions.min_by_key(|(_, region)| region.iter().max().copied());
        best.map_or(0, |(at, _)| at)
    }

    #[test]
    fn the_best_region_is_that_of_the_definition() {
        let texts: Vec<Vec<u8>> = (0..200_u32)
            .map(|seed| {
                let byte =
                    |at: u32| b"aab  -\0ez\xC3"[((seed * 31 + at * at * 7 + at) % 10) as usize];
                (0..16 + seed % 60).map(byte).collect()
            })
            .collect();
        let census = Census::of(texts.iter().map(Vec::as_slice));
        for text in &texts {
            for length in ANCHOR..=16 {
                assert_eq!(
                    census.best_region(text, length),
                    obvious(&census, text, length)
                );
            }
        }
    }
}
