//! The engine of `verify` answers as the obvious search does, whatever the needles, the data and the buffers.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;

use cenotaph_core::residue::{Class, Hit, Needle, Needles};
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// Lengths around every threshold: anchor, window of a term, shortest text, raw, cut and shingle.
const LENGTHS: [usize; 15] = [8, 9, 11, 12, 13, 16, 17, 31, 32, 33, 47, 48, 49, 64, 80];

fn bytes(alphabet: &'static [u8], length: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(select(alphabet), length)
}

/// Needles that are found at every step of the engine: 8 bytes and up, or 12, or 16.
fn needle(shortest: usize) -> impl Strategy<Value = Needle> {
    let length = move || select(&LENGTHS[..]).prop_map(move |length| length.max(shortest));
    let text = move || length().prop_flat_map(|length| bytes(b"ab \"\\*\x01", length));
    let utf8 = prop::collection::vec(select(&['a', '\u{e9}', '\u{1F600}', '"'][..]), 4..40);
    prop_oneof![
        text().prop_map(Needle::Text),
        utf8.prop_map(|text| Needle::Text(text.into_iter().collect::<String>().into_bytes())),
        text().prop_map(Needle::Raw),
        // Of a term only the last 8 bytes are looked for, however long it is.
        text().prop_map(move |text| match shortest {
            8 => Needle::Word(text),
            _ => Needle::Raw(text),
        }),
        prop::collection::vec(select(&[0.0_f32, 0.5, -0.25, 1.0, 0.01][..]), 1..40)
            .prop_map(Needle::Vector),
    ]
}

/// Bytes that the search could look for on behalf of a needle, in one of its spellings.
fn spelled(needle: &Needle, choice: usize) -> Vec<u8> {
    match needle {
        Needle::Text(text) => match (choice % 6, std::str::from_utf8(text)) {
            (0, Ok(text)) => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
            (1, Ok(text)) => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
            (2, Ok(text)) => serde_json::to_string(text).unwrap().into_bytes(),
            (3, _) => text[..text.len().min(40)].to_vec(),
            _ => text.clone(),
        },
        Needle::Word(bytes) | Needle::Raw(bytes) => bytes.clone(),
        Needle::Vector(values) => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
    }
}

/// Needles, and data in which they occur: whole, cut short, or one byte off.
fn case() -> impl Strategy<Value = (Vec<Needle>, Vec<u8>)> {
    let piece = (
        any::<Index>(),
        any::<usize>(),
        0_usize..6,
        prop::collection::vec(select(&b"ab \"\\*\0\x01"[..]), 0..30),
    );
    let needles = select(&[8, 12, 16][..])
        .prop_flat_map(|shortest| prop::collection::vec(needle(shortest), 1..12));
    (needles, prop::collection::vec(piece, 0..20)).prop_map(|(needles, pieces)| {
        let mut data = Vec::new();
        for (index, choice, change, filler) in pieces {
            data.extend(filler);
            let mut planted = spelled(index.get(&needles), choice);
            match change {
                0 => drop(planted.pop()),
                1 => drop(planted.remove(0)),
                2 => *planted.last_mut().unwrap() ^= 1,
                _ => {}
            }
            data.extend(planted);
        }
        (needles, data)
    })
}

/// Starts and lengths of what is found as a whole.
fn whole(hits: &[Hit]) -> Vec<(u64, u32)> {
    let mut found: Vec<(u64, u32)> = hits
        .iter()
        .filter(|hit| hit.class == Class::Whole)
        .map(|hit| (hit.offset, hit.length))
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn finds_what_the_obvious_search_finds((needles, data) in case(), step in 1_usize..200) {
        let needles = Needles::new(needles);
        let expected = needles.naive_hits_in(&data);
        prop_assert_eq!(&needles.hits_in(&data), &expected);
        let streamed = needles.hits_from(&mut data.as_slice(), step, Path::new("data")).unwrap();
        prop_assert_eq!(&streamed, &expected);
    }

    #[test]
    fn shingles_find_what_texts_find((needles, data) in case(), key in prop::collection::vec(any::<u8>(), 0..80)) {
        let needles = Needles::new(needles);
        let kept = needles.shingles(&key);
        let hidden = Needles::from_shingles(&[&kept], &key).unwrap();
        prop_assert_eq!(hidden.shingles(b"another"), kept.clone());
        prop_assert_eq!(whole(&hidden.hits_in(&data)), whole(&needles.hits_in(&data)));
        let sent = Needles::from_bytes(&hidden.to_bytes()).unwrap();
        prop_assert_eq!(sent.hits_in(&data), hidden.hits_in(&data));
    }

    #[test]
    fn a_set_without_some_finds_the_rest(
        (needles, data) in case(),
        marks in prop::collection::vec(any::<bool>(), 600),
        hide in any::<bool>(),
    ) {
        let known = Needles::new(needles);
        let all = if hide {
            Needles::from_shingles(&[known.shingles(b"key")], b"key").unwrap()
        } else {
            known
        };
        let marked = &marks[..all.len()];
        let rest = all.without(marked).unwrap();
        prop_assert_eq!(rest.len(), marked.iter().filter(|mark| !**mark).count());
        let mut expected = all.hits_in(&data);
        expected.retain(|hit| !marked[hit.needle as usize]);
        prop_assert_eq!(whole(&rest.hits_in(&data)), whole(&expected));
        prop_assert_eq!(rest.hits_in(&data).len(), expected.len());
    }

    #[test]
    fn a_set_crosses_a_pipe((needles, data) in case()) {
        let needles = Needles::new(needles);
        let sent = Needles::from_bytes(&needles.to_bytes()).unwrap();
        prop_assert_eq!(sent.len(), needles.len());
        prop_assert_eq!(sent.hits_in(&data), needles.hits_in(&data));
    }
}

#[test]
fn the_shingle_of_a_long_text_is_all_of_it() {
    let text: Vec<u8> = (0..600_u32).map(|n| b'a' + (n * n % 23) as u8).collect();
    let needles = Needles::new(vec![Needle::Text(text.clone())]);
    let hidden = Needles::from_shingles(&[needles.shingles(b"key")], b"key").unwrap();
    let hits = hidden.hits_in(&text);
    assert!(
        hits.iter()
            .any(|hit| hit.offset == 0 && hit.length as usize == text.len())
    );
    let mut alike = text.clone();
    *alike.last_mut().unwrap() = b'!';
    assert!(hidden.hits_in(&alike).is_empty());
    let other = Needles::from_shingles(&[needles.shingles(b"key")], b"other").unwrap();
    assert!(other.hits_in(&text).is_empty());
}

#[test]
fn shingles_tell_no_order_and_hold_no_text() {
    let (one, two) = (
        b"the first of two".to_vec(),
        b"and then the second".to_vec(),
    );
    let forth = Needles::new(vec![Needle::Text(one.clone()), Needle::Text(two.clone())]);
    let back = Needles::new(vec![Needle::Text(two), Needle::Text(one)]);
    let kept = forth.shingles(b"key");
    assert_eq!(kept, back.shingles(b"key"));
    assert_ne!(kept, forth.shingles(b"other"));
    assert!(forth.hits_in(&kept).is_empty());
}

#[test]
fn short_and_equal_needles_are_left_out() {
    let needles = Needles::new(vec![
        Needle::Text(b"eleven byte".to_vec()),
        Needle::Text(b"twelve bytes".to_vec()),
        Needle::Text(b"twelve bytes".to_vec()),
        Needle::Raw(b"fifteen bytes..".to_vec()),
        Needle::Word(b"seventy".to_vec()),
        Needle::Vector(vec![0.0; 64]),
    ]);
    assert_eq!(needles.len(), 1);
    assert!(Needles::new(Vec::new()).is_empty());
    assert!(
        Needles::new(Vec::new())
            .hits_in(b"anything at all")
            .is_empty()
    );
}

#[test]
fn a_damaged_set_is_refused() {
    let needles = Needles::new(vec![Needle::Text(b"twelve bytes".to_vec())]);
    let kept = needles.shingles(b"key");
    assert!(Needles::from_shingles(&[&kept[1..]], b"key").is_err());
    let mut bent = kept.clone();
    bent[4] = 200;
    assert!(Needles::from_shingles(&[bent], b"key").is_err());
    assert!(Needles::from_bytes(&needles.to_bytes()[..10]).is_err());
}

#[test]
fn many_needles_use_wide_tables() {
    let text = |n: u32| format!("needle number {n} of very many").into_bytes();
    for count in [100, 2_000, 20_000] {
        let needles = Needles::new((0..count).map(|n| Needle::Text(text(n))).collect());
        let data = [b"zz".as_slice(), &text(count - 1), b"zz", &text(count)].concat();
        assert_eq!(needles.hits_in(&data).len(), 1);
    }
}

#[test]
fn what_was_read_before_an_error_is_searched() {
    use std::io::{Error, Read};
    struct Torn(u8);
    impl Read for Torn {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            self.0 += 1;
            match self.0 {
                1 => {
                    buffer[..12].copy_from_slice(b"twelve bytes");
                    Ok(12)
                }
                2 => Err(Error::from(std::io::ErrorKind::Interrupted)),
                3 => Err(Error::other("torn")),
                _ => Ok(0),
            }
        }
    }
    let needles = Needles::new(vec![Needle::Text(b"twelve bytes".to_vec())]);
    let failed = needles.hits_from(&mut Torn(0), 64, Path::new("data"));
    assert_eq!(failed.unwrap_err().to_string(), "data: torn");
}
