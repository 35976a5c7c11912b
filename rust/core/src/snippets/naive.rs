//! The obvious search, for tests and as the definition of what the engine answers.

use crate::normalise::{composed, normalised, utf16_len};

use super::{LABELS, MINIMUM, VARIANT_MINIMUM};

/// Whether `needle` stands in `haystack`.
pub fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    needle.is_empty()
        || haystack
            .windows(needle.len())
            .any(|window| window == needle)
}

/// Leftmost occurrence: its start and the index of the pattern; the shortest of several that begin
/// there, the first of equal ones. Empty patterns are never found.
pub fn first_in<P: AsRef<[u8]>>(patterns: &[P], haystack: &[u8]) -> Option<(usize, usize)> {
    (0..haystack.len()).find_map(|start| {
        let (pattern, _) = patterns
            .iter()
            .map(AsRef::as_ref)
            .enumerate()
            .filter(|(_, pattern)| !pattern.is_empty() && haystack[start..].starts_with(pattern))
            .min_by_key(|(_, pattern)| pattern.len())?;
        Some((start, pattern))
    })
}

/// Starts of the lines of `block` that contain one of `patterns`.
pub fn matching_lines<P: AsRef<[u8]>>(patterns: &[P], block: &[u8]) -> Vec<usize> {
    line_starts(block)
        .filter(|&(_, line)| first_in(patterns, line).is_some())
        .map(|(start, _)| start)
        .collect()
}

/// Starts of the lines of `block` that contain one of `snippets` in any form.
pub fn snippet_lines(snippets: &[Vec<u8>], block: &[u8]) -> Vec<usize> {
    line_starts(block)
        .filter(|&(_, line)| matches(snippets, line))
        .map(|(start, _)| start)
        .collect()
}

/// Whether `line` contains one of `snippets` in any form (V3, V4).
pub fn matches(snippets: &[Vec<u8>], line: &[u8]) -> bool {
    snippets.iter().any(|snippet| stands_in(snippet, line))
}

/// Whether `line` contains snippets, and only shared ones (V20).
pub fn only_shared(snippets: &[Vec<u8>], shared: &[bool], line: &[u8]) -> bool {
    matches(snippets, line)
        && snippets
            .iter()
            .zip(shared)
            .all(|(snippet, shared)| *shared || !stands_in(snippet, line))
}

/// Whether `line` contains `snippet` as it is stored, or, when it is long enough, in a form of V3.
fn stands_in(snippet: &[u8], line: &[u8]) -> bool {
    let units = utf16_len(snippet);
    if units < MINIMUM || snippet.contains(&b'\n') {
        return false;
    }
    if contains(line, snippet) {
        return true;
    }
    units >= VARIANT_MINIMUM
        && forms(snippet)
            .iter()
            .any(|form| contains(line, form) || contains(&normalised(line), form))
}

fn forms(snippet: &[u8]) -> Vec<Vec<u8>> {
    let labelled = [
        normalised(snippet).into_owned(),
        composed(snippet).into_owned(),
    ];
    let unlabelled: Vec<Vec<u8>> = labelled
        .iter()
        .flat_map(|form| LABELS.iter().filter_map(|label| form.strip_prefix(*label)))
        .map(<[u8]>::to_vec)
        .collect();
    let mut forms = [labelled.to_vec(), unlabelled].concat();
    forms.retain(|form| utf16_len(form) >= MINIMUM);
    forms
}

fn line_starts(block: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    block
        .split_inclusive(|&byte| byte == b'\n')
        .scan(0, |start, line| {
            let at = *start;
            *start += line.len();
            Some((at, line))
        })
}
