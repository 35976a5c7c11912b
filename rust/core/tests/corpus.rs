//! The scan of the session corpus.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::PathBuf;

use cenotaph_core::corpus::{CorpusLines, read_corpus, scan_corpus, shared_snippets};
use cenotaph_core::refs::Refs;
use cenotaph_core::replace::stamp;
use proptest::prelude::*;

fn refs() -> Refs {
    Refs::new("main", ["target".to_owned()], [])
}

fn removed(found: &CorpusLines) -> Vec<(u64, u64)> {
    found
        .removed
        .iter()
        .map(|range| (range.start, range.end))
        .collect()
}

fn corpus(files: &[(&str, &[u8])]) -> (tempfile::TempDir, Vec<PathBuf>) {
    let folder = tempfile::tempdir().unwrap();
    let paths = files.iter().map(|(name, content)| {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        path
    });
    let paths = paths.collect();
    (folder, paths)
}

#[test]
fn b01_only_the_exact_id_of_this_agent() {
    let text = b"[main/sessions/main/target#L2] User: The ferry leaves at dawn\n[main/sessions/main/target0#L2] User: noon\n[main/sessions/main/TARGET#L2] User: dusk\n[main/sessions/main/x-target#L2] User: midnight\n[beta/sessions/beta/target#L2] User: sundays\n";
    let found = read_corpus(text.as_slice(), &refs()).unwrap();
    assert_eq!((found.lines, found.remains), (1, true));
    assert_eq!(removed(&found), [(0, 62)]);
    assert_eq!(found.snippets, [b"User: The ferry leaves at dawn"]);
}

#[test]
fn b29_archive_names() {
    let names = [
        "target",
        "target.jsonl",
        "target.jsonl.deleted.2026-11-17T06-33-10.801Z",
        "target.jsonl.reset.2026-11-17T04-58-33.868Z",
        "target2",
    ];
    let line = |name| format!("[main/sessions/main/{name}#L2] User: the turnstile takes brass\n");
    let text = names.map(line).concat();
    let found = read_corpus(text.as_bytes(), &refs()).unwrap();
    assert_eq!((found.lines, found.removed.len()), (4, 1));
}

#[test]
fn a_survivors_line_that_mentions_the_session_stays_v5() {
    let text = b"[main/sessions/main/other#L2] User: what was main:target about\n";
    let found = read_corpus(text.as_slice(), &refs()).unwrap();
    assert_eq!((found.lines, found.snippets.len()), (0, 0));
}

#[test]
fn lines_without_number_or_indented_give_no_snippet() {
    let text = b"[main:target] User: no number here\n  [main:target#L2] User: indented line\n";
    let found = read_corpus(text.as_slice(), &refs()).unwrap();
    assert_eq!(
        (found.lines, found.snippets.len(), found.remains),
        (2, 0, false)
    );
}

#[test]
fn files_come_in_order_with_what_they_hold() {
    let line = |said: &str| format!("[main/sessions/main/target#L2] {said}\n");
    let one = format!(
        "{}kept\n{}",
        line("User: the second one"),
        line("User: short")
    );
    let two = format!(
        "\r\n{}\u{a0}\n{}",
        line("User: the first one said"),
        line("User: the second one")
    );
    let (_folder, paths) = corpus(&[
        ("b.txt", one.as_bytes()),
        ("none.txt", b"kept\n"),
        ("a.txt", two.as_bytes()),
        ("gone.txt", b""),
    ]);
    fs::remove_file(&paths[3]).unwrap();
    for threads in [0, 1, 2, 7] {
        let scan = scan_corpus(&paths, &refs(), threads);
        assert_eq!(
            scan.snippets,
            [
                b"User: the second one".to_vec(),
                b"User: the first one said".to_vec()
            ]
        );
        let files: Vec<_> = scan
            .files
            .iter()
            .map(|file| (&file.path, file.lines, file.emptied, file.removed.len()))
            .collect();
        assert_eq!(files, [(&paths[0], 2, false, 2), (&paths[2], 2, true, 2)]);
        assert_eq!(scan.files[0].stamp, stamp(&paths[0]).unwrap());
        assert_eq!(scan.failures.len(), 1);
        assert_eq!(scan.failures[0].0, paths[3]);
    }
}

#[test]
fn shared_snippets_stand_in_a_line_that_stays() {
    let text = b"[main/sessions/main/target#L2] User: said by both\n[main/sessions/main/other#L9]  User: said by both \n[main/sessions/main/target#L3] User: said by one\n[main/sessions/main/target#L4] User: said by one\n[main/sessions/main/other#L9] User: said by one, too\nUser: bare line here\n";
    let (_folder, mut paths) = corpus(&[("a.txt", text)]);
    paths.push(paths[0].with_file_name("gone.txt"));
    let snippets = [
        b"User: said by one".to_vec(),
        b"User: said by both".to_vec(),
        b"User: bare line here".to_vec(),
    ];
    assert_eq!(
        shared_snippets(&paths, &refs(), &snippets, 0),
        [false, true, true]
    );
    assert_eq!(shared_snippets(&paths, &refs(), &[], 0), [] as [bool; 0]);
}

#[test]
fn odd_bytes_pass() {
    let text = b"\xff[main:target#L2] x\n[main/sessions/main/target#L2] User: caf\xff\0 and more\r\n[main/sessions/main/target#L2] User: the last line";
    let found = read_corpus(text.as_slice(), &refs()).unwrap();
    assert_eq!(
        found.snippets,
        [
            b"User: caf\xff\0 and more".to_vec(),
            b"User: the last line".to_vec()
        ]
    );
    assert_eq!(removed(&found), [(20, text.len() as u64)]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn exactly_the_lines_with_the_prefix_go(lines in prop::collection::vec((0..4usize, "[a-z ]{0,30}"), 0..20), last in any::<bool>()) {
        let starts = ["[main/sessions/main/target#L2] ", "[main/sessions/main/other#L2] ", "", "\u{a0}"];
        let mut text: String = lines.iter().flat_map(|(start, said)| [starts[*start], said, "\n"]).collect();
        if !last { text.pop(); }
        let found = read_corpus(text.as_bytes(), &refs()).unwrap();
        let mut kept = text.clone().into_bytes();
        for range in found.removed.iter().rev() {
            kept.drain(usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap());
        }
        let expected: String = text.split_inclusive('\n').filter(|line| !line.starts_with(starts[0])).collect();
        prop_assert_eq!(found.remains, !expected.trim().is_empty());
        prop_assert_eq!(String::from_utf8(kept).unwrap(), expected);
        prop_assert_eq!(found.lines, text.split_inclusive('\n').filter(|line| line.starts_with(starts[0])).count() as u64);
    }
}
