//! Which forms of a snippet count (V3, V4), and which lines only shared snippets reach (V20).
#![allow(clippy::unwrap_used, clippy::expect_used)]

use cenotaph_core::normalise::{normalised, trim};
use cenotaph_core::snippets::{Snippets, naive};
use proptest::prelude::*;
use proptest::sample::{Index, select};

#[test]
fn nothing_long_enough() {
    let snippets = Snippets::build(&[b"eleven unit".to_vec(), Vec::new()], &[]);
    assert!(snippets.is_empty());
    assert!(!snippets.matches(b"eleven unit"));
    assert!(!snippets.only_shared(b"eleven unit"));
    assert!(!Snippets::build(&[b"twelve units".to_vec()], &[]).is_empty());
}

/// Labels, blanks, escapes and marks, so that every form of V3 occurs.
fn spoken() -> impl Strategy<Value = String> {
    let piece = select(vec![
        "User: ",
        "Assistant: ",
        "user: ",
        "thanks",
        " ",
        " ",
        "kiln",
        "a*b",
        "[x]",
        "é",
        "ü",
        "日",
        "—",
        "\\",
        "ok",
        "Å",
        "😀",
    ]);
    prop::collection::vec(piece, 1..12).prop_map(|pieces| pieces.concat())
}

/// What people and programs do to a quotation.
fn respelled(text: &str, how: usize) -> String {
    use unicode_normalization::UnicodeNormalization;
    let escaped = |text: &str| -> String {
        let escape = |c: char| [c.is_ascii_punctuation().then_some('\\'), Some(c)];
        text.chars().flat_map(escape).flatten().collect()
    };
    let unlabelled = text.split_once(": ").map_or(text, |(_, words)| words);
    match how {
        0 => text.nfd().collect(),
        1 => text.replace(' ', "  "),
        2 => escaped(text),
        3 => unlabelled.to_owned(),
        4 => escaped(unlabelled).nfd().collect(),
        5 => text.replace(' ', "\u{A0}\t"),
        6 => text.to_lowercase(),
        7 => text.chars().skip(1).collect(),
        8 => text.replace(' ', "\r"),
        _ => text.to_owned(),
    }
}

fn conversation() -> impl Strategy<Value = (Vec<Vec<u8>>, Vec<bool>, Vec<u8>)> {
    let ending = select(vec!["\n", "\n", "\r\n", " \n", "\t", "x"]);
    let opening = select(vec!["", "- ", "  - ", "> ", "\\"]);
    let piece = (opening, any::<Index>(), 0_usize..12, spoken(), ending);
    let snippets = prop::collection::vec((spoken(), any::<bool>()), 1..8);
    (snippets, prop::collection::vec(piece, 0..14)).prop_map(|(snippets, pieces)| {
        let mut block = String::new();
        for (opening, index, how, filler, ending) in pieces {
            let (text, _) = index.get(&snippets);
            let quote = respelled(trimmed(text), how);
            block += &[opening, &filler, &quote, ending].concat();
        }
        let texts = snippets
            .iter()
            .map(|(text, _)| trimmed(text).as_bytes().to_vec());
        let shared = snippets.iter().map(|(_, shared)| *shared).collect();
        (texts.collect(), shared, block.into_bytes())
    })
}

fn trimmed(text: &str) -> &str {
    std::str::from_utf8(trim(text.as_bytes())).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn snippets_in_every_form((texts, shared, block) in conversation()) {
        let snippets = Snippets::build(&texts, &shared);
        let mut found = vec![7];
        snippets.matching_lines(&block, &mut found);
        prop_assert_eq!(found[0], 7, "what was there stays");
        prop_assert_eq!(&found[1..], naive::snippet_lines(&texts, &block));
        for line in block.split_inclusive(|&byte| byte == b'\n') {
            prop_assert_eq!(snippets.matches(line), naive::matches(&texts, line));
            let only_shared = naive::only_shared(&texts, &shared, line);
            prop_assert_eq!(snippets.only_shared(line), only_shared);
        }
    }
}

/// Public report A03: case is not folded, so no offset points into another text.
#[test]
fn a03_case_folding_is_not_matching() {
    let stored = ["İstanbul ferry at noon", "STRASSE ist nass heute"];
    let snippets = Snippets::build(&stored.map(|text| text.as_bytes().to_vec()), &[]);
    for (line, hit) in [
        ("the İstanbul ferry at noon.", true),
        ("the i\u{307}stanbul ferry at noon.", false),
        ("Straße ist nass heute", false),
        ("STRASSE ist nass heute", true),
        ("İİİ then User: kept", false),
    ] {
        assert_eq!(snippets.matches(line.as_bytes()), hit, "{line}");
    }
}

fn one(snippet: &str) -> Snippets {
    Snippets::build(&[snippet.as_bytes().to_vec()], &[])
}

#[test]
fn v3_other_spellings_of_a_quotation_match() {
    let snippets = one("User: the café opens at *nine* [sharp]");
    for line in [
        "User: the café opens at *nine* [sharp]",
        "- she said the café opens at *nine* [sharp], I think",
        "User: the cafe\u{301} opens at *nine* [sharp]\r\n",
        "  User:  the café\topens at *nine* [sharp]",
        r"the café opens at \*nine\* \[sharp\]",
        "> the cafe\u{301} opens  at \\*nine\\* \\[sharp\\]\n",
    ] {
        assert!(snippets.matches(line.as_bytes()), "{line}");
    }
    for line in [
        "the café opens at nine sharp",
        "the cafe opens at *nine* [sharp]",
        "the Café opens at *nine* [sharp]",
        "the café opens at *nine*\n[sharp]",
    ] {
        let mut found = Vec::new();
        snippets.matching_lines(line.as_bytes(), &mut found);
        assert!(found.is_empty(), "{line}");
    }
}

#[test]
fn v3_a_label_is_exact() {
    let line = b"lower case labels are no labels";
    assert!(one("User: lower case labels are no labels").matches(line));
    assert!(one("Assistant: lower case labels are no labels").matches(line));
    assert!(!one("user: lower case labels are no labels").matches(line));
    assert!(!one("User:lower case labels are no labels").matches(line));
    assert!(!one("System: lower case labels are no labels").matches(line));
}

/// What was said holds a backslash: quoted as it is, and as Markdown wants it written.
#[test]
fn v3_a_snippet_that_looks_escaped() {
    let snippets = one(r"User: the path is C:\_old\*.txt I think");
    for line in [
        r"User: the path is C:\_old\*.txt I think",
        r"the path is C:\_old\*.txt  I think",
        r"the path is C:\\\_old\\\*.txt I think",
        r"the path is C:_old*.txt I think",
    ] {
        assert!(snippets.matches(line.as_bytes()), "{line}");
    }
}

#[test]
fn v4_thresholds_are_utf16_units_of_the_stored_text() {
    for (units, stored_form, other_forms) in [
        (11, false, false),
        (12, true, false),
        (13, true, false),
        (23, true, false),
        (24, true, true),
        (25, true, true),
    ] {
        let words: String = "abcdefghi jklmnopqrstuvw".chars().take(units - 6).collect();
        let words = words.trim_end().to_owned() + if words.ends_with(' ') { "x" } else { "" };
        let stored = format!("User: {words}");
        assert_eq!(stored.len(), units);
        let snippets = one(&stored);
        assert_eq!(snippets.matches(stored.as_bytes()), stored_form, "{units}");
        assert_eq!(snippets.matches(words.as_bytes()), other_forms, "{units}");
        let doubled = stored.replace(' ', "  ");
        assert_eq!(snippets.matches(doubled.as_bytes()), other_forms, "{units}");
    }
    // Ten emoji are 40 bytes but 20 units; six are 12 units.
    let emoji = "😀".repeat(6);
    assert!(one(&emoji).matches(format!("so {emoji}!").as_bytes()));
    assert!(!one(&"😀".repeat(5)).matches("😀".repeat(5).as_bytes()));
    let ten = format!("User: {}", "😀".repeat(8));
    assert!(!one(&ten).matches("😀".repeat(8).as_bytes()), "22 units");
}

/// 24 units as stored, under 12 once normalised: a needle as it stands and nothing else.
#[test]
fn v4_a_form_that_shrinks_below_the_minimum_is_no_needle() {
    let stored = format!("User: a{}b", "\t".repeat(20));
    let snippets = one(&stored);
    assert!(snippets.matches(format!("- {stored}\n").as_bytes()));
    assert!(!snippets.matches(b"User: a b"));
    assert!(!snippets.matches(b"User:  a b"));
    let stored = format!("Assistant: a{}b", "\t".repeat(20));
    let snippets = one(&stored);
    assert!(snippets.matches(b"so: Assistant: a b"), "14 units");
    assert!(snippets.matches(b"so: Assistant:  a b"));
    assert!(!snippets.matches(b"so: a b"), "3 units");
}

#[test]
fn v3_a_carriage_return_inside_a_line_is_a_blank() {
    let snippets = one("User: plain words, nothing else in them");
    let block =
        b"- plain words,\rnothing else in them\r\nmore\r\nplain words,\r nothing else in them";
    let mut found = Vec::new();
    snippets.matching_lines(block, &mut found);
    assert_eq!(found, [0, 43]);
}

#[test]
fn v20_only_shared_looks_at_every_snippet_in_every_form() {
    let stored = [
        "User: please remember to water the plants",
        "Assistant: please remember to water the plants",
        "the plants are on the balcony",
    ];
    let build =
        |shared: [bool; 3]| Snippets::build(&stored.map(|text| text.as_bytes().to_vec()), &shared);
    let line = b"- please  remember to water the plants\n";
    assert!(build([true, true, false]).only_shared(line));
    assert!(
        !build([true, false, true]).only_shared(line),
        "both have this form"
    );
    assert!(!build([false, false, false]).only_shared(line));
    assert!(build([true, true, true]).only_shared(line));
    let both = b"please remember to water the plants; the plants are on the balcony";
    assert!(!build([true, true, false]).only_shared(both));
    assert!(!build([true, true, true]).only_shared(b"nothing of the sort"));
    assert!(!build([true, true, false]).only_shared(b"nothing of the sort"));
    let missing = Snippets::build(&[stored[2].as_bytes().to_vec()], &[]);
    assert!(!missing.only_shared(both), "no flag, not shared");
}

#[test]
fn a_shared_duplicate_does_not_hide_an_unshared_one() {
    let text = b"User: the same words, said twice".to_vec();
    let snippets = Snippets::build(&[text.clone(), text.clone()], &[true, false]);
    assert!(snippets.matches(&text));
    assert!(!snippets.only_shared(&text));
}

#[test]
fn invalid_utf8_is_matched_byte_for_byte() {
    let stored = b"User: broken \xFF\xFE bytes in here".to_vec();
    let snippets = Snippets::build(std::slice::from_ref(&stored), &[]);
    assert!(snippets.matches(&stored));
    assert!(snippets.matches(b"broken \xFF\xFE  bytes in here"));
    assert!(!snippets.matches(b"broken \xEF\xBF\xBD bytes in here"));
}

#[test]
fn block_and_line_agree_at_every_offset_of_a_spelling() {
    let snippets = one("User: the kiln is hot today, they say");
    let plain = b"nothing to see in this line of notes\n";
    for padding in 0..140 {
        let line = [
            &vec![b'.'; padding][..],
            b" the kiln is hot  today, they say\r\n",
        ]
        .concat();
        let block = [&plain[..], &line, plain, &line].concat();
        let mut found = Vec::new();
        snippets.matching_lines(&block, &mut found);
        let second = 2 * plain.len() + line.len();
        assert_eq!(found, [plain.len(), second], "{padding}");
        assert_ne!(normalised(&line), trim(&line));
    }
}
