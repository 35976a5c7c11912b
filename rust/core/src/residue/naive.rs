//! The obvious search, for tests and as the definition of what the engine answers.

/// Every start of `needle` in `haystack`.
pub fn starts(haystack: &[u8], needle: &[u8]) -> impl Iterator<Item = usize> {
    haystack
        .windows(needle.len().max(1))
        .enumerate()
        .filter(move |(_, window)| *window == needle)
        .map(|(start, _)| start)
}
