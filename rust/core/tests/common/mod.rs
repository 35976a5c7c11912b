//! What the tests of the scrub share: one selection, and a check that names what it saw.

#![allow(dead_code, clippy::unwrap_used)]

use std::collections::HashSet;

use cenotaph_core::line::LineReader;
use cenotaph_core::refs::Refs;
use cenotaph_core::scrub::{Scrub, Scrubber};
use cenotaph_core::snippets::Snippets;

/// The snippet of the selected session.
pub const S: &str = "User: Please remember violet-mongoose-42.";

/// Marker of a selected entry.
pub const E: &str = "<!-- openclaw-memory-promotion:k1 -->\n";
/// Marker of another selected entry.
pub const E2: &str = "<!-- openclaw-memory-promotion:k2 -->\n";
/// Marker of an entry that is not selected.
pub const K: &str = "<!-- openclaw-memory-promotion:clean -->\n";
/// Lineage comment.
pub const L: &str = "<!-- openclaw-memory-lineage:l1 -->\n";

pub fn strings(values: &[&str]) -> Vec<String> {
    values.iter().map(ToString::to_string).collect()
}

pub fn set(values: &[&str]) -> HashSet<String> {
    values.iter().map(ToString::to_string).collect()
}

pub fn snippets(texts: &[&str]) -> Snippets {
    let texts: Vec<Vec<u8>> = texts.iter().map(|text| text.as_bytes().to_vec()).collect();
    Snippets::build(&texts, &[])
}

/// Selected: session `target` with key `agent:main:tele:1`, entries k1, k2. Known besides: clean.
pub fn scrubber_for(texts: &[&str]) -> Scrubber {
    let refs = Refs::new(
        "main",
        strings(&["target"]),
        strings(&["agent:main:tele:1"]),
    );
    let known = set(&["k1", "k2", "clean"]);
    Scrubber::new(refs, set(&["k1", "k2"]), known, snippets(texts))
}

pub fn scrubber() -> Scrubber {
    scrubber_for(&[S])
}

/// Scans a text, and checks what must hold of every scan.
pub fn scan(scrubber: &Scrubber, text: &[u8]) -> (Vec<u8>, Scrub) {
    let scrub = scrubber.scan(text).unwrap();
    assert_eq!(scrub.bytes, text.len() as u64);
    let mut kept = Vec::new();
    let mut at = 0;
    for range in &scrub.removed {
        assert!(range.start < range.end, "empty range {range:?}");
        assert!(at == 0 || range.start > at, "ranges touch at {at}");
        kept.extend_from_slice(
            &text[usize::try_from(at).unwrap()..usize::try_from(range.start).unwrap()],
        );
        at = range.end;
    }
    kept.extend_from_slice(&text[usize::try_from(at).unwrap()..]);
    match scrubber.scrub_text(text) {
        Some((rest, same)) => assert_eq!((&rest, &same), (&kept, &scrub)),
        None => assert_eq!(scrub.removed, []),
    }
    for size in [1, 7, 64] {
        let reader = LineReader::with_capacity(text, size);
        assert_eq!(
            scrubber.scan_lines(reader).unwrap(),
            scrub,
            "buffer of {size}"
        );
    }
    (kept, scrub)
}

#[track_caller]
pub fn check_with(
    scrubber: &Scrubber,
    before: &str,
    after: &str,
    entries: u64,
    lines: u64,
) -> Scrub {
    let (kept, scrub) = scan(scrubber, before.as_bytes());
    assert_eq!(String::from_utf8_lossy(&kept), after);
    assert_eq!((scrub.entries, scrub.lines), (entries, lines), "counts");
    let (again, second) = scan(scrubber, &kept);
    assert_eq!(String::from_utf8_lossy(&again), after, "second scrub");
    assert_eq!((second.entries, second.lines), (0, 0));
    scrub
}

/// Scrubs with the usual selection; the second scrub must find nothing.
#[track_caller]
pub fn check(before: &str, after: &str, entries: u64, lines: u64) -> Scrub {
    check_with(&scrubber(), before, after, entries, lines)
}
