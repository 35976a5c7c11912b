//! Order of texts by the root locale, as `localeCompare` of the host sorts report lists.
//!
//! The order is that of the Unicode Collation Algorithm with the CLDR root data
//! (<https://www.unicode.org/reports/tr35/tr35-collation.html>), tertiary strength.

use icu_collator::options::CollatorOptions;
use icu_collator::{Collator, CollatorPreferences};

/// Positions that sort `texts`; ties keep their order.
pub fn locale_order(texts: &[String]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..texts.len()).collect();
    let options = CollatorOptions::default();
    match Collator::try_new(CollatorPreferences::default(), options) {
        Ok(collator) => order.sort_by(|&a, &b| collator.compare(&texts[a], &texts[b])),
        // The root data is compiled in, so this arm only keeps the order total.
        Err(_) => order.sort_by(|&a, &b| texts[a].cmp(&texts[b])),
    }
    order
}

#[cfg(test)]
mod tests {
    use super::locale_order;

    fn sorted(texts: &[&str]) -> Vec<String> {
        let owned: Vec<String> = texts.iter().map(ToString::to_string).collect();
        locale_order(&owned)
            .into_iter()
            .map(|i| owned[i].clone())
            .collect()
    }

    #[test]
    fn letters_ignore_case_before_they_heed_it() {
        assert_eq!(
            sorted(&["USER.md", "memory/b.md", "MEMORY.md", "memory/a.md"]),
            ["MEMORY.md", "memory/a.md", "memory/b.md", "USER.md"]
        );
    }

    #[test]
    fn lower_case_comes_first_among_equals_and_accents_after_plain() {
        assert_eq!(sorted(&["A", "a", "á", "b"]), ["a", "A", "á", "b"]);
    }

    #[test]
    fn punctuation_comes_before_digits_before_letters() {
        assert_eq!(sorted(&["a", "1", "-", "_"]), ["_", "-", "1", "a"]);
    }
}
