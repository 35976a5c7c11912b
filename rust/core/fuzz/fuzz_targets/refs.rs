//! Any bytes as a corpus line or a line of a memory file.

#![no_main]

use cenotaph_core::refs::{Refs, corpus_snippet, session_id_of_run};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|line: &[u8]| {
    let refs = Refs::new("main", ["t".to_owned(), "target".to_owned()], ["k".to_owned()]);
    let _ = refs.named_in(line);
    // The short way through a usual prefix must not differ from the long way behind a blank.
    let indented = [b" ", line].concat();
    assert_eq!(refs.in_corpus_prefix(line), refs.in_corpus_prefix(&indented));
    assert!(line.starts_with(session_id_of_run(line)));
    if refs.hook_row(line).is_some_and(|row| row.selected) {
        assert!(line.contains(&b':'));
    }
    if let Some(snippet) = corpus_snippet(line) {
        assert!(!snippet.is_empty() && line.starts_with(b"["));
    }
});
