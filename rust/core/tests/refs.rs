//! How text names a session.

#![allow(clippy::unwrap_used)]

use std::fmt::Write;

use cenotaph_core::refs::{HookField, HookRow, Refs, corpus_snippet, session_id_of_run};
use proptest::prelude::*;
use sha2::{Digest, Sha256};

fn refs(ids: &[&str], keys: &[&str]) -> Refs {
    let strings = |values: &[&str]| values.iter().map(ToString::to_string).collect::<Vec<_>>();
    Refs::new("main", strings(ids), strings(keys))
}

fn target() -> Refs {
    refs(&["target"], &["agent:main:tele:1"])
}

#[test]
fn what_names_a_session() {
    for text in [
        "main:target",
        "sessions/main/target",
        "a main:target b",
        "[main:target]",
        "/main:target/x",
        "main:sessions/main/target",
        "agent:main:target",
        "agent:main:target:thread",
        "\u{a0}main:target",
        "main:target#L2",
        "main:target;x",
        "main:other main:target",
        "main:main:target",
        "main/sessions/main/target",
        "x\nsessions/main/target\ny",
        "sessions/main/target.jsonl",
        "sessions/main/target\u{3000}x",
        "Session ID: target",
        "see session id:target; x",
        "SESSION ID:\u{a0}target",
        "Session ID: other Session ID: target",
        "\u{e9}Session ID: target",
    ] {
        assert!(target().named_in(text.as_bytes()), "{text:?}");
    }
}

#[test]
fn what_does_not() {
    for text in [
        "",
        "target",
        "main:",
        "main: target",
        "sessions/main/",
        "(main:target)",
        "\"main:target\"",
        "domain:target",
        "xsessions/main/target",
        "main:targets",
        "main:target.",
        "main:target,",
        "main:TARGET",
        "Main:target",
        "main:sessions/target",
        "sessions/beta/target",
        "beta:target",
        "sessions/main/target)",
        "x\u{85}main:target",
        "Session ID: target.",
        "Session ID: target.jsonl",
        "xSession ID: target",
        "_Session ID: target",
        "Session  ID: target",
        "Session ID target",
        "**Session ID**: target",
        "Session ID: ",
    ] {
        assert!(!target().named_in(text.as_bytes()), "{text:?}");
    }
    assert!(!refs(&[], &["k"]).named_in(b"main:target"));
    let blank = refs(&[""], &[""]);
    assert!(blank.is_empty());
    assert!(!blank.named_in(b"main: sessions/main/ Session ID: "));
    assert!(!blank.hook_row(b"- **Session Key**: ").unwrap().selected);
}

#[test]
fn an_agent_called_sessions_overlaps_itself() {
    let odd = Refs::new("sessions", ["target".to_owned()], []);
    assert!(odd.named_in(b"sessions/sessions/sessions/target"));
}

#[test]
fn ids_that_the_rule_cannot_read_are_never_named() {
    for id in ["a:b", "a/b", "a#b", "a;b", "a b"] {
        let text = format!("main:{id} sessions/main/{id}");
        assert!(!refs(&[id], &[]).named_in(text.as_bytes()), "{id}");
    }
}

#[test]
fn long_ids_are_known_by_their_hash() {
    let hashed = |id: &str| {
        let mut line = "[main/sessions/main/session-".to_owned();
        for byte in Sha256::digest(id.as_bytes()) {
            write!(line, "{byte:02x}").unwrap();
        }
        line + "#L1] x"
    };
    let (long, short) = ("x".repeat(97), "x".repeat(96));
    assert!(refs(&[&long], &[]).in_corpus_prefix(hashed(&long).as_bytes()));
    assert!(refs(&[&long], &[]).is_run(long.as_bytes()));
    assert!(!refs(&[&short], &[]).in_corpus_prefix(hashed(&short).as_bytes()));
}

#[test]
fn file_names_reduce_to_ids() {
    let stamp = "2026-11-18T09-00-00.000Z";
    let generation = "00112233445566778899aabbccddeeff";
    for name in [
        "id".to_owned(),
        "id.jsonl".to_owned(),
        format!("id.jsonl.reset.{stamp}"),
        format!("id.jsonl.deleted.{stamp}"),
        format!("id.jsonl.reset.{stamp}.{generation}"),
        format!("id.jsonl.reset.{stamp}.{generation}.zst"),
        format!("id.jsonl.deleted.{stamp}.zst"),
        "id.jsonl.reset.2026-11-18T09-00-00Z".to_owned(),
    ] {
        assert_eq!(session_id_of_run(name.as_bytes()), b"id", "{name}");
        assert!(
            refs(&["id"], &[]).is_run(format!("/a/b/{name}").as_bytes()),
            "{name}"
        );
    }
    for name in [
        ".jsonl".to_owned(),
        "id.jsonl.zst".to_owned(),
        "id.jsonl.reset.".to_owned(),
        "id.jsonl.reset.soon".to_owned(),
        "id.jsonl.reset.2026-11-18".to_owned(),
        format!("id.jsonl.bak.{stamp}"),
        format!("id.jsonl.reset.{stamp}.0011"),
        format!("id.jsonl.reset.{stamp}.{}", generation.to_uppercase()),
        format!("id.jsonl.reset.{stamp}0{generation}"),
        format!(".jsonl.reset.{stamp}"),
    ] {
        assert_eq!(session_id_of_run(name.as_bytes()), name.as_bytes());
        assert!(!refs(&["id"], &[]).is_run(name.as_bytes()), "{name}");
    }
    assert_eq!(
        session_id_of_run(b"a.jsonl.reset.x.jsonl"),
        b"a.jsonl.reset.x"
    );
}

#[test]
fn only_the_prefix_of_a_corpus_line_counts_v5() {
    for line in [
        "[main/sessions/main/target#L2] User: x",
        "[main/sessions/main/target#L2]",
        "  [main:target#L9] x",
        "\u{feff}[main/sessions/main/target#L2] x",
        "[main/sessions/main/target.jsonl#L2] x",
        "[main:target] x",
        "[x main:target] y",
        "[Session ID: target] y",
        "[main/sessions/main/other main:target#L2] x",
    ] {
        assert!(target().in_corpus_prefix(line.as_bytes()), "{line:?}");
    }
    for line in [
        "",
        "[",
        "[main/sessions/main/target#L2",
        "main:target",
        "x [main:target] y",
        "[] main:target",
        "[main/sessions/main/other#L2] main:target",
        "[main/sessions/main/other#L2] [main:target]",
        "[beta/sessions/beta/target#L2] x",
        "[main/sessions/main/target2#L2] x",
        "[main/sessions/main/TARGET#L2] x",
        "[main/sessions/main/other#L2] User: Session ID: target",
        "[[main:target2]main:target] x",
    ] {
        assert!(!target().in_corpus_prefix(line.as_bytes()), "{line:?}");
    }
}

#[test]
fn snippets_of_corpus_lines() {
    let snippet = |line: &str| {
        corpus_snippet(line.as_bytes()).map(|text| String::from_utf8_lossy(text).into_owned())
    };
    assert_eq!(snippet("[m/s#L2] User: a\r\n").as_deref(), Some("User: a"));
    assert_eq!(
        snippet("[m/s#L12]User: a \u{a0}\n").as_deref(),
        Some("User: a")
    );
    assert_eq!(snippet("[#L1] a\tb\rc\n").as_deref(), Some("a\tb\rc"));
    for line in [
        " [m#L2] a",
        "[m#L2]",
        "[m#L2]  \n",
        "[m#L] a",
        "[m#2] a",
        "[mL2] a",
        "[m#L2x] a",
        "[m] x#L2] a",
        "m#L2] a",
        "",
    ] {
        assert_eq!(snippet(line), None, "{line:?}");
    }
}

#[test]
fn rows_of_hook_notes() {
    let row = |line: &str| target().hook_row(line.as_bytes());
    let id = |selected, bold| {
        Some(HookRow {
            field: HookField::Id,
            selected,
            bold,
        })
    };
    let key = |selected, bold| {
        Some(HookRow {
            field: HookField::Key,
            selected,
            bold,
        })
    };
    assert_eq!(row("- **Session ID**: target\r\n"), id(true, true));
    assert_eq!(row("  2) **session id:** `target`"), id(true, true));
    assert_eq!(row("__Session ID__: target; live"), id(true, true));
    assert_eq!(row("* Session ID: target"), id(true, false));
    assert_eq!(row("* Session ID: other"), id(false, false));
    assert_eq!(row("**Session ID**:"), id(false, true));
    assert_eq!(row("- **Session Key**: agent:main:tele:1"), key(true, true));
    assert_eq!(
        row("- **Session Key**: agent:main:tele:12"),
        key(false, true)
    );
    assert_eq!(row("+ Session Key: agent:main:tele:1"), key(true, false));
    for line in [
        "Session ID: target",
        "- Session IDs: target",
        "- x Session ID: target",
        "**Session ID: target",
        "-**Session ID**: target",
        "- *Session ID*: target",
        "",
    ] {
        assert_eq!(row(line), None, "{line:?}");
    }
}

/// Rule R read naively: at every place, both forms, then the run character by character.
fn naive_named_in(ids: &[&str], text: &str) -> bool {
    let is_space = |c: char| c == '\u{feff}' || (c.is_whitespace() && c != '\u{85}');
    let named = |run: &str| {
        let id = session_id_of_run(run.as_bytes());
        !run.is_empty() && ids.iter().any(|name| name.as_bytes() == id || *name == run)
    };
    for (at, _) in text.char_indices() {
        let before = text[..at].chars().next_back();
        if before.is_none_or(|c| "[/:".contains(c) || is_space(c)) {
            for start in ["sessions/main/", "main:"] {
                let Some(rest) = text[at..].strip_prefix(start) else {
                    continue;
                };
                let run = rest
                    .split(|c| is_space(c) || "]#;:/".contains(c))
                    .next()
                    .unwrap();
                if named(run) && !(start == "main:" && rest.starts_with("sessions/")) {
                    return true;
                }
            }
        }
        let is_word = before.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
        let head = text
            .get(at..at + 11)
            .filter(|head| head.eq_ignore_ascii_case("session id:"));
        if !is_word && head.is_some() {
            let value = text[at + 11..].trim_start_matches(is_space);
            let run = value.split(|c| is_space(c) || c == ';').next().unwrap();
            if !run.is_empty() && ids.contains(&run) {
                return true;
            }
        }
    }
    false
}

fn naive_prefix(ids: &[&str], line: &str) -> bool {
    let is_space = |c: char| c == '\u{feff}' || (c.is_whitespace() && c != '\u{85}');
    let inside = line
        .trim_start_matches(is_space)
        .strip_prefix('[')
        .and_then(|rest| rest.split_once(']'));
    inside.is_some_and(|(inside, _)| naive_named_in(ids, inside))
}

fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "[",
        "]",
        "#L2",
        "#L",
        "/",
        ":",
        ";",
        " ",
        "\u{a0}",
        "\u{85}",
        "main",
        "beta",
        "main/sessions/main/",
        "main:",
        "sessions/",
        "sessions/main/",
        "[main/sessions/main/",
        "target",
        "target2",
        "a",
        "target.jsonl",
        "target.jsonl.reset.2026-11-18T09-00-00Z",
        "Session ID:",
        "session id: ",
        "x",
        "é",
        "\n",
    ]);
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rule_is_what_it_says(text in pieces()) {
        let ids = ["target", "a"];
        prop_assert_eq!(refs(&ids, &[]).named_in(text.as_bytes()), naive_named_in(&ids, &text));
    }

    #[test]
    fn prefix_is_what_it_says(start in prop::sample::select(vec!["", " ", "[main/sessions/main/target", "[main/sessions/main/"]), rest in pieces()) {
        let line = format!("{start}{rest}");
        let ids = ["target", "a"];
        prop_assert_eq!(refs(&ids, &[]).in_corpus_prefix(line.as_bytes()), naive_prefix(&ids, &line));
    }

    #[test]
    fn any_bytes_are_taken(text in prop::collection::vec(any::<u8>(), 0..64)) {
        let refs = target();
        let _ = (refs.named_in(&text), refs.in_corpus_prefix(&text), refs.hook_row(&text), refs.is_run(&text));
        prop_assert!(corpus_snippet(&text).is_none_or(|snippet| text.windows(snippet.len()).any(|part| part == snippet)));
    }
}
