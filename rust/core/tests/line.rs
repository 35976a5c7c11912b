//! Whole lines through one buffer: nothing lost, nothing added, whatever the reader hands out.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::io::{self, ErrorKind, Read};

use cenotaph_core::line::{LineReader, body, lines};
use proptest::prelude::*;

/// A reader that hands out pieces of the given sizes, with an interruption before each.
struct Pieces<'a> {
    rest: &'a [u8],
    sizes: std::iter::Cycle<std::vec::IntoIter<usize>>,
    interrupt: bool,
}

impl<'a> Pieces<'a> {
    fn new(text: &'a [u8], sizes: Vec<usize>) -> Self {
        Self {
            rest: text,
            sizes: sizes.into_iter().cycle(),
            interrupt: false,
        }
    }
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.interrupt = !self.interrupt;
        if self.interrupt {
            return Err(ErrorKind::Interrupted.into());
        }
        let size = self.sizes.next().unwrap_or(1).min(buffer.len());
        let size = size.min(self.rest.len());
        buffer[..size].copy_from_slice(&self.rest[..size]);
        self.rest = &self.rest[size..];
        Ok(size)
    }
}

fn blocks<R: Read>(mut reader: LineReader<R>) -> Vec<Vec<u8>> {
    let mut blocks = Vec::new();
    while let Some(block) = reader.next_block().unwrap() {
        blocks.push(block.to_vec());
    }
    assert!(reader.next_block().unwrap().is_none(), "the end is the end");
    blocks
}

fn text() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![3 => Just(b'a'), 1 => Just(b'\n'), 1 => Just(b'\r'), 1 => any::<u8>()];
    prop::collection::vec(byte, 0..300)
}

proptest! {
    #[test]
    fn blocks_are_the_input_cut_at_line_ends(
        text in text(),
        sizes in prop::collection::vec(1_usize..40, 1..6),
        capacity in 0_usize..50,
    ) {
        let reader = LineReader::with_capacity(Pieces::new(&text, sizes), capacity);
        let blocks = blocks(reader);
        prop_assert_eq!(blocks.concat(), text);
        for (at, block) in blocks.iter().enumerate() {
            prop_assert!(!block.is_empty());
            prop_assert!(block.ends_with(b"\n") || at + 1 == blocks.len());
        }
    }

    #[test]
    fn lines_are_the_block_cut_after_each_line_feed(text in text()) {
        let fast: Vec<&[u8]> = lines(&text).collect();
        let obvious: Vec<&[u8]> = text.split_inclusive(|&byte| byte == b'\n').collect();
        prop_assert_eq!(fast, obvious);
    }

    #[test]
    fn a_body_is_the_line_without_its_terminator(text in text()) {
        for line in lines(&text) {
            let body = body(line);
            let rest = &line[body.len()..];
            prop_assert!(line.starts_with(body));
            prop_assert!(matches!(rest, b"" | b"\n" | b"\r\n"));
            prop_assert!(!body.contains(&b'\n'));
            prop_assert!(rest != b"\n" || !body.ends_with(b"\r"));
        }
    }
}

#[test]
fn a_carriage_return_alone_ends_no_line() {
    assert_eq!(
        lines(b"a\rb\r\nc\r").collect::<Vec<_>>(),
        [&b"a\rb\r\n"[..], b"c\r"]
    );
    assert_eq!(body(b"a\rb\r\n"), b"a\rb");
    assert_eq!(body(b"c\r"), b"c\r", "no line feed, no terminator");
    assert_eq!(body(b"\n"), b"");
}

#[test]
fn a_file_of_many_buffers_comes_in_large_blocks() {
    let text = b"0123456789abcdef\n".repeat(300_000);
    let blocks = blocks(LineReader::new(&text[..]));
    assert_eq!(blocks.concat(), text);
    assert!(blocks.len() <= 8, "{} blocks for 5 MB", blocks.len());
    assert!(blocks.iter().all(|block| block.len() <= 1 << 20));
}

#[test]
fn a_long_line_widens_the_buffer_only_while_it_lasts() {
    let mut text = vec![b'x'; 3 << 20];
    text.push(b'\n');
    let short = b"short\n".repeat(800_000);
    text.extend_from_slice(&short);
    let mut reader = LineReader::new(&text[..]);
    let mut sizes = Vec::new();
    while let Some(block) = reader.next_block().unwrap() {
        sizes.push(block.len());
    }
    assert!(sizes[0] > 3 << 20);
    assert!(sizes[1..].iter().all(|&size| size <= 1 << 20), "{sizes:?}");
    assert!(sizes.len() > 3, "{sizes:?}");
    assert_eq!(sizes.iter().sum::<usize>(), text.len());
}

#[test]
fn an_error_is_passed_on_and_loses_nothing() {
    struct Failing(u32);
    impl Read for Failing {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.0 += 1;
            let piece: &[u8] = match self.0 {
                1 => b"first, ",
                2 => return Err(ErrorKind::TimedOut.into()),
                3 => b"second\n",
                _ => b"",
            };
            buffer[..piece.len()].copy_from_slice(piece);
            Ok(piece.len())
        }
    }
    let mut reader = LineReader::new(Failing(0));
    let error = reader.next_block().expect_err("the reader failed");
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert_eq!(reader.next_block().unwrap(), Some(&b"first, second\n"[..]));
    assert_eq!(reader.next_block().unwrap(), None);
}
