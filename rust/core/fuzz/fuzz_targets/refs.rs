//! Any bytes as a corpus line or a line of a memory file.

#![no_main]

use cenotaph_core::refs::{Refs, corpus_snippet, session_id_of_run};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|line: &[u8]| {
    let refs = Refs::new("main", ["t".to_owned(), "target".to_owned()], ["k".to_owned()]);
    let named = refs.named_in(line);
    // The prefix of a line is a part of it that begins where a reference may begin.
    assert!(named || !refs.in_corpus_prefix(line));
    // The short way through a usual prefix must not differ from the long way behind a blank.
    let indented = [b" ", line].concat();
    assert_eq!(refs.in_corpus_prefix(line), refs.in_corpus_prefix(&indented));
    assert!(line.starts_with(session_id_of_run(line)));
    if refs.is_run(line) {
        assert!(!line.is_empty());
    }
    if let Some(row) = refs.hook_row(line) {
        assert!(row.bold || !row.selected || line.len() > 2);
    }
    if let Some(snippet) = corpus_snippet(line) {
        assert!(!snippet.is_empty() && line.starts_with(b"["));
    }
});
