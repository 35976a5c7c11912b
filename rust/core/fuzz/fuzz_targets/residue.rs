//! The search of `verify` answers as the obvious search does, in one piece, in steps, and from a pipe; shingles find what
//! the texts find. Input: a size of steps, needles, one a line with a letter for its kind, an empty line, then data.
#![no_main]

use std::path::Path;

use cenotaph_core::residue::{Class, Needle, Needles};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((&step, input)) = input.split_first() else {
        return;
    };
    let end = input.windows(2).position(|pair| pair == b"\n\n");
    let Some(end) = end else { return };
    let (lines, data) = (&input[..end], &input[end + 2..]);
    let needles = Needles::new(
        lines
            .split(|&byte| byte == b'\n')
            .filter_map(needle)
            .collect(),
    );

    let expected = needles.naive_hits_in(data);
    assert_eq!(needles.hits_in(data), expected);
    let mut stream = data;
    let streamed = needles.hits_from(&mut stream, usize::from(step), Path::new("data"));
    assert_eq!(streamed.ok().as_ref(), Some(&expected));
    let sent = Needles::from_bytes(&needles.to_bytes()).expect("what was written is read");
    assert_eq!(sent.hits_in(data), expected);

    let kept = needles.shingles(b"key");
    let hidden = Needles::from_shingles(&[&kept], b"key").expect("what was written is read");
    let found = hidden.hits_in(data);
    for hit in expected.iter().filter(|hit| hit.class == Class::Whole) {
        let length = hit.length.min(64);
        assert!(
            found
                .iter()
                .any(|other| other.offset == hit.offset && other.length == length)
        );
    }
});

fn needle(line: &[u8]) -> Option<Needle> {
    let (kind, content) = line.split_first()?;
    Some(match kind {
        b'w' => Needle::Word(content.to_vec()),
        b'r' => Needle::Raw(content.to_vec()),
        b'v' => {
            let values = content.as_chunks::<4>().0.iter();
            Needle::Vector(values.map(|value| f32::from_le_bytes(*value)).collect())
        }
        _ => Needle::Text(content.to_vec()),
    })
}
