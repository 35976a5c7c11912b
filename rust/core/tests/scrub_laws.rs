//! What holds of every scrub, on texts made up at random.

#![allow(clippy::unwrap_used)]

mod common;

use cenotaph_core::block::{Block, Shape, Step};
use cenotaph_core::markers::{Comment, comment};
use cenotaph_core::scrub::Scrub;
use common::{E, E2, K, L, S, scan, scrubber};
use proptest::prelude::*;

/// A line without terminator; `{}` in it is replaced by something that no other line has.
///
/// No `Session Key` row: whether one counts depends on which headings stand around it, and a heading may
/// be removed as a quotation. What they do is tested by example.
fn any_line() -> impl Strategy<Value = Vec<u8>> {
    let fixed: Vec<&[u8]> = vec![
        b"",
        b"",
        b" \t",
        b"plain {}",
        b"- item {}",
        b"  - child {}",
        b"    deep {}",
        b"\ttab {}",
        b"1. number {}",
        b"> quote {}",
        b"# one {}",
        b"## two {}",
        b"### three {}",
        b" # no heading {}",
        b"---",
        b"===",
        b"```",
        b"~~~",
        b"  ```",
        b"<div>",
        b"<!-- note {} -->",
        b"<!-- open {}",
        b"<!-- openclaw:dreaming:diary:end -->",
        b"## Session: agent:main:target {}",
        b"# Session ID: target",
        b"Session ID: target {}",
        b"- Session ID: target; {}",
        b"  * Session ID: target; {}",
        b"Session ID: other {}",
        b"- **Session ID**: target",
        b"- **Session ID**: other",
        b"## Memory Consolidation History",
        b"  - `+ old {}`",
        b"\xff\xfe {}",
        b"nul\0{}",
        b"- \xe2\x80",
        b"\xef\xbb\xbf# one {}",
        b"\xc2\xa0",
        b"sessions/main/target {}",
    ];
    let markers = [E, E2, K, L, "<!-- openclaw-memory-promotion:lost -->"];
    let markers =
        prop::sample::select(markers.to_vec()).prop_map(|marker| marker.trim_end().into());
    let indented = prop::sample::select(vec![E, K, L])
        .prop_map(|marker| format!("  {}", marker.trim_end()).into_bytes());
    let quoting = prop::sample::select(vec!["", "- ", "> ", "# ", "  "])
        .prop_map(|start| format!("{start}{S}").into_bytes());
    prop_oneof![
        6 => prop::sample::select(fixed).prop_map(<[u8]>::to_vec),
        3 => markers,
        1 => indented,
        1 => quoting,
    ]
}

/// Entries as the host writes them, and around them headings and lines typed by hand.
fn host_lines() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let marker =
        prop::sample::select(vec![E, E2, K]).prop_map(|marker| vec![marker.trim_end().into()]);
    let head = prop_oneof![
        4 => marker.clone(),
        1 => (marker.clone(), marker).prop_map(|(one, two)| [one, two].concat()),
    ];
    let item = prop_oneof![
        4 => Just(vec![b"- item {}".to_vec()]),
        1 => Just(vec![format!("- {S}").into_bytes()]),
        1 => Just(vec![b"- item {}".to_vec(), b"  more {}".to_vec(), b"".to_vec(), b"  child {}".to_vec()]),
        1 => Just(vec![b"- item {}".to_vec(), b"  ```".to_vec(), b"  # code {}".to_vec(), b"  ```".to_vec()]),
    ];
    let entry =
        (any::<bool>(), head, any::<bool>(), item).prop_map(|(lineage, head, blank, item)| {
            let lineage = lineage.then(|| L.trim_end().into());
            let blank = blank.then(Vec::new);
            lineage
                .into_iter()
                .chain(head)
                .chain(blank)
                .chain(item)
                .collect::<Vec<_>>()
        });
    let other: Vec<&[u8]> = vec![
        b"# one {}",
        b"## two {}",
        b"",
        b"typed {}",
        b"- row {}",
        b"## Session: agent:main:target {}",
        b"---",
    ];
    let other = prop::sample::select(other).prop_map(|line| vec![line.to_vec()]);
    let quoting = Just(vec![S.as_bytes().to_vec()]);
    let group = prop_oneof![4 => entry, 4 => other, 1 => quoting];
    prop::collection::vec(group, 0..12).prop_map(|groups| groups.concat())
}

fn text_of(lines: &[Vec<u8>], terminators: &[&[u8]], last: bool) -> Vec<u8> {
    let mut text = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let unique = format!("u{number}x");
        let hole = line.windows(2).position(|pair| pair == b"{}");
        match hole {
            Some(at) => text.extend([&line[..at], unique.as_bytes(), &line[at + 2..]].concat()),
            None => text.extend_from_slice(line),
        }
        if last || number + 1 < lines.len() {
            text.extend_from_slice(terminators[number % terminators.len()]);
        }
    }
    text
}

fn any_text() -> impl Strategy<Value = Vec<u8>> {
    let terminators = prop::sample::select(vec![
        vec![b"\n".as_slice()],
        vec![b"\r\n"],
        vec![b"\n", b"\r\n", b"\n"],
    ]);
    (
        prop::collection::vec(any_line(), 0..24),
        terminators,
        any::<bool>(),
    )
        .prop_map(|(lines, terminators, last)| text_of(&lines, &terminators, last))
}

fn host_text() -> impl Strategy<Value = Vec<u8>> {
    (host_lines(), any::<bool>()).prop_map(|(lines, last)| text_of(&lines, &[b"\n"], last))
}

/// Markers in code take part in blocks that the reading of this test does not know.
fn without_code(text: &[u8]) -> Vec<u8> {
    let is_fence = |line: &[u8]| matches!(Shape::of(line).text, [b'`' | b'~', ..]);
    let lines = text.split_inclusive(|&byte| byte == b'\n');
    lines
        .filter(|line| !is_fence(line))
        .flatten()
        .copied()
        .collect()
}

/// Start and bytes of every line.
fn numbered(text: &[u8]) -> Vec<(u64, &[u8])> {
    let mut at = 0;
    let lines = text.split_inclusive(|&byte| byte == b'\n');
    lines
        .map(|line| {
            let start = at;
            at += line.len() as u64;
            (start, line)
        })
        .collect()
}

fn is_removed(scrub: &Scrub, start: u64) -> bool {
    scrub.removed.iter().any(|range| range.contains(&start))
}

/// For every marker that is not selected: its line's number, and the lines of the entry that it labels.
///
/// A second reading of the rules, on the whole text at once.
fn labels(lines: &[&[u8]]) -> Vec<(usize, Vec<usize>)> {
    let head = |line: &[u8]| {
        matches!(
            comment(line),
            Some(Comment::Promotion(_) | Comment::Lineage(_))
        )
    };
    let mut found = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        if !matches!(comment(line), Some(Comment::Promotion(b"clean"))) {
            continue;
        }
        let below = &lines[number + 1..];
        let skipped = below
            .iter()
            .take_while(|line| head(line) || Shape::of(line).is_blank())
            .count();
        let mut entry = Vec::new();
        let first = number + 1 + skipped;
        if let Some(mut block) = lines
            .get(first)
            .and_then(|line| Block::begin(&Shape::of(line), Shape::of(lines[number]).indent))
        {
            entry.push(first);
            let mut blanks = Vec::new();
            for (at, line) in lines.iter().enumerate().skip(first + 1) {
                if head(line) {
                    break;
                }
                match block.step(&Shape::of(line)) {
                    Step::Take => {
                        entry.append(&mut blanks);
                        entry.push(at);
                    }
                    Step::Blank => blanks.push(at),
                    Step::End => break,
                }
            }
        }
        found.push((number, entry));
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// `scan` checks that the result does not depend on the buffer, nor on scanning or scrubbing.
    #[test]
    fn whole_lines_go_and_the_rest_is_identical(text in any_text()) {
        let (kept, scrub) = scan(&scrubber(), &text);
        let lines = numbered(&text);
        let survivors: Vec<u8> = lines.iter().filter(|(start, _)| !is_removed(&scrub, *start)).flat_map(|(_, line)| line.to_vec()).collect();
        prop_assert_eq!(kept, survivors);
    }

    #[test]
    fn twice_is_once(text in any_text()) {
        let (kept, _) = scan(&scrubber(), &text);
        let (again, second) = scan(&scrubber(), &kept);
        prop_assert_eq!(&again, &kept);
        prop_assert_eq!((second.entries, second.lines), (0, 0));
        prop_assert!(second.stacked.is_empty());
    }

    #[test]
    fn nothing_selected_remains(text in any_text()) {
        let scrubber = scrubber();
        let (kept, _) = scan(&scrubber, &text);
        for line in kept.split_inclusive(|&byte| byte == b'\n') {
            prop_assert!(!scrubber.snippets().matches(line), "quotation");
            let is_selected = matches!(comment(line), Some(Comment::Promotion(b"k1" | b"k2")));
            prop_assert!(!is_selected, "marker");
            let row = scrubber.refs().hook_row(line);
            prop_assert!(!row.is_some_and(|row| row.selected && row.bold && line.ends_with(b"target\n")), "note");
            let names = scrubber.refs().named_in(line);
            prop_assert!(!names || Shape::of(line).heading().is_none(), "heading");
        }
    }

    #[test]
    fn counts_are_bounded_by_what_went(text in any_text()) {
        let (_, scrub) = scan(&scrubber(), &text);
        let gone = numbered(&text).iter().filter(|(start, _)| is_removed(&scrub, *start)).count() as u64;
        prop_assert!(scrub.entries + scrub.lines <= gone);
        prop_assert_eq!(scrub.removed.is_empty(), scrub.entries + scrub.lines == 0);
        prop_assert!(scrub.stacked.iter().all(|key| key == "clean" || key == "lost"));
    }

    /// No marker of a survivor comes to label a stranger only, whatever the text looks like.
    #[test]
    fn a_marker_that_stays_labels_what_it_did(text in any_text().prop_map(|text| without_code(&text))) {
        let (_, scrub) = scan(&scrubber(), &text);
        let lines = numbered(&text);
        let before: Vec<&[u8]> = lines.iter().map(|(_, line)| *line).collect();
        let kept: Vec<usize> = (0..lines.len()).filter(|&number| !is_removed(&scrub, lines[number].0)).collect();
        let after: Vec<&[u8]> = kept.iter().map(|&number| before[number]).collect();
        let now: Vec<(usize, Vec<usize>)> = labels(&after).into_iter()
            .map(|(marker, entry)| (kept[marker], entry.iter().map(|&line| kept[line]).collect())).collect();
        for (marker, entry) in labels(&before) {
            let Some((_, now)) = now.iter().find(|(at, _)| *at == marker) else { continue };
            let is_blank = |line: &usize| Shape::of(before[*line]).is_blank();
            let rest: Vec<usize> = entry.iter().copied().filter(|line| kept.contains(line) && !is_blank(line)).collect();
            let now: Vec<usize> = now.iter().copied().filter(|line| !is_blank(line)).collect();
            // Without its first line an entry may read as another kind of block, and reach less far.
            if rest.first() == entry.first() {
                prop_assert!(now.starts_with(&rest), "marker {marker}: {rest:?} -> {now:?}");
            } else {
                let is_same = now.is_empty() || now.first() == rest.first();
                prop_assert!(is_same, "marker {marker} labels a stranger: {rest:?} -> {now:?}");
            }
        }
    }

    /// In texts as the host writes them the label is the same to the line.
    #[test]
    fn survivors_keys_label_the_same_text(text in host_text()) {
        let (_, scrub) = scan(&scrubber(), &text);
        let lines = numbered(&text);
        let before: Vec<&[u8]> = lines.iter().map(|(_, line)| *line).collect();
        let kept: Vec<usize> = (0..lines.len()).filter(|&number| !is_removed(&scrub, lines[number].0)).collect();
        let after: Vec<&[u8]> = kept.iter().map(|&number| before[number]).collect();
        let now: Vec<(usize, Vec<usize>)> = labels(&after).into_iter()
            .map(|(marker, entry)| (kept[marker], entry.iter().map(|&line| kept[line]).collect())).collect();
        let expected: Vec<(usize, Vec<usize>)> = labels(&before).into_iter()
            .filter(|(marker, _)| kept.contains(marker))
            .map(|(marker, entry)| (marker, entry.into_iter().filter(|line| kept.contains(line)).collect())).collect();
        prop_assert_eq!(now, expected);
    }
}
