//! What is inside gzip and zstd data, unpacked in memory step by step.

use std::io::{self, BufReader, Cursor, Read};
use std::path::Path;

use super::needles::Needles;
use super::pattern::Pattern;
use super::stream::Scan;
use crate::{Error, Result};

/// How deep packed data inside packed data is opened.
const LEVELS: usize = 2;

/// A format, told by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Packing {
    Gzip,
    Zstd,
}

impl Packing {
    /// What data that begins with `head` is packed with.
    pub(super) fn of(head: &[u8]) -> Option<Self> {
        match head {
            // Deflate is the only method, and the upper flags are reserved.
            [0x1f, 0x8b, 8, flags, ..] if flags & 0xe0 == 0 => Some(Self::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Self::Zstd),
            _ => None,
        }
    }

    /// All members, or frames, of `packed` as one stream.
    fn unpack<'r>(self, packed: Box<dyn Read + 'r>) -> io::Result<Box<dyn Read + 'r>> {
        Ok(match self {
            Self::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(BufReader::new(packed))),
            Self::Zstd => Box::new(zstd::stream::read::Decoder::new(packed)?),
        })
    }
}

/// Searches the data that `open` gives, which is packed with `packing`. Offsets are those of what was unpacked.
///
/// # Errors
/// [`Error::Io`] when it is damaged or needs a window above 128 MiB; what came before has been searched.
pub(super) fn scan<'r>(
    needles: &Needles,
    buffer: &mut Vec<u8>,
    path: &Path,
    packing: Packing,
    open: &dyn Fn() -> io::Result<Box<dyn Read + 'r>>,
    report: &mut dyn FnMut(u64, &Pattern),
) -> Result<()> {
    let mut levels = vec![packing];
    loop {
        let failed = |source| Error::io(path, source);
        let mut stream = open().map_err(failed)?;
        for level in &levels {
            stream = level.unpack(stream).map_err(failed)?;
        }
        let (head, mut stream) = peek(stream).map_err(failed)?;
        let mut scan = Scan::new(needles, buffer, 0);
        scan.through(&mut stream, path, report)?;
        match Packing::of(&head) {
            Some(inner) if levels.len() < LEVELS => levels.push(inner),
            _ => return Ok(()),
        }
    }
}

/// The first 4 bytes of a stream, and the stream with them.
fn peek<'r>(mut stream: Box<dyn Read + 'r>) -> io::Result<(Vec<u8>, impl Read + 'r)> {
    let mut head = Vec::new();
    (&mut stream).take(4).read_to_end(&mut head)?;
    Ok((head.clone(), Cursor::new(head).chain(stream)))
}
