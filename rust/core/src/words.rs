//! Words of a text, in any script.
//!
//! The borders are those of Unicode Standard Annex 29 with the dictionaries of ICU for scripts that write no blanks, as
//! `Intl.Segmenter` of the host finds them.

use icu_segmenter::WordSegmenter;
use icu_segmenter::options::WordBreakInvariantOptions;

/// The words of a text in order: runs of letters, digits or ideographs, not of punctuation, symbols or blanks.
pub fn words(text: &str) -> Vec<&str> {
    let segmenter = WordSegmenter::new_dictionary(WordBreakInvariantOptions::default());
    let mut found = Vec::new();
    let mut from = 0;
    for (to, kind) in segmenter.segment_str(text).iter_with_word_type() {
        if kind.is_word_like() {
            found.push(&text[from..to]);
        }
        from = to;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn words_of_scripts_with_and_without_blanks() {
        assert_eq!(
            words("Don't panic, zt-44f: 3.5 €"),
            ["Don't", "panic", "zt", "44f", "3.5"]
        );
        assert_eq!(words("請求書を送る"), ["請求", "書", "を", "送る"]);
        assert_eq!(words("合同会议"), ["合同", "会议"]);
        assert_eq!(words("สวัสดีครับ"), ["สวัสดี", "ครับ"]);
        assert_eq!(words("👩\u{200d}💻 … "), Vec::<&str>::new());
        assert_eq!(words(""), Vec::<&str>::new());
    }
}
