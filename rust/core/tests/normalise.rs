//! The normalised form against an obvious one, and the ECMAScript white space against its definition.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::borrow::Cow;

use cenotaph_core::normalise::{normalised, space_len, trim, trim_end, trim_start, utf16_len};
use proptest::prelude::*;
use unicode_normalization::UnicodeNormalization;

/// `WhiteSpace` and `LineTerminator` of ECMA-262: what `\s` and `trim` mean there.
fn is_space(character: char) -> bool {
    matches!(
        character,
        '\t' | '\n' | '\u{B}' | '\u{C}' | '\r' | ' ' | '\u{A0}' | '\u{1680}' | '\u{2000}'
            ..='\u{200A}'
                | '\u{2028}'
                | '\u{2029}'
                | '\u{202F}'
                | '\u{205F}'
                | '\u{3000}'
                | '\u{FEFF}'
    )
}

fn obvious(text: &str) -> String {
    let mut shown = String::new();
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let escaped = characters.next_if(|next| character == '\\' && next.is_ascii_punctuation());
        shown.push(escaped.unwrap_or(character));
    }
    let composed: String = shown.nfc().collect();
    let words = composed.split(is_space).filter(|word| !word.is_empty());
    words.collect::<Vec<&str>>().join(" ")
}

/// Characters that some step touches, and neighbours that none does.
fn character() -> impl Strategy<Value = char> {
    let blanks = "\t\r\u{B}\n\u{A0}\u{3000}\u{FEFF}\u{2003}\u{85}\u{1F}";
    let marks = "\u{301}\u{308}\u{338}\u{323}\u{3099}\u{11A8}";
    let wide = "éüяか日각가\u{2126}\u{37E}\u{2000}😀—İ";
    let one_of = |text: &str| prop::sample::select(text.chars().collect::<Vec<char>>());
    prop_oneof![
        4 => one_of("aeox=*.1"),
        3 => Just(' '),
        2 => Just('\\'),
        2 => one_of(blanks),
        2 => one_of(marks),
        2 => one_of(wide),
        1 => any::<char>(),
    ]
}

fn text() -> impl Strategy<Value = String> {
    let short = prop::collection::vec(character(), 0..12);
    // Long enough for the vector loop and its ends.
    let middle = prop::collection::vec(character(), 0..6);
    let long = (0_usize..140, middle, 0_usize..140).prop_map(|(before, middle, after)| {
        let plain = ['p', 'l', ' ', 'n'].into_iter().cycle();
        let start = plain.clone().take(before);
        start.chain(middle).chain(plain.take(after)).collect()
    });
    prop_oneof![short, long].prop_map(|characters: Vec<char>| characters.into_iter().collect())
}

fn broken_bytes(bytes: &[u8]) -> Vec<u8> {
    let chunks = bytes.utf8_chunks();
    chunks.flat_map(|chunk| chunk.invalid().to_vec()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn equals_the_obvious_form(text in text()) {
        let form = normalised(text.as_bytes());
        prop_assert_eq!(String::from_utf8_lossy(&form), obvious(&text));
    }

    #[test]
    fn borrows_exactly_when_trimming_is_all(text in text()) {
        let form = normalised(text.as_bytes());
        let trimmed = trim(text.as_bytes());
        prop_assert_eq!(matches!(form, Cow::Borrowed(_)), &*form == trimmed);
    }

    #[test]
    fn trims_as_ecmascript_does(text in text()) {
        let bytes = text.as_bytes();
        prop_assert_eq!(trim(bytes), text.trim_matches(is_space).as_bytes());
        prop_assert_eq!(trim_start(bytes), text.trim_start_matches(is_space).as_bytes());
        prop_assert_eq!(trim_end(bytes), text.trim_end_matches(is_space).as_bytes());
    }

    #[test]
    fn counts_what_javascript_counts(text in text()) {
        prop_assert_eq!(utf16_len(text.as_bytes()), text.encode_utf16().count());
    }

    #[test]
    fn broken_text_keeps_its_broken_bytes(
        pieces in prop::collection::vec((text(), prop::collection::vec(0x80_u8..=0xFF, 0..4)), 1..4),
    ) {
        let joined = pieces.iter().flat_map(|(text, raw)| [text.as_bytes(), raw].concat());
        let bytes: Vec<u8> = joined.collect();
        let form = normalised(&bytes);
        prop_assert_eq!(broken_bytes(&form), broken_bytes(&bytes));
        if let Ok(text) = std::str::from_utf8(&bytes) {
            prop_assert_eq!(String::from_utf8_lossy(&form), obvious(text));
        }
    }
}

#[test]
fn white_space_is_the_ecmascript_set() {
    for character in (0..=0x10_FFFF).filter_map(char::from_u32) {
        let mut buffer = [0; 4];
        let text = character.encode_utf8(&mut buffer).as_bytes();
        let expected = if is_space(character) { text.len() } else { 0 };
        assert_eq!(space_len(text), expected, "U+{:04X}", u32::from(character));
    }
    assert_eq!(space_len(b""), 0);
    assert_eq!(space_len(b"\xE2\x80"), 0, "cut in the middle");
}

/// Guards the list of characters that are spared the full check: between a base letter and a mark on
/// either side, every character must come out as the Unicode tables say.
#[test]
fn every_character_is_normalised_as_the_tables_say() {
    // Planes 3 and above hold ideographs, tags and private use: nothing composes there.
    for character in (0..0x3_0000).filter_map(char::from_u32) {
        for text in [
            format!("e{character}e"),
            format!("{character}\u{301}"),
            format!("\u{AC00}{character}\u{323}\u{3099}"),
        ] {
            let form = normalised(text.as_bytes());
            let form = String::from_utf8_lossy(&form);
            assert_eq!(form, obvious(&text), "U+{:04X}", u32::from(character));
        }
    }
}

#[test]
fn removes_what_markdown_would_not_show() {
    let form = |text: &str| String::from_utf8(normalised(text.as_bytes()).into_owned()).unwrap();
    assert_eq!(form(r"a\_b \*c\* \[d\]"), "a_b *c* [d]");
    assert_eq!(form(r"C:\dir stays"), r"C:\dir stays");
    assert_eq!(
        form(r"an escaped \\* backslash"),
        r"an escaped \* backslash"
    );
    assert_eq!(
        form("  two  blanks\t\u{A0}and a tab \r\n"),
        "two blanks and a tab"
    );
    assert_eq!(form("cafe\u{301}"), "café");
    assert_eq!(
        form("\\=\u{338}"),
        "≠",
        "what is rendered, not what is typed"
    );
    assert_eq!(form(r"ends in a backslash \"), r"ends in a backslash \");
    assert_eq!(form(" \t "), "");
}

#[test]
fn invalid_bytes_count_one_each() {
    assert_eq!(utf16_len(b"ab\xFFcd"), 5);
    assert_eq!(utf16_len("😀".as_bytes()), 2);
    assert_eq!(utf16_len(b"\xF0\x9F\x98"), 3, "a cut emoji is three bytes");
    assert_eq!(utf16_len(b""), 0);
}
