//! The engines answer as the obvious search does. Input: patterns, one a line, then an empty line, then text.
#![no_main]

use cenotaph_core::snippets::gram::Gram;
use cenotaph_core::snippets::{Snippets, naive};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let end = input.windows(2).position(|pair| pair == b"\n\n");
    let Some(end) = end else { return };
    let (patterns, text) = (&input[..end], &input[end + 2..]);
    let patterns: Vec<Vec<u8>> = patterns
        .split(|&byte| byte == b'\n')
        .map(<[u8]>::to_vec)
        .collect();

    let gram = Gram::build(&patterns);
    let mut found = Vec::new();
    gram.matching_lines(text, &mut found);
    assert_eq!(found, naive::matching_lines(&patterns, text));
    assert_eq!(gram.first_in(text), naive::first_in(&patterns, text));

    let shared: Vec<bool> = patterns.iter().map(|text| text.len() % 2 == 0).collect();
    let snippets = Snippets::build(&patterns, &shared);
    found.clear();
    snippets.matching_lines(text, &mut found);
    assert_eq!(found, naive::snippet_lines(&patterns, text));
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        assert_eq!(snippets.matches(line), naive::matches(&patterns, line));
        let only_shared = naive::only_shared(&patterns, &shared, line);
        assert_eq!(snippets.only_shared(line), only_shared);
    }
});
