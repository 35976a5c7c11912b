//! Blocks are the input cut at line ends. Input: capacity, sizes of the pieces read, then text.
#![no_main]

use std::io::{self, ErrorKind, Read};

use cenotaph_core::line::{LineReader, body, lines};
use libfuzzer_sys::fuzz_target;

/// Hands out pieces of the sizes in `plan`, over and over; 0 stands for an interruption.
struct Pieces<'a> {
    plan: &'a [u8],
    turn: usize,
    rest: &'a [u8],
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.turn += 1;
        let size = usize::from(self.plan[self.turn % self.plan.len()]);
        if size == 0 && self.turn % 2 == 0 {
            return Err(ErrorKind::Interrupted.into());
        }
        let size = size.max(1).min(buffer.len()).min(self.rest.len());
        buffer[..size].copy_from_slice(&self.rest[..size]);
        self.rest = &self.rest[size..];
        Ok(size)
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((head, text)) = input.split_first_chunk::<8>() else {
        return;
    };
    let source = Pieces {
        plan: &head[1..],
        turn: 0,
        rest: text,
    };
    let mut reader = LineReader::with_capacity(source, usize::from(head[0]));
    let mut joined = Vec::new();
    while let Ok(Some(block)) = reader.next_block() {
        assert!(!block.is_empty());
        assert!(joined.is_empty() || joined.ends_with(b"\n"));
        joined.extend_from_slice(block);
    }
    assert_eq!(joined, text);
    let cut: Vec<&[u8]> = lines(text).collect();
    let obvious: Vec<&[u8]> = text.split_inclusive(|&byte| byte == b'\n').collect();
    assert_eq!(cut, obvious);
    for line in cut {
        assert!(matches!(&line[body(line).len()..], b"" | b"\n" | b"\r\n"));
    }
});
