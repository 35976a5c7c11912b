//! The scrub where it is ours: units (V1), blocks (V2), hook notes (V6), counts, shared snippets.

#![allow(clippy::unwrap_used)]

mod common;

use std::io::{self, Read};

use cenotaph_core::refs::Refs;
use cenotaph_core::residue::{Needle, Needles};
use cenotaph_core::scrub::{Scrubber, scan_files};
use cenotaph_core::snippets::Snippets;
use cenotaph_core::walk::MemoryFile;
use common::{E, K, L, S, check, scan, scrubber, scrubber_for, set, strings};

#[test]
fn v1_lineage_and_blank_lines_between_stacked_markers() {
    let scrub = check(
        &format!("a\n{L}{K}\n{L}\n{E}{L}\n- shared\nb\n"),
        "a\nb\n",
        2,
        0,
    );
    assert_eq!(scrub.stacked, ["clean"]);
}

#[test]
fn v1_a_block_between_markers_parts_the_units() {
    check(
        &format!("{K}- clean\n{E}- secret\n"),
        &format!("{K}- clean\n"),
        1,
        0,
    );
    check(
        &format!("{E}- secret\n\n{K}- clean\n"),
        &format!("\n{K}- clean\n"),
        1,
        0,
    );
    check(
        &format!("{E}# Heading\n{K}- clean\n"),
        &format!("# Heading\n{K}- clean\n"),
        1,
        0,
    );
}

#[test]
fn v1_markers_that_lost_every_line_go_uncounted() {
    check(
        &format!("{K}- {S}\n\n  {S}\n\n- next\n"),
        "\n- next\n",
        0,
        2,
    );
    check(
        &format!("{K}```\n{S}\n```\n"),
        &format!("{K}```\n```\n"),
        0,
        1,
    );
    check(
        &format!("{K}- Session ID: target; x\n  detail\n- next\n"),
        "- next\n",
        1,
        0,
    );
    check(&format!("{K}- one\n  {S}\n"), &format!("{K}- one\n"), 0, 1);
}

#[test]
fn v1_markers_of_nothing_go_with_the_line_that_kept_them_from_labelling_a_stranger() {
    check(
        &format!("{K}\n## {S}\n- stranger\n"),
        "\n- stranger\n",
        0,
        1,
    );
    check(
        &format!("{K}\n## Heading\n- stranger\n"),
        &format!("{K}\n## Heading\n- stranger\n"),
        0,
        0,
    );
    check(
        &format!("x\n{L}{K}## agent:main:target\nsecret\nSession ID: other\n"),
        "x\nSession ID: other\n",
        1,
        0,
    );
}

#[test]
fn v2_what_an_entry_never_takes() {
    for next in [
        "# H\n",
        "---\n",
        "* * *\n",
        "<!-- openclaw:dreaming:diary:end -->\n",
        "- sibling\n",
        "+ sibling\n",
        "plain\n",
    ] {
        check(&format!("{E}- secret\n{next}"), next, 1, 0);
    }
    for next in ["# H\n", "***\n", "<!-- openclaw:dreaming:diary:end -->\n"] {
        check(&format!("{E}{next}"), next, 1, 0);
        check(&format!("{E}\n{next}"), &format!("\n{next}"), 1, 0);
        check(&format!("{E}secret\n{next}"), next, 1, 0);
        check(&format!("{E}> secret\n{next}"), next, 1, 0);
        check(&format!("{E}<div>\n{next}"), next, 1, 0);
    }
}

#[test]
fn v2_list_items() {
    check(
        &format!("{E}1. secret\n   more\n2. other\n"),
        "2. other\n",
        1,
        0,
    );
    check(
        &format!("{E}10) secret\n\n    child\n\n   no child\n"),
        "\n   no child\n",
        1,
        0,
    );
    check(&format!("{E}-\tsecret\n\n    child\nx\n"), "x\n", 1, 0);
    check(
        &format!("{E}- secret\n  ```\n  code\n\n  # code\n  ```\n- other\n"),
        "- other\n",
        1,
        0,
    );
    check(
        &format!("{E}- secret\n  - child\n    - grandchild\n - sibling\n"),
        " - sibling\n",
        1,
        0,
    );
    check(&format!("{E}-\n  secret\nx\n"), "x\n", 1, 0);
}

#[test]
fn v2_paragraphs() {
    check(
        &format!("{E}secret\n  - detail\n  - detail\n- other\n"),
        "- other\n",
        1,
        0,
    );
    check(&format!("{E}secret\n  - detail\nplain\n"), "plain\n", 1, 0);
    check(
        &format!("{E}secret\n    hanging\nlazy\n2. lazy\n1. list\n"),
        "1. list\n",
        1,
        0,
    );
    check(&format!("{E}secret\n===\nplain\n"), "plain\n", 1, 0);
    check(&format!("{E}secret\n---\nplain\n"), "plain\n", 1, 0);
    check(
        &format!("{E}| a | b |\n|---|---|\n| secret | c |\n\nx\n"),
        "\nx\n",
        1,
        0,
    );
}

#[test]
fn v2_fences_quotes_code_and_html() {
    check(
        &format!("{E}~~~~ sh\nsecret\n~~~\n```\n~~~~~ \nx\n"),
        "x\n",
        1,
        0,
    );
    check(
        &format!("{E}```\nsecret\n\n{K}- clean\n"),
        &format!("{K}- clean\n"),
        1,
        0,
    );
    check(&format!("{E}```\nsecret\n"), "", 1, 0);
    check(&format!("{E}> secret\n> more\nlazy\n\nx\n"), "\nx\n", 1, 0);
    check(&format!("{E}    secret\n\n    code\n\nx\n"), "\nx\n", 1, 0);
    check(
        &format!("{E}<!-- secret\n\n# no heading -->\nx\n"),
        "x\n",
        1,
        0,
    );
    check(&format!("{E}<!-- trigger: secret -->\nx\n"), "x\n", 1, 0);
    check(&format!("{E}<pre>\n\nsecret\n</pre>\nx\n"), "x\n", 1, 0);
    check(&format!("{E}<details>\nsecret\n\nx\n"), "\nx\n", 1, 0);
}

#[test]
fn v2_a_fence_around_the_marker_is_not_the_entrys() {
    let text = format!("- item\n  ```\n  {E}  - secret\n  ```\n  # after\n");
    check(&text, "- item\n  ```\n  ```\n  # after\n", 1, 0);
    check(
        &format!("```\n{E}~~~\nsecret\n```\nx\n"),
        "```\n```\nx\n",
        1,
        0,
    );
}

#[test]
fn v6_forms_of_the_row() {
    for row in [
        "- **Session ID**: target",
        "* **Session ID:** target",
        "**Session ID**: target",
        "1. __session id__:   `target`; live",
        "  - **Session ID**: target",
    ] {
        check(
            &format!("x\n## Note\nsecret\n{row}\n### Summary\nsecret\n## Next\ny\n"),
            "x\n## Next\ny\n",
            1,
            0,
        );
    }
    for row in [
        "- **Session ID**: target2",
        "- **Source ID**: target",
        "see **Session ID**: target",
        "**Session ID** target",
    ] {
        let text = format!("## Note\nx\n{row}\n");
        check(&text, &text, 0, 0);
    }
}

#[test]
fn v6_counts_inside_the_note_are_taken_back() {
    let text = format!(
        "{S}\n## Note\n{E}- a\n{K}{E}- b\n\n{S}\n- **Session ID**: target\n{S}\n{E}- c\n## Next\n{E}- d\n"
    );
    let scrub = check(&text, "## Next\n", 2, 1);
    assert!(scrub.stacked.is_empty());
}

#[test]
fn v6_session_key_alone() {
    let note =
        "# Note\n\n- **Session Key**: agent:main:tele:1\n- **Source**: x\n\n## Summary\nsecret\n";
    check(note, "", 1, 0);
    check(&format!("a\n{note}# Next\nb\n"), "a\n# Next\nb\n", 1, 0);
    check(&note.replace("**", ""), "", 1, 0);
    let other = note.replace("tele:1", "tele:11");
    check(&other, &other, 0, 0);
}

#[test]
fn v6_session_id_row_overrules_the_key() {
    let note = "# Note\n\n- **Session Key**: agent:main:tele:1\n- **Session ID**: other\n\n## Summary\nkept\n";
    check(note, note, 0, 0);
    let note =
        "# Note\n\n- **Session Key**: agent:main:tele:1\n- Session ID: other\n\n## Summary\nkept\n";
    check(note, note, 0, 0);
    let both =
        "# Note\n- **Session Key**: agent:main:tele:1\n- **Session ID**: target\nsecret\n# Next\n";
    check(both, "# Next\n", 1, 0);
}

#[test]
fn v6_nested_notes_known_by_key() {
    check(
        "# A\n- **Session Key**: agent:main:tele:1\n## B\n- **Session Key**: agent:main:tele:1\nx\n## C\ny\n# D\n",
        "# D\n",
        1,
        0,
    );
    check(
        "# A\nx\n## B\n- **Session Key**: agent:main:tele:1\nsecret\n## C\ny\n",
        "# A\nx\n## C\ny\n",
        1,
        0,
    );
}

#[test]
fn v6_under_no_heading_the_run_of_lines_goes() {
    check(
        "intro\n\n- **Source**: x\n- **Session ID**: target\n\nsecret\n# Next\n",
        "intro\n\n# Next\n",
        1,
        0,
    );
    check(
        &format!("{K}- clean\n\n- **Session ID**: target\nsecret\n- **Session ID**: other\nkept\n"),
        &format!("{K}- clean\n\n- **Session ID**: other\nkept\n"),
        1,
        0,
    );
    check("- **Session ID**: target\nsecret", "", 1, 0);
}

#[test]
fn v6_heading_behind_a_bom_and_in_a_fence() {
    check(
        "\u{feff}# Session\n\n- **Session ID**: target\n\n## Summary\nsecret\n",
        "",
        1,
        0,
    );
    check(
        "# Session\n- **Session ID**: target\n```\n# code\n```\nsecret\n# Next\n",
        "# Next\n",
        1,
        0,
    );
}

#[test]
fn v6_a_removed_row_says_nothing() {
    let text = format!(
        "# Note\n- **Session Key**: agent:main:tele:1\n- **Session ID**: other {S}\n# Next\n"
    );
    check(&text, "# Next\n", 1, 0);
}

#[test]
fn lines_that_end_a_section_may_start_one() {
    check(
        "# agent:main:target\nx\nSession ID: target\ny\n## z\n",
        "## z\n",
        2,
        0,
    );
    check(
        "- Session ID: target; a\n- Session ID: target; b\n  c\n- d\n",
        "- d\n",
        2,
        0,
    );
}

#[test]
fn an_entry_reaches_past_the_section_around_its_marker() {
    check(
        &format!("# agent:main:target\n{E}- Session ID: other; secret\n  more\nkept\n"),
        "kept\n",
        1,
        0,
    );
}

#[test]
fn shared_snippets_are_told_apart_by_line_number() {
    let refs = Refs::new("main", [], []);
    let texts = [
        b"User: see you at noon".to_vec(),
        b"User: the vault is open".to_vec(),
    ];
    let snippets = Snippets::build(&texts, &[true, false]);
    let scrubber = Scrubber::new(refs, set(&[]), set(&[]), snippets);
    let text = b"a\nUser: see you at noon\nUser: see you at noon, User: the vault is open\n\nUser: see you at noon\n";
    let (kept, scrub) = scan(&scrubber, text);
    assert_eq!(kept, b"a\n\n");
    assert_eq!(scrub.shared_lines, [2, 5]);
    assert_eq!(scrub.lines, 3);
}

/// What earlier runs removed is known as hashes, in every spelling, wherever the line is.
#[test]
fn what_was_erased_before_goes_again() {
    let said = "the \"violet\" mongoose of forty-two";
    let needles = Needles::new(vec![Needle::Text(said.as_bytes().to_vec())]);
    let erased = Needles::from_shingles(&[needles.shingles(b"key")], b"key").unwrap();
    let scrubber = scrubber_for(&["User: another thing that was said"]).with_erased(erased);
    let quoted = serde_json::to_string(said).unwrap();
    let text = format!(
        "a\n> {said}\nUser: another thing that was said\n<!-- openclaw-memory-promotion:clean -->\n- {said} {said}\nb {quoted}\nc"
    );
    let (kept, found) = scan(&scrubber, text.as_bytes());
    assert_eq!(kept, b"a\nc");
    assert_eq!(found.lines, 4);
    assert!(found.shared_lines.is_empty());
    let near = format!("a\n{}\n", said.replace("forty", "fifty"));
    assert!(scan(&scrubber, near.as_bytes()).1.removed.is_empty());
}

#[test]
fn nothing_selected_removes_nothing() {
    let refs = Refs::new("main", [], []);
    let nobody = Scrubber::new(refs, set(&[]), set(&["k1"]), Snippets::build(&[], &[]));
    let text = format!("# agent:main:target\r\n{E}- x\n{S}\n- **Session ID**: target");
    assert_eq!(nobody.scrub_text(text.as_bytes()), None);
    assert!(nobody.refs().is_empty() && nobody.snippets().is_empty());
}

#[test]
fn an_agent_is_named_exactly() {
    let refs = Refs::new("ma.n", strings(&["target"]), []);
    let odd = Scrubber::new(refs, set(&[]), set(&[]), Snippets::build(&[], &[]));
    assert_eq!(odd.scrub_text(b"# main:target\nx\n"), None);
    assert_eq!(odd.scrub_text(b"# ma.n:target\nx\n").unwrap().0, b"");
}

#[test]
fn a_reader_that_fails_is_an_error() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::from_raw_os_error(5))
        }
    }
    assert_eq!(scrubber().scan(Broken).unwrap_err().raw_os_error(), Some(5));
}

#[test]
fn files_are_scanned_in_order_and_a_failure_is_one_result() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["a.md", "gone.md", "b.md"];
    std::fs::write(folder.path().join("a.md"), format!("{E}- x\n")).unwrap();
    std::fs::write(folder.path().join("b.md"), "plain\n").unwrap();
    let files = names.map(|name| MemoryFile {
        relative: name.to_owned(),
        path: folder.path().join(name),
    });
    for threads in [0, 1, 3] {
        let results = scan_files(&files, &scrubber(), threads);
        let entries: Vec<_> = results
            .iter()
            .map(|(scrub, _)| scrub.as_ref().ok().map(|scrub| scrub.entries))
            .collect();
        assert_eq!(entries, [Some(1), None, Some(0)]);
        assert_eq!(
            results[2].1.unwrap(),
            cenotaph_core::replace::stamp(&files[2].path).unwrap()
        );
        assert!(results[1].1.is_none());
    }
}

#[test]
fn b02_neighbours_stay() {
    check(
        &format!(
            "# Long-term\n\n{E}- The ferry bell rings.\n  The second ring.\n{K}- Teodric prefers rye.\nA line typed by hand.\n<!-- openclaw-memory-promotion:k2 -->\n"
        ),
        &format!("# Long-term\n\n{K}- Teodric prefers rye.\nA line typed by hand.\n"),
        2,
        0,
    );
}

#[test]
fn b11_sections_of_a_daily_note() {
    check(
        "# 2026-11-05\n\n## Morning - Session ID: target\n\nx\n\n### detail\n- y\n\n## Evening - Session ID: target0\n\nRye.\n\n# Other\nkept\n",
        "# 2026-11-05\n\n## Evening - Session ID: target0\n\nRye.\n\n# Other\nkept\n",
        1,
        0,
    );
    check(
        "- from Session ID: target; a heron\n  stood\n- from Session ID: target0; rye\n- plain\n",
        "- from Session ID: target0; rye\n- plain\n",
        1,
        0,
    );
}
