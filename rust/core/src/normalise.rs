//! White space and the form in which quotations are compared (stand-in until the text branch is merged).

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;

/// Length in bytes of the ECMAScript white space at the start of `text`; 0 when there is none.
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

/// `text` without white space at both ends.
pub fn trim(text: &[u8]) -> &[u8] {
    trim_end(trim_start(text))
}

/// `text` without white space at its start.
pub fn trim_start(mut text: &[u8]) -> &[u8] {
    loop {
        match space_len(text) {
            0 => return text,
            length => text = &text[length..],
        }
    }
}

/// `text` without white space at its end.
pub fn trim_end(mut text: &[u8]) -> &[u8] {
    while let Some(kept) = (1..=3usize).find_map(|length| {
        let start = text.len().checked_sub(length)?;
        (space_len(&text[start..]) == length).then_some(start)
    }) {
        text = &text[..kept];
    }
    text
}

/// Normalised form of V3.
pub fn normalised(text: &[u8]) -> Cow<'_, [u8]> {
    let Ok(text) = std::str::from_utf8(trim(text)) else {
        return Cow::Borrowed(text);
    };
    let mut plain = String::new();
    let mut rest = text.chars().peekable();
    while let Some(next) = rest.next() {
        if next == '\\' && rest.peek().is_some_and(char::is_ascii_punctuation) {
            plain.extend(rest.next());
        } else {
            plain.push(next);
        }
    }
    let mut out = Vec::new();
    let composed: String = plain.nfc().collect();
    let mut rest = composed.as_bytes();
    while let Some(&byte) = rest.first() {
        let space = space_len(rest);
        out.push(if space > 0 { b' ' } else { byte });
        rest = if space > 0 {
            trim_start(rest)
        } else {
            &rest[1..]
        };
    }
    Cow::Owned(out)
}

/// Length in UTF-16 code units; invalid bytes count 1 each.
pub fn utf16_len(text: &[u8]) -> usize {
    text.utf8_chunks()
        .map(|chunk| chunk.valid().encode_utf16().count() + chunk.invalid().len())
        .sum()
}
