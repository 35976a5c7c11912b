//! Three searches that must agree: the gram engine, the obvious one and aho-corasick.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use aho_corasick::{AhoCorasick, MatchKind};
use cenotaph_core::normalise::{normalised, trim};
use cenotaph_core::snippets::gram::Gram;
use cenotaph_core::snippets::{Snippets, naive};
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// Lengths around every threshold: gram, minimum in bytes, longest stride, V4.
const LENGTHS: [usize; 15] = [1, 7, 8, 9, 11, 12, 13, 14, 15, 16, 23, 24, 25, 40, 70];

fn from(
    alphabet: &'static [u8],
    length: impl Strategy<Value = usize>,
) -> impl Strategy<Value = Vec<u8>> {
    length.prop_flat_map(move |length| prop::collection::vec(select(alphabet), length))
}

fn threshold() -> impl Strategy<Value = usize> {
    select(&LENGTHS[..])
}

/// Patterns and a block of lines in which they occur: planted whole, cut short, or one byte off.
fn case(
    alphabet: &'static [u8],
    shortest: usize,
) -> impl Strategy<Value = (Vec<Vec<u8>>, Vec<u8>)> {
    let length = threshold().prop_map(move |length| length.max(shortest));
    let patterns = prop::collection::vec(from(alphabet, length), 1..12);
    let piece = (
        any::<Index>(),
        0_usize..6,
        from(alphabet, 0_usize..30),
        any::<bool>(),
    );
    let pieces = prop::collection::vec(piece, 0..20);
    (patterns, pieces).prop_map(move |(mut patterns, pieces)| {
        overlap(&mut patterns, shortest);
        let mut block = Vec::new();
        for (index, change, filler, ends) in pieces {
            block.extend_from_slice(&filler);
            let mut quote = index.get(&patterns).clone();
            match change {
                0 => drop(quote.pop()),
                1 => drop(quote.remove(0)),
                2 => *quote.last_mut().unwrap() ^= 1,
                _ => {}
            }
            block.extend(quote);
            if ends {
                block.push(b'\n');
            }
        }
        (patterns, block)
    })
}

/// Adds what multi-pattern searches trip over: equal, nested and overlapping patterns.
fn overlap(patterns: &mut Vec<Vec<u8>>, shortest: usize) {
    let first = patterns[0].clone();
    patterns.push(first.clone());
    let tail = first[first.len() / 2..].to_vec();
    let joined = [tail.clone(), patterns[patterns.len() / 2].clone()].concat();
    patterns.extend(
        [tail, joined]
            .into_iter()
            .filter(|new| new.len() >= shortest),
    );
}

fn automaton_lines(patterns: &[Vec<u8>], block: &[u8]) -> Vec<usize> {
    let automaton = automaton(patterns);
    let mut start = 0;
    let mut found = Vec::new();
    for line in block.split_inclusive(|&byte| byte == b'\n') {
        if automaton.is_match(line) {
            found.push(start);
        }
        start += line.len();
    }
    found
}

fn automaton(patterns: &[Vec<u8>]) -> AhoCorasick {
    AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostFirst)
        .build(patterns)
        .unwrap()
}

/// Leftmost, the shortest of those that begin there: what leftmost-first gives when short ones are first.
fn automaton_first(patterns: &[Vec<u8>], block: &[u8]) -> Option<(usize, usize)> {
    let mut order: Vec<usize> = (0..patterns.len()).collect();
    order.sort_by_key(|&index| patterns[index].len());
    let sorted: Vec<Vec<u8>> = order.iter().map(|&index| patterns[index].clone()).collect();
    let found = automaton(&sorted).find(block)?;
    Some((found.start(), order[found.pattern().as_usize()]))
}

fn gram_lines(gram: &Gram, block: &[u8]) -> Vec<usize> {
    let mut found = Vec::new();
    gram.matching_lines(block, &mut found);
    found
}

fn agree(patterns: &[Vec<u8>], block: &[u8]) {
    let gram = Gram::build(patterns);
    let lines = gram_lines(&gram, block);
    assert_eq!(lines, naive::matching_lines(patterns, block), "naive");
    assert_eq!(lines, automaton_lines(patterns, block), "aho-corasick");
    let first = gram.first_in(block);
    assert_eq!(first, naive::first_in(patterns, block), "naive");
    assert_eq!(first, automaton_first(patterns, block), "aho-corasick");
    assert_eq!(gram.is_in(block), first.is_some());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn two_letters((patterns, block) in case(b"ab", 1)) {
        agree(&patterns, &block);
    }

    #[test]
    fn two_letters_without_short_patterns((patterns, block) in case(b"ab", 8)) {
        agree(&patterns, &block);
    }

    #[test]
    fn one_letter((patterns, block) in case(b"aaaaaaaab", 8)) {
        agree(&patterns, &block);
    }

    #[test]
    fn words_at_the_longest_stride((patterns, block) in case(b"abcdef gh", 15)) {
        agree(&patterns, &block);
    }

    #[test]
    fn bytes_of_all_kinds((patterns, block) in case(b"\x00\xFF\xC3\xA9\\\r\t ", 12)) {
        agree(&patterns, &block);
    }
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

/// A small generator, so that large sets are the same on every machine.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % sides
    }

    fn text(&mut self, alphabet: &[u8], length: usize) -> Vec<u8> {
        (0..length)
            .map(|_| alphabet[self.roll(alphabet.len())])
            .collect()
    }
}

#[test]
fn sets_of_one_to_ten_thousand() {
    let mut dice = Dice(20_261_130);
    for size in [1, 2, 3, 10, 63, 64, 65, 100, 1_000, 10_000] {
        for shortest in [8, 11, 12, 13, 23, 24, 25] {
            let patterns: Vec<Vec<u8>> = (0..size)
                .map(|_| {
                    let length = shortest + dice.roll(30);
                    dice.text(b"abcdefgh ", length)
                })
                .collect();
            let mut block = Vec::new();
            for line in 0..400 {
                let before = dice.roll(90);
                block.extend(dice.text(b"abcdefgh ", before));
                let quote = &patterns[dice.roll(size)];
                let cut = if line % 3 == 0 { 0 } else { 1 };
                block.extend_from_slice(&quote[cut..]);
                block.push(b'\n');
            }
            let lines = gram_lines(&Gram::build(&patterns), &block);
            assert_eq!(
                lines,
                automaton_lines(&patterns, &block),
                "{size} from {shortest}"
            );
            assert!(lines.len() >= 134, "every third line has a quotation");
        }
    }
}

#[test]
fn an_occurrence_at_every_place_of_a_block() {
    let pattern = b"User: the kiln is hot".to_vec();
    for shorter in 8..=pattern.len() {
        let patterns = [
            pattern.clone(),
            b"never seen here, at all"[..shorter].to_vec(),
        ];
        let gram = Gram::build(&patterns);
        for start in 0..100 {
            for after in [0, 1, 7, 8, 40] {
                let block = [vec![b'-'; start], pattern.clone(), vec![b'-'; after]].concat();
                assert_eq!(
                    gram.first_in(&block),
                    Some((start, 0)),
                    "{shorter} {start} {after}"
                );
                assert_eq!(gram_lines(&gram, &block), [0]);
                let cut = &block[..start + pattern.len() - 1];
                assert_eq!(gram.first_in(cut), None);
            }
        }
    }
}

/// No region of any of these is rare. What is checked beside the answer is that it comes at all: with
/// 20,000 candidates for every sample this would take hours.
#[test]
fn patterns_that_share_all_their_grams() {
    let mut dice = Dice(7);
    let one_letter: Vec<Vec<u8>> = (0..3_000)
        .map(|i| [&vec![b'a'; 12 + i][..], b"b"].concat())
        .collect();
    let periods: Vec<Vec<u8>> = (0..20_000)
        .map(|_| {
            (0..12)
                .flat_map(|_| {
                    if dice.roll(2) == 0 {
                        *b"abababab"
                    } else {
                        *b"babababa"
                    }
                })
                .collect()
        })
        .collect();
    for patterns in [one_letter, periods] {
        let mut block = Vec::new();
        for line in 0..3_000 {
            block.extend(b"ab".repeat(60));
            block.extend(vec![b'a'; line % 200]);
            if line % 5 == 0 {
                block.extend_from_slice(&patterns[dice.roll(patterns.len())]);
            }
            block.push(b'\n');
        }
        let lines = gram_lines(&Gram::build(&patterns), &block);
        assert_eq!(lines, automaton_lines(&patterns, &block));
        assert!(lines.len() >= 600);
    }
}

#[test]
fn a_pattern_longer_than_its_region_can_reach() {
    let mut dice = Dice(3);
    let long = dice.text(b"abcdefgh", 200_000);
    let other = [&long[..150_000], b"another end"].concat();
    let block = [b"x\n", &long[..], b"\n", &long[1..], b"\n", &other].concat();
    agree_without_naive(&[long, other], &block, 2);
}

fn agree_without_naive(patterns: &[Vec<u8>], block: &[u8], count: usize) {
    let lines = gram_lines(&Gram::build(patterns), block);
    assert_eq!(lines, automaton_lines(patterns, block));
    assert_eq!(lines.len(), count);
}

#[test]
fn nothing_to_find() {
    let none: [Vec<u8>; 0] = [];
    let empty = [Vec::new()];
    for gram in [Gram::build(&none), Gram::build(&empty)] {
        assert!(gram.is_empty());
        assert_eq!(gram.first_in(b"any text at all"), None);
        assert!(gram_lines(&gram, b"any\ntext\n").is_empty());
    }
    let snippets = Snippets::build(&[b"eleven unit".to_vec(), Vec::new()], &[]);
    assert!(snippets.is_empty());
    assert!(!snippets.matches(b"eleven unit"));
    assert!(!snippets.only_shared(b"eleven unit"));
    assert!(!Snippets::build(&[b"twelve units".to_vec()], &[]).is_empty());
}

/// Public report A01: overlapping, nested and repeated patterns lose no line.
#[test]
fn a01_overlapping_patterns() {
    let long = vec![b'x'; 280];
    let mut patterns: Vec<Vec<u8>> = [
        "User: the kiln is hot",
        "the kiln is hot today",
        "kiln",
        "User: the kiln is hot today and tomorrow",
        "is hot",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec();
    patterns.push(long.clone());
    let cases: [(Vec<u8>, bool); 10] = [
        (b"User: the kiln is hot".to_vec(), true),
        (b"user: the KILN IS HOT".to_vec(), false),
        (b"say the kiln is hot today".to_vec(), true),
        (b"a kilnish thing".to_vec(), true),
        (b"that is hotter".to_vec(), true),
        (long[1..].to_vec(), false),
        ([b"y", &long[..]].concat(), true),
        (b"".to_vec(), false),
        (b"User: the ki".to_vec(), false),
        (b"is  hot".to_vec(), false),
    ];
    for pattern in [&b""[..], b"kiln"] {
        patterns.push(pattern.to_vec());
        let gram = Gram::build(&patterns);
        for (line, hit) in &cases {
            assert_eq!(gram.is_in(line), *hit, "{}", String::from_utf8_lossy(line));
        }
        assert!(gram.is_in("naïve kiln ünïcode".as_bytes()));
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
