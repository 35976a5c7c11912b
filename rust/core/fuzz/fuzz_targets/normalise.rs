//! The normalised form is the obvious one, and broken bytes survive it.
#![no_main]

use cenotaph_core::normalise::{normalised, space_len, trim, utf16_len};
use libfuzzer_sys::fuzz_target;
use unicode_normalization::UnicodeNormalization;

fn is_space(character: char) -> bool {
    space_len(character.encode_utf8(&mut [0; 4]).as_bytes()) > 0
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

fn broken(text: &[u8]) -> Vec<u8> {
    let chunks = text.utf8_chunks();
    chunks.flat_map(|chunk| chunk.invalid().to_vec()).collect()
}

fuzz_target!(|input: &[u8]| {
    let form = normalised(input);
    assert_eq!(broken(&form), broken(input));
    assert_eq!(trim(&form), &*form);
    if let Ok(text) = std::str::from_utf8(input) {
        assert_eq!(form, obvious(text).as_bytes());
        assert_eq!(utf16_len(input), text.encode_utf16().count());
    }
});
