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
        let cost = |word: u64| {
            (
                is_flat(word),
                self.counts[self.slot(word)],
                commonness(word),
            )
        };
        let costs: Vec<_> = words(text).map(cost).collect();
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
    let mut bytes = word.to_le_bytes();
    bytes.sort_unstable();
    bytes.windows(2).filter(|pair| pair[0] != pair[1]).count() < 2
}

fn commonness(word: u64) -> u32 {
    let weight = |byte: u8| match byte {
        0 | b' ' | b'e' | b't' | b'a' | b'o' | b'i' | b'n' | b's' | b'r' | b'h' | b'l' => 2,
        b'a'..=b'z' => 1,
        _ => 0,
    };
    word.to_le_bytes().into_iter().map(weight).sum()
}
