//! Three searches that must agree: the gram engine, the obvious one and aho-corasick.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::time::{Duration, Instant};

use aho_corasick::{AhoCorasick, MatchKind};
use cenotaph_core::snippets::gram::Gram;
use cenotaph_core::snippets::naive;
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
            if size == 10_000 && shortest % 12 != 0 {
                continue; // The automaton takes its time to build.
            }
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
                let cut = usize::from(line % 3 != 0);
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

/// No region of any of these is rare: a sample of the text leads to thousands of candidates. Tried one
/// by one they take minutes in any build; the limit is far from both sides.
#[test]
fn patterns_that_share_all_their_grams() {
    let mut dice = Dice(7);
    let mut beats = |count: usize| -> Vec<u8> {
        let beat = |high| if high { *b"abababab" } else { *b"babababa" };
        (0..count).flat_map(|_| beat(dice.roll(2) == 0)).collect()
    };
    let patterns: Vec<Vec<u8>> = (0..20_000).map(|_| beats(20)).collect();
    let mut block = Vec::new();
    for (line, pattern) in patterns.iter().enumerate().take(2_000) {
        block.extend(beats(40));
        if line % 5 == 0 {
            block.extend_from_slice(pattern);
        }
        block.push(b'\n');
    }
    block.extend_from_slice(&patterns[1]);
    let start = Instant::now();
    let lines = gram_lines(&Gram::build(&patterns), &block);
    assert!(
        start.elapsed() < Duration::from_secs(20),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(lines, automaton_lines(&patterns, &block));
    assert!(
        lines.len() > 400,
        "planted, and the last without a line feed"
    );
}

/// Every pattern is a prefix of the next but for its last byte.
#[test]
fn patterns_of_one_letter() {
    let pattern = |length| [&vec![b'a'; length][..], b"b"].concat();
    let patterns: Vec<Vec<u8>> = (12..3_012).map(pattern).collect();
    for (line, hit) in [
        (pattern(11), false),
        (pattern(12), true),
        (pattern(5_000), true),
        (vec![b'a'; 5_000], false),
    ] {
        agree_without_naive(&patterns, &line, usize::from(hit));
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
