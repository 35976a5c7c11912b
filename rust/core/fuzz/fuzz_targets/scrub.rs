//! Any bytes as a memory file, scrubbed with any bytes as snippets.

#![no_main]

use std::collections::HashSet;

use cenotaph_core::line::LineReader;
use cenotaph_core::refs::Refs;
use cenotaph_core::scrub::Scrubber;
use cenotaph_core::snippets::Snippets;
use libfuzzer_sys::fuzz_target;

/// The input up to the first NUL holds snippets, one a line; the rest is the file.
fn split(input: &[u8]) -> (Vec<Vec<u8>>, &[u8]) {
    let at = input.iter().position(|&byte| byte == 0);
    let (snippets, text) = at.map_or((&[][..], input), |at| (&input[..at], &input[at + 1..]));
    let snippets = snippets.split(|&byte| byte == b'\n');
    (snippets.map(<[u8]>::to_vec).collect(), text)
}

fuzz_target!(|input: &[u8]| {
    let (snippets, text) = split(input);
    let refs = Refs::new("main", ["target".to_owned()], ["agent:main:t".to_owned()]);
    let selected = HashSet::from(["k1".to_owned()]);
    let scrubber = Scrubber::new(refs, selected.clone(), selected, Snippets::build(&snippets, &[true]));

    let whole = scrubber.scan(text).expect("a slice can be read");
    for size in [1, 5, 64] {
        let parts = scrubber.scan_lines(LineReader::with_capacity(text, size));
        assert_eq!(parts.expect("a slice can be read"), whole);
    }
    let length = text.len() as u64;
    let mut end = None;
    for range in &whole.removed {
        assert!(range.start < range.end && range.end <= length);
        assert!(end.is_none_or(|end| end < range.start));
        let starts_line = range.start == 0 || text[range.start as usize - 1] == b'\n';
        let ends_line = range.end == length || text[range.end as usize - 1] == b'\n';
        assert!(starts_line && ends_line);
        end = Some(range.end);
    }
    let Some((kept, scrub)) = scrubber.scrub_text(text) else {
        assert!(whole.removed.is_empty());
        return;
    };
    assert_eq!(scrub, whole);
    for line in kept.split_inclusive(|&byte| byte == b'\n') {
        assert!(!scrubber.snippets().matches(line));
    }
});
