//! Throughput of the snippet search beside its alternatives, on a corpus made from a seed.
//!
//! `scan [--json] [--megabytes N] [--needles N]`. One thread, best of five runs. `newlines` (memchr) is the floor;
//! ratios between rows mean something, absolute numbers only do on one machine.
#![allow(
    clippy::print_stdout,
    reason = "printing rows is what this program is for"
)]

use std::time::Instant;

use aho_corasick::{AhoCorasick, MatchKind};
use cenotaph_core::snippets::Snippets;
use cenotaph_core::snippets::gram::Gram;

const SIZES: [usize; 5] = [10, 100, 1_000, 10_000, 100_000];
const RUNS: usize = 5;
/// Bytes given to an engine that is known to be slow.
const SLOW_SHARE: usize = 8 << 20;

struct Row {
    needles: usize,
    engine: &'static str,
    build_seconds: f64,
    gb_per_s: f64,
    lines: usize,
}

/// xorshift: the same corpus on every machine.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 34).unwrap_or(0) % sides
    }

    /// Low ranks far more often than high ones, as words are.
    fn rank(&mut self, count: usize) -> usize {
        let widest = 1 + self.roll(count);
        self.roll(widest)
    }
}

/// Words of one to three syllables, the frequent ones shorter. What filters suffer from is repetition,
/// and a text of syllables is more repetitive than one of random letters.
fn vocabulary(dice: &mut Dice) -> Vec<String> {
    let onsets = [
        "b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "st", "tr", "v", "w", "",
    ];
    let vowels = ["a", "e", "i", "o", "u", "ea", "ai", "ou"];
    let codas = ["", "", "n", "r", "s", "t", "l", "ck", "ng"];
    let words = (0..20_000).map(|index| {
        let syllables = 1 + usize::from(index > 300) + dice.roll(2);
        let parts = [&onsets[..], &vowels, &codas];
        (0..syllables * parts.len())
            .map(|part| parts[part % 3][dice.roll(parts[part % 3].len())])
            .collect()
    });
    words.collect()
}

fn sentence(dice: &mut Dice, words: &[String], bytes: usize) -> String {
    let mut text = String::new();
    while text.len() < bytes {
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(&words[dice.rank(words.len())]);
    }
    text
}

/// Notes: list rows, headings, plain paragraphs, blank lines.
fn corpus(dice: &mut Dice, words: &[String], bytes: usize) -> Vec<u8> {
    let mut text = String::with_capacity(bytes + 300);
    while text.len() < bytes {
        let length = 20 + dice.roll(160);
        let opening = ["- ", "", "## ", "  - ", "- User: "][dice.rank(5)];
        text.push_str(opening);
        text.push_str(&sentence(dice, words, length));
        text.push_str(if dice.roll(4) == 0 { ".\n\n" } else { "\n" });
    }
    text.into_bytes()
}

/// Stored snippets of 24 to 120 bytes; one in a thousand stands in the corpus.
fn snippets(dice: &mut Dice, words: &[String], text: &[u8], count: usize) -> Vec<Vec<u8>> {
    let quoted: Vec<&[u8]> = text
        .split(|&byte| byte == b'\n')
        .filter(|line| line.len() > 60 && !line.ends_with(b" "))
        .take(200_000)
        .collect();
    let made = (0..count).map(|index| {
        if index % 1_000 == 1 {
            return quoted[dice.roll(quoted.len())].to_vec();
        }
        let label = ["User: ", "Assistant: "][dice.roll(2)];
        let length = 18 + dice.roll(96);
        [label, &sentence(dice, words, length)]
            .concat()
            .into_bytes()
    });
    made.collect()
}

fn measure(
    needles: usize,
    engine: &'static str,
    text: &[u8],
    build_seconds: f64,
    mut lines_in: impl FnMut(&[u8]) -> usize,
) -> Row {
    let mut best = f64::INFINITY;
    let mut lines = 0;
    for _ in 0..RUNS {
        let start = Instant::now();
        // Blocks as the line reader hands them out.
        lines = blocks(text).map(&mut lines_in).sum();
        best = best.min(start.elapsed().as_secs_f64());
    }
    let megabytes = u32::try_from(text.len() >> 10).unwrap_or(u32::MAX);
    let gb_per_s = f64::from(megabytes) * 1024.0 / best / 1e9;
    Row {
        needles,
        engine,
        build_seconds,
        gb_per_s,
        lines,
    }
}

fn blocks(mut text: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let most = text.len().min(1 << 20);
        let end = memchr::memrchr(b'\n', &text[..most]).map_or(most, |newline| newline + 1);
        let (block, rest) = text.split_at(end);
        text = rest;
        (!block.is_empty()).then_some(block)
    })
}

fn timed<T>(build: impl FnOnce() -> T) -> (T, f64) {
    let start = Instant::now();
    let value = build();
    (value, start.elapsed().as_secs_f64())
}

fn automaton_lines(automaton: &AhoCorasick, block: &[u8]) -> usize {
    let (mut at, mut count) = (0, 0);
    while let Some(found) = automaton.find(&block[at..]) {
        count += 1;
        let hit = at + found.start();
        at = memchr::memchr(b'\n', &block[hit..]).map_or(block.len(), |newline| hit + newline + 1);
    }
    count
}

fn without_label(text: &[u8]) -> &[u8] {
    let spoken = text.strip_prefix(b"User: ");
    spoken.or(text.strip_prefix(b"Assistant: ")).unwrap_or(text)
}

fn rows(text: &[u8], stored: &[Vec<u8>]) -> Vec<Row> {
    let needles = stored.len();
    let slow = &text[..text.len().min(SLOW_SHARE)];
    let mut found = Vec::new();
    let newlines = |block: &[u8]| memchr::memchr_iter(b'\n', block).count();
    let mut rows = vec![measure(needles, "newlines", text, 0.0, newlines)];
    // The labels would be a gift to an automaton: hardly a line has a character that begins one.
    let spoken: Vec<&[u8]> = stored.iter().map(|text| without_label(text)).collect();
    let (gram, seconds) = timed(|| Gram::build(&spoken));
    rows.push(measure(needles, "gram", text, seconds, |block| {
        found.clear();
        gram.matching_lines(block, &mut found);
        found.len()
    }));
    let (all_forms, seconds) = timed(|| Snippets::build(stored, &[]));
    rows.push(measure(needles, "snippets", text, seconds, |block| {
        found.clear();
        all_forms.matching_lines(block, &mut found);
        found.len()
    }));
    if needles > 100_000 {
        return rows;
    }
    let builder = || {
        AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostFirst)
            .build(&spoken)
    };
    if let (Ok(automaton), seconds) = timed(builder) {
        let part = if needles > 10 { slow } else { text };
        let lines = |block: &[u8]| automaton_lines(&automaton, block);
        rows.push(measure(needles, "aho-corasick", part, seconds, lines));
    }
    rows
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let json = arguments.iter().any(|argument| argument == "--json");
    let number = |name: &str| -> Option<usize> {
        let mut rest = arguments.iter().skip_while(|argument| *argument != name);
        rest.nth(1)?.parse().ok()
    };
    let megabytes = number("--megabytes").unwrap_or(64);
    let sizes = number("--needles").map_or(SIZES.to_vec(), |size| vec![size]);
    let mut dice = Dice(20_261_130);
    let words = vocabulary(&mut dice);
    let text = corpus(&mut dice, &words, megabytes << 20);
    for size in sizes {
        let stored = snippets(&mut dice, &words, &text, size);
        for row in rows(&text, &stored) {
            print(&row, json);
        }
    }
}

fn print(row: &Row, json: bool) {
    if json {
        let value = serde_json::json!({
            "bench": "snippets", "needles": row.needles, "engine": row.engine,
            "gbPerS": row.gb_per_s, "buildSeconds": row.build_seconds, "lines": row.lines,
        });
        println!("{value}");
    } else {
        println!(
            "{:>7} {:<13} {:>7.3} GB/s  build {:>7.3} s  {} lines",
            row.needles, row.engine, row.gb_per_s, row.build_seconds, row.lines
        );
    }
}
