//! The form in which quotations are compared (V3), and the white space that the corpus was written with.
//!
//! Escapes go first and NFC second: `\=` followed by U+0338 is read as U+2260 by whoever renders the
//! note, and that is what was said. White space is the ECMAScript set, because the host trimmed and
//! collapsed with it: U+FEFF is in, U+0085 and U+001C to U+001F are not.

use std::borrow::Cow;

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

/// Length in bytes (1 to 3) of the ECMAScript white space at the start of `text`; 0 when there is none.
pub fn space_len(text: &[u8]) -> usize {
    match text {
        [b'\t'..=b'\r' | b' ', ..] => 1,
        [0xC2, 0xA0, ..] => 2,
        [0xE1, 0x9A, 0x80, ..]
        | [0xE2, 0x80, 0x80..=0x8A | 0xA8 | 0xA9 | 0xAF, ..]
        | [0xE2, 0x81, 0x9F, ..]
        | [0xE3, 0x80, 0x80, ..]
        | [0xEF, 0xBB, 0xBF, ..] => 3,
        _ => 0,
    }
}

/// `text` without ECMAScript white space at both ends.
pub fn trim(text: &[u8]) -> &[u8] {
    trim_end(trim_start(text))
}

/// `text` without ECMAScript white space at its start.
pub fn trim_start(mut text: &[u8]) -> &[u8] {
    loop {
        match space_len(text) {
            0 => return text,
            length => text = &text[length..],
        }
    }
}

/// `text` without ECMAScript white space at its end.
pub fn trim_end(mut text: &[u8]) -> &[u8] {
    // No lead byte of a white-space character is a continuation byte, so a suffix that looks like
    // one is one, in broken UTF-8 too.
    while let Some(kept) = (1..=3usize).find_map(|length| {
        let start = text.len().checked_sub(length)?;
        (space_len(&text[start..]) == length).then_some(start)
    }) {
        text = &text[..kept];
    }
    text
}

/// Normalised form of V3: Markdown backslash escapes of ASCII punctuation removed, NFC, runs of
/// white space made one blank, trimmed.
///
/// Invalid UTF-8 stretches pass unchanged. `Cow::Borrowed` (a part of `text`) when nothing but
/// trimming was needed.
pub fn normalised(text: &[u8]) -> Cow<'_, [u8]> {
    form(text, Escapes::Removed)
}

/// As [`normalised`], but a backslash is a backslash: what was said, before anyone wrote it as Markdown.
pub(crate) fn composed(text: &[u8]) -> Cow<'_, [u8]> {
    form(text, Escapes::Kept)
}

/// Length in UTF-16 code units; invalid bytes count 1 each.
pub fn utf16_len(text: &[u8]) -> usize {
    text.utf8_chunks()
        .map(|chunk| {
            let valid = chunk.valid().as_bytes();
            let characters = valid.iter().filter(|&&byte| byte & 0xC0 != 0x80).count();
            let astral = valid.iter().filter(|&&byte| byte >= 0xF0).count();
            characters + astral + chunk.invalid().len()
        })
        .sum()
}

/// First position at or after `from` in a block of lines from which normalisation might change more
/// than the ends of a line. None: every line from there on is, once trimmed, its own normalised form.
pub(crate) fn next_unusual(block: &[u8], from: usize) -> Option<usize> {
    find_unusual::<true>(block, from)
}

#[derive(Clone, Copy, PartialEq)]
enum Escapes {
    Removed,
    Kept,
}

fn form(text: &[u8], escapes: Escapes) -> Cow<'_, [u8]> {
    let trimmed = trim(text);
    if is_plain(trimmed) {
        return Cow::Borrowed(trimmed);
    }
    let mut rewritten = Vec::with_capacity(trimmed.len());
    for chunk in trimmed.utf8_chunks() {
        rewrite(chunk.valid(), escapes, &mut rewritten);
        rewritten.extend_from_slice(chunk.invalid());
    }
    if rewritten == trimmed {
        return Cow::Borrowed(trimmed);
    }
    Cow::Owned(rewritten)
}

fn rewrite(text: &str, escapes: Escapes, out: &mut Vec<u8>) {
    let mut text = Cow::Borrowed(text);
    if escapes == Escapes::Removed && text.contains('\\') {
        text = Cow::Owned(without_escapes(&text));
    }
    if !text.is_ascii() && is_nfc_quick(text.chars()) != IsNormalized::Yes {
        text = Cow::Owned(text.nfc().collect());
    }
    collapse(text.as_bytes(), out);
}

fn without_escapes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        match after.chars().next() {
            // The escaped character is copied here, so that an escaped backslash escapes nothing.
            Some(escaped) if escaped.is_ascii_punctuation() => {
                out.push(escaped);
                rest = &after[1..];
            }
            _ => {
                out.push('\\');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

fn collapse(mut text: &[u8], out: &mut Vec<u8>) {
    while let Some(&byte) = text.first() {
        let space = space_len(text);
        if space == 0 {
            out.push(byte);
            text = &text[1..];
        } else {
            out.push(b' ');
            text = trim_start(&text[space..]);
        }
    }
}

/// True only when a trimmed text is its own normalised form; false when that takes a closer look.
fn is_plain(text: &[u8]) -> bool {
    let mut at = 0;
    while let Some(unusual) = find_unusual::<false>(text, at) {
        let rest = &text[unusual..];
        at = match rest {
            [b'\\', next, ..] if next.is_ascii_punctuation() => return false,
            [b'\\', ..] => unusual + 1,
            [0x80..=0xFF, ..] => match steady_len(rest) {
                0 => return false,
                length => unusual + length,
            },
            _ => return false,
        };
    }
    true
}

/// Bytes at the start of `text` that are non-ASCII characters which NFC and blanks leave alone.
fn steady_len(text: &[u8]) -> usize {
    let mut length = 0;
    while let Some((character, size)) = wide_character(&text[length..]) {
        if !is_steady(character) {
            return length;
        }
        length += size;
    }
    length
}

/// The two- to four-byte character at the start of `text`; None for ASCII and for invalid UTF-8.
fn wide_character(text: &[u8]) -> Option<(char, usize)> {
    let size = match text.first()? {
        0xC2..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF4 => 4,
        _ => return None,
    };
    let character = std::str::from_utf8(text.get(..size)?).ok()?;
    Some((character.chars().next()?, size))
}

/// Characters of everyday scripts that are no white space, never compose and never reorder.
///
/// A short list of ranges rather than the Unicode tables: it only has to be right, and to spare
/// ordinary Western, Cyrillic, Chinese, Japanese and Korean lines and emoji the full check.
fn is_steady(character: char) -> bool {
    matches!(character,
        '\u{80}'..='\u{9F}'
        | '\u{A1}'..='\u{2FF}'
        | '\u{400}'..='\u{482}'
        | '\u{2010}'..='\u{2027}'
        | '\u{2190}'..='\u{21FF}'
        | '\u{2500}'..='\u{27BF}'
        | '\u{3001}'..='\u{3029}'
        | '\u{3041}'..='\u{3096}'
        | '\u{30A1}'..='\u{30FF}'
        | '\u{4E00}'..='\u{9FFF}'
        | '\u{AC00}'..='\u{D7A3}'
        | '\u{FF01}'..='\u{FF9D}'
        | '\u{1F000}'..='\u{1FAFF}')
}

/// Bytes looked at together, so that the compiler turns the test into vector code.
const LANES: usize = 64;

/// `LINES`: line feeds, and the CR of a CRLF, stand between lines and are not unusual.
fn find_unusual<const LINES: bool>(text: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    let mut rest = text.get(from..)?;
    while let Some((lanes, _)) = rest.split_first_chunk::<LANES>() {
        let Some((next, _)) = rest[1..].split_first_chunk::<LANES>() else {
            break;
        };
        let mut any = false;
        for (&byte, &follower) in lanes.iter().zip(next) {
            any |= is_unusual::<LINES>(byte, follower);
        }
        if any {
            break;
        }
        at += LANES;
        rest = &rest[LANES..];
    }
    let mut followers = rest.iter().skip(1).copied().chain([b'\n']);
    let offset = rest.iter().position(|&byte| {
        let follower = followers.next().unwrap_or(b'\n');
        is_unusual::<LINES>(byte, follower)
    })?;
    Some(at + offset)
}

#[inline]
#[expect(
    clippy::needless_bitwise_bool,
    reason = "without branches it becomes vector code"
)]
fn is_unusual<const LINES: bool>(byte: u8, follower: u8) -> bool {
    let line_end = LINES & ((byte == b'\n') | ((byte == b'\r') & (follower == b'\n')));
    let blank = byte.wrapping_sub(b'\t') <= b'\r' - b'\t';
    let doubled = (byte == b' ') & (follower == b' ');
    (byte >= 0x80) | (byte == b'\\') | doubled | (blank & !line_end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use unicode_normalization::char::canonical_combining_class;

    #[test]
    fn steady_characters_never_compose_reorder_or_separate() {
        let steady = (0..=0x10_FFFF)
            .filter_map(char::from_u32)
            .filter(|&character| is_steady(character));
        let mut count = 0;
        for character in steady {
            let code = u32::from(character);
            let mut buffer = [0; 4];
            let text = character.encode_utf8(&mut buffer).as_bytes();
            assert_eq!(space_len(text), 0, "U+{code:04X}");
            assert_eq!(canonical_combining_class(character), 0, "U+{code:04X}");
            let quick = is_nfc_quick(std::iter::once(character));
            assert_eq!(quick, IsNormalized::Yes, "U+{code:04X}");
            count += 1;
        }
        assert!(count > 30_000, "the list is not empty");
    }
}
