//! The forms in which programs store a text or an embedding.

use std::fmt::Write as _;

use super::Needle;

/// Shortest text, term and raw needle, in bytes.
const SHORTEST_TEXT: usize = 12;
const SHORTEST_RAW: usize = 16;
const SHORTEST_VECTOR: usize = 16;

/// Bytes of a term that are looked for.
const WORD: usize = 8;

/// Bytes of a fragment, and of the shortest text that is cut into some.
const FRAGMENT: usize = 32;
const SHORTEST_CUT: usize = 48;

/// Bytes of an embedding that are looked for.
const FLOATS: usize = 64;
const INTEGERS: usize = 32;

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Punctuation that Markdown lets a writer escape, and the part of it that means something anywhere in a line.
const MARKDOWN: &[u8] = b"\\`*_{}[]()#+-.!|<>~";
const MARKDOWN_INLINE: &[u8] = b"\\`*_[]";

/// How the bytes of a window came from the needle. The numbers are part of shingles: never change one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    Utf8 = 0,
    Utf16Le = 1,
    Utf16Be = 2,
    Json = 3,
    JsonTwice = 4,
    Markdown = 5,
    Base64 = 6,
    Raw = 7,
    Float32 = 8,
    Float64 = 9,
    Int8 = 10,
    Word = 11,
}

/// Where a window counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Everywhere.
    Whole,
    /// Where no live content is.
    Fragment,
    /// In full-text tables, and where no live content is.
    Word,
}

/// Bytes to look for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) kind: Kind,
    pub(super) class: Class,
    pub(super) bytes: Vec<u8>,
}

/// Whether the needle is long enough to be looked for at all.
pub(super) fn is_searchable(needle: &Needle) -> bool {
    match needle {
        Needle::Text(text) => text.len() >= SHORTEST_TEXT,
        Needle::Word(term) => term.len() >= WORD,
        Needle::Raw(bytes) => bytes.len() >= SHORTEST_RAW,
        Needle::Vector(_) => !windows(needle).is_empty(),
    }
}

/// All that is looked for on behalf of a needle, each window once.
pub(super) fn windows(needle: &Needle) -> Vec<Window> {
    let mut found = Distinct::default();
    match needle {
        Needle::Text(text) => spell(text, &mut found),
        Needle::Word(term) => {
            let tail = &term[term.len().saturating_sub(WORD)..];
            found.add(Kind::Word, Class::Word, tail.to_vec());
        }
        Needle::Raw(bytes) => found.add(Kind::Raw, Class::Whole, bytes.clone()),
        Needle::Vector(values) => embed(values, &mut found),
    }
    found.0
}

#[derive(Default)]
struct Distinct(Vec<Window>);

impl Distinct {
    fn add(&mut self, kind: Kind, class: Class, bytes: Vec<u8>) {
        let known = |window: &Window| window.class == class && window.bytes == bytes;
        if !self.0.iter().any(known) {
            self.0.push(Window { kind, class, bytes });
        }
    }

    fn whole(&mut self, kind: Kind, bytes: Vec<u8>) {
        self.add(kind, Class::Whole, bytes);
    }
}

fn spell(text: &[u8], found: &mut Distinct) {
    found.whole(Kind::Utf8, text.to_vec());
    let mut cut = vec![text.to_vec()];
    if let Ok(text) = std::str::from_utf8(text) {
        let units = || text.encode_utf16();
        found.whole(Kind::Utf16Le, units().flat_map(u16::to_le_bytes).collect());
        found.whole(Kind::Utf16Be, units().flat_map(u16::to_be_bytes).collect());
        for escape in [json, json_ascii] {
            let once = escape(text);
            found.whole(Kind::JsonTwice, escape(&once).into_bytes());
            found.whole(Kind::Json, once.clone().into_bytes());
            cut.push(once.into_bytes());
        }
    }
    found.whole(Kind::Markdown, markdown(text, MARKDOWN));
    found.whole(Kind::Markdown, markdown(text, MARKDOWN_INLINE));
    for before in 0..3 {
        let spelled = base64(text, before);
        let url = spelled.iter().map(|&byte| url_safe(byte)).collect();
        found.whole(Kind::Base64, spelled);
        found.whole(Kind::Base64, url);
    }
    for (index, whole) in cut.iter().enumerate() {
        for piece in fragments(whole) {
            let kind = if index == 0 { Kind::Utf8 } else { Kind::Json };
            found.add(kind, Class::Fragment, piece.to_vec());
        }
    }
}

/// Pieces that cover `text`, the last one aligned to its end.
fn fragments(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let is_cut = text.len() >= SHORTEST_CUT;
    let last = is_cut.then(|| &text[text.len() - FRAGMENT..]);
    let pieces = text.chunks_exact(FRAGMENT);
    pieces.take_while(move |_| is_cut).chain(last)
}

/// Inside of a JSON string, as `JSON.stringify` writes it.
fn json(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            '\0'..='\x1f' => push_unit(&mut out, letter as u16),
            _ => out.push(letter),
        }
    }
    out
}

/// The same with everything that is not ASCII as `\u....`.
fn json_ascii(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for letter in json(text).chars() {
        if letter.is_ascii() {
            out.push(letter);
        } else {
            let mut units = [0; 2];
            for &mut unit in letter.encode_utf16(&mut units) {
                push_unit(&mut out, unit);
            }
        }
    }
    out
}

fn push_unit(out: &mut String, unit: u16) {
    // Writing to a String cannot fail.
    let _ = write!(out, "\\u{unit:04x}");
}

fn markdown(text: &[u8], escaped: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 8);
    for &byte in text {
        if escaped.contains(&byte) {
            out.push(b'\\');
        }
        out.push(byte);
    }
    out
}

/// Base64 of `text` when `before` (0 to 2) bytes of a group of three precede it, without the characters at both ends that
/// depend on its neighbours.
fn base64(text: &[u8], before: usize) -> Vec<u8> {
    let mut bits: u32 = 0;
    let mut held = 0;
    let mut out = Vec::with_capacity(text.len() * 4 / 3 + 4);
    for byte in std::iter::repeat_n(&0, before).chain(text) {
        bits = bits << 8 | u32::from(*byte);
        held += 8;
        while held >= 6 {
            held -= 6;
            out.push(BASE64[(bits >> held & 63) as usize]);
        }
    }
    // One byte spoils two characters, two bytes spoil three.
    let spoilt = if before == 0 { 0 } else { before + 1 };
    out.split_off(spoilt)
}

fn url_safe(byte: u8) -> u8 {
    match byte {
        b'+' => b'-',
        b'/' => b'_',
        other => other,
    }
}

fn embed(values: &[f32], found: &mut Distinct) {
    if values.iter().all(|&value| value == 0.0) {
        return;
    }
    let middle = |wanted: usize| {
        let wanted = wanted.min(values.len());
        let start = (values.len() - wanted) / 2;
        &values[start..start + wanted]
    };
    let single = middle(FLOATS / 4).iter();
    let single: Vec<u8> = single.flat_map(|value| value.to_le_bytes()).collect();
    let double = middle(FLOATS / 8).iter();
    let double: Vec<u8> = double
        .flat_map(|&value| f64::from(value).to_le_bytes())
        .collect();
    for (kind, bytes) in [(Kind::Float32, single), (Kind::Float64, double)] {
        if bytes.len() >= SHORTEST_VECTOR && bytes.iter().any(|&byte| byte != 0) {
            found.whole(kind, bytes);
        }
    }
    let integers: Vec<u8> = middle(INTEGERS).iter().map(|&value| int8(value)).collect();
    if says_something(&integers) {
        found.whole(Kind::Int8, integers);
    }
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "a cast of a float saturates, which is what quantisation does"
)]
fn int8(value: f32) -> u8 {
    ((value * 127.0).round() as i8).to_le_bytes()[0]
}

/// Whether quantised values are more than the few small numbers that any table may hold.
fn says_something(integers: &[u8]) -> bool {
    let mut other: Vec<u8> = integers.iter().copied().filter(|&byte| byte != 0).collect();
    let enough = other.len() >= 24 && integers.len() == INTEGERS;
    other.sort_unstable();
    other.dedup();
    enough && other.len() >= 4
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn whole(needle: &Needle, kind: Kind) -> Vec<Vec<u8>> {
        let found = windows(needle).into_iter();
        found
            .filter(|window| window.kind == kind && window.class == Class::Whole)
            .map(|window| window.bytes)
            .collect()
    }

    fn text(text: &str) -> Needle {
        Needle::Text(text.as_bytes().to_vec())
    }

    #[test]
    fn plain_text_has_no_escaped_forms() {
        let plain = text("nothing to escape");
        assert_eq!(whole(&plain, Kind::Utf8), [b"nothing to escape"]);
        assert!(whole(&plain, Kind::Json).is_empty());
        assert!(whole(&plain, Kind::JsonTwice).is_empty());
        assert!(whole(&plain, Kind::Markdown).is_empty());
    }

    #[test]
    fn json_and_json_in_json() {
        let quoted = text("say \"caf\u{e9}\"\t\u{1}\u{1F600}");
        let once = whole(&quoted, Kind::Json);
        let expected = [
            "say \\\"caf\u{e9}\\\"\\t\\u0001\u{1F600}",
            "say \\\"caf\\u00e9\\\"\\t\\u0001\\ud83d\\ude00",
        ];
        assert_eq!(once, expected.map(|text| text.as_bytes().to_vec()));
        let twice = whole(&quoted, Kind::JsonTwice);
        assert_eq!(
            twice[1],
            br#"say \\\"caf\\u00e9\\\"\\t\\u0001\\ud83d\\ude00"#
        );
    }

    #[test]
    fn markdown_in_both_habits() {
        let found = whole(&text("a *bold* claim."), Kind::Markdown);
        assert_eq!(
            found,
            [
                b"a \\*bold\\* claim\\.".to_vec(),
                b"a \\*bold\\* claim.".to_vec()
            ]
        );
    }

    #[test]
    fn utf16_of_both_orders() {
        let found = whole(&text("abcdefghijkl"), Kind::Utf16Be);
        assert_eq!(found[0][..4], *b"\0a\0b");
        assert_eq!(
            whole(&text("abcdefghijkl"), Kind::Utf16Le)[0][..4],
            *b"a\0b\0"
        );
    }

    #[test]
    fn base64_of_every_alignment() {
        let spelled = |text: &[u8], before| String::from_utf8(base64(text, before)).unwrap();
        // base64("hello world!") = aGVsbG8gd29ybGQh
        assert_eq!(spelled(b"hello world!", 0), "aGVsbG8gd29ybGQh");
        // base64("Xhello world!Y") = WGhlbGxvIHdvcmxkIVk=
        assert_eq!(spelled(b"hello world!", 1), "hlbGxvIHdvcmxkI");
        // base64("XYhello world!Z") = WFloZWxsbyB3b3JsZCFa
        assert_eq!(spelled(b"hello world!", 2), "oZWxsbyB3b3JsZC");
        let question = whole(&text("why??why??why??"), Kind::Base64);
        assert!(question.iter().any(|found| found.contains(&b'/')));
        assert!(question.iter().any(|found| found.contains(&b'_')));
    }

    #[test]
    fn fragments_cover_the_text() {
        let long: Vec<u8> = (0..100).collect();
        let pieces: Vec<&[u8]> = fragments(&long).collect();
        assert_eq!(
            pieces,
            [&long[..32], &long[32..64], &long[64..96], &long[68..]]
        );
        assert_eq!(fragments(&long[..47]).count(), 0);
        assert_eq!(fragments(&long[..48]).count(), 2);
    }

    #[test]
    fn embeddings_by_their_middle() {
        let values: Vec<f32> = (1..=40_u8).map(|n| f32::from(n) / 64.0).collect();
        let vector = Needle::Vector(values.clone());
        let single = &whole(&vector, Kind::Float32)[0];
        assert_eq!(single.len(), 64);
        assert_eq!(single[..4], values[12].to_le_bytes());
        let double = &whole(&vector, Kind::Float64)[0];
        assert_eq!(double[..8], f64::from(values[16]).to_le_bytes());
        assert_eq!(whole(&vector, Kind::Int8)[0].len(), 32);
        assert!(windows(&Needle::Vector(vec![0.0; 40])).is_empty());
        assert!(windows(&Needle::Vector(vec![0.5])).is_empty());
        assert!(whole(&Needle::Vector(vec![0.5; 40]), Kind::Int8).is_empty());
    }

    #[test]
    fn a_term_by_its_end() {
        let found = windows(&Needle::Word(b"remembering".to_vec()));
        assert_eq!(found[0].bytes, b"embering");
        assert!(!is_searchable(&Needle::Word(b"seventy".to_vec())));
    }
}
